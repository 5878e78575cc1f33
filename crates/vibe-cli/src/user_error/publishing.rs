//! What helps where a package cannot be published.

use std::path::Path;

use vibe_core::text::{escape, nearest, shell_quote};
use vibe_install::{PublishError, PublishingError};

use super::{AGAIN, REGISTRY};
use crate::paste::Paste;

pub(super) fn hints(error: &PublishingError) -> Vec<String> {
    match error {
        PublishingError::UnknownRegistry { name, known, .. } => {
            let near = nearest(name, known.iter().map(String::as_str));
            vec![match (near, known.is_empty()) {
                (Some(near), _) => format!("did you mean `{near}`?"),
                (None, true) => {
                    "add a `[[registry]]` with that name and its `url` to the vibe.toml \
                                 of the package"
                        .to_owned()
                }
                (None, false) => format!("these are named: {}", known.join(", ")),
            }]
        }
        PublishingError::Forbidden { allowed, .. } => vec![match allowed.is_empty() {
            true => "write `publish = true` into its vibe.toml if it is meant to be".to_owned(),
            false => format!("it may go to: {}", allowed.join(", ")),
        }],
        PublishingError::GitRegistry {
            version,
            repository,
            directory,
            ..
        } => git_publication_hints(&format!("v{version}"), repository.as_deref(), directory),
        PublishingError::InPackage { .. } => vec![
            "each version would ship the versions before it: keep the registry beside the package"
                .to_owned(),
        ],
        PublishingError::CheckFailed { directory, .. } => {
            let directory = directory.to_string_lossy();
            let command = Paste::default().line(&["check", &directory]);
            vec![format!("mend them; to see all that is found: {command}")]
        }
        PublishingError::Registry {
            directory, source, ..
        } => publish_hint(directory, source).into_iter().collect(),
    }
}

/// The commands of git that publish the committed state of `directory` as `tag`.
fn git_publication_hints(tag: &str, repository: Option<&str>, directory: &Path) -> Vec<String> {
    let directory = directory.to_string_lossy();
    let remote = repository.unwrap_or("origin");
    let line = |words: &[&str]| {
        let words = ["git", "-C", &directory]
            .into_iter()
            .chain(words.iter().copied());
        words.map(shell_quote).collect::<Vec<_>>().join(" ")
    };
    vec![
        format!(
            "commit what is to be published, then: {}",
            line(&["tag", tag])
        ),
        format!("and: {}", line(&["push", remote, "HEAD", tag])),
    ]
}

fn publish_hint(directory: &Path, error: &PublishError) -> Option<String> {
    let place = directory.to_string_lossy();
    match error {
        PublishError::NoRegistry(error) if error.is_not_found() => Some(format!(
            "correct the `url` of the registry in vibe.toml, or make the directory: mkdir -p {}",
            shell_quote(&place)
        )),
        PublishError::NoRegistry(_) => Some(REGISTRY.to_owned()),
        PublishError::OtherContent { .. } => Some(
            "a published version never changes: raise `version` in vibe.toml, and publish that"
                .to_owned(),
        ),
        PublishError::Unsound(_) | PublishError::ReadBack(_) => Some(
            "restore the files of this version in the registry, or publish another version"
                .to_owned(),
        ),
        PublishError::Busy { .. } => Some(AGAIN.to_owned()),
        PublishError::Reading(_) => Some(
            "put a copy in place of a link to a directory, or change the rule of `.vibeignore` that \
             aims at it"
                .to_owned(),
        ),
        PublishError::Parent(_)
        | PublishError::Fs(_)
        | PublishError::Copy(_)
        | PublishError::Remove(_) => Some(format!(
            "make {} a directory that you may write",
            escape(&place)
        )),
        PublishError::Changed { .. } | PublishError::Source(_) | PublishError::Interrupted => None,
    }
}
