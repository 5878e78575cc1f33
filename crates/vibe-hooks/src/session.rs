//! The processes of an install hook's session, and signals to its group.
//!
//! Only Linux lists processes in a way that can be read without privileges or unsafe code; on other
//! systems the lists here are empty.

use std::fs;
use std::path::Path;

/// A process by number and name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedProcess {
    /// Its number.
    pub pid: u32,
    /// Its command name, at most 15 bytes; not escaped.
    pub name: String,
}

/// What `/proc/<pid>/stat` says of a process. Source: proc_pid_stat(5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProcessStat {
    pub(crate) process: NamedProcess,
    pub(crate) is_alive: bool,
    pub(crate) session: u32,
    /// In clock ticks since boot.
    pub(crate) start_time: u64,
}

/// When process `pid` started, in clock ticks since boot; `None` if it does not exist or the system
/// does not tell. With the number it names one process of a boot.
pub fn process_start_time(pid: u32) -> Option<u64> {
    stat_of(pid).map(|stat| stat.start_time)
}

/// What the system says of process `pid`, if it exists.
pub(crate) fn stat_of(pid: u32) -> Option<ProcessStat> {
    read_stat(&Path::new("/proc").join(pid.to_string()))
}

/// The processes of session `session` that have not ended.
pub(crate) fn members(session: u32) -> Vec<NamedProcess> {
    if !cfg!(target_os = "linux") {
        return Vec::new();
    }
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries
        .filter(|entry| entry.file_name().as_encoded_bytes()[0].is_ascii_digit())
        .filter_map(|entry| read_stat(&entry.path()))
        .filter(|stat| stat.is_alive && stat.session == session)
        .map(|stat| stat.process)
        .collect()
}

fn read_stat(directory: &Path) -> Option<ProcessStat> {
    if !cfg!(target_os = "linux") {
        return None;
    }
    parse_stat(&fs::read(directory.join("stat")).ok()?)
}

/// The name stands in parentheses and may hold anything, spaces and parentheses included.
fn parse_stat(bytes: &[u8]) -> Option<ProcessStat> {
    let text = String::from_utf8_lossy(bytes);
    let (pid, rest) = text.split_once(" (")?;
    let (name, rest) = rest.rsplit_once(") ")?;
    let fields: Vec<&str> = rest.split_ascii_whitespace().collect();
    // Field 3 of the manual is the first here.
    let field = |number: usize| fields.get(number - 3).copied();
    Some(ProcessStat {
        process: NamedProcess {
            pid: pid.parse().ok()?,
            name: name.to_owned(),
        },
        is_alive: !matches!(field(3)?, "Z" | "X" | "x"),
        session: field(6)?.parse().ok()?,
        start_time: field(22)?.parse().ok()?,
    })
}

/// Whether process `pid` was started by vibe as a part of an install hook: its environment says so.
pub(crate) fn is_in_hook_environment(pid: u32) -> bool {
    let path = Path::new("/proc").join(pid.to_string()).join("environ");
    fs::read(path).is_ok_and(|environment| {
        environment
            .split(|byte| *byte == 0)
            .any(|variable| variable.starts_with(b"VIBE_HOOK_PHASE="))
    })
}

/// Whether anything, ended and unreaped processes included, is in the process group `group`.
#[cfg(unix)]
pub(crate) fn group_exists(group: u32) -> bool {
    use rustix::io::Errno;
    use rustix::process::test_kill_process_group;

    pid_of(group).is_some_and(
        |pid| !matches!(test_kill_process_group(pid), Err(error) if error == Errno::SRCH),
    )
}

/// Whether anything is in the process group `group`: not known here.
#[cfg(not(unix))]
pub(crate) fn group_exists(_group: u32) -> bool {
    false
}

/// Asks process `pid` to end, or makes it. A process that has just ended is no error.
#[cfg(unix)]
pub(crate) fn end_process(pid: u32, by_force: bool) {
    use rustix::process::{Signal, kill_process};

    let signal = if by_force { Signal::KILL } else { Signal::TERM };
    if let Some(pid) = pid_of(pid) {
        let _ = kill_process(pid, signal);
    }
}

/// Does nothing: no process is listed here that could be ended.
#[cfg(not(unix))]
pub(crate) fn end_process(_pid: u32, _by_force: bool) {}

#[cfg(unix)]
fn pid_of(pid: u32) -> Option<rustix::process::Pid> {
    rustix::process::Pid::from_raw(i32::try_from(pid).ok()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: &str = "7 42 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 9876 1 1";

    fn check(text: &str, expected: Option<(u32, &str, bool, u32, u64)>) {
        let expected = expected.map(|(pid, name, is_alive, session, start_time)| ProcessStat {
            process: NamedProcess {
                pid,
                name: name.to_owned(),
            },
            is_alive,
            session,
            start_time,
        });
        assert_eq!(parse_stat(text.as_bytes()), expected, "{text}");
    }

    #[test]
    fn a_process_is_read_whatever_its_name() {
        check(
            &format!("12 (bash) S 1 {REST}"),
            Some((12, "bash", true, 42, 9876)),
        );
        check(
            &format!("12 (a) R (b) c) R 1 {REST}"),
            Some((12, "a) R (b) c", true, 42, 9876)),
        );
        for state in ["Z", "X", "x"] {
            check(
                &format!("12 (bash) {state} 1 {REST}"),
                Some((12, "bash", false, 42, 9876)),
            );
        }
        check("12 (bash) S 1 7 42", None);
        check("", None);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn this_process_is_found_among_its_session() {
        let pid = std::process::id();
        let stat = stat_of(pid).unwrap();
        assert_eq!(process_start_time(pid), Some(stat.start_time));
        assert!(members(stat.session).contains(&stat.process));
        assert!(!members(u32::MAX).contains(&stat.process));
        assert!(!is_in_hook_environment(pid));
        assert_eq!(process_start_time(u32::MAX), None);
    }
}
