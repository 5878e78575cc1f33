//! Edits of `vibe.toml` that keep its comments and order.

use toml_edit::{DocumentMut, InlineTable, Item, RawString, Table, TableLike, Value, value};

use crate::formats::diagnostic::Diagnostic;
use crate::formats::manifest::without_kind;
use crate::formats::reader::parse_document;
use crate::identifier::PackageId;
use crate::version::Constraint;

/// What a requirement shall say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RequirementEdit {
    /// These versions.
    Constraint(Constraint),
    /// The package in this directory, relative to the manifest.
    Path(String),
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
/// comes back byte for byte.
///
/// # Errors
/// A text that is no TOML, or whose requirements have a form that cannot be edited.
pub fn set_requirement(
    text: &str,
    id: &PackageId,
    edit: &RequirementEdit,
) -> Result<String, Diagnostic> {
    let mut document = parse_document(text)?.into_mut();
    let packages = packages_of(&mut document)?;
    let known = packages
        .iter()
        .map(|(key, _)| key)
        .find(|key| without_kind(key) == id.as_str())
        .map(str::to_owned);
    let changed = match known.and_then(|key| packages.get_mut(&key)) {
        Some(entry) => change(entry, id, edit)?,
        None => {
            add(packages, id.as_str(), new_entry(edit));
            true
        }
    };
    Ok(match changed {
        true => document.to_string(),
        false => text.to_owned(),
    })
}

fn not_editable(what: &str) -> Diagnostic {
    Diagnostic::new(format!("{what} has a form that cannot be edited"))
        .hint("write the requirement into vibe.toml by hand")
}

/// The table of requirements, made where there is none.
fn packages_of(document: &mut DocumentMut) -> Result<&mut dyn TableLike, Diagnostic> {
    let position = end_of_role(document);
    let requires = document.entry("requires").or_insert_with(implicit_table);
    let requires_is_header = requires.is_table();
    let position = requires
        .as_table()
        .and_then(|table| (!table.is_implicit()).then(|| table.position())?)
        .or(position);
    let requires = requires
        .as_table_like_mut()
        .ok_or_else(|| not_editable("`requires`"))?;
    let empty_array = requires
        .get("packages")
        .is_some_and(|item| item.as_array().is_some_and(toml_edit::Array::is_empty));
    if empty_array || (!requires_is_header && !requires.contains_key("packages")) {
        requires.insert("packages", value(InlineTable::new()));
    }
    requires
        .entry("packages")
        .or_insert_with(|| header_table(position))
        .as_table_like_mut()
        .ok_or_else(|| not_editable("[requires.packages]"))
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
    }
}

/// Adds an entry after the last one. In an inline table the space before the closing brace stays
/// there.
fn add(packages: &mut dyn TableLike, key: &str, mut entry: Value) {
    let suffix = last_suffix(packages);
    if let Some(suffix) = suffix {
        entry.decor_mut().set_prefix(" ");
        entry.decor_mut().set_suffix(suffix);
    }
    packages.insert(key, Item::Value(entry));
}

/// Takes the blank space after the last value of an inline table.
fn last_suffix(packages: &mut dyn TableLike) -> Option<RawString> {
    let is_inline = packages.iter().all(|(_, item)| item.is_value()) && !packages.is_dotted();
    let (_, item) = packages.iter_mut().last()?;
    let decor = item.as_value_mut().filter(|_| is_inline)?.decor_mut();
    let suffix = decor.suffix()?.clone();
    let blank = suffix.as_str().is_some_and(|text| text.trim().is_empty());
    blank.then(|| {
        decor.set_suffix("");
        suffix
    })
}

/// Changes an entry; whether anything had to change.
fn change(entry: &mut Item, id: &PackageId, edit: &RequirementEdit) -> Result<bool, Diagnostic> {
    if entry.is_str() {
        return Ok(replace(entry, new_entry(edit)));
    }
    let table = entry
        .as_table_like_mut()
        .ok_or_else(|| not_editable(&format!("the requirement `{id}`")))?;
    match edit {
        RequirementEdit::Constraint(constraint) => set_version(table, id, constraint),
        RequirementEdit::Path(path) => Ok(set_path(table, path)),
    }
}

/// Puts `new` in the place of a value, within the same blanks and comments. A string that says the
/// same stays as it is written.
fn replace(entry: &mut Item, mut new: Value) -> bool {
    if new.as_str().is_some() && entry.as_str().map(str::trim) == new.as_str() {
        return false;
    }
    if let Some(old) = entry.as_value() {
        *new.decor_mut() = old.decor().clone();
    }
    *entry = Item::Value(new);
    true
}

fn set_version(
    table: &mut dyn TableLike,
    id: &PackageId,
    constraint: &Constraint,
) -> Result<bool, Diagnostic> {
    if let Some(pinned) = ["tag", "branch", "rev"]
        .iter()
        .find(|key| table.contains_key(key))
    {
        let message =
            format!("`{id}` is required by `{pinned}`, which leaves no choice of versions");
        return Err(
            Diagnostic::new(message).hint(format!("replace `{pinned}` by `version` in vibe.toml"))
        );
    }
    Ok(set_string(table, "version", constraint.as_str()))
}

fn set_path(table: &mut dyn TableLike, path: &str) -> bool {
    if table.contains_key("path") {
        return set_string(table, "path", path);
    }
    for key in SOURCE_KEYS {
        table.remove(key);
    }
    set_string(table, "path", path)
}

fn set_string(table: &mut dyn TableLike, key: &str, text: &str) -> bool {
    match table.get_mut(key) {
        Some(entry) => replace(entry, text.into()),
        None => {
            add(table, key, text.into());
            true
        }
    }
}
