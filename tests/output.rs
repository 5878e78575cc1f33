//! What every command has in common: the JSON document, streams that are closed or full, colour,
//! and help.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::process::Stdio;

use crate::support::{Run, VIBE, command, read, run, start, vibe, wait};
use serde_json::Value;
use vibe_core::hook::Phase;
use vibe_testkit::{PackageBuilder, World};

const LINT: &str = "org.example/lint";

/// A project that requires a package with a post-install hook that prints colour.
fn world() -> World {
    let world = World::new();
    PackageBuilder::new(LINT, "1.0.0")
        .hook(Phase::PostInstall, "printf '\\033[31mred\\033[0m\\n'\n")
        .publish(&world.registry());
    world.require(&[(LINT, "^1")]);
    world
}

/// The keys in the table under the heading `title` of docs/json.md, and whether each may be absent.
fn documented(title: &str) -> BTreeMap<String, bool> {
    let page = read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/json.md"));
    let mut sections = page.split("\n## ");
    let section = sections
        .find(|section| section.lines().next() == Some(title))
        .unwrap();
    let rows = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once("` | "));
    rows.map(|(key, text)| (key.to_owned(), text.starts_with("*optional*")))
        .collect()
}

/// Asserts that `value` has the keys that the page names under `title`, and no other.
#[track_caller]
fn check(title: &str, value: &Value) {
    let object = value
        .as_object()
        .unwrap_or_else(|| panic!("{title}: {value}"));
    let documented = documented(title);
    for key in object.keys() {
        assert!(
            documented.contains_key(key),
            "`{key}` is not under {title:?}"
        );
    }
    for (key, _) in documented.iter().filter(|(_, is_optional)| !**is_optional) {
        assert!(object.contains_key(key), "{title:?} names `{key}`: {value}");
    }
}

/// The one document of a finished run, checked against the page.
#[track_caller]
fn document(ran: &Run, command: &str) -> Value {
    let document = ran.json();
    check("The document", &document);
    assert_eq!(document["command"], command);
    assert_eq!(document["exit-code"], ran.code);
    assert_eq!(document["ok"], ran.code == 0);
    assert_eq!(
        document["result"].is_null() && !document["ok"].as_bool().unwrap(),
        !document["error"].is_null()
    );
    if !document["error"].is_null() {
        check("error", &document["error"]);
    }
    document
}

/// The result of a command that succeeds.
#[track_caller]
fn result(world: &World, arguments: &[&str], command: &str) -> Value {
    let ran = vibe(world, &[arguments, &["--json"]].concat()).expect(0);
    document(&ran, command)["result"].clone()
}

const RUN: &str =
    "The result of install, update, uninstall, reinstall, verify --repair and hooks run";

#[test]
fn the_result_of_every_command_is_as_documented() {
    let world = world();
    let dry = result(&world, &["install", "--dry-run"], "install");
    check(RUN, &dry);
    for step in dry["plan"]["steps"].as_array().unwrap() {
        check("A step", step);
    }
    let installed = result(&world, &["install"], "install");
    check(RUN, &installed);
    check("A package", &installed["packages"][0]);
    check("An install hook record", &installed["hooks"][0]);
    for (arguments, command) in [
        (&["install"][..], "install"),
        (&["update"], "update"),
        (&["reinstall"], "reinstall"),
        (&["verify", "--repair"], "verify"),
        (&["hooks", "run", LINT], "hooks run"),
    ] {
        let idle = result(&world, arguments, command);
        check(RUN, &idle);
        assert_eq!(idle["up-to-date"], true, "{arguments:?}");
    }
    check("A package", &result(&world, &["list"], "list")[0]);
    check(
        "The result of verify",
        &result(&world, &["verify"], "verify"),
    );
    check(
        "The result of hooks list",
        &result(&world, &["hooks", "list"], "hooks list")[0],
    );
    check(
        "The result of hooks log",
        &result(&world, &["hooks", "log"], "hooks log"),
    );
    check(
        "The result of runs show",
        &result(&world, &["runs", "list"], "runs list")[0],
    );
    check(
        "The result of runs show",
        &result(&world, &["runs", "show"], "runs show"),
    );
    let environment = result(&world, &["doctor"], "doctor");
    check("The result of doctor", &environment);
    for found in environment["checks"].as_array().unwrap() {
        check("A check", found);
    }
    for setting in environment["settings"].as_array().unwrap() {
        check("A setting", setting);
    }
    check(
        "The result of completions",
        &result(&world, &["completions", "zsh"], "completions"),
    );
    check(
        "The result of init",
        &result(&world, &["init", "new"], "init"),
    );
}

#[test]
fn the_result_of_every_command_that_looks_is_as_documented() {
    let world = world();
    PackageBuilder::new("org.example/kit", "1.0.0")
        .depends(LINT, "*")
        .file("skills/review/SKILL.md", "review\n")
        .publish(&world.registry());
    vibe(&world, &["install", "org.example/kit"]).expect(0);
    let items = result(&world, &["list", "--items"], "list");
    check("An item", &items[0]);
    let tree = result(&world, &["tree"], "tree");
    check("The result of tree", &tree);
    check("A package", &tree["packages"][0]);
    let why = result(&world, &["why", LINT], "why");
    check("The result of why", &why);
    check("A package", &why["package"]);
    check("A requirement", &why["chains"][0][0]);
    let outdated = result(&world, &["outdated", "--all"], "outdated");
    check("The result of outdated", &outdated);
    check("A row of outdated", &outdated["rows"][0]);
    let shown = result(&world, &["show", "org.example/kit"], "show");
    check("The result of show", &shown);
    check("A package", &shown["locked"]);
    check("A requirement", &shown["requires"][0]);
    check("A requirement", &shown["required-by"][0]);
    check("An item", &shown["items"][0]);
}

#[test]
fn the_result_of_every_cache_command_is_as_documented() {
    let world = world();
    vibe(&world, &["install"]).expect(0);
    check(
        "The result of cache path",
        &result(&world, &["cache", "path"], "cache path"),
    );
    let listed = result(&world, &["cache", "list"], "cache list");
    check("The result of cache list", &listed);
    check("A stored tree", &listed["trees"][0]);
    check(
        "The result of cache verify",
        &result(&world, &["cache", "verify"], "cache verify"),
    );
    for words in [&["cache", "gc"][..], &["cache", "clean"]] {
        let removed = result(&world, words, &words.join(" "));
        check("The result of cache gc and cache clean", &removed);
    }
}

#[test]
fn every_command_fails_with_one_document_that_says_what_to_do() {
    let world = world();
    vibe(&world, &["install"]).expect(0);
    for (arguments, command, code, kind) in [
        (&["init"][..], "init", 1, "already-there"),
        (&["install", "org.example/lnit"], "install", 1, "resolve"),
        (&["tree", "org.example/lnit"], "tree", 1, "not-installed"),
        (&["why", "org.example/lnit"], "why", 1, "not-installed"),
        (&["show", "org.example/lnit"], "show", 1, "no-such-package"),
        (
            &["install", "git://host.example/x.git"],
            "install",
            2,
            "git-url",
        ),
        (
            &["reinstall", "org.example/lnit"],
            "reinstall",
            1,
            "not-installed",
        ),
        (
            &["verify", "org.example/lnit"],
            "verify",
            1,
            "not-installed",
        ),
        (
            &["hooks", "list", "org.example/lnit"],
            "hooks list",
            1,
            "not-installed",
        ),
        (
            &["hooks", "log", "org.example/lnit"],
            "hooks log",
            1,
            "not-installed",
        ),
        (
            &["hooks", "run", "org.example/lnit"],
            "hooks run",
            1,
            "not-installed",
        ),
        (&["runs", "show", "x"], "runs show", 1, "no-such-run"),
        (&["instal"], "", 2, "usage"),
        (&["install", "--lcked"], "", 2, "usage"),
        (&["install", "lint"], "", 2, "usage"),
        (&["hooks"], "", 2, "usage"),
        (&[], "", 2, "usage"),
    ] {
        let ran = vibe(&world, &[arguments, &["--json"]].concat()).expect(code);
        let error = &document(&ran, command)["error"];
        assert_eq!(error["kind"], kind, "{arguments:?}");
        assert_ne!(error["message"], "", "{arguments:?}");
        assert_ne!(error["hints"], serde_json::json!([]), "{arguments:?}");
        assert_eq!(ran.stderr, "", "{arguments:?}");
    }
}

#[test]
fn a_command_without_a_project_or_with_a_wrong_manifest_fails_with_its_place() {
    let world = World::new();
    let looks = [
        &["list"][..],
        &["hooks", "list"],
        &["hooks", "log"],
        &["runs", "list"],
    ];
    let works = [
        &["install"][..],
        &["reinstall"],
        &["verify"],
        &["hooks", "run", LINT],
    ];
    for arguments in looks.into_iter().chain(works) {
        let ran = vibe(&world, &[arguments, &["--json"]].concat()).expect(2);
        assert_eq!(ran.json()["error"]["kind"], "no-project", "{arguments:?}");
    }
    world.write(
        "vibe.toml",
        "[project]\nname = \"x\"\n\n[requires.packages]\n\"a.b/c\" = 1\n",
    );
    for arguments in looks.into_iter().chain(works) {
        let ran = vibe(&world, &[arguments, &["--json"]].concat()).expect(2);
        let error = ran.json()["error"].clone();
        assert_eq!(error["kind"], "manifest", "{arguments:?}");
        assert_eq!(
            (&error["line"], &error["column"]),
            (&5.into(), &11.into()),
            "{arguments:?}"
        );
    }
}

#[test]
fn what_verify_finds_and_a_failed_hook_are_in_the_document() {
    let world = world();
    vibe(&world, &["install"]).expect(0);
    let file = crate::support::slot(&world, LINT, "1.0.0").join("vibe.toml");
    std::fs::write(file, "changed").unwrap();
    let found = vibe(&world, &["verify", "--json"]).expect(3);
    let found = document(&found, "verify")["result"].clone();
    check("The result of verify", &found);
    check("A finding", &found["findings"][0]);
    assert_eq!(found["findings"][0]["kind"], "changed");
    PackageBuilder::new("org.example/bad", "1.0.0")
        .hook(Phase::PreInstall, "echo no; exit 3\n")
        .publish(&world.registry());
    let failed = vibe(&world, &["install", "org.example/bad", "--json"]).expect(4);
    let error = &document(&failed, "install")["error"];
    let mut hook = error["hook"].clone();
    assert_eq!(
        (&hook["exit-code"], &hook["tail"]),
        (&3.into(), &"no".into())
    );
    for key in ["log-path", "variables-not-passed"] {
        assert!(hook.as_object_mut().unwrap().remove(key).is_some(), "{key}");
    }
    check("An install hook record", &hook);
}

#[test]
fn what_hooks_print_stays_out_of_the_document() {
    let world = world();
    let ran = vibe(&world, &["install", "--json"]).expect(0);
    document(&ran, "install");
    ran.stderr_has("org.example/lint post-install | ");
}

#[test]
fn a_misspelt_key_is_told_whether_there_is_work_or_not() {
    let world = world();
    world.write(
        "vibe.toml",
        &world
            .read("vibe.toml")
            .replace("[project]", "[project]\nvendro = true"),
    );
    let warning =
        "vibe.toml (line 2, column 1): unknown key `vendro` in [project]; did you mean `vendor`?";
    for summary in ["installed 1 package", "nothing to do"] {
        vibe(&world, &["install"])
            .expect(0)
            .stdout_has(summary)
            .stderr_has(&format!("warning: {warning}\n"));
    }
    world.write(
        "vibe.toml",
        "[project]\nname = \"x\"\n[requires.pakages]\n\"a.b/c\" = \"^1\"\n",
    );
    std::fs::remove_file(world.project().join("vibe.lock")).unwrap();
    std::fs::remove_dir_all(world.project().join("vibedeps")).unwrap();
    let empty = vibe(&world, &["install", "--json"]).expect(0);
    let warnings = empty.json()["warnings"].to_string();
    assert!(
        warnings.contains("`pakages`") && warnings.contains("did you mean `packages`?"),
        "{warnings}"
    );
}

#[test]
fn a_reader_who_leaves_ends_output_quietly_and_work_completes() {
    let world = world();
    let mut child = start(&mut command(&world, &["install", "-v"]));
    drop(child.stdout.take());
    drop(child.stderr.take());
    wait(child).expect(0);
    vibe(&world, &["verify"]).expect(0);
    let mut child = start(&mut command(&world, &["list", "--json"]));
    let mut byte = [0];
    child.stdout.take().unwrap().read_exact(&mut byte).unwrap();
    let left = wait(child).expect(0);
    assert_eq!((byte, left.stderr.as_str()), (*b"{", ""));
}

#[cfg(unix)]
#[test]
fn closed_streams_change_no_exit_code() {
    let world = world();
    let closed = |arguments: &[&str]| {
        let script = "exec \"$0\" \"$@\" >&- 2>&- <&-";
        let mut shell = std::process::Command::new("bash");
        shell.args(["-c", script, VIBE]).args(arguments);
        let like = command(&world, &[]);
        shell.env_clear().current_dir(world.project());
        shell.envs(
            like.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        );
        shell.status().unwrap().code()
    };
    assert_eq!(closed(&["install"]), Some(0));
    assert_eq!(closed(&["list", "--json"]), Some(0));
    assert_eq!(closed(&["nonsense"]), Some(2));
    vibe(&world, &["verify"]).expect(0);
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_cannot_be_written_is_a_failure() {
    let world = world();
    vibe(&world, &["install"]).expect(0);
    for (arguments, code) in [
        (&["list"][..], 1),
        (&["list", "--json"], 1),
        (&["--help"], 1),
        (&["nonsense", "--json"], 2),
    ] {
        let full = std::fs::OpenOptions::new()
            .write(true)
            .open("/dev/full")
            .unwrap();
        run(command(&world, arguments).stdout(Stdio::from(full)))
            .expect(code)
            .stderr_has("error: the result could not be written to standard output\n")
            .stderr_has("  No space left on device");
    }
}

#[test]
fn colour_is_only_where_it_is_wanted() {
    let lines = |world: &World, arguments: &[&str]| {
        let ran = vibe(world, arguments);
        ran.stdout + &ran.stderr
    };
    for arguments in [
        &["install"][..],
        &["install", "--color", "auto"],
        &["install", "--color=never"],
    ] {
        let world = world();
        let text =
            lines(&world, arguments) + &lines(&world, &["list"]) + &lines(&world, &["nonsense"]);
        assert!(!text.contains('\u{1b}'), "{text:?}");
        assert!(text.contains("\\x1B[31mred"), "{text:?}");
    }
    let world = world();
    let coloured = vibe(&world, &["install", "--color", "always"]).expect(0);
    assert!(
        coloured
            .stdout
            .contains("\u{1b}[32m+\u{1b}[0m org.example/lint"),
        "{:?}",
        coloured.stdout
    );
    let quiet = vibe(&world, &["install", "-q"]).expect(0);
    assert_eq!((quiet.stdout.as_str(), quiet.stderr.as_str()), ("", ""));
}

/// Every command as it is written.
const COMMANDS: [&[&str]; 18] = [
    &["init"],
    &["install"],
    &["reinstall"],
    &["verify"],
    &["list"],
    &["hooks"],
    &["hooks", "list"],
    &["hooks", "log"],
    &["hooks", "run"],
    &["runs"],
    &["runs", "list"],
    &["runs", "show"],
    &["cache"],
    &["cache", "path"],
    &["cache", "list"],
    &["cache", "verify"],
    &["cache", "gc"],
    &["cache", "clean"],
];

#[test]
fn the_help_of_every_command_has_an_example_and_fits_the_terminal() {
    let world = World::new();
    for words in COMMANDS {
        let long = vibe(&world, &[words, &["--help"]].concat())
            .expect(0)
            .stdout;
        let line = format!("\n  vibe {}", words.join(" "));
        let example = long
            .split_once("\nExample:")
            .unwrap_or_else(|| panic!("{words:?}"))
            .1;
        assert!(example.starts_with(&line), "{words:?}: {example}");
        let mut narrow = command(&world, &[words, &["-h"]].concat());
        let narrow = run(narrow.env("COLUMNS", "40")).expect(0).stdout;
        let help = narrow.split_once("\nExample:").unwrap().0;
        let wide = help.lines().find(|line| line.chars().count() > 60);
        assert_eq!(wide, None, "{words:?}");
    }
    let help = vibe(&world, &["help"]).expect(0).stdout;
    for words in COMMANDS {
        assert!(help.contains(&format!("\n  {} ", words[0])), "{words:?}");
    }
}

#[test]
fn a_mistyped_command_or_option_names_the_one_that_was_meant() {
    let world = World::new();
    vibe(&world, &["instal"]).expect(2).stderr_has("'install'");
    vibe(&world, &["install", "--lockd"])
        .expect(2)
        .stderr_has("'--locked'");
    vibe(&world, &["hooks", "lst"])
        .expect(2)
        .stderr_has("'list'");
    vibe(&world, &["install", "../lint"])
        .expect(2)
        .stderr_has("write `path:../lint`");
    vibe(&world, &["hooks", "run", "lint"])
        .expect(2)
        .stderr_has("`lint` is not a package id: `group/name` is expected");
}
