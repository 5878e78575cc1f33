//! Building new slots, and bringing existing ones to a tree by the least change.
//!
//! Every file is built in staging, checked against its digest while it is written, and renamed
//! into place; nothing that exists is opened for writing, and nothing is touched behind a link.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use vibe_core::formats::record::SlotRecord;
use vibe_core::formats::state::LinkMode;
use vibe_core::plan::{FileChange, Place, Refresh};
use vibe_core::{RelPath, Sha256Digest, SlotName, TreeId};
use vibe_fs::{EntryKind, Guard, ParentError, stat_of};

use crate::access::{insisting, rename_insisting};
use crate::error::SlotError;
use crate::layout::Layout;
use crate::record::write_record;
use crate::source::PayloadSource;

/// What placing or refreshing a slot really did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Placed {
    /// The way the files were placed.
    pub link_mode: LinkMode,
    /// Files written.
    pub files_written: usize,
    /// Whether the record was written.
    pub record_written: bool,
}

/// Builds the slot of `step` with the bytes of `source` and `record`, and renames it in.
///
/// # Errors
/// Something lies where the slot belongs, `source` or `record` are of another tree, a file
/// changed since its tree was taken, or a file call failed. The slot is then absent as before.
pub fn place(
    layout: &Layout,
    step: &Place,
    source: &dyn PayloadSource,
    record: &SlotRecord,
) -> Result<Placed, SlotError> {
    check_tree(&step.slot, step.tree, record, source)?;
    refuse_existing(layout, &step.slot)?;
    let staging = stage(layout)?;
    let built = staging.path().join("slot");
    build(&built, &step.slot, source)?;
    vibe_fs::write_atomic(
        &built.join(vibe_core::relative_path::RECORD_NAME),
        record.render().as_bytes(),
        staging.path(),
        vibe_fs::Durability::Unsynced,
    )?;
    layout.ensure_package(&step.slot)?;
    refuse_existing(layout, &step.slot)?;
    vibe_fs::rename_over(&built, &layout.slot(&step.slot))?;
    Ok(Placed {
        link_mode: LinkMode::Copy,
        files_written: record.tree.rows().len(),
        record_written: true,
    })
}

fn check_tree(
    slot: &SlotName,
    planned: TreeId,
    record: &SlotRecord,
    source: &dyn PayloadSource,
) -> Result<(), SlotError> {
    let trees = [source.tree().id(), record.tree.id()];
    match trees.into_iter().find(|found| *found != planned) {
        None => Ok(()),
        Some(found) => Err(SlotError::OtherTree {
            slot: Box::new(slot.clone()),
            planned,
            found,
        }),
    }
}

/// A rename would replace an empty directory without a word.
fn refuse_existing(layout: &Layout, slot: &SlotName) -> Result<(), SlotError> {
    match stat_of(&layout.slot(slot))? {
        None => Ok(()),
        Some(_) => Err(SlotError::Exists {
            slot: Box::new(slot.clone()),
        }),
    }
}

/// A directory in staging that goes when it is dropped.
fn stage(layout: &Layout) -> Result<tempfile::TempDir, SlotError> {
    let staging = layout.staging();
    tempfile::Builder::new()
        .prefix("slot-")
        .tempdir_in(&staging)
        .map_err(|error| vibe_fs::FsError::new("create a directory in", &staging, error).into())
}

fn build(root: &Path, slot: &SlotName, source: &dyn PayloadSource) -> Result<(), SlotError> {
    let rows = source.tree().rows();
    vibe_fs::create_directory(root)?;
    // In byte order a directory comes before what is in it.
    let directories: BTreeSet<RelPath> = rows.iter().flat_map(|row| row.path.ancestors()).collect();
    for directory in &directories {
        vibe_fs::create_directory(&directory.under(root))?;
    }
    rows.par_iter().try_for_each(|row| {
        let target = row.path.under(root);
        build_file(&target, slot, &row.path, row.digest, row.exec, source)
    })
}

fn build_file(
    target: &Path,
    slot: &SlotName,
    path: &RelPath,
    sha256: Sha256Digest,
    exec: bool,
    source: &dyn PayloadSource,
) -> Result<(), SlotError> {
    let mut reader = source.open(path).map_err(|source| SlotError::Source {
        slot: Box::new(slot.clone()),
        path: path.clone(),
        source: Box::new(source),
    })?;
    let found = vibe_fs::copy_hashed(&mut reader, target, exec, source.file_bytes())?;
    if found == sha256 {
        return Ok(());
    }
    Err(SlotError::Changed {
        slot: Box::new(slot.clone()),
        path: path.clone(),
    })
}

/// Executes the changes of `step` in order, then writes `record` if its bytes differ.
///
/// All new files are built and checked first, so a source that changed is noticed before anything
/// in the slot is touched. What is to be deleted may be absent already.
///
/// # Errors
/// `source` or `record` are of another tree, a file of the package changed, the disk is not as
/// planned, a change would go through a link, or a file call failed. The slot can then be between
/// its old and its new tree.
pub fn refresh(
    layout: &Layout,
    step: &Refresh,
    source: &dyn PayloadSource,
    record: &SlotRecord,
) -> Result<Placed, SlotError> {
    check_tree(&step.slot, step.tree, record, source)?;
    layout.ensure_slot(&step.slot)?;
    let staging = stage(layout)?;
    build_changes(staging.path(), step, source)?;
    let refresher = Refresher {
        root: layout.slot(&step.slot),
        slot: &step.slot,
    };
    let mut files_written = 0;
    for (index, change) in step.changes.iter().enumerate() {
        refresher.apply(change, &staged(staging.path(), index))?;
        files_written += usize::from(matches!(change, FileChange::Write { .. }));
    }
    Ok(Placed {
        link_mode: LinkMode::Copy,
        files_written,
        record_written: write_record(layout, &step.slot, record)?,
    })
}

fn staged(staging: &Path, index: usize) -> PathBuf {
    staging.join(index.to_string())
}

fn build_changes(
    staging: &Path,
    step: &Refresh,
    source: &dyn PayloadSource,
) -> Result<(), SlotError> {
    let changes = step.changes.par_iter().enumerate();
    changes.try_for_each(|(index, change)| match change {
        FileChange::Write {
            path, sha256, exec, ..
        } => build_file(
            &staged(staging, index),
            &step.slot,
            path,
            *sha256,
            *exec,
            source,
        ),
        _ => Ok(()),
    })
}

/// Applies changes to one slot's directory.
struct Refresher<'a> {
    root: PathBuf,
    slot: &'a SlotName,
}

impl Refresher<'_> {
    fn apply(&self, change: &FileChange, staged: &Path) -> Result<(), SlotError> {
        match change {
            FileChange::SetAside { path, to } => self.set_aside(path, to),
            FileChange::RemoveMade { path } => self.remove_made(path),
            FileChange::Delete { path } => self.delete(path),
            FileChange::Write { path, .. } => self.write(path, staged),
        }
    }

    fn set_aside(&self, path: &RelPath, to: &RelPath) -> Result<(), SlotError> {
        let doing = "move aside";
        let (from, target) = (path.under(&self.root), to.under(&self.root));
        if !self.is_reachable(doing, path)? || stat_of(&from)?.is_none() {
            return Err(self.unplanned(doing, path, "it is gone".to_owned()));
        }
        if !self.is_reachable(doing, to)? || stat_of(&target)?.is_some() {
            return Err(self.unplanned(doing, path, format!("`{to}` is not free")));
        }
        Ok(rename_insisting(&from, &target)?)
    }

    fn remove_made(&self, path: &RelPath) -> Result<(), SlotError> {
        if !self.is_reachable("remove", path)? {
            return Ok(());
        }
        let full = path.under(&self.root);
        if vibe_fs::remove_tree(&full).is_ok() {
            return Ok(());
        }
        if let Some(parent) = full.parent() {
            vibe_fs::grant_owner(parent)?;
        }
        Ok(vibe_fs::remove_tree(&full)?)
    }

    fn delete(&self, path: &RelPath) -> Result<(), SlotError> {
        if !self.is_reachable("delete", path)? {
            return Ok(());
        }
        let full = path.under(&self.root);
        match stat_of(&full)?.map(|stat| stat.kind) {
            Some(kind @ (EntryKind::Directory | EntryKind::Other)) => {
                let found = format!("it is {}", kind.as_str());
                return Err(self.unplanned("delete", path, found));
            }
            Some(kind) => {
                insisting(&full, || {
                    vibe_fs::remove_file_if(&full, |stat| stat.kind == kind)
                })?;
            }
            None => {}
        }
        Ok(vibe_fs::remove_empty_directories_up(&self.root, path)?)
    }

    fn write(&self, path: &RelPath, staged: &Path) -> Result<(), SlotError> {
        let doing = "write";
        match insisting_parents(&self.root, path) {
            Ok(()) => {}
            Err(ParentError::Fs(error)) => return Err(error.into()),
            Err(ParentError::Blocked { path: at, kind }) => {
                let at = vibe_fs::error::shown(at.strip_prefix(&self.root).unwrap_or(&at));
                return Err(self.unplanned(doing, path, format!("`{at}` is {}", kind.as_str())));
            }
        }
        let target = path.under(&self.root);
        if let Some(EntryKind::Directory) = stat_of(&target)?.map(|stat| stat.kind) {
            return Err(self.unplanned(doing, path, "it is a directory".to_owned()));
        }
        Ok(rename_insisting(staged, &target)?)
    }

    /// Whether the directory above `path` is there; anything else on the way is an error.
    fn is_reachable(&self, doing: &'static str, path: &RelPath) -> Result<bool, SlotError> {
        match vibe_fs::path_guard(&self.root, path)? {
            Guard::Clear => Ok(true),
            Guard::Absent(_) => Ok(false),
            Guard::Blocked { path: at, kind } => {
                Err(self.unplanned(doing, path, format!("`{at}` is {}", kind.as_str())))
            }
        }
    }

    fn unplanned(&self, doing: &'static str, path: &RelPath, found: String) -> SlotError {
        SlotError::Unplanned {
            slot: Box::new(self.slot.clone()),
            doing,
            path: path.clone(),
            found,
        }
    }
}

/// Makes the directories above `path`, also below a directory that its owner may not change.
pub(crate) fn insisting_parents(root: &Path, path: &RelPath) -> Result<(), ParentError> {
    match vibe_fs::create_parents(root, path) {
        Err(ParentError::Fs(error)) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            vibe_fs::grant_owner(root)?;
            for directory in path.ancestors() {
                vibe_fs::grant_owner(&directory.under(root))?;
            }
            vibe_fs::create_parents(root, path)
        }
        outcome => outcome,
    }
}
