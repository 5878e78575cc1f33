//! `vibe hooks`: where install hooks stand, what they printed, and running them now.

use crate::support::{read, redacted, slot, vibe, with_hook};
use vibe_core::hook::Phase;
use vibe_testkit::{PackageBuilder, World};

const LINT: &str = "org.example/lint";

/// A project that requires a package with the scripts `pre` and `post`, and one without hooks.
fn world(pre: &str, post: &str) -> World {
    let world = World::new();
    PackageBuilder::new("org.example/core", "1.0.0").publish(&world.registry());
    PackageBuilder::new(LINT, "1.0.0")
        .hook(Phase::PreInstall, pre)
        .hook(Phase::PostInstall, post)
        .publish(&world.registry());
    world.require(&[("org.example/core", "^1"), (LINT, "^1")]);
    world
}

/// How often the hooks that count have run.
fn runs(world: &World, counter: &str) -> usize {
    read(slot(world, LINT, "1.0.0").join(counter))
        .lines()
        .count()
}

const COUNT_PRE: &str = "echo prepared; echo run >> pre\n";
const COUNT_POST: &str = "echo finished; echo run >> post\n";

#[test]
fn each_hook_is_listed_with_its_script_and_why_it_will_or_will_not_run() {
    let world = world(COUNT_PRE, "echo sorry; exit 7\n");
    vibe(&world, &["install"]).expect(5);
    let before = world.snapshot();
    let listed = vibe(&world, &["hooks", "list"]).expect(0);
    insta::assert_snapshot!(redacted(&world, &listed.stdout), @r"
    org.example/lint 1.0.0  pre-install  done
        script  hooks/pre-install.sh  sha256:[digest]
        last    ok after [time], started [instant]
        next    does not run: the package's files have not changed since it ran
    org.example/lint 1.0.0  post-install  owed
        script  hooks/post-install.sh  sha256:[digest]
        last    failed (exit 7) after [time], started [instant]
        next    runs: its last run failed (exit 7)
    ");
    let only = vibe(&world, &["hooks", "list", LINT]).expect(0);
    assert_eq!(only.stdout, listed.stdout);
    vibe(&world, &["hooks", "list", "org.example/core"])
        .expect(0)
        .stdout_has("no install hooks are declared\n");
    before.assert_unchanged(&world.snapshot());
}

#[test]
fn a_hook_held_back_is_listed_with_who_holds_it() {
    let world = world(COUNT_PRE, COUNT_POST);
    vibe(&world, &["install", "--no-hooks"]).expect(0);
    vibe(&world, &["hooks", "list"])
        .expect(0)
        .stdout_has("org.example/lint 1.0.0  pre-install  skipped\n")
        .stdout_has("    last    held back\n")
        .stdout_has("    next    runs: it was held back, and is permitted now\n");
}

#[test]
fn the_log_is_that_of_the_newest_run_and_of_the_phase_that_is_asked_for() {
    let world = world("printf 'a\\tb\\033[2J\\n'\n", "true\n");
    vibe(&world, &["install"]).expect(0);
    let newest = vibe(&world, &["hooks", "log"]).expect(0);
    insta::assert_snapshot!(redacted(&world, &newest.stdout), @r"
    org.example/lint 1.0.0  post-install  ok  run [run]
    (it printed nothing)
    ");
    let pre = vibe(&world, &["hooks", "log", LINT, "--phase", "pre-install"]).expect(0);
    assert!(pre.stdout.ends_with("\na\tb\\x1B[2J\n"), "{}", pre.stdout);
    assert_eq!(
        vibe(&world, &["hooks", "log", "org.example/core"])
            .expect(0)
            .stdout,
        "no output of an install hook is kept\n"
    );
}

#[test]
fn a_package_that_is_not_installed_is_refused_with_the_name_that_was_meant() {
    let world = world("true\n", "true\n");
    vibe(&world, &["install"]).expect(0);
    for verb in ["list", "log", "run"] {
        let refused = vibe(&world, &["hooks", verb, "org.example/lnit"]).expect(1);
        assert_eq!(
            refused.stderr,
            "error: org.example/lnit is not installed in this project\n\
             hint: did you mean org.example/lint?\n",
            "{verb}"
        );
    }
}

#[test]
fn the_log_of_a_package_that_never_got_in_is_kept() {
    let world = world("echo broken; exit 1\n", "true\n");
    vibe(&world, &["install"])
        .expect(4)
        .stderr_has("hint: see its whole output: vibe hooks log org.example/lint\n");
    vibe(&world, &["hooks", "log", LINT])
        .expect(0)
        .stdout_has("failed (exit 1)")
        .stdout_has("\nbroken\n");
}

#[test]
fn running_hooks_with_nothing_due_says_so_and_writes_nothing() {
    let world = world(COUNT_PRE, COUNT_POST);
    vibe(&world, &["install"]).expect(0);
    // The lock was held meanwhile.
    let snapshot = || {
        let mut snapshot = world.snapshot();
        snapshot.entries.remove("vibedeps/.state/lock").unwrap();
        snapshot
    };
    let before = snapshot();
    let ran = vibe(&world, &["hooks", "run", LINT]).expect(0);
    assert_eq!(
        ran.stdout,
        "nothing to do: no install hook of org.example/lint is due\n"
    );
    assert_eq!(ran.stderr, "");
    before.assert_unchanged(&snapshot());
}

#[test]
fn hooks_run_on_demand_whether_they_are_due_or_not() {
    let world = world(COUNT_PRE, COUNT_POST);
    vibe(&world, &["install", "--no-hooks"]).expect(0);
    let held = vibe(&world, &["hooks", "run", LINT]).expect(0);
    insta::assert_snapshot!(redacted(&world, &held.stdout), @r"
    = org.example/lint  1.0.0
        pre-install   hooks/pre-install.sh   ok  [time]
        post-install  hooks/post-install.sh  ok  [time]
    ran 2 install hooks in [time]
    ");
    assert_eq!((runs(&world, "pre"), runs(&world, "post")), (1, 1));
    vibe(&world, &["hooks", "run", LINT, "--phase", "post-install"]).expect(0);
    assert_eq!((runs(&world, "pre"), runs(&world, "post")), (1, 2));
    vibe(&world, &["hooks", "run", LINT, "--force"]).expect(0);
    assert_eq!((runs(&world, "pre"), runs(&world, "post")), (2, 3));
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
}

#[test]
fn a_hook_that_fails_on_demand_keeps_the_package_and_ends_with_its_code() {
    for (phase, code) in [(Phase::PreInstall, 4), (Phase::PostInstall, 5)] {
        let script = "[ ! -e \"$VIBE_PROJECT_ROOT/broken\" ] || { echo no; exit 3; }\n";
        let world = world(script, script);
        vibe(&world, &["install"]).expect(0);
        world.write("broken", "yes");
        let locked = world.read("vibe.lock");
        vibe(&world, &["hooks", "run", LINT, "--phase", phase.as_str()])
            .expect(code)
            .stderr_has(&format!(
                "the {phase} script of org.example/lint 1.0.0 failed (exit 3)"
            ))
            .stderr_has("hint: see its whole output: vibe hooks log org.example/lint\n");
        assert!(slot(&world, LINT, "1.0.0").join("vibe.toml").exists());
        assert_eq!(world.read("vibe.lock"), locked);
        std::fs::remove_file(world.project().join("broken")).unwrap();
        vibe(&world, &["install"]).expect(0);
        vibe(&world, &["verify"]).expect(0);
    }
}

/// A project that requires a package by path, with hooks that count and `script` before that.
fn near_world(script: &str) -> (World, std::path::PathBuf) {
    let world = World::new();
    near(script).write(&world.root().join("near"));
    world.require(&[]);
    vibe(&world, &["install", "path:../near"]).expect(0);
    let place = slot(&world, "org.example/near", "1.0.0");
    (world, place)
}

fn near(script: &str) -> PackageBuilder {
    PackageBuilder::new("org.example/near", "1.0.0")
        .file("near.md", "near\n")
        .hook(Phase::PostInstall, &format!("{script}{COUNT_POST}"))
}

#[test]
fn what_runs_of_a_path_package_is_what_was_placed_whatever_its_source_has_become() {
    let (world, place) = near_world("echo made > added.md\n");
    let record = read(place.join(".vibe-slot.toml"));
    near("exit 9\n")
        .file("added.md", "published\n")
        .write(&world.root().join("near"));
    let again = ["hooks", "run", "org.example/near", "--force"];
    vibe(&world, &again).expect(0);
    assert_eq!(read(place.join("post")).lines().count(), 2);
    assert_eq!(read(place.join(".vibe-slot.toml")), record);
    vibe(&world, &["verify"]).expect(0);
    std::fs::remove_dir_all(world.root().join("near")).unwrap();
    vibe(&world, &again).expect(0);
    assert_eq!(read(place.join("post")).lines().count(), 3);
}

#[test]
fn a_path_package_whose_placed_manifest_was_edited_runs_only_what_its_source_still_has() {
    let (world, place) = near_world("");
    let edited = read(place.join("vibe.toml")) + "# mine\n";
    std::fs::write(place.join("vibe.toml"), edited).unwrap();
    let again = ["hooks", "run", "org.example/near", "--force"];
    vibe(&world, &again).expect(0);
    near("exit 9\n").write(&world.root().join("near"));
    vibe(&world, &again)
        .expect(1)
        .stderr_has("vibedeps/org.example.near/1.0.0 does not hold what its source has")
        .stderr_has("vibe install");
    assert_eq!(read(place.join("post")).lines().count(), 2);
}

#[test]
fn a_settled_hook_that_is_held_back_stays_settled() {
    let world = world(COUNT_PRE, COUNT_POST);
    vibe(&world, &["install"]).expect(0);
    let mut held = crate::support::command(&world, &["hooks", "run", LINT, "--force"]);
    crate::support::run(held.env("VIBE_NO_HOOKS", "1")).expect(0);
    vibe(&world, &["hooks", "list", LINT])
        .expect(0)
        .stdout_has("pre-install  done")
        .stdout_has("post-install  done");
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
    assert_eq!((runs(&world, "pre"), runs(&world, "post")), (1, 1));
}

/// Runs on while the project has a file `slow`.
const SLOW: &str = "if test -e \"$VIBE_PROJECT_ROOT/slow\"; then echo > \"$VIBE_PROJECT_ROOT/in\"; \
                    while test -e \"$VIBE_PROJECT_ROOT/slow\"; do read -r -t 0.05 < <(:) || :; \
                    done; fi\n";

/// Runs `arguments` and kills them within a hook that ends with [`SLOW`].
fn killed_in_hook(world: &World, arguments: &[&str]) {
    world.write("slow", "");
    let mut child = crate::support::start(&mut crate::support::command(world, arguments));
    let inside = world.project().join("in");
    crate::support::wait_until("the hook's start", || inside.exists());
    child.kill().unwrap();
    crate::support::wait(child);
    std::fs::remove_file(world.project().join("slow")).unwrap();
}

#[test]
fn a_settled_hook_that_is_killed_when_run_again_is_owed() {
    let world = world(COUNT_PRE, &format!("{COUNT_POST}{SLOW}"));
    vibe(&world, &["install"]).expect(0);
    killed_in_hook(&world, &["hooks", "run", LINT, "--phase", "post-install"]);
    vibe(&world, &["verify"])
        .expect(5)
        .stdout_has("! org.example/lint  the post-install script is owed");
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("ran 1 install hook");
    assert_eq!((runs(&world, "pre"), runs(&world, "post")), (1, 3));
    vibe(&world, &["verify"]).expect(0);
}

#[test]
fn what_a_killed_hook_did_is_known_when_it_is_run_again() {
    let once = "grep -q hooked notes.md || echo hooked >> notes.md\n";
    for phase in [Phase::PreInstall, Phase::PostInstall] {
        let world = World::new();
        PackageBuilder::new(LINT, "1.0.0")
            .file("notes.md", "notes\n")
            .hook(phase, &format!("{once}{SLOW}"))
            .publish(&world.registry());
        world.require(&[(LINT, "^1")]);
        vibe(&world, &["install", "--no-hooks"]).expect(0);
        killed_in_hook(&world, &["hooks", "run", LINT]);
        vibe(&world, &["hooks", "run", LINT]).expect(0);
        let notes = slot(&world, LINT, "1.0.0").join("notes.md");
        assert_eq!(read(notes), "notes\nhooked\n");
        vibe(&world, &["verify"]).expect(0);
    }
}

#[test]
fn a_hook_whose_source_changed_or_whose_slot_is_gone_is_listed_as_one_that_runs() {
    let (world, place) = near_world("");
    let list = ["hooks", "list"];
    vibe(&world, &list)
        .expect(0)
        .stdout_has("next    does not run: the package's files have not changed");
    near("")
        .file("more.md", "")
        .write(&world.root().join("near"));
    vibe(&world, &list)
        .expect(0)
        .stdout_has("next    runs: its source has other content now");
    let mut held = crate::support::command(&world, &list);
    crate::support::run(held.env("VIBE_NO_HOOKS", "1"))
        .expect(0)
        .stdout_has("next    does not run: held back by VIBE_NO_HOOKS");
    vibe(&world, &["install"]).expect(0);
    std::fs::remove_dir_all(place).unwrap();
    vibe(&world, &list)
        .expect(0)
        .stdout_has("next    runs: it has not run on this machine yet");
}

#[test]
fn a_phase_that_a_package_does_not_declare_cannot_be_run() {
    let world = with_hook(Phase::PostInstall, "echo hi\n");
    vibe(&world, &["install"]).expect(0);
    let asked = ["hooks", "run", LINT, "--phase", "pre-install"];
    let run = vibe(&world, &asked).expect(1);
    insta::assert_snapshot!(run.stderr, @r"
    error: org.example/lint declares no pre-install script
    hint: see which it declares: vibe hooks list org.example/lint
    ");
}
