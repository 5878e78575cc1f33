//! A server of git over HTTP: git's own CGI program behind a small HTTP/1.1 front, which can also
//! want a login, send its clients elsewhere, say no or say nothing.
//!
//! It keeps to what the git clients need: one request a connection, and paths that need no
//! percent-encoding.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;

use crate::GitProgram;
use crate::server::{Running, Server};

/// A server of git over HTTP, for reading.
#[derive(Debug)]
pub struct GitHttpServer {
    server: Server,
    requests: Arc<Mutex<Vec<HttpRequest>>>,
    stalls: Arc<AtomicBool>,
}

/// What a [`GitHttpServer`] does with its requests.
#[derive(Debug, Clone)]
pub struct HttpOptions {
    answer: Answer,
    authorization: Option<String>,
    is_old: bool,
    stall_bytes: Option<u64>,
}

#[derive(Debug, Clone)]
enum Answer {
    Serve(PathBuf),
    Redirect(String),
    Refuse(Vec<u8>),
    Hang,
}

/// A request that a [`GitHttpServer`] got, whatever it answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HttpRequest {
    /// `GET` or `POST`.
    pub method: String,
    /// The path with the query, as it was sent.
    pub path: String,
    /// Whether the client sent an `Authorization`, right or wrong.
    pub has_authorization: bool,
}

impl HttpOptions {
    /// Serves every repository below `root`, without login.
    pub fn serve(root: &Path) -> Self {
        Self::new(Answer::Serve(root.to_owned()))
    }

    /// Sends every request to the same path below `url`, which has no `/` at its end.
    pub fn redirect(url: &str) -> Self {
        Self::new(Answer::Redirect(url.to_owned()))
    }

    /// Answers every request with an error of the git protocol that says `message`, as it is: for
    /// control sequences and bytes that are no text.
    pub fn refuse(message: impl AsRef<[u8]>) -> Self {
        Self::new(Answer::Refuse(message.as_ref().to_owned()))
    }

    /// Reads requests and never answers, in whatever protocol they come.
    pub fn hang() -> Self {
        Self::new(Answer::Hang)
    }

    /// Wants this login (basic authentication), and answers 401 without.
    pub fn login(mut self, user: &str, secret: &str) -> Self {
        let login = STANDARD.encode(format!("{user}:{secret}"));
        self.authorization = Some(format!("Basic {login}"));
        self
    }

    /// Speaks the old protocol with clients that ask for version 2. Only there may a server refuse
    /// a commit that is asked for by its id: see [`Wants`](crate::Wants).
    pub fn old_protocol(mut self) -> Self {
        self.is_old = true;
        self
    }

    /// Sends no more than `bytes` of what git answers and then says nothing, until
    /// [`GitHttpServer::answer_in_full`].
    pub fn stalling_after(mut self, bytes: u64) -> Self {
        self.stall_bytes = Some(bytes);
        self
    }

    fn new(answer: Answer) -> Self {
        Self {
            answer,
            authorization: None,
            is_old: false,
            stall_bytes: None,
        }
    }
}

impl GitHttpServer {
    /// Starts a server, which listens when this returns.
    pub fn start(options: HttpOptions) -> Self {
        let requests = Arc::default();
        let stalls = Arc::new(AtomicBool::new(options.stall_bytes.is_some()));
        let front = Arc::new(Front {
            git: GitProgram::new(),
            options,
            requests: Arc::clone(&requests),
            stalls: Arc::clone(&stalls),
        });
        let server = Server::start(move |running, stream| {
            let (front, shared) = (Arc::clone(&front), Arc::clone(running));
            running.in_thread(stream, move |stream| front.answer(&shared, stream));
        });
        Self {
            server,
            requests,
            stalls,
        }
    }

    /// From now on every answer is sent to its end.
    pub fn answer_in_full(&self) {
        self.stalls.store(false, Ordering::SeqCst);
    }

    /// The URL of the root, without `/` at its end.
    pub fn root_url(&self) -> String {
        format!("http://127.0.0.1:{}", self.port())
    }

    /// The URL of the repository at `path` below the root.
    pub fn url(&self, path: &str) -> String {
        format!("{}/{path}", self.root_url())
    }

    /// The port, on 127.0.0.1.
    pub fn port(&self) -> u16 {
        self.server.port()
    }

    /// The requests so far, in order.
    pub fn requests(&self) -> Vec<HttpRequest> {
        let requests = self.requests.lock();
        requests.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// How many connections there were, also those without a request.
    pub fn connections(&self) -> usize {
        self.server.connections()
    }

    /// Waits until there were `count` connections: for a test that cancels a request which is
    /// never answered.
    pub fn wait_for_connections(&self, count: usize) {
        self.server.wait_for_connections(count);
    }
}

/// What answers the requests.
struct Front {
    git: GitProgram,
    options: HttpOptions,
    requests: Arc<Mutex<Vec<HttpRequest>>>,
    stalls: Arc<AtomicBool>,
}

impl Front {
    fn answer(&self, running: &Running, stream: &TcpStream) -> io::Result<()> {
        let mut reader = BufReader::new(stream);
        let head = Head::read(&mut reader)?;
        let request = head.logged();
        self.requests
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push(request);
        if matches!(self.options.answer, Answer::Hang) {
            return io::copy(&mut reader, &mut io::sink()).map(drop);
        }
        let body = head.body(&mut reader)?;
        let wanted = self.options.authorization.as_deref();
        if wanted.is_some() && head.header("authorization") != wanted {
            let realm = "WWW-Authenticate: Basic realm=\"fixture\"";
            return respond(stream, "401 Unauthorized", realm, b"");
        }
        match &self.options.answer {
            Answer::Serve(root) => self.serve(running, stream, root, &head, &body),
            Answer::Redirect(url) => {
                let location = format!("Location: {url}{}", head.path);
                respond(stream, "302 Found", &location, b"")
            }
            Answer::Refuse(message) => {
                let kind = "Content-Type: application/x-git-upload-pack-advertisement";
                respond(stream, "200 OK", kind, &refusal(message))
            }
            Answer::Hang => Ok(()),
        }
    }

    /// Lets `git http-backend` answer.
    fn serve(
        &self,
        running: &Running,
        stream: &TcpStream,
        root: &Path,
        head: &Head,
        body: &[u8],
    ) -> io::Result<()> {
        let (path, query) = head.path.split_once('?').unwrap_or((&head.path, ""));
        let mut command = self.git.command(root, &["http-backend"]);
        command
            .env("GIT_PROJECT_ROOT", root)
            .env("GIT_HTTP_EXPORT_ALL", "1")
            .env("REQUEST_METHOD", &head.method)
            .env("PATH_INFO", path)
            .env("QUERY_STRING", query)
            .env("CONTENT_LENGTH", body.len().to_string());
        let passed = [
            ("CONTENT_TYPE", "content-type"),
            ("HTTP_CONTENT_ENCODING", "content-encoding"),
            ("GIT_PROTOCOL", "git-protocol"),
        ];
        for (variable, header) in passed {
            let is_hidden = self.options.is_old && header == "git-protocol";
            if let Some(value) = head.header(header).filter(|_| !is_hidden) {
                command.env(variable, value);
            }
        }
        command.stdin(Stdio::piped()).stderr(Stdio::null());
        let Some((Some(mut stdin), Some(stdout))) = running.spawn(command) else {
            return Ok(());
        };
        std::thread::scope(|scope| {
            // A backend that does not want the body ends, which its output tells.
            scope.spawn(move || stdin.write_all(body));
            let stalls = self.stalls.load(Ordering::SeqCst);
            let limit = self.options.stall_bytes.filter(|_| stalls);
            forward(BufReader::new(stdout), stream, limit)
        })
    }
}

/// Turns the answer of a CGI program into one of HTTP. After `limit` bytes of a body nothing more
/// is sent, and the connection stays until the client or the server ends it.
fn forward(mut from: impl BufRead, mut to: &TcpStream, limit: Option<u64>) -> io::Result<()> {
    let lines = header_lines(&mut from)?;
    let status = lines.iter().find_map(|line| line.strip_prefix("Status: "));
    let mut head = format!("HTTP/1.1 {}\r\n", status.unwrap_or("200 OK"));
    for line in lines.iter().filter(|line| !line.starts_with("Status: ")) {
        head.push_str(&format!("{line}\r\n"));
    }
    write!(to, "{head}Connection: close\r\n\r\n")?;
    let Some(limit) = limit else {
        return io::copy(&mut from, &mut to).map(drop);
    };
    let sent = io::copy(&mut from.take(limit), &mut to)?;
    match sent < limit {
        true => Ok(()),
        false => io::copy(&mut to, &mut io::sink()).map(drop),
    }
}

fn respond(mut stream: &TcpStream, status: &str, header: &str, body: &[u8]) -> io::Result<()> {
    let length = body.len();
    write!(
        stream,
        "HTTP/1.1 {status}\r\n{header}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    )?;
    stream.write_all(body)
}

/// The advertisement of a repository that cannot be had.
fn refusal(message: &[u8]) -> Vec<u8> {
    let mut body = b"001e# service=git-upload-pack\n0000".to_vec();
    let line = [b"ERR ", message].concat();
    body.extend_from_slice(format!("{:04x}", line.len() + 4).as_bytes());
    body.extend_from_slice(&line);
    body
}

/// The head of a request; the names of its headers are in lower case.
struct Head {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
}

impl Head {
    fn read(reader: &mut impl BufRead) -> io::Result<Self> {
        let lines = header_lines(reader)?;
        let mut lines = lines.iter();
        let mut words = lines.next().map_or("", String::as_str).split(' ');
        let headers = lines.filter_map(|line| line.split_once(':'));
        Ok(Self {
            method: words.next().unwrap_or_default().to_owned(),
            path: words.next().unwrap_or_default().to_owned(),
            headers: headers
                .map(|(name, value)| (name.to_ascii_lowercase(), value.trim().to_owned()))
                .collect(),
        })
    }

    fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(it, _)| it == name);
        found.map(|(_, value)| value.as_str())
    }

    fn logged(&self) -> HttpRequest {
        HttpRequest {
            method: self.method.clone(),
            path: self.path.clone(),
            has_authorization: self.header("authorization").is_some(),
        }
    }

    /// The body, not chunked any more; a compressed one stays compressed.
    fn body(&self, reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
        if self.header("transfer-encoding") == Some("chunked") {
            return chunks(reader);
        }
        let length = self.header("content-length").map(str::parse);
        let length = length.transpose().map_err(io::Error::other)?;
        let mut body = vec![0; length.unwrap_or(0)];
        reader.read_exact(&mut body)?;
        Ok(body)
    }
}

fn chunks(reader: &mut impl BufRead) -> io::Result<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let size = line(reader)?;
        let size = size.split(';').next().unwrap_or_default().trim();
        let size = u64::from_str_radix(size, 16).map_err(io::Error::other)?;
        reader.take(size).read_to_end(&mut body)?;
        line(reader)?;
        if size == 0 {
            return Ok(body);
        }
    }
}

/// The lines up to an empty one.
fn header_lines(reader: &mut impl BufRead) -> io::Result<Vec<String>> {
    let mut lines = Vec::new();
    loop {
        match line(reader)? {
            empty if empty.is_empty() => return Ok(lines),
            full => lines.push(full),
        }
    }
}

/// The next line without its end; empty at the end of the input.
fn line(reader: &mut impl BufRead) -> io::Result<String> {
    let mut line = String::new();
    reader.read_line(&mut line)?;
    Ok(line.trim_end_matches(['\r', '\n']).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{GitRepository, Wants};

    /// A directory with the repository `source`, its bare copy `bare.git`, and the commit in both.
    fn served() -> (tempfile::TempDir, String) {
        let directory = tempfile::tempdir().unwrap();
        let repository = GitRepository::new(&directory.path().join("source"));
        repository.write("a.md", "text", false);
        let commit = repository.commit("first");
        repository.bare_at(&directory.path().join("bare.git"), Wants::Tips);
        (directory, commit)
    }

    /// Standard error of a git command that has to fail.
    fn failure(arguments: &[&str]) -> String {
        let directory = tempfile::tempdir().unwrap();
        let mut command = GitProgram::new().command(directory.path(), arguments);
        let output = command.output().unwrap();
        assert!(!output.status.success(), "{arguments:?} succeeded");
        String::from_utf8_lossy(&output.stderr).into_owned()
    }

    fn clone(url: &str) -> String {
        let directory = tempfile::tempdir().unwrap();
        let git = GitProgram::new();
        git.run(directory.path(), &["clone", "--quiet", url, "clone"]);
        git.run(&directory.path().join("clone"), &["rev-parse", "HEAD"])
    }

    /// Method, path up to the query, and whether there was an `Authorization`, of each request.
    fn log(server: &GitHttpServer) -> Vec<(String, String, bool)> {
        let short = |request: HttpRequest| {
            let path = request.path.split('?').next().unwrap().to_owned();
            (request.method, path, request.has_authorization)
        };
        server.requests().into_iter().map(short).collect()
    }

    fn requests(expected: &[(&str, &str, bool)]) -> Vec<(String, String, bool)> {
        let owned = |(method, path, has): &(&str, &str, bool)| {
            ((*method).to_owned(), (*path).to_owned(), *has)
        };
        expected.iter().map(owned).collect()
    }

    #[test]
    fn a_repository_is_cloned_in_both_protocols() {
        let (directory, commit) = served();
        let new = GitHttpServer::start(HttpOptions::serve(directory.path()));
        let old = GitHttpServer::start(HttpOptions::serve(directory.path()).old_protocol());
        for (server, posts) in [(&new, 2), (&old, 1)] {
            assert_eq!(clone(&server.url("bare.git")), commit);
            assert_eq!(clone(&server.url("source")), commit);
            let log = log(server);
            assert_eq!(
                log[0],
                requests(&[("GET", "/bare.git/info/refs", false)])[0]
            );
            assert_eq!(
                log[1],
                requests(&[("POST", "/bare.git/git-upload-pack", false)])[0]
            );
            assert_eq!(
                (log.len(), server.connections()),
                (2 + 2 * posts, 2 + 2 * posts)
            );
        }
    }

    #[test]
    fn only_the_old_protocol_refuses_a_commit_by_its_id() {
        let (directory, _) = served();
        let repository = GitRepository::new(&directory.path().join("other"));
        let hidden = repository.commit("replaced");
        let bare = directory.path().join("other.git");
        repository.bare_at(&bare, Wants::Tips);
        let tip = repository.commit_tree(&repository.raw_tree(&[]));
        repository.force_branch("main", &tip);
        repository.bare_at(&bare, Wants::Tips);
        let fetch = |server: &GitHttpServer| {
            let client = tempfile::tempdir().unwrap();
            let git = GitProgram::new();
            git.run(client.path(), &["init", "--quiet"]);
            let arguments = ["fetch", "--quiet", &server.url("other.git"), &hidden];
            let output = git.command(client.path(), &arguments).output().unwrap();
            output.status.success()
        };
        let new = GitHttpServer::start(HttpOptions::serve(directory.path()));
        let old = GitHttpServer::start(HttpOptions::serve(directory.path()).old_protocol());
        assert_eq!((fetch(&new), fetch(&old)), (true, false));
        repository.bare_at(&bare, Wants::AnyCommit);
        assert!(fetch(&old));
    }

    #[test]
    fn a_login_is_wanted_and_checked() {
        let (directory, commit) = served();
        let options = HttpOptions::serve(directory.path()).login("user", "secret");
        let server = GitHttpServer::start(options);
        let path = "/bare.git/info/refs";
        let without = failure(&["ls-remote", &server.url("bare.git")]);
        assert!(without.contains("could not read Username"), "{without}");
        assert_eq!(log(&server), requests(&[("GET", path, false)]));
        let with = |login: &str| server.url("bare.git").replace("//", &format!("//{login}@"));
        let wrong = failure(&["ls-remote", &with("user:wrong")]);
        assert!(wrong.contains("Authentication failed"), "{wrong}");
        assert_eq!(clone(&with("user:secret")), commit);
        let last = requests(&[("POST", "/bare.git/git-upload-pack", true)]);
        assert_eq!(log(&server).last(), last.first());
    }

    #[test]
    fn a_redirect_leads_to_the_other_server() {
        let (directory, commit) = served();
        let target = GitHttpServer::start(HttpOptions::serve(directory.path()));
        let first = GitHttpServer::start(HttpOptions::redirect(&target.root_url()));
        assert_eq!(first.connections(), 0);
        assert_eq!(clone(&first.url("bare.git")), commit);
        let path = "/bare.git/info/refs";
        assert_eq!(log(&first), requests(&[("GET", path, false)]));
        assert_eq!(log(&target)[0], requests(&[("GET", path, false)])[0]);
        let refused = failure(&[
            "-c",
            "http.followRedirects=false",
            "ls-remote",
            &first.url("bare.git"),
        ]);
        assert!(refused.contains("302"), "{refused}");
    }

    #[test]
    fn a_refusal_reaches_the_client_as_it_is() {
        let server = GitHttpServer::start(HttpOptions::refuse("go \x1b[31maway\x1b[0m"));
        let stderr = failure(&["ls-remote", &server.url("bare.git")]);
        assert!(stderr.contains("remote error: go "), "{stderr}");
        let mut client = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        write!(client, "GET /bare.git/info/refs HTTP/1.1\r\n\r\n").unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        let packets = answer.split_once("\r\n\r\n").unwrap().1;
        assert_eq!(
            packets,
            "001e# service=git-upload-pack\n00000018ERR go \x1b[31maway\x1b[0m"
        );
    }

    #[test]
    fn a_server_that_hangs_has_the_request_and_lets_go_at_its_end() {
        let server = GitHttpServer::start(HttpOptions::hang());
        let directory = tempfile::tempdir().unwrap();
        let arguments = ["ls-remote", &server.url("bare.git")];
        let client = GitProgram::new()
            .command(directory.path(), &arguments)
            .spawn()
            .unwrap();
        server.wait_for_connections(1);
        drop(server);
        let output = client.wait_with_output().unwrap();
        assert_ne!(output.status.code(), Some(0));
    }

    #[test]
    fn a_server_that_stalls_sends_the_beginning_and_later_all() {
        let (directory, commit) = served();
        let options = HttpOptions::serve(directory.path()).stalling_after(20);
        let server = GitHttpServer::start(options);
        let mut client = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        let path = "/bare.git/info/refs?service=git-upload-pack";
        write!(client, "GET {path} HTTP/1.1\r\n\r\n").unwrap();
        let mut reader = BufReader::new(&client);
        header_lines(&mut reader).unwrap();
        let mut body = [0; 20];
        reader.read_exact(&mut body).unwrap();
        assert_eq!(&body, b"001e# service=git-up");
        let limit = std::time::Duration::from_millis(50);
        client.set_read_timeout(Some(limit)).unwrap();
        let more = client.read(&mut [0]).unwrap_err();
        assert!(matches!(
            more.kind(),
            io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut
        ));
        server.answer_in_full();
        assert_eq!(clone(&server.url("bare.git")), commit);
    }

    #[test]
    fn a_body_in_chunks_is_put_together() {
        let check = |input: &str, expected: Option<&str>| {
            let body = chunks(&mut input.as_bytes()).ok();
            assert_eq!(body.as_deref(), expected.map(str::as_bytes));
        };
        check("0\r\n\r\n", Some(""));
        check(
            "3\r\nabc\r\nA;x=y\r\n0123456789\r\n0\r\n\r\n",
            Some("abc0123456789"),
        );
        check("x\r\n", None);
    }

    #[test]
    fn a_compressed_request_is_understood() {
        let (directory, commit) = served();
        let server = GitHttpServer::start(HttpOptions::serve(directory.path()));
        let client = GitRepository::new(&directory.path().join("client"));
        // What a client has is a long list, which git compresses above 1024 bytes.
        let commits = (0..60).map(|second| {
            format!(
                "commit refs/heads/main\ncommitter C <c@example.invalid> {second} +0000\ndata 0\n\n"
            )
        });
        let commits: String = commits.collect();
        let git = GitProgram::new();
        let mut import = git.command(client.path(), &["fast-import", "--quiet"]);
        crate::output_of(&mut import, commits.as_bytes());
        let arguments = ["fetch", "--quiet", &server.url("source"), "main:got"];
        let trace = directory.path().join("trace");
        let mut fetch = git.command(client.path(), &arguments);
        crate::output_of(fetch.env("GIT_TRACE_CURL", &trace), b"");
        let trace = std::fs::read_to_string(trace).unwrap();
        assert!(trace.contains("Content-Encoding: gzip"), "{trace}");
        assert_eq!(client.git(&["rev-parse", "got"]), commit);
    }

    #[test]
    fn a_request_in_chunks_is_understood() {
        let (directory, commit) = served();
        let server = GitHttpServer::start(HttpOptions::serve(directory.path()));
        let mut client = TcpStream::connect(("127.0.0.1", server.port())).unwrap();
        write!(
            client,
            "POST /source/git-upload-pack HTTP/1.1\r\nGit-Protocol: version=2\r\n\
             Content-Type: application/x-git-upload-pack-request\r\n\
             Transfer-Encoding: chunked\r\n\r\n\
             8\r\n0013comm\r\nB\r\nand=ls-refs\r\n4\r\n0000\r\n0\r\n\r\n"
        )
        .unwrap();
        let mut answer = String::new();
        client.read_to_string(&mut answer).unwrap();
        assert!(
            answer.contains(&format!("{commit} refs/heads/main")),
            "{answer}"
        );
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn nothing_is_left_of_a_server_that_ends_in_the_middle_of_an_answer() {
        let directory = tempfile::tempdir().unwrap();
        let repository = GitRepository::new(&directory.path().join("source"));
        // More than the sockets and pipes between take, and nothing that can be compressed.
        let mut state = 1_u64;
        let noise = std::iter::repeat_with(|| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 56) as u8
        });
        repository.write("noise", noise.take(24 << 20).collect::<Vec<u8>>(), false);
        let commit = repository.commit("first");
        let server = GitHttpServer::start(HttpOptions::serve(directory.path()));
        let port = server.port();
        let body = format!("0011command=fetch00010032want {commit}\n0009done\n0000");
        let mut client = TcpStream::connect(("127.0.0.1", port)).unwrap();
        let length = body.len();
        write!(
            client,
            "POST /source/git-upload-pack HTTP/1.1\r\nGit-Protocol: version=2\r\n\
             Content-Type: application/x-git-upload-pack-request\r\n\
             Content-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut beginning = [0; 15];
        client.read_exact(&mut beginning).unwrap();
        assert_eq!(&beginning, b"HTTP/1.1 200 OK");
        let word = directory.path().to_str().unwrap();
        crate::server::tests::check_end(server, port, word);
    }
}
