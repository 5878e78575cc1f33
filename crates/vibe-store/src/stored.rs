//! A tree in the store, and the proof that its files are what its listing says.

use std::path::PathBuf;

use rayon::prelude::*;
use vibe_core::hook::HostOs;
use vibe_core::{RelPath, Tree, TreeId, TreeRow};
use vibe_fs::{CopyError, EntryKind, Stat, hash_file, stat_of};

use crate::FILE_MTIME_SECONDS;
use crate::error::{Damage, DamagedFile, Fault, StoreError};
use crate::layout::FILES;
use crate::quarantine::Verdict;
use crate::store::Store;

const FILE_MTIME_NS: i64 = FILE_MTIME_SECONDS * 1_000_000_000;

/// A tree that is stored. Its files may be read, copied and linked, never written.
#[derive(Debug, Clone)]
pub struct StoredTree {
    store: Store,
    id: TreeId,
    tree: Tree,
    sizes: Vec<u64>,
    directories: Vec<RelPath>,
    files: PathBuf,
}

/// One file of a stored tree.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StoredFile<'a> {
    /// Its path, digest and exec bit.
    pub row: &'a TreeRow,
    /// Its size.
    pub bytes: u64,
}

impl StoredTree {
    /// `sizes` are those of the rows of `tree`, in their order.
    pub(crate) fn new(store: Store, tree: Tree, sizes: Vec<u64>) -> Self {
        let id = tree.id();
        Self {
            directories: directories_of(&tree),
            files: store.layout().tree(id).join(FILES),
            store,
            id,
            tree,
            sizes,
        }
    }

    /// The rows.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The identity.
    pub fn id(&self) -> TreeId {
        self.id
    }

    /// Every directory of the tree, each before what is in it: who makes them in this order, then
    /// the files, needs to look at nothing.
    pub fn directories(&self) -> impl Iterator<Item = &RelPath> {
        self.directories.iter()
    }

    /// Every file of the tree, by path.
    pub fn files(&self) -> impl Iterator<Item = StoredFile<'_>> {
        let rows = self.tree.rows().iter().zip(&self.sizes);
        rows.map(|(row, &bytes)| StoredFile { row, bytes })
    }

    /// The store's file at `path`, proved to be what the listing says: by one look at its size and
    /// time, or by its content where these are not as stored. Damage moves the tree to quarantine
    /// and is an error that names the file ([`StoreError::is_lost_tree`]: fetch it again).
    pub fn proved(&self, path: &RelPath) -> Result<PathBuf, StoreError> {
        let file = self.file(path).ok_or_else(|| StoreError::NotInTree {
            tree: self.id,
            path: path.clone(),
        })?;
        let place = path.under(&self.files);
        if stat_of(&place)?.is_some_and(|stat| looks_stored(&stat, &file)) {
            return Ok(place);
        }
        match self.fault_of(&file)? {
            None => Ok(place),
            Some(fault) => self.give_up(path, fault).map(|()| place),
        }
    }

    /// Moves the tree away because of `path`, unless that was put right meanwhile.
    fn give_up(&self, path: &RelPath, fault: Fault) -> Result<(), StoreError> {
        let tree = self.id;
        let path = path.clone();
        let damage = Damage::Files(vec![DamagedFile { path, fault }]);
        match self.store.quarantine(tree, damage.clone())? {
            Verdict::Sound => Ok(()),
            Verdict::Moved => Err(StoreError::Damaged { tree, damage }),
            Verdict::Gone => Err(StoreError::Gone { tree }),
            Verdict::Stuck(source) => Err(self.store.damaged_for_good(tree, damage, source)),
        }
    }

    /// Reads every file, several at a time, and returns those that are not as listed.
    pub(crate) fn damaged_files(&self) -> Result<Vec<DamagedFile>, CopyError> {
        let files: Vec<StoredFile<'_>> = self.files().collect();
        let looked: Result<Vec<Option<DamagedFile>>, CopyError> = files
            .par_iter()
            .map(|file| Ok(self.fault_of(file)?.map(|fault| damaged(file, fault))))
            .collect();
        Ok(looked?.into_iter().flatten().collect())
    }

    /// What is wrong with `file`, by its content.
    pub(crate) fn fault_of(&self, file: &StoredFile<'_>) -> Result<Option<Fault>, CopyError> {
        let place = file.row.path.under(&self.files);
        let Some(stat) = stat_of(&place)? else {
            return Ok(Some(Fault::Missing));
        };
        if stat.kind != EntryKind::File {
            return Ok(Some(Fault::NotAFile(stat.kind)));
        }
        if !has_exec(&stat, file.row) {
            return Ok(Some(Fault::Exec));
        }
        // The size in the listing proves nothing: it is outside the identity.
        let hashed = hash_file(&place)?;
        Ok((hashed.digest != file.row.digest).then_some(Fault::Content))
    }

    /// The file at `path`.
    pub(crate) fn file(&self, path: &RelPath) -> Option<StoredFile<'_>> {
        let rows = self.tree.rows();
        let index = rows.binary_search_by(|row| row.path.cmp(path)).ok()?;
        Some(StoredFile {
            row: &rows[index],
            bytes: self.sizes[index],
        })
    }
}

/// `file` with its `fault`.
pub(crate) fn damaged(file: &StoredFile<'_>, fault: Fault) -> DamagedFile {
    let path = file.row.path.clone();
    DamagedFile { path, fault }
}

fn looks_stored(stat: &Stat, file: &StoredFile<'_>) -> bool {
    stat.kind == EntryKind::File
        && stat.size == file.bytes
        && stat.mtime_ns == FILE_MTIME_NS
        && has_exec(stat, file.row)
}

/// Windows has no such bit.
fn has_exec(stat: &Stat, row: &TreeRow) -> bool {
    HostOs::CURRENT == HostOs::Windows || stat.exec == row.exec
}

/// The directories of `tree`, by path, which puts each before what is in it.
fn directories_of(tree: &Tree) -> Vec<RelPath> {
    let mut directories = Vec::new();
    let mut last_parent = "";
    for row in tree.rows() {
        let path = row.path.as_str();
        let parent = path.rsplit_once('/').map_or("", |(parent, _)| parent);
        // Neighbours mostly share their directory, and its ancestors are known then.
        if parent != last_parent {
            directories.extend(row.path.ancestors());
            last_parent = parent;
        }
    }
    directories.sort();
    directories.dedup();
    directories
}
