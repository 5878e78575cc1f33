//! What the project shall have: each package with its version, and where its files are.

use std::path::PathBuf;

use vibe_core::formats::lock::{LockedPackage, LockedSource};
use vibe_core::{PackageId, RemoteUrl, Version};
use vibe_git::CommitId;

/// One package that the project shall have.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// Its id.
    pub id: PackageId,
    /// Its version.
    pub version: Version,
    /// Its source, as the lock writes it.
    pub source: LockedSource,
    /// Where its files are.
    pub origin: Origin,
    /// What it requires, sorted.
    pub dependencies: Vec<PackageId>,
    /// The lock's entry of the same version and kind of source, if there is one.
    pub locked: Option<LockedPackage>,
    /// The version that the lock names, if it is another.
    pub previous: Option<String>,
}

/// Where the files of a package are.
#[derive(Debug, Clone)]
pub(crate) enum Origin {
    /// In a directory of the user's.
    Path(PathBuf),
    /// In a directory registry.
    Registry {
        /// The registry.
        root: PathBuf,
        /// The directory of the version.
        directory: PathBuf,
    },
    /// In a git repository.
    Git(GitOrigin),
}

/// A directory of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitOrigin {
    /// The repository, as the lock writes it.
    pub url: RemoteUrl,
    /// The reference, as the lock writes it; `None`: the default branch.
    pub reference: Option<String>,
    /// The directory in the repository.
    pub subdir: Option<String>,
    /// The commit, 40 hex digits.
    pub commit: String,
}

impl GitOrigin {
    /// [`GitOrigin::commit`], parsed.
    pub(crate) fn commit_id(&self) -> CommitId {
        self.commit
            .parse()
            .expect("a commit is 40 hex digits, from the lock or from a repository")
    }
}

impl Origin {
    /// The directory of a commit, where it is one.
    pub(crate) fn git(&self) -> Option<&GitOrigin> {
        match self {
            Origin::Path(_) | Origin::Registry { .. } => None,
            Origin::Git(git) => Some(git),
        }
    }

    /// Whether the files are on this machine.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            Origin::Path(_) | Origin::Registry { .. } => true,
            Origin::Git(git) => git.url.is_local(),
        }
    }

    /// The place as messages name it.
    pub(crate) fn path(&self) -> PathBuf {
        match self {
            Origin::Path(directory) | Origin::Registry { directory, .. } => directory.clone(),
            Origin::Git(git) => PathBuf::from(git.url.as_str()),
        }
    }
}
