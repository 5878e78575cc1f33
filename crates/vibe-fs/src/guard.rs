//! Making sure that a place below a root is reached through real directories only.

use std::path::{Path, PathBuf};

use vibe_core::RelPath;

use crate::error::{FsError, shown};
use crate::stat::{EntryKind, stat_of};
use crate::system::create_directory;

/// What lies between a root and a path below it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Guard {
    /// Every directory on the way is a real one.
    Clear,
    /// The way ends here: this directory is absent, those above it are real.
    Absent(RelPath),
    /// The way leads through something that is no directory: nothing may be written or deleted
    /// beyond it.
    Blocked {
        /// What stands in the way.
        path: RelPath,
        /// What it is.
        kind: EntryKind,
    },
}

/// Why the directories above a path were not made.
#[derive(Debug, thiserror::Error)]
pub enum ParentError {
    /// A file call failed.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// Something that is no directory is in the way.
    #[error("{} is {} where a directory is needed", shown(path), kind.as_str())]
    Blocked {
        /// The full path of what is in the way.
        path: PathBuf,
        /// What it is.
        kind: EntryKind,
    },
}

/// Looks at every proper ancestor of `relative` below `root`, topmost first, without following
/// links. `root` itself is not looked at.
pub fn path_guard(root: &Path, relative: &RelPath) -> Result<Guard, FsError> {
    for path in relative.ancestors() {
        match stat_of(&path.under(root))?.map(|stat| stat.kind) {
            Some(EntryKind::Directory) => {}
            Some(kind) => return Ok(Guard::Blocked { path, kind }),
            None => return Ok(Guard::Absent(path)),
        }
    }
    Ok(Guard::Clear)
}

/// Makes the missing directories above `relative` below `root`, mode 0755 less the umask.
pub fn create_parents(root: &Path, relative: &RelPath) -> Result<(), ParentError> {
    loop {
        match path_guard(root, relative)? {
            Guard::Clear => return Ok(()),
            Guard::Blocked { path, kind } => {
                return Err(ParentError::Blocked {
                    path: path.under(root),
                    kind,
                });
            }
            Guard::Absent(first) => make_from(root, relative, &first)?,
        }
    }
}

/// Another thread may make one of them meanwhile; the guard then looks again.
fn make_from(root: &Path, relative: &RelPath, first: &RelPath) -> Result<(), FsError> {
    for path in relative.ancestors().skip_while(|path| path != first) {
        match create_directory(&path.under(root)) {
            Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => return Ok(()),
            outcome => outcome?,
        }
    }
    Ok(())
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn relative(text: &str) -> RelPath {
        RelPath::new(text).unwrap()
    }

    fn world() -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        fs::create_dir_all(directory.path().join("real/inner")).unwrap();
        fs::write(directory.path().join("real/file"), "").unwrap();
        symlink("real", directory.path().join("link")).unwrap();
        directory
    }

    #[test]
    fn the_first_thing_that_is_no_directory_is_named() {
        let world = world();
        let blocked = |path: &str, kind| Guard::Blocked {
            path: relative(path),
            kind,
        };
        for (path, guard) in [
            ("new", Guard::Clear),
            ("link", Guard::Clear),
            ("real/inner/new", Guard::Clear),
            (
                "real/absent/below/new",
                Guard::Absent(relative("real/absent")),
            ),
            ("link/inner/new", blocked("link", EntryKind::Symlink)),
            ("real/file/new", blocked("real/file", EntryKind::File)),
        ] {
            assert_eq!(
                path_guard(world.path(), &relative(path)).unwrap(),
                guard,
                "{path}"
            );
        }
    }

    #[test]
    fn missing_parents_are_made_and_present_ones_kept() {
        let world = world();
        for path in ["real/inner/a/b/file", "real/inner/a/b/file", "top"] {
            create_parents(world.path(), &relative(path)).unwrap();
        }
        let made = world.path().join("real/inner/a/b");
        assert!(made.is_dir() && !made.join("file").exists());
    }

    #[test]
    fn a_directory_that_another_made_meanwhile_is_looked_at_again() {
        let world = world();
        let path = relative("real/inner/new/file");
        make_from(world.path(), &path, &relative("real")).unwrap();
        assert!(!world.path().join("real/inner/new").exists());
        let gone = world.path().join("gone");
        let error = make_from(&gone, &path, &relative("real")).unwrap_err();
        assert!(error.is_not_found());
    }

    #[test]
    fn parents_are_never_made_through_a_link_or_a_file() {
        let world = world();
        for (path, kind) in [
            ("link/new/file", EntryKind::Symlink),
            ("real/file/new/x", EntryKind::File),
        ] {
            match create_parents(world.path(), &relative(path)) {
                Err(ParentError::Blocked { kind: found, .. }) => assert_eq!(found, kind),
                other => panic!("{path}: {other:?}"),
            }
        }
        assert!(!world.path().join("real/new").exists());
    }

    #[test]
    fn parents_made_by_several_threads_at_once_are_all_there() {
        let world = world();
        std::thread::scope(|scope| {
            for name in ["a", "b", "c", "d"] {
                let path = relative(&format!("x/y/z/{name}/file"));
                let root = world.path();
                scope.spawn(move || create_parents(root, &path).unwrap());
            }
        });
        assert_eq!(fs::read_dir(world.path().join("x/y/z")).unwrap().count(), 4);
    }
}
