//! Removing what is ours, never through a link, and saying what could not be removed.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use vibe_core::RelPath;

use crate::error::{FsError, shown};
use crate::guard::{Guard, path_guard};
use crate::stat::{EntryKind, Stat, is_absence, stat_of};
use crate::walk::list_dir;

/// Paths that a message names; more are counted.
const NAMED: usize = 10;

/// A tree that could not be removed whole.
#[derive(Debug, thiserror::Error)]
#[error("could not remove {}: {count} left, {}", shown(path), list(left))]
pub struct RemoveError {
    /// What was to be removed.
    pub path: PathBuf,
    /// The first of the paths that could not be removed, in byte order.
    pub left: Vec<PathBuf>,
    /// How many could not be removed; directories that are only not empty do not count.
    pub count: usize,
    /// Why the first of them could not.
    #[source]
    pub source: FsError,
}

fn list(paths: &[PathBuf]) -> String {
    let shown: Vec<String> = paths.iter().map(|path| shown(path)).collect();
    shown.join(", ")
}

/// Removes `path` and, if it is a directory, everything in it; an absent one is no error. Links
/// are removed, not followed. A directory that we may not read or change is first given back its
/// permissions. Goes on after a failure.
pub fn remove_tree(path: &Path) -> Result<(), RemoveError> {
    // The library's call is safe against directories swapped for links, and fast; what it cannot
    // remove is then gone through one by one.
    let stat = stat_of(path);
    let is_directory = matches!(&stat, Ok(Some(stat)) if stat.kind == EntryKind::Directory);
    if is_directory && std::fs::remove_dir_all(path).is_ok() {
        return Ok(());
    }
    let mut failures = Vec::new();
    remove_entry(path, stat, &mut failures);
    let count = failures.len();
    let left = failures
        .iter()
        .take(NAMED)
        .map(|e| e.path.clone())
        .collect();
    match failures.into_iter().next() {
        None => Ok(()),
        Some(source) => Err(RemoveError {
            path: path.to_path_buf(),
            left,
            count,
            source,
        }),
    }
}

fn remove_entry(path: &Path, stat: Result<Option<Stat>, FsError>, failures: &mut Vec<FsError>) {
    let outcome = match stat {
        Ok(Some(stat)) if stat.kind == EntryKind::Directory => {
            return remove_directory(path, failures);
        }
        Ok(Some(_)) => unless_absent(std::fs::remove_file(path), path),
        Ok(None) => Ok(()),
        Err(error) => Err(error),
    };
    failures.extend(outcome.err());
}

fn remove_directory(path: &Path, failures: &mut Vec<FsError>) {
    let before = failures.len();
    make_accessible(path);
    match list_dir(path) {
        Ok(entries) => {
            for entry in entries {
                remove_entry(&path.join(&entry.relative), Ok(Some(entry.stat)), failures);
            }
        }
        Err(error) => failures.push(error),
    }
    if failures.len() == before {
        failures.extend(unless_absent(std::fs::remove_dir(path), path).err());
    }
}

fn unless_absent(outcome: std::io::Result<()>, path: &Path) -> Result<(), FsError> {
    match outcome {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        outcome => outcome.map_err(FsError::at("remove", path)),
    }
}

/// A failure shows when the directory is listed or changed.
#[cfg(unix)]
fn make_accessible(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    let _ = std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o700));
}

#[cfg(not(unix))]
fn make_accessible(_path: &Path) {}

/// Removes the file or link `path` if `still` says yes to its stat. Returns whether it was
/// removed; an absent one is not. A directory is an error.
pub fn remove_file_if(path: &Path, still: impl FnOnce(&Stat) -> bool) -> Result<bool, FsError> {
    match stat_of(path)? {
        Some(stat) if still(&stat) => std::fs::remove_file(path)
            .map(|()| true)
            .map_err(FsError::at("remove", path)),
        _ => Ok(false),
    }
}

/// Removes the directories above `relative` that are empty, deepest first, up to but not `root`.
/// Nothing is removed through a link.
pub fn remove_empty_directories_up(root: &Path, relative: &RelPath) -> Result<(), FsError> {
    let mut next = relative.parent();
    while let Some(directory) = next {
        if matches!(path_guard(root, &directory)?, Guard::Blocked { .. }) {
            return Ok(());
        }
        let path = directory.under(root);
        match std::fs::remove_dir(&path) {
            Ok(()) => {}
            Err(error) if is_occupied(error.kind()) => return Ok(()),
            Err(error) if is_absence(error.kind()) => {}
            Err(error) => return Err(FsError::new("remove", &path, error)),
        }
        next = directory.parent();
    }
    Ok(())
}

fn is_occupied(kind: ErrorKind) -> bool {
    matches!(
        kind,
        ErrorKind::DirectoryNotEmpty | ErrorKind::AlreadyExists
    )
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use vibe_testkit::set_mode;

    #[test]
    fn a_tree_goes_and_what_its_links_point_to_stays() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir_all(at("tree/a/b")).unwrap();
        fs::create_dir(at("other")).unwrap();
        fs::write(at("other/kept"), "").unwrap();
        fs::write(at("tree/a/b/file"), "").unwrap();
        symlink(at("other"), at("tree/a/link")).unwrap();
        symlink(at("other"), at("link")).unwrap();
        remove_tree(&at("tree")).unwrap();
        remove_tree(&at("link")).unwrap();
        remove_tree(&at("absent")).unwrap();
        assert!(at("other/kept").is_file());
        assert!(!at("tree").exists() && !at("link").is_symlink());
        remove_tree(&at("other/kept")).unwrap();
        assert!(!at("other/kept").exists());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn directories_without_permissions_are_opened_first() {
        vibe_testkit::as_ordinary_user(|| {
            let directory = tempfile::tempdir().unwrap();
            let tree = directory.path().join("tree");
            fs::create_dir_all(tree.join("closed/inner")).unwrap();
            fs::create_dir_all(tree.join("fixed")).unwrap();
            fs::write(tree.join("closed/inner/file"), "").unwrap();
            fs::write(tree.join("fixed/file"), "").unwrap();
            set_mode(&tree.join("closed/inner"), 0o000);
            set_mode(&tree.join("closed"), 0o000);
            set_mode(&tree.join("fixed"), 0o555);
            assert!(fs::remove_dir_all(&tree).is_err(), "permissions bind here");
            remove_tree(&tree).unwrap();
            assert!(!tree.exists());
        });
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_is_left_is_named_and_the_rest_goes() {
        vibe_testkit::as_ordinary_user(|| {
            let directory = tempfile::tempdir().unwrap();
            let holder = directory.path().join("holder");
            fs::create_dir_all(holder.join("tree/a")).unwrap();
            fs::write(holder.join("tree/a/file"), "").unwrap();
            set_mode(&holder, 0o555);
            let error = remove_tree(&holder.join("tree")).unwrap_err();
            set_mode(&holder, 0o755);
            assert_eq!((error.count, error.left), (1, vec![holder.join("tree")]));
            assert!(!holder.join("tree/a").exists());
        });
    }

    #[test]
    fn what_another_removed_meanwhile_is_no_failure() {
        let removed = |kind: ErrorKind| unless_absent(Err(kind.into()), Path::new("x"));
        assert!(removed(ErrorKind::NotFound).is_ok());
        assert!(removed(ErrorKind::PermissionDenied).is_err());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn an_empty_directory_that_must_stay_is_told() {
        vibe_testkit::as_ordinary_user(|| {
            let directory = tempfile::tempdir().unwrap();
            let fixed = directory.path().join("fixed");
            fs::create_dir_all(fixed.join("empty")).unwrap();
            set_mode(&fixed, 0o555);
            let path = RelPath::new("fixed/empty/file").unwrap();
            let outcome = remove_empty_directories_up(directory.path(), &path);
            set_mode(&fixed, 0o755);
            assert_eq!(outcome.unwrap_err().path, fixed.join("empty"));
        });
    }

    #[test]
    fn a_long_list_of_what_is_left_is_cut_and_counted() {
        let failure = |n: usize| {
            let path = PathBuf::from(format!("/x/{n}"));
            FsError::new("remove", &path, ErrorKind::PermissionDenied.into())
        };
        let error = RemoveError {
            path: "/x".into(),
            left: vec!["/x/0".into(), "/x/1\n".into()],
            count: 12,
            source: failure(0),
        };
        assert_eq!(
            error.to_string(),
            "could not remove /x: 12 left, /x/0, /x/1\\n"
        );
    }

    #[test]
    fn a_file_goes_only_while_it_is_what_it_was() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        assert!(!remove_file_if(&path, |_| true).unwrap());
        fs::write(&path, "12").unwrap();
        assert!(!remove_file_if(&path, |stat| stat.size == 1).unwrap());
        assert!(path.exists());
        assert!(remove_file_if(&path, |stat| stat.size == 2).unwrap());
        assert!(!path.exists());
        assert!(remove_file_if(directory.path(), |_| true).is_err());
    }

    #[test]
    fn empty_directories_go_up_to_the_first_that_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let remove = |path: &str| {
            remove_empty_directories_up(directory.path(), &RelPath::new(path).unwrap()).unwrap();
        };
        fs::create_dir_all(at("a/b/c/d")).unwrap();
        fs::write(at("a/kept"), "").unwrap();
        remove("a/b/c/d/file");
        assert!(at("a/kept").is_file() && !at("a/b").exists());
        fs::remove_file(at("a/kept")).unwrap();
        remove("a/absent/file");
        assert!(!at("a").exists() && directory.path().is_dir());
        remove("file");
    }

    #[test]
    fn no_directory_is_removed_through_a_link() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::create_dir_all(at("other/empty")).unwrap();
        fs::create_dir(at("root")).unwrap();
        symlink("../other", at("root/link")).unwrap();
        for path in ["link/empty/file", "link/file"] {
            remove_empty_directories_up(&at("root"), &RelPath::new(path).unwrap()).unwrap();
        }
        assert!(at("other/empty").is_dir() && at("root/link").is_symlink());
    }
}
