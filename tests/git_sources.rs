//! Packages from git repositories: what is required, what is locked, and what moves.

use crate::git_support::{
    LINT, Served, forget_fetched, git_cache, git_command_in, locked, release, release_package,
    require, served as served_directory,
};
use crate::support::{COUNT, Run, lint, lint_slot, outside_state, read, run, slot, vibe};
use vibe_core::hook::Phase;
use vibe_testkit::{GitDaemon, GitProgram, GitRepository, PackageBuilder, TreeSnapshot};

/// Asserts that a command ends with `code`, says each of `parts` and changes nothing in the
/// project but machine state.
#[track_caller]
fn refused(served: &Served, arguments: &[&str], code: i32, parts: &[&str]) -> Run {
    let before = outside_state(&served.world);
    let mut run = served.vibe(arguments).expect(code);
    for part in parts {
        run = run.stderr_has(part);
    }
    before.assert_unchanged(&outside_state(&served.world));
    run
}

/// The version of org.example/lint that lies in the slot of that version.
fn placed(served: &Served, version: &str) -> String {
    read(lint_slot(&served.world, version).join("version.md"))
}

#[test]
fn a_package_is_taken_at_the_tag_branch_revision_or_range_that_is_required() {
    let (served, repository) = Served::with_lint(&["1.0.0", "1.1.0", "2.0.0"]);
    let commit = |name: &str| repository.git(&["rev-parse", &format!("{name}^{{commit}}")]);
    repository.branch("next");
    repository.package(&lint("3.0.0").file("version.md", "3.0.0"));
    repository.commit("not released");
    repository.switch("main");
    let short = commit("v1.1.0")[..8].to_owned();
    for (reference, version, name, expected) in [
        (", tag = \"v1.0.0\"", "1.0.0", "v1.0.0", "tag:v1.0.0"),
        (", branch = \"next\"", "3.0.0", "next", "branch:next"),
        (
            &*format!(", rev = \"{short}\""),
            "1.1.0",
            "v1.1.0",
            &*format!("rev:{short}"),
        ),
        (", version = \"^1\"", "1.1.0", "v1.1.0", "range:^1"),
    ] {
        served.require_lint(reference);
        served.vibe(&["install"]).expect(0);
        assert_eq!(placed(&served, version), version, "{reference}");
        assert_eq!(
            locked(&served.world, LINT, "commit"),
            commit(name),
            "{reference}"
        );
        assert_eq!(locked(&served.world, LINT, "ref"), expected);
        served.vibe(&["verify"]).expect(0);
        let (asked, run) = served.connections_of(|| served.vibe(&["install", "--locked"]));
        run.expect(0).stdout_has("nothing to do");
        assert_eq!(asked, 0, "{reference}");
    }
}

#[test]
fn the_lock_says_repository_reference_commit_and_content_and_nothing_of_this_machine() {
    let served = Served::new();
    let repository = served.repository("mono");
    let part = lint("1.2.0").hook(Phase::PostInstall, "true\n");
    part.write(&repository.path().join("packages/lint"));
    let commit = repository.commit("first");
    repository.annotated_tag("lint-1.2");
    let url = served.url("mono");
    let inside = format!("git = \"{url}\", tag = \"lint-1.2\", subdir = \"packages/lint\"");
    require(&served.world, &[(LINT, &inside)]);
    served.vibe(&["install"]).expect(0);
    let lock = served.world.read("vibe.lock");
    let (tree, hook) = ("[tree]", "[hook]");
    let masked: String = lock
        .lines()
        .map(|line| match line.split_once(" = ") {
            Some(("tree", value)) if value.len() == 72 => format!("tree = {tree}\n"),
            Some(("install-hooks", value)) if value.contains("sha256:") => {
                let script = value.split(" = ").next().unwrap();
                format!("install-hooks = {script} = {hook}\n")
            }
            _ => format!("{line}\n"),
        })
        .collect();
    let expected = format!(
        "# Written by vibe. Commit this file; do not edit it.\nversion = 1\n\n[[package]]\n\
         id = \"{LINT}\"\nversion = \"1.2.0\"\nsource = \"git+{url}\"\nref = \"tag:lint-1.2\"\n\
         subdir = \"packages/lint\"\ncommit = \"{commit}\"\ntree = {tree}\n\
         install-hooks = {{ \"hooks/post-install.sh\" = {hook}\n"
    );
    assert_eq!(masked, expected, "{lock}");
    let placed = TreeSnapshot::of(&lint_slot(&served.world, "1.2.0"));
    let paths: Vec<&str> = placed.entries.keys().map(String::as_str).collect();
    let files = [
        ".vibe-slot.toml",
        "hooks",
        "hooks/post-install.sh",
        "lint.md",
        "vibe.toml",
    ];
    assert_eq!(paths, files);
}

#[test]
fn a_directory_that_the_commit_does_not_have_is_named() {
    let (served, _) = Served::with_lint(&["1.0.0"]);
    for (subdir, part) in [
        ("packages/none", "packages/none/vibe.toml"),
        ("lint.md", "lint.md"),
    ] {
        served.require_lint(&format!(", tag = \"v1.0.0\", subdir = \"{subdir}\""));
        refused(
            &served,
            &["install"],
            2,
            &[LINT, &served.url("lint"), part, "hint: "],
        );
    }
    served.require_lint(", tag = \"v1.0.0\", subdir = \"../other\"");
    refused(&served, &["install"], 2, &["vibe.toml", "../other"]);
}

#[test]
fn what_the_repository_does_not_have_is_named() {
    let (served, repository) = Served::with_lint(&["1.0.0"]);
    for (reference, part) in [
        (", tag = \"v9\"", "no tag `v9`"),
        (", branch = \"none\"", "no branch `none`"),
        (", rev = \"main2\"", "no tag, branch or commit `main2`"),
        (", version = \"^9\"", "^9"),
    ] {
        served.require_lint(reference);
        refused(&served, &["install"], 1, &[LINT, part]);
    }
    repository.package(&PackageBuilder::new("org.example/other", "1.0.0"));
    repository.commit("renamed");
    served.require_lint(", branch = \"main\"");
    refused(
        &served,
        &["install"],
        2,
        &[LINT, "org.example/other", "hint: "],
    );
    require(
        &served.world,
        &[(
            LINT,
            &format!("git = \"{}\", tag = \"v1\"", served.url("none")),
        )],
    );
    refused(&served, &["install"], 1, &[LINT, &served.url("none")]);
}

#[test]
fn a_repository_named_on_the_command_line_is_required_as_it_was_named() {
    let (served, repository) = Served::with_lint(&["1.0.0", "1.1.0", "2.0.0-rc.1"]);
    let url = served.url("lint");
    let commit = repository.head();
    let short = &commit[..10];
    let with = |reference: &str| format!("{url}#{reference}");
    let check = |arguments: &[&str], expected: &str| {
        let _ = std::fs::remove_file(served.world.project().join("vibe.lock"));
        served
            .world
            .write("vibe.toml", "[project]\nname = \"world\"\n");
        served.vibe(&[&["install"], arguments].concat()).expect(0);
        let manifest = served.world.read("vibe.toml");
        let line = format!("\"{LINT}\" = {{ git = \"{url}\", {expected} }}\n");
        assert!(
            manifest.contains(&line),
            "{arguments:?}: no {line} in\n{manifest}"
        );
        served
            .vibe(&["install", "--locked"])
            .expect(0)
            .stdout_has("nothing to do");
    };
    check(&[&url], "version = \"^1.1.0\"");
    check(&[&with("v1.0.0")], "tag = \"v1.0.0\"");
    check(&[&with("main")], "branch = \"main\"");
    check(&[&with(short)], &format!("rev = \"{short}\""));
    check(&["--git", &url], "version = \"^1.1.0\"");
    check(&["--git", &url, "--tag", "v1.1.0"], "tag = \"v1.1.0\"");
    check(&["--git", &url, "--branch", "main"], "branch = \"main\"");
    check(
        &["--git", &url, "--rev", &commit],
        &format!("rev = \"{commit}\""),
    );
}

#[test]
fn nothing_is_written_to_a_manifest_that_no_manifest_may_state() {
    let (served, repository) = Served::with_lint(&["1.0.0"]);
    served
        .world
        .write("vibe.toml", "[project]\nname = \"world\"\n");
    let url = served.url("lint");
    for kind in ["heads", "tags"] {
        let name = format!("refs/{kind}/--option");
        repository.git(&["update-ref", &name, "HEAD"]);
    }
    let parts = [
        "vibe.toml cannot require org.example/lint",
        "--option",
        "hint: ",
    ];
    for kind in ["--branch=--option", "--tag=--option", "--rev=--option"] {
        refused(&served, &["install", "--git", &url, kind], 2, &parts);
    }
    repository.git(&["tag", "--delete", "v1.0.0"]);
    repository.git(&["symbolic-ref", "HEAD", "refs/heads/--option"]);
    refused(&served, &["install", &url], 2, &parts);
    let odd = served.world.root().join("o\u{1b}dd");
    lint("1.0.0").write(&odd);
    let mut command = git_command_in(
        &served.world,
        &odd,
        &["--project", "../project", "install", "path:."],
    );
    let before = outside_state(&served.world);
    run(&mut command).expect(2).stderr_has(parts[0]);
    before.assert_unchanged(&outside_state(&served.world));
}

#[test]
fn a_repository_without_version_tags_cannot_be_required_by_version() {
    let (served, repository) = Served::with_lint(&[]);
    repository.package(&lint("1.0.0"));
    repository.commit("first");
    repository.tag("1.0.0");
    served.require_lint(", version = \"^1\"");
    let parts = [
        LINT,
        &served.url("lint"),
        "no tag that is `v` and a version",
        "hint: ",
    ];
    let run = refused(&served, &["install"], 1, &parts);
    assert!(!run.stderr.contains("did you mean"), "{}", run.stderr);
}

#[test]
fn a_repository_without_a_package_changes_no_manifest() {
    let served = Served::new();
    let repository = served.repository("plain");
    repository.write("README.md", "nothing\n", false);
    repository.commit("first");
    served.repository("empty");
    served
        .world
        .write("vibe.toml", "[project]\nname = \"world\"\n");
    let (plain, empty) = (served.url("plain"), served.url("empty"));
    refused(
        &served,
        &["install", &plain],
        2,
        &[&plain, "no package at its root", "subdir"],
    );
    refused(&served, &["install", &empty], 1, &[&empty, "hint: "]);
    let tag = format!("{plain}#none");
    refused(&served, &["install", &tag], 1, &[&plain, "`none`"]);
}

#[test]
fn a_github_repository_is_asked_for_by_its_https_address() {
    let served = Served::new();
    served
        .world
        .write("vibe.toml", "[project]\nname = \"world\"\n");
    let offline = ["--offline", "install", "github:them/kit#v1"];
    refused(
        &served,
        &offline,
        1,
        &["https://github.com/them/kit", "--offline"],
    );
    for spec in ["github:them", "github:them/kit#", "github:../x"] {
        refused(&served, &["--offline", "install", spec], 2, &["github:"]);
    }
}

#[test]
fn a_branch_is_held_until_it_is_updated() {
    let (served, repository) = Served::with_lint(&["1.0.0"]);
    served.require_lint(", branch = \"main\"");
    served.vibe(&["install"]).expect(0);
    let (old, new) = (repository.head(), release(&repository, "1.1.0"));
    served
        .vibe(&["install"])
        .expect(0)
        .stdout_has("nothing to do");
    std::fs::remove_dir_all(served.world.project().join("vibedeps")).unwrap();
    forget_fetched(&served.world);
    for arguments in [
        &["install"][..],
        &["install", "--locked"],
        &["verify", "--repair"],
    ] {
        served.vibe(arguments).expect(0);
        assert_eq!(locked(&served.world, LINT, "commit"), old);
        assert_eq!(placed(&served, "1.0.0"), "1.0.0");
    }
    let dry = refused(&served, &["update", "--dry-run"], 0, &["1.0.0 -> 1.1.0"]);
    assert!(!dry.stderr.contains("descendant"), "{}", dry.stderr);
    let run = served
        .vibe(&["update"])
        .expect(0)
        .stderr_has("1.0.0 -> 1.1.0");
    assert!(!run.stderr.contains("descendant"), "{}", run.stderr);
    assert_eq!(locked(&served.world, LINT, "commit"), new);
    assert_eq!(placed(&served, "1.1.0"), "1.1.0");
    assert!(!lint_slot(&served.world, "1.0.0").exists());
    served
        .vibe(&["install", "--locked"])
        .expect(0)
        .stdout_has("nothing to do");
}

#[test]
fn a_rewritten_branch_is_taken_by_an_update_which_says_so() {
    let (served, repository) = Served::with_lint(&["1.0.0"]);
    let first = repository.head();
    let second = release(&repository, "1.0.1");
    served.require_lint(", branch = \"main\"");
    served.vibe(&["install"]).expect(0);
    repository.git(&["reset", "--quiet", "--hard", &first]);
    repository.package(&lint("1.0.1").file("version.md", "rewritten"));
    let third = repository.commit("instead");
    served
        .vibe(&["install"])
        .expect(0)
        .stdout_has("nothing to do");
    let parts = [
        "branch:main",
        "not a descendant",
        &second[..12],
        &third[..12],
    ];
    refused(&served, &["update", "--dry-run"], 0, &parts);
    let mut run = served.vibe(&["update"]).expect(0);
    for part in parts {
        run = run.stderr_has(part);
    }
    assert_eq!(locked(&served.world, LINT, "commit"), third);
    assert_eq!(placed(&served, "1.0.1"), "rewritten");
    served.vibe(&["verify"]).expect(0);
    // Back to the old one, in JSON.
    repository.git(&["reset", "--quiet", "--hard", &second]);
    let json = served.vibe(&["update", "--json"]).expect(0).json();
    let moved = &json["result"]["moves"][0];
    assert_eq!(moved["not-descendant"], true, "{json}");
    assert_eq!(
        (&moved["from"]["commit"], &moved["to"]["commit"]),
        (&third.into(), &second.into())
    );
}

#[test]
fn a_moved_tag_is_held_by_installs_and_told_by_an_update() {
    for reference in [", tag = \"v1.0.0\"", ", version = \"^1\""] {
        let (served, repository) = Served::with_lint(&["1.0.0"]);
        served.require_lint(reference);
        served.vibe(&["install"]).expect(0);
        let old = repository.head();
        repository.package(&lint("1.0.0").file("version.md", "moved"));
        let new = repository.commit("again");
        repository.tag("v1.0.0");
        for arguments in [&["install"][..], &["install", "--locked"], &["reinstall"]] {
            std::fs::remove_dir_all(served.world.project().join("vibedeps")).unwrap();
            forget_fetched(&served.world);
            served.vibe(arguments).expect(0);
            assert_eq!(locked(&served.world, LINT, "commit"), old);
            assert_eq!(placed(&served, "1.0.0"), "1.0.0");
        }
        let parts = ["1.0.0 moves", &old[..12], &new[..12]];
        refused(&served, &["update", "--dry-run"], 0, &parts);
        let mut run = served.vibe(&["update"]).expect(0);
        for part in parts {
            run = run.stderr_has(part);
        }
        assert_eq!(locked(&served.world, LINT, "commit"), new, "{reference}");
        assert_eq!(placed(&served, "1.0.0"), "moved");
    }
}

#[test]
fn another_reference_in_the_manifest_moves_reference_and_commit_alone() {
    let (served, repository) = Served::with_lint(&["1.0.0", "1.1.0"]);
    let held = served.repository("held");
    release_package(
        &held,
        &PackageBuilder::new("org.example/held", "1.0.0"),
        "1.0.0",
    );
    let inside = |reference: &str| format!("git = \"{}\", {reference}", served.url("lint"));
    let other = format!("git = \"{}\", branch = \"main\"", served.url("held"));
    let wants = |reference: &str| {
        require(
            &served.world,
            &[("org.example/held", &other), (LINT, &inside(reference))],
        );
    };
    wants("tag = \"v1.0.0\"");
    served.vibe(&["install"]).expect(0);
    let before = locked(&served.world, "org.example/held", "commit");
    release_package(
        &held,
        &PackageBuilder::new("org.example/held", "1.1.0"),
        "1.1.0",
    );
    for (reference, expected, version) in [
        ("tag = \"v1.1.0\"", "tag:v1.1.0", "1.1.0"),
        ("version = \"=1.0.0\"", "range:=1.0.0", "1.0.0"),
        ("branch = \"main\"", "branch:main", "1.1.0"),
    ] {
        wants(reference);
        let parts = [LINT, expected, "hint: "];
        refused(&served, &["install", "--locked"], 7, &parts);
        served.vibe(&["install"]).expect(0);
        assert_eq!(locked(&served.world, LINT, "ref"), expected);
        let tag = format!("v{version}");
        assert_eq!(
            locked(&served.world, LINT, "commit"),
            repository.git(&["rev-parse", &tag])
        );
        assert_eq!(placed(&served, version), version);
        assert_eq!(locked(&served.world, "org.example/held", "commit"), before);
    }
}

#[test]
fn an_entry_of_another_repository_is_refused_before_anything_is_asked_of_it() {
    let (served, _) = Served::with_lint(&["1.0.0"]);
    let evil = served.repository("evil");
    release(&evil, "1.0.0");
    served.require_lint(", tag = \"v1.0.0\"");
    served.vibe(&["install"]).expect(0);
    let lock = served.world.read("vibe.lock");
    let swapped = lock.replace(&served.url("lint"), &served.url("evil"));
    assert_ne!(swapped, lock);
    served.world.write("vibe.lock", &swapped);
    std::fs::remove_dir_all(served.world.project().join("vibedeps")).unwrap();
    forget_fetched(&served.world);
    let (lint, evil) = (served.url("lint"), served.url("evil"));
    for arguments in [&["install", "--locked"][..], &["verify", "--repair"]] {
        let (asked, _) = served.connections_of(|| {
            refused(&served, arguments, 3, &[LINT, &lint, &evil, "hint: "]);
        });
        assert_eq!(asked, 0, "{arguments:?}");
    }
    // A plain install goes back to what the manifest names.
    served.vibe(&["install"]).expect(0);
    assert_eq!(served.world.read("vibe.lock"), lock);
    assert!(
        !vibe_testkit::TreeSnapshot::of(&served.world.home().join("vibe/git"))
            .entries
            .keys()
            .any(|path| path.starts_with("evil"))
    );
}

#[test]
fn an_entry_without_commit_or_tree_or_with_another_tree_is_refused() {
    let (served, _) = Served::with_lint(&["1.0.0"]);
    served.require_lint(", tag = \"v1.0.0\"");
    served.vibe(&["install"]).expect(0);
    let lock = served.world.read("vibe.lock");
    let without = |key: &str| -> String {
        let start = format!("{key} = ");
        let kept = lock.lines().filter(|line| !line.starts_with(&start));
        kept.map(|line| format!("{line}\n")).collect()
    };
    for key in ["commit", "tree"] {
        served.world.write("vibe.lock", &without(key));
        refused(&served, &["install", "--locked"], 7, &[LINT, key, "hint: "]);
        let run = served.vibe(&["install"]).expect(0);
        run.stdout_has("wrote vibe.lock");
        assert_eq!(served.world.read("vibe.lock"), lock, "{key} is filled in");
    }
    let tree = locked_tree(&lock);
    let other = tree.replace(|c: char| c.is_ascii_hexdigit() && c != 'e' && c != '1', "0");
    assert_ne!(tree, other);
    served
        .world
        .write("vibe.lock", &lock.replace(&tree, &other));
    std::fs::remove_dir_all(served.world.project().join("vibedeps")).unwrap();
    forget_fetched(&served.world);
    for arguments in [
        &["install"][..],
        &["install", "--locked"],
        &["verify", "--repair"],
    ] {
        refused(&served, arguments, 3, &[LINT, &tree, &other, "hint: "]);
    }
}

fn locked_tree(lock: &str) -> String {
    let at = lock.find("tree1:").unwrap();
    lock[at..at + 70].to_owned()
}

#[test]
fn a_commit_that_vanished_is_named_with_the_way_out() {
    let (served, repository) = Served::with_lint(&["1.0.0"]);
    let first = repository.head();
    let gone = release(&repository, "1.0.1");
    served.require_lint(", branch = \"main\"");
    served.vibe(&["install"]).expect(0);
    repository.git(&["reset", "--quiet", "--hard", &first]);
    repository.git(&["tag", "--delete", "v1.0.1"]);
    repository.git(&["reflog", "expire", "--expire=now", "--all"]);
    repository.git(&["gc", "--quiet", "--prune=now"]);
    std::fs::remove_dir_all(served.world.project().join("vibedeps")).unwrap();
    // What is in the cache goes on working.
    served.vibe(&["install", "--locked"]).expect(0);
    std::fs::remove_dir_all(served.world.project().join("vibedeps")).unwrap();
    forget_fetched(&served.world);
    let hint = format!("vibe update {LINT}");
    for arguments in [
        &["install"][..],
        &["install", "--locked"],
        &["verify", "--repair"],
    ] {
        refused(
            &served,
            arguments,
            1,
            &[LINT, &gone, &served.url("lint"), &hint],
        );
    }
    let run = served.vibe(&["update", LINT]).expect(0);
    run.stderr_has("not a descendant");
    assert_eq!(locked(&served.world, LINT, "commit"), first);
    assert_eq!(placed(&served, "1.0.0"), "1.0.0");
}

#[test]
fn an_update_can_be_told_the_version() {
    let (served, repository) = Served::with_lint(&["1.0.0", "1.1.0", "1.2.0", "2.0.0"]);
    served.require_lint(", version = \"^1\"");
    served.vibe(&["install"]).expect(0);
    assert_eq!(placed(&served, "1.2.0"), "1.2.0");
    served
        .vibe(&["update", LINT, "--precise", "1.1.0"])
        .expect(0)
        .stderr_has("1.2.0 -> 1.1.0");
    assert_eq!(placed(&served, "1.1.0"), "1.1.0");
    assert_eq!(
        locked(&served.world, LINT, "commit"),
        repository.git(&["rev-parse", "v1.1.0"])
    );
    served
        .vibe(&["install"])
        .expect(0)
        .stdout_has("nothing to do");
    refused(
        &served,
        &["update", LINT, "--precise", "2.0.0"],
        2,
        &[LINT, "^1", "2.0.0", "hint: "],
    );
    refused(
        &served,
        &["update", LINT, "--precise", "1.3.0"],
        1,
        &[LINT, "1.3.0"],
    );
}

#[test]
fn a_version_cannot_be_chosen_where_the_requirement_leaves_no_choice() {
    let (served, _repository) = Served::with_lint(&["1.0.0", "1.1.0"]);
    for reference in ["tag = \"v1.1.0\"", "branch = \"main\"", "rev = \"main\""] {
        served.require_lint(&format!(", {reference}"));
        served.vibe(&["install"]).expect(0);
        let source = format!(
            "takes {LINT} from git {} at {}",
            served.url("lint"),
            &reference[..3]
        );
        let arguments = ["update", LINT, "--precise", "1.0.0"];
        refused(
            &served,
            &arguments,
            2,
            &[&source, "which is not 1.0.0", "hint: "],
        );
        served
            .vibe(&["update", LINT, "--precise", "1.1.0"])
            .expect(0);
    }
    let outside = served.world.root().join("local");
    lint("1.1.0").write(&outside);
    require(&served.world, &[(LINT, "path = \"../local\"")]);
    served.vibe(&["install"]).expect(0);
    let arguments = ["update", LINT, "--precise", "1.0.0"];
    refused(
        &served,
        &arguments,
        2,
        &["from path ../local", "which is not 1.0.0"],
    );
}

#[test]
fn versions_of_a_range_may_lie_on_different_branches() {
    let (served, repository) = Served::with_lint(&["1.0.0"]);
    repository.branch("maintenance");
    release(&repository, "1.0.1");
    repository.switch("main");
    release(&repository, "1.1.0");
    served.require_lint(", version = \"^1\"");
    served.vibe(&["install"]).expect(0);
    for version in ["1.0.1", "1.0.0", "1.1.0"] {
        let run = served.vibe(&["update", LINT, "--precise", version]);
        let run = run.expect(0).stderr_has(&format!("-> {version}"));
        assert!(!run.stderr.contains("was rewritten"), "{}", run.stderr);
    }
    repository.branch("elsewhere");
    repository.git(&["commit", "--amend", "--message", "said better"]);
    repository.git(&["tag", "--force", "v1.1.0"]);
    let run = served.vibe(&["update"]).expect(0);
    run.stderr_has("was rewritten");
}

#[test]
fn an_update_to_build_metadata_that_it_cannot_choose_says_so() {
    let (served, _repository) = Served::with_lint(&["1.0.0+a", "1.0.0+b"]);
    served.require_lint(", version = \"^1\"");
    served.vibe(&["install"]).expect(0);
    assert_eq!(locked(&served.world, LINT, "version"), "1.0.0+b");
    for version in ["1.0.0", "1.0.0+b"] {
        served
            .vibe(&["update", LINT, "--precise", version])
            .expect(0)
            .stdout_has("nothing to do");
    }
    let arguments = ["update", LINT, "--precise", "1.0.0+a"];
    refused(&served, &arguments, 1, &["1.0.0+a", "1.0.0+b", "hint: "]);
}

#[test]
fn a_dry_run_writes_nothing_in_the_project() {
    let (served, repository) = Served::with_lint(&["1.0.0"]);
    served.require_lint(", branch = \"main\"");
    let before = served.world.snapshot();
    served
        .vibe(&["install", "--dry-run"])
        .expect(0)
        .stdout_has("lint");
    before.assert_unchanged(&served.world.snapshot());
    let url = served.url("lint");
    served.vibe(&["install", &url, "--dry-run"]).expect(0);
    before.assert_unchanged(&served.world.snapshot());
    served.vibe(&["install"]).expect(0);
    release(&repository, "1.1.0");
    let before = served.world.snapshot();
    for arguments in [
        &["update", "--dry-run"][..],
        &["update", "--dry-run", "--json"],
    ] {
        served.vibe(arguments).expect(0).stdout_has("1.1.0");
        before.assert_unchanged(&served.world.snapshot());
    }
}

/// Where `part` begins in `text`.
#[track_caller]
fn position(text: &str, part: &str) -> usize {
    text.find(part)
        .unwrap_or_else(|| panic!("no {part:?} in\n{text}"))
}

#[test]
fn an_update_shows_new_and_changed_install_hooks_before_anything_is_placed() {
    let (served, repository) = Served::with_lint(&["1.0.0"]);
    let hooked = |version: &str, script: &str| {
        lint(version)
            .file("version.md", version)
            .hook(Phase::PreInstall, script)
    };
    served.require_lint(", branch = \"main\"");
    served.vibe(&["install"]).expect(0);
    let counted = format!("echo saying\n{COUNT}");
    repository.package(&hooked("1.1.0", &counted));
    repository.commit("with a hook");
    let check = |new: &str, what: &str, version: &str| {
        let told = format!("{LINT} has {what} hooks/pre-install.sh ({new})");
        let dry = refused(&served, &["update", "--dry-run"], 0, &[&told]);
        assert!(!dry.stderr.contains("saying"), "{}", dry.stderr);
        let run = served.vibe(&["-v", "update"]).expect(0);
        let shown = position(&run.stderr, &told);
        assert!(
            shown < position(&run.stderr, &format!("placing {LINT}")),
            "{}",
            run.stderr
        );
        assert!(shown < position(&run.stderr, "saying"), "{}", run.stderr);
        assert_eq!(placed(&served, version), version);
    };
    check("2 lines", "a new install hook", "1.1.0");
    repository.package(&hooked("1.2.0", "echo saying more\n"));
    repository.commit("with another hook");
    check("1 line", "a changed install hook", "1.2.0");
    assert_eq!(read(served.world.project().join("runs")), "run\n");
    repository.git(&["rm", "--quiet", "-r", "hooks"]);
    repository.package(&lint("1.3.0"));
    repository.commit("without");
    served
        .vibe(&["update"])
        .expect(0)
        .stderr_has("no longer the install hook hooks/pre-install.sh");
}

#[test]
fn what_a_package_requires_from_git_is_installed_with_it() {
    let served = Served::new();
    let core = served.repository("core");
    let core_package =
        |version: &str| PackageBuilder::new("org.example/core", version).file("core.md", version);
    let first = release_package(&core, &core_package("1.0.0"), "1.0.0");
    let requires = |reference: &str| {
        let url = served.url("core");
        format!("[requires.packages]\n\"org.example/core\" = {{ git = \"{url}\", {reference} }}\n")
    };
    let repository = served.repository("lint");
    let package =
        |version: &str, reference: &str| lint(version).manifest_extra(&requires(reference));
    release_package(&repository, &package("1.0.0", "branch = \"main\""), "1.0.0");
    served.require_lint(", branch = \"main\"");
    served.vibe(&["install"]).expect(0);
    assert_eq!(
        locked(&served.world, "org.example/core", "ref"),
        "branch:main"
    );
    assert_eq!(locked(&served.world, "org.example/core", "commit"), first);
    let lock = served.world.read("vibe.lock");
    assert!(
        lock.contains("dependencies = [\"org.example/core\"]"),
        "{lock}"
    );
    assert_eq!(
        read(slot(&served.world, "org.example/core", "1.0.0").join("core.md")),
        "1.0.0"
    );
    // A fresh clone with the lock needs no solving and takes just that.
    std::fs::remove_dir_all(served.world.project().join("vibedeps")).unwrap();
    forget_fetched(&served.world);
    let second = release_package(&core, &core_package("1.1.0"), "1.1.0");
    served.vibe(&["install", "--locked"]).expect(0);
    assert_eq!(served.world.read("vibe.lock"), lock);
    served.vibe(&["verify"]).expect(0);
    // An update of the one takes what it needs along.
    served
        .vibe(&["update", LINT])
        .expect(0)
        .stderr_has("org.example/core 1.0.0 -> 1.1.0");
    assert_eq!(locked(&served.world, "org.example/core", "commit"), second);
    // A project that wants it from elsewhere is told both.
    let url = served.url("core");
    let of = |name: &str, reference: &str| format!("git = \"{}\", {reference}", served.url(name));
    require(
        &served.world,
        &[
            (LINT, &of("lint", "branch = \"main\"")),
            ("org.example/core", &of("core", "tag = \"v1.0.0\"")),
        ],
    );
    refused(
        &served,
        &["install"],
        2,
        &[
            "org.example/core",
            "two sources",
            &url,
            "tag:v1.0.0",
            "branch:main",
        ],
    );
}

#[test]
fn a_fetched_package_may_not_name_repositories_of_this_machine() {
    let served = Served::new();
    let core = served.repository("core");
    release_package(
        &core,
        &PackageBuilder::new("org.example/core", "1.0.0"),
        "1.0.0",
    );
    let repository = served.repository("lint");
    for (url, version) in [(core.file_url(), "1.0.0"), ("../core".to_owned(), "1.0.1")] {
        let extra = format!(
            "[requires.packages]\n\"org.example/core\" = {{ git = \"{url}\", branch = \"main\" }}\n"
        );
        release_package(&repository, &lint(version).manifest_extra(&extra), version);
        served.require_lint(&format!(", tag = \"v{version}\""));
        refused(
            &served,
            &["install"],
            2,
            &[LINT, "org.example/core", &url, "hint: "],
        );
    }
}

#[test]
fn a_package_of_this_machine_may_name_a_repository_of_this_machine_in_full() {
    let served = Served::new();
    let core = served.repository("core");
    release_package(
        &core,
        &PackageBuilder::new("org.example/core", "1.0.0"),
        "1.0.0",
    );
    let repository = served.repository("lint");
    let path = core.path().display().to_string();
    for (url, version, code) in [
        (path, "1.0.0", 0),
        (core.file_url(), "1.0.1", 0),
        ("../core".to_owned(), "1.0.2", 2),
    ] {
        let extra = format!(
            "[requires.packages]\n\"org.example/core\" = {{ git = \"{url}\", branch = \"main\" }}\n"
        );
        release_package(&repository, &lint(version).manifest_extra(&extra), version);
        let inside = format!("git = \"../served/lint\", tag = \"v{version}\"");
        require(&served.world, &[(LINT, &inside)]);
        served.vibe(&["install"]).expect(code);
        served.vibe(&["list"]).stdout_has("org.example/core  1.0.0");
    }
}

#[test]
fn a_repository_of_this_machine_is_read_where_it_is() {
    let served = Served::new();
    release(&served.repository("lint"), "1.0.0");
    let repository = served_directory(&served.world).join("lint");
    for url in [
        "../served/lint".to_owned(),
        format!("file://{}", repository.display()),
    ] {
        let _ = std::fs::remove_file(served.world.project().join("vibe.lock"));
        require(
            &served.world,
            &[(LINT, &format!("git = \"{url}\", tag = \"v1.0.0\""))],
        );
        let before = TreeSnapshot::of(&repository);
        vibe(&served.world, &["install"]).expect(0);
        before.assert_unchanged(&TreeSnapshot::of(&repository));
        assert_eq!(placed(&served, "1.0.0"), "1.0.0");
        assert_eq!(locked(&served.world, LINT, "source"), format!("git+{url}"));
        vibe(&served.world, &["--offline", "verify"]).expect(0);
    }
    assert_eq!(served.daemon.connections(), 0);
}

/// The repository `name` with one package, its server, and what a manifest says of it.
struct Apart {
    daemon: GitDaemon,
    repository: GitRepository,
}

impl Apart {
    fn new(served: &Served, name: &str) -> Self {
        let root = served.world.root().join(format!("{name}-root"));
        let repository = GitRepository::new(&root.join(name));
        let apart = Self {
            daemon: GitDaemon::start(&root),
            repository,
        };
        apart.release(name, "1.0.0");
        apart
    }

    fn release(&self, name: &str, version: &str) {
        let package = PackageBuilder::new(&format!("org.example/{name}"), version);
        release_package(&self.repository, &package, version);
    }

    fn inside(&self, name: &str, reference: &str) -> String {
        format!("git = \"{}\", {reference}", self.daemon.url(name))
    }
}

#[test]
fn only_the_servers_of_packages_that_may_move_are_asked() {
    let served = Served::new();
    let [a, b, c] = ["a", "b", "c"].map(|name| Apart::new(&served, name));
    let branch = "branch = \"main\"";
    let first = a.inside("a", branch);
    let second = b.inside("b", "version = \"^1\"");
    require(
        &served.world,
        &[("org.example/a", &first), ("org.example/b", &second)],
    );
    served.vibe(&["install"]).expect(0);
    a.release("a", "1.1.0");
    b.release("b", "1.1.0");
    let asked = || [&a, &b, &c].map(|apart| apart.daemon.connections());
    let before = asked();
    served.vibe(&["update", "org.example/a"]).expect(0);
    assert_eq!(asked()[1..], before[1..]);
    assert!(asked()[0] > before[0]);
    let before = asked();
    let url = c.daemon.url("c");
    served.vibe(&["install", &url]).expect(0);
    assert_eq!(asked()[..2], before[..2]);
    assert_eq!(
        locked(&served.world, "org.example/b", "commit"),
        b.repository.git(&["rev-parse", "v1.0.0"])
    );
    std::fs::remove_dir_all(served.world.project().join("vibedeps")).unwrap();
    let before = asked();
    served.vibe(&["install"]).expect(0);
    assert_eq!(asked(), before);
}

#[test]
fn a_repository_of_many_packages_is_fetched_once() {
    let served = Served::new();
    let repository = served.repository("mono");
    let names: Vec<String> = (0..12).map(|number| format!("p{number}")).collect();
    for name in &names {
        let package = PackageBuilder::new(&format!("org.example/{name}"), "1.0.0");
        package.write(&repository.path().join("packages").join(name));
    }
    repository.commit("all");
    let url = served.url("mono");
    let requires = names.iter().map(|name| {
        let inside = format!("git = \"{url}\", branch = \"main\", subdir = \"packages/{name}\"");
        (format!("org.example/{name}"), inside)
    });
    let requires: Vec<(String, String)> = requires.collect();
    let requires: Vec<(&str, &str)> = requires
        .iter()
        .map(|(id, inside)| (&**id, &**inside))
        .collect();
    require(&served.world, &requires);
    let (asked, run) = served.connections_of(|| served.vibe(&["install"]));
    run.expect(0);
    assert_eq!(asked, 1);
    forget_fetched(&served.world);
    std::fs::remove_dir_all(served.world.project().join("vibedeps")).unwrap();
    let (asked, run) = served.connections_of(|| served.vibe(&["install", "--locked"]));
    run.expect(0);
    assert_eq!(asked, 1);
}

#[test]
fn an_entry_of_another_repository_for_what_a_package_requires_is_refused() {
    let served = Served::new();
    let [core, evil] = ["core", "evil"].map(|name| Apart::new(&served, name));
    evil.release("core", "1.0.0");
    let (good, bad) = (core.daemon.url("core"), evil.daemon.url("evil"));
    let extra = format!(
        "[requires.packages]\n\"org.example/core\" = {{ git = \"{good}\", tag = \"v1.0.0\" }}\n"
    );
    release_package(
        &served.repository("lint"),
        &lint("1.0.0").manifest_extra(&extra),
        "1.0.0",
    );
    served.require_lint(", tag = \"v1.0.0\"");
    served.vibe(&["install"]).expect(0);
    let lock = served.world.read("vibe.lock");
    served.world.write("vibe.lock", &lock.replace(&good, &bad));
    std::fs::remove_dir_all(served.world.project().join("vibedeps")).unwrap();
    forget_fetched(&served.world);
    for arguments in [&["install", "--locked"][..], &["verify", "--repair"]] {
        refused(&served, arguments, 3, &["org.example/core", &bad, "hint: "]);
    }
    served.vibe(&["install"]).expect(0);
    assert_eq!(served.world.read("vibe.lock"), lock);
    assert_eq!(evil.daemon.connections(), 0);
}

#[test]
fn what_an_installed_package_requires_from_git_is_known_without_its_server() {
    let served = Served::new();
    let core = Apart::new(&served, "core");
    core.release("core", "1.0.0");
    let extra = format!(
        "[requires.packages]\n\"org.example/core\" = {{ git = \"{}\", tag = \"v1.0.0\" }}\n",
        core.daemon.url("core")
    );
    release_package(
        &served.repository("lint"),
        &lint("1.0.0").manifest_extra(&extra),
        "1.0.0",
    );
    served.require_lint(", tag = \"v1.0.0\"");
    served.vibe(&["install"]).expect(0);
    let asked = || served.daemon.connections() + core.daemon.connections();
    let before = asked();
    // The slots say it.
    let store = crate::support::store(&served.world);
    std::fs::remove_dir_all(git_cache(&served.world)).unwrap();
    let aside = store.with_extension("aside");
    std::fs::rename(&store, &aside).unwrap();
    served.vibe(&["verify"]).expect(0);
    // The store says it.
    std::fs::rename(&aside, &store).unwrap();
    std::fs::remove_dir_all(served.world.project().join("vibedeps")).unwrap();
    served.vibe(&["install", "--locked", "--offline"]).expect(0);
    served.vibe(&["verify", "--offline"]).expect(0);
    assert_eq!(asked(), before);
}

#[test]
fn a_repository_of_another_object_format_is_refused_by_name() {
    let served = Served::new();
    let path = served_directory(&served.world).join("lint");
    std::fs::create_dir_all(&path).unwrap();
    let git = GitProgram::new();
    git.run(
        &path,
        &[
            "init",
            "--quiet",
            "--object-format=sha256",
            "--initial-branch=main",
        ],
    );
    lint("1.0.0").write(&path);
    git.run(&path, &["add", "."]);
    git.run(&path, &["commit", "--quiet", "--message", "first"]);
    for url in [served.url("lint"), format!("file://{}", path.display())] {
        require(
            &served.world,
            &[(LINT, &format!("git = \"{url}\", branch = \"main\""))],
        );
        refused(&served, &["install"], 1, &[LINT, &url]);
    }
}

#[test]
fn a_commit_that_moves_with_the_same_files_runs_no_hook_and_writes_no_file() {
    let (served, repository) = Served::with_lint(&[]);
    let package = lint("1.0.0")
        .hook(Phase::PreInstall, COUNT)
        .hook(Phase::PostInstall, COUNT);
    release_package(&repository, &package, "1.0.0");
    served.require_lint(", branch = \"main\"");
    served.vibe(&["install"]).expect(0);
    let runs = || read(served.world.project().join("runs"));
    assert_eq!(runs(), "run\nrun\n");
    let slot = || TreeSnapshot::of(&lint_slot(&served.world, "1.0.0"));
    let before = slot();
    let same = repository.commit("only a message");
    served.vibe(&["update"]).expect(0);
    assert_eq!(locked(&served.world, LINT, "commit"), same);
    before.assert_unchanged(&slot());
    // Another source with the same files, likewise: another repository, and a registry.
    let other = served.repository("other");
    release_package(&other, &package, "1.0.0");
    let url = served.url("other");
    require(
        &served.world,
        &[(LINT, &format!("git = \"{url}\", tag = \"v1.0.0\""))],
    );
    served.vibe(&["install"]).expect(0);
    assert_eq!(locked(&served.world, LINT, "source"), format!("git+{url}"));
    package.publish(&served.world.registry());
    served.world.require(&[(LINT, "^1")]);
    served.vibe(&["install"]).expect(0);
    assert_eq!(locked(&served.world, LINT, "source"), "dir+../registry");
    assert!(!served.world.read("vibe.lock").contains("commit"));
    before.assert_unchanged(&slot());
    assert_eq!(runs(), "run\nrun\n");
    served.vibe(&["verify"]).expect(0);
    // Without its requirement it goes.
    served.world.require(&[]);
    served.vibe(&["install"]).expect(0);
    assert!(!lint_slot(&served.world, "1.0.0").exists());
}
