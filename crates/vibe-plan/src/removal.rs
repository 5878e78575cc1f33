//! What goes when a slot is no longer needed, and what stays.

use std::collections::BTreeSet;

use vibe_core::contents::{DiskEntry, SlotContents};
use vibe_core::formats::record::SlotRecord;
use vibe_core::formats::state::SlotState;
use vibe_core::plan::Remove;
use vibe_core::{RelPath, SlotName, Tree};

use crate::diff::{DiffInput, is_as_we_left};

/// Plans the removal of `slot`: recorded files that are as we or the package's own hooks left
/// them, and made paths whose listing is unchanged, go. Everything else stays and is named, by its
/// topmost path.
pub fn removal(
    slot: &SlotName,
    record: &SlotRecord,
    state: Option<&SlotState>,
    disk: &SlotContents,
) -> Remove {
    let nothing = Tree::default();
    let input = DiffInput::new(&nothing, &record.tree, state, disk);
    let made: Vec<RelPath> = input
        .made
        .keys()
        .filter(|path| disk.unchanged_made.contains(path) && disk.entries.contains_key(path))
        .cloned()
        .collect();
    let mut files: Vec<RelPath> = record
        .tree
        .rows()
        .iter()
        .chain(input.adding)
        .filter(|row| {
            disk.entries
                .get(&row.path)
                .is_some_and(|entry| is_as_we_left(&row.path, *entry, &input))
        })
        .map(|row| row.path.clone())
        .collect();
    files.sort();
    files.dedup();
    let payload = |directory: &RelPath| {
        record.tree.has_directory(directory)
            || input
                .adding
                .iter()
                .any(|row| row.path.starts_with(directory))
    };
    let kept = kept(&files, &made, disk, payload);
    Remove {
        slot: slot.clone(),
        files,
        made,
        kept,
    }
}

/// The topmost entries that neither go nor are directories of the payload. `files` and `made` are
/// sorted.
fn kept(
    files: &[RelPath],
    made: &[RelPath],
    disk: &SlotContents,
    is_payload_directory: impl Fn(&RelPath) -> bool,
) -> Vec<String> {
    let is_made = |path: &RelPath| made.binary_search(path).is_ok();
    let mut kept: BTreeSet<&RelPath> = BTreeSet::new();
    for (path, entry) in &disk.entries {
        let goes = files.binary_search(path).is_ok()
            || is_made(path)
            || path.ancestors().any(|above| is_made(&above));
        let passed = *entry == DiskEntry::Directory && is_payload_directory(path);
        let below = path.ancestors().any(|above| kept.contains(&above));
        if !goes && !passed && !below {
            kept.insert(path);
        }
    }
    kept.iter()
        .map(|path| path.to_string())
        .chain(disk.unnamed.iter().cloned())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Files, after, contents, made, path, record, rows, slot, state};

    #[derive(Clone, Copy, Default)]
    struct Case<'a> {
        recorded: Files<'a>,
        adding: Files<'a>,
        after: Files<'a>,
        made: &'a [&'a str],
        touched: &'a [&'a str],
        disk: Files<'a>,
    }

    fn plan(case: Case<'_>, with_state: bool) -> Remove {
        let record = record("1.0.0", case.recorded);
        let row = SlotState {
            adding: rows(case.adding),
            after: after(case.after),
            made: made(case.made),
            ..state(record.tree.id(), &[])
        };
        let mut disk = contents(case.disk);
        let unchanged = case.made.iter().filter(|name| !case.touched.contains(name));
        disk.unchanged_made = unchanged.map(|name| path(name)).collect();
        disk.unnamed = vec!["d/\\xff".to_owned()];
        removal(&slot(), &record, with_state.then_some(&row), &disk)
    }

    fn check(case: Case<'_>, files: &[&str], made: &[&str], kept: &[&str]) {
        let found = plan(case, true);
        let texts = |paths: &[RelPath]| paths.iter().map(RelPath::to_string).collect::<Vec<_>>();
        assert_eq!(found.slot, slot());
        assert_eq!(texts(&found.files), files);
        assert_eq!(texts(&found.made), made);
        let (unnamed, named) = found.kept.split_last().unwrap();
        assert_eq!(named, kept);
        assert_eq!(unnamed, "d/\\xff");
    }

    #[test]
    fn payload_as_published_or_as_hooks_left_it_goes() {
        let case = Case {
            recorded: &[("d/a", "1"), ("d/b", "1"), ("e", "1"), ("gone", "1")],
            after: &[("d/b*", "h"), ("gone", "-")],
            disk: &[("d/a", "1"), ("d/b*", "h"), ("e", "1")],
            ..Case::default()
        };
        check(case, &["d/a", "d/b", "e"], &[], &[]);
    }

    #[test]
    fn edited_payload_stays_and_is_named() {
        let case = Case {
            recorded: &[("d/a", "1"), ("e", "1"), ("x", "1")],
            ..Case::default()
        };
        let disk = &[("d/a", "u"), ("e@", ""), ("x*", "1")];
        check(Case { disk, ..case }, &[], &[], &["d/a", "e", "x"]);
        let link = Case {
            disk: &[("d@", ""), ("e", "1")],
            ..case
        };
        check(link, &["e"], &[], &["d"]);
        let directory = Case {
            disk: &[("e/u", "u")],
            ..case
        };
        check(directory, &[], &[], &["e"]);
    }

    #[test]
    fn what_is_not_ours_stays_and_is_named_by_its_topmost_path() {
        let case = Case {
            recorded: &[("d/a", "1")],
            disk: &[
                ("d/a", "1"),
                ("d/u", "u"),
                ("n/m/x", "u"),
                ("n/y", "u"),
                ("n-z", "u"),
            ],
            ..Case::default()
        };
        check(case, &["d/a"], &[], &["d/u", "n", "n-z"]);
    }

    #[test]
    fn made_paths_go_while_their_listing_is_as_remembered() {
        let case = Case {
            recorded: &[("a", "1")],
            made: &["gone", "m", "n"],
            touched: &["n"],
            disk: &[("a", "1"), ("m/x/y", "h"), ("m-z", "u"), ("n/x", "u")],
            ..Case::default()
        };
        check(case, &["a"], &["m"], &["m-z", "n"]);
    }

    #[test]
    fn content_of_a_refresh_cut_short_goes_once() {
        let case = Case {
            recorded: &[("b", "1"), ("c", "1")],
            adding: &[("a/x", "1"), ("b", "2"), ("c", "2")],
            disk: &[("a/x", "1"), ("b", "2"), ("c", "1")],
            ..Case::default()
        };
        check(case, &["a/x", "b", "c"], &[], &[]);
        let edited = Case {
            disk: &[("a/x", "u"), ("b", "u")],
            ..case
        };
        check(edited, &[], &[], &["a/x", "b"]);
    }

    #[test]
    fn without_state_only_published_files_go() {
        let case = Case {
            recorded: &[("a", "1"), ("b", "1")],
            after: &[("b", "h")],
            made: &["m"],
            disk: &[("a", "1"), ("b", "h"), ("m", "h")],
            ..Case::default()
        };
        let found = plan(case, false);
        assert_eq!(found.files, [path("a")]);
        assert_eq!(found.made, []);
        assert_eq!(found.kept, ["b", "m", "d/\\xff"]);
    }
}
