//! Whose a file is, where anybody could have put it.

use std::path::Path;

use crate::error::FsError;

/// Whether somebody else may have put the file `path` there to be taken up by the owner of `own`: it
/// lies in a directory that everybody may write, and belongs neither to that owner nor to the
/// superuser. Nothing is known of this on Windows, and the answer is no.
pub fn may_be_planted(path: &Path, own: &Path) -> Result<bool, FsError> {
    platform::may_be_planted(path, own)
}

#[cfg(unix)]
mod platform {
    use super::{FsError, Path};
    use std::os::unix::fs::MetadataExt as _;

    const EVERYBODY_WRITES: u32 = 0o002;
    const SUPERUSER: u32 = 0;

    pub(super) fn may_be_planted(path: &Path, own: &Path) -> Result<bool, FsError> {
        let look = |path: &Path| {
            path.symlink_metadata()
                .map_err(FsError::at("look at", path))
        };
        let directory = look(path.parent().unwrap_or(path))?;
        let (owner, own) = (look(path)?.uid(), look(own)?.uid());
        Ok(is_open_to(directory.mode(), owner, own))
    }

    pub(super) fn is_open_to(directory_mode: u32, owner: u32, own: u32) -> bool {
        directory_mode & EVERYBODY_WRITES != 0 && owner != own && owner != SUPERUSER
    }
}

#[cfg(not(unix))]
mod platform {
    use super::{FsError, Path};

    pub(super) fn may_be_planted(_path: &Path, _own: &Path) -> Result<bool, FsError> {
        Ok(false)
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_strangers_file_in_a_directory_of_everybodys_is_suspect() {
        for (mode, owner, own, expected) in [
            (0o1777, 7, 8, true),
            (0o777, 7, 0, true),
            (0o1777, 8, 8, false),
            (0o1777, 0, 8, false),
            (0o775, 7, 8, false),
        ] {
            let found = platform::is_open_to(mode, owner, own);
            assert_eq!(found, expected, "{mode:o} {owner} {own}");
        }
    }

    #[test]
    fn ones_own_files_are_not_suspect_and_an_absent_one_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let (a, b) = (directory.path().join("a"), directory.path().join("b"));
        std::fs::write(&a, "").unwrap();
        assert!(!may_be_planted(&a, &a).unwrap());
        assert_eq!(may_be_planted(&a, &b).unwrap_err().path, b);
    }
}
