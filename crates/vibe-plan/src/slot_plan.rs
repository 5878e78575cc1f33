//! One package's part of the place plan: what happens to its slot and which of its hooks are due.

use std::collections::BTreeMap;

use vibe_core::contents::{DiskEntry, SlotContents};
use vibe_core::formats::record::SlotRecord;
use vibe_core::formats::state::{AfterFile, LinkMode, MadePath, SlotState};
use vibe_core::hook::{HookReason, Phase, PhaseState, Reset, SelectedHook};
use vibe_core::plan::{
    FileChange, HookDecision, Keep, Place, PlacePlan, Refresh, Remove, RunHook, SlotReason, Step,
    Undo,
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
pub fn assemble(parts: Vec<SlotPlan>, removals: Vec<Remove>) -> PlacePlan {
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
    steps.extend(removals.into_iter().map(Step::Remove));
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
    let row = (!phases.is_empty()).then(|| SlotState {
        tree: desired.tree_id,
        phases: phases.clone(),
        reason,
        previous_version: desired.previous.clone(),
        after: BTreeMap::new(),
        made: BTreeMap::new(),
        adding: Vec::new(),
        link_mode: LinkMode::Copy,
        boot: options.boot.clone(),
        running: None,
    });
    let step = Step::Place(Place {
        slot: desired.slot.clone(),
        tree: desired.tree_id,
        files: tree.rows().len(),
        because,
        row,
    });
    SlotPlan {
        step,
        hooks: due_hooks(desired, &phases, reason, options),
        edited: Vec::new(),
    }
}

fn keep(desired: &Desired<'_>, state: Option<&SlotState>, options: &SlotOptions) -> SlotPlan {
    let Some(state) = state else {
        return kept(desired, None, Vec::new());
    };
    let phases = rerun::phases(&declared(desired), Some(state), false, options.decision);
    let due = due_hooks(desired, &phases, settled(state.reason, state), options);
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
    let (no_after, no_made) = (BTreeMap::new(), BTreeMap::new());
    let recorded = record.map_or(&nothing, |record| &record.tree);
    let same_target = state.is_some_and(|state| state.tree == desired.tree_id);
    let input = DiffInput {
        incoming: tree,
        recorded,
        published: if record.is_none() && same_target {
            tree
        } else {
            recorded
        },
        adding: state.map_or(&[], |state| &state.adding),
        after: state.map_or(&no_after, |state| &state.after),
        made: state.map_or(&no_made, |state| &state.made),
        disk: contents,
    };
    let mut difference = diff(&input);
    let drift = difference.payload_changes();
    let changed = drift > 0 || (options.force && !difference.hook_changed.is_empty());
    let phases = rerun::phases(&declared(desired), state, changed, options.decision);
    start_over(desired, &phases, changed, &input, &mut difference, options);

    let because = slot_reason(desired, record, drift, options, changed);
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
        Some(state) if !changed => settled(reason, state),
        _ => reason,
    };
    let hooks = due_hooks(desired, &phases, due_because, options);
    let edited = std::mem::take(&mut difference.edited);
    let same_record = record.is_some_and(|record| {
        record.tree.id() == desired.tree_id && record.version == *desired.version
    });
    if difference.changes.is_empty() && same_record {
        let row = row.filter(|row| written != Some(row));
        return SlotPlan {
            edited,
            ..kept(desired, row, hooks)
        };
    }
    let step = Step::Refresh(Refresh {
        slot: desired.slot.clone(),
        tree: desired.tree_id,
        files: tree.rows().len(),
        because,
        undo: undo(desired, record, options, &phases),
        changes: difference.changes,
        row,
    });
    SlotPlan {
        step,
        hooks,
        edited,
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
    let mut settled = SlotState {
        running: None,
        ..state.clone()
    };
    let in_post_install = state
        .running
        .as_ref()
        .is_some_and(|hook| hook.phase == Phase::PostInstall);
    let same_payload = record.is_some_and(|record| record.tree == *tree) && state.tree == tree.id();
    if !in_post_install || !same_payload {
        return settled;
    }
    settled.after.clear();
    for row in tree.rows() {
        match contents.entries.get(&row.path) {
            None => settled.after.insert(row.path.clone(), AfterFile::Deleted),
            Some(DiskEntry::File {
                digest: Some(digest),
                exec,
            }) if (*digest, *exec) != (row.digest, row.exec) => {
                let file = AfterFile::File {
                    digest: *digest,
                    exec: *exec,
                };
                settled.after.insert(row.path.clone(), file)
            }
            Some(_) => None,
        };
    }
    settled
}

fn slot_reason(
    desired: &Desired<'_>,
    record: Option<&SlotRecord>,
    drift: usize,
    options: &SlotOptions,
    changed: bool,
) -> SlotReason {
    match record {
        None => SlotReason::Record,
        Some(record) if record.tree.id() != desired.tree_id => SlotReason::Content,
        Some(_) if drift > 0 => SlotReason::Drift { files: drift },
        Some(_) if options.force && changed => SlotReason::Forced,
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

/// A phase that an earlier run left owed is a retry; one that was held back has its own reason.
fn settled(reason: HookReason, state: &SlotState) -> HookReason {
    if state.phases.values().any(|s| *s == PhaseState::Owed) {
        HookReason::Retry
    } else {
        reason
    }
}

/// The row to be written before the first change. It knows every path by its content before the
/// changes as well as after them, so that a second try, wherever the first was cut short, does
/// what the first would have done. A package without hooks needs one only while there is something
/// to know.
fn row_after(
    desired: &Desired<'_>,
    phases: &BTreeMap<Phase, PhaseState>,
    reason: HookReason,
    state: Option<&SlotState>,
    difference: &PayloadDiff,
    input: &DiffInput<'_>,
    options: &SlotOptions,
) -> Option<SlotState> {
    let mut after = input.after.clone();
    after.retain(|path, _| difference.hook_changed.iter().any(|row| row.path == *path));
    let row = SlotState {
        tree: desired.tree_id,
        phases: phases.clone(),
        reason,
        previous_version: (desired.previous.clone())
            .or_else(|| state.and_then(|state| state.previous_version.clone())),
        after,
        made: made(difference, input),
        adding: adding(desired, difference, input),
        link_mode: state.map_or(LinkMode::Copy, |state| state.link_mode),
        boot: if difference.is_empty() {
            state.and_then(|state| state.boot.clone())
        } else {
            options.boot.clone()
        },
        running: None,
    };
    let needed = !desired.hooks.is_empty()
        || !row.after.is_empty()
        || !row.made.is_empty()
        || !row.adding.is_empty();
    needed.then_some(row)
}

/// The made paths that are still to be remembered. One that becomes payload is not: what lies in
/// it is known by its content from here on. One that is to be cleared is forgotten only when it is
/// gone, or a second try would not know it.
fn made(difference: &PayloadDiff, input: &DiffInput<'_>) -> BTreeMap<RelPath, MadePath> {
    let goes = |path: &RelPath| {
        let mut changes = difference.changes.iter();
        changes
            .any(|change| matches!(change, FileChange::RemoveMade { path: other } if other == path))
    };
    let mut made = input.made.clone();
    made.retain(|path, _| {
        let present = input.disk.entries.contains_key(path);
        present && (!is_payload(path, input.incoming) || goes(path))
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

/// The hooks that are due: owed ones, and those held back while they still are.
fn due_hooks(
    desired: &Desired<'_>,
    phases: &BTreeMap<Phase, PhaseState>,
    because: HookReason,
    options: &SlotOptions,
) -> Vec<RunHook> {
    let due = |hook: &&SelectedHook| {
        matches!(
            phases.get(&hook.phase),
            Some(PhaseState::Owed | PhaseState::Skipped)
        )
    };
    let mut hooks: Vec<RunHook> = desired
        .hooks
        .iter()
        .filter(due)
        .map(|hook| RunHook {
            slot: desired.slot.clone(),
            phase: hook.phase,
            script: hook.script.clone(),
            sha256: hook.digest,
            interpreter: hook.interpreter,
            program: hook.program.clone(),
            decision: options.decision,
            because,
        })
        .collect();
    hooks.sort_by_key(|hook| hook.phase);
    hooks
}
