//! From a listing to the content identity of a package.

use rayon::prelude::*;
use vibe_core::{Tree, TreeRow};
use vibe_fs::{hash_file, open_regular, stat_of_open};
use vibe_store::StagedTree;

use crate::error::{FetchError, TreeDifference};
use crate::listing::{ListedFile, Listing};

/// Reads and hashes every file, several at a time. A file that is not what was listed, or changes
/// while it is read, is an error, as are names that collide.
pub fn hash_listing(listing: &Listing) -> Result<Tree, FetchError> {
    let rows: Result<Vec<TreeRow>, FetchError> = listing.files.par_iter().map(hash_one).collect();
    Ok(Tree::new(rows?)?)
}

fn hash_one(file: &ListedFile) -> Result<TreeRow, FetchError> {
    let hashed = hash_file(&file.location)?;
    if hashed.stat != file.stat {
        return Err(FetchError::ChangedWhileRead {
            path: file.path.clone(),
        });
    }
    Ok(TreeRow {
        path: file.path.clone(),
        digest: hashed.digest,
        exec: file.exec,
    })
}

/// Writes every file into `staged`, several at a time, hashing it on the way. A file that is not
/// what was listed, or changes while it is read, is an error, as are names that collide.
pub fn stage_listing(
    listing: &Listing,
    staged: &StagedTree,
    file_bytes: u64,
) -> Result<Tree, FetchError> {
    let files = listing.files.par_iter();
    files.try_for_each(|file| stage_one(file, staged, file_bytes))?;
    Ok(staged.tree()?)
}

fn stage_one(file: &ListedFile, staged: &StagedTree, file_bytes: u64) -> Result<(), FetchError> {
    let (mut reader, before) = open_regular(&file.location)?;
    staged.add(&file.path, &mut reader, file.exec, file_bytes)?;
    let after = stat_of_open(&reader, &file.location)?;
    match before == file.stat && after == file.stat {
        true => Ok(()),
        false => Err(FetchError::ChangedWhileRead {
            path: file.path.clone(),
        }),
    }
}

/// Gives the files of `listing` the exec bits of the `published` tree.
pub fn apply_published_bits(listing: &mut Listing, published: &Tree) {
    for file in &mut listing.files {
        if let Some(row) = published.get(&file.path) {
            file.exec = row.exec;
        }
    }
}

/// Checks that `hashed`, the tree of `listing`, has the paths and digests of the `published` one,
/// and gives the listing the published exec bits. Returns the tree with them.
pub fn apply_published_tree(
    listing: &mut Listing,
    hashed: &Tree,
    published: Tree,
) -> Result<Tree, FetchError> {
    if let Some((path, difference)) = first_difference(hashed.rows(), published.rows()) {
        return Err(FetchError::PublishedDiffers { path, difference });
    }
    for (file, row) in listing.files.iter_mut().zip(published.rows()) {
        file.exec = row.exec;
    }
    Ok(published)
}

fn first_difference(
    found: &[TreeRow],
    published: &[TreeRow],
) -> Option<(vibe_core::RelPath, TreeDifference)> {
    for (one, other) in found.iter().zip(published) {
        if one.path < other.path {
            return Some((one.path.clone(), TreeDifference::Unlisted));
        }
        if one.path > other.path {
            return Some((other.path.clone(), TreeDifference::Missing));
        }
        if one.digest != other.digest {
            return Some((one.path.clone(), TreeDifference::Content));
        }
    }
    let shared = found.len().min(published.len());
    let unlisted = found[shared..]
        .first()
        .map(|row| (row, TreeDifference::Unlisted));
    let missing = published[shared..]
        .first()
        .map(|row| (row, TreeDifference::Missing));
    unlisted
        .or(missing)
        .map(|(row, difference)| (row.path.clone(), difference))
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::listing::list;
    use crate::scan::SourceKind;
    use std::fs;
    use std::path::Path;
    use vibe_core::limits::PackageLimits;
    use vibe_core::{RelPath, Sha256Digest};

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
        let found = hash_listing(&listing(package.path())).unwrap();
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
        use rustix::thread::{Uid, set_thread_res_uid};
        use std::os::unix::fs::PermissionsExt as _;
        let work = || {
            if rustix::process::geteuid().is_root() {
                let nobody = Uid::from_raw(65_534);
                set_thread_res_uid(nobody, nobody, nobody).unwrap();
            }
            let package = package(&["closed"]);
            let closed = package.path().join("closed");
            fs::set_permissions(&closed, fs::Permissions::from_mode(0o000)).unwrap();
            let files = listing(package.path()).files;
            // On this thread, not in the pool: only it has given up its powers.
            let text = hash_one(&files[0]).unwrap_err().to_string();
            assert_eq!(text, format!("could not open {}", closed.display()));
        };
        std::thread::scope(|scope| scope.spawn(work).join()).unwrap();
    }

    #[test]
    fn published_exec_bits_win_where_paths_and_digests_agree() {
        let package = package(&["a", "b"]);
        let mut listing = listing(package.path());
        let hashed = hash_listing(&listing).unwrap();
        let published = tree(&[("a", "a", false), ("b", "b", true)]);
        let applied = apply_published_tree(&mut listing, &hashed, published.clone()).unwrap();
        assert_eq!(applied, published);
        let exec: Vec<bool> = listing.files.iter().map(|file| file.exec).collect();
        assert_eq!(exec, [false, true]);
    }

    #[test]
    fn the_first_path_that_differs_from_the_published_ones_is_named() {
        let check = |published: &[(&str, &str, bool)], expected: (&str, TreeDifference)| {
            let hashed = tree(&[("b", "b", false), ("d", "d", false)]);
            let mut listing = Listing::default();
            match apply_published_tree(&mut listing, &hashed, tree(published)) {
                Err(FetchError::PublishedDiffers { path, difference }) => {
                    assert_eq!((path.as_str(), difference), expected);
                }
                other => panic!("{other:?}"),
            }
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
