//! What a project has, looked at from lock, records and state; and what its manifests and a plan
//! make worth saying.

use vibe_core::Event;
use vibe_core::formats::diagnostic::Diagnostic;
use vibe_core::formats::lock::{Lock, LockedPackage};
use vibe_core::formats::manifest::{Materialization, Package};
use vibe_core::formats::state::{LinkMode, MachineState};
use vibe_core::plan::Step;
use vibe_plan::gate::Gate;
use vibe_slot::record::{RecordOnDisk, read_record};
use vibe_slot::{SlotError, in_place, state_file};

use crate::error::InstallError;
use crate::oddities::warn_of_oddities;
use crate::planning::Planned;
use crate::project::Project;
use crate::report::{PackageSummary, PhaseSummary, link_mode_name};
use crate::settings::{Context, WantedLinkMode};
use crate::workspace::tell_left_over;

/// The packages of `lock` as they are on this machine, by id. Reads every slot record.
pub(crate) fn package_summaries(
    project: &Project,
    lock: &Lock,
) -> Result<Vec<PackageSummary>, InstallError> {
    let state = state_file::load(&project.layout)?;
    let packages = lock.packages.iter();
    packages
        .map(|locked| summary_of_record(project, locked, &state))
        .collect()
}

/// The packages after `planned` was done: what it was about is as planned, and the rest is read.
pub(crate) fn package_summaries_done(
    project: &Project,
    planned: &Planned,
) -> Result<Vec<PackageSummary>, InstallError> {
    let state = state_file::load(&project.layout)?;
    let packages = planned.lock.packages.iter();
    packages
        .map(|locked| {
            let slot = locked.slot();
            // What a clone holds is looked up where it lies.
            let package = planned.package(&slot).filter(|_| slot.version().is_some());
            let Some(package) = package else {
                return summary_of_record(project, locked, &state);
            };
            let fetched = package.fetched.as_ref().map(|fetched| fetched.tree());
            let recorded = package.record.as_ref().map(|record| &record.tree);
            Ok(PackageSummary {
                installed: true,
                tree: Some(package.tree),
                files: fetched.or(recorded).map(|tree| tree.rows().len()),
                ..summary_of(project, locked, &state)
            })
        })
        .collect()
}

fn summary_of_record(
    project: &Project,
    locked: &LockedPackage,
    state: &MachineState,
) -> Result<PackageSummary, InstallError> {
    let slot = locked.slot();
    let mut summary = summary_of(project, locked, state);
    if slot.version().is_none() {
        summary.installed = in_place::head(&project.layout, &slot).is_some();
        return Ok(summary);
    }
    match read_record(&project.layout, &slot) {
        Ok(RecordOnDisk::Valid { record, .. }) => {
            summary.installed = true;
            summary.tree = Some(record.tree.id());
            summary.files = Some(record.tree.rows().len());
        }
        // What lies behind a link is not this package, and a summary hides no other result.
        Ok(_) | Err(SlotError::Link { .. } | SlotError::NotADirectory { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    Ok(summary)
}

/// The packages of `lock` where all is known to be as it was: nothing is opened in any slot.
pub(crate) fn package_summaries_unread(
    project: &Project,
    lock: &Lock,
) -> Result<Vec<PackageSummary>, InstallError> {
    let state = state_file::load(&project.layout)?;
    Ok(lock
        .packages
        .iter()
        .map(|locked| PackageSummary {
            installed: true,
            ..summary_of(project, locked, &state)
        })
        .collect())
}

fn summary_of(project: &Project, locked: &LockedPackage, state: &MachineState) -> PackageSummary {
    let slot = locked.slot();
    let row = state.slots.get(&slot);
    let known = state.phases(&slot).into_iter().flatten();
    let phases = known
        .map(|(phase, state)| PhaseSummary {
            phase: *phase,
            state: *state,
        })
        .collect();
    PackageSummary {
        id: locked.id.clone(),
        version: locked.version.to_string(),
        source: locked.source.to_string(),
        overridden: project.is_overridden(&locked.id),
        slot: slot.clone(),
        tree: locked.tree,
        link_mode: match slot.version() {
            Some(_) => link_mode_name(row.map_or(LinkMode::Copy, |row| row.link_mode)),
            None => "in-place",
        },
        files: None,
        installed: false,
        phases,
        bridge: false,
        upstream: None,
        dependencies: locked.dependencies.clone(),
    }
}

/// Says what in the project's manifests is not understood, or does not count.
pub(crate) fn warn_of_manifests(
    context: &Context<'_>,
    project: &Project,
) -> Result<(), InstallError> {
    for own in &project.manifests {
        for warning in &own.manifest.warnings {
            let text = format!("{}{}", own.path, placed(warning));
            context.observer.observe(&Event::Warning(text));
        }
    }
    warn_of_oddities(project, context.observer);
    tell_left_over(&project.root, project.members(), context.observer)
}

fn placed(warning: &Diagnostic) -> String {
    let place = warning
        .position
        .map(|position| format!(" (line {}, column {})", position.line, position.column))
        .unwrap_or_default();
    let hint = warning.hint.as_ref();
    let hint = hint.map(|hint| format!("; {hint}")).unwrap_or_default();
    format!("{place}: {warning}{hint}")
}

/// Says what a plan makes worth saying, each thing once.
pub(crate) fn tell_notes(context: &Context<'_>, planned: &Planned, gate: &Gate) {
    let note = |text: String| context.observer.observe(&Event::Note(text));
    let warn = |text: String| context.observer.observe(&Event::Warning(text));
    tell_not_linked(context, planned, &note);
    for package in planned.packages.values() {
        let Some(fetched) = &package.fetched else {
            continue;
        };
        let id = &package.target.id;
        for text in &fetched.notes {
            note(format!("{id}: {text}"));
        }
        if !fetched.not_acted_on.is_empty() {
            let names = fetched.not_acted_on.join(", ");
            note(format!(
                "{id}: vibe does not act on {names} in its vibe.toml"
            ));
        }
    }
    for (slot, path) in &planned.edited {
        warn(format!(
            "vibedeps/{slot}/{path} was edited and is no longer in the package: it stays"
        ));
    }
    for stray in &planned.strays {
        note(format!(
            "vibedeps/{stray} is not a slot of this project and is left alone"
        ));
    }
    let held = planned.plan.steps.iter().filter(|step| match step {
        Step::RunHook(hook) => hook.decision != vibe_core::plan::HookDecision::Run,
        _ => false,
    });
    let held = held.count();
    if let (true, Some(set_by)) = (held > 0, gate.set_by) {
        let hooks = if held == 1 {
            "1 install hook is"
        } else {
            &format!("{held} install hooks are")
        };
        warn(format!("{hooks} held back by {set_by}"));
    }
}

/// New slots that were to be linked and are not, since their packages have install hooks.
fn tell_not_linked(context: &Context<'_>, planned: &Planned, note: &dyn Fn(String)) {
    let steps = planned.plan.steps.iter();
    let placed = steps.filter_map(|step| match step {
        Step::Place(step) => planned.package(&step.slot)?.fetched.as_ref(),
        _ => None,
    });
    let has_hooks = placed.filter(|fetched| !fetched.package.hooks.scripts.is_empty());
    let wanted = |package: &Package| match context.settings.link_mode {
        WantedLinkMode::AsDeclared => package.materialization == Materialization::Hardlink,
        WantedLinkMode::Hardlink => true,
        WantedLinkMode::Copy => false,
    };
    let copied = has_hooks.filter(|fetched| wanted(&fetched.package));
    let names: Vec<&str> = copied.map(|fetched| fetched.package.id.as_str()).collect();
    if !names.is_empty() {
        note(format!(
            "placed as copies and not linked, since install hooks write: {}",
            names.join(", ")
        ));
    }
}
