//! What kind of error each is, for programs, and how the program ends with it.

use vibe_install::{
    EditError, FetchError, InstallError, PublishError, PublishingError, ReadError, SlotError,
    StoreError,
};

use crate::exit_code::{FAILED, INTEGRITY, INTERRUPTED, OUT_OF_DATE, PRE_INSTALL, USAGE};

/// The kind and the exit code of an error.
#[expect(
    clippy::too_many_lines,
    reason = "a line for each way to fail, so that none is forgotten"
)]
pub(super) fn classify(error: &InstallError) -> (&'static str, u8) {
    match error {
        InstallError::NoProject { .. } | InstallError::NoStart { .. } => ("no-project", USAGE),
        InstallError::ForeignProject { .. } => ("foreign-project", USAGE),
        InstallError::PackageIsNoProject { .. } => ("package-is-no-project", USAGE),
        InstallError::NoDirectory { .. } => ("no-directory", USAGE),
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
        InstallError::AskedTwice { .. } => ("asked-twice", USAGE),
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
        InstallError::NoSuchHook { .. } => ("no-such-hook", FAILED),
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

pub(super) fn fetch_code(error: &FetchError) -> u8 {
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

fn open_store_kind(error: &StoreError) -> (&'static str, u8) {
    match error {
        StoreError::InUse { .. } => ("in-use", FAILED),
        error => ("store", store_code(error)),
    }
}

pub(super) fn store_code(error: &StoreError) -> u8 {
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user_error::testing::*;
    use std::io::ErrorKind;
    use std::path::{Path, PathBuf};
    use vibe_core::Tree;
    use vibe_install::{EntryKind, FsError};

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
        check(&fetch(closed.into()), "fetch", 1, "`ls -ld`");
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
}
