//! The rerun law: which phases of a package are owed.
//!
//! A phase runs if and only if it is owed, and only exit 0 settles it. It becomes owed when the
//! payload of its package changes in the directory where the package is placed, and that is
//! written down before the first byte changes, so that a crash in between loses nothing. An owed
//! pre-install starts from the published bytes, therefore every other declared phase is owed with
//! it. Nothing else is a reason to run: not a reinstall that changes nothing, not a rewritten
//! record, not a moved commit with the same tree.

use std::collections::BTreeMap;

use vibe_core::formats::state::SlotState;
use vibe_core::hook::{Phase, PhaseState};
use vibe_core::plan::HookDecision;

/// Where the `declared` phases stand once a payload diff is known.
///
/// `state` is the slot's row, `None` where this machine has none: then nothing ran here. `changed`
/// says whether the payload diff is nonempty. A skipped phase is owed again as soon as `decision`
/// lets it run.
pub fn phases(
    declared: &[Phase],
    state: Option<&SlotState>,
    changed: bool,
    decision: HookDecision,
) -> BTreeMap<Phase, PhaseState> {
    let before = |phase: &Phase| match state {
        Some(state) if !changed => {
            let known = state.phases.get(phase).copied().unwrap_or(PhaseState::Owed);
            match known {
                PhaseState::Skipped if decision == HookDecision::Run => PhaseState::Owed,
                _ => known,
            }
        }
        _ => PhaseState::Owed,
    };
    let mut phases: BTreeMap<Phase, PhaseState> = declared
        .iter()
        .map(|phase| (*phase, before(phase)))
        .collect();
    if phases.get(&Phase::PreInstall) == Some(&PhaseState::Owed) {
        phases
            .values_mut()
            .for_each(|state| *state = PhaseState::Owed);
    }
    phases
}

/// The phases of `phases` that are due, in the order they run.
pub fn owed(phases: &BTreeMap<Phase, PhaseState>) -> impl Iterator<Item = Phase> {
    phases
        .iter()
        .filter(|(_, state)| **state == PhaseState::Owed)
        .map(|(phase, _)| *phase)
}
