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
use crate::examine::{Scan, digests, made_path, named, readable_digest, scan, unchanged_made};
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
            true => named(&opened_scan(&root)?),
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

/// What is below the slot's directory. A hook may have closed that to its owner, who is let in
/// again: nothing that is installed there could be used, removed or repaired.
fn opened_scan(root: &Path) -> Result<Scan, SlotError> {
    let found = scan(root)?;
    if found.unreadable.is_empty() {
        return Ok(found);
    }
    vibe_fs::grant_owner(root)?;
    scan(root)
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

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Package, World, rel};
    use std::fs;
    use std::os::unix::fs::symlink;
    use vibe_core::formats::state::MadeKind;
    use vibe_testkit::{make_pipe, set_mode};

    fn package() -> Package {
        Package::new(&[("a", "1"), ("d/b", "1"), ("d/run.sh", "1"), ("e/c", "1")])
    }

    /// The scan after `hook` ran in a slot that `before` had prepared, with `state`.
    fn scanned(before: impl FnOnce(&World, &mut SlotState), hook: impl FnOnce(&World)) -> HookScan {
        let package = package();
        let world = World::with(&package);
        let mut state = package.row();
        before(&world, &mut state);
        let record = package.record();
        let snapshot = HookSnapshot::take(&world.layout, &world.slot, &record, &state).unwrap();
        hook(&world);
        snapshot
            .rescan(&world.layout, &world.slot, &record, &state)
            .unwrap()
    }

    fn untouched() -> HookScan {
        HookScan {
            after: BTreeMap::new(),
            made: BTreeMap::new(),
            retyped: Vec::new(),
            slot_is_directory: true,
            record_changed: false,
        }
    }

    fn file(text: &str, exec: bool) -> AfterFile {
        AfterFile::File {
            digest: Sha256Digest::of(text.as_bytes()),
            exec,
        }
    }

    fn kinds(scan: &HookScan) -> Vec<(&str, MadeKind)> {
        let made = scan.made.iter();
        made.map(|(path, made)| (path.as_str(), made.kind))
            .collect()
    }

    #[test]
    fn a_hook_that_does_nothing_leaves_nothing() {
        assert_eq!(scanned(|_, _| {}, |_| {}), untouched());
        let same_bytes = |world: &World| world.write("a", "1");
        assert_eq!(scanned(|_, _| {}, same_bytes), untouched());
    }

    #[test]
    fn what_a_hook_changes_is_kept_file_by_file() {
        let scan = scanned(
            |_, _| {},
            |world| {
                // As long as before, and at once: only the digest tells.
                world.write("a", "2");
                fs::remove_file(world.at("d/b")).unwrap();
                set_mode(&world.at("d/run.sh"), 0o644);
                set_mode(&world.at("e/c"), 0o755);
            },
        );
        let expected = [
            (rel("a"), file("2", false)),
            (rel("d/b"), AfterFile::Deleted),
            (rel("d/run.sh"), file("1", false)),
            (rel("e/c"), file("1", true)),
        ];
        let expected = HookScan {
            after: expected.into(),
            ..untouched()
        };
        assert_eq!(scan, expected);
    }

    #[test]
    fn an_earlier_hooks_changes_are_kept_unless_they_are_taken_back() {
        let earlier = |world: &World, state: &mut SlotState| {
            world.write("a", "2");
            world.write("e/c", "2");
            fs::remove_file(world.at("d/b")).unwrap();
            state.after.insert(rel("a"), file("2", false));
            state.after.insert(rel("e/c"), file("2", false));
            state.after.insert(rel("d/b"), AfterFile::Deleted);
        };
        let scan = scanned(earlier, |world| world.write("e/c", "1"));
        let expected = [
            (rel("a"), file("2", false)),
            (rel("d/b"), AfterFile::Deleted),
        ];
        assert_eq!(scan.after, expected.into());
        let scan = scanned(earlier, |world| world.write("d/b", "1"));
        assert!(!scan.after.contains_key(&rel("d/b")) && scan.made.is_empty());
    }

    #[test]
    fn what_a_user_edited_before_is_not_the_hooks() {
        let edited = |world: &World, _: &mut SlotState| {
            world.write("a", "mine");
            fs::remove_file(world.at("e/c")).unwrap();
            fs::remove_file(world.at("d/b")).unwrap();
            symlink("run.sh", world.at("d/b")).unwrap();
        };
        assert_eq!(scanned(edited, |_| {}), untouched());
        let touched = |world: &World| world.write("a", "mine");
        assert_eq!(scanned(edited, touched), untouched());
    }

    #[test]
    fn payload_turned_into_another_type_is_named() {
        let scan = scanned(
            |_, _| {},
            |world| {
                fs::remove_file(world.at("a")).unwrap();
                symlink("d/b", world.at("a")).unwrap();
                fs::remove_file(world.at("e/c")).unwrap();
                fs::create_dir(world.at("e/c")).unwrap();
                fs::rename(world.at("d"), world.at("moved")).unwrap();
                symlink("moved", world.at("d")).unwrap();
            },
        );
        assert_eq!(scan.retyped, ["a", "d/b", "d/run.sh", "e/c"].map(rel));
        assert!(scan.after.is_empty());
        assert_eq!(kinds(&scan), [("moved", MadeKind::Directory)]);
    }

    #[test]
    fn the_topmost_paths_that_appear_are_made() {
        let scan = scanned(
            |world, _| {
                world.write("mine/x", "u");
                fs::remove_dir_all(world.at("e")).unwrap();
            },
            |world| {
                world.write("out/deep/x", "m");
                world.write("out/.git/config", "m");
                world.write(".git/config", "m");
                world.write("mine/new", "m");
                world.write("d/built", "m");
                world.write("e/c", "1");
                world.write("e/extra/y", "m");
                symlink("nowhere", world.at("link")).unwrap();
                make_pipe(&world.at("pipe"));
            },
        );
        let expected = [
            ("d/built", MadeKind::File),
            ("e/extra", MadeKind::Directory),
            ("link", MadeKind::Symlink),
            ("mine/new", MadeKind::File),
            ("out", MadeKind::Directory),
            ("pipe", MadeKind::Other),
        ];
        assert_eq!(kinds(&scan), expected);
        assert!(scan.after.is_empty() && scan.retyped.is_empty());
    }

    #[test]
    fn earlier_made_paths_stay_while_only_hooks_change_them() {
        let earlier = |world: &World, state: &mut SlotState| {
            for path in ["out", "gone", "edited"] {
                world.write(&format!("{path}/x"), "m");
                let made = crate::examine::made_path(&world.layout, &world.slot, &rel(path));
                state.made.insert(rel(path), made.unwrap().unwrap());
            }
            world.write("edited/x", "by the user");
        };
        let scan = scanned(earlier, |world| {
            world.write("out/more", "m");
            world.write("edited/more", "m");
            fs::remove_dir_all(world.at("gone")).unwrap();
        });
        let names: Vec<&str> = scan.made.keys().map(RelPath::as_str).collect();
        assert_eq!(names, ["edited/more", "out"]);
        let mut remembered = package().row();
        let again = scanned(
            |world, state| {
                earlier(world, state);
                remembered = state.clone();
            },
            |_| {},
        );
        let out = |made: &BTreeMap<RelPath, MadePath>| made.get(&rel("out")).copied();
        assert_eq!(out(&again.made), out(&remembered.made));
        assert_ne!(out(&again.made), out(&scan.made), "digested again");
    }

    #[test]
    fn a_record_that_a_hook_changed_or_removed_is_told() {
        let edit = |world: &World| world.write(".vibe-slot.toml", "x");
        let remove = |world: &World| fs::remove_file(world.at(".vibe-slot.toml")).unwrap();
        let touch = |world: &World| {
            let path = world.at(".vibe-slot.toml");
            fs::write(&path, fs::read(&path).unwrap()).unwrap();
        };
        assert!(scanned(|_, _| {}, edit).record_changed);
        assert!(scanned(|_, _| {}, remove).record_changed);
        assert_eq!(scanned(|_, _| {}, touch), untouched());
    }

    #[test]
    fn a_slot_that_is_no_directory_any_more_is_told() {
        let scan = scanned(
            |_, _| {},
            |world| {
                fs::rename(world.root(), world.layout.package(&world.slot).join("x")).unwrap();
                symlink("x", world.root()).unwrap();
            },
        );
        assert!(!scan.slot_is_directory && scan.record_changed);
        assert!(scan.after.values().all(|file| *file == AfterFile::Deleted));
        assert_eq!((scan.after.len(), scan.made.len()), (4, 0));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn closed_files_and_directories_do_not_fail_the_scan() {
        let package = package();
        let world = World::with(&package);
        crate::testing::as_owner_without_power(world.layout.project_root(), || {
            let (record, state) = (package.record(), package.row());
            let snapshot = HookSnapshot::take(&world.layout, &world.slot, &record, &state).unwrap();
            world.write("out/x", "m");
            set_mode(&world.at("out"), 0);
            set_mode(&world.at("a"), 0);
            set_mode(&world.at("e"), 0);
            let scan = snapshot
                .rescan(&world.layout, &world.slot, &record, &state)
                .unwrap();
            assert_eq!(scan.retyped, [rel("a")]);
            assert_eq!(kinds(&scan), [("out", MadeKind::Directory)]);
            assert_eq!(scan.after, [(rel("e/c"), AfterFile::Deleted)].into());
            let again = HookSnapshot::take(&world.layout, &world.slot, &record, &state).unwrap();
            let scan = again
                .rescan(&world.layout, &world.slot, &record, &state)
                .unwrap();
            assert_eq!(scan, untouched(), "nothing changed since");
            set_mode(&world.at("out"), 0o755);
            set_mode(&world.at("e"), 0o755);
        });
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_slot_that_its_hook_closed_is_opened_and_looked_at() {
        let package = package();
        let world = World::with(&package);
        let (record, state) = (package.record(), package.row());
        crate::testing::as_owner_without_power(world.layout.project_root(), || {
            for mode in [0o000, 0o444, 0o333] {
                let snapshot =
                    HookSnapshot::take(&world.layout, &world.slot, &record, &state).unwrap();
                set_mode(&world.root(), mode);
                let scan = snapshot.rescan(&world.layout, &world.slot, &record, &state);
                assert_eq!(scan.unwrap(), untouched(), "{mode:o}");
            }
        });
    }

    /// Whether the scan believes an unmoved stat although the content is not as it was noted.
    fn trusts_stat(moment_ns: i64) -> bool {
        let package = package();
        let world = World::with(&package);
        let (record, mut state) = (package.record(), package.row());
        state.after.insert(rel("a"), file("2", false));
        let mut snapshot = HookSnapshot::take(&world.layout, &world.slot, &record, &state).unwrap();
        snapshot.moment_ns = moment_ns;
        let noted = snapshot.payload.get_mut(&rel("a")).unwrap();
        noted.digest = Some(Sha256Digest::of(b"2"));
        let scan = snapshot.rescan(&world.layout, &world.slot, &record, &state);
        scan.unwrap().after == state.after
    }

    #[test]
    fn only_a_stat_older_than_the_snapshot_is_believed() {
        assert!(trusts_stat(i64::MAX));
        assert!(!trusts_stat(i64::MIN));
    }

    #[test]
    fn windows_keeps_the_published_exec_bit() {
        let package = package();
        let world = World::with(&package);
        let stat = vibe_fs::stat_of(&world.at("a")).unwrap().unwrap();
        let row = package.tree.get(&rel("d/run.sh")).unwrap();
        assert!(exec_bit(HostOs::Windows, &stat, row));
        assert!(!exec_bit(HostOs::Unix, &stat, row));
    }
}
