//! Who may hold install hooks back, and what becomes of those held back.

use std::fs;

use vibe_core::hook::Phase;
use vibe_testkit::{PackageBuilder, World};

use crate::support::{COUNT, Run, command, count, evidence, lint, run, vibe};

/// What holds hooks back: arguments, a variable, the project's word, the user's.
struct Hold {
    arguments: &'static [&'static str],
    variable: Option<&'static str>,
    project: Option<&'static str>,
    user: Option<&'static str>,
    named: &'static str,
}

const OPEN: Hold = Hold {
    arguments: &[],
    variable: None,
    project: None,
    user: None,
    named: "",
};

fn set_policy(world: &World, hold: &Hold) {
    world.require(&[("org.example/lint", "*")]);
    if let Some(word) = hold.project {
        let text = world.read("vibe.toml").replacen(
            "name = \"world\"\n",
            &format!("name = \"world\"\ninstall-hooks = \"{word}\"\n"),
            1,
        );
        world.write("vibe.toml", &text);
    }
    let config = world.home().join("vibe/config.toml");
    fs::create_dir_all(config.parent().unwrap()).unwrap();
    fs::write(
        &config,
        hold.user.map_or(String::new(), |word| {
            format!("[hooks]\npolicy = \"{word}\"\n")
        }),
    )
    .unwrap();
}

fn install_held(world: &World, hold: &Hold) -> Run {
    let mut arguments = vec!["install"];
    arguments.extend(hold.arguments);
    let mut install = command(world, &arguments);
    if let Some(variable) = hold.variable {
        install.env("VIBE_NO_HOOKS", variable);
    }
    run(&mut install)
}

fn check_hold(hold: &Hold) {
    let world = World::new();
    lint("1.0.0")
        .hook(Phase::PreInstall, COUNT)
        .hook(Phase::PostInstall, COUNT)
        .publish(&world.registry());
    set_policy(&world, hold);
    install_held(&world, hold)
        .expect(0)
        .stderr_has("2 install hooks are held back")
        .stderr_has(hold.named)
        .stdout_has("held back");
    assert_eq!(count(&world, "runs"), 0);
    let outcomes: Vec<_> = evidence(&world)["hooks"]
        .as_array()
        .unwrap()
        .iter()
        .map(|hook| hook["outcome"].clone())
        .collect();
    assert_eq!(outcomes, ["skipped", "skipped"]);
    let before = world.snapshot();
    install_held(&world, hold)
        .expect(0)
        .stdout_has("nothing to do");
    before.assert_unchanged(&world.snapshot());
    vibe(&world, &["verify"]).expect(0);
    vibe(&world, &["list"])
        .expect(0)
        .stdout_has("pre-install skipped, post-install skipped");
    assert_eq!(count(&world, "runs"), 0);
    set_policy(&world, &OPEN);
    install_held(&world, &OPEN).expect(0);
    assert_eq!(count(&world, "runs"), 2);
    install_held(&world, &OPEN)
        .expect(0)
        .stdout_has("nothing to do");
    assert_eq!(count(&world, "runs"), 2);
}

#[test]
fn the_flag_holds_hooks_back_until_a_run_permits_them() {
    check_hold(&Hold {
        arguments: &["--no-hooks"],
        named: "--no-hooks",
        ..OPEN
    });
}

#[test]
fn the_environment_holds_hooks_back_until_a_run_permits_them() {
    check_hold(&Hold {
        variable: Some("1"),
        named: "VIBE_NO_HOOKS",
        ..OPEN
    });
}

#[test]
fn the_project_holds_hooks_back_until_it_permits_them() {
    check_hold(&Hold {
        project: Some("never"),
        named: "`install-hooks` in vibe.toml",
        ..OPEN
    });
    check_hold(&Hold {
        project: Some("ask"),
        named: "`install-hooks` in vibe.toml",
        ..OPEN
    });
}

#[test]
fn the_user_holds_hooks_back_until_they_permit_them() {
    check_hold(&Hold {
        user: Some("never"),
        named: "`[hooks] policy` in config.toml",
        ..OPEN
    });
    check_hold(&Hold {
        user: Some("ask"),
        named: "`[hooks] policy` in config.toml",
        ..OPEN
    });
}

#[test]
fn nobody_loosens_what_another_holds_back() {
    check_hold(&Hold {
        user: Some("install-is-consent"),
        project: Some("never"),
        named: "`install-hooks` in vibe.toml",
        ..OPEN
    });
    check_hold(&Hold {
        user: Some("never"),
        project: Some("ask"),
        named: "`[hooks] policy` in config.toml",
        ..OPEN
    });
}

#[test]
fn a_package_s_hooks_run_without_any_further_word_and_are_shown_before_and_after() {
    let world = World::new();
    PackageBuilder::new("unknown.stranger/tool", "1.0.0")
        .hook(Phase::PreInstall, COUNT)
        .publish(&world.registry());
    world.require(&[("unknown.stranger/tool", "*")]);
    let digest = vibe_core::Sha256Digest::of(COUNT.as_bytes()).to_string();
    vibe(&world, &["install", "--dry-run"])
        .expect(0)
        .stdout_has("unknown.stranger/tool")
        .stdout_has("pre-install")
        .stdout_has("hooks/pre-install.sh")
        .stdout_has(&digest[..12]);
    assert_eq!(count(&world, "runs"), 0);
    vibe(&world, &["install"]).expect(0);
    assert_eq!(count(&world, "runs"), 1);
    let hook = &evidence(&world)["hooks"][0];
    for (key, value) in [
        ("package", "unknown.stranger/tool"),
        ("phase", "pre-install"),
        ("script", "hooks/pre-install.sh"),
        ("sha256", &digest),
        ("reason", "install"),
        ("outcome", "ran"),
    ] {
        assert_eq!(hook[key], value, "{hook}");
    }
    let row = format!("\"hooks/pre-install.sh\" = \"sha256:{digest}\"");
    assert!(world.read("vibe.lock").contains(&row));
}

#[test]
fn running_hooks_on_demand_passes_the_same_gate_and_reports_the_same_failures() {
    let world = World::new();
    lint("1.0.0")
        .hook(Phase::PreInstall, COUNT)
        .hook(
            Phase::PostInstall,
            "[ ! -e ../../../forbidden ] || exit 3\n",
        )
        .publish(&world.registry());
    set_policy(&world, &OPEN);
    vibe(&world, &["install", "--no-hooks"]).expect(0);
    let run_hooks = ["hooks", "run", "org.example/lint"];
    set_policy(
        &world,
        &Hold {
            user: Some("never"),
            ..OPEN
        },
    );
    vibe(&world, &run_hooks).expect(0).stderr_has("held back");
    assert_eq!(count(&world, "runs"), 0);
    set_policy(&world, &OPEN);
    world.write("forbidden", "");
    vibe(&world, &run_hooks).expect(5).stderr_has("exit 3");
    assert_eq!(count(&world, "runs"), 1);
    assert_eq!(evidence(&world)["outcome"], "flagged");
    fs::remove_file(world.project().join("forbidden")).unwrap();
    vibe(&world, &run_hooks).expect(0);
    vibe(&world, &run_hooks)
        .expect(0)
        .stdout_has("nothing to do");
    assert_eq!(count(&world, "runs"), 1);
}

#[test]
fn who_holds_a_hook_back_is_named_rightly() {
    let world = World::new();
    PackageBuilder::new("org.example/lint", "1.0.0")
        .hook(Phase::PreInstall, "true\n")
        .hook(Phase::PostInstall, "true\n")
        .publish(&world.registry());
    world.require(&[("org.example/lint", "^1")]);
    let config = world.home().join("vibe/config.toml");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    std::fs::write(&config, "[hooks]\npolicy = \"never\"\n").unwrap();
    for _ in 0..2 {
        let mut install = command(&world, &["install"]);
        run(install.env("VIBE_NO_HOOKS", "0"))
            .expect(0)
            .stdout_has("held back: 2 (by `[hooks] policy` in config.toml)");
    }
    std::fs::remove_file(&config).unwrap();
    vibe(&world, &["install", "--dry-run"])
        .expect(0)
        .stdout_has("; 2 steps to do");
    let one = ["hooks", "run", "org.example/lint", "--phase", "pre-install"];
    vibe(&world, &one)
        .expect(0)
        .stdout_has("install hooks held back: 1 (in an earlier run)");
}
