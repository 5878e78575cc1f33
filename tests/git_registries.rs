//! Git registries: one repository a package, below the address of an organisation.

use crate::git_support::{
    LINT, Served, git_command, locked, release, release_package, served as served_directory,
};
use crate::support::{lint_slot, outside_state, read, refused, run, slot};
use vibe_testkit::{GitRepository, PackageBuilder};

/// Publishes a version of a package in the registry `registry`. Gives the commit.
fn publish(served: &Served, registry: &str, id: &str, version: &str, text: &str) -> String {
    let name = format!("{registry}/{}.git", id.replace('/', "."));
    let package = PackageBuilder::new(id, version).file("from.md", text);
    release_package(&served.repository(&name), &package, version)
}

/// Writes a manifest with these requirements and these registries, in order.
fn manifest(served: &Served, requires: &str, registries: &[(&str, &str)]) {
    let registry =
        |(name, url): &(&str, &str)| format!("[[registry]]\nname = \"{name}\"\nurl = \"{url}\"\n");
    let registries: String = registries.iter().map(registry).collect();
    let text =
        format!("[project]\nname = \"world\"\n[requires.packages]\n{requires}\n{registries}");
    served.world.write("vibe.toml", &text);
}

fn from(served: &Served, id: &str, version: &str) -> String {
    read(slot(&served.world, id, version).join("from.md"))
}

/// Like [`refused`], allowed to ask plain servers of this machine.
#[track_caller]
fn fails(served: &Served, arguments: &[&str], code: i32, parts: &[&str]) {
    let before = outside_state(&served.world);
    let mut run = run(&mut git_command(&served.world, arguments)).expect(code);
    for part in parts {
        run = run.stderr_has(part);
    }
    before.assert_unchanged(&outside_state(&served.world));
}

#[test]
fn the_first_registry_that_knows_a_package_gives_it() {
    let served = Served::new();
    publish(&served, "one", "org.example/a", "1.0.0", "one");
    publish(&served, "two", "org.example/a", "1.5.0", "two");
    let b = publish(&served, "two", "org.example/b", "2.0.0", "two");
    let local = PackageBuilder::new("org.example/c", "1.0.0").file("from.md", "directory");
    local.publish(&served.world.registry());
    publish(&served, "one", "org.example/c", "1.1.0", "one");
    let (one, two) = (served.url("one"), served.url("two"));
    let registries = [
        ("directory", "../registry"),
        ("one", &*one),
        ("two", &*format!("{two}/")),
    ];
    let all = "\"org.example/a\" = \"*\"\n\"org.example/b\" = \"*\"\n\"org.example/c\" = \"*\"";
    manifest(&served, all, &registries);
    served.vibe(&["install"]).expect(0);
    for (id, version, registry) in [
        ("org.example/a", "1.0.0", "one"),
        ("org.example/b", "2.0.0", "two"),
        ("org.example/c", "1.0.0", "directory"),
    ] {
        assert_eq!(from(&served, id, version), registry);
    }
    let source = locked(&served.world, "org.example/b", "source");
    assert_eq!(source, format!("git+{two}/org.example.b.git"));
    assert_eq!(locked(&served.world, "org.example/b", "commit"), b);
    assert_eq!(locked(&served.world, "org.example/b", "ref"), "tag:v2.0.0");
    let (asked, run) = served.connections_of(|| served.vibe(&["install", "--locked"]));
    run.expect(0);
    assert_eq!(asked, 0);
}

#[test]
fn a_registry_asked_for_by_name_is_the_only_one() {
    let served = Served::new();
    publish(&served, "one", LINT, "1.0.0", "one");
    publish(&served, "two", LINT, "1.5.0", "two");
    let (one, two) = (served.url("one"), served.url("two"));
    let both = [("one", &*one), ("two", &*two)];
    let any = format!("\"{LINT}\" = \"^1\"");
    manifest(&served, &any, &both);
    served.vibe(&["install"]).expect(0);
    let pinned = format!("\"{LINT}\" = {{ version = \"^1\", registry = \"two\" }}");
    for (requires, registries) in [(&pinned, &both[..]), (&any, &both[1..])] {
        manifest(&served, requires, registries);
        let locked = format!("{one}/org.example.lint.git");
        fails(
            &served,
            &["install", "--locked"],
            3,
            &[LINT, &locked, "hint: "],
        );
    }
    served.vibe(&["install"]).expect(0);
    assert_eq!(from(&served, LINT, "1.5.0"), "two");
    served.vibe(&["install", "--locked"]).expect(0);
}

#[test]
fn a_package_that_no_registry_has_is_named_with_the_way_out() {
    let served = Served::new();
    publish(&served, "one", LINT, "1.0.0", "one");
    let one = served.url("one");
    manifest(&served, "\"org.example/none\" = \"^1\"", &[("one", &one)]);
    fails(
        &served,
        &["install"],
        1,
        &["org.example/none", "`[[registry]]`", "hint: "],
    );
    manifest(&served, &format!("\"{LINT}\" = \"^2\""), &[("one", &one)]);
    fails(&served, &["install"], 1, &[LINT, "^2", "1.0.0", "hint: "]);
    manifest(&served, "", &[("one", &one)]);
    fails(
        &served,
        &["install", "org.example/none"],
        1,
        &["org.example/none", "hint: "],
    );
}

#[test]
fn versions_are_tags_and_are_held_until_an_update() {
    let served = Served::new();
    publish(&served, "one", LINT, "1.0.0", "1.0.0");
    let repository = served.repository("one/org.example.lint.git");
    for tag in ["1.9.0", "version-1.9.0", "v1.9", "v01.9.0", "latest"] {
        repository.tag(tag);
    }
    let one = served.url("one");
    manifest(&served, "", &[("one", &one)]);
    served.vibe(&["install", LINT]).expect(0);
    let text = served.world.read("vibe.toml");
    assert!(text.contains(&format!("\"{LINT}\" = \"^1.0.0\"")), "{text}");
    publish(&served, "one", LINT, "1.1.0", "1.1.0");
    publish(&served, "one", LINT, "1.2.0-rc.1", "1.2.0-rc.1");
    publish(&served, "one", LINT, "2.0.0", "2.0.0");
    let (asked, run) = served.connections_of(|| served.vibe(&["install"]));
    run.expect(0).stdout_has("nothing to do");
    assert_eq!(asked, 0);
    served
        .vibe(&["update"])
        .expect(0)
        .stderr_has("1.0.0 -> 1.1.0");
    assert_eq!(from(&served, LINT, "1.1.0"), "1.1.0");
    served
        .vibe(&["install", &format!("{LINT}@=1.2.0-rc.1")])
        .expect(0);
    assert_eq!(from(&served, LINT, "1.2.0-rc.1"), "1.2.0-rc.1");
    assert_eq!(locked(&served.world, LINT, "ref"), "tag:v1.2.0-rc.1");
}

#[test]
fn a_registry_of_this_machine_is_named_by_a_file_address() {
    let served = Served::new();
    publish(&served, "one", LINT, "1.0.0", "one");
    let url = format!(
        "file://{}",
        served_directory(&served.world).join("one").display()
    );
    manifest(&served, &format!("\"{LINT}\" = \"*\""), &[("one", &url)]);
    crate::support::vibe(&served.world, &["install"]).expect(0);
    assert_eq!(from(&served, LINT, "1.0.0"), "one");
    let source = locked(&served.world, LINT, "source");
    assert_eq!(source, format!("git+{url}/org.example.lint.git"));
    assert_eq!(served.daemon.connections(), 0);
}

#[test]
fn a_plain_registry_is_asked_only_where_the_user_names_its_host() {
    let served = Served::new();
    publish(&served, "one", LINT, "1.0.0", "one");
    let one = served.url("one");
    manifest(&served, &format!("\"{LINT}\" = \"*\""), &[("one", &one)]);
    refused(
        &served.world,
        &["install"],
        2,
        &[&one, "insecure-hosts", "hint: "],
    );
    assert_eq!(served.daemon.connections(), 0);
}

#[test]
fn a_lock_may_name_no_other_repository_than_the_packages_own() {
    let served = Served::new();
    publish(&served, "one", LINT, "1.0.0", "one");
    publish(&served, "one", "org.example/other", "1.0.0", "other");
    let evil = GitRepository::new(&served_directory(&served.world).join("evil"));
    release(&evil, "1.0.0");
    let one = served.url("one");
    manifest(&served, &format!("\"{LINT}\" = \"*\""), &[("one", &one)]);
    served.vibe(&["install"]).expect(0);
    let lock = served.world.read("vibe.lock");
    let own = format!("{one}/org.example.lint.git");
    std::fs::remove_dir_all(served.world.project().join("vibedeps")).unwrap();
    crate::git_support::forget_fetched(&served.world);
    for other in [
        served.url("evil"),
        format!("{one}/../evil"),
        format!("{one}/org.example.other.git"),
        format!("{one}/org.example.lint"),
        format!("{one}x/org.example.lint.git"),
        own.replace("git://", "https://"),
    ] {
        served.world.write("vibe.lock", &lock.replace(&own, &other));
        for arguments in [&["install", "--locked"][..], &["verify", "--repair"]] {
            let (asked, ()) = served.connections_of(|| {
                fails(&served, arguments, 3, &[LINT, "vibe.lock", "hint: "]);
            });
            assert_eq!(asked, 0, "{other}");
        }
        assert!(!lint_slot(&served.world, "1.0.0").exists());
    }
}
