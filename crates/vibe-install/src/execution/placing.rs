//! The part of an execution that fills slots, and keeps how their files were really placed.

use std::collections::BTreeMap;
use std::path::Path;

use rayon::prelude::*;
use vibe_core::formats::record::SlotRecord;
use vibe_core::formats::state::{LinkMode, SlotState};
use vibe_core::hook::HookReason;
use vibe_core::plan::{Place, Refresh, Step};
use vibe_core::{Cancellation, Event, Observer, SlotName, TreeId};
use vibe_fs::error::shown;
use vibe_slot::SlotError;
use vibe_slot::materialize::Fallback;
use vibe_slot::place::{Placed, place, refresh};

use super::Execution;
use crate::error::InstallError;
use crate::fetch::Payload;
use crate::planning::Planned;
use crate::project::Project;

/// From so many new slots on, several are placed at a time. Of fewer, one after the other is, and the
/// files of each several at a time.
const MANY_SLOTS: usize = 8;

/// Places new slots; used by several threads.
struct Placer<'a> {
    planned: &'a Planned,
    project: &'a Project,
    observer: &'a dyn Observer,
    cancel: &'a Cancellation,
}

impl Placer<'_> {
    fn place(&self, step: &Place) -> Result<Attempt, InstallError> {
        if self.cancel.is_cancelled() {
            return Err(InstallError::Interrupted);
        }
        let slot = step.slot.clone();
        self.observer.observe(&Event::Placing { slot });
        let record = self.planned.slot_record(&step.slot);
        let payload = &self.planned.fetched(&step.slot).payload;
        match place(&self.project.layout, step, payload, &record) {
            Err(error) if error.is_lost_tree() => Ok(Attempt::LostTree(error)),
            placed => Ok(Attempt::Placed(placed?)),
        }
    }
}

/// What placing a slot came to.
enum Attempt {
    Placed(Placed),
    /// The store has the package no more, or damaged: it has to be fetched again.
    LostTree(SlotError),
}

/// The row of a slot without install hooks, which tells how its files are placed.
fn placed_row(tree: TreeId, link_mode: LinkMode) -> SlotState {
    SlotState {
        tree,
        phases: BTreeMap::new(),
        reason: HookReason::Install,
        previous_version: None,
        after: BTreeMap::new(),
        made: BTreeMap::new(),
        adding: Vec::new(),
        link_mode,
        boot: vibe_fs::boot_id(),
        running: None,
    }
}

impl Execution<'_> {
    /// Places the new slots.
    pub(super) fn place_slots(&mut self) -> Result<(), InstallError> {
        let steps: Vec<&Place> = self
            .planned
            .plan
            .steps
            .iter()
            .filter_map(|step| match step {
                Step::Place(step) => Some(step),
                _ => None,
            })
            .collect();
        let placer = Placer {
            planned: self.planned,
            project: self.project,
            observer: self.context.observer,
            cancel: self.context.cancel,
        };
        let place_one = |step: &&Place| placer.place(step);
        let placed: Result<Vec<Attempt>, InstallError> = match steps.len() < MANY_SLOTS {
            true => steps.iter().map(place_one).collect(),
            false => steps.par_iter().map(place_one).collect(),
        };
        for (step, placed) in steps.into_iter().zip(placed?) {
            let placed = match placed {
                Attempt::Placed(placed) => placed,
                Attempt::LostTree(error) => {
                    let payload = self.fetch_again(&step.slot, &error)?;
                    let record = self.planned.slot_record(&step.slot);
                    place(&self.project.layout, step, &payload, &record)?
                }
            };
            self.note_placed(&step.slot, step.tree, placed);
        }
        Ok(())
    }

    pub(super) fn refresh(&mut self, step: &Refresh) -> Result<(), InstallError> {
        let layout = &self.project.layout;
        let package = self.planned_package(&step.slot);
        if package.unusable_record {
            self.set_record_aside(&step.slot)?;
        }
        let recorded = package.record.as_ref().map(|record| &record.tree);
        let row = self.rows_before.get(&step.slot).cloned();
        self.undo.keep(layout, step, recorded, row)?;
        let record = self.planned.slot_record(&step.slot);
        let placed = self.refreshed(step, &record)?;
        self.note_placed(&step.slot, step.tree, placed);
        Ok(())
    }

    /// Takes the step. New files are made before the slot is touched, so it can be taken anew where
    /// a stored one is damaged.
    pub(crate) fn refreshed(
        &self,
        step: &Refresh,
        record: &SlotRecord,
    ) -> Result<Placed, InstallError> {
        let layout = &self.project.layout;
        match refresh(layout, step, &self.fetched(&step.slot).payload, record) {
            Err(error) if error.is_lost_tree() => {
                let payload = self.fetch_again(&step.slot, &error)?;
                Ok(refresh(layout, step, &payload, record)?)
            }
            placed => Ok(placed?),
        }
    }

    fn fetch_again(&self, slot: &SlotName, lost: &SlotError) -> Result<Payload, InstallError> {
        let target = &self.planned_package(slot).target;
        crate::fetch::fetch_again(self.context, &self.project.root, target, lost)
    }

    /// Keeps how the files of `slot` were really placed, for its row and for the user.
    fn note_placed(&mut self, slot: &SlotName, tree: TreeId, placed: Placed) {
        if let Some(fallback) = placed.fallback {
            let told = self.fallback.get_or_insert(Fallback {
                files: 0,
                because: fallback.because,
            });
            told.files += fallback.files;
        }
        let known = self.state.slots.get_mut(slot);
        match known {
            Some(row) if row.link_mode == placed.link_mode => return,
            Some(row) => row.link_mode = placed.link_mode,
            None if placed.link_mode == LinkMode::Copy => return,
            None => {
                let row = placed_row(tree, placed.link_mode);
                self.state.slots.insert(slot.clone(), row);
            }
        }
        self.is_state_saved = false;
    }

    /// Says, once for all files, that what was to be linked was copied.
    pub(super) fn tell_fallback(&self) {
        let Some(fallback) = &self.fallback else {
            return;
        };
        let files = match fallback.files {
            1 => "1 file was",
            count => &format!("{count} files were"),
        };
        let store = self.context.settings.store.as_deref();
        let text = format!(
            "{files} copied, since a file of the store {} cannot be linked into {}: {}",
            shown(store.unwrap_or(Path::new(""))),
            shown(&self.project.layout.vibedeps()),
            fallback.because
        );
        self.context.observer.observe(&Event::Note(text));
    }
}
