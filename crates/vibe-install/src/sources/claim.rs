//! Where the user's own manifests take a package from, and whether two of them agree.

use std::path::{Path, PathBuf};

use vibe_core::PackageId;
use vibe_core::formats::manifest::{Dependency, DependencySource, Materialization};
use vibe_core::text::escape;

use crate::error::InstallError;
use crate::git_sources::GitRequirement;

/// A requirement with the manifest that states it.
pub(super) struct Required<'a> {
    pub manifest_path: &'a Path,
    pub id: &'a PackageId,
    pub dependency: &'a Dependency,
}

/// Where one of the user's own manifests takes a package from.
#[derive(Debug, Clone)]
pub(super) struct Claim {
    pub source: ClaimedSource,
    pub manifest: PathBuf,
}

/// A source as it can be compared with another one.
#[derive(Debug, Clone)]
pub(super) enum ClaimedSource {
    /// The registry of this name, or the first that knows the package.
    Registry(Option<String>),
    /// A directory.
    Path {
        /// Canonical.
        directory: PathBuf,
        /// As the lock writes it.
        text: String,
    },
    /// A repository.
    Git(GitRequirement),
}

impl ClaimedSource {
    /// Whether a package can come from both at once.
    pub(super) fn agrees_with(&self, other: &ClaimedSource) -> bool {
        match (self, other) {
            (Self::Registry(Some(one)), Self::Registry(Some(other))) => one == other,
            (Self::Registry(_), Self::Registry(_)) => true,
            (
                Self::Path { directory, .. },
                Self::Path {
                    directory: other, ..
                },
            ) => directory == other,
            (Self::Git(one), Self::Git(other)) => one == other,
            _ => false,
        }
    }

    /// For a message.
    pub(super) fn shown(&self) -> String {
        match self {
            Self::Registry(None) => "a registry".to_owned(),
            Self::Registry(Some(name)) => format!("the registry `{name}`"),
            Self::Path { text, .. } => format!("path {}", escape(text)),
            Self::Git(requirement) => requirement.shown(),
        }
    }
}

impl Claim {
    /// For a message.
    pub(super) fn shown(&self) -> String {
        let manifest = vibe_fs::error::shown(&self.manifest);
        format!("{}, by {manifest}", self.source.shown())
    }
}

pub(super) fn two_sources(id: &PackageId, first: String, second: String) -> InstallError {
    InstallError::TwoSources {
        id: id.clone(),
        first,
        second,
    }
}

/// What `required` asks of a repository, with a local one as the root sees it; `base` is how the
/// root sees the directory of the manifest that asks.
pub(super) fn git_requirement(
    base: &str,
    required: &Required<'_>,
) -> Result<Option<GitRequirement>, InstallError> {
    let DependencySource::Git {
        url,
        reference,
        subdir,
    } = &required.dependency.source
    else {
        return Ok(None);
    };
    let is_relative = url.is_local() && !url.as_str().contains("://");
    let url = match is_relative {
        true => join_stated(base, url.path())
            .parse()
            .map_err(|source| InstallError::GitUrl {
                id: Some(required.id.clone()),
                source,
            })?,
        false => url.clone(),
    };
    Ok(Some(GitRequirement {
        url,
        reference: reference.clone(),
        subdir: subdir.clone(),
    }))
}

/// Refuses, by name, what this version of vibe does not install yet.
pub(super) fn refuse_unsupported(required: &Required<'_>) -> Result<(), InstallError> {
    let dependency = required.dependency;
    let foreign = dependency.items.is_some()
        || dependency.alias.is_some()
        || dependency.install_hook.is_some()
        || dependency.uninstall_hook.is_some();
    let what = match &dependency.source {
        _ if foreign => "foreign dependency",
        _ if dependency.materialization == Some(Materialization::InPlace) => "in-place dependency",
        DependencySource::Registry { .. }
        | DependencySource::Path { .. }
        | DependencySource::Git { .. }
        | DependencySource::Variable { .. } => return Ok(()),
    };
    Err(InstallError::NotYet {
        what: format!("the {what} {}", required.id),
        path: required.manifest_path.to_path_buf(),
    })
}

/// `stated` as seen from the root, where `base` is how the root sees the directory of the manifest
/// that states it. Forward slashes; `..` is taken off by name, so links on the way change nothing
/// and every machine writes the same.
pub(super) fn join_stated(base: &str, stated: &str) -> String {
    let stated = stated.replace('\\', "/");
    let is_absolute = Path::new(&stated).is_absolute();
    let whole = if is_absolute || base.is_empty() {
        stated
    } else {
        format!("{base}/{stated}")
    };
    let mut parts: Vec<&str> = Vec::new();
    for part in whole.split('/') {
        match part {
            "" | "." => {}
            ".." if parts.last().is_some_and(|last| *last != "..") => {
                parts.pop();
            }
            _ => parts.push(part),
        }
    }
    let root = if whole.starts_with('/') { "/" } else { "" };
    match parts.is_empty() && root.is_empty() {
        true => ".".to_owned(),
        false => format!("{root}{}", parts.join("/")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stated_paths_are_written_as_the_root_sees_them() {
        for (base, stated, expected) in [
            ("", "../local/", "../local"),
            ("", "./a/./b", "a/b"),
            ("", ".", "."),
            ("../local", "../other", "../other"),
            ("..", "../x", "../../x"),
            ("packages/a", "../b", "packages/b"),
            ("packages/a", "/abs/b", "/abs/b"),
            ("/abs/a", "../b", "/abs/b"),
            ("", "..\\local", "../local"),
        ] {
            assert_eq!(join_stated(base, stated), expected, "{base} + {stated}");
        }
    }
}
