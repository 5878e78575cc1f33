//! What a `vibe.toml` says, as values.

use std::collections::BTreeMap;

use crate::formats::diagnostic::{Diagnostic, Position};
use crate::formats::reader::{Words, words};
use crate::git_url::RemoteUrl;
use crate::hook::{Phase, Reset};
use crate::identifier::PackageId;
use crate::member_pattern::MemberPattern;
use crate::relative_path::RelPath;
use crate::version::{Constraint, Version};

/// A parsed `vibe.toml`.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// `[project]`.
    pub project: Option<Project>,
    /// `[package]`.
    pub package: Option<Package>,
    /// `[workspace]`.
    pub workspace: Option<Workspace>,
    /// `[requires.packages]`.
    pub requires: BTreeMap<PackageId, Dependency>,
    /// `[[registry]]`, in order.
    pub registries: Vec<Registry>,
    /// `[[override]]`.
    pub overrides: Vec<Override>,
    /// `[conflicts] packages`.
    pub conflicts: Vec<Conflict>,
    /// Unknown keys and the like, where they do not refuse the manifest.
    pub warnings: Vec<Diagnostic>,
    /// Tables that mean something elsewhere and are not acted on here, by name: `features`, ...
    pub not_acted_on: Vec<String>,
}

/// `[project]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Project {
    /// The project's name.
    pub name: String,
    /// `harnesses`; `None` means those in use here.
    pub harnesses: Option<Vec<String>>,
    /// `projection`; `None` means the default of the operating system.
    pub projection: Option<Projection>,
    /// `vendor`, default true.
    pub vendor: bool,
    /// `install-hooks`.
    pub install_hooks: Option<HookTightening>,
}

/// `projection = "link" | "copy"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Projection {
    /// Symbolic links.
    Link,
    /// Copies.
    Copy,
}

/// What a project or an environment may say of install hooks: it can tighten, never loosen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum HookTightening {
    /// Ask first.
    Ask,
    /// Run none.
    Never,
}

/// `[package]`, with the tables that only a package has.
#[derive(Debug, Clone, PartialEq)]
pub struct Package {
    /// `group` and `name`.
    pub id: PackageId,
    /// `version`.
    pub version: Version,
    /// `kind`, default `feat`.
    pub kind: Kind,
    /// `description`.
    pub description: Option<String>,
    /// `license`.
    pub license: Option<String>,
    /// `materialization`, default `copy`.
    pub materialization: Materialization,
    /// `bridge`.
    pub bridge: bool,
    /// `upstream`.
    pub upstream: Option<String>,
    /// `publish`.
    pub publish: Publish,
    /// `[hooks]`.
    pub hooks: Hooks,
    /// `[boot]`, or `[boot_snippet]`.
    pub boot: Option<Boot>,
    /// `[[item]]`, and `[[skill]]`.
    pub items: Vec<Item>,
}

/// `kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Kind {
    /// `flow`.
    Flow,
    /// `feat`.
    #[default]
    Feat,
    /// `stack`.
    Stack,
    /// `tool`.
    Tool,
    /// `mcp`.
    Mcp,
    /// `lang`.
    Lang,
}

/// `materialization`: how a slot is filled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Materialization {
    /// Independent files.
    #[default]
    Copy,
    /// Links from the store.
    Hardlink,
    /// A git clone.
    InPlace,
}

/// `publish`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Publish {
    /// To any registry.
    #[default]
    Anywhere,
    /// Nowhere.
    Never,
    /// To these registries.
    To(Vec<String>),
}

/// `[hooks]`. A phase that is absent has no script.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Hooks {
    /// The base path, without extension, of each declared phase's script.
    pub scripts: BTreeMap<Phase, RelPath>,
    /// `timeout`, in seconds.
    pub timeout_seconds: Option<u64>,
    /// `reset`.
    pub reset: Reset,
}

/// `[boot]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Boot {
    /// The text's path.
    pub source: RelPath,
    /// `link = "static"`.
    pub is_static: bool,
    /// `when`.
    pub when: Option<String>,
}

/// `[[item]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Item {
    /// `kind`.
    pub kind: String,
    /// `name`.
    pub name: String,
    /// `path`.
    pub path: RelPath,
}

/// `[workspace]`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Workspace {
    /// `members`.
    pub members: Vec<MemberPattern>,
    /// `[workspace.versions]`.
    pub versions: BTreeMap<String, Constraint>,
}

/// One requirement.
#[derive(Debug, Clone, PartialEq)]
pub struct Dependency {
    /// Where the package comes from.
    pub source: DependencySource,
    /// `items`.
    pub items: Option<Vec<String>>,
    /// `as`.
    pub alias: Option<String>,
    /// `install-hook`.
    pub install_hook: Option<String>,
    /// `uninstall-hook`.
    pub uninstall_hook: Option<String>,
    /// `materialization`.
    pub materialization: Option<Materialization>,
    /// Where the key stands in the manifest.
    pub position: Position,
}

/// The source that a requirement names.
#[derive(Debug, Clone, PartialEq)]
pub enum DependencySource {
    /// The first registry that knows the id, or the named one.
    Registry {
        /// The versions that satisfy.
        constraint: Constraint,
        /// `registry`.
        registry: Option<String>,
    },
    /// A git repository.
    Git {
        /// `git`.
        url: RemoteUrl,
        /// The one of `tag`, `branch`, `rev`, `version`.
        reference: GitReference,
        /// `subdir`.
        subdir: Option<RelPath>,
    },
    /// A directory, relative to the manifest.
    Path {
        /// `path`, as written.
        path: String,
        /// `version`, which only verifies.
        constraint: Option<Constraint>,
    },
    /// `version.var`: a constraint of the nearest `[workspace.versions]`.
    Variable {
        /// The variable.
        name: String,
    },
}

/// What a git requirement asks for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GitReference {
    /// `tag`.
    Tag(String),
    /// `branch`.
    Branch(String),
    /// `rev`.
    Rev(String),
    /// `version`, a range over `v*` tags.
    Range(Constraint),
    /// None given: a foreign dependency takes the default branch.
    Default,
}

/// `[[registry]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Registry {
    /// `name`.
    pub name: String,
    /// `url`, as written.
    pub url: String,
    /// Where it stands.
    pub position: Position,
}

/// `[[override]]`.
#[derive(Debug, Clone, PartialEq)]
pub struct Override {
    /// `package`.
    pub package: PackageId,
    /// Its source: a path or git.
    pub source: DependencySource,
    /// Where it stands.
    pub position: Position,
}

/// One entry of `[conflicts] packages`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Conflict {
    /// The package that may not stand beside this one.
    pub package: PackageId,
    /// In these versions.
    pub constraint: Constraint,
}

/// Whose manifest is read: how strict unknown keys are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reading {
    /// The root project's own: unknown keys are warnings.
    Own,
    /// A package's: unknown keys outside the strict tables pass in silence.
    Package,
}

impl Dependency {
    /// A requirement of the package from `source` as it is published, with its key at `position`.
    pub fn new(source: DependencySource, position: Position) -> Self {
        Self {
            source,
            items: None,
            alias: None,
            install_hook: None,
            uninstall_hook: None,
            materialization: None,
            position,
        }
    }
}

words!(Projection { Link => "link", Copy => "copy" });

words!(HookTightening { Ask => "ask", Never => "never" });

words!(Kind {
    Flow => "flow",
    Feat => "feat",
    Stack => "stack",
    Tool => "tool",
    Mcp => "mcp",
    Lang => "lang",
});

words!(Materialization {
    Copy => "copy",
    Hardlink => "hardlink",
    InPlace => "in-place",
});

impl Words for Reset {
    const WORDS: &'static [(&'static str, Self)] =
        &[("payload", Reset::Payload), ("all", Reset::All)];
}
