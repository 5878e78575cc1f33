//! `.vibe-slot.toml`: what we placed in a slot, file by file.
//!
//! A record can come from anywhere (it is committed), so it is held to the rules of a package: its
//! rows name places inside the slot, sorted, once each, never the record itself, and they hash to
//! the tree it states. A record that breaks a rule is an error, never a licence to delete.

use crate::identifier::PackageId;
use crate::tree::Tree;
use crate::version::Version;

/// The schema number written.
pub const RECORD_SCHEMA: u64 = 2;

/// A slot record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotRecord {
    /// `package`.
    pub package: PackageId,
    /// `version`.
    pub version: Version,
    /// The `[[file]]` rows, as published; `tree` is their identity.
    pub tree: Tree,
}
