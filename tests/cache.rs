//! `vibe cache`: what is kept for all projects, outside of any of them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use crate::support::{
    Run, command, command_in, lint, lint_slot, read, redacted, run, start, store, unprivileged,
    vibe, wait, wait_until, with_hook,
};
use vibe_core::hook::Phase;
use vibe_testkit::{GitDaemon, GitRepository, PackageBuilder, TreeSnapshot, World, set_mode};

const LINT: &str = "org.example/lint";
const DAY: Duration = Duration::from_hours(24);

/// A project with `org.example/lint` and a larger package installed.
fn installed() -> World {
    let world = World::new();
    lint("1.0.0").publish(&world.registry());
    PackageBuilder::new("org.example/large", "2.1.0")
        .file("large.md", "x".repeat(5_000))
        .publish(&world.registry());
    world.require(&[(LINT, "^1"), ("org.example/large", "^2")]);
    vibe(&world, &["install"]).expect(0);
    world
}

/// Runs `vibe cache <arguments>` where no project is.
fn cache(world: &World, arguments: &[&str]) -> Run {
    let words = [&["cache"], arguments].concat();
    run(&mut command_in(world, &world.home(), &words))
}

/// The directories of the trees in the store.
fn trees(world: &World) -> Vec<PathBuf> {
    let below = |path: PathBuf| -> Vec<PathBuf> {
        let Ok(entries) = fs::read_dir(path) else {
            return Vec::new();
        };
        entries.map(|entry| entry.unwrap().path()).collect()
    };
    let shards = below(store(world).join("v1/trees"));
    shards.into_iter().flat_map(below).collect()
}

/// Makes the last use of every tree in the store so many days old.
fn make_unused(world: &World, days: u32) {
    for tree in trees(world) {
        let listing = File::open(tree.join("listing")).unwrap();
        listing
            .set_modified(SystemTime::now() - DAY * days)
            .unwrap();
    }
}

/// The stored file `name`, wherever it is.
fn stored(world: &World, name: &str) -> PathBuf {
    let places = trees(world).into_iter();
    let mut places = places.map(|tree| tree.join("files").join(name));
    places.find(|place| place.is_file()).unwrap()
}

/// Replaces the bytes of a stored file in place, whatever its mode.
fn overwrite(path: &Path, content: &str) {
    let mode = fs::metadata(path).unwrap().permissions();
    set_mode(path, 0o644);
    fs::write(path, content).unwrap();
    fs::set_permissions(path, mode).unwrap();
}

/// `text` with the world, the identities of trees and dates taken out.
fn plain(world: &World, text: &str) -> String {
    let is_tree = |word: &str| word.len() == 12 && word.bytes().all(|b| b.is_ascii_hexdigit());
    let is_date = |word: &str| word.len() == 10 && word.matches('-').count() == 2;
    let shown = |word: &str| match word {
        _ if is_tree(word) => "[tree]".to_owned(),
        _ if is_date(word) => "[date]".to_owned(),
        _ => word.to_owned(),
    };
    let line = |line: &str| line.split(' ').map(shown).collect::<Vec<_>>().join(" ");
    let lines: Vec<String> = redacted(world, text).lines().map(line).collect();
    lines.join("\n") + "\n"
}

#[test]
fn the_path_of_the_store_can_be_used_in_a_command() {
    let world = World::new();
    for options in [&["path"][..], &["path", "-q"]] {
        let ran = cache(&world, options).expect(0);
        let expected = format!("{}\n", store(&world).display());
        assert_eq!((ran.stdout, ran.stderr.as_str()), (expected, ""));
    }
    let both = cache(&world, &["path", "--json"]).expect(0).json();
    assert_eq!(both["result"]["store"], store(&world).to_str().unwrap());
    let git = world.home().join("vibe/git");
    assert_eq!(both["result"]["git"], git.to_str().unwrap());
    assert!(!world.home().join("vibe").exists(), "nothing is made");
    let mut homeless = command_in(&world, world.root(), &["cache", "path"]);
    run(homeless.env_remove("VIBE_PKG_HOME").env("HOME", "relative"))
        .expect(1)
        .stderr_has("no folder for the store of packages is known")
        .stderr_has("VIBE_PKG_HOME");
}

#[test]
fn nothing_is_kept_before_the_first_install_and_nothing_is_made_by_looking() {
    let world = World::new();
    for (word, text) in [
        ("list", "nothing is kept\n"),
        (
            "gc",
            "nothing to remove: 0 packages and 0 repositories stay\n",
        ),
        ("clean", "nothing to remove: nothing is kept\n"),
    ] {
        assert_eq!(cache(&world, &[word]).expect(0).stdout, text);
    }
    cache(&world, &["verify"])
        .expect(0)
        .stdout_has("verified 0 packages, 0 files, 0 B");
    assert!(!world.home().join("vibe").exists());
}

#[test]
fn packages_are_listed_by_name_the_largest_first_and_left_alone() {
    let world = installed();
    make_unused(&world, 9);
    let before = TreeSnapshot::of(&store(&world));
    let listed = cache(&world, &["list"]).expect(0).stdout;
    let shown = plain(&world, &listed);
    let large = "org.example/large  2.1.0  [tree]  2 files  4.95 KiB  [date]\n";
    let expected = "org.example/lint   1.0.0  [tree]  2 files  ";
    assert!(shown.starts_with(&format!("{large}{expected}")), "{shown}");
    assert!(shown.contains("\n2 packages, 5."), "{shown}");
    assert!(
        shown.ends_with(" KiB in [world]/home/vibe/store\n"),
        "{shown}"
    );
    let result = cache(&world, &["list", "--json"]).expect(0).json()["result"].clone();
    let bytes = |index: usize| result["trees"][index]["bytes"].as_u64().unwrap();
    assert_eq!(result["bytes"].as_u64().unwrap(), bytes(0) + bytes(1));
    assert_eq!(result["trees"][1]["package"], LINT);
    let lock = world.read("vibe.lock");
    assert!(
        lock.contains(result["trees"][1]["tree"].as_str().unwrap()),
        "{lock}"
    );
    before.assert_unchanged(&TreeSnapshot::of(&store(&world)));
}

#[test]
fn a_tree_whose_manifest_is_damaged_is_listed_without_a_name_and_stays() {
    let world = installed();
    for place in ["lint.md", "large.md"] {
        let manifest = stored(&world, place).with_file_name("vibe.toml");
        overwrite(&manifest, "\u{1b}[2J");
    }
    let listed = cache(&world, &["list"]).expect(0).stdout;
    assert_eq!(listed.matches("(no name)").count(), 2, "{listed}");
    assert!(!listed.contains('\u{1b}'));
    assert_eq!(trees(&world).len(), 2);
}

/// Damages the stored `lint.md` by `damage`, and asserts that it is found, named and moved away,
/// and that the next install fetches it again.
fn check_damage(damage: impl Fn(&Path), what: &str) {
    let world = installed();
    cache(&world, &["verify"])
        .expect(0)
        .stdout_has("verified 2 packages, 4 files, ")
        .stdout_has(": all is as it was stored\n");
    let place = stored(&world, "lint.md");
    damage(&place);
    let found = cache(&world, &["verify"]).expect(3);
    let shown = plain(&world, &found.stdout);
    let expected = format!("! org.example/lint  1.0.0  [tree]  lint.md {what}\n");
    assert!(shown.starts_with(&expected), "{shown}");
    assert!(
        shown.contains("\nfound 1 damaged package in 2 packages"),
        "{shown}"
    );
    found.stderr_has("the next install that needs it fetches it again");
    assert_eq!(trees(&world).len(), 1, "moved out of use");
    cache(&world, &["verify"]).expect(0);
    fs::remove_dir_all(world.project().join("vibedeps")).unwrap();
    vibe(&world, &["install"]).expect(0);
    assert_eq!(read(lint_slot(&world, "1.0.0").join("lint.md")), "lint\n");
    assert_eq!(trees(&world).len(), 2);
    cache(&world, &["gc"])
        .expect(0)
        .stdout_has("removed 1 leftover, ");
    cache(&world, &["verify"]).expect(0);
}

#[test]
fn a_file_that_was_cut_off_is_found() {
    check_damage(|path| overwrite(path, "li"), "has other content");
}

#[test]
fn a_file_of_the_same_size_and_time_is_found() {
    let hidden = |path: &Path| {
        let modified = fs::metadata(path).unwrap().modified().unwrap();
        overwrite(path, "lent\n");
        File::open(path).unwrap().set_modified(modified).unwrap();
    };
    check_damage(hidden, "has other content");
}

#[test]
fn a_file_that_is_gone_or_executable_is_found() {
    check_damage(|path| fs::remove_file(path).unwrap(), "is missing");
    check_damage(|path| set_mode(path, 0o555), "has another exec bit");
}

#[test]
fn every_damaged_file_is_in_the_document() {
    let world = installed();
    overwrite(&stored(&world, "lint.md"), "x");
    overwrite(&stored(&world, "large.md"), "x");
    let manifest = stored(&world, "large.md").with_file_name("vibe.toml");
    overwrite(&manifest, "x");
    let document = cache(&world, &["verify", "--json"]).expect(3).json();
    assert_eq!(
        (&document["ok"], &document["error"]),
        (&false.into(), &().into())
    );
    let result = &document["result"];
    let mut faults: Vec<String> = Vec::new();
    for damaged in result["damaged"].as_array().unwrap() {
        assert_eq!(damaged["quarantined"], true);
        assert!(!Path::new(damaged["place"].as_str().unwrap()).exists());
        for fault in damaged["faults"].as_array().unwrap() {
            let (path, package) = (&fault["path"], &damaged["package"]);
            faults.push(format!("{} of {package}", path.as_str().unwrap()));
        }
    }
    faults.sort();
    let expected = [
        "large.md of null",
        "lint.md of \"org.example/lint\"",
        "vibe.toml of null",
    ];
    assert_eq!(faults, expected);
    assert_eq!(result["trees"], 2);
}

#[test]
fn only_what_was_not_used_for_long_is_collected() {
    let world = installed();
    make_unused(&world, 31);
    fs::remove_dir_all(world.project().join("vibedeps")).unwrap();
    world.require(&[(LINT, "^1")]);
    vibe(&world, &["install"]).expect(0);
    fs::create_dir_all(store(&world).join("v1/staging/dead")).unwrap();
    fs::write(store(&world).join("v1/staging/dead/owner"), "").unwrap();
    fs::write(store(&world).join("v1/staging/dead/half"), "half").unwrap();
    let kept = cache(&world, &["gc", "--unused-for", "32d"])
        .expect(0)
        .stdout;
    let expected = "removed 1 leftover, 4 B; 2 packages and 0 repositories stay\n";
    assert_eq!(kept, expected);
    let removed = cache(&world, &["gc"]).expect(0).stdout;
    assert_eq!(
        plain(&world, &removed),
        "- org.example/large  2.1.0  [tree]  2 files  4.95 KiB  [date]\n\
         removed 1 package, 4.95 KiB; 1 package and 0 repositories stay\n"
    );
    assert_eq!(
        cache(&world, &["gc"]).expect(0).stdout,
        "nothing to remove: 1 package and 0 repositories stay\n"
    );
    let all = cache(&world, &["gc", "--unused-for", "0s", "--json"]).expect(0);
    let result = all.json()["result"].clone();
    assert_eq!(result["trees"][0]["package"], LINT);
    assert_eq!(
        (&result["kept-trees"], &result["in-use"]),
        (&0.into(), &false.into())
    );
    assert!(trees(&world).is_empty());
}

const HOLD: &str = "touch \"$HOME/holding\"\nwhile [ -e \"$HOME/hold\" ]; do sleep 0.02; done\n";

#[test]
fn nothing_is_removed_while_a_run_uses_the_store() {
    let world = with_hook(Phase::PreInstall, HOLD);
    let hold = world.home().join("hold");
    fs::write(&hold, "").unwrap();
    let install = start(&mut command(&world, &["install"]));
    wait_until("the hook that holds", || {
        world.home().join("holding").exists()
    });
    make_unused(&world, 99);
    let before = TreeSnapshot::of(&store(&world));
    cache(&world, &["gc"])
        .expect(1)
        .stdout_has("nothing was removed: 1 package and 0 repositories stay\n")
        .stderr_has("another run uses the cache")
        .stderr_has("vibe cache gc\n");
    cache(&world, &["clean"])
        .expect(1)
        .stderr_has("another run uses the store ")
        .stderr_has("nothing was removed; run the same command again");
    let refused = cache(&world, &["clean", "--json"]).expect(1).json();
    assert_eq!(refused["error"]["kind"], "in-use");
    let after = TreeSnapshot::of(&store(&world));
    before
        .ignoring_times()
        .assert_unchanged(&after.ignoring_times());
    fs::remove_file(hold).unwrap();
    wait(install).expect(0);
    cache(&world, &["clean"])
        .expect(0)
        .stdout_has("removed 1 package, ");
    assert!(!store(&world).exists());
}

#[test]
fn garbage_is_collected_beside_installs() {
    let world = installed();
    let projects = [0, 1].map(|number| {
        let project = world.root().join(format!("p{number}"));
        fs::create_dir(&project).unwrap();
        fs::write(project.join("vibe.toml"), world.read("vibe.toml")).unwrap();
        project
    });
    let (is_done, removed) = (AtomicBool::new(false), AtomicUsize::new(0));
    std::thread::scope(|scope| {
        let collect = || {
            while !is_done.load(Ordering::SeqCst) {
                let ran = cache(&world, &["gc", "--unused-for", "0s", "--json"]);
                assert!(matches!(ran.code, 0 | 1), "{ran:?}");
                let result = ran.json()["result"].clone();
                assert_eq!(result["in-use"], ran.code == 1, "{ran:?}");
                let trees = result["trees"].as_array().unwrap().len();
                removed.fetch_add(trees, Ordering::SeqCst);
            }
        };
        let collector = scope.spawn(collect);
        let installs = projects.each_ref().map(|project| {
            let world = &world;
            scope.spawn(move || {
                for _ in 0..10 {
                    run(&mut command_in(world, project, &["install"])).expect(0);
                    run(&mut command_in(world, project, &["verify"])).expect(0);
                    fs::remove_dir_all(project.join("vibedeps")).unwrap();
                }
            })
        });
        let outcomes = installs.map(|install| install.join());
        is_done.store(true, Ordering::SeqCst);
        collector.join().unwrap();
        outcomes.into_iter().for_each(|outcome| outcome.unwrap());
    });
    assert!(removed.into_inner() > 0, "nothing was ever collected");
    cache(&world, &["verify"]).expect(0);
}

#[test]
fn after_cleaning_a_package_whose_registry_is_gone_is_named_with_the_way_out() {
    let world = installed();
    let cleaned = cache(&world, &["clean"]).expect(0).stdout;
    assert!(cleaned.contains("\nremoved 2 packages, 5."), "{cleaned}");
    assert!(!store(&world).exists());
    vibe(&world, &["verify"]).expect(0);
    fs::remove_dir_all(world.registry()).unwrap();
    fs::remove_dir_all(world.project().join("vibedeps")).unwrap();
    let failed = vibe(&world, &["install", "--offline"]);
    assert_ne!(failed.code, 0);
    let failed = failed.stderr_has("org.example/").stderr_has("hint: ");
    assert!(failed.stderr.contains("registry"), "{}", failed.stderr);
    lint("1.0.0").publish(&world.registry());
    PackageBuilder::new("org.example/large", "2.1.0")
        .file("large.md", "x".repeat(5_000))
        .publish(&world.registry());
    vibe(&world, &["install", "--offline"]).expect(0);
}

#[test]
fn a_place_that_holds_something_else_is_not_cleaned() {
    let world = installed();
    let notes = store(&world).join("notes.txt");
    fs::write(&notes, "mine").unwrap();
    cache(&world, &["clean"])
        .expect(1)
        .stderr_has("notes.txt is not part of a store, so nothing was removed");
    assert_eq!((read(notes).as_str(), trees(&world).len()), ("mine", 2));
}

/// Takes from every directory below `path` the permission to write, or gives it back.
fn set_directories(path: &Path, mode: u32) {
    for entry in fs::read_dir(path).unwrap() {
        let path = entry.unwrap().path();
        if path.symlink_metadata().unwrap().is_dir() {
            set_directories(&path, mode);
        }
    }
    set_mode(path, mode);
}

#[cfg(target_os = "linux")]
#[test]
fn a_store_that_may_not_be_written_is_shown_and_proved_and_not_written() {
    let world = installed();
    let as_user = |words: &[&str]| run(&mut unprivileged(&world, words));
    make_unused(&world, 40);
    set_directories(&store(&world), 0o555);
    as_user(&["cache", "path"]).expect(0);
    let before = TreeSnapshot::of(&store(&world));
    as_user(&["cache", "path"]).expect(0);
    as_user(&["cache", "list"])
        .expect(0)
        .stdout_has("\n2 packages, ");
    as_user(&["cache", "verify"]).expect(0);
    before.assert_unchanged(&TreeSnapshot::of(&store(&world)));
    as_user(&["cache", "gc"])
        .expect(1)
        .stderr_has("a directory that you may write");
    assert_eq!(trees(&world).len(), 2);
    let place = stored(&world, "lint.md");
    overwrite(&place, "x");
    let damaged = as_user(&["cache", "verify"]).expect(3);
    let damaged = damaged.stdout_has("lint.md has other content");
    let tree = place.parent().unwrap().parent().unwrap();
    damaged
        .stderr_has("it could not be moved out of use; remove it")
        .stderr_has(tree.to_str().unwrap());
    assert_eq!(trees(&world).len(), 2);
    set_directories(&store(&world), 0o755);
}

/// Bytes of a damaged file that takes much longer to read than a signal to arrive.
const LONG: u64 = 256 << 20;

#[cfg(target_os = "linux")]
#[test]
fn an_interrupted_look_says_so_and_moves_nothing() {
    let world = installed();
    let place = stored(&world, "large.md");
    set_mode(&place, 0o644);
    let file = File::options().write(true).open(&place).unwrap();
    file.set_len(LONG).unwrap();
    drop(file);
    let child = start(&mut command(&world, &["cache", "verify"]));
    let pid = child.id().to_string();
    let is_read = || {
        let Ok(open) = fs::read_dir(format!("/proc/{pid}/fd")) else {
            return false;
        };
        let mut open = open.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
        open.any(|path| path == place)
    };
    wait_until("the reading of the long file", is_read);
    assert!(crate::support::signal(&pid, "INT"));
    wait(child).expect(130).stdout_has("interrupted after ");
    assert_eq!(trees(&world).len(), 2);
}

/// A project that requires `org.example/lint` from a git server, and is installed.
fn from_git(world: &World) -> (GitDaemon, String) {
    let served = world.root().join("served");
    let repository = GitRepository::new(&served.join("lint"));
    repository.package(&lint("1.0.0"));
    repository.commit("one");
    repository.tag("v1.0.0");
    let daemon = GitDaemon::start(&served);
    let url = daemon.url("lint");
    world.write(
        "vibe.toml",
        &format!(
            "[project]\nname = \"world\"\n[requires.packages]\n\
             \"org.example/lint\" = {{ git = \"{url}\", tag = \"v1.0.0\" }}\n"
        ),
    );
    (daemon, url)
}

fn install_from_git(world: &World) -> Run {
    let mut install = command(world, &["install"]);
    run(install.env("VIBE_INSECURE_HOSTS", "127.0.0.1"))
}

#[test]
fn fetched_repositories_are_listed_collected_and_cleaned() {
    let world = World::new();
    let (_daemon, url) = from_git(&world);
    install_from_git(&world).expect(0);
    let listed = cache(&world, &["list"]).expect(0).stdout;
    let shown = plain(&world, &listed);
    let repository = format!("\n{url}  ");
    assert!(shown.contains(&repository), "{shown}");
    assert!(shown.contains("\n1 repository, "), "{shown}");
    assert!(shown.ends_with(" in [world]/home/vibe/git\n"), "{shown}");
    let kept = cache(&world, &["gc"]).expect(0).stdout;
    assert!(
        kept.ends_with("1 package and 1 repository stay\n"),
        "{kept}"
    );
    let removed = cache(&world, &["gc", "--unused-for", "0s"]).expect(0);
    removed
        .stdout_has(&format!("- {url}  "))
        .stdout_has("removed 1 package, 1 repository, ");
    fs::remove_dir_all(world.project().join("vibedeps")).unwrap();
    install_from_git(&world).expect(0);
    assert_eq!(read(lint_slot(&world, "1.0.0").join("lint.md")), "lint\n");
    let cleaned = cache(&world, &["clean", "--json"]).expect(0).json();
    assert_eq!(cleaned["result"]["repositories"][0]["url"], url.as_str());
    let left = fs::read_dir(world.home().join("vibe")).unwrap().count();
    assert_eq!(left, 0, "nothing of ours is left");
}
