//! `vibe list`.

use super::App;
use crate::answer::Answer;
use crate::arguments::ListArguments;
use crate::render;
use crate::user_error::UserError;

/// Lists the installed packages, or their items.
pub(super) fn run(app: &App<'_>, arguments: &ListArguments) -> Result<Answer, UserError> {
    let (context, packages) = (app.context(), &arguments.packages);
    if arguments.items {
        let items = vibe_install::items(&context, packages).map_err(|error| app.error(&error))?;
        return Answer::view(&items, render::items::text(&items));
    }
    let packages = vibe_install::list(&context, packages).map_err(|error| app.error(&error))?;
    Answer::view(&packages, render::list::text(&packages, app.width))
}
