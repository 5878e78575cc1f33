//! `vibe uninstall`: requirements go, and every package that nothing needs any more.

use vibe_core::hook::Phase;
use vibe_testkit::{PackageBuilder, World};

use crate::support::{
    COUNT, command, committed, count, forget_store, lines, lint, lint_slot, read, redacted,
    refused, require_path, run, slot, source, strace, strace_works, vibe, with_clone,
};

const LINT: &str = "org.example/lint";
const CORE: &str = "org.example/core";
const FORMAT: &str = "org.example/format";

/// `lint` and `format` are required, each requires `core`; `lint` alone requires `words`, which
/// requires `letters`.
fn world() -> World {
    let world = World::new();
    let registry = world.registry();
    PackageBuilder::new(CORE, "1.0.0").publish(&registry);
    PackageBuilder::new("org.example/letters", "1.0.0").publish(&registry);
    PackageBuilder::new("org.example/words", "1.0.0")
        .depends("org.example/letters", "^1")
        .publish(&registry);
    lint("1.0.0")
        .depends(CORE, "^1")
        .depends("org.example/words", "^1")
        .publish(&registry);
    PackageBuilder::new(FORMAT, "1.0.0")
        .depends(CORE, "^1")
        .hook(Phase::PostInstall, COUNT)
        .publish(&registry);
    world.require(&[(FORMAT, "^1"), (LINT, "^1")]);
    vibe(&world, &["install"]).expect(0);
    world
}

/// Requires `id` too, as by hand.
fn require_too(world: &World, id: &str) {
    let (header, line) = ("[requires.packages]\n", format!("\"{id}\" = \"^1\"\n"));
    let manifest = world.read("vibe.toml");
    world.write(
        "vibe.toml",
        &manifest.replace(header, &format!("{header}{line}")),
    );
}

/// The packages that are in the lock, in its order.
fn locked(world: &World) -> Vec<String> {
    let lock = world.read("vibe.lock");
    let ids = lock.lines().filter_map(|line| line.strip_prefix("id = "));
    ids.map(|id| id.trim_matches('"').to_owned()).collect()
}

/// What lies in `vibedeps/`, but for our own files.
fn placed(world: &World) -> Vec<String> {
    let entries = std::fs::read_dir(world.project().join("vibedeps")).unwrap();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    names
}

#[test]
fn a_package_goes_with_what_only_it_needs() {
    let world = world();
    let manifest = world.read("vibe.toml");
    let commented = manifest.replace(
        "[requires.packages]",
        "# tools\n[requires.packages]\n# both",
    ) + "# end\n";
    world.write("vibe.toml", &commented);
    let ran = vibe(&world, &["uninstall", LINT]).expect(0);
    insta::assert_snapshot!(redacted(&world, &format!("{}--- stderr\n{}", ran.stdout, ran.stderr)), @r"
    - org.example/letters  1.0.0
    - org.example/lint     1.0.0
    - org.example/words    1.0.0
    wrote vibe.toml
    removed 3 packages in [time]
    --- stderr
    ");
    assert_eq!(
        world.read("vibe.toml"),
        commented.replace(&format!("\"{LINT}\" = \"^1\"\n"), "")
    );
    assert_eq!(locked(&world), [CORE, FORMAT]);
    assert_eq!(placed(&world), ["org.example.core", "org.example.format"]);
    assert_eq!(count(&world, "runs"), 1);
    vibe(&world, &["verify"]).expect(0);
    let before = world.snapshot();
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
    before.assert_unchanged(&world.snapshot());
}

#[test]
fn a_dry_run_shows_what_would_go_and_changes_nothing() {
    let world = world();
    let before = world.snapshot();
    let ran = vibe(&world, &["remove", LINT, "--dry-run"]).expect(0);
    insta::assert_snapshot!(redacted(&world, &ran.stdout), @r"
    - org.example/letters  1.0.0  nothing requires it
    - org.example/lint     1.0.0  nothing requires it
    - org.example/words    1.0.0  nothing requires it
    ~ vibe.lock
    ~ vibe.toml
    dry run: nothing was changed; 3 steps to do
    ");
    before.assert_unchanged(&world.snapshot());
}

#[test]
fn nothing_is_asked_of_a_registry() {
    let world = world();
    std::fs::remove_dir_all(world.registry()).unwrap();
    forget_store(&world);
    vibe(&world, &["uninstall", LINT, "--offline"]).expect(0);
    assert_eq!(locked(&world), [CORE, FORMAT]);
    assert_eq!(count(&world, "runs"), 1);
}

#[test]
fn nothing_else_moves_though_there_are_newer_versions() {
    let world = world();
    PackageBuilder::new(CORE, "1.1.0").publish(&world.registry());
    let before = world.read("vibe.lock");
    vibe(&world, &["rm", LINT]).expect(0);
    let core = |lock: &str| {
        let entry = lock.split("[[package]]").find(|entry| entry.contains(CORE));
        entry.unwrap().to_owned()
    };
    assert_eq!(core(&world.read("vibe.lock")), core(&before));
}

#[test]
fn what_else_the_manifest_asks_for_by_now_is_installed() {
    let world = world();
    PackageBuilder::new("org.example/new", "1.0.0").publish(&world.registry());
    require_too(&world, "org.example/new");
    vibe(&world, &["uninstall", LINT]).expect(0);
    assert_eq!(locked(&world), [CORE, FORMAT, "org.example/new"]);
}

#[test]
fn a_package_that_others_need_is_refused_and_stays() {
    let world = world();
    let error = refused(&world, &["uninstall", "org.example/letters"], 1, &[]);
    insta::assert_snapshot!(error.stderr, @r"
    error: vibe.toml does not require org.example/letters; org.example/words does
    hint: it goes with what brings it: vibe uninstall org.example/lint
    ");
    let error = refused(&world, &["uninstall", LINT, CORE], 1, &[]);
    insta::assert_snapshot!(error.stderr, @r"
    error: vibe.toml does not require org.example/core; org.example/format, org.example/lint do
    hint: it goes with what brings it: vibe uninstall org.example/format org.example/lint
    ");
}

#[test]
fn a_requirement_that_others_need_too_goes_and_its_package_stays() {
    let world = world();
    vibe(&world, &["install", CORE]).expect(0);
    vibe(&world, &["uninstall", CORE]).expect(0).stderr_has(
        "org.example/core stays installed: it is required by org.example/format, org.example/lint",
    );
    assert!(!world.read("vibe.toml").contains(CORE));
    assert!(slot(&world, CORE, "1.0.0").is_dir());
}

#[test]
fn a_name_that_is_not_known_takes_nothing_with_it() {
    let world = world();
    let error = refused(&world, &["uninstall", LINT, "org.example/fromat"], 1, &[]);
    insta::assert_snapshot!(error.stderr, @r"
    error: org.example/fromat is not installed in this project
    hint: did you mean org.example/format?
    ");
    let error = refused(&world, &["uninstall"], 2, &[]);
    insta::assert_snapshot!(error.stderr, @r"
    error: the following required arguments were not provided:
      <ID>...

    Usage: vibe uninstall <ID>...

    For more information, try '--help'.
    ");
    let document = vibe(&world, &["uninstall", "com.other/x", "--json"])
        .expect(1)
        .json();
    assert_eq!(document["error"]["kind"], "not-installed");
}

#[test]
fn a_requirement_that_was_never_installed_is_taken_out() {
    let world = world();
    let manifest = world.read("vibe.toml");
    require_too(&world, "org.example/absent");
    vibe(&world, &["uninstall", "org.example/absent"]).expect(0);
    assert_eq!(world.read("vibe.toml"), manifest);
}

#[test]
fn a_package_whose_source_is_gone_can_be_taken_out() {
    let world = World::new();
    lint("1.0.0").write(&source(&world));
    require_path(&world);
    vibe(&world, &["install"]).expect(0);
    std::fs::remove_dir_all(source(&world)).unwrap();
    vibe(&world, &["install"])
        .expect(1)
        .stderr_has("the path `../lint` of org.example/lint cannot be opened");
    vibe(&world, &["uninstall", LINT]).expect(0);
    assert!(locked(&world).is_empty() && placed(&world).is_empty());
}

#[test]
fn files_of_the_users_stay_and_are_named() {
    let world = world();
    let place = lint_slot(&world, "1.0.0");
    std::fs::write(place.join("mine.md"), "mine\n").unwrap();
    std::fs::write(place.join("lint.md"), "edited\n").unwrap();
    vibe(&world, &["uninstall", LINT])
        .expect(0)
        .stderr_has("kept in vibedeps/org.example.lint/1.0.0")
        .stderr_has("lint.md, mine.md");
    assert_eq!(read(place.join("mine.md")), "mine\n");
    assert_eq!(read(place.join("lint.md")), "edited\n");
    assert!(!place.join("vibe.toml").exists());
    // What stays is no package.
    vibe(&world, &["uninstall", LINT])
        .expect(1)
        .stderr_has("org.example/lint is not installed");
}

#[test]
fn the_last_requirement_leaves_an_empty_project() {
    let world = world();
    let ran = vibe(&world, &["uninstall", LINT, FORMAT, "--json"]).expect(0);
    let result = &ran.json()["result"];
    assert_eq!(result["packages"], serde_json::json!([]));
    assert_eq!(result["manifest-changed"], true);
    let steps = result["done"].as_array().unwrap().iter();
    let steps: Vec<&str> = steps.map(|step| step["step"].as_str().unwrap()).collect();
    assert_eq!(steps, ["remove"; 5]);
    assert_eq!(
        world.read("vibe.toml"),
        format!(
            "[project]\nname = \"world\"\n\n[requires.packages]\n\n{}",
            world
                .read("vibe.toml")
                .split_once("packages]\n\n")
                .unwrap()
                .1
        )
    );
    assert!(locked(&world).is_empty() && placed(&world).is_empty());
    vibe(&world, &["verify"]).expect(0);
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
    vibe(&world, &["install", LINT]).expect(0);
    assert!(lint_slot(&world, "1.0.0").is_dir());
}

#[test]
fn a_hook_may_not_uninstall_from_its_own_project() {
    let world = World::new();
    lint("1.0.0")
        .hook(
            Phase::PreInstall,
            "cd ../../.. && \"$VIBE_EXECUTABLE\" uninstall org.example/lint\n",
        )
        .publish(&world.registry());
    world.require(&[(LINT, "^1")]);
    vibe(&world, &["install"])
        .expect(4)
        .stderr_has("may not run `vibe uninstall`");
    assert!(world.read("vibe.toml").contains(LINT));
}

#[test]
fn work_in_a_clone_is_not_given_up_without_force() {
    let world = with_clone();
    let clone = world.project().join("vibedeps/org.example.kit");
    std::fs::write(clone.join("mine.md"), "mine\n").unwrap();
    let uninstall = ["uninstall", "org.example/kit"];
    refused(
        &world,
        &uninstall,
        1,
        &["vibedeps/org.example.kit/mine.md", "--force"],
    );
    vibe(&world, &[&uninstall[..], &["--force"]].concat()).expect(0);
    assert!(!clone.exists());
    assert!(locked(&world).is_empty());
}

/// A world as another one is now.
fn copy_of(world: &World) -> World {
    let copy = World::new();
    let mut cp = std::process::Command::new("cp");
    cp.arg("-a").arg(world.root().join(".")).arg(copy.root());
    assert!(cp.status().unwrap().success());
    copy
}

/// Kills an uninstall at each `call` in turn; the same command again ends as it would have.
fn kill_at_each(call: &str) {
    if !strace_works() {
        return;
    }
    let before = world();
    let uninstall = ["uninstall", LINT];
    let good = copy_of(&before);
    vibe(&good, &uninstall).expect(0);
    let good = committed(&good);
    for number in 1.. {
        let world = copy_of(&before);
        let log = world.home().join("calls");
        let inject = format!("inject={call}:signal=KILL:when={number}");
        let trace = format!("trace={call}");
        let struck = command(&world, &uninstall);
        let struck = run(&mut strace(&struck, &log, &["-e", &trace, "-e", &inject]));
        if struck.code == 0 {
            assert!(number > 3, "only {number} of {call}");
            return;
        }
        assert!(lines(&log).iter().any(|line| line.contains("SIGKILL")));
        let again = vibe(&world, &uninstall);
        // Where its own slot was gone already, an install removes the rest.
        let is_gone = again.code == 1 && again.stderr.contains("is not installed");
        assert!(again.code == 0 || is_gone, "{number}: {}", again.stderr);
        if again.code == 0 {
            good.assert_unchanged(&committed(&world));
        } else if committed(&world) != good {
            assert!(
                again
                    .stderr
                    .contains("the next `vibe install` removes them")
            );
        }
        vibe(&world, &["install"]).expect(0);
        good.assert_unchanged(&committed(&world));
        vibe(&world, &["verify"]).expect(0);
        assert_eq!(count(&world, "runs"), 1);
    }
}

#[test]
fn an_uninstall_killed_at_a_rename_is_finished_by_the_next() {
    kill_at_each("/^rename");
}

#[test]
fn an_uninstall_killed_at_a_removal_is_finished_by_the_next() {
    kill_at_each("/^unlink");
}

#[test]
fn outside_a_project_nothing_can_be_taken_out() {
    let world = World::new();
    vibe(&world, &["uninstall", LINT])
        .expect(2)
        .stderr_has("there is no vibe.toml");
}
