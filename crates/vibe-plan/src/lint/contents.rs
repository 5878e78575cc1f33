//! The files of a package by their names and sizes: what is likely not meant to ship.

use vibe_core::RelPath;

use super::{LintFinding, LintInput};

/// Bytes of a file that everybody who installs the package should have a reason to get.
const LARGE_FILE_BYTES: u64 = 10 << 20;
/// The same of all files.
const LARGE_PACKAGE_BYTES: u64 = 100 << 20;
/// Large files that are named one by one.
const LARGE_FILES_NAMED: usize = 20;

/// Names of files that hold keys, tokens or passwords.
const SECRET_NAMES: [&str; 12] = [
    ".env",
    ".envrc",
    ".git-credentials",
    ".htpasswd",
    ".netrc",
    ".npmrc",
    ".pypirc",
    "credentials",
    "id_dsa",
    "id_ecdsa",
    "id_ed25519",
    "id_rsa",
];
/// Endings of names of such files.
const SECRET_SUFFIXES: [&str; 6] = [".pem", ".key", ".p12", ".pfx", ".keystore", ".jks"];
/// Beginnings of `.env.*` that are written for others to read.
const ENV_EXAMPLES: [&str; 5] = ["example", "sample", "template", "dist", "defaults"];

/// What is likely not meant to ship.
pub(super) fn findings(input: &LintInput<'_>) -> Vec<LintFinding> {
    let paths = input.files.keys();
    let mut found: Vec<LintFinding> = paths.clone().filter_map(secret).collect();
    found.extend(large(input));
    found.extend(slots(paths));
    found.extend(input.nested_repositories.iter().map(|path| {
        LintFinding::warning(
            "nested-repository",
            "a repository in the package: its files ship, its history does not",
            "leave its directory out with `.vibeignore` if it is not part of the package",
        )
        .of(path.as_str())
    }));
    found
}

fn secret(path: &RelPath) -> Option<LintFinding> {
    is_secret(path.file_name()).then(|| {
        LintFinding::warning(
            "secret",
            "files of this name hold keys, tokens or passwords, and everybody would get it",
            "leave it out with `.vibeignore`, and replace the secret if it was published",
        )
        .of(path.as_str())
    })
}

fn is_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let is_env = name
        .strip_prefix(".env.")
        .is_some_and(|rest| !ENV_EXAMPLES.iter().any(|example| rest.starts_with(example)));
    is_env
        || SECRET_NAMES.contains(&name.as_str())
        || SECRET_SUFFIXES.iter().any(|suffix| name.ends_with(suffix))
}

fn large(input: &LintInput<'_>) -> Vec<LintFinding> {
    let mebibytes = |bytes: u64| bytes >> 20;
    let large = input
        .files
        .iter()
        .filter(|(_, bytes)| **bytes > LARGE_FILE_BYTES);
    let mut found: Vec<LintFinding> = large
        .take(LARGE_FILES_NAMED)
        .map(|(path, bytes)| {
            LintFinding::warning(
                "large-file",
                format!(
                    "it has {} MiB, which everybody would get",
                    mebibytes(*bytes)
                ),
                "leave it out with `.vibeignore`, or have a pre-install script fetch it",
            )
            .of(path.as_str())
        })
        .collect();
    let total: u64 = input
        .files
        .values()
        .fold(0, |sum, bytes| sum.saturating_add(*bytes));
    if total > LARGE_PACKAGE_BYTES {
        found.push(LintFinding::warning(
            "large-package",
            format!(
                "the package has {} MiB, which everybody would get",
                mebibytes(total)
            ),
            "leave out with `.vibeignore` what is not needed to use it",
        ));
    }
    found
}

/// Slots of another project that ship: the `vibedeps/` of the package itself never does.
fn slots<'a>(paths: impl Iterator<Item = &'a RelPath>) -> Vec<LintFinding> {
    let mut found: Vec<LintFinding> = Vec::new();
    for path in paths {
        let Some((directory, _)) = path.as_str().rsplit_once("/vibedeps/") else {
            continue;
        };
        let place = format!("{directory}/vibedeps");
        if found
            .last()
            .is_some_and(|last| last.path.as_ref() == Some(&place))
        {
            continue;
        }
        found.push(
            LintFinding::warning(
                "nested-slots",
                "the installed packages of another project, which would ship with this one",
                "leave the directory out with `.vibeignore`",
            )
            .of(place),
        );
    }
    found
}
