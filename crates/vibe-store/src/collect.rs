//! Removing: what nobody has used for long, and everything.

use std::path::Path;
use std::time::Duration;

use vibe_core::{Cancellation, TreeId};
use vibe_fs::{
    EntryKind, FileLock, LockOutcome, bytes_below, remove_empty_directory, remove_file_if,
    remove_tree, stat_of,
};

use crate::error::StoreError;
use crate::layout::{OWN_NAMES, VERSION_DIRECTORY, digits};
use crate::staged::sweep;
use crate::store::{Store, age_of, list_or_nothing};
use crate::usage::{exclusive, try_exclusive};

/// Where the file system has no locks, a tree used within this time may be in use now.
const SAFE_AGE: Duration = Duration::from_hours(48);
/// Directories above a single tree in quarantine, at most: all trees moved there at once, and a
/// shard. Between two trees a removal can be interrupted.
const LEVELS: usize = 2;

/// What garbage collection keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GcPolicy {
    /// Trees that were not used for longer are removed.
    pub unused_for: Duration,
}

/// What garbage collection did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GcOutcome {
    /// The trees that were removed, by identity.
    pub removed: Vec<TreeId>,
    /// The bytes of their files, by their listings.
    pub bytes: u64,
    /// How many trees stay.
    pub kept: usize,
    /// Directories that killed runs had left in staging.
    pub staging: usize,
    /// Damaged trees that were in quarantine.
    pub quarantined: usize,
    /// The bytes of what was in staging and in quarantine.
    pub rubbish_bytes: u64,
    /// Whether another run uses the store, so that no tree was removed.
    pub in_use: bool,
    /// Whether the user interrupted before all was removed.
    pub interrupted: bool,
}

/// What cleaning removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct CleanOutcome {
    /// How many trees there were.
    pub trees: usize,
    /// The bytes of their files, by their listings.
    pub bytes: u64,
    /// The bytes of what was in staging and in quarantine.
    pub rubbish_bytes: u64,
    /// Whether the user interrupted before all was removed. No tree is left then, only rubbish.
    pub interrupted: bool,
}

impl Store {
    /// Removes the trees that `policy` does not keep, what killed runs left, and what is in
    /// quarantine. Never waits for a run that uses the store: then no tree is removed. What an
    /// interrupt leaves lies in quarantine.
    ///
    /// # Errors
    /// Something cannot be listed, moved or removed.
    pub fn gc(&self, policy: GcPolicy, cancel: &Cancellation) -> Result<GcOutcome, StoreError> {
        let mut outcome = GcOutcome::default();
        if !self.exists()? {
            return Ok(outcome);
        }
        let swept = sweep(&self.layout().staging)?;
        let quarantine = &self.layout().quarantine;
        outcome.staging = swept.directories;
        outcome.quarantined = list_or_nothing(quarantine)?.len();
        outcome.rubbish_bytes = swept.bytes.saturating_add(bytes_below(quarantine));
        match try_exclusive(&self.layout().lock, "vibe cache gc")? {
            LockOutcome::Busy => outcome.in_use = true,
            LockOutcome::Held(_lock) => self.take_out(policy.unused_for, cancel, &mut outcome)?,
            LockOutcome::Unsupported => {
                self.take_out(policy.unused_for.max(SAFE_AGE), cancel, &mut outcome)?;
            }
        }
        outcome.kept = self.trees()?.len();
        outcome.interrupted |= !remove_below(quarantine, LEVELS, cancel)?;
        Ok(outcome)
    }

    /// Moves the trees not used within `age` to quarantine, which takes one rename each.
    fn take_out(
        &self,
        age: Duration,
        cancel: &Cancellation,
        outcome: &mut GcOutcome,
    ) -> Result<(), StoreError> {
        let _moving = exclusive(&self.layout().quarantine_lock, "vibe cache gc")?;
        for tree in self.trees()? {
            if cancel.is_cancelled() {
                outcome.interrupted = true;
                break;
            }
            if age_of(self.used(tree)?).is_none_or(|unused| unused < age) {
                continue;
            }
            let bytes = self.bytes_of(tree)?;
            self.take_away(&self.layout().tree(tree), &digits(tree))?;
            outcome.bytes = outcome.bytes.saturating_add(bytes);
            outcome.removed.push(tree);
        }
        Ok(())
    }

    /// The bytes of the files of `tree`, if its listing can be used.
    fn bytes_of(&self, tree: TreeId) -> Result<u64, StoreError> {
        Ok(match self.read_listing(tree)? {
            Some(Ok(listing)) => listing.bytes(),
            None | Some(Err(_)) => 0,
        })
    }

    /// Removes everything that is ours below the root, and the root if it is empty then. Nothing is
    /// removed if anything there is not part of a store, or another run uses it. Stores of another
    /// layout stay.
    ///
    /// # Errors
    /// [`StoreError::NotAStore`], [`StoreError::InUse`]; something cannot be moved or removed.
    pub fn clean(&self, cancel: &Cancellation) -> Result<CleanOutcome, StoreError> {
        let layout = self.layout();
        let mut outcome = CleanOutcome::default();
        check_names(&layout.root, is_layout)?;
        match stat_of(&layout.base)?.map(|stat| stat.kind) {
            Some(EntryKind::Directory) => {}
            Some(_) => {
                let path = layout.base.clone();
                return Err(StoreError::NotAStore { path });
            }
            None => {
                remove_empty_directory(&layout.root)?;
                return Ok(outcome);
            }
        }
        check_names(&layout.base, |name| OWN_NAMES.contains(&name))?;
        let lock: Option<FileLock> = match try_exclusive(&layout.lock, "vibe cache clean")? {
            LockOutcome::Held(lock) => Some(lock),
            LockOutcome::Unsupported => None,
            LockOutcome::Busy => {
                return Err(StoreError::InUse {
                    root: layout.root.clone(),
                });
            }
        };
        for tree in self.trees()? {
            outcome.trees += 1;
            outcome.bytes = outcome.bytes.saturating_add(self.bytes_of(tree)?);
        }
        let rubbish = [&layout.quarantine, &layout.staging];
        outcome.rubbish_bytes = rubbish.map(|path| bytes_below(path)).iter().sum();
        // One rename: killed in the middle, this leaves no tree that lacks files.
        if stat_of(&layout.trees)?.is_some() {
            self.take_away(&layout.trees, "trees")?;
        }
        for directory in rubbish {
            if !remove_below(directory, LEVELS, cancel)? {
                outcome.interrupted = true;
                return Ok(outcome);
            }
            remove_tree(directory)?;
        }
        for file in [&layout.quarantine_lock, &layout.lock] {
            remove_file_if(file, |_| true)?;
        }
        drop(lock);
        remove_empty_directory(&layout.base)?;
        remove_empty_directory(&layout.root)?;
        Ok(outcome)
    }
}

/// Removes what is in `directory`, one by one down to `levels` below it, until the user interrupts;
/// whether all of it was removed.
fn remove_below(
    directory: &Path,
    levels: usize,
    cancel: &Cancellation,
) -> Result<bool, StoreError> {
    for entry in list_or_nothing(directory)? {
        if cancel.is_cancelled() {
            return Ok(false);
        }
        let path = directory.join(&entry.relative);
        let is_directory = entry.stat.kind == EntryKind::Directory;
        // What cannot be listed is opened up, or named, when it is removed as a whole.
        let is_divided = levels > 0 && is_directory && list_or_nothing(&path).is_ok();
        if is_divided && !remove_below(&path, levels - 1, cancel)? {
            return Ok(false);
        }
        discard(&path)?;
    }
    Ok(true)
}

/// Removes `path`, which another run may be removing as well.
fn discard(path: &Path) -> Result<(), StoreError> {
    match remove_tree(path) {
        Err(error) if error.source.is_not_found() => Ok(()),
        outcome => Ok(outcome?),
    }
}

/// Fails with the first entry of `directory` whose name is not `ours`; an absent one has none.
fn check_names(directory: &Path, ours: impl Fn(&str) -> bool) -> Result<(), StoreError> {
    for entry in list_or_nothing(directory)? {
        if !entry.relative.to_str().is_some_and(&ours) {
            return Err(StoreError::NotAStore {
                path: directory.join(entry.relative),
            });
        }
    }
    Ok(())
}

/// Whether `name` is the directory of some layout: `v` and a number.
fn is_layout(name: &str) -> bool {
    let number = name.strip_prefix('v').unwrap_or_default();
    name == VERSION_DIRECTORY || (!number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{PACKAGE, World, make_old, overwrite, put, relative};
    use std::fs;
    use std::sync::atomic::{AtomicUsize, Ordering};

    const DAY: Duration = Duration::from_hours(24);

    fn gc(world: &World, days: u32) -> GcOutcome {
        let unused_for = DAY * days;
        let policy = GcPolicy { unused_for };
        world.store().gc(policy, &Cancellation::new()).unwrap()
    }

    fn make_unused(world: &World, tree: TreeId, days: u32) {
        make_old(&world.store().layout().listing(tree), DAY * days);
    }

    #[test]
    fn a_store_that_does_not_exist_is_not_made() {
        let world = World::new();
        assert_eq!(gc(&world, 0), GcOutcome::default());
        world.store().clean(&Cancellation::new()).unwrap();
        assert!(!world.root().exists());
    }

    #[test]
    fn only_trees_unused_for_long_enough_are_removed() {
        let world = World::new();
        let store = world.store();
        let (old, new) = (put(&store, &PACKAGE).id(), put(&store, &PACKAGE[..1]).id());
        make_unused(&world, old, 31);
        make_unused(&world, new, 29);
        let outcome = gc(&world, 30);
        let expected = GcOutcome {
            removed: vec![old],
            bytes: 15,
            kept: 1,
            ..GcOutcome::default()
        };
        assert_eq!(outcome, expected);
        assert!(store.get(old).unwrap().is_none());
        assert!(store.get(new).unwrap().is_some());
        assert_eq!(world.names("quarantine"), [""; 0]);
        put(&store, &PACKAGE);
        assert!(store.get(old).unwrap().is_some(), "fetched again");
    }

    #[test]
    fn a_use_keeps_a_tree() {
        let world = World::new();
        let id = put(&world.store(), &PACKAGE).id();
        make_unused(&world, id, 31);
        world.store().get(id).unwrap().unwrap();
        assert_eq!(gc(&world, 30).removed, []);
    }

    #[test]
    fn rubbish_goes_and_work_in_progress_stays() {
        let world = World::new();
        let store = world.store();
        let damaged = put(&store, &PACKAGE);
        overwrite(&world.file(damaged.id(), "README.md"), "ruin me");
        assert!(damaged.proved(&relative("README.md")).is_err());
        let staged = store.stage().unwrap();
        fs::create_dir(world.at("staging/dead")).unwrap();
        fs::write(world.at("staging/dead/owner"), "").unwrap();
        fs::write(world.at("staging/dead/file"), "half").unwrap();
        let quarantined = bytes_below(&world.at("quarantine"));
        assert!(quarantined > 15, "{quarantined}");
        let outcome = gc(&world, 30);
        assert_eq!((outcome.staging, outcome.quarantined), (1, 1));
        assert_eq!(outcome.rubbish_bytes, quarantined + 4);
        assert!(outcome.in_use, "the tree in staging is being added");
        assert_eq!(world.names("quarantine"), [""; 0]);
        staged.finish().unwrap();
    }

    #[test]
    fn nothing_is_removed_while_another_run_uses_the_store() {
        let world = World::new();
        let id = put(&world.store(), &PACKAGE).id();
        make_unused(&world, id, 99);
        let usage = world.store().use_shared().unwrap();
        let outcome = gc(&world, 0);
        assert!(outcome.in_use);
        assert_eq!((outcome.removed.len(), outcome.kept), (0, 1));
        let error = world.store().clean(&Cancellation::new()).unwrap_err();
        assert!(matches!(error, StoreError::InUse { .. }), "{error}");
        assert!(world.store().get(id).unwrap().is_some());
        drop(usage);
        assert_eq!(gc(&world, 0).removed, [id]);
    }

    #[test]
    fn garbage_is_collected_beside_running_installs() {
        let world = World::new();
        let collected = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            let install = |run: usize| {
                for round in 0..20 {
                    let store = world.store();
                    let usage = store.use_shared().unwrap();
                    let files = &PACKAGE[..1 + (run + round) % 4];
                    let stored = put(&store, files);
                    assert!(store.get(stored.id()).unwrap().is_some());
                    for (path, content, _) in files {
                        let place = stored.proved(&relative(path)).unwrap();
                        assert_eq!(fs::read_to_string(place).unwrap(), *content);
                    }
                    drop(usage);
                }
            };
            let runs = [0, 1, 2, 3].map(|run| scope.spawn(move || install(run)));
            let collect = || {
                while !runs.iter().all(|run| run.is_finished()) {
                    collected.fetch_add(gc(&world, 0).removed.len(), Ordering::Relaxed);
                }
            };
            std::thread::scope(|collectors| {
                collectors.spawn(collect);
                collectors.spawn(collect);
            });
        });
        collected.fetch_add(gc(&world, 0).removed.len(), Ordering::Relaxed);
        assert!(collected.into_inner() > 0, "nothing was ever collected");
        assert_eq!(world.store().entries().unwrap(), []);
        assert_eq!(world.names("staging"), [""; 0]);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_cannot_be_removed_is_named() {
        vibe_testkit::as_ordinary_user(|| {
            let world = World::new();
            let damaged = put(&world.store(), &PACKAGE);
            overwrite(&world.file(damaged.id(), "README.md"), "ruin me");
            assert!(damaged.proved(&relative("README.md")).is_err());
            vibe_testkit::set_mode(&world.at("quarantine"), 0o555);
            let policy = GcPolicy { unused_for: DAY };
            let error = world
                .store()
                .gc(policy, &Cancellation::new())
                .unwrap_err()
                .to_string();
            assert!(error.starts_with("could not remove /"), "{error}");
            assert!(error.contains("quarantine"), "{error}");
            vibe_testkit::set_mode(&world.at("quarantine"), 0o755);
        });
    }

    #[test]
    fn cleaning_removes_everything_that_is_ours() {
        let world = World::new();
        let store = world.store();
        let damaged = put(&store, &PACKAGE);
        overwrite(&world.file(damaged.id(), "README.md"), "ruin me");
        assert!(damaged.proved(&relative("README.md")).is_err());
        put(&store, &PACKAGE);
        let outcome = store.clean(&Cancellation::new()).unwrap();
        assert_eq!((outcome.trees, outcome.bytes), (1, 15));
        assert!(
            outcome.rubbish_bytes > 15 && !outcome.interrupted,
            "{outcome:?}"
        );
        assert!(!world.root().exists());
        assert!(world.root().parent().unwrap().is_dir());
        put(&store, &PACKAGE);
        assert_eq!(store.entries().unwrap().len(), 1);
    }

    #[test]
    fn an_interrupted_removal_leaves_rubbish_and_no_tree_that_lacks_files() {
        let interrupted = Cancellation::new();
        interrupted.interrupt();
        let world = World::new();
        let store = world.store();
        let id = put(&store, &PACKAGE).id();
        let policy = GcPolicy {
            unused_for: Duration::ZERO,
        };
        let outcome = store.gc(policy, &interrupted).unwrap();
        assert_eq!((outcome.removed.len(), outcome.kept), (0, 1));
        assert!(outcome.interrupted && store.get(id).unwrap().is_some());
        assert!(store.clean(&interrupted).unwrap().interrupted);
        assert!(store.get(id).unwrap().is_none());
        assert_eq!(world.names("quarantine").len(), 1);
        assert!(store.gc(policy, &interrupted).unwrap().interrupted);
        assert_eq!(gc(&world, 30).quarantined, 1);
        assert_eq!(world.names("quarantine"), [""; 0]);
    }

    #[test]
    fn a_store_of_another_layout_is_not_cleaned() {
        let world = World::new();
        put(&world.store(), &PACKAGE);
        fs::create_dir(world.root().join("v2")).unwrap();
        world.store().clean(&Cancellation::new()).unwrap();
        assert!(world.root().join("v2").is_dir() && !world.at("").exists());
    }

    #[test]
    fn a_place_that_holds_something_else_is_not_cleaned() {
        for strange in ["notes.txt", "v", "v1x", "v1/notes.txt"] {
            let world = World::new();
            let id = put(&world.store(), &PACKAGE).id();
            let path = world.root().join(strange);
            fs::write(&path, "mine").unwrap();
            let error = world.store().clean(&Cancellation::new()).unwrap_err();
            assert!(error.to_string().contains(strange), "{error}");
            assert!(path.is_file() && world.store().get(id).unwrap().is_some());
        }
    }

    #[test]
    fn a_link_in_the_place_of_a_store_is_not_cleaned() {
        let world = World::new();
        let other = World::new();
        put(&other.store(), &PACKAGE);
        fs::create_dir_all(world.root()).unwrap();
        std::os::unix::fs::symlink(other.at(""), world.root().join("v1")).unwrap();
        let error = world.store().clean(&Cancellation::new()).unwrap_err();
        assert!(matches!(error, StoreError::NotAStore { .. }), "{error}");
        assert_eq!(other.store().entries().unwrap().len(), 1);
    }

    #[test]
    fn a_store_that_was_cleaned_is_locked_anew() {
        let world = World::new();
        put(&world.store(), &PACKAGE);
        world.store().clean(&Cancellation::new()).unwrap();
        let id = put(&world.store(), &PACKAGE).id();
        let usage = world.store().use_shared().unwrap();
        assert!(gc(&world, 0).in_use);
        drop(usage);
        assert_eq!(gc(&world, 0).removed, [id]);
    }
}
