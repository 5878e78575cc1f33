//! Looking at a package's directory tree: what ships, what each entry is, nothing followed and no
//! content read.

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};

use vibe_core::RelPath;
use vibe_core::limits::PackageLimits;
use vibe_core::relative_path::{PathError, PathRule};
use vibe_core::text::escape;
use vibe_fs::{EntryKind, RawEntry, Stat, list_dir, read_link};

use crate::error::FetchError;
use crate::ignore_file::{IgnoreFile, Verdict};

/// Bits beyond these are not installed.
const SHIPPED_PERMISSIONS: u32 = 0o755;

/// What kind of source a directory is; it decides what ships.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// A published package: any spelling of `.git` is refused.
    Published,
    /// Somebody's working directory: `.git` is skipped and `.gitignore` honoured.
    PathSource,
}

/// Something odd that is no reason to refuse a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListingNote {
    /// A file has permissions that are not installed.
    Permissions {
        /// The file.
        path: RelPath,
        /// Its twelve permission bits.
        permissions: u32,
    },
    /// A line of an ignore file is no pattern and had no effect.
    NoPattern {
        /// The ignore file, in the package, escaped.
        file: String,
        /// Counted from 1.
        line: usize,
    },
}

impl fmt::Display for ListingNote {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListingNote::Permissions { path, permissions } => {
                let installed = if permissions & 0o100 == 0 {
                    0o644
                } else {
                    0o755
                };
                write!(
                    out,
                    "`{path}` has mode {permissions:04o}; it is installed with {installed:04o}"
                )
            }
            ListingNote::NoPattern { file, line } => {
                write!(
                    out,
                    "line {line} of `{file}` is no pattern and has no effect"
                )
            }
        }
    }
}

/// An entry that ships.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    File(Stat),
    Directory,
    /// A link and what it says.
    Link(PathBuf),
}

/// Every entry that ships, by its path; every directory above an entry is there too.
pub(crate) type Nodes = BTreeMap<RelPath, Node>;

/// Looks at the package in `root`.
pub(crate) fn scan(
    root: &Path,
    kind: SourceKind,
    limits: &PackageLimits,
) -> Result<(Nodes, Vec<ListingNote>), FetchError> {
    let mut scanner = Scanner {
        root,
        kind,
        limits,
        vibeignore: None,
        gitignores: Vec::new(),
        nodes: Nodes::new(),
        notes: Vec::new(),
        entries: EntryCount::new(limits.package_entries),
    };
    scanner.vibeignore = scanner.read_ignore_file(Path::new(""), ".vibeignore")?;
    scanner.directory(Path::new(""))?;
    Ok((scanner.nodes, scanner.notes))
}

/// Counts files, and apart from them everything else, each against the limit: a package may hold
/// as many files as the limit says whatever directories they need, yet no end of directories.
#[derive(Debug)]
pub(crate) struct EntryCount {
    files: usize,
    others: usize,
    limit: usize,
}

impl EntryCount {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            files: 0,
            others: 0,
            limit,
        }
    }

    pub(crate) fn add(&mut self, node: &Node) -> Result<(), FetchError> {
        let count = match node {
            Node::File(_) => &mut self.files,
            Node::Directory | Node::Link(_) => &mut self.others,
        };
        *count += 1;
        if *count > self.limit {
            return Err(FetchError::TooManyEntries {
                entries: *count,
                limit: self.limit,
            });
        }
        Ok(())
    }
}

struct Scanner<'a> {
    root: &'a Path,
    kind: SourceKind,
    limits: &'a PackageLimits,
    vibeignore: Option<IgnoreFile>,
    /// Those of the directories from the root to the one being looked at.
    gitignores: Vec<IgnoreFile>,
    nodes: Nodes,
    notes: Vec<ListingNote>,
    entries: EntryCount,
}

impl Scanner<'_> {
    /// Goes at most as deep as a path in a package may be: a deeper one is refused by its name.
    fn directory(&mut self, relative: &Path) -> Result<(), FetchError> {
        let gitignore = match self.kind {
            SourceKind::PathSource => self.read_ignore_file(relative, ".gitignore")?,
            SourceKind::Published => None,
        };
        let outer = self.gitignores.len();
        self.gitignores.extend(gitignore);
        for mut entry in list_dir(&self.root.join(relative))? {
            entry.relative = relative.join(&entry.relative);
            if self.ships(&entry) {
                self.entry(&entry)?;
            }
        }
        self.gitignores.truncate(outer);
        Ok(())
    }

    fn ships(&self, entry: &RawEntry) -> bool {
        let path = entry.relative.as_path();
        let is_directory = entry.stat.kind == EntryKind::Directory;
        if is_directory && path == Path::new("vibedeps") {
            return false;
        }
        let is_git = path.file_name().is_some_and(|name| name == ".git");
        if is_git && self.kind == SourceKind::PathSource {
            return false;
        }
        let by_git = self
            .gitignores
            .iter()
            .rev()
            .map(|file| file.verdict(path, is_directory))
            .find(|verdict| *verdict != Verdict::Silent);
        let by_vibe = self
            .vibeignore
            .as_ref()
            .map(|file| file.verdict(path, is_directory));
        by_git != Some(Verdict::Ignored) && by_vibe != Some(Verdict::Ignored)
    }

    fn entry(&mut self, entry: &RawEntry) -> Result<(), FetchError> {
        let path = package_path(entry)?;
        let node = match entry.stat.kind {
            EntryKind::File => self.file(&path, entry)?,
            EntryKind::Directory => Node::Directory,
            EntryKind::Symlink => Node::Link(read_link(&self.root.join(&entry.relative))?),
            kind @ EntryKind::Other => return Err(FetchError::Special { path, kind }),
        };
        self.entries.add(&node)?;
        let is_directory = node == Node::Directory;
        self.nodes.insert(path, node);
        match is_directory {
            true => self.directory(&entry.relative),
            false => Ok(()),
        }
    }

    fn file(&mut self, path: &RelPath, entry: &RawEntry) -> Result<Node, FetchError> {
        let limit_bytes = self.limits.file_bytes;
        if entry.stat.size > limit_bytes {
            return Err(FetchError::FileTooLarge {
                path: path.clone(),
                bytes: entry.stat.size,
                limit_bytes,
            });
        }
        if entry.permissions & !SHIPPED_PERMISSIONS != 0 {
            self.notes.push(ListingNote::Permissions {
                path: path.clone(),
                permissions: entry.permissions,
            });
        }
        Ok(Node::File(entry.stat))
    }

    fn read_ignore_file(
        &mut self,
        base: &Path,
        name: &'static str,
    ) -> Result<Option<IgnoreFile>, FetchError> {
        let Some((file, refused)) = IgnoreFile::read(self.root, base, name)? else {
            return Ok(None);
        };
        let shown = escape(&base.join(name).to_string_lossy());
        self.notes
            .extend(refused.into_iter().map(|line| ListingNote::NoPattern {
                file: shown.clone(),
                line,
            }));
        Ok(Some(file))
    }
}

fn package_path(entry: &RawEntry) -> Result<RelPath, PathError> {
    let path = RelPath::from_bytes(&entry.path_bytes())?;
    if path.is_reserved() {
        return Err(PathError {
            path: path.to_string(),
            rule: PathRule::Reserved,
        });
    }
    Ok(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_and_other_entries_are_bounded_apart() {
        let mut count = EntryCount::new(2);
        let file = Node::File(vibe_fs::stat_of(Path::new("/")).unwrap().unwrap());
        for node in [&file, &Node::Directory, &file, &Node::Link("x".into())] {
            count.add(node).unwrap();
        }
        for node in [file, Node::Directory] {
            let error = count.add(&node).unwrap_err();
            assert_eq!(
                error.to_string(),
                "the package has 3 entries or more; the limit is 2"
            );
        }
    }
}
