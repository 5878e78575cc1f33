//! The boot text of the installed packages: what their manifests declare, and the texts themselves, from
//! where they are at the moment.

use std::collections::BTreeMap;
use std::io::Read as _;

use vibe_core::formats::decode::decode;
use vibe_core::formats::lock::{Lock, LockedPackage};
use vibe_core::formats::manifest::Boot;
use vibe_core::formats::projections::Projections;
use vibe_core::hook::{Phase, PhaseState};
use vibe_core::limits::BOOT_BYTES;
use vibe_core::plan::{Extent, FileChange, Step};
use vibe_core::{PackageId, SlotName};
use vibe_fs::{Guard, ReadError, path_guard, read_if_exists};
use vibe_plan::order::order;
use vibe_projection::boot::{BootText, STATIC_PATH};
use vibe_slot::PayloadSource;
use vibe_slot::fresh::BootRow;
use vibe_slot::layout::VIBEDEPS;
use vibe_slot::record::{RecordOnDisk, read_record};

use super::Moment;
use super::files::{digest_of, own_path, too_large};
use crate::error::{InstallError, ProjectedFault};
use crate::manifests::vouched;
use crate::planning::{Planned, PlannedPackage};
use crate::project::Project;
use crate::slots::clone_boot;

/// One package's boot text.
pub(super) struct Entry<'a> {
    locked: &'a LockedPackage,
    slot: SlotName,
    pub(super) boot: Boot,
    pub(super) shown: BootText,
    /// Neither the package nor its slot is touched by the run.
    is_remembered: bool,
}

/// An entry, with its text where that is needed.
pub(super) type Text<'a> = (Entry<'a>, Option<String>);

impl Entry<'_> {
    /// The entry as it is remembered.
    pub(super) fn row(&self) -> BootRow {
        BootRow {
            slot: self.slot.directory(),
            source: self.boot.source.clone(),
            is_static: self.boot.is_static,
            when: self.boot.when.clone(),
        }
    }
}

/// `entries` with dependencies before dependents. Ordering a large lock takes a while, and most have none.
fn in_order<'a>(lock: &Lock, mut entries: BTreeMap<&PackageId, Entry<'a>>) -> Vec<Entry<'a>> {
    if entries.len() < 2 {
        return entries.into_values().collect();
    }
    let packages = lock.packages.iter();
    let rows = packages.map(|locked| (locked.id.clone(), locked.dependencies.clone()));
    let order = order(&rows.collect()).packages;
    order.iter().filter_map(|id| entries.remove(id)).collect()
}

/// Finds the texts of one run.
pub(super) struct Texts<'a> {
    pub(super) project: &'a Project,
    pub(super) planned: &'a Planned,
    /// What is recorded of the files.
    pub(super) known: &'a Projections,
    pub(super) moment: Moment<'a>,
    /// A pre-install that is still to run may change a text.
    pub(super) may_change: bool,
    pub(super) notes: Vec<String>,
    /// Slots of packages that the run does not look at and that cannot be read.
    pub(super) unreadable: Vec<SlotName>,
}

impl<'a> Texts<'a> {
    /// The packages with boot text, dependencies before dependents.
    pub(super) fn entries(&mut self, lock: &'a Lock) -> Result<Vec<Entry<'a>>, InstallError> {
        let mut entries = BTreeMap::new();
        for locked in &lock.packages {
            let slot = locked.slot();
            let package = self.planned.package(&slot);
            let boot = match package {
                Some(package) => Some(package.boot.clone()),
                None => self.boot_on_disk(&slot)?,
            };
            let Some(boot) = boot else {
                self.unreadable.push(slot);
                continue;
            };
            let Some(boot) = boot else { continue };
            let entry = Entry {
                shown: BootText {
                    package: locked.id.clone(),
                    version: locked.version.clone(),
                    path: format!("{VIBEDEPS}/{}/{}", slot.directory(), boot.source),
                    is_static: boot.is_static,
                    when: boot.when.clone(),
                },
                is_remembered: package.is_some_and(|package| self.is_remembered(&slot, package)),
                locked,
                slot,
                boot,
            };
            entries.insert(&locked.id, entry);
        }
        Ok(in_order(lock, entries))
    }

    /// What the manifest in the slot of a package declares that the run does not look at; `None`
    /// where that cannot be read.
    fn boot_on_disk(&self, slot: &SlotName) -> Result<Option<Option<Boot>>, InstallError> {
        let layout = &self.project.layout;
        if slot.version().is_none() {
            return Ok(clone_boot(layout, slot));
        }
        let RecordOnDisk::Valid { record, .. } = read_record(layout, slot)? else {
            return Ok(None);
        };
        let package = vouched(&self.project.layout, slot, &record)?;
        Ok(package.map(|package| package.boot))
    }

    fn is_remembered(&self, slot: &SlotName, package: &PlannedPackage) -> bool {
        let mut steps = self.planned.plan.steps.iter();
        package.is_remembered && !steps.any(|step| step.slot() == slot && step.is_work())
    }

    /// The entries whose text is there, or will be, with those texts that are needed.
    pub(super) fn present(
        &mut self,
        entries: Vec<Entry<'a>>,
    ) -> Result<Vec<Text<'a>>, InstallError> {
        let reads_static = !self.is_static_as_recorded(&entries)?;
        let mut present = Vec::new();
        for entry in entries {
            let is_needed = !entry.is_remembered || (entry.boot.is_static && reads_static);
            if !is_needed {
                present.push((entry, None));
            } else if let Some(text) = self.text(&entry)? {
                present.push((entry, Some(text)));
            }
        }
        Ok(present)
    }

    /// Whether the file of static text is as recorded, and so is all that it is made of.
    fn is_static_as_recorded(&self, entries: &[Entry<'_>]) -> Result<bool, InstallError> {
        let Some(before) = &self.planned.boot_before else {
            return Ok(false);
        };
        let mut now = entries.iter().filter(|entry| entry.boot.is_static);
        let before = before.iter().filter(|row| row.is_static);
        let is_same = now.all(|entry| entry.is_remembered)
            && entries
                .iter()
                .filter(|entry| entry.boot.is_static)
                .map(Entry::row)
                .eq(before.cloned());
        if !is_same {
            return Ok(false);
        }
        let path = own_path(STATIC_PATH);
        let recorded = self.known.get(&path).map(|row| row.sha256);
        Ok(recorded.is_some() && recorded == digest_of(self.project, &path)?)
    }

    /// The text of a package; `None` where its pre-install was held back and so did not make it.
    fn text(&mut self, entry: &Entry<'_>) -> Result<Option<String>, InstallError> {
        let fault = |fault| InstallError::BootText {
            id: entry.locked.id.clone(),
            version: entry.locked.version.clone(),
            path: entry.boot.source.clone(),
            fault: Box::new(fault),
        };
        let bytes = match self.published(entry).map_err(fault)? {
            Some(bytes) => Some(bytes),
            None if self.goes(entry) => None,
            None => self.placed(entry).map_err(fault)?,
        };
        let phase = self.pre_install(&entry.slot);
        if matches!(self.moment, Moment::Planned) && self.runs_pre_install(&entry.slot) {
            self.may_change = true;
            return Ok(Some(decode(&bytes.unwrap_or_default()).unwrap_or_default()));
        }
        match (bytes, phase) {
            (Some(bytes), _) => {
                let text = decode(&bytes).map_err(|found| fault(ProjectedFault::Text(found)))?;
                Ok(Some(text))
            }
            (None, None) => Err(fault(ProjectedFault::Missing)),
            (None, Some(PhaseState::Done)) => Err(fault(ProjectedFault::NotMade)),
            (None, Some(_)) => {
                let (id, path) = (&entry.locked.id, &entry.boot.source);
                self.notes.push(format!(
                    "{id}: its boot text {path} is not there, since its pre-install did not run"
                ));
                Ok(None)
            }
        }
    }

    /// Where the pre-install of `slot` stands, if one is declared, or will once the run has placed
    /// what it places.
    fn pre_install(&self, slot: &SlotName) -> Option<PhaseState> {
        if matches!(self.moment, Moment::Planned) && self.has_pre_install_step(slot) {
            return Some(PhaseState::Owed);
        }
        let state = match self.moment {
            Moment::Planned => &self.planned.state,
            Moment::Prepared(state) => state,
        };
        let known = state
            .phases(slot)
            .and_then(|phases| phases.get(&Phase::PreInstall));
        let fetched = self
            .planned
            .package(slot)
            .and_then(|package| package.fetched.as_ref());
        let declares = fetched.is_some_and(|fetched| {
            fetched
                .hooks
                .iter()
                .any(|hook| hook.phase == Phase::PreInstall)
        });
        known.copied().or(declares.then_some(PhaseState::Owed))
    }

    fn runs_pre_install(&self, slot: &SlotName) -> bool {
        self.pre_install_step(slot).is_some_and(Step::is_work)
    }

    /// Whether the pre-install of `slot` is due, and run or held back.
    fn has_pre_install_step(&self, slot: &SlotName) -> bool {
        self.pre_install_step(slot).is_some()
    }

    fn pre_install_step(&self, slot: &SlotName) -> Option<&Step> {
        self.planned.plan.steps.iter().find(|step| match step {
            Step::RunHook(hook) => hook.slot == *slot && hook.phase == Phase::PreInstall,
            _ => false,
        })
    }

    /// Whether the run is yet to take away what lies where the text of `entry` belongs.
    fn goes(&self, entry: &Entry<'_>) -> bool {
        let source = &entry.boot.source;
        let mut steps = self.planned.plan.steps.iter();
        let takes = |change: &FileChange| match change {
            FileChange::Delete { path } | FileChange::SetAside { path, .. } => path == source,
            FileChange::RemoveMade { path } => {
                path == source || source.ancestors().any(|above| above == *path)
            }
            FileChange::Write { .. } => false,
        };
        matches!(self.moment, Moment::Planned)
            && steps.any(|step| match step {
                Step::Refresh(refresh) => {
                    refresh.slot == entry.slot && refresh.changes.iter().any(takes)
                }
                Step::CheckOut(step) => step.slot == entry.slot && step.extent == Extent::All,
                _ => false,
            })
    }

    /// The text as the package has it, where the run is yet to place that.
    fn published(&self, entry: &Entry<'_>) -> Result<Option<Vec<u8>>, ProjectedFault> {
        let mut steps = self.planned.plan.steps.iter();
        let is_placed = steps.any(|step| match step {
            Step::Place(_) | Step::Refresh(_) | Step::CheckOut(_) => *step.slot() == entry.slot,
            _ => false,
        });
        let fetched = self.planned.package(&entry.slot);
        let fetched = fetched.and_then(|package| package.fetched.as_ref());
        let (Moment::Planned, true, Some(fetched)) = (self.moment, is_placed, fetched) else {
            return Ok(None);
        };
        if fetched.tree().get(&entry.boot.source).is_none() {
            return Ok(None);
        }
        let reader = fetched.payload.open(&entry.boot.source);
        let reader = reader.map_err(|error| ProjectedFault::Payload(Box::new(error)))?;
        let mut bytes = Vec::new();
        let read = reader.take(BOOT_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|error| ProjectedFault::Payload(Box::new(error)))?;
        match bytes.len() as u64 > BOOT_BYTES {
            true => Err(too_large(BOOT_BYTES)),
            false => Ok(Some(bytes)),
        }
    }

    /// The text as it lies in the slot.
    fn placed(&self, entry: &Entry<'_>) -> Result<Option<Vec<u8>>, ProjectedFault> {
        let slot = self.project.layout.slot(&entry.slot);
        if let Guard::Blocked { path, kind } = path_guard(&slot, &entry.boot.source)? {
            return Err(ProjectedFault::Blocked { path, kind });
        }
        match read_if_exists(&entry.boot.source.under(&slot), BOOT_BYTES) {
            Err(ReadError::TooLarge { limit_bytes, .. }) => Err(too_large(limit_bytes)),
            Err(ReadError::NotAFile { kind, .. }) => Err(ProjectedFault::Blocked {
                path: entry.boot.source.clone(),
                kind,
            }),
            Err(ReadError::Fs(error)) => Err(error.into()),
            Ok(found) => Ok(found),
        }
    }
}
