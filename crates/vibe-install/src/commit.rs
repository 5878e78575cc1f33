//! The commit: lock and manifest switch together, or not at all.

use std::path::PathBuf;

use vibe_core::formats::lock::LOCK_NAME;
use vibe_core::formats::manifest::MANIFEST_NAME;
use vibe_core::{RelPath, Sha256Digest};
use vibe_slot::redo::{self, Redo, RedoFile};

use crate::error::InstallError;
use crate::project::{LockFile, Project};
use crate::projection::forget;

/// Why a commit failed.
#[derive(Debug)]
pub(crate) enum CommitError {
    /// Nothing is switched: the run never happened.
    Before(InstallError),
    /// The redo file is there, so the run counts. The next one finishes it.
    After(InstallError),
}

/// What a run switches.
#[derive(Debug, Clone, Default)]
pub(crate) struct Commit {
    files: Vec<RedoFile>,
    /// The manifest's digest as the run read it.
    manifest_read: Option<Sha256Digest>,
}

impl Commit {
    /// Switches to `lock` and `manifest`; each is `None` where it stays as it is.
    pub(crate) fn new(
        project: &Project,
        lock_before: Option<&LockFile>,
        lock: Option<String>,
        manifest: Option<String>,
    ) -> Self {
        let file = |name: &str, before, after: String| RedoFile {
            path: RelPath::new(name).expect("the names of our files are paths"),
            before,
            after: Some(after),
        };
        let lock = lock.map(|text| file(LOCK_NAME, lock_before.map(|lock| lock.digest), text));
        let manifest = manifest.map(|text| file(MANIFEST_NAME, project.manifest_digest, text));
        Self {
            files: lock.into_iter().chain(manifest).collect(),
            manifest_read: project.manifest_digest,
        }
    }

    /// The same with `files` outside the slots, which the run projects.
    pub(crate) fn with(&self, files: impl IntoIterator<Item = RedoFile>) -> Self {
        let mut commit = self.clone();
        commit.files.extend(files);
        commit
    }

    /// Whether nothing switches.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
    }

    /// The digest of the manifest after the run.
    pub(crate) fn manifest_after(&self) -> Option<Sha256Digest> {
        let switched = self
            .files
            .iter()
            .find(|file| file.path.as_str() == MANIFEST_NAME);
        switched
            .and_then(|file| file.after.as_ref())
            .map_or(self.manifest_read, |text| {
                Some(Sha256Digest::of(text.as_bytes()))
            })
    }

    /// Whether the lock switches.
    pub(crate) fn changes_lock(&self) -> bool {
        self.changes(LOCK_NAME)
    }

    /// Whether the manifest switches.
    pub(crate) fn changes_manifest(&self) -> bool {
        self.changes(MANIFEST_NAME)
    }

    fn changes(&self, name: &str) -> bool {
        self.files.iter().any(|file| file.path.as_str() == name)
    }

    /// Writes the redo file, from which instant the run counts, and applies it. Returns the projected
    /// files that somebody changed meanwhile, which are left and no longer recorded.
    ///
    /// # Errors
    /// [`CommitError::Before`]: the manifest is not as it was read, another file is neither as
    /// before nor as after, or the redo file could not be written. [`CommitError::After`]: a file
    /// call failed later.
    pub(crate) fn apply(&self, project: &Project) -> Result<Vec<RelPath>, CommitError> {
        let now = project
            .bytes_of(MANIFEST_NAME)
            .map(|bytes| Sha256Digest::of(&bytes));
        if now != self.manifest_read {
            return Err(changed_meanwhile(project.root.join(MANIFEST_NAME)));
        }
        if self.is_empty() {
            return Ok(Vec::new());
        }
        let redo = Redo {
            files: self.files.clone(),
        };
        if let Err(error) = redo::write(&project.layout, &redo) {
            // It may lie there nevertheless: where only its sync failed.
            return Err(match redo::discard(&project.layout) {
                Ok(()) => CommitError::Before(error.into()),
                Err(_) => CommitError::After(error.into()),
            });
        }
        let applied = redo::apply(&project.layout, &redo);
        let applied = applied.map_err(|error| CommitError::After(error.into()))?;
        if let Some(path) = applied.dropped {
            return Err(changed_meanwhile(path.under(&project.root)));
        }
        forget(project, &applied.left).map_err(CommitError::After)?;
        Ok(applied.left)
    }
}

fn changed_meanwhile(path: PathBuf) -> CommitError {
    CommitError::Before(InstallError::ChangedMeanwhile { path })
}
