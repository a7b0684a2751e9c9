//! The built program as people use it: what it prints, where, and its exit code.

mod check;
mod collections;
mod dialogue;
mod errors;
mod keywords;
mod listings;
mod outputs;
mod precedence;
mod support;
mod vault;
