//! Any disk, any target: a refresh gives just the target's bytes and keeps what is not ours, and
//! going back gives the disk as it was.
#![cfg(unix)]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use proptest::prelude::*;
use vibe_core::contents::{DiskEntry, SlotContents};
use vibe_core::plan::{FileChange, Refresh, Undo, WriteReason};
use vibe_core::{RelPath, Tree, TreeRow};

use crate::examine::examine;
use crate::place::refresh;
use crate::testing::{Package, World, rel};
use crate::undo::UndoStore;

const PATHS: [&str; 8] = ["a", "a/x", "a/y/z", "b", "b/c/d", "b/e", "f.sh", "g"];

/// What a user or a hook does to the slot.
#[derive(Debug, Clone, Copy)]
enum Act {
    Write,
    Delete,
    Link,
    Directory,
}

/// A package of those of the picked files that can be together.
fn package() -> impl Strategy<Value = Package> {
    prop::collection::vec(prop::option::of(0..3u8), PATHS.len()).prop_map(|picked| {
        let mut files: Vec<(&str, String)> = Vec::new();
        for (path, text) in PATHS.iter().zip(picked) {
            let path_is_free = files
                .iter()
                .all(|(known, _)| !rel(path).starts_with(&rel(known)));
            if let (Some(text), true) = (text, path_is_free) {
                files.push((path, text.to_string()));
            }
        }
        let files: Vec<(&str, &str)> = files.iter().map(|(p, t)| (*p, t.as_str())).collect();
        Package::new(&files)
    })
}

fn acts() -> impl Strategy<Value = Vec<(Act, &'static str)>> {
    let act = prop::sample::select(vec![Act::Write, Act::Delete, Act::Link, Act::Directory]);
    let extra = ["mine", "b/mine", "a/y/mine"];
    let paths = PATHS.iter().chain(&extra).copied().collect::<Vec<_>>();
    prop::collection::vec((act, prop::sample::select(paths)), 0..8)
}

/// Does what is possible.
fn act(world: &World, act: Act, path: &str) {
    let full = world.at(path);
    let _ = fs::create_dir_all(full.parent().unwrap());
    match act {
        Act::Write => drop(fs::write(&full, format!("user's {path}"))),
        Act::Delete => drop(fs::remove_file(&full).or_else(|_| fs::remove_dir_all(&full))),
        Act::Link => {
            let _ = fs::remove_file(&full);
            drop(std::os::unix::fs::symlink("nowhere", &full));
        }
        Act::Directory => {
            let _ = fs::remove_file(&full);
            let _ = fs::create_dir_all(&full);
            drop(fs::write(full.join("inside"), "user's"));
        }
    }
}

/// The smallest planner that knows the rules.
struct Planner<'a> {
    recorded: &'a Tree,
    target: &'a Tree,
    disk: &'a SlotContents,
    gone: BTreeSet<RelPath>,
    aside: BTreeSet<RelPath>,
    writes: Vec<FileChange>,
}

impl Planner<'_> {
    fn plan(mut self) -> Vec<FileChange> {
        for row in self.recorded.rows() {
            let is_file = matches!(
                self.disk.entries.get(&row.path),
                Some(DiskEntry::File { .. })
            );
            if is_file && self.target.get(&row.path).is_none() {
                self.gone.insert(row.path.clone());
            }
        }
        for row in self.target.rows() {
            self.plan_row(row);
        }
        let aside = self.aside.into_iter().map(|path| FileChange::SetAside {
            to: path.with_suffix(".vibe-kept").unwrap(),
            path,
        });
        let gone = self
            .gone
            .into_iter()
            .map(|path| FileChange::Delete { path });
        aside.chain(gone).chain(self.writes).collect()
    }

    fn plan_row(&mut self, row: &TreeRow) {
        let is_blocker = |above: &RelPath| {
            let entry = self.disk.entries.get(above);
            entry.is_some_and(|entry| *entry != DiskEntry::Directory) && !self.gone.contains(above)
        };
        let blocker = row.path.ancestors().find(is_blocker);
        let entry = self.disk.entries.get(&row.path).copied();
        let wanted = DiskEntry::File {
            digest: Some(row.digest),
            exec: row.exec,
        };
        if entry == Some(wanted) {
            return;
        }
        let in_the_way = match entry {
            None => false,
            Some(DiskEntry::Directory) => !self.vanishes(&row.path),
            Some(_) => self.recorded.get(&row.path).is_none(),
        };
        self.aside.extend(blocker);
        if in_the_way {
            self.aside.insert(row.path.clone());
        }
        self.writes
            .push(FileChange::write(row, WriteReason::Changed));
    }

    /// Whether deletions alone empty the directory.
    fn vanishes(&self, directory: &RelPath) -> bool {
        let mut below = self
            .disk
            .entries
            .iter()
            .filter(|(path, _)| path.starts_with(directory));
        below.all(|(path, entry)| match entry {
            DiskEntry::Directory => self.gone.iter().any(|gone| gone.starts_with(path)),
            _ => self.gone.contains(path),
        })
    }
}

fn plan(world: &World, recorded: &Tree, target: &Tree) -> Vec<FileChange> {
    let rows = recorded.rows().iter().chain(target.rows());
    let interest = rows.map(|row| row.path.clone()).collect();
    let disk = examine(&world.layout, &world.slot, &interest, &BTreeMap::new()).unwrap();
    let planner = Planner {
        recorded,
        target,
        disk: &disk,
        gone: BTreeSet::new(),
        aside: BTreeSet::new(),
        writes: Vec::new(),
    };
    planner.plan()
}

/// Where a path is after everything was moved aside.
fn moved(path: &str, changes: &[FileChange]) -> String {
    let path = rel(path);
    changes
        .iter()
        .find_map(|change| match change {
            FileChange::SetAside { path: from, to } if path.starts_with(from) => {
                Some(format!("{to}{}", &path.as_str()[from.as_str().len()..]))
            }
            _ => None,
        })
        .unwrap_or(path.to_string())
}

/// The entries that are neither recorded nor ours nor directories.
fn unrecorded(world: &World, recorded: &Tree, target: &Tree) -> BTreeMap<String, String> {
    let mut found = world.snapshot();
    found.retain(|path, text| {
        let is_payload = recorded.get(&rel(path)).is_some();
        let is_equal = target.get(&rel(path)).is_some_and(|row| {
            let bare = text.trim_start_matches('*');
            row.digest == vibe_core::Sha256Digest::of(bare.as_bytes())
        });
        text != "/" && path != ".vibe-slot.toml" && !is_payload && !is_equal
    });
    found
}

/// `snapshot` without directories of `tree` in which nothing is left: a refresh removes them.
fn without_empty_directories(
    snapshot: BTreeMap<String, String>,
    tree: &Tree,
) -> BTreeMap<String, String> {
    let is_ours = |path: &str, text: &str| text == "/" && tree.has_directory(&rel(path));
    let holds_something = |directory: &str| {
        let below = format!("{directory}/");
        let mut entries = snapshot.iter().filter(|(path, _)| path.starts_with(&below));
        entries.any(|(path, text)| !is_ours(path, text))
    };
    let kept = snapshot
        .iter()
        .filter(|(path, text)| !is_ours(path, text) || holds_something(path));
    kept.map(|(path, text)| (path.clone(), text.clone()))
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn a_refresh_gives_the_target_and_keeps_what_is_not_ours(
        old in package(),
        new in package(),
        acts in acts(),
    ) {
        let world = World::with(&old);
        acts.iter().for_each(|(what, path)| act(&world, *what, path));
        let changes = plan(&world, &old.tree, &new.tree);
        let mine = unrecorded(&world, &old.tree, &new.tree);
        let step = world.refresh_step(&new, changes.clone(), Undo::None);
        refresh(&world.layout, &step, &new, &new.record()).unwrap();
        let found = world.snapshot();
        for row in new.tree.rows() {
            let star = if row.exec { "*" } else { "" };
            let text = String::from_utf8(new.files[&row.path].clone()).unwrap();
            prop_assert_eq!(found.get(row.path.as_str()), Some(&format!("{star}{text}")));
        }
        for (path, text) in mine {
            prop_assert_eq!(found.get(&moved(&path, &changes)), Some(&text), "{}", path);
        }
        prop_assert_eq!(&found[".vibe-slot.toml"], &new.record().render());
        prop_assert!(plan(&world, &new.tree, &new.tree).is_empty());
    }

    #[test]
    fn going_back_gives_the_disk_as_it_was(
        old in package(),
        new in package(),
        acts in acts(),
        hook in prop::option::of(prop::sample::select(PATHS.to_vec())),
        executed in 0..12usize,
    ) {
        let world = World::with(&old);
        acts.iter().for_each(|(what, path)| act(&world, *what, path));
        let before = world.snapshot();
        let undo = if hook.is_some() { Undo::Payload } else { Undo::Changed };
        let changes = plan(&world, &old.tree, &new.tree);
        let step = world.refresh_step(&new, changes, undo);
        let mut store = UndoStore::default();
        store.keep(&world.layout, &step, Some(&old.tree), Some(old.row())).unwrap();
        // A refresh may stop anywhere; only a whole one is followed by hooks.
        let is_whole = executed >= step.changes.len();
        let done = Refresh {
            changes: step.changes.iter().take(executed).cloned().collect(),
            ..step.clone()
        };
        refresh(&world.layout, &done, &new, &new.record()).unwrap();
        let hook = hook.filter(|_| is_whole);
        if let Some(path) = hook {
            act(&world, Act::Directory, "hooked");
            if new.tree.get(&rel(path)).is_some() {
                act(&world, Act::Write, path);
            }
        }
        let restored = store.restore(&world.layout, &world.slot).unwrap().unwrap();
        let payload = |snapshot| without_empty_directories(snapshot, &old.tree);
        prop_assert_eq!(payload(world.snapshot()), payload(before));
        prop_assert_eq!(restored.not_undone, Vec::<String>::new());
        prop_assert_eq!(restored.removed.len(), usize::from(hook.is_some()));
        prop_assert_eq!(restored.row, Some(old.row()));
    }
}
