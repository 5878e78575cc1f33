//! `vibe init`: a project and a package to start from.

use crate::support::{command_in, read, redacted, run, vibe};
use vibe_testkit::World;

#[test]
fn a_project_is_started_here_and_never_over_another() {
    let world = World::new();
    let started = vibe(&world, &["init"]).expect(0);
    insta::assert_snapshot!(redacted(&world, &started.stdout), @r"
    started a project in [world]/project
        wrote vibe.toml
    ");
    insta::assert_snapshot!(started.stderr, @"hint: to install a package from a directory: vibe install path:DIR");
    assert_eq!(world.read("vibe.toml"), "[project]\nname = \"project\"\n");
    let before = world.snapshot();
    for arguments in [&["init"][..], &["init", "--package"]] {
        let refused = vibe(&world, arguments).expect(1);
        insta::allow_duplicates! {
            insta::assert_snapshot!(redacted(&world, &refused.stderr), @r"
            error: [world]/project/vibe.toml is already there
            hint: nothing was written; choose another directory, or move the file away
            ");
        }
    }
    before.assert_unchanged(&world.snapshot());
}

#[test]
fn a_project_in_the_directory_above_is_called_as_that_is() {
    let world = World::new();
    let inside = world.project().join("inside");
    std::fs::create_dir(&inside).unwrap();
    run(&mut command_in(&world, &inside, &["init", ".."])).expect(0);
    assert_eq!(world.read("vibe.toml"), "[project]\nname = \"project\"\n");
}

#[test]
fn a_new_user_gets_from_nothing_to_an_installed_package() {
    let world = World::new();
    let package = run(&mut command_in(
        &world,
        world.root(),
        &["init", "--package", "my-tool"],
    ));
    let package = package.expect(0);
    insta::assert_snapshot!(redacted(&world, &package.stdout), @r"
    started a package in [world]/my-tool
        wrote vibe.toml
        wrote README.md
        wrote hooks/prepare.sh
        wrote hooks/prepare.ps1
    ");
    insta::assert_snapshot!(redacted(&world, &package.stderr), @"hint: to try it, require it from a project: vibe install path:[world]/my-tool");
    run(&mut command_in(
        &world,
        world.root(),
        &["init", "my-project"],
    ))
    .expect(0);
    let project = world.root().join("my-project");
    let readme = read(world.root().join("my-tool/README.md"));
    let line = readme
        .lines()
        .find(|line| line.contains("vibe install"))
        .unwrap();
    let words: Vec<&str> = line.split_whitespace().skip(1).collect();
    let installed = run(&mut command_in(&world, &project, &words)).expect(0);
    insta::assert_snapshot!(redacted(&world, &installed.stdout), @r"
    + org.example/my-tool  0.1.0  copy  4 files
        pre-install  hooks/prepare.sh  ok  [time]
    wrote vibe.toml
    installed 1 package, 4 files, ran 1 install hook in [time]
    ");
    assert_eq!(
        installed.stderr,
        "org.example/my-tool pre-install | prepared my-tool\n"
    );
    let slot = project.join("vibedeps/org.example.my-tool/0.1.0");
    assert_eq!(read(slot.join("generated/version.txt")), "my-tool 0.1.0\n");
    assert_eq!(
        read(project.join("vibe.toml")),
        "[project]\nname = \"my-project\"\n\n[requires.packages]\n\
         \"org.example/my-tool\" = { path = \"../my-tool\" }\n"
    );
    run(&mut command_in(&world, &project, &["install"]))
        .expect(0)
        .stdout_has("nothing to do: 1 package is up to date");
}

#[test]
fn the_command_that_is_printed_can_be_pasted_for_any_directory() {
    let world = World::new();
    let name = "My Tool's";
    let started = run(&mut command_in(
        &world,
        world.root(),
        &["init", "--package", name],
    ));
    let directory = world.root().join(name);
    let spec = format!("path:{}", directory.display()).replace('\'', r"'\''");
    started
        .expect(0)
        .stderr_has(&format!("vibe install '{spec}'\n"));
    assert!(read(directory.join("vibe.toml")).contains("\nname = \"my-tool-s\"\n"));
    vibe(&world, &["init"]).expect(0);
    vibe(
        &world,
        &["install", &format!("path:{}", directory.display())],
    )
    .expect(0)
    .stdout_has("org.example/my-tool-s");
    let elsewhere = run(&mut command_in(&world, world.root(), &["init", "other"])).expect(0);
    let other = world.root().join("other");
    elsewhere.stderr_has(&format!(
        "vibe --project {} install path:DIR\n",
        other.display()
    ));
}

#[test]
fn a_package_is_started_whole_or_not_at_all() {
    let world = World::new();
    world.write("hooks/prepare.ps1", "mine\n");
    let before = world.snapshot();
    vibe(&world, &["init", "--package"])
        .expect(1)
        .stderr_has("project/hooks/prepare.ps1 is already there");
    before.assert_unchanged(&world.snapshot());
}

#[test]
fn a_directory_that_gives_no_package_name_is_refused() {
    let world = World::new();
    let refused = vibe(&world, &["init", "--package", "__"]).expect(2);
    insta::assert_snapshot!(refused.stderr, @r"
    error: no package name can be made of `__`
    hint: choose a directory whose name has letters a to z or digits
    ");
    assert!(!world.project().join("__").exists());
}

#[test]
fn a_dry_run_starts_no_project_and_says_so() {
    let world = World::new();
    vibe_testkit::PackageBuilder::new("org.example/near", "1.0.0")
        .write(&world.root().join("near"));
    let before = world.snapshot();
    vibe(&world, &["install", "path:../near", "--dry-run"])
        .expect(0)
        .stdout_has("a project would be started in ");
    before.assert_unchanged(&world.snapshot());
    vibe(&world, &["install", "path:../near"])
        .expect(0)
        .stdout_has("started a project in ");
}

#[test]
fn a_start_inside_a_workspace_says_where_that_does_not_include_it() {
    let world = World::new();
    world.write("vibe.toml", "[workspace]\nmembers = [\"packages/*\"]\n");
    for (directory, is_told) in [("packages/in", false), ("apart/out", true)] {
        let started = vibe(&world, &["init", directory]).expect(0);
        let text = format!(
            "note: the workspace {} does not include it: `members` there says what belongs to it\n",
            world.project().display()
        );
        assert_eq!(
            started.stderr.contains(&text),
            is_told,
            "{}",
            started.stderr
        );
        vibe(
            &world,
            &["init", "--package", &format!("{directory}-package")],
        )
        .expect(0);
    }
}
