//! Looking at what a slot's directory holds: by lstat only, except for the files of interest.

use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use rayon::prelude::*;
use vibe_core::contents::{DiskEntry, SlotContents};
use vibe_core::formats::state::{MadeKind, MadePath};
use vibe_core::relative_path::RECORD_NAME;
use vibe_core::text::escape_bytes;
use vibe_core::{RelPath, Sha256Digest, Sha256Hasher, SlotName};
use vibe_fs::{CopyError, EntryKind, Guard, RawEntry, Stat, stat_of};

use crate::error::SlotError;
use crate::layout::Layout;

/// Everything below a directory, each directory before what is in it, by name.
#[derive(Debug, Default)]
pub(crate) struct Scan {
    pub(crate) entries: Vec<RawEntry>,
    /// What we may not look into or at, relative; empty for the directory itself.
    pub(crate) unreadable: BTreeSet<PathBuf>,
}

/// Lists everything below `root`. What vanishes meanwhile, or may not be looked at, is no error.
pub(crate) fn scan(root: &Path) -> Result<Scan, SlotError> {
    let mut found = Scan::default();
    for entry in vibe_fs::walk(root) {
        match entry {
            Ok(entry) => found.entries.push(entry),
            Err(error) if error.is_not_found() => {}
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                let relative = error.path.strip_prefix(root).unwrap_or(&error.path);
                found.unreadable.insert(relative.to_path_buf());
            }
            Err(error) => return Err(error.into()),
        }
    }
    Ok(found)
}

/// The entries of `scan` that have a path in a package, the record apart.
pub(crate) fn named(scan: &Scan) -> BTreeMap<RelPath, Stat> {
    let entries = scan.entries.iter();
    entries
        .filter_map(|entry| {
            let path = RelPath::from_bytes(&entry.path_bytes()).ok()?;
            (path.as_str() != RECORD_NAME).then_some((path, entry.stat))
        })
        .collect()
}

/// What the directory of `slot` holds; nothing where it is absent. The files of `interest` are
/// hashed, and those we may not read have no digest. `made` are the made paths as remembered.
///
/// # Errors
/// The slot is reached through a link, or cannot be listed or read.
pub fn examine(
    layout: &Layout,
    slot: &SlotName,
    interest: &BTreeSet<RelPath>,
    made: &BTreeMap<RelPath, MadePath>,
) -> Result<SlotContents, SlotError> {
    if !layout.has_slot(slot)? {
        return Ok(SlotContents::default());
    }
    let root = layout.slot(slot);
    let scan = scan(&root)?;
    let found = named(&scan);
    let digests = digests(&root, &found, interest)?;
    let entries = found
        .into_iter()
        .map(|(path, stat)| {
            let digest = digests.get(&path).copied();
            (path, disk_entry(&stat, digest))
        })
        .collect();
    Ok(SlotContents {
        entries,
        unchanged_made: unchanged_made(layout, slot, made)?,
        unnamed: unnamed(&scan),
    })
}

fn disk_entry(stat: &Stat, digest: Option<Sha256Digest>) -> DiskEntry {
    match stat.kind {
        EntryKind::File => DiskEntry::File {
            digest,
            exec: stat.exec,
        },
        EntryKind::Directory => DiskEntry::Directory,
        EntryKind::Symlink => DiskEntry::Symlink,
        EntryKind::Other => DiskEntry::Other,
    }
}

/// The topmost entries without a path in a package, escaped.
fn unnamed(scan: &Scan) -> Vec<String> {
    let mut names = Vec::new();
    let mut last: Option<&Path> = None;
    for entry in &scan.entries {
        if last.is_some_and(|last| entry.relative.starts_with(last)) {
            continue;
        }
        let bytes = entry.path_bytes();
        if RelPath::from_bytes(&bytes).is_err() {
            last = Some(&entry.relative);
            names.push(escape_bytes(&bytes));
        }
    }
    names
}

/// The digests of the files in `found` that are of `interest` and that we may read.
pub(crate) fn digests(
    root: &Path,
    found: &BTreeMap<RelPath, Stat>,
    interest: &BTreeSet<RelPath>,
) -> Result<BTreeMap<RelPath, Sha256Digest>, SlotError> {
    let files: Vec<&RelPath> = interest
        .iter()
        .filter(|path| {
            let stat = found.get(*path);
            stat.is_some_and(|stat| stat.kind == EntryKind::File)
        })
        .collect();
    let hashed: Result<Vec<_>, SlotError> = files
        .par_iter()
        .map(|path| Ok(readable_digest(&path.under(root))?.map(|d| ((*path).clone(), d))))
        .collect();
    Ok(hashed?.into_iter().flatten().collect())
}

/// The digest of the file `path`; `None` if it is no file any more or may not be read.
pub(crate) fn readable_digest(path: &Path) -> Result<Option<Sha256Digest>, SlotError> {
    match vibe_fs::hash_file(path) {
        Ok(hashed) => Ok(Some(hashed.digest)),
        Err(CopyError::NotAFile { .. }) => Ok(None),
        Err(CopyError::Fs(error))
            if error.is_not_found() || error.kind() == ErrorKind::PermissionDenied =>
        {
            Ok(None)
        }
        Err(error) => Err(error.into()),
    }
}

/// What the path `path` of `slot` is now, as it is remembered of a path that a hook made; `None`
/// if it is absent or behind a link.
///
/// The digest covers, for the path and everything below it, the name, the kind, of a file its
/// size, time of change and exec bit, of a link its target, and which directories cannot be read.
/// No content is read.
///
/// # Errors
/// The path cannot be listed.
pub fn made_path(
    layout: &Layout,
    slot: &SlotName,
    path: &RelPath,
) -> Result<Option<MadePath>, SlotError> {
    let root = layout.slot(slot);
    if vibe_fs::path_guard(&root, path)? != Guard::Clear {
        return Ok(None);
    }
    let full = path.under(&root);
    let Some(stat) = stat_of(&full)? else {
        return Ok(None);
    };
    let mut hasher = Sha256Hasher::new();
    push_entry(&mut hasher, b"", &stat, &full);
    if stat.kind == EntryKind::Directory {
        let scan = scan(&full)?;
        for entry in &scan.entries {
            let at = full.join(&entry.relative);
            push_entry(&mut hasher, &entry.path_bytes(), &entry.stat, &at);
        }
        for path in &scan.unreadable {
            push(
                &mut hasher,
                "unreadable",
                path.as_os_str().as_encoded_bytes(),
            );
        }
    }
    Ok(Some(MadePath {
        kind: made_kind(stat.kind),
        listing: hasher.finish(),
    }))
}

/// One entry as bytes that no other entry gives: names and targets come with their length.
fn push_entry(hasher: &mut Sha256Hasher, name: &[u8], stat: &Stat, full: &Path) {
    push(hasher, made_kind(stat.kind).as_str(), name);
    match stat.kind {
        EntryKind::File => {
            let facts = format!("{} {} {}\n", stat.size, stat.mtime_ns, stat.exec);
            hasher.update(facts.as_bytes());
        }
        EntryKind::Symlink => {
            let target = vibe_fs::read_link(full).unwrap_or_default();
            push(hasher, "to", target.as_os_str().as_encoded_bytes());
        }
        EntryKind::Directory | EntryKind::Other => {}
    }
}

fn push(hasher: &mut Sha256Hasher, word: &str, bytes: &[u8]) {
    hasher.update(format!("{word} {} ", bytes.len()).as_bytes());
    hasher.update(bytes);
    hasher.update(b"\n");
}

fn made_kind(kind: EntryKind) -> MadeKind {
    match kind {
        EntryKind::File => MadeKind::File,
        EntryKind::Directory => MadeKind::Directory,
        EntryKind::Symlink => MadeKind::Symlink,
        EntryKind::Other => MadeKind::Other,
    }
}

/// Those of the remembered paths that are as they are remembered.
///
/// # Errors
/// A path cannot be listed.
pub fn unchanged_made(
    layout: &Layout,
    slot: &SlotName,
    made: &BTreeMap<RelPath, MadePath>,
) -> Result<BTreeSet<RelPath>, SlotError> {
    let mut unchanged = BTreeSet::new();
    for (path, remembered) in made {
        if made_path(layout, slot, path)? == Some(*remembered) {
            unchanged.insert(path.clone());
        }
    }
    Ok(unchanged)
}
