//! Going back: what a refresh replaces is kept in staging until commit.
//!
//! Payload files are cloned as they are on disk, bytes and exec bit; what is replaced and is no
//! file (a link, the made paths a refresh removes) is renamed away, and so back. Restoring removes
//! what appeared meanwhile by renaming it into staging, so that nothing is deleted in place.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use vibe_core::formats::state::SlotState;
use vibe_core::limits::RECORD_BYTES;
use vibe_core::plan::{FileChange, Refresh, Undo};
use vibe_core::relative_path::RECORD_NAME;
use vibe_core::{RelPath, SlotName, Tree};
use vibe_fs::error::shown;
use vibe_fs::{CopyError, Durability, EntryKind, Guard, Stat, stat_of};

use crate::access::{create_parents_insisting, insisting, rename_insisting};
use crate::clock::{file_time_ns, is_settled};
use crate::error::SlotError;
use crate::examine::{Scan, scan};
use crate::layout::Layout;

/// Everything kept in this run. Bytes lie in staging, so a new run cannot go back.
#[derive(Debug, Default)]
pub struct UndoStore {
    kept: BTreeMap<SlotName, Kept>,
}

/// What going back did.
#[derive(Debug, Clone, PartialEq)]
pub struct Restored {
    /// Payload files put back, deleted ones among them.
    pub restored_files: usize,
    /// What had appeared in the run and was removed: topmost paths in the slot, escaped.
    pub removed: Vec<String>,
    /// Older files that are no payload and that were changed in the run; they cannot be put back.
    /// Paths in the slot, escaped.
    pub not_undone: Vec<String>,
    /// The state row to be put back; `None`: there was none.
    pub row: Option<SlotState>,
}

#[derive(Debug)]
struct Kept {
    directory: PathBuf,
    files: Vec<KeptFile>,
    /// Where it was, and where it is now.
    moved: Vec<(RelPath, PathBuf)>,
    absent: Vec<Absent>,
    set_aside: Vec<(RelPath, RelPath)>,
    record: Option<Vec<u8>>,
    row: Option<SlotState>,
    /// Every entry, if a hook may change any.
    listing: Option<BTreeMap<PathBuf, Stat>>,
    /// Noted after every stat.
    moment_ns: i64,
}

#[derive(Debug)]
struct KeptFile {
    path: RelPath,
    stat: Stat,
    copy: PathBuf,
}

/// A path of payload where nothing was, or nothing that stays there.
#[derive(Debug)]
struct Absent {
    path: RelPath,
    /// The deepest directory above it that was there; `None`: the slot's own.
    existing: Option<RelPath>,
    /// It was a directory, which the refresh empties and replaces.
    was_directory: bool,
}

impl UndoStore {
    /// Keeps what `step` asks for. To be called after its row was written and before it is
    /// executed: made paths that it removes are moved out here. `recorded` is the tree of the
    /// slot's record, and `row` its state row before the run.
    ///
    /// # Errors
    /// The slot is reached through a link, or a file call failed.
    pub fn keep(
        &mut self,
        layout: &Layout,
        step: &Refresh,
        recorded: Option<&Tree>,
        row: Option<SlotState>,
    ) -> Result<(), SlotError> {
        if step.undo == Undo::None {
            return Ok(());
        }
        layout.ensure_slot(&step.slot)?;
        let mut keeper = Keeper {
            root: layout.slot(&step.slot),
            kept: Kept::new(layout, &step.slot, row)?,
            next: 0,
        };
        keeper.keep_changes(step)?;
        let changed: BTreeSet<&RelPath> = step
            .changes
            .iter()
            .filter_map(FileChange::payload_path)
            .collect();
        for path in &changed {
            keeper.keep_payload(path, true)?;
        }
        if step.undo == Undo::Payload {
            let rows = recorded.map(Tree::rows).unwrap_or_default();
            for row in rows.iter().filter(|row| !changed.contains(&row.path)) {
                keeper.keep_payload(&row.path, false)?;
            }
            keeper.kept.listing = Some(listing(scan(&keeper.root)?));
        }
        keeper.kept.moment_ns = file_time_ns(layout)?;
        self.kept.insert(step.slot.clone(), keeper.kept);
        Ok(())
    }

    /// The slots that can go back.
    pub fn slots(&self) -> impl Iterator<Item = &SlotName> {
        self.kept.keys()
    }

    /// Puts `slot` back: payload, record, and what had been moved; removes what appeared. The
    /// caller puts the state row back. `None` if nothing was kept.
    ///
    /// # Errors
    /// A file call failed; the slot can then be between its two states.
    pub fn restore(
        &mut self,
        layout: &Layout,
        slot: &SlotName,
    ) -> Result<Option<Restored>, SlotError> {
        let Some(kept) = self.kept.remove(slot) else {
            return Ok(None);
        };
        let mut restorer = Restorer {
            root: layout.slot(slot),
            trash: kept.directory.join("removed"),
            kept: &kept,
            next: 0,
            removed: Vec::new(),
        };
        vibe_fs::create_directory(&restorer.trash)?;
        restorer.restore_directory(layout, slot)?;
        restorer.remove_added()?;
        restorer.remove_appeared()?;
        restorer.move_back()?;
        let restored_files = restorer.restore_files()?;
        restorer.restore_record(layout, slot)?;
        Ok(Some(Restored {
            restored_files,
            not_undone: restorer.not_undone()?,
            removed: restorer.removed,
            row: kept.row,
        }))
    }
}

fn listing(scan: Scan) -> BTreeMap<PathBuf, Stat> {
    let entries = scan.entries.into_iter();
    entries.map(|entry| (entry.relative, entry.stat)).collect()
}

impl Kept {
    fn new(layout: &Layout, slot: &SlotName, row: Option<SlotState>) -> Result<Self, SlotError> {
        let undo = layout.staging().join("undo");
        crate::layout::ensure_directory(&undo)?;
        let directory = undo.join(slot.directory().replace('/', "@"));
        vibe_fs::remove_tree(&directory)?;
        vibe_fs::create_directory(&directory)?;
        let record = match vibe_fs::read_if_exists(&layout.record(slot), RECORD_BYTES) {
            Err(vibe_fs::ReadError::Fs(error)) => return Err(error.into()),
            Err(_) => None,
            Ok(record) => record,
        };
        Ok(Self {
            directory,
            files: Vec::new(),
            moved: Vec::new(),
            absent: Vec::new(),
            set_aside: Vec::new(),
            record,
            row,
            listing: None,
            moment_ns: i64::MIN,
        })
    }
}

/// Fills a [`Kept`].
struct Keeper {
    root: PathBuf,
    kept: Kept,
    next: usize,
}

impl Keeper {
    fn fresh_place(&mut self) -> PathBuf {
        self.next += 1;
        self.kept.directory.join(self.next.to_string())
    }

    fn keep_changes(&mut self, step: &Refresh) -> Result<(), SlotError> {
        for change in &step.changes {
            match change {
                FileChange::SetAside { path, to } => {
                    self.kept.set_aside.push((path.clone(), to.clone()));
                }
                FileChange::RemoveMade { path } => self.keep_made(path)?,
                FileChange::Delete { .. } | FileChange::Write { .. } => {}
            }
        }
        Ok(())
    }

    fn keep_made(&mut self, path: &RelPath) -> Result<(), SlotError> {
        let is_reachable = vibe_fs::path_guard(&self.root, path)? == Guard::Clear;
        if is_reachable && stat_of(&path.under(&self.root))?.is_some() {
            self.move_out(path)?;
        }
        Ok(())
    }

    fn move_out(&mut self, path: &RelPath) -> Result<(), SlotError> {
        let place = self.fresh_place();
        rename_insisting(&path.under(&self.root), &place)?;
        self.kept.moved.push((path.clone(), place));
        Ok(())
    }

    /// Keeps what is at `path`. Something that is no file is only in the way of a change, so it is
    /// kept only for one.
    fn keep_payload(&mut self, path: &RelPath, is_changed: bool) -> Result<(), SlotError> {
        let (existing, is_reachable) = self.way_to(path)?;
        let stat = match is_reachable {
            true => stat_of(&path.under(&self.root))?,
            false => None,
        };
        match stat {
            None => self.push_absent(path, existing, false),
            Some(stat) if stat.kind == EntryKind::File => self.keep_file(path, stat)?,
            Some(stat) if is_changed => {
                let is_directory = stat.kind == EntryKind::Directory;
                if !is_directory {
                    self.move_out(path)?;
                }
                self.push_absent(path, existing, is_directory);
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// The deepest directory above `path` that will still be there when all is moved aside, and
    /// whether what is at `path` is payload that can be reached.
    fn way_to(&self, path: &RelPath) -> Result<(Option<RelPath>, bool), SlotError> {
        let aside = &self.kept.set_aside;
        if let Some((from, _)) = aside.iter().find(|(from, _)| path.starts_with(from)) {
            return Ok((from.parent(), false));
        }
        Ok(match vibe_fs::path_guard(&self.root, path)? {
            Guard::Clear => (path.parent(), true),
            Guard::Absent(at) | Guard::Blocked { path: at, .. } => (at.parent(), false),
        })
    }

    fn push_absent(&mut self, path: &RelPath, existing: Option<RelPath>, was_directory: bool) {
        self.kept.absent.push(Absent {
            path: path.clone(),
            existing,
            was_directory,
        });
    }

    /// A file that we may not read can still be moved.
    fn keep_file(&mut self, path: &RelPath, stat: Stat) -> Result<(), SlotError> {
        let copy = self.fresh_place();
        match vibe_fs::clone_file(&path.under(&self.root), &copy, stat.exec) {
            Ok(_) => self.kept.files.push(KeptFile {
                path: path.clone(),
                stat,
                copy,
            }),
            Err(CopyError::Fs(error)) if error.kind() == ErrorKind::PermissionDenied => {
                self.move_out(path)?;
                self.push_absent(path, path.parent(), false);
            }
            Err(error) => return Err(error.into()),
        }
        Ok(())
    }
}

/// Puts one slot back.
struct Restorer<'a> {
    root: PathBuf,
    trash: PathBuf,
    kept: &'a Kept,
    next: usize,
    removed: Vec<String>,
}

impl Restorer<'_> {
    fn discard(&mut self, path: &Path) -> Result<(), SlotError> {
        self.next += 1;
        Ok(rename_insisting(
            path,
            &self.trash.join(self.next.to_string()),
        )?)
    }

    /// A hook may have removed the slot, or put something else in its place.
    fn restore_directory(&mut self, layout: &Layout, slot: &SlotName) -> Result<(), SlotError> {
        for path in [layout.package(slot), layout.slot(slot)] {
            let kind = stat_of(&path)?.map(|stat| stat.kind);
            if kind.is_some_and(|kind| kind != EntryKind::Directory) {
                self.discard(&path)?;
            }
            crate::layout::ensure_directory(&path)?;
        }
        Ok(())
    }

    /// Payload that was not there goes, and the directories that were made for it.
    fn remove_added(&mut self) -> Result<(), SlotError> {
        for absent in &self.kept.absent {
            let full = absent.path.under(&self.root);
            let is_clear = vibe_fs::path_guard(&self.root, &absent.path)? == Guard::Clear;
            if !is_clear || self.is_still_in_the_way(&absent.path)? {
                continue;
            }
            match stat_of(&full)?.map(|stat| stat.kind) {
                Some(EntryKind::Directory) if absent.was_directory => continue,
                Some(_) => self.discard(&full)?,
                None => {}
            }
            self.remove_emptied(absent)?;
        }
        Ok(())
    }

    /// Whether the refresh stopped before it moved aside what was at `path`.
    fn is_still_in_the_way(&self, path: &RelPath) -> Result<bool, SlotError> {
        let aside = &self.kept.set_aside;
        match aside.iter().find(|(from, _)| path.starts_with(from)) {
            Some((_, to)) => Ok(stat_of(&to.under(&self.root))?.is_none()),
            None => Ok(false),
        }
    }

    fn remove_emptied(&self, absent: &Absent) -> Result<(), SlotError> {
        let above: Vec<RelPath> = absent.path.ancestors().collect();
        for directory in above.iter().rev() {
            let is_older = absent
                .existing
                .as_ref()
                .is_some_and(|existing| existing.starts_with(directory));
            let full = directory.under(&self.root);
            if is_older || !insisting(&full, || vibe_fs::remove_empty_directory(&full))? {
                break;
            }
        }
        Ok(())
    }

    /// Removes what was not there, or was of another kind, when the slot was kept.
    fn remove_appeared(&mut self) -> Result<(), SlotError> {
        let kept = self.kept;
        let Some(listing) = &kept.listing else {
            return Ok(());
        };
        let found = self.scan_granted(listing)?;
        let aside: BTreeSet<PathBuf> = kept
            .set_aside
            .iter()
            .map(|(_, to)| to.under(Path::new("")))
            .collect();
        let mut settled: Option<&Path> = None;
        for entry in &found.entries {
            let relative = entry.relative.as_path();
            let is_covered = settled.is_some_and(|above| relative.starts_with(above));
            let was = listing.get(relative).map(|stat| stat.kind);
            if is_covered || was == Some(entry.stat.kind) || relative == Path::new(RECORD_NAME) {
                continue;
            }
            settled = Some(relative);
            if !aside.contains(relative) {
                self.discard(&self.root.join(relative))?;
                self.removed.push(shown(relative));
            }
        }
        Ok(())
    }

    /// Lists the slot, letting the owner into older directories that were closed in the run.
    fn scan_granted(&self, listing: &BTreeMap<PathBuf, Stat>) -> Result<Scan, SlotError> {
        let mut granted = BTreeSet::new();
        loop {
            let found = scan(&self.root)?;
            let closed: Vec<PathBuf> = found
                .unreadable
                .iter()
                .map(|path| closed_directory(path, listing))
                .filter(|path| !granted.contains(path))
                .collect();
            if closed.is_empty() {
                return Ok(found);
            }
            for directory in closed {
                vibe_fs::grant_owner(&self.root.join(&directory))?;
                granted.insert(directory);
            }
        }
    }

    /// Puts back what the refresh moved aside or out. Where its place is taken by something that
    /// could not be removed, it stays where it is.
    fn move_back(&mut self) -> Result<(), SlotError> {
        let aside = self.kept.set_aside.iter();
        let aside = aside.map(|(path, to)| (path, to.under(&self.root)));
        let moved = self.kept.moved.iter();
        let moved = moved.map(|(path, place)| (path, place.clone()));
        for (path, from) in aside.chain(moved) {
            let target = path.under(&self.root);
            if stat_of(&from)?.is_some() && stat_of(&target)?.is_none() {
                create_parents_insisting(&self.root, path)?;
                rename_insisting(&from, &target)?;
            }
        }
        Ok(())
    }

    fn restore_files(&mut self) -> Result<usize, SlotError> {
        let mut restored = 0;
        for file in &self.kept.files {
            let full = file.path.under(&self.root);
            let is_clear = vibe_fs::path_guard(&self.root, &file.path)? == Guard::Clear;
            let now = if is_clear { stat_of(&full)? } else { None };
            if now == Some(file.stat) && is_settled(&file.stat, self.kept.moment_ns) {
                continue;
            }
            if now.is_some_and(|stat| stat.kind == EntryKind::Directory) {
                self.discard(&full)?;
            }
            create_parents_insisting(&self.root, &file.path)?;
            rename_insisting(&file.copy, &full)?;
            restored += 1;
        }
        Ok(restored)
    }

    fn restore_record(&mut self, layout: &Layout, slot: &SlotName) -> Result<(), SlotError> {
        let path = layout.record(slot);
        let found = vibe_fs::read_if_exists(&path, RECORD_BYTES).ok().flatten();
        if found == self.kept.record && found.is_some() {
            return Ok(());
        }
        if stat_of(&path)?.is_some() {
            self.discard(&path)?;
        }
        if let Some(bytes) = &self.kept.record {
            vibe_fs::write_atomic(&path, bytes, &layout.staging(), Durability::Unsynced)?;
        }
        Ok(())
    }

    fn not_undone(&self) -> Result<Vec<String>, SlotError> {
        let payload: BTreeSet<PathBuf> = self
            .kept
            .files
            .iter()
            .map(|file| file.path.under(Path::new("")))
            .collect();
        let mut changed = Vec::new();
        for (relative, then) in self.kept.listing.iter().flatten() {
            let is_ours = payload.contains(relative) || relative == Path::new(RECORD_NAME);
            if is_ours || then.kind == EntryKind::Directory {
                continue;
            }
            let now = stat_of(&self.root.join(relative))?;
            if !now.is_some_and(|now| is_same_content(then, &now)) {
                changed.push(shown(relative));
            }
        }
        Ok(changed)
    }
}

/// The directory that has to be opened: `path` itself, or the one above an entry that may not even
/// be looked at.
fn closed_directory(path: &Path, listing: &BTreeMap<PathBuf, Stat>) -> PathBuf {
    let is_directory = listing
        .get(path)
        .is_some_and(|stat| stat.kind == EntryKind::Directory);
    match path.parent() {
        Some(above) if !is_directory => above.to_path_buf(),
        _ => path.to_path_buf(),
    }
}

/// Whether two stats are of the same content; moving a file changes the time of its inode only.
fn is_same_content(then: &Stat, now: &Stat) -> bool {
    let facts = |stat: &Stat| (stat.kind, stat.size, stat.mtime_ns, stat.inode, stat.exec);
    facts(then) == facts(now)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::place::refresh;
    use crate::testing::{Package, World, rel};
    use std::fs;
    use std::os::unix::fs::symlink;
    use vibe_core::plan::WriteReason;
    use vibe_testkit::{make_pipe, set_mode};

    fn write_of(package: &Package, path: &str) -> FileChange {
        FileChange::write(package.tree.get(&rel(path)).unwrap(), WriteReason::Changed)
    }

    fn delete(path: &str) -> FileChange {
        FileChange::Delete { path: rel(path) }
    }

    fn old() -> Package {
        Package::new(&[("a", "1"), ("d/b.sh", "1"), ("e/c", "1"), ("same", "1")])
    }

    fn new() -> Package {
        Package::new(&[("a", "2"), ("n/m/new", "2"), ("same", "1"), ("way", "2")])
    }

    fn changes() -> Vec<FileChange> {
        let new = new();
        vec![
            FileChange::RemoveMade { path: rel("made") },
            FileChange::SetAside {
                path: rel("way"),
                to: rel("way.vibe-kept"),
            },
            delete("d/b.sh"),
            delete("e/c"),
            write_of(&new, "a"),
            write_of(&new, "n/m/new"),
            write_of(&new, "way"),
        ]
    }

    /// A slot of the old package with what its hooks and its user left in it.
    fn world() -> World {
        let world = World::with(&old());
        world.write("made/x", "m");
        world.write("way", "user's");
        world.write("user/x", "u");
        fs::create_dir(world.at("empty")).unwrap();
        symlink("nowhere", world.at("user/link")).unwrap();
        world
    }

    /// Refreshes to the new package, runs `hook`, and goes back.
    fn gone_back(world: &World, undo: Undo, hook: impl FnOnce(&World)) -> Restored {
        let (old, new) = (old(), new());
        let step = world.refresh_step(&new, changes(), undo);
        let mut store = UndoStore::default();
        store
            .keep(&world.layout, &step, Some(&old.tree), Some(old.row()))
            .unwrap();
        refresh(&world.layout, &step, &new, &new.record()).unwrap();
        hook(world);
        assert_eq!(store.slots().collect::<Vec<_>>(), [&world.slot]);
        let restored = store.restore(&world.layout, &world.slot).unwrap().unwrap();
        assert!(store.restore(&world.layout, &world.slot).unwrap().is_none());
        restored
    }

    fn check(undo: Undo, hook: impl FnOnce(&World), removed: &[&str], not_undone: &[&str]) {
        let world = world();
        let before = world.snapshot();
        let restored = gone_back(&world, undo, hook);
        assert_eq!(restored.removed, removed);
        assert_eq!(restored.not_undone, not_undone);
        assert_eq!(restored.row, Some(old().row()));
        if not_undone.is_empty() {
            assert_eq!(world.snapshot(), before);
        }
        assert_eq!(world.layout.clear_staging().unwrap(), Vec::<String>::new());
    }

    #[test]
    fn going_back_gives_the_slot_as_it_was() {
        check(Undo::Changed, |_| {}, &[], &[]);
        check(Undo::Payload, |_| {}, &[], &[]);
    }

    #[test]
    fn what_did_not_change_is_not_touched() {
        let world = world();
        let stats = || ["same", "user/x"].map(|path| stat_of(&world.at(path)).unwrap());
        let before = stats();
        // The clock has to tick once for a stat to be trusted.
        let born_ns = before[0].map_or(0, |stat| stat.ctime_ns);
        while file_time_ns(&world.layout).unwrap() <= born_ns {}
        let restored = gone_back(&world, Undo::Payload, |_| {});
        assert_eq!(stats(), before);
        assert_eq!(restored.restored_files, 3);
    }

    #[test]
    fn nothing_is_kept_where_nothing_is_asked() {
        let world = world();
        let step = world.refresh_step(&new(), changes(), Undo::None);
        let mut store = UndoStore::default();
        store.keep(&world.layout, &step, None, None).unwrap();
        assert!(world.at("made/x").exists());
        assert!(store.restore(&world.layout, &world.slot).unwrap().is_none());
    }

    #[test]
    fn what_a_hook_did_to_payload_is_undone() {
        let hook = |world: &World| {
            world.write("same", "9");
            fs::remove_file(world.at("a")).unwrap();
            fs::create_dir(world.at("a")).unwrap();
            world.write("d/b.sh", "hook's");
            world.write(".vibe-slot.toml", "hook's");
        };
        check(Undo::Payload, hook, &["a"], &[]);
    }

    #[test]
    fn what_appeared_is_removed_whatever_it_is() {
        let hook = |world: &World| {
            world.write("out/x", "h");
            world.write(".git/config", "h");
            world.write("n/m/made", "h");
            world.write("made/again", "h");
            world.write("user/new", "h");
            make_pipe(&world.at("pipe"));
            symlink("/etc", world.at("link")).unwrap();
        };
        let removed = [".git", "link", "made", "n", "out", "pipe", "user/new"];
        check(Undo::Payload, hook, &removed, &[]);
    }

    #[test]
    fn changed_older_files_are_named() {
        let hook = |world: &World| {
            world.write("user/x", "longer than before");
            fs::remove_file(world.at("user/link")).unwrap();
        };
        check(Undo::Payload, hook, &[], &["user/link", "user/x"]);
    }

    #[test]
    fn a_payload_directory_that_became_a_link_is_a_directory_again() {
        let outside = tempfile::tempdir().unwrap();
        let hook = |world: &World| {
            fs::remove_dir_all(world.at("empty")).unwrap();
            symlink(outside.path(), world.at("e")).unwrap();
            symlink(outside.path(), world.at("empty")).unwrap();
            fs::write(outside.path().join("c"), "o").unwrap();
        };
        let world = world();
        let mut before = world.snapshot();
        gone_back(&world, Undo::Payload, hook);
        before.remove("empty");
        assert_eq!(world.snapshot(), before);
        assert_eq!(fs::read_to_string(outside.path().join("c")).unwrap(), "o");
    }

    #[test]
    fn a_slot_that_a_hook_removed_or_replaced_comes_back() {
        let not_undone = ["user/link", "user/x", "way"];
        let remove = |world: &World| fs::remove_dir_all(world.root()).unwrap();
        let world_of = |hook: &dyn Fn(&World)| {
            let world = world();
            let before = world.snapshot();
            let restored = gone_back(&world, Undo::Payload, hook);
            assert_eq!(restored.not_undone, not_undone);
            let found = world.snapshot();
            for path in ["a", "d/b.sh", "e/c", "same", "made/x", ".vibe-slot.toml"] {
                assert_eq!(found.get(path), before.get(path), "{path}");
            }
        };
        world_of(&remove);
        world_of(&|world| {
            remove(world);
            symlink("/etc", world.root()).unwrap();
        });
        world_of(&|world| {
            fs::remove_dir_all(world.layout.package(&world.slot)).unwrap();
            fs::write(world.layout.package(&world.slot), "").unwrap();
        });
    }

    #[test]
    fn a_slot_without_a_record_is_one_again() {
        let world = world();
        fs::remove_file(world.at(".vibe-slot.toml")).unwrap();
        let before = world.snapshot();
        gone_back(&world, Undo::Changed, |_| {});
        assert_eq!(world.snapshot(), before);
    }

    #[test]
    fn links_in_place_of_payload_come_back() {
        let world = world();
        fs::remove_file(world.at("a")).unwrap();
        symlink("same", world.at("a")).unwrap();
        fs::remove_dir_all(world.at("e")).unwrap();
        symlink("d", world.at("e")).unwrap();
        let before = world.snapshot();
        let (old, new) = (old(), Package::new(&[("a", "2"), ("e/c", "2")]));
        let aside = FileChange::SetAside {
            path: rel("e"),
            to: rel("e.vibe-kept"),
        };
        let changes = vec![aside, write_of(&new, "a"), write_of(&new, "e/c")];
        for undo in [Undo::Changed, Undo::Payload] {
            let step = world.refresh_step(&new, changes.clone(), undo);
            let mut store = UndoStore::default();
            store
                .keep(&world.layout, &step, Some(&old.tree), None)
                .unwrap();
            refresh(&world.layout, &step, &new, &new.record()).unwrap();
            let restored = store.restore(&world.layout, &world.slot).unwrap().unwrap();
            assert_eq!((restored.removed, restored.row), (vec![], None));
            assert_eq!(world.snapshot(), before);
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn closed_files_and_directories_do_not_stop_going_back() {
        let world = world();
        crate::testing::as_owner_without_power(world.layout.project_root(), || {
            let before = world.snapshot();
            set_mode(&world.at("a"), 0);
            let restored = gone_back(&world, Undo::Payload, |world| {
                world.write("out/x", "h");
                world.write("user/new/x", "h");
                set_mode(&world.at("out"), 0);
                set_mode(&world.at("user/new"), 0);
                set_mode(&world.at("user"), 0);
                set_mode(&world.at("n"), 0o555);
                set_mode(&world.root(), 0o555);
            });
            set_mode(&world.at("a"), 0o644);
            assert_eq!(restored.removed, ["out", "user/new"]);
            assert_eq!(restored.not_undone, Vec::<String>::new());
            assert_eq!(world.snapshot(), before);
        });
    }
}
