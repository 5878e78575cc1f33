//! Reading a whole file of bounded size.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use crate::error::{FsError, shown};
use crate::open::open_to_read;
use crate::stat::{EntryKind, Stat, stat_of};

/// Why a file was not read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A file call failed.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// The path names something that is no regular file; it was not opened.
    #[error("{} is {}, not a regular file", shown(path), kind.as_str())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is.
        kind: EntryKind,
    },
    /// The file is larger than it may be.
    #[error(
        "{} has {bytes} bytes, more than the limit of {limit_bytes}",
        shown(path)
    )]
    TooLarge {
        /// The path.
        path: PathBuf,
        /// How large it is, or how much was there when reading stopped.
        bytes: u64,
        /// The most it may have.
        limit_bytes: u64,
    },
}

/// The content of the regular file `path`, at most `limit_bytes`. Links are not followed, and
/// nothing but a regular file is opened.
pub fn read_bounded(path: &Path, limit_bytes: u64) -> Result<Vec<u8>, ReadError> {
    match read_if_exists(path, limit_bytes)? {
        Some(bytes) => Ok(bytes),
        None => Err(FsError::new("read", path, std::io::ErrorKind::NotFound.into()).into()),
    }
}

/// Like [`read_bounded`]; `None` where there is no such path.
pub fn read_if_exists(path: &Path, limit_bytes: u64) -> Result<Option<Vec<u8>>, ReadError> {
    Ok(read_with_stat(path, limit_bytes)?.map(|(bytes, _)| bytes))
}

/// Like [`read_if_exists`], with the stat that the file had before it was opened.
pub fn read_with_stat(path: &Path, limit_bytes: u64) -> Result<Option<(Vec<u8>, Stat)>, ReadError> {
    let Some(stat) = stat_of(path)? else {
        return Ok(None);
    };
    check_file(path, stat.kind)?;
    let Some((file, metadata)) = unless_absent(open_to_read(path))? else {
        return Ok(None);
    };
    check_file(path, Stat::from_metadata(&metadata).kind)?;
    check_size(path, metadata.len(), limit_bytes)?;
    let mut bytes = Vec::with_capacity(usize::try_from(metadata.len()).unwrap_or_default());
    // One byte more than allowed: a file that grows while it is read is noticed.
    file.take(limit_bytes.saturating_add(1))
        .read_to_end(&mut bytes)
        .map_err(FsError::at("read", path))?;
    check_size(path, bytes.len() as u64, limit_bytes)?;
    Ok(Some((bytes, stat)))
}

/// A file can go between the look at it and its opening.
fn unless_absent<T>(opened: Result<T, FsError>) -> Result<Option<T>, FsError> {
    match opened {
        Err(error) if error.is_not_found() => Ok(None),
        opened => opened.map(Some),
    }
}

fn check_file(path: &Path, kind: EntryKind) -> Result<(), ReadError> {
    if kind == EntryKind::File {
        return Ok(());
    }
    Err(ReadError::NotAFile {
        path: path.to_path_buf(),
        kind,
    })
}

fn check_size(path: &Path, bytes: u64, limit_bytes: u64) -> Result<(), ReadError> {
    if bytes <= limit_bytes {
        return Ok(());
    }
    Err(ReadError::TooLarge {
        path: path.to_path_buf(),
        bytes,
        limit_bytes,
    })
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use vibe_testkit::make_pipe;

    #[test]
    fn a_file_is_read_up_to_its_limit_and_not_beyond() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "12345").unwrap();
        assert_eq!(read_bounded(&path, 5).unwrap(), b"12345");
        let error = read_bounded(&path, 4).unwrap_err();
        let text = error.to_string();
        assert!(
            text.ends_with("file has 5 bytes, more than the limit of 4"),
            "{text}"
        );
        assert_eq!(read_bounded(&path, u64::MAX).unwrap().len(), 5);
    }

    #[test]
    fn a_file_without_a_size_of_its_own_is_bounded_too() {
        if cfg!(target_os = "linux") {
            let path = Path::new("/proc/self/status");
            let error = read_bounded(path, 10).unwrap_err();
            assert!(matches!(error, ReadError::TooLarge { bytes: 11, .. }));
            assert!(read_bounded(path, 1 << 20).unwrap().len() > 10);
        }
    }

    #[test]
    fn what_is_no_file_is_refused_by_name_and_not_opened() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), "").unwrap();
        symlink("file", at("link")).unwrap();
        make_pipe(&at("pipe"));
        for (name, kind) in [
            ("link", EntryKind::Symlink),
            ("pipe", EntryKind::Other),
            (".", EntryKind::Directory),
        ] {
            match read_bounded(&at(name), 10) {
                Err(ReadError::NotAFile { kind: found, .. }) => assert_eq!(found, kind),
                other => panic!("{name}: {other:?}"),
            }
        }
        let text = read_bounded(&at("link"), 10).unwrap_err().to_string();
        assert!(
            text.ends_with("link is a symbolic link, not a regular file"),
            "{text}"
        );
    }

    #[test]
    fn only_absence_is_no_failure_to_open() {
        let failed = |kind: std::io::ErrorKind| {
            unless_absent::<()>(Err(FsError::new("open", Path::new("x"), kind.into())))
        };
        assert_eq!(unless_absent(Ok(1)).unwrap(), Some(1));
        assert_eq!(failed(std::io::ErrorKind::NotFound).unwrap(), None);
        assert!(failed(std::io::ErrorKind::PermissionDenied).is_err());
    }

    #[test]
    fn an_absent_file_is_an_answer_or_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("absent");
        assert_eq!(read_if_exists(&path, 10).unwrap(), None);
        match read_bounded(&path, 10) {
            Err(ReadError::Fs(error)) => assert!(error.is_not_found()),
            other => panic!("{other:?}"),
        }
        fs::write(&path, "x").unwrap();
        assert_eq!(read_if_exists(&path, 10).unwrap(), Some(b"x".to_vec()));
    }
}
