//! `.gitmodules` as rows. Its grammar is that of git's configuration; what a row may say is the
//! caller's to judge, and nothing of it acts here.

use std::collections::BTreeMap;

use crate::error::Cause;

/// What one `.gitmodules` says of one submodule. Each list has one value for every time that the
/// key is given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SubmoduleRow {
    /// What the row is called.
    pub name: Vec<u8>,
    /// Where the submodule lies.
    pub paths: Vec<Vec<u8>>,
    /// Where its repository is.
    pub urls: Vec<Vec<u8>>,
    /// What git is to do with it on an update.
    pub updates: Vec<Vec<u8>>,
}

/// The rows of a `.gitmodules` file by name; sections of one name are one row. No file that `text`
/// includes is looked at.
///
/// # Errors
/// `text` is not written as git's configuration is.
pub fn read_gitmodules(text: &[u8]) -> Result<Vec<SubmoduleRow>, Cause> {
    let file = gix::config::File::from_bytes_no_includes(
        text,
        gix::config::file::Metadata::api(),
        gix::config::file::init::Options::default(),
    )
    .map_err(|error| Cause::of(&error))?;
    let mut rows: BTreeMap<Vec<u8>, SubmoduleRow> = BTreeMap::new();
    for section in file.sections() {
        let header = section.header();
        let Some(name) = header
            .subsection_name()
            .filter(|_| header.name().eq_ignore_ascii_case(b"submodule"))
        else {
            continue;
        };
        let row = rows.entry(name.to_vec()).or_insert_with(|| SubmoduleRow {
            name: name.to_vec(),
            ..SubmoduleRow::default()
        });
        let values = |key| section.values(key).into_iter().map(Vec::from);
        row.paths.extend(values("path"));
        row.urls.extend(values("url"));
        row.updates.extend(values("update"));
    }
    Ok(rows.into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A row is shown as its name, paths, urls and updates.
    fn check(text: &str, expected: &[[&str; 4]]) {
        let shown = |values: &[Vec<u8>]| String::from_utf8(values.join(&b'|')).unwrap();
        let found: Vec<[String; 4]> = read_gitmodules(text.as_bytes())
            .unwrap_or_else(|error| panic!("{text}: {error}"))
            .iter()
            .map(|row| {
                let name = String::from_utf8(row.name.clone()).unwrap();
                [
                    name,
                    shown(&row.paths),
                    shown(&row.urls),
                    shown(&row.updates),
                ]
            })
            .collect();
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn rows_are_read_as_git_reads_them() {
        check("", &[]);
        check("# nothing\n[core]\n\tbare = true\n", &[]);
        check(
            "[submodule \"a\"]\n\tpath = lib/a\n\turl = https://host/a\n\tbranch = main\n",
            &[["a", "lib/a", "https://host/a", ""]],
        );
        check(
            "\u{feff}[Submodule \"A b\"] ; note\r\n PATH = \"lib/a #b\" # note\r\n url=../x\\\n/y\r\n",
            &[["A b", "lib/a #b", "../x/y", ""]],
        );
        check(
            "[submodule \"q\\\"\\\\\"]\npath = \"a\\tb\\\"c\\\\d\"\nupdate = !touch x\n",
            &[["q\"\\", "a\tb\"c\\d", "", "!touch x"]],
        );
        check(
            "[submodule \"cr\"]\npath = \"sub\r\"\n",
            &[["cr", "sub\r", "", ""]],
        );
    }

    #[test]
    fn what_is_said_twice_is_there_twice() {
        check(
            "[submodule \"b\"]\n[submodule \"a\"]\npath = x\npath = y\n[submodule \"a\"]\nurl = u\n",
            &[["a", "x|y", "u", ""], ["b", "", "", ""]],
        );
    }

    #[test]
    fn an_include_is_a_section_like_any_other() {
        check(
            "[include]\npath = /etc/passwd\n[submodule \"a\"]\npath = x\n",
            &[["a", "x", "", ""]],
        );
    }

    #[test]
    fn another_grammar_is_refused() {
        for text in [
            "[submodule \"a\"\npath = x\n",
            "[submodule \"a\"]\npath = \"x\n",
            "[submodule \"a\"]\n= x\n",
        ] {
            assert!(read_gitmodules(text.as_bytes()).is_err(), "{text}");
        }
    }
}
