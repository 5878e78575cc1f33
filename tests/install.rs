//! `vibe install`: from manifest to slots.

use crate::support::{command, read, redacted, refused, run, slot, vibe};
use vibe_core::hook::Phase;
use vibe_testkit::{PackageBuilder, World};

const COUNT: &str = "echo run >> counter\n";

#[test]
fn install_places_what_is_required_and_the_second_run_writes_nothing() {
    let world = World::new();
    PackageBuilder::new("org.example/core", "1.2.0")
        .file("core.md", "core\n")
        .publish(&world.registry());
    PackageBuilder::new("org.example/lint", "2.1.0")
        .depends("org.example/core", "^1")
        .file("lint.md", "lint\n")
        .hook(Phase::PostInstall, COUNT)
        .publish(&world.registry());
    world.require(&[("org.example/lint", "^2")]);
    vibe(&world, &["install"]).expect(0);
    let lint = slot(&world, "org.example/lint", "2.1.0");
    assert_eq!(read(lint.join("lint.md")), "lint\n");
    assert_eq!(read(lint.join("counter")), "run\n");
    assert_eq!(
        read(slot(&world, "org.example/core", "1.2.0").join("core.md")),
        "core\n"
    );
    let before = world.snapshot();
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
    before.assert_unchanged(&world.snapshot());
}

#[test]
fn the_number_of_jobs_changes_nothing_but_how_much_is_done_at_a_time() {
    let world = |jobs: &[&str]| {
        let world = World::new();
        for number in 0..12 {
            PackageBuilder::new(&format!("org.example/p{number}"), "1.0.0")
                .file("text.md", format!("{number}\n"))
                .publish(&world.registry());
        }
        let ids: Vec<String> = (0..12)
            .map(|number| format!("org.example/p{number}"))
            .collect();
        let requires: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), "^1")).collect();
        world.require(&requires);
        vibe(&world, &[&["install"], jobs].concat()).expect(0);
        world
    };
    let (one, many) = (world(&["-j", "1"]), world(&["--jobs", "16"]));
    let settled = |world: &World| crate::support::outside_state(world).ignoring_times();
    settled(&one).assert_unchanged(&settled(&many));
    let mut asked = command(&one, &["install"]);
    run(asked.env("VIBE_JOBS", "none"))
        .expect(2)
        .stderr_has("VIBE_JOBS has to be a number from 1, but it is `none`");
}

#[test]
fn a_package_that_is_asked_for_in_two_ways_is_refused_and_not_taken_in_the_last() {
    let world = World::new();
    for version in ["1.0.0", "2.0.0"] {
        PackageBuilder::new("org.example/lint", version).publish(&world.registry());
    }
    let own = PackageBuilder::new("org.example/lint", "1.0.0");
    own.write(&world.root().join("lint"));
    world.require(&[]);
    let twice = ["install", "org.example/lint@1", "path:../lint"];
    let run = refused(&world, &twice, 2, &[]);
    insta::assert_snapshot!(redacted(&world, &run.stderr), @r"
    error: org.example/lint is asked for in two ways: org.example/lint@1, and path:../lint
    hint: name it once
    ");
    let versions = ["install", "org.example/lint@1", "org.example/lint@2"];
    refused(&world, &versions, 2, &["org.example/lint@1", "@2"]);
    let same = [
        "install",
        "org.example/lint",
        "path:../lint",
        "path:../lint",
    ];
    vibe(&world, &same).expect(0);
    assert!(read(world.project().join("vibe.toml")).contains("path = \"../lint\""));
}

#[test]
fn a_directory_that_is_not_there_is_named_with_what_to_do() {
    let world = World::new();
    world.require(&[]);
    for arguments in [
        &["install", "path:../lnit"][..],
        &["install", "--git", "../lnit"],
        &["check", "../lnit"],
    ] {
        let run = refused(&world, arguments, 2, &[]);
        insta::allow_duplicates! {
            insta::assert_snapshot!(redacted(&world, &run.stderr), @r"
            error: there is no directory [world]/project/../lnit
              could not find [world]/project/../lnit
              No such file or directory (os error 2)
            hint: name one that is there; a relative path begins at the working directory
            ");
        }
    }
    std::fs::write(world.root().join("lnit"), "").unwrap();
    refused(
        &world,
        &["check", "../lnit"],
        2,
        &["not a directory", "hint: name one"],
    );
}

#[test]
fn a_version_that_only_a_later_registry_has_is_told_with_how_to_take_it() {
    let world = World::new();
    PackageBuilder::new("org.example/lint", "1.0.0").publish(&world.registry());
    let later = world.root().join("later");
    PackageBuilder::new("org.example/lint", "2.0.0").publish(&later);
    world.require(&[("org.example/lint", "^2")]);
    let manifest = world.read("vibe.toml");
    let both = format!("{manifest}\n[[registry]]\nname = \"later\"\nurl = \"../later\"\n");
    world.write("vibe.toml", &both);
    let run = refused(&world, &["install"], 1, &[]);
    insta::assert_snapshot!(redacted(&world, &run.stderr), @r#"
    error: no version of org.example/lint satisfies ^2
      world (yours) requires org.example/lint ^2
      the versions there are: 1.0.0
      org.example/lint comes from the registry `local`, the first that has it
    hint: in vibe.toml, require a version that there is, as `^1.0.0` does
    hint: the registry `later` has 2.0.0: to take it from there, require it in vibe.toml with `registry = "later"`
    "#);
    let asked = both.replace("\"^2\"", "{ version = \"^2\", registry = \"later\" }");
    world.write("vibe.toml", &asked);
    vibe(&world, &["install"]).expect(0);
}
