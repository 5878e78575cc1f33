//! The registries that a project names: directories, and organisations of git repositories.

use std::path::{Path, PathBuf};

use vibe_core::formats::lock::LockedSource;
use vibe_core::{Constraint, PackageId, RemoteUrl, Version};
use vibe_fetch::DirectoryRegistry;

use super::Location;
use crate::error::InstallError;
use crate::git_sources::GitSources;
use crate::project::Project;
use crate::target::{GitOrigin, Origin};
use crate::unsolved::PassedOver;

#[derive(Debug)]
pub(super) struct NamedRegistry {
    pub name: String,
    pub url: String,
    pub kind: RegistryKind,
}

#[derive(Debug)]
pub(super) enum RegistryKind {
    /// A directory.
    Directory(DirectoryRegistry),
    /// The address of an organisation, with one repository a package.
    Git,
}

impl NamedRegistry {
    /// The repository of `id` in this git registry.
    pub(super) fn repository(&self, id: &PackageId) -> Result<Option<RemoteUrl>, InstallError> {
        RemoteUrl::in_registry(&self.url, id).map_err(|source| InstallError::RegistryUrl {
            name: self.name.clone(),
            source,
        })
    }

    pub(super) fn versions(
        &self,
        id: &PackageId,
        git: &GitSources<'_>,
    ) -> Result<Vec<Version>, InstallError> {
        match (&self.kind, self.repository(id)?) {
            (RegistryKind::Git, Some(url)) => git.published_versions(id, &url),
            (RegistryKind::Git, None) => Ok(Vec::new()),
            (RegistryKind::Directory(directory), _) => {
                directory
                    .versions(id)
                    .map_err(|source| InstallError::Registry {
                        name: self.name.clone(),
                        source,
                    })
            }
        }
    }

    pub(super) fn locate(
        &self,
        id: &PackageId,
        version: &Version,
        git: &GitSources<'_>,
    ) -> Result<Location, InstallError> {
        match (&self.kind, self.repository(id)?) {
            (RegistryKind::Directory(directory), _) => Ok(Location {
                source: LockedSource::Directory(self.url.clone()),
                origin: Origin::Registry {
                    root: directory.root().to_path_buf(),
                    directory: directory.directory(id, version),
                },
            }),
            (RegistryKind::Git, Some(url)) => {
                Ok(git_location(git.locate_published(id, version, url)?))
            }
            (RegistryKind::Git, None) => Err(InstallError::NotInRegistries {
                id: id.clone(),
                version: version.clone(),
            }),
        }
    }
}

impl NamedRegistry {
    /// What it has of `id` as `constraint` asks for it. Only directories are looked at.
    pub(super) fn passed_over(
        &self,
        id: &PackageId,
        constraint: &Constraint,
    ) -> Option<PassedOver> {
        let RegistryKind::Directory(directory) = &self.kind else {
            return None;
        };
        let versions = directory.versions(id).ok()?.into_iter();
        let version = versions
            .filter(|version| constraint.matches(version))
            .max()?;
        Some(PassedOver {
            registry: self.name.clone(),
            version,
        })
    }
}

pub(super) fn git_location(origin: GitOrigin) -> Location {
    Location {
        source: LockedSource::Git(origin.url.clone()),
        origin: Origin::Git(origin),
    }
}

pub(super) fn open_registries(project: &Project) -> Result<Vec<NamedRegistry>, InstallError> {
    project
        .manifest()
        .registries
        .iter()
        .map(|registry| {
            let kind = match registry_directory(&project.root, &registry.url) {
                Some(directory) => RegistryKind::Directory(DirectoryRegistry::new(directory)),
                None => RegistryKind::Git,
            };
            Ok(NamedRegistry {
                name: registry.name.clone(),
                url: registry.url.clone(),
                kind,
            })
        })
        .collect()
}

/// The directory that a registry's `url` names; `None` for the address of a git organisation.
pub(crate) fn registry_directory(root: &Path, url: &str) -> Option<PathBuf> {
    let is_directory = RemoteUrl::parse(url).is_ok_and(|found| found.is_local());
    (is_directory && !url.contains("://")).then(|| root.join(url))
}
