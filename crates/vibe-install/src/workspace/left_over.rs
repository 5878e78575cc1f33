//! What in the members does not count, since only the root's does.

use std::path::Path;

use vibe_core::formats::lock::LOCK_NAME;
use vibe_core::formats::manifest::Manifest;
use vibe_core::{Event, Observer};
use vibe_fs::error::shown;
use vibe_fs::stat_of;
use vibe_slot::layout::VIBEDEPS;

use crate::error::InstallError;
use crate::own_manifest::OwnManifest;

/// Says what in the members does not count, since only the root's does.
///
/// # Errors
/// A directory cannot be looked at.
pub(crate) fn tell_left_over(
    root: &Path,
    members: &[OwnManifest],
    observer: &dyn Observer,
) -> Result<(), InstallError> {
    let warn = |text: String| observer.observe(&Event::Warning(text));
    for member in members {
        let directory = member.directory(root);
        for name in [LOCK_NAME, VIBEDEPS] {
            let path = directory.join(name);
            if stat_of(&path)?.is_some() {
                warn(format!(
                    "{} is left over and not used: {} is a member of the workspace {}",
                    shown(&path),
                    member.base(),
                    shown(root)
                ));
            }
        }
        let ignored = ignored_tables(&member.manifest);
        if !ignored.is_empty() {
            warn(format!(
                "{}: {} counts only in the vibe.toml of the workspace's root",
                member.path,
                ignored.join(", ")
            ));
        }
    }
    Ok(())
}

/// What a member's manifest says that only the root's can.
fn ignored_tables(manifest: &Manifest) -> Vec<&'static str> {
    let project = manifest.project.as_ref();
    let all = [
        ("[[registry]]", !manifest.registries.is_empty()),
        ("[[override]]", !manifest.overrides.is_empty()),
        ("`vendor`", project.is_some_and(|project| !project.vendor)),
        (
            "`harnesses`",
            project.is_some_and(|project| project.harnesses.is_some()),
        ),
        (
            "`projection`",
            project.is_some_and(|project| project.projection.is_some()),
        ),
    ];
    let said = all.into_iter().filter(|(_, is_said)| *is_said);
    said.map(|(name, _)| name).collect()
}
