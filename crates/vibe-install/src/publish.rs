//! `vibe publish`: a package of one's own into a directory registry.

pub(crate) mod error;

pub use error::PublishingError;

use std::path::{Path, PathBuf};

use serde::Serialize;
use vibe_core::formats::manifest::{MANIFEST_NAME, Publish};
use vibe_core::{Event, PackageId, RemoteUrl, Tree, TreeId};
use vibe_fetch::{
    DirectoryRegistry, Publication, PublishError, Published, publish as write, published,
};
use vibe_fs::{canonical_directory, may_be_planted, stat_of};
use vibe_plan::lint::{LintFinding, Severity};

use crate::check::{Checked, OwnPackage, read_manifest};
use crate::error::InstallError;
use crate::settings::Context;
use crate::sources::registry_directory;
use crate::wording::finding_line;

/// What is to be published where.
#[derive(Debug, Clone)]
pub struct PublishRequest {
    /// The package's directory; `None` for the one that the working directory is in.
    pub directory: Option<PathBuf>,
    /// The registry's name.
    pub registry: String,
    /// Only say what would be done.
    pub dry_run: bool,
}

/// What became of a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum PublishOutcome {
    /// It was not there, and is now.
    Published,
    /// It was there with the same content; nothing was written.
    AlreadyPublished,
    /// It is not there; only what would be done was asked for.
    WouldPublish,
}

/// What `publish` did.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PublishReport {
    /// The package.
    pub package: PackageId,
    /// Its version.
    pub version: String,
    /// The registry's name.
    pub registry: String,
    /// Its address, as the manifest that names it has it.
    pub url: String,
    /// The directory of the version in it.
    #[serde(serialize_with = "crate::report::path_text")]
    pub directory: PathBuf,
    /// The files that ship.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Their content identity.
    pub tree: TreeId,
    /// What became of it.
    pub outcome: PublishOutcome,
    /// What a check warns of.
    pub findings: Vec<LintFinding>,
}

/// A registry that a manifest names.
struct Named {
    url: String,
    /// The directory of that manifest.
    base: PathBuf,
}

/// Publishes a package, unless a check finds an error in it or the version is there already.
///
/// # Errors
/// The registry is not known, is no directory, or may not have the package; a check finds an error;
/// the version is there with other content; the registry cannot be written.
pub fn publish(
    context: &Context<'_>,
    request: &PublishRequest,
) -> Result<PublishReport, InstallError> {
    let own = OwnPackage::open(context, request.directory.as_deref())?;
    let named = find_registry(context, &own, &request.registry)?;
    check_permitted(&own, &request.registry)?;
    let registry = directory_of(&own, &request.registry, &named)?;
    let checked = own.check(context, true)?;
    let tree = refuse_errors(&own, &checked)?;
    for finding in &checked.report.findings {
        context
            .observer
            .observe(&Event::Warning(finding_line(finding)));
    }
    let notes = checked.report.notes.iter();
    notes.for_each(|note| context.observer.observe(&Event::Note(note.clone())));
    let publication = Publication {
        id: &own.package.id,
        version: &own.package.version,
        listing: &checked.listing,
        tree,
        limits: &context.settings.config.limits,
        command: &context.settings.command,
    };
    let found = match request.dry_run {
        true => published(&registry, &publication),
        false => write(&registry, &publication, context.cancel),
    };
    let found = found.map_err(|source| failed(&own, request, &registry, source))?;
    Ok(PublishReport {
        registry: request.registry.clone(),
        url: named.url,
        directory: registry.directory(&own.package.id, &own.package.version),
        tree: tree.id(),
        outcome: match (found, request.dry_run) {
            (Published::Same, _) => PublishOutcome::AlreadyPublished,
            (Published::Absent, true) => PublishOutcome::WouldPublish,
            (Published::Absent, false) => PublishOutcome::Published,
        },
        package: checked.report.package,
        version: checked.report.version,
        files: checked.report.files,
        bytes: checked.report.bytes,
        findings: checked.report.findings,
    })
}

/// The registry called `name`: of the package's own manifest, else of the nearest one above it, else
/// of the project that was named or that the working directory is in. One that anybody could have
/// put above does not count: it would say where the package goes.
fn find_registry(
    context: &Context<'_>,
    own: &OwnPackage,
    name: &str,
) -> Result<Named, InstallError> {
    let mut known: Vec<String> = Vec::new();
    let above = own.directory.ancestors();
    for directory in above.chain(context.settings.start.ancestors()) {
        let path = directory.join(MANIFEST_NAME);
        let is_meant = directory == own.directory || directory == context.settings.start;
        if stat_of(&path)?.is_none() || (!is_meant && may_be_planted(&path, &own.directory)?) {
            continue;
        }
        let (manifest, _) = read_manifest(directory)?;
        for registry in manifest.registries {
            if registry.name == name {
                let (url, base) = (registry.url, directory.to_path_buf());
                return Ok(Named { url, base });
            }
            known.push(registry.name);
        }
    }
    known.sort();
    known.dedup();
    Err(PublishingError::UnknownRegistry {
        path: own.directory.join(MANIFEST_NAME),
        name: name.to_owned(),
        known,
    }
    .into())
}

fn check_permitted(own: &OwnPackage, registry: &str) -> Result<(), InstallError> {
    let allowed = match &own.package.publish {
        Publish::Anywhere => return Ok(()),
        Publish::To(names) if names.iter().any(|name| name == registry) => return Ok(()),
        Publish::Never => Vec::new(),
        Publish::To(names) => names.clone(),
    };
    Err(PublishingError::Forbidden {
        id: own.package.id.clone(),
        registry: registry.to_owned(),
        allowed,
    }
    .into())
}

/// The directory of a registry; one in git is published to by a tag and a push.
fn directory_of(
    own: &OwnPackage,
    name: &str,
    named: &Named,
) -> Result<DirectoryRegistry, InstallError> {
    if let Some(directory) = registry_directory(&named.base, &named.url) {
        let place = canonical_directory(&directory).ok();
        if let Some(registry) = place.filter(|place| place.starts_with(&own.directory)) {
            let package = own.directory.clone();
            return Err(PublishingError::InPackage { registry, package }.into());
        }
        return Ok(DirectoryRegistry::new(directory));
    }
    let package = &own.package;
    let repository = RemoteUrl::in_registry(&named.url, &package.id).map_err(|source| {
        InstallError::RegistryUrl {
            name: name.to_owned(),
            source,
        }
    })?;
    Err(PublishingError::GitRegistry {
        registry: name.to_owned(),
        version: package.version.clone(),
        repository: repository.map(|url| url.to_string()),
        directory: own.directory.clone(),
    }
    .into())
}

fn refuse_errors<'a>(own: &OwnPackage, checked: &'a Checked) -> Result<&'a Tree, InstallError> {
    let findings = checked.report.findings.iter();
    let errors = findings.filter(|finding| finding.severity == Severity::Error);
    let errors: Vec<String> = errors.map(finding_line).collect();
    match &checked.tree {
        Some(tree) if errors.is_empty() => Ok(tree),
        _ => Err(PublishingError::CheckFailed {
            id: own.package.id.clone(),
            version: own.package.version.clone(),
            directory: own.directory.clone(),
            errors,
        }
        .into()),
    }
}

fn failed(
    own: &OwnPackage,
    request: &PublishRequest,
    registry: &DirectoryRegistry,
    source: PublishError,
) -> InstallError {
    if matches!(source, PublishError::Interrupted) {
        return InstallError::Interrupted;
    }
    PublishingError::Registry {
        id: own.package.id.clone(),
        version: own.package.version.clone(),
        registry: request.registry.clone(),
        directory: plain(registry.root()),
        source,
    }
    .into()
}

/// `path` without `..` where it can be found.
fn plain(path: &Path) -> PathBuf {
    canonical_directory(path).unwrap_or_else(|_| path.to_path_buf())
}
