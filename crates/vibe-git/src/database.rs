//! The objects of one repository, read where they are: no process, no checkout, no copy.
//!
//! Nothing in the repository acts: its configuration is not trusted, replacement references are
//! not applied, the environment is not looked at, and no attribute, filter or hook is involved.
//! Bytes come out as the blob has them, names as the tree has them.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use gix::bstr::ByteSlice as _;
use gix::objs::{Kind, TreeRefIter};
use vibe_core::text::{escape, escape_bytes, shorten};
use vibe_fs::FileLock;

use crate::error::{Cause, GitError};
use crate::object::{BlobId, CommitId, EntryKind, TreeEntry};
use crate::refs::Refs;

/// Bytes of one commit or tag object: a message is text that a person wrote.
const COMMIT_BYTES: u64 = 16 << 20;
/// Bytes of one tree object: 200,000 entries with names of 255 bytes fit.
const TREE_BYTES: u64 = 64 << 20;
/// Bytes that a path may have on average: trees that hold one another under long names would have
/// paths for more than any memory.
const AVERAGE_PATH_BYTES: usize = 512;
/// Paths that a comparison of two trees lists, so that it fits into memory.
const CHANGED_PATHS: usize = 1_000_000;
/// Settings that hold whatever the repository says: objects are never replaced by others, and no
/// size is refused here, because each read has its own limit.
const SETTINGS: [&str; 2] = [
    "core.useReplaceRefs=false",
    "gitoxide.objects.allocLimitIfReducedTrust=0",
];

/// The bounds of [`Database::entries`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TreeLimits {
    /// Entries, directories included.
    pub entries: usize,
    /// Components of a path.
    pub depth: usize,
}

/// An object database that is only read. It can be used by several threads at once.
pub struct Database {
    shared: gix::ThreadSafeRepository,
    /// Handles that no thread uses now, kept because of what they have cached.
    idle: Mutex<Vec<gix::Repository>>,
    repository: String,
    /// Keeps a repository of the cache from being removed.
    usage: Option<FileLock>,
}

impl std::fmt::Debug for Database {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Database")
            .field("repository", &self.repository)
            .field("usage", &self.usage)
            .finish_non_exhaustive()
    }
}

impl Database {
    /// Opens the repository at `path`: a bare one, or a directory with `.git` in it. Nothing above
    /// `path` is looked at. A repository of somebody else is fine.
    ///
    /// # Errors
    /// [`GitError::NotARepository`] if there is none, or one of a format that cannot be read.
    pub fn open(path: &Path) -> Result<Self, GitError> {
        Self::open_as(path, escape_bytes(path.as_os_str().as_encoded_bytes()))
    }

    /// Like [`Database::open`], for a repository that errors call `repository`.
    pub(crate) fn open_as(path: &Path, repository: String) -> Result<Self, GitError> {
        match open_isolated(path) {
            Ok(shared) => Ok(Self {
                shared,
                idle: Mutex::default(),
                repository,
                usage: None,
            }),
            Err(source) => Err(GitError::NotARepository { repository, source }),
        }
    }

    /// The same, holding the lock of those who read from the cache.
    pub(crate) fn held_by(self, usage: Option<FileLock>) -> Self {
        Self { usage, ..self }
    }

    /// What errors call this repository: its URL without credentials, or its path.
    pub fn repository(&self) -> &str {
        &self.repository
    }

    /// Where the objects are: the repository's own directory first, then those that it borrows from.
    /// What git is given to read the same objects.
    ///
    /// # Errors
    /// [`GitError::NotARepository`] if what it borrows from cannot be listed.
    pub fn object_directories(&self) -> Result<Vec<PathBuf>, GitError> {
        let store = &self.shared.objects;
        let others = store.alternate_db_paths();
        let others = others.map_err(|error| GitError::NotARepository {
            repository: self.repository.clone(),
            source: Cause::of(&error),
        })?;
        let own = store.path().to_path_buf();
        Ok(std::iter::once(own).chain(others).collect())
    }

    /// The entries of `commit` below `subdir`, with paths relative to it, in the order of the
    /// trees. Everything is handed through as it is, see [`TreeEntry::path`].
    ///
    /// # Errors
    /// [`GitError::NoSuchDirectory`], a broken limit, or an object that cannot be read.
    pub fn entries(
        &self,
        commit: &CommitId,
        subdir: Option<&str>,
        limits: TreeLimits,
    ) -> Result<Vec<TreeEntry>, GitError> {
        self.with(|handle| {
            let root = self.tree_of(handle, commit)?;
            let start = match subdir {
                None => root,
                Some(subdir) => self.directory(handle, commit, root, subdir)?,
            };
            Walk {
                database: self,
                handle,
                commit,
                limits,
                seen: 0,
                path_bytes: 0,
                entries: Vec::new(),
            }
            .run(start)
        })
    }

    /// The entry of `commit` at `path`, whose components are separated by `/`; `None` if there is
    /// none or it is a directory.
    ///
    /// # Errors
    /// An object that cannot be read.
    pub fn entry_at(&self, commit: &CommitId, path: &str) -> Result<Option<TreeEntry>, GitError> {
        self.with(|handle| {
            let (parent, name) = path.rsplit_once('/').unwrap_or(("", path));
            let root = self.tree_of(handle, commit)?;
            let Some(tree) = self.find_directory(handle, root, parent)? else {
                return Ok(None);
            };
            let Some(entry) = self.find_entry(handle, tree, name.as_bytes())? else {
                return Ok(None);
            };
            match entry.mode.is_tree() {
                true => Ok(None),
                false => self.listed(entry, path.as_bytes().to_vec()).map(Some),
            }
        })
    }

    /// The content of the file of `commit` at `path`; `None` if no file is there.
    ///
    /// # Errors
    /// More than `limit_bytes` bytes, or an object that cannot be read.
    pub fn blob_at(
        &self,
        commit: &CommitId,
        path: &str,
        limit_bytes: u64,
    ) -> Result<Option<Vec<u8>>, GitError> {
        match self.entry_at(commit, path)? {
            Some(entry) if matches!(entry.kind, EntryKind::File | EntryKind::Executable) => {
                self.read_blob(&entry.id, limit_bytes).map(Some)
            }
            _ => Ok(None),
        }
    }

    /// The bytes of the blob `id`, without reading it.
    ///
    /// # Errors
    /// [`GitError::Unreadable`], also for an object that is no blob.
    pub fn blob_size(&self, id: &BlobId) -> Result<u64, GitError> {
        self.with(|handle| self.size_of(handle, id.0, Kind::Blob))
    }

    /// The content of the blob `id`.
    ///
    /// # Errors
    /// [`GitError::TooLarge`] for more than `limit_bytes` bytes, before it is read;
    /// [`GitError::Unreadable`].
    pub fn read_blob(&self, id: &BlobId, limit_bytes: u64) -> Result<Vec<u8>, GitError> {
        self.with(|handle| self.load(handle, id.0, Kind::Blob, limit_bytes))
    }

    /// Whether `commit` is here and is a commit. That its trees are here is not asked.
    pub fn has_commit(&self, commit: &CommitId) -> bool {
        self.with(|handle| match handle.try_find_header(commit.0) {
            Ok(Some(header)) => header.kind() == Kind::Commit,
            Ok(None) | Err(_) => false,
        })
    }

    /// Whether `ancestor` is `descendant`, or can be reached from it through parents that are
    /// here. Of a shallow repository only its history counts.
    ///
    /// # Errors
    /// [`GitError::Unreadable`] for a `descendant` or a parent that cannot be read.
    pub fn is_ancestor(
        &self,
        ancestor: &CommitId,
        descendant: &CommitId,
    ) -> Result<bool, GitError> {
        let unreadable = |error: gix::Error| self.unreadable(descendant.0, &error);
        self.with(|handle| {
            let walk = handle.rev_walk([descendant.0]).all().map_err(unreadable)?;
            for commit in walk {
                if commit.map_err(unreadable)?.id == ancestor.0 {
                    return Ok(true);
                }
            }
            Ok(false)
        })
    }

    /// The hex id of the tree of `commit`.
    ///
    /// # Errors
    /// [`GitError::Unreadable`].
    pub fn commit_tree_id(&self, commit: &CommitId) -> Result<String, GitError> {
        self.with(|handle| self.tree_of(handle, commit))
            .map(|tree| tree.to_string())
    }

    /// The paths whose blob or mode differ between the trees of two commits, in byte order. No
    /// blob is read; a submodule is one path.
    ///
    /// # Errors
    /// [`GitError::Unreadable`], [`GitError::TooManyEntries`].
    pub fn changed_paths(&self, from: &CommitId, to: &CommitId) -> Result<Vec<Vec<u8>>, GitError> {
        self.with(|handle| {
            let from_tree = self.tree_of(handle, from)?;
            let to_tree = self.tree_of(handle, to)?;
            let from_bytes = self.load(handle, from_tree, Kind::Tree, TREE_BYTES)?;
            let to_bytes = self.load(handle, to_tree, Kind::Tree, TREE_BYTES)?;
            let kind = handle.object_hash();
            let mut changes = Changes::default();
            let compared = gix::diff::tree(
                TreeRefIter::from_bytes(&from_bytes, kind),
                TreeRefIter::from_bytes(&to_bytes, kind),
                gix::diff::tree::State::default(),
                &handle.objects,
                &mut changes,
            );
            match compared {
                Ok(()) => Ok(changes.into_paths()),
                Err(gix::diff::tree::Error::Cancelled) => Err(GitError::TooManyEntries {
                    repository: self.repository.clone(),
                    commit: *to,
                    limit: CHANGED_PATHS,
                }),
                Err(error) => Err(self.unreadable(to_tree, &error)),
            }
        })
    }

    /// The tags and branches of the repository itself, loose and packed.
    ///
    /// # Errors
    /// [`GitError::UnreadableRefs`]; a reference that names no commit is left out.
    pub fn refs(&self) -> Result<Refs, GitError> {
        self.with(|handle| {
            let failed = |error: gix::Error| GitError::UnreadableRefs {
                repository: self.repository.clone(),
                source: Cause::of(&error),
            };
            let platform = handle.references().map_err(failed)?;
            let mut refs = Refs {
                tags: named_commits(platform.tags().map_err(failed)?),
                branches: named_commits(platform.local_branches().map_err(failed)?),
                ..Refs::default()
            };
            let head = handle.head().map_err(failed)?;
            let branch = head.referent_name().map(|name| name.shorten().to_owned());
            refs.head = handle.head_commit().ok().map(|commit| CommitId(commit.id));
            refs.default_branch = branch
                .and_then(|name| name.to_str().ok().map(str::to_owned))
                .filter(|name| refs.branches.contains_key(name));
            Ok(refs)
        })
    }

    /// The only commit whose id begins with `prefix`; `None` if there is none.
    ///
    /// # Errors
    /// [`GitError::AmbiguousRevision`] if there are several.
    pub(crate) fn commit_by_prefix(&self, prefix: &str) -> Result<Option<CommitId>, GitError> {
        let Ok(hex) = gix::hash::Prefix::from_hex(prefix) else {
            return Ok(None);
        };
        self.with(|handle| {
            let mut found = std::collections::HashSet::new();
            handle
                .objects
                .lookup_prefix(hex, Some(&mut found))
                .map_err(|error| self.unreadable_named(prefix, &error))?;
            let is_commit = |id: &gix::ObjectId| {
                matches!(handle.try_find_header(*id), Ok(Some(header)) if header.kind() == Kind::Commit)
            };
            let mut commits = found.into_iter().filter(is_commit);
            match (commits.next(), commits.next()) {
                (None, _) => Ok(None),
                (Some(only), None) => Ok(Some(CommitId(only))),
                (Some(_), Some(_)) => Err(GitError::AmbiguousRevision {
                    repository: self.repository.clone(),
                    revision: prefix.to_owned(),
                }),
            }
        })
    }

    /// Runs `act` with a handle that is no other thread's.
    fn with<T>(&self, act: impl FnOnce(&gix::Repository) -> T) -> T {
        let idle = || self.idle.lock().unwrap_or_else(PoisonError::into_inner);
        let taken = idle().pop();
        let handle = taken.unwrap_or_else(|| self.shared.to_thread_local());
        let result = act(&handle);
        idle().push(handle);
        result
    }

    fn tree_of(
        &self,
        handle: &gix::Repository,
        commit: &CommitId,
    ) -> Result<gix::ObjectId, GitError> {
        let bytes = self.load(handle, commit.0, Kind::Commit, COMMIT_BYTES)?;
        gix::objs::CommitRefIter::from_bytes(&bytes, handle.object_hash())
            .tree_id()
            .map_err(|error| self.unreadable(commit.0, &error))
    }

    fn directory(
        &self,
        handle: &gix::Repository,
        commit: &CommitId,
        root: gix::ObjectId,
        subdir: &str,
    ) -> Result<gix::ObjectId, GitError> {
        let found = self.find_directory(handle, root, subdir)?;
        found.ok_or_else(|| GitError::NoSuchDirectory {
            repository: self.repository.clone(),
            commit: *commit,
            directory: escape(&shorten(subdir, 200)),
        })
    }

    fn find_directory(
        &self,
        handle: &gix::Repository,
        root: gix::ObjectId,
        path: &str,
    ) -> Result<Option<gix::ObjectId>, GitError> {
        let mut tree = root;
        for component in path.split('/').filter(|component| !component.is_empty()) {
            match self.find_entry(handle, tree, component.as_bytes())? {
                Some(entry) if entry.mode.is_tree() => tree = entry.oid,
                _ => return Ok(None),
            }
        }
        Ok(Some(tree))
    }

    /// The first entry `name` of a tree. All are looked at: nobody promises that they are sorted.
    fn find_entry(
        &self,
        handle: &gix::Repository,
        tree: gix::ObjectId,
        name: &[u8],
    ) -> Result<Option<gix::objs::tree::Entry>, GitError> {
        let bytes = self.load(handle, tree, Kind::Tree, TREE_BYTES)?;
        for entry in TreeRefIter::from_bytes(&bytes, handle.object_hash()) {
            let entry = entry.map_err(|error| self.unreadable(tree, &error))?;
            if entry.filename == name {
                return Ok(Some(entry.into()));
            }
        }
        Ok(None)
    }

    fn listed(&self, entry: gix::objs::tree::Entry, path: Vec<u8>) -> Result<TreeEntry, GitError> {
        let kind = match entry.mode.kind() {
            gix::objs::tree::EntryKind::Blob => EntryKind::File,
            gix::objs::tree::EntryKind::BlobExecutable => EntryKind::Executable,
            gix::objs::tree::EntryKind::Link => EntryKind::Symlink,
            gix::objs::tree::EntryKind::Commit if entry.mode.is_commit() => {
                EntryKind::Submodule(CommitId(entry.oid))
            }
            _ => {
                return Err(GitError::OddEntry {
                    repository: self.repository.clone(),
                    path: shorten(&escape_bytes(&path), 200),
                    mode: entry.mode.value(),
                });
            }
        };
        Ok(TreeEntry {
            path,
            kind,
            id: BlobId(entry.oid),
        })
    }

    fn size_of(
        &self,
        handle: &gix::Repository,
        id: gix::ObjectId,
        kind: Kind,
    ) -> Result<u64, GitError> {
        let header = handle
            .find_header(id)
            .map_err(|error| self.unreadable(id, &error))?;
        match header.kind() == kind {
            true => Ok(header.size()),
            false => Err(GitError::Unreadable {
                repository: self.repository.clone(),
                object: id.to_string(),
                source: Cause::new(&format!("it is a {}, not a {kind}", header.kind())),
            }),
        }
    }

    fn load(
        &self,
        handle: &gix::Repository,
        id: gix::ObjectId,
        kind: Kind,
        limit_bytes: u64,
    ) -> Result<Vec<u8>, GitError> {
        let bytes = self.size_of(handle, id, kind)?;
        if bytes > limit_bytes {
            return Err(GitError::TooLarge {
                repository: self.repository.clone(),
                object: id.to_string(),
                bytes,
                limit: limit_bytes,
            });
        }
        let mut object = handle
            .find_object(id)
            .map_err(|error| self.unreadable(id, &error))?;
        Ok(std::mem::take(&mut object.data))
    }

    fn unreadable(&self, id: gix::ObjectId, error: &(dyn std::error::Error + 'static)) -> GitError {
        self.unreadable_named(&id.to_string(), error)
    }

    fn unreadable_named(
        &self,
        object: &str,
        error: &(dyn std::error::Error + 'static),
    ) -> GitError {
        GitError::Unreadable {
            repository: self.repository.clone(),
            object: object.to_owned(),
            source: Cause::of(error),
        }
    }
}

fn open_isolated(path: &Path) -> Result<gix::ThreadSafeRepository, Cause> {
    let absolute = std::path::absolute(path).map_err(|error| Cause::of(&error))?;
    gix::open::Options::isolated()
        .with(gix::sec::Trust::Reduced)
        .config_overrides(SETTINGS)
        .open(absolute)
        .map_err(|error| Cause::of(&error))
}

/// The commits that references name, annotated tags followed. What names no commit, or has a name
/// that is no text, can be asked for by nobody.
fn named_commits(references: gix::reference::iter::Iter<'_, '_>) -> BTreeMap<String, CommitId> {
    let commit_of = |mut reference: gix::Reference<'_>| {
        let name = reference.name().shorten().to_str().ok()?.to_owned();
        let commit = reference.peel_to_commit().ok()?;
        Some((name, CommitId(commit.id)))
    };
    references
        .filter_map(Result::ok)
        .filter_map(commit_of)
        .collect()
}

/// A directory still to be read: its tree, its path with a `/` at the end, its depth.
type Pending = (gix::ObjectId, Vec<u8>, usize);

/// One run of [`Database::entries`].
struct Walk<'a> {
    database: &'a Database,
    handle: &'a gix::Repository,
    commit: &'a CommitId,
    limits: TreeLimits,
    /// Entries met, directories included: trees that hold one another many times over stay cheap.
    seen: usize,
    /// Bytes of their paths.
    path_bytes: usize,
    entries: Vec<TreeEntry>,
}

impl Walk<'_> {
    fn run(mut self, start: gix::ObjectId) -> Result<Vec<TreeEntry>, GitError> {
        let mut pending: Vec<Pending> = vec![(start, Vec::new(), 0)];
        while let Some((tree, prefix, depth)) = pending.pop() {
            if depth >= self.limits.depth {
                return Err(GitError::TooDeep {
                    repository: self.database.repository.clone(),
                    commit: *self.commit,
                    limit: self.limits.depth,
                    directory: shorten(&escape_bytes(&prefix), 200),
                });
            }
            self.read(tree, &prefix, depth, &mut pending)?;
        }
        Ok(self.entries)
    }

    fn read(
        &mut self,
        tree: gix::ObjectId,
        prefix: &[u8],
        depth: usize,
        pending: &mut Vec<Pending>,
    ) -> Result<(), GitError> {
        let database = self.database;
        let bytes = database.load(self.handle, tree, Kind::Tree, TREE_BYTES)?;
        for entry in TreeRefIter::from_bytes(&bytes, self.handle.object_hash()) {
            let entry = entry.map_err(|error| database.unreadable(tree, &error))?;
            let length = prefix.len() + entry.filename.len() + 1;
            self.count(length)?;
            let mut path = Vec::with_capacity(length);
            path.extend_from_slice(prefix);
            path.extend_from_slice(entry.filename);
            if entry.filename.contains(&b'/') {
                return Err(self.entry_name(&path));
            }
            if entry.mode.is_tree() {
                path.push(b'/');
                pending.push((entry.oid.to_owned(), path, depth + 1));
            } else {
                self.entries.push(database.listed(entry.into(), path)?);
            }
        }
        Ok(())
    }

    fn entry_name(&self, path: &[u8]) -> GitError {
        GitError::EntryName {
            repository: self.database.repository.clone(),
            commit: *self.commit,
            name: shorten(&escape_bytes(path), 200),
        }
    }

    fn count(&mut self, path_bytes: usize) -> Result<(), GitError> {
        self.seen += 1;
        self.path_bytes += path_bytes;
        if self.seen > self.limits.entries {
            return Err(GitError::TooManyEntries {
                repository: self.database.repository.clone(),
                commit: *self.commit,
                limit: self.limits.entries,
            });
        }
        let limit = self.limits.entries.saturating_mul(AVERAGE_PATH_BYTES);
        match self.path_bytes > limit {
            true => Err(GitError::PathsTooLong {
                repository: self.database.repository.clone(),
                commit: *self.commit,
                limit,
            }),
            false => Ok(()),
        }
    }
}

/// The paths that a comparison of trees reports, directories left out.
#[derive(Default)]
struct Changes {
    recorder: gix::diff::tree::Recorder,
    paths: Vec<Vec<u8>>,
    seen: usize,
}

impl Changes {
    fn into_paths(mut self) -> Vec<Vec<u8>> {
        self.paths.sort_unstable();
        self.paths.dedup();
        self.paths
    }
}

impl gix::diff::tree::Visit for Changes {
    fn pop_front_tracked_path_and_set_current(&mut self) {
        self.recorder.pop_front_tracked_path_and_set_current();
    }

    fn push_back_tracked_path_component(&mut self, component: &gix::bstr::BStr) {
        self.recorder.push_back_tracked_path_component(component);
    }

    fn push_path_component(&mut self, component: &gix::bstr::BStr) {
        self.recorder.push_path_component(component);
    }

    fn pop_path_component(&mut self) {
        self.recorder.pop_path_component();
    }

    fn visit(&mut self, change: gix::diff::tree::visit::Change) -> gix::diff::tree::visit::Action {
        self.seen += 1;
        if self.seen > CHANGED_PATHS {
            return std::ops::ControlFlow::Break(());
        }
        if change.entry_mode().is_no_tree() {
            self.paths.push(self.recorder.path().to_vec());
        }
        std::ops::ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Repository, World};
    use vibe_testkit::TreeSnapshot;

    const LIMITS: TreeLimits = TreeLimits {
        entries: 1_000,
        depth: 64,
    };

    fn listing(database: &Database, commit: &CommitId, subdir: Option<&str>) -> Vec<String> {
        let entries = database.entries(commit, subdir, LIMITS).unwrap();
        let mut rows: Vec<String> = entries
            .iter()
            .map(|entry| {
                let kind = match entry.kind {
                    EntryKind::File => "file",
                    EntryKind::Executable => "executable",
                    EntryKind::Symlink => "symlink",
                    EntryKind::Submodule(_) => "submodule",
                };
                format!("{kind} {}", escape_bytes(&entry.path))
            })
            .collect();
        rows.sort();
        rows
    }

    fn open(repository: &Repository) -> Database {
        Database::open(repository.path()).unwrap()
    }

    #[test]
    fn a_work_tree_and_a_bare_repository_are_read_where_they_are_and_stay_untouched() {
        let world = World::new();
        let repository = world.repository("source");
        let commit = repository.commit(&[("a.md", "one\n"), ("deep/er/b", "two")]);
        repository.git(&["clone", "--quiet", "--bare", ".", "../bare.git"]);
        for path in ["source", "source/.git", "bare.git"] {
            let before = TreeSnapshot::of(&world.path(path));
            let database = Database::open(&world.path(path)).unwrap();
            assert_eq!(
                listing(&database, &commit, None),
                ["file a.md", "file deep/er/b"]
            );
            let found = database.blob_at(&commit, "deep/er/b", 3).unwrap();
            assert_eq!(found.as_deref(), Some(&b"two"[..]));
            before.assert_unchanged(&TreeSnapshot::of(&world.path(path)));
        }
    }

    #[test]
    fn a_path_without_a_repository_is_refused_by_name_and_nothing_above_it_is_looked_at() {
        let world = World::new();
        let repository = world.repository("source");
        std::fs::create_dir(repository.path().join("inner")).unwrap();
        for name in ["source/inner", "absent"] {
            let error = Database::open(&world.path(name)).unwrap_err();
            assert!(matches!(error, GitError::NotARepository { .. }));
            assert!(error.to_string().contains(name), "{error}");
        }
    }

    #[test]
    fn every_kind_of_entry_is_told_apart() {
        let world = World::new();
        let repository = world.repository("source");
        let blob = repository.blob(b"content");
        let link = repository.blob(b"target");
        let other = "1234567890123456789012345678901234567890";
        let tree = repository.tree(&[
            ("100644", b"file", &blob),
            ("100755", b"run", &blob),
            ("120000", b"link", &link),
            ("160000", b"sub", other),
        ]);
        let commit = repository.commit_tree(&tree);
        let database = open(&repository);
        assert_eq!(
            listing(&database, &commit, None),
            [
                "executable run",
                "file file",
                "submodule sub",
                "symlink link"
            ]
        );
        assert_eq!(database.commit_tree_id(&commit).unwrap(), tree);
        let sub = database.entry_at(&commit, "sub").unwrap().unwrap();
        assert_eq!(sub.kind, EntryKind::Submodule(other.parse().unwrap()));
        assert_eq!(database.blob_at(&commit, "sub", 9).unwrap(), None);
        assert_eq!(database.blob_at(&commit, "link", 9).unwrap(), None);
        assert_eq!(database.blob_at(&commit, "absent", 9).unwrap(), None);
        assert_eq!(database.blob_at(&commit, "file/x", 9).unwrap(), None);
    }

    #[test]
    fn names_that_git_would_refuse_are_handed_through_as_they_are() {
        let world = World::new();
        let repository = world.repository("source");
        let blob = repository.blob(b"x");
        let inner = repository.tree(&[("100644", b"config", &blob)]);
        let tree = repository.tree(&[
            ("40000", b".git", &inner),
            ("40000", b"..", &inner),
            ("100644", b"caf\xe9", &blob),
            ("100644", b"a\nb", &blob),
            ("100644", b"a\\b", &blob),
            ("100644", b"twice", &blob),
            ("100755", b"twice", &blob),
        ]);
        let commit = repository.commit_tree(&tree);
        assert_eq!(
            listing(&open(&repository), &commit, None),
            [
                "executable twice",
                "file ../config",
                "file .git/config",
                "file a\\b",
                "file a\\nb",
                "file caf\\xE9",
                "file twice",
            ]
        );
    }

    #[test]
    fn a_subdirectory_is_listed_relative_to_itself_and_a_missing_one_is_named() {
        let world = World::new();
        let repository = world.repository("source");
        let commit = repository.commit(&[("top", ""), ("packages/one/a", ""), ("packages/b", "")]);
        let database = open(&repository);
        for (subdir, expected) in [
            ("packages", vec!["file b", "file one/a"]),
            ("packages/one", vec!["file a"]),
            ("packages/one/", vec!["file a"]),
            (
                "",
                vec!["file packages/b", "file packages/one/a", "file top"],
            ),
        ] {
            assert_eq!(listing(&database, &commit, Some(subdir)), expected);
        }
        for missing in ["absent", "top", "packages/one/a"] {
            let error = database
                .entries(&commit, Some(missing), LIMITS)
                .unwrap_err();
            assert!(matches!(error, GitError::NoSuchDirectory { .. }), "{error}");
            assert!(error.to_string().contains(missing), "{error}");
        }
    }

    #[test]
    fn what_attributes_and_settings_would_change_comes_out_as_committed() {
        let world = World::new();
        let repository = world.repository("source");
        let content = b"a\nb\r\n$Id$\n";
        let blob = repository.blob(content);
        let attributes = repository.blob(b"* text eol=crlf ident filter=evil\n");
        let tree = repository.tree(&[
            ("100644", b".gitattributes", &attributes),
            ("100644", b"text", &blob),
        ]);
        let commit = repository.commit_tree(&tree);
        repository.git(&["config", "core.autocrlf", "true"]);
        let ran = world.path("ran");
        repository.git(&[
            "config",
            "filter.evil.smudge",
            &format!("touch {}", ran.display()),
        ]);
        repository.git(&[
            "config",
            "core.fsmonitor",
            &format!("touch {}", ran.display()),
        ]);
        let found = open(&repository).blob_at(&commit, "text", 100).unwrap();
        assert_eq!(found.as_deref(), Some(&content[..]));
        assert!(!ran.exists());
    }

    #[test]
    fn replaced_objects_are_not_used() {
        let world = World::new();
        let repository = world.repository("source");
        let real = repository.commit(&[("a", "real")]);
        let false_one = repository.commit(&[("a", "false")]);
        repository.git(&["replace", &real.to_string(), &false_one.to_string()]);
        let (real_blob, false_blob) = (repository.blob(b"real"), repository.blob(b"false"));
        repository.git(&["replace", &real_blob, &false_blob]);
        repository.git(&["config", "core.useReplaceRefs", "true"]);
        let found = open(&repository).blob_at(&real, "a", 10).unwrap();
        assert_eq!(found.as_deref(), Some(&b"real"[..]));
    }

    #[test]
    fn packed_and_loose_objects_and_refs_read_the_same() {
        let world = World::new();
        let repository = world.repository("source");
        let text = "a line that is in both\n".repeat(200);
        let first = repository.commit(&[("big", &text)]);
        repository.git(&["tag", "-a", "-m", "note", "v1"]);
        repository.git(&["tag", "light"]);
        let second = repository.commit(&[("big", &format!("{text}more\n"))]);
        repository.git(&["branch", "topic/x", "v1"]);
        let blob = repository.blob(b"x");
        repository.git(&["tag", "no-commit", &blob]);
        let expected = Refs {
            tags: BTreeMap::from([("light".to_owned(), first), ("v1".to_owned(), first)]),
            branches: BTreeMap::from([("main".to_owned(), second), ("topic/x".to_owned(), first)]),
            default_branch: Some("main".to_owned()),
            head: Some(second),
        };
        assert_eq!(open(&repository).refs().unwrap(), expected);
        repository.git(&["gc", "--quiet"]);
        let database = open(&repository);
        assert_eq!(database.refs().unwrap(), expected);
        let found = database.blob_at(&first, "big", 10_000).unwrap().unwrap();
        assert_eq!(found, text.as_bytes());
        let size = database.blob_size(&database.entry_at(&second, "big").unwrap().unwrap().id);
        assert_eq!(size.unwrap(), text.len() as u64 + 5);
    }

    #[test]
    fn a_repository_without_commits_has_no_refs_and_a_detached_head_no_branch() {
        let world = World::new();
        let repository = world.repository("source");
        assert_eq!(open(&repository).refs().unwrap(), Refs::default());
        let commit = repository.commit(&[("a", "")]);
        repository.git(&["checkout", "--quiet", "--detach"]);
        let refs = open(&repository).refs().unwrap();
        assert_eq!((refs.default_branch, refs.head), (None, Some(commit)));
    }

    #[test]
    fn an_entry_whose_name_is_a_path_is_refused() {
        let world = World::new();
        let repository = world.repository("source");
        let blob = repository.blob(b"text");
        let inner = repository.tree(&[("100644", b"b/c", &blob)]);
        for (mode, name, id, expected) in [
            ("100644", b"a/b".as_slice(), &blob, "`a/b`"),
            ("40000", b"/", &inner, "`/`"),
            ("40000", b"a", &inner, "`a/b/c`"),
        ] {
            let commit = repository.commit_tree(&repository.tree(&[(mode, name, id)]));
            let error = open(&repository)
                .entries(&commit, None, LIMITS)
                .unwrap_err();
            assert!(matches!(error, GitError::EntryName { .. }), "{error}");
            assert!(error.to_string().contains(expected), "{error}");
        }
    }

    #[test]
    fn entries_and_depth_are_bounded_even_where_trees_repeat_without_end() {
        let world = World::new();
        let repository = world.repository("source");
        let mut tree = repository.tree(&[]);
        for _ in 0..40 {
            tree = repository.tree(&[("40000", b"a", &tree), ("40000", b"b", &tree)]);
        }
        let commit = repository.commit_tree(&tree);
        let database = open(&repository);
        let error = database.entries(&commit, None, LIMITS).unwrap_err();
        assert!(matches!(
            error,
            GitError::TooManyEntries { limit: 1_000, .. }
        ));
        let shallow = TreeLimits { depth: 8, ..LIMITS };
        let error = database.entries(&commit, None, shallow).unwrap_err();
        assert!(matches!(error, GitError::TooDeep { limit: 8, .. }));
        let exact = repository.commit(&[("a/b/c", ""), ("d", "")]);
        let limits = TreeLimits {
            entries: 4,
            depth: 3,
        };
        assert_eq!(database.entries(&exact, None, limits).unwrap().len(), 2);
        for limits in [
            TreeLimits {
                entries: 3,
                ..limits
            },
            TreeLimits { depth: 2, ..limits },
        ] {
            assert!(database.entries(&exact, None, limits).is_err());
        }
    }

    #[test]
    fn paths_are_bounded_together_because_a_name_has_no_limit_in_git() {
        let world = World::new();
        let repository = world.repository("source");
        let blob = repository.blob(b"x");
        let name = vec![b'n'; 100_000];
        let mut tree = repository.tree(&[("100644", b"f", &blob)]);
        for levels in 1..=4 {
            tree = repository.tree(&[("40000", &name, &tree)]);
            let commit = repository.commit_tree(&tree);
            let entries = open(&repository).entries(&commit, None, LIMITS);
            match levels {
                // 100 kB, then 200 kB more and so on; 512 kB are the limit of 1,000 entries.
                1 | 2 => assert_eq!(entries.unwrap().len(), 1),
                _ => assert!(matches!(
                    entries.unwrap_err(),
                    GitError::PathsTooLong { limit: 512_000, .. }
                )),
            }
        }
    }

    #[test]
    fn a_blob_over_its_limit_is_refused_with_both_sizes() {
        let world = World::new();
        let repository = world.repository("source");
        let commit = repository.commit(&[("a", "12345")]);
        let database = open(&repository);
        let id = database.entry_at(&commit, "a").unwrap().unwrap().id;
        assert_eq!(database.read_blob(&id, 5).unwrap(), b"12345");
        let error = database.read_blob(&id, 4).unwrap_err();
        assert!(matches!(
            error,
            GitError::TooLarge {
                bytes: 5,
                limit: 4,
                ..
            }
        ));
    }

    #[test]
    fn a_missing_or_damaged_object_is_named() {
        let world = World::new();
        let repository = world.repository("source");
        let commit = repository.commit(&[("a", "12345")]);
        let absent: CommitId = "1234567890123456789012345678901234567890".parse().unwrap();
        let database = open(&repository);
        assert!(database.has_commit(&commit) && !database.has_commit(&absent));
        let blob = database.entry_at(&commit, "a").unwrap().unwrap().id;
        assert!(!database.has_commit(&CommitId(blob.0)));
        let hex = blob.to_string();
        let (directory, file) = hex.split_at(2);
        let path = repository
            .path()
            .join(".git/objects")
            .join(directory)
            .join(file);
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, b"no object").unwrap();
        for error in [
            database.read_blob(&blob, 10).unwrap_err(),
            database.entries(&absent, None, LIMITS).unwrap_err(),
            database.read_blob(&BlobId(commit.0), 1_000).unwrap_err(),
        ] {
            assert!(matches!(error, GitError::Unreadable { .. }), "{error}");
        }
    }

    #[test]
    fn ancestry_follows_every_parent() {
        let world = World::new();
        let repository = world.repository("source");
        let base = repository.commit(&[("a", "1")]);
        let left = repository.commit(&[("a", "2")]);
        repository.git(&["checkout", "--quiet", "-b", "right", &base.to_string()]);
        let right = repository.commit(&[("b", "1")]);
        repository.git(&["merge", "--quiet", "-m", "merge", "main"]);
        let merge = repository.git(&["rev-parse", "HEAD"]).parse().unwrap();
        let database = open(&repository);
        for (ancestor, descendant, expected) in [
            (base, merge, true),
            (left, merge, true),
            (right, merge, true),
            (merge, merge, true),
            (merge, base, false),
            (left, right, false),
        ] {
            assert_eq!(
                database.is_ancestor(&ancestor, &descendant).unwrap(),
                expected
            );
        }
    }

    #[test]
    fn changed_paths_are_those_whose_content_or_mode_differ() {
        let world = World::new();
        let repository = world.repository("source");
        let (one, two) = (repository.blob(b"1"), repository.blob(b"2"));
        let sub = "1234567890123456789012345678901234567890";
        let new_sub = "2234567890123456789012345678901234567890";
        let same = repository.tree(&[("100644", b"x", &one)]);
        let from = repository.tree(&[
            ("100644", b"changed", &one),
            ("100644", b"gone", &one),
            ("100644", b"mode", &one),
            ("100644", b"now-a-directory", &one),
            ("40000", b"same", &same),
            ("160000", b"sub", sub),
        ]);
        let to = repository.tree(&[
            ("100644", b"changed", &two),
            ("100755", b"mode", &one),
            ("40000", b"new", &same),
            ("40000", b"now-a-directory", &same),
            ("40000", b"same", &same),
            ("160000", b"sub", new_sub),
        ]);
        let (from, to) = (repository.commit_tree(&from), repository.commit_tree(&to));
        let database = open(&repository);
        let changed = |from, to| -> Vec<String> {
            let paths = database.changed_paths(from, to).unwrap();
            paths.iter().map(|path| escape_bytes(path)).collect()
        };
        let expected = [
            "changed",
            "gone",
            "mode",
            "new/x",
            "now-a-directory",
            "now-a-directory/x",
            "sub",
        ];
        assert_eq!(changed(&from, &to), expected);
        assert_eq!(changed(&to, &from), expected);
        assert!(changed(&to, &to).is_empty());
    }

    #[test]
    fn objects_that_are_borrowed_are_read_and_their_place_is_told() {
        let world = World::new();
        let repository = world.repository("source");
        let commit = repository.commit(&[("a", "1")]);
        repository.git(&[
            "clone",
            "--quiet",
            "--shared",
            "--bare",
            ".",
            "../other.git",
        ]);
        let database = Database::open(&world.path("other.git")).unwrap();
        assert_eq!(listing(&database, &commit, None), ["file a"]);
        let expected = [
            world.path("other.git/objects"),
            repository.path().join(".git/objects"),
        ];
        assert_eq!(database.object_directories().unwrap(), expected);
    }

    #[test]
    fn several_threads_read_at_once() {
        let world = World::new();
        let repository = world.repository("source");
        let commit = repository.commit(&[("a", "1"), ("b", "2")]);
        let database = open(&repository);
        std::thread::scope(|scope| {
            for (path, content) in [("a", b"1"), ("b", b"2"), ("a", b"1")] {
                let database = &database;
                scope.spawn(move || {
                    for _ in 0..50 {
                        let found = database.blob_at(&commit, path, 10).unwrap();
                        assert_eq!(found.as_deref(), Some(&content[..]));
                    }
                });
            }
        });
    }

    #[test]
    fn the_beginning_of_an_id_finds_commits_only() {
        let world = World::new();
        let repository = world.repository("source");
        let commit = repository.commit(&[("a", "1")]);
        let database = open(&repository);
        let hex = commit.to_string();
        for digits in [4, 12, 40] {
            let found = database.commit_by_prefix(&hex[..digits]).unwrap();
            assert_eq!(found, Some(commit));
        }
        let tree = database.commit_tree_id(&commit).unwrap();
        for other in [&tree[..12], "zzzz", "123", "0000000"] {
            assert_eq!(database.commit_by_prefix(other).unwrap(), None);
        }
    }
}
