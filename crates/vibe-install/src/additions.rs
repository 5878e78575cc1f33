//! What a command line adds to the requirements, and how the manifest says it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use vibe_core::formats::diagnostic::Position;
use vibe_core::formats::manifest::{Dependency, DependencySource, GitReference, Manifest, Reading};
use vibe_core::formats::manifest_edit::{RequirementEdit, new_project, set_requirement};
use vibe_core::git_url::GitUrlError;
use vibe_core::specifier::Specifier;
use vibe_core::{Constraint, PackageId, RemoteUrl};
use vibe_fs::canonical_directory;

use crate::error::InstallError;
use crate::git_sources::{id_in_repository, tagged_versions};
use crate::own_manifest::OwnRequirements;
use crate::planning::Planned;
use crate::project::Project;
use crate::repositories::{Repositories, reference_text};
use crate::settings::Context;

/// What a command line adds to the requirements.
#[derive(Debug, Clone, Default)]
pub struct Additions {
    /// Packages.
    pub specs: Vec<Specifier>,
    /// Packages of repositories.
    pub git: Vec<GitAddition>,
    /// Write `=` constraints.
    pub exact: bool,
}

impl Additions {
    /// Whether nothing is added.
    pub fn is_empty(&self) -> bool {
        self.specs.is_empty() && self.git.is_empty()
    }
}

/// A package of a repository that is to be required.
#[derive(Debug, Clone, PartialEq)]
pub struct GitAddition {
    /// The repository; a local path is relative to the working directory.
    pub url: RemoteUrl,
    /// What is required of it; `None`: the newest version that it tags, else its default branch.
    pub reference: Option<GitReference>,
}

/// What is being added: the requirements with the command line's, and how each is written.
pub(crate) struct Added {
    /// All requirements of the project.
    pub own: Vec<OwnRequirements>,
    /// Those among them to which something is added.
    nearest: usize,
    /// The packages whose requirement is written, with the edit where it is known before solving.
    pub edits: BTreeMap<PackageId, Option<RequirementEdit>>,
    /// The packages that do not keep their locked version, since another one is asked for.
    pub released: Vec<PackageId>,
    /// What the command line says of each package that it names.
    asked: BTreeMap<PackageId, String>,
}

impl Added {
    /// The requirements to which something is added.
    fn requires(&mut self) -> &mut BTreeMap<PackageId, Dependency> {
        &mut self.own[self.nearest].requires
    }

    /// Notes that `text` of the command line asks for `id`.
    ///
    /// # Errors
    /// Something else there asks for it too, so that one of the two would not count.
    fn ask(&mut self, id: &PackageId, text: String) -> Result<(), InstallError> {
        let first = self.asked.entry(id.clone()).or_insert_with(|| text.clone());
        if *first == text {
            return Ok(());
        }
        Err(InstallError::AskedTwice {
            id: id.clone(),
            first: first.clone(),
            second: text,
        })
    }
}

/// A repository of the command line.
struct Repository {
    /// As the manifest to which it is added writes it.
    stated: RemoteUrl,
    /// As the root sees it.
    url: RemoteUrl,
}

/// The project's requirements with those of the command line, which are added to the manifest
/// nearest to where the command was started.
pub(crate) fn added(
    context: &Context<'_>,
    project: &Project,
    repositories: &Repositories<'_>,
    request: &Additions,
) -> Result<Added, InstallError> {
    let mut added = Added {
        own: project.requirements(),
        nearest: project.nearest_index(),
        edits: BTreeMap::new(),
        released: Vec::new(),
        asked: BTreeMap::new(),
    };
    for spec in &request.specs {
        match spec {
            Specifier::Git { url, reference } => {
                let repository = repository(context, project, url)?;
                let reference = match reference {
                    Some(name) => named_reference(repositories, &repository.url, name)?,
                    None => newest_reference(repositories, &repository.url)?,
                };
                add_git(&mut added, repositories, repository, reference)?;
            }
            Specifier::Package { id, constraint } => {
                if let Some(constraint) = constraint {
                    added.ask(id, format!("{id}@{constraint}"))?;
                }
                add_package(&mut added, id, constraint.as_ref(), request.exact);
            }
            Specifier::Path(directory) => add_path(&mut added, context, project, directory)?,
        }
    }
    for addition in &request.git {
        let repository = repository(context, project, &addition.url)?;
        let reference = match &addition.reference {
            Some(reference) => reference.clone(),
            None => newest_reference(repositories, &repository.url)?,
        };
        add_git(&mut added, repositories, repository, reference)?;
    }
    Ok(added)
}

/// The repository `url` of the command line, where a local path is relative to the working directory.
fn repository(
    context: &Context<'_>,
    project: &Project,
    url: &RemoteUrl,
) -> Result<Repository, InstallError> {
    let path = Path::new(url.path());
    if !url.is_local() || path.is_absolute() {
        return Ok(Repository {
            stated: url.clone(),
            url: url.clone(),
        });
    }
    let directory = named_directory(context, path)?;
    let seen_from = |from: &Path| seen_from(from, &directory).parse().map_err(url_error);
    Ok(Repository {
        stated: seen_from(&project.nearest().directory(&project.root))?,
        url: seen_from(&project.root)?,
    })
}

fn url_error(source: GitUrlError) -> InstallError {
    InstallError::GitUrl { id: None, source }
}

/// The tag, branch or revision that `name` is in the repository.
fn named_reference(
    repositories: &Repositories<'_>,
    url: &RemoteUrl,
    name: &str,
) -> Result<GitReference, InstallError> {
    let refs = repositories.refs(None, url)?;
    let name = name.to_owned();
    Ok(if refs.tags.contains_key(&name) {
        GitReference::Tag(name)
    } else if refs.branches.contains_key(&name) {
        GitReference::Branch(name)
    } else {
        GitReference::Rev(name)
    })
}

/// What is required of a repository of which nothing is said: the newest version that it tags, and
/// where there is none its default branch.
fn newest_reference(
    repositories: &Repositories<'_>,
    url: &RemoteUrl,
) -> Result<GitReference, InstallError> {
    let refs = repositories.refs(None, url)?;
    let versions = tagged_versions(&refs);
    let released = versions.iter().filter(|version| version.pre.is_empty());
    if let Some(newest) = released.max().or(versions.last()) {
        return Ok(GitReference::Range(Constraint::caret(newest)));
    }
    let branch = refs.default_branch.clone();
    branch
        .map(GitReference::Branch)
        .ok_or_else(|| InstallError::EmptyRepository {
            repository: url.to_string(),
        })
}

/// Requires the package whose manifest is at `reference` of the repository.
fn add_git(
    added: &mut Added,
    repositories: &Repositories<'_>,
    repository: Repository,
    reference: GitReference,
) -> Result<(), InstallError> {
    let id = id_in_repository(repositories, &repository.url, &reference)?;
    let url = repository.stated;
    let text = match reference_text(&reference) {
        Some(reference) => format!("{url} at {reference}"),
        None => url.to_string(),
    };
    added.ask(&id, text)?;
    let source = DependencySource::Git {
        url: url.clone(),
        reference: reference.clone(),
        subdir: None,
    };
    let requires = added.requires();
    if requires.get(&id).map(|known| &known.source) == Some(&source) {
        return Ok(());
    }
    requires.insert(id.clone(), new_dependency(source));
    added.released.push(id.clone());
    let edit = RequirementEdit::Git { url, reference };
    added.edits.insert(id, Some(edit));
    Ok(())
}

/// What is required already stays as it is unless the command line says otherwise: with another
/// constraint, or with `exact`, which pins the version that is chosen.
fn add_package(added: &mut Added, id: &PackageId, constraint: Option<&Constraint>, exact: bool) {
    let known = added.requires().contains_key(id);
    if constraint.is_none() && known {
        if exact {
            added.edits.insert(id.clone(), None);
        }
        return;
    }
    let edit = constraint.filter(|_| !exact).cloned();
    let constraint = constraint.cloned().unwrap_or_else(Constraint::any);
    let dependency = with_constraint(added.requires().remove(id), constraint);
    added.requires().insert(id.clone(), dependency);
    let edit = edit.map(RequirementEdit::Constraint);
    added.edits.insert(id.clone(), edit);
    added.released.push(id.clone());
}

/// The requirement `known` with another constraint, as the edit of the manifest leaves it: from the
/// registry or the path that it names.
fn with_constraint(known: Option<Dependency>, constraint: Constraint) -> Dependency {
    let source = match known.as_ref().map(|known| &known.source) {
        Some(DependencySource::Git {
            url,
            reference: GitReference::Range(_),
            subdir,
        }) => DependencySource::Git {
            url: url.clone(),
            reference: GitReference::Range(constraint),
            subdir: subdir.clone(),
        },
        Some(DependencySource::Path { path, .. }) => DependencySource::Path {
            path: path.clone(),
            constraint: Some(constraint),
        },
        Some(DependencySource::Registry { registry, .. }) => DependencySource::Registry {
            constraint,
            registry: registry.clone(),
        },
        _ => DependencySource::Registry {
            constraint,
            registry: None,
        },
    };
    match known {
        Some(known) => Dependency { source, ..known },
        None => new_dependency(source),
    }
}

fn add_path(
    added: &mut Added,
    context: &Context<'_>,
    project: &Project,
    directory: &str,
) -> Result<(), InstallError> {
    let canonical = named_directory(context, Path::new(directory))?;
    let manifest: Manifest = crate::manifests::read_manifest(&canonical)?;
    let Some(package) = manifest.package else {
        return Err(InstallError::NotAPackageDirectory { path: canonical });
    };
    let path = match Path::new(directory).is_absolute() {
        true => directory.to_owned(),
        false => seen_from(&project.nearest().directory(&project.root), &canonical),
    };
    added.ask(&package.id, format!("path:{path}"))?;
    let source = DependencySource::Path {
        path: path.clone(),
        constraint: None,
    };
    let requires = added.requires();
    if requires.get(&package.id).map(|known| &known.source) == Some(&source) {
        return Ok(());
    }
    requires.insert(package.id.clone(), new_dependency(source));
    added.released.push(package.id.clone());
    added
        .edits
        .insert(package.id, Some(RequirementEdit::Path(path)));
    Ok(())
}

/// The directory `path` of the command line, canonical.
fn named_directory(context: &Context<'_>, path: &Path) -> Result<PathBuf, InstallError> {
    let path = context.settings.directory.join(path);
    canonical_directory(&path).map_err(|source| InstallError::NoDirectory { path, source })
}

fn new_dependency(source: DependencySource) -> Dependency {
    Dependency::new(source, Position { line: 1, column: 1 })
}

/// `target` as seen from the directory `from`, both canonical, with forward slashes.
fn seen_from(from: &Path, target: &Path) -> String {
    let common = from
        .components()
        .zip(target.components())
        .take_while(|(a, b)| a == b)
        .count();
    let ups = from.components().count() - common;
    let names = target.components().skip(common);
    let parts: Vec<String> = std::iter::repeat_n("..".to_owned(), ups)
        .chain(names.map(|name| name.as_os_str().to_string_lossy().into_owned()))
        .collect();
    match common {
        // Another drive: there is no way from one to the other.
        0 => target.to_string_lossy().into_owned(),
        _ if parts.is_empty() => ".".to_owned(),
        _ => parts.join("/"),
    }
}

/// The new text of the manifest nearest to where the command was started; `None` where nothing is
/// added.
///
/// # Errors
/// What is added cannot be written, or could not be read again.
pub(crate) fn edited_manifest(
    project: &Project,
    added: &Added,
    planned: &Planned,
    request: &Additions,
) -> Result<Option<String>, InstallError> {
    let own = project.nearest();
    let started = own.text.is_none();
    let before = own
        .text
        .clone()
        .unwrap_or_else(|| new_project(project.name()));
    let mut text = before.clone();
    for (id, edit) in &added.edits {
        let edit = match edit {
            Some(edit) => edit.clone(),
            None => {
                let version = &planned
                    .lock
                    .get(id)
                    .expect("what is added was resolved")
                    .version;
                RequirementEdit::Constraint(match request.exact {
                    true => Constraint::exact(version),
                    false => Constraint::caret(version),
                })
            }
        };
        text = set_requirement(&text, id, &edit).map_err(|diagnostic| InstallError::Manifest {
            path: own.path.under(&project.root),
            diagnostic: Box::new(diagnostic),
        })?;
        // A name of a branch or of a directory may be one that no manifest takes.
        Manifest::parse(&text, Reading::Own).map_err(|diagnostic| InstallError::Unwritable {
            id: id.clone(),
            reason: diagnostic.message,
        })?;
    }
    Ok((started || text != before).then_some(text))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_written_as_the_manifest_sees_it() {
        for (from, target, expected) in [
            ("/a/b", "/a/b", "."),
            ("/a/b", "/a/b/c/d", "c/d"),
            ("/a/b", "/a/c", "../c"),
            ("/a/b", "/x", "../../x"),
        ] {
            assert_eq!(seen_from(Path::new(from), Path::new(target)), expected);
        }
    }
}
