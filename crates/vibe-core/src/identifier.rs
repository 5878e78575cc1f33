//! Groups, names, package ids and the names of slots.

use std::fmt;
use std::str::FromStr;

use crate::limits::IDENTIFIER_BYTES;
use crate::string_serde::string_serde;
use crate::text::shown;
use crate::version::Version;

/// Why a text is no group, name or id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum IdentifierError {
    /// A group breaks the grammar.
    #[error(
        "`{0}` is not a group: labels of a-z, 0-9 and inner hyphens joined by dots, at most 64 bytes"
    )]
    Group(String),
    /// A name breaks the grammar.
    #[error("`{0}` is not a package name: a-z, 0-9 and inner hyphens, at most 64 bytes")]
    Name(String),
    /// An id is not `group/name`.
    #[error("`{0}` is not a package id: `group/name` is expected")]
    Id(String),
}

fn is_label(label: &str) -> bool {
    !label.is_empty()
        && !label.starts_with('-')
        && !label.ends_with('-')
        && label
            .bytes()
            .all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-')
}

/// A group: labels `[a-z0-9]([a-z0-9-]*[a-z0-9])?` joined by dots, at most 64 bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Group(String);

impl Group {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Whether a package of this group may be published: at least two labels.
    pub fn is_publishable(&self) -> bool {
        self.0.contains('.')
    }
}

impl FromStr for Group {
    type Err = IdentifierError;

    fn from_str(text: &str) -> Result<Self, IdentifierError> {
        if text.len() <= IDENTIFIER_BYTES && text.split('.').all(is_label) {
            return Ok(Self(text.to_owned()));
        }
        Err(IdentifierError::Group(shown(text)))
    }
}

/// A package's name within its group: one label, at most 64 bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(String);

impl Name {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for Name {
    type Err = IdentifierError;

    fn from_str(text: &str) -> Result<Self, IdentifierError> {
        if text.len() <= IDENTIFIER_BYTES && is_label(text) {
            return Ok(Self(text.to_owned()));
        }
        Err(IdentifierError::Name(shown(text)))
    }
}

/// A package id, `group/name`. Ids sort as their text does.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct PackageId {
    text: String,
    group_bytes: usize,
}

impl PackageId {
    /// The id of `name` in `group`.
    pub fn new(group: &Group, name: &Name) -> Self {
        Self {
            text: format!("{}/{}", group.0, name.0),
            group_bytes: group.0.len(),
        }
    }

    /// The whole text, `group/name`.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The group's text.
    pub fn group(&self) -> &str {
        &self.text[..self.group_bytes]
    }

    /// The name's text.
    pub fn name(&self) -> &str {
        &self.text[self.group_bytes + 1..]
    }

    /// `<group>.<name>`: the directory of this package in `vibedeps/`. No two ids share one, since
    /// a name has no dot.
    pub fn directory(&self) -> String {
        format!("{}.{}", self.group(), self.name())
    }
}

impl FromStr for PackageId {
    type Err = IdentifierError;

    fn from_str(text: &str) -> Result<Self, IdentifierError> {
        let (group, name) = text
            .split_once('/')
            .ok_or_else(|| IdentifierError::Id(shown(text)))?;
        Ok(Self::new(&group.parse()?, &name.parse()?))
    }
}

impl Ord for PackageId {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.text.cmp(&other.text)
    }
}

impl PartialOrd for PackageId {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

/// The place of a slot inside `vibedeps/`: `<group>.<name>/<version without build metadata>`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SlotName {
    package: PackageId,
    version: Option<String>,
}

impl SlotName {
    /// The slot of `package` at `version`.
    pub fn new(package: &PackageId, version: &Version) -> Self {
        let mut version = version.clone();
        version.build = semver::BuildMetadata::EMPTY;
        Self {
            package: package.clone(),
            version: Some(version.to_string()),
        }
    }

    /// The slot of `package` as a git clone, which is the same for every version.
    pub fn in_place(package: &PackageId) -> Self {
        Self {
            package: package.clone(),
            version: None,
        }
    }

    /// The slot that the directory name `<group>.<name>` alone stands for, if it is that of a
    /// package.
    pub fn from_package_directory(package: &str) -> Option<Self> {
        let (group, name) = package.rsplit_once('.')?;
        let id = PackageId::new(&group.parse().ok()?, &name.parse().ok()?);
        Some(Self::in_place(&id))
    }

    /// The slot that the two directory names `<group>.<name>` and `<version>` stand for, if they
    /// are those of a slot.
    pub fn from_directories(package: &str, version: &str) -> Option<Self> {
        let id = Self::from_package_directory(package)?.package;
        let parsed = crate::version::parse_version(version).ok()?;
        let slot = Self::new(&id, &parsed);
        (slot.version() == Some(version)).then_some(slot)
    }

    /// The package.
    pub fn package(&self) -> &PackageId {
        &self.package
    }

    /// The version's text, without build metadata; `None` for a clone, which has any.
    pub fn version(&self) -> Option<&str> {
        self.version.as_deref()
    }

    /// `<group>.<name>/<version>`, or `<group>.<name>` for a clone, relative to `vibedeps/`, with a
    /// forward slash.
    pub fn directory(&self) -> String {
        match &self.version {
            Some(version) => format!("{}/{version}", self.package.directory()),
            None => self.package.directory(),
        }
    }

    /// The package and its version as a person reads them: `group/name 1.2.3`.
    pub fn title(&self) -> String {
        match &self.version {
            Some(version) => format!("{} {version}", self.package),
            None => self.package.to_string(),
        }
    }
}

impl FromStr for SlotName {
    type Err = IdentifierError;

    fn from_str(text: &str) -> Result<Self, IdentifierError> {
        match text.split_once('/') {
            Some((package, version)) => Self::from_directories(package, version),
            None => Self::from_package_directory(text),
        }
        .ok_or_else(|| IdentifierError::Id(shown(text)))
    }
}

impl fmt::Display for SlotName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.directory())
    }
}

/// Display as the text, serde as a string, for the identifiers that are checked texts.
macro_rules! text_identifier {
    ($($type:ty),+) => {$(
        impl fmt::Display for $type {
            fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
                out.write_str(self.as_str())
            }
        }
        string_serde!($type);
    )+};
}

text_identifier!(Group, Name, PackageId);
string_serde!(SlotName);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::version::parse_version;

    #[test]
    fn identifiers_of_the_grammar_are_taken() {
        for text in ["org.example", "a", "a.b-c.9", "0", &"a".repeat(64)] {
            assert_eq!(text.parse::<Group>().unwrap().as_str(), text);
        }
        for text in ["lint", "a-b", "9", &"a".repeat(64)] {
            assert_eq!(text.parse::<Name>().unwrap().as_str(), text);
        }
        let id: PackageId = "org.example/lint".parse().unwrap();
        assert_eq!((id.group(), id.name()), ("org.example", "lint"));
        assert_eq!(id.directory(), "org.example.lint");
        assert_eq!(id.to_string(), "org.example/lint");
        assert!("org.example".parse::<Group>().unwrap().is_publishable());
        assert!(!"example".parse::<Group>().unwrap().is_publishable());
    }

    #[test]
    fn identifiers_outside_the_grammar_are_refused_by_name() {
        let long = "a".repeat(65);
        for text in [
            "", "..", ".", "a..b", "a/b", "-rf", "Org", "аbc", "a_b", ".a", "a.", "a-", "a.-b",
            &long,
        ] {
            let error = text.parse::<Group>().unwrap_err();
            assert!(
                matches!(error, IdentifierError::Group(_)),
                "{text}: {error}"
            );
        }
        let long = "a".repeat(300);
        for text in [
            "",
            "x;touch pwn",
            "$(id)",
            "a b",
            "a.b",
            "-a",
            "a-",
            "é",
            &long,
        ] {
            assert!(
                matches!(text.parse::<Name>(), Err(IdentifierError::Name(_))),
                "{text}"
            );
        }
        for text in ["", "lint", "/", "a/", "/a", "a/b/c", "a.b/c.d"] {
            assert!(text.parse::<PackageId>().is_err(), "{text}");
        }
        let error = "a\u{1b}/b".parse::<PackageId>().unwrap_err();
        assert!(error.to_string().contains("`a\\x1B`"), "{error}");
    }

    #[test]
    fn ids_sort_as_their_text() {
        let mut ids: Vec<PackageId> = ["a.b/c", "a/z", "a-b/c"]
            .iter()
            .map(|t| t.parse().unwrap())
            .collect();
        ids.sort();
        let texts: Vec<&str> = ids.iter().map(PackageId::as_str).collect();
        assert_eq!(texts, ["a-b/c", "a.b/c", "a/z"]);
    }

    #[test]
    fn slot_directory_drops_build_metadata_and_reads_back() {
        let id: PackageId = "org.example/lint".parse().unwrap();
        let slot = SlotName::new(&id, &parse_version("1.2.3-rc.1+build.7").unwrap());
        assert_eq!(slot.directory(), "org.example.lint/1.2.3-rc.1");
        assert_eq!(slot.version(), Some("1.2.3-rc.1"));
        assert_eq!(slot.package(), &id);
        assert_eq!(slot.to_string().parse::<SlotName>().unwrap(), slot);
        for (package, version) in [
            ("boot", "1.0.0"),
            ("org.example.lint", "v1.0.0"),
            ("org.example.lint", "1.0.0+x"),
            ("org.example.Lint", "1.0.0"),
            (".state", "runs"),
        ] {
            assert_eq!(
                SlotName::from_directories(package, version),
                None,
                "{package}/{version}"
            );
        }
    }
}
