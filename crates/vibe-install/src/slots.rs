//! What lies in a slot, as several phases look at it.

use std::collections::{BTreeMap, BTreeSet};

use vibe_core::contents::SlotContents;
use vibe_core::formats::manifest::Boot;
use vibe_core::formats::state::{AfterFile, SlotState};
use vibe_core::hook::HostOs;
use vibe_core::relative_path::RECORD_NAME;
use vibe_core::{RelPath, SlotName, Tree, TreeRow};
use vibe_slot::Layout;
use vibe_slot::examine::examine;
use vibe_slot::layout::is_clone;
use vibe_slot::record::RecordOnDisk;

use crate::error::InstallError;
use crate::manifests::read_manifest;

/// Whether the directory of the in-place slot `slot` is there and a clone.
pub(crate) fn has_clone(layout: &Layout, slot: &SlotName) -> Result<bool, InstallError> {
    Ok(layout.has_slot(slot)? && is_clone(layout, slot)?)
}

/// The boot text that the manifest in the clone `slot` declares; `None` where that is not there or
/// says nothing of use.
pub(crate) fn clone_boot(layout: &Layout, slot: &SlotName) -> Option<Option<Boot>> {
    let manifest = read_manifest(&layout.slot(slot)).ok()?;
    Some(manifest.package?.boot)
}

/// How the record of `slot` is spelled in what we remember: relative to the project root.
pub(crate) fn record_path(slot: &SlotName) -> String {
    format!("vibedeps/{}/{RECORD_NAME}", slot.directory())
}

/// The error that an unusable record is.
pub(crate) fn record_error(slot: &SlotName, record: RecordOnDisk) -> InstallError {
    use vibe_core::formats::record::RecordError;
    let slot = slot.clone();
    match record {
        RecordOnDisk::Malformed(diagnostic) => InstallError::Record {
            slot,
            source: RecordError::Malformed(diagnostic),
        },
        RecordOnDisk::Older(found) => InstallError::Record {
            slot,
            source: RecordError::Older { found },
        },
        RecordOnDisk::Newer(found) => InstallError::Record {
            slot,
            source: RecordError::Newer { found },
        },
        RecordOnDisk::NotAFile(_) | RecordOnDisk::Absent | RecordOnDisk::Valid { .. } => {
            InstallError::RecordType { slot }
        }
    }
}

/// What the directory of `slot` holds. Read are the files whose content decides: those of `trees`,
/// and what hooks or a cut-short refresh did, as its row `state` knows.
pub(crate) fn contents_of<'t>(
    layout: &Layout,
    slot: &SlotName,
    trees: impl IntoIterator<Item = &'t Tree>,
    state: Option<&SlotState>,
) -> Result<SlotContents, InstallError> {
    let rows: Vec<&TreeRow> = trees.into_iter().flat_map(Tree::rows).collect();
    let mut interest: BTreeSet<RelPath> = rows.iter().map(|row| row.path.clone()).collect();
    let no_made = BTreeMap::new();
    let made = state.map_or(&no_made, |state| &state.made);
    if let Some(state) = state {
        interest.extend(state.after.keys().cloned());
        interest.extend(state.adding.iter().map(|row| row.path.clone()));
    }
    let contents = examine(layout, slot, &interest, made)?;
    let after = state.into_iter().flat_map(|state| &state.after);
    let after = after.filter_map(|(path, file)| match file {
        AfterFile::File { exec, .. } => Some((path, *exec)),
        AfterFile::Deleted => None,
    });
    let known = rows.iter().map(|row| (&row.path, row.exec)).chain(after);
    Ok(contents.with_exec_of(HostOs::CURRENT, known))
}
