//! What an install hook did to its slot: its payload file by file, and the paths it made.
//!
//! A snapshot before the hook and a scan after it are compared. Only what changed in between is the
//! hook's: a file that a user had edited before is not, although it differs from what was
//! published. Files whose stat did not move are not read again.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use rayon::prelude::*;
use vibe_core::formats::record::SlotRecord;
use vibe_core::formats::state::{AfterFile, MadePath, SlotState};
use vibe_core::hook::HostOs;
use vibe_core::limits::RECORD_BYTES;
use vibe_core::{RelPath, Sha256Digest, SlotName, Tree, TreeRow};
use vibe_fs::{EntryKind, Stat};

use crate::clock::{file_time_ns, is_settled};
use crate::error::SlotError;
use crate::examine::{digests, made_path, named, readable_digest, scan, unchanged_made};
use crate::layout::Layout;

/// A slot as it is before a hook.
#[derive(Debug)]
pub struct HookSnapshot {
    payload: BTreeMap<RelPath, Before>,
    entries: BTreeSet<RelPath>,
    unchanged_made: BTreeSet<RelPath>,
    record: Option<Sha256Digest>,
    /// Noted after every stat.
    moment_ns: i64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Before {
    stat: Stat,
    /// `None`: it is no file, or cannot be read.
    digest: Option<Sha256Digest>,
}

/// A slot after a hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookScan {
    /// The complete new map of what this package's own hooks made of its payload.
    pub after: BTreeMap<RelPath, AfterFile>,
    /// The complete new map of the topmost paths that appeared during its hooks.
    pub made: BTreeMap<RelPath, MadePath>,
    /// Payload files that the hook turned into something that is no readable file, or put behind
    /// something that is no directory.
    pub retyped: Vec<RelPath>,
    /// Whether the slot still is a directory, reached without a link.
    pub slot_is_directory: bool,
    /// Whether the slot's record has other bytes, or is gone.
    pub record_changed: bool,
}

/// What the hook did to one payload file.
enum Fate {
    /// Nothing: what was known of it holds.
    Untouched,
    /// It has its published bytes now.
    Published,
    /// It is something else now.
    Changed(AfterFile),
    /// It is no readable file any more.
    Retyped,
}

impl HookSnapshot {
    /// Takes the snapshot. `record` is the slot's and `state` its row.
    ///
    /// # Errors
    /// The slot is reached through a link, or cannot be listed or read.
    pub fn take(
        layout: &Layout,
        slot: &SlotName,
        record: &SlotRecord,
        state: &SlotState,
    ) -> Result<Self, SlotError> {
        layout.has_slot(slot)?;
        let root = layout.slot(slot);
        let found = named(&scan(&root)?);
        let moment_ns = file_time_ns(layout)?;
        let rows = record.tree.rows().iter();
        let digests = digests(&root, &found, &rows.map(|row| row.path.clone()).collect())?;
        let payload = found
            .iter()
            .filter(|(path, _)| record.tree.get(path).is_some())
            .map(|(path, stat)| {
                let digest = digests.get(path).copied();
                (
                    path.clone(),
                    Before {
                        stat: *stat,
                        digest,
                    },
                )
            })
            .collect();
        Ok(Self {
            payload,
            unchanged_made: unchanged_made(layout, slot, &state.made)?,
            entries: found.into_keys().collect(),
            record: record_digest(layout, slot),
            moment_ns,
        })
    }

    /// Compares the slot as it is now with the snapshot. `record` and `state` are those the
    /// snapshot was taken with.
    ///
    /// # Errors
    /// The slot cannot be listed or read.
    pub fn rescan(
        &self,
        layout: &Layout,
        slot: &SlotName,
        record: &SlotRecord,
        state: &SlotState,
    ) -> Result<HookScan, SlotError> {
        let slot_is_directory = matches!(layout.has_slot(slot), Ok(true));
        let root = layout.slot(slot);
        let found = match slot_is_directory {
            true => named(&scan(&root)?),
            false => BTreeMap::new(),
        };
        let (after, retyped) = self.payload_after(&root, &found, record, state)?;
        let made = match slot_is_directory {
            true => self.made_after(layout, slot, &found, &record.tree)?,
            false => BTreeMap::new(),
        };
        Ok(HookScan {
            after,
            made,
            retyped,
            slot_is_directory,
            record_changed: !slot_is_directory || record_digest(layout, slot) != self.record,
        })
    }

    fn payload_after(
        &self,
        root: &Path,
        found: &BTreeMap<RelPath, Stat>,
        record: &SlotRecord,
        state: &SlotState,
    ) -> Result<(BTreeMap<RelPath, AfterFile>, Vec<RelPath>), SlotError> {
        let fates: Vec<Fate> = record
            .tree
            .rows()
            .par_iter()
            .map(|row| self.fate(root, found, row))
            .collect::<Result<_, _>>()?;
        let (mut after, mut retyped) = (BTreeMap::new(), Vec::new());
        for (row, fate) in record.tree.rows().iter().zip(fates) {
            let file = match fate {
                Fate::Untouched => state.after.get(&row.path).copied(),
                Fate::Published => None,
                Fate::Changed(file) => Some(file),
                Fate::Retyped => {
                    retyped.push(row.path.clone());
                    None
                }
            };
            after.extend(file.map(|file| (row.path.clone(), file)));
        }
        Ok((after, retyped))
    }

    fn fate(
        &self,
        root: &Path,
        found: &BTreeMap<RelPath, Stat>,
        row: &TreeRow,
    ) -> Result<Fate, SlotError> {
        let before = self.payload.get(&row.path);
        let Some(stat) = found.get(&row.path) else {
            return Ok(match before {
                None => Fate::Untouched,
                Some(_) if is_blocked(found, &row.path) => Fate::Retyped,
                Some(_) => Fate::Changed(AfterFile::Deleted),
            });
        };
        let same_kind = before.is_some_and(|before| before.stat.kind == stat.kind);
        if stat.kind != EntryKind::File {
            return Ok(match same_kind {
                true => Fate::Untouched,
                false => Fate::Retyped,
            });
        }
        if before.is_some_and(|b| b.stat == *stat && is_settled(stat, self.moment_ns)) {
            return Ok(Fate::Untouched);
        }
        let digest = readable_digest(&row.path.under(root))?;
        if same_kind && before.is_some_and(|b| b.digest == digest && b.stat.exec == stat.exec) {
            return Ok(Fate::Untouched);
        }
        let Some(digest) = digest else {
            return Ok(Fate::Retyped);
        };
        let exec = exec_bit(HostOs::CURRENT, stat, row);
        if digest == row.digest && exec == row.exec {
            return Ok(Fate::Published);
        }
        Ok(Fate::Changed(AfterFile::File { digest, exec }))
    }

    fn made_after(
        &self,
        layout: &Layout,
        slot: &SlotName,
        found: &BTreeMap<RelPath, Stat>,
        tree: &Tree,
    ) -> Result<BTreeMap<RelPath, MadePath>, SlotError> {
        let mut made = BTreeMap::new();
        for path in self
            .unchanged_made
            .iter()
            .filter(|p| found.contains_key(*p))
        {
            made.extend(made_path(layout, slot, path)?.map(|now| (path.clone(), now)));
        }
        let appeared = |path: &RelPath| {
            found.contains_key(path)
                && !self.entries.contains(path)
                && tree.get(path).is_none()
                && !tree.has_directory(path)
        };
        for path in found.keys().filter(|path| appeared(path)) {
            let is_covered = |above: RelPath| appeared(&above) || made.contains_key(&above);
            if path.ancestors().any(is_covered) {
                continue;
            }
            made.extend(made_path(layout, slot, path)?.map(|now| (path.clone(), now)));
        }
        Ok(made)
    }
}

/// Whether something that is no directory is where a directory above `path` should be.
fn is_blocked(found: &BTreeMap<RelPath, Stat>, path: &RelPath) -> bool {
    path.ancestors()
        .filter_map(|above| found.get(&above))
        .any(|stat| stat.kind != EntryKind::Directory)
}

/// The exec bit of a file; on Windows, which has none, the published one.
fn exec_bit(os: HostOs, stat: &Stat, row: &TreeRow) -> bool {
    match os {
        HostOs::Unix => stat.exec,
        HostOs::Windows => row.exec,
    }
}

fn record_digest(layout: &Layout, slot: &SlotName) -> Option<Sha256Digest> {
    let bytes = vibe_fs::read_if_exists(&layout.record(slot), RECORD_BYTES);
    bytes.ok().flatten().map(|bytes| Sha256Digest::of(&bytes))
}
