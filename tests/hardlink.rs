//! Slots whose files are links to the store's: what is done to one of them enters no later install,
//! and is found and put right wherever it is shared.

use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{
    Run, VIBE, as_nobody, command_in, is_superuser, lines, read, require_path, run, slot, source,
    store, strace, strace_works, vibe,
};
use vibe_core::hook::Phase;
use vibe_testkit::{PackageBuilder, TreeSnapshot, World};

const LINT: &str = "org.example/lint";

/// `org.example/lint`, linked, with a text and a program of the same bytes.
fn lint(version: &str) -> PackageBuilder {
    PackageBuilder::new(LINT, version)
        .manifest_extra("[package]\nmaterialization = \"hardlink\"")
        .file("README.md", "published\n")
        .file("docs/twin.md", "published\n")
        .exec_file("bin/run", "published\n")
}

/// A project of the world's user beside the world's own, which requires `ids`.
fn project(world: &World, name: &str, ids: &[&str]) -> PathBuf {
    let root = world.root().join(name);
    std::fs::create_dir(&root).unwrap();
    let requires: String = ids.iter().map(|id| format!("\"{id}\" = \"*\"\n")).collect();
    let text = format!(
        "[project]\nname = \"{name}\"\n[requires.packages]\n{requires}[[registry]]\nname = \"local\"\nurl = \"../registry\"\n"
    );
    std::fs::write(root.join("vibe.toml"), text).unwrap();
    root
}

fn vibe_in(world: &World, project: &Path, arguments: &[&str]) -> Run {
    run(&mut command_in(world, project, arguments))
}

fn placed(project: &Path, path: &str) -> PathBuf {
    project.join("vibedeps/org.example.lint/1.0.0").join(path)
}

fn inode(path: &Path) -> u64 {
    path.symlink_metadata().unwrap().ino()
}

fn mode(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().mode() & 0o7777
}

fn names_of(path: &Path) -> u64 {
    path.symlink_metadata().unwrap().nlink()
}

/// A world with lint published, and two projects that share its files.
fn shared() -> (World, PathBuf, PathBuf) {
    let world = World::new();
    lint("1.0.0").publish(&world.registry());
    let (one, two) = (
        project(&world, "one", &[LINT]),
        project(&world, "two", &[LINT]),
    );
    for project in [&one, &two] {
        vibe_in(&world, project, &["install"])
            .expect(0)
            .stdout_has("hardlink");
    }
    assert_eq!(
        inode(&placed(&one, "README.md")),
        inode(&placed(&two, "README.md"))
    );
    (world, one, two)
}

/// Everything in the slot is as published.
#[track_caller]
fn is_right(project: &Path) {
    for (path, expected) in [
        ("README.md", 0o444),
        ("docs/twin.md", 0o444),
        ("bin/run", 0o555),
    ] {
        assert_eq!(read(placed(project, path)), "published\n", "{path}");
        assert_eq!(mode(&placed(project, path)), expected, "{path}");
    }
}

/// What can happen to a file, as a line of a shell in the slot; the file; and whether it shows
/// without reading the file.
const ACTS: [(&str, &str, bool); 8] = [
    ("w README.md; echo more >> README.md", "README.md", true),
    ("w README.md; : > README.md", "README.md", true),
    (
        "w docs/twin.md; truncate -s 3 docs/twin.md",
        "docs/twin.md",
        true,
    ),
    (
        "w README.md; printf 'PUBLISHED\\n' > README.md",
        "README.md",
        true,
    ),
    ("chmod +x README.md", "README.md", true),
    ("chmod -x bin/run", "bin/run", true),
    ("rm -f README.md", "README.md", true),
    (
        "w README.md; touch -r README.md t; printf 'PUBLISHED\\n' > README.md; \
         touch -r t README.md; rm t; chmod u-w README.md",
        "README.md",
        false,
    ),
];

/// Does `act` in the slot of `project`; `w` lets the owner of a file write to it.
fn act_in(project: &Path, act: &str) {
    let line = format!("set -e; w() {{ chmod u+w \"$1\"; }}; {act}");
    let mut bash = Command::new("bash");
    bash.args(["-c", &line]).current_dir(placed(project, ""));
    assert!(bash.status().unwrap().success(), "{act}");
}

/// What is shared and was damaged in place, rather than replaced.
fn stays_shared(act: &str) -> bool {
    !act.starts_with("rm ")
}

#[test]
fn an_install_after_any_act_gets_the_published_files_and_every_sharer_is_told() {
    for (act, file, _) in ACTS.iter().filter(|(_, _, shows)| *shows) {
        let (world, one, two) = shared();
        act_in(&one, act);
        let three = project(&world, "three", &[LINT]);
        vibe_in(&world, &three, &["install"]).expect(0);
        is_right(&three);
        vibe_in(&world, &one, &["verify"])
            .expect(3)
            .stdout_has(file);
        if stays_shared(act) {
            vibe_in(&world, &two, &["verify"])
                .expect(3)
                .stdout_has(file);
        }
        vibe_in(&world, &three, &["verify"]).expect(0);
    }
}

#[test]
fn a_repair_takes_clean_files_and_leaves_other_projects_to_their_own() {
    for (act, file, _) in ACTS {
        let (world, one, two) = shared();
        act_in(&one, act);
        vibe_in(&world, &one, &["verify", "--repair"]).expect(0);
        is_right(&one);
        vibe_in(&world, &one, &["verify"]).expect(0);
        if stays_shared(act) {
            let before = TreeSnapshot::of(&two);
            vibe_in(&world, &two, &["verify"])
                .expect(3)
                .stdout_has(file);
            before.assert_unchanged(&TreeSnapshot::of(&two));
        }
        vibe_in(&world, &two, &["verify", "--repair"]).expect(0);
        for project in [&one, &two] {
            is_right(project);
            vibe_in(&world, project, &["verify"]).expect(0);
        }
        let three = project(&world, "three", &[LINT]);
        vibe_in(&world, &three, &["install"]).expect(0);
        is_right(&three);
    }
}

#[test]
fn what_an_install_hook_does_to_the_slot_of_another_package_goes_no_further() {
    let (world, one, two) = shared();
    PackageBuilder::new("org.example/bad", "1.0.0")
        .hook(
            Phase::PostInstall,
            "f=../../org.example.lint/1.0.0/README.md\nchmod u+w $f\necho more >> $f\n",
        )
        .publish(&world.registry());
    vibe_in(&world, &one, &["install", "org.example/bad"]).expect(0);
    let three = project(&world, "three", &[LINT]);
    vibe_in(&world, &three, &["install"]).expect(0);
    is_right(&three);
    for project in [&one, &two] {
        vibe_in(&world, project, &["verify"])
            .expect(3)
            .stdout_has("README.md");
        vibe_in(&world, project, &["verify", "--repair"]).expect(0);
        is_right(project);
    }
}

#[test]
fn an_ordinary_user_who_damages_a_linked_file_gets_clean_ones_again() {
    let (world, one, two) = shared();
    let user = |project: &Path, arguments: &[&str]| {
        let plain = command_in(&world, project, arguments);
        match is_superuser() {
            true => run(&mut as_nobody(&plain)),
            false => run(&mut command_in(&world, project, arguments)),
        }
    };
    if is_superuser() {
        let mut chown = Command::new("chown");
        chown.args(["-hR", "65534:65534"]).arg(world.root());
        assert!(chown.status().unwrap().success());
    }
    act_in(
        &one,
        "chmod 000 bin/run; w README.md; echo more >> README.md",
    );
    user(&one, &["verify"]).expect(3).stdout_has("bin/run");
    user(&one, &["verify", "--repair"]).expect(0);
    is_right(&one);
    user(&two, &["verify"]).expect(3).stdout_has("README.md");
    user(&two, &["verify", "--repair"]).expect(0);
    is_right(&two);
}

#[test]
fn equal_files_are_never_one_file_within_a_package_or_between_two() {
    let world = World::new();
    lint("1.0.0").publish(&world.registry());
    PackageBuilder::new("org.example/other", "1.0.0")
        .manifest_extra("[package]\nmaterialization = \"hardlink\"")
        .file("bin/run", "published\n")
        .exec_file("README.md", "published\n")
        .publish(&world.registry());
    world.require(&[(LINT, "*"), ("org.example/other", "*")]);
    vibe(&world, &["install"]).expect(0);
    let other = slot(&world, "org.example/other", "1.0.0");
    let files = [
        placed(&world.project(), "README.md"),
        placed(&world.project(), "docs/twin.md"),
        placed(&world.project(), "bin/run"),
        other.join("bin/run"),
        other.join("README.md"),
    ];
    for (index, file) in files.iter().enumerate() {
        assert_eq!(names_of(file), 2, "{}", file.display());
        assert!(
            files[..index].iter().all(|f| inode(f) != inode(file)),
            "{}",
            file.display()
        );
    }
    let modes: Vec<u32> = files.iter().map(|file| mode(file)).collect();
    assert_eq!(modes, [0o444, 0o444, 0o555, 0o444, 0o555]);
    vibe(&world, &["verify"]).expect(0);
}

/// A command of a world whose store lies on another file system; `None`, which is said, where there
/// is none.
fn on_another_file_system() -> Option<tempfile::TempDir> {
    let device = |path: &Path| path.metadata().ok().map(|found| found.dev());
    let other = Path::new("/dev/shm");
    if device(other).is_none() || device(other) == device(&std::env::temp_dir()) {
        eprintln!("skipped: /dev/shm is no other file system");
        return None;
    }
    Some(tempfile::tempdir_in(other).unwrap())
}

#[test]
fn files_that_cannot_be_linked_are_copied_and_that_is_said_once() {
    let Some(home) = on_another_file_system() else {
        return;
    };
    let world = World::new();
    lint("1.0.0").publish(&world.registry());
    PackageBuilder::new("org.example/other", "1.0.0")
        .manifest_extra("[package]\nmaterialization = \"hardlink\"")
        .publish(&world.registry());
    world.require(&[(LINT, "*"), ("org.example/other", "*")]);
    let far = |arguments: &[&str]| {
        let mut command = command_in(&world, &world.project(), arguments);
        run(command.env("VIBE_PKG_HOME", home.path()))
    };
    let done = far(&["install"]).expect(0).stderr_has("copied, since");
    assert_eq!(done.stderr.matches("note:").count(), 1, "{}", done.stderr);
    let shown = home.path().join("store");
    let done = done.stderr_has(shown.to_str().unwrap());
    assert!(done.stdout.contains("copy"), "{}", done.stdout);
    assert_eq!(read(placed(&world.project(), "README.md")), "published\n");
    assert_eq!(names_of(&placed(&world.project(), "README.md")), 1);
    let listed = far(&["list", "--json"]).expect(0).json();
    assert_eq!(listed["result"][0]["link-mode"], "copy");
    far(&["verify"]).expect(0);
    far(&["install"]).expect(0).stdout_has("nothing to do");
}

#[test]
fn only_what_says_that_no_link_can_be_made_is_met_by_a_copy() {
    if !strace_works() {
        return;
    }
    for (error, copies) in [
        ("EXDEV", true),
        ("EPERM", true),
        ("EACCES", true),
        ("EMLINK", true),
        ("EOPNOTSUPP", true),
        ("EEXIST", false),
        ("EIO", false),
        ("ENOSPC", false),
    ] {
        let world = World::new();
        lint("1.0.0").publish(&world.registry());
        world.require(&[(LINT, "*")]);
        let mut install = command_in(&world, &world.project(), &["install"]);
        // The count of calls is one of each thread.
        install.env("RAYON_NUM_THREADS", "1");
        let inject = format!("inject=/^link:error={error}:when=2");
        let log = world.home().join("calls");
        let mut traced = strace(&install, &log, &["-e", "trace=/^link", "-e", &inject]);
        let ran = run(&mut traced);
        if copies {
            let ran = ran.expect(0).stderr_has("note: 1 file was copied");
            assert!(ran.stdout.contains("hardlink"), "{error}: {}", ran.stdout);
            let names = ["README.md", "docs/twin.md", "bin/run", "vibe.toml"]
                .map(|path| names_of(&placed(&world.project(), path)));
            assert_eq!(names.iter().sum::<u64>(), 7, "{error}: {names:?}");
            vibe(&world, &["verify"]).expect(0);
        } else {
            ran.expect(1);
            assert!(!placed(&world.project(), "").exists(), "{error}");
            vibe(&world, &["install"]).expect(0);
        }
    }
}

#[test]
fn a_linked_path_package_stays_linked_when_its_source_changes() {
    let world = World::new();
    let package = PackageBuilder::new(LINT, "1.0.0").file("a.md", "1\n");
    package.clone().write(&source(&world));
    require_path(&world);
    vibe(&world, &["install", "--link-mode", "hardlink"]).expect(0);
    package.file("a.md", "2\n").write(&source(&world));
    vibe(&world, &["install"]).expect(0);
    let file = placed(&world.project(), "a.md");
    assert_eq!((read(&file).as_str(), names_of(&file)), ("2\n", 2));
    // What is edited in the source is not edited in the slot.
    std::fs::write(source(&world).join("a.md"), "3\n").unwrap();
    assert_eq!(read(&file), "2\n");
}

/// The store's file of lint at `path`.
fn stored(world: &World, path: &str) -> PathBuf {
    let found = Command::new("find")
        .arg(store(world).join("v1/trees"))
        .args(["-path", &format!("*/files/{path}")])
        .output()
        .unwrap();
    let found = String::from_utf8(found.stdout).unwrap();
    assert_eq!(found.lines().count(), 1, "{found}");
    PathBuf::from(found.trim())
}

#[test]
fn a_damaged_store_file_is_fetched_again_or_the_run_fails_by_name() {
    for (content, mode) in [
        ("", "hardlink"),
        ("PUBLISHED\n", "hardlink"),
        ("PUBLISHED\n", "copy"),
    ] {
        let world = World::new();
        lint("1.0.0").publish(&world.registry());
        world.require(&[(LINT, "*")]);
        let install = ["install", "--link-mode", mode];
        vibe(&world, &install).expect(0);
        let damage = || {
            let slot = slot(&world, LINT, "1.0.0");
            std::fs::remove_dir_all(slot).unwrap();
            let file = stored(&world, "README.md");
            std::fs::remove_file(&file).unwrap();
            std::fs::write(&file, content).unwrap();
        };
        damage();
        vibe(&world, &install)
            .expect(0)
            .stderr_has("damaged in the store")
            .stderr_has("`README.md`")
            .stderr_has(LINT);
        assert_eq!(read(placed(&world.project(), "README.md")), "published\n");
        vibe(&world, &["verify"]).expect(0);
        damage();
        let away = world.root().join("away");
        std::fs::rename(world.registry(), &away).unwrap();
        for arguments in [
            &install[..],
            &["reinstall", "--force"],
            &["install", "--offline"],
        ] {
            let failed = vibe(&world, arguments);
            // The first meets the damage; the others find that the store has nothing any more.
            let code = if arguments == install { 3 } else { 1 };
            assert_eq!(failed.code, code, "{failed:?}");
            let failed = failed.stderr_has(LINT);
            assert!(!slot(&world, LINT, "1.0.0").exists(), "{failed:?}");
        }
        std::fs::rename(&away, world.registry()).unwrap();
        vibe(&world, &install).expect(0);
        assert_eq!(read(placed(&world.project(), "README.md")), "published\n");
    }
}

#[test]
fn damage_with_the_source_gone_names_file_and_package() {
    let (world, one, _) = shared();
    std::fs::remove_dir_all(world.registry()).unwrap();
    std::fs::remove_dir_all(placed(&one, "")).unwrap();
    let file = stored(&world, "docs/twin.md");
    std::fs::remove_file(&file).unwrap();
    std::fs::write(&file, "pub").unwrap();
    vibe_in(&world, &one, &["install", "--offline"])
        .expect(3)
        .stderr_has("org.example/lint 1.0.0 is damaged in the store")
        .stderr_has("`docs/twin.md`")
        .stderr_has("hint: ");
    assert!(!placed(&one, "").exists());
}

/// `vibe` under `umask`.
fn under_umask(world: &World, project: &Path, umask: &str, arguments: &[&str]) -> Run {
    let plain = command_in(world, project, arguments);
    let mut bash = Command::new("bash");
    bash.args(["-c", &format!("umask {umask}; exec \"$@\""), "bash", VIBE])
        .args(arguments)
        .current_dir(project)
        .env_clear();
    for (name, value) in plain.get_envs() {
        bash.env(name, value.unwrap());
    }
    run(&mut bash)
}

#[test]
fn the_umask_of_who_fetched_first_decides_nothing_for_others() {
    let world = World::new();
    lint("1.0.0").publish(&world.registry());
    let names = ["one", "two", "three"];
    let [one, two, three] = names.map(|name| project(&world, name, &[LINT]));
    under_umask(&world, &one, "077", &["install"]).expect(0);
    under_umask(&world, &two, "022", &["install"]).expect(0);
    let copied = ["install", "--link-mode", "copy"];
    under_umask(&world, &three, "022", &copied).expect(0);
    for (project, directory) in [(&one, 0o700), (&two, 0o755)] {
        is_right(project);
        assert_eq!(mode(&placed(project, "docs")), directory);
    }
    let modes = ["docs", "README.md", "bin/run"].map(|path| mode(&placed(&three, path)));
    assert_eq!(modes, [0o755, 0o644, 0o755]);
}

#[test]
fn an_existing_slot_keeps_its_way_and_new_ones_take_the_wanted_one() {
    let world = World::new();
    lint("1.0.0").publish(&world.registry());
    PackageBuilder::new("org.example/plain", "1.0.0")
        .file("plain.md", "plain\n")
        .publish(&world.registry());
    world.require(&[(LINT, "*")]);
    let linked = |arguments: &[&str]| {
        let mut command = command_in(&world, &world.project(), arguments);
        run(command.env("VIBE_LINK_MODE", "hardlink"))
    };
    vibe(&world, &["install", "--link-mode", "copy"])
        .expect(0)
        .stdout_has("copy");
    let file = placed(&world.project(), "README.md");
    let lock = world.read("vibe.lock");
    assert!(lock.contains("materialization = \"hardlink\""), "{lock}");
    linked(&["install"]).expect(0).stdout_has("nothing to do");
    std::fs::write(&file, "edited\n").unwrap();
    linked(&["reinstall"]).expect(0);
    assert_eq!((read(&file).as_str(), names_of(&file)), ("published\n", 1));
    linked(&["install", "org.example/plain"]).expect(0);
    let plain = slot(&world, "org.example/plain", "1.0.0").join("plain.md");
    assert_eq!(names_of(&plain), 2);
    assert_eq!(names_of(&file), 1);
    // A linked slot stays linked, whatever is wanted by now.
    std::fs::remove_file(&plain).unwrap();
    vibe(&world, &["reinstall"]).expect(0);
    vibe(&world, &["install", "--link-mode", "copy"]).expect(0);
    assert_eq!((read(&plain).as_str(), names_of(&plain)), ("plain\n", 2));
    let listed = vibe(&world, &["list", "--json"]).expect(0).json();
    let modes = ["copy", "hardlink"];
    for (package, mode) in listed["result"].as_array().unwrap().iter().zip(modes) {
        assert_eq!(package["link-mode"], mode, "{package}");
    }
    vibe(&world, &["verify"]).expect(0);
    assert!(world.read("vibe.lock").contains(&lock));
}

#[test]
fn an_update_keeps_the_way_that_was_chosen() {
    for (declared, chosen, names) in [("copy", "hardlink", 2), ("hardlink", "copy", 1)] {
        let world = World::new();
        let package = |version: &str| {
            PackageBuilder::new(LINT, version)
                .manifest_extra(&format!("[package]\nmaterialization = \"{declared}\""))
                .file("a.md", version)
                .publish(&world.registry())
        };
        package("1.0.0");
        world.require(&[(LINT, "*")]);
        vibe(&world, &["install", "--link-mode", chosen]).expect(0);
        package("1.1.0");
        world.require(&[(LINT, "^1.1")]);
        vibe(&world, &["install"]).expect(0).stdout_has(chosen);
        let file = slot(&world, LINT, "1.1.0").join("a.md");
        assert_eq!(names_of(&file), names, "{declared}");
    }
}

#[test]
fn an_update_follows_what_the_package_declares_where_nobody_chose() {
    let world = World::new();
    let package = |version: &str, declared: &str| {
        PackageBuilder::new(LINT, version)
            .manifest_extra(&format!("[package]\nmaterialization = \"{declared}\""))
            .file("a.md", version)
            .publish(&world.registry())
    };
    package("1.0.0", "copy");
    world.require(&[(LINT, "*")]);
    vibe(&world, &["install"]).expect(0).stdout_has("copy");
    package("1.1.0", "hardlink");
    world.require(&[(LINT, "^1.1")]);
    vibe(&world, &["install"]).expect(0).stdout_has("hardlink");
}

#[test]
fn a_package_with_install_hooks_is_never_linked() {
    let world = World::new();
    lint("1.0.0")
        .hook(
            Phase::PreInstall,
            "echo more >> README.md\nchmod 755 docs/twin.md\n",
        )
        .publish(&world.registry());
    world.require(&[(LINT, "*")]);
    vibe(&world, &["install", "--link-mode", "hardlink"])
        .expect(0)
        .stdout_has("copy")
        .stderr_has("since install hooks write: org.example/lint");
    let file = placed(&world.project(), "README.md");
    assert_eq!(read(&file), "published\nmore\n");
    assert_eq!(read(stored(&world, "README.md")), "published\n");
    assert_eq!(mode(&stored(&world, "docs/twin.md")), 0o444);
    assert_eq!(names_of(&file), 1);
    vibe(&world, &["verify"]).expect(0);
}

#[test]
fn a_linked_path_package_that_gains_an_install_hook_gets_files_of_its_own_first() {
    let world = World::new();
    let package = lint("1.0.0");
    package.clone().write(&source(&world));
    require_path(&world);
    vibe(&world, &["install"]).expect(0).stdout_has("hardlink");
    let file = placed(&world.project(), "README.md");
    assert_eq!(names_of(&file), 2);
    let linked = stored(&world, "README.md");
    package
        .hook(
            Phase::PreInstall,
            "chmod u+w README.md\necho more >> README.md\n",
        )
        .write(&source(&world));
    vibe(&world, &["install"]).expect(0);
    assert_eq!(read(&file), "published\nmore\n");
    assert_eq!(read(linked), "published\n");
    assert_eq!(names_of(&placed(&world.project(), "docs/twin.md")), 1);
    vibe(&world, &["verify"]).expect(0);
    vibe(&world, &["list"]).expect(0).stdout_has("copy");
}

#[test]
fn what_the_store_has_is_restored_with_the_registry_gone() {
    for mode in ["copy", "hardlink"] {
        let world = World::new();
        lint("1.0.0").publish(&world.registry());
        world.require(&[(LINT, "*")]);
        vibe(&world, &["install", "--link-mode", mode]).expect(0);
        std::fs::remove_dir_all(world.registry()).unwrap();
        std::fs::remove_dir_all(slot(&world, LINT, "1.0.0")).unwrap();
        let mut reinstall = command_in(&world, &world.project(), &["reinstall", "--offline"]);
        run(reinstall.env("VIBE_LINK_MODE", mode)).expect(0);
        vibe(&world, &["list"]).expect(0).stdout_has(mode);
        std::fs::remove_dir_all(world.project().join("vibedeps")).unwrap();
        vibe(&world, &["install", "--locked", "--offline"]).expect(0);
        assert_eq!(read(placed(&world.project(), "README.md")), "published\n");
        vibe(&world, &["verify"]).expect(0);
    }
}

#[test]
fn a_store_that_may_not_be_written_serves_what_it_has_and_is_named_for_what_it_has_not() {
    let (world, one, _) = shared();
    let far = project(&world, "far", &[LINT]);
    std::fs::copy(one.join("vibe.lock"), far.join("vibe.lock")).unwrap();
    PackageBuilder::new("org.example/new", "1.0.0").publish(&world.registry());
    let mut open = Command::new("chmod");
    open.arg("755").arg(world.root());
    assert!(open.status().unwrap().success());
    let closed = Command::new("chmod")
        .args(["-R", "a-w"])
        .arg(store(&world))
        .status();
    assert!(closed.unwrap().success());
    let user = |arguments: &[&str]| {
        let plain = command_in(&world, &far, arguments);
        match is_superuser() {
            true => run(&mut as_nobody(&plain)),
            false => run(&mut command_in(&world, &far, arguments)),
        }
    };
    if is_superuser() {
        let mut chown = Command::new("chown");
        chown.args(["-hR", "65534:65534"]).arg(&far);
        assert!(chown.status().unwrap().success());
    }
    let before = TreeSnapshot::of(&store(&world));
    user(&["install"]).expect(0);
    assert_eq!(read(placed(&far, "README.md")), "published\n");
    user(&["verify"]).expect(0);
    let shown = store(&world);
    user(&["install", "org.example/new"])
        .expect(1)
        .stderr_has(shown.to_str().unwrap())
        .stderr_has("VIBE_PKG_HOME");
    before.assert_unchanged(&TreeSnapshot::of(&store(&world)));
    let mut reopen = Command::new("chmod");
    reopen.args(["-R", "u+w"]).arg(store(&world));
    assert!(reopen.status().unwrap().success());
}

#[test]
fn a_dry_run_leaves_the_store_as_it_is() {
    let world = World::new();
    lint("1.0.0").publish(&world.registry());
    world.require(&[(LINT, "*")]);
    let dry = ["install", "--dry-run", "--json"];
    let first = vibe(&world, &dry).expect(0).json();
    assert!(!store(&world).exists());
    assert_eq!(first["result"]["plan"]["steps"][0]["link-mode"], "hardlink");
    vibe(&world, &["install"]).expect(0);
    std::fs::remove_dir_all(world.project().join("vibedeps")).unwrap();
    let before = TreeSnapshot::of(&store(&world));
    let second = vibe(&world, &dry).expect(0).json();
    assert_eq!(
        second["result"]["plan"]["steps"][0]["files"],
        first["result"]["plan"]["steps"][0]["files"]
    );
    before.assert_unchanged(&TreeSnapshot::of(&store(&world)));
}

#[test]
fn a_store_in_a_project_is_refused_naming_both() {
    let world = World::new();
    lint("1.0.0").publish(&world.registry());
    world.require(&[(LINT, "*")]);
    for home in ["vibedeps", "cache/of/mine"] {
        let home = world.project().join(home);
        let mut command = command_in(&world, &world.project(), &["install"]);
        run(command.env("VIBE_PKG_HOME", &home))
            .expect(2)
            .stderr_has(home.join("store").to_str().unwrap())
            .stderr_has(world.project().to_str().unwrap());
        assert!(!home.exists());
    }
}

/// Runs `script` where the world is the lower layer of an overlay, mounted at `$ROOT`; `None`, which
/// is said, where that cannot be.
fn in_overlay(world: &World, script: &str) -> Option<Run> {
    let layers = tempfile::tempdir().unwrap();
    for name in ["upper", "work", "merged"] {
        std::fs::create_dir(layers.path().join(name)).unwrap();
    }
    let at = |name: &str| layers.path().join(name).display().to_string();
    let options = format!(
        "userxattr,lowerdir={},upperdir={},workdir={}",
        world.root().display(),
        at("upper"),
        at("work")
    );
    let mount = format!("mount -t overlay overlay -o {options} {}", at("merged"));
    let line = |script: &str| format!("set -e; {mount}; {script}");
    let unshared = |script: &str| {
        let mut unshare = Command::new("unshare");
        unshare
            .args(["-rm", "bash", "-c", &line(script)])
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("VIBE", VIBE)
            .env("ROOT", at("merged"))
            .env("HOME", layers.path().join("merged/home"))
            .env("VIBE_PKG_HOME", layers.path().join("merged/home/vibe"));
        unshare.output()
    };
    if !unshared("true").is_ok_and(|output| output.status.success()) {
        eprintln!("skipped: no overlay can be mounted here");
        return None;
    }
    let output = unshared(script).unwrap();
    Some(Run {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    })
}

#[test]
fn slots_in_the_lower_layer_of_a_container_image_are_repaired_and_updated() {
    let world = World::new();
    for version in ["1.0.0", "2.0.0"] {
        lint(version)
            .file("deep/er/file.md", version)
            .publish(&world.registry());
    }
    lint("1.0.0").clone().write(&source(&world));
    world.require(&[(LINT, "^1")]);
    vibe(&world, &["install"]).expect(0);
    let script = "
        cd $ROOT/project
        echo edited > vibedeps/org.example.lint/1.0.0/docs/twin.md
        rm -r vibedeps/org.example.lint/1.0.0/deep
        $VIBE verify --repair
        $VIBE verify
        mkdir vibedeps/org.example.lint/1.0.0/mine
        sed -i 's/\\^1/^2/' vibe.toml
        $VIBE install
        $VIBE verify
        cat vibedeps/org.example.lint/2.0.0/deep/er/file.md
        test -d vibedeps/org.example.lint/1.0.0/mine
        $VIBE reinstall --force
    ";
    if let Some(run) = in_overlay(&world, script) {
        run.expect(0).stdout_has("2.0.0");
    }
}

/// A new project that has the lock of a world's, whose store has everything: `packages` packages of
/// `files` files, ten in a directory. Gives the calls that an install takes.
fn warm_calls(packages: usize, files: usize, mode: &str) -> usize {
    let world = World::new();
    let ids: Vec<String> = (0..packages)
        .map(|number| format!("org.example/p{number}"))
        .collect();
    for id in &ids {
        let package = PackageBuilder::new(id, "1.0.0");
        (0..files - 1)
            .fold(package, |package, file| {
                package.file(&format!("d{}/f{file}", file / 10), "text\n")
            })
            .publish(&world.registry());
    }
    let requires: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), "*")).collect();
    world.require(&requires);
    vibe(&world, &["install", "--no-hooks"]).expect(0);
    std::fs::remove_dir_all(world.project().join("vibedeps")).unwrap();
    let log = world.home().join("calls");
    let install = command_in(&world, &world.project(), &["install", "--link-mode", mode]);
    run(&mut strace(&install, &log, &[]))
        .expect(0)
        .stdout_has(mode);
    // Not threads that wait for each other, nor what only a build for debugging asks.
    let not_ours = ["+++", "resumed>", "futex(", "sched_yield(", "F_GETFD"];
    let is_call = |line: &String| !not_ours.iter().any(|other| line.contains(other));
    lines(log).into_iter().filter(is_call).count()
}

#[test]
fn a_warm_install_takes_few_calls_a_file() {
    if !strace_works() {
        return;
    }
    for (mode, a_file) in [("hardlink", 3.2), ("copy", 9.0)] {
        let (few, more, files) = (10, 20, 40);
        let calls = warm_calls(more, files, mode) - warm_calls(few, files, mode);
        let budget = (more - few) as f64 * (files as f64 * a_file + 12.0);
        assert!(
            calls as f64 <= budget,
            "{mode}: {calls} calls, and {budget} are the budget"
        );
    }
}
