//! `vibe runs`: evidence of past runs.

use crate::support::{
    command, knows_process, newest_run, read, redacted, slot, start, vibe, wait, wait_until,
};
use vibe_core::hook::Phase;
use vibe_testkit::{PackageBuilder, World};

const LINT: &str = "org.example/lint";

/// A project that requires a package with the post-install script `post`.
fn world(post: &str) -> World {
    let world = World::new();
    PackageBuilder::new(LINT, "1.0.0")
        .hook(Phase::PostInstall, post)
        .publish(&world.registry());
    world.require(&[(LINT, "^1")]);
    world
}

/// The names of the kept runs, the newest first.
fn names(world: &World) -> Vec<String> {
    let listed = vibe(world, &["runs", "list"]).expect(0).stdout;
    listed
        .lines()
        .map(|line| line.split(' ').next().unwrap().to_owned())
        .collect()
}

#[test]
fn a_run_is_shown_with_its_plan_and_its_hooks() {
    let world = world("echo done\n");
    let mut install = command(&world, &["install"]);
    install.env("MY_TOKEN", "secret");
    wait(start(&mut install)).expect(0);
    let shown = vibe(&world, &["runs", "show"]).expect(0);
    insta::assert_snapshot!(redacted(&world, &shown.stdout), @r"
    run      [run]
    command  vibe install
    version  0.1.0
    started  [instant]
    took     [time]
    outcome  done
    plan:
        place org.example/lint 1.0.0 (2 files): new in this project
        run the post-install script of org.example/lint 1.0.0 (hooks/post-install.sh, sha256:[digest]): install
    install hooks:
        org.example/lint 1.0.0  post-install  hooks/post-install.sh  ok  [time]  org.example.lint.post-install.log
    variables that install hooks did not get:
        MY_TOKEN
    ");
    assert!(!shown.stdout.contains("secret"));
}

#[test]
fn runs_are_listed_the_newest_first_and_shown_by_name() {
    let world = world("[ -e \"$VIBE_PROJECT_ROOT/good\" ] || exit 3\n");
    vibe(&world, &["install"]).expect(5);
    world.write("good", "yes");
    vibe(&world, &["install"]).expect(0);
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
    let listed = vibe(&world, &["runs", "list"]).expect(0).stdout;
    let outcomes: Vec<&str> = listed
        .lines()
        .map(|line| line.split_whitespace().nth(1).unwrap())
        .collect();
    assert_eq!(outcomes, ["done", "flagged"], "{listed}");
    let names = names(&world);
    assert!(names[0] > names[1], "{names:?}");
    for (name, outcome) in names.iter().zip(outcomes) {
        vibe(&world, &["runs", "show", name])
            .expect(0)
            .stdout_has(&format!("run      {name}\n"))
            .stdout_has(&format!("outcome  {outcome}\n"));
    }
    let newest = vibe(&world, &["runs", "show"]).expect(0).stdout;
    assert_eq!(
        newest,
        vibe(&world, &["runs", "show", &names[0]]).expect(0).stdout
    );
}

#[test]
fn a_failed_run_is_listed_in_columns_with_why_at_the_end() {
    let world = World::new();
    PackageBuilder::new(LINT, "1.0.0")
        .hook(Phase::PreInstall, "exit 3\n")
        .publish(&world.registry());
    world.require(&[(LINT, "^1")]);
    vibe(&world, &["install"]).expect(4);
    let listed = vibe(&world, &["runs", "list"]).expect(0);
    insta::assert_snapshot!(redacted(&world, &listed.stdout), @"[run]  failed  [time]  vibe install  the pre-install script of org.example/lint 1.0.0 failed (exit 3)");
    vibe(&world, &["runs", "show"]).expect(0).stdout_has(
        "\noutcome  failed: the pre-install script of org.example/lint 1.0.0 failed (exit 3)\n",
    );
}

#[test]
fn a_killed_run_is_not_finished() {
    // It ends with the world, should the kill come before its process was noted.
    let world = world("echo on > started; while [ -e started ]; do sleep 0.02; done\n");
    let mut child = start(&mut command(&world, &["install"]));
    let marker = slot(&world, LINT, "1.0.0").join("started");
    wait_until("the start of the install hook", || marker.exists());
    wait_until("a note of its process", || knows_process(&world));
    child.kill().unwrap();
    wait(child);
    vibe(&world, &["runs", "list"])
        .expect(0)
        .stdout_has("  not finished  ");
    vibe(&world, &["runs", "show"])
        .expect(0)
        .stdout_has("\noutcome  not finished\n");
    let document = vibe(&world, &["runs", "show", "--json"]).expect(0).json();
    assert_eq!(document["result"]["outcome"], serde_json::Value::Null);
    // The next run ends what the killed one left running.
    vibe(&world, &["install", "--no-hooks"]).expect(0);
}

#[test]
fn a_run_that_is_not_kept_is_refused_and_no_name_leads_out_of_the_runs() {
    let world = world("true\n");
    vibe(&world, &["install"]).expect(0);
    world.write(
        "run.json",
        &read(
            world
                .project()
                .join("vibedeps/.state/runs")
                .join(&names(&world)[0])
                .join("run.json"),
        ),
    );
    for name in ["20200101T000000000Z-1", "../../..", "", "."] {
        let refused = vibe(&world, &["runs", "show", name]).expect(1);
        assert_eq!(
            refused.stderr,
            format!(
                "error: no run `{name}` is kept\nhint: see which runs are kept: vibe runs list\n"
            )
        );
    }
}

/// The runs whose evidence is kept.
const KEPT: usize = 50;

/// Makes `count` runs like the newest one, which began in `year`, a millisecond after each other.
fn make_runs(world: &World, year: u32, count: usize) {
    let newest = newest_run(world);
    let own_name = newest.file_name().unwrap().to_str().unwrap().to_owned();
    for number in 0..count {
        let name = format!("{year}0101T000000{number:03}Z-1");
        let copy = newest.with_file_name(&name);
        std::fs::create_dir(&copy).unwrap();
        for entry in std::fs::read_dir(&newest).unwrap() {
            let entry = entry.unwrap();
            let text = read(entry.path()).replace(&own_name, &name);
            std::fs::write(copy.join(entry.file_name()), text).unwrap();
        }
    }
}

/// The directories of runs.
fn directories(world: &World) -> Vec<String> {
    let runs = std::fs::read_dir(world.project().join("vibedeps/.state/runs")).unwrap();
    let names = runs.map(|run| run.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.collect();
    names.sort();
    names
}

#[test]
fn the_newest_runs_are_kept_with_their_logs() {
    let world = world("echo done\n");
    vibe(&world, &["install"]).expect(0);
    make_runs(&world, 2001, KEPT + 10);
    vibe(&world, &["hooks", "run", LINT, "--force"]).expect(0);
    let left = directories(&world);
    assert_eq!(left.len(), KEPT);
    assert_eq!(left[0], "20010101T000000012Z-1");
    assert_eq!(names(&world).len(), KEPT);
    let listed = vibe(&world, &["runs", "list", "--json"]).expect(0).json();
    let runs = listed["result"].as_array().unwrap();
    let named: Vec<&str> = runs
        .iter()
        .rev()
        .map(|run| run["run"].as_str().unwrap())
        .collect();
    assert_eq!(named, left);
    for run in left {
        let log = format!("vibedeps/.state/runs/{run}/org.example.lint.post-install.log");
        assert_eq!(world.read(&log), "done\n");
    }
}

#[test]
fn runs_that_fail_are_not_kept_without_end() {
    let world = world("echo done\n");
    vibe(&world, &["install"]).expect(0);
    make_runs(&world, 2001, KEPT + 10);
    PackageBuilder::new("org.example/bad", "1.0.0")
        .hook(Phase::PreInstall, "exit 3\n")
        .publish(&world.registry());
    vibe(&world, &["install", "org.example/bad"]).expect(4);
    assert_eq!(directories(&world).len(), KEPT);
    vibe(&world, &["runs", "show"])
        .expect(0)
        .stdout_has("\noutcome  failed");
}

#[test]
fn a_run_that_the_clock_puts_before_all_others_keeps_its_evidence() {
    let world = world("echo done\n");
    vibe(&world, &["install"]).expect(0);
    make_runs(&world, 2999, KEPT + 10);
    let before = directories(&world);
    let ran = vibe(&world, &["hooks", "run", LINT, "--force", "--json"]).expect(0);
    let name = ran.json()["result"]["run"].as_str().unwrap().to_owned();
    let left = directories(&world);
    assert!(!before.contains(&name) && left.contains(&name), "{left:?}");
    assert_eq!(left.len(), KEPT);
    vibe(&world, &["runs", "show", &name])
        .expect(0)
        .stdout_has("\noutcome  done\n");
}

#[test]
fn the_last_log_of_a_hook_that_is_still_due_is_kept() {
    let world = world("echo why it failed; exit 3\n");
    PackageBuilder::new("org.example/other", "1.0.0")
        .hook(Phase::PostInstall, "true\n")
        .publish(&world.registry());
    vibe(&world, &["install", "org.example/other"]).expect(5);
    let flagged = newest_run(&world);
    let other = ["hooks", "run", "org.example/other", "--force"];
    vibe(&world, &other).expect(0);
    make_runs(&world, 2999, KEPT + 10);
    vibe(&world, &other).expect(0);
    assert_eq!(directories(&world).len(), KEPT);
    assert!(flagged.is_dir());
    vibe(&world, &["hooks", "log", LINT])
        .expect(0)
        .stdout_has("why it failed");
    // Once it is no longer due, its log goes as all others.
    world.require(&[("org.example/other", "^1")]);
    vibe(&world, &["install"]).expect(0);
    assert!(!flagged.exists());
    assert_eq!(directories(&world).len(), KEPT);
}
