//! Finding and reading the project.

use std::path::{Path, PathBuf};

use vibe_core::formats::decode::decode;
use vibe_core::formats::lock::{LOCK_NAME, Lock};
use vibe_core::formats::manifest::{HookTightening, MANIFEST_NAME, Manifest, Reading};
use vibe_core::limits::LOCK_BYTES;
use vibe_core::{PackageId, RelPath, Sha256Digest};
use vibe_fs::{EntryKind, canonical_directory, may_be_planted, read_if_exists, stat_of};
use vibe_slot::Layout;
use vibe_slot::layout::list_slots;

use crate::error::InstallError;
use crate::manifests::{conflicts, parse_manifest};
use crate::own_manifest::{OwnManifest, OwnRequirements};
use crate::workspace;

/// A project on disk.
#[derive(Debug, Clone)]
pub(crate) struct Project {
    /// Its root, canonical.
    pub root: PathBuf,
    /// Where its parts lie.
    pub layout: Layout,
    /// The manifests of the user's own: the root's, then those of the members of its workspace.
    pub manifests: Vec<OwnManifest>,
    /// Which of them is the nearest to where the command was started.
    nearest: usize,
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
    /// The project that `start` lies in: the nearest directory upwards that has a `vibe.toml`, or
    /// the topmost workspace that includes that one.
    pub(crate) fn find(start: &Path) -> Result<Option<Project>, InstallError> {
        let start = canonical_directory(start).map_err(|source| InstallError::NoStart {
            start: start.to_path_buf(),
            source,
        })?;
        for directory in start.ancestors() {
            if let Some(own) = workspace::read_manifest(directory, "")? {
                refuse_planted(directory, &start)?;
                return Self::open(directory, own).map(Some);
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

    /// The project as it is now that its lock is held, for a command started where the one that
    /// found it was.
    ///
    /// # Errors
    /// It is no longer the same project, or cannot be read.
    pub(crate) fn again(&self) -> Result<Project, InstallError> {
        let nearest = self.nearest();
        let again = Self::require(&nearest.directory(&self.root))?;
        if again.root != self.root || again.nearest().path != nearest.path {
            return Err(InstallError::ChangedMeanwhile {
                path: nearest.path.under(&self.root),
            });
        }
        Ok(again)
    }

    /// Reads the project of the manifest `own` in `directory`, a canonical one.
    fn open(directory: &Path, own: OwnManifest) -> Result<Project, InstallError> {
        let root = workspace::root_of(directory)?;
        let own = Some(own).filter(|_| root == *directory);
        let manifests = workspace::manifests(&root, own)?;
        let is_nearest = |own: &OwnManifest| own.directory(&root) == *directory;
        let Some(nearest) = manifests.iter().position(is_nearest) else {
            return Err(InstallError::NoProject {
                start: directory.to_path_buf(),
            });
        };
        let own = &manifests[0].manifest;
        if own.project.is_none() && own.workspace.is_none() {
            let workspace = workspace::nearest_workspace(&root)?;
            return Err(InstallError::PackageIsNoProject {
                path: root,
                workspace,
            });
        }
        Ok(Project {
            layout: Layout::new(root.clone()),
            root,
            manifests,
            nearest,
        })
    }

    /// A project that is about to be started in the directory `root`, with the manifest `text`.
    pub(crate) fn start(root: &Path, text: &str) -> Result<Project, InstallError> {
        let root = canonical_directory(root)?;
        let (manifest, _) =
            parse_manifest(&root.join(MANIFEST_NAME), text.as_bytes(), Reading::Own)?;
        let own = OwnManifest {
            path: RelPath::new(MANIFEST_NAME).expect("the manifest's name is a path"),
            manifest,
            text: None,
            digest: None,
        };
        Ok(Project {
            layout: Layout::new(root.clone()),
            root,
            manifests: vec![own],
            nearest: 0,
        })
    }

    /// Whether it is there, and not only about to be started.
    pub(crate) fn is_started(&self) -> bool {
        self.manifests[0].text.is_some()
    }

    /// The root's manifest.
    pub(crate) fn manifest(&self) -> &Manifest {
        &self.manifests[0].manifest
    }

    /// The manifests of the members of its workspace.
    pub(crate) fn members(&self) -> &[OwnManifest] {
        &self.manifests[1..]
    }

    /// The manifest nearest to where the command was started: the one that it edits.
    pub(crate) fn nearest(&self) -> &OwnManifest {
        &self.manifests[self.nearest]
    }

    /// Which of the [`Project::requirements`] are those of the nearest manifest.
    pub(crate) fn nearest_index(&self) -> usize {
        self.nearest
    }

    /// What its manifests ask for, in their order.
    pub(crate) fn requirements(&self) -> Vec<OwnRequirements> {
        let all = self.manifests.iter();
        all.map(|own| OwnRequirements {
            name: own.name().to_owned(),
            path: own.path.clone(),
            requires: own.manifest.requires.clone(),
            conflicts: conflicts(&own.manifest),
        })
        .collect()
    }

    /// Whether none of its manifests requires anything.
    pub(crate) fn requires_nothing(&self) -> bool {
        let mut all = self.manifests.iter();
        all.all(|own| own.manifest.requires.is_empty())
    }

    /// Whether it requires nothing and has nothing, so that there is nothing to do and no trace to
    /// leave.
    ///
    /// # Errors
    /// It cannot be looked at.
    pub(crate) fn is_empty(&self) -> Result<bool, InstallError> {
        Ok(self.requires_nothing()
            && stat_of(&self.layout.vibe_lock())?.is_none()
            && list_slots(&self.layout)?.0.is_empty())
    }

    /// Whether the root takes `id` from one source whatever anybody else says.
    pub(crate) fn is_overridden(&self, id: &PackageId) -> bool {
        let mut overrides = self.manifest().overrides.iter();
        overrides.any(|found| found.package == *id)
    }

    /// The digest of each manifest as it was read.
    pub(crate) fn manifest_digests(&self) -> Vec<(RelPath, Option<Sha256Digest>)> {
        let all = self.manifests.iter();
        all.map(|own| (own.path.clone(), own.digest)).collect()
    }

    /// The project's name.
    pub(crate) fn name(&self) -> &str {
        self.manifests[0].name()
    }

    /// The strictest that its manifests say of install hooks.
    pub(crate) fn install_hooks(&self) -> Option<HookTightening> {
        let projects = self
            .manifests
            .iter()
            .filter_map(|own| own.manifest.project.as_ref());
        projects.filter_map(|project| project.install_hooks).max()
    }

    /// Whether its slots are meant to be committed.
    pub(crate) fn vendor(&self) -> bool {
        let project = self.manifest().project.as_ref();
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

/// A project decides what is installed and which scripts run: in a directory that everybody may
/// write, such as the one for temporary files, only one's own is found from below. One that is
/// named, or worked in, is meant.
fn refuse_planted(directory: &Path, start: &Path) -> Result<(), InstallError> {
    let path = directory.join(MANIFEST_NAME);
    match directory != start && may_be_planted(&path, start)? {
        true => Err(InstallError::ForeignProject {
            path,
            start: start.to_path_buf(),
        }),
        false => Ok(()),
    }
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
