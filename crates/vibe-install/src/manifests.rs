//! Manifests as they lie on disk, and what a solver takes from one.

use std::path::Path;

use vibe_core::formats::decode::decode;
use vibe_core::formats::manifest::{
    Dependency, DependencySource, GitReference, MANIFEST_NAME, Manifest, Package, Reading,
};
use vibe_core::formats::record::SlotRecord;
use vibe_core::limits::MANIFEST_BYTES;
use vibe_core::{Constraint, PackageId, RelPath, Sha256Digest, SlotName};
use vibe_fs::{read_bounded, read_if_exists};
use vibe_slot::Layout;

use crate::error::InstallError;

/// Parses the bytes of the manifest `path`; also gives its text.
pub(crate) fn parse_manifest(
    path: &Path,
    bytes: &[u8],
    reading: Reading,
) -> Result<(Manifest, String), InstallError> {
    let refused = |diagnostic| InstallError::Manifest {
        path: path.to_path_buf(),
        diagnostic: Box::new(diagnostic),
    };
    let text = decode(bytes).map_err(refused)?;
    let manifest = Manifest::parse(&text, reading).map_err(refused)?;
    Ok((manifest, text))
}

/// Reads the manifest of the package in `directory`.
pub(crate) fn read_manifest(directory: &Path) -> Result<Manifest, InstallError> {
    read_manifest_text(directory).map(|(manifest, _)| manifest)
}

pub(crate) fn read_manifest_text(directory: &Path) -> Result<(Manifest, String), InstallError> {
    let path = directory.join(MANIFEST_NAME);
    let bytes = read_if_exists(&path, MANIFEST_BYTES)
        .map_err(|source| InstallError::ReadManifest { source })?
        .ok_or_else(|| InstallError::NoPackageManifest {
            path: directory.to_path_buf(),
        })?;
    parse_manifest(&path, &bytes, Reading::Package)
}

/// What the manifest in `slot` says of its package, where that manifest has the bytes that `record`
/// gives it.
pub(crate) fn vouched(
    layout: &Layout,
    slot: &SlotName,
    record: &SlotRecord,
) -> Result<Option<Package>, InstallError> {
    let manifest = vouched_manifest(layout, slot, record)?;
    Ok(manifest.and_then(|manifest| manifest.package))
}

/// The manifest in `slot`, where it has the bytes that `record` gives it.
pub(crate) fn vouched_manifest(
    layout: &Layout,
    slot: &SlotName,
    record: &SlotRecord,
) -> Result<Option<Manifest>, InstallError> {
    let path = layout.slot(slot).join(MANIFEST_NAME);
    let name = RelPath::new(MANIFEST_NAME).expect("the manifest's name is a path");
    let Ok(bytes) = read_bounded(&path, MANIFEST_BYTES) else {
        return Ok(None);
    };
    let published = record.tree.get(&name).map(|row| row.digest);
    if published != Some(Sha256Digest::of(&bytes)) {
        return Ok(None);
    }
    let (manifest, _) = parse_manifest(&path, &bytes, Reading::Package)?;
    Ok(Some(manifest))
}

/// The versions that a requirement takes, where it says so.
pub(crate) fn constraint_of(dependency: &Dependency) -> Option<Constraint> {
    match &dependency.source {
        DependencySource::Registry { constraint, .. } => Some(constraint.clone()),
        DependencySource::Path { constraint, .. } => constraint.clone(),
        DependencySource::Git {
            reference: GitReference::Range(constraint),
            ..
        } => Some(constraint.clone()),
        DependencySource::Git { .. } | DependencySource::Variable { .. } => None,
    }
}

/// `[conflicts]` as the solver looks at it.
pub(crate) fn conflicts(manifest: &Manifest) -> Vec<(PackageId, Constraint)> {
    manifest
        .conflicts
        .iter()
        .map(|conflict| (conflict.package.clone(), conflict.constraint.clone()))
        .collect()
}
