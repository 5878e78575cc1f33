//! The one error of a failed file call: what was done, to which path, and the cause.

use std::io;
use std::path::{Path, PathBuf};

use vibe_core::text::escape_bytes;

/// A file call that failed.
#[derive(Debug, thiserror::Error)]
#[error("could not {doing} {}", shown(path))]
pub struct FsError {
    /// A verb: `read`, `create`, `replace`.
    pub doing: &'static str,
    /// What it was done to.
    pub path: PathBuf,
    /// What the system said.
    #[source]
    pub source: io::Error,
}

impl FsError {
    /// `doing` failed on `path` because of `source`.
    pub fn new(doing: &'static str, path: &Path, source: io::Error) -> Self {
        Self {
            doing,
            path: path.to_path_buf(),
            source,
        }
    }

    /// Makes the error from a cause still to come: `.map_err(FsError::at("read", path))`.
    pub fn at<'a>(doing: &'static str, path: &'a Path) -> impl Fn(io::Error) -> FsError + 'a {
        move |source| Self::new(doing, path, source)
    }

    /// The kind of the cause.
    pub fn kind(&self) -> io::ErrorKind {
        self.source.kind()
    }

    /// Whether the path is absent.
    pub fn is_not_found(&self) -> bool {
        self.kind() == io::ErrorKind::NotFound
    }
}

/// `path` as it may be shown: control characters and bytes that are no text are escaped.
pub fn shown(path: &Path) -> String {
    escape_bytes(path.as_os_str().as_encoded_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_message_names_deed_and_path_and_keeps_the_cause() {
        let path = Path::new("/a\u{1b}[2J/b");
        let error = FsError::at("read", path)(io::ErrorKind::NotFound.into());
        assert_eq!(error.to_string(), "could not read /a\\x1B[2J/b");
        assert!(error.is_not_found());
        assert!(std::error::Error::source(&error).is_some());
        let other = FsError::new("read", path, io::ErrorKind::PermissionDenied.into());
        assert!(!other.is_not_found());
        assert_eq!(other.kind(), io::ErrorKind::PermissionDenied);
    }
}
