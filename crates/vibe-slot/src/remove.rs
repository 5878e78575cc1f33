//! Removing slots that nothing needs, and slots that a failed run had just made.

use vibe_core::plan::Remove;
use vibe_core::{RelPath, SlotName};
use vibe_fs::error::shown;
use vibe_fs::{EntryKind, Guard};

use crate::access::{insisting, remove_at_once, remove_emptied};
use crate::error::SlotError;
use crate::layout::Layout;
use crate::record::recorded_paths;

/// What became of the files that should go.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Removed {
    /// Files and made paths removed.
    pub removed: usize,
    /// What should have gone and stayed, since it is something else now: paths in the slot.
    pub left: Vec<String>,
    /// Whether the slot's directory is gone.
    pub slot_gone: bool,
}

/// Removes what `step` names, then the directories left empty, the record, the slot and the
/// directory of its package if nothing is left in them. What is absent already is no error. The
/// record goes late, since only it tells a later run which directories were payload.
///
/// # Errors
/// The slot is reached through a link, or a file call failed. Whatever can go is gone then, but
/// the record stays, so that a later run tries again.
pub fn remove(layout: &Layout, step: &Remove) -> Result<Removed, SlotError> {
    let mut outcome = Removed::default();
    if layout.has_slot(&step.slot)? {
        let files = step.files.iter().map(|path| {
            let removed = remove_file(layout, &step.slot, path);
            (path, removed)
        });
        let made = step.made.iter().map(|path| {
            let removed = remove_made(layout, &step.slot, path);
            (path, removed)
        });
        let mut failure = None;
        for (path, removed) in files.chain(made) {
            match removed {
                Ok(removed) => outcome.removed += usize::from(removed),
                Err(SlotError::Unplanned { .. }) => outcome.left.push(path.to_string()),
                Err(error) => failure = failure.or(Some(error)),
            }
        }
        if let Some(error) = failure {
            return Err(error);
        }
        let recorded = recorded_paths(layout, &step.slot)?;
        let gone = step.files.iter().chain(&step.made).chain(&recorded);
        remove_emptied(&layout.slot(&step.slot), gone)?;
        remove_record(layout, &step.slot)?;
        vibe_fs::remove_empty_directory(&layout.slot(&step.slot))?;
        vibe_fs::remove_empty_directory(&layout.package(&step.slot))?;
    }
    outcome.slot_gone = !layout.has_slot(&step.slot)?;
    Ok(outcome)
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
    remove_at_once(&full, &layout.staging().join("made"))?;
    Ok(true)
}

fn remove_record(layout: &Layout, slot: &SlotName) -> Result<(), SlotError> {
    let path = layout.record(slot);
    let is_file = |stat: &vibe_fs::Stat| stat.kind == EntryKind::File;
    insisting(&path, || vibe_fs::remove_file_if(&path, is_file))?;
    Ok(())
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

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Package, World, rel};
    use std::fs;
    use std::os::unix::fs::symlink;
    use vibe_testkit::set_mode;

    fn removed(world: &World, files: &[&str], made: &[&str]) -> Removed {
        let step = Remove {
            slot: world.slot.clone(),
            files: files.iter().map(|path| rel(path)).collect(),
            made: made.iter().map(|path| rel(path)).collect(),
            kept: Vec::new(),
        };
        remove(&world.layout, &step).unwrap()
    }

    #[test]
    fn a_slot_that_holds_nothing_else_goes_with_its_package_directory() {
        let world = World::with(&Package::new(&[("a/b", "1"), ("c", "1")]));
        world.write("out/x", "m");
        set_mode(&world.at("out"), 0o500);
        let outcome = removed(&world, &["a/b", "c", "gone"], &["out", "never/was"]);
        let expected = Removed {
            removed: 3,
            left: Vec::new(),
            slot_gone: true,
        };
        assert_eq!(outcome, expected);
        assert!(!world.layout.package(&world.slot).exists());
        assert_eq!(removed(&world, &["c"], &[]).removed, 0, "again is no error");
    }

    #[test]
    fn what_the_plan_does_not_name_stays() {
        let world = World::with(&Package::new(&[("a/b", "1"), ("a/edited", "1")]));
        let outcome = removed(&world, &["a/b"], &[]);
        assert_eq!((outcome.removed, outcome.slot_gone), (1, false));
        let names: Vec<String> = world.snapshot().into_keys().collect();
        assert_eq!(names, ["a", "a/edited"], "the record goes, the rest stays");
    }

    #[test]
    fn a_removal_cut_short_leaves_no_directories_to_the_next() {
        let world = World::with(&Package::new(&[("a/b/c", "1"), ("d", "1")]));
        fs::remove_file(world.at("a/b/c")).unwrap();
        let outcome = removed(&world, &["d"], &[]);
        assert_eq!((outcome.removed, outcome.slot_gone), (1, true));
    }

    #[test]
    fn nothing_of_a_removed_tree_stays_in_staging() {
        let world = World::with(&Package::new(&[]));
        world.write("out/deep/x", "m");
        world.write("other/x", "m");
        assert_eq!(removed(&world, &[], &["other", "out"]).removed, 2);
        assert!(world.staged().is_empty());
    }

    #[test]
    fn another_version_keeps_the_package_directory() {
        let world = World::with(&Package::new(&[("a", "1")]));
        let other = world.layout.package(&world.slot).join("9.0.0");
        fs::create_dir(&other).unwrap();
        assert!(removed(&world, &["a"], &[]).slot_gone);
        assert!(other.is_dir());
    }

    #[test]
    fn what_turned_into_something_else_is_left_and_named() {
        let world = World::with(&Package::new(&[("a", "1"), ("b", "1"), ("d/x", "1")]));
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("x"), "o").unwrap();
        fs::remove_file(world.at("a")).unwrap();
        symlink("b", world.at("a")).unwrap();
        fs::remove_file(world.at("b")).unwrap();
        fs::create_dir(world.at("b")).unwrap();
        fs::remove_dir_all(world.at("d")).unwrap();
        symlink(outside.path(), world.at("d")).unwrap();
        let outcome = removed(&world, &["a", "b", "d/x"], &["d/x"]);
        assert_eq!(outcome.left, ["a", "b"]);
        assert_eq!((outcome.removed, outcome.slot_gone), (0, false));
        assert!(outside.path().join("x").exists());
    }

    #[test]
    fn a_record_that_is_a_directory_stays() {
        let world = World::with(&Package::new(&[("a", "1")]));
        fs::remove_file(world.at(".vibe-slot.toml")).unwrap();
        fs::create_dir(world.at(".vibe-slot.toml")).unwrap();
        assert!(!removed(&world, &["a"], &[]).slot_gone);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn read_only_directories_do_not_stop_a_removal() {
        let world = World::with(&Package::new(&[("d/a", "1")]));
        crate::testing::as_owner_without_power(world.layout.project_root(), || {
            world.write("d/out/x", "m");
            set_mode(&world.at("d/out"), 0);
            set_mode(&world.at("d"), 0o555);
            let outcome = removed(&world, &["d/a"], &["d/out"]);
            assert_eq!(outcome.removed, 2);
            assert!(outcome.slot_gone, "{outcome:?}");
        });
    }

    #[test]
    fn a_discarded_slot_is_gone_whatever_is_in_it() {
        let world = World::with(&Package::new(&[("d/a", "1")]));
        world.write("more/x", "m");
        set_mode(&world.at("more"), 0);
        assert_eq!(
            discard_new(&world.layout, &world.slot).unwrap(),
            Vec::<String>::new()
        );
        assert!(!world.layout.package(&world.slot).exists());
        assert_eq!(
            discard_new(&world.layout, &world.slot).unwrap(),
            Vec::<String>::new()
        );
    }

    #[test]
    fn a_discarded_slot_that_became_a_link_takes_nothing_with_it() {
        let world = World::with(&Package::new(&[]));
        let outside = tempfile::tempdir().unwrap();
        fs::write(outside.path().join("x"), "o").unwrap();
        fs::remove_dir_all(world.root()).unwrap();
        symlink(outside.path(), world.root()).unwrap();
        discard_new(&world.layout, &world.slot).unwrap();
        assert!(!world.root().is_symlink() && outside.path().join("x").exists());
        symlink(outside.path(), world.layout.package(&world.slot)).unwrap();
        assert!(discard_new(&world.layout, &world.slot).is_err());
    }
}
