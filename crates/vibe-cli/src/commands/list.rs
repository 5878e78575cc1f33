//! `vibe list`.

use super::App;
use crate::answer::Answer;
use crate::render;
use crate::user_error::UserError;

/// Lists the installed packages.
pub(super) fn run(app: &App<'_>) -> Result<Answer, UserError> {
    let packages = vibe_install::list(&app.context()).map_err(|error| app.error(&error))?;
    Answer::view(&packages, render::list::text(&packages))
}
