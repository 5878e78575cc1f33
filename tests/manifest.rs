//! Manifests that are wrong, or ask for what cannot be had: refused by name, with nothing written;
//! and what `install` makes of those that are right.

use std::path::Path;

use crate::support::{command_in, lint, outside_state, read, redacted, refused, run, slot, vibe};
use vibe_core::hook::Phase;
use vibe_testkit::{PackageBuilder, TreeSnapshot, World};

/// A case of `conform/cases/project`: what a run of `install` must say.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    /// The project's manifest; absent: one that requires org.example/lint ^1.
    manifest: Option<String>,
    /// The manifest of org.example/lint 1.0.0 in the registry; absent: one that is right.
    package: Option<String>,
    /// The exit code.
    exit: i32,
    /// What standard error must hold.
    shows: Vec<String>,
}

#[test]
fn every_case_of_a_project_is_refused_as_it_says_and_nothing_is_written() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conform/cases/project");
    let mut cases: Vec<_> = std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .collect();
    cases.sort();
    assert!(cases.len() > 50, "only {} cases in {folder}", cases.len());
    let wrong: Vec<String> = cases
        .iter()
        .filter_map(|path| check_case(path).err())
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn check_case(path: &Path) -> Result<(), String> {
    let case: Case = toml::from_str(&read(path)).unwrap_or_else(|e| panic!("{path:?}: {e}"));
    let world = World::new();
    let mut package = PackageBuilder::new("org.example/lint", "1.0.0").file("lint.md", "lint\n");
    if let Some(text) = &case.package {
        package = package.file("vibe.toml", text);
    }
    package.publish(&world.registry());
    world.require(&[("org.example/lint", "^1")]);
    if let Some(text) = &case.manifest {
        world.write("vibe.toml", text);
    }
    let before = kept(&world);
    let run = vibe(&world, &["install"]);
    let missing: Vec<&String> = case
        .shows
        .iter()
        .filter(|part| !run.stderr.contains(*part))
        .collect();
    let written = before.diff(&kept(&world));
    if run.code == case.exit && missing.is_empty() && written.is_empty() {
        return Ok(());
    }
    let name = path.file_name().unwrap();
    let (code, stderr) = (run.code, &run.stderr);
    Err(format!(
        "{name:?}: exit {code}, missing {missing:?}, written {written:?}, says\n{stderr}"
    ))
}

/// The project without what opening it for work leaves in `vibedeps/`.
fn kept(world: &World) -> TreeSnapshot {
    let mut snapshot = world.snapshot().ignoring_times();
    let opened = ["vibedeps", "vibedeps/.gitattributes", "vibedeps/.gitignore"];
    snapshot
        .entries
        .retain(|path, _| !opened.contains(&path.as_str()) && !path.starts_with("vibedeps/.state"));
    snapshot
}

#[test]
fn a_manifest_that_is_too_large_or_too_deep_is_refused_with_its_limit() {
    let world = World::new();
    world.write(
        "vibe.toml",
        &format!("[project]\nname = \"a\"\n# {}\n", "x".repeat(9 << 20)),
    );
    refused(
        &world,
        &["install"],
        2,
        &["9437", "limit of 1048576", "hint: "],
    );
    let nested = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    world.write(
        "vibe.toml",
        &format!("[project]\nname = \"a\"\nx = {nested}\n"),
    );
    refused(
        &world,
        &["install"],
        2,
        &["vibe.toml:3:", "nested deeper than 64 levels"],
    );
}

#[test]
fn a_manifest_may_have_a_byte_order_mark_and_carriage_returns_and_no_other_encoding() {
    let world = World::new();
    PackageBuilder::new("org.example/lint", "1.0.0").publish(&world.registry());
    world.require(&[("org.example/lint", "^1")]);
    let plain = world.read("vibe.toml");
    let utf16: Vec<u8> = std::iter::once(0xfeff)
        .chain(plain.encode_utf16())
        .flat_map(u16::to_le_bytes)
        .collect();
    let manifest = world.project().join("vibe.toml");
    std::fs::write(&manifest, utf16).unwrap();
    refused(
        &world,
        &["install"],
        2,
        &["vibe.toml", "UTF-16", "save it as UTF-8"],
    );
    std::fs::write(&manifest, b"[project]\nname = \"caf\xe9\"\n").unwrap();
    refused(&world, &["install"], 2, &["vibe.toml", "UTF-8", "hint: "]);
    assert!(!world.project().join("vibedeps").exists());
    let windows = format!("\u{feff}{}", plain.replace('\n', "\r\n"));
    world.write("vibe.toml", &windows);
    vibe(&world, &["install"]).expect(0);
    assert!(
        slot(&world, "org.example/lint", "1.0.0")
            .join("vibe.toml")
            .is_file()
    );
    assert_eq!(world.read("vibe.toml"), windows);
}

#[cfg(unix)]
#[test]
fn a_manifest_that_is_no_regular_file_is_refused_and_not_followed() {
    let world = World::new();
    std::fs::create_dir(world.project().join("vibe.toml")).unwrap();
    refused(
        &world,
        &["install"],
        2,
        &["vibe.toml is a directory", "hint: "],
    );
    std::fs::remove_dir(world.project().join("vibe.toml")).unwrap();
    std::fs::write(
        world.root().join("other.toml"),
        "[project]\nname = \"other\"\n",
    )
    .unwrap();
    std::os::unix::fs::symlink("../other.toml", world.project().join("vibe.toml")).unwrap();
    refused(
        &world,
        &["install"],
        2,
        &["vibe.toml is a symbolic link", "hint: "],
    );
}

#[test]
fn a_package_is_no_project() {
    let world = World::new();
    PackageBuilder::new("org.example/lint", "1.0.0").write(&world.project());
    refused(
        &world,
        &["install"],
        2,
        &["is a package, not a project", "vibe install path:"],
    );
    assert!(!world.project().join("vibedeps").exists());
}

#[test]
fn an_empty_project_is_left_without_a_trace() {
    let world = World::new();
    world.write("vibe.toml", "[project]\nname = \"empty\"\n");
    let before = world.snapshot();
    vibe(&world, &["install"]).expect(0);
    before.assert_unchanged(&world.snapshot());
}

#[test]
fn no_manifest_here_or_above_is_an_error_that_says_how_to_start() {
    let world = World::new();
    refused(&world, &["install"], 2, &["no vibe.toml", "vibe init"]);
}

#[test]
fn a_base_path_names_the_scripts_beside_it_and_an_empty_table_means_no_hooks() {
    let world = World::new();
    PackageBuilder::new("org.example/none", "1.0.0").publish(&world.registry());
    PackageBuilder::new("org.example/empty", "1.0.0")
        .manifest_extra("[hooks]\n")
        .file("hooks/pre-install.sh", "touch ran\n")
        .publish(&world.registry());
    PackageBuilder::new("org.example/based", "1.0.0")
        .manifest_extra("[hooks]\npre-install = \"tools/prepare\"\n")
        .file("tools/prepare.sh", "touch ran\n")
        .file("tools/prepare.ps1", "exit 9\n")
        .publish(&world.registry());
    world.require(&[
        ("org.example/none", "^1"),
        ("org.example/empty", "^1"),
        ("org.example/based", "^1"),
    ]);
    vibe(&world, &["install"]).expect(0);
    assert!(
        slot(&world, "org.example/based", "1.0.0")
            .join("ran")
            .exists()
    );
    assert!(
        !slot(&world, "org.example/empty", "1.0.0")
            .join("ran")
            .exists()
    );
    let hooks = vibe(&world, &["hooks", "list", "--json"]).expect(0).json();
    let listed = hooks["result"].to_string();
    assert!(
        listed.contains("org.example/based") && listed.contains("tools/prepare.sh"),
        "{listed}"
    );
    assert!(
        !listed.contains("org.example/empty") && !listed.contains("org.example/none"),
        "{listed}"
    );
}

#[test]
fn packages_that_require_each_other_install_in_order_of_id_and_it_is_said_once() {
    let world = World::new();
    let log = "echo \"$VIBE_PACKAGE_NAME\" >> \"$VIBE_PROJECT_ROOT/order\"\n";
    for (name, other) in [("a", "b"), ("b", "a")] {
        PackageBuilder::new(&format!("org.example/{name}"), "1.0.0")
            .depends(&format!("org.example/{other}"), "^1")
            .hook(Phase::PreInstall, log)
            .publish(&world.registry());
    }
    world.require(&[("org.example/b", "^1")]);
    let run = vibe(&world, &["install"]).expect(0);
    assert_eq!(
        run.stderr.matches("require each other").count(),
        1,
        "{}",
        run.stderr
    );
    run.stderr_has("org.example/a, org.example/b");
    assert_eq!(world.read("order"), "a\nb\n");
}

#[test]
fn a_package_that_requires_itself_installs_or_is_named() {
    let world = World::new();
    PackageBuilder::new("org.example/a", "1.0.0")
        .depends("org.example/a", "^1")
        .publish(&world.registry());
    world.require(&[("org.example/a", "^1")]);
    vibe(&world, &["install"]).expect(0);
    vibe(&world, &["verify"]).expect(0);
    assert!(slot(&world, "org.example/a", "1.0.0").is_dir());
}

#[test]
fn two_versions_of_one_package_are_refused_with_both_chains_of_requirers() {
    let world = World::new();
    for version in ["1.0.0", "2.0.0"] {
        PackageBuilder::new("org.example/core", version).publish(&world.registry());
    }
    for (name, constraint) in [("fmt", "^1"), ("lint", "^2")] {
        PackageBuilder::new(&format!("org.example/{name}"), "1.0.0")
            .depends("org.example/core", constraint)
            .publish(&world.registry());
    }
    world.require(&[("org.example/fmt", "^1"), ("org.example/lint", "^1")]);
    let parts = [
        "org.example/fmt",
        "org.example/lint",
        "org.example/core ^1",
        "org.example/core ^2",
    ];
    let run = vibe(&world, &["install"]).expect(1);
    for part in parts {
        assert!(run.stderr.contains(part), "no {part} in\n{}", run.stderr);
    }
    assert!(!world.project().join("vibe.lock").exists());
    assert!(!slot(&world, "org.example/core", "1.0.0").exists());
}

#[test]
fn a_stated_conflict_is_refused_with_both_packages() {
    let world = World::new();
    PackageBuilder::new("org.example/fmt", "1.0.0").publish(&world.registry());
    PackageBuilder::new("org.example/lint", "1.0.0")
        .manifest_extra("[conflicts]\npackages = [\"org.example/fmt@^1\"]\n")
        .publish(&world.registry());
    world.require(&[("org.example/fmt", "^1"), ("org.example/lint", "^1")]);
    vibe(&world, &["install"])
        .expect(1)
        .stderr_has("org.example/lint")
        .stderr_has("org.example/fmt ^1")
        .stderr_has("conflict");
    assert!(!world.project().join("vibe.lock").exists());
}

#[test]
fn an_unknown_package_is_named_with_its_requirer_and_a_near_name() {
    let world = World::new();
    PackageBuilder::new("org.example/core", "1.0.0").publish(&world.registry());
    PackageBuilder::new("org.example/lint", "1.0.0")
        .depends("org.example/croe", "^1")
        .publish(&world.registry());
    world.require(&[("org.example/lint", "^1")]);
    vibe(&world, &["install"])
        .expect(1)
        .stderr_has("org.example/croe")
        .stderr_has("org.example/lint")
        .stderr_has("did you mean org.example/core?");
}

#[test]
fn a_package_is_added_with_a_caret_an_exact_or_its_stated_constraint_and_comments_stay() {
    let world = World::new();
    for (name, version) in [
        ("a", "1.2.3"),
        ("b", "0.3.1"),
        ("c", "1.5.0"),
        ("c", "2.0.0"),
    ] {
        PackageBuilder::new(&format!("org.example/{name}"), version).publish(&world.registry());
    }
    let head = "# mine\n[project]\nname = \"x\" # the name\n";
    let registry = "\n[[registry]]\n# where\nname = \"local\"\nurl = \"../registry\"\n";
    world.write("vibe.toml", &format!("{head}{registry}"));
    vibe(&world, &["install", "org.example/a"]).expect(0);
    vibe(&world, &["add", "--exact", "org.example/b"]).expect(0);
    vibe(&world, &["i", "org.example/c@~1.5"]).expect(0);
    let text = world.read("vibe.toml");
    for part in [
        "# mine\n",
        "# the name\n",
        "# where\n",
        "\"org.example/a\" = \"^1.2.3\"\n",
        "\"org.example/b\" = \"=0.3.1\"\n",
        "\"org.example/c\" = \"~1.5\"\n",
    ] {
        assert!(text.contains(part), "no {part:?} in\n{text}");
    }
    assert!(slot(&world, "org.example/c", "1.5.0").is_dir());
    assert!(!slot(&world, "org.example/c", "2.0.0").exists());
    refused(&world, &["install", "org.example/d"], 1, &["org.example/d"]);
}

#[test]
fn what_is_required_already_is_pinned_or_asked_for_otherwise_where_it_comes_from() {
    let world = World::new();
    let other = world.root().join("other");
    for (registry, version) in [(world.registry(), "1.0.0"), (other, "1.1.0")] {
        lint(version).publish(&registry);
    }
    let registries = "[[registry]]\nname = \"first\"\nurl = \"../registry\"\n\
                      [[registry]]\nname = \"other\"\nurl = \"../other\"\n";
    let required = |requirement: &str| {
        format!(
            "[project]\nname = \"x\"\n[requires.packages]\n\"org.example/lint\" = {requirement}\n{registries}"
        )
    };
    world.write("vibe.toml", &required("{ registry = \"other\" }"));
    vibe(&world, &["install"]).expect(0);
    let lock = world.read("vibe.lock");
    let wrote = vibe(&world, &["install", "--exact", "org.example/lint"]).expect(0);
    assert_eq!(
        redacted(&world, &wrote.stdout),
        "wrote vibe.toml in [time]\n"
    );
    let pinned = required("{ registry = \"other\", version = \"=1.1.0\" }");
    assert_eq!(world.read("vibe.toml"), pinned);
    vibe(&world, &["install", "--exact", "org.example/lint@^1"])
        .expect(0)
        .stdout_has("nothing to do");
    assert_eq!(world.read("vibe.toml"), pinned);
    vibe(&world, &["install", "org.example/lint@>=1"]).expect(0);
    assert_eq!(
        world.read("vibe.toml"),
        required("{ registry = \"other\", version = \">=1\" }")
    );
    assert_eq!(world.read("vibe.lock"), lock);
    vibe(&world, &["install", "--locked"]).expect(0);
}

#[test]
fn a_directory_is_added_as_the_root_sees_it() {
    let world = World::new();
    PackageBuilder::new("org.example/local", "0.1.0")
        .file("local.md", "1\n")
        .write(&world.root().join("local"));
    world.write("vibe.toml", "[project]\nname = \"x\"\n");
    world.write("deep/er/notes.md", "\n");
    let below = world.project().join("deep/er");
    run(&mut command_in(
        &world,
        &below,
        &["install", "path:../../../local"],
    ))
    .expect(0);
    assert!(
        world
            .read("vibe.toml")
            .contains("\"org.example/local\" = { path = \"../local\" }")
    );
    assert!(
        world
            .read("vibe.lock")
            .contains("source = \"path+../local\"")
    );
    assert_eq!(
        read(slot(&world, "org.example/local", "0.1.0").join("local.md")),
        "1\n"
    );
    refused(&world, &["install", "path:deep"], 2, &["deep", "vibe.toml"]);
    refused(
        &world,
        &["install", "git://host.example/x.git"],
        2,
        &["`git://host.example/x.git` uses git://", "hint: "],
    );
}

#[test]
fn without_a_manifest_one_is_started_at_the_root_of_the_git_work_tree_and_it_is_said() {
    let world = World::new();
    PackageBuilder::new("org.example/local", "0.1.0").write(&world.root().join("local"));
    std::fs::create_dir(world.project().join(".git")).unwrap();
    world.write("deep/notes.md", "\n");
    let below = world.project().join("deep");
    let started = run(&mut command_in(
        &world,
        &below,
        &["install", "path:../../local"],
    ))
    .expect(0);
    let said = format!("{}{}", started.stdout, started.stderr);
    let root = world.project().display().to_string();
    assert!(
        said.lines()
            .any(|line| line.contains("start") && line.contains(&root)),
        "{said}"
    );
    assert!(
        world
            .read("vibe.toml")
            .contains("\"org.example/local\" = { path = \"../local\" }")
    );
    assert!(!below.join("vibe.toml").exists());

    let plain = World::new();
    PackageBuilder::new("org.example/local", "0.1.0").write(&plain.root().join("local"));
    vibe(&plain, &["install", "path:../local"]).expect(0);
    assert!(plain.read("vibe.toml").contains("name = \"project\""));
}

#[test]
fn a_refused_addition_leaves_the_project_as_it_was() {
    let world = World::new();
    PackageBuilder::new("org.example/a", "1.0.0").publish(&world.registry());
    world.require(&[("org.example/a", "^1")]);
    vibe(&world, &["install"]).expect(0);
    refused(
        &world,
        &["install", "org.example/a@^9"],
        1,
        &["org.example/a", "^9"],
    );
    refused(
        &world,
        &["install", "org.example/none"],
        1,
        &["org.example/none"],
    );
    let before = outside_state(&world);
    vibe(&world, &["install", "--dry-run", "org.example/a@1.0.0"]).expect(0);
    before.assert_unchanged(&outside_state(&world));
}

#[test]
fn a_project_directory_that_is_not_there_is_a_usage_error() {
    let world = World::new();
    world.require(&[]);
    for directory in ["nowhere", "vibe.toml"] {
        for command in [&["list"][..], &["install"], &["install", "path:x"]] {
            let line = [&["--project", directory], command].concat();
            refused(&world, &line, 2, &[directory, "hint: name a directory"]);
        }
    }
}

#[test]
fn a_path_on_the_command_line_is_relative_to_where_it_was_typed() {
    let world = World::new();
    world.write("vibe.toml", "[project]\nname = \"world\"\n");
    PackageBuilder::new("org.example/local", "1.0.0").write(&world.root().join("elsewhere/local"));
    let typed_in = world.root().join("elsewhere");
    let project = world.project();
    let arguments = [
        "--project",
        project.to_str().unwrap(),
        "install",
        "path:local",
    ];
    run(&mut command_in(&world, &typed_in, &arguments)).expect(0);
    assert!(
        world
            .read("vibe.toml")
            .contains("path = \"../elsewhere/local\"")
    );
}
