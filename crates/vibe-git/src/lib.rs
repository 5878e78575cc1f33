//! Everything that speaks git: objects and remotes through gix, and the one place that starts the
//! git program on a work tree. No other crate sees a type of gix.

mod cache;
mod child;
mod connect;
mod control;
mod credentials;
mod database;
mod error;
mod gitmodules;
mod http;
mod object;
mod program;
mod refs;
mod remote;
mod repository;
mod ssh;
mod status;
#[cfg(test)]
mod testing;
mod transfer;
mod watch;
mod work_tree;

pub use cache::{CacheError, CacheRemoval, CachedRepository, GitCache, RemovedRepositories};
pub use database::{Database, TreeLimits};
pub use error::{Cause, GitError};
pub use gitmodules::{SubmoduleRow, read_gitmodules};
pub use object::{BlobId, CommitId, EntryKind, ObjectIdError, TreeEntry};
pub use program::{GIT_TIMEOUT, GitProgram, ProgramError};
pub use refs::{Refs, Wanted};
pub use remote::{RemoteOptions, Remotes};
pub use status::{Differences, STATUS_PATHS, Status};
pub use work_tree::{Checkout, Submodule, WorkTree, WorkTreeError};
