//! The real runner with a real bash.

use std::fs;
use std::sync::mpsc::{Sender, channel};

use tempfile::TempDir;
use vibe_core::limits::{HOOK_LOG_END_BYTES, HOOK_TAIL_BYTES};

use super::*;

const LONG: Duration = Duration::from_secs(60);
const SHORT: Duration = Duration::from_millis(200);

/// A script in a directory of its own, and how it is run.
struct Script {
    directory: TempDir,
    invocation: Invocation,
}

impl Script {
    fn new(text: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("hook.sh");
        fs::write(&script, text).unwrap();
        let invocation = Invocation {
            program: "/bin/bash".into(),
            arguments: vec![script.into()],
            directory: directory.path().to_path_buf(),
            environment: BTreeMap::from([("PATH".into(), "/usr/bin:/bin".into())]),
            limits: HookLimits {
                timeout: LONG,
                terminate_grace: LONG,
                pipe_grace: LONG,
            },
            log: Some(directory.path().join("hook.log")),
        };
        Self {
            directory,
            invocation,
        }
    }

    fn limits(mut self, timeout: Duration, terminate_grace: Duration) -> Self {
        self.invocation.limits.timeout = timeout;
        self.invocation.limits.terminate_grace = terminate_grace;
        self
    }

    fn run(&self) -> (HookResult, Seen) {
        let mut seen = Seen::default();
        let result = SystemRunner.run(&self.invocation, &mut seen, &Cancellation::new());
        (result.unwrap(), seen)
    }

    fn log(&self) -> Vec<u8> {
        fs::read(self.directory.path().join("hook.log")).unwrap()
    }
}

#[derive(Default)]
struct Seen {
    process: Option<RunningProcess>,
    lines: Vec<String>,
    longest: usize,
    on_line: Option<Sender<u32>>,
}

impl HookWatcher for Seen {
    fn started(&mut self, process: RunningProcess) {
        self.process = Some(process);
    }

    fn output(&mut self, line: &[u8]) {
        self.longest = self.longest.max(line.len());
        if self.lines.len() < 100 {
            self.lines.push(String::from_utf8_lossy(line).into_owned());
        }
        if let Some(on_line) = &self.on_line {
            on_line.send(self.process.unwrap().pid).unwrap();
        }
    }
}

fn check_status(text: &str, expected: HookStatus) {
    let (result, _) = Script::new(text).run();
    assert_eq!(result.status, expected, "{text}");
    assert_eq!(result.left_running, None);
}

fn check_lines(text: &str, expected: &[&str]) {
    let (result, seen) = Script::new(text).run();
    assert_eq!(result.status, HookStatus::Exited(0));
    assert_eq!(seen.lines, expected, "{text}");
}

#[test]
fn exit_codes_come_back_exactly() {
    for code in [0, 1, 2, 126, 127, 255] {
        check_status(&format!("exit {code}"), HookStatus::Exited(code));
    }
    check_status("", HookStatus::Exited(0));
}

#[test]
fn a_signal_is_reported_as_such() {
    for signal in [9, 11, 15] {
        check_status(&format!("kill -{signal} $$"), HookStatus::Signalled(signal));
    }
}

#[test]
fn standard_input_is_empty_and_there_is_no_terminal() {
    check_lines("cat; read -r x || echo end", &["end"]);
    check_lines("(: </dev/tty) 2>/dev/null || echo none", &["none"]);
    check_lines(
        "read -r _ _ _ _ _ session _ </proc/$$/stat; echo $((session - $$))",
        &["0"],
    );
}

#[test]
fn the_environment_is_exactly_the_given_one() {
    let mut script = Script::new("cat -v /proc/$$/environ");
    let environment = [("A", "1"), ("PATH", "/usr/bin:/bin"), ("Z", "a b")];
    script.invocation.environment = environment
        .map(|(name, value)| (name.into(), value.into()))
        .into();
    let (_, seen) = script.run();
    assert_eq!(seen.lines, ["A=1^@PATH=/usr/bin:/bin^@Z=a b^@"]);
}

#[test]
fn the_working_directory_is_the_given_one() {
    let script = Script::new("pwd; readlink /proc/$$/cwd; echo \"$PWD\"");
    let (_, seen) = script.run();
    let directory = script.directory.path().to_str().unwrap();
    assert_eq!(seen.lines, [directory; 3]);
}

#[test]
fn both_outputs_are_seen_in_the_order_written() {
    let script = Script::new("echo one; echo two >&2; echo three; printf four >&2");
    let (result, seen) = script.run();
    assert_eq!(seen.lines, ["one", "two", "three", "four"]);
    assert_eq!(result.tail, b"one\ntwo\nthree\nfour");
    assert_eq!(result.output_bytes, 18);
    assert_eq!(script.log(), result.tail);
    assert_eq!(result.log_error, None);
}

#[test]
fn bytes_that_are_no_text_arrive_unchanged() {
    let script = Script::new("printf 'a\\0b\\xff\\x1b[2J\\r\\nend'");
    let (result, seen) = script.run();
    assert_eq!(result.tail, b"a\0b\xff\x1b[2J\r\nend");
    assert_eq!(script.log(), result.tail);
    assert_eq!(seen.lines, ["a\0b\u{fffd}\u{1b}[2J\r", "end"]);
}

#[test]
fn a_process_is_told_with_its_start_time_and_leaves_no_zombie() {
    let (_, seen) = Script::new("echo $$").run();
    let process = seen.process.unwrap();
    assert_eq!(seen.lines, [process.pid.to_string()]);
    assert!(process.start_time.is_some());
    assert_eq!(process_start_time(process.pid), None);
    assert!(!group_exists(process.pid));
}

/// The most memory this process ever had, in bytes.
fn peak_memory() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix("VmHWM:"))
        .unwrap();
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse().unwrap();
    kilobytes * 1024
}

#[test]
fn much_output_is_bounded_in_memory_and_in_the_log() {
    let script = Script::new("yes 0123456789abcde | head -c 104857600; printf last");
    let (result, seen) = script.run();
    assert_eq!(result.status, HookStatus::Exited(0));
    assert_eq!(result.output_bytes, (100 << 20) + 4);
    assert_eq!(result.tail.len(), HOOK_TAIL_BYTES);
    assert!(result.tail.ends_with(b"0123456789abcde\nlast"));
    assert_eq!(seen.longest, 15);
    let log = script.log();
    let left_out = (100 << 20) + 4 - 2 * HOOK_LOG_END_BYTES;
    let note = format!("\n[{left_out} bytes of output left out]\n");
    assert_eq!(log.len(), 2 * HOOK_LOG_END_BYTES + note.len());
    assert!(log[HOOK_LOG_END_BYTES..].starts_with(note.as_bytes()));
    assert!(log.ends_with(b"0123456789abcde\nlast"));
    let peak = peak_memory();
    assert!(peak < 64 << 20, "{peak}");
}

#[test]
fn one_very_long_line_comes_in_pieces() {
    let (result, seen) = Script::new("head -c 5242880 /dev/zero; echo; echo end").run();
    assert_eq!(result.output_bytes, (5 << 20) + 5);
    assert_eq!(seen.longest, crate::capture::LINE_PIECE_BYTES);
    assert!(result.tail.ends_with(b"\0\nend\n"));
}

#[test]
fn a_hook_beyond_its_limit_is_ended_even_if_it_exits_well() {
    let script = Script::new("trap 'exit 0' TERM; sleep 60 & wait").limits(SHORT, LONG);
    let (result, _) = script.run();
    assert_eq!(result.status, HookStatus::TimedOut);
    assert!(result.duration >= SHORT && result.duration < LONG);
    assert_eq!(result.left_running, None);
}

#[test]
fn a_hook_that_ignores_the_request_is_killed_with_its_children() {
    let text = "trap '' TERM; sleep 60 & echo $!; sleep 60; true";
    let (result, seen) = Script::new(text).limits(SHORT, SHORT).run();
    assert_eq!(result.status, HookStatus::TimedOut);
    assert!(result.duration >= 2 * SHORT && result.duration < LONG);
    assert_eq!(result.left_running, None);
    assert_eq!(seen.lines.len(), 1);
}

#[test]
fn children_that_ignore_the_request_are_killed_after_their_parent_has_ended() {
    let text = "trap 'exit 0' TERM; (trap '' TERM; sleep 60 & wait; sleep 60) & wait";
    let script = Script::new(text).limits(SHORT, SHORT);
    let started = Instant::now();
    let (result, _) = script.run();
    assert_eq!(result.status, HookStatus::TimedOut);
    assert_eq!(result.left_running, None);
    assert!(started.elapsed() < LONG);
}

fn check_left(text: &str, pipe_grace: Duration, name: &str, holds_output: bool) {
    let mut script = Script::new(text);
    script.invocation.limits.pipe_grace = pipe_grace;
    let started = Instant::now();
    let (result, _) = script.run();
    let left = result.left_running.unwrap();
    for process in &left.processes {
        crate::session::end_process(process.pid, true);
    }
    assert!(started.elapsed() < LONG);
    assert_eq!(result.status, HookStatus::Exited(0));
    assert_eq!(left.holds_output, holds_output);
    let names: Vec<&str> = left.processes.iter().map(|one| one.name.as_str()).collect();
    assert_eq!(names, [name]);
}

#[test]
fn what_is_left_running_is_named_and_not_waited_for() {
    check_left("sleep 60 & exit 0", SHORT, "sleep", true);
    check_left("sleep 60 >/dev/null 2>&1 & exit 0", LONG, "sleep", false);
    check_left("yes & sleep 0.1", SHORT, "yes", true);
}

#[test]
fn output_after_the_end_is_taken_while_somebody_writes_it() {
    let (result, seen) = Script::new("(sleep 0.05; echo late) & exit 3").run();
    assert_eq!(result.status, HookStatus::Exited(3));
    assert_eq!(seen.lines, ["late"]);
    assert_eq!(result.left_running, None);
}

#[test]
fn a_hook_that_closes_its_output_is_waited_for() {
    let (result, _) = Script::new("exec >&- 2>&-; sleep 0.05; exit 7").run();
    assert_eq!(result.status, HookStatus::Exited(7));
    assert!(result.duration >= Duration::from_millis(50));
}

/// Runs `script` and interrupts it `times` when it has printed a line.
fn interrupted(script: &Script, times: usize) -> (HookResult, Seen) {
    let cancel = Cancellation::new();
    let (on_line, lines) = channel();
    let mut seen = Seen {
        on_line: Some(on_line),
        ..Seen::default()
    };
    let result = thread::scope(|scope| {
        let cancel = &cancel;
        scope.spawn(move || {
            lines.recv().unwrap();
            (0..times).for_each(|_| cancel.interrupt());
            // Later lines are of no interest, but must find a listener.
            lines.iter().for_each(drop);
        });
        let result = SystemRunner.run(&script.invocation, &mut seen, cancel);
        seen.on_line = None;
        result
    });
    (result.unwrap(), seen)
}

#[test]
fn an_interrupt_reaches_the_whole_group() {
    let script = Script::new("echo ready; sleep 60; echo never");
    let (result, seen) = interrupted(&script, 1);
    assert_eq!(result.status, HookStatus::Interrupted);
    assert_eq!(seen.lines, ["ready"]);
    assert_eq!(result.left_running, None);
}

#[test]
fn a_hook_may_finish_after_an_interrupt() {
    let script = Script::new(
        "trap 'echo done; exit 0' INT; echo ready; for _ in {1..3000}; do sleep 0.01; done",
    );
    let (result, seen) = interrupted(&script, 1);
    assert_eq!(result.status, HookStatus::Interrupted);
    assert_eq!(seen.lines, ["ready", "done"]);
}

#[test]
fn a_second_interrupt_kills_the_group() {
    let script = Script::new("trap '' INT; echo ready; sleep 60; true");
    let (result, _) = interrupted(&script, 2);
    assert_eq!(result.status, HookStatus::Interrupted);
    assert_eq!(result.left_running, None);
}

#[test]
fn an_interrupted_hook_keeps_its_limit() {
    let script = Script::new("trap '' INT; echo ready; sleep 60; true");
    let (result, _) = interrupted(&script.limits(SHORT, LONG), 1);
    assert_eq!(result.status, HookStatus::Interrupted);
    assert!(result.duration >= SHORT);
}

fn start_failure(change: impl FnOnce(&mut Invocation), cancel: &Cancellation) -> String {
    let mut script = Script::new("exit 0");
    change(&mut script.invocation);
    let mut seen = Seen::default();
    let error = SystemRunner
        .run(&script.invocation, &mut seen, cancel)
        .unwrap_err();
    assert_eq!(seen.process, None);
    error.to_string()
}

#[test]
fn a_hook_that_cannot_be_started_says_what_is_missing() {
    let calm = Cancellation::new();
    assert_eq!(
        start_failure(|it| it.directory = "/no/such\n".into(), &calm),
        "cannot start the install hook: its directory `/no/such\\n` does not exist"
    );
    assert_eq!(
        start_failure(|it| it.program = "/no/bash".into(), &calm),
        "cannot start `/no/bash` to run the install hook"
    );
    assert_eq!(
        start_failure(|it| it.log = Some("/no/a.log".into()), &calm),
        "cannot create the install hook's log `/no/a.log`"
    );
    let interrupted = Cancellation::new();
    interrupted.interrupt();
    assert_eq!(
        start_failure(|_| (), &interrupted),
        "the run was interrupted before the install hook was started"
    );
}
