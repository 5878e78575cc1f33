//! What lies in a slot's directory, as the planner sees it.

use std::collections::{BTreeMap, BTreeSet};

use crate::digest::Sha256Digest;
use crate::relative_path::RelPath;

/// Everything found in a slot, the record apart. Links are not followed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SlotContents {
    /// Every entry, directories included. A file has a digest if it was asked for.
    pub entries: BTreeMap<RelPath, DiskEntry>,
    /// The made paths of the slot's state whose listing is as remembered.
    pub unchanged_made: BTreeSet<RelPath>,
    /// Entries whose names cannot be paths of a package, escaped; they are never touched.
    pub unnamed: Vec<String>,
}

/// One entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskEntry {
    /// A regular file.
    File {
        /// Its content's digest, where it was asked for.
        digest: Option<Sha256Digest>,
        /// Whether its owner may execute it.
        exec: bool,
    },
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A pipe, socket or device.
    Other,
}
