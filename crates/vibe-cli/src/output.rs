//! Standard output and standard error, written so that a reader who is gone, slow or full never
//! takes a run down.

use std::io::{self, ErrorKind, Write};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use anstream::AutoStream;
use anstream::adapter::strip_str;

/// How long to wait for a reader of a stream that does not block.
const READER_WAIT: Duration = Duration::from_millis(2);

/// One stream. The first failed write ends it; what comes after is dropped.
pub(crate) struct Stream {
    colour: bool,
    state: Mutex<State>,
}

struct State {
    writer: Box<dyn Write + Send>,
    failure: Option<io::Error>,
}

impl Stream {
    /// Standard output, with or without colour.
    pub(crate) fn stdout(colour: bool) -> Self {
        match colour {
            true => Self::new(Box::new(AutoStream::always(io::stdout())), true),
            false => Self::new(Box::new(io::stdout()), false),
        }
    }

    /// Standard error, with or without colour.
    pub(crate) fn stderr(colour: bool) -> Self {
        match colour {
            true => Self::new(Box::new(AutoStream::always(io::stderr())), true),
            false => Self::new(Box::new(io::stderr()), false),
        }
    }

    /// A stream into `writer`.
    pub(crate) fn new(writer: Box<dyn Write + Send>, colour: bool) -> Self {
        Self {
            colour,
            state: Mutex::new(State {
                writer,
                failure: None,
            }),
        }
    }

    /// Whether colour is shown.
    pub(crate) fn has_colour(&self) -> bool {
        self.colour
    }

    /// Writes all of `text`, without its styles where there is no colour.
    pub(crate) fn write(&self, text: &str) {
        let plain;
        let text = match self.colour {
            true => text,
            false => {
                plain = strip_str(text).to_string();
                &plain
            }
        };
        let mut state = self.lock();
        if state.failure.is_some() {
            return;
        }
        state.failure = write_all(state.writer.as_mut(), text.as_bytes()).err();
    }

    /// Why not everything was written, unless the reader had simply seen enough.
    pub(crate) fn failure(&self) -> Option<String> {
        let state = self.lock();
        let failure = state.failure.as_ref()?;
        (failure.kind() != ErrorKind::BrokenPipe).then(|| failure.to_string())
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Writes and flushes `bytes`. Another process may have made the stream non-blocking, so a full
/// pipe is waited for.
fn write_all(writer: &mut dyn Write, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match patiently(|| writer.write(bytes))? {
            0 => return Err(ErrorKind::WriteZero.into()),
            written => bytes = &bytes[written..],
        }
    }
    patiently(|| writer.flush())
}

fn patiently<T>(mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match attempt() {
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(READER_WAIT),
            ended => return ended,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    /// Takes three bytes at a time, refuses every second call, and fails for good after `limit`
    /// bytes.
    struct Reluctant {
        taken: Arc<Mutex<Vec<u8>>>,
        calls: usize,
        limit: usize,
        failure: ErrorKind,
    }

    impl Write for Reluctant {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.calls += 1;
            let mut taken = self.taken.lock().unwrap();
            match self.calls % 3 {
                1 => Err(ErrorKind::WouldBlock.into()),
                2 => Err(ErrorKind::Interrupted.into()),
                _ if taken.len() >= self.limit => Err(self.failure.into()),
                _ => {
                    let count = bytes.len().min(3);
                    taken.extend_from_slice(&bytes[..count]);
                    Ok(count)
                }
            }
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn reluctant(limit: usize, failure: ErrorKind, colour: bool) -> (Stream, Arc<Mutex<Vec<u8>>>) {
        let taken = Arc::new(Mutex::new(Vec::new()));
        let writer = Reluctant {
            taken: taken.clone(),
            calls: 0,
            limit,
            failure,
        };
        (Stream::new(Box::new(writer), colour), taken)
    }

    #[test]
    fn a_slow_reader_gets_everything() {
        let (stream, taken) = reluctant(usize::MAX, ErrorKind::Other, false);
        stream.write("one two three\n");
        stream.write("four\n");
        assert_eq!(*taken.lock().unwrap(), b"one two three\nfour\n");
        assert_eq!(stream.failure(), None);
    }

    #[test]
    fn a_reader_who_left_is_no_failure_and_gets_no_more() {
        let (stream, taken) = reluctant(3, ErrorKind::BrokenPipe, false);
        stream.write("abcdef");
        stream.write("ghi");
        assert_eq!(*taken.lock().unwrap(), b"abc");
        assert_eq!(stream.failure(), None);
    }

    #[test]
    fn any_other_failure_is_told() {
        let (stream, _) = reluctant(3, ErrorKind::StorageFull, false);
        stream.write("abcdef");
        assert!(stream.failure().is_some());
    }

    #[test]
    fn styles_are_written_only_where_there_is_colour() {
        for (colour, expected) in [(false, "x\n"), (true, "\u{1b}[1mx\u{1b}[0m\n")] {
            let (stream, taken) = reluctant(usize::MAX, ErrorKind::Other, colour);
            stream.write("\u{1b}[1mx\u{1b}[0m\n");
            assert_eq!(*taken.lock().unwrap(), expected.as_bytes());
            assert_eq!(stream.has_colour(), colour);
        }
    }
}
