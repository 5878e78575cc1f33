//! Renaming over a file, with patience for systems where another program can hold it open.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use vibe_core::hook::HostOs;

use crate::error::FsError;
use crate::stat::stat_of;

/// Pauses between attempts, about ten seconds together: what a virus scanner or an indexer needs
/// to let go of a file it has just noticed.
const PAUSES_MS: [u64; 16] = [
    10, 20, 40, 80, 160, 320, 640, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000, 1_000,
];

/// The cause of a rename that stayed impossible although it was tried again.
#[derive(Debug, thiserror::Error)]
#[error("another program probably holds it open; close it and run the command again")]
struct HeldOpen(#[source] io::Error);

/// Renames `from` to `to`, replacing a file or link that is there; a link is not followed. Where
/// another program holds the file open, tries again for about ten seconds.
pub fn rename_over(from: &Path, to: &Path) -> Result<(), FsError> {
    retry_transient(HostOs::CURRENT, std::thread::sleep, || {
        std::fs::rename(from, to)
    })
    .map_err(FsError::at("replace", to))
}

/// The first name beside `path` that is free: `<path>.vibe-kept`, `<path>.vibe-kept.2`, ... What is
/// in the way of one of our own files is kept there.
pub fn free_kept_name(path: &Path) -> Result<PathBuf, FsError> {
    let mut count = 1_usize;
    loop {
        let suffix = match count {
            1 => ".vibe-kept".to_owned(),
            _ => format!(".vibe-kept.{count}"),
        };
        let mut name = OsString::from(path);
        name.push(suffix);
        let kept = PathBuf::from(name);
        if stat_of(&kept)?.is_none() {
            return Ok(kept);
        }
        count += 1;
    }
}

/// Calls `attempt` until it succeeds, fails for good, or has failed transiently once more than
/// there are pauses.
pub fn retry_transient<T>(
    os: HostOs,
    mut pause: impl FnMut(Duration),
    mut attempt: impl FnMut() -> io::Result<T>,
) -> io::Result<T> {
    let transient = |error: &io::Error| {
        error
            .raw_os_error()
            .is_some_and(|code| is_transient_rename_error(os, code))
    };
    for pause_ms in PAUSES_MS {
        match attempt() {
            Err(error) if transient(&error) => pause(Duration::from_millis(pause_ms)),
            outcome => return outcome,
        }
    }
    attempt().map_err(|error| match transient(&error) {
        true => io::Error::new(error.kind(), HeldOpen(error)),
        false => error,
    })
}

/// Whether the system's error `raw_code` means that another program is in the way for now:
/// on Windows access denied (5), sharing violation (32), lock violation (33) and directory not
/// empty (145); never on Unix.
pub fn is_transient_rename_error(os: HostOs, raw_code: i32) -> bool {
    os == HostOs::Windows && matches!(raw_code, 5 | 32 | 33 | 145)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::error::Error as _;

    /// How often it was tried, the pauses, and the outcome, where the first `failures` attempts
    /// fail with `code`.
    fn check(os: HostOs, failures: usize, code: i32) -> (usize, Vec<Duration>, io::Result<()>) {
        let mut attempts = 0;
        let mut pauses = Vec::new();
        let outcome = retry_transient(
            os,
            |pause| pauses.push(pause),
            || {
                attempts += 1;
                match attempts <= failures {
                    true => Err(io::Error::from_raw_os_error(code)),
                    false => Ok(()),
                }
            },
        );
        (attempts, pauses, outcome)
    }

    #[test]
    fn what_is_in_the_way_is_kept_under_the_first_free_name() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.b");
        for expected in ["a.b.vibe-kept", "a.b.vibe-kept.2", "a.b.vibe-kept.3"] {
            let kept = free_kept_name(&path).unwrap();
            assert_eq!(kept, directory.path().join(expected));
            std::fs::create_dir(&kept).unwrap();
        }
    }

    #[test]
    fn only_sharing_errors_of_windows_are_transient() {
        for code in [5, 32, 33, 145] {
            assert!(is_transient_rename_error(HostOs::Windows, code), "{code}");
            assert!(!is_transient_rename_error(HostOs::Unix, code), "{code}");
        }
        for code in [2, 3, 17, 31, 34, 144] {
            assert!(!is_transient_rename_error(HostOs::Windows, code), "{code}");
        }
    }

    #[test]
    fn a_rename_that_fails_three_times_succeeds_at_the_fourth() {
        let (attempts, pauses, outcome) = check(HostOs::Windows, 3, 32);
        assert!(outcome.is_ok());
        assert_eq!(attempts, 4);
        assert_eq!(pauses, [10, 20, 40].map(Duration::from_millis));
    }

    #[test]
    fn a_lasting_failure_is_told_at_once() {
        for (os, code) in [(HostOs::Unix, 32), (HostOs::Windows, 2)] {
            let (attempts, pauses, outcome) = check(os, 100, code);
            assert_eq!((attempts, pauses.len()), (1, 0));
            assert_eq!(outcome.unwrap_err().raw_os_error(), Some(code));
        }
    }

    #[test]
    fn patience_ends_and_the_likely_cause_is_named() {
        let (attempts, pauses, outcome) = check(HostOs::Windows, 100, 32);
        assert_eq!((attempts, pauses.len()), (17, 16));
        let total: Duration = pauses.iter().sum();
        assert_eq!(total, Duration::from_millis(10_270));
        let error = FsError::new("replace", Path::new("vibe.lock"), outcome.unwrap_err());
        assert_eq!(error.to_string(), "could not replace vibe.lock");
        let cause = error.source().unwrap();
        assert!(cause.to_string().contains("another program"), "{cause}");
    }

    #[test]
    fn the_last_attempt_may_still_succeed() {
        let (attempts, _, outcome) = check(HostOs::Windows, 16, 145);
        assert!(outcome.is_ok());
        assert_eq!(attempts, 17);
    }

    #[test]
    fn a_missing_source_names_the_target() {
        let directory = tempfile::tempdir().unwrap();
        let to = directory.path().join("to");
        let error = rename_over(&directory.path().join("from"), &to).unwrap_err();
        assert_eq!((error.doing, &error.path), ("replace", &to));
        assert!(error.is_not_found());
    }
}
