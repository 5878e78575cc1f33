//! The store of packages, as one run uses it.

use std::path::{Path, PathBuf};

use vibe_fs::canonical_directory;
use vibe_store::{Store, StoreUse};

use crate::error::InstallError;
use crate::project::Project;
use crate::settings::Settings;

/// The store, and the promise that nobody removes trees from it as long as this lives.
#[derive(Debug)]
pub(crate) struct StoreInUse {
    /// The store; `None` where the user has no place for one.
    pub store: Option<Store>,
    _held: Option<StoreUse>,
}

/// The store for a run on `project`. One that only looks writes nothing, so it leaves no trace that
/// it uses the store.
///
/// # Errors
/// The store and the project lie one in the other, so that what is meant for one would change the
/// other; or the store stays locked.
pub(crate) fn open_store(
    settings: &Settings,
    project: &Project,
    only_looks: bool,
) -> Result<StoreInUse, InstallError> {
    let Some(root) = &settings.store else {
        return Ok(StoreInUse {
            store: None,
            _held: None,
        });
    };
    check_apart(root, &project.root)?;
    let store = Store::new(root.clone());
    let held = match only_looks {
        true => None,
        false => Some(
            store
                .use_shared()
                .map_err(|source| InstallError::OpenStore {
                    store: root.clone(),
                    source: Box::new(source),
                })?,
        ),
    };
    Ok(StoreInUse {
        store: Some(store),
        _held: held,
    })
}

pub(crate) fn check_apart(store: &Path, project: &Path) -> Result<(), InstallError> {
    let (real_store, real_project) = (real_path(store), real_path(project));
    if !real_store.starts_with(&real_project) && !real_project.starts_with(&real_store) {
        return Ok(());
    }
    Err(InstallError::StoreInProject {
        store: store.to_path_buf(),
        project: project.to_path_buf(),
    })
}

/// `path` without links, as far as it exists.
fn real_path(path: &Path) -> PathBuf {
    let found = path.ancestors().find_map(|above| {
        let real = canonical_directory(above).ok()?;
        let rest = path.strip_prefix(above).ok()?;
        Some(real.join(rest))
    });
    found.unwrap_or_else(|| path.to_path_buf())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(store: &str, project: &str, apart: bool) {
        let directory = tempfile::tempdir().unwrap();
        let (store, project) = (directory.path().join(store), directory.path().join(project));
        std::fs::create_dir_all(&project).unwrap();
        let outcome = check_apart(&store, &project);
        assert_eq!(outcome.is_ok(), apart);
        if let Err(error) = outcome {
            let text = error.to_string();
            for path in [store, project] {
                assert!(text.contains(&*path.to_string_lossy()), "{text}");
            }
        }
    }

    #[test]
    fn a_store_and_a_project_lie_apart() {
        check("store", "project", true);
        check("project-store", "project", true);
        check("project/vibedeps", "project", false);
        check("project", "project", false);
        check("store", "store/project", false);
    }

    #[cfg(unix)]
    #[test]
    fn links_do_not_hide_where_a_store_lies() {
        let directory = tempfile::tempdir().unwrap();
        let (project, link) = (directory.path().join("p"), directory.path().join("link"));
        std::fs::create_dir(&project).unwrap();
        std::os::unix::fs::symlink(&project, &link).unwrap();
        assert!(check_apart(&link.join("not/there/yet"), &project).is_err());
    }
}
