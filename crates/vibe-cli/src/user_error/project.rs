//! What helps where a project, or the workspace it is part of, cannot be found, started or read.

use vibe_core::text::escape;
use vibe_install::{InstallError, ReadError, WorkspaceError};

use crate::paste::Paste;

pub(super) fn hint(error: &InstallError, paste: &Paste) -> Option<String> {
    match error {
        InstallError::NoProject { .. } => {
            Some(format!("start a project here: {}", paste.line(&["init"])))
        }
        InstallError::NoStart { .. } => {
            Some("name a directory that is there with --project".to_owned())
        }
        InstallError::ForeignProject { .. } => Some(format!(
            "start a project of your own: {}; or name that directory with --project, if you trust it",
            paste.line(&["init"])
        )),
        InstallError::NoDirectory { .. } => Some(
            "name one that is there; a relative path begins at the working directory".to_owned(),
        ),
        InstallError::PackageIsNoProject {
            workspace: Some(workspace),
            ..
        } => Some(format!(
            "the workspace {} does not include it: add it to `members` there",
            escape(&workspace.to_string_lossy())
        )),
        InstallError::PackageIsNoProject { path, .. } => {
            let spec = format!("path:{}", path.to_string_lossy());
            let command = Paste::default().line(&["install", &spec]);
            Some(format!(
                "to try a package, require it from a project: {command}"
            ))
        }
        InstallError::AlreadyThere { .. } => {
            Some("nothing was written; choose another directory, or move the file away".to_owned())
        }
        InstallError::NoName { .. } => {
            Some("choose a directory whose name has letters a to z or digits".to_owned())
        }
        InstallError::ReadManifest { source } => match source {
            ReadError::NotAFile { .. } => {
                Some("a manifest is a regular file: put the file itself there".to_owned())
            }
            ReadError::TooLarge { .. } => {
                Some("a manifest is written by hand: take out what is no part of one".to_owned())
            }
            ReadError::Fs(_) => None,
        },
        InstallError::NotYet { .. } => {
            Some("leave it out; registries, git repositories and paths work".to_owned())
        }
        _ => None,
    }
}

pub(super) fn workspace_hint(error: &WorkspaceError) -> String {
    match error {
        WorkspaceError::Foreign { .. } => {
            "remove that file, or move the project elsewhere; to use the workspace, make the file \
             your own"
                .to_owned()
        }
        WorkspaceError::NoSuchMember { .. } => {
            "correct `members`, or start a project there; a pattern like `packages/*` passes over \
             directories without a vibe.toml"
                .to_owned()
        }
        WorkspaceError::MemberPath { .. } => {
            "rename that directory, or leave it out of `members`".to_owned()
        }
        WorkspaceError::TooLarge { .. } => "name the members more closely in `members`".to_owned(),
        WorkspaceError::PublishedVariable { id, dependency, .. } => {
            format!("publish a version of {id} that states the constraint on {dependency} itself")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user_error::UserError;
    use crate::user_error::testing::*;
    use std::path::PathBuf;

    #[test]
    fn what_the_project_lacks_is_a_usage_error() {
        let path = PathBuf::from("/a b");
        check(
            &InstallError::NoProject {
                start: path.clone(),
            },
            "no-project",
            2,
            "vibe init",
        );
        let (path_of_other, start) = (PathBuf::from("/vibe.toml"), path.clone());
        let other = InstallError::ForeignProject {
            path: path_of_other,
            start,
        };
        check(&other, "foreign-project", 2, "vibe init; or name that");
        let package = InstallError::PackageIsNoProject {
            path: path.clone(),
            workspace: None,
        };
        check(
            &package,
            "package-is-no-project",
            2,
            "vibe install 'path:/a b'",
        );
        let outside = InstallError::PackageIsNoProject {
            path: path.clone(),
            workspace: Some("/".into()),
        };
        check(&outside, "package-is-no-project", 2, "`members`");
        let directory = InstallError::NotAPackageDirectory { path: path.clone() };
        check(&directory, "not-a-package", 2, "has `[package]`");
        let bare = InstallError::NoPackageManifest { path: path.clone() };
        check(&bare, "not-a-package", 2, "vibe init --package '/a b'");
        let source = InstallError::NotAPackage {
            id: id("org.example/a"),
            path: path.clone(),
        };
        check(&source, "not-a-package", 2, "has `[package]`");
        let name = InstallError::NoName {
            directory: "_".to_owned(),
        };
        check(&name, "no-name", 2, "letters");
        check(
            &InstallError::AlreadyThere { path },
            "already-there",
            1,
            "nothing was written",
        );
    }

    #[test]
    fn hints_mean_the_project_of_this_run() {
        let start = PathBuf::from("/p q");
        let paste = Paste::new(Some(&start));
        let found = UserError::of(&InstallError::NoProject { start }, &paste);
        assert_eq!(
            found.hints,
            ["start a project here: vibe --project '/p q' init"]
        );
    }

    #[test]
    fn what_is_wrong_with_a_workspace_has_a_remedy() {
        let path = || PathBuf::from("/a b");
        let told = |error: WorkspaceError, hint: &str| {
            check(&InstallError::Workspace(error), "workspace", 2, hint);
        };
        told(
            WorkspaceError::Foreign {
                path: path(),
                directory: path(),
            },
            "your own",
        );
        told(
            WorkspaceError::NoSuchMember {
                path: path(),
                member: "packages/x".to_owned(),
            },
            "`packages/*`",
        );
        let source = vibe_core::RelPath::new("a:b").unwrap_err();
        told(WorkspaceError::MemberPath { source }, "rename");
        told(
            WorkspaceError::TooLarge {
                root: path(),
                what: "more than 3 members".to_owned(),
            },
            "more closely",
        );
        told(
            WorkspaceError::PublishedVariable {
                id: id("org.x/a"),
                version: version(),
                dependency: id("org.x/b"),
            },
            "on org.x/b itself",
        );
    }
}
