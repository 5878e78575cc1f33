//! Oddities of a package that are no reason to refuse it.

use std::fmt;

use vibe_core::RelPath;

/// Something odd that is no reason to refuse a package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ListingNote {
    /// A file has permissions that are not installed.
    Permissions {
        /// The file.
        path: RelPath,
        /// Its twelve permission bits.
        permissions: u32,
    },
    /// A line of an ignore file is no pattern and had no effect.
    NoPattern {
        /// The ignore file, in the package, escaped.
        file: String,
        /// Counted from 1.
        line: usize,
    },
    /// A file of git LFS: what ships is the pointer, not the content.
    LargeFilePointer {
        /// The file.
        path: RelPath,
        /// Bytes of the content that it stands for.
        bytes: u64,
    },
}

impl fmt::Display for ListingNote {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ListingNote::Permissions { path, permissions } => {
                let installed = if permissions & 0o100 == 0 {
                    0o644
                } else {
                    0o755
                };
                write!(
                    out,
                    "`{path}` has mode {permissions:04o}; it is installed with {installed:04o}"
                )
            }
            ListingNote::NoPattern { file, line } => {
                write!(
                    out,
                    "line {line} of `{file}` is no pattern and has no effect"
                )
            }
            ListingNote::LargeFilePointer { path, bytes } => {
                write!(
                    out,
                    "`{path}` is a git LFS pointer; its content of {bytes} bytes is kept elsewhere \
                     and is not installed"
                )
            }
        }
    }
}
