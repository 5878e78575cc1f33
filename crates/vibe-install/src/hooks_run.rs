//! `vibe hooks run`: phases run on demand, under the same gate, in the slot as it is.

use std::collections::BTreeMap;

use vibe_core::formats::lock::{LockedPackage, LockedSource};
use vibe_core::formats::record::SlotRecord;
use vibe_core::formats::state::{CloneState, CloneStatus, LinkMode, MachineState, SlotState};
use vibe_core::hook::{HookReason, Phase, PhaseState, SelectedHook};
use vibe_core::plan::{HookDecision, PlacePlan, RunHook, Step};
use vibe_core::{PackageId, SlotName};
use vibe_plan::slot_plan::as_hooks_left;
use vibe_slot::record::{RecordOnDisk, read_record};
use vibe_slot::{in_place, state_file};

use crate::clones::fetch_clone;
use crate::commit::Commit;
use crate::consent::hook_gate;
use crate::error::InstallError;
use crate::execution::{Executed, Execution, HookRow};
use crate::fetch::{FetchOptions, Fetched, as_placed, fetch};
use crate::freshness;
use crate::interpreters::Probe;
use crate::manifests::vouched;
use crate::pipeline::tell_projected;
use crate::planning::{Planned, PlannedPackage, planned_clone_package};
use crate::project::Project;
use crate::report::RunReport;
use crate::repositories::Repositories;
use crate::resolution::targets_of_lock;
use crate::session::{Session, find_to_change};
use crate::settings::Context;
use crate::slots::{contents_of, record_error};
use crate::summary::{package_summaries, tell_notes};
use crate::target::Target;
use crate::verify::check_installed;

/// Which hooks to run.
#[derive(Debug, Clone)]
pub struct HookRunRequest {
    /// The package.
    pub package: PackageId,
    /// Only this phase, whether due or not.
    pub phase: Option<Phase>,
    /// Run every declared phase, whether due or not.
    pub force: bool,
}

/// Runs the owed, skipped and declined phases of a package, or those asked for.
pub fn hooks_run(
    context: &Context<'_>,
    request: &HookRunRequest,
) -> Result<RunReport, InstallError> {
    let project = find_to_change(context, "hooks run", false)?;
    let session = Session::begin(context, project, false)?.require_writable()?;
    let project = &session.project;
    let lock = project.require_lock()?.lock;
    check_installed(&lock, std::slice::from_ref(&request.package))?;
    let target = targets_of_lock(project, &lock)?
        .remove(&request.package)
        .expect("the lock was just asked for it");
    let gate = hook_gate(context.settings, project);
    let probe = Probe::new(context.settings);
    let repositories = Repositories::new(context, project.root.clone());
    let options = FetchOptions {
        limits: context.settings.config.limits,
        interpreters: &|| probe.find(),
        decision: gate.decision(),
        observer: context.observer,
        store: session.in_use.store.as_ref(),
        fills_store: true,
        link_mode: context.settings.link_mode,
        repositories: &repositories,
    };
    let state = state_file::load(&project.layout)?;
    let Prepared {
        slot,
        package,
        mut row,
    } = match target.locked.as_ref().map(LockedPackage::slot) {
        Some(slot) if slot.version().is_none() => {
            prepare_clone(project, target, slot, &state, &options)?
        }
        _ => prepare_slot(project, target, &state, &options)?,
    };
    let hooks = package.fetched.as_ref().map_or(&[][..], |f| &f.hooks);
    check_declared(hooks, request)?;
    let steps = due(&slot, hooks, row.phases(), request, gate.decision());
    if steps.is_empty() {
        return Ok(RunReport {
            up_to_date: true,
            held_by: gate.set_by,
            packages: package_summaries(project, &lock)?,
            ..RunReport::default()
        });
    }
    owe(row.phases_mut(), &steps);
    let planned = Planned {
        packages: BTreeMap::from([(slot.clone(), package)]),
        plan: PlacePlan {
            steps: steps.into_iter().map(Step::RunHook).collect(),
        },
        state,
        lock,
        ..Planned::default()
    };
    tell_notes(context, &planned, &gate);
    let executed = execute(context, project, &planned, (slot, row), gate.decision())?;
    tell_projected(context, &executed.projected);
    Ok(RunReport {
        plan: planned.plan.clone(),
        held_by: gate.set_by,
        run: Some(executed.run),
        hooks: executed.hooks,
        done: executed.done,
        projected: executed.projected.edits,
        packages: package_summaries(project, &planned.lock)?,
        ..RunReport::default()
    })
}

/// Runs the hooks of the plan. What was remembered before is remembered anew.
fn execute(
    context: &Context<'_>,
    project: &Project,
    planned: &Planned,
    row: (SlotName, HookRow),
    decision: HookDecision,
) -> Result<Executed, InstallError> {
    let memory = freshness::remember(context, project, decision)?;
    let was_fresh = memory.is_some_and(|memory| memory.is_fresh);
    let executed = Execution::new(context, project, planned).run_hooks_only(row)?;
    if was_fresh && executed.is_tidy {
        let commit = Commit::new(project, None, None, None);
        freshness::write(context, project, planned, &executed.projected, &commit)?;
    }
    Ok(executed)
}

/// A package whose hooks are asked for.
struct Prepared {
    slot: SlotName,
    package: PlannedPackage,
    row: HookRow,
}

impl HookRow {
    fn phases(&self) -> &BTreeMap<Phase, PhaseState> {
        match self {
            HookRow::Slot(row) => &row.phases,
            HookRow::Clone(row) => &row.phases,
        }
    }

    fn phases_mut(&mut self) -> &mut BTreeMap<Phase, PhaseState> {
        match self {
            HookRow::Slot(row) => &mut row.phases,
            HookRow::Clone(row) => &mut row.phases,
        }
    }
}

fn prepare_slot(
    project: &Project,
    target: Target,
    state: &MachineState,
    options: &FetchOptions<'_>,
) -> Result<Prepared, InstallError> {
    let slot = SlotName::new(&target.id, &target.version);
    let record = usable_record(project, &slot)?;
    let fetched = placed_content(project, &target, &slot, &record, options)?;
    let row = row_of(&record, state.slots.get(&slot), &fetched.hooks);
    let row = settled_row(project, &slot, &record, row)?;
    Ok(Prepared {
        package: planned_package(target, record, fetched),
        row: HookRow::Slot(row),
        slot,
    })
}

/// The clone has to be at the locked commit; how its files look is what its hooks work on.
fn prepare_clone(
    project: &Project,
    target: Target,
    slot: SlotName,
    state: &MachineState,
    options: &FetchOptions<'_>,
) -> Result<Prepared, InstallError> {
    let origin = target.origin.git().expect("only git sources have clones");
    let commit = origin.commit.clone();
    let head = in_place::head(&project.layout, &slot).map(|head| head.to_string());
    let known = state.clones.get(&slot);
    match head {
        None => return Err(InstallError::NotPlaced { slot }),
        Some(head) if head == commit && known.is_none_or(|row| row.commit == commit) => {}
        Some(_) => return Err(InstallError::OtherContent { slot }),
    }
    let (fetched, clone) = fetch_clone(&target, origin, options)?;
    let owed = |hook: &SelectedHook| (hook.phase, PhaseState::Owed);
    let row = known.cloned().unwrap_or_else(|| CloneState {
        commit,
        phases: fetched.hooks.iter().map(owed).collect(),
        reason: HookReason::Manual,
        previous_version: None,
        seen: Some(CloneStatus::clean()),
        boot: vibe_fs::boot_id(),
        running: None,
    });
    Ok(Prepared {
        package: planned_clone_package(&target, Some((fetched, clone))),
        row: HookRow::Clone(row),
        slot,
    })
}

/// The package's content as it lies in the slot: that of a path package as it was placed, since
/// its source may have moved on.
fn placed_content(
    project: &Project,
    target: &Target,
    slot: &SlotName,
    record: &SlotRecord,
    options: &FetchOptions<'_>,
) -> Result<Fetched, InstallError> {
    if let LockedSource::Path(_) = target.source
        && let Some(package) = vouched(&project.layout, slot, record)?
    {
        let tree = record.tree.clone();
        return as_placed(target, &project.layout.slot(slot), package, tree, options);
    }
    let fetched = fetch(target, options)?;
    match fetched.tree().id() == record.tree.id() {
        true => Ok(fetched),
        false => Err(InstallError::OtherContent { slot: slot.clone() }),
    }
}

/// The row of a slot that holds what it should. What a hook that was killed did to the payload is
/// known in it, since it would otherwise be nobody's.
fn settled_row(
    project: &Project,
    slot: &SlotName,
    record: &SlotRecord,
    row: SlotState,
) -> Result<SlotState, InstallError> {
    if row.tree != record.tree.id() || !row.adding.is_empty() {
        return Err(InstallError::OtherContent { slot: slot.clone() });
    }
    if row.running.is_none() {
        return Ok(row);
    }
    let contents = contents_of(&project.layout, slot, [&record.tree], Some(&row))?;
    Ok(as_hooks_left(&row, &record.tree, &contents))
}

/// What is started is owed until it ends well, also where it was settled before: a run that is
/// killed in between must not look as if nothing had been begun.
fn owe(phases: &mut BTreeMap<Phase, PhaseState>, hooks: &[RunHook]) {
    for hook in hooks {
        if hook.decision == HookDecision::Run {
            phases.insert(hook.phase, PhaseState::Owed);
        }
    }
}

fn planned_package(target: Target, record: SlotRecord, fetched: Fetched) -> PlannedPackage {
    PlannedPackage {
        target,
        tree: record.tree.id(),
        boot: fetched.package.boot.clone(),
        is_remembered: false,
        fetched: Some(fetched),
        record: Some(record),
        unusable_record: false,
        clone: None,
    }
}

fn usable_record(project: &Project, slot: &SlotName) -> Result<SlotRecord, InstallError> {
    match read_record(&project.layout, slot)? {
        RecordOnDisk::Valid { record, .. } => Ok(record),
        RecordOnDisk::Absent => Err(InstallError::NotPlaced { slot: slot.clone() }),
        refused => Err(record_error(slot, refused)),
    }
}

/// The row as it is; one in which every phase is owed where this machine has none.
fn row_of(record: &SlotRecord, state: Option<&SlotState>, hooks: &[SelectedHook]) -> SlotState {
    state.cloned().unwrap_or_else(|| SlotState {
        tree: record.tree.id(),
        phases: hooks
            .iter()
            .map(|hook| (hook.phase, PhaseState::Owed))
            .collect(),
        reason: HookReason::Manual,
        previous_version: None,
        after: BTreeMap::new(),
        made: BTreeMap::new(),
        adding: Vec::new(),
        link_mode: LinkMode::Copy,
        boot: vibe_fs::boot_id(),
        running: None,
    })
}

/// A phase that is asked for by name has to be one of the package's.
fn check_declared(hooks: &[SelectedHook], request: &HookRunRequest) -> Result<(), InstallError> {
    match request.phase {
        Some(phase) if !hooks.iter().any(|hook| hook.phase == phase) => {
            Err(InstallError::NoSuchHook {
                id: request.package.clone(),
                phase,
            })
        }
        _ => Ok(()),
    }
}

fn due(
    slot: &SlotName,
    hooks: &[SelectedHook],
    phases: &BTreeMap<Phase, PhaseState>,
    request: &HookRunRequest,
    decision: HookDecision,
) -> Vec<RunHook> {
    let is_due = |hook: &&SelectedHook| match request.phase {
        Some(phase) => hook.phase == phase,
        None => request.force || phases.get(&hook.phase) != Some(&PhaseState::Done),
    };
    hooks
        .iter()
        .filter(is_due)
        .map(|hook| RunHook {
            slot: slot.clone(),
            phase: hook.phase,
            script: hook.script.clone(),
            sha256: hook.digest,
            interpreter: hook.interpreter,
            program: hook.program.clone(),
            decision,
            because: HookReason::Manual,
        })
        .collect()
}
