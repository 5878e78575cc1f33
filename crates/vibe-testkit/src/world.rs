//! A home, a project and a registry in a temporary directory.

use std::path::{Path, PathBuf};

use crate::{TreeSnapshot, done, write_file};

/// A temporary directory with an empty `home/`, `project/` and `registry/`; removed when dropped.
#[derive(Debug)]
pub struct World {
    directory: tempfile::TempDir,
    root: PathBuf,
}

impl World {
    /// A world with nothing in it.
    #[expect(
        clippy::new_without_default,
        reason = "it creates directories, which a default should not"
    )]
    pub fn new() -> Self {
        let place = Path::new("a temporary directory");
        let directory = done("creating", place, tempfile::tempdir());
        // Where the temporary directory lies behind a link, programs report the path without it.
        let canonical = std::fs::canonicalize(directory.path());
        let root = done("resolving", directory.path(), canonical);
        let world = Self { directory, root };
        for path in [world.home(), world.project(), world.registry()] {
            done("creating", &path, std::fs::create_dir(&path));
        }
        world
    }

    /// The directory that holds everything, by its canonical path.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// `home/`: what `HOME` and `VIBE_PKG_HOME` may point at.
    pub fn home(&self) -> PathBuf {
        self.root.join("home")
    }

    /// `project/`: the consumer.
    pub fn project(&self) -> PathBuf {
        self.root.join("project")
    }

    /// `registry/`: a directory registry; `../registry` from the project's manifest.
    pub fn registry(&self) -> PathBuf {
        self.root.join("registry")
    }

    /// Writes `text` to `relative` in the project.
    pub fn write(&self, relative: &str, text: &str) {
        write_file(&self.project().join(relative), text.as_bytes());
    }

    /// The text of `relative` in the project.
    pub fn read(&self, relative: &str) -> String {
        let path = self.project().join(relative);
        done("reading", &path, std::fs::read_to_string(&path))
    }

    /// Writes the project's `vibe.toml`: this world's registry, and `requires` as id and
    /// constraint.
    pub fn require(&self, requires: &[(&str, &str)]) {
        let mut text = "[project]\nname = \"world\"\n\n[requires.packages]\n".to_owned();
        for (id, constraint) in requires {
            text.push_str(&format!("\"{id}\" = \"{constraint}\"\n"));
        }
        text.push_str("\n[[registry]]\nname = \"local\"\nurl = \"../registry\"\n");
        self.write("vibe.toml", &text);
    }

    /// The project as it is now.
    pub fn snapshot(&self) -> TreeSnapshot {
        TreeSnapshot::of(&self.project())
    }

    /// Removes the world now and fails if that is not possible, which [`Drop`] would not say.
    pub fn close(self) {
        let removed = self.directory.close();
        done("removing", &self.root, removed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn worlds_are_apart_and_leave_nothing_behind() {
        let (one, other) = (World::new(), World::new());
        assert_ne!(one.root(), other.root());
        one.write("notes/a.txt", "text");
        assert_eq!(one.read("notes/a.txt"), "text");
        assert_eq!(other.snapshot().entries.len(), 0);
        assert!(one.home().is_dir() && one.registry().is_dir());
        let root = one.root().to_owned();
        one.close();
        assert!(!root.exists());
    }

    #[test]
    fn a_required_package_is_in_the_manifest() {
        let world = World::new();
        world.require(&[("org.example/lint", "^1")]);
        let manifest: toml::Table = world.read("vibe.toml").parse().unwrap();
        assert_eq!(
            manifest["requires"]["packages"]["org.example/lint"].as_str(),
            Some("^1")
        );
        assert_eq!(manifest["registry"][0]["url"].as_str(), Some("../registry"));
    }
}
