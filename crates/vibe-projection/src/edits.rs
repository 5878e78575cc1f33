//! From what files shall show, what they show, and what is recorded of them, to the edits to make.
//!
//! A whole file is written where nothing is, or over what we wrote, as the record or the file itself
//! says; another file in its place is refused. Of a file with a block only the block is ours. What goes is what the record
//! names and still looks so; a file in which nothing but the block was left goes with it.

use vibe_core::formats::projections::{ProjectedPath, ProjectionForm, Projections};
use vibe_core::plan::{ProjectChange, ProjectEdit};
use vibe_core::{RelPath, Sha256Digest};

use crate::block::{self, BlockError};

/// What a whole file shall hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Content {
    /// It shall not be there.
    None,
    /// What it is made of has not changed since it was recorded, so neither has it.
    AsRecorded,
    /// This.
    Text(String),
}

/// A file that is vibe's as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WholeFile {
    /// Where it lies.
    pub path: RelPath,
    /// What it shall hold.
    pub wanted: Content,
    /// The digest of what is there; `None`: nothing.
    pub found: Option<Sha256Digest>,
    /// What is there says of itself that vibe wrote it.
    pub is_signed: bool,
}

/// A file of the user's with a block.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockFile {
    /// Where it lies.
    pub path: RelPath,
    /// The lines of the block; `None`: it shall have none.
    pub lines: Option<String>,
    /// It is started where it is missing, and kept where it holds nothing but the block.
    pub is_expected: bool,
    /// What is there; `None`: nothing.
    pub found: Option<String>,
}

/// What there is to do, and what is recorded once it is done.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Edits {
    /// The edits, by path.
    pub edits: Vec<ProjectEdit>,
    /// What is recorded after them.
    pub projections: Projections,
    /// What is left although it is vibe's no more, since somebody changed it.
    pub left: Vec<RelPath>,
}

/// Why nothing of it may be done.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// Markers that do not make one block.
    #[error("{path}: the markers of vibe's block are broken")]
    Markers {
        /// The file.
        path: RelPath,
        /// How.
        source: BlockError,
    },
    /// A file that vibe did not write lies where it would write one.
    #[error("{path} was not written by vibe, and vibe would write it")]
    Foreign {
        /// The file.
        path: RelPath,
    },
}

/// Decides.
///
/// # Errors
/// A file of somebody else's is in the way, or has broken markers.
pub fn edits(
    known: &Projections,
    files: &[WholeFile],
    blocks: &[BlockFile],
) -> Result<Edits, EditError> {
    let mut done = Edits::default();
    for file in files {
        done.whole(file, known.get(&file.path))?;
    }
    for file in blocks {
        let markers = |source| EditError::Markers {
            path: file.path.clone(),
            source,
        };
        done.block(file, known.get(&file.path)).map_err(markers)?;
    }
    done.edits.sort_by(|one, other| one.path.cmp(&other.path));
    let paths = &mut done.projections.paths;
    paths.sort_by(|one, other| one.path.as_str().cmp(other.path.as_str()));
    Ok(done)
}

impl Edits {
    fn whole(&mut self, file: &WholeFile, row: Option<&ProjectedPath>) -> Result<(), EditError> {
        let recorded = row.map(|row| row.sha256);
        let text = match (&file.wanted, recorded) {
            (Content::Text(text), _) => text,
            (Content::AsRecorded, Some(recorded)) => {
                self.record(&file.path, ProjectionForm::File, recorded);
                return Ok(());
            }
            (Content::AsRecorded, None) => return Ok(()),
            (Content::None, None) => return Ok(()),
            (Content::None, Some(recorded)) => {
                match file.found {
                    None => {}
                    Some(found) if found == recorded => self.edit(&file.path, file.found, None),
                    Some(_) => self.left.push(file.path.clone()),
                }
                return Ok(());
            }
        };
        let wanted = Sha256Digest::of(text.as_bytes());
        let is_ours = row.is_some() || file.is_signed;
        if file.found.is_some_and(|found| found != wanted) && !is_ours {
            return Err(EditError::Foreign {
                path: file.path.clone(),
            });
        }
        if file.found != Some(wanted) {
            self.edit(&file.path, file.found, Some(text.clone()));
        }
        self.record(&file.path, ProjectionForm::File, wanted);
        Ok(())
    }

    fn block(&mut self, file: &BlockFile, row: Option<&ProjectedPath>) -> Result<(), BlockError> {
        let text = file.found.as_deref().unwrap_or_default();
        let before = file.found.as_ref();
        let before = before.map(|text| Sha256Digest::of(text.as_bytes()));
        let rest = block::without_block(text)?;
        let is_wanted = file.is_expected || !rest.is_empty();
        if let Some(lines) = file.lines.as_ref().filter(|_| is_wanted) {
            let with = block::with_block(text, lines)?;
            if before.is_none() || with != text {
                self.edit(&file.path, before, Some(with));
            }
            let shown = Sha256Digest::of(lines.as_bytes());
            self.record(&file.path, ProjectionForm::Block, shown);
            return Ok(());
        }
        // A block that is not recorded is somebody's copy, or example.
        if row.is_some() && before.is_some() && rest != text {
            let after = (!rest.is_empty()).then_some(rest);
            self.edit(&file.path, before, after);
        }
        Ok(())
    }

    fn edit(&mut self, path: &RelPath, before: Option<Sha256Digest>, after: Option<String>) {
        self.edits.push(ProjectEdit {
            path: path.clone(),
            change: change_of(before, after.as_ref()),
            may_change: false,
            before,
            after,
        });
    }

    fn record(&mut self, path: &RelPath, form: ProjectionForm, sha256: Sha256Digest) {
        self.projections.paths.push(ProjectedPath {
            path: path.clone(),
            form,
            sha256,
        });
    }
}

/// What becomes of a file with the digest `before`, if it is there, that gets the content `after`.
pub fn change_of(before: Option<Sha256Digest>, after: Option<&String>) -> ProjectChange {
    match (before, after) {
        (_, None) => ProjectChange::Remove,
        (None, Some(_)) => ProjectChange::Create,
        (Some(_), Some(_)) => ProjectChange::Change,
    }
}

/// The digest of what the block of `text` shows, as it is recorded; `None` where it has none.
///
/// # Errors
/// The markers do not make one block.
pub fn shown_by_block(text: &str) -> Result<Option<Sha256Digest>, BlockError> {
    let found = block::find(text)?;
    Ok(found.map(|block| Sha256Digest::of(block.content.replace("\r\n", "\n").as_bytes())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::{BEGIN, END};
    use proptest::prelude::*;

    fn path(name: &str) -> RelPath {
        RelPath::new(name).unwrap()
    }

    fn digest(text: &str) -> Sha256Digest {
        Sha256Digest::of(text.as_bytes())
    }

    fn row(form: ProjectionForm, shown: &str) -> ProjectedPath {
        ProjectedPath {
            path: path("f"),
            form,
            sha256: digest(shown),
        }
    }

    fn known(row: Option<ProjectedPath>) -> Projections {
        Projections {
            paths: row.into_iter().collect(),
        }
    }

    /// The content after the edit, if there is one, and whether the path is recorded and left.
    type Outcome<'a> = (Option<Option<&'a str>>, bool, bool);

    fn outcome(edits: &Edits) -> Outcome<'_> {
        (
            edits.edits.first().map(|edit| edit.after.as_deref()),
            !edits.projections.paths.is_empty(),
            !edits.left.is_empty(),
        )
    }

    #[test]
    fn a_whole_file_is_written_over_nothing_and_over_what_vibe_wrote() {
        let check =
            |wanted: Option<&str>, found: Option<&str>, recorded: Option<&str>, expected| {
                let file = WholeFile {
                    path: path("f"),
                    wanted: wanted.map_or(Content::None, |text| Content::Text(text.to_owned())),
                    found: found.map(digest),
                    is_signed: found == Some("signed"),
                };
                let known = known(recorded.map(|text| row(ProjectionForm::File, text)));
                let edits = edits(&known, &[file], &[]).unwrap();
                assert_eq!(
                    outcome(&edits),
                    expected,
                    "{wanted:?} {found:?} {recorded:?}"
                );
            };
        check(Some("x"), None, None, (Some(Some("x")), true, false));
        check(Some("x"), Some("x"), None, (None, true, false));
        check(
            Some("x"),
            Some("old"),
            Some("old"),
            (Some(Some("x")), true, false),
        );
        check(
            Some("x"),
            Some("edited"),
            Some("old"),
            (Some(Some("x")), true, false),
        );
        check(Some("x"), None, Some("x"), (Some(Some("x")), true, false));
        check(
            Some("x"),
            Some("signed"),
            None,
            (Some(Some("x")), true, false),
        );
        check(None, Some("signed"), None, (None, false, false));
        check(None, None, None, (None, false, false));
        check(None, Some("mine"), None, (None, false, false));
        check(None, Some("old"), Some("old"), (Some(None), false, false));
        check(None, Some("edited"), Some("old"), (None, false, true));
        check(None, None, Some("old"), (None, false, false));
    }

    #[test]
    fn a_file_that_vibe_did_not_write_is_refused() {
        let file = WholeFile {
            path: path("f"),
            wanted: Content::Text("x".to_owned()),
            found: Some(digest("mine")),
            is_signed: false,
        };
        let error = edits(&Projections::default(), &[file], &[]).unwrap_err();
        assert_eq!(error, EditError::Foreign { path: path("f") });
    }

    #[test]
    fn what_is_made_of_the_same_stays_as_recorded() {
        let file = WholeFile {
            path: path("f"),
            wanted: Content::AsRecorded,
            found: Some(digest("x")),
            is_signed: true,
        };
        let known = known(Some(row(ProjectionForm::File, "x")));
        let edits = edits(&known, &[file], &[]).unwrap();
        assert_eq!((edits.edits.len(), edits.projections), (0, known));
    }

    #[test]
    fn of_a_file_with_a_block_only_the_block_is_written() {
        let block = |lines: &str| format!("{BEGIN}\n{lines}\n{END}\n");
        let check = |lines: Option<&str>,
                     is_expected,
                     found: Option<&str>,
                     is_known: bool,
                     after: Option<Option<&str>>| {
            let file = BlockFile {
                path: path("f"),
                lines: lines.map(|lines| format!("{lines}\n")),
                is_expected,
                found: found.map(str::to_owned),
            };
            let known = known(is_known.then(|| row(ProjectionForm::Block, "old\n")));
            let edits = edits(&known, &[], &[file]).unwrap();
            let (edit, is_recorded, _) = outcome(&edits);
            assert_eq!(edit, after, "{lines:?} {is_expected} {found:?} {is_known}");
            let has_block = edit
                .map_or(found, |after| after)
                .is_some_and(|t| t.contains(BEGIN));
            assert_eq!(is_recorded, has_block && lines.is_some());
        };
        let (old, new) = (block("old"), block("x"));
        let (mine, mine_new) = (format!("a\n\n{old}"), format!("a\n\n{new}"));
        check(Some("x"), true, None, false, Some(Some(new.as_str())));
        check(Some("x"), false, None, false, None);
        check(
            Some("x"),
            false,
            Some("a\n"),
            false,
            Some(Some(mine_new.as_str())),
        );
        check(Some("x"), false, Some(&mine), true, Some(Some(&mine_new)));
        check(Some("x"), false, Some(&mine), false, Some(Some(&mine_new)));
        check(Some("x"), false, Some(&mine_new), true, None);
        check(Some("x"), false, Some(&old), true, Some(None));
        check(Some("x"), true, Some(&old), true, Some(Some(&new)));
        check(None, true, Some(&mine), true, Some(Some("a\n")));
        check(None, true, Some(&old), true, Some(None));
        check(None, true, Some(&mine), false, None);
        check(None, true, None, true, None);
    }

    #[test]
    fn what_a_block_shows_is_recorded_whatever_its_line_breaks_are() {
        let text = format!("a\r\n{BEGIN}\r\nx\r\ny\r\n{END}\r\n");
        assert_eq!(shown_by_block(&text), Ok(Some(digest("x\ny\n"))));
        assert_eq!(
            shown_by_block(&text.replace('\r', "")),
            shown_by_block(&text)
        );
        assert_eq!(shown_by_block("a\n"), Ok(None));
        let error = BlockError::NotClosed { line: 1 };
        assert_eq!(shown_by_block(BEGIN), Err(error));
    }

    #[test]
    fn broken_markers_stop_everything() {
        let file = BlockFile {
            path: path("f"),
            lines: None,
            is_expected: true,
            found: Some(format!("a\n{BEGIN}\n")),
        };
        let error = edits(&Projections::default(), &[], &[file]).unwrap_err();
        let source = BlockError::NotClosed { line: 2 };
        assert_eq!(
            error,
            EditError::Markers {
                path: path("f"),
                source
            }
        );
    }

    fn content() -> impl Strategy<Value = Option<String>> {
        proptest::option::of("(a|<!-- vibe:begin -->\nx\n<!-- vibe:end -->|b|\n|\r){0,3}")
    }

    proptest! {
        /// Whatever was there, what is made is stable, and taking it back leaves what was there.
        #[test]
        fn edits_are_done_once_and_can_be_taken_back(
            before in content(),
            is_expected in any::<bool>(),
            lines in "[a-z]{1,3}\n",
        ) {
            let of = |found: &Option<String>, lines: Option<&String>| BlockFile {
                path: path("f"),
                lines: lines.cloned(),
                is_expected,
                found: found.clone(),
            };
            let apply = |found: &Option<String>, edits: &Edits| {
                edits.edits.first().map_or(found.clone(), |edit| edit.after.clone())
            };
            let none = Projections::default();
            let Ok(first) = edits(&none, &[], &[of(&before, Some(&lines))]) else {
                return Ok(());
            };
            let after = apply(&before, &first);
            let again = edits(&first.projections, &[], &[of(&after, Some(&lines))]).unwrap();
            prop_assert!(again.edits.is_empty());
            prop_assert_eq!(&again.projections, &first.projections);
            let back = edits(&first.projections, &[], &[of(&after, None)]).unwrap();
            let restored = apply(&after, &back).unwrap_or_default();
            let had = before.clone().unwrap_or_default();
            let without = block::without_block(&had).unwrap();
            if first.projections.paths.is_empty() {
                prop_assert_eq!(restored, had);
            } else {
                prop_assert_eq!(restored, without);
            }
            prop_assert_eq!(back.projections, Projections::default());
        }
    }
}
