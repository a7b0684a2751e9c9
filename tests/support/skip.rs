//! Tests that this machine cannot make.

/// Says that a test was not made, and why. `tests/run` has all that tests need, and lets none be left out.
#[expect(clippy::print_stderr, reason = "nobody else would tell")]
pub fn skipped(reason: &str) {
    assert!(std::env::var_os("TRIMTAB_SKIP_NO_TEST").is_none(), "may not be skipped: {reason}");
    eprintln!("SKIPPED: {reason}");
}
