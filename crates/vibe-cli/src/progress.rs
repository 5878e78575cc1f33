//! The one line at the end of a terminal that says what is being done, and is gone when it is done.

use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use console::Term;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle, TermLike};

use crate::render::cut;

/// How often the line is drawn anew.
const TICK: Duration = Duration::from_millis(100);
/// What is done sooner shows no progress: a line that comes and goes only flickers.
const DELAY: Duration = Duration::from_millis(150);
/// What is shown before anything is said.
const WORKING: &str = "working";
/// The width of a terminal that does not say how wide it is.
const USUAL_WIDTH: usize = 80;
/// Columns that the line leaves free at its end, where a terminal shows the `^C` of whoever
/// interrupts: past the end it would go on the next line, and the line could not be taken back.
const FREE_WIDTH: usize = 2;
/// Columns of the spinner and the space after it.
const SPINNER_WIDTH: usize = 2;

/// Progress, or none.
pub(crate) struct Progress {
    bar: ProgressBar,
    said: Arc<Mutex<Said>>,
    is_shown: bool,
}

/// What is being done.
#[derive(Debug, Clone)]
struct Said {
    text: String,
    /// Since when, where that is shown.
    since: Option<Instant>,
}

impl Progress {
    /// Progress on standard error if `is_shown`.
    pub(crate) fn new(is_shown: bool) -> Self {
        let said = Arc::new(Mutex::new(Said {
            text: WORKING.to_owned(),
            since: None,
        }));
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
            bar.set_draw_target(ProgressDrawTarget::term_like(Box::new(Narrowed {
                terminal: Term::buffered_stderr(),
            })));
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
        let room = width_of(&Term::stderr()).unwrap_or(USUAL_WIDTH);
        let room = room.saturating_sub(FREE_WIDTH + SPINNER_WIDTH);
        let shown = line(&lock(&said), Instant::now(), room);
        // Writing to a string does not fail.
        let _ = out.write_str(&shown);
    };
    ProgressStyle::with_template("{spinner} {text}")
        .expect("the template has only known keys")
        .with_key("text", text)
}

/// The text in that many columns; the time stays when the rest is cut.
fn line(said: &Said, now: Instant, room: usize) -> String {
    let took = said.since.map(|since| now.duration_since(since).as_secs());
    let took = took.filter(|seconds| *seconds > 0);
    let took = took
        .map(|seconds| format!(" {seconds}s"))
        .unwrap_or_default();
    cut(&said.text, room.saturating_sub(took.len())) + &took
}

/// The columns of `terminal`, if it is one. One that says it has none does not know.
pub(crate) fn width_of(terminal: &Term) -> Option<usize> {
    let (_, width) = terminal.size_checked()?;
    Some(usize::from(width)).filter(|columns| *columns > 0)
}

/// A terminal whose last columns are not used.
#[derive(Debug)]
struct Narrowed {
    terminal: Term,
}

impl TermLike for Narrowed {
    fn width(&self) -> u16 {
        let free = u16::try_from(FREE_WIDTH).unwrap_or_default();
        TermLike::width(&self.terminal).saturating_sub(free).max(1)
    }

    fn height(&self) -> u16 {
        TermLike::height(&self.terminal)
    }

    fn move_cursor_up(&self, lines: usize) -> io::Result<()> {
        self.terminal.move_cursor_up(lines)
    }

    fn move_cursor_down(&self, lines: usize) -> io::Result<()> {
        self.terminal.move_cursor_down(lines)
    }

    fn move_cursor_right(&self, columns: usize) -> io::Result<()> {
        self.terminal.move_cursor_right(columns)
    }

    fn move_cursor_left(&self, columns: usize) -> io::Result<()> {
        self.terminal.move_cursor_left(columns)
    }

    fn write_line(&self, text: &str) -> io::Result<()> {
        self.terminal.write_line(text)
    }

    fn write_str(&self, text: &str) -> io::Result<()> {
        self.terminal.write_str(text)
    }

    fn clear_line(&self) -> io::Result<()> {
        self.terminal.clear_line()
    }

    fn flush(&self) -> io::Result<()> {
        self.terminal.flush()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, seconds: Option<u64>, room: usize, expected: &str) {
        let since = Instant::now();
        let now = since + Duration::from_secs(seconds.unwrap_or(5));
        let said = Said {
            text: text.to_owned(),
            since: seconds.map(|_| since),
        };
        assert_eq!(line(&said, now, room), expected);
    }

    #[test]
    fn the_line_fits_its_terminal_and_keeps_the_time() {
        check(
            "fetching 1/2: org.example/a",
            None,
            80,
            "fetching 1/2: org.example/a",
        );
        check("fetching 1/2: org.example/a", None, 16, "fetching 1/2: o…");
        check("running a", Some(0), 80, "running a");
        check("running a", Some(61), 80, "running a 61s");
        check("running hooks/a.sh", Some(61), 16, "running hoo… 61s");
        check("漢字漢字", None, 6, "漢字…");
        check("running", Some(7), 0, "… 7s");
    }

    #[test]
    fn progress_that_nobody_sees_takes_nothing() {
        let progress = Progress::new(false);
        progress.say("x".to_owned());
        assert_eq!(lock(&progress.said).text, WORKING);
        let mut written = false;
        progress.above(|| written = true);
        progress.clear();
        assert!(written && !progress.is_shown());
    }
}
