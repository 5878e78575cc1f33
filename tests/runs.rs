//! `vibe runs`: evidence of past runs.

use crate::support::{command, read, redacted, slot, start, vibe, wait, wait_until};
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
        place org.example.lint/1.0.0 (2 files): new in this project
        run the post-install script of org.example.lint/1.0.0 (hooks/post-install.sh, sha256:[digest]): install
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
    let world = world("echo on > started; while :; do read -t 1 -u 9 9<> <(:) || :; done\n");
    let mut child = start(&mut command(&world, &["install"]));
    let marker = slot(&world, LINT, "1.0.0").join("started");
    wait_until("the start of the install hook", || marker.exists());
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
