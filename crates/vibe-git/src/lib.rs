//! Everything that speaks git: objects and remotes through gix, and the one place that starts the
//! git program. No other crate sees a type of gix.

mod child;
mod connect;
mod credentials;
mod database;
mod error;
mod gitmodules;
mod http;
mod object;
mod refs;
mod remote;
mod ssh;
#[cfg(test)]
mod testing;
mod transfer;
mod watch;

pub use database::{Database, TreeLimits};
pub use error::{Cause, GitError};
pub use gitmodules::{SubmoduleRow, read_gitmodules};
pub use object::{BlobId, CommitId, EntryKind, ObjectIdError, TreeEntry};
pub use refs::{Refs, Wanted};
pub use remote::{RemoteOptions, Remotes};
