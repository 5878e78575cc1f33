//! Install hooks as data: phases, their state, and what a declared hook is.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::digest::Sha256Digest;
use crate::relative_path::RelPath;

/// A fixed point of the install at which a package's script runs. Ordered as they run.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Phase {
    /// The slot is populated; nothing has read it yet.
    PreInstall,
    /// Lock and projections are durable.
    PostInstall,
}

impl Phase {
    /// All phases, in the order they run.
    pub const ALL: [Phase; 2] = [Phase::PreInstall, Phase::PostInstall];

    /// The name used in manifests, messages and `VIBE_HOOK_PHASE`.
    pub fn as_str(self) -> &'static str {
        match self {
            Phase::PreInstall => "pre-install",
            Phase::PostInstall => "post-install",
        }
    }
}

impl fmt::Display for Phase {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(self.as_str())
    }
}

/// Where a declared phase of a slot stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PhaseState {
    /// It has to run: the payload changed, or it did not finish.
    Owed,
    /// Held back by policy or flag; runs at the next install that permits it.
    Skipped,
    /// Answered no, or nobody to ask; only new bytes or `vibe hooks run` offer it again.
    Declined,
    /// It ended with exit 0 for the payload that is placed.
    Done,
}

impl PhaseState {
    /// The word used in messages and state.
    pub fn as_str(self) -> &'static str {
        match self {
            PhaseState::Owed => "owed",
            PhaseState::Skipped => "skipped",
            PhaseState::Declined => "declined",
            PhaseState::Done => "done",
        }
    }
}

/// Why a hook runs, the value of `VIBE_HOOK_REASON`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HookReason {
    /// The package is new in this project.
    Install,
    /// Another version or other bytes of a package that was installed.
    Update,
    /// Payload was put back to the published bytes.
    Repair,
    /// An earlier run left the phase unfinished.
    Retry,
    /// Asked for by `vibe hooks run`.
    Manual,
}

impl HookReason {
    /// The word used in messages and the environment.
    pub fn as_str(self) -> &'static str {
        match self {
            HookReason::Install => "install",
            HookReason::Update => "update",
            HookReason::Repair => "repair",
            HookReason::Retry => "retry",
            HookReason::Manual => "manual",
        }
    }
}

/// What is put back before hooks run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reset {
    /// The payload.
    #[default]
    Payload,
    /// The payload, and the paths that earlier runs of the hooks made are removed.
    All,
}

/// The operating system family whose rules choose a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HostOs {
    /// Linux, macOS and their like.
    Unix,
    /// Windows.
    Windows,
}

impl HostOs {
    /// The family this program was built for.
    pub const CURRENT: HostOs = if cfg!(windows) {
        HostOs::Windows
    } else {
        HostOs::Unix
    };
}

/// A program that runs scripts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Interpreter {
    /// `bash`; on Windows that of Git.
    Bash,
    /// `pwsh` or `powershell`.
    PowerShell,
}

/// The interpreters that were found on this machine, by absolute path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Interpreters {
    /// `bash`; on Windows that of Git.
    pub bash: Option<PathBuf>,
    /// `pwsh`, or `powershell`.
    pub powershell: Option<PathBuf>,
    /// Files named `bash` that belong to WSL and are never taken.
    pub refused_bash: Vec<PathBuf>,
}

/// One phase's script as selected from the published tree for this operating system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SelectedHook {
    /// When it runs.
    pub phase: Phase,
    /// The script, inside the package.
    pub script: RelPath,
    /// Its published content.
    pub digest: Sha256Digest,
    /// What runs it.
    pub interpreter: Interpreter,
    /// The interpreter's absolute path.
    pub program: PathBuf,
}
