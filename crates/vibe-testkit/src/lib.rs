//! What tests build upon: a world of its own for each test (home, project, registry), packages
//! written in one line, git repositories and servers for them on a loopback port, and snapshots of
//! a directory that can be compared.
//!
//! A helper that cannot do its work panics and names the path: the test has failed.
#![expect(
    clippy::panic,
    reason = "dev only: a test that cannot build its world has failed"
)]

mod git;
#[cfg(unix)]
mod git_daemon;
mod http;
mod package;
#[cfg(unix)]
mod permissions;
mod server;
mod snapshot;
#[cfg(unix)]
mod ssh;
mod world;

pub use git::{GitProgram, GitRepository, Wants};
#[cfg(unix)]
pub use git_daemon::GitDaemon;
pub use http::{GitHttpServer, HttpOptions, HttpRequest};
pub use package::PackageBuilder;
#[cfg(target_os = "linux")]
pub use permissions::{as_ordinary_user, give_to_ordinary_user};
#[cfg(unix)]
pub use permissions::{make_pipe, mode_of, set_mode};
pub use snapshot::{EntryKind, SnapshotEntry, TreeSnapshot};
#[cfg(unix)]
pub use ssh::SshServer;
pub use world::World;

use std::path::Path;
use std::process::{Command, Stdio};

/// The value of `result`, or a panic that says what was being done to which path.
fn done<T, E: std::fmt::Display>(doing: &str, path: &Path, result: Result<T, E>) -> T {
    match result {
        Ok(value) => value,
        Err(error) => panic!("{doing} {}: {error}", path.display()),
    }
}

/// Writes `bytes` to `path` and makes the directories above it.
fn write_file(path: &Path, bytes: &[u8]) {
    if let Some(parent) = path.parent() {
        done("creating", parent, std::fs::create_dir_all(parent));
    }
    done("writing", path, std::fs::write(path, bytes));
}

/// A command line in `directory` that has nothing of the caller's environment but `PATH`.
#[expect(
    clippy::disallowed_methods,
    reason = "dev only: the one place where fixtures start programs, which find others by PATH"
)]
fn clean_command(program: &Path, directory: &Path) -> Command {
    let mut command = Command::new(program);
    command.current_dir(directory).env_clear();
    command.envs(std::env::var_os("PATH").map(|path| ("PATH", path)));
    command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

/// What `command` writes to standard output, given `input`, without the line end. Panics, with
/// what it writes to standard error, if it fails.
fn output_of(command: &mut Command, input: &[u8]) -> String {
    let program = std::path::PathBuf::from(command.get_program());
    let mut child = done("starting", &program, command.stdin(Stdio::piped()).spawn());
    let mut stdin = child.stdin.take().expect("standard input is piped");
    // A program that does not read fails by its exit code, not here.
    let _ = std::io::Write::write_all(&mut stdin, input);
    drop(stdin);
    let output = done("waiting for", &program, child.wait_with_output());
    let stderr = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?} failed: {stderr}");
    let text = done("reading from", &program, String::from_utf8(output.stdout));
    text.trim_end_matches('\n').to_owned()
}

/// Makes the file at `path` executable, or not.
#[cfg(unix)]
fn set_exec(path: &Path, exec: bool) {
    use std::os::unix::fs::PermissionsExt;
    let mode = if exec { 0o755 } else { 0o644 };
    let permissions = std::fs::Permissions::from_mode(mode);
    done(
        "setting the mode of",
        path,
        std::fs::set_permissions(path, permissions),
    );
}

#[cfg(not(unix))]
fn set_exec(_path: &Path, _exec: bool) {}
