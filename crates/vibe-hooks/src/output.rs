//! Makes what an install hook prints safe to show.

use vibe_core::text::escape_bytes;

const RESET: &str = "\x1b[0m";

/// One line of output for showing: control, bidirectional and invisible characters and bytes that
/// are no text are written as escapes; tabs stay; a carriage return at the end is dropped. With
/// `keep_colour`, colour sequences (`ESC [ digits ; ... m`) pass, and a line that has any ends in
/// one that switches them off, so that a colour does not run into our own text.
pub fn sanitize_line(line: &[u8], keep_colour: bool) -> String {
    let mut rest = line.strip_suffix(b"\r").unwrap_or(line);
    let mut out = String::with_capacity(rest.len());
    let mut has_colour = false;
    while !rest.is_empty() {
        let colour = if keep_colour { colour_length(rest) } else { 0 };
        let length = match colour {
            0 => plain_length(rest),
            _ => colour,
        };
        let (piece, after) = rest.split_at(length);
        match piece {
            _ if colour > 0 => out.extend(piece.iter().map(|byte| char::from(*byte))),
            b"\t" => out.push('\t'),
            _ => out.push_str(&escape_bytes(piece)),
        }
        has_colour |= colour > 0;
        rest = after;
    }
    if has_colour {
        out.push_str(RESET);
    }
    out
}

/// The length of the piece at the start of `bytes` up to the next tab or escape; at least 1.
fn plain_length(bytes: &[u8]) -> usize {
    if bytes[0] == b'\t' {
        return 1;
    }
    let next = bytes[1..]
        .iter()
        .position(|byte| matches!(byte, b'\t' | 0x1b));
    next.map_or(bytes.len(), |position| position + 1)
}

/// The length of the colour sequence that `bytes` begin with; 0 if there is none.
fn colour_length(bytes: &[u8]) -> usize {
    let Some(parameters) = bytes.strip_prefix(b"\x1b[") else {
        return 0;
    };
    let end = parameters
        .iter()
        .position(|byte| !byte.is_ascii_digit() && *byte != b';');
    match end {
        Some(end) if parameters[end] == b'm' => end + 3,
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(line: &[u8], plain: &str, coloured: &str) {
        assert_eq!(sanitize_line(line, false), plain, "{line:?}");
        assert_eq!(sanitize_line(line, true), coloured, "{line:?}");
    }

    #[test]
    fn text_and_tabs_stay() {
        for line in ["", "plain", "\ta\t\té 漢\t", "a; [m"] {
            check(line.as_bytes(), line, line);
        }
    }

    #[test]
    fn nothing_but_colour_acts_on_a_terminal() {
        for (line, shown) in [
            (&b"a\rb\r"[..], "a\\rb"),
            (b"\r\r", "\\r"),
            (b"\x1b[2J", "\\x1B[2J"),
            (b"\x1b]52;c;eA==\x07", "\\x1B]52;c;eA==\\x07"),
            (b"\x1b[1", "\\x1B[1"),
            (b"\x1b[", "\\x1B["),
            (b"\x1b", "\\x1B"),
            (b"\x1b[1:2m", "\\x1B[1:2m"),
            (b"\x1b[?1m", "\\x1B[?1m"),
            (b"\xff\0\tx", "\\xFF\\x00\tx"),
            ("\u{202e}\u{9b}2J".as_bytes(), "U+202EU+009B2J"),
        ] {
            check(line, shown, shown);
        }
    }

    #[test]
    fn colour_passes_where_it_is_wanted_and_does_not_leak() {
        check(
            b"a\x1b[1;31mred\x1b[m\tb",
            "a\\x1B[1;31mred\\x1B[m\tb",
            "a\x1b[1;31mred\x1b[m\tb\x1b[0m",
        );
        check(
            b"\x1b[0m\x1b[2K\x1b[7m",
            "\\x1B[0m\\x1B[2K\\x1B[7m",
            "\x1b[0m\\x1B[2K\x1b[7m\x1b[0m",
        );
    }
}
