//! What can go wrong in the store, and what damage looks like.

use std::fmt;
use std::path::PathBuf;

use vibe_core::tree::TreeError;
use vibe_core::{RelPath, TreeId};
use vibe_fs::error::shown;
use vibe_fs::{CopyError, EntryKind, FsError, ParentError, ReadError, RemoveError};

use crate::listing::ListingError;

/// Why the store did not do what was asked.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file call failed.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// A file could not be written or hashed.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// A file of the store's own could not be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The directories above a file could not be made.
    #[error(transparent)]
    Parents(#[from] ParentError),
    /// Something could not be removed whole.
    #[error(transparent)]
    Remove(#[from] RemoveError),
    /// The files added are no tree.
    #[error(transparent)]
    Tree(#[from] TreeError),
    /// A path that the tree does not have.
    #[error("{tree} has no file `{path}`")]
    NotInTree {
        /// The tree.
        tree: TreeId,
        /// The path that was asked for.
        path: RelPath,
    },
    /// A damaged tree was met while it was in use; it is in quarantine now.
    #[error(
        "{tree} in the store is damaged: {damage}; it was moved out of use: \
         run the command again to fetch it anew"
    )]
    Damaged {
        /// The tree.
        tree: TreeId,
        /// What is wrong with it.
        damage: Damage,
    },
    /// A damaged tree that cannot be moved to quarantine.
    #[error(
        "{tree} in the store is damaged: {damage}; it cannot be moved out of use: \
         remove {} to have it fetched again",
        shown(directory)
    )]
    DamagedForGood {
        /// The tree.
        tree: TreeId,
        /// What is wrong with it.
        damage: Damage,
        /// Where it lies.
        directory: PathBuf,
        /// Why it cannot be moved.
        #[source]
        source: FsError,
    },
    /// A tree that was there is there no more.
    #[error("{tree} was removed from the store meanwhile; run the command again to fetch it anew")]
    Gone {
        /// The tree.
        tree: TreeId,
    },
    /// What lies where a tree belongs comes back as often as it is moved away.
    #[error(
        "{} cannot be replaced by a new tree; remove it and run the command again",
        shown(path)
    )]
    Obstructed {
        /// The place of the tree.
        path: PathBuf,
    },
    /// Another run has held a lock for longer than it can need it.
    #[error(
        "{} has been held for {seconds} s by another run{holder}; wait for it or end it, \
         then run the command again",
        shown(path)
    )]
    Busy {
        /// The lock file.
        path: PathBuf,
        /// How long we waited.
        seconds: u64,
        /// ` (process 41, vibe cache gc)`, where it is known.
        holder: String,
    },
    /// The store is in use and was to be removed.
    #[error("another run uses the store {}", shown(root))]
    InUse {
        /// The root of the store.
        root: PathBuf,
    },
    /// Something that is not ours lies in what was to be removed.
    #[error(
        "{} is not part of a store, so nothing was removed; move it away, \
         or check that this is the place meant",
        shown(path)
    )]
    NotAStore {
        /// What lies there.
        path: PathBuf,
    },
}

impl StoreError {
    /// Whether the tree is merely not there any more, so that fetching it again helps.
    pub fn is_lost_tree(&self) -> bool {
        matches!(self, StoreError::Damaged { .. } | StoreError::Gone { .. })
    }
}

/// What is wrong with a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Damage {
    /// Its listing cannot be used.
    Listing(ListingError),
    /// These files are not as listed; at least one.
    Files(Vec<DamagedFile>),
}

impl fmt::Display for Damage {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Damage::Listing(error) => write!(out, "its listing {error}"),
            Damage::Files(files) => match files.as_slice() {
                [] => out.write_str("its files are not as listed"),
                [only] => only.fmt(out),
                [first, rest @ ..] => write!(out, "{first}, and {} more", rest.len()),
            },
        }
    }
}

/// A file that is not as listed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedFile {
    /// Where it lies in the tree.
    pub path: RelPath,
    /// What is wrong with it.
    pub fault: Fault,
}

impl fmt::Display for DamagedFile {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "`{}` {}", self.path, self.fault)
    }
}

/// What is wrong with a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Fault {
    /// It is absent.
    Missing,
    /// It is something else.
    NotAFile(EntryKind),
    /// It has another size or digest.
    Content,
    /// It may be executed and should not, or the other way round.
    Exec,
    /// It could not be read, which may pass; a tree is not moved away for that.
    Unreadable(String),
}

impl fmt::Display for Fault {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Fault::Missing => out.write_str("is missing"),
            Fault::NotAFile(kind) => write!(out, "is {}, not a file", kind.as_str()),
            Fault::Content => out.write_str("has other content"),
            Fault::Exec => out.write_str("has another exec bit"),
            Fault::Unreadable(cause) => write!(out, "could not be read: {cause}"),
        }
    }
}

/// A tree that was found damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DamagedTree {
    /// The tree.
    pub tree: TreeId,
    /// What is wrong with it.
    pub damage: Damage,
    /// Whether it was moved away, so that it is fetched again. It stays where the store cannot be
    /// written, and where a file merely could not be read.
    pub quarantined: bool,
}
