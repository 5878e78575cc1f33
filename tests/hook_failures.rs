//! Install hooks that fail: what is told, what goes back, and what stays.

use std::fs;

use vibe_core::hook::Phase;
use vibe_testkit::{PackageBuilder, TreeSnapshot, World};

use crate::support::{
    COUNT, Run, committed, count, evidence, lint, lint_slot, process_ends, read, require_path, run,
    signal, source, unprivileged, vibe, with_hook,
};

fn check_exit(script: &str, shown: &str, field: &str, value: i32) {
    let world = with_hook(Phase::PreInstall, script);
    let failed = vibe(&world, &["--json", "install"]).expect(4).json();
    let hook = &failed["error"]["hook"];
    assert_eq!(hook[field], value, "{hook}");
    let message = failed["error"]["message"].as_str().unwrap();
    assert!(message.contains(&format!("({shown})")), "{message}");
    assert!(!world.project().join("vibe.lock").exists());

    let world = with_hook(Phase::PostInstall, script);
    vibe(&world, &["install"])
        .expect(5)
        .stderr_has(shown)
        .stdout_has("failed");
    assert_eq!(evidence(&world)["hooks"][0][field], value);
    assert!(world.project().join("vibe.lock").exists() && lint_slot(&world, "1.0.0").is_dir());
}

#[test]
fn exit_codes_are_shown_exactly() {
    for code in [1, 2, 126, 127, 255] {
        check_exit(
            &format!("exit {code}\n"),
            &format!("exit {code}"),
            "exit-code",
            code,
        );
    }
    check_exit("no-such-command-anywhere\n", "exit 127", "exit-code", 127);
}

#[test]
fn a_signal_is_reported_as_one() {
    for (name, number) in [("SEGV", 11), ("KILL", 9), ("TERM", 15)] {
        check_exit(
            &format!("kill -{name} $$\nsleep 300\n"),
            &format!("killed by signal {number}"),
            "signal",
            number,
        );
        let world = with_hook(Phase::PreInstall, &format!("kill -{name} $$\n"));
        let failed = vibe(&world, &["--json", "install"]).expect(4).json();
        assert_eq!(failed["error"]["hook"].get("exit-code"), None);
    }
}

#[test]
fn a_failed_pre_install_of_a_new_package_leaves_no_slot_and_no_entry() {
    let world = World::new();
    lint("1.0.0")
        .depends("org.example/base", "*")
        .hook(
            Phase::PreInstall,
            "mkdir -p made/deep && echo half > made/deep/file\nchmod -w made\nexit 3\n",
        )
        .publish(&world.registry());
    PackageBuilder::new("org.example/base", "1.0.0")
        .hook(Phase::PreInstall, COUNT)
        .publish(&world.registry());
    PackageBuilder::new("org.example/top", "1.0.0")
        .depends("org.example/lint", "*")
        .hook(Phase::PreInstall, "touch ../../../started\n")
        .publish(&world.registry());
    world.require(&[("org.example/top", "*")]);
    let manifest = world.read("vibe.toml");
    vibe(&world, &["install"])
        .expect(4)
        .stderr_has("the pre-install script of org.example/lint 1.0.0 failed (exit 3)")
        .stderr_has("vibe hooks log org.example/lint");
    assert_eq!(world.read("vibe.toml"), manifest);
    assert!(!world.project().join("vibe.lock").exists());
    assert!(!lint_slot(&world, "1.0.0").exists());
    assert!(!world.project().join("started").exists());
    assert_eq!(count(&world, "runs"), 1);

    lint("1.0.1")
        .depends("org.example/base", "*")
        .hook(Phase::PreInstall, "true\n")
        .publish(&world.registry());
    vibe(&world, &["install"]).expect(0);
    assert_eq!(
        count(&world, "runs"),
        1,
        "the finished pre-install of a dependency ran again"
    );
    assert!(world.project().join("started").exists());
}

#[test]
fn a_failed_pre_install_of_a_package_being_added_leaves_manifest_and_lock_as_they_were() {
    let world = World::new();
    PackageBuilder::new("org.example/base", "1.0.0").publish(&world.registry());
    lint("1.0.0")
        .hook(Phase::PreInstall, "exit 3\n")
        .publish(&world.registry());
    world.require(&[("org.example/base", "*")]);
    vibe(&world, &["install"]).expect(0);
    let before = committed(&world);
    vibe(&world, &["install", "org.example/lint"]).expect(4);
    before.assert_unchanged(&committed(&world));
    vibe(&world, &["install"]).expect(0);
    vibe(&world, &["verify"]).expect(0);
}

#[test]
fn a_failed_pre_install_of_a_refreshed_package_brings_the_former_payload_back() {
    let world = World::new();
    let good = "echo built > built.txt\necho kept >> kept.txt\n";
    lint("1.0.0")
        .file("old.md", "old\n")
        .hook(Phase::PreInstall, good)
        .write(&source(&world));
    require_path(&world);
    vibe(&world, &["install"]).expect(0);
    let slot = lint_slot(&world, "1.0.0");
    fs::write(slot.join("mine.txt"), "mine\n").unwrap();
    let before = committed(&world);
    let state = world.read("vibedeps/.state/slots.toml");

    fs::remove_file(source(&world).join("old.md")).unwrap();
    let bad =
        "echo x > lint.md; rm added.md; echo y > new.txt; mkdir newdir; touch newdir/z\nexit 3\n";
    lint("1.0.0")
        .file("lint.md", "other\n")
        .file("added.md", "added\n")
        .hook(Phase::PreInstall, bad)
        .write(&source(&world));
    vibe(&world, &["install"]).expect(4).stderr_has("exit 3");
    before.assert_unchanged(&committed(&world));
    assert_eq!(world.read("vibedeps/.state/slots.toml"), state);

    let fixed = "echo fixed > built.txt\n";
    lint("1.0.0")
        .file("lint.md", "other\n")
        .file("added.md", "added\n")
        .hook(Phase::PreInstall, fixed)
        .write(&source(&world));
    vibe(&world, &["install"]).expect(0);
    assert_eq!(read(slot.join("built.txt")), "fixed\n");
    assert_eq!(read(slot.join("lint.md")), "other\n");
    assert_eq!(read(slot.join("mine.txt")), "mine\n");
    vibe(&world, &["verify"]).expect(0);
}

#[test]
fn an_update_whose_pre_install_fails_costs_nothing_of_the_version_that_worked() {
    let world = with_hook(Phase::PreInstall, "echo built > built.txt\n");
    vibe(&world, &["install"]).expect(0);
    let before = committed(&world);
    let state = world.read("vibedeps/.state/slots.toml");
    lint("1.1.0")
        .hook(Phase::PreInstall, "exit 3\n")
        .publish(&world.registry());
    vibe(&world, &["install", "org.example/lint@^1.1"])
        .expect(4)
        .stderr_has("org.example/lint 1.1.0");
    before.assert_unchanged(&committed(&world));
    assert_eq!(world.read("vibedeps/.state/slots.toml"), state);
    vibe(&world, &["verify"]).expect(0);
    vibe(&world, &["install"]).expect(0);
    before.assert_unchanged(&committed(&world));
    lint("1.2.0")
        .hook(Phase::PreInstall, "true\n")
        .publish(&world.registry());
    vibe(&world, &["install", "org.example/lint@^1.2"]).expect(0);
    let ignored = world.read("vibedeps/.gitignore");
    assert!(
        ignored.contains("lint/1.2.0") && !ignored.contains("lint/1.0.0"),
        "{ignored}"
    );
}

#[test]
fn a_package_that_was_refreshed_and_prepared_goes_back_when_a_later_one_fails() {
    let world = World::new();
    let other = || PackageBuilder::new("org.example/other", "1.0.0");
    let publish = |text: &str, fails: bool| {
        let script = format!(
            "echo {text} >> ../../../told\necho {text} > built.txt\necho {text} > {text}.txt\n"
        );
        lint("1.0.0")
            .file("lint.md", text)
            .hook(Phase::PreInstall, &script)
            .write(&source(&world));
        let script = if fails { "exit 3\n" } else { "true\n" };
        other()
            .manifest_extra("[requires.packages]\n\"org.example/lint\" = { path = \"../lint\" }\n")
            .file("other.md", text)
            .hook(Phase::PreInstall, script)
            .write(&world.root().join("other"));
    };
    publish("one", false);
    world.write(
        "vibe.toml",
        "[project]\nname = \"world\"\n[requires.packages]\n\
         \"org.example/lint\" = { path = \"../lint\" }\n\
         \"org.example/other\" = { path = \"../other\" }\n",
    );
    vibe(&world, &["install"]).expect(0);
    let state = world.read("vibedeps/.state/slots.toml");
    let slot = || {
        let mut slot = TreeSnapshot::of(&lint_slot(&world, "1.0.0")).ignoring_times();
        slot.entries.remove("built.txt");
        slot
    };
    let before = slot();
    publish("two", true);
    // An older file that is no payload stays as the hook left it, and is named.
    vibe(&world, &["install"]).expect(4).stderr_has("built.txt");
    assert_eq!(world.read("told"), "one\ntwo\n");
    assert_eq!(world.read("vibedeps/.state/slots.toml"), state);
    before.assert_unchanged(&slot());
    publish("two", false);
    vibe(&world, &["install"]).expect(0);
    assert_eq!(world.read("told"), "one\ntwo\ntwo\n");
    assert_eq!(read(lint_slot(&world, "1.0.0").join("built.txt")), "two\n");
    vibe(&world, &["verify"]).expect(0);
}

#[test]
fn a_repair_whose_pre_install_fails_keeps_the_published_bytes_and_stays_owed() {
    let world = with_hook(
        Phase::PreInstall,
        "echo built >> lint.md\n[ ! -e ../../../forbidden ]\n",
    );
    vibe(&world, &["install"]).expect(0);
    let slot = lint_slot(&world, "1.0.0");
    assert_eq!(read(slot.join("lint.md")), "lint\nbuilt\n");
    let lock = world.read("vibe.lock");
    world.write("forbidden", "");
    fs::write(slot.join("lint.md"), "edited\n").unwrap();
    vibe(&world, &["verify", "--repair"]).expect(4);
    assert_eq!(read(slot.join("lint.md")), "lint\n");
    assert_eq!(world.read("vibe.lock"), lock);
    vibe(&world, &["verify"]).expect(5);
    vibe(&world, &["install"]).expect(4);
    fs::remove_file(world.project().join("forbidden")).unwrap();
    vibe(&world, &["install"]).expect(0);
    assert_eq!(read(slot.join("lint.md")), "lint\nbuilt\n");
    vibe(&world, &["verify"]).expect(0);
}

#[test]
fn a_failed_post_install_flags_its_package_until_it_succeeds_and_others_go_on() {
    let world = World::new();
    lint("1.0.0")
        .hook(Phase::PreInstall, "echo run >> ../../../pre\n")
        .hook(
            Phase::PostInstall,
            "echo run >> ../../../post\n[ -e ../../../allowed ] || { echo why not; exit 3; }\n",
        )
        .publish(&world.registry());
    PackageBuilder::new("org.example/top", "1.0.0")
        .depends("org.example/lint", "*")
        .hook(Phase::PostInstall, COUNT)
        .publish(&world.registry());
    world.require(&[("org.example/top", "*")]);
    vibe(&world, &["install"])
        .expect(5)
        .stderr_has("exit 3")
        .stderr_has("why not")
        .stderr_has("org.example/lint");
    assert_eq!(
        (
            count(&world, "pre"),
            count(&world, "post"),
            count(&world, "runs")
        ),
        (1, 1, 1)
    );
    assert_eq!(evidence(&world)["outcome"], "flagged");
    vibe(&world, &["list"]).stdout_has("post-install");
    vibe(&world, &["hooks", "list"]).stdout_has("exit 3");
    vibe(&world, &["verify"]).expect(5);
    vibe(&world, &["install"]).expect(5).stderr_has("exit 3");
    assert_eq!(
        (
            count(&world, "pre"),
            count(&world, "post"),
            count(&world, "runs")
        ),
        (1, 2, 1)
    );
    world.write("allowed", "");
    vibe(&world, &["install"]).expect(0);
    vibe(&world, &["verify"]).expect(0);
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
    assert_eq!(
        (
            count(&world, "pre"),
            count(&world, "post"),
            count(&world, "runs")
        ),
        (1, 3, 1)
    );
}

#[test]
fn a_package_being_added_whose_post_install_fails_is_in_manifest_and_lock() {
    let world = World::new();
    lint("1.0.0")
        .hook(Phase::PostInstall, "exit 3\n")
        .publish(&world.registry());
    world.require(&[]);
    vibe(&world, &["install", "org.example/lint"])
        .expect(5)
        .stderr_has("the package is installed");
    assert!(
        world
            .read("vibe.toml")
            .contains("\"org.example/lint\" = \"^1.0.0\"")
    );
    assert!(
        world
            .read("vibe.lock")
            .contains("id = \"org.example/lint\"")
    );
}

#[test]
fn a_corrected_script_clears_the_flag() {
    let world = World::new();
    lint("1.0.0")
        .hook(Phase::PostInstall, "exit 3\n")
        .write(&source(&world));
    require_path(&world);
    vibe(&world, &["install"]).expect(5);
    lint("1.0.0")
        .hook(Phase::PostInstall, COUNT)
        .write(&source(&world));
    vibe(&world, &["install"]).expect(0);
    assert_eq!(count(&world, "runs"), 1);
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
}

/// Runs `arguments` without the rights of root.
fn as_user(world: &World, arguments: &[&str]) -> Run {
    run(&mut unprivileged(world, arguments))
}

fn check_forbidding(deed: &str) {
    let script = format!(
        "[ -e ../../../allowed ] && exit 0\nmkdir -p made/deep\ntouch made/deep/file\n{deed}\nexit 3\n"
    );
    let world = with_hook(Phase::PreInstall, &script);
    as_user(&world, &["install"]).expect(4).stderr_has("exit 3");
    assert!(
        lint_slot(&world, "1.0.0").symlink_metadata().is_err(),
        "{deed}"
    );
    assert!(!world.project().join("vibe.lock").exists());
    world.write("allowed", "");
    as_user(&world, &["install"]).expect(0);
    as_user(&world, &["verify"]).expect(0);

    // A package that is refreshed goes back all the same.
    let world = World::new();
    lint("1.0.0")
        .hook(Phase::PreInstall, "true\n")
        .write(&source(&world));
    require_path(&world);
    as_user(&world, &["install"]).expect(0);
    let before = committed(&world);
    lint("1.0.0")
        .file("lint.md", "other\n")
        .hook(Phase::PreInstall, &script)
        .write(&source(&world));
    as_user(&world, &["install"]).expect(4).stderr_has("exit 3");
    let mut after = committed(&world);
    // A slot that was closed is open to its owner again, and may stay closed to others.
    let slot = "vibedeps/org.example.lint/1.0.0";
    after.entries.get_mut(slot).unwrap().mode |= 0o755;
    before.assert_unchanged(&after);
    world.write("allowed", "");
    as_user(&world, &["install"]).expect(0);
    assert_eq!(read(lint_slot(&world, "1.0.0").join("lint.md")), "other\n");
}

#[test]
fn going_back_copes_with_a_slot_that_nobody_may_enter() {
    check_forbidding("chmod 000 .");
}

#[test]
fn going_back_copes_with_a_tree_that_nobody_may_write() {
    check_forbidding("chmod -R a-w .");
}

#[test]
fn going_back_copes_with_a_directory_that_nobody_may_read() {
    check_forbidding("chmod 000 made/deep");
}

#[test]
fn a_flagged_hook_that_closes_its_slot_can_be_tried_again() {
    let world = with_hook(
        Phase::PostInstall,
        "[ -e ../../../allowed ] && exit 0\nchmod 000 .\nexit 3\n",
    );
    as_user(&world, &["install"]).expect(5).stderr_has("exit 3");
    world.write("allowed", "");
    as_user(&world, &["install"]).expect(0);
    as_user(&world, &["verify"]).expect(0);
}

#[test]
fn a_failed_hook_is_told_without_waiting_for_what_it_left_running() {
    let world = with_hook(
        Phase::PreInstall,
        "sleep 300 > /dev/null 2>&1 &\necho $! > ../../../pid\nexit 3\n",
    );
    vibe(&world, &["install"]).expect(4).stderr_has("exit 3");
    let pid = world.read("pid");
    assert!(signal(&pid, "KILL"), "what it left was ended");
    process_ends(&pid);
}

#[test]
fn hooks_run_counts_only_what_succeeded_as_done() {
    let world = with_hook(Phase::PostInstall, "exit 3\n");
    vibe(&world, &["install"]).expect(5);
    let failed = vibe(&world, &["hooks", "run", "org.example/lint", "--json"]).expect(5);
    let document = failed.json();
    assert_eq!(document["result"]["hooks"][0]["outcome"], "failed");
    assert_eq!(document["result"]["done"].as_array().unwrap().len(), 0);
    let held = ["hooks", "run", "org.example/lint", "--no-hooks", "--json"];
    let document = vibe(&world, &held).expect(0).json();
    assert_eq!(document["result"]["hooks"][0]["outcome"], "skipped");
    assert_eq!(document["result"]["done"].as_array().unwrap().len(), 0);
}
