//! Looking at slots, each no closer than a plan must, and at what lies beside them.

use std::collections::BTreeSet;

use rayon::prelude::*;
use vibe_core::formats::lock::LockedPackage;
use vibe_core::formats::manifest::{Boot, Package};
use vibe_core::formats::record::SlotRecord;
use vibe_core::formats::state::{LinkMode, MachineState, SlotState};
use vibe_core::hook::{PhaseState, Reset};
use vibe_core::plan::{HookDecision, Step};
use vibe_core::version::parse_version;
use vibe_core::{Cancellation, Event, Observer, SlotName, Tree, TreeId};
use vibe_plan::clone_plan::{
    CloneOptions, ClonePlan, DesiredClone, FoundClone, Guard, plan_clone_removal, plan_in_place,
};
use vibe_plan::removal::removal;
use vibe_plan::slot_plan::{Desired, Found, SlotOptions, SlotPlan, plan_slot};
use vibe_slot::fresh::FreshFile;
use vibe_slot::layout::list_slots;
use vibe_slot::record::{RecordOnDisk, read_record};
use vibe_store::Store;

use super::{PlanRequest, PlannedPackage, planned_clone_package, slot_of};
use crate::clones::{Clones, fetch_clone, is_in_place, is_remembered};
use crate::error::InstallError;
use crate::fetch::{FetchOptions, Fetched, fetch, wanted_mode};
use crate::manifests::vouched;
use crate::project::Project;
use crate::settings::{Settings, WantedLinkMode};
use crate::slots::{clone_boot, contents_of, has_clone, record_error, record_path};
use crate::target::Target;

/// Looks at slots for one plan.
pub(super) struct Surveyor<'a> {
    pub settings: &'a Settings,
    pub observer: &'a dyn Observer,
    pub cancel: &'a Cancellation,
    pub project: &'a Project,
    pub request: &'a PlanRequest<'a>,
    pub state: &'a MachineState,
    pub store: Option<&'a Store>,
    pub options: SlotOptions,
    pub find_interpreters: &'a (dyn Fn() -> vibe_core::hook::Interpreters + Sync),
    pub clones: Clones<'a>,
}

/// From so many packages on, several are looked at and fetched at a time. Of fewer, one after the
/// other is, and the files of each several at a time.
const MANY_PACKAGES: usize = 8;

/// What there is to do for one package.
pub(super) struct Look {
    pub slot: SlotName,
    pub package: PlannedPackage,
    pub part: SlotPlan,
    pub guard: Option<Guard>,
    pub is_new_clone: bool,
}

/// What lies in `vibedeps/` beside the slots of this project.
#[derive(Default)]
pub(super) struct Leftovers {
    pub removals: Vec<Step>,
    pub strays: Vec<String>,
    pub unusable: Vec<SlotName>,
    pub guards: Vec<Guard>,
}

/// A slot that was planned without its source.
struct Quiet {
    tree: TreeId,
    part: SlotPlan,
    boot: Option<Boot>,
    is_remembered: bool,
}

/// What was found of one slot without looking inside.
struct Survey {
    present: bool,
    record: Option<SlotRecord>,
    remembered: bool,
    unusable_record: bool,
}

impl Surveyor<'_> {
    /// What there is to do for each of `targets`, in their order.
    pub(super) fn looks(&self, targets: Vec<&Target>) -> Result<Vec<Look>, InstallError> {
        let count = targets.len();
        self.observer.observe(&Event::Packages { count });
        let look = |target: &&Target| {
            let look = self.look(target);
            self.observer.observe(&Event::PackageReady);
            look
        };
        match count < MANY_PACKAGES {
            true => targets.iter().map(look).collect(),
            false => targets.par_iter().map(look).collect(),
        }
    }

    fn look(&self, target: &Target) -> Result<Look, InstallError> {
        if self.cancel.is_cancelled() {
            return Err(InstallError::Interrupted);
        }
        let is_clone = is_in_place(target, self.request.repositories)?;
        let slot = slot_of(target, is_clone);
        if !is_clone {
            let (package, part) = self.package(target, &slot)?;
            return Ok(Look {
                slot,
                package,
                part,
                guard: None,
                is_new_clone: false,
            });
        }
        let (package, plan) = self.clone(target, &slot)?;
        Ok(Look {
            is_new_clone: !has_clone(&self.project.layout, &slot)?,
            slot,
            package,
            part: SlotPlan {
                step: plan.step,
                hooks: plan.hooks,
                edited: Vec::new(),
            },
            guard: plan.guard,
        })
    }

    fn clone(
        &self,
        target: &Target,
        slot: &SlotName,
    ) -> Result<(PlannedPackage, ClonePlan), InstallError> {
        let origin = target.origin.git().expect("only git sources have clones");
        let layout = &self.project.layout;
        let row = self.state.clones.get(slot);
        let scope = &self.request.scope;
        let locked = self.request.lock.and_then(|lock| lock.get(&target.id));
        let locked_commit = locked
            .filter(|locked| locked.slot() == *slot)
            .and_then(|locked| locked.commit.as_deref());
        let options = CloneOptions {
            decision: self.request.decision,
            repair: scope.repair,
            force: scope.force,
            boot: self.options.boot.clone(),
        };
        let mut desired = DesiredClone {
            slot: slot.clone(),
            commit: &origin.commit,
            hooks: &[],
            was_locked: locked.is_some(),
            locked_commit,
            previous: target.previous.clone(),
        };
        let is_there = has_clone(layout, slot)?;
        let is_quiet = target.locked.is_some() && !scope.repair;
        let known_boot = || match self.request.memory {
            Some(memory) => Some(boot_in(memory, slot)),
            None => clone_boot(layout, slot),
        };
        if is_there
            && is_quiet
            && is_remembered(layout, slot, &origin.commit, row, options.decision)
            && let Some(boot) = known_boot()
        {
            let plan = plan_in_place(&desired, FoundClone::Remembered, row, &options);
            let package = PlannedPackage {
                boot,
                is_remembered: self.request.memory.is_some(),
                ..planned_clone_package(target, None)
            };
            return Ok((package, plan));
        }
        let fetched = fetch_clone(target, origin, &self.fetch_options())?;
        desired.hooks = &fetched.0.hooks;
        let looked = match is_there {
            true => Some(self.clones.look(slot, &fetched.1, row, locked_commit)?),
            false => None,
        };
        let found = looked
            .as_ref()
            .map_or(FoundClone::Absent, FoundClone::Looked);
        let plan = plan_in_place(&desired, found, row, &options);
        Ok((planned_clone_package(target, Some(fetched)), plan))
    }

    fn fetch_options(&self) -> FetchOptions<'_> {
        FetchOptions {
            limits: self.settings.config.limits,
            interpreters: self.find_interpreters,
            decision: self.request.decision,
            observer: self.observer,
            store: self.store,
            fills_store: !self.request.scope.dry_run,
            link_mode: self.settings.link_mode,
            repositories: self.request.repositories,
        }
    }

    fn package(
        &self,
        target: &Target,
        slot: &SlotName,
    ) -> Result<(PlannedPackage, SlotPlan), InstallError> {
        let state = self.state.slots.get(slot);
        let survey = self.survey(slot)?;
        if let Some(quiet) = self.without_source(target, slot, state, &survey)? {
            let package = PlannedPackage {
                boot: quiet.boot,
                is_remembered: quiet.is_remembered,
                ..planned_package(target, survey, quiet.tree, None)
            };
            return Ok((package, quiet.part));
        }
        // A linked slot stays one, and only the store's files can be linked.
        let link_mode = match state.map(|state| state.link_mode) {
            Some(LinkMode::Hardlink) => WantedLinkMode::Hardlink,
            _ => self.settings.link_mode,
        };
        let options = FetchOptions {
            link_mode,
            ..self.fetch_options()
        };
        let fetched = fetch(target, &options)?;
        let tree = fetched.tree();
        let part = self.with_tree(target, slot, state, &survey, Some(&fetched), tree)?;
        let tree = tree.id();
        let package = planned_package(target, survey, tree, Some(fetched));
        Ok((package, part))
    }

    /// What can be planned from lock, record and disk alone: a slot that is as it was, of a package
    /// none of whose hooks is due.
    fn without_source(
        &self,
        target: &Target,
        slot: &SlotName,
        state: Option<&SlotState>,
        survey: &Survey,
    ) -> Result<Option<Quiet>, InstallError> {
        let (Some(locked), Some(record)) = (&target.locked, &survey.record) else {
            return Ok(None);
        };
        let tree = record.tree.id();
        // What another place than the locked one has, only that place can say.
        let same_place = locked.source == target.source;
        if !same_place || locked.tree != Some(tree) || self.request.scope.force {
            return Ok(None);
        }
        if survey.remembered && self.is_quiet(locked, state) {
            let part = plan_slot(
                &self.desired(target, slot, tree, None),
                Found::Remembered,
                state,
                &self.options,
            );
            let memory = self.request.memory;
            return Ok(Some(Quiet {
                tree,
                part,
                boot: memory.and_then(|memory| boot_in(memory, slot)),
                is_remembered: true,
            }));
        }
        if !locked.install_hooks.is_empty() || state.is_some_and(|state| !state.is_plain()) {
            return Ok(None);
        }
        // A lock that hides its scripts does not make a package one without install hooks.
        let package = vouched(&self.project.layout, slot, record)?;
        let Some(package) = package.filter(|package| package.hooks.scripts.is_empty()) else {
            return Ok(None);
        };
        let part = self.with_tree(target, slot, state, survey, None, &record.tree)?;
        Ok(matches!(part.step, Step::Keep(_)).then_some(Quiet {
            tree,
            part,
            boot: package.boot,
            is_remembered: false,
        }))
    }

    /// Whether nothing of the slot's hooks is due, unfinished or unknown.
    fn is_quiet(&self, locked: &LockedPackage, state: Option<&SlotState>) -> bool {
        let Some(state) = state else {
            return locked.install_hooks.is_empty();
        };
        let held = self.request.decision != HookDecision::Run;
        Some(state.tree) == locked.tree
            && state.running.is_none()
            && state.adding.is_empty()
            && state.phases.values().all(|phase| match phase {
                PhaseState::Done | PhaseState::Declined => true,
                PhaseState::Skipped => held,
                PhaseState::Owed => false,
            })
    }

    fn survey(&self, slot: &SlotName) -> Result<Survey, InstallError> {
        let layout = &self.project.layout;
        let present = layout.has_slot(slot)?;
        let mut survey = Survey {
            present,
            record: None,
            remembered: false,
            unusable_record: false,
        };
        if !present {
            return Ok(survey);
        }
        match read_record(layout, slot)? {
            RecordOnDisk::Absent => {}
            RecordOnDisk::Valid {
                record,
                sha256,
                stat,
            } => {
                let remembered =
                    |memory: &FreshFile| memory.remembers_record(&record_path(slot), &stat, sha256);
                survey.remembered =
                    !self.request.scope.repair && self.request.memory.is_some_and(remembered);
                survey.record = Some(record);
            }
            refused => {
                let error = record_error(slot, refused);
                if !self.request.scope.repair || is_newer(&error) {
                    return Err(error);
                }
                survey.unusable_record = true;
            }
        }
        Ok(survey)
    }

    fn with_tree(
        &self,
        target: &Target,
        slot: &SlotName,
        state: Option<&SlotState>,
        survey: &Survey,
        fetched: Option<&Fetched>,
        tree: &Tree,
    ) -> Result<SlotPlan, InstallError> {
        let desired = self.desired(target, slot, tree.id(), fetched);
        if !survey.present {
            return Ok(plan_slot(
                &desired,
                Found::Absent { tree },
                state,
                &self.options,
            ));
        }
        let recorded = survey.record.as_ref().map(|record| &record.tree);
        let trees = std::iter::once(tree).chain(recorded);
        let contents = contents_of(&self.project.layout, slot, trees, state)?;
        let found = Found::Examined {
            tree,
            record: survey.record.as_ref(),
            contents: &contents,
        };
        Ok(plan_slot(&desired, found, state, &self.options))
    }

    fn desired<'t>(
        &self,
        target: &'t Target,
        slot: &SlotName,
        tree_id: TreeId,
        fetched: Option<&Fetched>,
    ) -> Desired<'t> {
        Desired {
            slot: slot.clone(),
            version: &target.version,
            tree_id,
            hooks: fetched.map_or_else(Vec::new, |fetched| fetched.hooks.clone()),
            reset: fetched.map_or(Reset::Payload, |fetched| fetched.package.hooks.reset),
            was_locked: target.locked.is_some(),
            previous: target.previous.clone(),
            link_mode: fetched.map_or(LinkMode::Copy, |fetched| {
                self.link_mode(target, slot, &fetched.package)
            }),
        }
    }

    /// How a new slot is to be placed. Where nobody says, as before: a slot that was lost, or gives
    /// way to one of another version, was placed in a way that may have been chosen.
    fn link_mode(&self, target: &Target, slot: &SlotName, package: &Package) -> LinkMode {
        if !package.hooks.scripts.is_empty() {
            return LinkMode::Copy;
        }
        let wanted = self.settings.link_mode;
        let chosen = match wanted {
            WantedLinkMode::AsDeclared => self.chosen_mode(target, slot),
            WantedLinkMode::Copy | WantedLinkMode::Hardlink => None,
        };
        chosen.unwrap_or_else(|| wanted_mode(package, wanted))
    }

    /// The way that was chosen for the slot that the one of `target` replaces, if it is another than
    /// its package declared.
    fn chosen_mode(&self, target: &Target, slot: &SlotName) -> Option<LinkMode> {
        if let Some(row) = self.state.slots.get(slot) {
            return row.phases.is_empty().then_some(row.link_mode);
        }
        let previous = parse_version(target.previous.as_deref()?).ok()?;
        let previous = SlotName::new(&target.id, &previous);
        let RecordOnDisk::Valid { record, .. } =
            read_record(&self.project.layout, &previous).ok()?
        else {
            return None;
        };
        let package = vouched(&self.project.layout, &previous, &record).ok()??;
        let row = self.state.slots.get(&previous);
        let mode = row.map_or(LinkMode::Copy, |row| row.link_mode);
        let is_linked = mode == LinkMode::Hardlink;
        let was_declared = wanted_mode(&package, WantedLinkMode::AsDeclared) == LinkMode::Hardlink;
        (package.hooks.scripts.is_empty() && is_linked != was_declared).then_some(mode)
    }

    /// The slots that nothing needs any more, and what is there beside slots.
    pub(super) fn leftovers(&self, needed: &BTreeSet<SlotName>) -> Result<Leftovers, InstallError> {
        if !self.request.scope.only.is_empty() {
            return Ok(Leftovers::default());
        }
        let layout = &self.project.layout;
        let (slots, strays) = list_slots(layout)?;
        let mut found = Leftovers {
            strays,
            ..Leftovers::default()
        };
        for slot in slots.into_iter().filter(|slot| !needed.contains(slot)) {
            if slot.version().is_none() {
                self.leftover_clone(&slot, &mut found)?;
                continue;
            }
            let state = self.state.slots.get(&slot);
            match read_record(layout, &slot)? {
                RecordOnDisk::Valid { record, .. } => {
                    let contents = contents_of(layout, &slot, [&record.tree], state)?;
                    let step = removal(&slot, &record, state, &contents);
                    found.removals.push(Step::Remove(step));
                }
                RecordOnDisk::Absent => found.strays.push(slot.directory()),
                refused => {
                    let error = record_error(&slot, refused);
                    if !self.request.scope.repair || is_newer(&error) {
                        return Err(error);
                    }
                    found.strays.push(slot.directory());
                    found.unusable.push(slot);
                }
            }
        }
        Ok(found)
    }

    /// A clone goes only if this machine knows it for its own.
    fn leftover_clone(&self, slot: &SlotName, found: &mut Leftovers) -> Result<(), InstallError> {
        let row = self.state.clones.get(slot);
        let looked = match row {
            Some(_) => self.clones.look_at_leftover(slot, row)?,
            None => None,
        };
        let Some(looked) = looked else {
            found.strays.push(slot.directory());
            return Ok(());
        };
        let (step, guard) = plan_clone_removal(slot, &looked, row);
        found.removals.push(Step::RemoveClone(step));
        found.guards.extend(guard);
        Ok(())
    }
}

/// The boot text of the package in `slot`, as it is remembered.
fn boot_in(memory: &FreshFile, slot: &SlotName) -> Option<Boot> {
    let directory = slot.directory();
    let mut rows = memory.fresh.boot.iter();
    let row = rows.find(|row| row.slot == directory)?;
    Some(Boot {
        source: row.source.clone(),
        is_static: row.is_static,
        when: row.when.clone(),
    })
}

fn is_newer(error: &InstallError) -> bool {
    use vibe_core::formats::record::RecordError;
    matches!(
        error,
        InstallError::Record {
            source: RecordError::Newer { .. },
            ..
        }
    )
}

fn planned_package(
    target: &Target,
    survey: Survey,
    tree: TreeId,
    fetched: Option<Fetched>,
) -> PlannedPackage {
    PlannedPackage {
        target: target.clone(),
        tree,
        boot: fetched
            .as_ref()
            .and_then(|found| found.package.boot.clone()),
        is_remembered: false,
        fetched,
        record: survey.record,
        unusable_record: survey.unusable_record,
        clone: None,
    }
}
