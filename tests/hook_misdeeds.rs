//! Install hooks that do what no hook may do, and so have failed.

use vibe_core::hook::Phase;
use vibe_testkit::{PackageBuilder, World};

use crate::support::{evidence, lint, lint_slot, read, slot, vibe, with_hook};

#[test]
fn a_hook_that_removes_its_slot_has_failed() {
    for (phase, code) in [(Phase::PreInstall, 4), (Phase::PostInstall, 5)] {
        let world = with_hook(phase, "rm -rf \"$VIBE_PACKAGE_DIR\"\n");
        vibe(&world, &["install"])
            .expect(code)
            .stderr_has("removed its slot");
        assert_eq!(evidence(&world)["hooks"][0]["outcome"], "failed");
        assert!(!lint_slot(&world, "1.0.0").exists());
    }
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
            let told = format!("changed the install hook script hooks/{script}");
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

#[test]
fn payload_that_another_package_changed_is_put_back_before_the_pre_install_script_and_named() {
    let world = World::new();
    PackageBuilder::new("org.example/core", "1.0.0")
        .hook(
            Phase::PreInstall,
            "echo changed > ../../org.example.lint/1.0.0/lint.md\n",
        )
        .publish(&world.registry());
    lint("1.0.0")
        .depends("org.example/core", "*")
        .hook(Phase::PreInstall, "cat lint.md > ../../../seen\n")
        .publish(&world.registry());
    world.require(&[("org.example/lint", "*")]);
    vibe(&world, &["install"])
        .expect(0)
        .stderr_has("org.example.lint/1.0.0: 1 file");
    assert_eq!(world.read("seen"), "lint\n");
    vibe(&world, &["verify"]).expect(0);
}
