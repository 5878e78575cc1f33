//! Git repositories that a test makes with the git program.
//!
//! Identity, dates and settings are fixed, and nothing of the machine's or the user's
//! configuration acts: the same calls make the same commit ids everywhere. What the everyday
//! commands refuse to record (a tree with `..` or `.git` in it, or with the same name twice) is
//! written as an object, byte by byte.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::{PackageBuilder, clean_command, done, output_of, set_exec, write_file};

/// The settings of every fixture, in place of the user's. Nothing is packed in the background, no
/// file is synced, and a repository may belong to another user or be a submodule from a path.
const SETTINGS: &str = "\
[user]
    name = Fixture
    email = fixture@example.invalid
[core]
    autocrlf = false
    fsync = none
    hooksPath = /dev/null
[gc]
    auto = 0
[maintenance]
    auto = false
[protocol \"file\"]
    allow = always
[safe]
    directory = *
";

/// When everything was written: 2024-01-01, in UTC.
const DATE: &str = "1704067200 +0000";

/// The git program, with a home of its own.
#[derive(Debug)]
pub struct GitProgram {
    program: PathBuf,
    home: tempfile::TempDir,
}

impl GitProgram {
    /// The git program of this machine, by its absolute path.
    #[expect(
        clippy::new_without_default,
        reason = "it creates a directory, which a default should not"
    )]
    pub fn new() -> Self {
        let program = done("looking for", Path::new("git"), which::which("git"));
        let place = Path::new("a temporary directory");
        let home = done("creating", place, tempfile::tempdir());
        write_file(&home.path().join(".gitconfig"), SETTINGS.as_bytes());
        Self { program, home }
    }

    /// `git <arguments>` in `directory`, not started: for a test that adds to its environment.
    pub fn command(&self, directory: &Path, arguments: &[impl AsRef<OsStr>]) -> Command {
        let mut command = clean_command(&self.program, directory);
        command
            .args(arguments)
            .env("HOME", self.home.path())
            .env("XDG_CONFIG_HOME", self.home.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_AUTHOR_DATE", DATE)
            .env("GIT_COMMITTER_DATE", DATE)
            .env("LC_ALL", "C");
        command
    }

    /// Runs `git <arguments>` in `directory`: its standard output without the line end. Panics,
    /// with its standard error, if it fails.
    pub fn run(&self, directory: &Path, arguments: &[impl AsRef<OsStr>]) -> String {
        output_of(&mut self.command(directory, arguments), b"")
    }
}

/// Which commits a server hands out to a client of the old protocol, which asks by commit id. In
/// protocol 2, every server of git's hands out every commit it has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wants {
    /// Those that a branch or a tag names.
    Tips,
    /// Every one that is there.
    AnyCommit,
}

/// A repository with a work tree, on branch `main`.
#[derive(Debug)]
pub struct GitRepository {
    git: GitProgram,
    path: PathBuf,
}

impl GitRepository {
    /// Makes an empty repository in `path`, which need not exist.
    pub fn new(path: &Path) -> Self {
        done("creating", path, std::fs::create_dir_all(path));
        let repository = Self {
            git: GitProgram::new(),
            path: done("resolving", path, std::fs::canonicalize(path)),
        };
        repository.git(&["init", "--quiet", "--template=", "--initial-branch=main"]);
        repository
    }

    /// The work tree, by its canonical path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The repository as a `file://` URL.
    pub fn file_url(&self) -> String {
        format!("file://{}", self.path.display())
    }

    /// Runs `git <arguments>` in the work tree: its standard output without the line end.
    pub fn git(&self, arguments: &[&str]) -> String {
        self.git.run(&self.path, arguments)
    }

    /// Writes a file of the work tree, mode 0755 if `exec`, else 0644.
    pub fn write(&self, path: &str, bytes: impl AsRef<[u8]>, exec: bool) {
        let path = self.path.join(path);
        write_file(&path, bytes.as_ref());
        set_exec(&path, exec);
    }

    /// Writes a package to the work tree, beside what is there.
    pub fn package(&self, package: &PackageBuilder) {
        package.write(&self.path);
    }

    /// Makes a symbolic link in the work tree.
    #[cfg(unix)]
    pub fn symlink(&self, path: &str, target: &str) {
        let path = self.path.join(path);
        if let Some(parent) = path.parent() {
            done("creating", parent, std::fs::create_dir_all(parent));
        }
        done("linking", &path, std::os::unix::fs::symlink(target, &path));
    }

    /// Commits the work tree as it is, ignored files too, even if nothing changed. Returns the id
    /// of the commit. The same tree with the same message on the same parent has the same id.
    pub fn commit(&self, message: &str) -> String {
        self.git(&["add", "--all", "--force", "."]);
        self.git(&["commit", "--quiet", "--allow-empty", "--message", message]);
        self.head()
    }

    /// The id of the commit that is checked out.
    pub fn head(&self) -> String {
        self.git(&["rev-parse", "--verify", "HEAD"])
    }

    /// Makes a tag, or moves it.
    pub fn tag(&self, name: &str) {
        self.git(&["tag", "--force", name]);
    }

    /// Makes a tag that is an object of its own, or moves it. Returns the id of that object.
    pub fn annotated_tag(&self, name: &str) -> String {
        self.git(&["tag", "--force", "--annotate", "--message", name, name]);
        self.git(&["rev-parse", &format!("refs/tags/{name}")])
    }

    /// Makes a branch here and switches to it.
    pub fn branch(&self, name: &str) {
        self.git(&["switch", "--quiet", "--create", name]);
    }

    /// Switches to a branch that is there.
    pub fn switch(&self, name: &str) {
        self.git(&["switch", "--quiet", name]);
    }

    /// Makes a branch at `commit` or moves it there, wherever it was. If it is checked out, the
    /// work tree and the index stay as they are.
    pub fn force_branch(&self, name: &str, commit: &str) {
        self.git(&["update-ref", &format!("refs/heads/{name}"), commit]);
    }

    /// Makes `path` a bare copy with the same branches, tags and default branch, or brings the one
    /// that is there up to date.
    pub fn bare_at(&self, path: &Path, wants: Wants) {
        done("creating", path, std::fs::create_dir_all(path));
        let git = |arguments: &[&str]| self.git.run(path, arguments);
        git(&["init", "--quiet", "--bare", "--template="]);
        let any = (wants == Wants::AnyCommit).to_string();
        git(&["config", "uploadpack.allowAnySHA1InWant", &any]);
        git(&["symbolic-ref", "HEAD", &self.git(&["symbolic-ref", "HEAD"])]);
        let target = done("naming", path, path.to_str().ok_or("it is not UTF-8"));
        self.git(&["push", "--quiet", "--mirror", "--force", target]);
    }

    /// Records that `commit` of another repository belongs at `path`, with an empty directory
    /// there.
    pub fn add_gitlink(&self, path: &str, commit: &str) {
        let directory = self.path.join(path);
        done("creating", &directory, std::fs::create_dir_all(&directory));
        let entry = format!("160000,{commit},{path}");
        self.git(&["update-index", "--add", "--cacheinfo", &entry]);
    }

    /// Writes `.gitmodules`.
    pub fn gitmodules(&self, text: &str) {
        self.write(".gitmodules", text, false);
    }

    /// Adds a submodule, named by its path, to `.gitmodules` and records `commit` for it.
    pub fn submodule(&self, path: &str, url: &str, commit: &str) {
        let file = self.path.join(".gitmodules");
        let before = match file.exists() {
            true => done("reading", &file, std::fs::read_to_string(&file)),
            false => String::new(),
        };
        self.gitmodules(&format!(
            "{before}[submodule \"{path}\"]\n\tpath = {path}\n\turl = {url}\n"
        ));
        self.add_gitlink(path, commit);
    }

    /// Writes a blob and returns its id.
    pub fn blob(&self, bytes: &[u8]) -> String {
        self.object("blob", bytes)
    }

    /// Writes a tree with these entries in this order, unchecked, and returns its id. An entry is
    /// its mode (`100644`, `100755`, `120000`, `40000`, `160000`), its name and an object id.
    pub fn raw_tree(&self, entries: &[(&str, &[u8], &str)]) -> String {
        let mut bytes = Vec::new();
        for (mode, name, id) in entries {
            bytes.extend_from_slice(mode.as_bytes());
            bytes.push(b' ');
            bytes.extend_from_slice(name);
            bytes.push(0);
            bytes.extend_from_slice(&id_bytes(id));
        }
        self.object("tree", &bytes)
    }

    /// Commits `tree` without a parent and returns the id of the commit, which no branch names.
    pub fn commit_tree(&self, tree: &str) -> String {
        self.git(&["commit-tree", "-m", "raw tree", tree])
    }

    fn object(&self, kind: &str, bytes: &[u8]) -> String {
        let arguments = ["hash-object", "-w", "-t", kind, "--literally", "--stdin"];
        output_of(&mut self.git.command(&self.path, &arguments), bytes)
    }
}

/// The bytes of an object id.
fn id_bytes(id: &str) -> Vec<u8> {
    let byte = |digits: &[u8]| {
        let digits = std::str::from_utf8(digits).map_err(|error| error.to_string());
        digits.and_then(|it| u8::from_str_radix(it, 16).map_err(|error| error.to_string()))
    };
    let bytes: Result<Vec<u8>, String> = id.as_bytes().chunks(2).map(byte).collect();
    done("reading the object id", Path::new(id), bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{EntryKind, TreeSnapshot};

    fn repository() -> (tempfile::TempDir, GitRepository) {
        let directory = tempfile::tempdir().unwrap();
        let repository = GitRepository::new(&directory.path().join("source"));
        (directory, repository)
    }

    #[test]
    fn the_same_calls_make_the_same_commit() {
        let commit = || {
            let (_directory, repository) = repository();
            repository.package(&PackageBuilder::new("org.example/lint", "1.0.0"));
            repository.write("tools/run", "#!/bin/sh\n", true);
            repository.commit("first")
        };
        let id = commit();
        assert_eq!((commit(), id.len()), (id.clone(), 40));
    }

    #[test]
    fn what_is_written_is_committed_with_its_mode() {
        let (_directory, repository) = repository();
        repository.write(".gitignore", "*\n", false);
        repository.write("tools/run", "#!/bin/sh\n", true);
        #[cfg(unix)]
        repository.symlink("links/run", "../tools/run");
        repository.add_gitlink("parts/core", &"ab".repeat(20));
        repository.commit("first");
        repository.commit("second keeps the submodule");
        let tree = repository.git(&["ls-tree", "-r", "--format=%(objectmode) %(path)", "HEAD"]);
        let mut expected = vec!["100644 .gitignore", "160000 parts/core", "100755 tools/run"];
        if cfg!(unix) {
            expected.insert(1, "120000 links/run");
        }
        assert_eq!(tree.lines().collect::<Vec<_>>(), expected);
    }

    #[test]
    fn branches_and_tags_name_the_commits_they_were_given() {
        let (_directory, repository) = repository();
        let first = repository.commit("first");
        repository.tag("v1");
        repository.branch("next");
        let second = repository.commit("second");
        let tag = repository.annotated_tag("v2");
        repository.switch("main");
        assert_eq!(repository.head(), first);
        repository.force_branch("next", &first);
        repository.force_branch("kept", &second);
        let refs = repository.git(&["for-each-ref", "--format=%(objectname) %(refname)"]);
        let expected = format!(
            "{second} refs/heads/kept\n{first} refs/heads/main\n{first} refs/heads/next\n\
             {first} refs/tags/v1\n{tag} refs/tags/v2"
        );
        assert_eq!(refs, expected);
        assert_eq!(repository.git(&["rev-parse", "v2^{commit}"]), second);
    }

    #[test]
    fn a_bare_copy_follows_when_it_is_made_again() {
        let (directory, repository) = repository();
        let bare = directory.path().join("served/source.git");
        let git = GitProgram::new();
        for (message, wants) in [("first", Wants::Tips), ("second", Wants::AnyCommit)] {
            let commit = repository.commit(message);
            repository.bare_at(&bare, wants);
            assert_eq!(git.run(&bare, &["rev-parse", "HEAD"]), commit);
            let any = git.run(&bare, &["config", "uploadpack.allowAnySHA1InWant"]);
            assert_eq!(any, (wants == Wants::AnyCommit).to_string());
        }
    }

    #[test]
    fn a_submodule_is_cloned_with_its_parent() {
        let (directory, repository) = repository();
        let part = GitRepository::new(&directory.path().join("part"));
        part.write("part.md", "part\n", false);
        let commit = part.commit("part");
        repository.submodule("parts/one", &part.file_url(), &commit);
        repository.submodule("parts/two", "../part", &commit);
        repository.commit("parent");
        let url = repository.file_url();
        let arguments = ["clone", "--quiet", "--recurse-submodules", &url, "clone"];
        GitProgram::new().run(directory.path(), &arguments);
        let clone = TreeSnapshot::of(&directory.path().join("clone"));
        for path in ["parts/one/part.md", "parts/two/part.md"] {
            assert_eq!(clone.entries[path].kind, EntryKind::File);
        }
    }

    #[test]
    fn a_tree_that_git_refuses_to_check_out_can_be_committed() {
        let (_directory, repository) = repository();
        let blob = repository.blob(b"text");
        let inner = repository.raw_tree(&[("100644", b"escaped", &blob)]);
        let names: [&[u8]; 5] = [b"..", b".git", b"a/b", b"twice", b"twice"];
        let mut entries: Vec<(&str, &[u8], &str)> =
            names.map(|name| ("100644", name, blob.as_str())).to_vec();
        entries[0] = ("40000", b"..", &inner);
        let commit = repository.commit_tree(&repository.raw_tree(&entries));
        repository.force_branch("main", &commit);
        let tree = repository.git(&["ls-tree", "-z", "--name-only", "main"]);
        assert_eq!(tree, "..\0.git\0a/b\0twice\0twice\0");
        let inside = repository.git(&["ls-tree", &inner]);
        assert_eq!(inside, format!("100644 blob {blob}\tescaped"));
    }
}
