//! What `check` found.

use vibe_core::text::escape;
use vibe_install::{CheckReport, LintFinding, Severity};

use super::count;
use super::style::{ERROR, HINT, WARNING, paint};

/// The findings, each with its remedy below it, and what was looked at.
pub(crate) fn text(report: &CheckReport) -> String {
    let mut lines: Vec<String> = report.findings.iter().flat_map(finding_lines).collect();
    let notes = report.notes.iter();
    lines.extend(notes.map(|note| format!("note: {}", escape(note))));
    let looked_at = format!(
        "{} {}, {}",
        report.package,
        report.version,
        count(report.files, "file")
    );
    let found = [(report.errors, "error"), (report.warnings, "warning")];
    let found: Vec<String> = found
        .into_iter()
        .filter(|(number, _)| *number > 0)
        .map(|(number, noun)| count(number, noun))
        .collect();
    lines.push(match found.is_empty() {
        true => format!("checked {looked_at}: nothing is wrong"),
        false => format!("found {} in {looked_at}", found.join(" and ")),
    });
    lines.join("\n") + "\n"
}

fn finding_lines(finding: &LintFinding) -> [String; 2] {
    let severity = match finding.severity {
        Severity::Error => paint(ERROR, "error:"),
        Severity::Warning => paint(WARNING, "warning:"),
    };
    let mut place = finding.path.as_deref().map(escape).unwrap_or_default();
    for number in [finding.line, finding.column].into_iter().flatten() {
        place.push_str(&format!(":{number}"));
    }
    if !place.is_empty() {
        place.push_str(": ");
    }
    let message = escape(&finding.message);
    let remedy = escape(&finding.remedy);
    [
        format!("{severity} {place}{message}"),
        format!("    {} {remedy}", paint(HINT, "hint:")),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::{check_report, plain};

    #[test]
    fn each_finding_has_its_place_and_its_remedy() {
        let mut report = check_report();
        report.findings = vec![
            LintFinding::warning("no-readme", "no README", "add one"),
            LintFinding::error("x", "it is\u{1b} bad", "mend it")
                .of("hooks/a.sh")
                .at_line(3),
        ];
        (report.errors, report.warnings) = (1, 1);
        report.notes = vec!["so it is".to_owned()];
        assert_eq!(
            plain(&text(&report)),
            "warning: no README\n    hint: add one\nerror: hooks/a.sh:3: it is\\x1B bad\n    \
             hint: mend it\nnote: so it is\nfound 1 error and 1 warning in org.example/a 1.0.0, 2 files\n"
        );
    }

    #[test]
    fn a_sound_package_is_said_to_be_one() {
        assert_eq!(
            plain(&text(&check_report())),
            "checked org.example/a 1.0.0, 2 files: nothing is wrong\n"
        );
    }
}
