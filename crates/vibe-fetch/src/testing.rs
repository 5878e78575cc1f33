//! Packages for tests, the same in a directory and in a commit.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use vibe_core::git_url::RemoteUrl;
use vibe_core::limits::PackageLimits;
use vibe_core::{RelPath, Tree};
use vibe_git::{CommitId, Database};
use vibe_testkit::GitRepository;

use crate::error::FetchError;
use crate::git_tree::{GitPackage, SubmoduleFailure, SubmoduleSource, list_git};
use crate::listing::Listing;

/// Where the repositories of tests are said to be.
pub(crate) const ORIGIN: &str = "https://host/org/kit";

/// What an entry of a package is.
#[derive(Debug, Clone)]
pub(crate) enum Entry {
    File(Vec<u8>),
    Exec(Vec<u8>),
    Link(&'static str),
    Gitlink(String),
}

/// An entry, by the names on the way to it. In a git tree a name may be anything.
pub(crate) type Entries = Vec<(Vec<Vec<u8>>, Entry)>;

/// `a/b` is a file with its own path as content, `a -> b` a link, `*a` an executable file, and
/// `a=b` has the content `b`.
pub(crate) fn entries(lines: &[&'static str]) -> Entries {
    lines.iter().map(|line| entry(line)).collect()
}

fn entry(line: &'static str) -> (Vec<Vec<u8>>, Entry) {
    if let Some((path, target)) = line.split_once(" -> ") {
        return (names(path.as_bytes()), Entry::Link(target));
    }
    let (plain, exec) = match line.strip_prefix('*') {
        Some(plain) => (plain, true),
        None => (line, false),
    };
    let (path, content) = plain.split_once('=').unwrap_or((plain, plain));
    let entry = if exec { Entry::Exec } else { Entry::File };
    (names(path.as_bytes()), entry(content.into()))
}

pub(crate) fn names(path: &[u8]) -> Vec<Vec<u8>> {
    path.split(|byte| *byte == b'/')
        .map(<[u8]>::to_vec)
        .collect()
}

/// Writes `entries` into the directory `root`.
pub(crate) fn write_directory(root: &Path, entries: &Entries) {
    for (names, entry) in entries {
        let path: PathBuf = names.iter().map(|name| OsStr::from_bytes(name)).collect();
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        match entry {
            Entry::File(content) => fs::write(&path, content).unwrap(),
            Entry::Exec(content) => {
                fs::write(&path, content).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
            }
            Entry::Link(target) => symlink(target, &path).unwrap(),
            Entry::Gitlink(_) => panic!("a directory has no gitlinks"),
        }
    }
}

/// Writes `entries` as a tree in the order given, each directory where its first entry is, and
/// returns its id.
pub(crate) fn write_tree(repository: &GitRepository, entries: &Entries) -> String {
    let mut rows: Vec<(&str, Vec<u8>, String)> = Vec::new();
    let mut directories: Vec<(Vec<u8>, Entries)> = Vec::new();
    for (names, entry) in entries {
        let (name, rest) = names.split_first().unwrap();
        if !rest.is_empty() {
            let below = (rest.to_vec(), entry.clone());
            match directories.iter_mut().find(|(known, _)| known == name) {
                Some((_, entries)) => entries.push(below),
                None => directories.push((name.clone(), vec![below])),
            }
            continue;
        }
        rows.push(match entry {
            Entry::File(content) => ("100644", name.clone(), repository.blob(content)),
            Entry::Exec(content) => ("100755", name.clone(), repository.blob(content)),
            Entry::Link(target) => ("120000", name.clone(), repository.blob(target.as_bytes())),
            Entry::Gitlink(commit) => ("160000", name.clone(), commit.clone()),
        });
    }
    for (name, entries) in &directories {
        rows.push(("40000", name.clone(), write_tree(repository, entries)));
    }
    let rows: Vec<(&str, &[u8], &str)> = rows
        .iter()
        .map(|(mode, name, id)| (*mode, name.as_slice(), id.as_str()))
        .collect();
    repository.raw_tree(&rows)
}

/// Commits `entries`, alone, and returns the id of the commit.
pub(crate) fn commit(repository: &GitRepository, entries: &Entries) -> String {
    repository.commit_tree(&write_tree(repository, entries))
}

pub(crate) fn database(repository: &GitRepository) -> Arc<Database> {
    Arc::new(Database::open(repository.path()).unwrap())
}

/// Repositories by their addresses; what was asked for is remembered.
#[derive(Default)]
pub(crate) struct Submodules {
    pub(crate) by_url: BTreeMap<String, Arc<Database>>,
    pub(crate) opened: RefCell<Vec<String>>,
}

impl SubmoduleSource for Submodules {
    fn open(&self, url: &RemoteUrl, _commit: &CommitId) -> Result<Arc<Database>, SubmoduleFailure> {
        self.opened.borrow_mut().push(url.to_string());
        let found = self.by_url.get(url.as_str());
        found.cloned().ok_or_else(|| "nothing is there".into())
    }
}

/// Lists the package in `commit`, which has no submodules.
pub(crate) fn list_commit(
    repository: &GitRepository,
    commit: &str,
    subdir: Option<&str>,
    limits: &PackageLimits,
) -> Result<Listing, FetchError> {
    list_with(
        &database(repository),
        commit,
        subdir,
        limits,
        &Submodules::default(),
    )
}

/// Lists the package in `commit` with `submodules` to be had.
pub(crate) fn list_with(
    database: &Arc<Database>,
    commit: &str,
    subdir: Option<&str>,
    limits: &PackageLimits,
    submodules: &Submodules,
) -> Result<Listing, FetchError> {
    let subdir = subdir.map(|subdir| RelPath::new(subdir).unwrap());
    let package = GitPackage {
        database,
        commit: commit.parse().unwrap(),
        subdir: subdir.as_ref(),
        url: &RemoteUrl::parse(ORIGIN).unwrap(),
        submodules,
    };
    list_git(&package, limits)
}

/// The paths of a listing, an executable one with a star.
pub(crate) fn shown(listing: &Listing) -> Vec<String> {
    let star = |exec| if exec { "*" } else { "" };
    let files = listing.files.iter();
    files
        .map(|file| format!("{}{}", star(file.exec), file.path))
        .collect()
}

/// The tree of a listing.
pub(crate) fn tree(listing: &Listing) -> Tree {
    crate::hash_listing(listing).unwrap().tree
}
