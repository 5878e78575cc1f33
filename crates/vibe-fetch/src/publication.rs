//! Publishing a package to a directory registry.
//!
//! Readers see a version as soon as its directory has its name, so that comes last: the files are
//! written beside it under a name that readers ignore, read back, and moved into place by one rename,
//! after the list that vouches for them. Publishers of one package keep each other out by a lock; what
//! a killed one left goes with the next. A version that is there is never written again.

use std::path::{Path, PathBuf};

use tempfile::TempDir;
use vibe_core::limits::PackageLimits;
use vibe_core::{Cancellation, PackageId, RelPath, Tree, Version};
use vibe_fs::{
    CopyError, Durability, EntryKind, FileLock, FsError, Holder, LockOutcome, ParentError,
    RemoveError, canonical_directory, copy_file_hashed, copy_hashed, create_directory,
    create_parents, list_dir, read_holder, remove_file_if, remove_tree, rename_over, stat_of,
    sync_directory, write_atomic,
};

use crate::collect::SourceKind;
use crate::contents::{apply_published_modes, check_published, hash_listing};
use crate::error::FetchError;
use crate::listing::{ListedFile, Listing, list};
use crate::registry::DirectoryRegistry;

/// Who publishes versions of a package, in its directory.
const LOCK: &str = ".vibe-publish.lock";
/// What is being written. No version is called so.
const STAGING: &str = ".vibe-tmp-";
/// The files, in the staging directory, which is the publisher's alone.
const FILES: &str = "files";

/// What is to be published.
#[derive(Debug, Clone, Copy)]
pub struct Publication<'a> {
    /// The package.
    pub id: &'a PackageId,
    /// Its version.
    pub version: &'a Version,
    /// Its files.
    pub listing: &'a Listing,
    /// What they hold.
    pub tree: &'a Tree,
    /// The bounds of a package.
    pub limits: &'a PackageLimits,
    /// The command, for whoever else publishes.
    pub command: &'a str,
}

/// What a registry has of a publication.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Published {
    /// Not this version.
    Absent,
    /// This version with the same content.
    Same,
}

/// Why a package was not published. Nothing of it can be seen then, but for
/// [`PublishError::ReadBack`].
#[derive(Debug, thiserror::Error)]
pub enum PublishError {
    /// There is no registry.
    #[error(transparent)]
    NoRegistry(FsError),
    /// The version is there and is not the same.
    #[error("this version is already published with other content: `{path}` {how}")]
    OtherContent {
        /// The first path that differs.
        path: RelPath,
        /// How, in words.
        how: &'static str,
    },
    /// What is there already cannot be read or trusted.
    #[error("this version is already there, and is not as it was published")]
    Unsound(#[source] Box<FetchError>),
    /// Somebody else publishes a version of the package.
    #[error("another vibe publishes this package: {holder}")]
    Busy {
        /// Who, in words, escaped.
        holder: String,
    },
    /// Installed from a registry, a file would not be the same or not be there.
    #[error("a package with these ignore files would not be read back as it is published")]
    Reading(#[source] Box<FetchError>),
    /// What was published is not what is read.
    #[error("what was published is read back with other content")]
    ReadBack(#[source] Box<FetchError>),
    /// A file changed while it was copied.
    #[error("`{path}` changed while it was read; run the command again when nothing writes to it")]
    Changed {
        /// The file, in the package.
        path: RelPath,
    },
    /// A file of the package could not be read.
    #[error(transparent)]
    Source(Box<FetchError>),
    /// A file could not be copied.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// Something is in the way in the registry.
    #[error(transparent)]
    Parent(#[from] ParentError),
    /// A file call in the registry failed.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// What a killed run left could not be removed.
    #[error(transparent)]
    Remove(#[from] RemoveError),
    /// The user interrupted.
    #[error("interrupted")]
    Interrupted,
}

/// What `registry` has of `publication`. Writes nothing.
///
/// # Errors
/// There is no registry, or the version is there with other content.
pub fn published(
    registry: &DirectoryRegistry,
    publication: &Publication<'_>,
) -> Result<Published, PublishError> {
    canonical_directory(registry.root()).map_err(PublishError::NoRegistry)?;
    let directory = registry.directory(publication.id, publication.version);
    if stat_of(&directory)?.is_none() {
        return Ok(Published::Absent);
    }
    let found = read_published(registry, publication)
        .map_err(|error| PublishError::Unsound(Box::new(error)))?;
    match first_other(publication.tree, &found) {
        None => Ok(Published::Same),
        Some((path, how)) => Err(PublishError::OtherContent { path, how }),
    }
}

/// Publishes, unless that is done already; what was there before says so.
///
/// # Errors
/// Of [`published`]; somebody else publishes the package; what ships is not what a reader of the
/// registry would see; a file cannot be read or written.
pub fn publish(
    registry: &DirectoryRegistry,
    publication: &Publication<'_>,
    cancel: &Cancellation,
) -> Result<Published, PublishError> {
    let is_there = published(registry, publication)? == Published::Same;
    if is_there && leftovers(&package_directory(registry, publication))?.is_empty() {
        return Ok(Published::Same);
    }
    let place = Place::make(registry, publication)?;
    let before = published(registry, publication)?;
    if before == Published::Absent {
        place.write(registry, publication, cancel)?;
    }
    Ok(before)
}

fn package_directory(registry: &DirectoryRegistry, publication: &Publication<'_>) -> PathBuf {
    let id = publication.id;
    registry.root().join(id.group()).join(id.name())
}

/// What publishers that were killed, or are at work, have in the directory of a package.
fn leftovers(directory: &Path) -> Result<Vec<PathBuf>, FsError> {
    let entries = list_dir(directory)?.into_iter();
    let is_ours = |name: Option<&str>| name.is_some_and(|name| name.starts_with(STAGING));
    Ok(entries
        .filter(|entry| is_ours(entry.relative.to_str()))
        .map(|entry| directory.join(entry.relative))
        .collect())
}

/// The directory of a package in a registry, held against other publishers.
struct Place {
    directory: PathBuf,
    lock: Option<FileLock>,
}

impl Place {
    fn make(
        registry: &DirectoryRegistry,
        publication: &Publication<'_>,
    ) -> Result<Self, PublishError> {
        let id = publication.id;
        let relative = RelPath::new(&format!("{}/{}/v", id.group(), id.name()));
        let relative = relative.map_err(|error| PublishError::Source(Box::new(error.into())))?;
        create_parents(registry.root(), &relative)?;
        let directory = package_directory(registry, publication);
        let holder = Holder {
            pid: std::process::id(),
            command: publication.command.to_owned(),
        };
        let path = directory.join(LOCK);
        let lock = match FileLock::try_exclusive(&path, &holder)? {
            LockOutcome::Held(lock) => Some(lock),
            LockOutcome::Unsupported => None,
            LockOutcome::Busy => {
                return Err(PublishError::Busy {
                    holder: holder_text(&path),
                });
            }
        };
        let place = Self { directory, lock };
        place.sweep()?;
        Ok(place)
    }

    /// Removes what killed publishers left; only a lock says that they are no more.
    fn sweep(&self) -> Result<(), PublishError> {
        if self.lock.is_none() {
            return Ok(());
        }
        for path in leftovers(&self.directory)? {
            remove_tree(&path)?;
        }
        Ok(())
    }

    fn write(
        &self,
        registry: &DirectoryRegistry,
        publication: &Publication<'_>,
        cancel: &Cancellation,
    ) -> Result<(), PublishError> {
        let staging = self.stage(publication, cancel)?;
        let files = staging.path().join(FILES);
        read_version(&files, Some(publication.tree), publication.limits)
            .map_err(|error| PublishError::Reading(Box::new(error)))?;
        let target = registry.directory(publication.id, publication.version);
        let list = self
            .directory
            .join(format!("v{}.tree", publication.version));
        let text = publication.tree.to_text();
        write_atomic(&list, text.as_bytes(), staging.path(), Durability::Synced)?;
        if let Err(error) = rename_over(&files, &target) {
            // Without locks another publisher may have been first.
            published(registry, publication)?;
            return Err(error.into());
        }
        sync_directory(&self.directory)?;
        let found = read_published(registry, publication);
        let found = found.map_err(|error| PublishError::ReadBack(Box::new(error)))?;
        check_published(&found, publication.tree)
            .map_err(|error| PublishError::ReadBack(Box::new(error)))
    }

    /// The files, in a new directory that goes away with what is returned.
    fn stage(
        &self,
        publication: &Publication<'_>,
        cancel: &Cancellation,
    ) -> Result<TempDir, PublishError> {
        let staging = tempfile::Builder::new()
            .prefix(STAGING)
            .tempdir_in(&self.directory)
            .map_err(FsError::at("create a directory in", &self.directory))?;
        // The staging directory is closed to others, and the published one must not be.
        let root = staging.path().join(FILES);
        create_directory(&root)?;
        for file in &publication.listing.files {
            if cancel.is_cancelled() {
                return Err(PublishError::Interrupted);
            }
            copy(publication, file, &root)?;
        }
        Ok(staging)
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if self.lock.is_some() {
            // Its name would only be in the way of whoever keeps the registry in git.
            let _ = remove_file_if(&self.directory.join(LOCK), |stat| {
                stat.kind == EntryKind::File
            });
        }
    }
}

fn holder_text(lock: &Path) -> String {
    match read_holder(lock) {
        Some(Holder { pid, command }) => {
            let command = vibe_core::text::escape(&command);
            format!("process {pid}, `{command}`")
        }
        None => "it does not say which".to_owned(),
    }
}

fn copy(publication: &Publication<'_>, file: &ListedFile, root: &Path) -> Result<(), PublishError> {
    create_parents(root, &file.path)?;
    let target = file.path.under(root);
    let digest = match file.location() {
        Some(location) => copy_file_hashed(location, &target, file.exec, file.size)?,
        None => {
            let bytes = publication.listing.read(file, file.size);
            let bytes = bytes.map_err(|error| PublishError::Source(Box::new(error)))?;
            copy_hashed(&mut bytes.as_slice(), &target, file.exec, file.size)?
        }
    };
    let is_same = publication
        .tree
        .get(&file.path)
        .is_some_and(|row| row.digest == digest);
    match is_same {
        true => Ok(()),
        false => Err(PublishError::Changed {
            path: file.path.clone(),
        }),
    }
}

/// The tree of a version in a registry, as an install reads it.
fn read_published(
    registry: &DirectoryRegistry,
    publication: &Publication<'_>,
) -> Result<Tree, FetchError> {
    let (id, version) = (publication.id, publication.version);
    let list = registry.published_tree(id, version)?;
    read_version(
        &registry.directory(id, version),
        list.as_ref(),
        publication.limits,
    )
}

fn read_version(
    directory: &Path,
    published: Option<&Tree>,
    limits: &PackageLimits,
) -> Result<Tree, FetchError> {
    let mut listing = list(directory, SourceKind::Published, limits)?;
    if let Some(published) = published {
        apply_published_modes(&mut listing, published)?;
    }
    let tree = hash_listing(&listing)?.tree;
    if let Some(published) = published {
        check_published(&tree, published)?;
    }
    Ok(tree)
}

/// The first path that is not the same in both, and how.
fn first_other(ours: &Tree, theirs: &Tree) -> Option<(RelPath, &'static str)> {
    let of_ours = ours
        .rows()
        .iter()
        .filter_map(|row| match theirs.get(&row.path) {
            None => Some((row.path.clone(), "is not in it")),
            Some(other) if other.digest != row.digest => Some((row.path.clone(), "differs")),
            Some(other) if other.exec != row.exec => {
                Some((row.path.clone(), "has another exec bit"))
            }
            Some(_) => None,
        });
    let of_theirs = theirs
        .rows()
        .iter()
        .filter(|row| ours.get(&row.path).is_none());
    let of_theirs = of_theirs.map(|row| (row.path.clone(), "is no longer in the package"));
    of_ours
        .chain(of_theirs)
        .min_by(|one, other| one.0.cmp(&other.0))
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{entries, write_directory};
    use std::fs;
    use vibe_testkit::{TreeSnapshot, mode_of, set_mode};

    const LINES: [&str; 4] = ["vibe.toml=x", "*run=y", "docs/a=z", "link -> docs"];

    struct World {
        directory: TempDir,
        id: PackageId,
        version: Version,
    }

    impl World {
        fn new(lines: &[&'static str]) -> Self {
            let directory = tempfile::tempdir().unwrap();
            write_directory(&directory.path().join("source"), &entries(lines));
            fs::create_dir(directory.path().join("registry")).unwrap();
            Self {
                directory,
                id: "org.a/x".parse().unwrap(),
                version: vibe_core::version::parse_version("1.0.0").unwrap(),
            }
        }

        fn at(&self, path: &str) -> PathBuf {
            self.directory.path().join(path)
        }

        fn package(&self, path: &str) -> PathBuf {
            self.at("registry/org.a/x").join(path)
        }

        fn with<T>(&self, act: impl FnOnce(&DirectoryRegistry, &Publication<'_>) -> T) -> T {
            let limits = PackageLimits::default();
            let listing = list(&self.at("source"), SourceKind::PathSource, &limits).unwrap();
            let tree = hash_listing(&listing).unwrap().tree;
            let publication = Publication {
                id: &self.id,
                version: &self.version,
                listing: &listing,
                tree: &tree,
                limits: &limits,
                command: "vibe publish",
            };
            act(&DirectoryRegistry::new(self.at("registry")), &publication)
        }

        fn publish(&self) -> Result<Published, PublishError> {
            self.with(|registry, publication| publish(registry, publication, &Cancellation::new()))
        }

        fn names(&self) -> Vec<String> {
            let mut names: Vec<String> = fs::read_dir(self.package(""))
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            names
        }
    }

    #[test]
    fn what_is_published_is_what_ships_with_its_list_beside_it_and_nothing_else() {
        let world = World::new(&LINES);
        assert_eq!(world.publish().unwrap(), Published::Absent);
        assert_eq!(world.names(), ["v1.0.0", "v1.0.0.tree"]);
        for (path, content) in [
            ("vibe.toml", "x"),
            ("run", "y"),
            ("docs/a", "z"),
            ("link/a", "z"),
        ] {
            let published = world.package("v1.0.0").join(path);
            assert_eq!(fs::read_to_string(&published).unwrap(), content);
            assert!(published.symlink_metadata().unwrap().is_file());
        }
        assert!(!world.package("v1.0.0/link").is_symlink());
        let umask = 0o777 & !mode_of(&world.at("registry"));
        for (path, mode) in [
            ("v1.0.0", 0o755),
            ("v1.0.0/run", 0o755),
            ("v1.0.0/docs/a", 0o644),
        ] {
            assert_eq!(mode_of(&world.package(path)), mode & !umask, "{path}");
        }
        let list = fs::read_to_string(world.package("v1.0.0.tree")).unwrap();
        world.with(|_, publication| assert_eq!(list, publication.tree.to_text()));
    }

    #[test]
    fn the_same_again_writes_nothing_and_other_content_is_refused() {
        let world = World::new(&LINES);
        world.publish().unwrap();
        let before = TreeSnapshot::of(&world.at("registry"));
        assert_eq!(world.publish().unwrap(), Published::Same);
        let refused = |expected: &str| {
            let text = world.publish().unwrap_err().to_string();
            assert!(text.ends_with(expected), "{text}");
        };
        fs::write(world.at("source/docs/a"), "other").unwrap();
        refused("`docs/a` differs");
        fs::write(world.at("source/docs/a"), "z").unwrap();
        set_mode(&world.at("source/run"), 0o644);
        refused("`run` has another exec bit");
        set_mode(&world.at("source/run"), 0o755);
        fs::write(world.at("source/a"), "").unwrap();
        refused("`a` is not in it");
        fs::remove_file(world.at("source/a")).unwrap();
        fs::remove_file(world.at("source/run")).unwrap();
        refused("`run` is no longer in the package");
        before.assert_unchanged(&TreeSnapshot::of(&world.at("registry")));
    }

    #[test]
    fn a_version_that_was_changed_in_the_registry_is_told_from_another_content() {
        let world = World::new(&LINES);
        world.publish().unwrap();
        fs::write(world.package("v1.0.0/run"), "changed").unwrap();
        let error = world.publish().unwrap_err();
        assert!(matches!(error, PublishError::Unsound(_)), "{error}");
        fs::remove_dir_all(world.package("v1.0.0")).unwrap();
        fs::write(world.package("v1.0.0"), "").unwrap();
        let error = world.publish().unwrap_err();
        assert!(matches!(error, PublishError::Unsound(_)), "{error}");
    }

    #[test]
    fn exec_bits_come_from_the_list_where_the_file_system_has_none() {
        let world = World::new(&LINES);
        world.publish().unwrap();
        set_mode(&world.package("v1.0.0/run"), 0o644);
        assert_eq!(world.publish().unwrap(), Published::Same);
    }

    #[test]
    fn what_a_killed_publisher_left_is_no_version_and_goes_with_the_next() {
        let world = World::new(&LINES);
        fs::create_dir_all(world.package(".vibe-tmp-dead/files")).unwrap();
        fs::write(world.package(".vibe-tmp-dead/files/run"), "half").unwrap();
        fs::write(world.package("v1.0.0.tree"), "file 1 a half").unwrap();
        fs::write(world.package(LOCK), "1\nvibe publish\n").unwrap();
        world.with(|registry, _| assert!(registry.versions(&world.id).unwrap().is_empty()));
        assert_eq!(world.publish().unwrap(), Published::Absent);
        assert_eq!(world.names(), ["v1.0.0", "v1.0.0.tree"]);
        fs::create_dir(world.package(".vibe-tmp-late")).unwrap();
        assert_eq!(world.publish().unwrap(), Published::Same);
        assert_eq!(world.names(), ["v1.0.0", "v1.0.0.tree"]);
    }

    #[test]
    fn of_two_publishers_one_is_told_of_the_other() {
        let world = World::new(&LINES);
        let place = world.with(Place::make).unwrap();
        let text = world.publish().unwrap_err().to_string();
        let me = std::process::id();
        assert_eq!(
            text,
            format!("another vibe publishes this package: process {me}, `vibe publish`")
        );
        assert_eq!(world.names(), [LOCK]);
        drop(place);
        world.publish().unwrap();
    }

    #[test]
    fn an_interrupt_leaves_nothing_to_be_seen() {
        let world = World::new(&LINES);
        let cancel = Cancellation::new();
        cancel.interrupt();
        let outcome = world.with(|registry, it| publish(registry, it, &cancel));
        assert!(matches!(outcome, Err(PublishError::Interrupted)));
        assert!(world.names().is_empty());
    }

    #[test]
    fn a_file_that_an_install_from_the_registry_would_leave_out_is_found_before_it_is_seen() {
        // The copy of the directory is where the rule aims, the directory is not.
        let world = World::new(&[
            "vibe.toml",
            ".vibeignore=/copy/secret\n",
            "docs/secret",
            "copy -> docs",
        ]);
        let error = world.publish().unwrap_err();
        assert!(matches!(error, PublishError::Reading(_)), "{error}");
        assert!(world.names().is_empty());
    }

    #[test]
    fn a_file_that_changed_since_it_was_listed_is_told() {
        let world = World::new(&LINES);
        let outcome = world.with(|registry, publication| {
            fs::write(world.at("source/run"), "Y").unwrap();
            publish(registry, publication, &Cancellation::new())
        });
        let error = outcome.unwrap_err();
        assert!(
            error
                .to_string()
                .starts_with("`run` changed while it was read"),
            "{error}"
        );
        assert!(world.names().is_empty());
    }

    #[test]
    fn a_registry_that_is_not_there_or_has_something_in_the_way_is_told() {
        let world = World::new(&LINES);
        fs::write(world.at("registry/org.a"), "").unwrap();
        let error = world.publish().unwrap_err();
        assert!(
            error
                .to_string()
                .ends_with("org.a is a file where a directory is needed"),
            "{error}"
        );
        fs::remove_dir_all(world.at("registry")).unwrap();
        let error = world.publish().unwrap_err();
        assert!(matches!(error, PublishError::NoRegistry(_)), "{error}");
        assert!(!world.at("registry").exists());
    }
}
