//! Why a package was not published.

use std::path::PathBuf;

use vibe_core::text::escape;
use vibe_core::{PackageId, Version};
use vibe_fetch::PublishError;
use vibe_fs::error::shown;

/// Why a package was not published.
#[derive(Debug, thiserror::Error)]
pub enum PublishingError {
    /// No manifest names the registry.
    #[error(
        "no `[[registry]]` is named `{}` in {}, above it, or in this project",
        escape(name),
        shown(path)
    )]
    UnknownRegistry {
        /// The package's manifest.
        path: PathBuf,
        /// What was asked for.
        name: String,
        /// The registries that are named there.
        known: Vec<String>,
    },
    /// The package does not want to be published there.
    #[error(
        "{id} may not be published to `{}`, by its own `publish`",
        escape(registry)
    )]
    Forbidden {
        /// The package.
        id: PackageId,
        /// The registry.
        registry: String,
        /// The registries that it names.
        allowed: Vec<String>,
    },
    /// A git registry is not written to by vibe.
    #[error(
        "`{}` is a git registry: publishing there is a tag and a push",
        escape(registry)
    )]
    GitRegistry {
        /// The registry.
        registry: String,
        /// The version that would be published.
        version: Version,
        /// The repository of the package in it.
        repository: Option<String>,
        /// The package's directory.
        directory: PathBuf,
    },
    /// The registry would ship with the package.
    #[error(
        "the registry {} lies in the package {}",
        shown(registry),
        shown(package)
    )]
    InPackage {
        /// The registry's directory.
        registry: PathBuf,
        /// The package's.
        package: PathBuf,
    },
    /// A check found errors in what was to be published.
    #[error("{id} {version} is not published, because a check found errors in it")]
    CheckFailed {
        /// The package.
        id: PackageId,
        /// Its version.
        version: Version,
        /// Its directory.
        directory: PathBuf,
        /// Each error in one line.
        errors: Vec<String>,
    },
    /// The registry did not take the package.
    #[error("{id} {version} cannot be published to `{}`", escape(registry))]
    Registry {
        /// The package.
        id: PackageId,
        /// Its version.
        version: Version,
        /// The registry.
        registry: String,
        /// The registry's directory.
        directory: PathBuf,
        /// Why.
        source: PublishError,
    },
}
