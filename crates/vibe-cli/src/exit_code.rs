//! What the exit codes mean, and which one counts when several apply.

use vibe_core::hook::Phase;
use vibe_install::{
    CacheRemovalReport, CacheVerification, FindingKind, HookOutcome, RunReport, VerifyReport,
};

/// All that was asked is done.
pub(crate) const DONE: u8 = 0;
/// Something failed.
pub(crate) const FAILED: u8 = 1;
/// The command line or a manifest is wrong.
pub(crate) const USAGE: u8 = 2;
/// Something is not what the lock, a record or a published package says.
pub(crate) const INTEGRITY: u8 = 3;
/// A pre-install hook failed.
pub(crate) const PRE_INSTALL: u8 = 4;
/// A package is installed, but its post-install hook failed.
pub(crate) const FLAGGED: u8 = 5;
/// The lock does not satisfy the manifest.
pub(crate) const OUT_OF_DATE: u8 = 7;
/// The user interrupted.
pub(crate) const INTERRUPTED: u8 = 130;

/// The codes that are no success, the one that counts most first. 6 is a missing consent.
const BY_WEIGHT: [u8; 8] = [
    INTERRUPTED,
    USAGE,
    INTEGRITY,
    OUT_OF_DATE,
    FAILED,
    PRE_INSTALL,
    6,
    FLAGGED,
];

/// The one of `codes` that counts.
pub(crate) fn heaviest(codes: impl IntoIterator<Item = u8>) -> u8 {
    let weight = |code: &u8| BY_WEIGHT.iter().position(|known| known == code);
    codes
        .into_iter()
        .filter(|code| weight(code).is_some())
        .min_by_key(weight)
        .unwrap_or(DONE)
}

/// The exit code of a run.
pub(crate) fn of_run(report: &RunReport) -> u8 {
    heaviest(
        report
            .hooks
            .iter()
            .map(|hook| match (hook.outcome, hook.phase) {
                (HookOutcome::Failed, Phase::PreInstall) => PRE_INSTALL,
                (HookOutcome::Failed, Phase::PostInstall) => FLAGGED,
                (HookOutcome::Interrupted, _) => INTERRUPTED,
                (HookOutcome::Ran | HookOutcome::Skipped | HookOutcome::Declined, _) => DONE,
            }),
    )
}

/// The exit code of what `verify` found.
pub(crate) fn of_findings(report: &VerifyReport) -> u8 {
    heaviest(report.findings.iter().map(|finding| of_kind(finding.kind)))
}

/// The exit code of what a look at the whole store found.
pub(crate) fn of_cache(found: &CacheVerification) -> u8 {
    heaviest([
        if found.interrupted { INTERRUPTED } else { DONE },
        if found.damaged.is_empty() {
            DONE
        } else {
            INTEGRITY
        },
    ])
}

/// The exit code of a removal from the caches: what a run may need was asked for, and is not gone.
pub(crate) fn of_removal(report: &CacheRemovalReport) -> u8 {
    heaviest([
        if report.interrupted {
            INTERRUPTED
        } else {
            DONE
        },
        if report.in_use { FAILED } else { DONE },
    ])
}

fn of_kind(kind: FindingKind) -> u8 {
    match kind {
        FindingKind::Lock => OUT_OF_DATE,
        FindingKind::Hooks => FLAGGED,
        FindingKind::Missing
        | FindingKind::Changed
        | FindingKind::Mode
        | FindingKind::Type
        | FindingKind::Slot
        | FindingKind::Record
        | FindingKind::Projection
        | FindingKind::Integrity => INTEGRITY,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::{finding, hook};
    use vibe_install::FindingKind;

    #[test]
    fn the_heaviest_code_counts() {
        let order = [130, 2, 3, 7, 1, 4, 6, 5, 0];
        for (index, code) in order.iter().enumerate() {
            let lighter = order[index..].iter().rev().copied();
            assert_eq!(heaviest(lighter), *code);
        }
        assert_eq!(heaviest([]), 0);
    }

    #[test]
    fn a_failed_post_install_flags_and_a_failed_pre_install_fails() {
        let run = |hooks: &[_]| {
            of_run(&RunReport {
                hooks: hooks.to_vec(),
                ..RunReport::default()
            })
        };
        let pre = |outcome| hook("org.example/a", Phase::PreInstall, outcome);
        let post = |outcome| hook("org.example/a", Phase::PostInstall, outcome);
        assert_eq!(run(&[]), 0);
        assert_eq!(run(&[pre(HookOutcome::Ran), post(HookOutcome::Skipped)]), 0);
        assert_eq!(run(&[post(HookOutcome::Declined)]), 0);
        assert_eq!(run(&[post(HookOutcome::Failed)]), 5);
        assert_eq!(
            run(&[post(HookOutcome::Failed), pre(HookOutcome::Failed)]),
            4
        );
        assert_eq!(
            run(&[pre(HookOutcome::Failed), post(HookOutcome::Interrupted)]),
            130
        );
    }

    #[test]
    fn a_removal_that_left_something_is_no_success() {
        let check = |interrupted, in_use, expected| {
            let report = CacheRemovalReport {
                interrupted,
                in_use,
                ..CacheRemovalReport::default()
            };
            assert_eq!(of_removal(&report), expected);
        };
        check(false, false, 0);
        check(false, true, 1);
        check(true, true, 130);
        let mut found = CacheVerification::default();
        assert_eq!(of_cache(&found), 0);
        found.interrupted = true;
        assert_eq!(of_cache(&found), 130);
    }

    #[test]
    fn findings_give_the_code_of_the_heaviest_kind() {
        let found = |kinds: &[FindingKind]| {
            let findings = kinds
                .iter()
                .map(|kind| finding("org.example/a", *kind, "x"))
                .collect();
            of_findings(&VerifyReport {
                findings,
                ..VerifyReport::default()
            })
        };
        assert_eq!(found(&[]), 0);
        assert_eq!(found(&[FindingKind::Hooks]), 5);
        assert_eq!(found(&[FindingKind::Hooks, FindingKind::Lock]), 7);
        assert_eq!(found(&[FindingKind::Lock, FindingKind::Changed]), 3);
    }
}
