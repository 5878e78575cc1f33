//! One version per package.

use std::collections::BTreeMap;

use pubgrub::{PubGrubError, SelectedDependencies};
use vibe_core::{Constraint, Index, PackageId, Version};

use crate::cached::Cached;
use crate::error::ResolveError;
use crate::explain::explain;
use crate::provider::{Hold, Node, Proof, Provider, ROOT};
use crate::request::Request;

/// One version of every package that the requirers reach.
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
        Err(Failure::NoSolution { .. }) => solve(&index, request, Hold::Soft),
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

/// The part of `solution` that the requirers reach.
fn reached<I: Index>(
    index: &Cached<'_, I>,
    request: &Request,
    solution: &SelectedDependencies<Node, usize>,
) -> Result<Resolution, I::Error> {
    let mut resolution = Resolution::default();
    let required = request.requirers.iter();
    let required = required.flat_map(|requirer| requirer.requirements.requires.keys());
    let mut open: Vec<PackageId> = required.cloned().collect();
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

/// A refusal of a requirer or of a chosen version that `resolution` does not respect.
fn broken_refusal<I: Index>(
    index: &Cached<'_, I>,
    request: &Request,
    resolution: &Resolution,
) -> Result<Option<(PackageId, Constraint)>, I::Error> {
    let broken = |(refused, constraint): &&(PackageId, Constraint)| {
        let chosen = resolution.packages.get(refused);
        chosen.is_some_and(|chosen| constraint.matches(&chosen.version))
    };
    let mut outside = request.requirers.iter();
    let refusal = outside.find_map(|from| from.requirements.conflicts.iter().find(broken));
    if let Some(refusal) = refusal {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::oracle::Universe;
    use crate::request::Requirer;
    use vibe_core::Requirements;
    use vibe_core::version::parse_version;

    fn id(name: &str) -> PackageId {
        format!("org.example/{name}").parse().unwrap()
    }

    /// `a ^1, b *, !c ^2`: requirements, and conflicts after a `!`.
    fn requirements(text: &str) -> Requirements {
        let mut requirements = Requirements::default();
        for part in text.split(", ").filter(|part| !part.is_empty()) {
            let (name, constraint) = part.split_once(' ').unwrap();
            let constraint = constraint.parse().unwrap();
            match name.strip_prefix('!') {
                Some(refused) => requirements.conflicts.push((id(refused), constraint)),
                None => drop(requirements.requires.insert(id(name), constraint)),
            }
        }
        requirements
    }

    /// One `name version: requirements` each.
    fn universe(rows: &[&str]) -> Universe {
        let mut universe = Universe::default();
        for row in rows {
            let (package, asked) = row.split_once(':').unwrap();
            let (name, version) = package.split_once(' ').unwrap();
            let version = parse_version(version).unwrap();
            let versions = universe.0.entry(id(name)).or_default();
            versions.insert(version, requirements(asked.trim()));
        }
        universe
    }

    fn requirer(name: &str, asked: &str) -> Requirer {
        Requirer {
            name: name.to_owned(),
            member: (name != "hello").then(|| format!("packages/{name}")),
            requirements: requirements(asked),
        }
    }

    fn request(asked: &str, held: &[(&str, &str)]) -> Request {
        let held = held.iter();
        Request {
            requirers: vec![requirer("hello", asked)],
            held: held
                .map(|(name, version)| (id(name), parse_version(version).unwrap()))
                .collect(),
        }
    }

    /// What is chosen, as `a 1.0.0, b 2.0.0`.
    #[track_caller]
    fn check_held(rows: &[&str], asked: &str, held: &[(&str, &str)], expected: (&str, &[&str])) {
        let resolution = resolve(&universe(rows), &request(asked, held)).unwrap();
        let packages = resolution.packages.iter();
        let chosen: Vec<String> = packages
            .map(|(id, resolved)| format!("{} {}", id.name(), resolved.version))
            .collect();
        let released: Vec<&str> = resolution.released.iter().map(PackageId::name).collect();
        assert_eq!((&*chosen.join(", "), &*released), expected);
    }

    #[track_caller]
    fn check(rows: &[&str], asked: &str, expected: &str) {
        check_held(rows, asked, &[], (expected, &[]));
    }

    #[track_caller]
    fn check_refused(rows: &[&str], asked: &str, expected: &str) {
        let error = resolve(&universe(rows), &request(asked, &[])).unwrap_err();
        assert_eq!(error.to_string(), expected);
    }

    #[test]
    fn an_empty_project_needs_nothing() {
        check(&["a 1.0.0:"], "", "");
    }

    #[test]
    fn the_highest_version_that_satisfies_is_chosen() {
        let chain = [
            "a 1.0.0: b *",
            "a 1.9.0: b ^1",
            "a 1.10.0: b ^1",
            "a 2.0.0:",
            "b 1.0.0: c *",
            "b 1.5.0: c *",
            "b 2.0.0:",
            "c 3.0.0:",
            "c 10.0.0:",
        ];
        check(&chain, "a ^1", "a 1.10.0, b 1.5.0, c 10.0.0");
    }

    #[test]
    fn dependencies_are_listed_sorted_and_without_the_package_itself() {
        let rows = ["z 1.0.0: b *, a *, z *", "a 1.0.0:", "b 1.0.0:"];
        let resolution = resolve(&universe(&rows), &request("z *", &[])).unwrap();
        let dependencies = &resolution.packages[&id("z")].dependencies;
        assert_eq!(dependencies, &[id("a"), id("b")]);
    }

    #[test]
    fn a_prerelease_is_chosen_only_where_a_constraint_names_one() {
        let rows = ["a 1.0.0:", "a 1.1.0-rc.1:", "b 1.0.0: a >=1.1.0-rc.1"];
        check(&rows, "a ^1", "a 1.0.0");
        check(&rows, "a ^1.1.0-rc.0", "a 1.1.0-rc.1");
        check(&rows, "b *", "a 1.1.0-rc.1, b 1.0.0");
    }

    #[test]
    fn of_versions_that_differ_in_build_metadata_the_highest_is_chosen() {
        check(
            &["a 1.0.0+9:", "a 1.0.0+10:", "a 1.0.0:"],
            "a =1.0.0",
            "a 1.0.0+10",
        );
    }

    #[test]
    fn cycles_and_self_dependencies_end() {
        check(&["a 1.0.0: b *", "b 1.0.0: a *"], "a *", "a 1.0.0, b 1.0.0");
        check(&["a 1.0.0: a ^1", "a 2.0.0: a ^1"], "a *", "a 1.0.0");
    }

    #[test]
    fn a_lower_version_is_taken_where_the_highest_clashes() {
        let rows = [
            "a 1.0.0: b ^1",
            "a 1.1.0: b ^2",
            "b 1.0.0:",
            "b 2.0.0:",
            "c 1.0.0: b ^1",
        ];
        check(&rows, "a *, c *", "a 1.0.0, b 1.0.0, c 1.0.0");
    }

    #[test]
    fn a_conflict_keeps_versions_out_and_brings_nothing_in() {
        let rows = ["a 1.0.0: !b ^2", "b 1.0.0:", "b 2.0.0:"];
        check(&rows, "a *", "a 1.0.0");
        check(&rows, "a *, b *", "a 1.0.0, b 1.0.0");
        check(&rows, "b *, !b >=2", "b 1.0.0");
    }

    #[test]
    fn held_versions_stay_while_any_solution_keeps_them() {
        let rows = ["a 1.0.0:", "a 1.1.0:", "b 1.0.0: a *", "b 1.1.0: a =1.1.0"];
        check_held(
            &rows,
            "a *, b *",
            &[("a", "1.0.0")],
            ("a 1.0.0, b 1.0.0", &[]),
        );
        check_held(&rows, "a *", &[("b", "1.0.0")], ("a 1.1.0", &[]));
    }

    #[test]
    fn held_versions_are_released_only_where_they_are_in_the_way() {
        let rows = [
            "a 1.0.0:",
            "a 1.1.0:",
            "b 1.0.0:",
            "b 1.1.0:",
            "c 1.0.0: a ^1.1",
        ];
        let held = [("a", "1.0.0"), ("b", "1.0.0")];
        check_held(
            &rows,
            "b *, c *",
            &held,
            ("a 1.1.0, b 1.0.0, c 1.0.0", &["a"]),
        );
        let gone = [("a", "1.0.5"), ("b", "1.0.0")];
        check_held(&rows, "a *, b *", &gone, ("a 1.1.0, b 1.0.0", &["a"]));
    }

    #[test]
    fn a_package_that_names_itself_in_a_conflict_refuses_nothing() {
        check(&["a 1.0.0: !a *"], "a *", "a 1.0.0");
        let rows = ["a 1.0.0: !a ^1", "c 1.0.0:", "c 1.1.0: !a ^1"];
        check(&rows, "a *, c *", "a 1.0.0, c 1.0.0");
    }

    #[test]
    fn a_new_package_takes_a_lower_version_before_another_held_one_moves() {
        let rows = [
            "a 1.0.0: h *",
            "a 1.1.0: h ^1.1",
            "c 1.0.0: x ^1.1",
            "h 1.0.0:",
            "h 1.1.0:",
            "x 1.0.0:",
            "x 1.1.0:",
        ];
        let held = [("h", "1.0.0"), ("x", "1.0.0")];
        let expected = "a 1.0.0, c 1.0.0, h 1.0.0, x 1.1.0";
        check_held(&rows, "a *, c *, h *", &held, (expected, &["x"]));
    }

    #[test]
    fn a_conflict_prints_every_chain_of_requirers() {
        check_refused(
            &[
                "a 1.2.0: core ^1",
                "b 2.0.0: c *",
                "c 1.0.0: core =2.0.0",
                "c 1.5.0: core ^2",
                "core 1.0.0:",
                "core 1.1.0:",
                "core 2.0.0:",
                "d 1.0.0:",
                "c 1.4.0: nothing *",
            ],
            "a ^1, b ^2, core >=1.1, d *",
            "no version of org.example/core satisfies everything that requires it
  hello (yours) requires org.example/a ^1
    org.example/a 1.2.0 requires org.example/core ^1
  hello (yours) requires org.example/b ^2
    org.example/b 2.0.0 requires org.example/c *
      org.example/c 1.5.0 requires org.example/core ^2
  the versions there are, and what rules each of them out:
    2.0.0         not ^1, which org.example/a 1.2.0 requires
    1.1.0, 1.0.0  not ^2, which org.example/c 1.5.0 requires
  other versions of org.example/c do not help either",
        );
    }

    #[test]
    fn one_version_satisfies_every_requirer() {
        let rows = [
            "core 1.0.0:",
            "core 1.1.0:",
            "core 2.0.0:",
            "a 1.0.0: core *",
        ];
        let members = Request {
            requirers: vec![
                requirer("hello", ""),
                requirer("one", "core >=1, a *"),
                requirer("two", "core ^1, !a ^2"),
            ],
            held: BTreeMap::new(),
        };
        let resolution = resolve(&universe(&rows), &members).unwrap();
        let packages = resolution.packages.iter();
        let chosen: Vec<String> = packages
            .map(|(id, resolved)| format!("{} {}", id.name(), resolved.version))
            .collect();
        assert_eq!(chosen, ["a 1.0.0", "core 1.1.0"]);
    }

    #[test]
    fn a_chain_begins_with_the_requirer_that_asks() {
        let rows = ["core 1.0.0:", "core 2.0.0:", "a 1.0.0: core ^1"];
        let members = |last: &str| Request {
            requirers: vec![
                requirer("hello", "core *"),
                requirer("one", "a *"),
                requirer("two", last),
            ],
            held: BTreeMap::new(),
        };
        let text = |last: &str| {
            let error = resolve(&universe(&rows), &members(last)).unwrap_err();
            error.to_string()
        };
        let clash = text("core ^2");
        let chains = "
  hello (yours) requires org.example/core *
  two (packages/two) requires org.example/core ^2
  one (packages/one) requires org.example/a *
    org.example/a 1.0.0 requires org.example/core ^1
";
        assert!(clash.contains(chains), "{clash}");
        assert!(
            clash.contains("1.0.0  not ^2, which two requires"),
            "{clash}"
        );
        let refused = text("a *, !core ^1");
        let chain = "\n  two (packages/two) conflicts with org.example/core ^1";
        assert!(refused.contains(chain), "{refused}");
        let unknown = text("absent *");
        let chain = "\n  two (packages/two) requires org.example/absent *";
        assert!(unknown.contains(chain), "{unknown}");
    }

    #[test]
    fn a_refusal_says_who_refuses_whom() {
        check_refused(
            &["a 1.0.0: !b ^1, !b ^5", "b 1.0.0:", "c 1.0.0: b ^1"],
            "a *, c *",
            "no version of org.example/b satisfies all that is said of it
  hello (yours) requires org.example/c *
    org.example/c 1.0.0 requires org.example/b ^1
  hello (yours) requires org.example/a *
    org.example/a 1.0.0 conflicts with org.example/b ^1
  the versions there are, and what rules each of them out:
    1.0.0  ^1, with which org.example/a 1.0.0 conflicts",
        );
    }

    #[test]
    fn a_package_that_does_not_suit_itself_is_a_conflict() {
        check_refused(
            &["a 1.0.0: a ^2", "a 2.0.0: a ^1"],
            "a *",
            "no version of org.example/a satisfies everything that requires it
  hello (yours) requires org.example/a *
    org.example/a 2.0.0 requires org.example/a ^1
    org.example/a 1.0.0 requires org.example/a ^2
  the versions there are, and what rules each of them out:
    2.0.0  not ^1, which org.example/a 2.0.0 requires
    1.0.0  not ^2, which org.example/a 1.0.0 requires
  other versions of org.example/a do not help either",
        );
    }

    #[test]
    fn a_conflict_tells_prereleases_apart() {
        check_refused(
            &["a 1.0.0: b ^2", "b 1.0.0:", "b 2.0.0:", "b 2.1.0-rc.1:"],
            "a *, b ^1",
            "no version of org.example/b satisfies everything that requires it
  hello (yours) requires org.example/b ^1
  hello (yours) requires org.example/a *
    org.example/a 1.0.0 requires org.example/b ^2
  the versions there are, and what rules each of them out:
    2.1.0-rc.1  a prerelease, which is only taken where a requirement names it
    2.0.0       not ^1, which hello requires
    1.0.0       not ^2, which org.example/a 1.0.0 requires",
        );
    }

    #[test]
    fn an_unknown_package_is_named_with_its_chain() {
        check_refused(
            &["a 1.0.0: nothing ^1"],
            "a ^1",
            "there is no package org.example/nothing
  hello (yours) requires org.example/a ^1
    org.example/a 1.0.0 requires org.example/nothing ^1",
        );
    }

    #[test]
    fn a_constraint_that_nothing_satisfies_is_named_with_its_chain() {
        check_refused(
            &["a 1.0.0: b ^2", "b 1.0.0:", "b 2.0.0-rc.1:"],
            "a ^1",
            "no version of org.example/b satisfies ^2
  hello (yours) requires org.example/a ^1
    org.example/a 1.0.0 requires org.example/b ^2
  the versions there are: 2.0.0-rc.1, 1.0.0
  a prerelease is only taken where a requirement names it, as `^2.0.0-rc.1` does",
        );
    }

    /// Knows `a` alone, and fails over everything else.
    struct Failing;

    #[derive(Debug, thiserror::Error)]
    #[error("reading {0} failed")]
    struct Unread(String);

    impl Index for Failing {
        type Error = Unread;

        fn versions(&self, id: &PackageId) -> Result<Vec<Version>, Unread> {
            match id.name() {
                "a" | "opaque" => Ok(vec![Version::new(1, 0, 0)]),
                name => Err(Unread(name.to_owned())),
            }
        }

        fn requirements(&self, id: &PackageId, _: &Version) -> Result<Requirements, Unread> {
            match id.name() {
                "a" => Ok(requirements("!refused *")),
                name => Err(Unread(name.to_owned())),
            }
        }
    }

    #[test]
    fn an_index_that_fails_is_passed_on() {
        for name in ["unlisted", "opaque"] {
            let error = resolve(&Failing, &request(&format!("{name} *"), &[])).unwrap_err();
            assert!(matches!(error, ResolveError::Index(_)));
            assert_eq!(error.to_string(), format!("reading {name} failed"));
        }
    }

    #[test]
    fn nobody_asks_for_a_package_that_is_only_refused_or_held() {
        let request = request("a *, !other *", &[("third", "1.0.0")]);
        assert_eq!(resolve(&Failing, &request).unwrap().packages.len(), 1);
    }

    #[test]
    fn a_large_universe_is_solved_in_one_sweep() {
        let mut rows = Vec::new();
        for package in 0..60 {
            for minor in 0..20 {
                let next = [package + 1, package + 7].map(|next| format!("p{next} ^1.{minor}"));
                let next = if package < 53 {
                    next.join(", ")
                } else {
                    String::new()
                };
                rows.push(format!("p{package} 1.{minor}.0: {next}"));
            }
        }
        let rows: Vec<&str> = rows.iter().map(String::as_str).collect();
        let resolution = resolve(&universe(&rows), &request("p0 *", &[])).unwrap();
        assert_eq!(resolution.packages.len(), 60);
        let highest = Version::new(1, 19, 0);
        assert!(
            resolution
                .packages
                .values()
                .all(|chosen| chosen.version == highest)
        );
    }
}
