//! `vibe install`: from manifest to slots.

use crate::support::{read, slot, vibe};
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
