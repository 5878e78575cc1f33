//! What the user is told of overrides: where somebody's requirement gives way, and where none is
//! there to give way.

use std::collections::BTreeMap;

use vibe_core::formats::lock::Lock;
use vibe_core::formats::manifest::Dependency;
use vibe_core::text::escape;
use vibe_core::{Event, Observer, PackageId};
use vibe_resolver::Resolution;

use crate::error::InstallError;
use crate::manifests::constraint_of;
use crate::own_manifest::OwnRequirements;
use crate::project::Project;
use crate::sources::Sources;

/// Says which requirements do not take the version that an override gives them, each once.
///
/// # Errors
/// A manifest that was chosen cannot be read.
pub(crate) fn tell_given_way(
    sources: &Sources<'_>,
    own: &[OwnRequirements],
    resolution: &Resolution,
    observer: &dyn Observer,
) -> Result<(), InstallError> {
    if sources.overrides().is_empty() {
        return Ok(());
    }
    let tell = |requirer: &str, requires: &BTreeMap<PackageId, Dependency>| {
        for text in given_way(sources, requirer, requires, resolution) {
            observer.observe(&Event::Note(text));
        }
    };
    for own in own {
        tell(&escape(&own.name), &own.requires);
    }
    for (id, chosen) in &resolution.packages {
        let manifest = sources.manifest(id, &chosen.version)?;
        tell(&format!("{id} {}", chosen.version), &manifest.requires);
    }
    Ok(())
}

fn given_way(
    sources: &Sources<'_>,
    requirer: &str,
    requires: &BTreeMap<PackageId, Dependency>,
    resolution: &Resolution,
) -> Vec<String> {
    let overridden = requires
        .iter()
        .filter(|(id, _)| sources.overrides().contains_key(*id));
    overridden
        .filter_map(|(id, dependency)| {
            let constraint = constraint_of(dependency)?;
            let version = &resolution.packages.get(id)?.version;
            (!constraint.matches(version)).then(|| {
                format!("{requirer} requires {id} {constraint}; the override gives it {version}")
            })
        })
        .collect()
}

/// Warns of overrides of packages that `lock` does not have: nothing requires them.
pub(crate) fn tell_unused(project: &Project, lock: &Lock, observer: &dyn Observer) {
    for found in &project.manifest().overrides {
        if lock.get(&found.package).is_none() {
            let text = format!(
                "vibe.toml (line {}): the override of {} changes nothing: nothing requires it",
                found.position.line, found.package
            );
            observer.observe(&Event::Warning(text));
        }
    }
}
