//! `vibe.lock`: texts that are refused, what `--locked` holds to, and what a plain run makes of a
//! lock that does not fit.

#[cfg(unix)]
use crate::support::{
    command, forget_store, read, refused, run, slot, under_umask, vibe, with_hook,
};
use vibe_core::hook::Phase;
use vibe_testkit::{PackageBuilder, World};

/// A world with org.example/lint 2.1.0, which requires org.example/core 1.2.0.
fn two_packages() -> World {
    let world = World::new();
    PackageBuilder::new("org.example/core", "1.2.0")
        .file("core.md", "core\n")
        .publish(&world.registry());
    PackageBuilder::new("org.example/lint", "2.1.0")
        .depends("org.example/core", "^1")
        .file("lint.md", "lint\n")
        .publish(&world.registry());
    world.require(&[("org.example/lint", "^2")]);
    world
}

fn installed() -> World {
    let world = two_packages();
    vibe(&world, &["install"]).expect(0);
    world
}

/// Puts `new` for `old` in the lock.
fn edit_lock(world: &World, old: &str, new: &str) {
    let lock = world.read("vibe.lock");
    assert!(lock.contains(old), "no {old:?} in\n{lock}");
    world.write("vibe.lock", &lock.replacen(old, new, 1));
}

/// Every command that reads the lock refuses it, and changes nothing.
#[track_caller]
fn refused_everywhere(world: &World, code: i32, parts: &[&str]) {
    for arguments in [
        &["install"][..],
        &["install", "--locked"],
        &["install", "--dry-run"],
        &["verify"],
        &["verify", "--repair"],
        &["reinstall", "org.example/lint"],
        &["list"],
    ] {
        refused(world, arguments, code, parts);
    }
}

#[test]
fn a_merge_conflict_is_named_with_its_line_and_the_file_stays() {
    let world = installed();
    edit_lock(
        &world,
        "version = \"2.1.0\"",
        "<<<<<<< ours\nversion = \"2.1.0\"\n=======\nversion = \"2.0.0\"\n>>>>>>> theirs",
    );
    let line = world
        .read("vibe.lock")
        .lines()
        .position(|l| l.starts_with("<<<<"))
        .unwrap()
        + 1;
    refused_everywhere(
        &world,
        3,
        &[&format!("vibe.lock:{line}:"), "merge conflict", "hint: "],
    );
}

#[test]
fn a_merge_conflict_in_another_file_that_is_committed_is_named_likewise() {
    for (file, command) in [
        ("vibedeps/.projections.toml", "verify"),
        ("vibedeps/org.example.lint/2.1.0/.vibe-slot.toml", "list"),
    ] {
        let world = installed();
        let path = world.project().join(file);
        let text = std::fs::read_to_string(&path).unwrap_or_else(|_| "schema = 1\n".to_owned());
        let line = text.lines().count() + 1;
        let conflict = "<<<<<<< ours\n=======\n>>>>>>> theirs\n";
        world.write(file, &format!("{text}{conflict}"));
        let place = format!("{file}:{line}:1");
        let told = format!("merge conflict at line {line}");
        let hint = "hint: resolve it by taking either side, then run `vibe install`";
        refused(&world, &[command], 3, &[&place, &told, hint]);
    }
}

#[test]
fn a_lock_that_was_cut_or_is_empty_is_refused_and_stays() {
    let world = installed();
    let whole = world.read("vibe.lock");
    let in_a_text = whole.rfind("tree1:").unwrap() + 20;
    for cut in [0, in_a_text] {
        world.write("vibe.lock", &whole[..cut]);
        refused_everywhere(&world, 3, &["vibe.lock", "hint: restore vibe.lock"]);
    }
}

#[cfg(unix)]
#[test]
fn what_is_no_file_in_place_of_the_lock_is_refused_and_not_followed() {
    let world = installed();
    let lock = world.project().join("vibe.lock");
    let elsewhere = world.root().join("elsewhere.lock");
    std::fs::rename(&lock, &elsewhere).unwrap();
    let text = read(&elsewhere);
    std::fs::create_dir(&lock).unwrap();
    refused_everywhere(&world, 3, &["vibe.lock is a directory", "hint: "]);
    std::fs::remove_dir(&lock).unwrap();
    std::os::unix::fs::symlink(&elsewhere, &lock).unwrap();
    refused_everywhere(&world, 3, &["vibe.lock is a symbolic link", "hint: "]);
    assert_eq!(read(&elsewhere), text);
    assert!(lock.is_symlink());
}

#[test]
fn a_malformed_digest_is_refused_at_its_line() {
    let world = installed();
    let whole = world.read("vibe.lock");
    let at = whole.find("tree1:").unwrap();
    let digest = &whole[at + 6..at + 70];
    let line = whole[..at].lines().count();
    for wrong in [
        format!("tree1:{}", &digest[..63]),
        format!("tree1:{}", digest.to_uppercase()),
        format!("tree9:{digest}"),
    ] {
        world.write(
            "vibe.lock",
            &whole.replacen(&format!("tree1:{digest}"), &wrong, 1),
        );
        refused_everywhere(&world, 3, &[&format!("vibe.lock:{line}:"), "hint: "]);
    }
}

#[test]
fn a_newer_lock_is_refused_and_stays() {
    let world = installed();
    edit_lock(&world, "version = 1\n", "version = 2\n");
    refused_everywhere(&world, 3, &["newer", "vibe.lock"]);
}

#[test]
fn a_lock_that_names_another_place_is_refused_where_it_may_not_change_and_corrected_otherwise() {
    let world = installed();
    let good = world.read("vibe.lock");
    let other = world.root().join("other");
    copy_tree(&world.registry(), &other);
    world.write(
        "vibe.lock",
        &good.replace("dir+../registry", "dir+../other"),
    );
    for arguments in [
        &["install", "--locked"][..],
        &["install", "--frozen"],
        &["verify", "--repair"],
        &["reinstall", "org.example/lint"],
    ] {
        refused(
            &world,
            arguments,
            3,
            &["org.example/core", "`../other`", "`../registry`", "hint: "],
        );
    }
    let before = world.snapshot();
    vibe(&world, &["verify"]).expect(3).stdout_has("`../other`");
    before.assert_unchanged(&world.snapshot());
    vibe(&world, &["install"]).expect(0);
    assert_eq!(world.read("vibe.lock"), good);
}

#[test]
fn nothing_of_a_place_that_the_manifest_does_not_name_is_installed_or_run() {
    let world = installed();
    let evil = world.root().join("evil");
    PackageBuilder::new("org.example/core", "1.2.0")
        .hook(Phase::PreInstall, "touch \"$VIBE_PROJECT_ROOT/pwned\"\n")
        .publish(&evil);
    let donor = World::new();
    std::fs::create_dir_all(donor.registry()).unwrap();
    copy_tree(&evil, &donor.registry());
    donor.require(&[("org.example/core", "^1")]);
    vibe(&donor, &["install", "--no-hooks"]).expect(0);
    let entry = donor
        .read("vibe.lock")
        .replace("dir+../registry", "dir+../evil");
    let lock = world.read("vibe.lock");
    let lint = lock.rfind("[[package]]").unwrap();
    world.write("vibe.lock", &format!("{entry}\n{}", &lock[lint..]));
    std::fs::remove_dir_all(slot(&world, "org.example/core", "1.2.0")).unwrap();
    for arguments in [
        &["install", "--locked"][..],
        &["verify", "--repair"],
        &["reinstall", "org.example/core"],
        &["install"],
    ] {
        vibe(&world, arguments)
            .expect(3)
            .stderr_has("org.example/core");
        assert!(!world.project().join("pwned").exists(), "{arguments:?}");
        assert!(
            !slot(&world, "org.example/core", "1.2.0").exists(),
            "{arguments:?}"
        );
    }
}

#[test]
fn an_entry_that_nothing_requires_is_never_put_back_from_a_place_that_no_manifest_names() {
    const EVIL: &str = "org.example/evil";
    let world = installed();
    let evil = PackageBuilder::new(EVIL, "1.0.0")
        .hook(Phase::PreInstall, "touch \"$VIBE_PROJECT_ROOT/pwned\"\n");
    evil.publish(&world.root().join("evil"));
    evil.write(&world.root().join("evil-path"));
    let donor = World::new();
    copy_tree(&world.root().join("evil"), &donor.registry());
    donor.require(&[(EVIL, "^1")]);
    vibe(&donor, &["install", "--no-hooks"]).expect(0);
    let published = donor.read("vibe.lock");
    let published = published[published.find("[[package]]").unwrap()..]
        .replace("dir+../registry", "dir+../evil");
    let path = format!(
        "[[package]]\nid = \"{EVIL}\"\nversion = \"1.0.0\"\nsource = \"path+../evil-path\"\n"
    );
    let good = world.read("vibe.lock");
    let lint = good.rfind("[[package]]").unwrap();
    for entry in [published, path] {
        let text = format!("{}{entry}\n{}", &good[..lint], &good[lint..]);
        world.write("vibe.lock", &text);
        for arguments in [
            &["verify", "--repair"][..],
            &["reinstall"],
            &["reinstall", EVIL],
        ] {
            refused(&world, arguments, 7, &[EVIL, "hint: "]);
        }
        // What is required is put back as ever.
        vibe(&world, &["reinstall", "org.example/lint"]).expect(0);
    }
    vibe(&world, &["install"]).expect(0);
    assert_eq!(world.read("vibe.lock"), good);
    assert!(!world.project().join("pwned").exists());
}

#[test]
fn a_missing_entry_is_out_of_date_where_the_lock_may_not_change() {
    let world = two_packages();
    refused(
        &world,
        &["install", "--locked"],
        7,
        &["org.example/lint", "no entry", "hint: "],
    );
    assert!(!slot(&world, "org.example/lint", "2.1.0").exists());
    vibe(&world, &["install"]).expect(0);
    PackageBuilder::new("org.example/new", "1.0.0").publish(&world.registry());
    world.require(&[("org.example/lint", "^2"), ("org.example/new", "^1")]);
    for arguments in [&["install", "--locked"][..], &["install", "--frozen"]] {
        refused(
            &world,
            arguments,
            7,
            &["org.example/new", "no entry", "hint: "],
        );
    }
    assert!(!slot(&world, "org.example/new", "1.0.0").exists());
    vibe(&world, &["verify"])
        .expect(7)
        .stdout_has("org.example/new");
    vibe(&world, &["verify", "--repair"])
        .expect(7)
        .stderr_has("org.example/new");
}

#[test]
fn a_locked_version_out_of_range_is_out_of_date_where_the_lock_may_not_change() {
    let world = installed();
    PackageBuilder::new("org.example/lint", "3.0.0").publish(&world.registry());
    world.require(&[("org.example/lint", "^3")]);
    refused(
        &world,
        &["install", "--locked"],
        7,
        &["org.example/lint ^3", "2.1.0", "hint: "],
    );
    vibe(&world, &["verify"]).expect(7);
    vibe(&world, &["install"]).expect(0);
    vibe(&world, &["verify"]).expect(0);
    assert!(!world.read("vibe.lock").contains("org.example/core"));
}

#[test]
fn an_entry_that_nothing_requires_is_refused_or_removed_and_named() {
    let world = installed();
    let lock = world.read("vibe.lock");
    let spare = World::new();
    PackageBuilder::new("org.example/zeal", "1.0.0").publish(&spare.registry());
    PackageBuilder::new("org.example/zeal", "1.0.0").publish(&world.registry());
    spare.require(&[("org.example/zeal", "^1")]);
    vibe(&spare, &["install"]).expect(0);
    let entry = spare.read("vibe.lock");
    let entry = &entry[entry.find("[[package]]").unwrap()..];
    world.write("vibe.lock", &format!("{lock}\n{entry}"));
    refused(
        &world,
        &["install", "--locked"],
        7,
        &["org.example/zeal 1.0.0", "nothing requires it"],
    );
    vibe(&world, &["install"])
        .expect(0)
        .stderr_has("org.example/zeal 1.0.0, but nothing requires it; it is removed");
    assert_eq!(world.read("vibe.lock"), lock);
    assert!(!slot(&world, "org.example/zeal", "1.0.0").exists());
}

#[test]
fn an_entry_without_the_identity_that_its_kind_must_have_is_out_of_date() {
    let world = installed();
    let lock = world.read("vibe.lock");
    let kept: Vec<&str> = lock
        .lines()
        .filter(|line| !line.starts_with("tree = "))
        .collect();
    world.write("vibe.lock", &(kept.join("\n") + "\n"));
    refused(
        &world,
        &["install", "--locked"],
        7,
        &["org.example/core", "`tree`"],
    );
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("wrote vibe.lock");
    assert_eq!(world.read("vibe.lock"), lock);
}

#[test]
fn a_published_version_that_changed_is_refused_with_both_digests() {
    let world = installed();
    let lock = world.read("vibe.lock");
    let locked = tree_of(&lock, "org.example/core");
    PackageBuilder::new("org.example/core", "1.2.0")
        .file("core.md", "moved\n")
        .publish(&world.registry());
    let moved = World::new();
    copy_tree(&world.registry(), &moved.registry());
    moved.require(&[("org.example/core", "^1")]);
    vibe(&moved, &["install"]).expect(0);
    let found = tree_of(&moved.read("vibe.lock"), "org.example/core");
    assert_ne!(locked, found);
    std::fs::remove_dir_all(slot(&world, "org.example/core", "1.2.0")).unwrap();
    forget_store(&world);
    for arguments in [
        &["install"][..],
        &["install", "--locked"],
        &["verify", "--repair"],
    ] {
        refused(
            &world,
            arguments,
            3,
            &["org.example/core 1.2.0", &locked, &found, "hint: "],
        );
    }
}

#[test]
fn a_changed_hook_script_in_the_lock_is_refused() {
    let world = World::new();
    PackageBuilder::new("org.example/lint", "1.0.0")
        .hook(Phase::PreInstall, "touch ran\n")
        .publish(&world.registry());
    world.require(&[("org.example/lint", "^1")]);
    vibe(&world, &["install", "--no-hooks"]).expect(0);
    let lock = world.read("vibe.lock");
    let at = lock.find("sha256:").unwrap() + 7;
    let other = if &lock[at..=at] == "0" { "1" } else { "0" };
    world.write(
        "vibe.lock",
        &format!("{}{other}{}", &lock[..at], &lock[at + 1..]),
    );
    refused(
        &world,
        &["install", "--locked"],
        3,
        &["org.example/lint 1.0.0", "install hooks", "hint: "],
    );
    assert!(
        !slot(&world, "org.example/lint", "1.0.0")
            .join("ran")
            .exists()
    );
}

#[test]
fn a_locked_install_places_slots_and_runs_hooks_and_changes_neither_manifest_nor_lock() {
    let world = World::new();
    PackageBuilder::new("org.example/lint", "1.0.0")
        .hook(Phase::PreInstall, "echo run >> counter\n")
        .publish(&world.registry());
    world.require(&[("org.example/lint", "^1")]);
    vibe(&world, &["install"]).expect(0);
    PackageBuilder::new("org.example/lint", "1.1.0").publish(&world.registry());
    let files = ["vibe.toml", "vibe.lock"];
    for alias in ["--locked", "--frozen"] {
        std::fs::remove_dir_all(world.project().join("vibedeps")).unwrap();
        let before = world.snapshot();
        vibe(&world, &["install", alias]).expect(0);
        let after = world.snapshot();
        for file in files {
            assert_eq!(before.entries[file], after.entries[file], "{file}");
        }
        assert_eq!(
            read(slot(&world, "org.example/lint", "1.0.0").join("counter")),
            "run\n"
        );
    }
}

#[test]
fn carriage_returns_in_a_lock_are_read_and_not_rewritten() {
    let world = installed();
    let windows = world.read("vibe.lock").replace('\n', "\r\n");
    world.write("vibe.lock", &windows);
    vibe(&world, &["install"]).expect(0);
    vibe(&world, &["install", "--locked"]).expect(0);
    vibe(&world, &["verify"]).expect(0);
    assert_eq!(world.read("vibe.lock"), windows);
}

#[test]
fn lock_bytes_depend_neither_on_the_order_of_the_manifest_nor_on_the_place_of_the_project() {
    let world = two_packages();
    world.require(&[("org.example/lint", "^2"), ("org.example/core", "^1")]);
    vibe(&world, &["install"]).expect(0);
    let lock = world.read("vibe.lock");
    let other = World::new();
    copy_tree(&world.registry(), &other.registry());
    other.require(&[("org.example/core", "^1"), ("org.example/lint", "^2")]);
    vibe(&other, &["install"]).expect(0);
    assert_eq!(other.read("vibe.lock"), lock);
    assert!(!lock.contains(world.root().to_str().unwrap()), "{lock}");
    vibe(&other, &["reinstall", "org.example/lint"]).expect(0);
    assert_eq!(other.read("vibe.lock"), lock);
}

/// What makes programs see the time that `FAKETIME` names, where this machine has it. Says so where
/// it has not.
#[cfg(target_os = "linux")]
fn fake_clock() -> Option<std::path::PathBuf> {
    let library = format!(
        "/usr/lib/{}-linux-gnu/faketime/libfaketime.so.1",
        std::env::consts::ARCH
    );
    let found = Some(std::path::PathBuf::from(library)).filter(|path| path.exists());
    if found.is_none() {
        eprintln!("skipped: there is no libfaketime on this machine, so the clock is the real one");
    }
    found
}

#[cfg(target_os = "linux")]
#[test]
fn neither_clock_nor_locale_nor_time_zone_decides_what_is_in_the_lock() {
    let world = installed();
    let lock = world.read("vibe.lock");
    let before = world.snapshot();
    let library = fake_clock();
    for (locale, zone, date) in [
        ("C", "UTC", "1970-01-02 00:00:00"),
        ("tr_TR.UTF-8", "Asia/Kolkata", "2040-02-29 12:00:00"),
    ] {
        let elsewhere = |world: &World| {
            let mut command = command(world, &["install"]);
            command.env("LC_ALL", locale).env("LANG", locale);
            command.env("TZ", zone);
            if let Some(library) = &library {
                command.env("LD_PRELOAD", library).env("FAKETIME", date);
                command.env("NO_FAKE_STAT", "1");
            }
            run(&mut command).expect(0)
        };
        elsewhere(&world).stdout_has("nothing to do");
        before.assert_unchanged(&world.snapshot());
        let other = two_packages();
        elsewhere(&other);
        assert_eq!(other.read("vibe.lock"), lock, "{locale}, {date}");
    }
}

#[test]
fn a_path_in_the_lock_that_leaves_its_package_is_refused_and_the_file_stays() {
    let world = with_hook(Phase::PostInstall, "true\n");
    vibe(&world, &["install"]).expect(0);
    let lock = world.read("vibe.lock");
    for path in ["/abs/evil", "../evil", "a//b", "C:evil"] {
        world.write("vibe.lock", &lock.replace("hooks/post-install.sh", path));
        refused_everywhere(&world, 3, &["vibe.lock:", path, "hint: "]);
    }
}

#[test]
fn a_locked_version_is_held_until_its_requirement_moves() {
    let world = installed();
    PackageBuilder::new("org.example/core", "1.9.0").publish(&world.registry());
    PackageBuilder::new("org.example/new", "1.0.0")
        .depends("org.example/core", "^1")
        .publish(&world.registry());
    world.require(&[("org.example/lint", "^2"), ("org.example/new", "^1")]);
    vibe(&world, &["install"]).expect(0);
    assert!(slot(&world, "org.example/core", "1.2.0").is_dir());
    assert!(!slot(&world, "org.example/core", "1.9.0").exists());
}

/// Installs with the file mode creation mask `umask`.
#[cfg(unix)]
fn install_under(world: &World, umask: &str) {
    run(&mut under_umask(umask, &command(world, &["install"]))).expect(0);
}

#[cfg(unix)]
#[test]
fn nothing_can_be_written_by_others_even_without_a_umask() {
    let world = with_hook(Phase::PostInstall, "true\n");
    install_under(&world, "000");
    let snapshot = world.snapshot();
    let open = snapshot.entries.iter();
    let open: Vec<_> = open.filter(|(_, entry)| entry.mode & 0o022 != 0).collect();
    assert!(open.is_empty(), "{open:?}");
    assert!(snapshot.entries.keys().any(|path| path.ends_with(".log")));
}

#[cfg(unix)]
#[test]
fn metadata_has_ordinary_modes_whatever_the_umask() {
    for (umask, file_mode, directory_mode) in [("022", 0o644, 0o755), ("027", 0o640, 0o750)] {
        let world = two_packages();
        install_under(&world, umask);
        let snapshot = world.snapshot();
        for (path, mode) in [
            ("vibe.lock", file_mode),
            ("vibedeps/.gitignore", file_mode),
            ("vibedeps/.gitattributes", file_mode),
            ("vibedeps/org.example.core/1.2.0/.vibe-slot.toml", file_mode),
            ("vibedeps/org.example.core/1.2.0/core.md", file_mode),
            ("vibedeps", directory_mode),
            ("vibedeps/org.example.core", directory_mode),
            ("vibedeps/org.example.core/1.2.0", directory_mode),
        ] {
            assert_eq!(
                snapshot.entries[path].mode, mode,
                "{path} under umask {umask}"
            );
        }
    }
}

/// The `tree` of a package in the text of a lock.
fn tree_of(lock: &str, id: &str) -> String {
    let entry = &lock[lock.find(&format!("id = \"{id}\"")).unwrap()..];
    let at = entry.find("tree1:").unwrap();
    entry[at..at + 70].to_owned()
}

fn copy_tree(from: &std::path::Path, to: &std::path::Path) {
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            std::fs::create_dir_all(&target).unwrap();
            copy_tree(&entry.path(), &target);
        } else {
            std::fs::create_dir_all(to).unwrap();
            std::fs::copy(entry.path(), &target).unwrap();
        }
    }
}

#[test]
fn a_registry_asked_for_by_name_is_where_a_package_comes_from() {
    let world = World::new();
    let acme = world.root().join("acme");
    let lint = PackageBuilder::new("org.example/lint", "1.0.0");
    lint.clone()
        .file("a.md", "first\n")
        .publish(&world.registry());
    lint.clone().file("a.md", "acme\n").publish(&acme);
    let manifest = |requirement: &str| {
        let registry =
            |name: &str, url: &str| format!("[[registry]]\nname = \"{name}\"\nurl = \"{url}\"\n");
        format!(
            "[project]\nname = \"x\"\n[requires.packages]\n\"org.example/lint\" = {requirement}\n{}{}",
            registry("local", "../registry"),
            registry("acme", "../acme")
        )
    };
    world.write("vibe.toml", &manifest("\"^1\""));
    vibe(&world, &["install"]).expect(0);
    let placed = slot(&world, "org.example/lint", "1.0.0").join("a.md");
    assert_eq!(read(&placed), "first\n");
    world.write(
        "vibe.toml",
        &manifest("{ version = \"^1\", registry = \"acme\" }"),
    );
    // Other bytes under a locked version are for the user to accept.
    refused(
        &world,
        &["install", "--locked"],
        3,
        &["`../registry`", "`../acme`"],
    );
    refused(
        &world,
        &["install"],
        3,
        &["org.example/lint 1.0.0", "remove the entry"],
    );
    std::fs::remove_file(world.project().join("vibe.lock")).unwrap();
    vibe(&world, &["install"]).expect(0);
    assert_eq!(read(&placed), "acme\n");
    assert!(world.read("vibe.lock").contains("source = \"dir+../acme\""));
    // Equal bytes elsewhere need no word.
    std::fs::remove_dir_all(world.registry()).unwrap();
    lint.file("a.md", "acme\n").publish(&world.registry());
    world.write(
        "vibe.toml",
        &manifest("{ version = \"^1\", registry = \"local\" }"),
    );
    vibe(&world, &["install"]).expect(0);
    assert!(
        world
            .read("vibe.lock")
            .contains("source = \"dir+../registry\"")
    );
}

#[test]
fn what_would_change_the_manifest_is_refused_where_it_may_not_change() {
    let world = installed();
    PackageBuilder::new("org.example/new", "1.0.0").publish(&world.registry());
    for spec in [
        "org.example/new",
        "org.example/core@^1",
        "org.example/lint@^2.1",
    ] {
        let id = spec.split('@').next().unwrap();
        refused(
            &world,
            &["install", "--locked", spec],
            7,
            &[id, "--locked", "hint: "],
        );
    }
    vibe(&world, &["install", "--locked", "org.example/lint"]).expect(0);
}

#[test]
fn a_path_package_moves_in_content_but_not_in_version_where_the_lock_may_not_change() {
    let world = World::new();
    let local = world.root().join("local");
    let version = |version: &str| PackageBuilder::new("org.example/local", version);
    version("0.1.0").file("a.md", "1\n").write(&local);
    let requires = "\"org.example/local\" = { path = \"../local\" }";
    world.write(
        "vibe.toml",
        &format!("[project]\nname = \"x\"\n[requires.packages]\n{requires}\n"),
    );
    vibe(&world, &["install"]).expect(0);
    let lock = world.read("vibe.lock");
    assert!(!lock.contains("tree"), "{lock}");
    version("0.1.0").file("a.md", "2\n").write(&local);
    vibe(&world, &["install", "--locked"]).expect(0);
    assert_eq!(
        read(slot(&world, "org.example/local", "0.1.0").join("a.md")),
        "2\n"
    );
    version("0.2.0").file("a.md", "3\n").write(&local);
    refused(
        &world,
        &["install", "--locked"],
        7,
        &["org.example/local", "0.2.0", "0.1.0"],
    );
    vibe(&world, &["verify"]).expect(7);
    assert_eq!(world.read("vibe.lock"), lock);
    vibe(&world, &["install"]).expect(0);
    assert_eq!(
        read(slot(&world, "org.example/local", "0.2.0").join("a.md")),
        "3\n"
    );
    assert!(!slot(&world, "org.example/local", "0.1.0").exists());
}

#[test]
fn a_locked_version_that_is_gone_from_its_registry_is_told_from_a_registry_that_is_gone() {
    let world = installed();
    std::fs::remove_dir_all(slot(&world, "org.example/core", "1.2.0")).unwrap();
    let published = world.registry().join("org.example/core/v1.2.0");
    std::fs::remove_dir_all(&published).unwrap();
    forget_store(&world);
    let every = [
        &["install"][..],
        &["install", "--locked"],
        &["verify", "--repair"],
    ];
    for arguments in every {
        let parts = [
            "no registry",
            "org.example/core 1.2.0",
            "hint: restore it in the registry",
        ];
        refused(&world, arguments, 1, &parts);
    }
    std::fs::remove_dir_all(world.registry()).unwrap();
    for arguments in every {
        refused(
            &world,
            arguments,
            1,
            &[
                "org.example/core 1.2.0",
                "../registry",
                "hint: look at the `url`",
            ],
        );
    }
}

#[test]
fn a_lock_that_misstates_what_a_package_requires_is_out_of_date_as_soon_as_the_package_is_read() {
    let world = two_packages();
    let old = PackageBuilder::new("org.example/core", "0.9.0").publish(&world.registry());
    vibe(&world, &["install"]).expect(0);
    let good = world.read("vibe.lock");
    let donor = World::new();
    copy_tree(&world.registry(), &donor.registry());
    donor.require(&[("org.example/core", "=0.9.0")]);
    vibe(&donor, &["install"]).expect(0);
    let entries = |lock: &str| lock[lock.find("[[package]]").unwrap()..].to_owned();
    let lint = good.rfind("[[package]]").unwrap();
    let head = &good[..good.find("[[package]]").unwrap()];
    let lint = &good[lint..];
    let alone: String = lint
        .lines()
        .filter(|line| !line.starts_with("dependencies"))
        .map(|line| format!("{line}\n"))
        .collect();
    // As a merge done by hand may leave it: an older version, or no entry at all.
    let older = format!("{head}{}\n{lint}", entries(&donor.read("vibe.lock")));
    let none = format!("{head}{alone}");
    for (wrong, part) in [(older, "org.example/core ^1"), (none, "org.example/core")] {
        world.write("vibe.lock", &wrong);
        std::fs::remove_dir_all(world.project().join("vibedeps")).unwrap();
        for arguments in [&["install", "--locked"][..], &["verify", "--repair"]] {
            refused(
                &world,
                arguments,
                7,
                &["org.example/lint requires", part, "hint: "],
            );
            assert!(!slot(&world, "org.example/lint", "2.1.0").exists());
        }
        vibe(&world, &["install"]).expect(0);
        assert_eq!(world.read("vibe.lock"), good);
        assert!(slot(&world, "org.example/core", "1.2.0").is_dir());
        assert!(!slot(&world, "org.example/core", "0.9.0").exists());
    }
    assert!(old.is_dir());
}

#[test]
fn a_lock_that_hides_install_hooks_is_refused_and_named() {
    let world = World::new();
    PackageBuilder::new("org.example/lint", "1.0.0")
        .hook(Phase::PostInstall, "echo run >> ../../../ran\n")
        .publish(&world.registry());
    world.require(&[("org.example/lint", "*")]);
    vibe(&world, &["install"]).expect(0);
    let text = world.read("vibe.lock");
    let hidden: Vec<&str> = text
        .lines()
        .filter(|line| !line.starts_with("install-hooks"))
        .collect();
    world.write("vibe.lock", &(hidden.join("\n") + "\n"));
    std::fs::remove_dir_all(world.project().join("vibedeps/.state")).unwrap();
    vibe(&world, &["verify"])
        .expect(3)
        .stdout_has("other install hooks");
    for arguments in [
        &["install"][..],
        &["install", "--locked"],
        &["verify", "--repair"],
    ] {
        vibe(&world, arguments)
            .expect(3)
            .stderr_has("org.example/lint");
    }
    assert_eq!(world.read("ran"), "run\n");
}
