//! Hard links: a second name for a file, where the file system gives one.

use std::io;
use std::path::Path;

use crate::error::{FsError, shown};

/// Why a file got no second name.
#[derive(Debug, thiserror::Error)]
pub enum LinkError {
    /// The file system, or its rules, allow no link between these two places; a copy may do.
    #[error("could not link {}: no hard link is possible between the two places", shown(&.0.path))]
    Impossible(#[source] FsError),
    /// Anything else, such as a name that is taken.
    #[error(transparent)]
    Fs(FsError),
}

/// Makes `target` another name of the file `source`. A link at `source` is not followed, and
/// whatever is at `target` stays and is an error. Only a failure that says that no link can be
/// made here (another file system, no permission to link, too many links, no support) is
/// [`LinkError::Impossible`].
pub fn hard_link(source: &Path, target: &Path) -> Result<(), LinkError> {
    std::fs::hard_link(source, target).map_err(|error| link_error(target, error))
}

fn link_error(target: &Path, error: io::Error) -> LinkError {
    let impossible = error.raw_os_error().is_some_and(is_impossible);
    let error = FsError::new("link", target, error);
    match impossible {
        true => LinkError::Impossible(error),
        false => LinkError::Fs(error),
    }
}

#[cfg(unix)]
fn is_impossible(raw_code: i32) -> bool {
    use rustix::io::Errno;
    [
        Errno::XDEV,
        Errno::PERM,
        Errno::ACCESS,
        Errno::MLINK,
        Errno::NOTSUP,
        Errno::OPNOTSUPP,
    ]
    .iter()
    .any(|code| code.raw_os_error() == raw_code)
}

/// Invalid function (a file system without links), access denied, another device, not supported,
/// too many links.
#[cfg(not(unix))]
fn is_impossible(raw_code: i32) -> bool {
    matches!(raw_code, 1 | 5 | 17 | 50 | 1_142)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use rustix::io::Errno;
    use std::fs;
    use std::os::unix::fs::{MetadataExt as _, symlink};

    #[test]
    fn a_link_is_another_name_of_the_same_file() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("source"), "x").unwrap();
        hard_link(&at("source"), &at("target")).unwrap();
        let inode = |name: &str| at(name).symlink_metadata().unwrap().ino();
        assert_eq!(inode("source"), inode("target"));
    }

    #[test]
    fn a_name_that_is_taken_stays_and_is_no_reason_to_copy() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("source"), "x").unwrap();
        fs::write(at("file"), "kept").unwrap();
        symlink("absent", at("link")).unwrap();
        for name in ["file", "link"] {
            match hard_link(&at("source"), &at(name)) {
                Err(LinkError::Fs(error)) => {
                    assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
                    assert_eq!(error.path, at(name));
                }
                other => panic!("{name}: {other:?}"),
            }
        }
        assert_eq!(fs::read(at("file")).unwrap(), b"kept");
        let absent = hard_link(&at("absent"), &at("new")).unwrap_err();
        assert!(matches!(absent, LinkError::Fs(error) if error.is_not_found()));
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn another_file_system_makes_a_link_impossible() {
        let directory = tempfile::tempdir().unwrap();
        let target = directory.path().join("target");
        let error = hard_link(Path::new("/proc/self/status"), &target).unwrap_err();
        assert!(matches!(error, LinkError::Impossible(_)), "{error:?}");
        assert!(
            error
                .to_string()
                .contains("target: no hard link is possible")
        );
    }

    #[test]
    fn only_what_says_that_no_link_can_be_made_is_a_reason_to_copy() {
        let impossible = |code: Errno| {
            let error = io::Error::from_raw_os_error(code.raw_os_error());
            matches!(link_error(Path::new("x"), error), LinkError::Impossible(_))
        };
        for code in [
            Errno::XDEV,
            Errno::PERM,
            Errno::ACCESS,
            Errno::MLINK,
            Errno::NOTSUP,
            Errno::OPNOTSUPP,
        ] {
            assert!(impossible(code), "{code:?}");
        }
        for code in [
            Errno::EXIST,
            Errno::NOENT,
            Errno::NOSPC,
            Errno::IO,
            Errno::NOSYS,
            Errno::ROFS,
            Errno::DQUOT,
        ] {
            assert!(!impossible(code), "{code:?}");
        }
    }
}
