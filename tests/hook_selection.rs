//! Install hooks that cannot run: no script, no interpreter, or a text that would be misread.

use std::fs;
use std::path::Path;
use std::process::Command;

use vibe_core::hook::Phase;
use vibe_testkit::{PackageBuilder, World};

use crate::support::{COUNT, command, count, lint, lint_slot, run, vibe, with_hook};

/// A directory for `PATH` that has a shell, but no bash.
fn path_without_bash(world: &World) -> std::path::PathBuf {
    let directory = world.root().join("no-bash");
    fs::create_dir(&directory).unwrap();
    std::os::unix::fs::symlink("/bin/true", directory.join("sh")).unwrap();
    directory
}

#[test]
fn without_bash_a_package_with_hooks_is_refused_before_anything_is_written() {
    let world = with_hook(Phase::PreInstall, COUNT);
    PackageBuilder::new("org.example/other", "1.0.0").publish(&world.registry());
    let path = path_without_bash(&world);
    let before = world.snapshot();
    for arguments in [&["install"][..], &["install", "org.example/other"]] {
        run(command(&world, arguments).env("PATH", &path))
            .expect(1)
            .stderr_has("the pre-install script of org.example/lint 1.0.0 cannot run")
            .stderr_has("hooks/pre-install.sh")
            .stderr_has("install bash")
            .stderr_has("--no-hooks");
        let after = world.snapshot();
        let mut untouched = after.ignoring_times();
        untouched
            .entries
            .retain(|path, _| !path.starts_with("vibedeps"));
        before.clone().ignoring_times().assert_unchanged(&untouched);
        assert!(!lint_slot(&world, "1.0.0").exists());
    }
    run(command(&world, &["install", "--no-hooks"]).env("PATH", &path)).expect(0);
    assert_eq!(count(&world, "runs"), 0);
    vibe(&world, &["install"]).expect(0);
    assert_eq!(count(&world, "runs"), 1);
}

/// Installs a package whose manifest says `base`, and expects a refusal that says `told`.
fn check_base(base: &str, code: i32, told: &[&str]) {
    let world = World::new();
    lint("1.0.0")
        .file("hooks/prepare.sh", COUNT)
        .file("hooks/dir/file", "")
        .file("hooks/only.ps1", "exit 0\n")
        .manifest_extra(&format!("[hooks]\npre-install = '{base}'\n"))
        .publish(&world.registry());
    world.require(&[("org.example/lint", "*")]);
    let refused = vibe(&world, &["install"])
        .expect(code)
        .stderr_has("org.example/lint");
    let _ = told
        .iter()
        .fold(refused, |refused, part| refused.stderr_has(part));
    assert_eq!(count(&world, "runs"), 0);
    assert!(!world.project().join("vibe.lock").exists() && !lint_slot(&world, "1.0.0").exists());
}

#[test]
fn a_base_that_leads_out_of_the_package_is_refused() {
    for base in [
        "../x",
        "/x",
        "hooks\\x",
        "hooks/../../x",
        "./hooks/prepare",
        "hooks//prepare",
        "hooks/prepare/",
    ] {
        check_base(base, 2, &["pre-install"]);
    }
}

#[test]
fn a_base_with_an_extension_is_refused() {
    for base in ["hooks/prepare.sh", "hooks/prepare.PS1", "hooks/prepare.Sh"] {
        check_base(base, 2, &["without extension"]);
    }
}

#[test]
fn a_base_without_script_names_both_files_looked_for() {
    check_base("hooks/none", 1, &["hooks/none.sh", "hooks/none.ps1"]);
    check_base(
        "hooks/dir",
        1,
        &["hooks/dir.sh", "hooks/dir.ps1", "is a directory"],
    );
    check_base(
        "hooks/only",
        1,
        &[
            "hooks/only.ps1",
            "hooks/only.sh",
            "corrected in the package",
        ],
    );
}

#[test]
fn an_extension_is_appended_and_a_blank_base_is_no_hook() {
    let world = World::new();
    lint("1.0.0")
        .file("hooks/prepare.v2.sh", COUNT)
        .manifest_extra("[hooks]\npre-install = 'hooks/prepare.v2'\npost-install = ' '\n")
        .publish(&world.registry());
    world.require(&[("org.example/lint", "*")]);
    vibe(&world, &["install"]).expect(0);
    assert_eq!(count(&world, "runs"), 1);
}

#[test]
fn a_second_script_for_a_phase_cannot_be_declared() {
    let world = World::new();
    lint("1.0.0")
        .file("hooks/one.sh", COUNT)
        .manifest_extra("[hooks]\npre-install = ['hooks/one', 'hooks/one']\n")
        .publish(&world.registry());
    world.require(&[("org.example/lint", "*")]);
    let refused = vibe(&world, &["install"]).stderr_has("pre-install");
    assert!(refused.code == 1 || refused.code == 2, "{}", refused.code);
    assert_eq!(count(&world, "runs"), 0);
}

#[test]
fn bash_is_never_taken_from_a_relative_entry_of_path() {
    let world = with_hook(Phase::PreInstall, COUNT);
    world.write("bin/bash", "#!/bin/sh\ntouch fooled\n");
    let bash = world.project().join("bin/bash");
    assert!(
        Command::new("chmod")
            .arg("755")
            .arg(bash)
            .status()
            .unwrap()
            .success()
    );
    let path = std::env::var("PATH").unwrap();
    for first in ["bin", ".", ""] {
        world.write("bash", "#!/bin/sh\ntouch fooled\n");
        run(command(&world, &["install"]).env("PATH", format!("{first}:{path}"))).expect(0);
    }
    assert_eq!(count(&world, "runs"), 1);
    run(command(&world, &["reinstall", "--force"]).env("PATH", "bin"))
        .expect(1)
        .stderr_has("install bash");
}

#[test]
fn scripts_that_bash_would_misread_are_refused_by_name() {
    for (text, told) in [
        ("echo a\r\necho b\r\n", "CRLF"),
        ("\u{feff}echo a\n", "byte order mark"),
    ] {
        let world = with_hook(Phase::PreInstall, text);
        vibe(&world, &["install"])
            .expect(1)
            .stderr_has("hooks/pre-install.sh")
            .stderr_has(told);
        assert!(!world.project().join("vibe.lock").exists());
    }
}

#[test]
fn a_path_to_bash_that_is_not_text_is_no_obstacle() {
    use std::os::unix::ffi::OsStrExt;
    let world = with_hook(Phase::PreInstall, COUNT);
    let directory = world.root().join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
    fs::create_dir(&directory).unwrap();
    let bash = Path::new("/bin/bash");
    assert!(bash.exists());
    std::os::unix::fs::symlink(bash, directory.join("bash")).unwrap();
    run(command(&world, &["install"]).env("PATH", &directory)).expect(0);
    assert_eq!(count(&world, "runs"), 1);
    run(command(&world, &["--json", "hooks", "list"]).env("PATH", &directory)).expect(0);
}
