//! Runs that are killed, interrupted or met by a full disk: the same command again gives what it
//! would have given.

use std::path::PathBuf;
use std::process::{Child, Command};

use crate::support::{
    LOGGED, command, committed, copy_of, hook_log, knows_process, lines, read, rename_in, run,
    signal, slot, start, strace, strace_works, vibe, wait, wait_until,
};
use vibe_core::hook::Phase;
use vibe_testkit::{PackageBuilder, TreeSnapshot, World};

const A: &str = "org.example/a";
const B: &str = "org.example/b";
const INSTALL: &[&str] = &["install"];
const PHASES: [(&str, Phase); 4] = [
    (A, Phase::PreInstall),
    (B, Phase::PreInstall),
    (A, Phase::PostInstall),
    (B, Phase::PostInstall),
];

/// Waits, the first time it is run, for as long as `hold` is there: at the end of a hook, so that
/// the test can strike when the hook has done its work and not ended. A world that goes takes
/// `hold` with it. It ends by an interrupt wherever that strikes: bash by itself goes on where the
/// command that it waits for had just ended.
const HOLD: &str = "if [ ! -e \"$HOME/holding\" ]; then
  [ -n \"$(trap -p INT)\" ] || trap 'exit 1' INT
  echo $$ > \"$HOME/pid\"
  mv \"$HOME/pid\" \"$HOME/holding\"
  while [ -e \"$HOME/hold\" ]; do sleep 0.02; done
fi
";

/// What each hook does: the same when it is done twice.
fn script(package: &str, phase: Phase) -> &'static str {
    match (package, phase) {
        (A, Phase::PreInstall) => "echo hooked >> edited.md\nmkdir -p out\necho built > out/a\n",
        (A, Phase::PostInstall) => "echo changed > tool\nchmod +x tool\nrm -f deleted.md\n",
        _ => "mkdir -p made\necho one > made/one\necho two > made/two\n",
    }
}

fn package(id: &str, version: &str, holder: Option<(&str, Phase)>) -> PackageBuilder {
    let package = PackageBuilder::new(id, version)
        .file("edited.md", "published\n")
        .file("deleted.md", "published\n")
        .file("tool", format!("{version}\n"))
        .file("deep/notes.md", "notes\n");
    [Phase::PreInstall, Phase::PostInstall]
        .into_iter()
        .fold(package, |package, phase| {
            let hold = if holder == Some((id, phase)) {
                HOLD
            } else {
                ""
            };
            let script = format!("{LOGGED}{}{hold}", script(id, phase));
            package.hook(phase, &script)
        })
}

/// Two packages with two hooks each, one of which may hold.
fn fixture(holder: Option<(&str, Phase)>) -> World {
    let world = World::new();
    package(A, "1.0.0", holder).publish(&world.registry());
    package(B, "1.0.0", holder)
        .depends(A, "^1")
        .publish(&world.registry());
    world.require(&[(B, "^1")]);
    world
}

/// The hooks' runs, in order, where the one at `again` has to run twice.
fn expected_log(again: Option<usize>) -> Vec<String> {
    let line = |(id, phase): &(&str, Phase)| format!("{} {phase}", &id["org.example/".len()..]);
    let all: Vec<String> = PHASES.iter().map(line).collect();
    match again {
        None => all,
        Some(index) => [&all[..=index], &all[index..]].concat(),
    }
}

/// What the project ends with where nothing goes wrong.
fn undisturbed(holder: Option<(&str, Phase)>) -> TreeSnapshot {
    let world = fixture(holder);
    vibe(&world, &["install"]).expect(0);
    assert_eq!(hook_log(&world), expected_log(None));
    committed(&world)
}

/// The same command again, after which everything is as it should have been.
#[track_caller]
fn finishes(world: &World, good: &TreeSnapshot) -> crate::support::Run {
    let run = vibe(world, &["install"]).expect(0);
    is_well(world, good);
    let before = world.snapshot();
    vibe(world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
    before.assert_unchanged(&world.snapshot());
    run
}

#[track_caller]
fn is_well(world: &World, good: &TreeSnapshot) {
    good.assert_unchanged(&committed(world));
    vibe(world, &["verify"]).expect(0);
    let state = world.project().join("vibedeps/.state");
    assert!(!state.join("commit").exists());
    let staging = TreeSnapshot::of(&state.join("staging"));
    let left: Vec<&String> = staging
        .entries
        .keys()
        .filter(|path| *path != "clock")
        .collect();
    assert!(left.is_empty(), "left in staging: {left:?}");
}

/// Starts an install that gets as far as the hook that holds. Gives the hook's process group, too.
fn start_held(world: &World) -> (Child, i32) {
    std::fs::write(world.home().join("hold"), "").unwrap();
    let child = start(&mut command(world, &["install"]));
    let holding = world.home().join("holding");
    wait_until("the hook that holds", || holding.exists());
    wait_until("a note of its process", || knows_process(world));
    (child, read(holding).trim().parse().unwrap())
}

fn is_gone(pid: i32) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    stat.is_empty() || stat.contains(") Z ")
}

fn lock_path(world: &World) -> PathBuf {
    world.project().join("vibe.lock")
}

#[test]
fn a_run_killed_with_its_hook_is_finished_by_the_next() {
    for (index, holder) in PHASES.into_iter().enumerate() {
        let world = fixture(Some(holder));
        let (mut child, group) = start_held(&world);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(signal(&format!("-- -{group}"), "KILL"));
        wait_until("the end of the hook", || is_gone(group));
        assert_eq!(lock_path(&world).exists(), holder.1 == Phase::PostInstall);
        finishes(&world, &undisturbed(Some(holder)));
        assert_eq!(hook_log(&world), expected_log(Some(index)));
    }
}

#[test]
fn a_hook_that_outlived_a_killed_run_is_ended_by_the_next() {
    for (index, holder) in PHASES.into_iter().enumerate() {
        let world = fixture(Some(holder));
        let (mut child, group) = start_held(&world);
        child.kill().unwrap();
        child.wait().unwrap();
        assert!(!is_gone(group));
        let run = finishes(&world, &undisturbed(Some(holder)));
        run.stderr_has("left by a run that was killed")
            .stderr_has(&holder.1.to_string());
        assert!(is_gone(group));
        assert_eq!(hook_log(&world), expected_log(Some(index)));
    }
}

#[test]
fn an_interrupted_hook_is_the_last_thing_a_run_does() {
    for (index, holder) in PHASES.into_iter().enumerate() {
        let world = fixture(Some(holder));
        let (child, group) = start_held(&world);
        assert!(signal(&child.id().to_string(), "INT"));
        wait(child).expect(130);
        assert!(is_gone(group));
        assert_eq!(hook_log(&world), expected_log(None)[..=index]);
        assert_eq!(lock_path(&world).exists(), holder.1 == Phase::PostInstall);
        finishes(&world, &undisturbed(Some(holder)));
        assert_eq!(hook_log(&world), expected_log(Some(index)));
    }
}

#[test]
fn a_second_interrupt_ends_a_hook_that_ignores_the_first() {
    let world = World::new();
    let stubborn = format!("trap 'touch \"$HOME/ignored\"' INT\n{HOLD}");
    PackageBuilder::new(A, "1.0.0")
        .hook(Phase::PreInstall, &stubborn)
        .publish(&world.registry());
    world.require(&[(A, "^1")]);
    let (mut child, group) = start_held(&world);
    let pid = child.id().to_string();
    assert!(signal(&pid, "INT"));
    let ignored = world.home().join("ignored");
    wait_until("the first interrupt", || ignored.exists());
    assert!(child.try_wait().unwrap().is_none());
    assert!(signal(&pid, "INT"));
    wait(child).expect(130);
    wait_until("the end of the hook", || is_gone(group));
    assert!(!lock_path(&world).exists());
}

/// vibe under strace, which strikes at one of its system calls.
fn struck(world: &World, arguments: &[&str], options: &[&str]) -> Command {
    strace(
        &command(world, arguments),
        &world.home().join("calls"),
        options,
    )
}

/// Which of its renames brings `target` into being, in an install that nothing strikes.
fn rename_of(target: &str) -> usize {
    let world = fixture(None);
    run(&mut struck(&world, &["install"], &["-e", "trace=/^rename"])).expect(0);
    rename_in(&world.home().join("calls"), target)
}

/// Strikes an install of the fixture as it brings `target` into being.
fn struck_at(world: &World, target: &str, how: &str) -> Command {
    let inject = format!("inject=/^rename:{how}:when={}", rename_of(target));
    struck(
        world,
        &["install"],
        &["-e", "trace=/^rename", "-e", &inject],
    )
}

const FIRST_SLOT: &str = "vibedeps/org.example.a/1.0.0";

#[test]
fn an_interrupt_while_slots_are_placed_starts_no_hook() {
    if !strace_works() {
        return;
    }
    let world = fixture(None);
    // The delay lets the thread that takes the signal see it before the next step.
    let how = "signal=INT:delay_exit=300000";
    run(&mut struck_at(&world, FIRST_SLOT, how)).expect(130);
    assert!(slot(&world, A, "1.0.0").is_dir());
    assert!(hook_log(&world).is_empty());
    assert!(!lock_path(&world).exists());
    finishes(&world, &undisturbed(None));
    assert_eq!(hook_log(&world), expected_log(None));
}

/// Killed with a complete redo file and before the lock was switched.
fn killed_in_commit() -> World {
    let world = fixture(None);
    run(&mut struck_at(&world, "vibe.lock", "signal=KILL")).expect(-1);
    assert!(world.project().join("vibedeps/.state/commit").exists());
    assert!(!lock_path(&world).exists());
    assert_eq!(hook_log(&world).len(), 2);
    world
}

#[test]
fn a_commit_that_was_cut_short_is_finished_by_the_next_run() {
    if !strace_works() {
        return;
    }
    let world = killed_in_commit();
    for reading in [
        &["list"][..],
        &["list", "--items"],
        &["tree"],
        &["outdated"],
        &["show", A],
        &["install", "--dry-run"],
    ] {
        let before = world.snapshot();
        vibe(&world, reading).expect(0).stderr_has("cut short");
        before.assert_unchanged(&world.snapshot());
    }
    finishes(&world, &undisturbed(None)).stderr_has("finished the commit");
    assert_eq!(hook_log(&world), expected_log(None));
}

#[test]
fn a_commit_that_no_longer_fits_is_dropped_by_name() {
    if !strace_works() {
        return;
    }
    let world = killed_in_commit();
    std::fs::write(lock_path(&world), "# mine\nversion = 1\n").unwrap();
    finishes(&world, &undisturbed(None))
        .stderr_has("dropped the commit")
        .stderr_has("vibe.lock");
    assert_eq!(hook_log(&world), expected_log(None));
}

#[test]
fn a_manifest_changed_while_a_run_works_stops_it_before_its_commit() {
    if !strace_works() {
        return;
    }
    let world = fixture(None);
    let place = slot(&world, A, "1.0.0");
    let child = start(&mut struck_at(&world, FIRST_SLOT, "signal=STOP"));
    wait_until("the first slot", || place.is_dir());
    let stopped = &lines(world.project().join("vibedeps/.state/lock"))[0];
    let before = world.read("vibe.toml");
    world.write("vibe.toml", &format!("{before}# mine\n"));
    assert!(signal(stopped, "CONT"));
    wait(child)
        .expect(1)
        .stderr_has("vibe.toml")
        .stderr_has("changed");
    assert!(!lock_path(&world).exists());
    assert_eq!(hook_log(&world), expected_log(None)[..2]);
    assert_eq!(world.read("vibe.toml"), format!("{before}# mine\n"));
    world.write("vibe.toml", &before);
    finishes(&world, &undisturbed(None));
    assert_eq!(hook_log(&world), expected_log(None));
}

/// How a run is struck at the n-th of some call.
#[derive(Clone, Copy, PartialEq)]
enum Strike {
    Kill,
    Full,
}

/// Strikes a run at every `step`-th `call` in turn, until it gets through unharmed, and looks at what the
/// same command again makes of it. Gives the number of strikes.
fn strike_each(
    call: &str,
    step: usize,
    strike: Strike,
    before: &World,
    arguments: &[&str],
    good: &TreeSnapshot,
) -> usize {
    // A filter in the kernel is faster, but lets no signal in.
    let (what, fast) = match strike {
        Strike::Kill => ("signal=KILL", None),
        Strike::Full => ("error=ENOSPC", Some("--seccomp-bpf")),
    };
    let old = committed(before);
    for number in (1..).step_by(step) {
        let world = copy_of(before);
        let old_lock = std::fs::read(lock_path(&world)).ok();
        let inject = format!("inject={call}:{what}:when={number}");
        let traced = format!("trace={call}");
        let options = ["-e", &traced, "-e", &inject].into_iter().chain(fast);
        let hit = run(&mut struck(
            &world,
            arguments,
            &options.collect::<Vec<&str>>(),
        ));
        let trace = read(world.home().join("calls"));
        let fired = trace.contains("INJECTED") || trace.contains("killed by SIGKILL");
        let place = format!("{call} number {number}: exit {}\n{}", hit.code, hit.stderr);
        let lock = std::fs::read(lock_path(&world)).ok();
        let new_lock = good.entries["vibe.lock"].sha256;
        assert!(
            lock == old_lock || lock.as_deref().map(vibe_core::Sha256Digest::of) == new_lock,
            "half a lock after {place}"
        );
        if hit.code == 0 {
            good.assert_unchanged(&committed(&world));
        }
        let now = committed(&world);
        if now != old && now != *good {
            let fresh = world.project().join("vibedeps/.state/fresh");
            assert!(!fresh.exists(), "all counts as well after {place}");
        }
        if !fired {
            assert_eq!(hit.code, 0, "{place}");
            return (number - 1) / step;
        }
        let state = world.project().join("vibedeps/.state/slots.toml");
        let inside = lines(state).iter().any(|line| line == "[slot.running]");
        let again = vibe(&world, arguments);
        assert_eq!(again.code, 0, "after {place}then: {}", again.stderr);
        is_well(&world, good);
        // A hook that failed, or was running, is due again; so is the pre-install of a slot that
        // went back to its old tree.
        let went_back = old_lock.is_some() && lock == old_lock && strike == Strike::Full;
        let due_again = inside || [4, 5].contains(&hit.code);
        let mut again = hook_log(&world);
        for line in expected_log(None) {
            let index = again.iter().position(|run| *run == line);
            again.remove(index.unwrap_or_else(|| panic!("no {line} after {place}")));
        }
        again.retain(|run| !(went_back && run == "a pre-install"));
        assert!(
            again.len() <= usize::from(due_again),
            "{again:?} ran again after {place}"
        );
    }
    unreachable!("a run has an end")
}

/// Installed, then published anew: both packages move, one in its own directory.
fn moved() -> World {
    let world = World::new();
    let source = world.root().join("a");
    package(A, "1.0.0", None).write(&source);
    package(B, "1.0.0", None).publish(&world.registry());
    package(B, "1.1.0", None).publish(&world.registry());
    let manifest = |constraint: &str| {
        world.require(&[(B, constraint)]);
        let text = world.read("vibe.toml");
        let with_path = "[requires.packages]\n\"org.example/a\" = { path = \"../a\" }";
        world.write("vibe.toml", &text.replace("[requires.packages]", with_path));
    };
    manifest("=1.0.0");
    vibe(&world, &["install"]).expect(0);
    std::fs::remove_file(world.home().join("hook.log")).unwrap();
    std::fs::write(source.join("added.md"), "added\n").unwrap();
    std::fs::write(source.join("tool"), "newer\n").unwrap();
    std::fs::remove_file(source.join("deep/notes.md")).unwrap();
    manifest("=1.1.0");
    world
}

/// What `before` ends with where nothing goes wrong with the command of `arguments`.
fn outcome(before: &World, arguments: &[&str]) -> TreeSnapshot {
    let world = copy_of(before);
    vibe(&world, arguments).expect(0);
    assert_eq!(hook_log(&world), expected_log(None));
    committed(&world)
}

/// Strikes at each of `calls`, given with the step from one strike to the next, from `before` on.
fn strike_all(before: &World, arguments: &[&str], strike: Strike, calls: &[(&str, usize)]) {
    let good = outcome(before, arguments);
    for (call, step) in calls {
        let strikes = strike_each(call, *step, strike, before, arguments, &good);
        assert!(strikes >= 3, "only {strikes} of {call}");
    }
}

#[test]
fn an_install_killed_at_a_rename_is_finished_by_the_next() {
    if strace_works() {
        strike_all(&fixture(None), INSTALL, Strike::Kill, &[("/^rename", 2)]);
    }
}

#[test]
fn an_update_killed_at_a_rename_is_finished_by_the_next() {
    if strace_works() {
        strike_all(&moved(), INSTALL, Strike::Kill, &[("/^rename", 2)]);
    }
}

#[test]
fn a_repair_killed_at_a_rename_is_finished_by_the_next() {
    if !strace_works() {
        return;
    }
    let world = fixture(None);
    vibe(&world, INSTALL).expect(0);
    std::fs::remove_file(world.home().join("hook.log")).unwrap();
    std::fs::write(slot(&world, A, "1.0.0").join("tool"), "damaged\n").unwrap();
    std::fs::remove_dir_all(slot(&world, B, "1.0.0").join("deep")).unwrap();
    strike_all(&world, &["reinstall"], Strike::Kill, &[("/^rename", 2)]);
}

#[test]
fn an_update_killed_at_a_removal_is_finished_by_the_next() {
    if strace_works() {
        strike_all(
            &moved(),
            INSTALL,
            Strike::Kill,
            &[("/^unlink", 1), ("rmdir", 2)],
        );
    }
}

#[test]
fn an_install_on_a_full_disk_is_told_and_got_over() {
    if strace_works() {
        let calls = [("write", 3), ("/^mkdir", 2), ("openat", 25)];
        strike_all(&fixture(None), INSTALL, Strike::Full, &calls);
    }
}

#[test]
fn an_update_on_a_full_disk_is_told_and_got_over() {
    if strace_works() {
        let calls = [
            ("/^rename", 3),
            ("/^unlink", 2),
            ("copy_file_range", 2),
            ("fsync", 2),
        ];
        strike_all(&moved(), INSTALL, Strike::Full, &calls);
    }
}
