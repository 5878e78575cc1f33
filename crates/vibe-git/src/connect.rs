//! A conversation with a git server, by whatever transport its URL names.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io;
use std::net::{Shutdown, TcpStream, ToSocketAddrs as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use gix_transport::Protocol;
use gix_transport::client::blocking_io::Transport as GitTransport;
use gix_transport::client::blocking_io::http;
use gix_transport::client::git::ConnectMode;
use gix_transport::client::git::blocking_io::Connection;
use vibe_core::git_url::{Credential, RemoteUrl, Transport};

use crate::child::Child;
use crate::credentials::{Helpers, Site};
use crate::error::{Cause, GitError};
use crate::http::{HttpClient, HttpOptions};
use crate::ssh;
use crate::watch::{Watch, Watched};

/// How long a connection may take to be made.
const CONNECT_LIMIT: Duration = Duration::from_secs(20);
/// The port of `git://`.
const DAEMON_PORT: u16 = 9418;
/// What servers say over their protocol of a repository that is not there, or not for us.
const ABSENT: [&str; 4] = [
    "repository not exported",
    "not found",
    "does not exist",
    "access denied",
];

/// Where a conversation is to lead, and everything that it may use. It belongs to the thread of
/// the transfer.
#[derive(Clone)]
pub(crate) struct Destination {
    pub(crate) url: RemoteUrl,
    pub(crate) credential: Option<Credential>,
    /// Where programs are started.
    pub(crate) directory: PathBuf,
    pub(crate) environment: BTreeMap<OsString, OsString>,
    pub(crate) watch: Arc<Watch>,
}

/// An open conversation. `ssh` lives as long as it does.
pub(crate) struct Link {
    pub(crate) transport: Box<dyn GitTransport>,
    pub(crate) child: Option<Child>,
}

impl Destination {
    /// Makes the connection. Over HTTP nothing is sent yet.
    ///
    /// # Errors
    /// [`GitError::HostUnreachable`], or [`GitError::Ssh`] if there is no such program.
    pub(crate) fn connect(&self) -> Result<Link, GitError> {
        match self.url.transport() {
            Transport::Https => self.connect_http("https"),
            Transport::Http => self.connect_http("http"),
            Transport::Git => self.connect_daemon(),
            Transport::Ssh => self.connect_ssh(),
            Transport::File => Err(self.unreachable("it is on this machine, not on a server")),
        }
    }

    /// Why a conversation failed, as well as it is known.
    pub(crate) fn explain(&self, link: Option<&Child>, error: &gix::Error) -> GitError {
        if let Some(known) = self.watch.take_failure() {
            return known;
        }
        if let Some(known) = link.and_then(|child| ssh::explain(&self.url, child)) {
            return known;
        }
        let (repository, source) = (self.url.to_string(), Cause::of(error));
        let said = source.to_string().to_lowercase();
        match ABSENT.iter().any(|absent| said.contains(absent)) {
            true => GitError::NoSuchRepository { repository, source },
            false => GitError::Transfer { repository, source },
        }
    }

    fn connect_http(&self, scheme: &'static str) -> Result<Link, GitError> {
        let url = gix::url::parse(self.url.as_str()).map_err(|error| GitError::Transfer {
            repository: self.url.to_string(),
            source: Cause::of(&error),
        })?;
        let client = HttpClient::new(HttpOptions {
            repository: self.url.to_string(),
            site: Site {
                scheme,
                authority: self.url.authority().unwrap_or_default(),
                path: self.url.path().trim_start_matches('/').to_owned(),
            },
            credential: self.credential.clone(),
            helpers: Helpers::new(&self.directory, &self.environment, &self.watch),
            environment: self.environment.clone(),
            watch: Arc::clone(&self.watch),
        });
        let transport = http::Transport::new_http(client, url, Protocol::V2, false);
        Ok(Link {
            transport: Box::new(transport),
            child: None,
        })
    }

    fn connect_daemon(&self) -> Result<Link, GitError> {
        let fail = |error: io::Error| self.unreachable(&error.to_string());
        let stream = self.watch.waiting(|| self.dial()).map_err(fail)?;
        let woken = stream.try_clone().map_err(fail)?;
        // One that is closed already needs no waking.
        self.watch
            .on_stop(move || drop(woken.shutdown(Shutdown::Both)));
        let reader = Watched::new(stream.try_clone().map_err(fail)?, &self.watch);
        let host = self.url.host().unwrap_or_default();
        let transport = Connection::new(
            reader,
            stream,
            Protocol::V2,
            self.url.path(),
            Some((host, self.url.port())),
            ConnectMode::Daemon,
            false,
        );
        Ok(Link {
            transport: Box::new(transport),
            child: None,
        })
    }

    /// Connects to the first address of the host that answers.
    fn dial(&self) -> io::Result<TcpStream> {
        let host = self.url.host().unwrap_or_default();
        let bare = host.trim_start_matches('[').trim_end_matches(']');
        let port = self.url.port().unwrap_or(DAEMON_PORT);
        let mut last = io::Error::new(io::ErrorKind::NotFound, "the host has no address");
        for address in (bare, port).to_socket_addrs()? {
            match TcpStream::connect_timeout(&address, CONNECT_LIMIT) {
                Ok(stream) => return Ok(stream),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    fn connect_ssh(&self) -> Result<Link, GitError> {
        let (child, pipes) =
            ssh::connect(&self.url, &self.directory, &self.environment, &self.watch)?;
        let transport = Connection::new(
            Watched::new(pipes.stdout, &self.watch),
            pipes.stdin,
            Protocol::V2,
            ssh::path(&self.url),
            None::<(&str, Option<u16>)>,
            ConnectMode::Process,
            false,
        );
        Ok(Link {
            transport: Box::new(transport),
            child: Some(child),
        })
    }

    fn unreachable(&self, cause: &str) -> GitError {
        GitError::HostUnreachable {
            host: self.url.authority().unwrap_or_default(),
            repository: self.url.to_string(),
            source: Cause::new(cause),
        }
    }
}
