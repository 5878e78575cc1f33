//! The items of a package: what its manifest declares, else what lies where items lie by convention.
//!
//! A declared item replaces discovery altogether, so that a package whose files lie elsewhere says
//! all of it in one place. Nothing here says that an agent program sees an item.

use std::collections::BTreeSet;

use vibe_core::RelPath;
use vibe_core::formats::manifest::Item;

/// How the file ends that an item of one file is.
const TEXT_SUFFIX: &str = ".md";

/// The file that makes a directory a skill.
const SKILL_FILE: &str = "SKILL.md";

/// The directories below the root of a package that hold items, and the kind of item in each.
pub const DIRECTORIES: [(&str, &str); 6] = [
    ("agents", "agent"),
    ("commands", "command"),
    ("hooks", "hook"),
    ("rules", "rule"),
    ("skills", "skill"),
    ("tools", "tool"),
];

/// An item of a package. Ordered by kind, then by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PackageItem {
    /// Its kind, one of those that a manifest can declare.
    pub kind: String,
    /// Its name, a single component of a path.
    pub name: String,
    /// The file, or for a tool the directory, that it is.
    pub path: RelPath,
    /// The package has nothing at this path; only a declared item can be so.
    pub is_missing: bool,
}

/// The items of a package with these `files`, of which its manifest declares `declared`; in order,
/// each once.
pub fn items<'a>(
    declared: &[Item],
    files: impl IntoIterator<Item = &'a RelPath>,
) -> Vec<PackageItem> {
    let found: BTreeSet<PackageItem> = match declared.is_empty() {
        true => files.into_iter().filter_map(by_convention).collect(),
        false => {
            let files: BTreeSet<&str> = files.into_iter().map(RelPath::as_str).collect();
            let item = |item: &Item| PackageItem {
                kind: item.kind.clone(),
                name: item.name.clone(),
                path: item.path.clone(),
                is_missing: !has(&files, &item.path),
            };
            declared.iter().map(item).collect()
        }
    };
    found.into_iter().collect()
}

/// Whether `path` is one of `files` or a directory that holds one.
fn has(files: &BTreeSet<&str>, path: &RelPath) -> bool {
    let below = format!("{path}/");
    let mut after = files.range(&*below..);
    files.contains(path.as_str()) || after.next().is_some_and(|file| file.starts_with(&below))
}

/// The item that a file makes by where it lies.
fn by_convention(file: &RelPath) -> Option<PackageItem> {
    let components: Vec<&str> = file.components().collect();
    let (directory, below) = components.split_first()?;
    let (_, kind) = DIRECTORIES.iter().find(|(name, _)| name == directory)?;
    let (name, path) = match (*kind, below) {
        ("skill", [name, SKILL_FILE]) => (*name, file.clone()),
        ("tool", [name, _, ..]) => (*name, file.ancestors().nth(1)?),
        ("skill" | "tool", _) => return None,
        (_, [text]) => (text.strip_suffix(TEXT_SUFFIX)?, file.clone()),
        _ => return None,
    };
    (!name.is_empty()).then(|| PackageItem {
        kind: (*kind).to_owned(),
        name: name.to_owned(),
        path,
        is_missing: false,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::new(text).unwrap()
    }

    fn shown(declared: &[Item], files: &[&str]) -> Vec<String> {
        let files: Vec<RelPath> = files.iter().map(|file| path(file)).collect();
        let missing = |item: &PackageItem| if item.is_missing { " missing" } else { "" };
        items(declared, &files)
            .iter()
            .map(|item| format!("{}:{} {}{}", item.kind, item.name, item.path, missing(item)))
            .collect()
    }

    fn declared(kind: &str, name: &str, at: &str) -> Item {
        Item {
            kind: kind.to_owned(),
            name: name.to_owned(),
            path: path(at),
        }
    }

    #[test]
    fn items_are_found_where_they_lie_by_convention() {
        let files = [
            "agents/reviewer.md",
            "commands/commit.md",
            "hooks/format.md",
            "rules/style.md",
            "skills/review/SKILL.md",
            "skills/review/more.md",
            "tools/lint/bin/run",
            "tools/lint/readme.md",
            "vibe.toml",
        ];
        let expected = [
            "agent:reviewer agents/reviewer.md",
            "command:commit commands/commit.md",
            "hook:format hooks/format.md",
            "rule:style rules/style.md",
            "skill:review skills/review/SKILL.md",
            "tool:lint tools/lint",
        ];
        assert_eq!(shown(&[], &files), expected);
    }

    #[test]
    fn what_only_resembles_an_item_is_none() {
        for file in [
            "agents/deep/one.md",
            "agents/notes.txt",
            "agents/.md",
            "hooks/pre-install.sh",
            "skills/SKILL.md",
            "skills/review/skill.md",
            "skills/review/deep/SKILL.md",
            "tools/readme.md",
            "docs/skills/review/SKILL.md",
            "Agents/one.md",
        ] {
            assert_eq!(shown(&[], &[file]), Vec::<String>::new(), "{file}");
        }
    }

    #[test]
    fn declared_items_replace_those_that_would_be_found() {
        let items = [
            declared("skill", "review", "prose/review"),
            declared("agent", "gone", "prose/gone.md"),
        ];
        let files = [
            "prose/gone-not.md",
            "prose/review/SKILL.md",
            "rules/style.md",
        ];
        let expected = [
            "agent:gone prose/gone.md missing",
            "skill:review prose/review",
        ];
        assert_eq!(shown(&items, &files), expected);
    }

    #[test]
    fn a_declared_path_is_there_as_a_file_or_as_a_directory() {
        let check = |at: &str, expected: bool| {
            let files = [path("prose/review-2"), path("prose/review/SKILL.md")];
            let found = items(&[declared("skill", "review", at)], &files);
            assert_eq!(!found[0].is_missing, expected, "{at}");
        };
        check("prose/review/SKILL.md", true);
        check("prose/review", true);
        check("prose/rev", false);
        check("prose/review/SKILL.md/more", false);
    }
}
