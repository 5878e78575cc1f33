//! What this machine knows of an in-place slot: its row in `vibedeps/.state/slots.toml`.

use std::collections::BTreeMap;

use serde::Deserialize;
use toml::Spanned;

use crate::digest::Sha256Digest;
use crate::formats::diagnostic::Diagnostic;
use crate::formats::hook_state::{
    RunningHook, RunningTable, push_phases, push_running, running_hook,
};
use crate::formats::typed;
use crate::hook::{HookReason, Phase, PhaseState};
use crate::identifier::SlotName;

/// One clone's row.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloneState {
    /// The commit that is checked out, or being checked out: 40 lower-case hex digits.
    pub commit: String,
    /// The declared phases and where they stand.
    pub phases: BTreeMap<Phase, PhaseState>,
    /// Why the owed phases are owed.
    pub reason: HookReason,
    /// The version that was installed before, if another was.
    pub previous_version: Option<String>,
    /// How the work tree looked when the last run and its hooks had finished with it. `None` from
    /// before the first change until then: whatever it looks like is our own doing.
    pub seen: Option<CloneStatus>,
    /// The boot under which it was checked out, if the system tells.
    pub boot: Option<String>,
    /// An install hook that was started and not seen to end.
    pub running: Option<RunningHook>,
}

/// How a work tree differs from its commit. Files that the package says to ignore do not count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CloneStatus {
    /// A digest of the tracked files that differ and what they hold; of nothing, if none does.
    pub edits: Sha256Digest,
    /// A digest of what is there besides and what it holds; of nothing, if there is nothing.
    pub additions: Sha256Digest,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub(super) struct CloneTable {
    pub(super) clone: Spanned<SlotName>,
    commit: Spanned<String>,
    reason: HookReason,
    previous_version: Option<String>,
    edits: Option<Spanned<Sha256Digest>>,
    additions: Option<Spanned<Sha256Digest>>,
    boot: Option<String>,
    #[serde(default)]
    phases: BTreeMap<Phase, PhaseState>,
    running: Option<RunningTable>,
}

impl CloneState {
    /// Whether the row is of a clone at rest at `commit`: nothing owed, running or unfinished.
    pub fn is_settled_at(&self, commit: &str) -> bool {
        self.commit == commit
            && self.seen.is_some()
            && self.running.is_none()
            && !self.phases.values().any(|state| *state == PhaseState::Owed)
    }
}

impl CloneStatus {
    /// Nothing differs.
    pub fn clean() -> Self {
        Self {
            edits: Sha256Digest::of(b""),
            additions: Sha256Digest::of(b""),
        }
    }
}

/// Whether `text` names a commit: 40 lower-case hex digits.
pub(super) fn is_commit(text: &str) -> bool {
    let is_digit = |byte: u8| matches!(byte, b'0'..=b'9' | b'a'..=b'f');
    text.len() == 40 && text.bytes().all(is_digit)
}

pub(super) fn clone_state(
    text: &str,
    table: CloneTable,
) -> Result<(SlotName, CloneState), Diagnostic> {
    if table.clone.get_ref().version().is_some() {
        let message = "the slot of a clone has no version";
        return Err(typed::at(text, &table.clone, message));
    }
    if !is_commit(table.commit.get_ref()) {
        let message = "a commit is 40 lower-case hex digits";
        return Err(typed::at(text, &table.commit, message));
    }
    let seen = match (table.edits, table.additions) {
        (None, None) => None,
        (Some(edits), Some(additions)) => Some(CloneStatus {
            edits: edits.into_inner(),
            additions: additions.into_inner(),
        }),
        (Some(only), None) | (None, Some(only)) => {
            let message = "`edits` and `additions` are there together or not at all";
            return Err(typed::at(text, &only, message));
        }
    };
    let running = table
        .running
        .map(|running| running_hook(text, running))
        .transpose()?;
    let state = CloneState {
        commit: table.commit.into_inner(),
        phases: table.phases,
        reason: table.reason,
        previous_version: table.previous_version,
        seen,
        boot: table.boot,
        running,
    };
    Ok((table.clone.into_inner(), state))
}

pub(super) fn push_clone(out: &mut String, directory: &str, state: &CloneState) {
    typed::push_header(out, "[[clone]]");
    typed::push_text(out, "clone", directory);
    typed::push_text(out, "commit", &state.commit);
    typed::push_text(out, "reason", state.reason.as_str());
    if let Some(version) = &state.previous_version {
        typed::push_text(out, "previous-version", version);
    }
    if let Some(seen) = &state.seen {
        typed::push_text(out, "edits", seen.edits);
        typed::push_text(out, "additions", seen.additions);
    }
    if let Some(boot) = &state.boot {
        typed::push_text(out, "boot", boot);
    }
    push_phases(out, "[clone.phases]", &state.phases);
    if let Some(running) = &state.running {
        push_running(out, "[clone.running]", running);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::state::{MachineState, RunningProcess, StateError};
    use crate::formats::typed::testing;
    use proptest::option;
    use proptest::prelude::*;
    use proptest::sample::select;

    fn slot(id: &str) -> SlotName {
        SlotName::in_place(&id.parse().unwrap())
    }

    fn full() -> CloneState {
        CloneState {
            commit: "0f3c".repeat(10),
            phases: [
                (Phase::PreInstall, PhaseState::Done),
                (Phase::PostInstall, PhaseState::Owed),
            ]
            .into(),
            reason: HookReason::Update,
            previous_version: Some("0.9.0".into()),
            seen: Some(CloneStatus::clean()),
            boot: Some("b".into()),
            running: Some(RunningHook {
                phase: Phase::PostInstall,
                process: Some(RunningProcess {
                    pid: 7,
                    start_time: None,
                }),
            }),
        }
    }

    #[test]
    fn a_clone_has_the_documented_bytes() {
        let digest = Sha256Digest::of(b"");
        let commit = "0f3c".repeat(10);
        let text = format!(
            "schema = 1\n\n[[clone]]\nclone = \"a.b\"\ncommit = \"{commit}\"\nreason = \"update\"\n\
             previous-version = \"0.9.0\"\nedits = \"{digest}\"\nadditions = \"{digest}\"\n\
             boot = \"b\"\n\n[clone.phases]\npre-install = \"done\"\npost-install = \"owed\"\n\n\
             [clone.running]\nphase = \"post-install\"\npid = 7\n"
        );
        let state = MachineState {
            clones: [(slot("a/b"), full())].into(),
            ..MachineState::default()
        };
        assert_eq!(state.render(), text);
        assert_eq!(MachineState::parse(&text), Ok(state));
    }

    #[test]
    fn a_clone_that_breaks_a_rule_is_refused() {
        let commit = "0f3c".repeat(10);
        let digest = Sha256Digest::of(b"");
        let check = |rows: &str, message: &str| {
            let rows = rows
                .replace("COMMIT", &commit)
                .replace("DIGEST", &digest.to_string());
            let error = MachineState::parse(&format!("schema = 1\n{rows}")).unwrap_err();
            let StateError::Malformed(found) = error else {
                panic!("{rows}: {error}");
            };
            assert!(found.message.contains(message), "{rows}: {found}");
        };
        let row = |name: &str, rest: &str| {
            format!("[[clone]]\nclone = '{name}'\ncommit = 'COMMIT'\nreason = 'install'\n{rest}\n")
        };
        check(&row("a.b/1.0.0", ""), "has no version");
        check(&row("a", ""), "`a`");
        check(&row("a.b", "edits = 'DIGEST'"), "together");
        check(&row("a.b", "additions = 'DIGEST'"), "together");
        check(&row("a.b", "tree = 'x'"), "unknown key `tree`");
        check(&row("a.b", &row("a.b", "")), "`a.b` is there twice");
        check(&row("a.c", &row("a.b", "")), "`a.b` is out of order");
        let short = row("a.b", "").replace("COMMIT", "0f3c");
        check(&short, "40 lower-case hex digits");
        let slot = "[[slot]]\nslot = 'a.b'\ntree = 'tree1:DIGEST'\nreason = 'install'\n";
        check(slot, "needs a version");
    }

    #[test]
    fn a_clone_is_settled_when_nothing_is_left_to_do() {
        let commit = "0f3c".repeat(10);
        let settled = CloneState {
            phases: [(Phase::PreInstall, PhaseState::Done)].into(),
            running: None,
            ..full()
        };
        assert!(settled.is_settled_at(&commit));
        assert!(!settled.is_settled_at(&"1".repeat(40)));
        let cases = [
            CloneState {
                seen: None,
                ..settled.clone()
            },
            CloneState {
                running: full().running,
                ..settled.clone()
            },
            CloneState {
                phases: full().phases,
                ..settled.clone()
            },
        ];
        for case in cases {
            assert!(!case.is_settled_at(&commit), "{case:?}");
        }
    }

    fn any_clone() -> impl Strategy<Value = CloneState> {
        let seen = (testing::any_digest(), testing::any_digest())
            .prop_map(|(edits, additions)| CloneStatus { edits, additions });
        let phases = select(vec![
            PhaseState::Owed,
            PhaseState::Skipped,
            PhaseState::Declined,
            PhaseState::Done,
        ])
        .prop_map(|state| BTreeMap::from([(Phase::PreInstall, state)]));
        let running = Just(RunningHook {
            phase: Phase::PreInstall,
            process: None,
        });
        (
            "[0-9a-f]{40}",
            phases,
            option::of("\\PC{0,6}"),
            option::of(seen),
            option::of("[\\PC\r\n]{0,6}"),
            option::of(running),
        )
            .prop_map(|(commit, phases, previous_version, seen, boot, running)| {
                CloneState {
                    commit,
                    phases,
                    reason: HookReason::Retry,
                    previous_version,
                    seen,
                    boot,
                    running,
                }
            })
    }

    proptest! {
        #[test]
        fn clones_read_back_as_they_were_written(
            clones in proptest::collection::btree_map(
                testing::any_id().prop_map(|id| SlotName::in_place(&id)), any_clone(), 0..3),
        ) {
            let state = MachineState { clones, ..MachineState::default() };
            prop_assert_eq!(MachineState::parse(&state.render()).unwrap(), state);
        }
    }
}
