//! The problem in the solver's terms.
//!
//! A constraint becomes the finite set of the known versions it matches, since prereleases keep it
//! from being an interval; a version is its rank among the known versions of its package. A refusal
//! (`P` may not stand beside `Q` in some versions) becomes a node with the ranks [`KEPT_OUT`] and
//! [`PRESENT`]: `P` needs the one, the versions of `Q` that it means need the other. So `P` never
//! brings `Q` in, and nobody asks the index for a package that is only refused.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::fmt;
use std::ops::Bound;

use pubgrub::{
    Dependencies, DependencyConstraints, DependencyProvider, DerivationTree,
    PackageResolutionStatistics, Ranges,
};
use vibe_core::{Constraint, Index, PackageId, Version};

use crate::cached::Cached;
use crate::request::Request;

/// What the solver decides on.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Node {
    /// All requirers together: what several require of one package has to be true at once.
    Root,
    /// A package.
    Package(PackageId),
    /// The refusal of this index in [`Provider::refusals`].
    Refusal(usize),
}

impl fmt::Display for Node {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Root => out.write_str("the project"),
            Self::Package(id) => id.fmt(out),
            Self::Refusal(index) => write!(out, "refusal {index}"),
        }
    }
}

/// A set of ranks. Made of single ranks only, so that equal sets compare equal.
pub(crate) type Ranks = Ranges<usize>;
/// The proof that there is no solution.
pub(crate) type Proof = DerivationTree<Node, Ranks, Infallible>;
/// The only rank of [`Node::Root`].
pub(crate) const ROOT: usize = 0;
/// The rank of a refusal that holds.
const KEPT_OUT: usize = 0;
/// The rank of a refusal whose package is in the solution.
const PRESENT: usize = 1;

/// How strongly held versions count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hold {
    /// A held package has no other version.
    Hard,
    /// A held version is tried before higher ones, and held packages before others.
    Soft,
}

/// The solver's view of one request.
pub(crate) struct Provider<'a, I> {
    pub(crate) index: &'a Cached<'a, I>,
    pub(crate) request: &'a Request,
    pub(crate) hold: Hold,
    pub(crate) refusals: &'a [(PackageId, Constraint)],
}

impl<I: Index> Provider<'_, I> {
    /// The ranks of the versions of `id` that `constraint` leaves to choose from.
    fn matching(&self, id: &PackageId, constraint: &Constraint) -> Result<Ranks, I::Error> {
        let held = match self.hold {
            Hold::Hard => self.request.held.get(id),
            Hold::Soft => None,
        };
        let versions = self.index.versions(id)?;
        Ok(versions
            .iter()
            .enumerate()
            .filter(|(_, version)| held.is_none_or(|held| held == *version))
            .filter(|(_, version)| constraint.matches(version))
            .map(|(rank, _)| (Bound::Included(rank), Bound::Included(rank)))
            .collect())
    }

    fn version(&self, id: &PackageId, rank: usize) -> Result<Version, I::Error> {
        Ok(self.index.versions(id)?[rank].clone())
    }

    fn choose(&self, id: &PackageId, range: &Ranks) -> Result<Option<usize>, I::Error> {
        let versions = self.index.versions(id)?;
        let held = self.request.held.get(id);
        let held = held.and_then(|held| versions.iter().position(|version| version == held));
        Ok(held
            .filter(|rank| range.contains(rank))
            .or_else(|| (0..versions.len()).rev().find(|rank| range.contains(rank))))
    }

    fn root_edges(&self) -> Result<Vec<(Node, Ranks)>, I::Error> {
        let mut edges = Vec::new();
        let mut required: BTreeMap<&PackageId, Ranks> = BTreeMap::new();
        for requirer in &self.request.requirers {
            edges.extend(self.refused_by(&requirer.requirements.conflicts));
            for (id, constraint) in &requirer.requirements.requires {
                let mut ranks = self.matching(id, constraint)?;
                if let Some(others) = required.get(id) {
                    ranks = ranks.intersection(others);
                }
                required.insert(id, ranks);
            }
        }
        let required = required.into_iter();
        edges.extend(required.map(|(id, ranks)| (Node::Package(id.clone()), ranks)));
        Ok(edges)
    }

    fn package_edges(&self, id: &PackageId, rank: usize) -> Result<Vec<(Node, Ranks)>, I::Error> {
        let version = self.version(id, rank)?;
        let requirements = self.index.requirements(id, &version)?;
        let mut edges = self.refused_by(&requirements.conflicts);
        // One version per package: what a package says of itself refuses nothing.
        edges.retain(|(node, _)| !self.means(node, id));
        for (index, (refused, constraint)) in self.refusals.iter().enumerate() {
            if refused == id && constraint.matches(&version) {
                edges.push((Node::Refusal(index), Ranks::singleton(PRESENT)));
            }
        }
        for (required, constraint) in &requirements.requires {
            if required != id {
                let ranks = self.matching(required, constraint)?;
                edges.push((Node::Package(required.clone()), ranks));
            } else if !constraint.matches(&version) {
                edges.push((Node::Package(id.clone()), Ranks::empty()));
            }
        }
        Ok(edges)
    }

    fn refused_by(&self, conflicts: &[(PackageId, Constraint)]) -> Vec<(Node, Ranks)> {
        self.refusals
            .iter()
            .enumerate()
            .filter(|(_, refusal)| conflicts.contains(refusal))
            .map(|(index, _)| (Node::Refusal(index), Ranks::singleton(KEPT_OUT)))
            .collect()
    }

    fn means(&self, node: &Node, id: &PackageId) -> bool {
        matches!(node, Node::Refusal(index) if self.refusals[*index].0 == *id)
    }
}

impl<I: Index> DependencyProvider for Provider<'_, I> {
    type P = Node;
    type V = usize;
    type VS = Ranks;
    /// Held ones first where they are a preference, then those without a choice, then those that
    /// were in the way most often; equal ones breadth first, so that what the project itself
    /// requires gets its highest version before what stands deeper.
    type Priority = (bool, bool, u32);
    type M = Infallible;
    type Err = I::Error;

    fn prioritize(
        &self,
        node: &Node,
        range: &Ranks,
        statistics: &PackageResolutionStatistics,
    ) -> Self::Priority {
        let held = matches!(node, Node::Package(id) if self.request.held.contains_key(id));
        let decided = range.as_singleton().is_some();
        (held, decided, statistics.conflict_count())
    }

    fn choose_version(&self, node: &Node, range: &Ranks) -> Result<Option<usize>, I::Error> {
        match node {
            Node::Root => Ok(Some(ROOT)),
            Node::Package(id) => self.choose(id, range),
            Node::Refusal(_) => Ok(range.as_singleton().copied()),
        }
    }

    fn get_dependencies(
        &self,
        node: &Node,
        rank: &usize,
    ) -> Result<Dependencies<Node, Ranks, Infallible>, I::Error> {
        let edges = match node {
            Node::Root => self.root_edges()?,
            Node::Package(id) => self.package_edges(id, *rank)?,
            Node::Refusal(_) => Vec::new(),
        };
        Ok(Dependencies::Available(DependencyConstraints::from_iter(
            edges,
        )))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_have_names_for_the_solver_log() {
        let id: PackageId = "org.example/a".parse().unwrap();
        assert_eq!(Node::Root.to_string(), "the project");
        assert_eq!(Node::Package(id).to_string(), "org.example/a");
        assert_eq!(Node::Refusal(3).to_string(), "refusal 3");
    }
}
