//! `vibe publish`: a version in a directory registry, whole or not at all, and never changed again.

use std::path::PathBuf;

use crate::support::{Run, command, command_in, redacted, run, slot, unprivileged, vibe};
use vibe_testkit::{PackageBuilder, TreeSnapshot, World, mode_of, set_mode};

/// `org.example/lint` with an executable, a link and ignored files, in `lint/` of the world, whose
/// manifest names the world's registry `acme`.
fn package(version: &str) -> PackageBuilder {
    PackageBuilder::new("org.example/lint", version)
        .manifest_extra("[package]\ndescription = \"d\"\nlicense = \"MIT\"\n")
        .manifest_extra("[[registry]]\nname = \"acme\"\nurl = \"../registry\"\n")
        .file("README.md", "lint\n")
        .exec_file("tools/run", "#!/bin/sh\n")
        .file(".vibeignore", "*.log\n")
        .file("noise.log", "x\n")
}

fn source(world: &World) -> PathBuf {
    world.root().join("lint")
}

fn world(version: &str) -> World {
    let world = World::new();
    package(version).write(&source(&world));
    std::os::unix::fs::symlink("tools", source(&world).join("bin")).unwrap();
    world
}

const PUBLISH: [&str; 4] = ["publish", "../lint", "--registry", "acme"];

fn publish(world: &World) -> Run {
    vibe(world, &PUBLISH)
}

/// `text` without the digest of a tree.
fn shown(world: &World, text: &str) -> String {
    let text = redacted(world, text);
    let words = text.split_inclusive([' ', '\n']);
    words
        .map(|word| match word.strip_prefix("tree1:") {
            Some(rest) => format!("tree1:[digest]{}", &rest[64..]),
            None => word.to_owned(),
        })
        .collect()
}

fn version_directory(world: &World, version: &str) -> PathBuf {
    let package = world.registry().join("org.example/lint");
    package.join(format!("v{version}"))
}

/// The names in the package's directory of the registry.
fn names(world: &World) -> Vec<String> {
    let listed = std::fs::read_dir(world.registry().join("org.example/lint")).unwrap();
    let mut names: Vec<String> = listed
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn what_is_published_is_installed_elsewhere_as_it_is() {
    let world = world("2.1.0");
    let published = publish(&world).expect(0);
    insta::assert_snapshot!(shown(&world, &published.stdout), @"published org.example/lint 2.1.0 to acme (../registry), 5 files, tree1:[digest]");
    assert_eq!(published.stderr, "");
    assert_eq!(names(&world), ["v2.1.0", "v2.1.0.tree"]);
    world.require(&[("org.example/lint", "^2")]);
    vibe(&world, &["install"]).expect(0);
    vibe(&world, &["verify"]).expect(0);
    let slot = slot(&world, "org.example/lint", "2.1.0");
    assert_eq!(
        mode_of(&slot.join("tools/run")) & 0o111,
        mode_of(&slot) & 0o111
    );
    assert_eq!(mode_of(&slot.join("bin/run")) & 0o100, 0o100);
    assert!(!slot.join("noise.log").exists());
    for path in ["vibe.toml", "README.md", "bin/run"] {
        let published = std::fs::read(slot.join(path)).unwrap();
        assert_eq!(
            published,
            std::fs::read(source(&world).join(path)).unwrap(),
            "{path}"
        );
    }
}

#[test]
fn exec_bits_survive_a_registry_on_a_file_system_without_them() {
    let world = world("1.0.0");
    publish(&world).expect(0);
    for path in ["tools/run", "bin/run"] {
        set_mode(&version_directory(&world, "1.0.0").join(path), 0o644);
    }
    world.require(&[("org.example/lint", "^1")]);
    vibe(&world, &["install"]).expect(0);
    let slot = slot(&world, "org.example/lint", "1.0.0");
    assert_eq!(mode_of(&slot.join("tools/run")) & 0o100, 0o100);
    publish(&world).expect(0).stdout_has("nothing to do: ");
}

#[test]
fn the_same_version_again_is_done_already_or_refused() {
    let world = world("1.0.0");
    publish(&world).expect(0);
    let before = TreeSnapshot::of(&world.registry());
    let again = publish(&world).expect(0);
    insta::assert_snapshot!(shown(&world, &again.stdout), @"nothing to do: org.example/lint 1.0.0 is already published to acme (../registry), same content, 5 files, tree1:[digest]");
    std::fs::write(source(&world).join("README.md"), "other\n").unwrap();
    for dry in [&[][..], &["--dry-run"]] {
        let refused = vibe(&world, &[&PUBLISH, dry].concat()).expect(1);
        insta::allow_duplicates! {
            insta::assert_snapshot!(shown(&world, &refused.stderr), @r"
            error: org.example/lint 1.0.0 cannot be published to `acme`
              this version is already published with other content: `README.md` differs
            hint: a published version never changes: raise `version` in vibe.toml, and publish that
            ");
        }
    }
    before.assert_unchanged(&TreeSnapshot::of(&world.registry()));
    package("1.1.0").write(&source(&world));
    publish(&world)
        .expect(0)
        .stdout_has("published org.example/lint 1.1.0 to acme");
    assert_eq!(
        names(&world),
        ["v1.0.0", "v1.0.0.tree", "v1.1.0", "v1.1.0.tree"]
    );
}

#[test]
fn a_dry_run_writes_nothing() {
    let world = world("1.0.0");
    let before = TreeSnapshot::of(world.root());
    let dry = vibe(&world, &[&PUBLISH[..], &["--dry-run"]].concat()).expect(0);
    insta::assert_snapshot!(shown(&world, &dry.stdout), @"would publish org.example/lint 1.0.0 to acme (../registry), 5 files, tree1:[digest]");
    before.assert_unchanged(&TreeSnapshot::of(world.root()));
}

#[test]
fn an_error_that_check_finds_stops_it_and_a_warning_does_not() {
    let world = world("1.0.0");
    std::fs::write(source(&world).join(".npmrc"), "").unwrap();
    let before = TreeSnapshot::of(&world.registry());
    std::os::unix::fs::symlink("absent", source(&world).join("dangling")).unwrap();
    let refused = publish(&world).expect(1);
    insta::assert_snapshot!(shown(&world, &refused.stderr), @r"
    error: org.example/lint 1.0.0 is not published, because a check found errors in it
      dangling: `dangling` is a link to `absent`, which does not exist (link to something in the package, put a copy there, or leave it out with `.vibeignore`)
    hint: mend them; to see all that is found: vibe check [world]/lint
    ");
    before.assert_unchanged(&TreeSnapshot::of(&world.registry()));
    std::fs::remove_file(source(&world).join("dangling")).unwrap();
    let document = vibe(&world, &[&PUBLISH[..], &["--json"]].concat())
        .expect(0)
        .json();
    assert_eq!(document["result"]["outcome"], "published");
    assert_eq!(document["result"]["findings"][0]["rule"], "secret");
    assert!(
        document["warnings"][0]
            .as_str()
            .unwrap()
            .starts_with(".npmrc: ")
    );
    publish(&world)
        .expect(0)
        .stderr_has("warning: .npmrc: files of this name");
}

#[test]
fn what_only_git_can_hold_is_an_error_for_a_directory_and_for_nobody_else() {
    let world = world("1.0.0");
    package("1.0.0")
        .manifest_extra("[package]\nmaterialization = \"in-place\"\n")
        .write(&source(&world));
    vibe(&world, &["check", "../lint"])
        .expect(0)
        .stdout_has("found 1 warning in");
    publish(&world).expect(1).stderr_has("vibe.toml:");
}

#[test]
fn a_registry_is_found_in_the_package_above_it_or_in_the_project() {
    let world = World::new();
    let bare = PackageBuilder::new("org.example/lint", "1.0.0");
    bare.write(&source(&world));
    let unknown = publish(&world).expect(2);
    insta::assert_snapshot!(shown(&world, &unknown.stderr), @r"
    error: no `[[registry]]` is named `acme` in [world]/lint/vibe.toml, above it, or in this project
    hint: add a `[[registry]]` with that name and its `url` to the vibe.toml of the package
    ");
    let manifest =
        "[project]\nname = \"p\"\n[[registry]]\nname = \"acme\"\nurl = \"../registry\"\n";
    world.write("vibe.toml", manifest);
    let misspelt = vibe(&world, &["publish", "../lint", "--registry", "amce"]).expect(2);
    insta::assert_snapshot!(shown(&world, &misspelt.stderr), @r"
    error: no `[[registry]]` is named `amce` in [world]/lint/vibe.toml, above it, or in this project
    hint: did you mean `acme`?
    ");
    publish(&world).expect(0);
    let above = world.root().join("vibe.toml");
    std::fs::write(above, manifest.replace("../registry", "second")).unwrap();
    std::fs::create_dir(world.root().join("second")).unwrap();
    let inside = ["publish", "--registry", "acme"];
    run(&mut command_in(&world, &source(&world), &inside))
        .expect(0)
        .stdout_has("to acme (second), 1 file");
    assert!(world.root().join("second/org.example/lint/v1.0.0").is_dir());
}

#[test]
fn a_package_goes_only_where_it_says() {
    let world = world("1.0.0");
    let refused = |line: &str| {
        package("1.0.0")
            .manifest_extra(&format!("[package]\n{line}\n"))
            .write(&source(&world));
        publish(&world).expect(1).stderr
    };
    insta::assert_snapshot!(refused("publish = false"), @r"
    error: org.example/lint may not be published to `acme`, by its own `publish`
    hint: write `publish = true` into its vibe.toml if it is meant to be
    ");
    insta::assert_snapshot!(refused("publish = [\"other\", \"third\"]"), @r"
    error: org.example/lint may not be published to `acme`, by its own `publish`
    hint: it may go to: other, third
    ");
    package("1.0.0")
        .manifest_extra("[package]\npublish = [\"acme\"]\n")
        .write(&source(&world));
    publish(&world).expect(0);
}

#[test]
fn a_git_registry_is_refused_with_the_commands_that_publish_to_it() {
    let world = World::new();
    let place = world.root().join("my lint");
    package("1.2.0")
        .manifest_extra(
            "[[registry]]\nname = \"org\"\nurl = \"https://user:secret@host.example/org\"\n",
        )
        .write(&place);
    let refused = vibe(&world, &["publish", "../my lint", "--registry", "org"]).expect(1);
    insta::assert_snapshot!(shown(&world, &refused.stderr), @r"
    error: `org` is a git registry: publishing there is a tag and a push
    hint: commit what is to be published, then: git -C '[world]/my lint' tag v1.2.0
    hint: and: git -C '[world]/my lint' push https://host.example/org/org.example.lint.git HEAD v1.2.0
    ");
}

#[test]
fn a_registry_that_is_not_there_is_not_made() {
    let world = world("1.0.0");
    std::fs::remove_dir(world.registry()).unwrap();
    let refused = publish(&world).expect(1);
    insta::assert_snapshot!(shown(&world, &refused.stderr), @r"
    error: org.example/lint 1.0.0 cannot be published to `acme`
      could not find [world]/lint/../registry
      No such file or directory (os error 2)
    hint: correct the `url` of the registry in vibe.toml, or make the directory: mkdir -p [world]/lint/../registry
    ");
    assert!(!world.registry().exists());
}

#[test]
fn a_registry_in_the_package_is_refused() {
    let world = World::new();
    package("1.0.0")
        .manifest_extra("[[registry]]\nname = \"inner\"\nurl = \"registry\"\n")
        .file("registry/x", "")
        .write(&source(&world));
    let refused = vibe(&world, &["publish", "../lint", "--registry", "inner"]).expect(2);
    insta::assert_snapshot!(shown(&world, &refused.stderr), @r"
    error: the registry [world]/lint/registry lies in the package [world]/lint
    hint: each version would ship the versions before it: keep the registry beside the package
    ");
}

#[test]
fn a_registry_that_may_not_be_written_is_named() {
    let world = world("1.0.0");
    set_mode(&world.registry(), 0o555);
    let refused = run(&mut unprivileged(&world, &PUBLISH)).expect(1);
    insta::assert_snapshot!(shown(&world, &refused.stderr), @r"
    error: org.example/lint 1.0.0 cannot be published to `acme`
      could not create [world]/lint/../registry/org.example
      Permission denied (os error 13)
    hint: make [world]/registry a directory that you may write
    ");
    set_mode(&world.registry(), 0o755);
    assert_eq!(std::fs::read_dir(world.registry()).unwrap().count(), 0);
}

#[test]
fn what_a_killed_publish_left_is_seen_by_nobody_and_goes_with_the_next() {
    let world = world("1.0.0");
    let package = world.registry().join("org.example/lint");
    std::fs::create_dir_all(package.join(".vibe-tmp-dead/files")).unwrap();
    std::fs::write(package.join(".vibe-tmp-dead/files/vibe.toml"), "half").unwrap();
    std::fs::write(package.join("v1.0.0.tree"), "half").unwrap();
    std::fs::write(package.join(".vibe-publish.lock"), "1\nvibe publish\n").unwrap();
    world.require(&[("org.example/lint", "^1")]);
    vibe(&world, &["install"])
        .expect(1)
        .stderr_has("org.example/lint");
    publish(&world).expect(0);
    assert_eq!(names(&world), ["v1.0.0", "v1.0.0.tree"]);
    vibe(&world, &["install"]).expect(0);
}

/// Kills a publish as soon as it writes into the registry; whether it was met before its end.
fn killed_while_it_writes(world: &World) -> bool {
    let package = world.registry().join("org.example/lint");
    let is_staging = |name: std::ffi::OsString| name.to_string_lossy().starts_with(".vibe-tmp-");
    let mut child = command(world, &PUBLISH).spawn().unwrap();
    while child.try_wait().unwrap().is_none() {
        let entries = std::fs::read_dir(&package).into_iter().flatten().flatten();
        if entries
            .into_iter()
            .any(|entry| is_staging(entry.file_name()))
        {
            child.kill().unwrap();
        }
    }
    !child.wait().unwrap().success()
}

#[test]
fn a_publish_that_is_killed_shows_a_whole_version_or_none_and_the_same_again_finishes_it() {
    let world = world("1.0.0");
    for number in 0..500 {
        let path = source(&world).join(format!("f{number}"));
        std::fs::write(path, vec![b'x'; 4_096]).unwrap();
    }
    // On a busy machine it may be through before anybody looks.
    let is_met = (0..50).any(|_| {
        let is_met = killed_while_it_writes(&world);
        if !is_met {
            std::fs::remove_dir_all(world.registry().join("org.example")).unwrap();
        }
        is_met
    });
    assert!(is_met, "it was never met while it wrote");
    let is_there = version_directory(&world, "1.0.0").exists();
    publish(&world).expect(0).stdout_has(match is_there {
        true => "nothing to do",
        false => "published org.example/lint 1.0.0",
    });
    assert_eq!(names(&world), ["v1.0.0", "v1.0.0.tree"]);
    publish(&world).expect(0).stdout_has("nothing to do");
}

#[test]
fn of_two_publishers_at_once_one_wins_and_the_other_is_told() {
    let world = world("1.0.0");
    let start = || command(&world, &PUBLISH).spawn().unwrap();
    let both = [start(), start(), start()];
    let ended = both.map(crate::support::wait);
    let mut published = 0;
    for run in &ended {
        match run.code {
            0 if run.stdout.starts_with("published ") => published += 1,
            0 => assert!(run.stdout.starts_with("nothing to do"), "{run:?}"),
            _ => assert!(
                run.stderr.contains("another vibe publishes this package"),
                "{run:?}"
            ),
        }
    }
    assert_eq!(published, 1, "{ended:#?}");
    assert_eq!(names(&world), ["v1.0.0", "v1.0.0.tree"]);
}
