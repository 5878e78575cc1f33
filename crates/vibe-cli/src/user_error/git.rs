//! What helps where a repository does not serve.

use vibe_core::git_url::GitUrlError;
use vibe_install::{GitError, InstallError};

use crate::paste::Paste;

pub(super) fn hint(error: &InstallError, paste: &Paste) -> Option<String> {
    match error {
        InstallError::GitUrl {
            source: GitUrlError::Plain { host, .. },
            ..
        }
        | InstallError::RegistryUrl {
            source: GitUrlError::Plain { host, .. },
            ..
        } => Some(format!(
            "use https or ssh; or, if you trust the way to that host, add `{host}` to \
             `insecure-hosts` in `[git]` of your config.toml"
        )),
        InstallError::NoPackageInRepository { .. } => Some(
            "a package has a vibe.toml at its root; name the directory that has one with `subdir`"
                .to_owned(),
        ),
        InstallError::SpecIsNoPackage { .. } => Some(
            "a package has a vibe.toml at its root; one in a directory of the repository is \
             required with `subdir` in vibe.toml"
                .to_owned(),
        ),
        InstallError::NoCacheFolder => {
            Some("set HOME, or VIBE_PKG_HOME to an absolute path".to_owned())
        }
        InstallError::Git {
            id: Some(id),
            source,
        } if matches!(**source, GitError::VanishedCommit { .. }) => Some(format!(
            "take what is there now: {}",
            paste.line(&["update", id.as_str()])
        )),
        InstallError::Git { source, .. } if matches!(**source, GitError::Cache { .. }) => Some(
            "make that a place that you may write, or name another one with VIBE_PKG_HOME"
                .to_owned(),
        ),
        InstallError::Git { source, .. } => token_hint(source),
        InstallError::EmptyRepository { .. } => {
            Some("push a branch or a tag to it first".to_owned())
        }
        InstallError::NoVersionTags { .. } => Some(
            "tag a version there, as `v1.0.0`, or require a `tag`, `branch` or `rev` in its place"
                .to_owned(),
        ),
        InstallError::LocalRepository { id, .. } => Some(format!(
            "publish a version of {id} that names a repository others can reach; one that is \
             itself on this machine may name an absolute path"
        )),
        _ => None,
    }
}

/// How a host that asks for credentials gets some.
fn token_hint(error: &GitError) -> Option<String> {
    match error {
        GitError::AuthenticationRequired { host, .. }
        | GitError::CredentialsRefused { host, .. } => Some(format!(
            "a token for {host} can be given in the variable {}",
            vibe_install::token_variable(host)
        )),
        _ => None,
    }
}
