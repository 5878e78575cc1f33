//! The words of vibe as types: identifiers, versions, digests, paths inside a package, the file
//! formats (text to value and back), plans, events and the few ports the pure crates look through.
//!
//! Nothing here touches a file, a process, the environment, the network or a clock.

pub mod cancel;
pub mod contents;
pub mod digest;
pub mod event;
pub mod formats;
pub mod git_url;
pub mod hook;
pub mod identifier;
pub mod index;
pub mod limits;
pub mod member_pattern;
pub mod plan;
pub mod relative_path;
pub mod specifier;
mod string_serde;
pub mod text;
pub mod tree;
pub mod version;

pub use cancel::Cancellation;
pub use digest::{Sha256Digest, Sha256Hasher};
pub use event::{Event, Observer};
pub use git_url::RemoteUrl;
pub use identifier::{Group, Name, PackageId, SlotName};
pub use index::{Index, Requirements};
pub use member_pattern::MemberPattern;
pub use relative_path::RelPath;
pub use tree::{Tree, TreeId, TreeRow};
pub use version::{Constraint, Version};
