//! Hands the command line to the library, and its exit code to the caller.

use std::process::ExitCode;

fn main() -> ExitCode {
    ExitCode::from(trimtab::cli::main(std::env::args_os()))
}
