//! In-place slots: where a clone and what steers it lie, and how it appears and goes.
//!
//! A new clone is built in staging and renamed in, and one that goes is renamed out first, so that
//! at any instant the slot holds a whole clone or none.

use std::path::{Path, PathBuf};

use vibe_core::plan::Extent;
use vibe_core::{Cancellation, SlotName};
use vibe_fs::EntryKind;
use vibe_fs::error::shown;
use vibe_git::{Checkout, CommitId, GitProgram, Status, WorkTree};

use crate::error::SlotError;
use crate::layout::{Layout, ensure_directory};

/// What every call on a clone needs.
#[derive(Debug, Clone, Copy)]
pub struct CloneTools<'a> {
    /// Where things lie.
    pub layout: &'a Layout,
    /// The git program.
    pub git: &'a GitProgram,
    /// Stops a call.
    pub cancel: &'a Cancellation,
}

impl<'a> CloneTools<'a> {
    /// The work tree of `slot`, with the control directory that knows it.
    pub fn work_tree(&self, slot: &SlotName) -> WorkTree<'a> {
        let control = self.layout.clone_control(slot);
        WorkTree::new(self.git, self.cancel, &self.layout.slot(slot), &control)
    }

    /// Builds `slot`, which is not there, and renames it in. A commit with submodules needs all of
    /// them.
    ///
    /// # Errors
    /// Git or a file call failed, or something lies in the slot's place.
    pub fn place(&self, slot: &SlotName, wanted: &Checkout) -> Result<(), SlotError> {
        let staged = self.layout.staging().join(slot.directory());
        vibe_fs::remove_tree(&staged)?;
        // What steered a clone that is gone knows nothing of the new one.
        let control = self.layout.clone_control(slot);
        vibe_fs::remove_tree(&control)?;
        ensure_directory(&self.layout.git())?;
        WorkTree::new(self.git, self.cancel, &staged, &control).bring(wanted, Extent::All)?;
        let target = self.layout.slot(slot);
        if let Some(path) = lying_at(self.layout, slot)?.into_iter().next() {
            let slot = Box::new(slot.clone());
            return Err(SlotError::Occupied { slot, path });
        }
        remove_empty(&target)?;
        Ok(vibe_fs::rename_over(&staged, &target)?)
    }

    /// Brings `slot`, which is there, to `wanted`.
    ///
    /// # Errors
    /// Git or a file call failed.
    pub fn bring(
        &self,
        slot: &SlotName,
        wanted: &Checkout,
        extent: Extent,
    ) -> Result<(), SlotError> {
        ensure_directory(&self.layout.git())?;
        Ok(self.work_tree(slot).bring(wanted, extent)?)
    }

    /// How `slot` differs from `wanted`, by the stats that are known where they are.
    ///
    /// # Errors
    /// Git or a file call failed.
    pub fn status(&self, slot: &SlotName, wanted: &Checkout) -> Result<Status, SlotError> {
        ensure_directory(&self.layout.git())?;
        Ok(self.work_tree(slot).status(wanted)?)
    }

    /// The work tree of `slot` for a look that reads every file and writes nothing but in a
    /// directory that is gone afterwards.
    ///
    /// # Errors
    /// No temporary directory can be made.
    pub fn reader(&self, slot: &SlotName) -> Result<Reader<'a>, SlotError> {
        let temporary = tempfile::tempdir().map_err(vibe_fs::FsError::at(
            "make a directory in",
            &std::env::temp_dir(),
        ))?;
        let control = temporary.path().join("control");
        let tree = self.layout.slot(slot);
        Ok(Reader {
            tree: WorkTree::new(self.git, self.cancel, &tree, &control),
            _temporary: temporary,
        })
    }
}

/// A work tree that is only read.
#[derive(Debug)]
pub struct Reader<'a> {
    /// The work tree.
    pub tree: WorkTree<'a>,
    _temporary: tempfile::TempDir,
}

/// What lies where the clone of `slot` comes and is no empty directory: paths from `vibedeps/`,
/// escaped.
///
/// # Errors
/// The place cannot be looked at.
pub fn lying_at(layout: &Layout, slot: &SlotName) -> Result<Vec<String>, SlotError> {
    let (place, name) = (layout.slot(slot), slot.directory());
    let Some(stat) = vibe_fs::stat_of(&place)? else {
        return Ok(Vec::new());
    };
    if stat.kind != EntryKind::Directory {
        return Ok(vec![name]);
    }
    let mut lying = Vec::new();
    for entry in vibe_fs::list_dir(&place)? {
        let is_empty = entry.stat.kind == EntryKind::Directory
            && vibe_fs::list_dir(&place.join(&entry.relative))?.is_empty();
        if !is_empty {
            lying.push(format!("{name}/{}", shown(&entry.relative)));
        }
    }
    Ok(lying)
}

/// Removes `target`, which at most holds empty directories: slots of versions that are gone.
fn remove_empty(target: &Path) -> Result<(), SlotError> {
    if vibe_fs::stat_of(target)?.is_some() {
        for entry in vibe_fs::list_dir(target)? {
            vibe_fs::remove_empty_directory(&target.join(&entry.relative))?;
        }
    }
    vibe_fs::remove_empty_directory(target)?;
    Ok(())
}

/// The commit at which the clone in `slot` is, if it is one with a `HEAD` as we leave it. Starts no
/// process.
pub fn head(layout: &Layout, slot: &SlotName) -> Option<CommitId> {
    WorkTree::head(&layout.slot(slot))
}

/// The `HEAD` of the clone in `slot`, whose stat tells whether the clone was moved.
pub fn head_file(layout: &Layout, slot: &SlotName) -> PathBuf {
    layout.slot(slot).join(".git/HEAD")
}

/// Removes the clone in `slot`, whatever is in it, and what steered it. Returns what could not be
/// removed, escaped: it is in nobody's way in staging.
///
/// # Errors
/// The slot is reached through a link, or a file call failed.
pub fn remove(layout: &Layout, slot: &SlotName) -> Result<Vec<String>, SlotError> {
    let mut left = Vec::new();
    if layout.has_slot(slot)? {
        let mut gone = layout.staging().join(slot.directory());
        gone.as_mut_os_string().push(".gone");
        vibe_fs::remove_tree(&gone)?;
        vibe_fs::rename_over(&layout.slot(slot), &gone)?;
        if let Err(error) = vibe_fs::remove_tree(&gone) {
            left.extend(error.left.iter().map(|path| shown(path)));
        }
    }
    vibe_fs::remove_tree(&layout.clone_control(slot))?;
    Ok(left)
}
