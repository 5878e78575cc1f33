//! What helps where the source of a package does not serve.

use std::io::ErrorKind;

use vibe_core::text::{escape, nearest};
use vibe_install::{FetchError, InstallError};

use super::REGISTRY;
use super::kind::fetch_code;
use crate::exit_code::INTEGRITY;
use crate::paste::Paste;

/// The hint where a vibe.toml is not that of a package.
const NO_PACKAGE: &str = "name the directory of a package; the vibe.toml of one has `[package]` with `group`, \
                          `name` and `version`";

pub(super) fn hint(error: &InstallError, paste: &Paste) -> Option<String> {
    match error {
        InstallError::NoSuchRegistry { name, known, .. } => Some(registry_hint(name, known)),
        InstallError::NotInRegistries { id, .. } => Some(format!(
            "restore it in the registry; or, to choose another version, remove the entry of {id} \
             from vibe.lock and run: {}",
            paste.line(&["install"])
        )),
        InstallError::PathSource { id, .. } => {
            Some(format!("correct the path of {id} in vibe.toml"))
        }
        InstallError::AskedTwice { .. } => Some("name it once".to_owned()),
        InstallError::TwoSources { .. } => Some(
            "keep one of them, or choose one for everybody with an `[[override]]` in the project's \
             vibe.toml"
                .to_owned(),
        ),
        // The place of a package in a repository is no directory.
        InstallError::NotAPackage { path, .. } if !path.is_absolute() => Some(
            "the vibe.toml of a package has `[package]`; name the directory that has one with \
             `subdir`"
                .to_owned(),
        ),
        InstallError::NotAPackage { .. } | InstallError::NotAPackageDirectory { .. } => {
            Some(NO_PACKAGE.to_owned())
        }
        InstallError::NoPackageManifest { path } => {
            let directory = path.to_string_lossy();
            let command = Paste::default().line(&["init", "--package", &directory]);
            Some(format!("make it a package: {command}"))
        }
        InstallError::OtherPackage { .. } => {
            Some("correct the requirement, or the `[package]` of that vibe.toml".to_owned())
        }
        InstallError::PublishedPath { id, dependency, .. } => Some(format!(
            "publish a version of {id} that requires {dependency} by a version constraint"
        )),
        InstallError::GitProgram { .. } => None,
        InstallError::CloneGuard { .. } => Some(
            "commit and push it elsewhere, or move it away; to lose it, run the same command with \
             `--force`"
                .to_owned(),
        ),
        InstallError::InPlaceNeedsGit { .. } | InstallError::InPlaceSubdir { .. } => {
            Some("write `materialization = \"copy\"` in the package's vibe.toml".to_owned())
        }
        InstallError::Fetch { source, .. } if is_absence(source) => Some(REGISTRY.to_owned()),
        InstallError::Fetch { source, .. } if fetch_code(source) == INTEGRITY => {
            Some("a published version never changes: restore its files in the registry".to_owned())
        }
        InstallError::Fetch { source, .. } => fetch_hint(source).map(str::to_owned),
        InstallError::Registry { name, .. } => Some(format!(
            "correct the `url` of the registry `{}` in vibe.toml, or mend what is there",
            escape(name)
        )),
        _ => None,
    }
}

fn registry_hint(name: &str, known: &[String]) -> String {
    match nearest(name, known.iter().map(String::as_str)) {
        Some(near) => format!("did you mean `{near}`?"),
        None => format!(
            "add a `[[registry]]` with the name `{}` to the project's vibe.toml, or take the name \
             out",
            escape(name)
        ),
    }
}

/// What helps against a package that is refused.
fn fetch_hint(error: &FetchError) -> Option<&'static str> {
    match error {
        FetchError::Name(_)
        | FetchError::Tree(_)
        | FetchError::Special { .. }
        | FetchError::LongLink { .. }
        | FetchError::Link { .. } => {
            Some("the package has to change: rename it there, or leave it out with `.vibeignore`")
        }
        FetchError::TooManyEntries { .. } => {
            Some("`package-entries` in `[limits]` of your config.toml allows more")
        }
        FetchError::FileTooLarge { .. } => {
            Some("`file-bytes` in `[limits]` of your config.toml allows more")
        }
        FetchError::PackageTooLarge { .. } => {
            Some("`package-bytes` in `[limits]` of your config.toml allows more")
        }
        _ => None,
    }
}

/// Whether nothing, or no directory, lies where a registry or a version in it should.
fn is_absence(error: &FetchError) -> bool {
    match error {
        FetchError::Fs(error) => error.kind() == ErrorKind::NotFound,
        FetchError::NotADirectory { .. } => true,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user_error::testing::*;
    use std::path::PathBuf;

    #[test]
    fn a_source_that_does_not_serve_says_what_to_correct() {
        let a = || id("org.example/a");
        let path = || PathBuf::from("/p/vibe.toml");
        let (first, second) = ("path a".to_owned(), "path b".to_owned());
        let registry = InstallError::NoSuchRegistry {
            path: path(),
            id: a(),
            name: "acme".to_owned(),
            known: vec!["other".to_owned()],
        };
        check(&registry, "no-such-registry", 2, "the name `acme`");
        let misspelt = InstallError::NoSuchRegistry {
            path: path(),
            id: a(),
            name: "amce".to_owned(),
            known: vec!["other".to_owned(), "acme".to_owned()],
        };
        check(&misspelt, "no-such-registry", 2, "did you mean `acme`?");
        let absent = InstallError::NotInRegistries {
            id: a(),
            version: version(),
        };
        check(&absent, "not-in-registries", 1, "vibe install");
        check(
            &InstallError::TwoSources {
                id: a(),
                first,
                second,
            },
            "two-sources",
            2,
            "keep one",
        );
        let (expected, found) = ("a 1".to_owned(), "b 1".to_owned());
        let other = InstallError::OtherPackage {
            path: path(),
            expected,
            found,
        };
        check(&other, "other-package", 2, "[package]");
        let published = InstallError::PublishedPath {
            id: a(),
            version: version(),
            dependency: id("org.x/b"),
        };
        check(
            &published,
            "published-path",
            2,
            "requires org.x/b by a version",
        );
        let in_place = InstallError::InPlaceNeedsGit {
            id: a(),
            path: path(),
        };
        check(&in_place, "in-place-needs-git", 2, "\"copy\"");
        let what = "the foreign dependency org.x/b".to_owned();
        check(
            &InstallError::NotYet { what, path: path() },
            "not-supported",
            1,
            "git repositories and paths work",
        );
        let spec = InstallError::SpecIsNoPackage {
            repository: "https://h/x".to_owned(),
            commit: "0".repeat(40),
        };
        check(&spec, "not-a-package", 2, "`subdir`");
    }
}
