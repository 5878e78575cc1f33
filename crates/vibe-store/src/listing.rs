//! The listing of a stored tree: the rows of `tree1`, each with the size of its file.
//!
//! ```text
//! vibe store listing 1
//! boot 0b7a5f0e-...             the boot under which it was written, or -
//! file 9 README.md <64 hex> 12  a row of the tree and the bytes of the file
//! ```

use vibe_core::tree::TreeError;
use vibe_core::{Tree, TreeId};

const FIRST_LINE: &str = "vibe store listing 1";
const BOOT: &str = "boot ";
const NO_BOOT: &str = "-";
/// Characters of the name of a boot: a UUID has 36.
const BOOT_CHARACTERS: usize = 64;

/// A listing that was read, or is to be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listing {
    /// The boot under which the tree was written, where it has a name.
    pub(crate) boot: Option<String>,
    pub(crate) tree: Tree,
    /// The bytes of each file, in the order of the rows.
    pub(crate) sizes: Vec<u64>,
}

/// Why a listing cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ListingError {
    /// There is none.
    #[error("is missing")]
    Missing,
    /// It is no regular file, or larger than any listing.
    #[error("is no regular file of a fitting size")]
    NotAFile,
    /// It does not begin as a listing does.
    #[error("does not begin as a listing does")]
    Header,
    /// A line without a size, or with one that is spelled otherwise than we do.
    #[error("has no size on line {line}")]
    Size {
        /// Counted from 1.
        line: usize,
    },
    /// Its rows are no tree.
    #[error("is no tree: {0}")]
    Tree(#[from] TreeError),
    /// Its rows are another tree.
    #[error("is that of another tree")]
    OtherTree,
}

impl Listing {
    pub(crate) fn to_text(&self) -> String {
        let boot = self.boot.as_deref().unwrap_or(NO_BOOT);
        let mut text = format!("{FIRST_LINE}\n{BOOT}{boot}\n");
        let rows = self.tree.to_text();
        for (row, size) in rows.lines().zip(&self.sizes) {
            text.push_str(&format!("{row} {size}\n"));
        }
        text
    }

    /// The bytes of all files, if its sizes are right.
    pub(crate) fn bytes(&self) -> u64 {
        self.sizes
            .iter()
            .fold(0, |sum, &size| sum.saturating_add(size))
    }

    /// Reads what [`Listing::to_text`] writes for `expected`.
    pub(crate) fn from_bytes(bytes: &[u8], expected: TreeId) -> Result<Self, ListingError> {
        let text = std::str::from_utf8(bytes).map_err(|_| ListingError::Header)?;
        let (boot, rows) = split_header(text).ok_or(ListingError::Header)?;
        let mut sizes = Vec::new();
        let mut tree_text = String::with_capacity(rows.len());
        for (index, line) in rows.split_inclusive('\n').enumerate() {
            let missing = ListingError::Size { line: index + 3 };
            let (row, size) = split_size(line).ok_or(missing)?;
            sizes.push(size);
            tree_text.push_str(row);
            tree_text.push('\n');
        }
        let tree = Tree::from_text(&tree_text)?;
        if tree.id() != expected {
            return Err(ListingError::OtherTree);
        }
        Ok(Self { boot, tree, sizes })
    }
}

fn split_header(text: &str) -> Option<(Option<String>, &str)> {
    let rest = text.strip_prefix(FIRST_LINE)?.strip_prefix('\n')?;
    let (boot, rows) = rest.strip_prefix(BOOT)?.split_once('\n')?;
    match boot {
        NO_BOOT => Some((None, rows)),
        name if is_boot(name) => Some((Some(name.to_owned()), rows)),
        _ => None,
    }
}

/// Whether `name` can be written into a listing as the name of a boot.
pub(crate) fn is_boot(name: &str) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-';
    !name.is_empty() && name.len() <= BOOT_CHARACTERS && name != NO_BOOT && name.chars().all(plain)
}

fn split_size(line: &str) -> Option<(&str, u64)> {
    let (row, size) = line.strip_suffix('\n')?.rsplit_once(' ')?;
    let bytes: u64 = size.parse().ok()?;
    (bytes.to_string() == size).then_some((row, bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use vibe_core::{RelPath, Sha256Digest, TreeRow};

    fn listing() -> Listing {
        let row = |path: &str, exec| TreeRow {
            path: RelPath::new(path).unwrap(),
            digest: Sha256Digest::of(path.as_bytes()),
            exec,
        };
        Listing {
            boot: Some("0b7a5f0e-1".to_owned()),
            tree: Tree::new(vec![row("a b 7", false), row("d/run", true)]).unwrap(),
            sizes: vec![5, 0],
        }
    }

    #[test]
    fn a_listing_is_the_documented_text() {
        let listing = listing();
        let digest = |text: &str| Sha256Digest::of(text.as_bytes());
        let text = format!(
            "vibe store listing 1\nboot 0b7a5f0e-1\nfile 5 a b 7 {} 5\nexec 5 d/run {} 0\n",
            digest("a b 7"),
            digest("d/run")
        );
        assert_eq!(listing.to_text(), text);
        for boot in [listing.boot.clone(), None] {
            let listing = Listing {
                boot,
                ..listing.clone()
            };
            let id = listing.tree.id();
            let read = Listing::from_bytes(listing.to_text().as_bytes(), id).unwrap();
            assert_eq!(read, listing);
        }
    }

    #[test]
    fn an_empty_tree_has_a_listing() {
        let empty = Listing {
            boot: None,
            tree: Tree::default(),
            sizes: Vec::new(),
        };
        let read = Listing::from_bytes(empty.to_text().as_bytes(), empty.tree.id());
        assert_eq!(read.unwrap(), empty);
    }

    #[test]
    fn sizes_that_are_not_true_do_no_harm() {
        let listing = Listing {
            sizes: vec![u64::MAX, u64::MAX],
            ..listing()
        };
        assert_eq!(listing.bytes(), u64::MAX);
    }

    #[test]
    fn every_other_spelling_is_refused() {
        let good = listing().to_text();
        let id = listing().tree.id();
        let check = |text: String, expected: ListingError| {
            assert_eq!(
                Listing::from_bytes(text.as_bytes(), id),
                Err(expected),
                "{text:?}"
            );
        };
        for text in [
            String::new(),
            good.replacen("listing 1", "listing 2", 1),
            good.replacen("boot ", "boot  ", 1),
            good.replacen("0b7a5f0e-1", "", 1),
            good.replacen("0b7a5f0e-1", &"x".repeat(65), 1),
            good.replacen('\n', "\r\n", 1),
            FIRST_LINE.to_owned(),
        ] {
            check(text, ListingError::Header);
        }
        let size = |line| ListingError::Size { line };
        check(good.replacen(" 5\n", " 05\n", 1), size(3));
        check(good.replacen(" 5\n", " +5\n", 1), size(3));
        check(good.replacen(" 5\n", " 5\n\n", 1), size(4));
        check(good.trim_end().to_owned(), size(4));
        check(
            good.replacen("file 5", "file 6", 1),
            ListingError::Tree(TreeError::Row { line: 1 }),
        );
        check(good.replacen("exec ", "file ", 1), ListingError::OtherTree);
        let shorter: String = good.split_inclusive('\n').take(3).collect();
        check(shorter, ListingError::OtherTree);
        let not_text = Listing::from_bytes(b"\xff", id);
        assert_eq!(not_text, Err(ListingError::Header));
    }
}
