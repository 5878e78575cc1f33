//! Working inside directories that a hook or a user made read-only: they are ours to change, so
//! their owner is let in and the call made again.

use std::io::ErrorKind;
use std::path::Path;

use vibe_fs::FsError;

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
