//! Ends what is left of an install hook whose vibe was killed.
//!
//! A process number alone names nothing: it may have been given to another process since. The start
//! time that was noted with it tells. While any process of a session lives, the system gives the
//! session's number to no other; so when the number belongs to a process with another start time,
//! nothing of the hook is left. When it belongs to no process, a member of the session must show by
//! its environment that it is of an install hook.

use std::thread;
use std::time::{Duration, Instant};

use vibe_core::formats::state::RunningProcess;
use vibe_core::limits::HOOK_TERMINATE_SECONDS;

use crate::session::{
    NamedProcess, end_process, group_exists, is_in_hook_environment, members, stat_of,
};

/// How often we look whether the processes have gone.
const POLL: Duration = Duration::from_millis(10);

/// What became of an install hook that was not seen to end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Leftover {
    /// Nothing of it runs.
    Gone,
    /// These processes of it ran and have been ended.
    Ended(Vec<NamedProcess>),
    /// These processes of it run and could not be ended.
    Survived(Vec<NamedProcess>),
    /// It may still run: the system does not tell it from another process. Nothing was touched.
    Unknown,
}

/// Ends the session of the install hook `process`: asks its processes to end, and kills those that
/// have not after five seconds. `same_boot` says whether the hook was started under the boot that
/// runs now; nothing outlives a boot.
pub fn end_leftover_group(process: &RunningProcess, same_boot: bool) -> Leftover {
    let grace = Duration::from_secs(HOOK_TERMINATE_SECONDS);
    end_within(process, same_boot, grace)
}

fn end_within(process: &RunningProcess, same_boot: bool, grace: Duration) -> Leftover {
    if !same_boot {
        return Leftover::Gone;
    }
    let Some(start_time) = process.start_time else {
        // Only Unix tells that a group is gone.
        return match cfg!(unix) && !group_exists(process.pid) {
            true => Leftover::Gone,
            false => Leftover::Unknown,
        };
    };
    let leader_start = stat_of(process.pid).map(|stat| stat.start_time);
    let found = match leader_start {
        Some(found) if found != start_time => Vec::new(),
        Some(_) => members(process.pid),
        None => orphans(process.pid),
    };
    if found.is_empty() {
        return Leftover::Gone;
    }
    end_session(process.pid, found, grace)
}

/// The members of a session without leader, if one of them shows that it is an install hook's.
fn orphans(session: u32) -> Vec<NamedProcess> {
    let found = members(session);
    match found.iter().any(|one| is_in_hook_environment(one.pid)) {
        true => found,
        false => Vec::new(),
    }
}

/// Asks everything in `session` to end for `grace`, then kills for as long again. `found` is what
/// was in it at first.
fn end_session(session: u32, found: Vec<NamedProcess>, grace: Duration) -> Leftover {
    let started = Instant::now();
    let mut asked: Vec<u32> = Vec::new();
    loop {
        let alive = members(session);
        if alive.is_empty() {
            return Leftover::Ended(found);
        }
        let elapsed = started.elapsed();
        if elapsed >= 2 * grace {
            return Leftover::Survived(alive);
        }
        let by_force = elapsed >= grace;
        for one in alive {
            if by_force || !asked.contains(&one.pid) {
                end_process(one.pid, by_force);
                asked.push(one.pid);
            }
        }
        thread::sleep(POLL);
    }
}

#[cfg(test)]
#[cfg(target_os = "linux")]
mod tests {
    use std::collections::BTreeMap;
    use std::sync::mpsc::{Sender, channel};

    use vibe_core::Cancellation;

    use super::*;
    use crate::runner::{
        HookLimits, HookResult, HookRunner, HookStatus, HookWatcher, Invocation, SystemRunner,
    };

    const GRACE: Duration = Duration::from_millis(300);

    /// Sends the process once the hook has said that it is ready.
    struct WhenReady {
        process: Option<RunningProcess>,
        ready: Sender<RunningProcess>,
    }

    impl HookWatcher for WhenReady {
        fn started(&mut self, process: RunningProcess) {
            self.process = Some(process);
        }

        fn output(&mut self, line: &[u8]) {
            assert_eq!(line, b"ready");
            self.ready.send(self.process.unwrap()).unwrap();
        }
    }

    /// Runs `script`, and `meanwhile` once it has printed "ready".
    fn during<T>(
        script: &str,
        environment: &[(&str, &str)],
        meanwhile: impl FnOnce(RunningProcess, &Cancellation) -> T,
    ) -> (HookResult, T) {
        let invocation = Invocation {
            program: "/bin/bash".into(),
            arguments: ["-c", script].map(Into::into).to_vec(),
            directory: "/".into(),
            environment: environment
                .iter()
                .map(|(name, value)| (name.into(), value.into()))
                .collect::<BTreeMap<_, _>>(),
            limits: HookLimits {
                timeout: Duration::from_secs(20),
                ..HookLimits::default()
            },
            log: None,
        };
        let cancel = Cancellation::new();
        let (ready, when_ready) = channel();
        thread::scope(|scope| {
            let hook = scope.spawn(|| {
                let mut watcher = WhenReady {
                    process: None,
                    ready,
                };
                SystemRunner.run(&invocation, &mut watcher, &cancel)
            });
            let value = meanwhile(when_ready.recv().unwrap(), &cancel);
            (hook.join().unwrap().unwrap(), value)
        })
    }

    fn names(leftover: Leftover) -> Vec<String> {
        match leftover {
            Leftover::Ended(processes) => processes.into_iter().map(|one| one.name).collect(),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn a_hook_that_outlived_its_run_is_ended() {
        let (result, leftover) = during("echo ready; sleep 30; true", &[], |process, _| {
            end_within(&process, true, GRACE)
        });
        assert_eq!(result.status, HookStatus::Signalled(15));
        assert!(names(leftover).contains(&"bash".to_owned()));
    }

    #[test]
    fn a_hook_that_does_not_end_when_asked_is_killed() {
        let script = "trap '' TERM; echo ready; sleep 30; true";
        let (result, leftover) =
            during(script, &[], |process, _| end_within(&process, true, GRACE));
        assert_eq!(result.status, HookStatus::Signalled(9));
        assert!(names(leftover).contains(&"bash".to_owned()));
    }

    fn kill(process: RunningProcess, cancel: &Cancellation) {
        assert!(members(process.pid).iter().any(|one| one.name == "bash"));
        cancel.interrupt();
        cancel.interrupt();
    }

    #[test]
    fn another_process_with_the_same_number_is_not_touched() {
        let (result, leftover) = during("echo ready; sleep 30; true", &[], |process, cancel| {
            let other = RunningProcess {
                start_time: process.start_time.map(|time| time - 1),
                ..process
            };
            let leftover = end_within(&other, true, GRACE);
            kill(process, cancel);
            leftover
        });
        assert_eq!(leftover, Leftover::Gone);
        assert_eq!(result.status, HookStatus::Interrupted);
    }

    #[test]
    fn a_process_without_start_time_is_reported_and_not_touched() {
        let (_, leftovers) = during("echo ready; sleep 30; true", &[], |process, cancel| {
            let unknown = RunningProcess {
                start_time: None,
                ..process
            };
            let here = end_within(&unknown, true, GRACE);
            let earlier = end_within(&process, false, GRACE);
            kill(process, cancel);
            [here, earlier]
        });
        assert_eq!(leftovers, [Leftover::Unknown, Leftover::Gone]);
        let nobody = RunningProcess {
            pid: u32::MAX,
            start_time: None,
        };
        assert_eq!(end_within(&nobody, true, GRACE), Leftover::Gone);
    }

    const CHILD: &str = "sleep 30 >/dev/null 2>&1 & ";
    const BARE_CHILD: &str = "env -i sleep 30 >/dev/null 2>&1 & ";

    fn leave(children: &[&str], environment: &[(&str, &str)]) -> RunningProcess {
        let script = format!("{} echo ready", children.concat());
        let (result, process) = during(&script, environment, |process, _| process);
        let left = result.left_running.unwrap();
        assert!(!left.holds_output);
        assert_eq!(left.processes.len(), children.len());
        assert_eq!(result.status, HookStatus::Exited(0));
        process
    }

    #[test]
    fn what_a_dead_hook_left_is_ended() {
        let environment = [
            ("PATH", "/usr/bin:/bin"),
            ("VIBE_HOOK_PHASE", "pre-install"),
        ];
        let process = leave(&[CHILD, BARE_CHILD], &environment);
        assert_eq!(names(end_leftover_group(&process, true)).len(), 2);
        assert_eq!(end_leftover_group(&process, true), Leftover::Gone);
    }

    #[test]
    fn a_session_that_is_of_no_install_hook_is_not_touched() {
        let foreign = leave(&[CHILD], &[("NOT_VIBE_HOOK_PHASE", "x")]);
        assert_eq!(end_within(&foreign, true, GRACE), Leftover::Gone);
        let left = members(foreign.pid);
        assert_eq!(left.len(), 1);
        end_process(left[0].pid, true);
    }
}
