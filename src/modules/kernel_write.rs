//! Writes to files of the kernel (/proc, /sys, cgroups), each read back.

use crate::connect::shell::quote;
use crate::host::{Failure, Step};
use crate::tuning::write_error::{Interface, explain};

/// Writes `value` to the file and reads it back; `expect` is what it reads then.
///
/// The program `printf` writes, not the shell's own: dash calls every error of its own an I/O error.
pub(super) fn write_step(path: &str, value: &str, expect: &str) -> Step {
    let (file, value) = (quote(path), quote(value));
    Step::new(format!("env printf '%s\\n' {value} >{file} && cat {file}")).expect(expect).writes(path)
}

/// Adds to a failed write what its error means.
pub(super) fn explained(failure: Failure, interface: Interface, as_root: bool) -> Failure {
    let explanation = explain(&failure.message, interface, as_root);
    match explanation.errno {
        Some(_) => Failure { message: format!("{}: {}", failure.message, explanation.reason), ..failure },
        None => failure,
    }
}
