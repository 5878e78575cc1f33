//! `vibe why`: what holds a package in the project.

use crate::support::{slot, vibe};
use vibe_testkit::{PackageBuilder, World};

/// A project that requires `core` itself, by `lint`, and by `deep` over `format`.
fn world() -> World {
    let world = World::new();
    PackageBuilder::new("org.example/core", "1.2.0").publish(&world.registry());
    PackageBuilder::new("org.example/format", "2.0.0")
        .depends("org.example/core", ">=1, <3")
        .depends("org.example/deep", "*")
        .publish(&world.registry());
    PackageBuilder::new("org.example/deep", "0.3.0")
        .depends("org.example/core", "=1.2.0")
        .publish(&world.registry());
    PackageBuilder::new("org.example/lint", "10.0.0")
        .depends("org.example/core", "^1.1")
        .publish(&world.registry());
    world.require(&[
        ("org.example/core", "1"),
        ("org.example/format", "*"),
        ("org.example/lint", "^10"),
    ]);
    vibe(&world, &["install"]).expect(0);
    world
}

#[test]
fn each_requirer_is_told_by_a_shortest_chain() {
    let world = world();
    let before = world.snapshot();
    let shown = vibe(&world, &["why", "org.example/core"]).expect(0);
    insta::assert_snapshot!(shown.stdout, @r"
    org.example/core 1.2.0
      world requires org.example/core 1
      world requires org.example/format *
        org.example/format 2.0.0 requires org.example/core >=1, <3
      world requires org.example/lint ^10
        org.example/lint 10.0.0 requires org.example/core ^1.1
      world requires org.example/format *
        org.example/format 2.0.0 requires org.example/deep *
          org.example/deep 0.3.0 requires org.example/core =1.2.0
    ");
    assert_eq!(shown.stderr, "");
    before.assert_unchanged(&world.snapshot());
}

#[test]
fn a_constraint_is_left_out_where_the_manifest_that_states_it_is_not_as_placed() {
    let world = world();
    let manifest = slot(&world, "org.example/lint", "10.0.0").join("vibe.toml");
    std::fs::write(&manifest, "[package]\n").unwrap();
    vibe(&world, &["why", "org.example/core"])
        .expect(0)
        .stdout_has("    org.example/lint 10.0.0 requires org.example/core\n");
}

#[test]
fn a_package_that_is_not_installed_is_an_error_with_a_near_name() {
    let world = world();
    let failed = vibe(&world, &["why", "org.example/fromat"]).expect(1);
    insta::assert_snapshot!(failed.stderr, @r"
    error: org.example/fromat is not installed in this project
    hint: did you mean org.example/format?
    ");
    assert_eq!(failed.stdout, "");
}

#[test]
fn what_nothing_requires_any_more_is_said() {
    let world = world();
    world.require(&[("org.example/core", "*")]);
    let shown = vibe(&world, &["why", "org.example/lint"]).expect(0);
    insta::assert_snapshot!(shown.stdout, @r"
    org.example/lint 10.0.0
      nothing requires it any more
    ");
}

#[test]
fn a_requirer_that_only_the_package_brings_in_is_no_reason() {
    let world = World::new();
    PackageBuilder::new("org.example/one", "1.0.0")
        .depends("org.example/two", "*")
        .publish(&world.registry());
    PackageBuilder::new("org.example/two", "1.0.0")
        .depends("org.example/one", "*")
        .publish(&world.registry());
    world.require(&[("org.example/one", "*")]);
    vibe(&world, &["install"]).expect(0);
    let shown = vibe(&world, &["why", "org.example/one"]).expect(0);
    insta::assert_snapshot!(shown.stdout, @r"
    org.example/one 1.0.0
      world requires org.example/one *
    ");
    vibe(&world, &["tree"])
        .expect(0)
        .stdout_has("org.example/one 1.0.0 (cycle)\n");
}

#[test]
fn only_the_first_ten_chains_are_told() {
    let world = World::new();
    PackageBuilder::new("org.example/core", "1.0.0").publish(&world.registry());
    let names: Vec<String> = (0..12).map(|n| format!("org.example/p{n:02}")).collect();
    for name in &names {
        PackageBuilder::new(name, "1.0.0")
            .depends("org.example/core", "*")
            .publish(&world.registry());
    }
    let requires: Vec<(&str, &str)> = names.iter().map(|name| (name.as_str(), "*")).collect();
    world.require(&requires);
    vibe(&world, &["install"]).expect(0);
    let shown = vibe(&world, &["why", "org.example/core"]).expect(0);
    assert_eq!(shown.stdout.lines().count(), 1 + 2 * 10 + 1);
    assert!(
        shown.stdout.ends_with("\n  and 2 more\n"),
        "{}",
        shown.stdout
    );
    let told = vibe(&world, &["why", "--json", "org.example/core"])
        .expect(0)
        .json();
    assert_eq!(told["result"]["more"], 2);
    assert_eq!(told["result"]["chains"][0][0]["requirement"], "*");
}
