//! Opening a project for work: the lock between runs, and what an earlier run left half done.

use std::time::Duration;

use vibe_core::Event;
use vibe_core::text::escape;
use vibe_fs::{
    FileLock, FsError, Holder, LockOutcome, canonical_directory, read_holder, wait_for_lock,
};
use vibe_hooks::leftover::{Leftover, end_leftover_group};
use vibe_slot::layout::begin_support_files;
use vibe_slot::redo::{self, RedoOnDisk};
use vibe_slot::{SlotError, state_file};

use crate::error::InstallError;
use crate::project::Project;
use crate::projection::record_left;
use crate::settings::{Context, Settings};

/// How long a waiter says nothing.
const SILENCE: Duration = Duration::from_secs(1);

/// A project opened for work. The lock is held until this goes.
#[derive(Debug)]
pub(crate) enum Opened {
    /// Held, or the file system has no locks.
    Locked {
        /// Let go when this is dropped.
        _lock: Option<FileLock>,
    },
    /// The project cannot be written: good enough if nothing has to be done.
    ReadOnly(FsError),
}

impl Opened {
    /// The project can be written.
    pub(crate) fn require_writable(self) -> Result<Self, InstallError> {
        match self {
            Opened::ReadOnly(error) => Err(error.into()),
            Opened::Locked { .. } => Ok(self),
        }
    }
}

/// A command that changes the project may not be started from a hook of the same project: it would
/// wait for its own parent.
pub(crate) fn refuse_reentry(
    settings: &Settings,
    project: &Project,
    command: &str,
) -> Result<(), InstallError> {
    match hook_around(settings, project) {
        None => Ok(()),
        Some(phase) => Err(InstallError::Reentrant {
            phase,
            command: command.to_owned(),
        }),
    }
}

/// The phase of the install hook of this project that started this program, escaped.
fn hook_around(settings: &Settings, project: &Project) -> Option<String> {
    let phase = settings.variable("VIBE_HOOK_PHASE")?;
    let root = settings.variable("VIBE_PROJECT_ROOT")?;
    let same = canonical_directory(root.as_ref()).is_ok_and(|root| root == project.root);
    same.then(|| escape(&phase.to_string_lossy()))
}

/// A shared lock where the lock file exists and opens: a reader needs no right to write. A hook's
/// own `vibe verify` takes none, since the run that started the hook holds it.
pub(crate) fn open_to_read(
    context: &Context<'_>,
    project: &Project,
) -> Result<Option<FileLock>, InstallError> {
    let path = project.layout.lock_file();
    if hook_around(context.settings, project).is_some() {
        return Ok(None);
    }
    wait_for(context, project, || match FileLock::try_shared(&path) {
        Err(error) => {
            tracing::debug!("verified without a lock: {error}");
            Ok(LockOutcome::Unsupported)
        }
        outcome => outcome,
    })
}

/// Takes the project's lock, waiting for another run if that is wanted, and finishes or clears
/// what an earlier run left.
pub(crate) fn open(context: &Context<'_>, project: &Project) -> Result<Opened, InstallError> {
    match project.layout.prepare() {
        Ok(()) => {}
        Err(SlotError::Fs(error)) if is_read_only(&error) => return Ok(Opened::ReadOnly(error)),
        Err(error) => return Err(error.into()),
    }
    let lock = match take_lock(context, project) {
        Ok(lock) => lock,
        Err(InstallError::Fs(error)) if is_read_only(&error) => return Ok(Opened::ReadOnly(error)),
        Err(error) => return Err(error),
    };
    begin_support_files(&project.layout, project.vendor())?;
    finish_redo(context, project)?;
    end_leftover_hooks(context, project)?;
    Ok(Opened::Locked { _lock: lock })
}

fn is_read_only(error: &FsError) -> bool {
    matches!(
        error.kind(),
        std::io::ErrorKind::ReadOnlyFilesystem | std::io::ErrorKind::PermissionDenied
    )
}

fn take_lock(context: &Context<'_>, project: &Project) -> Result<Option<FileLock>, InstallError> {
    let path = project.layout.lock_file();
    let holder = Holder {
        pid: std::process::id(),
        command: context.settings.command.clone(),
    };
    let lock = wait_for(context, project, || FileLock::try_exclusive(&path, &holder))?;
    if lock.is_none() {
        let text = "this file system has no locks: do not run two vibes here at once";
        context.observer.observe(&Event::Warning(text.to_owned()));
    }
    Ok(lock)
}

/// Attempts until the lock is ours, or at once says who holds it where waiting is not wanted.
/// `None` where there are no locks.
fn wait_for(
    context: &Context<'_>,
    project: &Project,
    attempt: impl Fn() -> Result<LockOutcome, FsError>,
) -> Result<Option<FileLock>, InstallError> {
    let mut told = false;
    let attempt = || Ok(attempt()?);
    wait_for_lock(attempt, |waited| {
        let (pid, command) = holder_of(project);
        if !context.settings.wait {
            return Err(InstallError::Busy { pid, command });
        }
        if !told && waited >= SILENCE {
            context.observer.observe(&Event::Waiting { pid, command });
            told = true;
        }
        match context.cancel.is_cancelled() {
            true => Err(InstallError::Interrupted),
            false => Ok(()),
        }
    })
}

/// Who holds the project's lock, as far as it says so: process number and command, escaped.
fn holder_of(project: &Project) -> (u32, String) {
    match read_holder(&project.layout.lock_file()) {
        Some(holder) => (holder.pid, escape(&holder.command)),
        None => (0, "unknown".to_owned()),
    }
}

/// A run whose redo file is complete counts: it is finished. One that is not never happened.
fn finish_redo(context: &Context<'_>, project: &Project) -> Result<(), InstallError> {
    let note = |text: String| context.observer.observe(&Event::Note(text));
    match redo::read(&project.layout)? {
        RedoOnDisk::None => {}
        RedoOnDisk::Incomplete => redo::discard(&project.layout)?,
        RedoOnDisk::Complete(redo) => {
            let applied = redo::apply(&project.layout, &redo)?;
            match applied.dropped {
                None => note("finished the commit of a run that was cut short".to_owned()),
                Some(path) => note(format!(
                    "dropped the commit of a run that was cut short: {path} has changed since"
                )),
            }
            record_left(project, &applied.left)?;
            for path in applied.left {
                note(format!("{path} has changed since and is left as it is"));
            }
        }
    }
    Ok(())
}

/// What one who only reads says where the commit of a run waits to be finished.
pub(crate) fn waiting_commit(project: &Project) -> Result<Option<&'static str>, InstallError> {
    Ok(match redo::read(&project.layout)? {
        RedoOnDisk::Complete(_) => {
            Some("a run was cut short in its commit: the next `vibe install` finishes it")
        }
        RedoOnDisk::None | RedoOnDisk::Incomplete => None,
    })
}

/// Says so where the commit of a run waits to be finished.
pub(crate) fn tell_waiting_commit(
    context: &Context<'_>,
    project: &Project,
) -> Result<(), InstallError> {
    if let Some(text) = waiting_commit(project)? {
        context.observer.observe(&Event::Note(text.to_owned()));
    }
    Ok(())
}

fn end_leftover_hooks(context: &Context<'_>, project: &Project) -> Result<(), InstallError> {
    let boot = vibe_fs::boot_id();
    let state = state_file::load(&project.layout)?;
    let slots = state.slots.iter();
    let slots = slots.map(|(slot, row)| (slot, &row.running, &row.boot));
    let clones = state.clones.iter();
    let clones = clones.map(|(slot, row)| (slot, &row.running, &row.boot));
    for (slot, running, placed_in) in slots.chain(clones) {
        let Some(running) = running else {
            continue;
        };
        let Some(process) = &running.process else {
            continue;
        };
        let title = slot.title();
        let same_boot = placed_in.is_none() || *placed_in == boot;
        let text = match end_leftover_group(process, same_boot) {
            Leftover::Gone => continue,
            Leftover::Ended(processes) => format!(
                "ended {} of the {} script of {title}, left by a run that was killed",
                count(processes.len(), "process", "processes"),
                running.phase
            ),
            Leftover::Survived(processes) => format!(
                "{} of the {} script of {title} could not be ended",
                count(processes.len(), "process", "processes"),
                running.phase
            ),
            Leftover::Unknown => format!(
                "the {} script of {title} may still run as process {}: this system does not tell",
                running.phase, process.pid
            ),
        };
        context.observer.observe(&Event::Warning(text));
    }
    Ok(())
}

fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
