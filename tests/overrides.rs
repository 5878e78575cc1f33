//! Overrides: one source of a package for everybody who requires it.

use std::path::PathBuf;

use crate::git_support::{LINT, Served, release};
use crate::support::{committed, lint, lint_slot, outside_state, redacted, slot, vibe};
use vibe_testkit::{PackageBuilder, World};

const TOOL: &str = "org.example/tool";

/// A project that requires tool, which requires lint ^1; the registry has both, and `../near` is
/// lint 3.0.0.
fn world() -> World {
    let world = World::new();
    lint("1.0.0").publish(&world.registry());
    PackageBuilder::new(TOOL, "1.0.0")
        .depends(LINT, "^1")
        .publish(&world.registry());
    lint("3.0.0").write(&near(&world));
    world.require(&[(TOOL, "^1")]);
    world
}

fn near(world: &World) -> PathBuf {
    world.root().join("near")
}

/// Adds an override of lint to the manifest.
fn override_lint(world: &World, source: &str) {
    let text = world.read("vibe.toml");
    world.write(
        "vibe.toml",
        &format!("{text}\n[[override]]\npackage = \"{LINT}\"\n{source}\n"),
    );
}

const NEAR: &str = "path = \"../near\"";

#[test]
fn every_requirement_of_an_overridden_package_gives_way() {
    let world = world();
    override_lint(&world, NEAR);
    let installed = vibe(&world, &["install"]).expect(0);
    insta::assert_snapshot!(redacted(&world, &installed.stdout), @r"
    + org.example/lint  3.0.0  copy  2 files
    + org.example/tool  1.0.0  copy  1 file
    installed 2 packages, 3 files in [time]
    ");
    insta::assert_snapshot!(installed.stderr, @"note: org.example/tool 1.0.0 requires org.example/lint ^1; the override gives it 3.0.0");
    let lock = world.read("vibe.lock");
    assert!(lock.contains("source = \"path+../near\""), "{lock}");
    let before = world.snapshot();
    for arguments in [&["install"][..], &["install", "--locked"]] {
        vibe(&world, arguments)
            .expect(0)
            .stdout_has("nothing to do");
    }
    before.assert_unchanged(&world.snapshot());
    vibe(&world, &["verify"]).expect(0);
    vibe(&world, &["verify", "--repair"]).expect(0);
    vibe(&world, &["update"]).expect(0);
}

#[test]
fn a_list_says_what_is_overridden() {
    let world = world();
    override_lint(&world, NEAR);
    vibe(&world, &["install"]).expect(0);
    let listed = vibe(&world, &["list"]).expect(0);
    insta::assert_snapshot!(listed.stdout, @r"
    org.example/lint  3.0.0  copy  2 files  overridden
    org.example/tool  1.0.0  copy  1 file
    ");
    let document = vibe(&world, &["list", "--json"]).expect(0).json();
    assert_eq!(document["result"][0]["overridden"], true);
    assert_eq!(document["result"][1]["overridden"], false);
}

#[test]
fn the_lock_on_another_machine_satisfies_a_manifest_with_an_override() {
    let world = world();
    override_lint(&world, NEAR);
    vibe(&world, &["install"]).expect(0);
    let good = committed(&world);
    std::fs::remove_dir_all(world.project().join("vibedeps")).unwrap();
    std::fs::remove_dir_all(world.home().join("vibe")).unwrap();
    vibe(&world, &["install", "--locked"]).expect(0);
    good.assert_unchanged(&committed(&world));
}

#[test]
fn an_override_that_is_new_or_gone_makes_the_lock_out_of_date() {
    let world = world();
    vibe(&world, &["install"]).expect(0);
    let plain = world.read("vibe.toml");
    override_lint(&world, NEAR);
    vibe(&world, &["install", "--locked"]).expect(7).stderr_has(
        "org.example/lint is required from a path, but vibe.lock has it from `dir+../registry`",
    );
    vibe(&world, &["verify"]).expect(7);
    vibe(&world, &["install"]).expect(0);
    assert!(lint_slot(&world, "3.0.0").is_dir() && !lint_slot(&world, "1.0.0").exists());
    world.write("vibe.toml", &plain);
    vibe(&world, &["install", "--locked"])
        .expect(7)
        .stderr_has("org.example/lint");
    vibe(&world, &["install"]).expect(0);
    assert!(lint_slot(&world, "1.0.0").is_dir() && !lint_slot(&world, "3.0.0").exists());
}

#[test]
fn an_override_brings_nothing_in_and_one_that_nothing_needs_is_told() {
    let world = world();
    PackageBuilder::new(TOOL, "1.1.0").publish(&world.registry());
    override_lint(&world, NEAR);
    for expected in ["installed 1 package", "nothing to do"] {
        vibe(&world, &["install"])
            .expect(0)
            .stdout_has(expected)
            .stderr_has("warning: vibe.toml (line 11): the override of org.example/lint changes nothing: nothing requires it\n");
    }
    assert!(!world.read("vibe.lock").contains(LINT));
}

#[test]
fn an_override_settles_what_two_manifests_disagree_on() {
    let world = world();
    lint("2.0.0").write(&world.root().join("far"));
    let both = |text: &str| {
        format!(
            "[project]\nname = \"world\"\n[requires.packages]\n\"{LINT}\" = {{ path = \"../far\" }}\n\"org.example/local\" = {{ path = \"../local\" }}\n{text}"
        )
    };
    PackageBuilder::new("org.example/local", "1.0.0")
        .manifest_extra(&format!(
            "[requires.packages]\n\"{LINT}\" = {{ path = \"../near\" }}\n"
        ))
        .write(&world.root().join("local"));
    world.write("vibe.toml", &both(""));
    let before = outside_state(&world);
    let refused = vibe(&world, &["install"]).expect(2);
    insta::assert_snapshot!(redacted(&world, &refused.stderr), @r"
    error: org.example/lint is required from two sources: path ../far, by [world]/project/vibe.toml, and path ../near, by [world]/local/vibe.toml
    hint: keep one of them, or choose one for everybody with an `[[override]]` in the project's vibe.toml
    ");
    before.assert_unchanged(&outside_state(&world));
    world.write(
        "vibe.toml",
        &both(&format!("[[override]]\npackage = \"{LINT}\"\n{NEAR}\n")),
    );
    vibe(&world, &["install"]).expect(0);
    assert!(lint_slot(&world, "3.0.0").is_dir());
}

#[test]
fn a_path_of_the_project_comes_before_the_registry_of_a_published_package() {
    let world = world();
    lint("1.5.0").write(&near(&world));
    world.write(
        "vibe.toml",
        &format!(
            "{}\n[requires.packages.\"{LINT}\"]\npath = \"../near\"\n",
            world.read("vibe.toml")
        ),
    );
    vibe(&world, &["install"]).expect(0);
    let lock = world.read("vibe.lock");
    assert!(lock.contains("source = \"path+../near\""), "{lock}");
    assert!(lint_slot(&world, "1.5.0").is_dir());
}

#[test]
fn only_the_overrides_of_the_root_count() {
    let world = world();
    PackageBuilder::new(TOOL, "1.2.0")
        .depends(LINT, "^1")
        .manifest_extra(&format!(
            "[[override]]\npackage = \"{LINT}\"\npath = \"../near\"\n"
        ))
        .publish(&world.registry());
    vibe(&world, &["install"]).expect(0);
    assert!(slot(&world, TOOL, "1.2.0").is_dir() && lint_slot(&world, "1.0.0").is_dir());
}

#[test]
fn an_override_may_name_a_repository() {
    let (served, repository) = Served::with_lint(&["1.0.0", "1.1.0"]);
    let world = &served.world;
    PackageBuilder::new(TOOL, "1.0.0")
        .depends(LINT, "^7")
        .publish(&world.registry());
    let url = served.url("lint");
    for (reference, version, kept) in [
        ("version = \"=1.0.0\"", "1.0.0", "range:=1.0.0"),
        ("tag = \"v1.1.0\"", "1.1.0", "tag:v1.1.0"),
    ] {
        world.require(&[(TOOL, "^1")]);
        override_lint(world, &format!("git = \"{url}\"\n{reference}"));
        served.vibe(&["install"]).expect(0).stderr_has(&format!(
            "requires org.example/lint ^7; the override gives it {version}"
        ));
        assert!(lint_slot(world, version).is_dir());
        let lock = world.read("vibe.lock");
        assert!(lock.contains(&format!("ref = \"{kept}\"")), "{lock}");
        served
            .vibe(&["install", "--locked"])
            .expect(0)
            .stdout_has("nothing to do");
        served.vibe(&["verify"]).expect(0);
    }
    release(&repository, "1.2.0");
    served.vibe(&["update"]).expect(0);
    assert!(lint_slot(world, "1.1.0").is_dir());
}

#[test]
fn a_branch_and_a_tag_of_one_repository_are_two_sources() {
    let (served, _) = Served::with_lint(&["1.0.0"]);
    let world = &served.world;
    let url = served.url("lint");
    PackageBuilder::new("org.example/local", "1.0.0")
        .manifest_extra(&format!(
            "[requires.packages]\n\"{LINT}\" = {{ git = \"{url}\", branch = \"main\" }}\n"
        ))
        .write(&world.root().join("local"));
    world.write(
        "vibe.toml",
        &format!(
            "[project]\nname = \"world\"\n[requires.packages]\n\"{LINT}\" = {{ git = \"{url}\", tag = \"v1.0.0\" }}\n\"org.example/local\" = {{ path = \"../local\" }}\n"
        ),
    );
    served
        .vibe(&["install"])
        .expect(2)
        .stderr_has(&format!("git {url} at tag:v1.0.0, by "))
        .stderr_has(&format!("git {url} at branch:main, by "));
}
