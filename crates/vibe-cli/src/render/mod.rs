//! Text and JSON of results and errors. Everything here is a function from values to text.

pub(crate) mod cache;
pub(crate) mod check;
pub(crate) mod doctor;
pub(crate) mod document;
pub(crate) mod error;
pub(crate) mod hooks;
pub(crate) mod items;
pub(crate) mod list;
pub(crate) mod outdated;
pub(crate) mod plan;
pub(crate) mod publish;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod show;
pub(crate) mod style;
mod table;
#[cfg(test)]
pub(crate) mod testing;
pub(crate) mod tree;
pub(crate) mod verify;
mod view;
pub(crate) mod why;

use std::time::Duration;

pub(crate) use table::{Spare, columns_within, cut};
pub(crate) use view::View;

/// `count` with its noun: `1 package`, `2 packages`.
pub(crate) fn count(count: usize, noun: &str) -> String {
    match count {
        1 => format!("1 {noun}"),
        _ => format!("{count} {noun}s"),
    }
}

/// A duration for people: `12ms`, `1.2s`, `1m 05s`. Rounded down.
pub(crate) fn duration(duration: Duration) -> String {
    match duration.as_millis() {
        ms @ 0..1_000 => format!("{ms}ms"),
        ms @ 1_000..60_000 => format!("{}.{}s", ms / 1_000, ms / 100 % 10),
        ms => format!("{}m {:02}s", ms / 60_000, ms / 1_000 % 60),
    }
}

/// The same for milliseconds.
pub(crate) fn milliseconds(duration_ms: u64) -> String {
    duration(Duration::from_millis(duration_ms))
}

/// One line for each row, its cells in columns that are two spaces apart.
pub(crate) fn columns(rows: &[Vec<String>]) -> Vec<String> {
    columns_within(rows, None, &[])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_and_durations_read_well() {
        assert_eq!(count(0, "file"), "0 files");
        assert_eq!(count(1, "file"), "1 file");
        for (ms, text) in [
            (0, "0ms"),
            (999, "999ms"),
            (1_000, "1.0s"),
            (12_345, "12.3s"),
            (59_999, "59.9s"),
            (60_000, "1m 00s"),
            (125_900, "2m 05s"),
        ] {
            assert_eq!(milliseconds(ms), text);
        }
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let row = |cells: &[&str]| cells.iter().map(ToString::to_string).collect::<Vec<_>>();
        let rows = [
            row(&["é", "", "x"]),
            row(&["long", "", "y", ""]),
            row(&["a"]),
            row(&["漢字", "", "z"]),
        ];
        assert_eq!(columns(&rows), ["é     x", "long  y", "a", "漢字  z"]);
        assert_eq!(columns(&[]), Vec::<String>::new());
    }
}
