//! Workspaces on disk, for tests.

use std::fs;

use vibe_core::formats::manifest::MANIFEST_NAME;

/// A directory with these manifests: its place, and the text.
pub(super) fn tree(manifests: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (place, text) in manifests {
        let place = directory.path().join(place);
        fs::create_dir_all(&place).unwrap();
        fs::write(place.join(MANIFEST_NAME), text).unwrap();
    }
    directory
}

/// The manifest of a workspace.
pub(super) fn workspace(members: &str) -> String {
    format!("[workspace]\nmembers = [{members}]\n")
}

/// That of a project.
pub(super) const PROJECT: &str = "[project]\nname = \"p\"\n";
