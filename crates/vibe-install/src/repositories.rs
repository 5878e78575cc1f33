//! The git repositories of one run: each is asked for its names once, and each commit is brought
//! once, whoever needs it.

use std::collections::{BTreeMap, BTreeSet};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use vibe_core::formats::lock::{LockedPackage, LockedSource};
use vibe_core::formats::manifest::GitReference;
use vibe_core::git_url::Credential;
use vibe_core::{Cancellation, Event, Observer, PackageId, RemoteUrl};
use vibe_fetch::{SubmoduleFailure, SubmoduleSource};
use vibe_fs::Holder;
use vibe_git::{CommitId, Database, GitError, Refs, RemoteOptions, Remotes, Wanted};
use vibe_store::Store;

use crate::error::InstallError;
use crate::settings::{Context, Settings};
use crate::target::GitOrigin;

/// Repositories that are asked at the same time: enough that a slow server holds few others up, few
/// enough that a server takes it for one user.
const ASKED_AT_ONCE: usize = 8;

/// How the variables with tokens begin.
const TOKEN_VARIABLE: &str = "VIBE_GIT_TOKEN_";

/// The user that goes with a token of which nothing else is said. The common hosts look at the token
/// alone.
const TOKEN_USER: &str = "token";

/// A commit whose objects are here.
#[derive(Clone)]
pub(crate) struct Commit {
    /// The repository's objects.
    pub database: Arc<Database>,
    /// The commit.
    pub id: CommitId,
}

/// The repositories.
pub(crate) struct Repositories<'a> {
    settings: &'a Settings,
    observer: &'a dyn Observer,
    cancel: &'a Cancellation,
    /// The root of the project, which local addresses are relative to.
    root: PathBuf,
    refs: Mutex<BTreeMap<RemoteUrl, Arc<Refs>>>,
    commits: Mutex<BTreeMap<(RemoteUrl, String), Commit>>,
    /// Those that were fetched anew, since their cache was damaged.
    renewed: Mutex<BTreeSet<RemoteUrl>>,
}

impl<'a> Repositories<'a> {
    /// Ready to ask, with nothing asked.
    pub(crate) fn new(context: &Context<'a>, root: PathBuf) -> Self {
        Self {
            settings: context.settings,
            observer: context.observer,
            cancel: context.cancel,
            root,
            refs: Mutex::default(),
            commits: Mutex::default(),
            renewed: Mutex::default(),
        }
    }

    /// `url` for a clone, which is in another directory than the manifest that states it: a relative
    /// path is made absolute. Without credentials.
    pub(crate) fn address(&self, url: &RemoteUrl) -> String {
        let is_relative = url.is_local() && !Path::new(url.path()).is_absolute();
        let place = url.location(&self.root).filter(|_| is_relative);
        let place = place.map(|place| vibe_fs::canonical_directory(&place).unwrap_or(place));
        let address = place.as_deref().and_then(Path::to_str);
        address.map_or_else(|| url.to_string(), str::to_owned)
    }

    /// The store of packages. Touches nothing.
    pub(crate) fn package_store(&self) -> Option<Store> {
        self.settings.package_store()
    }

    /// The tags and branches of the repository of `id`.
    pub(crate) fn refs(
        &self,
        id: Option<&PackageId>,
        url: &RemoteUrl,
    ) -> Result<Arc<Refs>, InstallError> {
        let known = lock(&self.refs).get(url).cloned();
        if let Some(refs) = known {
            return Ok(refs);
        }
        let refs = self.ask(id, url, |remotes| remotes.refs(url))?;
        let refs = Arc::new(refs);
        lock(&self.refs).insert(url.clone(), Arc::clone(&refs));
        Ok(refs)
    }

    /// The commit of the repository of `id` that is `wanted`.
    pub(crate) fn commit(
        &self,
        id: Option<&PackageId>,
        url: &RemoteUrl,
        wanted: &Wanted<'_>,
    ) -> Result<Commit, InstallError> {
        let key = (url.clone(), format!("{wanted:?}"));
        let known = lock(&self.commits).get(&key).cloned();
        if let Some(commit) = known {
            return Ok(commit);
        }
        let (database, commit) = self.ask(id, url, |remotes| remotes.fetch(url, *wanted))?;
        let commit = Commit {
            database: Arc::new(database),
            id: commit,
        };
        let exact = (url.clone(), format!("{:?}", Wanted::Commit(commit.id)));
        let mut commits = lock(&self.commits);
        commits.insert(exact, commit.clone());
        commits.insert(key, commit.clone());
        Ok(commit)
    }

    /// The commit that `origin` names.
    pub(crate) fn commit_of(
        &self,
        id: &PackageId,
        origin: &GitOrigin,
    ) -> Result<Commit, InstallError> {
        self.commit(Some(id), &origin.url, &Wanted::Commit(origin.commit_id()))
    }

    /// The commit of the repository of `id` that is `wanted`, and the content of its file `path`, of
    /// at most `limit_bytes`; `None` where it has no such file.
    pub(crate) fn file(
        &self,
        id: Option<&PackageId>,
        url: &RemoteUrl,
        wanted: &Wanted<'_>,
        path: &str,
        limit_bytes: u64,
    ) -> Result<(CommitId, Option<Vec<u8>>), InstallError> {
        self.reading(|| {
            let commit = self.commit(id, url, wanted)?;
            let bytes = commit.database.blob_at(&commit.id, path, limit_bytes);
            let bytes = bytes.map_err(|source| InstallError::Git {
                id: id.cloned(),
                source: Box::new(source),
            })?;
            Ok((commit.id, bytes))
        })
    }

    /// Does `work` for each of `items`, several at a time: mostly it waits for servers.
    ///
    /// # Errors
    /// That of the first item, in their order, for which it failed.
    pub(crate) fn each<T: Sync>(
        &self,
        items: &[T],
        work: impl Fn(&Self, &T) -> Result<(), InstallError> + Sync,
    ) -> Result<(), InstallError> {
        let next = AtomicUsize::new(0);
        let failures = Mutex::new(BTreeMap::new());
        let take_turns = || loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(item) = items.get(index) else { break };
            if let Err(error) = work(self, item) {
                lock(&failures).insert(index, error);
            }
        };
        let jobs = self.settings.jobs.map_or(ASKED_AT_ONCE, NonZeroUsize::get);
        std::thread::scope(|scope| {
            for _ in 0..items.len().min(ASKED_AT_ONCE).min(jobs) {
                scope.spawn(take_turns);
            }
        });
        let failures = failures.into_inner();
        let mut failures = failures
            .unwrap_or_else(PoisonError::into_inner)
            .into_values();
        failures.next().map_or(Ok(()), Err)
    }

    /// What `read` gets out of repositories. It is asked once more where an object in the cache cannot
    /// be read and the repository could be fetched anew.
    pub(crate) fn reading<T>(
        &self,
        read: impl Fn() -> Result<T, InstallError>,
    ) -> Result<T, InstallError> {
        match read() {
            Err(error) if self.renew(&error)? => read(),
            outcome => outcome,
        }
    }

    /// Fetches anew, once in a run, the repository of which `error` says that an object cannot be
    /// read. Whether it was.
    fn renew(&self, error: &InstallError) -> Result<bool, InstallError> {
        let Some(damaged) = error.unreadable_repository() else {
            return Ok(false);
        };
        // Held while it is fetched: who meets the same damage waits for the end of it.
        let mut renewed = lock(&self.renewed);
        if renewed.iter().any(|url| url.as_str() == damaged) {
            return Ok(true);
        }
        let known = lock(&self.commits)
            .iter()
            .find(|((url, _), _)| url.as_str() == damaged)
            .map(|((url, _), commit)| (url.clone(), commit.id));
        let Some((url, commit)) = known else {
            return Ok(false);
        };
        let wanted = Wanted::Commit(commit);
        if !self.ask(None, &url, |remotes| remotes.renew(&url, wanted))? {
            return Ok(false);
        }
        lock(&self.commits).retain(|(of, _), _| *of != url);
        let told = format!("the cache of {url} was damaged and was fetched again");
        self.observer.observe(&Event::Warning(told));
        renewed.insert(url);
        Ok(true)
    }

    /// Whether commit `new` of the repository of `package` comes after `old`, as far as the history
    /// that is here tells.
    pub(crate) fn follows(&self, package: &LockedPackage, old: &str, new: &str) -> bool {
        let (LockedSource::Git(url), Ok(old), Ok(new)) =
            (&package.source, old.parse(), new.parse())
        else {
            return false;
        };
        self.commit(Some(&package.id), url, &Wanted::Commit(new))
            .is_ok_and(|commit| commit.database.is_ancestor(&old, &new).unwrap_or(false))
    }

    /// Asks the repository of `id`, unless its transport protects nothing and the user did not name
    /// its host.
    fn ask<T>(
        &self,
        id: Option<&PackageId>,
        url: &RemoteUrl,
        question: impl FnOnce(&Remotes<'_>) -> Result<T, GitError>,
    ) -> Result<T, InstallError> {
        let settings = self.settings;
        url.check_protected(&settings.config.insecure_hosts)
            .map_err(|source| InstallError::GitUrl {
                id: id.cloned(),
                source,
            })?;
        let cache = match &settings.git_cache {
            Some(cache) => cache,
            None if url.is_local() => &self.root,
            None => return Err(InstallError::NoCacheFolder),
        };
        let holder = Holder {
            pid: std::process::id(),
            command: settings.command.clone(),
        };
        let observer = self.observer;
        let credential = |url: &RemoteUrl| token(settings, url);
        let waiting = |holder: &Holder| {
            observer.observe(&Event::Waiting {
                pid: holder.pid,
                command: holder.command.clone(),
            });
        };
        let progress = |url: &RemoteUrl, bytes| {
            observer.observe(&Event::Receiving {
                repository: url.to_string(),
                bytes,
            });
        };
        // Whoever may know a token gets it with the request; programs that are started do not.
        let mut environment = settings.environment.clone();
        environment.retain(|name, _| !name.to_string_lossy().starts_with(TOKEN_VARIABLE));
        let remotes = Remotes::new(RemoteOptions {
            cache,
            base: &self.root,
            environment: &environment,
            cancel: self.cancel,
            holder: &holder,
            offline: settings.is_offline(),
            credential: &credential,
            waiting: &waiting,
            progress: &progress,
        });
        question(&remotes).map_err(|source| match source {
            GitError::Interrupted { .. } => InstallError::Interrupted,
            source => InstallError::Git {
                id: id.cloned(),
                source: Box::new(source),
            },
        })
    }
}

/// The token that the environment has for the host of `url`: `VIBE_GIT_TOKEN_<HOST>`, with `user:`
/// before it where the host wants a certain user. That of the host with its port comes first.
fn token(settings: &Settings, url: &RemoteUrl) -> Option<Credential> {
    let hosts = [url.authority(), url.host().map(str::to_owned)];
    let mut values = hosts
        .iter()
        .flatten()
        .filter_map(|host| settings.variable(&token_variable(host)));
    let value = values.next()?.to_str()?;
    let (user, secret) = value.split_once(':').unwrap_or((TOKEN_USER, value));
    Some(Credential {
        user: user.to_owned(),
        secret: secret.to_owned(),
    })
}

/// The variable with the token of `host`, with or without its port.
pub fn token_variable(host: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '_' };
    let name: String = host.to_ascii_uppercase().chars().map(plain).collect();
    format!("{TOKEN_VARIABLE}{name}")
}

impl SubmoduleSource for Repositories<'_> {
    fn open(&self, url: &RemoteUrl, commit: &CommitId) -> Result<Arc<Database>, SubmoduleFailure> {
        let commit = self.commit(None, url, &Wanted::Commit(*commit))?;
        Ok(commit.database)
    }
}

/// What one thread left half done cannot be seen by another: entries are only added.
fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A reference as the lock writes it; `None` for the default branch.
pub(crate) fn reference_text(reference: &GitReference) -> Option<String> {
    match reference {
        GitReference::Tag(tag) => Some(format!("tag:{tag}")),
        GitReference::Branch(branch) => Some(format!("branch:{branch}")),
        GitReference::Rev(revision) => Some(format!("rev:{revision}")),
        GitReference::Range(constraint) => Some(format!("range:{constraint}")),
        GitReference::Default => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_is_named_after_its_host() {
        for (host, expected) in [
            ("github.com", "VIBE_GIT_TOKEN_GITHUB_COM"),
            ("127.0.0.1", "VIBE_GIT_TOKEN_127_0_0_1"),
            ("127.0.0.1:8080", "VIBE_GIT_TOKEN_127_0_0_1_8080"),
            ("[::1]", "VIBE_GIT_TOKEN____1_"),
            ("my-host", "VIBE_GIT_TOKEN_MY_HOST"),
        ] {
            assert_eq!(token_variable(host), expected);
        }
    }
}
