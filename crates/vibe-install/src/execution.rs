//! Executes a plan: slots, pre-install hooks, commit, post-install hooks, prune; and goes back
//! where a run stops before its commit.

mod going_back;
mod placing;

use std::collections::{BTreeMap, BTreeSet};
use std::time::SystemTime;

use vibe_core::formats::lock::{Lock, LockedPackage};
use vibe_core::formats::state::{CloneState, MachineState, SlotState};
use vibe_core::hook::{Phase, PhaseState};
use vibe_core::plan::{Place, ProjectEdit, Refresh, Remove, RunHook, Step};
use vibe_core::{Event, PackageId, SlotName};
use vibe_fs::Durability;
use vibe_fs::error::shown;
use vibe_plan::slot_plan::recorded_row;
use vibe_slot::materialize::Fallback;
use vibe_slot::remove::remove;
use vibe_slot::undo::UndoStore;
use vibe_slot::{fresh, layout};

use crate::clones::Clones;
use crate::commit::{Commit, CommitError};
use crate::error::InstallError;
use crate::evidence::{milliseconds, prune_runs, run_name, time_text, write_run};
use crate::planning::Planned;
use crate::project::Project;
use crate::projection::{Moment, Projected, project};
use crate::run_record::{HookOutcome, HookRecord, RunRecord};
use crate::settings::Context;
use crate::wording::step_line;

/// One plan being executed.
pub(crate) struct Execution<'a> {
    pub(crate) context: &'a Context<'a>,
    pub(crate) project: &'a Project,
    pub(crate) planned: &'a Planned,
    pub(crate) state: MachineState,
    /// The run's name, under which its evidence lies.
    pub(crate) run: String,
    pub(crate) hooks: Vec<HookRecord>,
    pub(crate) variables_not_passed: BTreeSet<String>,
    pub(crate) changed_settings: Vec<String>,
    started: SystemTime,
    /// The rows as they were before the run.
    rows_before: BTreeMap<SlotName, SlotState>,
    undo: UndoStore,
    pub(crate) done: Vec<Step>,
    /// Files that were to be linked and were copied.
    fallback: Option<Fallback>,
    /// The state on disk says how slots were really placed.
    is_state_saved: bool,
    /// What works on in-place slots.
    pub(crate) clones: Clones<'a>,
    projected: Projected,
    /// All of it is written.
    is_projected: bool,
}

/// The row of a slot of either kind.
#[derive(Debug)]
pub(crate) enum HookRow {
    /// Of one with a record.
    Slot(SlotState),
    /// Of a clone.
    Clone(CloneState),
}

/// What an execution did.
#[derive(Debug)]
pub(crate) struct Executed {
    pub(crate) run: String,
    pub(crate) hooks: Vec<HookRecord>,
    pub(crate) done: Vec<Step>,
    /// What was written for agents to see.
    pub(crate) projected: Projected,
    /// Nothing of it is left in staging, and nothing that was to be written is not.
    pub(crate) is_tidy: bool,
}

/// Removes what a run keeps only while it works, and what one that was killed left: staging, and
/// directories of slots that hold nothing. Whether all of it is gone. `is_full` knows slots that hold
/// something.
pub(crate) fn tidy(
    context: &Context<'_>,
    project: &Project,
    is_full: impl Fn(&SlotName) -> bool,
) -> Result<bool, InstallError> {
    layout::remove_empty_slots(&project.layout, is_full)?;
    clear_staging(context, project)
}

fn clear_staging(context: &Context<'_>, project: &Project) -> Result<bool, InstallError> {
    let left = project.layout.clear_staging()?;
    for path in &left {
        let text = format!("{path}, which a run left, could not be removed");
        context.observer.observe(&Event::Warning(text));
    }
    Ok(left.is_empty())
}

/// Why an execution stopped before its commit was done.
enum Stop {
    Failed(InstallError),
    PreInstall(Box<HookRecord>),
    /// In its commit, from where there is no way back.
    Committed(InstallError),
}

impl From<InstallError> for Stop {
    fn from(error: InstallError) -> Self {
        Stop::Failed(error)
    }
}

impl<'a> Execution<'a> {
    /// Ready to execute `planned`, with nothing written yet.
    pub(crate) fn new(
        context: &'a Context<'a>,
        project: &'a Project,
        planned: &'a Planned,
    ) -> Self {
        let started = SystemTime::now();
        Self {
            context,
            project,
            planned,
            state: planned.state.clone(),
            run: run_name(started, std::process::id()),
            hooks: Vec::new(),
            variables_not_passed: BTreeSet::new(),
            changed_settings: Vec::new(),
            started,
            rows_before: planned.state.slots.clone(),
            undo: UndoStore::default(),
            done: Vec::new(),
            fallback: None,
            is_state_saved: true,
            clones: Clones::new(context, &project.layout),
            projected: Projected::default(),
            is_projected: true,
        }
    }

    /// Executes the whole plan.
    pub(crate) fn run(mut self, commit: &Commit) -> Result<Executed, InstallError> {
        let outcome = self.phases(commit);
        self.finish(outcome)
    }

    /// Runs hooks only, in the slots as they are.
    pub(crate) fn run_hooks_only(
        mut self,
        row: (SlotName, HookRow),
    ) -> Result<Executed, InstallError> {
        let outcome = self.hooks_only(row);
        self.finish(outcome)
    }

    /// Completes the evidence.
    fn finish(self, outcome: Result<(), InstallError>) -> Result<Executed, InstallError> {
        let ending = match &outcome {
            Ok(()) if self.hooks.iter().any(HookRecord::is_flag) => "flagged".to_owned(),
            Ok(()) => "done".to_owned(),
            Err(error) => format!("failed: {error}"),
        };
        // Evidence that cannot be written must not hide how the run ended.
        if let Err(error) = self.write_evidence(Some(ending)) {
            self.context.observer.observe(&Event::Warning(format!(
                "the evidence of this run is not whole: {}",
                crate::error::chain(&error)
            )));
        }
        let placed = self.done.iter().filter_map(|step| match step {
            Step::Place(step) if outcome.is_ok() => Some(&step.slot),
            _ => None,
        });
        let placed: BTreeSet<&SlotName> = placed.collect();
        let tidied = tidy(self.context, self.project, |slot| placed.contains(slot));
        let pruned = prune_runs(&self.project.layout, &self.run, self.owed());
        outcome?;
        let is_tidy = tidied?;
        pruned?;
        Ok(Executed {
            run: self.run,
            hooks: self.hooks,
            done: self.done,
            projected: self.projected,
            is_tidy: is_tidy && self.is_projected,
        })
    }

    /// The hooks that are still due.
    fn owed(&self) -> BTreeSet<(PackageId, Phase)> {
        let slots = self
            .state
            .slots
            .iter()
            .map(|(slot, row)| (slot, &row.phases));
        let clones = self
            .state
            .clones
            .iter()
            .map(|(slot, row)| (slot, &row.phases));
        let owed = slots.chain(clones).flat_map(|(slot, phases)| {
            let owed = phases
                .iter()
                .filter(|(_, state)| **state == PhaseState::Owed);
            owed.map(|(phase, _)| (slot.package().clone(), *phase))
        });
        owed.collect()
    }

    fn hooks_only(&mut self, row: (SlotName, HookRow)) -> Result<(), InstallError> {
        self.prepare()?;
        match row.1 {
            HookRow::Slot(state) => drop(self.state.slots.insert(row.0, state)),
            HookRow::Clone(state) => drop(self.state.clones.insert(row.0, state)),
        }
        self.save_state(Durability::Synced)?;
        for hook in self.due_hooks(Phase::PreInstall) {
            let record = self.hook(hook)?;
            match record.outcome {
                HookOutcome::Interrupted => return Err(InstallError::Interrupted),
                HookOutcome::Ran => self.done.push(Step::RunHook(hook.clone())),
                HookOutcome::Failed => return Err(self.pre_install_error(record, Vec::new())),
                HookOutcome::Skipped | HookOutcome::Declined => {}
            }
        }
        // Nothing but projected files: a manifest that is edited meanwhile is the next run's.
        if let Err(stop) = self.project_and_commit(&Commit::default()) {
            return Err(self.stop_before_commit(stop));
        }
        self.post_install()?;
        self.project_again()
    }

    fn phases(&mut self, commit: &Commit) -> Result<(), InstallError> {
        self.prepare()?;
        self.write_evidence(None)?;
        if let Err(stop) = self.before_commit(commit) {
            return Err(self.stop_before_commit(stop));
        }
        self.post_install()?;
        let again = self.project_again();
        self.prune()?;
        again
    }

    fn prepare(&self) -> Result<(), InstallError> {
        let place = &self.project.layout;
        place.prepare()?;
        fresh::remove(place)?;
        clear_staging(self.context, self.project)?;
        self.write_support_files(&self.planned.lock)?;
        Ok(())
    }

    /// Tells version control of the slots whose content belongs to this machine: those of packages
    /// with hooks that `lock` names, and those that have a row, as of a version that is about to
    /// go, or was to come. Returns whether it said something else before.
    pub(crate) fn write_support_files(&self, lock: &Lock) -> Result<bool, InstallError> {
        let locked = lock
            .packages
            .iter()
            .map(|package| (package.slot(), package))
            .filter(|(slot, package)| slot.version().is_none() || self.has_hooks(slot, package))
            .map(|(slot, _)| slot);
        let rows = self.state.slots.iter();
        let with_row = rows
            .filter(|(_, row)| !row.phases.is_empty())
            .map(|(slot, _)| slot.clone());
        let clones = self.state.clones.keys().cloned();
        let with_hooks: BTreeSet<SlotName> = locked.chain(with_row).chain(clones).collect();
        let with_hooks: Vec<SlotName> = with_hooks.into_iter().collect();
        let layout = &self.project.layout;
        let vendor = self.project.vendor();
        Ok(layout::write_support_files(layout, &with_hooks, vendor)?)
    }

    fn has_hooks(&self, slot: &SlotName, locked: &LockedPackage) -> bool {
        let fetched = self
            .planned
            .package(slot)
            .and_then(|package| package.fetched.as_ref());
        fetched.is_some_and(|fetched| !fetched.hooks.is_empty()) || !locked.install_hooks.is_empty()
    }

    fn before_commit(&mut self, commit: &Commit) -> Result<(), Stop> {
        self.write_rows()?;
        self.make_room()?;
        self.tell_slots();
        self.check_out_clones()?;
        self.place_slots()?;
        for step in &self.planned.plan.steps {
            self.slot_step(step)?;
        }
        self.settle_rows()?;
        self.tell_fallback();
        for hook in self.due_hooks(Phase::PreInstall) {
            self.check_cancelled()?;
            let record = self.hook(hook)?;
            match record.outcome {
                HookOutcome::Failed => return Err(Stop::PreInstall(Box::new(record))),
                HookOutcome::Interrupted => return Err(Stop::Failed(InstallError::Interrupted)),
                HookOutcome::Ran => self.done.push(Step::RunHook(hook.clone())),
                HookOutcome::Skipped | HookOutcome::Declined => {}
            }
        }
        self.check_cancelled()?;
        self.project_and_commit(commit)
    }

    /// Projects what the slots, prepared, give agents to see, and switches to it with `commit`.
    fn project_and_commit(&mut self, commit: &Commit) -> Result<(), Stop> {
        let projected = project(self.project, self.planned, Moment::Prepared(&self.state))?;
        let commit = commit.with(projected.files.iter().cloned());
        let left = commit.apply(self.project).map_err(|error| match error {
            CommitError::Before(error) => Stop::Failed(error),
            CommitError::After(error) => Stop::Committed(error),
        })?;
        for path in &left {
            let text =
                format!("{path} changed while vibe worked and is left; run vibe install again");
            self.context.observer.observe(&Event::Warning(text));
        }
        self.is_projected = left.is_empty();
        self.projected = projected;
        Ok(())
    }

    /// Projects anew where a post-install ran: it may have changed the text of its package, or what
    /// stands in a file that agents see. The run counts already, so a manifest that was edited since
    /// is the next run's.
    fn project_again(&mut self) -> Result<(), InstallError> {
        let is_started = |record: &HookRecord| {
            record.phase == Phase::PostInstall
                && matches!(record.outcome, HookOutcome::Ran | HookOutcome::Failed)
        };
        if !self.hooks.iter().any(is_started) {
            return Ok(());
        }
        let first = std::mem::take(&mut self.projected);
        let again = self.project_and_commit(&Commit::default());
        let second = std::mem::take(&mut self.projected);
        self.projected = first.then(second);
        match again {
            Ok(()) => Ok(()),
            Err(Stop::Failed(error) | Stop::Committed(error)) => Err(error),
            Err(Stop::PreInstall(_)) => unreachable!("nothing is prepared here"),
        }
    }

    fn tell_slots(&self) {
        let is_filled =
            |step: &&Step| matches!(step, Step::Place(_) | Step::Refresh(_) | Step::CheckOut(_));
        let count = self.planned.plan.steps.iter().filter(is_filled).count();
        self.context.observer.observe(&Event::Slots { count });
    }

    /// Every row that the plan asks for, written before the first byte of payload changes, and
    /// synced where a phase becomes owed.
    fn write_rows(&mut self) -> Result<(), InstallError> {
        for step in &self.planned.plan.steps {
            match step {
                Step::Place(Place { slot, row, .. }) | Step::Refresh(Refresh { slot, row, .. }) => {
                    match row {
                        Some(row) => self.state.slots.insert(slot.clone(), row.clone()),
                        None => self.state.slots.remove(slot),
                    };
                }
                Step::Keep(keep) => {
                    if let Some(row) = &keep.row {
                        self.state.slots.insert(keep.slot.clone(), row.clone());
                    }
                }
                Step::CheckOut(step) => {
                    let row = step.row.clone();
                    self.state.clones.insert(step.slot.clone(), row);
                }
                Step::KeepClone(step) => {
                    if let Some(row) = &step.row {
                        self.state.clones.insert(step.slot.clone(), row.clone());
                    }
                }
                Step::RunHook(_) | Step::Remove(_) | Step::RemoveClone(_) => {}
            }
        }
        if self.state == self.planned.state {
            return Ok(());
        }
        let slots = self.state.slots.values().map(|row| &row.phases);
        let clones = self.state.clones.values().map(|row| &row.phases);
        let gains = slots
            .chain(clones)
            .any(|phases| phases.values().any(|state| *state == PhaseState::Owed));
        self.save_state(if gains {
            Durability::Synced
        } else {
            Durability::Unsynced
        })
    }

    /// Takes one step; new slots are there already.
    fn slot_step(&mut self, step: &Step) -> Result<(), InstallError> {
        match step {
            Step::Place(_) | Step::Keep(_) | Step::KeepClone(_) => {}
            Step::Refresh(refresh) => {
                self.check_cancelled()?;
                let slot = refresh.slot.clone();
                self.context.observer.observe(&Event::Placing { slot });
                self.refresh(refresh)?;
            }
            Step::RunHook(_) | Step::Remove(_) | Step::RemoveClone(_) | Step::CheckOut(_) => {
                return Ok(());
            }
        }
        self.done.push(step.clone());
        Ok(())
    }

    fn check_cancelled(&self) -> Result<(), InstallError> {
        if self.context.cancel.is_cancelled() {
            return Err(InstallError::Interrupted);
        }
        Ok(())
    }

    fn set_record_aside(&self, slot: &SlotName) -> Result<(), InstallError> {
        let kept = vibe_slot::record::set_aside(&self.project.layout, slot)?;
        let text = format!("vibedeps/{slot}: the unusable slot record was kept as {kept}");
        self.context.observer.observe(&Event::Note(text));
        Ok(())
    }

    /// Once slots are placed, what was being added is recorded, and a row that says nothing goes.
    fn settle_rows(&mut self) -> Result<(), InstallError> {
        let before = self.state.clone();
        for step in &self.planned.plan.steps {
            let (Step::Place(Place { slot, .. }) | Step::Refresh(Refresh { slot, .. })) = step
            else {
                continue;
            };
            if let Some(row) = self.state.slots.remove(slot) {
                let row = recorded_row(row, self.fetched(slot).tree());
                self.state.slots.insert(slot.clone(), row);
            }
        }
        self.state.slots.retain(|_, row| row.is_needed());
        if self.is_state_saved && self.state == before {
            return Ok(());
        }
        self.is_state_saved = true;
        self.save_state(Durability::Unsynced)
    }

    /// The hooks of the plan, of one phase.
    pub(crate) fn due_hooks(&self, phase: Phase) -> impl Iterator<Item = &'a RunHook> + use<'a> {
        let hooks = self.planned.plan.steps.iter();
        hooks.filter_map(move |step| match step {
            Step::RunHook(hook) if hook.phase == phase => Some(hook),
            _ => None,
        })
    }

    fn post_install(&mut self) -> Result<(), InstallError> {
        for hook in self.due_hooks(Phase::PostInstall) {
            self.check_cancelled()?;
            let record = self.hook(hook)?;
            match record.outcome {
                HookOutcome::Interrupted => return Err(InstallError::Interrupted),
                HookOutcome::Ran => self.done.push(Step::RunHook(hook.clone())),
                HookOutcome::Failed | HookOutcome::Skipped | HookOutcome::Declined => {}
            }
        }
        Ok(())
    }

    fn prune(&mut self) -> Result<(), InstallError> {
        let before = self.state.clone();
        let steps = self.planned.plan.steps.iter();
        for step in steps.filter(|step| !self.planned.giving_way.contains(step.slot())) {
            self.removal_step(step)?;
        }
        for slot in &self.planned.unusable_leftovers {
            self.set_record_aside(slot)?;
        }
        let lock = &self.planned.lock;
        let is_locked = |slot: &SlotName| {
            lock.get(slot.package())
                .is_some_and(|locked| locked.slot() == *slot)
        };
        let is_whole = self.planned.is_whole;
        self.state
            .slots
            .retain(|slot, _| !is_whole || is_locked(slot));
        self.state
            .clones
            .retain(|slot, _| !is_whole || is_locked(slot));
        if self.state != before {
            self.save_state(Durability::Unsynced)?;
        }
        self.remove_boot_directory()?;
        self.write_support_files(&self.planned.lock)?;
        Ok(())
    }

    /// Removes the directory of boot text where it is empty. What is not vibe's stays, and is named
    /// by the run that removes what was vibe's there.
    fn remove_boot_directory(&self) -> Result<(), InstallError> {
        let boot = self.project.layout.boot();
        if vibe_fs::remove_empty_directory(&boot)? || !self.projected.boot.is_empty() {
            return Ok(());
        }
        let is_ours = |edit: &ProjectEdit| {
            self.project
                .root
                .join(edit.path.as_str())
                .starts_with(&boot)
        };
        if self.projected.edits.iter().any(is_ours) {
            let text = format!(
                "{} is kept, since it holds files that vibe did not write",
                shown(&boot)
            );
            self.context.observer.observe(&Event::Note(text));
        }
        Ok(())
    }

    /// Takes the step if it removes a slot.
    pub(crate) fn removal_step(&mut self, step: &Step) -> Result<(), InstallError> {
        match step {
            Step::Remove(step) => {
                self.check_cancelled()?;
                self.remove_slot(step)?;
            }
            Step::RemoveClone(step) => {
                self.check_cancelled()?;
                self.remove_clone(step)?;
            }
            _ => return Ok(()),
        }
        self.done.push(step.clone());
        Ok(())
    }

    fn remove_slot(&mut self, step: &Remove) -> Result<(), InstallError> {
        let removed = remove(&self.project.layout, step)?;
        let left: BTreeSet<String> = removed.left.into_iter().chain(step.kept.clone()).collect();
        if !left.is_empty() {
            let names: Vec<String> = left.into_iter().collect();
            let text = format!(
                "kept in vibedeps/{}, since it is not as vibe placed it: {}",
                step.slot,
                names.join(", ")
            );
            self.context.observer.observe(&Event::Note(text));
        }
        self.state.slots.remove(&step.slot);
        Ok(())
    }

    pub(crate) fn write_evidence(&self, ending: Option<String>) -> Result<(), InstallError> {
        let elapsed = self.started.elapsed().unwrap_or_default();
        let record = RunRecord {
            run: self.run.clone(),
            command: self.context.settings.command.clone(),
            version: self.context.settings.version.to_owned(),
            started: time_text(self.started),
            duration_ms: ending.as_ref().map(|_| milliseconds(elapsed)),
            outcome: ending,
            plan: self
                .planned
                .plan
                .steps
                .iter()
                .filter_map(step_line)
                .collect(),
            hooks: self.hooks.clone(),
            changed_agent_settings: self.changed_settings.clone(),
            variables_not_passed: self.variables_not_passed.iter().cloned().collect(),
        };
        write_run(&self.project.layout, &record)
    }
}
