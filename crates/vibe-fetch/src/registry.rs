//! A registry that is a directory: `<root>/<group>/<name>/v<version>/vibe.toml`.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use vibe_core::formats::decode::decode;
use vibe_core::limits::RECORD_BYTES;
use vibe_core::version::parse_version;
use vibe_core::{Group, Name, PackageId, Tree, Version};
use vibe_fs::{EntryKind, FsError, RawEntry, canonical_directory, list_dir, read_if_exists};

use crate::error::FetchError;

/// Packages that are looked at for a name like the one that was meant.
const PACKAGES_LISTED: usize = 10_000;

/// A directory of published packages. It is read anew by each call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DirectoryRegistry {
    root: PathBuf,
}

impl DirectoryRegistry {
    /// The registry in the directory `root`, which may be a link.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Where the registry is.
    pub fn root(&self) -> &Path {
        &self.root
    }

    /// The published versions of `id`, ascending, those that differ only in build metadata too;
    /// empty if the registry does not know it. A registry that is not there at all is an error,
    /// and so is a version that is a link.
    pub fn versions(&self, id: &PackageId) -> Result<Vec<Version>, FetchError> {
        let directory = self.package_directory(id);
        let Some(entries) = list_if_there(&directory)? else {
            canonical_directory(&self.root)?;
            return Ok(Vec::new());
        };
        let mut versions = Vec::new();
        for entry in entries {
            match (version_of(&entry), entry.stat.kind) {
                (Some(version), EntryKind::Directory) => versions.push(version),
                (Some(_), kind @ EntryKind::Symlink) => {
                    let path = directory.join(&entry.relative);
                    return Err(FetchError::NotADirectory { path, kind });
                }
                _ => {}
            }
        }
        versions.sort();
        Ok(versions)
    }

    /// The packages that have a version, for hints about names: some thousands at most, and what
    /// cannot be read is left out.
    pub fn packages(&self) -> Vec<PackageId> {
        let mut packages = Vec::new();
        for group in names::<Group>(&self.root) {
            for name in names::<Name>(&self.root.join(group.as_str())) {
                let id = PackageId::new(&group, &name);
                if self
                    .versions(&id)
                    .is_ok_and(|versions| !versions.is_empty())
                {
                    packages.push(id);
                }
                if packages.len() == PACKAGES_LISTED {
                    return packages;
                }
            }
        }
        packages
    }

    /// The directory of one version, whether it is there or not.
    pub fn directory(&self, id: &PackageId, version: &Version) -> PathBuf {
        self.package_directory(id).join(format!("v{version}"))
    }

    /// The list of files that was published with a version (`v<version>.tree` beside its
    /// directory); `None` if there is none.
    pub fn published_tree(
        &self,
        id: &PackageId,
        version: &Version,
    ) -> Result<Option<Tree>, FetchError> {
        let path = self.package_directory(id).join(format!("v{version}.tree"));
        let Some(bytes) = read_if_exists(&path, RECORD_BYTES)? else {
            return Ok(None);
        };
        let refused = |source| FetchError::TreeFile {
            path: path.clone(),
            source,
        };
        let text = decode(&bytes).map_err(|_| refused(None))?;
        let tree = Tree::from_text(&text).map_err(|error| refused(Some(error)))?;
        Ok(Some(tree))
    }

    fn package_directory(&self, id: &PackageId) -> PathBuf {
        self.root.join(id.group()).join(id.name())
    }
}

fn version_of(entry: &RawEntry) -> Option<Version> {
    let text = entry.relative.to_str()?.strip_prefix('v')?;
    parse_version(text).ok()
}

/// The names in `directory` that are a `T`.
fn names<T: std::str::FromStr>(directory: &Path) -> Vec<T> {
    let entries = list_dir(directory).unwrap_or_default();
    entries
        .iter()
        .filter_map(|entry| entry.relative.to_str()?.parse().ok())
        .collect()
}

fn list_if_there(directory: &Path) -> Result<Option<Vec<RawEntry>>, FsError> {
    match list_dir(directory) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(None)
        }
        listed => listed.map(Some),
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;
    use vibe_core::Sha256Digest;

    fn registry(directories: &[&str]) -> (tempfile::TempDir, DirectoryRegistry) {
        let directory = tempfile::tempdir().unwrap();
        for path in directories {
            fs::create_dir_all(directory.path().join(path)).unwrap();
        }
        let registry = DirectoryRegistry::new(directory.path().to_path_buf());
        (directory, registry)
    }

    fn id(text: &str) -> PackageId {
        text.parse().unwrap()
    }

    fn versions(registry: &DirectoryRegistry, package: &str) -> Vec<String> {
        let found = registry.versions(&id(package)).unwrap();
        found.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn versions_are_the_directories_named_after_one() {
        let (directory, registry) = registry(&[
            "org.a/x/v1.10.0",
            "org.a/x/v1.9.0",
            "org.a/x/v1.9.0-rc.1",
            "org.a/x/v1.0.0+one",
            "org.a/x/v1.0.0+two",
            "org.a/x/1.0.0",
            "org.a/x/v1.0",
            "org.a/x/v01.0.0",
            "org.a/x/vnext",
            "org.a/x/V3.0.0",
        ]);
        fs::write(directory.path().join("org.a/x/v2.0.0"), "").unwrap();
        fs::write(directory.path().join("org.a/x/v1.9.0-rc.1.tree"), "").unwrap();
        assert_eq!(
            versions(&registry, "org.a/x"),
            ["1.0.0+one", "1.0.0+two", "1.9.0-rc.1", "1.9.0", "1.10.0"]
        );
        assert_eq!(registry.root(), directory.path());
    }

    #[test]
    fn an_unknown_package_has_no_versions_but_an_absent_registry_is_an_error() {
        let (directory, registry) = registry(&["org.a/x"]);
        fs::write(directory.path().join("org.a/file"), "").unwrap();
        for package in ["org.a/x", "org.a/y", "org.b/x", "org.a/file"] {
            assert!(versions(&registry, package).is_empty(), "{package}");
        }
        let absent = DirectoryRegistry::new(directory.path().join("absent"));
        let text = absent.versions(&id("org.a/x")).unwrap_err().to_string();
        assert!(
            text.starts_with("could not find /") && text.ends_with("/absent"),
            "{text}"
        );
    }

    #[test]
    fn a_package_that_cannot_be_listed_is_not_taken_for_unknown() {
        let (directory, registry) = registry(&["org.a"]);
        symlink("x", directory.path().join("org.a/x")).unwrap();
        let text = registry.versions(&id("org.a/x")).unwrap_err().to_string();
        assert!(text.starts_with("could not list /"), "{text}");
    }

    #[test]
    fn the_registry_may_be_a_link_but_a_version_may_not() {
        let (directory, _) = registry(&["real/org.a/x/v1.0.0"]);
        let at = |path: &str| directory.path().join(path);
        symlink("real", at("link")).unwrap();
        let registry = DirectoryRegistry::new(at("link"));
        assert_eq!(versions(&registry, "org.a/x"), ["1.0.0"]);
        symlink("v1.0.0", at("real/org.a/x/v2.0.0")).unwrap();
        let text = registry.versions(&id("org.a/x")).unwrap_err().to_string();
        assert!(
            text.ends_with("v2.0.0 is a symbolic link, not a directory"),
            "{text}"
        );
    }

    #[test]
    fn packages_are_those_with_a_version() {
        let (_directory, registry) = registry(&[
            "org.b/y/v1.0.0",
            "org.a/x/v1.0.0",
            "org.a/none",
            "org.a/Bad/v1.0.0",
            "Bad/x/v1.0.0",
            ".git/x/v1.0.0",
        ]);
        assert_eq!(registry.packages(), [id("org.a/x"), id("org.b/y")]);
        assert!(
            DirectoryRegistry::new("/absent/registry".into())
                .packages()
                .is_empty()
        );
    }

    #[test]
    fn a_published_tree_lies_beside_its_version() {
        let (directory, registry) = registry(&["org.a/x/v1.0.0+b"]);
        let version = parse_version("1.0.0+b").unwrap();
        let package = id("org.a/x");
        let place = directory.path().join("org.a/x/v1.0.0+b");
        assert_eq!(registry.directory(&package, &version), place);
        assert_eq!(registry.published_tree(&package, &version).unwrap(), None);
        let file = directory.path().join("org.a/x/v1.0.0+b.tree");
        let text = format!("exec 1 a {}\n", Sha256Digest::of(b""));
        fs::write(&file, &text).unwrap();
        let tree = registry.published_tree(&package, &version).unwrap();
        assert_eq!(tree.unwrap().to_text(), text);
        let on_windows = format!("\u{feff}{}", text.replace('\n', "\r\n"));
        fs::write(&file, on_windows).unwrap();
        let tree = registry.published_tree(&package, &version).unwrap();
        assert_eq!(tree.unwrap().to_text(), text);
        for malformed in [&b"file\n"[..], b"\xff"] {
            fs::write(&file, malformed).unwrap();
            let error = registry.published_tree(&package, &version).unwrap_err();
            let text = error.to_string();
            assert!(
                text.contains("v1.0.0+b.tree is not a list of files"),
                "{text}"
            );
        }
    }
}
