//! `vibe hooks`.

use vibe_install::{HookRunRequest, hooks_list, hooks_log, hooks_run};

use super::App;
use crate::answer::Answer;
use crate::arguments::{HooksCommand, HooksListArguments, HooksLogArguments, HooksRunArguments};
use crate::render;
use crate::user_error::UserError;

/// Looks at install hooks, or runs them.
pub(super) fn run(app: &App<'_>, command: &HooksCommand) -> Result<Answer, UserError> {
    match command {
        HooksCommand::List(arguments) => list(app, arguments),
        HooksCommand::Log(arguments) => log(app, arguments),
        HooksCommand::Run(arguments) => run_now(app, arguments),
    }
}

fn list(app: &App<'_>, arguments: &HooksListArguments) -> Result<Answer, UserError> {
    let hooks = hooks_list(&app.context(), arguments.package.as_ref())
        .map_err(|error| app.error(&error))?;
    Answer::view(&hooks, render::hooks::list_text(&hooks))
}

fn log(app: &App<'_>, arguments: &HooksLogArguments) -> Result<Answer, UserError> {
    let log = hooks_log(&app.context(), arguments.package.as_ref(), arguments.phase)
        .map_err(|error| app.error(&error))?;
    Answer::view(&log, render::hooks::log_text(log.as_ref()))
}

fn run_now(app: &App<'_>, arguments: &HooksRunArguments) -> Result<Answer, UserError> {
    let request = HookRunRequest {
        package: arguments.package.clone(),
        phase: arguments.phase,
        force: arguments.force,
    };
    let report = hooks_run(&app.context(), &request).map_err(|error| app.error(&error))?;
    let text = match report.hooks.is_empty() {
        true => format!(
            "nothing to do: no install hook of {} is due\n",
            arguments.package
        ),
        false => render::run::text(&report, &app.view()),
    };
    app.answer_of_run_with(&report, text)
}
