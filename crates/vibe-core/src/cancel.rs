//! The flag by which Ctrl-C reaches a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Counts interrupts. Clones share the count.
#[derive(Debug, Clone, Default)]
pub struct Cancellation {
    interrupts: Arc<AtomicUsize>,
}

impl Cancellation {
    /// A flag that nobody has raised yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// One more interrupt. Safe to call from a signal thread.
    pub fn interrupt(&self) {
        self.interrupts.fetch_add(1, Ordering::SeqCst);
    }

    /// How often the user interrupted: 1 asks a running hook to end, 2 kills it.
    pub fn count(&self) -> usize {
        self.interrupts.load(Ordering::SeqCst)
    }

    /// Whether the run should start nothing more.
    pub fn is_cancelled(&self) -> bool {
        self.count() > 0
    }
}
