//! `vibe show`: all that is known of one package. One that is installed is told from its slot;
//! another from its source, of which nothing is placed.

use std::collections::BTreeMap;

use serde::Serialize;
use vibe_core::formats::lock::LockedPackage;
use vibe_core::formats::manifest::{Boot, Manifest, Materialization, Package};
use vibe_core::hook::{Phase, PhaseState};
use vibe_core::text::escape;
use vibe_core::{Constraint, Event, Index, PackageId, RelPath, Sha256Digest, TreeId, Version};
use vibe_plan::selection::scripts_of;
use vibe_projection::items::items as items_of;
use vibe_slot::record::{RecordOnDisk, read_record};

use crate::clones::fetch_clone;
use crate::error::InstallError;
use crate::fetch::{FetchOptions, Fetched, fetch};
use crate::item_list::{ItemSummary, declared, installed_items};
use crate::look::{Looked, RequirementSummary, look, requirement_text, shown_url};
use crate::manifests::read_manifest;
use crate::report::{PackageSummary, ScriptSummary};
use crate::repositories::Repositories;
use crate::resolution::target_of;
use crate::settings::Context;
use crate::sources::Sources;
use crate::target::Target;

/// One package. Texts of the package are escaped.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct ShowReport {
    /// Its id.
    pub id: PackageId,
    /// The version that is told.
    pub version: String,
    /// What it says it is.
    pub description: Option<String>,
    /// Its license.
    pub license: Option<String>,
    /// Its kind.
    pub kind: &'static str,
    /// How it asks to be placed.
    pub materialization: &'static str,
    /// Its content is somebody else's, whom it only stewards.
    pub bridge: bool,
    /// Where that content comes from.
    pub upstream: Option<String>,
    /// Its source, as the lock writes it.
    pub source: String,
    /// What is required of the repository, as the lock writes it.
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    /// The directory in the repository.
    pub subdir: Option<String>,
    /// The commit, if it comes from git.
    pub commit: Option<String>,
    /// The identity of its files; `None` where that is not known.
    pub tree: Option<TreeId>,
    /// The versions that its source has, the newest first; `None` where they are not known or there
    /// is no choice.
    pub versions: Option<Vec<String>>,
    /// What this project has of it.
    pub locked: Option<PackageSummary>,
    /// What it requires.
    pub requires: Vec<RequirementSummary>,
    /// What requires it in this project.
    pub required_by: Vec<RequirementSummary>,
    /// Its install hooks.
    pub hooks: Vec<DeclaredHook>,
    /// Its boot text.
    pub boot: Option<BootSummary>,
    /// Its items.
    pub items: Vec<ItemSummary>,
}

/// A declared install hook.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct DeclaredHook {
    /// The phase.
    pub phase: Phase,
    /// Its scripts, for all systems.
    pub scripts: Vec<ScriptSummary>,
    /// Where it stands on this machine; `None` where it did not run, or not in this version.
    pub state: Option<PhaseState>,
}

/// The boot text of a package.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct BootSummary {
    /// The file with it.
    pub source: RelPath,
    /// How it is to reach an agent program: `static` or `dynamic`.
    pub link: &'static str,
    /// When it counts, in the words of the package, escaped.
    pub when: Option<String>,
}

/// The package that is told, wherever it was found.
struct Found {
    target: Target,
    manifest: Manifest,
    tree: Option<TreeId>,
    scripts: BTreeMap<RelPath, Sha256Digest>,
    items: Vec<ItemSummary>,
}

/// The package `id`: what is installed of it, if `constraint` takes that, else the newest version of
/// its source that `constraint` takes.
///
/// # Errors
/// There is no project, something in it is not as it should be, or neither it nor its sources have
/// such a package, or such a version of it.
pub fn show(
    context: &Context<'_>,
    id: &PackageId,
    constraint: Option<&Constraint>,
) -> Result<ShowReport, InstallError> {
    let looked = look(context)?;
    let repositories = Repositories::new(context, looked.project.root.clone());
    let locked = looked.lock.get(id);
    let wanted = locked.filter(|locked| constraint.is_none_or(|c| c.matches(&locked.version)));
    let installed = match wanted {
        Some(locked) => installed(&looked, locked)?,
        None => None,
    };
    let own = looked.project.requirements();
    let sources = Sources::open(&looked.project, &repositories, &own);
    let (found, versions) = match (installed, sources) {
        (Some(found), sources) => {
            let versions = sources.and_then(|sources| choice(&sources, id));
            (found, known_or_note(context, id, versions))
        }
        (None, sources) => {
            let sources = sources?;
            let target = match wanted {
                Some(locked) => target_of(&looked.project, locked)?,
                None => newest(&looked, &sources, id, constraint)?,
            };
            let found = published(context, &repositories, &sources, target)?;
            let versions = choice(&sources, id);
            (found, known_or_note(context, id, versions))
        }
    };
    Ok(report(&looked, found, versions))
}

/// The versions of `id` where there is a choice of them, the newest first.
fn choice(sources: &Sources<'_>, id: &PackageId) -> Result<Option<Vec<Version>>, InstallError> {
    if sources.one_version_source(id).is_some() {
        return Ok(None);
    }
    let mut versions = sources.versions(id)?;
    versions.sort();
    versions.reverse();
    Ok(Some(versions).filter(|versions| !versions.is_empty()))
}

fn known_or_note(
    context: &Context<'_>,
    id: &PackageId,
    versions: Result<Option<Vec<Version>>, InstallError>,
) -> Option<Vec<Version>> {
    versions.unwrap_or_else(|error| {
        let text = format!("the versions that there are of {id} are not known: {error}");
        context.observer.observe(&Event::Note(text));
        None
    })
}

/// The package as it lies in its slot; `None` where it does not, or where its manifest is not the
/// one that was placed.
fn installed(looked: &Looked, locked: &LockedPackage) -> Result<Option<Found>, InstallError> {
    let Some(items) = installed_items(looked, locked)? else {
        return Ok(None);
    };
    let (slot, layout) = (locked.slot(), &looked.project.layout);
    let (manifest, tree, scripts) = match read_record(layout, &slot)? {
        RecordOnDisk::Valid { record, .. } if slot.version().is_some() => {
            let manifest = looked.manifest(locked);
            let bases = manifest.iter().flat_map(bases);
            let scripts = scripts_of(bases, &record.tree);
            (manifest, Some(record.tree.id()), scripts)
        }
        _ => {
            let manifest = read_manifest(&layout.slot(&slot))?;
            (Some(manifest), None, locked_scripts(locked))
        }
    };
    let target = target_of(&looked.project, locked)?;
    Ok(manifest.map(|manifest| Found {
        target,
        manifest,
        tree,
        scripts,
        items,
    }))
}

/// The scripts that the lock names.
fn locked_scripts(locked: &LockedPackage) -> BTreeMap<RelPath, Sha256Digest> {
    let hooks = locked.install_hooks.iter();
    hooks
        .filter_map(|(key, sha256)| Some((RelPath::new(key).ok()?, *sha256)))
        .collect()
}

fn bases(manifest: &Manifest) -> impl Iterator<Item = &RelPath> {
    let packages = manifest.package.iter();
    packages.flat_map(|package| package.hooks.scripts.values())
}

/// The newest version that `constraint` takes. Without one, a prerelease where there is nothing else.
fn newest(
    looked: &Looked,
    sources: &Sources<'_>,
    id: &PackageId,
    constraint: Option<&Constraint>,
) -> Result<Target, InstallError> {
    let mut versions = sources.versions(id)?;
    versions.sort();
    let is_taken = |version: &&Version| match constraint {
        Some(constraint) => constraint.matches(version),
        None => version.pre.is_empty(),
    };
    let taken = versions.iter().rev().find(is_taken);
    let chosen = taken.or_else(|| versions.last().filter(|_| constraint.is_none()));
    let Some(version) = chosen else {
        return Err(match constraint.zip(versions.pop()) {
            Some((constraint, newest)) => InstallError::NoSuchVersion {
                id: id.clone(),
                constraint: constraint.clone(),
                newest,
            },
            None => no_such_package(looked, sources, id),
        });
    };
    let location = sources.locate(id, version)?;
    Ok(Target {
        id: id.clone(),
        version: version.clone(),
        source: location.source,
        origin: location.origin,
        dependencies: Vec::new(),
        locked: None,
        previous: None,
    })
}

fn no_such_package(looked: &Looked, sources: &Sources<'_>, id: &PackageId) -> InstallError {
    let mut known = sources.known_packages();
    known.extend(looked.lock.packages.iter().map(|locked| locked.id.clone()));
    let id = id.clone();
    InstallError::NoSuchPackage { id, known }
}

/// The package as its source has it.
fn published(
    context: &Context<'_>,
    repositories: &Repositories<'_>,
    sources: &Sources<'_>,
    target: Target,
) -> Result<Found, InstallError> {
    let manifest = sources.manifest(&target.id, &target.version)?;
    let store = context.settings.package_store();
    let options = FetchOptions::content_only(context, store.as_ref(), repositories);
    let package = manifest.package.as_ref();
    let is_clone = package.is_some_and(|p| p.materialization == Materialization::InPlace);
    let (fetched, tree): (Fetched, Option<TreeId>) = match target.origin.git() {
        Some(origin) if is_clone => (fetch_clone(&target, origin, &options)?.0, None),
        _ => {
            let fetched = fetch(&target, &options)?;
            let tree = fetched.tree().id();
            (fetched, Some(tree))
        }
    };
    let files = fetched.tree().rows().iter().map(|row| &row.path);
    let items = items_of(declared(&manifest), files).into_iter();
    Ok(Found {
        items: items
            .map(|item| ItemSummary::of(&target.id, item))
            .collect(),
        manifest: manifest.as_ref().clone(),
        scripts: fetched.scripts,
        tree,
        target,
    })
}

fn report(looked: &Looked, found: Found, versions: Option<Vec<Version>>) -> ShowReport {
    let target = &found.target;
    let locked = looked.package(&target.id);
    let version = target.version.to_string();
    let package = found.manifest.package.as_ref();
    let package = package.expect("a manifest that was taken for this package's has a package");
    let git = target.origin.git();
    let text = |text: &Option<String>| text.as_deref().map(escape);
    let is_locked = locked.is_some_and(|locked| locked.version == version);
    ShowReport {
        id: target.id.clone(),
        description: text(&package.description),
        license: text(&package.license),
        kind: package.kind.as_str(),
        materialization: package.materialization.as_str(),
        bridge: package.bridge,
        upstream: package.upstream.as_deref().map(shown_url),
        source: target.source.to_string(),
        reference: git.and_then(|git| git.reference.clone()),
        subdir: git.and_then(|git| git.subdir.clone()),
        commit: git.map(|git| git.commit.clone()),
        tree: found.tree,
        versions: versions.map(|all| all.iter().map(ToString::to_string).collect()),
        locked: locked.cloned(),
        requires: requires(&target.id, &version, &found.manifest),
        required_by: required_by(looked, &target.id),
        hooks: hooks(package, &found.scripts, locked.filter(|_| is_locked)),
        boot: package.boot.as_ref().map(boot),
        items: found.items,
        version,
    }
}

fn requires(id: &PackageId, version: &str, manifest: &Manifest) -> Vec<RequirementSummary> {
    let requires = manifest.requires.iter();
    requires
        .map(|(package, dependency)| RequirementSummary {
            requirer: id.to_string(),
            version: Some(version.to_owned()),
            package: package.clone(),
            requirement: Some(requirement_text(dependency)),
        })
        .collect()
}

/// Who requires `id` in this project: the project, then packages by id.
fn required_by(looked: &Looked, id: &PackageId) -> Vec<RequirementSummary> {
    let roots = looked.roots().into_iter();
    let roots = roots.filter_map(|root| {
        Some(RequirementSummary {
            requirer: escape(root.name),
            version: None,
            package: id.clone(),
            requirement: Some(requirement_text(root.requires.get(id)?)),
        })
    });
    let packages = looked.lock.packages.iter();
    let packages = packages.filter(|package| package.dependencies.contains(id));
    let packages = packages.map(|package| {
        let manifest = looked.manifest(package);
        let dependency = manifest.as_ref().and_then(|found| found.requires.get(id));
        RequirementSummary {
            requirer: package.id.to_string(),
            version: Some(package.version.to_string()),
            package: id.clone(),
            requirement: dependency.map(requirement_text),
        }
    });
    roots.chain(packages).collect()
}

fn hooks(
    package: &Package,
    scripts: &BTreeMap<RelPath, Sha256Digest>,
    locked: Option<&PackageSummary>,
) -> Vec<DeclaredHook> {
    let state = |phase| {
        let phases = locked.map_or(&[][..], |locked| &locked.phases);
        let found = phases.iter().find(|summary| summary.phase == phase);
        found.map(|summary| summary.state)
    };
    let declared = package.hooks.scripts.iter();
    declared
        .map(|(phase, base)| DeclaredHook {
            phase: *phase,
            scripts: scripts
                .iter()
                .filter(|(path, _)| is_script_of(path, base))
                .map(|(path, sha256)| ScriptSummary {
                    path: path.clone(),
                    sha256: *sha256,
                })
                .collect(),
            state: state(*phase),
        })
        .collect()
}

/// Whether the script `path` is `base` with the suffix of a system.
fn is_script_of(path: &RelPath, base: &RelPath) -> bool {
    let suffix = path.as_str().strip_prefix(base.as_str());
    suffix.is_some_and(|suffix| suffix.starts_with('.') && !suffix.contains('/'))
}

fn boot(boot: &Boot) -> BootSummary {
    BootSummary {
        source: boot.source.clone(),
        link: match boot.is_static {
            true => "static",
            false => "dynamic",
        },
        when: boot.when.as_deref().map(escape),
    }
}
