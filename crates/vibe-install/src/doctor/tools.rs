//! The programs that vibe starts, each asked for its version.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::Path;
use std::time::Duration;

use vibe_core::formats::lock::Lock;
use vibe_core::formats::manifest::Materialization;
use vibe_core::formats::state::RunningProcess;
use vibe_core::hook::{HostOs, Interpreters};
use vibe_core::text::{escape, shorten};
use vibe_fs::error::shown;
use vibe_git::GitProgram;
use vibe_hooks::probe::find;
use vibe_hooks::runner::{HookLimits, HookStatus, HookWatcher, Invocation};

use super::{Check, CheckStatus, Group, has_hooks, in_full};
use crate::interpreters::Probe;
use crate::settings::Context;

/// How long a program may take to say its version.
const VERSION_TIMEOUT: Duration = Duration::from_secs(10);
/// Characters of a version that are shown.
const VERSION_CHARACTERS: usize = 100;
/// The oldest git that in-place packages work with.
const GIT_VERSION: (u64, u64) = (2, 30);
/// What PowerShell of any age says its version with.
const POWERSHELL_VERSION: [&str; 4] = [
    "-NoProfile",
    "-NonInteractive",
    "-Command",
    "$PSVersionTable.PSVersion.ToString()",
];
/// Variables without which no program starts on Windows.
const NEEDED_ON_WINDOWS: [&str; 2] = ["SystemRoot", "PATHEXT"];

/// Looks for the programs that vibe starts. What the packages of `lock` need and is not there is a
/// problem.
pub(super) fn checks(context: &Context<'_>, lock: &Lock) -> Vec<Check> {
    let mut group = Group::new("tools");
    git(&mut group, context, lock);
    let interpreters = Probe::new(context.settings).find();
    bash(&mut group, context, &interpreters, has_hooks(lock));
    powershell(&mut group, context, &interpreters);
    ssh(&mut group, context);
    group.checks
}

fn git(group: &mut Group, context: &Context<'_>, lock: &Lock) {
    let mut packages = lock.packages.iter();
    let is_needed = packages.any(|package| package.materialization == Materialization::InPlace);
    let status = lack(is_needed);
    let hint = "in-place packages need git 2.30 or newer; everything else works without it";
    let found = GitProgram::find(&context.settings.environment).and_then(|program| {
        let version = program.version(&context.settings.directory, context.cancel)?;
        Ok((program, version))
    });
    match found {
        Ok((program, version)) => {
            let text = format!("{version}, {}", shown(program.path()));
            match is_old(&version) {
                false => group.ok("git", text),
                true => group.add("git", status, text, Some(hint.to_owned())),
            }
        }
        Err(error) => group.add("git", status, in_full(&error), Some(hint.to_owned())),
    }
}

/// How bad it is that something is not there.
fn lack(is_needed: bool) -> CheckStatus {
    match is_needed {
        true => CheckStatus::Problem,
        false => CheckStatus::Warning,
    }
}

/// Whether git's `version` is older than what is needed. One that cannot be read is not.
fn is_old(version: &str) -> bool {
    let mut numbers = version.split('.').map(str::parse::<u64>);
    match (numbers.next(), numbers.next()) {
        (Some(Ok(major)), Some(Ok(minor))) => (major, minor) < GIT_VERSION,
        _ => false,
    }
}

fn bash(group: &mut Group, context: &Context<'_>, found: &Interpreters, is_needed: bool) {
    const NAME: &str = "bash";
    let hint = match found.refused_bash.first() {
        Some(refused) => format!(
            "{} is that of WSL, which cannot run install hooks; install Git for Windows",
            shown(refused)
        ),
        None => "install hooks that are `.sh` scripts cannot run without it".to_owned(),
    };
    match &found.bash {
        Some(program) => version(group, context, NAME, program, &["--version"]),
        None => group.add(NAME, lack(is_needed), "not found in PATH", Some(hint)),
    }
}

fn powershell(group: &mut Group, context: &Context<'_>, found: &Interpreters) {
    const NAME: &str = "powershell";
    match (HostOs::CURRENT, &found.powershell) {
        (HostOs::Unix, _) => group.ok(NAME, "not used on this system: install hooks run in bash"),
        (HostOs::Windows, Some(program)) => {
            version(group, context, NAME, program, &POWERSHELL_VERSION);
        }
        (HostOs::Windows, None) => group.warning(
            NAME,
            "neither pwsh nor powershell is found in PATH",
            "install hooks that are `.ps1` scripts cannot run without it",
        ),
    }
}

fn ssh(group: &mut Group, context: &Context<'_>) {
    const NAME: &str = "ssh";
    let settings = context.settings;
    let own = ["GIT_SSH_COMMAND", "GIT_SSH"];
    if let Some(variable) = own
        .into_iter()
        .find(|name| settings.variable(name).is_some())
    {
        return group.ok(NAME, format!("as {variable} says"));
    }
    let program = match HostOs::CURRENT {
        HostOs::Unix => "ssh",
        HostOs::Windows => "ssh.exe",
    };
    match find(program, settings.variable("PATH")).first() {
        Some(found) => group.ok(NAME, shown(found)),
        None => group.warning(
            NAME,
            "not found in PATH",
            "git repositories over ssh cannot be reached without it; https works",
        ),
    }
}

/// Asks `program` for its version, with `arguments`.
fn version(
    group: &mut Group,
    context: &Context<'_>,
    name: &'static str,
    program: &Path,
    arguments: &[&str],
) {
    let invocation = Invocation {
        program: program.to_path_buf(),
        arguments: arguments.iter().map(OsString::from).collect(),
        directory: context.settings.directory.clone(),
        environment: plain_environment(context),
        limits: HookLimits {
            timeout: VERSION_TIMEOUT,
            ..HookLimits::default()
        },
        log: None,
    };
    let path = shown(program);
    let hint = format!("install another {name}, or put another one first in PATH");
    match context.runner.run(&invocation, &mut Unseen, context.cancel) {
        Ok(result) if result.status == HookStatus::Exited(0) => {
            let printed = String::from_utf8_lossy(&result.tail);
            let line = printed.lines().next().unwrap_or_default().trim();
            let line = escape(&shorten(line, VERSION_CHARACTERS));
            group.ok(name, format!("{line}, {path}"));
        }
        Ok(result) => {
            let found = match result.status {
                HookStatus::TimedOut => format!("{path} does not say its version in time"),
                _ => format!("{path} does not say its version"),
            };
            group.problem(name, found, hint);
        }
        Err(error) => group.problem(name, in_full(&error), hint),
    }
}

/// What a program needs to start, in no language but English.
fn plain_environment(context: &Context<'_>) -> BTreeMap<OsString, OsString> {
    let needed = NEEDED_ON_WINDOWS.iter().filter(|_| cfg!(windows));
    let names = needed.copied().chain(["PATH"]);
    let kept =
        names.filter_map(|name| Some((name.into(), context.settings.variable(name)?.into())));
    kept.chain([("LC_ALL".into(), "C".into())]).collect()
}

/// Nobody looks on.
struct Unseen;

impl HookWatcher for Unseen {
    fn started(&mut self, _process: RunningProcess) {}

    fn output(&mut self, _line: &[u8]) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_git_is_old_if_its_numbers_say_so() {
        for (version, expected) in [
            ("2.29.9", true),
            ("1.99.0", true),
            ("2.30.0", false),
            ("2.47.1 (Apple Git-1)", false),
            ("3.0.rc1", false),
            ("2.9.0.windows.1", true),
            ("unknown", false),
        ] {
            assert_eq!(is_old(version), expected, "{version}");
        }
    }
}
