//! Answers from whoever sits at the terminal.

use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use vibe_core::Cancellation;

/// How often an interrupt is looked for while somebody thinks.
const POLL: Duration = Duration::from_millis(50);

/// Whether the next line of standard input says yes. An interrupt does not, nor does the end of the
/// input.
pub(crate) fn answered_yes(cancel: &Cancellation) -> bool {
    let (sender, line) = channel();
    // Nobody waits for the thread: one that still reads when the program ends goes with it.
    thread::spawn(move || {
        let mut line = String::new();
        let _ = std::io::stdin().read_line(&mut line);
        let _ = sender.send(line);
    });
    loop {
        match line.recv_timeout(POLL) {
            Ok(line) => return is_yes(&line),
            Err(RecvTimeoutError::Timeout) if !cancel.is_cancelled() => {}
            Err(_) => return false,
        }
    }
}

fn is_yes(line: &str) -> bool {
    let answer = line.trim();
    answer.eq_ignore_ascii_case("y") || answer.eq_ignore_ascii_case("yes")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_yes_is_one() {
        for yes in ["y\n", "Y", "yes\r\n", " YES "] {
            assert!(is_yes(yes), "{yes:?}");
        }
        for no in ["", "\n", "n\n", "yess", "of course"] {
            assert!(!is_yes(no), "{no:?}");
        }
    }
}
