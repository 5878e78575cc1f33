//! A server of the git protocol.

use std::path::{Path, PathBuf};

use crate::GitProgram;
use crate::server::Server;

/// Git's own daemon for every repository below a directory, for reading, without login.
#[derive(Debug)]
pub struct GitDaemon {
    server: Server,
}

impl GitDaemon {
    /// Serves what is below `root`.
    pub fn start(root: &Path) -> Self {
        let (git, root) = (GitProgram::new(), PathBuf::from(root));
        let base = format!("--base-path={}", root.display());
        let server = Server::start(move |running, stream| {
            let arguments = ["daemon", "--inetd", "--export-all", &base];
            running.serve(stream, git.command(&root, &arguments));
        });
        Self { server }
    }

    /// The URL of the repository at `path` below the root.
    pub fn url(&self, path: &str) -> String {
        format!("git://127.0.0.1:{}/{path}", self.port())
    }

    /// The port, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.server.port()
    }

    /// How many connections there were.
    pub fn connections(&self) -> usize {
        self.server.connections()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GitRepository, Wants};

    #[test]
    fn a_repository_is_listed_and_cloned() {
        let directory = tempfile::tempdir().unwrap();
        let repository = GitRepository::new(&directory.path().join("served/source"));
        repository.write("a.md", "text", false);
        let commit = repository.commit("first");
        repository.bare_at(&directory.path().join("served/bare.git"), Wants::Tips);
        let daemon = GitDaemon::start(&directory.path().join("served"));
        let git = GitProgram::new();
        for name in ["source", "bare.git"] {
            let refs = git.run(directory.path(), &["ls-remote", &daemon.url(name), "HEAD"]);
            assert_eq!(refs, format!("{commit}\tHEAD"));
        }
        git.run(
            directory.path(),
            &["clone", "--quiet", &daemon.url("bare.git"), "clone"],
        );
        let text = std::fs::read_to_string(directory.path().join("clone/a.md")).unwrap();
        assert_eq!((text.as_str(), daemon.connections()), ("text", 3));
    }

    #[test]
    fn a_repository_that_is_not_there_is_refused() {
        let directory = tempfile::tempdir().unwrap();
        let daemon = GitDaemon::start(directory.path());
        let arguments = ["ls-remote", &daemon.url("none")];
        let output = GitProgram::new()
            .command(directory.path(), &arguments)
            .output()
            .unwrap();
        let stderr = String::from_utf8_lossy(&output.stderr);
        assert!(stderr.contains("access denied or repository not exported"));
        assert!(!output.status.success());
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn nothing_is_left_of_a_daemon_that_ends_in_the_middle_of_a_fetch() {
        use std::io::{Read, Write};
        let directory = tempfile::tempdir().unwrap();
        GitRepository::new(&directory.path().join("source")).commit("first");
        let daemon = GitDaemon::start(directory.path());
        let port = daemon.port();
        let mut client = std::net::TcpStream::connect(("127.0.0.1", port)).unwrap();
        let request = "git-upload-pack /source\0host=127.0.0.1\0";
        write!(client, "{:04x}{request}", request.len() + 4).unwrap();
        // It has said what it has, and waits for what the client wants.
        client.read_exact(&mut [0; 4]).unwrap();
        let word = directory.path().to_str().unwrap();
        crate::server::tests::check_end(daemon, port, word);
    }
}
