//! Whether what agents see is what was written for them, and what the installed packages ask for.

use vibe_core::formats::lock::Lock;
use vibe_core::formats::projections::{ProjectedPath, ProjectionForm};
use vibe_core::formats::state::MachineState;
use vibe_core::{RelPath, Sha256Digest};
use vibe_projection::edits::shown_by_block;

use crate::error::InstallError;
use crate::error::chain;
use crate::planning::Planned;
use crate::project::Project;
use crate::projection::{self, Moment, read_projected, read_projections};
use crate::report::{Finding, FindingKind, VerifyReport};

/// Looks at every recorded path; and, where nothing else is amiss, at what the packages ask for.
pub(crate) fn look_at_projections(
    project: &Project,
    lock: &Lock,
    state: &MachineState,
    report: &mut VerifyReport,
) -> Result<(), InstallError> {
    let known = read_projections(&project.layout)?.projections;
    for row in &known.paths {
        let fault = fault_of(project, row)?;
        let found = fault.map(|message| finding(Some(&row.path), message));
        report.findings.extend(found);
    }
    // What a damaged slot asks for is not what its package does.
    if !report.findings.is_empty() {
        return Ok(());
    }
    let planned = Planned {
        lock: lock.clone(),
        state: state.clone(),
        ..Planned::default()
    };
    match projection::project(project, &planned, Moment::Prepared(state)) {
        Ok(projected) => report.findings.extend(projected.files.iter().map(|file| {
            let text = format!("{} is not as the installed packages ask for", file.path);
            finding(Some(&file.path), text)
        })),
        Err(
            error @ (InstallError::BootText { .. }
            | InstallError::Project { .. }
            | InstallError::ProjectedPath { .. }),
        ) => report.findings.push(finding(None, chain(&error))),
        Err(error) => return Err(error),
    }
    Ok(())
}

/// What is wrong with the path of `row`, if anything is.
fn fault_of(project: &Project, row: &ProjectedPath) -> Result<Option<String>, InstallError> {
    let path = &row.path;
    let bytes = match read_projected(project, path) {
        Ok(bytes) => bytes,
        Err(error @ InstallError::ProjectedPath { .. }) => return Ok(Some(chain(&error))),
        Err(error) => return Err(error),
    };
    let Some(bytes) = bytes else {
        return Ok(Some(format!("{path} is missing")));
    };
    let shown = match row.form {
        ProjectionForm::File => Ok(Some(Sha256Digest::of(&bytes))),
        ProjectionForm::Block => shown_by_block(&String::from_utf8_lossy(&bytes)),
    };
    Ok(match shown {
        Ok(Some(shown)) if shown == row.sha256 => None,
        Ok(None) => Some(format!("the block of vibe in {path} is missing")),
        Ok(Some(_)) if row.form == ProjectionForm::Block => {
            Some(format!("the block of vibe in {path} was changed"))
        }
        Ok(Some(_)) => Some(format!("{path} was changed")),
        Err(error) => Some(format!("{path}: {error}")),
    })
}

fn finding(path: Option<&RelPath>, message: String) -> Finding {
    Finding {
        package: None,
        slot: None,
        path: path.cloned(),
        kind: FindingKind::Projection,
        message,
    }
}
