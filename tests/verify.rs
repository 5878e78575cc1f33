//! `verify`, `verify --repair` and `reinstall`: every kind of damage is named by its path, and put
//! back.

use std::path::{Path, PathBuf};

use crate::support::{
    forget_store, outside_state, read, refused, require_path, slot, source, vibe,
};
#[cfg(unix)]
use crate::support::{run, unprivileged};
use vibe_core::hook::Phase;
#[cfg(unix)]
use vibe_testkit::set_mode;
use vibe_testkit::{PackageBuilder, World};

const COUNT: &str = "echo run >> counter\n";

/// A world with org.example/lint 1.0.0 installed: `lint.md`, `docs/guide.md`, `tools/run` (exec).
fn installed() -> World {
    let world = World::new();
    PackageBuilder::new("org.example/lint", "1.0.0")
        .file("lint.md", "lint\n")
        .file("docs/guide.md", "guide\n")
        .exec_file("tools/run", "#!/bin/sh\n")
        .publish(&world.registry());
    world.require(&[("org.example/lint", "^1")]);
    vibe(&world, &["install"]).expect(0);
    world
}

fn lint(world: &World) -> PathBuf {
    slot(world, "org.example/lint", "1.0.0")
}

/// `verify` ends with `code`, says each of `parts` and writes nothing at all.
#[track_caller]
fn verify_says(world: &World, code: i32, parts: &[&str]) {
    let before = world.snapshot();
    let mut run = vibe(world, &["verify"]).expect(code);
    for part in parts {
        run = run.stdout_has(part);
    }
    before.assert_unchanged(&world.snapshot());
}

/// Damages an installed slot, and asserts that verify names `parts` and repair undoes it exactly.
#[track_caller]
fn check_damage(damage: impl Fn(&Path), parts: &[&str]) {
    let world = installed();
    let good = outside_state(&world).ignoring_times();
    damage(&lint(&world));
    verify_says(&world, 3, parts);
    vibe(&world, &["verify", "org.example/lint"]).expect(3);
    vibe(&world, &["verify", "--repair"]).expect(0);
    good.assert_unchanged(&outside_state(&world).ignoring_times());
    verify_says(&world, 0, &[]);
}

#[test]
fn a_missing_file_is_named_and_restored() {
    let at = "vibedeps/org.example.lint/1.0.0/docs/guide.md is missing";
    check_damage(
        |slot| std::fs::remove_file(slot.join("docs/guide.md")).unwrap(),
        &[at],
    );
    check_damage(
        |slot| std::fs::remove_dir_all(slot.join("docs")).unwrap(),
        &[at],
    );
}

#[test]
fn a_changed_byte_is_named_and_restored_whatever_its_time_says() {
    let at = "vibedeps/org.example.lint/1.0.0/lint.md has other content";
    check_damage(
        |slot| std::fs::write(slot.join("lint.md"), "lynt\n").unwrap(),
        &[at],
    );
    let same_time = |slot: &Path| {
        let path = slot.join("lint.md");
        let time = std::fs::metadata(&path).unwrap().modified().unwrap();
        std::fs::write(&path, "lynt\n").unwrap();
        std::fs::File::options()
            .write(true)
            .open(&path)
            .unwrap()
            .set_modified(time)
            .unwrap();
    };
    check_damage(same_time, &[at]);
}

#[cfg(unix)]
#[test]
fn a_link_in_place_of_a_file_is_named_and_a_regular_file_restored() {
    let outside = tempfile::tempdir().unwrap();
    let equal = outside.path().join("equal.md");
    std::fs::write(&equal, "lint\n").unwrap();
    let link = |slot: &Path| {
        std::fs::remove_file(slot.join("lint.md")).unwrap();
        std::os::unix::fs::symlink(&equal, slot.join("lint.md")).unwrap();
    };
    check_damage(link, &["1.0.0/lint.md has become a symbolic link"]);
    assert_eq!(read(&equal), "lint\n");
}

#[test]
fn a_directory_in_place_of_a_file_is_named_moved_aside_and_the_file_restored() {
    let world = installed();
    let path = lint(&world).join("lint.md");
    std::fs::remove_file(&path).unwrap();
    std::fs::create_dir(&path).unwrap();
    std::fs::write(path.join("mine"), "mine\n").unwrap();
    verify_says(&world, 3, &["1.0.0/lint.md has become a directory"]);
    vibe(&world, &["verify", "--repair"])
        .expect(0)
        .stdout_has("lint.md.vibe-kept");
    assert_eq!(read(&path), "lint\n");
    assert_eq!(read(lint(&world).join("lint.md.vibe-kept/mine")), "mine\n");
    verify_says(&world, 0, &[]);
}

#[cfg(unix)]
#[test]
fn a_changed_exec_bit_is_named_and_restored() {
    check_damage(
        |slot| set_mode(&slot.join("tools/run"), 0o644),
        &["1.0.0/tools/run is no longer executable"],
    );
    check_damage(
        |slot| set_mode(&slot.join("lint.md"), 0o755),
        &["1.0.0/lint.md has become executable"],
    );
}

#[test]
fn every_damaged_path_is_named_at_once() {
    check_damage(
        |slot| {
            std::fs::remove_file(slot.join("docs/guide.md")).unwrap();
            std::fs::write(slot.join("lint.md"), "x").unwrap();
            std::fs::remove_file(slot.join("vibe.toml")).unwrap();
        },
        &[
            "docs/guide.md is missing",
            "lint.md has other content",
            "vibe.toml is missing",
        ],
    );
}

#[test]
fn a_missing_slot_or_record_is_named_and_restored() {
    check_damage(
        |slot| std::fs::remove_dir_all(slot).unwrap(),
        &["vibedeps/org.example.lint/1.0.0 is missing"],
    );
    check_damage(
        |slot| std::fs::remove_file(slot.join(".vibe-slot.toml")).unwrap(),
        &["vibedeps/org.example.lint/1.0.0 has no slot record"],
    );
}

#[test]
fn the_json_document_names_each_finding_with_its_path_and_kind() {
    let world = installed();
    std::fs::remove_file(lint(&world).join("docs/guide.md")).unwrap();
    let found = vibe(&world, &["verify", "--json"]).expect(3).json();
    let text = found.to_string();
    assert!(text.contains("\"path\":\"docs/guide.md\""), "{text}");
    assert!(text.contains("\"kind\":\"missing\""), "{text}");
    assert_eq!(found["exit-code"], 3);
}

const RECORD: &str = ".vibe-slot.toml";

/// A damaged record is refused by every command, which changes nothing, and repair keeps it aside
/// and adopts the files that are equal.
#[track_caller]
fn check_record(damage: impl Fn(&str) -> String) {
    let world = installed();
    world.write("notes.txt", "mine\n");
    let record = lint(&world).join(RECORD);
    let good = read(&record);
    let broken = damage(&good);
    assert_ne!(good, broken);
    std::fs::write(&record, &broken).unwrap();
    let inode = std::fs::metadata(lint(&world).join("lint.md"))
        .unwrap()
        .modified()
        .unwrap();
    for arguments in [
        &["install"][..],
        &["install", "--locked"],
        &["install", "--dry-run"],
        &["list"],
        &["hooks", "list"],
        &["hooks", "run", "org.example/lint"],
    ] {
        refused(
            &world,
            arguments,
            3,
            &["slot record of org.example.lint/1.0.0", "--repair"],
        );
    }
    verify_says(&world, 3, &["slot record of org.example.lint/1.0.0"]);
    vibe(&world, &["verify", "--repair"]).expect(0);
    assert_eq!(read(&record), good);
    assert_eq!(read(lint(&world).join(".vibe-slot.toml.vibe-kept")), broken);
    assert_eq!(world.read("notes.txt"), "mine\n");
    let after = std::fs::metadata(lint(&world).join("lint.md"))
        .unwrap()
        .modified()
        .unwrap();
    assert_eq!(inode, after, "an equal file is adopted as it is");
    verify_says(&world, 0, &[]);
}

/// A row of `path` with a digest, in TOML.
fn row(path: &str) -> String {
    format!(
        "\n[[file]]\npath = \"{path}\"\nsha256 = \"{}\"\n",
        "0".repeat(64)
    )
}

#[test]
fn a_record_that_lists_a_file_outside_is_refused_and_that_file_stays() {
    check_record(|good| format!("{good}{}", row("../../../notes.txt")));
    check_record(|good| format!("{good}{}", row("/etc/passwd")));
}

#[test]
fn a_record_with_unsorted_repeated_or_its_own_rows_is_refused() {
    check_record(|good| format!("{good}{}", row("a.md")));
    check_record(|good| {
        let first = &good[good.find("[[file]]").unwrap()..];
        let first = &first[..first[1..].find("[[file]]").unwrap() + 1];
        good.replacen(first, &format!("{first}{first}"), 1)
    });
    check_record(|good| {
        let at = good.find("[[file]]").unwrap();
        format!("{}{}\n{}", &good[..at], row(RECORD), &good[at..])
    });
}

#[test]
fn a_record_that_was_cut_or_says_another_tree_is_refused() {
    check_record(|good| good[..good.len() - 20].to_owned());
    check_record(|_| String::new());
    check_record(|good| {
        let at = good.find("tree1:").unwrap() + 6;
        let other = if &good[at..=at] == "0" { "1" } else { "0" };
        format!("{}{other}{}", &good[..at], &good[at + 1..])
    });
}

#[test]
fn nothing_is_pruned_through_a_record_that_cannot_be_trusted() {
    let world = installed();
    world.write("notes.txt", "mine\n");
    let record = lint(&world).join(RECORD);
    let broken = format!("{}{}", read(&record), row("../../../notes.txt"));
    std::fs::write(&record, &broken).unwrap();
    world.write("vibe.toml", "[project]\nname = \"world\"\n");
    refused(
        &world,
        &["install"],
        3,
        &["slot record of org.example.lint/1.0.0"],
    );
    assert_eq!(world.read("notes.txt"), "mine\n");
    assert_eq!(read(lint(&world).join("lint.md")), "lint\n");
}

#[test]
fn a_record_of_a_newer_schema_is_refused_by_repair_too() {
    let world = installed();
    let record = lint(&world).join(RECORD);
    std::fs::write(&record, read(&record).replace("schema = 2", "schema = 3")).unwrap();
    for arguments in [
        &["install"][..],
        &["verify", "--repair"],
        &["reinstall", "org.example/lint"],
    ] {
        refused(
            &world,
            arguments,
            3,
            &["org.example.lint/1.0.0", "newer vibe"],
        );
    }
    verify_says(&world, 3, &["newer vibe"]);
}

#[test]
fn a_record_of_an_older_schema_counts_as_none_for_repair() {
    check_record(|good| good.replace("schema = 2", "schema = 1"));
}

#[cfg(unix)]
#[test]
fn a_record_that_is_a_link_is_refused_and_never_followed() {
    let world = installed();
    let record = lint(&world).join(RECORD);
    let outside = world.root().join("outside.toml");
    std::fs::rename(&record, &outside).unwrap();
    let text = read(&outside);
    std::os::unix::fs::symlink(&outside, &record).unwrap();
    refused(
        &world,
        &["install"],
        3,
        &["slot record of org.example.lint/1.0.0"],
    );
    verify_says(&world, 3, &["slot record of org.example.lint/1.0.0"]);
    vibe(&world, &["verify", "--repair"]).expect(0);
    assert!(!record.is_symlink());
    assert_eq!((read(&record), read(&outside)), (text.clone(), text));
}

#[test]
fn verify_without_a_lock_says_so_and_without_a_manifest_is_a_usage_error() {
    let world = World::new();
    world.require(&[("org.example/lint", "^1")]);
    for arguments in [
        &["verify"][..],
        &["verify", "--repair"],
        &["reinstall", "a.b/c"],
    ] {
        refused(
            &world,
            arguments,
            1,
            &["vibe.lock is missing", "vibe install"],
        );
    }
    let bare = World::new();
    refused(&bare, &["verify"], 2, &["no vibe.toml"]);
}

/// A world with org.example/hooked 1.0.0, whose post-install counts, and org.example/plain.
fn hooked(script: &str) -> World {
    let world = World::new();
    PackageBuilder::new("org.example/hooked", "1.0.0")
        .file("file.md", "published\n")
        .hook(Phase::PostInstall, script)
        .publish(&world.registry());
    PackageBuilder::new("org.example/plain", "1.0.0").publish(&world.registry());
    world.require(&[("org.example/hooked", "^1"), ("org.example/plain", "^1")]);
    world
}

#[test]
fn a_fresh_clone_is_not_prepared_until_install_has_run_there() {
    let world = hooked(COUNT);
    vibe(&world, &["install"]).expect(0);
    verify_says(&world, 0, &[]);
    // What git does not carry: machine state, and the slots of packages with hooks.
    std::fs::remove_dir_all(world.project().join("vibedeps/.state")).unwrap();
    std::fs::remove_dir_all(slot(&world, "org.example/hooked", "1.0.0")).unwrap();
    verify_says(
        &world,
        5,
        &["! org.example/hooked  it has install hooks and is not prepared on this machine"],
    );
    vibe(&world, &["install"]).expect(0);
    assert_eq!(
        read(slot(&world, "org.example/hooked", "1.0.0").join("counter")),
        "run\n"
    );
    verify_says(&world, 0, &[]);
    std::fs::remove_dir_all(world.project().join("vibedeps/.state")).unwrap();
    verify_says(&world, 5, &["not prepared on this machine"]);
}

#[test]
fn a_package_of_a_path_with_hooks_that_is_not_there_is_not_prepared_either() {
    let world = World::new();
    let own = PackageBuilder::new("org.example/own", "1.0.0");
    own.hook(Phase::PostInstall, COUNT)
        .write(&world.root().join("own"));
    world.require(&[]);
    vibe(&world, &["install", "path:../own"]).expect(0);
    std::fs::remove_dir_all(world.project().join("vibedeps/.state")).unwrap();
    std::fs::remove_dir_all(slot(&world, "org.example/own", "1.0.0")).unwrap();
    verify_says(&world, 5, &["not prepared on this machine"]);
}

#[test]
fn an_owed_hook_is_a_finding_and_a_held_one_a_note() {
    let world = hooked("exit 1\n");
    vibe(&world, &["install"]).expect(5);
    verify_says(
        &world,
        5,
        &["org.example/hooked  the post-install script is owed"],
    );
    let held = hooked(COUNT);
    vibe(&held, &["install", "--no-hooks"]).expect(0);
    verify_says(
        &held,
        0,
        &["post-install script of org.example/hooked 1.0.0 was skipped"],
    );
}

#[test]
fn a_leftover_slot_is_a_note_that_repair_removes() {
    let world = installed();
    let donor = World::new();
    PackageBuilder::new("org.example/lint", "0.9.0").publish(&donor.registry());
    donor.require(&[("org.example/lint", "=0.9.0")]);
    vibe(&donor, &["install"]).expect(0);
    let leftover = slot(&world, "org.example/lint", "0.9.0");
    std::fs::rename(slot(&donor, "org.example/lint", "0.9.0"), &leftover).unwrap();
    verify_says(
        &world,
        0,
        &["vibedeps/org.example.lint/0.9.0 is a slot that nothing needs"],
    );
    let lock = world.read("vibe.lock");
    vibe(&world, &["verify", "--repair"]).expect(0);
    assert!(!leftover.exists());
    assert_eq!(world.read("vibe.lock"), lock);
    verify_says(&world, 0, &[]);
}

#[test]
fn what_a_hook_made_of_its_payload_is_intact_until_force() {
    let world = hooked("echo patched > file.md\necho run >> counter\n");
    let counter = slot(&world, "org.example/hooked", "1.0.0").join("counter");
    vibe(&world, &["install"]).expect(0);
    verify_says(&world, 0, &[]);
    vibe(&world, &["reinstall", "org.example/hooked"]).expect(0);
    assert_eq!(read(&counter), "run\n");
    vibe(&world, &["reinstall", "--force", "org.example/hooked"]).expect(0);
    assert_eq!(read(&counter), "run\nrun\n");
    verify_says(&world, 0, &[]);
}

#[test]
fn reinstall_restores_only_what_it_is_asked_for() {
    let world = hooked(COUNT);
    vibe(&world, &["install"]).expect(0);
    let hooked = slot(&world, "org.example/hooked", "1.0.0");
    let plain = slot(&world, "org.example/plain", "1.0.0");
    for slot in [&hooked, &plain] {
        std::fs::remove_file(slot.join("vibe.toml")).unwrap();
    }
    vibe(&world, &["reinstall", "org.example/hooked"]).expect(0);
    assert!(hooked.join("vibe.toml").is_file());
    assert!(!plain.join("vibe.toml").exists());
    assert_eq!(read(hooked.join("counter")), "run\nrun\n");
}

#[test]
fn an_id_that_is_not_installed_is_refused_with_a_near_name() {
    let world = installed();
    for arguments in [
        &["reinstall", "org.example/lnit"][..],
        &["verify", "org.example/lnit"],
        &["verify", "--repair", "org.example/lnit"],
    ] {
        let parts = [
            "org.example/lnit is not installed",
            "did you mean org.example/lint?",
        ];
        refused(&world, arguments, 1, &parts);
    }
}

#[test]
fn repair_without_the_source_names_what_it_cannot_restore() {
    let world = installed();
    std::fs::remove_file(lint(&world).join("lint.md")).unwrap();
    std::fs::rename(world.registry(), world.root().join("gone")).unwrap();
    forget_store(&world);
    refused(&world, &["verify", "--repair"], 1, &["org.example/lint"]);
    std::fs::rename(world.root().join("gone"), world.registry()).unwrap();
    vibe(&world, &["verify", "--repair"]).expect(0);
    verify_says(&world, 0, &[]);
}

#[test]
fn an_intact_project_is_repaired_without_its_registry() {
    let world = installed();
    std::fs::remove_dir_all(world.registry()).unwrap();
    let before = outside_state(&world);
    vibe(&world, &["verify", "--repair"]).expect(0);
    before.assert_unchanged(&outside_state(&world));
}

#[test]
fn a_path_source_is_restored_from_its_source_as_it_is_now_and_that_is_said() {
    let world = World::new();
    let local = PackageBuilder::new("org.example/local", "0.1.0");
    local
        .clone()
        .file("a.md", "1\n")
        .write(&world.root().join("local"));
    world.write("vibe.toml", "[project]\nname = \"x\"\n[requires.packages]\n\"org.example/local\" = { path = \"../local\" }\n");
    vibe(&world, &["install"]).expect(0);
    let placed = slot(&world, "org.example/local", "0.1.0").join("a.md");
    std::fs::write(&placed, "edited\n").unwrap();
    verify_says(&world, 3, &["a.md has other content"]);
    local.file("a.md", "2\n").write(&world.root().join("local"));
    vibe(&world, &["verify", "--repair"])
        .expect(0)
        .stderr_has("../local as it is now");
    assert_eq!(read(&placed), "2\n");
    verify_says(&world, 0, &[]);
}

#[cfg(unix)]
#[test]
fn verify_works_without_the_right_to_write_and_without_machine_state() {
    let world = installed();
    let state = world.project().join("vibedeps/.state");
    std::fs::remove_dir_all(&state).unwrap();
    let verify = || run(&mut unprivileged(&world, &["verify"]));
    change_modes(&world, |mode| mode & 0o555);
    let intact = verify();
    change_modes(&world, |mode| mode | 0o200);
    std::fs::remove_file(lint(&world).join("lint.md")).unwrap();
    change_modes(&world, |mode| mode & 0o555);
    let damaged = verify();
    change_modes(&world, |mode| mode | 0o200);
    intact.expect(0);
    damaged.expect(3).stdout_has("lint.md is missing");
    assert!(!state.exists());
}

/// Changes the mode of the project and of everything in it.
#[cfg(unix)]
fn change_modes(world: &World, new: impl Fn(u32) -> u32) {
    set_mode(&world.project(), new(0o755));
    for (path, entry) in world.snapshot().entries {
        set_mode(&world.project().join(path), new(entry.mode));
    }
}

#[test]
fn of_several_findings_the_gravest_decides_the_exit_code() {
    let world = hooked("exit 1\n");
    vibe(&world, &["install"]).expect(5);
    let text = world.read("vibe.toml");
    let more = "[requires.packages]\n\"org.example/more\" = \"^1\"\n";
    world.write("vibe.toml", &text.replace("[requires.packages]\n", more));
    verify_says(&world, 7, &["is owed", "org.example/more"]);
    let plain = slot(&world, "org.example/plain", "1.0.0");
    std::fs::remove_file(plain.join("vibe.toml")).unwrap();
    verify_says(
        &world,
        3,
        &["is owed", "org.example/more", "vibe.toml is missing"],
    );
}

/// A leftover slot of org.example/lint 0.9.0 with a record that lists a file outside.
fn with_leftover(world: &World) -> PathBuf {
    let leftover = slot(world, "org.example/lint", "0.9.0");
    std::fs::create_dir(&leftover).unwrap();
    std::fs::write(leftover.join("mine.md"), "mine\n").unwrap();
    let text = format!(
        "{}{}",
        read(lint(world).join(RECORD)),
        row("../../../notes.txt")
    );
    std::fs::write(leftover.join(RECORD), text).unwrap();
    world.write("notes.txt", "mine\n");
    leftover
}

#[test]
fn a_leftover_slot_with_a_bad_record_stops_runs_until_repair_puts_the_record_aside() {
    let world = installed();
    let leftover = with_leftover(&world);
    std::fs::remove_file(world.project().join("vibedeps/.state/fresh")).unwrap();
    refused(
        &world,
        &["install"],
        3,
        &["slot record of org.example.lint/0.9.0", "hint: "],
    );
    verify_says(&world, 3, &["slot record of org.example.lint/0.9.0"]);
    vibe(&world, &["verify", "--repair"])
        .expect(0)
        .stderr_has(".vibe-slot.toml.vibe-kept");
    assert!(leftover.join(".vibe-slot.toml.vibe-kept").is_file());
    assert_eq!(read(leftover.join("mine.md")), "mine\n");
    assert_eq!(world.read("notes.txt"), "mine\n");
    verify_says(&world, 0, &["org.example.lint/0.9.0"]);
    vibe(&world, &["install"]).expect(0);
}

#[test]
fn a_leftover_slot_of_a_newer_schema_stops_repair_too() {
    let world = installed();
    let leftover = with_leftover(&world);
    let text = read(lint(&world).join(RECORD)).replace("schema = 2", "schema = 3");
    std::fs::write(leftover.join(RECORD), text).unwrap();
    refused(
        &world,
        &["verify", "--repair"],
        3,
        &["org.example.lint/0.9.0", "newer vibe"],
    );
    verify_says(&world, 3, &["org.example.lint/0.9.0", "newer vibe"]);
}

#[test]
fn a_record_that_is_a_directory_is_put_aside_whatever_lies_there_already() {
    let world = installed();
    let record = lint(&world).join(RECORD);
    let good = read(&record);
    for kept in [".vibe-slot.toml.vibe-kept", ".vibe-slot.toml.vibe-kept.2"] {
        std::fs::remove_file(&record).unwrap();
        std::fs::create_dir(&record).unwrap();
        std::fs::write(record.join("mine"), kept).unwrap();
        refused(
            &world,
            &["install"],
            3,
            &["slot record of org.example.lint/1.0.0"],
        );
        vibe(&world, &["verify", "--repair"])
            .expect(0)
            .stderr_has(kept);
        assert_eq!(read(lint(&world).join(kept).join("mine")), kept);
        assert_eq!(read(&record), good);
    }
    verify_says(&world, 0, &[]);
}

#[test]
fn a_path_source_that_is_gone_is_noted_and_its_record_is_the_reference() {
    let world = World::new();
    crate::support::lint("1.0.0").write(&source(&world));
    require_path(&world);
    vibe(&world, &["install"]).expect(0);
    std::fs::rename(source(&world), world.root().join("elsewhere")).unwrap();
    vibe(&world, &["verify"])
        .expect(0)
        .stdout_has("was not held against the manifests");
    std::fs::write(lint(&world).join("lint.md"), "damaged\n").unwrap();
    verify_says(&world, 3, &["lint.md"]);
}
