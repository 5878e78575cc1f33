//! What can go wrong with a git repository: one variant for each thing a user can act on.
//!
//! `repository` is always the URL without credentials, or the path. What a server, a helper or a
//! library said is kept as a [`Cause`]: escaped and short.

use std::fmt;
use std::time::Duration;

use vibe_core::text::{escape, hide_credentials, shell_quote, shorten};
use vibe_fs::FsError;

use crate::object::CommitId;

/// Characters that are kept of what somebody else said about a failure.
const CAUSE_CHARACTERS: usize = 600;

/// Text about a failure that is not ours: a server's, a program's or a library's, safe to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cause(String);

impl Cause {
    /// `text`, escaped, with no credentials of a URL in it.
    pub(crate) fn new(text: &str) -> Self {
        let words = text.split_whitespace().map(hide_credentials);
        let text = words.collect::<Vec<_>>().join(" ");
        Self(escape(&shorten(&text, CAUSE_CHARACTERS)))
    }

    /// The messages of `error` and of everything below it, each once.
    pub(crate) fn of(error: &(dyn std::error::Error + 'static)) -> Self {
        let mut messages: Vec<String> = Vec::new();
        let mut next = Some(error);
        while let Some(error) = next {
            let message = error.to_string();
            let is_new = !message.is_empty() && messages.iter().all(|m| !m.contains(&message));
            if is_new {
                messages.push(message);
            }
            next = error.source();
        }
        Self::new(&messages.join(": "))
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Cause {}

/// A git repository could not give what was asked of it.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    /// There is a path, and no repository that can be opened.
    #[error("{repository} is not a git repository that can be read; check the path")]
    NotARepository {
        /// The path.
        repository: String,
        /// Why it was refused.
        source: Cause,
    },
    /// The commit has no such directory.
    #[error(
        "{repository} has no directory `{directory}` at commit {commit}; check the `subdir` of the dependency"
    )]
    NoSuchDirectory {
        /// The repository.
        repository: String,
        /// The commit looked at.
        commit: CommitId,
        /// The directory, escaped.
        directory: String,
    },
    /// Paths that fit into no memory.
    #[error(
        "the paths of commit {commit} of {repository} have more than {limit} bytes together; ask for a `subdir` of it"
    )]
    PathsTooLong {
        /// The repository.
        repository: String,
        /// The commit.
        commit: CommitId,
        /// The most bytes they may have.
        limit: usize,
    },
    /// A tree with more entries than are allowed.
    #[error(
        "commit {commit} of {repository} has more than {limit} entries; ask for a `subdir` of it, or raise the limit"
    )]
    TooManyEntries {
        /// The repository.
        repository: String,
        /// The commit looked at.
        commit: CommitId,
        /// The limit.
        limit: usize,
    },
    /// A tree that is nested deeper than is allowed.
    #[error("commit {commit} of {repository} nests directories deeper than {limit}: `{directory}`")]
    TooDeep {
        /// The repository.
        repository: String,
        /// The commit looked at.
        commit: CommitId,
        /// The limit.
        limit: usize,
        /// The first directory that is too deep, escaped.
        directory: String,
    },
    /// An entry of a tree whose name is a path.
    #[error(
        "commit {commit} of {repository} has an entry named `{name}`, and no name has a `/`; check the repository with `git fsck`"
    )]
    EntryName {
        /// The repository.
        repository: String,
        /// The commit looked at.
        commit: CommitId,
        /// The name, with what is above it, escaped.
        name: String,
    },
    /// An entry that is no file, link, directory or submodule.
    #[error(
        "`{path}` of {repository} has the mode {mode:o}, which means nothing; commit it again with a git that writes proper trees"
    )]
    OddEntry {
        /// The repository.
        repository: String,
        /// The entry, from the root or the `subdir` looked at, escaped.
        path: String,
        /// What its tree says of it.
        mode: u16,
    },
    /// An object larger than is allowed.
    #[error("object {object} of {repository} has {bytes} bytes, more than the limit of {limit}")]
    TooLarge {
        /// The repository.
        repository: String,
        /// The object.
        object: String,
        /// Its size.
        bytes: u64,
        /// The limit.
        limit: u64,
    },
    /// An object that is missing, damaged, or not what it is used as.
    #[error(
        "object {object} of {repository} cannot be read; check the repository with `git fsck`, and that it is no partial clone"
    )]
    Unreadable {
        /// The repository.
        repository: String,
        /// The object.
        object: String,
        /// What the library said.
        source: Cause,
    },
    /// The references of a repository cannot be listed.
    #[error("the branches and tags of {repository} cannot be read; check it with `git fsck`")]
    UnreadableRefs {
        /// The repository.
        repository: String,
        /// What the library said.
        source: Cause,
    },
    /// No tag of this name.
    #[error(
        "{repository} has no tag `{tag}`; its tags are listed by: git ls-remote --tags -- {}",
        shell_quote(repository)
    )]
    NoSuchTag {
        /// The repository.
        repository: String,
        /// The tag, escaped.
        tag: String,
    },
    /// No branch of this name.
    #[error(
        "{repository} has no branch `{branch}`; its branches are listed by: git ls-remote --heads -- {}",
        shell_quote(repository)
    )]
    NoSuchBranch {
        /// The repository.
        repository: String,
        /// The branch, escaped.
        branch: String,
    },
    /// Neither a tag, nor a branch, nor the beginning of the id of a commit.
    #[error(
        "{repository} has no tag, branch or commit `{revision}`; name one of them, a commit by at least 4 hex digits"
    )]
    NoSuchRevision {
        /// The repository.
        repository: String,
        /// The revision, escaped.
        revision: String,
    },
    /// The beginning of the ids of several commits.
    #[error("`{revision}` begins the id of several commits of {repository}; write more digits")]
    AmbiguousRevision {
        /// The repository.
        repository: String,
        /// The revision.
        revision: String,
    },
    /// `HEAD` names no commit.
    #[error("{repository} has no default branch, or no commit on it; name a tag or a branch")]
    NoDefaultBranch {
        /// The repository.
        repository: String,
    },
    /// A commit that was known is not there any more.
    #[error(
        "{repository} does not have commit {commit} any more: its history was rewritten, or the commit was never published; update the dependency"
    )]
    VanishedCommit {
        /// The repository.
        repository: String,
        /// The commit.
        commit: CommitId,
    },
    /// The server knows no such repository, or does not show it to us.
    #[error(
        "there is no repository {repository}, or it is private; check the URL and your access to it"
    )]
    NoSuchRepository {
        /// The repository.
        repository: String,
        /// What the server said.
        source: Cause,
    },
    /// The server wants credentials and there are none.
    #[error(
        "{host} asks for credentials for {repository}; give them to a git credential helper, or use an SSH URL"
    )]
    AuthenticationRequired {
        /// The host that asked.
        host: String,
        /// The repository.
        repository: String,
    },
    /// The server did not accept the credentials.
    #[error(
        "{host} refused the credentials for {repository}; renew them, and check what they may read"
    )]
    CredentialsRefused {
        /// The host that refused.
        host: String,
        /// The repository.
        repository: String,
    },
    /// Credentials would have gone over the network in clear text.
    #[error("{host} asks for credentials for {repository} without encryption; use its https URL")]
    UnencryptedCredentials {
        /// The host that asked.
        host: String,
        /// The repository.
        repository: String,
    },
    /// The `ssh` program gave up.
    #[error(
        "ssh could not read {repository}; check that `ssh {host}` works without asking anything (key in an agent, host known)"
    )]
    Ssh {
        /// What `ssh` is told to reach: the host, with user and port.
        host: String,
        /// The repository.
        repository: String,
        /// What ssh and the server said.
        source: Cause,
    },
    /// The host cannot be found or does not answer.
    #[error(
        "{host} cannot be reached for {repository}; check its name and the network, and for https its certificate"
    )]
    HostUnreachable {
        /// The host.
        host: String,
        /// The repository.
        repository: String,
        /// What the system said.
        source: Cause,
    },
    /// The server sends us elsewhere.
    #[error(
        "{from} redirects {repository} to {to}, which is not followed; if {to} is right, write its URL"
    )]
    RedirectedElsewhere {
        /// The repository.
        repository: String,
        /// The host that was asked.
        from: String,
        /// The host that was named.
        to: String,
    },
    /// Nothing came for too long.
    #[error(
        "{host} sent nothing for {} seconds while {repository} was read; try again",
        limit.as_secs()
    )]
    Stalled {
        /// The host.
        host: String,
        /// The repository.
        repository: String,
        /// How long we waited.
        limit: Duration,
    },
    /// A transfer that failed in another way.
    #[error("{repository} could not be read from its server; try again")]
    Transfer {
        /// The repository.
        repository: String,
        /// What the server or the library said.
        source: Cause,
    },
    /// The network is needed and may not be used.
    #[error(
        "{repository} does not have all that is needed in the cache, and the run is offline; run once without `--offline`"
    )]
    Offline {
        /// The repository.
        repository: String,
    },
    /// The user interrupted.
    #[error("interrupted while {repository} was read")]
    Interrupted {
        /// The repository.
        repository: String,
    },
    /// The cache repository cannot be made, locked or replaced.
    #[error("the cache of {repository} cannot be used")]
    Cache {
        /// The repository.
        repository: String,
        /// The file and what the system said.
        #[source]
        source: FsError,
    },
    /// The cache repository cannot be written by the git library.
    #[error(
        "the cache of {repository} in {path} cannot be used; remove that directory and try again"
    )]
    DamagedCache {
        /// The repository.
        repository: String,
        /// The cache repository.
        path: String,
        /// What the library said.
        source: Cause,
    },
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cause_shows_no_escape_and_no_credentials() {
        let cause = Cause::new("cannot read\n https://user:secret@host/x \u{1b}[31mred");
        assert_eq!(
            cause.to_string(),
            "cannot read https://***@host/x \\x1B[31mred"
        );
        assert!(Cause::new(&"x".repeat(5_000)).to_string().chars().count() < 700);
    }

    #[test]
    fn a_cause_says_each_message_once() {
        let inner = std::io::Error::other("refused");
        let outer = FsError::new("read", std::path::Path::new("x"), inner);
        assert_eq!(Cause::of(&outer).to_string(), "could not read x: refused");
    }
}
