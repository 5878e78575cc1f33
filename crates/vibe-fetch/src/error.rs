//! Why a package cannot be taken from its source.

use std::fmt;
use std::path::PathBuf;

use vibe_core::RelPath;
use vibe_core::relative_path::PathError;
use vibe_core::tree::TreeError;
use vibe_fs::error::shown;
use vibe_fs::{CopyError, EntryKind, FsError, ReadError};
use vibe_git::GitError;
use vibe_store::StoreError;

use crate::submodules::SubmoduleError;

/// Why a package was refused, or could not be read.
#[derive(Debug, thiserror::Error)]
pub enum FetchError {
    /// A file call failed.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// A file of ours or of the registry could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file of the package could not be hashed.
    #[error(transparent)]
    Hash(#[from] CopyError),
    /// The store cannot take the package.
    #[error(transparent)]
    Store(Box<StoreError>),
    /// A commit could not be read.
    #[error(transparent)]
    Git(Box<GitError>),
    /// A file of a commit could not be read.
    #[error("could not read `{path}` of the package's commit")]
    Blob {
        /// The file, in the package, escaped.
        path: String,
        /// The blob and what is wrong with it.
        #[source]
        source: Box<GitError>,
    },
    /// A submodule that cannot be part of a package.
    #[error(transparent)]
    Submodule(Box<SubmoduleError>),
    /// A name that may not be in a package.
    #[error(transparent)]
    Name(#[from] PathError),
    /// Two names that collide.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A place that has to be a directory is something else.
    #[error("{} is {}, not a directory", shown(path), kind.as_str())]
    NotADirectory {
        /// The full path.
        path: PathBuf,
        /// What it is.
        kind: EntryKind,
    },
    /// Something that no package may hold.
    #[error("`{path}` is {}; a package holds only files, directories and links within it", kind.as_str())]
    Special {
        /// Where it is in the package.
        path: RelPath,
        /// What it is.
        kind: EntryKind,
    },
    /// Two entries of one path, which only a tree of git can have.
    #[error(
        "`{path}` is there more than once in the git tree; commit it again with a git that writes proper trees"
    )]
    Twice {
        /// Where they are in the package.
        path: RelPath,
    },
    /// A link that says more than a path.
    #[error("`{path}` is a link to something of {bytes} bytes; the limit is {limit_bytes}")]
    LongLink {
        /// The link, in the package.
        path: RelPath,
        /// Bytes of what it says.
        bytes: u64,
        /// The most it may say.
        limit_bytes: u64,
    },
    /// A link that cannot become a copy of its target.
    #[error("`{path}` is a link to `{target}`, which {problem}")]
    Link {
        /// The link, in the package.
        path: RelPath,
        /// What it says, escaped.
        target: String,
        /// What is wrong with it.
        problem: LinkProblem,
    },
    /// Too many entries.
    #[error("the package has {entries} entries or more; the limit is {limit}")]
    TooManyEntries {
        /// How many were met when we stopped counting.
        entries: usize,
        /// The most it may have.
        limit: usize,
    },
    /// A file is too large.
    #[error("`{path}` has {bytes} bytes; the limit of one file is {limit_bytes}")]
    FileTooLarge {
        /// The file, in the package.
        path: RelPath,
        /// Its size.
        bytes: u64,
        /// The most it may have.
        limit_bytes: u64,
    },
    /// All files together are too large.
    #[error("the files of the package have {bytes} bytes together; the limit is {limit_bytes}")]
    PackageTooLarge {
        /// Their sum.
        bytes: u64,
        /// The most it may be.
        limit_bytes: u64,
    },
    /// A file was written to while it was read.
    #[error("`{path}` changed while it was read; run the command again when nothing writes to it")]
    ChangedWhileRead {
        /// The file, in the package.
        path: RelPath,
    },
    /// A published `.tree` file is malformed.
    #[error("{} is not a list of files as `vibe publish` writes it", shown(path))]
    TreeFile {
        /// The `.tree` file.
        path: PathBuf,
        /// The line and what is wrong with it; `None` if it is not even text.
        #[source]
        source: Option<TreeError>,
    },
    /// The published files are not those that were published.
    #[error("`{path}` {difference}: the published files were changed after they were published")]
    PublishedDiffers {
        /// The first path that differs.
        path: RelPath,
        /// How.
        difference: TreeDifference,
    },
}

impl From<GitError> for FetchError {
    fn from(error: GitError) -> Self {
        FetchError::Git(Box::new(error))
    }
}

impl From<StoreError> for FetchError {
    fn from(error: StoreError) -> Self {
        match error {
            // The package's fault, not the store's.
            StoreError::Tree(error) => FetchError::Tree(error),
            error => FetchError::Store(Box::new(error)),
        }
    }
}

impl From<SubmoduleError> for FetchError {
    fn from(error: SubmoduleError) -> Self {
        FetchError::Submodule(Box::new(error))
    }
}

/// Why a link cannot become a copy of its target.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LinkProblem {
    /// It begins at the root of the file system.
    Absolute,
    /// It leads out of the package.
    Leaves,
    /// There is nothing where it points.
    Dangles,
    /// It leads to itself, or to a directory that it lies in.
    Loops,
    /// Its target is there, but does not ship.
    NotShipped,
}

impl fmt::Display for LinkProblem {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            LinkProblem::Absolute => "is absolute; only a relative link within it can be installed",
            LinkProblem::Leaves => "leaves the package; only a link within it can be installed",
            LinkProblem::Dangles => "does not exist",
            LinkProblem::Loops => "leads back to the link itself",
            LinkProblem::NotShipped => "is ignored and so not part of the package",
        })
    }
}

/// How a path differs from the published list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TreeDifference {
    /// Listed, but there is no such file.
    Missing,
    /// There, but not listed.
    Unlisted,
    /// Other bytes than listed.
    Content,
}

impl fmt::Display for TreeDifference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            TreeDifference::Missing => "is in the package's `.tree` file but absent",
            TreeDifference::Unlisted => "is not in the package's `.tree` file",
            TreeDifference::Content => "has other content than the package's `.tree` file says",
        })
    }
}
