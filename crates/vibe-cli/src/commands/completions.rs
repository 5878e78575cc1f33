//! `vibe completions`.

use clap::CommandFactory as _;
use serde::Serialize;

use crate::answer::Answer;
use crate::arguments::{Arguments, CompletionsArguments};
use crate::user_error::UserError;

/// A script that completes command lines.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
struct Completions {
    /// The shell that reads it.
    shell: String,
    /// Its text.
    script: String,
}

/// Prints the script for a shell. A shell asks for it as it starts, so nothing but the command line
/// is looked at: neither settings nor a project can be in its way.
pub(super) fn run(arguments: &CompletionsArguments) -> Result<Answer, UserError> {
    let mut script = Vec::new();
    clap_complete::generate(
        arguments.shell,
        &mut Arguments::command(),
        "vibe",
        &mut script,
    );
    let completions = Completions {
        shell: arguments.shell.to_string(),
        script: String::from_utf8_lossy(&script).into_owned(),
    };
    Answer::view(&completions, completions.script.clone())
}
