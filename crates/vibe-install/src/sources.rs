//! Where packages come from: the project's registries and its path sources, as one index.

mod claim;
mod path_package;
mod registry;

pub(crate) use registry::registry_directory;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::path::Path;
use std::rc::Rc;

use vibe_core::formats::lock::{LockedPackage, LockedSource};
use vibe_core::formats::manifest::{
    Dependency, DependencySource, GitReference, MANIFEST_NAME, Manifest, Reading,
};
use vibe_core::limits::MANIFEST_BYTES;
use vibe_core::text::escape;
use vibe_core::{Constraint, Index, PackageId, RelPath, Requirements, Version};
use vibe_fs::canonical_directory;
use vibe_resolver::lock_check::{LocalPackage, Wanted, WantedGit};
use vibe_slot::Layout;
use vibe_slot::record::{RecordOnDisk, read_record};

use crate::error::InstallError;
use crate::git_sources::GitSources;
use crate::manifests::{conflicts, constraint_of, parse_manifest, read_manifest, vouched_manifest};
use crate::own_manifest::OwnRequirements;
use crate::project::Project;
use crate::repositories::Repositories;
use crate::target::Origin;
use crate::unsolved::{Trouble, Unsolved};
use crate::workspace::WorkspaceError;

use claim::{
    Claim, ClaimedSource, Required, git_requirement, join_stated, refuse_unsupported, two_sources,
};
use path_package::{PathPackage, read_path_package};
use registry::{NamedRegistry, RegistryKind, git_location, open_registries};

/// The sources of one project.
pub(crate) struct Sources<'a> {
    registries: Vec<NamedRegistry>,
    paths: BTreeMap<PackageId, PathPackage>,
    /// The packages in git repositories.
    pub(crate) git: GitSources<'a>,
    /// Where the user's own manifests take each package from.
    claims: BTreeMap<PackageId, Claim>,
    /// The packages that the root takes from one source whatever anybody else says.
    overrides: BTreeMap<PackageId, Dependency>,
    manifests: RefCell<BTreeMap<(PackageId, Version), Rc<Manifest>>>,
    /// Where the slots are.
    layout: Layout,
}

/// Where a version of a package comes from.
#[derive(Debug, Clone)]
pub(crate) struct Location {
    /// The source, as the lock writes it.
    pub source: LockedSource,
    /// Where its files are.
    pub origin: Origin,
}

impl<'a> Sources<'a> {
    /// Opens the sources that `project` names, with `own` as what its manifests require: its
    /// registries, and every path source reached through path requirements. No repository is asked
    /// anything yet.
    pub(crate) fn open(
        project: &Project,
        repositories: &'a Repositories<'a>,
        own: &[OwnRequirements],
    ) -> Result<Self, InstallError> {
        let mut sources = Self {
            registries: open_registries(project)?,
            paths: BTreeMap::new(),
            git: GitSources::new(repositories),
            claims: BTreeMap::new(),
            overrides: BTreeMap::new(),
            manifests: RefCell::default(),
            layout: project.layout.clone(),
        };
        let overrides = overrides_of(project.manifest());
        let mut open = Vec::new();
        sources.claim(project, &project.root, "", &overrides, &mut open)?;
        sources.overrides = overrides;
        for own in own {
            let directory = project.root.join(own.base());
            sources.claim(project, &directory, own.base(), &own.requires, &mut open)?;
        }
        while let Some(path) = open.pop() {
            let requires = &path.manifest.requires;
            sources.claim(project, &path.directory, &path.path, requires, &mut open)?;
        }
        Ok(sources)
    }

    /// Takes up the sources that the manifest in `directory` names, which the root sees as `base`.
    /// Path packages that are new are added to `found`.
    fn claim(
        &mut self,
        project: &Project,
        directory: &Path,
        base: &str,
        requires: &BTreeMap<PackageId, Dependency>,
        found: &mut Vec<PathPackage>,
    ) -> Result<(), InstallError> {
        let manifest_path = directory.join(MANIFEST_NAME);
        for (id, dependency) in requires {
            let required = Required {
                manifest_path: &manifest_path,
                id,
                dependency,
            };
            refuse_unsupported(&required)?;
            if self.overrides.contains_key(id) {
                continue;
            }
            let claim = Claim {
                source: self.claimed_source(directory, base, &required)?,
                manifest: manifest_path.clone(),
            };
            if self.is_claimed(id, &claim)? {
                continue;
            }
            match &claim.source {
                ClaimedSource::Registry(_) => {}
                ClaimedSource::Git(requirement) => self.git.require(id, requirement.clone())?,
                ClaimedSource::Path { directory, text } => {
                    let (directory, text) = (directory.clone(), text.clone());
                    let package = read_path_package(project, &required, text, directory)?;
                    self.paths.insert(id.clone(), package.clone());
                    found.push(package);
                }
            }
            self.claims.insert(id.clone(), claim);
        }
        Ok(())
    }

    /// Whether another manifest takes `id` from the same source already.
    ///
    /// # Errors
    /// It takes it from another one.
    fn is_claimed(&self, id: &PackageId, claim: &Claim) -> Result<bool, InstallError> {
        match self.claims.get(id) {
            None => Ok(false),
            Some(known) if !known.source.agrees_with(&claim.source) => {
                Err(two_sources(id, known.shown(), claim.shown()))
            }
            // A registry that is asked for by name counts for those who name none.
            Some(known) => Ok(!matches!(
                (&known.source, &claim.source),
                (
                    ClaimedSource::Registry(None),
                    ClaimedSource::Registry(Some(_))
                )
            )),
        }
    }

    /// The source that `required` names, by the manifest in `directory`, which the root sees as
    /// `base`.
    fn claimed_source(
        &self,
        directory: &Path,
        base: &str,
        required: &Required<'_>,
    ) -> Result<ClaimedSource, InstallError> {
        if let Some(requirement) = git_requirement(base, required)? {
            return Ok(ClaimedSource::Git(requirement));
        }
        match &required.dependency.source {
            DependencySource::Path { path, .. } => Ok(ClaimedSource::Path {
                directory: canonical_directory(&directory.join(path)).map_err(|source| {
                    InstallError::PathSource {
                        id: required.id.clone(),
                        path: path.clone(),
                        source,
                    }
                })?,
                text: join_stated(base, path),
            }),
            DependencySource::Registry {
                registry: Some(name),
                ..
            } => {
                self.check_registry(required, name)?;
                Ok(ClaimedSource::Registry(Some(name.clone())))
            }
            _ => Ok(ClaimedSource::Registry(None)),
        }
    }

    fn check_registry(&self, required: &Required<'_>, name: &str) -> Result<(), InstallError> {
        let known: Vec<String> = self.registries.iter().map(|one| one.name.clone()).collect();
        match known.iter().any(|known| known == name) {
            true => Ok(()),
            false => Err(InstallError::NoSuchRegistry {
                path: required.manifest_path.to_path_buf(),
                id: required.id.clone(),
                name: name.to_owned(),
                known,
            }),
        }
    }

    /// The name of the registry that the user's own manifests ask for.
    fn pinned(&self, id: &PackageId) -> Option<&String> {
        match &self.claims.get(id)?.source {
            ClaimedSource::Registry(name) => name.as_ref(),
            ClaimedSource::Path { .. } | ClaimedSource::Git(_) => None,
        }
    }

    /// The packages that the root takes from one source whatever anybody else says.
    pub(crate) fn overrides(&self) -> &BTreeMap<PackageId, Dependency> {
        &self.overrides
    }

    /// The path or the repository that manifests take `id` from, for a message.
    fn named_source(&self, id: &PackageId) -> Option<String> {
        match self.paths.get(id) {
            Some(path) => Some(format!("path {}", path.path)),
            None => self.git.requirement(id).map(|git| git.shown()),
        }
    }

    /// The path, or the place in a repository, that manifests take `id` from without leaving a choice
    /// of versions, for a message.
    pub(crate) fn one_version_source(&self, id: &PackageId) -> Option<String> {
        let git = self.git.requirement(id);
        let is_range = git.is_some_and(|git| matches!(git.reference, GitReference::Range(_)));
        self.named_source(id).filter(|_| !is_range)
    }

    /// Takes up the repositories that the published `manifest` of `publisher` names, which is at
    /// `origin`. A path of the project's comes before them.
    pub(crate) fn add_published(
        &self,
        publisher: &PackageId,
        origin: &Origin,
        manifest: &Manifest,
    ) -> Result<(), InstallError> {
        let place = &origin.path().join(MANIFEST_NAME);
        for (id, dependency) in &manifest.requires {
            let required = Required {
                manifest_path: place,
                id,
                dependency,
            };
            let Some(requirement) = git_requirement("", &required)? else {
                continue;
            };
            if self.paths.contains_key(id) || self.overrides.contains_key(id) {
                continue;
            }
            let url = &requirement.url;
            let is_absolute = Path::new(url.path()).is_absolute();
            if url.is_local() && !(is_absolute && origin.is_local()) {
                return Err(InstallError::LocalRepository {
                    id: publisher.clone(),
                    dependency: id.clone(),
                    repository: url.to_string(),
                });
            }
            if let Some(own) = self.claims.get(id)
                && matches!(own.source, ClaimedSource::Registry(_))
            {
                return Err(two_sources(id, requirement.shown(), own.shown()));
            }
            self.git.require(id, requirement)?;
        }
        Ok(())
    }

    /// The registry that `id` comes from: the one asked for by name, else the first that knows it.
    fn registry_of(&self, id: &PackageId) -> Result<Option<&NamedRegistry>, InstallError> {
        let pinned = self.pinned(id);
        for registry in &self.registries {
            let asked = pinned.is_none_or(|name| *name == registry.name);
            if asked && !registry.versions(id, &self.git)?.is_empty() {
                return Ok(Some(registry));
            }
        }
        Ok(None)
    }

    /// Says in `unsolved` where the versions that it speaks of come from, if that could be another
    /// place, and which registry has others. No network is asked for that.
    pub(crate) fn tell_origin(&self, unsolved: &mut Unsolved) {
        let Some(id) = unsolved.trouble.of_versions() else {
            return;
        };
        if let Some(source) = self.named_source(id) {
            let fact = format!("{id} comes from {source}");
            unsolved.facts.push(fact);
            return;
        }
        let Ok(Some(from)) = self.registry_of(id) else {
            return;
        };
        if self.registries.len() < 2 {
            return;
        }
        let why = match self.pinned(id) {
            Some(_) => "which vibe.toml asks for",
            None => "the first that has it",
        };
        let fact = format!(
            "{id} comes from the registry `{}`, {why}",
            escape(&from.name)
        );
        let others = self
            .registries
            .iter()
            .filter(|other| other.name != from.name);
        if let Trouble::NoVersion { constraint, .. } = &unsolved.trouble {
            let has = |other: &NamedRegistry| other.passed_over(id, constraint);
            unsolved.passed_over = others.filter_map(has).next();
        }
        unsolved.facts.push(fact);
    }

    /// The url of the registry that the project asks for by name.
    fn pinned_url(&self, id: &PackageId) -> Option<String> {
        let name = self.pinned(id)?;
        let mut registries = self.registries.iter();
        let registry = registries.find(|registry| registry.name == *name)?;
        Some(registry.url.clone())
    }

    /// Where `version` of `id` comes from.
    pub(crate) fn locate(
        &self,
        id: &PackageId,
        version: &Version,
    ) -> Result<Location, InstallError> {
        if let Some(path) = self.paths.get(id) {
            return Ok(Location {
                source: LockedSource::Path(path.path.clone()),
                origin: Origin::Path(path.directory.clone()),
            });
        }
        if let Some(requirement) = self.git.requirement(id) {
            return Ok(git_location(self.git.locate(id, version, &requirement)?));
        }
        let registry = self
            .registry_of(id)?
            .ok_or_else(|| InstallError::NotInRegistries {
                id: id.clone(),
                version: version.clone(),
            })?;
        registry.locate(id, version, &self.git)
    }

    /// The manifest of `version` of `id`, which says the id and version that its place says.
    pub(crate) fn manifest(
        &self,
        id: &PackageId,
        version: &Version,
    ) -> Result<Rc<Manifest>, InstallError> {
        if let Some(path) = self.paths.get(id) {
            return Ok(Rc::clone(&path.manifest));
        }
        let key = (id.clone(), version.clone());
        if let Some(known) = self.manifests.borrow().get(&key) {
            return Ok(Rc::clone(known));
        }
        let origin = self.locate(id, version)?.origin;
        let manifest = match &origin {
            Origin::Git(origin) => self.git.manifest(id, origin)?,
            Origin::Path(directory) | Origin::Registry { directory, .. } => {
                Rc::new(read_manifest(directory)?)
            }
        };
        check_published(&origin.path(), id, version, &manifest)?;
        self.add_published(id, &origin, &manifest)?;
        self.manifests
            .borrow_mut()
            .insert(key, Rc::clone(&manifest));
        Ok(manifest)
    }

    /// What the published package of the lock's entry requires from git by its own manifest;
    /// nothing where that cannot be read.
    pub(crate) fn published_repositories(
        &self,
        locked: &LockedPackage,
    ) -> BTreeMap<PackageId, WantedGit> {
        let Some(manifest) = self.locked_manifest(locked) else {
            return BTreeMap::new();
        };
        let requires = manifest.requires.iter();
        let wanted = requires.filter_map(|(id, dependency)| {
            let required = Required {
                manifest_path: Path::new(MANIFEST_NAME),
                id,
                dependency,
            };
            let requirement = git_requirement("", &required).ok().flatten()?;
            Some((id.clone(), requirement.wanted()))
        });
        wanted.collect()
    }

    /// The manifest of the lock's entry: from its slot or from the store, where either has the tree
    /// that the lock names, so that a project whose packages are here needs none of their sources.
    fn locked_manifest(&self, locked: &LockedPackage) -> Option<Rc<Manifest>> {
        let here = self.manifest_at_hand(locked).map(Rc::new);
        here.or_else(|| self.manifest(&locked.id, &locked.version).ok())
    }

    /// The manifest of the lock's entry from its slot or from the store. No source is asked.
    pub(crate) fn manifest_at_hand(&self, locked: &LockedPackage) -> Option<Manifest> {
        let placed = self.placed_manifest(locked);
        placed.or_else(|| self.stored_manifest(locked))
    }

    fn placed_manifest(&self, locked: &LockedPackage) -> Option<Manifest> {
        let slot = locked.slot();
        match read_record(&self.layout, &slot).ok()? {
            RecordOnDisk::Valid { record, .. } if Some(record.tree.id()) == locked.tree => {
                vouched_manifest(&self.layout, &slot, &record).ok()?
            }
            _ => None,
        }
    }

    fn stored_manifest(&self, locked: &LockedPackage) -> Option<Manifest> {
        let name = RelPath::new(MANIFEST_NAME).expect("the manifest's name is a path");
        let store = self.git.repositories.package_store()?;
        let bytes = store.peek(locked.tree?, &name, MANIFEST_BYTES)?;
        let parsed = parse_manifest(Path::new(MANIFEST_NAME), &bytes, Reading::Package);
        parsed.ok().map(|(manifest, _)| manifest)
    }

    /// The registries' urls, as the manifest states them.
    pub(crate) fn registry_urls(&self) -> Vec<String> {
        self.registries
            .iter()
            .map(|registry| registry.url.clone())
            .collect()
    }

    /// The path sources, as the lock check looks at them.
    pub(crate) fn local_packages(&self) -> BTreeMap<PackageId, LocalPackage> {
        self.paths
            .iter()
            .map(|(id, path)| {
                let local = LocalPackage {
                    version: path.version.clone(),
                    requires: self.wanted(&path.manifest.requires),
                    conflicts: conflicts(&path.manifest),
                };
                (id.clone(), local)
            })
            .collect()
    }

    /// The path sources.
    pub(crate) fn path_packages(&self) -> &BTreeMap<PackageId, PathPackage> {
        &self.paths
    }

    /// Whether a manifest takes a package from `path`, as the lock writes it.
    pub(crate) fn has_path(&self, path: &str) -> bool {
        self.paths.values().any(|package| package.path == path)
    }

    /// `requires` as the lock check looks at it.
    pub(crate) fn wanted(
        &self,
        requires: &BTreeMap<PackageId, Dependency>,
    ) -> BTreeMap<PackageId, Wanted> {
        requires
            .iter()
            .map(|(id, dependency)| {
                let constraint = constraint_of(dependency);
                let wanted = match (self.paths.get(id), self.git.requirement(id)) {
                    (Some(path), _) => Wanted::Path {
                        path: path.path.clone(),
                        constraint,
                    },
                    (None, Some(git)) => Wanted::Git(git.wanted()),
                    (None, None) => Wanted::Registry {
                        constraint: constraint.unwrap_or_else(Constraint::any),
                        registry: self.pinned_url(id),
                    },
                };
                (id.clone(), wanted)
            })
            .collect()
    }

    /// Asks the repositories of what `own` require, and path packages, several at a time.
    pub(crate) fn ask_ahead(&self, own: &[OwnRequirements]) -> Result<(), InstallError> {
        let local = self.paths.values().flat_map(|path| &path.manifest.requires);
        let own = own.iter().flat_map(|own| &own.requires);
        let published = own.chain(local).filter_map(|(id, dependency)| {
            let DependencySource::Registry { constraint, .. } = &dependency.source else {
                return None;
            };
            if self.overrides.contains_key(id) {
                return None;
            }
            let pinned = self.pinned(id);
            let mut registries = self.registries.iter();
            let registry = registries.find(|one| pinned.is_none_or(|name| *name == one.name))?;
            let is_git = matches!(registry.kind, RegistryKind::Git);
            let url = registry.repository(id).ok().flatten().filter(|_| is_git)?;
            Some((id.clone(), url, constraint.clone()))
        });
        self.git.ask_ahead(published.collect())
    }

    /// `requires` as the solver looks at it. A path source has one version, and so has a tag, a
    /// branch or a revision; a requirement without a constraint takes it even where it is a
    /// prerelease. Of an override, every requirement takes what the override does.
    pub(crate) fn constraints(
        &self,
        requires: &BTreeMap<PackageId, Dependency>,
    ) -> Result<BTreeMap<PackageId, Constraint>, InstallError> {
        let any = |id: &PackageId| -> Result<Constraint, InstallError> {
            Ok(match (self.paths.get(id), self.git.requirement(id)) {
                (Some(path), _) => Constraint::exact(&path.version),
                (None, Some(git)) => Constraint::exact(&self.git.single(id, &git)?.0),
                (None, None) => Constraint::any(),
            })
        };
        requires
            .iter()
            .map(|(id, dependency)| {
                let dependency = self.overrides.get(id).unwrap_or(dependency);
                let constraint = match constraint_of(dependency) {
                    Some(constraint) => constraint,
                    None => any(id)?,
                };
                Ok((id.clone(), constraint))
            })
            .collect()
    }

    /// Ids that a user may have meant.
    pub(crate) fn known_packages(&self) -> Vec<PackageId> {
        self.registries
            .iter()
            .flat_map(|registry| match &registry.kind {
                RegistryKind::Directory(directory) => directory.packages(),
                RegistryKind::Git => Vec::new(),
            })
            .chain(self.git.ids())
            .chain(self.paths.keys().cloned())
            .collect()
    }
}

impl Index for Sources<'_> {
    type Error = InstallError;

    fn versions(&self, id: &PackageId) -> Result<Vec<Version>, InstallError> {
        if let Some(path) = self.paths.get(id) {
            return Ok(vec![path.version.clone()]);
        }
        if let Some(requirement) = self.git.requirement(id) {
            return self.git.versions(id, &requirement);
        }
        match self.registry_of(id)? {
            Some(registry) => registry.versions(id, &self.git),
            None => Ok(Vec::new()),
        }
    }

    fn requirements(
        &self,
        id: &PackageId,
        version: &Version,
    ) -> Result<Requirements, InstallError> {
        let manifest = self.manifest(id, version)?;
        Ok(Requirements {
            requires: self.constraints(&manifest.requires)?,
            conflicts: conflicts(&manifest),
        })
    }
}

/// The overrides of the root's `manifest`, each as a requirement.
fn overrides_of(manifest: &Manifest) -> BTreeMap<PackageId, Dependency> {
    let overrides = manifest.overrides.iter();
    overrides
        .map(|found| {
            let dependency = Dependency::new(found.source.clone(), found.position);
            (found.package.clone(), dependency)
        })
        .collect()
}

/// A published manifest says the id and version of its place, and requires no path.
fn check_published(
    place: &Path,
    id: &PackageId,
    version: &Version,
    manifest: &Manifest,
) -> Result<(), InstallError> {
    let Some(package) = &manifest.package else {
        return Err(InstallError::NotAPackage {
            id: id.clone(),
            path: place.to_path_buf(),
        });
    };
    if package.id != *id || package.version != *version {
        return Err(InstallError::OtherPackage {
            path: place.to_path_buf(),
            expected: format!("{id} {version}"),
            found: format!("{} {}", package.id, package.version),
        });
    }
    for (dependency_id, dependency) in &manifest.requires {
        if matches!(dependency.source, DependencySource::Path { .. }) {
            return Err(InstallError::PublishedPath {
                id: id.clone(),
                version: version.clone(),
                dependency: dependency_id.clone(),
            });
        }
        if matches!(dependency.source, DependencySource::Variable { .. }) {
            return Err(WorkspaceError::PublishedVariable {
                id: id.clone(),
                version: version.clone(),
                dependency: dependency_id.clone(),
            }
            .into());
        }
        refuse_unsupported(&Required {
            manifest_path: &place.join(MANIFEST_NAME),
            id: dependency_id,
            dependency,
        })?;
    }
    Ok(())
}
