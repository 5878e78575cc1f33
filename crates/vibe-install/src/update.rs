//! `vibe update`: what the requirements take now, instead of what the lock holds.

use std::collections::BTreeSet;

use vibe_core::formats::lock::Lock;
use vibe_core::{Event, PackageId, Version};

use crate::commit::Commit;
use crate::consent::hook_gate;
use crate::error::InstallError;
use crate::moves::{PackageMove, moves};
use crate::overrides::tell_unused;
use crate::pipeline::{Ending, changed_lock, finish, plan_targets};
use crate::report::RunReport;
use crate::repositories::Repositories;
use crate::resolution::{ResolveRequest, resolve_anew};
use crate::session::{Session, find_to_change};
use crate::settings::Context;
use crate::sources::Sources;
use crate::summary::{tell_notes, warn_of_manifests};
use crate::verify::check_installed;

/// What to update.
#[derive(Debug, Clone, Default)]
pub struct UpdateRequest {
    /// These packages and what they need; everything where it is empty.
    pub packages: Vec<PackageId>,
    /// The version that the one package shall have.
    pub precise: Option<Version>,
    /// Only plan.
    pub dry_run: bool,
    /// Also give up what is in the way in a clone.
    pub force: bool,
}

/// Resolves anew, says what moves and which install hooks are new or changed, and installs that.
pub fn update(context: &Context<'_>, request: &UpdateRequest) -> Result<RunReport, InstallError> {
    let project = find_to_change(context, "update", request.dry_run)?;
    if request.packages.is_empty() && project.is_empty()? {
        return Ok(RunReport::of_nothing(request.dry_run));
    }
    let session = Session::begin(context, project, request.dry_run)?;
    let project = &session.project;
    warn_of_manifests(context, project)?;
    let lock = project.read_lock()?;
    let empty = Lock::default();
    let before = lock.as_ref().map_or(&empty, |lock| &lock.lock);
    check_installed(before, &request.packages)?;
    let released = released(before, &request.packages);
    let repositories = Repositories::new(context, project.root.clone());
    let own = project.requirements();
    let sources = Sources::open(project, &repositories, &own)?;
    let precise = request.packages.first().zip(request.precise.as_ref());
    let resolve_request = ResolveRequest {
        own: &own,
        lock: Some(before),
        released: &released,
        locked: false,
        precise,
    };
    let targets = resolve_anew(&sources, &resolve_request, context.observer)?;
    let force = request.force;
    let planned = plan_targets(
        context,
        &session,
        &sources,
        &resolve_request,
        targets,
        force,
    )?;
    let moves = moves(before, &planned, &repositories);
    tell_moves(context, &moves);
    let changed_lock = changed_lock(&planned, lock.as_ref());
    let commit = Commit::new(project, lock.as_ref(), changed_lock, None);
    tell_notes(context, &planned, &hook_gate(context.settings, project));
    tell_unused(project, &planned.lock, context.observer);
    let ending = Ending {
        force,
        remember: true,
    };
    let report = finish(context, session, &planned, &commit, ending)?;
    Ok(RunReport { moves, ..report })
}

fn tell_moves(context: &Context<'_>, moves: &[PackageMove]) {
    for package in moves {
        for line in package.lines() {
            context.observer.observe(&Event::Note(line));
        }
        if let Some(warning) = package.warning() {
            context.observer.observe(&Event::Warning(warning));
        }
    }
}

/// The packages that do not keep their locked version: `packages` and all that they need, or all.
fn released(lock: &Lock, packages: &[PackageId]) -> Vec<PackageId> {
    if packages.is_empty() {
        return lock.packages.iter().map(|entry| entry.id.clone()).collect();
    }
    let mut released: BTreeSet<&PackageId> = BTreeSet::new();
    let mut open: Vec<&PackageId> = packages.iter().collect();
    while let Some(id) = open.pop() {
        if released.insert(id)
            && let Some(entry) = lock.get(id)
        {
            open.extend(&entry.dependencies);
        }
    }
    released.into_iter().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_package_is_released_with_what_it_needs() {
        let text = "version = 1\n\n[[package]]\nid = \"a/one\"\nversion = \"1.0.0\"\nsource = \"dir+r\"\ndependencies = [\"a/two\"]\n\n[[package]]\nid = \"a/three\"\nversion = \"1.0.0\"\nsource = \"dir+r\"\n\n[[package]]\nid = \"a/two\"\nversion = \"1.0.0\"\nsource = \"dir+r\"\ndependencies = [\"a/one\"]\n";
        let lock = Lock::parse(text).unwrap();
        let names = |packages: &[&str]| -> Vec<String> {
            let ids: Vec<PackageId> = packages.iter().map(|id| id.parse().unwrap()).collect();
            let released = released(&lock, &ids);
            released.iter().map(ToString::to_string).collect()
        };
        assert_eq!(names(&["a/one"]), ["a/one", "a/two"]);
        assert_eq!(names(&["a/three"]), ["a/three"]);
        assert_eq!(names(&[]), ["a/one", "a/three", "a/two"]);
    }
}
