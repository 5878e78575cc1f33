//! Real packages of a public registry, where this machine has them.

use std::path::{Path, PathBuf};

use crate::support::{corpus, vibe};
use vibe_testkit::{EntryKind, TreeSnapshot, World};

/// The packages that redbook 1.0.0 needs, itself included.
const PACKAGES: usize = 27;
/// Their files.
const FILES: usize = 180;

/// A world whose registry is the corpus, by a relative link, or `None` where there is none.
fn world(constraint: &str) -> Option<World> {
    let corpus = corpus()?;
    let world = World::new();
    std::fs::remove_dir(world.registry()).unwrap();
    std::os::unix::fs::symlink(corpus.join("registry-world"), world.registry()).unwrap();
    world.require(&[("org.vibevm.world/redbook", constraint)]);
    Some(world)
}

/// The slots of a project: id, version and directory.
fn slots(world: &World) -> Vec<(String, String, PathBuf)> {
    let mut found = Vec::new();
    for package in std::fs::read_dir(world.project().join("vibedeps")).unwrap() {
        let package = package.unwrap();
        let name = package.file_name().into_string().unwrap();
        if name.starts_with('.') || name == "boot" {
            continue;
        }
        for version in std::fs::read_dir(package.path()).unwrap() {
            let version = version.unwrap();
            let text = version.file_name().into_string().unwrap();
            found.push((name.clone(), text, version.path()));
        }
    }
    found
}

/// Names, kinds, bytes and exec bits of a tree, without the record.
fn content(directory: &Path) -> TreeSnapshot {
    let mut snapshot = TreeSnapshot::of(directory).ignoring_times();
    snapshot.entries.retain(|path, _| path != ".vibe-slot.toml");
    for entry in snapshot.entries.values_mut() {
        entry.mode &= 0o100;
    }
    snapshot
}

#[test]
fn real_packages_install_byte_for_byte_and_the_second_run_writes_nothing() {
    let Some(world) = world("=1.0.0") else { return };
    vibe(&world, &["install"]).expect(0);
    let slots = slots(&world);
    assert_eq!(slots.len(), PACKAGES);
    let mut files = 0;
    for (name, version, slot) in &slots {
        let name = name.strip_prefix("org.vibevm.world.").unwrap();
        let published = world
            .registry()
            .join(format!("org.vibevm.world/{name}/v{version}"));
        let placed = content(slot);
        content(&published).assert_unchanged(&placed);
        files += placed
            .entries
            .values()
            .filter(|entry| entry.kind == EntryKind::File)
            .count();
    }
    assert_eq!(files, FILES);
    let before = world.snapshot();
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
    vibe(&world, &["install", "--locked"]).expect(0);
    vibe(&world, &["verify"]).expect(0);
    before.assert_unchanged(&world.snapshot());
}

#[test]
fn versions_move_back_and_forth_and_what_nothing_needs_is_pruned() {
    let Some(world) = world("=1.0.0") else { return };
    vibe(&world, &["install"]).expect(0);
    let first = settled(&world);
    world.require(&[("org.vibevm.world/redbook", "=0.2.0")]);
    vibe(&world, &["install"]).expect(0);
    let versions = |world: &World| -> Vec<String> {
        let of_redbook = |(name, version, _): (String, String, PathBuf)| {
            (name == "org.vibevm.world.redbook").then_some(version)
        };
        slots(world).into_iter().filter_map(of_redbook).collect()
    };
    assert_eq!(versions(&world), ["0.2.0"]);
    vibe(&world, &["verify"]).expect(0);
    world.require(&[("org.vibevm.world/redbook", "=1.0.0")]);
    vibe(&world, &["install"]).expect(0);
    assert_eq!(versions(&world), ["1.0.0"]);
    first.assert_unchanged(&settled(&world));
}

#[test]
fn the_lock_of_real_packages_is_the_same_wherever_the_project_lies() {
    let Some(one) = world("=1.0.0") else { return };
    let Some(two) = world("=1.0.0") else { return };
    vibe(&one, &["install"]).expect(0);
    vibe(&two, &["install"]).expect(0);
    assert_ne!(one.root(), two.root());
    assert_eq!(one.read("vibe.lock"), two.read("vibe.lock"));
}

#[test]
fn the_tree_of_real_packages_has_each_of_them_and_says_why_it_is_there() {
    let Some(world) = world("=1.0.0") else { return };
    vibe(&world, &["install"]).expect(0);
    let before = world.snapshot();
    let tree = vibe(&world, &["tree", "--json"]).expect(0).json();
    let packages = tree["result"]["packages"].as_array().unwrap();
    assert_eq!(packages.len(), PACKAGES);
    let drawn = vibe(&world, &["tree"]).expect(0).stdout;
    let edges: usize = packages
        .iter()
        .map(|package| package["dependencies"].as_array().unwrap().len())
        .sum();
    // The project, what it requires, and every requirement of a package once.
    assert_eq!(drawn.lines().count(), 2 + edges);
    for package in packages {
        let id = package["id"].as_str().unwrap();
        assert!(drawn.contains(&format!("{id} ")), "{id}");
        let why = vibe(&world, &["why", "--json", id]).expect(0).json();
        let chains = why["result"]["chains"].as_array().unwrap();
        assert!(!chains.is_empty(), "{id}");
        for chain in chains {
            let steps = chain.as_array().unwrap();
            assert_eq!(steps.first().unwrap()["requirer"], "world");
            assert_eq!(steps.last().unwrap()["package"], id);
            assert!(steps.iter().all(|step| step["requirement"].is_string()));
        }
        vibe(&world, &["show", id]).expect(0).stdout_has(id);
    }
    vibe(&world, &["outdated", "--all"]).expect(0);
    vibe(&world, &["list", "--items"]).expect(0);
    before.assert_unchanged(&world.snapshot());
}

/// The project but for times and machine state.
fn settled(world: &World) -> TreeSnapshot {
    crate::support::outside_state(world).ignoring_times()
}
