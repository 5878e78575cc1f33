//! From targets and disk to the plan: looks at each slot no closer than it must, fetches what the
//! plan may need, and lets `vibe-plan` decide.

use std::collections::{BTreeMap, BTreeSet};

use rayon::prelude::*;
use vibe_core::contents::SlotContents;
use vibe_core::formats::lock::{Lock, LockedPackage, LockedSource};
use vibe_core::formats::manifest::{Boot, Materialization, Package};
use vibe_core::formats::record::SlotRecord;
use vibe_core::formats::state::{AfterFile, LinkMode, MachineState, SlotState};
use vibe_core::hook::{HostOs, PhaseState, Reset};
use vibe_core::plan::{FileChange, HookDecision, PlacePlan, Step};
use vibe_core::relative_path::RECORD_NAME;
use vibe_core::version::parse_version;
use vibe_core::{
    Cancellation, Event, Observer, PackageId, RelPath, Sha256Digest, SlotName, Tree, TreeId,
    TreeRow,
};
use vibe_fs::{fits, path_limit};
use vibe_plan::clone_plan::{
    CloneOptions, ClonePlan, DesiredClone, FoundClone, Guard, plan_clone_removal, plan_in_place,
};
use vibe_plan::order::order;
use vibe_plan::removal::removal;
use vibe_plan::slot_plan::{Desired, Found, SlotOptions, SlotPlan, assemble, plan_slot};
use vibe_resolver::lock_check::{LockProblem, Requirer};
use vibe_slot::examine::examine;
use vibe_slot::fresh::{BootRow, FreshFile};
use vibe_slot::layout::{is_clone, list_slots};
use vibe_slot::record::{RecordOnDisk, read_record};
use vibe_slot::state_file;
use vibe_slot::{Layout, SlotError, in_place};
use vibe_store::Store;

use crate::clones::{Clones, PlannedClone, fetch_clone, is_in_place, is_remembered};
use crate::error::InstallError;
use crate::fetch::{FetchOptions, Fetched, fetch, wanted_mode};
use crate::manifests::vouched;
use crate::project::Project;
use crate::repositories::Repositories;
use crate::resolution::Targets;
use crate::settings::{Context, Settings, WantedLinkMode};
use crate::target::Target;

/// What to plan.
pub(crate) struct PlanRequest<'a> {
    /// The packages the project shall have.
    pub targets: Targets,
    /// What the gate says of scripts.
    pub decision: HookDecision,
    /// Where git packages are.
    pub repositories: &'a Repositories<'a>,
    /// The lock as it is.
    pub lock: Option<&'a Lock>,
    /// What we remember of the last run in which all was well.
    pub memory: Option<&'a FreshFile>,
    /// How closely to look, and at what.
    pub scope: Scope<'a>,
    /// The store, in use as long as the plan is; `None` where the user has no place for one.
    pub store: Option<&'a Store>,
}

/// How closely a plan looks.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Scope<'a> {
    /// Only these packages; all of them and the leftovers where it is empty.
    pub only: &'a [PackageId],
    /// Look inside every slot, and put aside records that cannot be used.
    pub repair: bool,
    /// Put back what hooks changed, too.
    pub force: bool,
    /// Only plan: nothing is written, not even into the store.
    pub dry_run: bool,
}

/// One package of the plan.
#[derive(Debug)]
pub(crate) struct PlannedPackage {
    /// What was asked for.
    pub target: Target,
    /// Its tree.
    pub tree: TreeId,
    /// Its published content, where the plan needs it.
    pub fetched: Option<Fetched>,
    /// The usable record that lies in its slot.
    pub record: Option<SlotRecord>,
    /// A record that cannot be used lies in its slot and is to be moved aside.
    pub unusable_record: bool,
    /// What its clone has to show, if it is placed as one and the plan needs to know.
    pub clone: Option<PlannedClone>,
    /// The boot text that its manifest declares.
    pub boot: Option<Boot>,
    /// Nothing of it was opened, since it is as it was when all was well.
    pub is_remembered: bool,
}

/// The plan and what it was made from.
#[derive(Debug, Default)]
pub(crate) struct Planned {
    /// The packages, by slot.
    pub packages: BTreeMap<SlotName, PlannedPackage>,
    /// All packages were looked at, not only some that were named.
    pub is_whole: bool,
    /// What to do.
    pub plan: PlacePlan,
    /// The machine state as read.
    pub state: MachineState,
    /// The lock that the run ends with.
    pub lock: Lock,
    /// Payload that its package no longer has but somebody edited: it stays.
    pub edited: Vec<(SlotName, RelPath)>,
    /// What lies in `vibedeps/` and is neither a slot of this project nor ours.
    pub strays: Vec<String>,
    /// Slots that nothing needs, whose record cannot be used and is to be moved aside.
    pub unusable_leftovers: Vec<SlotName>,
    /// Work in clones that the plan destroys.
    pub guards: Vec<Guard>,
    /// Slots that go before anything is placed: a clone comes where they are, or they are one.
    pub giving_way: BTreeSet<SlotName>,
    /// In-place slots that are not there yet.
    pub new_clones: BTreeSet<SlotName>,
    /// The boot text as it was when all was well; `None` where that is not remembered.
    pub boot_before: Option<Vec<BootRow>>,
}

/// What lies in `vibedeps/` beside the slots of this project.
#[derive(Default)]
struct Leftovers {
    removals: Vec<Step>,
    strays: Vec<String>,
    unusable: Vec<SlotName>,
    guards: Vec<Guard>,
}

impl Planned {
    /// How many lines the script of the package `id` has, where the package was read.
    pub(crate) fn script_lines(&self, id: &PackageId, script: &str) -> Option<usize> {
        let mut packages = self.packages.values();
        let package = packages.find(|package| package.target.id == *id)?;
        package.fetched.as_ref()?.lines_of(script)
    }

    /// The package in `slot`.
    pub(crate) fn package(&self, slot: &SlotName) -> Option<&PlannedPackage> {
        self.packages.get(slot)
    }

    /// The package that a step of the plan is about.
    pub(crate) fn step_package(&self, slot: &SlotName) -> &PlannedPackage {
        self.package(slot)
            .expect("every step is about a package of the plan")
    }

    /// The content of a package that is placed, or whose hooks are due.
    pub(crate) fn fetched(&self, slot: &SlotName) -> &Fetched {
        let fetched = self.step_package(slot).fetched.as_ref();
        fetched.expect("what is placed or whose hooks are due was fetched for the plan")
    }

    /// The record of such a package.
    pub(crate) fn slot_record(&self, slot: &SlotName) -> SlotRecord {
        let package = self.step_package(slot);
        SlotRecord {
            package: package.target.id.clone(),
            version: package.target.version.clone(),
            tree: self.fetched(slot).tree().clone(),
        }
    }

    /// What the clone in `slot`, which the plan is about, has to show.
    pub(crate) fn clone(&self, slot: &SlotName) -> &PlannedClone {
        let clone = self
            .package(slot)
            .and_then(|package| package.clone.as_ref());
        clone.expect("what is checked out or whose hooks are due was looked at for the plan")
    }
}

fn dependencies_of(targets: &Targets) -> BTreeMap<PackageId, Vec<PackageId>> {
    let targets = targets.iter();
    targets
        .map(|(id, target)| (id.clone(), target.dependencies.clone()))
        .collect()
}

/// Makes the plan. Reads, and writes nothing.
pub(crate) fn plan(
    context: &Context<'_>,
    project: &Project,
    request: PlanRequest<'_>,
) -> Result<Planned, InstallError> {
    let state = state_file::load(&project.layout)?;
    let order = order(&dependencies_of(&request.targets));
    tell_cycles(context, &order.cycles);
    let interpreters = crate::interpreters::Probe::new(context.settings);
    let surveyor = Surveyor {
        settings: context.settings,
        observer: context.observer,
        cancel: context.cancel,
        project,
        request: &request,
        state: &state,
        store: request.store,
        options: SlotOptions {
            decision: request.decision,
            force: request.scope.force,
            boot: vibe_fs::boot_id(),
        },
        find_interpreters: &|| interpreters.find(),
        clones: Clones::new(context, &project.layout).reading(request.scope.dry_run),
    };
    let (mut packages, mut parts, mut edited) = (BTreeMap::new(), Vec::new(), Vec::new());
    let (mut guards, mut new_clones) = (Vec::new(), BTreeSet::new());
    let targets = order.packages.iter().map(|id| &request.targets[id]);
    let only = request.scope.only;
    let in_scope = targets.filter(|target| only.is_empty() || only.contains(&target.id));
    for look in surveyor.looks(in_scope.collect())? {
        let slot = look.slot;
        let stays = look.part.edited.iter();
        edited.extend(stays.map(|path| (slot.clone(), path.clone())));
        guards.extend(look.guard);
        if look.is_new_clone {
            new_clones.insert(slot.clone());
        }
        packages.insert(slot, look.package);
        parts.push(look.part);
    }
    check_requirements(project, &packages, &request.targets)?;
    let needed: BTreeSet<SlotName> = packages.keys().cloned().collect();
    let leftovers = surveyor.leftovers(&needed)?;
    guards.extend(leftovers.guards);
    let lock = lock_of(&packages, &request.targets);
    let gives_way = |step: &Step| {
        let of_package = |slot: &&SlotName| slot.package() == step.slot().package();
        let other = needed.iter().find(of_package);
        other.is_some_and(|slot| slot.version().is_some() != step.slot().version().is_some())
    };
    let (first, last): (Vec<Step>, Vec<Step>) = leftovers.removals.into_iter().partition(gives_way);
    check_room(&project.layout, &new_clones, &first)?;
    check_strays(&needed, &leftovers.strays)?;
    let giving_way = first.iter().map(|step| step.slot().clone()).collect();
    let mut plan = assemble(parts, last);
    plan.steps.splice(0..0, first);
    let planned = Planned {
        packages,
        is_whole: request.scope.only.is_empty(),
        plan,
        state,
        lock,
        edited,
        strays: leftovers.strays,
        unusable_leftovers: leftovers.unusable,
        guards,
        giving_way,
        new_clones,
        boot_before: request.memory.map(|memory| memory.fresh.boot.clone()),
    };
    check_path_lengths(project, &planned)?;
    Ok(planned)
}

/// Where a clone comes, nothing may be left once the steps `going` are taken: a run that found that
/// out later would have taken them.
fn check_room(
    layout: &Layout,
    new_clones: &BTreeSet<SlotName>,
    going: &[Step],
) -> Result<(), InstallError> {
    for slot in new_clones {
        let kept_of = |directory: &str| {
            going.iter().find_map(|step| match step {
                Step::Remove(step) if step.slot.directory() == directory => Some(&step.kept),
                _ => None,
            })
        };
        for directory in in_place::lying_at(layout, slot)? {
            let path = match kept_of(&directory) {
                Some(kept) => kept.first().map(|path| format!("{directory}/{path}")),
                None => Some(directory),
            };
            if let Some(path) = path {
                let slot = Box::new(slot.clone());
                return Err(SlotError::Occupied { slot, path }.into());
            }
        }
    }
    Ok(())
}

/// No slot is made in a directory of its package that is somebody else's, as a clone that this
/// machine does not know is.
fn check_strays(needed: &BTreeSet<SlotName>, strays: &[String]) -> Result<(), InstallError> {
    let in_stray =
        |slot: &&SlotName| slot.version().is_some() && strays.contains(&slot.package().directory());
    match needed.iter().find(in_stray) {
        Some(slot) => Err(SlotError::Occupied {
            slot: Box::new(slot.clone()),
            path: slot.package().directory(),
        }
        .into()),
        None => Ok(()),
    }
}

/// The lock's word on what a published package requires is taken only as long as the package is
/// not read anyway.
fn check_requirements(
    project: &Project,
    packages: &BTreeMap<SlotName, PlannedPackage>,
    targets: &Targets,
) -> Result<(), InstallError> {
    let mut problems = Vec::new();
    for package in packages.values() {
        let target = &package.target;
        let is_published = !matches!(target.source, LockedSource::Path(_));
        if let (true, Some(fetched)) = (is_published, &package.fetched) {
            requirement_problems(project, target, fetched, targets, &mut problems);
        }
    }
    match problems.is_empty() {
        true => Ok(()),
        false => Err(InstallError::LockOutOfDate { problems }),
    }
}

fn requirement_problems(
    project: &Project,
    target: &Target,
    fetched: &Fetched,
    targets: &Targets,
    problems: &mut Vec<LockProblem>,
) {
    if !fetched.requires.keys().eq(&target.dependencies) {
        problems.push(LockProblem::DependenciesDiffer {
            id: target.id.clone(),
            requires: fetched.requires.keys().cloned().collect(),
            locked: target.dependencies.clone(),
        });
    }
    for (id, constraint) in &fetched.requires {
        let (Some(constraint), Some(found)) = (constraint, targets.get(id)) else {
            continue;
        };
        if !constraint.matches(&found.version) && !project.is_overridden(id) {
            problems.push(LockProblem::Unsatisfied {
                requirer: Requirer::Package(target.id.clone()),
                id: id.clone(),
                constraint: constraint.clone(),
                locked: found.version.clone(),
            });
        }
    }
}

fn tell_cycles(context: &Context<'_>, cycles: &[Vec<PackageId>]) {
    for cycle in cycles {
        let names: Vec<&str> = cycle.iter().map(PackageId::as_str).collect();
        let text = format!(
            "packages require each other: {}; their install hooks run in order of id",
            names.join(", ")
        );
        context.observer.observe(&Event::Note(text));
    }
}

/// Looks at slots for one plan.
struct Surveyor<'a> {
    settings: &'a Settings,
    observer: &'a dyn Observer,
    cancel: &'a Cancellation,
    project: &'a Project,
    request: &'a PlanRequest<'a>,
    state: &'a MachineState,
    store: Option<&'a Store>,
    options: SlotOptions,
    find_interpreters: &'a (dyn Fn() -> vibe_core::hook::Interpreters + Sync),
    clones: Clones<'a>,
}

/// From so many packages on, several are looked at and fetched at a time. Of fewer, one after the
/// other is, and the files of each several at a time.
const MANY_PACKAGES: usize = 8;

/// What there is to do for one package.
struct Look {
    slot: SlotName,
    package: PlannedPackage,
    part: SlotPlan,
    guard: Option<Guard>,
    is_new_clone: bool,
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
    fn looks(&self, targets: Vec<&Target>) -> Result<Vec<Look>, InstallError> {
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
        let package = vouched(self.project, slot, record)?;
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
        let package = vouched(self.project, &previous, &record).ok()??;
        let row = self.state.slots.get(&previous);
        let mode = row.map_or(LinkMode::Copy, |row| row.link_mode);
        let is_linked = mode == LinkMode::Hardlink;
        let was_declared = wanted_mode(&package, WantedLinkMode::AsDeclared) == LinkMode::Hardlink;
        (package.hooks.scripts.is_empty() && is_linked != was_declared).then_some(mode)
    }

    /// The slots that nothing needs any more, and what is there beside slots.
    fn leftovers(&self, needed: &BTreeSet<SlotName>) -> Result<Leftovers, InstallError> {
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

/// The slot of `target`, placed as a clone or not.
pub(crate) fn slot_of(target: &Target, is_clone: bool) -> SlotName {
    match is_clone {
        true => SlotName::in_place(&target.id),
        false => SlotName::new(&target.id, &target.version),
    }
}

/// Whether the directory of the in-place slot `slot` is there and a clone.
pub(crate) fn has_clone(layout: &Layout, slot: &SlotName) -> Result<bool, InstallError> {
    Ok(layout.has_slot(slot)? && is_clone(layout, slot)?)
}

pub(crate) fn planned_clone_package(
    target: &Target,
    fetched: Option<(Fetched, PlannedClone)>,
) -> PlannedPackage {
    let (fetched, clone) = fetched.unzip();
    let nothing = Tree::default();
    PlannedPackage {
        target: target.clone(),
        tree: fetched.as_ref().map_or(&nothing, Fetched::tree).id(),
        boot: fetched
            .as_ref()
            .and_then(|found| found.package.boot.clone()),
        is_remembered: false,
        fetched,
        record: None,
        unusable_record: false,
        clone,
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

/// The boot text that the manifest in the clone `slot` declares; `None` where that is not there or
/// says nothing of use.
pub(crate) fn clone_boot(layout: &Layout, slot: &SlotName) -> Option<Option<Boot>> {
    let manifest = crate::manifests::read_manifest(&layout.slot(slot)).ok()?;
    Some(manifest.package?.boot)
}

/// How the record of `slot` is spelled in what we remember: relative to the project root.
pub(crate) fn record_path(slot: &SlotName) -> String {
    format!("vibedeps/{}/{RECORD_NAME}", slot.directory())
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

/// The error that an unusable record is.
pub(crate) fn record_error(slot: &SlotName, record: RecordOnDisk) -> InstallError {
    use vibe_core::formats::record::RecordError;
    let slot = slot.clone();
    match record {
        RecordOnDisk::Malformed(diagnostic) => InstallError::Record {
            slot,
            source: RecordError::Malformed(diagnostic),
        },
        RecordOnDisk::Older(found) => InstallError::Record {
            slot,
            source: RecordError::Older { found },
        },
        RecordOnDisk::Newer(found) => InstallError::Record {
            slot,
            source: RecordError::Newer { found },
        },
        RecordOnDisk::NotAFile(_) | RecordOnDisk::Absent | RecordOnDisk::Valid { .. } => {
            InstallError::RecordType { slot }
        }
    }
}

/// What the directory of `slot` holds. Read are the files whose content decides: those of `trees`,
/// and what hooks or a cut-short refresh did, as its row `state` knows.
pub(crate) fn contents_of<'t>(
    layout: &Layout,
    slot: &SlotName,
    trees: impl IntoIterator<Item = &'t Tree>,
    state: Option<&SlotState>,
) -> Result<SlotContents, InstallError> {
    let rows: Vec<&TreeRow> = trees.into_iter().flat_map(Tree::rows).collect();
    let mut interest: BTreeSet<RelPath> = rows.iter().map(|row| row.path.clone()).collect();
    let no_made = BTreeMap::new();
    let made = state.map_or(&no_made, |state| &state.made);
    if let Some(state) = state {
        interest.extend(state.after.keys().cloned());
        interest.extend(state.adding.iter().map(|row| row.path.clone()));
    }
    let contents = examine(layout, slot, &interest, made)?;
    let after = state.into_iter().flat_map(|state| &state.after);
    let after = after.filter_map(|(path, file)| match file {
        AfterFile::File { exec, .. } => Some((path, *exec)),
        AfterFile::Deleted => None,
    });
    let known = rows.iter().map(|row| (&row.path, row.exec)).chain(after);
    Ok(contents.with_exec_of(HostOs::CURRENT, known))
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

/// The lock after the run: an entry for every target. One that was not looked at keeps its entry.
fn lock_of(packages: &BTreeMap<SlotName, PlannedPackage>, targets: &Targets) -> Lock {
    let entry = |target: &Target| {
        let planned = |is_clone| packages.get(&slot_of(target, is_clone));
        match planned(false).or_else(|| planned(true)) {
            Some(package) => Some(locked_package(package)),
            None => target.locked.clone(),
        }
    };
    Lock {
        packages: targets.values().filter_map(entry).collect(),
    }
}

fn locked_package(package: &PlannedPackage) -> LockedPackage {
    let target = &package.target;
    let is_path = matches!(target.source, LockedSource::Path(_));
    let known = target.locked.as_ref();
    let install_hooks: BTreeMap<String, Sha256Digest> = match &package.fetched {
        _ if is_path => BTreeMap::new(),
        Some(fetched) => fetched
            .scripts
            .iter()
            .map(|(path, digest)| (path.to_string(), *digest))
            .collect(),
        None => known.map_or_else(BTreeMap::new, |known| known.install_hooks.clone()),
    };
    let materialization = match &package.fetched {
        Some(fetched) => fetched.package.materialization,
        None => known.map_or(Materialization::Copy, |known| known.materialization),
    };
    let git = target.origin.git();
    LockedPackage {
        id: target.id.clone(),
        version: target.version.clone(),
        source: target.source.clone(),
        reference: git.and_then(|git| git.reference.clone()),
        subdir: git.and_then(|git| git.subdir.clone()),
        commit: git.map(|git| git.commit.clone()),
        tree: (!is_path && materialization != Materialization::InPlace).then_some(package.tree),
        materialization,
        dependencies: target.dependencies.clone(),
        install_hooks,
    }
}

/// Refuses, before any write, a file whose whole path the system would not take.
fn check_path_lengths(project: &Project, planned: &Planned) -> Result<(), InstallError> {
    for step in &planned.plan.steps {
        let root = project.layout.slot(step.slot());
        let refuse = |path: &RelPath| {
            if fits(HostOs::CURRENT, &root, path) {
                return Ok(());
            }
            Err(InstallError::PathTooLong {
                slot: step.slot().clone(),
                path: path.to_string(),
                bytes: root.as_os_str().len() + 1 + path.as_str().len(),
                limit: path_limit(HostOs::CURRENT),
            })
        };
        match step {
            Step::Place(place) => {
                let fetched = planned
                    .package(&place.slot)
                    .and_then(|p| p.fetched.as_ref());
                let rows = fetched.map_or(&[][..], |fetched| fetched.tree().rows());
                rows.iter().try_for_each(|row| refuse(&row.path))?;
            }
            Step::Refresh(refresh) => {
                refresh
                    .changes
                    .iter()
                    .filter_map(FileChange::payload_path)
                    .try_for_each(refuse)?;
            }
            Step::Keep(_) | Step::RunHook(_) | Step::Remove(_) => {}
            Step::CheckOut(_) | Step::KeepClone(_) | Step::RemoveClone(_) => {}
        }
    }
    Ok(())
}
