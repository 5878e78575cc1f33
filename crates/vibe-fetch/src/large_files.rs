//! Files that git LFS keeps elsewhere: what a commit has of them is a small text that names them.

use vibe_core::RelPath;

use crate::note::ListingNote;

/// Bytes that a pointer has fewer than. Source: git LFS, "Git LFS Specification".
const POINTER_BYTES: usize = 1_024;
/// How a pointer begins, also one of a very early version. Source: as above.
const BEGINNINGS: [&str; 2] = [
    "version https://git-lfs.github.com/spec/",
    "version https://hawser.github.com/spec/",
];

/// The first bytes of a file, enough of them to tell a pointer.
#[derive(Debug, Default)]
pub(crate) struct Head(Vec<u8>);

impl Head {
    /// Takes the next bytes of the file.
    pub(crate) fn take(&mut self, bytes: &[u8]) {
        let missing = POINTER_BYTES - self.0.len();
        self.0.extend_from_slice(&bytes[..bytes.len().min(missing)]);
    }

    /// What somebody should know of the file at `path`.
    pub(crate) fn note(&self, path: &RelPath) -> Option<ListingNote> {
        pointed_bytes(&self.0).map(|bytes| ListingNote::LargeFilePointer {
            path: path.clone(),
            bytes,
        })
    }
}

/// The size of the content that `file` points to, if it is a pointer.
fn pointed_bytes(file: &[u8]) -> Option<u64> {
    let is_pointer = file.len() < POINTER_BYTES
        && BEGINNINGS
            .iter()
            .any(|beginning| file.starts_with(beginning.as_bytes()));
    let text = std::str::from_utf8(file).ok().filter(|_| is_pointer)?;
    let value = |key: &str| text.lines().find_map(|line| line.strip_prefix(key));
    value("oid ")?;
    value("size ")?.trim().parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pointer_is_told_from_what_only_looks_like_one() {
        let pointer = |version: &str, rest: &str| {
            let mut head = Head::default();
            for byte in format!("version {version}\n{rest}").as_bytes() {
                head.take(&[*byte]);
            }
            pointed_bytes(&head.0)
        };
        let spec = "https://git-lfs.github.com/spec/v1";
        let old = "https://hawser.github.com/spec/v1";
        let oid = "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n";
        assert_eq!(pointer(spec, &format!("{oid}size 12345\n")), Some(12_345));
        assert_eq!(pointer(spec, &format!("{oid}size 12345\r\n")), Some(12_345));
        assert_eq!(pointer(old, &format!("ext-0-x y\n{oid}size 0\n")), Some(0));
        assert_eq!(pointer(spec, oid), None);
        assert_eq!(pointer(spec, "size 12345\n"), None);
        assert_eq!(pointer(spec, &format!("{oid}size many\n")), None);
        assert_eq!(pointer("https://host/x", &format!("{oid}size 1\n")), None);
        let long = format!("{oid}size 12345\n{}", "x".repeat(POINTER_BYTES));
        assert_eq!(pointer(spec, &long), None);
    }
}
