//! `vibe list --items`: what the installed packages bring.

use crate::support::{slot, vibe};
use vibe_testkit::{PackageBuilder, World};

fn world() -> World {
    let world = World::new();
    PackageBuilder::new("org.example/kit", "1.0.0")
        .file("skills/review/SKILL.md", "review\n")
        .file("skills/review/more.md", "more\n")
        .file("agents/critic.md", "critic\n")
        .file("commands/commit.md", "commit\n")
        .file("rules/style.md", "style\n")
        .file("tools/lint/run.sh", "true\n")
        .file("hooks/format.md", "format\n")
        .file("docs/agents/none.md", "none\n")
        .publish(&world.registry());
    PackageBuilder::new("org.example/stated", "1.0.0")
        .file("prose/plan.md", "plan\n")
        .file("agents/hidden.md", "hidden\n")
        .manifest_extra("[[item]]\nkind = \"agent\"\nname = \"plan\"\npath = \"prose/plan.md\"\n")
        .manifest_extra("[[skill]]\nname = \"gone\"\npath = \"prose/gone\"\n")
        .publish(&world.registry());
    world.require(&[("org.example/kit", "*"), ("org.example/stated", "*")]);
    world
}

#[test]
fn items_are_those_of_the_manifest_or_those_that_lie_by_convention() {
    let world = world();
    vibe(&world, &["install"]).expect(0);
    let before = world.snapshot();
    let listed = vibe(&world, &["list", "--items"]).expect(0);
    insta::assert_snapshot!(listed.stdout, @r"
    agent    critic  org.example/kit     agents/critic.md
    command  commit  org.example/kit     commands/commit.md
    hook     format  org.example/kit     hooks/format.md
    rule     style   org.example/kit     rules/style.md
    skill    review  org.example/kit     skills/review/SKILL.md
    tool     lint    org.example/kit     tools/lint
    agent    plan    org.example/stated  prose/plan.md
    skill    gone    org.example/stated  prose/gone              not in the package
    ");
    insta::assert_snapshot!(listed.stderr, @"warning: org.example/stated declares the skill gone at prose/gone, where it has nothing");
    before.assert_unchanged(&world.snapshot());
    let one = vibe(&world, &["list", "--items", "--json", "org.example/stated"]).expect(0);
    let result = &one.json()["result"];
    assert_eq!(result.as_array().unwrap().len(), 2);
    assert_eq!(
        (&result[0]["missing"], &result[1]["missing"]),
        (&false.into(), &true.into())
    );
}

#[test]
fn packages_without_items_and_packages_that_are_not_there_have_none() {
    let world = world();
    let none = vibe(&world, &["list", "--items"]).expect(0);
    assert_eq!(none.stdout, "no items\n");
    vibe(&world, &["install"]).expect(0);
    std::fs::remove_dir_all(slot(&world, "org.example/kit", "1.0.0")).unwrap();
    let listed = vibe(&world, &["list", "--items", "org.example/kit"]).expect(0);
    assert_eq!(listed.stdout, "no items\n");
    listed.stderr_has("note: org.example/kit is not installed, so its items are not listed\n");
    vibe(&world, &["list", "--items", "org.example/kti"])
        .expect(1)
        .stderr_has("hint: did you mean org.example/kit?\n");
}

#[test]
fn a_list_can_be_of_some_packages() {
    let world = world();
    vibe(&world, &["install"]).expect(0);
    let listed = vibe(&world, &["list", "org.example/stated"]).expect(0);
    assert_eq!(listed.stdout, "org.example/stated  1.0.0  copy  3 files\n");
    vibe(&world, &["list", "org.example/no"]).expect(1);
}

#[cfg(unix)]
#[test]
fn the_items_of_a_clone_are_those_of_its_work_tree() {
    use crate::git_support::git_vibe;
    use vibe_testkit::GitRepository;
    let world = World::new();
    let repository = GitRepository::new(&world.root().join("kit"));
    let package = PackageBuilder::new("org.example/kit", "1.0.0")
        .manifest_extra("[package]\nmaterialization = \"in-place\"\n")
        .file("skills/review/SKILL.md", "review\n");
    repository.package(&package);
    repository.commit("first");
    let url = repository.file_url();
    crate::git_support::require(
        &world,
        &[(
            "org.example/kit",
            &format!("git = \"{url}\", branch = \"main\""),
        )],
    );
    git_vibe(&world, &["install"]).expect(0);
    let clone = world.project().join("vibedeps/org.example.kit");
    for directory in ["agents", "tools/deep/er", "tools/empty", "skills/draft"] {
        std::fs::create_dir_all(clone.join(directory)).unwrap();
    }
    std::fs::write(clone.join("agents/mine.md"), "mine\n").unwrap();
    std::fs::write(clone.join("tools/deep/er/run"), "mine\n").unwrap();
    std::os::unix::fs::symlink("../agents", clone.join("rules")).unwrap();
    let listed = git_vibe(&world, &["list", "--items"]).expect(0);
    insta::assert_snapshot!(listed.stdout, @r"
    agent  mine    org.example/kit  agents/mine.md
    skill  review  org.example/kit  skills/review/SKILL.md
    tool   deep    org.example/kit  tools/deep
    ");
}
