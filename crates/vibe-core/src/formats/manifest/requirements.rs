//! Reading what a manifest requires, and what bears on where that comes from: `[requires]`,
//! `[[registry]]`, `[[override]]` and `[conflicts]`.

use std::collections::BTreeMap;

use super::{
    Conflict, Dependency, DependencySource, GitReference, Materialization, Notes, Override,
    Reading, Registry, without_kind,
};
use crate::formats::diagnostic::{Diagnostic, Position};
use crate::formats::reader::{Field, LineIndex, Reader};
use crate::identifier::{Name, PackageId};
use crate::version::Constraint;

/// Keys of a requirement that are accepted and change nothing here.
const ACCEPTED_DEPENDENCY_KEYS: [&str; 5] = ["link", "access", "friend", "auth", "token_env"];

/// Every key that means something in a requirement.
const DEPENDENCY_KEYS: [&str; 13] = [
    "version",
    "registry",
    "path",
    "git",
    "tag",
    "branch",
    "rev",
    "subdir",
    "items",
    "as",
    "install-hook",
    "uninstall-hook",
    "materialization",
];

/// Keys that only a requirement of a foreign repository has. Such a repository need not tag
/// versions, so the requirement need not name one.
const FOREIGN_KEYS: [&str; 4] = ["items", "as", "install-hook", "uninstall-hook"];

/// Keys of a source that cannot stand together.
const CONTRADICTIONS: [(&str, &str); 11] = [
    ("path", "git"),
    ("path", "registry"),
    ("path", "tag"),
    ("path", "branch"),
    ("path", "rev"),
    ("path", "subdir"),
    ("git", "registry"),
    ("registry", "tag"),
    ("registry", "branch"),
    ("registry", "rev"),
    ("registry", "subdir"),
];

pub(super) fn read_requires(
    root: &mut Reader<'_>,
    notes: &mut Notes,
    lines: &LineIndex<'_>,
) -> Result<BTreeMap<PackageId, Dependency>, Diagnostic> {
    let Some(mut table) = root.table("requires")? else {
        return Ok(BTreeMap::new());
    };
    let packages = table.field("packages");
    table.accept(&["capabilities"]);
    notes.unknown(&table);
    let Some(packages) = packages else {
        return Ok(BTreeMap::new());
    };
    match packages.as_table("[requires.packages]") {
        Some(packages) => read_packages(&packages, lines),
        None if packages
            .elements()
            .is_ok_and(|elements| elements.is_empty()) =>
        {
            Ok(BTreeMap::new())
        }
        None => Err(packages
            .wrong("a table")
            .hint("write [requires.packages] with lines of \"group/name\" = \"constraint\"")),
    }
}

fn read_packages(
    packages: &Reader<'_>,
    lines: &LineIndex<'_>,
) -> Result<BTreeMap<PackageId, Dependency>, Diagnostic> {
    let mut requires: BTreeMap<PackageId, Dependency> = BTreeMap::new();
    for field in packages.entries() {
        let id: PackageId = without_kind(field.key)
            .parse()
            .map_err(|error| field.key_error(format!("{error}")))?;
        if let Some(first) = requires.get(&id) {
            let line = first.position.line;
            let message = format!("`{id}` is required twice; the first time at line {line}");
            return Err(field.key_error(message));
        }
        let dependency = read_dependency(&field, &id, lines.position(field.key_offset))?;
        requires.insert(id, dependency);
    }
    Ok(requires)
}

fn read_dependency(
    field: &Field<'_>,
    id: &PackageId,
    position: Position,
) -> Result<Dependency, Diagnostic> {
    if field.as_str().is_some() {
        let source = DependencySource::Registry {
            constraint: field.parse()?,
            registry: None,
        };
        return Ok(Dependency::new(source, position));
    }
    let mut table = field
        .as_table(&format!("the requirement `{id}`"))
        .ok_or_else(|| field.wrong("a constraint or a table"))?;
    let source = read_source(&mut table).or_else(|error| {
        // What is missing may be there under a name that is not quite right.
        table.accept(&DEPENDENCY_KEYS);
        table.accept(&ACCEPTED_DEPENDENCY_KEYS);
        table.refuse_unknown()?;
        Err(error)
    })?;
    let dependency = Dependency {
        source,
        items: table.get("items", Field::names)?,
        alias: table.get("as", Field::component)?,
        install_hook: table.get("install-hook", read_command)?.flatten(),
        uninstall_hook: table.get("uninstall-hook", read_command)?.flatten(),
        materialization: table.get("materialization", Field::word)?,
        position,
    };
    table.accept(&ACCEPTED_DEPENDENCY_KEYS);
    table.refuse_unknown()?;
    check_in_place(&mut table, &dependency)?;
    Ok(dependency)
}

/// A command; `None` for a blank one.
fn read_command(field: &Field<'_>) -> Result<Option<String>, Diagnostic> {
    let command = field.str()?;
    Ok((!command.trim().is_empty()).then(|| command.to_owned()))
}

fn check_in_place(table: &mut Reader<'_>, dependency: &Dependency) -> Result<(), Diagnostic> {
    let is_path = matches!(dependency.source, DependencySource::Path { .. });
    if is_path && dependency.materialization == Some(Materialization::InPlace) {
        let field = table.required("materialization")?;
        let message = format!(
            "`path` and `materialization = \"in-place\"` in {} contradict each other: in-place is a git clone",
            table.title()
        );
        return Err(field.error(message));
    }
    Ok(())
}

fn read_source(table: &mut Reader<'_>) -> Result<DependencySource, Diagnostic> {
    for (one, other) in CONTRADICTIONS {
        if let (Some(_), Some(second)) = (table.field(one), table.field(other)) {
            return Err(contradiction(table, one, other, &second));
        }
    }
    if let Some(name) = read_variable(table)? {
        return Ok(DependencySource::Variable { name });
    }
    if let Some(path) = table.get("path", |field| field.argument().map(str::to_owned))? {
        let constraint = table.get("version", Field::parse)?;
        return Ok(DependencySource::Path { path, constraint });
    }
    if let Some(url) = table.get("git", Field::parse)? {
        return Ok(DependencySource::Git {
            url,
            reference: read_reference(table)?,
            subdir: table.get("subdir", Field::path)?,
        });
    }
    for key in ["tag", "branch", "rev", "subdir"] {
        if let Some(field) = table.field(key) {
            let message = format!("`{key}` in {} needs `git`", table.title());
            return Err(field.key_error(message));
        }
    }
    Ok(DependencySource::Registry {
        constraint: table
            .get("version", Field::parse)?
            .unwrap_or_else(Constraint::any),
        registry: table.get("registry", read_label)?,
    })
}

fn contradiction(table: &Reader<'_>, one: &str, other: &str, second: &Field<'_>) -> Diagnostic {
    let title = table.title();
    second.key_error(format!(
        "`{one}` and `{other}` in {title} contradict each other; keep one"
    ))
}

/// The name in `version.var`.
fn read_variable(table: &mut Reader<'_>) -> Result<Option<String>, Diagnostic> {
    let title = format!("`version` of {}", table.title());
    let Some(mut version) = table
        .field("version")
        .and_then(|field| field.as_table(&title))
    else {
        return Ok(None);
    };
    let name = version.required("var")?.plain_str()?.to_owned();
    version.refuse_unknown()?;
    for key in ["path", "git", "registry", "tag", "branch", "rev", "subdir"] {
        if let Some(field) = table.field(key) {
            return Err(contradiction(table, "version.var", key, &field));
        }
    }
    Ok(Some(name))
}

fn read_reference(table: &mut Reader<'_>) -> Result<GitReference, Diagnostic> {
    let given: Vec<Field<'_>> = ["tag", "branch", "rev", "version"]
        .into_iter()
        .filter_map(|key| table.field(key))
        .collect();
    match given.as_slice() {
        [] if FOREIGN_KEYS.iter().any(|key| table.field(key).is_some()) => {
            Ok(GitReference::Default)
        }
        [] => Err(table
            .error(format!(
                "{} names no `tag`, `branch`, `rev` or `version`",
                table.title()
            ))
            .hint("give exactly one of them beside `git`")),
        [one] if one.key == "tag" => Ok(GitReference::Tag(one.argument()?.to_owned())),
        [one] if one.key == "branch" => Ok(GitReference::Branch(one.argument()?.to_owned())),
        [one] if one.key == "rev" => Ok(GitReference::Rev(one.argument()?.to_owned())),
        [one] => Ok(GitReference::Range(one.parse()?)),
        [one, other, ..] => Err(contradiction(table, one.key, other.key, other)),
    }
}

/// The name of a registry: a label as a package's name is.
fn read_label(field: &Field<'_>) -> Result<String, Diagnostic> {
    let label = field.str()?;
    match label.parse::<Name>() {
        Ok(_) => Ok(label.to_owned()),
        Err(_) => Err(field.wrong("a registry name of a-z, 0-9 and inner hyphens")),
    }
}

/// Only the root's registries count, so those of a package are not looked at.
pub(super) fn read_registries(
    root: &mut Reader<'_>,
    reading: Reading,
) -> Result<Vec<Registry>, Diagnostic> {
    root.accept(&["registry"]);
    if reading == Reading::Package {
        return Ok(Vec::new());
    }
    let mut registries: Vec<Registry> = Vec::new();
    for mut table in root.tables("registry")? {
        let name = table.required("name")?;
        let registry = Registry {
            name: read_label(&name)?,
            url: table.required("url")?.argument()?.to_owned(),
            position: table.position(),
        };
        table.refuse_unknown()?;
        if let Some(first) = registries.iter().find(|first| first.name == registry.name) {
            let line = first.position.line;
            let message = format!(
                "two registries are named `{}`; the first at line {line}",
                first.name
            );
            return Err(name.error(message));
        }
        registries.push(registry);
    }
    Ok(registries)
}

/// Only the root's overrides count, so those of a package are not looked at.
pub(super) fn read_overrides(
    root: &mut Reader<'_>,
    notes: &mut Notes,
) -> Result<Vec<Override>, Diagnostic> {
    root.accept(&["override"]);
    if notes.reading == Reading::Package {
        return Ok(Vec::new());
    }
    let mut overrides: Vec<Override> = Vec::new();
    for mut table in root.tables("override")? {
        let found = read_override(&mut table)?;
        if let Some(first) = overrides
            .iter()
            .find(|first| first.package == found.package)
        {
            let line = first.position.line;
            let message = format!(
                "`{}` is overridden twice; the first time at line {line}",
                found.package
            );
            return Err(table.error(message));
        }
        overrides.push(found);
        notes.unknown(&table);
    }
    Ok(overrides)
}

fn read_override(table: &mut Reader<'_>) -> Result<Override, Diagnostic> {
    let package = table.required("package")?;
    let package = without_kind(package.str()?)
        .parse()
        .map_err(|error| package.error(format!("{error}")))?;
    let position = table.position();
    match read_source(table)? {
        source @ (DependencySource::Path { .. } | DependencySource::Git { .. }) => Ok(Override {
            package,
            source,
            position,
        }),
        _ => Err(table.error(format!(
            "the override of `{package}` names neither `path` nor `git`"
        ))),
    }
}

pub(super) fn read_conflicts(
    root: &mut Reader<'_>,
    notes: &mut Notes,
) -> Result<Vec<Conflict>, Diagnostic> {
    let Some(mut table) = root.table("conflicts")? else {
        return Ok(Vec::new());
    };
    let conflicts = table.get("packages", |field| field.list(read_conflict))?;
    notes.unknown(&table);
    Ok(conflicts.unwrap_or_default())
}

fn read_conflict(field: &Field<'_>) -> Result<Conflict, Diagnostic> {
    let text = without_kind(field.str()?);
    let (id, constraint) = match text.split_once('@') {
        Some((id, constraint)) => (id, constraint.parse()),
        None => (text, Ok(Constraint::any())),
    };
    Ok(Conflict {
        package: id
            .parse()
            .map_err(|error| field.error(format!("{error}")))?,
        constraint: constraint.map_err(|error| field.error(format!("{error}")))?,
    })
}
