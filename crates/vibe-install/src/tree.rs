//! `vibe tree`: which packages require which. What is drawn, and how, is left to whoever shows it.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;
use vibe_core::PackageId;

use crate::error::InstallError;
use crate::look::{Looked, look};
use crate::report::PackageSummary;
use crate::settings::Context;
use crate::verify::check_installed;

/// What to look at.
#[derive(Debug, Clone, Default)]
pub struct TreeRequest {
    /// Where to start; at the project where it is empty.
    pub packages: Vec<PackageId>,
    /// From each package to what requires it, instead of to what it requires.
    pub inverted: bool,
}

/// Packages and what they require, as a graph: the edges are ids.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct TreeReport {
    /// The edges are to be followed from a package to what requires it.
    pub inverted: bool,
    /// The packages that were named to start at.
    pub starts: Vec<PackageId>,
    /// The project, where what is shown reaches it.
    pub roots: Vec<TreeRoot>,
    /// The packages that can be reached from the start, by id.
    pub packages: Vec<PackageSummary>,
}

/// Who requires packages without being one.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct TreeRoot {
    /// Its name, escaped.
    pub name: String,
    /// What it requires.
    pub dependencies: Vec<PackageId>,
}

/// The packages that can be reached from the project, or from the packages that are named, by what
/// they require or by what requires them.
///
/// # Errors
/// There is no project, something in it is not as it should be, or a named package is not in its
/// lock.
pub fn tree(context: &Context<'_>, request: &TreeRequest) -> Result<TreeReport, InstallError> {
    let looked = look(context)?;
    check_installed(&looked.lock, &request.packages)?;
    let mut roots = roots(&looked);
    let edges = match request.inverted {
        true => requirers(&looked.packages),
        false => requirements(&looked.packages),
    };
    let is_whole = request.packages.is_empty();
    let starts: Vec<&PackageId> = match is_whole {
        true => roots.iter().flat_map(|root| &root.dependencies).collect(),
        false => request.packages.iter().collect(),
    };
    let reached = reachable(&edges, starts);
    match request.inverted {
        true => roots.retain(|root| root.dependencies.iter().any(|id| reached.contains(id))),
        false => roots.retain(|_| is_whole),
    }
    let packages = looked.packages.iter();
    let packages = packages.filter(|package| reached.contains(&package.id));
    Ok(TreeReport {
        inverted: request.inverted,
        starts: request.packages.clone(),
        packages: packages.cloned().collect(),
        roots,
    })
}

fn roots(looked: &Looked) -> Vec<TreeRoot> {
    let roots = looked.roots().into_iter();
    roots
        .map(|root| TreeRoot {
            name: vibe_core::text::escape(root.name),
            dependencies: root.requires.keys().cloned().collect(),
        })
        .collect()
}

type Edges<'a> = BTreeMap<&'a PackageId, Vec<&'a PackageId>>;

fn requirements(packages: &[PackageSummary]) -> Edges<'_> {
    let packages = packages.iter();
    packages
        .map(|package| (&package.id, package.dependencies.iter().collect()))
        .collect()
}

/// For each package those that require it.
fn requirers(packages: &[PackageSummary]) -> Edges<'_> {
    let mut edges = Edges::new();
    for package in packages {
        for dependency in &package.dependencies {
            edges.entry(dependency).or_default().push(&package.id);
        }
    }
    edges
}

fn reachable<'a>(edges: &Edges<'a>, starts: Vec<&'a PackageId>) -> BTreeSet<PackageId> {
    let mut reached: BTreeSet<&PackageId> = BTreeSet::new();
    let mut open = starts;
    while let Some(id) = open.pop() {
        if reached.insert(id) {
            open.extend(edges.get(id).into_iter().flatten());
        }
    }
    reached.into_iter().cloned().collect()
}
