//! `vibe doctor`: what the environment offers, and where settings came from.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};

use serde_json::Value;
use vibe_core::hook::Phase;
use vibe_testkit::{PackageBuilder, TreeSnapshot, World};

use crate::support::{
    Run, command, lines, lint, read, run, store, unprivileged, vibe, with_clone, with_hook,
};

const LINT: &str = "org.example/lint";

/// A project with one package that is installed.
fn installed() -> World {
    let world = World::new();
    lint("1.0.0").publish(&world.registry());
    world.require(&[(LINT, "^1")]);
    vibe(&world, &["install"]).expect(0);
    world
}

/// The result of a finished doctor.
fn result(ran: &Run) -> Value {
    let document = ran.json();
    assert_eq!(document["command"], "doctor");
    document["result"].clone()
}

/// What was found of `name` in `group`: its status and the text.
#[track_caller]
fn found(result: &Value, group: &str, name: &str) -> (String, String) {
    let checks = result["checks"].as_array().unwrap();
    let check = checks
        .iter()
        .find(|check| check["group"] == group && check["name"] == name)
        .unwrap_or_else(|| panic!("no {name} of {group} in {checks:#?}"));
    let text = |key: &str| check[key].as_str().unwrap().to_owned();
    assert_eq!(check["hint"].is_null(), check["status"] == "ok", "{check}");
    (text("status"), text("found"))
}

/// Asserts that the doctor ends with `code` and finds of `name` in `group` the `status`, and `part`
/// in its text.
#[track_caller]
fn check(ran: &Run, group: &str, name: &str, status: &str, part: &str) {
    let (is, text) = found(&result(ran), group, name);
    assert!(is == status && text.contains(part), "{name}: {is}: {text}");
}

fn doctor(world: &World) -> Run {
    vibe(world, &["doctor", "--json"])
}

#[test]
fn outside_a_project_the_rest_is_reported() {
    let world = World::new();
    let ran = doctor(&world).expect(0);
    check(&ran, "project", "root", "ok", "none: no vibe.toml in ");
    check(&ran, "vibe", "version", "ok", env!("CARGO_PKG_VERSION"));
    check(&ran, "store and cache", "store", "ok", "not there yet");
    check(&ran, "tools", "bash", "ok", "GNU bash");
    check(&ran, "tools", "powershell", "ok", "not used on this system");
    assert!(world.snapshot().entries.is_empty());
    assert!(!store(&world).exists());
}

#[test]
fn a_project_in_order_is_found_so_and_left_as_it_is() {
    let world = installed();
    let everything = || TreeSnapshot::of(world.root()).ignoring_times();
    let before = everything();
    let ran = doctor(&world).expect(0);
    before.assert_unchanged(&everything());
    for (name, part) in [
        ("vibe.toml", "1 required"),
        ("vibe.lock", "1 locked"),
        ("vibedeps", "writable"),
        ("lock between runs", "works"),
        ("last run", "nothing of it waits"),
        ("install hooks", "none is due"),
        ("staging", "empty"),
        ("slots", "only what vibe.lock names"),
    ] {
        check(&ran, "project", name, "ok", part);
    }
    let place = "store and cache";
    check(&ran, place, "store", "ok", store(&world).to_str().unwrap());
    check(&ran, place, "file system", "ok", "share one");
    check(&ran, place, "links", "ok", "hard links yes");
    check(&ran, place, "links", "ok", "symbolic links yes");
    let text = vibe(&world, &["doctor"]).expect(0);
    text.stdout_has("\nproject\n  ok       root")
        .stdout_has("  ok       vibe.lock          1 locked\n");
}

#[test]
fn what_an_earlier_run_left_is_a_warning() {
    let world = installed();
    let state = world.project().join("vibedeps/.state");
    fs::create_dir(state.join("staging/left")).unwrap();
    world.require(&[]);
    fs::remove_file(world.project().join("vibe.lock")).unwrap();
    let ran = doctor(&world).expect(0);
    check(&ran, "project", "staging", "warning", "1 left");
    check(&ran, "project", "slots", "warning", LINT);
    check(&ran, "project", "vibe.lock", "ok", "none");
    assert_eq!(result(&ran)["warnings"], 2);
    vibe(&world, &["install"]).expect(0);
    let ran = doctor(&world).expect(0);
    check(&ran, "project", "staging", "ok", "empty");
    check(&ran, "project", "slots", "ok", "");
}

#[test]
fn hooks_that_are_due_are_a_warning() {
    let world = with_hook(Phase::PostInstall, "exit 3\n");
    vibe(&world, &["install"]).expect(5);
    let ran = doctor(&world).expect(0);
    let place = "org.example/lint 1.0.0";
    check(&ran, "project", "install hooks", "warning", place);
}

#[test]
fn a_lock_that_does_not_follow_is_a_warning_and_one_that_is_none_a_problem() {
    let world = installed();
    world.require(&[(LINT, "^1"), ("org.example/new", "^1")]);
    let ran = doctor(&world).expect(0);
    check(&ran, "project", "vibe.lock", "warning", "org.example/new");
    fs::remove_file(world.project().join("vibe.lock")).unwrap();
    check(
        &doctor(&world),
        "project",
        "vibe.lock",
        "warning",
        "missing",
    );
    world.write("vibe.lock", "<<<<<<< mine\n");
    let ran = doctor(&world).expect(1);
    check(&ran, "project", "vibe.lock", "problem", "is not valid");
    let document = ran.json();
    assert_eq!(
        (&document["error"], &document["ok"]),
        (&Value::Null, &false.into())
    );
    assert_eq!(document["result"]["problems"], 1);
}

#[test]
fn a_project_that_no_command_can_open_is_a_problem() {
    let world = World::new();
    world.write("vibe.toml", "[project]\nname = 1\n");
    let ran = doctor(&world).expect(1);
    check(&ran, "project", "vibe.toml", "problem", "is not valid");
    world.write("vibe.toml", "[project]\nname = \"x\"\n");
    symlink("/", world.project().join("vibedeps")).unwrap();
    let ran = doctor(&world).expect(1);
    check(&ran, "project", "vibedeps", "problem", "a symbolic link");
    let ran = vibe(&world, &["doctor", "--json", "--project", "absent"]).expect(1);
    check(&ran, "project", "root", "problem", "absent");
}

#[test]
fn a_package_is_no_project_and_no_problem() {
    let world = World::new();
    PackageBuilder::new(LINT, "1.0.0").write(&world.project());
    let ran = doctor(&world).expect(0);
    check(&ran, "project", "root", "ok", "is a package, not a project");
}

#[test]
fn places_that_cannot_be_written_are_named() {
    let world = installed();
    for directory in [world.project().join("vibedeps"), store(&world)] {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o555)).unwrap();
    }
    let ran = run(&mut unprivileged(&world, &["doctor", "--json"])).expect(0);
    check(&ran, "project", "vibedeps", "warning", "cannot be written");
    check(
        &ran,
        "store and cache",
        "store",
        "warning",
        "cannot be written",
    );
    for directory in [world.project().join("vibedeps"), store(&world)] {
        fs::set_permissions(directory, fs::Permissions::from_mode(0o755)).unwrap();
    }
}

#[test]
fn a_store_below_something_that_is_no_directory_is_a_problem() {
    let world = installed();
    world.write("file", "");
    let mut below = command(&world, &["doctor", "--json"]);
    below.env("VIBE_PKG_HOME", world.project().join("file/home"));
    let ran = run(&mut below).expect(1);
    let area = "store and cache";
    check(&ran, area, "store", "problem", "cannot be made");
    check(&ran, area, "git repositories", "problem", "cannot be made");
}

#[test]
fn a_store_in_the_project_is_a_problem() {
    let world = installed();
    let mut inside = command(&world, &["doctor", "--json"]);
    inside.env("VIBE_PKG_HOME", world.project().join("home"));
    let ran = run(&mut inside).expect(1);
    check(
        &ran,
        "store and cache",
        "links",
        "problem",
        "one in the other",
    );
}

#[test]
fn a_run_that_works_is_named_and_not_disturbed() {
    let world = with_hook(
        Phase::PostInstall,
        "cd ../../.. && \"$VIBE_EXECUTABLE\" doctor --json > \"$HOME/report\"\n",
    );
    vibe(&world, &["install"]).expect(0);
    let ran = Run {
        code: 0,
        stdout: read(world.home().join("report")),
        stderr: String::new(),
    };
    let holder = "is held by process";
    check(&ran, "project", "lock between runs", "ok", holder);
    check(
        &ran,
        "store and cache",
        "links",
        "ok",
        "not tried: another run",
    );
}

/// The doctor with nothing in PATH but a directory of the programs given, each with its script.
fn with_programs(world: &World, programs: &[(&str, &str)]) -> Run {
    let bin = world.root().join("bin");
    fs::create_dir_all(&bin).unwrap();
    for (name, script) in programs {
        let path = bin.join(name);
        fs::write(&path, format!("#!/bin/bash\n{script}")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }
    let mut command = command(world, &["doctor", "--json"]);
    run(command.env("PATH", &bin).env("MY_TOKEN", "secret"))
}

#[test]
fn a_program_that_nothing_needs_may_be_absent() {
    let ran = with_programs(&installed(), &[]).expect(0);
    check(&ran, "tools", "git", "warning", "no `git` is found");
    check(&ran, "tools", "bash", "warning", "not found in PATH");
    check(&ran, "tools", "ssh", "warning", "not found in PATH");
}

#[test]
fn a_program_that_a_package_needs_may_not_be_absent() {
    let world = with_hook(Phase::PostInstall, "true\n");
    vibe(&world, &["install"]).expect(0);
    let ran = with_programs(&world, &[]).expect(1);
    check(&ran, "tools", "bash", "problem", "not found in PATH");
    let world = with_clone();
    let ran = with_programs(&world, &[]).expect(1);
    check(&ran, "tools", "git", "problem", "no `git` is found");
    let old = [("git", "echo git version 2.29.2\n")];
    let ran = with_programs(&world, &old).expect(1);
    check(&ran, "tools", "git", "problem", "2.29.2");
}

#[test]
fn programs_are_asked_for_their_version_and_nothing_else() {
    let world = World::new();
    let log = world.root().join("log").display().to_string();
    let told = |version: &str| {
        format!(
            "echo \"${{0##*/}} ${{@: -1}} $PWD ${{MY_TOKEN-none}}\" >> '{log}'\necho '{version}'\n"
        )
    };
    let (git, bash) = (told("git version 2.40.0"), told("bash of \u{1b}[31mours"));
    let ran = with_programs(
        &world,
        &[("git", &git), ("bash", &bash), ("ssh", "exit 3\n")],
    );
    let ran = ran.expect(0);
    check(&ran, "tools", "git", "ok", "2.40.0, ");
    check(&ran, "tools", "bash", "ok", "bash of \\x1B[31mours, ");
    let bin = world.root().join("bin/ssh").display().to_string();
    check(&ran, "tools", "ssh", "ok", &bin);
    let project = world.project();
    let project = project.display();
    let mut calls = lines(&log);
    calls.sort();
    assert_eq!(
        calls,
        [
            format!("bash --version {project} none"),
            format!("git --version {project} secret")
        ]
    );
}

#[test]
fn a_program_that_fails_is_a_problem() {
    let ran = with_programs(&World::new(), &[("bash", "exit 3\n")]).expect(1);
    check(&ran, "tools", "bash", "problem", "does not say its version");
}

/// Each setting by its name: value, origin and what says so.
fn settings(ran: &Run) -> BTreeMap<String, (String, String, Value)> {
    let result = result(ran);
    let settings = result["settings"].as_array().unwrap().iter();
    let text = |setting: &Value, key: &str| setting[key].as_str().unwrap().to_owned();
    settings
        .map(|setting| {
            let value = (
                text(setting, "value"),
                text(setting, "origin"),
                setting["from"].clone(),
            );
            (text(setting, "name"), value)
        })
        .collect()
}

#[test]
fn each_setting_says_where_it_came_from() {
    let world = installed();
    let home = world.home().join("vibe");
    fs::create_dir_all(&home).unwrap();
    fs::write(
        home.join("config.toml"),
        "[hooks]\ntimeout = \"10m\"\npass-env = [\"LICENCE\"]\n[limits]\nfile-bytes = 5\n",
    )
    .unwrap();
    let manifest = world.read("vibe.toml");
    let held = "name = \"world\"\ninstall-hooks = \"never\"";
    world.write("vibe.toml", &manifest.replace("name = \"world\"", held));
    let mut asked = command(&world, &["doctor", "--json", "--offline"]);
    asked.env("VIBE_LINK_MODE", "copy");
    let found = settings(&run(&mut asked).expect(0));
    let config = home.join("config.toml").display().to_string();
    for (name, value, origin, from) in [
        ("offline", "yes", "flag", Some("--offline")),
        ("link-mode", "copy", "environment", Some("VIBE_LINK_MODE")),
        (
            "store",
            store(&world).to_str().unwrap(),
            "environment",
            Some("VIBE_PKG_HOME"),
        ),
        (
            "hooks.policy",
            "never",
            "project",
            Some("`install-hooks` in vibe.toml"),
        ),
        ("hooks.timeout", "10m", "config", Some(&config)),
        ("hooks.pass-env", "LICENCE", "config", Some(&config)),
        ("limits.file-bytes", "5", "config", Some(&config)),
        ("limits.package-entries", "200000", "default", None),
        ("color", "auto", "default", None),
    ] {
        let expected = (value.to_owned(), origin.to_owned(), from.into());
        assert_eq!(found[name], expected, "{name}");
    }
    let mut asked = command(&world, &["doctor", "--json"]);
    asked.env("VIBE_NO_HOOKS", "1");
    let found = settings(&run(&mut asked).expect(0));
    assert_eq!(found["hooks.policy"].1, "environment");
    assert_eq!(found["offline"].1, "default");
}

#[test]
fn no_credential_is_shown() {
    let world = World::new();
    let mut asked = command(&world, &["doctor", "--json"]);
    asked
        .env("VIBE_GIT_TOKEN_GIT_EXAMPLE", "secret")
        .env("https_proxy", "http://me:secret@proxy.example")
        .env("GIT_SSH_COMMAND", "ssh -o Secret=secret")
        .env("MY_PASSWORD", "secret");
    let ran = run(&mut asked).expect(0);
    assert!(!ran.stdout.contains("secret") && !ran.stderr.contains("secret"));
    let found = settings(&ran);
    for name in [
        "VIBE_GIT_TOKEN_GIT_EXAMPLE",
        "https_proxy",
        "GIT_SSH_COMMAND",
    ] {
        assert_eq!(found[name].0, "set", "{name}");
    }
    assert!(!found.contains_key("MY_PASSWORD"));
    check(&ran, "tools", "ssh", "ok", "as GIT_SSH_COMMAND says");
}

#[test]
fn a_config_that_is_wrong_is_told_by_its_line() {
    let world = World::new();
    let home = world.home().join("vibe");
    fs::create_dir_all(&home).unwrap();
    fs::write(home.join("config.toml"), "[hooks]\npolicy = \"maybe\"\n").unwrap();
    vibe(&world, &["doctor"])
        .expect(2)
        .stderr_has("config.toml:2:10");
}
