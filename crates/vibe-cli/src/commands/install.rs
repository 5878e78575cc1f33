//! `vibe install` and `vibe reinstall`.

use vibe_install::{InstallRequest, RepairRequest};

use super::App;
use crate::answer::Answer;
use crate::arguments::{InstallArguments, ReinstallArguments};
use crate::render;
use crate::user_error::UserError;

/// Installs what the project requires.
pub(super) fn install(app: &App<'_>, arguments: &InstallArguments) -> Result<Answer, UserError> {
    let request = InstallRequest {
        specs: arguments.specs.clone(),
        exact: arguments.exact,
        locked: arguments.locked,
        dry_run: arguments.dry_run,
        force: arguments.force,
    };
    let report =
        vibe_install::install(&app.context(), &request).map_err(|error| app.error(&error))?;
    let mut answer = app.run_answer(&report, render::run::text(&report, &app.view()))?;
    answer.is_view = arguments.dry_run;
    Ok(answer)
}

/// Puts packages back to what the lock says.
pub(super) fn reinstall(
    app: &App<'_>,
    arguments: &ReinstallArguments,
) -> Result<Answer, UserError> {
    let packages = arguments.packages.clone();
    repair(
        app,
        &RepairRequest {
            packages,
            force: arguments.force,
            command: "reinstall",
        },
    )
}

/// Restores packages.
pub(super) fn repair(app: &App<'_>, request: &RepairRequest) -> Result<Answer, UserError> {
    let report =
        vibe_install::repair(&app.context(), request).map_err(|error| app.error(&error))?;
    app.run_answer(&report, render::run::text(&report, &app.view()))
}
