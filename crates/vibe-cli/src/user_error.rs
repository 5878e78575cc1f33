//! Every error as the user meets it: a kind, what failed, why, what to do, and the exit code.

mod git;
mod kind;
mod lock;
mod package;
mod project;
mod projection;
mod publishing;
mod run;
mod source;
mod store;
mod system;
#[cfg(test)]
mod testing;
mod unsolved;

pub(crate) use run::hook_hint;

use std::error::Error;
use std::path::{Path, PathBuf};

use vibe_core::formats::diagnostic::{Diagnostic, Position};
use vibe_core::formats::lock::LockError;
use vibe_core::formats::projections::ProjectionsError;
use vibe_core::formats::record::RecordError;
use vibe_install::{Guard, HookRecord, InstallError, PublishingError};

use crate::paste::Paste;

/// The hint after everything that only bad luck explains.
const AGAIN: &str = "run the same command again";

/// The hint where a file has a form that this version does not know.
const NEWER: &str = "use a vibe that is as new as the one that wrote it; the file is left as it is";

/// The hint where a registry is not there, or not as a registry is.
const REGISTRY: &str = "look at the `url` of the registry in vibe.toml, and at what lies there";

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
        let (kind, exit_code) = kind::classify(error);
        let mut found = Self::new(kind, exit_code, error.to_string());
        found.hints = match system::is_disk_full(error) {
            true => vec![format!("make room on that file system, then {AGAIN}")],
            false => hints(error, paste),
        };
        if found.hints.is_empty() {
            found.hints.extend(system::hint(error));
        }
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
        InstallError::Projections {
            source: ProjectionsError::Malformed(diagnostic),
        } => Some((PathBuf::from("vibedeps/.projections.toml"), diagnostic)),
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
        | InstallError::ForeignProject { .. }
        | InstallError::NoDirectory { .. }
        | InstallError::PackageIsNoProject { .. }
        | InstallError::AlreadyThere { .. }
        | InstallError::NoName { .. }
        | InstallError::ReadManifest { .. }
        | InstallError::NotYet { .. } => project::hint(error, paste),
        InstallError::Workspace(error) => Some(project::workspace_hint(error)),
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
        | InstallError::OtherScripts { .. } => lock::hint(error, paste),
        InstallError::NotInstalled { .. }
        | InstallError::NotRequired { .. }
        | InstallError::NoSuchPackage { .. }
        | InstallError::NoSuchVersion { .. } => package::hint(error, paste),
        InstallError::NoSuchRegistry { .. }
        | InstallError::NotInRegistries { .. }
        | InstallError::PathSource { .. }
        | InstallError::TwoSources { .. }
        | InstallError::AskedTwice { .. }
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
        | InstallError::Registry { .. } => source::hint(error, paste),
        InstallError::Resolve { error, known } => return unsolved::hints(error, known, paste),
        InstallError::RegistryUrl { .. }
        | InstallError::GitUrl { .. }
        | InstallError::Git { .. }
        | InstallError::NoCacheFolder
        | InstallError::NoPackageInRepository { .. }
        | InstallError::SpecIsNoPackage { .. }
        | InstallError::EmptyRepository { .. }
        | InstallError::NoVersionTags { .. }
        | InstallError::LocalRepository { .. } => git::hint(error, paste),
        InstallError::NoStore
        | InstallError::Store { .. }
        | InstallError::OpenStore { .. }
        | InstallError::GitCache { .. }
        | InstallError::GitCacheInUse { .. }
        | InstallError::StoreDamaged { .. }
        | InstallError::StoreInProject { .. } => store::hint(error),
        InstallError::Publishing(error) => return publishing::hints(error),
        InstallError::Selection { .. }
        | InstallError::Script { .. }
        | InstallError::NoSuchHook { .. }
        | InstallError::PreInstall { .. }
        | InstallError::PathTooLong { .. }
        | InstallError::Record { .. }
        | InstallError::RecordType { .. }
        | InstallError::NotPlaced { .. }
        | InstallError::OtherContent { .. }
        | InstallError::Busy { .. }
        | InstallError::Reentrant { .. }
        | InstallError::ChangedMeanwhile { .. }
        | InstallError::Interrupted => run::hint(error, paste),
        InstallError::ReadProjections { .. }
        | InstallError::Projections { .. }
        | InstallError::BootText { .. }
        | InstallError::ProjectedPath { .. }
        | InstallError::Project { .. } => projection::hint(error, paste),
        InstallError::Manifest { .. }
        | InstallError::ReadScript { .. }
        | InstallError::ReadEvidence { .. }
        | InstallError::Slot(_)
        | InstallError::Fs(_) => None,
    };
    hint.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user_error::testing::*;
    use std::io::ErrorKind;
    use vibe_install::{EntryKind, FsError, ReadError, StoreError, Trouble, Unsolved};

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
        for source in wrong() {
            let hint = "move it away: mv -- /p/x /p/x.mine";
            check(
                &InstallError::ReadProjections { source },
                "projections",
                3,
                hint,
            );
        }
        let source = failed();
        check(
            &InstallError::ReadProjections { source },
            "projections",
            1,
            "",
        );
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
    fn requirements_without_a_solution_say_what_cannot_be_had_first() {
        let error = InstallError::Resolve {
            error: Box::new(Unsolved {
                headline: "there is no package org.example/lnit".to_owned(),
                facts: vec!["a requires it".to_owned()],
                trouble: Trouble::Unknown {
                    package: id("org.example/lnit"),
                },
                passed_over: None,
            }),
            known: vec![id("org.example/lint")],
        };
        check(&error, "resolve", 1, "did you mean org.example/lint?");
        assert_eq!(told(&error).message, "there is no package org.example/lnit");
        assert_eq!(told(&error).causes, ["a requires it"]);
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
}
