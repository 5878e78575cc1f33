//! Where the bytes of a slot come from.

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;

use vibe_core::limits::FILE_BYTES;
use vibe_core::{RelPath, Tree};
use vibe_fs::CopyError;
use vibe_store::{StoreError, StoredTree};

/// Why a file of a package cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    /// The package has no such file.
    #[error("the package has no file `{0}`")]
    Unknown(RelPath),
    /// The file system said no.
    #[error(transparent)]
    Fs(#[from] CopyError),
    /// The source, which is no directory, said no.
    #[error(transparent)]
    Other(Box<dyn std::error::Error + Send + Sync>),
    /// The store has it no more, or damaged.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// The files of one package, readable in any order and from several threads.
pub trait PayloadSource: Sync {
    /// The tree whose files can be opened.
    fn tree(&self) -> &Tree;

    /// Opens the file at `path` of the tree. What is read is compared with the tree by whoever
    /// reads it.
    ///
    /// # Errors
    /// The path is not in the tree, or cannot be read.
    fn open(&self, path: &RelPath) -> Result<Box<dyn Read + Send>, PayloadError>;

    /// Where the file at `path` lies if its content is known to be that of the tree, as surely as
    /// `proof` asks; `None` where only [`PayloadSource::open`] and a digest tell.
    ///
    /// # Errors
    /// The file should be proved, and is damaged.
    fn proved(&self, path: &RelPath, proof: Proof) -> Result<Option<PathBuf>, PayloadError> {
        let _ = (path, proof);
        Ok(None)
    }

    /// The most bytes that one file may have: one that grows while it is read is cut off there.
    fn file_bytes(&self) -> u64 {
        FILE_BYTES
    }
}

/// How a stored file shows that its content is right.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Proof {
    /// Its stat is as it was when it was stored: damage that changed it is found.
    Stat,
    /// Its content is read: for a file that takes the place of a damaged one, which may be the
    /// same file.
    Content,
}

/// A package whose files lie in directories.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryPayload {
    /// The files.
    pub tree: Tree,
    /// Where each of them lies. A link in the package stands for its target, so two paths may
    /// have one place.
    pub locations: BTreeMap<RelPath, PathBuf>,
    /// The most bytes that one file may have.
    pub file_bytes: u64,
}

impl PayloadSource for DirectoryPayload {
    fn tree(&self) -> &Tree {
        &self.tree
    }

    fn open(&self, path: &RelPath) -> Result<Box<dyn Read + Send>, PayloadError> {
        let location = self
            .locations
            .get(path)
            .ok_or_else(|| PayloadError::Unknown(path.clone()))?;
        let (file, _) = vibe_fs::open_regular(location)?;
        Ok(Box::new(file))
    }

    fn file_bytes(&self) -> u64 {
        self.file_bytes
    }
}

impl PayloadSource for StoredTree {
    fn tree(&self) -> &Tree {
        StoredTree::tree(self)
    }

    fn open(&self, path: &RelPath) -> Result<Box<dyn Read + Send>, PayloadError> {
        let (file, _) = vibe_fs::open_regular(&StoredTree::proved(self, path)?)?;
        Ok(Box::new(file))
    }

    fn proved(&self, path: &RelPath, proof: Proof) -> Result<Option<PathBuf>, PayloadError> {
        let place = match proof {
            Proof::Stat => StoredTree::proved(self, path)?,
            Proof::Content => self.proved_by_content(path)?,
        };
        Ok(Some(place))
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Package, rel};

    #[test]
    fn files_are_opened_where_they_lie_and_links_are_not_followed() {
        let directory = tempfile::tempdir().unwrap();
        let (file, link) = (directory.path().join("f"), directory.path().join("l"));
        std::fs::write(&file, "text").unwrap();
        std::os::unix::fs::symlink(&file, &link).unwrap();
        let payload = DirectoryPayload {
            tree: Package::new(&[("a/b", "text"), ("c", "text")]).tree,
            locations: BTreeMap::from([(rel("a/b"), file), (rel("c"), link)]),
            file_bytes: 7,
        };
        let mut text = String::new();
        let mut reader = payload.open(&rel("a/b")).unwrap();
        reader.read_to_string(&mut text).unwrap();
        assert_eq!(text, "text");
        assert!(payload.open(&rel("c")).is_err());
        let Err(error) = payload.open(&rel("d")) else {
            panic!("there is no `d`");
        };
        assert_eq!(error.to_string(), "the package has no file `d`");
        assert_eq!((payload.file_bytes(), payload.tree().rows().len()), (7, 2));
    }
}
