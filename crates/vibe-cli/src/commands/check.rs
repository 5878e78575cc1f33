//! `vibe check`.

use super::App;
use crate::answer::Answer;
use crate::arguments::CheckArguments;
use crate::exit_code;
use crate::render;
use crate::user_error::UserError;

/// Looks at a package of one's own.
pub(super) fn run(app: &App<'_>, arguments: &CheckArguments) -> Result<Answer, UserError> {
    let report = vibe_install::check(&app.context(), arguments.directory.as_deref())
        .map_err(|error| app.error(&error))?;
    let mut answer = Answer::view(&report, render::check::text(&report))?;
    if report.errors > 0 {
        answer.exit_code = exit_code::FAILED;
    }
    Ok(answer)
}
