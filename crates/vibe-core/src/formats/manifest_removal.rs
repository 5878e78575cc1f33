//! Taking a requirement out of `vibe.toml`, and nothing else.
//!
//! The text is cut where the entry stands, so that every other byte stays: a comment on the entry's
//! own line goes with it, and a comment on a line of its own stays, since nobody but its author
//! knows what it is about.

use std::ops::Range;

use toml_edit::{Item, TableLike};

use crate::formats::decode::decode;
use crate::formats::diagnostic::Diagnostic;
use crate::formats::manifest_edit::{key_of, not_editable};
use crate::formats::reader::parse_document;
use crate::identifier::PackageId;

/// `text`, a manifest, without the requirement of `id`, in whatever form it is written. A manifest
/// that does not require it comes back byte for byte; a changed one has no byte order mark and no
/// carriage returns.
///
/// # Errors
/// A text that is no TOML, or a requirement that has a form that cannot be edited.
pub fn remove_requirement(text: &str, id: &PackageId) -> Result<String, Diagnostic> {
    let clean = decode(text.as_bytes())?;
    let Some(mut parts) = parts_of(&clean, id)? else {
        return Ok(text.to_owned());
    };
    let mut edited = clean.to_string();
    // From the last to the first, so that what is still to be cut stays where it was.
    parts.sort_by_key(|part| std::cmp::Reverse(part.start));
    for part in parts {
        cut(&mut edited, part);
    }
    match parts_of(&edited, id) {
        Ok(None) => Ok(edited),
        Ok(Some(_)) | Err(_) => Err(not_editable(&format!("the requirement `{id}`"))),
    }
}

/// Where the parts of the entry of `id` stand; `None` where it is not required.
fn parts_of(text: &str, id: &PackageId) -> Result<Option<Vec<Range<usize>>>, Diagnostic> {
    let document = parse_document(text)?;
    let packages = document
        .get("requires")
        .and_then(|requires| requires.get("packages"));
    let entry = packages.and_then(|packages| {
        let key = key_of(packages, id)?;
        packages.as_table_like()?.get_key_value(&key)
    });
    Ok(entry.map(|(key, item)| {
        let mut parts = Vec::new();
        collect(text, key.span(), item, &mut parts);
        parts
    }))
}

/// Adds the parts of `item`: each value with its key, and each section with its header.
fn collect(text: &str, key: Option<Range<usize>>, item: &Item, parts: &mut Vec<Range<usize>>) {
    match item {
        Item::Table(table) if !table.is_dotted() => {
            let mut inside = Vec::new();
            let mut others = Vec::new();
            for (key, item) in entries(table) {
                let is_section = item.as_table().is_some_and(|table| !table.is_dotted());
                let found = if is_section { &mut others } else { &mut inside };
                collect(text, key, item, found);
            }
            let header = table.span().filter(|_| !table.is_implicit());
            let section = header.into_iter().chain(inside);
            parts.extend(
                section.reduce(|one, other| one.start.min(other.start)..one.end.max(other.end)),
            );
            parts.extend(others);
        }
        _ => match dotted(item) {
            Some(table) => {
                for (key, item) in entries(table) {
                    collect(text, key, item, parts);
                }
            }
            None => parts.extend(part_of_value(text, key, item)),
        },
    }
}

fn dotted(item: &Item) -> Option<&dyn TableLike> {
    item.as_table_like().filter(|table| table.is_dotted())
}

fn entries(table: &dyn TableLike) -> Vec<(Option<Range<usize>>, &Item)> {
    let keys = table.iter().map(|(key, _)| key);
    keys.filter_map(|key| table.get_key_value(key))
        .map(|(key, item)| (key.span(), item))
        .collect()
}

/// From the beginning of the whole dotted key, before which a line, a table or another entry ends,
/// to the end of the value.
fn part_of_value(text: &str, key: Option<Range<usize>>, item: &Item) -> Option<Range<usize>> {
    let before = &text[..key?.start];
    let ended = before.rfind(['\n', '{', ',']).map_or(0, |at| at + 1);
    let blanks = before.len() - ended - before[ended..].trim_start().len();
    Some(ended + blanks..item.as_value()?.span()?.end)
}

/// Cuts `part` out of `text`: whole lines where nothing else stands on them, else the part with the
/// comma that no longer separates anything.
fn cut(text: &mut String, part: Range<usize>) {
    let line_start = text[..part.start].rfind('\n').map_or(0, |at| at + 1);
    let rest = &text[part.end..];
    let line_end = part.end + rest.find('\n').map_or(rest.len(), |at| at + 1);
    let after = text[part.end..line_end].trim();
    let after = after.strip_prefix(',').unwrap_or(after).trim_start();
    let is_alone = text[line_start..part.start].trim().is_empty()
        && (after.is_empty() || after.starts_with('#'));
    match is_alone {
        true => cut_lines(text, line_start..line_end),
        false => cut_between(text, part),
    }
}

/// Cuts whole lines. Of two blank lines that meet then, or one that is last then, one goes as well.
fn cut_lines(text: &mut String, lines: Range<usize>) {
    let Range { mut start, mut end } = lines;
    let before = &text[..start];
    let is_after_blank = before.is_empty() || before.ends_with("\n\n");
    if is_after_blank && text[end..].starts_with('\n') {
        end += 1;
    } else if before.ends_with("\n\n") && end == text.len() {
        start -= 1;
    }
    text.replace_range(start..end, "");
}

fn cut_between(text: &mut String, part: Range<usize>) {
    let is_blank = |c: char| c == ' ' || c == '\t';
    let Range { mut start, mut end } = part;
    let after = text[end..].trim_start_matches(is_blank);
    let before = text[..start].trim_end_matches(is_blank);
    if let Some(rest) = after.strip_prefix(',') {
        end = text.len() - rest.trim_start_matches(is_blank).len();
    } else if let Some(kept) = before.strip_suffix(',') {
        start = kept.len();
    } else {
        end = text.len() - after.len();
    }
    text.replace_range(start..end, "");
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::manifest::{Manifest, Reading};
    use crate::formats::manifest_edit::{RequirementEdit, set_requirement};
    use proptest::prelude::*;

    fn remove(text: &str, id: &str) -> Result<String, Diagnostic> {
        remove_requirement(text, &id.parse().unwrap())
    }

    /// Taking `a/b` out turns `before` into `after`, and taking it out again changes nothing.
    fn check(before: &str, after: &str) {
        let found = remove(before, "a/b").unwrap();
        assert_eq!(found, after, "from:\n{before}");
        assert_eq!(remove(after, "a/b").unwrap(), after);
        Manifest::parse(after, Reading::Own).unwrap();
    }

    /// The same within a project whose requirements begin with `head`.
    fn check_entries(head: &str, before: &str, after: &str) {
        let project = format!("[project]\nname = \"x\"\n{head}\n");
        check(&format!("{project}{before}"), &format!("{project}{after}"));
    }

    const HEADER: &str = "[requires.packages]";

    #[test]
    fn an_entry_goes_with_the_comment_on_its_line() {
        check_entries(HEADER, "\"a/b\" = \"1\" # c\n", "");
        check_entries(
            HEADER,
            "\"y/y\"  =  '1' # y\n\"a/b\" = \"1\" # c\n\"z/z\" = \"1\" # z\n",
            "\"y/y\"  =  '1' # y\n\"z/z\" = \"1\" # z\n",
        );
        check_entries(HEADER, "\"a/b\" = \"1\"", "");
        check_entries(HEADER, "  'flow:a/b' = { path = \"p\" }\n", "");
        check_entries(
            HEADER,
            "\"a/b\" = { path = \"p\", # p\n  as = \"k\"\n} # c\n\"z/z\" = \"1\"\n",
            "\"z/z\" = \"1\"\n",
        );
    }

    #[test]
    fn a_comment_on_a_line_of_its_own_stays() {
        check_entries(
            HEADER,
            "# one\n\"a/b\" = \"1\"\n# two\n\"z/z\" = \"1\"\n# three\n",
            "# one\n# two\n\"z/z\" = \"1\"\n# three\n",
        );
        check_entries(HEADER, "# one\n\"a/b\" = \"1\"", "# one\n");
    }

    #[test]
    fn no_two_blank_lines_are_left_where_there_was_one() {
        check_entries(
            HEADER,
            "\"y/y\" = \"1\"\n\n\"a/b\" = \"1\"\n\n\"z/z\" = \"1\"\n",
            "\"y/y\" = \"1\"\n\n\"z/z\" = \"1\"\n",
        );
        check_entries(
            HEADER,
            "\"y/y\" = \"1\"\n\n\"a/b\" = \"1\"\n",
            "\"y/y\" = \"1\"\n",
        );
        check_entries(
            HEADER,
            "\"a/b\" = \"1\"\n\n[workspace.versions]\n",
            "\n[workspace.versions]\n",
        );
    }

    #[test]
    fn a_dotted_entry_goes_with_each_of_its_lines() {
        check_entries(
            HEADER,
            "\"a/b\".version = \"1\"\n\"z/z\" = \"1\"\n\"a/b\".as = \"k\" # c\n",
            "\"z/z\" = \"1\"\n",
        );
        check(
            "project.name = \"x\"\nrequires.packages.\"a/b\" = \"1\"\nrequires.packages.\"z/z\" = \"1\"\n",
            "project.name = \"x\"\nrequires.packages.\"z/z\" = \"1\"\n",
        );
        check(
            "project.name = \"x\"\nrequires.packages.\"a/b\".version.var = \"v\"\n",
            "project.name = \"x\"\n",
        );
        check_entries(
            "[requires]",
            "packages.\"a/b\" = \"1\"\ncapabilities = []\n",
            "capabilities = []\n",
        );
    }

    #[test]
    fn an_entry_of_its_own_header_goes_with_its_section() {
        check_entries(
            "",
            "# above\n[requires.packages.\"a/b\"] # c\n# why\nversion = \"1\" # v\n\nas = \"k\"\n# below\n\n[workspace]\n",
            "# above\n# below\n\n[workspace]\n",
        );
        check_entries(
            "",
            "[requires.packages.\"a/b\"]\npath = \"p\"\n\n[requires.packages.\"z/z\"]\npath = \"q\"\n",
            "[requires.packages.\"z/z\"]\npath = \"q\"\n",
        );
        check_entries(
            "[requires.packages]",
            "\"z/z\" = \"1\"\n\n[requires.packages.\"a/b\"]\n[requires.packages.\"a/b\".version]\nvar = \"v\"\n\n[workspace]\n",
            "\"z/z\" = \"1\"\n\n[workspace]\n",
        );
        check_entries(
            "",
            "[requires.packages.\"a/b\".version]\nvar = \"v\"\n[workspace]\n",
            "[workspace]\n",
        );
    }

    #[test]
    fn an_entry_of_an_inline_table_goes_with_its_comma() {
        let in_table = |before: &str, after: &str| {
            let whole = |entries| format!("packages = {entries} # c\n");
            check_entries("[requires]", &whole(before), &whole(after));
        };
        in_table("{ \"a/b\" = \"1\" }", "{ }");
        in_table("{\"a/b\" = \"1\"}", "{}");
        in_table(
            "{ \"a/b\" = \"1\", \"z/z\" = \"1\" }",
            "{ \"z/z\" = \"1\" }",
        );
        in_table("{\"z/z\" = \"1\",\"a/b\" = \"1\"}", "{\"z/z\" = \"1\"}");
        in_table(
            "{ \"y/y\" = \"1\", \"flow:a/b\" = { path = \"p,{\" } , \"z/z\" = \"1\" }",
            "{ \"y/y\" = \"1\", \"z/z\" = \"1\" }",
        );
        in_table(
            "{ \"z/z\" = \"1\", \"a/b\".version = \"1\", \"a/b\".as = \"k\" }",
            "{ \"z/z\" = \"1\" }",
        );
        in_table(
            "{\n  # y\n  \"y/y\" = \"1\", # one\n  \"a/b\" = \"1\", # two\n  \"z/z\" = \"1\"\n}",
            "{\n  # y\n  \"y/y\" = \"1\", # one\n  \"z/z\" = \"1\"\n}",
        );
        in_table(
            "{\n  \"z/z\" = \"1\", # one\n  \"a/b\" = \"1\" # two\n}",
            "{\n  \"z/z\" = \"1\", # one\n}",
        );
        let project = "project = { name = \"x\" }\n";
        check(
            &format!("{project}requires = {{ packages.\"a/b\" = \"1\", capabilities = [] }}\n"),
            &format!("{project}requires = {{ capabilities = [] }}\n"),
        );
        check(
            &format!("{project}requires.packages = {{ \"a/b\" = \"1\" }}\n"),
            &format!("{project}requires.packages = {{ }}\n"),
        );
    }

    #[test]
    fn carriage_returns_go_with_a_change_only() {
        let text = "\u{feff}[workspace]\r\n[requires.packages]\r\n\"a/b\" = \"1\"\r\n";
        assert_eq!(remove(text, "z/z").unwrap(), text);
        let after = "[workspace]\n[requires.packages]\n";
        assert_eq!(remove(text, "a/b").unwrap(), after);
    }

    #[test]
    fn what_cannot_be_edited_is_refused() {
        for (text, message) in [
            (
                "[[requires.packages.\"a/b\"]]\nversion = \"1\"\n",
                "the requirement `a/b` has a form that cannot be edited",
            ),
            ("x", "not TOML"),
        ] {
            let error = remove(text, "a/b").unwrap_err();
            assert!(error.to_string().contains(message), "{text}: {error}");
        }
        for text in ["", "requires = 1\n", "[requires]\npackages = [1]\n"] {
            assert_eq!(remove(text, "a/b").unwrap(), text);
        }
    }

    const IDS: [&str; 5] = ["c/d", "e/f", "g/h", "i/j", "k/l"];

    fn entries() -> impl Strategy<Value = Vec<&'static str>> {
        let entries = vec![
            "\"c/d\" = \"1\"",
            "# a comment\n\"flow:e/f\" = { version = \"1\" } # c",
            "\"g/h\"   = { path = '../x' }",
            "\"i/j\".version.var = \"v\"\n\"i/j\".as = \"k\"",
            "",
            "\"k/l\" = { registry = \"r\", version = \"*\" }   ",
        ];
        let count = entries.len();
        proptest::sample::subsequence(entries, 0..=count).prop_shuffle()
    }

    proptest! {
        #[test]
        fn what_is_taken_out_is_gone_and_all_else_is_as_it_was(
            entries in entries(),
            id in proptest::sample::select(IDS.to_vec()),
            is_inline in any::<bool>(),
            end in proptest::sample::select(vec!["", "\n# c\n[conflicts]\n", "# end"]),
        ) {
            let project = "[project]\nname = \"x\"\n[requires]\n";
            let is_inline = is_inline && !entries.iter().any(|entry| entry.is_empty() || entry.contains('#'));
            let text = match is_inline {
                true => {
                    let entries: Vec<String> = entries.iter().map(|e| e.replace('\n', ", ")).collect();
                    format!("{project}packages = {{ {} }}\n{end}", entries.join(", "))
                }
                false => format!("{project}[requires.packages]\n{}\n{end}", entries.join("\n")),
            };
            let before = Manifest::parse(&text, Reading::Own).unwrap();
            let edited = remove(&text, id).unwrap();
            let after = Manifest::parse(&edited, Reading::Own).unwrap();
            let ids = |manifest: &Manifest| -> Vec<String> {
                manifest.requires.iter().map(|(id, found)| format!("{id} {:?}", found.source)).collect()
            };
            let kept: Vec<String> = ids(&before)
                .into_iter()
                .filter(|found| !found.starts_with(&format!("{id} ")))
                .collect();
            prop_assert_eq!(ids(&after), kept);
            prop_assert_eq!(edited == text, !before.requires.contains_key(&id.parse().unwrap()));
            for line in text.lines().filter(|line| line.starts_with('#')) {
                prop_assert!(edited.contains(line));
            }
        }

        #[test]
        fn what_was_added_can_be_taken_out(entries in entries()) {
            let text = format!(
                "[project]\nname = \"x\"\n[requires.packages]\n{}\n",
                entries.join("\n")
            );
            let id = "a/b".parse().unwrap();
            let added = set_requirement(&text, &id, &RequirementEdit::Path("p".to_owned())).unwrap();
            prop_assert_ne!(&added, &text);
            prop_assert_eq!(remove(&added, "a/b").unwrap(), text);
        }
    }
}
