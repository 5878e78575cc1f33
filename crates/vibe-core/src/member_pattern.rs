//! Patterns of `[workspace] members`: which directories below a workspace belong to it.
//!
//! A pattern is matched name by name ([`Progress`]), so that whoever looks for directories need open
//! no other than those that it can mean, each once. A name that begins with a dot is meant only where the pattern has that
//! dot, and `vibedeps`, which holds installed packages, is never meant.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use globset::{GlobBuilder, GlobMatcher};

use crate::text::{escape, shorten};

/// The directory of the installed packages of a project.
const INSTALLED: &str = "vibedeps";

/// A pattern of directories.
#[derive(Debug, Clone)]
pub struct MemberPattern {
    text: String,
    parts: Vec<PatternPart>,
}

/// How far into a pattern the names of a path have come, in every way that it can be read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Progress(BTreeSet<usize>);

/// What a pattern says of one name on the way, or of several.
#[derive(Debug, Clone)]
enum PatternPart {
    /// Just this name.
    Literal(String),
    /// Every name that matches.
    Names(Box<GlobMatcher>),
    /// `**`: directories in any number, none as well.
    AnyDepth,
}

/// Why a text is no pattern of members.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemberPatternError {
    /// It can lead out of the workspace, or means another place on another system.
    #[error("`{0}` is not a relative path with forward slashes below the workspace")]
    Leaves(String),
    /// Its wildcards cannot be understood.
    #[error("`{pattern}` is no pattern: {reason}")]
    Malformed {
        /// The pattern, escaped and shortened.
        pattern: String,
        /// What is wrong, escaped.
        reason: String,
    },
}

impl Progress {
    /// Whether nothing that follows can make it a place that the pattern means.
    pub fn is_lost(&self) -> bool {
        self.0.is_empty()
    }
}

impl MemberPattern {
    /// The pattern as it is written.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Whether it means one directory, which should therefore be there.
    pub fn is_literal(&self) -> bool {
        let mut parts = self.parts.iter();
        parts.all(|part| matches!(part, PatternPart::Literal(_)))
    }

    /// Whether it means the directory that is reached from the workspace by `names`.
    pub fn matches<'a>(&self, names: impl IntoIterator<Item = &'a str>) -> bool {
        let names = names.into_iter();
        let end = names.fold(self.start(), |progress, name| self.step(&progress, name));
        self.is_reached(&end)
    }

    /// At the workspace itself.
    pub fn start(&self) -> Progress {
        self.progress([0])
    }

    /// One name further.
    pub fn step(&self, from: &Progress, name: &str) -> Progress {
        let active = from
            .0
            .iter()
            .filter_map(|at| Some((*at, self.parts.get(*at)?)));
        let taken = active.filter(|(_, part)| part.takes(name));
        self.progress(taken.map(|(at, part)| match part {
            PatternPart::AnyDepth => at,
            PatternPart::Literal(_) | PatternPart::Names(_) => at + 1,
        }))
    }

    /// Whether the pattern means the place that was come to.
    pub fn is_reached(&self, at: &Progress) -> bool {
        at.0.contains(&self.parts.len())
    }

    /// The names that can come next, where the pattern says which; `None` where the directory has to
    /// be listed.
    pub fn next_names(&self, at: &Progress) -> Option<Vec<&str>> {
        let next = at.0.iter().filter_map(|at| self.parts.get(*at));
        next.map(|part| match part {
            PatternPart::Literal(name) => Some(name.as_str()),
            PatternPart::Names(_) | PatternPart::AnyDepth => None,
        })
        .collect()
    }

    fn progress(&self, at: impl IntoIterator<Item = usize>) -> Progress {
        let mut all = BTreeSet::new();
        for mut at in at {
            all.insert(at);
            // `**` may stand for no directory at all.
            while let Some(PatternPart::AnyDepth) = self.parts.get(at) {
                at += 1;
                all.insert(at);
            }
        }
        Progress(all)
    }
}

impl PatternPart {
    /// Whether `name` can be this part, or one of the directories that it stands for.
    fn takes(&self, name: &str) -> bool {
        let is_hidden = name.starts_with('.');
        name != INSTALLED
            && match self {
                Self::Literal(literal) => literal == name,
                Self::AnyDepth => !is_hidden,
                Self::Names(names) => {
                    let says_so = names.glob().glob().starts_with('.');
                    is_hidden == says_so && names.is_match(name)
                }
            }
    }
}

impl FromStr for MemberPattern {
    type Err = MemberPatternError;

    fn from_str(text: &str) -> Result<Self, MemberPatternError> {
        let leaves = text.starts_with('/') || text.contains(['\\', ':']);
        if leaves || text.split('/').any(|name| name == "..") {
            return Err(MemberPatternError::Leaves(escape(&shorten(text, 200))));
        }
        let names = text.split('/').filter(|name| !matches!(*name, "" | "."));
        let parts: Vec<PatternPart> = names.map(part).collect::<Result<_, _>>()?;
        Ok(Self {
            text: text.to_owned(),
            parts,
        })
    }
}

fn part(name: &str) -> Result<PatternPart, MemberPatternError> {
    if name == "**" {
        return Ok(PatternPart::AnyDepth);
    }
    if !name.contains(['*', '?', '[', ']', '{', '}']) {
        return Ok(PatternPart::Literal(name.to_owned()));
    }
    let glob = GlobBuilder::new(name).literal_separator(true).build();
    let glob = glob.map_err(|error| MemberPatternError::Malformed {
        pattern: escape(&shorten(name, 200)),
        reason: escape(&error.kind().to_string()),
    })?;
    Ok(PatternPart::Names(Box::new(glob.compile_matcher())))
}

impl PartialEq for MemberPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for MemberPattern {}

impl fmt::Display for MemberPattern {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pattern(text: &str) -> MemberPattern {
        text.parse().unwrap()
    }

    fn matches(text: &str, directory: &str) -> bool {
        pattern(text).matches(directory.split('/').filter(|name| !name.is_empty()))
    }

    #[test]
    fn a_pattern_means_directories_name_by_name() {
        for (text, directory, expected) in [
            ("packages/a", "packages/a", true),
            ("./packages//a/", "packages/a", true),
            ("packages/a", "packages/ab", false),
            ("packages/*", "packages/a", true),
            ("packages/*", "packages", false),
            ("packages/*", "packages/a/b", false),
            ("*", "a", true),
            ("p?ck-[a-c]", "pack-b", true),
            ("p?ck-[!a-c]", "pack-b", false),
            ("{packages,tools}/x", "tools/x", true),
            ("**", "", true),
            ("**", "a/b/c", true),
            ("a/**/z", "a/z", true),
            ("a/**/z", "a/b/c/z", true),
            ("a/**/**/z", "a/b/z", true),
            ("a/**/z", "a/b/c", false),
            (".", "", true),
            (".", "a", false),
        ] {
            assert_eq!(matches(text, directory), expected, "{text} and {directory}");
        }
    }

    #[test]
    fn hidden_names_are_meant_only_with_their_dot_and_installed_packages_never() {
        for (text, directory, expected) in [
            ("*", ".git", false),
            ("**", "a/.hidden/b", false),
            (".*", ".hidden", true),
            (".*", "shown", false),
            (".config/a", ".config/a", true),
            ("*", "vibedeps", false),
            ("**", "a/vibedeps/b", false),
            ("vibedeps/a", "vibedeps/a", false),
        ] {
            assert_eq!(matches(text, directory), expected, "{text} and {directory}");
        }
    }

    #[test]
    fn only_a_pattern_without_wildcards_is_literal() {
        let literal = |text: &str| pattern(text).is_literal();
        assert!(literal("packages/a") && literal("."));
        assert!(!literal("packages/*") && !literal("a/**") && !literal("[ab]"));
    }

    #[test]
    fn what_leads_elsewhere_or_is_malformed_is_no_pattern() {
        let refused = |text: &str| text.parse::<MemberPattern>().unwrap_err().to_string();
        for text in ["/a", "a\\b", "C:a", "a/../../b", ".."] {
            assert!(refused(text).contains("below the workspace"), "{text}");
        }
        for text in ["a/[b", "{a", "[z-a]"] {
            assert!(refused(text).contains("is no pattern: "), "{text}");
        }
    }

    #[test]
    fn a_directory_is_listed_only_where_a_wildcard_needs_it() {
        let (pattern, deep) = (pattern("packages/*/tools"), pattern("**/a"));
        let at = |names: &[&str]| {
            let names = names.iter();
            names.fold(pattern.start(), |at, name| pattern.step(&at, name))
        };
        assert_eq!(pattern.next_names(&at(&[])), Some(vec!["packages"]));
        assert_eq!(pattern.next_names(&at(&["packages"])), None);
        assert_eq!(
            pattern.next_names(&at(&["packages", "a"])),
            Some(vec!["tools"])
        );
        assert_eq!(pattern.next_names(&at(&["other"])), Some(vec![]));
        assert!(at(&["other"]).is_lost() && !at(&["packages"]).is_lost());
        assert!(pattern.is_reached(&at(&["packages", "a", "tools"])));
        assert_eq!(deep.next_names(&deep.start()), None);
    }

    #[test]
    fn many_wildcards_are_matched_in_one_pass() {
        let text = ["**/a"; 24].join("/");
        let names = ["a"; 60];
        assert!(pattern(&text).matches(names));
        assert!(!pattern(&text).matches(names.into_iter().chain(["b"])));
    }
}
