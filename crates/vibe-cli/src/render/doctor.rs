//! The state of the environment as text: a line for each look, in groups.

use vibe_install::{Check, CheckStatus};

use super::style::{ADDED, DIM, ERROR, HINT, WARNING, paint};
use super::{columns, count};
use crate::environment::{Environment, Setting};

/// The report.
pub(crate) fn text(environment: &Environment) -> String {
    let mut lines = Vec::new();
    let mut rest = &environment.checks[..];
    while let Some(first) = rest.first() {
        let length = rest.iter().take_while(|c| c.group == first.group).count();
        let (group, after) = rest.split_at(length);
        lines.push(first.group.to_owned());
        lines.extend(check_lines(group));
        rest = after;
    }
    lines.push("settings".to_owned());
    lines.extend(setting_lines(&environment.settings));
    lines.push(summary(environment));
    lines.join("\n") + "\n"
}

fn check_lines(group: &[Check]) -> Vec<String> {
    let row = |check: &Check| vec![check.name.to_owned(), check.found.clone()];
    let rows: Vec<Vec<String>> = group.iter().map(row).collect();
    let mut lines = Vec::new();
    for (check, row) in group.iter().zip(columns(&rows)) {
        lines.push(format!("  {}  {row}", status(check.status)));
        if let Some(hint) = &check.hint {
            lines.push(format!("           {} {hint}", paint(HINT, "hint:")));
        }
    }
    lines
}

fn setting_lines(settings: &[Setting]) -> Vec<String> {
    let row = |setting: &Setting| {
        let from = match &setting.from {
            Some(from) => format!("{}: {from}", setting.origin),
            None => setting.origin.to_owned(),
        };
        vec![setting.name.clone(), setting.value.clone(), from]
    };
    let rows: Vec<Vec<String>> = settings.iter().map(row).collect();
    let rows = columns(&rows).into_iter();
    rows.map(|row| format!("  {}  {row}", status(CheckStatus::Ok)))
        .collect()
}

/// The word for a status, in a column of its own.
fn status(status: CheckStatus) -> String {
    let (style, word) = match status {
        CheckStatus::Ok => (ADDED, "ok"),
        CheckStatus::Warning => (WARNING, "warning"),
        CheckStatus::Problem => (ERROR, "problem"),
    };
    format!("{}{}", paint(style, word), " ".repeat(7 - word.len()))
}

fn summary(environment: &Environment) -> String {
    let (problems, warnings) = (environment.problems, environment.warnings);
    match (problems, warnings) {
        (0, 0) => paint(DIM, "all is well"),
        _ => format!(
            "{}, {}",
            count(problems, "problem"),
            count(warnings, "warning")
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(group: &'static str, name: &'static str, status: CheckStatus) -> Check {
        let hint = (status != CheckStatus::Ok).then(|| "do it".to_owned());
        Check {
            group,
            name,
            status,
            found: "found".to_owned(),
            hint,
        }
    }

    #[test]
    fn what_was_found_is_shown_in_groups_and_counted() {
        let setting = Setting {
            name: "offline".to_owned(),
            value: "no".to_owned(),
            origin: "environment",
            from: Some("VIBE_OFFLINE".to_owned()),
        };
        let environment = Environment {
            checks: vec![
                check("vibe", "version", CheckStatus::Ok),
                check("tools", "git", CheckStatus::Warning),
                check("tools", "bash-x", CheckStatus::Problem),
            ],
            settings: vec![setting],
            problems: 1,
            warnings: 1,
        };
        let text = anstream::adapter::strip_str(&text(&environment)).to_string();
        insta::assert_snapshot!(text, @r"
        vibe
          ok       version  found
        tools
          warning  git     found
                   hint: do it
          problem  bash-x  found
                   hint: do it
        settings
          ok       offline  no  environment: VIBE_OFFLINE
        1 problem, 1 warning
        ");
    }
}
