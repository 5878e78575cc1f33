//! `vibe verify --repair` and `vibe reinstall`: what the lock says, put back, with nothing
//! resolved.

use vibe_core::Event;
use vibe_core::PackageId;
use vibe_core::formats::lock::{Lock, LockedSource};
use vibe_core::plan::Step;
use vibe_resolver::lock_check::{LockProblem, LockProblemKind};

use crate::commit::Commit;
use crate::consent::hook_gate;
use crate::error::InstallError;
use crate::freshness;
use crate::pipeline::{Ending, finish};
use crate::planning::{PlanRequest, Planned, Scope, plan};
use crate::projection::set_aside_unusable;
use crate::report::RunReport;
use crate::repositories::Repositories;
use crate::resolution::{lock_error, lock_problems, targets_of_lock};
use crate::session::{Session, find_to_change};
use crate::settings::Context;
use crate::sources::Sources;
use crate::summary::tell_notes;
use crate::verify::check_installed;

/// What to put back.
#[derive(Debug, Clone, Default)]
pub struct RepairRequest {
    /// These packages; everything, leftovers included, where it is empty.
    pub packages: Vec<PackageId>,
    /// Also put back what hooks changed.
    pub force: bool,
    /// The command, for messages.
    pub command: &'static str,
}

impl RepairRequest {
    /// Whether the package `id` is to be put back.
    fn covers(&self, id: &PackageId) -> bool {
        self.packages.is_empty() || self.packages.contains(id)
    }
}

/// Restores the published bytes of everything that is not as it was placed, removes leftovers, and
/// runs the hooks that are owed for it.
pub fn repair(context: &Context<'_>, request: &RepairRequest) -> Result<RunReport, InstallError> {
    let project = find_to_change(context, request.command, false)?;
    if request.packages.is_empty() && project.is_empty()? {
        return Ok(RunReport::of_nothing(false));
    }
    let session = Session::begin(context, project, false)?;
    let project = &session.project;
    set_aside_unusable(context, project)?;
    let lock = project.require_lock()?;
    check_installed(&lock.lock, &request.packages)?;
    let own = project.requirements();
    let repositories = Repositories::new(context, project.root.clone());
    let sources = Sources::open(project, &repositories, &own)?;
    let problems = lock_problems(&sources, &own, &lock.lock);
    let is_wrong = |problem: &LockProblem| problem.kind() == LockProblemKind::Integrity;
    if problems.iter().any(is_wrong) || has_unnamed_place(&sources, &lock.lock, request, &problems)
    {
        return Err(lock_error(problems));
    }
    let gate = hook_gate(context.settings, project);
    let plan_request = PlanRequest {
        targets: targets_of_lock(project, &lock.lock)?,
        decision: gate.decision(),
        repositories: &repositories,
        lock: Some(&lock.lock),
        memory: None,
        scope: Scope {
            only: &request.packages,
            repair: true,
            force: request.force,
            dry_run: false,
        },
        store: session.in_use.store.as_ref(),
    };
    let mut planned = plan(context, project, plan_request)?;
    // The lock is what everything is put back to: it does not change.
    planned.lock = lock.lock.clone();
    tell_notes(context, &planned, &gate);
    tell_path_sources(context, &planned);
    let commit = Commit::new(project, Some(&lock), None, None);
    // What was not looked at, or does not satisfy the manifest, is work for the next install.
    let memory = freshness::remember(context, project, gate.decision())?;
    let is_whole = request.packages.is_empty() && problems.is_empty();
    let ending = Ending {
        force: request.force,
        remember: is_whole || memory.is_some_and(|memory| memory.is_fresh),
    };
    let report = finish(context, session, &planned, &commit, ending)?;
    // All is well only if the lock that was restored is one that satisfies the manifest.
    match request.packages.is_empty() && !problems.is_empty() {
        true => Err(lock_error(problems)),
        false => Ok(report),
    }
}

/// Whether something would be taken from a place that no manifest names, as of an entry that nothing
/// requires. The repositories of the others were held against the manifests with the whole lock.
fn has_unnamed_place(
    sources: &Sources<'_>,
    lock: &Lock,
    request: &RepairRequest,
    problems: &[LockProblem],
) -> bool {
    let is_extra = |wanted: &PackageId| {
        let mut problems = problems.iter();
        problems.any(|problem| matches!(problem, LockProblem::Extra { id, .. } if id == wanted))
    };
    let asked = lock
        .packages
        .iter()
        .filter(|locked| request.covers(&locked.id));
    let registries = sources.registry_urls();
    let mut is_named = asked.map(|locked| match &locked.source {
        LockedSource::Directory(url) => registries.contains(url),
        LockedSource::Path(path) => sources.has_path(path),
        LockedSource::Git(_) => !is_extra(&locked.id),
    });
    is_named.any(|is_named| !is_named)
}

/// A path source has no published content to go back to: it is taken as it is now.
fn tell_path_sources(context: &Context<'_>, planned: &Planned) {
    for step in planned.plan.steps.iter() {
        if !matches!(step, Step::Place(_) | Step::Refresh(_)) {
            continue;
        }
        let Some(package) = planned.package(step.slot()) else {
            continue;
        };
        if let LockedSource::Path(path) = &package.target.source {
            let text = format!("{} is put back from {path} as it is now", package.target.id);
            context.observer.observe(&Event::Note(text));
        }
    }
}
