//! `vibe install`, `vibe update` and `vibe reinstall`.

use vibe_core::formats::manifest::GitReference;
use vibe_install::{Additions, GitAddition, InstallRequest, RepairRequest, UpdateRequest};

use super::App;
use crate::answer::Answer;
use crate::arguments::{InstallArguments, ReinstallArguments, UpdateArguments};
use crate::exit_code;
use crate::user_error::UserError;

/// Installs what the project requires.
pub(super) fn install(app: &App<'_>, arguments: &InstallArguments) -> Result<Answer, UserError> {
    let request = InstallRequest {
        additions: Additions {
            specs: arguments.specs.clone(),
            git: addition(arguments).into_iter().collect(),
            exact: arguments.exact,
        },
        locked: arguments.locked,
        dry_run: arguments.dry_run,
        force: arguments.force,
    };
    let report =
        vibe_install::install(&app.context(), &request).map_err(|error| app.error(&error))?;
    app.answer_of_run(&report)
}

/// The repository that the options name.
fn addition(arguments: &InstallArguments) -> Option<GitAddition> {
    let tag = arguments.tag.clone().map(GitReference::Tag);
    let branch = arguments.branch.clone().map(GitReference::Branch);
    let revision = arguments.rev.clone().map(GitReference::Rev);
    Some(GitAddition {
        url: arguments.git.clone()?,
        reference: tag.or(branch).or(revision),
    })
}

/// Takes what the requirements allow now.
pub(super) fn update(app: &App<'_>, arguments: &UpdateArguments) -> Result<Answer, UserError> {
    if arguments.precise.is_some() && arguments.packages.len() != 1 {
        let message = "--precise is of one package, so name just one";
        return Err(UserError::new("usage", exit_code::USAGE, message));
    }
    let request = UpdateRequest {
        packages: arguments.packages.clone(),
        precise: arguments.precise.clone(),
        dry_run: arguments.dry_run,
        force: arguments.force,
    };
    let report =
        vibe_install::update(&app.context(), &request).map_err(|error| app.error(&error))?;
    app.answer_of_run(&report)
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
    app.answer_of_run(&report)
}
