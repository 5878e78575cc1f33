//! `vibe tree`.

use vibe_install::TreeRequest;

use super::App;
use crate::answer::Answer;
use crate::arguments::TreeArguments;
use crate::locale::is_utf8;
use crate::render;
use crate::user_error::UserError;

/// Shows which packages require which.
pub(super) fn run(app: &App<'_>, arguments: &TreeArguments) -> Result<Answer, UserError> {
    let request = TreeRequest {
        packages: arguments.packages.clone(),
        inverted: arguments.invert,
    };
    let report = vibe_install::tree(&app.context(), &request).map_err(|error| app.error(&error))?;
    let drawing = render::tree::Drawing {
        depth: arguments.depth,
        is_utf8: is_utf8(|name| app.settings.variable(name)),
    };
    Answer::view(&report, render::tree::text(&report, drawing))
}
