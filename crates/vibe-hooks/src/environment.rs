//! The environment of an install hook: built from a list, not inherited, so that no credential
//! reaches a hook and no setting of the caller's shell changes it.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

use vibe_core::hook::{HookReason, HostOs, Phase};
use vibe_core::text::escape_bytes;

/// Taken from the caller on every system.
const PASSED: &[&str] = &[
    "PATH",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "LANG",
    "TZ",
    "TERM",
    "TMPDIR",
    "CI",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "FTP_PROXY",
    "ALL_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "ftp_proxy",
    "all_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "NODE_EXTRA_CA_CERTS",
    "CARGO_HOME",
    "RUSTUP_HOME",
    "GOPATH",
    "GOROOT",
    "JAVA_HOME",
    "NVM_DIR",
    "PYENV_ROOT",
    "VIRTUAL_ENV",
    "CONDA_PREFIX",
    "CC",
    "CXX",
    "PKG_CONFIG_PATH",
];
/// Beginnings of names taken from the caller on every system.
const PASSED_PREFIXES: &[&str] = &["LC_", "XDG_"];
/// Also taken from the caller on Windows, where programs do not start without some of them.
const PASSED_ON_WINDOWS: &[&str] = &[
    "SystemRoot",
    "ComSpec",
    "PATHEXT",
    "USERPROFILE",
    "APPDATA",
    "LOCALAPPDATA",
    "ProgramData",
    "TEMP",
    "TMP",
];
/// Beginnings of names also taken from the caller on Windows.
const PASSED_PREFIXES_ON_WINDOWS: &[&str] = &["ProgramFiles"];

/// What a hook is told about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HookContext {
    /// The package's group.
    pub group: String,
    /// The package's name.
    pub name: String,
    /// The version being installed.
    pub version: String,
    /// The package's kind.
    pub kind: String,
    /// The slot, which is the working directory.
    pub directory: PathBuf,
    /// The phase.
    pub phase: Phase,
    /// Why it runs.
    pub reason: HookReason,
    /// The version that was installed before, if another was.
    pub previous_version: Option<String>,
    /// The project's root.
    pub project_root: PathBuf,
    /// The program that runs the hook: vibe.
    pub executable: PathBuf,
    /// `VIBE_PKG_HOME`, if set.
    pub package_home: Option<OsString>,
    /// `VIBE_OFFLINE`, if set.
    pub offline: Option<OsString>,
}

/// A hook's environment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BuiltEnvironment {
    /// The variables, complete.
    pub variables: BTreeMap<OsString, OsString>,
    /// The names of the caller's variables that are not among them, sorted, escaped; without those
    /// that every shell keeps for itself.
    pub not_passed: Vec<String>,
}

/// The environment of the hook `context` on `os`, from the caller's environment `caller` and the
/// further names `pass_env` that the user lets through. On Windows names compare without case. A
/// name that is ours is never taken from the caller.
pub fn build(
    os: HostOs,
    caller: &BTreeMap<OsString, OsString>,
    context: &HookContext,
    pass_env: &[String],
) -> BuiltEnvironment {
    let ours = own_variables(context);
    let is_ours = |name: &OsStr| ours.iter().any(|(own, _)| same_name(os, name, own));
    let passed = caller
        .iter()
        .filter(|(name, _)| !is_ours(name) && is_passed(os, name, pass_env))
        .map(|(name, value)| (name.clone(), value.clone()));
    let set = ours
        .iter()
        .filter_map(|(name, value)| Some((OsString::from(name), value.clone()?)));
    let variables: BTreeMap<OsString, OsString> = passed.chain(set).collect();
    let mut not_passed: Vec<String> = caller
        .keys()
        .filter(|name| lookup(os, &variables, name).is_none() && !is_shell_bookkeeping(name))
        .map(|name| escape_bytes(name.as_encoded_bytes()))
        .collect();
    not_passed.sort();
    BuiltEnvironment {
        variables,
        not_passed,
    }
}

/// Variables that a shell keeps for itself and sets anew: not passing them withholds nothing.
fn is_shell_bookkeeping(name: &OsStr) -> bool {
    matches!(name.to_str(), Some("PWD" | "OLDPWD" | "SHLVL" | "_"))
}

/// The value of `name` in `environment`; on Windows the case of the name does not matter.
pub fn lookup(
    os: HostOs,
    environment: &BTreeMap<OsString, OsString>,
    name: impl AsRef<OsStr>,
) -> Option<&OsString> {
    let wanted = name.as_ref();
    environment
        .iter()
        .find(|(name, _)| same_os_name(os, name, wanted))
        .map(|(_, value)| value)
}

/// Our own names, those without a value included.
fn own_variables(context: &HookContext) -> [(&'static str, Option<OsString>); 12] {
    let previous_version = context.previous_version.as_ref();
    [
        ("VIBE_PACKAGE_GROUP", Some(context.group.clone().into())),
        ("VIBE_PACKAGE_NAME", Some(context.name.clone().into())),
        ("VIBE_PACKAGE_VERSION", Some(context.version.clone().into())),
        ("VIBE_PACKAGE_KIND", Some(context.kind.clone().into())),
        ("VIBE_PACKAGE_DIR", Some(context.directory.clone().into())),
        ("VIBE_HOOK_PHASE", Some(context.phase.as_str().into())),
        ("VIBE_HOOK_REASON", Some(context.reason.as_str().into())),
        ("VIBE_PREVIOUS_VERSION", previous_version.map(Into::into)),
        (
            "VIBE_PROJECT_ROOT",
            Some(context.project_root.clone().into()),
        ),
        ("VIBE_EXECUTABLE", Some(context.executable.clone().into())),
        ("VIBE_PKG_HOME", context.package_home.clone()),
        ("VIBE_OFFLINE", context.offline.clone()),
    ]
}

fn is_passed(os: HostOs, name: &OsStr, pass_env: &[String]) -> bool {
    let is_one_of = |names: &[&str]| names.iter().any(|known| same_name(os, name, known));
    let begins = |prefixes: &[&str]| prefixes.iter().any(|known| has_prefix(os, name, known));
    let on_windows = os == HostOs::Windows
        && (is_one_of(PASSED_ON_WINDOWS) || begins(PASSED_PREFIXES_ON_WINDOWS));
    is_one_of(PASSED)
        || begins(PASSED_PREFIXES)
        || on_windows
        || pass_env.iter().any(|listed| same_name(os, name, listed))
}

fn same_name(os: HostOs, name: &OsStr, known: &str) -> bool {
    same_os_name(os, name, OsStr::new(known))
}

fn same_os_name(os: HostOs, one: &OsStr, other: &OsStr) -> bool {
    match os {
        HostOs::Unix => one == other,
        HostOs::Windows => one.eq_ignore_ascii_case(other),
    }
}

fn has_prefix(os: HostOs, name: &OsStr, prefix: &str) -> bool {
    let prefix = prefix.as_bytes();
    name.as_encoded_bytes()
        .get(..prefix.len())
        .is_some_and(|start| match os {
            HostOs::Unix => start == prefix,
            HostOs::Windows => start.eq_ignore_ascii_case(prefix),
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn context() -> HookContext {
        HookContext {
            group: "org.example".into(),
            name: "tool".into(),
            version: "1.2.0".into(),
            kind: "feat".into(),
            directory: "/p/vibedeps/slot".into(),
            phase: Phase::PostInstall,
            reason: HookReason::Update,
            previous_version: Some("1.1.0".into()),
            project_root: "/p".into(),
            executable: "/bin/vibe".into(),
            package_home: Some("/home/v".into()),
            offline: Some("1".into()),
        }
    }

    const OURS: [(&str, &str); 12] = [
        ("VIBE_PACKAGE_GROUP", "org.example"),
        ("VIBE_PACKAGE_NAME", "tool"),
        ("VIBE_PACKAGE_VERSION", "1.2.0"),
        ("VIBE_PACKAGE_KIND", "feat"),
        ("VIBE_PACKAGE_DIR", "/p/vibedeps/slot"),
        ("VIBE_HOOK_PHASE", "post-install"),
        ("VIBE_HOOK_REASON", "update"),
        ("VIBE_PREVIOUS_VERSION", "1.1.0"),
        ("VIBE_PROJECT_ROOT", "/p"),
        ("VIBE_EXECUTABLE", "/bin/vibe"),
        ("VIBE_PKG_HOME", "/home/v"),
        ("VIBE_OFFLINE", "1"),
    ];

    fn environment(names: &[&str]) -> BTreeMap<OsString, OsString> {
        let value = |name: &&str| (OsString::from(name), OsString::from("caller"));
        names.iter().map(value).collect()
    }

    /// The caller's names that reach a hook, and those that do not.
    fn split(os: HostOs, names: &[&str], pass_env: &[&str]) -> (Vec<String>, Vec<String>) {
        let pass_env: Vec<String> = pass_env.iter().map(|name| name.to_string()).collect();
        let built = build(os, &environment(names), &context(), &pass_env);
        let passed = built
            .variables
            .into_iter()
            .filter(|(_, value)| value == "caller")
            .map(|(name, _)| name.into_string().unwrap())
            .collect();
        (passed, built.not_passed)
    }

    fn check(os: HostOs, passed: &[&str], not_passed: &[&str], pass_env: &[&str]) {
        let all = [passed, not_passed].concat();
        let sorted = |names: &[&str]| {
            let mut names: Vec<String> = names.iter().map(|name| name.to_string()).collect();
            names.sort();
            names
        };
        let expected = (sorted(passed), sorted(not_passed));
        assert_eq!(split(os, &all, pass_env), expected);
    }

    #[test]
    fn a_hook_without_caller_gets_our_variables_and_nothing_else() {
        let built = build(HostOs::Unix, &BTreeMap::new(), &context(), &["X".into()]);
        let expected = OURS.map(|(name, value)| (OsString::from(name), OsString::from(value)));
        assert_eq!(built.variables, BTreeMap::from(expected));
        assert!(built.not_passed.is_empty());
    }

    #[test]
    fn variables_without_a_value_are_absent_even_if_the_caller_has_them() {
        let optional = ["VIBE_PREVIOUS_VERSION", "VIBE_PKG_HOME", "VIBE_OFFLINE"];
        let context = HookContext {
            previous_version: None,
            package_home: None,
            offline: None,
            ..context()
        };
        let pass_env = optional.map(String::from);
        let built = build(HostOs::Unix, &environment(&optional), &context, &pass_env);
        assert_eq!(built.variables.len(), OURS.len() - optional.len());
        assert_eq!(
            built.not_passed,
            ["VIBE_OFFLINE", "VIBE_PKG_HOME", "VIBE_PREVIOUS_VERSION"]
        );
    }

    #[test]
    fn the_listed_variables_pass_and_no_other() {
        let passed = "PATH HOME USER LOGNAME SHELL LANG LC_ALL LC_CTYPE TZ TERM TMPDIR CI \
            XDG_CACHE_HOME HTTP_PROXY http_proxy HTTPS_PROXY https_proxy FTP_PROXY ftp_proxy \
            ALL_PROXY all_proxy NO_PROXY no_proxy SSL_CERT_FILE SSL_CERT_DIR NODE_EXTRA_CA_CERTS \
            CARGO_HOME RUSTUP_HOME GOPATH GOROOT JAVA_HOME NVM_DIR PYENV_ROOT VIRTUAL_ENV \
            CONDA_PREFIX CC CXX PKG_CONFIG_PATH";
        let passed: Vec<&str> = passed.split_whitespace().collect();
        let not_passed = [
            "BASH_ENV",
            "ENV",
            "CDPATH",
            "SHELLOPTS",
            "GIT_DIR",
            "BASH_FUNC_echo%%",
            "VIBE_TOKEN",
            "AWS_SECRET_ACCESS_KEY",
            "path",
            "Http_Proxy",
            "lc_all",
            "MY_XDG_HOME",
            "PATHS",
            "PAT",
            "SystemRoot",
            "ProgramFiles",
            "TEMP",
        ];
        check(HostOs::Unix, &passed, &not_passed, &[]);
    }

    #[test]
    fn names_on_windows_compare_without_case() {
        let passed = [
            "Path",
            "SYSTEMROOT",
            "comspec",
            "PathExt",
            "UserProfile",
            "AppData",
            "LocalAppData",
            "PROGRAMDATA",
            "ProgramFiles",
            "programfiles(x86)",
            "Temp",
            "tmp",
            "lc_all",
            "Https_Proxy",
            "listed",
        ];
        let not_passed = ["Program", "ProgramW6432", "OneDrive", "GIT_DIR"];
        check(HostOs::Windows, &passed, &not_passed, &["LISTED"]);
    }

    #[test]
    fn the_user_lets_further_names_through_but_ours_win() {
        let caller = ["BASH_ENV", "VIBE_TOKEN", "VIBE_OTHER", "listed", "Listed"];
        assert_eq!(
            split(
                HostOs::Unix,
                &[&caller[..], &["VIBE_PACKAGE_NAME"]].concat(),
                &["BASH_ENV", "VIBE_TOKEN", "Listed", "VIBE_PACKAGE_NAME"],
            ),
            (
                vec!["BASH_ENV".into(), "Listed".into(), "VIBE_TOKEN".into()],
                vec!["VIBE_OTHER".into(), "listed".into()],
            )
        );
        let windows = split(
            HostOs::Windows,
            &["Vibe_Package_Name", "vibe_token"],
            &["VIBE_PACKAGE_NAME", "VIBE_TOKEN"],
        );
        assert_eq!(windows, (vec!["vibe_token".into()], vec![]));
    }

    #[cfg(unix)]
    #[test]
    fn values_pass_byte_for_byte_and_names_are_escaped() {
        use std::os::unix::ffi::OsStringExt;

        let bytes = |bytes: &[u8]| OsString::from_vec(bytes.to_vec());
        let caller = BTreeMap::from([
            ("HOME".into(), bytes(b"/home/\xff")),
            (bytes(b"A\xff\n"), "x".into()),
        ]);
        let built = build(HostOs::Unix, &caller, &context(), &[]);
        assert_eq!(built.variables[OsStr::new("HOME")], bytes(b"/home/\xff"));
        assert_eq!(built.not_passed, ["A\\xFF\\n"]);
    }

    #[test]
    fn lookup_heeds_case_where_the_system_does() {
        let environment = environment(&["Path"]);
        assert!(lookup(HostOs::Windows, &environment, "PATH").is_some());
        assert!(lookup(HostOs::Unix, &environment, "Path").is_some());
        assert!(lookup(HostOs::Unix, &environment, "PATH").is_none());
        assert!(lookup(HostOs::Windows, &environment, "PATHS").is_none());
    }
}
