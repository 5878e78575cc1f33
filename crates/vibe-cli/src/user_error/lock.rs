//! What helps where vibe.lock cannot be used as it is, or does not fit.

use vibe_core::formats::lock::LockError;
use vibe_install::{InstallError, ReadError};

use super::NEWER;
use crate::paste::Paste;

pub(super) fn hint(error: &InstallError, paste: &Paste) -> Option<String> {
    let install = paste.line(&["install"]);
    match error {
        InstallError::ReadLock {
            source: ReadError::Fs(_),
        } => None,
        InstallError::LockText {
            diagnostic: LockError::Newer { .. },
            ..
        } => Some(NEWER.to_owned()),
        InstallError::ReadLock { .. } | InstallError::LockText { .. } => Some(format!(
            "restore vibe.lock from version control, or remove it and resolve anew: {install}"
        )),
        InstallError::NoLock { .. } => Some(format!("resolve and install first: {install}")),
        InstallError::LockOutOfDate { .. } => Some(format!(
            "bring vibe.lock up to date, and commit it: {install}"
        )),
        InstallError::LockedAddition { id } => Some(format!(
            "add it without --locked: {}",
            paste.line(&["install", id.as_str()])
        )),
        InstallError::PreciseRefused { id, version, .. } => Some(format!(
            "change what vibe.toml requires: {}",
            paste.line(&["install", &format!("{id}@={version}")])
        )),
        InstallError::PreciseOfOne { .. } => Some(
            "require it by `version` in vibe.toml, from a registry or a repository that tags versions"
                .to_owned(),
        ),
        InstallError::PreciseBuild { id, .. } => Some(format!(
            "require {id} at the tag of that version, in vibe.toml"
        )),
        InstallError::Unwritable { .. } => {
            Some("give what it is called there another name, and require it by that".to_owned())
        }
        InstallError::LockIntegrity { .. } => Some(format!(
            "restore vibe.lock from version control; or, if the places that vibe.toml states are \
             wanted, run: {install}"
        )),
        InstallError::OtherTree { id, .. } | InstallError::OtherScripts { id, .. } => {
            Some(format!(
                "a published version never changes, so restore it in the registry; if the new \
                 content is wanted, remove the entry of {id} from vibe.lock and run: {install}"
            ))
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user_error::testing::*;
    use vibe_core::Tree;

    #[test]
    fn a_lock_that_does_not_fit_says_how_to_make_it_fit() {
        check(
            &InstallError::NoLock { path: lock_path() },
            "no-lock",
            1,
            "vibe install",
        );
        let problems = Vec::new();
        check(
            &InstallError::LockOutOfDate { problems },
            "lock-out-of-date",
            7,
            "vibe install",
        );
        let addition = InstallError::LockedAddition {
            id: id("org.example/a"),
        };
        let hint = "vibe install org.example/a";
        check(&addition, "locked-addition", 7, hint);
        let problems = Vec::new();
        check(
            &InstallError::LockIntegrity { problems },
            "lock-integrity",
            3,
            "vibe.toml states are wanted, run: vibe install",
        );
        let tree = Tree::new(Vec::new()).unwrap().id();
        let id = id("org.example/a");
        let other = InstallError::OtherTree {
            id: id.clone(),
            version: version(),
            locked: tree,
            found: tree,
        };
        check(&other, "other-tree", 3, "the entry of org.example/a");
        let scripts = InstallError::OtherScripts {
            id,
            version: version(),
        };
        check(&scripts, "other-scripts", 3, "the entry of org.example/a");
    }
}
