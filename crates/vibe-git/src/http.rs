//! Git over HTTP: requests, redirects and credentials, with rules of our own for all three.
//!
//! A redirect is followed on the first request only, and only to the same host, never from https
//! to http. Credentials go to that host only, and over http to this machine only. Gix speaks the
//! protocol on top of it and sees neither.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, BufRead, BufReader, Cursor, Read, Write};
use std::net::IpAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use gix_transport::client::blocking_io::http;
use ureq::http::header::{AUTHORIZATION, CONTENT_TYPE, LOCATION};
use ureq::http::{HeaderMap, HeaderName, HeaderValue, Request, Response, Uri};
use vibe_core::git_url::Credential;
use vibe_core::text::{escape, shorten};

use crate::credentials::{Helpers, Site};
use crate::error::{Cause, GitError};
use crate::watch::{Watch, Watched};

/// How long a connection may take to be made.
const CONNECT_LIMIT: Duration = Duration::from_secs(20);
/// Redirects that are followed: a renamed owner and a renamed repository, and some to spare.
const REDIRECTS: usize = 5;
/// Bytes of a request: what we have already, at 50 bytes a commit.
const REQUEST_BYTES: usize = 64 << 20;
/// What the first answer of a git server is.
const ADVERTISEMENT: &str = "application/x-git-upload-pack-advertisement";

/// What a connection needs to know.
pub(crate) struct HttpOptions {
    /// The URL without credentials, for errors.
    pub(crate) repository: String,
    /// What credentials are for.
    pub(crate) site: Site,
    /// What the caller knows.
    pub(crate) credential: Option<Credential>,
    /// Who else may know.
    pub(crate) helpers: Helpers,
    /// The variables that name a proxy are in here.
    pub(crate) environment: BTreeMap<OsString, OsString>,
    /// The supervision of the transfer.
    pub(crate) watch: Arc<Watch>,
}

/// One conversation with one host.
pub(crate) struct HttpClient {
    shared: Rc<Shared>,
}

struct Shared {
    agent: ureq::Agent,
    options: HttpOptions,
    /// The repository's URL after redirects.
    base: RefCell<Option<String>>,
    credential: RefCell<Known>,
}

/// The credential of a conversation.
enum Known {
    Nothing,
    Given(Credential),
    /// From a helper, which has yet to be told whether it was right.
    Helped(Credential),
    /// From a helper, and right.
    Approved(Credential),
}

impl HttpClient {
    pub(crate) fn new(mut options: HttpOptions) -> Self {
        let config = ureq::Agent::config_builder()
            .http_status_as_error(false)
            .max_redirects(0)
            .max_redirects_will_error(false)
            .user_agent(ureq::config::AutoHeaderValue::None)
            .accept(ureq::config::AutoHeaderValue::None)
            .accept_encoding(ureq::config::AutoHeaderValue::None)
            .timeout_connect(Some(CONNECT_LIMIT))
            .timeout_resolve(Some(CONNECT_LIMIT))
            .proxy(proxy_for(&options.site, &options.environment))
            .tls_config(
                ureq::tls::TlsConfig::builder()
                    .root_certs(ureq::tls::RootCerts::PlatformVerifier)
                    .build(),
            )
            .build();
        let agent = ureq::Agent::new_with_config(config);
        let woken = agent.clone();
        options.watch.on_stop(move || woken.shutdown());
        let credential = match options.credential.take() {
            Some(credential) => Known::Given(credential),
            None => Known::Nothing,
        };
        let shared = Shared {
            agent,
            options,
            base: RefCell::new(None),
            credential: RefCell::new(credential),
        };
        Self {
            shared: Rc::new(shared),
        }
    }
}

impl Shared {
    /// Sends a request until it is answered, redirects followed and credentials found.
    fn send(
        &self,
        url: &str,
        headers: &HeaderMap,
        body: Option<&[u8]>,
    ) -> Result<Response<ureq::Body>, GitError> {
        let mut url: Uri = url.parse().map_err(|error| self.failed(&error))?;
        for _ in 0..REDIRECTS {
            let response = self.send_once(&url, headers, body)?;
            match response.status().as_u16() {
                200..=299 => {
                    self.approve();
                    return Ok(response);
                }
                301 | 302 | 303 | 307 | 308 if body.is_none() => {
                    url = self.redirected(&url, response.headers().get(LOCATION))?;
                }
                401 => self.unauthorized(&url)?,
                403 if self.has_credential() => return Err(self.refused()),
                status @ (403 | 404 | 410) => {
                    return Err(self.no_such_repository(&format!("HTTP status {status}")));
                }
                status => {
                    let cause = format!("{} answered with HTTP status {status}", self.host());
                    return Err(GitError::Transfer {
                        repository: self.options.repository.clone(),
                        source: Cause::new(&cause),
                    });
                }
            }
        }
        Err(self.no_such_repository("it redirects again and again"))
    }

    fn send_once(
        &self,
        url: &Uri,
        headers: &HeaderMap,
        body: Option<&[u8]>,
    ) -> Result<Response<ureq::Body>, GitError> {
        let builder = match body {
            Some(_) => Request::post(url),
            None => Request::get(url),
        };
        let mut request = builder.body(()).map_err(|error| self.failed(&error))?;
        request.headers_mut().extend(headers.clone());
        if let Some(value) = self.authorization(url) {
            request.headers_mut().insert(AUTHORIZATION, value);
        }
        let answered = self.options.watch.waiting(|| match body {
            Some(body) => self.agent.run(request.map(|()| body)),
            None => self.agent.run(request),
        });
        answered.map_err(|error| GitError::HostUnreachable {
            host: self.host(),
            repository: self.options.repository.clone(),
            source: Cause::of(&error),
        })
    }

    fn authorization(&self, url: &Uri) -> Option<HeaderValue> {
        if !is_protected(url) {
            return None;
        }
        let known = self.credential.borrow();
        let (Known::Given(credential) | Known::Helped(credential) | Known::Approved(credential)) =
            &*known
        else {
            return None;
        };
        let text = format!("{}:{}", credential.user, credential.secret);
        let encoded = base64::engine::general_purpose::STANDARD.encode(text);
        let mut value = HeaderValue::try_from(format!("Basic {encoded}")).ok()?;
        value.set_sensitive(true);
        Some(value)
    }

    fn has_credential(&self) -> bool {
        !matches!(*self.credential.borrow(), Known::Nothing)
    }

    /// Finds a credential for a host that asks for one.
    fn unauthorized(&self, url: &Uri) -> Result<(), GitError> {
        if !is_protected(url) {
            return Err(GitError::UnencryptedCredentials {
                host: self.host(),
                repository: self.options.repository.clone(),
            });
        }
        let known = self.credential.replace(Known::Nothing);
        match known {
            Known::Nothing => {}
            Known::Given(_) => return Err(self.refused()),
            Known::Helped(credential) | Known::Approved(credential) => {
                self.options.helpers.reject(&self.options.site, &credential);
                return Err(self.refused());
            }
        }
        let watch = &self.options.watch;
        let found = watch.waiting(|| self.options.helpers.fill(&self.options.site));
        let found = found.ok_or_else(|| GitError::AuthenticationRequired {
            host: self.host(),
            repository: self.options.repository.clone(),
        })?;
        self.credential.replace(Known::Helped(found));
        Ok(())
    }

    /// Tells the helpers, once, that what they said was right.
    fn approve(&self) {
        let known = self.credential.replace(Known::Nothing);
        let known = match known {
            Known::Helped(credential) => {
                self.options
                    .helpers
                    .approve(&self.options.site, &credential);
                Known::Approved(credential)
            }
            other => other,
        };
        self.credential.replace(known);
    }

    /// Where the first request goes instead.
    fn redirected(&self, from: &Uri, location: Option<&HeaderValue>) -> Result<Uri, GitError> {
        let shown = |text: &[u8]| {
            let text = String::from_utf8_lossy(text);
            escape(&shorten(&vibe_core::text::hide_credentials(&text), 200))
        };
        let location = location.map(HeaderValue::as_bytes).unwrap_or_default();
        let to = resolve(from, location).ok_or_else(|| {
            self.no_such_repository(&format!("redirected to {}", shown(location)))
        })?;
        let is_same = is_same_site(from, &to);
        if !is_same {
            let authority = to.authority().map(|a| a.as_str().as_bytes().to_vec());
            let scheme = to.scheme_str().unwrap_or_default();
            let named = format!("{scheme}://{}", shown(&authority.unwrap_or_default()));
            return Err(GitError::RedirectedElsewhere {
                repository: self.options.repository.clone(),
                from: self.host(),
                to: vibe_core::text::hide_credentials(&named),
            });
        }
        let (Some(tail), Some(target)) = (
            from.path_and_query().map(|path| tail_of(path.as_str())),
            to.path_and_query().map(|path| path.as_str()),
        ) else {
            return Err(self.no_such_repository("redirected to nothing"));
        };
        if !target.ends_with(tail) {
            let cause = format!("redirected to {}, which is no repository", shown(location));
            return Err(self.no_such_repository(&cause));
        }
        let whole = to.to_string();
        let base = whole.strip_suffix(tail).unwrap_or(&whole);
        self.base.replace(Some(base.to_owned()));
        Ok(to)
    }

    fn host(&self) -> String {
        self.options.site.authority.clone()
    }

    fn refused(&self) -> GitError {
        GitError::CredentialsRefused {
            host: self.host(),
            repository: self.options.repository.clone(),
        }
    }

    fn no_such_repository(&self, cause: &str) -> GitError {
        GitError::NoSuchRepository {
            repository: self.options.repository.clone(),
            source: Cause::new(cause),
        }
    }

    fn failed(&self, error: &(dyn std::error::Error + 'static)) -> GitError {
        GitError::Transfer {
            repository: self.options.repository.clone(),
            source: Cause::of(error),
        }
    }

    /// Tells gix that something failed; what it was, the watch keeps.
    fn fail(&self, error: GitError) -> io::Error {
        self.options.watch.fail(error)
    }

    fn reader(&self, response: Response<ureq::Body>) -> Reader {
        let body = response.into_body().into_reader();
        BufReader::with_capacity(64 << 10, Watched::new(body, &self.options.watch))
    }
}

/// The part of the path and query that is git's, not the repository's.
fn tail_of(path: &str) -> &str {
    path.rfind("/info/refs?").map_or(path, |at| &path[at..])
}

/// Whether what is sent to `url` can be read by nobody on the way.
fn is_protected(url: &Uri) -> bool {
    let host = url.host().unwrap_or_default();
    let bare = host.trim_start_matches('[').trim_end_matches(']');
    let address = bare.parse::<IpAddr>();
    let is_here = host == "localhost" || address.is_ok_and(|address| address.is_loopback());
    url.scheme_str() == Some("https") || is_here
}

/// Whether `to` is `from`'s host and port, with no less protection. The step from http to https
/// changes the port.
fn is_same_site(from: &Uri, to: &Uri) -> bool {
    let port = |url: &Uri| url.port_u16().or(default_port(url));
    let is_host_same = match (from.host(), to.host()) {
        (Some(from), Some(to)) => from.eq_ignore_ascii_case(to),
        _ => false,
    };
    let has_user = to
        .authority()
        .is_some_and(|authority| authority.as_str().contains('@'));
    let is_scheme_fine = match (from.scheme_str(), to.scheme_str()) {
        (Some("http"), Some("https")) => from.port_u16().is_none() && port(to) == Some(443),
        (from_scheme, to_scheme) => from_scheme == to_scheme && port(from) == port(to),
    };
    is_host_same && is_scheme_fine && !has_user
}

fn default_port(url: &Uri) -> Option<u16> {
    match url.scheme_str() {
        Some("https") => Some(443),
        Some("http") => Some(80),
        _ => None,
    }
}

/// The whole URL of a `Location`, which may be a path on the same host.
fn resolve(from: &Uri, location: &[u8]) -> Option<Uri> {
    let to: Uri = std::str::from_utf8(location).ok()?.parse().ok()?;
    if to.scheme().is_some() {
        return Some(to);
    }
    // `//host/path` would be read as a path by some and as a host by others.
    let path = to.path_and_query().filter(|path| {
        to.authority().is_none()
            && path.as_str().starts_with('/')
            && !path.as_str().starts_with("//")
    })?;
    let mut parts = from.clone().into_parts();
    parts.path_and_query = Some(path.clone());
    Uri::from_parts(parts).ok()
}

/// The proxy that the environment names for `site`, as curl reads it.
fn proxy_for(site: &Site, environment: &BTreeMap<OsString, OsString>) -> Option<ureq::Proxy> {
    let variable = |name: &str| {
        let value = environment.get(OsStr::new(name))?.to_str()?;
        Some(value.to_owned()).filter(|value| !value.is_empty())
    };
    let host = site.authority.split(':').next().unwrap_or_default();
    let excluded = variable("no_proxy").or_else(|| variable("NO_PROXY"));
    if excluded.is_some_and(|list| is_excluded(host, &list)) {
        return None;
    }
    // `HTTP_PROXY` in capitals could come from a request's header, so nobody reads it.
    let names = match site.scheme {
        "https" => ["https_proxy", "HTTPS_PROXY"].as_slice(),
        _ => ["http_proxy"].as_slice(),
    };
    let all = names.iter().chain(&["all_proxy", "ALL_PROXY"]);
    let value = all.filter_map(|name| variable(name)).next()?;
    ureq::Proxy::new(&value)
        .inspect_err(|_| tracing::warn!("the proxy in the environment cannot be used"))
        .ok()
}

fn is_excluded(host: &str, list: &str) -> bool {
    list.split(',').map(str::trim).any(|entry| {
        let domain = entry.trim_start_matches('*').trim_start_matches('.');
        let is_below = host
            .strip_suffix(domain)
            .is_some_and(|rest| rest.ends_with('.'));
        entry == "*" || (!domain.is_empty() && (host == domain || is_below))
    })
}

type Reader = BufReader<Watched<ureq::BodyReader<'static>>>;

/// A request that is sent when its answer is read: until then gix writes its body.
struct Exchange {
    shared: Rc<Shared>,
    url: String,
    headers: HeaderMap,
    upload: Vec<u8>,
    answer: Option<(Vec<u8>, Reader)>,
    is_sent: bool,
}

impl Exchange {
    fn answer(&mut self) -> io::Result<&mut Option<(Vec<u8>, Reader)>> {
        if !self.is_sent {
            self.is_sent = true;
            let sent = self
                .shared
                .send(&self.url, &self.headers, Some(&self.upload));
            let response = sent.map_err(|error| self.shared.fail(error))?;
            let lines = header_lines(response.headers());
            self.answer = Some((lines, self.shared.reader(response)));
        }
        Ok(&mut self.answer)
    }
}

/// The headers of an answer, line by line.
pub(crate) struct Headers {
    exchange: Option<Rc<RefCell<Exchange>>>,
    lines: Cursor<Vec<u8>>,
}

impl Headers {
    fn ready(&mut self) -> io::Result<()> {
        if let Some(exchange) = self.exchange.take()
            && let Some((lines, _)) = exchange.borrow_mut().answer()?
        {
            self.lines = Cursor::new(std::mem::take(lines));
        }
        Ok(())
    }
}

impl Read for Headers {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.ready()?;
        self.lines.read(buffer)
    }
}

impl BufRead for Headers {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.ready()?;
        self.lines.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        self.lines.consume(amount);
    }
}

/// The body of an answer.
pub(crate) struct Body {
    exchange: Option<Rc<RefCell<Exchange>>>,
    reader: Option<Reader>,
}

impl Body {
    fn ready(&mut self) -> io::Result<&mut Reader> {
        if let Some(exchange) = self.exchange.take() {
            self.reader = exchange
                .borrow_mut()
                .answer()?
                .take()
                .map(|(_, reader)| reader);
        }
        let reader = self.reader.as_mut();
        reader.ok_or_else(|| io::Error::other("the request failed"))
    }
}

impl Read for Body {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.ready()?.read(buffer)
    }
}

impl BufRead for Body {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        self.ready()?.fill_buf()
    }

    fn consume(&mut self, amount: usize) {
        if let Some(reader) = &mut self.reader {
            reader.consume(amount);
        }
    }
}

/// Where gix writes the body of a request.
pub(crate) struct Upload {
    exchange: Rc<RefCell<Exchange>>,
}

impl Write for Upload {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let upload = &mut self.exchange.borrow_mut().upload;
        if upload.len() + bytes.len() > REQUEST_BYTES {
            return Err(io::Error::other("the request has grown too large"));
        }
        upload.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn header_lines(headers: &HeaderMap) -> Vec<u8> {
    let mut lines = Vec::new();
    for (name, value) in headers {
        lines.extend_from_slice(name.as_str().as_bytes());
        lines.extend_from_slice(b": ");
        lines.extend_from_slice(value.as_bytes());
        lines.push(b'\n');
    }
    lines
}

fn header_map(lines: impl IntoIterator<Item = impl AsRef<str>>) -> HeaderMap {
    let parse = |line: &str| {
        let (name, value) = line.split_once(':')?;
        let name: HeaderName = name.parse().ok()?;
        Some((name, HeaderValue::try_from(value.trim()).ok()?))
    };
    let lines = lines.into_iter();
    lines.filter_map(|line| parse(line.as_ref())).collect()
}

impl http::Http for HttpClient {
    type Headers = Headers;
    type ResponseBody = Body;
    type PostBody = Upload;

    fn get(
        &mut self,
        url: &str,
        _base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
    ) -> Result<http::GetResponse<Headers, Body>, gix::Error> {
        let fail = |error| gix::Error::from_error(self.shared.fail(error));
        let sent = self.shared.send(url, &header_map(headers), None);
        let response = sent.map_err(fail)?;
        let kind = response.headers().get(CONTENT_TYPE);
        let kind = String::from_utf8_lossy(kind.map(HeaderValue::as_bytes).unwrap_or_default());
        if kind.trim() != ADVERTISEMENT {
            let cause = format!("the server answers with `{kind}`, which no git server does");
            return Err(fail(self.shared.no_such_repository(&cause)));
        }
        Ok(http::GetResponse {
            headers: Headers {
                exchange: None,
                lines: Cursor::new(header_lines(response.headers())),
            },
            body: Body {
                exchange: None,
                reader: Some(self.shared.reader(response)),
            },
        })
    }

    fn post(
        &mut self,
        url: &str,
        _base_url: &str,
        headers: impl IntoIterator<Item = impl AsRef<str>>,
        _kind: http::PostBodyDataKind,
    ) -> Result<http::PostResponse<Headers, Body, Upload>, gix::Error> {
        let exchange = Rc::new(RefCell::new(Exchange {
            shared: Rc::clone(&self.shared),
            url: url.to_owned(),
            headers: header_map(headers),
            upload: Vec::new(),
            answer: None,
            is_sent: false,
        }));
        Ok(http::PostResponse {
            post_body: Upload {
                exchange: Rc::clone(&exchange),
            },
            headers: Headers {
                exchange: Some(Rc::clone(&exchange)),
                lines: Cursor::default(),
            },
            body: Body {
                exchange: Some(exchange),
                reader: None,
            },
        })
    }

    fn configure(&mut self, _config: &dyn std::any::Any) -> Result<(), gix::Error> {
        Ok(())
    }

    fn redirected_base_url(&self) -> Option<String> {
        self.shared.base.borrow().clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn uri(text: &str) -> Uri {
        text.parse().unwrap()
    }

    #[test]
    fn only_the_same_host_with_no_less_protection_is_the_same_site() {
        for (from, to, expected) in [
            ("https://host/a", "https://host/b", true),
            ("https://host/a", "https://HOST:443/b", true),
            ("http://host/a", "https://host/b", true),
            ("http://host:8080/a", "http://host:8080/b", true),
            ("https://host/a", "http://host/b", false),
            ("https://host/a", "https://host:8443/b", false),
            ("http://host:8080/a", "https://host/b", false),
            ("https://host/a", "https://host.example/b", false),
            ("https://host/a", "https://u:p@host/b", false),
            ("https://host/a", "ftp://host/b", false),
        ] {
            assert_eq!(is_same_site(&uri(from), &uri(to)), expected, "{from} {to}");
        }
    }

    #[test]
    fn a_location_is_a_url_or_a_path_on_the_same_host() {
        let from = uri("https://host:1/a/info/refs?service=x");
        for (location, expected) in [
            ("https://other/b", Some("https://other/b")),
            (
                "/b/info/refs?service=x",
                Some("https://host:1/b/info/refs?service=x"),
            ),
            ("//other/b", None),
            ("b/c", None),
            ("", None),
            ("\u{1b}[2J", None),
        ] {
            let found = resolve(&from, location.as_bytes());
            assert_eq!(
                found.map(|uri| uri.to_string()).as_deref(),
                expected,
                "{location}"
            );
        }
    }

    #[test]
    fn secrets_are_sent_encrypted_or_to_this_machine() {
        for (url, expected) in [
            ("https://host/a", true),
            ("http://localhost:8080/a", true),
            ("http://127.0.0.1/a", true),
            ("http://[::1]:80/a", true),
            ("http://host/a", false),
            ("http://127.0.0.1.example/a", false),
        ] {
            assert_eq!(is_protected(&uri(url)), expected, "{url}");
        }
    }

    #[test]
    fn the_proxy_of_the_environment_is_used_unless_the_host_is_excluded() {
        let check = |scheme, variables: &[(&str, &str)], expected: Option<&str>| {
            let pairs = variables.iter().map(|(k, v)| (k.into(), v.into()));
            let environment: BTreeMap<OsString, OsString> = pairs.collect();
            let site = Site {
                scheme,
                authority: "git.example.org:8443".to_owned(),
                path: "a".to_owned(),
            };
            let found = proxy_for(&site, &environment);
            assert_eq!(
                found.as_ref().map(ureq::Proxy::host),
                expected,
                "{variables:?}"
            );
        };
        check("https", &[], None);
        check("https", &[("https_proxy", "http://p:3128")], Some("p"));
        check("https", &[("HTTPS_PROXY", "p:3128")], Some("p"));
        check("https", &[("ALL_PROXY", "http://p:3128")], Some("p"));
        check("https", &[("http_proxy", "http://p:3128")], None);
        check("http", &[("http_proxy", "http://p:3128")], Some("p"));
        check("http", &[("HTTP_PROXY", "http://p:3128")], None);
        check("https", &[("https_proxy", "nonsense://p")], None);
        for (list, is_used) in [
            ("other.org, git.example.org", false),
            ("example.org", false),
            (".example.org", false),
            ("*.example.org", false),
            ("*", false),
            ("ample.org", true),
            (",", true),
        ] {
            let variables = [("https_proxy", "http://p:3128"), ("no_proxy", list)];
            check("https", &variables, is_used.then_some("p"));
        }
    }
}
