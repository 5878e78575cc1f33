//! What tests build upon: a world of its own for each test (home, project, registry), packages
//! written in one line, and snapshots of a directory that can be compared.
//!
//! A helper that cannot do its work panics and names the path: the test has failed.
#![expect(
    clippy::panic,
    reason = "dev only: a test that cannot build its world has failed"
)]

mod package;
mod snapshot;
mod world;

pub use package::PackageBuilder;
pub use snapshot::{EntryKind, SnapshotEntry, TreeSnapshot};
pub use world::World;

use std::path::Path;

/// The value of `result`, or a panic that says what was being done to which path.
fn done<T, E: std::fmt::Display>(doing: &str, path: &Path, result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{doing} {}: {error}", path.display()),
    }
}

/// Writes `bytes` to `path` and makes the directories above it.
fn write_file(path: &Path, bytes: &[u8]) {
    if let Some(parent) = path.parent() {
        done("creating", parent, std::fs::create_dir_all(parent));
    }
    done("writing", path, std::fs::write(path, bytes));
}
