//! `vibe show`.

use super::App;
use crate::answer::Answer;
use crate::arguments::ShowArguments;
use crate::render;
use crate::user_error::UserError;

/// Shows all that is known of a package.
pub(super) fn run(app: &App<'_>, arguments: &ShowArguments) -> Result<Answer, UserError> {
    let (id, constraint) = &arguments.package;
    let report = vibe_install::show(&app.context(), id, constraint.as_ref())
        .map_err(|error| app.error(&error))?;
    Answer::view(&report, render::show::text(&report))
}
