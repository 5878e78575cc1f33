//! The file formats: text to value and value to text, each with its rules and its stable bytes.

mod clone_state;
pub mod config;
pub mod decode;
pub mod diagnostic;
mod hook_state;
pub mod lock;
pub mod manifest;
pub mod manifest_edit;
pub mod manifest_removal;
pub mod projections;
pub(crate) mod reader;
pub mod record;
pub mod state;
mod typed;
