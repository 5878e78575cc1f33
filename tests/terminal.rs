//! What a person sees: the binary on a terminal of its own, whose screen is read.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::process::Child;
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};
use std::time::{Duration, Instant};

use pty_process::Size;
use pty_process::blocking::{Command, open};
use vibe_core::hook::Phase;
use vibe_testkit::{PackageBuilder, World, make_pipe};

use crate::support::{VIBE, command, lint, lint_slot, redacted, vibe, with_hook};

/// Rows of the terminal: more than any test fills.
const ROWS: u16 = 100;
/// How long a terminal may be silent before a test fails.
const PATIENCE: Duration = Duration::from_secs(30);

/// The binary on a terminal.
struct Terminal {
    child: Child,
    keyboard: File,
    output: Receiver<Vec<u8>>,
    screen: vt100::Parser,
}

/// What is on the screen when the command has ended.
struct Shown {
    code: Option<i32>,
    screen: vt100::Screen,
}

impl Terminal {
    /// Starts `vibe <arguments>` in the world's project on a terminal with so many columns.
    fn start(world: &World, columns: u16, arguments: &[&str]) -> Self {
        Self::start_with(world, columns, arguments, &[("TERM", "xterm-256color")])
    }

    fn start_with(
        world: &World,
        columns: u16,
        arguments: &[&str],
        variables: &[(&str, &str)],
    ) -> Self {
        let (pty, pts) = open().unwrap();
        pty.resize(Size::new(ROWS, columns)).unwrap();
        let like = command(world, &[]);
        let known = like.get_envs();
        let child = Command::new(VIBE)
            .args(arguments)
            .current_dir(world.project())
            .env_clear()
            .envs(known.filter_map(|(name, value)| Some((name, value?))))
            .envs(variables.iter().copied())
            .spawn(pts)
            .unwrap();
        let keyboard = File::from(OwnedFd::from(pty));
        let output = read_all(keyboard.try_clone().unwrap());
        let screen = vt100::Parser::new(ROWS, columns, 0);
        Self {
            child,
            keyboard,
            output,
            screen,
        }
    }

    /// Reads on; false when the terminal is closed.
    fn read(&mut self) -> bool {
        match self.output.recv_timeout(PATIENCE) {
            Ok(bytes) => self.screen.process(&bytes),
            Err(RecvTimeoutError::Disconnected) => return false,
            Err(_) => panic!("silence after\n{}", self.screen.screen().contents()),
        }
        true
    }

    /// Waits until some line of the screen holds `part`.
    #[track_caller]
    fn wait_for(&mut self, part: &str) {
        let since = Instant::now();
        while !self.screen.screen().contents().contains(part) {
            let is_open = self.read() && since.elapsed() < PATIENCE;
            let shown = self.screen.screen().contents();
            assert!(is_open, "no {part:?} in\n{shown}");
        }
    }

    fn type_in(&mut self, keys: &[u8]) {
        self.keyboard.write_all(keys).unwrap();
    }

    /// Waits for the end.
    fn end(mut self) -> Shown {
        while self.read() {}
        let code = self.child.wait().unwrap().code();
        let screen = self.screen.screen().clone();
        // The cursor is seen, at the start of a line, in the screen that was there before.
        assert!(!screen.hide_cursor() && !screen.alternate_screen());
        assert_eq!(screen.cursor_position().1, 0, "{}", screen.contents());
        Shown { code, screen }
    }
}

/// Reads the terminal until nobody has it open any more.
fn read_all(mut terminal: File) -> Receiver<Vec<u8>> {
    let (sender, output) = channel();
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        // A terminal that nobody has open is an error here, not an end.
        while let Ok(count @ 1..) = terminal.read(&mut buffer) {
            if sender.send(buffer[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    output
}

impl Shown {
    /// The lines, those that the terminal broke put together, with the exit code.
    fn text(&self, world: &World) -> String {
        let code = self.code.unwrap_or(-1);
        let text = redacted(world, &self.screen.contents());
        format!("{}\n[exit {code}]", text.trim_end())
    }

    /// The lines as they stand on the screen.
    fn rows(&self, world: &World) -> String {
        let columns = self.screen.size().1;
        let rows: Vec<String> = self.screen.rows(0, columns).collect();
        redacted(world, rows.join("\n").trim_end())
    }

    /// The colour of the character at that place.
    fn colour(&self, row: u16, column: u16) -> vt100::Color {
        self.screen.cell(row, column).unwrap().fgcolor()
    }
}

fn shown(world: &World, columns: u16, arguments: &[&str]) -> Shown {
    Terminal::start(world, columns, arguments).end()
}

/// A world whose install hook says `started`, waits for a line from `gate` in its home, and ends.
fn with_gate() -> World {
    let world = with_hook(
        Phase::PreInstall,
        "echo started\nread -r line < \"$HOME/gate\"\nprintf '\\r20%%\\r100%%\\n'\n",
    );
    make_pipe(&world.home().join("gate"));
    world
}

fn open_gate(world: &World) {
    std::fs::write(world.home().join("gate"), "go\n").unwrap();
}

/// Two packages, one with a long name and two install hooks.
fn two_packages() -> World {
    let world = World::new();
    let long = "com.a-company-with-a-long-name/code-review-assistant";
    lint("1.0.0").publish(&world.registry());
    PackageBuilder::new(long, "12.10.3")
        .hook(Phase::PreInstall, "")
        .hook(Phase::PostInstall, "")
        .publish(&world.registry());
    world.require(&[("org.example/lint", "*"), (long, "*")]);
    world
}

#[test]
fn progress_says_what_runs_and_is_gone_afterwards() {
    let installed = |columns| {
        let world = with_gate();
        let mut terminal = Terminal::start(&world, columns, &["install"]);
        terminal.wait_for("org.example/lint pre-install | started");
        terminal.wait_for("running pre-install");
        open_gate(&world);
        terminal.end().text(&world)
    };
    let wide = installed(80);
    insta::assert_snapshot!(wide, @r"
    org.example/lint pre-install | started
    org.example/lint pre-install | 100%
    + org.example/lint  1.0.0  copy  3 files
        pre-install  hooks/pre-install.sh  ok  [time]
    installed 1 package, 3 files, ran 1 install hook in [time]
    [exit 0]
    ");
    let narrow = installed(30);
    insta::assert_snapshot!(narrow, @r"
    org.example/lint pre-install | started
    org.example/lint pre-install | 100%
    + org.example/lint  1.0.0
        pre-install  ok  [time]
    installed 1 package, 3 files, ran 1 install hook in [time]
    [exit 0]
    ");
}

#[test]
fn an_interrupt_leaves_no_progress_behind() {
    let world = with_gate();
    let mut terminal = Terminal::start(&world, 80, &["install"]);
    terminal.wait_for("running pre-install");
    terminal.type_in(b"\x03");
    let shown = terminal.end();
    insta::assert_snapshot!(shown.text(&world), @r"
    org.example/lint pre-install | started
    error: interrupted
    hint: to finish what was begun, run the same command again
    [exit 130]
    ");
}

#[test]
fn no_progress_is_shown_where_it_could_not_be_taken_back() {
    for variables in [
        &[("TERM", "dumb")][..],
        &[("TERM", "xterm"), ("CI", "true")],
        &[],
    ] {
        // Long enough for progress to be drawn, were there any.
        let world = with_hook(Phase::PreInstall, "sleep 0.5\n");
        let mut terminal = Terminal::start_with(&world, 80, &["install"], variables);
        while terminal.read() {
            let text = terminal.screen.screen().contents();
            assert!(!text.contains("running"), "{text}");
        }
        assert_eq!(terminal.end().code, Some(0));
    }
}

#[test]
fn lines_of_packages_fit_the_terminal() {
    let world = two_packages();
    insta::assert_snapshot!(shown(&world, 120, &["install"]).rows(&world), @r"
    + com.a-company-with-a-long-name/code-review-assistant  12.10.3  copy  3 files
        pre-install   hooks/pre-install.sh   ok  [time]
        post-install  hooks/post-install.sh  ok  [time]
    + org.example/lint                                      1.0.0    copy  2 files
    installed 2 packages, 5 files, ran 2 install hooks in [time]
    ");
    std::fs::remove_dir_all(world.project().join("vibedeps")).unwrap();
    insta::assert_snapshot!(shown(&world, 76, &["install"]).rows(&world), @r"
    + com.a-company-with-a-long-name/code-review-assistant  12.10.3  copy
        pre-install   hooks/pre-install.sh   ok  [time]
        post-install  hooks/post-install.sh  ok  [time]
    + org.example/lint                                      1.0.0    copy
    installed 2 packages, 5 files, ran 2 install hooks in [time]
    ");
    std::fs::remove_dir_all(world.project().join("vibedeps")).unwrap();
    insta::assert_snapshot!(shown(&world, 40, &["install"]).rows(&world), @r"
    + com.a-company-with-a-long-name/code-re
    view-assistant  12.10.3
        pre-install   ok  [time]
        post-install  ok  [time]
    + org.example/lint  1.0.0
    installed 2 packages, 5 files, ran 2 ins
    tall hooks in [time]
    ");
    insta::assert_snapshot!(shown(&world, 40, &["install"]).rows(&world), @"nothing to do: 2 packages are up to date");
    insta::assert_snapshot!(shown(&world, 76, &["list"]).rows(&world), @r"
    com.a-company-with-a-long-name/code-review-assistant  12.10.3  copy  3 files
    org.example/lint                                      1.0.0    copy  2 files
    ");
    insta::assert_snapshot!(shown(&world, 40, &["list"]).rows(&world), @r"
    com.a-company-with-a-long-name/code-revi
    ew-assistant  12.10.3  copy
    org.example/lint  1.0.0  copy
    ");
    std::fs::write(lint_slot(&world, "1.0.0").join("lint.md"), "x").unwrap();
    let repaired = shown(&world, 80, &["verify", "--repair"]);
    insta::assert_snapshot!(repaired.rows(&world), @r"
    ~ org.example/lint  1.0.0  copy  2 files  1 file is not as published
        restored lint.md
    refreshed 1 package, 1 file in [time]
    ");
}

#[test]
fn a_conflict_can_be_followed() {
    let world = World::new();
    for version in ["1.0.0", "1.4.2", "2.0.0"] {
        lint(version).publish(&world.registry());
    }
    for (package, version, wanted) in [
        ("org.example/review", "1.0.0", "^1"),
        ("org.example/review", "1.1.0", "^1"),
        ("org.example/style", "3.0.0", "^2"),
    ] {
        PackageBuilder::new(package, version)
            .depends("org.example/lint", wanted)
            .publish(&world.registry());
    }
    world.require(&[("org.example/review", "^1"), ("org.example/style", "*")]);
    insta::assert_snapshot!(shown(&world, 80, &["install"]).rows(&world), @r"
    error: no version of org.example/lint satisfies everything that requires it
      world (yours) requires org.example/review ^1
        org.example/review 1.1.0 requires org.example/lint ^1
      world (yours) requires org.example/style *
        org.example/style 3.0.0 requires org.example/lint ^2
      the versions there are, and what rules each of them out:
        2.0.0         not ^1, which org.example/review 1.1.0 requires
        1.4.2, 1.0.0  not ^2, which org.example/style 3.0.0 requires
      other versions of org.example/review do not help either
    hint: change or remove one of these requirements in vibe.toml: org.example/revie
    w ^1, org.example/style *
    hint: or let one source of org.example/lint count whatever others require, by an
     `[[override]]` of it in the project's vibe.toml
    ");
    insta::assert_snapshot!(shown(&world, 40, &["install"]).rows(&world), @r"
    error: no version of org.example/lint sa
    tisfies everything that requires it
      world (yours) requires org.example/rev
    iew ^1
        org.example/review 1.1.0 requires or
    g.example/lint ^1
      world (yours) requires org.example/sty
    le *
        org.example/style 3.0.0 requires org
    .example/lint ^2
      the versions there are, and what rules
     each of them out:
        2.0.0         not ^1, which org.exam
    ple/review 1.1.0 requires
        1.4.2, 1.0.0  not ^2, which org.exam
    ple/style 3.0.0 requires
      other versions of org.example/review d
    o not help either
    hint: change or remove one of these requ
    irements in vibe.toml: org.example/revie
    w ^1, org.example/style *
    hint: or let one source of org.example/l
    int count whatever others require, by an
     `[[override]]` of it in the project's v
    ibe.toml
    ");
}

#[test]
fn a_misspelt_package_is_met_with_those_there_are() {
    let world = World::new();
    for package in ["org.example/lint", "org.example/style", "com.other/notes"] {
        PackageBuilder::new(package, "1.0.0").publish(&world.registry());
    }
    world.require(&[("org.example/lnit", "*")]);
    insta::assert_snapshot!(shown(&world, 80, &["install"]).text(&world), @r"
    error: there is no package org.example/lnit
      world (yours) requires org.example/lnit *
    hint: did you mean org.example/lint?
    [exit 1]
    ");
    world.require(&[("com.other/lint", "*")]);
    insta::assert_snapshot!(shown(&world, 80, &["install"]).text(&world), @r"
    error: there is no package com.other/lint
      world (yours) requires com.other/lint *
    hint: packages of that name in other groups: org.example/lint
    hint: no `[[registry]]` in vibe.toml has it; add one that has, or install a directory: vibe install path:DIR
    [exit 1]
    ");
    world.require(&[("org.exmaple/review", "*")]);
    insta::assert_snapshot!(shown(&world, 80, &["install"]).text(&world), @r"
    error: there is no package org.exmaple/review
      world (yours) requires org.exmaple/review *
    hint: the group org.example has: lint, style
    hint: no `[[registry]]` in vibe.toml has it; add one that has, or install a directory: vibe install path:DIR
    [exit 1]
    ");
}

#[test]
fn a_version_that_is_not_there_is_met_with_those_there_are() {
    let world = World::new();
    lint("1.0.0").publish(&world.registry());
    lint("1.1.0-rc.1").publish(&world.registry());
    world.require(&[("org.example/lint", "^1.1")]);
    insta::assert_snapshot!(shown(&world, 80, &["install"]).text(&world), @r"
    error: no version of org.example/lint satisfies ^1.1
      world (yours) requires org.example/lint ^1.1
      the versions there are: 1.1.0-rc.1, 1.0.0
      a prerelease is only taken where a requirement names it, as `^1.1.0-rc.1` does
    hint: in vibe.toml, require a version that there is, as `^1.0.0` does
    [exit 1]
    ");
}

#[test]
fn a_failed_pre_install_shows_its_output_once() {
    let world = with_hook(
        Phase::PreInstall,
        "echo looking for node\necho 'node: not found' >&2\nexit 127\n",
    );
    for columns in [80, 40] {
        insta::allow_duplicates! {
            let shown = shown(&world, columns, &["install"]);
            insta::assert_snapshot!(shown.text(&world), @r"
            org.example/lint pre-install | looking for node
            org.example/lint pre-install | node: not found
            error: the pre-install script of org.example/lint 1.0.0 failed (exit 127)
              vibe.toml and vibe.lock were not changed
              log: vibedeps/.state/runs/[run]/org.example.lint.pre-install.log
            hint: see its whole output: vibe hooks log org.example/lint
            [exit 4]
            ");
        }
    }
    insta::assert_snapshot!(shown(&world, 80, &["install", "--quiet"]).text(&world), @r"
    error: the pre-install script of org.example/lint 1.0.0 failed (exit 127)
      vibe.toml and vibe.lock were not changed
      | looking for node
      | node: not found
      log: vibedeps/.state/runs/[run]/org.example.lint.pre-install.log
    hint: see its whole output: vibe hooks log org.example/lint
    [exit 4]
    ");
}

#[test]
fn a_flagged_post_install_shows_its_output_once_and_what_becomes_of_it() {
    let world = with_hook(Phase::PostInstall, "echo building\nexit 3\n");
    insta::assert_snapshot!(shown(&world, 80, &["install"]).text(&world), @r"
    org.example/lint post-install | building
    + org.example/lint  1.0.0  copy  3 files
        post-install  hooks/post-install.sh  failed (exit 3)  [time]
    installed 1 package, 3 files, ran 1 install hook in [time]
    warning: the post-install script of org.example/lint 1.0.0 failed (exit 3); the package is installed, and the next install runs the script again
      log: vibedeps/.state/runs/[run]/org.example.lint.post-install.log
    hint: see its whole output: vibe hooks log org.example/lint
    [exit 5]
    ");
    lint("1.1.0")
        .hook(Phase::PostInstall, "echo building\nexit 3\n")
        .depends("org.example/core", "*")
        .publish(&world.registry());
    PackageBuilder::new("org.example/core", "1.0.0")
        .hook(Phase::PostInstall, "echo core; exit 1\n")
        .publish(&world.registry());
    let shown = shown(&world, 80, &["install", "org.example/lint@1.1.0"]);
    insta::assert_snapshot!(shown.text(&world), @r"
    org.example/core post-install | core
    org.example/lint post-install | building
    + org.example/core  1.0.0           copy  2 files
        post-install  hooks/post-install.sh  failed (exit 1)  [time]
    ~ org.example/lint  1.0.0 -> 1.1.0  copy  3 files
        post-install  hooks/post-install.sh  failed (exit 3)  [time]
    wrote vibe.toml
    installed 1 package, updated 1 package, 5 files, ran 2 install hooks in [time]
    warning: the post-install script of org.example/core 1.0.0 failed (exit 1); the package is installed, and the next install runs the script again
      | core
      log: vibedeps/.state/runs/[run]/org.example.core.post-install.log
    warning: the post-install script of org.example/lint 1.1.0 failed (exit 3); the package is installed, and the next install runs the script again
      log: vibedeps/.state/runs/[run]/org.example.lint.post-install.log
    hint: see its whole output: vibe hooks log org.example/core
    hint: see its whole output: vibe hooks log org.example/lint
    [exit 5]
    ");
}

#[test]
fn colours_mark_what_to_look_at_first() {
    let world = two_packages();
    let installed = shown(&world, 80, &["install"]);
    assert_eq!(installed.colour(0, 0), vt100::Color::Idx(2));
    let world = World::new();
    world.require(&[("org.example/nono", "*")]);
    let failed = shown(&world, 80, &["install"]);
    assert_eq!(failed.colour(0, 0), vt100::Color::Idx(1));
    assert_eq!(failed.colour(0, 7), vt100::Color::Default);
    let variables = [("TERM", "xterm"), ("NO_COLOR", "1")];
    let plain = Terminal::start_with(&world, 80, &["install"], &variables).end();
    assert_eq!(plain.colour(0, 0), vt100::Color::Default);
    assert_eq!(plain.screen.contents(), failed.screen.contents());
}

#[test]
fn a_pipe_gets_whole_lines_without_colour_or_progress() {
    let world = two_packages();
    let ran = vibe(&world, &["install"]).expect(0);
    assert!(!(ran.stdout.clone() + &ran.stderr).contains(['\u{1b}', '\r']));
    insta::assert_snapshot!(redacted(&world, &ran.stdout), @r"
    + com.a-company-with-a-long-name/code-review-assistant  12.10.3  copy  3 files
        pre-install   hooks/pre-install.sh   ok  [time]
        post-install  hooks/post-install.sh  ok  [time]
    + org.example/lint                                      1.0.0    copy  2 files
    installed 2 packages, 5 files, ran 2 install hooks in [time]
    ");
}

#[test]
fn a_place_in_a_manifest_is_marked_whatever_stands_before_it() {
    let world = World::new();
    let check = |line: &str| {
        world.write(
            "vibe.toml",
            &format!("[project]\nname = \"x\"\n[requires.packages]\r\n{line}"),
        );
        shown(&world, 80, &["install"]).rows(&world)
    };
    insta::assert_snapshot!(check("\t\"a.b/c\"\t= 7\r\n"), @r#"
    error: [world]/project/vibe.toml is not valid
       --> [world]/project/vibe.toml:4:12
        |
      4 |     "a.b/c"    = 7
        |                  ^ `a.b/c` in [requires.packages] must be a constraint or 
    a table, not 7
    "#);
    insta::assert_snapshot!(check("\"漢字\" = \"^1\""), @r#"
    error: [world]/project/vibe.toml is not valid
       --> [world]/project/vibe.toml:4:1
        |
      4 | "漢字" = "^1"
        | ^ `漢字` is not a package id: `group/name` is expected
    "#);
    let long = format!(
        "\"a.b/c\" = {{ path = \"{}\", nonsense = true }}",
        "x/".repeat(100)
    );
    insta::assert_snapshot!(check(&long), @r#"
    error: [world]/project/vibe.toml is not valid
       --> [world]/project/vibe.toml:4:224
        |
      4 | …x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/x/", nonsense = true }
        |                                                         ^ unknown key `non
    sense` in the requirement `a.b/c`
    "#);
}

#[test]
fn what_is_typed_meanwhile_is_no_input_of_a_hook() {
    let world = with_gate();
    let mut terminal = Terminal::start(&world, 80, &["install"]);
    terminal.wait_for("running pre-install");
    terminal.type_in(b"typed\n");
    terminal.wait_for("typed");
    open_gate(&world);
    assert_eq!(terminal.end().code, Some(0));
}
