//! A server of git over ssh, and the `ssh` that reaches it.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::server::Server;
use crate::{clean_command, done, output_of, set_exec, write_file};

/// Where `sshd` is besides the directories of `PATH`, which are those of a user.
const SYSTEM_DIRECTORIES: &str = "/usr/sbin:/usr/local/sbin:/sbin";

/// The connections that [`SshServer::start`] makes itself, to try a login.
const STARTING_CONNECTIONS: usize = 1;

/// OpenSSH's own server, as the current user, with a host key and a login key made for it.
///
/// `ssh` looks for the user's configuration in the home of the password file, whatever `HOME` says.
/// So a test reaches this server with [`SshServer::client_directory`] at the front of its `PATH`:
/// the `ssh` there is the machine's, told to read the configuration of this server and no other.
#[derive(Debug)]
pub struct SshServer {
    server: Server,
    directory: tempfile::TempDir,
}

impl SshServer {
    /// The name by which the client's configuration knows host and port, as a user's own may.
    pub const ALIAS: &str = "fixture-host";

    /// Starts a server, which listens when this returns. Every repository of the machine that the
    /// user may read can be reached, by its absolute path.
    ///
    /// # Errors
    ///
    /// Why there can be no server on this machine: for the test to say and to end.
    pub fn start() -> Result<Self, String> {
        let paths = std::ffi::OsString::from(SYSTEM_DIRECTORIES);
        let sshd = found("sshd")
            .or_else(|_| which::which_in("sshd", Some(paths), "/").map_err(|_| missing("sshd")))?;
        let (ssh, keygen) = (found("ssh")?, found("ssh-keygen")?);
        let place = Path::new("a temporary directory");
        let directory = done("creating", place, tempfile::tempdir());
        let root = directory.path().to_owned();
        for key in ["host_key", "login_key"] {
            let mut command = clean_command(&keygen, &root);
            output_of(
                command.args(["-q", "-t", "ed25519", "-N", "", "-f", key]),
                b"",
            );
        }
        write_file(&root.join("sshd_config"), server_settings(&root).as_bytes());
        let sshd = move || {
            let mut command = clean_command(&sshd, &root);
            command.arg("-f").arg(root.join("sshd_config"));
            command
        };
        usable("sshd", sshd().arg("-t"))?;
        let server = Server::start(move |running, stream| {
            let mut command = sshd();
            command.arg("-i");
            running.serve(stream, command);
        });
        let started = Self { server, directory };
        started.write_client(&ssh);
        started.log_in()?;
        Ok(started)
    }

    /// The URL of the repository at the absolute `path`.
    pub fn url(&self, path: &Path) -> String {
        format!("ssh://127.0.0.1:{}{}", self.port(), path.display())
    }

    /// The same in the short form, with [`SshServer::ALIAS`] for host and port.
    pub fn short_url(&self, path: &Path) -> String {
        format!("{}:{}", Self::ALIAS, path.display())
    }

    /// The port, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.server.port()
    }

    /// How many connections there were since it was started.
    pub fn connections(&self) -> usize {
        self.server.connections() - STARTING_CONNECTIONS
    }

    /// The directory that holds the `ssh` for this server, and nothing else.
    pub fn client_directory(&self) -> PathBuf {
        self.directory.path().join("bin")
    }

    /// Lets no login key in any more.
    pub fn forget_login(&self) {
        write_file(&self.directory.path().join("authorized_keys"), b"");
    }

    /// Lets the client know no host any more.
    pub fn forget_host(&self) {
        write_file(&self.directory.path().join("known_hosts"), b"");
    }

    /// Whether the user may log in at all: the account can be locked or have no shell.
    fn log_in(&self) -> Result<(), String> {
        let client = self.client_directory();
        let mut command = clean_command(&client.join("ssh"), &client);
        usable("a login", command.args([Self::ALIAS, "exit"]))
    }

    fn write_client(&self, ssh: &Path) {
        let root = self.directory.path();
        let read = |name: &str| {
            let path = root.join(name);
            done("reading", &path, std::fs::read_to_string(&path))
        };
        let port = self.port();
        let known = format!("[127.0.0.1]:{port} {}", read("host_key.pub"));
        write_file(&root.join("known_hosts"), known.as_bytes());
        write_file(
            &root.join("authorized_keys"),
            read("login_key.pub").as_bytes(),
        );
        let settings = client_settings(root, port);
        write_file(&root.join("ssh_config"), settings.as_bytes());
        let script = format!(
            "#!/bin/sh\nexec '{}' -F '{}' \"$@\"\n",
            ssh.display(),
            root.join("ssh_config").display()
        );
        let wrapper = self.client_directory().join("ssh");
        write_file(&wrapper, script.as_bytes());
        set_exec(&wrapper, true);
    }
}

/// The path of `program`, or why it cannot be used.
fn found(program: &str) -> Result<PathBuf, String> {
    which::which(program).map_err(|_| missing(program))
}

fn missing(program: &str) -> String {
    format!("{program} is not on this machine; install OpenSSH's client and server")
}

/// `Ok` if `trial` succeeds, else what it says of `what`.
fn usable(what: &str, trial: &mut Command) -> Result<(), String> {
    let output = done("trying", Path::new(what), trial.output());
    let stderr = String::from_utf8_lossy(&output.stderr);
    match output.status.success() {
        true => Ok(()),
        false => Err(format!("{what} is not possible: {}", stderr.trim())),
    }
}

/// Sessions see what the git program needs to be found, and none of its configuration.
fn server_settings(root: &Path) -> String {
    let root = root.display();
    let git = done("looking for", Path::new("git"), which::which("git"));
    let git = git.parent().unwrap_or(Path::new("/")).display();
    format!(
        "HostKey \"{root}/host_key\"\n\
         AuthorizedKeysFile \"{root}/authorized_keys\"\n\
         PidFile none\n\
         StrictModes no\n\
         UsePAM no\n\
         PermitRootLogin prohibit-password\n\
         PasswordAuthentication no\n\
         KbdInteractiveAuthentication no\n\
         AcceptEnv GIT_PROTOCOL\n\
         SetEnv \"PATH={git}:/usr/bin:/bin\" GIT_CONFIG_NOSYSTEM=1 GIT_CONFIG_GLOBAL=/dev/null\n"
    )
}

fn client_settings(root: &Path, port: u16) -> String {
    let root = root.display();
    format!(
        "Host {alias}\n    HostName 127.0.0.1\n    Port {port}\n\
         Host *\n    IdentityFile \"{root}/login_key\"\n    IdentitiesOnly yes\n    \
         IdentityAgent none\n    UserKnownHostsFile \"{root}/known_hosts\"\n    \
         GlobalKnownHostsFile /dev/null\n    StrictHostKeyChecking yes\n    LogLevel ERROR\n",
        alias = SshServer::ALIAS
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GitProgram, GitRepository};

    /// A server and a repository, or nothing where there can be no server.
    fn served() -> Option<(SshServer, tempfile::TempDir, String)> {
        let server = SshServer::start().inspect_err(|reason| eprintln!("skipped: {reason}"));
        let directory = tempfile::tempdir().unwrap();
        let repository = GitRepository::new(&directory.path().join("source"));
        let commit = repository.commit("first");
        Some((server.ok()?, directory, commit))
    }

    /// `git ls-remote <url> HEAD` with the client of `server`: its output, or its error.
    fn listed(server: &SshServer, url: &str) -> Result<String, String> {
        let git = GitProgram::new();
        let directory = server.client_directory();
        let mut command = git.command(&directory, &["ls-remote", url, "HEAD"]);
        command.env("PATH", format!("{}:/usr/bin:/bin", directory.display()));
        let output = command.output().unwrap();
        let text = |bytes| String::from_utf8(bytes).unwrap();
        match output.status.success() {
            true => Ok(text(output.stdout)),
            false => Err(text(output.stderr)),
        }
    }

    #[test]
    fn a_repository_is_reached_by_port_and_by_alias() {
        let Some((server, directory, commit)) = served() else {
            return;
        };
        let path = directory.path().join("source");
        let expected = Ok(format!("{commit}\tHEAD\n"));
        assert_eq!(listed(&server, &server.url(&path)), expected);
        assert_eq!(listed(&server, &server.short_url(&path)), expected);
        assert_eq!(server.connections(), 2);
    }

    #[test]
    fn a_forgotten_key_or_host_is_refused() {
        let Some((server, directory, _)) = served() else {
            return;
        };
        let url = server.url(&directory.path().join("source"));
        server.forget_login();
        let stderr = listed(&server, &url).unwrap_err();
        assert!(stderr.contains("Permission denied (publickey)"), "{stderr}");
        server.forget_host();
        let stderr = listed(&server, &url).unwrap_err();
        assert!(stderr.contains("Host key verification failed"), "{stderr}");
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn nothing_is_left_of_a_server_that_ends_in_the_middle_of_a_session() {
        use std::io::Read;
        let Some((server, directory, _)) = served() else {
            return;
        };
        let path = directory.path().join("source");
        let ssh = server.client_directory().join("ssh");
        let mut command = clean_command(&ssh, directory.path());
        let line = format!("git-upload-pack '{}'", path.display());
        command.args(["-p", &server.port().to_string(), "127.0.0.1", &line]);
        let mut client = command.stdin(std::process::Stdio::piped()).spawn().unwrap();
        // It has said what it has, and waits for what the client wants.
        let output = client.stdout.as_mut().unwrap();
        output.read_exact(&mut [0; 4]).unwrap();
        let port = server.port();
        crate::server::tests::check_end(server, port, path.to_str().unwrap());
        assert!(!client.wait().unwrap().success());
    }
}
