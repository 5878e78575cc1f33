//! What only looks starts nothing of a package's, whatever its repository, its files and the
//! configuration around it say.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{LOGGED, VIBE, command, hook_log, lines, lint, run, strace, strace_works};
use vibe_core::hook::Phase;
use vibe_testkit::{GitRepository, PackageBuilder, World};

/// Every hook that git knows of a repository.
const HOOKS: [&str; 22] = [
    "applypatch-msg",
    "commit-msg",
    "fsmonitor-watchman",
    "post-applypatch",
    "post-checkout",
    "post-commit",
    "post-index-change",
    "post-merge",
    "post-receive",
    "post-rewrite",
    "post-update",
    "pre-applypatch",
    "pre-auto-gc",
    "pre-commit",
    "pre-merge-commit",
    "pre-push",
    "pre-rebase",
    "pre-receive",
    "prepare-commit-msg",
    "push-to-checkout",
    "reference-transaction",
    "update",
];

/// A repository of a package in which everything that git can be made to start leaves a mark.
struct Trapped {
    world: World,
    mark: PathBuf,
    package: PackageBuilder,
}

impl Trapped {
    fn new(materialization: &str) -> Self {
        let world = World::new();
        let mark = world.root().join("mark");
        let trap = world.root().join("trap");
        fs::write(
            &trap,
            format!("#!/bin/sh\necho \"$0\" >> {}\n", mark.display()),
        )
        .unwrap();
        set_exec(&trap);
        let package = lint("1.0.0")
            .manifest_extra(&format!(
                "[package]\nmaterialization = \"{materialization}\"\n"
            ))
            .file(".gitattributes", "* filter=evil diff=evil merge=evil\n")
            .exec_file("git", trap_text(&mark))
            .exec_file("bash", trap_text(&mark))
            .exec_file("install.sh", trap_text(&mark))
            .file(".envrc", trap_text(&mark))
            .hook(Phase::PreInstall, LOGGED)
            .hook(Phase::PostInstall, LOGGED);
        let config = configuration(&trap);
        fs::write(world.home().join(".gitconfig"), &config).unwrap();
        let trapped = Self {
            world,
            mark,
            package,
        };
        trapped.repository(&trap, &config);
        trapped.package.publish(&trapped.world.registry());
        trapped.package.write(&trapped.world.root().join("lint"));
        trapped
    }

    /// The repository, with its own configuration and hooks.
    fn repository(&self, trap: &Path, config: &str) {
        let repository = GitRepository::new(&self.world.root().join("repository"));
        repository.package(&self.package);
        repository.commit("first");
        plant(&repository.path().join(".git"), trap, config);
    }

    /// Requires the package from each source in turn.
    fn require(&self, inside: &str) {
        let _ = fs::remove_dir_all(self.world.project().join("vibedeps"));
        let _ = fs::remove_file(self.world.project().join("vibe.lock"));
        self.world.write(
            "vibe.toml",
            &format!(
                "[project]\nname = \"world\"\n[requires.packages]\n\
                 \"org.example/lint\" = {{ {inside} }}\n\
                 [[registry]]\nname = \"local\"\nurl = \"../registry\"\n"
            ),
        );
    }

    /// Runs the binary; the programs that were started, itself included.
    fn started(&self, arguments: &[&str]) -> Vec<String> {
        let log = self.world.root().join("calls");
        let options = ["-e", "trace=execve", "-e", "signal=none", "-z"];
        let vibe = command(&self.world, arguments);
        run(&mut strace(&vibe, &log, &options)).expect(0);
        assert_eq!(lines(&self.mark), Vec::<String>::new(), "{arguments:?}");
        assert_eq!(hook_log(&self.world), Vec::<String>::new(), "{arguments:?}");
        let program = |line: String| {
            Some(
                line.split_once("execve(\"")?
                    .1
                    .split('"')
                    .next()?
                    .to_owned(),
            )
        };
        lines(log).into_iter().filter_map(program).collect()
    }

    /// Asserts that the traps work: that a person's git falls into them, and that the install hooks
    /// run where they may.
    fn assert_armed(&self) {
        run(&mut command(&self.world, &["install"])).expect(0);
        assert_eq!(
            hook_log(&self.world),
            ["lint pre-install", "lint post-install"]
        );
        let status = Command::new("git")
            .args(["-C", "repository", "add", "lint.md"])
            .current_dir(self.world.root())
            .env("HOME", self.world.home())
            .output();
        status.unwrap();
        assert!(!lines(&self.mark).is_empty());
    }
}

/// Makes the repository `git` start `trap` wherever it can, by its hooks, its configuration and its
/// attributes.
fn plant(git: &Path, trap: &Path, config: &str) {
    let own = fs::read_to_string(git.join("config")).unwrap();
    fs::write(git.join("config"), format!("{own}{config}")).unwrap();
    fs::create_dir_all(git.join("hooks")).unwrap();
    for hook in HOOKS {
        fs::copy(trap, git.join("hooks").join(hook)).unwrap();
    }
    fs::create_dir_all(git.join("info")).unwrap();
    fs::write(git.join("info/attributes"), "* filter=evil\n").unwrap();
}

fn trap_text(mark: &Path) -> String {
    format!("#!/bin/sh\necho \"$0\" >> {}\n", mark.display())
}

fn set_exec(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

/// Settings that make git start `trap` wherever a setting can.
fn configuration(trap: &Path) -> String {
    let trap = trap.display();
    format!(
        "[core]\n\tfsmonitor = {trap}\n\tsshCommand = {trap}\n\tpager = {trap}\n\teditor = {trap}\n\
         \taskPass = {trap}\n\tgitProxy = {trap}\n\talternateRefsCommand = {trap}\n\
         [filter \"evil\"]\n\tsmudge = {trap}\n\tclean = {trap}\n\tprocess = {trap}\n\trequired = true\n\
         [diff]\n\texternal = {trap}\n[diff \"evil\"]\n\tcommand = {trap}\n\ttextconv = {trap}\n\
         [merge \"evil\"]\n\tdriver = {trap}\n[credential]\n\thelper = {trap}\n\
         [uploadpack]\n\tpackObjectsHook = {trap}\n[gpg]\n\tprogram = {trap}\n\
         [alias]\n\tstatus = !{trap}\n\tfetch = !{trap}\n\tcheckout = !{trap}\n\treset = !{trap}\n"
    )
}

/// The commands that only look, or that leave install hooks out.
const LOOKS: [&[&str]; 12] = [
    &["install", "--dry-run"],
    &["install", "--no-hooks"],
    &["list"],
    &["--json", "list"],
    &["verify"],
    &["hooks", "list"],
    &["update", "--dry-run"],
    &["update", "--no-hooks"],
    &["install", "--locked", "--no-hooks"],
    &["verify", "--repair", "--no-hooks"],
    &["runs", "list"],
    &["check", "../lint"],
];

#[test]
fn what_only_looks_starts_nothing_whatever_the_package_and_its_repository_hold() {
    if !strace_works() {
        return;
    }
    for materialization in ["copy", "hardlink"] {
        let trapped = Trapped::new(materialization);
        for inside in [
            "git = \"../repository\", branch = \"main\"",
            "version = \"1.0.0\"",
            "path = \"../lint\"",
        ] {
            trapped.require(inside);
            for arguments in LOOKS {
                let started = trapped.started(arguments);
                assert_eq!(started, [VIBE], "{inside}: {arguments:?}");
            }
            let publish = ["publish", "../lint", "--registry", "local"];
            assert_eq!(trapped.started(&publish), [VIBE]);
        }
        trapped.assert_armed();
    }
}

#[test]
fn a_clone_is_made_and_looked_at_by_git_alone() {
    if !strace_works() {
        return;
    }
    let trapped = Trapped::new("in-place");
    trapped.require("git = \"../repository\", branch = \"main\"");
    let mut programs = BTreeSet::new();
    programs.extend(trapped.started(&["install", "--dry-run"]));
    programs.extend(trapped.started(&["install", "--no-hooks"]));
    let clone = trapped.world.project().join("vibedeps/org.example.lint");
    let trap = trapped.world.root().join("trap");
    for arguments in LOOKS {
        plant(&clone.join(".git"), &trap, &configuration(&trap));
        // What git remembers of a file is no longer so: it has to look into it.
        fs::write(clone.join("lint.md"), "other\n").unwrap();
        fs::write(clone.join("lint.md"), "lint\n").unwrap();
        programs.extend(trapped.started(arguments));
    }
    let is_git = |program: &String| {
        program.ends_with("/git") && !program.starts_with(trapped.world.root().to_str().unwrap())
    };
    let others: Vec<&String> = programs.iter().filter(|program| !is_git(program)).collect();
    assert_eq!(others, [VIBE]);
    assert!(programs.len() > 1);
    trapped.assert_armed();
}
