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
        outcome.bytes = outcome.bytes.saturating_add(listing.bytes());
        let boot = listing.boot.clone();
        let stored = StoredTree::new(self.clone(), tree, listing);
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

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{PACKAGE, World, overwrite, overwrite_hidden, put, relative};
    use std::fs;

    fn verify(world: &World) -> VerifyOutcome {
        world.store().verify(&Cancellation::new()).unwrap()
    }

    #[test]
    fn a_whole_store_is_read_and_left_alone() {
        let world = World::new();
        assert_eq!(verify(&world), VerifyOutcome::default());
        assert!(!world.root().exists());
        put(&world.store(), &PACKAGE);
        put(&world.store(), &PACKAGE[..1]);
        let before = world.snapshot();
        let outcome = verify(&world);
        assert_eq!((outcome.trees, outcome.files, outcome.bytes), (2, 5, 22));
        assert_eq!((outcome.damaged, outcome.cancelled), (Vec::new(), false));
        assert_eq!(world.snapshot(), before);
    }

    #[test]
    fn damage_that_hides_is_found_file_by_file_and_moved_away() {
        let world = World::new();
        let store = world.store();
        let (bad, good) = (put(&store, &PACKAGE).id(), put(&store, &PACKAGE[..1]).id());
        overwrite_hidden(&world.file(bad, "README.md"), "ruin me");
        fs::remove_file(world.file(bad, "hooks/run.sh")).unwrap();
        let outcome = verify(&world);
        let file = |path, fault| DamagedFile {
            path: relative(path),
            fault,
        };
        let expected = DamagedTree {
            tree: bad,
            damage: Damage::Files(vec![
                file("README.md", Fault::Content),
                file("hooks/run.sh", Fault::Missing),
            ]),
            quarantined: true,
        };
        assert_eq!(outcome.damaged, [expected]);
        assert_eq!(
            outcome.damaged[0].damage.to_string(),
            "`README.md` has other content, and 1 more"
        );
        assert!(store.get(bad).unwrap().is_none());
        assert!(store.get(good).unwrap().is_some());
        assert_eq!(verify(&world).damaged, []);
    }

    #[test]
    fn a_listing_that_cannot_be_used_is_damage() {
        let world = World::new();
        let id = put(&world.store(), &PACKAGE).id();
        overwrite(&world.store().layout().listing(id), "nonsense");
        let damaged = verify(&world).damaged;
        assert_eq!(damaged.len(), 1);
        assert!(damaged[0].quarantined);
        assert_eq!(
            damaged[0].damage.to_string(),
            "its listing does not begin as a listing does"
        );
    }

    #[test]
    fn an_interrupted_look_says_so_and_moves_nothing() {
        let world = World::new();
        let id = put(&world.store(), &PACKAGE).id();
        overwrite(&world.file(id, "README.md"), "ruin me");
        let cancel = Cancellation::new();
        cancel.interrupt();
        let outcome = world.store().verify(&cancel).unwrap();
        assert!(outcome.cancelled && outcome.damaged.is_empty());
        assert_eq!(world.names("quarantine"), [""; 0]);
    }

    #[test]
    fn reading_after_a_reboot_marks_a_tree_as_durable() {
        let world = World::new();
        let id = put(&world.store(), &PACKAGE).id();
        let mark = world.store().layout().tree(id).join("durable");
        verify(&world);
        assert!(!mark.exists(), "what this boot wrote may not be on disk");
        let later = world.store_under(Some("boot-2"));
        later.verify(&Cancellation::new()).unwrap();
        assert!(mark.is_file());
    }

    #[test]
    fn a_failure_to_read_is_told_and_nothing_is_moved_for_it() {
        let unreadable = |path| DamagedFile {
            path: relative(path),
            fault: Fault::Unreadable("no".to_owned()),
        };
        assert!(!is_proved(&Damage::Files(vec![unreadable("a")])));
        let missing = DamagedFile {
            path: relative("b"),
            fault: Fault::Missing,
        };
        assert!(is_proved(&Damage::Files(vec![unreadable("a"), missing])));
    }
}
