//! The two programs that reading a remote may need: `ssh`, and git's credential helpers. Each is
//! started in a directory of ours, with an environment of ours, in a group that can be ended whole.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use process_wrap::std::{ChildWrapper, CommandWrap};

use crate::watch::Watch;

/// Bytes of a program's messages that are kept.
const MESSAGE_BYTES: u64 = 16 << 10;
/// How long we wait for the messages of a program that has ended. A program that it left running
/// (a shared ssh connection) may hold them open for hours.
const MESSAGE_WAIT: Duration = Duration::from_millis(500);
/// How often the end of a program is looked for.
const POLL: Duration = Duration::from_millis(10);
/// Variables that name a repository, or that make git or ssh ask somebody or talk about secrets.
const DROPPED: [&str; 20] = [
    "GIT_ALTERNATE_OBJECT_DIRECTORIES",
    "GIT_ASKPASS",
    "GIT_COMMON_DIR",
    "GIT_CURL_VERBOSE",
    "GIT_DIR",
    "GIT_GRAFT_FILE",
    "GIT_INDEX_FILE",
    "GIT_NAMESPACE",
    "GIT_OBJECT_DIRECTORY",
    "GIT_PREFIX",
    "GIT_PROTOCOL",
    "GIT_SHALLOW_FILE",
    "GIT_TRACE",
    "GIT_TRACE2",
    "GIT_TRACE2_EVENT",
    "GIT_TRACE2_PERF",
    "GIT_TRACE_CURL",
    "GIT_WORK_TREE",
    "SSH_ASKPASS",
    "SSH_ASKPASS_REQUIRE",
];

/// The caller's environment with nothing in it that names a repository or asks somebody, and with
/// `ours` on top.
pub(crate) fn quiet_environment(
    environment: &BTreeMap<OsString, OsString>,
    ours: &[(&str, &OsStr)],
) -> BTreeMap<OsString, OsString> {
    let is_kept = |name: &OsStr| !DROPPED.iter().any(|dropped| name == *dropped);
    let kept = environment.iter().filter(|(name, _)| is_kept(name));
    let mut all: BTreeMap<_, _> = kept.map(|(k, v)| (k.clone(), v.clone())).collect();
    let ours = ours.iter().map(|(k, v)| (OsString::from(k), v.into()));
    all.extend(ours);
    all
}

/// A program that runs. It is ended when this is dropped, and when the transfer is stopped.
pub(crate) struct Child {
    process: Arc<Mutex<Box<dyn ChildWrapper>>>,
    messages: Receiver<Vec<u8>>,
}

/// The ends of the pipes of a [`Child`].
pub(crate) struct Pipes {
    pub(crate) stdin: std::process::ChildStdin,
    pub(crate) stdout: std::process::ChildStdout,
}

/// Starts `program` with its three streams as pipes.
///
/// # Errors
/// What the system says, `NotFound` if there is no such program.
#[expect(
    clippy::disallowed_methods,
    reason = "the one place where ssh and credential helpers are started"
)]
pub(crate) fn start(
    program: &OsStr,
    arguments: &[OsString],
    directory: &Path,
    environment: &BTreeMap<OsString, OsString>,
    watch: &Watch,
) -> io::Result<(Child, Pipes)> {
    let mut command = Command::new(program);
    command
        .args(arguments)
        .current_dir(directory)
        .env_clear()
        .envs(environment)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    let mut command = CommandWrap::from(command);
    #[cfg(unix)]
    command.wrap(process_wrap::std::ProcessGroup::leader());
    #[cfg(windows)]
    command.wrap(process_wrap::std::JobObject);
    let mut process = command.spawn()?;
    let stdin = process.stdin().take();
    let stdout = process.stdout().take();
    let stderr = process.stderr().take();
    let child = Child {
        process: Arc::new(Mutex::new(process)),
        messages: collect(stderr),
    };
    let shared = Arc::clone(&child.process);
    watch.on_stop(move || end(&shared));
    let pipes = stdin.zip(stdout);
    let (stdin, stdout) = pipes.ok_or_else(|| io::Error::other("the pipes are missing"))?;
    Ok((child, Pipes { stdin, stdout }))
}

impl Child {
    /// What it wrote to its error stream. Waits for its end first, but not for long.
    pub(crate) fn messages(&self) -> String {
        let bytes = self.messages.recv_timeout(MESSAGE_WAIT).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// Whether it ended well within `limit`.
    pub(crate) fn succeeds_within(&self, limit: Duration) -> bool {
        let until = Instant::now() + limit;
        loop {
            let status = lock(&self.process).try_wait();
            match status {
                Ok(Some(status)) => return status.success(),
                Ok(None) if Instant::now() < until => thread::sleep(POLL),
                Ok(None) | Err(_) => return false,
            }
        }
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        end(&self.process);
    }
}

fn lock(
    process: &Mutex<Box<dyn ChildWrapper>>,
) -> std::sync::MutexGuard<'_, Box<dyn ChildWrapper>> {
    process.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Ends a program and everything in its group. One that has ended already is no error.
fn end(process: &Mutex<Box<dyn ChildWrapper>>) {
    let mut process = lock(process);
    if !matches!(process.try_wait(), Ok(Some(_))) {
        let _ = process.kill();
    }
}

/// Reads messages in the background: the last of them count.
fn collect(stderr: Option<std::process::ChildStderr>) -> Receiver<Vec<u8>> {
    let (sender, receiver) = sync_channel(1);
    if let Some(mut stderr) = stderr {
        thread::spawn(move || {
            let mut kept = Vec::new();
            // What is beyond the limit is read as well, lest the program blocks on it.
            let _ = stderr.by_ref().take(MESSAGE_BYTES).read_to_end(&mut kept);
            let _ = io::copy(&mut stderr, &mut io::sink());
            drop(sender.send(kept));
        });
    }
    receiver
}
