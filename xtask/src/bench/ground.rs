//! The file system that is measured.
//!
//! An ext4 without a journal does not hand out again at once what was just deleted, which makes
//! whoever deletes before it creates several times slower. So root gets a fresh ext4 with a
//! journal, in an image, in mounts of its own: whatever ends this process, nothing stays mounted.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

use super::error::Error;
use super::measure::{command, run_quietly};

/// Room for the file system; its image is sparse.
const IMAGE_BYTES: u64 = 8 << 30;

/// Where everything that is measured is written; gone with this value.
pub(crate) struct Ground {
    // Before the directory it is mounted in: fields are dropped in this order.
    mount: Option<Mount>,
    directory: TempDir,
}

/// A mounted file system.
struct Mount {
    point: PathBuf,
    path: OsString,
}

impl Ground {
    /// A new place in `work`: a file system of its own if `can_mount`.
    pub(crate) fn new(work: &Path, can_mount: bool, path: &OsString) -> Result<Self, Error> {
        let directory = tempfile::Builder::new().prefix("run-").tempdir_in(work);
        let directory = directory.map_err(|source| Error::files("creating", work, source))?;
        let mount = can_mount.then(|| Mount::new(directory.path(), path));
        let mount = mount.transpose().unwrap_or_else(|error| {
            eprintln!("warning: no file system of its own: {error}");
            None
        });
        Ok(Self { mount, directory })
    }

    /// The directory to write in.
    pub(crate) fn root(&self) -> &Path {
        match &self.mount {
            Some(mount) => &mount.point,
            None => self.directory.path(),
        }
    }

    /// What is measured, and on which machine, in one line.
    pub(crate) fn description(&self) -> String {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
        let load = load.split(' ').next().filter(|load| !load.is_empty());
        let load = load.map_or_else(String::new, |load| format!(", load {load} at the start"));
        let place = match self.mount {
            Some(_) => "a fresh ext4 on a loop device".to_owned(),
            None => format!(
                "{}, whose file system has a past: root, where it may mount, gets a fresh one",
                self.directory.path().display()
            ),
        };
        format!("measured on {place}; {cores} cores{load}")
    }
}

impl Mount {
    fn new(directory: &Path, path: &OsString) -> Result<Self, Error> {
        let image = directory.join("image");
        let point = directory.join("mounted");
        let file = std::fs::File::create_new(&image).and_then(|it| it.set_len(IMAGE_BYTES));
        file.map_err(|source| Error::files("creating", &image, source))?;
        let made = std::fs::create_dir(&point);
        made.map_err(|source| Error::files("creating", &point, source))?;
        // Nothing is left to be written in the background while the clock runs.
        let now = "lazy_itable_init=0,lazy_journal_init=0";
        let mut make = command("mkfs.ext4".as_ref(), directory, path);
        run_quietly(make.args(["-q", "-F", "-E", now]).arg(&image))?;
        let mut mount = command("mount".as_ref(), directory, path);
        run_quietly(mount.args(["-o", "loop"]).args([&image, &point]))?;
        let mount = Self {
            point,
            path: path.clone(),
        };
        // The loop device holds it as long as it is mounted.
        std::fs::remove_file(&image).map_err(|source| Error::files("removing", &image, source))?;
        Ok(mount)
    }
}

impl Drop for Mount {
    fn drop(&mut self) {
        let mut unmount = command("umount".as_ref(), Path::new("/"), &self.path);
        if let Err(error) = run_quietly(unmount.arg(&self.point)) {
            eprintln!("warning: {error}");
        }
    }
}

/// Starts this program again in its place, with mounts that nobody else sees and that end with it.
/// Returns where that is not allowed.
#[cfg(target_os = "linux")]
#[expect(
    clippy::disallowed_methods,
    reason = "the same program goes on, with everything that it was started with"
)]
pub(crate) fn restart_with_own_mounts(path: &OsString) -> Result<(), Error> {
    use std::os::unix::process::CommandExt;
    let private = ["--mount", "--propagation", "private", "--"];
    let mut probe = command("unshare".as_ref(), Path::new("/"), path);
    if run_quietly(probe.args(private).arg("true")).is_err() {
        return Ok(());
    }
    let this = std::env::current_exe();
    let this = this.map_err(|source| Error::files("finding", Path::new("xtask"), source))?;
    let mut command = std::process::Command::new("unshare");
    command
        .args(private)
        .arg(this)
        .args(std::env::args_os().skip(1));
    command.arg("--has-own-mounts");
    let error = command.exec();
    Err(Error::start(&command, error))
}

/// Only Linux has them.
#[cfg(not(target_os = "linux"))]
pub(crate) fn restart_with_own_mounts(_path: &OsString) -> Result<(), Error> {
    Ok(())
}
