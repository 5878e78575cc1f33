//! Counts what a program asks the system for, which no noise of the machine changes.

use std::path::Path;
use std::process::Command;

use super::error::Error;
use super::measure::{command as command_in, run_quietly};

/// What a program asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SystemCalls {
    /// All calls, those of its threads and children too.
    pub(crate) calls: usize,
    /// The processes it started.
    pub(crate) processes: usize,
}

/// Runs `command` under `strace`, with a file for what that says at `log`.
pub(crate) fn count(strace: &Path, command: &Command, log: &Path) -> Result<SystemCalls, Error> {
    let directory = command.get_current_dir().unwrap_or(Path::new("/"));
    let mut traced = command_in(strace, directory, "".as_ref());
    traced.args(["-f", "-qq", "-o"]).arg(log);
    traced.arg(command.get_program()).args(command.get_args());
    for (name, value) in command.get_envs() {
        if let Some(value) = value {
            traced.env(name, value);
        }
    }
    run_quietly(&mut traced)?;
    let text = std::fs::read(log).map_err(|source| Error::files("reading", log, source))?;
    Ok(counted(&String::from_utf8_lossy(&text)))
}

/// Whether this machine lets `strace` trace `nothing`.
pub(crate) fn works(strace: &Path, nothing: &Path) -> bool {
    let mut traced = command_in(strace, Path::new("/"), "".as_ref());
    run_quietly(traced.args(["-qq", "-o", "/dev/null"]).arg(nothing)).is_ok()
}

/// What the lines of strace say. A call that another thread interrupts has two lines.
fn counted(log: &str) -> SystemCalls {
    let is_call = |line: &&str| {
        !["+++", "---", " resumed>"]
            .iter()
            .any(|other| line.contains(other))
    };
    let starts_process = |line: &&str| {
        let is_called = |name: &str| line.contains(&format!(" {name}("));
        let clones = is_called("clone") || is_called("clone3");
        is_called("fork") || is_called("vfork") || (clones && !line.contains("CLONE_THREAD"))
    };
    let calls = log.lines().filter(is_call);
    SystemCalls {
        calls: calls.clone().count(),
        processes: calls.filter(starts_process).count(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_are_no_processes_and_an_interrupted_call_is_one() {
        let log = "\
10 execve(\"/bin/vibe\", [\"vibe\"], 0x7f /* 2 vars */) = 0
10 clone3({flags=CLONE_VM|CLONE_THREAD, stack=0x1}, 88) = 11
10 clone3({flags=CLONE_VM|CLONE_VFORK, stack=0x1}, 88 <unfinished ...>
11 openat(AT_FDCWD, \"vibe.lock\", O_RDONLY) = 3
10 <... clone3 resumed>)                   = 12
12 vfork() = 13
12 --- SIGCHLD {si_signo=SIGCHLD} ---
12 +++ exited with 0 +++
10 exit_group(0) = ?
";
        let expected = SystemCalls {
            calls: 6,
            processes: 2,
        };
        assert_eq!(counted(log), expected);
    }
}
