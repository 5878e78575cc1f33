//! Text from outside made safe to show, and commands made safe to paste.

/// `text` with every control, bidirectional and invisible character written as an escape, so that
/// what is shown is what is there and nothing acts on a terminal.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    text.chars()
        .for_each(|character| push_escaped(&mut out, character));
    out
}

/// Like [`escape`], for bytes that need not be UTF-8: a byte that is part of no character is
/// written `\xE9`.
pub fn escape_bytes(bytes: &[u8]) -> String {
    let mut out = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        chunk
            .valid()
            .chars()
            .for_each(|character| push_escaped(&mut out, character));
        for byte in chunk.invalid() {
            out.push_str(&format!("\\x{byte:02X}"));
        }
    }
    out
}

fn push_escaped(out: &mut String, character: char) {
    match character {
        '\n' => out.push_str("\\n"),
        '\r' => out.push_str("\\r"),
        '\t' => out.push_str("\\t"),
        _ if character.is_ascii_control() => {
            out.push_str(&format!("\\x{:02X}", u32::from(character)));
        }
        _ if is_deceptive(character) => out.push_str(&format!("U+{:04X}", u32::from(character))),
        _ => out.push(character),
    }
}

/// Whether `character` can make text look like other text: C1 controls, bidirectional controls,
/// zero-width and invisible characters, line and paragraph separators, tags, the byte order mark.
/// Source: Unicode Standard Annex 9 (bidirectional controls) and the Default_Ignorable property.
pub fn is_deceptive(character: char) -> bool {
    matches!(u32::from(character),
        0x80..=0x9F
        | 0xAD
        | 0x34F
        | 0x61C
        | 0x115F..=0x1160
        | 0x17B4..=0x17B5
        | 0x180B..=0x180F
        | 0x200B..=0x200F
        | 0x2028..=0x202E
        | 0x2060..=0x206F
        | 0x3164
        | 0xFE00..=0xFE0F
        | 0xFEFF
        | 0xFFA0
        | 0xFFF0..=0xFFFB
        | 0x1BCA0..=0x1BCA3
        | 0x1D173..=0x1D17A
        | 0xE0000..=0xE0FFF)
}

/// A refused `text` as a message shows it: its first 80 characters, escaped.
pub(crate) fn shown(text: &str) -> String {
    escape(&shorten(text, 80))
}

/// At most `characters` characters of `text`, with an ellipsis where something was cut.
pub fn shorten(text: &str, characters: usize) -> String {
    match text.char_indices().nth(characters) {
        None => text.to_owned(),
        Some((end, _)) => format!("{}…", &text[..end]),
    }
}

/// Whether `url` has a password, or for HTTP anything, before the `@` of its host: there a name
/// alone is a token more often than not, while SSH needs one.
pub(crate) fn has_credentials(url: &str) -> bool {
    let (scheme, rest) = url.split_once("://").unwrap_or(("", url));
    let authority = rest.split(['/', '?', '#']).next().unwrap_or_default();
    let Some((user, _)) = authority.rsplit_once('@') else {
        return false;
    };
    let scheme = scheme.to_ascii_lowercase();
    user.contains(':') || scheme.ends_with("http") || scheme.ends_with("https")
}

/// `word` with `***` for the credentials of the URL that it is or ends in, so that it can be shown
/// and stored.
pub fn hide_credentials(word: &str) -> String {
    let Some((scheme, rest)) = word.split_once("://") else {
        return word.to_owned();
    };
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    match rest[..end].rfind('@') {
        Some(at) if has_credentials(word) => format!("{scheme}://***{}", &rest[at..]),
        _ => word.to_owned(),
    }
}

/// `line` with a `*` for every character of the credentials of each URL in it, so that places in the
/// line stay where they are.
pub(crate) fn mask_credentials(line: &str) -> String {
    let mut out = String::with_capacity(line.len());
    let mut rest = line;
    while let Some(at) = rest.find("://") {
        let (before, after) = rest.split_at(at + 3);
        out.push_str(before);
        let is_end = |c: char| c.is_whitespace() || matches!(c, '/' | '?' | '#' | '"' | '\'');
        let authority = &after[..after.find(is_end).unwrap_or(after.len())];
        let user = authority.rfind('@').unwrap_or(0);
        let is_ssh_user = before.ends_with("ssh://") && !authority[..user].contains(':');
        let masked = if is_ssh_user { 0 } else { user };
        out.extend(authority[..masked].chars().map(|_| '*'));
        rest = &after[masked..];
    }
    out + rest
}

/// `word` quoted for a POSIX shell when it holds anything but plain characters, so that a printed
/// command can be pasted as it stands. Control characters use the `$'…'` form.
pub fn shell_quote(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "_-./@%+=:,".contains(c);
    let starts_plain = !word.starts_with('=');
    if !word.is_empty() && starts_plain && word.chars().all(plain) {
        return word.to_owned();
    }
    if word
        .chars()
        .any(|c| c.is_ascii_control() || is_deceptive(c))
    {
        return ansi_quote(word.as_bytes());
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

/// The same for a word that may be no text, as the name of a directory may be.
pub fn shell_quote_bytes(word: &[u8]) -> String {
    match str::from_utf8(word) {
        Ok(text) => shell_quote(text),
        Err(_) => ansi_quote(word),
    }
}

fn ansi_quote(word: &[u8]) -> String {
    let mut out = String::from("$'");
    for chunk in word.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '\'' => out.push_str("\\'"),
                '\\' => out.push_str("\\\\"),
                c if c.is_ascii_control() || is_deceptive(c) => {
                    let mut bytes = [0; 4];
                    push_octal(&mut out, c.encode_utf8(&mut bytes).as_bytes());
                }
                c => out.push(c),
            }
        }
        push_octal(&mut out, chunk.invalid());
    }
    out.push('\'');
    out
}

/// Bytes in three octal digits mean the same in every locale, and end before the next character
/// whatever it is.
fn push_octal(out: &mut String, bytes: &[u8]) {
    out.extend(bytes.iter().map(|byte| format!("\\{byte:03o}")));
}

/// The candidate that `word` was most likely meant to be, if one is near enough.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let normal = word.replace('_', "-").to_lowercase();
    candidates
        .into_iter()
        .map(|candidate| (strsim::damerau_levenshtein(&normal, candidate), candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.len().max(3)) / 3)
        .min()
        .map(|(_, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn credentials_of_a_url_are_hidden_and_nothing_else_is() {
        for (word, expected) in [
            ("https://u:p@host/x@y", "https://***@host/x@y"),
            ("https://token@host", "https://***@host"),
            ("HTTP://a@b:c@host?x", "HTTP://***@host?x"),
            ("--git=https://token@host/x", "--git=https://***@host/x"),
            ("ssh://git:p@host/x", "ssh://***@host/x"),
            ("ssh://git@host/x", "ssh://git@host/x"),
            ("git@host:a/b", "git@host:a/b"),
            ("https://host/a@b", "https://host/a@b"),
            ("https://host#a@b", "https://host#a@b"),
            ("path:a@b", "path:a@b"),
        ] {
            assert_eq!(hide_credentials(word), expected);
        }
    }

    #[test]
    fn credentials_in_a_shown_line_are_masked_in_place() {
        for (line, expected) in [
            (
                "a = { git = \"https://u:p@host/x\" } # https://t@h",
                "a = { git = \"https://***@host/x\" } # https://*@h",
            ),
            ("\"ssh://git@host/x\"", "\"ssh://git@host/x\""),
            ("\"ssh://git:p@host/x\"", "\"ssh://*****@host/x\""),
            ("\"https://host/x\" @", "\"https://host/x\" @"),
        ] {
            assert_eq!(mask_credentials(line), expected);
        }
    }

    #[test]
    fn escape_leaves_nothing_that_acts_on_a_terminal() {
        assert_eq!(escape("plain é 漢"), "plain é 漢");
        assert_eq!(
            escape("a\n\r\tb\u{1b}[2J\u{7f}"),
            "a\\n\\r\\tb\\x1B[2J\\x7F"
        );
        assert_eq!(escape("x\u{202e}gnp\u{9b}"), "xU+202EgnpU+009B");
        assert_eq!(escape_bytes(b"caf\xe9 \x1b"), "caf\\xE9 \\x1B");
    }

    #[test]
    fn shell_quote_gives_one_word_back() {
        for (word, quoted) in [
            ("plain-1.0/x", "plain-1.0/x"),
            ("", "''"),
            ("a b", "'a b'"),
            ("it's", r"'it'\''s'"),
            ("$(id)", "'$(id)'"),
            ("=x", "'=x'"),
            ("^x", "'^x'"),
            ("a^b", "'a^b'"),
            ("a\nb'\\", "$'a\\012b\\'\\\\'"),
            ("\u{202e}x", "$'\\342\\200\\256x'"),
        ] {
            assert_eq!(shell_quote(word), quoted);
            assert_eq!(shell_quote_bytes(word.as_bytes()), quoted);
        }
        assert_eq!(shell_quote_bytes(b"a'\xffb"), r"$'a\'\377b'");
    }

    #[test]
    fn shorten_cuts_at_characters() {
        assert_eq!(shorten("héllo", 5), "héllo");
        assert_eq!(shorten("héllo", 2), "hé…");
    }

    #[test]
    fn nearest_suggests_only_near_words() {
        let keys = ["pre-install", "post-install", "timeout", "reset"];
        assert_eq!(nearest("pre_install", keys), Some("pre-install"));
        assert_eq!(nearest("Timeot", keys), Some("timeout"));
        assert_eq!(nearest("zzz", keys), None);
    }
}
