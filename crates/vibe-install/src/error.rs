//! Why a command did not do what was asked.

use std::path::PathBuf;

use vibe_core::formats::diagnostic::Diagnostic;
use vibe_core::formats::lock::LockError;
use vibe_core::formats::manifest::MANIFEST_NAME;
use vibe_core::formats::projections::ProjectionsError;
use vibe_core::formats::record::RecordError;
use vibe_core::git_url::GitUrlError;
use vibe_core::hook::Phase;
use vibe_core::text::escape;
use vibe_core::{Constraint, PackageId, RelPath, SlotName, TreeId, Version};
use vibe_fetch::FetchError;
use vibe_fs::error::shown;
use vibe_fs::{EntryKind, FsError, ReadError};
use vibe_git::{CacheError, GitError};
use vibe_plan::clone_plan::Guard;
use vibe_plan::selection::{ScriptError, SelectionError};
use vibe_projection::edits::EditError;
use vibe_resolver::lock_check::LockProblem;
use vibe_slot::SlotError;
use vibe_store::{Damage, StoreError};

use crate::publish::error::PublishingError;
use crate::run_record::HookRecord;
use crate::unsolved::Unsolved;
use crate::workspace::error::WorkspaceError;

/// Every way a command ends without having done what was asked. Whoever shows it adds hints and
/// chooses the exit code.
#[derive(Debug, thiserror::Error)]
pub enum InstallError {
    /// No manifest here or above.
    #[error("there is no vibe.toml in {} or above it", shown(start))]
    NoProject {
        /// Where the search began.
        start: PathBuf,
    },
    /// The directory to look for a project in cannot be opened.
    #[error("no project can be looked for in {}", shown(start))]
    NoStart {
        /// The directory.
        start: PathBuf,
        /// Why.
        source: FsError,
    },
    /// One that anybody could have put above a directory of the user's.
    #[error(
        "{} is the nearest vibe.toml above {}, but belongs to another user and lies in a directory that \
         everybody may write",
        shown(path),
        shown(start)
    )]
    ForeignProject {
        /// The manifest.
        path: PathBuf,
        /// Where the search began.
        start: PathBuf,
    },
    /// A directory of the command line that is not there.
    #[error("there is no directory {}", shown(path))]
    NoDirectory {
        /// The directory.
        path: PathBuf,
        /// Why.
        source: FsError,
    },
    /// A package, not a project.
    #[error("{} is a package, not a project", shown(path))]
    PackageIsNoProject {
        /// Its directory.
        path: PathBuf,
        /// The nearest workspace around it, which does not include it.
        workspace: Option<PathBuf>,
    },
    /// A workspace is not as it can be taken up.
    #[error(transparent)]
    Workspace(#[from] WorkspaceError),
    /// A manifest could not be read.
    #[error("the manifest cannot be read")]
    ReadManifest {
        /// Why.
        source: ReadError,
    },
    /// A manifest's text is wrong.
    #[error("{} is not valid", shown(path))]
    Manifest {
        /// The manifest.
        path: PathBuf,
        /// What and where.
        #[source]
        diagnostic: Box<Diagnostic>,
    },
    /// `vibe.toml` was changed by somebody else while the run worked.
    #[error("{} was changed while vibe worked", shown(path))]
    ChangedMeanwhile {
        /// The file.
        path: PathBuf,
    },
    /// The record of projected paths could not be read.
    #[error("vibedeps/.projections.toml cannot be read")]
    ReadProjections {
        /// Why.
        source: ReadError,
    },
    /// The record of projected paths is wrong.
    #[error("vibedeps/.projections.toml is not valid")]
    Projections {
        /// What and where.
        source: ProjectionsError,
    },
    /// A package's boot text cannot be shown to agents.
    #[error("the boot text {path} of {id} {version} cannot be used")]
    BootText {
        /// The package.
        id: PackageId,
        /// Its version.
        version: Version,
        /// Where its text lies in the package.
        path: RelPath,
        /// Why.
        #[source]
        fault: Box<ProjectedFault>,
    },
    /// What lies where vibe would write for agents cannot be used.
    #[error("vibe cannot write {}", shown(path))]
    ProjectedPath {
        /// The file.
        path: PathBuf,
        /// Why.
        #[source]
        fault: Box<ProjectedFault>,
    },
    /// What is to be written for agents meets something of somebody else's.
    #[error("{source}")]
    Project {
        /// The root of the project.
        root: PathBuf,
        /// What.
        source: EditError,
    },
    /// Something that this version of vibe does not do yet.
    #[error("{what} in {} is not supported by this version of vibe", shown(path))]
    NotYet {
        /// What, by name.
        what: String,
        /// The file that asks for it.
        path: PathBuf,
    },
    /// A repository on the command line holds no package at its root.
    #[error(
        "{} has no package at its root, at commit {commit}",
        escape(repository)
    )]
    SpecIsNoPackage {
        /// The repository.
        repository: String,
        /// The commit.
        commit: String,
    },
    /// A repository on the command line has neither a version nor a branch.
    #[error("{} has no commit that could be installed", escape(repository))]
    EmptyRepository {
        /// The repository.
        repository: String,
    },
    /// The lock could not be read.
    #[error("the lock cannot be read")]
    ReadLock {
        /// Why.
        source: ReadError,
    },
    /// The lock's text is wrong.
    #[error("{} is not valid", shown(path))]
    LockText {
        /// The lock.
        path: PathBuf,
        /// What and where.
        #[source]
        diagnostic: LockError,
    },
    /// There is no lock, and the command needs one.
    #[error("{} is missing", shown(path))]
    NoLock {
        /// Where it should be.
        path: PathBuf,
    },
    /// The lock does not satisfy the manifest.
    #[error("vibe.lock is out of date")]
    LockOutOfDate {
        /// Every reason.
        problems: Vec<LockProblem>,
    },
    /// `--locked` with a package that the manifest does not require so yet.
    #[error("--locked keeps vibe.toml as it is, and this would change what it requires of {id}")]
    LockedAddition {
        /// The package.
        id: PackageId,
    },
    /// A requirement that a manifest cannot state.
    #[error("vibe.toml cannot require {id} so: {reason}")]
    Unwritable {
        /// The package.
        id: PackageId,
        /// What a manifest does not take, escaped.
        reason: String,
    },
    /// `--precise` with a version that the manifest does not take.
    #[error("{manifest} requires {id} {constraint}, which {version} does not satisfy")]
    PreciseRefused {
        /// The manifest, relative to the root.
        manifest: RelPath,
        /// The package.
        id: PackageId,
        /// The version asked for.
        version: Version,
        /// What is required.
        constraint: Constraint,
    },
    /// `--precise` with another version than the one that a path, a tag, a branch or a revision has.
    #[error("vibe.toml takes {id} from {origin}, which is not {version}")]
    PreciseOfOne {
        /// The package.
        id: PackageId,
        /// The version asked for.
        version: Version,
        /// What it is taken from, escaped.
        origin: String,
    },
    /// `--precise` with a version that differs from the chosen one in its build metadata alone.
    #[error(
        "{id} {version} cannot be chosen: {chosen} differs from it in nothing that is compared, \
         and of such versions the last is taken"
    )]
    PreciseBuild {
        /// The package.
        id: PackageId,
        /// The version asked for.
        version: Version,
        /// The one that is taken.
        chosen: Version,
    },
    /// The lock names another place than the manifest.
    #[error("vibe.lock does not agree with vibe.toml on where packages come from")]
    LockIntegrity {
        /// Every reason.
        problems: Vec<LockProblem>,
    },
    /// A package named on the command line is not in the lock.
    #[error("{id} is not installed in this project")]
    NotInstalled {
        /// The package.
        id: PackageId,
        /// The packages that are.
        installed: Vec<PackageId>,
    },
    /// A package that is to go is installed for the sake of others only.
    #[error(
        "{manifest} does not require {id}{}",
        requirers_text(elsewhere, requirers)
    )]
    NotRequired {
        /// The manifest that it was to be taken out of, relative to the root.
        manifest: RelPath,
        /// The package.
        id: PackageId,
        /// The directories of other manifests of the project that require it.
        elsewhere: Vec<PathBuf>,
        /// The packages that require it.
        requirers: Vec<PackageId>,
        /// The requirements of the manifest that bring it.
        roots: Vec<PackageId>,
    },
    /// A package that is looked at is neither in the lock nor in a source.
    #[error("there is no package {id}")]
    NoSuchPackage {
        /// The package.
        id: PackageId,
        /// The packages that there are.
        known: Vec<PackageId>,
    },
    /// A package that is looked at has no such version.
    #[error("no version of {id} satisfies {constraint}; the newest is {newest}")]
    NoSuchVersion {
        /// The package.
        id: PackageId,
        /// What was asked for.
        constraint: Constraint,
        /// The newest version that there is.
        newest: Version,
    },
    /// A requirement names a registry that the root's manifest does not have.
    #[error(
        "{} requires {id} from the registry `{name}`, which the project does not list",
        shown(path)
    )]
    NoSuchRegistry {
        /// The manifest.
        path: PathBuf,
        /// The package.
        id: PackageId,
        /// The registry.
        name: String,
        /// Those that it lists.
        known: Vec<String>,
    },
    /// The address of a git registry is none that is taken.
    #[error("the url of the registry `{name}` cannot be used")]
    RegistryUrl {
        /// The registry.
        name: String,
        /// Why.
        source: GitUrlError,
    },
    /// The address of a package's repository is none that is taken.
    #[error("{} cannot be taken from its git repository", package_text(id.as_ref()))]
    GitUrl {
        /// The package, where it is known.
        id: Option<PackageId>,
        /// Why.
        source: GitUrlError,
    },
    /// A repository did not give what was asked of it.
    #[error("{} cannot be taken from its git repository", package_text(id.as_ref()))]
    Git {
        /// The package, where it is known.
        id: Option<PackageId>,
        /// Why.
        source: Box<GitError>,
    },
    /// There is nowhere to keep what is fetched.
    #[error("there is no folder to keep fetched repositories in: the user has no home")]
    NoCacheFolder,
    /// A commit without the manifest of a package.
    #[error(
        "{} has no `{}` at commit {commit}, so {id} is not there",
        escape(repository),
        escape(path)
    )]
    NoPackageInRepository {
        /// The package.
        id: PackageId,
        /// The repository.
        repository: String,
        /// Where the manifest was looked for.
        path: String,
        /// The commit.
        commit: String,
    },
    /// A repository without a tag of a version, where a version is required.
    #[error(
        "{} has no tag that is `v` and a version, so {id} cannot be required by its version",
        escape(repository)
    )]
    NoVersionTags {
        /// The package.
        id: PackageId,
        /// The repository.
        repository: String,
    },
    /// A package from elsewhere names a repository on this machine.
    #[error(
        "{id} requires {dependency} from a local repository, `{}`, which others cannot find",
        escape(repository)
    )]
    LocalRepository {
        /// The package.
        id: PackageId,
        /// What it requires.
        dependency: PackageId,
        /// The repository.
        repository: String,
    },
    /// No registry has what the lock names.
    #[error("no registry of this project has {id} {version}")]
    NotInRegistries {
        /// The package.
        id: PackageId,
        /// The version.
        version: Version,
    },
    /// A path source that cannot be opened.
    #[error("the path `{}` of {id} cannot be opened", escape(path))]
    PathSource {
        /// The package.
        id: PackageId,
        /// The path as stated.
        path: String,
        /// Why.
        source: FsError,
    },
    /// One id from two sources.
    #[error("{id} is required from two sources: {first}, and {second}")]
    TwoSources {
        /// The package.
        id: PackageId,
        /// The first source.
        first: String,
        /// The second.
        second: String,
    },
    /// The command line asks for one id in two ways.
    #[error("{id} is asked for in two ways: {first}, and {second}")]
    AskedTwice {
        /// The package.
        id: PackageId,
        /// What is asked for first.
        first: String,
        /// What is asked for then.
        second: String,
    },
    /// A source directory without `[package]`.
    #[error(
        "{} has no `[package]` in its vibe.toml, so it cannot be {id}",
        shown(path)
    )]
    NotAPackage {
        /// What was asked for.
        id: PackageId,
        /// The directory.
        path: PathBuf,
    },
    /// A source directory without a manifest.
    #[error("{} has no vibe.toml, so it holds no package", shown(path))]
    NoPackageManifest {
        /// The directory.
        path: PathBuf,
    },
    /// A directory named on the command line without `[package]`.
    #[error("{} has no `[package]` in its vibe.toml", shown(path))]
    NotAPackageDirectory {
        /// The directory.
        path: PathBuf,
    },
    /// A source directory that holds another package.
    #[error(
        "{} should hold {expected}, but its vibe.toml says {found}",
        shown(path)
    )]
    OtherPackage {
        /// The directory.
        path: PathBuf,
        /// What was asked for.
        expected: String,
        /// What is there.
        found: String,
    },
    /// A published package with a path dependency.
    #[error("{id} {version} is published, but requires {dependency} by a path")]
    PublishedPath {
        /// The package.
        id: PackageId,
        /// Its version.
        version: Version,
        /// What it requires.
        dependency: PackageId,
    },
    /// `in-place` without a git source.
    #[error("{id} asks for `materialization = \"in-place\"`, which needs a git source")]
    InPlaceNeedsGit {
        /// The package.
        id: PackageId,
        /// Its manifest.
        path: PathBuf,
    },
    /// `in-place` of a part of a repository.
    #[error(
        "{id} asks for `materialization = \"in-place\"`, but is only a directory of its repository"
    )]
    InPlaceSubdir {
        /// The package.
        id: PackageId,
    },
    /// The git program is needed and cannot be used.
    #[error("an in-place package needs the git program")]
    GitProgram {
        /// Why.
        source: vibe_git::ProgramError,
    },
    /// Somebody's work in clones would be lost.
    #[error("{}", guards_text(guards))]
    CloneGuard {
        /// What would be lost.
        guards: Vec<Guard>,
    },
    /// There is no solution.
    #[error("{error}")]
    Resolve {
        /// Why.
        #[source]
        error: Box<Unsolved>,
        /// The packages that the registries have, for near names.
        known: Vec<PackageId>,
    },
    /// A package's files cannot be taken.
    #[error("{id} {version} cannot be installed")]
    Fetch {
        /// The package.
        id: PackageId,
        /// Its version.
        version: Version,
        /// Why.
        source: Box<FetchError>,
    },
    /// There is no place for the store of packages.
    #[error("no folder for the store of packages is known")]
    NoStore,
    /// The store did not take or give a package.
    #[error("the store {} cannot be used for {id} {version}", shown(store))]
    Store {
        /// The package.
        id: PackageId,
        /// Its version.
        version: Version,
        /// The root of the store.
        store: PathBuf,
        /// Why.
        source: Box<StoreError>,
    },
    /// The store cannot be used at all.
    #[error("the store {} cannot be used", shown(store))]
    OpenStore {
        /// The root of the store.
        store: PathBuf,
        /// Why.
        source: Box<StoreError>,
    },
    /// The cache of git repositories cannot be listed or emptied.
    #[error("the cache of git repositories {} cannot be used", shown(directory))]
    GitCache {
        /// Its directory.
        directory: PathBuf,
        /// Why.
        source: Box<CacheError>,
    },
    /// Another run reads from the cache of git repositories, which was to be removed.
    #[error(
        "another run uses the cache of git repositories {}, so nothing was removed",
        shown(directory)
    )]
    GitCacheInUse {
        /// Its directory.
        directory: PathBuf,
    },
    /// What the store has of a package is damaged, and its source does not give it.
    #[error("{id} {version} is damaged in the store ({damage}) and cannot be fetched again")]
    StoreDamaged {
        /// The package.
        id: PackageId,
        /// Its version.
        version: Version,
        /// What is wrong with it.
        damage: Damage,
        /// Why it cannot be fetched.
        source: Box<InstallError>,
    },
    /// The store and the project lie one in the other.
    #[error(
        "the store {} and the project {} lie one in the other",
        shown(store),
        shown(project)
    )]
    StoreInProject {
        /// The root of the store.
        store: PathBuf,
        /// The root of the project.
        project: PathBuf,
    },
    /// A registry cannot be read.
    #[error("the registry `{}` cannot be read", escape(name))]
    Registry {
        /// Its name.
        name: String,
        /// Why.
        source: FetchError,
    },
    /// A published version has other bytes than the lock says.
    #[error("{id} {version} has the content {found}, but vibe.lock says {locked}")]
    OtherTree {
        /// The package.
        id: PackageId,
        /// Its version.
        version: Version,
        /// What the lock says.
        locked: TreeId,
        /// What is there.
        found: TreeId,
    },
    /// The lock names other install hooks than the package has.
    #[error("vibe.lock names other install hooks of {id} {version} than the package has")]
    OtherScripts {
        /// The package.
        id: PackageId,
        /// Its version.
        version: Version,
    },
    /// A declared hook cannot run here.
    #[error("the {phase} script of {id} {version} cannot run")]
    Selection {
        /// The package.
        id: PackageId,
        /// Its version.
        version: Version,
        /// The phase.
        phase: Phase,
        /// Why.
        source: Box<SelectionError>,
    },
    /// A hook script could not be read.
    #[error("the script of an install hook cannot be read")]
    ReadScript {
        /// Why.
        source: ReadError,
    },
    /// A phase was asked for of which the package has no hook.
    #[error("{id} declares no {phase} script")]
    NoSuchHook {
        /// The package.
        id: PackageId,
        /// The phase.
        phase: Phase,
    },
    /// A hook script is malformed.
    #[error("the {phase} script of {id} {version} cannot run")]
    Script {
        /// The package.
        id: PackageId,
        /// Its version.
        version: Version,
        /// The phase.
        phase: Phase,
        /// Why.
        source: Box<ScriptError>,
    },
    /// A path would be longer than the system takes.
    #[error(
        "{path} of {slot} would be {bytes} bytes long in this project, more than the {limit} that \
         this system takes"
    )]
    PathTooLong {
        /// The slot.
        slot: SlotName,
        /// The path in it.
        path: String,
        /// Bytes of the whole path.
        bytes: usize,
        /// The most there may be.
        limit: usize,
    },
    /// A slot record that cannot be trusted.
    #[error("the slot record of {slot} is not valid")]
    Record {
        /// The slot.
        slot: SlotName,
        /// What and where.
        source: RecordError,
    },
    /// A slot record that is no regular file.
    #[error("the slot record of {slot} is not a regular file")]
    RecordType {
        /// The slot.
        slot: SlotName,
    },
    /// A slot that should be there and is not.
    #[error("vibedeps/{slot} is not installed here")]
    NotPlaced {
        /// The slot.
        slot: SlotName,
    },
    /// A slot that holds something else than its source, as after a refresh that was cut short.
    #[error("vibedeps/{slot} does not hold what its source has")]
    OtherContent {
        /// The slot.
        slot: SlotName,
    },
    /// Another run holds the project, and waiting was not wanted.
    #[error("another vibe works on this project: process {pid}, `{command}`")]
    Busy {
        /// The holder's process number.
        pid: u32,
        /// The holder's command, escaped.
        command: String,
    },
    /// Started from a hook of the same project.
    #[error("an install hook ({phase}) of this project may not run `vibe {command}`")]
    Reentrant {
        /// The phase that runs.
        phase: String,
        /// The command.
        command: String,
    },
    /// A pre-install hook failed; nothing was registered.
    #[error("{}", failed_hook(hook))]
    PreInstall {
        /// What happened.
        hook: Box<HookRecord>,
        /// What could not be undone, in words.
        not_undone: Vec<String>,
        /// Whether some of the caller's variables were not passed.
        variables_not_passed: bool,
    },
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
    /// The slots could not be read or written.
    #[error(transparent)]
    Slot(#[from] SlotError),
    /// A file call failed.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// Evidence of a run could not be read.
    #[error("the evidence of a run cannot be read")]
    ReadEvidence {
        /// Why.
        source: ReadError,
    },
    /// `init` would overwrite something.
    #[error("{} is already there", shown(path))]
    AlreadyThere {
        /// The file.
        path: PathBuf,
    },
    /// A package was not published.
    #[error(transparent)]
    Publishing(Box<PublishingError>),
    /// `init` cannot make a name of a directory's.
    #[error("no package name can be made of `{}`", escape(directory))]
    NoName {
        /// The directory's name.
        directory: String,
    },
}

fn package_text(id: Option<&PackageId>) -> &str {
    id.map_or("the package", PackageId::as_str)
}

fn requirers_text(elsewhere: &[PathBuf], requirers: &[PackageId]) -> String {
    let manifests = elsewhere
        .iter()
        .map(|place| shown(&place.join(MANIFEST_NAME)));
    let names: Vec<String> = manifests
        .chain(requirers.iter().map(PackageId::to_string))
        .collect();
    match names.len() {
        0 => String::new(),
        1 => format!("; {} does", names[0]),
        _ => format!("; {} do", names.join(", ")),
    }
}

fn failed_hook(hook: &HookRecord) -> String {
    let mut text = format!(
        "the {} script of {} failed ({})",
        hook.phase,
        hook.slot.title(),
        hook.ending()
    );
    for remark in &hook.remarks {
        text.push_str("; it ");
        text.push_str(remark);
    }
    text
}

impl From<PublishingError> for InstallError {
    fn from(error: PublishingError) -> Self {
        InstallError::Publishing(Box::new(error))
    }
}

impl InstallError {
    /// Whether the store lost a tree while it was used, so that fetching it again helps.
    pub(crate) fn is_lost_tree(&self) -> bool {
        match self {
            InstallError::Store { source, .. } => source.is_lost_tree(),
            _ => false,
        }
    }

    /// The repository, of this machine or fetched, in which an object cannot be read.
    pub(crate) fn unreadable_repository(&self) -> Option<&str> {
        let error = match self {
            InstallError::Git { source, .. } => source,
            InstallError::Fetch { source, .. } => match source.as_ref() {
                FetchError::Git(error) | FetchError::Blob { source: error, .. } => error,
                _ => return None,
            },
            _ => return None,
        };
        match error.as_ref() {
            GitError::Unreadable { repository, .. } => Some(repository),
            _ => None,
        }
    }
}

fn guards_text(guards: &[Guard]) -> String {
    let slots: Vec<String> = guards
        .iter()
        .map(|guard| format!("vibedeps/{}", guard.slot.directory()))
        .collect();
    format!(
        "{} {} work that is nowhere else, which would be lost",
        slots.join(", "),
        if slots.len() == 1 { "has" } else { "have" }
    )
}

/// What is wrong with a text that agents shall read, or with the place for it.
#[derive(Debug, thiserror::Error)]
pub enum ProjectedFault {
    /// It is not there.
    #[error("it is not in the package")]
    Missing,
    /// It is no text.
    #[error("{0}")]
    Text(Diagnostic),
    /// It is not there although the pre-install, which was to make it, has run.
    #[error("it is not there, although the pre-install that was to make it has run")]
    NotMade,
    /// It is too long to be read.
    #[error("it is larger than {limit_mib} MiB")]
    TooLarge {
        /// The limit, in MiB.
        limit_mib: u64,
    },
    /// What vibe would write is too long to be read again.
    #[error("it would be larger than 32 MiB")]
    Outgrown,
    /// It is, or is reached through, something that is no file or directory.
    #[error("{path} is {}", kind.as_str())]
    Blocked {
        /// What is in the way.
        path: RelPath,
        /// What it is.
        kind: EntryKind,
    },
    /// The package could not be read.
    #[error("it cannot be read from the package: {0}")]
    Payload(Box<dyn std::error::Error + Send + Sync>),
    /// A file call failed.
    #[error(transparent)]
    Fs(#[from] FsError),
}

/// An error and its causes in one line.
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        text.push_str(": ");
        text.push_str(&cause.to_string());
        source = cause.source();
    }
    text
}
