//! Errors, warnings and hints for people.

use unicode_width::UnicodeWidthStr;
use vibe_core::text::escape;

use super::hooks::escape_but_tabs;
use super::run::ending;
use super::style::{DIM, ERROR, HINT, WARNING, paint};
use crate::user_error::{FailedHook, Place, UserError};

/// Lines of a failed hook's output that are shown again, where they do not stand right above.
const TAIL_LINES: usize = 20;

/// The error, its causes, its place, what its install hook printed, and its hints.
pub(crate) fn text(error: &UserError) -> String {
    let mut lines = Vec::new();
    let mut message = error.message.lines().map(escape);
    lines.push(format!(
        "{} {}",
        paint(ERROR, "error:"),
        message.next().unwrap_or_default()
    ));
    lines.extend(message.map(indented));
    lines.extend(error.place.iter().flat_map(place_lines));
    lines.extend(
        error
            .causes
            .iter()
            .flat_map(|cause| cause.lines())
            .map(|line| indented(escape(line))),
    );
    lines.extend(error.hook.iter().flat_map(|hook| hook_lines(hook)));
    lines.push(hints(&error.hints));
    finish(&lines)
}

/// A warning of an install hook that failed after its package was installed.
pub(crate) fn flagged_text(hook: &FailedHook) -> String {
    let record = &hook.record;
    let mut lines = vec![format!(
        "{} the {} script of {} {}; the package is installed, and the next install runs the script again",
        paint(WARNING, "warning:"),
        record.phase,
        record.slot.title(),
        ending(record)
    )];
    lines.extend(
        record
            .remarks
            .iter()
            .map(|remark| indented(format!("it {}", escape(remark)))),
    );
    lines.extend(hook_lines(hook));
    finish(&lines)
}

/// `hint:` lines.
pub(crate) fn hints(hints: &[String]) -> String {
    let line = |hint: &String| format!("{} {}", paint(HINT, "hint:"), escape(hint));
    hints.iter().map(line).collect::<Vec<_>>().join("\n")
}

fn finish(lines: &[String]) -> String {
    let lines: Vec<&str> = lines
        .iter()
        .map(String::as_str)
        .filter(|line| !line.is_empty())
        .collect();
    lines.join("\n") + "\n"
}

fn indented(line: String) -> String {
    format!("  {line}")
}

fn place_lines(place: &Place) -> Vec<String> {
    let path = escape(&place.path.to_string_lossy());
    let label = escape(&place.label);
    let (Some(position), Some(line)) = (place.position, &place.line_text) else {
        return vec![format!("  --> {path}"), indented(label)];
    };
    let number = position.line.to_string();
    let gap = " ".repeat(number.len());
    let before: String = line.chars().take(place.before).collect();
    let mark = format!("{}^ {label}", " ".repeat(before.width()));
    vec![
        format!("  {gap}--> {path}:{number}:{}", position.column),
        format!("  {gap} |"),
        format!("  {number} | {line}"),
        format!("  {gap} | {}", paint(ERROR, &mark)),
    ]
}

fn hook_lines(hook: &FailedHook) -> Vec<String> {
    let again = (!hook.was_heard).then_some(hook.record.tail.as_str());
    let lines: Vec<&str> = again.unwrap_or_default().lines().collect();
    let cut = lines.len().saturating_sub(TAIL_LINES);
    let mut shown = Vec::new();
    if cut > 0 {
        shown.push(indented(paint(DIM, "| ...")));
    }
    let bar = paint(DIM, "|");
    shown.extend(
        lines[cut..]
            .iter()
            .map(|line| indented(format!("{bar} {}", escape_but_tabs(line)))),
    );
    if let Some(log) = &hook.log {
        shown.push(indented(format!("log: {}", escape(log))));
    }
    if hook.variables_not_passed {
        shown.push(indented(
            "some variables of your environment were not passed to it; `[hooks] pass-env` in \
             config.toml names more"
                .to_owned(),
        ));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::{hook, plain};
    use std::path::Path;
    use vibe_core::formats::diagnostic::Diagnostic;
    use vibe_core::hook::Phase;
    use vibe_install::HookOutcome;

    #[test]
    fn an_error_says_what_why_and_what_to_do() {
        let mut error = UserError::new("x", 1, "no a\nbecause b")
            .caused_by("c\nd")
            .caused_by("e");
        error.hints = vec!["f".to_owned(), "g".to_owned()];
        let expected = "error: no a\n  because b\n  c\n  d\n  e\nhint: f\nhint: g\n";
        assert_eq!(plain(&text(&error)), expected);
        assert_eq!(
            plain(&text(&UserError::new("x", 1, "a\u{1b}[2J"))),
            "error: a\\x1B[2J\n"
        );
    }

    fn manifest(text_before: &str, line: &str) -> String {
        let whole = format!("{text_before}{line}\n");
        let diagnostic = Diagnostic::at(&whole, whole.find("bad").unwrap(), "it is bad");
        let error = UserError::new("x", 2, "/p/vibe.toml is not valid");
        plain(&text(&error.at(Path::new("/p/vibe.toml"), &diagnostic)))
    }

    #[test]
    fn a_manifest_error_points_into_its_line() {
        assert_eq!(
            manifest(&"\n".repeat(11), "x = bad"),
            "error: /p/vibe.toml is not valid\n    --> /p/vibe.toml:12:5\n     |\n  \
             12 | x = bad\n     |     ^ it is bad\n"
        );
        assert!(manifest("", "bad").ends_with("  1 | bad\n    | ^ it is bad\n"));
    }

    #[test]
    fn the_caret_stands_under_its_place_whatever_is_before_it() {
        for (line, shown) in [
            ("\tbad", "    bad"),
            ("\u{202e} bad", "U+202E bad"),
            ("漢字 bad", "漢字 bad"),
            ("é😀 bad", "é😀 bad"),
        ] {
            let text = manifest("", line);
            let caret = " ".repeat(shown.width() - 3);
            let expected = format!("  1 | {shown}\n    | {caret}^ it is bad\n");
            assert!(text.ends_with(&expected), "{text}");
        }
        let text = manifest("", &format!("{}bad", "x".repeat(300)));
        let (space, before) = (" ".repeat(70), "x".repeat(69));
        let expected = format!("  1 | …{before}bad\n    | {space}^ it is bad\n");
        assert!(text.ends_with(&expected), "{text}");
    }

    #[test]
    fn a_text_that_is_wrong_as_a_whole_names_its_file() {
        let error = UserError::new("x", 2, "a").at(Path::new("/p"), &Diagnostic::new("b"));
        assert_eq!(plain(&text(&error)), "error: a\n  --> /p\n  b\n");
    }

    fn failed(lines: usize) -> FailedHook {
        let mut record = hook("org.example/a", Phase::PostInstall, HookOutcome::Failed);
        record.tail = (1..=lines)
            .map(|line| format!("line\t{line}\u{1b}\n"))
            .collect();
        FailedHook {
            record,
            variables_not_passed: false,
            log: None,
            was_heard: false,
        }
    }

    #[test]
    fn the_end_of_a_failed_hooks_output_is_shown_again() {
        let shown = plain(&flagged_text(&failed(20)));
        assert!(!shown.contains("| ..."), "{shown}");
        assert!(shown.contains("\n  | line\t1\\x1B\n"), "{shown}");
        let shown = plain(&flagged_text(&failed(21)));
        assert!(shown.contains("\n  | ...\n  | line\t2\\x1B\n"), "{shown}");
        assert!(shown.ends_with("\n  | line\t21\\x1B\n"), "{shown}");
        let mut heard = failed(21);
        heard.was_heard = true;
        assert!(!flagged_text(&heard).contains("line"));
    }

    #[test]
    fn a_flagged_hook_names_its_log_and_what_it_did_not_get() {
        let mut flagged = failed(0);
        flagged.record.remarks = vec!["changed vibe.lock".to_owned()];
        flagged.log = Some("vibedeps/.state/runs/r/a.log".to_owned());
        flagged.variables_not_passed = true;
        assert_eq!(
            plain(&flagged_text(&flagged)),
            "warning: the post-install script of org.example/a 1.0.0 failed (exit 3); the package is \
             installed, and the next install runs the script again\n  it changed vibe.lock\n  \
             log: vibedeps/.state/runs/r/a.log\n  \
             some variables of your environment were not passed to it; `[hooks] pass-env` in \
             config.toml names more\n"
        );
    }
}
