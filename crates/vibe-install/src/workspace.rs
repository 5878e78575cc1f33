//! Workspaces: which directory is the root, and which manifests belong to it.
//!
//! The root of a manifest is the topmost directory whose `[workspace]` includes it. A member may be
//! a workspace itself, whose members join the same root.

pub(crate) mod error;
mod left_over;
mod members;
#[cfg(test)]
mod testing;
mod versions;

pub use error::WorkspaceError;
pub(crate) use left_over::tell_left_over;
pub(crate) use members::{manifests, read_manifest};
pub(crate) use versions::{Scope, fill_in};

use std::path::{Path, PathBuf};

use vibe_core::formats::manifest::{MANIFEST_NAME, Workspace};
use vibe_fs::may_be_planted;

use crate::error::InstallError;

/// The topmost directory whose `[workspace]` includes the manifest in `directory`, itself or by way
/// of a member that is a workspace; `directory` where none does.
///
/// # Errors
/// A manifest above cannot be read: whether it includes this one is not known. Or it may be
/// somebody else's trap.
pub(crate) fn root_of(directory: &Path) -> Result<PathBuf, InstallError> {
    let mut inside = vec![directory];
    for above in directory.ancestors().skip(1) {
        if workspace_at(above)?.is_some_and(|workspace| includes(&workspace, above, &inside)) {
            refuse_planted(above, directory)?;
            inside.push(above);
        }
    }
    Ok(inside.last().unwrap_or(&directory).to_path_buf())
}

/// A workspace decides what is installed and which scripts run: in a directory that everybody may
/// write, such as the one for temporary files, only one's own counts.
fn refuse_planted(above: &Path, directory: &Path) -> Result<(), InstallError> {
    let path = above.join(MANIFEST_NAME);
    match may_be_planted(&path, &directory.join(MANIFEST_NAME))? {
        true => Err(WorkspaceError::Foreign {
            path,
            directory: directory.to_path_buf(),
        }
        .into()),
        false => Ok(()),
    }
}

/// The nearest workspace above `directory`, which may or may not include it.
pub(crate) fn nearest_workspace(directory: &Path) -> Result<Option<PathBuf>, InstallError> {
    for above in directory.ancestors().skip(1) {
        if workspace_at(above)?.is_some() {
            return Ok(Some(above.to_path_buf()));
        }
    }
    Ok(None)
}

fn workspace_at(directory: &Path) -> Result<Option<Workspace>, InstallError> {
    let found = read_manifest(directory, "")?;
    Ok(found.and_then(|own| own.manifest.workspace))
}

fn includes(workspace: &Workspace, at: &Path, inside: &[&Path]) -> bool {
    inside.iter().any(|directory| {
        let names: Option<Vec<&str>> = directory
            .strip_prefix(at)
            .ok()
            .and_then(|below| below.iter().map(|name| name.to_str()).collect());
        let mut patterns = workspace.members.iter();
        names.is_some_and(|names| patterns.any(|one| one.matches(names.iter().copied())))
    })
}

#[cfg(test)]
mod tests {
    use super::testing::{PROJECT, tree, workspace};
    use super::*;

    /// The root of the manifest in `place`.
    #[track_caller]
    fn check_root(manifests: &[(&str, &str)], place: &str, expected: &str) {
        let directory = tree(manifests);
        let root = root_of(&directory.path().join(place)).unwrap();
        assert_eq!(root, directory.path().join(expected));
    }

    #[test]
    fn the_root_is_the_topmost_workspace_that_includes_a_manifest() {
        let (all, group) = (workspace("\"*\""), workspace("\"a\""));
        let manifests = [
            ("", &*all),
            ("group", &group),
            ("group/a", PROJECT),
            ("group/b", PROJECT),
        ];
        check_root(&manifests, "group/a", "");
        check_root(&manifests, "group", "");
        check_root(&manifests, "", "");
        check_root(&manifests, "group/b", "group/b");
        check_root(&[("x", &group), ("x/a", PROJECT)], "x/a", "x");
    }

    #[test]
    fn every_manifest_finds_itself_below_its_root() {
        let manifests = [
            ("", workspace("\"**/m\", \"w\"")),
            ("a/m", PROJECT.to_owned()),
            ("w", workspace("\"x/*\"")),
            ("w/x/y", PROJECT.to_owned()),
            ("w/x/y/m", PROJECT.to_owned()),
        ];
        let manifests: Vec<(&str, &str)> = manifests.iter().map(|(p, t)| (*p, &**t)).collect();
        let directory = tree(&manifests);
        for (place, _) in &manifests {
            let place = directory.path().join(place);
            let root = root_of(&place).unwrap();
            let found = super::manifests(&root, None).unwrap();
            assert!(
                found.iter().any(|own| own.directory(&root) == place),
                "{place:?}"
            );
        }
    }
}
