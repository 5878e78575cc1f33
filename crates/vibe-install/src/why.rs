//! `vibe why`: what holds a package in the project.
//!
//! A reason is a chain of requirements from the project to the package. Of the chains that end in
//! the same requirer only a shortest one is told, so that there are as many reasons as requirers,
//! however many ways lead to them. A requirer that only the package itself brings in is no reason.

use std::collections::{BTreeMap, VecDeque};

use serde::Serialize;
use vibe_core::PackageId;
use vibe_core::formats::manifest::{Dependency, Manifest};
use vibe_core::text::escape;

use crate::error::InstallError;
use crate::look::{Looked, RequirementSummary, look, requirement_text};
use crate::report::PackageSummary;
use crate::settings::Context;
use crate::verify::check_installed;

/// Chains that are told: more say nothing new to a reader.
const CHAINS_TOLD: usize = 10;

/// What holds a package in the project.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct WhyReport {
    /// The package.
    pub package: PackageSummary,
    /// The first of the chains, the shortest first, each from the project to the package.
    pub chains: Vec<Vec<RequirementSummary>>,
    /// How many chains there are besides.
    pub more: usize,
}

/// Who requires a package.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Requirer<'a> {
    /// A root, by its place among the roots.
    Root(usize),
    /// A package.
    Package(&'a PackageId),
}

/// What holds the package `id` in the project.
///
/// # Errors
/// There is no project, something in it is not as it should be, or its lock has no such package.
pub fn why(context: &Context<'_>, id: &PackageId) -> Result<WhyReport, InstallError> {
    let looked = look(context)?;
    check_installed(&looked.lock, std::slice::from_ref(id))?;
    let package = looked.package(id).cloned();
    let package = package.expect("what the lock has was looked at");
    let chains = chains(&looked, id);
    let told = chains.iter().take(CHAINS_TOLD);
    let mut manifests = BTreeMap::new();
    Ok(WhyReport {
        package,
        more: chains.len().saturating_sub(CHAINS_TOLD),
        chains: told
            .map(|chain| steps(&looked, chain, &mut manifests))
            .collect(),
    })
}

/// The chains to `target`, the shortest first: each from a root over its requirers, then `target`.
fn chains<'a>(looked: &'a Looked, target: &'a PackageId) -> Vec<(usize, Vec<&'a PackageId>)> {
    let before = first_requirers(looked, target);
    let roots = looked.roots().into_iter().enumerate();
    let direct = roots.filter(|(_, root)| root.requires.contains_key(target));
    let direct = direct.map(|(index, _)| Requirer::Root(index));
    let packages = looked.lock.packages.iter();
    let indirect = packages
        .filter(|package| package.id != *target && package.dependencies.contains(target))
        .filter(|package| before.contains_key(&package.id))
        .map(|package| Requirer::Package(&package.id));
    let mut chains: Vec<_> = direct
        .chain(indirect)
        .map(|requirer| chain(&before, requirer, target))
        .collect();
    chains.sort_by(|one, other| (one.1.len(), one).cmp(&(other.1.len(), other)));
    chains
}

/// The packages that the roots reach without `target`, each with the first that reached it on a
/// shortest way.
fn first_requirers<'a>(
    looked: &'a Looked,
    target: &PackageId,
) -> BTreeMap<&'a PackageId, Requirer<'a>> {
    let mut before: BTreeMap<&PackageId, Requirer<'_>> = BTreeMap::new();
    let mut open: VecDeque<(Requirer<'a>, &'a PackageId)> = VecDeque::new();
    for (index, root) in looked.roots().into_iter().enumerate() {
        open.extend(root.requires.keys().map(|id| (Requirer::Root(index), id)));
    }
    while let Some((requirer, id)) = open.pop_front() {
        let Some(package) = looked.lock.get(id).filter(|package| package.id != *target) else {
            continue;
        };
        if before.contains_key(id) {
            continue;
        }
        before.insert(id, requirer);
        let dependencies = package.dependencies.iter();
        open.extend(dependencies.map(|next| (Requirer::Package(id), next)));
    }
    before
}

/// The way back from `last`, which requires `target`, turned round.
fn chain<'a>(
    before: &BTreeMap<&'a PackageId, Requirer<'a>>,
    last: Requirer<'a>,
    target: &'a PackageId,
) -> (usize, Vec<&'a PackageId>) {
    let mut ids = vec![target];
    let mut at = last;
    let root = loop {
        match at {
            Requirer::Root(index) => break index,
            Requirer::Package(id) => {
                ids.push(id);
                at = before[id];
            }
        }
    };
    ids.reverse();
    (root, ids)
}

/// A chain in words.
fn steps<'a>(
    looked: &'a Looked,
    (root, ids): &(usize, Vec<&'a PackageId>),
    manifests: &mut BTreeMap<&'a PackageId, Option<Manifest>>,
) -> Vec<RequirementSummary> {
    let roots = looked.roots();
    let root = &roots[*root];
    let first = RequirementSummary {
        requirer: escape(root.name),
        version: None,
        package: ids[0].clone(),
        requirement: root.requires.get(ids[0]).map(requirement_text),
    };
    let rest = ids.windows(2).map(|pair| {
        let (requirer, package) = (pair[0], pair[1]);
        let locked = looked.lock.get(requirer);
        let manifest = manifests
            .entry(requirer)
            .or_insert_with(|| looked.manifest(locked?));
        let dependency: Option<&Dependency> = manifest
            .as_ref()
            .and_then(|manifest| manifest.requires.get(package));
        RequirementSummary {
            requirer: requirer.to_string(),
            version: locked.map(|locked| locked.version.to_string()),
            package: package.clone(),
            requirement: dependency.map(requirement_text),
        }
    });
    std::iter::once(first).chain(rest).collect()
}
