//! The content identity of a package tree, `tree1`.
//!
//! A tree is its files: path, exec bit and content digest, in byte order of the path. Its identity
//! is a SHA-256 over one line a file, each with the byte length of its path before the path, so
//! that no two different trees give the same bytes to hash. Directories have no row of their own.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::fmt;
use std::str::FromStr;
use std::sync::OnceLock;

use crate::digest::{DigestError, Sha256Digest, Sha256Hasher};
use crate::relative_path::{RelPath, folded};
use crate::string_serde::string_serde;

/// One file of a tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TreeRow {
    /// Where it lies.
    pub path: RelPath,
    /// What it holds.
    pub digest: Sha256Digest,
    /// Whether it may be executed.
    pub exec: bool,
}

/// The files of a package: sorted by path, no two of them the same file on any system.
#[derive(Debug, Clone, Default)]
pub struct Tree {
    rows: Vec<TreeRow>,
    /// The identity, once it was asked for.
    id: OnceLock<TreeId>,
}

impl PartialEq for Tree {
    fn eq(&self, other: &Self) -> bool {
        self.rows == other.rows
    }
}

impl Eq for Tree {}

/// Why rows are no tree.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum TreeError {
    /// Two paths that some file system takes for one, or a file where another needs a directory.
    #[error("`{first}` and `{second}` are the same name on systems that fold case or accents")]
    Collision {
        /// The path that comes first in byte order.
        first: RelPath,
        /// The other.
        second: RelPath,
    },
    /// A line that is no row.
    #[error("line {line} is not a row of a tree")]
    Row {
        /// Counted from 1.
        line: usize,
    },
    /// Rows out of order, or one path twice.
    #[error("line {line}: `{path}` is not in byte order")]
    Order {
        /// Counted from 1.
        line: usize,
        /// The path on that line.
        path: RelPath,
    },
}

impl Tree {
    /// Sorts `rows` and checks that no two of them collide.
    pub fn new(mut rows: Vec<TreeRow>) -> Result<Self, TreeError> {
        rows.sort_by(|a, b| a.path.cmp(&b.path));
        check_collisions(&rows)?;
        Ok(Self::of_checked(rows))
    }

    fn of_checked(rows: Vec<TreeRow>) -> Self {
        Self {
            rows,
            id: OnceLock::new(),
        }
    }

    /// The rows, sorted by path.
    pub fn rows(&self) -> &[TreeRow] {
        &self.rows
    }

    /// The row of `path`.
    pub fn get(&self, path: &RelPath) -> Option<&TreeRow> {
        self.rows
            .binary_search_by(|row| row.path.cmp(path))
            .ok()
            .map(|index| &self.rows[index])
    }

    /// Whether a file of this tree lies below `path`.
    pub fn has_directory(&self, path: &RelPath) -> bool {
        let from = self.rows.partition_point(|row| row.path <= *path);
        self.rows[from..]
            .iter()
            .take_while(|row| row.path.as_str().starts_with(path.as_str()))
            .any(|row| row.path.starts_with(path))
    }

    /// The identity.
    pub fn id(&self) -> TreeId {
        *self.id.get_or_init(|| {
            let mut hasher = Sha256Hasher::new();
            for row in &self.rows {
                hasher.update(row_line(row).as_bytes());
            }
            TreeId(hasher.finish())
        })
    }

    /// The rows as text, the very bytes that [`Tree::id`] hashes: the content of a `.tree` file.
    pub fn to_text(&self) -> String {
        self.rows.iter().map(row_line).collect()
    }

    /// Reads what [`Tree::to_text`] writes.
    pub fn from_text(text: &str) -> Result<Self, TreeError> {
        let mut rows: Vec<TreeRow> = Vec::new();
        for (index, line) in text.split_terminator('\n').enumerate() {
            let line_number = index + 1;
            let row = parse_line(line).ok_or(TreeError::Row { line: line_number })?;
            if rows.last().is_some_and(|last| last.path >= row.path) {
                return Err(TreeError::Order {
                    line: line_number,
                    path: row.path,
                });
            }
            rows.push(row);
        }
        if !text.is_empty() && !text.ends_with('\n') {
            return Err(TreeError::Row { line: rows.len() });
        }
        check_collisions(&rows)?;
        Ok(Self::of_checked(rows))
    }
}

fn row_line(row: &TreeRow) -> String {
    let kind = if row.exec { "exec" } else { "file" };
    let path = row.path.as_str();
    format!("{kind} {} {path} {}\n", path.len(), row.digest)
}

fn parse_line(line: &str) -> Option<TreeRow> {
    let (kind, rest) = line.split_once(' ')?;
    let exec = match kind {
        "file" => false,
        "exec" => true,
        _ => return None,
    };
    let (path, digest) = rest.split_once(' ')?.1.rsplit_once(' ')?;
    let row = TreeRow {
        path: RelPath::new(path).ok()?,
        digest: digest.parse().ok()?,
        exec,
    };
    // One spelling a row: a length with a sign, a zero in front or a wrong value is refused here.
    (row_line(&row).strip_suffix('\n') == Some(line)).then_some(row)
}

/// Every path and every directory on the way to it has one key; a key met again must be the same
/// directory, spelled the same.
fn check_collisions(rows: &[TreeRow]) -> Result<(), TreeError> {
    let mut seen: HashMap<String, Met<'_>> = HashMap::with_capacity(rows.len());
    let mut before = "";
    for row in rows {
        let path = row.path.as_str();
        let ends = path.match_indices('/').map(|(at, _)| at);
        for end in ends.chain([path.len()]) {
            let entry = &path[..end];
            let is_directory = end < path.len();
            // Rows are sorted, so most directories were met with the row before.
            if is_directory && is_directory_of(entry, before) {
                continue;
            }
            let met = Met {
                path: entry,
                is_directory,
                first: &row.path,
            };
            match seen.entry(folded(entry)) {
                Entry::Vacant(vacant) => drop(vacant.insert(met)),
                Entry::Occupied(known) if known.get().is_same_directory(&met) => {}
                Entry::Occupied(known) => {
                    return Err(TreeError::Collision {
                        first: known.get().first.clone(),
                        second: row.path.clone(),
                    });
                }
            }
        }
        before = path;
    }
    Ok(())
}

fn is_directory_of(directory: &str, path: &str) -> bool {
    path.strip_prefix(directory)
        .is_some_and(|rest| rest.starts_with('/'))
}

/// A path or a directory that was met, and the row with which it was.
struct Met<'a> {
    path: &'a str,
    is_directory: bool,
    first: &'a RelPath,
}

impl Met<'_> {
    fn is_same_directory(&self, other: &Met<'_>) -> bool {
        self.is_directory && other.is_directory && self.path == other.path
    }
}

/// The identity of a tree, written `tree1:<64 hex>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TreeId(Sha256Digest);

/// A text that is no tree identity.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{0}` is not a tree identity: `tree1:` and 64 lower-case hex digits are expected")]
pub struct TreeIdError(String);

impl FromStr for TreeId {
    type Err = TreeIdError;

    fn from_str(text: &str) -> Result<Self, TreeIdError> {
        text.strip_prefix("tree1:")
            .and_then(|digest| -> Option<Sha256Digest> {
                let parsed: Result<_, DigestError> = digest.parse();
                parsed.ok()
            })
            .map(Self)
            .ok_or_else(|| TreeIdError(crate::text::shown(text)))
    }
}

impl fmt::Display for TreeId {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "tree1:{}", self.0)
    }
}
string_serde!(TreeId);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn row(path: &str, content: &str, exec: bool) -> TreeRow {
        TreeRow {
            path: RelPath::new(path).unwrap(),
            digest: Sha256Digest::of(content.as_bytes()),
            exec,
        }
    }

    fn tree(rows: &[(&str, &str, bool)]) -> Tree {
        Tree::new(rows.iter().map(|(p, c, e)| row(p, c, *e)).collect()).unwrap()
    }

    #[test]
    fn identity_is_the_documented_hash() {
        let tree = tree(&[("b", "2", true), ("a/c", "1", false)]);
        let one = Sha256Digest::of(b"1");
        let two = Sha256Digest::of(b"2");
        let text = format!("file 3 a/c {one}\nexec 1 b {two}\n");
        assert_eq!(tree.to_text(), text);
        assert_eq!(
            tree.id().to_string(),
            format!("tree1:{}", Sha256Digest::of(text.as_bytes()))
        );
        assert_eq!(
            Tree::default().id().to_string(),
            format!("tree1:{}", Sha256Digest::of(b""))
        );
        assert_eq!(tree.id().to_string().parse::<TreeId>().unwrap(), tree.id());
    }

    #[test]
    fn near_misses_have_other_identities() {
        let pairs = [
            (tree(&[("a", "b", false)]), tree(&[("a", "b", true)])),
            (tree(&[]), tree(&[("a", "", false)])),
            (tree(&[("ab", "c", false)]), tree(&[("a", "bc", false)])),
            (tree(&[("a/b", "", false)]), tree(&[("a", "b", false)])),
            (
                tree(&[("a", "1", false), ("b", "2", false)]),
                tree(&[("a", "2", false), ("b", "1", false)]),
            ),
        ];
        for (one, other) in pairs {
            assert_ne!(one.id(), other.id());
        }
    }

    #[test]
    fn identity_texts_of_another_shape_are_refused() {
        let hex = Sha256Digest::of(b"").to_string();
        for text in [
            hex.clone(),
            format!("tree2:{hex}"),
            format!("tree1:{}", hex.to_uppercase()),
            format!("tree1:{}", &hex[1..]),
        ] {
            assert!(text.parse::<TreeId>().is_err(), "{text}");
        }
    }

    #[test]
    fn colliding_names_are_refused_naming_both() {
        for (one, other) in [
            ("README.md", "readme.md"),
            ("Docs/a.md", "docs"),
            ("docs", "docs/a"),
            ("Docs/a", "docs/b"),
            ("x/e\u{301}", "x/é"),
            ("a", "a"),
        ] {
            let error = Tree::new(vec![row(one, "", false), row(other, "", false)]).unwrap_err();
            let text = error.to_string();
            assert!(text.contains(one) && text.contains(other), "{text}");
        }
        assert!(
            Tree::new(vec![
                row("a/b", "", false),
                row("a/c", "", false),
                row("ab", "", false)
            ])
            .is_ok()
        );
    }

    #[test]
    fn rows_are_found_and_directories_known() {
        let tree = tree(&[("a/b", "", false), ("a-x", "", false), ("c", "1", false)]);
        let path = |text| RelPath::new(text).unwrap();
        assert_eq!(tree.get(&path("c")).unwrap().digest, Sha256Digest::of(b"1"));
        assert_eq!(tree.get(&path("d")), None);
        assert!(tree.has_directory(&path("a")));
        assert!(!tree.has_directory(&path("c")));
        assert!(!tree.has_directory(&path("a/b")));
        let order: Vec<&str> = tree.rows().iter().map(|r| r.path.as_str()).collect();
        assert_eq!(order, ["a-x", "a/b", "c"]);
    }

    #[test]
    fn tree_text_is_strict() {
        let digest = Sha256Digest::of(b"");
        let good = format!("file 1 a {digest}\nfile 3 b c {digest}\n");
        assert_eq!(Tree::from_text(&good).unwrap().to_text(), good);
        assert_eq!(Tree::from_text("").unwrap(), Tree::default());
        for bad in [
            format!("file 1 a {digest}"),
            format!("file 2 a {digest}\n"),
            format!("file 01 a {digest}\n"),
            format!("file +1 a {digest}\n"),
            format!("link 1 a {digest}\n"),
            format!("file 2 .. {digest}\n"),
            format!("file 1 a {digest}\r\n"),
            format!("file 1 a {}\n", digest.to_string().to_uppercase()),
            "\n".to_owned(),
        ] {
            assert_eq!(
                Tree::from_text(&bad),
                Err(TreeError::Row { line: 1 }),
                "{bad:?}"
            );
        }
        let twice = format!("file 1 a {digest}\nfile 1 a {digest}\n");
        assert!(matches!(
            Tree::from_text(&twice),
            Err(TreeError::Order { line: 2, .. })
        ));
        let unsorted = format!("file 1 b {digest}\nfile 1 a {digest}\n");
        assert!(matches!(
            Tree::from_text(&unsorted),
            Err(TreeError::Order { line: 2, .. })
        ));
        let colliding = format!("file 1 A {digest}\nfile 1 a {digest}\n");
        assert!(matches!(
            Tree::from_text(&colliding),
            Err(TreeError::Collision { .. })
        ));
    }

    fn any_tree() -> impl Strategy<Value = Vec<(String, String, bool)>> {
        let path = "[a-c]{1,2}(/[a-c ]{1,2}[a-c]){0,2}";
        proptest::collection::vec((path, "[01]{0,2}", any::<bool>()), 0..5)
    }

    proptest! {
        #[test]
        fn equal_identities_mean_equal_trees(one in any_tree(), other in any_tree()) {
            let build = |rows: Vec<(String, String, bool)>| {
                Tree::new(rows.iter().map(|(p, c, e)| row(p, c, *e)).collect())
            };
            if let (Ok(one), Ok(other)) = (build(one), build(other)) {
                prop_assert_eq!(one == other, one.id() == other.id());
                prop_assert_eq!(&Tree::from_text(&one.to_text()).unwrap(), &one);
            }
        }
    }
}
