//! The payload diff: what has to change in a slot's directory so that it holds a tree.
//!
//! Ownership decides everything. A path is *ours* if the slot's record names it; what lies there
//! is brought to the incoming tree whatever it is. Elsewhere only *content* can be ours: bytes
//! that a refresh cut short was writing, a payload file as the package's own hooks left it, or
//! something they made whose listing is as remembered. Everything else is the user's and is never
//! overwritten: what is in the way is renamed aside. What the hooks did to payload is not drift: a
//! file they changed counts as intact while the package still publishes the bytes it had then.

use std::collections::{BTreeMap, BTreeSet};

use vibe_core::contents::{DiskEntry, SlotContents};
use vibe_core::formats::state::{AfterFile, MadePath};
use vibe_core::plan::{FileChange, WriteReason};
use vibe_core::{RelPath, Sha256Digest, Tree, TreeRow};

/// What the diff looks at.
#[derive(Debug, Clone, Copy)]
pub struct DiffInput<'a> {
    /// The tree the slot shall hold.
    pub incoming: &'a Tree,
    /// The rows we placed: those of the record, if there is a usable one.
    pub recorded: &'a Tree,
    /// What the package published when its hooks last ran here: `after` is told from it.
    pub published: &'a Tree,
    /// Content that a refresh cut short may have left, in byte order of the path.
    pub adding: &'a [TreeRow],
    /// What this package's hooks made of its payload.
    pub after: &'a BTreeMap<RelPath, AfterFile>,
    /// The topmost paths that appeared during its hooks.
    pub made: &'a BTreeMap<RelPath, MadePath>,
    /// What lies there now. Nothing is listed below what is no directory.
    pub disk: &'a SlotContents,
}

/// What differs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PayloadDiff {
    /// The changes, in the order they are to be made.
    pub changes: Vec<FileChange>,
    /// Incoming paths that are not as published, but as the package's own hooks left them.
    pub hook_changed: Vec<TreeRow>,
    /// Owned paths that are edited and no longer in the package: they stay, and are named.
    pub edited: Vec<RelPath>,
}

impl PayloadDiff {
    /// Whether no payload changes: no file is written or deleted.
    pub fn is_empty(&self) -> bool {
        self.payload_changes() == 0
    }

    /// How many payload files change.
    pub fn payload_changes(&self) -> usize {
        self.changes
            .iter()
            .filter(|change| change.payload_path().is_some())
            .count()
    }

    /// Adds the writes that put every hook-changed file back to its published bytes.
    pub fn restore_hook_changes(&mut self) {
        for row in std::mem::take(&mut self.hook_changed) {
            self.changes
                .push(FileChange::write(&row, WriteReason::HookChange));
        }
        sort(&mut self.changes);
    }

    /// Adds the removal of everything the hooks made, directories that hold payload excepted. What
    /// is no longer as remembered is the user's and is set aside instead.
    pub fn reset_made(&mut self, input: &DiffInput<'_>) {
        for path in input.made.keys() {
            let present = input.disk.entries.contains_key(path);
            if present && !is_payload(path, input.incoming) && !self.clears(path) {
                self.clear(path, input);
            }
        }
        sort(&mut self.changes);
    }

    /// Whether a change already takes `path`, or a directory above it, away.
    fn clears(&self, path: &RelPath) -> bool {
        self.changes
            .iter()
            .filter_map(cleared_path)
            .any(|cleared| path.starts_with(cleared))
    }

    /// Adds what clears `path` of something that is not ours: a made path that is as remembered
    /// goes, anything else is set aside. A directory that the deletions empty needs neither, since
    /// it goes with its last file.
    fn clear(&mut self, path: &RelPath, input: &DiffInput<'_>) {
        if self.empties(path, input.disk) {
            return;
        }
        let path = path.clone();
        let unchanged = input.made.contains_key(&path) && input.disk.unchanged_made.contains(&path);
        self.changes.push(if unchanged {
            FileChange::RemoveMade { path }
        } else {
            let to = self.kept_name(&path, input);
            FileChange::SetAside { path, to }
        });
    }

    /// Whether the deletions leave nothing of the directory `path`.
    fn empties(&self, path: &RelPath, disk: &SlotContents) -> bool {
        let deleted = |below: &RelPath| {
            self.changes.iter().any(|change| match change {
                FileChange::Delete { path } => path.starts_with(below),
                _ => false,
            })
        };
        let unnamed = format!("{path}/");
        disk.entries
            .keys()
            .filter(|entry| entry.starts_with(path))
            .all(deleted)
            && !disk.unnamed.iter().any(|name| name.starts_with(&unnamed))
    }

    /// A name beside `path` that nothing has, had or will have: what a first try removes would
    /// otherwise give the second another answer.
    fn kept_name(&self, path: &RelPath, input: &DiffInput<'_>) -> RelPath {
        let is_taken = |name: &RelPath| {
            self.changes.iter().any(|change| match change {
                FileChange::SetAside { to, .. } => to == name,
                _ => false,
            })
        };
        first_kept_name(path, |name| {
            !input.disk.entries.contains_key(name)
                && !input.made.contains_key(name)
                && !is_payload(name, input.incoming)
                && !is_payload(name, input.recorded)
                && !input.adding.iter().any(|row| row.path.starts_with(name))
                && !is_taken(name)
        })
    }
}

fn cleared_path(change: &FileChange) -> Option<&RelPath> {
    match change {
        FileChange::Delete { path }
        | FileChange::RemoveMade { path }
        | FileChange::SetAside { path, .. } => Some(path),
        FileChange::Write { .. } => None,
    }
}

/// Whether `path` is a file of `tree` or a directory that holds one.
pub(crate) fn is_payload(path: &RelPath, tree: &Tree) -> bool {
    tree.get(path).is_some() || tree.has_directory(path)
}

/// `<path>.vibe-kept`, or the first of `.vibe-kept.2`, `.vibe-kept.3`, ... that is free.
fn first_kept_name(path: &RelPath, free: impl Fn(&RelPath) -> bool) -> RelPath {
    (1..)
        .map(|count| match count {
            1 => ".vibe-kept".to_owned(),
            _ => format!(".vibe-kept.{count}"),
        })
        .filter_map(|suffix| {
            path.with_suffix(&suffix)
                .ok()
                .or_else(|| shortened(path, &suffix))
        })
        .find(|name| free(name))
        .expect("a directory has fewer names than there are numbers")
}

/// The kept name of a path whose last component is too long to grow: cut, and told from its like
/// by a digest of the whole.
fn shortened(path: &RelPath, suffix: &str) -> Option<RelPath> {
    let digest = Sha256Digest::of(path.as_str().as_bytes()).to_string();
    let name = format!("{}{suffix}", &digest[..16]);
    match path.parent() {
        Some(parent) => parent.join(&name).ok(),
        None => RelPath::new(&name).ok(),
    }
}

/// Compares what lies in a slot with what it shall hold.
pub fn diff(input: &DiffInput<'_>) -> PayloadDiff {
    let mut found = PayloadDiff::default();
    let recorded = input.recorded.rows().iter();
    let owned: BTreeSet<&RelPath> = recorded
        .chain(input.adding)
        .map(|row| &row.path)
        .filter(|path| input.incoming.get(path).is_none())
        .collect();
    for path in owned {
        leave_path(path, input, &mut found);
    }
    for row in input.incoming.rows() {
        clear_ancestor(row, input, &mut found);
        compare_row(row, input, &mut found);
    }
    let mut edited = std::mem::take(&mut found.edited);
    edited.retain(|path| !found.clears(path));
    found.edited = edited;
    sort(&mut found.changes);
    found
}

/// A path that the package no longer has: deleted if what lies there is ours, else kept.
fn leave_path(path: &RelPath, input: &DiffInput<'_>, found: &mut PayloadDiff) {
    match input.disk.entries.get(path) {
        None | Some(DiskEntry::Directory) => {}
        Some(entry) if is_as_we_left(path, *entry, input) => {
            let path = path.clone();
            found.changes.push(FileChange::Delete { path });
        }
        Some(_) if input.recorded.get(path).is_some() => found.edited.push(path.clone()),
        Some(_) => {}
    }
}

/// Every ancestor of an incoming file must be a directory: what else is there is cleared, once.
fn clear_ancestor(row: &TreeRow, input: &DiffInput<'_>, found: &mut PayloadDiff) {
    let is_no_directory = |path: &RelPath| {
        let entry = input.disk.entries.get(path);
        entry.is_some_and(|entry| *entry != DiskEntry::Directory)
    };
    if let Some(blocking) = row.path.ancestors().find(is_no_directory)
        && !found.clears(&blocking)
    {
        found.clear(&blocking, input);
    }
}

fn compare_row(row: &TreeRow, input: &DiffInput<'_>, found: &mut PayloadDiff) {
    let entry = input.disk.entries.get(&row.path);
    if entry.is_some_and(|entry| holds(*entry, row)) {
        return;
    }
    if is_hook_change(row, entry, input) {
        found.hook_changed.push(row.clone());
        return;
    }
    if entry.is_some_and(|entry| !may_replace(&row.path, *entry, input)) {
        found.clear(&row.path, input);
    }
    let because = match input.recorded.get(&row.path) {
        None => WriteReason::Added,
        Some(published) if published == row => WriteReason::Drifted,
        Some(_) => WriteReason::Changed,
    };
    found.changes.push(FileChange::write(row, because));
}

/// Whether a file may be renamed over `entry`, which lies at `path`.
fn may_replace(path: &RelPath, entry: DiskEntry, input: &DiffInput<'_>) -> bool {
    entry != DiskEntry::Directory
        && (input.recorded.get(path).is_some()
            || is_as_we_left(path, entry, input)
            || is_made_file(path, entry, input))
}

fn file(digest: Sha256Digest, exec: bool) -> DiskEntry {
    DiskEntry::File {
        digest: Some(digest),
        exec,
    }
}

/// Whether `entry` is the file that `row` describes.
fn holds(entry: DiskEntry, row: &TreeRow) -> bool {
    entry == file(row.digest, row.exec)
}

/// Whether `entry`, which lies at `path`, is payload as we, or the package's own hooks, left it.
pub fn is_as_we_left(path: &RelPath, entry: DiskEntry, input: &DiffInput<'_>) -> bool {
    let added = input
        .adding
        .binary_search_by(|row| row.path.cmp(path))
        .ok()
        .map(|index| &input.adding[index]);
    input
        .recorded
        .get(path)
        .into_iter()
        .chain(added)
        .any(|row| holds(entry, row))
        || match input.after.get(path) {
            Some(AfterFile::File { digest, exec }) => entry == file(*digest, *exec),
            Some(AfterFile::Deleted) | None => false,
        }
}

/// Whether the incoming `row` is what the package published when its hooks made of it what lies
/// there now.
fn is_hook_change(row: &TreeRow, entry: Option<&DiskEntry>, input: &DiffInput<'_>) -> bool {
    input.published.get(&row.path) == Some(row)
        && match input.after.get(&row.path) {
            Some(AfterFile::Deleted) => entry.is_none(),
            Some(AfterFile::File { digest, exec }) => entry == Some(&file(*digest, *exec)),
            None => false,
        }
}

/// Whether `entry` is a file that is, or lies in, something the hooks made that is as remembered.
fn is_made_file(path: &RelPath, entry: DiskEntry, input: &DiffInput<'_>) -> bool {
    let is_unchanged =
        |part: RelPath| input.made.contains_key(&part) && input.disk.unchanged_made.contains(&part);
    matches!(entry, DiskEntry::File { .. })
        && path.ancestors().chain([path.clone()]).any(is_unchanged)
}

/// The content that lies where `difference` writes or deletes, or will lie there, and that is ours
/// though the record does not tell: after a crash it is known by this. One row a path, in byte
/// order: what lies there already is all that a second try can meet apart from the incoming file.
pub(crate) fn unrecorded(difference: &PayloadDiff, input: &DiffInput<'_>) -> Vec<TreeRow> {
    let row_of = |change: &FileChange| {
        let path = change.payload_path()?;
        let lying = input.disk.entries.get(path).and_then(|entry| match *entry {
            DiskEntry::File {
                digest: Some(digest),
                exec,
            } if is_as_we_left(path, *entry, input) || is_made_file(path, *entry, input) => {
                Some(TreeRow {
                    path: path.clone(),
                    digest,
                    exec,
                })
            }
            _ => None,
        });
        let is_told = |row: &TreeRow| input.recorded.get(path) == Some(row);
        lying.filter(|row| !is_told(row)).or_else(|| {
            input
                .incoming
                .get(path)
                .filter(|row| !is_told(row))
                .cloned()
        })
    };
    let rows = difference.changes.iter().filter_map(row_of);
    let by_path: BTreeMap<RelPath, TreeRow> = rows.map(|row| (row.path.clone(), row)).collect();
    by_path.into_values().collect()
}

/// Deletions first, then what else clears the way, then writes; each in byte order of the path.
fn sort(changes: &mut [FileChange]) {
    changes.sort_by(|a, b| key(a).cmp(&key(b)));
}

fn key(change: &FileChange) -> (u8, &RelPath) {
    match change {
        FileChange::Delete { path } => (0, path),
        FileChange::RemoveMade { path } => (1, path),
        FileChange::SetAside { path, .. } => (2, path),
        FileChange::Write { path, .. } => (3, path),
    }
}
