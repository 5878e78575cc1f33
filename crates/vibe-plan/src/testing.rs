//! Short notation for trees, slots and their state in tests.
//!
//! A name may end in a mark: `p.sh*` is executable, `d/` a directory, `l@` a link, `f!` a pipe.
//! Directories on the way need not be written.

use std::collections::BTreeMap;

use vibe_core::contents::{DiskEntry, SlotContents};
use vibe_core::formats::record::SlotRecord;
use vibe_core::formats::state::{AfterFile, LinkMode, MadeKind, MadePath, SlotState};
use vibe_core::hook::{HookReason, Interpreter, Phase, PhaseState, SelectedHook};
use vibe_core::plan::{FileChange, WriteReason};
use vibe_core::{RelPath, Sha256Digest, SlotName, Tree, TreeId, TreeRow};

/// Names and what they hold.
pub(crate) type Files<'a> = &'a [(&'a str, &'a str)];

pub(crate) fn path(text: &str) -> RelPath {
    RelPath::new(text).unwrap()
}

pub(crate) fn digest(content: &str) -> Sha256Digest {
    Sha256Digest::of(content.as_bytes())
}

pub(crate) fn row(name: &str, content: &str) -> TreeRow {
    TreeRow {
        path: path(name.trim_end_matches('*')),
        digest: digest(content),
        exec: name.ends_with('*'),
    }
}

pub(crate) fn rows(files: Files<'_>) -> Vec<TreeRow> {
    files
        .iter()
        .map(|(name, content)| row(name, content))
        .collect()
}

pub(crate) fn tree(files: Files<'_>) -> Tree {
    Tree::new(rows(files)).unwrap()
}

pub(crate) fn record(version: &str, files: Files<'_>) -> SlotRecord {
    SlotRecord {
        package: "g/p".parse().unwrap(),
        version: version.parse().unwrap(),
        tree: tree(files),
    }
}

pub(crate) fn slot() -> SlotName {
    SlotName::new(&"g/p".parse().unwrap(), &vibe_core::Version::new(1, 0, 0))
}

pub(crate) fn contents(files: Files<'_>) -> SlotContents {
    let mut entries = BTreeMap::new();
    for (name, content) in files {
        let at = path(name.trim_end_matches(['*', '/', '@', '!']));
        for ancestor in at.ancestors() {
            entries.insert(ancestor, DiskEntry::Directory);
        }
        let entry = match name.chars().last() {
            Some('/') => DiskEntry::Directory,
            Some('@') => DiskEntry::Symlink,
            Some('!') => DiskEntry::Other,
            last => DiskEntry::File {
                digest: Some(digest(content)),
                exec: last == Some('*'),
            },
        };
        entries.insert(at, entry);
    }
    SlotContents {
        entries,
        ..SlotContents::default()
    }
}

/// What hooks left; content `-` means deleted.
pub(crate) fn after(files: Files<'_>) -> BTreeMap<RelPath, AfterFile> {
    let file = |(name, content): &(&str, &str)| {
        let row = row(name, content);
        let after = match *content {
            "-" => AfterFile::Deleted,
            _ => AfterFile::File {
                digest: row.digest,
                exec: row.exec,
            },
        };
        (row.path, after)
    };
    files.iter().map(file).collect()
}

pub(crate) fn made(paths: &[&str]) -> BTreeMap<RelPath, MadePath> {
    let made = MadePath {
        kind: MadeKind::Other,
        listing: digest("listing"),
    };
    paths.iter().map(|text| (path(text), made)).collect()
}

pub(crate) fn hook(phase: Phase) -> SelectedHook {
    SelectedHook {
        phase,
        script: path("hooks/p.sh"),
        digest: digest("script"),
        interpreter: Interpreter::Bash,
        program: "/bin/bash".into(),
    }
}

/// A row as a finished run without install hooks would have left it.
pub(crate) fn state(tree: TreeId, phases: &[(Phase, PhaseState)]) -> SlotState {
    SlotState {
        tree,
        phases: phases.iter().copied().collect(),
        reason: HookReason::Install,
        previous_version: None,
        after: BTreeMap::new(),
        made: BTreeMap::new(),
        adding: Vec::new(),
        link_mode: LinkMode::Reflink,
        boot: Some("old-boot".to_owned()),
        running: None,
    }
}

/// A change in words, such as `delete a` or `aside a to a.vibe-kept`.
pub(crate) fn words(change: &FileChange) -> String {
    match change {
        FileChange::SetAside { path, to } => format!("aside {path} to {to}"),
        FileChange::RemoveMade { path } => format!("unmake {path}"),
        FileChange::Delete { path } => format!("delete {path}"),
        FileChange::Write { path, because, .. } => match because {
            WriteReason::Added => format!("add {path}"),
            WriteReason::Changed => format!("change {path}"),
            WriteReason::Drifted => format!("repair {path}"),
            WriteReason::HookChange => format!("reset {path}"),
            WriteReason::Shared => format!("unshare {path}"),
        },
    }
}
