//! From payload source to slot: records, machine state, the owned diff as it is executed, undo,
//! the scan after an install hook, the redo file and the file that makes a no-op cheap.
//!
//! Nothing is decided here: plans come from `vibe-plan`, and every function reports what it did.

mod access;
mod clock;
pub mod error;
pub mod examine;
pub mod fresh;
pub mod hook_scan;
pub mod in_place;
pub mod layout;
pub mod materialize;
pub mod place;
#[cfg(test)]
mod properties;
pub mod record;
pub mod redo;
pub mod remove;
pub mod source;
pub mod state_file;
#[cfg(test)]
mod testing;
pub mod undo;

pub use error::SlotError;
pub use layout::Layout;
pub use source::{DirectoryPayload, PayloadError, PayloadSource, Proof};
