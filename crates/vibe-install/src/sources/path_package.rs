//! Packages whose source is a directory of the user's.

use std::path::{Path, PathBuf};
use std::rc::Rc;

use vibe_core::Version;
use vibe_core::formats::manifest::{MANIFEST_NAME, Manifest};

use super::claim::Required;
use crate::error::InstallError;
use crate::manifests::read_manifest_text;
use crate::project::Project;
use crate::workspace::{Scope, fill_in};

/// A package whose source is a directory of the user's.
#[derive(Debug, Clone)]
pub(crate) struct PathPackage {
    /// The path as the lock writes it: relative to the root unless stated as absolute.
    pub path: String,
    /// The directory.
    pub directory: PathBuf,
    /// Its manifest.
    pub manifest: Rc<Manifest>,
    /// Its version.
    pub version: Version,
}

pub(super) fn read_path_package(
    project: &Project,
    required: &Required<'_>,
    path: String,
    directory: PathBuf,
) -> Result<PathPackage, InstallError> {
    let mut own = project.manifests.iter();
    let own = own.find(|own| own.directory(&project.root) == directory);
    let manifest = match own {
        Some(own) => own.manifest.clone(),
        None => read_outside(&directory)?,
    };
    let Some(package) = &manifest.package else {
        return Err(InstallError::NotAPackage {
            id: required.id.clone(),
            path: directory,
        });
    };
    if package.id != *required.id {
        return Err(InstallError::OtherPackage {
            path: directory,
            expected: required.id.to_string(),
            found: package.id.to_string(),
        });
    }
    let version = package.version.clone();
    Ok(PathPackage {
        path,
        directory,
        manifest: Rc::new(manifest),
        version,
    })
}

/// Reads the manifest of the package in `directory`, which is no member of the workspace: the only
/// versions that it can name are its own.
fn read_outside(directory: &Path) -> Result<Manifest, InstallError> {
    let (mut manifest, text) = read_manifest_text(directory)?;
    let scopes: Vec<Scope> = Scope::of(&manifest).into_iter().collect();
    fill_in(
        &directory.join(MANIFEST_NAME),
        &text,
        &mut manifest,
        &scopes,
    )?;
    Ok(manifest)
}
