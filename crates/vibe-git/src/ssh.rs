//! Git over SSH, through the user's own `ssh`: its configuration, keys, agent and known hosts.
//!
//! Nothing is asked: `BatchMode` is on. `GIT_SSH_COMMAND` (run by a shell) and `GIT_SSH` (a
//! program) are honoured as git does and must understand OpenSSH's options; `core.sshCommand` is
//! not read.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::Path;
use std::sync::Arc;

use gix::bstr::ByteSlice as _;
use vibe_core::git_url::RemoteUrl;

use crate::child::{self, Child, Pipes};
use crate::error::{Cause, GitError};
use crate::watch::Watch;

/// What servers say of a repository that is not there, or not for us.
const ABSENT: [&str; 5] = [
    "does not appear to be a git repository",
    "repository not found",
    "repository does not exist",
    "could not be found",
    "not found.",
];

/// Starts `git-upload-pack` on the host of `url`.
///
/// # Errors
/// [`GitError::Ssh`] if there is no such program.
pub(crate) fn connect(
    url: &RemoteUrl,
    directory: &Path,
    environment: &BTreeMap<OsString, OsString>,
    watch: &Arc<Watch>,
) -> Result<(Child, Pipes), GitError> {
    let (program, mut arguments) = program(environment);
    arguments.extend(options(url));
    let ours = [
        // Understood by servers that are set up for it; the others speak the old version.
        ("GIT_PROTOCOL", OsStr::new("version=2")),
        ("SSH_ASKPASS_REQUIRE", OsStr::new("never")),
        ("LC_ALL", OsStr::new("C")),
    ];
    let environment = child::quiet_environment(environment, &ours);
    child::start(&program, &arguments, directory, &environment, watch)
        .map_err(|error| failed(url, &format!("{}: {error}", program.to_string_lossy())))
}

/// Why a conversation through `child` ended, by what it said; `None` if it said nothing.
pub(crate) fn explain(url: &RemoteUrl, child: &Child) -> Option<GitError> {
    let said = child.messages();
    let said = said.trim();
    if said.is_empty() {
        return None;
    }
    let lower = said.to_lowercase();
    if ABSENT.iter().any(|absent| lower.contains(absent)) {
        return Some(GitError::NoSuchRepository {
            repository: url.to_string(),
            source: Cause::new(said),
        });
    }
    Some(failed(url, said))
}

fn failed(url: &RemoteUrl, said: &str) -> GitError {
    let port = url.port().map(|port| format!("-p {port} "));
    GitError::Ssh {
        host: format!("{}{}", port.unwrap_or_default(), destination(url)),
        repository: url.to_string(),
        source: Cause::new(said),
    }
}

/// The program and the arguments that come before ours.
fn program(environment: &BTreeMap<OsString, OsString>) -> (OsString, Vec<OsString>) {
    let variable = |name: &str| {
        let value = environment.get(OsStr::new(name));
        value.filter(|value| !value.is_empty()).cloned()
    };
    if let Some(mut script) = variable("GIT_SSH_COMMAND") {
        script.push(" \"$@\"");
        return ("sh".into(), vec!["-c".into(), script, "ssh".into()]);
    }
    (
        variable("GIT_SSH").unwrap_or_else(|| "ssh".into()),
        Vec::new(),
    )
}

fn options(url: &RemoteUrl) -> Vec<OsString> {
    let mut options: Vec<OsString> = vec![
        "-oBatchMode=yes".into(),
        "-oSendEnv=GIT_PROTOCOL".into(),
        // A terminal would change what is transferred.
        "-T".into(),
    ];
    if let Some(port) = url.port() {
        options.push(format!("-p{port}").into());
    }
    // Neither can be an option; that a host or user begins with `-` is refused with the URL.
    options.push("--".into());
    options.push(destination(url).into());
    let path = gix::quote::single(path(url).as_bytes().as_bstr());
    options.push(format!("git-upload-pack {path}").into());
    options
}

fn destination(url: &RemoteUrl) -> String {
    let host = url.host().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    match url.user() {
        Some(user) => format!("{user}@{bare}"),
        None => bare.to_owned(),
    }
}

/// The path as the server is to read it: `/~user/x` of a URL is below that user's home.
pub(crate) fn path(url: &RemoteUrl) -> &str {
    match url.path().strip_prefix('/') {
        Some(path) if path.starts_with('~') => path,
        _ => url.path(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_to_try_by_hand_reaches_the_same_server() {
        for (url, expected) in [
            ("git@host:a/b.git", "`ssh git@host`"),
            ("ssh://git@host:2222/a/b", "`ssh -p 2222 git@host`"),
        ] {
            let error = failed(&url.parse().unwrap(), "no").to_string();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn ssh_is_started_so_that_it_asks_nothing_and_takes_nothing_for_an_option() {
        for (url, expected) in [
            (
                "git@host:a/b.git",
                "-oBatchMode=yes -oSendEnv=GIT_PROTOCOL -T -- git@host git-upload-pack 'a/b.git'",
            ),
            (
                "ssh://host:2222/a b/it's",
                "-oBatchMode=yes -oSendEnv=GIT_PROTOCOL -T -p2222 -- host git-upload-pack '/a b/it'\\''s'",
            ),
            (
                "ssh://u@host/~v/x",
                "-oBatchMode=yes -oSendEnv=GIT_PROTOCOL -T -- u@host git-upload-pack '~v/x'",
            ),
        ] {
            let options = options(&RemoteUrl::parse(url).unwrap());
            let words: Vec<_> = options.iter().map(|word| word.to_str().unwrap()).collect();
            assert_eq!(words.join(" "), expected);
        }
    }

    #[test]
    fn the_users_ssh_command_is_honoured() {
        let check = |variables: &[(&str, &str)], expected: &[&str]| {
            let pairs = variables.iter().map(|(k, v)| (k.into(), v.into()));
            let (program, arguments) = program(&pairs.collect());
            let words = std::iter::once(&program).chain(&arguments);
            assert!(words.eq(expected), "{program:?} {arguments:?}");
        };
        check(&[], &["ssh"]);
        check(&[("GIT_SSH", "/opt/ssh")], &["/opt/ssh"]);
        let command = ("GIT_SSH_COMMAND", "ssh -i 'a b'");
        let expected = ["sh", "-c", "ssh -i 'a b' \"$@\"", "ssh"];
        check(&[command, ("GIT_SSH", "/opt/ssh")], &expected);
        check(&[("GIT_SSH_COMMAND", "")], &["ssh"]);
    }
}
