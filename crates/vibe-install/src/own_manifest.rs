//! The manifests that are the user's own: the project's, and those of the members of its workspace.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use vibe_core::formats::manifest::{Dependency, Manifest};
use vibe_core::{Constraint, PackageId, RelPath, Requirements, Sha256Digest};
use vibe_resolver::Requirer;

/// One of the manifests that make up a project.
#[derive(Debug, Clone)]
pub(crate) struct OwnManifest {
    /// Where it lies, relative to the root: `vibe.toml`, or `packages/a/vibe.toml`.
    pub path: RelPath,
    /// Its value, with the constraints that its workspaces give to `version.var`.
    pub manifest: Manifest,
    /// Its text as read; `None` for the one of a project that has none yet.
    pub text: Option<String>,
    /// The digest of its bytes as read.
    pub digest: Option<Sha256Digest>,
}

/// What one of the user's own manifests asks for.
#[derive(Debug, Clone)]
pub(crate) struct OwnRequirements {
    /// Its name, as chains of requirers begin with it.
    pub name: String,
    /// Where the manifest lies, relative to the root.
    pub path: RelPath,
    /// What it requires.
    pub requires: BTreeMap<PackageId, Dependency>,
    /// What may not stand beside it.
    pub conflicts: Vec<(PackageId, Constraint)>,
}

impl OwnManifest {
    /// Its directory as the root sees it, with forward slashes; empty for the root.
    pub(crate) fn base(&self) -> &str {
        base_of(&self.path)
    }

    /// Its directory in the project whose root is `root`.
    pub(crate) fn directory(&self, root: &Path) -> PathBuf {
        root.join(self.base())
    }

    /// What it calls itself, else where it lies.
    pub(crate) fn name(&self) -> &str {
        let project = self.manifest.project.as_ref();
        let package = self.manifest.package.as_ref();
        let own = project
            .map(|project| project.name.as_str())
            .or_else(|| package.map(|package| package.id.as_str()));
        own.unwrap_or(match self.base() {
            "" => "the workspace",
            base => base,
        })
    }
}

impl OwnRequirements {
    /// The directory of the manifest as the root sees it, with forward slashes; empty for the root.
    pub(crate) fn base(&self) -> &str {
        base_of(&self.path)
    }

    /// The same for the solver, with what is required as `requires`.
    pub(crate) fn requirer(&self, requires: BTreeMap<PackageId, Constraint>) -> Requirer {
        Requirer {
            name: self.name.clone(),
            member: (!self.is_root()).then(|| self.base().to_owned()),
            requirements: Requirements {
                requires,
                conflicts: self.conflicts.clone(),
            },
        }
    }

    /// Its name, with its place if it is a member's.
    pub(crate) fn shown(&self) -> String {
        match self.base() {
            base if base.is_empty() || base == self.name => self.name.clone(),
            base => format!("{} ({base})", self.name),
        }
    }

    /// Whether it is the root's.
    pub(crate) fn is_root(&self) -> bool {
        self.base().is_empty()
    }
}

/// The directory of the manifest at `path`.
fn base_of(path: &RelPath) -> &str {
    path.as_str().rsplit_once('/').map_or("", |(base, _)| base)
}
