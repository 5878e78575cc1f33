//! Moving a tree out of use.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use vibe_core::TreeId;
use vibe_fs::{FsError, create_directory_all, may_write, remove_tree, rename_over, stat_of};

use crate::error::{Damage, DamagedTree, StoreError};
use crate::layout::digits;
use crate::listing::ListingError;
use crate::store::Store;
use crate::stored::StoredTree;
use crate::usage::exclusive;

/// What became of a tree that was found damaged.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It is in quarantine.
    Moved,
    /// Somebody else moved or removed it.
    Gone,
    /// It is whole: somebody else replaced it.
    Sound,
    /// It cannot be moved.
    Stuck(FsError),
}

impl Store {
    /// Moves `tree` to quarantine if the `damage` is still there when nobody else moves trees.
    pub(crate) fn quarantine(&self, tree: TreeId, damage: Damage) -> Result<Verdict, StoreError> {
        let base = &self.layout().base;
        if !may_write(base) {
            let denied = ErrorKind::PermissionDenied;
            return Ok(Verdict::Stuck(FsError::new(
                "write in",
                base,
                denied.into(),
            )));
        }
        let _lock = exclusive(&self.layout().quarantine_lock, "vibe")?;
        match self.still_damaged(tree, &damage)? {
            None => return Ok(Verdict::Gone),
            Some(false) => return Ok(Verdict::Sound),
            Some(true) => {}
        }
        if let Err(error) = self.take_away(&self.layout().tree(tree), &digits(tree)) {
            return Ok(Verdict::Stuck(error));
        }
        tracing::debug!("{tree} was moved to quarantine: {damage}");
        self.quarantined().push(DamagedTree {
            tree,
            damage,
            quarantined: true,
        });
        Ok(Verdict::Moved)
    }

    /// Takes the directory `path` out of use at once, by a rename into quarantine under `stem`. A
    /// directory from a lower layer of an overlay cannot be renamed; it is removed where it is.
    pub(crate) fn take_away(&self, path: &Path, stem: &str) -> Result<(), FsError> {
        let target = self.free_quarantine_name(stem)?;
        match rename_over(path, &target) {
            Err(error) if error.kind() == ErrorKind::CrossesDevices => {
                remove_tree(path).map_err(|left| left.source)
            }
            outcome => outcome,
        }
    }

    /// A name in quarantine that is free, and that no other process chooses.
    fn free_quarantine_name(&self, stem: &str) -> Result<PathBuf, FsError> {
        let quarantine = &self.layout().quarantine;
        create_directory_all(quarantine)?;
        let process = std::process::id();
        let mut number = 1_usize;
        loop {
            let path = quarantine.join(format!("{stem}-{process}-{number}"));
            if stat_of(&path)?.is_none() {
                return Ok(path);
            }
            number += 1;
        }
    }

    /// Whether the `damage` is there now; `None` if the tree is not.
    fn still_damaged(&self, tree: TreeId, damage: &Damage) -> Result<Option<bool>, StoreError> {
        if stat_of(&self.layout().tree(tree))?.is_none() {
            return Ok(None);
        }
        let listing = match self.read_listing(tree)? {
            None | Some(Err(_)) => return Ok(Some(true)),
            Some(Ok(listing)) => listing,
        };
        let Damage::Files(files) = damage else {
            return Ok(Some(false));
        };
        let stored = StoredTree::new(self.clone(), tree, listing);
        for file in files.iter().filter_map(|file| stored.file(&file.path)) {
            if stored.fault_of(&file)?.is_some() {
                return Ok(Some(true));
            }
        }
        Ok(Some(false))
    }

    /// The error of a damaged tree that cannot be moved away because of `source`.
    pub(crate) fn damaged_for_good(
        &self,
        tree: TreeId,
        damage: Damage,
        source: FsError,
    ) -> StoreError {
        StoreError::DamagedForGood {
            tree,
            damage,
            directory: self.layout().tree(tree),
            source,
        }
    }

    /// Moves away what lies where `tree` belongs and is no tree.
    pub(crate) fn clear_place_of(&self, tree: TreeId) -> Result<(), StoreError> {
        let damage = Damage::Listing(ListingError::Missing);
        match self.quarantine(tree, damage.clone())? {
            Verdict::Stuck(source) => Err(self.damaged_for_good(tree, damage, source)),
            Verdict::Moved | Verdict::Gone | Verdict::Sound => Ok(()),
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use crate::testing::{PACKAGE, World, overwrite, put, relative};

    #[test]
    fn a_tree_that_is_damaged_again_is_kept_beside_the_earlier_ones() {
        let world = World::new();
        for count in 1..=3 {
            let stored = put(&world.store(), &PACKAGE);
            overwrite(&world.file(stored.id(), "README.md"), "ruin me");
            assert!(stored.proved(&relative("README.md")).is_err());
            assert_eq!(world.names("quarantine").len(), count);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_tree_that_cannot_be_moved_stays_as_it_is() {
        use vibe_testkit::{as_ordinary_user, set_mode};
        as_ordinary_user(|| {
            let world = World::new();
            let stored = put(&world.store(), &PACKAGE);
            let place = world.file(stored.id(), "README.md");
            overwrite(&place, "ruin me");
            std::fs::create_dir(world.at("quarantine")).unwrap();
            set_mode(&world.at("quarantine"), 0o555);
            let error = stored.proved(&relative("README.md")).unwrap_err();
            assert!(error.to_string().contains("cannot be moved out of use"));
            assert_eq!(std::fs::read_to_string(&place).unwrap(), "ruin me");
            assert_eq!(stored.damaged_files().unwrap().len(), 1, "nothing else");
            set_mode(&world.at("quarantine"), 0o755);
        });
    }
}
