//! What goes when a slot is no longer needed, and what stays.

use std::collections::BTreeMap;

use vibe_core::contents::{DiskEntry, SlotContents};
use vibe_core::formats::record::SlotRecord;
use vibe_core::formats::state::SlotState;
use vibe_core::plan::Remove;
use vibe_core::{RelPath, SlotName, Tree};

use crate::diff::{DiffInput, is_as_we_left};

/// Plans the removal of `slot`: recorded files that are as we or the package's own hooks left
/// them, and made paths whose listing is unchanged, go. Everything else stays and is named, by its
/// topmost path.
pub fn removal(
    slot: &SlotName,
    record: &SlotRecord,
    state: Option<&SlotState>,
    disk: &SlotContents,
) -> Remove {
    let (no_after, no_made) = (BTreeMap::new(), BTreeMap::new());
    let (after, made, adding) = match state {
        Some(state) => (&state.after, &state.made, state.adding.as_slice()),
        None => (&no_after, &no_made, [].as_slice()),
    };
    let input = DiffInput {
        incoming: &Tree::default(),
        recorded: &record.tree,
        published: &record.tree,
        adding,
        after,
        made,
        disk,
    };
    let made: Vec<RelPath> = input
        .made
        .keys()
        .filter(|path| disk.unchanged_made.contains(path) && disk.entries.contains_key(path))
        .cloned()
        .collect();
    let mut files: Vec<RelPath> = record
        .tree
        .rows()
        .iter()
        .chain(adding)
        .filter(|row| {
            disk.entries
                .get(&row.path)
                .is_some_and(|entry| is_as_we_left(&row.path, *entry, &input))
        })
        .map(|row| row.path.clone())
        .collect();
    files.sort();
    files.dedup();
    let payload = |directory: &RelPath| {
        record.tree.has_directory(directory)
            || adding.iter().any(|row| row.path.starts_with(directory))
    };
    let kept = kept(&files, &made, disk, payload);
    Remove {
        slot: slot.clone(),
        files,
        made,
        kept,
    }
}

/// The topmost entries that neither go nor are directories of the payload.
fn kept(
    files: &[RelPath],
    made: &[RelPath],
    disk: &SlotContents,
    is_payload_directory: impl Fn(&RelPath) -> bool,
) -> Vec<String> {
    let goes = |path: &RelPath| {
        files.binary_search(path).is_ok() || made.iter().any(|top| path.starts_with(top))
    };
    let mut kept: Vec<&RelPath> = Vec::new();
    for (path, entry) in &disk.entries {
        let passed = *entry == DiskEntry::Directory && is_payload_directory(path);
        let below = kept.iter().any(|top| path.starts_with(top));
        if !goes(path) && !passed && !below {
            kept.push(path);
        }
    }
    kept.iter()
        .map(|path| path.to_string())
        .chain(disk.unnamed.iter().cloned())
        .collect()
}
