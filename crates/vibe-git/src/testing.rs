//! Repositories made by the git program in a directory of their own, with nobody's configuration.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::object::CommitId;

/// A directory with a home and repositories; gone when dropped.
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
        self.directory.path().join(name)
    }

    /// An environment in which programs find nothing of this machine's settings.
    #[expect(clippy::disallowed_methods, reason = "tests find git where it is")]
    pub(crate) fn environment(&self) -> BTreeMap<OsString, OsString> {
        let path = std::env::var_os("PATH").unwrap();
        BTreeMap::from([
            ("PATH".into(), path),
            ("HOME".into(), self.path("home").into()),
            ("GIT_CONFIG_NOSYSTEM".into(), "1".into()),
        ])
    }

    /// The git program with nothing of this machine's settings in it.
    #[expect(
        clippy::disallowed_methods,
        reason = "tests make repositories with git itself"
    )]
    pub(crate) fn command(&self) -> Command {
        let mut command = Command::new("git");
        command
            .env_clear()
            .envs(self.environment())
            .env("GIT_AUTHOR_NAME", "A")
            .env("GIT_AUTHOR_EMAIL", "a@example.org")
            .env("GIT_AUTHOR_DATE", "2024-01-01T00:00:00Z")
            .env("GIT_COMMITTER_NAME", "A")
            .env("GIT_COMMITTER_EMAIL", "a@example.org")
            .env("GIT_COMMITTER_DATE", "2024-01-01T00:00:00Z")
            .current_dir(self.directory.path());
        command
    }

    /// What `git ARGUMENTS` prints, without the newline at its end.
    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.git_with(arguments, b"")
    }

    /// Like [`World::git`], with something to read.
    pub(crate) fn git_with(&self, arguments: &[&str], input: &[u8]) -> String {
        let mut child = self
            .command()
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        child.stdin.take().unwrap().write_all(input).unwrap();
        let output = child.wait_with_output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "git {arguments:?}: {said}");
        let text = String::from_utf8(output.stdout).unwrap();
        text.trim_end_matches('\n').to_owned()
    }

    /// A repository with a work tree, on the branch `main`.
    pub(crate) fn repository(&self, name: &str) -> Repository<'_> {
        self.git(&["init", "--quiet", "--initial-branch=main", name]);
        Repository {
            world: self,
            name: name.to_owned(),
        }
    }
}

/// A repository of a [`World`].
pub(crate) struct Repository<'a> {
    world: &'a World,
    name: String,
}

impl Repository<'_> {
    pub(crate) fn path(&self) -> PathBuf {
        self.world.path(&self.name)
    }

    pub(crate) fn git(&self, arguments: &[&str]) -> String {
        self.git_with(arguments, b"")
    }

    pub(crate) fn git_with(&self, arguments: &[&str], input: &[u8]) -> String {
        let all = [&["-C", self.name.as_str()], arguments].concat();
        self.world.git_with(&all, input)
    }

    /// Writes files and commits them.
    pub(crate) fn commit(&self, files: &[(&str, &str)]) -> CommitId {
        for (path, content) in files {
            let path = self.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, content).unwrap();
        }
        self.git(&["add", "--all"]);
        self.git(&["commit", "--quiet", "--allow-empty", "-m", "work"]);
        self.id("HEAD")
    }

    pub(crate) fn id(&self, revision: &str) -> CommitId {
        self.git(&["rev-parse", &format!("{revision}^{{commit}}")])
            .parse()
            .unwrap()
    }

    pub(crate) fn blob(&self, content: &[u8]) -> String {
        self.git_with(&["hash-object", "-w", "--stdin"], content)
    }

    /// A tree made of `(mode, type, id, name)`, as git itself would never write it.
    pub(crate) fn tree(&self, rows: &[(&str, &str, &str, &[u8])]) -> String {
        let mut input = Vec::new();
        for (mode, kind, id, name) in rows {
            input.extend_from_slice(format!("{mode} {kind} {id}\t").as_bytes());
            input.extend_from_slice(name);
            input.push(0);
        }
        self.git_with(&["mktree", "-z", "--missing"], &input)
    }

    pub(crate) fn commit_tree(&self, tree: &str) -> CommitId {
        self.git(&["commit-tree", "-m", "work", tree])
            .parse()
            .unwrap()
    }
}

/// The names and bytes of all files below `directory`, `.git` included.
pub(crate) fn snapshot(directory: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut found = Vec::new();
    let mut pending = vec![directory.to_path_buf()];
    while let Some(directory) = pending.pop() {
        for entry in std::fs::read_dir(directory).unwrap() {
            let entry = entry.unwrap();
            match entry.file_type().unwrap().is_dir() {
                true => pending.push(entry.path()),
                false => found.push((entry.path(), std::fs::read(entry.path()).unwrap())),
            }
        }
    }
    found.sort();
    found
}
