//! `config.toml`, the user's settings.

use std::collections::BTreeSet;

use toml_edit::TableLike;

use crate::formats::diagnostic::Diagnostic;
use crate::formats::reader::{Field, Reader, parse_document, words};
use crate::limits::PackageLimits;

/// The user's settings, each with its default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserConfig {
    /// `[hooks] policy`.
    pub hook_policy: HookPolicy,
    /// `[hooks] pass-env`: more variables an install hook may see.
    pub pass_env: Vec<String>,
    /// `[hooks] timeout`, in seconds.
    pub hook_timeout_seconds: Option<u64>,
    /// `[limits]`.
    pub limits: PackageLimits,
    /// `[git] insecure-hosts`: the hosts, with or without port, to which `http://` and `git://` may
    /// go.
    pub insecure_hosts: Vec<String>,
}

/// Who consents to an install hook. Ordered from loose to strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum HookPolicy {
    /// Installing the package is the consent.
    #[default]
    InstallIsConsent,
    /// Ask first.
    Ask,
    /// Run none.
    Never,
}

words!(HookPolicy {
    InstallIsConsent => "install-is-consent",
    Ask => "ask",
    Never => "never",
});

impl UserConfig {
    /// Reads a `config.toml`; beside it, a warning for each key that means nothing.
    ///
    /// # Errors
    /// The first thing that makes the text no configuration, with its place.
    pub fn parse(text: &str) -> Result<(UserConfig, Vec<Diagnostic>), Diagnostic> {
        let document = parse_document(text)?;
        let mut root = Reader::root(text, &document, "the configuration");
        let mut config = UserConfig::default();
        let mut warnings = Vec::new();
        if let Some(mut hooks) = root.table("hooks")? {
            config.hook_policy = hooks.get("policy", Field::word)?.unwrap_or_default();
            config.pass_env = hooks
                .get("pass-env", |field| field.list(read_variable))?
                .unwrap_or_default();
            config.hook_timeout_seconds = hooks.get("timeout", Field::duration_seconds)?;
            warnings.extend(hooks.unknown());
        }
        if let Some(mut limits) = root.table("limits")? {
            config.limits = read_limits(&mut limits)?;
            warnings.extend(limits.unknown());
        }
        if let Some(mut git) = root.table("git")? {
            config.insecure_hosts = git.get("insecure-hosts", Field::names)?.unwrap_or_default();
            warnings.extend(git.unknown());
        }
        warnings.extend(root.unknown());
        warnings.sort_by_key(|warning| warning.position);
        Ok((config, warnings))
    }
}

/// The keys that `text`, a configuration, states, as `hooks.policy`: what has another value than the
/// default, and what has the default since it is written there. None of a text that is no TOML.
pub fn stated_keys(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let Ok(document) = parse_document(text) else {
        return found;
    };
    for (table, item) in document.iter() {
        let keys = item.as_table_like().into_iter().flat_map(TableLike::iter);
        found.extend(keys.map(|(key, _)| format!("{table}.{key}")));
    }
    found
}

fn read_limits(table: &mut Reader<'_>) -> Result<PackageLimits, Diagnostic> {
    let default = PackageLimits::default();
    let entries = |field: &Field<'_>| {
        usize::try_from(field.positive()?)
            .map_err(|_| field.wrong("a number this machine can count to"))
    };
    Ok(PackageLimits {
        package_bytes: table
            .get("package-bytes", Field::positive)?
            .unwrap_or(default.package_bytes),
        package_entries: table
            .get("package-entries", entries)?
            .unwrap_or(default.package_entries),
        file_bytes: table
            .get("file-bytes", Field::positive)?
            .unwrap_or(default.file_bytes),
    })
}

/// The name of an environment variable: `[A-Za-z_][A-Za-z0-9_]*`.
fn read_variable(field: &Field<'_>) -> Result<String, Diagnostic> {
    let name = field.str()?;
    let is_name = name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    if name.is_empty() || !is_name || name.starts_with(|c: char| c.is_ascii_digit()) {
        return Err(field.wrong("an array of variable names of letters, digits and underscores"));
    }
    Ok(name.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_stated_is_told_from_what_is_left_out() {
        let check = |text: &str, expected: &[&str]| {
            let found = stated_keys(text);
            assert_eq!(found.into_iter().collect::<Vec<_>>(), expected, "{text}");
        };
        check("", &[]);
        check("not TOML", &[]);
        check(
            "limits = { file-bytes = 1 }\n[hooks]\npolicy = \"install-is-consent\"\ntimeout = \"1m\"\n",
            &["hooks.policy", "hooks.timeout", "limits.file-bytes"],
        );
    }

    #[test]
    fn an_empty_configuration_is_the_default() {
        let (config, warnings) = UserConfig::parse("").unwrap();
        assert_eq!(config, UserConfig::default());
        assert_eq!(warnings, []);
        let (config, _) = UserConfig::parse("[hooks]\n[limits]\n").unwrap();
        assert_eq!(config, UserConfig::default());
    }

    #[test]
    fn every_setting_is_read() {
        let text = "
[hooks]
policy = \"ask\"
pass-env = [\"HTTPS_PROXY\", \"_a1\"]
timeout = \"2m\"
[limits]
package-bytes = 1
package-entries = 2
file-bytes = 3
[git]
insecure-hosts = [\"intra\", \"127.0.0.1:8080\"]
";
        let (config, warnings) = UserConfig::parse(text).unwrap();
        let expected = UserConfig {
            hook_policy: HookPolicy::Ask,
            pass_env: vec!["HTTPS_PROXY".to_owned(), "_a1".to_owned()],
            hook_timeout_seconds: Some(120),
            limits: PackageLimits {
                package_bytes: 1,
                package_entries: 2,
                file_bytes: 3,
            },
            insecure_hosts: vec!["intra".to_owned(), "127.0.0.1:8080".to_owned()],
        };
        assert_eq!(config, expected);
        assert_eq!(warnings, []);
    }

    #[test]
    fn every_policy_has_its_word() {
        for policy in [
            HookPolicy::InstallIsConsent,
            HookPolicy::Ask,
            HookPolicy::Never,
        ] {
            let text = format!("[hooks]\npolicy = \"{policy}\"\n");
            assert_eq!(UserConfig::parse(&text).unwrap().0.hook_policy, policy);
        }
    }

    #[test]
    fn an_unknown_key_is_a_warning() {
        let (_, warnings) =
            UserConfig::parse("x = 1\n[hooks]\npolicyy = 1\n[limits]\ny = 1\n").unwrap();
        let messages: Vec<String> = warnings.iter().map(Diagnostic::to_string).collect();
        assert_eq!(
            messages,
            [
                "unknown key `x` in the configuration",
                "unknown key `policyy` in [hooks]",
                "unknown key `y` in [limits]",
            ]
        );
        assert_eq!(warnings[1].hint.as_deref(), Some("did you mean `policy`?"));
    }

    #[test]
    fn values_outside_their_rule_are_refused() {
        for (text, message) in [
            (
                "[hooks]\npolicy = \"allow\"",
                "must be \"install-is-consent\", \"ask\" or \"never\", not \"allow\"",
            ),
            (
                "[hooks]\npass-env = [\"A-B\"]",
                "must be an array of variable names",
            ),
            (
                "[hooks]\npass-env = [\"\"]",
                "must be an array of variable names",
            ),
            (
                "[hooks]\npass-env = [\"1A\"]",
                "must be an array of variable names",
            ),
            (
                "[hooks]\ntimeout = \"0s\"",
                "must be an integer with s, m or h",
            ),
            (
                "[limits]\npackage-bytes = 0",
                "must be an integer above zero, not 0",
            ),
            (
                "[limits]\nfile-bytes = -1",
                "must be an integer above zero, not -1",
            ),
            (
                "[limits]\npackage-entries = \"9\"",
                "must be an integer above zero",
            ),
        ] {
            let error = UserConfig::parse(text).unwrap_err();
            assert!(error.to_string().contains(message), "{text}: {error}");
            assert_eq!(error.position.unwrap().line, 2, "{text}");
        }
    }
}
