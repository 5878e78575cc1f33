//! Packages with submodules: their files are the package's, and what git would leave out or run is
//! refused.

use crate::git_support::{
    LINT, Served, forget_fetched, locked, release, require, served as served_directory,
};
use crate::support::{Run, lint, lint_slot, outside_state, read, store, vibe};
use vibe_core::hook::Phase;
use vibe_testkit::{GitProgram, GitRepository, TreeSnapshot};

/// A repository with one file, and its commit.
fn plain(served: &Served, name: &str, text: &str) -> (GitRepository, String) {
    let repository = served.repository(name);
    repository.write("text.md", text, false);
    let commit = repository.commit("first");
    (repository, commit)
}

/// A repository with org.example/lint, before its commit.
fn lint_repository(served: &Served) -> GitRepository {
    let repository = served.repository("lint");
    repository.package(&lint("1.0.0"));
    repository
}

#[track_caller]
fn refused(served: &Served, parts: &[&str]) -> Run {
    served.require_lint(", branch = \"main\"");
    let before = outside_state(&served.world);
    let mut run = served.vibe(&["install"]).expect(1);
    for part in parts {
        run = run.stderr_has(part);
    }
    before.assert_unchanged(&outside_state(&served.world));
    run
}

/// The text of a file in the slot of org.example/lint 1.0.0.
fn placed(served: &Served, path: &str) -> String {
    read(lint_slot(&served.world, "1.0.0").join(path))
}

fn forget_project(served: &Served) {
    std::fs::remove_dir_all(served.world.project().join("vibedeps")).unwrap();
}

#[test]
fn files_of_submodules_are_files_of_the_package() {
    let served = Served::new();
    let (_, deep) = plain(&served, "deep", "deep\n");
    let (sub, _) = plain(&served, "sub", "sub\n");
    sub.write("tools/run", "#!/bin/sh\n", true);
    sub.submodule("deeper/deep", "../deep", &deep);
    let pinned = sub.commit("with a submodule");
    let repository = lint_repository(&served);
    repository.submodule("parts/sub", "../sub", &pinned);
    repository.commit("first");
    sub.write("text.md", "moved on\n", false);
    let newer = sub.commit("moved on");
    served.require_lint(", branch = \"main\"");
    served.vibe(&["install"]).expect(0);
    let check = |served: &Served, text: &str| {
        assert_eq!(placed(served, "parts/sub/text.md"), text);
        assert_eq!(placed(served, "parts/sub/deeper/deep/text.md"), "deep\n");
        let slot = TreeSnapshot::of(&lint_slot(&served.world, "1.0.0"));
        assert_eq!(slot.entries["parts/sub/tools/run"].mode & 0o111, 0o111);
        assert!(slot.entries.keys().all(|path| !path.ends_with(".git")));
        served.vibe(&["verify"]).expect(0);
    };
    check(&served, "sub\n");
    // With the cache alone, and with nothing but the lock.
    let lock = served.world.read("vibe.lock");
    forget_project(&served);
    std::fs::remove_dir_all(store(&served.world)).unwrap();
    let (asked, run) = served.connections_of(|| served.vibe(&["install", "--locked"]));
    run.expect(0);
    assert_eq!(asked, 0);
    check(&served, "sub\n");
    forget_project(&served);
    forget_fetched(&served.world);
    served.vibe(&["install", "--locked"]).expect(0);
    check(&served, "sub\n");
    assert_eq!(served.world.read("vibe.lock"), lock);
    // Where the repository pins another commit, an update takes that.
    repository.add_gitlink("parts/sub", &newer);
    repository.git(&["commit", "--quiet", "--message", "newer"]);
    served.vibe(&["update"]).expect(0).stderr_has("1.0.0 moves");
    check(&served, "moved on\n");
}

#[test]
fn a_pre_install_finds_the_files_of_submodules() {
    let served = Served::new();
    let (_, deep) = plain(&served, "deep", "deep\n");
    let (sub, _) = plain(&served, "sub", "sub\n");
    sub.write("tools/run", "#!/bin/sh\necho ran\n", true);
    sub.submodule("deeper/deep", "../deep", &deep);
    let pinned = sub.commit("with a submodule");
    let script = "set -e\ncat parts/sub/text.md parts/sub/deeper/deep/text.md > seen\nparts/sub/tools/run >> seen\n";
    let repository = served.repository("lint");
    repository.package(&lint("1.0.0").hook(Phase::PreInstall, script));
    repository.submodule("parts/sub", "../sub", &pinned);
    repository.commit("first");
    served.require_lint(", branch = \"main\"");
    served.vibe(&["install"]).expect(0);
    assert_eq!(placed(&served, "seen"), "sub\ndeep\nran\n");
}

#[test]
fn a_submodule_of_a_repository_of_this_machine_is_found_beside_it() {
    let served = Served::new();
    let (sub, commit) = plain(&served, "sub", "sub\n");
    let repository = lint_repository(&served);
    repository.submodule("one", "../sub", &commit);
    repository.submodule("two", &sub.file_url(), &commit);
    repository.commit("first");
    for url in ["../served/lint", &*repository.file_url()] {
        let _ = std::fs::remove_file(served.world.project().join("vibe.lock"));
        require(
            &served.world,
            &[(LINT, &format!("git = \"{url}\", branch = \"main\""))],
        );
        vibe(&served.world, &["install"]).expect(0);
        assert_eq!(placed(&served, "one/text.md"), "sub\n");
        assert_eq!(placed(&served, "two/text.md"), "sub\n");
        forget_project(&served);
    }
    assert_eq!(served.daemon.connections(), 0);
}

#[test]
fn a_submodule_without_a_row_is_refused_by_name_though_git_leaves_it_out() {
    let served = Served::new();
    let (_, commit) = plain(&served, "sub", "sub\n");
    let repository = lint_repository(&served);
    repository.add_gitlink("parts/forgotten", &commit);
    repository.commit("first");
    let git = GitProgram::new();
    let url = served.url("lint");
    let arguments = ["clone", "--quiet", "--recurse-submodules", &url, "clone"];
    git.run(served.world.root(), &arguments);
    let clone = TreeSnapshot::of(&served.world.root().join("clone/parts/forgotten"));
    assert_eq!(
        clone.entries.len(),
        0,
        "git has it, so nobody has to be warned"
    );
    refused(
        &served,
        &[LINT, "`parts/forgotten`", "no row of `.gitmodules`"],
    );
}

#[test]
fn a_row_that_could_act_is_refused_and_nothing_of_it_is_run() {
    let served = Served::new();
    let (_, commit) = plain(&served, "sub", "sub\n");
    let repository = lint_repository(&served);
    repository.add_gitlink("x", &commit);
    let pwned = served.world.root().join("pwned");
    let touch = format!("touch {}", pwned.display());
    let row = |name: &str, lines: &str| format!("[submodule \"{name}\"]\n{lines}\n");
    let sub = "url = ../sub";
    for (text, part) in [
        (row("a", &format!("path = ../x\n{sub}")), "`path = ../x`"),
        (
            row("../../x", &format!("path = x\n{sub}")),
            "may not have that name",
        ),
        (row("a", "path = x\nurl = -ux"), "looks like an option"),
        (
            row("a", &format!("path = x\nurl = --upload-pack={touch}")),
            "looks like an option",
        ),
        (
            row("a", &format!("path = x\n{sub}\nupdate = !{touch}")),
            "a command, which is never run",
        ),
        (
            row("a", &format!("path = \"x\r\"\n{sub}")),
            "invisible character in its `path`",
        ),
        (
            row("a", "path = x\nurl = \"../sub\r\""),
            "invisible character in its `url`",
        ),
        (
            row("a", &format!("path = x\nurl = ext::sh -c '{touch}'")),
            "not a git URL of a kind that is taken",
        ),
        (row("a", &format!("path = /x\n{sub}")), "it is absolute"),
        (
            row("a", &format!("path = .git/hooks\n{sub}")),
            "`path = .git/hooks`",
        ),
        (row("a", "path = x\nurl = ../../../../sub"), "leads out of"),
        (
            row("a", &format!("path = x\n{sub}")) + &row("b", &format!("path = x\n{sub}")),
            "as another row has",
        ),
        ("[submodule \"a\"\npath = x\n".to_owned(), "cannot be read"),
    ] {
        repository.gitmodules(&text);
        repository.commit("a row");
        let run = refused(&served, &[LINT, part]);
        assert!(!run.stderr.contains('\r'), "{}", run.stderr);
        assert!(!pwned.exists(), "{text}");
    }
}

#[test]
fn a_fetched_repository_may_not_have_a_submodule_of_this_machine() {
    let served = Served::new();
    let (sub, commit) = plain(&served, "sub", "sub\n");
    let repository = lint_repository(&served);
    for url in [
        sub.file_url(),
        sub.path().display().to_string(),
        "sub".to_owned(),
    ] {
        let _ = std::fs::remove_file(repository.path().join(".gitmodules"));
        repository.submodule("sub", &url, &commit);
        repository.commit("a row");
        refused(&served, &[LINT, "`sub`", &url, "a place on this machine"]);
    }
}

#[test]
fn a_plain_address_of_a_submodule_is_asked_only_where_the_user_names_its_host() {
    let served = Served::new();
    let (_, commit) = plain(&served, "sub", "sub\n");
    let repository = lint_repository(&served);
    repository.submodule("sub", "http://other.example/sub", &commit);
    repository.commit("first");
    refused(&served, &[LINT, "`sub`", "http://other.example/sub"]);
}

#[test]
fn a_submodule_that_cannot_be_had_is_never_an_empty_directory() {
    let served = Served::new();
    let (_, commit) = plain(&served, "sub", "sub\n");
    let repository = lint_repository(&served);
    repository.submodule("parts/sub", "../gone", &commit);
    repository.commit("first");
    refused(&served, &[LINT, "`parts/sub`", &served.url("gone")]);
    let never = "0123456789012345678901234567890123456789";
    std::fs::remove_file(repository.path().join(".gitmodules")).unwrap();
    repository.submodule("parts/sub", "../sub", never);
    repository.commit("second");
    refused(&served, &[LINT, "`parts/sub`", &served.url("sub"), never]);
}

#[test]
fn submodules_may_not_hold_themselves_nor_lie_too_deep() {
    let served = Served::new();
    let repository = lint_repository(&served);
    let first = repository.commit("first");
    repository.submodule("again", "../lint", &first);
    repository.commit("itself");
    refused(&served, &[LINT, "`again`", "a submodule of itself"]);
    let (_, mut commit) = plain(&served, "r20", "the end\n");
    for number in (1..20).rev() {
        let repository = served.repository(&format!("r{number}"));
        repository.submodule("next", &format!("../r{}", number + 1), &commit);
        commit = repository.commit("first");
    }
    std::fs::remove_file(repository.path().join(".gitmodules")).unwrap();
    repository.git(&["rm", "--quiet", "--cached", "again"]);
    std::fs::remove_dir(repository.path().join("again")).unwrap();
    repository.submodule("next", "../r1", &commit);
    repository.commit("a chain");
    refused(&served, &[LINT, "`next/next/", "more than 8 deep"]);
    let fetched = TreeSnapshot::of(&served.world.home().join("vibe/git"));
    assert!(fetched.entries.keys().all(|path| !path.starts_with("r10")));
}

#[test]
fn a_submodule_that_moves_alone_changes_nothing() {
    let served = Served::new();
    let (sub, commit) = plain(&served, "sub", "sub\n");
    let repository = lint_repository(&served);
    repository.submodule("sub", "../sub", &commit);
    let pinned = release(&repository, "1.0.0");
    served.require_lint(", branch = \"main\"");
    served.vibe(&["install"]).expect(0);
    sub.write("text.md", "moved on\n", false);
    sub.commit("moved on");
    served
        .vibe(&["update"])
        .expect(0)
        .stdout_has("nothing to do");
    assert_eq!(locked(&served.world, LINT, "commit"), pinned);
    assert_eq!(placed(&served, "sub/text.md"), "sub\n");
    let directory = served_directory(&served.world);
    assert!(directory.join("sub").is_dir());
}
