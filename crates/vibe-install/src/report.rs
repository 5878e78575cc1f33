//! What a command found or did, for whoever shows it.

use std::path::PathBuf;

use serde::Serialize;
use vibe_core::formats::manifest::MANIFEST_NAME;
use vibe_core::formats::state::LinkMode;
use vibe_core::hook::{Phase, PhaseState};
use vibe_core::plan::{PlacePlan, ProjectEdit, Step};
use vibe_core::{PackageId, RelPath, Sha256Digest, SlotName, TreeId};

use crate::moves::PackageMove;
use crate::run_record::HookRecord;

/// What `install`, `reinstall` and `verify --repair` did, or would do.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RunReport {
    /// Nothing had to be done, and nothing was written.
    pub up_to_date: bool,
    /// Only the plan was asked for.
    pub dry_run: bool,
    /// Everything the run would do, in order.
    pub plan: PlacePlan,
    /// What was done of the plan, in order.
    pub done: Vec<Step>,
    /// The packages that the project has now, by id.
    pub packages: Vec<PackageSummary>,
    /// What became of each hook that was due.
    pub hooks: Vec<HookRecord>,
    /// What an update moves.
    pub moves: Vec<PackageMove>,
    /// Who holds install hooks back in this run, in words, if anybody does.
    #[serde(skip)]
    pub held_by: Option<&'static str>,
    /// What was, or would be, written for agents to see, outside the slots.
    pub projected: Vec<ProjectEdit>,
    /// `vibe.lock` was, or would be, written.
    pub lock_changed: bool,
    /// A `vibe.toml` was, or would be, written.
    pub manifest_changed: bool,
    /// Which one, relative to the root.
    pub manifest: Option<RelPath>,
    /// A new project was, or would be, started here.
    #[serde(serialize_with = "optional_path_text")]
    pub started_project: Option<PathBuf>,
    /// The run's evidence under `vibedeps/.state/runs/`, if one was kept.
    pub run: Option<String>,
}

/// A path as escaped text: one that is not UTF-8 must not keep a document from being written.
pub(crate) fn path_text<S: serde::Serializer>(
    path: &std::path::Path,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&vibe_fs::error::shown(path))
}

pub(crate) fn optional_path_text<S: serde::Serializer>(
    path: &Option<PathBuf>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    match path {
        Some(path) => path_text(path, serializer),
        None => serializer.serialize_none(),
    }
}

impl RunReport {
    /// That there was nothing to do, in a project that has nothing.
    pub(crate) fn of_nothing(dry_run: bool) -> Self {
        Self {
            up_to_date: true,
            dry_run,
            ..Self::default()
        }
    }

    /// The manifest that was, or would be, written, relative to the root.
    pub fn manifest_name(&self) -> &str {
        self.manifest
            .as_ref()
            .map_or(MANIFEST_NAME, RelPath::as_str)
    }

    /// Phases that ended badly after their package was installed.
    pub fn flagged(&self) -> impl Iterator<Item = &HookRecord> {
        self.hooks.iter().filter(|hook| hook.is_flag())
    }
}

/// One installed package.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PackageSummary {
    /// Its id.
    pub id: PackageId,
    /// Its version.
    pub version: String,
    /// Its source, as the lock writes it.
    pub source: String,
    /// An `[[override]]` says where it comes from.
    pub overridden: bool,
    /// Its slot, relative to `vibedeps/`.
    pub slot: SlotName,
    /// The identity of its tree; absent where the slot has no usable record.
    pub tree: Option<TreeId>,
    /// How its files are placed.
    pub link_mode: &'static str,
    /// How many files it has; absent where its record was not read.
    pub files: Option<usize>,
    /// Whether its slot is there with a usable record.
    pub installed: bool,
    /// Its declared phases and where they stand, on this machine.
    pub phases: Vec<PhaseSummary>,
    /// Its content is somebody else's, whom it only stewards. Told by `list`.
    pub bridge: bool,
    /// Where that content comes from, escaped. Told by `list`.
    pub upstream: Option<String>,
    /// What it requires.
    pub dependencies: Vec<PackageId>,
}

/// One declared phase.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PhaseSummary {
    /// The phase.
    pub phase: Phase,
    /// Where it stands.
    pub state: PhaseState,
}

/// The word for a link mode.
pub(crate) fn link_mode_name(mode: LinkMode) -> &'static str {
    match mode {
        LinkMode::Copy => "copy",
        LinkMode::Reflink => "reflink",
        LinkMode::Hardlink => "hardlink",
    }
}

/// What `verify` found.
#[derive(Debug, Clone, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct VerifyReport {
    /// How many packages were looked at.
    pub packages: usize,
    /// How many files were read.
    pub files: usize,
    /// What is not as the lock says.
    pub findings: Vec<Finding>,
    /// What is worth knowing and no fault.
    pub notes: Vec<String>,
}

/// One thing that is not as it should be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Finding {
    /// The package, where it is about one.
    pub package: Option<PackageId>,
    /// The slot, where it is about one.
    pub slot: Option<SlotName>,
    /// The path, where it is about one: inside the slot, or else in the project.
    pub path: Option<RelPath>,
    /// What kind of fault it is.
    pub kind: FindingKind,
    /// What is wrong, in words.
    pub message: String,
}

/// The kinds of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum FindingKind {
    /// A payload file is not there.
    Missing,
    /// A payload file has other bytes.
    Changed,
    /// A payload file has another exec bit.
    Mode,
    /// Something else lies where a payload file belongs.
    Type,
    /// A slot is not there.
    Slot,
    /// A slot record is missing, unusable or says another tree than the lock.
    Record,
    /// The lock does not satisfy the manifest.
    Lock,
    /// The lock names another place or content than the manifest or source.
    Integrity,
    /// What was written for agents to see is not as it was written, or not what the packages ask for.
    Projection,
    /// Hooks are owed, or a package with hooks is not prepared on this machine.
    Hooks,
}

/// One declared hook, as `hooks list` tells it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct HookStatus {
    /// The package.
    pub package: PackageId,
    /// Its version.
    pub version: String,
    /// The phase.
    pub phase: Phase,
    /// The scripts the lock names for this phase, with their digests; for a path source those in
    /// its slot's record.
    pub scripts: Vec<ScriptSummary>,
    /// Where the phase stands on this machine; `None` where nothing ran here yet.
    pub state: Option<PhaseState>,
    /// How it last ended, if that is known.
    pub last: Option<HookRecord>,
    /// Whether the next install runs it.
    pub runs_next: bool,
    /// Why it will or will not run, in words.
    pub because: String,
}

/// A hook script.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ScriptSummary {
    /// Its path in the package.
    pub path: RelPath,
    /// Its published content.
    pub sha256: Sha256Digest,
}

/// A kept log of one hook.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct HookLog {
    /// The run.
    pub run: String,
    /// What became of the hook.
    pub record: HookRecord,
    /// The log's text, control characters escaped line by line.
    pub output: String,
}
