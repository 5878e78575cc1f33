//! What a row of the machine state says of install hooks, whatever its slot holds.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use crate::formats::diagnostic::Diagnostic;
use crate::formats::typed;
use crate::hook::{Phase, PhaseState};

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

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct RunningTable {
    phase: Phase,
    pid: Option<u32>,
    start_time: Option<Spanned<u64>>,
}

pub(super) fn running_hook(text: &str, table: RunningTable) -> Result<RunningHook, Diagnostic> {
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

pub(super) fn push_phases(out: &mut String, header: &str, phases: &BTreeMap<Phase, PhaseState>) {
    if phases.is_empty() {
        return;
    }
    typed::push_header(out, header);
    for (phase, state) in phases {
        typed::push_text(out, phase.as_str(), state.as_str());
    }
}

pub(super) fn push_running(out: &mut String, header: &str, running: &RunningHook) {
    typed::push_header(out, header);
    typed::push_text(out, "phase", running.phase);
    if let Some(process) = running.process {
        typed::push_bare(out, "pid", process.pid);
        if let Some(start_time) = process.start_time {
            typed::push_bare(out, "start-time", start_time);
        }
    }
}
