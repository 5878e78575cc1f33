//! `.vibe-slot.toml`: what we placed in a slot, file by file.
//!
//! A record can come from anywhere (it is committed), so it is held to the rules of a package: its
//! rows name places inside the slot, sorted, once each, never the record itself, and they hash to
//! the tree it states. A record that breaks a rule is an error, never a licence to delete.

use std::cmp::Ordering;

use serde::Deserialize;
use toml::Spanned;

use crate::formats::diagnostic::Diagnostic;
use crate::formats::typed::{self, FileTable};
use crate::identifier::PackageId;
use crate::tree::{Tree, TreeError, TreeId};
use crate::version::Version;

/// The schema number written.
pub const RECORD_SCHEMA: u64 = 2;

/// A slot record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SlotRecord {
    /// `package`.
    pub package: PackageId,
    /// `version`.
    pub version: Version,
    /// The `[[file]]` rows, as published; `tree` is their identity.
    pub tree: Tree,
}

/// Why a text is no slot record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RecordError {
    /// It breaks a rule.
    #[error("the slot record is malformed")]
    Malformed(#[from] Diagnostic),
    /// Its schema is newer than [`RECORD_SCHEMA`]; nothing else of it was looked at.
    #[error("the slot record was made by a newer vibe: it has schema {found}")]
    Newer {
        /// Its schema.
        found: u64,
    },
    /// Its schema is older than [`RECORD_SCHEMA`]; nothing else of it was looked at.
    #[error("the slot record was made by an older vibe: it has schema {found}")]
    Older {
        /// Its schema.
        found: u64,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordTable {
    package: PackageId,
    #[serde(deserialize_with = "typed::version")]
    version: Version,
    tree: Spanned<TreeId>,
    #[serde(default)]
    file: Vec<FileTable>,
}

impl SlotRecord {
    /// Reads the text of a `.vibe-slot.toml`.
    ///
    /// # Errors
    /// Another schema than [`RECORD_SCHEMA`], or the first rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, RecordError> {
        let (found, table) = typed::document(text, "schema")?;
        match found.cmp(&RECORD_SCHEMA) {
            Ordering::Greater => return Err(RecordError::Newer { found }),
            Ordering::Less => return Err(RecordError::Older { found }),
            Ordering::Equal => {}
        }
        let table: RecordTable = typed::read(text, table)?;
        Ok(Self {
            tree: checked_tree(text, &table)?,
            package: table.package,
            version: table.version,
        })
    }

    /// The text of the record, the same bytes for equal records.
    pub fn render(&self) -> String {
        let mut out = String::new();
        typed::push_bare(&mut out, "schema", RECORD_SCHEMA);
        typed::push_text(&mut out, "package", &self.package);
        typed::push_text(&mut out, "version", &self.version);
        typed::push_text(&mut out, "tree", self.tree.id());
        for row in self.tree.rows() {
            typed::push_file(&mut out, "[[file]]", row);
        }
        out
    }
}

fn checked_tree(text: &str, table: &RecordTable) -> Result<Tree, Diagnostic> {
    let rows = typed::file_rows(text, &table.file)?;
    let tree = Tree::new(rows).map_err(|error| collision(text, &table.file, &error))?;
    if tree.id() != *table.tree.get_ref() {
        return Err(typed::at(
            text,
            &table.tree,
            "its rows do not give its tree",
        ));
    }
    Ok(tree)
}

fn collision(text: &str, files: &[FileTable], error: &TreeError) -> Diagnostic {
    let second = match error {
        TreeError::Collision { second, .. } => {
            files.iter().find(|file| file.path.get_ref() == second)
        }
        _ => None,
    };
    match second {
        Some(file) => typed::at(text, &file.path, error.to_string()),
        None => Diagnostic::new(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::Sha256Digest;
    use crate::formats::typed::testing;
    use crate::relative_path::RelPath;
    use crate::tree::TreeRow;
    use proptest::prelude::*;

    fn row(path: &str, exec: bool) -> TreeRow {
        TreeRow {
            path: RelPath::new(path).unwrap(),
            digest: Sha256Digest::of(path.as_bytes()),
            exec,
        }
    }

    fn record(rows: Vec<TreeRow>) -> SlotRecord {
        SlotRecord {
            package: "org.example/lint".parse().unwrap(),
            version: Version::new(2, 1, 0),
            tree: Tree::new(rows).unwrap(),
        }
    }

    fn outcome(text: &str) -> Result<(), (String, Option<crate::formats::diagnostic::Position>)> {
        match SlotRecord::parse(text) {
            Ok(_) => Ok(()),
            Err(RecordError::Malformed(found)) => Err((found.message, found.position)),
            Err(other) => Err((other.to_string(), None)),
        }
    }

    #[test]
    fn a_record_has_the_documented_bytes() {
        let record = record(vec![row("hooks/prepare.sh", true), row("a'\u{e9}", false)]);
        let text = format!(
            "schema = 2\npackage = \"org.example/lint\"\nversion = \"2.1.0\"\ntree = \"{}\"\n\
             \n[[file]]\npath = \"a'\u{e9}\"\nsha256 = \"{}\"\n\
             \n[[file]]\npath = \"hooks/prepare.sh\"\nsha256 = \"{}\"\nexec = true\n",
            record.tree.id(),
            Sha256Digest::of("a'\u{e9}".as_bytes()),
            Sha256Digest::of(b"hooks/prepare.sh"),
        );
        assert_eq!(record.render(), text);
        assert_eq!(SlotRecord::parse(&text), Ok(record));
    }

    #[test]
    fn a_record_of_another_schema_is_named_whatever_its_shape() {
        let parse = |text| SlotRecord::parse(text);
        assert_eq!(
            parse("schema = 3\nnew = []\n"),
            Err(RecordError::Newer { found: 3 })
        );
        assert_eq!(
            parse("schema = 1\nold = []\n"),
            Err(RecordError::Older { found: 1 })
        );
        assert_eq!(parse("schema = 0"), Err(RecordError::Older { found: 0 }));
        assert!(matches!(
            parse("schema = 2"),
            Err(RecordError::Malformed(_))
        ));
    }

    #[test]
    fn a_record_without_rows_has_the_empty_tree() {
        let empty = record(Vec::new());
        assert_eq!(SlotRecord::parse(&empty.render()), Ok(empty));
    }

    #[test]
    fn a_record_cut_anywhere_but_at_its_end_is_refused() {
        let text = record(vec![row("a", false), row("b", true)]).render();
        for end in (0..text.len() - 1).filter(|end| text.is_char_boundary(*end)) {
            let found = SlotRecord::parse(&text[..end]);
            assert!(
                matches!(found, Err(RecordError::Malformed(_))),
                "{end}: {found:?}"
            );
        }
        assert!(SlotRecord::parse(&text[..text.len() - 1]).is_ok());
    }

    #[test]
    fn records_of_the_cases_are_taken_or_refused_as_they_say() {
        testing::check_cases("record", 50, outcome);
    }

    fn any_record() -> impl Strategy<Value = SlotRecord> {
        let rows = proptest::collection::vec(testing::any_row(), 0..6);
        let tree = rows.prop_filter_map("no collision", |rows| Tree::new(rows).ok());
        (testing::any_id(), testing::any_version(), tree).prop_map(|(package, version, tree)| {
            SlotRecord {
                package,
                version,
                tree,
            }
        })
    }

    proptest! {
        #[test]
        fn a_record_reads_back_as_it_was_written(record in any_record()) {
            let text = record.render();
            let read = SlotRecord::parse(&text).unwrap();
            prop_assert_eq!(read.render(), text);
            prop_assert_eq!(&read, &record);
            let mut rows = record.tree.rows().to_vec();
            rows.reverse();
            let reversed = SlotRecord { tree: Tree::new(rows).unwrap(), ..read };
            prop_assert_eq!(reversed.render(), record.render());
        }

        #[test]
        fn a_changed_record_is_refused_or_is_the_same_tree(
            record in any_record(),
            from in any::<proptest::sample::Index>(),
            length in 0..9_usize,
            replacement in "[\\PC\n]{0,3}",
        ) {
            let text = testing::mutate(&record.render(), from, length, &replacement);
            if let Ok(read) = SlotRecord::parse(&text) {
                prop_assert_eq!(SlotRecord::parse(&read.render()).unwrap(), read);
            }
        }
    }
}
