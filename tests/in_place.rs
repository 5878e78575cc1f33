//! Packages that are git clones in their slot.

use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use vibe_core::hook::Phase::{PostInstall, PreInstall};
use vibe_testkit::{GitRepository, PackageBuilder, World};

use crate::support::{self, Run, command, count, lines, read, run, start, vibe, wait, wait_until};

const ID: &str = "org.example/kit";

/// A hook that adds a line to `runs` in the project, and makes a file and an ignored one.
const WORK: &str = "set -e\necho \"$VIBE_HOOK_PHASE $VIBE_HOOK_REASON\" >> \"$VIBE_PROJECT_ROOT/runs\"\necho made > \"made-by-$VIBE_HOOK_PHASE\"\nmkdir -p out\necho ignored > out/x\n";

struct Kit {
    world: World,
    repository: GitRepository,
}

fn package(version: &str) -> PackageBuilder {
    PackageBuilder::new(ID, version)
        .manifest_extra("[package]\nmaterialization = \"in-place\"\n")
        .file(".gitignore", "out\n")
        .file("same.md", "same\n")
        .file("doc.md", format!("{version}\n"))
}

impl Kit {
    /// A project that requires the package by its branch `main`.
    fn new(package: &PackageBuilder) -> Self {
        let world = World::new();
        let repository = GitRepository::new(&world.root().join("kit"));
        let kit = Self { world, repository };
        kit.publish(package);
        let url = kit.repository.file_url();
        kit.world.write(
            "vibe.toml",
            &format!(
                "[project]\nname = \"world\"\n[requires.packages]\n\"{ID}\" = {{ git = \"{url}\", branch = \"main\" }}\n"
            ),
        );
        kit
    }

    fn with_hooks() -> Self {
        Self::new(
            &package("1.0.0")
                .hook(PreInstall, WORK)
                .hook(PostInstall, WORK),
        )
    }

    fn publish(&self, package: &PackageBuilder) -> String {
        self.repository.package(package);
        self.repository.commit("work")
    }

    fn slot(&self) -> PathBuf {
        self.world.project().join("vibedeps/org.example.kit")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.slot().join(name)
    }

    fn vibe(&self, arguments: &[&str]) -> Run {
        vibe(&self.world, arguments)
    }

    fn identity(&self, name: &str) -> (u64, i64, i64) {
        let metadata = fs::symlink_metadata(self.path(name)).unwrap();
        (metadata.ino(), metadata.mtime(), metadata.mtime_nsec())
    }

    /// The lines that hooks wrote.
    fn runs(&self) -> Vec<String> {
        lines(self.world.project().join("runs"))
    }

    /// What git says in the slot, as a person asks it there.
    fn ask(&self, arguments: &[&str]) -> String {
        let output = std::process::Command::new("git")
            .args(["-C", self.slot().to_str().unwrap()])
            .args(arguments)
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap())
            .env("HOME", self.world.home())
            .env("GIT_AUTHOR_NAME", "A")
            .env("GIT_AUTHOR_EMAIL", "a@example.org")
            .env("GIT_COMMITTER_NAME", "A")
            .env("GIT_COMMITTER_EMAIL", "a@example.org")
            .output()
            .unwrap();
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout)
            .unwrap()
            .trim_end()
            .to_owned()
    }
}

#[test]
fn an_in_place_package_is_a_clone_at_the_locked_commit() {
    let kit = Kit::with_hooks();
    let commit = kit.repository.head();
    kit.vibe(&["install"]).expect(0).stdout_has("in-place");
    assert_eq!(kit.ask(&["rev-parse", "HEAD"]), commit);
    assert_eq!(
        kit.ask(&["status", "--porcelain"]),
        "?? made-by-post-install\n?? made-by-pre-install"
    );
    assert_eq!(
        kit.ask(&["remote", "get-url", "origin"]),
        kit.repository.file_url()
    );
    assert_eq!(kit.runs(), ["pre-install install", "post-install install"]);
    let lock = kit.world.read("vibe.lock");
    assert!(lock.contains(&format!("commit = \"{commit}\"")), "{lock}");
    assert!(lock.contains("materialization = \"in-place\""), "{lock}");
    assert!(!lock.contains("tree = "), "{lock}");
    let ignore = kit.world.read("vibedeps/.gitignore");
    assert!(
        ignore.lines().any(|line| line == "/org.example.kit/"),
        "{ignore}"
    );
    kit.vibe(&["verify"]).expect(0);
    kit.vibe(&["install"]).expect(0).stdout_has("nothing to do");
    assert_eq!(kit.runs().len(), 2);
}

#[test]
fn an_update_moves_the_clone_and_runs_the_hooks_once() {
    let kit = Kit::with_hooks();
    kit.vibe(&["install"]).expect(0);
    let same = kit.identity("same.md");
    let commit = kit.publish(
        &package("1.1.0")
            .hook(PreInstall, WORK)
            .hook(PostInstall, WORK),
    );
    kit.vibe(&["update"]).expect(0);
    assert_eq!(kit.ask(&["rev-parse", "HEAD"]), commit);
    assert_eq!(read(kit.path("doc.md")), "1.1.0\n");
    assert_eq!(kit.identity("same.md"), same);
    assert_eq!(
        kit.runs()[2..],
        ["pre-install update", "post-install update"]
    );
    kit.vibe(&["verify"]).expect(0);
    kit.vibe(&["install"]).expect(0).stdout_has("nothing to do");
}

#[test]
fn a_moved_commit_with_the_same_tree_runs_nothing_and_cleans_nothing() {
    let kit = Kit::with_hooks();
    kit.vibe(&["install"]).expect(0);
    kit.repository
        .git(&["commit", "--quiet", "--allow-empty", "-m", "empty"]);
    fs::write(kit.path("mine"), "x").unwrap();
    kit.vibe(&["update"]).expect(0);
    assert_eq!(kit.ask(&["rev-parse", "HEAD"]), kit.repository.head());
    assert_eq!(kit.runs().len(), 2);
    assert!(kit.path("mine").exists() && kit.path("made-by-pre-install").exists());
    kit.vibe(&["install"]).expect(0).stdout_has("nothing to do");
}
