//! Versions and constraints: the `semver` crate's grammar, with the bounds of vibe.

use std::fmt;
use std::str::FromStr;

use crate::limits::VERSION_BYTES;
use crate::string_serde::string_serde;
use crate::text::{escape, shown};

pub use semver::Version;

/// Why a text is no version or constraint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum VersionError {
    /// Not a strict semantic version.
    #[error("`{text}` is not a version: {reason}; write three numbers, as in `1.2.3`")]
    Version {
        /// The text, escaped.
        text: String,
        /// What the grammar found.
        reason: String,
    },
    /// Not a version constraint.
    #[error("`{text}` is not a version constraint: {reason}; write one as in `^1.2` or `>=1, <3`")]
    Constraint {
        /// The text, escaped.
        text: String,
        /// What the grammar found.
        reason: String,
    },
}

/// Reads a strict semantic version of at most 128 bytes.
pub fn parse_version(text: &str) -> Result<Version, VersionError> {
    let refused = |reason: String| VersionError::Version {
        text: shown(text),
        reason,
    };
    if text.len() > VERSION_BYTES {
        return Err(refused(format!("longer than {VERSION_BYTES} bytes")));
    }
    Version::parse(text).map_err(|error| refused(escape(&error.to_string())))
}

/// A version constraint as it was written: `1.2` and `^1.2` mean the same but print as written.
/// A prerelease matches only where the constraint itself names one of the same numbers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Constraint {
    text: String,
    requirement: semver::VersionReq,
}

impl Constraint {
    /// Any version but a prerelease.
    pub fn any() -> Self {
        Self {
            text: "*".to_owned(),
            requirement: semver::VersionReq::STAR,
        }
    }

    /// Exactly `version` (build metadata plays no part).
    pub fn exact(version: &Version) -> Self {
        Self::of('=', version)
    }

    /// Anything compatible with `version`.
    pub fn caret(version: &Version) -> Self {
        Self::of('^', version)
    }

    fn of(operator: char, version: &Version) -> Self {
        let mut version = version.clone();
        version.build = semver::BuildMetadata::EMPTY;
        let text = format!("{operator}{version}");
        let requirement =
            semver::VersionReq::parse(&text).expect("an operator before a version is a constraint");
        Self { text, requirement }
    }

    /// Whether `version` satisfies this.
    pub fn matches(&self, version: &Version) -> bool {
        self.requirement.matches(version)
    }

    /// The text as written.
    pub fn as_str(&self) -> &str {
        &self.text
    }
}

impl FromStr for Constraint {
    type Err = VersionError;

    fn from_str(text: &str) -> Result<Self, VersionError> {
        let refused = |reason: String| VersionError::Constraint {
            text: shown(text),
            reason,
        };
        if text.len() > VERSION_BYTES * 4 {
            return Err(refused(format!("longer than {} bytes", VERSION_BYTES * 4)));
        }
        let trimmed = text.trim();
        let requirement = semver::VersionReq::parse(trimmed)
            .map_err(|error| refused(escape(&error.to_string())))?;
        Ok(Self {
            text: trimmed.to_owned(),
            requirement,
        })
    }
}

impl fmt::Display for Constraint {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}
string_serde!(Constraint);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_strict() {
        assert_eq!(
            parse_version("1.2.3-rc.1+b").unwrap().to_string(),
            "1.2.3-rc.1+b"
        );
        let long = format!("1.0.0-{}", "a".repeat(VERSION_BYTES));
        for text in [
            "",
            "1",
            "1.0",
            "v1.0.0",
            "01.2.3",
            "1.0.0/../..",
            "1.0.0+b/../x",
            " 1.0.0",
            &long,
        ] {
            let error = parse_version(text).unwrap_err();
            assert!(matches!(error, VersionError::Version { .. }), "{text}");
        }
        let longest = format!("1.0.0-{}", "a".repeat(VERSION_BYTES - 6));
        assert!(parse_version(&longest).is_ok());
    }

    #[test]
    fn constraints_follow_cargo() {
        let version = |text| parse_version(text).unwrap();
        let matches = |constraint: &str, text| {
            constraint
                .parse::<Constraint>()
                .unwrap()
                .matches(&version(text))
        };
        assert!(matches("1.2", "1.9.0"));
        assert!(!matches("1.2", "2.0.0"));
        assert!(matches(">=1, <3", "2.5.0"));
        assert!(
            !matches("*", "1.0.0-rc.1"),
            "a prerelease only when asked for"
        );
        assert!(matches("^1.0.0-rc.1", "1.0.0-rc.2"));
        assert!(matches("=1.0.0", "1.0.0+build"));
        assert!(Constraint::any().matches(&version("7.0.0")));
        assert_eq!(Constraint::caret(&version("1.2.3+b")).as_str(), "^1.2.3");
        assert_eq!(Constraint::exact(&version("1.2.3")).to_string(), "=1.2.3");
        assert_eq!(" ^1 ".parse::<Constraint>().unwrap().as_str(), "^1");
    }

    #[test]
    fn constraints_outside_the_grammar_are_refused() {
        let long = format!("={}", "1".repeat(VERSION_BYTES * 4));
        for text in ["", "latest", "v1", "1.0.0 2.0.0", "=", &long] {
            assert!(text.parse::<Constraint>().is_err(), "{text}");
        }
    }
}
