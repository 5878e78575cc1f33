//! Starts an install hook and sees it through to its end.
//!
//! The hook leads a session of its own, without a terminal and with an empty standard input. Its
//! two outputs share one pipe, so they arrive in the order in which they were written. A thread
//! reads the pipe; when it reports the end of the output, the process has usually just ended, so
//! looking for its status costs a short hook no waiting.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, PipeReader, PipeWriter, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

use process_wrap::std::{ChildWrapper, CommandWrap};
use vibe_core::Cancellation;
use vibe_core::formats::state::RunningProcess;
use vibe_core::text::escape_bytes;

use crate::capture::Capture;
use crate::escalation::{Action, Escalation};
pub use crate::escalation::{HookLimits, HookStatus};
pub use crate::session::{NamedProcess, process_start_time};
use crate::session::{group_exists, members};

/// Bytes read from the pipe at once.
const CHUNK_BYTES: usize = 64 << 10;
/// Chunks that wait to be handled, so that a hook faster than us is held up, not stored.
const CHUNKS_WAITING: usize = 16;
/// How often limits, interrupts and the process are looked at while nothing is printed.
const POLL: Duration = Duration::from_millis(20);
/// The first wait for the status of a process that has closed its output.
const FIRST_POLL: Duration = Duration::from_micros(50);
/// How long a process that is just ending may take before it counts as left running.
const SETTLE: Duration = Duration::from_millis(50);

/// Everything there is to know to start one install hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Invocation {
    /// The program, by absolute path.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// The working directory.
    pub directory: PathBuf,
    /// The complete environment.
    pub environment: BTreeMap<OsString, OsString>,
    /// Its limits.
    pub limits: HookLimits,
    /// Where its output is kept: a file that does not exist yet.
    pub log: Option<PathBuf>,
}

/// What an install hook did, as far as we see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookResult {
    /// How it ended.
    pub status: HookStatus,
    /// From before its start until its main process had ended.
    pub duration: Duration,
    /// The last [`HOOK_TAIL_BYTES`](vibe_core::limits::HOOK_TAIL_BYTES) of its output.
    pub tail: Vec<u8>,
    /// What it left running.
    pub left_running: Option<LeftRunning>,
    /// How much it printed.
    pub output_bytes: u64,
    /// Why its log is incomplete.
    pub log_error: Option<String>,
}

/// Something that outlived the main process. It is not killed. A process that left the hook's group
/// and its output behind is not seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeftRunning {
    /// The processes of its session. Empty where the system does not list them, and when what is
    /// left has gone to a session of its own.
    pub processes: Vec<NamedProcess>,
    /// Whether something still holds its output.
    pub holds_output: bool,
}

/// Why an install hook was not started, or was lost.
#[derive(Debug, thiserror::Error)]
pub enum HookStartError {
    /// The user interrupted the run before.
    #[error("the run was interrupted before the install hook was started")]
    Interrupted,
    /// The log cannot be created.
    #[error("cannot create the install hook's log `{}`", shown(path))]
    Log {
        /// The log.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The working directory is gone.
    #[error(
        "cannot start the install hook: its directory `{}` does not exist",
        shown(path)
    )]
    Directory {
        /// The directory.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The interpreter is gone, or no program.
    #[error("cannot start `{}` to run the install hook", shown(path))]
    Program {
        /// The program.
        path: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// The system refuses a pipe or a thread.
    #[error("cannot capture the output of the install hook")]
    Capture(#[source] io::Error),
    /// The system does not tell how the process ended.
    #[error("the install hook's process {pid} was lost: the system does not tell how it ended")]
    Lost {
        /// The process.
        pid: u32,
        /// The cause.
        source: io::Error,
    },
}

fn shown(path: &Path) -> String {
    escape_bytes(path.as_os_str().as_encoded_bytes())
}

/// Sees a hook while it runs.
pub trait HookWatcher {
    /// The process was started.
    fn started(&mut self, process: RunningProcess);
    /// It printed a line, given without its line end. A line of more than 8 KiB comes in pieces.
    fn output(&mut self, line: &[u8]);
}

/// Runs install hooks.
pub trait HookRunner {
    /// Runs one install hook to its end. An interrupt in `cancel` reaches the hook; a second one
    /// kills it.
    fn run(
        &self,
        invocation: &Invocation,
        watcher: &mut dyn HookWatcher,
        cancel: &Cancellation,
    ) -> Result<HookResult, HookStartError>;
}

/// The runner that starts processes.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemRunner;

impl HookRunner for SystemRunner {
    fn run(
        &self,
        invocation: &Invocation,
        watcher: &mut dyn HookWatcher,
        cancel: &Cancellation,
    ) -> Result<HookResult, HookStartError> {
        if cancel.is_cancelled() {
            return Err(HookStartError::Interrupted);
        }
        let log = invocation.log.as_deref();
        let capture = Capture::new(log).map_err(|source| HookStartError::Log {
            path: log.map(Path::to_path_buf).unwrap_or_default(),
            source,
        })?;
        let started = Instant::now();
        let (output, writer) = capture_pipe().map_err(HookStartError::Capture)?;
        let child = start(invocation, writer)?;
        let pid = child.id();
        watcher.started(RunningProcess {
            pid,
            start_time: process_start_time(pid),
        });
        let running = Running {
            child,
            pid,
            started,
            output,
            output_ended: false,
            capture,
            watcher,
        };
        running.finish(invocation.limits, cancel)
    }
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place where an install hook is started"
)]
fn start(
    invocation: &Invocation,
    [output, errors]: [PipeWriter; 2],
) -> Result<Box<dyn ChildWrapper>, HookStartError> {
    let mut command = Command::new(&invocation.program);
    command
        .args(&invocation.arguments)
        .current_dir(&invocation.directory)
        .env_clear()
        .envs(&invocation.environment)
        .stdin(Stdio::null())
        .stdout(output)
        .stderr(errors);
    // The command goes at the end of this function, and with it our copies of the pipe's writing
    // end: only then does the pipe end with the hook.
    let mut command = CommandWrap::from(command);
    #[cfg(unix)]
    command.wrap(process_wrap::std::ProcessSession);
    #[cfg(windows)]
    command.wrap(process_wrap::std::JobObject);
    command
        .spawn()
        .map_err(|source| start_error(invocation, source))
}

/// The system reports a missing directory and a missing program alike.
fn start_error(invocation: &Invocation, source: io::Error) -> HookStartError {
    if !invocation.directory.is_dir() {
        return HookStartError::Directory {
            path: invocation.directory.clone(),
            source,
        };
    }
    HookStartError::Program {
        path: invocation.program.clone(),
        source,
    }
}

/// Pieces of output. The sender goes when the last writer of the pipe has gone.
type Chunks = Receiver<Vec<u8>>;

/// What is read from a new pipe, and its writing end for each of the two outputs.
fn capture_pipe() -> io::Result<(Chunks, [PipeWriter; 2])> {
    let (reader, writer) = io::pipe()?;
    let second = writer.try_clone()?;
    Ok((read_in_background(reader)?, [writer, second]))
}

/// Reads until the last writer is gone, also when nobody listens any more: a process that was left
/// running is not to die of a full or closed pipe while we are here.
fn read_in_background(mut reader: PipeReader) -> io::Result<Chunks> {
    let (sender, receiver) = sync_channel(CHUNKS_WAITING);
    let read = move || {
        let mut buffer = vec![0; CHUNK_BYTES];
        loop {
            match reader.read(&mut buffer) {
                Ok(0) => break,
                Ok(length) => {
                    let _ = sender.send(buffer[..length].to_vec());
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(_) => break,
            }
        }
    };
    thread::Builder::new()
        .name("hook output".to_owned())
        .spawn(read)?;
    Ok(receiver)
}

/// A hook between its start and its end.
struct Running<'a> {
    child: Box<dyn ChildWrapper>,
    pid: u32,
    started: Instant,
    output: Chunks,
    output_ended: bool,
    capture: Capture,
    watcher: &'a mut dyn HookWatcher,
}

impl Running<'_> {
    fn finish(
        mut self,
        limits: HookLimits,
        cancel: &Cancellation,
    ) -> Result<HookResult, HookStartError> {
        let (status, duration) = self.wait(limits, cancel)?;
        self.drain(limits.pipe_grace);
        let left_running = self.left_running();
        let watcher = self.watcher;
        let captured = self.capture.finish(&mut |line| watcher.output(line));
        Ok(HookResult {
            status,
            duration,
            tail: captured.tail,
            left_running,
            output_bytes: captured.bytes,
            log_error: captured.log_error.map(|error| error.to_string()),
        })
    }

    /// Waits for the main process, and for the whole group once we have begun to end it.
    fn wait(
        &mut self,
        limits: HookLimits,
        cancel: &Cancellation,
    ) -> Result<(HookStatus, Duration), HookStartError> {
        let mut escalation = Escalation::new(limits);
        let mut exit: Option<(HookStatus, Duration)> = None;
        let mut pause = FIRST_POLL;
        loop {
            if exit.is_none() {
                exit = self.exit_status()?;
            }
            if let Some((status, duration)) = exit
                && !(escalation.is_ending_group() && self.group_is_alive())
            {
                return Ok((escalation.cause().unwrap_or(status), duration));
            }
            match escalation.step(self.started.elapsed(), cancel.count()) {
                Some(Action::GiveUp) => {
                    let status = escalation.cause().unwrap_or(HookStatus::TimedOut);
                    return Ok((status, self.started.elapsed()));
                }
                Some(action) => signal_group(&mut *self.child, action),
                None if self.output_ended => {
                    thread::sleep(pause);
                    pause = (pause * 2).min(POLL);
                }
                None => self.take_output(POLL),
            }
        }
    }

    /// The status of the main process, if it has ended. Asks for that one process, not for its
    /// group: the group may hold others that run on.
    fn exit_status(&mut self) -> Result<Option<(HookStatus, Duration)>, HookStartError> {
        match self.child.inner_mut().try_wait() {
            Ok(status) => Ok(status.map(|status| (hook_status(status), self.started.elapsed()))),
            Err(source) => Err(HookStartError::Lost {
                pid: self.pid,
                source,
            }),
        }
    }

    /// Handles the next piece of output, or waits for it.
    fn take_output(&mut self, wait: Duration) {
        match self.output.recv_timeout(wait) {
            Ok(chunk) => {
                let watcher = &mut *self.watcher;
                self.capture.take(&chunk, &mut |line| watcher.output(line));
            }
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => self.output_ended = true,
        }
    }

    /// Takes what is still printed, for at most `grace`.
    fn drain(&mut self, grace: Duration) {
        let end = Instant::now() + grace;
        while !self.output_ended {
            let left = end.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return;
            }
            self.take_output(left);
        }
    }

    fn group_is_alive(&self) -> bool {
        group_exists(self.pid) && (!cfg!(target_os = "linux") || !members(self.pid).is_empty())
    }

    /// Listing processes is slow, so it is done only when the group or the pipe shows that
    /// something is left.
    fn left_running(&self) -> Option<LeftRunning> {
        let end = Instant::now() + SETTLE;
        while self.output_ended && Instant::now() < end {
            if !self.group_is_alive() {
                return None;
            }
            thread::sleep(Duration::from_millis(1));
        }
        Some(LeftRunning {
            processes: members(self.pid),
            holds_output: !self.output_ended,
        })
    }
}

/// The process group is the hook's own; one that has just gone is no error.
#[cfg(unix)]
fn signal_group(child: &mut dyn ChildWrapper, action: Action) {
    use rustix::process::Signal;

    let signal = match action {
        Action::Interrupt => Signal::INT,
        Action::Terminate => Signal::TERM,
        Action::Kill | Action::GiveUp => Signal::KILL,
    };
    let _ = child.signal(signal.as_raw());
}

/// The console passes the user's interrupt to the hook itself, and there is no asking a job to end.
#[cfg(windows)]
fn signal_group(child: &mut dyn ChildWrapper, action: Action) {
    if action != Action::Interrupt {
        let _ = child.start_kill();
    }
}

#[cfg(unix)]
fn hook_status(status: ExitStatus) -> HookStatus {
    use std::os::unix::process::ExitStatusExt;

    match status.signal() {
        Some(signal) => HookStatus::Signalled(signal),
        None => HookStatus::Exited(status.code().expect("ended by no signal, so with a code")),
    }
}

#[cfg(windows)]
fn hook_status(status: ExitStatus) -> HookStatus {
    HookStatus::Exited(status.code().expect("every process ends with a code here"))
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests;
