//! What several tests of this crate need.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::fs::{self, set_permissions};
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use vibe_core::{RelPath, TreeId};
use vibe_testkit::set_mode;

use crate::{Store, StoredTree};

/// The boot that a world's stores are under, unless said otherwise.
pub(crate) const BOOT: &str = "boot-1";
/// A path, its content and its exec bit.
pub(crate) type File<'a> = (&'a str, &'a str, bool);
/// A package with what a package can have.
pub(crate) const PACKAGE: [File<'static>; 4] = [
    ("README.md", "read me", false),
    ("hooks/run.sh", "echo", true),
    ("hooks/same", "echo", false),
    ("a/b/c", "", false),
];

pub(crate) fn relative(text: &str) -> RelPath {
    RelPath::new(text).unwrap()
}

pub(crate) struct World {
    directory: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        Self { directory }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.directory.path().join("data/store")
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.root().join("v1").join(path)
    }

    /// Another run with this store.
    pub(crate) fn store(&self) -> Store {
        self.store_under(Some(BOOT))
    }

    pub(crate) fn store_under(&self, boot: Option<&str>) -> Store {
        Store::under_boot(self.root(), boot)
    }

    /// What lies in a directory of ours; nothing if it is absent.
    pub(crate) fn names(&self, path: &str) -> Vec<String> {
        let Ok(entries) = fs::read_dir(self.at(path)) else {
            return Vec::new();
        };
        let name = |entry: fs::DirEntry| entry.file_name().into_string().unwrap();
        entries.map(|entry| name(entry.unwrap())).collect()
    }

    pub(crate) fn file(&self, tree: TreeId, path: &str) -> PathBuf {
        self.store().layout().tree(tree).join("files").join(path)
    }

    /// Every path below the root with kind and permissions, size and time.
    pub(crate) fn snapshot(&self) -> BTreeMap<PathBuf, (u32, u64, i64, i64)> {
        let mut found = BTreeMap::new();
        look(&self.root(), &mut found);
        found
    }
}

fn look(path: &Path, found: &mut BTreeMap<PathBuf, (u32, u64, i64, i64)>) {
    let metadata = path.symlink_metadata().unwrap();
    let times = (metadata.mtime(), metadata.mtime_nsec());
    let facts = (metadata.mode(), metadata.size(), times.0, times.1);
    found.insert(path.to_path_buf(), facts);
    if metadata.is_dir() {
        for entry in fs::read_dir(path).unwrap() {
            look(&entry.unwrap().path(), found);
        }
    }
}

pub(crate) fn put(store: &Store, files: &[File]) -> StoredTree {
    let staged = store.stage().unwrap();
    for (path, content, exec) in files {
        let mut reader = content.as_bytes();
        staged
            .add(&relative(path), &mut reader, *exec, 1 << 20)
            .unwrap();
    }
    staged.finish().unwrap()
}

/// Overwrites the store file `path` as a program does that does not care, and gives it back its
/// mode.
pub(crate) fn overwrite(path: &Path, content: &str) {
    let mode = path.symlink_metadata().unwrap().permissions();
    set_mode(path, 0o644);
    fs::write(path, content).unwrap();
    set_permissions(path, mode).unwrap();
}

/// Like [`overwrite`], hidden from a look at size and time.
pub(crate) fn overwrite_hidden(path: &Path, content: &str) {
    overwrite(path, content);
    set_seconds(path, crate::FILE_MTIME_SECONDS);
}

pub(crate) fn set_seconds(path: &Path, seconds: i64) {
    let time = filetime::FileTime::from_unix_time(seconds, 0);
    filetime::set_symlink_file_times(path, time, time).unwrap();
}

/// Makes `path` as if it had been left alone for `age`.
pub(crate) fn make_old(path: &Path, age: Duration) {
    let time = filetime::FileTime::from_system_time(SystemTime::now() - age);
    filetime::set_symlink_file_times(path, time, time).unwrap();
}

/// Takes from every directory below `root` the permission to write, or gives it back.
pub(crate) fn set_directories(root: &Path, mode: u32) {
    set_mode(root, 0o755);
    for entry in fs::read_dir(root).unwrap() {
        let path = entry.unwrap().path();
        if path.symlink_metadata().unwrap().is_dir() {
            set_directories(&path, mode);
        }
    }
    set_mode(root, mode);
}
