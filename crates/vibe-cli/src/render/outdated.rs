//! What there is besides what is locked.

use vibe_core::text::escape;
use vibe_install::{OutdatedReport, OutdatedRow};

use super::list::open_phases;
use super::{Spare, columns_within, count};

/// What a narrow terminal does without, or has a part of: the source.
const SPARE: [Spare; 1] = [Spare::Part(4)];

/// What is shown of a commit.
const COMMIT_DIGITS: usize = 8;

/// What stands where something is not known.
const UNKNOWN: &str = "-";

/// A table with one line for each package, for a terminal of that width.
pub(crate) fn text(report: &OutdatedReport, width: Option<usize>) -> String {
    if report.rows.is_empty() {
        return match report.packages {
            0 => "no packages are installed\n".to_owned(),
            packages => format!("nothing newer is known of {}\n", count(packages, "package")),
        };
    }
    let heading = ["package", "current", "compatible", "latest", "source"];
    let heading = heading.map(str::to_owned).to_vec();
    let rows: Vec<Vec<String>> = std::iter::once(heading)
        .chain(report.rows.iter().map(cells))
        .collect();
    columns_within(&rows, width, &SPARE).join("\n") + "\n"
}

fn cells(row: &OutdatedRow) -> Vec<String> {
    let same_version = row.compatible.as_ref() == Some(&row.current);
    let by_commit = same_version && row.current_commit != row.compatible_commit;
    let shown = |version: &str, commit: &Option<String>| match commit {
        Some(commit) if by_commit => {
            let digits: String = commit.chars().take(COMMIT_DIGITS).collect();
            format!("{version} ({digits})")
        }
        _ => version.to_owned(),
    };
    let compatible = match &row.compatible {
        Some(version) => shown(version, &row.compatible_commit),
        None if row.unneeded => "removed".to_owned(),
        None => UNKNOWN.to_owned(),
    };
    let latest = match &row.latest {
        _ if row.pinned => "pinned".to_owned(),
        Some(version) if same_version && *version == row.current => compatible.clone(),
        Some(version) => version.clone(),
        None => UNKNOWN.to_owned(),
    };
    let reference = row
        .reference
        .iter()
        .map(|text| format!(" {}", escape(text)));
    let source = escape(&row.source) + &reference.collect::<String>();
    let no_answer = row.error.iter().map(|_| "gave no answer".to_owned());
    let absent = (!row.installed).then(|| "not installed".to_owned());
    let remarks = no_answer.chain(absent).chain(open_phases(&row.phases));
    vec![
        row.id.to_string(),
        shown(&row.current, &row.current_commit),
        compatible,
        latest,
        source,
        remarks.collect::<Vec<_>>().join(", "),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::id;

    fn row(name: &str) -> OutdatedRow {
        OutdatedRow {
            id: id(name),
            current: "1.0.0".to_owned(),
            current_commit: None,
            compatible: Some("1.1.0".to_owned()),
            compatible_commit: None,
            latest: Some("2.0.0".to_owned()),
            source: "dir+../registry".to_owned(),
            reference: None,
            pinned: false,
            unneeded: false,
            error: None,
            installed: true,
            phases: Vec::new(),
        }
    }

    #[test]
    fn each_package_is_a_line_under_a_heading() {
        let branch = OutdatedRow {
            current_commit: Some("1".repeat(40)),
            compatible: Some("1.0.0".to_owned()),
            compatible_commit: Some("2".repeat(40)),
            latest: Some("1.0.0".to_owned()),
            source: "git+https://host/b".to_owned(),
            reference: Some("branch:main".to_owned()),
            ..row("org.example/branch")
        };
        let pinned = OutdatedRow {
            compatible: Some("1.0.0".to_owned()),
            pinned: true,
            reference: Some("tag:v1.0.0".to_owned()),
            ..row("org.example/pinned")
        };
        let silent = OutdatedRow {
            compatible: None,
            latest: None,
            error: Some("no".to_owned()),
            installed: false,
            ..row("org.example/silent")
        };
        let unneeded = OutdatedRow {
            compatible: None,
            latest: None,
            unneeded: true,
            ..row("org.example/unneeded")
        };
        let report = OutdatedReport {
            packages: 5,
            rows: vec![row("org.example/a"), branch, pinned, silent, unneeded],
            ..OutdatedReport::default()
        };
        assert_eq!(
            text(&report, None),
            "\
package               current           compatible        latest            source
org.example/a         1.0.0             1.1.0             2.0.0             dir+../registry
org.example/branch    1.0.0 (11111111)  1.0.0 (22222222)  1.0.0 (22222222)  git+https://host/b branch:main
org.example/pinned    1.0.0             1.0.0             pinned            dir+../registry tag:v1.0.0
org.example/silent    1.0.0             -                 -                 dir+../registry                 gave no answer, not installed
org.example/unneeded  1.0.0             removed           -                 dir+../registry
"
        );
    }

    #[test]
    fn nothing_newer_is_said() {
        let packages = |packages| OutdatedReport {
            packages,
            ..OutdatedReport::default()
        };
        assert_eq!(text(&packages(0), None), "no packages are installed\n");
        assert_eq!(
            text(&packages(2), None),
            "nothing newer is known of 2 packages\n"
        );
    }
}
