//! Removing slots that nothing needs, and slots that a failed run had just made.

use vibe_core::plan::Remove;
use vibe_core::relative_path::RECORD_NAME;
use vibe_core::{RelPath, SlotName};
use vibe_fs::error::shown;
use vibe_fs::{EntryKind, Guard};

use crate::access::insisting;
use crate::error::SlotError;
use crate::layout::Layout;

/// What became of the files that should go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Removed {
    /// Files and made paths removed.
    pub removed: usize,
    /// What should have gone and stayed, since it is something else now or could not be removed:
    /// paths in the slot, escaped.
    pub left: Vec<String>,
    /// Whether the slot's directory is gone.
    pub slot_gone: bool,
}

/// Removes what `step` names, then the record, the directories left empty, the slot and the
/// directory of its package if nothing is left in them. What is absent already is no error.
///
/// # Errors
/// The slot is reached through a link, or a file call failed other than by removing.
pub fn remove(layout: &Layout, step: &Remove) -> Result<Removed, SlotError> {
    let mut outcome = Removed::default();
    if layout.has_slot(&step.slot)? {
        for path in &step.files {
            let removed = remove_file(layout, &step.slot, path);
            outcome.note(path, removed);
        }
        for path in &step.made {
            let removed = remove_made(layout, &step.slot, path);
            outcome.note(path, removed);
        }
        remove_record(layout, &step.slot, &mut outcome);
        for path in step.files.iter().chain(&step.made) {
            remove_empty_above(layout, &step.slot, path)?;
        }
        vibe_fs::remove_empty_directory(&layout.slot(&step.slot))?;
        vibe_fs::remove_empty_directory(&layout.package(&step.slot))?;
    }
    outcome.slot_gone = !layout.has_slot(&step.slot)?;
    Ok(outcome)
}

impl Removed {
    fn note(&mut self, path: &RelPath, outcome: Result<bool, SlotError>) {
        match outcome {
            Ok(true) => self.removed += 1,
            Ok(false) => {}
            Err(_) => self.left.push(path.to_string()),
        }
    }
}

/// Whether the directory above `path` can be reached without a link.
fn is_reachable(layout: &Layout, slot: &SlotName, path: &RelPath) -> Result<bool, SlotError> {
    Ok(vibe_fs::path_guard(&layout.slot(slot), path)? == Guard::Clear)
}

/// A recorded file that is now something else is an error; what is behind a link is not ours and
/// so not there.
fn remove_file(layout: &Layout, slot: &SlotName, path: &RelPath) -> Result<bool, SlotError> {
    if !is_reachable(layout, slot, path)? {
        return Ok(false);
    }
    let full = path.under(&layout.slot(slot));
    let is_file = |stat: &vibe_fs::Stat| stat.kind == EntryKind::File;
    if insisting(&full, || vibe_fs::remove_file_if(&full, is_file))? {
        return Ok(true);
    }
    match vibe_fs::stat_of(&full)? {
        None => Ok(false),
        Some(stat) => Err(SlotError::Unplanned {
            slot: Box::new(slot.clone()),
            doing: "remove",
            path: path.clone(),
            found: format!("it is {}", stat.kind.as_str()),
        }),
    }
}

fn remove_made(layout: &Layout, slot: &SlotName, path: &RelPath) -> Result<bool, SlotError> {
    let full = path.under(&layout.slot(slot));
    if !is_reachable(layout, slot, path)? || vibe_fs::stat_of(&full)?.is_none() {
        return Ok(false);
    }
    if vibe_fs::remove_tree(&full).is_err() {
        if let Some(parent) = full.parent() {
            vibe_fs::grant_owner(parent)?;
        }
        vibe_fs::remove_tree(&full)?;
    }
    Ok(true)
}

fn remove_record(layout: &Layout, slot: &SlotName, outcome: &mut Removed) {
    let path = layout.record(slot);
    let is_file = |stat: &vibe_fs::Stat| stat.kind == EntryKind::File;
    if insisting(&path, || vibe_fs::remove_file_if(&path, is_file)).is_err() {
        outcome.left.push(RECORD_NAME.to_owned());
    }
}

/// A directory that could not be listed is not known to be empty, so it stays.
fn remove_empty_above(layout: &Layout, slot: &SlotName, path: &RelPath) -> Result<(), SlotError> {
    match vibe_fs::remove_empty_directories_up(&layout.slot(slot), path) {
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => Ok(()),
        outcome => Ok(outcome?),
    }
}

/// Removes a slot that was new in this run, whatever its hooks left in it. Returns what could not
/// be removed, escaped.
///
/// # Errors
/// The directory of the package is a link, or cannot be looked at.
pub fn discard_new(layout: &Layout, slot: &SlotName) -> Result<Vec<String>, SlotError> {
    let package = layout.package(slot);
    if vibe_fs::stat_of(&package)?.is_none() {
        return Ok(Vec::new());
    }
    crate::layout::ensure_directory(&package)?;
    let mut left = Vec::new();
    if let Err(error) = vibe_fs::remove_tree(&layout.slot(slot)) {
        left.extend(error.left.iter().map(|path| shown(path)));
    }
    vibe_fs::remove_empty_directory(&package)?;
    Ok(left)
}
