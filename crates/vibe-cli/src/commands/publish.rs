//! `vibe publish`.

use vibe_install::PublishRequest;

use super::App;
use crate::answer::Answer;
use crate::arguments::PublishArguments;
use crate::render;
use crate::user_error::UserError;

/// Publishes a package of one's own.
pub(super) fn run(app: &App<'_>, arguments: &PublishArguments) -> Result<Answer, UserError> {
    let request = PublishRequest {
        directory: arguments.directory.clone(),
        registry: arguments.registry.clone(),
        dry_run: arguments.dry_run,
    };
    let report =
        vibe_install::publish(&app.context(), &request).map_err(|error| app.error(&error))?;
    Answer::new(&report, render::publish::text(&report))
}
