//! Every error as the user meets it: a kind, what failed, why, what to do, and the exit code.

use std::error::Error;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use vibe_core::PackageId;
use vibe_core::formats::diagnostic::{Diagnostic, Position};
use vibe_core::formats::lock::LockError;
use vibe_core::formats::projections::ProjectionsError;
use vibe_core::formats::record::RecordError;
use vibe_core::git_url::GitUrlError;
use vibe_core::text::{escape, nearest, shell_quote};
use vibe_install::{
    BLOCK_BEGIN, BLOCK_END, EditError, FetchError, GitError, Guard, HookRecord, InstallError,
    ProjectedFault, PublishError, PublishingError, ReadError, SlotError, StoreError,
    WorkspaceError,
};

use crate::exit_code::{FAILED, INTEGRITY, INTERRUPTED, OUT_OF_DATE, PRE_INSTALL, USAGE};
use crate::near::{did_you_mean, relatives};
use crate::paste::Paste;
use crate::unsolved;

/// The hint after everything that only bad luck explains.
const AGAIN: &str = "run the same command again";

/// The hint where another run needs what was to be removed.
const IN_USE: &str = "nothing was removed; run the same command again when the other run has ended";

/// The hint where a file has a form that this version does not know.
const NEWER: &str = "use a vibe that is as new as the one that wrote it; the file is left as it is";

/// The hint where a registry is not there, or not as a registry is.
const REGISTRY: &str = "look at the `url` of the registry in vibe.toml, and at what lies there";

/// The hint where a vibe.toml is not that of a package.
const NO_PACKAGE: &str = "name the directory of a package; the vibe.toml of one has `[package]` with `group`, \
                          `name` and `version`";

/// An error as the user meets it.
#[derive(Debug, Clone)]
pub(crate) struct UserError {
    /// A word for programs, kebab-case.
    pub(crate) kind: &'static str,
    /// How the program ends.
    pub(crate) exit_code: u8,
    /// What failed, with which name or path.
    pub(crate) message: String,
    /// Why, from the nearest cause to the farthest, and facts that belong to it.
    pub(crate) causes: Vec<String>,
    /// What the user can do.
    pub(crate) hints: Vec<String>,
    /// Where in a file.
    pub(crate) place: Option<Place>,
    /// The install hook that failed.
    pub(crate) hook: Option<Box<FailedHook>>,
}

/// A place in a file.
#[derive(Debug, Clone)]
pub(crate) struct Place {
    /// The file.
    pub(crate) path: PathBuf,
    /// Where in it.
    pub(crate) position: Option<Position>,
    /// The line, escaped.
    pub(crate) line_text: Option<String>,
    /// How many characters of it stand before the place.
    pub(crate) before: usize,
    /// What is wrong there.
    pub(crate) label: String,
}

/// An install hook that failed.
#[derive(Debug, Clone)]
pub(crate) struct FailedHook {
    /// What happened.
    pub(crate) record: HookRecord,
    /// Whether some of the caller's variables were not passed.
    pub(crate) variables_not_passed: bool,
    /// Its log, relative to the project's root.
    pub(crate) log: Option<String>,
    /// Whether what it printed stands right above.
    pub(crate) was_heard: bool,
}

impl UserError {
    /// An error with nothing but its message.
    pub(crate) fn new(kind: &'static str, exit_code: u8, message: impl Into<String>) -> Self {
        Self {
            kind,
            exit_code,
            message: message.into(),
            causes: Vec::new(),
            hints: Vec::new(),
            place: None,
            hook: None,
        }
    }

    /// The same with a cause.
    pub(crate) fn caused_by(mut self, cause: impl Into<String>) -> Self {
        self.causes.push(cause.into());
        self
    }

    /// The same at the place of `diagnostic` in the file `path`.
    pub(crate) fn at(mut self, path: &Path, diagnostic: &Diagnostic) -> Self {
        self.place = Some(Place {
            path: path.to_path_buf(),
            position: diagnostic.position,
            line_text: diagnostic.line_text.clone(),
            before: diagnostic.before,
            label: diagnostic.message.clone(),
        });
        self.hints.splice(0..0, diagnostic.hint.clone());
        self
    }

    /// What the user is told of `error`.
    pub(crate) fn of(error: &InstallError, paste: &Paste) -> Self {
        let (kind, exit_code) = classify(error);
        let mut found = Self::new(kind, exit_code, error.to_string());
        found.hints = match is_disk_full(error) {
            true => vec![format!("make room on that file system, then {AGAIN}")],
            false => hints(error, paste),
        };
        match diagnostic(error) {
            Some((path, diagnostic)) => found = found.at(&path, diagnostic),
            None => found.causes = causes(error),
        }
        found.causes.extend(facts(error));
        if let InstallError::PreInstall {
            hook,
            variables_not_passed,
            ..
        } = error
        {
            found.hook = Some(Box::new(FailedHook {
                record: hook.as_ref().clone(),
                variables_not_passed: *variables_not_passed,
                log: None,
                was_heard: false,
            }));
        }
        found
    }
}

/// The kind and the exit code of an error.
#[expect(
    clippy::too_many_lines,
    reason = "a line for each way to fail, so that none is forgotten"
)]
fn classify(error: &InstallError) -> (&'static str, u8) {
    match error {
        InstallError::NoProject { .. } | InstallError::NoStart { .. } => ("no-project", USAGE),
        InstallError::PackageIsNoProject { .. } => ("package-is-no-project", USAGE),
        InstallError::Workspace(_) => ("workspace", USAGE),
        InstallError::ReadManifest { source } => ("read-manifest", read_code(source, USAGE)),
        InstallError::Manifest { .. } => ("manifest", USAGE),
        InstallError::ChangedMeanwhile { .. } => ("changed-meanwhile", FAILED),
        InstallError::NotYet { .. } => ("not-supported", FAILED),
        InstallError::ReadProjections { source } => ("projections", read_code(source, INTEGRITY)),
        InstallError::Projections { .. } => ("projections", INTEGRITY),
        InstallError::BootText { .. } => ("boot-text", FAILED),
        InstallError::ProjectedPath { .. } => ("projected-path", FAILED),
        InstallError::Project { source, .. } => match source {
            EditError::Markers { .. } => ("markers", FAILED),
            EditError::Foreign { .. } => ("foreign-file", FAILED),
        },
        InstallError::ReadLock { source } => ("read-lock", read_code(source, INTEGRITY)),
        InstallError::LockText { .. } => ("lock", INTEGRITY),
        InstallError::NoLock { .. } => ("no-lock", FAILED),
        InstallError::LockOutOfDate { .. } => ("lock-out-of-date", OUT_OF_DATE),
        InstallError::LockedAddition { .. } => ("locked-addition", OUT_OF_DATE),
        InstallError::PreciseRefused { .. } | InstallError::PreciseOfOne { .. } => {
            ("precise", USAGE)
        }
        InstallError::PreciseBuild { .. } => ("precise", FAILED),
        InstallError::Unwritable { .. } => ("unwritable", USAGE),
        InstallError::NoVersionTags { .. } => ("no-version-tags", FAILED),
        InstallError::LockIntegrity { .. } => ("lock-integrity", INTEGRITY),
        InstallError::NotInstalled { .. } => ("not-installed", FAILED),
        InstallError::NotRequired { .. } => ("not-required", FAILED),
        InstallError::NoSuchPackage { .. } => ("no-such-package", FAILED),
        InstallError::NoSuchVersion { .. } => ("no-such-version", FAILED),
        InstallError::NoSuchRegistry { .. } => ("no-such-registry", USAGE),
        InstallError::NotInRegistries { .. } => ("not-in-registries", FAILED),
        InstallError::PathSource { .. } => ("path-source", FAILED),
        InstallError::TwoSources { .. } => ("two-sources", USAGE),
        InstallError::NotAPackage { .. }
        | InstallError::NotAPackageDirectory { .. }
        | InstallError::NoPackageManifest { .. }
        | InstallError::NoPackageInRepository { .. }
        | InstallError::SpecIsNoPackage { .. } => ("not-a-package", USAGE),
        InstallError::OtherPackage { .. } => ("other-package", USAGE),
        InstallError::PublishedPath { .. } => ("published-path", USAGE),
        InstallError::InPlaceNeedsGit { .. } => ("in-place-needs-git", USAGE),
        InstallError::InPlaceSubdir { .. } => ("in-place-subdir", USAGE),
        InstallError::GitProgram { .. } => ("git-program", FAILED),
        InstallError::CloneGuard { .. } => ("clone-has-work", FAILED),
        InstallError::Resolve { .. } => ("resolve", FAILED),
        InstallError::RegistryUrl { .. } | InstallError::GitUrl { .. } => ("git-url", USAGE),
        InstallError::Git { .. } | InstallError::NoCacheFolder => ("git", FAILED),
        InstallError::EmptyRepository { .. } => ("git", FAILED),
        InstallError::LocalRepository { .. } => ("local-repository", USAGE),
        InstallError::Fetch { source, .. } => ("fetch", fetch_code(source)),
        InstallError::Registry { source, .. } => ("registry", fetch_code(source)),
        InstallError::NoStore => ("no-store", FAILED),
        InstallError::Store { source, .. } => ("store", store_code(source)),
        InstallError::OpenStore { source, .. } => open_store_kind(source),
        InstallError::GitCache { .. } => ("git-cache", FAILED),
        InstallError::GitCacheInUse { .. } => ("in-use", FAILED),
        InstallError::StoreDamaged { .. } => ("store-damaged", INTEGRITY),
        InstallError::StoreInProject { .. } => ("store-in-project", USAGE),
        InstallError::OtherTree { .. } => ("other-tree", INTEGRITY),
        InstallError::OtherScripts { .. } => ("other-scripts", INTEGRITY),
        InstallError::Selection { .. } => ("hook-selection", FAILED),
        InstallError::ReadScript { .. } => ("read-script", FAILED),
        InstallError::Script { .. } => ("hook-script", FAILED),
        InstallError::PathTooLong { .. } => ("path-too-long", FAILED),
        InstallError::Record { .. } | InstallError::RecordType { .. } => ("record", INTEGRITY),
        InstallError::NotPlaced { .. } => ("not-placed", FAILED),
        InstallError::OtherContent { .. } => ("other-content", FAILED),
        InstallError::Busy { .. } => ("busy", FAILED),
        InstallError::Reentrant { .. } => ("reentrant", FAILED),
        InstallError::PreInstall { .. } => ("pre-install", PRE_INSTALL),
        InstallError::Interrupted => ("interrupted", INTERRUPTED),
        InstallError::Slot(source) => ("slot", slot_code(source)),
        InstallError::Fs(_) => ("file-system", FAILED),
        InstallError::ReadEvidence { .. } => ("read-evidence", FAILED),
        InstallError::AlreadyThere { .. } => ("already-there", FAILED),
        InstallError::NoName { .. } => ("no-name", USAGE),
        InstallError::Publishing(error) => publishing_kind(error),
    }
}

/// What lies there is `wrong`; a file call that fails says nothing of it.
fn read_code(error: &ReadError, wrong: u8) -> u8 {
    match error {
        ReadError::NotAFile { .. } | ReadError::TooLarge { .. } => wrong,
        ReadError::Fs(_) => FAILED,
    }
}

fn fetch_code(error: &FetchError) -> u8 {
    match error {
        FetchError::PublishedDiffers { .. } | FetchError::TreeFile { .. } => INTEGRITY,
        _ => FAILED,
    }
}

fn publishing_kind(error: &PublishingError) -> (&'static str, u8) {
    match error {
        PublishingError::UnknownRegistry { .. } => ("no-such-registry", USAGE),
        PublishingError::Forbidden { .. } => ("publish-forbidden", FAILED),
        PublishingError::GitRegistry { .. } => ("git-registry", FAILED),
        PublishingError::InPackage { .. } => ("registry-in-package", USAGE),
        PublishingError::CheckFailed { .. } => ("check", FAILED),
        PublishingError::Registry { source, .. } => match source {
            PublishError::Unsound(source) => ("publish", fetch_code(source)),
            PublishError::ReadBack(_) => ("publish", INTEGRITY),
            _ => ("publish", FAILED),
        },
    }
}

/// Whether nothing, or no directory, lies where a registry or a version in it should.
fn is_absence(error: &FetchError) -> bool {
    match error {
        FetchError::Fs(error) => error.kind() == ErrorKind::NotFound,
        FetchError::NotADirectory { .. } => true,
        _ => false,
    }
}

fn open_store_kind(error: &StoreError) -> (&'static str, u8) {
    match error {
        StoreError::InUse { .. } => ("in-use", FAILED),
        error => ("store", store_code(error)),
    }
}

fn store_code(error: &StoreError) -> u8 {
    match error {
        StoreError::Damaged { .. } | StoreError::DamagedForGood { .. } => INTEGRITY,
        _ => FAILED,
    }
}

fn slot_code(error: &SlotError) -> u8 {
    match error {
        SlotError::OtherTree { .. } | SlotError::State { .. } | SlotError::Newer { .. } => {
            INTEGRITY
        }
        _ => FAILED,
    }
}

/// Where in a file the error is, if it is about the text of one.
fn diagnostic(error: &InstallError) -> Option<(PathBuf, &Diagnostic)> {
    match error {
        InstallError::Manifest { path, diagnostic } => Some((path.clone(), diagnostic)),
        InstallError::LockText {
            path,
            diagnostic: LockError::Malformed(diagnostic),
        } => Some((path.clone(), diagnostic)),
        InstallError::Record {
            slot,
            source: RecordError::Malformed(diagnostic),
        } => {
            let directory = Path::new("vibedeps").join(slot.directory());
            Some((directory.join(".vibe-slot.toml"), diagnostic))
        }
        _ => None,
    }
}

/// The chain of causes, each once: an error that speaks for its cause says the same as it.
fn causes(error: &InstallError) -> Vec<String> {
    let mut causes: Vec<String> = Vec::new();
    let mut before = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let text = cause.to_string();
        if text != before {
            causes.push(text.clone());
        }
        before = text;
        next = cause.source();
    }
    causes
}

/// What belongs to the error and is no cause in its chain.
fn facts(error: &InstallError) -> Vec<String> {
    match error {
        InstallError::LockOutOfDate { problems } | InstallError::LockIntegrity { problems } => {
            problems.iter().map(ToString::to_string).collect()
        }
        InstallError::PreInstall { not_undone, .. } => {
            let unchanged = "vibe.toml and vibe.lock were not changed".to_owned();
            [unchanged].into_iter().chain(not_undone.clone()).collect()
        }
        InstallError::Resolve { error, .. } => error.facts.clone(),
        InstallError::CloneGuard { guards } => guards.iter().flat_map(guard_facts).collect(),
        InstallError::Publishing(error) => match error.as_ref() {
            PublishingError::CheckFailed { errors, .. } => errors.clone(),
            _ => Vec::new(),
        },
        _ => Vec::new(),
    }
}

/// What a step would destroy, a line each.
pub(crate) fn guard_facts(guard: &Guard) -> Vec<String> {
    let slot = guard.slot.directory();
    let mut facts = Vec::new();
    if guard.local_commits {
        facts.push(format!("vibedeps/{slot} has commits that were made there"));
    }
    let shown = guard.paths.iter();
    facts.extend(shown.map(|path| format!("vibedeps/{slot}/{path} was changed or added there")));
    let more = guard.count - guard.paths.len();
    if more > 0 {
        facts.push(format!("and {more} more in vibedeps/{slot}"));
    }
    facts
}

/// What the user can do.
#[expect(
    clippy::too_many_lines,
    reason = "a line for each way to fail, so that none is forgotten"
)]
fn hints(error: &InstallError, paste: &Paste) -> Vec<String> {
    let hint = match error {
        InstallError::NoProject { .. }
        | InstallError::NoStart { .. }
        | InstallError::PackageIsNoProject { .. }
        | InstallError::AlreadyThere { .. }
        | InstallError::NoName { .. }
        | InstallError::ReadManifest { .. }
        | InstallError::NotYet { .. } => start_hint(error, paste),
        InstallError::Workspace(error) => Some(workspace_hint(error)),
        InstallError::ReadLock { .. }
        | InstallError::LockText { .. }
        | InstallError::NoLock { .. }
        | InstallError::LockOutOfDate { .. }
        | InstallError::LockedAddition { .. }
        | InstallError::LockIntegrity { .. }
        | InstallError::PreciseRefused { .. }
        | InstallError::PreciseOfOne { .. }
        | InstallError::PreciseBuild { .. }
        | InstallError::Unwritable { .. }
        | InstallError::OtherTree { .. }
        | InstallError::OtherScripts { .. } => lock_hint(error, paste),
        InstallError::NotInstalled { .. }
        | InstallError::NotRequired { .. }
        | InstallError::NoSuchPackage { .. }
        | InstallError::NoSuchVersion { .. }
        | InstallError::NoSuchRegistry { .. }
        | InstallError::NotInRegistries { .. }
        | InstallError::PathSource { .. }
        | InstallError::TwoSources { .. }
        | InstallError::NotAPackage { .. }
        | InstallError::NotAPackageDirectory { .. }
        | InstallError::NoPackageManifest { .. }
        | InstallError::OtherPackage { .. }
        | InstallError::PublishedPath { .. }
        | InstallError::InPlaceNeedsGit { .. }
        | InstallError::InPlaceSubdir { .. }
        | InstallError::GitProgram { .. }
        | InstallError::CloneGuard { .. }
        | InstallError::Fetch { .. }
        | InstallError::Registry { .. } => source_hint(error, paste),
        InstallError::Resolve { error, known } => return unsolved::hints(error, known, paste),
        InstallError::RegistryUrl { .. }
        | InstallError::GitUrl { .. }
        | InstallError::Git { .. }
        | InstallError::NoCacheFolder
        | InstallError::NoPackageInRepository { .. }
        | InstallError::SpecIsNoPackage { .. }
        | InstallError::EmptyRepository { .. }
        | InstallError::NoVersionTags { .. }
        | InstallError::LocalRepository { .. } => git_hint(error, paste),
        InstallError::NoStore
        | InstallError::Store { .. }
        | InstallError::OpenStore { .. }
        | InstallError::GitCache { .. }
        | InstallError::GitCacheInUse { .. }
        | InstallError::StoreDamaged { .. }
        | InstallError::StoreInProject { .. } => store_hint(error),
        InstallError::Publishing(error) => return publishing_hints(error),
        InstallError::Selection { .. }
        | InstallError::Script { .. }
        | InstallError::PreInstall { .. }
        | InstallError::PathTooLong { .. }
        | InstallError::Record { .. }
        | InstallError::RecordType { .. }
        | InstallError::NotPlaced { .. }
        | InstallError::OtherContent { .. }
        | InstallError::Busy { .. }
        | InstallError::Reentrant { .. }
        | InstallError::ChangedMeanwhile { .. }
        | InstallError::Interrupted => run_hint(error, paste),
        InstallError::ReadProjections { .. }
        | InstallError::Projections { .. }
        | InstallError::BootText { .. }
        | InstallError::ProjectedPath { .. }
        | InstallError::Project { .. } => projection_hint(error, paste),
        InstallError::Manifest { .. }
        | InstallError::ReadScript { .. }
        | InstallError::ReadEvidence { .. }
        | InstallError::Slot(_)
        | InstallError::Fs(_) => None,
    };
    hint.into_iter().collect()
}

/// Whether nothing is wrong but that a file system, or the user's part of it, is full.
fn is_disk_full(error: &InstallError) -> bool {
    use std::io::ErrorKind::{QuotaExceeded, StorageFull};
    let mut next = error.source();
    while let Some(cause) = next {
        let failure = cause.downcast_ref::<std::io::Error>();
        if failure.is_some_and(|failure| matches!(failure.kind(), StorageFull | QuotaExceeded)) {
            return true;
        }
        next = cause.source();
    }
    false
}

fn start_hint(error: &InstallError, paste: &Paste) -> Option<String> {
    match error {
        InstallError::NoProject { .. } => {
            Some(format!("start a project here: {}", paste.line(&["init"])))
        }
        InstallError::NoStart { .. } => {
            Some("name a directory that is there with --project".to_owned())
        }
        InstallError::PackageIsNoProject {
            workspace: Some(workspace),
            ..
        } => Some(format!(
            "the workspace {} does not include it: add it to `members` there",
            escape(&workspace.to_string_lossy())
        )),
        InstallError::PackageIsNoProject { path, .. } => {
            let spec = format!("path:{}", path.to_string_lossy());
            let command = Paste::default().line(&["install", &spec]);
            Some(format!(
                "to try a package, require it from a project: {command}"
            ))
        }
        InstallError::AlreadyThere { .. } => {
            Some("nothing was written; choose another directory, or move the file away".to_owned())
        }
        InstallError::NoName { .. } => {
            Some("choose a directory whose name has letters a to z or digits".to_owned())
        }
        InstallError::ReadManifest { source } => match source {
            ReadError::NotAFile { .. } => {
                Some("a manifest is a regular file: put the file itself there".to_owned())
            }
            ReadError::TooLarge { .. } => {
                Some("a manifest is written by hand: take out what is no part of one".to_owned())
            }
            ReadError::Fs(_) => None,
        },
        InstallError::NotYet { .. } => {
            Some("leave it out; registries, git repositories and paths work".to_owned())
        }
        _ => None,
    }
}

/// What helps where something cannot be written for agents to see.
fn projection_hint(error: &InstallError, paste: &Paste) -> Option<String> {
    match error {
        InstallError::Projections {
            source: ProjectionsError::Newer { .. },
        } => Some(NEWER.to_owned()),
        InstallError::Projections { .. } => Some(format!(
            "restore it from version control, or let vibe make it anew: {}",
            paste.line(&["verify", "--repair"])
        )),
        InstallError::BootText { id, fault, .. } => Some(match &**fault {
            ProjectedFault::Missing => format!(
                "a package has to ship the text that its `[boot]` names, or make it in pre-install; \
                 if it was removed here: {}",
                paste.line(&["reinstall", id.as_str()])
            ),
            _ => format!("mend it in {id}; a boot text is a regular file of UTF-8, at most 1 MiB"),
        }),
        InstallError::ProjectedPath { path, .. } => Some(format!(
            "put a regular file there, or move it away: {}",
            move_aside(path)
        )),
        InstallError::Project {
            root,
            source: EditError::Foreign { path },
        } => Some(format!("move it away: {}", move_aside(&path.under(root)))),
        InstallError::Project { .. } => Some(format!(
            "between `{BLOCK_BEGIN}` and `{BLOCK_END}`, each once on a line of its own, stands what vibe \
             writes: put the missing one back, or remove both"
        )),
        _ => None,
    }
}

/// The command that renames `path`.
fn move_aside(path: &Path) -> String {
    let from = path.to_string_lossy();
    let to = format!("{from}.mine");
    format!("mv -- {} {}", shell_quote(&from), shell_quote(&to))
}

fn workspace_hint(error: &WorkspaceError) -> String {
    match error {
        WorkspaceError::Foreign { .. } => {
            "remove that file, or move the project elsewhere; to use the workspace, make the file \
             your own"
                .to_owned()
        }
        WorkspaceError::NoSuchMember { .. } => {
            "correct `members`, or start a project there; a pattern like `packages/*` passes over \
             directories without a vibe.toml"
                .to_owned()
        }
        WorkspaceError::MemberPath { .. } => {
            "rename that directory, or leave it out of `members`".to_owned()
        }
        WorkspaceError::TooLarge { .. } => "name the members more closely in `members`".to_owned(),
        WorkspaceError::PublishedVariable { id, dependency, .. } => {
            format!("publish a version of {id} that states the constraint on {dependency} itself")
        }
    }
}

fn lock_hint(error: &InstallError, paste: &Paste) -> Option<String> {
    let install = paste.line(&["install"]);
    match error {
        InstallError::ReadLock {
            source: ReadError::Fs(_),
        } => None,
        InstallError::LockText {
            diagnostic: LockError::Newer { .. },
            ..
        } => Some(NEWER.to_owned()),
        InstallError::ReadLock { .. } | InstallError::LockText { .. } => Some(format!(
            "restore vibe.lock from version control, or remove it and resolve anew: {install}"
        )),
        InstallError::NoLock { .. } => Some(format!("resolve and install first: {install}")),
        InstallError::LockOutOfDate { .. } => Some(format!(
            "bring vibe.lock up to date, and commit it: {install}"
        )),
        InstallError::LockedAddition { id } => Some(format!(
            "add it without --locked: {}",
            paste.line(&["install", id.as_str()])
        )),
        InstallError::PreciseRefused { id, version, .. } => Some(format!(
            "change what vibe.toml requires: {}",
            paste.line(&["install", &format!("{id}@={version}")])
        )),
        InstallError::PreciseOfOne { .. } => Some(
            "require it by `version` in vibe.toml, from a registry or a repository that tags versions"
                .to_owned(),
        ),
        InstallError::PreciseBuild { id, .. } => Some(format!(
            "require {id} at the tag of that version, in vibe.toml"
        )),
        InstallError::Unwritable { .. } => {
            Some("give what it is called there another name, and require it by that".to_owned())
        }
        InstallError::LockIntegrity { .. } => Some(format!(
            "restore vibe.lock from version control; or, if the places that vibe.toml states are \
             wanted, run: {install}"
        )),
        InstallError::OtherTree { id, .. } | InstallError::OtherScripts { id, .. } => {
            Some(format!(
                "a published version never changes, so restore it in the registry; if the new \
                 content is wanted, remove the entry of {id} from vibe.lock and run: {install}"
            ))
        }
        _ => None,
    }
}

fn source_hint(error: &InstallError, paste: &Paste) -> Option<String> {
    match error {
        InstallError::NoSuchRegistry { name, known, .. } => Some(registry_hint(name, known)),
        InstallError::NotInRegistries { id, .. } => Some(format!(
            "restore it in the registry; or, to choose another version, remove the entry of {id} \
             from vibe.lock and run: {}",
            paste.line(&["install"])
        )),
        InstallError::PathSource { id, .. } => {
            Some(format!("correct the path of {id} in vibe.toml"))
        }
        InstallError::TwoSources { .. } => Some(
            "keep one of them, or choose one for everybody with an `[[override]]` in the project's \
             vibe.toml"
                .to_owned(),
        ),
        // The place of a package in a repository is no directory.
        InstallError::NotAPackage { path, .. } if !path.is_absolute() => Some(
            "the vibe.toml of a package has `[package]`; name the directory that has one with \
             `subdir`"
                .to_owned(),
        ),
        InstallError::NotAPackage { .. } | InstallError::NotAPackageDirectory { .. } => {
            Some(NO_PACKAGE.to_owned())
        }
        InstallError::NoPackageManifest { path } => {
            let directory = path.to_string_lossy();
            let command = Paste::default().line(&["init", "--package", &directory]);
            Some(format!("make it a package: {command}"))
        }
        InstallError::OtherPackage { .. } => {
            Some("correct the requirement, or the `[package]` of that vibe.toml".to_owned())
        }
        InstallError::PublishedPath { id, dependency, .. } => Some(format!(
            "publish a version of {id} that requires {dependency} by a version constraint"
        )),
        InstallError::GitProgram { .. } => None,
        InstallError::CloneGuard { .. } => Some(
            "commit and push it elsewhere, or move it away; to lose it, run the same command with \
             `--force`"
                .to_owned(),
        ),
        InstallError::InPlaceNeedsGit { .. } | InstallError::InPlaceSubdir { .. } => {
            Some("write `materialization = \"copy\"` in the package's vibe.toml".to_owned())
        }
        InstallError::Fetch { source, .. } if is_absence(source) => Some(REGISTRY.to_owned()),
        InstallError::Fetch { source, .. } if fetch_code(source) == INTEGRITY => {
            Some("a published version never changes: restore its files in the registry".to_owned())
        }
        InstallError::Fetch { source, .. } => fetch_hint(source).map(str::to_owned),
        InstallError::Registry { name, .. } => Some(format!(
            "correct the `url` of the registry `{}` in vibe.toml, or mend what is there",
            escape(name)
        )),
        _ => package_hint(error, paste),
    }
}

/// What helps where a package that was named is not there so.
fn package_hint(error: &InstallError, paste: &Paste) -> Option<String> {
    match error {
        InstallError::NotInstalled { id, installed } => Some(
            did_you_mean(id, installed)
                .or_else(|| relatives(id, installed))
                .unwrap_or_else(|| format!("see what is installed: {}", paste.line(&["list"]))),
        ),
        InstallError::NotRequired {
            id,
            elsewhere,
            roots,
            ..
        } => Some(not_required_hint(id, elsewhere, roots, paste)),
        InstallError::NoSuchPackage { id, known } => {
            let meant = did_you_mean(id, known).or_else(|| relatives(id, known));
            Some(meant.unwrap_or_else(|| {
                "no `[[registry]]` in vibe.toml has it, and vibe.lock has it neither".to_owned()
            }))
        }
        InstallError::NoSuchVersion { id, .. } => Some(format!(
            "see the versions that there are: {}",
            paste.line(&["show", id.as_str()])
        )),
        _ => None,
    }
}

fn git_hint(error: &InstallError, paste: &Paste) -> Option<String> {
    match error {
        InstallError::GitUrl {
            source: GitUrlError::Plain { host, .. },
            ..
        }
        | InstallError::RegistryUrl {
            source: GitUrlError::Plain { host, .. },
            ..
        } => Some(format!(
            "use https or ssh; or, if you trust the way to that host, add `{host}` to \
             `insecure-hosts` in `[git]` of your config.toml"
        )),
        InstallError::NoPackageInRepository { .. } => Some(
            "a package has a vibe.toml at its root; name the directory that has one with `subdir`"
                .to_owned(),
        ),
        InstallError::SpecIsNoPackage { .. } => Some(
            "a package has a vibe.toml at its root; one in a directory of the repository is \
             required with `subdir` in vibe.toml"
                .to_owned(),
        ),
        InstallError::NoCacheFolder => {
            Some("set HOME, or VIBE_PKG_HOME to an absolute path".to_owned())
        }
        InstallError::Git {
            id: Some(id),
            source,
        } if matches!(**source, GitError::VanishedCommit { .. }) => Some(format!(
            "take what is there now: {}",
            paste.line(&["update", id.as_str()])
        )),
        InstallError::Git { source, .. } if matches!(**source, GitError::Cache { .. }) => Some(
            "make that a place that you may write, or name another one with VIBE_PKG_HOME"
                .to_owned(),
        ),
        InstallError::Git { source, .. } => token_hint(source),
        InstallError::EmptyRepository { .. } => {
            Some("push a branch or a tag to it first".to_owned())
        }
        InstallError::NoVersionTags { .. } => Some(
            "tag a version there, as `v1.0.0`, or require a `tag`, `branch` or `rev` in its place"
                .to_owned(),
        ),
        InstallError::LocalRepository { id, .. } => Some(format!(
            "publish a version of {id} that names a repository others can reach; one that is \
             itself on this machine may name an absolute path"
        )),
        _ => None,
    }
}

/// How a package goes that only others require; `roots` bring it.
fn registry_hint(name: &str, known: &[String]) -> String {
    match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!(
            "add a `[[registry]]` with the name `{}` to the project's vibe.toml, or take the name \
             out",
            escape(name)
        ),
    }
}

fn not_required_hint(
    id: &PackageId,
    elsewhere: &[PathBuf],
    roots: &[PackageId],
    paste: &Paste,
) -> String {
    if let Some(there) = elsewhere.first() {
        let command = Paste::new(Some(there)).line(&["uninstall", id.as_str()]);
        return format!("take it out there: {command}");
    }
    if roots.is_empty() {
        let command = paste.line(&["install"]);
        return format!("an install removes what nothing needs: {command}");
    }
    let words = std::iter::once("uninstall").chain(roots.iter().map(PackageId::as_str));
    let words: Vec<&str> = words.collect();
    format!("it goes with what brings it: {}", paste.line(&words))
}

fn publishing_hints(error: &PublishingError) -> Vec<String> {
    match error {
        PublishingError::UnknownRegistry { name, known, .. } => {
            let near = nearest(name, known.iter().map(String::as_str));
            vec![match (near, known.is_empty()) {
                (Some(near), _) => format!("did you mean `{near}`?"),
                (None, true) => {
                    "add a `[[registry]]` with that name and its `url` to the vibe.toml \
                                 of the package"
                        .to_owned()
                }
                (None, false) => format!("these are named: {}", known.join(", ")),
            }]
        }
        PublishingError::Forbidden { allowed, .. } => vec![match allowed.is_empty() {
            true => "write `publish = true` into its vibe.toml if it is meant to be".to_owned(),
            false => format!("it may go to: {}", allowed.join(", ")),
        }],
        PublishingError::GitRegistry {
            version,
            repository,
            directory,
            ..
        } => git_publication_hints(&format!("v{version}"), repository.as_deref(), directory),
        PublishingError::InPackage { .. } => vec![
            "each version would ship the versions before it: keep the registry beside the package"
                .to_owned(),
        ],
        PublishingError::CheckFailed { directory, .. } => {
            let directory = directory.to_string_lossy();
            let command = Paste::default().line(&["check", &directory]);
            vec![format!("mend them; to see all that is found: {command}")]
        }
        PublishingError::Registry {
            directory, source, ..
        } => publish_hint(directory, source).into_iter().collect(),
    }
}

/// The commands of git that publish the committed state of `directory` as `tag`.
fn git_publication_hints(tag: &str, repository: Option<&str>, directory: &Path) -> Vec<String> {
    let directory = directory.to_string_lossy();
    let remote = repository.unwrap_or("origin");
    let line = |words: &[&str]| {
        let words = ["git", "-C", &directory]
            .into_iter()
            .chain(words.iter().copied());
        words.map(shell_quote).collect::<Vec<_>>().join(" ")
    };
    vec![
        format!(
            "commit what is to be published, then: {}",
            line(&["tag", tag])
        ),
        format!("and: {}", line(&["push", remote, "HEAD", tag])),
    ]
}

fn publish_hint(directory: &Path, error: &PublishError) -> Option<String> {
    let place = directory.to_string_lossy();
    match error {
        PublishError::NoRegistry(error) if error.is_not_found() => Some(format!(
            "correct the `url` of the registry in vibe.toml, or make the directory: mkdir -p {}",
            shell_quote(&place)
        )),
        PublishError::NoRegistry(_) => Some(REGISTRY.to_owned()),
        PublishError::OtherContent { .. } => Some(
            "a published version never changes: raise `version` in vibe.toml, and publish that"
                .to_owned(),
        ),
        PublishError::Unsound(_) | PublishError::ReadBack(_) => Some(
            "restore the files of this version in the registry, or publish another version"
                .to_owned(),
        ),
        PublishError::Busy { .. } => Some(AGAIN.to_owned()),
        PublishError::Reading(_) => Some(
            "put a copy in place of a link to a directory, or change the rule of `.vibeignore` that \
             aims at it"
                .to_owned(),
        ),
        PublishError::Parent(_)
        | PublishError::Fs(_)
        | PublishError::Copy(_)
        | PublishError::Remove(_) => Some(format!(
            "make {} a directory that you may write",
            escape(&place)
        )),
        PublishError::Changed { .. } | PublishError::Source(_) | PublishError::Interrupted => None,
    }
}

fn store_hint(error: &InstallError) -> Option<String> {
    match error {
        InstallError::NoStore => {
            Some("name a directory of yours for it with VIBE_PKG_HOME".to_owned())
        }
        InstallError::StoreInProject { .. } => {
            Some("name another place for the store with VIBE_PKG_HOME".to_owned())
        }
        InstallError::StoreDamaged { id, .. } => Some(format!(
            "nothing of it was installed; make the source of {id} available, and run the command \
             again"
        )),
        // These say themselves what to do.
        InstallError::Store { source, .. } | InstallError::OpenStore { source, .. }
            if store_code(source) == INTEGRITY || speaks_for_itself(source) =>
        {
            None
        }
        InstallError::OpenStore { source, .. } if matches!(**source, StoreError::InUse { .. }) => {
            Some(IN_USE.to_owned())
        }
        InstallError::GitCacheInUse { .. } => Some(IN_USE.to_owned()),
        InstallError::GitCache { directory, .. } => Some(format!(
            "make {} a directory that you may write, or name another place with VIBE_PKG_HOME",
            escape(&directory.to_string_lossy())
        )),
        InstallError::Store { store, .. } | InstallError::OpenStore { store, .. } => Some(format!(
            "make {} a directory that you may write, or name another place with VIBE_PKG_HOME",
            escape(&store.to_string_lossy())
        )),
        _ => None,
    }
}

/// Whether the message of `error` holds what to do.
fn speaks_for_itself(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Busy { .. } | StoreError::NotAStore { .. } | StoreError::Obstructed { .. }
    )
}

/// How a host that asks for credentials gets some.
fn token_hint(error: &GitError) -> Option<String> {
    match error {
        GitError::AuthenticationRequired { host, .. }
        | GitError::CredentialsRefused { host, .. } => Some(format!(
            "a token for {host} can be given in the variable {}",
            vibe_install::token_variable(host)
        )),
        _ => None,
    }
}

/// What helps against a package that is refused.
fn fetch_hint(error: &FetchError) -> Option<&'static str> {
    match error {
        FetchError::Name(_)
        | FetchError::Tree(_)
        | FetchError::Special { .. }
        | FetchError::LongLink { .. }
        | FetchError::Link { .. } => {
            Some("the package has to change: rename it there, or leave it out with `.vibeignore`")
        }
        FetchError::TooManyEntries { .. } => {
            Some("`package-entries` in `[limits]` of your config.toml allows more")
        }
        FetchError::FileTooLarge { .. } => {
            Some("`file-bytes` in `[limits]` of your config.toml allows more")
        }
        FetchError::PackageTooLarge { .. } => {
            Some("`package-bytes` in `[limits]` of your config.toml allows more")
        }
        _ => None,
    }
}

fn run_hint(error: &InstallError, paste: &Paste) -> Option<String> {
    match error {
        InstallError::Selection { source, .. } if source.is_missing_interpreter() => Some(format!(
            "to install without running install hooks: {}",
            paste.line(&["install", "--no-hooks"])
        )),
        InstallError::Selection { id, .. } | InstallError::Script { id, .. } => Some(format!(
            "it has to be corrected in the package; until then, require another version of {id}"
        )),
        InstallError::PreInstall { hook, .. } => Some(hook_hint(hook, paste)),
        InstallError::PathTooLong { .. } => {
            Some("move the project to a directory with a shorter path".to_owned())
        }
        InstallError::Record {
            source: RecordError::Newer { .. },
            ..
        } => Some(NEWER.to_owned()),
        InstallError::Record { slot, .. } | InstallError::RecordType { slot } => Some(format!(
            "restore the slot: {}",
            paste.line(&["verify", "--repair", slot.package().as_str()])
        )),
        InstallError::NotPlaced { .. } => {
            Some(format!("install it first: {}", paste.line(&["install"])))
        }
        InstallError::OtherContent { .. } => Some(format!(
            "bring it up to date, which runs its install hooks: {}",
            paste.line(&["install"])
        )),
        InstallError::Busy { .. } => Some("to wait for it, leave out --no-wait".to_owned()),
        InstallError::Reentrant { .. } => {
            Some("an install hook may only look, as with `vibe list`".to_owned())
        }
        InstallError::ChangedMeanwhile { .. } => Some(AGAIN.to_owned()),
        InstallError::Interrupted => Some(format!("to finish what was begun, {AGAIN}")),
        _ => None,
    }
}

/// What the user can do about a hook that failed.
pub(crate) fn hook_hint(hook: &HookRecord, paste: &Paste) -> String {
    let id = hook.package.as_str();
    match hook.has_other_script() {
        true => format!(
            "put its published files back, and run its install hooks: {}",
            paste.line(&["reinstall", "--force", id])
        ),
        false => format!(
            "see its whole output: {}",
            paste.line(&["hooks", "log", id])
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::{hook, id, slot};
    use vibe_core::hook::Phase;
    use vibe_core::{Tree, Version};
    use vibe_install::{Damage, EntryKind, FsError, HookOutcome, Trouble, Unsolved};

    fn told(error: &InstallError) -> UserError {
        UserError::of(error, &Paste::default())
    }

    /// What a user meets of `error`: kind, exit code, and a part of some hint ("" for no hint).
    fn check(error: &InstallError, kind: &str, exit_code: u8, hint: &str) {
        let found = told(error);
        assert_eq!(
            (found.kind, found.exit_code),
            (kind, exit_code),
            "{found:?}"
        );
        assert_eq!(found.message, error.to_string());
        match hint {
            "" => assert_eq!(found.hints, [""; 0]),
            _ => assert!(
                found.hints.iter().any(|h| h.contains(hint)),
                "{:?}",
                found.hints
            ),
        }
    }

    fn version() -> Version {
        "1.0.0".parse().unwrap()
    }

    fn lock_path() -> PathBuf {
        PathBuf::from("/p/vibe.lock")
    }

    #[test]
    fn what_the_project_lacks_is_a_usage_error() {
        let path = PathBuf::from("/a b");
        check(
            &InstallError::NoProject {
                start: path.clone(),
            },
            "no-project",
            2,
            "vibe init",
        );
        let package = InstallError::PackageIsNoProject {
            path: path.clone(),
            workspace: None,
        };
        check(
            &package,
            "package-is-no-project",
            2,
            "vibe install 'path:/a b'",
        );
        let outside = InstallError::PackageIsNoProject {
            path: path.clone(),
            workspace: Some("/".into()),
        };
        check(&outside, "package-is-no-project", 2, "`members`");
        let directory = InstallError::NotAPackageDirectory { path: path.clone() };
        check(&directory, "not-a-package", 2, "has `[package]`");
        let bare = InstallError::NoPackageManifest { path: path.clone() };
        check(&bare, "not-a-package", 2, "vibe init --package '/a b'");
        let source = InstallError::NotAPackage {
            id: id("org.example/a"),
            path: path.clone(),
        };
        check(&source, "not-a-package", 2, "has `[package]`");
        let name = InstallError::NoName {
            directory: "_".to_owned(),
        };
        check(&name, "no-name", 2, "letters");
        check(
            &InstallError::AlreadyThere { path },
            "already-there",
            1,
            "nothing was written",
        );
    }

    #[test]
    fn hints_mean_the_project_of_this_run() {
        let start = PathBuf::from("/p q");
        let paste = Paste::new(Some(&start));
        let found = UserError::of(&InstallError::NoProject { start }, &paste);
        assert_eq!(
            found.hints,
            ["start a project here: vibe --project '/p q' init"]
        );
    }

    #[test]
    fn a_malformed_text_is_shown_at_its_place() {
        let diagnostic = Diagnostic::at("a\nbad\n", 3, "wrong").hint("mend it");
        let path = PathBuf::from("/p/vibe.toml");
        let manifest = InstallError::Manifest {
            path: path.clone(),
            diagnostic: Box::new(diagnostic.clone()),
        };
        check(&manifest, "manifest", 2, "mend it");
        let place = told(&manifest).place.unwrap();
        assert_eq!((place.path, place.label.as_str()), (path, "wrong"));
        assert_eq!(place.position, Some(Position { line: 2, column: 2 }));
        assert!(told(&manifest).causes.is_empty());

        let malformed = LockError::Malformed(diagnostic.clone());
        let lock = InstallError::LockText {
            path: lock_path(),
            diagnostic: malformed,
        };
        check(&lock, "lock", 3, "restore vibe.lock");
        assert_eq!(told(&lock).hints[0], "mend it");
        let newer = InstallError::LockText {
            path: lock_path(),
            diagnostic: LockError::Newer { found: 9 },
        };
        check(&newer, "lock", 3, NEWER);
        assert_eq!(told(&newer).causes.len(), 1);

        let slot = slot("org.example/a", "1.0.0");
        let newer = InstallError::Record {
            slot: slot.clone(),
            source: RecordError::Newer { found: 9 },
        };
        check(&newer, "record", 3, NEWER);
        let record = InstallError::Record {
            slot,
            source: RecordError::Malformed(diagnostic),
        };
        check(&record, "record", 3, "vibe verify --repair org.example/a");
        let place = told(&record).place.unwrap();
        assert!(
            place.path.ends_with(".vibe-slot.toml"),
            "{}",
            place.path.display()
        );
    }

    #[test]
    fn what_is_no_file_or_too_large_is_told_from_a_failed_call() {
        let wrong = || {
            let path = PathBuf::from("/p/x");
            let large = ReadError::TooLarge {
                path: path.clone(),
                bytes: 9,
                limit_bytes: 8,
            };
            let kind = EntryKind::Symlink;
            [ReadError::NotAFile { path, kind }, large]
        };
        let failed = || {
            ReadError::Fs(FsError::new(
                "read",
                Path::new("/p/x"),
                ErrorKind::Other.into(),
            ))
        };
        for (source, hint) in wrong().into_iter().zip(["regular file", "by hand"]) {
            check(
                &InstallError::ReadManifest { source },
                "read-manifest",
                2,
                hint,
            );
        }
        for source in wrong() {
            check(
                &InstallError::ReadLock { source },
                "read-lock",
                3,
                "restore vibe.lock",
            );
        }
        let source = failed();
        check(
            &InstallError::ReadManifest { source },
            "read-manifest",
            1,
            "",
        );
        let source = failed();
        check(&InstallError::ReadLock { source }, "read-lock", 1, "");
    }

    #[test]
    fn a_lock_that_does_not_fit_says_how_to_make_it_fit() {
        check(
            &InstallError::NoLock { path: lock_path() },
            "no-lock",
            1,
            "vibe install",
        );
        let problems = Vec::new();
        check(
            &InstallError::LockOutOfDate { problems },
            "lock-out-of-date",
            7,
            "vibe install",
        );
        let addition = InstallError::LockedAddition {
            id: id("org.example/a"),
        };
        let hint = "vibe install org.example/a";
        check(&addition, "locked-addition", 7, hint);
        let problems = Vec::new();
        check(
            &InstallError::LockIntegrity { problems },
            "lock-integrity",
            3,
            "vibe.toml states are wanted, run: vibe install",
        );
        let tree = Tree::new(Vec::new()).unwrap().id();
        let id = id("org.example/a");
        let other = InstallError::OtherTree {
            id: id.clone(),
            version: version(),
            locked: tree,
            found: tree,
        };
        check(&other, "other-tree", 3, "the entry of org.example/a");
        let scripts = InstallError::OtherScripts {
            id,
            version: version(),
        };
        check(&scripts, "other-scripts", 3, "the entry of org.example/a");
    }

    #[test]
    fn what_is_wrong_with_a_workspace_has_a_remedy() {
        let path = || PathBuf::from("/a b");
        let told = |error: WorkspaceError, hint: &str| {
            check(&InstallError::Workspace(error), "workspace", 2, hint);
        };
        told(
            WorkspaceError::Foreign {
                path: path(),
                directory: path(),
            },
            "your own",
        );
        told(
            WorkspaceError::NoSuchMember {
                path: path(),
                member: "packages/x".to_owned(),
            },
            "`packages/*`",
        );
        let source = vibe_core::RelPath::new("a:b").unwrap_err();
        told(WorkspaceError::MemberPath { source }, "rename");
        told(
            WorkspaceError::TooLarge {
                root: path(),
                what: "more than 3 members".to_owned(),
            },
            "more closely",
        );
        told(
            WorkspaceError::PublishedVariable {
                id: id("org.x/a"),
                version: version(),
                dependency: id("org.x/b"),
            },
            "on org.x/b itself",
        );
    }

    #[test]
    fn a_source_that_does_not_serve_says_what_to_correct() {
        let a = || id("org.example/a");
        let path = || PathBuf::from("/p/vibe.toml");
        let (first, second) = ("path a".to_owned(), "path b".to_owned());
        let registry = InstallError::NoSuchRegistry {
            path: path(),
            id: a(),
            name: "acme".to_owned(),
            known: vec!["other".to_owned()],
        };
        check(&registry, "no-such-registry", 2, "the name `acme`");
        let misspelt = InstallError::NoSuchRegistry {
            path: path(),
            id: a(),
            name: "amce".to_owned(),
            known: vec!["other".to_owned(), "acme".to_owned()],
        };
        check(&misspelt, "no-such-registry", 2, "did you mean `acme`?");
        let absent = InstallError::NotInRegistries {
            id: a(),
            version: version(),
        };
        check(&absent, "not-in-registries", 1, "vibe install");
        check(
            &InstallError::TwoSources {
                id: a(),
                first,
                second,
            },
            "two-sources",
            2,
            "keep one",
        );
        let (expected, found) = ("a 1".to_owned(), "b 1".to_owned());
        let other = InstallError::OtherPackage {
            path: path(),
            expected,
            found,
        };
        check(&other, "other-package", 2, "[package]");
        let published = InstallError::PublishedPath {
            id: a(),
            version: version(),
            dependency: id("org.x/b"),
        };
        check(
            &published,
            "published-path",
            2,
            "requires org.x/b by a version",
        );
        let in_place = InstallError::InPlaceNeedsGit {
            id: a(),
            path: path(),
        };
        check(&in_place, "in-place-needs-git", 2, "\"copy\"");
        let what = "the foreign dependency org.x/b".to_owned();
        check(
            &InstallError::NotYet { what, path: path() },
            "not-supported",
            1,
            "git repositories and paths work",
        );
        let spec = InstallError::SpecIsNoPackage {
            repository: "https://h/x".to_owned(),
            commit: "0".repeat(40),
        };
        check(&spec, "not-a-package", 2, "`subdir`");
    }

    #[test]
    fn what_another_member_requires_is_taken_out_there() {
        let error = InstallError::NotRequired {
            manifest: vibe_core::RelPath::new("vibe.toml").unwrap(),
            id: id("org.example/a"),
            elsewhere: vec![PathBuf::from("/w/m n")],
            requirers: Vec::new(),
            roots: Vec::new(),
        };
        let command = "vibe --project '/w/m n' uninstall org.example/a";
        check(&error, "not-required", 1, command);
    }

    #[test]
    fn what_only_others_require_goes_with_them() {
        let error = |roots: &[&str]| InstallError::NotRequired {
            manifest: vibe_core::RelPath::new("vibe.toml").unwrap(),
            id: id("org.example/a"),
            elsewhere: Vec::new(),
            requirers: vec![id("org.example/b")],
            roots: roots.iter().map(|root| id(root)).collect(),
        };
        let both = error(&["org.example/c", "org.example/d"]);
        let command = "vibe uninstall org.example/c org.example/d";
        check(&both, "not-required", 1, command);
        check(&error(&[]), "not-required", 1, "vibe install");
    }

    #[test]
    fn a_name_that_is_nearly_right_is_suggested() {
        let near = |text| InstallError::NotInstalled {
            id: id(text),
            installed: vec![id("org.example/lint"), id("org.example/format")],
        };
        check(
            &near("org.example/lnit"),
            "not-installed",
            1,
            "did you mean org.example/lint?",
        );
        check(
            &near("org.exmaple/lint"),
            "not-installed",
            1,
            "did you mean org.example/lint?",
        );
        let of_name = "packages of that name in other groups: org.example/lint";
        check(&near("com.other/lint"), "not-installed", 1, of_name);
        let of_group = "the group org.example has: format, lint";
        check(&near("org.example/nono"), "not-installed", 1, of_group);
        check(&near("net.other/nono"), "not-installed", 1, "vibe list");
    }

    #[test]
    fn a_package_that_is_looked_at_and_is_not_there_is_told() {
        let looked_at = |text| InstallError::NoSuchPackage {
            id: id(text),
            known: vec![id("org.example/lint")],
        };
        let near = looked_at("org.example/lnit");
        let hint = "did you mean org.example/lint?";
        check(&near, "no-such-package", 1, hint);
        let relative = looked_at("com.other/lint");
        let hint = "packages of that name in other groups: org.example/lint";
        check(&relative, "no-such-package", 1, hint);
        let far = looked_at("com.other/x");
        check(&far, "no-such-package", 1, "no `[[registry]]`");
        let no_such_version = InstallError::NoSuchVersion {
            id: id("org.example/lint"),
            constraint: "^3".parse().unwrap(),
            newest: version(),
        };
        let hint = "vibe show org.example/lint";
        check(&no_such_version, "no-such-version", 1, hint);
    }

    #[test]
    fn requirements_without_a_solution_say_what_cannot_be_had_first() {
        let error = InstallError::Resolve {
            error: Box::new(Unsolved {
                headline: "there is no package org.example/lnit".to_owned(),
                facts: vec!["a requires it".to_owned()],
                trouble: Trouble::Unknown {
                    package: id("org.example/lnit"),
                },
            }),
            known: vec![id("org.example/lint")],
        };
        check(&error, "resolve", 1, "did you mean org.example/lint?");
        assert_eq!(told(&error).message, "there is no package org.example/lnit");
        assert_eq!(told(&error).causes, ["a requires it"]);
    }

    #[test]
    fn damaged_packages_and_slots_are_errors_of_integrity() {
        let fetch = |source| InstallError::Fetch {
            id: id("org.example/a"),
            version: version(),
            source: Box::new(source),
        };
        let list = || FetchError::TreeFile {
            path: PathBuf::from("/r/v1.tree"),
            source: None,
        };
        let large = || FetchError::TooManyEntries {
            entries: 3,
            limit: 2,
        };
        check(&fetch(list()), "fetch", 3, "restore its files");
        check(&fetch(large()), "fetch", 1, "`package-entries`");
        assert_eq!(told(&fetch(large())).causes, [large().to_string()]);
        let registry = |source| InstallError::Registry {
            name: "main".to_owned(),
            source,
        };
        check(&registry(list()), "registry", 3, "registry `main`");
        check(&registry(large()), "registry", 1, "registry `main`");
        let gone = FsError::new("find", Path::new("/r"), ErrorKind::NotFound.into());
        check(&fetch(gone.into()), "fetch", 1, "`url`");
        let closed = FsError::new("read", Path::new("/r"), ErrorKind::PermissionDenied.into());
        check(&fetch(closed.into()), "fetch", 1, "");
        let (path, kind) = (PathBuf::from("/r"), EntryKind::File);
        let file = FetchError::NotADirectory { path, kind };
        check(&fetch(file), "fetch", 1, "`url`");
        let slot = slot("org.example/a", "1.0.0");
        let tree = Tree::new(Vec::new()).unwrap().id();
        let other = SlotError::OtherTree {
            slot: slot.clone().into(),
            planned: tree,
            found: tree,
        };
        check(&InstallError::Slot(other), "slot", 3, "");
        check(
            &InstallError::Slot(SlotError::Exists {
                slot: slot.clone().into(),
            }),
            "slot",
            1,
            "",
        );
        check(
            &InstallError::NotPlaced { slot: slot.clone() },
            "not-placed",
            1,
            "vibe install",
        );
        check(
            &InstallError::OtherContent { slot: slot.clone() },
            "other-content",
            1,
            "vibe install",
        );
        let record = InstallError::RecordType { slot };
        check(&record, "record", 3, "vibe verify --repair org.example/a");
    }

    #[test]
    fn what_keeps_a_cache_from_being_emptied_says_what_to_do() {
        let (store, directory) = (PathBuf::from("/s"), PathBuf::from("/g"));
        let in_store = |source| InstallError::OpenStore {
            store: store.clone(),
            source: Box::new(source),
        };
        let root = store.clone();
        check(&in_store(StoreError::InUse { root }), "in-use", 1, "ended");
        let path = PathBuf::from("/s/notes");
        let strange = in_store(StoreError::NotAStore { path });
        check(&strange, "store", 1, "");
        assert!(told(&strange).causes[0].contains("move it away"));
        let in_use = InstallError::GitCacheInUse {
            directory: directory.clone(),
        };
        check(&in_use, "in-use", 1, "ended");
        let denied = FsError::new("open", &directory, ErrorKind::PermissionDenied.into());
        let source = Box::new(denied.into());
        let closed = InstallError::GitCache { directory, source };
        check(
            &closed,
            "git-cache",
            1,
            "make /g a directory that you may write",
        );
    }

    #[test]
    fn a_full_disk_is_no_matter_of_permissions() {
        for kind in [ErrorKind::StorageFull, ErrorKind::QuotaExceeded] {
            let directory = PathBuf::from("/g");
            let full = || FsError::new("write", &directory, kind.into());
            let source = Box::new(full().into());
            let cache = InstallError::GitCache {
                directory: directory.clone(),
                source,
            };
            let store = InstallError::OpenStore {
                store: directory.clone(),
                source: Box::new(StoreError::Fs(full())),
            };
            let slot = InstallError::from(full());
            for error in [cache, store, slot] {
                let hints = told(&error).hints;
                assert_eq!(
                    hints,
                    ["make room on that file system, then run the same command again"]
                );
            }
        }
    }

    #[test]
    fn a_store_that_does_not_serve_says_where_it_is_and_how_to_move_it() {
        let store = || PathBuf::from("/data/store");
        let hint = "VIBE_PKG_HOME";
        check(&InstallError::NoStore, "no-store", FAILED, hint);
        let error = InstallError::StoreInProject {
            store: store(),
            project: "/data".into(),
        };
        check(&error, "store-in-project", USAGE, hint);
        let denied = || {
            let denied = ErrorKind::PermissionDenied.into();
            Box::new(StoreError::Fs(FsError::new(
                "write",
                Path::new("/d"),
                denied,
            )))
        };
        let error = InstallError::Store {
            id: id("org.example/lint"),
            version: version(),
            store: store(),
            source: denied(),
        };
        check(&error, "store", FAILED, "make /data/store a directory");
        let error = InstallError::OpenStore {
            store: store(),
            source: denied(),
        };
        check(&error, "store", FAILED, hint);
        let error = InstallError::StoreDamaged {
            id: id("org.example/lint"),
            version: version(),
            damage: Damage::Files(Vec::new()),
            source: Box::new(error),
        };
        check(&error, "store-damaged", INTEGRITY, "org.example/lint");
    }

    #[test]
    fn what_stops_a_run_says_how_to_go_on() {
        check(&InstallError::Interrupted, "interrupted", 130, AGAIN);
        let path = PathBuf::from("/p/vibe.toml");
        let changed = InstallError::ChangedMeanwhile { path };
        check(&changed, "changed-meanwhile", 1, AGAIN);
        let command = "vibe install".to_owned();
        check(
            &InstallError::Busy { pid: 7, command },
            "busy",
            1,
            "--no-wait",
        );
        let (phase, command) = ("pre-install".to_owned(), "install".to_owned());
        check(
            &InstallError::Reentrant { phase, command },
            "reentrant",
            1,
            "vibe list",
        );
        let slot = slot("org.example/a", "1.0.0");
        let long = InstallError::PathTooLong {
            slot,
            path: "x".to_owned(),
            bytes: 9,
            limit: 8,
        };
        check(&long, "path-too-long", 1, "shorter");
    }

    #[test]
    fn a_failed_pre_install_comes_with_its_record() {
        let record = hook("org.example/a", Phase::PreInstall, HookOutcome::Failed);
        let error = InstallError::PreInstall {
            hook: Box::new(record.clone()),
            not_undone: vec!["x stays".to_owned()],
            variables_not_passed: true,
        };
        check(&error, "pre-install", 4, "vibe hooks log org.example/a");
        let found = told(&error);
        assert_eq!(
            found.causes,
            ["vibe.toml and vibe.lock were not changed", "x stays"]
        );
        let hook = found.hook.unwrap();
        assert_eq!((hook.record, hook.variables_not_passed), (record, true));
    }

    #[test]
    fn a_hook_whose_script_was_changed_has_no_output_to_see() {
        let mut record = hook("org.example/a", Phase::PostInstall, HookOutcome::Failed);
        let hint = hook_hint(&record, &Paste::default());
        assert_eq!(hint, "see its whole output: vibe hooks log org.example/a");
        record.log = None;
        let hint = hook_hint(&record, &Paste::default());
        assert!(
            hint.ends_with(": vibe reinstall --force org.example/a"),
            "{hint}"
        );
    }
}
