//! Locks of the store: held while trees are used, and while trees are moved.

use std::path::Path;
use std::time::Duration;

use vibe_fs::{
    FileLock, FsError, Holder, LockOutcome, create_directory_all, read_holder, wait_for_lock,
};

use crate::error::StoreError;
use crate::layout::Layout;

/// How long a lock is waited for. Who holds one against us only renames directories.
const PATIENCE: Duration = Duration::from_secs(30);

/// Held while a run uses trees: as long as it lives, no tree is removed.
#[derive(Debug)]
pub struct StoreUse {
    _lock: Option<FileLock>,
}

/// Takes the shared lock. Without one where the lock file can be neither opened nor made, and where
/// the file system has no locks.
pub(crate) fn use_shared(layout: &Layout) -> Result<StoreUse, StoreError> {
    let lock = wait_for(&layout.lock, PATIENCE, || {
        Ok(try_shared(layout).unwrap_or_else(|error| {
            tracing::debug!("the store is used without a lock: {error}");
            LockOutcome::Unsupported
        }))
    })?;
    Ok(StoreUse { _lock: lock })
}

/// Tries the shared lock; a store that is not there yet is begun.
fn try_shared(layout: &Layout) -> Result<LockOutcome, FsError> {
    match FileLock::try_shared_or_make(&layout.lock) {
        Err(error) if error.is_not_found() => {
            make_base(layout)?;
            FileLock::try_shared_or_make(&layout.lock)
        }
        outcome => outcome,
    }
}

/// Tries the exclusive lock of the store, whose directory must exist.
pub(crate) fn try_exclusive(path: &Path, command: &str) -> Result<LockOutcome, FsError> {
    let holder = Holder {
        pid: std::process::id(),
        command: command.to_owned(),
    };
    FileLock::try_exclusive(path, &holder)
}

/// Waits for the exclusive lock `path`; `None` where the file system has no locks.
pub(crate) fn exclusive(path: &Path, command: &str) -> Result<Option<FileLock>, StoreError> {
    wait_for(path, PATIENCE, || Ok(try_exclusive(path, command)?))
}

fn wait_for(
    path: &Path,
    patience: Duration,
    attempt: impl Fn() -> Result<LockOutcome, StoreError>,
) -> Result<Option<FileLock>, StoreError> {
    wait_for_lock(attempt, |waited| match waited < patience {
        true => Ok(()),
        false => {
            let holder = read_holder(path);
            Err(StoreError::Busy {
                path: path.to_path_buf(),
                seconds: patience.as_secs(),
                holder: holder.map_or_else(String::new, |holder| {
                    let command = vibe_core::text::escape(&holder.command);
                    format!(" (process {}, {command})", holder.pid)
                }),
            })
        }
    })
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
        assert!(matches!(
            try_exclusive(&path, "x").unwrap(),
            LockOutcome::Busy
        ));
        drop((_one, two));
        let LockOutcome::Held(lock) = try_exclusive(&path, "x").unwrap() else {
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
        let LockOutcome::Held(_lock) = try_exclusive(&path, "vibe cache gc").unwrap() else {
            panic!("nobody holds it");
        };
        let error = wait_for(&path, Duration::ZERO, || Ok(LockOutcome::Busy)).unwrap_err();
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
