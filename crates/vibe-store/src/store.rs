//! The store as a whole: looking trees up, beginning to add one, listing them.

use std::path::Path;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::time::{Duration, SystemTime};

use vibe_core::TreeId;
use vibe_core::limits::RECORD_BYTES;
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
                Some(Ok(listing)) => match self.accept(listing)? {
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
                    bytes: listing.sizes.iter().sum(),
                    used: self.used(tree)?,
                });
            }
        }
        Ok(entries)
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
    fn accept(&self, listing: Listing) -> Result<Result<StoredTree, Damage>, StoreError> {
        let boot = listing.boot.clone();
        let stored = StoredTree::new(self.clone(), listing.tree, listing.sizes);
        if !self.is_settled(boot.as_deref(), stored.id())? {
            let damaged = stored.damaged_files()?;
            if !damaged.is_empty() {
                return Ok(Err(Damage::Files(damaged)));
            }
            self.mark_durable(stored.id());
        }
        self.note_use(stored.id());
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

/// What is in the directory `path`; nothing if it is absent.
pub(crate) fn list_or_nothing(path: &Path) -> Result<Vec<RawEntry>, StoreError> {
    match list_dir(path) {
        Err(error) if error.is_not_found() => Ok(Vec::new()),
        listed => Ok(listed?),
    }
}
