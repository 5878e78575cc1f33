//! The files that agents read, as they are: those that are vibe's, and those of the user's that get a
//! block.

use std::collections::BTreeMap;

use vibe_core::formats::diagnostic::Diagnostic;
use vibe_core::limits::LOCK_BYTES;
use vibe_core::{RelPath, Sha256Digest};
use vibe_fs::{EntryKind, Guard, ReadError, path_guard, read_if_exists, stat_of};
use vibe_projection::boot::{BootText, ENTRANCES, Entrance, SIGNATURE, block_lines};
use vibe_projection::edits::{BlockFile, Content, WholeFile};

use crate::error::{InstallError, ProjectedFault};
use crate::project::Project;

/// Looks at the files of one project.
pub(super) struct Files<'a> {
    pub(super) project: &'a Project,
    /// The digest of each file that was looked at; `None`: nothing is there.
    pub(super) found: BTreeMap<RelPath, Option<Sha256Digest>>,
}

impl Files<'_> {
    /// The file of ours at `path`, which shall hold `wanted`.
    pub(super) fn whole_file(
        &mut self,
        path: &str,
        wanted: Content,
    ) -> Result<WholeFile, InstallError> {
        let path = own_path(path);
        let bytes = read_projected(self.project, &path)?;
        let found = bytes.as_ref().map(|bytes| Sha256Digest::of(bytes));
        self.found.insert(path.clone(), found);
        Ok(WholeFile {
            is_signed: bytes.is_some_and(|bytes| bytes.starts_with(SIGNATURE.as_bytes())),
            found,
            wanted,
            path,
        })
    }

    /// The file of `entrance`; `None` where it is a link to another one, which has the block.
    pub(super) fn block_file(
        &mut self,
        entrance: &Entrance,
        shown: &[BootText],
    ) -> Result<Option<BlockFile>, InstallError> {
        if self.is_link_to_file(entrance)? {
            return Ok(None);
        }
        let path = own_path(entrance.path);
        let bytes = read_projected(self.project, &path)?;
        let digest = bytes.as_ref().map(|bytes| Sha256Digest::of(bytes));
        self.found.insert(path.clone(), digest);
        let found = match bytes {
            None => None,
            Some(bytes) => Some(String::from_utf8(bytes).map_err(|error| {
                let place = Diagnostic::new(format!("it is not UTF-8: {}", error.utf8_error()));
                self.fault(&path, ProjectedFault::Text(place))
            })?),
        };
        Ok(Some(BlockFile {
            lines: block_lines(entrance, shown),
            is_expected: self.is_expected(entrance)?,
            path,
            found,
        }))
    }

    pub(super) fn fault(&self, path: &RelPath, fault: ProjectedFault) -> InstallError {
        InstallError::ProjectedPath {
            path: path.under(&self.project.root),
            fault: Box::new(fault),
        }
    }

    /// Whether the file is written where it is missing: for all harnesses, for one that is chosen,
    /// and where another entrance is a link to it.
    fn is_expected(&self, entrance: &Entrance) -> Result<bool, InstallError> {
        let project = self.project.manifest().project.as_ref();
        let chosen = project.and_then(|project| project.harnesses.as_ref());
        let is_chosen = entrance.harness.is_none_or(|harness| {
            chosen.is_some_and(|chosen| chosen.iter().any(|name| name == harness))
        });
        if is_chosen {
            return Ok(true);
        }
        for other in &ENTRANCES {
            if self.link_to_entrance(other)? == Some(entrance.path) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether `entrance` is a link to another one, which is none, be it by way of a third.
    fn is_link_to_file(&self, entrance: &Entrance) -> Result<bool, InstallError> {
        let mut at = entrance;
        for step in 0..ENTRANCES.len() {
            let Some(target) = self.link_to_entrance(at)? else {
                return Ok(step > 0);
            };
            let mut all = ENTRANCES.iter();
            at = all
                .find(|other| other.path == target)
                .expect("it is one of them");
        }
        Ok(false)
    }

    /// The other entrance that `entrance` is a link to: one text for several agents.
    fn link_to_entrance(&self, entrance: &Entrance) -> Result<Option<&'static str>, InstallError> {
        let path = self.project.root.join(entrance.path);
        let is_link = stat_of(&path)?.is_some_and(|stat| stat.kind == EntryKind::Symlink);
        if !is_link {
            return Ok(None);
        }
        let target = vibe_fs::read_link(&path)?;
        let target = target.strip_prefix(".").unwrap_or(&target);
        let others = ENTRANCES.iter().map(|other| other.path);
        let mut others = others.filter(|other| *other != entrance.path);
        Ok(others.find(|other| target.as_os_str() == *other))
    }
}

/// The digest of the file at `path` in `project`; `None` where nothing is.
pub(super) fn digest_of(
    project: &Project,
    path: &RelPath,
) -> Result<Option<Sha256Digest>, InstallError> {
    let bytes = read_projected(project, path)?;
    Ok(bytes.map(|bytes| Sha256Digest::of(&bytes)))
}

pub(super) fn too_large(limit_bytes: u64) -> ProjectedFault {
    ProjectedFault::TooLarge {
        limit_mib: limit_bytes >> 20,
    }
}

pub(super) fn own_path(path: &str) -> RelPath {
    RelPath::new(path).expect("the names of our own files are paths")
}

/// The bytes of the file at `path` in the project, which is reached through no link.
pub(crate) fn read_projected(
    project: &Project,
    path: &RelPath,
) -> Result<Option<Vec<u8>>, InstallError> {
    let fault = |path: &RelPath, fault| InstallError::ProjectedPath {
        path: path.under(&project.root),
        fault: Box::new(fault),
    };
    match path_guard(&project.root, path)? {
        Guard::Absent(_) => return Ok(None),
        Guard::Blocked { path, kind } => {
            let at = path.clone();
            return Err(fault(&at, ProjectedFault::Blocked { path, kind }));
        }
        Guard::Clear => {}
    }
    match read_if_exists(&path.under(&project.root), LOCK_BYTES) {
        Err(ReadError::NotAFile { kind, .. }) => {
            let at = path.clone();
            Err(fault(path, ProjectedFault::Blocked { path: at, kind }))
        }
        Err(ReadError::TooLarge { limit_bytes, .. }) => Err(fault(path, too_large(limit_bytes))),
        Err(ReadError::Fs(error)) => Err(error.into()),
        Ok(found) => Ok(found),
    }
}
