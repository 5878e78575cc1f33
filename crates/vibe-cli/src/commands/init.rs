//! `vibe init`.

use vibe_core::text::escape;
use vibe_core::{Event, Observer as _};
use vibe_install::{InitKind, InitReport, init};

use super::App;
use crate::answer::Answer;
use crate::arguments::InitArguments;
use crate::observer::Verbosity;
use crate::paste::Paste;
use crate::user_error::UserError;

/// Starts a project or a package.
pub(super) fn run(app: &App<'_>, arguments: &InitArguments) -> Result<Answer, UserError> {
    let kind = match arguments.package {
        true => InitKind::Package,
        false => InitKind::Project,
    };
    let named = arguments
        .directory
        .as_ref()
        .map(|named| app.settings.directory.join(named));
    let report =
        init(&app.settings.start, named.as_deref(), kind).map_err(|error| app.error(&error))?;
    if let Some(workspace) = &report.left_out_by {
        let workspace = escape(&workspace.to_string_lossy());
        app.reporter.observe(&Event::Note(format!(
            "the workspace {workspace} does not include it: `members` there says what belongs to it"
        )));
    }
    let mut answer = Answer::new(&report, text(&report))?;
    if app.verbosity != Verbosity::Quiet {
        answer.hints.push(hint(app, arguments, &report));
    }
    Ok(answer)
}

fn hint(app: &App<'_>, arguments: &InitArguments, report: &InitReport) -> String {
    match report.kind {
        InitKind::Project => {
            let paste = match arguments.directory {
                Some(_) => Paste::new(Some(&report.directory)),
                None => app.paste.clone(),
            };
            let command = paste.line(&["install", "path:DIR"]);
            format!("to install a package from a directory: {command}")
        }
        InitKind::Package => {
            let spec = format!("path:{}", report.directory.to_string_lossy());
            let command = Paste::default().line(&["install", &spec]);
            format!("to try it, require it from a project: {command}")
        }
    }
}

fn text(report: &InitReport) -> String {
    let what = match report.kind {
        InitKind::Project => "project",
        InitKind::Package => "package",
    };
    let directory = escape(&report.directory.to_string_lossy());
    let mut lines = vec![format!("started a {what} in {directory}")];
    lines.extend(
        report
            .files
            .iter()
            .map(|file| format!("    wrote {}", escape(file))),
    );
    lines.join("\n") + "\n"
}
