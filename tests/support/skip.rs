//! Tests that this machine cannot make.

/// Says that a test was not made, and why.
#[expect(clippy::print_stderr, reason = "nobody else would tell")]
pub fn skipped(reason: &str) {
    eprintln!("SKIPPED: {reason}");
}
