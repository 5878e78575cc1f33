//! `cargo xtask conform`: is every requirement of the finished parts shown by a test?
//!
//! `conform/ids.txt` lists the requirements, `conform/part` says how many parts are finished, and
//! `conform/requirements.toml` names the tests that show each requirement. Three numbers must be
//! zero: untested (a requirement that no existing test shows), stale (a named test that does not
//! exist or is ignored), unknown (a name in `requirements.toml` that is no requirement).

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::workspace::{Error, Workspace};
use crate::{Outcome, test_list};

/// The name that stands for the self-check as a whole, where it has all its steps.
const SELF_CHECK: &str = "self-check";

/// What a self-check must run; each is one of several spellings.
const SELF_CHECK_STEPS: [&[&str]; 4] = [
    &["cargo fmt"],
    &["cargo clippy"],
    &["cargo nextest run", "cargo test"],
    &["cargo xtask conform"],
];

/// Reads the three files, lists the tests and compares.
pub(crate) fn run(workspace: &Workspace) -> Result<Outcome, Error> {
    let catalogue = parse_ids(&workspace.text("conform/ids.txt")?)?;
    let part = parse_part(&workspace.text("conform/part")?)?;
    let bound: Bindings = workspace.toml("conform/requirements.toml")?;
    let mut tests = test_list::existing_tests(workspace)?;
    let script = std::fs::read_to_string(workspace.path("self-check.sh")).unwrap_or_default();
    if has_all_steps(&script) {
        tests.insert(SELF_CHECK.to_owned());
    }
    Ok(compare(&catalogue, part, &bound.requirements, &tests).outcome())
}

/// Requirement ids; the part in which each must be shown, `None` where no test is needed.
type Catalogue = BTreeMap<String, Option<u32>>;

/// `conform/requirements.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bindings {
    requirements: BTreeMap<String, Vec<String>>,
}

/// Reads lines of id, class, part, source and gist, separated by tabs.
fn parse_ids(text: &str) -> Result<Catalogue, Error> {
    let mut catalogue = Catalogue::new();
    let lines = text.lines().enumerate();
    for (index, line) in lines.filter(|(_, line)| !line.is_empty() && !line.starts_with('#')) {
        let (id, part) = parse_id_line(line).ok_or_else(|| refused_line(index + 1, line))?;
        if catalogue.insert(id, part).is_some() {
            return Err(refused_line(index + 1, line));
        }
    }
    Ok(catalogue)
}

fn refused_line(number: usize, line: &str) -> Error {
    Error::Content {
        what: format!("conform/ids.txt line {number}"),
        reason: format!("not a new id with a known class and a part: `{line}`"),
    }
}

fn parse_id_line(line: &str) -> Option<(String, Option<u32>)> {
    let [id, class, part, _source, _gist] = line.split('\t').collect::<Vec<_>>()[..] else {
        return None;
    };
    let part = part.parse().ok()?;
    match class {
        "rule" | "differs" => Some((id.to_owned(), Some(part))),
        "context" | "superseded" | "not-built" => Some((id.to_owned(), None)),
        _ => None,
    }
}

fn parse_part(text: &str) -> Result<u32, Error> {
    text.trim().parse().map_err(|_| Error::Content {
        what: "conform/part".to_owned(),
        reason: format!("`{}` is not the number of a part", text.trim()),
    })
}

/// Whether `script` runs every step of the self-check, comments not counted.
fn has_all_steps(script: &str) -> bool {
    let code: Vec<&str> = script
        .lines()
        .filter(|line| !line.trim_start().starts_with('#'))
        .collect();
    SELF_CHECK_STEPS.iter().all(|spellings| {
        spellings
            .iter()
            .any(|step| code.iter().any(|line| line.contains(step)))
    })
}

/// What the comparison found.
#[derive(Debug, PartialEq, Eq, Default)]
struct Findings<'a> {
    /// How many requirements must be shown.
    required: usize,
    /// Requirements that no existing test shows.
    untested: Vec<&'a str>,
    /// Requirement and named test, where the test does not exist.
    stale: Vec<(&'a str, &'a str)>,
    /// Names bound to tests that are no requirement.
    unknown: Vec<&'a str>,
}

fn compare<'a>(
    catalogue: &'a Catalogue,
    part: u32,
    bound: &'a BTreeMap<String, Vec<String>>,
    tests: &BTreeSet<String>,
) -> Findings<'a> {
    let mut findings = Findings::default();
    for (id, due) in catalogue {
        if due.is_some_and(|due| due <= part) {
            findings.required += 1;
            let mut named = bound.get(id).into_iter().flatten();
            if !named.any(|test| tests.contains(test)) {
                findings.untested.push(id);
            }
        }
    }
    for (id, named) in bound {
        if !catalogue.contains_key(id) {
            findings.unknown.push(id);
        }
        let missing = named.iter().filter(|test| !tests.contains(*test));
        findings
            .stale
            .extend(missing.map(|test| (id.as_str(), test.as_str())));
    }
    findings
}

impl Findings<'_> {
    fn outcome(&self) -> Outcome {
        let untested = self.untested.iter();
        let stale = self.stale.iter();
        let unknown = self.unknown.iter();
        Outcome {
            problems: untested
                .map(|id| format!("untested: {id}"))
                .chain(stale.map(|(id, test)| format!("stale: {id} names {test}")))
                .chain(unknown.map(|id| format!("unknown: {id}")))
                .collect(),
            summary: format!(
                "conform: {} of {} shown, {} untested, {} stale, {} unknown",
                self.required - self.untested.len(),
                self.required,
                self.untested.len(),
                self.stale.len(),
                self.unknown.len()
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const IDS: &str = "# a comment\n\
        A\trule\t1\ts\tgist\n\
        B\tdiffers\t2\ts\tgist\n\
        C\tcontext\t1\ts\tgist\n\
        D\trule\t3\ts\tgist\n\
        E\tsuperseded\t1\ts\tgist\n\
        F\tnot-built\t1\ts\tgist\n";

    /// Compares `bindings` (TOML) with the two tests `t::one` and `t::two` at part 2.
    fn check(bindings: &str, summary: &str, problems: &[&str]) {
        let catalogue = parse_ids(IDS).unwrap();
        let bound: Bindings = toml::from_str(&format!("[requirements]\n{bindings}")).unwrap();
        let tests = ["t::one", "t::two"].map(str::to_owned).into();
        let outcome = compare(&catalogue, 2, &bound.requirements, &tests).outcome();
        assert_eq!(outcome.summary, format!("conform: {summary}"));
        assert_eq!(outcome.problems, problems);
    }

    #[test]
    fn a_requirement_of_a_finished_part_needs_a_test() {
        check(
            "",
            "0 of 2 shown, 2 untested, 0 stale, 0 unknown",
            &["untested: A", "untested: B"],
        );
        check(
            "A = []\nB = ['t::one']",
            "1 of 2 shown, 1 untested, 0 stale, 0 unknown",
            &["untested: A"],
        );
        check(
            "A = ['t::one', 't::two']\nB = ['t::one']",
            "2 of 2 shown, 0 untested, 0 stale, 0 unknown",
            &[],
        );
    }

    #[test]
    fn a_named_test_that_does_not_exist_is_stale_and_shows_nothing() {
        check(
            "A = ['t::gone']\nB = ['t::one', 't::lost']",
            "1 of 2 shown, 1 untested, 2 stale, 0 unknown",
            &[
                "untested: A",
                "stale: A names t::gone",
                "stale: B names t::lost",
            ],
        );
    }

    #[test]
    fn a_name_that_is_no_requirement_is_unknown() {
        check(
            "A = ['t::one']\nB = ['t::one']\nZ = ['t::two']",
            "2 of 2 shown, 0 untested, 0 stale, 1 unknown",
            &["unknown: Z"],
        );
    }

    #[test]
    fn later_parts_and_context_may_be_bound_early() {
        check(
            "A = ['t::one']\nB = ['t::one']\nC = ['t::one']\nD = ['t::two']",
            "2 of 2 shown, 0 untested, 0 stale, 0 unknown",
            &[],
        );
    }

    #[test]
    fn id_lines_of_another_shape_are_refused_by_number() {
        for line in [
            "A\trule\t1\ts",
            "A\trule\t1\ts\tgist\tmore",
            "A\trule\tone\ts\tgist",
            "A\tlaw\t1\ts\tgist",
            "X\trule\t1\ts\tgist\nX\trule\t1\ts\tgist",
        ] {
            let last = line.lines().count() + 1;
            let error = parse_ids(&format!("# head\n{line}\n")).unwrap_err();
            let start = format!("conform/ids.txt line {last}: ");
            assert!(error.to_string().starts_with(&start), "{error}");
        }
    }

    #[test]
    fn part_is_a_number() {
        assert_eq!(parse_part("12\n").unwrap(), 12);
        assert!(parse_part("").is_err());
        assert!(parse_part("one").is_err());
    }

    #[test]
    fn self_check_counts_only_with_all_its_steps() {
        let steps = [
            "cargo fmt --check",
            "cargo clippy -- -D warnings",
            "cargo nextest run",
            "  cargo xtask conform",
        ];
        assert!(has_all_steps(&steps.join("\n")));
        assert!(has_all_steps(
            &steps.join("\n").replace("nextest run", "test")
        ));
        for left_out in 0..steps.len() {
            let mut some = steps.to_vec();
            some.remove(left_out);
            assert!(!has_all_steps(&some.join("\n")), "without {left_out}");
            let commented = format!("{}\n # {}", some.join("\n"), steps[left_out]);
            assert!(!has_all_steps(&commented), "commented {left_out}");
        }
        assert!(!has_all_steps(""));
    }
}
