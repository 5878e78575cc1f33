//! A transfer under supervision: it works in a thread of its own, and the caller's thread sees to
//! progress, interrupts and servers that say nothing.
//!
//! Whatever waits for a server says so ([`Watch::waiting`], [`Watched`]), so that the time in which
//! we work ourselves never counts as silence. A transfer that is stopped is woken where it waits,
//! and given up if even that does not end it.

use std::io::{self, Read};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, sync_channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use vibe_core::Cancellation;

use crate::error::{Cause, GitError};

/// How often interrupts and silence are looked at.
const TICK: Duration = Duration::from_millis(100);
/// How long a stopped transfer may take to end by itself.
const GRACE: Duration = Duration::from_millis(700);
/// Bytes of everything but objects that one transfer may bring: a million references fit.
const TALK_BYTES: u64 = 256 << 20;

type Stopper = Box<dyn FnOnce() + Send>;

/// What both threads of a transfer share.
pub(crate) struct Watch {
    received: AtomicU64,
    limit: AtomicU64,
    waiting_since: Mutex<Option<Instant>>,
    stopped: AtomicBool,
    stoppers: Mutex<Vec<Stopper>>,
    failure: Mutex<Option<GitError>>,
}

impl Watch {
    pub(crate) fn new() -> Arc<Self> {
        Arc::new(Self {
            received: AtomicU64::new(0),
            limit: AtomicU64::new(TALK_BYTES),
            waiting_since: Mutex::new(None),
            stopped: AtomicBool::new(false),
            stoppers: Mutex::default(),
            failure: Mutex::new(None),
        })
    }

    /// Does what waits for somebody else.
    pub(crate) fn waiting<T>(&self, act: impl FnOnce() -> T) -> T {
        *lock(&self.waiting_since) = Some(Instant::now());
        let result = act();
        *lock(&self.waiting_since) = None;
        result
    }

    /// Raised when the transfer has to end.
    pub(crate) fn stopped(&self) -> &AtomicBool {
        &self.stopped
    }

    /// `stopper` is called when the transfer has to end, to wake what waits.
    pub(crate) fn on_stop(&self, stopper: impl FnOnce() + Send + 'static) {
        lock(&self.stoppers).push(Box::new(stopper));
        if self.stopped.load(Ordering::SeqCst) {
            self.stop();
        }
    }

    /// Keeps the first reason why the transfer fails, since what passes through the library loses
    /// its type. Returns what is told to the library.
    pub(crate) fn fail(&self, error: GitError) -> io::Error {
        lock(&self.failure).get_or_insert(error);
        io::Error::other("the transfer failed")
    }

    /// The first reason why the transfer failed, if one is known.
    pub(crate) fn take_failure(&self) -> Option<GitError> {
        lock(&self.failure).take()
    }

    /// From now on objects come: so many bytes more may be received.
    pub(crate) fn expect_bytes(&self, bytes: u64) {
        let limit = self.received.load(Ordering::Relaxed).saturating_add(bytes);
        self.limit.store(limit, Ordering::Relaxed);
    }

    fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        let stoppers = std::mem::take(&mut *lock(&self.stoppers));
        stoppers.into_iter().for_each(|stopper| stopper());
    }

    fn is_silent(&self, limit: Duration) -> bool {
        let since = *lock(&self.waiting_since);
        since.is_some_and(|since| since.elapsed() > limit)
    }

    fn count(&self, bytes: usize) -> io::Result<()> {
        let bytes = u64::try_from(bytes).unwrap_or(u64::MAX);
        let before = self.received.fetch_add(bytes, Ordering::Relaxed);
        match before.saturating_add(bytes) > self.limit.load(Ordering::Relaxed) {
            false => Ok(()),
            true => Err(io::Error::other(
                "the server sends more than may be received",
            )),
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A reader whose bytes are counted and whose waiting is seen.
pub(crate) struct Watched<R> {
    inner: R,
    watch: Arc<Watch>,
}

impl<R> Watched<R> {
    pub(crate) fn new(inner: R, watch: &Arc<Watch>) -> Self {
        Self {
            inner,
            watch: Arc::clone(watch),
        }
    }
}

impl<R: Read> Read for Watched<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let inner = &mut self.inner;
        let bytes = self.watch.waiting(|| inner.read(buffer))?;
        self.watch.count(bytes)?;
        Ok(bytes)
    }
}

/// What the caller of a transfer has a say in.
pub(crate) struct Supervisor<'a> {
    /// The repository, for errors.
    pub(crate) repository: &'a str,
    /// The host, for errors.
    pub(crate) host: &'a str,
    /// Whether the user interrupted.
    pub(crate) cancel: &'a Cancellation,
    /// Told how many bytes have come.
    pub(crate) progress: &'a dyn Fn(u64),
    /// How long a server may say nothing.
    pub(crate) silence: Duration,
}

impl Supervisor<'_> {
    /// Runs `work` in another thread and sees it to its end.
    ///
    /// # Errors
    /// That of `work`, [`GitError::Interrupted`], [`GitError::Stalled`].
    pub(crate) fn run<T: Send + 'static>(
        &self,
        watch: &Arc<Watch>,
        work: impl FnOnce() -> Result<T, GitError> + Send + 'static,
    ) -> Result<T, GitError> {
        if self.cancel.is_cancelled() {
            return Err(self.interrupted());
        }
        let (sender, receiver) = sync_channel(1);
        let started = thread::Builder::new()
            .name("git transfer".to_owned())
            // Nobody listens any more when the transfer was given up.
            .spawn(move || drop(sender.send(work())));
        if let Err(error) = started {
            return Err(self.failed(&error.to_string()));
        }
        loop {
            let outcome = receiver.recv_timeout(TICK);
            (self.progress)(watch.received.load(Ordering::Relaxed));
            match outcome {
                Ok(result) => return result,
                Err(RecvTimeoutError::Disconnected) => {
                    return Err(self.failed("the transfer ended without a result"));
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
            if let Some(verdict) = self.verdict(watch) {
                watch.stop();
                let _ = receiver.recv_timeout(GRACE);
                return Err(verdict);
            }
        }
    }

    fn verdict(&self, watch: &Watch) -> Option<GitError> {
        if self.cancel.is_cancelled() {
            return Some(self.interrupted());
        }
        watch.is_silent(self.silence).then(|| GitError::Stalled {
            host: self.host.to_owned(),
            repository: self.repository.to_owned(),
            limit: self.silence,
        })
    }

    fn interrupted(&self) -> GitError {
        GitError::Interrupted {
            repository: self.repository.to_owned(),
        }
    }

    fn failed(&self, text: &str) -> GitError {
        GitError::Transfer {
            repository: self.repository.to_owned(),
            source: Cause::new(text),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn supervisor<'a>(cancel: &'a Cancellation, silence: Duration) -> Supervisor<'a> {
        Supervisor {
            repository: "https://host/x",
            host: "host",
            cancel,
            progress: &|_| {},
            silence,
        }
    }

    /// Waits until the transfer is stopped.
    fn wait_for_stop(watch: &Arc<Watch>) -> Result<(), GitError> {
        let (sender, receiver) = sync_channel(1);
        watch.on_stop(move || sender.send(()).unwrap());
        watch.waiting(|| receiver.recv().unwrap());
        assert!(watch.stopped().load(Ordering::SeqCst));
        Ok(())
    }

    #[test]
    fn what_works_without_waiting_is_never_silent() {
        let cancel = Cancellation::new();
        let watch = Watch::new();
        let result = supervisor(&cancel, Duration::ZERO).run(&watch, || {
            let until = Instant::now() + TICK * 3;
            while Instant::now() < until {
                std::hint::spin_loop();
            }
            Ok(7)
        });
        assert_eq!(result.unwrap(), 7);
    }

    #[test]
    fn silence_ends_a_transfer_and_wakes_it() {
        let cancel = Cancellation::new();
        let watch = Watch::new();
        let (ended, has_ended) = sync_channel(1);
        let shared = Arc::clone(&watch);
        let error = supervisor(&cancel, Duration::from_millis(1))
            .run(&watch, move || {
                let result = wait_for_stop(&shared);
                ended.send(()).unwrap();
                result
            })
            .unwrap_err();
        assert!(matches!(error, GitError::Stalled { .. }), "{error}");
        has_ended.recv().unwrap();
    }

    #[test]
    fn an_interrupt_ends_a_transfer_and_starts_none() {
        let cancel = Cancellation::new();
        let watch = Watch::new();
        let (shared, raised) = (Arc::clone(&watch), cancel.clone());
        let error = supervisor(&cancel, Duration::from_secs(60))
            .run(&watch, move || {
                raised.interrupt();
                wait_for_stop(&shared)
            })
            .unwrap_err();
        assert!(matches!(error, GitError::Interrupted { .. }), "{error}");
        let error = supervisor(&cancel, Duration::from_secs(60))
            .run(&Watch::new(), || -> Result<(), _> { panic!("started") })
            .unwrap_err();
        assert!(matches!(error, GitError::Interrupted { .. }), "{error}");
    }

    #[test]
    fn a_server_that_sends_without_end_is_cut_off() {
        let watch = Watch::new();
        watch.expect_bytes(10);
        let mut reader = Watched::new(io::repeat(1), &watch);
        let mut buffer = [0; 8];
        assert_eq!(reader.read(&mut buffer).unwrap(), 8);
        assert!(reader.read(&mut buffer).is_err());
    }
}
