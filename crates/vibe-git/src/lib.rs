//! Everything that speaks git: objects and remotes through gix, and the one place that starts the
//! git program. No other crate sees a type of gix.

mod database;
mod error;
mod object;
mod refs;
#[cfg(test)]
mod testing;

pub use database::{Database, TreeLimits};
pub use error::{Cause, GitError};
pub use object::{BlobId, CommitId, EntryKind, ObjectIdError, TreeEntry};
pub use refs::{Refs, Wanted};
