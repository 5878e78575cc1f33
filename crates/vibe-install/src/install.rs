//! `vibe install`: the pipeline from manifest to slots.

use vibe_core::formats::manifest_edit::new_project;

use crate::additions::{Additions, added, edited_manifest};
use crate::commit::Commit;
use crate::consent::hook_gate;
use crate::error::InstallError;
use crate::freshness;
use crate::opening::refuse_reentry;
use crate::overrides::tell_unused;
use crate::pipeline::{Ending, changed_lock, finish, plan_targets};
use crate::project::{Project, new_project_root};
use crate::report::RunReport;
use crate::repositories::Repositories;
use crate::resolution::{ResolveRequest, resolve_targets};
use crate::session::Session;
use crate::settings::Context;
use crate::sources::Sources;
use crate::summary::{package_summaries_unread, tell_notes, warn_of_manifests};

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
    if request.additions.is_empty() && project.is_empty()? {
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
