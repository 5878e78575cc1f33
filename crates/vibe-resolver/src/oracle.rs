//! The resolver against a solver that tries everything, on universes small enough for that.

use std::collections::{BTreeMap, BTreeSet};
use std::convert::Infallible;

use proptest::collection::{btree_map, vec};
use proptest::option;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use vibe_core::version::parse_version;
use vibe_core::{Constraint, Index, PackageId, Requirements, Version};

use crate::{Chain, Request, Requirer, Resolution, ResolveError, resolve};

/// The packages of a universe; one without versions is unknown.
#[derive(Debug, Clone, Default)]
pub(crate) struct Universe(pub(crate) BTreeMap<PackageId, BTreeMap<Version, Requirements>>);

impl Index for Universe {
    type Error = Infallible;

    fn versions(&self, id: &PackageId) -> Result<Vec<Version>, Infallible> {
        let versions = self.0.get(id);
        // Highest first: the resolver may not rely on an order.
        Ok(versions.map_or_else(Vec::new, |all| all.keys().rev().cloned().collect()))
    }

    fn requirements(&self, id: &PackageId, version: &Version) -> Result<Requirements, Infallible> {
        Ok(self.0[id][version].clone())
    }
}

type Assignment = BTreeMap<PackageId, Version>;

/// Whether what `who` asks for is true of `chosen`.
fn is_met(requirements: &Requirements, who: Option<&PackageId>, chosen: &Assignment) -> bool {
    let is_in = |(id, constraint): (&PackageId, &Constraint)| {
        chosen
            .get(id)
            .is_some_and(|version| constraint.matches(version))
    };
    let refused =
        |(id, constraint): &(PackageId, Constraint)| who != Some(id) && is_in((id, constraint));
    requirements.requires.iter().all(is_in) && !requirements.conflicts.iter().any(refused)
}

fn is_valid(universe: &Universe, requirers: &[Requirer], chosen: &Assignment) -> bool {
    let mut outside = requirers.iter();
    outside.all(|requirer| is_met(&requirer.requirements, None, chosen))
        && chosen
            .iter()
            .all(|(id, version)| is_met(&universe.0[id][version], Some(id), chosen))
}

/// Every choice of at most one version of each package that is valid.
fn solutions(universe: &Universe, requirers: &[Requirer]) -> Vec<Assignment> {
    let mut all = vec![Assignment::new()];
    for (id, versions) in &universe.0 {
        let with = all.iter().flat_map(|chosen| {
            versions.keys().map(|version| {
                let mut chosen = chosen.clone();
                chosen.insert(id.clone(), version.clone());
                chosen
            })
        });
        let with: Vec<Assignment> = with.collect();
        all.extend(with);
    }
    all.retain(|chosen| is_valid(universe, requirers, chosen));
    all
}

fn keeps(chosen: &Assignment, held: &Assignment) -> bool {
    held.iter()
        .all(|(id, held)| chosen.get(id).is_none_or(|version| version == held))
}

fn chosen(resolution: &Resolution) -> Assignment {
    let packages = resolution.packages.iter();
    packages
        .map(|(id, resolved)| (id.clone(), resolved.version.clone()))
        .collect()
}

fn id(name: &str) -> PackageId {
    format!("org.example/{name}").parse().unwrap()
}

fn check_resolution(universe: &Universe, request: &Request, resolution: &Resolution) {
    let all = solutions(universe, &request.requirers);
    let picked = chosen(resolution);
    assert!(all.contains(&picked), "not a solution: {picked:?}");

    let outside = request.requirers.iter();
    let outside = outside.flat_map(|requirer| requirer.requirements.requires.keys());
    let mut reached: BTreeSet<&PackageId> = outside.collect();
    for resolved in resolution.packages.values() {
        reached.extend(&resolved.dependencies);
    }
    assert!(picked.keys().eq(reached), "more or less than is reached");
    for (id, resolved) in &resolution.packages {
        let required = universe.0[id][&resolved.version].requires.keys();
        let required: Vec<&PackageId> = required.filter(|required| *required != id).collect();
        assert!(resolved.dependencies.iter().eq(required));
    }

    let moved = request.held.iter().filter(|(id, held)| {
        let now = picked.get(*id);
        now.is_some_and(|now| now != *held)
    });
    assert!(resolution.released.iter().eq(moved.map(|(id, _)| id)));
    let possible = all.iter().any(|solution| keeps(solution, &request.held));
    assert_eq!(resolution.released.is_empty(), possible, "held versions");

    if request.held.is_empty() {
        for (id, version) in &picked {
            for higher in universe.0[id].keys().filter(|other| *other > version) {
                let mut better = picked.clone();
                better.insert(id.clone(), higher.clone());
                assert!(!all.contains(&better), "{id} {higher} is possible as well");
            }
        }
    }
}

/// A chain is one of real requirements from a requirer on; gives who says the last thing.
fn check_chain<'a>(
    universe: &'a Universe,
    request: &'a Request,
    chain: &Chain,
) -> (Option<PackageId>, &'a Requirements) {
    let mut requirers = request.requirers.iter();
    let first = requirers.find(|requirer| requirer.name == chain.root);
    assert_eq!(first.unwrap().member, chain.member);
    let mut speaker = (None, &first.unwrap().requirements);
    for step in &chain.steps {
        assert_eq!(
            speaker.1.requires.get(&step.package),
            Some(&step.constraint)
        );
        assert!(step.constraint.matches(&step.version));
        let requirements = &universe.0[&step.package][&step.version];
        speaker = (Some(step.package.clone()), requirements);
    }
    speaker
}

fn check_requirer(universe: &Universe, request: &Request, chain: &Chain) {
    let (_, requirements) = check_chain(universe, request, chain);
    assert_eq!(
        requirements.requires.get(&chain.package),
        Some(&chain.constraint)
    );
}

fn check_error(universe: &Universe, request: &Request, error: &ResolveError<Infallible>) {
    let versions = |id: &PackageId| {
        let mut versions = universe.versions(id).unwrap();
        versions.sort();
        versions
    };
    match error {
        ResolveError::Unknown { chain } => {
            check_requirer(universe, request, chain);
            assert_eq!(versions(&chain.package), []);
        }
        ResolveError::NoVersion { chain, available } => {
            check_requirer(universe, request, chain);
            assert_eq!(&versions(&chain.package), available);
            assert!(!available.is_empty());
            assert!(!available.iter().any(|v| chain.constraint.matches(v)));
        }
        ResolveError::Conflict(conflict) => {
            assert_eq!(versions(&conflict.package), conflict.available);
            assert!(!conflict.requirers.is_empty());
            assert!(conflict.requirers.len() + conflict.refusers.len() > 1);
            let mut left = conflict.available.clone();
            for chain in &conflict.requirers {
                assert_eq!(chain.package, conflict.package);
                check_requirer(universe, request, chain);
                left.retain(|version| chain.constraint.matches(version));
            }
            for chain in &conflict.refusers {
                assert_eq!(chain.package, conflict.package);
                let (who, requirements) = check_chain(universe, request, chain);
                assert_ne!(who.as_ref(), Some(&chain.package));
                let refusal = (chain.package.clone(), chain.constraint.clone());
                assert!(requirements.conflicts.contains(&refusal));
                left.retain(|version| !chain.constraint.matches(version));
            }
            assert_eq!(left, [], "a version that suits everyone");
        }
        ResolveError::Index(never) => match *never {},
    }
}

const NAMES: [&str; 4] = ["a", "b", "c", "d"];
const VERSIONS: [&str; 6] = ["1.0.0", "1.1.0", "1.1.0+b", "2.0.0-rc.1", "2.0.0", "3.0.0"];
const CONSTRAINTS: [&str; 9] = [
    "*",
    "^1",
    "=1.0.0",
    ">=1.1",
    "<2",
    "^2.0.0-rc.1",
    "^2",
    ">=1, <3",
    "^9",
];

fn constraint() -> impl Strategy<Value = Constraint> {
    // The last one matches nothing; it must not be in the way of everything else.
    prop_oneof![
        30 => select(&CONSTRAINTS[..8]).prop_map(|text| text.parse().unwrap()),
        1 => Just(CONSTRAINTS[8].parse().unwrap()),
    ]
}

fn package() -> impl Strategy<Value = PackageId> {
    select(&NAMES[..]).prop_map(id)
}

fn version() -> impl Strategy<Value = Version> {
    select(&VERSIONS[..]).prop_map(|text| parse_version(text).unwrap())
}

fn requirements(most: usize) -> impl Strategy<Value = Requirements> {
    (
        btree_map(package(), constraint(), 0..=most),
        vec((package(), constraint()), 0..=1),
    )
        .prop_map(|(requires, conflicts)| Requirements {
            requires,
            conflicts,
        })
}

/// One to three, named `0`, `1` and `2`.
fn requirers() -> impl Strategy<Value = Vec<Requirer>> {
    vec(requirements(3), 1..=3).prop_map(|all| {
        let numbered = all.into_iter().enumerate();
        numbered
            .map(|(number, requirements)| Requirer {
                name: number.to_string(),
                member: (number > 0).then(|| number.to_string()),
                requirements,
            })
            .collect()
    })
}

fn universe() -> impl Strategy<Value = Universe> {
    let versions = (subsequence(&VERSIONS[..], 0..=3), vec(requirements(2), 3));
    let versions = versions.prop_map(|(versions, requirements)| {
        let versions = versions
            .into_iter()
            .map(|text| parse_version(text).unwrap());
        versions.zip(requirements).collect()
    });
    vec(versions, NAMES.len())
        .prop_map(|all| Universe(NAMES.into_iter().map(id).zip(all).collect()))
}

fn held() -> impl Strategy<Value = Assignment> {
    option::of(btree_map(package(), version(), 1..=3)).prop_map(Option::unwrap_or_default)
}

proptest! {
    #[test]
    fn the_resolver_agrees_with_trying_everything(
        universe in universe(),
        requirers in requirers(),
        held in held(),
    ) {
        let request = Request { requirers, held };
        match resolve(&universe, &request) {
            Ok(resolution) => {
                check_resolution(&universe, &request, &resolution);
                prop_assert_eq!(resolve(&universe, &request).unwrap(), resolution);
            }
            Err(error) => {
                let all = solutions(&universe, &request.requirers);
                prop_assert_eq!(all, Vec::<Assignment>::new(), "{}", error);
                check_error(&universe, &request, &error);
            }
        }
    }
}
