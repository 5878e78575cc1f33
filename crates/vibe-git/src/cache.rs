//! The cache repositories of a machine as a whole: listed, measured, and removed.
//!
//! Who reads a repository of the cache holds the shared lock `use.lock` in its directory, from
//! before it looks for objects until its [`crate::Database`] is dropped; who removes repositories
//! holds it alone. Removal waits for nobody: where the lock is held, nothing is removed. A
//! repository leaves by one rename, so that a removal that is killed leaves no repository that
//! lacks objects.
//!
//! Only names that we make are looked at: `<label>-<32 hex>`, and that name with the extension of
//! its lock or of something on its way in or out. Whatever else lies there is not ours.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use vibe_core::Cancellation;
use vibe_core::text::shorten;
use vibe_fs::{
    EntryKind, FileLock, FsError, Holder, LockOutcome, RemoveError, bytes_below, list_dir,
    may_write, read_if_exists, remove_empty_directory, remove_file_if, remove_tree, rename_over,
    stat_of, touch,
};

use crate::object::is_lower_hex;

/// The lock of everybody who reads, in the directory of the cache.
pub(crate) const USE_LOCK: &str = "use.lock";
/// The URL of a cache repository, in it: the file in which git keeps what a repository is.
pub(crate) const DESCRIPTION: &str = "description";
/// The file whose time is that of the last use, in a cache repository.
const USED: &str = "HEAD";
/// Uses are noted this often at most, so that most runs write nothing.
const USE_NOTED_EVERY: Duration = Duration::from_hours(24);
/// Where the file system has no locks, a repository used within this time may be in use now.
const SAFE_AGE: Duration = Duration::from_hours(48);
/// Digits at the end of the name of a cache repository.
pub(crate) const DIGITS: usize = 32;
/// Bytes of a description that are read: a URL is no longer.
const DESCRIPTION_BYTES: u64 = 16 << 10;
/// Characters of a URL that are shown.
const URL_CHARACTERS: usize = 300;
/// Extensions of directories beside a repository: new ones on their way in, and old ones out.
const LEFTOVERS: [&str; 3] = ["new", "staging", GONE];
const GONE: &str = "gone";
const LOCK: &str = "lock";

/// Why the cache could not be listed or emptied.
#[derive(Debug, thiserror::Error)]
pub enum CacheError {
    /// A file call failed.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// Something could not be removed whole.
    #[error(transparent)]
    Remove(#[from] RemoveError),
}

/// The directory of cache repositories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitCache {
    directory: PathBuf,
}

/// A repository of the cache.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CachedRepository {
    /// The name of its directory.
    pub name: String,
    /// The URL that it is of, without credentials; unknown where the file that says it is gone.
    pub url: Option<String>,
    /// The bytes of its files.
    pub bytes: u64,
    /// When it was used last, to a day.
    pub used: SystemTime,
}

/// What was removed from the cache.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct RemovedRepositories {
    /// The repositories, by name.
    pub removed: Vec<CachedRepository>,
    /// How many stay.
    pub kept: usize,
    /// What killed runs had left.
    pub leftovers: usize,
    /// Its bytes.
    pub leftover_bytes: u64,
    /// Whether a transfer into a repository goes on that should have been removed.
    pub in_use: bool,
    /// Whether the user interrupted before all was removed.
    pub interrupted: bool,
}

/// The right to remove repositories: nobody reads from the cache while this lives.
#[derive(Debug)]
pub struct CacheRemoval<'a> {
    directory: &'a Path,
    holder: &'a Holder,
    lock: Option<FileLock>,
}

impl GitCache {
    /// The cache in `directory`, which need not exist. Touches nothing.
    pub fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// The directory of the repositories.
    pub fn directory(&self) -> &Path {
        &self.directory
    }

    /// The repositories, by name, measured. Needs no permission to write.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn repositories(&self) -> Result<Vec<CachedRepository>, CacheError> {
        let stems = stems(&self.directory)?;
        let found = stems.iter().map(|name| look_at(&self.directory, name));
        Ok(found
            .collect::<Result<Vec<_>, _>>()?
            .into_iter()
            .flatten()
            .collect())
    }

    /// The right to remove repositories; `None` while a run reads from the cache.
    ///
    /// # Errors
    /// The lock file cannot be made or written.
    pub fn begin_removal<'a>(
        &'a self,
        holder: &'a Holder,
    ) -> Result<Option<CacheRemoval<'a>>, CacheError> {
        let removal = |lock| CacheRemoval {
            directory: &self.directory,
            holder,
            lock,
        };
        let path = self.directory.join(USE_LOCK);
        Ok(match FileLock::try_exclusive(&path, holder) {
            Ok(LockOutcome::Held(lock)) => Some(removal(Some(lock))),
            Ok(LockOutcome::Busy) => None,
            Ok(LockOutcome::Unsupported) => Some(removal(None)),
            // Without its directory there is nothing to remove.
            Err(error) if error.is_not_found() => Some(removal(None)),
            Err(error) => return Err(error.into()),
        })
    }
}

impl CacheRemoval<'_> {
    /// Removes the repositories that were not used for `age`, and what killed runs have left.
    ///
    /// # Errors
    /// Something cannot be moved or removed.
    pub fn remove_unused(
        &self,
        age: Duration,
        cancel: &Cancellation,
    ) -> Result<RemovedRepositories, CacheError> {
        let age = match self.lock {
            Some(_) => age,
            None => age.max(SAFE_AGE),
        };
        let is_unused = |used| age_of(used).is_some_and(|unused| unused >= age);
        self.remove(is_unused, cancel)
    }

    /// Removes every repository, the lock, and the directory if it is empty then.
    ///
    /// # Errors
    /// Something cannot be moved or removed.
    pub fn remove_all(self, cancel: &Cancellation) -> Result<RemovedRepositories, CacheError> {
        let outcome = self.remove(|_| true, cancel)?;
        if !outcome.in_use && !outcome.interrupted {
            remove_file_if(&self.directory.join(USE_LOCK), |_| true)?;
            drop(self.lock);
            remove_empty_directory(self.directory)?;
        }
        Ok(outcome)
    }

    fn remove(
        &self,
        is_wanted: impl Fn(SystemTime) -> bool,
        cancel: &Cancellation,
    ) -> Result<RemovedRepositories, CacheError> {
        let mut outcome = RemovedRepositories::default();
        for name in stems(self.directory)? {
            if cancel.is_cancelled() {
                outcome.interrupted = true;
                break;
            }
            let found = look_at(self.directory, &name)?;
            let goes = found.filter(|repository| is_wanted(repository.used));
            self.remove_one(&name, goes, &mut outcome)?;
        }
        let stays = |name: &String| is_directory(&self.directory.join(name));
        outcome.kept = stems(self.directory)?
            .iter()
            .filter(|name| stays(name))
            .count();
        Ok(outcome)
    }

    /// Removes the repository `name` if it `goes`, what was left beside it, and its lock if there is
    /// no repository then. A transfer that an interrupted run has not ended yet holds that lock.
    fn remove_one(
        &self,
        name: &str,
        goes: Option<CachedRepository>,
        outcome: &mut RemovedRepositories,
    ) -> Result<(), CacheError> {
        let path = self.directory.join(name);
        let leftovers: Vec<PathBuf> = LEFTOVERS
            .map(|extension| path.with_extension(extension))
            .into_iter()
            .filter(|path| is_directory(path))
            .collect();
        let stays = goes.is_none() && is_directory(&path);
        if stays && leftovers.is_empty() {
            return Ok(());
        }
        let lock_path = path.with_extension(LOCK);
        let _lock = match FileLock::try_exclusive(&lock_path, self.holder)? {
            LockOutcome::Held(lock) => Some(lock),
            LockOutcome::Unsupported => None,
            LockOutcome::Busy => {
                outcome.in_use = true;
                return Ok(());
            }
        };
        for leftover in leftovers {
            let bytes = bytes_below(&leftover);
            remove_tree(&leftover)?;
            outcome.leftovers += 1;
            outcome.leftover_bytes = outcome.leftover_bytes.saturating_add(bytes);
        }
        if let Some(repository) = goes {
            let gone = path.with_extension(GONE);
            rename_over(&path, &gone)?;
            outcome.removed.push(repository);
            remove_tree(&gone)?;
        }
        if !stays {
            remove_file_if(&lock_path, |_| true)?;
        }
        Ok(())
    }
}

/// Tries to become one of those who read from the cache in `directory`. Without a lock where its
/// file can be neither opened nor made.
pub(crate) fn try_use(directory: &Path) -> LockOutcome {
    let outcome = FileLock::try_shared_or_make(&directory.join(USE_LOCK));
    outcome.unwrap_or_else(|error| {
        tracing::debug!("the cache of repositories is used without a lock: {error}");
        LockOutcome::Unsupported
    })
}

/// Notes that the repository at `path` is used now. A failure costs a transfer later.
pub(crate) fn note_use(path: &Path) {
    let noted = used(path).and_then(|used| {
        let recent = age_of(used).is_some_and(|age| age < USE_NOTED_EVERY);
        match recent || !may_write(path) {
            true => Ok(()),
            false => touch(&path.join(USED)),
        }
    });
    if let Err(error) = noted {
        tracing::debug!("the use of a repository is not noted: {error}");
    }
}

/// When the repository at `path` was used last; long ago if it does not say.
fn used(path: &Path) -> Result<SystemTime, FsError> {
    let nanoseconds = stat_of(&path.join(USED))?.map_or(0, |stat| stat.mtime_ns);
    let since = Duration::from_nanos(u64::try_from(nanoseconds).unwrap_or_default());
    Ok(SystemTime::UNIX_EPOCH + since)
}

/// How long ago `time` was; `None` if it is still to come.
fn age_of(time: SystemTime) -> Option<Duration> {
    SystemTime::now().duration_since(time).ok()
}

/// The repository `name`; `None` if there is no directory of that name.
fn look_at(directory: &Path, name: &str) -> Result<Option<CachedRepository>, FsError> {
    let path = directory.join(name);
    if !is_directory(&path) {
        return Ok(None);
    }
    Ok(Some(CachedRepository {
        name: name.to_owned(),
        url: url_of(&path),
        bytes: bytes_below(&path),
        used: used(&path)?,
    }))
}

fn url_of(path: &Path) -> Option<String> {
    let bytes = read_if_exists(&path.join(DESCRIPTION), DESCRIPTION_BYTES).ok()??;
    let text = String::from_utf8(bytes).ok()?;
    let url = text.lines().next().filter(|line| !line.is_empty())?;
    Some(shorten(url, URL_CHARACTERS))
}

fn is_directory(path: &Path) -> bool {
    stat_of(path).is_ok_and(|stat| stat.is_some_and(|stat| stat.kind == EntryKind::Directory))
}

/// The names of repositories of which something is in `directory`: themselves, their lock, or what
/// was left beside them.
fn stems(directory: &Path) -> Result<BTreeSet<String>, FsError> {
    let entries = match list_dir(directory) {
        Ok(entries) => entries,
        Err(error) if error.is_not_found() => return Ok(BTreeSet::new()),
        Err(error) => return Err(error),
    };
    let names = entries.iter().filter_map(|entry| entry.relative.to_str());
    Ok(names.filter_map(stem_of).map(str::to_owned).collect())
}

/// The name of the repository that an entry `name` is of.
fn stem_of(name: &str) -> Option<&str> {
    let (stem, extension) = match name.split_once('.') {
        Some((stem, extension)) => (stem, Some(extension)),
        None => (name, None),
    };
    let is_ours = extension.is_none_or(|found| found == LOCK || LEFTOVERS.contains(&found));
    let (label, digits) = stem.rsplit_once('-')?;
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
    let is_digest = digits.len() == DIGITS && digits.bytes().all(is_lower_hex);
    (is_ours && is_digest && label.chars().all(is_plain)).then_some(stem)
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEX: &str = "0123456789abcdef0123456789abcdef";

    #[test]
    fn only_names_that_we_make_are_ours() {
        let kit = format!("kit-{HEX}");
        for (name, is_ours) in [
            (kit.clone(), true),
            (format!("-{HEX}"), true),
            (format!("{kit}.lock"), true),
            (format!("{kit}.new"), true),
            (format!("{kit}.gone"), true),
            (format!("{kit}.git"), false),
            (format!("{kit}.lock.new"), false),
            (format!("kit{HEX}"), false),
            (kit.to_uppercase(), false),
            ("kit-abc".to_owned(), false),
            (USE_LOCK.to_owned(), false),
        ] {
            assert_eq!(stem_of(&name).is_some(), is_ours, "{name}");
        }
        assert_eq!(stem_of(&format!("{kit}.staging")), Some(kit.as_str()));
    }
}
