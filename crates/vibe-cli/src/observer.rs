//! Shows a run while it works: progress, the output of install hooks, notes and warnings.

use std::sync::{Mutex, MutexGuard, PoisonError};

use indicatif::HumanBytes;
use vibe_core::hook::Phase;
use vibe_core::text::escape;
use vibe_core::{Event, Observer, SlotName};
use vibe_install::sanitize_line;

use crate::output::Stream;
use crate::progress::Progress;
use crate::render::style::{DIM, NOTE, WARNING, paint};

/// Bytes of a line of an install hook that a terminal shows.
const HOOK_LINE_BYTES: usize = 1_000;

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

/// How far a run has come with what it does many times.
#[derive(Debug, Clone, Copy, Default)]
struct Counts {
    packages: usize,
    ready: usize,
    slots: usize,
    placed: usize,
}

impl Counts {
    /// What is said while packages are fetched; `what` may be empty.
    fn fetching(&self, what: &str) -> String {
        let counted = match self.packages {
            0 => "fetching".to_owned(),
            packages => format!("fetching {}/{packages}", self.ready.min(packages)),
        };
        match what {
            "" => counted,
            _ => format!("{counted}: {what}"),
        }
    }

    /// What is said while the slot `title` is placed.
    fn placing(&self, title: &str) -> String {
        let slots = self.slots.max(self.placed);
        format!("placing {}/{slots}: {title}", self.placed)
    }
}

/// An install hook.
type Hook = (SlotName, Phase);

/// Shows events on standard error. Notes and warnings of a run whose result is a JSON document go
/// into that instead.
pub(crate) struct Reporter<'a> {
    stderr: &'a Stream,
    verbosity: Verbosity,
    json: bool,
    progress: Progress,
    counts: Mutex<Counts>,
    said: Mutex<Said>,
    /// The install hook whose output is the last thing that hooks wrote.
    last_heard: Mutex<Option<Hook>>,
}

impl<'a> Reporter<'a> {
    /// Shows on `stderr`; with progress if `wants_progress`.
    pub(crate) fn new(
        stderr: &'a Stream,
        verbosity: Verbosity,
        json: bool,
        wants_progress: bool,
    ) -> Self {
        Self {
            stderr,
            verbosity,
            json,
            progress: Progress::new(wants_progress && verbosity != Verbosity::Quiet),
            counts: Mutex::default(),
            said: Mutex::default(),
            last_heard: Mutex::default(),
        }
    }

    /// Takes progress off the terminal; gives what was said.
    pub(crate) fn finish(&self) -> Said {
        self.progress.clear();
        lock(&self.said).clone()
    }

    /// Puts a question; the answer comes on the same line.
    pub(crate) fn ask(&self, question: &str) {
        self.progress.clear();
        self.stderr.write(question);
    }

    /// Whether what the install hook wrote is the last thing that hooks wrote, so that nobody has to
    /// be shown it again.
    pub(crate) fn was_heard_last(&self, slot: &SlotName, phase: Phase) -> bool {
        let last = lock(&self.last_heard);
        last.as_ref()
            .is_some_and(|last| *last == (slot.clone(), phase))
    }

    /// Writes a line above the progress.
    fn line(&self, text: &str) {
        self.progress
            .above(|| self.stderr.write(&format!("{text}\n")));
    }

    fn counts(&self, change: impl FnOnce(&mut Counts)) -> Counts {
        let mut counts = lock(&self.counts);
        change(&mut counts);
        *counts
    }

    fn step(&self, text: &str) {
        if self.verbosity == Verbosity::Verbose {
            self.line(&paint(DIM, text));
        }
    }

    fn packages(&self, change: impl FnOnce(&mut Counts), what: &str) {
        if self.progress.is_shown() {
            self.progress.say(self.counts(change).fetching(what));
        }
    }

    /// Shows how far a repository has come; only where progress is shown, for it comes often.
    fn receiving(&self, repository: &str, bytes: u64) {
        let size = HumanBytes(bytes);
        let what = format!("{} {size}", escape(repository));
        self.packages(|_| {}, &what);
    }

    fn placing(&self, slot: &SlotName) {
        self.step(&format!("placing {}", slot.title()));
        if self.progress.is_shown() {
            let counts = self.counts(|counts| counts.placed += 1);
            self.progress.say(counts.placing(&slot.title()));
        }
    }

    fn hook_started(&self, slot: &SlotName, phase: Phase, script: &str, because: &str) {
        let what = format!("the {phase} script of {}: {}", slot.title(), escape(script));
        self.step(&format!("running {what} ({because})"));
        let text = format!("running {phase} of {}", slot.package());
        self.progress.say_timed(text);
    }

    fn hook_ended(&self, slot: &SlotName, phase: Phase, ending: &str) {
        let ending = escape(ending);
        self.step(&format!(
            "the {phase} script of {} ended: {ending}",
            slot.title()
        ));
        self.progress.say("finishing".to_owned());
    }

    fn hook_line(&self, slot: &SlotName, phase: Phase, line: &[u8]) {
        if self.verbosity != Verbosity::Quiet {
            *lock(&self.last_heard) = Some((slot.clone(), phase));
            let prefix = paint(DIM, &format!("{} {phase} |", slot.package()));
            // A log keeps all of it; who looks on wants no more than a terminal has room for.
            let (line, more) = match self.progress.is_shown() {
                true => visible(line),
                false => (line, ""),
            };
            let shown = sanitize_line(line, self.stderr.has_colour());
            self.line(&format!("{prefix} {shown}{more}"));
        }
    }

    fn note(&self, text: &str) {
        let text = escape(text);
        if !self.json && self.verbosity != Verbosity::Quiet {
            self.line(&format!("{} {text}", paint(NOTE, "note:")));
        }
        lock(&self.said).notes.push(text);
    }

    /// Warns.
    pub(crate) fn warning(&self, text: &str) {
        let text = escape(text);
        if !self.json {
            self.line(&format!("{} {text}", paint(WARNING, "warning:")));
        }
        lock(&self.said).warnings.push(text);
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
            Event::Resolving => {
                self.step("resolving");
                self.progress.say("resolving".to_owned());
            }
            Event::Packages { count } => {
                self.packages(|counts| (counts.packages, counts.ready) = (*count, 0), "");
            }
            Event::PackageReady => self.packages(|counts| counts.ready += 1, ""),
            Event::Fetching { package } => {
                self.step(&format!("reading {package}"));
                self.packages(|_| {}, package.as_str());
            }
            Event::Receiving { repository, bytes } => self.receiving(repository, *bytes),
            Event::Slots { count } => {
                self.counts(|counts| (counts.slots, counts.placed) = (*count, 0));
            }
            Event::Placing { slot } => self.placing(slot),
            Event::HookStarted {
                slot,
                phase,
                script,
                because,
            } => self.hook_started(slot, *phase, script.as_str(), because.as_str()),
            Event::HookOutput { slot, phase, line } => self.hook_line(slot, *phase, line),
            Event::HookEnded {
                slot,
                phase,
                ending,
            } => self.hook_ended(slot, *phase, ending),
            Event::Note(text) => self.note(text),
            Event::Warning(text) => self.warning(text),
        }
    }
}

/// What a terminal would show of `line`: what was written after the last return to its start, cut
/// where it is long, with what stands for the rest.
fn visible(line: &[u8]) -> (&[u8], &'static str) {
    let mut written = line.split(|byte| *byte == b'\r').rev();
    let line = written.find(|part| !part.is_empty()).unwrap_or_default();
    if line.len() <= HOOK_LINE_BYTES {
        return (line, "");
    }
    let starts_character = |end: &usize| line[*end] & 0xC0 != 0x80;
    let end = (0..=HOOK_LINE_BYTES).rev().find(starts_character);
    (&line[..end.unwrap_or(HOOK_LINE_BYTES)], " …")
}

fn lock<T>(value: &Mutex<T>) -> MutexGuard<'_, T> {
    value.lock().unwrap_or_else(PoisonError::into_inner)
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
    fn progress_counts_packages_and_slots() {
        let mut counts = Counts::default();
        assert_eq!(
            counts.fetching("https://h/x 1 KiB"),
            "fetching: https://h/x 1 KiB"
        );
        (counts.packages, counts.ready) = (27, 12);
        assert_eq!(counts.fetching(""), "fetching 12/27");
        assert_eq!(counts.fetching("a.b/c"), "fetching 12/27: a.b/c");
        (counts.slots, counts.placed) = (27, 20);
        assert_eq!(counts.placing("a.b/c 1.0.0"), "placing 20/27: a.b/c 1.0.0");
        // A package that the store has lost is fetched and placed once more.
        (counts.ready, counts.placed) = (28, 28);
        assert_eq!(counts.fetching(""), "fetching 27/27");
        assert_eq!(counts.placing("a.b/c 1.0.0"), "placing 28/28: a.b/c 1.0.0");
    }

    #[test]
    fn events_are_counted_where_progress_is_shown() {
        let stderr = Stream::new(Box::new(Shared::default()), false);
        let reporter = Reporter::new(&stderr, Verbosity::Normal, true, true);
        let slot = slot("org.example/a", "1.0.0");
        for event in [
            Event::Packages { count: 3 },
            Event::PackageReady,
            Event::PackageReady,
            Event::Slots { count: 2 },
            Event::Placing { slot },
        ] {
            reporter.observe(&event);
        }
        let counts = reporter.counts(|_| {});
        assert_eq!((counts.ready, counts.packages), (2, 3));
        assert_eq!((counts.placed, counts.slots), (1, 2));
        reporter.finish();
    }

    #[test]
    fn a_line_shows_what_a_terminal_would() {
        let check = |line: &[u8], shown: &[u8], more| assert_eq!(visible(line), (shown, more));
        check(b"", b"", "");
        check(b"\r\r", b"", "");
        check(b"plain\r", b"plain", "");
        check(b"\r20%\r40%\r60%\r", b"60%", "");
        check(&[b'x'; HOOK_LINE_BYTES], &[b'x'; HOOK_LINE_BYTES], "");
        check(&[b'x'; 9_000], &[b'x'; HOOK_LINE_BYTES], " …");
        let wide = "é".repeat(HOOK_LINE_BYTES);
        check(wide.as_bytes(), &wide.as_bytes()[..HOOK_LINE_BYTES], " …");
        let odd = format!("x{wide}");
        check(odd.as_bytes(), &odd.as_bytes()[..HOOK_LINE_BYTES - 1], " …");
        check(&[0x80; 9_000], &[0x80; HOOK_LINE_BYTES], " …");
    }

    #[test]
    fn what_was_written_last_need_not_be_shown_again() {
        let written = Shared::default();
        let stderr = Stream::new(Box::new(written), false);
        let (one, other) = (slot("a.b/one", "1.0.0"), slot("a.b/other", "1.0.0"));
        let phase = Phase::PostInstall;
        for (verbosity, expected) in [(Verbosity::Normal, true), (Verbosity::Quiet, false)] {
            let reporter = Reporter::new(&stderr, verbosity, false, false);
            let output = |slot: &SlotName| Event::HookOutput {
                slot: slot.clone(),
                phase,
                line: b"x".to_vec(),
            };
            reporter.observe(&output(&one));
            assert_eq!(reporter.was_heard_last(&one, phase), expected);
            assert!(!reporter.was_heard_last(&one, Phase::PreInstall));
            reporter.observe(&output(&other));
            assert!(!reporter.was_heard_last(&one, phase));
        }
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
