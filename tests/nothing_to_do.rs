//! Runs with nothing to do: they write nothing, start nothing and look at little.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::support::{
    LOGGED, Run, as_nobody, command, command_in, hook_log, lines, read, run, slot, strace,
    strace_works, vibe,
};
use vibe_core::hook::Phase;
use vibe_testkit::{PackageBuilder, World};

const LINT: &str = "org.example/lint";

fn package(number: usize) -> PackageBuilder {
    PackageBuilder::new(&format!("org.example/p{number}"), "1.0.0")
        .file("a.md", "a\n")
        .file("deep/b.md", "b\n")
}

/// A project in which all is done: a package with hooks, one from a path, and another.
fn done() -> World {
    let world = with_packages(1);
    PackageBuilder::new("org.example/near", "1.0.0")
        .file("near.md", "near\n")
        .write(&world.root().join("near"));
    let near = "[requires.packages]\n\"org.example/near\" = { path = \"../near\" }";
    let manifest = world.read("vibe.toml").replace("[requires.packages]", near);
    world.write("vibe.toml", &manifest);
    vibe(&world, &["install"]).expect(0);
    world
}

/// A project in which all is done: a package with hooks, and `more` others.
fn with_packages(more: usize) -> World {
    let world = World::new();
    PackageBuilder::new(LINT, "1.0.0")
        .file("lint.md", "lint\n")
        .hook(Phase::PreInstall, LOGGED)
        .hook(Phase::PostInstall, LOGGED)
        .publish(&world.registry());
    (0..more).for_each(|number| {
        package(number).publish(&world.registry());
    });
    let ids: Vec<String> = (0..more)
        .map(|number| format!("org.example/p{number}"))
        .collect();
    let mut requires: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), "^1")).collect();
    requires.push((LINT, "^1"));
    world.require(&requires);
    vibe(&world, &["install"]).expect(0);
    world
}

#[test]
fn nothing_is_written_where_nothing_is_to_do() {
    let world = done();
    for file in [None, Some("vibedeps/.state/lock")] {
        if let Some(file) = file {
            std::fs::remove_file(world.project().join(file)).unwrap();
        }
        let before = world.snapshot();
        for arguments in [
            &["install"][..],
            &["install", "--locked"],
            &["install", "--dry-run"],
        ] {
            vibe(&world, arguments)
                .expect(0)
                .stdout_has("nothing to do");
        }
        before.assert_unchanged(&world.snapshot());
    }
    assert_eq!(hook_log(&world).len(), 2);
}

/// The calls of a run with nothing to do.
fn calls(world: &World) -> Vec<String> {
    let log = world.home().join("calls");
    run(&mut strace(&command(world, &["install"]), &log, &[]))
        .expect(0)
        .stdout_has("nothing to do");
    let no_call = ["+++", "resumed>", "<detached"];
    let is_call = |line: &String| no_call.iter().all(|part| !line.contains(part));
    lines(log).into_iter().filter(is_call).collect()
}

#[test]
fn nothing_is_started_and_no_slot_is_looked_into_where_nothing_is_to_do() {
    if !strace_works() {
        return;
    }
    let world = done();
    let calls = calls(&world);
    let having = |names: &[&str]| -> Vec<&String> {
        let has = |line: &&String| names.iter().any(|name| line.contains(&format!(" {name}(")));
        calls.iter().filter(has).collect()
    };
    assert_eq!(having(&["execve"]).len(), 1);
    assert_eq!(having(&["fork", "vfork"]).len(), 0);
    let started = having(&["clone", "clone3"]);
    assert!(
        started.iter().all(|call| call.contains("CLONE_THREAD")),
        "{started:?}"
    );
    let opened = having(&["open", "openat"]);
    assert!(!opened.is_empty());
    let in_slots: Vec<_> = opened
        .iter()
        .filter(|call| call.contains("vibedeps/org."))
        .collect();
    assert!(in_slots.is_empty(), "{in_slots:?}");
    let writing = [
        "rename",
        "renameat",
        "renameat2",
        "unlink",
        "unlinkat",
        "mkdir",
        "mkdirat",
        "link",
        "linkat",
        "symlink",
        "chmod",
        "fchmod",
        "fchmodat",
        "ftruncate",
        "utimensat",
        "fsync",
        "flock",
        "socket",
        "connect",
    ];
    assert_eq!(having(&writing), Vec::<&String>::new());
    let written: Vec<_> = opened
        .iter()
        .filter(|call| {
            ["O_WRONLY", "O_RDWR", "O_CREAT"]
                .iter()
                .any(|flag| call.contains(flag))
        })
        .collect();
    assert!(written.is_empty(), "{written:?}");
}

#[test]
fn a_run_with_nothing_to_do_takes_two_calls_a_package() {
    if !strace_works() {
        return;
    }
    for more in [0, 40] {
        let world = with_packages(more);
        let count = calls(&world).len();
        let packages = more + 1;
        assert!(
            count <= 150 + 2 * packages,
            "{count} calls for {packages} packages"
        );
    }
}

#[test]
fn a_stat_that_moved_over_equal_content_renews_what_is_remembered_and_nothing_else() {
    let world = done();
    let place = slot(&world, LINT, "1.0.0");
    let touch = |path: &Path| {
        let text = read(path);
        std::fs::remove_file(path).unwrap();
        std::fs::write(path, text).unwrap();
    };
    for path in [
        place.join(".vibe-slot.toml"),
        world.root().join("near/near.md"),
        world.project().join("vibe.lock"),
        world.project().join("vibe.toml"),
    ] {
        touch(&path);
        let before = world.snapshot();
        vibe(&world, &["install"])
            .expect(0)
            .stdout_has("nothing to do");
        let after = world.snapshot();
        let diff = before.diff(&after);
        let strangers: Vec<&str> = diff
            .lines()
            // The directories in which it is replaced have new times.
            .filter(|line| {
                !line.contains("vibedeps/.state/fresh ")
                    && !line.starts_with("~ vibedeps/.state mtime")
                    && !line.starts_with("~ vibedeps/.state/staging mtime")
            })
            .collect();
        assert!(strangers.is_empty(), "{diff}");
        assert!(diff.contains("vibedeps/.state/fresh "), "{diff}");
        vibe(&world, &["install"]).expect(0);
        after.assert_unchanged(&world.snapshot());
    }
    assert_eq!(hook_log(&world).len(), 2);
}

/// Has another project of the same user install a package.
fn in_the_store(world: &World, id: &str) {
    let other = world.root().join("other");
    std::fs::create_dir(&other).unwrap();
    let manifest =
        "[project]\nname = \"other\"\n[[registry]]\nname = \"local\"\nurl = \"../registry\"\n";
    std::fs::write(other.join("vibe.toml"), manifest).unwrap();
    run(&mut command_in(world, &other, &["install", id])).expect(0);
}

/// Runs as somebody who may write nothing in the project.
fn as_stranger(world: &World, arguments: &[&str]) -> Run {
    let plain = command(world, arguments);
    if !nobody_may_write(world) {
        return run(&mut command(world, arguments));
    }
    run(&mut as_nobody(&plain))
}

/// Takes the right to write from everybody; says whether there is one, the superuser, who may
/// nevertheless.
fn nobody_may_write(world: &World) -> bool {
    let probe = world.project().join("probe");
    let written = std::fs::write(&probe, "").is_ok();
    if written {
        std::fs::remove_file(probe).unwrap();
    }
    written
}

fn set_modes(root: &Path, change: impl Fn(u32) -> u32) {
    for entry in walk(root) {
        let metadata = std::fs::symlink_metadata(&entry).unwrap();
        if !metadata.is_symlink() {
            let mode = change(metadata.permissions().mode());
            std::fs::set_permissions(&entry, std::fs::Permissions::from_mode(mode)).unwrap();
        }
    }
}

fn walk(root: &Path) -> Vec<std::path::PathBuf> {
    let mut found = vec![root.to_owned()];
    if root.is_dir() {
        for entry in std::fs::read_dir(root).unwrap() {
            found.extend(walk(&entry.unwrap().path()));
        }
    }
    found
}

#[test]
fn a_project_that_cannot_be_written_is_no_obstacle_to_nothing() {
    let world = done();
    std::fs::set_permissions(world.root(), std::fs::Permissions::from_mode(0o755)).unwrap();
    package(7).publish(&world.registry());
    in_the_store(&world, "org.example/p7");
    set_modes(&world.project(), |mode| mode & !0o222);
    let before = world.snapshot();
    as_stranger(&world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
    as_stranger(&world, &["verify"]).expect(0);
    before.assert_unchanged(&world.snapshot());

    // Nothing is remembered, and still there is nothing to do.
    set_modes(&world.project(), |mode| mode | 0o200);
    std::fs::remove_file(world.project().join("vibedeps/.state/fresh")).unwrap();
    set_modes(&world.project(), |mode| mode & !0o222);
    let before = world.snapshot();
    as_stranger(&world, &["install"]).expect(0);
    as_stranger(&world, &["reinstall", "--force"]).expect(0);
    before.assert_unchanged(&world.snapshot());
    set_modes(&world.project(), |mode| mode | 0o200);
    std::fs::write(slot(&world, LINT, "1.0.0").join("lint.md"), "damaged\n").unwrap();
    set_modes(&world.project(), |mode| mode & !0o222);
    let before = world.snapshot();

    // With work to do it is named, before anything is started.
    as_stranger(&world, &["install", "org.example/p7"])
        .expect(1)
        .stderr_has("project/vibedeps");
    as_stranger(&world, &["reinstall", LINT])
        .expect(1)
        .stderr_has("project/vibedeps");
    before.assert_unchanged(&world.snapshot());
    assert_eq!(hook_log(&world).len(), 2);
    set_modes(&world.project(), |mode| mode | 0o200);
}

/// Runs `command` where `spoil` left work for `install`: the next install must still do it.
fn install_still_works_after(command: &[&str], code: i32, spoil: impl Fn(&World)) {
    let world = done();
    spoil(&world);
    vibe(&world, command).expect(code);
    let run = vibe(&world, &["install"]).expect(0);
    assert!(!run.stdout.contains("nothing to do"), "{}", run.stdout);
    vibe(&world, &["verify"]).expect(0);
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
}

#[test]
fn a_repair_of_one_package_hides_no_work_that_others_have() {
    let reinstall = ["reinstall", LINT];
    let add_requirement = |world: &World| {
        package(7).publish(&world.registry());
        let more = "[requires.packages]\n\"org.example/p7\" = \"^1\"";
        let manifest = world.read("vibe.toml").replace("[requires.packages]", more);
        world.write("vibe.toml", &manifest);
    };
    install_still_works_after(&reinstall, 0, add_requirement);
    install_still_works_after(&["verify", "--repair"], 7, add_requirement);
    install_still_works_after(&reinstall, 0, |world| {
        std::fs::write(world.root().join("near/near.md"), "newer\n").unwrap();
    });
    install_still_works_after(&reinstall, 0, |world| {
        std::fs::remove_dir_all(slot(world, "org.example/p0", "1.0.0")).unwrap();
    });
    let spoiled = |world: &World| {
        std::fs::remove_dir_all(slot(world, "org.example/p0", "1.0.0")).unwrap();
        std::fs::write(slot(world, LINT, "1.0.0").join("lint.md"), "spoiled\n").unwrap();
    };
    install_still_works_after(&reinstall, 0, spoiled);
}

#[test]
fn a_repair_of_one_package_leaves_the_rest_known_as_it_was() {
    let world = done();
    std::fs::write(slot(&world, LINT, "1.0.0").join("lint.md"), "spoiled\n").unwrap();
    vibe(&world, &["reinstall", LINT]).expect(0);
    let fresh = read(world.project().join("vibedeps/.state/fresh"));
    assert!(fresh.contains("org.example.p0"), "{fresh}");
}

#[test]
fn an_owed_hook_is_work_whatever_other_packages_are_repaired() {
    let world = World::new();
    package(0).publish(&world.registry());
    PackageBuilder::new(LINT, "1.0.0")
        .hook(Phase::PostInstall, "test -e \"$VIBE_PROJECT_ROOT/ok\"\n")
        .publish(&world.registry());
    world.require(&[("org.example/p0", "^1"), (LINT, "^1")]);
    vibe(&world, &["install"]).expect(5);
    vibe(&world, &["reinstall", "org.example/p0"]).expect(0);
    vibe(&world, &["install"]).expect(5);
    world.write("ok", "");
    vibe(&world, &["reinstall", "org.example/p0"]).expect(0);
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("ran 1 install hook");
}

#[test]
fn a_path_source_that_changes_while_hooks_run_is_work_for_the_next_install() {
    let world = World::new();
    let near = "echo newer > \"$VIBE_PROJECT_ROOT/../near/near.md\"\n";
    PackageBuilder::new("org.example/near", "1.0.0")
        .file("near.md", "near\n")
        .hook(Phase::PostInstall, near)
        .write(&world.root().join("near"));
    world.require(&[]);
    vibe(&world, &["install", "path:../near"]).expect(0);
    let near_md = slot(&world, "org.example/near", "1.0.0").join("near.md");
    assert_eq!(read(&near_md), "near\n");
    vibe(&world, &["install"]).expect(0);
    assert_eq!(read(&near_md), "newer\n");
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
}
