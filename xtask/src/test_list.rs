//! The tests that really exist and run, as the test runner lists them.
//!
//! A test's name is `<binary id>::<path of the test>`. The binary id is nextest's: the package for
//! a library (`vibe-core`), `<package>::<target>` for a test target (`vibe-cli::suite`),
//! `<package>::bin/<target>` for a binary (`vibe-cli::bin/vibe`). An ignored test shows nothing, so
//! it is not listed.

use std::collections::{BTreeMap, BTreeSet};

use serde::Deserialize;

use crate::workspace::{Error, Workspace, parse_json};

/// Builds the tests and lists them, with nextest where it is installed.
pub(crate) fn existing_tests(workspace: &Workspace) -> Result<BTreeSet<String>, Error> {
    match workspace.output("cargo", &["--list"])? {
        commands if has_command(&commands, "nextest") => listed_by_nextest(workspace),
        _ => listed_by_cargo(workspace),
    }
}

/// Whether `cargo --list` names `command`.
fn has_command(listing: &str, command: &str) -> bool {
    listing
        .lines()
        .any(|line| line.split_whitespace().next() == Some(command))
}

const NEXTEST_LIST: [&str; 6] = [
    "nextest",
    "list",
    "--workspace",
    "--cargo-quiet",
    "--message-format",
    "json",
];

fn listed_by_nextest(workspace: &Workspace) -> Result<BTreeSet<String>, Error> {
    let text = workspace.output("cargo", &NEXTEST_LIST)?;
    parse_json("cargo nextest list", &text).map(|listing| nextest_names(&listing))
}

/// The part of `cargo nextest list --message-format json` that matters here.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct NextestListing {
    rust_suites: BTreeMap<String, NextestSuite>,
}

#[derive(Deserialize)]
struct NextestSuite {
    testcases: BTreeMap<String, NextestCase>,
}

#[derive(Deserialize)]
struct NextestCase {
    ignored: bool,
}

fn nextest_names(listing: &NextestListing) -> BTreeSet<String> {
    let of_suite = |(binary, suite): (&String, &NextestSuite)| {
        let running = suite.testcases.iter().filter(|(_, case)| !case.ignored);
        running
            .map(|(test, _)| format!("{binary}::{test}"))
            .collect::<Vec<_>>()
    };
    listing.rust_suites.iter().flat_map(of_suite).collect()
}

const CARGO_BUILD_TESTS: [&str; 7] = [
    "test",
    "--workspace",
    "--tests",
    "--no-run",
    "--quiet",
    "--message-format",
    "json",
];

fn listed_by_cargo(workspace: &Workspace) -> Result<BTreeSet<String>, Error> {
    let messages = workspace.output("cargo", &CARGO_BUILD_TESTS)?;
    let mut names = BTreeSet::new();
    for line in messages.lines() {
        let artifact: Artifact = parse_json("cargo test --no-run", line)?;
        let Some((binary, executable)) = artifact.test_binary() else {
            continue;
        };
        let list = ["--list", "--format", "terse"];
        let all = workspace.output(executable, &list)?;
        let ignored = workspace.output(executable, &[&list[..], &["--ignored"]].concat())?;
        names.extend(libtest_names(&binary, &all, &ignored));
    }
    Ok(names)
}

/// A message of cargo; every field is missing in some kind of message.
#[derive(Deserialize)]
struct Artifact {
    package_id: Option<String>,
    target: Option<Target>,
    profile: Option<Profile>,
    executable: Option<String>,
}

#[derive(Deserialize)]
struct Target {
    name: String,
    kind: Vec<String>,
}

#[derive(Deserialize)]
struct Profile {
    test: bool,
}

impl Artifact {
    /// The binary id and the executable, when this is a binary of tests.
    fn test_binary(&self) -> Option<(String, &str)> {
        let target = self.target.as_ref()?;
        let package = package_name(self.package_id.as_deref()?);
        let executable = self.executable.as_deref()?;
        if !self.profile.as_ref()?.test {
            return None;
        }
        let binary = match target.kind.first().map(String::as_str) {
            Some("test") => format!("{package}::{}", target.name),
            Some("bin") => format!("{package}::bin/{}", target.name),
            _ => package.to_owned(),
        };
        Some((binary, executable))
    }
}

/// The package's name in `path+file:///…/NAME#VERSION` or `path+file:///…#NAME@VERSION`: cargo
/// writes the name only where it differs from the folder's.
fn package_name(id: &str) -> &str {
    let (location, tail) = id.split_once('#').unwrap_or((id, ""));
    match tail.split_once('@') {
        Some((name, _)) => name,
        None => location.rsplit('/').next().unwrap_or(location),
    }
}

/// The names in a terse listing, `PATH: test` on each line, without the ignored ones.
fn libtest_names(binary: &str, all: &str, ignored: &str) -> BTreeSet<String> {
    let tests = |text: &str| -> BTreeSet<String> {
        text.lines()
            .filter_map(|line| line.strip_suffix(": test"))
            .map(|test| format!("{binary}::{test}"))
            .collect()
    };
    &tests(all) - &tests(ignored)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(expected: &[&str]) -> BTreeSet<String> {
        expected.iter().map(|name| (*name).to_owned()).collect()
    }

    #[test]
    fn nextest_listing_gives_binary_and_path_of_tests_that_run() {
        let listing = r#"{"test-count": 3, "rust-suites": {
            "vibe-core": {"testcases": {
                "tree::tests::one": {"kind": "test", "ignored": false},
                "tree::tests::slow": {"kind": "test", "ignored": true}}},
            "vibe-cli::suite": {"testcases": {"install::two": {"ignored": false}}}}}"#;
        assert_eq!(
            nextest_names(&parse_json("test", listing).unwrap()),
            names(&[
                "vibe-core::tree::tests::one",
                "vibe-cli::suite::install::two"
            ])
        );
    }

    #[test]
    fn terse_listing_gives_the_same_names() {
        let all = "tree::tests::one: test\ntree::tests::slow: test\nspeed: benchmark\n";
        assert_eq!(
            libtest_names("vibe-core", all, "tree::tests::slow: test\n"),
            names(&["vibe-core::tree::tests::one"])
        );
    }

    #[test]
    fn cargo_artifacts_have_the_binary_ids_of_nextest() {
        let check = |kind: &str, target: &str, test: bool, expected: Option<&str>| {
            let line = format!(
                r#"{{"reason": "compiler-artifact", "executable": "/t/x", "profile": {{"test": {test}}},
                "package_id": "path+file:///a/crates/vibe-cli#0.1.0",
                "target": {{"kind": ["{kind}"], "name": "{target}"}}}}"#
            );
            let artifact: Artifact = parse_json("test", &line).unwrap();
            let found = artifact.test_binary();
            assert_eq!(found.as_ref().map(|(id, _)| id.as_str()), expected);
            assert!(found.is_none_or(|(_, executable)| executable == "/t/x"));
        };
        check("lib", "vibe_cli", true, Some("vibe-cli"));
        check("bin", "vibe", true, Some("vibe-cli::bin/vibe"));
        check("test", "suite", true, Some("vibe-cli::suite"));
        check("bin", "vibe", false, None);
    }

    #[test]
    fn messages_without_an_executable_are_passed_over() {
        let line = r#"{"reason": "build-finished", "success": true}"#;
        let artifact: Artifact = parse_json("test", line).unwrap();
        assert!(artifact.test_binary().is_none());
    }

    #[test]
    fn package_names_come_from_either_form_of_id() {
        assert_eq!(
            package_name("path+file:///a/crates/vibe-fs#0.1.0"),
            "vibe-fs"
        );
        assert_eq!(
            package_name("path+file:///a/other#vibe-fs@0.1.0"),
            "vibe-fs"
        );
    }

    #[test]
    fn a_command_is_found_by_its_whole_name() {
        let listing = "Installed Commands:\n    nextest-metadata\n    test    Run the tests\n";
        assert!(has_command(listing, "test"));
        assert!(!has_command(listing, "nextest"));
    }
}
