//! Reading every byte of the store.

use rayon::prelude::*;
use vibe_core::{Cancellation, TreeId};

use crate::error::{Damage, DamagedFile, DamagedTree, Fault, StoreError};
use crate::quarantine::Verdict;
use crate::store::Store;
use crate::stored::{StoredFile, StoredTree, damaged};

/// What a look at everything found.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct VerifyOutcome {
    /// Trees that were read, damaged ones included.
    pub trees: usize,
    /// Files that were to be read in them.
    pub files: usize,
    /// The bytes these have by their listings.
    pub bytes: u64,
    /// The damaged trees, by identity.
    pub damaged: Vec<DamagedTree>,
    /// Whether the user interrupted before everything was read.
    pub cancelled: bool,
}

impl Store {
    /// Reads every file of every tree, several at a time, and moves damaged trees to quarantine.
    pub fn verify(&self, cancel: &Cancellation) -> Result<VerifyOutcome, StoreError> {
        let _usage = match self.exists()? {
            true => Some(self.use_shared()?),
            false => None,
        };
        let mut outcome = VerifyOutcome::default();
        for tree in self.trees()? {
            let damage = self.look_at(tree, cancel, &mut outcome)?;
            // What was read in part proves nothing.
            if cancel.is_cancelled() {
                outcome.cancelled = true;
                break;
            }
            if let Some(damage) = damage {
                outcome.damaged.extend(self.set_aside(tree, damage)?);
            }
        }
        Ok(outcome)
    }

    fn look_at(
        &self,
        tree: TreeId,
        cancel: &Cancellation,
        outcome: &mut VerifyOutcome,
    ) -> Result<Option<Damage>, StoreError> {
        let listing = match self.read_listing(tree)? {
            // A directory without a listing is no tree; nothing uses it.
            None => return Ok(None),
            Some(Err(error)) => {
                outcome.trees += 1;
                return Ok(Some(Damage::Listing(error)));
            }
            Some(Ok(listing)) => listing,
        };
        outcome.trees += 1;
        outcome.files += listing.sizes.len();
        outcome.bytes += listing.sizes.iter().sum::<u64>();
        let boot = listing.boot.clone();
        let stored = StoredTree::new(self.clone(), listing.tree, listing.sizes);
        let files = every_fault(&stored, cancel);
        if !files.is_empty() {
            return Ok(Some(Damage::Files(files)));
        }
        if !cancel.is_cancelled() && !self.is_settled(boot.as_deref(), tree)? {
            self.mark_durable(tree);
        }
        Ok(None)
    }

    fn set_aside(&self, tree: TreeId, damage: Damage) -> Result<Option<DamagedTree>, StoreError> {
        let quarantined = match is_proved(&damage) {
            false => false,
            true => match self.quarantine(tree, damage.clone())? {
                Verdict::Sound | Verdict::Gone => return Ok(None),
                Verdict::Moved => true,
                Verdict::Stuck(error) => {
                    tracing::debug!("{tree} stays where it is: {error}");
                    false
                }
            },
        };
        Ok(Some(DamagedTree {
            tree,
            damage,
            quarantined,
        }))
    }
}

fn every_fault(stored: &StoredTree, cancel: &Cancellation) -> Vec<DamagedFile> {
    let files: Vec<StoredFile<'_>> = stored.files().collect();
    files
        .par_iter()
        .filter(|_| !cancel.is_cancelled())
        .filter_map(|file| {
            let fault = match stored.fault_of(file) {
                Ok(fault) => fault?,
                Err(error) => Fault::Unreadable(error.to_string()),
            };
            Some(damaged(file, fault))
        })
        .collect()
}

/// Whether the damage is more than a failure to read.
fn is_proved(damage: &Damage) -> bool {
    match damage {
        Damage::Listing(_) => true,
        Damage::Files(files) => files
            .iter()
            .any(|file| !matches!(file.fault, Fault::Unreadable(_))),
    }
}
