//! Locks on files, held by the operating system: a dead holder never blocks.

use std::fs::{File, TryLockError};
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

use crate::atomic::create_new_file;
use crate::error::FsError;
use crate::open::{open_lock, open_to_read};
use crate::read::read_if_exists;
use crate::stat::{Stat, stat_of};
use crate::system::may_write;

/// Bytes of a lock file that are read: a number and the start of a command line.
const HOLDER_BYTES: u64 = 64 << 10;
/// Between two attempts of a waiter. The system's own wait could not be interrupted.
const PAUSE: Duration = Duration::from_millis(20);

/// Who holds a lock, as a waiter is told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The process.
    pub pid: u32,
    /// Its command, on one line.
    pub command: String,
}

impl Holder {
    fn to_text(&self) -> String {
        let command = self.command.replace(['\n', '\r'], " ");
        format!("{}\n{command}\n", self.pid)
    }

    fn from_text(text: &str) -> Option<Self> {
        let (pid, rest) = text.split_once('\n')?;
        Some(Self {
            pid: pid.parse().ok()?,
            command: rest.strip_suffix('\n')?.to_owned(),
        })
    }
}

/// A lock that is held until this is dropped.
#[derive(Debug)]
pub struct FileLock {
    file: File,
    exclusive: bool,
}

/// What became of an attempt to lock.
#[derive(Debug)]
pub enum LockOutcome {
    /// It is ours.
    Held(FileLock),
    /// Another process, or another handle of this one, holds it, or removed its file while it was
    /// taken: a lock on a file without a name keeps nobody out.
    Busy,
    /// The file system has no locks.
    Unsupported,
}

impl FileLock {
    /// Tries to become the only holder of the lock file `path`, which is created when absent, and
    /// writes `holder` into it. Never waits and never follows a link.
    pub fn try_exclusive(path: &Path, holder: &Holder) -> Result<LockOutcome, FsError> {
        let file = open_lock(path).map_err(FsError::at("open the lock file", path))?;
        check_regular(&file, path)?;
        let outcome = outcome_of(file.try_lock(), path)?;
        if let Some(outcome) = outcome {
            return Ok(outcome);
        }
        let lock = FileLock {
            file,
            exclusive: true,
        };
        lock.replace_content(holder.to_text().as_bytes())
            .map_err(FsError::at("write the lock file", path))?;
        lock.unless_removed(path)
    }

    /// Tries to become one of several holders of the lock file `path`, which must exist (else
    /// [`FsError::is_not_found`]) and is not written.
    pub fn try_shared(path: &Path) -> Result<LockOutcome, FsError> {
        let (file, _) = open_to_read(path)?;
        check_regular(&file, path)?;
        let outcome = outcome_of(file.try_lock_shared(), path)?;
        if let Some(outcome) = outcome {
            return Ok(outcome);
        }
        let lock = FileLock {
            file,
            exclusive: false,
        };
        lock.unless_removed(path)
    }

    /// [`FileLock::try_shared`], with the lock file made where only it is missing and its directory
    /// may be written.
    pub fn try_shared_or_make(path: &Path) -> Result<LockOutcome, FsError> {
        match FileLock::try_shared(path) {
            Err(error) if error.is_not_found() && is_made(path) => FileLock::try_shared(path),
            outcome => outcome,
        }
    }

    /// Whether `path` still names the file that is locked. Always, where files have no inode
    /// numbers (Windows).
    fn is_at(&self, path: &Path) -> Result<bool, FsError> {
        let metadata = self.file.metadata().map_err(FsError::at("look at", path))?;
        let held = Stat::from_metadata(&metadata);
        Ok(stat_of(path)?.is_some_and(|stat| stat.inode == held.inode))
    }

    fn unless_removed(self, path: &Path) -> Result<LockOutcome, FsError> {
        Ok(match self.is_at(path)? {
            true => LockOutcome::Held(self),
            false => LockOutcome::Busy,
        })
    }

    fn replace_content(&self, bytes: &[u8]) -> io::Result<()> {
        self.file.set_len(0)?;
        (&self.file).write_all(bytes)
    }
}

impl Drop for FileLock {
    fn drop(&mut self) {
        if self.exclusive {
            // A name left behind would only mislead a message; the lock itself ends with the file.
            let _ = self.file.set_len(0);
        }
    }
}

/// Makes `attempt` until the lock is had; `None` where the file system has no locks. After each that
/// found it busy, `waited` is told how long this has taken, and gives up by its error.
///
/// # Errors
/// Those of `attempt` and `waited`.
pub fn wait_for_lock<E>(
    attempt: impl Fn() -> Result<LockOutcome, E>,
    mut waited: impl FnMut(Duration) -> Result<(), E>,
) -> Result<Option<FileLock>, E> {
    let since = Instant::now();
    loop {
        match attempt()? {
            LockOutcome::Held(lock) => return Ok(Some(lock)),
            LockOutcome::Unsupported => return Ok(None),
            LockOutcome::Busy => waited(since.elapsed())?,
        }
        std::thread::sleep(PAUSE);
    }
}

/// Whether there is a lock file now.
fn is_made(path: &Path) -> bool {
    if !path.parent().is_some_and(may_write) {
        return false;
    }
    match create_new_file(path, b"") {
        Err(error) => error.kind() == io::ErrorKind::AlreadyExists,
        Ok(()) => true,
    }
}

/// Who wrote itself into the lock file `path`; `None` if nobody did, and on systems that do not
/// let a locked file be read (Windows).
pub fn read_holder(path: &Path) -> Option<Holder> {
    let bytes = read_if_exists(path, HOLDER_BYTES).ok()??;
    Holder::from_text(std::str::from_utf8(&bytes).ok()?)
}

fn check_regular(file: &File, path: &Path) -> Result<(), FsError> {
    let fail = FsError::at("lock", path);
    match file.metadata().map_err(&fail)?.is_file() {
        true => Ok(()),
        false => Err(fail(io::Error::other("it is not a regular file"))),
    }
}

/// `None` when the lock was taken.
fn outcome_of(
    attempt: Result<(), TryLockError>,
    path: &Path,
) -> Result<Option<LockOutcome>, FsError> {
    match attempt {
        Ok(()) => Ok(None),
        Err(TryLockError::WouldBlock) => Ok(Some(LockOutcome::Busy)),
        Err(TryLockError::Error(error)) if is_unsupported(&error) => {
            Ok(Some(LockOutcome::Unsupported))
        }
        Err(TryLockError::Error(error)) => Err(FsError::new("lock", path, error)),
    }
}

fn is_unsupported(error: &io::Error) -> bool {
    error.kind() == io::ErrorKind::Unsupported || error.raw_os_error() == NO_LOCKS
}

#[cfg(unix)]
const NO_LOCKS: Option<i32> = Some(rustix::io::Errno::NOLCK.raw_os_error());
/// ERROR_INVALID_FUNCTION: what file systems without locks answer.
#[cfg(not(unix))]
const NO_LOCKS: Option<i32> = Some(1);

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::mode_under_umask;
    use std::fs;
    use std::os::unix::fs::symlink;
    use vibe_testkit::{make_pipe, mode_of};

    fn holder() -> Holder {
        Holder {
            pid: 41,
            command: "vibe install".to_owned(),
        }
    }

    fn exclusive(path: &Path) -> Option<FileLock> {
        match FileLock::try_exclusive(path, &holder()).unwrap() {
            LockOutcome::Held(lock) => Some(lock),
            LockOutcome::Busy => None,
            LockOutcome::Unsupported => panic!("no locks here"),
        }
    }

    fn shared(path: &Path) -> Option<FileLock> {
        match FileLock::try_shared(path).unwrap() {
            LockOutcome::Held(lock) => Some(lock),
            LockOutcome::Busy => None,
            LockOutcome::Unsupported => panic!("no locks here"),
        }
    }

    #[test]
    fn one_exclusive_holder_is_named_and_keeps_all_others_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let lock = exclusive(&path).unwrap();
        assert_eq!(mode_of(&path), mode_under_umask(directory.path(), 0o644));
        assert!(exclusive(&path).is_none());
        assert!(shared(&path).is_none());
        assert_eq!(read_holder(&path), Some(holder()));
        drop(lock);
        assert_eq!(read_holder(&path), None);
        assert!(exclusive(&path).is_some());
    }

    #[test]
    fn shared_holders_keep_only_an_exclusive_one_out() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        assert!(FileLock::try_shared(&path).unwrap_err().is_not_found());
        fs::write(&path, "kept").unwrap();
        let first = shared(&path).unwrap();
        let second = shared(&path).unwrap();
        assert!(exclusive(&path).is_none());
        drop((first, second));
        assert_eq!(fs::read(&path).unwrap(), b"kept");
        assert!(exclusive(&path).is_some());
    }

    #[test]
    fn what_an_earlier_holder_left_is_replaced_whole() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        fs::write(&path, "7\nan older and much longer command line\n").unwrap();
        let _lock = exclusive(&path).unwrap();
        assert_eq!(read_holder(&path), Some(holder()));
    }

    #[test]
    fn a_lock_whose_file_was_removed_or_replaced_is_none() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let lock = exclusive(&path).unwrap();
        assert!(lock.is_at(&path).unwrap());
        fs::remove_file(&path).unwrap();
        assert!(!lock.is_at(&path).unwrap());
        let other = exclusive(&path).unwrap();
        assert!(other.is_at(&path).unwrap());
        let outcome = lock.unless_removed(&path).unwrap();
        assert!(matches!(outcome, LockOutcome::Busy));
    }

    #[test]
    fn a_missing_lock_file_is_made_and_a_missing_directory_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let outcome = FileLock::try_shared_or_make(&path).unwrap();
        assert!(matches!(outcome, LockOutcome::Held(_)));
        let deeper = directory.path().join("absent/lock");
        let error = FileLock::try_shared_or_make(&deeper).unwrap_err();
        assert!(error.is_not_found());
        assert!(!directory.path().join("absent").exists());
    }

    #[test]
    fn a_waiter_gets_the_lock_when_it_is_let_go_or_gives_up() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("lock");
        let mut held = exclusive(&path);
        let attempt = || FileLock::try_shared(&path);
        let gave_up = wait_for_lock(attempt, |_| {
            Err(FsError::new("wait", &path, io::ErrorKind::TimedOut.into()))
        });
        assert_eq!(gave_up.unwrap_err().kind(), io::ErrorKind::TimedOut);
        let had = wait_for_lock(attempt, |_| {
            held = None;
            Ok(())
        });
        assert!(had.unwrap().is_some());
        let unsupported = wait_for_lock(|| Ok::<_, FsError>(LockOutcome::Unsupported), |_| Ok(()));
        assert!(unsupported.unwrap().is_none());
    }

    #[test]
    fn links_and_pipes_are_no_lock_files() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("victim"), "kept").unwrap();
        symlink("victim", at("link")).unwrap();
        make_pipe(&at("pipe"));
        for name in ["link", "pipe"] {
            assert!(FileLock::try_exclusive(&at(name), &holder()).is_err());
            assert!(FileLock::try_shared(&at(name)).is_err());
        }
        assert_eq!(fs::read(at("victim")).unwrap(), b"kept");
    }

    #[test]
    fn a_holder_is_one_line_whatever_its_command() {
        let odd = Holder {
            pid: 1,
            command: "a\nb\rc".to_owned(),
        };
        assert_eq!(odd.to_text(), "1\na b c\n");
        for text in ["", "x\ny\n", "1", "1\nunfinished"] {
            assert_eq!(Holder::from_text(text), None, "{text:?}");
        }
    }

    #[test]
    fn a_file_system_without_locks_is_an_outcome() {
        let path = Path::new("lock");
        let outcome = |error: io::Error| outcome_of(Err(TryLockError::Error(error)), path);
        for error in [
            io::ErrorKind::Unsupported.into(),
            io::Error::from_raw_os_error(rustix::io::Errno::NOLCK.raw_os_error()),
            io::Error::from_raw_os_error(rustix::io::Errno::OPNOTSUPP.raw_os_error()),
        ] {
            let found = outcome(error).unwrap();
            assert!(matches!(found, Some(LockOutcome::Unsupported)));
        }
        assert!(outcome(io::ErrorKind::PermissionDenied.into()).is_err());
    }
}
