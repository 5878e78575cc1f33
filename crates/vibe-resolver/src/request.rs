//! What is to be solved.

use std::collections::BTreeMap;

use vibe_core::{PackageId, Requirements, Version};

/// What is to be solved.
#[derive(Debug, Clone, Default)]
pub struct Request {
    /// Everybody who asks for something from outside the packages: the project, and the members of
    /// its workspace. Each may require the same packages as another, in its own versions.
    pub requirers: Vec<Requirer>,
    /// The versions to keep: all of them if any solution does, else as many as come easily.
    pub held: BTreeMap<PackageId, Version>,
}

/// One that asks for packages without being one of the solution.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Requirer {
    /// Its name, where chains of requirers start.
    pub name: String,
    /// Where it is in the project, if it is a member of its workspace.
    pub member: Option<String>,
    /// What it asks for.
    pub requirements: Requirements,
}
