//! The `.git` of an in-place slot: an ordinary, self-contained repository, made of plain files.
//!
//! It is for people, who may `cd` into the slot and use git there as anywhere. `HEAD` is detached at
//! the commit we placed, since a clone's identity is its commit and no branch; `origin` is where the
//! package comes from, without credentials. We write it and read its references, and nothing of it
//! steers a call of ours. One that holds more than a clone of ours can is not cleaned up but made
//! anew, so what was planted in it does not survive.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use vibe_fs::{
    Durability, EntryKind, FsError, ReadError, clone_file, create_directory, list_dir,
    read_if_exists, remove_file_if, remove_tree, rename_over, stat_of, walk, write_atomic,
};

use crate::CommitId;
use crate::control::has_text;

/// What may stand in the `.git` of a clone that was used and not meddled with.
const NAMES: [&str; 11] = [
    "COMMIT_EDITMSG",
    "FETCH_HEAD",
    "HEAD",
    "ORIG_HEAD",
    "config",
    "description",
    "index",
    "logs",
    "objects",
    "packed-refs",
    "refs",
];
/// Bytes of one reference.
const REFERENCE_BYTES: u64 = 4 << 10;
/// Bytes of a `packed-refs`: some 400,000 references.
const PACKED_BYTES: u64 = 32 << 20;
/// References that are looked at: more are no work of a person's.
const REFERENCES: usize = 10_000;

/// The name of a reference and what it names.
type Reference = (Vec<u8>, CommitId);

/// What a `.git` refers to.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Tips {
    /// Commits that somebody may have made here: `HEAD`, branches, the stash.
    pub(crate) own: BTreeSet<CommitId>,
    /// Commits that were fetched.
    pub(crate) fetched: BTreeSet<CommitId>,
}

/// The `.git` of a work tree.
#[derive(Debug, Clone)]
pub(crate) struct Repository {
    directory: PathBuf,
}

impl Repository {
    /// The `.git` in the directory `tree`.
    pub(crate) fn of(tree: &Path) -> Self {
        Self {
            directory: tree.join(".git"),
        }
    }

    /// Where its objects are.
    pub(crate) fn objects(&self) -> PathBuf {
        self.directory.join("objects")
    }

    /// Where packs of it begin.
    pub(crate) fn pack_prefix(&self) -> PathBuf {
        self.directory.join("objects/pack/pack")
    }

    /// Whether it is a real directory.
    pub(crate) fn exists(&self) -> Result<bool, FsError> {
        self.is(&self.directory, EntryKind::Directory)
    }

    fn is(&self, path: &Path, kind: EntryKind) -> Result<bool, FsError> {
        Ok(stat_of(path)?.is_some_and(|stat| stat.kind == kind))
    }

    /// The commit that `HEAD` names by itself; `None` if it names a branch or is not readable.
    pub(crate) fn detached_head(&self) -> Option<CommitId> {
        let bytes = read_if_exists(&self.directory.join("HEAD"), REFERENCE_BYTES).ok()??;
        commit_in(&bytes)
    }

    /// Whether it is as we make one, give or take what git adds when it is used.
    pub(crate) fn is_plain(&self, url: &str) -> Result<bool, FsError> {
        if !self.exists()? {
            return Ok(false);
        }
        let are_known = list_dir(&self.directory)?.iter().all(|entry| {
            let kind = match entry.path_bytes().as_slice() {
                b"logs" | b"objects" | b"refs" => EntryKind::Directory,
                _ => EntryKind::File,
            };
            NAMES
                .iter()
                .any(|name| entry.path_bytes() == name.as_bytes())
                && entry.stat.kind == kind
        });
        Ok(are_known
            && has_text(&self.directory.join("config"), &config(url))?
            && self.is(&self.directory.join("HEAD"), EntryKind::File)?
            && self.is(&self.directory.join("refs"), EntryKind::Directory)?
            && !self.has_replacements()?
            && self.has_own_objects()?)
    }

    /// Whether its objects are in it, and no others are borrowed.
    pub(crate) fn has_own_objects(&self) -> Result<bool, FsError> {
        let objects = self.objects();
        for directory in [&objects, &objects.join("pack")] {
            if !self.is(directory, EntryKind::Directory)? {
                return Ok(false);
            }
        }
        let info = objects.join("info");
        match stat_of(&info)?.map(|stat| stat.kind) {
            None => Ok(true),
            Some(EntryKind::Directory) => {
                let borrows = |name: &str| Ok(stat_of(&info.join(name))?.is_some());
                Ok(!borrows("alternates")? && !borrows("http-alternates")?)
            }
            Some(_) => Ok(false),
        }
    }

    fn has_replacements(&self) -> Result<bool, FsError> {
        if stat_of(&self.directory.join("refs/replace"))?.is_some() {
            return Ok(true);
        }
        let packed = self.packed_references()?;
        Ok(packed.is_none_or(|packed| packed.iter().any(|(name, _)| is_replacement(name))))
    }

    /// Makes it anew, without objects. It has no `HEAD` yet, so that one left here by a killed run
    /// is none of ours.
    pub(crate) fn create(&self, url: &str) -> Result<(), FsError> {
        remove_tree(&self.directory).map_err(|error| error.source)?;
        create_directory(&self.directory)?;
        for name in ["objects", "objects/pack", "refs", "refs/heads", "refs/tags"] {
            create_directory(&self.directory.join(name))?;
        }
        self.write("config", &config(url))
    }

    /// Detaches `HEAD` at `commit`, whose objects are here.
    pub(crate) fn set_head(&self, commit: CommitId) -> Result<(), FsError> {
        let text = format!("{commit}\n");
        match has_text(&self.directory.join("HEAD"), &text)? {
            true => Ok(()),
            false => self.write("HEAD", &text),
        }
    }

    /// Takes a copy of `index` for its own.
    pub(crate) fn set_index(&self, index: &Path) -> Result<(), vibe_fs::CopyError> {
        let temporary = self.directory.join("index.lock");
        remove_file_if(&temporary, |_| true)?;
        clone_file(index, &temporary, false)?;
        Ok(rename_over(&temporary, &self.directory.join("index"))?)
    }

    fn write(&self, name: &str, text: &str) -> Result<(), FsError> {
        let path = self.directory.join(name);
        write_atomic(
            &path,
            text.as_bytes(),
            &self.directory,
            Durability::Unsynced,
        )
    }

    /// What it refers to; `None` if that cannot be told: there are too many references, or they are
    /// no files.
    pub(crate) fn tips(&self) -> Result<Option<Tips>, FsError> {
        if !self.exists()? {
            return Ok(Some(Tips::default()));
        }
        let Some(mut references) = self.packed_references()? else {
            return Ok(None);
        };
        let Some(loose) = self.loose_references()? else {
            return Ok(None);
        };
        references.extend(loose);
        let mut tips = Tips::default();
        for (name, commit) in references {
            if name.starts_with(b"refs/remotes/") {
                tips.fetched.insert(commit);
            } else if !name.starts_with(b"refs/tags/") && !is_replacement(&name) {
                tips.own.insert(commit);
            }
        }
        Ok(Some(tips))
    }

    /// Names and commits in `packed-refs`; `None` if it is no file of a size that is read.
    fn packed_references(&self) -> Result<Option<Vec<Reference>>, FsError> {
        let bytes = match read_if_exists(&self.directory.join("packed-refs"), PACKED_BYTES) {
            Ok(bytes) => bytes.unwrap_or_default(),
            Err(ReadError::Fs(error)) => return Err(error),
            Err(_) => return Ok(None),
        };
        let reference = |line: &[u8]| {
            let (commit, name) = line.split_at_checked(40)?;
            Some((name.trim_ascii().to_vec(), commit_in(commit)?))
        };
        let lines = bytes.split(|byte| *byte == b'\n');
        Ok(Some(lines.filter_map(reference).collect()))
    }

    /// Names and commits of the files below `refs`, and of `HEAD`.
    fn loose_references(&self) -> Result<Option<Vec<Reference>>, FsError> {
        let mut found: Vec<_> = self
            .detached_head()
            .map(|commit| (b"HEAD".to_vec(), commit))
            .into_iter()
            .collect();
        let refs = self.directory.join("refs");
        if !self.is(&refs, EntryKind::Directory)? {
            return Ok(stat_of(&refs)?.is_none().then_some(found));
        }
        for (count, entry) in walk(&refs).enumerate() {
            let entry = entry?;
            if count == REFERENCES {
                return Ok(None);
            }
            match entry.stat.kind {
                EntryKind::Directory => continue,
                EntryKind::File => {}
                EntryKind::Symlink | EntryKind::Other => return Ok(None),
            }
            let name = [b"refs/", entry.path_bytes().as_slice()].concat();
            match read_if_exists(&refs.join(&entry.relative), REFERENCE_BYTES) {
                Ok(bytes) => found.extend(
                    bytes
                        .and_then(|bytes| commit_in(&bytes))
                        .map(|commit| (name, commit)),
                ),
                Err(ReadError::Fs(error)) => return Err(error),
                Err(_) => return Ok(None),
            }
        }
        Ok(Some(found))
    }
}

fn is_replacement(name: &[u8]) -> bool {
    name.starts_with(b"refs/replace/")
}

fn commit_in(bytes: &[u8]) -> Option<CommitId> {
    std::str::from_utf8(bytes)
        .ok()?
        .trim_ascii_end()
        .parse()
        .ok()
}

/// The configuration of a clone. Line endings are as we check them out, whatever the user's own
/// configuration says.
fn config(url: &str) -> String {
    let unix = cfg!(unix);
    let folds_case = cfg!(any(windows, target_os = "macos"));
    format!(
        "[core]\n\trepositoryformatversion = 0\n\tfilemode = {unix}\n\tsymlinks = {unix}\n\
         \tignorecase = {folds_case}\n\tbare = false\n\tlogallrefupdates = true\n\
         \tautocrlf = false\n\teol = lf\n\
         [remote \"origin\"]\n\turl = {}\n\tfetch = +refs/heads/*:refs/remotes/origin/*\n",
        quoted(url)
    )
}

/// `value` as git reads it back, whatever is in it.
fn quoted(value: &str) -> String {
    let escaped = value
        .replace('\\', "\\\\")
        .replace('"', "\\\"")
        .replace('\n', "\\n")
        .replace('\t', "\\t");
    format!("\"{escaped}\"")
}
