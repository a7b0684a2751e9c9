//! The language as real Ansible has it: each module compares with recorded results (`goldens/`).

mod free_form;
mod inventory;
mod yaml;
