//! Is there nothing to do? Answered from stats, without a lock, a write or a process.

use std::collections::BTreeMap;
use std::path::Path;

use rayon::prelude::*;
use vibe_core::formats::lock::{LOCK_NAME, LockedSource};
use vibe_core::hook::PhaseState;
use vibe_core::limits::PackageLimits;
use vibe_core::plan::HookDecision;
use vibe_core::{Sha256Digest, SlotName};
use vibe_fetch::{FetchError, ListedFile, Listing, SourceKind, hash_listing, list};
use vibe_fs::{hash_file, stat_of};
use vibe_slot::fresh::{self, Fresh, FreshFile, Freshness, Watched};
use vibe_slot::in_place::head_file;
use vibe_slot::record::{RecordOnDisk, read_record};
use vibe_slot::state_file;

use crate::commit::Commit;
use crate::error::InstallError;
use crate::planning::Planned;
use crate::project::Project;
use crate::projection::Projected;
use crate::settings::Context;
use crate::slots::record_path;

/// What the last run in which all was well left to remember.
pub(crate) struct Memory {
    /// The file, for what it remembers of records.
    pub(crate) file: FreshFile,
    /// Whether nothing changed since.
    pub(crate) is_fresh: bool,
    /// Whether the file should be written anew, since stats moved over unchanged content.
    pub(crate) renew: bool,
}

/// Reads and checks what the last run left; `None` where there is nothing of use.
pub(crate) fn remember(
    context: &Context<'_>,
    project: &Project,
    decision: HookDecision,
) -> Result<Option<Memory>, InstallError> {
    let Some(file) = fresh::read(&project.layout, context.settings.version) else {
        return Ok(None);
    };
    let hooks_wait = file.fresh.held_hooks && decision == HookDecision::Run;
    let redo_waits = stat_of(&project.layout.redo())?.is_some();
    let stale = Memory {
        file,
        is_fresh: false,
        renew: false,
    };
    let manifests = project.manifests.iter().map(|own| &own.path);
    let other_manifests = !manifests.eq(&stale.file.fresh.manifests);
    if hooks_wait || redo_waits || other_manifests {
        return Ok(Some(stale));
    }
    let mut listings = BTreeMap::new();
    for root in stale.file.fresh.listings.keys() {
        let Ok(listing) = list_path(&project.root, root, &context.settings.config.limits) else {
            return Ok(Some(stale));
        };
        listings.insert(root.clone(), listing_lines(&project.root, &listing));
    }
    let memory = match stale.file.check(&project.layout, &listings) {
        Freshness::Stale(what) => {
            tracing::debug!("not fresh: {what}");
            stale
        }
        Freshness::Fresh { renew } => Memory {
            is_fresh: true,
            renew,
            ..stale
        },
    };
    Ok(Some(memory))
}

/// Writes what the next run may remember. Only for a run in which all that it did is well; while
/// any hook is owed there is work to do, and nothing is written.
/// A manifest that is not as `commit` left it was edited, and no run has seen that.
pub(crate) fn write(
    context: &Context<'_>,
    project: &Project,
    planned: &Planned,
    projected: &Projected,
    commit: &Commit,
) -> Result<(), InstallError> {
    let known = state_file::load(&project.layout)?;
    let slots = known.slots.values().map(|row| &row.phases);
    let clones = known.clones.values().map(|row| &row.phases);
    let phases: Vec<PhaseState> = slots
        .chain(clones)
        .flat_map(|phases| phases.values().copied())
        .collect();
    if phases.contains(&PhaseState::Owed) || projected.is_unknown {
        return Ok(());
    }
    let Some(watched_projections) = watch_projected(project, projected)? else {
        return Ok(());
    };
    let state = &project.layout.slots_file();
    let manifests = commit.manifests_after();
    let mut watched = Vec::new();
    for (path, digest) in &manifests {
        let manifest = watch(&project.root, path.as_str())?;
        if manifest.sha256 != *digest {
            return Ok(());
        }
        watched.push(manifest);
    }
    let mut paths = vec![LOCK_NAME.to_owned(), relative(&project.root, state)];
    for file in project.layout.support_files() {
        paths.push(relative(&project.root, &file));
    }
    let mut listings = BTreeMap::new();
    for package in &planned.lock.packages {
        let slot = package.slot();
        paths.push(match slot.version() {
            Some(_) => record_path(&slot),
            None => relative(&project.root, &head_file(&project.layout, &slot)),
        });
        let LockedSource::Path(root) = &package.source else {
            continue;
        };
        // A source that changed since it was placed, or is gone, is work for the next run.
        let Ok(listing) = list_path(&project.root, root, &context.settings.config.limits) else {
            return Ok(());
        };
        if !is_placed(project, &slot, &listing)? {
            return Ok(());
        }
        for location in listing.files.iter().filter_map(ListedFile::location) {
            paths.push(relative(&project.root, location));
        }
        listings.insert(root.clone(), listing_lines(&project.root, &listing));
    }
    let paths = paths.par_iter();
    let others: Result<Vec<Watched>, InstallError> =
        paths.map(|path| watch(&project.root, path)).collect();
    watched.extend(watched_projections);
    watched.extend(others?);
    let fresh = Fresh {
        vibe: context.settings.version.to_owned(),
        held_hooks: phases.contains(&PhaseState::Skipped),
        manifests: manifests.iter().map(|(path, _)| path.clone()).collect(),
        watched,
        listings,
        boot: projected.boot.clone(),
    };
    Ok(fresh.write(&project.layout)?)
}

/// What is projected, as it is now; `None` where a file is not as the run left it, which no run has
/// seen: a hook or a user wrote it since.
fn watch_projected(
    project: &Project,
    projected: &Projected,
) -> Result<Option<Vec<Watched>>, InstallError> {
    let mut watched = Vec::new();
    for (path, digest) in &projected.watched {
        let now = watch(&project.root, path)?;
        if now.sha256 != *digest {
            return Ok(None);
        }
        watched.push(now);
    }
    Ok(Some(watched))
}

/// Writes what is remembered anew, with the stats as they are now. A file that was changed after
/// it was compared is left to the next run, and nothing is written.
pub(crate) fn renew(project: &Project, memory: &Memory) -> Result<(), InstallError> {
    let mut fresh = memory.file.fresh.clone();
    for watched in &mut fresh.watched {
        if stat_of(&project.root.join(&watched.path))? == watched.stat {
            continue;
        }
        let now = watch(&project.root, &watched.path)?;
        if now.sha256 != watched.sha256 {
            return Ok(());
        }
        *watched = now;
    }
    Ok(fresh.write(&project.layout)?)
}

fn watch(root: &Path, path: &str) -> Result<Watched, InstallError> {
    let full = root.join(path);
    let stat = stat_of(&full)?;
    let sha256: Option<Sha256Digest> = match stat {
        Some(_) => hash_file(&full).ok().map(|file| file.digest),
        None => None,
    };
    Ok(Watched {
        path: path.to_owned(),
        stat,
        sha256,
    })
}

/// Whether `slot` holds what `listing` has now, by its record.
fn is_placed(project: &Project, slot: &SlotName, listing: &Listing) -> Result<bool, InstallError> {
    let RecordOnDisk::Valid { record, .. } = read_record(&project.layout, slot)? else {
        return Ok(false);
    };
    Ok(hash_listing(listing).is_ok_and(|found| found.tree.id() == record.tree.id()))
}

/// `path` relative to `root` where it lies below it, else as it is.
fn relative(root: &Path, path: &Path) -> String {
    path.strip_prefix(root)
        .unwrap_or(path)
        .to_string_lossy()
        .into_owned()
}

/// The files of the path source `path`, as the manifest states it.
pub(crate) fn list_path(
    root: &Path,
    path: &str,
    limits: &PackageLimits,
) -> Result<Listing, FetchError> {
    list(&root.join(path), SourceKind::PathSource, limits)
}

/// A line a file: its path, and where it is read from, since a link may point elsewhere later.
fn listing_lines(root: &Path, listing: &Listing) -> Vec<String> {
    listing
        .files
        .iter()
        .filter_map(|file| Some((&file.path, file.location()?)))
        .map(|(path, location)| format!("{path} < {}", relative(root, location)))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use vibe_core::RelPath;
    use vibe_core::formats::manifest::MANIFEST_NAME;

    /// Whether a watched file with the digest of `remembered` is renewed where it holds `content`.
    fn check_renew(content: &str, remembered: &str, expected: bool) {
        let directory = tempfile::tempdir().unwrap();
        std::fs::write(directory.path().join(MANIFEST_NAME), content).unwrap();
        let project = Project::require(directory.path()).unwrap();
        project.layout.prepare().unwrap();
        let fresh = Fresh {
            vibe: "1".to_owned(),
            held_hooks: false,
            manifests: vec![RelPath::new(MANIFEST_NAME).unwrap()],
            watched: vec![Watched {
                path: MANIFEST_NAME.to_owned(),
                stat: None,
                sha256: Some(Sha256Digest::of(remembered.as_bytes())),
            }],
            listings: BTreeMap::new(),
            boot: Vec::new(),
        };
        fresh.write(&project.layout).unwrap();
        let read = || fresh::read(&project.layout, "1").unwrap();
        let memory = Memory {
            file: read(),
            is_fresh: true,
            renew: true,
        };
        renew(&project, &memory).unwrap();
        assert_eq!(read().fresh.watched[0].stat.is_some(), expected);
    }

    #[test]
    fn only_what_has_its_remembered_content_is_remembered_anew() {
        let manifest = "[project]\nname = \"p\"\n";
        check_renew(manifest, manifest, true);
        check_renew(manifest, "[project]\nname = \"q\"\n", false);
    }
}
