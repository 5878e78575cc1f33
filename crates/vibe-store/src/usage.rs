//! Locks of the store: held while trees are used, and while trees are moved.

use std::path::Path;
use std::time::{Duration, Instant};

use vibe_fs::lock::read_holder;
use vibe_fs::{
    FileLock, FsError, Holder, LockOutcome, create_directory_all, create_new_file, may_write,
    stat_of,
};

use crate::error::StoreError;
use crate::layout::Layout;

/// How long a lock is waited for. Who holds one against us only renames directories.
const PATIENCE: Duration = Duration::from_secs(30);
/// Between two attempts; a wait is rare and short.
const PAUSE: Duration = Duration::from_millis(10);

/// Held while a run uses trees: as long as it lives, no tree is removed.
#[derive(Debug)]
pub struct StoreUse {
    _lock: Option<FileLock>,
}

/// What an attempt at a lock came to.
pub(crate) enum Attempt {
    Held(FileLock),
    /// Somebody else has it, or the file was replaced while we took it.
    Busy,
    /// There are no locks here.
    Unlocked,
}

/// Takes the shared lock. Without one where the lock file can be neither opened nor made, and where
/// the file system has no locks.
pub(crate) fn use_shared(layout: &Layout) -> Result<StoreUse, StoreError> {
    let lock = wait_for(&layout.lock, PATIENCE, || Ok(try_shared(layout)))?;
    Ok(StoreUse { _lock: lock })
}

fn try_shared(layout: &Layout) -> Attempt {
    let attempt = || held(FileLock::try_shared(&layout.lock), &layout.lock);
    let attempt = match attempt() {
        Err(error) if error.is_not_found() && make_lock(layout) => attempt(),
        outcome => outcome,
    };
    attempt.unwrap_or_else(|error| {
        tracing::debug!("the store is used without a lock: {error}");
        Attempt::Unlocked
    })
}

/// Whether there is a lock file now. Where the store exists and may not be written, it is not tried.
fn make_lock(layout: &Layout) -> bool {
    let exists = stat_of(&layout.base).is_ok_and(|stat| stat.is_some());
    if exists && !may_write(&layout.base) {
        return false;
    }
    match create_new_file(&layout.lock, b"") {
        Err(error) => error.kind() == std::io::ErrorKind::AlreadyExists,
        Ok(()) => true,
    }
}

/// Tries the exclusive lock of the store, whose directory must exist.
pub(crate) fn try_exclusive(path: &Path, command: &str) -> Result<Attempt, FsError> {
    let holder = Holder {
        pid: std::process::id(),
        command: command.to_owned(),
    };
    held(FileLock::try_exclusive(path, &holder), path)
}

/// Waits for the exclusive lock `path`; `None` where the file system has no locks.
pub(crate) fn exclusive(path: &Path, command: &str) -> Result<Option<FileLock>, StoreError> {
    wait_for(path, PATIENCE, || Ok(try_exclusive(path, command)?))
}

/// A lock on a file that was removed meanwhile keeps nobody out: then it is tried again.
fn held(outcome: Result<LockOutcome, FsError>, path: &Path) -> Result<Attempt, FsError> {
    Ok(match outcome? {
        LockOutcome::Held(lock) if lock.is_at(path)? => Attempt::Held(lock),
        LockOutcome::Held(_) | LockOutcome::Busy => Attempt::Busy,
        LockOutcome::Unsupported => Attempt::Unlocked,
    })
}

fn wait_for(
    path: &Path,
    patience: Duration,
    mut attempt: impl FnMut() -> Result<Attempt, StoreError>,
) -> Result<Option<FileLock>, StoreError> {
    let start = Instant::now();
    loop {
        match attempt()? {
            Attempt::Held(lock) => return Ok(Some(lock)),
            Attempt::Unlocked => return Ok(None),
            Attempt::Busy if start.elapsed() >= patience => {
                let holder = read_holder(path);
                return Err(StoreError::Busy {
                    path: path.to_path_buf(),
                    seconds: patience.as_secs(),
                    holder: holder.map_or_else(String::new, |holder| {
                        let command = vibe_core::text::escape(&holder.command);
                        format!(" (process {}, {command})", holder.pid)
                    }),
                });
            }
            Attempt::Busy => std::thread::sleep(PAUSE),
        }
    }
}

/// Makes the directory of the store's own files, which locks lie in.
pub(crate) fn make_base(layout: &Layout) -> Result<(), FsError> {
    create_directory_all(&layout.base)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;
    use std::fs;

    #[test]
    fn a_run_waits_for_who_moves_trees_and_for_nobody_else() {
        let world = World::new();
        let _one = world.store().use_shared().unwrap();
        let two = world.store().use_shared().unwrap();
        let path = world.at("lock");
        assert!(matches!(try_exclusive(&path, "x").unwrap(), Attempt::Busy));
        drop((_one, two));
        let Attempt::Held(lock) = try_exclusive(&path, "x").unwrap() else {
            panic!("nobody holds it");
        };
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| world.store().use_shared().unwrap());
            drop(lock);
            assert!(waiting.join().unwrap()._lock.is_some());
        });
    }

    #[test]
    fn patience_ends_and_the_holder_is_named() {
        let world = World::new();
        drop(world.store().use_shared().unwrap());
        let path = world.at("lock");
        let Attempt::Held(_lock) = try_exclusive(&path, "vibe cache gc").unwrap() else {
            panic!("nobody holds it");
        };
        let error = wait_for(&path, Duration::ZERO, || Ok(Attempt::Busy)).unwrap_err();
        let holder = format!("(process {}, vibe cache gc)", std::process::id());
        assert!(error.to_string().contains(&holder), "{error}");
    }

    #[test]
    fn a_lock_that_cannot_be_made_is_done_without() {
        let world = World::new();
        fs::create_dir_all(world.at("lock")).unwrap();
        assert!(world.store().use_shared().unwrap()._lock.is_none());
        let blocked = World::new();
        fs::create_dir_all(blocked.root().parent().unwrap()).unwrap();
        fs::write(blocked.root(), "a file").unwrap();
        assert!(blocked.store().use_shared().unwrap()._lock.is_none());
    }
}
