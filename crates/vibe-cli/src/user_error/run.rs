//! What helps where a run was stopped, or one of its install hooks failed.

use vibe_core::formats::record::RecordError;
use vibe_install::{HookRecord, InstallError};

use super::{AGAIN, NEWER};
use crate::paste::Paste;

pub(super) fn hint(error: &InstallError, paste: &Paste) -> Option<String> {
    match error {
        InstallError::Selection { source, .. } if source.is_missing_interpreter() => Some(format!(
            "to install without running install hooks: {}",
            paste.line(&["install", "--no-hooks"])
        )),
        InstallError::Selection { id, .. } | InstallError::Script { id, .. } => Some(format!(
            "it has to be corrected in the package; until then, require another version of {id}"
        )),
        InstallError::NoSuchHook { id, .. } => Some(format!(
            "see which it declares: {}",
            paste.line(&["hooks", "list", id.as_str()])
        )),
        InstallError::PreInstall { hook, .. } => Some(hook_hint(hook, paste)),
        InstallError::PathTooLong { .. } => {
            Some("move the project to a directory with a shorter path".to_owned())
        }
        InstallError::Record {
            source: RecordError::Newer { .. },
            ..
        } => Some(NEWER.to_owned()),
        InstallError::Record { slot, .. } | InstallError::RecordType { slot } => Some(format!(
            "restore the slot: {}",
            paste.line(&["verify", "--repair", slot.package().as_str()])
        )),
        InstallError::NotPlaced { .. } => {
            Some(format!("install it first: {}", paste.line(&["install"])))
        }
        InstallError::OtherContent { .. } => Some(format!(
            "bring it up to date, which runs its install hooks: {}",
            paste.line(&["install"])
        )),
        InstallError::Busy { .. } => Some("to wait for it, leave out --no-wait".to_owned()),
        InstallError::Reentrant { .. } => {
            Some("an install hook may only look, as with `vibe list`".to_owned())
        }
        InstallError::ChangedMeanwhile { .. } => Some(AGAIN.to_owned()),
        InstallError::Interrupted => Some(format!("to finish what was begun, {AGAIN}")),
        _ => None,
    }
}

/// What the user can do about a hook that failed.
pub(crate) fn hook_hint(hook: &HookRecord, paste: &Paste) -> String {
    let id = hook.package.as_str();
    match hook.has_other_script() {
        true => format!(
            "put its published files back, and run its install hooks: {}",
            paste.line(&["reinstall", "--force", id])
        ),
        false => format!(
            "see its whole output: {}",
            paste.line(&["hooks", "log", id])
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user_error::testing::*;
    use std::path::PathBuf;
    use vibe_core::hook::Phase;
    use vibe_install::HookOutcome;

    #[test]
    fn what_stops_a_run_says_how_to_go_on() {
        check(&InstallError::Interrupted, "interrupted", 130, AGAIN);
        let path = PathBuf::from("/p/vibe.toml");
        let changed = InstallError::ChangedMeanwhile { path };
        check(&changed, "changed-meanwhile", 1, AGAIN);
        let command = "vibe install".to_owned();
        check(
            &InstallError::Busy { pid: 7, command },
            "busy",
            1,
            "--no-wait",
        );
        let (phase, command) = ("pre-install".to_owned(), "install".to_owned());
        check(
            &InstallError::Reentrant { phase, command },
            "reentrant",
            1,
            "vibe list",
        );
        let slot = slot("org.example/a", "1.0.0");
        let long = InstallError::PathTooLong {
            slot,
            path: "x".to_owned(),
            bytes: 9,
            limit: 8,
        };
        check(&long, "path-too-long", 1, "shorter");
    }

    #[test]
    fn a_failed_pre_install_comes_with_its_record() {
        let record = hook("org.example/a", Phase::PreInstall, HookOutcome::Failed);
        let error = InstallError::PreInstall {
            hook: Box::new(record.clone()),
            not_undone: vec!["x stays".to_owned()],
            variables_not_passed: true,
        };
        check(&error, "pre-install", 4, "vibe hooks log org.example/a");
        let found = told(&error);
        assert_eq!(
            found.causes,
            ["vibe.toml and vibe.lock were not changed", "x stays"]
        );
        let hook = found.hook.unwrap();
        assert_eq!((hook.record, hook.variables_not_passed), (record, true));
    }

    #[test]
    fn a_hook_whose_script_was_changed_has_no_output_to_see() {
        let mut record = hook("org.example/a", Phase::PostInstall, HookOutcome::Failed);
        let hint = hook_hint(&record, &Paste::default());
        assert_eq!(hint, "see its whole output: vibe hooks log org.example/a");
        record.log = None;
        let hint = hook_hint(&record, &Paste::default());
        assert!(
            hint.ends_with(": vibe reinstall --force org.example/a"),
            "{hint}"
        );
    }
}
