//! What a path is, without following it and without opening it.

use std::fs::Metadata;
use std::io::ErrorKind;
use std::path::Path;

use crate::error::FsError;

/// What kind of thing a path names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EntryKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link (or, on Windows, another name surrogate such as a junction).
    Symlink,
    /// A named pipe, socket or device.
    Other,
}

impl EntryKind {
    /// The words used in messages, with their article.
    pub fn as_str(self) -> &'static str {
        match self {
            EntryKind::File => "a file",
            EntryKind::Directory => "a directory",
            EntryKind::Symlink => "a symbolic link",
            EntryKind::Other => "a named pipe, socket or device",
        }
    }
}

/// What tells cheaply whether a path is still what it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stat {
    /// What it is.
    pub kind: EntryKind,
    /// Bytes of a file; of anything else what the system says.
    pub size: u64,
    /// When the content changed, nanoseconds since 1970.
    pub mtime_ns: i64,
    /// When anything of the inode changed, nanoseconds since 1970; 0 on Windows.
    pub ctime_ns: i64,
    /// The inode number; 0 on Windows.
    pub inode: u64,
    /// Whether the owner may execute it; false on Windows.
    pub exec: bool,
}

impl Stat {
    /// The part of `metadata` we look at. It must come from a call that follows no links.
    pub fn from_metadata(metadata: &Metadata) -> Self {
        let kind = kind_of(metadata);
        platform::stat(kind, metadata)
    }
}

/// The stat of the open `file`, which `path` names.
pub fn stat_of_open(file: &std::fs::File, path: &Path) -> Result<Stat, FsError> {
    let metadata = file.metadata().map_err(FsError::at("look at", path))?;
    Ok(Stat::from_metadata(&metadata))
}

/// The stat of `path` itself, links not followed; `None` if it is absent, also when what should be
/// a directory above it is absent or none.
pub fn stat_of(path: &Path) -> Result<Option<Stat>, FsError> {
    match path.symlink_metadata() {
        Ok(metadata) => Ok(Some(Stat::from_metadata(&metadata))),
        Err(error) if is_absence(error.kind()) => Ok(None),
        Err(error) => Err(FsError::new("look at", path, error)),
    }
}

pub(crate) fn is_absence(kind: ErrorKind) -> bool {
    matches!(kind, ErrorKind::NotFound | ErrorKind::NotADirectory)
}

/// The twelve permission bits of `metadata`, setuid to world; `0o644` on Windows.
pub(crate) fn permissions_of(metadata: &Metadata) -> u32 {
    platform::permissions(metadata)
}

fn kind_of(metadata: &Metadata) -> EntryKind {
    let kind = metadata.file_type();
    if kind.is_symlink() {
        EntryKind::Symlink
    } else if kind.is_dir() {
        EntryKind::Directory
    } else if kind.is_file() {
        EntryKind::File
    } else {
        EntryKind::Other
    }
}

/// Saturates at the years 1677 and 2262, which only a broken clock reaches.
fn nanoseconds(seconds: i64, nanoseconds: i64) -> i64 {
    seconds
        .saturating_mul(1_000_000_000)
        .saturating_add(nanoseconds)
}

#[cfg(unix)]
mod platform {
    use super::{EntryKind, Metadata, Stat, nanoseconds};
    use std::os::unix::fs::MetadataExt as _;

    pub(super) fn stat(kind: EntryKind, metadata: &Metadata) -> Stat {
        Stat {
            kind,
            size: metadata.size(),
            mtime_ns: nanoseconds(metadata.mtime(), metadata.mtime_nsec()),
            ctime_ns: nanoseconds(metadata.ctime(), metadata.ctime_nsec()),
            inode: metadata.ino(),
            exec: kind == EntryKind::File && metadata.mode() & 0o100 != 0,
        }
    }

    pub(super) fn permissions(metadata: &Metadata) -> u32 {
        metadata.mode() & 0o7777
    }
}

#[cfg(not(unix))]
mod platform {
    use super::{EntryKind, Metadata, Stat, nanoseconds};
    use std::time::UNIX_EPOCH;

    pub(super) fn stat(kind: EntryKind, metadata: &Metadata) -> Stat {
        let modified = metadata.modified().unwrap_or(UNIX_EPOCH);
        let since = modified.duration_since(UNIX_EPOCH).unwrap_or_default();
        let seconds = i64::try_from(since.as_secs()).unwrap_or(i64::MAX);
        Stat {
            kind,
            size: metadata.len(),
            mtime_ns: nanoseconds(seconds, i64::from(since.subsec_nanos())),
            ctime_ns: 0,
            inode: 0,
            exec: false,
        }
    }

    pub(super) fn permissions(_metadata: &Metadata) -> u32 {
        0o644
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, symlink};
    use vibe_testkit::{make_pipe, set_mode};

    #[test]
    fn every_kind_is_told_without_following() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), "12345").unwrap();
        fs::create_dir(at("directory")).unwrap();
        symlink(at("file"), at("link")).unwrap();
        make_pipe(&at("pipe"));
        let kind = |name: &str| stat_of(&at(name)).unwrap().map(|stat| stat.kind);
        assert_eq!(kind("file"), Some(EntryKind::File));
        assert_eq!(kind("directory"), Some(EntryKind::Directory));
        assert_eq!(kind("link"), Some(EntryKind::Symlink));
        assert_eq!(kind("pipe"), Some(EntryKind::Other));
        assert_eq!(kind("absent"), None);
        assert_eq!(kind("absent/below"), None);
        assert_eq!(kind("file/below"), None, "a parent that is a file");
        let too_long = "x".repeat(300);
        assert!(stat_of(&at(&too_long)).is_err(), "a failure is no absence");
    }

    #[test]
    fn a_stat_holds_what_the_system_says() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "12345").unwrap();
        let file = fs::File::options().write(true).open(&path).unwrap();
        let time = std::time::UNIX_EPOCH + std::time::Duration::new(7, 9);
        file.set_modified(time).unwrap();
        let metadata = path.symlink_metadata().unwrap();
        let stat = stat_of(&path).unwrap().unwrap();
        assert_eq!((stat.size, stat.mtime_ns), (5, 7_000_000_009));
        assert_eq!(stat.inode, metadata.ino());
        assert_eq!(
            stat.ctime_ns,
            metadata.ctime() * 1_000_000_000 + metadata.ctime_nsec()
        );
    }

    #[test]
    fn the_owners_bit_makes_a_file_executable() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "").unwrap();
        for (mode, exec) in [
            (0o644, false),
            (0o744, true),
            (0o655, false),
            (0o6755, true),
        ] {
            set_mode(&path, mode);
            assert_eq!(stat_of(&path).unwrap().unwrap().exec, exec, "{mode:o}");
            let metadata = path.symlink_metadata().unwrap();
            assert_eq!(permissions_of(&metadata), mode);
        }
        assert!(!stat_of(directory.path()).unwrap().unwrap().exec);
    }

    #[test]
    fn times_out_of_range_saturate() {
        assert_eq!(nanoseconds(1, 5), 1_000_000_005);
        assert_eq!(nanoseconds(i64::MAX, 5), i64::MAX);
        assert_eq!(nanoseconds(i64::MIN, 0), i64::MIN);
    }
}
