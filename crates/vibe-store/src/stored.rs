//! A tree in the store, and the proof that its files are what its listing says.

use std::path::PathBuf;

use rayon::prelude::*;
use vibe_core::hook::HostOs;
use vibe_core::{RelPath, Sha256Digest, Tree, TreeId, TreeRow};
use vibe_fs::{
    CopyError, EntryKind, Stat, hash_file, read_if_exists, seal_again, sealed_stat_of, stat_of,
};

use crate::FILE_MTIME_SECONDS;
use crate::error::{Damage, DamagedFile, Fault, StoreError};
use crate::layout::FILES;
use crate::listing::Listing;
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
    /// The tree `id`, whose listing is `listing`.
    pub(crate) fn new(store: Store, id: TreeId, listing: Listing) -> Self {
        Self {
            directories: directories_of(&listing.tree),
            files: store.layout().tree(id).join(FILES),
            store,
            id,
            tree: listing.tree,
            sizes: listing.sizes,
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
    /// time, or by its content where these are not as stored. Permissions that somebody changed are
    /// put back; the exec bit is not, since a slot that shares the file is told by it that it is
    /// damaged. Damage moves the tree to quarantine and is an error that names the file
    /// ([`StoreError::is_lost_tree`]: fetch it again).
    pub fn proved(&self, path: &RelPath) -> Result<PathBuf, StoreError> {
        let file = self.file(path).ok_or_else(|| StoreError::NotInTree {
            tree: self.id,
            path: path.clone(),
        })?;
        let place = path.under(&self.files);
        match sealed_stat_of(&place, file.row.exec)? {
            Some((stat, true)) if looks_stored(&stat, &file) => return Ok(place),
            Some((stat, false)) if stat.kind == EntryKind::File && has_exec(&stat, file.row) => {
                // Of a store that is another's, or a file system without modes, the content counts.
                if let Err(error) = seal_again(&place, file.row.exec) {
                    tracing::debug!("{}: {error}", self.id);
                }
            }
            _ => {}
        }
        match self.fault_of(&file)? {
            None => Ok(place),
            Some(fault) => self.give_up(path, fault).map(|()| place),
        }
    }

    /// [`StoredTree::proved`] by the content whatever its stat says: a write that hid its traces is
    /// found, too.
    pub fn proved_by_content(&self, path: &RelPath) -> Result<PathBuf, StoreError> {
        let file = self.file(path).ok_or_else(|| StoreError::NotInTree {
            tree: self.id,
            path: path.clone(),
        })?;
        let place = path.under(&self.files);
        match self.fault_of(&file)? {
            None => Ok(place),
            Some(fault) => self.give_up(path, fault).map(|()| place),
        }
    }

    /// The content of `path`, if it is there with at most `limit_bytes` bytes, and as listed.
    pub(crate) fn peek(&self, path: &RelPath, limit_bytes: u64) -> Option<Vec<u8>> {
        let row = self.file(path)?.row;
        let bytes = read_if_exists(&path.under(&self.files), limit_bytes).ok()??;
        (Sha256Digest::of(&bytes) == row.digest).then_some(bytes)
    }

    /// Moves the tree away because of `path`, unless that was put right meanwhile.
    fn give_up(&self, path: &RelPath, fault: Fault) -> Result<(), StoreError> {
        let tree = self.id;
        let path = path.clone();
        let damage = Damage::Files(vec![DamagedFile { path, fault }]);
        match self.store.quarantine(tree, damage.clone())? {
            Verdict::Sound => Ok(()),
            Verdict::Moved => Err(StoreError::Damaged { tree, damage }),
            // Another thread may have found another file of it damaged.
            Verdict::Gone => Err(match self.store.damage_of(tree) {
                Some(damage) => StoreError::Damaged { tree, damage },
                None => StoreError::Gone { tree },
            }),
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

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        File, PACKAGE, World, overwrite, overwrite_hidden, put, relative, set_seconds,
    };
    use std::fs;
    use std::os::unix::fs::symlink;
    use std::path::Path;
    use vibe_testkit::{mode_of, set_mode};

    /// Whether `README.md`, changed by `change`, is refused with `expected`, its tree moved away and
    /// fetched anew.
    fn check(change: impl Fn(&Path), expected: &Fault) {
        let world = World::new();
        let store = world.store();
        let stored = put(&store, &PACKAGE);
        change(&world.file(stored.id(), "README.md"));
        let path = relative("README.md");
        let error = stored.proved(&path).unwrap_err();
        assert!(error.is_lost_tree());
        match &error {
            StoreError::Damaged { tree, damage } => {
                let fault = expected.clone();
                let files = vec![DamagedFile {
                    path: path.clone(),
                    fault,
                }];
                assert_eq!((*tree, damage), (stored.id(), &Damage::Files(files)));
            }
            other => panic!("{other:?}"),
        }
        let other = relative("hooks/run.sh");
        let again = stored.proved(&other).unwrap_err();
        assert!(again.to_string().contains(path.as_str()), "{again}");
        assert_eq!(store.take_quarantined().len(), 1);
        assert!(store.get(stored.id()).unwrap().is_none());
        let gone = stored.proved(&path).unwrap_err();
        assert!(matches!(gone, StoreError::Gone { .. }), "{gone}");
        assert!(gone.is_lost_tree());
        put(&store, &PACKAGE);
        assert!(stored.proved(&path).is_ok());
    }

    #[test]
    fn a_damaged_file_is_never_handed_out() {
        check(|path| overwrite(path, "ruin me"), &Fault::Content);
        check(
            |path| overwrite(path, "longer than before"),
            &Fault::Content,
        );
        check(|path| overwrite_hidden(path, ""), &Fault::Content);
        check(|path| set_mode(path, 0o555), &Fault::Exec);
        check(|path| fs::remove_file(path).unwrap(), &Fault::Missing);
        let directory = EntryKind::Directory;
        check(
            |path| {
                fs::remove_file(path).unwrap();
                fs::create_dir(path).unwrap();
            },
            &Fault::NotAFile(directory),
        );
        check(
            |path| {
                let other = path.with_file_name("hooks/same");
                overwrite(&other, "read me");
                fs::remove_file(path).unwrap();
                symlink(other, path).unwrap();
            },
            &Fault::NotAFile(EntryKind::Symlink),
        );
    }

    #[test]
    fn permissions_that_somebody_changed_are_put_back() {
        let world = World::new();
        let stored = put(&world.store(), &PACKAGE);
        for (path, modes, sealed) in [
            ("README.md", [0o644, 0o400, 0o466], 0o444),
            ("hooks/run.sh", [0o755, 0o744, 0o4555], 0o555),
        ] {
            let place = world.file(stored.id(), path);
            for mode in modes {
                set_mode(&place, mode);
                assert_eq!(stored.proved(&relative(path)).unwrap(), place);
                assert_eq!(mode_of(&place), sealed);
            }
        }
        assert_eq!(world.names("quarantine"), [""; 0]);
    }

    #[test]
    fn a_write_that_hid_its_traces_is_found_by_its_content() {
        let world = World::new();
        let store = world.store();
        let stored = put(&store, &PACKAGE);
        let path = relative("README.md");
        assert!(stored.proved_by_content(&path).is_ok());
        overwrite_hidden(&world.file(stored.id(), "README.md"), "ruin me");
        assert!(stored.proved(&path).is_ok());
        let error = stored.proved_by_content(&path).unwrap_err();
        assert!(matches!(error, StoreError::Damaged { .. }), "{error}");
        assert!(error.to_string().contains("`README.md`"), "{error}");
        assert_eq!(store.take_damage(Tree::default().id()), None);
        assert!(store.take_damage(stored.id()).is_some());
        assert_eq!(store.take_damage(stored.id()), None);
        let absent = stored.proved_by_content(&relative("absent")).unwrap_err();
        assert!(matches!(absent, StoreError::NotInTree { .. }));
    }

    #[test]
    fn a_file_that_was_only_touched_is_proved_by_its_content() {
        let world = World::new();
        let stored = put(&world.store(), &PACKAGE);
        let place = world.file(stored.id(), "README.md");
        set_seconds(&place, 1_000_000_000);
        assert_eq!(stored.proved(&relative("README.md")).unwrap(), place);
        assert_eq!(world.names("quarantine"), [""; 0]);
    }

    #[test]
    fn damage_that_another_run_has_put_right_is_none() {
        let world = World::new();
        let store = world.store();
        let stored = put(&store, &PACKAGE);
        let place = world.file(stored.id(), "README.md");
        overwrite(&place, "ruin me");
        let fault = stored.fault_of(&stored.file(&relative("README.md")).unwrap());
        assert_eq!(fault.unwrap(), Some(Fault::Content));
        // Another run meets it first, and fetches the tree anew.
        assert!(stored.proved(&relative("README.md")).is_err());
        put(&world.store(), &PACKAGE);
        stored
            .give_up(&relative("README.md"), Fault::Content)
            .unwrap();
        assert_eq!(fs::read_to_string(place).unwrap(), "read me");
        assert_eq!(world.names("quarantine").len(), 1);
    }

    #[test]
    fn a_wrong_size_in_a_listing_costs_a_look_and_no_more() {
        let world = World::new();
        let id = put(&world.store(), &PACKAGE).id();
        let listing = world.store().layout().listing(id);
        let text = fs::read_to_string(&listing).unwrap();
        overwrite(&listing, &text.replacen(" 7\n", " 8\n", 1));
        let stored = world.store().get(id).unwrap().unwrap();
        let place = stored.proved(&relative("README.md")).unwrap();
        assert_eq!(fs::read_to_string(place).unwrap(), "read me");
    }

    #[test]
    fn directories_come_before_what_is_in_them() {
        let world = World::new();
        let files: Vec<File> = ["a-b/x", "a/b/c/x", "a/b/x", "a/x", "a.b/y", "x"]
            .map(|path| (path, "", false))
            .to_vec();
        let stored = put(&world.store(), &files);
        let found: Vec<&str> = stored.directories().map(RelPath::as_str).collect();
        assert_eq!(found, ["a", "a-b", "a.b", "a/b", "a/b/c"]);
        for (index, directory) in stored.directories().enumerate() {
            let parent = directory.parent();
            let known = |parent: &RelPath| stored.directories().take(index).any(|d| d == parent);
            assert!(parent.as_ref().is_none_or(known), "{directory}");
        }
    }
}
