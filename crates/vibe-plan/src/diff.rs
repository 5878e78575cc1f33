//! The payload diff: what has to change in a slot's directory so that it holds a tree.
//!
//! Ownership decides everything. A path is *owned* if the slot's record names it, or if a refresh
//! that was cut short was adding it. Owned paths are brought to the incoming tree; a path that is
//! not owned is the user's (or a hook's) and is never overwritten: what is in the way is renamed
//! aside. What the package's own hooks did is not drift: a file they changed counts as intact
//! while the package still publishes the bytes it had then, and a path they made may be replaced
//! while its listing is as remembered.

use std::collections::{BTreeMap, BTreeSet};

use vibe_core::contents::{DiskEntry, SlotContents};
use vibe_core::formats::state::{AfterFile, MadePath};
use vibe_core::plan::{FileChange, WriteReason};
use vibe_core::{RelPath, Tree, TreeRow};

/// What the diff looks at.
#[derive(Debug, Clone, Copy)]
pub struct DiffInput<'a> {
    /// The tree the slot shall hold.
    pub incoming: &'a Tree,
    /// The rows we placed: those of the record, if there is a usable one.
    pub recorded: &'a Tree,
    /// What the package published when its hooks last ran here: `after` is told from it.
    pub published: &'a Tree,
    /// Rows a refresh that was cut short was adding.
    pub adding: &'a [TreeRow],
    /// What this package's hooks made of its payload.
    pub after: &'a BTreeMap<RelPath, AfterFile>,
    /// The topmost paths that appeared during its hooks.
    pub made: &'a BTreeMap<RelPath, MadePath>,
    /// What lies there now.
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
    /// Whether payload changes: a file is written or deleted.
    pub fn is_empty(&self) -> bool {
        !self
            .changes
            .iter()
            .any(|change| change.payload_path().is_some())
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

    /// Adds the removal of everything the hooks made. What is no longer as remembered is the
    /// user's and is set aside instead.
    pub fn reset_made(&mut self, input: &DiffInput<'_>) {
        let present = |path: &RelPath| input.disk.entries.contains_key(path);
        for path in input.made.keys().filter(|path| present(path)) {
            let handled = self.changes.iter().any(|change| match change {
                FileChange::RemoveMade { path: other }
                | FileChange::SetAside { path: other, .. } => path == other,
                _ => false,
            });
            if handled {
                continue;
            }
            let change = self.clear(path, input);
            self.changes.push(change);
        }
        sort(&mut self.changes);
    }

    /// The change that clears `path` of something that is not payload.
    fn clear(&self, path: &RelPath, input: &DiffInput<'_>) -> FileChange {
        if input.made.contains_key(path) && input.disk.unchanged_made.contains(path) {
            return FileChange::RemoveMade { path: path.clone() };
        }
        let taken: BTreeSet<&RelPath> = self
            .changes
            .iter()
            .filter_map(|change| match change {
                FileChange::SetAside { to, .. } => Some(to),
                _ => None,
            })
            .collect();
        let free = |name: &RelPath| {
            !input.disk.entries.contains_key(name)
                && !taken.contains(name)
                && input.incoming.get(name).is_none()
                && !input.incoming.has_directory(name)
        };
        FileChange::SetAside {
            path: path.clone(),
            to: kept_name(path, free),
        }
    }
}

/// `<path>.vibe-kept`, or the first of `.vibe-kept.2`, `.vibe-kept.3`, ... that is free.
fn kept_name(path: &RelPath, free: impl Fn(&RelPath) -> bool) -> RelPath {
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
    let digest = vibe_core::Sha256Digest::of(path.as_str().as_bytes()).to_string();
    let name = format!("{}{suffix}", &digest[..16]);
    match path.parent() {
        Some(parent) => parent.join(&name).ok(),
        None => RelPath::new(&name).ok(),
    }
}

/// Compares what lies in a slot with what it shall hold.
pub fn diff(input: &DiffInput<'_>) -> PayloadDiff {
    let mut found = PayloadDiff::default();
    let mut cleared: BTreeSet<RelPath> = BTreeSet::new();
    for row in input.incoming.rows() {
        clear_ancestors(row, input, &mut found, &mut cleared);
        compare_row(row, input, &mut found, &cleared);
    }
    for row in owned_rows(input).filter(|row| input.incoming.get(&row.path).is_none()) {
        leave_row(row, input, &mut found, &cleared);
    }
    sort(&mut found.changes);
    found
}

fn owned_rows<'a>(input: &DiffInput<'a>) -> impl Iterator<Item = &'a TreeRow> {
    let recorded = input.recorded;
    let adding = input
        .adding
        .iter()
        .filter(move |row| recorded.get(&row.path).is_none());
    recorded.rows().iter().chain(adding)
}

fn owned<'a>(path: &RelPath, input: &DiffInput<'a>) -> Option<&'a TreeRow> {
    let adding = || input.adding.iter().find(|row| row.path == *path);
    input.recorded.get(path).or_else(adding)
}

/// Every ancestor of an incoming file must be a directory. A file of ours there is deleted by
/// [`leave_row`]; anything else is cleared.
fn clear_ancestors(
    row: &TreeRow,
    input: &DiffInput<'_>,
    found: &mut PayloadDiff,
    cleared: &mut BTreeSet<RelPath>,
) {
    for ancestor in row.path.ancestors() {
        match input.disk.entries.get(&ancestor) {
            None | Some(DiskEntry::Directory) => continue,
            Some(_) if cleared.contains(&ancestor) => return,
            Some(entry) => {
                let ours =
                    owned(&ancestor, input).is_some_and(|row| is_as_we_left(row, *entry, input));
                if !ours {
                    let change = found.clear(&ancestor, input);
                    found.changes.push(change);
                }
                cleared.insert(ancestor);
                return;
            }
        }
    }
}

fn compare_row(
    row: &TreeRow,
    input: &DiffInput<'_>,
    found: &mut PayloadDiff,
    cleared: &BTreeSet<RelPath>,
) {
    let below_cleared = row
        .path
        .ancestors()
        .any(|ancestor| cleared.contains(&ancestor));
    let entry = input.disk.entries.get(&row.path).filter(|_| !below_cleared);
    if entry.is_some_and(|entry| holds(*entry, row)) {
        return;
    }
    if is_hook_change(row, entry, input) {
        found.hook_changed.push(row.clone());
        return;
    }
    let ours = owned(&row.path, input);
    if let Some(entry) = entry {
        let in_the_way = match entry {
            DiskEntry::Directory => true,
            _ => ours.is_none() && !is_unchanged_made(&row.path, input),
        };
        if in_the_way {
            let change = found.clear(&row.path, input);
            found.changes.push(change);
        }
    }
    let because = match ours {
        None => WriteReason::Added,
        Some(published) if published == row => WriteReason::Drifted,
        Some(_) => WriteReason::Changed,
    };
    found.changes.push(FileChange::write(row, because));
}

/// An owned path that the package no longer has: deleted if it is as we left it, else kept.
fn leave_row(
    row: &TreeRow,
    input: &DiffInput<'_>,
    found: &mut PayloadDiff,
    cleared: &BTreeSet<RelPath>,
) {
    let below_cleared = row.path.ancestors().any(|ancestor| {
        cleared.contains(&ancestor)
            || input.disk.entries.get(&ancestor) == Some(&DiskEntry::Symlink)
    });
    let Some(entry) = input.disk.entries.get(&row.path).filter(|_| !below_cleared) else {
        return;
    };
    if is_as_we_left(row, *entry, input) {
        found.changes.push(FileChange::Delete {
            path: row.path.clone(),
        });
    } else if *entry != DiskEntry::Directory {
        found.edited.push(row.path.clone());
    }
}

/// Whether `entry` is the file that `row` publishes.
fn holds(entry: DiskEntry, row: &TreeRow) -> bool {
    entry
        == DiskEntry::File {
            digest: Some(row.digest),
            exec: row.exec,
        }
}

/// Whether `entry` is as we, or the package's own hooks, left the owned `row`.
pub fn is_as_we_left(row: &TreeRow, entry: DiskEntry, input: &DiffInput<'_>) -> bool {
    holds(entry, row)
        || match input.after.get(&row.path) {
            Some(AfterFile::File { digest, exec }) => {
                entry
                    == DiskEntry::File {
                        digest: Some(*digest),
                        exec: *exec,
                    }
            }
            Some(AfterFile::Deleted) | None => false,
        }
}

/// Whether the incoming `row` is what the package published when its hooks made of it what lies
/// there now.
fn is_hook_change(row: &TreeRow, entry: Option<&DiskEntry>, input: &DiffInput<'_>) -> bool {
    if input.published.get(&row.path) != Some(row) {
        return false;
    }
    match (input.after.get(&row.path), entry) {
        (Some(AfterFile::Deleted), None) => true,
        (
            Some(AfterFile::File { digest, exec }),
            Some(DiskEntry::File {
                digest: found,
                exec: is,
            }),
        ) => Some(*digest) == *found && exec == is,
        _ => false,
    }
}

/// Whether `path` is, or lies in, something the hooks made that is as remembered.
fn is_unchanged_made(path: &RelPath, input: &DiffInput<'_>) -> bool {
    path.ancestors()
        .chain([path.clone()])
        .any(|part| input.made.contains_key(&part) && input.disk.unchanged_made.contains(&part))
}

/// What clears the way first, then deletions, then writes; each in byte order of the path.
fn sort(changes: &mut [FileChange]) {
    changes.sort_by(|a, b| key(a).cmp(&key(b)));
}

fn key(change: &FileChange) -> (u8, &RelPath) {
    match change {
        FileChange::RemoveMade { path } => (0, path),
        FileChange::SetAside { path, .. } => (1, path),
        FileChange::Delete { path } => (2, path),
        FileChange::Write { path, .. } => (3, path),
    }
}
