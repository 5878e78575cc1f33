//! `vibe runs`.

use vibe_core::text::escape;
use vibe_install::{runs_list, runs_show};

use super::App;
use crate::answer::Answer;
use crate::arguments::{RunsCommand, RunsShowArguments};
use crate::exit_code;
use crate::render;
use crate::user_error::UserError;

/// Looks at past runs.
pub(super) fn run(app: &App<'_>, command: &RunsCommand) -> Result<Answer, UserError> {
    match command {
        RunsCommand::List => list(app),
        RunsCommand::Show(arguments) => show(app, arguments),
    }
}

fn list(app: &App<'_>) -> Result<Answer, UserError> {
    let runs = runs_list(&app.context()).map_err(|error| app.error(&error))?;
    Answer::view(&runs, render::runs::list_text(&runs))
}

fn show(app: &App<'_>, arguments: &RunsShowArguments) -> Result<Answer, UserError> {
    let name = arguments.run.as_deref();
    let run = runs_show(&app.context(), name).map_err(|error| app.error(&error))?;
    match (&run, name) {
        (Some(run), _) => Answer::view(run, render::runs::show_text(run)),
        (None, None) => Answer::view(&run, render::runs::list_text(&[])),
        (None, Some(name)) => {
            let message = format!("no run `{}` is kept", escape(name));
            let mut error = UserError::new("no-such-run", exit_code::FAILED, message);
            let command = app.paste.line(&["runs", "list"]);
            error
                .hints
                .push(format!("see which runs are kept: {command}"));
            Err(error)
        }
    }
}
