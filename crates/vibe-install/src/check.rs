//! `vibe check`: everything that is wrong with a package of one's own, before somebody installs it.
//!
//! Reads only, runs nothing of the package, and asks no network. What an install refuses is refused
//! here by the same code.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use serde::Serialize;
use vibe_core::formats::manifest::{DependencySource, MANIFEST_NAME, Manifest, Package, Reading};
use vibe_core::limits::{MANIFEST_BYTES, PackageLimits};
use vibe_core::tree::TreeError;
use vibe_core::{PackageId, RelPath, Tree, TreeId};
use vibe_fetch::{FetchError, Listing, ListingNote, Survey, hash_listing, survey};
use vibe_fs::{canonical_directory, read_bounded, stat_of};
use vibe_plan::lint::{
    Lint, LintFinding, LintInput, Severity, lint, paths_named, paths_to_read, sort,
};

use crate::error::InstallError;
use crate::manifests::parse_manifest;
use crate::settings::Context;

/// Bytes of a script or boot text that is looked into; a larger one is told by its size.
const TEXT_BYTES: u64 = 16 << 20;

/// What `check` found.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct CheckReport {
    /// The package.
    pub package: PackageId,
    /// Its version.
    pub version: String,
    /// Where it is.
    #[serde(serialize_with = "crate::report::path_text")]
    pub directory: PathBuf,
    /// The files that ship.
    pub files: usize,
    /// Their bytes.
    pub bytes: u64,
    /// Their content identity; none where an install would refuse them.
    pub tree: Option<TreeId>,
    /// How many findings are errors.
    pub errors: usize,
    /// How many are warnings.
    pub warnings: usize,
    /// What is wrong, by file and place.
    pub findings: Vec<LintFinding>,
    /// What is so, and no fault.
    pub notes: Vec<String>,
}

/// A package of one's own.
#[derive(Debug)]
pub(crate) struct OwnPackage {
    /// Its directory, canonical.
    pub directory: PathBuf,
    /// Its manifest.
    pub manifest: Manifest,
    /// The package in it.
    pub package: Package,
    /// The text of the manifest.
    text: String,
}

/// A package that was looked at.
#[derive(Debug)]
pub(crate) struct Checked {
    /// What was found.
    pub report: CheckReport,
    /// What ships.
    pub listing: Listing,
    /// What that holds; `None` where an install would refuse it.
    pub tree: Option<Tree>,
}

/// Looks at the package in `directory`, or else at the one that the working directory is in.
///
/// # Errors
/// There is no package, its manifest is malformed, or its files cannot be read.
pub fn check(context: &Context<'_>, directory: Option<&Path>) -> Result<CheckReport, InstallError> {
    let own = OwnPackage::open(context, directory)?;
    own.check(context, false).map(|checked| checked.report)
}

impl OwnPackage {
    /// The package in `directory`, or else the one that the search for a project begins in.
    pub(crate) fn open(
        context: &Context<'_>,
        directory: Option<&Path>,
    ) -> Result<Self, InstallError> {
        let settings = context.settings;
        let directory = match directory {
            Some(named) => settings.directory.join(named),
            None => nearest_manifest(&settings.start)?,
        };
        let directory = canonical_directory(&directory).map_err(|source| {
            let path = directory.clone();
            InstallError::NoDirectory { path, source }
        })?;
        if stat_of(&directory.join(MANIFEST_NAME))?.is_none() {
            return Err(InstallError::NoPackageManifest { path: directory });
        }
        let (manifest, text) = read_manifest(&directory)?;
        let Some(package) = manifest.package.clone() else {
            return Err(InstallError::NotAPackageDirectory { path: directory });
        };
        Ok(Self {
            directory,
            manifest,
            package,
            text,
        })
    }

    /// Looks at everything; with `to_directory` as it would be published to a directory registry.
    pub(crate) fn check(
        &self,
        context: &Context<'_>,
        to_directory: bool,
    ) -> Result<Checked, InstallError> {
        let limits = &context.settings.config.limits;
        let failed = |source| InstallError::Fetch {
            id: self.package.id.clone(),
            version: self.package.version.clone(),
            source: Box::new(source),
        };
        let found = survey(&self.directory, limits).map_err(failed)?;
        let contents = match found.refused.is_empty() {
            true => Some(hash_listing(&found.listing).map_err(failed)?),
            false => None,
        };
        let of_contents = contents.iter().flat_map(|contents| &contents.notes);
        let odd = found.listing.notes.iter().chain(of_contents);
        let odd: Vec<LintFinding> = odd.filter_map(of_note).collect();
        let Lint {
            mut findings,
            notes,
        } = self.lint(&found, limits, to_directory)?;
        findings.extend(found.refused.iter().map(of_refusal));
        findings.extend(odd);
        sort(&mut findings);
        let tree = contents.map(|contents| contents.tree);
        let report = self.report(&found.listing, tree.as_ref(), findings, notes);
        Ok(Checked {
            report,
            listing: found.listing,
            tree,
        })
    }

    fn report(
        &self,
        listing: &Listing,
        tree: Option<&Tree>,
        findings: Vec<LintFinding>,
        notes: Vec<String>,
    ) -> CheckReport {
        let count = |severity| findings.iter().filter(|it| it.severity == severity).count();
        CheckReport {
            package: self.package.id.clone(),
            version: self.package.version.to_string(),
            directory: self.directory.clone(),
            files: listing.files.len(),
            bytes: listing.files.iter().map(|file| file.size).sum(),
            tree: tree.map(Tree::id),
            errors: count(Severity::Error),
            warnings: count(Severity::Warning),
            findings,
            notes,
        }
    }

    fn lint(
        &self,
        found: &Survey,
        limits: &PackageLimits,
        to_directory: bool,
    ) -> Result<Lint, InstallError> {
        let listing = &found.listing;
        let files = listing.files.iter();
        let files = files.map(|file| (file.path.clone(), file.size)).collect();
        let refused: BTreeSet<&RelPath> = found.refused.iter().filter_map(refused_path).collect();
        let mut left_out = BTreeSet::new();
        for path in paths_named(&self.package) {
            let ships = listing
                .files
                .iter()
                .any(|file| file.path.starts_with(&path));
            let is_there = !ships && stat_of(&path.under(&self.directory))?.is_some();
            if is_there && !refused.contains(&path) {
                left_out.insert(path);
            }
        }
        Ok(lint(&LintInput {
            manifest: &self.manifest,
            package: &self.package,
            text: &self.text,
            files: &files,
            contents: &self.contents(listing, limits)?,
            left_out: &left_out,
            nested_repositories: &found.nested_repositories,
            constraints: &self.constraints(),
            to_directory,
        }))
    }

    fn contents(
        &self,
        listing: &Listing,
        limits: &PackageLimits,
    ) -> Result<BTreeMap<RelPath, Vec<u8>>, InstallError> {
        let limit = limits.file_bytes.min(TEXT_BYTES);
        let mut contents = BTreeMap::new();
        for path in paths_to_read(&self.package) {
            let Some(file) = listing.get(&path).filter(|file| file.size <= limit) else {
                continue;
            };
            let bytes = listing
                .read(file, limit)
                .map_err(|source| InstallError::Fetch {
                    id: self.package.id.clone(),
                    version: self.package.version.clone(),
                    source: Box::new(source),
                })?;
            contents.insert(path, bytes);
        }
        Ok(contents)
    }

    /// What the requirements that only this place can satisfy would be as constraints. What cannot
    /// be read leaves no constraint to propose.
    fn constraints(&self) -> BTreeMap<PackageId, String> {
        let requires = self.manifest.requires.iter();
        requires
            .filter_map(|(id, dependency)| {
                let constraint = match &dependency.source {
                    DependencySource::Path {
                        constraint: Some(constraint),
                        ..
                    } => constraint.to_string(),
                    DependencySource::Path { path, .. } => {
                        let (found, _) = read_manifest(&self.directory.join(path)).ok()?;
                        format!("^{}", found.package?.version)
                    }
                    DependencySource::Variable { name } => self.variable(name)?,
                    DependencySource::Git { .. } | DependencySource::Registry { .. } => {
                        return None;
                    }
                };
                Some((id.clone(), constraint))
            })
            .collect()
    }

    /// The constraint that the nearest `[workspace.versions]` gives a name.
    fn variable(&self, name: &str) -> Option<String> {
        self.directory.ancestors().find_map(|directory| {
            let (manifest, _) = read_manifest(directory).ok()?;
            let versions = manifest.workspace?.versions;
            versions.get(name).map(ToString::to_string)
        })
    }
}

/// The nearest directory with a manifest, from `start` upwards; `start` itself where there is none.
fn nearest_manifest(start: &Path) -> Result<PathBuf, InstallError> {
    for directory in start.ancestors() {
        if stat_of(&directory.join(MANIFEST_NAME))?.is_some() {
            return Ok(directory.to_path_buf());
        }
    }
    Ok(start.to_path_buf())
}

/// The manifest in `directory` as one's own, and its text.
pub(crate) fn read_manifest(directory: &Path) -> Result<(Manifest, String), InstallError> {
    let path = directory.join(MANIFEST_NAME);
    let bytes = read_bounded(&path, MANIFEST_BYTES)
        .map_err(|source| InstallError::ReadManifest { source })?;
    parse_manifest(&path, &bytes, Reading::Own)
}

fn refused_path(error: &FetchError) -> Option<&RelPath> {
    match error {
        FetchError::Special { path, .. }
        | FetchError::Link { path, .. }
        | FetchError::LongLink { path, .. }
        | FetchError::FileTooLarge { path, .. }
        | FetchError::Twice { path } => Some(path),
        FetchError::Tree(TreeError::Collision { second, .. }) => Some(second),
        _ => None,
    }
}

fn of_refusal(error: &FetchError) -> LintFinding {
    let remedy = match error {
        FetchError::Link { .. } => {
            "link to something in the package, put a copy there, or leave it out with `.vibeignore`"
        }
        FetchError::FileTooLarge { .. } => {
            "leave it out with `.vibeignore`, or have a pre-install script fetch it"
        }
        _ => "rename it, or leave it out with `.vibeignore`",
    };
    let finding = LintFinding::error("refused", error.to_string(), remedy);
    match (refused_path(error), error) {
        (Some(path), _) => finding.of(path.as_str()),
        (None, FetchError::Name(error)) => finding.of(error.path.as_str()),
        (None, _) => finding,
    }
}

/// What an install only notes. Permissions that a umask makes are no news.
fn of_note(note: &ListingNote) -> Option<LintFinding> {
    let (rule, path, line, remedy) = match note {
        ListingNote::Permissions { permissions, .. } if permissions & 0o7000 == 0 => return None,
        ListingNote::Permissions { path, .. } => {
            let remedy = "give it mode 0644 or 0755";
            ("permissions", path.as_str(), None, remedy)
        }
        ListingNote::NoPattern { file, line } => (
            "no-pattern",
            file.as_str(),
            Some(*line),
            "correct the line, or take it out",
        ),
        ListingNote::LargeFilePointer { path, .. } => {
            let remedy = "fetch the content (`git lfs pull`) before you publish";
            ("large-file-pointer", path.as_str(), None, remedy)
        }
    };
    let finding = LintFinding::warning(rule, note.to_string(), remedy).of(path);
    Some(match line {
        Some(line) => finding.at_line(line),
        None => finding,
    })
}
