//! In-place packages: reading them from their commit, and looking at their clones.

use std::path::PathBuf;
use std::sync::{Arc, OnceLock};

use vibe_core::formats::lock::LockedPackage;
use vibe_core::formats::manifest::{MANIFEST_NAME, Materialization, Package};
use vibe_core::formats::state::{CloneState, CloneStatus};
use vibe_core::hook::PhaseState;
use vibe_core::plan::HookDecision;
use vibe_core::text::escape_bytes;
use vibe_core::{Cancellation, PackageId, RelPath, SlotName};
use vibe_fetch::{FoundSubmodule, GitPackage, Listing, list_clone};
use vibe_git::{
    Checkout, CommitId, Database, Differences, EntryKind, GitError, GitProgram, ProgramError,
    Status, Submodule, WorkTree, WorkTreeError,
};
use vibe_plan::clone_plan::{Differing, LookedClone};
use vibe_slot::in_place::{self, CloneTools, Reader};
use vibe_slot::{Layout, SlotError};

use crate::error::InstallError;
use crate::fetch::{FetchOptions, Fetched, read_clone};
use crate::git_sources::read_manifest;
use crate::repositories::Repositories;
use crate::settings::{Context, Settings};
use crate::target::{GitOrigin, Origin, Target};

/// Files of a clone that a message names.
const NAMED: usize = 10;

/// What the clone of a package has to show, and where its objects are.
#[derive(Debug, Clone)]
pub(crate) struct PlannedClone {
    /// The commit, and the submodules that it pins.
    pub checkout: Checkout,
    /// The objects.
    pub database: Arc<Database>,
}

/// The git program, looked for when it is first needed, and what it is used on.
pub(crate) struct Clones<'a> {
    settings: &'a Settings,
    cancel: &'a Cancellation,
    layout: &'a Layout,
    git: OnceLock<GitProgram>,
    /// Nothing may be written: looks read every file.
    only_reads: bool,
}

/// A work tree that is looked at.
enum View<'a> {
    /// By the stats that are known of it.
    WorkTree(WorkTree<'a>),
    /// By reading it.
    Reader(Reader<'a>),
}

impl<'a> View<'a> {
    fn tree(&self) -> &WorkTree<'a> {
        match self {
            View::WorkTree(tree) => tree,
            View::Reader(reader) => &reader.tree,
        }
    }
}

/// An interrupted call of git is an interrupted run.
pub(crate) fn interrupted(error: SlotError) -> InstallError {
    match error {
        SlotError::Clone(error) => failed(error),
        error => error.into(),
    }
}

fn failed(error: WorkTreeError) -> InstallError {
    match error {
        WorkTreeError::Program(ProgramError::Interrupted) => InstallError::Interrupted,
        error => SlotError::from(error).into(),
    }
}

impl<'a> Clones<'a> {
    /// Ready to be used; nothing is looked for yet.
    pub(crate) fn new(context: &'a Context<'a>, layout: &'a Layout) -> Self {
        Self {
            settings: context.settings,
            cancel: context.cancel,
            layout,
            git: OnceLock::new(),
            only_reads: false,
        }
    }

    /// The same, with nothing written if `only_reads`.
    pub(crate) fn reading(self, only_reads: bool) -> Self {
        Self { only_reads, ..self }
    }

    /// What every call on a clone needs.
    pub(crate) fn tools(&self) -> Result<CloneTools<'_>, InstallError> {
        let git = match self.git.get() {
            Some(git) => git,
            None => {
                let found = GitProgram::find(&self.settings.environment)
                    .map_err(|source| InstallError::GitProgram { source })?;
                self.git.get_or_init(|| found)
            }
        };
        Ok(CloneTools {
            layout: self.layout,
            git,
            cancel: self.cancel,
        })
    }

    /// How the clone in `slot` looks now, to be remembered.
    pub(crate) fn seen(
        &self,
        slot: &SlotName,
        checkout: &Checkout,
    ) -> Result<CloneStatus, InstallError> {
        let status = self.tools()?.status(slot, checkout);
        let status = status.map_err(interrupted)?;
        Ok(CloneStatus {
            edits: status.tracked.digest,
            additions: status.untracked.digest,
        })
    }

    /// Looks at the clone in `slot`, which shall show `wanted`; the lock names `locked`.
    pub(crate) fn look(
        &self,
        slot: &SlotName,
        wanted: &PlannedClone,
        row: Option<&CloneState>,
        locked: Option<&str>,
    ) -> Result<LookedClone, InstallError> {
        let head = in_place::head(self.layout, slot);
        let base = self.base(slot, wanted, row, head)?;
        let shown = base.as_ref().unwrap_or(&wanted.checkout);
        let view = self.view(slot)?;
        let tree = view.tree();
        let status = tree.status(shown).map_err(failed)?;
        let differing = match &base {
            Some(base) => differing(slot.package(), wanted, base.commit)?,
            None => 0,
        };
        let locked = locked.and_then(|commit| commit.parse().ok());
        let known: Vec<CommitId> = locked
            .into_iter()
            .chain([wanted.checkout.commit, shown.commit])
            .collect();
        Ok(LookedClone {
            head: head.map(|commit| commit.to_string()),
            differing,
            edits: differing_of(&status.tracked),
            additions: differing_of(&status.untracked),
            local_commits: tree.has_local_commits(shown, &known).map_err(failed)?,
            is_plain: tree.is_plain(&wanted.checkout).map_err(failed)?,
            base: base.map(|base| base.commit.to_string()),
        })
    }

    /// What the clone shows: the commit of its row, else its `HEAD`, if the objects are to be had.
    fn base(
        &self,
        slot: &SlotName,
        wanted: &PlannedClone,
        row: Option<&CloneState>,
        head: Option<CommitId>,
    ) -> Result<Option<Checkout>, InstallError> {
        let recorded = row.and_then(|row| row.commit.parse().ok());
        let Some(commit) = recorded.or(head) else {
            return Ok(None);
        };
        if commit == wanted.checkout.commit {
            return Ok(Some(wanted.checkout.clone()));
        }
        if wanted.database.has_commit(&commit) {
            let objects = objects_of(slot.package(), &wanted.database)?;
            return self.placed(slot, commit, objects).map(Some);
        }
        // What is checked out from another repository is compared by the clone's own objects.
        let own = WorkTree::own_objects(&self.layout.slot(slot));
        let checkout = self.placed(slot, commit, own)?;
        let shows = self.view(slot)?.tree().status(&checkout).is_ok();
        Ok(shows.then_some(checkout))
    }

    fn view(&self, slot: &SlotName) -> Result<View<'_>, InstallError> {
        let tools = self.tools()?;
        Ok(match self.only_reads {
            true => View::Reader(tools.reader(slot)?),
            false => View::WorkTree(tools.work_tree(slot)),
        })
    }

    /// The clone as it was placed, at `commit`.
    pub(crate) fn placed(
        &self,
        slot: &SlotName,
        commit: CommitId,
        objects: PathBuf,
    ) -> Result<Checkout, InstallError> {
        let submodules = self.tools()?.work_tree(slot).placed_submodules();
        Ok(Checkout {
            url: String::new(),
            commit,
            objects,
            submodules: submodules.map_err(failed)?,
        })
    }

    /// The clone in `slot` by its own objects alone, at the commit of its row or its `HEAD`.
    pub(crate) fn by_itself(
        &self,
        slot: &SlotName,
        row: Option<&CloneState>,
    ) -> Result<Option<Checkout>, InstallError> {
        let recorded = row.and_then(|row| row.commit.parse().ok());
        let commit = recorded.or_else(|| in_place::head(self.layout, slot));
        let own = WorkTree::own_objects(&self.layout.slot(slot));
        commit
            .map(|commit| self.placed(slot, commit, own))
            .transpose()
    }

    /// How the clone of `locked` differs from the locked commit, every file read. The clone's own
    /// objects are what it is compared by, so that no other repository is needed; `None` where they
    /// do not do for that.
    pub(crate) fn read_all(
        &self,
        slot: &SlotName,
        locked: &LockedPackage,
    ) -> Result<Option<Status>, InstallError> {
        let tree = self.layout.slot(slot);
        if !WorkTree::has_own_objects(&tree).map_err(failed)? {
            return Ok(None);
        }
        let commit = locked.commit.as_deref().unwrap_or_default();
        let commit = commit
            .parse()
            .map_err(|_| InstallError::NotPlaced { slot: slot.clone() })?;
        let checkout = self.placed(slot, commit, WorkTree::own_objects(&tree))?;
        match self.tools()?.reader(slot)?.tree.status(&checkout) {
            Ok(status) => Ok(Some(status)),
            Err(WorkTreeError::Program(ProgramError::Interrupted)) => {
                Err(InstallError::Interrupted)
            }
            Err(error) => {
                tracing::debug!("{slot} cannot be compared: {error}");
                Ok(None)
            }
        }
    }

    /// Looks at a clone that nothing needs. One that cannot be looked at is `None`.
    pub(crate) fn look_at_leftover(
        &self,
        slot: &SlotName,
        row: Option<&CloneState>,
    ) -> Result<Option<LookedClone>, InstallError> {
        let Some(checkout) = self.by_itself(slot, row)? else {
            return Ok(None);
        };
        let view = self.view(slot)?;
        let Ok(status) = view.tree().status(&checkout) else {
            return Ok(None);
        };
        let local_commits = view.tree().has_local_commits(&checkout, &[]);
        let local_commits = local_commits.map_err(failed)?;
        Ok(Some(LookedClone {
            head: in_place::head(self.layout, slot).map(|commit| commit.to_string()),
            base: Some(checkout.commit.to_string()),
            differing: 0,
            edits: differing_of(&status.tracked),
            additions: differing_of(&status.untracked),
            local_commits,
            is_plain: true,
        }))
    }
}

fn differing(id: &PackageId, wanted: &PlannedClone, base: CommitId) -> Result<usize, InstallError> {
    let commit = wanted.checkout.commit;
    if base == commit {
        return Ok(0);
    }
    if !wanted.database.has_commit(&base) {
        return Ok(1);
    }
    let changed = wanted.database.changed_paths(&base, &commit);
    changed
        .map(|paths| paths.len())
        .map_err(|source| git_error(id, source))
}

fn git_error(id: &PackageId, source: GitError) -> InstallError {
    InstallError::Git {
        id: Some(id.clone()),
        source: Box::new(source),
    }
}

fn differing_of(differences: &Differences) -> Differing {
    let paths = differences.paths.iter().take(NAMED);
    Differing {
        digest: differences.digest,
        count: differences.count,
        paths: paths.map(|path| escape_bytes(path)).collect(),
    }
}

/// Whether a plan can keep the clone in `slot` without a look: its row is settled at `commit`, its
/// `HEAD` is there, and no hook that was held back may run now.
pub(crate) fn is_remembered(
    layout: &Layout,
    slot: &SlotName,
    commit: &str,
    row: Option<&CloneState>,
    decision: HookDecision,
) -> bool {
    let Some(row) = row.filter(|row| row.is_settled_at(commit)) else {
        return false;
    };
    let waits = row.phases.values().any(|s| *s == PhaseState::Skipped);
    let head = in_place::head(layout, slot).map(|head| head.to_string());
    head.as_deref() == Some(commit) && !(waits && decision == HookDecision::Run)
}

/// Whether `target` is to be placed as a clone, by the lock where it has the commit, else by the
/// manifest in the commit.
pub(crate) fn is_in_place(
    target: &Target,
    repositories: &Repositories<'_>,
) -> Result<bool, InstallError> {
    let Origin::Git(origin) = &target.origin else {
        return Ok(false);
    };
    if let Some(locked) = &target.locked {
        return Ok(locked.materialization == Materialization::InPlace);
    }
    let package = read_manifest(repositories, &target.id, origin)?.package;
    Ok(package.is_some_and(|package| package.materialization == Materialization::InPlace))
}

/// Reads an in-place package from its commit: all names are judged, and of the content only the
/// manifest and the install hook scripts are read.
pub(crate) fn fetch_clone(
    target: &Target,
    origin: &GitOrigin,
    options: &FetchOptions<'_>,
) -> Result<(Fetched, PlannedClone), InstallError> {
    options
        .repositories
        .reading(|| fetch_clone_once(target, origin, options))
}

fn fetch_clone_once(
    target: &Target,
    origin: &GitOrigin,
    options: &FetchOptions<'_>,
) -> Result<(Fetched, PlannedClone), InstallError> {
    let repositories = options.repositories;
    if origin.subdir.is_some() {
        return Err(InstallError::InPlaceSubdir {
            id: target.id.clone(),
        });
    }
    let commit = repositories.commit_of(&target.id, origin)?;
    let package = GitPackage {
        database: &commit.database,
        commit: commit.id,
        subdir: None,
        url: &origin.url,
        submodules: repositories,
    };
    let (listing, submodules) = list_clone(&package).map_err(|source| InstallError::Fetch {
        id: target.id.clone(),
        version: target.version.clone(),
        source: Box::new(source),
    })?;
    let manifest = read_manifest(repositories, &target.id, origin)?;
    let bases: Vec<String> = manifest.package.iter().flat_map(script_bases).collect();
    let boot = manifest.package.and_then(|package| package.boot);
    let boot = boot.map(|boot| boot.source);
    // A link stays one in a clone, and is no text.
    let boot = match boot {
        Some(path)
            if is_link(&commit.database, &commit.id, &path)
                .map_err(|error| git_error(&target.id, error))? =>
        {
            None
        }
        boot => boot,
    };
    let listing = only_read(listing, &bases, boot.as_ref());
    let fetched = read_clone(target, &listing, options)?;
    let submodules: Result<_, GitError> = submodules
        .iter()
        .map(|found| submodule(found, repositories))
        .collect();
    let checkout = Checkout {
        url: repositories.address(&origin.url),
        commit: commit.id,
        objects: objects_of(&target.id, &commit.database)?,
        submodules: submodules.map_err(|source| git_error(&target.id, source))?,
    };
    let database = commit.database;
    Ok((fetched, PlannedClone { checkout, database }))
}

fn script_bases(package: &Package) -> Vec<String> {
    let bases = package.hooks.scripts.values();
    bases.map(ToString::to_string).collect()
}

fn is_link(database: &Database, commit: &CommitId, path: &RelPath) -> Result<bool, GitError> {
    let entry = database.entry_at(commit, path.as_str())?;
    Ok(entry.is_some_and(|entry| entry.kind == EntryKind::Symlink))
}

/// The part of `listing` that is read: the manifest, the boot text, and what may be a script.
fn only_read(mut listing: Listing, bases: &[String], boot: Option<&RelPath>) -> Listing {
    listing.files.retain(|file| {
        let path = file.path.as_str();
        path == MANIFEST_NAME
            || boot == Some(&file.path)
            || bases.iter().any(|base| path.starts_with(base.as_str()))
    });
    listing
}

fn submodule(
    found: &FoundSubmodule,
    repositories: &Repositories<'_>,
) -> Result<Submodule, GitError> {
    Ok(Submodule {
        path: found.path.clone(),
        url: repositories.address(&found.url),
        commit: found.commit,
        objects: own_directory(&found.database)?,
    })
}

/// The object directory of a repository; git finds those it borrows from by itself.
fn own_directory(database: &Database) -> Result<PathBuf, GitError> {
    let mut directories = database.object_directories()?;
    Ok(directories.swap_remove(0))
}

pub(crate) fn objects_of(id: &PackageId, database: &Database) -> Result<PathBuf, InstallError> {
    own_directory(database).map_err(|source| git_error(id, source))
}

/// A path of a clone that is a payload path, for a finding.
pub(crate) fn payload_path(bytes: &[u8]) -> Option<RelPath> {
    RelPath::new(std::str::from_utf8(bytes).ok()?).ok()
}
