//! `vibe show`: all that is known of a package.

use crate::support::{forget_store, redacted, slot, vibe};
use vibe_core::hook::Phase;
use vibe_testkit::{PackageBuilder, World};

/// A package that has everything.
fn full(version: &str) -> PackageBuilder {
    PackageBuilder::new("org.example/lint", version)
        .manifest_extra(
            "[package]\nkind = \"tool\"\nlicense = \"MIT\"\ndescription = \"Lints \\u001B[31mprose.\"\n",
        )
        .manifest_extra("[boot]\nsource = \"boot.md\"\nlink = \"static\"\nwhen = \"always\"\n")
        .file("boot.md", "boot\n")
        .file("skills/review/SKILL.md", "review\n")
        .depends("org.example/core", "^1")
        .hook(Phase::PostInstall, "exit 3\n")
        .powershell_hook(Phase::PostInstall, "exit 3\n")
}

fn world() -> World {
    let world = World::new();
    PackageBuilder::new("org.example/core", "1.2.0").publish(&world.registry());
    full("1.0.0").publish(&world.registry());
    full("1.5.0").publish(&world.registry());
    full("2.0.0-rc.1").publish(&world.registry());
    world.require(&[("org.example/lint", "=1.0.0")]);
    world
}

#[test]
fn an_installed_package_is_told_from_its_slot() {
    let world = world();
    vibe(&world, &["install"]).expect(5);
    let before = world.snapshot();
    let shown = vibe(&world, &["show", "org.example/lint"]).expect(0);
    insta::assert_snapshot!(redacted(&world, &shown.stdout), @r"
    org.example/lint 1.0.0
      Lints \x1B[31mprose.
      kind             tool
      license          MIT
      source           dir+../registry
      installed        vibedeps/org.example.lint/1.0.0, copy, 5 files, post-install owed
      materialization  copy
      versions         2.0.0-rc.1, 1.5.0, 1.0.0
      requires         org.example/core ^1
      required by      world: =1.0.0
      install hooks    post-install  hooks/post-install.ps1  sha256:[digest]  owed
                       post-install  hooks/post-install.sh   sha256:[digest]  owed
      boot text        boot.md, static, when always
      items            skill  review  skills/review/SKILL.md
    ");
    assert_eq!(shown.stderr, "");
    before.assert_unchanged(&world.snapshot());
    let core = vibe(&world, &["show", "org.example/core"]).expect(0);
    insta::assert_snapshot!(core.stdout, @r"
    org.example/core 1.2.0
      kind             feat
      source           dir+../registry
      installed        vibedeps/org.example.core/1.2.0, copy, 1 file
      materialization  copy
      versions         1.2.0
      required by      org.example/lint 1.0.0: ^1
    ");
}

#[test]
fn an_installed_package_needs_no_source() {
    let world = world();
    vibe(&world, &["install"]).expect(5);
    forget_store(&world);
    std::fs::remove_dir_all(world.registry()).unwrap();
    let shown = vibe(&world, &["--offline", "show", "org.example/lint"]).expect(0);
    assert!(!shown.stdout.contains("versions"), "{}", shown.stdout);
    shown
        .stdout_has("  items            skill  review  skills/review/SKILL.md\n")
        .stderr_has("note: the versions that there are of org.example/lint are not known: ");
}

#[test]
fn a_package_that_is_not_installed_is_told_from_its_registry() {
    let world = world();
    let before = world.snapshot();
    let shown = vibe(&world, &["show", "org.example/lint@^1"]).expect(0);
    insta::assert_snapshot!(redacted(&world, &shown.stdout), @r"
    org.example/lint 1.5.0
      Lints \x1B[31mprose.
      kind             tool
      license          MIT
      source           dir+../registry
      installed        no
      materialization  copy
      versions         2.0.0-rc.1, 1.5.0, 1.0.0
      requires         org.example/core ^1
      required by      world: =1.0.0
      install hooks    post-install  hooks/post-install.ps1  sha256:[digest]
                       post-install  hooks/post-install.sh   sha256:[digest]
      boot text        boot.md, static, when always
      items            skill  review  skills/review/SKILL.md
    ");
    before.assert_unchanged(&world.snapshot());
    vibe(&world, &["install"]).expect(5);
    for (spec, version) in [
        ("org.example/lint@^1", "1.0.0"),
        ("org.example/lint@>1.0.0", "1.5.0"),
        ("org.example/lint@2.0.0-rc.1", "2.0.0-rc.1"),
    ] {
        let shown = vibe(&world, &["show", spec]).expect(0);
        shown.stdout_has(&format!("org.example/lint {version}\n"));
    }
    vibe(&world, &["show", "org.example/lint@=1.5.0"])
        .expect(0)
        .stdout_has("  installed        1.0.0, vibedeps/org.example.lint/1.0.0, copy, ");
}

#[test]
fn a_package_whose_slot_is_gone_is_told_from_its_source() {
    let world = world();
    vibe(&world, &["install"]).expect(5);
    std::fs::remove_dir_all(slot(&world, "org.example/lint", "1.0.0")).unwrap();
    vibe(&world, &["show", "org.example/lint"])
        .expect(0)
        .stdout_has("org.example/lint 1.0.0\n")
        .stdout_has("  installed        no, but vibe.lock has 1.0.0, post-install owed\n")
        .stdout_has("  items            skill  review");
}

#[test]
fn what_there_is_not_is_an_error_with_what_may_have_been_meant() {
    let world = world();
    vibe(&world, &["install"]).expect(5);
    let unknown = vibe(&world, &["show", "org.example/lnit"]).expect(1);
    insta::assert_snapshot!(unknown.stderr, @r"
    error: there is no package org.example/lnit
    hint: did you mean org.example/lint?
    ");
    let version = vibe(&world, &["show", "org.example/lint@^3"]).expect(1);
    insta::assert_snapshot!(version.stderr, @r"
    error: no version of org.example/lint satisfies ^3; the newest is 2.0.0-rc.1
    hint: see the versions that there are: vibe show org.example/lint
    ");
    vibe(&world, &["show", "path:../lint"])
        .expect(2)
        .stderr_has("`group/name@CONSTRAINT`");
}

#[test]
fn the_json_of_a_package_has_all_of_it() {
    let world = world();
    vibe(&world, &["install"]).expect(5);
    let result = vibe(&world, &["show", "--json", "org.example/lint"])
        .expect(0)
        .json()["result"]
        .clone();
    assert_eq!(
        result["versions"],
        serde_json::json!(["2.0.0-rc.1", "1.5.0", "1.0.0"])
    );
    assert_eq!(result["locked"]["installed"], true);
    assert_eq!(result["hooks"][0]["state"], "owed");
    assert_eq!(
        result["hooks"][0]["scripts"][1]["path"],
        "hooks/post-install.sh"
    );
    assert_eq!(result["boot"]["link"], "static");
    assert_eq!(result["requires"][0]["requirement"], "^1");
    assert_eq!(result["required-by"][0]["requirer"], "world");
    assert_eq!(result["description"], "Lints \\x1B[31mprose.");
}

#[cfg(unix)]
#[test]
fn a_package_of_a_repository_is_told_before_and_after_it_is_installed() {
    use crate::git_support::Served;
    let (served, repository) = Served::with_lint(&["1.0.0", "1.1.0"]);
    served.require_lint(", version = \"^1\"");
    let commit = repository.head();
    let told = |arguments: &[&str]| {
        let ran = served.vibe(&[&["show", "--json", "org.example/lint"], arguments].concat());
        ran.expect(0).json()["result"].clone()
    };
    let before = told(&[]);
    assert_eq!(before["version"], "1.1.0");
    assert_eq!(before["commit"], commit);
    assert_eq!(before["ref"], "range:^1");
    assert_eq!(before["versions"], serde_json::json!(["1.1.0", "1.0.0"]));
    assert_eq!(before["locked"], serde_json::Value::Null);
    assert_eq!(served.world.snapshot().entries.len(), 1);
    served.vibe(&["install"]).expect(0);
    let after = told(&[]);
    assert_eq!(after["locked"]["installed"], true);
    let offline = told(&["--offline"]);
    for key in ["version", "commit", "ref", "tree", "source"] {
        assert_eq!(before[key], after[key], "{key}");
        assert_eq!(after[key], offline[key], "{key}");
    }
    assert_eq!(offline["versions"], serde_json::Value::Null);
}

#[cfg(unix)]
#[test]
fn a_clone_is_told_from_its_work_tree() {
    use crate::git_support::{git_vibe, require};
    use vibe_testkit::GitRepository;
    let world = World::new();
    let repository = GitRepository::new(&world.root().join("lint"));
    let in_place = "[package]\nmaterialization = \"in-place\"\n";
    let package = PackageBuilder::new("org.example/lint", "1.0.0")
        .manifest_extra(in_place)
        .hook(Phase::PostInstall, "true\n");
    repository.package(&package);
    repository.commit("first");
    let place = format!("git = \"{}\", branch = \"main\"", repository.file_url());
    require(&world, &[("org.example/lint", &place)]);
    let before = git_vibe(&world, &["show", "org.example/lint"]).expect(0);
    before.stdout_has("  materialization  in-place\n");
    git_vibe(&world, &["install"]).expect(0);
    std::fs::remove_dir_all(repository.path()).unwrap();
    git_vibe(&world, &["show", "org.example/lint"])
        .expect(0)
        .stdout_has("  installed        vibedeps/org.example.lint, in-place\n")
        .stdout_has("  install hooks    post-install  hooks/post-install.sh  sha256:")
        .stdout_has("  done\n");
}
