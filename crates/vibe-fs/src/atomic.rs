//! Replacing a file as a whole: the old content, or the new one, at any instant.

use std::fs::{File, Metadata, Permissions};
use std::io::{ErrorKind, Write as _};
use std::path::Path;

use tempfile::{NamedTempFile, TempPath};

use crate::error::FsError;
use crate::open::create_new;
use crate::rename::rename_over;
use crate::stat::is_absence;
use crate::system::sync_directory;

/// Whether a written file must survive a loss of power.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Durability {
    /// The file and its directory entry are on disk when the call returns.
    Synced,
    /// The system writes it when it likes.
    Unsynced,
}

/// Writes `bytes` to a temporary file in `staging` (mode 0644 less the umask) and renames it over
/// `target`; where that is another file system, over a temporary file beside `target`. A link at
/// `target` is replaced, a directory refused. After a failure `target` is as it was and the
/// temporary file is gone.
pub fn write_atomic(
    target: &Path,
    bytes: &[u8],
    staging: &Path,
    durability: Durability,
) -> Result<(), FsError> {
    let write = Write {
        target,
        bytes,
        permissions: None,
        durability,
    };
    write.renamed(staging, &mut rename_over)
}

/// [`write_atomic`] for a file of the user's: where a regular file is replaced, its permissions stay.
pub fn replace_atomic(
    target: &Path,
    bytes: &[u8],
    staging: &Path,
    durability: Durability,
) -> Result<(), FsError> {
    let write = Write {
        target,
        bytes,
        permissions: permissions_to_keep(target)?,
        durability,
    };
    write.renamed(staging, &mut rename_over)
}

/// The permissions of the regular file `target`, if it is one; without set-user-id and the like, and
/// none where the system has no modes.
fn permissions_to_keep(target: &Path) -> Result<Option<Permissions>, FsError> {
    let metadata = match std::fs::symlink_metadata(target) {
        Err(error) if is_absence(error.kind()) => return Ok(None),
        found => found.map_err(FsError::at("look at", target))?,
    };
    Ok(match metadata.is_file() {
        true => plain_permissions(&metadata),
        false => None,
    })
}

#[cfg(unix)]
fn plain_permissions(metadata: &Metadata) -> Option<Permissions> {
    use std::os::unix::fs::PermissionsExt as _;
    Some(Permissions::from_mode(
        metadata.permissions().mode() & 0o777,
    ))
}

#[cfg(not(unix))]
fn plain_permissions(_: &Metadata) -> Option<Permissions> {
    None
}

/// Creates the file `path` with `bytes`, mode 0644 less the umask, and the directories above it
/// where they are missing. Fails if anything is there.
pub fn create_new_file(path: &Path, bytes: &[u8]) -> Result<(), FsError> {
    if let Some(parent) = path.parent() {
        crate::system::create_directory_all(parent)?;
    }
    create_new(path, false)
        .and_then(|mut file| file.write_all(bytes))
        .map_err(FsError::at("create", path))
}

type Rename<'a> = &'a mut dyn FnMut(&Path, &Path) -> Result<(), FsError>;

/// A file to be replaced.
struct Write<'a> {
    target: &'a Path,
    bytes: &'a [u8],
    /// What the new file gets instead of mode 0644 less the umask.
    permissions: Option<Permissions>,
    durability: Durability,
}

impl Write<'_> {
    fn renamed(&self, staging: &Path, rename: Rename) -> Result<(), FsError> {
        let directory = directory_of(self.target);
        match self.by_way_of(staging, rename) {
            Err(error) if error.kind() == ErrorKind::CrossesDevices => {
                self.by_way_of(directory, rename)?;
            }
            outcome => outcome?,
        }
        match self.durability {
            Durability::Synced => sync_directory(directory),
            Durability::Unsynced => Ok(()),
        }
    }

    fn by_way_of(&self, staging: &Path, rename: Rename) -> Result<(), FsError> {
        let mut temporary = self.temporary(staging)?;
        rename(&temporary, self.target)?;
        temporary.disable_cleanup(true);
        Ok(())
    }

    fn temporary(&self, staging: &Path) -> Result<TempPath, FsError> {
        let mut temporary: NamedTempFile<File> = tempfile::Builder::new()
            .prefix(".vibe-tmp-")
            .make_in(staging, |path| create_new(path, false))
            .map_err(FsError::at("create a temporary file in", staging))?;
        let written = self.fill(temporary.as_file_mut());
        written.map_err(FsError::at("write", temporary.path()))?;
        Ok(temporary.into_temp_path())
    }

    /// The permissions first: nobody who may not read the old content reads the new one meanwhile.
    fn fill(&self, file: &mut File) -> std::io::Result<()> {
        if let Some(permissions) = &self.permissions {
            file.set_permissions(permissions.clone())?;
        }
        file.write_all(self.bytes)?;
        match self.durability {
            Durability::Synced => file.sync_all(),
            Durability::Unsynced => Ok(()),
        }
    }
}

fn directory_of(target: &Path) -> &Path {
    match target.parent() {
        Some(parent) if !parent.as_os_str().is_empty() => parent,
        _ => Path::new("."),
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::mode_under_umask;
    use std::fs;
    use std::os::unix::fs::symlink;
    use vibe_testkit::{mode_of, set_mode};

    struct World {
        directory: tempfile::TempDir,
    }

    impl World {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            fs::create_dir(directory.path().join("staging")).unwrap();
            Self { directory }
        }

        fn at(&self, name: &str) -> std::path::PathBuf {
            self.directory.path().join(name)
        }

        fn write(&self, name: &str, durability: Durability) -> Result<(), FsError> {
            write_atomic(&self.at(name), b"new", &self.at("staging"), durability)
        }

        fn staged(&self) -> usize {
            fs::read_dir(self.at("staging")).unwrap().count()
        }
    }

    #[test]
    fn a_bare_name_lies_in_the_working_directory() {
        assert_eq!(directory_of(Path::new("a/b")), Path::new("a"));
        assert_eq!(directory_of(Path::new("a")), Path::new("."));
    }

    #[test]
    fn a_file_is_created_or_replaced_with_an_ordinary_mode() {
        let world = World::new();
        fs::write(world.at("old"), "old content").unwrap();
        let mode = mode_under_umask(world.directory.path(), 0o644);
        for durability in [Durability::Synced, Durability::Unsynced] {
            for name in ["old", "fresh"] {
                world.write(name, durability).unwrap();
                assert_eq!(fs::read(world.at(name)).unwrap(), b"new");
                assert_eq!(mode_of(&world.at(name)), mode);
            }
        }
        assert_eq!(world.staged(), 0);
    }

    #[test]
    fn a_file_of_the_user_keeps_its_permissions_and_nothing_else_gets_any() {
        let world = World::new();
        let replace = |name: &str| {
            let (target, staging) = (world.at(name), world.at("staging"));
            replace_atomic(&target, b"new", &staging, Durability::Unsynced).unwrap();
            assert_eq!(fs::read(&target).unwrap(), b"new");
            mode_of(&target)
        };
        for (before, after) in [
            (0o600, 0o600),
            (0o444, 0o444),
            (0o666, 0o666),
            (0o4755, 0o755),
        ] {
            fs::write(world.at("file"), "old").unwrap();
            set_mode(&world.at("file"), before);
            assert_eq!(replace("file"), after);
            fs::remove_file(world.at("file")).unwrap();
        }
        let ordinary = mode_under_umask(world.directory.path(), 0o644);
        assert_eq!(replace("fresh"), ordinary);
        symlink("fresh", world.at("link")).unwrap();
        assert_eq!(replace("link"), ordinary);
        assert_eq!(world.staged(), 0);
    }

    #[test]
    fn replacing_makes_a_new_inode_and_leaves_other_names_of_the_old_one() {
        let world = World::new();
        fs::write(world.at("file"), "old").unwrap();
        fs::hard_link(world.at("file"), world.at("other")).unwrap();
        world.write("file", Durability::Unsynced).unwrap();
        assert_eq!(fs::read(world.at("other")).unwrap(), b"old");
    }

    #[test]
    fn a_link_is_replaced_and_not_followed() {
        let world = World::new();
        fs::write(world.at("victim"), "kept").unwrap();
        symlink("victim", world.at("link")).unwrap();
        world.write("link", Durability::Unsynced).unwrap();
        assert_eq!(fs::read(world.at("victim")).unwrap(), b"kept");
        assert!(world.at("link").symlink_metadata().unwrap().is_file());
    }

    #[test]
    fn a_failure_leaves_target_and_staging_as_they_were() {
        let world = World::new();
        fs::create_dir(world.at("directory")).unwrap();
        fs::write(world.at("directory/inside"), "").unwrap();
        let error = world.write("directory", Durability::Synced).unwrap_err();
        assert_eq!(error.path, world.at("directory"));
        assert!(world.at("directory/inside").is_file());
        assert!(world.write("absent/file", Durability::Synced).is_err());
        assert_eq!(world.staged(), 0);
    }

    #[test]
    fn another_file_system_is_met_by_a_temporary_file_beside_the_target() {
        let world = World::new();
        let mut renamed_from = Vec::new();
        let target = world.at("file");
        let mut rename = |from: &Path, to: &Path| {
            renamed_from.push(from.parent().unwrap().to_path_buf());
            match renamed_from.len() {
                1 => Err(FsError::new(
                    "replace",
                    to,
                    ErrorKind::CrossesDevices.into(),
                )),
                _ => rename_over(from, to),
            }
        };
        let staging = world.at("staging");
        let write = Write {
            target: &target,
            bytes: b"new",
            permissions: None,
            durability: Durability::Synced,
        };
        write.renamed(&staging, &mut rename).unwrap();
        assert_eq!(
            renamed_from,
            [staging, world.directory.path().to_path_buf()]
        );
        assert_eq!(fs::read(&target).unwrap(), b"new");
        assert_eq!(world.staged(), 0);
        let names = fs::read_dir(world.directory.path()).unwrap().count();
        assert_eq!(names, 2, "the target and the staging directory");
    }

    #[test]
    fn any_other_failure_of_the_rename_is_not_tried_elsewhere() {
        let world = World::new();
        let mut calls = 0;
        let mut rename = |_: &Path, to: &Path| {
            calls += 1;
            Err(FsError::new(
                "replace",
                to,
                ErrorKind::PermissionDenied.into(),
            ))
        };
        let write = Write {
            target: &world.at("file"),
            bytes: b"new",
            permissions: None,
            durability: Durability::Unsynced,
        };
        let outcome = write.renamed(&world.at("staging"), &mut rename);
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::PermissionDenied);
        assert_eq!((calls, world.staged()), (1, 0));
    }
}
