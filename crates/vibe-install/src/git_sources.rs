//! Packages in git repositories: those that manifests name by URL, and those of git registries.
//!
//! What the lock holds is answered from the lock, so that a run that only adds a package asks no
//! server about the others; only where that gives no solution is everything asked.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use vibe_core::formats::lock::{LockedPackage, LockedSource};
use vibe_core::formats::manifest::{GitReference, MANIFEST_NAME, Manifest, Reading};
use vibe_core::limits::MANIFEST_BYTES;
use vibe_core::version::parse_version;
use vibe_core::{Constraint, PackageId, RelPath, RemoteUrl, Version};
use vibe_git::{GitError, Refs, Wanted};
use vibe_resolver::lock_check::WantedGit;

use crate::error::InstallError;
use crate::manifests::parse_manifest;
use crate::repositories::{Repositories, reference_text};
use crate::target::GitOrigin;

/// A package that a manifest takes from a repository.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct GitRequirement {
    /// The repository, as the root sees it.
    pub url: RemoteUrl,
    /// The reference.
    pub reference: GitReference,
    /// The directory in the repository.
    pub subdir: Option<RelPath>,
}

/// The repositories, and what is taken from them.
pub(crate) struct GitSources<'a> {
    pub(crate) repositories: &'a Repositories<'a>,
    required: RefCell<BTreeMap<PackageId, GitRequirement>>,
    held: RefCell<BTreeMap<PackageId, LockedPackage>>,
    /// Answer with held versions alone.
    only_held: Cell<bool>,
    single: RefCell<BTreeMap<PackageId, (Version, String)>>,
    manifests: RefCell<BTreeMap<(PackageId, String), Rc<Manifest>>>,
}

impl GitRequirement {
    /// The requirement as the lock check looks at it.
    pub(crate) fn wanted(&self) -> WantedGit {
        WantedGit {
            url: self.url.clone(),
            reference: reference_text(&self.reference),
            subdir: self.subdir.as_ref().map(RelPath::to_string),
            constraint: match &self.reference {
                GitReference::Range(constraint) => Some(constraint.clone()),
                _ => None,
            },
        }
    }

    /// The requirement, for a message.
    pub(crate) fn shown(&self) -> String {
        let reference = reference_text(&self.reference);
        let at = reference.map_or_else(String::new, |reference| format!(" at {reference}"));
        let subdir = self.subdir.as_ref();
        let within = subdir.map_or_else(String::new, |subdir| format!(" in {subdir}"));
        format!("git {}{at}{within}", self.url)
    }

    fn origin(&self, commit: String) -> GitOrigin {
        GitOrigin {
            url: self.url.clone(),
            reference: reference_text(&self.reference),
            subdir: self.subdir.as_ref().map(RelPath::to_string),
            commit,
        }
    }

    /// Whether `locked` is what this asks for, as far as the lock alone can say.
    fn is_locked_by(&self, locked: &LockedPackage) -> bool {
        let is_here = matches!(&locked.source, LockedSource::Git(url) if *url == self.url);
        let subdir = self.subdir.as_ref().map(RelPath::as_str);
        is_here
            && locked.subdir.as_deref() == subdir
            && locked.reference == reference_text(&self.reference)
    }
}

/// The tag of `version`.
fn tag_of(version: &Version) -> String {
    format!("v{version}")
}

/// The versions that the tags of a repository name, ascending.
pub(crate) fn tagged_versions(refs: &Refs) -> Vec<Version> {
    let names = refs.tags.keys().filter_map(|tag| tag.strip_prefix('v'));
    let mut versions: Vec<Version> = names.filter_map(|text| parse_version(text).ok()).collect();
    versions.sort();
    versions
}

impl<'a> GitSources<'a> {
    /// No package yet.
    pub(crate) fn new(repositories: &'a Repositories<'a>) -> Self {
        Self {
            repositories,
            required: RefCell::default(),
            held: RefCell::default(),
            only_held: Cell::new(false),
            single: RefCell::default(),
            manifests: RefCell::default(),
        }
    }

    /// Packages that stay at their locked commit as long as that gives a solution.
    pub(crate) fn hold(&self, held: BTreeMap<PackageId, LockedPackage>) {
        *self.held.borrow_mut() = held;
    }

    /// Whether to answer with held versions alone where there are any.
    pub(crate) fn answer_only_held(&self, only: bool) {
        self.only_held.set(only);
    }

    /// Whether held versions alone are answered.
    pub(crate) fn answers_only_held(&self) -> bool {
        self.only_held.get()
    }

    /// Takes up what a manifest requires.
    pub(crate) fn require(
        &self,
        id: &PackageId,
        requirement: GitRequirement,
    ) -> Result<(), InstallError> {
        let known = self.requirement(id);
        match known {
            Some(known) if known != requirement => Err(InstallError::TwoSources {
                id: id.clone(),
                first: known.shown(),
                second: requirement.shown(),
            }),
            Some(_) => Ok(()),
            None => {
                self.required.borrow_mut().insert(id.clone(), requirement);
                Ok(())
            }
        }
    }

    /// What manifests require of `id` from git.
    pub(crate) fn requirement(&self, id: &PackageId) -> Option<GitRequirement> {
        self.required.borrow().get(id).cloned()
    }

    /// The packages that manifests take from repositories.
    pub(crate) fn ids(&self) -> Vec<PackageId> {
        self.required.borrow().keys().cloned().collect()
    }

    /// Asks the repositories that a resolution has to ask anyway, several at a time, so that it does
    /// not wait for one server after the other: those that manifests name, and `published`, those of
    /// packages of a git registry, each with the versions that are required.
    ///
    /// # Errors
    /// One that a manifest names does not give what is asked of it. What a registry does not have,
    /// the resolution finds out.
    pub(crate) fn ask_ahead(
        &self,
        published: Vec<(PackageId, RemoteUrl, Constraint)>,
    ) -> Result<(), InstallError> {
        let held = self.held.borrow();
        let is_free = |id: &PackageId, is_locked: &dyn Fn(&LockedPackage) -> bool| {
            !held.get(id).is_some_and(is_locked)
        };
        let required = self.required.borrow();
        let named = required
            .iter()
            .filter(|(id, requirement)| is_free(id, &|locked| requirement.is_locked_by(locked)))
            .map(|(id, requirement)| Question {
                id: id.clone(),
                url: requirement.url.clone(),
                reference: requirement.reference.clone(),
                is_named: true,
            });
        let published = published
            .into_iter()
            .filter(|(id, url, _)| is_free(id, &|locked| is_published_at(locked, url)))
            .map(|(id, url, constraint)| Question {
                id,
                url,
                reference: GitReference::Range(constraint),
                is_named: false,
            });
        // What one repository was asked answers the next question about it.
        let mut by_repository: BTreeMap<RemoteUrl, Vec<Question>> = BTreeMap::new();
        for question in named.chain(published) {
            let questions = by_repository.entry(question.url.clone()).or_default();
            questions.push(question);
        }
        let by_repository: Vec<Vec<Question>> = by_repository.into_values().collect();
        self.repositories
            .each(&by_repository, |repositories, questions| {
                let mut questions = questions.iter();
                questions.try_for_each(|question| match question.ask(repositories) {
                    Err(error) if question.is_named => Err(error),
                    _ => Ok(()),
                })
            })
    }

    /// The versions of `id`, which manifests take from a repository.
    pub(crate) fn versions(
        &self,
        id: &PackageId,
        requirement: &GitRequirement,
    ) -> Result<Vec<Version>, InstallError> {
        let GitReference::Range(_) = &requirement.reference else {
            return Ok(vec![self.single(id, requirement)?.0]);
        };
        if let Some(held) = self.held_alone(id, |held| requirement.is_locked_by(held)) {
            return Ok(vec![held.version]);
        }
        let refs = self.repositories.refs(Some(id), &requirement.url)?;
        let versions = tagged_versions(&refs);
        match versions.is_empty() {
            true => Err(InstallError::NoVersionTags {
                id: id.clone(),
                repository: requirement.url.to_string(),
            }),
            false => Ok(versions),
        }
    }

    /// The version of `id`, and its commit, where the requirement leaves no choice.
    pub(crate) fn single(
        &self,
        id: &PackageId,
        requirement: &GitRequirement,
    ) -> Result<(Version, String), InstallError> {
        if let Some(known) = self.single.borrow().get(id) {
            return Ok(known.clone());
        }
        let held = self.held.borrow().get(id).cloned();
        let held = held.filter(|held| requirement.is_locked_by(held));
        let found = match held.and_then(|held| Some((held.version, held.commit?))) {
            Some(held) => held,
            None => {
                let wanted = wanted_of(&requirement.reference);
                let commit = self
                    .repositories
                    .commit(Some(id), &requirement.url, &wanted)?;
                let origin = requirement.origin(commit.id.to_string());
                let manifest = self.manifest(id, &origin)?;
                (version_of(&manifest), origin.commit)
            }
        };
        self.single.borrow_mut().insert(id.clone(), found.clone());
        Ok(found)
    }

    /// Where `version` of `id` is, which manifests take from a repository.
    pub(crate) fn locate(
        &self,
        id: &PackageId,
        version: &Version,
        requirement: &GitRequirement,
    ) -> Result<GitOrigin, InstallError> {
        if let GitReference::Range(_) = &requirement.reference {
            let is_held = |held: &LockedPackage| requirement.is_locked_by(held);
            let commit = self.tagged(id, version, &requirement.url, &is_held)?;
            return Ok(requirement.origin(commit));
        }
        Ok(requirement.origin(self.single(id, requirement)?.1))
    }

    /// The versions of `id` in the git registry whose repository of it is `url`; none where there
    /// is no such repository.
    pub(crate) fn published_versions(
        &self,
        id: &PackageId,
        url: &RemoteUrl,
    ) -> Result<Vec<Version>, InstallError> {
        if let Some(held) = self.held_alone(id, |held| is_published_at(held, url)) {
            return Ok(vec![held.version]);
        }
        match self.repositories.refs(Some(id), url) {
            Ok(refs) => Ok(tagged_versions(&refs)),
            Err(InstallError::Git { source, .. })
                if matches!(
                    *source,
                    GitError::NotARepository { .. } | GitError::NoSuchRepository { .. }
                ) =>
            {
                Ok(Vec::new())
            }
            Err(error) => Err(error),
        }
    }

    /// Where `version` of `id` is in the git registry whose repository of it is `url`.
    pub(crate) fn locate_published(
        &self,
        id: &PackageId,
        version: &Version,
        url: RemoteUrl,
    ) -> Result<GitOrigin, InstallError> {
        let commit = self.tagged(id, version, &url, &|held| is_published_at(held, &url))?;
        Ok(GitOrigin {
            reference: Some(format!("tag:{}", tag_of(version))),
            subdir: None,
            commit,
            url,
        })
    }

    /// The commit of the tag of `version`: the locked one where that is held.
    fn tagged(
        &self,
        id: &PackageId,
        version: &Version,
        url: &RemoteUrl,
        is_locked: &dyn Fn(&LockedPackage) -> bool,
    ) -> Result<String, InstallError> {
        let held = self.held.borrow().get(id).cloned();
        let held = held.filter(|held| held.version == *version && is_locked(held));
        if let Some(commit) = held.and_then(|held| held.commit) {
            return Ok(commit);
        }
        let tag = tag_of(version);
        let commit = self
            .repositories
            .commit(Some(id), url, &Wanted::Tag(&tag))?;
        Ok(commit.id.to_string())
    }

    fn held_alone(
        &self,
        id: &PackageId,
        is_locked: impl Fn(&LockedPackage) -> bool,
    ) -> Option<LockedPackage> {
        let held = self.held.borrow().get(id).cloned();
        held.filter(|held| self.only_held.get() && is_locked(held))
    }

    /// The manifest of `id` at `origin`.
    pub(crate) fn manifest(
        &self,
        id: &PackageId,
        origin: &GitOrigin,
    ) -> Result<Rc<Manifest>, InstallError> {
        let key = (id.clone(), origin.commit.clone());
        if let Some(known) = self.manifests.borrow().get(&key) {
            return Ok(Rc::clone(known));
        }
        let manifest = Rc::new(read_manifest(self.repositories, id, origin)?);
        self.manifests
            .borrow_mut()
            .insert(key, Rc::clone(&manifest));
        Ok(manifest)
    }
}

/// What a repository will be asked.
struct Question {
    id: PackageId,
    url: RemoteUrl,
    reference: GitReference,
    /// A manifest names the repository.
    is_named: bool,
}

impl Question {
    fn ask(&self, repositories: &Repositories<'_>) -> Result<(), InstallError> {
        let tag;
        let wanted = match &self.reference {
            GitReference::Range(constraint) => {
                let refs = repositories.refs(Some(&self.id), &self.url)?;
                let Some(newest) = newest_tag(&refs, constraint) else {
                    return Ok(());
                };
                tag = newest;
                Wanted::Tag(&tag)
            }
            reference => wanted_of(reference),
        };
        repositories.commit(Some(&self.id), &self.url, &wanted)?;
        Ok(())
    }
}

/// The tag of the newest version that `constraint` takes.
fn newest_tag(refs: &Refs, constraint: &Constraint) -> Option<String> {
    let versions = tagged_versions(refs);
    let newest = versions.iter().rev().find(|v| constraint.matches(v));
    newest.map(tag_of)
}

/// What `reference`, which is no range, asks of a repository.
fn wanted_of(reference: &GitReference) -> Wanted<'_> {
    match reference {
        GitReference::Tag(tag) => Wanted::Tag(tag),
        GitReference::Branch(branch) => Wanted::Branch(branch),
        GitReference::Rev(revision) => Wanted::Revision(revision),
        GitReference::Default | GitReference::Range(_) => Wanted::Default,
    }
}

/// Whether the lock's entry is a version of the repository `url` of a git registry.
fn is_published_at(held: &LockedPackage, url: &RemoteUrl) -> bool {
    let is_here = matches!(&held.source, LockedSource::Git(locked) if locked == url);
    let tag = format!("tag:{}", tag_of(&held.version));
    is_here && held.subdir.is_none() && held.reference.as_deref() == Some(&*tag)
}

/// The package at the root of the repository `url` at `reference`.
pub(crate) fn id_in_repository(
    repositories: &Repositories<'_>,
    url: &RemoteUrl,
    reference: &GitReference,
) -> Result<PackageId, InstallError> {
    let tag;
    let wanted = match reference {
        GitReference::Range(constraint) => {
            let refs = repositories.refs(None, url)?;
            tag = newest_tag(&refs, constraint).unwrap_or_default();
            Wanted::Tag(&tag)
        }
        reference => wanted_of(reference),
    };
    let (commit, bytes) = repositories.file(None, url, &wanted, MANIFEST_NAME, MANIFEST_BYTES)?;
    let absent = || InstallError::SpecIsNoPackage {
        repository: url.to_string(),
        commit: commit.to_string(),
    };
    let bytes = bytes.ok_or_else(absent)?;
    let shown = PathBuf::from(format!("{url}:{MANIFEST_NAME}"));
    let (manifest, _) = parse_manifest(&shown, &bytes, Reading::Package)?;
    manifest.package_id().cloned().ok_or_else(absent)
}

/// The manifest at `origin`, which is the one of `id`.
pub(crate) fn read_manifest(
    repositories: &Repositories<'_>,
    id: &PackageId,
    origin: &GitOrigin,
) -> Result<Manifest, InstallError> {
    let path = match &origin.subdir {
        Some(subdir) => format!("{subdir}/{MANIFEST_NAME}"),
        None => MANIFEST_NAME.to_owned(),
    };
    let wanted = Wanted::Commit(origin.commit_id());
    let (_, bytes) = repositories.file(Some(id), &origin.url, &wanted, &path, MANIFEST_BYTES)?;
    let bytes = bytes.ok_or_else(|| InstallError::NoPackageInRepository {
        id: id.clone(),
        repository: origin.url.to_string(),
        path: path.clone(),
        commit: origin.commit.clone(),
    })?;
    let shown = PathBuf::from(format!("{}:{path}", origin.url));
    let (manifest, _) = parse_manifest(&shown, &bytes, Reading::Package)?;
    check_id(id, &shown, &manifest)?;
    Ok(manifest)
}

fn check_id(id: &PackageId, shown: &Path, manifest: &Manifest) -> Result<(), InstallError> {
    let found = manifest.package_id();
    match found {
        Some(found) if found == id => Ok(()),
        Some(found) => Err(InstallError::OtherPackage {
            path: shown.to_path_buf(),
            expected: id.to_string(),
            found: found.to_string(),
        }),
        None => Err(InstallError::NotAPackage {
            id: id.clone(),
            path: shown.to_path_buf(),
        }),
    }
}

fn version_of(manifest: &Manifest) -> Version {
    let package = manifest.package.as_ref();
    let package = package.expect("a manifest whose id was checked has a package");
    package.version.clone()
}
