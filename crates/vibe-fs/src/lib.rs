//! Every raw file call: bounded reads, atomic replacement, locks, copies, walks and guarded removal.
//!
//! Knows paths inside a package and digests; knows no packages and no formats. An existing file is
//! never opened for writing (the lock file alone excepted), and a link is never followed.

pub mod atomic;
pub mod clone;
pub mod copy;
pub mod directory;
pub mod error;
pub mod guard;
pub mod link;
pub mod lock;
mod open;
pub mod owner;
pub mod read;
pub mod remove;
pub mod rename;
pub mod stat;
pub mod system;
#[cfg(test)]
mod testing;
pub mod trial;
pub mod walk;

pub use atomic::{Durability, create_new_file, replace_atomic, write_atomic};
pub use clone::{CloneMethod, clone_file, copy_file};
pub use copy::{
    CopyError, HashedFile, WrittenFile, copy_file_hashed, copy_hashed, copy_sealed, hash_file,
    hash_file_watched, open_regular, seal_again, sealed_stat_of,
};
pub use directory::{grant_owner, remove_empty_directory};
pub use error::FsError;
pub use guard::{Guard, ParentError, create_parents, path_guard};
pub use link::{LinkError, hard_link};
pub use lock::{FileLock, Holder, LockOutcome, read_holder, wait_for_lock};
pub use owner::may_be_planted;
pub use read::{ReadError, read_bounded, read_if_exists, read_with_stat};
pub use remove::{RemoveError, remove_empty_directories_up, remove_file_if, remove_tree};
pub use rename::{free_kept_name, rename_over};
pub use stat::{EntryKind, Stat, stat_of, stat_of_open};
pub use system::{
    boot_id, canonical_directory, create_directory, create_directory_all, fits, may_write,
    path_limit, sync_directory, touch,
};
pub use trial::{LinkKinds, is_same_file_system, try_links};
pub use walk::{RawEntry, bytes_below, list_dir, read_link, walk};
