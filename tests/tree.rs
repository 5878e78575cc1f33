//! `vibe tree`: which packages require which.

use crate::support::{Run, command, run, slot, vibe};
use vibe_core::hook::Phase;
use vibe_testkit::{PackageBuilder, World};

/// A project that requires `lint` and `format`, which both require `core`; one install hook fails.
fn world() -> World {
    let world = World::new();
    PackageBuilder::new("org.example/core", "1.2.0")
        .depends("org.example/words", "*")
        .publish(&world.registry());
    PackageBuilder::new("org.example/words", "0.1.0").publish(&world.registry());
    PackageBuilder::new("org.example/format", "2.0.0")
        .depends("org.example/core", "^1")
        .publish(&world.registry());
    PackageBuilder::new("org.example/lint", "10.0.0")
        .depends("org.example/core", "^1.1")
        .hook(Phase::PostInstall, "exit 3\n")
        .publish(&world.registry());
    world.require(&[("org.example/lint", "^10"), ("org.example/format", "*")]);
    world
}

fn installed() -> World {
    let world = world();
    vibe(&world, &["install"]).expect(5);
    world
}

/// A run in a locale that is UTF-8.
fn drawn(world: &World, arguments: &[&str]) -> Run {
    run(command(world, arguments).env("LC_ALL", "en_GB.UTF-8"))
}

#[test]
fn a_tree_starts_at_the_project_and_draws_each_package_once() {
    let world = installed();
    let before = world.snapshot();
    let shown = drawn(&world, &["tree"]).expect(0);
    insta::assert_snapshot!(shown.stdout, @r"
    world
    ├── org.example/format 2.0.0
    │   └── org.example/core 1.2.0
    │       └── org.example/words 0.1.0
    └── org.example/lint 10.0.0  post-install owed
        └── org.example/core 1.2.0 (*)
    ");
    assert_eq!(shown.stderr, "");
    before.assert_unchanged(&world.snapshot());
    let plain = vibe(&world, &["tree", "--depth", "1"]).expect(0);
    insta::assert_snapshot!(plain.stdout, @r"
    world
    |-- org.example/format 2.0.0
    `-- org.example/lint 10.0.0  post-install owed
    ");
}

#[test]
fn a_tree_can_start_at_packages_and_be_turned_round() {
    let world = installed();
    let core = drawn(&world, &["tree", "org.example/core"]).expect(0);
    insta::assert_snapshot!(core.stdout, @r"
    org.example/core 1.2.0
    └── org.example/words 0.1.0
    ");
    let turned = drawn(&world, &["tree", "--invert", "org.example/core"]).expect(0);
    insta::assert_snapshot!(turned.stdout, @r"
    org.example/core 1.2.0
    ├── org.example/format 2.0.0
    │   └── world (this project)
    └── org.example/lint 10.0.0  post-install owed
        └── world (this project)
    ");
    let unknown = vibe(&world, &["tree", "org.example/cor"]).expect(1);
    insta::assert_snapshot!(unknown.stderr, @r"
    error: org.example/cor is not installed in this project
    hint: did you mean org.example/core?
    ");
}

#[test]
fn a_tree_says_what_is_not_there() {
    let world = installed();
    std::fs::remove_dir_all(slot(&world, "org.example/words", "0.1.0")).unwrap();
    world.require(&[("org.example/core", "*"), ("org.example/new", "*")]);
    let shown = vibe(&world, &["tree"]).expect(0);
    insta::assert_snapshot!(shown.stdout, @r"
    world
    |-- org.example/core 1.2.0
    |   `-- org.example/words 0.1.0  not installed
    `-- org.example/new (not in vibe.lock)
    ");
}

#[test]
fn the_json_of_a_tree_is_a_graph() {
    let world = installed();
    let ran = vibe(&world, &["tree", "--json", "org.example/lint"]).expect(0);
    let result = &ran.json()["result"];
    assert_eq!(result["roots"], serde_json::json!([]));
    let packages = result["packages"].as_array().unwrap();
    let edges: Vec<String> = packages
        .iter()
        .map(|package| format!("{} {}", package["id"], package["dependencies"]))
        .collect();
    assert_eq!(
        edges,
        [
            r#""org.example/core" ["org.example/words"]"#,
            r#""org.example/lint" ["org.example/core"]"#,
            r#""org.example/words" []"#,
        ]
    );
    assert_eq!(packages[1]["phases"][0]["state"], "owed");
    let whole = vibe(&world, &["tree", "--json"]).expect(0).json();
    let roots = serde_json::json!([
        { "name": "world", "dependencies": ["org.example/format", "org.example/lint"] }
    ]);
    assert_eq!(whole["result"]["roots"], roots);
}

#[test]
fn without_a_lock_a_tree_says_what_to_do() {
    let world = world();
    let shown = vibe(&world, &["tree"]).expect(0);
    assert_eq!(shown.stdout, "no packages are installed\n");
    shown.stderr_has("note: vibe.lock is missing; `vibe install` installs");
    assert_eq!(world.snapshot().entries.len(), 1);
}

/// The lock of 20 layers of 100 packages, where each requires ten of the next layer.
fn layered() -> (Vec<String>, String) {
    const LAYERS: usize = 20;
    const WIDE: usize = 100;
    let id = |layer: usize, n: usize| format!("org.layer-{layer:02}/p{n:03}");
    let mut text = "version = 1\n".to_owned();
    for (layer, n) in (0..LAYERS).flat_map(|layer| (0..WIDE).map(move |n| (layer, n))) {
        let mut below: Vec<String> = (0..10)
            .filter(|_| layer + 1 < LAYERS)
            .map(|k| format!("\"{}\"", id(layer + 1, (n * 7 + k * 11) % WIDE)))
            .collect();
        below.sort();
        text += &format!(
            "\n[[package]]\nid = \"{}\"\nversion = \"1.0.0\"\nsource = \"dir+../registry\"\n",
            id(layer, n)
        );
        if !below.is_empty() {
            text += &format!("dependencies = [{}]\n", below.join(", "));
        }
    }
    ((0..WIDE).map(|n| id(0, n)).collect(), text)
}

#[test]
fn a_tree_of_two_thousand_packages_has_no_more_lines_than_requirements() {
    let world = World::new();
    let (first, lock) = layered();
    let requires: Vec<(&str, &str)> = first.iter().map(|id| (id.as_str(), "*")).collect();
    world.require(&requires);
    world.write("vibe.lock", &lock);
    let shown = vibe(&world, &["tree"]).expect(0);
    let packages: std::collections::BTreeSet<&str> = shown
        .stdout
        .lines()
        .filter_map(|line| {
            line.split_once("org.")
                .map(|(_, name)| name.split(' ').next().unwrap())
        })
        .collect();
    assert_eq!(packages.len(), 2_000);
    // The project, what it requires, and what each package but those of the last layer requires.
    assert_eq!(shown.stdout.lines().count(), 1 + 100 + 1_900 * 10);
    let last = "org.layer-19/p000";
    let why = vibe(&world, &["why", last]).expect(0);
    assert_eq!(why.stdout.lines().count(), 1 + 10 * 20, "{}", why.stdout);
    let turned = vibe(&world, &["tree", "--invert", "--depth", "2", last]).expect(0);
    assert!(turned.stdout.lines().count() > 20, "{}", turned.stdout);
}

#[test]
fn a_chain_of_ten_thousand_packages_is_followed_to_its_end() {
    const LENGTH: usize = 10_000;
    let world = World::new();
    let id = |n: usize| format!("org.example/n{n:05}");
    let package = |n: usize| {
        let head = format!("\n[[package]]\nid = \"{}\"\nversion = \"1.0.0\"\n", id(n));
        match n + 1 < LENGTH {
            true => format!(
                "{head}source = \"dir+r\"\ndependencies = [\"{}\"]\n",
                id(n + 1)
            ),
            false => format!("{head}source = \"dir+r\"\n"),
        }
    };
    let packages: String = (0..LENGTH).map(package).collect();
    world.write("vibe.lock", &format!("version = 1\n{packages}"));
    world.require(&[(&id(0), "*")]);
    let drawn = vibe(&world, &["tree"]).expect(0);
    assert_eq!(drawn.stdout.lines().count(), 102);
    drawn.stdout_has("nothing below 100 steps is drawn; name a package to start there");
    let last = id(LENGTH - 1);
    let why = vibe(&world, &["why", &last]).expect(0);
    assert_eq!(why.stdout.lines().count(), 1 + LENGTH);
    assert!(why.stdout.ends_with(&format!("requires {last}\n")));
    let tree = vibe(&world, &["tree", "--json"]).expect(0).json();
    assert_eq!(tree["result"]["packages"].as_array().unwrap().len(), LENGTH);
}
