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
    EntryKind, FileLock, FsError, LockOutcome, RawEntry, Stat, bytes_below, copy_sealed,
    create_directory, create_directory_all, create_parents, remove_tree, rename_over, stat_of,
};

use crate::FILE_MTIME_SECONDS;
use crate::error::StoreError;
use crate::layout::{FILES, LISTING};
use crate::listing::Listing;
use crate::store::{Store, age_of, list_or_nothing};
use crate::stored::StoredTree;
use crate::usage::{StoreUse, make_base, try_exclusive};

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
    /// goes away. Only a [`StoreUse`] of the caller's own protects the tree from here on.
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
                return Ok(StoredTree::new(self.store.clone(), id, listing));
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
            Ok(LockOutcome::Held(lock)) => return Ok((directory, Some(lock))),
            Ok(LockOutcome::Unsupported) => return Ok((directory, None)),
            // Another run looks at it just now, and may remove it.
            Ok(LockOutcome::Busy) => {}
            Err(error) if error.is_not_found() => {}
            Err(error) => return Err(error.into()),
        }
    }
    Err(StoreError::Obstructed {
        path: staging.to_path_buf(),
    })
}

/// What killed runs had left.
#[derive(Debug, Default)]
pub(crate) struct Swept {
    /// How many directories.
    pub(crate) directories: usize,
    /// The bytes of their files.
    pub(crate) bytes: u64,
}

/// Removes what killed runs left in `staging`. What cannot be removed stays for another time.
pub(crate) fn sweep(staging: &Path) -> Result<Swept, StoreError> {
    let mut swept = Swept::default();
    for entry in list_or_nothing(staging)? {
        let path = staging.join(&entry.relative);
        if let Some(_guard) = abandoned(&path, &entry) {
            let bytes = bytes_below(&path);
            match remove_tree(&path) {
                Ok(()) => {
                    swept.directories += 1;
                    swept.bytes = swept.bytes.saturating_add(bytes);
                }
                Err(error) => tracing::debug!("{error}"),
            }
        }
    }
    Ok(swept)
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

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{File, PACKAGE, World, make_old, put, relative};
    use proptest::prelude::*;
    use std::collections::BTreeSet;
    use std::fs;
    use std::io;
    use std::os::unix::fs::MetadataExt as _;
    use vibe_core::tree::TreeError;
    use vibe_testkit::mode_of;

    fn add(staged: &StagedTree, path: &str, content: &str) -> Result<Sha256Digest, StoreError> {
        staged.add(&relative(path), &mut content.as_bytes(), false, 100)
    }

    #[test]
    fn files_are_read_only_have_one_time_and_keep_their_exec_bits() {
        let world = World::new();
        let stored = put(&world.store(), &PACKAGE);
        for (path, content, exec) in PACKAGE {
            let place = world.file(stored.id(), path);
            assert_eq!(mode_of(&place), if exec { 0o555 } else { 0o444 }, "{path}");
            let metadata = place.symlink_metadata().unwrap();
            assert_eq!(
                (metadata.mtime(), metadata.mtime_nsec()),
                (FILE_MTIME_SECONDS, 0)
            );
            assert_eq!(fs::read_to_string(place).unwrap(), content);
        }
        assert_eq!(mode_of(&world.store().layout().listing(stored.id())), 0o444);
        assert_eq!(world.names("staging"), [""; 0]);
    }

    #[test]
    fn no_two_trees_share_a_file_and_no_two_files_share_an_inode() {
        let world = World::new();
        let store = world.store();
        let files: [File; 3] = [
            ("a", "same", false),
            ("b", "same", false),
            ("c", "same", true),
        ];
        let trees = [put(&store, &files), put(&store, &files[..2])];
        let inodes: BTreeSet<u64> = trees
            .iter()
            .flat_map(|tree| {
                tree.files()
                    .map(|file| world.file(tree.id(), file.row.path.as_str()))
            })
            .map(|path| path.symlink_metadata().unwrap().ino())
            .collect();
        assert_eq!(inodes.len(), 5);
    }

    #[test]
    fn a_tree_that_is_not_finished_goes_away() {
        let world = World::new();
        let staged = world.store().stage().unwrap();
        let digest = add(&staged, "a/b", "x").unwrap();
        assert_eq!(digest, Sha256Digest::of(b"x"));
        assert_eq!(staged.tree().unwrap().rows()[0].digest, digest);
        assert_eq!(world.names("staging").len(), 1);
        drop(staged);
        assert_eq!(world.names("staging"), [""; 0]);
        assert_eq!(world.store().entries().unwrap(), []);
    }

    #[test]
    fn names_that_collide_are_refused_naming_both() {
        let world = World::new();
        let check = |first: &str, second: &str| {
            let staged = world.store().stage().unwrap();
            add(&staged, first, "kept").unwrap();
            let error = match add(&staged, second, "other") {
                Err(error) => error,
                Ok(_) => staged.finish().unwrap_err(),
            };
            match error {
                StoreError::Tree(TreeError::Collision {
                    first: one,
                    second: other,
                }) => {
                    let found = BTreeSet::from([one.to_string(), other.to_string()]);
                    let expected = BTreeSet::from([first.to_owned(), second.to_owned()]);
                    assert_eq!(found, expected);
                }
                other => panic!("{first} {second}: {other:?}"),
            }
        };
        check("a", "a");
        check("a", "A");
        check("a", "a/b");
        check("a/b", "a");
        check("straße", "strasse");
        assert_eq!(world.store().entries().unwrap(), []);
        assert_eq!(world.names("staging"), [""; 0]);
    }

    struct Broken;

    impl Read for Broken {
        fn read(&mut self, _buffer: &mut [u8]) -> io::Result<usize> {
            Err(io::ErrorKind::StorageFull.into())
        }
    }

    #[test]
    fn a_file_that_fails_or_is_too_large_names_its_path_and_nothing_is_published() {
        let world = World::new();
        let store = world.store();
        let staged = store.stage().unwrap();
        let broken = staged.add(&relative("d/broken"), &mut Broken, false, 100);
        let large = add(&staged, "d/large", &"x".repeat(101));
        for (error, name) in [
            (broken.unwrap_err(), "broken"),
            (large.unwrap_err(), "large"),
        ] {
            let text = error.to_string();
            assert!(text.contains(&format!("tree/files/d/{name}")), "{text}");
        }
        assert!(add(&staged, "d/good", "x").is_ok(), "it can go on");
        let rows = staged.tree().unwrap();
        assert_eq!(rows.rows().len(), 1);
        drop(staged);
        assert_eq!(world.names("staging"), [""; 0]);
        assert_eq!(store.entries().unwrap(), []);
    }

    #[test]
    fn files_are_added_from_many_threads() {
        let world = World::new();
        let staged = world.store().stage().unwrap();
        std::thread::scope(|scope| {
            for thread in 0..8 {
                let staged = &staged;
                scope.spawn(move || {
                    for file in 0..20 {
                        let path = format!("d{}/e/{thread}-{file}", file % 3);
                        add(staged, &path, &path).unwrap();
                    }
                });
            }
        });
        let stored = staged.finish().unwrap();
        assert_eq!(stored.tree().rows().len(), 160);
        assert_eq!(stored.damaged_files().unwrap(), []);
    }

    #[test]
    fn who_comes_second_takes_the_tree_that_is_there() {
        let world = World::new();
        let first = put(&world.store(), &PACKAGE);
        let inode = |path: &Path| path.symlink_metadata().unwrap().ino();
        let place = world.file(first.id(), "README.md");
        let before = inode(&place);
        let second = put(&world.store(), &PACKAGE);
        assert_eq!((second.tree(), inode(&place)), (first.tree(), before));
        assert_eq!(world.names("staging"), [""; 0]);
    }

    #[test]
    fn eight_runs_that_add_one_tree_at_once_all_get_it_whole() {
        for _ in 0..10 {
            let world = World::new();
            std::thread::scope(|scope| {
                for _ in 0..8 {
                    scope.spawn(|| {
                        let stored = put(&world.store(), &PACKAGE);
                        assert_eq!(stored.damaged_files().unwrap(), []);
                    });
                }
            });
            assert_eq!(world.store().entries().unwrap().len(), 1);
            assert_eq!(world.names("staging"), [""; 0]);
        }
    }

    #[test]
    fn what_is_no_tree_in_the_place_of_one_is_moved_away() {
        let id = put(&World::new().store(), &PACKAGE).id();
        let check = |make: &dyn Fn(&Path)| {
            let world = World::new();
            let place = world.store().layout().tree(id);
            fs::create_dir_all(place.parent().unwrap()).unwrap();
            make(&place);
            let stored = put(&world.store(), &PACKAGE);
            assert_eq!(stored.damaged_files().unwrap(), []);
            assert!(place.join(LISTING).is_file() && !place.is_symlink());
            assert_eq!(world.names("quarantine").len(), 1);
        };
        check(&|place| fs::write(place, "x").unwrap());
        check(&|place| fs::create_dir(place).unwrap());
        check(&|place| fs::create_dir_all(place.join("files/x")).unwrap());
        check(&|place| std::os::unix::fs::symlink("/nowhere", place).unwrap());
    }

    #[test]
    fn staging_of_a_dead_run_is_swept_and_that_of_a_living_one_stays() {
        let world = World::new();
        let staged = world.store().stage().unwrap();
        fs::create_dir_all(world.at("staging/dead/tree")).unwrap();
        fs::write(world.at("staging/dead/owner"), "").unwrap();
        fs::create_dir(world.at("staging/just-made")).unwrap();
        fs::create_dir(world.at("staging/long-ago")).unwrap();
        make_old(&world.at("staging/long-ago"), ABANDONED_AFTER * 2);
        let living = world.names("staging");
        assert_eq!(living.len(), 4);
        let other = world.store().stage().unwrap();
        let names = world.names("staging");
        assert_eq!(names.len(), 3, "{names:?}");
        assert!(world.at("staging/just-made").is_dir());
        add(&staged, "a", "x").unwrap();
        assert_eq!(staged.finish().unwrap().damaged_files().unwrap(), []);
        drop(other);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_place_that_cannot_be_written_is_named() {
        use vibe_testkit::{as_ordinary_user, set_mode};
        as_ordinary_user(|| {
            let world = World::new();
            let store = world.store();
            let staged = store.stage().unwrap();
            add(&staged, "a", "x").unwrap();
            set_mode(&world.at(""), 0o555);
            let error = staged.finish().unwrap_err();
            assert!(error.to_string().contains("could not create /"), "{error}");
            set_mode(&world.at("staging"), 0o555);
            let error = store.stage().unwrap_err().to_string();
            assert!(error.contains("staging"), "{error}");
            for path in ["", "staging"] {
                set_mode(&world.at(path), 0o755);
            }
        });
    }

    fn any_files() -> impl Strategy<Value = Vec<(String, Vec<u8>, bool)>> {
        let path = "[a-c]{1,2}(/[a-c ]{1,2}[a-c]){0,2}";
        let content = proptest::collection::vec(any::<u8>(), 0..200);
        proptest::collection::vec((path, content, any::<bool>()), 0..6)
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(64))]

        #[test]
        fn what_was_put_is_got(files in any_files()) {
            let world = World::new();
            let row = |(path, content, exec): &(String, Vec<u8>, bool)| TreeRow {
                path: relative(path),
                digest: Sha256Digest::of(content),
                exec: *exec,
            };
            let staged = world.store().stage().unwrap();
            let added: Result<Vec<Sha256Digest>, StoreError> = files
                .iter()
                .map(|(path, content, exec)| {
                    staged.add(&relative(path), &mut content.as_slice(), *exec, 200)
                })
                .collect();
            let finished = added.and_then(|_| staged.finish());
            match Tree::new(files.iter().map(row).collect()) {
                Err(_) => prop_assert!(matches!(finished, Err(StoreError::Tree(_)))),
                Ok(tree) => {
                    let finished = finished.unwrap();
                    prop_assert_eq!(finished.tree(), &tree);
                    let found = world.store().get(tree.id()).unwrap().unwrap();
                    prop_assert_eq!(found.tree(), &tree);
                    for (path, content, _) in &files {
                        let place = found.proved(&relative(path)).unwrap();
                        prop_assert_eq!(&fs::read(place).unwrap(), content);
                    }
                }
            }
            prop_assert_eq!(world.names("staging"), Vec::<String>::new());
        }
    }
}
