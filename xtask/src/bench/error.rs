//! Why something could not be measured.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};

use crate::workspace;

/// Why something could not be measured. What was measured and is over its budget is no error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A program that this needs.
    #[error("{name} was not found on PATH; install it")]
    NoProgram { name: String },
    /// A file that could not be made, read or found.
    #[error("{doing} {}: {source}", path.display())]
    Files {
        doing: &'static str,
        path: PathBuf,
        source: std::io::Error,
    },
    /// A program that could not be started or waited for.
    #[error("starting `{command}`: {source}")]
    Start {
        command: String,
        source: std::io::Error,
    },
    /// A program that ended with an error.
    #[error("`{command}` failed ({status})\n{said}")]
    Failed {
        command: String,
        status: ExitStatus,
        said: String,
    },
    /// A run that ended well and did something else than the others, so that its time says nothing.
    #[error(
        "{contender} left {found} of {expected} files in {}; its time says nothing about an install",
        place.display()
    )]
    OtherResult {
        contender: String,
        place: PathBuf,
        found: usize,
        expected: usize,
    },
    /// What the checks can say as well.
    #[error(transparent)]
    Workspace(#[from] workspace::Error),
}

impl Error {
    /// While `doing` something with `path`.
    pub(crate) fn files(doing: &'static str, path: &Path, source: std::io::Error) -> Self {
        Self::Files {
            doing,
            path: path.to_owned(),
            source,
        }
    }

    /// Of starting `command`.
    pub(crate) fn start(command: &Command, source: std::io::Error) -> Self {
        Self::Start {
            command: shown(command),
            source,
        }
    }
}

/// The program and its arguments, for a message.
pub(crate) fn shown(command: &Command) -> String {
    let words = std::iter::once(command.get_program()).chain(command.get_args());
    let words: Vec<_> = words.map(|word| word.to_string_lossy()).collect();
    words.join(" ")
}
