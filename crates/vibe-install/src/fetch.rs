//! Reading a package from its source: its files, its manifest, and its hooks as selected here.

use std::collections::BTreeMap;
use std::io::Read as _;
use std::path::{Path, PathBuf};

use vibe_core::formats::lock::{LockedPackage, LockedSource};
use vibe_core::formats::manifest::{MANIFEST_NAME, Manifest, Materialization, Package, Reading};
use vibe_core::hook::{HostOs, Interpreters, SelectedHook};
use vibe_core::limits::{LOCK_BYTES, PackageLimits};
use vibe_core::plan::HookDecision;
use vibe_core::{
    Constraint, Event, Observer, PackageId, RelPath, RemoteUrl, Sha256Digest, Tree, Version,
};
use vibe_fetch::{
    DirectoryRegistry, FetchError, Listing, SourceKind, apply_published_tree, hash_listing, list,
};
use vibe_fs::{read_bounded, stat_of};
use vibe_plan::selection::{check_script_text, scripts_of, select};
use vibe_slot::{DirectoryPayload, PayloadSource as _};

use crate::error::InstallError;
use crate::project::parse_manifest;
use crate::sources::constraint_of;

/// One package that the project shall have.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    /// Its id.
    pub id: PackageId,
    /// Its version.
    pub version: Version,
    /// Its source, as the lock writes it.
    pub source: LockedSource,
    /// Where its files are.
    pub origin: Origin,
    /// What it requires, sorted.
    pub dependencies: Vec<PackageId>,
    /// The lock's entry of the same version and kind of source, if there is one.
    pub locked: Option<LockedPackage>,
    /// The version that the lock names, if it is another.
    pub previous: Option<String>,
}

/// Where the files of a package are.
#[derive(Debug, Clone)]
pub(crate) enum Origin {
    /// In a directory of the user's.
    Path(PathBuf),
    /// In a directory registry.
    Registry {
        /// The registry.
        root: PathBuf,
        /// The directory of the version.
        directory: PathBuf,
    },
    /// In a git repository.
    Git(GitOrigin),
}

/// A directory of a commit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct GitOrigin {
    /// The repository, as the lock writes it.
    pub url: RemoteUrl,
    /// The reference, as the lock writes it; `None`: the default branch.
    pub reference: Option<String>,
    /// The directory in the repository.
    pub subdir: Option<String>,
    /// The commit, 40 hex digits.
    pub commit: String,
}

impl Origin {
    /// The directory of a commit, where it is one.
    pub(crate) fn git(&self) -> Option<&GitOrigin> {
        match self {
            Origin::Path(_) | Origin::Registry { .. } => None,
            Origin::Git(git) => Some(git),
        }
    }

    /// Whether the files are on this machine.
    pub(crate) fn is_local(&self) -> bool {
        match self {
            Origin::Path(_) | Origin::Registry { .. } => true,
            Origin::Git(git) => git.url.is_local(),
        }
    }

    /// The place as messages name it.
    pub(crate) fn path(&self) -> PathBuf {
        match self {
            Origin::Path(directory) | Origin::Registry { directory, .. } => directory.clone(),
            Origin::Git(git) => PathBuf::from(git.url.as_str()),
        }
    }
}

/// A package as published.
#[derive(Debug, Clone)]
pub(crate) struct Fetched {
    /// Its files, and where each of them is read from.
    pub payload: DirectoryPayload,
    /// The package's part of its manifest.
    pub package: Package,
    /// What its manifest requires, itself left out.
    pub requires: BTreeMap<PackageId, Option<Constraint>>,
    /// Tables of its manifest that are not acted on.
    pub not_acted_on: Vec<String>,
    /// Its hooks, as selected for this operating system.
    pub hooks: Vec<SelectedHook>,
    /// Every hook script, for all operating systems.
    pub scripts: BTreeMap<RelPath, Sha256Digest>,
    /// What was odd about its files, in words.
    pub notes: Vec<String>,
}

impl Fetched {
    /// How many lines the file at `path` has.
    pub(crate) fn lines_of(&self, path: &str) -> Option<usize> {
        let mut bytes = Vec::new();
        let path = RelPath::new(path).ok()?;
        let reader = self.payload.open(&path).ok()?;
        reader.take(LOCK_BYTES).read_to_end(&mut bytes).ok()?;
        Some(String::from_utf8_lossy(&bytes).lines().count())
    }

    /// Its files.
    pub(crate) fn tree(&self) -> &Tree {
        &self.payload.tree
    }
}

/// What holds for every package that is fetched.
pub(crate) struct FetchOptions<'a> {
    /// The bounds.
    pub limits: PackageLimits,
    /// The programs that run scripts.
    pub interpreters: &'a dyn Fn() -> Interpreters,
    /// What the gate says: a hook that is held needs no interpreter.
    pub decision: HookDecision,
    /// Who listens.
    pub observer: &'a dyn Observer,
}

/// Reads `target` from its source and holds it against the lock's tree.
pub(crate) fn fetch(target: &Target, options: &FetchOptions<'_>) -> Result<Fetched, InstallError> {
    options.observer.observe(&Event::Fetching {
        package: target.id.clone(),
    });
    let (directory, kind) = match &target.origin {
        Origin::Path(directory) => (directory, SourceKind::PathSource),
        Origin::Registry { directory, .. } => (directory, SourceKind::Published),
        Origin::Git(git) => {
            return Err(InstallError::NotYet {
                what: format!("the git source of {}", target.id),
                path: git.url.as_str().into(),
            });
        }
    };
    let in_package = |source| InstallError::Fetch {
        id: target.id.clone(),
        version: target.version.clone(),
        source: Box::new(source),
    };
    let mut listing = list(directory, kind, &options.limits)
        .map_err(|source| absence(target, source, in_package))?;
    let mut tree = hash_listing(&listing).map_err(in_package)?;
    if let Origin::Registry { root, .. } = &target.origin {
        let registry = DirectoryRegistry::new(root.clone());
        let published = registry.published_tree(&target.id, &target.version);
        if let Some(published) = published.map_err(in_package)? {
            tree = apply_published_tree(&mut listing, &tree, published).map_err(in_package)?;
        }
    }
    check_locked_tree(target, &tree)?;
    let manifest = read_listed_manifest(target, &listing)?;
    let not_acted_on = manifest.not_acted_on.clone();
    let requires = manifest
        .requires
        .iter()
        .filter(|(id, _)| **id != target.id)
        .map(|(id, dependency)| (id.clone(), constraint_of(dependency)))
        .collect();
    let package = package_of(target, manifest)?;
    let (hooks, scripts) = hooks_of(target, &package, &tree, options)?;
    for hook in &hooks {
        check_script(target, hook, &listing)?;
    }
    check_locked_scripts(target, &scripts)?;
    let locations = listing
        .files
        .iter()
        .map(|file| (file.path.clone(), file.location.clone()))
        .collect();
    Ok(Fetched {
        payload: DirectoryPayload {
            tree,
            locations,
            file_bytes: options.limits.file_bytes,
        },
        notes: listing.notes.iter().map(|note| note.to_string()).collect(),
        package,
        requires,
        not_acted_on,
        hooks,
        scripts,
    })
}

/// The package as its slot's record has it, of which `package` and `tree` tell: what runs in the
/// slot of a path package is what was placed there, whatever its source has become.
pub(crate) fn as_placed(
    target: &Target,
    slot: &Path,
    package: Package,
    tree: Tree,
    options: &FetchOptions<'_>,
) -> Result<Fetched, InstallError> {
    let (hooks, scripts) = hooks_of(target, &package, &tree, options)?;
    let rows = tree.rows().iter();
    let locations = rows
        .map(|row| (row.path.clone(), row.path.under(slot)))
        .collect();
    Ok(Fetched {
        payload: DirectoryPayload {
            tree,
            locations,
            file_bytes: options.limits.file_bytes,
        },
        requires: BTreeMap::new(),
        not_acted_on: Vec::new(),
        notes: Vec::new(),
        package,
        hooks,
        scripts,
    })
}

/// What `error` is once it is known whether the version, or the whole registry, is not there.
fn absence(
    target: &Target,
    error: FetchError,
    in_package: impl FnOnce(FetchError) -> InstallError,
) -> InstallError {
    let Origin::Registry { root, directory } = &target.origin else {
        return in_package(error);
    };
    if !matches!(stat_of(directory), Ok(None)) {
        return in_package(error);
    }
    match DirectoryRegistry::new(root.clone()).versions(&target.id) {
        Err(error) => in_package(error),
        Ok(_) => InstallError::NotInRegistries {
            id: target.id.clone(),
            version: target.version.clone(),
        },
    }
}

/// A published version never changes.
fn check_locked_tree(target: &Target, tree: &Tree) -> Result<(), InstallError> {
    match target.locked.as_ref().and_then(|locked| locked.tree) {
        Some(locked) if locked != tree.id() => Err(InstallError::OtherTree {
            id: target.id.clone(),
            version: target.version.clone(),
            locked,
            found: tree.id(),
        }),
        _ => Ok(()),
    }
}

/// Whether the lock's entry names just these scripts, with these digests.
pub(crate) fn names_scripts(
    locked: &LockedPackage,
    scripts: &BTreeMap<RelPath, Sha256Digest>,
) -> bool {
    let found = scripts.iter().map(|(path, digest)| (path.as_str(), digest));
    let named = locked.install_hooks.iter();
    named
        .map(|(path, digest)| (path.as_str(), digest))
        .eq(found)
}

fn check_locked_scripts(
    target: &Target,
    scripts: &BTreeMap<RelPath, Sha256Digest>,
) -> Result<(), InstallError> {
    let Some(locked) = target
        .locked
        .as_ref()
        .filter(|locked| locked.tree.is_some())
    else {
        return Ok(());
    };
    if names_scripts(locked, scripts) {
        return Ok(());
    }
    Err(InstallError::OtherScripts {
        id: target.id.clone(),
        version: target.version.clone(),
    })
}

/// The manifest among the listed files: the one whose bytes are in the tree.
fn read_listed_manifest(target: &Target, listing: &Listing) -> Result<Manifest, InstallError> {
    let listed = listing
        .files
        .iter()
        .find(|file| file.path.as_str() == MANIFEST_NAME);
    let Some(file) = listed else {
        return Err(InstallError::NotAPackage {
            id: target.id.clone(),
            path: target.origin.path(),
        });
    };
    let bytes = read_bounded(&file.location, vibe_core::limits::MANIFEST_BYTES)
        .map_err(|source| InstallError::ReadManifest { source })?;
    parse_manifest(&file.location, &bytes, Reading::Package).map(|(manifest, _)| manifest)
}

fn package_of(target: &Target, manifest: Manifest) -> Result<Package, InstallError> {
    let Some(package) = manifest.package else {
        return Err(InstallError::NotAPackage {
            id: target.id.clone(),
            path: target.origin.path(),
        });
    };
    if package.id != target.id || package.version != target.version {
        return Err(InstallError::OtherPackage {
            path: target.origin.path(),
            expected: format!("{} {}", target.id, target.version),
            found: format!("{} {}", package.id, package.version),
        });
    }
    if package.materialization == Materialization::InPlace {
        return Err(InstallError::InPlaceNeedsGit {
            id: target.id.clone(),
            path: target.origin.path().join(MANIFEST_NAME),
        });
    }
    Ok(package)
}

type Hooks = (Vec<SelectedHook>, BTreeMap<RelPath, Sha256Digest>);

fn hooks_of(
    target: &Target,
    package: &Package,
    tree: &Tree,
    options: &FetchOptions<'_>,
) -> Result<Hooks, InstallError> {
    if package.hooks.scripts.is_empty() {
        return Ok((Vec::new(), BTreeMap::new()));
    }
    let interpreters = match options.decision {
        HookDecision::Run => (options.interpreters)(),
        // Nothing will be started, so what is missing here is missed when it may run.
        HookDecision::Ask | HookDecision::Held => assumed_interpreters(),
    };
    let mut hooks = Vec::new();
    for (phase, base) in &package.hooks.scripts {
        let hook =
            select(HostOs::CURRENT, *phase, base, tree, &interpreters).map_err(|source| {
                InstallError::Selection {
                    id: target.id.clone(),
                    version: target.version.clone(),
                    phase: *phase,
                    source: Box::new(source),
                }
            })?;
        hooks.push(hook);
    }
    Ok((hooks, scripts_of(package.hooks.scripts.values(), tree)))
}

fn assumed_interpreters() -> Interpreters {
    Interpreters {
        bash: Some(PathBuf::from("bash")),
        powershell: Some(PathBuf::from("pwsh")),
        refused_bash: Vec::new(),
    }
}

fn check_script(
    target: &Target,
    hook: &SelectedHook,
    listing: &Listing,
) -> Result<(), InstallError> {
    let location: &Path = listing
        .files
        .iter()
        .find(|file| file.path == hook.script)
        .map(|file| file.location.as_path())
        .expect("a selected script is a file of the tree");
    let bytes =
        read_bounded(location, LOCK_BYTES).map_err(|source| InstallError::ReadScript { source })?;
    check_script_text(&hook.script, &bytes).map_err(|source| InstallError::Script {
        id: target.id.clone(),
        version: target.version.clone(),
        phase: hook.phase,
        source: Box::new(source),
    })
}
