//! Looking at install hooks and past runs: which hooks there are, and what they printed.

use vibe_core::formats::lock::{LockedPackage, LockedSource};
use vibe_core::formats::manifest::Materialization;
use vibe_core::hook::{Phase, PhaseState};
use vibe_core::limits::HOOK_LOG_END_BYTES;
use vibe_core::plan::HookDecision;
use vibe_core::{PackageId, SlotName};
use vibe_fetch::hash_listing;
use vibe_fs::read_if_exists;
use vibe_plan::gate::Gate;
use vibe_plan::selection::scripts_of;
use vibe_slot::record::{RecordOnDisk, read_record};
use vibe_slot::state_file;

use crate::clones::fetch_clone;
use crate::consent::hook_gate;
use crate::error::InstallError;
use crate::evidence::{read_run, run_directory, run_names};
use crate::fetch::{FetchOptions, Fetched, fetch};
use crate::freshness::list_path;
use crate::hook_phase::tail_text;
use crate::look::{lock_or_note, refuse_unusable_records};
use crate::manifests::vouched;
use crate::opening::tell_waiting_commit;
use crate::project::Project;
use crate::report::{HookLog, HookStatus, ScriptSummary};
use crate::repositories::Repositories;
use crate::resolution::target_of;
use crate::run_record::{HookOutcome, HookRecord, RunRecord};
use crate::settings::Context;
use crate::verify::check_installed;

/// Every declared hook of `package`, or of all packages.
pub fn hooks_list(
    context: &Context<'_>,
    package: Option<&PackageId>,
) -> Result<Vec<HookStatus>, InstallError> {
    let project = Project::require(&context.settings.start)?;
    tell_waiting_commit(context, &project)?;
    let lock = lock_or_note(context, &project)?;
    check_installed(&lock, package.map_or(&[], std::slice::from_ref))?;
    let state = state_file::load(&project.layout)?;
    let gate = hook_gate(context.settings, &project);
    let runs = runs_newest_first(&project)?;
    let is_asked = |locked: &&LockedPackage| package.is_none_or(|id| locked.id == *id);
    refuse_unusable_records(&project, lock.packages.iter().filter(is_asked))?;
    let mut found = Vec::new();
    for locked in lock.packages.iter().filter(is_asked) {
        let slot = locked.slot();
        // What ran in a slot that is gone says nothing of the one that takes its place.
        let row = match project.layout.has_slot(&slot)? {
            true => state.phases(&slot),
            false => None,
        };
        let is_outdated = has_other_source(context, &project, locked, &slot)?;
        for (phase, scripts) in declared(context, &project, locked, &slot)? {
            let state = row.and_then(|phases| phases.get(&phase).copied());
            let last = last_record(&runs, &locked.id, phase);
            let (runs_next, because) = outlook(state, last.as_ref(), &gate, is_outdated);
            found.push(HookStatus {
                package: locked.id.clone(),
                version: locked.version.to_string(),
                phase,
                scripts,
                state,
                last,
                runs_next,
                because,
            });
        }
    }
    Ok(found)
}

/// The declared phases of `locked` and their scripts: from its slot's own manifest where the slot's
/// record vouches for it, else from its source.
fn declared(
    context: &Context<'_>,
    project: &Project,
    locked: &LockedPackage,
    slot: &SlotName,
) -> Result<Vec<(Phase, Vec<ScriptSummary>)>, InstallError> {
    let is_path = matches!(locked.source, LockedSource::Path(_));
    if !is_path && locked.install_hooks.is_empty() {
        return Ok(Vec::new());
    }
    let placed = match read_record(&project.layout, slot)? {
        RecordOnDisk::Valid { record, .. } => {
            vouched(&project.layout, slot, &record)?.map(|package| (package.hooks, record.tree))
        }
        _ => None,
    };
    let (hooks, tree) = match placed {
        Some(found) => found,
        None => {
            let fetched = published(context, project, locked)?;
            let tree = fetched.tree().clone();
            (fetched.package.hooks, tree)
        }
    };
    let scripts = |base| {
        let found = scripts_of(std::iter::once(base), &tree).into_iter();
        found
            .map(|(path, sha256)| ScriptSummary { path, sha256 })
            .collect()
    };
    Ok(hooks
        .scripts
        .iter()
        .map(|(phase, base)| (*phase, scripts(base)))
        .collect())
}

/// The package of `locked` as its source has it.
pub(crate) fn published(
    context: &Context<'_>,
    project: &Project,
    locked: &LockedPackage,
) -> Result<Fetched, InstallError> {
    let repositories = Repositories::new(context, project.root.clone());
    let store = context.settings.package_store();
    let options = FetchOptions::content_only(context, store.as_ref(), &repositories);
    let target = target_of(project, locked)?;
    match (locked.materialization, target.origin.git()) {
        (Materialization::InPlace, Some(origin)) => {
            fetch_clone(&target, origin, &options).map(|(fetched, _)| fetched)
        }
        _ => fetch(&target, &options),
    }
}

/// Whether the source of a path package has other content than what is placed.
fn has_other_source(
    context: &Context<'_>,
    project: &Project,
    locked: &LockedPackage,
    slot: &SlotName,
) -> Result<bool, InstallError> {
    let LockedSource::Path(path) = &locked.source else {
        return Ok(false);
    };
    let RecordOnDisk::Valid { record, .. } = read_record(&project.layout, slot)? else {
        return Ok(false);
    };
    let limits = &context.settings.config.limits;
    let source = list_path(&project.root, path, limits);
    // A source that cannot be read has its error where it is needed.
    let source = source.and_then(|listing| hash_listing(&listing));
    Ok(source.is_ok_and(|found| found.tree.id() != record.tree.id()))
}

/// Whether the next install runs a phase, and why.
fn outlook(
    state: Option<PhaseState>,
    last: Option<&HookRecord>,
    gate: &Gate,
    is_outdated: bool,
) -> (bool, String) {
    let held = match gate.decision() {
        HookDecision::Run => None,
        HookDecision::Ask | HookDecision::Held => gate.set_by,
    };
    let is_settled = state == Some(PhaseState::Done) && !is_outdated;
    if let (Some(set_by), false) = (held, is_settled) {
        return (false, format!("held back by {set_by}"));
    }
    match state {
        None => (true, "it has not run on this machine yet".to_owned()),
        Some(PhaseState::Owed) => (true, owed_because(last)),
        Some(PhaseState::Skipped) => (true, "it was held back, and is permitted now".to_owned()),
        Some(PhaseState::Done | PhaseState::Declined) if is_outdated => {
            (true, "its source has other content now".to_owned())
        }
        Some(PhaseState::Declined) => (
            false,
            "it was declined; `vibe hooks run` offers it again".to_owned(),
        ),
        Some(PhaseState::Done) => (
            false,
            "the package's files have not changed since it ran".to_owned(),
        ),
    }
}

fn owed_because(last: Option<&HookRecord>) -> String {
    match last.filter(|last| last.outcome == HookOutcome::Failed) {
        Some(last) => format!("its last run failed ({})", last.ending()),
        None => "the package's files changed, and it has not finished since".to_owned(),
    }
}

fn runs_newest_first(project: &Project) -> Result<Vec<RunRecord>, InstallError> {
    let mut runs = Vec::new();
    for name in run_names(&project.layout)?.iter().rev() {
        runs.extend(read_run(&project.layout, name)?);
    }
    Ok(runs)
}

fn last_record(runs: &[RunRecord], id: &PackageId, phase: Phase) -> Option<HookRecord> {
    runs.iter()
        .flat_map(|run| run.hooks.iter().rev())
        .find(|hook| hook.package == *id && hook.phase == phase)
        .cloned()
}

/// The newest kept log of a hook of `package`, or of any package. A package that has none and is
/// not installed either is an error.
pub fn hooks_log(
    context: &Context<'_>,
    package: Option<&PackageId>,
    phase: Option<Phase>,
) -> Result<Option<HookLog>, InstallError> {
    let project = Project::require(&context.settings.start)?;
    let wanted = |hook: &&HookRecord| {
        package.is_none_or(|id| hook.package == *id)
            && phase.is_none_or(|phase| hook.phase == phase)
    };
    for run in runs_newest_first(&project)? {
        for hook in run.hooks.iter().rev().filter(wanted) {
            let Some(log) = &hook.log else { continue };
            let path = run_directory(&project.layout, &run.run).join(log);
            // Both ends and a line between them.
            let limit = 2 * HOOK_LOG_END_BYTES as u64 + 4_096;
            let bytes = read_if_exists(&path, limit)
                .map_err(|source| InstallError::ReadEvidence { source })?;
            if let Some(bytes) = bytes {
                let output = tail_text(&bytes);
                return Ok(Some(HookLog {
                    run: run.run,
                    record: hook.clone(),
                    output,
                }));
            }
        }
    }
    let lock = project.read_lock()?.map(|found| found.lock);
    check_installed(
        &lock.unwrap_or_default(),
        package.map_or(&[], std::slice::from_ref),
    )?;
    Ok(None)
}

/// The kept runs, the newest first.
pub fn runs_list(context: &Context<'_>) -> Result<Vec<RunRecord>, InstallError> {
    runs_newest_first(&Project::require(&context.settings.start)?)
}

/// The evidence of `run`, or of the newest one.
pub fn runs_show(
    context: &Context<'_>,
    run: Option<&str>,
) -> Result<Option<RunRecord>, InstallError> {
    let project = Project::require(&context.settings.start)?;
    match run {
        Some(run) => read_run(&project.layout, run),
        None => Ok(runs_newest_first(&project)?.into_iter().next()),
    }
}
