//! Running the binary in a test's world.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use vibe_testkit::World;

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
