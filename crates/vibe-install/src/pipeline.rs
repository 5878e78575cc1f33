//! From resolved targets to the end of a run: what installing, updating and uninstalling share.

use vibe_core::Event;
use vibe_core::formats::manifest::MANIFEST_NAME;
use vibe_core::hook::PhaseState;
use vibe_core::plan::{HookDecision, Step};
use vibe_fs::canonical_directory;

use crate::commit::Commit;
use crate::consent::hook_gate;
use crate::error::InstallError;
use crate::execution::{Execution, tidy};
use crate::freshness;
use crate::planning::{PlanRequest, Planned, Scope, plan};
use crate::project::{LockFile, Project};
use crate::projection::{self, Moment, Projected};
use crate::report::RunReport;
use crate::resolution::{ResolveRequest, Targets, resolve_anew};
use crate::session::Session;
use crate::settings::Context;
use crate::sources::Sources;
use crate::summary::{package_summaries, package_summaries_done};
use crate::target::Origin;

/// The plan for `targets`, which `request` resolved to. A package that, now that it is read,
/// requires something else than the lock says is resolved anew. With `force`, what hooks changed
/// is put back as well.
pub(crate) fn plan_targets(
    context: &Context<'_>,
    session: &Session,
    sources: &Sources<'_>,
    request: &ResolveRequest<'_>,
    targets: Targets,
    force: bool,
) -> Result<Planned, InstallError> {
    let project = &session.project;
    let gate = hook_gate(context.settings, project);
    let memory = freshness::remember(context, project, gate.decision())?;
    let plan_of = |targets| {
        let plan_request = PlanRequest {
            targets,
            decision: gate.decision(),
            repositories: sources.git.repositories,
            lock: request.lock,
            memory: memory.as_ref().map(|memory| &memory.file),
            scope: Scope {
                force,
                dry_run: session.dry_run,
                ..Scope::default()
            },
            store: session.in_use.store.as_ref(),
        };
        plan(context, project, plan_request)
    };
    match plan_of(targets) {
        Err(InstallError::LockOutOfDate { .. }) if !request.locked => {
            plan_of(resolve_anew(sources, request, context.observer)?)
        }
        planned => planned,
    }
}

/// The text of the new lock; `None` where the one there says the same.
pub(crate) fn changed_lock(planned: &Planned, lock: Option<&LockFile>) -> Option<String> {
    let same = lock.is_some_and(|lock| lock.lock == planned.lock);
    (!same).then(|| planned.lock.render())
}

/// How a planned run ends.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ending {
    /// Work in clones may go.
    pub force: bool,
    /// The plan covers all that the manifests ask for, or the rest is known to be as it was: if
    /// all goes well, later runs may take the project to be as it shall be.
    pub remember: bool,
}

/// Executes the plan, or says what it would do, and remembers the outcome where all is well.
pub(crate) fn finish(
    context: &Context<'_>,
    session: Session,
    planned: &Planned,
    commit: &Commit,
    ending: Ending,
) -> Result<RunReport, InstallError> {
    let project = &session.project;
    let mut report = RunReport {
        dry_run: session.dry_run,
        held_by: hook_gate(context.settings, project).set_by,
        plan: planned.plan.clone(),
        lock_changed: commit.changes_lock(),
        manifest_changed: commit.changed_manifest().is_some(),
        manifest: commit.changed_manifest().cloned(),
        ..RunReport::default()
    };
    tell_edited_package(context, project, planned, commit);
    let projected = projection::project(project, planned, Moment::Planned)?;
    let idle = commit.is_empty()
        && projected.files.is_empty()
        && !planned.plan.steps.iter().any(Step::is_work)
        && planned.unusable_leftovers.is_empty()
        && !has_stale_rows(planned)
        && !held_anew(planned);
    report.up_to_date = idle;
    if session.dry_run {
        tell_guards(context, planned, ending.force);
        tell_projected(context, &projected);
        report.projected = projected.edits;
        report.packages = package_summaries(project, &planned.lock)?;
        return Ok(report);
    }
    if idle {
        tell_projected(context, &projected);
        if session.is_writable() {
            let is_tidy = tidy(context, project, |_| false)?;
            let execution = Execution::new(context, project, planned);
            if execution.write_support_files(&planned.lock)? {
                report.up_to_date = false;
                let text = "vibedeps/.gitignore and .gitattributes were brought up to date";
                context.observer.observe(&Event::Note(text.to_owned()));
            }
            if ending.remember && is_tidy {
                freshness::write(context, project, planned, &projected, commit)?;
            }
        }
        report.packages = package_summaries(project, &planned.lock)?;
        return Ok(report);
    }
    check_guards(context, planned, ending.force)?;
    let session = session.require_writable()?;
    let project = &session.project;
    let executed = Execution::new(context, project, planned).run(commit)?;
    report.run = Some(executed.run);
    report.hooks = executed.hooks;
    report.done = executed.done;
    tell_projected(context, &executed.projected);
    if ending.remember && executed.is_tidy {
        freshness::write(context, project, planned, &executed.projected, commit)?;
    }
    report.projected = executed.projected.edits;
    report.packages = package_summaries_done(project, planned)?;
    Ok(report)
}

/// Says what the user should know of what agents see.
pub(crate) fn tell_projected(context: &Context<'_>, projected: &Projected) {
    for note in &projected.notes {
        context.observer.observe(&Event::Note(note.clone()));
    }
}

/// Says what keeps the plan from being carried out without a word from the user.
fn tell_guards(context: &Context<'_>, planned: &Planned, force: bool) {
    if !force && !planned.guards.is_empty() {
        let guards = planned.guards.clone();
        let text = format!(
            "{}; to lose it, `--force` is needed",
            InstallError::CloneGuard { guards }
        );
        context.observer.observe(&Event::Warning(text));
    }
}

/// Refuses, or asks, before anything is done, where the plan destroys somebody's work.
fn check_guards(context: &Context<'_>, planned: &Planned, force: bool) -> Result<(), InstallError> {
    let guards = &planned.guards;
    if force || guards.is_empty() || context.questions.may_destroy(guards) {
        return Ok(());
    }
    if context.cancel.is_cancelled() {
        return Err(InstallError::Interrupted);
    }
    Err(InstallError::CloneGuard {
        guards: guards.clone(),
    })
}

/// A state row that the lock no longer names, where the run is to clear it.
fn has_stale_rows(planned: &Planned) -> bool {
    let mut slots = planned
        .state
        .slots
        .keys()
        .chain(planned.state.clones.keys());
    planned.is_whole && slots.any(|slot| planned.package(slot).is_none())
}

/// A hook that is held back now and was not before: its row has to say so.
fn held_anew(planned: &Planned) -> bool {
    planned.plan.steps.iter().any(|step| match step {
        Step::RunHook(hook) if hook.decision != HookDecision::Run => {
            let phases = planned.state.phases(&hook.slot);
            phases.and_then(|phases| phases.get(&hook.phase)) != Some(&PhaseState::Skipped)
        }
        _ => false,
    })
}

/// A package of a path is placed as it is before the commit. Where the commit edits its manifest, the
/// next run takes that over.
fn tell_edited_package(
    context: &Context<'_>,
    project: &Project,
    planned: &Planned,
    commit: &Commit,
) {
    let Some(manifest) = commit.changed_manifest() else {
        return;
    };
    let edited = manifest.under(&project.root);
    for package in planned.packages.values() {
        let Origin::Path(directory) = &package.target.origin else {
            continue;
        };
        let directory = canonical_directory(directory);
        if directory.is_ok_and(|directory| directory.join(MANIFEST_NAME) == edited) {
            let text = format!(
                "{} is placed with its {manifest} as it was; the next vibe install takes over what is \
                 written there now",
                package.target.id
            );
            context.observer.observe(&Event::Note(text));
        }
    }
}
