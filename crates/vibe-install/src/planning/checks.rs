//! What a plan is refused for, before anything is written.

use std::collections::{BTreeMap, BTreeSet};

use vibe_core::formats::lock::LockedSource;
use vibe_core::hook::HostOs;
use vibe_core::plan::{FileChange, Step};
use vibe_core::{RelPath, SlotName};
use vibe_fs::{fits, path_limit};
use vibe_resolver::lock_check::{LockProblem, Requirer};
use vibe_slot::{Layout, SlotError, in_place};

use super::{Planned, PlannedPackage};
use crate::error::InstallError;
use crate::fetch::Fetched;
use crate::project::Project;
use crate::resolution::Targets;
use crate::target::Target;

/// Where a clone comes, nothing may be left once the steps `going` are taken: a run that found that
/// out later would have taken them.
pub(super) fn check_room(
    layout: &Layout,
    new_clones: &BTreeSet<SlotName>,
    going: &[Step],
) -> Result<(), InstallError> {
    for slot in new_clones {
        let kept_of = |directory: &str| {
            going.iter().find_map(|step| match step {
                Step::Remove(step) if step.slot.directory() == directory => Some(&step.kept),
                _ => None,
            })
        };
        for directory in in_place::lying_at(layout, slot)? {
            let path = match kept_of(&directory) {
                Some(kept) => kept.first().map(|path| format!("{directory}/{path}")),
                None => Some(directory),
            };
            if let Some(path) = path {
                let slot = Box::new(slot.clone());
                return Err(SlotError::Occupied { slot, path }.into());
            }
        }
    }
    Ok(())
}

/// No slot is made in a directory of its package that is somebody else's, as a clone that this
/// machine does not know is.
pub(super) fn check_strays(
    needed: &BTreeSet<SlotName>,
    strays: &[String],
) -> Result<(), InstallError> {
    let in_stray =
        |slot: &&SlotName| slot.version().is_some() && strays.contains(&slot.package().directory());
    match needed.iter().find(in_stray) {
        Some(slot) => Err(SlotError::Occupied {
            slot: Box::new(slot.clone()),
            path: slot.package().directory(),
        }
        .into()),
        None => Ok(()),
    }
}

/// The lock's word on what a published package requires is taken only as long as the package is
/// not read anyway.
pub(super) fn check_requirements(
    project: &Project,
    packages: &BTreeMap<SlotName, PlannedPackage>,
    targets: &Targets,
) -> Result<(), InstallError> {
    let mut problems = Vec::new();
    for package in packages.values() {
        let target = &package.target;
        let is_published = !matches!(target.source, LockedSource::Path(_));
        if let (true, Some(fetched)) = (is_published, &package.fetched) {
            requirement_problems(project, target, fetched, targets, &mut problems);
        }
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(InstallError::LockOutOfDate { problems }),
    }
}

fn requirement_problems(
    project: &Project,
    target: &Target,
    fetched: &Fetched,
    targets: &Targets,
    problems: &mut Vec<LockProblem>,
) {
    if !fetched.requires.keys().eq(&target.dependencies) {
        problems.push(LockProblem::DependenciesDiffer {
            id: target.id.clone(),
            requires: fetched.requires.keys().cloned().collect(),
            locked: target.dependencies.clone(),
        });
    }
    for (id, constraint) in &fetched.requires {
        let (Some(constraint), Some(found)) = (constraint, targets.get(id)) else {
            continue;
        };
        if !constraint.matches(&found.version) && !project.is_overridden(id) {
            problems.push(LockProblem::Unsatisfied {
                requirer: Requirer::Package(target.id.clone()),
                id: id.clone(),
                constraint: constraint.clone(),
                locked: found.version.clone(),
            });
        }
    }
}

/// Refuses, before any write, a file whose whole path the system would not take.
pub(super) fn check_path_lengths(project: &Project, planned: &Planned) -> Result<(), InstallError> {
    for step in &planned.plan.steps {
        let root = project.layout.slot(step.slot());
        let refuse = |path: &RelPath| {
            if fits(HostOs::CURRENT, &root, path) {
                return Ok(());
            }
            Err(InstallError::PathTooLong {
                slot: step.slot().clone(),
                path: path.to_string(),
                bytes: root.as_os_str().len() + 1 + path.as_str().len(),
                limit: path_limit(HostOs::CURRENT),
            })
        };
        match step {
            Step::Place(place) => {
                let fetched = planned
                    .package(&place.slot)
                    .and_then(|p| p.fetched.as_ref());
                let rows = fetched.map_or(&[][..], |fetched| fetched.tree().rows());
                rows.iter().try_for_each(|row| refuse(&row.path))?;
            }
            Step::Refresh(refresh) => {
                refresh
                    .changes
                    .iter()
                    .filter_map(FileChange::payload_path)
                    .try_for_each(refuse)?;
            }
            Step::Keep(_) | Step::RunHook(_) | Step::Remove(_) => {}
            Step::CheckOut(_) | Step::KeepClone(_) | Step::RemoveClone(_) => {}
        }
    }
    Ok(())
}
