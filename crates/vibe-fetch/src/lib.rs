//! Where packages come from: directory registries, and the trees of published packages and path
//! sources. Reads and judges; places nothing.

pub mod error;
mod ignore_file;
pub mod links;
pub mod listing;
pub mod registry;
mod scan;
pub mod tree;

pub use error::{FetchError, LinkProblem, TreeDifference};
pub use listing::{ListedFile, Listing, list};
pub use registry::DirectoryRegistry;
pub use scan::{ListingNote, SourceKind};
pub use tree::{apply_published_bits, apply_published_tree, hash_listing, stage_listing};
