//! A run that changes the project, or plans to: what it works on, and what keeps others away
//! meanwhile. Each such command finds its project, then begins a session with it.

use crate::error::InstallError;
use crate::opening::{Opened, open, refuse_reentry, tell_waiting_commit};
use crate::package_store::{StoreInUse, open_store};
use crate::project::Project;
use crate::settings::Context;

/// A project opened for one run. Its lock, and the store, are held until this goes.
#[derive(Debug)]
pub(crate) struct Session {
    /// The project as it is since its lock is held.
    pub project: Project,
    /// The store, which nobody empties meanwhile.
    pub in_use: StoreInUse,
    /// The run only plans: it holds nothing, and writes nothing.
    pub dry_run: bool,
    opened: Opened,
}

impl Session {
    /// Opens the store and then `project`, which waits for other runs to end, and finishes or
    /// clears what an earlier run left. Unless the project is only about to be started, it is read
    /// again, since another run may have worked while this one waited.
    ///
    /// # Errors
    /// The store cannot be used, the project is busy, or it is not the same any more.
    pub(crate) fn begin(
        context: &Context<'_>,
        project: Project,
        dry_run: bool,
    ) -> Result<Self, InstallError> {
        let in_use = open_store(context.settings, &project, dry_run)?;
        let opened = match dry_run {
            true => {
                tell_waiting_commit(context, &project)?;
                Opened::Locked { _lock: None }
            }
            false => open(context, &project)?,
        };
        let project = match project.is_started() {
            true => project.again()?,
            false => project,
        };
        Ok(Self {
            project,
            in_use,
            dry_run,
            opened,
        })
    }

    /// Whether the project can be written.
    pub(crate) fn is_writable(&self) -> bool {
        matches!(self.opened, Opened::Locked { .. })
    }

    /// The same, of a project that can be written.
    ///
    /// # Errors
    /// It cannot.
    pub(crate) fn require_writable(self) -> Result<Self, InstallError> {
        let opened = self.opened.require_writable()?;
        Ok(Self { opened, ..self })
    }
}

/// Finds the project for `command`, which changes it unless it is a dry run.
///
/// # Errors
/// There is none, or a hook of the same project started the command.
pub(crate) fn find_to_change(
    context: &Context<'_>,
    command: &str,
    dry_run: bool,
) -> Result<Project, InstallError> {
    let project = Project::require(&context.settings.start)?;
    if !dry_run {
        refuse_reentry(context.settings, &project, command)?;
    }
    Ok(project)
}
