//! `vibe list`: what is installed, and what is still open.

use crate::support::{command_in, read, run, slot, vibe};
use vibe_core::hook::Phase;
use vibe_testkit::{PackageBuilder, World};

/// A project with a package that is flagged and one that is not.
fn world() -> World {
    let world = World::new();
    PackageBuilder::new("org.example/core", "1.2.0").publish(&world.registry());
    PackageBuilder::new("org.example/lint", "10.0.0")
        .depends("org.example/core", "^1")
        .hook(Phase::PreInstall, "true\n")
        .hook(Phase::PostInstall, "exit 3\n")
        .publish(&world.registry());
    world.require(&[("org.example/lint", "^10")]);
    world
}

#[test]
fn every_package_is_a_line_and_an_owed_hook_is_shown() {
    let world = world();
    vibe(&world, &["install"]).expect(5);
    let before = world.snapshot();
    let listed = vibe(&world, &["list"]).expect(0);
    insta::assert_snapshot!(listed.stdout, @r"
    org.example/core  1.2.0   copy  1 file
    org.example/lint  10.0.0  copy  3 files  post-install owed
    ");
    assert_eq!(listed.stderr, "");
    before.assert_unchanged(&world.snapshot());
    vibe(&world, &["install", "--no-hooks"]).expect(0);
    vibe(&world, &["list"])
        .expect(0)
        .stdout_has("post-install skipped\n");
}

#[test]
fn a_package_whose_slot_is_gone_is_not_installed() {
    let world = world();
    vibe(&world, &["install"]).expect(5);
    std::fs::remove_dir_all(slot(&world, "org.example/core", "1.2.0")).unwrap();
    vibe(&world, &["list"])
        .expect(0)
        .stdout_has("org.example/core  1.2.0   not installed\n");
}

#[test]
fn without_a_lock_nothing_is_installed_and_a_note_says_what_to_do() {
    let world = world();
    let listed = vibe(&world, &["list"]).expect(0);
    assert_eq!(listed.stdout, "no packages are installed\n");
    let note = "vibe.lock is missing; `vibe install` installs what vibe.toml requires";
    assert_eq!(listed.stderr, format!("note: {note}\n"));
    let document = vibe(&world, &["list", "--json"]).expect(0).json();
    assert_eq!(document["result"], serde_json::json!([]));
    assert_eq!(document["notes"], serde_json::json!([note]));
    let hooks = vibe(&world, &["hooks", "list"]).expect(0);
    assert_eq!(hooks.stdout, "no install hooks are declared\n");
    assert_eq!(hooks.stderr, format!("note: {note}\n"));
}

#[test]
fn an_empty_project_is_a_normal_state_for_every_command_that_looks() {
    let world = World::new();
    vibe(&world, &["init"]).expect(0);
    for (arguments, text) in [
        (&["list"][..], "no packages are installed\n"),
        (&["list", "--items"], "no items\n"),
        (&["tree"], "no packages are installed\n"),
        (&["outdated"], "no packages are installed\n"),
        (&["hooks", "list"], "no install hooks are declared\n"),
        (&["hooks", "log"], "no output of an install hook is kept\n"),
        (&["runs", "list"], "no runs are kept\n"),
        (&["runs", "show"], "no runs are kept\n"),
        (
            &["install"],
            "nothing to do: the project requires no packages\n",
        ),
        (
            &["update"],
            "nothing to do: the project requires no packages\n",
        ),
        (
            &["update", "--dry-run"],
            "nothing to do: the project requires no packages\n",
        ),
        (
            &["reinstall"],
            "nothing to do: the project requires no packages\n",
        ),
        (
            &["verify", "--repair"],
            "nothing to do: the project requires no packages\n",
        ),
    ] {
        let shown = vibe(&world, arguments).expect(0);
        assert_eq!(
            (shown.stdout.as_str(), shown.stderr.as_str()),
            (text, ""),
            "{arguments:?}"
        );
    }
    vibe(&world, &["verify"])
        .expect(0)
        .stdout_has("verified 0 packages, 0 files in ");
    let paths: Vec<String> = world.snapshot().entries.into_keys().collect();
    assert_eq!(paths, ["vibe.toml"]);
}

#[test]
fn the_project_is_found_from_below_and_by_option() {
    let world = world();
    vibe(&world, &["install", "--no-hooks"]).expect(0);
    let expected = vibe(&world, &["list"]).expect(0).stdout;
    let below = world.project().join("src/deep");
    std::fs::create_dir_all(&below).unwrap();
    assert_eq!(
        run(&mut command_in(&world, &below, &["list"]))
            .expect(0)
            .stdout,
        expected
    );
    let option = ["--project", "project", "list"];
    assert_eq!(
        run(&mut command_in(&world, world.root(), &option))
            .expect(0)
            .stdout,
        expected
    );
    let nowhere = run(&mut command_in(&world, world.root(), &["list"])).expect(2);
    nowhere
        .stderr_has("error: there is no vibe.toml in ")
        .stderr_has("hint: start a project here: vibe init\n");
}

#[test]
fn a_slot_record_that_cannot_be_trusted_is_named_and_not_taken_for_absence() {
    let world = world();
    vibe(&world, &["install", "--no-hooks"]).expect(0);
    let record = slot(&world, "org.example/core", "1.2.0").join(".vibe-slot.toml");
    let text = read(&record);
    std::fs::write(&record, text + "colour = 1\n").unwrap();
    vibe(&world, &["list"])
        .expect(3)
        .stderr_has("error: the slot record of org.example.core/1.2.0 is not valid\n")
        .stderr_has("unknown key `colour`")
        .stderr_has("hint: restore the slot: vibe verify --repair org.example/core\n");
    vibe(&world, &["verify"])
        .expect(3)
        .stdout_has("unknown key `colour`");
    let core = "org.example/core";
    for looking in [
        &["list", "--items"][..],
        &["tree"],
        &["why", core],
        &["outdated"],
        &["show", core],
    ] {
        vibe(&world, looking).expect(3);
    }
    vibe(&world, &["verify", "--repair", "org.example/core"]).expect(0);
    vibe(&world, &["list"]).expect(0);
}

#[cfg(target_os = "linux")]
#[test]
fn looking_starts_no_process_and_needs_no_right_to_write() {
    use crate::support::{command, strace, strace_works, unprivileged};
    if !strace_works() {
        return;
    }
    let world = world();
    vibe(&world, &["install"]).expect(5);
    let before = world.snapshot();
    for looking in [
        &["list"][..],
        &["list", "--items"],
        &["tree"],
        &["why", "org.example/core"],
        &["outdated"],
        &["show", "org.example/core"],
    ] {
        let log = world.root().join("trace");
        run(&mut strace(
            &command(&world, looking),
            &log,
            &["-e", "trace=execve"],
        ))
        .expect(0);
        assert_eq!(read(&log).matches("execve(").count(), 1, "{looking:?}");
    }
    before.assert_unchanged(&world.snapshot());
    // Takes the world away from root, whom no mode keeps from writing.
    run(&mut unprivileged(&world, &["tree"])).expect(0);
    for directory in [world.project(), world.home()] {
        vibe_testkit::set_mode(&directory, 0o555);
    }
    for looking in [&["tree"][..], &["outdated"], &["list", "--items"]] {
        run(&mut unprivileged(&world, looking)).expect(0);
    }
    for directory in [world.project(), world.home()] {
        vibe_testkit::set_mode(&directory, 0o755);
    }
}
