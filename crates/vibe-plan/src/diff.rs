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
use vibe_core::formats::state::{AfterFile, MadePath, SlotState};
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

impl<'a> DiffInput<'a> {
    /// `disk`, held against `incoming`, where the slot's record names `recorded` and `state` is its
    /// row.
    pub fn new(
        incoming: &'a Tree,
        recorded: &'a Tree,
        state: Option<&'a SlotState>,
        disk: &'a SlotContents,
    ) -> Self {
        static NO_AFTER: BTreeMap<RelPath, AfterFile> = BTreeMap::new();
        static NO_MADE: BTreeMap<RelPath, MadePath> = BTreeMap::new();
        Self {
            incoming,
            recorded,
            published: recorded,
            adding: state.map_or(&[], |state| &state.adding),
            after: state.map_or(&NO_AFTER, |state| &state.after),
            made: state.map_or(&NO_MADE, |state| &state.made),
            disk,
        }
    }
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

    /// Adds a write for every file of `tree` that is as published and has none yet, so that no file
    /// of the slot is one that somebody else has, too.
    pub fn unshare(&mut self, tree: &Tree) {
        let written = self.changes.iter().filter_map(FileChange::payload_path);
        let hook_changed = self.hook_changed.iter().map(|row| &row.path);
        let settled: BTreeSet<RelPath> = written.chain(hook_changed).cloned().collect();
        let rows = tree.rows().iter();
        let shared = rows.filter(|row| !settled.contains(&row.path));
        self.changes
            .extend(shared.map(|row| FileChange::write(row, WriteReason::Shared)));
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
            let to = kept_name(&path, input);
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

/// A name beside `path` that nothing has, had or will have: what a first try removes would
/// otherwise give the second another answer.
fn kept_name(path: &RelPath, input: &DiffInput<'_>) -> RelPath {
    first_kept_name(path, |name| {
        !input.disk.entries.contains_key(name)
            && !input.made.contains_key(name)
            && !is_payload(name, input.incoming)
            && !is_payload(name, input.recorded)
            && !input.adding.iter().any(|row| row.path.starts_with(name))
    })
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Files, after, contents, made, path, rows, tree, words};

    #[derive(Clone, Copy, Default)]
    struct Case<'a> {
        incoming: Files<'a>,
        recorded: Files<'a>,
        /// Where it is another tree than the recorded one.
        published: Option<Files<'a>>,
        adding: Files<'a>,
        after: Files<'a>,
        made: &'a [&'a str],
        /// Made paths whose listing is no longer as remembered.
        touched: &'a [&'a str],
        disk: Files<'a>,
        unnamed: &'a [&'a str],
    }

    fn with_input<T>(case: &Case<'_>, then: impl FnOnce(&DiffInput<'_>) -> T) -> T {
        let mut disk = contents(case.disk);
        let unchanged = case.made.iter().filter(|name| !case.touched.contains(name));
        disk.unchanged_made = unchanged.map(|name| path(name)).collect();
        disk.unnamed = case.unnamed.iter().map(|name| (*name).to_owned()).collect();
        then(&DiffInput {
            incoming: &tree(case.incoming),
            recorded: &tree(case.recorded),
            published: &tree(case.published.unwrap_or(case.recorded)),
            adding: &rows(case.adding),
            after: &after(case.after),
            made: &made(case.made),
            disk: &disk,
        })
    }

    fn run(case: Case<'_>) -> PayloadDiff {
        with_input(&case, diff)
    }

    fn all_words(found: &PayloadDiff) -> Vec<String> {
        found.changes.iter().map(words).collect()
    }

    /// Every write carries the incoming file.
    fn check(case: Case<'_>, expected: &[&str]) {
        let found = run(case);
        assert_eq!(all_words(&found), expected);
        let incoming = tree(case.incoming);
        for change in &found.changes {
            if let FileChange::Write { path, because, .. } = change {
                let row = incoming.get(path).unwrap();
                assert_eq!(*change, FileChange::write(row, *because));
            }
        }
        let writes = expected.iter().filter(|text| {
            let word = text.split(' ').next().unwrap();
            ["add", "change", "repair", "delete"].contains(&word)
        });
        assert_eq!(found.payload_changes(), writes.count());
        assert_eq!(found.is_empty(), found.payload_changes() == 0);
    }

    fn check_reset(case: Case<'_>, expected: &[&str]) {
        let found = with_input(&case, |input| {
            let mut found = diff(input);
            found.reset_made(input);
            found
        });
        assert_eq!(all_words(&found), expected);
    }

    const A: Files<'static> = &[("a", "1")];

    #[test]
    fn a_file_as_published_is_not_touched_whoever_put_it_there() {
        let case = Case {
            incoming: A,
            disk: A,
            ..Case::default()
        };
        check(case, &[]);
        check(
            Case {
                recorded: A,
                ..case
            },
            &[],
        );
        check(
            Case {
                recorded: &[("a", "0")],
                ..case
            },
            &[],
        );
    }

    #[test]
    fn a_recorded_path_is_brought_to_the_package_whatever_lies_there() {
        let case = Case {
            incoming: A,
            recorded: A,
            ..Case::default()
        };
        check(case, &["repair a"]);
        for disk in [[("a", "x")], [("a*", "1")], [("a@", "")], [("a!", "")]] {
            check(
                Case {
                    disk: &disk,
                    ..case
                },
                &["repair a"],
            );
            check(
                Case {
                    recorded: &[("a", "0")],
                    disk: &disk,
                    ..case
                },
                &["change a"],
            );
        }
        check(
            Case {
                recorded: &[("a*", "1")],
                disk: &[("a*", "1")],
                ..case
            },
            &["change a"],
        );
    }

    #[test]
    fn a_file_without_a_digest_is_not_taken_for_published() {
        let case = Case {
            incoming: A,
            recorded: A,
            disk: A,
            ..Case::default()
        };
        let found = with_input(&case, |input| {
            let mut disk = input.disk.clone();
            let entry = DiskEntry::File {
                digest: None,
                exec: false,
            };
            disk.entries.insert(path("a"), entry);
            diff(&DiffInput {
                disk: &disk,
                ..*input
            })
        });
        assert_eq!(all_words(&found), ["repair a"]);
    }

    #[test]
    fn what_is_unrecorded_and_in_the_way_is_set_aside() {
        let case = Case {
            incoming: A,
            ..Case::default()
        };
        check(case, &["add a"]);
        for disk in [
            [("a", "x")],
            [("a*", "1")],
            [("a@", "")],
            [("a!", "")],
            [("a/", "")],
        ] {
            check(
                Case {
                    disk: &disk,
                    ..case
                },
                &["aside a to a.vibe-kept", "add a"],
            );
        }
    }

    #[test]
    fn what_is_unrecorded_elsewhere_is_not_touched() {
        let disk = &[("a", "1"), ("b", "x"), ("d/", ""), ("l@", "")];
        check(
            Case {
                incoming: A,
                recorded: A,
                disk,
                ..Case::default()
            },
            &[],
        );
    }

    #[test]
    fn a_directory_in_the_way_is_set_aside_even_from_a_recorded_path() {
        let case = Case {
            incoming: A,
            recorded: A,
            ..Case::default()
        };
        let expected = &["aside a to a.vibe-kept", "repair a"];
        check(
            Case {
                disk: &[("a/", "")],
                ..case
            },
            expected,
        );
        check(
            Case {
                disk: &[("a/u", "x")],
                ..case
            },
            expected,
        );
    }

    #[test]
    fn a_directory_of_old_payload_goes_with_its_files() {
        let case = Case {
            incoming: A,
            recorded: &[("a/x", "1"), ("a/z/y", "1")],
            disk: &[("a/x", "1"), ("a/z/y", "1"), ("ab", "x")],
            ..Case::default()
        };
        check(case, &["delete a/x", "delete a/z/y", "add a"]);
        let elsewhere = Case {
            unnamed: &["ab/\\xff"],
            ..case
        };
        check(elsewhere, &["delete a/x", "delete a/z/y", "add a"]);
        let aside = &[
            "delete a/x",
            "delete a/z/y",
            "aside a to a.vibe-kept",
            "add a",
        ];
        check(
            Case {
                unnamed: &["a/\\xff"],
                ..case
            },
            aside,
        );
        for extra in [("a/u", "x"), ("a/d/", ""), ("a/l@", "")] {
            let disk = &[("a/x", "1"), ("a/z/y", "1"), extra];
            check(Case { disk, ..case }, aside);
        }
        let edited = Case {
            disk: &[("a/x", "e"), ("a/z/y", "1")],
            ..case
        };
        check(edited, &["delete a/z/y", "aside a to a.vibe-kept", "add a"]);
        assert_eq!(run(edited).edited, []);
    }

    #[test]
    fn a_recorded_path_the_package_lost_goes_unless_it_was_edited() {
        let case = Case {
            recorded: A,
            ..Case::default()
        };
        check(case, &[]);
        check(Case { disk: A, ..case }, &["delete a"]);
        check(
            Case {
                after: &[("a*", "h")],
                disk: &[("a*", "h")],
                ..case
            },
            &["delete a"],
        );
        check(
            Case {
                after: &[("a*", "h")],
                disk: &[("a", "1")],
                ..case
            },
            &["delete a"],
        );
        for disk in [[("a", "x")], [("a*", "1")], [("a@", "")]] {
            let case = Case {
                after: &[("a", "h")],
                disk: &disk,
                ..case
            };
            check(case, &[]);
            assert_eq!(run(case).edited, [path("a")]);
        }
        let deleted = Case {
            after: &[("a", "-")],
            disk: &[("a", "x")],
            ..case
        };
        assert_eq!(run(deleted).edited, [path("a")]);
        let directory = Case {
            disk: &[("a/u", "x")],
            ..case
        };
        check(directory, &[]);
        assert_eq!(run(directory).edited, []);
    }

    #[test]
    fn a_directory_found_replaced_is_rebuilt_and_nothing_goes_through_a_link() {
        let recorded: Files<'_> = &[("d/e/x", "1"), ("d/e/y", "1"), ("d/old", "1")];
        let case = Case {
            incoming: &recorded[..2],
            recorded,
            ..Case::default()
        };
        let expected = &["aside d to d.vibe-kept", "repair d/e/x", "repair d/e/y"];
        for disk in [[("d@", "")], [("d", "x")], [("d!", "")]] {
            check(
                Case {
                    disk: &disk,
                    ..case
                },
                expected,
            );
        }
        let inner = &["aside d/e to d/e.vibe-kept", "repair d/e/x", "repair d/e/y"];
        check(
            Case {
                disk: &[("d/e@", "")],
                ..case
            },
            inner,
        );
    }

    #[test]
    fn a_file_that_becomes_a_directory_is_deleted_or_set_aside_if_edited() {
        let case = Case {
            incoming: &[("d/x", "1")],
            recorded: &[("d", "1")],
            ..Case::default()
        };
        check(
            Case {
                disk: &[("d", "1")],
                ..case
            },
            &["delete d", "add d/x"],
        );
        let hooked = Case {
            after: &[("d", "h")],
            disk: &[("d", "h")],
            ..case
        };
        check(hooked, &["delete d", "add d/x"]);
        let edited = Case {
            disk: &[("d", "x")],
            ..case
        };
        check(edited, &["aside d to d.vibe-kept", "add d/x"]);
        assert_eq!(run(edited).edited, []);
    }

    #[test]
    fn what_hooks_did_is_intact_while_the_package_publishes_the_same() {
        let case = Case {
            incoming: A,
            recorded: A,
            after: &[("a*", "h")],
            disk: &[("a*", "h")],
            ..Case::default()
        };
        check(case, &[]);
        assert_eq!(run(case).hook_changed, rows(A));
        let mut found = run(case);
        found.restore_hook_changes();
        assert_eq!(all_words(&found), ["reset a"]);
        assert_eq!(found.hook_changed, []);

        check(
            Case {
                disk: &[("a", "h")],
                ..case
            },
            &["repair a"],
        );
        check(
            Case {
                disk: &[("a*", "x")],
                ..case
            },
            &["repair a"],
        );
        check(Case { disk: &[], ..case }, &["repair a"]);
        check(
            Case {
                recorded: &[("a", "0")],
                ..case
            },
            &["change a"],
        );
        let deleted = Case {
            after: &[("a", "-")],
            disk: &[],
            ..case
        };
        check(deleted, &[]);
        assert_eq!(run(deleted).hook_changed, rows(A));
        check(
            Case {
                disk: &[("a", "x")],
                ..deleted
            },
            &["repair a"],
        );
    }

    #[test]
    fn without_a_record_files_as_hooks_left_them_are_ours_and_others_are_kept() {
        let case = Case {
            incoming: A,
            after: &[("a", "h")],
            disk: &[("a", "h")],
            ..Case::default()
        };
        check(
            Case {
                published: Some(A),
                ..case
            },
            &[],
        );
        check(case, &["add a"]);
        check(
            Case {
                disk: &[("a", "x")],
                ..case
            },
            &["aside a to a.vibe-kept", "add a"],
        );
    }

    #[test]
    fn a_made_path_is_replaced_while_its_listing_is_as_remembered() {
        let case = Case {
            incoming: A,
            made: &["a"],
            disk: &[("a", "h")],
            ..Case::default()
        };
        let aside = &["aside a to a.vibe-kept", "add a"];
        check(case, &["add a"]);
        check(
            Case {
                touched: &["a"],
                ..case
            },
            aside,
        );
        for disk in [[("a@", "")], [("a/m", "h")]] {
            check(
                Case {
                    disk: &disk,
                    ..case
                },
                &["unmake a", "add a"],
            );
            check(
                Case {
                    disk: &disk,
                    touched: &["a"],
                    ..case
                },
                aside,
            );
        }
        let below = Case {
            incoming: &[("a/x", "1")],
            ..case
        };
        check(below, &["unmake a", "add a/x"]);
        let inside = Case {
            disk: &[("a/x", "h")],
            ..below
        };
        check(inside, &["add a/x"]);
        let aside = &["aside a/x to a/x.vibe-kept", "add a/x"];
        check(
            Case {
                touched: &["a"],
                ..inside
            },
            aside,
        );
        check(
            Case {
                made: &["b"],
                ..inside
            },
            aside,
        );
        check(
            Case {
                disk: &[("a/x@", "")],
                ..inside
            },
            aside,
        );
    }

    #[test]
    fn what_a_cut_short_refresh_was_adding_is_ours_by_its_content_only() {
        let case = Case {
            incoming: A,
            adding: A,
            ..Case::default()
        };
        let user = &["aside a to a.vibe-kept", "add a"];
        check(case, &["add a"]);
        check(Case { disk: A, ..case }, &[]);
        check(
            Case {
                disk: &[("a", "x")],
                ..case
            },
            user,
        );
        check(
            Case {
                disk: &[("a*", "1")],
                ..case
            },
            user,
        );
        let other = Case {
            incoming: &[("a", "2")],
            ..case
        };
        check(Case { disk: A, ..other }, &["add a"]);
        check(
            Case {
                disk: &[("a", "x")],
                ..other
            },
            user,
        );
        let dropped = Case {
            incoming: &[],
            ..case
        };
        check(Case { disk: A, ..dropped }, &["delete a"]);
        check(
            Case {
                disk: &[("a", "x")],
                ..dropped
            },
            &[],
        );
        assert_eq!(
            run(Case {
                disk: &[("a", "x")],
                ..dropped
            })
            .edited,
            []
        );
        let changed = Case {
            recorded: &[("a", "0")],
            disk: A,
            ..dropped
        };
        check(changed, &["delete a"]);
    }

    #[test]
    fn kept_names_are_free_ones() {
        let case = Case {
            incoming: A,
            disk: &[("a", "x")],
            ..Case::default()
        };
        let second = &["aside a to a.vibe-kept.2", "add a"];
        let kept = ("a.vibe-kept", "x");
        check(
            Case {
                disk: &[("a", "x"), kept],
                ..case
            },
            second,
        );
        check(
            Case {
                disk: &[("a", "x"), ("a.vibe-kept/", "")],
                ..case
            },
            second,
        );
        check(
            Case {
                made: &["a.vibe-kept"],
                ..case
            },
            second,
        );
        check(
            Case {
                recorded: &[kept],
                ..case
            },
            second,
        );
        check(
            Case {
                recorded: &[("a.vibe-kept/f", "1")],
                ..case
            },
            second,
        );
        check(
            Case {
                adding: &[kept],
                ..case
            },
            second,
        );
        check(
            Case {
                adding: &[("a.vibe-kept/f", "1")],
                ..case
            },
            second,
        );
        for published in ["a.vibe-kept", "a.vibe-kept/f"] {
            let incoming = &[("a", "1"), (published, "1")];
            let add = format!("add {published}");
            check(
                Case { incoming, ..case },
                &["aside a to a.vibe-kept.2", "add a", &add],
            );
        }
        let disk = &[("a", "x"), kept, ("a.vibe-kept.2", "x")];
        check(
            Case { disk, ..case },
            &["aside a to a.vibe-kept.3", "add a"],
        );
    }

    #[test]
    fn a_name_too_long_to_grow_is_kept_under_a_digest() {
        for directory in ["", "d/"] {
            let long = format!("{directory}{}", "n".repeat(255));
            let hash = Sha256Digest::of(long.as_bytes()).to_string();
            let aside = format!("aside {long} to {directory}{}.vibe-kept", &hash[..16]);
            let case = Case {
                incoming: &[(&long, "1")],
                disk: &[(&long, "x")],
                ..Case::default()
            };
            check(case, &[&aside, &format!("add {long}")]);
        }
    }

    #[test]
    fn changes_come_as_deletions_then_clearing_then_writes() {
        let case = Case {
            incoming: &[("b", "1"), ("c", "1"), ("m/x", "1"), ("p", "2")],
            recorded: &[("p", "1"), ("y", "1"), ("z", "1")],
            made: &["m"],
            disk: &[
                ("b", "x"),
                ("c", "x"),
                ("m", "h"),
                ("p", "1"),
                ("y", "1"),
                ("z", "1"),
            ],
            ..Case::default()
        };
        let expected = &[
            "delete y",
            "delete z",
            "unmake m",
            "aside b to b.vibe-kept",
            "aside c to c.vibe-kept",
            "add b",
            "add c",
            "add m/x",
            "change p",
        ];
        check(case, expected);
    }

    #[test]
    fn a_reset_removes_what_hooks_made_and_keeps_what_the_user_changed_in_it() {
        let case = Case {
            made: &["m", "n", "o"],
            touched: &["n"],
            disk: &[("m/x", "h"), ("n/x", "u"), ("n.vibe-kept", "u")],
            ..Case::default()
        };
        check(case, &[]);
        check_reset(case, &["unmake m", "aside n to n.vibe-kept.2"]);
    }

    #[test]
    fn a_reset_spares_payload_and_what_is_cleared_already() {
        let case = Case {
            incoming: &[("d/p", "1"), ("f", "1"), ("t", "1")],
            recorded: &[("d/p", "1"), ("f", "1")],
            made: &["d", "f", "t", "w/m"],
            touched: &["d", "f"],
            disk: &[("d/p", "1"), ("d/x", "h"), ("f", "1"), ("t/x", "h")],
            ..Case::default()
        };
        check_reset(case, &["unmake t", "add t"]);
        let inside = Case {
            incoming: &[("t", "1")],
            recorded: &[],
            made: &["t/m"],
            disk: &[("t/m", "h"), ("t/u", "u")],
            ..case
        };
        check_reset(inside, &["aside t to t.vibe-kept", "add t"]);
    }

    fn check_unrecorded(case: Case<'_>, expected: Files<'_>) {
        let found = with_input(&case, |input| unrecorded(&diff(input), input));
        assert_eq!(found, rows(expected));
    }

    #[test]
    fn content_the_record_does_not_tell_is_known_before_it_is_touched() {
        let case = Case {
            incoming: &[("b", "2"), ("c", "1")],
            ..Case::default()
        };
        check_unrecorded(case, case.incoming);
        check_unrecorded(
            Case {
                disk: &[("b", "x"), ("c", "1")],
                ..case
            },
            &[("b", "2")],
        );
        check_unrecorded(
            Case {
                recorded: case.incoming,
                ..case
            },
            &[],
        );
        let changed = Case {
            recorded: &[("b", "1"), ("c", "1")],
            disk: &[("b", "1")],
            ..case
        };
        check_unrecorded(changed, &[("b", "2")]);
        let left = Case {
            adding: &[("b", "1")],
            disk: &[("b", "1"), ("c", "1")],
            ..case
        };
        check_unrecorded(left, &[("b", "1")]);
        let made = Case {
            made: &["b"],
            disk: &[("b*", "h"), ("c", "1")],
            ..case
        };
        check_unrecorded(made, &[("b*", "h")]);
        let hooked = Case {
            incoming: &[],
            recorded: A,
            after: &[("a", "h")],
            disk: &[("a", "h")],
            ..case
        };
        check_unrecorded(hooked, &[("a", "h")]);
    }
}
