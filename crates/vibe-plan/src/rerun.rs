//! The rerun law: which phases of a package are owed.
//!
//! A phase runs if and only if it is owed, and only exit 0 settles it. It becomes owed when the
//! payload of its package changes in the directory where the package is placed, and that is
//! written down before the first byte changes, so that a crash in between loses nothing. An owed
//! pre-install starts from the published bytes, therefore every other declared phase is owed with
//! it. Nothing else is a reason to run: not a reinstall that changes nothing, not a rewritten
//! record, not a moved commit with the same tree.

use std::collections::BTreeMap;

use vibe_core::SlotName;
use vibe_core::hook::{HookReason, Phase, PhaseState, SelectedHook};
use vibe_core::plan::{HookDecision, RunHook};

/// Where the `declared` phases stand once a payload diff is known.
///
/// `known` are the phases in the slot's row, `None` where this machine has none: then nothing ran
/// here. `changed` says whether the payload diff is nonempty. A skipped phase is owed again as soon as `decision`
/// lets it run.
pub fn phases(
    declared: &[Phase],
    known: Option<&BTreeMap<Phase, PhaseState>>,
    changed: bool,
    decision: HookDecision,
) -> BTreeMap<Phase, PhaseState> {
    let before = |phase: &Phase| match known {
        Some(known) if !changed => {
            let stood = known.get(phase).copied().unwrap_or(PhaseState::Owed);
            match stood {
                PhaseState::Skipped if decision == HookDecision::Run => PhaseState::Owed,
                _ => stood,
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

/// The hooks that are due: owed ones, and those held back while they still are.
pub(crate) fn due_hooks(
    slot: &SlotName,
    hooks: &[SelectedHook],
    phases: &BTreeMap<Phase, PhaseState>,
    because: HookReason,
    decision: HookDecision,
) -> Vec<RunHook> {
    let due = |hook: &&SelectedHook| {
        matches!(
            phases.get(&hook.phase),
            Some(PhaseState::Owed | PhaseState::Skipped)
        )
    };
    let run = |hook: &SelectedHook| RunHook {
        slot: slot.clone(),
        phase: hook.phase,
        script: hook.script.clone(),
        sha256: hook.digest,
        interpreter: hook.interpreter,
        program: hook.program.clone(),
        decision,
        because,
    };
    let mut due: Vec<RunHook> = hooks.iter().filter(due).map(run).collect();
    due.sort_by_key(|hook| hook.phase);
    due
}

/// A phase that an earlier run left owed is a retry; one that was held back has its own reason.
pub(crate) fn settled(reason: HookReason, known: &BTreeMap<Phase, PhaseState>) -> HookReason {
    match known.values().any(|state| *state == PhaseState::Owed) {
        true => HookReason::Retry,
        false => reason,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
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
        let known = known.map(|known| known.iter().copied().collect());
        let found = phases(declared, known.as_ref(), changed, decision);
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
