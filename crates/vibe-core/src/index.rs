//! The port through which the resolver sees which packages exist and what they ask for.

use std::collections::BTreeMap;

use crate::identifier::PackageId;
use crate::version::{Constraint, Version};

/// What a project, or one version of a package, asks of a solution.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Requirements {
    /// The packages that must be in it, each in a version that satisfies.
    pub requires: BTreeMap<PackageId, Constraint>,
    /// The packages that may not be in it in a version that satisfies. Naming a package here does
    /// not bring it in.
    pub conflicts: Vec<(PackageId, Constraint)>,
}

/// Every source of packages as one: whoever implements this decides where an id comes from. A
/// package taken from a path or a git reference has one version here, and a requirement without a
/// constraint of its own is best stated as [`Constraint::exact`] of it: [`Constraint::any`] would
/// refuse a prerelease.
pub trait Index {
    /// Why an answer could not be had.
    type Error: std::error::Error + 'static;

    /// Every version of `id`, in any order; empty when the package is unknown.
    fn versions(&self, id: &PackageId) -> Result<Vec<Version>, Self::Error>;

    /// What `version` of `id`, one of [`Index::versions`], asks for.
    fn requirements(&self, id: &PackageId, version: &Version) -> Result<Requirements, Self::Error>;
}
