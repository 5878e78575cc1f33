//! From a payload source to one new file: linked, cloned or copied, in the way that is wanted or, where
//! the file system does not give that, in the next best one. What really happened is counted.

use std::path::Path;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use vibe_core::formats::state::LinkMode;
use vibe_core::{RelPath, Sha256Digest, SlotName};
use vibe_fs::{CloneMethod, LinkError};

use crate::error::SlotError;
use crate::source::{PayloadError, PayloadSource, Proof};

/// Files that should have been linked and were copied.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fallback {
    /// How many.
    pub files: usize,
    /// Why the first of them could not be linked: what the system said.
    pub because: String,
}

/// Makes files of one slot. Used by several threads.
pub(crate) struct Materializer<'a> {
    slot: &'a SlotName,
    source: &'a dyn PayloadSource,
    wanted: LinkMode,
    proof: Proof,
    linked: AtomicUsize,
    shared: AtomicUsize,
    copied: AtomicUsize,
    /// The file system does not share blocks, so asking again is no use.
    never_shares: AtomicBool,
    no_link: Mutex<Option<String>>,
}

impl<'a> Materializer<'a> {
    pub(crate) fn new(
        slot: &'a SlotName,
        source: &'a dyn PayloadSource,
        wanted: LinkMode,
        proof: Proof,
    ) -> Self {
        Self {
            slot,
            source,
            wanted,
            proof,
            linked: AtomicUsize::new(0),
            shared: AtomicUsize::new(0),
            copied: AtomicUsize::new(0),
            never_shares: AtomicBool::new(false),
            no_link: Mutex::new(None),
        }
    }

    /// Makes the new file `target`, which is `path` of the package.
    pub(crate) fn make(
        &self,
        target: &Path,
        path: &RelPath,
        sha256: Sha256Digest,
        exec: bool,
    ) -> Result<(), SlotError> {
        let failed = |error| self.failed(path, error);
        match self.source.proved(path, self.proof).map_err(failed)? {
            Some(stored) => self.make_from(&stored, target, exec),
            None => self.copy_checked(target, path, sha256, exec),
        }
    }

    fn failed(&self, path: &RelPath, error: PayloadError) -> SlotError {
        SlotError::Source {
            slot: Box::new(self.slot.clone()),
            path: path.clone(),
            source: Box::new(error),
        }
    }

    fn make_from(&self, stored: &Path, target: &Path, exec: bool) -> Result<(), SlotError> {
        if self.wanted == LinkMode::Hardlink {
            match vibe_fs::hard_link(stored, target) {
                Ok(()) => {
                    self.linked.fetch_add(1, Ordering::Relaxed);
                    return Ok(());
                }
                Err(LinkError::Fs(error)) => return Err(error.into()),
                Err(LinkError::Impossible(error)) => {
                    let mut no_link = self.no_link.lock().unwrap_or_else(|e| e.into_inner());
                    no_link.get_or_insert_with(|| error.source.to_string());
                }
            }
        }
        self.clone(stored, target, exec)
    }

    fn clone(&self, stored: &Path, target: &Path, exec: bool) -> Result<(), SlotError> {
        let method = if self.never_shares.load(Ordering::Relaxed) {
            vibe_fs::copy_file(stored, target, exec)?;
            CloneMethod::Copy
        } else {
            vibe_fs::clone_file(stored, target, exec)?
        };
        match method {
            CloneMethod::Reflink => self.shared.fetch_add(1, Ordering::Relaxed),
            CloneMethod::Copy => {
                self.never_shares.store(true, Ordering::Relaxed);
                self.copied.fetch_add(1, Ordering::Relaxed)
            }
        };
        Ok(())
    }

    fn copy_checked(
        &self,
        target: &Path,
        path: &RelPath,
        sha256: Sha256Digest,
        exec: bool,
    ) -> Result<(), SlotError> {
        let opened = self.source.open(path);
        let mut reader = opened.map_err(|error| self.failed(path, error))?;
        let found = vibe_fs::copy_hashed(&mut reader, target, exec, self.source.file_bytes())?;
        if found != sha256 {
            return Err(SlotError::Changed {
                slot: Box::new(self.slot.clone()),
                path: path.clone(),
            });
        }
        self.copied.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// The way in which the files were made: the one in which any was linked, or in which all share
    /// blocks.
    pub(crate) fn mode(&self) -> LinkMode {
        let count = |of: &AtomicUsize| of.load(Ordering::Relaxed);
        match (
            count(&self.linked),
            count(&self.shared),
            count(&self.copied),
        ) {
            (1.., _, _) => LinkMode::Hardlink,
            (0, 1.., 0) => LinkMode::Reflink,
            _ => LinkMode::Copy,
        }
    }

    /// What was to be linked and was not.
    pub(crate) fn fallback(&self) -> Option<Fallback> {
        let no_link = self.no_link.lock().unwrap_or_else(|e| e.into_inner());
        let files = self.shared.load(Ordering::Relaxed) + self.copied.load(Ordering::Relaxed);
        no_link.clone().map(|because| Fallback { files, because })
    }
}
