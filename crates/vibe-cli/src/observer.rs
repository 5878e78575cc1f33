//! Shows a run while it works: progress, the output of install hooks, notes and warnings.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use indicatif::{HumanBytes, ProgressBar, ProgressDrawTarget, ProgressStyle};
use vibe_core::hook::Phase;
use vibe_core::text::escape;
use vibe_core::{Event, Observer, SlotName};
use vibe_install::sanitize_line;

use crate::output::Stream;
use crate::render::style::{DIM, WARNING, paint};

/// How often a waiting terminal is drawn anew.
const TICK: Duration = Duration::from_millis(100);

/// How much is said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verbosity {
    /// Warnings and errors.
    Quiet,
    /// What changed.
    Normal,
    /// Also what did not, and each step as it is taken.
    Verbose,
}

/// What a run said that belongs to its result.
#[derive(Debug, Clone, Default)]
pub(crate) struct Said {
    /// What the user should know.
    pub(crate) notes: Vec<String>,
    /// What the user should act on.
    pub(crate) warnings: Vec<String>,
}

/// Shows events on standard error. Notes and warnings of a run whose result is a JSON document go
/// into that instead.
pub(crate) struct Reporter<'a> {
    stderr: &'a Stream,
    verbosity: Verbosity,
    json: bool,
    progress: ProgressBar,
    said: Mutex<Said>,
}

impl<'a> Reporter<'a> {
    /// Shows on `stderr`; with progress if `on_terminal`.
    pub(crate) fn new(
        stderr: &'a Stream,
        verbosity: Verbosity,
        json: bool,
        on_terminal: bool,
    ) -> Self {
        let progress = match on_terminal && verbosity != Verbosity::Quiet {
            true => ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr()).with_style(
                ProgressStyle::with_template("{spinner} {wide_msg}")
                    .expect("the template has only known keys"),
            ),
            false => ProgressBar::hidden(),
        };
        Self {
            stderr,
            verbosity,
            json,
            progress,
            said: Mutex::default(),
        }
    }

    /// Takes progress off the terminal; gives what was said.
    pub(crate) fn finish(&self) -> Said {
        self.progress.finish_and_clear();
        self.said().clone()
    }

    /// Puts a question; the answer comes on the same line.
    pub(crate) fn ask(&self, question: &str) {
        self.progress.finish_and_clear();
        self.stderr.write(question);
    }

    fn said(&self) -> MutexGuard<'_, Said> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Writes a line above the progress.
    fn line(&self, text: &str) {
        self.progress
            .suspend(|| self.stderr.write(&format!("{text}\n")));
    }

    fn step(&self, text: String) {
        if self.verbosity == Verbosity::Verbose {
            self.line(&paint(DIM, &text));
        }
        if !self.progress.is_hidden() {
            self.progress.enable_steady_tick(TICK);
            self.progress.set_message(text);
        }
    }

    /// Shows how far a repository has come; only where progress is shown, for it comes often.
    fn receiving(&self, repository: &str, bytes: u64) {
        if !self.progress.is_hidden() {
            self.progress.enable_steady_tick(TICK);
            let size = HumanBytes(bytes);
            let text = format!("fetching {}: {size}", escape(repository));
            self.progress.set_message(text);
        }
    }

    fn hook_line(&self, slot: &SlotName, phase: Phase, line: &[u8]) {
        if self.verbosity != Verbosity::Quiet {
            let prefix = paint(DIM, &format!("{} {phase} |", slot.package()));
            self.line(&format!(
                "{prefix} {}",
                sanitize_line(line, self.stderr.has_colour())
            ));
        }
    }

    fn note(&self, text: &str) {
        let text = escape(text);
        if !self.json && self.verbosity != Verbosity::Quiet {
            self.line(&format!("note: {text}"));
        }
        self.said().notes.push(text);
    }

    /// Warns.
    pub(crate) fn warning(&self, text: &str) {
        let text = escape(text);
        if !self.json {
            self.line(&format!("{} {text}", paint(WARNING, "warning:")));
        }
        self.said().warnings.push(text);
    }
}

impl Observer for Reporter<'_> {
    fn observe(&self, event: &Event) {
        match event {
            Event::Waiting { pid, command } => {
                let text = format!("waiting for process {pid} to end: {}", escape(command));
                if self.verbosity != Verbosity::Quiet {
                    self.line(&text);
                }
            }
            Event::Resolving => self.step("resolving".to_owned()),
            Event::Fetching { package } => self.step(format!("reading {package}")),
            Event::Receiving { repository, bytes } => self.receiving(repository, *bytes),
            Event::Placing { slot } => self.step(format!("placing {}", slot.title())),
            Event::HookStarted {
                slot,
                phase,
                script,
                because,
            } => self.step(format!(
                "running the {phase} script of {}: {} ({})",
                slot.title(),
                escape(script.as_str()),
                because.as_str()
            )),
            Event::HookOutput { slot, phase, line } => self.hook_line(slot, *phase, line),
            Event::HookEnded {
                slot,
                phase,
                ending,
            } => {
                self.step(format!(
                    "the {phase} script of {} ended: {}",
                    slot.title(),
                    escape(ending)
                ));
            }
            Event::Note(text) => self.note(text),
            Event::Warning(text) => self.warning(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::slot;
    use std::io::{self, Write};
    use std::sync::Arc;

    #[derive(Clone, Default)]
    struct Shared(Arc<Mutex<Vec<u8>>>);

    impl Write for Shared {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn every_event() -> Vec<Event> {
        let slot = slot("org.example/a", "1.0.0");
        let phase = Phase::PreInstall;
        vec![
            Event::Waiting {
                pid: 7,
                command: "vibe install".to_owned(),
            },
            Event::Resolving,
            Event::HookOutput {
                slot: slot.clone(),
                phase,
                line: b"\x1b[31mred\x1b[2J".to_vec(),
            },
            Event::HookEnded {
                slot,
                phase,
                ending: "exit 3".to_owned(),
            },
            Event::Note("a\nb".to_owned()),
            Event::Warning("\u{1b}[2J".to_owned()),
        ]
    }

    fn shown(verbosity: Verbosity, json: bool) -> (String, Said) {
        let written = Shared::default();
        let stderr = Stream::new(Box::new(written.clone()), false);
        let reporter = Reporter::new(&stderr, verbosity, json, false);
        every_event()
            .iter()
            .for_each(|event| reporter.observe(event));
        let said = reporter.finish();
        let bytes = written.0.lock().unwrap().clone();
        (String::from_utf8(bytes).unwrap(), said)
    }

    #[test]
    fn events_are_lines_that_act_on_no_terminal() {
        let (text, said) = shown(Verbosity::Normal, false);
        assert_eq!(
            text,
            "waiting for process 7 to end: vibe install\n\
             org.example/a pre-install | \\x1B[31mred\\x1B[2J\n\
             note: a\\nb\n\
             warning: \\x1B[2J\n"
        );
        assert_eq!(
            (said.notes, said.warnings),
            (vec!["a\\nb".to_owned()], vec!["\\x1B[2J".to_owned()])
        );
    }

    #[test]
    fn quiet_leaves_warnings_and_verbose_adds_steps() {
        assert_eq!(shown(Verbosity::Quiet, false).0, "warning: \\x1B[2J\n");
        let (verbose, _) = shown(Verbosity::Verbose, false);
        assert!(verbose.contains("\nresolving\n"), "{verbose}");
        assert!(
            verbose.contains("\nthe pre-install script of org.example/a 1.0.0 ended: exit 3\n")
        );
    }

    #[test]
    fn with_json_notes_and_warnings_are_for_the_document() {
        let (text, said) = shown(Verbosity::Normal, true);
        assert!(
            !text.contains("note:") && !text.contains("warning:"),
            "{text}"
        );
        assert!(text.contains("org.example/a pre-install | "), "{text}");
        assert_eq!((said.notes.len(), said.warnings.len()), (1, 1));
    }
}
