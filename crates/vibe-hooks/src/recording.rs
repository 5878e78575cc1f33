//! A runner for tests: it starts nothing, keeps what it was asked to start, and answers as told.

use std::collections::VecDeque;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use vibe_core::Cancellation;

use crate::runner::{HookResult, HookRunner, HookStartError, HookStatus, HookWatcher, Invocation};

/// Records invocations. Its clones of results are given out in order; after the last, every hook
/// ends with exit code 0.
#[derive(Debug, Default)]
pub struct RecordingRunner {
    invocations: Mutex<Vec<Invocation>>,
    results: Mutex<VecDeque<HookResult>>,
}

impl RecordingRunner {
    /// A runner that answers with `results`.
    pub fn new(results: impl IntoIterator<Item = HookResult>) -> Self {
        Self {
            invocations: Mutex::default(),
            results: Mutex::new(results.into_iter().collect()),
        }
    }

    /// What it was asked to run so far, in order.
    pub fn invocations(&self) -> Vec<Invocation> {
        let invocations = self.invocations.lock();
        invocations.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The result of a hook that ended with `status` at once and printed `output`.
pub fn result(status: HookStatus, output: &str) -> HookResult {
    HookResult {
        status,
        duration: Duration::ZERO,
        tail: output.into(),
        left_running: None,
        output_bytes: output.len() as u64,
        log_error: None,
    }
}

impl HookRunner for RecordingRunner {
    /// Hands the lines of the result's tail to `watcher`. No process is started, so none is told.
    fn run(
        &self,
        invocation: &Invocation,
        watcher: &mut dyn HookWatcher,
        cancel: &Cancellation,
    ) -> Result<HookResult, HookStartError> {
        if cancel.is_cancelled() {
            return Err(HookStartError::Interrupted);
        }
        let mut invocations = self
            .invocations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        invocations.push(invocation.clone());
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        let result = results
            .pop_front()
            .unwrap_or_else(|| result(HookStatus::Exited(0), ""));
        result
            .tail
            .split_inclusive(|byte| *byte == b'\n')
            .for_each(|line| watcher.output(line.strip_suffix(b"\n").unwrap_or(line)));
        Ok(result)
    }
}

#[cfg(test)]
mod tests {
    use vibe_core::formats::state::RunningProcess;

    use super::*;
    use crate::runner::HookLimits;

    struct Lines(Vec<Vec<u8>>);

    impl HookWatcher for Lines {
        fn started(&mut self, process: RunningProcess) {
            panic!("{process:?} was started");
        }

        fn output(&mut self, line: &[u8]) {
            self.0.push(line.to_vec());
        }
    }

    #[test]
    fn a_recording_runner_answers_in_order_and_keeps_what_it_was_asked() {
        let failed = result(HookStatus::Exited(3), "one\n\ntwo");
        let runner = RecordingRunner::new([failed.clone()]);
        let mut invocation = Invocation {
            program: "/bin/bash".into(),
            arguments: vec!["a.sh".into()],
            directory: "/slot".into(),
            environment: [("A".into(), "1".into())].into(),
            limits: HookLimits::default(),
            log: None,
        };
        let first = invocation.clone();
        let mut lines = Lines(Vec::new());
        let cancel = Cancellation::new();
        let answer = runner.run(&invocation, &mut lines, &cancel).unwrap();
        assert_eq!(answer, failed);
        assert_eq!(answer.output_bytes, 8);
        invocation.arguments = vec!["b.sh".into()];
        let answer = runner.run(&invocation, &mut lines, &cancel).unwrap();
        assert_eq!(answer, result(HookStatus::Exited(0), ""));
        assert_eq!(lines.0, [&b"one"[..], b"", b"two"]);
        cancel.interrupt();
        assert!(matches!(
            runner.run(&invocation, &mut lines, &cancel),
            Err(HookStartError::Interrupted)
        ));
        assert_eq!(runner.invocations(), [first, invocation]);
    }
}
