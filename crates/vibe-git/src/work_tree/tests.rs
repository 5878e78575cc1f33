//! In-place slots made from repositories of the test's own.

use super::*;
use crate::Differences;
use crate::testing::{Repository as Source, World};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};

const URL: &str = "https://example.org/a.git";

struct Slot {
    world: World,
    git: GitProgram,
    person: vibe_testkit::GitProgram,
    cancel: Cancellation,
}

impl Slot {
    fn new() -> Self {
        let world = World::new();
        Self {
            git: GitProgram::find(&world.environment()).unwrap(),
            person: vibe_testkit::GitProgram::new(),
            world,
            cancel: Cancellation::new(),
        }
    }

    fn path(&self, relative: &str) -> PathBuf {
        self.world.path("slot").join(relative)
    }

    fn tree(&self) -> WorkTree<'_> {
        self.tree_with("control")
    }

    /// As verify looks: with a control directory that is new, or another.
    fn tree_with(&self, control: &str) -> WorkTree<'_> {
        let control = self.world.path(control);
        WorkTree::new(&self.git, &self.cancel, &self.world.path("slot"), &control)
    }

    fn bring(&self, wanted: &Checkout) {
        self.tree().bring(wanted, Extent::All).unwrap();
    }

    fn status(&self, wanted: &Checkout) -> Status {
        self.tree().status(wanted).unwrap()
    }

    fn read(&self, relative: &str) -> String {
        fs::read_to_string(self.path(relative)).unwrap()
    }

    fn write(&self, relative: &str, content: &str) {
        let path = self.path(relative);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    /// What git says in the slot, as a person asks it there.
    fn ask(&self, arguments: &[&str]) -> String {
        self.person.run(&self.path(""), arguments)
    }

    fn identity(&self, relative: &str) -> (u64, i64, i64) {
        let metadata = fs::symlink_metadata(self.path(relative)).unwrap();
        (metadata.ino(), metadata.mtime(), metadata.mtime_nsec())
    }
}

fn checkout(source: &Source, commit: CommitId) -> Checkout {
    Checkout {
        url: URL.to_owned(),
        commit,
        objects: source.path().join(".git/objects"),
        submodules: Vec::new(),
    }
}

fn submodule(source: &Source, path: &str, commit: CommitId) -> Submodule {
    Submodule {
        path: RelPath::new(path).unwrap(),
        url: format!("https://example.org/{path}.git"),
        commit,
        objects: source.path().join(".git/objects"),
    }
}

fn snapshot(directory: &Path) -> vibe_testkit::TreeSnapshot {
    vibe_testkit::TreeSnapshot::of(directory)
}

/// Shows that nothing the traps name was run.
fn assert_not_sprung(slot: &Slot) {
    let sprung = slot.world.path("sprung");
    assert!(!sprung.exists(), "something planted was run");
}

#[test]
fn a_clone_is_an_ordinary_repository_that_needs_no_other() {
    let slot = Slot::new();
    let source = slot.world.repository("source");
    let first = source.commit(&[("a", "1"), ("d/run", "2")]);
    fs::set_permissions(
        source.path().join("d/run"),
        fs::Permissions::from_mode(0o755),
    )
    .unwrap();
    symlink("d/run", source.path().join("link")).unwrap();
    let second = source.commit(&[]);
    source.git(&["branch", "secret"]);
    slot.bring(&checkout(&source, second));
    fs::remove_dir_all(source.path()).unwrap();
    assert_eq!(slot.ask(&["status", "--porcelain"]), "");
    assert_eq!(slot.ask(&["fsck", "--strict"]), "");
    assert_eq!(
        slot.ask(&["rev-parse", "HEAD", "HEAD^"]),
        format!("{second}\n{first}")
    );
    assert_eq!(slot.ask(&["remote", "get-url", "origin"]), URL);
    assert_eq!(
        slot.ask(&["branch", "--list", "--all"]),
        format!("* (no branch)")
    );
    assert_eq!(WorkTree::head(&slot.path("")), Some(second));
    assert_eq!(
        fs::metadata(slot.path("d/run")).unwrap().mode() & 0o111,
        0o111
    );
    assert_eq!(
        fs::read_link(slot.path("link")).unwrap(),
        Path::new("d/run")
    );
}

#[test]
fn an_update_touches_only_what_differs_and_cleans_the_rest() {
    let slot = Slot::new();
    let source = slot.world.repository("source");
    let first = source.commit(&[
        ("same", "1"),
        ("changed", "1"),
        ("gone/x", "1"),
        (".gitignore", "out\n"),
    ]);
    slot.bring(&checkout(&source, first));
    let same = slot.identity("same");
    fs::remove_dir_all(source.path().join("gone")).unwrap();
    let second = source.commit(&[("changed", "2"), ("new/x", "1")]);
    slot.write("untracked", "x");
    slot.write("out/ignored", "x");
    slot.write("nested/file", "x");
    slot.ask(&["init", "--quiet", "nested"]);
    let objects = slot.path(".git/objects/pack");
    let packs = fs::read_dir(&objects).unwrap().count();
    slot.bring(&checkout(&source, second));
    assert_eq!(slot.identity("same"), same);
    assert_eq!(
        (slot.read("changed"), slot.read("new/x")),
        ("2".into(), "1".into())
    );
    for gone in ["gone", "untracked", "out", "nested"] {
        assert!(!slot.path(gone).exists(), "{gone}");
    }
    assert_eq!(
        fs::read_dir(&objects).unwrap().count(),
        packs + 2,
        "one pack more"
    );
    assert_eq!(slot.ask(&["fsck"]), "");
    slot.bring(&checkout(&source, first));
    assert_eq!(slot.identity("same"), same);
    assert_eq!(
        (slot.read("changed"), slot.read("gone/x")),
        ("1".into(), "1".into())
    );
    assert!(!slot.path("new").exists());
}

#[test]
fn a_status_tells_edits_from_additions_and_contents_apart() {
    let slot = Slot::new();
    let source = slot.world.repository("source");
    let wanted = checkout(
        &source,
        source.commit(&[("a", "1"), ("b", "1"), (".gitignore", "out\n")]),
    );
    slot.bring(&wanted);
    let clean = slot.status(&wanted);
    assert!(clean.is_clean());
    assert_eq!(clean.tracked.digest, Differences::no_digest());
    slot.write("a", "22");
    fs::remove_file(slot.path("b")).unwrap();
    slot.write("new file\n", "x");
    slot.write("dir/x", "x");
    slot.write("out", "ignored");
    let one = slot.status(&wanted);
    assert_eq!(one.tracked.paths, [b"a", b"b"]);
    assert_eq!(
        one.untracked.paths,
        [b"dir/".to_vec(), b"new file\n".to_vec()]
    );
    assert_eq!(slot.status(&wanted), one);
    slot.write("a", "33");
    let other = slot.status(&wanted);
    assert_ne!(one.tracked.digest, other.tracked.digest);
    assert_eq!(one.untracked, other.untracked);
    slot.write("new file\n", "y");
    assert_ne!(slot.status(&wanted).untracked.digest, one.untracked.digest);
    slot.tree().bring(&wanted, Extent::Tracked).unwrap();
    let kept = slot.status(&wanted);
    assert!(kept.tracked.is_empty(), "tracked files are put back");
    assert_eq!(kept.untracked.count, 2, "untracked ones stay");
}

#[test]
fn an_edit_that_the_index_hides_is_seen_and_repaired() {
    let slot = Slot::new();
    let source = slot.world.repository("source");
    let wanted = checkout(&source, source.commit(&[("a", "1"), ("b", "1")]));
    slot.bring(&wanted);
    slot.ask(&["update-index", "--skip-worktree", "a"]);
    slot.ask(&["update-index", "--assume-unchanged", "b"]);
    slot.write("a", "22");
    slot.write("b", "22");
    assert_eq!(
        slot.ask(&["status", "--porcelain"]),
        "",
        "git itself is deceived"
    );
    for control in ["control", "fresh"] {
        let status = slot.tree_with(control).status(&wanted).unwrap();
        assert_eq!(status.tracked.paths, [b"a", b"b"], "{control}");
    }
    slot.bring(&wanted);
    assert_eq!((slot.read("a"), slot.read("b")), ("1".into(), "1".into()));
    assert_eq!(slot.ask(&["ls-files", "-v"]), "H a\nH b");
}

#[test]
fn a_file_of_the_same_size_and_time_is_seen_by_a_new_look() {
    let slot = Slot::new();
    let source = slot.world.repository("source");
    let wanted = checkout(&source, source.commit(&[("a", "1"), ("b", "1")]));
    slot.bring(&wanted);
    let index = fs::read(slot.world.path("control/whole/index")).unwrap();
    slot.write("a", "2");
    slot.tree_with("other").status(&wanted).unwrap();
    // An index that claims the edited file to be the published one.
    let forged = slot.world.path("control/whole/index");
    let refreshed = slot.world.path("other/whole/index");
    assert_eq!(fs::read(&forged).unwrap(), index);
    fs::copy(refreshed, forged).unwrap();
    let status = slot.tree_with("fresh").status(&wanted).unwrap();
    assert_eq!(status.tracked.paths, [b"a"]);
}

/// Plants in the clone's repository whatever makes git run a program or look away. It works: a
/// person's own `git status` springs it.
fn plant_traps(slot: &Slot) {
    let sprung = slot.world.path("sprung");
    let trap = slot.world.path("trap");
    fs::write(
        &trap,
        format!("#!/bin/sh\ntouch '{}'\ncat\n", sprung.display()),
    )
    .unwrap();
    fs::set_permissions(&trap, fs::Permissions::from_mode(0o755)).unwrap();
    let run = trap.to_str().unwrap();
    slot.ask(&["config", "core.fsmonitor", run]);
    slot.ask(&["status"]);
    assert!(sprung.exists(), "the trap works");
    fs::remove_file(&sprung).unwrap();
    let settings = [
        ("filter.evil.clean", run),
        ("filter.evil.smudge", run),
        ("filter.evil.process", run),
        ("filter.evil.required", "true"),
        ("core.sshCommand", run),
        ("core.pager", run),
        ("core.hooksPath", run),
        ("diff.external", run),
        ("core.alternateRefsCommand", run),
        ("uploadpack.packObjectsHook", run),
        ("url.ext::sh.insteadOf", "https://"),
        ("remote.origin.promisor", "true"),
        ("remote.origin.uploadpack", run),
        ("extensions.worktreeConfig", "true"),
        ("core.worktree", "/tmp"),
    ];
    for (name, value) in settings {
        let set = ["config", "--file", "config", name, value];
        slot.person.run(&slot.path(".git"), &set);
    }
    for hook in [
        "post-checkout",
        "post-index-change",
        "pre-auto-gc",
        "reference-transaction",
    ] {
        slot.write(&format!(".git/hooks/{hook}"), "");
        fs::copy(&trap, slot.path(".git/hooks").join(hook)).unwrap();
    }
    slot.write(".git/info/attributes", "a filter=evil\n");
    slot.write(".git/info/exclude", "hidden\n");
    slot.write(".git/info/grafts", "");
    slot.write(".git/config.worktree", "[core]\nsparseCheckout = true\n");
    slot.write(".git/info/sparse-checkout", "/b\n");
    slot.write(".git/objects/info/alternates", "/nonexistent\n");
}

#[test]
fn what_is_planted_in_the_repository_does_not_act_and_does_not_survive() {
    let slot = Slot::new();
    let source = slot.world.repository("source");
    let attributes = "* filter=evil\n*.t diff=evil merge=evil\n";
    let first = source.commit(&[("a", "1"), (".gitattributes", attributes)]);
    let second = source.commit(&[("a", "2"), ("b", "1")]);
    slot.bring(&checkout(&source, first));
    plant_traps(&slot);
    slot.write("hidden", "x");
    slot.write("a", "edited");
    let wanted = checkout(&source, first);
    let status = slot.status(&wanted);
    assert_eq!(status.tracked.paths, [b"a"]);
    assert_eq!(status.untracked.paths, [b"hidden"]);
    assert!(!slot.tree().has_local_commits(&wanted, &[]).unwrap());
    assert!(!slot.tree().is_plain(&wanted).unwrap());
    assert_not_sprung(&slot);
    let wanted = checkout(&source, second);
    slot.bring(&wanted);
    assert_not_sprung(&slot);
    assert!(slot.tree().is_plain(&wanted).unwrap());
    assert_eq!(
        (slot.read("a"), slot.path("hidden").exists()),
        ("2".into(), false)
    );
    for gone in [
        "hooks",
        "info",
        "config.worktree",
        "objects/info/alternates",
    ] {
        assert!(!slot.path(".git").join(gone).exists(), "{gone}");
    }
    assert!(!slot.read(".git/config").contains("evil"));
    assert_eq!(slot.ask(&["status", "--porcelain"]), "");
    assert_not_sprung(&slot);
}

#[test]
fn replaced_objects_and_grafts_hide_nothing() {
    let slot = Slot::new();
    let source = slot.world.repository("source");
    let first = source.commit(&[("a", "1")]);
    let second = source.commit(&[("a", "2")]);
    let wanted = checkout(&source, first);
    slot.bring(&checkout(&source, second));
    slot.ask(&[
        "update-ref",
        &format!("refs/replace/{first}"),
        &second.to_string(),
    ]);
    slot.bring(&wanted);
    assert_eq!(slot.read("a"), "1");
    assert!(!slot.path(".git/refs/replace").exists());
}

#[test]
fn a_repository_directory_that_is_something_else_is_made_anew() {
    let slot = Slot::new();
    let source = slot.world.repository("source");
    let wanted = checkout(&source, source.commit(&[("a", "1")]));
    slot.bring(&wanted);
    let elsewhere = slot.world.path("elsewhere");
    let plant: [fn(&Slot, &Path); 4] = [
        |slot, _| fs::remove_dir_all(slot.path(".git")).unwrap(),
        |slot, elsewhere| {
            fs::rename(slot.path(".git"), elsewhere).unwrap();
            symlink(elsewhere, slot.path(".git")).unwrap();
        },
        |slot, elsewhere| {
            fs::remove_dir_all(slot.path(".git")).unwrap();
            slot.write(".git", &format!("gitdir: {}\n", elsewhere.display()));
        },
        |slot, elsewhere| {
            fs::remove_dir_all(slot.path(".git/objects")).unwrap();
            symlink(elsewhere.join("objects"), slot.path(".git/objects")).unwrap();
        },
    ];
    for plant in plant {
        let unchanged = slot.identity("a");
        plant(&slot, &elsewhere);
        let before = elsewhere.exists().then(|| snapshot(&elsewhere));
        assert!(slot.status(&wanted).is_clean());
        assert!(!slot.tree().is_plain(&wanted).unwrap());
        slot.bring(&wanted);
        assert!(slot.tree().is_plain(&wanted).unwrap());
        assert_eq!(slot.identity("a"), unchanged);
        assert_eq!(slot.ask(&["fsck"]), "");
        assert_eq!(before, elsewhere.exists().then(|| snapshot(&elsewhere)));
    }
}

#[test]
fn a_clone_whose_control_directory_is_lost_is_adopted_without_a_touch() {
    let slot = Slot::new();
    let source = slot.world.repository("source");
    let wanted = checkout(&source, source.commit(&[("a", "1"), ("b", "1")]));
    slot.bring(&wanted);
    let a = slot.identity("a");
    slot.write("b", "edited");
    fs::remove_dir_all(slot.world.path("control")).unwrap();
    assert_eq!(slot.status(&wanted).tracked.paths, [b"b"]);
    fs::remove_dir_all(slot.world.path("control")).unwrap();
    slot.bring(&wanted);
    assert_eq!(slot.identity("a"), a);
    assert_eq!(slot.read("b"), "1");
}

#[test]
fn commits_made_here_are_told_from_those_that_were_fetched() {
    let slot = Slot::new();
    let source = slot.world.repository("source");
    let first = source.commit(&[("a", "1")]);
    let second = source.commit(&[("a", "2")]);
    let wanted = checkout(&source, first);
    slot.bring(&checkout(&source, second));
    let has = |known: &[CommitId]| slot.tree().has_local_commits(&wanted, known).unwrap();
    assert!(has(&[]), "a later commit that nobody names is unknown");
    assert!(!has(&[second]));
    slot.ask(&[
        "update-ref",
        "refs/remotes/origin/main",
        &second.to_string(),
    ]);
    assert!(!has(&[]), "it was fetched");
    slot.ask(&["checkout", "--quiet", "-b", "mine"]);
    assert_eq!(WorkTree::head(&slot.path("")), None);
    assert!(!has(&[]), "a branch without commits of its own");
    slot.ask(&["commit", "--quiet", "--allow-empty", "-m", "mine"]);
    assert!(has(&[second]));
    slot.ask(&["checkout", "--quiet", "--detach", &first.to_string()]);
    assert!(has(&[second]), "the branch still has it");
    slot.ask(&["pack-refs", "--all"]);
    assert!(has(&[second]), "packed as well");
    slot.ask(&["branch", "--quiet", "-D", "mine"]);
    assert!(!has(&[second]));
    slot.write("a", "stashed");
    slot.ask(&["stash", "--quiet"]);
    assert!(has(&[second]), "a stash is work, too");
    fs::remove_file(slot.path(".git/packed-refs")).unwrap();
    fs::remove_dir_all(slot.path(".git/refs")).unwrap();
    symlink("/nonexistent", slot.path(".git/refs")).unwrap();
    assert!(has(&[second]), "what cannot be told counts as work");
}

#[test]
fn submodules_are_clones_of_their_own_at_their_pinned_commits() {
    let slot = Slot::new();
    let inner = slot.world.repository("inner");
    let inner_first = inner.commit(&[("i", "1")]);
    let inner_second = inner.commit(&[("i", "2")]);
    let source = slot.world.repository("source");
    let pin = |commit: CommitId, files: &[(&str, &str)]| {
        source.commit(files);
        let row = format!("160000,{commit},lib/inner");
        source.git(&["update-index", "--add", "--cacheinfo", &row]);
        source.git(&["commit", "--quiet", "-m", "pin"]);
        source.git(&["rev-parse", "HEAD"]).parse().unwrap()
    };
    let one = pin(inner_first, &[("a", "1")]);
    let mut wanted = checkout(&source, one);
    wanted.submodules = vec![submodule(&inner, "lib/inner", inner_first)];
    slot.bring(&wanted);
    assert_eq!(slot.read("lib/inner/i"), "1");
    assert!(slot.status(&wanted).is_clean());
    assert_eq!(slot.ask(&["status", "--porcelain"]), "");
    slot.write("lib/inner/i", "edited");
    slot.write("lib/inner/new", "x");
    let status = slot.status(&wanted);
    assert_eq!(status.tracked.paths, [b"lib/inner/i"]);
    assert_eq!(status.untracked.paths, [b"lib/inner/new"]);
    slot.write("lib/inner/.git/hooks/post-checkout", "x");
    assert!(!slot.tree().is_plain(&wanted).unwrap());
    let mut next = checkout(&source, pin(inner_second, &[("a", "2")]));
    next.submodules = vec![submodule(&inner, "lib/inner", inner_second)];
    slot.bring(&next);
    assert_eq!(slot.read("lib/inner/i"), "2");
    assert!(!slot.path("lib/inner/new").exists() && !slot.path("lib/inner/.git/hooks").exists());
    fs::remove_dir_all(slot.path("lib")).unwrap();
    assert_eq!(slot.status(&next).tracked.paths, [b"lib/inner"]);
    symlink(slot.world.path("inner"), slot.path("lib")).unwrap();
    assert_eq!(slot.status(&next).tracked.count, 1);
    let before = snapshot(inner.path());
    slot.bring(&next);
    assert_eq!(
        snapshot(inner.path()),
        before,
        "nothing goes through a link"
    );
    assert_eq!(slot.read("lib/inner/i"), "2");
    fs::remove_dir_all(source.path().join("lib")).ok();
    source.git(&["rm", "--quiet", "--cached", "lib/inner"]);
    let without = checkout(&source, source.commit(&[("lib/inner/plain", "1")]));
    slot.bring(&without);
    assert_eq!(slot.read("lib/inner/plain"), "1");
    assert!(!slot.path("lib/inner/.git").exists() && !slot.path("lib/inner/i").exists());
    assert!(slot.status(&without).is_clean());
}

#[test]
fn attributes_of_the_repository_act_as_in_every_clone() {
    let slot = Slot::new();
    let source = slot.world.repository("source");
    source.git(&["config", "core.autocrlf", "false"]);
    let attributes = "*.crlf text eol=crlf\n*.auto text=auto\n*.id ident\n";
    let commit = source.commit(&[
        (".gitattributes", attributes),
        ("a.crlf", "x\n"),
        ("a.auto", "x\n"),
        ("a.id", "$Id$\n"),
        ("a.plain", "x\r\n"),
    ]);
    slot.world
        .configure("[core]\nautocrlf = true\neol = crlf\n");
    let wanted = checkout(&source, commit);
    slot.bring(&wanted);
    assert_eq!(slot.read("a.crlf"), "x\r\n");
    assert_eq!(
        slot.read("a.auto"),
        "x\n",
        "whatever the user's configuration"
    );
    assert_eq!(slot.read("a.plain"), "x\r\n");
    assert!(slot.read("a.id").starts_with("$Id: "));
    assert!(slot.status(&wanted).is_clean());
    assert_eq!(slot.ask(&["status", "--porcelain"]), "");
}

#[test]
fn tracked_directories_that_became_links_are_rebuilt_and_never_written_through() {
    let slot = Slot::new();
    let source = slot.world.repository("source");
    let wanted = checkout(&source, source.commit(&[("d/e/f", "1")]));
    slot.bring(&wanted);
    let outside = slot.world.path("outside");
    fs::create_dir_all(outside.join("e")).unwrap();
    fs::write(outside.join("e/f"), "mine").unwrap();
    fs::remove_dir_all(slot.path("d")).unwrap();
    symlink(&outside, slot.path("d")).unwrap();
    assert_eq!(slot.status(&wanted).tracked.paths, [b"d/e/f"]);
    slot.bring(&wanted);
    assert_eq!(slot.read("d/e/f"), "1");
    assert_eq!(fs::read_to_string(outside.join("e/f")).unwrap(), "mine");
    fs::remove_dir_all(slot.path("")).unwrap();
    symlink(&outside, slot.world.path("slot")).unwrap();
    assert!(
        slot.tree().status(&wanted).is_err(),
        "the slot itself is a link"
    );
}

#[test]
fn a_lock_that_a_killed_run_left_stops_nobody() {
    let slot = Slot::new();
    let source = slot.world.repository("source");
    let wanted = checkout(&source, source.commit(&[("a", "1")]));
    slot.bring(&wanted);
    fs::write(slot.world.path("control/whole/index.lock"), "").unwrap();
    slot.write(".git/index.lock", "");
    slot.write("a", "edited");
    slot.bring(&wanted);
    assert_eq!(slot.read("a"), "1");
    assert_eq!(slot.ask(&["status", "--porcelain"]), "");
}

#[test]
fn an_interrupt_stops_before_the_next_call() {
    let slot = Slot::new();
    let source = slot.world.repository("source");
    let wanted = checkout(&source, source.commit(&[("a", "1")]));
    slot.cancel.interrupt();
    let stopped = slot.tree().bring(&wanted, Extent::All).unwrap_err();
    assert!(matches!(
        stopped,
        WorkTreeError::Program(ProgramError::Interrupted)
    ));
    assert!(!slot.path("a").exists() && WorkTree::head(&slot.path("")).is_none());
}

#[test]
fn what_git_refuses_is_told_in_one_escaped_line() {
    let slot = Slot::new();
    let source = slot.world.repository("source");
    source.commit(&[("a", "1")]);
    let absent: CommitId = "1".repeat(40).parse().unwrap();
    let error = slot
        .tree()
        .bring(&checkout(&source, absent), Extent::All)
        .unwrap_err();
    let said = error.to_string();
    assert!(
        said.starts_with("git could not copy the objects of `"),
        "{said}"
    );
    assert!(
        said.contains(&absent.to_string()) && !said.contains('\n'),
        "{said}"
    );
}

#[test]
fn paths_that_git_takes_apart_in_a_list_are_quoted() {
    let slot = Slot::new();
    let source = slot.world.repository("so:ur\"ce\\n\n");
    let wanted = checkout(&source, source.commit(&[("a", "1")]));
    slot.bring(&wanted);
    assert!(slot.status(&wanted).is_clean());
    assert_eq!(slot.read("a"), "1");
}

#[test]
fn a_commit_with_the_same_tree_moves_head_and_nothing_else() {
    let slot = Slot::new();
    let source = slot.world.repository("source");
    let first = source.commit(&[("a", "1"), ("b", "1")]);
    let second = source.commit(&[]);
    slot.bring(&checkout(&source, first));
    slot.write("a", "edited by a hook");
    slot.write("made", "x");
    let identities = ["a", "b", "made"].map(|name| slot.identity(name));
    let wanted = checkout(&source, second);
    let before = slot.status(&checkout(&source, first));
    slot.tree().bring(&wanted, Extent::Repository).unwrap();
    assert_eq!(
        ["a", "b", "made"].map(|name| slot.identity(name)),
        identities
    );
    assert_eq!(WorkTree::head(&slot.path("")), Some(second));
    assert_eq!(slot.status(&wanted), before);
    assert_eq!(slot.ask(&["status", "--porcelain"]), " M a\n?? made");
    assert_eq!(slot.ask(&["fsck"]), "");
}
