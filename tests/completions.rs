//! `vibe completions`: what shells read to complete command lines.

use std::path::{Path, PathBuf};
use std::process::Command;

use vibe_testkit::World;

use crate::support::{command, run, vibe};

const SHELLS: [&str; 5] = ["bash", "zsh", "fish", "powershell", "elvish"];

/// The script for `shell`, in a file.
fn script(world: &World, shell: &str) -> PathBuf {
    let printed = vibe(world, &["completions", shell]).expect(0);
    assert_eq!(printed.stderr, "");
    let path = world.root().join(shell);
    std::fs::write(&path, printed.stdout).unwrap();
    path
}

#[test]
fn every_script_names_every_command_of_the_first_rank() {
    let world = World::new();
    let help = vibe(&world, &["help"]).expect(0).stdout;
    let commands = help.split("Commands:\n").nth(1).unwrap().lines();
    let commands: Vec<&str> = commands
        .take_while(|line| !line.is_empty())
        .filter_map(|line| line.strip_prefix("  ")?.split(' ').next())
        .filter(|word| !word.is_empty())
        .collect();
    assert!(commands.contains(&"completions"), "{help}");
    for shell in SHELLS {
        let text = crate::support::read(script(&world, shell));
        for name in &commands {
            assert!(text.contains(name), "{shell} does not know {name}");
        }
    }
}

/// Whether `shell` takes the script; `None` where it is not here.
fn takes(shell: &str, options: &[&str], script: &Path) -> Option<bool> {
    let mut checked = Command::new(shell);
    match checked.args(options).arg(script).output() {
        Ok(output) => Some(output.status.success() && output.stderr.is_empty()),
        Err(_) => {
            eprintln!("skipped: there is no {shell} on this machine");
            None
        }
    }
}

#[test]
fn shells_take_their_scripts() {
    let world = World::new();
    for (shell, options) in [
        ("bash", &["--norc", "-n"][..]),
        ("zsh", &["-f", "-n"]),
        ("fish", &["--no-config", "--no-execute"]),
    ] {
        let taken = takes(shell, options, &script(&world, shell));
        assert_ne!(taken, Some(false), "{shell}");
        assert!(shell != "bash" || cfg!(windows) || taken.is_some());
    }
}

#[cfg(unix)]
#[test]
fn bash_completes_with_the_script() {
    let world = World::new();
    let path = script(&world, "bash");
    let check = |words: &str, expected: &str| {
        let line = format!(
            "source '{}'; COMP_WORDS=({words}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); \
             _vibe vibe \"${{COMP_WORDS[-1]}}\" \"${{COMP_WORDS[-2]}}\"; echo \"${{COMPREPLY[*]}}\"",
            path.display()
        );
        let mut bash = Command::new("bash");
        let completed = run(bash.args(["--norc", "-c", &line])).expect(0);
        assert_eq!(completed.stdout.trim_end(), expected, "{words}");
    };
    check("vibe unin", "uninstall");
    check("vibe uninstall --dr", "--dry-run");
    check("vibe cache cl", "clean");
    check("vibe completions f", "fish");
}

#[test]
fn a_shell_gets_its_script_whatever_the_settings_say() {
    let world = World::new();
    let mut broken = command(&world, &["completions", "bash"]);
    broken
        .env("VIBE_PKG_HOME", "relative")
        .env("VIBE_LINK_MODE", "x");
    let printed = run(&mut broken).expect(0);
    assert_eq!(
        printed.stdout,
        vibe(&world, &["completions", "bash"]).stdout
    );
}

#[test]
fn a_shell_that_is_not_known_is_refused_with_those_that_are() {
    let world = World::new();
    let refused = vibe(&world, &["completions", "nu"]).expect(2);
    insta::assert_snapshot!(refused.stderr, @r"
    error: invalid value 'nu' for '<SHELL>'
      [possible values: bash, elvish, fish, powershell, zsh]

    For more information, try '--help'.
    ");
}
