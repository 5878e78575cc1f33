//! What a run did, package by package.

use std::collections::BTreeSet;
use std::time::Duration;

use anstyle::Style;
use vibe_core::SlotName;
use vibe_core::hook::PhaseState;
use vibe_core::plan::{CheckOut, FileChange, SlotReason, Step};
use vibe_core::text::escape;
use vibe_install::wording::reason;
use vibe_install::{HookOutcome, HookRecord, RunReport};

use super::plan::{
    change_line, is_new_clone, is_replaced, is_told_by_another, moved, nothing_to_do, short,
};
use super::style::{ADDED, CHANGED, DIM, REMOVED, paint};
use super::{Spare, View, columns_within, count, duration, milliseconds, plan};

/// What a narrow terminal does without in a line of a package: the files, how they were placed, why.
const PACKAGE_SPARE: [Spare; 3] = [Spare::Whole(3), Spare::Whole(2), Spare::Part(4)];
/// The same in a line of an install hook: the script, the time it took.
const HOOK_SPARE: [Spare; 2] = [Spare::Whole(1), Spare::Whole(3)];

/// One package in the list.
struct Entry<'a> {
    slot: &'a SlotName,
    style: Style,
    sign: &'static str,
    cells: Vec<String>,
    details: Vec<String>,
}

/// The report as lines.
pub(crate) fn text(report: &RunReport, view: &View) -> String {
    let mut lines = Vec::new();
    if let Some(root) = &report.started_project {
        let root = escape(&root.to_string_lossy());
        lines.push(match report.dry_run {
            true => format!("a project would be started in {root}"),
            false => format!("started a project in {root}"),
        });
    }
    match report.dry_run {
        true => lines.extend(plan::lines(report, view)),
        false => {
            lines.extend(package_lines(report, view));
            lines.extend(plan::projected_lines(&report.projected));
        }
    }
    let last = match report.dry_run {
        true => plan::summary(report),
        false => summary(report, view.elapsed),
    };
    let wrote = wrote_manifest(report);
    if report.manifest_changed && !report.dry_run && !last.starts_with(&wrote) {
        lines.push(wrote);
    }
    lines.extend(held_line(report));
    lines.push(last);
    lines.join("\n") + "\n"
}

/// What is said of a new `vibe.toml`.
fn wrote_manifest(report: &RunReport) -> String {
    format!("wrote {}", report.manifest_name())
}

fn package_lines(report: &RunReport, view: &View) -> Vec<String> {
    let mut entries: Vec<Entry<'_>> = report
        .done
        .iter()
        .filter_map(|step| entry(step, report, view.verbose))
        .collect();
    entries.extend(hook_only_entries(report, &entries));
    entries.sort_by(|one, other| {
        let key = |entry: &Entry<'_>| (entry.slot.package().clone(), entry.sign != "-");
        key(one).cmp(&key(other))
    });
    let cells: Vec<Vec<String>> = entries.iter().map(|entry| entry.cells.clone()).collect();
    let mut lines = Vec::new();
    let table = columns_within(&cells, view.width_after(2), &PACKAGE_SPARE);
    for (entry, line) in entries.iter().zip(table) {
        lines.push(format!("{} {line}", paint(entry.style, entry.sign)));
        lines.extend(entry.details.iter().map(|detail| format!("    {detail}")));
        if entry.sign != "-" {
            lines.extend(hook_lines(report, entry.slot, view));
        }
    }
    lines
}

fn entry<'a>(step: &'a Step, report: &RunReport, verbose: bool) -> Option<Entry<'a>> {
    let slot = step.slot();
    let (style, sign, cells, details) = match step {
        Step::Place(step) => {
            let (style, sign) = match step.because {
                SlotReason::Version { .. } => (CHANGED, "~"),
                _ => (ADDED, "+"),
            };
            let cells = placed_cells(slot, report, step.files, &step.because);
            (style, sign, cells, Vec::new())
        }
        Step::Refresh(step) => {
            let cells = placed_cells(slot, report, step.files, &step.because);
            (
                CHANGED,
                "~",
                cells,
                step.changes
                    .iter()
                    .filter_map(|c| change_line(c, verbose))
                    .collect(),
            )
        }
        Step::Remove(_) if is_told_by_another(step, &report.done) => return None,
        Step::Remove(step) => {
            let kept = |path: &String| format!("kept {}", escape(path));
            (
                REMOVED,
                "-",
                id_cells(slot),
                step.kept.iter().map(kept).collect(),
            )
        }
        Step::CheckOut(step) => {
            let (style, sign) = match is_new_clone(&step.because) {
                true => (ADDED, "+"),
                false => (CHANGED, "~"),
            };
            (style, sign, clone_cells(step, report), Vec::new())
        }
        Step::RemoveClone(_) => (REMOVED, "-", id_cells(slot), Vec::new()),
        Step::Keep(_) | Step::KeepClone(_) if verbose => (DIM, "=", id_cells(slot), Vec::new()),
        Step::Keep(_) | Step::KeepClone(_) | Step::RunHook(_) => return None,
    };
    Some(Entry {
        slot,
        style,
        sign,
        cells,
        details,
    })
}

/// Packages that are as they were, but whose install hooks were due.
fn hook_only_entries<'a>(report: &'a RunReport, shown: &[Entry<'_>]) -> Vec<Entry<'a>> {
    let shown: BTreeSet<String> = shown.iter().map(|entry| entry.slot.directory()).collect();
    let mut seen = BTreeSet::new();
    report
        .hooks
        .iter()
        .map(|hook| &hook.slot)
        .filter(|slot| !shown.contains(&slot.directory()) && seen.insert(slot.directory()))
        .map(|slot| Entry {
            slot,
            style: DIM,
            sign: "=",
            cells: id_cells(slot),
            details: Vec::new(),
        })
        .collect()
}

fn id_cells(slot: &SlotName) -> Vec<String> {
    vec![
        slot.package().to_string(),
        slot.version().unwrap_or_default().to_owned(),
    ]
}

fn placed_cells(
    slot: &SlotName,
    report: &RunReport,
    files: usize,
    because: &SlotReason,
) -> Vec<String> {
    let package = report.packages.iter().find(|package| package.slot == *slot);
    let mut cells = id_cells(slot);
    cells.push(package.map_or("", |package| package.link_mode).to_owned());
    cells.push(count(files, "file"));
    match because {
        // A slot that is made anew says enough by its sign, also in a clone that has only the lock.
        SlotReason::New | SlotReason::Missing => {}
        SlotReason::Version { from } => cells[1] = moved(from, &cells[1]),
        _ => cells.push(escape(&reason(because))),
    }
    cells
}

fn clone_cells(step: &CheckOut, report: &RunReport) -> Vec<String> {
    let mut packages = report.packages.iter();
    let package = packages.find(|package| package.slot == step.slot);
    let version = package.map_or("", |package| &package.version);
    let mut cells = vec![
        step.slot.package().to_string(),
        version.to_owned(),
        "in-place".to_owned(),
        short(&step.commit).to_owned(),
    ];
    if !is_new_clone(&step.because) {
        cells.push(escape(&reason(&step.because)));
    }
    cells
}

fn hook_lines(report: &RunReport, slot: &SlotName, view: &View) -> Vec<String> {
    let hooks: Vec<&HookRecord> = report
        .hooks
        .iter()
        .filter(|hook| hook.slot == *slot)
        .collect();
    let rows: Vec<Vec<String>> = hooks.iter().map(|hook| hook_cells(hook)).collect();
    let mut lines = Vec::new();
    let table = columns_within(&rows, view.width_after(4), &HOOK_SPARE);
    for (hook, row) in hooks.iter().zip(table) {
        lines.push(format!("    {row}"));
        lines.extend(
            hook.remarks
                .iter()
                .map(|remark| format!("      {}", escape(remark))),
        );
    }
    lines
}

fn hook_cells(hook: &HookRecord) -> Vec<String> {
    vec![
        hook.phase.to_string(),
        escape(hook.script.as_str()),
        ending(hook),
        hook.duration_ms.map(milliseconds).unwrap_or_default(),
    ]
}

/// How an install hook ended: `ok`, `failed (exit 3)`, `held back`.
pub(crate) fn ending(hook: &HookRecord) -> String {
    match hook.outcome {
        HookOutcome::Ran => "ok".to_owned(),
        HookOutcome::Failed => format!("failed ({})", escape(&hook.ending())),
        HookOutcome::Skipped => "held back".to_owned(),
        HookOutcome::Declined => "not accepted".to_owned(),
        HookOutcome::Interrupted => "interrupted".to_owned(),
    }
}

/// Says that something asked for was not done: phases that were held back now or before.
fn held_line(report: &RunReport) -> Option<String> {
    let held = |state: PhaseState| {
        let phases = report.packages.iter().flat_map(|package| &package.phases);
        phases.filter(|phase| phase.state == state).count()
    };
    let skipped = held(PhaseState::Skipped);
    let declined = held(PhaseState::Declined);
    let mut parts = Vec::new();
    if skipped > 0 {
        let by = report
            .held_by
            .map_or("in an earlier run".to_owned(), |by| format!("by {by}"));
        parts.push(format!("{skipped} ({by})"));
    }
    if declined > 0 {
        parts.push(format!("{declined} (not accepted)"));
    }
    let shown = !parts.is_empty() && !report.dry_run;
    shown.then(|| format!("install hooks held back: {}", parts.join(", ")))
}

fn summary(report: &RunReport, elapsed: Duration) -> String {
    let parts = summary_parts(report);
    let deeds = match (report.lock_changed, report.manifest_changed) {
        _ if !parts.is_empty() => parts.join(", "),
        (true, _) => "wrote vibe.lock".to_owned(),
        (false, true) => wrote_manifest(report),
        _ if !report.projected.is_empty() => "wrote boot text".to_owned(),
        (false, false) => return nothing_to_do(report),
    };
    format!("{deeds} in {}", duration(elapsed))
}

fn summary_parts(report: &RunReport) -> Vec<String> {
    let (mut installed, mut updated, mut refreshed, mut removed, mut files) = (0, 0, 0, 0, 0);
    for step in &report.done {
        match step {
            Step::Place(step) => {
                match step.because {
                    SlotReason::Version { .. } => updated += 1,
                    _ => installed += 1,
                }
                files += step.files;
            }
            Step::Refresh(step) => {
                refreshed += 1;
                files += written(&step.changes);
            }
            Step::CheckOut(step) if is_new_clone(&step.because) => installed += 1,
            Step::CheckOut(_) => refreshed += 1,
            Step::Remove(step) if is_replaced(&step.slot, &report.done) => {}
            Step::Remove(_) | Step::RemoveClone(_) => removed += 1,
            Step::Keep(_) | Step::KeepClone(_) | Step::RunHook(_) => {}
        }
    }
    let placed_files = report
        .done
        .iter()
        .any(|step| matches!(step, Step::Place(_) | Step::Refresh(_)));
    let started = [
        HookOutcome::Ran,
        HookOutcome::Failed,
        HookOutcome::Interrupted,
    ];
    let ran = report
        .hooks
        .iter()
        .filter(|hook| started.contains(&hook.outcome))
        .count();
    let deeds = [
        ("installed", installed),
        ("updated", updated),
        ("refreshed", refreshed),
        ("removed", removed),
    ];
    let mut parts: Vec<String> = deeds
        .into_iter()
        .filter(|(_, packages)| *packages > 0)
        .map(|(deed, packages)| format!("{deed} {}", count(packages, "package")))
        .collect();
    if placed_files {
        let place = [installed, updated, refreshed];
        let place = place.iter().filter(|packages| **packages > 0).count();
        parts.insert(place, count(files, "file"));
    }
    if ran > 0 {
        parts.push(format!("ran {}", count(ran, "install hook")));
    }
    parts
}

fn written(changes: &[FileChange]) -> usize {
    changes
        .iter()
        .filter(|change| matches!(change, FileChange::Write { .. }))
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::{hook, package, path, plain, slot};
    use vibe_core::formats::state::LinkMode;
    use vibe_core::hook::Phase;
    use vibe_core::plan::{Keep, Place, Refresh, Remove, Undo, WriteReason};
    use vibe_core::{Sha256Digest, Tree, TreeId};
    use vibe_install::PhaseSummary;

    fn tree() -> TreeId {
        Tree::new(Vec::new()).unwrap().id()
    }

    fn place(package: &str, files: usize, because: SlotReason) -> Step {
        let slot = slot(package, "1.0.0");
        Step::Place(Place {
            slot,
            tree: tree(),
            files,
            link_mode: LinkMode::Copy,
            because,
            row: None,
        })
    }

    fn refresh(package: &str) -> Step {
        let written = |name, because| FileChange::Write {
            path: path(name),
            sha256: Sha256Digest::of(b""),
            exec: false,
            because,
        };
        let aside = FileChange::SetAside {
            path: path("a.txt"),
            to: path("a.txt.vibe-kept"),
        };
        Step::Refresh(Refresh {
            slot: slot(package, "1.0.0"),
            tree: tree(),
            files: 12,
            link_mode: LinkMode::Copy,
            because: SlotReason::Drift { files: 1 },
            changes: vec![
                aside,
                written("b.txt", WriteReason::Drifted),
                written("d.txt", WriteReason::Changed),
                FileChange::Delete {
                    path: path("c.txt"),
                },
            ],
            undo: Undo::None,
            row: None,
        })
    }

    fn remove(package: &str, version: &str) -> Step {
        let kept = vec!["mine.txt".to_owned()];
        let slot = slot(package, version);
        Step::Remove(Remove {
            slot,
            files: Vec::new(),
            made: Vec::new(),
            kept,
        })
    }

    fn shown(report: &RunReport, verbose: bool) -> String {
        let view = View {
            verbose,
            elapsed: Duration::from_millis(250),
            width: None,
        };
        plain(&text(report, &view))
    }

    fn check(report: RunReport, expected: &str) {
        assert_eq!(shown(&report, false), expected);
    }

    #[test]
    fn a_run_shows_every_package_it_changed_and_what_it_kept() {
        let keep = Step::Keep(Keep {
            slot: slot("org.example/same", "1.0.0"),
            tree: tree(),
            row: None,
        });
        let moved = SlotReason::Version {
            from: "0.9.0".to_owned(),
        };
        let report = RunReport {
            done: vec![
                keep,
                refresh("org.example/lint"),
                place("org.example/new", 1, SlotReason::New),
                place("org.example/a", 3, moved),
                remove("org.example/a", "0.9.0"),
            ],
            packages: vec![
                package("org.example/a", "1.0.0"),
                package("org.example/lint", "1.0.0"),
            ],
            ..RunReport::default()
        };
        let drift = reason(&SlotReason::Drift { files: 1 });
        let expected = format!(
            "- org.example/a     0.9.0
    kept mine.txt
~ org.example/a     0.9.0 -> 1.0.0  copy  3 files
~ org.example/lint  1.0.0           copy  12 files  {drift}
    set aside a.txt as a.txt.vibe-kept
    restored b.txt
+ org.example/new   1.0.0                 1 file
installed 1 package, updated 1 package, refreshed 1 package, 6 files in 250ms
"
        );
        assert_eq!(shown(&report, false), expected);
        let verbose = shown(&report, true);
        assert!(
            verbose.contains("\n= org.example/same  1.0.0\n"),
            "{verbose}"
        );
        assert!(
            verbose.contains("\n    restored b.txt\n    wrote d.txt\n    removed c.txt\n"),
            "{verbose}"
        );
    }

    #[test]
    fn install_hooks_stand_under_their_package() {
        let mut failed = hook("org.example/b", Phase::PostInstall, HookOutcome::Failed);
        failed.remarks = vec!["changed vibe.lock".to_owned()];
        let report = RunReport {
            done: vec![place("org.example/a", 2, SlotReason::New)],
            hooks: vec![
                hook("org.example/a", Phase::PreInstall, HookOutcome::Ran),
                failed,
                hook(
                    "org.example/a",
                    Phase::PostInstall,
                    HookOutcome::Interrupted,
                ),
            ],
            packages: vec![package("org.example/a", "1.0.0")],
            ..RunReport::default()
        };
        check(
            report,
            "+ org.example/a  1.0.0  copy  2 files
    pre-install   hooks/prepare.sh  ok           345ms
    post-install  hooks/prepare.sh  interrupted  345ms
= org.example/b  1.0.0
    post-install  hooks/prepare.sh  failed (exit 3)  345ms
      changed vibe.lock
installed 1 package, 2 files, ran 3 install hooks in 250ms
",
        );
    }

    #[test]
    fn what_was_held_back_is_said_with_who_holds_it() {
        let mut held = package("org.example/a", "1.0.0");
        let phase = |phase, state| PhaseSummary { phase, state };
        held.phases = vec![
            phase(Phase::PreInstall, PhaseState::Skipped),
            phase(Phase::PostInstall, PhaseState::Declined),
        ];
        let report = RunReport {
            up_to_date: true,
            packages: vec![held],
            held_by: Some("--no-hooks"),
            ..RunReport::default()
        };
        let earlier = RunReport {
            held_by: None,
            ..report.clone()
        };
        check(
            report,
            "install hooks held back: 1 (by --no-hooks), 1 (not accepted)
nothing to do: 1 package is up to date
",
        );
        check(
            earlier,
            "install hooks held back: 1 (in an earlier run), 1 (not accepted)
nothing to do: 1 package is up to date
",
        );
    }

    #[test]
    fn a_run_that_changed_no_package_says_what_it_did() {
        let packages = || {
            vec![
                package("org.example/a", "1.0.0"),
                package("org.example/b", "1.0.0"),
            ]
        };
        let idle = RunReport {
            up_to_date: true,
            packages: packages(),
            ..RunReport::default()
        };
        check(idle, "nothing to do: 2 packages are up to date\n");
        check(
            RunReport::default(),
            "nothing to do: the project requires no packages\n",
        );
        let locked = RunReport {
            lock_changed: true,
            ..RunReport::default()
        };
        check(locked, "wrote vibe.lock in 250ms\n");
        let required_otherwise = RunReport {
            manifest_changed: true,
            packages: packages(),
            ..RunReport::default()
        };
        check(required_otherwise, "wrote vibe.toml in 250ms\n");
        let started = RunReport {
            started_project: Some("/p".into()),
            manifest_changed: true,
            lock_changed: true,
            ..RunReport::default()
        };
        check(
            started,
            "started a project in /p\nwrote vibe.toml\nwrote vibe.lock in 250ms\n",
        );
        let refreshed = RunReport {
            done: vec![refresh("org.example/a")],
            ..RunReport::default()
        };
        assert!(shown(&refreshed, false).ends_with("refreshed 1 package, 2 files in 250ms\n"));
    }
}
