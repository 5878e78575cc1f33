//! Evidence of past runs.

use vibe_core::text::escape;
use vibe_install::{HookRecord, RunRecord};

use super::run::ending;
use super::{columns, milliseconds};

/// One line for each run.
pub(crate) fn list_text(runs: &[RunRecord]) -> String {
    if runs.is_empty() {
        return "no runs are kept\n".to_owned();
    }
    let cells = |run: &RunRecord| {
        let (outcome, why) = outcome(run);
        vec![
            escape(&run.run),
            outcome,
            took(run),
            escape(&run.command),
            why.unwrap_or_default(),
        ]
    };
    let rows: Vec<Vec<String>> = runs.iter().map(cells).collect();
    columns(&rows).join("\n") + "\n"
}

/// All that is known of one run.
pub(crate) fn show_text(run: &RunRecord) -> String {
    let outcome = match outcome(run) {
        (outcome, Some(why)) => format!("{outcome}: {why}"),
        (outcome, None) => outcome,
    };
    let facts = [
        ("run", escape(&run.run)),
        ("command", escape(&run.command)),
        ("version", escape(&run.version)),
        ("started", escape(&run.started)),
        ("took", took(run)),
        ("outcome", outcome),
    ];
    let rows: Vec<Vec<String>> = facts
        .into_iter()
        .map(|(name, value)| vec![name.to_owned(), value])
        .collect();
    let mut lines = columns(&rows);
    section(
        &mut lines,
        "plan",
        run.plan.iter().map(|step| escape(step)).collect(),
    );
    let hooks: Vec<Vec<String>> = run.hooks.iter().map(hook_cells).collect();
    section(&mut lines, "install hooks", columns(&hooks));
    let changed = run
        .changed_agent_settings
        .iter()
        .map(|file| escape(file))
        .collect();
    section(
        &mut lines,
        "settings of agent programs that install hooks changed",
        changed,
    );
    let names = run
        .variables_not_passed
        .iter()
        .map(|name| escape(name))
        .collect::<Vec<_>>();
    let names = if names.is_empty() {
        Vec::new()
    } else {
        vec![names.join(" ")]
    };
    section(
        &mut lines,
        "variables that install hooks did not get",
        names,
    );
    lines.join("\n") + "\n"
}

fn section(lines: &mut Vec<String>, title: &str, content: Vec<String>) {
    if !content.is_empty() {
        lines.push(format!("{title}:"));
        lines.extend(content.into_iter().map(|line| format!("    {line}")));
    }
}

fn hook_cells(hook: &HookRecord) -> Vec<String> {
    let took = hook.duration_ms.map(milliseconds).unwrap_or_default();
    let log = hook.log.as_deref().map(escape).unwrap_or_default();
    let phase = hook.phase.to_string();
    vec![
        hook.slot.title(),
        phase,
        escape(hook.script.as_str()),
        ending(hook),
        took,
        log,
    ]
}

/// How a run ended in a word or two, and why where it failed.
fn outcome(run: &RunRecord) -> (String, Option<String>) {
    let outcome = run.outcome.as_deref().unwrap_or("not finished");
    match outcome.split_once(": ") {
        Some((outcome, why)) => (escape(outcome), Some(escape(why))),
        None => (escape(outcome), None),
    }
}

fn took(run: &RunRecord) -> String {
    run.duration_ms.map(milliseconds).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::hook;
    use vibe_core::hook::Phase;
    use vibe_install::HookOutcome;

    fn run() -> RunRecord {
        RunRecord {
            run: "20260102T030405678Z-7".to_owned(),
            command: "vibe install".to_owned(),
            version: "0.1.0".to_owned(),
            started: "2026-01-02T03:04:05.678Z".to_owned(),
            duration_ms: Some(1_250),
            outcome: Some("done".to_owned()),
            plan: Vec::new(),
            hooks: Vec::new(),
            changed_agent_settings: Vec::new(),
            variables_not_passed: Vec::new(),
        }
    }

    #[test]
    fn runs_are_listed_one_a_line() {
        let killed = RunRecord {
            duration_ms: None,
            outcome: None,
            ..run()
        };
        let failed = RunRecord {
            outcome: Some("failed: no such file: a".to_owned()),
            ..run()
        };
        assert_eq!(
            list_text(&[run(), killed, failed.clone()]),
            "20260102T030405678Z-7  done          1.2s  vibe install
20260102T030405678Z-7  not finished        vibe install
20260102T030405678Z-7  failed        1.2s  vibe install  no such file: a
"
        );
        let shown = show_text(&failed);
        assert!(
            shown.ends_with("outcome  failed: no such file: a\n"),
            "{shown}"
        );
        assert_eq!(list_text(&[]), "no runs are kept\n");
    }

    #[test]
    fn a_run_is_shown_with_all_its_evidence() {
        let heading = "run      20260102T030405678Z-7
command  vibe install
version  0.1.0
started  2026-01-02T03:04:05.678Z
took     1.2s
outcome  done
";
        assert_eq!(show_text(&run()), heading);
        let full = RunRecord {
            plan: vec!["place a".to_owned()],
            hooks: vec![hook("org.example/a", Phase::PreInstall, HookOutcome::Ran)],
            changed_agent_settings: vec![".claude/settings.json".to_owned()],
            variables_not_passed: vec!["A".to_owned(), "B".to_owned()],
            ..run()
        };
        assert_eq!(
            show_text(&full),
            format!(
                "{heading}plan:
    place a
install hooks:
    org.example/a 1.0.0  pre-install  hooks/prepare.sh  ok  345ms  org.example.a.pre-install.log
settings of agent programs that install hooks changed:
    .claude/settings.json
variables that install hooks did not get:
    A B
"
            )
        );
    }
}
