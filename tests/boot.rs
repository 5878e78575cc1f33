//! Boot text: what agents get to see of the installed packages, and what stays the user's.

use std::fs;
use std::path::PathBuf;

use crate::support::{Run, corpus, outside_state, slot, vibe};
use vibe_core::hook::Phase;
use vibe_testkit::{PackageBuilder, World};

/// Where static text is compiled.
pub const STATIC: &str = "vibedeps/boot/STATIC.md";
/// Where dynamic text is listed.
pub const INDEX: &str = "vibedeps/boot/INDEX.md";
/// The record of projected paths.
pub const RECORD: &str = "vibedeps/.projections.toml";
/// The first line of the block.
pub const BEGIN: &str = "<!-- vibe:begin -->";
/// The last line of the block.
pub const END: &str = "<!-- vibe:end -->";

/// A package in 1.0.0 with `text` as its boot text, and `more` in its `[boot]`.
pub fn with_boot(id: &str, text: &str, more: &str) -> PackageBuilder {
    PackageBuilder::new(id, "1.0.0")
        .manifest_extra(&format!("[boot]\nsource = \"boot/notes.md\"\n{more}\n"))
        .file("boot/notes.md", text)
}

/// org.a/base, which org.b/top needs, both static; and org.c/more, dynamic on Linux.
pub fn three() -> World {
    let world = World::new();
    with_boot("org.b/base", "Base text.\r\n", "link = \"static\"").publish(&world.registry());
    with_boot("org.a/top", "\u{feff}Top text.\n\n", "link = \"static\"")
        .depends("org.b/base", "^1")
        .publish(&world.registry());
    with_boot("org.c/more", "More.\n", "when = \"os:linux\"").publish(&world.registry());
    PackageBuilder::new("org.d/silent", "1.0.0").publish(&world.registry());
    world.require(&[
        ("org.a/top", "^1"),
        ("org.c/more", "^1"),
        ("org.d/silent", "^1"),
    ]);
    world
}

/// Whether anything is at `path`.
pub fn exists(world: &World, path: &str) -> bool {
    world.project().join(path).symlink_metadata().is_ok()
}

/// Removes a file of the project.
pub fn remove(world: &World, path: &str) {
    fs::remove_file(world.project().join(path)).unwrap();
}

/// A second run has nothing to do and writes nothing, and all is as the lock says.
#[track_caller]
pub fn settled(world: &World) {
    let before = world.snapshot();
    vibe(world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
    vibe(world, &["verify"]).expect(0);
    vibe(world, &["install", "--locked"]).expect(0);
    before.assert_unchanged(&world.snapshot());
}

#[test]
fn static_text_is_compiled_in_the_order_of_dependencies_and_dynamic_text_is_listed() {
    let world = three();
    let ran = vibe(&world, &["install"]).expect(0);
    assert!(ran.stdout.contains("+ AGENTS.md\n"), "{}", ran.stdout);
    assert_eq!(
        world.read(STATIC),
        "<!-- Written by vibe from the installed packages; edits are lost. -->\n\n\
         # org.b/base 1.0.0\n\nBase text.\n\n# org.a/top 1.0.0\n\nTop text.\n"
    );
    assert_eq!(
        world.read(INDEX),
        "<!-- Written by vibe from the installed packages; edits are lost. -->\n\n\
         - `vibedeps/org.c.more/1.0.0/boot/notes.md`: org.c/more 1.0.0 (when `os:linux`)\n"
    );
    let agents = world.read("AGENTS.md");
    assert!(
        agents.starts_with(BEGIN) && agents.ends_with(&format!("{END}\n")),
        "{agents}"
    );
    assert!(
        agents.contains(STATIC) && agents.contains(INDEX),
        "{agents}"
    );
    for other in ["CLAUDE.md", "GEMINI.md"] {
        assert!(!exists(&world, other), "{other}");
    }
    settled(&world);
}

#[test]
fn without_boot_text_there_are_no_files() {
    let world = World::new();
    PackageBuilder::new("org.d/silent", "1.0.0").publish(&world.registry());
    world.require(&[("org.d/silent", "^1")]);
    world.write("AGENTS.md", "mine\n");
    vibe(&world, &["install"]).expect(0);
    assert_eq!(world.read("AGENTS.md"), "mine\n");
    for path in ["vibedeps/boot", RECORD] {
        assert!(!exists(&world, path), "{path}");
    }
    settled(&world);
}

#[test]
fn every_byte_outside_the_block_stays_and_comes_back_when_the_text_goes() {
    let world = three();
    let texts = [
        ("AGENTS.md", "# Mine\r\n\r\nWords without an end"),
        ("CLAUDE.md", "# Claude\n"),
        ("GEMINI.md", "\n"),
    ];
    for (path, text) in texts {
        world.write(path, text);
    }
    vibe(&world, &["install"]).expect(0);
    for (path, text) in texts {
        let now = world.read(path);
        assert!(now.starts_with(text) && now.contains(END), "{now}");
    }
    assert!(
        world
            .read("CLAUDE.md")
            .contains("\n@vibedeps/boot/STATIC.md\n")
    );
    settled(&world);
    world.require(&[("org.d/silent", "^1")]);
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("~ CLAUDE.md\n");
    for (path, text) in texts {
        assert_eq!(world.read(path), text, "{path}");
    }
    for path in ["vibedeps/boot", RECORD] {
        assert!(!exists(&world, path), "{path}");
    }
    settled(&world);
}

#[test]
fn text_around_the_block_can_be_edited_and_the_block_is_kept_up_to_date_where_it_stands() {
    let world = three();
    vibe(&world, &["install"]).expect(0);
    let block = world.read("AGENTS.md");
    let moved = format!("Before.\n{block}After.\n");
    world.write("AGENTS.md", &moved);
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
    assert_eq!(world.read("AGENTS.md"), moved);
    world.require(&[("org.c/more", "^1")]);
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("- vibedeps/boot/STATIC.md\n");
    let now = world.read("AGENTS.md");
    assert!(
        now.starts_with("Before.\n") && now.ends_with(&format!("{END}\nAfter.\n")),
        "{now}"
    );
    assert!(!now.contains(STATIC) && now.contains(INDEX), "{now}");
    assert!(!exists(&world, STATIC));
    settled(&world);
}

#[test]
fn a_file_that_comes_later_or_whose_harness_is_chosen_gets_a_block() {
    let world = three();
    vibe(&world, &["install"]).expect(0);
    world.write("CLAUDE.md", "# Claude\n");
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("~ CLAUDE.md\n");
    assert!(world.read("CLAUDE.md").contains(BEGIN));
    let manifest = world.read("vibe.toml");
    let chosen = manifest.replacen(
        "name = \"world\"\n",
        "name = \"world\"\nharnesses = [\"gemini-cli\"]\n",
        1,
    );
    world.write("vibe.toml", &chosen);
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("+ GEMINI.md\n");
    assert!(world.read("GEMINI.md").starts_with(BEGIN));
    settled(&world);
    world.write("vibe.toml", &manifest);
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("- GEMINI.md\n");
    assert!(!exists(&world, "GEMINI.md"));
    settled(&world);
}

#[test]
#[cfg(unix)]
fn one_file_under_several_names_has_one_block() {
    for (link, target) in [("CLAUDE.md", "AGENTS.md"), ("AGENTS.md", "./CLAUDE.md")] {
        let world = three();
        let target_path = target.trim_start_matches("./");
        if link == "CLAUDE.md" {
            world.write(target_path, "mine\n");
        }
        std::os::unix::fs::symlink(target, world.project().join(link)).unwrap();
        vibe(&world, &["install"]).expect(0);
        let text = world.read(target_path);
        assert_eq!(text.matches(BEGIN).count(), 1, "{text}");
        assert!(
            fs::symlink_metadata(world.project().join(link))
                .unwrap()
                .is_symlink()
        );
        settled(&world);
    }
}

#[test]
#[cfg(unix)]
fn a_link_out_of_the_project_is_not_written_through() {
    let world = three();
    let outside = world.root().join("outside.md");
    fs::write(&outside, "theirs\n").unwrap();
    std::os::unix::fs::symlink("../outside.md", world.project().join("AGENTS.md")).unwrap();
    let before = outside_state(&world);
    vibe(&world, &["install"])
        .expect(1)
        .stderr_has("AGENTS.md is a symbolic link")
        .stderr_has("hint: ");
    assert_eq!(fs::read_to_string(outside).unwrap(), "theirs\n");
    before.assert_unchanged(&outside_state(&world));
}

#[test]
fn broken_markers_are_refused_before_anything_is_written() {
    for (text, line) in [
        (format!("a\n{BEGIN}\n"), "line 2: "),
        (format!("{END}\n"), "line 1: "),
        (
            format!("{BEGIN}\n{END}\n{BEGIN}\n{END}\n"),
            "line 3: a second",
        ),
    ] {
        let world = three();
        world.write("AGENTS.md", &text);
        for arguments in [&["install", "--dry-run"][..], &["install"]] {
            vibe(&world, arguments)
                .expect(1)
                .stderr_has("AGENTS.md: the markers of vibe's block are broken")
                .stderr_has(line)
                .stderr_has("hint: ");
        }
        assert_eq!(world.read("AGENTS.md"), text);
        assert!(!exists(&world, "vibe.lock"));
        assert!(!slot(&world, "org.a/top", "1.0.0").exists());
    }
}

#[test]
fn a_file_of_somebody_else_where_vibe_writes_its_own_is_refused_and_named() {
    let world = three();
    world.write(STATIC, "mine\n");
    vibe(&world, &["install"])
        .expect(1)
        .stderr_has("vibedeps/boot/STATIC.md was not written by vibe")
        .stderr_has("hint: move it away: mv -- ");
    assert_eq!(world.read(STATIC), "mine\n");
    assert!(!exists(&world, "vibe.lock"));
}

#[test]
fn what_was_changed_or_lost_is_found_and_put_back() {
    let check = |spoil: &dyn Fn(&World), says: &str| {
        let world = three();
        vibe(&world, &["install"]).expect(0);
        let whole = outside_state(&world).ignoring_times();
        spoil(&world);
        let found = vibe(&world, &["verify"]).expect(3).stdout_has(says);
        assert!(found.stdout.contains("found 1 fault"), "{}", found.stdout);
        vibe(&world, &["verify", "--repair"]).expect(0);
        whole.assert_unchanged(&outside_state(&world).ignoring_times());
        settled(&world);
        spoil(&world);
        vibe(&world, &["install"]).expect(0);
        whole.assert_unchanged(&outside_state(&world).ignoring_times());
    };
    check(
        &|world| world.write(STATIC, "edited\n"),
        "vibedeps/boot/STATIC.md was changed",
    );
    check(
        &|world| remove(world, INDEX),
        "vibedeps/boot/INDEX.md is missing",
    );
    check(&|world| remove(world, "AGENTS.md"), "AGENTS.md is missing");
    check(
        &|world| {
            let text = world
                .read("AGENTS.md")
                .replace("Before anything", "After everything");
            world.write("AGENTS.md", &text);
        },
        "the block of vibe in AGENTS.md was changed",
    );
    check(
        &|world| world.write("AGENTS.md", ""),
        "the block of vibe in AGENTS.md is missing",
    );
}

#[test]
fn a_record_that_cannot_be_used_is_an_error_and_a_repair_keeps_it_aside() {
    let world = three();
    vibe(&world, &["install"]).expect(0);
    let record = world.read(RECORD);
    let broken = record.replace("[[path]]", "[[paths]]");
    world.write(RECORD, &broken);
    for arguments in [&["install"][..], &["verify"], &["install", "--dry-run"]] {
        vibe(&world, arguments)
            .expect(3)
            .stderr_has("vibedeps/.projections.toml")
            .stderr_has("verify --repair");
    }
    vibe(&world, &["verify", "--repair"]).expect(0);
    assert_eq!(world.read(RECORD), record);
    assert_eq!(world.read(&format!("{RECORD}.vibe-kept")), broken);
}

#[test]
fn without_the_record_a_file_that_says_it_is_of_vibe_is_written_anew() {
    let world = three();
    vibe(&world, &["install"]).expect(0);
    let (record, compiled) = (world.read(RECORD), world.read(STATIC));
    remove(&world, RECORD);
    world.write(
        STATIC,
        &compiled.replace("Top text.", "Of another version."),
    );
    vibe(&world, &["install"]).expect(0);
    assert_eq!((record, compiled), (world.read(RECORD), world.read(STATIC)));
    settled(&world);
}

#[test]
fn what_is_appended_to_a_file_without_a_last_line_break_leaves_the_block_whole() {
    let world = three();
    world.write("CLAUDE.md", "mine");
    vibe(&world, &["install"]).expect(0);
    let with_block = world.read("CLAUDE.md");
    world.write("CLAUDE.md", &format!("{with_block}more\n"));
    vibe(&world, &["install"]).expect(0);
    settled(&world);
    world.require(&[("org.d/silent", "^1")]);
    vibe(&world, &["install"]).expect(0);
    assert_eq!(world.read("CLAUDE.md"), "mine\nmore\n");
}

#[test]
fn a_record_that_names_other_files_is_no_licence_to_touch_them() {
    let world = three();
    vibe(&world, &["install"]).expect(0);
    world.write("mine.md", "mine\n");
    let digest = vibe_core::Sha256Digest::of(b"mine\n");
    let row = format!("\n[[path]]\npath = \"mine.md\"\nform = \"file\"\nsha256 = \"{digest}\"\n");
    let record = world.read(RECORD);
    let (before, after) = record.split_at(record.find("\n[[path]]\npath = \"vibedeps").unwrap());
    world.write(RECORD, &format!("{before}{row}{after}"));
    vibe(&world, &["install"]).expect(0);
    world.require(&[]);
    vibe(&world, &["install"]).expect(0);
    assert_eq!(world.read("mine.md"), "mine\n");
}

#[test]
fn a_text_that_the_package_does_not_have_is_refused_before_anything_is_written() {
    let world = World::new();
    PackageBuilder::new("org.a/top", "1.0.0")
        .manifest_extra("[boot]\nsource = \"boot/gone.md\"\n")
        .publish(&world.registry());
    world.require(&[("org.a/top", "^1")]);
    vibe(&world, &["install"])
        .expect(1)
        .stderr_has("the boot text boot/gone.md of org.a/top 1.0.0 cannot be used")
        .stderr_has("it is not in the package");
    assert!(!exists(&world, "vibe.lock"));
    assert!(!slot(&world, "org.a/top", "1.0.0").exists());
}

#[test]
fn a_text_that_is_no_text_or_too_long_is_refused() {
    for (text, says) in [
        (&b"\xff\xfe"[..], "UTF-16"),
        (b"a\xffb", "is not UTF-8"),
        (&vec![b'a'; (1 << 20) + 1], "larger than 1 MiB"),
    ] {
        let world = World::new();
        PackageBuilder::new("org.a/top", "1.0.0")
            .manifest_extra("[boot]\nsource = \"notes.md\"\nlink = \"static\"\n")
            .file("notes.md", text)
            .publish(&world.registry());
        world.require(&[("org.a/top", "^1")]);
        vibe(&world, &["install"]).expect(1).stderr_has(says);
        assert!(!exists(&world, "vibe.lock"));
    }
}

/// A package whose pre-install makes its boot text, and looks at what agents see meanwhile.
fn making() -> World {
    let world = World::new();
    let look =
        "cat \"$VIBE_PROJECT_ROOT/AGENTS.md\" \"$VIBE_PROJECT_ROOT/vibedeps/boot/STATIC.md\" >";
    PackageBuilder::new("org.a/maker", "1.0.0")
        .manifest_extra("[boot]\nsource = \"made.md\"\nlink = \"static\"\n")
        .hook(
            Phase::PreInstall,
            &format!("{look} before.txt 2>/dev/null || true\necho 'Made text.' > made.md\n"),
        )
        .hook(Phase::PostInstall, &format!("{look} after.txt\n"))
        .publish(&world.registry());
    world.require(&[("org.a/maker", "^1")]);
    world.write("AGENTS.md", "mine\n");
    world
}

fn made(world: &World, name: &str) -> String {
    fs::read_to_string(slot(world, "org.a/maker", "1.0.0").join(name)).unwrap()
}

#[test]
fn pre_install_sees_nothing_of_it_and_post_install_all_of_it() {
    let world = making();
    let dry = vibe(&world, &["install", "--dry-run"]).expect(0);
    assert!(
        dry.stdout.contains("AGENTS.md  (may change"),
        "{}",
        dry.stdout
    );
    vibe(&world, &["install"]).expect(0);
    assert_eq!(made(&world, "before.txt"), "mine\n");
    let seen = made(&world, "after.txt");
    assert!(seen.contains(BEGIN), "{seen}");
    assert!(
        seen.ends_with("# org.a/maker 1.0.0\n\nMade text.\n"),
        "{seen}"
    );
    let before = world.snapshot();
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
    before.assert_unchanged(&world.snapshot());
    vibe(&world, &["verify"]).expect(0);
}

#[test]
fn a_failing_pre_install_changes_nothing_that_agents_see() {
    let world = making();
    vibe(&world, &["install"]).expect(0);
    let seen = (
        world.read("AGENTS.md"),
        world.read(STATIC),
        world.read(RECORD),
    );
    PackageBuilder::new("org.a/maker", "1.1.0")
        .manifest_extra("[boot]\nsource = \"made.md\"\nlink = \"static\"\n")
        .hook(Phase::PreInstall, "echo 'Other text.' > made.md\nexit 3\n")
        .publish(&world.registry());
    vibe(&world, &["update"]).expect(4);
    assert_eq!(
        seen,
        (
            world.read("AGENTS.md"),
            world.read(STATIC),
            world.read(RECORD)
        )
    );
    vibe(&world, &["verify"]).expect(0);
}

#[test]
fn a_pre_install_that_leaves_out_its_text_registers_nothing() {
    let world = World::new();
    PackageBuilder::new("org.a/maker", "1.0.0")
        .manifest_extra("[boot]\nsource = \"made.md\"\n")
        .hook(Phase::PreInstall, "true\n")
        .publish(&world.registry());
    world.require(&[("org.a/maker", "^1")]);
    vibe(&world, &["install"])
        .expect(1)
        .stderr_has("the pre-install that was to make it has run")
        .stderr_has("hint: ")
        .stderr_has("hooks run org.a/maker --force");
    for path in ["vibe.lock", "AGENTS.md", RECORD] {
        assert!(!exists(&world, path), "{path}");
    }
}

#[test]
fn text_whose_pre_install_is_held_back_is_left_out_and_named() {
    let world = making();
    vibe(&world, &["install", "--no-hooks"])
        .expect(0)
        .stderr_has(
            "org.a/maker: its boot text made.md is not there, since its pre-install did not run",
        );
    assert_eq!(world.read("AGENTS.md"), "mine\n");
    vibe(&world, &["hooks", "run", "org.a/maker"])
        .expect(0)
        .stdout_has("~ AGENTS.md\n");
    assert!(world.read(STATIC).contains("Made text."));
    vibe(&world, &["verify"]).expect(0);
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
}

#[test]
fn hooks_run_by_hand_bring_the_text_up_to_date() {
    let world = World::new();
    PackageBuilder::new("org.a/maker", "1.0.0")
        .manifest_extra("[boot]\nsource = \"made.md\"\nlink = \"static\"\n")
        .hook(
            Phase::PreInstall,
            "echo x >> count.txt\nwc -l < count.txt > made.md\n",
        )
        .publish(&world.registry());
    world.require(&[("org.a/maker", "^1")]);
    vibe(&world, &["install"]).expect(0);
    assert!(
        world.read(STATIC).ends_with("\n\n1\n"),
        "{}",
        world.read(STATIC)
    );
    vibe(&world, &["hooks", "run", "org.a/maker", "--force"]).expect(0);
    assert!(
        world.read(STATIC).ends_with("\n\n2\n"),
        "{}",
        world.read(STATIC)
    );
    settled(&world);
}

#[test]
fn a_path_package_has_its_text_refreshed_with_its_files() {
    let world = World::new();
    with_boot("org.p/local", "One.\n", "link = \"static\"").write(&world.project().join("local"));
    world.write(
        "vibe.toml",
        "[project]\nname = \"p\"\n\n[requires.packages]\n\"org.p/local\" = { path = \"local\" }\n",
    );
    vibe(&world, &["install"]).expect(0);
    assert!(world.read(STATIC).contains("One."));
    world.write("local/boot/notes.md", "Two.\n");
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("~ vibedeps/boot/STATIC.md\n");
    assert!(world.read(STATIC).contains("Two."));
    settled(&world);
}

#[test]
fn an_update_of_a_silent_package_opens_no_other_slot() {
    let world = three();
    vibe(&world, &["install"]).expect(0);
    PackageBuilder::new("org.d/silent", "1.1.0").publish(&world.registry());
    let text = world.read(STATIC);
    // What is remembered of the text is not read again: what was done to it meanwhile is `verify`'s.
    fs::write(
        slot(&world, "org.b/base", "1.0.0").join("boot/notes.md"),
        "edited\n",
    )
    .unwrap();
    vibe(&world, &["update"]).expect(0);
    assert_eq!(world.read(STATIC), text);
    vibe(&world, &["verify"])
        .expect(3)
        .stdout_has("boot/notes.md");
}

#[test]
fn the_document_of_a_run_names_what_it_projects() {
    let world = three();
    let dry = vibe(&world, &["install", "--dry-run", "--json"])
        .expect(0)
        .json();
    let done = vibe(&world, &["install", "--json"]).expect(0).json();
    assert_eq!(dry["result"]["projected"], done["result"]["projected"]);
    let paths: Vec<&str> = done["result"]["projected"]
        .as_array()
        .unwrap()
        .iter()
        .map(|edit| edit["path"].as_str().unwrap())
        .collect();
    assert_eq!(paths, ["AGENTS.md", INDEX, STATIC]);
}

#[test]
fn a_clone_of_the_project_is_brought_to_the_same_bytes() {
    let world = three();
    vibe(&world, &["install"]).expect(0);
    let texts = [STATIC, INDEX, "AGENTS.md", RECORD].map(|path| world.read(path));
    fs::remove_dir_all(world.project().join("vibedeps/.state")).unwrap();
    fs::remove_dir_all(slot(&world, "org.b/base", "1.0.0")).unwrap();
    vibe(&world, &["install", "--locked"]).expect(0);
    assert_eq!(
        texts,
        [STATIC, INDEX, "AGENTS.md", RECORD].map(|path| world.read(path))
    );
    settled(&world);
}

#[test]
fn real_packages_give_the_text_that_their_manifests_ask_for() {
    let Some(corpus) = corpus() else { return };
    let world = World::new();
    fs::remove_dir(world.registry()).unwrap();
    std::os::unix::fs::symlink(corpus.join("registry-world"), world.registry()).unwrap();
    world.require(&[("org.vibevm.world/redbook", "=1.0.0")]);
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("installed 27 packages");
    let lock: toml::Table = world.read("vibe.lock").parse().unwrap();
    let (compiled, listed) = (world.read(STATIC), world.read(INDEX));
    let place = |text: &str, name: &str| text.find(&format!("{name} 1.0.0"));
    let mut counts = (0, 0);
    for package in lock["package"].as_array().unwrap() {
        let id = package["id"].as_str().unwrap();
        let directory = slot(&world, id, "1.0.0");
        let manifest: toml::Table = fs::read_to_string(directory.join("vibe.toml"))
            .unwrap()
            .parse()
            .unwrap();
        let Some(boot) = manifest.get("boot_snippet") else {
            assert!(
                place(&compiled, id).or(place(&listed, id)).is_none(),
                "{id}"
            );
            continue;
        };
        let is_static = boot.get("link").and_then(|link| link.as_str()) == Some("static");
        let source = boot["source"].as_str().unwrap();
        let (file, other) = if is_static {
            (&compiled, &listed)
        } else {
            (&listed, &compiled)
        };
        counts = match is_static {
            true => (counts.0 + 1, counts.1),
            false => (counts.0, counts.1 + 1),
        };
        if is_static {
            let text = fs::read_to_string(directory.join(source))
                .unwrap()
                .replace("\r\n", "\n");
            let under = format!("\n# {id} 1.0.0\n\n{}\n", text.trim_end_matches('\n'));
            assert!(file.contains(&under), "{id}");
        } else {
            let name = id.replace('/', ".");
            let line = format!("\n- `vibedeps/{name}/1.0.0/{source}`: {id} 1.0.0\n");
            assert!(file.contains(&line), "{id}");
        }
        assert!(place(other, &format!("# {id}")).is_none(), "{id}");
        let needs = package
            .get("dependencies")
            .and_then(|needs| needs.as_array());
        for need in needs.into_iter().flatten().filter_map(|need| need.as_str()) {
            if let Some(before) = place(file, need) {
                assert!(before < place(file, id).unwrap(), "{need} comes after {id}");
            }
        }
    }
    assert_eq!(counts, (4, 22));
    settled(&world);
}

/// Kills the run at its commit in every way that leaves another set of files, and finishes it.
#[test]
fn a_commit_that_was_cut_short_is_finished_and_spares_what_was_edited_meanwhile() {
    let world = three();
    vibe(&world, &["install"]).expect(0);
    let whole = outside_state(&world).ignoring_times();
    let redo = |files: &[(&str, Option<&str>, &str)]| {
        let rows: Vec<serde_json::Value> = files
            .iter()
            .map(|(path, before, after)| {
                let digest = |text: &str| vibe_core::Sha256Digest::of(text.as_bytes()).to_string();
                serde_json::json!({"path": path, "before": before.map(digest), "after": after})
            })
            .collect();
        let text = serde_json::json!({"form": 1, "files": rows}).to_string();
        fs::write(commit(&world), text).unwrap();
    };
    let (agents, compiled) = (world.read("AGENTS.md"), world.read(STATIC));
    remove(&world, "AGENTS.md");
    redo(&[("AGENTS.md", None, &agents), (STATIC, None, &compiled)]);
    vibe(&world, &["install"])
        .expect(0)
        .stderr_has("finished the commit");
    whole.assert_unchanged(&outside_state(&world).ignoring_times());
    world.write("AGENTS.md", "edited meanwhile\n");
    redo(&[("AGENTS.md", Some("before\n"), &agents)]);
    vibe(&world, &["install"])
        .expect(0)
        .stderr_has("AGENTS.md has changed since and is left as it is");
    assert!(world.read("AGENTS.md").starts_with("edited meanwhile\n\n"));
    settled(&world);
}

fn commit(world: &World) -> PathBuf {
    world.project().join("vibedeps/.state/commit")
}

#[test]
fn a_quiet_run_says_nothing_of_it() {
    let world = three();
    let ran: Run = vibe(&world, &["install", "--quiet"]).expect(0);
    assert_eq!((ran.stdout.as_str(), ran.stderr.as_str()), ("", ""));
}

#[test]
fn an_agent_program_that_nobody_knows_is_told_with_the_one_that_was_meant() {
    let world = three();
    let chosen = |names: &str| {
        let manifest = world.read("vibe.toml");
        let rest = &manifest[manifest.find("[requires").unwrap()..];
        let text = format!("[project]\nname = \"world\"\nharnesses = [{names}]\n\n{rest}");
        world.write("vibe.toml", &text);
        vibe(&world, &["install"]).expect(0).stderr
    };
    let told = chosen("\"gemini\", \"claude-cod\", \"codex\"");
    insta::assert_snapshot!(told, @r"
    warning: vibe.toml: `harnesses` names `gemini`, an agent program that vibe does not know; did you mean `gemini-cli`?
    warning: vibe.toml: `harnesses` names `claude-cod`, an agent program that vibe does not know; did you mean `claude-code`?
    ");
    assert_eq!(chosen("\"claude-code\", \"gemini-cli\""), "");
}
