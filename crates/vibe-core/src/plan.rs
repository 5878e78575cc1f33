//! The place plan: everything a run will do to slots, with its reasons, as plain data.
//!
//! The planner (`vibe-plan`) decides; the executor (`vibe-slot`, `vibe-install`) obeys and has no
//! choice left. `--dry-run` prints this and stops.

use serde::{Deserialize, Serialize};

use crate::digest::Sha256Digest;
use crate::formats::state::{CloneState, LinkMode, SlotState};
use crate::hook::{HookReason, Interpreter, Phase};
use crate::identifier::SlotName;
use crate::relative_path::RelPath;
use crate::tree::{TreeId, TreeRow};

/// The steps of a run, in the order they are taken: slots, pre-install hooks, post-install hooks,
/// removals.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct PlacePlan {
    /// The steps.
    pub steps: Vec<Step>,
}

/// One file outside the slots, beside lock and manifest, that a run writes: the project plan has one
/// for each.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ProjectEdit {
    /// The file, relative to the project root.
    pub path: RelPath,
    /// What becomes of it.
    pub change: ProjectChange,
    /// A pre-install that is still to run may give it another content, or need it no more.
    pub may_change: bool,
    /// The digest of its content before; `None`: it is not there.
    #[serde(skip)]
    pub before: Option<Sha256Digest>,
    /// Its content after; `None`: it goes.
    #[serde(skip)]
    pub after: Option<String>,
}

/// What becomes of a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProjectChange {
    /// It is new.
    Create,
    /// It gets another content.
    Change,
    /// It goes.
    Remove,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "step", rename_all = "kebab-case")]
pub enum Step {
    /// A slot is built anew.
    Place(Place),
    /// A slot is brought to a tree by the least change.
    Refresh(Refresh),
    /// A slot is left as it is.
    Keep(Keep),
    /// An install hook is run, asked for or held back.
    RunHook(RunHook),
    /// A slot that nothing needs is removed.
    Remove(Remove),
    /// An in-place slot is brought to a commit.
    CheckOut(CheckOut),
    /// An in-place slot is left as it is.
    KeepClone(KeepClone),
    /// An in-place slot that nothing needs is removed.
    RemoveClone(RemoveClone),
}

/// Builds a slot in staging and renames it in.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Place {
    /// The slot.
    pub slot: SlotName,
    /// Its tree.
    pub tree: TreeId,
    /// How many files it has.
    pub files: usize,
    /// How its files are to be placed. Where a file cannot be linked, it is copied.
    #[serde(rename = "link-mode")]
    pub link_mode: LinkMode,
    /// Why.
    pub because: SlotReason,
    /// The state row to be written, durably, before the slot appears. `None`: no row is needed.
    #[serde(skip)]
    pub row: Option<SlotState>,
}

/// Brings an existing slot to a tree.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Refresh {
    /// The slot.
    pub slot: SlotName,
    /// The tree it will have.
    pub tree: TreeId,
    /// How many files it will have.
    pub files: usize,
    /// How new files are to be placed. Where one cannot be linked, it is copied.
    #[serde(rename = "link-mode")]
    pub link_mode: LinkMode,
    /// Why.
    pub because: SlotReason,
    /// What changes in the directory, in order. Empty: only the record is written.
    pub changes: Vec<FileChange>,
    /// What must be kept until commit so that the slot can go back.
    pub undo: Undo,
    /// The state row to be written, durably, before the first change. `None`: any row goes.
    #[serde(skip)]
    pub row: Option<SlotState>,
}

/// Leaves a slot alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Keep {
    /// The slot.
    pub slot: SlotName,
    /// Its tree.
    pub tree: TreeId,
    /// A state row that has to be written although no payload changes.
    #[serde(skip)]
    pub row: Option<SlotState>,
}

/// Brings an in-place slot to a commit.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CheckOut {
    /// The slot.
    pub slot: SlotName,
    /// The commit it will show.
    pub commit: String,
    /// How much of the work tree is put right.
    pub extent: Extent,
    /// Why.
    pub because: SlotReason,
    /// The commit to go back to if the run stops before its commit. `None`: the slot stays.
    #[serde(skip)]
    pub back_to: Option<String>,
    /// The state row to be written, durably, before the first change.
    #[serde(skip)]
    pub row: CloneState,
}

/// How much of an in-place slot's work tree is put right. Each includes those before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Extent {
    /// Only the repository in `.git`.
    Repository,
    /// Tracked files that differ from the commit.
    Tracked,
    /// Everything: what is not tracked is removed, ignored files and nested repositories included.
    All,
}

/// Leaves an in-place slot alone.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct KeepClone {
    /// The slot.
    pub slot: SlotName,
    /// The commit it shows.
    pub commit: String,
    /// A state row that has to be written although no file changes.
    #[serde(skip)]
    pub row: Option<CloneState>,
}

/// Removes an in-place slot, whatever is in it.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RemoveClone {
    /// The slot.
    pub slot: SlotName,
}

/// Why a slot is placed or refreshed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "reason", rename_all = "kebab-case")]
pub enum SlotReason {
    /// The package is new in this project.
    New,
    /// The lock names the slot, but it is not there.
    Missing,
    /// Another version was installed.
    Version {
        /// The version before.
        from: String,
    },
    /// The same version has other content.
    Content,
    /// Files are not as they were placed.
    Drift {
        /// How many.
        files: usize,
    },
    /// There is no usable record.
    Record,
    /// An owed pre-install starts from the published bytes.
    Hooks,
    /// Asked for with `--force`.
    Forced,
    /// The repository of an in-place slot is missing, or not as vibe makes one.
    Repository,
}

/// One change in a slot's directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "change", rename_all = "kebab-case")]
pub enum FileChange {
    /// Something of the user's is in the way and is renamed.
    SetAside {
        /// From here.
        path: RelPath,
        /// To here.
        to: RelPath,
    },
    /// Something that the package's own hooks made goes.
    RemoveMade {
        /// The topmost path.
        path: RelPath,
    },
    /// A payload file that the package no longer has goes.
    Delete {
        /// The file.
        path: RelPath,
    },
    /// A new file is renamed into place.
    Write {
        /// The file.
        path: RelPath,
        /// Its content.
        sha256: Sha256Digest,
        /// Its exec bit.
        exec: bool,
        /// Why.
        because: WriteReason,
    },
}

/// Why a file is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum WriteReason {
    /// The package did not have it.
    Added,
    /// The package has other bytes, or another exec bit, now.
    Changed,
    /// What is on disk is not what was placed.
    Drifted,
    /// An install hook changed it, and hooks start from published bytes.
    HookChange,
    /// It was linked from the store, and the package has install hooks now, which write.
    Shared,
}

/// What a refresh keeps until commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Undo {
    /// Nothing: the slot is brought to the tree that the lock already names.
    None,
    /// The files that the changes replace.
    Changed,
    /// The whole payload, since a pre-install may change any of it.
    Payload,
}

/// One phase of one package.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RunHook {
    /// The slot, also the working directory.
    pub slot: SlotName,
    /// The phase.
    pub phase: Phase,
    /// The script.
    pub script: RelPath,
    /// Its published content.
    pub sha256: Sha256Digest,
    /// What runs it.
    pub interpreter: Interpreter,
    /// The interpreter's absolute path. Not printed: it differs by machine.
    #[serde(skip)]
    pub program: std::path::PathBuf,
    /// Whether it will run.
    pub decision: HookDecision,
    /// Why it is due.
    pub because: HookReason,
}

/// What the gate says of a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HookDecision {
    /// It runs.
    Run,
    /// Somebody has to be asked.
    Ask,
    /// It does not run.
    Held,
}

/// Removes a slot.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Remove {
    /// The slot.
    pub slot: SlotName,
    /// Recorded files that are as we left them.
    pub files: Vec<RelPath>,
    /// Made paths whose listing is unchanged.
    pub made: Vec<RelPath>,
    /// What stays, topmost paths, escaped for showing.
    pub kept: Vec<String>,
}

impl FileChange {
    /// The payload path whose bytes, exec bit or presence this changes, if it is payload.
    pub fn payload_path(&self) -> Option<&RelPath> {
        match self {
            FileChange::Delete { path } | FileChange::Write { path, .. } => Some(path),
            FileChange::SetAside { .. } | FileChange::RemoveMade { .. } => None,
        }
    }

    /// The change that writes `row`.
    pub fn write(row: &TreeRow, because: WriteReason) -> Self {
        FileChange::Write {
            path: row.path.clone(),
            sha256: row.digest,
            exec: row.exec,
            because,
        }
    }
}

impl Step {
    /// The slot this step is about.
    pub fn slot(&self) -> &SlotName {
        match self {
            Step::Place(step) => &step.slot,
            Step::Refresh(step) => &step.slot,
            Step::Keep(step) => &step.slot,
            Step::RunHook(step) => &step.slot,
            Step::Remove(step) => &step.slot,
            Step::CheckOut(step) => &step.slot,
            Step::KeepClone(step) => &step.slot,
            Step::RemoveClone(step) => &step.slot,
        }
    }

    /// Whether the step changes anything on disk or starts anything.
    pub fn is_work(&self) -> bool {
        match self {
            Step::Place(_) | Step::Refresh(_) | Step::Remove(_) => true,
            Step::CheckOut(_) | Step::RemoveClone(_) => true,
            Step::Keep(step) => step.row.is_some(),
            Step::KeepClone(step) => step.row.is_some(),
            Step::RunHook(step) => step.decision == HookDecision::Run,
        }
    }
}
