//! Copies of files whose content needs no look: shared blocks where the file system can, else moved
//! by the kernel. A copy is a new file with a mode of ours.

use std::fs::File;
use std::io;
use std::path::Path;

use crate::copy::{CopyError, keep_if_whole, open_regular};
use crate::error::FsError;
use crate::open::create_new;

/// How a file was cloned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CloneMethod {
    /// The two share blocks until one is written.
    Reflink,
    /// The bytes were copied.
    Copy,
}

/// Makes the new file `target` from the regular file `source`, sharing blocks where the file
/// system can; mode 0644 or 0755 less the umask. A partial `target` is removed.
pub fn clone_file(source: &Path, target: &Path, exec: bool) -> Result<CloneMethod, CopyError> {
    let make = |from: &mut File, to: &mut File, bytes| match reflink_copy::reflink_file(from, to) {
        Ok(()) => Ok(CloneMethod::Reflink),
        Err(_) => copy_whole(from, to, bytes).map(|()| CloneMethod::Copy),
    };
    make_file(source, target, exec, make)
}

/// [`clone_file`] where blocks are known not to be shared: one call less.
pub fn copy_file(source: &Path, target: &Path, exec: bool) -> Result<(), CopyError> {
    make_file(source, target, exec, copy_whole)
}

fn make_file<T>(
    source: &Path,
    target: &Path,
    exec: bool,
    make: impl FnOnce(&mut File, &mut File, u64) -> io::Result<T>,
) -> Result<T, CopyError> {
    let (mut from, stat) = open_regular(source)?;
    let mut to = create_new(target, exec).map_err(FsError::at("create", target))?;
    let made = make(&mut from, &mut to, stat.size)
        .map_err(|error| FsError::new("write", target, error).into());
    keep_if_whole(target, to, made)
}

/// Moves the `bytes` that `from` has to the empty file `to`. Another number is an error: somebody
/// writes to `from`.
fn copy_whole(from: &mut File, to: &mut File, bytes: u64) -> io::Result<()> {
    let moved = moved_by_kernel(from, to, bytes)?;
    let copied = match moved < bytes {
        true => moved + io::copy(from, to)?,
        false => moved,
    };
    match copied == bytes {
        true => Ok(()),
        false => Err(io::Error::other(
            "the file that is copied changed meanwhile",
        )),
    }
}

/// What the kernel moves without our reading it, in as few calls as the size allows, which
/// `io::copy` does not. Nothing, where it cannot between these two.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn moved_by_kernel(from: &File, to: &File, bytes: u64) -> io::Result<u64> {
    use rustix::io::Errno;
    let mut moved = 0;
    while moved < bytes {
        let rest = usize::try_from(bytes - moved).unwrap_or(usize::MAX);
        match rustix::fs::copy_file_range(from, None, to, None, rest) {
            Ok(0) => break,
            Ok(count) => moved += count as u64,
            Err(Errno::INTR) => {}
            // Not between these two file systems, or by this kernel.
            Err(
                Errno::XDEV
                | Errno::NOSYS
                | Errno::INVAL
                | Errno::PERM
                | Errno::OPNOTSUPP
                | Errno::OVERFLOW,
            ) if moved == 0 => break,
            Err(error) => return Err(error.into()),
        }
    }
    Ok(moved)
}

#[cfg(not(any(target_os = "linux", target_os = "android")))]
fn moved_by_kernel(_from: &File, _to: &File, _bytes: u64) -> io::Result<u64> {
    Ok(0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_copy_has_all_bytes_of_files_of_any_size() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        for (index, content) in [vec![], vec![b'x'; 1], vec![b'y'; 300_001]]
            .into_iter()
            .enumerate()
        {
            let (source, target) = (at(&format!("s{index}")), at(&format!("t{index}")));
            fs::write(&source, &content).unwrap();
            copy_file(&source, &target, false).unwrap();
            assert_eq!(fs::read(&target).unwrap(), content);
            assert!(copy_file(&source, &target, false).is_err(), "it is there");
            assert_eq!(fs::read(&target).unwrap(), content);
        }
    }

    #[test]
    fn bytes_that_come_or_go_meanwhile_are_an_error() {
        let directory = tempfile::tempdir().unwrap();
        let at = |name: &str| directory.path().join(name);
        fs::write(at("source"), "12345").unwrap();
        for bytes in [6, 5] {
            let mut from = File::open(at("source")).unwrap();
            let mut to = File::create(at("target")).unwrap();
            let copied = copy_whole(&mut from, &mut to, bytes);
            assert_eq!(copied.is_ok(), bytes == 5, "{bytes}");
        }
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn what_the_kernel_cannot_move_is_read_and_written() {
        // A file of the kernel's own: it says that it is empty, and has bytes.
        let mut from = File::open("/proc/self/status").unwrap();
        let directory = tempfile::tempdir().unwrap();
        let mut to = File::create(directory.path().join("target")).unwrap();
        assert!(copy_whole(&mut from, &mut to, 1).is_err());
        assert!(to.metadata().unwrap().len() > 1);
    }
}
