//! What the tests of each area of errors share.

use std::path::PathBuf;

use vibe_core::Version;
use vibe_install::InstallError;

use super::UserError;
use crate::paste::Paste;
pub(super) use crate::render::testing::{hook, id, slot};

/// What a user is told of `error`.
pub(super) fn told(error: &InstallError) -> UserError {
    UserError::of(error, &Paste::default())
}

/// What a user meets of `error`: kind, exit code, and a part of some hint ("" for no hint).
pub(super) fn check(error: &InstallError, kind: &str, exit_code: u8, hint: &str) {
    let found = told(error);
    assert_eq!(
        (found.kind, found.exit_code),
        (kind, exit_code),
        "{found:?}"
    );
    assert_eq!(found.message, error.to_string());
    match hint {
        "" => assert_eq!(found.hints, [""; 0]),
        _ => assert!(
            found.hints.iter().any(|h| h.contains(hint)),
            "{:?}",
            found.hints
        ),
    }
}

/// Some version.
pub(super) fn version() -> Version {
    "1.0.0".parse().unwrap()
}

/// Where a lock lies.
pub(super) fn lock_path() -> PathBuf {
    PathBuf::from("/p/vibe.lock")
}
