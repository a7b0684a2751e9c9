//! The language as real Ansible has it: each module compares with recorded results (`goldens/`).

#![allow(clippy::unwrap_used)]

mod background;
mod coverage;
mod facts;
mod flow;
mod free_form;
mod generated;
mod goldens;
mod groups;
mod handlers;
mod inventory;
mod lenient;
mod own_filters;
mod plays;
mod roles;
mod steering;
mod strategies;
mod support;
mod templates;
mod vault;
mod yaml;
