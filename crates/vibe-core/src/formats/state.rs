//! `vibedeps/.state/slots.toml`: what this machine knows of its slots.

use std::collections::BTreeMap;

use crate::digest::Sha256Digest;
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
    /// Files that a refresh under way adds: ours though no record names them yet.
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
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
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
