//! The names and kinds of git objects, as the rest of vibe sees them.

use std::fmt;
use std::str::FromStr;

use vibe_core::text::{escape, shorten};

/// Hex digits of a full object id.
const ID_DIGITS: usize = 40;

/// A text that is no full object id.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{text}` is no commit id: 40 lower-case hex digits are expected")]
pub struct ObjectIdError {
    text: String,
}

/// The id of a commit: 40 lower-case hex digits.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct CommitId(pub(crate) gix::ObjectId);

/// The id of a file's content in an object database.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BlobId(pub(crate) gix::ObjectId);

impl fmt::Display for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for CommitId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CommitId({self})")
    }
}

impl fmt::Display for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

impl fmt::Debug for BlobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "BlobId({self})")
    }
}

impl FromStr for CommitId {
    type Err = ObjectIdError;

    fn from_str(text: &str) -> Result<Self, ObjectIdError> {
        parse_id(text).map(CommitId)
    }
}

fn parse_id(text: &str) -> Result<gix::ObjectId, ObjectIdError> {
    let refused = || ObjectIdError {
        text: escape(&shorten(text, 80)),
    };
    let is_full = text.len() == ID_DIGITS && text.bytes().all(is_lower_hex);
    if !is_full {
        return Err(refused());
    }
    gix::ObjectId::from_hex(text.as_bytes()).map_err(|_| refused())
}

pub(crate) fn is_lower_hex(byte: u8) -> bool {
    matches!(byte, b'0'..=b'9' | b'a'..=b'f')
}

/// What an entry of a commit's tree is. Directories are walked, not listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EntryKind {
    /// A file that is not executable.
    File,
    /// An executable file.
    Executable,
    /// A symbolic link; its blob is the target.
    Symlink,
    /// Another repository's commit, mounted here.
    Submodule(CommitId),
}

/// One entry of a commit's tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeEntry {
    /// The bytes of the path, components separated by `/`. They are what the repository says:
    /// `..`, `.git`, an empty name or the same path twice are for the caller to refuse.
    pub path: Vec<u8>,
    /// What is there.
    pub kind: EntryKind,
    /// Its content; of a submodule the id of the commit, which names no blob.
    pub id: BlobId,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_commit_id_is_forty_lower_case_hex_digits() {
        let text = "0123456789abcdef0123456789abcdef01234567";
        let id: CommitId = text.parse().unwrap();
        assert_eq!(id.to_string(), text);
        assert_eq!(format!("{id:?}"), format!("CommitId({text})"));
        for refused in ["", "0123", &text.to_uppercase(), &format!("{text}0"), "é"] {
            assert!(refused.parse::<CommitId>().is_err(), "{refused}");
        }
    }

    #[test]
    fn a_refused_id_is_shown_escaped_and_short() {
        let error = format!("\u{1b}[2J{}", "x".repeat(200))
            .parse::<CommitId>()
            .unwrap_err()
            .to_string();
        assert!(error.starts_with("`\\x1B[2Jxxx"), "{error}");
        assert!(error.len() < 200, "{error}");
    }
}
