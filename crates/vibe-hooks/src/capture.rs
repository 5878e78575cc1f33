//! Keeps what an install hook prints, in memory that does not grow with the output.

use std::collections::VecDeque;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, Read, Write};
use std::path::Path;

use vibe_core::limits::{HOOK_LOG_END_BYTES, HOOK_TAIL_BYTES};

/// Bytes of one line handed on at once: a longer line comes in pieces.
pub(crate) const LINE_PIECE_BYTES: usize = 8 << 10;

/// Everything that is done with the bytes of one hook.
pub(crate) struct Capture {
    log: Option<Log>,
    log_error: Option<io::Error>,
    tail: Ring,
    lines: LineSplitter,
    bytes: u64,
}

/// What is left of the output at the end.
pub(crate) struct Captured {
    /// The last [`HOOK_TAIL_BYTES`].
    pub(crate) tail: Vec<u8>,
    /// How much there was.
    pub(crate) bytes: u64,
    /// Why the log is incomplete.
    pub(crate) log_error: Option<io::Error>,
}

impl Capture {
    /// Creates the log file, which must not exist yet, with mode 0644 less the umask.
    pub(crate) fn new(log: Option<&Path>) -> io::Result<Self> {
        Ok(Self {
            log: log.map(create_log).transpose()?.map(Log::new),
            log_error: None,
            tail: Ring::new(HOOK_TAIL_BYTES),
            lines: LineSplitter::default(),
            bytes: 0,
        })
    }

    /// Takes the next bytes and delivers the lines that they complete. A log that cannot be
    /// written is given up; the hook goes on.
    pub(crate) fn take(&mut self, chunk: &[u8], deliver: &mut dyn FnMut(&[u8])) {
        self.bytes += chunk.len() as u64;
        self.tail.push(chunk);
        self.lines.push(chunk, deliver);
        if let Some(Err(error)) = self.log.as_mut().map(|log| log.push(chunk)) {
            self.log_error = Some(error);
            self.log = None;
        }
    }

    /// Delivers a last line that has no end, and completes the log.
    pub(crate) fn finish(mut self, deliver: &mut dyn FnMut(&[u8])) -> Captured {
        self.lines.finish(deliver);
        if let Some(Err(error)) = self.log.map(Log::finish) {
            self.log_error = Some(error);
        }
        Captured {
            tail: self.tail.into_bytes(),
            bytes: self.bytes,
            log_error: self.log_error,
        }
    }
}

fn create_log(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.write(true).create_new(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o644);
    options.open(path)
}

/// A log of the first and the last [`HOOK_LOG_END_BYTES`]. The first go to `out` at once, the last
/// when the hook has ended.
struct Log<W = File> {
    out: W,
    room: usize,
    end: Ring,
}

impl<W: Write> Log<W> {
    fn new(out: W) -> Self {
        Self {
            out,
            room: HOOK_LOG_END_BYTES,
            end: Ring::new(HOOK_LOG_END_BYTES),
        }
    }

    fn push(&mut self, chunk: &[u8]) -> io::Result<()> {
        let (first, rest) = chunk.split_at(chunk.len().min(self.room));
        self.room -= first.len();
        self.end.push(rest);
        self.out.write_all(first)
    }

    fn finish(mut self) -> io::Result<()> {
        if self.end.dropped > 0 {
            let note = format!("\n[{} bytes of output left out]\n", self.end.dropped);
            self.out.write_all(note.as_bytes())?;
        }
        self.out.write_all(&self.end.into_bytes())?;
        self.out.flush()
    }
}

/// The last `capacity` bytes of what is pushed.
struct Ring {
    bytes: VecDeque<u8>,
    capacity: usize,
    dropped: u64,
}

impl Ring {
    fn new(capacity: usize) -> Self {
        Self {
            bytes: VecDeque::new(),
            capacity,
            dropped: 0,
        }
    }

    fn push(&mut self, chunk: &[u8]) {
        let excess = (self.bytes.len() + chunk.len()).saturating_sub(self.capacity);
        self.dropped += excess as u64;
        let from_old = excess.min(self.bytes.len());
        self.bytes.drain(..from_old);
        self.bytes.extend(&chunk[excess - from_old..]);
    }

    fn into_bytes(self) -> Vec<u8> {
        self.bytes.into()
    }
}

/// Cuts a byte stream into lines, and long lines into pieces.
#[derive(Default)]
struct LineSplitter {
    line: Vec<u8>,
    in_pieces: bool,
}

impl LineSplitter {
    fn push(&mut self, mut chunk: &[u8], deliver: &mut dyn FnMut(&[u8])) {
        while !chunk.is_empty() {
            let room = LINE_PIECE_BYTES - self.line.len();
            (&mut chunk)
                .take(room as u64)
                .read_until(b'\n', &mut self.line)
                .expect("reading from memory does not fail");
            if self.line.last() == Some(&b'\n') {
                self.line.pop();
                if !self.line.is_empty() || !self.in_pieces {
                    self.deliver(deliver);
                }
                self.in_pieces = false;
            } else if self.line.len() == LINE_PIECE_BYTES {
                self.deliver(deliver);
                self.in_pieces = true;
            }
        }
    }

    fn finish(&mut self, deliver: &mut dyn FnMut(&[u8])) {
        if !self.line.is_empty() {
            self.deliver(deliver);
        }
    }

    fn deliver(&mut self, deliver: &mut dyn FnMut(&[u8])) {
        deliver(&self.line);
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_lines(chunks: &[&[u8]], expected: &[&[u8]]) {
        let mut splitter = LineSplitter::default();
        let mut lines: Vec<Vec<u8>> = Vec::new();
        let mut keep = |line: &[u8]| lines.push(line.to_vec());
        for chunk in chunks {
            splitter.push(chunk, &mut keep);
        }
        splitter.finish(&mut keep);
        assert_eq!(lines, expected);
    }

    #[test]
    fn lines_come_whole_however_the_output_was_cut() {
        check_lines(&[b"one\ntwo\n"], &[b"one", b"two"]);
        check_lines(&[b"o", b"ne\nt", b"wo"], &[b"one", b"two"]);
        check_lines(&[b"\n\nx\n"], &[b"", b"", b"x"]);
        check_lines(&[b"a\0b\xFF\r\n"], &[b"a\0b\xFF\r"]);
        check_lines(&[], &[]);
    }

    #[test]
    fn a_long_line_comes_in_pieces() {
        let piece = vec![b'x'; LINE_PIECE_BYTES];
        let with_end = [&piece[..], b"\n\n"].concat();
        let longer = [&piece[..], b"y\nz"].concat();
        check_lines(&[&piece], &[&piece]);
        check_lines(&[&with_end], &[&piece, b""]);
        check_lines(&[&longer], &[&piece, b"y", b"z"]);
        check_lines(&[&piece, &piece, b"\n"], &[&piece, &piece]);
        check_lines(&[&piece[1..], b"\n"], &[&piece[1..]]);
        check_lines(&[b"x", &piece], &[&piece, b"x"]);
    }

    fn check_ring(chunks: &[&str], expected: &str, dropped: u64) {
        let mut ring = Ring::new(4);
        for chunk in chunks {
            ring.push(chunk.as_bytes());
        }
        assert_eq!(ring.dropped, dropped);
        assert_eq!(ring.into_bytes(), expected.as_bytes());
    }

    #[test]
    fn a_ring_keeps_the_last_bytes() {
        check_ring(&[], "", 0);
        check_ring(&["ab", "cd"], "abcd", 0);
        check_ring(&["ab", "cd", "e"], "bcde", 1);
        check_ring(&["ab", "cdefgh"], "efgh", 4);
        check_ring(&["abcdefgh"], "efgh", 4);
        check_ring(&["abcd", ""], "abcd", 0);
    }

    fn log_of(chunks: &[&[u8]]) -> Vec<u8> {
        let mut written = Vec::new();
        let mut log = Log::new(&mut written);
        for chunk in chunks {
            log.push(chunk).unwrap();
        }
        log.finish().unwrap();
        written
    }

    #[test]
    fn a_log_keeps_both_ends_and_says_what_is_missing() {
        let first = vec![b'a'; HOOK_LOG_END_BYTES];
        let last = vec![b'z'; HOOK_LOG_END_BYTES];
        let note = b"\n[1 bytes of output left out]\n";
        assert!(log_of(&[b"short\n", b"end"]) == b"short\nend");
        assert!(log_of(&[&first, &last]) == [&first[..], &last].concat());
        assert!(log_of(&[&first[1..], b"a", b"-", &last]) == [&first[..], note, &last].concat());
        let whole = [&first[..], b"-", &last].concat();
        assert!(log_of(&[&whole]) == [&first[..], note, &last].concat());
    }

    #[test]
    fn a_log_is_never_written_over() {
        let directory = tempfile::tempdir().unwrap();
        let log = directory.path().join("a.log");
        std::fs::write(&log, "old").unwrap();
        assert!(Capture::new(Some(&log)).is_err());
        assert_eq!(std::fs::read(&log).unwrap(), b"old");
    }

    #[test]
    fn a_log_that_cannot_be_written_is_reported_and_the_rest_goes_on() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.log");
        std::fs::write(&path, "").unwrap();
        let mut capture = Capture::new(None).unwrap();
        capture.log = Some(Log::new(File::open(&path).unwrap()));
        let mut lines = 0;
        capture.take(b"one\n", &mut |_| lines += 1);
        capture.take(b"two\n", &mut |_| lines += 1);
        let captured = capture.finish(&mut |_| lines += 1);
        assert_eq!((lines, captured.bytes), (2, 8));
        assert_eq!(captured.tail, b"one\ntwo\n");
        assert!(captured.log_error.is_some());
    }
}
