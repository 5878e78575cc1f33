//! Executing what a plan asks of in-place slots.

use rayon::prelude::*;
use vibe_core::formats::state::{CloneState, CloneStatus};
use vibe_core::hook::{Phase, PhaseState};
use vibe_core::plan::{CheckOut, Extent, HookDecision, RemoveClone, RunHook, Step};
use vibe_core::{Cancellation, Event, Observer, SlotName};
use vibe_fs::{Durability, EntryKind};
use vibe_slot::{Layout, in_place};

use crate::clones::{Clones, interrupted, objects_of};
use crate::error::InstallError;
use crate::execution::Execution;
use crate::fetch::Fetched;
use crate::planning::Planned;
use crate::run_record::{HookOutcome, HookRecord};
use crate::slots::has_clone;

/// Checks clones out; used by several threads.
struct Checkouts<'a> {
    planned: &'a Planned,
    clones: &'a Clones<'a>,
    layout: &'a Layout,
    observer: &'a dyn Observer,
    cancel: &'a Cancellation,
}

impl Checkouts<'_> {
    /// Takes the step; with `look`, also how the clone looks then.
    fn check_out(&self, step: &CheckOut, look: bool) -> Result<Option<CloneStatus>, InstallError> {
        if self.cancel.is_cancelled() {
            return Err(InstallError::Interrupted);
        }
        let slot = &step.slot;
        self.observer
            .observe(&Event::Placing { slot: slot.clone() });
        let checkout = &self.planned.clone(slot).checkout;
        let tools = self.clones.tools()?;
        match has_clone(self.layout, slot)? {
            true => tools.bring(slot, checkout, step.extent),
            false => tools.place(slot, checkout),
        }
        .map_err(interrupted)?;
        match look {
            true => self.clones.seen(slot, checkout).map(Some),
            false => Ok(None),
        }
    }
}

impl<'a> Execution<'a> {
    /// Brings every in-place slot to its commit, several at a time, and remembers how those look
    /// whose hooks are not going to run.
    pub(crate) fn check_out_clones(&mut self) -> Result<(), InstallError> {
        let steps: Vec<&CheckOut> = self
            .planned
            .plan
            .steps
            .iter()
            .filter_map(|step| match step {
                Step::CheckOut(step) => Some(step),
                _ => None,
            })
            .collect();
        if steps.is_empty() {
            return Ok(());
        }
        let running: Vec<&SlotName> = Phase::ALL
            .into_iter()
            .flat_map(|phase| self.due_hooks(phase))
            .filter(|hook| hook.decision == HookDecision::Run)
            .map(|hook| &hook.slot)
            .collect();
        let checkouts = Checkouts {
            planned: self.planned,
            clones: &self.clones,
            layout: &self.project.layout,
            observer: self.context.observer,
            cancel: self.context.cancel,
        };
        let check_out = |step: &&CheckOut| {
            let is_seen = step.row.seen.is_some() || running.contains(&&step.slot);
            checkouts.check_out(step, !is_seen)
        };
        let seen: Result<Vec<_>, InstallError> = steps.par_iter().map(check_out).collect();
        for (step, seen) in steps.iter().zip(seen?) {
            if let (Some(row), Some(_)) = (self.state.clones.get_mut(&step.slot), seen) {
                row.seen = seen;
            }
            self.done.push(Step::CheckOut((*step).clone()));
        }
        self.save_state(Durability::Unsynced)
    }

    /// The row of `slot`, if it is an in-place slot.
    pub(crate) fn clone_row(&self, slot: &SlotName) -> Option<&CloneState> {
        match slot.version() {
            Some(_) => None,
            None => self.state.clones.get(slot),
        }
    }

    /// Runs an install hook in the clone as it is; the plan has put it right before.
    pub(crate) fn start_in_clone(
        &mut self,
        hook: &RunHook,
        fetched: &Fetched,
        result: &mut HookRecord,
    ) -> Result<(), InstallError> {
        let protected = self.protect();
        let log = format!("{}.{}.log", hook.slot.package().directory(), hook.phase);
        let outcome = self.start(hook, fetched, &log)?;
        result.log = Some(log);
        self.note_outcome(hook, &outcome, result);
        if result.outcome == HookOutcome::Interrupted {
            return Ok(());
        }
        let layout = &self.project.layout;
        layout.prepare()?;
        let directory = layout.slot(&hook.slot);
        let kind = vibe_fs::stat_of(&directory)?.map(|stat| stat.kind);
        let is_there = kind == Some(EntryKind::Directory);
        if !is_there {
            result.remarks.push("removed its slot".to_owned());
        }
        for (path, digest) in fetched.scripts.iter().filter(|_| is_there) {
            let now = vibe_fs::hash_file(&path.under(&directory));
            if !now.is_ok_and(|file| file.digest == *digest) {
                let text = format!("changed the install hook script {path}");
                result.remarks.push(text);
            }
        }
        self.check_protected(&protected, result)?;
        if !result.remarks.is_empty() {
            result.outcome = HookOutcome::Failed;
        }
        let seen = match is_there {
            true => Some(
                self.clones
                    .seen(&hook.slot, &self.planned_clone(&hook.slot).checkout)?,
            ),
            false => None,
        };
        let phase = match result.outcome {
            HookOutcome::Ran => PhaseState::Done,
            _ => PhaseState::Owed,
        };
        if let Some(row) = self.state.clones.get_mut(&hook.slot) {
            row.running = None;
            row.seen = seen;
        }
        self.set_phase(&hook.slot, hook.phase, phase);
        self.save_state(Durability::Unsynced)
    }

    /// Removes an in-place slot.
    pub(crate) fn remove_clone(&mut self, step: &RemoveClone) -> Result<(), InstallError> {
        for left in in_place::remove(&self.project.layout, &step.slot)? {
            let text = format!("{left}, which was a part of {}, is left", step.slot);
            self.context.observer.observe(&Event::Warning(text));
        }
        self.state.clones.remove(&step.slot);
        Ok(())
    }

    /// Removes the slots in whose place others come.
    pub(crate) fn make_room(&mut self) -> Result<(), InstallError> {
        let steps = self.planned.plan.steps.iter();
        for step in steps.filter(|step| self.planned.giving_way.contains(step.slot())) {
            self.removal_step(step)?;
        }
        Ok(())
    }

    /// Clones go back: one that is new and whose pre-install failed is removed, one that was moved
    /// away from the lock's commit is moved back. What hooks had made there is gone, so they are
    /// owed again.
    pub(crate) fn clones_go_back(&mut self, failed: Option<&SlotName>) -> Result<(), InstallError> {
        for step in &self.planned.plan.steps {
            let Step::CheckOut(step) = step else { continue };
            let slot = &step.slot;
            let before = self.planned.state.clones.get(slot);
            match (&step.back_to, before) {
                (Some(commit), Some(before)) => {
                    let row = self.went_back(slot, commit, before)?;
                    self.state.clones.insert(slot.clone(), row);
                }
                (None, None) if failed == Some(slot) && self.is_new(slot) => {
                    self.remove_clone(&RemoveClone { slot: slot.clone() })?;
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn is_new(&self, slot: &SlotName) -> bool {
        self.planned.new_clones.contains(slot)
    }

    fn went_back(
        &self,
        slot: &SlotName,
        commit: &str,
        before: &CloneState,
    ) -> Result<CloneState, InstallError> {
        let mut row = before.clone();
        row.running = None;
        row.seen = None;
        row.phases
            .values_mut()
            .for_each(|state| *state = PhaseState::Owed);
        let planned = self.planned_clone(slot);
        if let Ok(commit) = commit.parse() {
            let own = vibe_git::WorkTree::own_objects(&self.project.layout.slot(slot));
            let mut checkout = self.clones.placed(slot, commit, own)?;
            checkout.url.clone_from(&planned.checkout.url);
            if planned.database.has_commit(&commit) {
                checkout.objects = objects_of(slot.package(), &planned.database)?;
            }
            let tools = self.clones.tools()?;
            tools
                .bring(slot, &checkout, Extent::All)
                .map_err(interrupted)?;
            row.seen = Some(self.clones.seen(slot, &checkout)?);
        }
        Ok(row)
    }
}
