//! `cargo xtask layers`: does every dependency between our crates go down?
//!
//! `conform/layers.toml` lists the allowed arrows. Checked as well: every crate takes the
//! workspace's lints, pure crates have a `clippy.toml` that bans the outside world, and only the
//! crates that talk to a terminal switch the print lints off.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::Outcome;
use crate::workspace::{Error, Workspace, parse_json, read, read_toml};

/// What a pure crate's `clippy.toml` must ban at least: one or more doors to each part of the
/// outside world.
const PURE_BANS: [&str; 12] = [
    "std::env::current_dir",
    "std::env::var",
    "std::fs::File",
    "std::fs::metadata",
    "std::fs::read",
    "std::fs::read_dir",
    "std::fs::read_to_string",
    "std::fs::write",
    "std::net::TcpStream",
    "std::process::Command",
    "std::time::Instant::now",
    "std::time::SystemTime::now",
];

/// The lints that keep libraries quiet.
const PRINT_LINTS: [&str; 2] = ["clippy::print_stdout", "clippy::print_stderr"];

/// Reads the arrows, asks cargo for the crates and compares.
pub(crate) fn run(workspace: &Workspace) -> Result<Outcome, Error> {
    let layers: Layers = workspace.toml("conform/layers.toml")?;
    let arguments = ["metadata", "--no-deps", "--format-version", "1"];
    let metadata: Metadata = parse_json("cargo metadata", &workspace.output("cargo", &arguments)?)?;
    let mut problems = layers.problems(&metadata.packages);
    for package in &metadata.packages {
        problems.extend(file_problems(&layers, package)?);
    }
    let summary = format!(
        "layers: {} crates, {} problems",
        metadata.packages.len(),
        problems.len()
    );
    Ok(Outcome { problems, summary })
}

/// `conform/layers.toml`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Layers {
    pure: BTreeSet<String>,
    prints: BTreeSet<String>,
    testkit: String,
    arrows: BTreeMap<String, BTreeSet<String>>,
}

/// The part of `cargo metadata` that matters here. Cargo has resolved renames, platform tables and
/// what is inherited from the workspace.
#[derive(Deserialize)]
struct Metadata {
    packages: Vec<Package>,
}

#[derive(Deserialize)]
struct Package {
    name: String,
    manifest_path: PathBuf,
    dependencies: Vec<Dependency>,
}

#[derive(Deserialize)]
struct Dependency {
    name: String,
    /// `None` for a normal one, else `dev` or `build`.
    kind: Option<String>,
}

impl Layers {
    /// Crates and arrows that are not as listed, and lists that name what is not there.
    fn problems(&self, packages: &[Package]) -> Vec<String> {
        let present: BTreeSet<&str> = packages.iter().map(|it| it.name.as_str()).collect();
        let mut problems = self.problems_of_the_lists(&present);
        for package in packages {
            match self.arrows.get(&package.name) {
                None => problems.push(format!("{} is not named in [arrows]", package.name)),
                Some(allowed) => {
                    let ours = |it: &&Dependency| present.contains(it.name.as_str());
                    let refused = package
                        .dependencies
                        .iter()
                        .filter(ours)
                        .filter(|it| !self.allows(allowed, it));
                    problems.extend(refused.map(|it| refused_arrow(package, it)));
                }
            }
        }
        problems
    }

    fn allows(&self, allowed: &BTreeSet<String>, dependency: &Dependency) -> bool {
        let is_dev = dependency.kind.as_deref() == Some("dev");
        allowed.contains(&dependency.name) || (is_dev && dependency.name == self.testkit)
    }

    fn problems_of_the_lists(&self, present: &BTreeSet<&str>) -> Vec<String> {
        let named = self.arrows.keys().chain(self.arrows.values().flatten());
        let named: BTreeSet<&String> = named.chain(&self.pure).chain(&self.prints).collect();
        let missing = named
            .into_iter()
            .filter(|name| !present.contains(name.as_str()))
            .map(|name| format!("layers.toml names {name}, which is no crate of the workspace"));
        let impure = self.pure.iter().flat_map(|from| {
            let targets = self.arrows.get(from).into_iter().flatten();
            targets
                .filter(|to| !self.pure.contains(*to))
                .map(move |to| format!("{from} is pure, but may depend on {to}, which is not"))
        });
        missing.chain(impure).collect()
    }
}

fn refused_arrow(package: &Package, dependency: &Dependency) -> String {
    let kind = match &dependency.kind {
        None => String::new(),
        Some(kind) => format!("{kind}-"),
    };
    format!(
        "{} has the {kind}dependency {}, which [arrows] does not allow",
        package.name, dependency.name
    )
}

fn file_problems(layers: &Layers, package: &Package) -> Result<Vec<String>, Error> {
    let directory = package.manifest_path.parent();
    let directory = directory.expect("a manifest lies in a directory");
    let manifest: toml::Table = read_toml(&package.manifest_path)?;
    let mut problems = Vec::new();
    if !takes_workspace_lints(&manifest) {
        problems.push(format!("{} lacks `[lints] workspace = true`", package.name));
    }
    if layers.pure.contains(&package.name) {
        let file = directory.join("clippy.toml");
        let bans = match file.exists() {
            true => banned_paths(&read_toml(&file)?),
            false => BTreeSet::new(),
        };
        let open = PURE_BANS.iter().filter(|door| !bans.contains(**door));
        problems.extend(open.map(|door| format!("{} is pure, but may use {door}", package.name)));
    }
    if !layers.prints.contains(&package.name) {
        problems.extend(print_lint_problems(directory)?);
    }
    Ok(problems)
}

fn takes_workspace_lints(manifest: &toml::Table) -> bool {
    let lints = manifest
        .get("lints")
        .and_then(|lints| lints.get("workspace"));
    lints.and_then(toml::Value::as_bool) == Some(true)
}

/// The paths that a `clippy.toml` disallows, as methods or as types.
fn banned_paths(clippy: &toml::Table) -> BTreeSet<String> {
    ["disallowed-methods", "disallowed-types"]
        .iter()
        .filter_map(|list| clippy.get(*list)?.as_array())
        .flatten()
        .filter_map(|entry| entry.as_str().or_else(|| entry.get("path")?.as_str()))
        .map(str::to_owned)
        .collect()
}

fn print_lint_problems(directory: &Path) -> Result<Vec<String>, Error> {
    let mut problems = Vec::new();
    for entry in walkdir::WalkDir::new(directory).sort_by_file_name() {
        let entry = entry.map_err(|error| Error::Content {
            what: format!("the files of {}", directory.display()),
            reason: error.to_string(),
        })?;
        let path = entry.path();
        if path.extension().is_some_and(|it| it == "rs") && sets_print_lint(&read(path)?) {
            problems.push(format!("{} sets a print lint", path.display()));
        }
    }
    Ok(problems)
}

fn sets_print_lint(source: &str) -> bool {
    PRINT_LINTS.iter().any(|lint| source.contains(lint))
}

#[cfg(test)]
mod tests {
    use super::*;

    const LAYERS: &str = "pure = ['core']\nprints = ['cli']\ntestkit = 'testkit'\n\
        [arrows]\ncore = []\nfs = ['core']\ncli = ['core', 'fs']\ntestkit = ['core']\n";

    fn package(name: &str, dependencies: &[(&str, Option<&str>)]) -> Package {
        let dependency = |(name, kind): &(&str, Option<&str>)| Dependency {
            name: (*name).to_owned(),
            kind: kind.map(str::to_owned),
        };
        Package {
            name: name.to_owned(),
            manifest_path: PathBuf::new(),
            dependencies: dependencies.iter().map(dependency).collect(),
        }
    }

    /// Checks a workspace in which `fs` has these dependencies.
    fn check(layers: &str, fs_dependencies: &[(&str, Option<&str>)], problems: &[&str]) {
        let layers: Layers = toml::from_str(layers).unwrap();
        let packages = [
            package("core", &[]),
            package("fs", fs_dependencies),
            package("cli", &[("core", None)]),
            package("testkit", &[("core", None)]),
        ];
        assert_eq!(layers.problems(&packages), problems);
    }

    #[test]
    fn listed_arrows_and_foreign_crates_are_allowed() {
        check(LAYERS, &[("core", None), ("serde", None)], &[]);
        check(
            LAYERS,
            &[("core", Some("dev")), ("core", Some("build"))],
            &[],
        );
    }

    #[test]
    fn an_arrow_that_is_not_listed_fails() {
        check(
            LAYERS,
            &[("cli", None), ("cli", Some("dev")), ("cli", Some("build"))],
            &[
                "fs has the dependency cli, which [arrows] does not allow",
                "fs has the dev-dependency cli, which [arrows] does not allow",
                "fs has the build-dependency cli, which [arrows] does not allow",
            ],
        );
    }

    #[test]
    fn the_testkit_is_for_tests_only() {
        check(LAYERS, &[("testkit", Some("dev"))], &[]);
        check(
            LAYERS,
            &[("testkit", None)],
            &["fs has the dependency testkit, which [arrows] does not allow"],
        );
    }

    #[test]
    fn crates_and_lists_name_each_other() {
        check(
            &LAYERS.replace("fs = ['core']\n", ""),
            &[],
            &["fs is not named in [arrows]"],
        );
        check(
            &LAYERS.replace("['core', 'fs']", "['core', 'gone']"),
            &[],
            &["layers.toml names gone, which is no crate of the workspace"],
        );
    }

    #[test]
    fn a_pure_crate_may_depend_on_pure_crates_only() {
        check(
            &LAYERS.replace("pure = ['core']", "pure = ['core', 'fs']"),
            &[],
            &[],
        );
        check(
            &LAYERS.replace("pure = ['core']", "pure = ['fs']"),
            &[],
            &["fs is pure, but may depend on core, which is not"],
        );
    }

    /// Checks the files of one crate named `core`, which is pure and does not print.
    fn check_files(manifest: &str, clippy: Option<&str>, source: &str, problems: &[&str]) {
        let directory = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            std::fs::write(directory.path().join(name), text).unwrap();
        };
        write("Cargo.toml", manifest);
        write("lib.rs", source);
        if let Some(text) = clippy {
            write("clippy.toml", text);
        }
        let package = Package {
            manifest_path: directory.path().join("Cargo.toml"),
            ..package("core", &[])
        };
        let layers: Layers = toml::from_str(LAYERS).unwrap();
        let place = format!("{}/", directory.path().display());
        let found: Vec<String> = file_problems(&layers, &package)
            .unwrap()
            .iter()
            .map(|line| line.replace('\\', "/").replace(&place, ""))
            .collect();
        assert_eq!(found, problems);
    }

    const LINTS: &str = "[lints]\nworkspace = true\n";

    fn all_bans() -> String {
        let entry = |path: &&str| format!("{{ path = '{path}', reason = 'pure' }}");
        let bans: Vec<String> = PURE_BANS.iter().map(entry).collect();
        format!(
            "disallowed-methods = [{}]\ndisallowed-types = [{}]\n",
            bans[..6].join(", "),
            bans[6..].join(", ")
        )
    }

    #[test]
    fn a_pure_crate_bans_the_outside_world() {
        check_files(LINTS, Some(&all_bans()), "", &[]);
        check_files(
            LINTS,
            Some(&all_bans().replace("std::fs::write", "std::fs::other")),
            "",
            &["core is pure, but may use std::fs::write"],
        );
        let all_open = PURE_BANS.map(|door| format!("core is pure, but may use {door}"));
        let all_open = all_open.iter().map(String::as_str).collect::<Vec<_>>();
        check_files(LINTS, None, "", &all_open);
    }

    #[test]
    fn every_crate_takes_the_workspace_lints() {
        for manifest in ["", "[lints]\nworkspace = false\n", "[lints.rust]\n"] {
            check_files(
                manifest,
                Some(&all_bans()),
                "",
                &["core lacks `[lints] workspace = true`"],
            );
        }
    }

    #[test]
    fn a_quiet_crate_leaves_the_print_lints_on() {
        for lint in PRINT_LINTS {
            let source = format!("#![expect({lint}, reason = \"\")]\n");
            check_files(
                LINTS,
                Some(&all_bans()),
                &source,
                &["lib.rs sets a print lint"],
            );
        }
    }
}
