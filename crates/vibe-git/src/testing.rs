//! A directory with repositories, and an environment in which programs find nothing of this
//! machine's settings.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use vibe_testkit::GitRepository;

use crate::object::CommitId;

/// A directory with a home in it; gone when dropped.
pub(crate) struct World {
    directory: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        std::fs::create_dir(directory.path().join("home")).unwrap();
        Self { directory }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        let root = self.directory.path().canonicalize().unwrap();
        root.join(name)
    }

    #[expect(clippy::disallowed_methods, reason = "tests find git where it is")]
    pub(crate) fn environment(&self) -> BTreeMap<OsString, OsString> {
        let path = std::env::var_os("PATH").unwrap();
        BTreeMap::from([
            ("PATH".into(), path),
            ("HOME".into(), self.path("home").into()),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
        ])
    }

    /// Writes the user's git configuration.
    pub(crate) fn configure(&self, text: &str) {
        std::fs::write(self.path("home/.gitconfig"), text).unwrap();
    }

    /// An empty repository.
    pub(crate) fn repository(&self, name: &str) -> Repository {
        Repository(GitRepository::new(&self.path(name)))
    }
}

/// A repository of a [`World`].
pub(crate) struct Repository(GitRepository);

impl Repository {
    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.0.git(arguments)
    }

    /// Writes files and commits them.
    pub(crate) fn commit(&self, files: &[(&str, &str)]) -> CommitId {
        for (path, content) in files {
            self.0.write(path, content, false);
        }
        self.0.commit("work").parse().unwrap()
    }

    pub(crate) fn blob(&self, content: &[u8]) -> String {
        self.0.blob(content)
    }

    /// A tree of `(mode, name, id)`, as git itself would not write it.
    pub(crate) fn tree(&self, rows: &[(&str, &[u8], &str)]) -> String {
        self.0.raw_tree(rows)
    }

    pub(crate) fn commit_tree(&self, tree: &str) -> CommitId {
        self.0.commit_tree(tree).parse().unwrap()
    }
}
