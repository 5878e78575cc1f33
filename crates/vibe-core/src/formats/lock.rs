//! `vibe.lock`: what was resolved, for every machine the same bytes.

use std::collections::BTreeMap;

use crate::digest::Sha256Digest;
use crate::formats::manifest::Materialization;
use crate::identifier::PackageId;
use crate::tree::TreeId;
use crate::version::Version;

/// The file name.
pub const LOCK_NAME: &str = "vibe.lock";
/// The schema number written.
pub const LOCK_VERSION: u64 = 1;

/// A lock: sorted by id.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lock {
    /// The packages, sorted by id, each once.
    pub packages: Vec<LockedPackage>,
}

/// One resolved package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedPackage {
    /// `id`.
    pub id: PackageId,
    /// `version`.
    pub version: Version,
    /// `source`.
    pub source: LockedSource,
    /// `ref`, as required: `tag:…`, `branch:…`, `rev:…` or `range:…`.
    pub reference: Option<String>,
    /// `subdir`.
    pub subdir: Option<String>,
    /// `commit`, 40 hex digits.
    pub commit: Option<String>,
    /// `tree`.
    pub tree: Option<TreeId>,
    /// `materialization`, the mode asked for.
    pub materialization: Materialization,
    /// `dependencies`, sorted.
    pub dependencies: Vec<PackageId>,
    /// `install-hooks`: script path, or `command:…`, to digest.
    pub install_hooks: BTreeMap<String, Sha256Digest>,
}

/// `source`: `dir+…`, `git+…` or `path+…`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockedSource {
    /// A directory registry, as the manifest states it.
    Directory(String),
    /// A git URL without credentials.
    Git(String),
    /// A path, as the manifest states it.
    Path(String),
}

impl Lock {
    /// The entry of `id`.
    pub fn get(&self, id: &PackageId) -> Option<&LockedPackage> {
        self.packages
            .binary_search_by(|p| p.id.cmp(id))
            .ok()
            .map(|index| &self.packages[index])
    }
}
