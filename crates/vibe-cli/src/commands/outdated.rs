//! `vibe outdated`.

use vibe_install::{InstallError, OutdatedRequest};

use super::App;
use crate::answer::Answer;
use crate::arguments::OutdatedArguments;
use crate::exit_code;
use crate::render;
use crate::user_error::UserError;

/// Shows what an update would bring, and what there is besides. That there is something is no
/// failure; that a source gave no answer is one.
pub(super) fn run(app: &App<'_>, arguments: &OutdatedArguments) -> Result<Answer, UserError> {
    let request = OutdatedRequest {
        packages: arguments.packages.clone(),
        all: arguments.all,
    };
    let report =
        vibe_install::outdated(&app.context(), &request).map_err(|error| app.error(&error))?;
    let mut answer = Answer::view(&report, render::outdated::text(&report, app.width))?;
    if let Some((first, others)) = report.failures.split_first() {
        answer.failures.push(told(app, first, others.len()));
        answer.exit_code = exit_code::FAILED;
    }
    Ok(answer)
}

/// The first failure in full, and how many there are besides: each stands in its row.
fn told(app: &App<'_>, first: &InstallError, others: usize) -> UserError {
    let error = app.error(first);
    match others {
        0 => error,
        1 => error.caused_by("1 other answer is missing; `--json` says which and why"),
        _ => error.caused_by(format!(
            "{others} other answers are missing; `--json` says which and why"
        )),
    }
}
