//! What helps where something cannot be written for agents to see.

use std::path::Path;

use vibe_core::formats::projections::ProjectionsError;
use vibe_core::text::shell_quote;
use vibe_install::{BLOCK_BEGIN, BLOCK_END, EditError, InstallError, ProjectedFault, ReadError};

use super::NEWER;
use crate::paste::Paste;

/// What helps where something cannot be written for agents to see.
pub(super) fn hint(error: &InstallError, paste: &Paste) -> Option<String> {
    match error {
        InstallError::ReadProjections {
            source: ReadError::NotAFile { path, .. } | ReadError::TooLarge { path, .. },
        } => Some(format!(
            "restore it from version control, or move it away: {}",
            move_aside(path)
        )),
        InstallError::Projections {
            source: ProjectionsError::Newer { .. },
        } => Some(NEWER.to_owned()),
        InstallError::Projections { .. } => Some(format!(
            "restore it from version control, or let vibe make it anew: {}",
            paste.line(&["verify", "--repair"])
        )),
        InstallError::BootText { id, fault, .. } => Some(match &**fault {
            ProjectedFault::Missing => format!(
                "a package has to ship the text that its `[boot]` names, or make it in pre-install; \
                 if it was removed here: {}",
                paste.line(&["reinstall", id.as_str()])
            ),
            ProjectedFault::NotMade => format!(
                "if it was removed here, have it made again: {}; if that does not make it, {id} is at fault",
                paste.line(&["hooks", "run", id.as_str(), "--force"])
            ),
            _ => format!("mend it in {id}; a boot text is a regular file of UTF-8, at most 1 MiB"),
        }),
        InstallError::ProjectedPath { path, fault } => Some(match &**fault {
            ProjectedFault::Outgrown => {
                "shorten it, or uninstall a package that brings a long static text".to_owned()
            }
            ProjectedFault::Text(_) => {
                format!("save it as UTF-8, or move it away: {}", move_aside(path))
            }
            ProjectedFault::TooLarge { .. } => {
                format!("shorten it, or move it away: {}", move_aside(path))
            }
            _ => format!(
                "put what belongs there, or move it away: {}",
                move_aside(path)
            ),
        }),
        InstallError::Project {
            root,
            source: EditError::Foreign { path },
        } => Some(format!("move it away: {}", move_aside(&path.under(root)))),
        InstallError::Project { .. } => Some(format!(
            "between `{BLOCK_BEGIN}` and `{BLOCK_END}`, each once on a line of its own, stands what vibe \
             writes: put the missing one back, or remove both"
        )),
        _ => None,
    }
}

/// The command that renames `path`.
fn move_aside(path: &Path) -> String {
    let from = path.to_string_lossy();
    let to = format!("{from}.mine");
    format!("mv -- {} {}", shell_quote(&from), shell_quote(&to))
}
