//! From a payload source to one new file: linked, cloned or copied, in the way that is wanted or, where
//! the file system does not give that, in the next best one. What really happened is counted.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use vibe_core::formats::state::LinkMode;
use vibe_core::{RelPath, Sha256Digest, SlotName};
use vibe_fs::{CloneMethod, LinkError};

use crate::error::SlotError;
use crate::source::{PayloadError, PayloadSource, Proof};

/// Files that should have been linked and were copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fallback {
    /// How many.
    pub files: usize,
    /// Why the first of them could not be linked: what the system said.
    pub because: String,
}

/// Makes files of one slot. Used by several threads.
pub(crate) struct Materializer<'a> {
    slot: &'a SlotName,
    source: &'a dyn PayloadSource,
    wanted: LinkMode,
    proof: Proof,
    linked: AtomicUsize,
    shared: AtomicUsize,
    copied: AtomicUsize,
    /// The file system does not share blocks, so asking again is no use.
    never_shares: AtomicBool,
    no_link: Mutex<Option<String>>,
}

impl<'a> Materializer<'a> {
    pub(crate) fn new(
        slot: &'a SlotName,
        source: &'a dyn PayloadSource,
        wanted: LinkMode,
        proof: Proof,
    ) -> Self {
        Self {
            slot,
            source,
            wanted,
            proof,
            linked: AtomicUsize::new(0),
            shared: AtomicUsize::new(0),
            copied: AtomicUsize::new(0),
            never_shares: AtomicBool::new(false),
            no_link: Mutex::new(None),
        }
    }

    /// Makes the new file `target`, which is `path` of the package.
    pub(crate) fn make(
        &self,
        target: &Path,
        path: &RelPath,
        sha256: Sha256Digest,
        exec: bool,
    ) -> Result<(), SlotError> {
        let failed = |error| self.failed(path, error);
        match self.source.proved(path, self.proof).map_err(failed)? {
            Some(stored) => self.make_from(&stored, target, exec),
            None => self.copy_checked(target, path, sha256, exec),
        }
    }

    fn failed(&self, path: &RelPath, error: PayloadError) -> SlotError {
        SlotError::Source {
            slot: Box::new(self.slot.clone()),
            path: path.clone(),
            source: Box::new(error),
        }
    }

    fn make_from(&self, stored: &Path, target: &Path, exec: bool) -> Result<(), SlotError> {
        if self.wanted == LinkMode::Hardlink {
            match vibe_fs::hard_link(stored, target) {
                Ok(()) => {
                    self.linked.fetch_add(1, Ordering::Relaxed);
                    return Ok(());
                }
                Err(LinkError::Fs(error)) => return Err(error.into()),
                Err(LinkError::Impossible(error)) => {
                    let mut no_link = self.no_link.lock().unwrap_or_else(|e| e.into_inner());
                    no_link.get_or_insert_with(|| error.source.to_string());
                }
            }
        }
        self.clone(stored, target, exec)
    }

    fn clone(&self, stored: &Path, target: &Path, exec: bool) -> Result<(), SlotError> {
        let method = if self.never_shares.load(Ordering::Relaxed) {
            vibe_fs::copy_file(stored, target, exec)?;
            CloneMethod::Copy
        } else {
            vibe_fs::clone_file(stored, target, exec)?
        };
        match method {
            CloneMethod::Reflink => self.shared.fetch_add(1, Ordering::Relaxed),
            CloneMethod::Copy => {
                self.never_shares.store(true, Ordering::Relaxed);
                self.copied.fetch_add(1, Ordering::Relaxed)
            }
        };
        Ok(())
    }

    fn copy_checked(
        &self,
        target: &Path,
        path: &RelPath,
        sha256: Sha256Digest,
        exec: bool,
    ) -> Result<(), SlotError> {
        let opened = self.source.open(path);
        let mut reader = opened.map_err(|error| self.failed(path, error))?;
        let found = vibe_fs::copy_hashed(&mut reader, target, exec, self.source.file_bytes())?;
        if found != sha256 {
            return Err(SlotError::Changed {
                slot: Box::new(self.slot.clone()),
                path: path.clone(),
            });
        }
        self.copied.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// The way in which the files were made: the one in which any was linked, or in which all share
    /// blocks.
    pub(crate) fn mode(&self) -> LinkMode {
        let count = |of: &AtomicUsize| of.load(Ordering::Relaxed);
        match (
            count(&self.linked),
            count(&self.shared),
            count(&self.copied),
        ) {
            (1.., _, _) => LinkMode::Hardlink,
            (0, 1.., 0) => LinkMode::Reflink,
            _ => LinkMode::Copy,
        }
    }

    /// What was to be linked and was not.
    pub(crate) fn fallback(&self) -> Option<Fallback> {
        let no_link = self.no_link.lock().unwrap_or_else(|e| e.into_inner());
        let files = self.shared.load(Ordering::Relaxed) + self.copied.load(Ordering::Relaxed);
        no_link.clone().map(|because| Fallback { files, because })
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::{place, refresh};
    use crate::testing::{Package, Stored, World, rel};
    use std::os::unix::fs::MetadataExt as _;
    use vibe_core::plan::{FileChange, Place, Undo, WriteReason};

    fn step(world: &World, package: &Package, link_mode: LinkMode) -> Place {
        Place {
            link_mode,
            ..world.place_step(package)
        }
    }

    fn inode(path: &Path) -> u64 {
        path.symlink_metadata().unwrap().ino()
    }

    fn package() -> Package {
        Package::new(&[("a", "1"), ("d/run.sh", "1"), ("e", "")])
    }

    #[test]
    fn stored_files_are_linked_or_are_files_of_their_own_as_is_wanted() {
        let package = package();
        let stored = Stored::new(&package);
        for (wanted, is_linked) in [(LinkMode::Hardlink, true), (LinkMode::Copy, false)] {
            let world = World::new();
            let step = step(&world, &package, wanted);
            let placed = place(&world.layout, &step, &stored.tree, &package.record()).unwrap();
            assert_eq!(placed.link_mode == LinkMode::Hardlink, is_linked);
            assert_eq!(placed.fallback, None);
            for path in ["a", "d/run.sh", "e"] {
                let same = inode(&world.at(path)) == inode(&stored.file(path));
                assert_eq!(same, is_linked, "{path}");
            }
            assert_eq!(
                world.snapshot().get("d/run.sh").map(String::as_str),
                Some("*1")
            );
        }
    }

    #[test]
    fn what_cannot_be_linked_is_copied_and_counted() {
        let package = package();
        let world = World::new();
        let stored = Stored::on_another_file_system(&package);
        let Some(stored) = stored else {
            return;
        };
        let step = step(&world, &package, LinkMode::Hardlink);
        let placed = place(&world.layout, &step, &stored.tree, &package.record()).unwrap();
        assert_eq!(placed.link_mode, LinkMode::Copy);
        let fallback = placed.fallback.unwrap();
        assert_eq!(fallback.files, 3);
        assert!(
            fallback.because.contains("cross-device"),
            "{}",
            fallback.because
        );
    }

    #[test]
    fn a_name_that_is_taken_is_an_error_and_no_reason_to_copy() {
        let package = package();
        let stored = Stored::new(&package);
        let world = World::new();
        let files = Materializer::new(&world.slot, &stored.tree, LinkMode::Hardlink, Proof::Stat);
        let target = world.layout.staging().join("taken");
        std::fs::write(&target, "kept").unwrap();
        let row = package.tree.get(&rel("a")).unwrap();
        let error = files.make(&target, &row.path, row.digest, row.exec);
        assert!(matches!(error, Err(SlotError::Fs(_))), "{error:?}");
        assert_eq!(std::fs::read_to_string(&target).unwrap(), "kept");
        assert_eq!(
            (files.mode(), files.fallback()),
            (LinkMode::Copy, None),
            "nothing was made"
        );
    }

    #[test]
    fn a_damaged_stored_file_is_neither_linked_nor_copied() {
        for wanted in [LinkMode::Hardlink, LinkMode::Copy] {
            let package = package();
            let stored = Stored::new(&package);
            stored.overwrite("d/run.sh", "22");
            let world = World::new();
            let step = step(&world, &package, wanted);
            let error = place(&world.layout, &step, &stored.tree, &package.record()).unwrap_err();
            assert!(error.is_lost_tree(), "{error}");
            assert!(error.to_string().contains("`d/run.sh`"), "{error}");
            assert!(error.damage().is_some());
            assert!(!world.root().exists() && world.staged().is_empty());
        }
    }

    #[test]
    fn a_refresh_never_takes_the_damaged_file_for_the_clean_one() {
        let package = package();
        let stored = Stored::new(&package);
        let world = World::new();
        let step = step(&world, &package, LinkMode::Hardlink);
        place(&world.layout, &step, &stored.tree, &package.record()).unwrap();
        // Through the link, and hidden from a look at size and time: the store's own file.
        stored.overwrite_hidden("a", "2");
        assert_eq!(world.snapshot()["a"], "2");
        let changes = vec![FileChange::write(
            package.tree.get(&rel("a")).unwrap(),
            WriteReason::Drifted,
        )];
        let step = vibe_core::plan::Refresh {
            link_mode: LinkMode::Hardlink,
            ..world.refresh_step(&package, changes, Undo::None)
        };
        let record = package.record();
        let error = refresh(&world.layout, &step, &stored.tree, &record).unwrap_err();
        assert!(error.is_lost_tree(), "{error}");
        assert_eq!(world.snapshot()["a"], "2");
        let clean = stored.put_again(&package);
        let placed = refresh(&world.layout, &step, &clean, &record).unwrap();
        assert_eq!(placed.link_mode, LinkMode::Hardlink);
        assert_eq!(world.snapshot()["a"], "1");
        // What is as it should be already is the same file: nothing is left of the attempt.
        refresh(&world.layout, &step, &clean, &record).unwrap();
        assert_eq!(world.snapshot()["a"], "1");
        assert!(world.staged().is_empty());
    }
}
