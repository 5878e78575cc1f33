//! `vibe init`: a project or a package to start from.

use std::path::{Path, PathBuf};

use serde::Serialize;
use vibe_core::Name;
use vibe_core::formats::manifest::MANIFEST_NAME;
use vibe_core::formats::manifest_edit::new_project;
use vibe_core::text::shell_quote;
use vibe_fs::{canonical_directory, create_new_file, stat_of};

use crate::error::InstallError;
use crate::workspace::{nearest_workspace, root_of};

/// What to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum InitKind {
    /// A project.
    Project,
    /// A package, with a pair of hooks.
    Package,
}

/// What was started.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct InitReport {
    /// Where.
    #[serde(serialize_with = "crate::report::path_text")]
    pub directory: PathBuf,
    /// What.
    pub kind: InitKind,
    /// The files written, relative to it.
    pub files: Vec<String>,
    /// The nearest workspace around it, if that does not include it.
    #[serde(skip)]
    pub left_out_by: Option<PathBuf>,
}

const HOOK_SH: &str = r#"# Runs once this package is in its slot, on Linux, macOS, and Windows with Git Bash.
# The working directory is the slot. It runs again when the package's files change,
# so it must give the same result every time.
set -eu

mkdir -p generated
printf '%s %s\n' "$VIBE_PACKAGE_NAME" "$VIBE_PACKAGE_VERSION" > generated/version.txt
echo "prepared $VIBE_PACKAGE_NAME"
"#;

const HOOK_PS1: &str = r#"# Does what prepare.sh does, on Windows without Git Bash.
$ErrorActionPreference = 'Stop'

New-Item -ItemType Directory -Force -Path generated | Out-Null
Set-Content -Path generated/version.txt -Value "$env:VIBE_PACKAGE_NAME $env:VIBE_PACKAGE_VERSION"
Write-Output "prepared $env:VIBE_PACKAGE_NAME"
"#;

/// Starts a project or package in `directory` below `start`, or in `start` itself. Overwrites
/// nothing.
pub fn init(
    start: &Path,
    directory: Option<&Path>,
    kind: InitKind,
) -> Result<InitReport, InstallError> {
    let directory = directory.map_or_else(|| start.to_path_buf(), |path| start.join(path));
    // The directory above is called what it is called, and not `..`.
    let called = match directory.ends_with("..") {
        true => canonical_directory(&directory)?,
        false => directory.clone(),
    };
    let name = directory_name(&called)?;
    let files = match kind {
        InitKind::Project => vec![(MANIFEST_NAME, new_project(&name))],
        InitKind::Package => package_files(&name)?,
    };
    for (path, _) in &files {
        let path = directory.join(path);
        if stat_of(&path)?.is_some() {
            return Err(InstallError::AlreadyThere { path });
        }
    }
    for (path, text) in &files {
        create_new_file(&directory.join(path), text.as_bytes())?;
    }
    let files = files.into_iter().map(|(path, _)| path.to_owned()).collect();
    Ok(InitReport {
        // A manifest above that cannot be read has its error where it is needed.
        left_out_by: left_out_by(&directory).unwrap_or_default(),
        directory,
        kind,
        files,
    })
}

fn left_out_by(directory: &Path) -> Result<Option<PathBuf>, InstallError> {
    let directory = canonical_directory(directory)?;
    match root_of(&directory)? == directory {
        true => nearest_workspace(&directory),
        false => Ok(None),
    }
}

fn directory_name(directory: &Path) -> Result<String, InstallError> {
    let name = directory
        .components()
        .next_back()
        .map(|part| part.as_os_str().to_string_lossy());
    name.map(|name| name.into_owned())
        .filter(|name| name != "/")
        .ok_or_else(|| InstallError::NoName {
            directory: directory.to_string_lossy().into_owned(),
        })
}

/// A package name made of a directory's: lower case, anything else a hyphen.
fn package_name(directory: &str) -> Option<Name> {
    let hyphened: String = directory
        .to_lowercase()
        .chars()
        .map(|c| {
            if c.is_ascii_lowercase() || c.is_ascii_digit() {
                c
            } else {
                '-'
            }
        })
        .collect();
    hyphened.trim_matches('-').parse().ok()
}

fn package_files(directory: &str) -> Result<Vec<(&'static str, String)>, InstallError> {
    let name = package_name(directory).ok_or_else(|| InstallError::NoName {
        directory: directory.to_owned(),
    })?;
    let manifest = format!(
        r#"[package]
group = "org.example"              # yours: a domain you own, written backwards
name = "{name}"
version = "0.1.0"
kind = "tool"                      # flow, feat, stack, tool, mcp or lang
description = "What {name} does, in one sentence"
license = "MIT"

# Scripts that vibe runs when this package is installed: base paths, without `.sh` or `.ps1`.
[hooks]
pre-install = "hooks/prepare"      # before anything reads the package
# post-install = "hooks/finish"    # once the package is registered
# timeout = "10m"
# reset = "all"                    # remove what the install hooks made before they run again

# [requires.packages]
# "org.example/other" = "^1.2"
"#
    );
    let spec = shell_quote(&format!("path:../{directory}"));
    let readme =
        format!("# {name}\n\nInstall it into a project from a path:\n\n    vibe install {spec}\n");
    Ok(vec![
        (MANIFEST_NAME, manifest),
        ("README.md", readme),
        ("hooks/prepare.sh", HOOK_SH.to_owned()),
        ("hooks/prepare.ps1", HOOK_PS1.to_owned()),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use vibe_core::formats::manifest::{Manifest, Reading};

    #[test]
    fn a_package_name_is_made_of_a_directory_name() {
        for (directory, name) in [
            ("lint", Some("lint")),
            ("My Tools_2", Some("my-tools-2")),
            ("--x--", Some("x")),
            ("ü", None),
        ] {
            let made = package_name(directory);
            assert_eq!(made.as_ref().map(Name::as_str), name, "{directory}");
        }
    }

    #[test]
    fn a_started_package_is_valid_and_overwrites_nothing() {
        let world = tempfile::tempdir().unwrap();
        let report = init(world.path(), Some(Path::new("my-tool")), InitKind::Package).unwrap();
        assert_eq!(report.files.len(), 4);
        let text = std::fs::read_to_string(report.directory.join(MANIFEST_NAME)).unwrap();
        let manifest = Manifest::parse(&text, Reading::Own).unwrap();
        assert!(manifest.warnings.is_empty());
        let package = manifest.package.unwrap();
        assert_eq!(package.id.as_str(), "org.example/my-tool");
        assert_eq!(package.hooks.scripts.len(), 1);
        let again = init(world.path(), Some(Path::new("my-tool")), InitKind::Project);
        assert!(matches!(again, Err(InstallError::AlreadyThere { .. })));
    }
}
