//! Boot text where something is odd: files that are none, hooks that meddle, slots that are damaged.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::Path;

use crate::boot::{BEGIN, END, INDEX, RECORD, STATIC, exists, remove, settled, three, with_boot};
use crate::support::{
    command, is_superuser, outside_state, run, slot, start, unprivileged, vibe, wait,
};
use vibe_core::Sha256Digest;
use vibe_core::hook::Phase;
use vibe_testkit::{GitRepository, PackageBuilder, World, make_pipe, mode_of, set_mode};

/// Takes out all that has boot text.
fn silence(world: &World) {
    world.require(&[("org.d/silent", "^1")]);
    vibe(world, &["install"]).expect(0);
    for path in [STATIC, INDEX, RECORD] {
        assert!(!exists(world, path), "{path}");
    }
}

#[test]
fn what_is_no_file_of_text_is_named_before_anything_is_written() {
    let check = |make: &dyn Fn(&Path), says: &str, hint: &str| {
        let world = three();
        make(&world.project().join("AGENTS.md"));
        let before = outside_state(&world);
        for arguments in [&["install", "--dry-run"][..], &["install"]] {
            vibe(&world, arguments)
                .expect(1)
                .stderr_has("vibe cannot write ")
                .stderr_has(says)
                .stderr_has(&format!("hint: {hint}, or move it away: mv -- "));
        }
        before.assert_unchanged(&outside_state(&world));
        assert!(!exists(&world, "vibe.lock"));
        // The hint helps.
        fs::rename(world.project().join("AGENTS.md"), world.root().join("away")).unwrap();
        vibe(&world, &["install"]).expect(0);
        settled(&world);
    };
    let belongs = "put what belongs there";
    check(
        &|path| fs::create_dir(path).unwrap(),
        "is a directory",
        belongs,
    );
    check(&|path| make_pipe(path), "is a named pipe", belongs);
    check(
        &|path| symlink("gone.md", path).unwrap(),
        "is a symbolic link",
        belongs,
    );
    check(
        &|path| {
            fs::File::create(path)
                .unwrap()
                .set_len((32 << 20) + 1)
                .unwrap()
        },
        "larger than 32 MiB",
        "shorten it",
    );
    check(
        &|path| fs::write(path, b"\xff\xfea\0\n\0").unwrap(),
        "it is not UTF-8",
        "save it as UTF-8",
    );
}

#[test]
fn files_that_are_links_to_each_other_are_no_files() {
    let world = three();
    let link = |name: &str, target: &str| {
        symlink(target, world.project().join(name)).unwrap();
    };
    link("AGENTS.md", "CLAUDE.md");
    link("CLAUDE.md", "AGENTS.md");
    vibe(&world, &["install"])
        .expect(1)
        .stderr_has("AGENTS.md is a symbolic link")
        .stderr_has("hint: ");
    assert!(!exists(&world, "vibe.lock"));
    remove(&world, "CLAUDE.md");
    link("CLAUDE.md", "GEMINI.md");
    vibe(&world, &["install"]).expect(0);
    assert!(world.read("GEMINI.md").contains(BEGIN));
    assert_eq!(world.read("AGENTS.md"), world.read("GEMINI.md"));
    settled(&world);
}

#[test]
fn any_text_comes_back_byte_for_byte_and_keeps_its_mode() {
    for (text, mode) in [
        ("a\rb\r", 0o600),
        ("a\nb\r", 0o644),
        ("a\0b\n", 0o664),
        ("\u{feff}# Mine", 0o444),
        ("a\r\nb\n\n\n", 0o640),
        ("see <!-- vibe:begin --> here\n", 0o755),
    ] {
        let world = three();
        let path = world.project().join("AGENTS.md");
        world.write("AGENTS.md", text);
        set_mode(&path, mode);
        vibe(&world, &["install"]).expect(0);
        assert_eq!(mode_of(&path), mode, "{text:?}");
        assert!(world.read("AGENTS.md").starts_with(text), "{text:?}");
        settled(&world);
        silence(&world);
        assert_eq!(world.read("AGENTS.md"), text);
        assert_eq!(mode_of(&path), mode, "{text:?}");
    }
}

#[test]
fn another_name_of_a_file_keeps_what_it_had() {
    let world = three();
    world.write("AGENTS.md", "mine\n");
    fs::hard_link(
        world.project().join("AGENTS.md"),
        world.root().join("other"),
    )
    .unwrap();
    vibe(&world, &["install"]).expect(0);
    assert_eq!(
        fs::read_to_string(world.root().join("other")).unwrap(),
        "mine\n"
    );
    settled(&world);
}

#[test]
fn a_file_that_cannot_be_read_is_named() {
    let world = three();
    world.write("AGENTS.md", "mine\n");
    set_mode(&world.project().join("AGENTS.md"), 0o000);
    run(&mut unprivileged(&world, &["install"]))
        .expect(1)
        .stderr_has("project/AGENTS.md");
    assert!(!exists(&world, "vibe.lock"));
}

#[test]
fn the_directory_of_boot_text_is_reached_through_no_link_and_what_is_others_stays() {
    for make in [
        &(|path: &Path| symlink("../other", path).unwrap()) as &dyn Fn(&Path),
        &|path| fs::write(path, "mine\n").unwrap(),
    ] {
        let world = three();
        fs::create_dir(world.project().join("other")).unwrap();
        fs::create_dir(world.project().join("vibedeps")).unwrap();
        let boot = world.project().join("vibedeps/boot");
        make(&boot);
        let before = outside_state(&world);
        vibe(&world, &["install"])
            .expect(1)
            .stderr_has("vibe cannot write ")
            .stderr_has("/vibedeps/boot\n")
            .stderr_has("/vibedeps/boot.mine");
        before.assert_unchanged(&outside_state(&world));
        world.require(&[("org.d/silent", "^1")]);
        vibe(&world, &["install"]).expect(0);
        assert!(boot.symlink_metadata().is_ok());
    }
    let world = three();
    vibe(&world, &["install"]).expect(0);
    world.write("vibedeps/boot/mine.md", "mine\n");
    settled(&world);
    world.require(&[("org.d/silent", "^1")]);
    vibe(&world, &["install"])
        .expect(0)
        .stderr_has("vibedeps/boot is kept, since it holds files that vibe did not write");
    assert_eq!(world.read("vibedeps/boot/mine.md"), "mine\n");
    settled(&world);
}

#[test]
#[cfg(target_os = "linux")]
fn a_file_whose_name_only_resembles_is_somebody_elses() {
    let world = three();
    world.write("agents.md", "mine\n");
    vibe(&world, &["install"]).expect(0);
    assert_eq!(world.read("agents.md"), "mine\n");
    assert!(world.read("AGENTS.md").starts_with(BEGIN));
}

#[test]
fn line_breaks_that_version_control_changed_are_no_change() {
    let world = three();
    world.write("AGENTS.md", "# Mine\n\nwords\n");
    vibe(&world, &["install"]).expect(0);
    let text = world.read("AGENTS.md");
    let turned = text.replace('\n', "\r\n");
    world.write("AGENTS.md", &turned);
    vibe(&world, &["verify"]).expect(0);
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
    assert_eq!(world.read("AGENTS.md"), turned);
    settled(&world);
    world.write("AGENTS.md", &text);
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
    assert_eq!(world.read("AGENTS.md"), text);
    settled(&world);
}

#[test]
fn a_project_without_its_slots_gets_the_same_bytes_again() {
    for vendor in [true, false] {
        let world = three();
        let manifest = world.read("vibe.toml");
        let named = format!("name = \"world\"\nvendor = {vendor}\n");
        world.write("vibe.toml", &manifest.replace("name = \"world\"\n", &named));
        world.write("AGENTS.md", "mine\n");
        vibe(&world, &["install"]).expect(0);
        let whole = outside_state(&world).ignoring_times();
        fs::remove_dir_all(world.project().join("vibedeps")).unwrap();
        vibe(&world, &["install", "--locked", "--offline"]).expect(0);
        whole.assert_unchanged(&outside_state(&world).ignoring_times());
        settled(&world);
    }
}

#[test]
fn a_record_that_is_gone_newer_or_in_conflict_costs_nothing() {
    let world = three();
    vibe(&world, &["install"]).expect(0);
    let whole = outside_state(&world).ignoring_times();
    remove(&world, RECORD);
    vibe(&world, &["verify"]).expect(3).stdout_has(RECORD);
    vibe(&world, &["install"]).expect(0);
    whole.assert_unchanged(&outside_state(&world).ignoring_times());
    let record = world.read(RECORD);
    let newer = record.replace("schema = 1", "schema = 2");
    world.write(RECORD, &newer);
    for arguments in [&["install"][..], &["verify"], &["verify", "--repair"]] {
        vibe(&world, arguments).expect(3).stderr_has("newer vibe");
    }
    assert_eq!(world.read(RECORD), newer);
    let conflict = format!("<<<<<<< ours\n{record}=======\n{record}>>>>>>> theirs\n");
    world.write(RECORD, &conflict);
    vibe(&world, &["install"])
        .expect(3)
        .stderr_has("verify --repair");
    vibe(&world, &["verify", "--repair"]).expect(0);
    assert_eq!(world.read(RECORD), record);
    for path in ["../out.md", "/etc/passwd", "vibedeps/.state/lock/.."] {
        world.write(RECORD, &record.replace("AGENTS.md", path));
        vibe(&world, &["install"])
            .expect(3)
            .stderr_has("verify --repair");
    }
}

/// A package with static text and these scripts.
fn meddler(scripts: &[(Phase, &str)]) -> World {
    let world = World::new();
    let package = with_boot("org.a/meddler", "Text.\n", "link = \"static\"");
    scripts
        .iter()
        .fold(package, |package, (phase, script)| {
            package.hook(*phase, script)
        })
        .publish(&world.registry());
    world.require(&[("org.a/meddler", "^1")]);
    world
}

/// What is said of a hook that writes a file that agents read.
const WARNING: &str = "changed AGENTS.md, by which agent programs run commands";

#[test]
fn the_block_is_not_taken_for_the_work_of_a_hook_and_what_a_hook_writes_beside_it_stays() {
    let quiet = [
        (Phase::PreInstall, "true\n"),
        (Phase::PostInstall, "true\n"),
    ];
    let world = meddler(&quiet);
    world.write("AGENTS.md", "mine\n");
    let ran = vibe(&world, &["install"]).expect(0);
    assert!(!ran.stderr.contains("AGENTS.md"), "{}", ran.stderr);
    for phase in [Phase::PreInstall, Phase::PostInstall] {
        let world = meddler(&[(phase, "echo hooked >> \"$VIBE_PROJECT_ROOT/AGENTS.md\"\n")]);
        world.write("AGENTS.md", "mine\n");
        vibe(&world, &["install"]).expect(0).stderr_has(WARNING);
        let text = world.read("AGENTS.md");
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0] == "mine" && lines.contains(&"hooked"), "{text}");
        assert_eq!(text.matches(BEGIN).count(), 1);
        settled(&world);
    }
}

#[test]
fn what_a_post_install_does_to_what_agents_see_is_put_right_by_the_same_run() {
    for (script, has) in [
        ("rm \"$VIBE_PROJECT_ROOT/AGENTS.md\"\n", "Text."),
        (
            "sed -i s/Before/After/ \"$VIBE_PROJECT_ROOT/AGENTS.md\"\n",
            "Text.",
        ),
        ("rm -r \"$VIBE_PROJECT_ROOT/vibedeps/boot\"\n", "Text."),
        ("echo Changed. > boot/notes.md\n", "Changed."),
        ("echo Changed. > boot/notes.md\nexit 1\n", "Changed."),
    ] {
        let world = meddler(&[(Phase::PostInstall, script)]);
        let code = if script.contains("exit 1") { 5 } else { 0 };
        let ran = vibe(&world, &["install", "--json"]).expect(code).json();
        let edits = ran["result"]["projected"].as_array().unwrap();
        let edits: Vec<String> = edits
            .iter()
            .map(|edit| format!("{} {}", edit["change"], edit["path"]))
            .collect();
        assert_eq!(
            edits,
            [
                "\"create\" \"AGENTS.md\"",
                "\"create\" \"vibedeps/boot/STATIC.md\""
            ]
        );
        assert!(world.read(STATIC).contains(has), "{script}");
        assert!(
            world.read("AGENTS.md").contains("Before anything"),
            "{script}"
        );
        if code == 0 {
            settled(&world);
        }
    }
}

#[test]
fn a_post_install_that_takes_its_text_away_is_told_and_nothing_counts_as_well() {
    let world = meddler(&[(Phase::PostInstall, "rm boot/notes.md\n")]);
    vibe(&world, &["install"])
        .expect(1)
        .stderr_has("the boot text boot/notes.md of org.a/meddler 1.0.0 cannot be used");
    assert!(exists(&world, "vibe.lock"));
    let again = vibe(&world, &["install"]).expect(1);
    assert!(!again.stdout.contains("nothing to do"), "{}", again.stdout);
}

#[test]
fn a_post_install_of_a_package_being_added_is_followed_by_the_projection() {
    let world = meddler(&[(Phase::PostInstall, "echo Changed. > boot/notes.md\n")]);
    world.require(&[]);
    vibe(&world, &["install", "org.a/meddler"]).expect(0);
    assert!(world.read(STATIC).contains("Changed."));
    settled(&world);
}

#[test]
fn hooks_run_by_hand_whose_pre_install_fails_change_nothing_that_agents_see() {
    let script = "echo Other. > boot/notes.md\ntest ! -e \"$VIBE_PROJECT_ROOT/fail\"\n";
    let world = meddler(&[(Phase::PreInstall, script)]);
    vibe(&world, &["install"]).expect(0);
    let seen = [STATIC, "AGENTS.md", RECORD].map(|path| world.read(path));
    world.write("fail", "");
    let run = ["hooks", "run", "org.a/meddler", "--force"];
    vibe(&world, &run).expect(4);
    assert_eq!(
        seen,
        [STATIC, "AGENTS.md", RECORD].map(|path| world.read(path))
    );
    remove(&world, "fail");
    vibe(&world, &run).expect(0);
    vibe(&world, &["install"]).expect(0);
    settled(&world);
}

#[test]
fn a_text_that_was_made_and_lost_is_made_again_as_the_hint_says() {
    let world = World::new();
    PackageBuilder::new("org.a/maker", "1.0.0")
        .manifest_extra("[boot]\nsource = \"made.md\"\nlink = \"static\"\n")
        .hook(Phase::PreInstall, "echo Made. > made.md\n")
        .publish(&world.registry());
    world.require(&[("org.a/maker", "^1")]);
    vibe(&world, &["install"]).expect(0);
    fs::remove_file(slot(&world, "org.a/maker", "1.0.0").join("made.md")).unwrap();
    vibe(&world, &["verify"])
        .expect(3)
        .stdout_has("the boot text made.md of org.a/maker 1.0.0 cannot be used");
    vibe(&world, &["verify", "--repair"])
        .expect(1)
        .stderr_has("vibe hooks run org.a/maker --force");
    vibe(&world, &["hooks", "run", "org.a/maker", "--force"]).expect(0);
    vibe(&world, &["install"]).expect(0);
    settled(&world);
}

#[test]
fn work_on_one_package_leaves_out_no_text_of_another_that_is_damaged() {
    let hooked = |world: &World| {
        PackageBuilder::new("org.e/hooked", "1.0.0")
            .hook(Phase::PostInstall, "true\n")
            .publish(&world.registry());
        let manifest = world.read("vibe.toml");
        let more = "[requires.packages]\n\"org.e/hooked\" = \"^1\"";
        world.write("vibe.toml", &manifest.replace("[requires.packages]", more));
    };
    for damage in ["", "vibe.toml", ".vibe-slot.toml"] {
        let world = three();
        hooked(&world);
        vibe(&world, &["install"]).expect(0);
        let seen = [STATIC, INDEX, RECORD, "AGENTS.md"].map(|path| world.read(path));
        for id in ["org.b/base", "org.c/more"] {
            let place = slot(&world, id, "1.0.0");
            match damage {
                "" => fs::remove_dir_all(place).unwrap(),
                file => fs::write(place.join(file), "damaged").unwrap(),
            }
        }
        for arguments in [
            &["reinstall", "org.a/top"][..],
            &["hooks", "run", "org.e/hooked", "--force"],
        ] {
            vibe(&world, arguments)
                .expect(0)
                .stderr_has("boot text is left as it is")
                .stderr_has("org.b.base/1.0.0");
            assert_eq!(
                seen,
                [STATIC, INDEX, RECORD, "AGENTS.md"].map(|path| world.read(path))
            );
        }
        vibe(&world, &["verify"]).expect(3);
        vibe(&world, &["verify", "--repair"]).expect(0);
        assert_eq!(
            seen,
            [STATIC, INDEX, RECORD, "AGENTS.md"].map(|path| world.read(path))
        );
        settled(&world);
    }
}

#[test]
fn a_package_whose_text_was_damaged_is_repaired_with_what_was_made_of_it() {
    let world = three();
    vibe(&world, &["install"]).expect(0);
    let whole = outside_state(&world).ignoring_times();
    let notes = slot(&world, "org.b/base", "1.0.0").join("boot/notes.md");
    fs::write(notes, "damaged\n").unwrap();
    world.write(STATIC, "damaged\n");
    vibe(&world, &["reinstall", "org.b/base"]).expect(0);
    whole.assert_unchanged(&outside_state(&world).ignoring_times());
    vibe(&world, &["verify"]).expect(0);
}

#[test]
fn a_path_package_that_loses_its_text_is_refused_before_anything_is_written() {
    let world = World::new();
    let local = world.project().join("local");
    with_boot("org.p/local", "One.\n", "link = \"static\"").write(&local);
    world.write(
        "vibe.toml",
        "[project]\nname = \"p\"\n\n[requires.packages]\n\"org.p/local\" = { path = \"local\" }\n",
    );
    vibe(&world, &["install"]).expect(0);
    fs::remove_file(local.join("boot/notes.md")).unwrap();
    let before = outside_state(&world);
    for arguments in [&["install", "--dry-run"][..], &["install"]] {
        vibe(&world, arguments)
            .expect(1)
            .stderr_has("it is not in the package");
    }
    before.assert_unchanged(&outside_state(&world));
}

#[test]
fn a_text_may_be_any_file_of_its_package_and_nothing_else() {
    let check = |source: &str, file: Option<&str>, says: Option<&str>| {
        let world = World::new();
        let package = PackageBuilder::new("org.a/odd", "1.0.0")
            .manifest_extra(&format!("[boot]\nsource = {source:?}\n"))
            .file("directory/file", "text\n")
            .file(".vibeignore", "ignored.md\n");
        let package = match file {
            Some(path) => package.file(path, "Text.\n"),
            None => package,
        };
        package.publish(&world.registry());
        world.require(&[("org.a/odd", "^1")]);
        let Some(says) = says else {
            vibe(&world, &["install"]).expect(0);
            let index = world.read(INDEX);
            assert!(
                index.contains(&format!("vibedeps/org.a.odd/1.0.0/{source}")),
                "{index}"
            );
            return settled(&world);
        };
        vibe(&world, &["install"]).expect(1).stderr_has(says);
        assert!(!exists(&world, "vibe.lock"));
    };
    let missing = Some("it is not in the package");
    check("vibe.toml", None, None);
    check("scripts/run.sh", Some("scripts/run.sh"), None);
    check("b`oot/@x``.md", Some("b`oot/@x``.md"), None);
    check("büro/ノート.md", Some("büro/ノート.md"), None);
    check("directory", None, missing);
    check("ignored.md", Some("ignored.md"), missing);
}

#[test]
fn a_condition_of_any_length_stays_on_its_line() {
    let world = World::new();
    let when = format!("@{}", "x".repeat(10_000));
    let more = format!("when = \"{when}\\n# y\\u001b[2J\"");
    with_boot("org.a/long", "Text.\n", &more).publish(&world.registry());
    with_boot(
        "org.b/fixed",
        "Text.\n",
        &format!("link = \"static\"\n{more}"),
    )
    .publish(&world.registry());
    world.require(&[("org.a/long", "^1"), ("org.b/fixed", "^1")]);
    vibe(&world, &["install"]).expect(0);
    let condition = format!("(when `{when}\\n# y\\x1B[2J`)");
    assert!(
        world
            .read(INDEX)
            .ends_with(&format!("org.a/long 1.0.0 {condition}\n"))
    );
    assert!(
        world
            .read(STATIC)
            .contains(&format!("\n# org.b/fixed 1.0.0 {condition}\n"))
    );
    settled(&world);
}

#[test]
fn texts_that_are_too_long_together_are_refused_before_anything_is_written() {
    let world = World::new();
    let text = "a".repeat(1 << 20);
    let ids: Vec<String> = (0..32).map(|number| format!("org.a/p{number}")).collect();
    for id in &ids {
        with_boot(id, &text, "link = \"static\"").publish(&world.registry());
    }
    let all: Vec<(&str, &str)> = ids.iter().map(|id| (id.as_str(), "^1")).collect();
    world.require(&all);
    vibe(&world, &["install"])
        .expect(1)
        .stderr_has("STATIC.md")
        .stderr_has("it would be larger than 32 MiB")
        .stderr_has("hint: ");
    assert!(!exists(&world, "vibe.lock"));
    world.require(&all[1..]);
    vibe(&world, &["install"]).expect(0);
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
}

#[test]
fn packages_that_require_each_other_stand_in_a_fixed_order() {
    let world = World::new();
    with_boot("org.a/one", "One.\n", "link = \"static\"")
        .depends("org.a/two", "^1")
        .publish(&world.registry());
    with_boot("org.a/two", "Two.\n", "link = \"static\"")
        .depends("org.a/one", "^1")
        .publish(&world.registry());
    world.require(&[("org.a/one", "^1")]);
    vibe(&world, &["install"]).expect(0);
    let text = world.read(STATIC);
    assert!(text.find("One.") < text.find("Two."), "{text}");
    settled(&world);
}

#[test]
fn an_update_keeps_the_order_and_follows_what_the_packages_ask_for() {
    let world = three();
    vibe(&world, &["install"]).expect(0);
    let newer = |id: &str, version: &str, boot: &str| {
        PackageBuilder::new(id, version)
            .manifest_extra(boot)
            .file("boot/notes.md", format!("{id} {version}\n"))
    };
    let fixed = "[boot]\nsource = \"boot/notes.md\"\nlink = \"static\"\n";
    newer("org.b/base", "1.1.0", fixed).publish(&world.registry());
    newer("org.a/top", "1.1.0", fixed)
        .depends("org.b/base", "^1")
        .publish(&world.registry());
    newer("org.c/more", "1.1.0", fixed).publish(&world.registry());
    vibe(&world, &["update"]).expect(0);
    assert!(!exists(&world, INDEX));
    let text = world.read(STATIC);
    let headings: Vec<&str> = text.lines().filter(|line| line.starts_with("# ")).collect();
    assert_eq!(
        headings,
        [
            "# org.b/base 1.1.0",
            "# org.a/top 1.1.0",
            "# org.c/more 1.1.0"
        ]
    );
    assert!(
        text.contains("org.c/more 1.1.0\n\norg.c/more 1.1.0\n"),
        "{text}"
    );
    settled(&world);
    newer("org.a/top", "1.2.0", "")
        .depends("org.b/base", "^1")
        .publish(&world.registry());
    newer("org.b/base", "1.2.0", "").publish(&world.registry());
    newer(
        "org.c/more",
        "1.2.0",
        "[boot]\nsource = \"boot/notes.md\"\n",
    )
    .publish(&world.registry());
    vibe(&world, &["update"]).expect(0);
    assert!(!exists(&world, STATIC));
    assert!(world.read(INDEX).contains("org.c/more 1.2.0\n"));
    settled(&world);
}

#[test]
fn a_block_in_a_file_that_was_edited_while_it_was_to_go_is_taken_out_by_the_next_run() {
    let world = three();
    vibe(&world, &["install"]).expect(0);
    world.require(&[("org.d/silent", "^1")]);
    let digest = |path: &str| Sha256Digest::of(world.read(path).as_bytes()).to_string();
    let rows = ["AGENTS.md", INDEX, STATIC, RECORD]
        .map(|path| serde_json::json!({"path": path, "before": digest(path), "after": null}));
    let text = serde_json::json!({"form": 1, "files": rows}).to_string();
    world.write("vibedeps/.state/commit", &text);
    world.write(
        "AGENTS.md",
        &format!("Meanwhile.\n{}", world.read("AGENTS.md")),
    );
    vibe(&world, &["install"])
        .expect(0)
        .stderr_has("AGENTS.md has changed since and is left as it is");
    assert_eq!(world.read("AGENTS.md"), "Meanwhile.\n");
    for path in ["vibedeps/boot", RECORD] {
        assert!(!exists(&world, path), "{path}");
    }
    settled(&world);
}

#[test]
fn two_runs_at_once_end_as_one_does() {
    let world = three();
    world.write("AGENTS.md", "mine\n");
    let runs = [0, 1, 2].map(|_| start(&mut command(&world, &["install"])));
    for child in runs {
        wait(child).expect(0);
    }
    assert_eq!(world.read("AGENTS.md").matches(BEGIN).count(), 1);
    settled(&world);
}

#[test]
fn a_project_that_cannot_be_written_is_no_obstacle_where_all_is_as_it_should_be() {
    let world = three();
    world.write("AGENTS.md", "mine\n");
    run(&mut unprivileged(&world, &["install"])).expect(0);
    let set_modes = |change: &dyn Fn(u32) -> u32| {
        for directory in [
            "",
            "vibedeps",
            "vibedeps/boot",
            "vibedeps/.state",
            "vibedeps/.state/staging",
        ] {
            let path = world.project().join(directory);
            let mode = fs::metadata(&path).unwrap().permissions().mode();
            set_mode(&path, change(mode));
        }
    };
    set_modes(&|mode| mode & !0o222);
    let before = world.snapshot();
    let try_all = |code| {
        for arguments in [&["install"][..], &["install", "--locked"], &["verify"]] {
            let expected = if arguments == ["verify"] && code != 0 {
                3
            } else {
                code
            };
            let ran = run(&mut unprivileged(&world, arguments)).expect(expected);
            if code == 1 && expected == 1 {
                ran.stderr_has("/project/vibedeps");
            }
        }
    };
    try_all(0);
    before.assert_unchanged(&world.snapshot());
    set_modes(&|mode| mode | 0o200);
    let text = world.read("AGENTS.md").replace("Before", "After");
    world.write("AGENTS.md", &text);
    set_modes(&|mode| mode & !0o222);
    try_all(1);
    assert_eq!(world.read("AGENTS.md"), text);
    set_modes(&|mode| mode | 0o200);
    assert!(!is_superuser() || world.read(STATIC).contains("Base text."));
}

const KIT: &str = "org.example/kit";

/// A project that requires [`KIT`] in place.
fn in_place(package: &PackageBuilder) -> (World, GitRepository) {
    let world = World::new();
    let repository = GitRepository::new(&world.root().join("kit"));
    repository.package(package);
    repository.commit("first");
    let url = repository.file_url();
    world.write(
        "vibe.toml",
        &format!("[project]\nname = \"world\"\nharnesses = [\"claude-code\"]\n[requires.packages]\n\"{KIT}\" = {{ git = \"{url}\", branch = \"main\" }}\n"),
    );
    (world, repository)
}

fn kit(version: &str, boot: &str) -> PackageBuilder {
    PackageBuilder::new(KIT, version)
        .manifest_extra("[package]\nmaterialization = \"in-place\"\n")
        .manifest_extra(&format!("[boot]\nsource = \"boot/notes.md\"\n{boot}\n"))
        .file("boot/notes.md", format!("Text {version}.\n"))
}

#[test]
fn a_package_in_place_has_its_text_seen_and_brought_up_to_date() {
    for boot in ["link = \"static\"", ""] {
        let (world, repository) = in_place(&kit("1.0.0", boot));
        vibe(&world, &["install"]).expect(0);
        assert!(world.read("CLAUDE.md").contains("@vibedeps/boot/"));
        let file = if boot.is_empty() { INDEX } else { STATIC };
        let has = |text: &str| assert!(world.read(file).contains(text), "{}", world.read(file));
        match boot {
            "" => has("`vibedeps/org.example.kit/boot/notes.md`: org.example/kit 1.0.0\n"),
            _ => has("\nText 1.0.0.\n"),
        }
        settled(&world);
        repository.package(&kit("1.1.0", boot));
        repository.commit("second");
        vibe(&world, &["update"]).expect(0);
        has("org.example/kit 1.1.0\n");
        settled(&world);
        let whole = [file, "AGENTS.md", "CLAUDE.md", RECORD].map(|path| world.read(path));
        let clone = world.project().join("vibedeps/org.example.kit");
        fs::remove_dir_all(&clone).unwrap();
        vibe(&world, &["verify"]).expect(3);
        vibe(&world, &["install", "--locked"]).expect(0);
        settled(&world);
        // A manifest that is gone from the clone, when nothing is remembered.
        fs::remove_file(clone.join("vibe.toml")).unwrap();
        fs::remove_file(world.project().join("vibedeps/.state/fresh")).unwrap();
        vibe(&world, &["install"]).expect(0);
        vibe(&world, &["verify", "--repair"]).expect(0);
        assert_eq!(
            whole,
            [file, "AGENTS.md", "CLAUDE.md", RECORD].map(|path| world.read(path))
        );
        settled(&world);
    }
}

#[test]
fn a_package_in_place_makes_its_text_and_a_link_is_no_text() {
    let package = PackageBuilder::new(KIT, "1.0.0")
        .manifest_extra("[package]\nmaterialization = \"in-place\"\n")
        .manifest_extra("[boot]\nsource = \"made.md\"\nlink = \"static\"\n")
        .hook(Phase::PreInstall, "echo Made. > made.md\n");
    let (world, _) = in_place(&package);
    vibe(&world, &["install", "--no-hooks"])
        .expect(0)
        .stderr_has("its boot text made.md is not there");
    assert!(!exists(&world, STATIC));
    vibe(&world, &["install"]).expect(0);
    assert!(world.read(STATIC).contains("Made."));
    settled(&world);
    let package = PackageBuilder::new(KIT, "1.0.0")
        .manifest_extra("[package]\nmaterialization = \"in-place\"\n")
        .manifest_extra("[boot]\nsource = \"link.md\"\n")
        .file("text.md", "Text.\n");
    let (world, repository) = in_place(&package);
    symlink("text.md", world.root().join("kit/link.md")).unwrap();
    repository.commit("a link");
    vibe(&world, &["install"])
        .expect(1)
        .stderr_has("the boot text link.md of org.example/kit 1.0.0 cannot be used");
    assert!(!exists(&world, "vibe.lock"));
    assert!(!world.project().join("vibedeps/org.example.kit").exists());
}

#[test]
fn a_linked_package_has_its_text_compiled_from_what_is_linked() {
    let world = World::new();
    with_boot("org.a/linked", "Linked.\n", "link = \"static\"")
        .manifest_extra("[package]\nmaterialization = \"hardlink\"\n")
        .publish(&world.registry());
    world.require(&[("org.a/linked", "^1")]);
    vibe(&world, &["install"]).expect(0);
    assert!(world.read(STATIC).ends_with("\n\nLinked.\n"));
    settled(&world);
    assert!(world.read("AGENTS.md").ends_with(&format!("{END}\n")));
}
