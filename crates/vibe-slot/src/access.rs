//! Working inside directories that a hook or a user made read-only: they are ours to change, so
//! their owner is let in and the call made again.

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::Path;

use vibe_core::RelPath;
use vibe_fs::{EntryKind, FsError, ParentError, RemoveError, stat_of};

/// Makes `attempt`, which changes the entry `path`, once more after letting the owner into the
/// directory above it, if the first was denied.
pub(crate) fn insisting<T>(
    path: &Path,
    mut attempt: impl FnMut() -> Result<T, FsError>,
) -> Result<T, FsError> {
    match attempt() {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            if let Some(parent) = path.parent() {
                vibe_fs::grant_owner(parent)?;
            }
            attempt()
        }
        outcome => outcome,
    }
}

/// Renames `from` to `to`, letting the owner into both directories, and into `from` itself if it
/// is one (moving it changes its `..`), where that is denied.
pub(crate) fn rename_insisting(from: &Path, to: &Path) -> Result<(), FsError> {
    match vibe_fs::rename_over(from, to) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            vibe_fs::grant_owner(from)?;
            insisting(from, || insisting(to, || vibe_fs::rename_over(from, to)))
        }
        outcome => outcome,
    }
}

/// Removes the tree `path`, letting the owner into the directory above it where that is denied.
pub(crate) fn remove_tree_insisting(path: &Path) -> Result<(), RemoveError> {
    if vibe_fs::remove_tree(path).is_ok() {
        return Ok(());
    }
    // What this cannot change shows in the second attempt.
    let _ = path.parent().map(vibe_fs::grant_owner);
    vibe_fs::remove_tree(path)
}

/// Removes the tree `path` in one step: it is moved to `staged`, a free name in staging, and removed
/// there, so that a kill in between leaves all of it or nothing, and never a part that looks as if
/// somebody had changed it. What cannot be moved is removed where it is.
pub(crate) fn remove_at_once(path: &Path, staged: &Path) -> Result<(), RemoveError> {
    match rename_insisting(path, staged) {
        Ok(()) => remove_tree_insisting(staged),
        Err(_) => remove_tree_insisting(path),
    }
}

/// Makes the directories above `path`, also below a directory that its owner may not change.
pub(crate) fn create_parents_insisting(root: &Path, path: &RelPath) -> Result<(), ParentError> {
    match vibe_fs::create_parents(root, path) {
        Err(ParentError::Fs(error)) if error.kind() == ErrorKind::PermissionDenied => {
            grant_above(root, path)?;
            vibe_fs::create_parents(root, path)
        }
        outcome => outcome,
    }
}

/// Removes the directories above `path` that are empty, also below a directory that its owner may
/// not change.
pub(crate) fn remove_empty_insisting(root: &Path, path: &RelPath) -> Result<(), FsError> {
    match vibe_fs::remove_empty_directories_up(root, path) {
        Err(error) if error.kind() == ErrorKind::PermissionDenied => {
            grant_above(root, path)?;
            vibe_fs::remove_empty_directories_up(root, path)
        }
        outcome => outcome,
    }
}

/// Removes the directories above `paths` that are empty, as [`remove_empty_insisting`] does, each
/// looked at once.
pub(crate) fn remove_emptied<'p>(
    root: &Path,
    paths: impl IntoIterator<Item = &'p RelPath>,
) -> Result<(), FsError> {
    let by_parent: BTreeMap<Option<RelPath>, &RelPath> = paths
        .into_iter()
        .map(|path| (path.parent(), path))
        .collect();
    by_parent
        .values()
        .try_for_each(|path| remove_empty_insisting(root, path))
}

/// Stops at the first thing on the way that is no directory, so that no link is followed.
fn grant_above(root: &Path, path: &RelPath) -> Result<(), FsError> {
    vibe_fs::grant_owner(root)?;
    for directory in path.ancestors() {
        let full = directory.under(root);
        if stat_of(&full)?.map(|stat| stat.kind) != Some(EntryKind::Directory) {
            break;
        }
        vibe_fs::grant_owner(&full)?;
    }
    Ok(())
}
