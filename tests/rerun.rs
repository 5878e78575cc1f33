//! When install hooks run: once for each change of the payload, and never for anything else.

use std::path::Path;

use crate::support::{LOGGED, Run, command_in, committed, hook_log, lines, read, run, slot, vibe};
use serde_json::Value;
use vibe_core::hook::Phase;
use vibe_testkit::{PackageBuilder, World};

const LINT: &str = "org.example/lint";

fn logged(script: &str) -> String {
    format!("{LOGGED}{script}")
}

/// A package that counts its runs in its slot.
fn counting(id: &str, version: &str) -> PackageBuilder {
    PackageBuilder::new(id, version)
        .file("lint.md", format!("lint {version}\n"))
        .file("deep/rules.md", "rules\n")
        .hook(Phase::PreInstall, LOGGED)
        .hook(Phase::PostInstall, &logged("echo run >> counter\n"))
}

/// A package whose hooks edit, delete and make executable what it ships.
fn editing() -> PackageBuilder {
    PackageBuilder::new(LINT, "1.0.0")
        .file("edited.md", "published\n")
        .file("deleted.md", "published\n")
        .file("tool", "published\n")
        .hook(Phase::PreInstall, &logged("echo hooked >> edited.md\n"))
        .hook(
            Phase::PostInstall,
            &logged("chmod +x tool\nrm deleted.md\n"),
        )
}

fn world_with(packages: &[PackageBuilder], requires: &[(&str, &str)]) -> World {
    let world = World::new();
    for package in packages {
        package.publish(&world.registry());
    }
    world.require(requires);
    world
}

fn write(path: impl AsRef<Path>, text: &str) {
    std::fs::write(path, text).unwrap();
}

/// A run that finds nothing to do, and leaves the project as it was to the last time.
fn nothing_to_do(world: &World) {
    let before = world.snapshot();
    vibe(world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
    before.assert_unchanged(&world.snapshot());
}

fn verify_is_quiet(world: &World) {
    for _ in 0..2 {
        vibe(world, &["verify"]).expect(0);
    }
}

#[cfg(unix)]
fn is_executable(path: impl AsRef<Path>) -> bool {
    use std::os::unix::fs::PermissionsExt;
    std::fs::metadata(path).unwrap().permissions().mode() & 0o111 != 0
}

#[test]
fn a_hook_runs_once_for_each_change_of_the_payload() {
    let world = world_with(&[counting(LINT, "1.0.0")], &[(LINT, "^1")]);
    let place = slot(&world, LINT, "1.0.0");
    let runs = |expected: usize| {
        assert_eq!(lines(place.join("counter")).len(), expected);
        assert_eq!(hook_log(&world).len(), 2 * expected);
    };
    vibe(&world, &["install"]).expect(0);
    runs(1);
    nothing_to_do(&world);
    vibe(&world, &["reinstall"]).expect(0);
    vibe(&world, &["reinstall", LINT]).expect(0);
    vibe(&world, &["verify", "--repair"]).expect(0);
    runs(1);
    write(place.join("lint.md"), "damaged\n");
    nothing_to_do(&world);
    vibe(&world, &["verify"]).expect(3).stdout_has("lint.md");
    vibe(&world, &["reinstall", LINT]).expect(0);
    assert_eq!(read(place.join("lint.md")), "lint 1.0.0\n");
    runs(2);
    verify_is_quiet(&world);
    std::fs::remove_file(place.join("deep/rules.md")).unwrap();
    vibe(&world, &["verify"])
        .expect(3)
        .stdout_has("deep/rules.md");
    vibe(&world, &["verify", "--repair"]).expect(0);
    assert_eq!(read(place.join("deep/rules.md")), "rules\n");
    runs(3);
    verify_is_quiet(&world);
    nothing_to_do(&world);
}

#[cfg(unix)]
#[test]
fn what_hooks_did_to_the_payload_is_intact_and_goes_with_a_repair() {
    let world = world_with(&[editing()], &[(LINT, "^1")]);
    let place = slot(&world, LINT, "1.0.0");
    let is_as_hooks_left_it = |runs: usize| {
        assert_eq!(read(place.join("edited.md")), "published\nhooked\n");
        assert!(!place.join("deleted.md").exists());
        assert!(is_executable(place.join("tool")));
        assert_eq!(hook_log(&world).len(), 2 * runs);
        verify_is_quiet(&world);
        nothing_to_do(&world);
    };
    vibe(&world, &["install"]).expect(0);
    is_as_hooks_left_it(1);
    vibe(&world, &["reinstall", LINT]).expect(0);
    vibe(&world, &["verify", "--repair"]).expect(0);
    is_as_hooks_left_it(1);
    write(place.join("tool"), "damaged\n");
    vibe(&world, &["verify", "--repair"])
        .expect(0)
        .stdout_has("tool");
    assert_eq!(read(place.join("tool")), "published\n");
    is_as_hooks_left_it(2);
    write(place.join("edited.md"), "published\nhooked\nmine\n");
    vibe(&world, &["verify"]).expect(3).stdout_has("edited.md");
    vibe(&world, &["reinstall", LINT]).expect(0);
    is_as_hooks_left_it(3);
    write(place.join("deleted.md"), "mine\n");
    vibe(&world, &["verify"]).expect(3).stdout_has("deleted.md");
    vibe(&world, &["reinstall", LINT]).expect(0);
    is_as_hooks_left_it(4);
    vibe(&world, &["reinstall", "--force", LINT]).expect(0);
    is_as_hooks_left_it(5);
}

/// The published bytes are back before the first hook runs again, also those only hooks changed.
#[test]
fn hooks_run_again_on_published_bytes() {
    let see = "cat edited.md deleted.md tool > \"$HOME/seen\"\n";
    let package = editing().hook(
        Phase::PreInstall,
        &format!("{see}echo hooked >> edited.md\n"),
    );
    let world = world_with(&[package], &[(LINT, "^1")]);
    vibe(&world, &["install"]).expect(0);
    write(slot(&world, LINT, "1.0.0").join("tool"), "damaged\n");
    vibe(&world, &["reinstall"]).expect(0);
    assert_eq!(
        read(world.home().join("seen")),
        "published\npublished\npublished\n"
    );
}

#[test]
fn what_hooks_made_survives_a_repair_unless_all_is_reset() {
    for (reset, expected) in [("payload", 2), ("all", 1)] {
        let package = counting(LINT, "1.0.0")
            .manifest_extra(&format!("[hooks]\nreset = \"{reset}\"\n"))
            .hook(
                Phase::PostInstall,
                "mkdir -p out\necho run >> out/product\n",
            );
        let world = world_with(&[package], &[(LINT, "^1")]);
        let place = slot(&world, LINT, "1.0.0");
        vibe(&world, &["install"]).expect(0);
        write(place.join("mine.md"), "mine\n");
        write(place.join("lint.md"), "damaged\n");
        vibe(&world, &["reinstall"]).expect(0);
        let product = lines(place.join("out/product"));
        assert_eq!(product.len(), expected, "reset = {reset}");
        assert_eq!(read(place.join("mine.md")), "mine\n");
    }
}

#[test]
fn a_failed_post_install_is_owed_until_it_succeeds() {
    let flaky = "if [ ! -e \"$HOME/fixed\" ]; then echo no luck; exit 3; fi\n";
    let world = world_with(
        &[
            counting(LINT, "1.0.0").hook(Phase::PostInstall, &logged(flaky)),
            counting("org.example/zeta", "1.0.0").depends(LINT, "^1"),
        ],
        &[("org.example/zeta", "^1")],
    );
    let zeta = slot(&world, "org.example/zeta", "1.0.0");
    for _ in 0..2 {
        vibe(&world, &["install"]).expect(5).stderr_has("no luck");
        vibe(&world, &["verify"]).expect(5);
        assert_eq!(lines(zeta.join("counter")).len(), 1);
    }
    write(world.home().join("fixed"), "");
    vibe(&world, &["install"]).expect(0);
    verify_is_quiet(&world);
    nothing_to_do(&world);
    let expected = [
        "lint pre-install",
        "zeta pre-install",
        "lint post-install",
        "zeta post-install",
        "lint post-install",
        "lint post-install",
    ];
    assert_eq!(hook_log(&world), expected);
}

#[test]
fn a_slot_removed_by_hand_is_placed_and_its_hooks_run() {
    let world = world_with(
        &[
            counting(LINT, "1.0.0"),
            counting("org.example/zeta", "1.0.0"),
        ],
        &[(LINT, "^1"), ("org.example/zeta", "^1")],
    );
    vibe(&world, &["install"]).expect(0);
    let before = committed(&world);
    std::fs::remove_dir_all(slot(&world, LINT, "1.0.0")).unwrap();
    vibe(&world, &["verify"]).expect(5);
    vibe(&world, &["install"]).expect(0);
    before.assert_unchanged(&committed(&world));
    let expected = ["lint pre-install", "lint post-install"];
    assert_eq!(hook_log(&world)[4..], expected);
    verify_is_quiet(&world);
}

#[test]
fn a_version_and_back_again_redoes_its_hooks_and_keeps_what_is_the_users() {
    let world = world_with(
        &[counting(LINT, "1.0.0"), counting(LINT, "2.0.0")],
        &[(LINT, "=1.0.0")],
    );
    let (one, two) = (slot(&world, LINT, "1.0.0"), slot(&world, LINT, "2.0.0"));
    vibe(&world, &["install"]).expect(0);
    write(one.join("deep/mine.md"), "mine\n");
    let first = committed(&world);

    world.require(&[(LINT, "=2.0.0")]);
    vibe(&world, &["install"])
        .expect(0)
        .stderr_has("deep/mine.md");
    let left = vibe_testkit::TreeSnapshot::of(&one);
    let paths: Vec<&String> = left.entries.keys().collect();
    assert_eq!(paths, ["deep", "deep/mine.md"]);
    assert_eq!(lines(two.join("counter")).len(), 1);
    assert!(!two.join("deep/mine.md").exists());
    verify_is_quiet(&world);

    world.require(&[(LINT, "=1.0.0")]);
    vibe(&world, &["install"]).expect(0);
    assert!(!two.exists());
    let mut second = committed(&world);
    second
        .entries
        .insert("vibe.toml".to_owned(), first.entries["vibe.toml"].clone());
    first.assert_unchanged(&second);
    assert_eq!(read(one.join("deep/mine.md")), "mine\n");
    assert_eq!(hook_log(&world).len(), 6);
    verify_is_quiet(&world);
    nothing_to_do(&world);
}

#[test]
fn hooks_that_ran_do_not_run_again_once_another_package_is_fixed() {
    let third = "if [ ! -e \"$HOME/fixed\" ]; then exit 3; fi\n";
    let (a, b, c) = ("org.example/a", "org.example/b", "org.example/c");
    let world = world_with(
        &[
            counting(a, "1.0.0"),
            counting(b, "1.0.0"),
            counting(c, "1.0.0").hook(Phase::PreInstall, &logged(third)),
        ],
        &[(a, "^1"), (b, "^1"), (c, "^1")],
    );
    vibe(&world, &["install"]).expect(4).stderr_has("exit 3");
    assert!(!world.project().join("vibe.lock").exists());
    assert!(!slot(&world, c, "1.0.0").exists());
    write(world.home().join("fixed"), "");
    vibe(&world, &["install"]).expect(0);
    let expected = [
        "a pre-install",
        "b pre-install",
        "c pre-install",
        "c pre-install",
        "a post-install",
        "b post-install",
        "c post-install",
    ];
    assert_eq!(hook_log(&world), expected);
    verify_is_quiet(&world);
}

#[test]
fn a_lost_record_is_written_anew_and_runs_no_hook() {
    let world = world_with(&[counting(LINT, "1.0.0")], &[(LINT, "^1")]);
    vibe(&world, &["install"]).expect(0);
    let before = committed(&world);
    let record = slot(&world, LINT, "1.0.0").join(".vibe-slot.toml");
    std::fs::remove_file(&record).unwrap();
    vibe(&world, &["verify"]).expect(3);
    let run = vibe(&world, &["install"]).expect(0);
    assert!(!run.stdout.contains("nothing to do"), "{}", run.stdout);
    before.assert_unchanged(&committed(&world));
    assert_eq!(hook_log(&world).len(), 2);
    verify_is_quiet(&world);
}

#[test]
fn a_lost_machine_state_puts_payload_back_and_runs_the_hooks() {
    let world = world_with(&[editing()], &[(LINT, "^1")]);
    vibe(&world, &["install"]).expect(0);
    let before = committed(&world);
    let place = slot(&world, LINT, "1.0.0");
    write(place.join("mine.md"), "mine\n");
    std::fs::remove_file(world.project().join("vibedeps/.state/slots.toml")).unwrap();
    vibe(&world, &["verify"]).expect(3);
    vibe(&world, &["install"]).expect(0);
    assert_eq!(read(place.join("mine.md")), "mine\n");
    std::fs::remove_file(place.join("mine.md")).unwrap();
    before.assert_unchanged(&committed(&world));
    assert_eq!(hook_log(&world).len(), 4);
    verify_is_quiet(&world);
}

#[test]
fn two_projects_of_one_home_each_have_their_hooks_run() {
    let marker = "echo run >> \"$VIBE_PROJECT_ROOT/marker\"\n";
    let world = world_with(
        &[counting(LINT, "1.0.0").hook(Phase::PostInstall, marker)],
        &[(LINT, "^1")],
    );
    let second = world.root().join("second");
    std::fs::create_dir(&second).unwrap();
    std::fs::copy(world.project().join("vibe.toml"), second.join("vibe.toml")).unwrap();
    for project in [world.project(), second] {
        run(&mut command_in(&world, &project, &["install"])).expect(0);
        assert_eq!(lines(project.join("marker")).len(), 1);
    }
}

/// A project that requires `lint` from a directory beside it.
fn path_world() -> (World, std::path::PathBuf) {
    let world = World::new();
    let source = world.root().join("lint");
    counting(LINT, "1.0.0").write(&source);
    world.write(
        "vibe.toml",
        "[project]\nname = \"p\"\n\n[requires.packages]\n\"org.example/lint\" = { path = \"../lint\" }\n",
    );
    vibe(&world, &["install"]).expect(0);
    (world, source)
}

#[cfg(unix)]
#[test]
fn a_changed_path_source_refreshes_only_what_changed() {
    use std::os::unix::fs::MetadataExt;
    let (world, source) = path_world();
    let place = slot(&world, LINT, "1.0.0");
    let stat = || {
        let metadata = std::fs::metadata(place.join("deep/rules.md")).unwrap();
        (metadata.ino(), metadata.mtime_nsec(), metadata.mtime())
    };
    let before = stat();
    nothing_to_do(&world);
    write(source.join("lint.md"), "changed\n");
    vibe(&world, &["install"]).expect(0);
    assert_eq!(read(place.join("lint.md")), "changed\n");
    assert_eq!(stat(), before);
    assert_eq!(lines(place.join("counter")).len(), 2);
    assert_eq!(hook_log(&world).len(), 4);
    write(source.join("added.md"), "added\n");
    std::fs::remove_file(source.join("lint.md")).unwrap();
    vibe(&world, &["install"]).expect(0);
    assert_eq!(read(place.join("added.md")), "added\n");
    assert!(!place.join("lint.md").exists());
    assert_eq!(stat(), before);
    assert_eq!(lines(place.join("counter")).len(), 3);
    verify_is_quiet(&world);
    nothing_to_do(&world);
}

#[cfg(unix)]
#[test]
fn an_exec_bit_alone_is_a_change() {
    let (world, source) = path_world();
    let place = slot(&world, LINT, "1.0.0");
    vibe_testkit::set_mode(&source.join("lint.md"), 0o755);
    vibe(&world, &["install"]).expect(0);
    assert!(is_executable(place.join("lint.md")));
    assert_eq!(hook_log(&world).len(), 4);
    vibe_testkit::set_mode(&place.join("lint.md"), 0o644);
    vibe(&world, &["verify"]).expect(3).stdout_has("lint.md");
    vibe(&world, &["reinstall"]).expect(0);
    assert!(is_executable(place.join("lint.md")));
    assert_eq!(hook_log(&world).len(), 6);
    verify_is_quiet(&world);
}

fn steps(run: &Run, key: &str) -> Value {
    let document = run.json();
    let found = match key {
        "plan" => document.pointer("/result/plan/steps"),
        _ => document.pointer("/result/done"),
    };
    found
        .unwrap_or_else(|| panic!("no {key} in {document:#}"))
        .clone()
}

/// What is announced is what is done, step by step.
#[track_caller]
fn deed_is_as_announced(world: &World, work: usize) {
    let before = world.snapshot();
    let announced = vibe(world, &["install", "--dry-run", "--json"]).expect(0);
    before.assert_unchanged(&world.snapshot());
    let deed = vibe(world, &["install", "--json"]).expect(0);
    let plan = steps(&announced, "plan");
    assert_eq!(plan, steps(&deed, "plan"));
    assert_eq!(plan, steps(&deed, "done"));
    let kept = |step: &&Value| step["step"] != "keep";
    assert_eq!(
        plan.as_array().unwrap().iter().filter(kept).count(),
        work,
        "{plan:#}"
    );
}

#[test]
fn a_dry_run_announces_exactly_what_is_done() {
    let zeta = "org.example/zeta";
    let world = world_with(
        &[
            counting(LINT, "1.0.0").depends(zeta, "^1"),
            counting(LINT, "2.0.0"),
            PackageBuilder::new(zeta, "1.0.0").file("zeta.md", "zeta\n"),
        ],
        &[(LINT, "=1.0.0")],
    );
    // Two slots, two hooks.
    deed_is_as_announced(&world, 4);
    // A slot comes back.
    std::fs::remove_dir_all(slot(&world, zeta, "1.0.0")).unwrap();
    deed_is_as_announced(&world, 1);
    // Hooks are owed, since nothing is known of what they did.
    std::fs::remove_file(world.project().join("vibedeps/.state/slots.toml")).unwrap();
    deed_is_as_announced(&world, 2);
    // A new version, its hooks, and two slots that nothing needs.
    world.require(&[(LINT, "=2.0.0")]);
    deed_is_as_announced(&world, 5);
    // A record alone.
    std::fs::remove_file(slot(&world, LINT, "2.0.0").join(".vibe-slot.toml")).unwrap();
    deed_is_as_announced(&world, 1);
}

#[test]
fn the_state_of_a_slot_goes_with_the_slot() {
    let world = world_with(
        &[counting(LINT, "1.0.0"), counting(LINT, "1.1.0")],
        &[(LINT, "=1.0.0")],
    );
    let slots = || read(world.project().join("vibedeps/.state/slots.toml"));
    vibe(&world, &["install"]).expect(0);
    assert!(slots().contains("org.example.lint/1.0.0"));
    world.require(&[(LINT, "=1.1.0")]);
    std::fs::remove_file(slot(&world, LINT, "1.0.0").join("counter")).unwrap();
    vibe(&world, &["install"]).expect(0);
    assert!(!slots().contains("lint/1.0.0"), "{}", slots());
    world.require(&[]);
    vibe(&world, &["install"]).expect(0);
    assert!(!slots().contains("[[slot]]"), "{}", slots());
}

#[test]
fn a_repair_of_one_package_leaves_the_state_of_all_others() {
    let core = "org.example/core";
    let failing = PackageBuilder::new("org.example/zeta", "1.0.0").hook(
        Phase::PreInstall,
        &logged("test -e \"$VIBE_PROJECT_ROOT/ok\"\n"),
    );
    let world = world_with(
        &[counting(LINT, "1.0.0"), counting(core, "1.0.0"), failing],
        &[(core, "^1")],
    );
    vibe(&world, &["install"]).expect(0);
    let add_both = ["install", LINT, "org.example/zeta"];
    vibe(&world, &add_both).expect(4);
    let idle = vibe(&world, &["reinstall", core, "--json"]).expect(0);
    assert_eq!(idle.json()["result"]["up-to-date"], true);
    write(slot(&world, core, "1.0.0").join("lint.md"), "damaged\n");
    vibe(&world, &["reinstall", core]).expect(0);
    world.write("ok", "");
    let before = hook_log(&world).len();
    vibe(&world, &add_both).expect(0);
    // What was prepared is only finished; the one that failed is prepared.
    let since: Vec<String> = hook_log(&world).split_off(before);
    assert_eq!(since.len(), 2, "{since:?}");
}
