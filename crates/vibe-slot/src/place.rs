//! Building new slots, and bringing existing ones to a tree by the least change.
//!
//! Every file is built in staging, from content that is proved or is checked against its digest while
//! it is written, and renamed into place; nothing that exists is opened for writing, and nothing is
//! touched behind a link.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use vibe_core::formats::record::SlotRecord;
use vibe_core::formats::state::LinkMode;
use vibe_core::plan::{FileChange, Place, Refresh};
use vibe_core::{RelPath, SlotName, TreeId};
use vibe_fs::{EntryKind, Guard, ParentError, stat_of};

use crate::access::{
    create_parents_insisting, insisting, remove_at_once, remove_emptied, remove_empty_insisting,
    rename_insisting,
};
use crate::error::SlotError;
use crate::layout::Layout;
use crate::materialize::{Fallback, Materializer};
use crate::record::{recorded_paths, write_record};
use crate::source::{PayloadSource, Proof};

/// What placing or refreshing a slot really did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Placed {
    /// The way the slot's files are placed: of a new one as it really went, of another the way that
    /// it keeps.
    pub link_mode: LinkMode,
    /// What was to be linked and was copied.
    pub fallback: Option<Fallback>,
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
    let files = Materializer::new(&step.slot, source, step.link_mode, Proof::Stat);
    build(&built, source, &files)?;
    vibe_fs::write_atomic(
        &built.join(vibe_core::relative_path::RECORD_NAME),
        record.render().as_bytes(),
        staging.path(),
        vibe_fs::Durability::Unsynced,
    )?;
    layout.ensure_package(&step.slot)?;
    refuse_existing(layout, &step.slot)?;
    vibe_fs::rename_over(&built, &layout.slot(&step.slot))?;
    // Now empty: it needs no look inside.
    vibe_fs::remove_empty_directory(&staging.keep())?;
    Ok(Placed {
        link_mode: files.mode(),
        fallback: files.fallback(),
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

fn build(
    root: &Path,
    source: &dyn PayloadSource,
    files: &Materializer<'_>,
) -> Result<(), SlotError> {
    let rows = source.tree().rows();
    vibe_fs::create_directory(root)?;
    for directories in directories_by_depth(source).values() {
        directories
            .par_iter()
            .try_for_each(|directory| vibe_fs::create_directory(&directory.under(root)))?;
    }
    // In byte order, so that a thread mostly has a directory to itself.
    rows.par_iter()
        .try_for_each(|row| files.make(&row.path.under(root), &row.path, row.digest, row.exec))
}

/// The directories of the package, those first that others lie in.
fn directories_by_depth(source: &dyn PayloadSource) -> BTreeMap<usize, Vec<RelPath>> {
    let rows = source.tree().rows().iter();
    let parents: BTreeSet<RelPath> = rows.filter_map(|row| row.path.parent()).collect();
    let mut all: BTreeSet<RelPath> = parents.iter().flat_map(RelPath::ancestors).collect();
    all.extend(parents);
    let mut by_depth: BTreeMap<usize, Vec<RelPath>> = BTreeMap::new();
    for directory in all {
        let depth = directory.as_str().split('/').count();
        by_depth.entry(depth).or_default().push(directory);
    }
    by_depth
}

/// Executes the changes of `step` in order, then writes `record` if its bytes differ.
///
/// All new files are built and checked first, so a source that changed is noticed before anything
/// in the slot is touched; a stored file is read whole, since the damaged file whose place it takes
/// may be the same one under another name. What is to be deleted may be absent already.
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
    let files = Materializer::new(&step.slot, source, step.link_mode, Proof::Content);
    build_changes(staging.path(), step, &files)?;
    let refresher = Refresher {
        root: layout.slot(&step.slot),
        slot: &step.slot,
    };
    let recorded = recorded_paths(layout, &step.slot)?;
    let mut files_written = 0;
    for (index, change) in step.changes.iter().enumerate() {
        refresher.apply(change, &staged(staging.path(), index))?;
        files_written += usize::from(matches!(change, FileChange::Write { .. }));
    }
    // Of files that a refresh cut short removed, the directories may be left.
    let gone = recorded
        .iter()
        .filter(|path| record.tree.get(path).is_none());
    remove_emptied(&refresher.root, gone)?;
    Ok(Placed {
        link_mode: step.link_mode,
        fallback: files.fallback(),
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
    files: &Materializer<'_>,
) -> Result<(), SlotError> {
    let changes = step.changes.par_iter().enumerate();
    changes.try_for_each(|(index, change)| match change {
        FileChange::Write {
            path, sha256, exec, ..
        } => files.make(&staged(staging, index), path, *sha256, *exec),
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
            FileChange::RemoveMade { path } => self.remove_made(path, staged),
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

    fn remove_made(&self, path: &RelPath, staged: &Path) -> Result<(), SlotError> {
        if !self.is_reachable("remove", path)? {
            return Ok(());
        }
        Ok(remove_at_once(&path.under(&self.root), staged)?)
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
        Ok(remove_empty_insisting(&self.root, path)?)
    }

    fn write(&self, path: &RelPath, staged: &Path) -> Result<(), SlotError> {
        let doing = "write";
        match create_parents_insisting(&self.root, path) {
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

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Package, World, rel};
    use std::collections::BTreeMap;
    use std::fs;
    use std::os::unix::fs::symlink;
    use vibe_core::plan::{Undo, WriteReason};
    use vibe_testkit::set_mode;

    fn write_of(package: &Package, path: &str) -> FileChange {
        FileChange::write(package.tree.get(&rel(path)).unwrap(), WriteReason::Added)
    }

    fn delete(path: &str) -> FileChange {
        FileChange::Delete { path: rel(path) }
    }

    fn aside(path: &str) -> FileChange {
        FileChange::SetAside {
            path: rel(path),
            to: rel(&format!("{path}.vibe-kept")),
        }
    }

    fn refreshed(
        world: &World,
        package: &Package,
        changes: Vec<FileChange>,
    ) -> Result<Placed, SlotError> {
        let step = world.refresh_step(package, changes, Undo::None);
        refresh(&world.layout, &step, package, &package.record())
    }

    fn shown(world: &World, path: &str) -> Option<String> {
        world.snapshot().remove(path)
    }

    #[test]
    fn a_placed_slot_holds_just_the_package_and_its_record() {
        let package = Package::new(&[("a/b/c", "1"), ("a/run.sh", "2"), ("z", "")]);
        let world = World::new();
        let step = world.place_step(&package);
        let placed = place(&world.layout, &step, &package, &package.record()).unwrap();
        assert_eq!((placed.files_written, placed.record_written), (3, true));
        let expected = [
            (".vibe-slot.toml", package.record().render()),
            ("a", "/".into()),
            ("a/b", "/".into()),
            ("a/b/c", "1".into()),
            ("a/run.sh", "*2".into()),
            ("z", String::new()),
        ];
        assert_eq!(
            world.snapshot(),
            expected.map(|(p, t)| (p.to_owned(), t)).into()
        );
        assert!(world.staged().is_empty());
    }

    #[test]
    fn a_new_slot_replaces_nothing_not_even_an_empty_directory() {
        let package = Package::new(&[("a", "1")]);
        let world = World::new();
        fs::create_dir_all(world.root()).unwrap();
        let step = world.place_step(&package);
        let error = place(&world.layout, &step, &package, &package.record()).unwrap_err();
        assert!(matches!(error, SlotError::Exists { .. }), "{error}");
        assert!(world.snapshot().is_empty());
    }

    #[test]
    fn a_file_that_changed_since_its_tree_was_taken_is_named_and_nothing_is_placed() {
        let mut package = Package::new(&[("a", "1"), ("d/b", "2")]);
        package.files.insert(rel("d/b"), b"3".to_vec());
        let world = World::new();
        let step = world.place_step(&package);
        let error = place(&world.layout, &step, &package, &package.record()).unwrap_err();
        assert!(matches!(error, SlotError::Changed { .. }), "{error}");
        assert!(error.to_string().contains("`d/b`"), "{error}");
        assert!(!world.root().exists() && world.staged().is_empty());
        assert!(!world.layout.package(&world.slot).exists());
    }

    #[test]
    fn another_tree_than_planned_is_refused() {
        let (one, other) = (Package::new(&[("a", "1")]), Package::new(&[("a", "2")]));
        let world = World::new();
        let step = world.place_step(&one);
        for (source, record) in [(&other, &one), (&one, &other)] {
            let error = place(&world.layout, &step, source, &record.record()).unwrap_err();
            assert!(matches!(error, SlotError::OtherTree { .. }), "{error}");
        }
        let step = world.refresh_step(&one, vec![], Undo::None);
        assert!(refresh(&world.layout, &step, &other, &one.record()).is_err());
    }

    #[test]
    fn a_file_that_is_missing_or_too_large_is_an_error() {
        struct Small(Package);
        impl PayloadSource for Small {
            fn tree(&self) -> &vibe_core::Tree {
                self.0.tree()
            }
            fn open(
                &self,
                path: &RelPath,
            ) -> Result<Box<dyn std::io::Read + Send>, crate::source::PayloadError> {
                self.0.open(path)
            }
            fn file_bytes(&self) -> u64 {
                3
            }
        }
        let outcome = |text| {
            let package = Package::new(&[("a", text)]);
            let world = World::new();
            let step = world.place_step(&package);
            let record = package.record();
            place(&world.layout, &step, &Small(package), &record)
        };
        assert!(outcome("123").is_ok());
        assert!(matches!(outcome("1234"), Err(SlotError::Copy(_))));
        let mut package = Package::new(&[("a", "1")]);
        package.files.clear();
        let world = World::new();
        let step = world.place_step(&package);
        let error = place(&world.layout, &step, &package, &package.record()).unwrap_err();
        assert!(matches!(error, SlotError::Source { .. }), "{error}");
    }

    #[test]
    fn a_refresh_touches_only_what_the_plan_names() {
        let world = World::with(&Package::new(&[
            ("d/old", "1"),
            ("e/x", "1"),
            ("same", "1"),
        ]));
        world.write("e/mine", "m");
        fs::create_dir(world.at("empty")).unwrap();
        let before = stat_of(&world.at("same")).unwrap();
        let package = Package::new(&[("n/new.sh", "2"), ("same", "1")]);
        let changes = vec![
            delete("d/old"),
            delete("e/x"),
            write_of(&package, "n/new.sh"),
        ];
        let placed = refreshed(&world, &package, changes).unwrap();
        assert_eq!((placed.files_written, placed.record_written), (1, true));
        let expected = [
            (".vibe-slot.toml", package.record().render()),
            ("e", "/".into()),
            ("e/mine", "m".into()),
            ("empty", "/".into()),
            ("n", "/".into()),
            ("n/new.sh", "*2".into()),
            ("same", "1".into()),
        ];
        assert_eq!(
            world.snapshot(),
            expected.map(|(p, t)| (p.to_owned(), t)).into()
        );
        assert_eq!(stat_of(&world.at("same")).unwrap(), before);
        assert!(world.staged().is_empty());
    }

    #[test]
    fn an_empty_refresh_writes_the_record_only_if_its_bytes_differ() {
        let package = Package::new(&[("a", "1")]);
        let world = World::with(&package);
        assert!(!refreshed(&world, &package, vec![]).unwrap().record_written);
        fs::write(world.at(".vibe-slot.toml"), "x").unwrap();
        assert!(refreshed(&world, &package, vec![]).unwrap().record_written);
        fs::remove_dir_all(world.root()).unwrap();
        let changes = vec![write_of(&package, "a")];
        refreshed(&world, &package, changes).unwrap();
        assert_eq!(
            shown(&world, "a").as_deref(),
            Some("1"),
            "a lost slot comes back"
        );
    }

    #[test]
    fn a_changed_source_is_noticed_before_anything_in_the_slot_is_touched() {
        let world = World::with(&Package::new(&[("a", "1"), ("b", "1")]));
        let before = world.snapshot();
        let mut package = Package::new(&[("b", "2"), ("c", "2")]);
        let changes = vec![
            delete("a"),
            write_of(&package, "b"),
            write_of(&package, "c"),
        ];
        package.files.insert(rel("c"), b"other".to_vec());
        assert!(matches!(
            refreshed(&world, &package, changes),
            Err(SlotError::Changed { .. })
        ));
        assert_eq!(world.snapshot(), before);
    }

    #[test]
    fn files_and_links_in_place_of_a_file_are_replaced_and_never_written_into() {
        let world = World::with(&Package::new(&[]));
        let outside = world.layout.project_root().join("outside");
        fs::write(&outside, "o").unwrap();
        symlink(&outside, world.at("link")).unwrap();
        fs::hard_link(&outside, world.at("hard")).unwrap();
        let package = Package::new(&[("link", "1"), ("hard", "2")]);
        let changes = vec![write_of(&package, "link"), write_of(&package, "hard")];
        refreshed(&world, &package, changes).unwrap();
        assert_eq!(shown(&world, "link").as_deref(), Some("1"));
        assert_eq!(shown(&world, "hard").as_deref(), Some("2"));
        assert_eq!(fs::read_to_string(&outside).unwrap(), "o");
    }

    #[test]
    fn a_plan_that_leads_through_a_link_or_over_a_directory_fails() {
        let world = World::with(&Package::new(&[]));
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("x"), "o").unwrap();
        symlink(outside.path(), world.at("d")).unwrap();
        make_tree(&world);
        let package = Package::new(&[("d/x", "1"), ("full", "1")]);
        let made = |path| FileChange::RemoveMade { path: rel(path) };
        for change in [
            write_of(&package, "d/x"),
            delete("d/x"),
            made("d/x"),
            aside("d/x"),
            aside("absent"),
            delete("full"),
            write_of(&package, "full"),
            FileChange::SetAside {
                path: rel("full"),
                to: rel("taken"),
            },
        ] {
            let name = format!("{change:?}");
            let error = refreshed(&world, &package, vec![change]).expect_err(&name);
            assert!(
                matches!(error, SlotError::Unplanned { .. }),
                "{name}: {error}"
            );
        }
        assert_eq!(fs::read_to_string(outside.path().join("x")).unwrap(), "o");
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 1);
    }

    fn make_tree(world: &World) {
        world.write("full/f", "f");
        world.write("taken", "t");
    }

    #[test]
    fn what_stands_in_the_way_is_moved_aside_and_made_paths_go() {
        let world = World::with(&Package::new(&[("a", "1")]));
        make_tree(&world);
        world.write("made/deep/x", "m");
        symlink("/etc", world.at("d")).unwrap();
        let package = Package::new(&[("d/x", "2"), ("full", "2"), ("made", "2")]);
        let changes = vec![
            FileChange::RemoveMade { path: rel("made") },
            FileChange::RemoveMade {
                path: rel("gone/x"),
            },
            aside("d"),
            aside("full"),
            delete("a"),
            delete("gone"),
            delete("gone/x"),
            write_of(&package, "d/x"),
            write_of(&package, "full"),
            write_of(&package, "made"),
        ];
        refreshed(&world, &package, changes).unwrap();
        let expected: BTreeMap<&str, &str> = BTreeMap::from([
            ("d", "/"),
            ("d.vibe-kept", "->"),
            ("d/x", "2"),
            ("full", "2"),
            ("full.vibe-kept", "/"),
            ("full.vibe-kept/f", "f"),
            ("made", "2"),
            ("taken", "t"),
        ]);
        let mut found = world.snapshot();
        found.remove(".vibe-slot.toml");
        let found: BTreeMap<&str, &str> = found
            .iter()
            .map(|(p, t)| (p.as_str(), t.as_str()))
            .collect();
        assert_eq!(found, expected);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn read_only_directories_do_not_stop_a_refresh() {
        let old = Package::new(&[("d/a", "1"), ("d/b", "1"), ("d/made/x", "1")]);
        let world = World::with(&old);
        crate::testing::as_owner_without_power(world.layout.project_root(), || {
            world.write("d/user", "u");
            set_mode(&world.at("d/made"), 0);
            set_mode(&world.at("d"), 0o555);
            set_mode(&world.root(), 0o555);
            let package = Package::new(&[("d/a", "2"), ("d/n/c", "2"), ("top", "2")]);
            let changes = vec![
                FileChange::RemoveMade {
                    path: rel("d/made"),
                },
                aside("d/user"),
                delete("d/b"),
                write_of(&package, "d/a"),
                write_of(&package, "d/n/c"),
                write_of(&package, "top"),
            ];
            refreshed(&world, &package, changes).unwrap();
            assert_eq!(shown(&world, "d/n/c").as_deref(), Some("2"));
            assert_eq!(shown(&world, "d/user.vibe-kept").as_deref(), Some("u"));
            assert_eq!(shown(&world, "d/b"), None);
        });
    }

    #[test]
    fn directories_that_a_refresh_cut_short_left_empty_go() {
        let old = Package::new(&[("d/n/x", "1"), ("kept/x", "1"), ("y", "1")]);
        let world = World::with(&old);
        fs::remove_file(world.at("d/n/x")).unwrap();
        fs::remove_file(world.at("kept/x")).unwrap();
        let new = Package::new(&[("kept/x", "1"), ("y", "1")]);
        refreshed(&world, &new, Vec::new()).unwrap();
        let names: Vec<String> = world.snapshot().into_keys().collect();
        assert_eq!(names, [".vibe-slot.toml", "kept", "y"]);
    }
}
