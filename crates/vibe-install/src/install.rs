//! `vibe install`: the pipeline from manifest to slots.

use vibe_core::Event;
use vibe_core::formats::diagnostic::Diagnostic;
use vibe_core::formats::manifest_edit::new_project;
use vibe_core::plan::{HookDecision, Step};
use vibe_plan::gate::{Gate, GateInputs, gate};

use crate::additions::{Additions, added, edited_manifest};
use crate::commit::Commit;
use crate::error::InstallError;
use crate::execution::{Execution, tidy};
use crate::freshness;
use crate::opening::refuse_reentry;
use crate::overrides::tell_unused;
use crate::planning::{PlanRequest, Planned, Scope, plan};
use crate::project::{LockFile, Project, new_project_root};
use crate::projection::{self, Moment, Projected};
use crate::report::RunReport;
use crate::repositories::Repositories;
use crate::resolution::{ResolveRequest, Targets, resolve_anew, resolve_targets};
use crate::session::Session;
use crate::settings::{Context, Settings, switches_on};
use crate::sources::Sources;
use crate::summary::{
    package_summaries, package_summaries_done, package_summaries_unread, tell_notes,
};
use crate::workspace::tell_left_over;

/// What `install` is asked for.
#[derive(Debug, Clone, Default)]
pub struct InstallRequest {
    /// What to add to the requirements.
    pub additions: Additions,
    /// `--locked`: `vibe.toml` and `vibe.lock` stay as they are, or the run fails.
    pub locked: bool,
    /// Only plan.
    pub dry_run: bool,
    /// Also put back what hooks changed.
    pub force: bool,
}

/// Runs the pipeline.
pub fn install(context: &Context<'_>, request: &InstallRequest) -> Result<RunReport, InstallError> {
    let project = find_or_start(context, request)?;
    if !request.dry_run {
        refuse_reentry(context.settings, &project, "install")?;
    }
    warn_of_manifests(context, &project)?;
    if request.additions.is_empty() && is_empty(&project)? {
        return Ok(RunReport::of_nothing(request.dry_run));
    }
    let plain = request.additions.is_empty() && !request.force;
    if plain && let Some(report) = nothing_to_do(context, &project, request.dry_run)? {
        return Ok(report);
    }
    let started_project = (!project.is_started()).then(|| project.root.clone());
    let session = Session::begin(context, project, request.dry_run)?;
    // Another run may have done it while this one waited.
    if plain
        && !request.dry_run
        && let Some(report) = nothing_to_do(context, &session.project, false)?
    {
        return Ok(report);
    }
    let report = work(context, session, request)?;
    Ok(RunReport {
        started_project,
        ..report
    })
}

/// The project; where there is none and something is added, one that is about to be started.
fn find_or_start(context: &Context<'_>, request: &InstallRequest) -> Result<Project, InstallError> {
    let start = &context.settings.start;
    if request.additions.is_empty() || request.locked {
        return Project::require(start);
    }
    if let Some(project) = Project::find(start)? {
        return Ok(project);
    }
    let root = new_project_root(start)?;
    let name = root
        .file_name()
        .map_or("project".into(), |name| name.to_string_lossy());
    Project::start(&root, &new_project(&name))
}

/// A project that requires nothing and has nothing is left without a trace.
pub(crate) fn is_empty(project: &Project) -> Result<bool, InstallError> {
    Ok(project.requires_nothing()
        && vibe_fs::stat_of(&project.layout.vibe_lock())?.is_none()
        && vibe_slot::layout::list_slots(&project.layout)?.0.is_empty())
}

/// The report of a run that has nothing to do, where nothing changed since the last one.
fn nothing_to_do(
    context: &Context<'_>,
    project: &Project,
    dry_run: bool,
) -> Result<Option<RunReport>, InstallError> {
    let gate = hook_gate(context.settings, project);
    let Some(memory) = freshness::remember(context, project, gate.decision())? else {
        return Ok(None);
    };
    if !memory.is_fresh {
        return Ok(None);
    }
    if memory.renew
        && !dry_run
        && let Err(error) = freshness::renew(project, &memory)
    {
        tracing::debug!("what was remembered could not be renewed: {error}");
    }
    let lock = project
        .read_lock()?
        .map(|lock| lock.lock)
        .unwrap_or_default();
    tell_unused(project, &lock, context.observer);
    let packages = package_summaries_unread(project, &lock)?;
    Ok(Some(RunReport {
        up_to_date: true,
        dry_run,
        packages,
        held_by: gate.set_by,
        ..RunReport::default()
    }))
}

/// The consent gate of this run.
pub(crate) fn hook_gate(settings: &Settings, project: &Project) -> Gate {
    gate_of(settings, Some(project))
}

/// The consent gate in a project, or outside any.
pub(crate) fn gate_of(settings: &Settings, project: Option<&Project>) -> Gate {
    gate(GateInputs {
        user: settings.config.hook_policy,
        project: project.and_then(Project::install_hooks),
        environment_forbids: settings.variable("VIBE_NO_HOOKS").is_some_and(switches_on),
        flag_forbids: settings.no_hooks,
    })
}

fn work(
    context: &Context<'_>,
    session: Session,
    request: &InstallRequest,
) -> Result<RunReport, InstallError> {
    let project = &session.project;
    let repositories = Repositories::new(context, project.root.clone());
    let added = added(context, project, &repositories, &request.additions)?;
    if let (true, Some(id)) = (request.locked, added.edits.keys().next()) {
        return Err(InstallError::LockedAddition { id: id.clone() });
    }
    let sources = Sources::open(project, &repositories, &added.own)?;
    let lock = project.read_lock()?;
    let resolve_request = ResolveRequest {
        own: &added.own,
        lock: lock.as_ref().map(|lock| &lock.lock),
        released: &added.released,
        locked: request.locked,
        precise: None,
    };
    let targets = resolve_targets(project, &sources, &resolve_request, context.observer)?;
    let gate = hook_gate(context.settings, project);
    let force = request.force;
    let planned = plan_targets(
        context,
        &session,
        &sources,
        &resolve_request,
        targets,
        force,
    )?;
    let manifest = edited_manifest(project, &added, &planned, &request.additions)?;
    let changed_lock = changed_lock(&planned, lock.as_ref());
    let commit = Commit::new(project, lock.as_ref(), changed_lock, manifest);
    tell_notes(context, &planned, &gate);
    tell_unused(project, &planned.lock, context.observer);
    let ending = Ending {
        force,
        remember: true,
    };
    finish(context, session, &planned, &commit, ending)
}

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
    use vibe_core::hook::PhaseState;
    planned.plan.steps.iter().any(|step| match step {
        Step::RunHook(hook) if hook.decision != HookDecision::Run => {
            let phases = planned.state.phases(&hook.slot);
            phases.and_then(|phases| phases.get(&hook.phase)) != Some(&PhaseState::Skipped)
        }
        _ => false,
    })
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
    tell_left_over(project, context.observer)
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
