//! The git repositories of one run: each is asked for its names once, and each commit is brought
//! once, whoever needs it.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use vibe_core::formats::lock::{LockedPackage, LockedSource};
use vibe_core::formats::manifest::GitReference;
use vibe_core::{PackageId, RemoteUrl};
use vibe_git::{CommitId, Database, GitError, Refs, Wanted};

use crate::error::InstallError;
use crate::fetch::GitOrigin;
use crate::settings::Context;

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
    context: &'a Context<'a>,
    /// The root of the project, which local addresses are relative to.
    root: PathBuf,
    refs: Mutex<BTreeMap<RemoteUrl, Arc<Refs>>>,
    commits: Mutex<BTreeMap<(RemoteUrl, String), Commit>>,
}

impl<'a> Repositories<'a> {
    /// Ready to ask, with nothing asked.
    pub(crate) fn new(context: &'a Context<'a>, root: PathBuf) -> Self {
        Self {
            context,
            root,
            refs: Mutex::default(),
            commits: Mutex::default(),
        }
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
        self.check(id, url)?;
        let failed = |source| git_error(id, source);
        let refs = match url.location(&self.root) {
            Some(location) => Database::open(&location)
                .and_then(|database| database.refs())
                .map_err(failed)?,
            None => return Err(self.not_yet(id, url)),
        };
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
        self.check(id, url)?;
        let commit = match url.location(&self.root) {
            Some(location) => {
                let database = Database::open(&location).map_err(|e| git_error(id, e))?;
                let refs = self.refs(id, url)?;
                let found = match wanted {
                    Wanted::Tag(tag) => refs.tags.get(*tag).copied(),
                    Wanted::Branch(branch) => refs.branches.get(*branch).copied(),
                    Wanted::Commit(commit) => Some(*commit),
                    Wanted::Revision(text) => text.parse().ok(),
                    Wanted::Default => refs.head,
                };
                Commit {
                    database: Arc::new(database),
                    id: found.ok_or_else(|| self.not_yet(id, url))?,
                }
            }
            None => return Err(self.not_yet(id, url)),
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
        let commit: CommitId = origin
            .commit
            .parse()
            .expect("a commit is 40 hex digits, from the lock or from a repository");
        self.commit(Some(id), &origin.url, &Wanted::Commit(commit))
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

    /// Refuses a repository that may not be asked: one whose transport protects nothing, unless
    /// the user names its host, and any on a network where none is to be used.
    fn check(&self, id: Option<&PackageId>, url: &RemoteUrl) -> Result<(), InstallError> {
        let allowed = &self.context.settings.config.insecure_hosts;
        url.check_protected(allowed)
            .map_err(|source| InstallError::GitUrl {
                id: id.cloned(),
                source,
            })
    }

    fn not_yet(&self, id: Option<&PackageId>, url: &RemoteUrl) -> InstallError {
        InstallError::NotYet {
            what: format!("the git source of {id:?}"),
            path: url.as_str().into(),
        }
    }
}

fn git_error(id: Option<&PackageId>, source: GitError) -> InstallError {
    InstallError::Git {
        id: id.cloned(),
        source: Box::new(source),
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
