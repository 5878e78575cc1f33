//! Getting a package: its files, its manifest, and its hooks as selected here.
//!
//! What is published goes from its source into the store, hashed on the way, and is taken from there
//! from then on. A path source is the project's own and is read where it is, unless its slot is to
//! be linked, which only the store's files can be.

use std::collections::BTreeMap;
use std::io::{Cursor, Read};
use std::path::{Path, PathBuf};

use vibe_core::formats::lock::LockedPackage;
use vibe_core::formats::manifest::{MANIFEST_NAME, Manifest, Materialization, Package, Reading};
use vibe_core::formats::state::LinkMode;
use vibe_core::hook::{HostOs, Interpreters, SelectedHook};
use vibe_core::limits::{LOCK_BYTES, MANIFEST_BYTES, PackageLimits};
use vibe_core::plan::HookDecision;
use vibe_core::{
    Constraint, Event, Observer, PackageId, RelPath, Sha256Digest, Tree, TreeId, TreeRow,
};
use vibe_fetch::{
    Contents, DirectoryRegistry, FetchError, GitPackage, Listing, SourceKind,
    apply_published_modes, check_published, hash_listing, list, list_git, stage_listing,
};
use vibe_fs::{read_bounded, stat_of};
use vibe_plan::selection::{check_script_text, scripts_of, select};
use vibe_slot::{DirectoryPayload, PayloadError, PayloadSource, Proof, SlotError};
use vibe_store::{Damage, StagedTree, Store, StoreError, StoredTree};

use crate::error::InstallError;
use crate::manifests::{constraint_of, parse_manifest};
use crate::repositories::Repositories;
use crate::settings::{Context, WantedLinkMode};
use crate::target::{GitOrigin, Origin, Target};

/// A package as published.
#[derive(Debug, Clone)]
pub(crate) struct Fetched {
    /// Its files, and where each of them is read from.
    pub payload: Payload,
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
        self.payload.tree()
    }
}

/// Where the files of a package are read from.
#[derive(Debug, Clone)]
pub(crate) enum Payload {
    /// Directories that are not ours: what is read is hashed.
    Directory(DirectoryPayload),
    /// The store.
    Stored(StoredTree),
    /// A repository.
    Commit(CommitPayload),
}

/// A package whose files are blobs.
#[derive(Debug, Clone)]
pub(crate) struct CommitPayload {
    tree: Tree,
    listing: Listing,
    file_bytes: u64,
}

impl PayloadSource for CommitPayload {
    fn tree(&self) -> &Tree {
        &self.tree
    }

    fn open(&self, path: &RelPath) -> Result<Box<dyn Read + Send>, PayloadError> {
        let unknown = || PayloadError::Unknown(path.clone());
        let file = self.listing.get(path).ok_or_else(unknown)?;
        let bytes = self.listing.read(file, self.file_bytes);
        let bytes = bytes.map_err(|error| PayloadError::Other(Box::new(error)))?;
        Ok(Box::new(Cursor::new(bytes)))
    }
}

impl Payload {
    fn source(&self) -> &dyn PayloadSource {
        match self {
            Payload::Directory(payload) => payload,
            Payload::Stored(stored) => stored,
            Payload::Commit(commit) => commit,
        }
    }
}

impl PayloadSource for Payload {
    fn tree(&self) -> &Tree {
        self.source().tree()
    }

    fn open(&self, path: &RelPath) -> Result<Box<dyn Read + Send>, PayloadError> {
        self.source().open(path)
    }

    fn proved(&self, path: &RelPath, proof: Proof) -> Result<Option<PathBuf>, PayloadError> {
        self.source().proved(path, proof)
    }

    fn file_bytes(&self) -> u64 {
        self.source().file_bytes()
    }
}

/// What holds for every package that is fetched.
pub(crate) struct FetchOptions<'a> {
    /// The bounds.
    pub limits: PackageLimits,
    /// The programs that run scripts.
    pub interpreters: &'a (dyn Fn() -> Interpreters + Sync),
    /// What the gate says: a hook that is held needs no interpreter.
    pub decision: HookDecision,
    /// Who listens.
    pub observer: &'a dyn Observer,
    /// The store; `None` where the user has no place for one.
    pub store: Option<&'a Store>,
    /// Put into the store what is read from a source. Without that nothing is written anywhere.
    pub fills_store: bool,
    /// How the files of new slots are to be placed.
    pub link_mode: WantedLinkMode,
    /// The repositories of the run.
    pub repositories: &'a Repositories<'a>,
}

impl<'a> FetchOptions<'a> {
    /// For the content alone: nothing is written, and no hook is going to run.
    pub(crate) fn content_only(
        context: &Context<'a>,
        store: Option<&'a Store>,
        repositories: &'a Repositories<'a>,
    ) -> Self {
        Self {
            limits: context.settings.config.limits,
            interpreters: &Interpreters::default,
            decision: HookDecision::Held,
            observer: context.observer,
            store,
            fills_store: false,
            link_mode: context.settings.link_mode,
            repositories,
        }
    }
}

/// Gets `target`: from the store, where that has the tree that the lock names, else from its source.
pub(crate) fn fetch(target: &Target, options: &FetchOptions<'_>) -> Result<Fetched, InstallError> {
    fetch_undamaged(target, options, None)
}

/// The files of a package of which the store lost the tree while it was used, which `lost` says.
pub(crate) fn fetch_again(
    context: &Context<'_>,
    root: &Path,
    target: &Target,
    lost: &SlotError,
) -> Result<Payload, InstallError> {
    let store = context.settings.package_store();
    let repositories = Repositories::new(context, root.to_path_buf());
    let options = FetchOptions {
        fills_store: true,
        // From where it was lost.
        link_mode: WantedLinkMode::Hardlink,
        ..FetchOptions::content_only(context, store.as_ref(), &repositories)
    };
    Ok(fetch_undamaged(target, &options, lost.damage().cloned())?.payload)
}

/// [`fetch`] after `damage` was found in what the store had.
fn fetch_undamaged(
    target: &Target,
    options: &FetchOptions<'_>,
    damage: Option<Damage>,
) -> Result<Fetched, InstallError> {
    let mut damage = damage;
    // What another place than the locked one has, only that place can say.
    let locked = target.locked.as_ref();
    let locked = locked.filter(|locked| locked.source == target.source);
    if let (Some(store), Some(tree)) = (options.store, locked.and_then(|locked| locked.tree)) {
        match from_store(target, store, tree, options) {
            Ok(Some(fetched)) => return Ok(fetched),
            Ok(None) => {}
            Err(error) if error.is_lost_tree() => {}
            Err(error) => return Err(error),
        }
        damage = store.take_damage(tree).or(damage);
    }
    let fetched = options
        .repositories
        .reading(|| from_source(target, options));
    let Some(damage) = damage else {
        return fetched;
    };
    match fetched {
        Ok(fetched) => {
            options.observer.observe(&Event::Warning(format!(
                "{} {} was damaged in the store and was fetched again: {damage}",
                target.id, target.version
            )));
            Ok(fetched)
        }
        Err(source) => Err(InstallError::StoreDamaged {
            id: target.id.clone(),
            version: target.version.clone(),
            damage,
            source: Box::new(source),
        }),
    }
}

fn in_store<'a>(
    target: &'a Target,
    store: &'a Store,
) -> impl Fn(StoreError) -> InstallError + use<'a> {
    |source| InstallError::Store {
        id: target.id.clone(),
        version: target.version.clone(),
        store: store.root().to_path_buf(),
        source: Box::new(source),
    }
}

fn from_store(
    target: &Target,
    store: &Store,
    tree: TreeId,
    options: &FetchOptions<'_>,
) -> Result<Option<Fetched>, InstallError> {
    let failed = in_store(target, store);
    let Some(stored) = store.get(tree).map_err(&failed)? else {
        return Ok(None);
    };
    let content = |path: &RelPath, limit_bytes| match stored.proved(path) {
        Ok(place) => {
            let read = read_bounded(&place, limit_bytes);
            let bytes = read.map_err(|source| InstallError::ReadScript { source })?;
            Ok(Some((place, bytes)))
        }
        Err(StoreError::NotInTree { .. }) => Ok(None),
        Err(error) => Err(failed(error)),
    };
    let described = describe(target, stored.tree(), &content, options)?;
    Ok(Some(described.with(Payload::Stored(stored), Vec::new())))
}

/// Reads `target` from its source and holds it against the lock's tree.
fn from_source(target: &Target, options: &FetchOptions<'_>) -> Result<Fetched, InstallError> {
    options.observer.observe(&Event::Fetching {
        package: target.id.clone(),
    });
    let is_path = matches!(target.origin, Origin::Path(_));
    let mut listing = listed(target, options)?;
    if is_path || !options.fills_store {
        let (listing, tree) = hashed(target, listing)?;
        return from_listing(target, &listing, tree, options);
    }
    let store = options.store.ok_or(InstallError::NoStore)?;
    let published = published_tree(target)?;
    if let Some(published) = &published {
        apply_published_modes(&mut listing, published).map_err(in_package(target))?;
    }
    let (staged, contents) = match store.stage() {
        Ok(staged) => fill(target, &listing, staged, options)?,
        Err(error) => return from_closed_store(target, listing, store, error, options),
    };
    let Contents { tree, notes } = contents;
    if let Some(published) = &published {
        check_published(&tree, published).map_err(in_package(target))?;
    }
    listing.notes.extend(notes);
    check_locked_tree(target, &tree)?;
    let described = describe(target, &tree, &content_in(target, &listing), options)?;
    let stored = staged.finish().map_err(in_store(target, store))?;
    Ok(described.with(Payload::Stored(stored), notes_of(&listing)))
}

fn from_listing(
    target: &Target,
    listing: &Listing,
    tree: Tree,
    options: &FetchOptions<'_>,
) -> Result<Fetched, InstallError> {
    check_locked_tree(target, &tree)?;
    let described = describe(target, &tree, &content_in(target, listing), options)?;
    let is_linked = wanted_mode(&described.package, options.link_mode) == LinkMode::Hardlink;
    if is_linked && options.fills_store {
        let stored = stored_path(target, listing, &tree, options)?;
        return Ok(described.with(Payload::Stored(stored), notes_of(listing)));
    }
    if target.origin.git().is_some() {
        let payload = CommitPayload {
            tree,
            listing: listing.clone(),
            file_bytes: options.limits.file_bytes,
        };
        return Ok(described.with(Payload::Commit(payload), notes_of(listing)));
    }
    let files = listing.files.iter();
    let payload = DirectoryPayload {
        tree,
        locations: files
            .filter_map(|file| Some((file.path.clone(), file.location()?.to_path_buf())))
            .collect(),
        file_bytes: options.limits.file_bytes,
    };
    Ok(described.with(Payload::Directory(payload), notes_of(listing)))
}

/// The path source in `listing`, whose tree is `tree`, in the store.
fn stored_path(
    target: &Target,
    listing: &Listing,
    tree: &Tree,
    options: &FetchOptions<'_>,
) -> Result<StoredTree, InstallError> {
    let store = options.store.ok_or(InstallError::NoStore)?;
    let failed = in_store(target, store);
    if let Some(stored) = store.get(tree.id()).map_err(&failed)? {
        return Ok(stored);
    }
    let staged = store.stage().map_err(&failed)?;
    let (staged, found) = fill(target, listing, staged, options)?;
    if let Some(path) = first_other(&found.tree, tree) {
        return Err(in_package(target)(FetchError::ChangedWhileRead { path }));
    }
    staged.finish().map_err(failed)
}

/// The first path of which two trees say different things.
fn first_other(one: &Tree, other: &Tree) -> Option<RelPath> {
    let rows = one.rows().iter();
    let differs = |row: &&TreeRow| other.get(&row.path) != Some(*row);
    rows.clone().find(differs).map(|row| row.path.clone())
}

/// The files of `listing`, staged.
fn fill(
    target: &Target,
    listing: &Listing,
    staged: StagedTree,
    options: &FetchOptions<'_>,
) -> Result<(StagedTree, Contents), InstallError> {
    match (stage_listing(listing, &staged), options.store) {
        (Ok(contents), _) => Ok((staged, contents)),
        (Err(FetchError::Store(error)), Some(store)) => Err(in_store(target, store)(*error)),
        (Err(error), _) => Err(in_package(target)(error)),
    }
}

/// A package that the store, which cannot be written because of `error`, may nevertheless have.
fn from_closed_store(
    target: &Target,
    listing: Listing,
    store: &Store,
    error: StoreError,
    options: &FetchOptions<'_>,
) -> Result<Fetched, InstallError> {
    let (listing, tree) = hashed(target, listing)?;
    check_locked_tree(target, &tree)?;
    match from_store(target, store, tree.id(), options)? {
        Some(fetched) => Ok(Fetched {
            notes: notes_of(&listing),
            ..fetched
        }),
        None => Err(in_store(target, store)(error)),
    }
}

/// How the files of a new slot of `package` are to be placed.
pub(crate) fn wanted_mode(package: &Package, wanted: WantedLinkMode) -> LinkMode {
    let is_declared = package.materialization == Materialization::Hardlink;
    match wanted {
        // Scripts write.
        _ if !package.hooks.scripts.is_empty() => LinkMode::Copy,
        WantedLinkMode::Hardlink => LinkMode::Hardlink,
        WantedLinkMode::AsDeclared if is_declared => LinkMode::Hardlink,
        WantedLinkMode::AsDeclared | WantedLinkMode::Copy => LinkMode::Copy,
    }
}

fn in_package(target: &Target) -> impl Fn(FetchError) -> InstallError + use<'_> {
    |source| InstallError::Fetch {
        id: target.id.clone(),
        version: target.version.clone(),
        source: Box::new(source),
    }
}

fn listed(target: &Target, options: &FetchOptions<'_>) -> Result<Listing, InstallError> {
    let (directory, kind) = match &target.origin {
        Origin::Path(directory) => (directory, SourceKind::PathSource),
        Origin::Registry { directory, .. } => (directory, SourceKind::Published),
        Origin::Git(git) => return listed_commit(target, git, options),
    };
    list(directory, kind, &options.limits)
        .map_err(|source| absence(target, source, in_package(target)))
}

fn listed_commit(
    target: &Target,
    git: &GitOrigin,
    options: &FetchOptions<'_>,
) -> Result<Listing, InstallError> {
    let commit = options.repositories.commit_of(&target.id, git)?;
    let subdir = git.subdir.as_deref().map(RelPath::new).transpose();
    let subdir = subdir.map_err(|source| in_package(target)(FetchError::Name(source)))?;
    let package = GitPackage {
        database: &commit.database,
        commit: commit.id,
        subdir: subdir.as_ref(),
        url: &git.url,
        submodules: options.repositories,
    };
    list_git(&package, &options.limits).map_err(in_package(target))
}

/// What the registry says that the files of `target` are, if it says it.
fn published_tree(target: &Target) -> Result<Option<Tree>, InstallError> {
    let Origin::Registry { root, .. } = &target.origin else {
        return Ok(None);
    };
    DirectoryRegistry::new(root.clone())
        .published_tree(&target.id, &target.version)
        .map_err(in_package(target))
}

/// The tree of `listing`, with its exec bits as published.
fn hashed(target: &Target, mut listing: Listing) -> Result<(Listing, Tree), InstallError> {
    let published = published_tree(target)?;
    if let Some(published) = &published {
        apply_published_modes(&mut listing, published).map_err(in_package(target))?;
    }
    let Contents { tree, notes } = hash_listing(&listing).map_err(in_package(target))?;
    if let Some(published) = &published {
        check_published(&tree, published).map_err(in_package(target))?;
    }
    listing.notes.extend(notes);
    Ok((listing, tree))
}

fn notes_of(listing: &Listing) -> Vec<String> {
    listing.notes.iter().map(|note| note.to_string()).collect()
}

/// What messages call a file of the package, and its content; `None` where there is no such file.
type Content = Result<Option<(PathBuf, Vec<u8>)>, InstallError>;

/// Reads a file of the package, at most so many bytes.
type ContentOf<'a> = &'a dyn Fn(&RelPath, u64) -> Content;

fn content_in<'a>(target: &'a Target, listing: &'a Listing) -> impl Fn(&RelPath, u64) -> Content {
    move |path, limit_bytes| {
        let Some(file) = listing.get(path) else {
            return Ok(None);
        };
        let bytes = listing
            .read(file, limit_bytes)
            .map_err(in_package(target))?;
        let shown = match file.location() {
            Some(location) => location.to_path_buf(),
            None => PathBuf::from(format!("{}:{path}", target.origin.path().display())),
        };
        Ok(Some((shown, bytes)))
    }
}

/// What a package says of itself.
struct Described {
    package: Package,
    requires: BTreeMap<PackageId, Option<Constraint>>,
    not_acted_on: Vec<String>,
    hooks: Vec<SelectedHook>,
    scripts: BTreeMap<RelPath, Sha256Digest>,
}

impl Described {
    fn with(self, payload: Payload, notes: Vec<String>) -> Fetched {
        Fetched {
            payload,
            package: self.package,
            requires: self.requires,
            not_acted_on: self.not_acted_on,
            hooks: self.hooks,
            scripts: self.scripts,
            notes,
        }
    }
}

fn describe(
    target: &Target,
    tree: &Tree,
    content: ContentOf<'_>,
    options: &FetchOptions<'_>,
) -> Result<Described, InstallError> {
    let manifest = read_package_manifest(target, content)?;
    let not_acted_on = manifest.not_acted_on.clone();
    let requires = manifest
        .requires
        .iter()
        .filter(|(id, _)| **id != target.id)
        .map(|(id, dependency)| (id.clone(), constraint_of(dependency)))
        .collect();
    let package = package_of(target, manifest)?;
    let (hooks, scripts) = hooks_of(target, &package, tree, options)?;
    for hook in &hooks {
        check_script(target, hook, content)?;
    }
    check_locked_scripts(target, &scripts)?;
    Ok(Described {
        package,
        requires,
        not_acted_on,
        hooks,
        scripts,
    })
}

/// Reads the package of a commit that is checked out as a whole. `listing` has its manifest and
/// whatever may be one of its scripts; more of its content is not looked at.
pub(crate) fn read_clone(
    target: &Target,
    listing: &Listing,
    options: &FetchOptions<'_>,
) -> Result<Fetched, InstallError> {
    let Contents { tree, notes } = hash_listing(listing).map_err(in_package(target))?;
    let described = describe(target, &tree, &content_in(target, listing), options)?;
    let payload = CommitPayload {
        tree,
        listing: listing.clone(),
        file_bytes: options.limits.file_bytes,
    };
    let notes = notes.iter().map(ToString::to_string).collect();
    Ok(described.with(Payload::Commit(payload), notes))
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
        payload: Payload::Directory(DirectoryPayload {
            tree,
            locations,
            file_bytes: options.limits.file_bytes,
        }),
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
        .filter(|locked| locked.tree.is_some() || locked.commit.is_some())
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

/// The manifest among the package's files: the one whose bytes are in the tree.
fn read_package_manifest(
    target: &Target,
    content: ContentOf<'_>,
) -> Result<Manifest, InstallError> {
    let name = RelPath::new(MANIFEST_NAME).expect("the manifest's name is a path");
    let Some((location, bytes)) = content(&name, MANIFEST_BYTES)? else {
        return Err(InstallError::NotAPackage {
            id: target.id.clone(),
            path: target.origin.path(),
        });
    };
    parse_manifest(&location, &bytes, Reading::Package).map(|(manifest, _)| manifest)
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
    if package.materialization == Materialization::InPlace && target.origin.git().is_none() {
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
    content: ContentOf<'_>,
) -> Result<(), InstallError> {
    let (_, bytes) =
        content(&hook.script, LOCK_BYTES)?.expect("a selected script is a file of the tree");
    check_script_text(&hook.script, &bytes).map_err(|source| InstallError::Script {
        id: target.id.clone(),
        version: target.version.clone(),
        phase: hook.phase,
        source: Box::new(source),
    })
}
