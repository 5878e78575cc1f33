//! Repositories, addresses, references and locks that somebody made to do harm: each is refused by
//! name, nothing of it runs, and the project stays as it is.

use crate::git_support::{LINT, Served, forget_fetched, locked, release, require};
use crate::support::{Run, lint, lint_slot, outside_state};
use vibe_testkit::GitRepository;

#[track_caller]
fn refused(served: &Served, arguments: &[&str], codes: &[i32], parts: &[&str]) -> Run {
    let before = outside_state(&served.world);
    let mut run = served.vibe(arguments);
    assert!(
        codes.contains(&run.code),
        "{parts:?} {}: {}",
        run.code,
        run.stderr
    );
    for part in parts {
        run = run.stderr_has(part);
    }
    assert!(run.stderr.starts_with("error: ") || run.stderr.contains("\nerror: "));
    before.assert_unchanged(&outside_state(&served.world));
    run
}

/// A file that a command would make, and the command.
fn trap(served: &Served) -> (std::path::PathBuf, String) {
    let pwned = served.world.root().join("pwned");
    let touch = format!("touch {}", pwned.display());
    (pwned, touch)
}

#[test]
fn an_address_that_could_act_is_refused_in_a_manifest_and_on_the_command_line() {
    let (served, _) = Served::with_lint(&["1.0.0"]);
    let (pwned, touch) = trap(&served);
    for url in [
        format!("--upload-pack={touch}"),
        "-ux".to_owned(),
        format!("ext::sh -c '{touch}'"),
        format!("ssh://-oProxyCommand={touch}/x"),
        format!("-oProxyCommand={touch}:x"),
        "ssh://host:-1/x".to_owned(),
        "fd::17/x".to_owned(),
        "https://host".to_owned(),
        "https://host/x?y".to_owned(),
        "ftp://host/x".to_owned(),
        "https://host/%0a%0dx".to_owned(),
    ] {
        require(
            &served.world,
            &[(LINT, &format!("git = \"{url}\", tag = \"v1\""))],
        );
        refused(&served, &["install"], &[2], &["vibe.toml", "git"]);
        served
            .world
            .write("vibe.toml", "[project]\nname = \"world\"\n");
        let git = format!("--git={url}");
        let run = served.vibe(&["install", &git]).expect(2);
        assert!(!run.stderr.is_empty(), "{url}");
    }
    assert!(!pwned.exists());
    assert_eq!(served.daemon.connections(), 0);
}

#[test]
fn a_reference_is_a_name_and_nothing_else() {
    let (served, repository) = Served::with_lint(&["1.0.0"]);
    let blob = repository.blob(b"no commit\n");
    repository.git(&["tag", "blob", &blob]);
    repository.git(&["tag", "tree", "HEAD^{tree}"]);
    let (pwned, touch) = trap(&served);
    let upload = format!("--upload-pack={touch}");
    for (key, names) in [
        (
            "tag",
            &[
                &*upload,
                "v1.0.0^{}",
                "v1.0.0~0",
                "refs/tags/v1.0.0",
                "v*",
                "../v1.0.0",
                "",
                "blob",
                "tree",
            ][..],
        ),
        (
            "branch",
            &[
                &*upload,
                "main~0",
                "a..b",
                "refs/heads/main",
                "@{-1}",
                "HEAD",
                "main.lock",
                "+main",
                "main:x",
            ],
        ),
        (
            "rev",
            &[
                &*upload,
                "HEAD~1",
                "@",
                "@{u}",
                ":/release",
                "v1.0.0:lint.md",
                "^main",
                "abc",
                "refs/heads/main",
            ],
        ),
    ] {
        for name in names {
            served.require_lint(&format!(", {key} = \"{name}\""));
            refused(&served, &["install"], &[1, 2], &[LINT]);
        }
    }
    assert!(!pwned.exists());
}

#[test]
fn a_tag_that_says_another_version_than_the_package_is_refused() {
    let (served, repository) = Served::with_lint(&["1.0.0"]);
    repository.tag("v1.5.0");
    served.require_lint(", version = \"^1\"");
    refused(
        &served,
        &["install"],
        &[2],
        &[LINT, "1.5.0", "1.0.0", "hint: "],
    );
    served.require_lint(", version = \"=1.0.0\"");
    served.vibe(&["install"]).expect(0);
}

#[test]
fn a_lock_with_another_commit_is_refused() {
    let (served, repository) = Served::with_lint(&["1.0.0", "1.1.0"]);
    let commit = |name: &str| repository.git(&["rev-parse", name]);
    let (old, new) = (commit("v1.0.0"), commit("v1.1.0"));
    repository.git(&["switch", "--quiet", "--detach", "v1.0.0"]);
    repository.package(&lint("1.0.0").file("version.md", "changed"));
    let changed = repository.commit("other content, same version");
    repository.switch("main");
    served.require_lint(", tag = \"v1.0.0\"");
    served.vibe(&["install"]).expect(0);
    let lock = served.world.read("vibe.lock");
    assert_eq!(locked(&served.world, LINT, "commit"), old);
    let none = "0123456789".repeat(4);
    for (commit, code) in [(&new, 3), (&changed, 3), (&none, 1)] {
        served.world.write("vibe.lock", &lock.replace(&old, commit));
        let _ = std::fs::remove_dir_all(served.world.project().join("vibedeps"));
        forget_fetched(&served.world);
        for arguments in [
            &["install", "--locked"][..],
            &["install"],
            &["verify", "--repair"],
        ] {
            refused(&served, arguments, &[code], &[LINT, "hint: "]);
            assert!(!lint_slot(&served.world, "1.0.0").exists());
        }
    }
    for text in ["main", "v1.0.0", &old[..12], &old.to_uppercase()] {
        served.world.write("vibe.lock", &lock.replace(&old, text));
        refused(
            &served,
            &["install", "--locked"],
            &[3],
            &["vibe.lock", "commit", "hint: "],
        );
    }
}

/// Commits a tree of org.example/lint with one more entry, as git itself would not.
fn with_entry(repository: &GitRepository, mode: &str, name: &[u8], id: &str) {
    let manifest = std::fs::read(repository.path().join("vibe.toml")).unwrap();
    let manifest = repository.blob(&manifest);
    let mut entries = [
        (mode, name, id),
        ("100644", b"vibe.toml".as_slice(), manifest.as_str()),
    ];
    entries.sort_by_key(|(_, name, _)| *name);
    let commit = repository.commit_tree(&repository.raw_tree(&entries));
    repository.force_branch("main", &commit);
}

#[test]
fn a_tree_that_would_leave_its_slot_is_refused_by_name() {
    let (served, repository) = Served::with_lint(&["1.0.0"]);
    served.require_lint(", branch = \"main\"");
    let file = repository.blob(b"text\n");
    let manifest = repository.git(&["rev-parse", "HEAD:vibe.toml"]);
    let inner = repository.raw_tree(&[("100644", b"config", &file)]);
    let outside = repository.blob(b"../../../../outside");
    let absolute = repository.blob(b"/etc/passwd");
    for (mode, name, id, part) in [
        ("40000", &b".."[..], &inner, "`..`"),
        ("40000", b".", &inner, "`.`"),
        ("40000", b".git", &inner, "`.git"),
        ("40000", b".GIT", &inner, "`.GIT"),
        ("40000", b"git~1", &inner, "`git~1"),
        ("40000", b".g\xe2\x80\x8cit", &inner, "it"),
        ("100644", b"a/b", &file, "a/b"),
        ("100644", b"a\\b", &file, "a"),
        ("100644", b"C:x", &file, "C:x"),
        ("100644", b"aux.md", &file, "aux.md"),
        ("100644", b"VIBE.TOML", &file, "VIBE.TOML"),
        ("100644", b".vibe-slot.toml", &file, ".vibe-slot.toml"),
        ("100644", b"\xff\xfe", &file, "\\x"),
        ("100644", b"new\nline", &file, "new"),
        ("100644", b"esc\x1b[2J", &file, "esc"),
        ("120000", b"link", &outside, "link"),
        ("120000", b"link", &absolute, "link"),
        ("100644", b"vibe.toml", &manifest, "vibe.toml"),
    ] {
        with_entry(&repository, mode, name, id);
        let run = refused(&served, &["install"], &[1, 2], &[LINT, part]);
        assert!(!run.stderr.contains('\u{1b}'), "{}", run.stderr);
    }
}

#[test]
fn a_manifest_that_is_none_is_refused_by_its_place() {
    let (served, repository) = Served::with_lint(&["1.0.0"]);
    served.require_lint(", branch = \"main\"");
    let url = served.url("lint");
    let large = vec![b'#'; 2 << 20];
    for (bytes, parts) in [
        (&b"not = [toml"[..], ["vibe.toml", &*url]),
        (b"", ["vibe.toml", &url]),
        (b"\xff\xfe", ["vibe.toml", &url]),
        (b"[project]\nname = \"x\"\n", ["`subdir`", LINT]),
        (&large, [&url, LINT]),
    ] {
        repository.write("vibe.toml", bytes, false);
        repository.commit("a manifest");
        let run = refused(&served, &["install"], &[1, 2], &parts);
        assert!(run.stderr.len() < 2_000, "{}", run.stderr);
    }
    release(&repository, "1.0.1");
    served.vibe(&["install"]).expect(0);
}
