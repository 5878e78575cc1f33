//! One package's part of the place plan: what happens to its slot and which of its hooks are due.

use std::collections::{BTreeMap, BTreeSet};

use vibe_core::contents::{DiskEntry, SlotContents};
use vibe_core::formats::record::SlotRecord;
use vibe_core::formats::state::{AfterFile, LinkMode, MadePath, SlotState};
use vibe_core::hook::{HookReason, Phase, PhaseState, Reset, SelectedHook};
use vibe_core::plan::{
    FileChange, HookDecision, Keep, Place, PlacePlan, Refresh, RunHook, SlotReason, Step, Undo,
};
use vibe_core::{RelPath, SlotName, Tree, TreeId, TreeRow};

use crate::diff::{DiffInput, PayloadDiff, diff, is_payload, unrecorded};
use crate::rerun;

/// What a slot shall be.
#[derive(Debug, Clone)]
pub struct Desired<'a> {
    /// The slot.
    pub slot: SlotName,
    /// The version, with build metadata.
    pub version: &'a vibe_core::Version,
    /// The identity of its tree.
    pub tree_id: TreeId,
    /// The declared hooks, selected for this operating system. May be empty although hooks are
    /// declared where the slot is [`Found::Remembered`] and no phase is due.
    pub hooks: Vec<SelectedHook>,
    /// What is put back before hooks run again.
    pub reset: Reset,
    /// Whether the lock named this slot before.
    pub was_locked: bool,
    /// The version that the lock named before, if it is another.
    pub previous: Option<String>,
    /// How the files of a new slot are to be placed: an existing one keeps its way. A package with
    /// hooks is never linked, since scripts write.
    pub link_mode: LinkMode,
}

/// What is there.
#[derive(Debug, Clone, Copy)]
pub enum Found<'a> {
    /// No directory.
    Absent {
        /// The package's published files.
        tree: &'a Tree,
    },
    /// The record is remembered as it was when all was well: nobody looks inside. Not for a slot
    /// of a package with hooks that has no state, whose pre-install is due or whose state names a
    /// running hook: these are examined.
    Remembered,
    /// Looked at in full.
    Examined {
        /// The package's published files.
        tree: &'a Tree,
        /// The usable record, if there is one.
        record: Option<&'a SlotRecord>,
        /// What lies there.
        contents: &'a SlotContents,
    },
}

/// What holds for every slot of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotOptions {
    /// What the gate says of scripts. Where it says to ask, the plan shows what is asked; the slot
    /// is planned again with the answer, since a hook that runs may want payload put back first.
    pub decision: HookDecision,
    /// Put back what hooks changed, too.
    pub force: bool,
    /// The boot under which slots are placed, if the system tells.
    pub boot: Option<String>,
}

/// One slot's part of the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct SlotPlan {
    /// Place, refresh or keep.
    pub step: Step,
    /// Its phases that are due, run or held.
    pub hooks: Vec<RunHook>,
    /// Payload that the package no longer has but somebody edited: it stays.
    pub edited: Vec<RelPath>,
}

/// Puts the parts together: slots, pre-install hooks, post-install hooks, removals. `parts` come
/// in the order in which hooks run.
pub fn assemble(parts: Vec<SlotPlan>, removals: Vec<Step>) -> PlacePlan {
    let hooks = |phase: Phase| {
        let of_phase = move |hook: &&RunHook| hook.phase == phase;
        let due: Vec<RunHook> = parts
            .iter()
            .flat_map(|part| &part.hooks)
            .filter(of_phase)
            .cloned()
            .collect();
        due.into_iter().map(Step::RunHook)
    };
    let before: Vec<Step> = hooks(Phase::PreInstall).collect();
    let after: Vec<Step> = hooks(Phase::PostInstall).collect();
    let mut steps: Vec<Step> = parts.into_iter().map(|part| part.step).collect();
    steps.extend(before);
    steps.extend(after);
    steps.extend(removals);
    PlacePlan { steps }
}

/// Plans one slot.
pub fn plan_slot(
    desired: &Desired<'_>,
    found: Found<'_>,
    state: Option<&SlotState>,
    options: &SlotOptions,
) -> SlotPlan {
    match found {
        Found::Absent { tree } => place(desired, tree, state, options),
        Found::Remembered => keep(desired, state, options),
        Found::Examined {
            tree,
            record,
            contents,
        } => examined(desired, tree, record, contents, state, options),
    }
}

/// The row to be written once the record names `tree`: what [`plan_slot`] put in it for a second
/// try of the refresh is forgotten.
pub fn recorded_row(mut row: SlotState, tree: &Tree) -> SlotState {
    row.adding.clear();
    row.made.retain(|path, _| !is_payload(path, tree));
    row
}

fn declared(desired: &Desired<'_>) -> Vec<Phase> {
    desired.hooks.iter().map(|hook| hook.phase).collect()
}

fn place(
    desired: &Desired<'_>,
    tree: &Tree,
    state: Option<&SlotState>,
    options: &SlotOptions,
) -> SlotPlan {
    let ran_here = state.is_some_and(|state| state.phases.values().any(|s| *s == PhaseState::Done));
    let (because, reason) = match (&desired.previous, desired.was_locked) {
        (Some(from), _) => (
            SlotReason::Version { from: from.clone() },
            HookReason::Update,
        ),
        (None, true) if ran_here => (SlotReason::Missing, HookReason::Repair),
        (None, true) => (SlotReason::Missing, HookReason::Install),
        (None, false) => (SlotReason::New, HookReason::Install),
    };
    let phases = rerun::phases(&declared(desired), None, true, options.decision);
    let link_mode = link_mode(desired, desired.link_mode);
    let needed = !phases.is_empty() || link_mode != LinkMode::Copy;
    let row = needed.then(|| SlotState {
        tree: desired.tree_id,
        phases: phases.clone(),
        reason,
        previous_version: desired.previous.clone(),
        after: BTreeMap::new(),
        made: BTreeMap::new(),
        adding: Vec::new(),
        link_mode,
        boot: options.boot.clone(),
        running: None,
    });
    let step = Step::Place(Place {
        slot: desired.slot.clone(),
        tree: desired.tree_id,
        files: tree.rows().len(),
        link_mode,
        because,
        row,
    });
    SlotPlan {
        step,
        hooks: due_hooks(desired, &phases, reason, options),
        edited: Vec::new(),
    }
}

/// How new files are placed where `mode` is wanted.
fn link_mode(desired: &Desired<'_>, mode: LinkMode) -> LinkMode {
    match mode {
        LinkMode::Hardlink if !desired.hooks.is_empty() => LinkMode::Copy,
        mode => mode,
    }
}

/// How the files of an existing slot are placed.
fn known_mode(state: Option<&SlotState>) -> LinkMode {
    state.map_or(LinkMode::Copy, |state| state.link_mode)
}

fn keep(desired: &Desired<'_>, state: Option<&SlotState>, options: &SlotOptions) -> SlotPlan {
    let Some(state) = state else {
        return kept(desired, None, Vec::new());
    };
    let phases = rerun::phases(
        &declared(desired),
        Some(&state.phases),
        false,
        options.decision,
    );
    let due = due_hooks(
        desired,
        &phases,
        rerun::settled(state.reason, &state.phases),
        options,
    );
    let row = SlotState {
        phases,
        ..state.clone()
    };
    let changed = !desired.hooks.is_empty() && row != *state;
    kept(desired, changed.then_some(row), due)
}

fn kept(desired: &Desired<'_>, row: Option<SlotState>, hooks: Vec<RunHook>) -> SlotPlan {
    let keep = Keep {
        slot: desired.slot.clone(),
        tree: desired.tree_id,
        row,
    };
    SlotPlan {
        step: Step::Keep(keep),
        hooks,
        edited: Vec::new(),
    }
}

fn examined(
    desired: &Desired<'_>,
    tree: &Tree,
    record: Option<&SlotRecord>,
    contents: &SlotContents,
    state: Option<&SlotState>,
    options: &SlotOptions,
) -> SlotPlan {
    let nothing = Tree::default();
    let written = state;
    let state = written.map(|state| settle_interrupted(state, tree, record, contents));
    let state = state.as_ref();
    let recorded = record.map_or(&nothing, |record| &record.tree);
    let same_target = state.is_some_and(|state| state.tree == desired.tree_id);
    let input = DiffInput {
        published: if record.is_none() && same_target {
            tree
        } else {
            recorded
        },
        ..DiffInput::new(tree, recorded, state, contents)
    };
    let mut difference = diff(&input);
    let drift = difference.payload_changes();
    let changed = drift > 0 || (options.force && !difference.hook_changed.is_empty());
    let phases = rerun::phases(
        &declared(desired),
        state.map(|state| &state.phases),
        changed,
        options.decision,
    );
    start_over(desired, &phases, changed, &input, &mut difference, options);
    if link_mode(desired, known_mode(state)) != known_mode(state) {
        difference.unshare(tree);
    }

    let because = slot_reason(desired, record, drift, changed);
    let reason = hook_reason(desired, record, state, changed);
    let row = row_after(
        desired,
        &phases,
        reason,
        state,
        &difference,
        &input,
        options,
    );
    let due_because = match state {
        Some(state) if !changed => rerun::settled(reason, &state.phases),
        _ => reason,
    };
    let hooks = due_hooks(desired, &phases, due_because, options);
    let same_record = record.is_some_and(|record| {
        record.tree.id() == desired.tree_id && record.version == *desired.version
    });
    if difference.changes.is_empty() && same_record {
        let row = row.filter(|row| written != Some(row));
        return kept(desired, row, hooks);
    }
    let step = Step::Refresh(Refresh {
        slot: desired.slot.clone(),
        tree: desired.tree_id,
        files: tree.rows().len(),
        link_mode: link_mode(desired, known_mode(state)),
        because,
        undo: undo(desired, record, options, &phases),
        changes: difference.changes,
        row,
    });
    SlotPlan {
        step,
        hooks,
        edited: difference.edited,
    }
}

/// Adds to `difference` what running hooks again asks for.
///
/// When the payload changed, or a pre-install is about to run, every file the hooks changed goes
/// back to its published bytes. With `reset = "all"` what they made goes, too, unless an earlier
/// phase is settled and its products are what the owed one works on.
fn start_over(
    desired: &Desired<'_>,
    phases: &BTreeMap<Phase, PhaseState>,
    changed: bool,
    input: &DiffInput<'_>,
    difference: &mut PayloadDiff,
    options: &SlotOptions,
) {
    let runs = options.decision == HookDecision::Run;
    let pre_install_runs = runs && phases.get(&Phase::PreInstall) == Some(&PhaseState::Owed);
    if changed || pre_install_runs {
        difference.restore_hook_changes();
    }
    let all_owed = !phases.is_empty() && phases.values().all(|state| *state == PhaseState::Owed);
    if desired.reset == Reset::All && runs && all_owed {
        difference.reset_made(input);
    }
}

/// The state of a slot in which an install hook was killed, as a finished hook would have left it.
///
/// A killed post-install may have changed payload, as it may when it ends by itself: that is its
/// doing, not drift, or the settled pre-install would run again. A killed pre-install needs
/// nothing: it is owed, and starts from the published bytes.
fn settle_interrupted(
    state: &SlotState,
    tree: &Tree,
    record: Option<&SlotRecord>,
    contents: &SlotContents,
) -> SlotState {
    let in_post_install = state
        .running
        .as_ref()
        .is_some_and(|hook| hook.phase == Phase::PostInstall);
    let same_payload = record.is_some_and(|record| record.tree == *tree) && state.tree == tree.id();
    match in_post_install && same_payload {
        true => as_hooks_left(state, tree, contents),
        false => state.clone(),
    }
}

/// `state` with every payload file that is not as published taken for what the package's own hooks
/// made of it. `tree` are its published files.
pub fn as_hooks_left(state: &SlotState, tree: &Tree, contents: &SlotContents) -> SlotState {
    let left = |row: &TreeRow| match contents.entries.get(&row.path) {
        None => Some(AfterFile::Deleted),
        Some(DiskEntry::File {
            digest: Some(digest),
            exec,
        }) if (*digest, *exec) != (row.digest, row.exec) => Some(AfterFile::File {
            digest: *digest,
            exec: *exec,
        }),
        Some(_) => None,
    };
    let after = tree.rows().iter();
    SlotState {
        after: after
            .filter_map(|row| Some((row.path.clone(), left(row)?)))
            .collect(),
        ..state.clone()
    }
}

fn slot_reason(
    desired: &Desired<'_>,
    record: Option<&SlotRecord>,
    drift: usize,
    changed: bool,
) -> SlotReason {
    match record {
        None => SlotReason::Record,
        Some(record) if record.tree.id() != desired.tree_id => SlotReason::Content,
        Some(_) if drift > 0 => SlotReason::Drift { files: drift },
        // Nothing else changes payload where nothing drifted.
        Some(_) if changed => SlotReason::Forced,
        Some(record) if record.version != *desired.version => SlotReason::Record,
        Some(_) => SlotReason::Hooks,
    }
}

fn hook_reason(
    desired: &Desired<'_>,
    record: Option<&SlotRecord>,
    state: Option<&SlotState>,
    changed: bool,
) -> HookReason {
    match (record, state) {
        (Some(record), _) if record.tree.id() != desired.tree_id => HookReason::Update,
        (_, None) => HookReason::Install,
        (_, Some(_)) if changed => HookReason::Repair,
        (_, Some(state)) => state.reason,
    }
}

/// The row to be written before the first change. It knows every path by its content before the
/// changes as well as after them, so that a second try, wherever the first was cut short, does
/// what the first would have done. A package without hooks needs one only where there is something
/// to know: of such a second try, or that its files are no plain copies.
fn row_after(
    desired: &Desired<'_>,
    phases: &BTreeMap<Phase, PhaseState>,
    reason: HookReason,
    state: Option<&SlotState>,
    difference: &PayloadDiff,
    input: &DiffInput<'_>,
    options: &SlotOptions,
) -> Option<SlotState> {
    let remembered = |row: &TreeRow| {
        let file = input.after.get(&row.path)?;
        Some((row.path.clone(), *file))
    };
    let after = difference
        .hook_changed
        .iter()
        .filter_map(remembered)
        .collect();
    let row = SlotState {
        tree: desired.tree_id,
        phases: phases.clone(),
        reason,
        previous_version: (desired.previous.clone())
            .or_else(|| state.and_then(|state| state.previous_version.clone())),
        after,
        made: made(difference, input),
        adding: adding(desired, difference, input),
        // Until its files are its own, so that a second try makes them so.
        link_mode: known_mode(state),
        boot: if difference.is_empty() {
            state.and_then(|state| state.boot.clone())
        } else {
            options.boot.clone()
        },
        running: None,
    };
    let needed = !desired.hooks.is_empty()
        || row.link_mode != LinkMode::Copy
        || !row.after.is_empty()
        || !row.made.is_empty()
        || !row.adding.is_empty();
    needed.then_some(row)
}

/// The made paths that are still to be remembered. One that becomes payload is not: what lies in
/// it is known by its content from here on. One that is to be cleared is forgotten only when it is
/// gone, or a second try would not know it.
fn made(difference: &PayloadDiff, input: &DiffInput<'_>) -> BTreeMap<RelPath, MadePath> {
    let going: BTreeSet<&RelPath> = difference
        .changes
        .iter()
        .filter_map(|change| match change {
            FileChange::RemoveMade { path } => Some(path),
            _ => None,
        })
        .collect();
    let mut made = input.made.clone();
    made.retain(|path, _| {
        let present = input.disk.entries.contains_key(path);
        present && (!is_payload(path, input.incoming) || going.contains(path))
    });
    made
}

/// Content that is ours though no record names it: what this refresh leaves or brings, and what
/// one that was cut short before it did. All of it is told by the record once that is written.
fn adding(desired: &Desired<'_>, difference: &PayloadDiff, input: &DiffInput<'_>) -> Vec<TreeRow> {
    if difference.is_empty() && input.recorded.id() == desired.tree_id {
        return Vec::new();
    }
    let untold = |row: &&TreeRow| input.recorded.get(&row.path) != Some(*row);
    let earlier = input.adding.iter().filter(untold).cloned();
    let rows = earlier.chain(unrecorded(difference, input));
    let by_path: BTreeMap<RelPath, TreeRow> = rows.map(|row| (row.path.clone(), row)).collect();
    by_path.into_values().collect()
}

fn undo(
    desired: &Desired<'_>,
    record: Option<&SlotRecord>,
    options: &SlotOptions,
    phases: &BTreeMap<Phase, PhaseState>,
) -> Undo {
    let other_tree = record.is_some_and(|record| record.tree.id() != desired.tree_id);
    let pre_install_runs = options.decision == HookDecision::Run
        && phases.get(&Phase::PreInstall) == Some(&PhaseState::Owed);
    match (other_tree, pre_install_runs) {
        (false, _) => Undo::None,
        (true, false) => Undo::Changed,
        (true, true) => Undo::Payload,
    }
}

fn due_hooks(
    desired: &Desired<'_>,
    phases: &BTreeMap<Phase, PhaseState>,
    because: HookReason,
    options: &SlotOptions,
) -> Vec<RunHook> {
    rerun::due_hooks(
        &desired.slot,
        &desired.hooks,
        phases,
        because,
        options.decision,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        Files, after, contents, hook, made, path, record, row, rows, slot, state, tree, words,
    };
    use Phase::{PostInstall, PreInstall};
    use PhaseState::{Declined, Done, Owed, Skipped};
    use vibe_core::formats::state::RunningHook;

    const A: Files<'static> = &[("a", "1")];
    const B: Files<'static> = &[("a", "2")];
    const DONE: &[(Phase, PhaseState)] = &[(PreInstall, Done), (PostInstall, Done)];
    const OWED: &[(Phase, PhaseState)] = &[(PreInstall, Owed), (PostInstall, Owed)];
    const POST_OWED: &[(Phase, PhaseState)] = &[(PreInstall, Done), (PostInstall, Owed)];

    /// A package, its slot and what is asked for. As it is given by default, all is well.
    #[derive(Clone)]
    struct Case<'a> {
        incoming: Files<'a>,
        declared: &'a [Phase],
        reset: Reset,
        was_locked: bool,
        previous: Option<&'a str>,
        record: Option<(&'a str, Files<'a>)>,
        state: Option<SlotState>,
        touched: &'a [&'a str],
        disk: Files<'a>,
        decision: HookDecision,
        force: bool,
        link_mode: LinkMode,
    }

    fn intact() -> Case<'static> {
        Case {
            incoming: A,
            declared: &Phase::ALL,
            reset: Reset::Payload,
            was_locked: true,
            previous: None,
            record: Some(("1.0.0", A)),
            state: Some(state(tree(A).id(), DONE)),
            touched: &[],
            disk: A,
            decision: HookDecision::Run,
            force: false,
            link_mode: LinkMode::Copy,
        }
    }

    fn with_phases(known: &[(Phase, PhaseState)]) -> Case<'static> {
        let state = Some(state(tree(A).id(), known));
        Case { state, ..intact() }
    }

    #[derive(Clone, Copy)]
    enum Look {
        Absent,
        Remembered,
        Examined,
    }

    fn plan(case: &Case<'_>, look: Look) -> SlotPlan {
        let tree = tree(case.incoming);
        let desired = Desired {
            slot: slot(),
            version: &vibe_core::Version::new(1, 0, 0),
            tree_id: tree.id(),
            hooks: case
                .declared
                .iter()
                .rev()
                .map(|phase| hook(*phase))
                .collect(),
            reset: case.reset,
            was_locked: case.was_locked,
            previous: case.previous.map(str::to_owned),
            link_mode: case.link_mode,
        };
        let record = case.record.map(|(version, files)| record(version, files));
        let mut contents = contents(case.disk);
        let made = case
            .state
            .iter()
            .flat_map(|state| state.made.keys().cloned());
        contents.unchanged_made = made
            .filter(|path| !case.touched.contains(&path.as_str()))
            .collect();
        let found = match look {
            Look::Absent => Found::Absent { tree: &tree },
            Look::Remembered => Found::Remembered,
            Look::Examined => Found::Examined {
                tree: &tree,
                record: record.as_ref(),
                contents: &contents,
            },
        };
        let options = SlotOptions {
            decision: case.decision,
            force: case.force,
            boot: Some("this-boot".to_owned()),
        };
        plan_slot(&desired, found, case.state.as_ref(), &options)
    }

    fn hooks(plan: &SlotPlan) -> Vec<(Phase, HookDecision, HookReason)> {
        let hooks = plan.hooks.iter();
        hooks
            .map(|hook| (hook.phase, hook.decision, hook.because))
            .collect()
    }

    fn due(phases: &[Phase], because: HookReason) -> Vec<(Phase, HookDecision, HookReason)> {
        phases
            .iter()
            .map(|phase| (*phase, HookDecision::Run, because))
            .collect()
    }

    fn examine(case: &Case<'_>) -> SlotPlan {
        plan(case, Look::Examined)
    }

    fn refresh(case: &Case<'_>) -> Refresh {
        match examine(case).step {
            Step::Refresh(refresh) => {
                assert_eq!(refresh.slot, slot());
                assert_eq!(refresh.tree, tree(case.incoming).id());
                assert_eq!(refresh.files, case.incoming.len());
                refresh
            }
            step => panic!("{step:?}"),
        }
    }

    fn refresh_row(case: &Case<'_>) -> SlotState {
        refresh(case).row.unwrap()
    }

    fn changes(case: &Case<'_>) -> Vec<String> {
        refresh(case).changes.iter().map(words).collect()
    }

    fn check_kept(plan: &SlotPlan, row: Option<&SlotState>) {
        let tree = tree(A).id();
        let keep = Keep {
            slot: slot(),
            tree,
            row: row.cloned(),
        };
        assert_eq!(plan.step, Step::Keep(keep));
    }

    #[test]
    fn an_intact_slot_is_kept_and_runs_no_hook() {
        for look in [Look::Remembered, Look::Examined] {
            for case in [
                intact(),
                Case {
                    force: true,
                    ..intact()
                },
            ] {
                let plan = plan(&case, look);
                check_kept(&plan, None);
                assert_eq!(plan.hooks, []);
            }
        }
    }

    #[test]
    fn a_slot_without_hooks_needs_no_state() {
        let case = Case {
            declared: &[],
            state: None,
            ..intact()
        };
        check_kept(&plan(&case, Look::Remembered), None);
        check_kept(&examine(&case), None);
        let changed = Case { disk: B, ..case };
        assert_eq!(refresh(&changed).row, None);
        assert_eq!(changes(&changed), ["repair a"]);
    }

    #[test]
    fn a_slot_without_hooks_has_state_while_its_files_are_no_plain_copies() {
        let case = Case {
            declared: &[],
            state: Some(state(tree(A).id(), &[])),
            ..intact()
        };
        check_kept(&plan(&case, Look::Remembered), None);
        check_kept(&examine(&case), None);
        let drifted = Case { disk: B, ..case };
        let refresh = refresh(&drifted);
        assert_eq!(refresh.link_mode, LinkMode::Reflink);
        assert_eq!(refresh.row.unwrap().link_mode, LinkMode::Reflink);
    }

    /// Checks the way in which a new slot is to be placed, and whether it needs a row.
    fn check_place(declared: &[Phase], wanted: LinkMode, expected: LinkMode, row: bool) {
        let case = Case {
            declared,
            link_mode: wanted,
            state: None,
            ..intact()
        };
        let Step::Place(place) = plan(&case, Look::Absent).step else {
            panic!("a slot that is absent is placed");
        };
        assert_eq!(place.link_mode, expected);
        assert_eq!(place.row.is_some(), row);
        assert!(place.row.is_none_or(|row| row.link_mode == expected));
    }

    #[test]
    fn a_new_slot_takes_the_wanted_way_and_a_package_with_hooks_is_never_linked() {
        check_place(&[], LinkMode::Copy, LinkMode::Copy, false);
        check_place(&[], LinkMode::Hardlink, LinkMode::Hardlink, true);
        check_place(&Phase::ALL, LinkMode::Hardlink, LinkMode::Copy, true);
    }

    #[test]
    fn an_existing_slot_keeps_its_way_whatever_is_wanted() {
        for (known, wanted) in [
            (LinkMode::Copy, LinkMode::Hardlink),
            (LinkMode::Hardlink, LinkMode::Copy),
        ] {
            let case = Case {
                declared: &[],
                state: Some(SlotState {
                    link_mode: known,
                    ..state(tree(A).id(), &[])
                }),
                disk: B,
                link_mode: wanted,
                ..intact()
            };
            assert_eq!(refresh(&case).link_mode, known);
        }
    }

    #[test]
    fn a_linked_slot_whose_package_gains_hooks_gets_files_of_its_own() {
        let old: Files<'_> = &[("a", "1"), ("same", "1")];
        let new: Files<'_> = &[("a", "2"), ("same", "1")];
        let linked = |tree| {
            Some(SlotState {
                link_mode: LinkMode::Hardlink,
                ..state(tree, &[])
            })
        };
        let case = Case {
            incoming: new,
            record: Some(("1.0.0", old)),
            disk: old,
            state: linked(tree(old).id()),
            ..intact()
        };
        assert_eq!(changes(&case), ["change a", "unshare same"]);
        let found = refresh(&case);
        assert_eq!(found.link_mode, LinkMode::Copy);
        assert_eq!(found.row.unwrap().link_mode, LinkMode::Hardlink);
        // A second try, after one that was cut short once the record was written.
        let again = Case {
            record: Some(("1.0.0", new)),
            disk: new,
            state: linked(tree(new).id()),
            ..case.clone()
        };
        assert_eq!(changes(&again), ["unshare a", "unshare same"]);
        let plain = Case {
            declared: &[],
            ..again
        };
        assert!(matches!(examine(&plain).step, Step::Keep(_)));
    }

    #[test]
    fn a_remembered_slot_keeps_its_row_though_its_hooks_are_not_given() {
        let case = Case {
            declared: &[],
            ..intact()
        };
        check_kept(&plan(&case, Look::Remembered), None);
    }

    #[test]
    fn a_phase_left_owed_is_retried_without_touching_the_slot() {
        let case = with_phases(POST_OWED);
        for look in [Look::Remembered, Look::Examined] {
            let plan = plan(&case, look);
            check_kept(&plan, None);
            assert_eq!(hooks(&plan), due(&[PostInstall], HookReason::Retry));
        }
    }

    #[test]
    fn a_phase_held_back_runs_for_its_own_reason_once_it_may() {
        let skipped = [(PreInstall, Done), (PostInstall, Skipped)];
        let case = with_phases(&skipped);
        let owed = state(tree(A).id(), POST_OWED);
        for look in [Look::Remembered, Look::Examined] {
            let allowed = plan(&case, look);
            check_kept(&allowed, Some(&owed));
            assert_eq!(hooks(&allowed), due(&[PostInstall], HookReason::Install));
            for decision in [HookDecision::Held, HookDecision::Ask] {
                let held = plan(
                    &Case {
                        decision,
                        ..case.clone()
                    },
                    look,
                );
                check_kept(&held, None);
                assert_eq!(hooks(&held), [(PostInstall, decision, HookReason::Install)]);
            }
            let declined = with_phases(&[(PreInstall, Done), (PostInstall, Declined)]);
            assert_eq!(plan(&declined, look).hooks, []);
        }
    }

    #[test]
    fn a_drifted_file_is_repaired_and_every_hook_runs_once() {
        let case = Case {
            disk: B,
            ..intact()
        };
        let plan = examine(&case);
        assert_eq!(hooks(&plan), due(&Phase::ALL, HookReason::Repair));
        let refresh = refresh(&case);
        assert_eq!(refresh.because, SlotReason::Drift { files: 1 });
        assert_eq!(refresh.undo, Undo::None);
        assert_eq!(changes(&case), ["repair a"]);
        let row = refresh.row.unwrap();
        assert_eq!(row.phases, OWED.iter().copied().collect());
        assert_eq!(row.reason, HookReason::Repair);
        assert_eq!(row.boot.as_deref(), Some("this-boot"));
        assert_eq!(row.link_mode, LinkMode::Reflink);
        assert_eq!(row.adding, []);
    }

    #[test]
    fn held_hooks_are_owed_and_listed_when_payload_changes() {
        for decision in [HookDecision::Held, HookDecision::Ask] {
            let case = Case {
                disk: B,
                decision,
                ..intact()
            };
            let phases: Vec<_> = hooks(&examine(&case)).iter().map(|h| (h.0, h.1)).collect();
            assert_eq!(phases, [(PreInstall, decision), (PostInstall, decision)]);
            assert_eq!(refresh_row(&case).phases, OWED.iter().copied().collect());
        }
    }

    #[test]
    fn another_tree_is_an_update_that_can_be_undone() {
        let case = Case {
            incoming: B,
            ..intact()
        };
        let found = refresh(&case);
        assert_eq!(found.because, SlotReason::Content);
        assert_eq!(found.undo, Undo::Payload);
        assert_eq!(changes(&case), ["change a"]);
        assert_eq!(hooks(&examine(&case)), due(&Phase::ALL, HookReason::Update));
        let row = found.row.unwrap();
        assert_eq!((row.tree, row.reason), (tree(B).id(), HookReason::Update));
        assert_eq!(row.adding, rows(B));
        let held = Case {
            decision: HookDecision::Held,
            ..case.clone()
        };
        assert_eq!(refresh(&held).undo, Undo::Changed);
        let post = Case {
            declared: &[PostInstall],
            ..case
        };
        assert_eq!(refresh(&post).undo, Undo::Changed);
    }

    #[test]
    fn another_tree_whose_files_already_lie_there_runs_nothing() {
        let case = Case {
            incoming: B,
            disk: B,
            ..intact()
        };
        let refresh = refresh(&case);
        assert_eq!(refresh.changes, []);
        assert_eq!(refresh.undo, Undo::Changed);
        assert_eq!(examine(&case).hooks, []);
        let row = refresh.row.unwrap();
        assert_eq!(
            (row.tree, row.boot.as_deref()),
            (tree(B).id(), Some("old-boot"))
        );
    }

    #[test]
    fn a_rewritten_record_is_no_reason_to_run() {
        for record in [None, Some(("1.0.0+build", A))] {
            let case = Case { record, ..intact() };
            let refresh = refresh(&case);
            assert_eq!(refresh.because, SlotReason::Record);
            assert_eq!((refresh.changes, refresh.undo), (Vec::new(), Undo::None));
            assert_eq!(examine(&case).hooks, []);
        }
    }

    #[test]
    fn without_state_hooks_are_owed_as_for_an_install() {
        let case = Case {
            state: None,
            ..intact()
        };
        let plan = examine(&case);
        let row = SlotState {
            link_mode: LinkMode::Copy,
            boot: None,
            ..state(tree(A).id(), OWED)
        };
        check_kept(&plan, Some(&row));
        assert_eq!(hooks(&plan), due(&Phase::ALL, HookReason::Install));
        let drifted = Case { disk: B, ..case };
        assert_eq!(
            hooks(&examine(&drifted)),
            due(&Phase::ALL, HookReason::Install)
        );
    }

    fn hook_changed(phases: &[(Phase, PhaseState)]) -> Case<'static> {
        let row = SlotState {
            after: after(&[("a", "h")]),
            ..state(tree(A).id(), phases)
        };
        let disk = &[("a", "h")];
        Case {
            state: Some(row),
            disk,
            ..intact()
        }
    }

    #[test]
    fn a_slot_as_its_hooks_left_it_is_intact_unless_forced() {
        let case = hook_changed(DONE);
        check_kept(&examine(&case), None);
        assert_eq!(examine(&case).hooks, []);
        let forced = Case {
            force: true,
            ..case
        };
        assert_eq!(changes(&forced), ["reset a"]);
        assert_eq!(refresh(&forced).because, SlotReason::Forced);
        assert_eq!(
            hooks(&examine(&forced)),
            due(&Phase::ALL, HookReason::Repair)
        );
        assert_eq!(refresh_row(&forced).after, BTreeMap::new());
    }

    #[test]
    fn an_owed_pre_install_starts_from_published_bytes() {
        let case = hook_changed(OWED);
        assert_eq!(changes(&case), ["reset a"]);
        assert_eq!(refresh(&case).because, SlotReason::Hooks);
        assert_eq!(hooks(&examine(&case)), due(&Phase::ALL, HookReason::Retry));
        for decision in [HookDecision::Held, HookDecision::Ask] {
            check_kept(
                &examine(&Case {
                    decision,
                    ..case.clone()
                }),
                None,
            );
        }
    }

    #[test]
    fn an_owed_post_install_runs_on_the_slot_as_it_is() {
        let case = hook_changed(POST_OWED);
        check_kept(&examine(&case), None);
        assert_eq!(
            hooks(&examine(&case)),
            due(&[PostInstall], HookReason::Retry)
        );
    }

    #[test]
    fn a_repair_restores_what_hooks_changed_too() {
        let case = hook_changed(DONE);
        let two = &[("a", "1"), ("b", "1")];
        let row = SlotState {
            tree: tree(two).id(),
            ..case.state.clone().unwrap()
        };
        let case = Case {
            incoming: two,
            record: Some(("1.0.0", two)),
            state: Some(row),
            force: true,
            ..case
        };
        assert_eq!(changes(&case), ["reset a", "repair b"]);
        assert_eq!(refresh(&case).because, SlotReason::Drift { files: 1 });
    }

    #[test]
    fn what_is_no_longer_as_hooks_left_it_is_forgotten() {
        let case = Case {
            disk: A,
            ..hook_changed(DONE)
        };
        check_kept(&examine(&case), Some(&state(tree(A).id(), DONE)));
    }

    #[test]
    fn without_a_record_what_hooks_left_is_told_by_the_tree_that_state_names() {
        let case = Case {
            record: None,
            ..hook_changed(DONE)
        };
        assert_eq!(changes(&case), Vec::<String>::new());
        assert_eq!(examine(&case).hooks, []);
        let other = Case {
            incoming: B,
            ..case
        };
        assert_eq!(changes(&other), ["add a"]);
        let mut row = other.state.clone().unwrap();
        row.tree = tree(B).id();
        let recorded = Case {
            record: Some(("1.0.0", A)),
            state: Some(row),
            ..other
        };
        assert_eq!(changes(&recorded), ["change a"]);
    }

    fn with_made(phases: &[(Phase, PhaseState)], reset: Reset) -> Case<'static> {
        let row = SlotState {
            made: made(&["m"]),
            ..state(tree(A).id(), phases)
        };
        let disk = &[("a", "1"), ("m/x", "h")];
        Case {
            state: Some(row),
            disk,
            reset,
            ..intact()
        }
    }

    #[test]
    fn made_paths_survive_unless_everything_is_reset_for_a_rerun() {
        check_kept(&examine(&with_made(OWED, Reset::Payload)), None);
        check_kept(&examine(&with_made(DONE, Reset::All)), None);
        check_kept(&examine(&with_made(POST_OWED, Reset::All)), None);
        let case = with_made(OWED, Reset::All);
        assert_eq!(changes(&case), ["unmake m"]);
        assert_eq!(refresh(&case).because, SlotReason::Hooks);
        assert_eq!(hooks(&examine(&case)), due(&Phase::ALL, HookReason::Retry));
        let touched = Case {
            touched: &["m"],
            ..case.clone()
        };
        assert_eq!(changes(&touched), ["aside m to m.vibe-kept"]);
        let held = Case {
            decision: HookDecision::Held,
            ..case
        };
        check_kept(&examine(&held), None);
        let none = Case {
            declared: &[],
            ..with_made(&[], Reset::All)
        };
        check_kept(&examine(&none), None);
    }

    #[test]
    fn a_made_path_is_remembered_until_it_is_gone_or_payload() {
        let case = with_made(OWED, Reset::All);
        assert_eq!(refresh_row(&case).made, made(&["m"]));
        let gone = Case { disk: A, ..case };
        check_kept(&examine(&gone), Some(&state(tree(A).id(), OWED)));
        let files = &[("a", "1"), ("m/p", "1")];
        let directory = Case {
            incoming: files,
            ..with_made(DONE, Reset::Payload)
        };
        assert_eq!(refresh_row(&directory).made, made(&[]));
        let file = Case {
            incoming: &[("a", "1"), ("m", "1")],
            ..directory
        };
        assert_eq!(changes(&file), ["unmake m", "add m"]);
        assert_eq!(refresh_row(&file).made, made(&["m"]));
    }

    #[test]
    fn a_row_stays_while_a_package_without_hooks_has_something_to_know() {
        let case = Case {
            declared: &[],
            incoming: B,
            ..with_made(DONE, Reset::Payload)
        };
        let row = refresh_row(&case);
        assert_eq!((row.phases, row.made), (BTreeMap::new(), made(&["m"])));
        let case = Case {
            declared: &[],
            incoming: B,
            state: None,
            ..intact()
        };
        assert_eq!(refresh_row(&case).adding, rows(B));
        let after = Case {
            declared: &[],
            record: Some(("1.0.0+build", A)),
            ..hook_changed(&[])
        };
        assert_eq!(refresh_row(&after).after.len(), 1);
    }

    fn cut_short(adding: Files<'_>) -> Case<'static> {
        let row = SlotState {
            adding: rows(adding),
            ..state(tree(A).id(), OWED)
        };
        Case {
            state: Some(row),
            ..intact()
        }
    }

    #[test]
    fn what_a_refresh_was_adding_is_known_until_the_record_names_it() {
        check_kept(
            &examine(&cut_short(&[("b", "1")])),
            Some(&state(tree(A).id(), OWED)),
        );
        let drifted = Case {
            disk: &[("a", "x")],
            ..cut_short(&[("a", "1"), ("b", "1")])
        };
        assert_eq!(refresh_row(&drifted).adding, [row("b", "1")]);
        let other = &[("a", "2"), ("b", "1")];
        let applied = Case {
            incoming: other,
            disk: other,
            ..cut_short(other)
        };
        assert_eq!(refresh(&applied).changes, []);
        assert_eq!(refresh_row(&applied).adding, rows(other));
        let replaced = Case {
            incoming: &[("a", "1"), ("b", "3")],
            ..cut_short(other)
        };
        assert_eq!(
            refresh_row(&replaced).adding,
            [row("a", "2"), row("b", "3")]
        );
    }

    #[test]
    fn a_written_record_makes_the_refresh_forgotten() {
        let row = SlotState {
            adding: rows(B),
            made: made(&["a", "d", "m"]),
            ..state(tree(A).id(), DONE)
        };
        let tree = tree(&[("a", "1"), ("d/x", "1")]);
        let expected = SlotState {
            made: made(&["m"]),
            ..state(row.tree, DONE)
        };
        assert_eq!(recorded_row(row, &tree), expected);
    }

    fn killed(phase: Phase, disk: Files<'static>) -> Case<'static> {
        let row = SlotState {
            running: Some(RunningHook {
                phase,
                process: None,
            }),
            after: after(&[("a", "old"), ("b", "-")]),
            ..state(tree(&[("a", "1"), ("b", "1"), ("c", "1")]).id(), POST_OWED)
        };
        let files = &[("a", "1"), ("b", "1"), ("c", "1")];
        let (incoming, record) = (files, Some(("1.0.0", &files[..])));
        Case {
            incoming,
            record,
            state: Some(row),
            disk,
            ..intact()
        }
    }

    #[test]
    fn what_a_killed_post_install_changed_is_its_doing() {
        let case = killed(PostInstall, &[("a", "h"), ("b*", "1")]);
        let plan = examine(&case);
        let expected = SlotState {
            after: after(&[("a", "h"), ("b*", "1"), ("c", "-")]),
            running: None,
            ..case.state.unwrap()
        };
        let Step::Keep(keep) = plan.step.clone() else {
            panic!("{plan:?}")
        };
        assert_eq!(keep.row, Some(expected));
        assert_eq!(hooks(&plan), due(&[PostInstall], HookReason::Retry));
    }

    #[test]
    fn what_hooks_left_is_every_payload_file_that_is_not_as_published_and_no_other() {
        let published = tree(&[("a", "1"), ("b", "1"), ("c", "1"), ("d*", "1"), ("e", "1")]);
        let before = state(published.id(), &[(PostInstall, Done)]);
        let disk = contents(&[
            ("a", "1"),
            ("b", "2"),
            ("d", "1"),
            ("e/", ""),
            ("made", "x"),
        ]);
        let left = as_hooks_left(&before, &published, &disk);
        assert_eq!(left.after, after(&[("b", "2"), ("c", "-"), ("d", "1")]));
        assert_eq!(left.phases, before.phases);
    }

    #[test]
    fn that_a_killed_hook_is_no_longer_running_is_written_though_nothing_else_changed() {
        let case = killed(PostInstall, &[("a", "1"), ("b", "1"), ("c", "1")]);
        let Step::Keep(keep) = examine(&case).step else {
            panic!()
        };
        let row = keep.row.unwrap();
        assert_eq!((row.running, row.after), (None, BTreeMap::new()));
    }

    #[test]
    fn a_killed_post_install_that_left_no_file_leaves_drift() {
        let case = killed(PostInstall, &[("a@", ""), ("b", "1"), ("c", "1")]);
        assert_eq!(changes(&case), ["repair a"]);
        assert_eq!(hooks(&examine(&case)), due(&Phase::ALL, HookReason::Repair));
    }

    #[test]
    fn what_a_killed_pre_install_changed_is_drift() {
        let case = killed(PreInstall, &[("a", "h"), ("b", "1"), ("c", "1")]);
        assert_eq!(changes(&case), ["repair a"]);
    }

    #[test]
    fn a_killed_post_install_of_another_tree_excuses_nothing() {
        let case = killed(PostInstall, &[("a", "h"), ("b", "1"), ("c", "1")]);
        let incoming = &[("a", "1"), ("b", "1"), ("c", "2")];
        let refreshed = Case {
            incoming,
            ..case.clone()
        };
        assert_eq!(changes(&refreshed), ["repair a", "change c"]);
        let recorded = Case {
            record: Some(("1.0.0", B)),
            ..case.clone()
        };
        assert_eq!(changes(&recorded), ["change a"]);
        let mut row = case.state.clone().unwrap();
        row.tree = tree(B).id();
        let targeted = Case {
            state: Some(row),
            ..case
        };
        assert_eq!(changes(&targeted), ["repair a"]);
    }

    fn placed(case: &Case<'_>) -> (SlotReason, Option<SlotState>, Vec<HookReason>) {
        let plan = plan(case, Look::Absent);
        let Step::Place(place) = plan.step else {
            panic!("{:?}", plan.step)
        };
        assert_eq!(
            (place.slot, place.tree, place.files),
            (slot(), tree(A).id(), 1)
        );
        let reasons = plan.hooks.iter().map(|hook| hook.because).collect();
        (place.because, place.row, reasons)
    }

    #[test]
    fn a_slot_is_placed_for_a_reason_that_its_hooks_are_told() {
        let new = Case {
            was_locked: false,
            state: None,
            ..intact()
        };
        let (because, row, reasons) = placed(&new);
        assert_eq!(
            (because, reasons),
            (SlotReason::New, vec![HookReason::Install; 2])
        );
        let expected = SlotState {
            link_mode: LinkMode::Copy,
            boot: Some("this-boot".to_owned()),
            ..state(tree(A).id(), OWED)
        };
        assert_eq!(row, Some(expected.clone()));

        let cloned = Case {
            state: None,
            ..intact()
        };
        let (because, row, reasons) = placed(&cloned);
        assert_eq!(
            (because, reasons),
            (SlotReason::Missing, vec![HookReason::Install; 2])
        );
        assert_eq!(row, Some(expected.clone()));

        let (because, row, reasons) = placed(&intact());
        assert_eq!(
            (because, reasons),
            (SlotReason::Missing, vec![HookReason::Repair; 2])
        );
        assert_eq!(row.unwrap().reason, HookReason::Repair);

        let updated = Case {
            previous: Some("0.9.0"),
            ..new
        };
        let (because, row, reasons) = placed(&updated);
        let from = "0.9.0".to_owned();
        assert_eq!(
            (because, reasons),
            (
                SlotReason::Version { from: from.clone() },
                vec![HookReason::Update; 2]
            )
        );
        let row = row.unwrap();
        assert_eq!(
            (row.reason, row.previous_version),
            (HookReason::Update, Some(from))
        );
    }

    #[test]
    fn a_first_install_that_was_killed_is_still_the_first() {
        let case = with_phases(OWED);
        assert_eq!(placed(&case).2, [HookReason::Install; 2]);
        let unlocked = Case {
            was_locked: false,
            ..case
        };
        let (because, _, reasons) = placed(&unlocked);
        assert_eq!(
            (because, reasons),
            (SlotReason::New, vec![HookReason::Install; 2])
        );
        let prepared = Case {
            was_locked: false,
            ..with_phases(POST_OWED)
        };
        assert_eq!(placed(&prepared).0, SlotReason::New);
    }

    #[test]
    fn a_new_slot_without_hooks_gets_no_row() {
        let case = Case {
            declared: &[],
            ..intact()
        };
        assert_eq!(placed(&case).1, None);
    }

    #[test]
    fn the_version_before_is_what_the_lock_named_last() {
        let mut row = state(tree(A).id(), POST_OWED);
        row.previous_version = Some("0.8.0".to_owned());
        let case = Case {
            state: Some(row),
            disk: B,
            ..intact()
        };
        assert_eq!(
            refresh_row(&case).previous_version.as_deref(),
            Some("0.8.0")
        );
        let moved = Case {
            previous: Some("0.9.0"),
            ..case
        };
        assert_eq!(
            refresh_row(&moved).previous_version.as_deref(),
            Some("0.9.0")
        );
    }

    #[test]
    fn edited_files_that_the_package_dropped_are_named() {
        let two = &[("a", "1"), ("b", "1")];
        let case = Case {
            record: Some(("1.0.0", two)),
            disk: &[("a", "1"), ("b", "u")],
            ..intact()
        };
        assert_eq!(examine(&case).edited, [path("b")]);
        let kept = Case {
            incoming: two,
            ..case
        };
        assert_eq!(examine(&kept).edited, []);
    }

    #[test]
    fn a_due_hook_is_planned_with_all_it_was_selected_with() {
        let plan = examine(&with_phases(POST_OWED));
        let selected = hook(PostInstall);
        let expected = RunHook {
            slot: slot(),
            phase: PostInstall,
            script: selected.script,
            sha256: selected.digest,
            interpreter: selected.interpreter,
            program: selected.program,
            decision: HookDecision::Run,
            because: HookReason::Retry,
        };
        assert_eq!(plan.hooks, [expected]);
    }

    #[test]
    fn a_plan_has_slots_then_pre_installs_then_post_installs_then_removals() {
        let parts = vec![
            examine(&with_phases(OWED)),
            examine(&Case {
                disk: B,
                ..intact()
            }),
        ];
        let removal = crate::removal::removal(&slot(), &record("1.0.0", A), None, &contents(A));
        let plan = assemble(parts, vec![Step::Remove(removal)]);
        let name = |step: &Step| match step {
            Step::Keep(_) => "keep",
            Step::Refresh(_) => "refresh",
            Step::Place(_) => "place",
            Step::Remove(_) => "remove",
            Step::CheckOut(_) | Step::KeepClone(_) | Step::RemoveClone(_) => "clone",
            Step::RunHook(hook) => match (hook.phase, hook.because) {
                (PreInstall, HookReason::Retry) => "first pre-install",
                (PreInstall, _) => "second pre-install",
                (PostInstall, HookReason::Retry) => "first post-install",
                (PostInstall, _) => "second post-install",
            },
        };
        let names: Vec<&str> = plan.steps.iter().map(name).collect();
        let expected = [
            "keep",
            "refresh",
            "first pre-install",
            "second pre-install",
            "first post-install",
            "second post-install",
            "remove",
        ];
        assert_eq!(names, expected);
    }
}
