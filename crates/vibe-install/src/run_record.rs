//! What is kept of a run and of each of its hooks.

use serde::{Deserialize, Serialize};
use vibe_core::hook::{HookReason, Phase};
use vibe_core::{PackageId, RelPath, Sha256Digest, SlotName};

/// The evidence of one run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RunRecord {
    /// The run's name, which is its directory's; names sort by start.
    pub run: String,
    /// The command line.
    pub command: String,
    /// The version of vibe.
    pub version: String,
    /// When it started, RFC 3339, UTC.
    pub started: String,
    /// How long it took, in milliseconds; absent while it runs or if it was killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// How it ended: `done`, `flagged`, or `failed: <why>`; absent while it runs or if it was
    /// killed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outcome: Option<String>,
    /// The plan in one line a step.
    pub plan: Vec<String>,
    /// The hooks that were due.
    pub hooks: Vec<HookRecord>,
    /// Files by which agent programs run commands that a hook changed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub changed_agent_settings: Vec<String>,
    /// The names of the caller's variables that hooks did not get.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables_not_passed: Vec<String>,
}

/// What became of one hook.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct HookRecord {
    /// The package.
    pub package: PackageId,
    /// Its slot.
    pub slot: SlotName,
    /// The phase.
    pub phase: Phase,
    /// The script.
    pub script: RelPath,
    /// Its published content.
    pub sha256: Sha256Digest,
    /// Why it was due.
    pub reason: HookReason,
    /// The interpreter's absolute path, escaped; absent where nothing was started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interpreter: Option<String>,
    /// When it started, RFC 3339, UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub started: Option<String>,
    /// How long it took, in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<u64>,
    /// Its exit code, where it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The signal that killed it, where one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
    /// Its time ran out.
    #[serde(default)]
    pub timed_out: bool,
    /// Something it started outlived it.
    #[serde(default)]
    pub left_running: bool,
    /// The log's file name, beside `run.json`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<String>,
    /// What became of it.
    pub outcome: HookOutcome,
    /// Why it counts as failed where its exit alone does not say it, and what was odd.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remarks: Vec<String>,
    /// The end of its output where it failed, control characters escaped.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub tail: String,
}

/// What became of a hook that was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum HookOutcome {
    /// It ran and counts as done.
    Ran,
    /// It ran and failed, or could not be started.
    Failed,
    /// Policy or flag held it back.
    Skipped,
    /// Somebody had to be asked, and did not say yes.
    Declined,
    /// The user interrupted it.
    Interrupted,
}

impl HookRecord {
    /// Whether its package is installed but flagged.
    pub fn is_flag(&self) -> bool {
        self.phase == Phase::PostInstall && self.outcome == HookOutcome::Failed
    }

    /// Whether nothing was tried, since the script in the slot is not as published: what is tried
    /// has a log.
    pub fn has_other_script(&self) -> bool {
        self.outcome == HookOutcome::Failed && self.log.is_none()
    }

    /// How it ended, in words: `exit 3`, `killed by signal 9`, `timed out`, `skipped`, ...
    pub fn ending(&self) -> String {
        match (self.outcome, self.timed_out, self.signal, self.exit_code) {
            (HookOutcome::Skipped, ..) => "skipped".to_owned(),
            (HookOutcome::Declined, ..) => "declined".to_owned(),
            (HookOutcome::Interrupted, ..) => "interrupted".to_owned(),
            (_, true, _, _) => "timed out".to_owned(),
            (_, _, Some(signal), _) => format!("killed by signal {signal}"),
            (_, _, _, Some(code)) => format!("exit {code}"),
            _ => "not started".to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_failed_before_it_was_tried_has_another_script() {
        let tried = |outcome, log: Option<&str>| HookRecord {
            package: "org.example/a".parse().unwrap(),
            slot: SlotName::new(&"org.example/a".parse().unwrap(), &"1.0.0".parse().unwrap()),
            phase: Phase::PostInstall,
            script: RelPath::new("a.sh").unwrap(),
            sha256: Sha256Digest::of(b""),
            reason: HookReason::Install,
            interpreter: None,
            started: None,
            duration_ms: None,
            exit_code: None,
            signal: None,
            timed_out: false,
            left_running: false,
            log: log.map(str::to_owned),
            outcome,
            remarks: Vec::new(),
            tail: String::new(),
        };
        assert!(tried(HookOutcome::Failed, None).has_other_script());
        assert!(!tried(HookOutcome::Failed, Some("a.log")).has_other_script());
        assert!(!tried(HookOutcome::Skipped, None).has_other_script());
    }
}
