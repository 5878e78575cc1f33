//! Two runs at once in one project.

use std::fs::File;
use std::path::PathBuf;
use std::process::{Child, Stdio};

use crate::support::{
    LOGGED, command, committed, hook_log, knows_process, read, slot, start, vibe, wait, wait_until,
};
use vibe_core::hook::Phase;
use vibe_testkit::{PackageBuilder, World};

const LINT: &str = "org.example/lint";

fn world_with(pre_install: &str) -> World {
    let world = World::new();
    PackageBuilder::new(LINT, "1.0.0")
        .file("lint.md", "lint\n")
        .hook(Phase::PreInstall, &format!("{LOGGED}{pre_install}"))
        .hook(
            Phase::PostInstall,
            &format!("{LOGGED}echo run >> counter\n"),
        )
        .publish(&world.registry());
    PackageBuilder::new("org.example/zeta", "1.0.0")
        .file("zeta.md", "zeta\n")
        .publish(&world.registry());
    world.require(&[(LINT, "^1"), ("org.example/zeta", "^1")]);
    world
}

/// A run that holds the project until `hold` goes.
struct Holder {
    child: Child,
    hold: PathBuf,
}

fn holder(world: &World) -> Holder {
    holder_of(world, &["install"])
}

fn holder_of(world: &World, arguments: &[&str]) -> Holder {
    let hold = world.home().join("hold");
    std::fs::write(&hold, "").unwrap();
    let child = start(&mut command(world, arguments));
    let holding = world.home().join("holding");
    wait_until("the hook that holds", || holding.exists());
    wait_until("a note of its process", || knows_process(world));
    Holder { child, hold }
}

impl Holder {
    fn let_go(self) {
        std::fs::remove_file(self.hold).unwrap();
        wait(self.child).expect(0);
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
        std::fs::remove_file(self.hold).unwrap();
    }
}

/// A run that has begun to wait for another one, and what it said of that.
fn waiter(world: &World, arguments: &[&str]) -> (Child, String) {
    let said = world.home().join("said");
    let mut waiting = command(world, arguments);
    waiting.stderr(Stdio::from(File::create(&said).unwrap()));
    let waiting = start(&mut waiting);
    wait_until("a word from the one that waits", || {
        read(&said).ends_with('\n')
    });
    (waiting, read(&said))
}

const HOLD: &str = "touch \"$HOME/holding\"\nwhile [ -e \"$HOME/hold\" ]; do sleep 0.02; done\n";

#[test]
fn two_installs_at_once_do_the_work_once() {
    let serial = world_with("");
    vibe(&serial, &["install"]).expect(0);
    for _ in 0..5 {
        let world = world_with("");
        let both = [(); 2].map(|()| start(&mut command(&world, &["install"])));
        for child in both {
            wait(child).expect(0);
        }
        assert_eq!(hook_log(&world), ["lint pre-install", "lint post-install"]);
        committed(&serial).assert_unchanged(&committed(&world));
        vibe(&world, &["verify"]).expect(0);
    }
}

#[test]
fn one_that_waits_says_for_whom_and_then_finds_nothing_to_do() {
    let world = world_with(HOLD);
    let holder = holder(&world);
    let (waiting, text) = waiter(&world, &["install"]);
    let pid = holder.child.id().to_string();
    assert!(
        text.contains(&pid) && text.contains("vibe install"),
        "{text}"
    );
    holder.let_go();
    wait(waiting).expect(0).stdout_has("nothing to do");
    assert_eq!(hook_log(&world).len(), 2);
}

#[test]
fn one_that_may_not_wait_fails_at_once_and_names_the_other() {
    let world = world_with(HOLD);
    let holder = holder(&world);
    let before = world.snapshot();
    for arguments in [["install", "--no-wait"], ["reinstall", "--no-wait"]] {
        let pid = holder.child.id().to_string();
        vibe(&world, &arguments)
            .expect(1)
            .stderr_has(&pid)
            .stderr_has("vibe install");
    }
    before.assert_unchanged(&world.snapshot());
    holder.let_go();
    assert_eq!(hook_log(&world).len(), 2);
}

#[test]
fn one_that_was_killed_is_not_waited_for() {
    let world = world_with(HOLD);
    holder(&world).kill();
    vibe(&world, &["install", "--no-wait"]).expect(0);
    assert_eq!(read(slot(&world, LINT, "1.0.0").join("counter")), "run\n");
    vibe(&world, &["verify"]).expect(0);
}

#[test]
fn one_that_waited_runs_no_hooks_that_were_forbidden_meanwhile() {
    let world = world_with(HOLD);
    vibe(&world, &["install"]).expect(0);
    std::fs::remove_file(world.home().join("holding")).unwrap();
    let again = ["hooks", "run", LINT, "--force"];
    let holder = holder_of(&world, &again);
    let before = hook_log(&world);
    let (waiting, _) = waiter(&world, &again);
    let manifest = world.read("vibe.toml");
    let (name, forbidden) = ("[project]\n", "[project]\ninstall-hooks = \"never\"\n");
    world.write("vibe.toml", &manifest.replace(name, forbidden));
    holder.kill();
    wait(waiting).expect(0).stdout_has("held back");
    assert_eq!(hook_log(&world), before);
}
