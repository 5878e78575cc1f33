//! Removing: what nobody has used for long, and everything.

use std::path::Path;
use std::time::Duration;

use vibe_core::TreeId;
use vibe_fs::{
    FileLock, remove_empty_directory, remove_file_if, remove_tree, rename_over, stat_of,
};

use crate::error::StoreError;
use crate::layout::{OWN_NAMES, VERSION_DIRECTORY};
use crate::staged::sweep;
use crate::store::{Store, age_of, list_or_nothing};
use crate::usage::{Attempt, exclusive, try_exclusive};

/// Where the file system has no locks, a tree used within this time may be in use now.
const SAFE_AGE: Duration = Duration::from_hours(48);

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
    /// Whether another run uses the store, so that no tree was removed.
    pub in_use: bool,
}

impl Store {
    /// Removes the trees that `policy` does not keep, what killed runs left, and what is in
    /// quarantine. Never waits for a run that uses the store: then no tree is removed.
    pub fn gc(&self, policy: GcPolicy) -> Result<GcOutcome, StoreError> {
        let mut outcome = GcOutcome::default();
        if !self.exists()? {
            return Ok(outcome);
        }
        outcome.staging = sweep(&self.layout().staging)?;
        outcome.quarantined = list_or_nothing(&self.layout().quarantine)?.len();
        let trees = self.trees()?;
        match try_exclusive(&self.layout().lock, "vibe cache gc")? {
            Attempt::Busy => outcome.in_use = true,
            Attempt::Held(_lock) => self.take_out(&trees, policy.unused_for, &mut outcome)?,
            Attempt::Unlocked => {
                let age = policy.unused_for.max(SAFE_AGE);
                self.take_out(&trees, age, &mut outcome)?;
            }
        }
        outcome.kept = trees.len() - outcome.removed.len();
        for entry in list_or_nothing(&self.layout().quarantine)? {
            remove_tree(&self.layout().quarantine.join(entry.relative))?;
        }
        Ok(outcome)
    }

    /// Moves the trees not used within `age` to quarantine, which takes one rename each.
    fn take_out(
        &self,
        trees: &[TreeId],
        age: Duration,
        outcome: &mut GcOutcome,
    ) -> Result<(), StoreError> {
        let _moving = exclusive(&self.layout().quarantine_lock, "vibe cache gc")?;
        for &tree in trees {
            if age_of(self.used(tree)?).is_none_or(|unused| unused < age) {
                continue;
            }
            let bytes = match self.read_listing(tree)? {
                Some(Ok(listing)) => listing.sizes.iter().sum(),
                None | Some(Err(_)) => 0,
            };
            match self.move_away(tree) {
                Ok(()) => {}
                // Moved by a run without locks.
                Err(error) if error.is_not_found() => continue,
                Err(error) => return Err(error.into()),
            }
            outcome.bytes += bytes;
            outcome.removed.push(tree);
        }
        Ok(())
    }

    /// Removes everything that is ours below the root, and the root if it is empty then. Nothing is
    /// removed if anything there is not part of a store, or another run uses it. Stores of another
    /// layout stay.
    pub fn clean(&self) -> Result<(), StoreError> {
        let layout = self.layout();
        check_names(&layout.root, is_layout)?;
        if stat_of(&layout.base)?.is_none() {
            return Ok(());
        }
        check_names(&layout.base, |name| OWN_NAMES.contains(&name))?;
        let lock: Option<FileLock> = match try_exclusive(&layout.lock, "vibe cache clean")? {
            Attempt::Held(lock) => Some(lock),
            Attempt::Unlocked => None,
            Attempt::Busy => {
                return Err(StoreError::InUse {
                    root: layout.root.clone(),
                });
            }
        };
        // One rename: killed in the middle, this leaves no tree that lacks files.
        if stat_of(&layout.trees)?.is_some() {
            let away = self.free_quarantine_name("trees")?;
            rename_over(&layout.trees, &away)?;
        }
        for directory in [&layout.quarantine, &layout.staging] {
            remove_tree(directory)?;
        }
        for file in [&layout.quarantine_lock, &layout.lock] {
            remove_file_if(file, |_| true)?;
        }
        drop(lock);
        remove_empty_directory(&layout.base)?;
        remove_empty_directory(&layout.root)?;
        Ok(())
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
