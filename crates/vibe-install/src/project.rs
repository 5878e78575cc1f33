//! Finding and reading the project.

use std::path::{Path, PathBuf};

use vibe_core::Sha256Digest;
use vibe_core::formats::decode::decode;
use vibe_core::formats::lock::{LOCK_NAME, Lock};
use vibe_core::formats::manifest::{MANIFEST_NAME, Manifest, Reading};
use vibe_core::limits::{LOCK_BYTES, MANIFEST_BYTES};
use vibe_fs::{EntryKind, canonical_directory, read_if_exists, stat_of};
use vibe_slot::Layout;

use crate::error::InstallError;

/// A project on disk.
#[derive(Debug, Clone)]
pub(crate) struct Project {
    /// Its root, canonical.
    pub root: PathBuf,
    /// Where its parts lie.
    pub layout: Layout,
    /// Its manifest.
    pub manifest: Manifest,
    /// The manifest's text as read; `None` for a project that has none yet.
    pub manifest_text: Option<String>,
    /// The digest of the manifest's bytes as read.
    pub manifest_digest: Option<Sha256Digest>,
}

/// The lock as read.
#[derive(Debug, Clone)]
pub(crate) struct LockFile {
    /// Its value.
    pub lock: Lock,
    /// The digest of its bytes.
    pub digest: Sha256Digest,
}

impl Project {
    /// The project that `start` lies in: the nearest directory upwards that has a `vibe.toml`.
    pub(crate) fn find(start: &Path) -> Result<Option<Project>, InstallError> {
        let start = canonical_directory(start).map_err(|source| InstallError::NoStart {
            start: start.to_path_buf(),
            source,
        })?;
        for directory in start.ancestors() {
            if stat_of(&directory.join(MANIFEST_NAME))?.is_some() {
                return Self::open(directory).map(Some);
            }
        }
        Ok(None)
    }

    /// Like [`Project::find`]; having none is an error.
    pub(crate) fn require(start: &Path) -> Result<Project, InstallError> {
        Self::find(start)?.ok_or_else(|| InstallError::NoProject {
            start: start.to_path_buf(),
        })
    }

    /// Reads the project whose manifest lies in `root`, a canonical directory.
    fn open(root: &Path) -> Result<Project, InstallError> {
        let path = root.join(MANIFEST_NAME);
        let bytes = vibe_fs::read_bounded(&path, MANIFEST_BYTES)
            .map_err(|source| InstallError::ReadManifest { source })?;
        let (manifest, text) = parse_manifest(&path, &bytes, Reading::Own)?;
        if manifest.project.is_none() && manifest.workspace.is_none() {
            return Err(InstallError::PackageIsNoProject {
                path: root.to_path_buf(),
            });
        }
        if manifest.workspace.is_some() {
            return Err(InstallError::NotYet {
                what: "a `[workspace]`".to_owned(),
                path,
            });
        }
        Ok(Project {
            root: root.to_path_buf(),
            layout: Layout::new(root.to_path_buf()),
            manifest,
            manifest_text: Some(text),
            manifest_digest: Some(Sha256Digest::of(&bytes)),
        })
    }

    /// A project that is about to be started in the directory `root`, with the manifest `text`.
    pub(crate) fn start(root: &Path, text: &str) -> Result<Project, InstallError> {
        let root = canonical_directory(root)?;
        let (manifest, _) =
            parse_manifest(&root.join(MANIFEST_NAME), text.as_bytes(), Reading::Own)?;
        let layout = Layout::new(root.clone());
        Ok(Project {
            root,
            layout,
            manifest,
            manifest_text: None,
            manifest_digest: None,
        })
    }

    /// The project's name.
    pub(crate) fn name(&self) -> &str {
        self.manifest
            .project
            .as_ref()
            .map_or("project", |project| &project.name)
    }

    /// Whether its slots are meant to be committed.
    pub(crate) fn vendor(&self) -> bool {
        let project = self.manifest.project.as_ref();
        project.is_none_or(|project| project.vendor)
    }

    /// Reads `vibe.lock`; `None` where there is none.
    pub(crate) fn read_lock(&self) -> Result<Option<LockFile>, InstallError> {
        let path = self.root.join(LOCK_NAME);
        let bytes = read_if_exists(&path, LOCK_BYTES)
            .map_err(|source| InstallError::ReadLock { source })?;
        let Some(bytes) = bytes else { return Ok(None) };
        let refused = |diagnostic| InstallError::LockText {
            path: path.clone(),
            diagnostic,
        };
        let text = decode(&bytes).map_err(|diagnostic| {
            refused(vibe_core::formats::lock::LockError::Malformed(diagnostic))
        })?;
        let lock = Lock::parse(&text).map_err(refused)?;
        Ok(Some(LockFile {
            lock,
            digest: Sha256Digest::of(&bytes),
        }))
    }

    /// Like [`Project::read_lock`]; having none is an error.
    pub(crate) fn require_lock(&self) -> Result<LockFile, InstallError> {
        self.read_lock()?.ok_or_else(|| InstallError::NoLock {
            path: self.layout.vibe_lock(),
        })
    }

    /// The bytes of a file in the root that hooks may not change, `None` where there is none or it
    /// is no regular file.
    pub(crate) fn bytes_of(&self, name: &str) -> Option<Vec<u8>> {
        read_if_exists(&self.root.join(name), LOCK_BYTES)
            .ok()
            .flatten()
    }
}

/// Parses the bytes of the manifest `path`; also gives its text.
pub(crate) fn parse_manifest(
    path: &Path,
    bytes: &[u8],
    reading: Reading,
) -> Result<(Manifest, String), InstallError> {
    let refused = |diagnostic| InstallError::Manifest {
        path: path.to_path_buf(),
        diagnostic: Box::new(diagnostic),
    };
    let text = decode(bytes).map_err(refused)?;
    let manifest = Manifest::parse(&text, reading).map_err(refused)?;
    Ok((manifest, text))
}

/// The directory in which a new project is started: the root of the git work tree that `start`
/// lies in, else `start` itself.
pub(crate) fn new_project_root(start: &Path) -> Result<PathBuf, InstallError> {
    let start = canonical_directory(start)?;
    for directory in start.ancestors() {
        let git = stat_of(&directory.join(".git"))?;
        if git.is_some_and(|stat| matches!(stat.kind, EntryKind::Directory | EntryKind::File)) {
            return Ok(directory.to_path_buf());
        }
    }
    Ok(start)
}
