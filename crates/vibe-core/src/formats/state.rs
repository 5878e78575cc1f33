//! `vibedeps/.state/slots.toml`: what this machine knows of its slots.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::digest::Sha256Digest;
use crate::formats::diagnostic::Diagnostic;
use crate::formats::typed::{self, FileTable};
use crate::hook::{HookReason, Phase, PhaseState};
use crate::identifier::SlotName;
use crate::relative_path::RelPath;
use crate::tree::{TreeId, TreeRow};

/// The schema number written.
pub const STATE_SCHEMA: u64 = 1;

/// All rows, by slot.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct MachineState {
    /// The slots that have state.
    pub slots: BTreeMap<SlotName, SlotState>,
}

/// One slot's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotState {
    /// The tree that is placed, or being placed.
    pub tree: TreeId,
    /// The declared phases and where they stand.
    pub phases: BTreeMap<Phase, PhaseState>,
    /// Why the owed phases are owed.
    pub reason: HookReason,
    /// The version that was installed before, if another was.
    pub previous_version: Option<String>,
    /// What this package's own hooks made of its payload.
    pub after: BTreeMap<RelPath, AfterFile>,
    /// The topmost paths that appeared during its hooks.
    pub made: BTreeMap<RelPath, MadePath>,
    /// Files that a refresh under way adds: ours though no record names them yet. Sorted by path,
    /// each once.
    pub adding: Vec<TreeRow>,
    /// The way its files were really placed.
    pub link_mode: LinkMode,
    /// The boot under which it was placed, if the system tells.
    pub boot: Option<String>,
    /// An install hook that was started and not seen to end.
    pub running: Option<RunningHook>,
}

/// A payload file as the package's own hooks left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AfterFile {
    /// With these bytes and exec bit.
    File {
        /// Its content.
        digest: Sha256Digest,
        /// Its exec bit.
        exec: bool,
    },
    /// Deleted.
    Deleted,
}

/// A path that appeared during a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MadePath {
    /// What it is.
    pub kind: MadeKind,
    /// A digest of what it is and of the listing under it.
    pub listing: Sha256Digest,
}

/// What a made path is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum MadeKind {
    /// A regular file.
    File,
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// Anything else.
    Other,
}

/// The way files were placed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LinkMode {
    /// Copied.
    #[default]
    Copy,
    /// Sharing blocks until written.
    Reflink,
    /// Sharing the inode.
    Hardlink,
}

/// A started hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunningHook {
    /// Its phase.
    pub phase: Phase,
    /// Its process, once started. Also its session.
    pub process: Option<RunningProcess>,
}

/// A process that can be told from another with the same number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RunningProcess {
    /// The process number, which is its session's too.
    pub pid: u32,
    /// When it started, in the system's own unit, if the system tells.
    pub start_time: Option<u64>,
}

/// Why a text is no machine state.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum StateError {
    /// It breaks a rule.
    #[error("the machine state is malformed")]
    Malformed(#[from] Diagnostic),
    /// Its schema is newer than [`STATE_SCHEMA`]; nothing else of it was looked at.
    #[error("the machine state was made by a newer vibe: it has schema {found}")]
    Newer {
        /// Its schema.
        found: u64,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct StateTable {
    #[serde(default)]
    slot: Vec<SlotTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct SlotTable {
    slot: Spanned<SlotName>,
    tree: TreeId,
    reason: HookReason,
    previous_version: Option<String>,
    #[serde(default)]
    link_mode: LinkMode,
    boot: Option<String>,
    #[serde(default)]
    phases: BTreeMap<Phase, PhaseState>,
    running: Option<RunningTable>,
    #[serde(default)]
    after: Vec<AfterTable>,
    #[serde(default)]
    made: Vec<MadeTable>,
    #[serde(default)]
    adding: Vec<FileTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct AfterTable {
    path: Spanned<RelPath>,
    sha256: Option<Sha256Digest>,
    #[serde(default, deserialize_with = "typed::only_true")]
    exec: bool,
    #[serde(default, deserialize_with = "typed::only_true")]
    deleted: bool,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct MadeTable {
    path: Spanned<RelPath>,
    kind: MadeKind,
    listing: Sha256Digest,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct RunningTable {
    phase: Phase,
    pid: Option<u32>,
    start_time: Option<Spanned<u64>>,
}

impl LinkMode {
    /// The word used in messages and state.
    pub fn as_str(self) -> &'static str {
        match self {
            LinkMode::Copy => "copy",
            LinkMode::Reflink => "reflink",
            LinkMode::Hardlink => "hardlink",
        }
    }
}

impl MadeKind {
    /// The word used in messages and state.
    pub fn as_str(self) -> &'static str {
        match self {
            MadeKind::File => "file",
            MadeKind::Directory => "directory",
            MadeKind::Symlink => "symlink",
            MadeKind::Other => "other",
        }
    }
}

impl MachineState {
    /// Reads the text of a `slots.toml`.
    ///
    /// # Errors
    /// A newer schema than [`STATE_SCHEMA`], or the first rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, StateError> {
        let (found, table) = typed::document(text, "schema")?;
        if found > STATE_SCHEMA {
            return Err(StateError::Newer { found });
        }
        if found < STATE_SCHEMA {
            let message = format!("there is no machine state of schema {found}");
            return Err(Diagnostic::new(message).into());
        }
        let table: StateTable = typed::read(text, table)?;
        typed::check_sorted(text, table.slot.iter().map(|slot| &slot.slot))?;
        let slots: Result<_, Diagnostic> = table
            .slot
            .into_iter()
            .map(|slot| slot_state(text, slot))
            .collect();
        Ok(Self { slots: slots? })
    }

    /// The text of the state, the same bytes for equal states.
    pub fn render(&self) -> String {
        let mut out = String::new();
        typed::push_bare(&mut out, "schema", STATE_SCHEMA);
        // By the directory, as a reader sees it; slots themselves order by id.
        let mut slots: Vec<(String, &SlotState)> = self
            .slots
            .iter()
            .map(|(slot, state)| (slot.directory(), state))
            .collect();
        slots.sort_by(|one, other| one.0.cmp(&other.0));
        for (directory, state) in slots {
            push_slot(&mut out, &directory, state);
        }
        out
    }
}

fn slot_state(text: &str, table: SlotTable) -> Result<(SlotName, SlotState), Diagnostic> {
    typed::check_sorted(text, table.after.iter().map(|after| &after.path))?;
    typed::check_sorted(text, table.made.iter().map(|made| &made.path))?;
    let after: Result<_, Diagnostic> = table
        .after
        .into_iter()
        .map(|after| after_file(text, after))
        .collect();
    let made = |made: MadeTable| {
        let MadeTable {
            path,
            kind,
            listing,
        } = made;
        (path.into_inner(), MadePath { kind, listing })
    };
    let state = SlotState {
        tree: table.tree,
        phases: table.phases,
        reason: table.reason,
        previous_version: table.previous_version,
        after: after?,
        made: table.made.into_iter().map(made).collect(),
        adding: typed::file_rows(text, &table.adding)?,
        link_mode: table.link_mode,
        boot: table.boot,
        running: table
            .running
            .map(|running| running_hook(text, running))
            .transpose()?,
    };
    Ok((table.slot.into_inner(), state))
}

fn after_file(text: &str, table: AfterTable) -> Result<(RelPath, AfterFile), Diagnostic> {
    typed::check_payload(text, &table.path)?;
    let file = match (table.sha256, table.exec, table.deleted) {
        (Some(digest), exec, false) => AfterFile::File { digest, exec },
        (None, false, true) => AfterFile::Deleted,
        _ => {
            let message = "a row of `after` has either `sha256` or `deleted`";
            return Err(typed::at(text, &table.path, message));
        }
    };
    Ok((table.path.into_inner(), file))
}

fn running_hook(text: &str, table: RunningTable) -> Result<RunningHook, Diagnostic> {
    let process = match (table.pid, table.start_time) {
        (Some(pid), start_time) => Some(RunningProcess {
            pid,
            start_time: start_time.map(Spanned::into_inner),
        }),
        (None, None) => None,
        (None, Some(start_time)) => {
            return Err(typed::at(text, &start_time, "`start-time` needs a `pid`"));
        }
    };
    Ok(RunningHook {
        phase: table.phase,
        process,
    })
}

fn push_slot(out: &mut String, directory: &str, state: &SlotState) {
    typed::push_header(out, "[[slot]]");
    typed::push_text(out, "slot", directory);
    typed::push_text(out, "tree", state.tree);
    typed::push_text(out, "reason", state.reason.as_str());
    if let Some(version) = &state.previous_version {
        typed::push_text(out, "previous-version", version);
    }
    if state.link_mode != LinkMode::default() {
        typed::push_text(out, "link-mode", state.link_mode.as_str());
    }
    if let Some(boot) = &state.boot {
        typed::push_text(out, "boot", boot);
    }
    push_phases(out, &state.phases);
    if let Some(running) = &state.running {
        push_running(out, running);
    }
    for (path, after) in &state.after {
        push_after(out, path, after);
    }
    for (path, made) in &state.made {
        typed::push_header(out, "[[slot.made]]");
        typed::push_text(out, "path", path);
        typed::push_text(out, "kind", made.kind.as_str());
        typed::push_text(out, "listing", made.listing);
    }
    let mut adding: Vec<&TreeRow> = state.adding.iter().collect();
    adding.sort_by_key(|row| &row.path);
    for row in adding {
        typed::push_file(out, "[[slot.adding]]", row);
    }
}

fn push_phases(out: &mut String, phases: &BTreeMap<Phase, PhaseState>) {
    if phases.is_empty() {
        return;
    }
    typed::push_header(out, "[slot.phases]");
    for (phase, state) in phases {
        typed::push_text(out, phase.as_str(), state.as_str());
    }
}

fn push_running(out: &mut String, running: &RunningHook) {
    typed::push_header(out, "[slot.running]");
    typed::push_text(out, "phase", running.phase);
    if let Some(process) = running.process {
        typed::push_bare(out, "pid", process.pid);
        if let Some(start_time) = process.start_time {
            typed::push_bare(out, "start-time", start_time);
        }
    }
}

fn push_after(out: &mut String, path: &RelPath, after: &AfterFile) {
    match *after {
        AfterFile::File { digest, exec } => {
            let path = path.clone();
            typed::push_file(out, "[[slot.after]]", &TreeRow { path, digest, exec });
        }
        AfterFile::Deleted => {
            typed::push_header(out, "[[slot.after]]");
            typed::push_text(out, "path", path);
            typed::push_bare(out, "deleted", true);
        }
    }
}
