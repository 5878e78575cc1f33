//! Listing directories and trees, by name bytes, without following links.

use std::fs::Metadata;
use std::path::{Component, Path, PathBuf};

use crate::error::FsError;
use crate::stat::{EntryKind, Stat, permissions_of};

/// One entry found in a directory or tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RawEntry {
    /// Its path, relative to what was listed.
    pub relative: PathBuf,
    /// What it is.
    pub stat: Stat,
    /// The twelve permission bits, setuid to world; `0o644` on Windows.
    pub permissions: u32,
}

impl RawEntry {
    fn new(relative: PathBuf, metadata: &Metadata) -> Self {
        Self {
            relative,
            stat: Stat::from_metadata(metadata),
            permissions: permissions_of(metadata),
        }
    }

    /// The relative path as bytes, components joined by `/`: what a path in a package is made from.
    pub fn path_bytes(&self) -> Vec<u8> {
        let names: Vec<&[u8]> = self
            .relative
            .components()
            .map(|component| match component {
                Component::Normal(name) => name.as_encoded_bytes(),
                other => other.as_os_str().as_encoded_bytes(),
            })
            .collect();
        names.join(&b'/')
    }
}

/// Everything below `root`, each directory before what is in it, by name. Links are not followed
/// (not even `root`), and other file systems mounted below `root` are not entered.
pub fn walk(root: &Path) -> impl Iterator<Item = Result<RawEntry, FsError>> {
    let root = root.to_path_buf();
    walkdir::WalkDir::new(&root)
        .min_depth(1)
        .follow_root_links(false)
        .same_file_system(true)
        .sort_by_file_name()
        .into_iter()
        .map(move |entry| {
            let entry = entry.map_err(|error| walk_error(&root, error))?;
            let metadata = entry.metadata().map_err(|error| walk_error(&root, error))?;
            let relative = entry.path().strip_prefix(&root).unwrap_or(entry.path());
            Ok(RawEntry::new(relative.to_path_buf(), &metadata))
        })
}

fn walk_error(root: &Path, error: walkdir::Error) -> FsError {
    let path = error.path().unwrap_or(root).to_path_buf();
    FsError::new("list", &path, error.into())
}

/// What is in the directory `path`, by name.
pub fn list_dir(path: &Path) -> Result<Vec<RawEntry>, FsError> {
    let fail = FsError::at("list", path);
    let mut entries = Vec::new();
    for entry in path.read_dir().map_err(&fail)? {
        let entry = entry.map_err(&fail)?;
        let metadata = entry
            .metadata()
            .map_err(FsError::at("look at", &entry.path()))?;
        entries.push(RawEntry::new(entry.file_name().into(), &metadata));
    }
    entries.sort_by(|a, b| name_bytes(a).cmp(name_bytes(b)));
    Ok(entries)
}

fn name_bytes(entry: &RawEntry) -> &[u8] {
    entry.relative.as_os_str().as_encoded_bytes()
}

/// The bytes of all files below `root`, as far as they can be looked at: for a report of what is
/// about to be removed, which others may be removing as well.
pub fn bytes_below(root: &Path) -> u64 {
    walk(root)
        .filter_map(Result::ok)
        .filter(|entry| entry.stat.kind == EntryKind::File)
        .fold(0, |sum, entry| sum.saturating_add(entry.stat.size))
}

/// Where the symbolic link `path` points, as it is written.
pub fn read_link(path: &Path) -> Result<PathBuf, FsError> {
    std::fs::read_link(path).map_err(FsError::at("read the link", path))
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::symlink;

    fn names(entries: &[RawEntry]) -> Vec<String> {
        let shown = |entry: &RawEntry| vibe_core::text::escape_bytes(&entry.path_bytes());
        entries.iter().map(shown).collect()
    }

    #[test]
    fn a_tree_is_walked_by_name_and_links_are_entries() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir_all(at("b/c")).unwrap();
        fs::write(at("b/c/file"), "").unwrap();
        fs::write(at("a"), "").unwrap();
        fs::write(at("b-x"), "").unwrap();
        symlink("b", at("z")).unwrap();
        fs::write(directory.path().join(OsStr::from_bytes(b"caf\xe9\n")), "").unwrap();
        let entries: Vec<RawEntry> = walk(directory.path()).map(Result::unwrap).collect();
        assert_eq!(
            names(&entries),
            ["a", "b", "b/c", "b/c/file", "b-x", "caf\\xE9\\n", "z"]
        );
        assert_eq!(entries[6].stat.kind, EntryKind::Symlink);
        assert_eq!(read_link(&at("z")).unwrap(), Path::new("b"));
        let listed = list_dir(directory.path()).unwrap();
        assert_eq!(names(&listed), ["a", "b", "b-x", "caf\\xE9\\n", "z"]);
        assert_eq!(listed[0], entries[0]);
        assert_eq!(walk(&at("z")).count(), 0, "a link is not entered");
    }

    #[test]
    fn the_bytes_of_a_directory_are_those_of_its_files() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir_all(at("a/b")).unwrap();
        fs::write(at("a/b/file"), "12345").unwrap();
        fs::write(at("a/file"), "123").unwrap();
        symlink("b", at("a/link")).unwrap();
        assert_eq!(bytes_below(&at("a")), 8);
        assert_eq!(bytes_below(&at("a/link")), 0);
        assert_eq!(bytes_below(&at("absent")), 0);
    }

    #[test]
    fn what_cannot_be_listed_is_named() {
        let directory = tempfile::tempdir().unwrap();
        let absent = directory.path().join("absent");
        let error = walk(&absent).next().unwrap().unwrap_err();
        assert_eq!((&error.path, error.is_not_found()), (&absent, true));
        assert_eq!(list_dir(&absent).unwrap_err().path, absent);
        assert_eq!(read_link(&absent).unwrap_err().path, absent);
    }
}
