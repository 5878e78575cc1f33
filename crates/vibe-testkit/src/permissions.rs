//! Files with a certain mode, and what happens to somebody who has no power over it.

use std::fs::Permissions;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::Path;

use crate::done;

/// Gives `path` the permission bits `mode`.
pub fn set_mode(path: &Path, mode: u32) {
    let permissions = Permissions::from_mode(mode);
    done(
        "setting the mode of",
        path,
        std::fs::set_permissions(path, permissions),
    );
}

/// The permission bits of `path`; a link is not followed.
pub fn mode_of(path: &Path) -> u32 {
    done("looking at", path, path.symlink_metadata()).mode() & 0o7777
}

/// Makes the named pipe `path`.
pub fn make_pipe(path: &Path) {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let made = mknodat(CWD, path, FileType::Fifo, Mode::from_raw_mode(0o644), 0);
    done("making the pipe", path, made);
}

/// Runs `body` on a thread that has no power over permissions, even where the tests run as root.
#[cfg(target_os = "linux")]
pub fn as_ordinary_user(body: impl FnOnce() + Send) {
    use rustix::thread::{Uid, set_thread_res_uid};
    std::thread::scope(|scope| {
        scope.spawn(|| {
            if rustix::process::geteuid().is_root() {
                let nobody = Uid::from_raw(NOBODY);
                if let Err(error) = set_thread_res_uid(nobody, nobody, nobody) {
                    panic!("becoming an ordinary user: {error}");
                }
            }
            body();
        });
    });
}

/// Makes `path` the property of whom [`as_ordinary_user`] is. A link is not followed.
#[cfg(target_os = "linux")]
pub fn give_to_ordinary_user(path: &Path) {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let given = std::os::unix::fs::lchown(path, Some(NOBODY), None);
    done("giving away", path, given);
}

/// The user without power that every system has.
#[cfg(target_os = "linux")]
const NOBODY: u32 = 65_534;
