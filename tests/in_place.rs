//! Packages that are git clones in their slot.

use std::fs;
use std::io::Write as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::PathBuf;
use std::process::{Command, Stdio};

use vibe_core::hook::Phase::{PostInstall, PreInstall};
use vibe_testkit::{GitDaemon, GitProgram, GitRepository, PackageBuilder, TreeSnapshot, World};

use crate::git_support::{self, git_cache, git_vibe};
use crate::support::{
    Run, command, lines, outside_state, process_ends, read, run, signal, start, strace,
    strace_works, vibe, wait, wait_until,
};

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
        Self::new(&hooked("1.0.0"))
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
        GitProgram::new().run(&self.slot(), arguments)
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.path(name), text).unwrap();
    }

    fn lock(&self) -> String {
        fs::read_to_string(self.world.project().join("vibe.lock")).unwrap_or_default()
    }

    /// Publishes another version, and takes it.
    fn updated(&self, arguments: &[&str]) -> Run {
        self.publish(&hooked("1.1.0"));
        self.vibe(&[&["update"], arguments].concat())
    }

    fn head(&self) -> String {
        self.ask(&["rev-parse", "HEAD"])
    }

    /// A command line with a git of its own first in the path: a script that runs `before`, with
    /// the number of the call in `$n`, and then the real one.
    fn with_git(&self, arguments: &[&str], before: &str) -> Command {
        let bin = self.world.root().join("bin");
        let calls = self.world.root().join("calls");
        fs::create_dir_all(&bin).unwrap();
        let _ = fs::remove_file(&calls);
        let path = std::env::var("PATH").unwrap();
        let script = format!(
            "#!/bin/bash\necho call >> '{calls}'\nn=$(wc -l < '{calls}')\n{before}\nPATH='{path}' exec git \"$@\"\n",
            calls = calls.display()
        );
        fs::write(bin.join("git"), script).unwrap();
        fs::set_permissions(bin.join("git"), fs::Permissions::from_mode(0o755)).unwrap();
        let mut command = command(&self.world, arguments);
        command.env("PATH", format!("{}:{path}", bin.display()));
        command
    }

    /// How often the git of [`Kit::with_git`] was started.
    fn calls(&self) -> usize {
        lines(self.world.root().join("calls")).len()
    }
}

fn hooked(version: &str) -> PackageBuilder {
    package(version)
        .hook(PreInstall, WORK)
        .hook(PostInstall, WORK)
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
    kit.updated(&[]).expect(0);
    let commit = kit.repository.head();
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

#[test]
fn nothing_to_do_starts_no_process() {
    let kit = Kit::with_hooks();
    run(&mut kit.with_git(&["install"], "")).expect(0);
    assert_eq!(
        kit.calls(),
        4,
        "pack, check-out, and a look after each hook"
    );
    run(&mut kit.with_git(&["install"], ""))
        .expect(0)
        .stdout_has("nothing to do");
    fs::remove_file(kit.world.project().join("vibedeps/.state/fresh")).unwrap();
    run(&mut kit.with_git(&["install"], "")).expect(0);
    assert_eq!(kit.calls(), 0, "nor does a look at what is remembered");
}

#[test]
fn work_in_the_clone_is_not_lost_without_consent() {
    let kit = Kit::with_hooks();
    kit.vibe(&["install"]).expect(0);
    let (lock, head) = (kit.lock(), kit.head());
    kit.write("doc.md", "mine\n");
    kit.write("mine.md", "mine\n");
    kit.updated(&[])
        .expect(1)
        .stderr_has("vibedeps/org.example.kit/doc.md")
        .stderr_has("vibedeps/org.example.kit/mine.md")
        .stderr_has("--force");
    assert_eq!((kit.lock(), kit.head()), (lock.clone(), head));
    assert_eq!(read(kit.path("doc.md")), "mine\n");
    let dry = kit.vibe(&["update", "--dry-run"]).expect(0);
    assert!(dry.stdout.contains("~ org.example/kit"), "{}", dry.stdout);
    kit.vibe(&["update", "--force"]).expect(0);
    assert_eq!(read(kit.path("doc.md")), "1.1.0\n");
    assert!(!kit.path("mine.md").exists());
    assert_ne!(kit.lock(), lock);
    kit.ask(&["commit", "--quiet", "--allow-empty", "-m", "mine"]);
    let mine = kit.head();
    for arguments in [&["install"][..], &["verify", "--repair"]] {
        kit.vibe(arguments)
            .expect(1)
            .stderr_has("commits that were made there");
        assert_eq!(kit.head(), mine);
    }
    kit.vibe(&["install", "--force"]).expect(0);
    assert_eq!(kit.head(), kit.repository.head());
}

#[test]
fn somebody_at_a_terminal_is_asked() {
    let kit = Kit::with_hooks();
    kit.vibe(&["install"]).expect(0);
    kit.publish(&hooked("1.1.0"));
    kit.write("mine.md", "mine\n");
    // `script` is a terminal for a command.
    let answered = |answer: &str| {
        let plain = command(&kit.world, &["update"]);
        let line = format!("'{}' update", plain.get_program().to_str().unwrap());
        let mut script = Command::new("script");
        script
            .args(["-q", "-e", "-c", &line, "/dev/null"])
            .current_dir(plain.get_current_dir().unwrap())
            .env_clear()
            .envs(
                plain
                    .get_envs()
                    .filter_map(|(name, value)| Some((name, value?))),
            )
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        let Ok(mut child) = script.spawn() else {
            eprintln!("skipped: there is no `script` on this machine");
            return None;
        };
        let mut input = child.stdin.take().unwrap();
        input.write_all(format!("{answer}\n").as_bytes()).unwrap();
        let ended = child.wait_with_output().unwrap();
        drop(input);
        let shown = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert!(shown.contains("org.example.kit/mine.md"), "{shown}");
        assert!(shown.contains("lose it? [y/N]"), "{shown}");
        ended.status.code()
    };
    let Some(code) = answered("n") else { return };
    assert_eq!(code, 1);
    assert!(kit.path("mine.md").exists());
    assert_eq!(answered("y"), Some(0));
    assert!(!kit.path("mine.md").exists());
    assert_eq!(read(kit.path("doc.md")), "1.1.0\n");
}

#[test]
fn a_dry_run_says_what_would_be_done_and_writes_nothing() {
    let kit = Kit::with_hooks();
    kit.vibe(&["install", "--dry-run"])
        .expect(0)
        .stdout_has("+ org.example/kit")
        .stdout_has("run pre-install");
    kit.vibe(&["install"]).expect(0);
    kit.publish(&hooked("1.1.0"));
    kit.write("mine.md", "mine\n");
    let before = kit.world.snapshot();
    let lost = "vibedeps/org.example.kit has work that is nowhere else, which would be lost";
    kit.vibe(&["update", "--dry-run"])
        .expect(0)
        .stdout_has("~ org.example/kit")
        .stderr_has(lost);
    let forced = kit.vibe(&["update", "--dry-run", "--force"]).expect(0);
    assert!(!forced.stderr.contains(lost), "{}", forced.stderr);
    kit.vibe(&["verify"]).expect(0);
    before.assert_unchanged(&kit.world.snapshot());
}

#[test]
fn a_clone_that_borrows_objects_is_found_and_made_whole() {
    let kit = Kit::new(&package("1.0.0"));
    kit.vibe(&["install"]).expect(0);
    let same = kit.identity("same.md");
    let objects = kit.repository.path().join(".git/objects");
    fs::remove_dir_all(kit.path(".git/objects/pack")).unwrap();
    fs::create_dir_all(kit.path(".git/objects/info")).unwrap();
    let alternates = format!("{}\n", objects.display());
    kit.write(".git/objects/info/alternates", &alternates);
    assert_eq!(kit.ask(&["status", "--porcelain"]), "");
    kit.vibe(&["verify"])
        .expect(3)
        .stdout_has("not whole by itself");
    kit.vibe(&["verify", "--repair"]).expect(0);
    kit.vibe(&["verify"]).expect(0);
    assert_eq!(kit.identity("same.md"), same);
    assert!(!kit.path(".git/objects/info/alternates").exists());
    assert_eq!(kit.ask(&["fsck"]), "");
}

#[test]
fn what_the_hooks_made_needs_no_consent() {
    let edits = format!("{WORK}echo hooked >> doc.md\n");
    let package = |version: &str| package(version).hook(PreInstall, &edits);
    let kit = Kit::new(&package("1.0.0"));
    kit.vibe(&["install"]).expect(0);
    assert_eq!(read(kit.path("doc.md")), "1.0.0\nhooked\n");
    kit.vibe(&["verify"]).expect(0);
    kit.vibe(&["verify", "--repair"]).expect(0);
    assert_eq!(kit.runs().len(), 1);
    kit.publish(&package("1.1.0"));
    kit.vibe(&["update"]).expect(0);
    assert_eq!(read(kit.path("doc.md")), "1.1.0\nhooked\n");
    kit.vibe(&["reinstall", ID]).expect(0);
    assert_eq!(kit.runs().len(), 2);
    kit.vibe(&["reinstall", ID, "--force"]).expect(0);
    assert_eq!(read(kit.path("doc.md")), "1.1.0\nhooked\n");
    assert_eq!(kit.runs()[2], "pre-install repair");
}

#[test]
fn a_clone_that_nothing_needs_goes_unless_there_is_work_in_it() {
    let kit = Kit::with_hooks();
    kit.vibe(&["install"]).expect(0);
    kit.world
        .write("vibe.toml", "[project]\nname = \"world\"\n");
    kit.write("mine.md", "mine\n");
    kit.vibe(&["install"]).expect(1).stderr_has("mine.md");
    assert!(kit.path("mine.md").exists());
    fs::remove_file(kit.path("mine.md")).unwrap();
    kit.vibe(&["install"])
        .expect(0)
        .stdout_has("removed 1 package");
    assert!(!kit.slot().exists());
    let state = kit.world.read("vibedeps/.state/slots.toml");
    assert!(!state.contains("clone"), "{state}");
    assert!(!kit.world.read("vibedeps/.gitignore").contains("kit"));
}

#[test]
fn damage_is_found_and_repaired_and_the_hooks_run_once() {
    let kit = Kit::with_hooks();
    kit.vibe(&["install"]).expect(0);
    let same = kit.identity("same.md");
    kit.ask(&["update-index", "--skip-worktree", "doc.md"]);
    kit.write("doc.md", "9.9.9\n");
    assert_eq!(kit.ask(&["diff", "--name-only"]), "", "git is deceived");
    kit.vibe(&["verify"])
        .expect(3)
        .stdout_has("org.example.kit/doc.md");
    kit.vibe(&["install"]).expect(0).stdout_has("nothing to do");
    kit.vibe(&["verify", "--repair"]).expect(0);
    assert_eq!(read(kit.path("doc.md")), "1.0.0\n");
    assert_eq!(kit.identity("same.md"), same);
    assert_eq!(
        kit.runs()[2..],
        ["pre-install repair", "post-install repair"]
    );
    assert!(
        kit.ask(&["ls-files", "-v"])
            .lines()
            .all(|line| line.starts_with("H "))
    );
    kit.vibe(&["verify"]).expect(0);
    fs::remove_dir_all(kit.slot()).unwrap();
    kit.vibe(&["verify"]).expect(5);
    kit.vibe(&["verify", "--repair"]).expect(0);
    kit.vibe(&["verify"]).expect(0);
}

#[test]
fn repair_asks_before_it_removes_what_is_not_tracked() {
    let kit = Kit::with_hooks();
    kit.vibe(&["install"]).expect(0);
    kit.write("doc.md", "damaged\n");
    kit.write("mine.md", "mine\n");
    kit.vibe(&["verify", "--repair"])
        .expect(1)
        .stderr_has("mine.md");
    assert_eq!(read(kit.path("doc.md")), "damaged\n");
    kit.vibe(&["verify", "--repair", "--force"]).expect(0);
    assert!(!kit.path("mine.md").exists());
    let plain = Kit::new(&package("1.0.0"));
    plain.vibe(&["install"]).expect(0);
    plain.write("doc.md", "damaged\n");
    plain.write("mine.md", "mine\n");
    plain.vibe(&["verify", "--repair"]).expect(0);
    assert_eq!(read(plain.path("doc.md")), "1.0.0\n");
    assert!(
        plain.path("mine.md").exists(),
        "no hook starts from a clean tree"
    );
    plain.vibe(&["verify"]).expect(0);
}

#[test]
fn traps_that_a_hook_plants_do_not_act_and_do_not_survive() {
    let plant = "set -e
trap=\"$HOME/trap\"
printf '#!/bin/sh\\ntouch \"%s/sprung\"\\ncat\\n' \"$HOME\" > \"$trap\"
chmod +x \"$trap\"
git config core.fsmonitor \"$trap\"
git config core.hooksPath .git/hooks
git config filter.evil.clean \"$trap\"
git config filter.evil.smudge \"$trap\"
git config core.sshCommand \"$trap\"
git config url.ext::\"$trap\".insteadOf https://
mkdir -p .git/hooks .git/info
for hook in post-checkout post-index-change reference-transaction; do cp \"$trap\" .git/hooks/$hook; done
echo '* filter=evil' > .git/info/attributes
echo 'hidden' > .git/info/exclude
git update-index --skip-worktree same.md
rm -f \"$HOME/sprung\"
";
    let package = |version: &str| package(version).hook(PostInstall, plant);
    let kit = Kit::new(&package("1.0.0"));
    let sprung = kit.world.home().join("sprung");
    kit.vibe(&["install"]).expect(0);
    assert!(kit.path(".git/hooks/post-checkout").exists());
    kit.write("same.md", "hidden edit\n");
    kit.write("hidden", "x");
    kit.vibe(&["verify"])
        .expect(3)
        .stdout_has("same.md")
        .stdout_has("files that neither");
    kit.publish(&package("1.1.0"));
    kit.vibe(&["update"])
        .expect(1)
        .stderr_has("same.md")
        .stderr_has("/hidden");
    assert!(!sprung.exists(), "a trap was sprung");
    kit.vibe(&["update", "--force", "--no-hooks"]).expect(0);
    assert!(!sprung.exists(), "a trap was sprung");
    assert_eq!(read(kit.path("same.md")), "same\n");
    for gone in ["hooks", "info"] {
        assert!(!kit.path(".git").join(gone).exists(), "{gone}");
    }
    assert!(!read(kit.path(".git/config")).contains("trap"));
    assert_eq!(kit.ask(&["status", "--porcelain"]), "");
    assert!(!sprung.exists(), "a trap was sprung");
}

#[test]
fn a_failed_first_pre_install_does_not_cost_the_download() {
    let kit = Kit::new(&package("1.0.0").hook(
        PreInstall,
        "[ -e \"$HOME/ready\" ] || { echo not yet; exit 1; }\n",
    ));
    let served = kit.world.root().join("served");
    fs::create_dir(&served).unwrap();
    fs::rename(kit.repository.path(), served.join("kit")).unwrap();
    let server = GitDaemon::start(&served);
    let commit = GitProgram::new().run(&served.join("kit"), &["rev-parse", "HEAD"]);
    let host = format!("127.0.0.1:{}", server.port());
    fs::create_dir_all(kit.world.home().join("vibe")).unwrap();
    let config = format!("[git]\ninsecure-hosts = [\"{host}\"]\n");
    fs::write(kit.world.home().join("vibe/config.toml"), config).unwrap();
    let url = server.url("kit");
    kit.world.write(
        "vibe.toml",
        &format!(
            "[project]\nname = \"world\"\n[requires.packages]\n\"{ID}\" = {{ git = \"{url}\", rev = \"{commit}\" }}\n"
        ),
    );
    kit.vibe(&["install"]).expect(4).stderr_has("not yet");
    assert!(!kit.slot().exists(), "nothing is registered");
    assert_eq!(kit.lock(), "");
    let connections = server.connections();
    assert!(connections > 0);
    fs::write(kit.world.home().join("ready"), "").unwrap();
    kit.vibe(&["install"]).expect(0);
    assert_eq!(
        server.connections(),
        connections,
        "nothing is downloaded again"
    );
    assert_eq!(kit.head(), commit);
    drop(server);
    kit.write("doc.md", "damaged\n");
    kit.vibe(&["verify", "--repair"]).expect(0);
    assert_eq!(read(kit.path("doc.md")), "1.0.0\n");
}

#[test]
fn an_update_whose_pre_install_fails_goes_back() {
    let kit = Kit::with_hooks();
    kit.vibe(&["install"]).expect(0);
    let (lock, head) = (kit.lock(), kit.head());
    let failing = package("1.1.0").hook(PreInstall, "echo broken > doc.md\nexit 1\n");
    kit.publish(&failing);
    kit.vibe(&["update"]).expect(4);
    assert_eq!((kit.lock(), kit.head()), (lock, head.clone()));
    assert_eq!(read(kit.path("doc.md")), "1.0.0\n");
    kit.vibe(&["install"]).expect(0);
    assert_eq!(kit.head(), head);
    assert_eq!(kit.runs()[2..], ["pre-install retry", "post-install retry"]);
    kit.vibe(&["verify"]).expect(0);
}

#[test]
fn a_clone_without_state_is_adopted_if_it_is_clean() {
    let kit = Kit::with_hooks();
    kit.vibe(&["install"]).expect(0);
    kit.ask(&["clean", "-ffdxq"]);
    let same = kit.identity("same.md");
    fs::remove_dir_all(kit.world.project().join("vibedeps/.state")).unwrap();
    kit.vibe(&["install"]).expect(0);
    assert_eq!(kit.identity("same.md"), same);
    assert_eq!(
        kit.runs()[2..],
        ["pre-install install", "post-install install"]
    );
    fs::remove_dir_all(kit.world.project().join("vibedeps/.state")).unwrap();
    kit.vibe(&["install"])
        .expect(1)
        .stderr_has("made-by-pre-install");
    kit.vibe(&["install", "--force"]).expect(0);
    kit.vibe(&["verify"]).expect(0);
}

#[test]
fn a_run_killed_at_any_call_of_git_is_finished_by_the_next() {
    let mut number = 1_usize;
    loop {
        let kit = Kit::with_hooks();
        kit.vibe(&["install"]).expect(0);
        let same = kit.identity("same.md");
        kit.publish(&hooked("1.1.0"));
        let (call, late) = (number.div_ceil(2), number.is_multiple_of(2));
        let kill = match late {
            // The real git is seen to its end first.
            true => format!(
                "[ $n != {call} ] || {{ PATH='{}' git \"$@\"; kill -9 $PPID; exit 1; }}",
                std::env::var("PATH").unwrap()
            ),
            false => format!("[ $n != {call} ] || {{ kill -9 $PPID; exit 1; }}"),
        };
        let killed = run(&mut kit.with_git(&["update"], &kill)).code == -1;
        kit.vibe(&["update"]).expect(0);
        assert_eq!(kit.head(), kit.repository.head(), "call {number}");
        assert_eq!(read(kit.path("doc.md")), "1.1.0\n", "call {number}");
        assert_eq!(kit.identity("same.md"), same, "call {number}");
        kit.vibe(&["verify"]).expect(0);
        kit.vibe(&["install"]).expect(0).stdout_has("nothing to do");
        assert!(
            (2..=3).contains(&kit.runs()[2..].len()),
            "call {number}: {:?}",
            kit.runs()
        );
        if !killed {
            assert!(number > 10, "{number} calls were tried");
            break;
        }
        number += 1;
    }
}

#[test]
fn an_interrupt_ends_the_run_and_the_git_that_works_for_it() {
    let kit = Kit::with_hooks();
    let home = kit.world.home();
    let hold = format!(
        "[ $n != 2 ] || {{ cd '{}'; echo $$ > pid; mv pid holding; exec sleep 1000; }}",
        home.display()
    );
    let child = start(&mut kit.with_git(&["install"], &hold));
    let holding = kit.world.home().join("holding");
    wait_until("git is started", || holding.exists());
    assert!(signal(&child.id().to_string(), "INT"));
    assert_eq!(wait(child).code, 130);
    process_ends(&read(&holding));
    assert!(!kit.slot().exists() && kit.runs().is_empty());
    kit.vibe(&["install"]).expect(0);
    assert_eq!(kit.runs(), ["pre-install install", "post-install install"]);
}

#[test]
fn other_kinds_of_slots_give_way_and_come_back() {
    let kit = Kit::with_hooks();
    let copy = PackageBuilder::new(ID, "0.9.0").file("doc.md", "copy\n");
    kit.publish(&copy);
    kit.vibe(&["install"]).expect(0);
    assert!(kit.path("0.9.0/doc.md").exists());
    kit.updated(&[]).expect(0);
    assert_eq!(read(kit.path("doc.md")), "1.1.0\n");
    assert!(!kit.path("0.9.0").exists());
    kit.vibe(&["verify"]).expect(0);
    kit.publish(&PackageBuilder::new(ID, "2.0.0").file("doc.md", "copy\n"));
    kit.write("mine.md", "x");
    kit.vibe(&["update"]).expect(1).stderr_has("mine.md");
    fs::remove_file(kit.path("mine.md")).unwrap();
    kit.vibe(&["update"]).expect(0);
    assert!(kit.path("2.0.0/doc.md").exists() && !kit.path(".git").exists());
    kit.vibe(&["verify"]).expect(0);
    kit.vibe(&["install"]).expect(0).stdout_has("nothing to do");
}

#[test]
fn what_is_no_clone_is_never_replaced_by_one() {
    let kit = Kit::with_hooks();
    fs::create_dir_all(kit.slot()).unwrap();
    kit.write("mine.md", "mine\n");
    kit.vibe(&["install"])
        .expect(1)
        .stderr_has("vibedeps/org.example.kit");
    assert_eq!(read(kit.path("mine.md")), "mine\n");
    assert!(!kit.path(".git").exists());
}

#[test]
fn a_slot_with_something_of_the_users_gives_way_to_no_clone() {
    let kit = Kit::new(&PackageBuilder::new(ID, "0.9.0").file("doc.md", "copy\n"));
    kit.vibe(&["install"]).expect(0);
    kit.publish(&package("1.0.0"));
    let beside = ["0.9.0/mine.md", "0.9.0/doc.md", "beside.md", "0.1.0/x"];
    for name in beside {
        let before = fs::read_to_string(kit.path(name)).ok();
        fs::create_dir_all(kit.path(name).parent().unwrap()).unwrap();
        kit.write(name, "mine\n");
        let untouched = outside_state(&kit.world);
        for arguments in [&["update"][..], &["update", "--dry-run"]] {
            let said = format!("`vibedeps/org.example.kit/{name}`");
            let said = said.replace("0.1.0/x", "0.1.0");
            kit.vibe(arguments).expect(1).stderr_has(&said);
        }
        untouched.assert_unchanged(&outside_state(&kit.world));
        match before {
            Some(text) => kit.write(name, &text),
            None => fs::remove_file(kit.path(name)).unwrap(),
        }
    }
    // An empty directory is nobody's work.
    assert!(kit.path("0.1.0").is_dir());
    kit.vibe(&["update"]).expect(0);
    assert_eq!(read(kit.path("doc.md")), "1.0.0\n");
    kit.vibe(&["verify"]).expect(0);
}

#[test]
fn no_slot_is_made_in_a_clone_that_is_not_known() {
    let kit = Kit::new(&package("1.0.0"));
    kit.vibe(&["install"]).expect(0);
    fs::remove_dir_all(kit.world.project().join("vibedeps/.state")).unwrap();
    kit.publish(&PackageBuilder::new(ID, "2.0.0").file("doc.md", "copy\n"));
    let untouched = outside_state(&kit.world);
    for arguments in [&["update"][..], &["update", "--dry-run"]] {
        let run = kit.vibe(arguments).expect(1);
        run.stderr_has("`vibedeps/org.example.kit` is not as vibe placed it");
    }
    untouched.assert_unchanged(&outside_state(&kit.world));
    fs::remove_dir_all(kit.slot()).unwrap();
    kit.vibe(&["update"]).expect(0);
    kit.vibe(&["verify"]).expect(0);
}

#[test]
fn the_origin_of_a_clone_is_found_from_within_it() {
    let kit = Kit::new(&package("1.0.0"));
    let inner = GitRepository::new(&kit.world.root().join("inner"));
    inner.write("i", "1", false);
    let pinned = inner.commit("1");
    kit.repository.submodule("inner", "../inner", &pinned);
    kit.repository.commit("submodule");
    kit.world.write(
        "vibe.toml",
        &format!(
            "[project]\nname = \"world\"\n[requires.packages]\n\"{ID}\" = {{ git = \"../kit\", branch = \"main\" }}\n"
        ),
    );
    kit.vibe(&["install"]).expect(0);
    assert!(kit.lock().contains("source = \"git+../kit\""));
    for directory in [kit.slot(), kit.path("inner")] {
        GitProgram::new().run(&directory, &["fetch", "--quiet", "origin"]);
    }
    kit.vibe(&["verify"]).expect(0);
    kit.vibe(&["verify", "--repair"]).expect(0);
}

#[test]
fn an_in_place_package_needs_the_whole_of_a_git_source() {
    let kit = Kit::new(&package("1.0.0"));
    let url = kit.repository.file_url();
    kit.repository.git(&["mv", "-k", "doc.md", "same.md"]);
    package("1.0.0").write(&kit.repository.path().join("sub"));
    kit.repository.commit("sub");
    kit.world.write(
        "vibe.toml",
        &format!(
            "[project]\nname = \"world\"\n[requires.packages]\n\"{ID}\" = {{ git = \"{url}\", branch = \"main\", subdir = \"sub\" }}\n"
        ),
    );
    kit.vibe(&["install"])
        .expect(2)
        .stderr_has("only a directory of its repository");
    package("1.0.0").publish(&kit.world.registry());
    kit.world.require(&[(ID, "*")]);
    kit.vibe(&["install"])
        .expect(2)
        .stderr_has("needs a git source");
}

#[test]
fn hooks_run_on_demand_in_the_clone_as_it_is() {
    let kit = Kit::with_hooks();
    kit.vibe(&["install", "--no-hooks"]).expect(0);
    assert!(kit.runs().is_empty());
    kit.vibe(&["hooks", "list"])
        .expect(0)
        .stdout_has("pre-install");
    kit.vibe(&["hooks", "run", ID]).expect(0);
    assert_eq!(kit.runs(), ["pre-install manual", "post-install manual"]);
    kit.vibe(&["list"]).expect(0).stdout_has("in-place");
    kit.vibe(&["verify"]).expect(0);
    kit.vibe(&["install"]).expect(0).stdout_has("nothing to do");
}

#[test]
fn submodules_come_with_the_clone() {
    let kit = Kit::with_hooks();
    let inner = GitRepository::new(&kit.world.root().join("inner"));
    inner.write("i", "1", false);
    let first = inner.commit("1");
    kit.repository.submodule("lib/inner", "../inner", &first);
    kit.repository.commit("submodule");
    kit.vibe(&["install"]).expect(0);
    assert_eq!(read(kit.path("lib/inner/i")), "1");
    kit.vibe(&["verify"]).expect(0);
    kit.write("lib/inner/i", "damaged");
    kit.vibe(&["verify"]).expect(3).stdout_has("lib/inner/i");
    kit.vibe(&["verify", "--repair"]).expect(0);
    assert_eq!(read(kit.path("lib/inner/i")), "1");
    inner.write("i", "2", false);
    let second = inner.commit("2");
    kit.repository.add_gitlink("lib/inner", &second);
    kit.repository.commit("submodule");
    kit.vibe(&["update"]).expect(0);
    assert_eq!(read(kit.path("lib/inner/i")), "2");
    kit.vibe(&["verify"]).expect(0);
    kit.repository.add_gitlink("lonely", &first);
    kit.repository.commit("lonely");
    kit.vibe(&["update"]).expect(1).stderr_has("lonely");
    assert_eq!(read(kit.path("lib/inner/i")), "2");
}

/// Commits `files`, and nothing else, without a work tree.
fn import<'a>(kit: &Kit, version: &str, files: impl Iterator<Item = (String, &'a str)>) {
    let manifest = format!(
        "[package]\ngroup = \"org.example\"\nname = \"kit\"\nversion = \"{version}\"\nmaterialization = \"in-place\"\n"
    );
    let mut stream = "commit refs/heads/main\ncommitter A <a@example.org> 0 +0000\ndata 1\nx\nfrom refs/heads/main^0\ndeleteall\n".to_owned();
    let mut add = |name: &str, content: &str| {
        stream += &format!("M 644 inline {name}\ndata {}\n{content}\n", content.len());
    };
    add("vibe.toml", &manifest);
    files.for_each(|(name, content)| add(&name, content));
    let path = kit.world.root().join("stream");
    fs::write(&path, stream).unwrap();
    let imported = GitProgram::new()
        .command(kit.repository.path(), &["fast-import", "--quiet"])
        .stdin(fs::File::open(path).unwrap())
        .status();
    assert!(imported.unwrap().success());
}

/// So many names in directories of a hundred.
fn names(files: usize) -> impl Iterator<Item = String> {
    (0..files).map(|number| format!("dir{}/f{number}", number / 100))
}

/// `VIBE_HUGE_CLONE=100000` makes it huge, which takes a disk minutes and a file system in memory
/// (`TMPDIR=/dev/shm`) seconds.
#[test]
fn an_update_of_a_huge_clone_touches_no_unchanged_file() {
    let kit = Kit::new(&package("1.0.0"));
    let files = std::env::var("VIBE_HUGE_CLONE").map_or(10_000, |files| files.parse().unwrap());
    let names: Vec<String> = names(files).collect();
    let with = |changed: &'static str| {
        names.iter().map(move |name| match name.as_str() {
            "dir0/f7" => (name.clone(), changed),
            _ => (name.clone(), "x\n"),
        })
    };
    import(&kit, "1.0.0", with("x\n"));
    kit.vibe(&["install"]).expect(0);
    let before: Vec<_> = names.iter().map(|name| kit.identity(name)).collect();
    import(&kit, "1.1.0", with("changed\n"));
    kit.vibe(&["update"]).expect(0);
    for (name, before) in names.iter().zip(before) {
        let is_same = kit.identity(name) == before;
        assert_eq!(is_same, name != "dir0/f7", "{name}");
    }
    assert_eq!(read(kit.path("dir0/f7")), "changed\n");
}

#[test]
fn vibe_itself_looks_at_nothing_in_the_work_tree() {
    if !strace_works() {
        return;
    }
    let kit = Kit::new(&package("1.0.0"));
    import(&kit, "1.0.0", names(300).map(|name| (name, "x\n")));
    kit.vibe(&["install"]).expect(0);
    import(&kit, "1.1.0", names(300).map(|name| (name, "y\n")));
    let log = kit.world.root().join("trace");
    let calls = ["-e", "trace=execve,%file,getdents64"];
    run(&mut strace(&command(&kit.world, &["update"]), &log, &calls)).expect(0);
    let traced = lines(&log);
    let pid = |line: &str| {
        line.split_whitespace()
            .next()
            .unwrap_or_default()
            .to_owned()
    };
    let is_git = |line: &&String| line.contains("execve(") && line.contains("/git\"");
    let gits: Vec<String> = traced.iter().filter(is_git).map(|line| pid(line)).collect();
    assert!(gits.len() >= 3, "git was started");
    let in_tree = |line: &&String| line.contains("org.example.kit/dir");
    let (by_git, by_vibe): (Vec<&String>, Vec<&String>) = traced
        .iter()
        .filter(|line| in_tree(line) || line.contains("\"dir"))
        .partition(|line| gits.contains(&pid(line)));
    assert!(by_git.len() > 300, "git looks at every file once");
    assert_eq!(by_vibe, Vec::<&String>::new());
}

/// The package, placed as `materialization` says from its repository, with a damaged file, a
/// deleted one and one of the user's; where its slot is.
fn damaged(kit: &Kit, materialization: &str) -> PathBuf {
    let wanted = format!("[package]\nmaterialization = \"{materialization}\"\n");
    let package = package("1.0.0").hook(PostInstall, WORK);
    kit.publish(&package.manifest_extra(&wanted));
    kit.vibe(&["update"]).expect(0);
    let slot = match materialization {
        "in-place" => kit.slot(),
        _ => kit.slot().join("1.0.0"),
    };
    fs::remove_file(slot.join("doc.md")).unwrap();
    fs::write(slot.join("doc.md"), "damaged\n").unwrap();
    fs::remove_file(slot.join("same.md")).unwrap();
    fs::write(slot.join("mine.md"), "mine\n").unwrap();
    slot
}

#[test]
fn what_a_reset_puts_back_depends_on_the_way_a_package_is_placed() {
    let kit = Kit::new(&package("1.0.0"));
    for (materialization, keeps) in [("copy", true), ("hardlink", true), ("in-place", false)] {
        let slot = damaged(&kit, materialization);
        let runs = kit.runs().len();
        kit.vibe(&["verify", "--repair", "--force"]).expect(0);
        assert_eq!(read(slot.join("doc.md")), "1.0.0\n", "{materialization}");
        assert_eq!(read(slot.join("same.md")), "same\n", "{materialization}");
        assert_eq!(slot.join("mine.md").exists(), keeps, "{materialization}");
        let reset_then_run = slot.join("made-by-post-install").exists();
        assert!(
            reset_then_run && kit.runs().len() == runs + 1,
            "{materialization}"
        );
        kit.vibe(&["verify"]).expect(0);
        kit.vibe(&["reinstall", ID]).expect(0);
        assert_eq!(kit.runs().len(), runs + 1, "nothing was reset");
        if keeps {
            assert_eq!(read(slot.join("mine.md")), "mine\n");
            fs::remove_file(slot.join("mine.md")).unwrap();
        }
    }
}

#[test]
fn hooks_of_a_clone_are_shown_and_run_where_the_fetched_repository_is_damaged() {
    let kit = Kit::with_hooks();
    let daemon = GitDaemon::start(kit.world.root());
    let source = format!("git = \"{}\", branch = \"main\"", daemon.url("kit"));
    git_support::require(&kit.world, &[(ID, &source)]);
    git_vibe(&kit.world, &["install"]).expect(0);
    for arguments in [&["hooks", "list"][..], &["hooks", "run", ID, "--force"]] {
        let cache = git_cache(&kit.world);
        let entries = TreeSnapshot::of(&cache).entries.into_keys();
        let packs: Vec<String> = entries.filter(|path| path.ends_with(".pack")).collect();
        assert!(!packs.is_empty());
        for pack in packs {
            let pack = cache.join(pack);
            let mut bytes = fs::read(&pack).unwrap();
            // The files, which come last; the commit can still be read.
            let (from, to) = (bytes.len() / 2, bytes.len() - 20);
            bytes[from..to].fill(0x55);
            fs::remove_file(&pack).unwrap();
            fs::write(&pack, bytes).unwrap();
        }
        git_vibe(&kit.world, arguments)
            .expect(0)
            .stderr_has("was damaged and was fetched again");
    }
}
