//! The store of packages and the cache of git repositories, as the user looks at them, proves them
//! and empties them. Needs no project; nothing in either is precious, so nothing is asked.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Serialize;
use vibe_core::formats::decode::decode;
use vibe_core::formats::manifest::{MANIFEST_NAME, Manifest, Reading};
use vibe_core::limits::MANIFEST_BYTES;
use vibe_core::{PackageId, RelPath, TreeId};
use vibe_fs::Holder;
use vibe_git::{CacheError, CachedRepository, GitCache, RemovedRepositories};
use vibe_store::{Damage, DamagedTree, GcPolicy, Store, StoreEntry, StoreError};

use crate::error::InstallError;
use crate::evidence::time_text;
use crate::report::{optional_path_text, path_text};
use crate::settings::{Context, Settings};

/// Where things are kept.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct CachePaths {
    /// The root of the store of packages.
    #[serde(serialize_with = "path_text")]
    pub store: PathBuf,
    /// The directory of fetched git repositories, where the user has a place for them.
    #[serde(serialize_with = "optional_path_text")]
    pub git: Option<PathBuf>,
}

/// What is kept.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct CacheListing {
    /// Where it is kept.
    #[serde(flatten)]
    pub paths: CachePaths,
    /// The package trees, the largest first.
    pub trees: Vec<CachedTree>,
    /// The repositories, the largest first.
    pub repositories: Vec<CachedGitRepository>,
    /// The bytes of all of them.
    pub bytes: u64,
}

/// A package tree of the store.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct CachedTree {
    /// Its identity.
    pub tree: TreeId,
    /// The package that its manifest names.
    pub package: Option<PackageId>,
    /// The version that its manifest names.
    pub version: Option<String>,
    /// How many files it has.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// When it was used last, to a day, in RFC 3339, UTC.
    pub used: String,
}

/// A git repository of the cache.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct CachedGitRepository {
    /// The name of its directory.
    pub name: String,
    /// Its URL, where it is known.
    pub url: Option<String>,
    /// The bytes of its files.
    pub bytes: u64,
    /// When it was used last, to a day, in RFC 3339, UTC.
    pub used: String,
}

/// What a look at every byte of the store found.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct CacheVerification {
    /// How many trees were read.
    pub trees: usize,
    /// How many files.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// The damaged trees, by identity.
    pub damaged: Vec<DamagedCacheTree>,
    /// The user interrupted before all was read.
    pub interrupted: bool,
}

/// A damaged tree.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct DamagedCacheTree {
    /// Its identity.
    pub tree: TreeId,
    /// The package that its manifest names, if that is whole.
    pub package: Option<PackageId>,
    /// The version that its manifest names, if that is whole.
    pub version: Option<String>,
    /// What is wrong with it; at least one.
    pub faults: Vec<CacheFault>,
    /// It was moved out of use, so that it is fetched again.
    pub quarantined: bool,
    /// Where it lies, or lay.
    #[serde(serialize_with = "path_text")]
    pub place: PathBuf,
}

/// One thing that is wrong with a tree.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct CacheFault {
    /// The file; none where it is about the tree's own listing.
    pub path: Option<RelPath>,
    /// What is wrong, in words.
    pub message: String,
}

/// What `cache gc` and `cache clean` removed.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct CacheRemovalReport {
    /// The trees, the largest first.
    pub trees: Vec<CachedTree>,
    /// The repositories, the largest first.
    pub repositories: Vec<CachedGitRepository>,
    /// What killed runs had left, and damaged trees that were out of use.
    pub leftovers: usize,
    /// The bytes of all of these.
    pub bytes: u64,
    /// How many trees stay.
    pub kept_trees: usize,
    /// How many repositories stay.
    pub kept_repositories: usize,
    /// Another run uses the store or the repositories, so that what it may need was left.
    pub in_use: bool,
    /// The user interrupted before all was removed.
    pub interrupted: bool,
}

/// Where things are kept. Touches nothing.
///
/// # Errors
/// [`InstallError::NoStore`].
pub fn cache_path(settings: &Settings) -> Result<CachePaths, InstallError> {
    Ok(CachePaths {
        store: settings.store.clone().ok_or(InstallError::NoStore)?,
        git: settings.git_cache.clone(),
    })
}

/// What is kept. Changes nothing, and notes no use.
///
/// # Errors
/// There is no place for a store; it or the repositories cannot be listed.
pub fn cache_list(context: &Context<'_>) -> Result<CacheListing, InstallError> {
    let caches = Caches::of(context.settings)?;
    let trees = caches.trees()?;
    let repositories = match &caches.git {
        Some(git) => told(caches.in_git(git.repositories())?),
        None => Vec::new(),
    };
    let bytes = total(&trees, &repositories);
    Ok(CacheListing {
        paths: cache_path(context.settings)?,
        trees,
        repositories,
        bytes,
    })
}

/// Reads every byte of the store. Damaged trees are moved out of use where the store can be written.
///
/// # Errors
/// There is no place for a store; it cannot be listed.
pub fn cache_verify(context: &Context<'_>) -> Result<CacheVerification, InstallError> {
    let caches = Caches::of(context.settings)?;
    // What is moved away can no longer be asked for its name.
    let named: BTreeMap<TreeId, CachedTree> = caches
        .trees()?
        .into_iter()
        .map(|tree| (tree.tree, tree))
        .collect();
    let outcome = caches.in_store(caches.store.verify(context.cancel))?;
    let told = |damaged: DamagedTree| {
        let name = named.get(&damaged.tree);
        DamagedCacheTree {
            tree: damaged.tree,
            package: name.and_then(|name| name.package.clone()),
            version: name.and_then(|name| name.version.clone()),
            faults: faults(damaged.damage),
            quarantined: damaged.quarantined,
            place: caches.store.directory_of(damaged.tree),
        }
    };
    Ok(CacheVerification {
        trees: outcome.trees,
        files: outcome.files,
        bytes: outcome.bytes,
        damaged: outcome.damaged.into_iter().map(told).collect(),
        interrupted: outcome.cancelled,
    })
}

/// Removes what was not used for `unused_for`, and what killed runs left. Never waits for a run that
/// uses something: see [`CacheRemovalReport::in_use`].
///
/// # Errors
/// There is no place for a store; something cannot be listed, moved or removed.
pub fn cache_gc(
    context: &Context<'_>,
    unused_for: Duration,
) -> Result<CacheRemovalReport, InstallError> {
    let caches = Caches::of(context.settings)?;
    let mut trees = caches.trees()?;
    let outcome = caches.in_store(caches.store.gc(GcPolicy { unused_for }, context.cancel))?;
    trees.retain(|tree| outcome.removed.contains(&tree.tree));
    let mut report = CacheRemovalReport {
        trees,
        leftovers: outcome.staging + outcome.quarantined,
        bytes: outcome.bytes.saturating_add(outcome.rubbish_bytes),
        kept_trees: outcome.kept,
        in_use: outcome.in_use,
        interrupted: outcome.interrupted,
        ..CacheRemovalReport::default()
    };
    let Some(git) = &caches.git else {
        return Ok(report);
    };
    let holder = holder(context.settings);
    match caches.in_git(git.begin_removal(&holder))? {
        Some(removal) => {
            let removed = removal.remove_unused(unused_for, context.cancel);
            add_repositories(&mut report, caches.in_git(removed)?);
        }
        None => {
            report.in_use = true;
            report.kept_repositories = caches.in_git(git.repositories())?.len();
        }
    }
    Ok(report)
}

/// Removes everything of ours, or nothing while a run uses something of it.
///
/// # Errors
/// [`InstallError::GitCacheInUse`]; the store is in use, or holds what is not ours; there is no
/// place for a store; something cannot be moved or removed.
pub fn cache_clean(context: &Context<'_>) -> Result<CacheRemovalReport, InstallError> {
    let caches = Caches::of(context.settings)?;
    let holder = holder(context.settings);
    let removal = match &caches.git {
        Some(git) => Some(caches.in_git(git.begin_removal(&holder))?.ok_or_else(|| {
            InstallError::GitCacheInUse {
                directory: git.directory().to_path_buf(),
            }
        })?),
        None => None,
    };
    let trees = caches.trees()?;
    let outcome = caches.in_store(caches.store.clean(context.cancel))?;
    let mut report = CacheRemovalReport {
        trees,
        bytes: outcome.bytes.saturating_add(outcome.rubbish_bytes),
        interrupted: outcome.interrupted,
        ..CacheRemovalReport::default()
    };
    if let Some(removal) = removal {
        let removed = removal.remove_all(context.cancel);
        add_repositories(&mut report, caches.in_git(removed)?);
    }
    Ok(report)
}

/// Both places, and the errors that name them.
struct Caches {
    store: Store,
    git: Option<GitCache>,
}

impl Caches {
    fn of(settings: &Settings) -> Result<Self, InstallError> {
        Ok(Self {
            store: settings.package_store().ok_or(InstallError::NoStore)?,
            git: settings.git_cache.clone().map(GitCache::new),
        })
    }

    fn in_store<T>(&self, outcome: Result<T, StoreError>) -> Result<T, InstallError> {
        outcome.map_err(|source| InstallError::OpenStore {
            store: self.store.root().to_path_buf(),
            source: Box::new(source),
        })
    }

    fn in_git<T>(&self, outcome: Result<T, CacheError>) -> Result<T, InstallError> {
        let directory = self.git.as_ref().map_or(Path::new(""), GitCache::directory);
        outcome.map_err(|source| InstallError::GitCache {
            directory: directory.to_path_buf(),
            source: Box::new(source),
        })
    }

    /// The trees of the store, the largest first, with the names that their manifests give them.
    fn trees(&self) -> Result<Vec<CachedTree>, InstallError> {
        let entries = self.in_store(self.store.entries())?;
        let mut trees: Vec<CachedTree> = entries
            .iter()
            .map(|entry| named(&self.store, entry))
            .collect();
        trees.sort_by(|a, b| (b.bytes, &a.package, a.tree).cmp(&(a.bytes, &b.package, b.tree)));
        Ok(trees)
    }
}

fn named(store: &Store, entry: &StoreEntry) -> CachedTree {
    let manifest = RelPath::new(MANIFEST_NAME).ok();
    let manifest = manifest.and_then(|path| store.peek(entry.tree, &path, MANIFEST_BYTES));
    let manifest = manifest
        .and_then(|bytes| decode(&bytes).ok())
        .and_then(|text| Manifest::parse(&text, Reading::Package).ok());
    let package = manifest.and_then(|manifest| manifest.package);
    CachedTree {
        tree: entry.tree,
        version: package.as_ref().map(|package| package.version.to_string()),
        package: package.map(|package| package.id),
        files: entry.files,
        bytes: entry.bytes,
        used: time_text(entry.used),
    }
}

fn told(found: Vec<CachedRepository>) -> Vec<CachedGitRepository> {
    let told = |repository: CachedRepository| CachedGitRepository {
        name: repository.name,
        url: repository.url,
        bytes: repository.bytes,
        used: time_text(repository.used),
    };
    let mut repositories: Vec<CachedGitRepository> = found.into_iter().map(told).collect();
    repositories.sort_by(|a, b| (b.bytes, &a.name).cmp(&(a.bytes, &b.name)));
    repositories
}

fn total(trees: &[CachedTree], repositories: &[CachedGitRepository]) -> u64 {
    let trees = trees.iter().map(|tree| tree.bytes);
    let all = trees.chain(repositories.iter().map(|repository| repository.bytes));
    all.fold(0, u64::saturating_add)
}

fn faults(damage: Damage) -> Vec<CacheFault> {
    match damage {
        Damage::Listing(error) => vec![CacheFault {
            path: None,
            message: format!("its listing {error}"),
        }],
        Damage::Files(files) => files
            .into_iter()
            .map(|file| CacheFault {
                message: file.fault.to_string(),
                path: Some(file.path),
            })
            .collect(),
    }
}

fn add_repositories(report: &mut CacheRemovalReport, outcome: RemovedRepositories) {
    report.repositories = told(outcome.removed);
    let bytes = total(&[], &report.repositories).saturating_add(outcome.leftover_bytes);
    report.bytes = report.bytes.saturating_add(bytes);
    report.leftovers += outcome.leftovers;
    report.kept_repositories = outcome.kept;
    report.in_use |= outcome.in_use;
    report.interrupted |= outcome.interrupted;
}

fn holder(settings: &Settings) -> Holder {
    Holder {
        pid: std::process::id(),
        command: settings.command.clone(),
    }
}
