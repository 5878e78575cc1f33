//! A commit as a package: its blobs, as they are, are the files. Nothing is checked out, so nothing
//! that acts on a checkout acts here: no attribute, filter, encoding or configuration.
//!
//! A submodule is a directory with what the repository above it pins. Its names, links and sizes
//! are judged together with all others.

use std::collections::{BTreeMap, HashMap};
use std::path::PathBuf;
use std::sync::Arc;

use rayon::prelude::*;
use vibe_core::RelPath;
use vibe_core::git_url::RemoteUrl;
use vibe_core::limits::{MANIFEST_BYTES, PATH_BYTES, PATH_DEPTH, PackageLimits};
use vibe_core::text::escape_bytes;
use vibe_git::{CommitId, Database, EntryKind, GitError, TreeEntry, TreeLimits};

use crate::collect::{Collector, FileFacts, Node, SourceKind, package_path};
use crate::error::FetchError;
use crate::listing::{Listing, Origin, Unresolved};
use crate::submodules::{SUBMODULE_DEPTH, SUBMODULES, SubmoduleError, submodule_urls};

/// Entries of one commit, those that do not ship included, so that its list fits into memory.
const COMMIT_ENTRIES: usize = 1_000_000;
/// Directories within each other in one commit: what ships is held to the depth of a path, and
/// what does not may go somewhat deeper.
const COMMIT_DEPTH: usize = 4 * PATH_DEPTH;
/// Bytes of a path that is looked at at all.
const LONGEST_PATH_BYTES: usize = 4 * PATH_BYTES;
/// Bytes of what a link says: no system follows more.
const LINK_BYTES: u64 = 4_096;

/// What a submodule that cannot be had failed with.
pub type SubmoduleFailure = Box<dyn std::error::Error + Send + Sync>;

/// Gets the repositories of submodules.
pub trait SubmoduleSource {
    /// The objects of `commit` and its trees, from the repository at `url`. Whether that address
    /// may be used is the caller's policy; its form, and that it is no place on this machine
    /// unless the package is from one, has been looked at.
    ///
    /// # Errors
    /// Whatever stands in the way. It becomes the source of an error that names submodule, address
    /// and commit.
    fn open(&self, url: &RemoteUrl, commit: &CommitId) -> Result<Arc<Database>, SubmoduleFailure>;
}

/// A package in a commit.
#[derive(Clone, Copy)]
pub struct GitPackage<'a> {
    /// Where the commit's objects are.
    pub database: &'a Arc<Database>,
    /// The commit.
    pub commit: CommitId,
    /// The directory of the package; `None` for the whole repository.
    pub subdir: Option<&'a RelPath>,
    /// Where the repository really is: what its submodules' addresses are relative to.
    pub url: &'a RemoteUrl,
    /// Gets its submodules.
    pub submodules: &'a dyn SubmoduleSource,
}

/// A submodule of a commit that is checked out as a whole.
#[derive(Debug, Clone)]
pub struct FoundSubmodule {
    /// Where it is, from the root of the outermost repository.
    pub path: RelPath,
    /// Its repository.
    pub url: RemoteUrl,
    /// What is pinned.
    pub commit: CommitId,
    /// Has it.
    pub database: Arc<Database>,
}

/// Lists what ships of a package in a commit, by the rules for a published directory: everything
/// but `vibedeps/` and what the root's `.vibeignore` matches; `.gitignore` files do not act. Refuses
/// what no package may have; reads the content of `.vibeignore`, `.gitmodules` and links only.
///
/// # Errors
/// The first entry or submodule that is refused, or an object that cannot be read.
pub fn list_git(package: &GitPackage<'_>, limits: &PackageLimits) -> Result<Listing, FetchError> {
    let entries = root_entries(package)?;
    let vibeignore = read_vibeignore(package.database, &entries)?;
    list_entries(package, entries, vibeignore.as_deref(), limits).map(|(listing, _)| listing)
}

/// Lists what is checked out of a commit, and its submodules, each after the one it is in. Judged
/// as [`list_git`] judges what ships; but nothing is left out, and sizes have no bounds.
///
/// # Errors
/// The first entry or submodule that is refused, or an object that cannot be read.
pub fn list_clone(package: &GitPackage<'_>) -> Result<(Listing, Vec<FoundSubmodule>), FetchError> {
    let unbounded = PackageLimits {
        package_bytes: u64::MAX,
        package_entries: usize::MAX,
        file_bytes: u64::MAX,
    };
    list_entries(package, root_entries(package)?, None, &unbounded)
}

fn root_entries(package: &GitPackage<'_>) -> Result<Vec<TreeEntry>, FetchError> {
    let subdir = package.subdir.map(RelPath::as_str);
    Ok(package
        .database
        .entries(&package.commit, subdir, COMMIT_LIMITS)?)
}

fn list_entries(
    package: &GitPackage<'_>,
    entries: Vec<TreeEntry>,
    vibeignore: Option<&[u8]>,
    limits: &PackageLimits,
) -> Result<(Listing, Vec<FoundSubmodule>), FetchError> {
    let mut walk = Walk {
        collector: Collector::new(SourceKind::Published, limits, vibeignore),
        repositories: Vec::new(),
        hidden: Vec::new(),
        submodules: package.submodules,
        found: Vec::new(),
        above: Vec::new(),
    };
    walk.repository(
        &Place {
            database: package.database,
            commit: package.commit,
            subdir: package.subdir,
            at: None,
            url: package.url,
        },
        entries,
    )?;
    let Walk {
        collector,
        repositories,
        hidden,
        found,
        ..
    } = walk;
    let exists = |path: &str| hidden.iter().any(|hidden| lies_at_or_below(hidden, path));
    let listing = Unresolved {
        nodes: collector.nodes,
        notes: collector.notes,
        origin: Origin::Repositories(repositories),
    }
    .resolve(limits, &exists, &mut Err)?;
    Ok((listing, found))
}

const COMMIT_LIMITS: TreeLimits = TreeLimits {
    entries: COMMIT_ENTRIES,
    depth: COMMIT_DEPTH,
};

fn lies_at_or_below(path: &[u8], directory: &str) -> bool {
    path.strip_prefix(directory.as_bytes())
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(b"/"))
}

/// As in a directory, a link of that name is no ignore file.
fn read_vibeignore(
    database: &Database,
    entries: &[TreeEntry],
) -> Result<Option<Vec<u8>>, FetchError> {
    let entry = entries.iter().find(|entry| entry.path == b".vibeignore");
    match entry {
        Some(entry) if is_file(entry.kind) => database
            .read_blob(&entry.id, MANIFEST_BYTES)
            .map(Some)
            .map_err(|source| in_blob(&entry.path, source)),
        _ => Ok(None),
    }
}

fn is_file(kind: EntryKind) -> bool {
    matches!(kind, EntryKind::File | EntryKind::Executable)
}

fn in_blob(path: &[u8], source: GitError) -> FetchError {
    FetchError::Blob {
        path: escape_bytes(path),
        source: Box::new(source),
    }
}

/// One repository of the package and where it lies in it.
struct Place<'a> {
    database: &'a Arc<Database>,
    commit: CommitId,
    subdir: Option<&'a RelPath>,
    /// Of a submodule its path in the package.
    at: Option<&'a RelPath>,
    url: &'a RemoteUrl,
}

struct Walk<'a> {
    collector: Collector<'a>,
    repositories: Vec<Arc<Database>>,
    /// The paths that do not ship.
    hidden: Vec<Vec<u8>>,
    submodules: &'a dyn SubmoduleSource,
    found: Vec<FoundSubmodule>,
    /// The repositories that the one looked at lies in, itself included, the outermost first.
    above: Vec<RemoteUrl>,
}

impl Walk<'_> {
    fn repository(&mut self, place: &Place<'_>, entries: Vec<TreeEntry>) -> Result<(), FetchError> {
        let repository = self.repositories.len();
        self.repositories.push(Arc::clone(place.database));
        self.above.push(place.url.clone());
        let shipping = self.shipping(place, entries);
        let urls = read_submodule_urls(place)?;
        let sizes: Vec<Result<u64, GitError>> = shipping
            .par_iter()
            .map(|entry| match entry.kind {
                EntryKind::Submodule(_) => Ok(0),
                _ => place.database.blob_size(&entry.id),
            })
            .collect();
        for (entry, size) in shipping.iter().zip(sizes) {
            let path = package_path(&entry.path)?;
            let size = size.map_err(|source| in_blob(&entry.path, source))?;
            self.directories(&path)?;
            match entry.kind {
                EntryKind::File | EntryKind::Executable => {
                    let facts = FileFacts::Blob {
                        repository,
                        id: entry.id,
                        size,
                        exec: entry.kind == EntryKind::Executable,
                    };
                    self.collector.add(path, Node::File(facts))?;
                }
                EntryKind::Symlink => self.link(path, place.database, entry, size)?,
                EntryKind::Submodule(commit) => self.submodule(path, commit, &urls)?,
            }
        }
        self.above.pop();
        Ok(())
    }

    /// The entries that ship, with their paths in the package.
    fn shipping(&mut self, place: &Place<'_>, entries: Vec<TreeEntry>) -> Vec<TreeEntry> {
        let mut directories = HashMap::new();
        let mut shipping = Vec::with_capacity(entries.len());
        for mut entry in entries {
            if let Some(at) = place.at {
                entry.path = [at.as_str().as_bytes(), &entry.path].join(&b'/');
            }
            match self.ships(&entry, &mut directories) {
                true => shipping.push(entry),
                false => self.hidden.push(entry.path),
            }
        }
        // Last, so that a place that something else has as well is met whatever the tree's order.
        shipping.sort_by_key(|entry| matches!(entry.kind, EntryKind::Submodule(_)));
        shipping
    }

    /// Whether `entry` and each directory above it ship; `directories` are those already asked for.
    fn ships(&self, entry: &TreeEntry, directories: &mut HashMap<Vec<u8>, bool>) -> bool {
        // Refused by its length, which no directory on a disk could have.
        if entry.path.len() > LONGEST_PATH_BYTES {
            return true;
        }
        let mut ships = true;
        let slashes = entry
            .path
            .iter()
            .enumerate()
            .filter(|(_, byte)| **byte == b'/');
        for (end, _) in slashes {
            let directory = &entry.path[..end];
            ships = ships
                && match directories.get(directory) {
                    Some(ships) => *ships,
                    None => {
                        let ships = self.collector.ships(&local_path(directory), true);
                        directories.insert(directory.to_vec(), ships);
                        ships
                    }
                };
        }
        let is_directory = matches!(entry.kind, EntryKind::Submodule(_));
        ships && self.collector.ships(&local_path(&entry.path), is_directory)
    }

    /// Adds the directories above `path` that are not there yet.
    fn directories(&mut self, path: &RelPath) -> Result<(), FetchError> {
        let parent = path.parent();
        let known = parent.and_then(|parent| self.collector.nodes.get(&parent));
        if path.parent().is_none() || matches!(known, Some(Node::Directory)) {
            return Ok(());
        }
        for directory in path.ancestors() {
            match self.collector.nodes.get(&directory) {
                Some(Node::Directory) => {}
                _ => self.collector.add(directory, Node::Directory)?,
            }
        }
        Ok(())
    }

    fn link(
        &mut self,
        path: RelPath,
        database: &Database,
        entry: &TreeEntry,
        bytes: u64,
    ) -> Result<(), FetchError> {
        if bytes > LINK_BYTES {
            return Err(FetchError::LongLink {
                path,
                bytes,
                limit_bytes: LINK_BYTES,
            });
        }
        let said = database
            .read_blob(&entry.id, LINK_BYTES)
            .map_err(|source| in_blob(&entry.path, source))?;
        self.collector.add(path, Node::Link(said))
    }

    fn submodule(
        &mut self,
        path: RelPath,
        commit: CommitId,
        urls: &BTreeMap<String, Option<RemoteUrl>>,
    ) -> Result<(), FetchError> {
        let url = match urls.get(path.as_str()) {
            None => return Err(SubmoduleError::NoRow { path }.into()),
            Some(None) => return Err(SubmoduleError::NoUrl { path }.into()),
            Some(Some(url)) => url,
        };
        self.check_end(&path, url)?;
        self.collector.add(path.clone(), Node::Directory)?;
        let database = self.open(&path, url, commit)?;
        self.found.push(FoundSubmodule {
            path: path.clone(),
            url: url.clone(),
            commit,
            database: Arc::clone(&database),
        });
        let entries = database.entries(&commit, None, COMMIT_LIMITS)?;
        let place = Place {
            database: &database,
            commit,
            subdir: None,
            at: Some(&path),
            url,
        };
        self.repository(&place, entries)
    }

    /// Checks that submodules do not go on for ever.
    fn check_end(&self, path: &RelPath, url: &RemoteUrl) -> Result<(), SubmoduleError> {
        if self.found.len() >= SUBMODULES {
            return Err(SubmoduleError::TooMany);
        }
        if self.above.contains(url) {
            return Err(SubmoduleError::Itself {
                path: path.clone(),
                url: url.to_string(),
            });
        }
        match self.above.len() > SUBMODULE_DEPTH {
            true => Err(SubmoduleError::TooDeep { path: path.clone() }),
            false => Ok(()),
        }
    }

    fn open(
        &self,
        path: &RelPath,
        url: &RemoteUrl,
        commit: CommitId,
    ) -> Result<Arc<Database>, SubmoduleError> {
        let opened = self.submodules.open(url, &commit);
        let database = opened.map_err(|source| SubmoduleError::Unavailable {
            path: path.clone(),
            url: url.to_string(),
            commit,
            source,
        })?;
        match database.has_commit(&commit) {
            true => Ok(database),
            false => Err(SubmoduleError::NoCommit {
                path: path.clone(),
                url: url.to_string(),
                commit,
            }),
        }
    }
}

/// The repositories of the submodules that `place` has rows of, by their paths in the package.
fn read_submodule_urls(
    place: &Place<'_>,
) -> Result<BTreeMap<String, Option<RemoteUrl>>, FetchError> {
    let text = place
        .database
        .blob_at(&place.commit, ".gitmodules", MANIFEST_BYTES)
        .map_err(|source| in_blob(b".gitmodules", source))?;
    let Some(text) = text else {
        return Ok(BTreeMap::new());
    };
    let urls = submodule_urls(&text, place.url, place.subdir)?;
    let in_package = |path: RelPath| match (place.subdir, place.at) {
        (Some(subdir), _) => path
            .as_str()
            .strip_prefix(subdir.as_str())
            .map(|rest| rest.trim_start_matches('/').to_owned()),
        (None, Some(at)) => Some(format!("{at}/{path}")),
        (None, None) => Some(path.to_string()),
    };
    Ok(urls
        .into_iter()
        .filter_map(|(path, url)| in_package(path).map(|path| (path, url)))
        .collect())
}

fn local_path(bytes: &[u8]) -> PathBuf {
    // What a pattern cannot match by its text has a name that is refused where it ships.
    String::from_utf8_lossy(bytes).into_owned().into()
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{
        Entries, Entry, ORIGIN, Submodules, commit, database, entries, list_commit, list_with,
        names, shown, tree,
    };
    use vibe_testkit::GitRepository;

    struct Fixture {
        _directory: tempfile::TempDir,
        repository: GitRepository,
        database: Arc<Database>,
    }

    impl Fixture {
        fn new() -> Self {
            let directory = tempfile::tempdir().unwrap();
            let repository = GitRepository::new(&directory.path().join("repository"));
            Self {
                database: database(&repository),
                repository,
                _directory: directory,
            }
        }

        /// Commits `lines`, and at each path the commit that a submodule is pinned to.
        fn commit(&self, lines: &[&'static str], gitlinks: &[(&str, &str)]) -> String {
            let mut all = entries(lines);
            all.extend(gitlinks.iter().map(|(path, commit)| gitlink(path, commit)));
            commit(&self.repository, &all)
        }

        /// Lists `commit` where each of `urls` has the commits of this repository.
        fn list(
            &self,
            commit: &str,
            subdir: Option<&str>,
            urls: &[&str],
        ) -> (Result<Listing, String>, Vec<String>) {
            let by_url = urls
                .iter()
                .map(|url| ((*url).to_owned(), Arc::clone(&self.database)));
            let submodules = Submodules {
                by_url: by_url.collect(),
                ..Submodules::default()
            };
            let limits = PackageLimits::default();
            let listing = list_with(&self.database, commit, subdir, &limits, &submodules);
            let refused = |error: FetchError| {
                let source = std::error::Error::source(&error).map(ToString::to_string);
                format!("{error} [{}]", source.unwrap_or_default())
            };
            (listing.map_err(refused), submodules.opened.into_inner())
        }

        fn refused(&self, commit: &str, words: &[&str]) {
            let (listing, opened) = self.list(commit, None, &[]);
            let text = listing.unwrap_err();
            for word in words {
                assert!(text.contains(word), "{text} has no {word}");
            }
            assert!(opened.is_empty(), "{text}: {opened:?}");
        }
    }

    fn gitlink(path: &str, commit: &str) -> (Vec<Vec<u8>>, Entry) {
        (names(path.as_bytes()), Entry::Gitlink(commit.to_owned()))
    }

    const MODULES: &str = ".gitmodules=[submodule \"s\"]\npath = lib/sub\nurl = ../sub.git\n";
    const SUB: &str = "https://host/org/sub.git";

    #[test]
    fn files_of_a_submodule_are_files_of_the_package() {
        let fixture = Fixture::new();
        let inner = fixture.commit(&["x", "*run", "up -> ../../own", ".gitignore=x\n"], &[]);
        let outer = fixture.commit(&["own", "l -> lib/sub/x", MODULES], &[("lib/sub", &inner)]);
        let (listing, opened) = fixture.list(&outer, None, &[SUB]);
        let listing = listing.unwrap();
        assert_eq!(opened, [SUB]);
        let expected = [
            ".gitmodules",
            "l",
            "lib/sub/.gitignore",
            "*lib/sub/run",
            "lib/sub/up",
            "lib/sub/x",
            "own",
        ];
        assert_eq!(shown(&listing), expected);
        let plain = fixture.commit(
            &[
                "own",
                "l=x",
                MODULES,
                "lib/sub/.gitignore=x\n",
                "*lib/sub/run=run",
                "lib/sub/up=own",
                "lib/sub/x=x",
            ],
            &[],
        );
        assert_eq!(
            tree(&listing),
            tree(&fixture.list(&plain, None, &[]).0.unwrap())
        );
    }

    #[test]
    fn submodules_of_submodules_are_found_from_where_those_are() {
        let fixture = Fixture::new();
        let deepest = fixture.commit(&["z"], &[]);
        let modules = ".gitmodules=[submodule \"n\"]\npath = n\nurl = ../deeper\n";
        let middle = fixture.commit(&["y", modules], &[("n", &deepest)]);
        let outer = fixture.commit(
            &[".gitmodules=[submodule \"m\"]\npath = m\nurl = git@other:people/m.git\n"],
            &[("m", &middle)],
        );
        let urls = ["git@other:people/m.git", "git@other:people/deeper"];
        let (listing, opened) = fixture.list(&outer, None, &urls);
        assert_eq!(
            shown(&listing.unwrap()),
            [".gitmodules", "m/.gitmodules", "m/n/z", "m/y"]
        );
        assert_eq!(opened, urls);
    }

    #[test]
    fn only_submodules_in_the_directory_of_the_package_count() {
        let fixture = Fixture::new();
        let inner = fixture.commit(&["x"], &[]);
        let modules = ".gitmodules=[submodule \"a\"]\npath = pkg/a\nurl = ../a\n\
                       [submodule \"b\"]\npath = b\nurl = /srv/b\n";
        let outer = fixture.commit(&[modules, "pkg/f"], &[("pkg/a", &inner), ("b", &inner)]);
        let (listing, opened) = fixture.list(&outer, Some("pkg"), &["https://host/org/a"]);
        assert_eq!(shown(&listing.unwrap()), ["a/x", "f"]);
        assert_eq!(opened, ["https://host/org/a"]);
    }

    #[test]
    fn a_submodule_that_does_not_ship_is_not_fetched() {
        let fixture = Fixture::new();
        let absent = "1".repeat(40);
        let lines = [".vibeignore=/tests/\n", "f"];
        let outer = fixture.commit(&lines, &[("tests/data", &absent), ("vibedeps", &absent)]);
        let (listing, opened) = fixture.list(&outer, None, &[]);
        assert_eq!(shown(&listing.unwrap()), [".vibeignore", "f"]);
        assert!(opened.is_empty());
    }

    #[test]
    fn a_submodule_without_a_row_or_url_is_refused_by_name() {
        let fixture = Fixture::new();
        let commit = "1".repeat(40);
        let no_file = fixture.commit(&["f"], &[("lib/sub", &commit)]);
        fixture.refused(
            &no_file,
            &["`lib/sub` is a submodule, but no row of `.gitmodules`"],
        );
        let other_row = fixture.commit(&[MODULES], &[("lib/other", &commit)]);
        fixture.refused(&other_row, &["`lib/other` is a submodule, but no row"]);
        let no_url = fixture.commit(
            &[".gitmodules=[submodule \"s\"]\npath = lib/sub\n"],
            &[("lib/sub", &commit)],
        );
        fixture.refused(&no_url, &["the submodule `lib/sub` has no `url`"]);
        let link = fixture.commit(&["x", ".gitmodules -> x"], &[("lib/sub", &commit)]);
        fixture.refused(&link, &["`lib/sub` is a submodule, but no row"]);
        let broken = fixture.commit(&[".gitmodules=[submodule \"s\n"], &[("lib/sub", &commit)]);
        fixture.refused(
            &broken,
            &[&format!("`.gitmodules` of {ORIGIN} cannot be read")],
        );
    }

    #[test]
    fn a_row_that_could_act_is_refused_whether_or_not_it_has_a_submodule() {
        let fixture = Fixture::new();
        let commit = "1".repeat(40);
        for (modules, word) in [
            (
                ".gitmodules=[submodule \"s\"]\npath = ../x\nurl = ../y\n",
                "`path = ../x`",
            ),
            (
                ".gitmodules=[submodule \"../../x\"]\npath = x\nurl = ../y\n",
                "that name",
            ),
            (
                ".gitmodules=[submodule \"s\"]\npath = x\nurl = -ux\n",
                "looks like an option",
            ),
            (
                ".gitmodules=[submodule \"s\"]\npath = x\nurl = ext::sh -c x\n",
                "not a git URL",
            ),
            (
                ".gitmodules=[submodule \"s\"]\npath = x\nurl = /srv/x\n",
                "on this machine",
            ),
            (
                ".gitmodules=[submodule \"s\"]\npath = \"x\r\"\nurl = ../y\n",
                "its `path`",
            ),
            (
                ".gitmodules=[submodule \"s\"]\npath = x\nurl = ../y\nupdate = !touch x\n",
                "never run",
            ),
        ] {
            fixture.refused(&fixture.commit(&[modules], &[]), &[word]);
            fixture.refused(&fixture.commit(&[modules], &[("x", &commit)]), &[word]);
        }
    }

    #[test]
    fn a_submodule_that_cannot_be_had_is_an_error_and_never_an_empty_directory() {
        let fixture = Fixture::new();
        let commit = "1".repeat(40);
        let outer = fixture.commit(&[MODULES], &[("lib/sub", &commit)]);
        let text = fixture.list(&outer, None, &[]).0.unwrap_err();
        let unavailable = format!("the submodule `lib/sub` cannot be had: {SUB} at {commit}");
        assert_eq!(text, format!("{unavailable} [nothing is there]"));
        let text = fixture.list(&outer, None, &[SUB]).0.unwrap_err();
        let missing = format!("{SUB} does not have the commit {commit}");
        assert!(text.contains(&missing), "{text}");
    }

    #[test]
    fn what_a_submodule_holds_is_judged_like_all_else() {
        let fixture = Fixture::new();
        for (line, word) in [
            (".git/config", "a spelling of `.git`"),
            ("CON", "`lib/sub/CON`"),
            (
                "l -> ../../..",
                "`lib/sub/l` is a link to `../../..`, which leaves the package",
            ),
        ] {
            let inner = fixture.commit(&[line], &[]);
            let outer = fixture.commit(&[MODULES], &[("lib/sub", &inner)]);
            let text = fixture.list(&outer, None, &[SUB]).0.unwrap_err();
            assert!(text.contains(word), "{text}");
        }
        let inner = fixture.commit(&["a=123"], &[]);
        let outer = fixture.commit(&["b=1", MODULES], &[("lib/sub", &inner)]);
        let limits = PackageLimits {
            package_bytes: 3 + 1 + MODULES.len() as u64 - ".gitmodules=".len() as u64 - 1,
            ..PackageLimits::default()
        };
        let submodules = Submodules {
            by_url: [(SUB.to_owned(), Arc::clone(&fixture.database))].into(),
            ..Submodules::default()
        };
        let listing = list_with(&fixture.database, &outer, None, &limits, &submodules);
        let error = listing.unwrap_err();
        assert!(
            matches!(error, FetchError::PackageTooLarge { .. }),
            "{error}"
        );
    }

    #[test]
    fn a_file_where_a_submodule_is_is_refused() {
        let fixture = Fixture::new();
        let inner = fixture.commit(&["x"], &[]);
        let outer = fixture.commit(&[MODULES, "lib/sub/y"], &[("lib/sub", &inner)]);
        let text = fixture.list(&outer, None, &[SUB]).0.unwrap_err();
        assert!(
            text.starts_with("`lib/sub` is there more than once"),
            "{text}"
        );
        let outer = fixture.commit(&[MODULES, "lib/sub -> x"], &[("lib/sub", &inner)]);
        let text = fixture.list(&outer, None, &[SUB]).0.unwrap_err();
        assert!(
            text.starts_with("`lib/sub` is there more than once"),
            "{text}"
        );
    }

    /// A commit of the repository `r<n>` that holds `r<n + 1>`, and so on, `length` of them.
    fn chain(fixture: &Fixture, length: usize) -> (String, Vec<String>) {
        let mut id = fixture.commit(&["x"], &[]);
        let mut urls = Vec::new();
        for n in (1..=length).rev() {
            let text = format!("[submodule \"s\"]\npath = s\nurl = ../r{n}\n");
            let mut all: Entries = vec![(names(b".gitmodules"), Entry::File(text.into()))];
            all.push(gitlink("s", &id));
            id = commit(&fixture.repository, &all);
            urls.push(format!("https://host/org/r{n}"));
        }
        (id, urls)
    }

    #[test]
    fn submodules_may_lie_only_so_deep_in_each_other() {
        let fixture = Fixture::new();
        for (length, is_fine) in [
            (SUBMODULE_DEPTH, true),
            (SUBMODULE_DEPTH + 1, false),
            (20, false),
        ] {
            let (id, urls) = chain(&fixture, length);
            let urls: Vec<&str> = urls.iter().map(String::as_str).collect();
            let (listing, opened) = fixture.list(&id, None, &urls);
            match is_fine {
                true => assert_eq!(listing.unwrap().files.len(), length + 1),
                false => {
                    let text = listing.unwrap_err();
                    let path = ["s"; SUBMODULE_DEPTH + 1].join("/");
                    let start = format!("the submodule `{path}` lies more than 8 deep");
                    assert!(text.starts_with(&start), "{text}");
                    assert_eq!(opened.len(), SUBMODULE_DEPTH);
                }
            }
        }
    }

    #[test]
    fn a_repository_that_holds_itself_is_refused() {
        let fixture = Fixture::new();
        let inner = fixture.commit(&["x"], &[]);
        let itself = ".gitmodules=[submodule \"s\"]\npath = s\nurl = ../kit\n";
        let outer = fixture.commit(&[itself], &[("s", &inner)]);
        fixture.refused(&outer, &["`s` is", "a submodule of itself", "8 deep"]);
    }

    #[test]
    fn a_missing_directory_or_commit_is_named() {
        let fixture = Fixture::new();
        let id = fixture.commit(&["f"], &[]);
        let text = fixture.list(&id, Some("pkg"), &[]).0.unwrap_err();
        assert!(text.contains("no directory `pkg`"), "{text}");
        let limits = PackageLimits::default();
        let absent = "1".repeat(40);
        let error = list_commit(&fixture.repository, &absent, None, &limits).unwrap_err();
        assert!(error.to_string().contains(&absent), "{error}");
    }

    #[test]
    fn a_blob_that_is_not_there_is_named_by_its_path() {
        let fixture = Fixture::new();
        let absent = "1".repeat(40);
        let tree = fixture.repository.raw_tree(&[("100644", b"f", &absent)]);
        let id = fixture.repository.commit_tree(&tree);
        let text = fixture.list(&id, None, &[]).0.unwrap_err();
        assert!(
            text.starts_with("could not read `f` of the package's commit"),
            "{text}"
        );
    }
}
