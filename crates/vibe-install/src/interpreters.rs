//! The programs that run scripts, looked for once and only if a script is to run.

use std::sync::OnceLock;

use vibe_core::hook::Interpreters;
use vibe_hooks::probe::{find_interpreters, program_folders};

use crate::settings::Settings;

/// Finds interpreters on the caller's `PATH`.
pub(crate) struct Probe<'a> {
    settings: &'a Settings,
    found: OnceLock<Interpreters>,
}

impl<'a> Probe<'a> {
    /// A probe that has not looked yet.
    pub(crate) fn new(settings: &'a Settings) -> Self {
        Self {
            settings,
            found: OnceLock::new(),
        }
    }

    /// What there is.
    pub(crate) fn find(&self) -> Interpreters {
        let look = || {
            let folders = program_folders(&self.settings.environment);
            find_interpreters(self.settings.variable("PATH"), &folders)
        };
        self.found.get_or_init(look).clone()
    }
}
