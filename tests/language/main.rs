//! The language as real Ansible has it: each module compares with recorded results (`goldens/`).

#![allow(clippy::unwrap_used)]

mod background;
mod expr;
mod facts;
mod flow;
mod free_form;
mod generated;
mod inventory;
mod lenient;
mod own_filters;
mod play_flow;
mod roles;
mod steering;
mod strategies;
mod support;
mod vault;
mod yaml;
