//! The part of an execution that goes back where a run stops before its commit.

use vibe_core::formats::record::SlotRecord;
use vibe_core::plan::Step;
use vibe_core::{Event, SlotName};
use vibe_fs::Durability;
use vibe_plan::removal::removal;
use vibe_slot::remove::discard_new;

use super::{Execution, Stop};
use crate::error::InstallError;
use crate::run_record::HookRecord;
use crate::slots::contents_of;

impl Execution<'_> {
    /// Goes back as far as the promises ask: slots that were refreshed towards another tree than
    /// the lock's, and the slot whose preparation failed. An interrupt leaves everything as a crash
    /// would.
    pub(super) fn stop_before_commit(&mut self, stop: Stop) -> InstallError {
        if let Stop::Failed(error @ InstallError::Interrupted) | Stop::Committed(error) = stop {
            return error;
        }
        let mut not_undone = Vec::new();
        let undone = self.go_back(&stop, &mut not_undone);
        match (stop, undone) {
            (Stop::PreInstall(hook), outcome) => {
                if let Err(error) = outcome {
                    not_undone.push(error.to_string());
                }
                self.pre_install_error(*hook, not_undone)
            }
            (Stop::Failed(error) | Stop::Committed(error), outcome) => {
                if let Err(also) = outcome {
                    let text = format!("going back failed, too: {}", crate::error::chain(&also));
                    self.context.observer.observe(&Event::Warning(text));
                }
                for text in not_undone {
                    self.context.observer.observe(&Event::Warning(text));
                }
                error
            }
        }
    }

    pub(super) fn pre_install_error(
        &self,
        hook: HookRecord,
        not_undone: Vec<String>,
    ) -> InstallError {
        InstallError::PreInstall {
            hook: Box::new(hook),
            not_undone,
            variables_not_passed: !self.variables_not_passed.is_empty(),
        }
    }

    fn go_back(&mut self, stop: &Stop, not_undone: &mut Vec<String>) -> Result<(), InstallError> {
        let failed = match stop {
            Stop::PreInstall(hook) => Some(hook.slot.clone()),
            Stop::Failed(_) | Stop::Committed(_) => None,
        };
        self.clones_go_back(failed.as_ref())?;
        let refreshed: Vec<SlotName> = self.undo.slots().cloned().collect();
        let failed = failed.filter(|slot| slot.version().is_some());
        if let Some(slot) = failed.filter(|slot| !refreshed.contains(slot)) {
            self.give_up_slot(&slot, not_undone)?;
        }
        for slot in refreshed {
            let Some(restored) = self.undo.restore(&self.project.layout, &slot)? else {
                continue;
            };
            not_undone.extend(restored.not_undone.iter().map(|path| {
                format!(
                    "vibedeps/{slot}/{path} is not payload and was changed; it stays as it is now"
                )
            }));
            match restored.row {
                Some(row) => self.state.slots.insert(slot, row),
                None => self.state.slots.remove(&slot),
            };
        }
        self.save_state(Durability::Synced)?;
        let lock = self.project.read_lock()?.map(|lock| lock.lock);
        self.write_support_files(&lock.unwrap_or_default())?;
        Ok(())
    }

    /// The slot whose pre-install failed and which has no earlier tree to go back to: a new one is
    /// removed, one that the lock names keeps its published bytes and stays owed.
    fn give_up_slot(
        &mut self,
        slot: &SlotName,
        not_undone: &mut Vec<String>,
    ) -> Result<(), InstallError> {
        let layout = &self.project.layout;
        let is_new = self
            .planned
            .plan
            .steps
            .iter()
            .any(|step| matches!(step, Step::Place(place) if place.slot == *slot));
        if is_new {
            not_undone.extend(discard_new(layout, slot)?);
            self.state.slots.remove(slot);
            return Ok(());
        }
        if self.planned_package(slot).target.locked.is_some() {
            return self.put_back_after_failure(slot);
        }
        // Left by an earlier run that did not come to its commit either.
        let record: SlotRecord = self.slot_record(slot);
        let row = self.state.slots.get(slot);
        let contents = contents_of(layout, slot, [&record.tree], row)?;
        let step = removal(slot, &record, row, &contents);
        self.remove_slot(&step)
    }
}
