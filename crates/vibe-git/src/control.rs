//! The git directory that all our calls on an in-place slot use. It is not the one in the slot.
//!
//! A clone is a repository that its package's install hooks and everybody else may write to: its
//! configuration can name programs (filters, fsmonitor, includes), its index can hide edits
//! (skip-worktree, assume-unchanged), its replacement objects and grafts can tell another history.
//! So none of that is read. A control directory holds a configuration of ours, a `HEAD` and an
//! index of ours, and no reference; the work tree and the objects are named in every call. What the
//! work tree looks like is then found by its files alone, against the commit we mean.

use std::path::{Path, PathBuf};

use vibe_fs::{
    Durability, EntryKind, FsError, RawEntry, ReadError, create_directory, create_directory_all,
    list_dir, read_if_exists, remove_file_if, remove_tree, stat_of, write_atomic,
};

use crate::CommitId;

/// What stands in a control directory. Anything else in it is not ours.
const NAMES: [&str; 5] = ["HEAD", "config", "index", "objects", "refs"];
/// Bytes of a `HEAD` or a configuration: one of more is not ours.
const SMALL_BYTES: u64 = 4 << 10;

/// A control directory of one work tree.
#[derive(Debug, Clone)]
pub(crate) struct Control {
    directory: PathBuf,
}

impl Control {
    /// The control directory `directory`, which need not exist.
    pub(crate) fn new(directory: PathBuf) -> Self {
        Self { directory }
    }

    /// Where it is.
    pub(crate) fn path(&self) -> &Path {
        &self.directory
    }

    /// Its index.
    pub(crate) fn index(&self) -> PathBuf {
        self.directory.join("index")
    }

    /// Whether it has an index.
    pub(crate) fn has_index(&self) -> Result<bool, FsError> {
        Ok(stat_of(&self.index())?.is_some())
    }

    /// The commit it was made ready for last.
    pub(crate) fn commit(&self) -> Option<CommitId> {
        let bytes = read_if_exists(&self.directory.join("HEAD"), SMALL_BYTES).ok()??;
        std::str::from_utf8(&bytes)
            .ok()?
            .trim_ascii_end()
            .parse()
            .ok()
    }

    /// Makes it ready for calls that mean `commit`. Whatever in it is not ours goes, with the index
    /// if it may have been meddled with; so does a lock that a killed run left.
    ///
    /// # Errors
    /// A file call failed.
    pub(crate) fn prepare(&self, commit: CommitId) -> Result<(), FsError> {
        remove_file_if(&self.directory.join("index.lock"), |_| true)?;
        if !self.is_ours()? {
            remove_tree(&self.directory).map_err(|error| error.source)?;
        }
        if stat_of(&self.directory)?.is_none() {
            create_directory_all(&self.directory)?;
            create_directory(&self.directory.join("refs"))?;
            create_directory(&self.directory.join("objects"))?;
        }
        self.write("config", &config())?;
        self.write("HEAD", &format!("{commit}\n"))
    }

    fn is_ours(&self) -> Result<bool, FsError> {
        match stat_of(&self.directory)?.map(|stat| stat.kind) {
            None => return Ok(true),
            Some(EntryKind::Directory) => {}
            Some(_) => return Ok(false),
        }
        let entries = list_dir(&self.directory)?;
        let has = |name: &str| entries.iter().any(|entry| is_named(entry, name));
        let are_known = entries
            .iter()
            .all(|entry| NAMES.iter().any(|name| is_named(entry, name)));
        Ok(are_known && has("refs") && has("objects"))
    }

    /// Writes the small file `name` unless it has that text.
    fn write(&self, name: &str, text: &str) -> Result<(), FsError> {
        let path = self.directory.join(name);
        if has_text(&path, text)? {
            return Ok(());
        }
        write_atomic(
            &path,
            text.as_bytes(),
            &self.directory,
            Durability::Unsynced,
        )
    }
}

/// Whether `entry` is the part `name` of a control directory.
fn is_named(entry: &RawEntry, name: &str) -> bool {
    let kind = match name {
        "objects" | "refs" => EntryKind::Directory,
        _ => EntryKind::File,
    };
    entry.path_bytes() == name.as_bytes() && entry.stat.kind == kind
}

/// Whether `path` is a regular file with exactly this text.
pub(crate) fn has_text(path: &Path, text: &str) -> Result<bool, FsError> {
    match read_if_exists(path, SMALL_BYTES) {
        Ok(bytes) => Ok(bytes.as_deref() == Some(text.as_bytes())),
        Err(ReadError::Fs(error)) => Err(error),
        Err(_) => Ok(false),
    }
}

/// What git needs to know of the file system. Everything else is in the overrides of each call.
fn config() -> String {
    let unix = cfg!(unix);
    let folds_case = cfg!(any(windows, target_os = "macos"));
    format!(
        "[core]\n\trepositoryformatversion = 0\n\tfilemode = {unix}\n\tsymlinks = {unix}\n\
         \tignorecase = {folds_case}\n\tbare = false\n"
    )
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::symlink;

    fn commit(digit: &str) -> CommitId {
        digit.repeat(40).parse().unwrap()
    }

    #[test]
    fn a_control_directory_is_made_and_means_the_commit_that_is_named() {
        let root = tempfile::tempdir().unwrap();
        let control = Control::new(root.path().join("a/b"));
        for digit in ["1", "2"] {
            control.prepare(commit(digit)).unwrap();
            let head = fs::read_to_string(control.path().join("HEAD")).unwrap();
            assert_eq!(head, format!("{}\n", digit.repeat(40)));
        }
        assert!(!control.has_index().unwrap());
        fs::write(control.index(), "x").unwrap();
        fs::write(control.path().join("index.lock"), "").unwrap();
        control.prepare(commit("2")).unwrap();
        assert!(control.has_index().unwrap(), "an index is kept");
        assert!(!control.path().join("index.lock").exists());
    }

    #[test]
    fn what_is_planted_in_a_control_directory_goes_with_its_index() {
        let plant: [fn(&Path); 5] = [
            |at| fs::create_dir(at.join("hooks")).unwrap(),
            |at| fs::write(at.join("commondir"), "/x").unwrap(),
            |at| fs::write(at.join("config.worktree"), "").unwrap(),
            |at| symlink("/x", at.join("index")).unwrap(),
            |at| {
                fs::remove_dir(at.join("refs")).unwrap();
                symlink("/x", at.join("refs")).unwrap();
            },
        ];
        for plant in plant {
            let root = tempfile::tempdir().unwrap();
            let control = Control::new(root.path().join("control"));
            control.prepare(commit("1")).unwrap();
            plant(control.path());
            control.prepare(commit("1")).unwrap();
            let mut names: Vec<_> = fs::read_dir(control.path())
                .unwrap()
                .map(|entry| entry.unwrap().file_name().into_string().unwrap())
                .collect();
            names.sort();
            assert_eq!(names, ["HEAD", "config", "objects", "refs"]);
        }
    }

    #[test]
    fn a_configuration_of_another_is_replaced_and_never_written_through() {
        let root = tempfile::tempdir().unwrap();
        let control = Control::new(root.path().join("control"));
        control.prepare(commit("1")).unwrap();
        let config = control.path().join("config");
        let ours = fs::read(&config).unwrap();
        let kept = root.path().join("kept");
        fs::write(&kept, "[include]\npath = x\n").unwrap();
        fs::remove_file(&config).unwrap();
        symlink(&kept, &config).unwrap();
        control.prepare(commit("1")).unwrap();
        assert_eq!(fs::read(&config).unwrap(), ours);
        assert_eq!(fs::read_to_string(&kept).unwrap(), "[include]\npath = x\n");
        fs::write(&config, "[core]\nfsmonitor = x\n").unwrap();
        control.prepare(commit("1")).unwrap();
        assert_eq!(fs::read(&config).unwrap(), ours);
    }
}
