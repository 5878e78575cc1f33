//! Which repository and place each submodule has, by the `.gitmodules` of the repository above it.
//!
//! Git itself warns of some rows and then leaves the submodule out; others have made it run
//! programs. Every row is therefore judged here, and nothing else reads the file.

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use vibe_core::RelPath;
use vibe_core::git_url::{GitUrlError, RemoteUrl};
use vibe_core::relative_path::PathRule;
use vibe_core::text::{escape, shorten};
use vibe_git::{Cause, CommitId, SubmoduleRow, read_gitmodules};

/// How deep submodules may lie in each other: nothing that is meant to be used goes near it.
pub const SUBMODULE_DEPTH: usize = 8;
/// Submodules of one package, those in submodules included: each is a repository to be fetched.
pub const SUBMODULES: usize = 1_000;

/// Why a submodule cannot be part of a package.
#[derive(Debug, thiserror::Error)]
pub enum SubmoduleError {
    /// The rows cannot be read at all.
    #[error(
        "`.gitmodules` of {url} cannot be read; git has to be able to read it as configuration"
    )]
    Unreadable {
        /// The repository whose file it is.
        url: String,
        /// What is wrong with it.
        source: Cause,
    },
    /// A row that is refused.
    #[error("`.gitmodules` of {url}: the submodule `{name}` {rule}")]
    Row {
        /// The repository whose file it is.
        url: String,
        /// What the row is called, escaped.
        name: String,
        /// What is wrong with it.
        rule: RowRule,
    },
    /// A submodule that nothing says the repository of.
    #[error(
        "`{path}` is a submodule, but no row of `.gitmodules` has that path; its author has to add one there"
    )]
    NoRow {
        /// The submodule, in the package.
        path: RelPath,
    },
    /// A row without a repository.
    #[error(
        "the submodule `{path}` has no `url` in `.gitmodules`; its author has to add one there"
    )]
    NoUrl {
        /// The submodule, in the package.
        path: RelPath,
    },
    /// A submodule of a repository that holds that repository.
    #[error(
        "`{path}` is {url}, which is a submodule of itself; submodules may lie {SUBMODULE_DEPTH} deep and have an end"
    )]
    Itself {
        /// The submodule, in the package.
        path: RelPath,
        /// Its repository.
        url: String,
    },
    /// Submodules in submodules in submodules.
    #[error(
        "the submodule `{path}` lies more than {SUBMODULE_DEPTH} deep in others, which is the limit"
    )]
    TooDeep {
        /// The submodule, in the package.
        path: RelPath,
    },
    /// More of them than anybody needs.
    #[error("the package has more than {SUBMODULES} submodules, which is the limit")]
    TooMany,
    /// The repository is not to be had.
    #[error("the submodule `{path}` cannot be had: {url} at {commit}")]
    Unavailable {
        /// The submodule, in the package.
        path: RelPath,
        /// Its repository.
        url: String,
        /// The commit that the repository above pins.
        commit: CommitId,
        /// Why not.
        source: Box<dyn std::error::Error + Send + Sync>,
    },
    /// The repository does not have what is pinned.
    #[error(
        "the submodule `{path}` cannot be had: {url} does not have the commit {commit}; its author has to publish it"
    )]
    NoCommit {
        /// The submodule, in the package.
        path: RelPath,
        /// Its repository.
        url: String,
        /// The commit that the repository above pins.
        commit: CommitId,
    },
}

/// The rules of a row of `.gitmodules`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowRule {
    /// A name that git refuses too.
    Name,
    /// A value that is no plain text.
    Text(&'static str),
    /// A key given twice: which one counts is not said anywhere.
    Twice(&'static str),
    /// A path that no package may have.
    Path(String, PathRule),
    /// The path of another row.
    SamePath(RelPath),
    /// An `update` that is a command.
    Command(String),
    /// An `update` that is no word of git's.
    Update(String),
    /// A `url` that is refused.
    Url(GitUrlError),
    /// A `url` on this machine, in a repository from elsewhere.
    Local(String),
    /// A `url` that is a path from nowhere.
    Aimless(String),
}

impl fmt::Display for RowRule {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RowRule::Name => out.write_str(
                "may not have that name; a name has no `..`, no control character and does not begin with `-`",
            ),
            RowRule::Text(key) => write!(
                out,
                "has a control or invisible character in its `{key}`, which has to be plain text"
            ),
            RowRule::Twice(key) => write!(out, "has two values of `{key}`; one is needed"),
            RowRule::Path(path, rule) => {
                write!(out, "has `path = {path}`, which cannot be in a package: {rule}")
            }
            RowRule::SamePath(path) => {
                write!(out, "has `path = {path}`, as another row has; one of them has to go")
            }
            RowRule::Command(update) => write!(
                out,
                "has `update = {update}`, a command, which is never run; it has to be removed"
            ),
            RowRule::Update(update) => write!(
                out,
                "has `update = {update}`; checkout, rebase, merge and none are what git knows"
            ),
            RowRule::Url(error) => write!(out, "has a `url` that is refused: {error}"),
            RowRule::Local(url) => write!(
                out,
                "has `url = {url}`, a place on this machine, though its own repository is from elsewhere"
            ),
            RowRule::Aimless(url) => write!(
                out,
                "has `url = {url}`; a path has to be absolute or begin with `./` or `../`"
            ),
        }
    }
}

/// The paths of the submodules that lie in `subdir` of the repository `origin`, whose
/// `.gitmodules` is `text`, and the repository of each where one is given. Rows that name nothing
/// that is there are judged as well.
///
/// # Errors
/// The first row that is refused.
pub(crate) fn submodule_urls(
    text: &[u8],
    origin: &RemoteUrl,
    subdir: Option<&RelPath>,
) -> Result<BTreeMap<RelPath, Option<RemoteUrl>>, SubmoduleError> {
    let rows = read_gitmodules(text).map_err(|source| SubmoduleError::Unreadable {
        url: origin.to_string(),
        source,
    })?;
    let mut urls = BTreeMap::new();
    for row in &rows {
        judge(row, origin, subdir, &mut urls).map_err(|rule| SubmoduleError::Row {
            url: origin.to_string(),
            name: escape(&shorten(&String::from_utf8_lossy(&row.name), 80)),
            rule,
        })?;
    }
    Ok(urls)
}

fn judge(
    row: &SubmoduleRow,
    origin: &RemoteUrl,
    subdir: Option<&RelPath>,
    urls: &mut BTreeMap<RelPath, Option<RemoteUrl>>,
) -> Result<(), RowRule> {
    if !is_name(&row.name) {
        return Err(RowRule::Name);
    }
    let path = single("path", &row.paths)?;
    let url = single("url", &row.urls)?;
    let update = single("update", &row.updates)?;
    let Some(path) = path else {
        return Ok(());
    };
    let path = RelPath::new(path).map_err(|error| RowRule::Path(error.path, error.rule))?;
    if subdir.is_some_and(|subdir| !path.starts_with(subdir)) {
        return Ok(());
    }
    check_update(update)?;
    let url = url.map(|url| judged_url(url, origin)).transpose()?;
    match urls.insert(path.clone(), url) {
        None => Ok(()),
        Some(_) => Err(RowRule::SamePath(path)),
    }
}

/// Whether git takes a submodule name of these bytes, and nothing else takes it for something else.
fn is_name(name: &[u8]) -> bool {
    let Some(name) = plain(name) else {
        return false;
    };
    let has_dots = name.split(['/', '\\']).any(|component| component == "..");
    !name.is_empty() && !has_dots && !name.starts_with('-')
}

fn single<'a>(key: &'static str, values: &'a [Vec<u8>]) -> Result<Option<&'a str>, RowRule> {
    match values {
        [] => Ok(None),
        [value] => plain(value).map(Some).ok_or(RowRule::Text(key)),
        _ => Err(RowRule::Twice(key)),
    }
}

/// `bytes` if they are text that shows as what it is.
fn plain(bytes: &[u8]) -> Option<&str> {
    let text = std::str::from_utf8(bytes).ok()?;
    (escape(text) == text).then_some(text)
}

/// What a submodule has is what is pinned, whatever git would do on an update: only what git would
/// refuse or run is refused.
fn check_update(update: Option<&str>) -> Result<(), RowRule> {
    match update {
        None | Some("checkout" | "rebase" | "merge" | "none") => Ok(()),
        Some(command) if command.starts_with('!') => Err(RowRule::Command(shorten(command, 80))),
        Some(other) => Err(RowRule::Update(shorten(other, 80))),
    }
}

fn judged_url(stated: &str, origin: &RemoteUrl) -> Result<RemoteUrl, RowRule> {
    let url = origin.join(stated).map_err(RowRule::Url)?;
    if url.is_local() && !origin.is_local() {
        return Err(RowRule::Local(url.to_string()));
    }
    let is_relative = stated.starts_with("./") || stated.starts_with("../");
    if url.is_local() && !is_relative && !Path::new(url.path()).is_absolute() {
        return Err(RowRule::Aimless(url.to_string()));
    }
    Ok(url)
}

#[cfg(test)]
mod tests {
    use super::*;

    const REMOTE: &str = "https://host/org/kit.git";

    fn urls(text: &str, origin: &str, subdir: Option<&str>) -> Result<Vec<String>, String> {
        let origin = RemoteUrl::parse(origin).unwrap();
        let subdir = subdir.map(|subdir| RelPath::new(subdir).unwrap());
        let urls = submodule_urls(text.as_bytes(), &origin, subdir.as_ref());
        let shown = |(path, url): (&RelPath, &Option<RemoteUrl>)| match url {
            Some(url) => format!("{path} {url}"),
            None => path.to_string(),
        };
        urls.map(|urls| urls.iter().map(shown).collect())
            .map_err(|error| error.to_string())
    }

    fn row(name: &str, lines: &str) -> String {
        format!("[submodule \"{name}\"]\n{lines}\n")
    }

    fn taken(origin: &str, lines: &str, expected: &str) {
        assert_eq!(
            urls(&row("a", lines), origin, None),
            Ok(vec![expected.to_owned()]),
            "{lines}"
        );
    }

    fn refused(text: &str, expected: &str) {
        let error = urls(text, REMOTE, None).expect_err(text);
        let start = format!("`.gitmodules` of {REMOTE}: the submodule `");
        assert!(error.starts_with(&start), "{error}");
        assert!(error.contains(expected), "{error} has no {expected}");
        assert_eq!(vibe_core::text::escape(&error), error);
    }

    #[test]
    fn ordinary_rows_give_path_and_repository() {
        taken(
            REMOTE,
            "path = lib/a\nurl = https://other/a",
            "lib/a https://other/a",
        );
        taken(
            REMOTE,
            "path = a\nurl = ../b.git",
            "a https://host/org/b.git",
        );
        taken(
            REMOTE,
            "path = a\nurl = ./b",
            "a https://host/org/kit.git/b",
        );
        taken(
            "git@host:org/kit",
            "path = a\nurl = ../b",
            "a git@host:org/b",
        );
        taken("/r/kit", "path = a\nurl = ../b", "a /r/b");
        taken("/r/kit", "path = a\nurl = file:///r/b", "a file:///r/b");
        taken("/r/kit", "path = a\nurl = /r/b", "a /r/b");
        taken(REMOTE, "path = a", "a");
        for update in ["checkout", "rebase", "merge", "none"] {
            let lines = format!("path = a\nurl = https://o/a\nupdate = {update}");
            taken(REMOTE, &lines, "a https://o/a");
        }
    }

    #[test]
    fn rows_that_could_act_elsewhere_are_refused_by_name() {
        for (lines, expected) in [
            ("path = ../x", "`a` has `path = ../x`"),
            ("path = /x", "it is absolute"),
            ("path = x/.git/y", "a spelling of `.git`"),
            ("path = \"x\r\"", "invisible character in its `path`"),
            (
                "path = x\nurl = \"https://o/a\r\"",
                "invisible character in its `url`",
            ),
            ("path = x\nurl = -ufoo", "looks like an option"),
            ("path = x\nurl = ./-u\nurl = b", "two values of `url`"),
            ("path = x\npath = y", "two values of `path`"),
            (
                "path = x\nurl = ext::sh -c x",
                "is not a git URL of a kind that is taken",
            ),
            ("path = x\nurl = ../../../x", "leads out of"),
            ("path = x\nurl = /srv/x", "a place on this machine"),
            ("path = x\nurl = file:///srv/x", "a place on this machine"),
            ("path = x\nurl = sub", "a place on this machine"),
            (
                "path = x\nupdate = !touch pwn",
                "a command, which is never run",
            ),
            ("path = x\nupdate = always", "`update = always`"),
        ] {
            refused(&row("a", lines), expected);
        }
        for name in ["../../x", "x/..", "x\\\\..\\\\y", "", "-x", "a\u{202e}"] {
            refused(&row(name, "path = x"), "may not have that name");
        }
        let twice = row("a", "path = x") + &row("b", "path = x");
        refused(&twice, "`b` has `path = x`, as another row has");
    }

    #[test]
    fn a_path_from_nowhere_is_refused_in_a_local_repository_too() {
        let error = urls(&row("a", "path = x\nurl = sub"), "/r/kit", None).unwrap_err();
        assert!(
            error.contains("has to be absolute or begin with `./`"),
            "{error}"
        );
    }

    #[test]
    fn rows_outside_of_the_directory_do_not_count() {
        let text = row("a", "path = pkg/x\nurl = ../a") + &row("b", "path = pkg-b\nurl = /srv/b");
        assert_eq!(
            urls(&text, REMOTE, Some("pkg")),
            Ok(vec!["pkg/x https://host/org/a".to_owned()])
        );
        assert!(urls(&text, REMOTE, None).is_err());
    }

    #[test]
    fn what_is_no_configuration_is_refused() {
        let error = urls("[submodule \"a\"\npath = x", REMOTE, None).unwrap_err();
        assert!(
            error.starts_with(&format!("`.gitmodules` of {REMOTE} cannot be read")),
            "{error}"
        );
    }
}
