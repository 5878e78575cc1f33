//! Where packages come from: directory registries, and the trees of published packages, path
//! sources and git commits. Reads, judges and stores; places nothing.

mod collect;
mod contents;
#[cfg(unix)]
#[cfg(test)]
mod equal_sources;
pub mod error;
pub mod git_tree;
mod ignore_file;
mod large_files;
pub mod links;
pub mod listing;
pub mod note;
pub mod publication;
pub mod registry;
mod scan;
pub mod submodules;
pub mod survey;
#[cfg(unix)]
#[cfg(test)]
mod testing;

pub use collect::SourceKind;
pub use contents::{Contents, apply_published_modes, check_published, hash_listing, stage_listing};
pub use error::{FetchError, LinkProblem, TreeDifference};
pub use git_tree::{
    FoundSubmodule, GitPackage, SubmoduleFailure, SubmoduleSource, list_clone, list_git,
};
pub use listing::{FileContent, ListedFile, Listing, list};
pub use note::ListingNote;
pub use publication::{Publication, PublishError, Published, publish, published};
pub use registry::DirectoryRegistry;
pub use submodules::{RowRule, SubmoduleError};
pub use survey::{Survey, survey};
