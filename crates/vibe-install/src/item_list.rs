//! `vibe list --items`: the items of the installed packages. Whether an agent program sees them is
//! not said here.

use std::path::Path;

use serde::Serialize;
use vibe_core::formats::lock::LockedPackage;
use vibe_core::formats::manifest::{Item, MANIFEST_NAME, Manifest};
use vibe_core::{Event, PackageId, RelPath};
use vibe_fs::{EntryKind, FsError, list_dir, stat_of};
use vibe_projection::items::{DIRECTORIES, PackageItem, items as items_of};
use vibe_slot::in_place;
use vibe_slot::record::{RecordOnDisk, read_record};

use crate::error::InstallError;
use crate::look::{Looked, look};
use crate::manifests::{read_manifest, vouched_manifest};
use crate::settings::Context;
use crate::verify::check_installed;

/// One item of an installed package.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ItemSummary {
    /// Its kind.
    pub kind: String,
    /// Its name.
    pub name: String,
    /// Its package.
    pub package: PackageId,
    /// Where it lies in the package.
    pub path: RelPath,
    /// The package declares it and has nothing there.
    pub missing: bool,
}

impl ItemSummary {
    /// The item `item` of `package`.
    pub(crate) fn of(package: &PackageId, item: PackageItem) -> Self {
        Self {
            kind: item.kind,
            name: item.name,
            package: package.clone(),
            path: item.path,
            missing: item.is_missing,
        }
    }
}

/// The items of the installed packages, of `packages` or of all, by package. Of a package that is a
/// git clone those that its work tree has now.
///
/// # Errors
/// There is no project, something in it is not as it should be, or a named package is not in its
/// lock.
pub fn items(
    context: &Context<'_>,
    packages: &[PackageId],
) -> Result<Vec<ItemSummary>, InstallError> {
    let looked = look(context)?;
    check_installed(&looked.lock, packages)?;
    let mut found = Vec::new();
    let is_asked = |id: &PackageId| packages.is_empty() || packages.contains(id);
    for locked in looked
        .lock
        .packages
        .iter()
        .filter(|locked| is_asked(&locked.id))
    {
        match installed_items(&looked, locked)? {
            Some(items) => found.extend(items),
            None => context.observer.observe(&Event::Note(format!(
                "{} is not installed, so its items are not listed",
                locked.id
            ))),
        }
    }
    for item in found.iter().filter(|item| item.missing) {
        context.observer.observe(&Event::Warning(format!(
            "{} declares the {} {} at {}, where it has nothing",
            item.package, item.kind, item.name, item.path
        )));
    }
    Ok(found)
}

/// The items of an installed package; `None` where it is not installed, or where its manifest is not
/// the one that was placed.
pub(crate) fn installed_items(
    looked: &Looked,
    locked: &LockedPackage,
) -> Result<Option<Vec<ItemSummary>>, InstallError> {
    let (slot, layout) = (locked.slot(), &looked.project.layout);
    let found = match slot.version() {
        None if in_place::head(layout, &slot).is_none() => None,
        None => Some(clone_items(&layout.slot(&slot))?),
        Some(_) => match read_record(layout, &slot)? {
            RecordOnDisk::Valid { record, .. } => {
                let manifest = vouched_manifest(layout, &slot, &record)?;
                let files = record.tree.rows().iter().map(|row| &row.path);
                manifest.map(|manifest| items_of(declared(&manifest), files))
            }
            _ => None,
        },
    };
    let summaries = |items: Vec<PackageItem>| {
        let items = items.into_iter();
        items
            .map(|item| ItemSummary::of(&locked.id, item))
            .collect()
    };
    Ok(found.map(summaries))
}

/// The items that `manifest` declares.
pub(crate) fn declared(manifest: &Manifest) -> &[Item] {
    manifest
        .package
        .as_ref()
        .map_or(&[], |package| &package.items)
}

/// The items of the work tree `root`. Only the places are looked at where items can be.
fn clone_items(root: &Path) -> Result<Vec<PackageItem>, InstallError> {
    let manifest = match stat_of(&root.join(MANIFEST_NAME))? {
        Some(_) => Some(read_manifest(root)?),
        None => None,
    };
    let declared = manifest.as_ref().map_or(&[][..], declared);
    let mut files = Vec::new();
    for item in declared {
        files.extend(first_file(root, &item.path)?);
    }
    for (directory, kind) in DIRECTORIES.iter().filter(|_| declared.is_empty()) {
        for path in entries(root, directory)? {
            match *kind {
                "skill" => files.extend(path.join("SKILL.md")),
                "tool" => files.extend(first_file(root, &path)?),
                _ => files.push(path),
            }
        }
    }
    let mut there = Vec::new();
    for path in files {
        if kind_at(root, &path)? == Some(EntryKind::File) {
            there.push(path);
        }
    }
    Ok(items_of(declared, &there))
}

/// What lies at `path` below `root`, which is not reached through a link.
fn kind_at(root: &Path, path: &RelPath) -> Result<Option<EntryKind>, FsError> {
    for ancestor in path.ancestors() {
        let found = stat_of(&ancestor.under(root))?;
        if found.is_none_or(|stat| stat.kind != EntryKind::Directory) {
            return Ok(None);
        }
    }
    Ok(stat_of(&path.under(root))?.map(|stat| stat.kind))
}

/// What lies in `directory` below `root` and has a name that a package can have.
fn entries(root: &Path, directory: &str) -> Result<Vec<RelPath>, FsError> {
    let Ok(directory) = RelPath::new(directory) else {
        return Ok(Vec::new());
    };
    if kind_at(root, &directory)? != Some(EntryKind::Directory) {
        return Ok(Vec::new());
    }
    let names = list_dir(&directory.under(root))?.into_iter();
    Ok(names
        .filter_map(|entry| directory.join(entry.relative.to_str()?).ok())
        .collect())
}

/// The file at `path`, or a file below it, however deep.
fn first_file(root: &Path, path: &RelPath) -> Result<Option<RelPath>, FsError> {
    let mut open = vec![path.clone()];
    while let Some(path) = open.pop() {
        match kind_at(root, &path)? {
            Some(EntryKind::File) => return Ok(Some(path)),
            Some(EntryKind::Directory) => open.extend(entries(root, path.as_str())?),
            _ => {}
        }
    }
    Ok(None)
}
