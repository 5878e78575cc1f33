//! Looking at a package's directory tree: what ships, what each entry is, nothing followed and no
//! content read but that of ignore files.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

use vibe_core::RelPath;
use vibe_core::limits::{MANIFEST_BYTES, PackageLimits};
use vibe_fs::{EntryKind, RawEntry, ReadError, list_dir, read_if_exists, read_link};

use crate::collect::{Collector, FileFacts, Node, Nodes, Refuse, SourceKind, package_path};
use crate::error::FetchError;
use crate::note::ListingNote;

/// Bits beyond these are not installed.
const SHIPPED_PERMISSIONS: u32 = 0o755;

/// What was found in a directory.
pub(crate) struct Scanned {
    pub(crate) nodes: Nodes,
    pub(crate) notes: Vec<ListingNote>,
    /// Where below the root a `.git` was left out.
    pub(crate) skipped_git: Vec<PathBuf>,
}

/// Looks at the package in `root`; `refuse` says whether to go on without an entry.
pub(crate) fn scan(
    root: &Path,
    kind: SourceKind,
    limits: &PackageLimits,
    refuse: Refuse<'_>,
) -> Result<Scanned, FetchError> {
    let vibeignore = read_ignore_file(root, ".vibeignore")?;
    let mut scanner = Scanner {
        root,
        collector: Collector::new(kind, limits, vibeignore.as_deref()),
        refuse,
        skipped_git: Vec::new(),
    };
    scanner.directory(Path::new(""))?;
    Ok(Scanned {
        nodes: scanner.collector.nodes,
        notes: scanner.collector.notes,
        skipped_git: scanner.skipped_git,
    })
}

struct Scanner<'a> {
    root: &'a Path,
    collector: Collector<'a>,
    refuse: Refuse<'a>,
    skipped_git: Vec<PathBuf>,
}

impl Scanner<'_> {
    /// Goes at most as deep as a path in a package may be: a deeper one is refused by its name.
    fn directory(&mut self, relative: &Path) -> Result<(), FetchError> {
        let entered = self.collector.entered();
        if self.collector.honours_gitignore()
            && let Some(bytes) = read_ignore_file(&self.root.join(relative), ".gitignore")?
        {
            self.collector.enter(relative, &bytes);
        }
        for mut entry in list_dir(&self.root.join(relative))? {
            entry.relative = relative.join(&entry.relative);
            let is_directory = entry.stat.kind == EntryKind::Directory;
            if self.collector.ships(&entry.relative, is_directory) {
                self.entry(&entry).or_else(&mut *self.refuse)?;
            } else if entry.relative.file_name() == Some(OsStr::new(".git")) {
                self.skipped_git.push(entry.relative);
            }
        }
        self.collector.leave(entered);
        Ok(())
    }

    fn entry(&mut self, entry: &RawEntry) -> Result<(), FetchError> {
        let path = package_path(&entry.path_bytes())?;
        match entry.stat.kind {
            EntryKind::File => self.file(path, entry),
            EntryKind::Directory => {
                self.collector.add(path, Node::Directory)?;
                self.directory(&entry.relative)
            }
            EntryKind::Symlink => {
                let said = read_link(&self.root.join(&entry.relative))?;
                let mut said = said.into_os_string().into_encoded_bytes();
                if std::path::MAIN_SEPARATOR != '/' {
                    said.iter_mut()
                        .filter(|byte| **byte == b'\\')
                        .for_each(|byte| *byte = b'/');
                }
                self.collector.add(path, Node::Link(said))
            }
            kind @ EntryKind::Other => Err(FetchError::Special { path, kind }),
        }
    }

    fn file(&mut self, path: RelPath, entry: &RawEntry) -> Result<(), FetchError> {
        if entry.permissions & !SHIPPED_PERMISSIONS != 0 {
            self.collector.notes.push(ListingNote::Permissions {
                path: path.clone(),
                permissions: entry.permissions,
            });
        }
        self.collector
            .add(path, Node::File(FileFacts::Disk(entry.stat)))
    }
}

/// The content of the ignore file `name` in `directory`; `None` if there is none, or something that
/// is no file (as git does, a link is not followed).
fn read_ignore_file(directory: &Path, name: &str) -> Result<Option<Vec<u8>>, FetchError> {
    match read_if_exists(&directory.join(name), MANIFEST_BYTES) {
        Err(ReadError::NotAFile { .. }) => Ok(None),
        read => Ok(read?),
    }
}
