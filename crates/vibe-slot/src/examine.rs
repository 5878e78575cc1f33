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
    /// What we cannot look into or at, relative; empty for the directory itself.
    pub(crate) unreadable: BTreeSet<PathBuf>,
}

/// Permissions, or a nesting deeper than this system has paths for.
fn is_out_of_reach(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::PermissionDenied | ErrorKind::InvalidFilename
    )
}

/// Lists everything below `root`. What vanishes meanwhile, or cannot be looked at, is no error.
pub(crate) fn scan(root: &Path) -> Result<Scan, SlotError> {
    let mut found = Scan::default();
    for entry in vibe_fs::walk(root) {
        match entry {
            Ok(entry) => found.entries.push(entry),
            Err(error) if error.is_not_found() => {}
            Err(error) if is_out_of_reach(error.kind()) => {
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

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Package, World, rel};
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::symlink;
    use vibe_testkit::{make_pipe, set_mode};

    #[test]
    fn everything_is_seen_and_only_files_of_interest_are_read() {
        let world = World::with(&Package::new(&[("d/run.sh", "1"), ("plain", "2")]));
        symlink("/etc", world.at("link")).unwrap();
        make_pipe(&world.at("pipe"));
        world.write(".git/config", "x");
        fs::write(
            world.root().join(std::ffi::OsStr::from_bytes(b"caf\xe9")),
            "",
        )
        .unwrap();
        let interest = ["d/run.sh", "link", "pipe", "d", "absent"].map(rel).into();
        let found = examine(&world.layout, &world.slot, &interest, &BTreeMap::new()).unwrap();
        let file = |digest, exec| DiskEntry::File { digest, exec };
        let expected = BTreeMap::from([
            (rel("d"), DiskEntry::Directory),
            (rel("d/run.sh"), file(Some(Sha256Digest::of(b"1")), true)),
            (rel("link"), DiskEntry::Symlink),
            (rel("pipe"), DiskEntry::Other),
            (rel("plain"), file(None, false)),
        ]);
        assert_eq!(found.entries, expected);
        assert_eq!(found.unnamed, [".git", "caf\\xE9"]);
    }

    #[test]
    fn an_absent_slot_is_empty_and_one_behind_a_link_is_refused() {
        let world = World::new();
        let look = || {
            examine(
                &world.layout,
                &world.slot,
                &BTreeSet::new(),
                &BTreeMap::new(),
            )
        };
        assert_eq!(look().unwrap(), SlotContents::default());
        symlink("/etc", world.layout.package(&world.slot)).unwrap();
        assert!(matches!(look(), Err(SlotError::Link { .. })));
    }

    /// What `change` does to the remembered listing of the made directory `out`.
    fn check_made(change: impl FnOnce(&World), stays: bool) {
        let world = World::new();
        world.write("out/deep/a", "text");
        world.write("out/b", "1");
        symlink("x", world.at("out/link")).unwrap();
        let made = made_path(&world.layout, &world.slot, &rel("out"))
            .unwrap()
            .unwrap();
        assert_eq!(made.kind, MadeKind::Directory);
        let made = BTreeMap::from([(rel("out"), made)]);
        change(&world);
        let unchanged = unchanged_made(&world.layout, &world.slot, &made).unwrap();
        assert_eq!(unchanged.contains(&rel("out")), stays);
    }

    #[test]
    fn a_made_path_is_unchanged_until_something_in_it_moves() {
        check_made(|_| {}, true);
        check_made(|world| world.write("beside", "x"), true);
        check_made(|world| world.write("out/deep/a", "longer text"), false);
        check_made(|world| world.write("out/new", ""), false);
        check_made(|world| fs::remove_file(world.at("out/b")).unwrap(), false);
        check_made(|world| set_mode(&world.at("out/b"), 0o755), false);
        check_made(|world| fs::remove_dir_all(world.at("out")).unwrap(), false);
        let relink = |world: &World| {
            fs::remove_file(world.at("out/link")).unwrap();
            symlink("y", world.at("out/link")).unwrap();
        };
        check_made(relink, false);
        let behind_a_link = |world: &World| {
            fs::rename(world.at("out"), world.at("moved")).unwrap();
            symlink("moved", world.at("out")).unwrap();
        };
        check_made(behind_a_link, false);
    }

    #[test]
    fn made_paths_know_their_kind_and_are_not_looked_for_behind_links() {
        let world = World::new();
        world.write("d/f", "1");
        symlink("d", world.at("link")).unwrap();
        make_pipe(&world.at("pipe"));
        let kind = |path: &str| {
            let made = made_path(&world.layout, &world.slot, &rel(path)).unwrap();
            made.map(|made| made.kind)
        };
        assert_eq!(kind("d"), Some(MadeKind::Directory));
        assert_eq!(kind("d/f"), Some(MadeKind::File));
        assert_eq!(kind("link"), Some(MadeKind::Symlink));
        assert_eq!(kind("pipe"), Some(MadeKind::Other));
        assert_eq!(kind("link/f"), None);
        assert_eq!(kind("absent"), None);
        assert_eq!(kind("absent/f"), None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_may_not_be_read_is_seen_without_failing() {
        let world = World::with(&Package::new(&[("closed/a", "1"), ("secret", "2")]));
        crate::testing::as_owner_without_power(world.layout.project_root(), || {
            set_mode(&world.at("secret"), 0);
            let made = made_path(&world.layout, &world.slot, &rel("closed")).unwrap();
            set_mode(&world.at("closed"), 0);
            let interest = ["closed/a", "secret"].map(rel).into();
            let look = |made| examine(&world.layout, &world.slot, &interest, &made).unwrap();
            let found = look(BTreeMap::from([(rel("closed"), made.unwrap())]));
            let secret = DiskEntry::File {
                digest: None,
                exec: false,
            };
            let expected = [
                (rel("closed"), DiskEntry::Directory),
                (rel("secret"), secret),
            ];
            assert_eq!(found.entries, expected.into());
            assert!(
                found.unchanged_made.is_empty(),
                "its listing says unreadable"
            );
            set_mode(&world.at("closed"), 0o755);
        });
    }
}
