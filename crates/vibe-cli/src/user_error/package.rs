//! What helps where a package that was named is not there so.

use std::path::PathBuf;

use vibe_core::PackageId;
use vibe_install::InstallError;

use crate::near::{did_you_mean, relatives};
use crate::paste::Paste;

/// What helps where a package that was named is not there so.
pub(super) fn hint(error: &InstallError, paste: &Paste) -> Option<String> {
    match error {
        InstallError::NotInstalled { id, installed } => Some(
            did_you_mean(id, installed)
                .or_else(|| relatives(id, installed))
                .unwrap_or_else(|| format!("see what is installed: {}", paste.line(&["list"]))),
        ),
        InstallError::NotRequired {
            id,
            elsewhere,
            roots,
            ..
        } => Some(not_required_hint(id, elsewhere, roots, paste)),
        InstallError::NoSuchPackage { id, known } => {
            let meant = did_you_mean(id, known).or_else(|| relatives(id, known));
            Some(meant.unwrap_or_else(|| {
                "no `[[registry]]` in vibe.toml has it, and vibe.lock has it neither".to_owned()
            }))
        }
        InstallError::NoSuchVersion { id, .. } => Some(format!(
            "see the versions that there are: {}",
            paste.line(&["show", id.as_str()])
        )),
        _ => None,
    }
}

/// How a package goes that only others require; `roots` bring it.
fn not_required_hint(
    id: &PackageId,
    elsewhere: &[PathBuf],
    roots: &[PackageId],
    paste: &Paste,
) -> String {
    if let Some(there) = elsewhere.first() {
        let command = Paste::new(Some(there)).line(&["uninstall", id.as_str()]);
        return format!("take it out there: {command}");
    }
    if roots.is_empty() {
        let command = paste.line(&["install"]);
        return format!("an install removes what nothing needs: {command}");
    }
    let words = std::iter::once("uninstall").chain(roots.iter().map(PackageId::as_str));
    let words: Vec<&str> = words.collect();
    format!("it goes with what brings it: {}", paste.line(&words))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::user_error::testing::*;

    #[test]
    fn what_another_member_requires_is_taken_out_there() {
        let error = InstallError::NotRequired {
            manifest: vibe_core::RelPath::new("vibe.toml").unwrap(),
            id: id("org.example/a"),
            elsewhere: vec![PathBuf::from("/w/m n")],
            requirers: Vec::new(),
            roots: Vec::new(),
        };
        let command = "vibe --project '/w/m n' uninstall org.example/a";
        check(&error, "not-required", 1, command);
    }

    #[test]
    fn what_only_others_require_goes_with_them() {
        let error = |roots: &[&str]| InstallError::NotRequired {
            manifest: vibe_core::RelPath::new("vibe.toml").unwrap(),
            id: id("org.example/a"),
            elsewhere: Vec::new(),
            requirers: vec![id("org.example/b")],
            roots: roots.iter().map(|root| id(root)).collect(),
        };
        let both = error(&["org.example/c", "org.example/d"]);
        let command = "vibe uninstall org.example/c org.example/d";
        check(&both, "not-required", 1, command);
        check(&error(&[]), "not-required", 1, "vibe install");
    }

    #[test]
    fn a_name_that_is_nearly_right_is_suggested() {
        let near = |text| InstallError::NotInstalled {
            id: id(text),
            installed: vec![id("org.example/lint"), id("org.example/format")],
        };
        check(
            &near("org.example/lnit"),
            "not-installed",
            1,
            "did you mean org.example/lint?",
        );
        check(
            &near("org.exmaple/lint"),
            "not-installed",
            1,
            "did you mean org.example/lint?",
        );
        let of_name = "packages of that name in other groups: org.example/lint";
        check(&near("com.other/lint"), "not-installed", 1, of_name);
        let of_group = "the group org.example has: format, lint";
        check(&near("org.example/nono"), "not-installed", 1, of_group);
        check(&near("net.other/nono"), "not-installed", 1, "vibe list");
    }

    #[test]
    fn a_package_that_is_looked_at_and_is_not_there_is_told() {
        let looked_at = |text| InstallError::NoSuchPackage {
            id: id(text),
            known: vec![id("org.example/lint")],
        };
        let near = looked_at("org.example/lnit");
        let hint = "did you mean org.example/lint?";
        check(&near, "no-such-package", 1, hint);
        let relative = looked_at("com.other/lint");
        let hint = "packages of that name in other groups: org.example/lint";
        check(&relative, "no-such-package", 1, hint);
        let far = looked_at("com.other/x");
        check(&far, "no-such-package", 1, "no `[[registry]]`");
        let no_such_version = InstallError::NoSuchVersion {
            id: id("org.example/lint"),
            constraint: "^3".parse().unwrap(),
            newest: version(),
        };
        let hint = "vibe show org.example/lint";
        check(&no_such_version, "no-such-version", 1, hint);
    }
}
