//! What a run is told from outside, taken once and passed down.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use vibe_core::formats::config::UserConfig;
use vibe_core::hook::HostOs;
use vibe_core::{Cancellation, Observer};
use vibe_hooks::HookRunner;
use vibe_hooks::environment::lookup;
use vibe_plan::clone_plan::Guard;
use vibe_store::Store;

/// Everything a command needs to know of the world it was started in.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The working directory, to which paths on the command line are relative. Absolute.
    pub directory: PathBuf,
    /// Where the project is looked for: `--project`, or the working directory. Absolute.
    pub start: PathBuf,
    /// The caller's environment, as it was when the program started.
    pub environment: BTreeMap<OsString, OsString>,
    /// This program, for `VIBE_EXECUTABLE`.
    pub executable: PathBuf,
    /// The command line, shown to whoever waits for this run.
    pub command: String,
    /// The version of this program.
    pub version: &'static str,
    /// The user's config.
    pub config: UserConfig,
    /// `--no-hooks` was given.
    pub no_hooks: bool,
    /// `--hook-timeout`; wins over every other limit.
    pub hook_timeout: Option<Duration>,
    /// Wait for another run of the same project to end (`--no-wait` does not).
    pub wait: bool,
    /// Where the store of packages is, shared by the user's projects; `None` where the user has no
    /// folder for data.
    pub store: Option<PathBuf>,
    /// Where fetched git repositories are kept; `None` where the user has no folder for caches.
    pub git_cache: Option<PathBuf>,
    /// How the files of new slots are to be placed.
    pub link_mode: WantedLinkMode,
    /// How many packages or files are worked on at a time; `None`: as many as there are processors.
    pub jobs: Option<NonZeroUsize>,
}

/// How the files of new slots are to be placed. An existing slot keeps its way, and a package with
/// install hooks is never linked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum WantedLinkMode {
    /// As the package says.
    #[default]
    AsDeclared,
    /// Copied, or sharing blocks where the file system can.
    Copy,
    /// Linked from the store.
    Hardlink,
}

impl WantedLinkMode {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::AsDeclared, Self::Copy, Self::Hardlink];

    /// The word for it on the command line.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AsDeclared => "as-declared",
            Self::Copy => "copy",
            Self::Hardlink => "hardlink",
        }
    }
}

impl Settings {
    /// A variable of the caller's environment, on Windows in any case (`Path`); an empty one counts
    /// as absent.
    pub fn variable(&self, name: &str) -> Option<&OsStr> {
        lookup(HostOs::CURRENT, &self.environment, name)
            .map(OsString::as_os_str)
            .filter(|v| !v.is_empty())
    }

    /// The store, where there is a place for one. Touches nothing.
    pub(crate) fn package_store(&self) -> Option<Store> {
        self.store.clone().map(Store::new)
    }

    /// Whether the network is to be left alone: `--offline`, or `VIBE_OFFLINE`.
    pub fn is_offline(&self) -> bool {
        self.variable("VIBE_OFFLINE").is_some_and(switches_on)
    }
}

/// Holds the whole program to `jobs` packages or files at a time. Only the first call counts.
pub fn limit_jobs(jobs: NonZeroUsize) {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(jobs.get());
    if let Err(error) = pool.build_global() {
        tracing::debug!("the number of jobs stays as it is: {error}");
    }
}

/// Whether the value of a switch such as `VIBE_NO_HOOKS` switches it on: anything but `0`, `false`
/// and `no`.
pub(crate) fn switches_on(value: &OsStr) -> bool {
    !matches!(value.to_str(), Some("0" | "false" | "no"))
}

/// The settings, and the ports through which a run reaches the world.
#[derive(Clone, Copy)]
pub struct Context<'a> {
    /// What was told.
    pub settings: &'a Settings,
    /// Who listens.
    pub observer: &'a dyn Observer,
    /// What starts install hooks.
    pub runner: &'a dyn HookRunner,
    /// The user's interrupts.
    pub cancel: &'a Cancellation,
    /// Who answers questions.
    pub questions: &'a dyn Questions,
}

/// Somebody to ask.
pub trait Questions {
    /// Whether the work that `guards` name may be destroyed.
    fn may_destroy(&self, guards: &[Guard]) -> bool;
}

/// Nobody to ask, so that nothing is agreed to.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nobody;

impl Questions for Nobody {
    fn may_destroy(&self, _guards: &[Guard]) -> bool {
        false
    }
}
