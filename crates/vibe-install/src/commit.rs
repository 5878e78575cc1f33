//! The commit: lock and manifest switch together, or not at all.

use std::path::PathBuf;

use vibe_core::formats::lock::LOCK_NAME;
use vibe_core::{RelPath, Sha256Digest};
use vibe_slot::redo::{self, Redo, RedoFile};

use crate::error::InstallError;
use crate::project::{LockFile, Project};
use crate::projection::record_left;

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
    /// The digest of each of the project's manifests as the run read it.
    manifests_read: Vec<(RelPath, Option<Sha256Digest>)>,
}

impl Commit {
    /// Switches to `lock`, and the manifest nearest to where the command was started to `manifest`;
    /// each is `None` where it stays as it is.
    pub(crate) fn new(
        project: &Project,
        lock_before: Option<&LockFile>,
        lock: Option<String>,
        manifest: Option<String>,
    ) -> Self {
        let file = |path: RelPath, before, after: String| RedoFile {
            path,
            before,
            after: Some(after),
        };
        let lock_path = RelPath::new(LOCK_NAME).expect("the lock's name is a path");
        let lock = lock.map(|text| file(lock_path, lock_before.map(|lock| lock.digest), text));
        let own = project.nearest();
        let manifest = manifest.map(|text| file(own.path.clone(), own.digest, text));
        Self {
            files: lock.into_iter().chain(manifest).collect(),
            manifests_read: project.manifest_digests(),
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

    /// The digest of each of the project's manifests after the run.
    pub(crate) fn manifests_after(&self) -> Vec<(RelPath, Option<Sha256Digest>)> {
        let after = |path: &RelPath| {
            let switched = self.files.iter().find(|file| file.path == *path)?;
            let text = switched.after.as_ref()?;
            Some(Sha256Digest::of(text.as_bytes()))
        };
        let read = self.manifests_read.iter();
        read.map(|(path, read)| (path.clone(), after(path).or(*read)))
            .collect()
    }

    /// Whether the lock switches.
    pub(crate) fn changes_lock(&self) -> bool {
        self.files
            .iter()
            .any(|file| file.path.as_str() == LOCK_NAME)
    }

    /// The manifest that switches, if one does.
    pub(crate) fn changed_manifest(&self) -> Option<&RelPath> {
        let mut read = self.manifests_read.iter().map(|(path, _)| path);
        read.find(|path| self.files.iter().any(|file| file.path == **path))
    }

    /// Writes the redo file, from which instant the run counts, and applies it. Returns the projected
    /// files that somebody changed meanwhile, which are left.
    ///
    /// # Errors
    /// [`CommitError::Before`]: a manifest is not as it was read, another file is neither as
    /// before nor as after, or the redo file could not be written. [`CommitError::After`]: a file
    /// call failed later.
    pub(crate) fn apply(&self, project: &Project) -> Result<Vec<RelPath>, CommitError> {
        for (path, read) in &self.manifests_read {
            let now = project.bytes_of(path.as_str());
            if now.map(|bytes| Sha256Digest::of(&bytes)) != *read {
                return Err(changed_meanwhile(path.under(&project.root)));
            }
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
        record_left(project, &applied.left).map_err(CommitError::After)?;
        Ok(applied.left)
    }
}

fn changed_meanwhile(path: PathBuf) -> CommitError {
    CommitError::Before(InstallError::ChangedMeanwhile { path })
}
