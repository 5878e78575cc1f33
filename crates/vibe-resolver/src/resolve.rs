//! One version per package.

use std::collections::BTreeMap;

use pubgrub::{DerivationTree, PubGrubError, SelectedDependencies};
use std::convert::Infallible;
use vibe_core::{Constraint, Index, PackageId, Requirements, Version};

use crate::cached::Cached;
use crate::error::ResolveError;
use crate::explain::explain;
use crate::provider::{Hold, Node, Provider, ROOT, Ranks};

/// What is to be solved.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// The project's name, where chains of requirers start.
    pub root: String,
    /// What the project asks for.
    pub requirements: Requirements,
    /// The versions to keep: all of them if any solution does, else as many as come easily.
    pub held: BTreeMap<PackageId, Version>,
}

/// One version of every package that the project reaches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resolution {
    /// The packages.
    pub packages: BTreeMap<PackageId, Resolved>,
    /// The held packages that are in the solution at another version, sorted.
    pub released: Vec<PackageId>,
}

/// The choice for one package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Resolved {
    /// The version.
    pub version: Version,
    /// What this version requires, sorted, without itself.
    pub dependencies: Vec<PackageId>,
}

/// The proof that there is no solution.
pub(crate) type Proof = DerivationTree<Node, Ranks, Infallible>;

enum Failure<E> {
    NoSolution {
        proof: Box<Proof>,
        refusals: Vec<(PackageId, Constraint)>,
    },
    Index(E),
}

/// Chooses one version of every package that `request` reaches, the highest that satisfies every
/// requirement and no conflict. Held versions stay if any solution keeps all of them; only
/// otherwise they become a preference. A prerelease is chosen only where a constraint names one.
/// The same index and request give the same answer.
pub fn resolve<I: Index>(
    index: &I,
    request: &Request,
) -> Result<Resolution, ResolveError<I::Error>> {
    let index = Cached::new(index);
    let outcome = match solve(&index, request, Hold::Hard) {
        Err(Failure::NoSolution { .. }) if !request.held.is_empty() => {
            solve(&index, request, Hold::Soft)
        }
        outcome => outcome,
    };
    outcome.map_err(|failure| match failure {
        Failure::Index(error) => ResolveError::Index(error),
        Failure::NoSolution { proof, refusals } => {
            explain(&index, request, &proof, &refusals).unwrap_or_else(ResolveError::Index)
        }
    })
}

/// Solves with the refusals that proved to matter: each solution that breaks one adds it.
fn solve<I: Index>(
    index: &Cached<'_, I>,
    request: &Request,
    hold: Hold,
) -> Result<Resolution, Failure<I::Error>> {
    let mut refusals = Vec::new();
    loop {
        let provider = Provider {
            index,
            request,
            hold,
            refusals: &refusals,
        };
        let solution = match pubgrub::resolve(&provider, Node::Root, ROOT) {
            Ok(solution) => solution,
            Err(PubGrubError::NoSolution(proof)) => {
                let proof = Box::new(proof);
                return Err(Failure::NoSolution { proof, refusals });
            }
            Err(
                PubGrubError::ErrorRetrievingDependencies { source, .. }
                | PubGrubError::ErrorChoosingVersion { source, .. }
                | PubGrubError::ErrorInShouldCancel(source),
            ) => return Err(Failure::Index(source)),
        };
        let resolution = reached(index, request, &solution).map_err(Failure::Index)?;
        match broken_refusal(index, request, &resolution).map_err(Failure::Index)? {
            None => return Ok(resolution),
            Some(refusal) => refusals.push(refusal),
        }
    }
}

/// The part of `solution` that the project reaches.
fn reached<I: Index>(
    index: &Cached<'_, I>,
    request: &Request,
    solution: &SelectedDependencies<Node, usize>,
) -> Result<Resolution, I::Error> {
    let mut resolution = Resolution::default();
    let mut open: Vec<PackageId> = request.requirements.requires.keys().cloned().collect();
    while let Some(id) = open.pop() {
        if resolution.packages.contains_key(&id) {
            continue;
        }
        let rank = *solution
            .get(&Node::Package(id.clone()))
            .expect("a solution has what its members require");
        let version = index.versions(&id)?[rank].clone();
        let requirements = index.requirements(&id, &version)?;
        let dependencies: Vec<PackageId> = requirements
            .requires
            .keys()
            .filter(|required| **required != id)
            .cloned()
            .collect();
        open.extend(dependencies.iter().cloned());
        let resolved = Resolved {
            version,
            dependencies,
        };
        resolution.packages.insert(id, resolved);
    }
    let moved = |(id, held): &(&PackageId, &Version)| {
        let now = resolution.packages.get(*id);
        now.is_some_and(|now| now.version != **held)
    };
    let released = request.held.iter().filter(moved);
    resolution.released = released.map(|(id, _)| id.clone()).collect();
    Ok(resolution)
}

/// A refusal of the project or of a chosen version that `resolution` does not respect.
fn broken_refusal<I: Index>(
    index: &Cached<'_, I>,
    request: &Request,
    resolution: &Resolution,
) -> Result<Option<(PackageId, Constraint)>, I::Error> {
    let broken = |(refused, constraint): &&(PackageId, Constraint)| {
        let chosen = resolution.packages.get(refused);
        chosen.is_some_and(|chosen| constraint.matches(&chosen.version))
    };
    if let Some(refusal) = request.requirements.conflicts.iter().find(broken) {
        return Ok(Some(refusal.clone()));
    }
    for (id, resolved) in &resolution.packages {
        let requirements = index.requirements(id, &resolved.version)?;
        let of_others = requirements.conflicts.iter().filter(|(of, _)| of != id);
        if let Some(refusal) = of_others.clone().find(broken) {
            return Ok(Some(refusal.clone()));
        }
    }
    Ok(None)
}
