//! The order of packages: dependencies before dependents.

use std::collections::{BTreeMap, BTreeSet};

use vibe_core::PackageId;

/// Packages in the order their hooks run.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Order {
    /// Every package, dependencies first; where that leaves a choice, by id.
    pub packages: Vec<PackageId>,
    /// Groups of packages that depend on each other, each sorted by id.
    pub cycles: Vec<Vec<PackageId>>,
}

/// Orders `dependencies` (each package to what it depends on; ids without a row are ignored).
/// Within a cycle packages stand in order of id.
pub fn order(dependencies: &BTreeMap<PackageId, Vec<PackageId>>) -> Order {
    let reach: BTreeMap<&PackageId, BTreeSet<&PackageId>> = dependencies
        .keys()
        .map(|id| (id, reachable(id, dependencies)))
        .collect();
    let mut order = Order::default();
    let mut placed: BTreeSet<&PackageId> = BTreeSet::new();
    // A package is ready when all it can reach is placed or reaches back to it. The first ready one
    // by id is taken, its whole cycle with it; until all are placed some package is ready, since
    // the cycles themselves form no cycle.
    while let Some((id, reached)) = reach.iter().find(|(id, reached)| {
        !placed.contains(*id)
            && reached
                .iter()
                .all(|other| placed.contains(other) || reach[other].contains(*id))
    }) {
        let id = *id;
        let mut cycle: Vec<PackageId> = reached
            .iter()
            .filter(|other| reach[*other].contains(id))
            .map(|id| (*id).clone())
            .collect();
        if cycle.is_empty() {
            cycle.push(id.clone());
        } else {
            order.cycles.push(cycle.clone());
        }
        placed.extend(reach.keys().filter(|known| cycle.contains(known)));
        order.packages.extend(cycle);
    }
    order
}

/// What can be reached from `from` by one step or more.
fn reachable<'a>(
    from: &PackageId,
    dependencies: &'a BTreeMap<PackageId, Vec<PackageId>>,
) -> BTreeSet<&'a PackageId> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&PackageId> = dependencies.get(from).into_iter().flatten().collect();
    while let Some(id) = open.pop() {
        let Some((id, next)) = dependencies.get_key_value(id) else {
            continue;
        };
        if reached.insert(id) {
            open.extend(next);
        }
    }
    reached
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn check(edges: &[(&str, &[&str])], packages: &[&str], cycles: &[&[&str]]) {
        let id = |name: &str| format!("g/{name}").parse::<PackageId>().unwrap();
        let graph = edges
            .iter()
            .map(|(from, to)| (id(from), to.iter().map(|t| id(t)).collect()))
            .collect();
        let found = order(&graph);
        let expected: Vec<PackageId> = packages.iter().map(|p| id(p)).collect();
        assert_eq!(found.packages, expected);
        let expected: Vec<Vec<PackageId>> = cycles
            .iter()
            .map(|c| c.iter().map(|p| id(p)).collect())
            .collect();
        assert_eq!(found.cycles, expected);
    }

    #[test]
    fn dependencies_come_before_dependents_and_ties_by_id() {
        check(&[], &[], &[]);
        check(
            &[("a", &["c"]), ("b", &[]), ("c", &[])],
            &["b", "c", "a"],
            &[],
        );
        check(
            &[("a", &["b"]), ("b", &["c"]), ("c", &[]), ("d", &[])],
            &["c", "b", "a", "d"],
            &[],
        );
        check(&[("a", &["not-here"])], &["a"], &[]);
    }

    #[test]
    fn a_cycle_stands_together_in_order_of_id_and_is_named() {
        check(&[("a", &["b"]), ("b", &["a"])], &["a", "b"], &[&["a", "b"]]);
        check(&[("a", &["a"])], &["a"], &[&["a"]]);
        check(
            &[("a", &["z"]), ("m", &["z", "y"]), ("y", &[]), ("z", &["m"])],
            &["y", "m", "z", "a"],
            &[&["m", "z"]],
        );
    }

    proptest! {
        #[test]
        fn every_package_comes_once_and_after_what_it_needs(
            edges in proptest::collection::btree_map(0u8..7, proptest::collection::vec(0u8..7, 0..3), 0..7)
        ) {
            let id = |n: &u8| format!("g/p{n}").parse::<PackageId>().unwrap();
            let graph: BTreeMap<PackageId, Vec<PackageId>> =
                edges.iter().map(|(from, to)| (id(from), to.iter().map(id).collect())).collect();
            let found = order(&graph);
            let mut sorted = found.packages.clone();
            sorted.sort();
            prop_assert_eq!(sorted, graph.keys().cloned().collect::<Vec<_>>());
            let at = |id: &PackageId| found.packages.iter().position(|p| p == id);
            for (from, to) in &graph {
                for dependency in to.iter().filter(|t| graph.contains_key(t)) {
                    let together = found.cycles.iter().any(|c| c.contains(from) && c.contains(dependency));
                    prop_assert!(together || at(dependency) < at(from));
                }
            }
        }
    }
}
