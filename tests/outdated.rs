//! `vibe outdated`: what an update would bring, and what there is besides.

use crate::git_support::{LINT, Served, git_vibe, release, require};
use crate::support::{outside_state, redacted, vibe};
use vibe_testkit::{PackageBuilder, World};

fn publish(world: &World, id: &str, version: &str) {
    PackageBuilder::new(id, version).publish(&world.registry());
}

/// A project with `core` 1.0.0, which `lint` requires, when nothing else was there.
fn world() -> World {
    let world = World::new();
    publish(&world, "org.example/core", "1.0.0");
    PackageBuilder::new("org.example/lint", "1.0.0")
        .depends("org.example/core", "^1")
        .publish(&world.registry());
    world.require(&[("org.example/lint", "1")]);
    vibe(&world, &["install"]).expect(0);
    world
}

#[test]
fn what_an_update_brings_and_what_is_newer_is_shown() {
    let world = world();
    let nothing = vibe(&world, &["outdated"]).expect(0);
    assert_eq!(nothing.stdout, "nothing newer is known of 2 packages\n");
    publish(&world, "org.example/core", "1.1.0");
    publish(&world, "org.example/core", "2.0.0");
    publish(&world, "org.example/core", "3.0.0-rc.1");
    let before = world.snapshot();
    let shown = vibe(&world, &["outdated"]).expect(0);
    insta::assert_snapshot!(shown.stdout, @r"
    package           current  compatible  latest  source
    org.example/core  1.0.0    1.1.0       2.0.0   dir+../registry
    ");
    assert_eq!(shown.stderr, "");
    before.assert_unchanged(&world.snapshot());
    let all = vibe(&world, &["outdated", "--all"]).expect(0);
    insta::assert_snapshot!(all.stdout, @r"
    package           current  compatible  latest  source
    org.example/core  1.0.0    1.1.0       2.0.0   dir+../registry
    org.example/lint  1.0.0    1.0.0       1.0.0   dir+../registry
    ");
    vibe(&world, &["update", "--dry-run"])
        .expect(0)
        .stderr_has("1.0.0 -> 1.1.0");
    let lint = vibe(&world, &["outdated", "org.example/lint"]).expect(0);
    assert_eq!(lint.stdout, "nothing newer is known of 1 package\n");
    vibe(&world, &["outdated", "org.example/lnit"])
        .expect(1)
        .stderr_has("hint: did you mean org.example/lint?\n");
}

#[test]
fn what_an_update_removes_and_a_path_that_moved_on_are_shown() {
    let world = world();
    PackageBuilder::new("org.example/lint", "1.1.0").publish(&world.registry());
    PackageBuilder::new("org.example/mine", "0.1.0").write(&world.root().join("mine"));
    vibe(&world, &["install", "path:../mine"]).expect(0);
    PackageBuilder::new("org.example/mine", "0.2.0").write(&world.root().join("mine"));
    let shown = vibe(&world, &["outdated"]).expect(0);
    insta::assert_snapshot!(shown.stdout, @r"
    package           current  compatible  latest  source
    org.example/core  1.0.0    removed     -       dir+../registry
    org.example/lint  1.0.0    1.1.0       1.1.0   dir+../registry
    org.example/mine  0.1.0    0.2.0       0.2.0   path+../mine
    ");
}

#[test]
fn a_registry_that_is_gone_takes_nothing_from_the_others() {
    let world = world();
    let other = world.root().join("other");
    PackageBuilder::new("org.other/more", "1.0.0").publish(&other);
    PackageBuilder::new("org.other/words", "1.0.0")
        .depends("org.other/more", "*")
        .publish(&other);
    let text = world.read("vibe.toml").replace(
        "[requires.packages]",
        "[requires.packages]\n\"org.other/words\" = { version = \"*\", registry = \"other\" }",
    );
    world.write(
        "vibe.toml",
        &format!("{text}[[registry]]\nname = \"other\"\nurl = \"../other\"\n"),
    );
    vibe(&world, &["install"]).expect(0);
    publish(&world, "org.example/core", "1.1.0");
    std::fs::remove_dir_all(&other).unwrap();
    let shown = vibe(&world, &["outdated"]).expect(1);
    insta::assert_snapshot!(shown.stdout, @r"
    package           current  compatible  latest  source
    org.example/core  1.0.0    1.1.0       1.1.0   dir+../registry
    org.other/more    1.0.0    -           -       dir+../other     gave no answer
    org.other/words   1.0.0    -           -       dir+../other     gave no answer
    ");
    insta::assert_snapshot!(redacted(&world, &shown.stderr), @r"
    error: the registry `other` cannot be read
      could not find [world]/project/../other
      No such file or directory (os error 2)
      1 other answer is missing; `--json` says which and why
    hint: correct the `url` of the registry `other` in vibe.toml, or mend what is there
    ");
    let told = vibe(&world, &["outdated", "--json"]).expect(1).json();
    let rows = told["result"]["rows"].as_array().unwrap();
    assert_eq!(rows[0]["error"], serde_json::Value::Null);
    let error = rows[2]["error"].as_str().unwrap();
    assert!(error.contains("registry `other`"), "{error}");
    assert_eq!(told["result"]["problem"], serde_json::Value::Null);
}

#[test]
fn requirements_without_a_solution_are_told_after_what_is_known() {
    let world = world();
    publish(&world, "org.example/core", "1.1.0");
    let text = world.read("vibe.toml").replace(
        "[requires.packages]",
        "[requires.packages]\n\"org.example/core\" = \"^7\"",
    );
    world.write("vibe.toml", &text);
    let shown = vibe(&world, &["outdated"]).expect(1);
    insta::assert_snapshot!(shown.stdout, @r"
    package           current  compatible  latest  source
    org.example/core  1.0.0    -           1.1.0   dir+../registry
    ");
    shown
        .stderr_has("error: ")
        .stderr_has("org.example/core ^7");
    let told = vibe(&world, &["outdated", "--json"]).expect(1).json();
    assert!(
        told["result"]["problem"]
            .as_str()
            .unwrap()
            .contains("org.example/core")
    );
}

#[test]
fn a_branch_is_told_by_its_commits_and_a_tag_is_pinned() {
    let (served, repository) = Served::with_lint(&["1.0.0"]);
    served.require_lint(", branch = \"main\"");
    served.vibe(&["install"]).expect(0);
    let old = repository.head();
    repository.write("more.md", "more\n", false);
    let new = repository.commit("more");
    let before = outside_state(&served.world);
    let shown = served.vibe(&["outdated"]).expect(0);
    let line = shown.stdout.lines().nth(1).unwrap().to_owned();
    let words: Vec<&str> = line.split_whitespace().collect();
    let (old, new) = (format!("({})", &old[..8]), format!("({})", &new[..8]));
    assert_eq!(
        words[..7],
        [LINT, "1.0.0", &old, "1.0.0", &new, "1.0.0", &new]
    );
    assert_eq!(words[8..], ["branch:main"]);
    before.assert_unchanged(&outside_state(&served.world));
    served.require_lint(", tag = \"v1.0.0\"");
    served.vibe(&["install"]).expect(0);
    served
        .vibe(&["outdated"])
        .expect(0)
        .stdout_has("nothing newer is known of 1 package\n");
    served
        .vibe(&["outdated", "--all"])
        .expect(0)
        .stdout_has("pinned");
}

#[test]
fn a_range_of_tags_is_told_by_versions() {
    let (served, repository) = Served::with_lint(&["1.0.0"]);
    served.require_lint(", version = \"^1\"");
    served.vibe(&["install"]).expect(0);
    release(&repository, "1.1.0");
    release(&repository, "2.0.0");
    let told = served.vibe(&["outdated", "--json"]).expect(0).json();
    let row = &told["result"]["rows"][0];
    assert_eq!(row["current"], "1.0.0");
    assert_eq!(row["compatible"], "1.1.0");
    assert_eq!(row["latest"], "2.0.0");
    assert_eq!(row["pinned"], false);
}

/// A project with a package of a server and one of a directory registry, of which each has something
/// newer.
fn mixed() -> (Served, String) {
    let (served, repository) = Served::with_lint(&["1.0.0"]);
    let world = &served.world;
    publish(world, "org.example/core", "1.0.0");
    let url = served.url("lint");
    require(
        world,
        &[(LINT, &format!("git = \"{url}\", version = \"^1\""))],
    );
    let text = world.read("vibe.toml");
    let text = format!(
        "{text}\"org.example/core\" = \"*\"\n[[registry]]\nname = \"local\"\nurl = \"../registry\"\n"
    );
    world.write("vibe.toml", &text);
    served.vibe(&["install"]).expect(0);
    release(&repository, "1.1.0");
    publish(world, "org.example/core", "1.1.0");
    (served, url)
}

#[test]
fn offline_the_directory_registries_are_asked_and_a_note_names_the_rest() {
    let (served, _) = mixed();
    let (asked, shown) = served.connections_of(|| served.vibe(&["--offline", "outdated"]));
    let shown = shown.expect(0);
    assert_eq!(asked, 0);
    insta::assert_snapshot!(shown.stdout, @r"
    package           current  compatible  latest  source
    org.example/core  1.0.0    1.1.0       1.1.0   dir+../registry
    ");
    insta::assert_snapshot!(shown.stderr, @"note: offline: what there is of org.example/lint was not asked");
}

#[test]
fn a_server_that_is_gone_takes_nothing_from_the_others() {
    let (served, url) = mixed();
    let Served { world, daemon } = served;
    drop(daemon);
    let shown = git_vibe(&world, &["outdated"]).expect(1);
    let stdout = shown.stdout.replace(&url, "[url]");
    insta::assert_snapshot!(stdout, @r"
    package           current  compatible  latest  source
    org.example/core  1.0.0    1.1.0       1.1.0   dir+../registry
    org.example/lint  1.0.0    -           -       git+[url] range:^1  gave no answer
    ");
    assert!(shown.stderr.starts_with("error: "), "{}", shown.stderr);
    let errors = shown
        .stderr
        .lines()
        .filter(|line| line.starts_with("error: "))
        .count();
    assert_eq!(errors, 1, "{}", shown.stderr);
    git_vibe(&world, &["outdated", "org.example/core"])
        .expect(0)
        .stderr_has("note: org.example/lint is taken as it is locked: ");
}

#[test]
fn what_a_package_of_a_silent_server_requires_is_still_told() {
    let served = Served::new();
    let world = &served.world;
    publish(world, "org.example/core", "1.0.0");
    let words = served.repository("words");
    crate::git_support::release_package(
        &words,
        &PackageBuilder::new("org.example/words", "1.0.0"),
        "1.0.0",
    );
    let url = served.url("words");
    let lint = served.repository("lint");
    let package = crate::support::lint("1.0.0")
        .depends("org.example/core", "^1")
        .manifest_extra(&format!(
            "[requires.packages]\n\"org.example/words\" = {{ git = \"{url}\", version = \"^1\" }}\n"
        ));
    crate::git_support::release_package(&lint, &package, "1.0.0");
    served.require_lint(", version = \"^1\"");
    let text = world.read("vibe.toml");
    let registry = "[[registry]]\nname = \"local\"\nurl = \"../registry\"\n";
    world.write("vibe.toml", &format!("{text}{registry}"));
    served.vibe(&["install"]).expect(0);
    publish(world, "org.example/core", "1.1.0");
    crate::git_support::release_package(
        &words,
        &PackageBuilder::new("org.example/words", "1.2.0"),
        "1.2.0",
    );
    std::fs::rename(
        world.root().join("served/lint"),
        world.root().join("served/gone"),
    )
    .unwrap();
    let shown = served.vibe(&["outdated", "--json"]).expect(1).json();
    let rows = shown["result"]["rows"].as_array().unwrap();
    let told: Vec<String> = rows
        .iter()
        .map(|row| {
            format!(
                "{} {} {}",
                row["id"],
                row["compatible"],
                row["error"].is_string()
            )
        })
        .collect();
    assert_eq!(
        told,
        [
            r#""org.example/core" "1.1.0" false"#,
            r#""org.example/lint" null true"#,
            r#""org.example/words" "1.2.0" false"#,
        ]
    );
}
