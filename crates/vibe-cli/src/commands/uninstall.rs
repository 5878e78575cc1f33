//! `vibe uninstall`.

use vibe_install::UninstallRequest;

use super::App;
use crate::answer::Answer;
use crate::arguments::UninstallArguments;
use crate::user_error::UserError;

/// Takes requirements out, and removes what nothing needs any more.
pub(super) fn run(app: &App<'_>, arguments: &UninstallArguments) -> Result<Answer, UserError> {
    let request = UninstallRequest {
        packages: arguments.packages.clone(),
        dry_run: arguments.dry_run,
        force: arguments.force,
    };
    let report =
        vibe_install::uninstall(&app.context(), &request).map_err(|error| app.error(&error))?;
    app.answer_of_run(&report)
}
