//! Cells in columns, for a terminal as wide as it is.

use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The space between two columns.
const GAP: &str = "  ";
/// What is left of a column that is cut is at least so wide, or nothing.
const CUT_WIDTH_MIN: usize = 8;

/// A column that a narrow terminal can do without.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Spare {
    /// Is shown whole or not at all.
    Whole(usize),
    /// May be cut at its end.
    Part(usize),
}

/// One line for each row, its cells in columns. Lines that would be wider than `width` do without
/// `spare` columns, one after the other, until they fit; if they never do, the cells stand one after
/// the other, so that only a line that is too long itself is broken by the terminal.
pub(crate) fn columns_within(
    rows: &[Vec<String>],
    width: Option<usize>,
    spare: &[Spare],
) -> Vec<String> {
    let count = rows.iter().map(Vec::len).max().unwrap_or(0);
    let mut widths: Vec<usize> = (0..count).map(|column| widest(rows, column)).collect();
    let Some(width) = width else {
        return rows.iter().map(|row| aligned(row, &widths)).collect();
    };
    for spare in spare {
        let over = total(&widths).saturating_sub(width);
        match *spare {
            _ if over == 0 => break,
            Spare::Part(column) if widths.get(column) >= Some(&(CUT_WIDTH_MIN + over)) => {
                widths[column] -= over;
            }
            Spare::Whole(column) | Spare::Part(column) => {
                if let Some(dropped) = widths.get_mut(column) {
                    *dropped = 0;
                }
            }
        }
    }
    match total(&widths) <= width {
        true => rows.iter().map(|row| aligned(row, &widths)).collect(),
        false => rows.iter().map(|row| ragged(row, &widths)).collect(),
    }
}

fn widest(rows: &[Vec<String>], column: usize) -> usize {
    let cells = rows.iter().filter_map(|row| row.get(column));
    cells.map(|cell| cell.width()).max().unwrap_or(0)
}

fn total(widths: &[usize]) -> usize {
    let shown = widths.iter().filter(|width| **width > 0);
    shown.clone().sum::<usize>() + GAP.len() * shown.count().saturating_sub(1)
}

fn aligned(row: &[String], widths: &[usize]) -> String {
    let cells = row.iter().zip(widths).filter(|(_, width)| **width > 0);
    let padded: Vec<String> = cells
        .map(|(cell, width)| {
            let cell = cut(cell, *width);
            let padding = width - cell.width();
            format!("{cell}{:padding$}", "")
        })
        .collect();
    padded.join(GAP).trim_end().to_owned()
}

fn ragged(row: &[String], widths: &[usize]) -> String {
    let cells = row.iter().zip(widths);
    let shown = cells.filter(|(cell, width)| !cell.is_empty() && **width > 0);
    let shown: Vec<String> = shown.map(|(cell, width)| cut(cell, *width)).collect();
    shown.join(GAP)
}

/// `text` no wider than `width`, with an ellipsis where something was cut.
pub(crate) fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut used = 0;
    let room = width.saturating_sub(1);
    let kept = text.chars().take_while(|character| {
        used += character.width().unwrap_or(0);
        used <= room
    });
    kept.chain(['…']).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPARE: [Spare; 3] = [Spare::Whole(3), Spare::Whole(2), Spare::Part(4)];

    fn rows(rows: &[&[&str]]) -> Vec<Vec<String>> {
        let row = |row: &&[&str]| row.iter().map(ToString::to_string).collect();
        rows.iter().map(row).collect()
    }

    fn check(width: usize, expected: [&str; 2]) {
        let rows = rows(&[
            &["org.a/long-name", "1.0.0", "copy", "12 files"],
            &["org.a/b", "10.0.0", "copy", "1 file", "it was another one"],
        ]);
        let found = columns_within(&rows, Some(width), &SPARE);
        assert_eq!(found, expected, "{width}");
        let fits = found.iter().all(|line| line.width() <= width);
        assert!(fits || width < 23, "{width}");
    }

    #[test]
    fn a_narrow_terminal_loses_the_least_important_columns() {
        let whole = [
            "org.a/long-name  1.0.0   copy  12 files",
            "org.a/b          10.0.0  copy  1 file    it was another one",
        ];
        check(200, whole);
        check(59, whole);
        let no_files = [
            "org.a/long-name  1.0.0   copy",
            "org.a/b          10.0.0  copy  it was another one",
        ];
        check(58, no_files);
        check(49, no_files);
        let no_mode = [
            "org.a/long-name  1.0.0",
            "org.a/b          10.0.0  it was another one",
        ];
        check(43, no_mode);
        check(
            33,
            [
                "org.a/long-name  1.0.0",
                "org.a/b          10.0.0  it was …",
            ],
        );
        check(32, ["org.a/long-name  1.0.0", "org.a/b          10.0.0"]);
        check(23, ["org.a/long-name  1.0.0", "org.a/b          10.0.0"]);
        check(22, ["org.a/long-name  1.0.0", "org.a/b  10.0.0"]);
        check(0, ["org.a/long-name  1.0.0", "org.a/b  10.0.0"]);
    }

    #[test]
    fn wide_characters_take_two_columns() {
        let rows = rows(&[&["漢字", "x"], &["é😀", "y"]]);
        assert_eq!(columns_within(&rows, None, &[]), ["漢字  x", "é😀   y"]);
        assert_eq!(cut("漢字かな", 5), "漢字…");
        assert_eq!(cut("漢字かな", 4), "漢…");
        assert_eq!(cut("漢字", 4), "漢字");
    }
}
