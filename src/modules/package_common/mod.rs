//! What the package modules have in common: versions, names of packages, and running the tools that install them.

pub mod apt_simulation;
pub mod apt_work;
pub mod deb_request;
pub mod deb_version;
pub mod dnf_options;
pub mod download;
#[cfg(test)]
pub mod lab;
pub mod openpgp;
pub mod removal;
pub mod rpm_request;
pub mod rpm_spec;
pub mod rpm_transaction;
pub mod rpm_version;
pub mod tool;
pub mod update_lists;
