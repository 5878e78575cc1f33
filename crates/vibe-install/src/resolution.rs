//! Choosing what the project shall have: from the lock where it satisfies, else by solving.

use std::collections::BTreeMap;

use vibe_core::formats::lock::{Lock, LockedPackage, LockedSource};
use vibe_core::{Constraint, Event, Observer, PackageId, Version};
use vibe_fetch::DirectoryRegistry;
use vibe_resolver::lock_check::{self, Asked, LockProblem, LockProblemKind, Root, check_lock};
use vibe_resolver::{Request, Requirer, ResolveError, Resolved, resolve};

use crate::error::InstallError;
use crate::overrides::tell_given_way;
use crate::own_manifest::OwnRequirements;
use crate::project::Project;
use crate::sources::{Sources, registry_directory};
use crate::target::{GitOrigin, Origin, Target};
use crate::unsolved::Unsolved;

/// What to resolve.
pub(crate) struct ResolveRequest<'a> {
    /// What the project's manifests require, those of the command line included.
    pub own: &'a [OwnRequirements],
    /// The lock, if there is one.
    pub lock: Option<&'a Lock>,
    /// Packages whose locked version is not held.
    pub released: &'a [PackageId],
    /// `--locked`: the lock must satisfy, or the run fails.
    pub locked: bool,
    /// A package and the one version of it that is wanted.
    pub precise: Option<(&'a PackageId, &'a Version)>,
}

/// The packages, by id.
pub(crate) type Targets = BTreeMap<PackageId, Target>;

/// Resolves. A lock that satisfies every manifest is the answer as it stands.
pub(crate) fn resolve_targets(
    project: &Project,
    sources: &Sources<'_>,
    request: &ResolveRequest<'_>,
    observer: &dyn Observer,
) -> Result<Targets, InstallError> {
    let empty = Lock::default();
    let lock = request.lock.unwrap_or(&empty);
    let problems = lock_problems(sources, request.own, lock);
    if problems.is_empty() && request.released.is_empty() {
        return targets_of_lock(project, lock);
    }
    if request.locked {
        return Err(lock_error(problems));
    }
    tell_extra_entries(&problems, observer);
    resolve_anew(sources, request, observer)
}

/// Solves, whatever the lock satisfies.
pub(crate) fn resolve_anew(
    sources: &Sources<'_>,
    request: &ResolveRequest<'_>,
    observer: &dyn Observer,
) -> Result<Targets, InstallError> {
    observer.observe(&Event::Resolving);
    let empty = Lock::default();
    let lock = request.lock.unwrap_or(&empty);
    solve(sources, request, lock, observer)
}

/// What keeps `lock` from satisfying the manifests.
pub(crate) fn lock_problems(
    sources: &Sources<'_>,
    own: &[OwnRequirements],
    lock: &Lock,
) -> Vec<LockProblem> {
    let all = lock.packages.iter();
    let held = all.map(|package| (package.id.clone(), package.clone()));
    sources.git.hold(held.collect());
    sources.git.answer_only_held(true);
    let roots: Vec<Root> = own.iter().map(|own| lock_root(sources, own)).collect();
    let asked = Asked {
        roots: &roots,
        overrides: &sources.wanted(sources.overrides()),
        local: &sources.local_packages(),
        registries: &sources.registry_urls(),
        published: &|locked| sources.published_repositories(locked),
    };
    check_lock(lock, &asked)
}

fn lock_root(sources: &Sources<'_>, own: &OwnRequirements) -> Root {
    Root {
        requirer: match own.is_root() {
            true => lock_check::Requirer::Project,
            false => lock_check::Requirer::Member(own.shown()),
        },
        wanted: sources.wanted(&own.requires),
        conflicts: own.conflicts.clone(),
    }
}

/// The error that `problems` are: one of integrity if any of them is.
pub(crate) fn lock_error(problems: Vec<LockProblem>) -> InstallError {
    if problems
        .iter()
        .any(|problem| problem.kind() == LockProblemKind::Integrity)
    {
        return InstallError::LockIntegrity { problems };
    }
    InstallError::LockOutOfDate { problems }
}

fn tell_extra_entries(problems: &[LockProblem], observer: &dyn Observer) {
    for problem in problems {
        if let LockProblem::Extra { .. } = problem {
            observer.observe(&Event::Note(format!("{problem}; it is removed")));
        }
    }
}

/// The targets that a lock names, with nothing resolved.
pub(crate) fn targets_of_lock(project: &Project, lock: &Lock) -> Result<Targets, InstallError> {
    lock.packages
        .iter()
        .map(|locked| Ok((locked.id.clone(), target_of(project, locked)?)))
        .collect()
}

/// The target that an entry of the lock names.
pub(crate) fn target_of(project: &Project, locked: &LockedPackage) -> Result<Target, InstallError> {
    let unusable = |key| {
        let problem = LockProblem::WithoutIdentity {
            id: locked.id.clone(),
            locked: locked.source.clone(),
            key,
        };
        lock_error(vec![problem])
    };
    let origin = match &locked.source {
        LockedSource::Directory(url) => {
            let root = registry_directory(&project.root, url).ok_or_else(|| unusable("source"))?;
            let registry = DirectoryRegistry::new(root.clone());
            Origin::Registry {
                root,
                directory: registry.directory(&locked.id, &locked.version),
            }
        }
        LockedSource::Path(path) => Origin::Path(project.root.join(path)),
        LockedSource::Git(url) => Origin::Git(GitOrigin {
            url: url.clone(),
            reference: locked.reference.clone(),
            subdir: locked.subdir.clone(),
            commit: locked.commit.clone().ok_or_else(|| unusable("commit"))?,
        }),
    };
    Ok(Target {
        id: locked.id.clone(),
        version: locked.version.clone(),
        source: locked.source.clone(),
        origin,
        dependencies: locked.dependencies.clone(),
        locked: Some(locked.clone()),
        previous: None,
    })
}

fn solve(
    sources: &Sources<'_>,
    request: &ResolveRequest<'_>,
    lock: &Lock,
    observer: &dyn Observer,
) -> Result<Targets, InstallError> {
    sources.git.hold(held_entries(request, lock));
    sources.git.answer_only_held(true);
    sources.ask_ahead(request.own)?;
    let mut requirers = requirers(sources, request.own)?;
    if let Some((id, version)) = request.precise {
        pin(&mut requirers, request.own, sources, id, version)?;
    }
    let solver_request = Request {
        held: held_versions(sources, request, lock, &requirers),
        requirers,
    };
    let resolution = match resolve(sources, &solver_request) {
        Err(error)
            if sources.git.answers_only_held() && !matches!(error, ResolveError::Index(_)) =>
        {
            sources.git.answer_only_held(false);
            resolve(sources, &solver_request)
        }
        outcome => outcome,
    };
    let resolution = resolution.map_err(|error| resolve_error(error, sources))?;
    tell_given_way(sources, request.own, &resolution, observer)?;
    if let Some((id, version)) = request.precise {
        let chosen = resolution
            .packages
            .get(id)
            .map(|resolved| &resolved.version);
        check_build(id, version, chosen)?;
    }
    let packages = resolution.packages.into_iter();
    packages
        .map(|(id, resolved)| Ok((id.clone(), resolved_target(sources, lock, id, resolved)?)))
        .collect()
}

/// What the project's manifests ask for, as the solver looks at it.
fn requirers(
    sources: &Sources<'_>,
    own: &[OwnRequirements],
) -> Result<Vec<Requirer>, InstallError> {
    let requirer = |own: &OwnRequirements| Ok(own.requirer(sources.constraints(&own.requires)?));
    own.iter().map(requirer).collect()
}

/// The versions that stay while there is a solution with them. A locked one that a requirement of
/// the user's own manifests no longer takes is touched, and free.
fn held_versions(
    sources: &Sources<'_>,
    request: &ResolveRequest<'_>,
    lock: &Lock,
    requirers: &[Requirer],
) -> BTreeMap<PackageId, Version> {
    let takes = |requirer: &Requirer, package: &LockedPackage| {
        let constraint = requirer.requirements.requires.get(&package.id);
        constraint.is_none_or(|constraint| constraint.matches(&package.version))
    };
    let is_held = |package: &&LockedPackage| {
        !request.released.contains(&package.id)
            && requirers.iter().all(|requirer| takes(requirer, package))
            && !sources.path_packages().contains_key(&package.id)
    };
    let held = lock.packages.iter().filter(is_held);
    held.map(|package| (package.id.clone(), package.version.clone()))
        .collect()
}

fn resolved_target(
    sources: &Sources<'_>,
    lock: &Lock,
    id: PackageId,
    resolved: Resolved,
) -> Result<Target, InstallError> {
    let location = sources.locate(&id, &resolved.version)?;
    let known = lock.get(&id);
    let commit = location.origin.git().map(|git| git.commit.as_str());
    let same = |locked: &&LockedPackage| {
        locked.version == resolved.version
            && same_kind(&locked.source, &location.source)
            && locked.commit.as_deref() == commit
    };
    Ok(Target {
        previous: known
            .filter(|locked| locked.version != resolved.version)
            .map(|locked| locked.version.to_string()),
        locked: known.filter(same).cloned(),
        version: resolved.version,
        source: location.source,
        origin: location.origin.clone(),
        dependencies: resolved.dependencies,
        id,
    })
}

/// Requires just `version` of `id`, which what is required of it must take.
fn pin(
    requirers: &mut [Requirer],
    own: &[OwnRequirements],
    sources: &Sources<'_>,
    id: &PackageId,
    version: &Version,
) -> Result<(), InstallError> {
    let exact = Constraint::exact(version);
    for (requirer, own) in requirers.iter_mut().zip(own) {
        let Some(constraint) = requirer.requirements.requires.get_mut(id) else {
            continue;
        };
        if !constraint.matches(version) {
            return Err(match sources.one_version_source(id) {
                Some(origin) => InstallError::PreciseOfOne {
                    id: id.clone(),
                    version: version.clone(),
                    origin,
                },
                None => InstallError::PreciseRefused {
                    manifest: own.path.clone(),
                    id: id.clone(),
                    version: version.clone(),
                    constraint: constraint.clone(),
                },
            });
        }
        *constraint = exact.clone();
    }
    let is_required = |requirer: &Requirer| requirer.requirements.requires.contains_key(id);
    let is_required = requirers.iter().any(is_required);
    if let (Some(first), false) = (requirers.first_mut(), is_required) {
        first.requirements.requires.insert(id.clone(), exact);
    }
    Ok(())
}

/// A constraint does not look at build metadata; whoever names them has to get them.
fn check_build(
    id: &PackageId,
    version: &Version,
    chosen: Option<&Version>,
) -> Result<(), InstallError> {
    match chosen {
        Some(chosen) if !version.build.is_empty() && chosen != version => {
            Err(InstallError::PreciseBuild {
                id: id.clone(),
                version: version.clone(),
                chosen: chosen.clone(),
            })
        }
        _ => Ok(()),
    }
}

/// The entries of `lock` that stay at their commit.
fn held_entries(request: &ResolveRequest<'_>, lock: &Lock) -> BTreeMap<PackageId, LockedPackage> {
    let is_held = |package: &&LockedPackage| !request.released.contains(&package.id);
    let held = lock.packages.iter().filter(is_held);
    held.map(|package| (package.id.clone(), package.clone()))
        .collect()
}

fn same_kind(one: &LockedSource, other: &LockedSource) -> bool {
    std::mem::discriminant(one) == std::mem::discriminant(other)
}

fn resolve_error(error: ResolveError<InstallError>, sources: &Sources) -> InstallError {
    match Unsolved::of(error) {
        Ok(mut unsolved) => {
            sources.tell_origin(&mut unsolved);
            InstallError::Resolve {
                known: sources.known_packages(),
                error: Box::new(unsolved),
            }
        }
        Err(error) => error,
    }
}
