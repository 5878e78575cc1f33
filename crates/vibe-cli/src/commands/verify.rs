//! `vibe verify`.

use vibe_core::PackageId;
use vibe_install::{Finding, FindingKind, RepairRequest};

use super::App;
use super::install::repair;
use crate::answer::Answer;
use crate::arguments::VerifyArguments;
use crate::exit_code;
use crate::render;
use crate::user_error::UserError;

/// Proves, or restores, what is on disk.
pub(super) fn run(app: &App<'_>, arguments: &VerifyArguments) -> Result<Answer, UserError> {
    if arguments.repair {
        let packages = arguments.packages.clone();
        let command = "verify --repair";
        return repair(
            app,
            &RepairRequest {
                packages,
                force: arguments.force,
                command,
            },
        );
    }
    let report = vibe_install::verify(&app.context(), &arguments.packages)
        .map_err(|error| app.error(&error))?;
    let mut answer = Answer::new(&report, render::verify::text(&report, app.view().elapsed))?;
    answer.exit_code = exit_code::of_findings(&report);
    let hint = match report.findings.iter().any(is_of_lock) {
        true => Some(format!(
            "restore vibe.lock from version control; or, if the places that vibe.toml states are \
             wanted, run: {}",
            app.paste.line(&["install"])
        )),
        false => hint(app, answer.exit_code, &arguments.packages),
    };
    answer.hints = hint.into_iter().collect();
    Ok(answer)
}

/// Whether the lock itself names another place than the manifests: nothing is restored from it.
fn is_of_lock(finding: &Finding) -> bool {
    finding.kind == FindingKind::Integrity && finding.slot.is_none()
}

fn hint(app: &App<'_>, exit_code: u8, packages: &[PackageId]) -> Option<String> {
    let repair: Vec<&str> = ["verify", "--repair"]
        .into_iter()
        .chain(packages.iter().map(PackageId::as_str))
        .collect();
    match exit_code {
        exit_code::DONE => None,
        exit_code::OUT_OF_DATE | exit_code::FLAGGED => Some(format!(
            "bring it up to date: {}",
            app.paste.line(&["install"])
        )),
        _ => Some(format!(
            "restore what vibe.lock says: {}",
            app.paste.line(&repair)
        )),
    }
}
