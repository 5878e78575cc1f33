//! `vibe outdated`: what an update would bring, and what the sources have besides.
//!
//! A source that gives no answer takes nothing from the others: its packages stay, for this
//! question, at what the lock says, and its error is told beside the rows.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::error::Error;

use serde::Serialize;
use vibe_core::formats::lock::{Lock, LockedPackage};
use vibe_core::formats::manifest::{Dependency, GitReference};
use vibe_core::text::escape;
use vibe_core::{Constraint, Event, Index, PackageId, Requirements, Version};
use vibe_git::GitError;
use vibe_resolver::{Request, Resolution, resolve};

use crate::error::InstallError;
use crate::look::look;
use crate::manifests::conflicts;
use crate::own_manifest::OwnRequirements;
use crate::project::Project;
use crate::report::PhaseSummary;
use crate::repositories::Repositories;
use crate::resolution::target_of;
use crate::settings::Context;
use crate::sources::Sources;
use crate::unsolved::Unsolved;
use crate::verify::check_installed;

/// Packages that a note names at most.
const NAMES_TOLD: usize = 10;

/// What to look at.
#[derive(Debug, Clone, Default)]
pub struct OutdatedRequest {
    /// The packages; all where it is empty.
    pub packages: Vec<PackageId>,
    /// Also those of which there is nothing else.
    pub all: bool,
}

/// What there is besides what is locked.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct OutdatedReport {
    /// How many packages were looked at.
    pub packages: usize,
    /// The packages of which there is something else, or all, by id.
    pub rows: Vec<OutdatedRow>,
    /// Why it cannot be told what an update gives; `None` where it can.
    pub problem: Option<String>,
    /// The answers that sources did not give, and why an update cannot be told.
    #[serde(skip)]
    pub failures: Vec<InstallError>,
}

/// One locked package, and what else there is of it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct OutdatedRow {
    /// Its id.
    pub id: PackageId,
    /// Its locked version.
    pub current: String,
    /// Its locked commit, if it comes from git.
    pub current_commit: Option<String>,
    /// What an update gives; `None` where that is not known, or where it is needed no more.
    pub compatible: Option<String>,
    /// The commit of that, if it comes from git.
    pub compatible_commit: Option<String>,
    /// The newest version that its source has; a prerelease only if the locked one is one. `None`
    /// where that is not known.
    pub latest: Option<String>,
    /// Its source, as the lock writes it.
    pub source: String,
    /// What is required of the repository, as the lock writes it.
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    /// A tag or a revision is required, which leaves no choice.
    pub pinned: bool,
    /// An update removes it: nothing needs it then.
    pub unneeded: bool,
    /// Why its source gave no answer.
    pub error: Option<String>,
    /// Whether its slot is there with a usable record.
    pub installed: bool,
    /// Its declared phases and where they stand, on this machine.
    pub phases: Vec<PhaseSummary>,
}

impl OutdatedRow {
    /// Whether an update changes it, its source has something newer, or that is not known.
    fn differs(&self) -> bool {
        let other = |found: &Option<String>| found.as_ref().is_some_and(|v| *v != self.current);
        self.error.is_some()
            || self.unneeded
            || other(&self.compatible)
            || other(&self.latest)
            || (self.compatible.is_some() && self.compatible_commit != self.current_commit)
    }
}

/// Asks the sources what there is. Nothing in the project is written.
///
/// # Errors
/// There is no project, something in it is not as it should be, a named package is not in its lock,
/// or the user interrupted. What a source does not answer is part of the report.
pub fn outdated(
    context: &Context<'_>,
    request: &OutdatedRequest,
) -> Result<OutdatedReport, InstallError> {
    let looked = look(context)?;
    check_installed(&looked.lock, &request.packages)?;
    if looked.lock.packages.is_empty() {
        return Ok(OutdatedReport::default());
    }
    let project = &looked.project;
    let repositories = Repositories::new(context, project.root.clone());
    let own = project.requirements();
    let sources = Sources::open(project, &repositories, &own)?;
    let answers = Answers::new(project, &own, &sources, &looked.lock);
    context.observer.observe(&Event::Resolving);
    let update = answers.update()?;
    let is_asked = |id: &PackageId| request.packages.is_empty() || request.packages.contains(id);
    let packages = looked
        .packages
        .iter()
        .filter(|package| is_asked(&package.id));
    let mut report = OutdatedReport::default();
    for package in packages {
        let locked = looked.lock.get(&package.id);
        let locked = locked.expect("what was looked at is in the lock");
        let mut row = answers.row(locked, update.as_ref().ok());
        answers.check_interrupted()?;
        row.installed = package.installed;
        row.phases.clone_from(&package.phases);
        report.packages += 1;
        report.rows.push(row);
    }
    let (mut failures, unasked) = answers.into_failures();
    tell_unasked(context, &unasked, is_asked);
    for (id, error) in failures.extract_if(.., |id, _| !is_asked(id)) {
        let text = format!("{id} is taken as it is locked: {}", in_one_line(&error));
        context.observer.observe(&Event::Note(text));
    }
    for row in &mut report.rows {
        row.error = failures.get(&row.id).map(in_one_line);
    }
    report.rows.retain(|row| request.all || row.differs());
    report.problem = update.as_ref().err().map(in_one_line);
    report.failures = failures.into_values().chain(update.err()).collect();
    Ok(report)
}

/// Says which packages were not asked about, since the network may not be used.
fn tell_unasked(
    context: &Context<'_>,
    unasked: &[PackageId],
    is_asked: impl Fn(&PackageId) -> bool,
) {
    let names: Vec<&str> = unasked
        .iter()
        .filter(|id| is_asked(id))
        .map(PackageId::as_str)
        .collect();
    if names.is_empty() {
        return;
    }
    let told = names[..names.len().min(NAMES_TOLD)].join(", ");
    let more = match names.len().saturating_sub(NAMES_TOLD) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    context.observer.observe(&Event::Note(format!(
        "offline: what there is of {told}{more} was not asked"
    )));
}

/// Why an answer is missing: it is among the failures.
#[derive(Debug, thiserror::Error)]
#[error("a source gave no answer")]
struct NoAnswer;

/// The sources, where a package whose source gives no answer is as the lock says.
struct Answers<'a> {
    project: &'a Project,
    own: &'a [OwnRequirements],
    sources: &'a Sources<'a>,
    lock: &'a Lock,
    failures: RefCell<BTreeMap<PackageId, InstallError>>,
    interrupted: Cell<bool>,
}

impl<'a> Answers<'a> {
    fn new(
        project: &'a Project,
        own: &'a [OwnRequirements],
        sources: &'a Sources<'a>,
        lock: &'a Lock,
    ) -> Self {
        Self {
            project,
            own,
            sources,
            lock,
            failures: RefCell::default(),
            interrupted: Cell::new(false),
        }
    }

    /// What the requirements take now, with nothing held. An inner error: there is no solution.
    fn update(&self) -> Result<Result<Resolution, InstallError>, InstallError> {
        match self.sources.ask_ahead(self.own) {
            Err(InstallError::Interrupted) => return Err(InstallError::Interrupted),
            // A server that does not answer is not asked twice.
            Err(InstallError::Git {
                id: Some(id),
                source,
            }) => {
                let of = Some(id.clone());
                self.failed(&id, InstallError::Git { id: of, source });
            }
            // What else is wrong is found out again where it matters.
            Err(_) | Ok(()) => {}
        }
        loop {
            let requirers = self.own.iter();
            let requirers = requirers.map(|own| own.requirer(self.constraints(&own.requires)));
            let request = Request {
                requirers: requirers.collect(),
                held: BTreeMap::new(),
            };
            let outcome = resolve(self, &request);
            self.check_interrupted()?;
            let error = match outcome {
                Ok(resolution) => return Ok(Ok(resolution)),
                Err(error) => error,
            };
            // Without an answer, once more: a package that has none is at its locked version then,
            // so that nothing else of it is asked, and each turn has fewer to ask.
            if let Ok(unsolved) = Unsolved::of(error) {
                return Ok(Err(InstallError::Resolve {
                    known: self.sources.known_packages(),
                    error: Box::new(unsolved),
                }));
            }
        }
    }

    fn check_interrupted(&self) -> Result<(), InstallError> {
        match self.interrupted.get() {
            true => Err(InstallError::Interrupted),
            false => Ok(()),
        }
    }

    /// `requires` as the solver looks at it, where each is by itself: one whose source gives no
    /// answer takes what is locked.
    fn constraints(
        &self,
        requires: &BTreeMap<PackageId, Dependency>,
    ) -> BTreeMap<PackageId, Constraint> {
        let constraint = |(id, dependency): (&PackageId, &Dependency)| {
            if self.has_failed(id) {
                return (id.clone(), self.locked_constraint(id));
            }
            let one = BTreeMap::from([(id.clone(), dependency.clone())]);
            match self.sources.constraints(&one) {
                Ok(mut found) => (id.clone(), found.remove(id).unwrap_or_else(Constraint::any)),
                Err(error) => {
                    self.failed(id, error);
                    (id.clone(), self.locked_constraint(id))
                }
            }
        };
        requires.iter().map(constraint).collect()
    }

    fn locked_constraint(&self, id: &PackageId) -> Constraint {
        let locked = self.lock.get(id);
        locked.map_or_else(Constraint::any, |locked| Constraint::exact(&locked.version))
    }

    fn has_failed(&self, id: &PackageId) -> bool {
        self.failures.borrow().contains_key(id)
    }

    fn failed(&self, id: &PackageId, error: InstallError) {
        if let InstallError::Interrupted = error {
            self.interrupted.set(true);
        }
        self.failures
            .borrow_mut()
            .entry(id.clone())
            .or_insert(error);
    }

    /// What the locked version of a package requires, as far as that is here: by its manifest in the
    /// slot or the store, else by the lock.
    fn requirements_at_hand(&self, locked: &LockedPackage) -> Requirements {
        let manifest = self.sources.manifest_at_hand(locked);
        let target = target_of(self.project, locked).ok();
        let (Some(manifest), Some(target)) = (manifest, target) else {
            let dependencies = locked.dependencies.iter();
            return Requirements {
                requires: dependencies
                    .map(|id| (id.clone(), self.locked_constraint(id)))
                    .collect(),
                conflicts: Vec::new(),
            };
        };
        let taken = self
            .sources
            .add_published(&locked.id, &target.origin, &manifest);
        if let Err(error) = taken {
            self.failed(&locked.id, error);
        }
        Requirements {
            requires: self.constraints(&manifest.requires),
            conflicts: conflicts(&manifest),
        }
    }

    /// The versions of `id`; `None` where its source gives no answer.
    fn known_versions(&self, id: &PackageId) -> Option<Vec<Version>> {
        if self.has_failed(id) {
            return None;
        }
        match (self.sources.versions(id), self.lock.get(id)) {
            (Ok(versions), Some(locked)) if versions.is_empty() => {
                let (id, version) = (locked.id.clone(), locked.version.clone());
                self.failed(&locked.id, InstallError::NotInRegistries { id, version });
                None
            }
            (Ok(versions), _) => Some(versions),
            (Err(error), _) => {
                self.failed(id, error);
                None
            }
        }
    }

    /// What there is of `locked` after `update`; whether and how it is installed is left open.
    fn row(&self, locked: &LockedPackage, update: Option<&Resolution>) -> OutdatedRow {
        let id = &locked.id;
        let chosen = update.and_then(|update| update.packages.get(id));
        let unneeded = update.is_some() && chosen.is_none();
        let compatible = chosen.filter(|_| !self.has_failed(id));
        let compatible = compatible.map(|chosen| &chosen.version);
        let commit = compatible.and_then(|version| match self.sources.locate(id, version) {
            Ok(location) => location.origin.git().map(|git| git.commit.clone()),
            Err(error) => {
                self.failed(id, error);
                None
            }
        });
        let versions = match unneeded {
            true => None,
            false => self.known_versions(id),
        };
        let latest = versions.and_then(|versions| latest(versions, &locked.version));
        let compatible = compatible.filter(|_| !self.has_failed(id));
        let requirement = self.sources.git.requirement(id);
        OutdatedRow {
            id: id.clone(),
            current: locked.version.to_string(),
            current_commit: locked.commit.clone(),
            compatible: compatible.map(ToString::to_string),
            compatible_commit: commit,
            latest: latest.map(|version| version.to_string()),
            source: locked.source.to_string(),
            reference: locked.reference.clone(),
            pinned: requirement.is_some_and(|requirement| {
                matches!(
                    requirement.reference,
                    GitReference::Tag(_) | GitReference::Rev(_)
                )
            }),
            unneeded,
            error: None,
            installed: false,
            phases: Vec::new(),
        }
    }

    /// What failed, by package, and the packages that were not asked about, since the network may
    /// not be used.
    fn into_failures(self) -> (BTreeMap<PackageId, InstallError>, Vec<PackageId>) {
        let all = self.failures.into_inner().into_iter();
        let (unasked, failures): (BTreeMap<_, _>, _) = all.partition(|(_, e)| is_offline(e));
        (failures, unasked.into_keys().collect())
    }
}

impl Index for Answers<'_> {
    type Error = NoAnswer;

    fn versions(&self, id: &PackageId) -> Result<Vec<Version>, NoAnswer> {
        if let Some(versions) = self.known_versions(id) {
            return Ok(versions);
        }
        self.check_interrupted().map_err(|_| NoAnswer)?;
        let locked = self.lock.get(id);
        Ok(locked
            .map(|locked| locked.version.clone())
            .into_iter()
            .collect())
    }

    fn requirements(&self, id: &PackageId, version: &Version) -> Result<Requirements, NoAnswer> {
        let locked = self
            .lock
            .get(id)
            .filter(|locked| locked.version == *version);
        if let Some(locked) = locked.filter(|_| self.has_failed(id)) {
            return Ok(self.requirements_at_hand(locked));
        }
        let error = match self.sources.manifest(id, version) {
            Ok(manifest) => {
                return Ok(Requirements {
                    requires: self.constraints(&manifest.requires),
                    conflicts: conflicts(&manifest),
                });
            }
            Err(error) => error,
        };
        self.failed(id, error);
        self.check_interrupted().map_err(|_| NoAnswer)?;
        match locked {
            Some(locked) => Ok(self.requirements_at_hand(locked)),
            None => Err(NoAnswer),
        }
    }
}

/// The newest of `versions`; a prerelease only if `current` is one.
fn latest(versions: Vec<Version>, current: &Version) -> Option<Version> {
    let is_taken = |version: &Version| version.pre.is_empty() || !current.pre.is_empty();
    versions.into_iter().filter(is_taken).max()
}

/// `error` and its causes, escaped.
fn in_one_line(error: &InstallError) -> String {
    let causes = std::iter::successors(error.source(), |cause| (**cause).source());
    let messages = std::iter::once(error.to_string()).chain(causes.map(ToString::to_string));
    escape(&messages.collect::<Vec<_>>().join(": "))
}

/// Whether the network would have been needed, and may not be used.
fn is_offline(error: &InstallError) -> bool {
    let InstallError::Git { source, .. } = error else {
        return false;
    };
    matches!(**source, GitError::Offline { .. })
}

#[cfg(test)]
mod tests {
    use super::*;
    use vibe_core::version::parse_version;

    #[test]
    fn the_latest_is_a_prerelease_only_for_one_who_has_one() {
        let check = |current: &str, expected: &str| {
            let versions = ["1.0.0", "2.0.0", "2.1.0-rc.1", "1.5.0"];
            let versions = versions.map(|text| parse_version(text).unwrap()).to_vec();
            let found = latest(versions, &parse_version(current).unwrap()).unwrap();
            assert_eq!(found.to_string(), expected, "{current}");
        };
        check("1.0.0", "2.0.0");
        check("1.0.0-alpha.1", "2.1.0-rc.1");
        let only = vec![parse_version("1.0.0-rc.1").unwrap()];
        assert_eq!(latest(only, &parse_version("0.9.0").unwrap()), None);
    }
}
