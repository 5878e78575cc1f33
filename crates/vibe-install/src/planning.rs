//! From targets and disk to the plan: looks at each slot no closer than it must, fetches what the
//! plan may need, and lets `vibe-plan` decide.

mod checks;
mod next_lock;
mod survey;

use std::collections::{BTreeMap, BTreeSet};

use vibe_core::formats::lock::Lock;
use vibe_core::formats::manifest::Boot;
use vibe_core::formats::record::SlotRecord;
use vibe_core::formats::state::MachineState;
use vibe_core::plan::{HookDecision, PlacePlan, Step};
use vibe_core::{Event, PackageId, RelPath, SlotName, Tree, TreeId};
use vibe_plan::clone_plan::Guard;
use vibe_plan::order::order;
use vibe_plan::slot_plan::{SlotOptions, assemble};
use vibe_slot::fresh::{BootRow, FreshFile};
use vibe_slot::state_file;
use vibe_store::Store;

use crate::clones::{Clones, PlannedClone};
use crate::error::InstallError;
use crate::fetch::Fetched;
use crate::project::Project;
use crate::repositories::Repositories;
use crate::resolution::Targets;
use crate::settings::Context;
use crate::target::Target;

use checks::{check_path_lengths, check_requirements, check_room, check_strays};
use next_lock::lock_of;
use survey::Surveyor;

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

/// The slot of `target`, placed as a clone or not.
pub(crate) fn slot_of(target: &Target, is_clone: bool) -> SlotName {
    match is_clone {
        true => SlotName::in_place(&target.id),
        false => SlotName::new(&target.id, &target.version),
    }
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
