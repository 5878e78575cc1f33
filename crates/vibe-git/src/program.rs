//! The one place that starts the git program.
//!
//! Every call names its directory, the git directory, the work tree and the object directories, so
//! nothing is searched for; it has a complete environment without a single variable of git's own
//! but ours; no configuration of the system or the user is read, and [`OVERRIDES`] outweigh that of
//! the git directory, which is one of ours besides (see [`control`](crate::control)). No call of
//! ours asks, speaks to a network, or starts a program that a repository names.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, Read, Write as _};
use std::path::{Path, PathBuf};
use std::process::{ChildStderr, ChildStdin, ChildStdout, Command, ExitStatus, Stdio};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use process_wrap::std::{ChildWrapper, CommandWrap};
use vibe_core::Cancellation;
use vibe_core::text::{escape, shorten};
use vibe_fs::error::shown;

/// How long one call may take: a check-out of the largest tree on a slow disk, and no longer.
pub const GIT_TIMEOUT: Duration = Duration::from_secs(1_800);
/// How long it may take to say its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);
/// Bytes a call may print: the status of a million paths fits.
const OUTPUT_BYTES: usize = 256 << 20;
/// Bytes of its messages that are kept.
const MESSAGE_BYTES: usize = 16 << 10;
/// Characters of its messages that an error shows.
const MESSAGE_CHARACTERS: usize = 600;
/// How often limit and interrupt are looked at while nothing happens.
const POLL: Duration = Duration::from_millis(20);
/// The first wait for the status of a process that has closed its output.
const FIRST_POLL: Duration = Duration::from_micros(50);

/// What outweighs every configuration: nothing of the repository is run, nothing is fetched, and
/// files come out the same on every machine.
const OVERRIDES: [&str; 30] = [
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "core.untrackedCache=false",
    "core.splitIndex=false",
    "core.sparseCheckout=false",
    "core.preloadIndex=true",
    "core.autocrlf=false",
    "core.eol=lf",
    "core.safecrlf=false",
    "core.attributesFile=/dev/null",
    "core.excludesFile=/dev/null",
    "core.protectHFS=true",
    "core.protectNTFS=true",
    "core.commitGraph=false",
    "core.fsync=none",
    "core.quotePath=false",
    "core.alternateRefsCommand=:",
    "core.pager=cat",
    "credential.helper=",
    "protocol.allow=never",
    "transfer.bundleURI=false",
    "submodule.recurse=false",
    "fetch.recurseSubmodules=false",
    "diff.external=",
    "index.sparse=false",
    "pack.writeReverseIndex=false",
    "gc.auto=0",
    "maintenance.auto=false",
    "commit.gpgSign=false",
    "status.submoduleSummary=false",
];

/// Variables of git that we set; every other one of the caller's is dropped.
const VARIABLES: [(&str, &str); 13] = [
    ("GIT_CONFIG_NOSYSTEM", "1"),
    ("GIT_CONFIG_SYSTEM", "/dev/null"),
    ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ("GIT_ATTR_NOSYSTEM", "1"),
    ("GIT_TERMINAL_PROMPT", "0"),
    ("GIT_ASKPASS", ""),
    ("SSH_ASKPASS", ""),
    ("GIT_NO_REPLACE_OBJECTS", "1"),
    ("GIT_NO_LAZY_FETCH", "1"),
    ("GIT_GRAFT_FILE", "/dev/null"),
    ("GIT_ADVICE", "0"),
    ("GIT_PAGER", "cat"),
    ("LC_ALL", "C"),
];

/// The git program of this machine, with the environment that it is started in.
#[derive(Debug, Clone)]
pub struct GitProgram {
    path: PathBuf,
    environment: BTreeMap<OsString, OsString>,
}

/// One call.
#[derive(Debug, Clone)]
pub(crate) struct Call<'a> {
    /// What it is for, as an error says it: `git could not DOING`.
    pub(crate) doing: &'static str,
    /// The git directory.
    pub(crate) git_directory: &'a Path,
    /// The work tree, and the working directory.
    pub(crate) work_tree: &'a Path,
    /// Where objects are: what is written goes to the first.
    pub(crate) objects: &'a [PathBuf],
    /// The command and its arguments.
    pub(crate) arguments: Vec<OsString>,
    /// What it reads.
    pub(crate) input: Vec<u8>,
}

/// Why the git program did not do what it was started for.
#[derive(Debug, thiserror::Error)]
pub enum ProgramError {
    /// There is none.
    #[error("no `git` is found in PATH: install git 2.30 or newer to use in-place packages")]
    Missing,
    /// It cannot be started.
    #[error("cannot start `{}` in `{}`", shown(program), shown(directory))]
    Start {
        /// The program.
        program: PathBuf,
        /// The directory.
        directory: PathBuf,
        /// The cause.
        source: io::Error,
    },
    /// It said no.
    #[error("git could not {doing} `{}`: {message}", shown(directory))]
    Failed {
        /// What it was for.
        doing: &'static str,
        /// The work tree.
        directory: PathBuf,
        /// What git said, escaped and cut; how it ended if it said nothing.
        message: String,
    },
    /// It printed without end.
    #[error(
        "git printed more than {limit_bytes} bytes when it was to {doing} `{}`",
        shown(directory)
    )]
    Output {
        /// What it was for.
        doing: &'static str,
        /// The work tree.
        directory: PathBuf,
        /// The most it may print.
        limit_bytes: usize,
    },
    /// It did not end.
    #[error(
        "git was stopped after {} s when it was to {doing} `{}`; run the command again, or look for \
         what holds the disk up",
        limit.as_secs(),
        shown(directory)
    )]
    TimedOut {
        /// What it was for.
        doing: &'static str,
        /// The work tree.
        directory: PathBuf,
        /// How long it may take.
        limit: Duration,
    },
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
}

impl GitProgram {
    /// The first `git` in the PATH of `environment`, which calls are started in, less what is
    /// git's own. Relative entries of PATH count for nothing.
    ///
    /// # Errors
    /// There is none.
    pub fn find(environment: &BTreeMap<OsString, OsString>) -> Result<Self, ProgramError> {
        let search = environment.get(OsStr::new("PATH"));
        let path = search
            .and_then(|search| which::which_in_global("git", Some(search)).ok())
            .into_iter()
            .flatten()
            .find(|found| found.is_absolute())
            .ok_or(ProgramError::Missing)?;
        Ok(Self::new(path, environment))
    }

    /// The program `path`, an absolute one, started in `environment` less what is git's own.
    pub fn new(path: PathBuf, environment: &BTreeMap<OsString, OsString>) -> Self {
        let ours = VARIABLES
            .iter()
            .map(|(name, value)| (OsString::from(name), OsString::from(value)));
        let environment = environment
            .iter()
            .filter(|(name, _)| !is_gits_own(name))
            .map(|(name, value)| (name.clone(), value.clone()))
            .chain(ours)
            .collect();
        Self { path, environment }
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// What it says its version is, escaped. `directory` is any directory: nothing in it is read.
    ///
    /// # Errors
    /// It cannot be started, or does not tell within ten seconds.
    pub fn version(&self, directory: &Path, cancel: &Cancellation) -> Result<String, ProgramError> {
        let call = Call {
            doing: "tell its version in",
            git_directory: directory,
            work_tree: directory,
            objects: &[],
            arguments: vec!["--version".into()],
            input: Vec::new(),
        };
        let printed = self.run_within(&call, cancel, VERSION_TIMEOUT)?;
        let text = String::from_utf8_lossy(&printed);
        let line = text.lines().next().unwrap_or_default().trim();
        let version = line.strip_prefix("git version ").unwrap_or(line);
        Ok(escape(&shorten(version, MESSAGE_CHARACTERS)))
    }

    /// Makes one call and returns what it printed.
    pub(crate) fn run(
        &self,
        call: &Call<'_>,
        cancel: &Cancellation,
    ) -> Result<Vec<u8>, ProgramError> {
        self.run_within(call, cancel, GIT_TIMEOUT)
    }

    fn run_within(
        &self,
        call: &Call<'_>,
        cancel: &Cancellation,
        limit: Duration,
    ) -> Result<Vec<u8>, ProgramError> {
        if cancel.is_cancelled() {
            return Err(ProgramError::Interrupted);
        }
        let mut child = self.start(call)?;
        let (sender, pieces) = channel();
        feed(child.stdin().take(), call.input.clone());
        listen(child.stdout().take(), child.stderr().take(), &sender);
        drop(sender);
        let ended = watch(&mut *child, &pieces, call, cancel, limit);
        if ended.is_err() {
            // The group goes; what is told is why.
            let _ = child.kill();
        }
        let ended = ended?;
        tracing::debug!(doing = call.doing, status = %ended.status, "git ended");
        if ended.status.success() {
            return Ok(ended.output);
        }
        Err(ProgramError::Failed {
            doing: call.doing,
            directory: call.work_tree.to_path_buf(),
            message: message(&ended),
        })
    }

    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where the git program is started"
    )]
    fn start(&self, call: &Call<'_>) -> Result<Box<dyn ChildWrapper>, ProgramError> {
        let mut command = Command::new(&self.path);
        for setting in OVERRIDES {
            command.arg("-c").arg(setting);
        }
        command
            .args(&call.arguments)
            .current_dir(call.work_tree)
            .env_clear()
            .envs(&self.environment)
            // Where a git that does not know GIT_CONFIG_GLOBAL looks for configuration.
            .env("HOME", call.git_directory)
            .env("XDG_CONFIG_HOME", call.git_directory)
            .env("GIT_DIR", call.git_directory)
            .env("GIT_WORK_TREE", call.work_tree)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped());
        if let Some((first, others)) = call.objects.split_first() {
            command.env("GIT_OBJECT_DIRECTORY", first);
            command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", quoted_list(others));
        }
        let mut command = CommandWrap::from(command);
        // In a group of its own, so that it can be ended whole, and Ctrl-C reaches us alone.
        #[cfg(unix)]
        command.wrap(process_wrap::std::ProcessGroup::leader());
        #[cfg(windows)]
        command.wrap(process_wrap::std::JobObject);
        command.spawn().map_err(|source| ProgramError::Start {
            program: self.path.clone(),
            directory: call.work_tree.to_path_buf(),
            source,
        })
    }
}

/// Whether a variable steers git.
fn is_gits_own(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    name.starts_with("GIT_") || name == "SSH_ASKPASS"
}

/// Paths as git takes a list of them: quoted, so that separators and line ends in them are theirs.
fn quoted_list(paths: &[PathBuf]) -> OsString {
    let mut list = OsString::new();
    for (number, path) in paths.iter().enumerate() {
        if number > 0 {
            list.push(if cfg!(windows) { ";" } else { ":" });
        }
        list.push(quoted(path));
    }
    list
}

/// `path` in the double quotes of C. Source: gitrevisions' `core.quotePath`, read back by git for
/// an alternate that begins with a quote.
#[cfg(unix)]
fn quoted(path: &Path) -> OsString {
    use std::os::unix::ffi::{OsStrExt as _, OsStringExt as _};

    let mut out = vec![b'"'];
    for byte in path.as_os_str().as_bytes() {
        match byte {
            b'"' | b'\\' => out.extend([b'\\', *byte]),
            b'\n' => out.extend(b"\\n"),
            _ => out.push(*byte),
        }
    }
    out.push(b'"');
    OsString::from_vec(out)
}

/// No quote, backslash aside, can be in a path here.
#[cfg(not(unix))]
fn quoted(path: &Path) -> OsString {
    path.as_os_str().to_owned()
}

/// A piece of what a call prints, or the end of one of its two outputs.
enum Piece {
    Output(Vec<u8>),
    Message(Vec<u8>),
    End,
}

/// A call that ended by itself.
struct Ended {
    status: ExitStatus,
    output: Vec<u8>,
    messages: Vec<u8>,
}

/// Gives `input` in the background, since git may print before it has read all. A reader that has
/// gone says itself why.
fn feed(stdin: Option<ChildStdin>, input: Vec<u8>) {
    if let Some(mut stdin) = stdin
        && !input.is_empty()
    {
        thread::spawn(move || drop(stdin.write_all(&input)));
    }
}

fn listen(stdout: Option<ChildStdout>, stderr: Option<ChildStderr>, sender: &Sender<Piece>) {
    if let Some(stdout) = stdout {
        let sender = sender.clone();
        thread::spawn(move || forward(stdout, Piece::Output, &sender));
    }
    if let Some(stderr) = stderr {
        let sender = sender.clone();
        thread::spawn(move || forward(stderr, Piece::Message, &sender));
    }
}

/// Passes on what comes until its end, or until nobody listens.
fn forward(mut from: impl Read, piece: fn(Vec<u8>) -> Piece, sender: &Sender<Piece>) {
    let mut buffer = vec![0; 64 << 10];
    loop {
        match from.read(&mut buffer) {
            Ok(0) => break,
            Ok(length) if sender.send(piece(buffer[..length].to_vec())).is_ok() => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Ok(_) | Err(_) => return,
        }
    }
    let _ = sender.send(Piece::End);
}

/// Sees a call to its end, within its limits.
fn watch(
    child: &mut dyn ChildWrapper,
    pieces: &Receiver<Piece>,
    call: &Call<'_>,
    cancel: &Cancellation,
    limit: Duration,
) -> Result<Ended, ProgramError> {
    let started = Instant::now();
    let (mut output, mut messages) = (Vec::new(), Vec::new());
    let mut open = 2;
    let mut pause = FIRST_POLL;
    loop {
        check_limits(call, cancel, started.elapsed(), limit)?;
        if open == 0 {
            if let Some(status) = child.try_wait().map_err(|source| lost(call, source))? {
                return Ok(Ended {
                    status,
                    output,
                    messages,
                });
            }
            thread::sleep(pause);
            pause = (pause * 2).min(POLL);
            continue;
        }
        match pieces.recv_timeout(POLL) {
            Ok(Piece::Output(bytes)) if output.len() + bytes.len() > OUTPUT_BYTES => {
                return Err(ProgramError::Output {
                    doing: call.doing,
                    directory: call.work_tree.to_path_buf(),
                    limit_bytes: OUTPUT_BYTES,
                });
            }
            Ok(Piece::Output(bytes)) => output.extend(bytes),
            Ok(Piece::Message(bytes)) => {
                let room = MESSAGE_BYTES.saturating_sub(messages.len());
                messages.extend(bytes.into_iter().take(room));
            }
            Ok(Piece::End) => open -= 1,
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => open = 0,
        }
    }
}

fn check_limits(
    call: &Call<'_>,
    cancel: &Cancellation,
    elapsed: Duration,
    limit: Duration,
) -> Result<(), ProgramError> {
    if cancel.is_cancelled() {
        return Err(ProgramError::Interrupted);
    }
    if elapsed > limit {
        return Err(ProgramError::TimedOut {
            doing: call.doing,
            directory: call.work_tree.to_path_buf(),
            limit,
        });
    }
    Ok(())
}

fn lost(call: &Call<'_>, source: io::Error) -> ProgramError {
    ProgramError::Failed {
        doing: call.doing,
        directory: call.work_tree.to_path_buf(),
        message: format!("the system does not tell how git ended ({source})"),
    }
}

/// What git said, fit to be shown in one line.
fn message(ended: &Ended) -> String {
    let text = String::from_utf8_lossy(&ended.messages);
    let lines: Vec<&str> = text.lines().map(str::trim).collect();
    let said = lines.join("; ");
    match said.is_empty() {
        true => format!("it ended with {} and said nothing", ended.status),
        false => escape(&shorten(&said, MESSAGE_CHARACTERS)),
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    /// What `run` makes of a script that stands in for git.
    fn check<T>(
        script: &str,
        cancel: &Cancellation,
        limit: Duration,
        look: impl FnOnce(&Path, Result<Vec<u8>, ProgramError>) -> T,
    ) -> T {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("git");
        fs::write(&path, format!("#!/bin/sh\n{script}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let environment = [
            ("PATH", "/usr/bin:/bin"),
            ("GIT_DIR", "/elsewhere"),
            ("GIT_CONFIG_COUNT", "1"),
            ("GIT_CONFIG_PARAMETERS", "'core.fsmonitor'='x'"),
            ("GIT_INDEX_FILE", "/elsewhere"),
            ("GIT_EXEC_PATH", "/elsewhere"),
            ("OTHER", "kept"),
        ];
        let environment = environment
            .map(|(name, value)| (OsString::from(name), OsString::from(value)))
            .into();
        let call = Call {
            doing: "try",
            git_directory: root.path(),
            work_tree: root.path(),
            objects: &[],
            arguments: vec!["status".into()],
            input: b"input".to_vec(),
        };
        let program = GitProgram::new(path, &environment);
        look(root.path(), program.run_within(&call, cancel, limit))
    }

    fn check_quick<T>(
        script: &str,
        look: impl FnOnce(&Path, Result<Vec<u8>, ProgramError>) -> T,
    ) -> T {
        check(script, &Cancellation::new(), Duration::from_secs(60), look)
    }

    #[test]
    fn a_program_tells_its_version_in_one_line() {
        let root = tempfile::tempdir().unwrap();
        let path = root.path().join("git");
        let script = "#!/bin/sh\necho \"git version 2.30.1 (x\x1b)\"; echo more\n";
        fs::write(&path, script).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
        let program = GitProgram::new(path.clone(), &BTreeMap::new());
        assert_eq!(program.path(), path);
        let version = program.version(root.path(), &Cancellation::new()).unwrap();
        assert_eq!(version, "2.30.1 (x\\x1B)");
    }

    #[test]
    fn a_call_has_the_callers_environment_less_what_is_gits_own() {
        check_quick("env; pwd; cat; echo \"$@\"", |root, printed| {
            let printed = String::from_utf8(printed.unwrap()).unwrap();
            let root = root.to_str().unwrap();
            let mut gits: Vec<&str> = printed
                .lines()
                .filter_map(|line| Some(line.strip_prefix("GIT_")?.split_once('=')?.0))
                .collect();
            gits.sort_unstable();
            let ours = VARIABLES.iter().map(|(name, _)| *name);
            let mut expected: Vec<&str> = ours
                .filter_map(|name| name.strip_prefix("GIT_"))
                .chain(["DIR", "WORK_TREE"])
                .collect();
            expected.sort_unstable();
            assert_eq!(gits, expected);
            for line in ["OTHER=kept", &format!("GIT_DIR={root}"), "LC_ALL=C"] {
                assert!(printed.lines().any(|one| one == line), "{line}\n{printed}");
            }
            let rest = format!("{root}\ninput-c core.hooksPath=/dev/null -c ");
            assert!(printed.contains(&rest), "{printed}");
            assert!(printed.ends_with(" status\n"), "{printed}");
        });
    }

    #[test]
    fn what_it_says_is_escaped_and_cut() {
        let said = "printf 'bad \\033[2J\\nline\\n' >&2; exit 3";
        check_quick(said, |root, outcome| {
            let expected = format!("git could not try `{}`: bad \\x1B[2J; line", root.display());
            assert_eq!(outcome.unwrap_err().to_string(), expected);
        });
        let long =
            "i=0; while [ $i -lt 2000 ]; do echo 0123456789012345 >&2; i=$((i+1)); done; exit 1";
        check_quick(long, |_, outcome| {
            assert!(outcome.unwrap_err().to_string().len() < 1_000);
        });
        check_quick("exit 7", |_, outcome| {
            let said = outcome.unwrap_err().to_string();
            assert!(
                said.ends_with("it ended with exit status: 7 and said nothing"),
                "{said}"
            );
        });
    }

    /// Whether the process whose number the script wrote to `pid` has ended.
    fn has_ended(root: &Path) -> bool {
        let pid = fs::read_to_string(root.join("pid")).unwrap();
        let stat = fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
        stat.is_err() || stat.is_ok_and(|stat| stat.contains(") Z "))
    }

    #[test]
    fn a_call_without_end_is_ended_with_its_whole_group() {
        let script = "sleep 1000 & echo $! > pid; wait";
        let limit = Duration::from_millis(300);
        check(script, &Cancellation::new(), limit, |root, outcome| {
            assert!(matches!(outcome, Err(ProgramError::TimedOut { .. })));
            while !has_ended(root) {
                thread::yield_now();
            }
        });
    }

    #[test]
    fn an_interrupt_ends_the_call() {
        let cancel = Cancellation::new();
        let user = cancel.clone();
        let started = Instant::now();
        thread::spawn(move || user.interrupt());
        check("exec sleep 1000", &cancel, GIT_TIMEOUT, |_, outcome| {
            assert!(matches!(outcome, Err(ProgramError::Interrupted)));
        });
        assert!(started.elapsed() < Duration::from_secs(100));
    }

    #[test]
    fn a_missing_program_is_named() {
        let none = GitProgram::find(&BTreeMap::new()).unwrap_err();
        assert!(none.to_string().contains("no `git` is found in PATH"));
        let relative = [("PATH".into(), ".".into())].into();
        assert!(GitProgram::find(&relative).is_err());
        let program = GitProgram::new("/nonexistent/git".into(), &BTreeMap::new());
        let call = Call {
            doing: "try",
            git_directory: Path::new("/"),
            work_tree: Path::new("/"),
            objects: &[],
            arguments: Vec::new(),
            input: Vec::new(),
        };
        let error = program.run(&call, &Cancellation::new()).unwrap_err();
        assert_eq!(error.to_string(), "cannot start `/nonexistent/git` in `/`");
    }
}
