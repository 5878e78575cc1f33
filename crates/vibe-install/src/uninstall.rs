//! `vibe uninstall`: requirements go, and then every package that nothing needs any more.

use std::collections::BTreeSet;

use vibe_core::formats::lock::Lock;
use vibe_core::formats::manifest_removal::remove_requirement;
use vibe_core::text::escape;
use vibe_core::{Event, PackageId};
use vibe_slot::layout::list_slots;
use vibe_slot::record::{RecordOnDisk, read_record};
use vibe_slot::state_file;

use crate::commit::Commit;
use crate::consent::hook_gate;
use crate::error::InstallError;
use crate::overrides::tell_unused;
use crate::own_manifest::OwnRequirements;
use crate::pipeline::{Ending, changed_lock, finish, plan_targets};
use crate::project::Project;
use crate::report::RunReport;
use crate::repositories::Repositories;
use crate::resolution::{ResolveRequest, lock_problems, resolve_anew, targets_of_lock};
use crate::session::{Session, find_to_change};
use crate::settings::Context;
use crate::sources::Sources;
use crate::summary::{tell_notes, warn_of_manifests};

/// What to uninstall.
#[derive(Debug, Clone, Default)]
pub struct UninstallRequest {
    /// The packages that are no longer required.
    pub packages: Vec<PackageId>,
    /// Only plan.
    pub dry_run: bool,
    /// Also give up changes and commits in clones that go.
    pub force: bool,
}

/// Takes the requirements out of the manifest, and removes what nothing needs any more. Everything
/// else keeps its version, so nothing but the lock has to be asked.
pub fn uninstall(
    context: &Context<'_>,
    request: &UninstallRequest,
) -> Result<RunReport, InstallError> {
    let project = find_to_change(context, "uninstall", request.dry_run)?;
    let session = Session::begin(context, project, request.dry_run)?;
    let project = &session.project;
    warn_of_manifests(context, project)?;
    let lock = project.read_lock()?;
    let empty = Lock::default();
    let before = lock.as_ref().map_or(&empty, |lock| &lock.lock);
    check_removable(context, project, before, &request.packages)?;
    let rest = rest_of(project, &request.packages)?;
    let repositories = Repositories::new(context, project.root.clone());
    let sources = Sources::open(project, &repositories, &rest.own)?;
    let resolve_request = ResolveRequest {
        own: &rest.own,
        lock: Some(before),
        released: &[],
        locked: false,
        precise: None,
    };
    let kept = needed(before, rest.own.iter().flat_map(|own| own.requires.keys()));
    let problems = lock_problems(&sources, &rest.own, &kept);
    let targets = match problems.is_empty() {
        true => targets_of_lock(project, &kept)?,
        false => resolve_anew(&sources, &resolve_request, context.observer)?,
    };
    let planned = plan_targets(
        context,
        &session,
        &sources,
        &resolve_request,
        targets,
        false,
    )?;
    let changed_lock = changed_lock(&planned, lock.as_ref());
    let commit = Commit::new(project, lock.as_ref(), changed_lock, rest.manifest);
    tell_needed(context, &rest.own, &planned.lock, &request.packages);
    tell_unused(project, &planned.lock, context.observer);
    tell_notes(context, &planned, &hook_gate(context.settings, project));
    let ending = Ending {
        force: request.force,
        remember: true,
    };
    finish(context, session, &planned, &commit, ending)
}

/// What is left of the manifest nearest to where the command was started.
struct Rest {
    /// What all manifests require.
    own: Vec<OwnRequirements>,
    /// Its text; `None` where it stays as it is.
    manifest: Option<String>,
}

/// The manifest without the requirements of `packages`.
fn rest_of(project: &Project, packages: &[PackageId]) -> Result<Rest, InstallError> {
    let mut own = project.requirements();
    let requires = &mut own[project.nearest_index()].requires;
    let before = project.nearest().text.as_deref().unwrap_or_default();
    let mut text = before.to_owned();
    for id in packages.iter().filter(|id| requires.remove(id).is_some()) {
        text = remove_requirement(&text, id).map_err(|diagnostic| InstallError::Manifest {
            path: project.nearest().path.under(&project.root),
            diagnostic: Box::new(diagnostic),
        })?;
    }
    let manifest = (text != before).then_some(text);
    Ok(Rest { own, manifest })
}

/// Refuses what cannot be taken out: packages that others need, and names that nobody knows. One
/// that an earlier run took out, and was killed before its slot was gone, may be named again.
fn check_removable(
    context: &Context<'_>,
    project: &Project,
    lock: &Lock,
    packages: &[PackageId],
) -> Result<(), InstallError> {
    let requires = &project.nearest().manifest.requires;
    for id in packages.iter().filter(|id| !requires.contains_key(id)) {
        if lock.get(id).is_some() {
            return Err(needed_error(project, lock, id));
        }
        let left_over = left_over(project, lock)?;
        if left_over.contains(id) {
            continue;
        }
        if !left_over.is_empty() {
            let text = "vibedeps/ has packages that nothing needs, left by a run that was cut \
                        short: the next `vibe install` removes them";
            context.observer.observe(&Event::Note(text.to_owned()));
        }
        let locked = lock.packages.iter().map(|package| &package.id);
        let known: BTreeSet<&PackageId> = locked.chain(requires.keys()).collect();
        return Err(InstallError::NotInstalled {
            id: id.clone(),
            installed: known.into_iter().cloned().collect(),
        });
    }
    Ok(())
}

fn needed_error(project: &Project, lock: &Lock, id: &PackageId) -> InstallError {
    let brings = |root: &&PackageId| needed(lock, [*root]).get(id).is_some();
    let nearest = project.nearest();
    let others = project.manifests.iter();
    let others = others.filter(|own| own.manifest.requires.contains_key(id));
    InstallError::NotRequired {
        manifest: nearest.path.clone(),
        id: id.clone(),
        elsewhere: others.map(|own| own.directory(&project.root)).collect(),
        requirers: requirers(lock, id).cloned().collect(),
        roots: nearest
            .manifest
            .requires
            .keys()
            .filter(brings)
            .cloned()
            .collect(),
    }
}

/// Says of each package that stays although it is named that others require it.
fn tell_needed(
    context: &Context<'_>,
    own: &[OwnRequirements],
    lock: &Lock,
    packages: &[PackageId],
) {
    for id in packages.iter().filter(|id| lock.get(id).is_some()) {
        let own = own.iter().filter(|own| own.requires.contains_key(id));
        let own = own.map(|own| escape(&own.name));
        let names: Vec<String> = own
            .chain(requirers(lock, id).map(PackageId::to_string))
            .collect();
        let text = format!(
            "{id} stays installed: it is required by {}",
            names.join(", ")
        );
        context.observer.observe(&Event::Note(text));
    }
}

/// The packages of `lock` that require `id`.
fn requirers<'a>(lock: &'a Lock, id: &'a PackageId) -> impl Iterator<Item = &'a PackageId> {
    let packages = lock.packages.iter();
    let packages = packages.filter(|package| package.dependencies.contains(id));
    packages.map(|package| &package.id)
}

/// The packages whose slots lie there although the lock does not name them, and are ours to remove:
/// what a run left that was killed before it had removed all.
pub(crate) fn left_over(
    project: &Project,
    lock: &Lock,
) -> Result<BTreeSet<PackageId>, InstallError> {
    let state = state_file::load(&project.layout)?;
    let mut found = BTreeSet::new();
    for slot in list_slots(&project.layout)?.0 {
        let id = slot.package();
        if lock.get(id).is_some_and(|locked| locked.slot() == slot) {
            continue;
        }
        let is_ours = match slot.version() {
            Some(_) => matches!(
                read_record(&project.layout, &slot)?,
                RecordOnDisk::Valid { .. }
            ),
            None => state.clones.contains_key(&slot),
        };
        if is_ours {
            found.insert(id.clone());
        }
    }
    Ok(found)
}

/// The part of `lock` that `roots` need.
fn needed<'a>(lock: &'a Lock, roots: impl IntoIterator<Item = &'a PackageId>) -> Lock {
    let mut found: BTreeSet<&PackageId> = BTreeSet::new();
    let mut open: Vec<&PackageId> = roots.into_iter().collect();
    while let Some(id) = open.pop() {
        if let Some(package) = lock.get(id)
            && found.insert(id)
        {
            open.extend(&package.dependencies);
        }
    }
    let mut needed = lock.clone();
    needed
        .packages
        .retain(|package| found.contains(&package.id));
    needed
}
