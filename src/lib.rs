//! trimtab brings fleets of servers to a declared state from Ansible playbooks, over plain SSH.
//!
//! The rooms and who may know whom are in `ARCHITECTURE.md`.

pub mod cli;
pub mod connect;
pub mod engine;
pub mod error;
pub mod facts;
pub mod host;
pub mod http;
pub mod inventory;
pub mod journal;
pub mod modules;
pub mod playbook;
pub mod program;
pub mod python_regex;
pub mod report;
pub mod source;
pub mod template;
pub mod tickets;
pub mod tuning;
pub mod ui;
pub mod value;
pub mod vars;
pub mod vault;
pub mod yaml;
