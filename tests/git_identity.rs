//! The same package from a repository, a registry and a directory is the same, whatever the user's
//! git, locale and mask say; and a repository that the caller's environment names is left alone.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;

use crate::git_support::{LINT, git_command, release_package, require, served};
use crate::support::{lint, lint_slot, read, run, vibe, wait_until};
use vibe_testkit::{
    GitHttpServer, GitRepository, HttpOptions, PackageBuilder, TreeSnapshot, World,
};

/// A package with everything that git could be told to change on the way.
fn package() -> PackageBuilder {
    lint("1.0.0")
        .file(
            ".gitattributes",
            "* text eol=crlf\n*.id ident\n*.x filter=evil\n*.u working-tree-encoding=UTF-16\n",
        )
        .file("lf.md", "one\ntwo\n")
        .file("crlf.md", "one\r\ntwo\r\n")
        .file("mixed.md", "one\r\ntwo\nthree\r")
        .file("keyword.id", "$Id$ $Id: 0123456789 $\n")
        .file("filtered.x", "plain\n")
        .file("encoded.u", "plain\n")
        .file("binary", b"\0\x01\xff\r\n\n")
        .file("empty", "")
        .file("ISI.md", "dotless\n")
        .file("isi2.md", "dotted\n")
        .exec_file("tools/run", "#!/bin/sh\n")
}

/// A repository with [`package`], byte for byte, tagged as its version.
fn repository(world: &World) -> GitRepository {
    let repository = GitRepository::new(&served(world).join("lint"));
    // Git looks here first, and takes the files as they are.
    let attributes = "* -text !eol !ident !filter !working-tree-encoding\n";
    repository.write(".git/info/attributes", attributes, false);
    release_package(&repository, &package(), "1.0.0");
    let sizes = repository.git(&["ls-tree", "-l", "v1.0.0", "crlf.md", "encoded.u", "lf.md"]);
    let sizes = sizes
        .lines()
        .map(|line| line.split_whitespace().nth(3).unwrap());
    assert_eq!(sizes.collect::<Vec<_>>(), ["10", "6", "8"]);
    repository
}

/// Settings by which git changes content, or runs programs of the user's, on the way.
fn hostile(pwned: &Path) -> String {
    let touch = format!("touch {}", pwned.display());
    format!(
        "[core]\n\tautocrlf = true\n\teol = crlf\n\tsafecrlf = false\n\tfileMode = false\n\
         \tfsmonitor = \"{touch}\"\n\tattributesFile = ~/attributes\n\tignoreCase = true\n\
         [filter \"evil\"]\n\tsmudge = \"{touch}; cat; echo changed\"\n\tclean = \"{touch}; cat\"\n\trequired = true\n\
         [protocol]\n\tallow = never\n[url \"https://evil.example/\"]\n\tinsteadOf = http://127.0.0.1\n\
         [http]\n\tproxy = http://127.0.0.1:1\n[transfer]\n\tfsckObjects = true\n[fetch]\n\tunpackLimit = 1\n"
    )
}

/// Variables that say the same to every git that is started.
fn hostile_variables(pwned: &Path) -> BTreeMap<String, String> {
    let touch = format!("touch {}; cat", pwned.display());
    let pairs = [
        ("core.autocrlf", "input"),
        ("core.eol", "crlf"),
        ("filter.evil.smudge", &touch),
        ("filter.evil.process", &touch),
        ("core.sshCommand", &touch),
        ("uploadpack.packObjectsHook", &touch),
    ];
    let mut variables = BTreeMap::from([("GIT_CONFIG_COUNT".to_owned(), pairs.len().to_string())]);
    for (index, (key, value)) in pairs.iter().enumerate() {
        variables.insert(format!("GIT_CONFIG_KEY_{index}"), (*key).to_owned());
        variables.insert(format!("GIT_CONFIG_VALUE_{index}"), (*value).to_owned());
    }
    variables
}

/// The tree of org.example/lint in the record of its slot, once it is installed anew with
/// `variables` and the file mode creation mask `umask`.
fn installed(world: &World, variables: &BTreeMap<String, String>, umask: &str) -> String {
    let _ = std::fs::remove_dir_all(world.project().join("vibedeps"));
    let _ = std::fs::remove_file(world.project().join("vibe.lock"));
    let vibe = git_command(world, &["install"]);
    let mut shell = Command::new("sh");
    shell
        .args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")])
        .arg(vibe.get_program())
        .args(vibe.get_args())
        .current_dir(world.project())
        .env_clear()
        .envs(
            vibe.get_envs()
                .filter_map(|(name, value)| Some((name, value?))),
        )
        .envs(variables);
    run(&mut shell).expect(0);
    let record = read(lint_slot(world, "1.0.0").join(".vibe-slot.toml"));
    let tree = record.lines().find_map(|line| line.strip_prefix("tree = "));
    tree.unwrap_or_else(|| panic!("no tree in {record}"))
        .to_owned()
}

#[test]
fn one_package_is_the_same_from_everywhere_whatever_git_locale_and_mask_say() {
    let world = World::new();
    repository(&world);
    package().publish(&world.registry());
    package().write(&world.root().join("directory"));
    let server = GitHttpServer::start(HttpOptions::serve(&served(&world)));
    let registry = "[project]\nname = \"x\"\n[requires.packages]\n\"org.example/lint\" = \"^1\"\n[[registry]]\nname = \"r\"\nurl = \"../registry\"\n";
    let of = |inside: &str| {
        format!("[project]\nname = \"x\"\n[requires.packages]\n\"{LINT}\" = {{ {inside} }}\n")
    };
    let manifests = [
        registry.to_owned(),
        of("path = \"../directory\""),
        of(&format!(
            "git = \"{}\", tag = \"v1.0.0\"",
            server.url("lint")
        )),
        of("git = \"../served/lint\", tag = \"v1.0.0\""),
    ];
    let pwned = world.root().join("pwned");
    let mut hostile_variables = hostile_variables(&pwned);
    let system = world.root().join("system-gitconfig");
    hostile_variables.insert("GIT_CONFIG_SYSTEM".to_owned(), system.display().to_string());
    let turkish = ["LC_ALL", "LANG"].map(|name| (name.to_owned(), "tr_TR.UTF-8".to_owned()));
    let turkish = BTreeMap::from(turkish);
    let mut trees = Vec::new();
    let mut look = |variables: &BTreeMap<String, String>, umask: &str| {
        for manifest in &manifests {
            world.write("vibe.toml", manifest);
            trees.push(installed(&world, variables, umask));
            let slot = lint_slot(&world, "1.0.0");
            assert_eq!(read(slot.join("crlf.md")), "one\r\ntwo\r\n");
            assert_eq!(read(slot.join("keyword.id")), "$Id$ $Id: 0123456789 $\n");
            vibe(&world, &["verify"]).expect(0);
            for place in ["vibe/store", "vibe/git"] {
                let _ = std::fs::remove_dir_all(world.home().join(place));
            }
        }
    };
    look(&BTreeMap::new(), "022");
    look(&turkish, "077");
    std::fs::write(world.home().join(".gitconfig"), hostile(&pwned)).unwrap();
    std::fs::write(
        world.home().join("attributes"),
        "* filter=evil text eol=crlf\n",
    )
    .unwrap();
    std::fs::write(&system, hostile(&pwned)).unwrap();
    look(&hostile_variables, "027");
    let first = trees[0].clone();
    assert_eq!(trees, vec![first; 3 * manifests.len()]);
    assert!(!pwned.exists());
}

#[test]
fn a_repository_that_the_environment_names_is_left_alone() {
    let world = World::new();
    let repository = repository(&world);
    let victim = GitRepository::new(&world.root().join("victim"));
    victim.write("a.md", "committed\n", false);
    victim.commit("first");
    victim.write("a.md", "not committed\n", false);
    let options = HttpOptions::serve(&served(&world)).login("user", "secret");
    let server = GitHttpServer::start(options);
    // A helper is a git that is started: the one program that could look at these variables.
    let helper = "!f() { touch $HOME/helped; test $1 = get && echo username=user && echo password=secret; }; f";
    std::fs::write(
        world.home().join(".gitconfig"),
        format!("[credential]\n\thelper = {helper:?}\n"),
    )
    .unwrap();
    let git = victim.path().join(".git");
    let before = TreeSnapshot::of(victim.path());
    for url in [server.url("lint"), repository.file_url()] {
        require(
            &world,
            &[(LINT, &format!("git = \"{url}\", branch = \"main\""))],
        );
        for arguments in [&["install"][..], &["update"], &["reinstall"]] {
            let mut command = git_command(&world, arguments);
            command
                .env("GIT_DIR", &git)
                .env("GIT_WORK_TREE", victim.path())
                .env("GIT_INDEX_FILE", git.join("index"))
                .env("GIT_OBJECT_DIRECTORY", git.join("objects"))
                .env("GIT_COMMON_DIR", &git)
                .env("GIT_NAMESPACE", "other")
                .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", git.join("objects"));
            run(&mut command).expect(0);
            before.assert_unchanged(&TreeSnapshot::of(victim.path()));
        }
        assert_eq!(read(lint_slot(&world, "1.0.0").join("lf.md")), "one\ntwo\n");
    }
    wait_until("the helper's mark", || world.home().join("helped").exists());
}
