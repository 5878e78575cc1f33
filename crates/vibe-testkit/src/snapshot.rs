//! A directory at one moment, in full.

use std::collections::BTreeMap;
use std::fmt;
use std::fs::Metadata;
use std::path::Path;
use std::time::UNIX_EPOCH;

use vibe_core::Sha256Digest;
use vibe_core::text::escape_bytes;

use crate::done;

/// Everything below a directory, links not followed. Two snapshots that are equal had the same
/// names, kinds, modes, bytes and times.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TreeSnapshot {
    /// By path below the directory, with `/` and with odd bytes escaped.
    pub entries: BTreeMap<String, SnapshotEntry>,
}

/// One file, directory or link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnapshotEntry {
    /// What it is.
    pub kind: EntryKind,
    /// The permission bits, 0 to 0o7777; 0 where the system has none.
    pub mode: u32,
    /// What a file holds; `None` for everything else.
    pub sha256: Option<Sha256Digest>,
    /// When it was last written, in nanoseconds since 1970.
    pub mtime_ns: i128,
}

/// What an entry is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link, with its target as it is written.
    Symlink(String),
    /// A pipe, a socket or a device.
    Other,
}

impl TreeSnapshot {
    /// Takes a snapshot of what is below `directory`. A directory that does not exist is empty.
    pub fn of(directory: &Path) -> Self {
        if !directory.exists() {
            return Self::default();
        }
        let walk = walkdir::WalkDir::new(directory).min_depth(1);
        let entry = |found: walkdir::Result<walkdir::DirEntry>| {
            let found = done("walking", directory, found);
            let relative = found.path().strip_prefix(directory);
            let relative = relative.expect("a walk stays below its start");
            let metadata = done("looking at", found.path(), found.metadata());
            (shown(relative), SnapshotEntry::of(found.path(), &metadata))
        };
        Self {
            entries: walk.into_iter().map(entry).collect(),
        }
    }

    /// The same with all times 0: equal where names, kinds, modes and bytes are.
    pub fn ignoring_times(mut self) -> Self {
        self.entries
            .values_mut()
            .for_each(|entry| entry.mtime_ns = 0);
        self
    }

    /// What `after` has that this has not: a line for each entry, sorted by path, that begins with
    /// `+` (new), `-` (gone) or `~` (changed: what, from what, to what). Empty if they are equal.
    pub fn diff(&self, after: &Self) -> String {
        let mut paths: Vec<&String> = self.entries.keys().chain(after.entries.keys()).collect();
        paths.sort();
        paths.dedup();
        let line = |path: &String| match (self.entries.get(path), after.entries.get(path)) {
            (None, Some(new)) => Some(format!("+ {path} ({new})\n")),
            (Some(old), None) => Some(format!("- {path} ({old})\n")),
            (Some(old), Some(new)) if old != new => Some(format!("~ {path} {}\n", old.diff(new))),
            _ => None,
        };
        paths.into_iter().filter_map(line).collect()
    }

    /// Fails, showing the difference, unless `after` is equal.
    #[track_caller]
    pub fn assert_unchanged(&self, after: &Self) {
        let difference = self.diff(after);
        assert!(difference.is_empty(), "the tree changed:\n{difference}");
    }
}

impl SnapshotEntry {
    fn of(path: &Path, metadata: &Metadata) -> Self {
        let kind = match metadata.file_type() {
            kind if kind.is_file() => EntryKind::File,
            kind if kind.is_dir() => EntryKind::Directory,
            kind if kind.is_symlink() => {
                EntryKind::Symlink(shown(&done("reading", path, std::fs::read_link(path))))
            }
            _ => EntryKind::Other,
        };
        let sha256 = (kind == EntryKind::File)
            .then(|| Sha256Digest::of(&done("reading", path, std::fs::read(path))));
        Self {
            kind,
            mode: mode(metadata),
            sha256,
            mtime_ns: mtime_ns(path, metadata),
        }
    }

    fn diff(&self, new: &Self) -> String {
        let fields = [
            ("kind", self.kind.to_string(), new.kind.to_string()),
            ("mode", octal(self.mode), octal(new.mode)),
            ("sha256", short(self.sha256), short(new.sha256)),
            ("mtime", self.mtime_ns.to_string(), new.mtime_ns.to_string()),
        ];
        let changed = fields.iter().filter(|(_, old, new)| old != new);
        let words: Vec<String> = changed
            .map(|(name, old, new)| format!("{name} {old} -> {new}"))
            .collect();
        words.join(", ")
    }
}

impl fmt::Display for SnapshotEntry {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (mode, digest) = (octal(self.mode), short(self.sha256));
        write!(out, "{} {mode} {digest}", self.kind)
    }
}

impl fmt::Display for EntryKind {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            EntryKind::File => out.write_str("file"),
            EntryKind::Directory => out.write_str("directory"),
            EntryKind::Symlink(target) => write!(out, "link to {target}"),
            EntryKind::Other => out.write_str("other"),
        }
    }
}

fn octal(mode: u32) -> String {
    format!("{mode:04o}")
}

/// The digest's first twelve digits, or `-`: enough to tell two files apart in a test's output.
fn short(digest: Option<Sha256Digest>) -> String {
    digest.map_or_else(|| "-".to_owned(), |it| it.to_string()[..12].to_owned())
}

/// A path as text on every system.
fn shown(path: &Path) -> String {
    let text = escape_bytes(path.as_os_str().as_encoded_bytes());
    match cfg!(windows) {
        true => text.replace('\\', "/"),
        false => text,
    }
}

fn mtime_ns(path: &Path, metadata: &Metadata) -> i128 {
    let modified = done("reading the time of", path, metadata.modified());
    let nanoseconds = |it: std::time::Duration| {
        i128::try_from(it.as_nanos()).expect("a file's time is no more than 2^64 seconds away")
    };
    match modified.duration_since(UNIX_EPOCH) {
        Ok(after) => nanoseconds(after),
        Err(before) => -nanoseconds(before.duration()),
    }
}

#[cfg(unix)]
fn mode(metadata: &Metadata) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    metadata.permissions().mode() & 0o7777
}

#[cfg(not(unix))]
fn mode(_metadata: &Metadata) -> u32 {
    0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::write_file;

    fn tree() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        write_file(&directory.path().join("a.txt"), b"abc");
        write_file(&directory.path().join("sub/b.txt"), b"");
        directory
    }

    #[test]
    fn a_snapshot_holds_every_entry() {
        let directory = tree();
        let snapshot = TreeSnapshot::of(directory.path());
        let paths: Vec<&str> = snapshot.entries.keys().map(String::as_str).collect();
        assert_eq!(paths, ["a.txt", "sub", "sub/b.txt"]);
        assert_eq!(snapshot.entries["sub"].kind, EntryKind::Directory);
        assert_eq!(snapshot.entries["sub"].sha256, None);
        let file = &snapshot.entries["a.txt"];
        assert_eq!(file.kind, EntryKind::File);
        assert_eq!(file.sha256, Some(Sha256Digest::of(b"abc")));
        assert!(file.mtime_ns > 0);
        let missing = TreeSnapshot::of(&directory.path().join("missing"));
        assert_eq!(missing, TreeSnapshot::default());
    }

    #[test]
    fn a_diff_names_what_is_new_gone_and_changed() {
        let directory = tree();
        let before = TreeSnapshot::of(directory.path()).ignoring_times();
        std::fs::write(directory.path().join("a.txt"), "abd").unwrap();
        std::fs::remove_file(directory.path().join("sub/b.txt")).unwrap();
        std::fs::create_dir(directory.path().join("new")).unwrap();
        let after = TreeSnapshot::of(directory.path()).ignoring_times();
        let diff = before.diff(&after);
        let lines: Vec<&str> = diff.lines().collect();
        assert_eq!(lines.len(), 3, "{diff}");
        assert_eq!(lines[0], "~ a.txt sha256 ba7816bf8f01 -> a52d159f262b");
        assert!(lines[1].starts_with("+ new (directory "), "{diff}");
        assert!(lines[2].starts_with("- sub/b.txt (file "), "{diff}");
        assert_eq!(before.diff(&before), "");
    }

    #[test]
    fn a_time_is_a_difference_unless_ignored() {
        let directory = tree();
        let before = TreeSnapshot::of(directory.path());
        let mut after = before.clone();
        after.entries.get_mut("a.txt").unwrap().mtime_ns += 1;
        assert!(before.diff(&after).starts_with("~ a.txt mtime "));
        before
            .ignoring_times()
            .assert_unchanged(&after.ignoring_times());
    }

    #[test]
    #[should_panic(expected = "the tree changed:\n- a.txt")]
    fn a_change_fails_the_assertion() {
        let mut before = TreeSnapshot::of(tree().path());
        before.entries.retain(|path, _| path == "a.txt");
        before.assert_unchanged(&TreeSnapshot::default());
    }

    #[cfg(unix)]
    #[test]
    fn links_are_shown_and_not_followed() {
        use std::os::unix::ffi::OsStrExt;
        let directory = tree();
        let link = |name: &[u8], target: &str| {
            let path = directory.path().join(std::ffi::OsStr::from_bytes(name));
            std::os::unix::fs::symlink(target, path).unwrap();
        };
        link(b"to-sub", "sub");
        link(b"dangling-\xE9", "nowhere");
        let snapshot = TreeSnapshot::of(directory.path());
        let target = |path: &str| snapshot.entries[path].kind.clone();
        assert_eq!(target("to-sub"), EntryKind::Symlink("sub".to_owned()));
        assert_eq!(
            target("dangling-\\xE9"),
            EntryKind::Symlink("nowhere".to_owned())
        );
        assert!(!snapshot.entries.contains_key("to-sub/b.txt"));
    }
}
