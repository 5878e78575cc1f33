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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{state, tree};
    use HookDecision::{Ask, Held, Run};
    use Phase::{PostInstall, PreInstall};
    use PhaseState::{Declined, Done, Owed, Skipped};

    type Known<'a> = &'a [(Phase, PhaseState)];

    /// `known` are the phases in the slot's row, if it has one.
    fn check(
        declared: &[Phase],
        known: Option<Known<'_>>,
        changed: bool,
        decision: HookDecision,
        expected: Known<'_>,
    ) {
        let state = known.map(|known| state(tree(&[]).id(), known));
        let found = phases(declared, state.as_ref(), changed, decision);
        assert_eq!(found, expected.iter().copied().collect());
    }

    const BOTH: [Phase; 2] = Phase::ALL;
    const ALL_OWED: Known<'static> = &[(PreInstall, Owed), (PostInstall, Owed)];

    #[test]
    fn a_payload_change_owes_every_declared_phase_wherever_it_stood() {
        for decision in [Run, Ask, Held] {
            for before in [Owed, Skipped, Declined, Done] {
                let known: Known<'_> = &[(PreInstall, before), (PostInstall, before)];
                check(&BOTH, Some(known), true, decision, ALL_OWED);
                let post: Known<'_> = &[(PostInstall, before)];
                check(
                    &[PostInstall],
                    Some(post),
                    true,
                    decision,
                    &[(PostInstall, Owed)],
                );
            }
        }
    }

    #[test]
    fn a_slot_without_state_owes_every_declared_phase() {
        check(&BOTH, None, false, Run, ALL_OWED);
        check(&BOTH, None, false, Held, ALL_OWED);
        check(&[PostInstall], None, true, Run, &[(PostInstall, Owed)]);
        check(&[], None, true, Run, &[]);
    }

    #[test]
    fn without_a_payload_change_settled_phases_stay_settled() {
        for decision in [Run, Ask, Held] {
            let done: Known<'_> = &[(PreInstall, Done), (PostInstall, Done)];
            check(&BOTH, Some(done), false, decision, done);
            let declined: Known<'_> = &[(PreInstall, Declined), (PostInstall, Declined)];
            check(&BOTH, Some(declined), false, decision, declined);
        }
    }

    #[test]
    fn an_owed_post_install_leaves_a_settled_pre_install_settled() {
        let known: Known<'_> = &[(PreInstall, Done), (PostInstall, Owed)];
        check(&BOTH, Some(known), false, Run, known);
        check(&BOTH, Some(known), false, Held, known);
    }

    #[test]
    fn an_owed_pre_install_owes_every_other_declared_phase() {
        for other in [Done, Declined, Skipped] {
            let known: Known<'_> = &[(PreInstall, Owed), (PostInstall, other)];
            check(&BOTH, Some(known), false, Run, ALL_OWED);
            check(&BOTH, Some(known), false, Held, ALL_OWED);
        }
    }

    #[test]
    fn a_skipped_phase_is_owed_only_when_it_may_run() {
        let known: Known<'_> = &[(PreInstall, Done), (PostInstall, Skipped)];
        let owed: Known<'_> = &[(PreInstall, Done), (PostInstall, Owed)];
        check(&BOTH, Some(known), false, Run, owed);
        check(&BOTH, Some(known), false, Ask, known);
        check(&BOTH, Some(known), false, Held, known);
        let pre: Known<'_> = &[(PreInstall, Skipped), (PostInstall, Done)];
        check(&BOTH, Some(pre), false, Run, ALL_OWED);
        check(&BOTH, Some(pre), false, Held, pre);
    }

    #[test]
    fn a_phase_unknown_to_the_row_is_owed_and_one_no_longer_declared_is_dropped() {
        let known: Known<'_> = &[(PreInstall, Done)];
        let expected: Known<'_> = &[(PreInstall, Done), (PostInstall, Owed)];
        check(&BOTH, Some(known), false, Run, expected);
        check(
            &[PostInstall],
            Some(known),
            false,
            Run,
            &[(PostInstall, Owed)],
        );
        check(&[], Some(known), false, Run, &[]);
    }
}
