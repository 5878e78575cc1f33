//! What holds a package in the project.

use vibe_install::{RequirementSummary, WhyReport};

use super::list::flags;

/// Steps by which a chain goes further in at most: a longer one goes on below, so that what is
/// printed does not grow with the square of its length.
const STEPS_IN: usize = 20;

/// The package, then each chain of requirements, a step further in with each.
pub(crate) fn text(report: &WhyReport) -> String {
    let package = &report.package;
    let heading = format!(
        "{} {}  {}",
        package.id,
        package.version,
        flags(package).join(", ")
    );
    let mut lines = vec![heading.trim_end().to_owned()];
    if report.chains.is_empty() {
        lines.push("  nothing requires it any more".to_owned());
    }
    for chain in &report.chains {
        let steps = chain.iter().enumerate();
        lines.extend(steps.map(|(depth, step)| {
            let indent = 2 + 2 * depth.min(STEPS_IN);
            format!("{:indent$}{}", "", requirement(step))
        }));
    }
    if report.more > 0 {
        lines.push(format!("  and {} more", report.more));
    }
    lines.join("\n") + "\n"
}

/// A requirement as a sentence.
fn requirement(step: &RequirementSummary) -> String {
    let version = step.version.iter().map(|version| format!(" {version}"));
    let version: String = version.collect();
    let requirement = step.requirement.iter().map(|text| format!(" {text}"));
    let requirement: String = requirement.collect();
    format!(
        "{}{version} requires {}{requirement}",
        step.requirer, step.package
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::{id, package};

    fn step(requirer: &str, version: Option<&str>, required: &str) -> RequirementSummary {
        RequirementSummary {
            requirer: requirer.to_owned(),
            version: version.map(str::to_owned),
            package: id(required),
            requirement: version.is_none().then(|| "^1".to_owned()),
        }
    }

    #[test]
    fn each_chain_goes_a_step_further_in_with_each_requirement() {
        let mut report = WhyReport {
            package: package("a/y", "1.0.0"),
            chains: vec![
                vec![step("world", None, "a/y")],
                vec![
                    step("world", None, "a/x"),
                    step("a/x", Some("2.0.0"), "a/y"),
                ],
            ],
            more: 2,
        };
        assert_eq!(
            text(&report),
            "a/y 1.0.0
  world requires a/y ^1
  world requires a/x ^1
    a/x 2.0.0 requires a/y
  and 2 more
"
        );
        report.chains.clear();
        report.more = 0;
        report.package.installed = false;
        assert_eq!(
            text(&report),
            "a/y 1.0.0  not installed\n  nothing requires it any more\n"
        );
    }
}
