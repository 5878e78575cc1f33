//! What was fetched once needs no network again, and what was not is told without asking for it.

use std::path::{Path, PathBuf};

use crate::git_support::{
    LINT, Served, forget_fetched, git_cache, git_command, git_command_in, git_vibe, locked,
    release, require,
};
use crate::support::{
    lines, lint, lint_slot, outside_state, read, run, store, strace, strace_works,
};
use vibe_testkit::World;

/// A project whose one package, which has a submodule, is installed.
fn installed() -> Served {
    let served = Served::new();
    let sub = served.repository("sub");
    sub.write("text.md", "sub\n", false);
    let pinned = sub.commit("first");
    let repository = served.repository("lint");
    repository.package(&lint("1.0.0").file("version.md", "1.0.0"));
    repository.submodule("sub", "../sub", &pinned);
    repository.commit("first");
    repository.tag("v1.0.0");
    let lint = format!("git = \"{}\", version = \"^1\"", served.url("lint"));
    require(&served.world, &[(LINT, &lint)]);
    served.vibe(&["install"]).expect(0);
    served
}

fn forget_project(world: &World) {
    std::fs::remove_dir_all(world.project().join("vibedeps")).unwrap();
}

/// A directory with nothing but the manifest and the lock: a new clone of the project.
fn cloned(world: &World) -> PathBuf {
    let clone = world.root().join("clone");
    let _ = std::fs::remove_dir_all(&clone);
    std::fs::create_dir(&clone).unwrap();
    for file in ["vibe.toml", "vibe.lock"] {
        std::fs::copy(world.project().join(file), clone.join(file)).unwrap();
    }
    clone
}

#[test]
fn what_was_fetched_is_installed_again_with_the_server_gone() {
    let Served { world, daemon } = installed();
    drop(daemon);
    for forgotten in [None, Some(store(&world)), Some(git_cache(&world))] {
        if let Some(place) = &forgotten {
            std::fs::remove_dir_all(place).unwrap();
        }
        for arguments in [
            &["--offline", "install"][..],
            &["install"],
            &["install", "--locked"],
            &["--offline", "verify", "--repair"],
            &["--offline", "reinstall"],
        ] {
            forget_project(&world);
            git_vibe(&world, arguments).expect(0);
            assert_eq!(
                read(lint_slot(&world, "1.0.0").join("sub/text.md")),
                "sub\n"
            );
        }
        let clone = cloned(&world);
        run(&mut git_command_in(
            &world,
            &clone,
            &["--offline", "install", "--locked"],
        ))
        .expect(0);
        run(&mut git_command_in(&world, &clone, &["verify"])).expect(0);
        let slot = clone.join("vibedeps/org.example.lint/1.0.0");
        assert_eq!(read(slot.join("sub/text.md")), "sub\n");
        assert_eq!(read(clone.join("vibe.lock")), world.read("vibe.lock"));
    }
}

#[test]
fn an_offline_update_goes_by_what_was_fetched_last() {
    let (served, repository) = Served::with_lint(&["1.0.0"]);
    for reference in ["branch = \"main\"", "tag = \"moving\""] {
        repository.tag("moving");
        served.require_lint(&format!(", {reference}"));
        served.vibe(&["install"]).expect(0);
        let lock = served.world.read("vibe.lock");
        let newer = release(&repository, "1.1.0");
        repository.tag("moving");
        let offline = || served.vibe(&["--offline", "update"]);
        let (asked, run) = served.connections_of(offline);
        run.expect(0);
        assert_eq!((asked, served.world.read("vibe.lock")), (0, lock));
        served
            .vibe(&["update"])
            .expect(0)
            .stderr_has("1.0.0 -> 1.1.0");
        assert_eq!(locked(&served.world, LINT, "commit"), newer);
        release(&repository, "1.0.0");
    }
}

/// The calls of `arguments`, which end with `code`, that reach for a network or start a program.
#[cfg(target_os = "linux")]
fn network_calls(world: &World, arguments: &[&str], code: i32) -> Vec<String> {
    let log = world.home().join("calls");
    let command = git_command(world, arguments);
    let options = ["-e", "trace=network,execve"];
    run(&mut strace(&command, &log, &options)).expect(code);
    let own = format!("execve(\"{}\"", crate::support::VIBE);
    // A thread that ends as it is first seen leaves a line without a call.
    let others = ["+++", "---", "<detached", "AF_UNIX", &own];
    let is_call = |line: &String| others.iter().all(|other| !line.contains(other));
    lines(log).into_iter().filter(is_call).collect()
}

#[cfg(target_os = "linux")]
#[test]
fn no_connection_is_tried_and_no_program_started_offline() {
    if !strace_works() {
        return;
    }
    let served = installed();
    let world = &served.world;
    // What is looked for is seen where there is something to see.
    forget_fetched(world);
    forget_project(world);
    let calls = network_calls(world, &["install"], 0);
    assert!(
        calls.iter().any(|call| call.contains("AF_INET")),
        "{calls:?}"
    );
    let asked = served.daemon.connections();
    forget_project(world);
    assert_eq!(network_calls(world, &["--offline", "install"], 0), [""; 0]);
    forget_project(world);
    std::fs::remove_dir_all(store(world)).unwrap();
    assert_eq!(
        network_calls(world, &["--offline", "install", "--locked"], 0),
        [""; 0]
    );
    forget_project(world);
    forget_fetched(world);
    for arguments in [
        &["--offline", "install"][..],
        &["--offline", "update"],
        &["--offline", "verify", "--repair"],
    ] {
        assert_eq!(network_calls(world, arguments, 1), [""; 0], "{arguments:?}");
    }
    assert_eq!(served.daemon.connections(), asked);
}

/// Asserts that `arguments` fail offline, name `parts` and the way out, and ask nothing.
#[track_caller]
fn missed(served: &Served, arguments: &[&str], parts: &[&str]) {
    let before = outside_state(&served.world);
    for variable in [false, true] {
        let mut arguments = arguments.to_vec();
        if !variable {
            arguments.insert(0, "--offline");
        }
        let mut command = git_command(&served.world, &arguments);
        if variable {
            command.env("VIBE_OFFLINE", "1");
        }
        let (asked, mut run) = served.connections_of(|| run(&mut command));
        run = run.expect(1);
        for part in parts.iter().chain(&["without `--offline`"]) {
            run = run.stderr_has(part);
        }
        assert_eq!(asked, 0);
    }
    before.assert_unchanged(&outside_state(&served.world));
}

#[test]
fn what_was_never_fetched_is_named_and_not_asked_for() {
    let served = installed();
    let url = served.url("lint");
    forget_project(&served.world);
    forget_fetched(&served.world);
    missed(&served, &["install"], &[LINT, &url]);
    missed(&served, &["install", "--locked"], &[LINT, &url]);
    missed(&served, &["verify", "--repair"], &[LINT, &url]);
    missed(&served, &["update"], &[LINT, &url]);
    missed(&served, &["install", &url], &[&url]);
    std::fs::remove_file(served.world.project().join("vibe.lock")).unwrap();
    missed(&served, &["install"], &[&url]);
    let registry = format!(
        "[project]\nname = \"world\"\n[requires.packages]\n\"{LINT}\" = \"^1\"\n\
         [[registry]]\nname = \"main\"\nurl = \"{}\"\n",
        served.url("org")
    );
    served.world.write("vibe.toml", &registry);
    missed(
        &served,
        &["install"],
        &[LINT, &served.url("org/org.example.lint.git")],
    );
}

#[test]
fn a_submodule_that_was_never_fetched_is_named_and_not_asked_for() {
    let served = installed();
    forget_project(&served.world);
    std::fs::remove_dir_all(store(&served.world)).unwrap();
    let is_sub = |path: &Path| {
        path.file_name()
            .unwrap()
            .to_str()
            .unwrap()
            .starts_with("sub-")
    };
    let mut removed = 0;
    for entry in std::fs::read_dir(git_cache(&served.world)).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && is_sub(&path) {
            std::fs::remove_dir_all(path).unwrap();
            removed += 1;
        }
    }
    assert_eq!(removed, 1);
    missed(&served, &["install"], &[LINT, "`sub`", &served.url("sub")]);
}
