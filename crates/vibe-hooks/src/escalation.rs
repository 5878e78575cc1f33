//! When a running install hook is asked to end, made to end, and given up: time and interrupts in,
//! the next thing to do out.

use std::time::Duration;

use vibe_core::limits::{HOOK_PIPE_SECONDS, HOOK_TERMINATE_SECONDS, HOOK_TIMEOUT_SECONDS};

/// How long things may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookLimits {
    /// The hook itself.
    pub timeout: Duration,
    /// From asking it to end until it is killed.
    pub terminate_grace: Duration,
    /// From its end until we stop waiting for others that hold its output.
    pub pipe_grace: Duration,
}

impl Default for HookLimits {
    fn default() -> Self {
        Self {
            timeout: Duration::from_secs(HOOK_TIMEOUT_SECONDS),
            terminate_grace: Duration::from_secs(HOOK_TERMINATE_SECONDS),
            pipe_grace: Duration::from_secs(HOOK_PIPE_SECONDS),
        }
    }
}

/// How an install hook ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HookStatus {
    /// With this exit code.
    Exited(i32),
    /// Killed by this signal, which we did not send.
    Signalled(i32),
    /// It reached its time limit and we ended it, whatever it answered.
    TimedOut,
    /// The user interrupted the run, whatever the hook made of that.
    Interrupted,
}

/// What to do to the hook's process group.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Action {
    /// Pass the user's interrupt on.
    Interrupt,
    /// Ask it to end.
    Terminate,
    /// Make it end.
    Kill,
    /// Wait no longer: it cannot be killed.
    GiveUp,
}

/// How far the ending of one hook has come.
pub(crate) struct Escalation {
    limits: HookLimits,
    stage: Stage,
    deadline: Duration,
    interrupt_sent: bool,
    cause: Option<HookStatus>,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Stage {
    Running,
    Terminating,
    Killed,
}

impl Escalation {
    /// For a hook that has just been started.
    pub(crate) fn new(limits: HookLimits) -> Self {
        Self {
            limits,
            stage: Stage::Running,
            deadline: limits.timeout,
            interrupt_sent: false,
            cause: None,
        }
    }

    /// Why we ended the hook; `None` while it runs freely. The first cause counts.
    pub(crate) fn cause(&self) -> Option<HookStatus> {
        self.cause
    }

    /// Whether the whole group has to go, not only its main process.
    pub(crate) fn is_ending_group(&self) -> bool {
        self.stage != Stage::Running
    }

    /// What is due when the hook has run for `elapsed` and the user interrupted `interrupts` times.
    /// Each action comes once.
    pub(crate) fn step(&mut self, elapsed: Duration, interrupts: usize) -> Option<Action> {
        if interrupts > 0 {
            self.cause.get_or_insert(HookStatus::Interrupted);
        }
        if interrupts > 1 && self.stage != Stage::Killed {
            return Some(self.kill(elapsed));
        }
        if interrupts > 0 && !self.interrupt_sent {
            self.interrupt_sent = true;
            return Some(Action::Interrupt);
        }
        if elapsed < self.deadline {
            return None;
        }
        Some(match self.stage {
            Stage::Running => self.terminate(elapsed),
            Stage::Terminating => self.kill(elapsed),
            Stage::Killed => Action::GiveUp,
        })
    }

    fn terminate(&mut self, elapsed: Duration) -> Action {
        self.cause.get_or_insert(HookStatus::TimedOut);
        self.stage = Stage::Terminating;
        self.deadline = elapsed + self.limits.terminate_grace;
        Action::Terminate
    }

    fn kill(&mut self, elapsed: Duration) -> Action {
        self.stage = Stage::Killed;
        self.deadline = elapsed + self.limits.terminate_grace;
        Action::Kill
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps of (milliseconds, interrupts, action) with a limit of 100 ms and a grace of 10 ms.
    fn check(
        steps: &[(u64, usize, Option<Action>)],
        cause: Option<HookStatus>,
        ending_group: bool,
    ) {
        let mut escalation = Escalation::new(HookLimits {
            timeout: Duration::from_millis(100),
            terminate_grace: Duration::from_millis(10),
            pipe_grace: Duration::ZERO,
        });
        for (elapsed_ms, interrupts, action) in steps {
            let elapsed = Duration::from_millis(*elapsed_ms);
            assert_eq!(
                escalation.step(elapsed, *interrupts),
                *action,
                "at {elapsed_ms} ms"
            );
        }
        assert_eq!(escalation.cause(), cause);
        assert_eq!(escalation.is_ending_group(), ending_group);
    }

    #[test]
    fn a_hook_within_its_limit_is_left_alone() {
        check(&[(0, 0, None), (99, 0, None)], None, false);
    }

    #[test]
    fn a_hook_beyond_its_limit_is_asked_then_killed_then_given_up() {
        check(
            &[
                (100, 0, Some(Action::Terminate)),
                (101, 0, None),
                (109, 0, None),
                (110, 0, Some(Action::Kill)),
                (119, 0, None),
                (120, 0, Some(Action::GiveUp)),
            ],
            Some(HookStatus::TimedOut),
            true,
        );
    }

    #[test]
    fn the_first_interrupt_is_passed_on_and_the_hook_keeps_its_limit() {
        let interrupted = Some(HookStatus::Interrupted);
        let first = [(5, 1, Some(Action::Interrupt)), (6, 1, None), (99, 1, None)];
        check(&first, interrupted, false);
        let late = [
            (5, 1, Some(Action::Interrupt)),
            (100, 1, Some(Action::Terminate)),
            (110, 1, Some(Action::Kill)),
        ];
        check(&late, interrupted, true);
    }

    #[test]
    fn a_second_interrupt_kills_at_once() {
        let interrupted = Some(HookStatus::Interrupted);
        let second = [
            (5, 1, Some(Action::Interrupt)),
            (6, 2, Some(Action::Kill)),
            (7, 3, None),
            (15, 3, None),
            (16, 3, Some(Action::GiveUp)),
        ];
        check(&second, interrupted, true);
        let both = [(5, 2, Some(Action::Kill)), (6, 2, Some(Action::Interrupt))];
        check(&both, interrupted, true);
    }

    #[test]
    fn an_interrupt_after_the_limit_does_not_change_the_cause() {
        check(
            &[
                (100, 0, Some(Action::Terminate)),
                (101, 1, Some(Action::Interrupt)),
                (102, 2, Some(Action::Kill)),
            ],
            Some(HookStatus::TimedOut),
            true,
        );
    }
}
