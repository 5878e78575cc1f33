//! `vibe check`: what is wrong with a package is found before somebody installs it.

use std::path::PathBuf;

#[cfg(unix)]
use crate::support::corpus;
use crate::support::{Run, command_in, read, redacted, run, vibe};
use vibe_core::hook::Phase;
use vibe_testkit::{PackageBuilder, World};

/// A package of which there is nothing to be said, but for what a test adds.
fn sound() -> PackageBuilder {
    PackageBuilder::new("org.example/lint", "1.0.0")
        .manifest_extra("[package]\ndescription = \"d\"\nlicense = \"MIT\"\n")
        .file("README.md", "lint\n")
}

fn place(world: &World) -> PathBuf {
    world.root().join("lint")
}

fn check(world: &World) -> Run {
    vibe(world, &["check", "../lint"])
}

#[test]
fn a_started_package_has_nothing_wrong_with_it_wherever_in_it_one_is() {
    let world = World::new();
    let started = ["init", "--package", "my-tool"];
    run(&mut command_in(&world, world.root(), &started)).expect(0);
    let package = world.root().join("my-tool");
    let before = vibe_testkit::TreeSnapshot::of(&package);
    for directory in [package.clone(), package.join("hooks")] {
        let checked = run(&mut command_in(&world, &directory, &["check"])).expect(0);
        assert_eq!(
            checked.stdout,
            "checked org.example/my-tool 0.1.0, 4 files: nothing is wrong\n"
        );
        assert_eq!(checked.stderr, "");
    }
    before.assert_unchanged(&vibe_testkit::TreeSnapshot::of(&package));
}

#[test]
fn every_finding_has_its_place_and_its_remedy_and_errors_make_it_fail() {
    let world = World::new();
    sound()
        .manifest_extra("[package]\nlisense = \"MIT\"\n")
        .manifest_extra("[requires.packages]\n\"org.example/core\" = { path = \"../core\" }\n")
        .hook(Phase::PreInstall, "echo hi\r\n")
        .file(".env", "TOKEN=1\n")
        .file("CON", "")
        .write(&place(&world));
    PackageBuilder::new("org.example/core", "2.1.0").write(&world.root().join("core"));
    let found = check(&world).expect(1);
    insta::assert_snapshot!(redacted(&world, &found.stdout), @r#"
    warning: vibe.toml:2:1: on Windows without Git Bash there is no pre-install script, so the package cannot be installed there
        hint: add `hooks/pre-install.ps1`, which does the same
    warning: vibe.toml:8:1: unknown key `lisense` in [package]
        hint: did you mean `license`?
    error: vibe.toml:12:20: org.example/core is required by the path `../core`, which nobody else has
        hint: require it by a version: "org.example/core" = "^2.1.0"
    warning: .env: files of this name hold keys, tokens or passwords, and everybody would get it
        hint: leave it out with `.vibeignore`, and replace the secret if it was published
    error: CON: `CON` cannot be a path in a package: `CON` is a device name on Windows
        hint: rename it, or leave it out with `.vibeignore`
    error: hooks/pre-install.sh:1: Windows line ends (CRLF), which bash misreads
        hint: save it with LF line ends, and write `*.sh eol=lf` into `.gitattributes`
    found 3 errors and 3 warnings in org.example/lint 1.0.0, 4 files
    "#);
    assert_eq!(found.stderr, "");
}

#[test]
fn the_document_holds_each_finding() {
    let world = World::new();
    sound()
        .hook(Phase::PreInstall, "set -e\n")
        .write(&place(&world));
    let document = vibe(&world, &["check", "../lint", "--json"])
        .expect(0)
        .json();
    assert_eq!(document["ok"], true);
    let result = &document["result"];
    assert_eq!(result["errors"], 0);
    assert_eq!(result["warnings"], 1);
    assert!(result["tree"].as_str().unwrap().starts_with("tree1:"));
    let finding = &result["findings"][0];
    assert_eq!(finding["rule"], "no-powershell-script");
    assert_eq!(finding["severity"], "warning");
    assert_eq!(finding["path"], "vibe.toml");
    let line = usize::try_from(finding["line"].as_u64().unwrap()).unwrap();
    let manifest = read(place(&world).join("vibe.toml"));
    let named = manifest.lines().nth(line - 1).unwrap();
    assert!(named.starts_with("pre-install"), "{named}");
}

#[test]
fn what_an_install_refuses_is_refused_here_all_of_it_at_once() {
    let world = World::new();
    sound()
        .file("AUX.txt", "")
        .file(".vibe-tmp-x", "")
        .file("a.md", "")
        .file("A.md", "")
        .write(&place(&world));
    let document = vibe(&world, &["check", "../lint", "--json"])
        .expect(1)
        .json();
    let findings = document["result"]["findings"].as_array().unwrap();
    let refused: Vec<&str> = findings
        .iter()
        .filter(|finding| finding["rule"] == "refused")
        .map(|finding| finding["path"].as_str().unwrap())
        .collect();
    assert_eq!(refused, [".vibe-tmp-x", "AUX.txt", "a.md"]);
    assert_eq!(document["result"]["tree"], serde_json::Value::Null);
    vibe(&world, &["install", "path:../lint"]).expect(1);
}

#[test]
fn a_directory_that_is_no_package_is_refused_by_name() {
    let world = World::new();
    let absent = vibe(&world, &["check", "../absent"]).expect(2);
    insta::assert_snapshot!(redacted(&world, &absent.stderr), @r"
    error: there is no directory [world]/project/../absent
      could not find [world]/project/../absent
      No such file or directory (os error 2)
    hint: name one that is there; a relative path begins at the working directory
    ");
    vibe(&world, &["init"]).expect(0);
    let project = vibe(&world, &["check"]).expect(2);
    insta::assert_snapshot!(redacted(&world, &project.stderr), @r"
    error: [world]/project has no `[package]` in its vibe.toml
    hint: name the directory of a package; the vibe.toml of one has `[package]` with `group`, `name` and `version`
    ");
}

#[test]
fn a_malformed_manifest_is_shown_as_by_every_command() {
    let world = World::new();
    sound()
        .manifest_extra("[hooks]\npre-instal = \"hooks/prepare\"\n")
        .write(&place(&world));
    check(&world)
        .expect(2)
        .stderr_has("/lint/vibe.toml is not valid")
        .stderr_has("hint: did you mean `pre-install`?");
}

#[test]
fn a_script_that_does_not_ship_is_told_from_one_that_is_not_there() {
    let world = World::new();
    sound()
        .hook(Phase::PreInstall, "set -e\n")
        .powershell_hook(Phase::PreInstall, "$ErrorActionPreference = 'Stop'\n")
        .file(".gitignore", "*.sh\n")
        .write(&place(&world));
    check(&world)
        .expect(1)
        .stdout_has("the pre-install script `hooks/pre-install.sh` is there, but does not ship")
        .stdout_has("on Linux and macOS there is no pre-install script");
    std::fs::remove_file(place(&world).join("hooks/pre-install.sh")).unwrap();
    std::fs::remove_file(place(&world).join("hooks/pre-install.ps1")).unwrap();
    check(&world)
        .expect(1)
        .stdout_has("has neither `hooks/pre-install.sh` nor `hooks/pre-install.ps1`");
}

#[test]
fn a_variable_of_the_workspace_is_proposed_as_the_constraint_that_it_is() {
    let world = World::new();
    std::fs::write(
        world.root().join("vibe.toml"),
        "[workspace]\nmembers = [\"lint\"]\n[workspace.versions]\ncore = \"^0.3\"\n",
    )
    .unwrap();
    sound()
        .manifest_extra("[requires.packages]\n\"org.example/core\" = { version.var = \"core\" }\n")
        .write(&place(&world));
    check(&world)
        .expect(1)
        .stdout_has("hint: require it by a version: \"org.example/core\" = \"^0.3\"\n");
}

#[cfg(unix)]
#[test]
fn links_pipes_and_repositories_in_the_package_are_found() {
    let world = World::new();
    sound()
        .file("sub/.git/config", "")
        .file("sub/x", "")
        .file("asset.bin", "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n")
        .write(&place(&world));
    std::os::unix::fs::symlink("/etc/passwd", place(&world).join("leaves")).unwrap();
    vibe_testkit::make_pipe(&place(&world).join("pipe"));
    let found = check(&world)
        .expect(1)
        .stdout_has("error: leaves: `leaves` is a link to `/etc/passwd`")
        .stdout_has("error: pipe: `pipe` is a named pipe")
        .stdout_has("warning: sub/.git: a repository in the package");
    assert!(
        found
            .stdout
            .ends_with("\nfound 2 errors and 1 warning in org.example/lint 1.0.0, 4 files\n"),
        "{}",
        found.stdout
    );
    for name in ["leaves", "pipe"] {
        std::fs::remove_file(place(&world).join(name)).unwrap();
    }
    // What files hold is looked at once an install would take them.
    check(&world)
        .expect(0)
        .stdout_has("warning: asset.bin: `asset.bin` is a git LFS pointer");
}

#[cfg(unix)]
#[test]
fn real_packages_have_no_errors() {
    let Some(corpus) = corpus() else { return };
    let world = World::new();
    let mut checked = 0;
    let packages = corpus.join("registry-world/org.vibevm.world");
    for package in std::fs::read_dir(packages).unwrap() {
        for version in std::fs::read_dir(package.unwrap().path()).unwrap() {
            let version = version.unwrap().path();
            if version.join("vibe.toml").is_file() {
                let words = ["check", version.to_str().unwrap()];
                vibe(&world, &words)
                    .expect(0)
                    .stdout_has("nothing is wrong");
                checked += 1;
            }
        }
    }
    assert!(checked > 50, "only {checked} packages were checked");
}
