//! Install hooks: where they stand, and what they printed.

use vibe_core::hook::PhaseState;
use vibe_core::text::escape;
use vibe_install::{HookLog, HookRecord, HookStatus};

use super::run::ending;
use super::{columns, milliseconds};

/// Each declared install hook with its scripts, how it last ended, and whether it runs next.
pub(crate) fn list_text(hooks: &[HookStatus]) -> String {
    if hooks.is_empty() {
        return "no install hooks are declared\n".to_owned();
    }
    let mut lines = Vec::new();
    for hook in hooks {
        let state = hook.state.map_or("not run here", PhaseState::as_str);
        lines.push(format!(
            "{} {}  {}  {state}",
            hook.package,
            escape(&hook.version),
            hook.phase
        ));
        lines.extend(columns(&rows(hook)).iter().map(|row| format!("    {row}")));
    }
    lines.join("\n") + "\n"
}

fn rows(hook: &HookStatus) -> Vec<Vec<String>> {
    let mut rows: Vec<Vec<String>> = hook
        .scripts
        .iter()
        .map(|script| {
            let text = format!(
                "{}  {}",
                escape(script.path.as_str()),
                script.sha256.prefixed()
            );
            vec!["script".to_owned(), text]
        })
        .collect();
    if let Some(last) = &hook.last {
        rows.push(vec!["last".to_owned(), last_text(last)]);
    }
    let next = if hook.runs_next {
        "runs"
    } else {
        "does not run"
    };
    rows.push(vec![
        "next".to_owned(),
        format!("{next}: {}", escape(&hook.because)),
    ]);
    rows
}

fn last_text(record: &HookRecord) -> String {
    let took = record
        .duration_ms
        .map(|ms| format!(" after {}", milliseconds(ms)));
    let started = record
        .started
        .as_ref()
        .map(|time| format!(", started {}", escape(time)));
    format!(
        "{}{}{}",
        ending(record),
        took.unwrap_or_default(),
        started.unwrap_or_default()
    )
}

/// A kept log under a line that says whose it is. `None`: none is kept.
pub(crate) fn log_text(log: Option<&HookLog>) -> String {
    let Some(log) = log else {
        return "no output of an install hook is kept\n".to_owned();
    };
    let record = &log.record;
    let heading = format!(
        "{}  {}  {}  run {}",
        record.slot.title(),
        record.phase,
        ending(record),
        escape(&log.run)
    );
    let output: Vec<String> = log.output.lines().map(escape_but_tabs).collect();
    match output.is_empty() {
        true => format!("{heading}\n(it printed nothing)\n"),
        false => format!("{heading}\n{}\n", output.join("\n")),
    }
}

/// A line of output, its tabs kept.
pub(crate) fn escape_but_tabs(line: &str) -> String {
    line.split('\t').map(escape).collect::<Vec<_>>().join("\t")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::{hook, id, path};
    use vibe_core::Sha256Digest;
    use vibe_core::hook::Phase;
    use vibe_install::{HookOutcome, ScriptSummary};

    #[test]
    fn each_hook_says_whether_it_runs_next() {
        let script = ScriptSummary {
            path: path("hooks/a.sh"),
            sha256: Sha256Digest::of(b""),
        };
        let status = HookStatus {
            package: id("org.example/a"),
            version: "1.0.0".to_owned(),
            phase: Phase::PreInstall,
            scripts: vec![script],
            state: None,
            last: None,
            runs_next: true,
            because: "new".to_owned(),
        };
        let ran = HookStatus {
            state: Some(PhaseState::Done),
            last: Some(hook("org.example/a", Phase::PreInstall, HookOutcome::Ran)),
            runs_next: false,
            because: "done".to_owned(),
            scripts: Vec::new(),
            ..status.clone()
        };
        let digest = Sha256Digest::of(b"").prefixed();
        assert_eq!(
            list_text(&[status, ran]),
            format!(
                "org.example/a 1.0.0  pre-install  not run here
    script  hooks/a.sh  {digest}
    next    runs: new
org.example/a 1.0.0  pre-install  done
    last  ok after 345ms, started 2026-01-02T03:04:05.678Z
    next  does not run: done
"
            )
        );
        assert_eq!(list_text(&[]), "no install hooks are declared\n");
    }

    #[test]
    fn a_log_says_whose_it_is() {
        let record = hook("org.example/a", Phase::PreInstall, HookOutcome::Failed);
        let log = |output: &str| {
            let log = HookLog {
                run: "r".to_owned(),
                record: record.clone(),
                output: output.to_owned(),
            };
            log_text(Some(&log))
        };
        let heading = "org.example/a 1.0.0  pre-install  failed (exit 3)  run r\n";
        assert_eq!(log("a\tb\u{1b}\nc\n"), format!("{heading}a\tb\\x1B\nc\n"));
        assert_eq!(log(""), format!("{heading}(it printed nothing)\n"));
        assert_eq!(log_text(None), "no output of an install hook is kept\n");
    }
}
