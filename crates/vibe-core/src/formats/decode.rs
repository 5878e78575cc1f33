//! Bytes of a format's file to the text every format is read from.

use crate::formats::diagnostic::Diagnostic;

/// The text of a file: UTF-8 without its byte order mark, lines ended by a line feed alone.
///
/// # Errors
/// UTF-16, UTF-32 (by byte order mark or by where the zero bytes stand) and bytes that are no
/// UTF-8, named.
pub fn decode(bytes: &[u8]) -> Result<String, Diagnostic> {
    if let Some(encoding) = wide_encoding(bytes) {
        return Err(
            Diagnostic::new(format!("the file is encoded as {encoding}"))
                .hint("save it as UTF-8 again"),
        );
    }
    let text = std::str::from_utf8(bytes).map_err(|error| not_utf8(bytes, error.valid_up_to()))?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    Ok(text.replace("\r\n", "\n"))
}

/// The encoding of two or four bytes a character that `bytes` begin in. The byte order marks come
/// first: that of UTF-32 begins with that of UTF-16.
fn wide_encoding(bytes: &[u8]) -> Option<&'static str> {
    match bytes {
        [0xFF, 0xFE, 0, 0, ..] => Some("UTF-32 (little endian)"),
        [0, 0, 0xFE, 0xFF, ..] => Some("UTF-32 (big endian)"),
        [0xFF, 0xFE, ..] => Some("UTF-16 (little endian)"),
        [0xFE, 0xFF, ..] => Some("UTF-16 (big endian)"),
        [1..=0xFF, 0, 0, 0, ..] => Some("UTF-32 (little endian)"),
        [0, 0, 0, 1..=0xFF, ..] => Some("UTF-32 (big endian)"),
        [1..=0xFF, 0, ..] => Some("UTF-16 (little endian)"),
        [0, 1..=0xFF, ..] => Some("UTF-16 (big endian)"),
        _ => None,
    }
}

fn not_utf8(bytes: &[u8], offset: usize) -> Diagnostic {
    let valid = std::str::from_utf8(&bytes[..offset]).unwrap_or_default();
    let message = format!(
        "the byte 0x{:02X} at offset {offset} is not UTF-8",
        bytes[offset]
    );
    Diagnostic::at(valid, offset, message).hint("save the file as UTF-8")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::diagnostic::Position;

    #[test]
    fn marks_and_carriage_returns_are_dropped() {
        assert_eq!(
            decode(b"\xEF\xBB\xBFa\r\nb\rc\n").unwrap(),
            "a\nb\rc\n",
            "a lone carriage return is no line end"
        );
        assert_eq!(decode(b"").unwrap(), "");
        assert_eq!(decode("é".as_bytes()).unwrap(), "é");
    }

    #[test]
    fn other_encodings_are_named() {
        for (bytes, encoding) in [
            (&b"\xFF\xFEa\0"[..], "UTF-16 (little endian)"),
            (b"\xFE\xFF\0a", "UTF-16 (big endian)"),
            (b"\xFF\xFE\0\0a\0\0\0", "UTF-32 (little endian)"),
            (b"\0\0\xFE\xFF\0\0\0a", "UTF-32 (big endian)"),
            (b"[\0p\0", "UTF-16 (little endian)"),
            (b"\0[\0p", "UTF-16 (big endian)"),
            (b"[\0\0\0p\0\0\0", "UTF-32 (little endian)"),
            (b"\0\0\0[", "UTF-32 (big endian)"),
        ] {
            let error = decode(bytes).unwrap_err();
            assert_eq!(
                error.to_string(),
                format!("the file is encoded as {encoding}")
            );
        }
    }

    #[test]
    fn a_byte_outside_utf8_is_shown_with_its_place() {
        let error = decode(b"a\nb\xE9").unwrap_err();
        assert_eq!(error.to_string(), "the byte 0xE9 at offset 3 is not UTF-8");
        assert_eq!(error.position, Some(Position { line: 2, column: 2 }));
        assert_eq!(error.line_text.as_deref(), Some("b"));
    }
}
