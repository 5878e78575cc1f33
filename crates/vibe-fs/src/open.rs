//! How files are opened: never through a link, never waiting, never an existing one for writing.

use std::fs::{File, Metadata, OpenOptions};
use std::io;
use std::path::Path;

use crate::error::FsError;

/// Opens `path` for reading and looks at what was opened, which need not be a regular file.
pub(crate) fn open_to_read(path: &Path) -> Result<(File, Metadata), FsError> {
    let mut options = File::options();
    options.read(true);
    no_follow(&mut options);
    let file = options.open(path).map_err(FsError::at("open", path))?;
    let metadata = file.metadata().map_err(FsError::at("look at", path))?;
    Ok((file, metadata))
}

/// Creates the file `path`, which must not exist, with mode 0644 or 0755 less the umask.
pub(crate) fn create_new(path: &Path, exec: bool) -> io::Result<File> {
    let mut options = File::options();
    options.write(true).create_new(true);
    no_follow(&mut options);
    set_mode(&mut options, if exec { 0o755 } else { 0o644 });
    options.open(path)
}

/// Opens the lock file `path` for reading and writing and keeps what it holds; creates it.
pub(crate) fn open_lock(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.read(true).write(true).create(true).truncate(false);
    no_follow(&mut options);
    set_mode(&mut options, 0o644);
    options.open(path)
}

#[cfg(unix)]
fn no_follow(options: &mut OpenOptions) {
    use rustix::fs::OFlags;
    use std::os::unix::fs::OpenOptionsExt as _;
    let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
    options.custom_flags(flags.bits().cast_signed());
}

#[cfg(unix)]
fn set_mode(options: &mut OpenOptions, mode: u32) {
    use std::os::unix::fs::OpenOptionsExt as _;
    options.mode(mode);
}

#[cfg(windows)]
fn no_follow(options: &mut OpenOptions) {
    use std::os::windows::fs::OpenOptionsExt as _;
    // FILE_FLAG_OPEN_REPARSE_POINT: what opens is the link itself, and its metadata says so.
    options.custom_flags(0x0020_0000);
}

#[cfg(windows)]
fn set_mode(_options: &mut OpenOptions, _mode: u32) {}
