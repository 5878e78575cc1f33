//! Copying and hashing files. A copy is a new file with a mode of ours; what it is made from gives
//! its bytes and nothing else.

use std::fs::File;
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};

use vibe_core::{Sha256Digest, Sha256Hasher};

use crate::error::{FsError, shown};
use crate::open::{create_new, open_to_read};
use crate::stat::{EntryKind, Stat, is_absence, permissions_of};

/// Bytes moved at a time: large enough that calls cost nothing beside the hashing.
const BUFFER_BYTES: usize = 128 << 10;
/// Bytes moved at a time from a small file, which may turn out larger than it was.
const SMALL_BUFFER_BYTES: usize = 4 << 10;

/// Why a file was not copied or hashed.
#[derive(Debug, thiserror::Error)]
pub enum CopyError {
    /// A file call failed.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// The source is no regular file.
    #[error("{} is {}, not a regular file", shown(path), kind.as_str())]
    NotAFile {
        /// The path.
        path: PathBuf,
        /// What it is.
        kind: EntryKind,
    },
    /// More bytes came than may.
    #[error(
        "{} would have more than {limit_bytes} bytes, the limit of one file",
        shown(path)
    )]
    TooLarge {
        /// The file being written.
        path: PathBuf,
        /// The most it may have.
        limit_bytes: u64,
    },
}

/// What hashing a file found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HashedFile {
    /// The digest of its content.
    pub digest: Sha256Digest,
    /// Its stat after the last byte was read: unlike the one known before, the content may be a
    /// mixture.
    pub stat: Stat,
}

/// What was written to a new file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WrittenFile {
    /// The digest of its content.
    pub digest: Sha256Digest,
    /// Its size.
    pub bytes: u64,
}

/// Copies what `source` gives to the new file `target`, mode 0644 or 0755 less the umask, and
/// returns its digest. An existing `target` is an error and stays; a partial one is removed.
pub fn copy_hashed(
    source: &mut dyn Read,
    target: &Path,
    exec: bool,
    limit_bytes: u64,
) -> Result<Sha256Digest, CopyError> {
    copy_in_pieces(source, BUFFER_BYTES, target, exec, limit_bytes)
}

/// [`copy_hashed`] from the regular file `source`; links are not followed.
pub fn copy_file_hashed(
    source: &Path,
    target: &Path,
    exec: bool,
    limit_bytes: u64,
) -> Result<Sha256Digest, CopyError> {
    let (mut file, stat) = open_regular(source)?;
    copy_in_pieces(&mut file, piece_bytes(&stat), target, exec, limit_bytes)
}

fn copy_in_pieces(
    source: &mut dyn Read,
    piece_bytes: usize,
    target: &Path,
    exec: bool,
    limit_bytes: u64,
) -> Result<Sha256Digest, CopyError> {
    let mut file = create_new(target, exec).map_err(FsError::at("create", target))?;
    let written = write_hashed(source, piece_bytes, target, &mut file, limit_bytes);
    keep_if_whole(target, file, written).map(|written| written.digest)
}

/// [`copy_hashed`] for a file that is not written again: mode 0444 or 0555 whatever the umask is
/// (on Windows as usual), and `mtime_seconds` since 1970 as the time of its last change.
pub fn copy_sealed(
    source: &mut dyn Read,
    target: &Path,
    exec: bool,
    mtime_seconds: i64,
    limit_bytes: u64,
) -> Result<WrittenFile, CopyError> {
    let mut file = create_new(target, exec).map_err(FsError::at("create", target))?;
    let written = write_hashed(source, BUFFER_BYTES, target, &mut file, limit_bytes);
    let sealed = written.and_then(|written| {
        seal(&file, exec, mtime_seconds).map_err(FsError::at("make read-only", target))?;
        Ok(written)
    });
    keep_if_whole(target, file, sealed)
}

/// The stat of `path`, and whether its mode is the one that [`copy_sealed`] gives; `None` if it is
/// absent.
pub fn sealed_stat_of(path: &Path, exec: bool) -> Result<Option<(Stat, bool)>, FsError> {
    match path.symlink_metadata() {
        Ok(metadata) => {
            let mode = permissions_of(&metadata);
            let is_sealed = cfg!(not(unix)) || mode == sealed_mode(exec);
            Ok(Some((Stat::from_metadata(&metadata), is_sealed)))
        }
        Err(error) if is_absence(error.kind()) => Ok(None),
        Err(error) => Err(FsError::new("look at", path, error)),
    }
}

/// Gives `path`, which must be a regular file, the mode of [`copy_sealed`] again.
#[cfg(unix)]
pub fn seal_again(path: &Path, exec: bool) -> Result<(), FsError> {
    use std::os::unix::fs::PermissionsExt as _;
    let permissions = std::fs::Permissions::from_mode(sealed_mode(exec));
    std::fs::set_permissions(path, permissions).map_err(FsError::at("make read-only", path))
}

/// Gives `path`, which must be a regular file, the mode of [`copy_sealed`] again.
#[cfg(not(unix))]
pub fn seal_again(_path: &Path, _exec: bool) -> Result<(), FsError> {
    Ok(())
}

fn sealed_mode(exec: bool) -> u32 {
    if exec { 0o555 } else { 0o444 }
}

fn seal(file: &File, exec: bool, mtime_seconds: i64) -> io::Result<()> {
    set_read_only(file, exec)?;
    let time = filetime::FileTime::from_unix_time(mtime_seconds, 0);
    filetime::set_file_handle_times(file, Some(time), Some(time))
}

#[cfg(unix)]
fn set_read_only(file: &File, exec: bool) -> io::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    file.set_permissions(std::fs::Permissions::from_mode(sealed_mode(exec)))
}

/// The read-only attribute would keep the file from being removed, and its other names with it.
#[cfg(not(unix))]
fn set_read_only(_file: &File, _exec: bool) -> io::Result<()> {
    Ok(())
}

fn write_hashed(
    source: &mut dyn Read,
    piece_bytes: usize,
    target: &Path,
    file: &mut File,
    limit_bytes: u64,
) -> Result<WrittenFile, CopyError> {
    let mut bytes: u64 = 0;
    let digest = digest_of(source, piece_bytes, target, |chunk| {
        bytes += chunk.len() as u64;
        if bytes > limit_bytes {
            return Err(CopyError::TooLarge {
                path: target.to_path_buf(),
                limit_bytes,
            });
        }
        Ok(file
            .write_all(chunk)
            .map_err(FsError::at("write", target))?)
    })?;
    Ok(WrittenFile { digest, bytes })
}

/// The digest of the regular file `path`; links are not followed.
pub fn hash_file(path: &Path) -> Result<HashedFile, CopyError> {
    hash_file_watched(path, |_| ())
}

/// [`hash_file`] that shows the bytes to `watch`, in order.
pub fn hash_file_watched(
    path: &Path,
    mut watch: impl FnMut(&[u8]),
) -> Result<HashedFile, CopyError> {
    let (mut file, stat) = open_regular(path)?;
    let digest = digest_of(&mut file, piece_bytes(&stat), path, |bytes| {
        watch(bytes);
        Ok(())
    })?;
    let metadata = file.metadata().map_err(FsError::at("look at", path))?;
    Ok(HashedFile {
        digest,
        stat: Stat::from_metadata(&metadata),
    })
}

/// Opens the regular file `path` for reading, with its stat; links are not followed, and nothing
/// else is waited for.
pub fn open_regular(path: &Path) -> Result<(File, Stat), CopyError> {
    let (file, metadata) = open_to_read(path)?;
    let stat = Stat::from_metadata(&metadata);
    if stat.kind != EntryKind::File {
        return Err(CopyError::NotAFile {
            path: path.to_path_buf(),
            kind: stat.kind,
        });
    }
    Ok((file, stat))
}

/// One byte more than the file has: a small one needs no large buffer, and its end is met with the
/// second call.
fn piece_bytes(stat: &Stat) -> usize {
    usize::try_from(stat.size)
        .unwrap_or(BUFFER_BYTES)
        .saturating_add(1)
        .clamp(SMALL_BUFFER_BYTES, BUFFER_BYTES)
}

fn digest_of(
    source: &mut dyn Read,
    piece_bytes: usize,
    path: &Path,
    mut take: impl FnMut(&[u8]) -> Result<(), CopyError>,
) -> Result<Sha256Digest, CopyError> {
    let mut buffer = vec![0; piece_bytes];
    let mut hasher = Sha256Hasher::new();
    loop {
        match source.read(&mut buffer) {
            Ok(0) => return Ok(hasher.finish()),
            Ok(count) => {
                hasher.update(&buffer[..count]);
                take(&buffer[..count])?;
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(FsError::new("read the content of", path, error).into()),
        }
    }
}

/// Closes and, after a failure, removes the file that this call created.
pub(crate) fn keep_if_whole<T>(
    target: &Path,
    file: File,
    outcome: Result<T, CopyError>,
) -> Result<T, CopyError> {
    drop(file);
    if outcome.is_err() {
        // The failure that is told is the first one.
        let _ = std::fs::remove_file(target);
    }
    outcome
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::clone::clone_file;
    use crate::testing::mode_under_umask;
    use std::fs;
    use std::os::unix::fs::symlink;
    use vibe_testkit::{make_pipe, mode_of, set_mode};

    #[test]
    fn a_copy_has_the_bytes_and_a_mode_of_ours() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let content = vec![b'x'; BUFFER_BYTES * 2 + 1];
        fs::write(at("source"), &content).unwrap();
        set_mode(&at("source"), 0o6777);
        for (exec, mode) in [(false, 0o644), (true, 0o755)] {
            let target = at(&format!("copy-{exec}"));
            let limit = content.len() as u64;
            let digest = copy_file_hashed(&at("source"), &target, exec, limit).unwrap();
            assert_eq!(digest, Sha256Digest::of(&content));
            assert_eq!(fs::read(&target).unwrap(), content);
            assert_eq!(mode_of(&target), mode_under_umask(directory.path(), mode));
            let clone = at(&format!("clone-{exec}"));
            clone_file(&at("source"), &clone, exec).unwrap();
            assert_eq!(fs::read(&clone).unwrap(), content);
            assert_eq!(mode_of(&clone), mode_under_umask(directory.path(), mode));
        }
        assert_eq!(
            hash_file(&at("source")).unwrap().digest,
            Sha256Digest::of(&content)
        );
    }

    #[test]
    fn a_sealed_file_has_its_mode_and_time_whatever_the_umask_is() {
        let directory = tempfile::tempdir().unwrap();
        for (exec, mode) in [(false, 0o444), (true, 0o555)] {
            let target = directory.path().join(format!("sealed-{exec}"));
            let written = copy_sealed(&mut &b"12345"[..], &target, exec, 86_400, 5).unwrap();
            let digest = Sha256Digest::of(b"12345");
            assert_eq!(written, WrittenFile { digest, bytes: 5 });
            assert_eq!(mode_of(&target), mode);
            let is_sealed = || sealed_stat_of(&target, exec).unwrap().unwrap().1;
            assert!(is_sealed());
            set_mode(&target, 0o600);
            assert!(!is_sealed());
            seal_again(&target, exec).unwrap();
            assert_eq!(mode_of(&target), mode);
            let stat = crate::stat_of(&target).unwrap().unwrap();
            assert_eq!((stat.size, stat.mtime_ns), (5, 86_400_000_000_000));
            assert!(copy_sealed(&mut &b""[..], &target, exec, 0, 5).is_err());
            assert_eq!(fs::read(&target).unwrap(), b"12345", "kept");
        }
        let target = directory.path().join("large");
        let error = copy_sealed(&mut &b"12345"[..], &target, false, 0, 4).unwrap_err();
        assert!(matches!(error, CopyError::TooLarge { limit_bytes: 4, .. }));
        assert!(!target.exists());
    }

    #[test]
    fn a_clone_is_independent_of_its_source() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("source"), "old").unwrap();
        clone_file(&at("source"), &at("clone"), false).unwrap();
        fs::write(at("source"), "new").unwrap();
        assert_eq!(fs::read(at("clone")).unwrap(), b"old");
    }

    #[test]
    fn too_much_content_is_refused_and_leaves_no_file() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("target");
        copy_hashed(&mut &b"12345"[..], &target, false, 5).unwrap();
        fs::remove_file(&target).unwrap();
        let error = copy_hashed(&mut &b"12345"[..], &target, false, 4).unwrap_err();
        assert!(matches!(error, CopyError::TooLarge { limit_bytes: 4, .. }));
        assert!(!target.exists());
    }

    struct Broken(io::ErrorKind, usize);

    impl Read for Broken {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            self.1 += 1;
            match self.1 {
                1 | 3 => {
                    buffer[0] = b'x';
                    Ok(1)
                }
                2 => Err(self.0.into()),
                _ => Ok(0),
            }
        }
    }

    #[test]
    fn a_source_that_breaks_leaves_no_file_and_one_that_is_interrupted_goes_on() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("target");
        let mut broken = Broken(io::ErrorKind::BrokenPipe, 0);
        assert!(copy_hashed(&mut broken, &target, false, 10).is_err());
        assert!(!target.exists());
        let mut interrupted = Broken(io::ErrorKind::Interrupted, 0);
        let digest = copy_hashed(&mut interrupted, &target, false, 10).unwrap();
        assert_eq!(digest, Sha256Digest::of(b"xx"));
    }

    #[test]
    fn what_is_already_there_is_neither_overwritten_nor_removed() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("source"), "new").unwrap();
        fs::write(at("file"), "kept").unwrap();
        symlink("absent", at("link")).unwrap();
        for name in ["file", "link"] {
            assert!(copy_file_hashed(&at("source"), &at(name), false, 10).is_err());
            assert!(clone_file(&at("source"), &at(name), false).is_err());
        }
        assert_eq!(fs::read(at("file")).unwrap(), b"kept");
        assert!(at("link").is_symlink() && !at("absent").exists());
    }

    #[test]
    fn only_regular_files_are_sources() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("file"), "").unwrap();
        symlink("file", at("link")).unwrap();
        make_pipe(&at("pipe"));
        for name in ["link", "pipe", "."] {
            assert!(hash_file(&at(name)).is_err(), "{name}");
            assert!(copy_file_hashed(&at(name), &at("new"), false, 10).is_err());
            assert!(clone_file(&at(name), &at("new"), false).is_err());
        }
        assert!(!at("new").exists());
    }

    #[test]
    fn pieces_are_as_large_as_the_file_needs() {
        let stat = crate::stat_of(Path::new("/")).unwrap().unwrap();
        for (size, expected) in [
            (0, SMALL_BUFFER_BYTES),
            (4_096, 4_097),
            (BUFFER_BYTES as u64, BUFFER_BYTES),
            (u64::MAX, BUFFER_BYTES),
        ] {
            assert_eq!(piece_bytes(&Stat { size, ..stat }), expected);
        }
    }

    #[test]
    fn the_stat_after_hashing_tells_a_change() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("file");
        fs::write(&path, "").unwrap();
        let empty = hash_file(&path).unwrap();
        assert_eq!(empty.digest, Sha256Digest::of(b""));
        assert_eq!(Some(empty.stat), crate::stat_of(&path).unwrap());
        fs::write(&path, "longer").unwrap();
        assert_ne!(hash_file(&path).unwrap().stat, empty.stat);
    }
}
