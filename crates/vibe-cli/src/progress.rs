//! The one line at the end of a terminal that says what is being done, and is gone when it is done.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use terminal_size::terminal_size_of;

use crate::render::cut;

/// How often the line is drawn anew.
const TICK: Duration = Duration::from_millis(100);
/// What is done sooner shows no progress: a line that comes and goes only flickers.
const DELAY: Duration = Duration::from_millis(150);
/// The width of a terminal that does not say how wide it is.
const USUAL_WIDTH: usize = 80;
/// Columns that the text leaves free: the spinner, its space, and the `^C` of whoever interrupts.
const FREE_WIDTH: usize = 4;

/// Progress, or none.
pub(crate) struct Progress {
    bar: ProgressBar,
    said: Arc<Mutex<Said>>,
    is_shown: bool,
}

/// What is being done.
#[derive(Debug, Clone, Default)]
struct Said {
    text: String,
    /// Since when, where that is shown.
    since: Option<Instant>,
}

impl Progress {
    /// Progress on standard error if `is_shown`.
    pub(crate) fn new(is_shown: bool) -> Self {
        let said = Arc::<Mutex<Said>>::default();
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::hidden());
        let progress = Self {
            bar: bar.with_style(style(said.clone())),
            said,
            is_shown,
        };
        if is_shown {
            progress.start_later();
        }
        progress
    }

    /// Whether anybody sees it.
    pub(crate) fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// Says what is being done.
    pub(crate) fn say(&self, text: String) {
        self.set(Said { text, since: None });
    }

    /// The same, with the time that it takes.
    pub(crate) fn say_timed(&self, text: String) {
        let since = Some(Instant::now());
        self.set(Said { text, since });
    }

    /// Writes with `write` above the line.
    pub(crate) fn above(&self, write: impl FnOnce()) {
        self.bar.suspend(write);
    }

    /// Takes the line off the terminal until something is said again.
    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }

    fn start_later(&self) {
        let bar = self.bar.clone();
        // Nobody waits for the thread: one that still sleeps when the program ends goes with it.
        thread::spawn(move || {
            thread::sleep(DELAY);
            bar.set_draw_target(ProgressDrawTarget::stderr());
            bar.enable_steady_tick(TICK);
        });
    }

    fn set(&self, said: Said) {
        if !self.is_shown {
            return;
        }
        *lock(&self.said) = said;
        if self.bar.is_finished() {
            self.bar.reset();
            self.bar.enable_steady_tick(TICK);
        }
    }
}

fn lock(said: &Mutex<Said>) -> MutexGuard<'_, Said> {
    said.lock().unwrap_or_else(PoisonError::into_inner)
}

fn style(said: Arc<Mutex<Said>>) -> ProgressStyle {
    let text = move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
        let width = terminal_size_of(std::io::stderr()).map(|(width, _)| usize::from(width.0));
        let width = width.filter(|width| *width > 0).unwrap_or(USUAL_WIDTH);
        let shown = line(&lock(&said), Instant::now(), width);
        // Writing to a string does not fail.
        let _ = out.write_str(&shown);
    };
    ProgressStyle::with_template("{spinner} {text}")
        .expect("the template has only known keys")
        .with_key("text", text)
}

/// The line for a terminal of that width; the time stays when the text is cut.
fn line(said: &Said, now: Instant, width: usize) -> String {
    let took = said.since.map(|since| now.duration_since(since).as_secs());
    let took = took.filter(|seconds| *seconds > 0);
    let took = took
        .map(|seconds| format!(" {seconds}s"))
        .unwrap_or_default();
    let room = width.saturating_sub(FREE_WIDTH + took.len());
    cut(&said.text, room) + &took
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, seconds: Option<u64>, width: usize, expected: &str) {
        let since = Instant::now();
        let now = since + Duration::from_secs(seconds.unwrap_or(5));
        let said = Said {
            text: text.to_owned(),
            since: seconds.map(|_| since),
        };
        assert_eq!(line(&said, now, width), expected);
    }

    #[test]
    fn the_line_fits_its_terminal_and_keeps_the_time() {
        check(
            "fetching 1/2: org.example/a",
            None,
            80,
            "fetching 1/2: org.example/a",
        );
        check("fetching 1/2: org.example/a", None, 20, "fetching 1/2: o…");
        check("running a", Some(0), 80, "running a");
        check("running a", Some(61), 80, "running a 61s");
        check("running hooks/a.sh", Some(61), 20, "running hoo… 61s");
        check("漢字漢字", None, 10, "漢字…");
        check("running", Some(7), 0, "… 7s");
    }

    #[test]
    fn progress_that_nobody_sees_takes_nothing() {
        let progress = Progress::new(false);
        progress.say("x".to_owned());
        assert_eq!(lock(&progress.said).text, "");
        let mut written = false;
        progress.above(|| written = true);
        progress.clear();
        assert!(written && !progress.is_shown());
    }
}
