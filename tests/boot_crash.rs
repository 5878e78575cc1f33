//! Boot text under stress: runs that are killed, plans held against deeds, and what a run looks at.

use std::collections::BTreeSet;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use vibe_core::hook::Phase;
use vibe_testkit::{PackageBuilder, TreeSnapshot, World};

use crate::boot::{BEGIN, END, INDEX, RECORD, STATIC, exists, remove, settled, three, with_boot};
use crate::support::{
    command, committed, copy_of, lines, read, run, slot, strace, strace_works, vibe,
};

/// Runs a command that is killed at each call of the kind in turn, and looks at what `then` makes of
/// it: as `good`, or as before where the run had not come to its commit and `then` does not ask for
/// it again.
fn killed_at_each(call: &str, before: &World, arguments: &[&str], then: &[&str]) {
    let (old, good) = (committed(before), outcome(before, arguments));
    assert!(old != good);
    for number in (1..).step_by(2) {
        let world = copy_of(before);
        let inject = format!("inject={call}:signal=KILL:when={number}");
        let options = ["-e", &*format!("trace={call}"), "-e", &inject];
        let log = world.home().join("calls");
        let hit = run(&mut strace(&command(&world, arguments), &log, &options));
        let place = format!("{call} number {number} of {arguments:?}");
        if !read(&log).contains("killed by SIGKILL") {
            assert_eq!(hit.code, 0, "{place}: {}", hit.stderr);
            assert!(number > 5, "only {number} of {call}");
            return;
        }
        vibe(&world, then).expect(0);
        let now = committed(&world);
        let is_old = now == old && arguments != then;
        assert!(is_old || now == good, "after {place}:\n{}", good.diff(&now));
        settled(&world);
    }
}

/// What `before` ends with where nothing goes wrong.
fn outcome(before: &World, arguments: &[&str]) -> TreeSnapshot {
    let world = copy_of(before);
    vibe(&world, arguments).expect(0);
    committed(&world)
}

/// [`three`] in a project with files of the user's.
fn with_files() -> World {
    let world = three();
    world.write("AGENTS.md", "# Mine\n");
    world.write("CLAUDE.md", "# Claude\r\n\r\nNo end");
    world
}

/// The same, installed.
fn installed() -> World {
    let world = with_files();
    vibe(&world, &["install"]).expect(0);
    world.write("AGENTS.md", &format!("{}Below.\n", world.read("AGENTS.md")));
    vibe(&world, &["install"]).expect(0);
    world
}

#[test]
fn an_install_that_is_killed_is_finished_with_all_that_agents_see() {
    if strace_works() {
        killed_at_each("/^rename", &with_files(), &["install"], &["install"]);
    }
}

#[test]
fn an_install_whose_hooks_make_and_change_text_is_finished_after_a_kill() {
    if !strace_works() {
        return;
    }
    let world = with_files();
    let more = with_boot("org.e/hooked", "Published.\n", "link = \"static\"");
    more.hook(Phase::PreInstall, "echo Made. > boot/notes.md\n")
        .hook(Phase::PostInstall, "echo Changed. > boot/notes.md\n")
        .publish(&world.registry());
    world.require(&[("org.c/more", "^1"), ("org.e/hooked", "^1")]);
    killed_at_each("/^rename", &world, &["install"], &["install"]);
}

#[test]
fn an_update_that_is_killed_is_finished_with_all_that_agents_see() {
    if !strace_works() {
        return;
    }
    let world = installed();
    for (id, boot) in [("org.b/base", "link = \"static\""), ("org.c/more", "")] {
        PackageBuilder::new(id, "1.1.0")
            .manifest_extra(&format!("[boot]\nsource = \"notes.md\"\n{boot}\n"))
            .file("notes.md", "Newer.\n")
            .publish(&world.registry());
    }
    for call in ["/^rename", "/^unlink"] {
        killed_at_each(call, &world, &["update"], &["update"]);
    }
}

#[test]
fn an_uninstall_that_is_killed_leaves_all_or_nothing_of_what_agents_see() {
    if !strace_works() {
        return;
    }
    let world = installed();
    for arguments in [
        &["uninstall", "org.a/top"][..],
        &["uninstall", "org.a/top", "org.c/more"],
    ] {
        for call in ["/^rename", "/^unlink"] {
            killed_at_each(call, &world, arguments, &["install"]);
        }
    }
}

/// What a project may have gone through before a run.
#[derive(Debug, Clone)]
struct Past {
    /// What was installed, and what is required now, by the place in [`PACKAGES`].
    installed: BTreeSet<usize>,
    required: BTreeSet<usize>,
    /// What happened meanwhile.
    mishaps: BTreeSet<usize>,
    harness: Option<&'static str>,
}

const PACKAGES: [&str; 5] = [
    "org.a/top",
    "org.b/base",
    "org.c/more",
    "org.d/silent",
    "org.e/late",
];

/// Something that happens to an installed project.
type Mishap = fn(&World);

const MISHAPS: [Mishap; 8] = [
    |world| edit(world, STATIC, |text| format!("{text}edited\n")),
    |world| edit(world, "AGENTS.md", |text| text.replace("Before", "After")),
    |world| edit(world, "AGENTS.md", |text| format!("Above.\n{text}Below.")),
    |world| gone(world, INDEX),
    |world| gone(world, "AGENTS.md"),
    |world| gone(world, "vibedeps/.state/fresh"),
    |world| world.write("CLAUDE.md", "# Claude\n"),
    |world| {
        let _ = std::fs::remove_dir_all(slot(world, "org.b/base", "1.0.0"));
    },
];

fn edit(world: &World, path: &str, how: impl Fn(&str) -> String) {
    if exists(world, path) {
        let text = how(&world.read(path));
        world.write(path, &text);
    }
}

fn gone(world: &World, path: &str) {
    if exists(world, path) {
        remove(world, path);
    }
}

fn past() -> impl Strategy<Value = Past> {
    let some = || proptest::collection::btree_set(0..PACKAGES.len(), 0..4);
    let mishaps = proptest::collection::btree_set(0..MISHAPS.len(), 0..3);
    let harness = proptest::option::of(Just("gemini-cli"));
    (some(), some(), mishaps, harness).prop_map(|(installed, required, mishaps, harness)| Past {
        installed,
        required,
        mishaps,
        harness,
    })
}

fn require(world: &World, packages: &BTreeSet<usize>) {
    let requires: Vec<(&str, &str)> = packages.iter().map(|at| (PACKAGES[*at], "^1")).collect();
    world.require(&requires);
}

/// What a run says of what agents see.
fn projected(world: &World, arguments: &[&str]) -> (serde_json::Value, String) {
    let ran = vibe(world, arguments).expect(0);
    let document = ran.json();
    let result = &document["result"];
    assert!(result.is_object(), "{document}");
    (
        result["projected"].clone(),
        result["lock-changed"].to_string(),
    )
}

#[test]
fn a_dry_run_says_what_a_run_then_writes() {
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::with_cases(20)
    });
    let outcome = runner.run(&past(), |past| {
        let world = three();
        with_boot("org.e/late", "Late.\n", "link = \"static\"").publish(&world.registry());
        require(&world, &past.installed);
        vibe(&world, &["install"]).expect(0);
        require(&world, &past.required);
        if let Some(harness) = past.harness {
            let named = format!("name = \"world\"\nharnesses = [\"{harness}\"]\n");
            edit(&world, "vibe.toml", |text| {
                text.replace("name = \"world\"\n", &named)
            });
        }
        past.mishaps.iter().for_each(|at| MISHAPS[*at](&world));
        let before = world.snapshot();
        let dry = projected(&world, &["install", "--dry-run", "--json"]);
        before.assert_unchanged(&world.snapshot());
        let users = exists(&world, "AGENTS.md").then(|| around(&world.read("AGENTS.md")));
        let done = projected(&world, &["install", "--json"]);
        prop_assert_eq!(dry, done);
        if let Some(users) = users.filter(|users| !users.trim().is_empty()) {
            let now = around(&world.read("AGENTS.md"));
            prop_assert_eq!(now.trim_end(), users.trim_end());
        }
        settled(&world);
        let has_text = past
            .required
            .iter()
            .any(|at| PACKAGES[*at] != "org.d/silent");
        prop_assert_eq!(exists(&world, RECORD), has_text);
        Ok(())
    });
    outcome.unwrap();
}

/// What stands around the block.
fn around(text: &str) -> String {
    match (text.find(BEGIN), text.find(END)) {
        (Some(begin), Some(end)) => {
            let after = text[end + END.len()..].trim_start_matches('\n');
            format!("{}{after}", &text[..begin])
        }
        _ => text.to_owned(),
    }
}

/// The calls of a run, but for those that only read on.
fn calls(world: &World, arguments: &[&str]) -> Vec<String> {
    let log = world.home().join("calls");
    run(&mut strace(&command(world, arguments), &log, &[])).expect(0);
    let is_call = |line: &String| !line.contains("+++") && !line.contains("resumed>");
    lines(log).into_iter().filter(is_call).collect()
}

#[test]
fn a_run_with_nothing_to_do_looks_at_a_few_files_more_and_into_no_slot() {
    if !strace_works() {
        return;
    }
    let world = installed();
    let calls = calls(&world, &["install"]);
    assert!(calls.len() <= 150 + 2 * 4, "{} calls", calls.len());
    let opened = calls.iter().filter(|call| call.contains(" open"));
    let inside = |call: &&String| {
        ["/org.", "AGENTS", "boot/"]
            .iter()
            .any(|part| call.contains(part))
    };
    let inside: Vec<&String> = opened.filter(inside).collect();
    assert!(inside.is_empty(), "{inside:?}");
    for writing in [
        "O_WRONLY", "O_RDWR", " rename", " unlink", " mkdir", " flock",
    ] {
        let found = calls.iter().find(|call| call.contains(writing));
        assert_eq!(found, None);
    }
}

#[test]
fn an_update_of_a_silent_package_makes_no_call_on_files_of_other_slots() {
    if !strace_works() {
        return;
    }
    let world = installed();
    PackageBuilder::new("org.d/silent", "1.1.0").publish(&world.registry());
    let calls = calls(&world, &["update"]);
    let is_other = |call: &&String| {
        ["org.a.top/1", "org.b.base/1", "org.c.more/1"]
            .iter()
            .any(|slot| call.contains(&format!("{slot}.0.0/")) && !call.contains(".vibe-slot.toml"))
    };
    let others: Vec<&String> = calls.iter().filter(is_other).collect();
    assert!(others.is_empty(), "{others:?}");
    assert!(calls.iter().any(|call| call.contains("org.d.silent/1.1.0")));
    settled(&world);
}
