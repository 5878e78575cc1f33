//! What a run tells while it works. Libraries say it here; a person's terminal, a log and a test
//! are observers.

use crate::hook::{HookReason, Phase};
use crate::identifier::{PackageId, SlotName};
use crate::relative_path::RelPath;

/// One thing that happened.
#[derive(Debug, Clone, PartialEq)]
pub enum Event {
    /// Another run holds the project; this one waits.
    Waiting {
        /// The holder's process number.
        pid: u32,
        /// The holder's command.
        command: String,
    },
    /// Versions are being chosen.
    Resolving,
    /// So many packages are looked at now; what is not there yet is read from its source.
    Packages {
        /// How many.
        count: usize,
    },
    /// One of these has been looked at.
    PackageReady,
    /// A package's source is being read.
    Fetching {
        /// The package.
        package: PackageId,
    },
    /// A repository is being fetched.
    Receiving {
        /// Its URL.
        repository: String,
        /// How many bytes have come so far.
        bytes: u64,
    },
    /// So many slots are placed or refreshed now.
    Slots {
        /// How many.
        count: usize,
    },
    /// A slot is about to be placed or refreshed.
    Placing {
        /// The slot.
        slot: SlotName,
    },
    /// An install hook starts.
    HookStarted {
        /// The slot.
        slot: SlotName,
        /// The phase.
        phase: Phase,
        /// The script.
        script: RelPath,
        /// Why it runs.
        because: HookReason,
    },
    /// An install hook wrote a line (without its newline), or a piece of a long one.
    HookOutput {
        /// The slot.
        slot: SlotName,
        /// The phase.
        phase: Phase,
        /// The bytes, as written.
        line: Vec<u8>,
    },
    /// An install hook ended.
    HookEnded {
        /// The slot.
        slot: SlotName,
        /// The phase.
        phase: Phase,
        /// How it ended, in words: `exit 3`, `killed by signal 9`, `timed out`.
        ending: String,
    },
    /// Something the user should know that is no fault.
    Note(String),
    /// Something the user should act on.
    Warning(String),
}

/// Whoever listens to a run. Called from several threads.
pub trait Observer: Sync {
    /// Takes one event.
    fn observe(&self, event: &Event);
}

/// Listens to nothing.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Observer for Silent {
    fn observe(&self, _event: &Event) {}
}
