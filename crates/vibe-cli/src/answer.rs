//! What a command has to say.

use serde::Serialize;
use serde_json::Value;

use crate::exit_code;
use crate::user_error::{FailedHook, UserError};

/// The result of a command that came to one.
#[derive(Debug)]
pub(crate) struct Answer {
    /// For people, on standard output; lines, styled.
    pub(crate) text: String,
    /// What failed although the command came to a result, which tells it too.
    pub(crate) failures: Vec<UserError>,
    /// Install hooks that failed although the command came to a result.
    pub(crate) failed_hooks: Vec<FailedHook>,
    /// What the user can do next.
    pub(crate) hints: Vec<String>,
    /// For programs.
    pub(crate) result: Value,
    /// How the program ends.
    pub(crate) exit_code: u8,
    /// Whether looking was all that was asked, so that a quiet command shows it too.
    pub(crate) is_view: bool,
}

impl Answer {
    /// `result`, shown to people as `text`; a success.
    pub(crate) fn new(result: &impl Serialize, text: String) -> Result<Self, UserError> {
        let result = serde_json::to_value(result).map_err(|error| {
            UserError::new(
                "output",
                exit_code::FAILED,
                "the result cannot be written as JSON",
            )
            .caused_by(error.to_string())
        })?;
        Ok(Self {
            text,
            failures: Vec::new(),
            failed_hooks: Vec::new(),
            hints: Vec::new(),
            result,
            exit_code: exit_code::DONE,
            is_view: false,
        })
    }

    /// The same for a command that only looks.
    pub(crate) fn view(result: &impl Serialize, text: String) -> Result<Self, UserError> {
        Self::new(result, text).map(|answer| Self {
            is_view: true,
            ..answer
        })
    }
}
