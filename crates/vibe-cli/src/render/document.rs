//! The one JSON document of a command that was asked for JSON.

use serde::Serialize;
use serde_json::Value;
use vibe_install::HookRecord;

use crate::answer::Answer;
use crate::observer::Said;
use crate::user_error::{FailedHook, UserError};

/// The document, described in `docs/json.md`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Document<'a> {
    command: &'a str,
    ok: bool,
    exit_code: u8,
    result: Option<&'a Value>,
    error: Option<ErrorPart<'a>>,
    notes: &'a [String],
    warnings: &'a [String],
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct ErrorPart<'a> {
    kind: &'a str,
    message: &'a str,
    causes: Vec<&'a str>,
    hints: &'a [String],
    #[serde(skip_serializing_if = "Option::is_none")]
    path: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    hook: Option<HookPart<'a>>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct HookPart<'a> {
    #[serde(flatten)]
    record: &'a HookRecord,
    log_path: Option<&'a str>,
    variables_not_passed: bool,
}

/// The document of what came of `command`, with a line end.
pub(crate) fn text(command: &str, outcome: &Result<Answer, UserError>, said: &Said) -> String {
    let exit_code = match outcome {
        Ok(answer) => answer.exit_code,
        Err(error) => error.exit_code,
    };
    let document = Document {
        command,
        ok: exit_code == 0,
        exit_code,
        result: outcome.as_ref().ok().map(|answer| &answer.result),
        error: outcome.as_ref().err().map(error_part),
        notes: &said.notes,
        warnings: &said.warnings,
    };
    let text = serde_json::to_string_pretty(&document);
    text.unwrap_or_else(|error| failed(command, &error.to_string())) + "\n"
}

/// The document where the real one cannot be written.
fn failed(command: &str, why: &str) -> String {
    let document = serde_json::json!({
        "command": command,
        "ok": false,
        "exit-code": crate::exit_code::FAILED,
        "result": null,
        "error": {"kind": "output", "message": why, "causes": [], "hints": []},
        "notes": [],
        "warnings": [],
    });
    document.to_string()
}

fn error_part(error: &UserError) -> ErrorPart<'_> {
    let place = error.place.as_ref();
    let position = place.and_then(|place| place.position);
    let label = place.map(|place| place.label.as_str());
    ErrorPart {
        kind: error.kind,
        message: &error.message,
        causes: label
            .into_iter()
            .chain(error.causes.iter().map(String::as_str))
            .collect(),
        hints: &error.hints,
        path: place.map(|place| place.path.to_string_lossy().into_owned()),
        line: position.map(|position| position.line),
        column: position.map(|position| position.column),
        hook: error.hook.as_deref().map(hook_part),
    }
}

fn hook_part(hook: &FailedHook) -> HookPart<'_> {
    HookPart {
        record: &hook.record,
        log_path: hook.log.as_deref(),
        variables_not_passed: hook.variables_not_passed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::{
        check_report, edit, finding, hook, id, package, path, publish_report,
    };
    use std::collections::BTreeSet;
    use std::path::{Path, PathBuf};
    use vibe_core::Tree;
    use vibe_core::formats::diagnostic::Diagnostic;
    use vibe_core::hook::Phase;
    use vibe_install::{
        CacheListing, CachePaths, CacheRemovalReport, CacheVerification, CachedGitRepository,
        CachedTree, DamagedCacheTree, FindingKind, HookLog, HookOutcome, HookStatus, InitKind,
        InitReport, ItemSummary, LintFinding, OutdatedReport, RequirementSummary, RunRecord,
        RunReport, TreeReport, VerifyReport, WhyReport,
    };

    fn full_hook() -> HookRecord {
        HookRecord {
            interpreter: Some("/bin/bash".to_owned()),
            signal: Some(9),
            remarks: vec!["x".to_owned()],
            tail: "x".to_owned(),
            ..hook("org.example/a", Phase::PreInstall, HookOutcome::Failed)
        }
    }

    fn full_run() -> RunRecord {
        let some = || vec!["x".to_owned()];
        RunRecord {
            run: "r".to_owned(),
            command: "vibe install".to_owned(),
            version: "0.1.0".to_owned(),
            started: "t".to_owned(),
            duration_ms: Some(1),
            outcome: Some("done".to_owned()),
            plan: some(),
            hooks: vec![full_hook()],
            changed_agent_settings: some(),
            variables_not_passed: some(),
        }
    }

    fn failure() -> UserError {
        let diagnostic = Diagnostic::at("bad", 0, "it is bad").hint("mend it");
        let mut error = UserError::new("manifest", 2, "no")
            .caused_by("c")
            .at(Path::new("/p"), &diagnostic);
        error.hook = Some(Box::new(FailedHook {
            record: full_hook(),
            variables_not_passed: true,
            log: Some("l".to_owned()),
            was_heard: true,
        }));
        error
    }

    fn document(outcome: &Result<Answer, UserError>) -> Value {
        let said = Said {
            notes: vec!["n".to_owned()],
            warnings: vec!["w".to_owned()],
        };
        serde_json::from_str(&text("install", outcome, &said)).unwrap()
    }

    fn keys(value: &Value) -> BTreeSet<String> {
        value.as_object().unwrap().keys().cloned().collect()
    }

    /// The keys in the first column of the table under the heading `title` of the page.
    fn documented(title: &str) -> BTreeSet<String> {
        let page = include_str!("../../../../docs/json.md");
        let section = page
            .split("\n## ")
            .find_map(|section| section.strip_prefix(title))
            .unwrap();
        section
            .lines()
            .filter_map(|line| line.strip_prefix("| `")?.split_once("` |"))
            .map(|(key, _)| key.to_owned())
            .collect()
    }

    fn check(title: &str, value: impl Serialize) {
        assert_eq!(
            keys(&serde_json::to_value(value).unwrap()),
            documented(title),
            "{title}"
        );
    }

    fn check_cache() {
        let paths = || CachePaths {
            store: PathBuf::from("/s"),
            git: None,
        };
        let listing = CacheListing {
            paths: paths(),
            trees: Vec::new(),
            repositories: Vec::new(),
            bytes: 0,
        };
        let tree = Tree::default().id();
        let damaged = DamagedCacheTree {
            tree,
            package: None,
            version: None,
            faults: Vec::new(),
            quarantined: true,
            place: PathBuf::from("/s"),
        };
        let stored = CachedTree {
            tree,
            package: None,
            version: None,
            files: 0,
            bytes: 0,
            used: String::new(),
        };
        let fetched = CachedGitRepository {
            name: String::new(),
            url: None,
            bytes: 0,
            used: String::new(),
        };
        check("The result of cache path\n", paths());
        check("The result of cache list\n", listing);
        check("A stored tree\n", stored);
        check("A fetched repository\n", fetched);
        let verified = CacheVerification::default();
        check("The result of cache verify\n", verified);
        check("A damaged tree\n", damaged);
        let removed = CacheRemovalReport::default();
        check("The result of cache gc and cache clean\n", removed);
    }

    fn check_looks() {
        let item = ItemSummary {
            kind: "skill".to_owned(),
            name: "review".to_owned(),
            package: id("org.example/a"),
            path: path("skills/review/SKILL.md"),
            missing: false,
        };
        check("An item\n", item);
        let tree = TreeReport {
            inverted: false,
            starts: Vec::new(),
            roots: Vec::new(),
            packages: Vec::new(),
        };
        check("The result of tree\n", tree);
        let why = WhyReport {
            package: package("org.example/a", "1.0.0"),
            chains: Vec::new(),
            more: 0,
        };
        check("The result of why\n", why);
        let requirement = RequirementSummary {
            requirer: "p".to_owned(),
            version: None,
            package: id("org.example/a"),
            requirement: None,
        };
        check("A requirement\n", requirement);
        check("The result of outdated\n", OutdatedReport::default());
    }

    #[test]
    fn the_page_on_json_names_exactly_the_keys_that_there_are() {
        let failed = document(&Err(failure()));
        check("The document\n", &failed);
        check("error\n", &failed["error"]);
        check("The result of install", RunReport::default());
        check("A package\n", package("org.example/a", "1.0.0"));
        check("A projected file\n", edit("AGENTS.md"));
        check("An install hook record\n", full_hook());
        check("The result of verify\n", VerifyReport::default());
        check(
            "A finding\n",
            finding("org.example/a", FindingKind::Slot, "x"),
        );
        let status = HookStatus {
            package: id("org.example/a"),
            version: "1.0.0".to_owned(),
            phase: Phase::PreInstall,
            scripts: Vec::new(),
            state: None,
            last: None,
            runs_next: true,
            because: String::new(),
        };
        check("The result of hooks list\n", status);
        let output = String::new();
        let log = HookLog {
            run: "r".to_owned(),
            record: full_hook(),
            output,
        };
        check("The result of hooks log\n", log);
        check("The result of runs show\n", full_run());
        check_cache();
        check_looks();
        check("The result of check\n", check_report());
        check("A finding of check\n", LintFinding::error("x", "m", "r"));
        check("The result of publish\n", publish_report());
        let (directory, files) = (PathBuf::from("/p"), Vec::new());
        let kind = InitKind::Project;
        check(
            "The result of init\n",
            InitReport {
                directory,
                kind,
                files,
                left_out_by: None,
            },
        );
    }

    #[test]
    fn a_failure_is_told_in_full() {
        let failed = document(&Err(failure()));
        assert_eq!(failed["ok"], false);
        assert_eq!(failed["exit-code"], 2);
        assert_eq!(failed["result"], Value::Null);
        assert_eq!(failed["notes"][0], "n");
        assert_eq!(failed["warnings"][0], "w");
        let error = &failed["error"];
        assert_eq!(error["causes"], serde_json::json!(["it is bad", "c"]));
        assert_eq!(error["hints"][0], "mend it");
        assert_eq!((&error["line"], &error["column"]), (&1.into(), &1.into()));
        assert_eq!(error["hook"]["log-path"], "l");
        assert_eq!(error["hook"]["variables-not-passed"], true);
        assert_eq!(error["hook"]["tail"], "x");
    }

    #[test]
    fn a_result_is_ok_only_with_exit_code_0() {
        for exit_code in [0, 5] {
            let answer = Answer {
                exit_code,
                ..Answer::new(&vec![1], String::new()).unwrap()
            };
            let found = document(&Ok(answer));
            assert_eq!(found["ok"], exit_code == 0);
            assert_eq!(found["result"], serde_json::json!([1]));
            assert_eq!(found["error"], Value::Null);
        }
    }

    #[test]
    fn a_document_that_cannot_be_written_is_replaced_by_one_that_can() {
        let found: Value = serde_json::from_str(&failed("list", "why")).unwrap();
        assert_eq!(keys(&found), documented("The document\n"));
        assert_eq!(found["error"]["message"], "why");
    }
}
