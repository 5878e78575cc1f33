//! Values that tests render.

use std::path::PathBuf;

use vibe_core::hook::{HookReason, Phase};
use vibe_core::plan::{ProjectChange, ProjectEdit};
use vibe_core::{PackageId, RelPath, Sha256Digest, SlotName, Tree};
use vibe_install::{
    CheckReport, Finding, FindingKind, HookOutcome, HookRecord, PackageSummary, PublishOutcome,
    PublishReport,
};

/// The id `text`.
pub(crate) fn id(text: &str) -> PackageId {
    text.parse().unwrap()
}

/// The path `text`.
pub(crate) fn path(text: &str) -> RelPath {
    RelPath::new(text).unwrap()
}

/// The slot of `package` in `version`.
pub(crate) fn slot(package: &str, version: &str) -> SlotName {
    SlotName::new(&id(package), &version.parse().unwrap())
}

/// What a check of `org.example/a` found: nothing.
pub(crate) fn check_report() -> CheckReport {
    CheckReport {
        package: id("org.example/a"),
        version: "1.0.0".to_owned(),
        directory: PathBuf::from("/p/a"),
        files: 2,
        bytes: 3,
        tree: Some(Tree::default().id()),
        errors: 0,
        warnings: 0,
        findings: Vec::new(),
        notes: Vec::new(),
    }
}

/// What publishing `org.example/a` did.
pub(crate) fn publish_report() -> PublishReport {
    PublishReport {
        package: id("org.example/a"),
        version: "1.0.0".to_owned(),
        registry: "acme".to_owned(),
        url: "../registry".to_owned(),
        directory: PathBuf::from("/p/registry/org.example/a/v1.0.0"),
        files: 2,
        bytes: 3,
        tree: Tree::default().id(),
        outcome: PublishOutcome::Published,
        findings: Vec::new(),
    }
}

/// An install hook of version 1.0.0 of `package` that ended so.
pub(crate) fn hook(package: &str, phase: Phase, outcome: HookOutcome) -> HookRecord {
    HookRecord {
        package: id(package),
        slot: slot(package, "1.0.0"),
        phase,
        script: path("hooks/prepare.sh"),
        sha256: Sha256Digest::of(b"script"),
        reason: HookReason::Install,
        interpreter: None,
        started: Some("2026-01-02T03:04:05.678Z".to_owned()),
        duration_ms: Some(345),
        exit_code: Some(if outcome == HookOutcome::Failed { 3 } else { 0 }),
        signal: None,
        timed_out: false,
        left_running: false,
        log: Some("org.example.a.pre-install.log".to_owned()),
        outcome,
        remarks: Vec::new(),
        tail: String::new(),
    }
}

/// An installed package with two files and no install hooks.
pub(crate) fn package(text: &str, version: &str) -> PackageSummary {
    PackageSummary {
        id: id(text),
        version: version.to_owned(),
        source: "dir+../registry".to_owned(),
        overridden: false,
        slot: slot(text, version),
        tree: Some(Tree::new(Vec::new()).unwrap().id()),
        link_mode: "copy",
        files: Some(2),
        installed: true,
        phases: Vec::new(),
        bridge: false,
        upstream: None,
        dependencies: Vec::new(),
    }
}

/// A finding about `package`.
pub(crate) fn finding(package: &str, kind: FindingKind, message: &str) -> Finding {
    Finding {
        package: Some(id(package)),
        slot: None,
        path: None,
        kind,
        message: message.to_owned(),
    }
}

/// `text` without styles.
pub(crate) fn plain(text: &str) -> String {
    anstream::adapter::strip_str(text).to_string()
}

/// A file that a run starts.
pub(crate) fn edit(name: &str) -> ProjectEdit {
    ProjectEdit {
        path: path(name),
        change: ProjectChange::Create,
        may_change: false,
        before: None,
        after: Some(String::new()),
    }
}
