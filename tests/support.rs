//! Running the binary in a test's world.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use vibe_testkit::{TreeSnapshot, World};

/// The binary under test.
pub const VIBE: &str = env!("CARGO_BIN_EXE_vibe");

/// A finished run.
#[derive(Debug)]
pub struct Run {
    /// The exit code; -1 where a signal ended it.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

/// A command line of the binary, in the world's project, with nothing of the caller's environment
/// but `PATH`.
pub fn command(world: &World, arguments: &[&str]) -> Command {
    command_in(world, &world.project(), arguments)
}

/// Like [`command`], in another directory.
pub fn command_in(world: &World, directory: &Path, arguments: &[&str]) -> Command {
    let mut command = Command::new(VIBE);
    command
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", world.home())
        .env("VIBE_PKG_HOME", world.home().join("vibe"))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// Runs the binary in the world's project.
pub fn vibe(world: &World, arguments: &[&str]) -> Run {
    run(&mut command(world, arguments))
}

/// Runs a prepared command to its end.
pub fn run(command: &mut Command) -> Run {
    finished(command.output().unwrap())
}

/// Starts a prepared command.
pub fn start(command: &mut Command) -> Child {
    command.spawn().unwrap()
}

/// What a child left, once it has ended.
pub fn wait(child: Child) -> Run {
    finished(child.wait_with_output().unwrap())
}

fn finished(output: Output) -> Run {
    Run {
        code: output.status.code().unwrap_or(-1),
        stdout: String::from_utf8(output.stdout).unwrap(),
        stderr: String::from_utf8(output.stderr).unwrap(),
    }
}

impl Run {
    /// Asserts the exit code, showing everything else where it is another.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(
            self.code, code,
            "\n--- stdout\n{}\n--- stderr\n{}",
            self.stdout, self.stderr
        );
        self
    }

    /// Asserts that standard error holds `part`.
    #[track_caller]
    pub fn stderr_has(self, part: &str) -> Self {
        assert!(
            self.stderr.contains(part),
            "no {part:?} in\n{}",
            self.stderr
        );
        self
    }

    /// Asserts that standard output holds `part`.
    #[track_caller]
    pub fn stdout_has(self, part: &str) -> Self {
        assert!(
            self.stdout.contains(part),
            "no {part:?} in\n{}",
            self.stdout
        );
        self
    }

    /// The one JSON document on standard output.
    #[track_caller]
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| {
            panic!("{error} in\n{}\n--- stderr\n{}", self.stdout, self.stderr)
        })
    }
}

/// Waits until `done` says yes, for 20 s at most: for something that another process does.
#[track_caller]
pub fn wait_until(what: &str, mut done: impl FnMut() -> bool) {
    let since = std::time::Instant::now();
    while !done() {
        assert!(
            since.elapsed().as_secs() < 20,
            "{what} did not happen within 20 s"
        );
        std::thread::sleep(std::time::Duration::from_millis(5));
    }
}

/// The slot of a package in the world's project.
pub fn slot(world: &World, package: &str, version: &str) -> PathBuf {
    world
        .project()
        .join("vibedeps")
        .join(package.replace('/', "."))
        .join(version)
}

/// The store of the world's user.
pub fn store(world: &World) -> PathBuf {
    world.home().join("vibe/store")
}

/// Empties the store: packages come from their sources again.
#[track_caller]
pub fn forget_store(world: &World) {
    std::fs::remove_dir_all(store(world)).unwrap();
}

/// The text of a file.
#[track_caller]
pub fn read(path: impl AsRef<Path>) -> String {
    let path = path.as_ref();
    std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The corpus of real packages, where this machine has it: `VIBE_CORPUS`, else `../shared/corpus`
/// beside the checkout. Says that a test is skipped where it is absent, and fails if the variable
/// names nothing.
pub fn corpus() -> Option<PathBuf> {
    if let Some(named) = std::env::var_os("VIBE_CORPUS") {
        let path = PathBuf::from(named);
        assert!(
            path.is_dir(),
            "VIBE_CORPUS names {}, which is not there",
            path.display()
        );
        return Some(path);
    }
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/corpus");
    if beside.is_dir() {
        return Some(beside.canonicalize().unwrap());
    }
    eprintln!("skipped: the corpus of real packages is not on this machine (VIBE_CORPUS)");
    None
}

/// `org.example/lint` in `version`, with one file besides its manifest.
pub fn lint(version: &str) -> vibe_testkit::PackageBuilder {
    vibe_testkit::PackageBuilder::new("org.example/lint", version).file("lint.md", "lint\n")
}

/// The slot of `org.example/lint`.
pub fn lint_slot(world: &World, version: &str) -> PathBuf {
    slot(world, "org.example/lint", version)
}

/// Where the evidence of the newest run lies.
#[track_caller]
pub fn newest_run(world: &World) -> PathBuf {
    let runs = std::fs::read_dir(world.project().join("vibedeps/.state/runs")).unwrap();
    runs.map(|run| run.unwrap().path()).max().unwrap()
}

/// The evidence of the newest run.
#[track_caller]
pub fn evidence(world: &World) -> serde_json::Value {
    serde_json::from_str(&read(newest_run(world).join("run.json"))).unwrap()
}

/// Sends `signal` (0: none) to the process `pid`, with the shell's own `kill`. Whether that worked.
pub fn signal(pid: &str, signal: &str) -> bool {
    let line = format!("kill -{signal} {} 2> /dev/null", pid.trim());
    let status = Command::new("bash").args(["-c", &line]).status();
    status.unwrap().success()
}

/// Waits until the process `pid` has ended. One whose parent has not looked at it yet has.
#[track_caller]
pub fn process_ends(pid: &str) {
    let stat = format!("/proc/{}/stat", pid.trim());
    let is_zombie = || std::fs::read_to_string(&stat).is_ok_and(|stat| stat.contains(") Z "));
    wait_until(&format!("the end of process {pid}"), || {
        !signal(pid, "0") || is_zombie()
    });
}

/// The user without rights.
#[cfg(unix)]
const NOBODY: u32 = 65534;

/// Whether the tests run as the superuser.
#[cfg(unix)]
pub fn is_superuser() -> bool {
    Command::new("id").arg("-u").output().unwrap().stdout == b"0\n"
}

/// Like [`command`], without the rights of root where the tests run as root. The world goes over
/// to the user that it runs as.
#[cfg(unix)]
pub fn unprivileged(world: &World, arguments: &[&str]) -> Command {
    let plain = command(world, arguments);
    if !is_superuser() {
        return plain;
    }
    let owner = format!("{NOBODY}:{NOBODY}");
    let chown = Command::new("chown")
        .args(["-hR", &owner])
        .arg(world.root())
        .status()
        .unwrap();
    assert!(chown.success());
    as_nobody(&plain)
}

/// `command`, which the superuser starts, as a user without rights.
#[cfg(unix)]
pub fn as_nobody(command: &Command) -> Command {
    let mut setpriv = Command::new("setpriv");
    setpriv.args([
        format!("--reuid={NOBODY}"),
        format!("--regid={NOBODY}"),
        "--clear-groups".to_owned(),
    ]);
    started_by(setpriv, command)
}

/// `command` with the file mode creation mask `umask`.
#[cfg(unix)]
pub fn under_umask(umask: &str, command: &Command) -> Command {
    let mut shell = Command::new("sh");
    shell.args(["-c", &format!("umask {umask}; exec \"$0\" \"$@\"")]);
    started_by(shell, command)
}

/// `starter` with what it needs to start `command` just as that would start itself.
#[cfg(unix)]
pub fn started_by(mut starter: Command, command: &Command) -> Command {
    let variables = command.get_envs();
    starter
        .arg(command.get_program())
        .args(command.get_args())
        .current_dir(command.get_current_dir().unwrap())
        .env_clear()
        .envs(variables.filter_map(|(name, value)| Some((name, value?))))
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    starter
}

/// Publishes `org.example/lint` 1.0.0 with one script, and requires it.
pub fn with_hook(phase: vibe_core::hook::Phase, script: &str) -> World {
    let world = World::new();
    lint("1.0.0").hook(phase, script).publish(&world.registry());
    world.require(&[("org.example/lint", "*")]);
    world
}

/// Requires `org.example/lint` by the path `../lint`.
pub fn require_path(world: &World) {
    world.write(
        "vibe.toml",
        "[project]\nname = \"world\"\n[requires.packages]\n\"org.example/lint\" = { path = \"../lint\" }\n",
    );
}

/// Where the package lies that [`require_path`] requires.
pub fn source(world: &World) -> PathBuf {
    world.root().join("lint")
}

/// The project without the machine's own state.
pub fn committed(world: &World) -> vibe_testkit::TreeSnapshot {
    let mut snapshot = world.snapshot().ignoring_times();
    snapshot
        .entries
        .retain(|path, _| !path.starts_with("vibedeps/.state"));
    snapshot
}

/// The lines of a file of the project, 0 where it is absent.
pub fn count(world: &World, file: &str) -> usize {
    std::fs::read_to_string(world.project().join(file))
        .unwrap_or_default()
        .lines()
        .count()
}

/// A hook that adds a line to `runs` in the project each time it runs.
pub const COUNT: &str = "echo run >> ../../../runs\n";

/// `text` with everything replaced that differs from run to run: the world's directory, times,
/// digests and the names of runs.
pub fn redacted(world: &World, text: &str) -> String {
    let root = world.root().to_str().unwrap();
    let text = text.replace(root, "[world]");
    text.split_inclusive([' ', '\n', '/'])
        .map(redacted_word)
        .collect()
}

fn redacted_word(word: &str) -> String {
    let core = word.trim_end_matches([' ', '\n', '/', ',', ':', ')']);
    let (core, rest) = word.split_at(core.len());
    let is_dated = core.starts_with("20") && core.len() > 20;
    let is_time = core.starts_with(|c: char| c.is_ascii_digit()) && core.ends_with('s');
    let shown = match core {
        _ if is_dated && core.contains("Z-") => "[run]",
        _ if is_dated && core.ends_with('Z') => "[instant]",
        _ if is_time => "[time]",
        _ if core.starts_with("sha256:") => "sha256:[digest]",
        _ => core,
    };
    format!("{shown}{rest}")
}

/// The project but for its machine state, which a refused run may touch (the lock between runs), and
/// for what hides that state from version control.
pub fn outside_state(world: &World) -> TreeSnapshot {
    let mut snapshot = world.snapshot();
    let support = ["vibedeps", "vibedeps/.gitattributes", "vibedeps/.gitignore"];
    snapshot.entries.retain(|path, _| {
        !support.contains(&path.as_str()) && !path.starts_with("vibedeps/.state")
    });
    snapshot
}

/// Asserts that `vibe <arguments>` ends with `code`, says each of `parts` and changes nothing in
/// the project but machine state.
#[track_caller]
pub fn refused(world: &World, arguments: &[&str], code: i32, parts: &[&str]) -> Run {
    let before = outside_state(world);
    let mut run = vibe(world, arguments).expect(code);
    for part in parts {
        run = run.stderr_has(part);
    }
    before.assert_unchanged(&outside_state(world));
    run
}

/// The first lines of a hook that tells, outside the project, that it ran: see [`hook_log`].
pub const LOGGED: &str =
    "set -e\necho \"$VIBE_PACKAGE_NAME $VIBE_HOOK_PHASE\" >> \"$HOME/hook.log\"\n";

/// The runs of hooks that begin with [`LOGGED`], in order: `name phase` each.
pub fn hook_log(world: &World) -> Vec<String> {
    lines(world.home().join("hook.log"))
}

/// The lines of a file; none where it is absent.
pub fn lines(path: impl AsRef<Path>) -> Vec<String> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines().map(str::to_owned).collect()
}

/// Whether the machine state names the process of a hook that runs.
pub fn knows_process(world: &World) -> bool {
    let state = world.project().join("vibedeps/.state/slots.toml");
    lines(state).iter().any(|line| line.starts_with("pid = "))
}

/// Whether strace can be used here. Says that a test is skipped where it cannot.
#[cfg(target_os = "linux")]
pub fn strace_works() -> bool {
    let tried = Command::new("strace")
        .args(["-f", "-qq", "-o", "/dev/null", "true"])
        .output();
    let works = tried.is_ok_and(|output| output.status.success());
    if !works {
        eprintln!("skipped: there is no strace on this machine that may trace");
    }
    works
}

/// `command` under strace, threads and children too, with a line for each call in `log`.
#[cfg(target_os = "linux")]
pub fn strace(command: &Command, log: &Path, options: &[&str]) -> Command {
    let mut strace = Command::new("strace");
    strace.args(["-f", "-qq", "-o"]).arg(log).args(options);
    started_by(strace, command)
}

/// Which of the renames in the `log` of [`strace`] brings a path into being that ends in `target`.
#[cfg(target_os = "linux")]
pub fn rename_in(log: &Path, target: &str) -> usize {
    let calls = lines(log);
    let renames = calls.iter().filter(|line| line.contains(" rename"));
    let end = format!("/{target}\"");
    let before = renames.take_while(|line| !line.split(')').next().unwrap().ends_with(&end));
    before.filter(|line| !line.contains("resumed")).count() + 1
}

/// A world whose project has `org.example/kit`, whose slot is a clone of the repository `kit`.
#[cfg(unix)]
pub fn with_clone() -> World {
    let world = World::new();
    let repository = vibe_testkit::GitRepository::new(&world.root().join("kit"));
    repository.package(
        &vibe_testkit::PackageBuilder::new("org.example/kit", "1.0.0")
            .manifest_extra("[package]\nmaterialization = \"in-place\"\n"),
    );
    repository.commit("work");
    vibe(&world, &["init"]).expect(0);
    vibe(&world, &["install", "--git", "../kit"]).expect(0);
    world
}

/// A world as another one is now.
#[cfg(target_os = "linux")]
pub fn copy_of(world: &World) -> World {
    let copy = World::new();
    let everything = world.root().join(".");
    let mut cp = Command::new("cp");
    cp.arg("-a").arg(everything).arg(copy.root());
    assert!(cp.status().unwrap().success());
    copy
}
