//! `vibe.lock`: what was resolved, for every machine the same bytes.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use serde::Deserialize;
use toml::Spanned;

use crate::digest::{DigestError, Sha256Digest};
use crate::formats::clone_state::is_commit;
use crate::formats::diagnostic::Diagnostic;
use crate::formats::manifest::Materialization;
use crate::formats::typed;
use crate::git_url::{GitUrlError, RemoteUrl};
use crate::identifier::{PackageId, SlotName};
use crate::relative_path::RelPath;
use crate::text::{has_credentials, shown};
use crate::tree::TreeId;
use crate::version::Version;

/// The file name.
pub const LOCK_NAME: &str = "vibe.lock";
/// The schema number written.
pub const LOCK_VERSION: u64 = 1;

/// A lock: sorted by id.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Lock {
    /// The packages, sorted by id, each once.
    pub packages: Vec<LockedPackage>,
}

/// One resolved package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockedPackage {
    /// `id`.
    pub id: PackageId,
    /// `version`.
    pub version: Version,
    /// `source`.
    pub source: LockedSource,
    /// `ref`, as required: `tag:…`, `branch:…`, `rev:…` or `range:…`.
    pub reference: Option<String>,
    /// `subdir`.
    pub subdir: Option<String>,
    /// `commit`, 40 hex digits.
    pub commit: Option<String>,
    /// `tree`.
    pub tree: Option<TreeId>,
    /// `materialization`, the mode asked for.
    pub materialization: Materialization,
    /// `dependencies`, sorted.
    pub dependencies: Vec<PackageId>,
    /// `install-hooks`: script path, or `command:…`, to digest.
    pub install_hooks: BTreeMap<String, Sha256Digest>,
}

impl LockedPackage {
    /// Its slot.
    pub fn slot(&self) -> SlotName {
        match self.materialization {
            Materialization::InPlace => SlotName::in_place(&self.id),
            Materialization::Copy | Materialization::Hardlink => {
                SlotName::new(&self.id, &self.version)
            }
        }
    }
}

/// `source`: `dir+…`, `git+…` or `path+…`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockedSource {
    /// A directory registry, as the manifest states it.
    Directory(String),
    /// A git URL without credentials.
    Git(RemoteUrl),
    /// A path, as the manifest states it.
    Path(String),
}

/// Why a text is no lock.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockError {
    /// It breaks a rule.
    #[error("`{LOCK_NAME}` is malformed")]
    Malformed(#[from] Diagnostic),
    /// Its version is newer than [`LOCK_VERSION`]; nothing else of it was looked at.
    #[error("`{LOCK_NAME}` was made by a newer vibe: it has version {found}")]
    Newer {
        /// Its version.
        found: u64,
    },
}

/// The first line of a lock.
const HEADER: &str = "# Written by vibe. Commit this file; do not edit it.\n";
/// How a `ref` may begin.
const REFERENCE_KINDS: [&str; 4] = ["tag:", "branch:", "rev:", "range:"];
/// How the key of an install hook that is a command begins.
const COMMAND_PREFIX: &str = "command:";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LockTable {
    #[serde(default)]
    package: Vec<PackageTable>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
struct PackageTable {
    id: Spanned<PackageId>,
    #[serde(deserialize_with = "typed::version")]
    version: Version,
    source: Spanned<String>,
    r#ref: Option<Spanned<String>>,
    subdir: Option<Spanned<RelPath>>,
    commit: Option<Spanned<String>>,
    tree: Option<Spanned<TreeId>>,
    materialization: Option<Spanned<String>>,
    #[serde(default)]
    dependencies: Vec<Spanned<PackageId>>,
    install_hooks: Option<Spanned<BTreeMap<HookKey, HookDigest>>>,
}

/// A script's path, or `command:` and what follows.
#[derive(Deserialize, PartialEq, Eq, PartialOrd, Ord)]
#[serde(try_from = "String")]
struct HookKey(String);

impl TryFrom<String> for HookKey {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let is_known = match text.strip_prefix(COMMAND_PREFIX) {
            Some(command) => !command.is_empty(),
            None => RelPath::new(&text).is_ok_and(|path| !path.is_reserved()),
        };
        if is_known {
            return Ok(Self(text));
        }
        Err(format!(
            "`{}` is neither a path nor `{COMMAND_PREFIX}` and a name",
            shown(&text)
        ))
    }
}

#[derive(Deserialize)]
#[serde(try_from = "String")]
struct HookDigest(Sha256Digest);

impl TryFrom<String> for HookDigest {
    type Error = DigestError;

    fn try_from(text: String) -> Result<Self, DigestError> {
        Sha256Digest::from_prefixed(&text).map(Self)
    }
}

/// Why a text is no `source`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LockedSourceError {
    /// It begins with none of the known kinds, or nothing follows.
    #[error("`{0}` is not a source: `dir+`, `git+` or `path+` and a place are expected")]
    Shape(String),
    /// The URL has a password or token in it. The URL is not repeated.
    #[error("the git URL has credentials in it, which do not belong in a file that is committed")]
    Credentials,
    /// The URL is none that is taken.
    #[error(transparent)]
    Url(#[from] GitUrlError),
}

impl FromStr for LockedSource {
    type Err = LockedSourceError;

    fn from_str(text: &str) -> Result<Self, LockedSourceError> {
        match text.split_once('+') {
            Some((_, "")) => Err(LockedSourceError::Shape(shown(text))),
            Some(("dir", place)) => Ok(Self::Directory(place.to_owned())),
            Some(("path", place)) => Ok(Self::Path(place.to_owned())),
            Some(("git", url)) if has_credentials(url) => Err(LockedSourceError::Credentials),
            Some(("git", url)) => Ok(Self::Git(url.parse()?)),
            _ => Err(LockedSourceError::Shape(shown(text))),
        }
    }
}

impl fmt::Display for LockedSource {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Directory(place) => write!(out, "dir+{place}"),
            Self::Git(url) => write!(out, "git+{url}"),
            Self::Path(place) => write!(out, "path+{place}"),
        }
    }
}

impl Lock {
    /// Reads the text of a `vibe.lock`.
    ///
    /// # Errors
    /// A newer version than [`LOCK_VERSION`], or the first rule that the text breaks.
    pub fn parse(text: &str) -> Result<Self, LockError> {
        let (found, table) = typed::document(text, "version")?;
        if found > LOCK_VERSION {
            return Err(LockError::Newer { found });
        }
        if found < LOCK_VERSION {
            return Err(Diagnostic::new(format!("there is no lock of version {found}")).into());
        }
        let table: LockTable = typed::read(text, table)?;
        typed::check_sorted(text, table.package.iter().map(|package| &package.id))?;
        let packages: Result<_, Diagnostic> = table
            .package
            .into_iter()
            .map(|package| locked_package(text, package))
            .collect();
        Ok(Self {
            packages: packages?,
        })
    }

    /// The text of the lock, the same bytes for the same packages in any order.
    pub fn render(&self) -> String {
        let mut out = String::from(HEADER);
        typed::push_bare(&mut out, "version", LOCK_VERSION);
        let mut packages: Vec<&LockedPackage> = self.packages.iter().collect();
        packages.sort_by_key(|package| &package.id);
        for package in packages {
            push_package(&mut out, package);
        }
        out
    }

    /// The entry of `id`.
    pub fn get(&self, id: &PackageId) -> Option<&LockedPackage> {
        self.packages
            .binary_search_by(|p| p.id.cmp(id))
            .ok()
            .map(|index| &self.packages[index])
    }
}

fn locked_package(text: &str, table: PackageTable) -> Result<LockedPackage, Diagnostic> {
    let source = locked_source(text, &table.source)?;
    check_keys_of_source(text, &source, &table)?;
    typed::check_sorted(text, &table.dependencies)?;
    let install_hooks = table.install_hooks.map(Spanned::into_inner);
    Ok(LockedPackage {
        id: table.id.into_inner(),
        version: table.version,
        source,
        reference: checked(text, table.r#ref, reference)?,
        subdir: table.subdir.map(|subdir| subdir.get_ref().to_string()),
        commit: checked(text, table.commit, commit)?,
        tree: table.tree.map(Spanned::into_inner),
        materialization: checked(text, table.materialization, materialization)?.unwrap_or_default(),
        dependencies: table
            .dependencies
            .into_iter()
            .map(Spanned::into_inner)
            .collect(),
        install_hooks: install_hooks
            .unwrap_or_default()
            .into_iter()
            .map(|(key, digest)| (key.0, digest.0))
            .collect(),
    })
}

fn locked_source(text: &str, value: &Spanned<String>) -> Result<LockedSource, Diagnostic> {
    let read = value.get_ref().parse();
    read.map_err(|error: LockedSourceError| typed::at(text, value, format!("{error}")))
}

/// Refuses the keys that mean nothing for the kind of `source`.
fn check_keys_of_source(
    text: &str,
    source: &LockedSource,
    table: &PackageTable,
) -> Result<(), Diagnostic> {
    let git_only = [
        ("ref", place(table.r#ref.as_ref())),
        ("subdir", place(table.subdir.as_ref())),
        ("commit", place(table.commit.as_ref())),
    ];
    let content = [
        ("tree", place(table.tree.as_ref())),
        ("install-hooks", place(table.install_hooks.as_ref())),
    ];
    let (kind, refused) = match source {
        LockedSource::Git(_) => return Ok(()),
        LockedSource::Directory(_) => ("dir", git_only.to_vec()),
        LockedSource::Path(_) => ("path", [&git_only[..], &content].concat()),
    };
    for (key, place) in refused {
        if let Some(offset) = place {
            let message = format!("an entry with a `{kind}+` source cannot have `{key}`");
            return Err(Diagnostic::at(text, offset, message));
        }
    }
    Ok(())
}

/// Where `value` stands, if it is there.
fn place<T>(value: Option<&Spanned<T>>) -> Option<usize> {
    value.map(|value| value.span().start)
}

/// The value that `check` makes of a text that may be absent.
fn checked<T>(
    text: &str,
    value: Option<Spanned<String>>,
    check: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, Diagnostic> {
    value
        .map(|value| check(value.get_ref()).map_err(|message| typed::at(text, &value, message)))
        .transpose()
}

fn reference(text: &str) -> Result<String, String> {
    let names_something = |kind: &&str| {
        text.strip_prefix(*kind)
            .is_some_and(|rest| !rest.is_empty())
    };
    if REFERENCE_KINDS.iter().any(names_something) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "`{}` is not a ref: `tag:`, `branch:`, `rev:` or `range:` and a name are expected",
        shown(text)
    ))
}

fn commit(text: &str) -> Result<String, String> {
    if is_commit(text) {
        return Ok(text.to_owned());
    }
    Err(format!(
        "`{}` is not a commit: 40 lower-case hex digits are expected",
        shown(text)
    ))
}

fn materialization(text: &str) -> Result<Materialization, String> {
    [
        Materialization::Copy,
        Materialization::Hardlink,
        Materialization::InPlace,
    ]
    .into_iter()
    .find(|mode| mode_word(*mode) == text)
    .ok_or_else(|| {
        format!(
            "`{}` is not a materialization: `copy`, `hardlink` or `in-place` is expected",
            shown(text)
        )
    })
}

fn mode_word(mode: Materialization) -> &'static str {
    match mode {
        Materialization::Copy => "copy",
        Materialization::Hardlink => "hardlink",
        Materialization::InPlace => "in-place",
    }
}

fn push_package(out: &mut String, package: &LockedPackage) {
    typed::push_header(out, "[[package]]");
    typed::push_text(out, "id", &package.id);
    typed::push_text(out, "version", &package.version);
    typed::push_text(out, "source", &package.source);
    let optional = [
        ("ref", package.reference.clone()),
        ("subdir", package.subdir.clone()),
        ("commit", package.commit.clone()),
        ("tree", package.tree.map(|tree| tree.to_string())),
    ];
    for (key, value) in optional {
        if let Some(value) = value {
            typed::push_text(out, key, value);
        }
    }
    if package.materialization != Materialization::Copy {
        typed::push_text(out, "materialization", mode_word(package.materialization));
    }
    push_dependencies(out, &package.dependencies);
    push_install_hooks(out, &package.install_hooks);
}

fn push_dependencies(out: &mut String, dependencies: &[PackageId]) {
    if dependencies.is_empty() {
        return;
    }
    let mut words: Vec<&str> = dependencies.iter().map(PackageId::as_str).collect();
    words.sort_unstable();
    let words: Vec<String> = words.into_iter().map(typed::quoted).collect();
    typed::push_bare(out, "dependencies", format!("[{}]", words.join(", ")));
}

fn push_install_hooks(out: &mut String, hooks: &BTreeMap<String, Sha256Digest>) {
    if hooks.is_empty() {
        return;
    }
    let pairs: Vec<String> = hooks
        .iter()
        .map(|(key, digest)| format!("{} = \"{}\"", typed::quoted(key), digest.prefixed()))
        .collect();
    typed::push_bare(out, "install-hooks", format!("{{ {} }}", pairs.join(", ")));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::diagnostic::Position;
    use crate::formats::typed::testing;
    use proptest::prelude::*;

    fn outcome(text: &str) -> Result<(), (String, Option<Position>)> {
        match Lock::parse(text) {
            Ok(_) => Ok(()),
            Err(LockError::Malformed(found)) => Err((found.message, found.position)),
            Err(other) => Err((other.to_string(), None)),
        }
    }

    fn package(id: &str, source: &str) -> LockedPackage {
        LockedPackage {
            id: id.parse().unwrap(),
            version: Version::new(2, 1, 0),
            source: source.parse().unwrap(),
            reference: None,
            subdir: None,
            commit: None,
            tree: None,
            materialization: Materialization::Copy,
            dependencies: Vec::new(),
            install_hooks: BTreeMap::new(),
        }
    }

    #[test]
    fn a_lock_has_the_documented_bytes() {
        let tree = crate::tree::Tree::default().id();
        let digest = Sha256Digest::of(b"");
        let hooks = ["hooks/prepare.ps1", "command:SessionStart:skill:review:#1"];
        let full = LockedPackage {
            reference: Some("tag:v2.1.0".into()),
            subdir: Some("packages/lint".into()),
            commit: Some("0f3c".repeat(10)),
            tree: Some(tree),
            materialization: Materialization::Hardlink,
            dependencies: vec!["org.example/core".parse().unwrap(), "a/b".parse().unwrap()],
            install_hooks: hooks.map(|key| (key.to_owned(), digest)).into(),
            ..package("org.example/lint", "git+https://host/x.git")
        };
        let lock = Lock {
            packages: vec![full, package("org.example/core", "dir+../a \"b\"")],
        };
        let text = format!(
            "# Written by vibe. Commit this file; do not edit it.\nversion = 1\n\
             \n[[package]]\nid = \"org.example/core\"\nversion = \"2.1.0\"\n\
             source = \"dir+../a \\\"b\\\"\"\n\
             \n[[package]]\nid = \"org.example/lint\"\nversion = \"2.1.0\"\n\
             source = \"git+https://host/x.git\"\nref = \"tag:v2.1.0\"\n\
             subdir = \"packages/lint\"\ncommit = \"{}\"\ntree = \"{tree}\"\n\
             materialization = \"hardlink\"\ndependencies = [\"a/b\", \"org.example/core\"]\n\
             install-hooks = {{ \"{}\" = \"sha256:{digest}\", \"{}\" = \"sha256:{digest}\" }}\n",
            "0f3c".repeat(10),
            hooks[1],
            hooks[0],
        );
        assert_eq!(lock.render(), text);
        let read = Lock::parse(&text).unwrap();
        assert_eq!(read.render(), text);
        let core = &"org.example/core".parse().unwrap();
        assert_eq!(read.get(core), lock.packages.last());
        assert_eq!(Lock::default().render(), format!("{HEADER}version = 1\n"));
    }

    #[test]
    fn a_merge_conflict_says_how_to_resolve_it() {
        let error = Lock::parse("version = 1\n<<<<<<< ours\n").unwrap_err();
        let LockError::Malformed(found) = error else {
            panic!("{error}");
        };
        assert_eq!(found.position, Some(Position { line: 2, column: 1 }));
        assert_eq!(found.line_text.as_deref(), Some("<<<<<<< ours"));
        assert!(found.hint.unwrap().contains("`vibe install`"));
    }

    #[test]
    fn credentials_are_refused_without_being_repeated() {
        let error = "git+https://user:hunter2@host/x"
            .parse::<LockedSource>()
            .unwrap_err();
        assert_eq!(error, LockedSourceError::Credentials);
        assert!(!error.to_string().contains("hunter2"));
        let text = "version = 1\n[[package]]\nid = 'a/b'\nversion = '1.0.0'\nsource = 'git+https://user:hunter2@host/x'\n";
        assert!(!format!("{:?}", Lock::parse(text)).contains("hunter2"));
    }

    #[test]
    fn a_newer_lock_is_named_whatever_its_shape() {
        let found = Lock::parse("version = 2\npackage = 1\n");
        assert_eq!(found, Err(LockError::Newer { found: 2 }));
    }

    #[test]
    fn locks_of_the_cases_are_taken_or_refused_as_they_say() {
        testing::check_cases("lock", 89, outcome);
    }

    fn any_hooks() -> impl Strategy<Value = BTreeMap<String, Sha256Digest>> {
        let key = prop_oneof![
            testing::any_path().prop_map(|path| path.to_string()),
            "command:\\PC{1,8}",
        ];
        proptest::collection::btree_map(key, testing::any_digest(), 0..3)
    }

    /// `ref`, `subdir`, `commit`: what only a git source has.
    fn any_git() -> impl Strategy<Value = [Option<String>; 3]> {
        let subdir = testing::any_path().prop_map(|path| path.to_string());
        (
            proptest::option::of("(tag|branch|rev|range):[^\\PC]?\\PC{1,6}"),
            proptest::option::of(subdir),
            proptest::option::of("[0-9a-f]{40}"),
        )
            .prop_map(|(reference, subdir, commit)| [reference, subdir, commit])
    }

    fn any_source() -> impl Strategy<Value = LockedSource> {
        prop_oneof![
            "\\PC{1,8}".prop_map(LockedSource::Directory),
            "(ssh://git@host|https://host|git@host:)/[a-z@+]{1,6}"
                .prop_map(|url| LockedSource::Git(url.parse().unwrap())),
            "[\\PC\n\t\u{1b}]{1,8}".prop_map(LockedSource::Path),
        ]
    }

    fn any_mode() -> impl Strategy<Value = Materialization> {
        proptest::sample::select(vec![
            Materialization::Copy,
            Materialization::Hardlink,
            Materialization::InPlace,
        ])
    }

    fn any_package() -> impl Strategy<Value = LockedPackage> {
        let content = (
            proptest::option::of(testing::any_digest()),
            any_mode(),
            proptest::collection::btree_set(testing::any_id(), 0..3),
            any_hooks(),
        );
        let name = (testing::any_id(), testing::any_version(), any_source());
        (name, any_git(), content).prop_map(
            |((id, version, source), git, (tree, materialization, dependencies, hooks))| {
                let [reference, subdir, commit] = match source {
                    LockedSource::Git(_) => git,
                    _ => [None, None, None],
                };
                let is_path = matches!(source, LockedSource::Path(_));
                LockedPackage {
                    id,
                    version,
                    source,
                    reference,
                    subdir,
                    commit,
                    tree: tree
                        .filter(|_| !is_path)
                        .map(|digest| format!("tree1:{digest}").parse().unwrap()),
                    materialization,
                    dependencies: dependencies.into_iter().collect(),
                    install_hooks: if is_path { BTreeMap::new() } else { hooks },
                }
            },
        )
    }

    fn any_lock() -> impl Strategy<Value = Lock> {
        proptest::collection::vec(any_package(), 0..5).prop_map(|mut packages| {
            packages.sort_by(|one, other| one.id.cmp(&other.id));
            packages.dedup_by(|one, other| one.id == other.id);
            Lock { packages }
        })
    }

    proptest! {
        #[test]
        fn a_lock_reads_back_as_it_was_written(lock in any_lock()) {
            let text = lock.render();
            let read = Lock::parse(&text).unwrap();
            prop_assert_eq!(read.render(), text.as_str());
            prop_assert_eq!(&read, &lock);
            let mut reversed = lock;
            reversed.packages.reverse();
            reversed.packages.iter_mut().for_each(|package| package.dependencies.reverse());
            prop_assert_eq!(reversed.render(), text);
        }

        #[test]
        fn a_changed_lock_is_refused_or_reads_back(
            lock in any_lock(),
            from in any::<proptest::sample::Index>(),
            length in 0..9_usize,
            replacement in "[\\PC\n]{0,3}",
        ) {
            let text = testing::mutate(&lock.render(), from, length, &replacement);
            if let Ok(read) = Lock::parse(&text) {
                prop_assert_eq!(Lock::parse(&read.render()).unwrap(), read);
            }
        }
    }
}
