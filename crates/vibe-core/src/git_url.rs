//! The address of a git repository: which forms are taken, and which are refused before any program
//! or connection sees them.
//!
//! Taken are `https://`, `ssh://`, `user@host:path`, `file://` and plain local paths; `http://` and
//! `git://` parse, but are used only for hosts that the user's configuration names, since nothing
//! protects what they carry. Whatever could be read as an option, another transport or a line break
//! is refused. The text never shows or stores credentials.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use crate::identifier::PackageId;
use crate::text::{escape, hide_credentials, shorten};

/// Bytes of one address: the limit that common servers set for a URL.
const URL_BYTES: usize = 2_048;

/// How a repository is reached.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Transport {
    /// `https://`.
    Https,
    /// `http://`: readable and changeable on the way.
    Http,
    /// `ssh://` or `user@host:path`.
    Ssh,
    /// `git://`: readable and changeable on the way.
    Git,
    /// `file://` or a path.
    File,
}

/// What opens a repository. Its text appears nowhere but in the request.
#[derive(Clone, PartialEq, Eq)]
pub struct Credential {
    /// The user's name.
    pub user: String,
    /// The password or token.
    pub secret: String,
}

impl fmt::Debug for Credential {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Credential(***)")
    }
}

/// An address. Shown and compared without its credentials.
#[derive(Debug, Clone)]
pub struct RemoteUrl {
    text: String,
    transport: Transport,
    user: Option<String>,
    host: Option<String>,
    port: Option<u16>,
    path: String,
    credential: Option<Credential>,
}

/// Why a text is no address of a repository. Texts are escaped and free of credentials.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GitUrlError {
    /// Nothing is there.
    #[error("a git URL may not be empty")]
    Empty,
    /// Longer than any server takes.
    #[error("a git URL may have {URL_BYTES} bytes, not {bytes}")]
    Long {
        /// How many it has.
        bytes: usize,
    },
    /// It would be taken for an option.
    #[error("`{0}` looks like an option, not like a git URL")]
    Option(String),
    /// A control or invisible character, written out or percent-encoded.
    #[error("`{0}` has a control or invisible character, which a git URL may not have")]
    Character(String),
    /// Another transport.
    #[error(
        "`{0}` is not a git URL of a kind that is taken: https, ssh, file, `user@host:path` or a local path"
    )]
    Transport(String),
    /// No proper host, user or port.
    #[error("`{url}` has no proper {part}: {expected}")]
    Part {
        /// The address.
        url: String,
        /// Which part.
        part: &'static str,
        /// What is expected.
        expected: &'static str,
    },
    /// No path.
    #[error("`{0}` names no repository on its host")]
    NoPath(String),
    /// A query or fragment.
    #[error("`{0}` has a `?` or `#`, which a git URL may not have")]
    Query(String),
    /// `..` beyond what there is.
    #[error("`{relative}` leads out of `{base}`")]
    Leaves {
        /// The relative address.
        relative: String,
        /// What it is relative to.
        base: String,
    },
    /// Plain transport to a host that the user did not allow.
    #[error("`{url}` uses {scheme}://, which anybody on the way can read and change")]
    Plain {
        /// The address.
        url: String,
        /// Its scheme.
        scheme: &'static str,
        /// Its host, with the port where one is given.
        host: String,
    },
}

impl Transport {
    /// The scheme of a URL.
    pub fn scheme(self) -> &'static str {
        match self {
            Transport::Https => "https",
            Transport::Http => "http",
            Transport::Ssh => "ssh",
            Transport::Git => "git",
            Transport::File => "file",
        }
    }
}

impl RemoteUrl {
    /// Reads an address.
    ///
    /// # Errors
    /// The rule that it breaks.
    pub fn parse(text: &str) -> Result<Self, GitUrlError> {
        check_text(text)?;
        let trimmed = text.trim_end_matches('/');
        let text = match trimmed.is_empty() || trimmed.ends_with(':') {
            true => text,
            false => trimmed,
        };
        match text.split_once("://") {
            Some((scheme, rest)) => parse_url(text, scheme, rest),
            None if text.contains("::") => Err(GitUrlError::Transport(shown(text))),
            None => match scp_like(text) {
                Some((authority, path)) => parse_remote(text, Transport::Ssh, authority, path),
                None => parse_local(text, text),
            },
        }
    }

    /// The repository `owner/name` on GitHub.
    ///
    /// # Errors
    /// `repository` is no such name.
    pub fn github(repository: &str) -> Result<Self, GitUrlError> {
        Self::parse(&format!("https://github.com/{repository}"))
    }

    /// The address as it was given, without credentials: what a lock and a message say.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// How the repository is reached.
    pub fn transport(&self) -> Transport {
        self.transport
    }

    /// The user that an ssh address names.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The host; `None` for a local repository.
    pub fn host(&self) -> Option<&str> {
        self.host.as_deref()
    }

    /// The port, where one is given.
    pub fn port(&self) -> Option<u16> {
        self.port
    }

    /// The path on the host, or of a local repository, as it was given.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// `host` or `host:port`; `None` for a local repository.
    pub fn authority(&self) -> Option<String> {
        let host = self.host.as_ref()?;
        Some(match self.port {
            Some(port) => format!("{host}:{port}"),
            None => host.clone(),
        })
    }

    /// The credential that the address brought along.
    pub fn credential(&self) -> Option<&Credential> {
        self.credential.as_ref()
    }

    /// Whether the repository is on this machine's file systems.
    pub fn is_local(&self) -> bool {
        self.transport == Transport::File
    }

    /// Where a local repository lies, seen from `base`, the directory of the manifest that states
    /// the address; `None` for a remote one.
    pub fn location(&self, base: &Path) -> Option<PathBuf> {
        self.is_local().then(|| base.join(&self.path))
    }

    /// Whether what is carried can be read and changed on the way, unless the host is one of
    /// `allowed` (`host` or `host:port`).
    ///
    /// # Errors
    /// It can.
    pub fn check_protected(&self, allowed: &[String]) -> Result<(), GitUrlError> {
        let (Transport::Http | Transport::Git, Some(host), Some(authority)) =
            (self.transport, &self.host, self.authority())
        else {
            return Ok(());
        };
        match allowed
            .iter()
            .any(|allowed| allowed == host || *allowed == authority)
        {
            true => Ok(()),
            false => Err(GitUrlError::Plain {
                url: shown(&self.text),
                scheme: self.transport.scheme(),
                host: authority,
            }),
        }
    }

    /// The repository of the package `id` in the git registry `url`: one repository a package, below
    /// the address of an organisation. `None` where `url` is a directory's.
    ///
    /// # Errors
    /// It is no address that is taken.
    pub fn in_registry(url: &str, id: &PackageId) -> Result<Option<Self>, GitUrlError> {
        if !url.contains("://") && scp_like(url).is_none() {
            return Ok(None);
        }
        let base = url.trim_end_matches('/');
        let separator = if base.ends_with(':') { "" } else { "/" };
        Self::parse(&format!("{base}{separator}{}.git", id.directory())).map(Some)
    }

    /// The address that a submodule of this repository states: one that begins with `./` or `../`
    /// is relative to this address, as git has it; any other stands alone.
    ///
    /// # Errors
    /// It is no address, or leads out of the host.
    pub fn join(&self, stated: &str) -> Result<Self, GitUrlError> {
        check_text(stated)?;
        if !stated.starts_with("./") && !stated.starts_with("../") {
            return Self::parse(stated);
        }
        let leaves = || GitUrlError::Leaves {
            relative: shown(stated),
            base: shown(&self.text),
        };
        let (mut base, mut rest) = (self.text.as_str(), stated);
        loop {
            if let Some(after) = rest.strip_prefix("./") {
                rest = after;
            } else if let Some(after) = rest.strip_prefix("../") {
                base = parent(base, self).ok_or_else(leaves)?;
                rest = after;
            } else {
                break;
            }
        }
        let separator = if base.ends_with([':', '/']) { "" } else { "/" };
        let joined = Self::parse(&format!("{base}{separator}{rest}"))?;
        // The host is never taken off, so what opens this one goes to no other.
        Ok(Self {
            credential: self.credential.clone(),
            ..joined
        })
    }
}

/// `base` without its last component; `None` where only the host is left.
fn parent<'a>(base: &'a str, url: &RemoteUrl) -> Option<&'a str> {
    let path_start = url.text.len() - url.path.len();
    let path = base.get(path_start..)?.trim_end_matches('/');
    match path.rfind('/') {
        Some(0) if url.is_local() => None,
        Some(slash) => Some(&base[..path_start + slash]),
        // `user@host:repository` has a parent, the home directory.
        None if !path.is_empty() => Some(&base[..path_start]),
        None => None,
    }
}

impl PartialEq for RemoteUrl {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl Eq for RemoteUrl {}

impl PartialOrd for RemoteUrl {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for RemoteUrl {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.text.cmp(&other.text)
    }
}

impl fmt::Display for RemoteUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.text)
    }
}

impl FromStr for RemoteUrl {
    type Err = GitUrlError;

    fn from_str(text: &str) -> Result<Self, GitUrlError> {
        Self::parse(text)
    }
}

/// A refused text as a message shows it.
fn shown(text: &str) -> String {
    escape(&shorten(&hide_credentials(text), 200))
}

/// What holds for every form.
fn check_text(text: &str) -> Result<(), GitUrlError> {
    if text.trim().is_empty() {
        return Err(GitUrlError::Empty);
    }
    if text.len() > URL_BYTES {
        return Err(GitUrlError::Long { bytes: text.len() });
    }
    if text.starts_with('-') {
        return Err(GitUrlError::Option(shown(text)));
    }
    let is_odd = text.contains(char::is_whitespace) && text.trim() != text;
    if is_odd || escape(text) != text || has_encoded_control(text) {
        return Err(GitUrlError::Character(shown(text)));
    }
    Ok(())
}

/// Whether a percent-encoded byte of `text` is a control character.
fn has_encoded_control(text: &str) -> bool {
    text.as_bytes().windows(3).any(|window| {
        window[0] == b'%'
            && std::str::from_utf8(&window[1..])
                .ok()
                .and_then(|digits| u8::from_str_radix(digits, 16).ok())
                .is_some_and(|byte| byte.is_ascii_control())
    })
}

fn parse_url(text: &str, scheme: &str, rest: &str) -> Result<RemoteUrl, GitUrlError> {
    if rest.contains(['?', '#']) {
        return Err(GitUrlError::Query(shown(text)));
    }
    let transport = match scheme.to_ascii_lowercase().as_str() {
        "https" => Transport::Https,
        "http" => Transport::Http,
        "ssh" => Transport::Ssh,
        "git" => Transport::Git,
        "file" => return parse_local(text, rest),
        _ => return Err(GitUrlError::Transport(shown(text))),
    };
    let (authority, _) = rest.split_once('/').unwrap_or((rest, ""));
    parse_remote(text, transport, authority, &rest[authority.len()..])
}

/// `[user@]host` and the path of `[user@]host:path`, if `text` is one. A single letter before the
/// colon is a drive.
fn scp_like(text: &str) -> Option<(&str, &str)> {
    let (authority, path) = text.split_once(':')?;
    let is_host = !authority.contains(['/', '\\']) && authority.len() > 1;
    is_host.then_some((authority, path))
}

fn parse_local(text: &str, path: &str) -> Result<RemoteUrl, GitUrlError> {
    let bytes = path.as_bytes();
    let has_drive = bytes.len() > 1 && bytes[1] == b':';
    let is_url = path.len() != text.len();
    // `file://host/path` would be another machine's.
    if is_url && !path.starts_with('/') {
        return Err(GitUrlError::Transport(shown(text)));
    }
    if path.is_empty() {
        return Err(GitUrlError::NoPath(shown(text)));
    }
    if has_drive && !is_url && !matches!(bytes.get(2), Some(b'/' | b'\\')) {
        return Err(GitUrlError::Transport(shown(text)));
    }
    if path.starts_with('-') {
        return Err(GitUrlError::Option(shown(text)));
    }
    Ok(RemoteUrl {
        text: text.to_owned(),
        transport: Transport::File,
        user: None,
        host: None,
        port: None,
        path: path.to_owned(),
        credential: None,
    })
}

fn parse_remote(
    text: &str,
    transport: Transport,
    authority: &str,
    path: &str,
) -> Result<RemoteUrl, GitUrlError> {
    let part = |part, expected| GitUrlError::Part {
        url: shown(text),
        part,
        expected,
    };
    let (user_text, host_text) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let (host, port) = match split_port(host_text) {
        _ if !text.contains("://") => (host_text, None),
        (host, None) => (host, None),
        (host, Some(port)) => (
            host,
            Some(
                port.parse()
                    .map_err(|_| part("port", "a number up to 65535 is expected"))?,
            ),
        ),
    };
    if !is_host(host) {
        return Err(part(
            "host",
            "letters, digits, dots and inner hyphens are expected",
        ));
    }
    let (user, secret) = match user_text.map(|user| user.split_once(':').unwrap_or((user, ""))) {
        None => (None, None),
        Some((user, secret)) => (Some(user), Some(secret).filter(|secret| !secret.is_empty())),
    };
    let is_http = matches!(transport, Transport::Https | Transport::Http);
    // For HTTP a name alone is a token more often than not; ssh needs its user.
    if user.is_some_and(|user| !is_http && !is_user(user)) {
        return Err(part(
            "user",
            "letters, digits, dots, hyphens and underscores are expected",
        ));
    }
    if path.trim_matches('/').is_empty() {
        return Err(GitUrlError::NoPath(shown(text)));
    }
    if path.starts_with('-') {
        return Err(GitUrlError::Option(shown(text)));
    }
    let credential = user.filter(|_| is_http).map(|user| Credential {
        user: decoded(user),
        secret: decoded(secret.unwrap_or_default()),
    });
    let kept_user = user.filter(|_| !is_http);
    Ok(RemoteUrl {
        text: without_secret(text, authority, kept_user, host_text),
        transport,
        user: kept_user.map(str::to_owned),
        host: Some(host.to_ascii_lowercase()),
        port,
        path: path.to_owned(),
        credential,
    })
}

/// `text` with only the user that belongs to the address before its host.
fn without_secret(text: &str, authority: &str, user: Option<&str>, host: &str) -> String {
    let (before, after) = text
        .split_once(authority)
        .expect("the authority was cut from the text");
    match user {
        Some(user) => format!("{before}{user}@{host}{after}"),
        None => format!("{before}{host}{after}"),
    }
}

/// `host[:port]`; the colons in `[::1]` are not the port's.
fn split_port(host: &str) -> (&str, Option<&str>) {
    match host.rsplit_once(':') {
        Some((name, port)) if !name.starts_with('[') || name.ends_with(']') => (name, Some(port)),
        _ => (host, None),
    }
}

fn is_host(host: &str) -> bool {
    if let Some(address) = host
        .strip_prefix('[')
        .and_then(|rest| rest.strip_suffix(']'))
    {
        return address.parse::<std::net::Ipv6Addr>().is_ok();
    }
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label
                .chars()
                .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
    };
    host.split('.').all(is_label)
}

fn is_user(user: &str) -> bool {
    !user.is_empty()
        && !user.starts_with('-')
        && user
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | '+'))
}

/// `text` with its percent-encoded bytes, where they are such.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let byte = after
            .get(..2)
            .filter(|_| *first == b'%')
            .and_then(|digits| std::str::from_utf8(digits).ok())
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn parsed(text: &str) -> RemoteUrl {
        RemoteUrl::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn addresses_are_taken_apart() {
        for (text, transport, authority, user, path) in [
            (
                "https://host/a/b.git",
                Transport::Https,
                Some("host"),
                None,
                "/a/b.git",
            ),
            (
                "HTTPS://Host:8443/a",
                Transport::Https,
                Some("host:8443"),
                None,
                "/a",
            ),
            (
                "http://127.0.0.1:80/a",
                Transport::Http,
                Some("127.0.0.1:80"),
                None,
                "/a",
            ),
            ("git://host/a", Transport::Git, Some("host"), None, "/a"),
            (
                "ssh://git@host:22/~/a",
                Transport::Ssh,
                Some("host:22"),
                Some("git"),
                "/~/a",
            ),
            (
                "ssh://[::1]:22/a",
                Transport::Ssh,
                Some("[::1]:22"),
                None,
                "/a",
            ),
            (
                "git@host:them/kit.git",
                Transport::Ssh,
                Some("host"),
                Some("git"),
                "them/kit.git",
            ),
            ("host:kit", Transport::Ssh, Some("host"), None, "kit"),
            ("file:///a/b", Transport::File, None, None, "/a/b"),
            ("/a/b", Transport::File, None, None, "/a/b"),
            ("../a.git", Transport::File, None, None, "../a.git"),
            (
                "repositories/a",
                Transport::File,
                None,
                None,
                "repositories/a",
            ),
            ("C:/a", Transport::File, None, None, "C:/a"),
        ] {
            let url = parsed(text);
            assert_eq!(url.transport(), transport, "{text}");
            assert_eq!(url.authority().as_deref(), authority, "{text}");
            assert_eq!((url.user(), url.path()), (user, path), "{text}");
            assert_eq!(url.as_str(), text);
            assert_eq!(url.credential(), None, "{text}");
        }
        assert_eq!(parsed("https://host/a/").as_str(), "https://host/a");
        assert_eq!(
            RemoteUrl::github("them/kit").unwrap().as_str(),
            "https://github.com/them/kit"
        );
    }

    #[test]
    fn what_could_act_elsewhere_is_refused() {
        for text in [
            "",
            "  ",
            "-uX",
            "--upload-pack=x",
            "ext::sh -c x",
            "fd::1",
            "https::x",
            "ftp://host/a",
            "javascript://host/a",
            "ssh://-oProxyCommand=x/y",
            "ssh://-l@host/a",
            "ssh://host-/a",
            "-user@host:a",
            "git@-host:a",
            "git@host:-a",
            "https://ho st/a",
            "https://host/a\nb",
            "https://host/a%0ab",
            "https://host/%00",
            "https://host/a\r",
            "https://host/a\u{202e}",
            " https://host/a",
            "https://host",
            "https://host/",
            "https:///a",
            "https://host:99999/a",
            "https://host:x/a",
            "https://host/a?x=1",
            "https://host/a#b",
            "ssh://us$er@host/a",
            "file://host/a",
            "file://",
            "C:a",
            "git@:a",
            "https://[::1/a",
        ] {
            assert!(RemoteUrl::parse(text).is_err(), "{text:?}");
        }
        let start = "https://host/";
        let longest = format!("{start}{}", "a".repeat(URL_BYTES - start.len()));
        assert!(RemoteUrl::parse(&longest).is_ok());
        assert!(matches!(
            RemoteUrl::parse(&format!("{longest}a")),
            Err(GitUrlError::Long { .. })
        ));
    }

    #[test]
    fn a_port_is_told_apart_from_its_host() {
        for (text, host, port) in [
            ("https://Host/a", Some("host"), None),
            ("https://host:8443/a", Some("host"), Some(8443)),
            ("ssh://git@[::1]:22/a", Some("[::1]"), Some(22)),
            ("ssh://[::1]/a", Some("[::1]"), None),
            ("/a", None, None),
        ] {
            let url = parsed(text);
            assert_eq!((url.host(), url.port()), (host, port), "{text}");
        }
    }

    #[test]
    fn a_path_after_a_host_is_no_port() {
        let url = parsed("git@host:22/kit");
        assert_eq!((url.host(), url.port()), (Some("host"), None));
        assert_eq!(url.path(), "22/kit");
    }

    #[test]
    fn addresses_are_equal_if_their_texts_are() {
        assert_eq!(parsed("https://u:p@h/a"), parsed("https://h/a"));
        assert_ne!(parsed("https://h/a"), parsed("https://h/b"));
        assert!(parsed("https://h/a") < parsed("https://h/b"));
    }

    #[test]
    fn credentials_are_kept_apart_and_shown_nowhere() {
        for (text, shown, user, secret) in [
            ("https://u:s3cret@host/a", "https://host/a", "u", "s3cret"),
            ("https://s3cret@host:1/a", "https://host:1/a", "s3cret", ""),
            (
                "http://u:p%40s3cret@host/a",
                "http://host/a",
                "u",
                "p@s3cret",
            ),
        ] {
            let url = parsed(text);
            let credential = url.credential().unwrap();
            assert_eq!(url.to_string(), shown);
            assert_eq!(
                (credential.user.as_str(), credential.secret.as_str()),
                (user, secret)
            );
            assert!(!format!("{url:?}").contains("s3cret"), "{url:?}");
            assert_eq!(format!("{credential:?}"), "Credential(***)");
        }
        for text in [
            "https://u:s3cret@-host/a",
            "https://u:s3cret@host/a?b",
            "ext://u:s3cret@h/a",
        ] {
            let error = RemoteUrl::parse(text).unwrap_err();
            assert!(!error.to_string().contains("s3cret"), "{error}");
        }
        let ssh = parsed("ssh://git:s3cret@host/a");
        assert_eq!(ssh.as_str(), "ssh://git@host/a");
        assert_eq!(ssh.credential(), None);
    }

    #[test]
    fn submodules_are_found_from_where_the_repository_really_came() {
        for (base, stated, expected) in [
            ("https://host/a/b.git", "../c.git", "https://host/a/c.git"),
            ("https://host/a/b", "../../c", "https://host/c"),
            ("https://host/a/b", "./c", "https://host/a/b/c"),
            ("https://host/a/b", "https://other/x", "https://other/x"),
            ("git@host:a/b", "../c", "git@host:a/c"),
            ("git@host:b", "../c", "git@host:c"),
            ("../repositories/b", "../c", "../repositories/c"),
            ("/r/b", "../c", "/r/c"),
            ("file:///r/b", "./../c", "file:///r/c"),
        ] {
            let joined = parsed(base).join(stated).unwrap();
            assert_eq!(joined.as_str(), expected, "{base} + {stated}");
        }
        for (base, stated) in [
            ("/b", "../../c"),
            ("https://host/b", "../../c"),
            ("https://host/b", "../../../c"),
            ("git@host:b", "../../c"),
            ("https://host/b", "../-c\n"),
            ("https://host/b", "ext::x"),
            ("https://host/b", "-x"),
        ] {
            assert!(parsed(base).join(stated).is_err(), "{base} + {stated}");
        }
    }

    #[test]
    fn a_credential_goes_to_its_own_host_only() {
        let base = parsed("https://u:p@host/org/a");
        assert!(base.join("../b").unwrap().credential().is_some());
        assert!(
            base.join("https://host/org/b")
                .unwrap()
                .credential()
                .is_none()
        );
        assert!(base.join("https://other/b").unwrap().credential().is_none());
    }

    #[test]
    fn a_git_registry_has_one_repository_a_package() {
        let id: PackageId = "org.example/lint".parse().unwrap();
        for (registry, expected) in [
            (
                "https://host/org/",
                Some("https://host/org/org.example.lint.git"),
            ),
            ("https://host", Some("https://host/org.example.lint.git")),
            ("git@host:", Some("git@host:org.example.lint.git")),
            ("git@host:org", Some("git@host:org/org.example.lint.git")),
            (
                "file:///srv/org",
                Some("file:///srv/org/org.example.lint.git"),
            ),
            ("../registry", None),
            ("/srv/registry", None),
            ("C:/registry", None),
        ] {
            let url = RemoteUrl::in_registry(registry, &id).unwrap();
            assert_eq!(url.as_ref().map(RemoteUrl::as_str), expected, "{registry}");
        }
        assert!(RemoteUrl::in_registry("ext://x", &id).is_err());
        let private = RemoteUrl::in_registry("https://u:p@host/org", &id).unwrap();
        assert!(private.unwrap().credential().is_some());
    }

    #[test]
    fn plain_transports_are_for_hosts_that_the_user_names() {
        let allowed = ["127.0.0.1:8080".to_owned(), "intra".to_owned()];
        for (text, is_fine) in [
            ("https://any/a", true),
            ("git@any:a", true),
            ("/a", true),
            ("http://127.0.0.1:8080/a", true),
            ("git://intra:9418/a", true),
            ("http://127.0.0.1:8081/a", false),
            ("git://any/a", false),
        ] {
            let outcome = parsed(text).check_protected(&allowed);
            assert_eq!(outcome.is_ok(), is_fine, "{text}");
            let scheme = text.split("://").next().unwrap();
            let uses = format!("uses {scheme}://");
            assert!(outcome.is_ok() || outcome.unwrap_err().to_string().contains(&uses));
        }
    }

    #[test]
    fn a_local_address_is_seen_from_its_manifest() {
        let base = Path::new("/p");
        assert_eq!(parsed("../r").location(base), Some("/p/../r".into()));
        assert_eq!(parsed("file:///r").location(base), Some("/r".into()));
        assert_eq!(parsed("https://h/r").location(base), None);
    }

    proptest! {
        #[test]
        fn what_is_shown_reads_back_as_the_same(text in "(https|ssh|git)://([a-z]{1,3}(:[a-z@]{1,4})?@)?[a-z.-]{1,6}(:[0-9]{1,4})?/[a-z/%-]{0,8}|[a-z@:/.-]{1,12}") {
            if let Ok(url) = RemoteUrl::parse(&text) {
                let again = RemoteUrl::parse(url.as_str()).unwrap();
                prop_assert_eq!(&again, &url);
                prop_assert_eq!(again.credential(), None);
                prop_assert_eq!(again.host(), url.host());
            }
        }
    }
}
