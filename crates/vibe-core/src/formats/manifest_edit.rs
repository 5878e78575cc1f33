//! Edits of `vibe.toml` that keep its comments and order.

use toml_edit::{Array, Decor, DocumentMut, InlineTable, Item, RawString, Table, Value, value};

use crate::formats::decode::decode;
use crate::formats::diagnostic::Diagnostic;
use crate::formats::manifest::{GitReference, without_kind};
use crate::formats::reader::parse_document;
use crate::git_url::RemoteUrl;
use crate::identifier::PackageId;
use crate::version::Constraint;

/// What a requirement shall say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequirementEdit {
    /// These versions.
    Constraint(Constraint),
    /// The package in this directory, relative to the manifest.
    Path(String),
    /// The package at the root of this repository.
    Git {
        /// The repository.
        url: RemoteUrl,
        /// What is required of it.
        reference: GitReference,
    },
}

/// Keys of a requirement that a path takes the place of.
const SOURCE_KEYS: [&str; 7] = [
    "git", "tag", "branch", "rev", "subdir", "registry", "version",
];

/// A new project's `vibe.toml`.
pub fn new_project(name: &str) -> String {
    let mut project = Table::new();
    project.insert("name", value(name));
    let mut document = DocumentMut::new();
    document.insert("project", Item::Table(project));
    document.to_string()
}

/// `text`, a manifest, with `id` required as `edit` says. An entry that stands keeps its place, its
/// key, its form and whatever else it says; a new one comes last. A manifest that says so already
/// comes back byte for byte; a changed one has no byte order mark and no carriage returns.
///
/// # Errors
/// A text that is no TOML, or whose requirements have a form that cannot be edited.
pub fn set_requirement(
    text: &str,
    id: &PackageId,
    edit: &RequirementEdit,
) -> Result<String, Diagnostic> {
    let clean = decode(text.as_bytes())?;
    let mut document = parse_document(&clean)?.into_mut();
    let packages = packages_of(&mut document)?;
    let changed = match key_of(packages, id).and_then(|key| entry_mut(packages, &key)) {
        Some(entry) => change(entry, id, edit)?,
        None => add(packages, id.as_str(), new_entry(edit)),
    };
    Ok(match changed {
        true => document.to_string(),
        false => text.to_owned(),
    })
}

/// The key under which `id` is required, with or without a kind.
pub(super) fn key_of(packages: &Item, id: &PackageId) -> Option<String> {
    let mut keys = packages.as_table_like()?.iter().map(|(key, _)| key);
    keys.find(|key| without_kind(key) == id.as_str())
        .map(str::to_owned)
}

pub(super) fn not_editable(what: &str) -> Diagnostic {
    Diagnostic::new(format!("{what} has a form that cannot be edited"))
        .hint("write the requirement into vibe.toml by hand")
}

/// The table of requirements, made where there is none.
fn packages_of(document: &mut DocumentMut) -> Result<&mut Item, Diagnostic> {
    let role_end = end_of_role(document);
    let requires = document.entry("requires").or_insert_with(implicit_table);
    let new = match requires.as_table() {
        Some(table) if !table.is_dotted() => header_table(table.position().or(role_end)),
        _ => value(InlineTable::new()),
    };
    let requires = requires
        .as_table_like_mut()
        .ok_or_else(|| not_editable("`requires`"))?;
    let is_empty_array = |item: &Item| item.as_array().is_some_and(Array::is_empty);
    if requires.get("packages").is_some_and(is_empty_array) {
        requires.insert("packages", value(InlineTable::new()));
    }
    let packages = requires.entry("packages").or_insert(new);
    match packages.is_table_like() {
        true => Ok(packages),
        false => Err(not_editable("[requires.packages]")),
    }
}

/// The value of a key. The index operators of `toml_edit` would leave a hole for a missing one.
fn entry_mut<'a>(table: &'a mut Item, key: &str) -> Option<&'a mut Item> {
    table.as_table_like_mut()?.get_mut(key)
}

fn implicit_table() -> Item {
    let mut table = Table::new();
    table.set_implicit(true);
    Item::Table(table)
}

fn header_table(position: Option<isize>) -> Item {
    let mut table = Table::new();
    table.set_position(position);
    Item::Table(table)
}

/// The position of the last header of the role's own tables: the requirements come after it.
fn end_of_role(document: &DocumentMut) -> Option<isize> {
    ["project", "package", "workspace"]
        .iter()
        .find_map(|role| document.get(role).and_then(Item::as_table))
        .and_then(last_position)
}

fn last_position(table: &Table) -> Option<isize> {
    table
        .iter()
        .filter_map(|(_, item)| item.as_table().and_then(last_position))
        .chain(table.position())
        .max()
}

fn new_entry(edit: &RequirementEdit) -> Value {
    match edit {
        RequirementEdit::Constraint(constraint) => constraint.as_str().into(),
        RequirementEdit::Path(path) => {
            let mut table = InlineTable::new();
            table.insert("path", path.as_str().into());
            table.into()
        }
        RequirementEdit::Git { url, reference } => {
            let mut table = InlineTable::new();
            table.insert("git", url.as_str().into());
            if let Some((key, text)) = reference_entry(reference) {
                table.insert(key, text.into());
            }
            table.into()
        }
    }
}

/// The key and the value that say `reference`; `None` for the default branch.
fn reference_entry(reference: &GitReference) -> Option<(&'static str, &str)> {
    match reference {
        GitReference::Tag(tag) => Some(("tag", tag)),
        GitReference::Branch(branch) => Some(("branch", branch)),
        GitReference::Rev(revision) => Some(("rev", revision)),
        GitReference::Range(constraint) => Some(("version", constraint.as_str())),
        GitReference::Default => None,
    }
}

/// Adds an entry after the last one. In an inline table the blanks before the closing brace stay
/// there.
fn add(table: &mut Item, key: &str, mut entry: Value) -> bool {
    if let Some(inline) = table.as_inline_table_mut()
        && let Some(blanks) = take_last_blanks(inline)
    {
        *entry.decor_mut() = Decor::new(" ", blanks);
    }
    if let Some(table) = table.as_table_like_mut() {
        table.insert(key, Item::Value(entry));
    }
    true
}

fn take_last_blanks(table: &mut InlineTable) -> Option<RawString> {
    let (_, last) = table.iter_mut().last()?;
    let suffix = last.decor().suffix()?.clone();
    let is_blank = suffix.as_str().is_some_and(|text| text.trim().is_empty());
    is_blank.then(|| {
        last.decor_mut().set_suffix("");
        suffix
    })
}

/// Changes an entry; whether anything had to change.
fn change(entry: &mut Item, id: &PackageId, edit: &RequirementEdit) -> Result<bool, Diagnostic> {
    if entry.is_str() {
        return Ok(replace(entry, new_entry(edit)));
    }
    if !entry.is_table_like() {
        return Err(not_editable(&format!("the requirement `{id}`")));
    }
    match edit {
        RequirementEdit::Constraint(constraint) => {
            refuse_pinned(entry, id)?;
            Ok(set_string(entry, "version", constraint.as_str()))
        }
        RequirementEdit::Path(path) => Ok(set_path(entry, path)),
        RequirementEdit::Git { url, reference } => Ok(set_git(entry, url, reference)),
    }
}

/// Puts `new` in the place of a value, within the same blanks and comments. A string that says the
/// same stays as it is written.
fn replace(entry: &mut Item, mut new: Value) -> bool {
    if entry.is_str() && entry.as_str() == new.as_str() {
        return false;
    }
    if let Some(old) = entry.as_value() {
        *new.decor_mut() = old.decor().clone();
    }
    *entry = Item::Value(new);
    true
}

fn refuse_pinned(entry: &Item, id: &PackageId) -> Result<(), Diagnostic> {
    let mut pins = ["tag", "branch", "rev"].iter();
    match pins.find(|key| entry.get(key).is_some()) {
        None => Ok(()),
        Some(pin) => Err(Diagnostic::new(format!(
            "`{id}` is required by `{pin}`, which leaves no choice of versions"
        ))
        .hint(format!("replace `{pin}` by `version` in vibe.toml"))),
    }
}

/// A path takes the place of every other source.
fn set_path(entry: &mut Item, path: &str) -> bool {
    if entry.get("path").is_none()
        && let Some(table) = entry.as_table_like_mut()
    {
        for key in SOURCE_KEYS {
            table.remove(key);
        }
    }
    set_string(entry, "path", path)
}

/// A repository at its reference takes the place of every other source.
fn set_git(entry: &mut Item, url: &RemoteUrl, reference: &GitReference) -> bool {
    let pin = reference_entry(reference);
    let keeps = |key: &str| key == "git" || pin.is_some_and(|(kept, _)| kept == key);
    let mut changed = set_string(entry, "git", url.as_str());
    if let Some((key, text)) = pin {
        changed |= set_string(entry, key, text);
    }
    // What is there last keeps the blanks before the closing brace, so the new keys come first.
    if let Some(table) = entry.as_table_like_mut() {
        let others = SOURCE_KEYS.into_iter().chain(["path"]);
        for key in others.filter(|key| !keeps(key)) {
            changed |= table.remove(key).is_some();
        }
    }
    changed
}

fn set_string(table: &mut Item, key: &str, text: &str) -> bool {
    match entry_mut(table, key) {
        Some(entry) => replace(entry, text.into()),
        None => add(table, key, text.into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::manifest::{DependencySource, Manifest, Reading};
    use proptest::prelude::*;

    fn constraint(text: &str) -> RequirementEdit {
        RequirementEdit::Constraint(text.parse().unwrap())
    }

    fn path(text: &str) -> RequirementEdit {
        RequirementEdit::Path(text.to_owned())
    }

    fn set(text: &str, id: &str, edit: &RequirementEdit) -> Result<String, Diagnostic> {
        set_requirement(text, &id.parse().unwrap(), edit)
    }

    /// Setting `edit` for `a/b` turns `before` into `after`, and setting it again changes nothing.
    fn check(before: &str, edit: RequirementEdit, after: &str) {
        let found = set(before, "a/b", &edit).unwrap();
        assert_eq!(found, after, "from:\n{before}");
        assert_eq!(set(after, "a/b", &edit).unwrap(), after);
        Manifest::parse(after, Reading::Own).unwrap();
    }

    #[test]
    fn a_new_project_has_its_name_and_nothing_else() {
        assert_eq!(new_project("hello"), "[project]\nname = \"hello\"\n");
        let text = new_project("a \"b\"");
        let manifest = Manifest::parse(&text, Reading::Own).unwrap();
        assert_eq!(manifest.project.unwrap().name, "a \"b\"");
    }

    #[test]
    fn the_first_requirement_follows_the_role() {
        check(
            "[project]\nname = \"x\"\n",
            constraint("^1"),
            "[project]\nname = \"x\"\n\n[requires.packages]\n\"a/b\" = \"^1\"\n",
        );
        check(
            "# top\n[project]\nname = \"x\" # here\n\n# the registry\n[[registry]]\nname = \"r\"\nurl = \"u\"\n# end\n",
            path("../b"),
            "# top\n[project]\nname = \"x\" # here\n\n[requires.packages]\n\"a/b\" = { path = \"../b\" }\n\n# the registry\n[[registry]]\nname = \"r\"\nurl = \"u\"\n# end\n",
        );
        check(
            "[[registry]]\nname = \"r\"\nurl = \"u\"\n[workspace]\nmembers = []\n[workspace.versions]\nv = \"1\"\n[[override]]\npackage = \"c/d\"\npath = \"x\"\n",
            constraint("1"),
            "[[registry]]\nname = \"r\"\nurl = \"u\"\n[workspace]\nmembers = []\n[workspace.versions]\nv = \"1\"\n\n[requires.packages]\n\"a/b\" = \"1\"\n[[override]]\npackage = \"c/d\"\npath = \"x\"\n",
        );
        check(
            "[project]\nname = \"x\"\n[requires]\ncapabilities = []\n[workspace]\n",
            constraint("1"),
            "[project]\nname = \"x\"\n[requires]\ncapabilities = []\n\n[requires.packages]\n\"a/b\" = \"1\"\n[workspace]\n",
        );
    }

    #[test]
    fn a_repository_takes_the_place_of_another_source() {
        let git = |reference| RequirementEdit::Git {
            url: "https://h/x".parse().unwrap(),
            reference,
        };
        let project = "[project]\nname = \"x\"\n[requires.packages]\n";
        for (before, reference, after) in [
            (
                "",
                GitReference::Tag("v1".to_owned()),
                "{ git = \"https://h/x\", tag = \"v1\" }",
            ),
            (
                "\"a/b\" = \"^1\" # why\n",
                GitReference::Range("^2".parse().unwrap()),
                "{ git = \"https://h/x\", version = \"^2\" } # why",
            ),
            (
                "\"a/b\" = { path = \"../b\", materialization = \"hardlink\" }\n",
                GitReference::Branch("main".to_owned()),
                "{ materialization = \"hardlink\", git = \"https://h/x\", branch = \"main\" }",
            ),
            (
                "\"a/b\" = { git = \"https://h/x\", tag = \"v1\" }\n",
                GitReference::Rev("0f".to_owned()),
                "{ git = \"https://h/x\", rev = \"0f\" }",
            ),
        ] {
            let before = format!("{project}{before}");
            check(
                &before,
                git(reference),
                &format!("{project}\"a/b\" = {after}\n"),
            );
        }
    }

    #[test]
    fn a_new_requirement_comes_last() {
        check(
            "[project]\nname = \"x\"\n\n[requires.packages]\n# why\n\"z/z\"   = '1'  # because\n\n# next\n[workspace]\n",
            constraint("^1"),
            "[project]\nname = \"x\"\n\n[requires.packages]\n# why\n\"z/z\"   = '1'  # because\n\"a/b\" = \"^1\"\n\n# next\n[workspace]\n",
        );
        check(
            "project.name = \"x\"\nrequires.packages.\"z/z\" = \"1\"\n",
            constraint("^1"),
            "project.name = \"x\"\nrequires.packages.\"z/z\" = \"1\"\nrequires.packages.\"a/b\" = \"^1\"\n",
        );
        check(
            "project.name = \"x\"\nrequires.capabilities = []\n",
            constraint("^1"),
            "project.name = \"x\"\nrequires.capabilities = []\nrequires.packages = { \"a/b\" = \"^1\" }\n",
        );
        check(
            "[project]\nname = \"x\"\n[requires.packages]\n\"z/z\" = \"1\"   \n",
            constraint("^1"),
            "[project]\nname = \"x\"\n[requires.packages]\n\"z/z\" = \"1\"   \n\"a/b\" = \"^1\"\n",
        );
        check(
            "[project]\nname = \"x\"\n[requires.packages.\"z/z\"]\nversion = \"1\"\n",
            constraint("^1"),
            "[project]\nname = \"x\"\n\n[requires.packages]\n\"a/b\" = \"^1\"\n[requires.packages.\"z/z\"]\nversion = \"1\"\n",
        );
    }

    #[test]
    fn an_inline_table_of_requirements_stays_inline() {
        let project = "[project]\nname = \"x\"\n[requires]\n";
        for (before, after) in [
            ("packages = []\n", "packages = { \"a/b\" = \"^1\" }\n"),
            (
                "packages = {} # c\n",
                "packages = { \"a/b\" = \"^1\" } # c\n",
            ),
            (
                "packages = { \"z/z\" = \"1\" } # c\n",
                "packages = { \"z/z\" = \"1\", \"a/b\" = \"^1\" } # c\n",
            ),
            (
                "packages = {\"z/z\" = \"1\"}\n",
                "packages = {\"z/z\" = \"1\", \"a/b\" = \"^1\"}\n",
            ),
        ] {
            let (before, after) = (format!("{project}{before}"), format!("{project}{after}"));
            check(&before, constraint("^1"), &after);
        }
    }

    #[test]
    fn an_inline_table_over_lines_keeps_its_comments() {
        let before =
            "[workspace]\n[requires]\npackages = {\n  \"z/z\" = \"1\", # one\n  \"y/y\" = \"1\"";
        check(
            &format!("{before} # two\n}}\n"),
            constraint("^1"),
            &format!("{before} # two\n, \"a/b\" = \"^1\" }}\n"),
        );
        check(
            &format!("{before}, # two\n}}\n"),
            constraint("^1"),
            &format!("{before}, \"a/b\" = \"^1\", # two\n}}\n"),
        );
    }

    #[test]
    fn carriage_returns_go_with_the_first_change() {
        let text = "\u{feff}[workspace]\r\n[requires.packages]\r\n\"a/b\" = \"1\" # c\r\n";
        assert_eq!(set(text, "a/b", &constraint("1")).unwrap(), text);
        assert_eq!(
            set(text, "a/b", &constraint("2")).unwrap(),
            "[workspace]\n[requires.packages]\n\"a/b\" = \"2\" # c\n"
        );
    }

    /// The entry `before` becomes `after`.
    fn check_entry(before: &str, edit: RequirementEdit, after: &str) {
        let file = |entry: &str| {
            format!(
                "[project]\nname = \"x\"\n\n[requires.packages]\n# one\n{entry}\n\"z/z\" = \"1\" # two\n"
            )
        };
        check(&file(before), edit, &file(after));
    }

    #[test]
    fn an_entry_keeps_its_form_and_what_else_it_says() {
        check_entry(
            "\"a/b\"  =  \"1\"  # c",
            constraint("^2"),
            "\"a/b\"  =  \"^2\"  # c",
        );
        check_entry("'flow:a/b' = '1'", constraint("^2"), "'flow:a/b' = \"^2\"");
        check_entry("\"a/b\" = '^2'", constraint("^2"), "\"a/b\" = '^2'");
        check_entry(
            "\"a/b\" = { registry = \"r\", version = '1' , as = \"k\" } # c",
            constraint("^2"),
            "\"a/b\" = { registry = \"r\", version = \"^2\" , as = \"k\" } # c",
        );
        check_entry(
            "\"a/b\" = { registry = \"r\" }",
            constraint("^2"),
            "\"a/b\" = { registry = \"r\", version = \"^2\" }",
        );
        check_entry(
            "\"a/b\" = { path = \"p\" }",
            constraint("^2"),
            "\"a/b\" = { path = \"p\", version = \"^2\" }",
        );
        check_entry(
            "\"a/b\" = { version.var = \"core\" }",
            constraint("^2"),
            "\"a/b\" = { version = \"^2\" }",
        );
        check_entry(
            "\"a/b\" = \"1\" # c",
            path("../b"),
            "\"a/b\" = { path = \"../b\" } # c",
        );
        check_entry(
            "\"a/b\" = { as = \"k\", path = \"p\" }",
            path("../b"),
            "\"a/b\" = { as = \"k\", path = \"../b\" }",
        );
        check_entry(
            "\"a/b\" = { git = \"u\", tag = \"t\", subdir = \"s\", as = \"k\" }",
            path("../b"),
            "\"a/b\" = { as = \"k\", path = \"../b\" }",
        );
        check_entry(
            "\"a/b\" = { registry = \"r\", version = \"1\" }",
            path("../b"),
            "\"a/b\" = { path = \"../b\" }",
        );
    }

    #[test]
    fn an_entry_of_its_own_header_is_changed_in_place() {
        check(
            "[project]\nname = \"x\"\n[requires.packages.\"a/b\"]\n# why\nversion = \"1\" # c\nas = \"k\"\n",
            constraint("^2"),
            "[project]\nname = \"x\"\n[requires.packages.\"a/b\"]\n# why\nversion = \"^2\" # c\nas = \"k\"\n",
        );
        check(
            "[project]\nname = \"x\"\n[requires.packages]\n\"a/b\".version.var = \"core\"\n",
            constraint("^2"),
            "[project]\nname = \"x\"\n[requires.packages]\n\"a/b\".version = \"^2\"\n",
        );
    }

    #[test]
    fn what_cannot_be_edited_is_refused() {
        for (text, message) in [
            (
                "[requires.packages]\n\"a/b\" = { git = \"u\", tag = \"t\" }",
                "`a/b` is required by `tag`",
            ),
            (
                "[requires.packages]\n\"a/b\" = { git = \"u\", branch = \"t\" }",
                "`a/b` is required by `branch`",
            ),
            (
                "[requires.packages]\n\"a/b\" = { git = \"u\", rev = \"t\" }",
                "`a/b` is required by `rev`",
            ),
            (
                "[requires.packages]\n\"a/b\" = 1",
                "the requirement `a/b` has a form that cannot be edited",
            ),
            (
                "requires = 1",
                "`requires` has a form that cannot be edited",
            ),
            (
                "[requires]\npackages = [1]",
                "[requires.packages] has a form that cannot be edited",
            ),
            ("x", "not TOML"),
        ] {
            let error = set(text, "a/b", &constraint("1")).unwrap_err();
            assert!(error.to_string().contains(message), "{text}: {error}");
        }
    }

    fn entries() -> impl Strategy<Value = Vec<&'static str>> {
        let entries = vec![
            "\"c/d\" = \"1\"",
            "# a comment\n\"flow:e/f\" = { version = \"1\" } # c",
            "\"g/h\"   = { path = '../x' }",
            "\"i/j\" = { version.var = \"v\" }",
            "",
            "\"k/l\" = { registry = \"r\", version = \"*\" }   ",
        ];
        let count = entries.len();
        proptest::sample::subsequence(entries, 0..=count).prop_shuffle()
    }

    fn layouts() -> impl Strategy<Value = String> {
        let before = proptest::sample::select(vec![
            "",
            "[workspace]\n\n",
            "# c\n\n[[registry]]\nname = \"r\"\nurl = \"u\"\n",
        ]);
        let after = proptest::sample::select(vec![
            "",
            "\n# c\n[[override]]\npackage = \"c/d\"\npath = \"x\"\n",
            "[conflicts]\n",
            "# end",
        ]);
        let header = proptest::sample::select(vec![
            "[requires.packages]",
            "  [ requires . packages ] # c",
            "[requires]\n\n[requires.\"packages\"]",
        ]);
        (before, header, entries(), after).prop_map(|(before, header, entries, after)| {
            let project = "[project]\nname = \"x\"\n";
            if entries.is_empty() {
                return format!("{before}{project}{after}");
            }
            format!("{before}{project}{header}\n{}\n{after}", entries.join("\n"))
        })
    }

    fn edits() -> impl Strategy<Value = RequirementEdit> {
        prop_oneof![
            "(\\^|=|~)?[0-9]\\.[1-9]{1,2}".prop_map(|text| constraint(&text)),
            "[a-z./ \"\\\\é]{0,8}x".prop_map(RequirementEdit::Path),
        ]
    }

    proptest! {
        #[test]
        fn what_is_set_is_found_and_setting_it_again_changes_nothing(
            text in layouts(),
            id in proptest::sample::select(vec!["a/b", "c/d", "e/f", "g/h", "i/j", "k/l"]),
            edit in edits(),
        ) {
            let edited = set(&text, id, &edit).unwrap();
            let manifest = Manifest::parse(&edited, Reading::Own).unwrap();
            let source = &manifest.requires[&id.parse().unwrap()].source;
            match (&edit, source) {
                (RequirementEdit::Path(wanted), DependencySource::Path { path, .. }) => {
                    prop_assert_eq!(path, wanted);
                }
                (RequirementEdit::Constraint(wanted), DependencySource::Registry { constraint, .. }) => {
                    prop_assert_eq!(constraint, wanted);
                }
                (RequirementEdit::Constraint(wanted), DependencySource::Path { constraint, .. }) => {
                    prop_assert_eq!(constraint.as_ref(), Some(wanted));
                }
                other => prop_assert!(false, "{:?}", other),
            }
            prop_assert_eq!(set(&edited, id, &edit).unwrap(), edited.clone());
            let before = Manifest::parse(&text, Reading::Own).unwrap();
            for kept in before.requires.keys() {
                prop_assert!(manifest.requires.contains_key(kept));
            }
            for line in text.lines().filter(|line| line.starts_with('#')) {
                prop_assert!(edited.contains(line));
            }
        }
    }
}
