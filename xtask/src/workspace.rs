//! The workspace as the checks see it: its files, and what cargo says of it.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde::de::DeserializeOwned;

/// Why a check could not be made. A check that was made and found something is no error.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Error {
    /// A file that could not be read.
    #[error("reading {}: {source}", path.display())]
    Read {
        path: PathBuf,
        source: std::io::Error,
    },
    /// A TOML file of another shape than its check expects.
    #[error("reading {}: {source}", path.display())]
    Toml {
        path: PathBuf,
        source: Box<toml::de::Error>,
    },
    /// A file or an answer that says something its check cannot use.
    #[error("{what}: {reason}")]
    Content { what: String, reason: String },
    /// A program that could not be started.
    #[error("starting `{command}`: {source}")]
    Start {
        command: String,
        source: std::io::Error,
    },
    /// A program that ended with an error; what it said stands above.
    #[error("`{command}` failed ({status})")]
    Failed {
        command: String,
        status: std::process::ExitStatus,
    },
}

/// The root of the workspace.
pub(crate) struct Workspace {
    root: PathBuf,
}

impl Workspace {
    /// The workspace this program was built in.
    pub(crate) fn of_this_build() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent();
        Self {
            root: root.expect("xtask lies in the workspace").to_owned(),
        }
    }

    /// The place of `relative`.
    pub(crate) fn path(&self, relative: &str) -> PathBuf {
        self.root.join(relative)
    }

    /// The text of the file at `relative`.
    pub(crate) fn text(&self, relative: &str) -> Result<String, Error> {
        read(&self.path(relative))
    }

    /// The TOML file at `relative`, as a value.
    pub(crate) fn toml<T: DeserializeOwned>(&self, relative: &str) -> Result<T, Error> {
        read_toml(&self.path(relative))
    }

    /// What `program` with `arguments`, run at the root, writes to its standard output.
    #[expect(
        clippy::disallowed_methods,
        reason = "the one place where a check starts a program: cargo, or a test binary's listing"
    )]
    pub(crate) fn output(&self, program: &str, arguments: &[&str]) -> Result<String, Error> {
        let command = [&[program], arguments].concat().join(" ");
        let output = Command::new(program)
            .args(arguments)
            .current_dir(&self.root)
            .stdin(Stdio::null())
            .stderr(Stdio::inherit())
            .output()
            .map_err(|source| Error::Start {
                command: command.clone(),
                source,
            })?;
        if !output.status.success() {
            return Err(Error::Failed {
                command,
                status: output.status,
            });
        }
        String::from_utf8(output.stdout).map_err(|_| Error::Content {
            what: format!("what `{command}` printed"),
            reason: "it is not UTF-8".to_owned(),
        })
    }
}

/// The text of the file at `path`.
pub(crate) fn read(path: &Path) -> Result<String, Error> {
    std::fs::read_to_string(path).map_err(|source| Error::Read {
        path: path.to_owned(),
        source,
    })
}

/// The TOML file at `path`, as a value.
pub(crate) fn read_toml<T: DeserializeOwned>(path: &Path) -> Result<T, Error> {
    toml::from_str(&read(path)?).map_err(|source| Error::Toml {
        path: path.to_owned(),
        source: Box::new(source),
    })
}

/// The JSON in `text`, which is what `what` printed.
pub(crate) fn parse_json<T: DeserializeOwned>(what: &str, text: &str) -> Result<T, Error> {
    serde_json::from_str(text).map_err(|error| Error::Content {
        what: format!("what `{what}` printed"),
        reason: error.to_string(),
    })
}
