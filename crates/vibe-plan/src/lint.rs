//! What a package's maintainer should know before it is published, from plain data: its manifest,
//! the names and sizes of its files, and the text of its scripts.
//!
//! An error is what makes an install fail, here or on another system, or keeps the package from being
//! published. A warning is what works and is likely not meant.

mod contents;
mod manifest;
mod scripts;

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;

use serde::Serialize;
use vibe_core::formats::diagnostic::Position;
use vibe_core::formats::manifest::{MANIFEST_NAME, Manifest, Package, Publish, position_of};
use vibe_core::{PackageId, RelPath};

use crate::selection::script_paths;

/// How bad something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// It has to be mended.
    Error,
    /// It works, and is likely not meant.
    Warning,
}

/// Something that a maintainer should know.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LintFinding {
    /// How bad it is.
    pub severity: Severity,
    /// The rule, a word for programs.
    pub rule: &'static str,
    /// The file, relative to the package, escaped; `None` where it is about the whole.
    pub path: Option<String>,
    /// The line, counted from 1.
    pub line: Option<usize>,
    /// The column in it, in characters, counted from 1.
    pub column: Option<usize>,
    /// What is wrong, and why it matters.
    pub message: String,
    /// What to do.
    pub remedy: String,
}

impl LintFinding {
    /// An error.
    pub fn error(
        rule: &'static str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(Severity::Error, rule, message, remedy)
    }

    /// A warning.
    pub fn warning(
        rule: &'static str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self::new(Severity::Warning, rule, message, remedy)
    }

    fn new(
        severity: Severity,
        rule: &'static str,
        message: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            severity,
            rule,
            path: None,
            line: None,
            column: None,
            message: message.into(),
            remedy: remedy.into(),
        }
    }

    /// The same of a file.
    #[must_use]
    pub fn of(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// The same at a line.
    #[must_use]
    pub fn at_line(mut self, line: usize) -> Self {
        self.line = Some(line);
        self
    }

    /// The same at a place in the manifest.
    #[must_use]
    pub fn at(mut self, position: Option<Position>) -> Self {
        self.path = Some(MANIFEST_NAME.to_owned());
        self.line = position.map(|position| position.line);
        self.column = position.map(|position| position.column);
        self
    }
}

/// What is known of a package.
#[derive(Debug, Clone, Copy)]
pub struct LintInput<'a> {
    /// Its manifest, read as one's own.
    pub manifest: &'a Manifest,
    /// The package in it.
    pub package: &'a Package,
    /// The text of the manifest.
    pub text: &'a str,
    /// The files that ship, with their bytes.
    pub files: &'a BTreeMap<RelPath, u64>,
    /// The content of those [`paths_to_read`] that ship.
    pub contents: &'a BTreeMap<RelPath, Vec<u8>>,
    /// Those of [`paths_named`] that are there and do not ship.
    pub left_out: &'a BTreeSet<RelPath>,
    /// Where a `.git` lies below the package, escaped.
    pub nested_repositories: &'a [String],
    /// What a requirement by `path` or `version.var` would be as a constraint, where that is known.
    pub constraints: &'a BTreeMap<PackageId, String>,
    /// Whether it is about to go to a registry that is a directory.
    pub to_directory: bool,
}

impl LintInput<'_> {
    /// Where a key of the manifest stands.
    fn position(&self, path: &[&str]) -> Option<Position> {
        position_of(self.text, path)
    }

    /// Whether anybody may get it from a registry.
    fn is_published(&self) -> bool {
        self.package.publish != Publish::Never
    }

    fn has_directory(&self, path: &RelPath) -> bool {
        let after = (Bound::Excluded(path), Bound::Unbounded);
        let next = self.files.range::<RelPath, _>(after);
        next.take_while(|(file, _)| file.as_str().starts_with(path.as_str()))
            .any(|(file, _)| file.starts_with(path))
    }

    /// Whether there is a file or a directory at `path` that ships.
    fn ships(&self, path: &RelPath) -> bool {
        self.files.contains_key(path) || self.has_directory(path)
    }

    /// A file that ships and differs from `path` by case alone.
    fn other_case(&self, path: &RelPath) -> Option<&RelPath> {
        let wanted = path.as_str().to_lowercase();
        self.files
            .keys()
            .find(|file| file.as_str().to_lowercase() == wanted)
    }
}

/// What was found, and what is no fault at all.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lint {
    /// By file and place.
    pub findings: Vec<LintFinding>,
    /// What is so, and good to know.
    pub notes: Vec<String>,
}

/// Looks at everything that `input` says.
pub fn lint(input: &LintInput<'_>) -> Lint {
    let mut findings = manifest::findings(input);
    findings.extend(scripts::findings(input));
    findings.extend(contents::findings(input));
    sort(&mut findings);
    Lint {
        findings,
        notes: manifest::notes(input),
    }
}

/// Brings findings into their order: by file, the manifest first, then by place.
pub fn sort(findings: &mut [LintFinding]) {
    findings.sort_by_cached_key(|finding| {
        let is_other = finding
            .path
            .as_deref()
            .is_some_and(|path| path != MANIFEST_NAME);
        let path = finding.path.clone().unwrap_or_default();
        (is_other, path, finding.line, finding.column)
    });
}

/// The files of `package` whose content is looked at.
pub fn paths_to_read(package: &Package) -> Vec<RelPath> {
    let scripts = package.hooks.scripts.values();
    let scripts = scripts.flat_map(script_paths);
    let boot = package.boot.iter().map(|boot| boot.source.clone());
    scripts.chain(boot).collect()
}

/// Every path that the manifest of `package` names.
pub fn paths_named(package: &Package) -> Vec<RelPath> {
    let items = package.items.iter().map(|item| item.path.clone());
    paths_to_read(package).into_iter().chain(items).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use vibe_core::formats::manifest::Reading;

    /// Keys that leave nothing to say of `[package]`.
    const SOUND: &str = "[package]\ngroup = \"org.example\"\nname = \"lint\"\nversion = \"1.0.0\"\n\
                         description = \"d\"\nlicense = \"MIT\"\n";

    struct Case {
        text: String,
        files: BTreeMap<RelPath, u64>,
        contents: BTreeMap<RelPath, Vec<u8>>,
        left_out: BTreeSet<RelPath>,
        nested_repositories: Vec<String>,
        constraints: BTreeMap<PackageId, String>,
        to_directory: bool,
    }

    fn path(text: &str) -> RelPath {
        RelPath::new(text).unwrap()
    }

    /// A sound package with `extra` after its manifest.
    fn case(extra: &str) -> Case {
        let case = Case {
            text: format!("{SOUND}{extra}"),
            files: BTreeMap::new(),
            contents: BTreeMap::new(),
            left_out: BTreeSet::new(),
            nested_repositories: Vec::new(),
            constraints: BTreeMap::new(),
            to_directory: false,
        };
        case.file("vibe.toml", "").file("README.md", "")
    }

    impl Case {
        fn file(mut self, name: &str, content: impl AsRef<[u8]>) -> Self {
            let content = content.as_ref().to_vec();
            self.files.insert(path(name), content.len() as u64);
            self.contents.insert(path(name), content);
            self
        }

        fn large(mut self, name: &str, bytes: u64) -> Self {
            self.files.insert(path(name), bytes);
            self
        }

        fn without(mut self, name: &str) -> Self {
            self.files.remove(&path(name));
            self
        }

        fn left_out(mut self, name: &str) -> Self {
            self.left_out.insert(path(name));
            self
        }

        fn run(&self) -> Lint {
            let manifest = Manifest::parse(&self.text, Reading::Own).unwrap();
            lint(&LintInput {
                manifest: &manifest,
                package: manifest.package.as_ref().unwrap(),
                text: &self.text,
                files: &self.files,
                contents: &self.contents,
                left_out: &self.left_out,
                nested_repositories: &self.nested_repositories,
                constraints: &self.constraints,
                to_directory: self.to_directory,
            })
        }

        /// Holds the findings, as `severity rule place`, against `expected`.
        #[track_caller]
        fn check(&self, expected: &[&str]) {
            let lint = self.run();
            let shown: Vec<String> = lint.findings.iter().map(shown).collect();
            assert_eq!(shown, expected, "{:#?}", lint.findings);
            for finding in &lint.findings {
                assert!(!finding.message.is_empty() && !finding.remedy.is_empty());
            }
        }
    }

    fn shown(finding: &LintFinding) -> String {
        let severity = match finding.severity {
            Severity::Error => "error",
            Severity::Warning => "warning",
        };
        let mut text = format!("{severity} {}", finding.rule);
        if let Some(path) = &finding.path {
            text += &format!(" {path}");
        }
        for number in [finding.line, finding.column].into_iter().flatten() {
            text += &format!(":{number}");
        }
        text
    }

    const HOOKS: &str = "[hooks]\npre-install = \"hooks/prepare\"\n";
    const GOOD_SH: &str = "set -eu\necho hi\n";
    const GOOD_PS1: &str = "$ErrorActionPreference = 'Stop'\r\nWrite-Output hi\r\n";

    fn hooked(shell: impl AsRef<[u8]>, powershell: impl AsRef<[u8]>) -> Case {
        case(HOOKS)
            .file("hooks/prepare.sh", shell)
            .file("hooks/prepare.ps1", powershell)
    }

    #[test]
    fn a_sound_package_has_nothing_to_be_said_of() {
        case("").check(&[]);
        hooked(GOOD_SH, GOOD_PS1).check(&[]);
        assert_eq!(case("").run(), Lint::default());
    }

    #[test]
    fn what_a_published_package_should_say_is_missed_unless_it_is_not_to_be_published() {
        let text = "[package]\ngroup = \"mine\"\nname = \"a\"\nversion = \"1.0.0-rc.1+x\"\n";
        let mut bare = case("").without("README.md");
        bare.text = text.to_owned();
        bare.check(&[
            "warning no-readme",
            "warning no-description vibe.toml:1:2",
            "warning no-license vibe.toml:1:2",
            "error short-group vibe.toml:2:1",
            "warning build-metadata vibe.toml:4:1",
        ]);
        assert!(bare.run().notes[0].contains("is a prerelease"));
        bare.text = format!("{text}publish = false\n");
        bare.check(&[]);
        assert!(bare.run().notes[0].starts_with("`publish = false`"));
        bare.text = format!("{text}description = \" \"\nlicense = \"MIT\"\npublish = []\n");
        bare.check(&[
            "warning no-readme",
            "error short-group vibe.toml:2:1",
            "warning build-metadata vibe.toml:4:1",
            "warning no-description vibe.toml:5:1",
            "warning publish-nowhere vibe.toml:7:1",
        ]);
    }

    #[test]
    fn a_misspelt_key_is_named_with_what_was_likely_meant() {
        let case = case("lisense = \"MIT\"\n[zebra]\n");
        case.check(&[
            "warning unknown-key vibe.toml:7:1",
            "warning unknown-key vibe.toml:8:2",
        ]);
        assert_eq!(case.run().findings[0].remedy, "did you mean `license`?");
    }

    #[test]
    fn tables_that_are_not_acted_on_are_noted() {
        let notes = case("[requires_any]\nx = 1\n").run().notes;
        assert_eq!(
            notes,
            ["`requires_any` is accepted, and vibe does not act on it"]
        );
    }

    #[test]
    fn a_requirement_that_only_this_place_can_satisfy_is_an_error_with_the_constraint_it_would_be()
    {
        let requires = "[requires.packages]\n\"org.example/a\" = { path = \"../a\" }\n\
                        \"org.example/b\" = { version.var = \"b\" }\n\
                        \"org.example/c\" = { git = \"../c\", tag = \"v1.0.0\" }\n\
                        \"org.example/d\" = { git = \"https://host/d\", tag = \"v1.0.0\" }\n\
                        \"org.example/e\" = \"^1\"\n";
        let mut case = case(requires);
        case.constraints
            .insert("org.example/a".parse().unwrap(), "^2.1".to_owned());
        case.check(&[
            "error path-requirement vibe.toml:8:1",
            "error variable-requirement vibe.toml:9:1",
            "error local-repository vibe.toml:10:1",
        ]);
        let remedies: Vec<String> = case
            .run()
            .findings
            .into_iter()
            .map(|it| it.remedy)
            .collect();
        assert_eq!(
            remedies,
            [
                "require it by a version: \"org.example/a\" = \"^2.1\"",
                "require it by a version constraint",
                "name a repository that others can reach",
            ]
        );
        case.text = case.text.replace("license", "publish = false\nlicense");
        case.check(&[]);
    }

    #[test]
    fn ways_to_place_a_package_that_cannot_be_taken_are_named() {
        let mut in_place = case("materialization = \"in-place\"\n");
        in_place.check(&["warning in-place vibe.toml:7:1"]);
        in_place.to_directory = true;
        in_place.check(&["error in-place vibe.toml:7:1"]);
        let mut linked = hooked(GOOD_SH, GOOD_PS1);
        linked.text = format!("{SOUND}materialization = \"hardlink\"\n{HOOKS}");
        linked.check(&["warning linked-with-hooks vibe.toml:7:1"]);
        case("materialization = \"hardlink\"\n").check(&[]);
        case("bridge = true\n").check(&["warning bridge-without-upstream vibe.toml:7:1"]);
        case("bridge = true\nupstream = \"https://host/them\"\n").check(&[]);
    }

    #[test]
    fn a_manifest_that_does_not_ship_is_an_error() {
        case("")
            .without("vibe.toml")
            .check(&["error manifest-left-out vibe.toml"]);
    }

    #[test]
    fn a_script_is_missed_for_the_systems_that_would_need_it() {
        let check = |case: Case, expected: &str| case.check(&[expected]);
        check(case(HOOKS), "error missing-script vibe.toml:8:1");
        let shell = case(HOOKS).file("hooks/prepare.sh", GOOD_SH);
        check(shell, "warning no-powershell-script vibe.toml:8:1");
        let powershell = case(HOOKS).file("hooks/prepare.ps1", GOOD_PS1);
        check(powershell, "warning no-shell-script vibe.toml:8:1");
        let hidden = case(HOOKS).left_out("hooks/prepare.sh");
        check(hidden, "error script-left-out vibe.toml:8:1");
        let directory = case(HOOKS).file("hooks/prepare.sh/x", "");
        check(directory, "error script-is-a-directory vibe.toml:8:1");
        let half = case(HOOKS)
            .file("hooks/prepare.sh", GOOD_SH)
            .left_out("hooks/prepare.ps1");
        half.check(&[
            "error script-left-out vibe.toml:8:1",
            "warning no-powershell-script vibe.toml:8:1",
        ]);
        let other = case(HOOKS).file("hooks/Prepare.sh", GOOD_SH);
        other.check(&["error missing-script vibe.toml:8:1"]);
        let remedy = &other.run().findings[0].remedy;
        assert!(
            remedy.ends_with("did you mean `hooks/Prepare.sh`?"),
            "{remedy}"
        );
    }

    #[test]
    fn two_phases_of_one_script_have_its_faults_told_once() {
        let both = "[hooks]\npre-install = \"hooks/prepare\"\npost-install = \"hooks/prepare\"\n";
        let case = case(both)
            .file("hooks/prepare.sh", "echo hi\n")
            .file("hooks/prepare.ps1", "Get-Item\n");
        case.check(&[
            "warning goes-on-after-failure hooks/prepare.ps1",
            "warning goes-on-after-failure hooks/prepare.sh",
        ]);
    }

    #[test]
    fn what_bash_makes_of_a_script_is_foreseen() {
        let check = |script: &[u8], expected: &[&str]| hooked(script, GOOD_PS1).check(expected);
        let place = "hooks/prepare.sh";
        check(b"set -e\nx\r\n", &[&format!("error line-ends {place}:2")]);
        check(
            b"\xEF\xBB\xBFset -e\n",
            &[&format!("error byte-order-mark {place}")],
        );
        check(b"\xFF\xFEs\0", &[&format!("error byte-order-mark {place}")]);
        check(b"s\0e\0t\0", &[&format!("error no-text {place}")]);
        check(b" \n\n", &[&format!("warning empty-script {place}")]);
        let goes_on = format!("warning goes-on-after-failure {place}");
        for script in [
            "echo\n",
            "#!/bin/bash -e\nx\n",
            "set -u\n",
            "set -o pipefail\n",
            "# set -e\n",
            "echo set -e\n",
        ] {
            check(script.as_bytes(), &[&goes_on]);
        }
        for script in [
            "set -e",
            "set -euo pipefail",
            "set -o errexit",
            "  set -u -e # yes",
            "cd x; set -e",
        ] {
            check(script.as_bytes(), &[]);
        }
        let python = format!("warning other-interpreter {place}:1");
        check(b"#!/usr/bin/env python3\nset -e\n", &[&python]);
        check(b"#! /usr/bin/zsh\nset -e\n", &[&python]);
        for first in [
            "#!/bin/sh",
            "#!/usr/bin/env bash",
            "#! /bin/bash -x",
            "#!/usr/bin/env -S bash -x",
        ] {
            check(format!("{first}\nset -e\n").as_bytes(), &[]);
        }
    }

    #[test]
    fn what_powershell_makes_of_a_script_is_foreseen() {
        let check = |script: &[u8], expected: &[&str]| hooked(GOOD_SH, script).check(expected);
        let place = "hooks/prepare.ps1";
        let utf_16 = |mark: &[u8], of: fn(u16) -> [u8; 2]| -> Vec<u8> {
            let units = GOOD_PS1.encode_utf16().flat_map(of);
            mark.iter().copied().chain(units).collect()
        };
        check(&utf_16(b"\xFF\xFE", u16::to_le_bytes), &[]);
        check(&utf_16(b"\xFE\xFF", u16::to_be_bytes), &[]);
        check(
            &utf_16(b"", u16::to_le_bytes),
            &[&format!("error no-text {place}")],
        );
        check(b"\r\n", &[&format!("warning empty-script {place}")]);
        check(
            b"Write-Output\n",
            &[&format!("warning goes-on-after-failure {place}")],
        );
        check(b"$erroractionpreference=\"stop\"\n", &[]);
        let accents = format!("{GOOD_PS1}# \u{e9}\n");
        check(
            accents.as_bytes(),
            &[&format!("warning not-ascii {place}:3")],
        );
        check(format!("\u{feff}{accents}").as_bytes(), &[]);
    }

    #[test]
    fn a_limit_that_nobody_waits_for_is_a_warning() {
        let mut case = hooked(GOOD_SH, GOOD_PS1);
        case.text = format!("{SOUND}{HOOKS}timeout = \"2h\"\n");
        case.check(&["warning long-timeout vibe.toml:9:1"]);
        assert!(case.run().findings[0].message.contains("120 minutes"));
        case.text = case.text.replace("2h", "1h");
        case.check(&[]);
    }

    #[test]
    fn boot_text_and_items_are_there_or_made_by_the_package() {
        let named = "[boot]\nsource = \"boot/a.md\"\n[[item]]\nkind = \"skill\"\nname = \"s\"\npath = \"skills/s\"\n";
        case(named).check(&[
            "error missing-item vibe.toml",
            "error missing-boot vibe.toml:8:1",
        ]);
        let there = case(named)
            .file("boot/a.md", "hi\n")
            .file("skills/s/SKILL.md", "");
        there.check(&[]);
        let made = case(&format!("{named}{HOOKS}"))
            .file("hooks/prepare.sh", GOOD_SH)
            .file("hooks/prepare.ps1", GOOD_PS1);
        made.check(&[
            "warning missing-item vibe.toml",
            "warning missing-boot vibe.toml:8:1",
        ]);
        let hidden = case(named).left_out("boot/a.md").file("skills/s", "");
        hidden.check(&["error missing-boot vibe.toml:8:1"]);
        let cased = case(named).file("boot/A.md", "").file("skills/s", "");
        cased.check(&["error missing-boot vibe.toml:8:1"]);
        let odd = case(named)
            .file("boot/a.md", b"a\n\xFF")
            .file("skills/s", "");
        odd.check(&["error boot-text boot/a.md:2"]);
        let directory = case(named).file("boot/a.md/x", "").file("skills/s", "");
        directory.check(&["error boot-text vibe.toml:8:1"]);
        let snippet = case("[boot_snippet]\nsource = \"boot/a.md\"\n");
        snippet.check(&["error missing-boot vibe.toml:8:1"]);
    }

    #[test]
    fn an_item_that_is_there_twice_is_an_error() {
        let item = |kind: &str, name: &str| {
            format!("[[item]]\nkind = \"{kind}\"\nname = \"{name}\"\npath = \"x\"\n")
        };
        let items = [item("skill", "a"), item("agent", "a"), item("skill", "a")].concat();
        case(&items)
            .file("x", "")
            .check(&["error item-twice vibe.toml"]);
    }

    #[test]
    fn names_of_secrets_are_warned_of() {
        let named = [
            ".env",
            "x/.env.local",
            "a.pem",
            "x/ID_RSA",
            ".npmrc",
            ".git-credentials",
            "b.key",
            ".netrc",
        ];
        for name in named {
            case("")
                .file(name, "")
                .check(&[&format!("warning secret {name}")]);
        }
        for name in [
            ".env.example",
            ".env.sample.local",
            "pem",
            "id_rsa.pub",
            "env",
            "key.md",
        ] {
            case("").file(name, "").check(&[]);
        }
    }

    #[test]
    fn what_is_large_is_told_with_its_size() {
        let mebibyte = 1 << 20;
        case("").large("a", 10 * mebibyte).check(&[]);
        let large = case("").large("a", 11 * mebibyte);
        large.check(&["warning large-file a"]);
        assert!(large.run().findings[0].message.starts_with("it has 11 MiB"));
        let mut many = case("");
        for number in 0..30 {
            many = many.large(&format!("f{number:02}"), 11 * mebibyte);
        }
        let found = many.run().findings;
        assert_eq!(found.len(), 21);
        assert_eq!(shown(&found[0]), "warning large-package");
    }

    #[test]
    fn slots_and_repositories_in_the_package_are_told_once_each() {
        let mut case = case("")
            .file("x/vibedeps/a/1", "")
            .file("x/vibedeps/b/2", "");
        case.nested_repositories = vec!["sub/.git".to_owned()];
        case.check(&[
            "warning nested-repository sub/.git",
            "warning nested-slots x/vibedeps",
        ]);
    }
}
