//! Reading the files of a listing, once each: into an identity alone, or into the store as well.

use std::io::{self, Read};
use std::path::Path;

use rayon::prelude::*;
use vibe_core::{RelPath, Sha256Digest, Tree, TreeRow};
use vibe_fs::{FsError, Stat, hash_file_watched, open_regular, stat_of_open};
use vibe_store::StagedTree;

use crate::error::{FetchError, TreeDifference};
use crate::large_files::Head;
use crate::listing::{FileContent, ListedFile, Listing};
use crate::note::ListingNote;

/// What reading the files of a listing gave.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contents {
    /// Their content identity.
    pub tree: Tree,
    /// What somebody should know, beyond the notes of the listing.
    pub notes: Vec<ListingNote>,
}

/// Reads and hashes every file, several at a time. What need not be stored is done with that.
///
/// # Errors
/// A file that is not what was listed, or changes while it is read; one that cannot be read; names
/// that collide.
pub fn hash_listing(listing: &Listing) -> Result<Contents, FetchError> {
    let hashed = |file: &ListedFile| {
        let mut head = Head::default();
        let digest = hash_one(listing, file, &mut head)?;
        let row = TreeRow {
            path: file.path.clone(),
            digest,
            exec: file.exec,
        };
        Ok((row, head.note(&file.path)))
    };
    let hashed: Result<Vec<_>, FetchError> = listing.files.par_iter().map(hashed).collect();
    let (rows, notes): (Vec<_>, Vec<_>) = hashed?.into_iter().unzip();
    Ok(Contents {
        tree: Tree::new(rows)?,
        notes: notes.into_iter().flatten().collect(),
    })
}

/// Reads every file, several at a time, into `staged`, so that what is read can be held against
/// what is expected before it is stored.
///
/// # Errors
/// As of [`hash_listing`], or the store cannot be written.
pub fn stage_listing(listing: &Listing, staged: &StagedTree) -> Result<Contents, FetchError> {
    let notes: Result<Vec<_>, FetchError> = listing
        .files
        .par_iter()
        .map(|file| {
            let mut head = Head::default();
            stage_one(listing, file, staged, &mut head)?;
            Ok(head.note(&file.path))
        })
        .collect();
    Ok(Contents {
        notes: notes?.into_iter().flatten().collect(),
        tree: staged.tree()?,
    })
}

fn hash_one(
    listing: &Listing,
    file: &ListedFile,
    head: &mut Head,
) -> Result<Sha256Digest, FetchError> {
    match &file.content {
        FileContent::Disk { location, stat } => {
            let hashed = hash_file_watched(location, |bytes| head.take(bytes))?;
            match hashed.stat == *stat {
                true => Ok(hashed.digest),
                false => Err(changed(file)),
            }
        }
        FileContent::Blob { .. } => {
            let bytes = listing.read(file, file.size)?;
            head.take(&bytes);
            Ok(Sha256Digest::of(&bytes))
        }
    }
}

fn stage_one(
    listing: &Listing,
    file: &ListedFile,
    staged: &StagedTree,
    head: &mut Head,
) -> Result<(), FetchError> {
    match &file.content {
        FileContent::Disk { location, stat } => stage_from_disk(file, location, stat, staged, head),
        FileContent::Blob { .. } => {
            let bytes = listing.read(file, file.size)?;
            head.take(&bytes);
            staged.add(&file.path, &mut bytes.as_slice(), file.exec, file.size)?;
            Ok(())
        }
    }
}

fn stage_from_disk(
    file: &ListedFile,
    location: &Path,
    stat: &Stat,
    staged: &StagedTree,
    head: &mut Head,
) -> Result<(), FetchError> {
    let (opened, opened_stat) = open_regular(location)?;
    if opened_stat != *stat {
        return Err(changed(file));
    }
    let mut reader = Watched {
        inner: opened,
        head,
        failure: None,
    };
    let added = staged.add(&file.path, &mut reader, file.exec, file.size);
    if let Some(error) = reader.failure {
        return Err(FsError::new("read the content of", location, error).into());
    }
    if stat_of_open(&reader.inner, location)? != *stat {
        return Err(changed(file));
    }
    added?;
    Ok(())
}

/// A reader whose failures can be told from those of who it is handed to.
struct Watched<'a, R> {
    inner: R,
    head: &'a mut Head,
    failure: Option<io::Error>,
}

impl<R: Read> Read for Watched<'_, R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self.inner.read(buffer) {
            Ok(count) => {
                self.head.take(&buffer[..count]);
                Ok(count)
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Err(error),
            Err(error) => {
                let kind = error.kind();
                self.failure = Some(error);
                Err(kind.into())
            }
        }
    }
}

fn changed(file: &ListedFile) -> FetchError {
    FetchError::ChangedWhileRead {
        path: file.path.clone(),
    }
}

/// Gives the files the exec bits that were published with them, before they are read.
///
/// # Errors
/// The first path that only one of the two has.
pub fn apply_published_modes(listing: &mut Listing, published: &Tree) -> Result<(), FetchError> {
    let found = listing.files.iter().map(|file| &file.path);
    let rows = published.rows().iter().map(|row| &row.path);
    if let Some((path, difference)) = first_difference(found, rows) {
        return Err(FetchError::PublishedDiffers { path, difference });
    }
    for (file, row) in listing.files.iter_mut().zip(published.rows()) {
        file.exec = row.exec;
    }
    Ok(())
}

/// Checks that `tree`, of a listing with published exec bits, is the `published` one.
///
/// # Errors
/// The first file with other content.
pub fn check_published(tree: &Tree, published: &Tree) -> Result<(), FetchError> {
    let pairs = tree.rows().iter().zip(published.rows());
    let different = |(one, other): &(&TreeRow, &TreeRow)| one != other;
    match pairs.into_iter().find(different) {
        None => Ok(()),
        Some((row, _)) => Err(FetchError::PublishedDiffers {
            path: row.path.clone(),
            difference: TreeDifference::Content,
        }),
    }
}

fn first_difference<'a>(
    mut found: impl Iterator<Item = &'a RelPath>,
    mut published: impl Iterator<Item = &'a RelPath>,
) -> Option<(RelPath, TreeDifference)> {
    loop {
        let (path, difference) = match (found.next(), published.next()) {
            (None, None) => return None,
            (Some(one), Some(other)) if one == other => continue,
            (Some(one), Some(other)) if one < other => (one, TreeDifference::Unlisted),
            (Some(one), None) => (one, TreeDifference::Unlisted),
            (_, Some(other)) => (other, TreeDifference::Missing),
        };
        return Some((path.clone(), difference));
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::collect::SourceKind;
    use crate::listing::list;
    use std::fs;
    use std::path::Path;
    use vibe_core::limits::PackageLimits;

    fn package(files: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for file in files {
            fs::write(directory.path().join(file), file).unwrap();
        }
        directory
    }

    fn listing(root: &Path) -> Listing {
        list(root, SourceKind::Published, &PackageLimits::default()).unwrap()
    }

    fn tree(files: &[(&str, &str, bool)]) -> Tree {
        let row = |(path, content, exec): &(&str, &str, bool)| TreeRow {
            path: RelPath::new(path).unwrap(),
            digest: Sha256Digest::of(content.as_bytes()),
            exec: *exec,
        };
        Tree::new(files.iter().map(row).collect()).unwrap()
    }

    #[test]
    fn a_listing_hashes_to_its_tree_links_included() {
        use std::os::unix::fs::{PermissionsExt as _, symlink};
        let package = package(&["a", "run"]);
        let run = package.path().join("run");
        fs::set_permissions(run, fs::Permissions::from_mode(0o755)).unwrap();
        symlink("run", package.path().join("link")).unwrap();
        let found = hash_listing(&listing(package.path())).unwrap().tree;
        let expected = tree(&[
            ("a", "a", false),
            ("link", "run", true),
            ("run", "run", true),
        ]);
        assert_eq!(found, expected);
    }

    #[test]
    fn a_file_that_is_not_as_listed_is_told() {
        let package = package(&["a", "b"]);
        let before = listing(package.path());
        fs::write(package.path().join("b"), "longer than before").unwrap();
        let error = hash_listing(&before).unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("`b` changed while it was read")
        );
        fs::remove_file(package.path().join("b")).unwrap();
        let error = hash_listing(&before).unwrap_err();
        assert!(matches!(error, FetchError::Hash(_)), "{error}");
    }

    #[test]
    fn names_that_collide_are_refused() {
        let package = package(&["README.md", "readme.md"]);
        let error = hash_listing(&listing(package.path())).unwrap_err();
        assert!(error.to_string().contains("`README.md` and `readme.md`"));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_file_that_may_not_be_read_is_named() {
        vibe_testkit::as_ordinary_user(|| {
            let package = package(&["closed"]);
            let closed = package.path().join("closed");
            vibe_testkit::set_mode(&closed, 0o000);
            let listing = listing(package.path());
            // On this thread, not in the pool: only it has given up its powers.
            let hashed = hash_one(&listing, &listing.files[0], &mut Head::default());
            let text = hashed.unwrap_err().to_string();
            assert_eq!(text, format!("could not open {}", closed.display()));
        });
    }

    fn published(listing: &mut Listing, published: &Tree) -> Result<Tree, FetchError> {
        apply_published_modes(listing, published)?;
        let tree = hash_listing(listing)?.tree;
        check_published(&tree, published)?;
        Ok(tree)
    }

    #[test]
    fn published_exec_bits_win_where_paths_and_digests_agree() {
        let package = package(&["a", "b"]);
        let mut listing = listing(package.path());
        let expected = tree(&[("a", "a", false), ("b", "b", true)]);
        assert_eq!(published(&mut listing, &expected).unwrap(), expected);
        let exec: Vec<bool> = listing.files.iter().map(|file| file.exec).collect();
        assert_eq!(exec, [false, true]);
    }

    #[test]
    fn the_first_path_that_differs_from_the_published_ones_is_named() {
        let package = package(&["b", "d"]);
        let check = |rows: &[(&str, &str, bool)], expected: (&str, TreeDifference)| match published(
            &mut listing(package.path()),
            &tree(rows),
        ) {
            Err(FetchError::PublishedDiffers { path, difference }) => {
                assert_eq!((path.as_str(), difference), expected);
            }
            other => panic!("{other:?}"),
        };
        let (b, d) = (("b", "b", false), ("d", "d", false));
        check(&[b], ("d", TreeDifference::Unlisted));
        check(&[d], ("b", TreeDifference::Unlisted));
        check(&[("a", "", false), b, d], ("a", TreeDifference::Missing));
        check(&[b, ("c", "", false), d], ("c", TreeDifference::Missing));
        check(&[b, d, ("e", "", false)], ("e", TreeDifference::Missing));
        check(&[b, ("d", "other", false)], ("d", TreeDifference::Content));
    }

    #[test]
    fn a_changed_publication_is_told_in_words() {
        let check = |difference, words: &str| {
            let path = RelPath::new("a").unwrap();
            let text = FetchError::PublishedDiffers { path, difference }.to_string();
            assert!(
                text.starts_with(&format!("`a` {words}: the published files")),
                "{text}"
            );
        };
        check(
            TreeDifference::Missing,
            "is in the package's `.tree` file but absent",
        );
        check(
            TreeDifference::Unlisted,
            "is not in the package's `.tree` file",
        );
        check(
            TreeDifference::Content,
            "has other content than the package's `.tree` file says",
        );
    }
}
