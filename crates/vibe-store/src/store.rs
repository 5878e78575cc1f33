//! The store as a whole: looking trees up, beginning to add one, listing them.

use std::path::Path;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use vibe_core::limits::RECORD_BYTES;
use vibe_core::{RelPath, TreeId};
use vibe_fs::{
    EntryKind, FsError, RawEntry, ReadError, boot_id, create_new_file, list_dir, may_write,
    read_if_exists, stat_of, touch,
};

use crate::error::{Damage, DamagedTree, StoreError};
use crate::layout::{DURABLE, Layout, tree_at};
use crate::listing::{Listing, ListingError, is_boot};
use crate::quarantine::Verdict;
use crate::staged::StagedTree;
use crate::stored::StoredTree;
use crate::usage::{StoreUse, use_shared};

/// Uses of a tree are noted this often at most: a no-op run writes nothing on most days.
const USE_NOTED_EVERY: Duration = Duration::from_hours(24);
/// Looks at a tree that others keep moving.
const LOOKS: usize = 3;
/// Listings of a directory in which other runs add and remove.
const LISTINGS: usize = 100;

/// A machine-wide store. Clones are the same store.
#[derive(Debug, Clone)]
pub struct Store {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    layout: Layout,
    boot: OnceLock<Option<String>>,
    swept: OnceLock<()>,
    quarantined: Mutex<Vec<DamagedTree>>,
}

/// A tree in the store, as a list of trees shows it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoreEntry {
    /// The tree.
    pub tree: TreeId,
    /// How many files it has.
    pub files: usize,
    /// The bytes of all its files.
    pub bytes: u64,
    /// When it was used last, to a day.
    pub used: SystemTime,
}

impl Store {
    /// The store below `root`. Touches nothing.
    pub fn new(root: PathBuf) -> Self {
        Self {
            shared: Arc::new(Shared {
                layout: Layout::new(root),
                boot: OnceLock::new(),
                swept: OnceLock::new(),
                quarantined: Mutex::default(),
            }),
        }
    }

    /// A store that takes `boot` for the name of this boot.
    #[cfg(test)]
    pub(crate) fn under_boot(root: PathBuf, boot: Option<&str>) -> Self {
        let store = Self::new(root);
        store.shared.boot.get_or_init(|| boot.map(str::to_owned));
        store
    }

    /// The directory everything lies in.
    pub fn root(&self) -> &Path {
        &self.layout().root
    }

    /// The directory in which trees are staged, whether it is there or not. What lies there and is
    /// nobody's goes in time.
    pub fn staging(&self) -> &Path {
        &self.layout().staging
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.shared.layout
    }

    /// Whether there is a store of this layout.
    pub(crate) fn exists(&self) -> Result<bool, FsError> {
        let stat = stat_of(&self.layout().base)?;
        Ok(stat.is_some_and(|stat| stat.kind == EntryKind::Directory))
    }

    /// The name of this boot, where it has one.
    pub(crate) fn boot(&self) -> Option<&str> {
        let boot = || boot_id().filter(|name| is_boot(name));
        self.shared.boot.get_or_init(boot).as_deref()
    }

    /// Whether this store value has not yet looked for rubbish in staging; says so once.
    pub(crate) fn begins_to_sweep(&self) -> bool {
        self.shared.swept.set(()).is_ok()
    }

    pub(crate) fn quarantined(&self) -> MutexGuard<'_, Vec<DamagedTree>> {
        let quarantined = self.shared.quarantined.lock();
        quarantined.unwrap_or_else(PoisonError::into_inner)
    }

    /// The damaged trees that were moved to quarantine since this was last asked, so that a run can
    /// say why it fetches again what the store had.
    pub fn take_quarantined(&self) -> Vec<DamagedTree> {
        std::mem::take(&mut self.quarantined())
    }

    /// What was wrong with `tree`, if it was moved to quarantine and nobody was told yet.
    pub(crate) fn damage_of(&self, tree: TreeId) -> Option<Damage> {
        let quarantined = self.quarantined();
        let found = quarantined.iter().find(|found| found.tree == tree)?;
        Some(found.damage.clone())
    }

    /// What was wrong with `tree`, if it was moved to quarantine since this was last asked.
    pub fn take_damage(&self, tree: TreeId) -> Option<Damage> {
        let mut quarantined = self.quarantined();
        let index = quarantined.iter().position(|found| found.tree == tree)?;
        Some(quarantined.swap_remove(index).damage)
    }

    /// Held while a run uses trees, so that none is removed. Makes the lock file where it can; where
    /// it cannot, the run goes without.
    pub fn use_shared(&self) -> Result<StoreUse, StoreError> {
        use_shared(self.layout())
    }

    /// The stored `tree`; `None` if it is not there, or was damaged and is now in quarantine (see
    /// [`Store::take_quarantined`]). Reads the listing only, and all files where another boot wrote
    /// them. Hold a [`StoreUse`] from before until the tree is used no more.
    pub fn get(&self, tree: TreeId) -> Result<Option<StoredTree>, StoreError> {
        for _ in 0..LOOKS {
            let damage = match self.read_listing(tree)? {
                None => return Ok(None),
                Some(Err(error)) => Damage::Listing(error),
                Some(Ok(listing)) => match self.accept(tree, listing)? {
                    Ok(stored) => return Ok(Some(stored)),
                    Err(damage) => damage,
                },
            };
            match self.quarantine(tree, damage.clone())? {
                Verdict::Moved | Verdict::Gone => return Ok(None),
                Verdict::Sound => {}
                Verdict::Stuck(source) => {
                    return Err(self.damaged_for_good(tree, damage, source));
                }
            }
        }
        Ok(None)
    }

    /// Begins to add a tree: a directory in staging, which goes away if the tree is not finished.
    pub fn stage(&self) -> Result<StagedTree, StoreError> {
        StagedTree::begin(self)
    }

    /// The trees that are stored, by identity, those with an unusable listing left out.
    pub fn entries(&self) -> Result<Vec<StoreEntry>, StoreError> {
        let mut entries = Vec::new();
        for tree in self.trees()? {
            if let Some(Ok(listing)) = self.read_listing(tree)? {
                entries.push(StoreEntry {
                    tree,
                    files: listing.sizes.len(),
                    bytes: listing.bytes(),
                    used: self.used(tree)?,
                });
            }
        }
        Ok(entries)
    }

    /// The content of the file `path` of `tree`, for a look that changes nothing: no use is noted,
    /// and no damage moved away. `None` if it is not there, has more than `limit_bytes` bytes, or is not
    /// what the listing says.
    pub fn peek(&self, tree: TreeId, path: &RelPath, limit_bytes: u64) -> Option<Vec<u8>> {
        let listing = self.read_listing(tree).ok()??.ok()?;
        StoredTree::new(self.clone(), tree, listing).peek(path, limit_bytes)
    }

    /// Where `tree` lies, or would lie: for a message on what to remove by hand.
    pub fn directory_of(&self, tree: TreeId) -> PathBuf {
        self.layout().tree(tree)
    }

    /// The identities that have a directory.
    pub(crate) fn trees(&self) -> Result<Vec<TreeId>, StoreError> {
        let mut trees = Vec::new();
        for shard in directories_in(&self.layout().trees)? {
            let rests = directories_in(&self.layout().trees.join(&shard))?;
            trees.extend(rests.iter().filter_map(|rest| tree_at(&shard, rest)));
        }
        Ok(trees)
    }

    /// The listing of `tree`, or why it cannot be used; `None` if there is none.
    pub(crate) fn read_listing(
        &self,
        tree: TreeId,
    ) -> Result<Option<Result<Listing, ListingError>>, StoreError> {
        match read_if_exists(&self.layout().listing(tree), RECORD_BYTES) {
            Ok(None) => Ok(None),
            Ok(Some(bytes)) => Ok(Some(Listing::from_bytes(&bytes, tree))),
            Err(ReadError::NotAFile { .. } | ReadError::TooLarge { .. }) => {
                Ok(Some(Err(ListingError::NotAFile)))
            }
            Err(error @ ReadError::Fs(_)) => Err(error.into()),
        }
    }

    /// The tree of `listing`, ready for use, or the damage that a loss of power did to it.
    fn accept(
        &self,
        tree: TreeId,
        listing: Listing,
    ) -> Result<Result<StoredTree, Damage>, StoreError> {
        let boot = listing.boot.clone();
        let stored = StoredTree::new(self.clone(), tree, listing);
        if !self.is_settled(boot.as_deref(), tree)? {
            let damaged = stored.damaged_files()?;
            if !damaged.is_empty() {
                return Ok(Err(Damage::Files(damaged)));
            }
            self.mark_durable(tree);
        }
        self.note_use(tree);
        Ok(Ok(stored))
    }

    /// Whether the files of `tree` need no look: this boot wrote them, or they were read since.
    pub(crate) fn is_settled(
        &self,
        written_under: Option<&str>,
        tree: TreeId,
    ) -> Result<bool, StoreError> {
        if written_under.is_some() && written_under == self.boot() {
            return Ok(true);
        }
        let mark = stat_of(&self.layout().tree(tree).join(DURABLE))?;
        Ok(mark.is_some_and(|stat| stat.kind == EntryKind::File))
    }

    /// Spares later runs the look at every file; without the mark they look again.
    pub(crate) fn mark_durable(&self, tree: TreeId) {
        let directory = self.layout().tree(tree);
        if may_write(&directory)
            && let Err(error) = create_new_file(&directory.join(DURABLE), b"")
        {
            tracing::debug!("{tree} is not marked as durable: {error}");
        }
    }

    /// The time of the listing is that of the last use. A failure to set it costs a fetch later.
    fn note_use(&self, tree: TreeId) {
        let listing = self.layout().listing(tree);
        let noted = self.used(tree).map(|used| {
            let recent = age_of(used).is_some_and(|age| age < USE_NOTED_EVERY);
            match recent || !may_write(&self.layout().base) {
                true => Ok(()),
                false => touch(&listing),
            }
        });
        if let Err(error) | Ok(Err(error)) = noted {
            tracing::debug!("the use of {tree} is not noted: {error}");
        }
    }

    /// When `tree` was used last.
    pub(crate) fn used(&self, tree: TreeId) -> Result<SystemTime, FsError> {
        let path = self.layout().listing(tree);
        let nanoseconds = stat_of(&path)?.map_or(0, |stat| stat.mtime_ns);
        let since = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or_default());
        Ok(SystemTime::UNIX_EPOCH + since)
    }
}

/// How long ago `time` was; `None` if it is still to come.
pub(crate) fn age_of(time: SystemTime) -> Option<Duration> {
    SystemTime::now().duration_since(time).ok()
}

/// The names of the directories in `path`; none if it is absent.
fn directories_in(path: &Path) -> Result<Vec<PathBuf>, StoreError> {
    let is_directory = |entry: &RawEntry| entry.stat.kind == EntryKind::Directory;
    let entries = list_or_nothing(path)?;
    let names = entries.into_iter().filter(is_directory);
    Ok(names.map(|entry| entry.relative).collect())
}

/// What is in the directory `path`; nothing if it is absent. An entry that another run takes away
/// just now fails the whole listing, which is then tried again.
pub(crate) fn list_or_nothing(path: &Path) -> Result<Vec<RawEntry>, StoreError> {
    let mut listed = list_dir(path);
    for _ in 1..LISTINGS {
        match &listed {
            Err(error) if error.is_not_found() && error.path != path => listed = list_dir(path),
            _ => break,
        }
    }
    match listed {
        Err(error) if error.is_not_found() && error.path == path => Ok(Vec::new()),
        listed => Ok(listed?),
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::{DamagedFile, Fault};
    use crate::testing::{
        BOOT, PACKAGE, World, make_old, overwrite_hidden, put, relative, set_seconds,
    };
    use std::fs;
    use vibe_core::Tree;

    #[test]
    fn a_store_that_does_not_exist_has_nothing_and_stays_absent() {
        let world = World::new();
        let store = world.store();
        assert_eq!(store.root(), world.root());
        assert!(store.get(Tree::default().id()).unwrap().is_none());
        assert_eq!(store.entries().unwrap(), []);
        assert!(!world.root().exists());
    }

    #[test]
    fn a_stored_tree_is_found_by_another_run() {
        let world = World::new();
        let stored = put(&world.store(), &PACKAGE);
        let found = world.store().get(stored.id()).unwrap().unwrap();
        assert_eq!(found.tree(), stored.tree());
        let directories: Vec<&str> = found.directories().map(RelPath::as_str).collect();
        assert_eq!(directories, ["a", "a/b", "hooks"]);
        let sizes: Vec<u64> = found.files().map(|file| file.bytes).collect();
        assert_eq!(sizes, [7, 0, 4, 4]);
        for (path, content, _) in PACKAGE {
            let place = found.proved(&relative(path)).unwrap();
            assert_eq!(fs::read_to_string(place).unwrap(), content);
        }
        let error = found.proved(&relative("hooks")).unwrap_err();
        assert!(matches!(error, StoreError::NotInTree { .. }), "{error}");
    }

    /// Whether a tree whose listing became `change(listing)` is refused as `expected`.
    fn check_listing(change: impl Fn(&str) -> String, expected: ListingError) {
        let world = World::new();
        let id = put(&world.store(), &PACKAGE).id();
        let listing = world.store().layout().listing(id);
        let text = fs::read_to_string(&listing).unwrap();
        fs::remove_file(&listing).unwrap();
        fs::write(&listing, change(&text)).unwrap();
        let store = world.store();
        assert!(store.get(id).unwrap().is_none());
        let quarantined = store.take_quarantined();
        assert_eq!(quarantined.len(), 1);
        assert_eq!(quarantined[0].damage, Damage::Listing(expected));
        assert_eq!(store.take_quarantined(), []);
        assert_eq!(world.names("quarantine").len(), 1);
        put(&store, &PACKAGE);
        assert!(store.get(id).unwrap().is_some(), "fetched again");
    }

    #[test]
    fn a_listing_that_is_not_ours_is_never_trusted() {
        check_listing(|_| String::new(), ListingError::Header);
        check_listing(
            |text| text.replace("hooks/same", "hooks/sane"),
            ListingError::OtherTree,
        );
        check_listing(|text| format!("{text}x"), ListingError::Size { line: 7 });
    }

    #[test]
    fn a_listing_that_is_no_file_is_damage() {
        let world = World::new();
        let id = put(&world.store(), &PACKAGE).id();
        let listing = world.store().layout().listing(id);
        fs::rename(&listing, world.root().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink(world.root().join("elsewhere"), &listing).unwrap();
        let store = world.store();
        assert!(store.get(id).unwrap().is_none());
        let damage = &store.take_quarantined()[0].damage;
        assert_eq!(*damage, Damage::Listing(ListingError::NotAFile));
    }

    #[test]
    fn a_tree_of_this_boot_is_taken_without_a_look_at_its_files() {
        let world = World::new();
        let id = put(&world.store(), &PACKAGE).id();
        overwrite_hidden(&world.file(id, "README.md"), "ruin me");
        assert!(world.store().get(id).unwrap().is_some());
        assert!(!world.store().layout().tree(id).join(DURABLE).exists());
    }

    #[test]
    fn the_first_use_under_another_boot_reads_everything_once() {
        for boot in [Some("boot-2"), None] {
            let world = World::new();
            let id = put(&world.store(), &PACKAGE).id();
            let store = world.store_under(boot);
            assert!(store.get(id).unwrap().is_some());
            overwrite_hidden(&world.file(id, "README.md"), "ruin me");
            assert!(store.get(id).unwrap().is_some(), "marked as durable");
            fs::remove_file(store.layout().tree(id).join(DURABLE)).unwrap();
            assert!(store.get(id).unwrap().is_none());
        }
    }

    #[test]
    fn what_a_loss_of_power_emptied_is_quarantined_at_the_next_use() {
        let world = World::new();
        let id = put(&world.store(), &PACKAGE).id();
        overwrite_hidden(&world.file(id, "hooks/run.sh"), "");
        let store = world.store_under(Some("boot-2"));
        assert!(store.get(id).unwrap().is_none());
        let expected = DamagedTree {
            tree: id,
            damage: Damage::Files(vec![DamagedFile {
                path: relative("hooks/run.sh"),
                fault: Fault::Content,
            }]),
            quarantined: true,
        };
        assert_eq!(store.take_quarantined(), [expected]);
        let again = put(&store, &PACKAGE);
        assert_eq!(again.id(), id);
    }

    #[test]
    fn a_tree_written_under_a_boot_without_a_name_is_read_once() {
        let world = World::new();
        let id = put(&world.store_under(None), &PACKAGE).id();
        assert!(world.store_under(None).get(id).unwrap().is_some());
        assert!(world.store().layout().tree(id).join(DURABLE).is_file());
    }

    #[test]
    fn the_boot_is_that_of_the_system_where_it_has_a_name() {
        let world = World::new();
        let store = Store::new(world.root());
        assert_eq!(store.boot(), boot_id().as_deref());
        assert_eq!(world.store().boot(), Some(BOOT));
    }

    #[test]
    fn a_use_is_noted_once_a_day() {
        let world = World::new();
        let store = world.store();
        let id = put(&store, &PACKAGE).id();
        let listing = store.layout().listing(id);
        let since_noted = || age_of(store.used(id).unwrap()).unwrap();
        assert!(since_noted() < Duration::from_secs(3_600), "when stored");
        make_old(&listing, Duration::from_hours(23));
        store.get(id).unwrap().unwrap();
        assert!(since_noted() > Duration::from_hours(22));
        make_old(&listing, Duration::from_hours(25));
        store.get(id).unwrap().unwrap();
        assert!(since_noted() < Duration::from_hours(1));
        // A clock that was wrong once must not keep a tree for ever.
        set_seconds(&listing, 32_503_680_000);
        store.get(id).unwrap().unwrap();
        assert!(since_noted() < Duration::from_hours(1));
    }

    #[test]
    fn entries_are_the_stored_trees_and_nothing_else() {
        let world = World::new();
        let store = world.store();
        let mut ids = [
            put(&store, &PACKAGE).id(),
            put(&store, &[]).id(),
            put(&store, &PACKAGE[..1]).id(),
        ];
        ids.sort();
        fs::create_dir_all(world.at("trees/zz/strange")).unwrap();
        fs::write(world.at("trees/file"), "").unwrap();
        let entries = store.entries().unwrap();
        assert_eq!(entries.iter().map(|e| e.tree).collect::<Vec<_>>(), ids);
        let mut contents: Vec<_> = entries.iter().map(|e| (e.files, e.bytes)).collect();
        contents.sort_unstable();
        assert_eq!(contents, [(0, 0), (1, 7), (4, 15)]);
        assert!(
            entries
                .iter()
                .all(|e| age_of(e.used).unwrap() < Duration::from_hours(1))
        );
        overwrite_hidden(&store.layout().listing(ids[0]), "");
        assert_eq!(store.entries().unwrap().len(), 2);
    }

    #[test]
    fn a_peek_shows_sound_files_only_and_changes_nothing() {
        let world = World::new();
        let store = world.store();
        let id = put(&store, &PACKAGE).id();
        make_old(&store.layout().listing(id), Duration::from_hours(99));
        overwrite_hidden(&world.file(id, "hooks/same"), "ruin");
        let before = world.snapshot();
        let peek = |path: &str, limit| store.peek(id, &relative(path), limit);
        assert_eq!(peek("README.md", 7).unwrap(), b"read me");
        assert_eq!(peek("README.md", 6), None);
        assert_eq!(peek("hooks/same", 100), None, "other content");
        assert_eq!(peek("hooks", 100), None);
        assert_eq!(store.peek(Tree::default().id(), &relative("x"), 9), None);
        assert_eq!(world.snapshot(), before);
        assert_eq!(store.take_quarantined(), []);
        assert!(store.directory_of(id).join("listing").is_file());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_store_that_may_not_be_written_works_and_is_not_written() {
        use crate::testing::set_directories;
        use vibe_testkit::as_ordinary_user;
        as_ordinary_user(|| {
            let world = World::new();
            let id = put(&world.store(), &PACKAGE).id();
            make_old(
                &world.store().layout().listing(id),
                Duration::from_hours(99),
            );
            // A store that was never locked, for one thing more that is missing.
            fs::remove_file(world.at("lock")).unwrap();
            set_directories(&world.root(), 0o555);
            let before = world.snapshot();
            for boot in [Some(BOOT), Some("boot-2"), Some("boot-2")] {
                let store = world.store_under(boot);
                let _usage = store.use_shared().unwrap();
                let stored = store.get(id).unwrap().unwrap();
                assert!(stored.proved(&relative("a/b/c")).is_ok());
                assert_eq!(store.entries().unwrap().len(), 1);
                let verified = store.verify(&vibe_core::Cancellation::new()).unwrap();
                assert_eq!((verified.trees, verified.damaged.len()), (1, 0));
            }
            assert_eq!(world.snapshot(), before);
            set_directories(&world.root(), 0o755);
        });
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn damage_in_a_store_that_may_not_be_written_is_an_error_that_names_the_file() {
        use crate::testing::set_directories;
        use vibe_testkit::as_ordinary_user;
        as_ordinary_user(|| {
            let world = World::new();
            let stored = put(&world.store(), &PACKAGE);
            crate::testing::overwrite(&world.file(stored.id(), "README.md"), "other");
            set_directories(&world.root(), 0o555);
            let store = world.store_under(Some("boot-2"));
            for error in [
                store.get(stored.id()).unwrap_err(),
                stored.proved(&relative("README.md")).unwrap_err(),
            ] {
                let text = error.to_string();
                assert!(text.contains(&stored.id().to_string()), "{text}");
                assert!(
                    text.contains(
                        "`README.md` has other content; it cannot be moved out of use: remove /"
                    ),
                    "{text}"
                );
                assert!(!error.is_lost_tree());
            }
            let verified = store.verify(&vibe_core::Cancellation::new()).unwrap();
            assert!(!verified.damaged[0].quarantined);
            assert_eq!(store.take_quarantined(), []);
            set_directories(&world.root(), 0o755);
        });
    }
}
