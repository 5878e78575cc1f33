//! Install hooks that fail, that misbehave, that may not run, and that cannot run.

use std::fs;
use std::path::Path;
use std::process::Command;

use vibe_core::hook::Phase;
use vibe_testkit::{PackageBuilder, TreeSnapshot, World};

use crate::support::{
    Run, command, evidence, lint, lint_slot, process_ends, read, run, slot, unprivileged, vibe,
};

/// Publishes `org.example/lint` 1.0.0 with one script, and requires it.
fn with_hook(phase: Phase, script: &str) -> World {
    let world = World::new();
    lint("1.0.0").hook(phase, script).publish(&world.registry());
    world.require(&[("org.example/lint", "*")]);
    world
}

/// Requires `org.example/lint` by the path `../lint`.
fn require_path(world: &World) {
    world.write(
        "vibe.toml",
        "[project]\nname = \"world\"\n[requires.packages]\n\"org.example/lint\" = { path = \"../lint\" }\n",
    );
}

fn source(world: &World) -> std::path::PathBuf {
    world.root().join("lint")
}

/// The project without the machine's own state.
fn committed(world: &World) -> TreeSnapshot {
    let mut snapshot = world.snapshot().ignoring_times();
    snapshot
        .entries
        .retain(|path, _| !path.starts_with("vibedeps/.state"));
    snapshot
}

fn count(world: &World, file: &str) -> usize {
    fs::read_to_string(world.project().join(file))
        .unwrap_or_default()
        .lines()
        .count()
}

const COUNT: &str = "echo run >> ../../../runs\n";

// ---- exits

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

// ---- a failing pre-install

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
        .stderr_has("the pre-install hook of org.example/lint 1.0.0 failed (exit 3)")
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

// ---- a failing post-install

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

// ---- what no hook may do

/// Both phases: a pre-install that does it has failed, and so has a post-install.
fn check_misdeed(script: &str, told: &str, look: impl Fn(&World)) {
    for (phase, code) in [(Phase::PreInstall, 4), (Phase::PostInstall, 5)] {
        let world = with_hook(phase, script);
        PackageBuilder::new("org.example/other", "1.0.0").publish(&world.registry());
        world.require(&[("org.example/lint", "*"), ("org.example/other", "*")]);
        vibe(&world, &["install"]).expect(code).stderr_has(told);
        assert_eq!(
            lint_slot(&world, "1.0.0").exists(),
            phase == Phase::PostInstall && !told.contains("removed")
        );
        look(&world);
    }
}

#[test]
fn a_hook_that_removes_its_slot_has_failed() {
    check_misdeed(
        "rm -rf \"$VIBE_PACKAGE_DIR\"\n",
        "removed its slot",
        |world| {
            assert_eq!(evidence(world)["hooks"][0]["outcome"], "failed");
        },
    );
}

#[test]
fn a_hook_that_removes_its_slot_leaves_the_others_whole_and_is_tried_again() {
    let script = "[ -e ../../../allowed ] || rm -rf \"$VIBE_PACKAGE_DIR\"\n";
    let world = with_hook(Phase::PostInstall, script);
    PackageBuilder::new("org.example/other", "1.0.0")
        .file("other.md", "other\n")
        .publish(&world.registry());
    world.require(&[("org.example/lint", "*"), ("org.example/other", "*")]);
    vibe(&world, &["install"]).expect(5);
    assert_eq!(
        read(slot(&world, "org.example/other", "1.0.0").join("other.md")),
        "other\n"
    );
    world.write("allowed", "");
    vibe(&world, &["install"]).expect(0);
    assert_eq!(read(lint_slot(&world, "1.0.0").join("lint.md")), "lint\n");
    vibe(&world, &["verify"]).expect(0);
}

#[test]
fn a_hook_that_changes_the_lock_has_failed_and_the_lock_is_restored() {
    let lock = "../../../vibe.lock";
    for deed in [
        "echo '# mine' >> LOCK",
        "rm LOCK",
        "rm LOCK && ln -s elsewhere LOCK",
        "rm LOCK && mkdir LOCK",
        "chmod 000 LOCK && rm LOCK && touch LOCK",
    ] {
        let script = format!("[ -e LOCK ] || touch LOCK\n{deed}\n").replace("LOCK", lock);
        for (phase, code) in [(Phase::PreInstall, 4), (Phase::PostInstall, 5)] {
            let world = with_hook(phase, "true\n");
            PackageBuilder::new("org.example/other", "1.0.0").publish(&world.registry());
            world.require(&[("org.example/other", "*")]);
            vibe(&world, &["install"]).expect(0);
            let lock = world.read("vibe.lock");
            lint("1.0.0")
                .hook(phase, &script)
                .publish(&world.registry());
            vibe(&world, &["install", "org.example/lint"])
                .expect(code)
                .stderr_has("changed vibe.lock");
            let now = world.read("vibe.lock");
            match phase {
                Phase::PreInstall => assert_eq!(now, lock, "{deed}"),
                Phase::PostInstall => {
                    assert!(
                        now.contains("org.example/lint") && now.contains("org.example/other"),
                        "{deed}: {now}"
                    );
                    assert!(!now.contains("# mine"), "{deed}");
                }
            }
        }
    }
}

#[test]
fn a_lock_made_by_the_first_hook_goes_again() {
    for deed in [
        "touch LOCK",
        "mkdir LOCK",
        "ln -s nowhere LOCK",
        "mkfifo LOCK",
    ] {
        let world = with_hook(
            Phase::PreInstall,
            &format!("{deed}\n").replace("LOCK", "../../../vibe.lock"),
        );
        vibe(&world, &["install"])
            .expect(4)
            .stderr_has("changed vibe.lock");
        assert!(
            world
                .project()
                .join("vibe.lock")
                .symlink_metadata()
                .is_err(),
            "{deed}"
        );
    }
}

#[test]
fn a_hook_that_changes_the_manifest_has_failed_and_the_manifest_is_left() {
    for (phase, code) in [(Phase::PreInstall, 4), (Phase::PostInstall, 5)] {
        let world = with_hook(phase, "echo '# mine' >> ../../../vibe.toml\n");
        let manifest = world.read("vibe.toml");
        vibe(&world, &["install"])
            .expect(code)
            .stderr_has("changed vibe.toml");
        assert_eq!(world.read("vibe.toml"), format!("{manifest}# mine\n"));
    }
}

#[test]
fn a_hook_that_changes_a_hook_script_of_its_package_has_failed() {
    for (phase, code) in [(Phase::PreInstall, 4), (Phase::PostInstall, 5)] {
        for script in ["pre-install.sh", "post-install.sh", "post-install.ps1"] {
            let world = World::new();
            let deed = format!("echo '# mine' >> hooks/{script}\n");
            let (pre, post) = match phase {
                Phase::PreInstall => (deed.as_str(), "touch ../../../post\n"),
                Phase::PostInstall => ("true\n", deed.as_str()),
            };
            lint("1.0.0")
                .hook(Phase::PreInstall, pre)
                .hook(Phase::PostInstall, post)
                .powershell_hook(Phase::PostInstall, "exit 0\n")
                .publish(&world.registry());
            world.require(&[("org.example/lint", "*")]);
            let told = format!("changed the hook script hooks/{script}");
            vibe(&world, &["install"]).expect(code).stderr_has(&told);
            assert!(!world.project().join("post").exists());
        }
    }
}

#[test]
fn a_hook_that_changes_its_slot_record_has_failed_and_the_record_is_restored() {
    for deed in [
        "echo '# mine' >> RECORD",
        "rm RECORD",
        "rm RECORD && mkdir RECORD",
        "rm RECORD && ln -s /etc/hostname RECORD",
    ] {
        let script = format!("{deed}\n").replace("RECORD", ".vibe-slot.toml");
        let world = with_hook(Phase::PostInstall, &script);
        vibe(&world, &["install", "--no-hooks"]).expect(0);
        let path = lint_slot(&world, "1.0.0").join(".vibe-slot.toml");
        let record = read(&path);
        vibe(&world, &["install"])
            .expect(5)
            .stderr_has("changed its slot record");
        assert_eq!(read(&path), record, "{deed}");
        assert!(!path.is_symlink(), "{deed}");
        // Still owed, so that the next run tells of it again.
        vibe(&world, &["install"])
            .expect(5)
            .stderr_has("changed its slot record");
    }
    let world = with_hook(Phase::PreInstall, "echo '# mine' >> .vibe-slot.toml\n");
    vibe(&world, &["install"])
        .expect(4)
        .stderr_has("changed its slot record");
}

#[test]
fn an_inner_install_whose_refusal_is_passed_on_fails_the_hook() {
    let world = with_hook(
        Phase::PreInstall,
        "cd ../../.. && \"$VIBE_EXECUTABLE\" install\n",
    );
    vibe(&world, &["install"])
        .expect(4)
        .stderr_has("may not run `vibe install`");
}

#[test]
fn a_hook_that_puts_a_link_in_place_of_its_slot_has_failed_and_nothing_is_followed() {
    let script = "cd ../../.. && mv \"$VIBE_PACKAGE_DIR\" moved && ln -s \"$PWD/moved\" \"$VIBE_PACKAGE_DIR\"\n";
    for (phase, code) in [(Phase::PreInstall, 4), (Phase::PostInstall, 5)] {
        let world = with_hook(phase, script);
        vibe(&world, &["install"])
            .expect(code)
            .stderr_has("removed its slot");
        assert_eq!(world.read("moved/lint.md"), "lint\n");
        assert!(
            world
                .read("moved/.vibe-slot.toml")
                .contains("org.example/lint")
        );
        let is_installed = phase == Phase::PostInstall;
        assert_eq!(lint_slot(&world, "1.0.0").is_symlink(), is_installed);
        if is_installed {
            vibe(&world, &["install"])
                .expect(1)
                .stderr_has("is a link to");
        }
    }
}

#[test]
fn a_hook_that_turns_a_payload_file_into_something_else_has_failed() {
    for deed in [
        "rm lint.md && mkdir lint.md",
        "ln -sf vibe.toml lint.md",
        "rm lint.md && mkfifo lint.md",
    ] {
        for (phase, code) in [(Phase::PreInstall, 4), (Phase::PostInstall, 5)] {
            let world = with_hook(
                phase,
                &format!("[ -e ../../../allowed ] && exit 0\n{deed}\n"),
            );
            vibe(&world, &["install"])
                .expect(code)
                .stderr_has("turned lint.md into something that is not a file");
            world.write("allowed", "");
            vibe(&world, &["install"]).expect(0);
            vibe(&world, &["verify", "--repair"]).expect(0);
            assert_eq!(read(lint_slot(&world, "1.0.0").join("lint.md")), "lint\n");
        }
    }
}

#[test]
fn a_hook_that_removes_every_slot_and_our_state_fails_and_the_next_run_mends_all() {
    for (phase, code) in [(Phase::PreInstall, 4), (Phase::PostInstall, 5)] {
        let world = with_hook(
            phase,
            "[ -e ../../../allowed ] || rm -rf ../../../vibedeps\n",
        );
        PackageBuilder::new("org.example/other", "1.0.0")
            .file("other.md", "other\n")
            .publish(&world.registry());
        world.require(&[("org.example/lint", "*"), ("org.example/other", "*")]);
        vibe(&world, &["install"])
            .expect(code)
            .stderr_has("removed its slot");
        world.write("allowed", "");
        vibe(&world, &["install"]).expect(0);
        assert_eq!(
            read(slot(&world, "org.example/other", "1.0.0").join("other.md")),
            "other\n"
        );
        vibe(&world, &["verify"]).expect(0);
    }
}

// ---- permissions

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

// ---- policies

/// What holds hooks back: arguments, a variable, the project's word, the user's.
struct Hold {
    arguments: &'static [&'static str],
    variable: Option<&'static str>,
    project: Option<&'static str>,
    user: Option<&'static str>,
    named: &'static str,
}

const OPEN: Hold = Hold {
    arguments: &[],
    variable: None,
    project: None,
    user: None,
    named: "",
};

fn set_policy(world: &World, hold: &Hold) {
    world.require(&[("org.example/lint", "*")]);
    if let Some(word) = hold.project {
        let text = world.read("vibe.toml").replacen(
            "name = \"world\"\n",
            &format!("name = \"world\"\ninstall-hooks = \"{word}\"\n"),
            1,
        );
        world.write("vibe.toml", &text);
    }
    let config = world.home().join("vibe/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(
        &config,
        hold.user.map_or(String::new(), |word| {
            format!("[hooks]\npolicy = \"{word}\"\n")
        }),
    )
    .unwrap();
}

fn install_held(world: &World, hold: &Hold) -> Run {
    let mut arguments = vec!["install"];
    arguments.extend(hold.arguments);
    let mut install = command(world, &arguments);
    if let Some(variable) = hold.variable {
        install.env("VIBE_NO_HOOKS", variable);
    }
    run(&mut install)
}

fn check_hold(hold: &Hold) {
    let world = World::new();
    lint("1.0.0")
        .hook(Phase::PreInstall, COUNT)
        .hook(Phase::PostInstall, COUNT)
        .publish(&world.registry());
    set_policy(&world, hold);
    install_held(&world, hold)
        .expect(0)
        .stderr_has("2 install hooks are held back")
        .stderr_has(hold.named)
        .stdout_has("held back");
    assert_eq!(count(&world, "runs"), 0);
    let outcomes: Vec<_> = evidence(&world)["hooks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hook| hook["outcome"].clone())
        .collect();
    assert_eq!(outcomes, ["skipped", "skipped"]);
    let before = world.snapshot();
    install_held(&world, hold)
        .expect(0)
        .stdout_has("nothing to do");
    before.assert_unchanged(&world.snapshot());
    vibe(&world, &["verify"]).expect(0);
    vibe(&world, &["list"])
        .expect(0)
        .stdout_has("pre-install skipped, post-install skipped");
    assert_eq!(count(&world, "runs"), 0);
    set_policy(&world, &OPEN);
    install_held(&world, &OPEN).expect(0);
    assert_eq!(count(&world, "runs"), 2);
    install_held(&world, &OPEN)
        .expect(0)
        .stdout_has("nothing to do");
    assert_eq!(count(&world, "runs"), 2);
}

#[test]
fn the_flag_holds_hooks_back_until_a_run_permits_them() {
    check_hold(&Hold {
        arguments: &["--no-hooks"],
        named: "--no-hooks",
        ..OPEN
    });
}

#[test]
fn the_environment_holds_hooks_back_until_a_run_permits_them() {
    check_hold(&Hold {
        variable: Some("1"),
        named: "VIBE_NO_HOOKS",
        ..OPEN
    });
}

#[test]
fn the_project_holds_hooks_back_until_it_permits_them() {
    check_hold(&Hold {
        project: Some("never"),
        named: "`install-hooks` in vibe.toml",
        ..OPEN
    });
    check_hold(&Hold {
        project: Some("ask"),
        named: "`install-hooks` in vibe.toml",
        ..OPEN
    });
}

#[test]
fn the_user_holds_hooks_back_until_they_permit_them() {
    check_hold(&Hold {
        user: Some("never"),
        named: "`[hooks] policy` in config.toml",
        ..OPEN
    });
    check_hold(&Hold {
        user: Some("ask"),
        named: "`[hooks] policy` in config.toml",
        ..OPEN
    });
}

#[test]
fn nobody_loosens_what_another_holds_back() {
    check_hold(&Hold {
        user: Some("install-is-consent"),
        project: Some("never"),
        named: "`install-hooks` in vibe.toml",
        ..OPEN
    });
    check_hold(&Hold {
        user: Some("never"),
        project: Some("ask"),
        named: "`[hooks] policy` in config.toml",
        ..OPEN
    });
}

#[test]
fn a_package_s_hooks_run_without_any_further_word_and_are_shown_before_and_after() {
    let world = World::new();
    PackageBuilder::new("unknown.stranger/tool", "1.0.0")
        .hook(Phase::PreInstall, COUNT)
        .publish(&world.registry());
    world.require(&[("unknown.stranger/tool", "*")]);
    let digest = vibe_core::Sha256Digest::of(COUNT.as_bytes()).to_string();
    vibe(&world, &["install", "--dry-run"])
        .expect(0)
        .stdout_has("unknown.stranger/tool")
        .stdout_has("pre-install")
        .stdout_has("hooks/pre-install.sh")
        .stdout_has(&digest[..12]);
    assert_eq!(count(&world, "runs"), 0);
    vibe(&world, &["install"]).expect(0);
    assert_eq!(count(&world, "runs"), 1);
    let hook = &evidence(&world)["hooks"][0];
    for (key, value) in [
        ("package", "unknown.stranger/tool"),
        ("phase", "pre-install"),
        ("script", "hooks/pre-install.sh"),
        ("sha256", &digest),
        ("reason", "install"),
        ("outcome", "ran"),
    ] {
        assert_eq!(hook[key], value, "{hook}");
    }
    let row = format!("\"hooks/pre-install.sh\" = \"sha256:{digest}\"");
    assert!(world.read("vibe.lock").contains(&row));
}

#[test]
fn running_hooks_on_demand_passes_the_same_gate_and_reports_the_same_failures() {
    let world = World::new();
    lint("1.0.0")
        .hook(Phase::PreInstall, COUNT)
        .hook(
            Phase::PostInstall,
            "[ ! -e ../../../forbidden ] || exit 3\n",
        )
        .publish(&world.registry());
    set_policy(&world, &OPEN);
    vibe(&world, &["install", "--no-hooks"]).expect(0);
    let run_hooks = ["hooks", "run", "org.example/lint"];
    set_policy(
        &world,
        &Hold {
            user: Some("never"),
            ..OPEN
        },
    );
    vibe(&world, &run_hooks).expect(0).stderr_has("held back");
    assert_eq!(count(&world, "runs"), 0);
    set_policy(&world, &OPEN);
    world.write("forbidden", "");
    vibe(&world, &run_hooks).expect(5).stderr_has("exit 3");
    assert_eq!(count(&world, "runs"), 1);
    assert_eq!(evidence(&world)["outcome"], "flagged");
    fs::remove_file(world.project().join("forbidden")).unwrap();
    vibe(&world, &run_hooks).expect(0);
    vibe(&world, &run_hooks)
        .expect(0)
        .stdout_has("nothing to do");
    assert_eq!(count(&world, "runs"), 1);
}

// ---- what cannot run

/// A directory with links to every program but `bash` that a hook could need.
fn path_without_bash(world: &World) -> std::path::PathBuf {
    let directory = world.root().join("no-bash");
    fs::create_dir(&directory).unwrap();
    std::os::unix::fs::symlink("/bin/true", directory.join("sh")).unwrap();
    directory
}

#[test]
fn without_bash_a_package_with_hooks_is_refused_before_anything_is_written() {
    let world = with_hook(Phase::PreInstall, COUNT);
    PackageBuilder::new("org.example/other", "1.0.0").publish(&world.registry());
    let path = path_without_bash(&world);
    let before = world.snapshot();
    for arguments in [&["install"][..], &["install", "org.example/other"]] {
        run(command(&world, arguments).env("PATH", &path))
            .expect(1)
            .stderr_has("the pre-install hook of org.example/lint 1.0.0 cannot run")
            .stderr_has("hooks/pre-install.sh")
            .stderr_has("install bash")
            .stderr_has("--no-hooks");
        let after = world.snapshot();
        let mut untouched = after.ignoring_times();
        untouched
            .entries
            .retain(|path, _| !path.starts_with("vibedeps"));
        before.clone().ignoring_times().assert_unchanged(&untouched);
        assert!(!lint_slot(&world, "1.0.0").exists());
    }
    run(command(&world, &["install", "--no-hooks"]).env("PATH", &path)).expect(0);
    assert_eq!(count(&world, "runs"), 0);
    vibe(&world, &["install"]).expect(0);
    assert_eq!(count(&world, "runs"), 1);
}

/// Installs a package whose manifest says `base`, and expects a refusal that says `told`.
fn check_base(base: &str, code: i32, told: &[&str]) {
    let world = World::new();
    lint("1.0.0")
        .file("hooks/prepare.sh", COUNT)
        .file("hooks/dir/file", "")
        .file("hooks/only.ps1", "exit 0\n")
        .manifest_extra(&format!("[hooks]\npre-install = '{base}'\n"))
        .publish(&world.registry());
    world.require(&[("org.example/lint", "*")]);
    let refused = vibe(&world, &["install"])
        .expect(code)
        .stderr_has("org.example/lint");
    let _ = told
        .iter()
        .fold(refused, |refused, part| refused.stderr_has(part));
    assert_eq!(count(&world, "runs"), 0);
    assert!(!world.project().join("vibe.lock").exists() && !lint_slot(&world, "1.0.0").exists());
}

#[test]
fn a_base_that_leads_out_of_the_package_is_refused() {
    for base in [
        "../x",
        "/x",
        "hooks\\x",
        "hooks/../../x",
        "./hooks/prepare",
        "hooks//prepare",
        "hooks/prepare/",
    ] {
        check_base(base, 2, &["pre-install"]);
    }
}

#[test]
fn a_base_with_an_extension_is_refused() {
    for base in ["hooks/prepare.sh", "hooks/prepare.PS1", "hooks/prepare.Sh"] {
        check_base(base, 2, &["without extension"]);
    }
}

#[test]
fn a_base_without_script_names_both_files_looked_for() {
    check_base("hooks/none", 1, &["hooks/none.sh", "hooks/none.ps1"]);
    check_base(
        "hooks/dir",
        1,
        &["hooks/dir.sh", "hooks/dir.ps1", "is a directory"],
    );
    check_base("hooks/only", 1, &["hooks/only.ps1", "hooks/only.sh"]);
}

#[test]
fn an_extension_is_appended_and_a_blank_base_is_no_hook() {
    let world = World::new();
    lint("1.0.0")
        .file("hooks/prepare.v2.sh", COUNT)
        .manifest_extra("[hooks]\npre-install = 'hooks/prepare.v2'\npost-install = ' '\n")
        .publish(&world.registry());
    world.require(&[("org.example/lint", "*")]);
    vibe(&world, &["install"]).expect(0);
    assert_eq!(count(&world, "runs"), 1);
}

#[test]
fn a_second_script_for_a_phase_cannot_be_declared() {
    let world = World::new();
    lint("1.0.0")
        .file("hooks/one.sh", COUNT)
        .manifest_extra("[hooks]\npre-install = ['hooks/one', 'hooks/one']\n")
        .publish(&world.registry());
    world.require(&[("org.example/lint", "*")]);
    let refused = vibe(&world, &["install"]).stderr_has("pre-install");
    assert!(refused.code == 1 || refused.code == 2, "{}", refused.code);
    assert_eq!(count(&world, "runs"), 0);
}

#[test]
fn bash_is_never_taken_from_a_relative_entry_of_path() {
    let world = with_hook(Phase::PreInstall, COUNT);
    world.write("bin/bash", "#!/bin/sh\ntouch fooled\n");
    let bash = world.project().join("bin/bash");
    assert!(
        Command::new("chmod")
            .arg("755")
            .arg(bash)
            .status()
            .unwrap()
            .success()
    );
    let path = std::env::var("PATH").unwrap();
    for first in ["bin", ".", ""] {
        world.write("bash", "#!/bin/sh\ntouch fooled\n");
        run(command(&world, &["install"]).env("PATH", format!("{first}:{path}"))).expect(0);
    }
    assert_eq!(count(&world, "runs"), 1);
    run(command(&world, &["reinstall", "--force"]).env("PATH", "bin"))
        .expect(1)
        .stderr_has("install bash");
}

#[test]
fn scripts_that_bash_would_misread_are_refused_by_name() {
    for (text, told) in [
        ("echo a\r\necho b\r\n", "CRLF"),
        ("\u{feff}echo a\n", "byte order mark"),
    ] {
        let world = with_hook(Phase::PreInstall, text);
        vibe(&world, &["install"])
            .expect(1)
            .stderr_has("hooks/pre-install.sh")
            .stderr_has(told);
        assert!(!world.project().join("vibe.lock").exists());
    }
}

#[test]
fn a_path_to_bash_that_is_not_text_is_no_obstacle() {
    use std::os::unix::ffi::OsStrExt;
    let world = with_hook(Phase::PreInstall, COUNT);
    let directory = world.root().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&directory).unwrap();
    let bash = Path::new("/bin/bash");
    assert!(bash.exists());
    std::os::unix::fs::symlink(bash, directory.join("bash")).unwrap();
    run(command(&world, &["install"]).env("PATH", &directory)).expect(0);
    assert_eq!(count(&world, "runs"), 1);
    run(command(&world, &["--json", "hooks", "list"]).env("PATH", &directory)).expect(0);
}

#[test]
fn what_a_killed_hook_left_running_is_not_ours_to_wait_for() {
    let world = with_hook(
        Phase::PreInstall,
        "sleep 300 > /dev/null 2>&1 &\necho $! > ../../../pid\nexit 3\n",
    );
    vibe(&world, &["install"]).expect(4).stderr_has("exit 3");
    let pid = world.read("pid");
    assert!(
        Command::new("kill")
            .args(["-9", pid.trim()])
            .status()
            .unwrap()
            .success()
    );
    process_ends(&pid);
}
