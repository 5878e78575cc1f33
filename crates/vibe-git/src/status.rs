//! What differs between a work tree and the commit it should show.

use std::path::{Path, PathBuf};

use vibe_core::{Sha256Digest, Sha256Hasher};
use vibe_fs::{CopyError, EntryKind, FsError, hash_file, read_link, stat_of};

/// Paths that a status names; more are counted.
pub const STATUS_PATHS: usize = 1_000;

/// How a work tree, submodules included, differs from its commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Status {
    /// Files of the commit that are changed, missing or something else.
    pub tracked: Differences,
    /// What is there besides, less what the package says to ignore. A directory of which nothing is
    /// tracked counts as one.
    pub untracked: Differences,
}

/// A set of differing paths.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Differences {
    /// The first of the paths, with `/` between components, a directory with one at its end.
    pub paths: Vec<Vec<u8>>,
    /// How many there are.
    pub count: usize,
    /// A digest of the paths, how they differ and what is there now. Equal for equal differences.
    pub digest: Sha256Digest,
}

impl Status {
    /// Whether nothing differs.
    pub fn is_clean(&self) -> bool {
        self.tracked.is_empty() && self.untracked.is_empty()
    }
}

impl Differences {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// What [`digest`](Self::digest) is if there are none.
    pub fn no_digest() -> Sha256Digest {
        Sha256Digest::of(b"")
    }
}

/// Gathers the differences of a work tree and those of its submodules.
pub(crate) struct Collector {
    tracked: Gathered,
    untracked: Gathered,
}

#[derive(Default)]
struct Gathered {
    paths: Vec<Vec<u8>>,
    count: usize,
    hasher: Sha256Hasher,
}

impl Collector {
    pub(crate) fn new() -> Self {
        Self {
            tracked: Gathered::default(),
            untracked: Gathered::default(),
        }
    }

    /// Adds what `git status --porcelain=v1 -z` printed for the tree `root`, which is at `prefix`
    /// in the whole (empty, or with `/` at its end).
    pub(crate) fn add(
        &mut self,
        root: &Path,
        prefix: &[u8],
        printed: &[u8],
    ) -> Result<(), FsError> {
        let rows = printed.split(|byte| *byte == 0);
        for row in rows.filter(|row| row.len() > 3) {
            let (code, path) = (&row[..2], &row[3..]);
            let content = content_of(&root.join(native(path)))?;
            let whole = [prefix, path].concat();
            match code {
                b"??" => self.untracked.push(code, whole, &content),
                _ => self.tracked.push(code, whole, &content),
            }
        }
        Ok(())
    }

    /// Adds the submodule `path`, which is not there at all.
    pub(crate) fn add_missing(&mut self, path: &[u8]) {
        self.tracked.push(b" D", path.to_vec(), "absent");
    }

    pub(crate) fn finish(self) -> Status {
        Status {
            tracked: self.tracked.finish(),
            untracked: self.untracked.finish(),
        }
    }
}

impl Gathered {
    fn push(&mut self, code: &[u8], path: Vec<u8>, content: &str) {
        for part in [code, b" ", &path, b"\0", content.as_bytes(), b"\0"] {
            self.hasher.update(part);
        }
        self.count += 1;
        if self.paths.len() < STATUS_PATHS {
            self.paths.push(path);
        }
    }

    fn finish(self) -> Differences {
        Differences {
            paths: self.paths,
            count: self.count,
            digest: self.hasher.finish(),
        }
    }
}

/// What is at `path` now, in words that tell contents apart.
fn content_of(path: &Path) -> Result<String, FsError> {
    let Some(stat) = stat_of(path)? else {
        return Ok("absent".to_owned());
    };
    Ok(match stat.kind {
        EntryKind::File => match hash_file(path) {
            Ok(hashed) => format!("file {} {}", hashed.stat.exec, hashed.digest),
            Err(CopyError::Fs(error)) => return Err(error),
            Err(_) => "changing".to_owned(),
        },
        EntryKind::Symlink => {
            let target = read_link(path)?;
            let target = target.as_os_str().as_encoded_bytes();
            format!("link {}", Sha256Digest::of(target))
        }
        EntryKind::Directory => "directory".to_owned(),
        EntryKind::Other => "other".to_owned(),
    })
}

#[cfg(unix)]
fn native(path: &[u8]) -> PathBuf {
    use std::os::unix::ffi::OsStrExt as _;
    std::ffi::OsStr::from_bytes(path).into()
}

#[cfg(not(unix))]
fn native(path: &[u8]) -> PathBuf {
    String::from_utf8_lossy(path).into_owned().into()
}
