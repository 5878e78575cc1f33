//! The managed block: lines between two markers in a file that is otherwise somebody else's.
//!
//! Every byte outside the block stays. Taking a block out again gives back exactly what was there
//! before it was put in, a missing last line break included: then a blank ends its first line.

use std::ops::Range;

/// The line that opens the block.
pub const BEGIN: &str = "<!-- vibe:begin -->";

/// The line that closes it.
pub const END: &str = "<!-- vibe:end -->";

/// What some editors put before the first line.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Markers that do not make one block. Lines are counted from 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BlockError {
    /// A block that is opened and not closed.
    #[error("line {line}: `{BEGIN}` has no `{END}` after it")]
    NotClosed {
        /// Where it is opened.
        line: usize,
    },
    /// A closing marker without one that opens.
    #[error("line {line}: `{END}` has no `{BEGIN}` before it")]
    NotOpened {
        /// Where it is closed.
        line: usize,
    },
    /// A second block.
    #[error("line {line}: a second `{BEGIN}`; the first is at line {first}")]
    Second {
        /// Where the second is opened.
        line: usize,
        /// Where the first is opened.
        first: usize,
    },
}

/// A block in a text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block<'a> {
    /// The lines between the markers, each with its line break.
    pub content: &'a str,
    /// Where the block lies: both marker lines with all between them, in bytes.
    range: Range<usize>,
}

/// The block of `text`, if it has one.
///
/// # Errors
/// The markers do not make one block.
pub fn find(text: &str) -> Result<Option<Block<'_>>, BlockError> {
    let mut opened: Option<(usize, Range<usize>)> = None;
    let mut found: Option<(usize, Block<'_>)> = None;
    let mut start = 0;
    for (index, whole) in text.split_inclusive('\n').enumerate() {
        let (line, range) = (index + 1, start..start + whole.len());
        start = range.end;
        match whole.trim_start_matches(BYTE_ORDER_MARK).trim() {
            BEGIN => {
                let first = opened.as_ref().map(|(line, _)| *line);
                if let Some(first) = first.or(found.as_ref().map(|(line, _)| *line)) {
                    return Err(BlockError::Second { line, first });
                }
                let mark = whole.len() - whole.trim_start_matches(BYTE_ORDER_MARK).len();
                opened = Some((line, range.start + mark..range.end));
            }
            END => {
                let (opened_at, begin) = opened.take().ok_or(BlockError::NotOpened { line })?;
                let content = &text[begin.end..range.start];
                let range = begin.start..range.end;
                found = Some((opened_at, Block { content, range }));
            }
            _ => {}
        }
    }
    match opened {
        Some((line, _)) => Err(BlockError::NotClosed { line }),
        None => Ok(found.map(|(_, block)| block)),
    }
}

/// `text` with a block that holds `lines`. A block that is there is replaced where it stands, with
/// the line breaks that it has; a new one comes last, after a blank line or the line break
/// that the text lacks, with those of the text's first line.
///
/// # Errors
/// The markers do not make one block.
pub fn with_block(text: &str, lines: &str) -> Result<String, BlockError> {
    let found = find(text)?;
    let newline = match &found {
        Some(found) => newline_of(&text[found.range.clone()]),
        None => newline_after(text),
    };
    let inner: String = lines.lines().flat_map(|line| [line, newline]).collect();
    let lacked_line_break = match &found {
        Some(found) => found.lacked_line_break(text),
        None => !text.is_empty() && !text.ends_with('\n'),
    };
    let mark = if lacked_line_break { " " } else { "" };
    let block = format!("{BEGIN}{mark}{newline}{inner}{END}");
    Ok(match found {
        Some(found) => {
            let (before, after) = (&text[..found.range.start], &text[found.range.end..]);
            format!("{before}{block}{newline}{after}")
        }
        None if text.is_empty() => format!("{block}{newline}"),
        None if text.ends_with('\n') => format!("{text}{newline}{block}{newline}"),
        None => format!("{text}{newline}{block}{newline}"),
    })
}

/// `text` without its block, and without the blank line or line break that came with it; as it is where it has
/// none.
///
/// # Errors
/// The markers do not make one block.
pub fn without_block(text: &str) -> Result<String, BlockError> {
    let Some(found) = find(text)? else {
        return Ok(text.to_owned());
    };
    let (before, after) = (&text[..found.range.start], &text[found.range.end..]);
    if !after.is_empty() {
        return Ok(format!("{before}{after}"));
    }
    let without_break = without_line_break(before).unwrap_or(before);
    let is_blank = without_break.is_empty() || without_break.ends_with('\n');
    Ok(match is_blank || found.lacked_line_break(text) {
        true => without_break.to_owned(),
        false => before.to_owned(),
    })
}

impl Block<'_> {
    /// Whether the text before it ended without a line break when it was put there.
    fn lacked_line_break(&self, text: &str) -> bool {
        let first = text[self.range.clone()].lines().next();
        first.is_some_and(|line| line.ends_with(' '))
    }
}

fn newline_of(text: &str) -> &'static str {
    match text.split_inclusive('\n').next() {
        Some(line) if line.ends_with("\r\n") => "\r\n",
        _ => "\n",
    }
}

/// The line break of what is put after `text`. After a carriage return a line feed alone would make
/// one of both, and taking it out again would take both.
fn newline_after(text: &str) -> &'static str {
    match text.ends_with('\r') {
        true => "\r\n",
        false => newline_of(text),
    }
}

/// `text` without the line break at its end; `None` where it has none.
fn without_line_break(text: &str) -> Option<&str> {
    let text = text.strip_suffix('\n')?;
    Some(text.strip_suffix('\r').unwrap_or(text))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_new_block_comes_last_after_a_blank_line() {
        for (text, expected) in [
            ("", "B\nx\nE\n"),
            ("a\n", "a\n\nB\nx\nE\n"),
            ("a", "a\nB \nx\nE\n"),
            ("a\r\nb\r\n", "a\r\nb\r\n\r\nB\r\nx\r\nE\r\n"),
            ("a\rb\r", "a\rb\r\r\nB \r\nx\r\nE\r\n"),
            ("a\nb\r", "a\nb\r\r\nB \r\nx\r\nE\r\n"),
            ("a\nb\r\n", "a\nb\r\n\nB\nx\nE\n"),
        ] {
            let expected = expected.replace('B', BEGIN).replace('E', END);
            assert_eq!(with_block(text, "x\n").unwrap(), expected);
            assert_eq!(with_block(&expected, "x\n").unwrap(), expected);
            assert_eq!(without_block(&expected).unwrap(), text);
        }
    }

    #[test]
    fn a_block_is_replaced_where_it_stands() {
        let text = format!("a\n  {BEGIN}\nold\n{END}\t\nb");
        let new = format!("a\n{BEGIN}\nx\ny\n{END}\nb");
        assert_eq!(with_block(&text, "x\ny").unwrap(), new);
        assert_eq!(find(&new).unwrap().unwrap().content, "x\ny\n");
        assert_eq!(without_block(&new).unwrap(), "a\nb");
        assert_eq!(find("a\n").unwrap(), None);
    }

    #[test]
    fn a_byte_order_mark_before_the_block_stays() {
        let text = format!("\u{feff}{BEGIN}\n{END}\n");
        assert_eq!(without_block(&text).unwrap(), "\u{feff}");
    }

    #[test]
    fn broken_markers_are_named_with_their_line() {
        let check = |text: &str, expected| {
            let text = text.replace('B', BEGIN).replace('E', END);
            assert_eq!(find(&text).unwrap_err(), expected, "{text}");
            assert_eq!(with_block(&text, "x").unwrap_err(), expected);
            assert_eq!(without_block(&text).unwrap_err(), expected);
        };
        check("a\nB\n", BlockError::NotClosed { line: 2 });
        check("E\nB\nE\n", BlockError::NotOpened { line: 1 });
        check("B\nE\nE", BlockError::NotOpened { line: 3 });
        check("B\nB\nE", BlockError::Second { line: 2, first: 1 });
        check("\nB\nE\nB\nE", BlockError::Second { line: 4, first: 2 });
    }

    #[test]
    fn a_marker_is_one_on_a_line_of_its_own_and_nowhere_else() {
        let check = |text: &str, content| {
            let text = text.replace('B', BEGIN).replace('E', END);
            let found = find(&text).unwrap();
            assert_eq!(found.map(|block| block.content), content, "{text}");
        };
        check("see B and E\n", None);
        check("`B`\nx\n`E`\n", None);
        check("<!-- vibe:begin-->\nx\n<!--vibe:end -->\n", None);
        check("    B\nx\n\tE\n", Some("x\n"));
        check("```\nB\nx\nE\n```\n", Some("x\n"));
        check(
            "B\nsee B and E\nE\n",
            Some(&*format!("see {BEGIN} and {END}\n")),
        );
    }

    #[test]
    fn a_block_keeps_its_line_breaks_whatever_those_of_the_text_are() {
        let text = format!("a\n{BEGIN}\r\nx\r\n{END}\r\nb\n");
        assert_eq!(with_block(&text, "x\n").unwrap(), text);
        let text = format!("a\r\n{BEGIN}\nx\n{END}\nb\r\n");
        assert_eq!(with_block(&text, "x\n").unwrap(), text);
    }

    proptest! {
        #[test]
        fn taking_a_block_out_gives_back_what_was_there(
            text in "([a<!-]{0,2}(\n|\r\n|\r)){0,4}[a<!-]{0,2}",
            content in "[a-z]{0,4}(\n[a-z]{0,4}){0,3}",
        ) {
            let with = with_block(&text, &content).unwrap();
            prop_assert!(with.starts_with(&text));
            prop_assert_eq!(with_block(&with, &content).unwrap(), with.clone());
            prop_assert_eq!(without_block(&with).unwrap(), text);
        }
    }
}
