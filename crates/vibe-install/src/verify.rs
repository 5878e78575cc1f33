//! `vibe verify`: reads everything, changes nothing, says what is not as the lock says.

use std::collections::BTreeMap;

use rayon::prelude::*;
use vibe_core::contents::{DiskEntry, SlotContents};
use vibe_core::formats::lock::{Lock, LockedPackage, LockedSource};
use vibe_core::formats::record::SlotRecord;
use vibe_core::formats::state::{CloneState, CloneStatus, MachineState, SlotState};
use vibe_core::hook::{Phase, PhaseState};
use vibe_core::plan::{FileChange, WriteReason};
use vibe_core::text::escape_bytes;
use vibe_core::{Cancellation, PackageId, RelPath, SlotName, Tree};
use vibe_plan::diff::{DiffInput, diff};
use vibe_plan::selection::scripts_of;
use vibe_resolver::lock_check::LockProblemKind;
use vibe_slot::layout::list_slots;
use vibe_slot::record::{RecordOnDisk, read_record};
use vibe_slot::{in_place, state_file};

use crate::clones::{Clones, payload_path};
use crate::error::InstallError;
use crate::error::chain;
use crate::fetch::names_scripts;
use crate::manifests::read_manifest;
use crate::manifests::vouched;
use crate::opening::{open_to_read, waiting_commit};
use crate::project::Project;
use crate::report::{Finding, FindingKind, VerifyReport};
use crate::repositories::Repositories;
use crate::resolution::lock_problems;
use crate::settings::Context;
use crate::slots::{contents_of, has_clone, record_error};
use crate::sources::Sources;
use crate::verify_projections::look_at_projections;

/// Verifies `packages`, or everything where it is empty.
pub fn verify(context: &Context<'_>, packages: &[PackageId]) -> Result<VerifyReport, InstallError> {
    let project = Project::require(&context.settings.start)?;
    let _lock = open_to_read(context, &project)?;
    let lock = match project.requires_nothing() {
        true => project.read_lock()?.map(|found| found.lock),
        false => Some(project.require_lock()?.lock),
    };
    let lock = lock.unwrap_or_default();
    check_installed(&lock, packages)?;
    let state = state_file::load(&project.layout)?;
    let mut report = VerifyReport::default();
    let waiting = waiting_commit(&project)?;
    report.notes.extend(waiting.map(str::to_owned));
    if packages.is_empty() {
        look_at_lock(context, &project, &lock, &mut report)?;
    }
    let looked_at: Vec<&LockedPackage> = lock
        .packages
        .iter()
        .filter(|locked| packages.is_empty() || packages.contains(&locked.id))
        .collect();
    let cancel = context.cancel;
    let clones = Clones::new(context, &project.layout);
    let looks: Result<Vec<Look<'_>>, InstallError> = looked_at
        .par_iter()
        .map(|locked| match locked.slot().version() {
            Some(_) => look_at(&project, locked, &state, cancel),
            None => look_at_clone(&project, &clones, locked, &state),
        })
        .collect();
    for look in looks? {
        report.packages += 1;
        report.files += look.files;
        report.findings.extend(look.findings);
        report.notes.extend(look.notes);
    }
    if packages.is_empty() {
        look_at_leftovers(&project, &lock, &mut report)?;
        look_at_projections(&project, &lock, &state, &mut report)?;
    }
    Ok(report)
}

/// Refuses a package that the lock does not name.
pub(crate) fn check_installed(lock: &Lock, packages: &[PackageId]) -> Result<(), InstallError> {
    match packages.iter().find(|id| lock.get(id).is_none()) {
        None => Ok(()),
        Some(id) => Err(InstallError::NotInstalled {
            id: id.clone(),
            installed: lock
                .packages
                .iter()
                .map(|package| package.id.clone())
                .collect(),
        }),
    }
}

/// Holds the lock against the manifests. A path source that is gone is no fault of what is
/// installed, whose reference is its record: it is noted.
fn look_at_lock(
    context: &Context<'_>,
    project: &Project,
    lock: &Lock,
    report: &mut VerifyReport,
) -> Result<(), InstallError> {
    let own = project.requirements();
    let repositories = Repositories::new(context, project.root.clone());
    let sources = match Sources::open(project, &repositories, &own) {
        Err(error @ InstallError::PathSource { .. }) => {
            let text = format!("vibe.lock was not held against the manifests: {error}");
            report.notes.push(text);
            return Ok(());
        }
        sources => sources?,
    };
    for problem in lock_problems(&sources, &own, lock) {
        let kind = match problem.kind() {
            LockProblemKind::OutOfDate => FindingKind::Lock,
            LockProblemKind::Integrity => FindingKind::Integrity,
        };
        report.findings.push(Finding {
            package: None,
            slot: None,
            path: None,
            kind,
            message: problem.to_string(),
        });
    }
    Ok(())
}

/// Slots that nothing needs are notes, unless their record stops the next run.
fn look_at_leftovers(
    project: &Project,
    lock: &Lock,
    report: &mut VerifyReport,
) -> Result<(), InstallError> {
    let (slots, strays) = list_slots(&project.layout)?;
    let is_locked = |slot: &SlotName| {
        lock.get(slot.package())
            .is_some_and(|locked| locked.slot() == *slot)
    };
    for slot in slots.into_iter().filter(|slot| !is_locked(slot)) {
        let text = format!("vibedeps/{slot} is a slot that nothing needs");
        report.notes.push(text);
        if slot.version().is_none() {
            continue;
        }
        match read_record(&project.layout, &slot)? {
            RecordOnDisk::Valid { .. } | RecordOnDisk::Absent => {}
            refused => report.findings.push(Finding {
                package: Some(slot.package().clone()),
                path: None,
                kind: FindingKind::Record,
                message: chain(&record_error(&slot, refused)),
                slot: Some(slot),
            }),
        }
    }
    let strays = strays
        .into_iter()
        .map(|stray| format!("vibedeps/{stray} is not a slot"));
    report.notes.extend(strays);
    Ok(())
}

/// What was found in one slot.
struct Look<'a> {
    locked: &'a LockedPackage,
    slot: SlotName,
    files: usize,
    findings: Vec<Finding>,
    notes: Vec<String>,
}

impl<'a> Look<'a> {
    fn new(locked: &'a LockedPackage) -> Self {
        Self {
            locked,
            slot: locked.slot(),
            files: 0,
            findings: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Something about the slot as a whole.
    fn find(&mut self, kind: FindingKind, message: String) {
        self.find_at(None, kind, message);
    }

    /// Something about the file at `path`.
    fn find_at(&mut self, path: Option<RelPath>, kind: FindingKind, message: String) {
        self.findings.push(Finding {
            package: Some(self.locked.id.clone()),
            slot: Some(self.slot.clone()),
            path,
            kind,
            message,
        });
    }

    /// The slot is not there.
    fn find_missing(&mut self, has_hooks: bool) {
        match has_hooks {
            true => self.find_unprepared(),
            false => self.find(
                FindingKind::Slot,
                format!("vibedeps/{} is missing", self.slot),
            ),
        }
    }

    /// Its hooks have not run on this machine.
    fn find_unprepared(&mut self) {
        let text = "it has install hooks and is not prepared on this machine".to_owned();
        self.find(FindingKind::Hooks, text);
    }
}

fn look_at<'a>(
    project: &Project,
    locked: &'a LockedPackage,
    state: &MachineState,
    cancel: &Cancellation,
) -> Result<Look<'a>, InstallError> {
    if cancel.is_cancelled() {
        return Err(InstallError::Interrupted);
    }
    let mut look = Look::new(locked);
    let slot = look.slot.clone();
    let row = state.slots.get(&slot);
    let has_hooks = !locked.install_hooks.is_empty() || row.is_some_and(|r| !r.phases.is_empty());
    if !project.layout.has_slot(&slot)? {
        look.find_missing(has_hooks || has_hooks_at_path(project, locked));
        return Ok(look);
    }
    let record = match read_record(&project.layout, &slot)? {
        RecordOnDisk::Valid { record, .. } => record,
        RecordOnDisk::Absent => {
            let text = format!("vibedeps/{slot} has no slot record");
            look.find(FindingKind::Record, text);
            return Ok(look);
        }
        refused => {
            let text = chain(&record_error(&slot, refused));
            look.find(FindingKind::Record, text);
            return Ok(look);
        }
    };
    if locked.tree.is_some_and(|tree| tree != record.tree.id()) {
        let text =
            format!("the slot record of vibedeps/{slot} is of another tree than vibe.lock says");
        look.find(FindingKind::Record, text);
    }
    if let (Some(_), Some(package)) = (locked.tree, vouched(&project.layout, &slot, &record)?) {
        let scripts = scripts_of(package.hooks.scripts.values(), &record.tree);
        if !names_scripts(locked, &scripts) {
            let text = format!("vibe.lock names other install hooks than vibedeps/{slot} has");
            look.find(FindingKind::Integrity, text);
        }
    }
    look_inside(project, &record, row, &mut look)?;
    look_at_hooks(row, has_hooks, &mut look);
    Ok(look)
}

/// Whether a package of a path, of which the lock names no install hooks, declares some there now.
fn has_hooks_at_path(project: &Project, locked: &LockedPackage) -> bool {
    let LockedSource::Path(path) = &locked.source else {
        return false;
    };
    let manifest = read_manifest(&project.root.join(path)).ok();
    let package = manifest.and_then(|manifest| manifest.package);
    package.is_some_and(|package| !package.hooks.scripts.is_empty())
}

/// A clone is as it should be if its files are those of the locked commit, or as its own hooks left
/// them. What is there besides is worth knowing, and no fault.
fn look_at_clone<'a>(
    project: &Project,
    clones: &Clones<'_>,
    locked: &'a LockedPackage,
    state: &MachineState,
) -> Result<Look<'a>, InstallError> {
    let mut look = Look::new(locked);
    let slot = look.slot.clone();
    let row = state.clones.get(&slot);
    let has_hooks = !locked.install_hooks.is_empty();
    if !has_clone(&project.layout, &slot)? {
        look.find_missing(has_hooks);
        return Ok(look);
    }
    let head = in_place::head(&project.layout, &slot).map(|head| head.to_string());
    if head != locked.commit {
        let text = format!("vibedeps/{slot} is not at the commit that vibe.lock names");
        look.find(FindingKind::Changed, text);
    }
    look_at_work_tree(clones, row, &mut look)?;
    let phases = row.map(|row| &row.phases);
    let is_prepared = row.is_some_and(|row| Some(&row.commit) == locked.commit.as_ref());
    if has_hooks && !is_prepared {
        look.find_unprepared();
    }
    look_at_phases(phases, &mut look);
    Ok(look)
}

fn look_at_work_tree(
    clones: &Clones<'_>,
    row: Option<&CloneState>,
    look: &mut Look<'_>,
) -> Result<(), InstallError> {
    let (locked, slot) = (look.locked, look.slot.clone());
    let Some(status) = clones.read_all(&slot, locked)? else {
        let text = format!("the git repository of vibedeps/{slot} is not whole by itself");
        look.find(FindingKind::Changed, text);
        return Ok(());
    };
    let at_commit = row.filter(|row| Some(&row.commit) == locked.commit.as_ref());
    let seen = at_commit
        .and_then(|row| row.seen)
        .unwrap_or_else(CloneStatus::clean);
    if status.tracked.digest != seen.edits {
        for path in &status.tracked.paths {
            let text = format!(
                "vibedeps/{slot}/{} is not as the commit has it",
                escape_bytes(path)
            );
            look.find_at(payload_path(path), FindingKind::Changed, text);
        }
        let more = status.tracked.count - status.tracked.paths.len();
        if more > 0 || status.tracked.is_empty() {
            let text = match status.tracked.is_empty() {
                true => format!("vibedeps/{slot} is not as its install hooks left it"),
                false => format!("{more} more files of vibedeps/{slot} are not as committed"),
            };
            look.find(FindingKind::Changed, text);
        }
    }
    if status.untracked.digest != seen.additions {
        look.notes.push(format!(
            "vibedeps/{slot} has files that neither the package nor its hooks put there"
        ));
    }
    Ok(())
}

fn look_inside(
    project: &Project,
    record: &SlotRecord,
    row: Option<&SlotState>,
    look: &mut Look<'_>,
) -> Result<(), InstallError> {
    let slot = look.slot.clone();
    let contents = contents_of(&project.layout, &slot, [&record.tree], row)?;
    look.files += record.tree.rows().len();
    let difference = diff(&DiffInput::new(&record.tree, &record.tree, row, &contents));
    for change in &difference.changes {
        let FileChange::Write {
            path,
            because: WriteReason::Drifted,
            ..
        } = change
        else {
            continue;
        };
        let (kind, what) = drift(path, &record.tree, &contents);
        let text = format!("vibedeps/{slot}/{path} {what}");
        look.find_at(Some(path.clone()), kind, text);
    }
    Ok(())
}

/// How a recorded file differs from what lies there.
fn drift(path: &RelPath, tree: &Tree, contents: &SlotContents) -> (FindingKind, &'static str) {
    let published = tree.get(path);
    match contents.entries.get(path) {
        None => (FindingKind::Missing, "is missing"),
        Some(DiskEntry::File { digest, exec }) => {
            let same_bytes = published.is_some_and(|row| Some(row.digest) == *digest);
            match (same_bytes, exec) {
                (true, true) => (FindingKind::Mode, "has become executable"),
                (true, false) => (FindingKind::Mode, "is no longer executable"),
                (false, _) => (FindingKind::Changed, "has other content than published"),
            }
        }
        Some(DiskEntry::Directory) => (FindingKind::Type, "has become a directory"),
        Some(DiskEntry::Symlink) => (FindingKind::Type, "has become a symbolic link"),
        Some(DiskEntry::Other) => (FindingKind::Type, "is no longer a regular file"),
    }
}

fn look_at_hooks(row: Option<&SlotState>, has_hooks: bool, look: &mut Look<'_>) {
    let Some(row) = row else {
        if has_hooks {
            look.find_unprepared();
        }
        return;
    };
    let locked = look.locked;
    let is_path = matches!(locked.source, LockedSource::Path(_));
    if !is_path && locked.tree != Some(row.tree) && has_hooks {
        look.find_unprepared();
    }
    look_at_phases(Some(&row.phases), look);
}

fn look_at_phases(phases: Option<&BTreeMap<Phase, PhaseState>>, look: &mut Look<'_>) {
    let slot = look.slot.clone();
    for (phase, state) in phases.into_iter().flatten() {
        match state {
            PhaseState::Done => {}
            PhaseState::Owed => {
                let text = format!("the {phase} script is owed");
                look.find(FindingKind::Hooks, text);
            }
            PhaseState::Skipped | PhaseState::Declined => {
                look.notes.push(format!(
                    "the {phase} script of {} was {}",
                    slot.title(),
                    state.as_str()
                ));
            }
        }
    }
}
