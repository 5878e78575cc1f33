//! What several tests of this crate need.
#![cfg(unix)]

use std::path::Path;

use vibe_testkit::mode_of;

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
