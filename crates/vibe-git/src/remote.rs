//! Repositories by their URL: a local one is read where it is, a remote one is fetched into a bare
//! repository of the cache.
//!
//! A cache repository has no work tree and no configuration but ours. One process at a time writes
//! to it, under a lock; readers need none of that kind, because packs appear whole and are never
//! changed, but they keep repositories from being removed (`cache.rs`). What was fetched is kept by
//! references of ours (`refs/vibe/`), never by the server's names, so that a branch can be
//! rewritten or turned into a directory. A cache that turns out to be damaged is made anew beside
//! the old one and replaces it only when the fetch into it succeeds.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use vibe_core::Cancellation;
use vibe_core::digest::Sha256Digest;
use vibe_core::git_url::{Credential, RemoteUrl};
use vibe_core::text::{escape, shorten};
use vibe_fs::{
    FileLock, FsError, Holder, LockOutcome, RemoveError, create_directory_all, create_new_file,
    list_dir, read_holder, remove_file_if, remove_tree, rename_over, wait_for_lock,
};

use crate::cache::{DESCRIPTION, DIGITS, USE_LOCK, note_use, try_use};
use crate::connect::Destination;
use crate::database::Database;
use crate::error::{Cause, GitError};
use crate::object::{CommitId, is_lower_hex};
use crate::refs::{Refs, Wanted};
use crate::transfer::{self, Cache, Found, KEPT};
use crate::watch::{Supervisor, Watch};

/// How long a server may say nothing.
const SILENCE: Duration = Duration::from_secs(30);
/// How long a waiter for a lock says nothing.
const LOCK_SILENCE: Duration = Duration::from_secs(1);
/// Characters of a repository's name in the name of its cache, for people who look.
const LABEL_CHARACTERS: usize = 40;
/// The fewest digits that are taken for the beginning of an id, as git has it.
const PREFIX_DIGITS: usize = 4;

/// What reading repositories needs to know. All of it is the caller's.
#[derive(Clone, Copy)]
pub struct RemoteOptions<'a> {
    /// The directory of cache repositories; made when it is needed.
    pub cache: &'a Path,
    /// What relative local paths are seen from.
    pub base: &'a Path,
    /// The whole environment of `ssh` and of credential helpers, and the proxy.
    pub environment: &'a BTreeMap<OsString, OsString>,
    /// Raised by the user.
    pub cancel: &'a Cancellation,
    /// Who a waiter is told about.
    pub holder: &'a Holder,
    /// Whether the network may not be used.
    pub offline: bool,
    /// What the caller knows that opens a repository. A credential of the URL itself goes first,
    /// git's credential helpers are asked last.
    pub credential: &'a (dyn Fn(&RemoteUrl) -> Option<Credential> + Sync),
    /// Told once who holds the cache of a repository, when another process has done so for a while.
    pub waiting: &'a (dyn Fn(&Holder) + Sync),
    /// Told again and again how many bytes a transfer has brought so far.
    pub progress: &'a (dyn Fn(&RemoteUrl, u64) + Sync),
}

/// Repositories by their URL. Can be used by several threads at once.
pub struct Remotes<'a> {
    options: RemoteOptions<'a>,
    silence: Duration,
}

impl<'a> Remotes<'a> {
    /// Nothing is touched yet.
    pub fn new(options: RemoteOptions<'a>) -> Self {
        Self {
            options,
            silence: SILENCE,
        }
    }

    /// The tags and branches of `url`.
    ///
    /// # Errors
    /// [`GitError::Offline`] for a remote one if the network may not be used; that of the
    /// conversation.
    pub fn refs(&self, url: &RemoteUrl) -> Result<Refs, GitError> {
        if let Some(database) = self.local(url)? {
            return database.refs();
        }
        self.check_online(url)?;
        let _usage = self.prepare_directory(url)?;
        self.list(url)
    }

    /// The commit that is `wanted` of `url`, and a database with it and its history. What is in
    /// the cache already needs no network if it is asked for by its full id.
    ///
    /// # Errors
    /// There is no such tag, branch, revision or commit; that of the conversation;
    /// [`GitError::Offline`].
    pub fn fetch(
        &self,
        url: &RemoteUrl,
        wanted: Wanted<'_>,
    ) -> Result<(Database, CommitId), GitError> {
        if let Some(database) = self.local(url)? {
            let commit = database.resolve(wanted)?;
            return Ok((database, commit));
        }
        let wanted = match wanted {
            Wanted::Revision(text) => text.parse().map_or(wanted, Wanted::Commit),
            other => other,
        };
        let path = self.path_of(url);
        let usage = self.use_cache(url)?;
        if let Some((database, commit)) = self.in_cache(url, wanted) {
            note_use(&path);
            return Ok((database.held_by(usage), commit));
        }
        self.check_online(url)?;
        // The directory may have been removed after we looked in it without a lock.
        let usage = match usage {
            Some(usage) => Some(usage),
            None => self.prepare_directory(url)?,
        };
        let lock = self.lock(url, &path)?;
        let cache = Cache { path, lock };
        // Another process may have fetched it while we waited.
        let (database, commit) = match self.in_cache(url, wanted) {
            Some(found) => found,
            None => self.fetch_locked(url, wanted, &cache)?,
        };
        note_use(&cache.path);
        Ok((database.held_by(usage), commit))
    }

    /// The repository of `url` as far as it is here: the local one, or the cache. Needs no
    /// network. `None` if nothing was fetched of it yet.
    ///
    /// # Errors
    /// [`GitError::NotARepository`] for a local one.
    pub fn cached(&self, url: &RemoteUrl) -> Result<Option<Database>, GitError> {
        match self.local(url)? {
            Some(database) => Ok(Some(database)),
            None => {
                let usage = self.use_cache(url)?;
                // One that cannot be opened is made anew by the next fetch.
                let database = Database::open_as(&self.path_of(url), url.to_string()).ok();
                Ok(database.map(|database| database.held_by(usage)))
            }
        }
    }

    /// Fetches `wanted` of `url` into a new cache, which replaces the one that is there: for a
    /// cache in which an object cannot be read. Whether that was done: not for a local repository,
    /// not where the network may not be used, and not where the fetch fails.
    ///
    /// # Errors
    /// [`GitError::Cache`], [`GitError::DamagedCache`] or [`GitError::Interrupted`].
    pub fn renew(&self, url: &RemoteUrl, wanted: Wanted<'_>) -> Result<bool, GitError> {
        if url.is_local() || self.options.offline {
            return Ok(false);
        }
        let _usage = self.prepare_directory(url)?;
        let path = self.path_of(url);
        let lock = self.lock(url, &path)?;
        let fetched = self.fetch_anew(url, wanted, &Cache { path, lock })?;
        Ok(fetched.is_some())
    }

    fn local(&self, url: &RemoteUrl) -> Result<Option<Database>, GitError> {
        let location = url.location(self.options.base);
        let open = |path: PathBuf| Database::open_as(&path, url.to_string());
        location.map(open).transpose()
    }

    fn check_online(&self, url: &RemoteUrl) -> Result<(), GitError> {
        match self.options.offline {
            false => Ok(()),
            true => Err(GitError::Offline {
                repository: url.to_string(),
            }),
        }
    }

    /// `wanted` without the network: exactly one commit, or, if the network may not be used, what
    /// its name meant when it was fetched last.
    fn in_cache(&self, url: &RemoteUrl, wanted: Wanted<'_>) -> Option<(Database, CommitId)> {
        let path = self.path_of(url);
        let database = Database::open_as(&path, url.to_string()).ok()?;
        let cache = Cache { path, lock: None };
        let commit = match wanted {
            Wanted::Commit(commit) => commit,
            _ if !self.options.offline => return None,
            Wanted::Tag(name) => cache.kept(&kept_name("tag", name))?,
            Wanted::Branch(name) => cache.kept(&kept_name("branch", name))?,
            Wanted::Default => cache.kept(&kept_name("head", ""))?,
            Wanted::Revision(text) => cache
                .kept(&kept_name("tag", text))
                .or_else(|| cache.kept(&kept_name("branch", text)))
                .or_else(|| by_prefix(&database, text).ok()?)?,
        };
        database.commit_tree_id(&commit).ok()?;
        Some((database, commit))
    }

    /// Makes the directory of the cache, in which nothing is removed as long as what this returns
    /// is held.
    fn prepare_directory(&self, url: &RemoteUrl) -> Result<Option<FileLock>, GitError> {
        let directory = self.options.cache;
        self.wait_for(url, &directory.join(USE_LOCK), || {
            create_directory_all(directory)?;
            Ok(try_use(directory))
        })
    }

    /// The same for a directory that need not exist, and is not made.
    fn use_cache(&self, url: &RemoteUrl) -> Result<Option<FileLock>, GitError> {
        let directory = self.options.cache;
        self.wait_for(url, &directory.join(USE_LOCK), || Ok(try_use(directory)))
    }

    /// Where the cache of `url` is: a label for people and a digest of the whole URL.
    fn path_of(&self, url: &RemoteUrl) -> PathBuf {
        let last = url.path().trim_end_matches('/').rsplit(['/', ':']).next();
        let is_plain = |c: &char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_');
        let label = last.unwrap_or_default().trim_end_matches(".git").chars();
        let label: String = label.filter(is_plain).take(LABEL_CHARACTERS).collect();
        let digest = Sha256Digest::of(url.as_str().as_bytes()).to_string();
        self.options
            .cache
            .join(format!("{label}-{}", &digest[..DIGITS]))
    }

    /// Waits for the lock of the cache repository at `path`.
    fn lock(&self, url: &RemoteUrl, path: &Path) -> Result<Option<Arc<FileLock>>, GitError> {
        let path = path.with_extension("lock");
        let attempt = || FileLock::try_exclusive(&path, self.options.holder);
        let lock = self.wait_for(url, &path, attempt)?;
        Ok(lock.map(Arc::new))
    }

    /// Tries to take the lock `path` until it is had; `None` where there are no locks.
    fn wait_for(
        &self,
        url: &RemoteUrl,
        path: &Path,
        attempt: impl Fn() -> Result<LockOutcome, FsError>,
    ) -> Result<Option<FileLock>, GitError> {
        let mut is_told = false;
        let attempt = || attempt().map_err(|source| cache_failed(url, source));
        wait_for_lock(attempt, |waited| {
            if self.options.cancel.is_cancelled() {
                return Err(GitError::Interrupted {
                    repository: url.to_string(),
                });
            }
            if !is_told && waited >= LOCK_SILENCE {
                is_told = self.tell_holder(path);
            }
            Ok(())
        })
    }

    /// Names who holds the lock, unless it is another thread of this process, whose own progress
    /// is seen.
    fn tell_holder(&self, lock: &Path) -> bool {
        let holder = read_holder(lock).filter(|holder| holder.pid != self.options.holder.pid);
        if let Some(holder) = &holder {
            (self.options.waiting)(holder);
        }
        holder.is_some()
    }

    fn fetch_locked(
        &self,
        url: &RemoteUrl,
        wanted: Wanted<'_>,
        cache: &Cache,
    ) -> Result<(Database, CommitId), GitError> {
        let failed = |source| cache_failed(url, source);
        let existed = cache.path.is_dir();
        match existed {
            true => remove_leftovers(&cache.path).map_err(failed)?,
            false => create_repository(&cache.path, url).map_err(failed)?,
        }
        match self.attempt(url, wanted, cache) {
            Err(error) if !existed => {
                // Nothing came, so nothing is left. That it fails changes nothing.
                let _ = remove_tree(&cache.path);
                Err(error)
            }
            Err(error) if existed && may_be_damage(&error) => {
                self.fetch_anew(url, wanted, cache)?.ok_or(error)
            }
            other => other,
        }
    }

    /// Tries again with a new repository, which replaces that of `cache` if the fetch succeeds;
    /// `None` if it does not.
    fn fetch_anew(
        &self,
        url: &RemoteUrl,
        wanted: Wanted<'_>,
        cache: &Cache,
    ) -> Result<Option<(Database, CommitId)>, GitError> {
        let path = cache.path.with_extension("new");
        let remove =
            |path: &Path| remove_tree(path).map_err(|error| removal_failed(url, path, &error));
        remove(&path)?;
        create_repository(&path, url).map_err(|source| cache_failed(url, source))?;
        let fresh = Cache {
            path,
            lock: cache.lock.clone(),
        };
        let (database, commit) = match self.attempt(url, wanted, &fresh) {
            Ok(fetched) => fetched,
            Err(error) => {
                remove(&fresh.path)?;
                return match error {
                    GitError::Interrupted { .. } => Err(error),
                    _ => Ok(None),
                };
            }
        };
        drop(database);
        remove(&cache.path)?;
        rename_over(&fresh.path, &cache.path).map_err(|source| cache_failed(url, source))?;
        tracing::debug!("the cache of {url} was damaged and has been made anew");
        let database = Database::open_as(&cache.path, url.to_string())?;
        Ok(Some((database, commit)))
    }

    fn attempt(
        &self,
        url: &RemoteUrl,
        wanted: Wanted<'_>,
        cache: &Cache,
    ) -> Result<(Database, CommitId), GitError> {
        let (commit, names) = match wanted {
            Wanted::Commit(commit) => (self.fetch_commit(url, commit, cache)?, Vec::new()),
            Wanted::Revision(text) => self.fetch_revision(url, text, cache)?,
            Wanted::Tag(name) => {
                let commit = self.fetch_named(url, &format!("refs/tags/{name}"), cache)?;
                let missing = || GitError::NoSuchTag {
                    repository: url.to_string(),
                    tag: shown(name),
                };
                (commit.ok_or_else(missing)?, vec![kept_name("tag", name)])
            }
            Wanted::Branch(name) => {
                let commit = self.fetch_named(url, &format!("refs/heads/{name}"), cache)?;
                let missing = || GitError::NoSuchBranch {
                    repository: url.to_string(),
                    branch: shown(name),
                };
                (commit.ok_or_else(missing)?, vec![kept_name("branch", name)])
            }
            Wanted::Default => {
                let commit = self.fetch_named(url, "HEAD", cache)?;
                let missing = || GitError::NoDefaultBranch {
                    repository: url.to_string(),
                };
                (commit.ok_or_else(missing)?, vec![kept_name("head", "")])
            }
        };
        let database = Database::open_as(&cache.path, url.to_string())?;
        database.commit_tree_id(&commit)?;
        cache.keep(&self.destination(url), &commit, &names)?;
        Ok((database, commit))
    }

    /// The commit of the reference `name`; `None` if the server has no such reference.
    fn fetch_named(
        &self,
        url: &RemoteUrl,
        name: &str,
        cache: &Cache,
    ) -> Result<Option<CommitId>, GitError> {
        let found = self.fetch_names(url, &[name.to_owned()], cache)?;
        Ok(found.first().map(|(_, id)| CommitId(*id)))
    }

    /// Asks for `commit` by its id, and looks for it in everything if the server refuses that.
    fn fetch_commit(
        &self,
        url: &RemoteUrl,
        commit: CommitId,
        cache: &Cache,
    ) -> Result<CommitId, GitError> {
        let asked = self.fetch_names(url, &[commit.to_string()], cache);
        match asked {
            Ok(_) => {}
            Err(GitError::Transfer { .. }) => self.fetch_everything(url, cache)?,
            Err(error) => return Err(error),
        }
        match Database::open_as(&cache.path, url.to_string())?.has_commit(&commit) {
            true => Ok(commit),
            false => Err(GitError::VanishedCommit {
                repository: url.to_string(),
                commit,
            }),
        }
    }

    /// The commit of a tag or a branch, or the one whose id begins with `text`.
    fn fetch_revision(
        &self,
        url: &RemoteUrl,
        text: &str,
        cache: &Cache,
    ) -> Result<(CommitId, Vec<String>), GitError> {
        let (tag, branch) = (format!("refs/tags/{text}"), format!("refs/heads/{text}"));
        let found = self.fetch_names(url, &[tag.clone(), branch], cache)?;
        let is_tag = |found: &&Found| found.0 == tag.as_str();
        if let Some((_, id)) = found.iter().find(is_tag) {
            return Ok((CommitId(*id), vec![kept_name("tag", text)]));
        }
        if let Some((_, id)) = found.first() {
            return Ok((CommitId(*id), vec![kept_name("branch", text)]));
        }
        if is_prefix(text) {
            self.fetch_everything(url, cache)?;
            let database = Database::open_as(&cache.path, url.to_string())?;
            if let Some(commit) = by_prefix(&database, text)? {
                return Ok((commit, Vec::new()));
            }
        }
        Err(GitError::NoSuchRevision {
            repository: url.to_string(),
            revision: shown(text),
        })
    }

    /// Fetches every branch and tag, each by its name.
    fn fetch_everything(&self, url: &RemoteUrl, cache: &Cache) -> Result<(), GitError> {
        let refs = self.list(url)?;
        let branches = refs
            .branches
            .keys()
            .map(|name| format!("refs/heads/{name}"));
        let tags = refs.tags.keys().map(|name| format!("refs/tags/{name}"));
        let names: Vec<String> = branches.chain(tags).collect();
        self.fetch_names(url, &names, cache)?;
        Ok(())
    }

    fn list(&self, url: &RemoteUrl) -> Result<Refs, GitError> {
        let destination = self.destination(url);
        self.supervise(url, &destination.clone(), move || {
            transfer::list(&destination)
        })
    }

    /// Fetches what is there of `names`. A name that no reference can have is not there.
    fn fetch_names(
        &self,
        url: &RemoteUrl,
        names: &[String],
        cache: &Cache,
    ) -> Result<Vec<Found>, GitError> {
        let is_possible = |name: &&String| {
            name.parse::<CommitId>().is_ok()
                || gix::validate::reference::name(name.as_str().into()).is_ok()
        };
        let names: Vec<String> = names.iter().filter(is_possible).cloned().collect();
        match names.is_empty() {
            true => Ok(Vec::new()),
            false => self.fetch_under_supervision(url, names, cache),
        }
    }

    fn fetch_under_supervision(
        &self,
        url: &RemoteUrl,
        names: Vec<String>,
        cache: &Cache,
    ) -> Result<Vec<Found>, GitError> {
        let destination = self.destination(url);
        let cache = cache.clone();
        self.supervise(url, &destination.clone(), move || {
            cache.fetch(&destination, &names)
        })
    }

    fn supervise<T: Send + 'static>(
        &self,
        url: &RemoteUrl,
        destination: &Destination,
        work: impl FnOnce() -> Result<T, GitError> + Send + 'static,
    ) -> Result<T, GitError> {
        let supervisor = Supervisor {
            repository: url.as_str(),
            host: &url.authority().unwrap_or_default(),
            cancel: self.options.cancel,
            progress: &|bytes| (self.options.progress)(url, bytes),
            silence: self.silence,
        };
        supervisor.run(&destination.watch, work)
    }

    fn destination(&self, url: &RemoteUrl) -> Destination {
        let own = url.credential().cloned();
        Destination {
            url: url.clone(),
            credential: own.or_else(|| (self.options.credential)(url)),
            directory: self.options.cache.to_path_buf(),
            environment: self.options.environment.clone(),
            watch: Watch::new(),
        }
    }
}

impl Database {
    /// The commit that is `wanted` of this repository, by its own names.
    ///
    /// # Errors
    /// There is no such tag, branch, revision or commit.
    pub fn resolve(&self, wanted: Wanted<'_>) -> Result<CommitId, GitError> {
        let repository = || self.repository().to_owned();
        let found = match wanted {
            Wanted::Commit(commit) => {
                return match self.has_commit(&commit) {
                    true => Ok(commit),
                    false => Err(GitError::VanishedCommit {
                        repository: repository(),
                        commit,
                    }),
                };
            }
            Wanted::Tag(name) => self.refs()?.tags.get(name).copied(),
            Wanted::Branch(name) => self.refs()?.branches.get(name).copied(),
            Wanted::Default => self.refs()?.head,
            Wanted::Revision(text) => match text.parse() {
                Ok(commit) => return self.resolve(Wanted::Commit(commit)),
                Err(_) => self.named(text)?,
            },
        };
        found.ok_or_else(|| match wanted {
            Wanted::Tag(name) => GitError::NoSuchTag {
                repository: repository(),
                tag: shown(name),
            },
            Wanted::Branch(name) => GitError::NoSuchBranch {
                repository: repository(),
                branch: shown(name),
            },
            Wanted::Revision(text) => GitError::NoSuchRevision {
                repository: repository(),
                revision: shown(text),
            },
            Wanted::Default | Wanted::Commit(_) => GitError::NoDefaultBranch {
                repository: repository(),
            },
        })
    }

    fn named(&self, text: &str) -> Result<Option<CommitId>, GitError> {
        let refs = self.refs()?;
        let by_name = refs.tags.get(text).or_else(|| refs.branches.get(text));
        match by_name {
            Some(commit) => Ok(Some(*commit)),
            None => by_prefix(self, text),
        }
    }
}

fn is_prefix(text: &str) -> bool {
    text.len() >= PREFIX_DIGITS && text.bytes().all(is_lower_hex)
}

fn by_prefix(database: &Database, text: &str) -> Result<Option<CommitId>, GitError> {
    match is_prefix(text) {
        true => database.commit_by_prefix(text),
        false => Ok(None),
    }
}

fn shown(name: &str) -> String {
    escape(&shorten(name, 200))
}

/// The reference under which the cache keeps what `name` meant. Its digest, because a name may be
/// too long for a file or differ from another in case only.
fn kept_name(kind: &str, name: &str) -> String {
    let digest = Sha256Digest::of(name.as_bytes()).to_string();
    format!("{KEPT}{kind}-{}", &digest[..40])
}

/// Whether a failure may come from the cache rather than from the server.
fn may_be_damage(error: &GitError) -> bool {
    matches!(
        error,
        GitError::Transfer { .. }
            | GitError::Unreadable { .. }
            | GitError::NotARepository { .. }
            | GitError::DamagedCache { .. }
            | GitError::VanishedCommit { .. }
    )
}

fn cache_failed(url: &RemoteUrl, source: FsError) -> GitError {
    GitError::Cache {
        repository: url.to_string(),
        source,
    }
}

fn removal_failed(url: &RemoteUrl, path: &Path, error: &RemoveError) -> GitError {
    GitError::DamagedCache {
        repository: url.to_string(),
        path: vibe_core::text::escape_bytes(path.as_os_str().as_encoded_bytes()),
        source: Cause::of(error),
    }
}

/// Makes an empty bare repository of `url` at `path`, which appears whole. It names no hooks, no
/// template and nothing else that could act.
fn create_repository(path: &Path, url: &RemoteUrl) -> Result<(), FsError> {
    let staging = path.with_extension("staging");
    let failed = |error: RemoveError| {
        FsError::new("remove", &staging, std::io::Error::other(error.to_string()))
    };
    remove_tree(&staging).map_err(failed)?;
    for directory in ["objects/info", "objects/pack", "refs/heads", "refs/vibe"] {
        create_directory_all(&staging.join(directory))?;
    }
    let config = b"[core]\n\trepositoryformatversion = 0\n\tbare = true\n";
    for (name, content) in [
        ("HEAD", b"ref: refs/heads/none\n".as_slice()),
        ("config", config),
        (DESCRIPTION, format!("{url}\n").as_bytes()),
    ] {
        create_new_file(&staging.join(name), content)?;
    }
    rename_over(&staging, path)
}

/// Removes what a transfer that was killed has left: locks of references and unfinished packs.
fn remove_leftovers(path: &Path) -> Result<(), FsError> {
    for (directory, is_leftover) in [
        ("refs/vibe", is_lock as fn(&str) -> bool),
        ("objects/pack", is_unfinished),
        ("", is_lock),
    ] {
        let directory = path.join(directory);
        let entries = match list_dir(&directory) {
            Ok(entries) => entries,
            Err(error) if error.is_not_found() => continue,
            Err(error) => return Err(error),
        };
        for entry in entries {
            if entry.relative.to_str().is_some_and(is_leftover) {
                remove_file_if(&directory.join(&entry.relative), |_| true)?;
            }
        }
    }
    Ok(())
}

fn is_lock(name: &str) -> bool {
    name.ends_with(".lock")
}

/// Packs are `pack-<digest>.pack` and `.idx`; whatever else is there is on its way to become one.
fn is_unfinished(name: &str) -> bool {
    !name.starts_with("pack-")
}

#[cfg(test)]
mod tests;
