//! `vibe init`.

use vibe_core::text::escape;
use vibe_install::{InitKind, InitReport, init};

use super::App;
use crate::answer::Answer;
use crate::arguments::InitArguments;
use crate::user_error::UserError;

/// Starts a project or a package.
pub(super) fn run(app: &App<'_>, arguments: &InitArguments) -> Result<Answer, UserError> {
    let kind = match arguments.package {
        true => InitKind::Package,
        false => InitKind::Project,
    };
    let report = init(&app.settings.start, arguments.directory.as_deref(), kind)
        .map_err(|error| app.error(&error))?;
    Answer::new(&report, text(&report))
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
