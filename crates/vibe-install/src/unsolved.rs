//! Why the requirements have no solution, for whoever tells the user: what is said, and what is
//! needed to say what helps.

use vibe_core::formats::manifest::MANIFEST_NAME;
use vibe_core::{Constraint, PackageId, Version};
use vibe_resolver::{Chain, ResolveError};

/// Why there is no solution.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("{headline}")]
pub struct Unsolved {
    /// What cannot be had.
    pub headline: String,
    /// Who requires what, and which versions there are; lines, the farther from the project the
    /// further in.
    pub facts: Vec<String>,
    /// What kind of trouble it is.
    pub trouble: Trouble,
    /// A registry that has the package too, and does not count.
    pub passed_over: Option<PassedOver>,
}

/// A registry that has what is asked for, behind the one that the package comes from.
#[derive(Debug, Clone, PartialEq)]
pub struct PassedOver {
    /// Its name.
    pub registry: String,
    /// The newest version there that satisfies the requirement.
    pub version: Version,
}

/// What keeps the requirements from being satisfied.
#[derive(Debug, Clone, PartialEq)]
pub enum Trouble {
    /// No source knows the package.
    Unknown {
        /// The package.
        package: PackageId,
    },
    /// No version fits one requirement, whatever else is chosen.
    NoVersion {
        /// The package.
        package: PackageId,
        /// The requirement.
        constraint: Constraint,
        /// Who requires it so; absent: the project itself.
        required_by: Option<(PackageId, Version)>,
        /// The manifest of the project that leads there, relative to the root.
        manifest: String,
        /// Its highest version that is no prerelease.
        newest: Option<Version>,
        /// Its highest prerelease.
        prerelease: Option<Version>,
    },
    /// Requirements exclude each other.
    Conflict {
        /// The package of which they speak.
        package: PackageId,
        /// The project's own requirements that lead there, each once.
        asked: Vec<Asked>,
    },
}

/// A requirement of one of the project's own manifests.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The manifest, relative to the root.
    pub manifest: String,
    /// The package.
    pub package: PackageId,
    /// Its versions.
    pub constraint: Constraint,
}

impl Trouble {
    /// The package of which there is a version, and none that fits.
    pub(crate) fn of_versions(&self) -> Option<&PackageId> {
        match self {
            Trouble::Unknown { .. } => None,
            Trouble::NoVersion { package, .. } | Trouble::Conflict { package, .. } => Some(package),
        }
    }
}

impl Unsolved {
    /// What is told of `error`; gives it back if there it is the sources that failed.
    pub(crate) fn of<E: std::error::Error>(error: ResolveError<E>) -> Result<Self, E> {
        let text = error.to_string();
        let trouble = match error {
            ResolveError::Index(error) => return Err(error),
            ResolveError::Unknown { chain } => Trouble::Unknown {
                package: chain.package,
            },
            ResolveError::NoVersion { chain, available } => no_version(*chain, &available),
            ResolveError::Conflict(conflict) => Trouble::Conflict {
                asked: asked(conflict.requirers.iter().chain(&conflict.refusers)),
                package: conflict.package,
            },
        };
        let mut lines = text.lines().map(str::to_owned);
        let headline = lines.next().unwrap_or_default();
        // The facts stand under the headline, so their first level needs no indent of its own.
        let facts = lines.map(|line| line.strip_prefix("  ").unwrap_or(&line).to_owned());
        Ok(Self {
            headline,
            facts: facts.collect(),
            trouble,
            passed_over: None,
        })
    }
}

fn no_version(mut chain: Chain, available: &[Version]) -> Trouble {
    let highest = |prerelease: bool| {
        let mut versions = available.iter().rev();
        let found = versions.find(|version| version.pre.is_empty() != prerelease);
        found.cloned()
    };
    Trouble::NoVersion {
        manifest: manifest_of(&chain),
        required_by: chain.steps.pop().map(|step| (step.package, step.version)),
        package: chain.package,
        constraint: chain.constraint,
        newest: highest(false),
        prerelease: highest(true),
    }
}

fn asked<'a>(chains: impl Iterator<Item = &'a Chain>) -> Vec<Asked> {
    let mut asked: Vec<Asked> = Vec::new();
    for chain in chains {
        let (package, constraint) = chain.asked();
        let new = Asked {
            manifest: manifest_of(chain),
            package: package.clone(),
            constraint: constraint.clone(),
        };
        if !asked.contains(&new) {
            asked.push(new);
        }
    }
    asked
}

/// The manifest that `chain` begins with, relative to the root.
fn manifest_of(chain: &Chain) -> String {
    match &chain.member {
        Some(member) => format!("{member}/{MANIFEST_NAME}"),
        None => MANIFEST_NAME.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::error::InstallError;
    use vibe_resolver::{Conflict, Step};

    fn id(text: &str) -> PackageId {
        text.parse().unwrap()
    }

    fn version(text: &str) -> Version {
        text.parse().unwrap()
    }

    fn chain(steps: &[(&str, &str)], package: &str, constraint: &str) -> Chain {
        let step = |(package, wanted): &(&str, &str)| Step {
            package: id(package),
            constraint: wanted.parse().unwrap(),
            version: version("1.0.0"),
        };
        Chain {
            root: "hello".to_owned(),
            member: None,
            steps: steps.iter().map(step).collect(),
            package: id(package),
            constraint: constraint.parse().unwrap(),
        }
    }

    #[test]
    fn a_conflict_knows_which_of_the_projects_requirements_lead_there() {
        let conflict = Conflict {
            package: id("a.b/z"),
            requirers: vec![
                chain(&[("a.b/x", "^1"), ("a.b/y", "*")], "a.b/z", "^1"),
                chain(&[("a.b/x", "^1")], "a.b/z", "^2"),
                chain(&[], "a.b/z", "<3"),
            ],
            refusers: Vec::new(),
            available: vec![version("1.0.0")],
            tried: Vec::new(),
        };
        let told =
            Unsolved::of(ResolveError::<InstallError>::Conflict(Box::new(conflict))).unwrap();
        let asked = ["a.b/x ^1", "a.b/z <3"].map(|text| {
            let (package, constraint) = text.split_once(' ').unwrap();
            Asked {
                manifest: "vibe.toml".to_owned(),
                package: id(package),
                constraint: constraint.parse().unwrap(),
            }
        });
        let package = id("a.b/z");
        let expected = Trouble::Conflict {
            package,
            asked: asked.into(),
        };
        assert_eq!(told.trouble, expected);
        assert_eq!(
            told.headline,
            "no version of a.b/z satisfies everything that requires it"
        );
        assert_eq!(
            told.facts[..2],
            [
                "hello (yours) requires a.b/x ^1",
                "  a.b/x 1.0.0 requires a.b/y *"
            ]
        );
    }

    #[test]
    fn a_requirement_without_a_version_knows_whose_it_is_and_what_there_is() {
        let check = |steps, available: &[&str], by, newest: Option<&str>, pre: Option<&str>| {
            let error = ResolveError::<InstallError>::NoVersion {
                chain: Box::new(chain(steps, "a.b/z", "^9")),
                available: available.iter().map(|text| version(text)).collect(),
            };
            let expected = Trouble::NoVersion {
                package: id("a.b/z"),
                constraint: "^9".parse().unwrap(),
                required_by: by,
                manifest: "vibe.toml".to_owned(),
                newest: newest.map(version),
                prerelease: pre.map(version),
            };
            assert_eq!(Unsolved::of(error).unwrap().trouble, expected);
        };
        let some = ["1.0.0", "1.1.0", "2.0.0-rc.1"];
        check(&[], &some, None, Some("1.1.0"), Some("2.0.0-rc.1"));
        let by = Some((id("a.b/x"), version("1.0.0")));
        check(&[("a.b/x", "*")], &["1.0.0"], by, Some("1.0.0"), None);
    }
}
