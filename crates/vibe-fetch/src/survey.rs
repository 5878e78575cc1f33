//! A look at a package of one's own that goes on after what it refuses, so that everything that
//! stands in the way of an install is told at once.

use std::path::Path;

use vibe_core::limits::PackageLimits;
use vibe_core::text::escape;
use vibe_core::tree::TreeError;
use vibe_core::{Sha256Digest, Tree, TreeRow};
use vibe_fs::canonical_directory;

use crate::collect::SourceKind;
use crate::error::FetchError;
use crate::listing::{Listing, resolve_in};
use crate::scan::scan;

/// Names that collide with others, of which that many are told.
const COLLISIONS: usize = 20;

/// What is in a package.
#[derive(Debug)]
pub struct Survey {
    /// What ships, without what is refused.
    pub listing: Listing,
    /// Why an install of it would be refused: every entry that no package may have.
    pub refused: Vec<FetchError>,
    /// Where below the package, escaped, a `.git` was left out: repositories in the repository.
    pub nested_repositories: Vec<String>,
}

/// Looks at the path source in the directory `root`, which may be a link, as [`crate::list`] does.
///
/// # Errors
/// What does not let the rest be looked at: a directory that cannot be read, too many entries, too
/// many bytes.
pub fn survey(root: &Path, limits: &PackageLimits) -> Result<Survey, FetchError> {
    let root = canonical_directory(root)?;
    let mut refused = Vec::new();
    let mut keep = |error: FetchError| match is_of_one_entry(&error) {
        true => {
            refused.push(error);
            Ok(())
        }
        false => Err(error),
    };
    let scanned = scan(&root, SourceKind::PathSource, limits, &mut keep)?;
    let mut listing = resolve_in(root, scanned.nodes, scanned.notes, limits, &mut keep)?;
    refused.extend(collisions(&mut listing));
    let nested = scanned.skipped_git.iter();
    let nested = nested.filter(|path| path.components().count() > 1);
    Ok(Survey {
        listing,
        refused,
        nested_repositories: nested.map(|path| escape(&path.to_string_lossy())).collect(),
    })
}

fn is_of_one_entry(error: &FetchError) -> bool {
    matches!(
        error,
        FetchError::Name(_)
            | FetchError::Special { .. }
            | FetchError::Link { .. }
            | FetchError::LongLink { .. }
            | FetchError::FileTooLarge { .. }
            | FetchError::Twice { .. }
    )
}

/// The names that collide, each of which is taken out of the listing.
fn collisions(listing: &mut Listing) -> Vec<FetchError> {
    let mut found = Vec::new();
    let nothing = Sha256Digest::of(b"");
    while found.len() < COLLISIONS {
        let rows = listing.files.iter().map(|file| TreeRow {
            path: file.path.clone(),
            digest: nothing,
            exec: false,
        });
        let Err(error) = Tree::new(rows.collect()) else {
            break;
        };
        if let TreeError::Collision { second, .. } = &error {
            listing.files.retain(|file| file.path != *second);
        }
        found.push(FetchError::Tree(error));
    }
    found
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::list;
    use crate::testing::{entries, shown, write_directory};
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn everything_that_is_refused_is_told_and_the_rest_is_listed() {
        let package = tempfile::tempdir().unwrap();
        write_directory(
            package.path(),
            &entries(&[
                "vibe.toml",
                "CON/deep",
                "a -> /etc/passwd",
                "b -> absent",
                "README.md",
                "readme.md",
                "ReadMe.md",
                "sub/x",
                "sub/.git/config",
                ".git/config",
                "*run",
            ]),
        );
        vibe_testkit::make_pipe(&package.path().join("pipe"));
        let found = survey(package.path(), &PackageLimits::default()).unwrap();
        let refused: Vec<String> = found.refused.iter().map(ToString::to_string).collect();
        let parts = [
            "`CON`",
            "`pipe` is a named pipe",
            "`a` is a link",
            "`b` is a link",
            "`README.md` and `ReadMe.md`",
            "`README.md` and `readme.md`",
        ];
        assert_eq!(refused.len(), parts.len(), "{refused:#?}");
        for (text, part) in refused.iter().zip(parts) {
            assert!(text.contains(part), "no {part} in {text}");
        }
        assert_eq!(
            shown(&found.listing),
            ["README.md", "*run", "sub/x", "vibe.toml"]
        );
        assert_eq!(found.nested_repositories, ["sub/.git"]);
        assert!(
            list(
                package.path(),
                SourceKind::PathSource,
                &PackageLimits::default()
            )
            .is_err()
        );
    }

    #[test]
    fn a_directory_link_that_is_refused_half_way_leaves_nothing() {
        let package = tempfile::tempdir().unwrap();
        write_directory(package.path(), &entries(&["d/a", "d/z -> /etc", "f"]));
        symlink("d", package.path().join("l")).unwrap();
        let found = survey(package.path(), &PackageLimits::default()).unwrap();
        assert_eq!(shown(&found.listing), ["d/a", "f"]);
        assert_eq!(found.refused.len(), 2);
    }

    #[test]
    fn a_sound_package_is_listed_as_an_install_lists_it() {
        let package = tempfile::tempdir().unwrap();
        let lines = ["vibe.toml", ".vibeignore=x\n", "x/y", "l -> a", "*a"];
        write_directory(package.path(), &entries(&lines));
        let limits = PackageLimits::default();
        let found = survey(package.path(), &limits).unwrap();
        let listed = list(package.path(), SourceKind::PathSource, &limits).unwrap();
        assert_eq!(found.listing.files, listed.files);
        assert!(found.refused.is_empty() && found.nested_repositories.is_empty());
    }

    #[test]
    fn limits_of_the_whole_end_the_look() {
        let package = tempfile::tempdir().unwrap();
        for name in ["a", "b"] {
            fs::write(package.path().join(name), "12").unwrap();
        }
        let limits = PackageLimits {
            package_entries: 1,
            ..PackageLimits::default()
        };
        let error = survey(package.path(), &limits).unwrap_err();
        assert!(
            matches!(error, FetchError::TooManyEntries { .. }),
            "{error}"
        );
    }
}
