//! Choosing what the project shall have: from the lock where it satisfies, else by solving.

use std::collections::BTreeMap;

use vibe_core::formats::lock::{Lock, LockedPackage, LockedSource};
use vibe_core::formats::manifest::Dependency;
use vibe_core::{Constraint, Event, Observer, PackageId, Requirements, Version};
use vibe_fetch::DirectoryRegistry;
use vibe_resolver::lock_check::{Asked, LockProblem, LockProblemKind, check_lock};
use vibe_resolver::{Request, ResolveError, Resolved, resolve};

use crate::error::InstallError;
use crate::project::Project;
use crate::sources::{Sources, conflicts, registry_directory};
use crate::target::{GitOrigin, Origin, Target};
use crate::unsolved::Unsolved;

/// What to resolve.
pub(crate) struct ResolveRequest<'a> {
    /// The root's requirements, those of the command line included.
    pub requires: &'a BTreeMap<PackageId, Dependency>,
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
    let problems = lock_problems(project, sources, request.requires, lock);
    if problems.is_empty() && request.released.is_empty() {
        return targets_of_lock(project, lock);
    }
    if request.locked {
        return Err(lock_error(problems));
    }
    tell_extra_entries(&problems, observer);
    resolve_anew(project, sources, request, observer)
}

/// Solves, whatever the lock satisfies.
pub(crate) fn resolve_anew(
    project: &Project,
    sources: &Sources<'_>,
    request: &ResolveRequest<'_>,
    observer: &dyn Observer,
) -> Result<Targets, InstallError> {
    observer.observe(&Event::Resolving);
    let empty = Lock::default();
    solve(project, sources, request, request.lock.unwrap_or(&empty))
}

/// What keeps `lock` from satisfying the manifests.
pub(crate) fn lock_problems(
    project: &Project,
    sources: &Sources<'_>,
    requires: &BTreeMap<PackageId, Dependency>,
    lock: &Lock,
) -> Vec<LockProblem> {
    let all = lock.packages.iter();
    let held = all.map(|package| (package.id.clone(), package.clone()));
    sources.git.hold(held.collect());
    sources.git.answer_only_held(true);
    let asked = Asked {
        roots: &sources.wanted(requires),
        root_conflicts: &conflicts(&project.manifest),
        local: &sources.local_packages(),
        registries: &sources.registry_urls(),
        published: &|locked| sources.published_repositories(locked),
    };
    check_lock(lock, &asked)
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
    project: &Project,
    sources: &Sources<'_>,
    request: &ResolveRequest<'_>,
    lock: &Lock,
) -> Result<Targets, InstallError> {
    sources.git.hold(held_entries(request, lock));
    sources.git.answer_only_held(true);
    sources.ask_ahead(request.requires)?;
    let mut root = sources.constraints(request.requires)?;
    if let Some((id, version)) = request.precise {
        pin(&mut root, sources, id, version)?;
    }
    let held = held_versions(sources, request, lock, &root);
    let conflicts = conflicts(&project.manifest);
    let solver_request = Request {
        root: project.name().to_owned(),
        requirements: Requirements {
            requires: root,
            conflicts,
        },
        held,
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

/// The versions that stay while there is a solution with them. A locked one that a requirement of
/// the root no longer takes is touched, and free.
fn held_versions(
    sources: &Sources<'_>,
    request: &ResolveRequest<'_>,
    lock: &Lock,
    root: &BTreeMap<PackageId, Constraint>,
) -> BTreeMap<PackageId, Version> {
    let is_held = |package: &&LockedPackage| {
        !request.released.contains(&package.id)
            && root
                .get(&package.id)
                .is_none_or(|constraint| constraint.matches(&package.version))
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
    root: &mut BTreeMap<PackageId, Constraint>,
    sources: &Sources<'_>,
    id: &PackageId,
    version: &Version,
) -> Result<(), InstallError> {
    match root.get(id) {
        Some(constraint) if !constraint.matches(version) => {
            Err(match sources.one_version_source(id) {
                Some(origin) => InstallError::PreciseOfOne {
                    id: id.clone(),
                    version: version.clone(),
                    origin,
                },
                None => InstallError::PreciseRefused {
                    id: id.clone(),
                    version: version.clone(),
                    constraint: constraint.clone(),
                },
            })
        }
        _ => {
            root.insert(id.clone(), Constraint::exact(version));
            Ok(())
        }
    }
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
        Ok(unsolved) => InstallError::Resolve {
            known: sources.known_packages(),
            error: Box::new(unsolved),
        },
        Err(error) => error,
    }
}
