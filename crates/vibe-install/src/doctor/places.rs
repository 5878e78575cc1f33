//! The store and the cache, and what their file systems allow.

use std::path::Path;

use vibe_fs::error::shown;
use vibe_fs::{
    FileLock, LinkKinds, LockOutcome, is_same_file_system, may_write, stat_of, try_links,
};
use vibe_store::Store;

use super::{Check, Group, in_full};
use crate::package_store::check_apart;
use crate::project::Project;
use crate::settings::{Context, WantedLinkMode};

/// What names another place.
const MOVE: &str = "name another place with VIBE_PKG_HOME";

/// Looks at the places that are shared by all projects.
pub(super) fn checks(context: &Context<'_>, project: Option<&Project>) -> Vec<Check> {
    let mut group = Group::new("store and cache");
    let settings = context.settings;
    match &settings.store {
        None => group.problem("store", "no folder for it is known", MOVE),
        Some(root) => {
            place(&mut group, "store", root);
            if let Some(project) = project {
                beside(&mut group, root, project, settings.link_mode);
            }
        }
    }
    match &settings.git_cache {
        None => group.warning("git repositories", "no folder for them is known", MOVE),
        Some(directory) => place(&mut group, "git repositories", directory),
    }
    group.checks
}

/// Whether `path` is, or can become, a directory to write in.
fn place(group: &mut Group, name: &'static str, path: &Path) {
    let text = shown(path);
    // A link above it is the user's own.
    match path.metadata() {
        Ok(found) if !found.is_dir() => {
            group.problem(name, format!("{text} is no directory"), MOVE);
        }
        Ok(_) if may_write(path) => group.ok(name, text),
        Ok(_) => group.warning(
            name,
            format!("{text} cannot be written"),
            format!("make it writable, or {MOVE}"),
        ),
        Err(_) => match path.ancestors().skip(1).find(|above| above.exists()) {
            Some(above) if above.is_dir() && may_write(above) => {
                group.ok(name, format!("{text}, not there yet"))
            }
            _ => group.problem(name, format!("{text} cannot be made"), MOVE),
        },
    }
}

/// How the store and the project lie to each other.
fn beside(group: &mut Group, root: &Path, project: &Project, wanted: WantedLinkMode) {
    if let Err(error) = check_apart(root, &project.root) {
        return group.problem("links", in_full(&error), MOVE);
    }
    let existing = root.ancestors().find(|above| above.is_dir());
    let is_same = existing.and_then(|above| is_same_file_system(above, &project.root));
    match is_same {
        None => {}
        Some(true) => group.ok("file system", "store and project share one"),
        Some(false) if wanted == WantedLinkMode::Hardlink => group.warning(
            "file system",
            "store and project have one each, so files are copied, not linked",
            MOVE,
        ),
        Some(false) => group.ok(
            "file system",
            "store and project have one each, so files are copied, not linked",
        ),
    }
    links(group, root, project);
}

/// Tries which links lead from the store to the project, in the directories in which both are
/// worked on; not while a run works there.
fn links(group: &mut Group, root: &Path, project: &Project) {
    const NAME: &str = "links";
    let store = Store::new(root.to_path_buf());
    let staging = project.layout.staging();
    let lock = FileLock::try_shared(&project.layout.lock_file());
    let is_there = |path: &Path| matches!(stat_of(path), Ok(Some(_))) && may_write(path);
    if !is_there(store.staging()) || !is_there(&staging) {
        return group.ok(NAME, "not tried: nothing was installed here yet");
    }
    let Ok(LockOutcome::Held(_held)) = lock else {
        return group.ok(
            NAME,
            "not tried: another run works here, or nothing would keep it out",
        );
    };
    match try_links(store.staging(), &staging) {
        Ok(kinds) => group.ok(NAME, kinds_text(kinds)),
        Err(error) => group.warning(NAME, in_full(&error), "look at permissions and free space"),
    }
}

fn kinds_text(kinds: LinkKinds) -> String {
    let word = |is_possible| if is_possible { "yes" } else { "no" };
    format!(
        "from the store to the project: hard links {}, shared blocks {}, symbolic links {}",
        word(kinds.hard_link),
        word(kinds.reflink),
        word(kinds.symlink)
    )
}
