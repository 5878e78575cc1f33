//! What a user names on the command line: a SPEC.

use std::str::FromStr;

use crate::formats::manifest::without_kind;
use crate::git_url::{GitUrlError, RemoteUrl};
use crate::identifier::{IdentifierError, PackageId};
use crate::text::{escape, hide_credentials, shorten};
use crate::version::{Constraint, VersionError};

/// A parsed SPEC.
#[derive(Debug, Clone, PartialEq)]
pub enum Specifier {
    /// `group/name[@constraint]`.
    Package {
        /// The id.
        id: PackageId,
        /// What follows `@`.
        constraint: Option<Constraint>,
    },
    /// `path:DIR`.
    Path(String),
    /// `github:owner/repo[#ref]` or a git URL, with `#ref` likewise.
    Git {
        /// The repository.
        url: RemoteUrl,
        /// What follows `#`.
        reference: Option<String>,
    },
}

/// Why a text is no SPEC. Texts are escaped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SpecifierError {
    /// Nothing was given.
    #[error(
        "a package is named by nothing; write `group/name`, `path:DIR`, `github:owner/repo` or a git URL"
    )]
    Empty,
    /// It would be taken for an option by a program it is given to.
    #[error("`{0}` looks like an option, not like a package")]
    Option(String),
    /// A character that acts on a terminal or deceives.
    #[error("`{0}` has a character that cannot be shown")]
    Character(String),
    /// A directory without `path:`.
    #[error("`{0}` is a directory, not a package; write `path:{0}`")]
    Directory(String),
    /// `path:` without a directory.
    #[error("`path:` names no directory; write `path:DIR`")]
    NoDirectory,
    /// `github:` without owner and repository.
    #[error(
        "`{0}` names no GitHub repository; write `github:owner/repo` or `github:owner/repo#ref`"
    )]
    GitHub(String),
    /// An address that is none.
    #[error("{0}")]
    Url(#[from] GitUrlError),
    /// What follows `#` names no tag, branch or commit.
    #[error("`{0}` names nothing after its `#`; write a tag, a branch or a commit there")]
    Reference(String),
    /// `@latest`.
    #[error("`@latest` is not a version constraint; write `{0}` alone for the newest version")]
    Latest(PackageId),
    /// No package id.
    #[error("{0}")]
    Identifier(#[from] IdentifierError),
    /// No constraint after `@`.
    #[error("{0}")]
    Constraint(#[from] VersionError),
}

impl Specifier {
    /// Reads a SPEC. A leading `kind:` of a package is accepted and means nothing.
    ///
    /// # Errors
    /// What it looks like and what to write instead.
    pub fn parse(text: &str) -> Result<Self, SpecifierError> {
        let shown = || escape(&shorten(&hide_credentials(text), 200));
        if text.trim().is_empty() {
            return Err(SpecifierError::Empty);
        }
        if escape(text) != text {
            return Err(SpecifierError::Character(shown()));
        }
        if text.starts_with('-') {
            return Err(SpecifierError::Option(shown()));
        }
        if let Some(directory) = text.strip_prefix("path:") {
            return parse_path(directory);
        }
        if let Some(repository) = text.strip_prefix("github:") {
            let (repository, reference) = split_reference(repository)?;
            return match is_github(repository) {
                true => Ok(Self::Git {
                    url: RemoteUrl::github(repository)?,
                    reference,
                }),
                false => Err(SpecifierError::GitHub(shown())),
            };
        }
        if text.contains("://") || text.contains("::") || is_repository(text) {
            let (url, reference) = split_reference(text)?;
            return Ok(Self::Git {
                url: url.parse()?,
                reference,
            });
        }
        if is_directory(text) {
            return Err(SpecifierError::Directory(shown()));
        }
        parse_package(without_kind(text))
    }
}

impl FromStr for Specifier {
    type Err = SpecifierError;

    fn from_str(text: &str) -> Result<Self, SpecifierError> {
        Self::parse(text)
    }
}

fn parse_path(directory: &str) -> Result<Specifier, SpecifierError> {
    match directory.trim().is_empty() {
        true => Err(SpecifierError::NoDirectory),
        false => Ok(Specifier::Path(directory.to_owned())),
    }
}

/// What stands before `#`, and the reference after it.
fn split_reference(text: &str) -> Result<(&str, Option<String>), SpecifierError> {
    match text.split_once('#') {
        None => Ok((text, None)),
        Some((_, name)) if name.is_empty() || name.starts_with('-') => {
            let shown = escape(&shorten(&hide_credentials(text), 200));
            Err(SpecifierError::Reference(shown))
        }
        Some((url, name)) => Ok((url, Some(name.to_owned()))),
    }
}

/// `owner/repo`.
fn is_github(repository: &str) -> bool {
    repository
        .split_once('/')
        .is_some_and(|(owner, name)| is_github_name(owner) && is_github_name(name))
}

fn is_github_name(name: &str) -> bool {
    !matches!(name, "" | "." | "..")
        && !name.starts_with('-')
        && name
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.'))
}

/// `user@host:path`, or a name that ends in `.git`.
fn is_repository(text: &str) -> bool {
    let location = text.split('#').next().unwrap_or_default();
    is_scp_like(location) || location.ends_with(".git")
}

/// `user@host:path`: the user and the host are plain names, and none begins like an option.
fn is_scp_like(text: &str) -> bool {
    let Some((user, (host, path))) = text
        .split_once('@')
        .and_then(|(user, rest)| Some((user, rest.split_once(':')?)))
    else {
        return false;
    };
    is_github_name(user) && is_github_name(host) && !path.is_empty() && !path.starts_with('-')
}

fn is_directory(text: &str) -> bool {
    let bytes = text.as_bytes();
    let has_drive = bytes.len() > 2 && bytes[0].is_ascii_alphabetic() && bytes[1] == b':';
    text.starts_with(['.', '/', '~', '\\']) || (has_drive && matches!(bytes[2], b'\\' | b'/'))
}

fn parse_package(text: &str) -> Result<Specifier, SpecifierError> {
    let Some((id, constraint)) = text.split_once('@') else {
        return Ok(Specifier::Package {
            id: text.parse()?,
            constraint: None,
        });
    };
    let id: PackageId = id.parse()?;
    if constraint == "latest" {
        return Err(SpecifierError::Latest(id));
    }
    Ok(Specifier::Package {
        id,
        constraint: Some(constraint.parse()?),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn package(id: &str, constraint: Option<&str>) -> Specifier {
        Specifier::Package {
            id: id.parse().unwrap(),
            constraint: constraint.map(|text| text.parse().unwrap()),
        }
    }

    #[test]
    fn packages_are_read_with_and_without_kind_and_constraint() {
        for (text, id, constraint) in [
            ("org.example/lint", "org.example/lint", None),
            ("org.example/lint@^2.1", "org.example/lint", Some("^2.1")),
            (
                "flow:org.example/lint@>=1, <3",
                "org.example/lint",
                Some(">=1, <3"),
            ),
            ("tool:a/b", "a/b", None),
            ("a/b@*", "a/b", Some("*")),
        ] {
            assert_eq!(
                Specifier::parse(text).unwrap(),
                package(id, constraint),
                "{text}"
            );
        }
        assert_eq!("a/b".parse(), Ok(package("a/b", None)));
    }

    #[test]
    fn directories_are_read_after_path() {
        for directory in ["../x", ".", "/abs/dir", "a b", "C:\\x", "x.git"] {
            let specifier = Specifier::parse(&format!("path:{directory}")).unwrap();
            assert_eq!(specifier, Specifier::Path(directory.to_owned()));
        }
    }

    #[test]
    fn git_sources_are_kept_as_written() {
        for text in [
            "github:owner/repo",
            "github:Owner-1/re.po_x#v1.0.0",
            "https://host/x",
            "https://host/x.git#main",
            "ssh://git@host/x",
            "file:///srv/x",
            "git@host:org/x",
            "me@my-host.org:x.git",
            "host/x.git",
            "/srv/x.git",
            "../x.git",
            "x.git#tag",
        ] {
            let found = Specifier::parse(text).unwrap();
            assert!(matches!(found, Specifier::Git { .. }), "{text}: {found:?}");
        }
        for (text, url, reference) in [
            ("github:o/r#v1", "https://github.com/o/r", Some("v1")),
            (
                "https://u:p@host/x.git#a/b",
                "https://host/x.git",
                Some("a/b"),
            ),
            ("../x.git", "../x.git", None),
        ] {
            let expected = Specifier::Git {
                url: url.parse().unwrap(),
                reference: reference.map(str::to_owned),
            };
            assert_eq!(Specifier::parse(text), Ok(expected), "{text}");
        }
    }

    #[test]
    fn what_is_no_specifier_is_told_what_to_write() {
        for (text, message) in [
            ("", "a package is named by nothing"),
            ("  ", "a package is named by nothing"),
            ("-rf", "`-rf` looks like an option"),
            ("--upload-pack=x.git", "looks like an option"),
            ("a/b\n", "`a/b\\n` has a character that cannot be shown"),
            (
                "https://host/\u{202e}x",
                "`https://host/U+202Ex` has a character",
            ),
            ("path:a\u{1b}", "has a character that cannot be shown"),
            ("path:", "write `path:DIR`"),
            ("path: ", "write `path:DIR`"),
            ("./x", "write `path:./x`"),
            ("../x", "write `path:../x`"),
            (".", "write `path:.`"),
            ("/x", "write `path:/x`"),
            ("~/x", "write `path:~/x`"),
            ("\\\\srv\\x", "is a directory"),
            ("C:\\x", "write `path:C:\\x`"),
            ("c:/x", "write `path:c:/x`"),
            ("c:x", "`x` is not a package id"),
            ("C:", "`C:` is not a package id"),
            ("1:/x", "`1:` is not a group"),
            ("github:owner", "write `github:owner/repo`"),
            ("github:owner/", "write `github:owner/repo`"),
            ("github:/repo", "write `github:owner/repo`"),
            ("github:owner/repo/x", "write `github:owner/repo`"),
            ("github:owner/..", "write `github:owner/repo`"),
            ("github:./repo", "write `github:owner/repo`"),
            ("github:-o/repo", "write `github:owner/repo`"),
            ("github:owner/repo#", "names nothing after its `#`"),
            ("github:owner/repo#-x", "names nothing after its `#`"),
            (
                "https://t0ken@host/x#",
                "`https://***@host/x#` names nothing",
            ),
            ("https://", "has no proper host"),
            ("https://#x", "has no proper host"),
            ("ssh://-oProxyCommand=x/y", "has no proper host"),
            ("ext::sh -c x", "is not a git URL of a kind that is taken"),
            (
                "ext::sh -c x.git",
                "is not a git URL of a kind that is taken",
            ),
            ("git@host:", "`git` is not a package id"),
            ("git@host:-x", "`git` is not a package id"),
            ("git@-host:x", "`git` is not a package id"),
            ("a;b@host:x", "`a;b` is not a package id"),
            (
                "lint",
                "`lint` is not a package id: `group/name` is expected",
            ),
            ("Org/lint", "`Org` is not a group"),
            ("a/b@latest", "write `a/b` alone for the newest version"),
            ("a/b@", "is not a version constraint"),
            ("a/b@v1", "`v1` is not a version constraint"),
            ("Flow:a/b", "`Flow:a` is not a group"),
        ] {
            let error = Specifier::parse(text).unwrap_err();
            assert!(error.to_string().contains(message), "{text}: {error}");
        }
    }

    proptest! {
        #[test]
        fn nothing_that_is_taken_acts_on_a_terminal_or_begins_like_an_option(text in ".{0,40}") {
            let kept = match Specifier::parse(&text) {
                Ok(Specifier::Git { url, .. }) => url.to_string(),
                Ok(Specifier::Path(directory)) => directory,
                Ok(Specifier::Package { .. }) | Err(_) => return Ok(()),
            };
            prop_assert_eq!(&escape(&kept), &kept);
            prop_assert!(!text.starts_with('-'));
        }
    }
}
