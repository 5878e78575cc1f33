//! Steps and reasons in words, the same in evidence and on a terminal.

use vibe_core::plan::{HookDecision, SlotReason, Step};
use vibe_plan::lint::LintFinding;

/// A finding in one line: place, what is wrong, what to do.
pub fn finding_line(finding: &LintFinding) -> String {
    let mut line = String::new();
    if let Some(path) = &finding.path {
        line.push_str(path);
        for number in [finding.line, finding.column].into_iter().flatten() {
            line.push_str(&format!(":{number}"));
        }
        line.push_str(": ");
    }
    format!("{line}{} ({})", finding.message, finding.remedy)
}

/// A step in one line; `None` for one that does nothing.
pub fn step_line(step: &Step) -> Option<String> {
    match step {
        Step::Place(step) => Some(format!(
            "place {} ({} files): {}",
            step.slot.title(),
            step.files,
            reason(&step.because)
        )),
        Step::Refresh(step) => Some(format!(
            "refresh {} ({} changes): {}",
            step.slot.title(),
            step.changes.len(),
            reason(&step.because)
        )),
        Step::CheckOut(step) => Some(format!(
            "check out {} at {}: {}",
            step.slot.title(),
            step.commit,
            reason(&step.because)
        )),
        Step::Keep(_) | Step::KeepClone(_) => None,
        Step::RunHook(step) => {
            let decision = match step.decision {
                HookDecision::Run => "run",
                HookDecision::Ask => "ask for",
                HookDecision::Held => "hold back",
            };
            Some(format!(
                "{decision} the {} script of {} ({}, sha256:{}): {}",
                step.phase,
                step.slot.title(),
                step.script,
                step.sha256,
                step.because.as_str()
            ))
        }
        Step::Remove(step) => Some(format!("remove {}: nothing needs it", step.slot.title())),
        Step::RemoveClone(step) => Some(format!(
            "remove the clone {}: nothing needs it",
            step.slot.title()
        )),
    }
}

/// Why a slot is placed or refreshed, in words.
pub fn reason(reason: &SlotReason) -> String {
    match reason {
        SlotReason::New => "new in this project".to_owned(),
        SlotReason::Missing => "its slot is missing".to_owned(),
        SlotReason::Version { from } => format!("{from} was installed"),
        SlotReason::Content => "its source has other content".to_owned(),
        SlotReason::Drift { files: 1 } => "1 file is not as published".to_owned(),
        SlotReason::Drift { files } => format!("{files} files are not as published"),
        SlotReason::Record => "its slot record is missing or outdated".to_owned(),
        SlotReason::Hooks => "its install hooks start from the published files".to_owned(),
        SlotReason::Forced => "asked for with --force".to_owned(),
        SlotReason::Repository => "its git repository is not as vibe left it".to_owned(),
    }
}
