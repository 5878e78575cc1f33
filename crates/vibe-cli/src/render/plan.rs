//! What a run would do, in the order it would.

use vibe_core::SlotName;
use vibe_core::hook::Phase;
use vibe_core::plan::{
    FileChange, HookDecision, Place, ProjectChange, ProjectEdit, Remove, RunHook, SlotReason, Step,
    WriteReason,
};
use vibe_core::text::escape;
use vibe_install::RunReport;
use vibe_install::wording::reason;

use super::View;
use super::style::{ADDED, CHANGED, DIM, REMOVED, paint};
use super::{Spare, columns_within, count};

/// What a narrow terminal does without in the line of a step: why, in part.
const STEP_SPARE: [Spare; 1] = [Spare::Part(3)];

/// Every step with its reason.
pub(crate) fn lines(report: &RunReport, view: &View) -> Vec<String> {
    let verbose = view.verbose;
    let all = &report.plan.steps;
    let is_shown = |step: &&Step| (verbose || !is_kept(step)) && !is_told_by_another(step, all);
    let steps: Vec<&Step> = all.iter().filter(is_shown).collect();
    let rows: Vec<Vec<String>> = steps.iter().map(|step| cells(step)).collect();
    let mut lines = Vec::new();
    let table = columns_within(&rows, view.width_after(2), &STEP_SPARE);
    for (step, row) in steps.iter().zip(table) {
        let (style, sign) = sign(step);
        lines.push(format!("{} {row}", paint(style, sign)));
        lines.extend(
            details(step, verbose)
                .into_iter()
                .map(|detail| format!("    {detail}")),
        );
    }
    lines.extend(projected_lines(&report.projected));
    let files = [
        ("vibe.lock", report.lock_changed),
        (report.manifest_name(), report.manifest_changed),
    ];
    let written = files.into_iter().filter(|(_, changed)| *changed);
    lines.extend(written.map(|(file, _)| format!("{} {file}", paint(CHANGED, "~"))));
    lines
}

/// A line for each file that is written for agents to see.
pub(crate) fn projected_lines(edits: &[ProjectEdit]) -> Vec<String> {
    let line = |edit: &ProjectEdit| {
        let (style, sign) = match edit.change {
            ProjectChange::Create => (ADDED, "+"),
            ProjectChange::Change => (CHANGED, "~"),
            ProjectChange::Remove => (REMOVED, "-"),
        };
        let remark = match edit.may_change {
            true => "  (may change with what pre-install makes)",
            false => "",
        };
        format!(
            "{} {}{remark}",
            paint(style, sign),
            escape(edit.path.as_str())
        )
    };
    edits.iter().map(line).collect()
}

/// The last line.
pub(crate) fn summary(report: &RunReport) -> String {
    let all = &report.plan.steps;
    let is_counted =
        |step: &&Step| step.is_work() && !is_kept(step) && !is_told_by_another(step, all);
    let steps = all.iter().filter(is_counted).count();
    let writes = report.lock_changed || report.manifest_changed || !report.projected.is_empty();
    match (steps, writes) {
        (0, false) => nothing_to_do(report),
        (0, true) => "dry run: nothing was changed".to_owned(),
        _ => format!(
            "dry run: nothing was changed; {} to do",
            count(steps, "step")
        ),
    }
}

/// What is said where nothing had to be done.
pub(crate) fn nothing_to_do(report: &RunReport) -> String {
    match report.packages.len() {
        0 => "nothing to do: the project requires no packages".to_owned(),
        1 => "nothing to do: 1 package is up to date".to_owned(),
        packages => format!("nothing to do: {packages} packages are up to date"),
    }
}

fn is_kept(step: &Step) -> bool {
    matches!(step, Step::Keep(_) | Step::KeepClone(_))
}

/// The cell of a version that takes the place of `from`.
pub(crate) fn moved(from: &str, version: &str) -> String {
    format!("{} -> {version}", escape(from))
}

/// Whether nothing is to be said of `step`, which removes a version: the line of the one that takes its
/// place, by one of `steps`, names it.
pub(crate) fn is_told_by_another(step: &Step, steps: &[Step]) -> bool {
    match step {
        Step::Remove(Remove { slot, kept, .. }) => kept.is_empty() && is_replaced(slot, steps),
        _ => false,
    }
}

/// Whether another version of the package of `slot` takes its place by one of `steps`.
pub(crate) fn is_replaced(slot: &SlotName, steps: &[Step]) -> bool {
    steps.iter().any(|step| match step {
        Step::Place(Place {
            slot: placed,
            because: SlotReason::Version { from },
            ..
        }) => placed.package() == slot.package() && Some(from.as_str()) == slot.version(),
        _ => false,
    })
}

/// The first digits of a commit, as many as tell commits apart on sight.
pub(crate) fn short(commit: &str) -> &str {
    commit.get(..12).unwrap_or(commit)
}

/// Whether an in-place slot is made anew.
pub(crate) fn is_new_clone(because: &SlotReason) -> bool {
    matches!(because, SlotReason::New | SlotReason::Missing)
}

fn sign(step: &Step) -> (anstyle::Style, &'static str) {
    match step {
        Step::Place(step) => match step.because {
            SlotReason::Version { .. } => (CHANGED, "~"),
            _ => (ADDED, "+"),
        },
        Step::CheckOut(step) if is_new_clone(&step.because) => (ADDED, "+"),
        Step::Refresh(_) | Step::CheckOut(_) => (CHANGED, "~"),
        Step::Remove(_) | Step::RemoveClone(_) => (REMOVED, "-"),
        Step::Keep(_) | Step::KeepClone(_) => (DIM, "="),
        Step::RunHook(_) => (DIM, ">"),
    }
}

fn cells(step: &Step) -> Vec<String> {
    let slot = step.slot();
    let mut version = slot.version().unwrap_or_default().to_owned();
    let (what, why) = match step {
        Step::Place(Place {
            because: SlotReason::Version { from },
            files,
            ..
        }) => {
            version = moved(from, &version);
            (count(*files, "file"), String::new())
        }
        Step::Place(step) => (count(step.files, "file"), escape(&reason(&step.because))),
        Step::Refresh(step) => (count(step.files, "file"), escape(&reason(&step.because))),
        Step::CheckOut(step) => (
            short(&step.commit).to_owned(),
            escape(&reason(&step.because)),
        ),
        Step::Keep(_) | Step::KeepClone(_) => (String::new(), "as it should be".to_owned()),
        Step::Remove(_) | Step::RemoveClone(_) => (String::new(), "nothing requires it".to_owned()),
        Step::RunHook(step) => (
            decision(step.decision, step.phase),
            step.because.as_str().to_owned(),
        ),
    };
    vec![slot.package().to_string(), version, what, why]
}

fn decision(decision: HookDecision, phase: Phase) -> String {
    let word = match decision {
        HookDecision::Run => "run",
        HookDecision::Ask => "ask",
        HookDecision::Held => "held",
    };
    format!("{word} {phase}")
}

fn details(step: &Step, verbose: bool) -> Vec<String> {
    match step {
        Step::Refresh(step) => step
            .changes
            .iter()
            .filter_map(|change| change_line(change, verbose))
            .collect(),
        Step::Remove(step) => step
            .kept
            .iter()
            .map(|path| format!("keep {}", escape(path)))
            .collect(),
        Step::RunHook(step) => vec![script(step)],
        Step::Place(_) | Step::Keep(_) => Vec::new(),
        Step::CheckOut(_) | Step::KeepClone(_) | Step::RemoveClone(_) => Vec::new(),
    }
}

/// A change in a slot; what touches something of the user's, or undoes it, is always named.
pub(crate) fn change_line(change: &FileChange, verbose: bool) -> Option<String> {
    let shown = |path: &vibe_core::RelPath| escape(path.as_str());
    match change {
        FileChange::SetAside { path, to } => {
            Some(format!("set aside {} as {}", shown(path), shown(to)))
        }
        FileChange::Write {
            path,
            because: WriteReason::Drifted,
            ..
        } => Some(format!("restored {}", shown(path))),
        FileChange::RemoveMade { path } if verbose => Some(format!("removed {}", shown(path))),
        FileChange::Delete { path } if verbose => Some(format!("removed {}", shown(path))),
        FileChange::Write { path, .. } if verbose => Some(format!("wrote {}", shown(path))),
        FileChange::RemoveMade { .. } | FileChange::Delete { .. } | FileChange::Write { .. } => {
            None
        }
    }
}

fn script(step: &RunHook) -> String {
    format!(
        "{}  {}",
        escape(step.script.as_str()),
        step.sha256.prefixed()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::run::text;
    use crate::render::testing::{package, path, plain, slot};
    use std::time::Duration;
    use vibe_core::formats::state::LinkMode;
    use vibe_core::hook::{HookReason, Interpreter};
    use vibe_core::plan::{Keep, Place, PlacePlan, Remove, SlotReason};
    use vibe_core::{Sha256Digest, Tree};

    fn run_hook(decision: HookDecision) -> Step {
        Step::RunHook(RunHook {
            slot: slot("org.example/lint", "1.0.0"),
            phase: Phase::PreInstall,
            script: path("hooks/a.sh"),
            sha256: Sha256Digest::of(b"script"),
            interpreter: Interpreter::Bash,
            program: "/bin/bash".into(),
            decision,
            because: HookReason::Install,
        })
    }

    fn shown(steps: Vec<Step>, lock_changed: bool, verbose: bool) -> String {
        let report = RunReport {
            dry_run: true,
            plan: PlacePlan { steps },
            lock_changed,
            packages: vec![package("org.example/lint", "1.0.0")],
            ..RunReport::default()
        };
        let view = View {
            verbose,
            elapsed: Duration::ZERO,
            width: None,
        };
        plain(&text(&report, &view))
    }

    #[test]
    fn a_dry_run_shows_every_step_with_its_reason() {
        let tree = Tree::new(Vec::new()).unwrap().id();
        let slot_name = slot("org.example/lint", "1.0.0");
        let because = SlotReason::New;
        let why = reason(&because);
        let old = slot("org.example/old", "0.1.0");
        let kept = vec!["x".to_owned()];
        let steps = vec![
            Step::Place(Place {
                slot: slot_name,
                tree,
                files: 1,
                link_mode: LinkMode::Copy,
                because,
                row: None,
            }),
            Step::Keep(Keep {
                slot: slot("org.example/k", "1.0.0"),
                tree,
                row: None,
            }),
            run_hook(HookDecision::Run),
            run_hook(HookDecision::Held),
            Step::Remove(Remove {
                slot: old,
                files: Vec::new(),
                made: Vec::new(),
                kept,
            }),
        ];
        let digest = Sha256Digest::of(b"script").prefixed();
        let expected = format!(
            "+ org.example/lint  1.0.0  1 file            {why}
> org.example/lint  1.0.0  run pre-install   install
    hooks/a.sh  {digest}
> org.example/lint  1.0.0  held pre-install  install
    hooks/a.sh  {digest}
- org.example/old   0.1.0                    nothing requires it
    keep x
~ vibe.lock
dry run: nothing was changed; 3 steps to do
"
        );
        assert_eq!(shown(steps.clone(), true, false), expected);
        assert!(shown(steps, true, true).contains("\n= org.example/k"));
    }

    #[test]
    fn a_dry_run_without_work_says_so() {
        assert_eq!(
            shown(Vec::new(), false, false),
            "nothing to do: 1 package is up to date\n"
        );
        let lock_only = shown(Vec::new(), true, false);
        assert_eq!(lock_only, "~ vibe.lock\ndry run: nothing was changed\n");
        let asked = shown(vec![run_hook(HookDecision::Ask)], false, false);
        assert!(asked.starts_with("> org.example/lint  1.0.0  ask pre-install  install\n"));
    }
}
