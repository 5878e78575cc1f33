//! From the solver's proof to a clash that a person can follow.
//!
//! The proof names the requirements that together have no solution. We walk these, and only these,
//! from the requirers, taking the highest version of each package as a solver without second thoughts
//! would, until one package has no version left; then everything said of it so far, each with its
//! chain, is the explanation. A package whose version was taken too early is taken again, with what
//! ruled that version out kept; so the walk ends. It cannot end without a clash: that would be a
//! solution of requirements that have none.

use std::collections::{BTreeMap, BTreeSet, HashSet, VecDeque};
use std::sync::Arc;

use pubgrub::{DerivationTree, External};
use vibe_core::{Constraint, Index, PackageId, Requirements, Version};

use crate::cached::Cached;
use crate::error::{Chain, Conflict, ResolveError, Step};
use crate::provider::{Node, Proof, ROOT, Ranks};
use crate::request::Request;

/// Something said of a package.
#[derive(Clone, PartialEq)]
struct Statement {
    chain: Chain,
    refuses: bool,
}

impl Statement {
    fn allows(&self, version: &Version) -> bool {
        self.chain.constraint.matches(version) != self.refuses
    }
}

/// The beginning of a chain: the requirer's name, and where a member is.
type Root = (String, Option<String>);
type Statements = BTreeMap<PackageId, Vec<Statement>>;
type Explanation<I> = ResolveError<<I as Index>::Error>;

struct Walk<'a, I> {
    index: &'a Cached<'a, I>,
    request: &'a Request,
    refusals: &'a [(PackageId, Constraint)],
    edges: Vec<(Node, Ranks, Node)>,
    /// What ruled out versions that were taken too early.
    kept: Statements,
}

/// The clash behind `proof`, in which `refusals` are those that the solver knew.
pub(crate) fn explain<I: Index>(
    index: &Cached<'_, I>,
    request: &Request,
    proof: &Proof,
    refusals: &[(PackageId, Constraint)],
) -> Result<Explanation<I>, I::Error> {
    let mut walk = Walk {
        index,
        request,
        refusals,
        edges: edges(proof),
        kept: Statements::new(),
    };
    loop {
        if let Some(explanation) = walk.pass()? {
            return Ok(explanation);
        }
    }
}

/// The requirements that `proof` rests on.
fn edges(proof: &Proof) -> Vec<(Node, Ranks, Node)> {
    let mut edges = Vec::new();
    let mut seen = HashSet::new();
    let mut open = vec![proof];
    while let Some(tree) = open.pop() {
        match tree {
            DerivationTree::External(External::FromDependencyOf(from, ranks, to, _)) => {
                edges.push((from.clone(), ranks.clone(), to.clone()));
            }
            DerivationTree::External(_) => {}
            DerivationTree::Derived(derived) => {
                // Shared parts of the proof are one allocation; following each once keeps this
                // linear.
                for cause in [&derived.cause1, &derived.cause2] {
                    if seen.insert(Arc::as_ptr(cause)) {
                        open.push(cause);
                    }
                }
            }
        }
    }
    edges
}

impl<I: Index> Walk<'_, I> {
    /// One walk from the requirers; `None` if a version was taken too early.
    fn pass(&mut self) -> Result<Option<Explanation<I>>, I::Error> {
        let mut said = self.kept.clone();
        let mut taken: BTreeMap<PackageId, Version> = BTreeMap::new();
        let mut required: BTreeSet<PackageId> = BTreeSet::new();
        let mut front: VecDeque<Chain> = VecDeque::new();
        let (mut root, mut speaker) = (Root::default(), Vec::new());
        loop {
            for statement in self.statements_of(&speaker, &root)? {
                let id = statement.chain.package.clone();
                let of_it = said.entry(id.clone()).or_default();
                if !of_it.contains(&statement) {
                    of_it.push(statement.clone());
                }
                if !statement.refuses && required.insert(id.clone()) {
                    front.push_back(statement.chain.clone());
                }
                if !required.contains(&id) {
                    continue;
                }
                let left = self.left(&id, of_it)?;
                if left.is_empty() {
                    return self.clash(of_it, &statement).map(Some);
                }
                if taken.get(&id).is_some_and(|taken| !left.contains(taken)) {
                    self.kept.insert(id, of_it.clone());
                    return Ok(None);
                }
            }
            let next = front
                .pop_front()
                .expect("requirements without a solution clash before all are satisfied");
            let left = self.left(&next.package, &said[&next.package])?;
            let version = left.last().expect("an empty choice is a clash").clone();
            taken.insert(next.package.clone(), version.clone());
            root = (next.root, next.member);
            speaker = next.steps;
            speaker.push(Step {
                package: next.package,
                constraint: next.constraint,
                version,
            });
        }
    }

    /// The nodes that the proof has `speaker`, or the requirers, speak of.
    fn spoken_of(&self, speaker: Option<&Step>) -> Result<Vec<&Node>, I::Error> {
        let (node, rank) = match speaker {
            None => (Node::Root, ROOT),
            Some(step) => {
                let versions = self.index.versions(&step.package)?;
                let rank = versions.binary_search(&step.version);
                let rank = rank.expect("a step has a version of its package");
                (Node::Package(step.package.clone()), rank)
            }
        };
        let edges = self.edges.iter();
        let edges = edges.filter(|(from, ranks, _)| *from == node && ranks.contains(&rank));
        Ok(edges.map(|(_, _, to)| to).collect())
    }

    /// What the last of `steps`, or every requirer, says of others in the proof.
    fn statements_of(&self, steps: &[Step], root: &Root) -> Result<Vec<Statement>, I::Error> {
        let about = self.spoken_of(steps.last())?;
        if about.is_empty() {
            // The solver need not have asked for these requirements, so we do not either.
            return Ok(Vec::new());
        }
        let Some(speaker) = steps.last() else {
            let requirers = self.request.requirers.iter();
            let said = requirers.flat_map(|from| {
                let root = (from.name.clone(), from.member.clone());
                self.said(&root, steps, &from.requirements, &about)
            });
            return Ok(said.collect());
        };
        let requirements = self
            .index
            .requirements(&speaker.package, &speaker.version)?;
        Ok(self.said(root, steps, &requirements, &about))
    }

    /// The part of `requirements`, those of the last of `steps` or of `root`, that is `about` nodes
    /// of the proof.
    fn said(
        &self,
        root: &Root,
        steps: &[Step],
        requirements: &Requirements,
        about: &[&Node],
    ) -> Vec<Statement> {
        let statement = |(id, constraint): (&PackageId, &Constraint), refuses| Statement {
            chain: Chain {
                root: root.0.clone(),
                member: root.1.clone(),
                steps: steps.to_vec(),
                package: id.clone(),
                constraint: constraint.clone(),
            },
            refuses,
        };
        let required = requirements.requires.iter();
        let required = required.filter(|(id, _)| about.contains(&&Node::Package((*id).clone())));
        let refused = requirements.conflicts.iter();
        let refused = refused.filter(|refusal| {
            let of_itself = steps.last().is_some_and(|step| step.package == refusal.0);
            let known = self.refusals.iter().position(|known| known == *refusal);
            !of_itself && known.is_some_and(|index| about.contains(&&Node::Refusal(index)))
        });
        required
            .map(|edge| statement(edge, false))
            .chain(refused.map(|(id, constraint)| statement((id, constraint), true)))
            .collect()
    }

    /// The versions of `id` that all of `said` allow, lowest first.
    fn left(&self, id: &PackageId, said: &[Statement]) -> Result<Vec<Version>, I::Error> {
        let versions = self.index.versions(id)?;
        let allowed = |version: &&Version| said.iter().all(|said| said.allows(version));
        Ok(versions.iter().filter(allowed).cloned().collect())
    }

    /// No version is left under `said`, of which `last` is the newest.
    fn clash(&self, said: &[Statement], last: &Statement) -> Result<Explanation<I>, I::Error> {
        let package = &last.chain.package;
        let available = self.index.versions(package)?.to_vec();
        let chain = Box::new(last.chain.clone());
        if available.is_empty() {
            return Ok(ResolveError::Unknown { chain });
        }
        if !last.refuses && !available.iter().any(|version| last.allows(version)) {
            return Ok(ResolveError::NoVersion { chain, available });
        }
        let chains = |refuses: bool| {
            let said = said.iter().filter(move |said| said.refuses == refuses);
            said.map(|said| said.chain.clone()).collect::<Vec<_>>()
        };
        Ok(ResolveError::Conflict(Box::new(Conflict {
            package: package.clone(),
            requirers: chains(false),
            refusers: chains(true),
            available,
            tried: self.tried(said)?,
        })))
    }

    /// The packages in between that have another version in range.
    fn tried(&self, said: &[Statement]) -> Result<Vec<PackageId>, I::Error> {
        let mut tried = BTreeSet::new();
        for step in said.iter().flat_map(|said| &said.chain.steps) {
            let versions = self.index.versions(&step.package)?;
            let in_range = versions.iter().filter(|v| step.constraint.matches(v));
            if in_range.count() > 1 {
                tried.insert(step.package.clone());
            }
        }
        Ok(tried.into_iter().collect())
    }
}
