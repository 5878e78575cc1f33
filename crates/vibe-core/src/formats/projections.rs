//! `vibedeps/.projections.toml`: every path outside the slots that was written for the sake of what
//! is installed, and what it shows.
//!
//! It is committed, so it is held to the rules of a record: sorted, each path once, and malformed is
//! an error and never a licence to delete.

use serde::{Deserialize, Serialize};
use toml::Spanned;

use crate::digest::Sha256Digest;
use crate::formats::diagnostic::Diagnostic;
use crate::formats::typed;
use crate::relative_path::RelPath;

/// The file name, in `vibedeps/`.
pub const PROJECTIONS_NAME: &str = ".projections.toml";

/// The schema number written.
pub const PROJECTIONS_SCHEMA: u64 = 1;

/// What is written outside the slots, sorted by path.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Projections {
    /// The rows, sorted by path, each path once.
    pub paths: Vec<ProjectedPath>,
}

/// One path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProjectedPath {
    /// `path`, relative to the project root.
    pub path: RelPath,
    /// `form`.
    pub form: ProjectionForm,
    /// `sha256`: of the whole file, or of the lines between the markers with line feeds alone.
    pub sha256: Sha256Digest,
}

/// `form`: how much of the file is vibe's.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ProjectionForm {
    /// A managed block.
    Block,
    /// All of it.
    File,
}

impl ProjectionForm {
    /// The word used in the file.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Block => "block",
            Self::File => "file",
        }
    }
}

/// Why a text is no `.projections.toml`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ProjectionsError {
    /// It breaks a rule.
    #[error("the record of projected paths is malformed")]
    Malformed(#[from] Diagnostic),
    /// Its schema is newer than [`PROJECTIONS_SCHEMA`]; nothing else of it was looked at.
    #[error("the record of projected paths was made by a newer vibe: it has schema {found}")]
    Newer {
        /// Its schema.
        found: u64,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ProjectionsTable {
    #[serde(default)]
    path: Vec<PathTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PathTable {
    path: Spanned<RelPath>,
    form: ProjectionForm,
    sha256: Sha256Digest,
}

impl Projections {
    /// Reads the text of a `.projections.toml`.
    ///
    /// # Errors
    /// A newer schema, or the first rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, ProjectionsError> {
        let (found, table) = typed::document(text, "schema")?;
        if found > PROJECTIONS_SCHEMA {
            return Err(ProjectionsError::Newer { found });
        }
        let table: ProjectionsTable = typed::read(text, table)?;
        typed::check_sorted(text, table.path.iter().map(|row| &row.path))?;
        let rows = table.path.into_iter();
        let paths = rows.map(|row| ProjectedPath {
            path: row.path.into_inner(),
            form: row.form,
            sha256: row.sha256,
        });
        Ok(Self {
            paths: paths.collect(),
        })
    }

    /// The text, the same bytes for equal values.
    pub fn render(&self) -> String {
        let mut out = "# Written by vibe. Commit this file; do not edit it.\n".to_owned();
        typed::push_bare(&mut out, "schema", PROJECTIONS_SCHEMA);
        for row in &self.paths {
            typed::push_header(&mut out, "[[path]]");
            typed::push_text(&mut out, "path", &row.path);
            typed::push_text(&mut out, "form", row.form.as_str());
            typed::push_text(&mut out, "sha256", row.sha256);
        }
        out
    }

    /// The row of `path`.
    pub fn get(&self, path: &RelPath) -> Option<&ProjectedPath> {
        self.paths.iter().find(|row| row.path == *path)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::typed::testing;
    use proptest::prelude::*;

    fn row(path: &str, form: ProjectionForm) -> ProjectedPath {
        ProjectedPath {
            path: RelPath::new(path).unwrap(),
            form,
            sha256: Sha256Digest::of(path.as_bytes()),
        }
    }

    #[test]
    fn the_record_of_projected_paths_has_the_documented_bytes() {
        let projections = Projections {
            paths: vec![
                row("AGENTS.md", ProjectionForm::Block),
                row("vibedeps/boot/STATIC.md", ProjectionForm::File),
            ],
        };
        let text = format!(
            "# Written by vibe. Commit this file; do not edit it.\nschema = 1\n\
             \n[[path]]\npath = \"AGENTS.md\"\nform = \"block\"\nsha256 = \"{}\"\n\
             \n[[path]]\npath = \"vibedeps/boot/STATIC.md\"\nform = \"file\"\nsha256 = \"{}\"\n",
            Sha256Digest::of(b"AGENTS.md"),
            Sha256Digest::of(b"vibedeps/boot/STATIC.md"),
        );
        assert_eq!(projections.render(), text);
        assert_eq!(Projections::parse(&text), Ok(projections));
        assert_eq!(Projections::parse("schema = 1"), Ok(Projections::default()));
    }

    #[test]
    fn what_is_not_strict_is_refused_with_its_line() {
        let digest = Sha256Digest::of(b"");
        let row = |path: &str, form: &str| {
            format!("[[path]]\npath = \"{path}\"\nform = \"{form}\"\nsha256 = \"{digest}\"\n")
        };
        let check = |rows: String, message: &str, line| {
            let found = Projections::parse(&format!("schema = 1\n{rows}"));
            let Err(ProjectionsError::Malformed(found)) = found else {
                panic!("{rows}: {found:?}");
            };
            assert!(found.message.contains(message), "{found:?}");
            assert_eq!(found.position.map(|p| p.line), line, "{rows}");
        };
        check(
            row("b", "block") + &row("a", "block"),
            "out of order",
            Some(7),
        );
        check(
            row("a", "block") + &row("a", "file"),
            "there twice",
            Some(7),
        );
        check(row("../a", "block"), "", Some(3));
        check(row("a", "link"), "unknown variant `link`", Some(4));
        check(row("a", "file") + "x = 1\n", "unknown key `x`", Some(6));
        check("x = 1\n".to_owned(), "unknown key `x`", Some(2));
        assert_eq!(
            Projections::parse("schema = 2\nnew = []\n"),
            Err(ProjectionsError::Newer { found: 2 })
        );
        assert!(Projections::parse("").is_err());
    }

    proptest! {
        #[test]
        fn projected_paths_read_back_as_they_were_written(
            rows in proptest::collection::btree_map(
                testing::any_path(), (any::<bool>(), testing::any_digest()), 0..5),
        ) {
            let paths = rows.into_iter().map(|(path, (is_file, sha256))| ProjectedPath {
                path,
                form: if is_file { ProjectionForm::File } else { ProjectionForm::Block },
                sha256,
            });
            let projections = Projections { paths: paths.collect() };
            prop_assert_eq!(Projections::parse(&projections.render()).unwrap(), projections);
        }
    }
}
