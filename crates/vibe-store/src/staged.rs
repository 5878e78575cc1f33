//! Adding a tree: written in staging, then moved into place by one rename.

use std::collections::{BTreeMap, HashSet};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tempfile::TempDir;
use vibe_core::limits::RECORD_BYTES;
use vibe_core::{RelPath, Sha256Digest, Tree, TreeId, TreeRow};
use vibe_fs::{
    EntryKind, FileLock, FsError, LockOutcome, RawEntry, Stat, copy_sealed, create_directory,
    create_directory_all, create_parents, remove_tree, rename_over, stat_of,
};

use crate::FILE_MTIME_SECONDS;
use crate::error::StoreError;
use crate::layout::{FILES, LISTING};
use crate::listing::Listing;
use crate::store::{Store, age_of, list_or_nothing};
use crate::stored::StoredTree;
use crate::usage::{Attempt, StoreUse, make_base, try_exclusive};

/// The lock of the owner of a staging directory, in it.
const OWNER: &str = "owner";
/// The tree, in its staging directory.
const TREE: &str = "tree";
/// A staging directory whose owner cannot be asked is rubbish after this long without a new entry.
const ABANDONED_AFTER: Duration = Duration::from_hours(24);
/// Attempts at something that other runs can take away from under us.
const ATTEMPTS: usize = 16;

/// A tree that is being added. Files can be added from several threads. Dropped unfinished, it goes
/// away.
#[derive(Debug)]
pub struct StagedTree {
    store: Store,
    files: Mutex<BTreeMap<RelPath, Added>>,
    made: Mutex<HashSet<RelPath>>,
    tree: PathBuf,
    // The lock goes first: a system may refuse to remove a file that is open.
    _owner: Option<FileLock>,
    _directory: TempDir,
    _usage: StoreUse,
}

#[derive(Debug, Clone, Copy)]
struct Added {
    digest: Sha256Digest,
    exec: bool,
    bytes: u64,
}

impl StagedTree {
    pub(crate) fn begin(store: &Store) -> Result<Self, StoreError> {
        make_base(store.layout())?;
        let usage = store.use_shared()?;
        let staging = &store.layout().staging;
        create_directory_all(staging)?;
        if store.begins_to_sweep() {
            sweep(staging)?;
        }
        let (directory, owner) = own_directory(staging)?;
        let tree = directory.path().join(TREE);
        create_directory(&tree)?;
        create_directory(&tree.join(FILES))?;
        Ok(Self {
            store: store.clone(),
            files: Mutex::default(),
            made: Mutex::default(),
            tree,
            _owner: owner,
            _directory: directory,
            _usage: usage,
        })
    }

    /// Adds the file `path` with what `reader` gives, at most `limit_bytes`, and returns its digest.
    /// A path that is taken, or that some system takes for another one added before, is an error.
    pub fn add(
        &self,
        path: &RelPath,
        reader: &mut dyn Read,
        exec: bool,
        limit_bytes: u64,
    ) -> Result<Sha256Digest, StoreError> {
        let written = self.write(path, reader, exec, limit_bytes);
        let written = written.map_err(|error| self.collision(path).unwrap_or(error))?;
        let added = Added {
            digest: written.digest,
            exec,
            bytes: written.bytes,
        };
        locked(&self.files).insert(path.clone(), added);
        Ok(written.digest)
    }

    fn write(
        &self,
        path: &RelPath,
        reader: &mut dyn Read,
        exec: bool,
        limit_bytes: u64,
    ) -> Result<vibe_fs::WrittenFile, StoreError> {
        let root = self.tree.join(FILES);
        if let Some(parent) = path.parent()
            && !locked(&self.made).contains(&parent)
        {
            create_parents(&root, path)?;
            locked(&self.made).insert(parent);
        }
        let target = path.under(&root);
        Ok(copy_sealed(
            reader,
            &target,
            exec,
            FILE_MTIME_SECONDS,
            limit_bytes,
        )?)
    }

    /// The better reason for a failure to write `path`: a name that is taken.
    fn collision(&self, path: &RelPath) -> Option<StoreError> {
        let mut rows = self.rows();
        rows.push(TreeRow {
            path: path.clone(),
            digest: Sha256Digest::of(b""),
            exec: false,
        });
        Tree::new(rows).err().map(StoreError::Tree)
    }

    fn rows(&self) -> Vec<TreeRow> {
        let files = locked(&self.files);
        let row = |(path, added): (&RelPath, &Added)| TreeRow {
            path: path.clone(),
            digest: added.digest,
            exec: added.exec,
        };
        files.iter().map(row).collect()
    }

    /// The tree of what was added so far; an error if its names collide.
    pub fn tree(&self) -> Result<Tree, StoreError> {
        Ok(Tree::new(self.rows())?)
    }

    /// Puts the tree in its place. If another run has stored an equal one, that is returned and ours
    /// goes away.
    pub fn finish(self) -> Result<StoredTree, StoreError> {
        let listing = Listing {
            boot: self.store.boot().map(str::to_owned),
            tree: self.tree()?,
            sizes: locked(&self.files)
                .values()
                .map(|added| added.bytes)
                .collect(),
        };
        self.write_listing(&listing)?;
        let id = listing.tree.id();
        for _ in 0..ATTEMPTS {
            if self.publish(id)? {
                return Ok(StoredTree::new(
                    self.store.clone(),
                    listing.tree,
                    listing.sizes,
                ));
            }
            if let Some(theirs) = self.store.get(id)? {
                return Ok(theirs);
            }
            self.store.clear_place_of(id)?;
        }
        Err(StoreError::Obstructed {
            path: self.store.layout().tree(id),
        })
    }

    /// Its time is that of the last use, which is now.
    fn write_listing(&self, listing: &Listing) -> Result<(), StoreError> {
        let path = self.tree.join(LISTING);
        let text = listing.to_text();
        copy_sealed(
            &mut text.as_bytes(),
            &path,
            false,
            FILE_MTIME_SECONDS,
            RECORD_BYTES,
        )?;
        Ok(vibe_fs::touch(&path)?)
    }

    /// Whether the tree could be moved to its place; not if something is there.
    fn publish(&self, id: TreeId) -> Result<bool, StoreError> {
        let target = self.store.layout().tree(id);
        if stat_of(&target)?.is_some() {
            return Ok(false);
        }
        if let Some(shard) = target.parent() {
            create_directory_all(shard)?;
        }
        match rename_over(&self.tree, &target) {
            Ok(()) => Ok(true),
            Err(error) if stat_of(&target)?.is_some() => {
                tracing::debug!("another run was first: {error}");
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A new directory in `staging` with the lock of its owner; without one where there are no locks.
fn own_directory(staging: &Path) -> Result<(TempDir, Option<FileLock>), StoreError> {
    for _ in 0..ATTEMPTS {
        let directory = tempfile::Builder::new()
            .prefix("tree-")
            .tempdir_in(staging)
            .map_err(FsError::at("create a directory in", staging))?;
        match try_exclusive(&directory.path().join(OWNER), "vibe") {
            Ok(Attempt::Held(lock)) => return Ok((directory, Some(lock))),
            Ok(Attempt::Unlocked) => return Ok((directory, None)),
            // Another run looks at it just now, and may remove it.
            Ok(Attempt::Busy) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(StoreError::Obstructed {
        path: staging.to_path_buf(),
    })
}

/// Removes what killed runs left in `staging`, and returns how many directories that were. What
/// cannot be removed stays for another time.
pub(crate) fn sweep(staging: &Path) -> Result<usize, StoreError> {
    let mut removed = 0;
    for entry in list_or_nothing(staging)? {
        let path = staging.join(&entry.relative);
        if let Some(_guard) = abandoned(&path, &entry) {
            match remove_tree(&path) {
                Ok(()) => removed += 1,
                Err(error) => tracing::debug!("{error}"),
            }
        }
    }
    Ok(removed)
}

/// Whether nobody works in the directory `path`, with the lock that proves it.
fn abandoned(path: &Path, entry: &RawEntry) -> Option<Option<FileLock>> {
    if entry.stat.kind != EntryKind::Directory {
        return None;
    }
    match FileLock::try_shared(&path.join(OWNER)) {
        Ok(LockOutcome::Held(lock)) => Some(Some(lock)),
        Ok(LockOutcome::Busy) => None,
        Ok(LockOutcome::Unsupported) | Err(_) => is_old(&entry.stat).then_some(None),
    }
}

fn is_old(stat: &Stat) -> bool {
    let since = Duration::from_nanos(u64::try_from(stat.mtime_ns).unwrap_or_default());
    age_of(std::time::SystemTime::UNIX_EPOCH + since).is_some_and(|age| age > ABANDONED_AFTER)
}
