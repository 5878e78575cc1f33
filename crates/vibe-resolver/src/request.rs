//! What is to be solved.

use std::collections::BTreeMap;

use vibe_core::{PackageId, Requirements, Version};

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
