//! The commit: lock and manifest switch together, or not at all.

use vibe_core::formats::lock::LOCK_NAME;
use vibe_core::formats::manifest::MANIFEST_NAME;
use vibe_core::{RelPath, Sha256Digest};
use vibe_slot::redo::{self, Redo, RedoFile};

use crate::error::InstallError;
use crate::project::{LockFile, Project};

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

    /// Whether nothing switches.
    pub(crate) fn is_empty(&self) -> bool {
        self.files.is_empty()
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

    /// Writes the redo file, from which instant the run counts, and applies it.
    ///
    /// # Errors
    /// The manifest is not as it was read, or another file is neither as before nor as after:
    /// then nothing is switched. Or a file call failed.
    pub(crate) fn apply(&self, project: &Project) -> Result<(), InstallError> {
        let now = project
            .bytes_of(MANIFEST_NAME)
            .map(|bytes| Sha256Digest::of(&bytes));
        if now != self.manifest_read {
            return Err(InstallError::ChangedMeanwhile {
                path: project.root.join(MANIFEST_NAME),
            });
        }
        if self.is_empty() {
            return Ok(());
        }
        let redo = Redo {
            files: self.files.clone(),
        };
        redo::write(&project.layout, &redo)?;
        match redo::apply(&project.layout, &redo)?.dropped {
            None => Ok(()),
            Some(path) => Err(InstallError::ChangedMeanwhile {
                path: path.under(&project.root),
            }),
        }
    }
}
