//! Why a workspace cannot be taken up.

use std::path::PathBuf;

use vibe_core::relative_path::PathError;
use vibe_core::text::escape;
use vibe_core::{PackageId, Version};
use vibe_fs::error::shown;

/// Why a workspace cannot be taken up.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// One that anybody could have put around a project of the user's.
    #[error(
        "{} includes {}, but belongs to another user and lies in a directory that everybody may write",
        shown(path),
        shown(directory)
    )]
    Foreign {
        /// The manifest of the workspace.
        path: PathBuf,
        /// What it includes.
        directory: PathBuf,
    },
    /// A member that is named is not there.
    #[error(
        "{} names the member `{}`, and there is no vibe.toml in such a directory",
        shown(path),
        escape(member)
    )]
    NoSuchMember {
        /// The manifest.
        path: PathBuf,
        /// The member as stated.
        member: String,
    },
    /// A member in a directory that not every system can name.
    #[error("a member of the workspace has a name that cannot be used")]
    MemberPath {
        /// Which, and why.
        source: PathError,
    },
    /// The members are too many, or looked for too widely.
    #[error("the workspace {} has {what}", shown(root))]
    TooLarge {
        /// The workspace.
        root: PathBuf,
        /// What is more than the limit, and the limit.
        what: String,
    },
    /// A published package whose requirement only a workspace could complete.
    #[error(
        "{id} {version} is published, but requires {dependency} in a version of its workspace's"
    )]
    PublishedVariable {
        /// The package.
        id: PackageId,
        /// Its version.
        version: Version,
        /// What it requires by a variable.
        dependency: PackageId,
    },
}
