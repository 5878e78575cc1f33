//! What several tests of this crate need.
#![cfg(unix)]

use std::fs::{Permissions, set_permissions};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

pub(crate) fn make_pipe(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o644), 0).unwrap();
}

pub(crate) fn set_mode(path: &Path, mode: u32) {
    set_permissions(path, Permissions::from_mode(mode)).unwrap();
}

pub(crate) fn mode_of(path: &Path) -> u32 {
    path.symlink_metadata().unwrap().mode() & 0o7777
}

/// The mode that a file created with `mode` gets here, whatever the umask of this process is.
pub(crate) fn mode_under_umask(directory: &Path, mode: u32) -> u32 {
    use std::os::unix::fs::OpenOptionsExt as _;
    let probe = directory.join(format!("probe-{mode:o}"));
    let mut options = std::fs::File::options();
    options.write(true).create_new(true).mode(mode);
    options.open(&probe).unwrap();
    let found = mode_of(&probe);
    std::fs::remove_file(probe).unwrap();
    found
}

/// Runs `body` on a thread that has no power over permissions, even where the tests run as root.
#[cfg(target_os = "linux")]
pub(crate) fn as_ordinary_user(body: impl FnOnce() + Send) {
    use rustix::thread::{Uid, set_thread_res_uid};
    std::thread::scope(|scope| {
        scope.spawn(|| {
            if rustix::process::geteuid().is_root() {
                let nobody = Uid::from_raw(65_534);
                set_thread_res_uid(nobody, nobody, nobody).unwrap();
            }
            body();
        });
    });
}
