//! What helps where it is the system that refuses, whatever vibe was doing.

use std::error::Error;
use std::io::ErrorKind;

use vibe_install::InstallError;

/// Whether nothing is wrong but that a file system, or the user's part of it, is full.
pub(super) fn is_disk_full(error: &InstallError) -> bool {
    let full = [ErrorKind::StorageFull, ErrorKind::QuotaExceeded];
    refusal(error).is_some_and(|kind| full.contains(&kind))
}

/// What the user can do where nothing else is known to help.
pub(super) fn hint(error: &InstallError) -> Option<String> {
    let hint = match refusal(error)? {
        ErrorKind::PermissionDenied => {
            "`ls -ld` shows whose it is and who may do that: have it made yours, or run vibe as the \
             user to whom it belongs"
        }
        ErrorKind::ReadOnlyFilesystem => {
            "that file system takes no changes: mount it for writing, or work on a copy elsewhere"
        }
        _ => return None,
    };
    Some(hint.to_owned())
}

/// What the system said, if a call of it failed.
fn refusal(error: &InstallError) -> Option<ErrorKind> {
    let mut next = error.source();
    while let Some(cause) = next {
        if let Some(failure) = cause.downcast_ref::<std::io::Error>() {
            return Some(failure.kind());
        }
        next = cause.source();
    }
    None
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use vibe_install::FsError;

    use super::super::testing::check;
    use super::*;

    #[test]
    fn what_this_user_may_not_do_says_what_helps() {
        let failed = |kind: ErrorKind| {
            let call = FsError::new("open", Path::new("/p/vibedeps"), kind.into());
            InstallError::from(call)
        };
        let denied = failed(ErrorKind::PermissionDenied);
        check(&denied, "file-system", 1, "`ls -ld` shows whose it is");
        let frozen = failed(ErrorKind::ReadOnlyFilesystem);
        check(&frozen, "file-system", 1, "takes no changes");
        check(&failed(ErrorKind::NotFound), "file-system", 1, "");
    }
}
