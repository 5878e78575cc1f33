//! Directories one at a time: removed if empty, opened up to their owner.

use std::path::Path;

use crate::error::FsError;
use crate::stat::{EntryKind, is_absence, stat_of};

/// Removes the directory `path` if it is empty. Returns whether it was removed; one that is
/// absent, holds something or is a link is not.
pub fn remove_empty_directory(path: &Path) -> Result<bool, FsError> {
    match std::fs::remove_dir(path) {
        Ok(()) => Ok(true),
        Err(error) if is_absence(error.kind()) => Ok(false),
        Err(error)
            if matches!(
                error.kind(),
                std::io::ErrorKind::DirectoryNotEmpty | std::io::ErrorKind::AlreadyExists
            ) =>
        {
            Ok(false)
        }
        Err(error) => Err(FsError::new("remove", path, error)),
    }
}

/// Lets the owner list and change the directory `path`; the other permissions stay. Anything but a
/// directory is left as it is.
pub fn grant_owner(path: &Path) -> Result<(), FsError> {
    match stat_of(path)?.map(|stat| stat.kind) {
        Some(EntryKind::Directory) => add_owner_bits(path),
        _ => Ok(()),
    }
}

#[cfg(unix)]
fn add_owner_bits(path: &Path) -> Result<(), FsError> {
    use std::os::unix::fs::PermissionsExt as _;
    let fail = FsError::at("change the permissions of", path);
    let mode = path.symlink_metadata().map_err(&fail)?.permissions().mode();
    let permissions = std::fs::Permissions::from_mode(mode | 0o700);
    std::fs::set_permissions(path, permissions).map_err(&fail)
}

#[cfg(not(unix))]
fn add_owner_bits(_path: &Path) -> Result<(), FsError> {
    Ok(())
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use vibe_testkit::{mode_of, set_mode};

    #[test]
    fn only_an_empty_directory_is_removed() {
        let root = tempfile::tempdir().unwrap();
        let (full, empty) = (root.path().join("full"), root.path().join("empty"));
        std::fs::create_dir_all(full.join("x")).unwrap();
        std::fs::create_dir(&empty).unwrap();
        std::os::unix::fs::symlink(&empty, root.path().join("link")).unwrap();
        assert!(!remove_empty_directory(&full).unwrap());
        assert!(!remove_empty_directory(&root.path().join("absent")).unwrap());
        assert!(!remove_empty_directory(&root.path().join("link")).unwrap());
        assert!(remove_empty_directory(&empty).unwrap());
        assert!(full.join("x").is_dir() && !empty.exists());
    }

    #[test]
    fn the_owner_is_let_in_and_nothing_else_changes() {
        let root = tempfile::tempdir().unwrap();
        let (directory, file) = (root.path().join("d"), root.path().join("f"));
        std::fs::create_dir(&directory).unwrap();
        std::fs::write(&file, "").unwrap();
        std::os::unix::fs::symlink(&directory, root.path().join("link")).unwrap();
        set_mode(&directory, 0o055);
        set_mode(&file, 0o400);
        grant_owner(&root.path().join("link")).unwrap();
        assert_eq!(mode_of(&directory), 0o055, "not through a link");
        grant_owner(&directory).unwrap();
        grant_owner(&file).unwrap();
        grant_owner(&root.path().join("absent")).unwrap();
        assert_eq!((mode_of(&directory), mode_of(&file)), (0o755, 0o400));
    }
}
