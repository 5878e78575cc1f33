//! `vibe why`.

use super::App;
use crate::answer::Answer;
use crate::arguments::WhyArguments;
use crate::render;
use crate::user_error::UserError;

/// Says what holds a package in the project.
pub(super) fn run(app: &App<'_>, arguments: &WhyArguments) -> Result<Answer, UserError> {
    let report =
        vibe_install::why(&app.context(), &arguments.package).map_err(|error| app.error(&error))?;
    Answer::view(&report, render::why::text(&report))
}
