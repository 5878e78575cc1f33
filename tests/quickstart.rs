//! The quickstart of the README, run as it stands in `docs/quickstart`.

use std::path::{Path, PathBuf};

use crate::support::{Run, command_in, read, run};
use vibe_testkit::{TreeSnapshot, World};

/// What the documentation promises is copied as it is published, without what a reader's own run
/// left in it.
fn copied(world: &World) -> PathBuf {
    let original = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/quickstart");
    let copy = world.root().join("quickstart");
    copy_tree(&original, &copy);
    copy
}

fn copy_tree(from: &Path, to: &Path) {
    std::fs::create_dir(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        match entry.file_type().unwrap().is_dir() {
            true if entry.file_name() == "vibedeps" => {}
            true => copy_tree(&entry.path(), &target),
            false => assert!(std::fs::copy(entry.path(), target).unwrap() > 0),
        }
    }
}

/// A line without the time at its end.
fn untimed(line: &str) -> &str {
    let (start, last) = line.rsplit_once(' ').unwrap();
    let is_time = last.starts_with(|c: char| c.is_ascii_digit()) && last.ends_with('s');
    if is_time { start } else { line }
}

fn install(world: &World, quickstart: &Path) -> Run {
    let arguments = ["--project", "quickstart/project", "install"];
    let ran = run(&mut command_in(
        world,
        quickstart.parent().unwrap(),
        &arguments,
    ));
    ran.expect(0)
}

#[test]
fn the_quickstart_runs_as_the_readme_says() {
    let world = World::new();
    let quickstart = copied(&world);
    let project = quickstart.join("project");
    let locked = read(project.join("vibe.lock"));
    let first = install(&world, &quickstart)
        .stdout_has("installed 3 packages, 17 files, ran 2 install hooks in ")
        .stderr_has("org.vibe-quickstart/project-map pre-install | built GUIDE.md\n")
        .stderr_has("org.vibe-quickstart/project-map post-install | Files by kind\n");
    let readme = read(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md"));
    for line in first.stdout.lines() {
        let line = untimed(line);
        assert!(readme.contains(line), "the README does not show {line:?}");
    }
    assert_eq!(
        read(project.join("vibe.lock")),
        locked,
        "the committed lock is out of date"
    );

    let why = ["why", "org.vibe-quickstart/commit-message"];
    let why = run(&mut command_in(&world, &project, &why))
        .expect(0)
        .stdout;
    assert!(readme.contains(&why), "the README does not show {why}");

    let slot = project.join("vibedeps/org.vibe-quickstart.project-map/1.0.0");
    let guide = read(slot.join("GUIDE.md"));
    assert!(
        guide.starts_with("# Guide\n\n- Orient\n- Follow one path\n- Change\n"),
        "{guide}"
    );
    let summary = read(slot.join("report/summary.txt"));
    assert!(summary.contains("     1  .sh\n"), "{summary}");
    assert!(summary.ends_with("     5  in all\n"), "{summary}");

    let before = TreeSnapshot::of(&project);
    let second = install(&world, &quickstart);
    assert_eq!(second.stdout, "nothing to do: 3 packages are up to date\n");
    assert_eq!(second.stderr, "");
    before.assert_unchanged(&TreeSnapshot::of(&project));
}

#[test]
fn the_quickstart_is_up_to_date_under_locked_and_verifies() {
    let world = World::new();
    let quickstart = copied(&world);
    let project = quickstart.join("project");
    run(&mut command_in(&world, &project, &["install", "--locked"])).expect(0);
    run(&mut command_in(&world, &project, &["verify"]))
        .expect(0)
        .stdout_has("all is as vibe.lock says");
}
