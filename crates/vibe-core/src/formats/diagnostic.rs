//! What is wrong in a text, and where.

use crate::text::{escape, mask_credentials, shorten};

/// A place in a text, both counted from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
}

impl Position {
    /// The position of byte `offset` in `text`; the end of the text for an offset past it.
    pub fn of(text: &str, offset: usize) -> Self {
        let end = (0..=offset.min(text.len()))
            .rev()
            .find(|end| text.is_char_boundary(*end));
        let before = &text[..end.unwrap_or(0)];
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        Self {
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// Something wrong in a text: what, where, and what to do about it. The caller knows the file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct Diagnostic {
    /// What is wrong, with the offending value; already escaped.
    pub message: String,
    /// Where, if it is anywhere in particular.
    pub position: Option<Position>,
    /// The line at that position, escaped, shortened and without credentials, to be shown.
    pub line_text: Option<String>,
    /// What the user can do.
    pub hint: Option<String>,
}

impl Diagnostic {
    /// A diagnostic about the text as a whole.
    pub fn new(message: impl Into<String>) -> Self {
        Self {
            message: message.into(),
            position: None,
            line_text: None,
            hint: None,
        }
    }

    /// A diagnostic at byte `offset` of `text`.
    pub fn at(text: &str, offset: usize, message: impl Into<String>) -> Self {
        let position = Position::of(text, offset);
        let line = text.lines().nth(position.line - 1).unwrap_or_default();
        Self {
            message: message.into(),
            position: Some(position),
            line_text: Some(escape(&shorten(&mask_credentials(line), 160))),
            hint: None,
        }
    }

    /// The same with a hint.
    #[must_use]
    pub fn hint(mut self, hint: impl Into<String>) -> Self {
        self.hint = Some(hint.into());
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let text = "aé\nbcd\n";
        for (offset, line, column) in [
            (0, 1, 1),
            (3, 1, 3),
            (4, 2, 1),
            (6, 2, 3),
            (8, 3, 1),
            (99, 3, 1),
        ] {
            assert_eq!(
                Position::of(text, offset),
                Position { line, column },
                "{offset}"
            );
        }
        assert_eq!(
            Position::of(text, 2),
            Position { line: 1, column: 2 },
            "inside a character"
        );
    }

    #[test]
    fn a_diagnostic_shows_its_line() {
        let found = Diagnostic::at("a\nb\u{1b}c\n", 2, "wrong").hint("mend it");
        assert_eq!(found.line_text.as_deref(), Some("b\\x1Bc"));
        assert_eq!(found.to_string(), "wrong");
        assert_eq!(found.hint.as_deref(), Some("mend it"));
    }
}
