//! `vibe.toml`: what a project asks for, what a package is.

mod model;
mod requirements;

pub use model::{
    Boot, Conflict, Dependency, DependencySource, GitReference, HookTightening, Hooks, Item, Kind,
    Manifest, Materialization, Override, Package, Project, Projection, Publish, Reading, Registry,
    Workspace,
};

use std::collections::BTreeMap;

use crate::formats::diagnostic::{Diagnostic, Position};
use crate::formats::reader::{Field, LineIndex, Reader, Words, key_position, parse_document};
use crate::hook::Phase;
use crate::identifier::{Group, Name, PackageId};
use crate::limits::MANIFEST_BYTES;
use crate::member_pattern::{MemberPattern, MemberPatternError};
use crate::relative_path::RelPath;
use crate::text::nearest;

use requirements::{read_conflicts, read_overrides, read_registries, read_requires};

/// The file name, in every role.
pub const MANIFEST_NAME: &str = "vibe.toml";

/// The kinds an item can have.
pub const ITEM_KINDS: [&str; 6] = ["skill", "agent", "command", "rule", "tool", "hook"];

/// Tables that mean something only beside `[package]`.
const PACKAGE_TABLES: [&str; 15] = [
    "hooks",
    "boot",
    "boot_snippet",
    "item",
    "skill",
    "provides",
    "requires_any",
    "obsoletes",
    "recommends",
    "suggests",
    "binary",
    "mcp_server",
    "compatibility",
    "features",
    "target",
];

/// Tables of the public ecosystem that are accepted and change nothing here.
const ACCEPTED_TABLES: [&str; 3] = ["i18n", "visibility", "origin"];

/// Keys of `[package]` that are accepted and change nothing here.
const ACCEPTED_PACKAGE_KEYS: [&str; 7] = [
    "authors",
    "keywords",
    "frozen",
    "epoch",
    "format",
    "describes",
    "homepage",
];

impl Manifest {
    /// Reads a `vibe.toml`.
    ///
    /// # Errors
    /// The first thing that makes the text no manifest, with its place.
    pub fn parse(text: &str, reading: Reading) -> Result<Manifest, Diagnostic> {
        check_size(text)?;
        let document = parse_document(text)?;
        let mut root = Reader::root(text, &document, "the manifest");
        check_roles(&mut root)?;
        let mut notes = Notes::new(reading);
        let manifest = Manifest {
            project: read_project(&mut root, &mut notes)?,
            package: read_package(&mut root, &mut notes)?,
            workspace: read_workspace(&mut root, &mut notes)?,
            requires: read_requires(&mut root, &mut notes, &LineIndex::new(text))?,
            registries: read_registries(&mut root, reading)?,
            overrides: read_overrides(&mut root, &mut notes)?,
            conflicts: read_conflicts(&mut root, &mut notes)?,
            not_acted_on: not_acted_on(&mut root)?,
            warnings: notes.finish(&mut root),
        };
        Ok(manifest)
    }

    /// The package's id parts, for a message; `None` for a project.
    pub fn package_id(&self) -> Option<&PackageId> {
        self.package.as_ref().map(|package| &package.id)
    }
}

/// Where the key at the end of `path` (`["hooks", "timeout"]`) stands in the text of a manifest, for
/// what is said of it later; `None` if it is not there.
pub fn position_of(text: &str, path: &[&str]) -> Option<Position> {
    key_position(text, path)
}

/// `text` without a leading `kind:`, which is accepted before an id and means nothing.
pub(crate) fn without_kind(text: &str) -> &str {
    let is_word = |kind: &str| !kind.is_empty() && kind.bytes().all(|b| b.is_ascii_lowercase());
    match text.split_once(':') {
        Some((kind, rest)) if is_word(kind) => rest,
        _ => text,
    }
}

/// What does not refuse the manifest but should be said.
struct Notes {
    reading: Reading,
    warnings: Vec<Diagnostic>,
}

impl Notes {
    fn new(reading: Reading) -> Self {
        Self {
            reading,
            warnings: Vec::new(),
        }
    }

    /// Notes the keys of a table that nobody asked for.
    fn unknown(&mut self, table: &Reader<'_>) {
        if self.reading == Reading::Own {
            self.warnings.extend(table.unknown());
        }
    }

    fn finish(mut self, root: &mut Reader<'_>) -> Vec<Diagnostic> {
        root.accept(&PACKAGE_TABLES);
        root.accept(&ACCEPTED_TABLES);
        self.unknown(root);
        self.warnings.sort_by_key(|warning| warning.position);
        self.warnings
    }
}

fn check_size(text: &str) -> Result<(), Diagnostic> {
    let bytes = text.len() as u64;
    if bytes > MANIFEST_BYTES {
        let message = format!("the manifest has {bytes} bytes, more than {MANIFEST_BYTES}");
        return Err(Diagnostic::new(message));
    }
    Ok(())
}

fn check_roles(root: &mut Reader<'_>) -> Result<(), Diagnostic> {
    let project = root.field("project");
    let package = root.field("package");
    match (project, package) {
        (Some(project), Some(package)) => {
            let later = if project.key_offset > package.key_offset {
                project
            } else {
                package
            };
            let message = "[project] and [package] cannot stand in one manifest";
            Err(later
                .key_error(message)
                .hint("keep the one that this directory is"))
        }
        (None, Some(_)) => Ok(()),
        (Some(_), None) => check_no_package_tables(root),
        (None, None) if root.field("workspace").is_some() => check_no_package_tables(root),
        (None, None) => Err(no_role(root)),
    }
}

fn no_role(root: &Reader<'_>) -> Diagnostic {
    let roles = ["project", "package", "workspace"];
    let error = root.error("the manifest has none of [project], [package] and [workspace]");
    let entries = root.entries();
    match entries.iter().find_map(|field| nearest(field.key, roles)) {
        Some(role) => error.hint(format!("did you mean [{role}]?")),
        None => error.hint("a project begins with [project] and its `name`"),
    }
}

fn check_no_package_tables(root: &mut Reader<'_>) -> Result<(), Diagnostic> {
    let found = PACKAGE_TABLES
        .into_iter()
        .find_map(|name| Some((name, root.field(name)?)));
    let Some((name, field)) = found else {
        return Ok(());
    };
    let message = format!("[{name}] belongs to a package, and this manifest has no [package]");
    Err(field
        .key_error(message)
        .hint("move it to the manifest of the package that it is about"))
}

fn read_project(root: &mut Reader<'_>, notes: &mut Notes) -> Result<Option<Project>, Diagnostic> {
    let Some(mut table) = root.table("project")? else {
        return Ok(None);
    };
    let project = Project {
        name: table.required("name")?.plain_str()?.to_owned(),
        harnesses: table.get("harnesses", Field::names)?,
        projection: table.get("projection", Field::word)?,
        vendor: table.get("vendor", Field::bool)?.unwrap_or(true),
        install_hooks: table.get("install-hooks", Field::word)?,
    };
    notes.unknown(&table);
    Ok(Some(project))
}

fn read_package(root: &mut Reader<'_>, notes: &mut Notes) -> Result<Option<Package>, Diagnostic> {
    let Some(mut table) = root.table("package")? else {
        return Ok(None);
    };
    let group: Group = table.required("group")?.parse()?;
    let name: Name = table.required("name")?.parse()?;
    let package = Package {
        id: PackageId::new(&group, &name),
        version: table.required("version")?.version()?,
        kind: table.get("kind", Field::word)?.unwrap_or_default(),
        description: table.string("description")?,
        license: table.string("license")?,
        materialization: table
            .get("materialization", Field::word)?
            .unwrap_or_default(),
        bridge: table.get("bridge", Field::bool)?.unwrap_or_default(),
        upstream: table.string("upstream")?,
        publish: table.get("publish", read_publish)?.unwrap_or_default(),
        hooks: read_hooks(root)?,
        boot: read_boot(root, notes)?,
        items: read_items(root, notes)?,
    };
    table.accept(&ACCEPTED_PACKAGE_KEYS);
    notes.unknown(&table);
    Ok(Some(package))
}

fn read_publish(field: &Field<'_>) -> Result<Publish, Diagnostic> {
    match field.as_bool() {
        Some(true) => Ok(Publish::Anywhere),
        Some(false) => Ok(Publish::Never),
        None if field.elements().is_ok() => field.names().map(Publish::To),
        None => Err(field.wrong("true, false or an array of registry names")),
    }
}

fn read_hooks(root: &mut Reader<'_>) -> Result<Hooks, Diagnostic> {
    let Some(mut table) = root.table("hooks")? else {
        return Ok(Hooks::default());
    };
    let mut hooks = Hooks::default();
    for phase in Phase::ALL {
        if let Some(Some(script)) = table.get(phase.as_str(), read_script)? {
            hooks.scripts.insert(phase, script);
        }
    }
    hooks.timeout_seconds = table.get("timeout", Field::duration_seconds)?;
    hooks.reset = table.get("reset", Field::word)?.unwrap_or_default();
    table.refuse_unknown()?;
    Ok(hooks)
}

/// The base path of a script; `None` for a blank one.
fn read_script(field: &Field<'_>) -> Result<Option<RelPath>, Diagnostic> {
    if field.str()?.trim().is_empty() {
        return Ok(None);
    }
    let path = field.path()?;
    let name = path.file_name().to_lowercase();
    match [".sh", ".ps1"]
        .iter()
        .find(|suffix| name.ends_with(*suffix))
    {
        None => Ok(Some(path)),
        Some(suffix) => {
            let base = &path.as_str()[..path.as_str().len() - suffix.len()];
            Err(field
                .error(format!("the install hook `{path}` has an extension"))
                .hint(format!("give the base without extension: \"{base}\"")))
        }
    }
}

/// `link` of boot text, with the words of the public ecosystem.
#[derive(Clone, Copy, PartialEq)]
enum BootLink {
    Static,
    Dynamic,
}

impl Words for BootLink {
    const WORDS: &'static [(&'static str, Self)] = &[
        ("static", BootLink::Static),
        ("dynamic", BootLink::Dynamic),
        ("static-transitive", BootLink::Static),
        ("static-hard", BootLink::Static),
    ];
}

fn read_boot(root: &mut Reader<'_>, notes: &mut Notes) -> Result<Option<Boot>, Diagnostic> {
    let snippet = root.field("boot_snippet");
    let boot = read_boot_table(root, "boot", notes)?;
    match (boot, snippet) {
        (Some(_), Some(snippet)) => {
            Err(snippet.key_error("[boot] and [boot_snippet] say the same; keep one"))
        }
        (boot, None) => Ok(boot),
        (None, Some(_)) => read_boot_table(root, "boot_snippet", notes),
    }
}

fn read_boot_table(
    root: &mut Reader<'_>,
    name: &'static str,
    notes: &mut Notes,
) -> Result<Option<Boot>, Diagnostic> {
    let Some(mut table) = root.table(name)? else {
        return Ok(None);
    };
    // In the public ecosystem `[boot]` may hold this one setting and no text.
    if table.field("default_link").is_some() && table.field("source").is_none() {
        return Ok(None);
    }
    let link = table.get("link", Field::word::<BootLink>)?;
    let boot = Boot {
        source: table.required("source")?.path()?,
        is_static: link == Some(BootLink::Static),
        when: table.string("when")?,
    };
    table.accept(&["category"]);
    notes.unknown(&table);
    Ok(Some(boot))
}

fn read_items(root: &mut Reader<'_>, notes: &mut Notes) -> Result<Vec<Item>, Diagnostic> {
    let mut items = Vec::new();
    for mut table in root.tables("item")? {
        let kind = table.required("kind")?;
        if !kind.as_str().is_some_and(|kind| ITEM_KINDS.contains(&kind)) {
            return Err(kind.wrong(format!("one of {}", ITEM_KINDS.join(", "))));
        }
        items.push(read_item(&mut table, kind.str()?)?);
        notes.unknown(&table);
    }
    for mut table in root.tables("skill")? {
        items.push(read_item(&mut table, "skill")?);
        table.accept(&["description", "agents", "include"]);
        notes.unknown(&table);
    }
    Ok(items)
}

fn read_item(table: &mut Reader<'_>, kind: &str) -> Result<Item, Diagnostic> {
    Ok(Item {
        kind: kind.to_owned(),
        name: table.required("name")?.component()?,
        path: table.required("path")?.path()?,
    })
}

fn read_workspace(
    root: &mut Reader<'_>,
    notes: &mut Notes,
) -> Result<Option<Workspace>, Diagnostic> {
    let Some(mut table) = root.table("workspace")? else {
        return Ok(None);
    };
    let mut workspace = Workspace {
        members: table
            .get("members", |field| field.list(read_member))?
            .unwrap_or_default(),
        versions: BTreeMap::new(),
    };
    if let Some(versions) = table.get("versions", |field| field.table("[workspace.versions]"))? {
        for field in versions.entries() {
            workspace
                .versions
                .insert(field.key.to_owned(), field.parse()?);
        }
    }
    notes.unknown(&table);
    Ok(Some(workspace))
}

/// A pattern of directories below the workspace.
fn read_member(field: &Field<'_>) -> Result<MemberPattern, Diagnostic> {
    field.argument()?.parse().map_err(|error| match error {
        MemberPatternError::Leaves(_) => {
            field.wrong("a relative path with forward slashes below the workspace")
        }
        malformed @ MemberPatternError::Malformed { .. } => field.error(malformed.to_string()),
    })
}

/// What changes resolution elsewhere and does not here, by name.
fn not_acted_on(root: &mut Reader<'_>) -> Result<Vec<String>, Diagnostic> {
    let mut names = Vec::new();
    for (table, key, name) in [
        ("requires", "capabilities", "requires.capabilities"),
        ("features", "default", "features.default"),
    ] {
        let filled = root
            .table(table)?
            .and_then(|mut table| table.field(key))
            .is_some_and(|field| field.is_filled());
        if filled {
            names.push(name.to_owned());
        }
    }
    for key in ["requires_any", "target", "obsoletes"] {
        if root.field(key).is_some_and(|field| field.is_filled()) {
            names.push(key.to_owned());
        }
    }
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::decode::decode;
    use crate::hook::Reset;
    use proptest::prelude::*;

    #[test]
    fn a_key_is_found_in_every_way_to_write_it() {
        let text = "[package]\nname = \"a\"\nx = { y = 1 }\n\n[hooks]\n  timeout = \"1s\"\n";
        let check = |path: &[&str], expected: Option<(usize, usize)>| {
            let found = position_of(text, path).map(|found| (found.line, found.column));
            assert_eq!(found, expected, "{path:?}");
        };
        check(&["hooks", "timeout"], Some((6, 3)));
        check(&["package", "name"], Some((2, 1)));
        check(&["package", "x", "y"], Some((3, 7)));
        check(&["hooks"], Some((5, 2)));
        check(&["hooks", "reset"], None);
        check(&["package", "name", "a"], None);
        assert_eq!(position_of("no = ", &["no"]), None);
    }

    /// A case of `conform/cases/manifest`: an input and what reading it must say.
    #[derive(Debug, Clone, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields, rename_all = "kebab-case")]
    struct Case {
        #[serde(default)]
        input: String,
        /// The input as hexadecimal digits, for bytes that TOML cannot hold.
        input_hex: Option<String>,
        /// The text `@` of the input is replaced by this one.
        repeat: Option<Repeat>,
        reading: CaseReading,
        #[serde(default)]
        ok: bool,
        #[serde(default)]
        warnings: Vec<String>,
        #[serde(default)]
        not_acted_on: Vec<String>,
        error: Option<String>,
        line: Option<usize>,
        column: Option<usize>,
        hint: Option<String>,
    }

    #[derive(Debug, Clone, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Repeat {
        text: String,
        count: usize,
    }

    #[derive(Debug, Clone, Copy, PartialEq, serde::Deserialize)]
    #[serde(rename_all = "kebab-case")]
    enum CaseReading {
        Own,
        Package,
    }

    impl Case {
        fn bytes(&self) -> Vec<u8> {
            match (&self.input_hex, &self.repeat) {
                (Some(hex), _) => (0..hex.len())
                    .step_by(2)
                    .map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap())
                    .collect(),
                (None, Some(repeat)) => self
                    .input
                    .replace('@', &repeat.text.repeat(repeat.count))
                    .into_bytes(),
                (None, None) => self.input.clone().into_bytes(),
            }
        }

        fn read(&self) -> Result<Manifest, Diagnostic> {
            let reading = match self.reading {
                CaseReading::Own => Reading::Own,
                CaseReading::Package => Reading::Package,
            };
            Manifest::parse(&decode(&self.bytes())?, reading)
        }

        /// What reading says, in the words of a case.
        fn outcome(&self) -> Case {
            let mut said = Case {
                ok: false,
                warnings: Vec::new(),
                not_acted_on: Vec::new(),
                error: None,
                line: None,
                column: None,
                hint: None,
                ..self.clone()
            };
            match self.read() {
                Ok(manifest) => {
                    said.ok = true;
                    said.warnings = manifest.warnings.iter().map(warning_text).collect();
                    said.not_acted_on = manifest.not_acted_on;
                }
                Err(error) => {
                    let wanted = self.error.clone().unwrap_or_default();
                    let matches = !wanted.is_empty() && error.message.contains(&wanted);
                    said.error = Some(if matches { wanted } else { error.message });
                    said.line = error.position.map(|position| position.line);
                    said.column = error.position.map(|position| position.column);
                    said.hint = error.hint;
                }
            }
            said
        }
    }

    fn warning_text(warning: &Diagnostic) -> String {
        let line = warning.position.unwrap().line;
        let hint = warning.hint.as_deref().unwrap_or("no hint");
        format!("{line}: {warning}: {hint}")
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "the cases are files")]
    fn every_case_of_the_manifest_reads_as_it_says() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../conform/cases/manifest");
        let mut count = 0;
        let mut wrong = Vec::new();
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let case: Case = toml::from_str(&std::fs::read_to_string(&path).unwrap())
                .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
            let said = case.outcome();
            if said != case {
                wrong.push(format!("{}: {said:#?}", path.display()));
            }
            count += 1;
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        assert!(count >= 200, "only {count} cases");
    }

    fn own(text: &str) -> Manifest {
        Manifest::parse(text, Reading::Own).unwrap()
    }

    fn at(line: usize, column: usize) -> Position {
        Position { line, column }
    }

    fn path(text: &str) -> RelPath {
        RelPath::new(text).unwrap()
    }

    #[test]
    fn a_project_is_read_with_its_defaults_and_its_settings() {
        let mut project = Project {
            name: "x".to_owned(),
            harnesses: None,
            projection: None,
            vendor: true,
            install_hooks: None,
        };
        let manifest = own("[project]\nname = \"x\"\n");
        assert_eq!(manifest.project.as_ref(), Some(&project));
        assert_eq!(manifest.package_id(), None);
        project.harnesses = Some(vec!["claude-code".to_owned()]);
        project.projection = Some(Projection::Copy);
        project.vendor = false;
        project.install_hooks = Some(HookTightening::Never);
        let text = "[project]\nname = \"x\"\nharnesses = [\"claude-code\"]\nprojection = \"copy\"\nvendor = false\ninstall-hooks = \"never\"\n";
        assert_eq!(own(text).project, Some(project));
    }

    const PACKAGE: &str =
        "[package]\ngroup = \"org.example\"\nname = \"lint\"\nversion = \"2.1.0\"\n";

    #[test]
    fn a_package_is_read_with_its_defaults() {
        let manifest = own(PACKAGE);
        let expected = Package {
            id: "org.example/lint".parse().unwrap(),
            version: "2.1.0".parse().unwrap(),
            kind: Kind::Feat,
            description: None,
            license: None,
            materialization: Materialization::Copy,
            bridge: false,
            upstream: None,
            publish: Publish::Anywhere,
            hooks: Hooks::default(),
            boot: None,
            items: Vec::new(),
        };
        assert_eq!(manifest.package_id(), Some(&expected.id));
        assert_eq!(manifest.package, Some(expected));
    }

    #[test]
    fn a_package_is_read_with_everything_it_says() {
        let text = format!(
            "{PACKAGE}{}",
            r#"kind = "tool"
description = "d"
license = "MIT"
materialization = "in-place"
bridge = true
upstream = "https://host/them/repo"
publish = ["acme"]

[hooks]
pre-install = "hooks/prepare"
post-install = "hooks/finalise"
timeout = "2h"
reset = "all"

[boot]
source = "boot/notes.md"
link = "static"
when = "os:linux"

[[item]]
kind = "rule"
name = "style"
path = "rules/style.md"

[[skill]]
name = "review"
path = "tools/review"

[conflicts]
packages = ["a/b", "flow:a/c@^1"]
"#
        );
        let manifest = own(&text);
        let package = manifest.package.unwrap();
        assert_eq!(package.kind, Kind::Tool);
        assert_eq!(package.description.as_deref(), Some("d"));
        assert_eq!(package.license.as_deref(), Some("MIT"));
        assert_eq!(package.materialization, Materialization::InPlace);
        assert!(package.bridge);
        assert_eq!(package.upstream.as_deref(), Some("https://host/them/repo"));
        assert_eq!(package.publish, Publish::To(vec!["acme".to_owned()]));
        let scripts = [
            (Phase::PreInstall, path("hooks/prepare")),
            (Phase::PostInstall, path("hooks/finalise")),
        ];
        assert_eq!(package.hooks.scripts, scripts.into_iter().collect());
        assert_eq!(package.hooks.timeout_seconds, Some(7_200));
        assert_eq!(package.hooks.reset, Reset::All);
        let boot = Boot {
            source: path("boot/notes.md"),
            is_static: true,
            when: Some("os:linux".to_owned()),
        };
        assert_eq!(package.boot, Some(boot));
        let item = |kind: &str, name: &str, place: &str| Item {
            kind: kind.to_owned(),
            name: name.to_owned(),
            path: path(place),
        };
        let items = [
            item("rule", "style", "rules/style.md"),
            item("skill", "review", "tools/review"),
        ];
        assert_eq!(package.items, items);
        let conflicts = [("a/b", "*"), ("a/c", "^1")].map(|(id, constraint)| Conflict {
            package: id.parse().unwrap(),
            constraint: constraint.parse().unwrap(),
        });
        assert_eq!(manifest.conflicts, conflicts);
    }

    #[test]
    fn publish_and_boot_have_three_forms_each() {
        let package = |rest: &str| own(&format!("{PACKAGE}{rest}")).package.unwrap();
        assert_eq!(package("publish = true").publish, Publish::Anywhere);
        assert_eq!(package("publish = false").publish, Publish::Never);
        let is_static = |rest: &str| package(rest).boot.unwrap().is_static;
        assert!(!is_static("[boot]\nsource = \"a\""));
        assert!(!is_static(
            "[boot_snippet]\nsource = \"a\"\nlink = \"dynamic\""
        ));
        assert!(is_static(
            "[boot_snippet]\nsource = \"a\"\nlink = \"static-hard\""
        ));
        let both = "[boot]\ndefault_link = \"static\"\n[boot_snippet]\nsource = \"a\"";
        assert_eq!(package(both).boot.unwrap().source, path("a"));
        let own_source = "[boot]\ndefault_link = \"static\"\nsource = \"b\"";
        assert_eq!(package(own_source).boot.unwrap().source, path("b"));
        assert_eq!(
            package("[hooks]\npre-install = \" \"").hooks,
            Hooks::default()
        );
    }

    #[test]
    fn a_workspace_is_read_with_its_versions() {
        let manifest = own("[workspace]\nmembers = [\"packages/*\"]\nversions.core = \"^0.3\"\n");
        let workspace = manifest.workspace.unwrap();
        assert_eq!(workspace.members, ["packages/*".parse().unwrap()]);
        let versions = [("core".to_owned(), "^0.3".parse().unwrap())];
        assert_eq!(workspace.versions, versions.into_iter().collect());
        assert_eq!(own("[workspace]\n").workspace, Some(Workspace::default()));
    }

    #[test]
    fn registries_and_overrides_keep_their_order_and_place() {
        let manifest = own(
            "[workspace]\n[[registry]]\nname = \"z\"\nurl = \"../r\"\n[[registry]]\nname = \"a\"\nurl = \"https://h\"\n[[override]]\npackage = \"flow:a/b\"\ngit = \"https://h/x\"\nbranch = \"main\"\n",
        );
        let registry = |name: &str, url: &str, line| Registry {
            name: name.to_owned(),
            url: url.to_owned(),
            position: at(line, 1),
        };
        let registries = [registry("z", "../r", 2), registry("a", "https://h", 5)];
        assert_eq!(manifest.registries, registries);
        let expected = Override {
            package: "a/b".parse().unwrap(),
            source: DependencySource::Git {
                url: "https://h/x".parse().unwrap(),
                reference: GitReference::Branch("main".to_owned()),
                subdir: None,
            },
            position: at(8, 1),
        };
        assert_eq!(manifest.overrides, [expected]);
    }

    /// The requirement that `entry` makes, on line 3.
    fn requirement(entry: &str) -> Dependency {
        let manifest = own(&format!("[workspace]\n[requires.packages]\n{entry}\n"));
        assert_eq!(manifest.requires.len(), 1);
        let (id, dependency) = manifest.requires.into_iter().next().unwrap();
        assert_eq!(id.as_str(), "a/b");
        assert_eq!(dependency.position, at(3, 1));
        dependency
    }

    fn registry_source(constraint: &str, registry: Option<&str>) -> DependencySource {
        DependencySource::Registry {
            constraint: constraint.parse().unwrap(),
            registry: registry.map(str::to_owned),
        }
    }

    #[test]
    fn every_form_of_a_requirement_is_read() {
        let git = |reference| DependencySource::Git {
            url: "u".parse().unwrap(),
            reference,
            subdir: None,
        };
        let local = |constraint: Option<&str>| DependencySource::Path {
            path: "../x".to_owned(),
            constraint: constraint.map(|text| text.parse().unwrap()),
        };
        for (entry, source) in [
            ("\"a/b\" = \"^1\"", registry_source("^1", None)),
            ("\"flow:a/b\" = {}", registry_source("*", None)),
            (
                "\"a/b\" = { version = \"1\", registry = \"r\" }",
                registry_source("1", Some("r")),
            ),
            ("\"a/b\" = { path = \"../x\" }", local(None)),
            (
                "\"a/b\" = { path = \"../x\", version = \"1\" }",
                local(Some("1")),
            ),
            (
                "\"a/b\" = { version.var = \"core\" }",
                DependencySource::Variable {
                    name: "core".to_owned(),
                },
            ),
            (
                "\"a/b\" = { git = \"u\", tag = \"t\" }",
                git(GitReference::Tag("t".to_owned())),
            ),
            (
                "\"a/b\" = { git = \"u\", branch = \"t\" }",
                git(GitReference::Branch("t".to_owned())),
            ),
            (
                "\"a/b\" = { git = \"u\", rev = \"t\" }",
                git(GitReference::Rev("t".to_owned())),
            ),
            (
                "\"a/b\" = { git = \"u\", version = \"1\" }",
                git(GitReference::Range("1".parse().unwrap())),
            ),
            (
                "\"a/b\" = { git = \"u\", as = \"k\" }",
                git(GitReference::Default),
            ),
        ] {
            assert_eq!(requirement(entry).source, source, "{entry}");
        }
        let subdir = requirement("\"a/b\" = { git = \"u\", tag = \"t\", subdir = \"p/q\" }");
        assert!(matches!(
            subdir.source,
            DependencySource::Git { subdir: Some(subdir), .. } if subdir.as_str() == "p/q"
        ));
    }

    #[test]
    fn what_a_foreign_requirement_says_is_read() {
        let found = requirement(
            "\"a/b\" = { git = \"u\", items = [\"skill:x\"], as = \"k\", install-hook = \"make\", uninstall-hook = \" \", materialization = \"hardlink\" }",
        );
        assert_eq!(found.items, Some(vec!["skill:x".to_owned()]));
        assert_eq!(found.alias.as_deref(), Some("k"));
        assert_eq!(found.install_hook.as_deref(), Some("make"));
        assert_eq!(found.uninstall_hook, None);
        assert_eq!(found.materialization, Some(Materialization::Hardlink));
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in "[\\[\\]{}=.,\"'#\n a-c0-1\u{e9}]{0,60}") {
            let _ = Manifest::parse(&text, Reading::Own);
        }

        #[test]
        fn no_mutation_of_a_manifest_makes_the_reader_panic(
            cut in 0usize..400,
            length in 0usize..20,
            insert in "[\\[\\]{}=.,\"\n:@a-c0-1]{0,4}",
        ) {
            let text = format!("{PACKAGE}[hooks]\npre-install = \"a/b\"\ntimeout = \"1s\"\n[[item]]\nkind = \"rule\"\nname = \"a\"\npath = \"b\"\n[requires.packages]\n\"a/b\" = {{ git = \"u\", tag = \"t\" }}\n\"flow:a/c\" = {{ version.var = \"v\" }}\n[[registry]]\nname = \"a\"\nurl = \"b\"\n[conflicts]\npackages = [\"a/b@1\"]\n");
            let start = cut.min(text.len());
            let end = (start + length).min(text.len());
            let mutated = format!("{}{insert}{}", &text[..start], &text[end..]);
            for reading in [Reading::Own, Reading::Package] {
                if let Err(error) = Manifest::parse(&mutated, reading) {
                    prop_assert!(error.position.is_some(), "{}", error);
                }
            }
        }
    }
}
