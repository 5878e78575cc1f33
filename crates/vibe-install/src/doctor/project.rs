//! The project: its files, the lock between runs, and what an earlier run left.

use std::collections::BTreeSet;
use std::path::Path;

use vibe_core::PackageId;
use vibe_core::hook::PhaseState;
use vibe_fs::error::shown;
use vibe_fs::{EntryKind, FileLock, LockOutcome, list_dir, may_write, read_holder, stat_of};
use vibe_slot::state_file;

use super::{Check, Group, in_full};
use crate::error::InstallError;
use crate::opening::waiting_commit;
use crate::project::Project;
use crate::settings::Context;
use crate::uninstall::left_over;

/// What a run keeps in staging between its steps.
const CLOCK: &str = "clock";

/// Looks at the project that `found` is; outside any project there is nothing to look at.
pub(super) fn checks(
    context: &Context<'_>,
    found: &Result<Option<Project>, InstallError>,
) -> Vec<Check> {
    let mut group = Group::new("project");
    let start = shown(&context.settings.start);
    match found {
        Ok(Some(project)) => look(&mut group, project),
        Ok(None) => group.ok("root", format!("none: no vibe.toml in {start} or above it")),
        Err(error @ InstallError::PackageIsNoProject { .. }) => group.ok("root", in_full(error)),
        Err(error @ InstallError::NoStart { .. }) => group.problem(
            "root",
            in_full(error),
            "name a directory that is there with --project",
        ),
        Err(error) => group.problem("vibe.toml", in_full(error), "correct it first"),
    }
    group.checks
}

fn look(group: &mut Group, project: &Project) {
    group.ok("root", shown(&project.root));
    let manifests = project.manifests.iter();
    let requirements: usize = manifests.map(|own| own.manifest.requires.len()).sum();
    group.ok("vibe.toml", format!("{requirements} required"));
    lock(group, project);
    vibedeps(group, project);
    let is_busy = runs(group, project);
    commit(group, project);
    state(group, project);
    if !is_busy {
        staging(group, project);
        leftovers(group, project);
    }
}

fn lock(group: &mut Group, project: &Project) {
    const NAME: &str = "vibe.lock";
    const INSTALL: &str = "`vibe install` brings it up to date";
    match project.read_lock() {
        Err(error) => group.problem(NAME, in_full(&error), "restore it from version control"),
        Ok(None) if project.requires_nothing() => group.ok(NAME, "none, and nothing is required"),
        Ok(None) => group.warning(NAME, "missing", INSTALL),
        Ok(Some(found)) => {
            let lock = found.lock;
            let manifests = project.manifests.iter();
            let required = manifests.flat_map(|own| own.manifest.requires.keys());
            let absent = required.filter(|id| lock.get(id).is_none());
            let absent: BTreeSet<&str> = absent.map(PackageId::as_str).collect();
            let absent: Vec<&str> = absent.into_iter().collect();
            match absent.is_empty() {
                true => group.ok(NAME, format!("{} locked", lock.packages.len())),
                false => {
                    group.warning(
                        NAME,
                        format!("does not name {}", absent.join(", ")),
                        INSTALL,
                    );
                }
            }
        }
    }
}

fn vibedeps(group: &mut Group, project: &Project) {
    const NAME: &str = "vibedeps";
    let path = project.layout.vibedeps();
    let kind = match stat_of(&path) {
        Err(error) => {
            return group.problem(
                NAME,
                in_full(&error),
                "make it a directory that you may read",
            );
        }
        Ok(stat) => stat.map(|stat| stat.kind),
    };
    match kind {
        None if may_write(&project.root) => group.ok(NAME, "not there yet"),
        None => read_only(group, NAME, &project.root),
        Some(EntryKind::Directory) if !may_write(&path) => read_only(group, NAME, &path),
        Some(EntryKind::Directory) => group.ok(NAME, "writable"),
        Some(kind) => group.problem(
            NAME,
            format!("{} is {}", shown(&path), kind.as_str()),
            "move it away; an install makes the directory",
        ),
    }
}

fn read_only(group: &mut Group, name: &'static str, path: &Path) {
    group.warning(
        name,
        format!("{} cannot be written", shown(path)),
        "what is installed can be used; for changes, make it writable",
    );
}

/// The lock that keeps runs apart; whether a run holds it.
fn runs(group: &mut Group, project: &Project) -> bool {
    const NAME: &str = "lock between runs";
    let path = project.layout.lock_file();
    match FileLock::try_shared(&path) {
        Ok(LockOutcome::Held(_)) => group.ok(NAME, "works"),
        Ok(LockOutcome::Busy) => {
            let holder = read_holder(&path).map_or_else(
                || "by another run".to_owned(),
                |holder| {
                    let command = vibe_core::text::escape(&holder.command);
                    format!("by process {}: {command}", holder.pid)
                },
            );
            group.ok(NAME, format!("works, and is held {holder}"));
            return true;
        }
        Ok(LockOutcome::Unsupported) => group.warning(
            NAME,
            "this file system has no locks",
            "do not run two vibes here at once",
        ),
        Err(error) if error.is_not_found() => group.ok(NAME, "not used yet"),
        Err(error) => group.warning(NAME, in_full(&error), "make it a file that you may read"),
    }
    false
}

fn commit(group: &mut Group, project: &Project) {
    const NAME: &str = "last run";
    match waiting_commit(project) {
        Ok(None) => group.ok(NAME, "nothing of it waits to be finished"),
        Ok(Some(_)) => group.warning(
            NAME,
            "was cut short in its commit",
            "the next `vibe install` finishes it",
        ),
        Err(error) => group.problem(NAME, in_full(&error), "look at vibedeps/.state"),
    }
}

fn state(group: &mut Group, project: &Project) {
    const NAME: &str = "install hooks";
    let state = match state_file::load(&project.layout) {
        Ok(state) => state,
        Err(error) => {
            let hint = "use a vibe that is as new as the one that wrote it; or move the file away, and \
                        `vibe install` makes it anew";
            return group.problem(NAME, in_full(&error), hint);
        }
    };
    let slots = state.slots.iter().map(|(slot, row)| (slot, &row.phases));
    let clones = state.clones.iter().map(|(slot, row)| (slot, &row.phases));
    let owed = slots
        .chain(clones)
        .filter(|(_, phases)| phases.values().any(|state| *state == PhaseState::Owed));
    let owed: Vec<String> = owed.map(|(slot, _)| slot.title()).collect();
    match owed.is_empty() {
        true => group.ok(NAME, "none is due"),
        false => group.warning(
            NAME,
            format!("still due in {}", owed.join(", ")),
            "`vibe hooks list` says why; the next `vibe install` runs them",
        ),
    }
}

fn staging(group: &mut Group, project: &Project) {
    const NAME: &str = "staging";
    let left = match list_dir(&project.layout.staging()) {
        Err(error) if error.is_not_found() => 0,
        Err(error) => return group.warning(NAME, in_full(&error), "make it readable"),
        Ok(entries) => {
            let others = entries.iter().filter(|entry| *entry.relative != *CLOCK);
            others.count()
        }
    };
    match left {
        0 => group.ok(NAME, "empty"),
        _ => group.warning(
            NAME,
            format!("{left} left by a run that was killed"),
            "the next `vibe install` removes it",
        ),
    }
}

fn leftovers(group: &mut Group, project: &Project) {
    const NAME: &str = "slots";
    let lock = match project.read_lock() {
        Ok(lock) => lock.map(|found| found.lock).unwrap_or_default(),
        // Told already.
        Err(_) => return,
    };
    match left_over(project, &lock) {
        Err(error) => group.problem(NAME, in_full(&error), "look at vibedeps"),
        Ok(left) if left.is_empty() => group.ok(NAME, "only what vibe.lock names"),
        Ok(left) => {
            let names: Vec<&str> = left.iter().map(PackageId::as_str).collect();
            let found = format!("vibe.lock does not name those of {}", names.join(", "));
            group.warning(NAME, found, "the next `vibe install` removes them");
        }
    }
}
