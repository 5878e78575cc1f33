//! Why there is no solution, as data, and in words for someone who never saw a solver.

use std::fmt;

use vibe_core::text::{escape, nearest};
use vibe_core::{Constraint, PackageId, Version};

/// Versions shown at most where a message lists those there are; the highest ones.
const VERSIONS_SHOWN: usize = 10;

/// Why [`resolve`](crate::resolve) gave no solution.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError<E: std::error::Error + 'static> {
    /// A required package has no version at all.
    #[error("there is no package {}{}", .chain.package, story(.chain))]
    Unknown {
        /// Who requires it; its last package is the unknown one.
        chain: Box<Chain>,
    },
    /// No version satisfies one constraint, whatever else is chosen.
    #[error(
        "no version of {} satisfies {}{}{}",
        .chain.package,
        .chain.constraint,
        story(.chain),
        versions(.available)
    )]
    NoVersion {
        /// Who requires it, with the constraint.
        chain: Box<Chain>,
        /// The versions there are, lowest first.
        available: Vec<Version>,
    },
    /// Requirements that cannot be satisfied together.
    #[error(transparent)]
    Conflict(Box<Conflict>),
    /// The index gave no answer.
    #[error(transparent)]
    Index(E),
}

/// Requirements of one package that no version satisfies together.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct Conflict {
    /// The package.
    pub package: PackageId,
    /// Who requires it, and how; at least one.
    pub requirers: Vec<Chain>,
    /// Who refuses to stand beside it, and in which versions.
    pub refusers: Vec<Chain>,
    /// The versions there are, lowest first.
    pub available: Vec<Version>,
    /// The packages of these chains that have other versions in range; those do not help either.
    pub tried: Vec<PackageId>,
}

/// A path of requirements from the project, or a member of its workspace, to a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Chain {
    /// The name of the requirer that begins it.
    pub root: String,
    /// Where that is in the project, if it is a member of its workspace.
    pub member: Option<String>,
    /// The packages in between, each required by the one before it.
    pub steps: Vec<Step>,
    /// The package that the last step, or the requirer if there is none, speaks of.
    pub package: PackageId,
    /// In which versions.
    pub constraint: Constraint,
}

/// One package of a [`Chain`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    /// The package.
    pub package: PackageId,
    /// How the one before it requires it.
    pub constraint: Constraint,
    /// The version that requires the next.
    pub version: Version,
}

#[derive(Clone, Copy)]
enum Says {
    Requires,
    Refuses,
}

impl Chain {
    /// Who speaks of the package: the last step, or the project.
    fn speaker(&self) -> String {
        match self.steps.last() {
            Some(step) => format!("{} {}", step.package, step.version),
            None => escape(&self.root),
        }
    }

    /// The project's own requirement that this chain begins with.
    pub fn asked(&self) -> (&PackageId, &Constraint) {
        match self.steps.first() {
            Some(step) => (&step.package, &step.constraint),
            None => (&self.package, &self.constraint),
        }
    }
}

impl fmt::Display for Chain {
    /// `hello -> org.a/x 1.0.0 -> org.c/z ^1`.
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}", escape(&self.root))?;
        for step in &self.steps {
            write!(out, " -> {} {}", step.package, step.version)?;
        }
        write!(out, " -> {} {}", self.package, self.constraint)
    }
}

impl fmt::Display for Conflict {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = match self.refusers[..] {
            [] => "everything that requires it",
            _ => "all that is said of it",
        };
        write!(out, "no version of {} satisfies {all}", self.package)?;
        let required = self.requirers.iter().map(|chain| (chain, Says::Requires));
        let refused = self.refusers.iter().map(|chain| (chain, Says::Refuses));
        let chains: Vec<(&Chain, Says)> = required.chain(refused).collect();
        let mut before = Vec::new();
        for (chain, says) in &chains {
            let lines = lines(chain, *says);
            // What two chains begin with is said once.
            let same = lines.iter().zip(&before).take_while(|(l, b)| l == b);
            let new = &lines[same.count()..];
            new.iter().try_for_each(|line| write!(out, "\n{line}"))?;
            before = lines;
        }
        out.write_str(&ruled_out(&chains, &self.available))?;
        if !self.tried.is_empty() {
            let tried: Vec<&str> = self.tried.iter().map(PackageId::as_str).collect();
            let tried = tried.join(", ");
            write!(out, "\n  other versions of {tried} do not help either")?;
        }
        Ok(())
    }
}

/// One line per requirement of `chain`, each a step further in. `last` is what the end of the chain
/// says.
fn lines(chain: &Chain, last: Says) -> Vec<String> {
    let mut lines = Vec::new();
    let place = chain.member.as_deref().map(escape);
    let place = place.as_deref().unwrap_or("yours");
    let mut subject = format!("{} ({place})", escape(&chain.root));
    let mut indent = 2;
    for step in &chain.steps {
        let (package, constraint) = (&step.package, &step.constraint);
        lines.push(format!(
            "{:indent$}{subject} requires {package} {constraint}",
            ""
        ));
        subject = format!("{package} {}", step.version);
        indent += 2;
    }
    let verb = match last {
        Says::Requires => "requires",
        Says::Refuses => "conflicts with",
    };
    let (package, constraint) = (&chain.package, &chain.constraint);
    lines.push(format!(
        "{:indent$}{subject} {verb} {package} {constraint}",
        ""
    ));
    lines
}

/// The lines of [`lines`], each after a line break.
fn story(chain: &Chain) -> String {
    let lines = lines(chain, Says::Requires);
    lines.iter().map(|line| format!("\n{line}")).collect()
}

/// The versions there are, with what rules each of them out: those that the same one rules out on
/// one line, the highest first.
fn ruled_out(chains: &[(&Chain, Says)], available: &[Version]) -> String {
    let mut groups: Vec<(String, Vec<&Version>)> = Vec::new();
    for version in available.iter().rev() {
        let why = why_not(chains, version);
        match groups.iter_mut().find(|(known, _)| *known == why) {
            Some((_, versions)) => versions.push(version),
            None => groups.push((why, vec![version])),
        }
    }
    let rows: Vec<(String, String)> = groups
        .into_iter()
        .map(|(why, versions)| (listed(&versions), why))
        .collect();
    let width = rows.iter().map(|(versions, _)| versions.len()).max();
    let width = width.unwrap_or(0);
    let mut text = "\n  the versions there are, and what rules each of them out:".to_owned();
    for (versions, why) in rows {
        text += &format!("\n    {versions:width$}  {why}");
    }
    text
}

/// Which of `chains` rules out `version`.
fn why_not(chains: &[(&Chain, Says)], version: &Version) -> String {
    let excluding = chains
        .iter()
        .find(|(chain, says)| chain.constraint.matches(version) == matches!(says, Says::Refuses));
    let Some((chain, says)) = excluding else {
        return String::new();
    };
    let (speaker, constraint) = (chain.speaker(), &chain.constraint);
    match says {
        Says::Requires if !version.pre.is_empty() => {
            "a prerelease, which is only taken where a requirement names it".to_owned()
        }
        Says::Requires => format!("not {constraint}, which {speaker} requires"),
        Says::Refuses => format!("{constraint}, with which {speaker} conflicts"),
    }
}

/// The first of `versions`, and how many more there are.
fn listed(versions: &[&Version]) -> String {
    let shown = versions.iter().take(VERSIONS_SHOWN);
    let shown: Vec<String> = shown.map(|version| version.to_string()).collect();
    match versions.len().saturating_sub(VERSIONS_SHOWN) {
        0 => shown.join(", "),
        older => format!("{} and {older} older", shown.join(", ")),
    }
}

/// The line that says which versions there are, the highest first.
fn versions(available: &[Version]) -> String {
    let highest_first: Vec<&Version> = available.iter().rev().collect();
    let mut text = format!("\n  the versions there are: {}", listed(&highest_first));
    if let Some(prerelease) = highest_first.iter().find(|version| !version.pre.is_empty()) {
        text += &format!(
            "\n  a prerelease is only taken where a requirement names it, as `^{prerelease}` does"
        );
    }
    text
}

/// The id among `known` that `unknown` was most likely meant to be, if one is near enough.
pub fn nearest_id<'a>(
    unknown: &PackageId,
    known: impl IntoIterator<Item = &'a PackageId>,
) -> Option<PackageId> {
    let near = nearest(unknown.as_str(), known.into_iter().map(PackageId::as_str))?;
    Some(near.parse().expect("the text of an id is an id"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vibe_core::version::parse_version;

    #[test]
    fn a_chain_reads_from_the_project_to_the_package() {
        let chain = Chain {
            root: "hel\u{1b}lo".to_owned(),
            member: None,
            steps: vec![Step {
                package: "org.a/x".parse().unwrap(),
                constraint: "*".parse().unwrap(),
                version: parse_version("1.0.0").unwrap(),
            }],
            package: "org.c/z".parse().unwrap(),
            constraint: "^1".parse().unwrap(),
        };
        assert_eq!(
            chain.to_string(),
            "hel\\x1Blo -> org.a/x 1.0.0 -> org.c/z ^1"
        );
        assert_eq!(
            lines(&chain, Says::Refuses),
            [
                "  hel\\x1Blo (yours) requires org.a/x *",
                "    org.a/x 1.0.0 conflicts with org.c/z ^1"
            ]
        );
        let member = Chain {
            member: Some("packages/a\u{1b}".to_owned()),
            ..chain
        };
        assert_eq!(
            lines(&member, Says::Requires)[0],
            "  hel\\x1Blo (packages/a\\x1B) requires org.a/x *"
        );
    }

    #[test]
    fn only_the_highest_versions_are_listed() {
        let numbered = |count: u64| {
            (0..count)
                .map(|n| Version::new(n, 0, 0))
                .collect::<Vec<_>>()
        };
        let shown = |count| versions(&numbered(count));
        assert_eq!(shown(2), "\n  the versions there are: 1.0.0, 0.0.0");
        assert!(shown(10).ends_with(
            "are: 9.0.0, 8.0.0, 7.0.0, 6.0.0, 5.0.0, 4.0.0, 3.0.0, 2.0.0, 1.0.0, 0.0.0"
        ));
        assert!(shown(11).contains("are: 10.0.0, "));
        assert!(shown(11).ends_with(", 1.0.0 and 1 older"));
    }

    #[test]
    fn a_list_with_a_prerelease_says_how_to_ask_for_one() {
        let text = versions(&[parse_version("1.0.0-rc.1").unwrap()]);
        assert!(text.ends_with("names it, as `^1.0.0-rc.1` does"), "{text}");
    }

    #[test]
    fn a_near_id_is_suggested() {
        let known = ["org.example/lint", "org.example/fmt"].map(|id| id.parse().unwrap());
        let near = |id: &str| nearest_id(&id.parse().unwrap(), &known);
        assert_eq!(near("org.example/lnit"), Some(known[0].clone()));
        assert_eq!(near("com.elsewhere/other"), None);
    }
}
