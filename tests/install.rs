//! `vibe install`: from manifest to slots.

use crate::support::{command, read, run, slot, vibe};
use vibe_core::hook::Phase;
use vibe_testkit::{PackageBuilder, World};

const COUNT: &str = "echo run >> counter\n";

#[test]
fn install_places_what_is_required_and_the_second_run_writes_nothing() {
    let world = World::new();
    PackageBuilder::new("org.example/core", "1.2.0")
        .file("core.md", "core\n")
        .publish(&world.registry());
    PackageBuilder::new("org.example/lint", "2.1.0")
        .depends("org.example/core", "^1")
        .file("lint.md", "lint\n")
        .hook(Phase::PostInstall, COUNT)
        .publish(&world.registry());
    world.require(&[("org.example/lint", "^2")]);
    vibe(&world, &["install"]).expect(0);
    let lint = slot(&world, "org.example/lint", "2.1.0");
    assert_eq!(read(lint.join("lint.md")), "lint\n");
    assert_eq!(read(lint.join("counter")), "run\n");
    assert_eq!(
        read(slot(&world, "org.example/core", "1.2.0").join("core.md")),
        "core\n"
    );
    let before = world.snapshot();
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
    before.assert_unchanged(&world.snapshot());
}

#[test]
fn the_number_of_jobs_changes_nothing_but_how_much_is_done_at_a_time() {
    let world = |jobs: &[&str]| {
        let world = World::new();
        for number in 0..12 {
            PackageBuilder::new(&format!("org.example/p{number}"), "1.0.0")
                .file("text.md", format!("{number}\n"))
                .publish(&world.registry());
        }
        let ids: Vec<String> = (0..12)
            .map(|number| format!("org.example/p{number}"))
            .collect();
        let requires: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), "^1")).collect();
        world.require(&requires);
        vibe(&world, &[&["install"], jobs].concat()).expect(0);
        world
    };
    let (one, many) = (world(&["-j", "1"]), world(&["--jobs", "16"]));
    let settled = |world: &World| crate::support::outside_state(world).ignoring_times();
    settled(&one).assert_unchanged(&settled(&many));
    let mut asked = command(&one, &["install"]);
    run(asked.env("VIBE_JOBS", "none"))
        .expect(2)
        .stderr_has("VIBE_JOBS has to be a number from 1, but it is `none`");
}
