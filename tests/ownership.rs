//! What is whose: vibe deletes and overwrites only what it placed and what still looks so, and
//! places what is in a package, nothing more.

use std::path::PathBuf;

use crate::support::{committed, outside_state, read, refused, slot, vibe};
use vibe_core::hook::Phase;
use vibe_testkit::{PackageBuilder, TreeSnapshot, World};

fn package(version: &str) -> PackageBuilder {
    PackageBuilder::new("org.example/lint", version)
}

/// A world with org.example/lint 1.0.0 installed: `a.md`, `docs/guide.md`.
fn installed() -> World {
    let world = World::new();
    package("1.0.0")
        .file("a.md", "a\n")
        .file("docs/guide.md", "guide\n")
        .publish(&world.registry());
    world.require(&[("org.example/lint", "^1")]);
    vibe(&world, &["install"]).expect(0);
    world
}

fn lint(world: &World) -> PathBuf {
    slot(world, "org.example/lint", "1.0.0")
}

/// A world whose org.example/lint is the directory `../local`, which moves with each [`publish`].
fn local(first: &PackageBuilder) -> World {
    let world = World::new();
    publish(&world, first);
    let requires = "\"org.example/lint\" = { path = \"../local\" }";
    world.write(
        "vibe.toml",
        &format!("[project]\nname = \"x\"\n[requires.packages]\n{requires}\n"),
    );
    vibe(&world, &["install"]).expect(0);
    world
}

/// Puts the content of `package` in the place of what `../local` held.
fn publish(world: &World, package: &PackageBuilder) {
    let directory = world.root().join("local");
    if directory.exists() {
        std::fs::remove_dir_all(&directory).unwrap();
    }
    package.write(&directory);
}

#[test]
fn files_of_the_user_in_a_slot_survive_install_repair_and_a_refresh() {
    let world = local(
        &package("1.0.0")
            .file("a.md", "1\n")
            .file("docs/old.md", "old\n"),
    );
    let slot = lint(&world);
    std::fs::write(slot.join("mine.md"), "mine\n").unwrap();
    std::fs::write(slot.join("docs/mine.md"), "mine\n").unwrap();
    std::fs::create_dir(slot.join("empty")).unwrap();
    vibe(&world, &["install"]).expect(0);
    vibe(&world, &["verify"]).expect(0);
    vibe(&world, &["verify", "--repair"]).expect(0);
    publish(&world, &package("1.0.0").file("a.md", "2\n"));
    vibe(&world, &["install"]).expect(0);
    vibe(&world, &["reinstall", "--force", "org.example/lint"]).expect(0);
    assert_eq!(read(slot.join("a.md")), "2\n");
    assert!(!slot.join("docs/old.md").exists());
    for path in ["mine.md", "docs/mine.md"] {
        assert_eq!(read(slot.join(path)), "mine\n");
    }
    assert!(slot.join("empty").is_dir());
}

#[test]
fn what_is_not_ours_in_a_pruned_slot_stays_and_is_named() {
    let world = installed();
    let slot = lint(&world);
    std::fs::write(slot.join("docs/mine.md"), "mine\n").unwrap();
    std::fs::write(slot.join("a.md"), "edited\n").unwrap();
    package("1.1.0").publish(&world.registry());
    world.require(&[("org.example/lint", "^1.1")]);
    vibe(&world, &["install"])
        .expect(0)
        .stderr_has("vibedeps/org.example.lint/1.0.0")
        .stderr_has("a.md, docs/mine.md");
    let left: Vec<String> = TreeSnapshot::of(&slot).entries.into_keys().collect();
    assert_eq!(left, ["a.md", "docs", "docs/mine.md"]);
    assert_eq!(read(slot.join("docs/mine.md")), "mine\n");
    assert_eq!(read(slot.join("a.md")), "edited\n");
}

#[test]
fn a_pruned_slot_that_holds_nothing_else_goes_with_its_directory() {
    let world = installed();
    package("1.1.0").publish(&world.registry());
    world.require(&[("org.example/lint", "^1.1")]);
    vibe(&world, &["install"]).expect(0);
    assert!(!lint(&world).exists());
    world.write("vibe.toml", "[project]\nname = \"x\"\n");
    vibe(&world, &["install"]).expect(0);
    assert!(!world.project().join("vibedeps/org.example.lint").exists());
}

#[test]
fn a_new_file_of_the_package_moves_what_lies_in_its_way_aside_and_names_it() {
    let world = local(&package("1.0.0"));
    let slot = lint(&world);
    std::fs::write(slot.join("new.md"), "mine\n").unwrap();
    std::fs::write(slot.join("same.md"), "same\n").unwrap();
    publish(
        &world,
        &package("1.0.0")
            .file("new.md", "theirs\n")
            .file("same.md", "same\n"),
    );
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("new.md.vibe-kept");
    assert_eq!(read(slot.join("new.md")), "theirs\n");
    assert_eq!(read(slot.join("new.md.vibe-kept")), "mine\n");
    assert!(!slot.join("same.md.vibe-kept").exists());
    publish(&world, &package("1.0.0"));
    vibe(&world, &["install"]).expect(0);
    assert!(!slot.join("new.md").exists());
    std::fs::write(slot.join("new.md"), "mine again\n").unwrap();
    publish(&world, &package("1.0.0").file("new.md", "theirs\n"));
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("new.md.vibe-kept.2");
    assert_eq!(read(slot.join("new.md.vibe-kept.2")), "mine again\n");
    assert_eq!(read(slot.join("new.md.vibe-kept")), "mine\n");
    assert_eq!(read(slot.join("new.md")), "theirs\n");
}

#[test]
fn edited_payload_that_the_package_no_longer_has_stays_and_is_named() {
    let world = local(&package("1.0.0").file("a.md", "a\n").file("b.md", "b\n"));
    let slot = lint(&world);
    std::fs::write(slot.join("a.md"), "edited\n").unwrap();
    publish(&world, &package("1.0.0"));
    vibe(&world, &["install"]).expect(0).stderr_has("a.md");
    assert_eq!(read(slot.join("a.md")), "edited\n");
    assert!(!slot.join("b.md").exists());
    vibe(&world, &["verify"]).expect(0);
}

#[cfg(unix)]
#[test]
fn nothing_is_written_or_deleted_through_a_directory_that_became_a_link() {
    let first = package("1.0.0")
        .file("docs/guide.md", "1\n")
        .file("docs/old.md", "old\n");
    let world = local(&first);
    let outside = world.root().join("outside");
    std::fs::rename(lint(&world).join("docs"), &outside).unwrap();
    std::os::unix::fs::symlink(&outside, lint(&world).join("docs")).unwrap();
    let before = TreeSnapshot::of(&outside);
    vibe(&world, &["verify"])
        .expect(3)
        .stdout_has("docs/guide.md");
    publish(&world, &package("1.0.0").file("docs/guide.md", "2\n"));
    vibe(&world, &["install"]).expect(0);
    before.assert_unchanged(&TreeSnapshot::of(&outside));
    let docs = lint(&world).join("docs");
    assert!(docs.is_dir() && !docs.is_symlink());
    assert_eq!(read(docs.join("guide.md")), "2\n");
    std::fs::remove_dir_all(&docs).unwrap();
    std::os::unix::fs::symlink(&outside, &docs).unwrap();
    vibe(&world, &["verify", "--repair"]).expect(0);
    assert!(!docs.is_symlink());
    std::fs::remove_dir_all(&docs).unwrap();
    std::os::unix::fs::symlink(&outside, &docs).unwrap();
    world.write("vibe.toml", "[project]\nname = \"x\"\n");
    vibe(&world, &["install"]).expect(0);
    before.assert_unchanged(&TreeSnapshot::of(&outside));
}

#[test]
fn a_slot_without_a_record_is_adopted_and_what_differs_is_kept() {
    let world = installed();
    let slot = lint(&world);
    std::fs::remove_file(slot.join(".vibe-slot.toml")).unwrap();
    std::fs::write(slot.join("a.md"), "mine\n").unwrap();
    std::fs::write(slot.join("more.md"), "more\n").unwrap();
    let before = TreeSnapshot::of(&slot);
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("a.md.vibe-kept");
    let after = TreeSnapshot::of(&slot);
    assert_eq!(
        before.entries["docs/guide.md"],
        after.entries["docs/guide.md"]
    );
    assert_eq!(before.entries["more.md"], after.entries["more.md"]);
    assert_eq!(read(slot.join("a.md")), "a\n");
    assert_eq!(read(slot.join("a.md.vibe-kept")), "mine\n");
    vibe(&world, &["verify"]).expect(0);
}

#[cfg(unix)]
#[test]
fn a_directory_for_slots_that_is_a_link_is_refused_with_both_ends() {
    let world = installed();
    let outside = world.root().join("outside");
    std::fs::rename(world.project().join("vibedeps"), &outside).unwrap();
    std::os::unix::fs::symlink(&outside, world.project().join("vibedeps")).unwrap();
    let before = TreeSnapshot::of(&outside);
    package("1.1.0").publish(&world.registry());
    world.require(&[("org.example/lint", "^1.1")]);
    for arguments in [&["install"][..], &["verify", "--repair"], &["verify"]] {
        let target = outside.display().to_string();
        refused(&world, arguments, 1, &["vibedeps", &target, "link"]);
    }
    before.assert_unchanged(&TreeSnapshot::of(&outside));
}

#[cfg(unix)]
#[test]
fn a_slot_that_is_a_link_or_a_file_is_refused_and_nothing_behind_it_touched() {
    let world = installed();
    let outside = world.root().join("outside");
    std::fs::rename(lint(&world), &outside).unwrap();
    std::os::unix::fs::symlink(&outside, lint(&world)).unwrap();
    let before = TreeSnapshot::of(&outside);
    std::fs::remove_file(world.project().join("vibedeps/.state/fresh")).unwrap();
    for arguments in [&["install"][..], &["verify", "--repair"], &["verify"]] {
        refused(
            &world,
            arguments,
            1,
            &[
                "org.example.lint/1.0.0",
                "is a link to",
                "replace it by a directory",
            ],
        );
    }
    before.assert_unchanged(&TreeSnapshot::of(&outside));
    std::fs::remove_file(lint(&world)).unwrap();
    std::fs::write(lint(&world), "a file\n").unwrap();
    refused(
        &world,
        &["install"],
        1,
        &["org.example.lint/1.0.0", "is no directory; move it away"],
    );
    assert_eq!(read(lint(&world)), "a file\n");
}

#[test]
fn what_lies_beside_the_slots_is_left_alone_and_not_hidden() {
    let world = installed();
    world.write("vibedeps/notes.txt", "mine\n");
    world.write("vibedeps/org.example.other/notes.txt", "mine\n");
    vibe(&world, &["verify"])
        .expect(0)
        .stdout_has("vibedeps/notes.txt");
    vibe(&world, &["verify", "--repair"]).expect(0);
    world.write("vibe.toml", "[project]\nname = \"x\"\n");
    vibe(&world, &["install"]).expect(0);
    assert_eq!(world.read("vibedeps/notes.txt"), "mine\n");
    assert_eq!(world.read("vibedeps/org.example.other/notes.txt"), "mine\n");
}

#[test]
fn the_files_for_git_keep_payload_in_and_what_is_of_this_machine_out() {
    let world = World::new();
    PackageBuilder::new("org.example/hooked", "1.0.0+build")
        .hook(Phase::PostInstall, "true\n")
        .publish(&world.registry());
    package("1.0.0").publish(&world.registry());
    world.require(&[("org.example/hooked", "^1"), ("org.example/lint", "^1")]);
    vibe(&world, &["install"]).expect(0);
    assert_eq!(world.read("vibedeps/.gitattributes"), "* -text\n");
    let ignore = world.read("vibedeps/.gitignore");
    let rules: Vec<&str> = ignore
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    assert_eq!(rules, ["!*", "/.state/", "/org.example.hooked/1.0.0/"]);

    let text = world.read("vibe.toml");
    world.write(
        "vibe.toml",
        &text.replace("[project]\n", "[project]\nvendor = false\n"),
    );
    vibe(&world, &["install"]).expect(0);
    let ignore = world.read("vibedeps/.gitignore");
    let rules: Vec<&str> = ignore
        .lines()
        .filter(|line| !line.starts_with('#'))
        .collect();
    assert_eq!(rules, ["*", "!/.projections.toml"]);
}

#[test]
fn what_hides_machine_state_from_version_control_is_restored_and_said() {
    let world = World::new();
    package("1.0.0").publish(&world.registry());
    world.require(&[("org.example/lint", "^1")]);
    vibe(&world, &["install"]).expect(0);
    let before = committed(&world);
    for name in [".gitignore", ".gitattributes"] {
        std::fs::remove_file(world.project().join("vibedeps").join(name)).unwrap();
        vibe(&world, &["install"])
            .expect(0)
            .stderr_has("note: vibedeps/.gitignore and .gitattributes were brought up to date");
        before.assert_unchanged(&committed(&world));
        let idle = vibe(&world, &["install"]).expect(0);
        assert_eq!(idle.stderr, "");
    }
}

#[test]
fn a_first_run_that_fails_leaves_nothing_of_this_machine_to_commit() {
    let world = World::new();
    world.require(&[("org.example/nowhere", "*")]);
    vibe(&world, &["install"]).expect(1);
    assert_eq!(world.read("vibedeps/.gitignore"), "!*\n/.state/\n");
}

#[test]
fn a_path_source_ships_neither_git_nor_what_it_ignores() {
    let world = World::new();
    let source = package("1.0.0")
        .file("a.md", "a\n")
        .file(".git/config", "x\n")
        .file("nested/.git", "gitdir: x\n")
        .file(".gitignore", "build/\n*.log\n")
        .file("build/out", "x\n")
        .file("x.log", "x\n")
        .file(".vibeignore", "/secret.md\n")
        .file("secret.md", "x\n")
        .file("docs/secret.md", "kept\n")
        .file("vibedeps/a.b/1.0.0/x", "x\n");
    source.write(&world.root().join("local"));
    let requires = "\"org.example/lint\" = { path = \"../local\" }";
    world.write(
        "vibe.toml",
        &format!("[project]\nname = \"x\"\n[requires.packages]\n{requires}\n"),
    );
    vibe(&world, &["install"]).expect(0);
    let paths: Vec<String> = TreeSnapshot::of(&lint(&world))
        .entries
        .into_keys()
        .collect();
    let expected = [
        ".gitignore",
        ".vibe-slot.toml",
        ".vibeignore",
        "a.md",
        "docs",
        "docs/secret.md",
        "vibe.toml",
    ];
    assert_eq!(paths, expected);
}

#[cfg(unix)]
#[test]
fn a_link_inside_a_package_becomes_a_copy() {
    let world = World::new();
    let published = package("1.0.0")
        .file("docs/a.md", "a\n")
        .publish(&world.registry());
    std::os::unix::fs::symlink("docs/a.md", published.join("b.md")).unwrap();
    std::os::unix::fs::symlink("docs", published.join("more")).unwrap();
    world.require(&[("org.example/lint", "^1")]);
    vibe(&world, &["install"]).expect(0);
    for path in ["b.md", "more/a.md"] {
        let path = lint(&world).join(path);
        assert!(!path.is_symlink());
        assert_eq!(read(path), "a\n");
    }
    assert!(!lint(&world).join("more").is_symlink());
    vibe(&world, &["verify"]).expect(0);
}

#[test]
fn a_deep_project_works_or_is_refused_before_anything_is_placed() {
    let deep_file = format!("{}/f.md", vec!["d".repeat(100); 9].join("/"));
    for depth in [1, 6, 12, 15, 20] {
        let world = World::new();
        package("1.0.0")
            .file(&deep_file, "deep\n")
            .file("a.md", "a\n")
            .publish(&world.registry());
        let mut place = world.project();
        for _ in 0..depth {
            place.push("p".repeat(200));
        }
        if std::fs::create_dir_all(&place).is_err() {
            continue;
        }
        let manifest = format!(
            "[project]\nname = \"x\"\n[requires.packages]\n\"org.example/lint\" = \"^1\"\n\
             [[registry]]\nname = \"local\"\nurl = \"{}\"\n",
            world.registry().display()
        );
        std::fs::write(place.join("vibe.toml"), manifest).unwrap();
        let run = crate::support::run(&mut crate::support::command_in(
            &world,
            &place,
            &["install"],
        ));
        let slot = place.join("vibedeps/org.example.lint/1.0.0");
        let fits = slot.as_os_str().len() + 1 + deep_file.len() < 4_096;
        assert_eq!(run.code, i32::from(!fits), "depth {depth}: {}", run.stderr);
        assert_eq!(slot.join("a.md").exists(), fits);
        assert_eq!(slot.join(&deep_file).exists(), fits);
        if !fits {
            run.stderr_has("org.example.lint/1.0.0")
                .stderr_has("bytes long")
                .stderr_has("hint: ");
            assert!(!place.join("vibe.lock").exists());
        }
    }
}

#[test]
fn an_update_changes_no_file_of_a_package_that_stays() {
    let world = installed();
    PackageBuilder::new("org.example/other", "1.0.0").publish(&world.registry());
    let before = outside_state(&world);
    world.require(&[("org.example/lint", "^1"), ("org.example/other", "^1")]);
    vibe(&world, &["install"]).expect(0);
    let after = outside_state(&world);
    for (path, entry) in &before.entries {
        if path.starts_with("vibedeps/org.example.lint") {
            assert_eq!(after.entries.get(path), Some(entry), "{path}");
        }
    }
}

#[test]
fn a_directory_or_a_file_of_the_user_in_the_way_of_the_other_is_moved_aside_whole() {
    let world = local(&package("1.0.0"));
    let slot = lint(&world);
    std::fs::create_dir(slot.join("new.md")).unwrap();
    std::fs::write(slot.join("new.md/mine"), "mine\n").unwrap();
    std::fs::write(slot.join("docs"), "mine\n").unwrap();
    publish(
        &world,
        &package("1.0.0")
            .file("new.md", "theirs\n")
            .file("docs/deep/guide.md", "theirs\n"),
    );
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("new.md.vibe-kept")
        .stdout_has("docs.vibe-kept");
    assert_eq!(read(slot.join("new.md")), "theirs\n");
    assert_eq!(read(slot.join("new.md.vibe-kept/mine")), "mine\n");
    assert_eq!(read(slot.join("docs/deep/guide.md")), "theirs\n");
    assert_eq!(read(slot.join("docs.vibe-kept")), "mine\n");
    vibe(&world, &["verify"]).expect(0);
}

#[test]
fn a_file_of_the_package_may_become_a_directory_and_back() {
    let world = local(&package("1.0.0").file("a", "file\n"));
    let slot = lint(&world);
    publish(&world, &package("1.0.0").file("a/b/c.md", "deep\n"));
    vibe(&world, &["install"]).expect(0);
    assert_eq!(read(slot.join("a/b/c.md")), "deep\n");
    publish(&world, &package("1.0.0").file("a", "file\n"));
    vibe(&world, &["install"]).expect(0);
    assert_eq!(read(slot.join("a")), "file\n");
    let paths: Vec<String> = TreeSnapshot::of(&slot).entries.into_keys().collect();
    assert_eq!(paths, [".vibe-slot.toml", "a", "vibe.toml"]);
}

#[cfg(unix)]
#[test]
fn no_link_on_the_way_to_a_slot_or_to_machine_state_is_followed_for_writing() {
    for link in ["vibedeps/org.example.lint", "vibedeps/.state"] {
        let world = installed();
        let outside = world.root().join("outside");
        std::fs::rename(world.project().join(link), &outside).unwrap();
        std::os::unix::fs::symlink(&outside, world.project().join(link)).unwrap();
        package("1.1.0")
            .file("a.md", "2\n")
            .publish(&world.registry());
        world.require(&[("org.example/lint", "^1.1")]);
        let before = TreeSnapshot::of(&outside);
        for arguments in [&["install"][..], &["verify", "--repair"]] {
            let target = outside.display().to_string();
            refused(&world, arguments, 1, &[link, &target]);
        }
        before.assert_unchanged(&TreeSnapshot::of(&outside));
    }
}

#[test]
fn a_file_in_place_of_the_directory_for_slots_is_named_and_stays() {
    let world = installed();
    std::fs::remove_dir_all(world.project().join("vibedeps")).unwrap();
    world.write("vibedeps", "mine\n");
    refused(&world, &["install"], 1, &["vibedeps", "no directory"]);
    assert_eq!(world.read("vibedeps"), "mine\n");
}
