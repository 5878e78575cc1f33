//! What `verify` found.

use std::time::Duration;

use vibe_core::text::escape;
use vibe_install::{Finding, VerifyReport};

use super::style::{ERROR, paint};
use super::{columns, count, duration};

/// The findings as lines, and what was looked at.
pub(crate) fn text(report: &VerifyReport, elapsed: Duration) -> String {
    let rows: Vec<Vec<String>> = report.findings.iter().map(cells).collect();
    let mut lines: Vec<String> = columns(&rows)
        .iter()
        .map(|row| format!("{} {row}", paint(ERROR, "!")))
        .collect();
    lines.extend(
        report
            .notes
            .iter()
            .map(|note| format!("note: {}", escape(note))),
    );
    let looked_at = format!(
        "{}, {} in {}",
        count(report.packages, "package"),
        count(report.files, "file"),
        duration(elapsed)
    );
    lines.push(match report.findings.len() {
        0 => format!("verified {looked_at}: all is as vibe.lock says"),
        faults => format!("found {} in {looked_at}", count(faults, "fault")),
    });
    lines.join("\n") + "\n"
}

fn cells(finding: &Finding) -> Vec<String> {
    let package = finding
        .package
        .as_ref()
        .map(ToString::to_string)
        .unwrap_or_default();
    vec![package, escape(&finding.message)]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::{finding, plain};
    use vibe_install::FindingKind;

    #[test]
    fn findings_name_package_and_path() {
        let message = "x/y.txt has other bytes\u{1b}";
        let changed = finding("org.example/a", FindingKind::Changed, message);
        let lock = Finding {
            package: None,
            ..finding("org.example/a", FindingKind::Lock, "old")
        };
        let report = VerifyReport {
            packages: 2,
            files: 1,
            findings: vec![changed, lock],
            notes: vec!["a note".to_owned()],
        };
        assert_eq!(
            plain(&text(&report, Duration::from_millis(100))),
            "! org.example/a  x/y.txt has other bytes\\x1B
!                old
note: a note
found 2 faults in 2 packages, 1 file in 100ms
"
        );
        let sound = VerifyReport {
            packages: 1,
            files: 2,
            ..VerifyReport::default()
        };
        assert_eq!(
            text(&sound, Duration::ZERO),
            "verified 1 package, 2 files in 0ms: all is as vibe.lock says\n"
        );
    }
}
