//! What the strict formats share: TOML text to rows that know where they stand, and the pieces of
//! their stable bytes.

use std::borrow::Cow;
use std::fmt::Display;

use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use toml::Spanned;
use toml::de::{DeTable, ValueDeserializer};

use crate::digest::Sha256Digest;
use crate::formats::diagnostic::Diagnostic;
use crate::relative_path::RelPath;
use crate::text::{escape, shorten};
use crate::tree::TreeRow;
use crate::version::{Version, parse_version};

/// How the lines begin that git leaves where it could not merge.
const CONFLICT_MARKERS: [&str; 3] = ["<<<<<<<", "=======", ">>>>>>>"];

/// Takes `text` apart and reads its schema number, the value of `key`, looking at nothing else: a
/// text of a newer schema may have any shape. What is left of the document comes with it. Where a
/// merge left its lines, they are what is wrong.
pub(super) fn document<'t>(
    text: &'t str,
    key: &str,
) -> Result<(u64, Spanned<DeTable<'t>>), Diagnostic> {
    numbered(text, key).map_err(|error| merge_conflict(text).unwrap_or(error))
}

fn numbered<'t>(text: &'t str, key: &str) -> Result<(u64, Spanned<DeTable<'t>>), Diagnostic> {
    let mut table = DeTable::parse(text).map_err(|error| diagnostic(text, &error))?;
    let value = table
        .get_mut()
        .remove(key)
        .ok_or_else(|| Diagnostic::new(format!("no `{key}`")))?;
    let offset = value.span().start;
    let schema = u64::deserialize(ValueDeserializer::from(value))
        .map_err(|_| Diagnostic::at(text, offset, format!("`{key}` has to be a whole number")))?;
    Ok((schema, table))
}

/// The first line that a merge left behind, if one is there.
fn merge_conflict(text: &str) -> Option<Diagnostic> {
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    let index = lines
        .iter()
        .position(|line| CONFLICT_MARKERS.iter().any(|mark| line.starts_with(mark)))?;
    let offset = lines[..index].iter().map(|line| line.len()).sum();
    let message = format!("merge conflict at line {}", index + 1);
    let hint = "resolve it by taking either side, then run `vibe install`";
    Some(Diagnostic::at(text, offset, message).hint(hint))
}

/// Reads the document that [`document`] left of `text`.
pub(super) fn read<T: DeserializeOwned>(
    text: &str,
    table: Spanned<DeTable<'_>>,
) -> Result<T, Diagnostic> {
    T::deserialize(toml::Deserializer::from(table)).map_err(|error| diagnostic(text, &error))
}

fn diagnostic(text: &str, error: &toml::de::Error) -> Diagnostic {
    let message = plain(error.message());
    match error.span() {
        Some(span) => Diagnostic::at(text, span.start, message),
        None => Diagnostic::new(message),
    }
}

/// The words of serde in those of TOML, safe to show.
fn plain(message: &str) -> String {
    let message = if let Some(rest) = message.strip_prefix("unknown field ") {
        format!("unknown key {rest}")
    } else if let Some(rest) = message.strip_prefix("missing field ") {
        format!("no {rest}")
    } else {
        message.to_owned()
    };
    escape(&shorten(&message, 400))
}

/// A diagnostic at the place of `value`.
pub(super) fn at<T>(text: &str, value: &Spanned<T>, message: impl Into<String>) -> Diagnostic {
    Diagnostic::at(text, value.span().start, message)
}

/// Checks that `values` are in strict byte order of what they display as.
pub(super) fn check_sorted<'v, T: Display + 'v>(
    text: &str,
    values: impl IntoIterator<Item = &'v Spanned<T>>,
) -> Result<(), Diagnostic> {
    let mut last: Option<String> = None;
    for value in values {
        let word = value.get_ref().to_string();
        match last.as_ref().map(|last| word.cmp(last)) {
            Some(std::cmp::Ordering::Equal) => {
                return Err(at(
                    text,
                    value,
                    format!("`{}` is there twice", escape(&word)),
                ));
            }
            Some(std::cmp::Ordering::Less) => {
                let message = format!("`{}` is out of order", escape(&word));
                return Err(at(text, value, message));
            }
            _ => last = Some(word),
        }
    }
    Ok(())
}

/// Reads a version within the bounds of vibe.
pub(super) fn version<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Version, D::Error> {
    let text = Cow::<str>::deserialize(deserializer)?;
    parse_version(&text).map_err(D::Error::custom)
}

/// Reads a flag that is left out where it is false, so that each state has one spelling.
pub(super) fn only_true<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    if bool::deserialize(deserializer)? {
        return Ok(true);
    }
    Err(D::Error::custom("only `true` is written; leave it out"))
}

/// A table for one payload file: `path`, `sha256`, `exec`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileTable {
    pub(super) path: Spanned<RelPath>,
    sha256: Sha256Digest,
    #[serde(default, deserialize_with = "only_true")]
    exec: bool,
}

/// The rows of `tables`: in strict byte order, none of them ours.
pub(super) fn file_rows(text: &str, tables: &[FileTable]) -> Result<Vec<TreeRow>, Diagnostic> {
    check_sorted(text, tables.iter().map(|table| &table.path))?;
    tables.iter().map(|table| file_row(text, table)).collect()
}

fn file_row(text: &str, table: &FileTable) -> Result<TreeRow, Diagnostic> {
    check_payload(text, &table.path)?;
    Ok(TreeRow {
        path: table.path.get_ref().clone(),
        digest: table.sha256,
        exec: table.exec,
    })
}

/// Checks that `path` can be a payload file's, not one of the files that vibe keeps in a slot.
pub(super) fn check_payload(text: &str, path: &Spanned<RelPath>) -> Result<(), Diagnostic> {
    if path.get_ref().is_reserved() {
        let message = format!("`{}` is a name of vibe itself", path.get_ref());
        return Err(at(text, path, message));
    }
    Ok(())
}

/// Appends the table `header` for a payload file.
pub(super) fn push_file(out: &mut String, header: &str, row: &TreeRow) {
    push_header(out, header);
    push_text(out, "path", &row.path);
    push_text(out, "sha256", row.digest);
    if row.exec {
        push_bare(out, "exec", true);
    }
}

/// Appends `header`, an empty line before it.
pub(super) fn push_header(out: &mut String, header: &str) {
    out.push_str(&format!("\n{header}\n"));
}

/// Appends `key = "value"`.
pub(super) fn push_text(out: &mut String, key: &str, value: impl Display) {
    push_bare(out, key, quoted(&value.to_string()));
}

/// Appends `key = value`.
pub(super) fn push_bare(out: &mut String, key: &str, value: impl Display) {
    out.push_str(&format!("{key} = {value}\n"));
}

/// `text` as a TOML basic string.
pub(super) fn quoted(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 2);
    out.push('"');
    for character in text.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if c.is_control() => out.push_str(&format!("\\u{:04X}", u32::from(c))),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

/// What the tests of the strict formats share.
#[cfg(test)]
pub(super) mod testing {
    use super::*;
    use crate::formats::diagnostic::Position;
    use crate::identifier::PackageId;
    use proptest::prelude::*;
    use proptest::sample::Index;

    /// One file of `conform/cases`: a text and what becomes of it.
    #[derive(Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Case {
        input: String,
        #[serde(default)]
        ok: bool,
        error: Option<String>,
        line: Option<usize>,
    }

    /// Reads every case of `folder`, at least `least` of them, with `parse`, which gives the
    /// message and the place of what is wrong.
    pub(crate) fn check_cases(
        folder: &str,
        least: usize,
        parse: impl Fn(&str) -> Result<(), (String, Option<Position>)>,
    ) {
        let cases = case_files(folder);
        assert!(cases.len() >= least, "{} cases in {folder}", cases.len());
        let wrong: Vec<String> = cases
            .iter()
            .filter_map(|(name, text)| {
                let case: Case = toml::from_str(text).expect(name);
                let found = parse(&case.input);
                (!is_expected(&case, &found)).then(|| format!("{name}: {found:?}"))
            })
            .collect();
        assert!(wrong.is_empty(), "{wrong:#?}");
    }

    fn is_expected(case: &Case, found: &Result<(), (String, Option<Position>)>) -> bool {
        match (found, &case.error) {
            (Ok(()), None) => case.ok,
            (Err((message, position)), Some(error)) => {
                message.contains(error) && position.map(|p| p.line) == case.line && !case.ok
            }
            _ => false,
        }
    }

    #[expect(clippy::disallowed_methods, reason = "the cases are files")]
    fn case_files(folder: &str) -> Vec<(String, String)> {
        let root = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conform/cases");
        std::fs::read_dir(format!("{root}/{folder}"))
            .unwrap()
            .map(|entry| entry.unwrap())
            .map(|entry| {
                let text = std::fs::read_to_string(entry.path()).unwrap();
                (entry.file_name().to_string_lossy().into_owned(), text)
            })
            .collect()
    }

    pub(crate) fn any_id() -> impl Strategy<Value = PackageId> {
        "[a-c](-?[a-c0-9]){0,2}(\\.[a-c]{1,2}){0,2}/[a-c](-?[a-c0-9]){0,2}"
            .prop_map(|text| text.parse().unwrap())
    }

    pub(crate) fn any_version() -> impl Strategy<Value = Version> {
        "[0-9]\\.[1-9]?[0-9]\\.[0-9](-rc\\.[1-9])?(\\+[a-z0-9]{1,3})?"
            .prop_map(|text| parse_version(&text).unwrap())
    }

    pub(crate) fn any_digest() -> impl Strategy<Value = Sha256Digest> {
        any::<[u8; 4]>().prop_map(|bytes| Sha256Digest::of(&bytes))
    }

    /// Paths of a payload with every odd character that one may have.
    pub(crate) fn any_path() -> impl Strategy<Value = RelPath> {
        let component = "[a-cA '`~{}\\[\\]#=.,@$%é漢ßıK\u{301}-]{0,4}[a-c'é漢#]";
        proptest::collection::vec(component, 1..4).prop_filter_map("a payload path", |components| {
            let path = RelPath::new(&components.join("/")).ok()?;
            (!path.is_reserved()).then_some(path)
        })
    }

    pub(crate) fn any_row() -> impl Strategy<Value = TreeRow> {
        (any_path(), any_digest(), any::<bool>()).prop_map(|(path, digest, exec)| TreeRow {
            path,
            digest,
            exec,
        })
    }

    /// `text` with `replacement` in the place of some of its characters.
    pub(crate) fn mutate(text: &str, from: Index, length: usize, replacement: &str) -> String {
        let characters: Vec<char> = text.chars().collect();
        let from = from.index(characters.len() + 1);
        let to = (from + length).min(characters.len());
        let before: String = characters[..from].iter().collect();
        let after: String = characters[to..].iter().collect();
        format!("{before}{replacement}{after}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quoted_text_reads_back() {
        assert_eq!(quoted("a b'é"), "\"a b'é\"");
        assert_eq!(
            quoted("\"\\\n\t\r\u{1b}\u{7f}\u{85}"),
            r#""\"\\\n\t\r\u001B\u007F\u0085""#
        );
        let text: String = (0..0x300).filter_map(char::from_u32).collect();
        let read: toml::Table = format!("x = {}", quoted(&text)).parse().unwrap();
        assert_eq!(read["x"].as_str(), Some(text.as_str()));
    }

    #[test]
    fn the_schema_number_is_read_before_anything_else() {
        let schema = |text| document(text, "schema").map(|(schema, _)| schema);
        assert_eq!(schema("x = {}\nschema = 7\n"), Ok(7));
        assert_eq!(schema("schema = 0"), Ok(0));
        assert_eq!(schema("").unwrap_err().message, "no `schema`");
        for text in ["schema = '1'", "schema = -1", "schema = 1.0", "[schema]"] {
            let error = schema(text).unwrap_err();
            assert_eq!(error.message, "`schema` has to be a whole number");
            assert_eq!(error.position.map(|p| p.line), Some(1));
        }
    }

    #[test]
    fn messages_of_the_parser_are_plain_and_safe() {
        assert_eq!(
            plain("unknown field `a`, expected `b`"),
            "unknown key `a`, expected `b`"
        );
        assert_eq!(plain("missing field `a`"), "no `a`");
        assert_eq!(plain("other \u{1b}"), "other \\x1B");
        assert_eq!(plain(&"é".repeat(500)).chars().count(), 401);
    }
}
