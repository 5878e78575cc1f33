//! The redo file: how lock, manifest and projected files switch together.
//!
//! It names, for every file that a run replaces, the digest before and the content after. Once it
//! is on disk the run counts. Applying it is idempotent: a file as before is written, a file as
//! after is done. So whoever finds a complete one, after a crash at any instant, applies it again.

use std::path::Path;

use serde::{Deserialize, Serialize};
use vibe_core::formats::lock::LOCK_NAME;
use vibe_core::limits::{LOCK_BYTES, RECORD_BYTES};
use vibe_core::{RelPath, Sha256Digest};
use vibe_fs::error::shown;
use vibe_fs::{Durability, EntryKind, Guard, ReadError};

use crate::error::SlotError;
use crate::layout::{Layout, MANIFEST_NAME, STATE_NAME, VIBEDEPS};

/// The form written.
const REDO_FORM: u64 = 1;

/// Every file that a run switches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Redo {
    /// The files, in the order they are written.
    pub files: Vec<RedoFile>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedoFile {
    /// Where it lies, relative to the project root.
    pub path: RelPath,
    /// The digest of the content before; `None`: it was absent.
    pub before: Option<Sha256Digest>,
    /// The content after; `None`: it goes.
    pub after: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RedoDocument {
    form: u64,
    files: Vec<RedoFile>,
}

#[derive(Deserialize)]
struct FormOnly {
    form: u64,
}

/// What lies where the redo file belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedoOnDisk {
    /// Nothing.
    None,
    /// A file that was not written to its end, or names a place that no run writes.
    Incomplete,
    /// A run that counts and may not be applied yet.
    Complete(Redo),
}

/// What applying a redo file did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Applied {
    /// Files written or removed.
    pub written: Vec<RelPath>,
    /// The lock or manifest that is neither as before nor as after; nothing was written then.
    pub dropped: Option<RelPath>,
    /// Other files that are neither, left as they are.
    pub left: Vec<RelPath>,
}

/// A file compared with its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    Before,
    After,
    Neither,
}

/// Whether a run may write `path`: nothing of this machine's state, and no slot's record.
fn is_allowed(path: &RelPath) -> bool {
    let mut components = path.components();
    components.next() != Some(VIBEDEPS) || !matches!(components.next(), None | Some(STATE_NAME))
}

/// Whether the whole run depends on the file: the lock, or a manifest of the workspace.
fn is_decisive(path: &RelPath) -> bool {
    path.as_str() == LOCK_NAME || path.file_name() == MANIFEST_NAME
}

/// Writes the redo file, durably: from its return on the run counts.
///
/// # Errors
/// A path is one that no run writes, or the file cannot be written.
pub fn write(layout: &Layout, redo: &Redo) -> Result<(), SlotError> {
    if let Some(file) = redo.files.iter().find(|file| !is_allowed(&file.path)) {
        return Err(SlotError::Forbidden {
            path: file.path.clone(),
        });
    }
    let document = RedoDocument {
        form: REDO_FORM,
        files: redo.files.clone(),
    };
    let bytes = serde_json::to_vec(&document).expect("texts, numbers and lists are always JSON");
    vibe_fs::write_atomic(
        &layout.redo(),
        &bytes,
        &layout.staging(),
        Durability::Synced,
    )?;
    Ok(())
}

/// Reads the redo file.
///
/// # Errors
/// It is a link, cannot be read, or was written by a newer vibe.
pub fn read(layout: &Layout) -> Result<RedoOnDisk, SlotError> {
    let path = layout.redo();
    let Some(bytes) = vibe_fs::read_if_exists(&path, RECORD_BYTES)? else {
        return Ok(RedoOnDisk::None);
    };
    match serde_json::from_slice::<FormOnly>(&bytes) {
        Ok(FormOnly { form: REDO_FORM }) => {}
        Ok(FormOnly { form }) => {
            return Err(SlotError::Newer {
                path: shown(&path),
                found: form,
            });
        }
        Err(_) => return Ok(RedoOnDisk::Incomplete),
    }
    match serde_json::from_slice::<RedoDocument>(&bytes) {
        Ok(document) if document.files.iter().all(|file| is_allowed(&file.path)) => {
            Ok(RedoOnDisk::Complete(Redo {
                files: document.files,
            }))
        }
        _ => Ok(RedoOnDisk::Incomplete),
    }
}

/// Brings every file of `redo` to its content after, then removes the redo file. Lock and
/// manifests are durable before that.
///
/// Where the lock or a manifest is neither as before nor as after, nothing is written and the redo
/// file goes; any other file that is neither is left. Links are not followed: a link, or a file
/// behind one, is neither.
///
/// # Errors
/// A file cannot be read or written; the redo file then stays.
pub fn apply(layout: &Layout, redo: &Redo) -> Result<Applied, SlotError> {
    let mut applied = Applied::default();
    let positions: Vec<Position> = redo
        .files
        .iter()
        .map(|file| position(layout.project_root(), file))
        .collect::<Result<_, _>>()?;
    let rows = || redo.files.iter().zip(&positions);
    let foreign = rows().find(|(file, at)| is_decisive(&file.path) && **at == Position::Neither);
    if let Some((file, _)) = foreign {
        applied.dropped = Some(file.path.clone());
        discard(layout)?;
        return Ok(applied);
    }
    for (file, at) in rows() {
        match at {
            Position::After => {}
            Position::Neither => applied.left.push(file.path.clone()),
            Position::Before => {
                switch(layout, file)?;
                applied.written.push(file.path.clone());
            }
        }
    }
    discard(layout)?;
    Ok(applied)
}

/// Removes the redo file, durably, so that no later power loss brings it back.
///
/// # Errors
/// It cannot be removed.
pub fn discard(layout: &Layout) -> Result<(), SlotError> {
    if vibe_fs::remove_file_if(&layout.redo(), |_| true)? {
        vibe_fs::sync_directory(&layout.state())?;
    }
    Ok(())
}

fn position(root: &Path, file: &RedoFile) -> Result<Position, SlotError> {
    let found = match vibe_fs::path_guard(root, &file.path)? {
        Guard::Blocked { .. } => return Ok(Position::Neither),
        Guard::Absent(_) => None,
        Guard::Clear => match vibe_fs::read_if_exists(&file.path.under(root), LOCK_BYTES) {
            Ok(bytes) => bytes.map(|bytes| Sha256Digest::of(&bytes)),
            Err(ReadError::Fs(error)) => return Err(error.into()),
            Err(ReadError::NotAFile { .. } | ReadError::TooLarge { .. }) => {
                return Ok(Position::Neither);
            }
        },
    };
    let after = file.after.as_ref();
    if found == after.map(|text| Sha256Digest::of(text.as_bytes())) {
        return Ok(Position::After);
    }
    Ok(match found == file.before {
        true => Position::Before,
        false => Position::Neither,
    })
}

fn switch(layout: &Layout, file: &RedoFile) -> Result<(), SlotError> {
    let root = layout.project_root();
    let target = file.path.under(root);
    let Some(text) = &file.after else {
        vibe_fs::remove_file_if(&target, |stat| stat.kind == EntryKind::File)?;
        return Ok(());
    };
    vibe_fs::create_parents(root, &file.path)?;
    let durability = match is_decisive(&file.path) {
        true => Durability::Synced,
        false => Durability::Unsynced,
    };
    vibe_fs::write_atomic(&target, text.as_bytes(), &layout.staging(), durability)?;
    Ok(())
}
