//! Programs that the controller runs for the user: inventory scripts, password scripts.

use std::io::{ErrorKind, Result};
use std::thread::sleep;
use std::time::Duration;

/// Runs a program; one that somebody still has open for writing (`ETXTBSY`, execve(2)) is tried again for a second.
pub fn when_written<T>(mut run: impl FnMut() -> Result<T>) -> Result<T> {
    for _ in 0..50 {
        match run() {
            Err(error) if error.kind() == ErrorKind::ExecutableFileBusy => sleep(Duration::from_millis(20)),
            other => return other,
        }
    }
    run()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_that_is_still_being_written_is_tried_again() {
        let mut tries = 0;
        let outcome = when_written(|| {
            tries += 1;
            if tries < 3 { Err(ErrorKind::ExecutableFileBusy.into()) } else { Ok(tries) }
        });
        assert_eq!(outcome.unwrap(), 3);
        assert!(when_written(|| Err::<(), _>(ErrorKind::NotFound.into())).is_err());
    }
}
