//! Facts and services of the system: path lengths, durable directories, the boot.

use std::path::{Path, PathBuf};

use vibe_core::RelPath;
use vibe_core::hook::HostOs;

use crate::error::FsError;

/// The longest full path: bytes on Unix (`PATH_MAX` less its NUL), UTF-16 units on Windows.
pub fn path_limit(os: HostOs) -> usize {
    match os {
        HostOs::Unix => 4_095,
        HostOs::Windows => 32_767,
    }
}

/// Whether the full path of `relative` below `root` is short enough for `os`.
pub fn fits(os: HostOs, root: &Path, relative: &RelPath) -> bool {
    let full = relative.under(root);
    let length = match os {
        HostOs::Unix => full.as_os_str().len(),
        HostOs::Windows => full.to_string_lossy().encode_utf16().count(),
    };
    length <= path_limit(os)
}

/// What the kernel calls this boot; `None` where it does not say (anywhere but Linux).
pub fn boot_id() -> Option<String> {
    let text = std::fs::read_to_string("/proc/sys/kernel/random/boot_id").ok()?;
    Some(text.trim_end().to_owned())
}

/// Whether this process may make files in the directory `path`, as far as permissions and the mount
/// tell; nothing is written to find out. On Windows always.
#[cfg(unix)]
pub fn may_write(path: &Path) -> bool {
    use rustix::fs::Access;
    rustix::fs::access(path, Access::WRITE_OK | Access::EXEC_OK).is_ok()
}

/// Whether this process may make files in the directory `path`, as far as permissions and the mount
/// tell; nothing is written to find out. On Windows always.
#[cfg(not(unix))]
pub fn may_write(_path: &Path) -> bool {
    true
}

/// Makes now the time of the last change of `path`, and of its last reading; a link is not followed.
pub fn touch(path: &Path) -> Result<(), FsError> {
    let now = filetime::FileTime::now();
    filetime::set_symlink_file_times(path, now, now).map_err(FsError::at("touch", path))
}

/// Makes the entries of the directory `path` durable. Windows has no such call and needs none.
pub fn sync_directory(path: &Path) -> Result<(), FsError> {
    if cfg!(windows) {
        return Ok(());
    }
    std::fs::File::open(path)
        .and_then(|directory| directory.sync_all())
        .map_err(FsError::at("sync", path))
}

/// Creates the directory `path`, mode 0755 less the umask; its parent must exist and it must not.
pub fn create_directory(path: &Path) -> Result<(), FsError> {
    ordinary_builder()
        .create(path)
        .map_err(FsError::at("create", path))
}

/// Creates the directory `path` and every missing one above it, mode 0755 less the umask. One that
/// is there is fine.
pub fn create_directory_all(path: &Path) -> Result<(), FsError> {
    ordinary_builder()
        .recursive(true)
        .create(path)
        .map_err(FsError::at("create", path))
}

#[cfg(unix)]
fn ordinary_builder() -> std::fs::DirBuilder {
    use std::os::unix::fs::DirBuilderExt as _;
    let mut builder = std::fs::DirBuilder::new();
    builder.mode(0o755);
    builder
}

#[cfg(not(unix))]
fn ordinary_builder() -> std::fs::DirBuilder {
    std::fs::DirBuilder::new()
}

/// The absolute path of the directory `path` without links, on Windows in the short form that
/// other programs understand.
pub fn canonical_directory(path: &Path) -> Result<PathBuf, FsError> {
    let fail = FsError::at("find", path);
    let full = path.canonicalize().map_err(&fail)?;
    if !full.is_dir() {
        return Err(fail(std::io::ErrorKind::NotADirectory.into()));
    }
    Ok(match full.to_str() {
        Some(text) if cfg!(windows) => PathBuf::from(strip_verbatim(text)),
        _ => full,
    })
}

/// `\\?\C:\x` as `C:\x` and `\\?\UNC\server\share` as `\\server\share`; anything else as it is.
pub fn strip_verbatim(text: &str) -> String {
    let Some(rest) = text.strip_prefix(r"\\?\") else {
        return text.to_owned();
    };
    if let Some(share) = rest.strip_prefix(r"UNC\") {
        return format!(r"\\{share}");
    }
    match rest.as_bytes() {
        [drive, b':', b'\\', ..] if drive.is_ascii_alphabetic() => rest.to_owned(),
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relative(text: &str) -> RelPath {
        RelPath::new(text).unwrap()
    }

    #[test]
    fn paths_fit_up_to_the_limit_of_the_system() {
        for (os, limit) in [(HostOs::Unix, 4_095), (HostOs::Windows, 32_767)] {
            assert_eq!(path_limit(os), limit);
            let root = |length: usize| PathBuf::from(format!("/{}", "r".repeat(length - 1)));
            assert!(fits(os, &root(limit - 2), &relative("a")));
            assert!(!fits(os, &root(limit - 1), &relative("a")));
        }
    }

    #[test]
    fn windows_counts_utf16_units_and_unix_bytes() {
        let root = PathBuf::from(format!("/{}", "é".repeat(2_045)));
        assert!(fits(HostOs::Unix, &root, &relative("ab")));
        assert!(fits(HostOs::Unix, &root, &relative("abc")));
        assert!(!fits(HostOs::Unix, &root, &relative("abcd")));
        assert!(fits(HostOs::Windows, &root, &relative("abcd")));
    }

    #[test]
    fn verbatim_prefixes_are_stripped_where_that_is_the_same_place() {
        for (text, stripped) in [
            (r"\\?\C:\a\b", r"C:\a\b"),
            (r"\\?\UNC\server\share\x", r"\\server\share\x"),
            (r"\\?\Volume{1}\x", r"\\?\Volume{1}\x"),
            (r"\\?\C:", r"\\?\C:"),
            (r"\\?\1:\x", r"\\?\1:\x"),
            (r"C:\a", r"C:\a"),
            ("/a", "/a"),
        ] {
            assert_eq!(strip_verbatim(text), stripped);
        }
    }

    #[test]
    fn a_directory_is_found_without_its_links() {
        let directory = tempfile::tempdir().unwrap();
        let real = directory.path().canonicalize().unwrap();
        create_directory(&real.join("a")).unwrap();
        let found = canonical_directory(&real.join("a/../a")).unwrap();
        assert_eq!(found, real.join("a"));
        std::fs::write(real.join("file"), "").unwrap();
        assert!(canonical_directory(&real.join("file")).is_err());
        let absent = canonical_directory(&real.join("absent")).unwrap_err();
        assert!(absent.is_not_found());
    }

    #[cfg(unix)]
    #[test]
    fn directories_get_an_ordinary_mode_and_can_be_synced() {
        use crate::testing::mode_under_umask;
        use vibe_testkit::mode_of;
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("new");
        create_directory(&path).unwrap();
        assert_eq!(mode_of(&path), mode_under_umask(directory.path(), 0o755));
        assert!(create_directory(&path).is_err());
        sync_directory(&path).unwrap();
        assert!(sync_directory(&directory.path().join("absent")).is_err());
    }

    #[test]
    fn touching_changes_the_time_of_the_entry_itself() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        let before = std::time::SystemTime::now() - std::time::Duration::from_hours(24);
        let mtime = |name: &str| at(name).symlink_metadata().unwrap().modified().unwrap();
        std::fs::write(at("file"), "").unwrap();
        let file = std::fs::File::options().write(true).open(at("file"));
        file.unwrap().set_modified(before).unwrap();
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("file", at("link")).unwrap();
            touch(&at("link")).unwrap();
            assert_eq!(mtime("file"), before);
        }
        touch(&at("file")).unwrap();
        assert!(mtime("file") > before + std::time::Duration::from_hours(23));
        assert!(touch(&at("absent")).unwrap_err().is_not_found());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn a_directory_that_may_be_written_is_told_from_one_that_may_not() {
        vibe_testkit::as_ordinary_user(|| {
            let directory = tempfile::tempdir().unwrap();
            assert!(may_write(directory.path()));
            vibe_testkit::set_mode(directory.path(), 0o555);
            assert!(!may_write(directory.path()));
            assert!(!may_write(&directory.path().join("absent")));
        });
    }

    #[test]
    fn a_boot_has_one_name() {
        assert_eq!(boot_id(), boot_id());
        if cfg!(target_os = "linux") {
            assert_eq!(boot_id().unwrap().len(), 36);
        }
    }
}
