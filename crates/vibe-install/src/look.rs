//! What every command that looks at the packages of a project begins with. Nothing is written, no
//! process is started, and the lock between runs is not taken.

use std::collections::BTreeMap;

use serde::Serialize;
use vibe_core::formats::lock::{Lock, LockedPackage};
use vibe_core::formats::manifest::{Dependency, DependencySource, Manifest};
use vibe_core::text::{escape, hide_credentials};
use vibe_core::{Event, PackageId};
use vibe_slot::record::{RecordOnDisk, read_record};

use crate::error::InstallError;
use crate::git_sources::GitRequirement;
use crate::manifests::{vouched, vouched_manifest};
use crate::opening::tell_waiting_commit;
use crate::project::Project;
use crate::report::PackageSummary;
use crate::settings::Context;
use crate::slots::record_error;
use crate::summary::package_summaries;
use crate::verify::check_installed;

/// A project as it is on this machine.
pub(crate) struct Looked {
    /// The project.
    pub project: Project,
    /// Its lock; empty where there is none.
    pub lock: Lock,
    /// The packages of the lock, by id.
    pub packages: Vec<PackageSummary>,
}

/// Who requires which package, and how.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct RequirementSummary {
    /// The project's name, escaped, or the id of a package.
    pub requirer: String,
    /// The version of the package that requires; `None` for the project.
    pub version: Option<String>,
    /// What is required.
    pub package: PackageId,
    /// In which versions, or from which place, escaped; `None` where the manifest that says so is
    /// not at hand.
    pub requirement: Option<String>,
}

/// Who requires packages without being one.
pub(crate) struct Root<'a> {
    /// Its name.
    pub name: &'a str,
    /// What it requires.
    pub requires: &'a BTreeMap<PackageId, Dependency>,
}

/// The packages of the project: `packages`, or all. Without a lock there are none.
pub fn list(
    context: &Context<'_>,
    packages: &[PackageId],
) -> Result<Vec<PackageSummary>, InstallError> {
    let looked = look(context)?;
    check_installed(&looked.lock, packages)?;
    let mut found = looked.packages;
    found.retain(|package| packages.is_empty() || packages.contains(&package.id));
    Ok(found)
}

/// Looks at the project that the context starts in. Says what waits for the next run.
pub(crate) fn look(context: &Context<'_>) -> Result<Looked, InstallError> {
    let project = Project::require(&context.settings.start)?;
    tell_waiting_commit(context, &project)?;
    let lock = lock_or_note(context, &project)?;
    refuse_unusable_records(&project, &lock.packages)?;
    let mut packages = package_summaries(&project, &lock)?;
    for package in packages.iter_mut().filter(|package| package.installed) {
        tell_bridge(&project, package)?;
    }
    Ok(Looked {
        project,
        lock,
        packages,
    })
}

impl Looked {
    /// The package `id` as it is on this machine, if the lock has it.
    pub(crate) fn package(&self, id: &PackageId) -> Option<&PackageSummary> {
        let found = self.packages.binary_search_by(|package| package.id.cmp(id));
        found.ok().map(|index| &self.packages[index])
    }

    /// The project and the members of its workspace, which everything starts from, as far as they
    /// require something; the project where none does.
    pub(crate) fn roots(&self) -> Vec<Root<'_>> {
        let nothing = self.project.requires_nothing();
        let manifests = self.project.manifests.iter().enumerate();
        let roots = manifests.filter(|(at, own)| match nothing {
            true => *at == 0,
            false => !own.manifest.requires.is_empty(),
        });
        roots
            .map(|(_, own)| Root {
                name: own.name(),
                requires: &own.manifest.requires,
            })
            .collect()
    }

    /// The manifest of an installed package from its slot, where the slot's record vouches for it.
    pub(crate) fn manifest(&self, locked: &LockedPackage) -> Option<Manifest> {
        let slot = locked.slot();
        let layout = &self.project.layout;
        match read_record(layout, &slot) {
            Ok(RecordOnDisk::Valid { record, .. }) => {
                vouched_manifest(layout, &slot, &record).ok().flatten()
            }
            _ => None,
        }
    }
}

/// What `dependency` asks for, in words: its versions, or its place. Escaped.
pub(crate) fn requirement_text(dependency: &Dependency) -> String {
    let text = match &dependency.source {
        DependencySource::Registry { constraint, .. } => constraint.to_string(),
        DependencySource::Path { path, .. } => format!("path {path}"),
        DependencySource::Git {
            url,
            reference,
            subdir,
        } => GitRequirement {
            url: url.clone(),
            reference: reference.clone(),
            subdir: subdir.clone(),
        }
        .shown(),
        DependencySource::Variable { name } => format!("the workspace's version {name}"),
    };
    escape(&text)
}

/// Says of a package that stewards the content of somebody else whose it is, as its own manifest
/// has it.
fn tell_bridge(project: &Project, package: &mut PackageSummary) -> Result<(), InstallError> {
    let RecordOnDisk::Valid { record, .. } = read_record(&project.layout, &package.slot)? else {
        return Ok(());
    };
    if let Some(manifest) = vouched(&project.layout, &package.slot, &record)? {
        package.bridge = manifest.bridge;
        package.upstream = manifest.upstream.map(|upstream| shown_url(&upstream));
    }
    Ok(())
}

/// `url` without credentials, escaped.
pub(crate) fn shown_url(url: &str) -> String {
    escape(&hide_credentials(url))
}

/// A record that cannot be trusted is no licence to call a package absent.
pub(crate) fn refuse_unusable_records<'a>(
    project: &Project,
    packages: impl IntoIterator<Item = &'a LockedPackage>,
) -> Result<(), InstallError> {
    for locked in packages {
        let slot = locked.slot();
        match read_record(&project.layout, &slot)? {
            RecordOnDisk::Absent | RecordOnDisk::Valid { .. } => {}
            refused => return Err(record_error(&slot, refused)),
        }
    }
    Ok(())
}

/// The lock of the project. Where one is missing, nothing is installed, which is said.
pub(crate) fn lock_or_note(context: &Context<'_>, project: &Project) -> Result<Lock, InstallError> {
    if let Some(found) = project.read_lock()? {
        return Ok(found.lock);
    }
    if !project.requires_nothing() {
        let text = "vibe.lock is missing; `vibe install` installs what vibe.toml requires";
        context.observer.observe(&Event::Note(text.to_owned()));
    }
    Ok(Lock::default())
}
