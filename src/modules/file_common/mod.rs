//! What the file modules have in common: paths, modes, owners, and the steps that change files.

pub mod account;
pub mod content;
pub mod destination;
pub mod install;
pub mod mode;
pub mod path;
pub mod permissions;
pub mod text;
