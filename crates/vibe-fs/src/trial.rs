//! Finds out what two directories allow: by trying where only that tells, in a directory of its own
//! that is gone afterwards.

use std::path::Path;

use crate::atomic::create_new_file;
use crate::clone::{CloneMethod, clone_file};
use crate::error::FsError;
use crate::link::hard_link;

/// The bytes of the file that is linked: a block, so that there is one to share.
const TRIAL_BYTES: usize = 4 << 10;

/// How a file in one directory can be had in another without copying its bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkKinds {
    /// As another name of it.
    pub hard_link: bool,
    /// As a file that shares its blocks until one of them is written.
    pub reflink: bool,
    /// As a symbolic link to it.
    pub symlink: bool,
}

/// Tries which links lead from files in the directory `from` to the directory `to`. Both must be
/// ours to write in; they end as they were.
///
/// # Errors
/// No file can be made in one of them.
pub fn try_links(from: &Path, to: &Path) -> Result<LinkKinds, FsError> {
    let (from, to) = (scratch(from)?, scratch(to)?);
    let source = from.path().join("source");
    create_new_file(&source, &[b'x'; TRIAL_BYTES])?;
    let target = |name| to.path().join(name);
    let cloned = clone_file(&source, &target("reflink"), false);
    Ok(LinkKinds {
        hard_link: hard_link(&source, &target("hard-link")).is_ok(),
        reflink: matches!(cloned, Ok(CloneMethod::Reflink)),
        symlink: symlink(&source, &target("symlink")).is_ok(),
    })
}

/// A directory in `directory` that goes when it is dropped.
fn scratch(directory: &Path) -> Result<tempfile::TempDir, FsError> {
    tempfile::Builder::new()
        .prefix("trial-")
        .tempdir_in(directory)
        .map_err(FsError::at("write in", directory))
}

#[cfg(unix)]
fn symlink(source: &Path, target: &Path) -> std::io::Result<()> {
    std::os::unix::fs::symlink(source, target)
}

#[cfg(windows)]
fn symlink(source: &Path, target: &Path) -> std::io::Result<()> {
    std::os::windows::fs::symlink_file(source, target)
}

/// Whether the two paths, which must exist, lie in one file system; `None` where the system does
/// not say.
#[cfg(unix)]
pub fn is_same_file_system(one: &Path, other: &Path) -> Option<bool> {
    use std::os::unix::fs::MetadataExt as _;
    Some(one.metadata().ok()?.dev() == other.metadata().ok()?.dev())
}

/// Whether the two paths, which must exist, lie in one file system; `None` where the system does
/// not say.
#[cfg(not(unix))]
pub fn is_same_file_system(_one: &Path, _other: &Path) -> Option<bool> {
    None
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;

    fn entries(directory: &Path) -> usize {
        std::fs::read_dir(directory).unwrap().count()
    }

    #[test]
    fn links_within_one_file_system_are_found_and_nothing_is_left() {
        let root = tempfile::tempdir().unwrap();
        let (from, to) = (root.path().join("from"), root.path().join("to"));
        std::fs::create_dir(&from).unwrap();
        std::fs::create_dir(&to).unwrap();
        let kinds = try_links(&from, &to).unwrap();
        assert!(kinds.hard_link && kinds.symlink, "{kinds:?}");
        assert_eq!((entries(&from), entries(&to)), (0, 0));
        assert_eq!(is_same_file_system(&from, &to), Some(true));
    }

    #[test]
    fn no_hard_link_leads_to_another_file_system() {
        let root = tempfile::tempdir().unwrap();
        let other = Path::new("/dev/shm");
        if is_same_file_system(root.path(), other) != Some(false) || !crate::may_write(other) {
            return;
        }
        let kinds = try_links(root.path(), other).unwrap();
        assert_eq!((kinds.hard_link, kinds.reflink), (false, false));
        assert!(kinds.symlink);
    }

    #[test]
    fn a_directory_that_is_not_there_is_named() {
        let root = tempfile::tempdir().unwrap();
        let absent = root.path().join("absent");
        let error = try_links(root.path(), &absent).unwrap_err();
        assert!(error.to_string().contains("absent"), "{error}");
        assert_eq!(entries(root.path()), 0);
        assert_eq!(is_same_file_system(root.path(), &absent), None);
    }
}
