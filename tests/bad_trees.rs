//! Packages that hold what no package may hold, and packages that only look odd: judged alike and
//! installed alike from a commit, a directory registry and a directory of this machine.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{
    LOGGED, Run, command, hook_log, lint, lint_slot, outside_state, run, started_by, under_umask,
    unprivileged, vibe,
};
use vibe_core::hook::Phase;
use vibe_testkit::{GitRepository, PackageBuilder, TreeSnapshot, World};

/// An entry of a package beside the ordinary ones, by its path. Only in a commit may a path be
/// anything.
type Entry = (Vec<u8>, Kind);

#[derive(Debug, Clone)]
enum Kind {
    File(Vec<u8>),
    Exec(Vec<u8>),
    Link(String),
}

/// Which sources can hold something, or take it the same way.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum In {
    All,
    /// A path source leaves it out.
    NotPathSource,
    /// No file system has it.
    GitOnly,
    /// No commit has it.
    DirectoryOnly,
}

fn file(path: impl AsRef<[u8]>) -> Entry {
    (path.as_ref().to_vec(), Kind::File(b"x".to_vec()))
}

fn link(path: &str, target: &str) -> Entry {
    (path.into(), Kind::Link(target.to_owned()))
}

/// A world with `org.example/lint` in a repository, in the registry and in a directory. Its install
/// hooks tell that they ran.
struct Place {
    world: World,
    repository: GitRepository,
    package: PackageBuilder,
    /// The blobs that are written, by their content.
    blobs: RefCell<BTreeMap<Vec<u8>, String>>,
}

impl Place {
    fn new() -> Self {
        let hook = |package: PackageBuilder, phase| package.hook(phase, LOGGED);
        Self::with(hook(
            hook(lint("1.0.0"), Phase::PreInstall),
            Phase::PostInstall,
        ))
    }

    fn with(package: PackageBuilder) -> Self {
        let world = World::new();
        let repository = GitRepository::new(&world.root().join("repository"));
        repository.package(&package);
        repository.commit("the ordinary entries");
        fs::create_dir(world.root().join("outside")).unwrap();
        fs::write(world.root().join("outside/secret"), "secret\n").unwrap();
        Self {
            world,
            repository,
            package,
            blobs: RefCell::default(),
        }
    }

    /// Writes the package with `entries` to every source that can hold them. The name of each and
    /// what a manifest requires.
    fn sources(&self, entries: &[Entry], held: In) -> Vec<(&'static str, String)> {
        let mut sources = Vec::new();
        if held != In::DirectoryOnly {
            let tree = self.tree(entries);
            let within = self
                .repository
                .raw_tree(&[("40000", b"package", tree.as_str())]);
            sources.push(("commit", self.of_tree(&tree, "")));
            sources.push(("subdir", self.of_tree(&within, ", subdir = \"package\"")));
        }
        if held != In::GitOnly {
            let [published, directory] = self.directories();
            self.write(&published, entries);
            sources.push(("registry", "version = \"1.0.0\"".to_owned()));
            if held != In::NotPathSource {
                self.write(&directory, entries);
                sources.push(("path", "path = \"../lint\"".to_owned()));
            }
        }
        sources
    }

    fn of_tree(&self, tree: &str, more: &str) -> String {
        let commit = self.repository.commit_tree(tree);
        format!("git = \"../repository\", rev = \"{commit}\"{more}")
    }

    /// Where the published package lies, and the one required by its path.
    fn directories(&self) -> [PathBuf; 2] {
        [
            self.world.registry().join("org.example/lint/v1.0.0"),
            self.world.root().join("lint"),
        ]
    }

    fn write(&self, directory: &Path, entries: &[Entry]) {
        if directory.exists() {
            fs::remove_dir_all(directory).unwrap();
        }
        self.package.write(directory);
        for (path, kind) in entries {
            let path = directory.join(OsStr::from_bytes(path));
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            match kind {
                Kind::File(bytes) => fs::write(&path, bytes).unwrap(),
                Kind::Exec(bytes) => {
                    fs::write(&path, bytes).unwrap();
                    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
                }
                Kind::Link(target) => symlink(target, &path).unwrap(),
            }
        }
    }

    /// The ordinary entries of the package, as rows of a tree.
    fn ordinary(&self) -> Vec<Row> {
        let listed = self.repository.git(&["ls-tree", "HEAD"]);
        let row = |line: &str| {
            let (facts, name) = line.split_once('\t').unwrap();
            let facts: Vec<&str> = facts.split(' ').collect();
            let mode = facts[0].trim_start_matches('0').to_owned();
            (mode, name.as_bytes().to_vec(), facts[2].to_owned())
        };
        listed.lines().map(row).collect()
    }

    fn row(&self, name: &[u8], kind: &Kind) -> Row {
        let (mode, bytes) = match kind {
            Kind::File(bytes) => ("100644", bytes.as_slice()),
            Kind::Exec(bytes) => ("100755", bytes.as_slice()),
            Kind::Link(target) => ("120000", target.as_bytes()),
        };
        let mut blobs = self.blobs.borrow_mut();
        let id = blobs
            .entry(bytes.to_vec())
            .or_insert_with(|| self.repository.blob(bytes));
        (mode.to_owned(), name.to_vec(), id.clone())
    }

    /// The package with a tree for each directory on the way.
    fn tree(&self, entries: &[Entry]) -> String {
        let mut rows = self.rows(entries);
        rows.extend(self.ordinary());
        self.write_rows(rows)
    }

    fn rows(&self, entries: &[Entry]) -> Vec<Row> {
        let mut rows = Vec::new();
        let mut directories: Vec<(&[u8], Vec<Entry>)> = Vec::new();
        for (path, kind) in entries {
            let Some(slash) = path.iter().position(|byte| *byte == b'/') else {
                rows.push(self.row(path, kind));
                continue;
            };
            let below = (path[slash + 1..].to_vec(), kind.clone());
            let name = &path[..slash];
            match directories.iter_mut().find(|(known, _)| *known == name) {
                Some((_, entries)) => entries.push(below),
                None => directories.push((name, vec![below])),
            }
        }
        for (name, entries) in directories {
            let id = self.write_rows(self.rows(&entries));
            rows.push(("40000".to_owned(), name.to_vec(), id));
        }
        rows
    }

    /// The package with each path as one name of the root.
    fn flat_tree(&self, entries: &[Entry]) -> String {
        let rows = entries.iter().map(|(path, kind)| self.row(path, kind));
        self.write_rows(rows.chain(self.ordinary()).collect())
    }

    /// Writes a tree in git's own order.
    fn write_rows(&self, mut rows: Vec<Row>) -> String {
        rows.sort_by_key(|(mode, name, _)| match mode.as_str() {
            "40000" => [name.as_slice(), b"/"].concat(),
            _ => name.clone(),
        });
        let rows: Vec<(&str, &[u8], &str)> = rows
            .iter()
            .map(|(mode, name, id)| (mode.as_str(), name.as_slice(), id.as_str()))
            .collect();
        self.repository.raw_tree(&rows)
    }

    /// Requires the package as `inside` says.
    fn require(&self, inside: &str) {
        self.world.write(
            "vibe.toml",
            &format!(
                "[project]\nname = \"world\"\n[requires.packages]\n\
                 \"org.example/lint\" = {{ {inside} }}\n\
                 [[registry]]\nname = \"local\"\nurl = \"../registry\"\n"
            ),
        );
    }

    /// Asserts that every source is refused in the same words, `words` among them, and that nothing
    /// came of it.
    #[track_caller]
    fn refused(&self, entries: &[Entry], held: In, words: &[&str]) {
        let mut said: Option<String> = None;
        for (source, inside) in self.sources(entries, held) {
            let run = self.refused_source(source, &inside, words);
            let run = run.stderr_has("hint: ");
            let rule = rule(&run.stderr).to_owned();
            assert_eq!(said.get_or_insert_with(|| rule.clone()), &rule, "{source}");
        }
        assert!(said.is_some());
        let is_path = |(path, _): &Entry| path.contains(&b'/');
        if held != In::DirectoryOnly && entries.iter().any(is_path) {
            let flat = self.of_tree(&self.flat_tree(entries), "");
            self.refused_source("paths as names", &flat, &["no name has a `/`"]);
        }
    }

    #[track_caller]
    fn refused_source(&self, source: &str, inside: &str, words: &[&str]) -> Run {
        self.require(inside);
        let before = self.kept();
        let run = vibe(&self.world, &["install"]);
        assert_eq!(run.code, 1, "{source} {words:?}: {}", run.stderr);
        let first = "error: org.example/lint 1.0.0 cannot be installed\n";
        assert!(run.stderr.starts_with(first), "{source}: {}", run.stderr);
        for word in words {
            let has = run.stderr.contains(word);
            assert!(has, "{source}: no {word:?} in {}", run.stderr);
        }
        assert_eq!(run.stdout, "", "{source}");
        assert_plain(&run);
        self.assert_nothing_came(source, &before);
        run
    }

    /// What a refused run may not touch.
    fn kept(&self) -> [TreeSnapshot; 3] {
        let mut home = TreeSnapshot::of(&self.world.home());
        let store = [
            "vibe",
            "vibe/store",
            "vibe/store/v1",
            "vibe/store/v1/lock",
            "vibe/store/v1/staging",
        ];
        let is_kept = |path: &str| !store.contains(&path);
        home.entries.retain(|path, _| is_kept(path));
        let outside = TreeSnapshot::of(&self.world.root().join("outside"));
        [outside_state(&self.world), home, outside]
    }

    #[track_caller]
    fn assert_nothing_came(&self, source: &str, before: &[TreeSnapshot; 3]) {
        for (before, after) in before.iter().zip(&self.kept()) {
            before.assert_unchanged(after);
        }
        assert_eq!(hook_log(&self.world).len(), 0, "{source}");
        let staging = self.world.project().join("vibedeps/.state/staging");
        let staged = fs::read_dir(staging).map_or(0, Iterator::count);
        assert_eq!(staged, 0, "{source}");
        let mut names: Vec<_> = fs::read_dir(self.world.root())
            .unwrap()
            .map(|entry| entry.unwrap().file_name().into_string().unwrap())
            .filter(|name| name != "lint")
            .collect();
        names.sort();
        let expected = ["home", "outside", "project", "registry", "repository"];
        assert_eq!(names, expected, "{source}");
    }

    /// Installs the package from the source that `inside` names, alone and anew.
    #[track_caller]
    fn install(&self, inside: &str) -> Run {
        self.forget();
        self.require(inside);
        run(&mut under_umask("022", &command(&self.world, &["install"]))).expect(0)
    }

    /// Forgets what is installed, locked and stored.
    fn forget(&self) {
        let project = self.world.project();
        let _ = fs::remove_dir_all(project.join("vibedeps"));
        let _ = fs::remove_file(project.join("vibe.lock"));
        let _ = fs::remove_dir_all(self.world.home().join("vibe"));
    }

    fn slot(&self) -> PathBuf {
        lint_slot(&self.world, "1.0.0")
    }

    /// Sets the limits of the user's configuration.
    fn limit(&self, limits: &str) {
        let config = self.world.home().join("vibe/config.toml");
        fs::create_dir_all(config.parent().unwrap()).unwrap();
        fs::write(config, format!("[limits]\n{limits}\n")).unwrap();
    }
}

/// What `text` says after the first path that it names: where a directory has a name that is
/// refused, its files are not looked at.
fn rule(text: &str) -> &str {
    text.splitn(3, '`').last().unwrap()
}

/// Mode, name and object id.
type Row = (String, Vec<u8>, String);

/// Asserts that nothing in the output can act on a terminal.
#[track_caller]
fn assert_plain(run: &Run) {
    for text in [&run.stdout, &run.stderr] {
        let odd = text.chars().find(|c| {
            (c.is_control() && *c != '\n') || matches!(c, '\u{202a}'..='\u{202e}' | '\u{fffd}')
        });
        assert_eq!(odd, None, "{text:?}");
    }
}

#[track_caller]
fn check(cases: &[(&[u8], In, &[&str])]) {
    let place = Place::new();
    for (path, held, words) in cases {
        place.refused(&[file(path)], *held, words);
    }
}

#[test]
fn paths_that_leave_the_package_are_refused() {
    let dots = "it has a `.` or `..` component";
    check(&[
        (b"../evil", In::GitOnly, &["`../evil`", dots]),
        (b"..", In::GitOnly, &["`..`", dots]),
        (b"../../../../outside/secret", In::GitOnly, &[dots]),
        (b"a/../../evil", In::GitOnly, &["`a/../../evil`", dots]),
        (b"./a", In::GitOnly, &["`./a`", dots]),
        (b".", In::GitOnly, &["`.`", dots]),
        (
            b"/abs/evil",
            In::GitOnly,
            &["`/abs/evil`", "it is absolute"],
        ),
        (
            b"a//b",
            In::GitOnly,
            &["`a//b`", "it has an empty component"],
        ),
        (b"a/", In::GitOnly, &["`a/`", "it has an empty component"]),
        (b"..\\evil", In::All, &["`..\\evil`", "the character `\\`"]),
        (b"a\\b", In::All, &["`a\\b`", "the character `\\`"]),
        (b"C:evil", In::All, &["`C:evil`", "the character `:`"]),
        (b"C:\\evil", In::All, &["`C:\\evil`", "the character `:`"]),
        (b"\\\\srv\\share\\x", In::All, &["the character `\\`"]),
        (b"\\\\?\\C:\\x", In::All, &["the character `\\`"]),
    ]);
}

#[test]
fn a_published_list_with_a_path_that_leaves_the_package_is_refused() {
    let place = Place::new();
    let (_, inside) = place.sources(&[], In::DirectoryOnly).swap_remove(0);
    let list = place.directories()[0].with_file_name("v1.0.0.tree");
    let digest = "0".repeat(64);
    let no_row = "line 1 is not a row of a tree";
    for (path, said) in [
        ("/abs/evil", no_row),
        ("../evil", no_row),
        ("a//b", no_row),
        ("C:evil", no_row),
        ("evil", "`evil` is in the package's `.tree` file but absent"),
    ] {
        fs::write(&list, format!("file {} {path} {digest}\n", path.len())).unwrap();
        place.require(&inside);
        let before = place.kept();
        let run = vibe(&place.world, &["install"]).expect(3);
        let run = run
            .stderr_has("org.example/lint 1.0.0")
            .stderr_has("hint: ");
        assert!(run.stderr.contains(said), "{}", run.stderr);
        assert_eq!(
            run.stderr.contains("v1.0.0.tree is not a list"),
            said == no_row
        );
        place.assert_nothing_came(path, &before);
    }
}

#[test]
fn every_spelling_of_git_is_refused() {
    let git = "is a spelling of `.git`";
    check(&[
        (b".git/config", In::NotPathSource, &["`.git", git]),
        (
            b"docs/.git/hooks/x",
            In::NotPathSource,
            &["`docs/.git", git],
        ),
        (b".GIT/x", In::All, &["`.GIT", git]),
        (b".giT/x", In::All, &["`.giT", git]),
        (b"a/b/.GIT", In::All, &["`a/b/.GIT`", git]),
        (b"git~1/x", In::All, &["`git~1", git]),
        (b"GIT~2", In::All, &["`GIT~2`", git]),
        (b".git.", In::All, &["`.git.`", git]),
        (b".git ", In::All, &["`.git `", git]),
        (b".git...  ", In::All, &["`.git...  `", git]),
        (
            b".git::$INDEX_ALLOCATION/x",
            In::All,
            &["`.git::$INDEX_ALLOCATION", git],
        ),
        (".g\u{200c}it/x".as_bytes(), In::All, &["U+200C", git]),
    ]);
}

#[test]
fn the_repository_that_a_path_source_lies_in_is_left_out_and_nothing_else() {
    let place = Place::new();
    let sources = place.sources(
        &[file(".git/config"), file("sub/.git"), file("sub/a")],
        In::All,
    );
    let (_, inside) = sources
        .iter()
        .find(|(source, _)| *source == "path")
        .unwrap();
    place.install(inside);
    assert!(place.slot().join("sub/a").exists());
    assert!(!place.slot().join(".git").exists() && !place.slot().join("sub/.git").exists());
}

#[test]
fn names_that_some_system_cannot_have_are_refused_on_every_system() {
    let device = "is a device name on Windows";
    let end = "a component ends in a dot or a space";
    check(&[
        (b"CON", In::All, &["`CON`", device]),
        (b"aux.md", In::All, &["`aux.md`", device]),
        (b"NUL.tar.gz", In::All, &["`NUL.tar.gz`", device]),
        (b"d/COM1.txt", In::All, &["`d/COM1.txt`", device]),
        ("COM\u{b9}".as_bytes(), In::All, &["`COM\u{b9}`", device]),
        (b"CONIN$", In::All, &["`CONIN$`", device]),
        (b"name.", In::All, &["`name.`", end]),
        (b"name ", In::All, &["`name `", end]),
        (b"dir./x", In::All, &["`dir.", end]),
        (
            b"notes.md:stream",
            In::All,
            &["`notes.md:stream`", "the character `:`"],
        ),
    ]);
}

#[test]
fn names_that_could_act_on_a_terminal_are_refused_and_shown_escaped() {
    check(&[
        (b"a\nb", In::All, &["`a\\nb`", "U+000A"]),
        (b"a\rb", In::All, &["`a\\rb`", "U+000D"]),
        (b"a\tb", In::All, &["`a\\tb`", "U+0009"]),
        (b"a\x7fb", In::All, &["U+007F"]),
        (b"a\x1b[2Jb", In::All, &["`a\\x1B[2Jb`", "U+001B"]),
        (b"d\x1b]0;x\x07/y", In::All, &["\\x1B]0;x", "U+001B"]),
        (
            "a\u{202e}gnp.exe".as_bytes(),
            In::All,
            &["`aU+202Egnp.exe`"],
        ),
        (b"caf\xe9", In::All, &["`caf\\xE9`", "not UTF-8"]),
        (b"d/caf\xe9/x", In::All, &["caf\\xE9", "not UTF-8"]),
    ]);
}

#[test]
fn a_refused_name_is_escaped_in_json_and_in_the_evidence_too() {
    let place = Place::new();
    for (_, inside) in place.sources(&[file(b"a\x1b[2Jb")], In::All) {
        place.require(&inside);
        for arguments in [
            &["--json", "install"][..],
            &["--json", "install", "--dry-run"],
        ] {
            let run = vibe(&place.world, arguments).expect(1);
            assert_plain(&run);
            let document = run.json().to_string();
            assert!(document.contains("a\\\\x1B[2Jb"), "{document}");
        }
        let state = place.world.project().join("vibedeps/.state");
        for entry in fs::read_dir(state).unwrap() {
            let path = entry.unwrap().path();
            let bytes = fs::read(path).unwrap_or_default();
            assert!(!bytes.contains(&0x1b));
        }
    }
}

#[test]
fn names_beyond_the_limits_are_refused_with_their_length_and_the_limit() {
    let deep = ["d"; 65].join("/");
    let long = ["d".repeat(109).as_str(); 10].join("/");
    let component = "n".repeat(256);
    assert_eq!(long.len(), 1_099);
    check(&[
        (
            component.as_bytes(),
            In::GitOnly,
            &["256 bytes, more than 255"],
        ),
        (long.as_bytes(), In::All, &["1099 bytes, more than 1024"]),
        (
            deep.as_bytes(),
            In::All,
            &["65 components deep, more than 64"],
        ),
    ]);
}

#[test]
fn names_that_are_one_file_elsewhere_are_refused_naming_both() {
    let place = Place::new();
    for (one, other) in [
        ("README.md", "readme.md"),
        ("Docs/a.md", "docs"),
        ("Docs/a.md", "docs/b.md"),
        ("e\u{301}", "\u{e9}"),
        ("stra\u{df}e", "STRASSE"),
    ] {
        let words = [&*format!("`{one}`"), &format!("`{other}`")];
        place.refused(&[file(one), file(other)], In::All, &words);
    }
}

#[test]
fn links_that_cannot_become_copies_are_refused_naming_link_and_target() {
    let place = Place::new();
    let outside = place.world.root().join("outside/secret");
    let outside = outside.to_str().unwrap();
    for (entry, words) in [
        (
            link("l", outside),
            [&*format!("`{outside}`"), "is absolute"],
        ),
        (link("l", "/dev/null"), ["`/dev/null`", "is absolute"]),
        (link("l", "../../.."), ["`../../..`", "leaves the package"]),
        (
            link("d/l", "../../outside/secret"),
            ["`../../outside/secret`", "leaves the package"],
        ),
        (link("l", "absent"), ["`absent`", "does not exist"]),
        (link("l", "l"), ["`l`", "leads back"]),
        (link("l", "a\x1b[2J"), ["`a\\x1B[2J`", "does not exist"]),
    ] {
        let name = format!("`{}` is a link to", String::from_utf8_lossy(&entry.0));
        place.refused(&[entry], In::All, &[&name, words[0], words[1]]);
    }
    place.refused(
        &[link("a", "b"), link("b", "a")],
        In::All,
        &["`a` is a link to `b`", "leads back"],
    );
    place.refused(
        &[link("a", "b"), link("b", "c"), link("c", "b/x")],
        In::All,
        &["is a link to"],
    );
}

#[test]
fn names_of_vibe_itself_are_refused_as_reserved() {
    let place = Place::new();
    for name in [
        ".vibe-slot.toml",
        ".VIBE-Slot.TOML",
        ".vibe-staging-1",
        ".vibe-tmp/x",
        ".Vibe-Journal",
    ] {
        let root = name.split('/').next().unwrap();
        let words = [&*format!("`{root}"), "reserved"];
        place.refused(&[file(name)], In::All, &words);
    }
    let entry = link(".vibe-slot.toml", "lint.md");
    place.refused(&[entry], In::All, &["`.vibe-slot.toml`", "reserved"]);
}

/// Runs a command that has to end soon whatever it meets.
fn run_bounded(command: &Command) -> Run {
    let mut bounded = Command::new("timeout");
    bounded.args(["--kill-after=1", "20"]);
    run(&mut started_by(bounded, command))
}

#[test]
fn pipes_sockets_and_devices_are_refused_and_not_opened() {
    let place = Place::new();
    for (what, make) in [
        ("a named pipe", "mkfifo odd"),
        ("a socket", ""),
        ("a device", "mknod odd c 1 3"),
    ] {
        for (source, inside) in place.sources(&[file("sub/a")], In::DirectoryOnly) {
            let of_source = usize::from(source == "path");
            let sub = place.directories()[of_source].join("sub");
            let socket = make
                .is_empty()
                .then(|| std::os::unix::net::UnixListener::bind(sub.join("odd")).unwrap());
            if socket.is_none() {
                let script = format!("cd \"$0\" && {make}");
                let made = Command::new("sh").args(["-c", &script]).arg(&sub).output();
                if !made.unwrap().status.success() {
                    eprintln!("skipped: this user may not make {what}");
                    continue;
                }
            }
            place.require(&inside);
            let before = place.kept();
            run_bounded(&command(&place.world, &["install"]))
                .expect(1)
                .stderr_has("org.example/lint 1.0.0 cannot be installed")
                .stderr_has("`sub/odd` is a")
                .stderr_has("a package holds only files, directories and links within it")
                .stderr_has("hint: ");
            place.assert_nothing_came(source, &before);
        }
    }
}

/// The end of the path at which a source keeps the package.
fn of_root(source: &str) -> &'static str {
    match source {
        "path" => "/lint",
        _ => "/registry/org.example/lint/v1.0.0",
    }
}

#[test]
fn a_file_that_may_not_be_read_is_named_and_nothing_partial_is_left() {
    let place = Place::new();
    for (source, inside) in place.sources(&[file("a"), file("d/closed")], In::DirectoryOnly) {
        let root = &place.directories()[usize::from(source == "path")];
        place.require(&inside);
        for closed in ["d/closed", "d"] {
            let path = root.join(closed);
            let mode = fs::metadata(&path).unwrap().permissions();
            fs::set_permissions(&path, fs::Permissions::from_mode(0o000)).unwrap();
            let before = place.kept();
            let run = run(&mut unprivileged(&place.world, &["install"])).expect(1);
            fs::set_permissions(&path, mode).unwrap();
            let run = run
                .stderr_has("org.example/lint 1.0.0")
                .stderr_has(&format!("{}/{closed}", of_root(source)))
                .stderr_has("ermission denied");
            assert_plain(&run);
            place.assert_nothing_came(source, &before);
        }
        run(&mut unprivileged(&place.world, &["install"])).expect(0);
        assert_eq!(fs::read(place.slot().join("d/closed")).unwrap(), b"x");
        place.forget();
        fs::remove_file(place.world.home().join("hook.log")).unwrap();
    }
}

#[test]
fn a_file_over_the_limit_is_refused_by_its_size_before_it_is_read() {
    let place = Place::new();
    for (source, inside) in place.sources(&[], In::DirectoryOnly) {
        let root = &place.directories()[usize::from(source == "path")];
        let huge = fs::File::create(root.join("huge")).unwrap();
        huge.set_len((1 << 30) + 1).unwrap();
        let words = ["`huge` has 1073741825 bytes; the limit of one file is 1073741824"];
        place.refused_source(source, &inside, &words);
    }
    place.limit("file-bytes = 1000");
    let large = |bytes: usize| [("large".into(), Kind::File(vec![b'x'; bytes]))];
    let words = [
        "`large` has 1001 bytes; the limit of one file is 1000",
        "`file-bytes`",
    ];
    place.refused(&large(1_001), In::All, &words);
    place.limit("package-bytes = 5000");
    let words = ["bytes together; the limit is 5000", "`package-bytes`"];
    place.refused(&large(5_000), In::All, &words);
}

#[test]
fn entries_over_the_limit_are_refused_by_their_number() {
    let place = Place::new();
    place.limit("package-entries = 20");
    let entries: Vec<Entry> = (0..20)
        .map(|number| file(format!("many/{number}")))
        .collect();
    let words = ["21 entries or more; the limit is 20", "`package-entries`"];
    place.refused(&entries, In::All, &words);
}

#[test]
fn links_that_multiply_a_few_files_are_refused_by_what_they_come_to() {
    let place = Place::new();
    let mut entries: Vec<Entry> = (0..10).map(|number| file(format!("d0/{number}"))).collect();
    for level in 1..6 {
        let link =
            |number: usize| link(&format!("d{level}/{number}"), &format!("../d{}", level - 1));
        entries.extend((0..10).map(link));
    }
    let (_, inside) = place.sources(&entries, In::All).pop().unwrap();
    let words = ["200001 entries or more; the limit is 200000"];
    place.refused_source("path", &inside, &words);
    place.limit("package-entries = 2000");
    let words = ["2001 entries or more; the limit is 2000"];
    place.refused(&entries, In::All, &words);
}

#[test]
fn modes_beyond_the_exec_bit_are_not_installed_and_noted() {
    let place = Place::new();
    let modes = [
        ("a", 0o6755),
        ("b", 0o777),
        ("c", 0o666),
        ("d", 0o644),
        ("e", 0o700),
    ];
    for (source, inside) in place.sources(&modes.map(|(name, _)| file(name)), In::DirectoryOnly) {
        let root = &place.directories()[usize::from(source == "path")];
        for (name, mode) in modes {
            fs::set_permissions(root.join(name), fs::Permissions::from_mode(mode)).unwrap();
        }
        place
            .install(&inside)
            .stderr_has("`a` has mode 6755; it is installed with 0755")
            .stderr_has("`b` has mode 0777; it is installed with 0755")
            .stderr_has("`c` has mode 0666; it is installed with 0644");
        let installed = modes.map(|(name, _)| {
            let metadata = fs::metadata(place.slot().join(name)).unwrap();
            metadata.permissions().mode() & 0o7777
        });
        assert_eq!(installed, [0o755, 0o755, 0o644, 0o644, 0o755], "{source}");
        vibe(&place.world, &["verify"]).expect(0);
    }
}

fn inode(path: &Path) -> u64 {
    fs::symlink_metadata(path).unwrap().ino()
}

#[test]
fn two_names_of_one_file_are_installed_as_two_files() {
    for materialization in ["copy", "hardlink"] {
        let manifest = format!("[package]\nmaterialization = \"{materialization}\"\n");
        let place = Place::with(lint("1.0.0").manifest_extra(&manifest));
        for (source, inside) in place.sources(&[file("one")], In::DirectoryOnly) {
            let root = &place.directories()[usize::from(source == "path")];
            fs::hard_link(root.join("one"), root.join("two")).unwrap();
            place.install(&inside);
            let [one, two] = ["one", "two"].map(|name| place.slot().join(name));
            let inodes = [inode(&one), inode(&two), inode(&root.join("one"))];
            assert!(
                inodes[0] != inodes[1] && !inodes[..2].contains(&inodes[2]),
                "{source}"
            );
            fs::remove_file(&one).unwrap();
            assert_eq!(fs::read(&two).unwrap(), b"x", "{source}");
        }
    }
}

#[test]
fn a_thousand_empty_files_are_a_thousand_files() {
    let place = Place::new();
    let entries: Vec<Entry> = (0..1_000)
        .map(|number| (format!("empty/{number}").into(), Kind::File(Vec::new())))
        .collect();
    for (source, inside) in place.sources(&entries, In::All) {
        if !["commit", "registry", "path"].contains(&source) {
            continue;
        }
        place.install(&inside);
        let files = fs::read_dir(place.slot().join("empty")).unwrap();
        let metadata = files.map(|file| file.unwrap().metadata().unwrap());
        let mut inodes: Vec<u64> = metadata
            .inspect(|file| assert_eq!((file.len(), file.nlink()), (0, 1), "{source}"))
            .map(|file| file.ino())
            .collect();
        inodes.sort_unstable();
        inodes.dedup();
        assert_eq!(inodes.len(), 1_000, "{source}");
        vibe(&place.world, &["verify"]).expect(0);
    }
}

#[test]
fn a_manifest_alone_is_a_package() {
    let place = Place::with(PackageBuilder::new("org.example/lint", "1.0.0"));
    for (source, inside) in place.sources(&[], In::All) {
        place.install(&inside);
        let slot = TreeSnapshot::of(&place.slot());
        let paths: Vec<&String> = slot.entries.keys().collect();
        assert_eq!(paths, [".vibe-slot.toml", "vibe.toml"], "{source}");
        vibe(&place.world, &["verify"]).expect(0);
        vibe(&place.world, &["install"])
            .expect(0)
            .stdout_has("nothing to do");
    }
}

#[test]
fn a_pointer_to_content_that_is_elsewhere_is_named_with_its_size() {
    let place = Place::new();
    let pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 987654321\n";
    let entry = ("models/large.bin".into(), Kind::File(pointer.into()));
    for (source, inside) in place.sources(&[entry], In::All) {
        place
            .install(&inside)
            .stderr_has("org.example/lint: `models/large.bin` is a git LFS pointer")
            .stderr_has("987654321 bytes");
        let installed = fs::read_to_string(place.slot().join("models/large.bin")).unwrap();
        assert_eq!(installed, pointer, "{source}");
    }
}

/// A line of a lock, without the key.
fn locked<'a>(lock: &'a str, key: &str) -> Option<&'a str> {
    lock.lines().find_map(|line| line.strip_prefix(key))
}

#[test]
fn a_link_within_a_package_is_installed_as_a_copy_from_every_source() {
    let place = Place::new();
    let entries = [
        ("d/run".into(), Kind::Exec(b"#!/bin/sh\n".to_vec())),
        file("d/a"),
        link("file", "d/run"),
        link("directory", "d"),
        link("far/up", "../d/a"),
        link("twice", "file"),
    ];
    let mut first = None;
    for (source, inside) in place.sources(&entries, In::All) {
        place.install(&inside);
        let mut slot = TreeSnapshot::of(&place.slot()).ignoring_times();
        slot.entries.retain(|path, _| path != ".vibe-slot.toml");
        let same = |one: &str, other: &str| {
            let [one, other] = [one, other].map(|path| &slot.entries[path]);
            assert_eq!(
                (one, one.kind.clone()),
                (other, vibe_testkit::EntryKind::File),
                "{source}"
            );
        };
        same("file", "d/run");
        same("twice", "d/run");
        same("directory/run", "d/run");
        same("directory/a", "d/a");
        same("far/up", "d/a");
        assert_eq!(slot.entries["file"].mode, 0o755, "{source}");
        let record = fs::read_to_string(place.slot().join(".vibe-slot.toml")).unwrap();
        let tree = locked(&record, "tree = ").unwrap().to_owned();
        let (slot_of_first, tree_of_first) = first.get_or_insert((slot.clone(), tree.clone()));
        slot_of_first.assert_unchanged(&slot);
        assert_eq!(tree, *tree_of_first, "{source}");
    }
}

/// What a repository asks git to do with its files, but for [`CHANGING`].
const ATTRIBUTES: &str = "*.f filter=x\nsecret export-ignore\n*.s export-subst\n";
/// What a clone does with its files, and nobody who only takes them from it.
const CHANGING: &str = "* text eol=crlf\n*.id ident\n*.u16 working-tree-encoding=UTF-16\n";

/// Bytes that something on the way could be tempted to change.
fn odd_contents(attributes: &str) -> Vec<(&'static str, Vec<u8>, bool)> {
    let all: Vec<u8> = (0..=255).collect();
    vec![
        (".gitattributes", attributes.into(), false),
        (".gitignore", b"ignored-by-nobody\n".to_vec(), false),
        ("unix.md", b"a\nb\n".to_vec(), false),
        ("dos.md", b"a\r\nb\r\n".to_vec(), false),
        ("mixed.md", b"a\r\nb\nc\r".to_vec(), true),
        ("mark.md", b"\xef\xbb\xbfmarked".to_vec(), false),
        ("x.id", b"$Id$ $Id: 1234 $\n".to_vec(), false),
        ("x.u16", b"text\n".to_vec(), false),
        ("x.f", b"unfiltered\n".to_vec(), true),
        ("x.s", b"$Format:%H$\n".to_vec(), false),
        ("secret", b"kept\n".to_vec(), false),
        ("empty", Vec::new(), true),
        ("zero", vec![0], false),
        ("all-bytes", all.clone(), false),
        ("large/sparse", vec![0; 300_000], false),
        ("large/dense", all.repeat(1_001), true),
        ("a b/\u{e9}\u{6f22} (1).md", b"name\n".to_vec(), false),
        ("twin", b"kept\n".to_vec(), true),
    ]
}

/// Settings of the user by which git changes content, or runs a program that leaves `marker`.
fn settings(marker: &Path) -> String {
    let touch = format!("touch {}; cat", marker.display());
    format!(
        "[core]\n\tautocrlf = true\n\teol = crlf\n\tfsmonitor = \"{touch}\"\n\tfileMode = false\n\
         [filter \"x\"]\n\tsmudge = \"{touch}; echo changed\"\n\tclean = \"{touch}\"\n\
         \tprocess = \"{touch}\"\n\trequired = true\n"
    )
}

#[test]
fn published_bytes_and_exec_bits_are_installed_exactly_from_every_source_in_every_way() {
    for materialization in ["copy", "hardlink", "in-place"] {
        let manifest = format!("[package]\nmaterialization = \"{materialization}\"\n");
        let place = Place::with(lint("1.0.0").manifest_extra(&manifest));
        let contents = match materialization {
            "in-place" => odd_contents(ATTRIBUTES),
            _ => odd_contents(&format!("{CHANGING}{ATTRIBUTES}")),
        };
        let entries = contents.iter().map(|(path, bytes, exec)| {
            let kind = if *exec { Kind::Exec } else { Kind::File };
            (path.as_bytes().to_vec(), kind(bytes.clone()))
        });
        let marker = place.world.root().join("outside/marker");
        fs::write(place.world.home().join(".gitconfig"), settings(&marker)).unwrap();
        let mut trees = Vec::new();
        for (source, inside) in place.sources(&entries.collect::<Vec<_>>(), In::All) {
            let is_whole_commit = source == "commit";
            if materialization == "in-place" && !is_whole_commit {
                continue;
            }
            place.install(&inside);
            let slot = match materialization {
                "in-place" => place.world.project().join("vibedeps/org.example.lint"),
                _ => place.slot(),
            };
            let what = format!("{source}, {materialization}");
            for (path, bytes, exec) in &contents {
                let path = slot.join(path);
                assert!(fs::read(&path).unwrap() == *bytes, "{what}: {path:?}");
                let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o111;
                assert_eq!(mode != 0, *exec, "{what}: {path:?}");
            }
            let ours = ["vibe.toml", "lint.md", ".vibe-slot.toml"];
            let mut more: Vec<String> = files_below(&slot);
            more.retain(|path| {
                !ours.contains(&path.as_str())
                    && !path.starts_with(".git/")
                    && contents.iter().all(|(name, ..)| name != path)
            });
            assert_eq!(more, Vec::<String>::new(), "{what}");
            vibe(&place.world, &["verify"]).expect(0);
            let record = fs::read_to_string(slot.join(".vibe-slot.toml")).unwrap_or_default();
            trees.push(locked(&record, "tree = ").map(str::to_owned));
        }
        assert!(!marker.exists(), "{materialization}");
        assert!(trees.iter().all(|tree| *tree == trees[0]), "{trees:?}");
    }
}

/// The paths of the files below a directory.
fn files_below(directory: &Path) -> Vec<String> {
    let is_file = |path: &String| directory.join(path).is_file();
    let listed = Command::new("find")
        .arg(directory)
        .args(["-printf", "%P\n"])
        .output();
    let listed = String::from_utf8(listed.unwrap().stdout).unwrap();
    listed.lines().map(str::to_owned).filter(is_file).collect()
}

#[test]
fn entries_that_only_a_commit_can_hold_are_refused_by_name() {
    let place = Place::new();
    let blob = place.repository.blob(b"x");
    let (twice, mode) = ("is there more than once", "means nothing");
    for (rows, said) in [
        (vec![("100644", "a"), ("100644", "a")], ["`a`", twice]),
        (vec![("100644", "a"), ("100755", "a")], ["`a`", twice]),
        (
            vec![("10644", "odd\x1b")],
            ["`odd\\x1B` of ../repository has the mode 10644", mode],
        ),
        (
            vec![("60644", "odd")],
            ["`odd` of ../repository has the mode 60644", mode],
        ),
        (
            vec![("0", "odd")],
            ["`odd` of ../repository has the mode 0", mode],
        ),
        (
            vec![("160000", "odd")],
            ["`odd` is a submodule", "no row of `.gitmodules`"],
        ),
    ] {
        let row = |(mode, name): (&str, &str)| (mode.to_owned(), name.into(), blob.clone());
        let rows = rows.into_iter().map(row).chain(place.ordinary());
        let tree = place.write_rows(rows.collect());
        place.require(&place.of_tree(&tree, ""));
        let before = place.kept();
        let run = vibe(&place.world, &["install"])
            .expect(1)
            .stderr_has("org.example/lint 1.0.0")
            .stderr_has(said[0])
            .stderr_has(said[1]);
        assert_plain(&run);
        place.assert_nothing_came(said[0], &before);
    }
}
