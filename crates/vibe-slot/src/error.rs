//! What can go wrong with a slot.

use vibe_core::formats::state::StateError;
use vibe_core::{RelPath, SlotName, TreeId};
use vibe_fs::{CopyError, FsError, ParentError, ReadError, RemoveError};
use vibe_store::{Damage, StoreError};

use crate::source::PayloadError;

/// Why work on a slot, or on a file in `vibedeps/`, stopped.
#[derive(Debug, thiserror::Error)]
pub enum SlotError {
    /// A file system call failed.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// A file could not be read whole.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// A file could not be copied or hashed.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// A tree could not be removed whole.
    #[error(transparent)]
    Remove(#[from] RemoveError),
    /// A clone could not be worked on.
    #[error(transparent)]
    Clone(#[from] vibe_git::WorkTreeError),
    /// The directories above a file could not be made.
    #[error(transparent)]
    Parents(#[from] ParentError),
    /// A directory that is ours is a link.
    #[error(
        "`{path}` is a link to `{target}`, and vibe does not write through links; \
         replace it by a directory, or remove it"
    )]
    Link {
        /// The link, escaped.
        path: String,
        /// What it points to, escaped.
        target: String,
    },
    /// A directory that is ours is something else.
    #[error("`{path}` is no directory; move it away and run the command again")]
    NotADirectory {
        /// The entry, escaped.
        path: String,
    },
    /// A slot that should be new is there.
    #[error("`{slot}` is already there, and a new slot replaces nothing; run the command again")]
    Exists {
        /// The slot.
        slot: Box<SlotName>,
    },
    /// Where a package belongs is something else.
    #[error(
        "`vibedeps/{path}` is not as vibe placed it, and lies where {} belongs; move it \
         away and run the command again",
        slot.package()
    )]
    Occupied {
        /// The slot.
        slot: Box<SlotName>,
        /// What lies there, from `vibedeps/`, escaped.
        path: String,
    },
    /// A file of the package could not be read.
    #[error("cannot read `{path}` of the package that belongs in `{slot}`")]
    Source {
        /// The slot.
        slot: Box<SlotName>,
        /// The file.
        path: RelPath,
        /// Why.
        #[source]
        source: Box<PayloadError>,
    },
    /// A file of the package has other bytes than when its package was read.
    #[error(
        "`{path}` of the package that belongs in `{slot}` changed while it was installed; \
         run the command again"
    )]
    Changed {
        /// The slot.
        slot: Box<SlotName>,
        /// The file.
        path: RelPath,
    },
    /// The package at hand is another than the planned one.
    #[error("`{slot}` should get {planned}, but the package at hand is {found}")]
    OtherTree {
        /// The slot.
        slot: Box<SlotName>,
        /// The planned tree.
        planned: TreeId,
        /// The tree at hand.
        found: TreeId,
    },
    /// The disk is not as the plan saw it, or the plan would go through a link.
    #[error("cannot {doing} `{path}` in `{slot}`: {found}; run the command again")]
    Unplanned {
        /// The slot.
        slot: Box<SlotName>,
        /// What the plan asks for.
        doing: &'static str,
        /// Where.
        path: RelPath,
        /// What is there.
        found: String,
    },
    /// The machine state cannot be used.
    #[error(
        "cannot use `{path}`, which says what this machine knows of its slots; \
         if you remove it, every package is checked and its install hooks are owed again"
    )]
    State {
        /// The file, escaped.
        path: String,
        /// Why.
        #[source]
        source: Box<StateError>,
    },
    /// A run wants to switch a file that no run switches.
    #[error("`{path}` is no file that a run may write")]
    Forbidden {
        /// The file, relative to the project.
        path: RelPath,
    },
    /// A file of ours has a form that a newer vibe writes.
    #[error("`{path}` was written by a newer vibe (form {found}); use that one")]
    Newer {
        /// The file, escaped.
        path: String,
        /// The number found.
        found: u64,
    },
}

impl SlotError {
    /// Whether the store lost the tree while it was used, so that fetching it again helps.
    pub fn is_lost_tree(&self) -> bool {
        self.store_error().is_some_and(StoreError::is_lost_tree)
    }

    /// What is wrong with the stored tree, if that is why.
    pub fn damage(&self) -> Option<&Damage> {
        match self.store_error()? {
            StoreError::Damaged { damage, .. } => Some(damage),
            _ => None,
        }
    }

    fn store_error(&self) -> Option<&StoreError> {
        match self {
            SlotError::Source { source, .. } => match &**source {
                PayloadError::Store(error) => Some(error),
                _ => None,
            },
            _ => None,
        }
    }
}
