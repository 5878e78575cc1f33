//! What of a package ships, and what may: one judge for the entries of every kind of source,
//! directories and git trees alike. It reads nothing.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::path::Path;

use vibe_core::RelPath;
use vibe_core::limits::PackageLimits;
use vibe_core::relative_path::{PathError, PathRule};
use vibe_core::text::escape;
use vibe_fs::Stat;
use vibe_git::BlobId;

use crate::error::FetchError;
use crate::ignore_file::{IgnoreFile, Verdict};
use crate::note::ListingNote;

/// What kind of source a directory is; it decides what ships.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SourceKind {
    /// A published package: any spelling of `.git` is refused.
    Published,
    /// Somebody's working directory: `.git` is skipped and `.gitignore` honoured.
    PathSource,
}

/// An entry that ships.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    File(FileFacts),
    Directory,
    /// A link and what it says, with forward slashes.
    Link(Vec<u8>),
}

/// What is known of a file before it is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FileFacts {
    Disk(Stat),
    Blob {
        /// The number of its repository, see [`crate::Listing`].
        repository: usize,
        id: BlobId,
        size: u64,
        exec: bool,
    },
}

impl FileFacts {
    pub(crate) fn size(&self) -> u64 {
        match self {
            FileFacts::Disk(stat) => stat.size,
            FileFacts::Blob { size, .. } => *size,
        }
    }

    pub(crate) fn exec(&self) -> bool {
        match self {
            FileFacts::Disk(stat) => stat.exec,
            FileFacts::Blob { exec, .. } => *exec,
        }
    }
}

/// Takes the refusal of one entry: gives it back, which ends the listing, or keeps it, and the
/// listing goes on without that entry.
pub(crate) type Refuse<'a> = &'a mut dyn FnMut(FetchError) -> Result<(), FetchError>;

/// Every entry that ships, by its path; every directory above an entry is there too.
pub(crate) type Nodes = BTreeMap<RelPath, Node>;

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

/// Takes the entries of one package, each directory before what is in it, and keeps those that
/// ship.
pub(crate) struct Collector<'a> {
    kind: SourceKind,
    limits: &'a PackageLimits,
    vibeignore: Option<IgnoreFile>,
    /// Those of the directories from the root to the one being looked at.
    gitignores: Vec<IgnoreFile>,
    entries: EntryCount,
    pub(crate) nodes: Nodes,
    pub(crate) notes: Vec<ListingNote>,
}

impl<'a> Collector<'a> {
    /// `vibeignore` is the content of the root's `.vibeignore`.
    pub(crate) fn new(
        kind: SourceKind,
        limits: &'a PackageLimits,
        vibeignore: Option<&[u8]>,
    ) -> Self {
        let mut collector = Self {
            kind,
            limits,
            vibeignore: None,
            gitignores: Vec::new(),
            entries: EntryCount::new(limits.package_entries),
            nodes: Nodes::new(),
            notes: Vec::new(),
        };
        collector.vibeignore =
            vibeignore.map(|bytes| collector.ignore_file(Path::new(""), ".vibeignore", bytes));
        collector
    }

    /// Whether `.gitignore` files act.
    pub(crate) fn honours_gitignore(&self) -> bool {
        self.kind == SourceKind::PathSource
    }

    /// From here on, what is below `base` is held to the `.gitignore` there as well.
    pub(crate) fn enter(&mut self, base: &Path, gitignore: &[u8]) {
        let file = self.ignore_file(base, ".gitignore", gitignore);
        self.gitignores.push(file);
    }

    /// How many `.gitignore` files hold.
    pub(crate) fn entered(&self) -> usize {
        self.gitignores.len()
    }

    /// Only the first `entered` of the `.gitignore` files hold from here on.
    pub(crate) fn leave(&mut self, entered: usize) {
        self.gitignores.truncate(entered);
    }

    /// Whether the entry `path`, relative to the package, is part of it. What lies below a
    /// directory that is not, is not either, and is not asked for.
    pub(crate) fn ships(&self, path: &Path, is_directory: bool) -> bool {
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

    /// Adds an entry that ships.
    ///
    /// # Errors
    /// It is one too many or too large, or something else has that path.
    pub(crate) fn add(&mut self, path: RelPath, node: Node) -> Result<(), FetchError> {
        let limit_bytes = self.limits.file_bytes;
        match &node {
            Node::File(facts) if facts.size() > limit_bytes => {
                return Err(FetchError::FileTooLarge {
                    path,
                    bytes: facts.size(),
                    limit_bytes,
                });
            }
            node => self.entries.add(node)?,
        }
        match self.nodes.entry(path) {
            Entry::Vacant(place) => {
                place.insert(node);
                Ok(())
            }
            Entry::Occupied(place) => Err(FetchError::Twice {
                path: place.key().clone(),
            }),
        }
    }

    fn ignore_file(&mut self, base: &Path, name: &str, bytes: &[u8]) -> IgnoreFile {
        // A line that is no text can only aim at names that are none, and those are refused.
        let (file, refused) = IgnoreFile::parse(base, &String::from_utf8_lossy(bytes));
        let shown = escape(&base.join(name).to_string_lossy());
        self.notes
            .extend(refused.into_iter().map(|line| ListingNote::NoPattern {
                file: shown.clone(),
                line,
            }));
        file
    }
}

/// `bytes` as a path of a package.
///
/// # Errors
/// The rule that it breaks.
pub(crate) fn package_path(bytes: &[u8]) -> Result<RelPath, PathError> {
    let path = RelPath::from_bytes(bytes)?;
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

    fn file() -> Node {
        Node::File(FileFacts::Disk(
            vibe_fs::stat_of(Path::new("/")).unwrap().unwrap(),
        ))
    }

    #[test]
    fn files_and_other_entries_are_bounded_apart() {
        let mut count = EntryCount::new(2);
        for node in [
            &file(),
            &Node::Directory,
            &file(),
            &Node::Link(b"x".to_vec()),
        ] {
            count.add(node).unwrap();
        }
        for node in [file(), Node::Directory] {
            let error = count.add(&node).unwrap_err();
            assert_eq!(
                error.to_string(),
                "the package has 3 entries or more; the limit is 2"
            );
        }
    }

    #[test]
    fn one_path_has_one_entry() {
        let limits = PackageLimits::default();
        let mut collector = Collector::new(SourceKind::Published, &limits, None);
        let path = RelPath::new("a").unwrap();
        collector.add(path.clone(), file()).unwrap();
        let text = collector
            .add(path, Node::Directory)
            .unwrap_err()
            .to_string();
        assert!(text.starts_with("`a` is there more than once"), "{text}");
    }
}
