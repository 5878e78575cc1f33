//! What a lock and the manifests disagree in, and how it is told.

use std::fmt;

use vibe_core::formats::lock::LockedSource;
use vibe_core::text::escape;
use vibe_core::{Constraint, PackageId, Version};

/// Who asks for something.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Requirer {
    /// The project itself.
    Project,
    /// The member of its workspace with this name.
    Member(String),
    /// The project, in place of everybody who requires the package.
    Override,
    /// This package.
    Package(PackageId),
}

impl fmt::Display for Requirer {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Project => out.write_str("the project"),
            Self::Member(name) => out.write_str(&escape(name)),
            Self::Override => out.write_str("the override"),
            Self::Package(id) => id.fmt(out),
        }
    }
}

/// What a [`LockProblem`] means for a run that may not change the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockProblemKind {
    /// The manifests moved on: the lock has to be made anew.
    OutOfDate,
    /// The lock names another place than the manifests do.
    Integrity,
}

/// One way in which a lock does not satisfy the manifests.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockProblem {
    /// The locked version is out of range.
    #[error("{requirer} requires {id} {constraint}, but vibe.lock has {locked}")]
    Unsatisfied {
        /// Who requires it.
        requirer: Requirer,
        /// The package.
        id: PackageId,
        /// The versions that satisfy.
        constraint: Constraint,
        /// The one locked.
        locked: Version,
    },
    /// A conflict stated by the project or a path package.
    #[error("{requirer} conflicts with {id} {constraint}, but vibe.lock has {locked}")]
    Refused {
        /// Who refuses it.
        requirer: Requirer,
        /// The package.
        id: PackageId,
        /// The versions refused.
        constraint: Constraint,
        /// The one locked.
        locked: Version,
    },
    /// A required package has no entry.
    #[error("{requirer} requires {id}, but vibe.lock has no entry for it")]
    Missing {
        /// Who requires it.
        requirer: Requirer,
        /// The package.
        id: PackageId,
    },
    /// An entry that nothing requires.
    #[error("vibe.lock has {id} {locked}, but nothing requires it")]
    Extra {
        /// The package.
        id: PackageId,
        /// Its locked version.
        locked: Version,
    },
    /// An entry without the identity that its kind must have.
    #[error("vibe.lock has {id} from {} without `{key}`, which such an entry must state", source_text(.locked))]
    WithoutIdentity {
        /// The package.
        id: PackageId,
        /// Its locked source.
        locked: LockedSource,
        /// The key that is absent.
        key: &'static str,
    },
    /// Locked from another kind of source than the manifests name.
    #[error("{id} is required from a {wanted}, but vibe.lock has it from {}", source_text(.locked))]
    SourceDiffers {
        /// The package.
        id: PackageId,
        /// What the manifests take it from: a path, a registry or a git repository.
        wanted: &'static str,
        /// Its locked source.
        locked: LockedSource,
    },
    /// A path package has another version by now.
    #[error("{id} is {version} in its own manifest, but vibe.lock has {locked}")]
    VersionDiffers {
        /// The package.
        id: PackageId,
        /// Its version now.
        version: Version,
        /// The one locked.
        locked: Version,
    },
    /// A path package requires other packages by now.
    #[error("{id} requires {} in its own manifest, but vibe.lock lists {}", listed(.requires), listed(.locked))]
    DependenciesDiffer {
        /// The package.
        id: PackageId,
        /// What it requires now, sorted.
        requires: Vec<PackageId>,
        /// What is locked.
        locked: Vec<PackageId>,
    },
    /// A registry that the root manifest does not state.
    #[error("vibe.lock has {id} from the registry `{}`, but the manifest states {}", escape(.locked), quoted(.registries))]
    RegistryDiffers {
        /// The package.
        id: PackageId,
        /// Its locked registry.
        locked: String,
        /// Those of the manifest.
        registries: Vec<String>,
    },
    /// Another tag, branch, revision or range than the manifest's.
    #[error("{id} is required at `{}`, but vibe.lock has it at `{}`", escape(.reference), escape(.locked))]
    ReferenceDiffers {
        /// The package.
        id: PackageId,
        /// The manifest's reference.
        reference: String,
        /// The locked one.
        locked: String,
    },
    /// Another repository, or another directory in it, than the manifest's.
    #[error("{id} is required from the git repository `{}`, but vibe.lock has it from `{}`", escape(.repository), escape(.locked))]
    RepositoryDiffers {
        /// The package.
        id: PackageId,
        /// The manifest's repository and directory.
        repository: String,
        /// The locked ones.
        locked: String,
    },
    /// A git repository that no manifest names.
    #[error("vibe.lock has {id} from the git repository `{}`, which no manifest and no registry names", escape(.locked))]
    RepositoryUnknown {
        /// The package.
        id: PackageId,
        /// The locked repository.
        locked: String,
    },
    /// Another path than the manifest's.
    #[error("{id} is required from the path `{}`, but vibe.lock has it from the path `{}`", escape(.path), escape(.locked))]
    PathDiffers {
        /// The package.
        id: PackageId,
        /// The manifest's path.
        path: String,
        /// The locked path.
        locked: String,
    },
}

impl LockProblem {
    /// What it means for a run that may not change the lock.
    pub fn kind(&self) -> LockProblemKind {
        match self {
            Self::RegistryDiffers { .. }
            | Self::PathDiffers { .. }
            | Self::RepositoryDiffers { .. }
            | Self::RepositoryUnknown { .. } => LockProblemKind::Integrity,
            Self::Unsatisfied { .. }
            | Self::Refused { .. }
            | Self::Missing { .. }
            | Self::Extra { .. }
            | Self::WithoutIdentity { .. }
            | Self::SourceDiffers { .. }
            | Self::VersionDiffers { .. }
            | Self::ReferenceDiffers { .. }
            | Self::DependenciesDiffer { .. } => LockProblemKind::OutOfDate,
        }
    }
}

fn source_text(source: &LockedSource) -> String {
    format!("`{}`", escape(&source.to_string()))
}

fn listed(ids: &[PackageId]) -> String {
    if ids.is_empty() {
        return "nothing".to_owned();
    }
    let ids: Vec<&str> = ids.iter().map(PackageId::as_str).collect();
    ids.join(", ")
}

fn quoted(places: &[String]) -> String {
    if places.is_empty() {
        return "no registry".to_owned();
    }
    let places: Vec<String> = places
        .iter()
        .map(|place| format!("`{}`", escape(place)))
        .collect();
    places.join(", ")
}
