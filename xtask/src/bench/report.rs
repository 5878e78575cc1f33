//! Samples against budgets, and both as a table.

use std::fmt;

use super::measure::Samples;
use crate::Outcome;

/// The heads of the table.
const HEAD: [&str; COLUMNS] = [
    "",
    "median ms",
    "min ms",
    "cpu ms",
    "peak MiB",
    "ratio",
    "budget",
];
const COLUMNS: usize = 7;

/// What a contender may cost.
pub(crate) struct Budget {
    /// Whose budget it is.
    pub(crate) of: &'static str,
    /// How much.
    pub(crate) limit: Limit,
}

/// A most that something may be.
pub(crate) enum Limit {
    /// Times as long as another contender takes.
    Times { other: &'static str, at_most: f64 },
    /// Peak memory.
    Mebibytes(u32),
    /// Something that was counted, if it could be.
    Count {
        what: &'static str,
        found: Option<usize>,
        at_most: usize,
    },
}

/// A contender in the table: its name, and the one that its time is shown in multiples of.
pub(crate) struct Row {
    pub(crate) name: &'static str,
    pub(crate) floor: &'static str,
}

/// Whether a budget is kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Verdict {
    Pass,
    Over,
    /// What it compares with was not measured.
    Open,
}

/// A budget, judged.
struct Judged {
    of: &'static str,
    verdict: Verdict,
    text: String,
}

/// What was measured, as lines to print and as what is over its budget.
pub(crate) struct Report {
    pub(crate) lines: Vec<String>,
    pub(crate) outcome: Outcome,
}

/// Judges `budgets`, and shows `rows` in this order with what was measured of them.
pub(crate) fn report(samples: &[Samples], rows: &[Row], budgets: &[Budget]) -> Report {
    let judged: Vec<Judged> = budgets.iter().map(|it| it.judge(samples)).collect();
    let shown = rows.iter().filter_map(|row| cells(row, samples, &judged));
    let mut lines = table(&shown.collect::<Vec<_>>());
    lines.push(String::new());
    lines.extend(judged.iter().map(Judged::to_string));
    let of = |verdict| judged.iter().filter(move |it| it.verdict == verdict);
    let mut summary = format!(
        "bench: {} budgets, {} over",
        judged.len(),
        of(Verdict::Over).count()
    );
    if of(Verdict::Open).next().is_some() {
        summary = format!("{summary}, {} not measured", of(Verdict::Open).count());
    }
    let problems = of(Verdict::Over).map(|it| format!("over budget: {}", it.text));
    let problems = problems.collect();
    Report {
        lines,
        outcome: Outcome { problems, summary },
    }
}

/// The samples of a contender, if it took part.
fn find<'a>(samples: &'a [Samples], name: &str) -> Option<&'a Samples> {
    samples.iter().find(|it| it.name == name)
}

impl Budget {
    fn judge(&self, samples: &[Samples]) -> Judged {
        let of = self.of;
        let ours = find(samples, of);
        let (found, at_most, text) = match &self.limit {
            Limit::Times { other, at_most } => {
                let ratio = ours.and_then(|it| Some(it.ratio_to(find(samples, other)?)));
                (
                    ratio,
                    *at_most,
                    format!("{of}: %% x {other}, at most {at_most}"),
                )
            }
            Limit::Mebibytes(at_most) => {
                let peak = ours.map(Samples::peak_mib);
                (
                    peak,
                    f64::from(*at_most),
                    format!("{of}: %% MiB, at most {at_most}"),
                )
            }
            Limit::Count {
                what,
                found,
                at_most,
            } => {
                let found = found.map(|found| found as f64);
                (
                    found,
                    *at_most as f64,
                    format!("{of}: %% {what}, at most {at_most}"),
                )
            }
        };
        let digits = match self.limit {
            Limit::Times { .. } => 2,
            Limit::Mebibytes(_) => 1,
            Limit::Count { .. } => 0,
        };
        let shown = found.map_or_else(|| "?".to_owned(), |found| format!("{found:.digits$}"));
        Judged {
            of,
            verdict: judge(found, at_most),
            text: text.replace("%%", &shown),
        }
    }
}

fn judge(found: Option<f64>, at_most: f64) -> Verdict {
    match found {
        None => Verdict::Open,
        Some(found) if found <= at_most => Verdict::Pass,
        Some(_) => Verdict::Over,
    }
}

/// The cells of one row, if its contender took part.
fn cells(row: &Row, samples: &[Samples], judged: &[Judged]) -> Option<[String; COLUMNS]> {
    let ours = find(samples, row.name)?;
    let ratio = find(samples, row.floor).map_or_else(String::new, |floor| {
        format!("{:.2} x {}", ours.ratio_to(floor), row.floor)
    });
    let verdicts = || judged.iter().filter(|it| it.of == row.name);
    let verdict = match verdicts().any(|it| it.verdict == Verdict::Over) {
        true => "OVER BUDGET",
        false if verdicts().any(|it| it.verdict == Verdict::Open) => "not all measured",
        false if verdicts().next().is_some() => "pass",
        false => "",
    };
    Some([
        row.name.to_owned(),
        format!("{:.1}", ours.median_ms()),
        format!("{:.1}", ours.least_ms()),
        format!("{:.1}", ours.computed_ms()),
        format!("{:.1}", ours.peak_mib()),
        ratio,
        verdict.to_owned(),
    ])
}

/// Aligned columns: numbers to the right, words to the left.
fn table(rows: &[[String; COLUMNS]]) -> Vec<String> {
    let head = HEAD.map(str::to_owned);
    let all = || std::iter::once(&head).chain(rows);
    let width = |column: usize| all().map(|row| row[column].chars().count()).max();
    let widths: Vec<usize> = (0..COLUMNS)
        .map(|column| width(column).unwrap_or(0))
        .collect();
    let line = |row: &[String; COLUMNS]| {
        let cells = row.iter().zip(&widths).enumerate();
        let cells = cells.map(|(column, (cell, &width))| match column {
            1..=4 => format!("{cell:>width$}"),
            _ => format!("{cell:<width$}"),
        });
        cells.collect::<Vec<_>>().join("  ").trim_end().to_owned()
    };
    all().map(line).collect()
}

impl fmt::Display for Judged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.verdict {
            Verdict::Pass => "pass",
            Verdict::Over => "OVER",
            Verdict::Open => "not measured",
        };
        write!(f, "{word:<4}  {}", self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::bench::measure::tests::samples;

    fn budget(limit: Limit) -> Budget {
        Budget { of: "ours", limit }
    }

    fn times(at_most: f64) -> Limit {
        let other = "theirs";
        Limit::Times { other, at_most }
    }

    fn count(found: Option<usize>) -> Limit {
        Limit::Count {
            what: "calls",
            found,
            at_most: 190,
        }
    }

    /// Checks a budget of a program that takes 30 ms and 20 MiB, where another takes 20 ms.
    fn check(limit: Limit, line: &str, is_problem: bool) {
        let samples = [
            samples("ours", &[30, 30, 30], 20),
            samples("theirs", &[20, 20, 20], 1),
        ];
        let report = report(&samples, &[], &[budget(limit)]);
        assert_eq!(report.lines.last().map(String::as_str), Some(line));
        assert_eq!(!report.outcome.problems.is_empty(), is_problem);
    }

    #[test]
    fn a_budget_is_kept_up_to_its_limit() {
        check(times(1.5), "pass  ours: 1.50 x theirs, at most 1.5", false);
        check(times(1.4), "OVER  ours: 1.50 x theirs, at most 1.4", true);
        check(
            Limit::Mebibytes(20),
            "pass  ours: 20.0 MiB, at most 20",
            false,
        );
        check(
            Limit::Mebibytes(19),
            "OVER  ours: 20.0 MiB, at most 19",
            true,
        );
        check(
            count(Some(190)),
            "pass  ours: 190 calls, at most 190",
            false,
        );
        check(count(Some(191)), "OVER  ours: 191 calls, at most 190", true);
    }

    #[test]
    fn what_was_not_measured_is_said_and_is_no_problem() {
        check(
            count(None),
            "not measured  ours: ? calls, at most 190",
            false,
        );
        let other = "nobody";
        let limit = Limit::Times {
            other,
            at_most: 1.0,
        };
        check(limit, "not measured  ours: ? x nobody, at most 1", false);
    }

    #[test]
    fn the_table_has_those_who_took_part_in_the_order_that_was_asked_for() {
        let samples = [
            samples("ours", &[30, 10, 60], 20),
            samples("theirs", &[20, 20, 20], 1),
        ];
        let rows = ["theirs", "nobody", "ours"].map(|name| Row {
            name,
            floor: "theirs",
        });
        let budgets = [
            budget(times(1.0)),
            budget(Limit::Mebibytes(64)),
            budget(count(None)),
        ];
        let report = report(&samples, &rows, &budgets);
        let expected = "
        median ms  min ms  cpu ms  peak MiB  ratio          budget
theirs       20.0    20.0    10.0       1.0  1.00 x theirs
ours         30.0    10.0    15.0      20.0  1.50 x theirs  OVER BUDGET

OVER  ours: 1.50 x theirs, at most 1
pass  ours: 20.0 MiB, at most 64
not measured  ours: ? calls, at most 190";
        assert_eq!(format!("\n{}", report.lines.join("\n")), expected);
        assert_eq!(
            report.outcome.summary,
            "bench: 3 budgets, 1 over, 1 not measured"
        );
        let problem = "over budget: ours: 1.50 x theirs, at most 1";
        assert_eq!(report.outcome.problems, [problem]);
    }
}
