//! Workspaces: one root, one lock and one set of slots for all members.

use std::path::PathBuf;
use std::process::Command;

use crate::support::{
    Run, command_in, committed, is_superuser, lint, lint_slot, outside_state, read, redacted, run,
    slot, start, vibe, wait,
};
use vibe_testkit::{PackageBuilder, World};

const LINT: &str = "org.example/lint";
const CORE: &str = "org.example/core";

/// A workspace `packages/*` with the members `app`, a project that requires lint ^1, and `tool`, a
/// package that requires core. The registry has lint 1.0.0 and 1.1.0 and core 1.0.0.
fn workspace() -> World {
    let world = World::new();
    for version in ["1.0.0", "1.1.0"] {
        lint(version).publish(&world.registry());
    }
    core("1.0.0").publish(&world.registry());
    root(&world, "members = [\"packages/*\"]\n");
    app(&world, &format!("\"{LINT}\" = \"^1\"\n"));
    member(
        &world,
        "packages/tool",
        &format!("{TOOL}\n[requires.packages]\n\"{CORE}\" = \"*\"\n"),
    );
    world
}

const TOOL: &str = "[package]\ngroup = \"org.example\"\nname = \"tool\"\nversion = \"0.1.0\"\n";

fn core(version: &str) -> PackageBuilder {
    PackageBuilder::new(CORE, version).file("core.md", version)
}

/// Writes the root's manifest: `[workspace]` with `keys`, and this world's registry.
fn root(world: &World, keys: &str) {
    let registry = "[[registry]]\nname = \"local\"\nurl = \"../registry\"\n";
    world.write("vibe.toml", &format!("[workspace]\n{keys}\n{registry}"));
}

/// Writes the manifest of the member `app`, with these requirements.
fn app(world: &World, requires: &str) {
    let text = format!("[project]\nname = \"app\"\n\n[requires.packages]\n{requires}");
    member(world, "packages/app", &text);
}

fn member(world: &World, directory: &str, text: &str) {
    world.write(&format!("{directory}/vibe.toml"), text);
}

fn place(world: &World, directory: &str) -> PathBuf {
    world.project().join(directory)
}

fn command(world: &World, directory: &str, arguments: &[&str]) -> Command {
    command_in(world, &place(world, directory), arguments)
}

/// Runs the binary in a directory of the workspace.
fn vibe_in(world: &World, directory: &str, arguments: &[&str]) -> Run {
    run(&mut command(world, directory, arguments))
}

/// Asserts that nothing of the project's lies in a member.
#[track_caller]
fn only_at_root(world: &World) {
    for member in ["packages/app", "packages/tool"] {
        for name in ["vibe.lock", "vibedeps"] {
            let path = place(world, member).join(name);
            assert!(!path.exists(), "{}", path.display());
        }
    }
}

#[test]
fn an_install_in_a_member_is_one_of_the_whole_workspace() {
    let world = workspace();
    let installed = vibe_in(&world, "packages/app", &["install"]).expect(0);
    insta::assert_snapshot!(redacted(&world, &installed.stdout), @r"
    + org.example/core  1.0.0  copy  2 files
    + org.example/lint  1.1.0  copy  2 files
    installed 2 packages, 4 files in [time]
    ");
    assert_eq!(installed.stderr, "");
    assert!(lint_slot(&world, "1.1.0").is_dir() && slot(&world, CORE, "1.0.0").is_dir());
    only_at_root(&world);
    let lock = world.read("vibe.lock");
    assert!(lock.contains("source = \"dir+../registry\""), "{lock}");
    assert!(!lock.contains("org.example/tool"), "{lock}");

    let other = workspace();
    vibe(&other, &["install"]).expect(0);
    committed(&world).assert_unchanged(&committed(&other));
    let project = place(&world, "packages/tool");
    let project = project.to_str().unwrap();
    let elsewhere = command_in(&world, &world.home(), &["--project", project, "install"])
        .output()
        .unwrap();
    assert!(String::from_utf8_lossy(&elsewhere.stdout).contains("nothing to do"));
}

#[test]
fn every_command_works_from_a_member_and_from_below_it() {
    let world = workspace();
    vibe(&world, &["install"]).expect(0);
    std::fs::create_dir_all(place(&world, "packages/app/src/deep")).unwrap();
    let below = "packages/app/src/deep";
    let before = world.snapshot();
    for arguments in [
        &["install"][..],
        &["install", "--locked"],
        &["update", "--dry-run"],
    ] {
        vibe_in(&world, below, arguments)
            .expect(0)
            .stdout_has("nothing to do");
    }
    for arguments in [&["list"][..], &["hooks", "list"], &["runs", "list"]] {
        let (here, there) = (vibe(&world, arguments), vibe_in(&world, below, arguments));
        assert_eq!(
            here.expect(0).stdout,
            there.expect(0).stdout,
            "{arguments:?}"
        );
    }
    vibe_in(&world, below, &["verify"])
        .expect(0)
        .stdout_has("verified 2 packages");
    before.assert_unchanged(&world.snapshot());
    std::fs::remove_file(lint_slot(&world, "1.1.0").join("lint.md")).unwrap();
    vibe_in(&world, below, &["verify"]).expect(3);
    vibe_in(&world, below, &["reinstall", LINT]).expect(0);
    vibe_in(&world, below, &["verify"]).expect(0);
    only_at_root(&world);
}

#[test]
fn what_members_require_gets_one_version_that_suits_them_all() {
    let world = workspace();
    member(
        &world,
        "packages/tool",
        &format!("{TOOL}\n[requires.packages]\n\"{LINT}\" = \"<1.1\"\n"),
    );
    vibe(&world, &["install"]).expect(0);
    let lock = world.read("vibe.lock");
    assert!(
        lock.contains("version = \"1.0.0\"") && !lock.contains("1.1.0"),
        "{lock}"
    );
}

#[test]
fn a_clash_of_members_names_each_at_the_beginning_of_its_chain() {
    let world = workspace();
    core("2.0.0")
        .depends(LINT, "=1.0.0")
        .publish(&world.registry());
    app(&world, &format!("\"{CORE}\" = \"^2\"\n"));
    member(
        &world,
        "packages/tool",
        &format!("{TOOL}\n[requires.packages]\n\"{LINT}\" = \"^1.1\"\n"),
    );
    let before = outside_state(&world);
    let refused = vibe(&world, &["install"]).expect(1);
    insta::assert_snapshot!(refused.stderr, @r"
    error: no version of org.example/lint satisfies everything that requires it
      org.example/tool (packages/tool) requires org.example/lint ^1.1
      app (packages/app) requires org.example/core ^2
        org.example/core 2.0.0 requires org.example/lint =1.0.0
      the versions there are, and what rules each of them out:
        1.1.0  not =1.0.0, which org.example/core 2.0.0 requires
        1.0.0  not ^1.1, which org.example/tool requires
    hint: change or remove one of these requirements: org.example/lint ^1.1 in packages/tool/vibe.toml, org.example/core ^2 in packages/app/vibe.toml
    hint: or let one source of org.example/lint count whatever others require, by an `[[override]]` of it in the project's vibe.toml
    ");
    before.assert_unchanged(&outside_state(&world));
}

#[test]
fn members_of_one_name_are_told_apart_by_their_paths() {
    let world = workspace();
    member(
        &world,
        "packages/other",
        &format!("[project]\nname = \"app\"\n[requires.packages]\n\"{LINT}\" = \"^2\"\n"),
    );
    vibe(&world, &["install"])
        .expect(1)
        .stderr_has("app (packages/other) requires org.example/lint ^2")
        .stderr_has("hint: in packages/other/vibe.toml, require a version that there is");
}

#[test]
fn a_package_is_added_to_the_member_where_the_command_runs() {
    let world = workspace();
    app(&world, "# nothing yet\n");
    let before = world.read("vibe.toml");
    let added = vibe_in(&world, "packages/app", &["install", LINT]).expect(0);
    insta::assert_snapshot!(redacted(&world, &added.stdout), @r"
    + org.example/core  1.0.0  copy  2 files
    + org.example/lint  1.1.0  copy  2 files
    wrote packages/app/vibe.toml
    installed 2 packages, 4 files in [time]
    ");
    assert_eq!(
        world.read("packages/app/vibe.toml"),
        "[project]\nname = \"app\"\n\n[requires.packages]\n\"org.example/lint\" = \"^1.1.0\"\n# nothing yet\n"
    );
    assert_eq!(world.read("vibe.toml"), before);
    only_at_root(&world);
    vibe_in(&world, "packages/tool", &["install"])
        .expect(0)
        .stdout_has("nothing to do");
}

#[test]
fn an_addition_to_a_member_that_is_installed_itself_is_taken_over_by_the_next_run() {
    let world = workspace();
    app(&world, "\"org.example/tool\" = { path = \"../tool\" }\n");
    vibe(&world, &["install"]).expect(0);
    vibe_in(&world, "packages/tool", &["install", LINT])
        .expect(0)
        .stderr_has("org.example/tool is placed with its packages/tool/vibe.toml as it was");
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("~ org.example/tool  0.1.0");
    let placed = slot(&world, "org.example/tool", "0.1.0").join("vibe.toml");
    assert_eq!(read(placed), world.read("packages/tool/vibe.toml"));
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
}

#[test]
fn a_path_of_the_command_line_is_written_as_the_member_sees_it() {
    let world = workspace();
    lint("3.0.0").write(&world.root().join("near/lint"));
    app(&world, "");
    vibe_in(
        &world,
        "packages/app",
        &["install", "path:../../../near/lint"],
    )
    .expect(0);
    let manifest = world.read("packages/app/vibe.toml");
    assert!(
        manifest.contains("{ path = \"../../../near/lint\" }"),
        "{manifest}"
    );
    let lock = world.read("vibe.lock");
    assert!(lock.contains("source = \"path+../near/lint\""), "{lock}");
    vibe_in(
        &world,
        "packages/tool",
        &["install", "path:../app/../../../near/lint"],
    )
    .expect(0);
    let manifest = world.read("packages/tool/vibe.toml");
    assert!(
        manifest.contains("{ path = \"../../../near/lint\" }"),
        "{manifest}"
    );
    vibe(&world, &["install", "--locked"])
        .expect(0)
        .stdout_has("nothing to do");
}

#[test]
fn members_require_each_other_by_paths() {
    let world = workspace();
    app(&world, "\"org.example/tool\" = { path = \"../tool\" }\n");
    vibe(&world, &["install"]).expect(0);
    let lock = world.read("vibe.lock");
    assert!(lock.contains("source = \"path+packages/tool\""), "{lock}");
    assert!(slot(&world, "org.example/tool", "0.1.0").is_dir());
    world.write("packages/tool/more.md", "more\n");
    vibe(&world, &["install"]).expect(0);
    assert!(
        slot(&world, "org.example/tool", "0.1.0")
            .join("more.md")
            .is_file()
    );
}

#[test]
fn a_change_of_any_manifest_or_of_the_members_is_work_for_the_next_run() {
    let world = workspace();
    vibe(&world, &["install"]).expect(0);
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
    app(&world, &format!("\"{LINT}\" = \"=1.0.0\"\n"));
    vibe(&world, &["install"]).expect(0);
    assert!(lint_slot(&world, "1.0.0").is_dir());

    let text = "[project]\nname = \"new\"\n[requires.packages]\n\"org.example/fmt\" = \"*\"\n";
    PackageBuilder::new("org.example/fmt", "1.0.0").publish(&world.registry());
    member(&world, "packages/new", text);
    vibe(&world, &["install", "--locked"]).expect(7).stderr_has(
        "new (packages/new) requires org.example/fmt, but vibe.lock has no entry for it",
    );
    vibe(&world, &["verify"]).expect(7);
    vibe(&world, &["install"]).expect(0);
    assert!(slot(&world, "org.example/fmt", "1.0.0").is_dir());

    std::fs::remove_dir_all(place(&world, "packages/new")).unwrap();
    vibe(&world, &["install"]).expect(0);
    assert!(!slot(&world, "org.example/fmt", "1.0.0").exists());
}

#[test]
fn a_run_with_nothing_to_do_in_a_workspace_writes_nothing() {
    let world = workspace();
    vibe(&world, &["install"]).expect(0);
    let before = world.snapshot();
    for directory in ["", "packages/app", "packages"] {
        vibe_in(&world, directory, &["install"])
            .expect(0)
            .stdout_has("nothing to do");
    }
    before.assert_unchanged(&world.snapshot());
}

#[test]
fn a_member_that_is_a_workspace_brings_its_members_in() {
    let world = workspace();
    member(
        &world,
        "packages/group",
        "[workspace]\nmembers = [\"one\", \"two*\"]\n[workspace.versions]\nlint = \"=1.0.0\"\n",
    );
    let requires = format!("[requires.packages]\n\"{LINT}\" = {{ version.var = \"lint\" }}\n");
    member(
        &world,
        "packages/group/one",
        &format!("[project]\nname = \"one\"\n{requires}"),
    );
    vibe_in(&world, "packages/group/one", &["install"]).expect(0);
    assert!(lint_slot(&world, "1.0.0").is_dir() && slot(&world, CORE, "1.0.0").is_dir());
    assert!(!place(&world, "packages/group/vibe.lock").exists());
    assert!(!place(&world, "packages/group/one/vibe.lock").exists());
    vibe_in(&world, "packages/group", &["install"])
        .expect(0)
        .stdout_has("nothing to do");
}

#[test]
fn a_version_variable_is_that_of_the_nearest_workspace_that_defines_it() {
    let world = workspace();
    root(
        &world,
        "members = [\"packages/*\"]\n[workspace.versions]\nlint = \"^1\"\ncore = \"^1\"\n",
    );
    app(
        &world,
        &format!(
            "\"{LINT}\" = {{ version.var = \"lint\" }}\n\"{CORE}\" = {{ version.var = \"core\" }}\n[workspace.versions]\nlint = \"=1.0.0\"\n"
        ),
    );
    vibe(&world, &["install"]).expect(0);
    assert!(lint_slot(&world, "1.0.0").is_dir());
    app(
        &world,
        &format!("\"{LINT}\" = {{ version.var = \"lnt\" }}\n"),
    );
    let refused = vibe(&world, &["install"]).expect(2);
    insta::assert_snapshot!(redacted(&world, &refused.stderr), @r#"
    error: [world]/project/packages/app/vibe.toml is not valid
       --> [world]/project/packages/app/vibe.toml:5:1
        |
      5 | "org.example/lint" = { version.var = "lnt" }
        | ^ org.example/lint is required in the version `lnt`, which no [workspace.versions] around this manifest defines
    hint: did you mean `lint`?
    "#);
}

#[test]
fn a_published_package_may_not_name_a_version_of_a_workspace() {
    let world = workspace();
    lint("1.2.0")
        .manifest_extra(&format!(
            "[requires.packages]\n\"{CORE}\" = {{ version.var = \"core\" }}\n"
        ))
        .publish(&world.registry());
    vibe(&world, &["install"])
        .expect(2)
        .stderr_has("org.example/lint 1.2.0 is published, but requires org.example/core in a version of its workspace's")
        .stderr_has("states the constraint on org.example/core itself");
}

#[test]
fn what_is_wrong_in_a_member_is_told_with_its_file() {
    let world = workspace();
    member(&world, "packages/tool", &format!("{TOOL}[packge]\n"));
    vibe(&world, &["install"]).expect(0).stderr_has(
        "warning: packages/tool/vibe.toml (line 5, column 2): unknown key `packge` in the manifest",
    );
    member(&world, "packages/tool", "[package]\nname = 1\n");
    vibe(&world, &["install"])
        .expect(2)
        .stderr_has("packages/tool/vibe.toml:");
    vibe_in(&world, "packages/app", &["list"])
        .expect(2)
        .stderr_has("packages/tool/vibe.toml:");
}

#[test]
fn what_only_counts_at_the_root_is_told_of_a_member() {
    let world = workspace();
    let requires = format!("[requires.packages]\n\"{LINT}\" = \"^1\"\n");
    let registry = "[[registry]]\nname = \"other\"\nurl = \"../nowhere\"\n";
    let overrides = format!("[[override]]\npackage = \"{LINT}\"\npath = \"nowhere\"\n");
    let project = "[project]\nname = \"app\"\nvendor = false\nharnesses = [\"claude-code\"]\n";
    member(
        &world,
        "packages/app",
        &format!("{project}{requires}{registry}{overrides}"),
    );
    world.write("packages/app/vibe.lock", "left over\n");
    std::fs::create_dir(place(&world, "packages/tool/vibedeps")).unwrap();
    let installed = vibe(&world, &["install"]).expect(0);
    insta::assert_snapshot!(redacted(&world, &installed.stderr), @r"
    warning: [world]/project/packages/app/vibe.lock is left over and not used: packages/app is a member of the workspace [world]/project
    warning: packages/app/vibe.toml: [[registry]], [[override]], `vendor`, `harnesses` counts only in the vibe.toml of the workspace's root
    warning: [world]/project/packages/tool/vibedeps is left over and not used: packages/tool is a member of the workspace [world]/project
    ");
    assert_eq!(world.read("packages/app/vibe.lock"), "left over\n");
}

#[test]
fn a_member_can_only_tighten_what_install_hooks_may_do() {
    let world = workspace();
    core("1.1.0")
        .hook(vibe_core::hook::Phase::PreInstall, "touch \"$HOME/ran\"\n")
        .publish(&world.registry());
    let requires = format!("[requires.packages]\n\"{LINT}\" = \"^1\"\n");
    member(
        &world,
        "packages/app",
        &format!("[project]\nname = \"app\"\ninstall-hooks = \"never\"\n{requires}"),
    );
    vibe_in(&world, "packages/tool", &["install"])
        .expect(0)
        .stderr_has("1 install hook is held back");
    assert!(!world.home().join("ran").exists());
}

#[test]
fn a_directory_that_no_workspace_includes_is_a_root_of_its_own() {
    let world = workspace();
    let text =
        format!("[project]\nname = \"apart\"\n[requires.packages]\n\"{LINT}\" = \"=1.0.0\"\n");
    let registry = "[[registry]]\nname = \"local\"\nurl = \"../../registry\"\n";
    member(&world, "apart", &format!("{text}{registry}"));
    vibe_in(&world, "apart", &["install"]).expect(0);
    assert!(place(&world, "apart/vibe.lock").is_file());
    assert!(!place(&world, "vibe.lock").exists());
    member(&world, "loose", TOOL);
    vibe_in(&world, "loose", &["install"])
        .expect(2)
        .stderr_has("is a package, not a project")
        .stderr_has("project does not include it: add it to `members` there");
}

#[test]
fn installed_packages_hidden_directories_and_links_are_never_members() {
    let world = workspace();
    let broken = "[package]\nbroken = true\n";
    root(&world, "members = [\"**\"]\n");
    for directory in [".hidden/a", "vibedeps/x", "packages/app/vibedeps/y"] {
        member(&world, directory, broken);
    }
    let elsewhere = world.root().join("elsewhere");
    std::fs::create_dir(&elsewhere).unwrap();
    std::fs::write(elsewhere.join("vibe.toml"), broken).unwrap();
    #[cfg(unix)]
    std::os::unix::fs::symlink(&elsewhere, place(&world, "packages/link")).unwrap();
    vibe(&world, &["install"]).expect(0);
    assert!(lint_slot(&world, "1.1.0").is_dir() && slot(&world, CORE, "1.0.0").is_dir());
}

#[test]
fn two_members_may_not_take_one_package_from_two_sources() {
    let world = workspace();
    lint("3.0.0").write(&world.root().join("near/lint"));
    lint("3.0.0").write(&world.root().join("far/lint"));
    let by = |path: &str| format!("\"{LINT}\" = {{ path = \"{path}\" }}\n");
    app(&world, &by("../../../near/lint"));
    for (other, source) in [
        (by("../../../far/lint"), "path ../far/lint"),
        (format!("\"{LINT}\" = \"*\"\n"), "a registry"),
        (
            format!("\"{LINT}\" = {{ version = \"*\", registry = \"local\" }}\n"),
            "the registry `local`",
        ),
    ] {
        member(
            &world,
            "packages/tool",
            &format!("{TOOL}\n[requires.packages]\n{other}"),
        );
        let before = outside_state(&world);
        let refused = vibe(&world, &["install"]).expect(2);
        let root = world.project();
        let expected = format!(
            "org.example/lint is required from two sources: path ../near/lint, by {root}/packages/app/vibe.toml, and {source}, by {root}/packages/tool/vibe.toml",
            root = root.display()
        );
        assert!(refused.stderr.contains(&expected), "{}", refused.stderr);
        refused.stderr_has(
            "hint: keep one of them, or choose one for everybody with an `[[override]]`",
        );
        before.assert_unchanged(&outside_state(&world));
    }
    member(
        &world,
        "packages/tool",
        &format!(
            "{TOOL}\n[requires.packages]\n{}",
            by("../../../near/./lint")
        ),
    );
    vibe(&world, &["install"]).expect(0);
}

#[test]
fn a_registry_that_a_member_names_counts_for_those_who_name_none() {
    let world = workspace();
    let second = world.root().join("second");
    lint("1.9.0").publish(&second);
    let registries = "[[registry]]\nname = \"first\"\nurl = \"../registry\"\n[[registry]]\nname = \"second\"\nurl = \"../second\"\n";
    world.write(
        "vibe.toml",
        &format!("[workspace]\nmembers = [\"packages/*\"]\n{registries}"),
    );
    let pinned = |name: &str| {
        format!(
            "{TOOL}\n[requires.packages]\n\"{LINT}\" = {{ version = \"^1\", registry = \"{name}\" }}\n"
        )
    };
    vibe(&world, &["install"]).expect(0);
    assert!(
        lint_slot(&world, "1.1.0").is_dir(),
        "the first that knows it"
    );
    member(&world, "packages/tool", &pinned("second"));
    vibe(&world, &["install"]).expect(0);
    assert!(lint_slot(&world, "1.9.0").is_dir());
    vibe(&world, &["install", "--locked"])
        .expect(0)
        .stdout_has("nothing to do");
    member(&world, "packages/tool", &pinned("secnd"));
    vibe(&world, &["install"])
        .expect(2)
        .stderr_has("packages/tool/vibe.toml requires org.example/lint from the registry `secnd`")
        .stderr_has("did you mean `second`?");
}

#[test]
fn two_runs_from_two_members_do_the_work_once() {
    let world = workspace();
    let both = ["packages/app", "packages/tool"]
        .map(|member| start(&mut command(&world, member, &["install"])));
    for child in both {
        wait(child).expect(0);
    }
    vibe(&world, &["verify"]).expect(0);
    let runs = place(&world, "vibedeps/.state/runs");
    assert_eq!(std::fs::read_dir(runs).unwrap().count(), 1);
}

#[test]
fn a_workspace_that_anybody_could_have_put_there_is_refused() {
    let world = workspace();
    let around = world.root().join("vibe.toml");
    std::fs::write(&around, "[workspace]\nmembers = [\"project\"]\n").unwrap();
    vibe_testkit::set_mode(world.root(), 0o1777);
    if is_superuser() {
        let owner = |owner: &str| {
            let chown = Command::new("chown").arg(owner).arg(&around).status();
            assert!(chown.unwrap().success());
        };
        owner("65534");
        vibe(&world, &["install"])
            .expect(2)
            .stderr_has("belongs to another user and lies in a directory that everybody may write");
        owner("0");
    }
    // The user's own is a workspace like any other.
    vibe(&world, &["install"]).expect(2).stderr_has(
        "project/vibe.toml: [[registry]] counts only in the vibe.toml of the workspace's root",
    );
    assert!(!place(&world, "vibe.lock").exists());
}

#[test]
fn a_project_that_anybody_could_have_put_there_is_not_found_from_below() {
    let world = World::new();
    let around = world.root().join("vibe.toml");
    std::fs::write(&around, "[project]\nname = \"theirs\"\n").unwrap();
    vibe_testkit::set_mode(world.root(), 0o1777);
    if is_superuser() {
        let chown = Command::new("chown").arg("65534").arg(&around).status();
        assert!(chown.unwrap().success());
        vibe(&world, &["install"])
            .expect(2)
            .stderr_has("vibe.toml is the nearest vibe.toml above")
            .stderr_has("belongs to another user and lies in a directory that everybody may write")
            .stderr_has("start a project of your own: vibe init; or name that directory");
        let named = ["install", "--project", ".."];
        vibe(&world, &named).expect(0);
        let chown = Command::new("chown").arg("0").arg(&around).status();
        assert!(chown.unwrap().success());
    }
    vibe(&world, &["install"]).expect(0);
}

#[test]
fn an_update_in_a_member_keeps_to_what_every_member_takes() {
    let world = workspace();
    vibe(&world, &["install"]).expect(0);
    for version in ["1.2.0", "1.3.0"] {
        lint(version).publish(&world.registry());
    }
    let tool = format!("{TOOL}\n[requires.packages]\n\"{LINT}\" = \"<1.3\"\n");
    member(&world, "packages/tool", &tool);
    vibe_in(&world, "packages/app", &["update"]).expect(0);
    assert!(lint_slot(&world, "1.2.0").is_dir());
    vibe_in(
        &world,
        "packages/app",
        &["update", LINT, "--precise", "1.3.0"],
    )
    .expect(2)
    .stderr_has(
        "packages/tool/vibe.toml requires org.example/lint <1.3, which 1.3.0 does not satisfy",
    );
    vibe_in(
        &world,
        "packages/app",
        &["update", LINT, "--precise", "1.0.0"],
    )
    .expect(0);
    assert!(lint_slot(&world, "1.0.0").is_dir());
    let moved: Vec<String> = world
        .read("packages/app/vibe.toml")
        .lines()
        .map(str::to_owned)
        .collect();
    assert!(
        moved.contains(&"\"org.example/lint\" = \"^1\"".to_owned()),
        "{moved:?}"
    );
}

#[test]
fn a_requirement_is_taken_out_of_the_member_where_the_command_runs() {
    let world = workspace();
    let tool = format!("{TOOL}\n[requires.packages]\n\"{LINT}\" = \"*\"\n");
    member(&world, "packages/tool", &tool);
    vibe(&world, &["install"]).expect(0);
    let refused = vibe(&world, &["uninstall", LINT]).expect(1);
    insta::assert_snapshot!(redacted(&world, &refused.stderr), @r"
    error: vibe.toml does not require org.example/lint; [world]/project/packages/app/vibe.toml, [world]/project/packages/tool/vibe.toml do
    hint: take it out there: vibe --project [world]/project/packages/app uninstall org.example/lint
    ");
    vibe_in(&world, "packages/app", &["uninstall", LINT])
        .expect(0)
        .stderr_has("note: org.example/lint stays installed: it is required by org.example/tool")
        .stdout_has("wrote packages/app/vibe.toml");
    assert!(!world.read("packages/app/vibe.toml").contains(LINT));
    assert!(lint_slot(&world, "1.1.0").is_dir());
    vibe_in(&world, "packages/tool", &["uninstall", LINT]).expect(0);
    assert!(!lint_slot(&world, "1.1.0").exists());
    only_at_root(&world);
}

#[test]
fn what_looks_at_packages_begins_at_the_root_and_at_every_member_that_requires_something() {
    let world = workspace();
    vibe(&world, &["install"]).expect(0);
    let drawn = vibe_in(&world, "packages/app", &["tree"]).expect(0);
    insta::assert_snapshot!(drawn.stdout, @r"
    app
    `-- org.example/lint 1.1.0
    org.example/tool
    `-- org.example/core 1.0.0
    ");
    let held = vibe_in(&world, "packages/app", &["why", CORE]).expect(0);
    assert!(held.stdout.contains("org.example/tool"), "{}", held.stdout);
    assert!(!held.stdout.contains("app"), "{}", held.stdout);
    core("1.5.0").publish(&world.registry());
    vibe_in(&world, "packages/app", &["outdated"])
        .expect(0)
        .stdout_has(CORE);
    vibe_in(&world, "packages/app", &["show", CORE])
        .expect(0)
        .stdout_has("1.5.0");
}

#[test]
fn a_repository_beside_a_member_is_written_as_each_file_sees_it() {
    let world = workspace();
    let repository = vibe_testkit::GitRepository::new(&world.root().join("repository"));
    repository.package(&lint("5.0.0"));
    repository.commit("first");
    repository.tag("v5.0.0");
    app(&world, "");
    let mut install = command(
        &world,
        "packages/app",
        &["install", "--git", "../../../repository", "--tag", "v5.0.0"],
    );
    run(&mut install).expect(0);
    let manifest = world.read("packages/app/vibe.toml");
    assert!(
        manifest.contains("{ git = \"../../../repository\", tag = \"v5.0.0\" }"),
        "{manifest}"
    );
    let lock = world.read("vibe.lock");
    assert!(lock.contains("source = \"git+../repository\""), "{lock}");
    for arguments in [&["install"][..], &["install", "--locked"]] {
        vibe(&world, arguments)
            .expect(0)
            .stdout_has("nothing to do");
    }
    vibe(&world, &["verify"]).expect(0);
}

#[test]
fn a_hook_that_changes_the_manifest_of_a_member_has_failed() {
    let world = workspace();
    core("1.1.0")
        .hook(
            vibe_core::hook::Phase::PreInstall,
            "echo '# edited' >> \"$VIBE_PROJECT_ROOT/packages/tool/vibe.toml\"\n",
        )
        .publish(&world.registry());
    vibe_in(&world, "packages/app", &["install"])
        .expect(4)
        .stderr_has("it changed packages/tool/vibe.toml, which is left as it is now");
    assert!(!place(&world, "vibe.lock").exists());
}

#[cfg(target_os = "linux")]
mod struck {
    use super::*;
    use crate::support::{lines, rename_in, signal, strace, strace_works, wait_until};

    /// An addition to `app` under strace.
    fn traced(world: &World, options: &[&str]) -> Command {
        app(world, "");
        let install = command(world, "packages/app", &["install", LINT]);
        strace(&install, &world.home().join("calls"), options)
    }

    /// The same, struck as it brings `target` into being.
    fn struck_at(world: &World, target: &str, how: &str) -> Command {
        let whole = workspace();
        run(&mut traced(&whole, &["-e", "trace=/^rename"])).expect(0);
        let number = rename_in(&whole.home().join("calls"), target);
        let inject = format!("inject=/^rename:{how}:when={number}");
        traced(world, &["-e", "trace=/^rename", "-e", &inject])
    }

    /// What an addition that nothing strikes leaves.
    fn undisturbed() -> World {
        let world = workspace();
        app(&world, "");
        vibe_in(&world, "packages/app", &["install", LINT]).expect(0);
        world
    }

    #[test]
    fn a_commit_to_a_member_that_was_cut_short_is_finished_by_the_next_run() {
        if !strace_works() {
            return;
        }
        let good = undisturbed();
        for target in ["vibe.lock", "packages/app/vibe.toml"] {
            let world = workspace();
            run(&mut struck_at(&world, target, "signal=KILL")).expect(-1);
            assert!(place(&world, "vibedeps/.state/commit").is_file());
            vibe_in(&world, "packages/tool", &["install"])
                .expect(0)
                .stderr_has("finished the commit of a run that was cut short");
            committed(&world).assert_unchanged(&committed(&good));
            assert!(read(place(&world, "packages/app/vibe.toml")).contains("^1.1.0"));
        }
    }

    #[test]
    fn a_manifest_of_another_member_that_changes_meanwhile_stops_the_commit() {
        if !strace_works() {
            return;
        }
        let world = workspace();
        let placed = slot(&world, CORE, "1.0.0");
        let target = "vibedeps/org.example.core/1.0.0";
        let child = start(&mut struck_at(&world, target, "signal=STOP"));
        wait_until("the first slot", || placed.is_dir());
        let text = world.read("packages/tool/vibe.toml");
        world.write("packages/tool/vibe.toml", &format!("{text}# edited\n"));
        let stopped = &lines(place(&world, "vibedeps/.state/lock"))[0];
        assert!(signal(stopped, "CONT"));
        wait(child)
            .expect(1)
            .stderr_has("packages/tool/vibe.toml was changed while vibe worked");
        assert!(!place(&world, "vibe.lock").exists());
        assert!(!world.read("packages/app/vibe.toml").contains(LINT));
    }
}

#[test]
fn members_that_are_missing_or_there_twice_are_told() {
    let world = workspace();
    root(
        &world,
        "members = [\"packages/*\", \"package/*\", \"apps/**\"]\n",
    );
    member(&world, "packages/tool-two", TOOL);
    let told = vibe(&world, &["install"]).expect(0).stderr;
    insta::assert_snapshot!(told, @r"
    warning: vibe.toml: no directory with a vibe.toml matches `package/*` of `members`
    warning: vibe.toml: no directory with a vibe.toml matches `apps/**` of `members`
    warning: packages/tool/vibe.toml and packages/tool-two/vibe.toml are both of org.example/tool
    ");
    std::fs::remove_dir_all(place(&world, "packages/tool-two")).unwrap();
    root(
        &world,
        "members = [\"packages/*\", \".\", \"packages/app\"]\n",
    );
    assert_eq!(vibe(&world, &["install"]).expect(0).stderr, "");
}
