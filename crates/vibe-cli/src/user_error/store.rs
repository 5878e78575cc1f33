//! What helps where the store, or the cache of git, does not serve.

use vibe_core::text::escape;
use vibe_install::{InstallError, StoreError};

use super::kind::store_code;
use crate::exit_code::INTEGRITY;

/// The hint where another run needs what was to be removed.
const IN_USE: &str = "nothing was removed; run the same command again when the other run has ended";

pub(super) fn hint(error: &InstallError) -> Option<String> {
    match error {
        InstallError::NoStore => {
            Some("name a directory of yours for it with VIBE_PKG_HOME".to_owned())
        }
        InstallError::StoreInProject { .. } => {
            Some("name another place for the store with VIBE_PKG_HOME".to_owned())
        }
        InstallError::StoreDamaged { id, .. } => Some(format!(
            "nothing of it was installed; make the source of {id} available, and run the command \
             again"
        )),
        // These say themselves what to do.
        InstallError::Store { source, .. } | InstallError::OpenStore { source, .. }
            if store_code(source) == INTEGRITY || speaks_for_itself(source) =>
        {
            None
        }
        InstallError::OpenStore { source, .. } if matches!(**source, StoreError::InUse { .. }) => {
            Some(IN_USE.to_owned())
        }
        InstallError::GitCacheInUse { .. } => Some(IN_USE.to_owned()),
        InstallError::GitCache { directory, .. } => Some(format!(
            "make {} a directory that you may write, or name another place with VIBE_PKG_HOME",
            escape(&directory.to_string_lossy())
        )),
        InstallError::Store { store, .. } | InstallError::OpenStore { store, .. } => Some(format!(
            "make {} a directory that you may write, or name another place with VIBE_PKG_HOME",
            escape(&store.to_string_lossy())
        )),
        _ => None,
    }
}

/// Whether the message of `error` holds what to do.
fn speaks_for_itself(error: &StoreError) -> bool {
    matches!(
        error,
        StoreError::Busy { .. } | StoreError::NotAStore { .. } | StoreError::Obstructed { .. }
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exit_code::{FAILED, USAGE};
    use crate::user_error::testing::*;
    use std::io::ErrorKind;
    use std::path::{Path, PathBuf};
    use vibe_install::{Damage, FsError};

    #[test]
    fn what_keeps_a_cache_from_being_emptied_says_what_to_do() {
        let (store, directory) = (PathBuf::from("/s"), PathBuf::from("/g"));
        let in_store = |source| InstallError::OpenStore {
            store: store.clone(),
            source: Box::new(source),
        };
        let root = store.clone();
        check(&in_store(StoreError::InUse { root }), "in-use", 1, "ended");
        let path = PathBuf::from("/s/notes");
        let strange = in_store(StoreError::NotAStore { path });
        check(&strange, "store", 1, "");
        assert!(told(&strange).causes[0].contains("move it away"));
        let in_use = InstallError::GitCacheInUse {
            directory: directory.clone(),
        };
        check(&in_use, "in-use", 1, "ended");
        let denied = FsError::new("open", &directory, ErrorKind::PermissionDenied.into());
        let source = Box::new(denied.into());
        let closed = InstallError::GitCache { directory, source };
        check(
            &closed,
            "git-cache",
            1,
            "make /g a directory that you may write",
        );
    }

    #[test]
    fn a_store_that_does_not_serve_says_where_it_is_and_how_to_move_it() {
        let store = || PathBuf::from("/data/store");
        let hint = "VIBE_PKG_HOME";
        check(&InstallError::NoStore, "no-store", FAILED, hint);
        let error = InstallError::StoreInProject {
            store: store(),
            project: "/data".into(),
        };
        check(&error, "store-in-project", USAGE, hint);
        let denied = || {
            let denied = ErrorKind::PermissionDenied.into();
            Box::new(StoreError::Fs(FsError::new(
                "write",
                Path::new("/d"),
                denied,
            )))
        };
        let error = InstallError::Store {
            id: id("org.example/lint"),
            version: version(),
            store: store(),
            source: denied(),
        };
        check(&error, "store", FAILED, "make /data/store a directory");
        let error = InstallError::OpenStore {
            store: store(),
            source: denied(),
        };
        check(&error, "store", FAILED, hint);
        let error = InstallError::StoreDamaged {
            id: id("org.example/lint"),
            version: version(),
            damage: Damage::Files(Vec::new()),
            source: Box::new(error),
        };
        check(&error, "store-damaged", INTEGRITY, "org.example/lint");
    }
}
