//! What is wrong in a text, and where.

use crate::text::{escape, mask_credentials};

/// Characters of a line that are shown, so that it stays one on a usual terminal.
const SHOWN: usize = 72;
/// Characters that are shown before the place where not all are.
const SHOWN_BEFORE: usize = 40;
/// How a tab is shown, so that a mark under the line stands where it should.
const TAB: &str = "    ";

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
    /// The line at that position, escaped, cut around it and without credentials, to be shown.
    pub line_text: Option<String>,
    /// How many characters of that text stand before the position.
    pub before: usize,
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
            before: 0,
            hint: None,
        }
    }

    /// A diagnostic at byte `offset` of `text`.
    pub fn at(text: &str, offset: usize, message: impl Into<String>) -> Self {
        Self::at_position(text, Position::of(text, offset), message)
    }

    /// A diagnostic at `position` in `text`.
    pub fn at_position(text: &str, position: Position, message: impl Into<String>) -> Self {
        let line = text.lines().nth(position.line - 1).unwrap_or_default();
        let (before, after) = around(&mask_credentials(line), position.column - 1);
        Self {
            message: message.into(),
            position: Some(position),
            before: before.chars().count(),
            line_text: Some(before + &after),
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

/// What is shown of `line` before and after its character `at`, with an ellipsis where more is.
fn around(line: &str, at: usize) -> (String, String) {
    let line: Vec<char> = line.chars().collect();
    let at = at.min(line.len());
    let latest = line.len().saturating_sub(SHOWN);
    let start = at.saturating_sub(SHOWN_BEFORE).min(latest);
    let end = line.len().min(start + SHOWN);
    let more = |is_cut: bool| if is_cut { "…" } else { "" };
    let shown = |part: &[char]| {
        let part: String = part.iter().collect();
        escape(&part.replace('\t', TAB))
    };
    (
        more(start > 0).to_owned() + &shown(&line[start..at]),
        shown(&line[at..end]) + more(end < line.len()),
    )
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
        assert_eq!(found.before, 0);
        assert_eq!(found.to_string(), "wrong");
        assert_eq!(found.hint.as_deref(), Some("mend it"));
    }
    /// The shown line, with `|` where the position is.
    fn marked(text: &str, offset: usize) -> String {
        let found = Diagnostic::at(text, offset, "wrong");
        let line = found.line_text.unwrap();
        let before: String = line.chars().take(found.before).collect();
        format!("{before}|{}", &line[before.len()..])
    }

    #[test]
    fn the_position_is_known_in_the_line_as_it_is_shown() {
        for (text, offset, expected) in [
            ("abc", 1, "a|bc"),
            ("abc", 3, "abc|"),
            ("abc\n", 4, "|"),
            ("ab\r\ncd\r\n", 5, "c|d"),
            ("\tx = \ty", 6, "    x =     |y"),
            ("é漢\u{1b}x", 6, "é漢\\x1B|x"),
            ("\u{202e}x", 3, "U+202E|x"),
            ("a = \"https://u:p@h\" x", 20, "a = \"https://***@h\" |x"),
            ("", 0, "|"),
        ] {
            assert_eq!(marked(text, offset), expected, "{text:?}");
        }
    }

    #[test]
    fn a_long_line_is_cut_around_the_position() {
        let long = |before, after| format!("{}!{}", "é".repeat(before), "漢".repeat(after));
        let check = |before, after, expected: (usize, usize)| {
            let (left, right) = expected;
            let more = |is_cut| if is_cut { "…" } else { "" };
            let expected = format!(
                "{}{}|!{}{}",
                more(left < before),
                "é".repeat(left),
                "漢".repeat(right),
                more(right < after)
            );
            assert_eq!(marked(&long(before, after), 2 * before), expected);
        };
        check(200, 200, (40, 31));
        check(10, 200, (10, 61));
        check(200, 3, (68, 3));
        check(40, 31, (40, 31));
        check(41, 30, (41, 30));
    }
}
