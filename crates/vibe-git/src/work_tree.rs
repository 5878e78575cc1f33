//! In-place slots: git clones whose work tree is the package.
//!
//! Identity is the commit. Files come out as git checks them out: the line endings, `$Id$` and
//! encodings that the repository's own `.gitattributes` ask for act as they do in every clone, with
//! LF as the line ending of every system; a filter has a program in somebody's configuration, of
//! which none is read, so it does nothing. Links stay links.
//!
//! Objects are not fetched here: they are copied, as one pack made for the purpose, from a
//! repository that already has the commit. The clone is then complete by itself, and neither it nor
//! what uses it can harm the other. No step of ours walks the tree; git looks at what its index
//! lists. Each work tree has a [control directory](crate::control) outside the slot, by which all
//! calls go. Submodules are repositories of their own with a `.git` of their own, brought to the
//! commit that the caller found for each; git's own recursion, which would obey their
//! configuration, is off.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use vibe_core::plan::Extent;
use vibe_core::{Cancellation, RelPath, Sha256Digest};
use vibe_fs::{
    CopyError, Durability, EntryKind, FsError, Guard, ParentError, ReadError, RemoveError,
    create_directory_all, create_parents, list_dir, path_guard, read_if_exists, remove_file_if,
    remove_tree, stat_of, write_atomic,
};

use crate::CommitId;
use crate::control::Control;
use crate::program::{Call, GitProgram, ProgramError};
use crate::repository::Repository;
use crate::status::{Collector, Status};

/// Bytes of the file that remembers where a submodule was.
const PATH_FILE_BYTES: u64 = 4 << 10;
/// How a file that remembers a submodule's path ends.
const PATH_SUFFIX: &str = ".path";

/// What a clone has to show.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checkout {
    /// Where it comes from, without credentials: the `origin` of the clone.
    pub url: String,
    /// The commit.
    pub commit: CommitId,
    /// The object directory that has the commit and everything it needs.
    pub objects: PathBuf,
    /// All submodules at any depth, each after the one it is in.
    pub submodules: Vec<Submodule>,
}

/// One submodule of a [`Checkout`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Submodule {
    /// Where it is, from the root of the whole clone.
    pub path: RelPath,
    /// Where it comes from, without credentials.
    pub url: String,
    /// The commit that is pinned.
    pub commit: CommitId,
    /// The object directory that has it.
    pub objects: PathBuf,
}

/// An in-place slot.
#[derive(Debug, Clone)]
pub struct WorkTree<'a> {
    git: &'a GitProgram,
    cancel: &'a Cancellation,
    tree: PathBuf,
    control: PathBuf,
}

/// Why something could not be done to an in-place slot.
#[derive(Debug, thiserror::Error)]
pub enum WorkTreeError {
    /// The git program failed.
    #[error(transparent)]
    Program(#[from] ProgramError),
    /// A file call failed.
    #[error(transparent)]
    Fs(#[from] FsError),
    /// A file could not be copied.
    #[error(transparent)]
    Copy(#[from] CopyError),
    /// A directory could not be removed.
    #[error(transparent)]
    Remove(#[from] RemoveError),
    /// Something is in the way of a directory.
    #[error("the git clone needs a directory: {0}")]
    Blocked(#[source] ParentError),
}

impl From<ParentError> for WorkTreeError {
    fn from(error: ParentError) -> Self {
        match error {
            ParentError::Fs(error) => Self::Fs(error),
            error => Self::Blocked(error),
        }
    }
}

/// One repository of a slot: the clone itself, or a submodule.
struct Part<'a> {
    git: &'a GitProgram,
    cancel: &'a Cancellation,
    tree: PathBuf,
    control: Control,
    repository: Repository,
}

/// What one repository has to show.
#[derive(Clone, Copy)]
struct Target<'a> {
    url: &'a str,
    commit: CommitId,
    objects: &'a Path,
}

impl<'a> WorkTree<'a> {
    /// The slot in the directory `tree`, which need not exist, with its control directories in
    /// `control`. Both paths are absolute. With a `control` that is new, a look at the slot reads
    /// every file; with the one that was used before, only those whose stat has moved.
    pub fn new(git: &'a GitProgram, cancel: &'a Cancellation, tree: &Path, control: &Path) -> Self {
        Self {
            git,
            cancel,
            tree: tree.to_path_buf(),
            control: control.to_path_buf(),
        }
    }

    /// The object directory of the clone in `tree`, for a [`Checkout`] of what it already is.
    pub fn own_objects(tree: &Path) -> PathBuf {
        Repository::of(tree).objects()
    }

    /// Whether the objects of the clone in `tree` are all in it, and none are borrowed.
    ///
    /// # Errors
    /// They cannot be looked at.
    pub fn has_own_objects(tree: &Path) -> Result<bool, WorkTreeError> {
        let repository = Repository::of(tree);
        Ok(repository.exists()? && repository.has_own_objects()?)
    }

    /// The commit at which the clone's `HEAD` is detached; `None` if there is no clone, or it is on
    /// a branch. Starts no process.
    pub fn head(tree: &Path) -> Option<CommitId> {
        Repository::of(tree).detached_head()
    }

    /// The submodules that were brought here last, by the control directory, each with the objects
    /// that it has itself; their URLs are not known. Starts no process.
    ///
    /// # Errors
    /// A file call failed.
    pub fn placed_submodules(&self) -> Result<Vec<Submodule>, WorkTreeError> {
        let mut found = Vec::new();
        if !is_directory(&self.control)? {
            return Ok(found);
        }
        for entry in list_dir(&self.control)? {
            let is_path = entry.relative.to_string_lossy().ends_with(PATH_SUFFIX);
            let path = match is_path {
                true => submodule_path(&self.control.join(&entry.relative))?,
                false => None,
            };
            let Some(path) = path else { continue };
            let part = self.part(&path);
            if let Some(commit) = part.control.commit() {
                found.push(Submodule {
                    url: String::new(),
                    commit,
                    objects: part.repository.objects(),
                    path,
                });
            }
        }
        found.sort_by(|one, other| one.path.cmp(&other.path));
        Ok(found)
    }

    /// Makes the slot show `wanted`, as far as `extent` says: tracked files that differ are replaced
    /// or removed, the others keep inode and times; with [`Extent::All`] everything that is not
    /// tracked goes, ignored files and nested repositories included. What was planted in a `.git`
    /// is gone at any extent. `HEAD` moves last.
    ///
    /// # Errors
    /// Git or a file call failed; calling again finishes.
    pub fn bring(&self, wanted: &Checkout, extent: Extent) -> Result<(), WorkTreeError> {
        let is_new = stat_of(&self.tree)?.is_none();
        create_directory_all(&self.tree)?;
        self.remove_former_submodules(wanted)?;
        let whole = self.whole();
        whole.bring(wanted.into(), extent, is_new)?;
        for submodule in &wanted.submodules {
            create_parents(&self.tree, &submodule.path)?;
            let part = self.part(&submodule.path);
            if !is_directory(&part.tree)? {
                remove_tree(&part.tree)?;
                create_directory_all(&part.tree)?;
            }
            self.remember_submodule(&submodule.path)?;
            part.bring(submodule.into(), extent, is_new)?;
            part.repository.set_head(submodule.commit)?;
        }
        Ok(whole.repository.set_head(wanted.commit)?)
    }

    /// How the slot differs from `wanted`. Whatever its index, configuration or references claim,
    /// only files count. Changes nothing in the slot.
    ///
    /// # Errors
    /// Git or a file call failed.
    pub fn status(&self, wanted: &Checkout) -> Result<Status, WorkTreeError> {
        let mut collector = Collector::new();
        let printed = self.whole().status(wanted.into())?;
        collector.add(&self.tree, b"", &printed)?;
        for submodule in &wanted.submodules {
            let path = submodule.path.as_str().as_bytes();
            let part = self.part(&submodule.path);
            let is_there = path_guard(&self.tree, &submodule.path)? == Guard::Clear
                && is_directory(&part.tree)?
                && part.repository.exists()?;
            if !is_there {
                collector.add_missing(path);
                continue;
            }
            let printed = part.status(submodule.into())?;
            collector.add(&part.tree, &[path, b"/"].concat(), &printed)?;
        }
        Ok(collector.finish())
    }

    /// Whether the clone or a submodule has commits that somebody made here: reachable from `HEAD`,
    /// a branch or the stash, but neither from a commit that was fetched nor from `wanted` or
    /// `known`. What cannot be told counts as one.
    ///
    /// # Errors
    /// Git or a file call failed.
    pub fn has_local_commits(
        &self,
        wanted: &Checkout,
        known: &[CommitId],
    ) -> Result<bool, WorkTreeError> {
        if self.whole().has_local_commits(wanted.into(), known)? {
            return Ok(true);
        }
        for submodule in &wanted.submodules {
            let is_there = path_guard(&self.tree, &submodule.path)? == Guard::Clear;
            let part = self.part(&submodule.path);
            if is_there && part.has_local_commits(submodule.into(), known)? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether every `.git` of the slot is as we make one, give or take what git adds when it is
    /// used. One that is not is made anew by [`bring`](Self::bring).
    ///
    /// # Errors
    /// A file call failed.
    pub fn is_plain(&self, wanted: &Checkout) -> Result<bool, WorkTreeError> {
        if !self.whole().repository.is_plain(&wanted.url)? {
            return Ok(false);
        }
        for submodule in &wanted.submodules {
            let is_plain = path_guard(&self.tree, &submodule.path)? == Guard::Clear
                && self
                    .part(&submodule.path)
                    .repository
                    .is_plain(&submodule.url)?;
            if !is_plain {
                return Ok(false);
            }
        }
        Ok(true)
    }

    fn whole(&self) -> Part<'a> {
        self.part_at(&self.tree, self.control.join("whole"))
    }

    fn part(&self, path: &RelPath) -> Part<'a> {
        self.part_at(&path.under(&self.tree), self.control.join(part_name(path)))
    }

    fn part_at(&self, tree: &Path, control: PathBuf) -> Part<'a> {
        Part {
            git: self.git,
            cancel: self.cancel,
            tree: tree.to_path_buf(),
            control: Control::new(control),
            repository: Repository::of(tree),
        }
    }

    fn remember_submodule(&self, path: &RelPath) -> Result<(), FsError> {
        let file = self.control.join(part_name(path) + PATH_SUFFIX);
        let text = path.as_str().as_bytes();
        match stat_of(&file)? {
            Some(_) => Ok(()),
            None => write_atomic(&file, text, &self.control, Durability::Unsynced),
        }
    }

    /// Removes the repositories of submodules that `wanted` has no more: git leaves them, and files
    /// of the package may come to their place.
    fn remove_former_submodules(&self, wanted: &Checkout) -> Result<(), WorkTreeError> {
        if stat_of(&self.control)?.is_none() {
            return Ok(());
        }
        for entry in list_dir(&self.control)? {
            let name = entry.relative.to_string_lossy();
            let Some(part) = name.strip_suffix(PATH_SUFFIX) else {
                continue;
            };
            let file = self.control.join(&entry.relative);
            let path = submodule_path(&file)?.filter(|path| part_name(path) == part);
            let is_wanted = |path: &RelPath| wanted.submodules.iter().any(|one| one.path == *path);
            if path.as_ref().is_some_and(is_wanted) {
                continue;
            }
            if let Some(path) = path
                && path_guard(&self.tree, &path)? == Guard::Clear
            {
                remove_tree(&path.under(&self.tree))?;
            }
            remove_tree(&self.control.join(part))?;
            remove_file_if(&file, |_| true)?;
        }
        Ok(())
    }
}

/// The name of a submodule's control directory.
fn part_name(path: &RelPath) -> String {
    let digest = Sha256Digest::of(path.as_str().as_bytes()).to_string();
    format!("sub-{}", &digest[..32])
}

fn submodule_path(file: &Path) -> Result<Option<RelPath>, FsError> {
    match read_if_exists(file, PATH_FILE_BYTES) {
        Ok(bytes) => Ok(bytes
            .and_then(|bytes| String::from_utf8(bytes).ok())
            .and_then(|text| RelPath::new(&text).ok())),
        Err(ReadError::Fs(error)) => Err(error),
        Err(_) => Ok(None),
    }
}

fn is_directory(path: &Path) -> Result<bool, FsError> {
    Ok(stat_of(path)?.is_some_and(|stat| stat.kind == EntryKind::Directory))
}

impl<'a> From<&'a Checkout> for Target<'a> {
    fn from(checkout: &'a Checkout) -> Self {
        Self {
            url: &checkout.url,
            commit: checkout.commit,
            objects: &checkout.objects,
        }
    }
}

impl<'a> From<&'a Submodule> for Target<'a> {
    fn from(submodule: &'a Submodule) -> Self {
        Self {
            url: &submodule.url,
            commit: submodule.commit,
            objects: &submodule.objects,
        }
    }
}

impl Part<'_> {
    /// All but `HEAD`. Of a tree that `is_new` nothing has to be looked at.
    fn bring(&self, target: Target<'_>, extent: Extent, is_new: bool) -> Result<(), WorkTreeError> {
        if !self.repository.is_plain(target.url)? {
            self.repository.create(target.url)?;
        }
        self.control.prepare(target.commit)?;
        self.take_objects(target)?;
        let commit = target.commit.to_string();
        if !is_new && !self.control.has_index()? {
            // Files that are as they should be are found to be, so that they stay untouched.
            self.status(target)?;
        }
        let objects = self.reading(target);
        let check_out: &[&str] = match extent {
            Extent::Repository => &["read-tree", "-m", &commit],
            Extent::Tracked | Extent::All => &["read-tree", "--reset", "-u", &commit],
        };
        self.call("check out the files of", check_out, &objects)?;
        if extent == Extent::All && !is_new {
            let clean = ["clean", "-ffdxq"];
            self.call("remove the untracked files of", &clean, &objects)?;
        }
        Ok(self.repository.set_index(&self.control.index())?)
    }

    /// Copies the objects of the target that the clone has not got, as one pack.
    fn take_objects(&self, target: Target<'_>) -> Result<(), WorkTreeError> {
        let has = self.repository.detached_head();
        if has == Some(target.commit) {
            return Ok(());
        }
        let objects = [self.repository.objects(), target.objects.to_path_buf()];
        let pack = |less: Option<CommitId>| {
            let mut call = self.prepared(
                "copy the objects of",
                &["pack-objects", "-q", "--revs", "--non-empty", "--window=0"],
                &objects,
            );
            call.arguments.push("--delta-base-offset".into());
            call.arguments.push(self.repository.pack_prefix().into());
            call.input = format!("{}\n", target.commit).into_bytes();
            if let Some(less) = less {
                call.input.extend(format!("^{less}\n").into_bytes());
            }
            self.git.run(&call, self.cancel)
        };
        match pack(has) {
            // What the clone claims to have may be gone.
            Err(ProgramError::Failed { .. }) if has.is_some() => pack(None)?,
            packed => packed?,
        };
        Ok(())
    }

    fn status(&self, target: Target<'_>) -> Result<Vec<u8>, WorkTreeError> {
        if !is_directory(&self.tree)? {
            let error = std::io::ErrorKind::NotADirectory;
            return Err(FsError::new("look into", &self.tree, error.into()).into());
        }
        self.control.prepare(target.commit)?;
        if !self.control.has_index()? {
            let commit = target.commit.to_string();
            self.call(
                "read the commit of",
                &["read-tree", &commit],
                &self.reading(target),
            )?;
        }
        self.call(
            "look at the files of",
            &[
                "status",
                "--porcelain=v1",
                "-z",
                "--untracked-files=normal",
                "--ignored=no",
                "--ignore-submodules=all",
                "--no-renames",
            ],
            &self.reading(target),
        )
    }

    fn has_local_commits(
        &self,
        target: Target<'_>,
        known: &[CommitId],
    ) -> Result<bool, WorkTreeError> {
        let Some(tips) = self.repository.tips()? else {
            return Ok(true);
        };
        let known: Vec<CommitId> = known.iter().copied().chain([target.commit]).collect();
        let own: Vec<CommitId> = tips
            .own
            .into_iter()
            .filter(|tip| !known.contains(tip) && !tips.fetched.contains(tip))
            .collect();
        if own.is_empty() {
            return Ok(false);
        }
        if !self.repository.has_own_objects()? {
            return Ok(true);
        }
        self.control.prepare(target.commit)?;
        let objects = [self.repository.objects(), target.objects.to_path_buf()];
        let mut call = self.prepared(
            "look for commits made in",
            &["rev-list", "--max-count=1", "--ignore-missing", "--stdin"],
            &objects,
        );
        let positive = own.iter().map(|tip| format!("{tip}\n"));
        let negative = known.iter().chain(&tips.fetched);
        let lines = positive.chain(negative.map(|commit| format!("^{commit}\n")));
        call.input = lines.collect::<String>().into_bytes();
        Ok(!self.git.run(&call, self.cancel)?.is_empty())
    }

    /// Object directories of a call that writes none, should it after all.
    fn reading(&self, target: Target<'_>) -> [PathBuf; 2] {
        let own = self.control.path().join("objects");
        [own, target.objects.to_path_buf()]
    }

    fn call(
        &self,
        doing: &'static str,
        arguments: &[&str],
        objects: &[PathBuf],
    ) -> Result<Vec<u8>, WorkTreeError> {
        let call = self.prepared(doing, arguments, objects);
        Ok(self.git.run(&call, self.cancel)?)
    }

    fn prepared<'b>(
        &'b self,
        doing: &'static str,
        arguments: &[&str],
        objects: &'b [PathBuf],
    ) -> Call<'b> {
        Call {
            doing,
            git_directory: self.control.path(),
            work_tree: &self.tree,
            objects,
            arguments: arguments.iter().map(OsString::from).collect(),
            input: Vec::new(),
        }
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests;
