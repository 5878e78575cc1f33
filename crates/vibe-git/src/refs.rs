//! What a repository has names for, and which commit is wanted of it.

use std::collections::BTreeMap;

use crate::object::CommitId;

/// The names of a repository.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Refs {
    /// Tags; an annotated one names the commit that it is of.
    pub tags: BTreeMap<String, CommitId>,
    /// Branches.
    pub branches: BTreeMap<String, CommitId>,
    /// The branch that `HEAD` names, if it has a commit.
    pub default_branch: Option<String>,
    /// The commit of `HEAD`, whether or not a branch is between them.
    pub head: Option<CommitId>,
}

/// Which commit of a repository is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wanted<'a> {
    /// The commit of a tag.
    Tag(&'a str),
    /// The commit of a branch.
    Branch(&'a str),
    /// A full id, else a tag, else a branch, else the beginning of an id (at least 4 digits).
    Revision(&'a str),
    /// Exactly this one.
    Commit(CommitId),
    /// The commit of `HEAD`.
    Default,
}
