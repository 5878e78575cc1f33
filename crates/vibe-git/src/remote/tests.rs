//! Remotes against git's own servers on loopback ports.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::path::PathBuf;
use std::sync::Mutex;
use std::time::Instant;

use vibe_testkit::{GitDaemon, GitHttpServer, GitRepository, HttpOptions, SshServer, Wants};

use super::*;
use crate::cache::{CachedRepository, GitCache, RemovedRepositories};
use crate::database::TreeLimits;
use crate::testing::World;

/// A cache and everything that [`RemoteOptions`] wants.
struct Setting {
    world: World,
    environment: BTreeMap<OsString, OsString>,
    cancel: Cancellation,
    holder: Holder,
    offline: bool,
    credential: Option<Credential>,
    silence: Duration,
    received: Mutex<u64>,
    told: Mutex<Vec<Holder>>,
}

impl Setting {
    fn new() -> Self {
        let world = World::new();
        let environment = world.environment();
        Self {
            world,
            environment,
            cancel: Cancellation::new(),
            holder: Holder {
                pid: std::process::id(),
                command: "vibe install".to_owned(),
            },
            offline: false,
            credential: None,
            silence: SILENCE,
            received: Mutex::new(0),
            told: Mutex::default(),
        }
    }

    fn cache(&self) -> PathBuf {
        self.world.path("cache")
    }

    /// Where the repositories are that servers show.
    fn served(&self) -> PathBuf {
        self.world.path("served")
    }

    fn source(&self) -> GitRepository {
        GitRepository::new(&self.served().join("source"))
    }

    fn with<T>(&self, act: impl FnOnce(&Remotes<'_>) -> T) -> T {
        let cache = self.cache();
        let base = self.world.path("");
        let credential = |_: &RemoteUrl| self.credential.clone();
        let waiting = |holder: &Holder| self.told.lock().unwrap().push(holder.clone());
        let progress = |_: &RemoteUrl, bytes| *self.received.lock().unwrap() = bytes;
        let mut remotes = Remotes::new(RemoteOptions {
            cache: &cache,
            base: &base,
            environment: &self.environment,
            cancel: &self.cancel,
            holder: &self.holder,
            offline: self.offline,
            credential: &credential,
            waiting: &waiting,
            progress: &progress,
        });
        remotes.silence = self.silence;
        act(&remotes)
    }

    fn fetch(&self, url: &str, wanted: Wanted<'_>) -> Result<(Database, CommitId), GitError> {
        let url = RemoteUrl::parse(url).unwrap();
        self.with(|remotes| remotes.fetch(&url, wanted))
    }

    fn refs(&self, url: &str) -> Result<Refs, GitError> {
        let url = RemoteUrl::parse(url).unwrap();
        self.with(|remotes| remotes.refs(&url))
    }

    /// Fetches and reads `a.md`.
    fn content(&self, url: &str, wanted: Wanted<'_>) -> String {
        let (database, commit) = self.fetch(url, wanted).unwrap();
        let bytes = database.blob_at(&commit, "a.md", 1_000_000).unwrap();
        String::from_utf8(bytes.unwrap()).unwrap()
    }

    /// The directory of the only cache repository.
    fn only_cache(&self) -> PathBuf {
        let entries = std::fs::read_dir(self.cache()).unwrap();
        let paths = entries.map(|entry| entry.unwrap().path());
        let mut caches: Vec<_> = paths.filter(|path| path.is_dir()).collect();
        assert_eq!(caches.len(), 1, "{caches:?}");
        caches.remove(0)
    }
}

fn committed(repository: &GitRepository, content: &str) -> CommitId {
    repository.write("a.md", content, false);
    repository.commit("work").parse().unwrap()
}

#[test]
fn names_of_a_remote_are_listed_as_they_are_of_a_local_one() {
    let setting = Setting::new();
    let source = setting.source();
    let first = committed(&source, "one");
    source.tag("v1");
    source.annotated_tag("v1-annotated");
    source.git(&["branch", "topic/x"]);
    let second = committed(&source, "two");
    let expected = Refs {
        tags: BTreeMap::from([("v1".to_owned(), first), ("v1-annotated".to_owned(), first)]),
        branches: BTreeMap::from([("main".to_owned(), second), ("topic/x".to_owned(), first)]),
        default_branch: Some("main".to_owned()),
        head: Some(second),
    };
    let daemon = GitDaemon::start(&setting.served());
    let new = GitHttpServer::start(HttpOptions::serve(&setting.served()));
    let old = GitHttpServer::start(HttpOptions::serve(&setting.served()).old_protocol());
    for url in [
        source.file_url(),
        "served/source".to_owned(),
        daemon.url("source"),
        new.url("source"),
        old.url("source"),
    ] {
        assert_eq!(setting.refs(&url).unwrap(), expected, "{url}");
    }
}

#[test]
fn every_way_to_name_a_commit_finds_it_through_every_transport() {
    let setting = Setting::new();
    let source = setting.source();
    let first = committed(&source, "one");
    source.annotated_tag("v1");
    source.git(&["branch", "topic/x"]);
    let second = committed(&source, "two");
    let daemon = GitDaemon::start(&setting.served());
    let new = GitHttpServer::start(HttpOptions::serve(&setting.served()));
    let old = GitHttpServer::start(HttpOptions::serve(&setting.served()).old_protocol());
    let (full, short) = (first.to_string(), second.to_string()[..9].to_owned());
    for url in [
        source.file_url(),
        daemon.url("source"),
        new.url("source"),
        old.url("source"),
    ] {
        for (wanted, expected) in [
            (Wanted::Tag("v1"), first),
            (Wanted::Branch("topic/x"), first),
            (Wanted::Branch("main"), second),
            (Wanted::Revision("v1"), first),
            (Wanted::Revision("main"), second),
            (Wanted::Revision(&full), first),
            (Wanted::Revision(&short), second),
            (Wanted::Commit(first), first),
            (Wanted::Default, second),
        ] {
            // Each with nothing in the cache.
            let _ = std::fs::remove_dir_all(setting.cache());
            let (database, commit) = setting.fetch(&url, wanted).unwrap();
            assert_eq!(commit, expected, "{url} {wanted:?}");
            assert!(database.is_ancestor(&first, &commit).unwrap());
            let limits = TreeLimits {
                entries: 9,
                depth: 9,
            };
            assert_eq!(database.entries(&commit, None, limits).unwrap().len(), 1);
        }
    }
    assert!(*setting.received.lock().unwrap() > 0);
}

#[test]
fn what_is_not_there_is_named_with_its_repository() {
    let setting = Setting::new();
    let source = setting.source();
    committed(&source, "one");
    let daemon = GitDaemon::start(&setting.served());
    let absent: CommitId = "1234567890123456789012345678901234567890".parse().unwrap();
    for url in [source.file_url(), daemon.url("source")] {
        for (wanted, name) in [
            (Wanted::Tag("absent"), "absent"),
            (Wanted::Tag("a:b"), "a:b"),
            (Wanted::Branch("absent"), "absent"),
            (Wanted::Branch("*"), "*"),
            (Wanted::Revision("absent"), "absent"),
            (Wanted::Revision("main~1"), "main~1"),
            (Wanted::Revision("12345678"), "12345678"),
            (
                Wanted::Commit(absent),
                "1234567890123456789012345678901234567890",
            ),
        ] {
            let error = setting.fetch(&url, wanted).unwrap_err();
            let is_right = match wanted {
                Wanted::Tag(_) => matches!(error, GitError::NoSuchTag { .. }),
                Wanted::Branch(_) => matches!(error, GitError::NoSuchBranch { .. }),
                Wanted::Revision(_) => matches!(error, GitError::NoSuchRevision { .. }),
                _ => matches!(error, GitError::VanishedCommit { .. }),
            };
            let message = error.to_string();
            assert!(is_right, "{wanted:?}: {error:?}");
            assert!(
                message.contains(name) && message.contains(&url),
                "{message}"
            );
        }
    }
    let empty = GitRepository::new(&setting.served().join("empty"));
    for url in [empty.file_url(), daemon.url("empty")] {
        let error = setting.fetch(&url, Wanted::Default).unwrap_err();
        assert!(
            matches!(error, GitError::NoDefaultBranch { .. }),
            "{error:?}"
        );
    }
}

#[test]
fn a_repository_that_a_server_does_not_have_is_named() {
    let setting = Setting::new();
    std::fs::create_dir(setting.served()).unwrap();
    let daemon = GitDaemon::start(&setting.served());
    let http = GitHttpServer::start(HttpOptions::serve(&setting.served()));
    for url in [daemon.url("absent"), http.url("absent")] {
        for error in [
            setting.refs(&url).unwrap_err(),
            setting.fetch(&url, Wanted::Default).unwrap_err(),
        ] {
            assert!(
                matches!(error, GitError::NoSuchRepository { .. }),
                "{error:?}"
            );
            assert!(error.to_string().contains(&url), "{error}");
        }
        let url = RemoteUrl::parse(&url).unwrap();
        let cached = setting.with(|remotes| remotes.cached(&url));
        assert!(cached.unwrap().is_none());
    }
}

#[test]
fn a_commit_that_is_in_the_cache_needs_no_network() {
    let setting = Setting::new();
    let source = setting.source();
    let first = committed(&source, "one");
    source.tag("v1");
    let daemon = GitDaemon::start(&setting.served());
    let url = daemon.url("source");
    setting.fetch(&url, Wanted::Tag("v1")).unwrap();
    let before = daemon.connections();
    for wanted in [Wanted::Commit(first), Wanted::Revision(&first.to_string())] {
        assert_eq!(setting.fetch(&url, wanted).unwrap().1, first);
    }
    let parsed = RemoteUrl::parse(&url).unwrap();
    let cached = setting.with(|remotes| remotes.cached(&parsed)).unwrap();
    assert!(cached.unwrap().has_commit(&first));
    assert_eq!(daemon.connections(), before);
}

#[test]
fn offline_nothing_is_asked_and_names_mean_what_they_meant_last() {
    let mut setting = Setting::new();
    let source = setting.source();
    let first = committed(&source, "one");
    source.tag("v1");
    let daemon = GitDaemon::start(&setting.served());
    let url = daemon.url("source");
    setting.offline = true;
    for error in [
        setting.fetch(&url, Wanted::Tag("v1")).unwrap_err(),
        setting.refs(&url).unwrap_err(),
    ] {
        assert!(matches!(error, GitError::Offline { .. }), "{error}");
    }
    assert!(!setting.cache().exists());
    assert_eq!(daemon.connections(), 0);
    setting.offline = false;
    for wanted in [Wanted::Tag("v1"), Wanted::Branch("main"), Wanted::Default] {
        setting.fetch(&url, wanted).unwrap();
    }
    committed(&source, "two");
    let before = daemon.connections();
    setting.offline = true;
    for wanted in [
        Wanted::Tag("v1"),
        Wanted::Branch("main"),
        Wanted::Default,
        Wanted::Revision("main"),
        Wanted::Revision(&first.to_string()[..7]),
        Wanted::Commit(first),
    ] {
        assert_eq!(setting.fetch(&url, wanted).unwrap().1, first, "{wanted:?}");
    }
    let error = setting.fetch(&url, Wanted::Branch("other")).unwrap_err();
    assert!(matches!(error, GitError::Offline { .. }), "{error}");
    assert_eq!(daemon.connections(), before);
}

#[test]
fn a_branch_that_was_rewritten_is_fetched_again_and_the_old_commit_stays() {
    // cargo #6795
    let setting = Setting::new();
    let source = setting.source();
    committed(&source, "base");
    let old = committed(&source, "old");
    let daemon = GitDaemon::start(&setting.served());
    let url = daemon.url("source");
    assert_eq!(setting.fetch(&url, Wanted::Branch("main")).unwrap().1, old);
    source.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    let new = committed(&source, "new");
    let (database, commit) = setting.fetch(&url, Wanted::Branch("main")).unwrap();
    assert_eq!(commit, new);
    assert!(!database.is_ancestor(&old, &new).unwrap());
    assert_eq!(setting.content(&url, Wanted::Commit(old)), "old");
}

#[test]
fn a_branch_that_becomes_a_directory_of_branches_is_no_obstacle() {
    let setting = Setting::new();
    let source = setting.source();
    committed(&source, "one");
    source.git(&["branch", "topic"]);
    let daemon = GitDaemon::start(&setting.served());
    let url = daemon.url("source");
    setting.fetch(&url, Wanted::Branch("topic")).unwrap();
    source.git(&["branch", "-D", "topic"]);
    source.git(&["branch", "topic/part"]);
    source.git(&["branch", "Topic/part"]);
    for name in ["topic/part", "Topic/part"] {
        setting.fetch(&url, Wanted::Branch(name)).unwrap();
    }
}

#[test]
fn a_server_that_refuses_ids_is_searched_for_the_commit() {
    let setting = Setting::new();
    let source = setting.source();
    let first = committed(&source, "one");
    let gone = committed(&source, "gone");
    source.git(&["reset", "--quiet", "--hard", "HEAD~1"]);
    source.annotated_tag("v1");
    committed(&source, "two");
    source.bare_at(&setting.served().join("bare.git"), Wants::Tips);
    let options = HttpOptions::serve(&setting.served()).old_protocol();
    let server = GitHttpServer::start(options);
    let url = server.url("bare.git");
    assert_eq!(setting.content(&url, Wanted::Commit(first)), "one");
    let error = setting.fetch(&url, Wanted::Commit(gone)).unwrap_err();
    assert!(
        matches!(error, GitError::VanishedCommit { .. }),
        "{error:?}"
    );
    let message = error.to_string();
    assert!(
        message.contains(&url) && message.contains(&gone.to_string()),
        "{message}"
    );
}

#[test]
fn only_what_is_new_is_transferred() {
    let setting = Setting::new();
    let source = setting.source();
    let noise: String = (0..40_000_u32)
        .map(|n| format!("{:x}", n.wrapping_mul(2_654_435_761)))
        .collect();
    source.write("noise", &noise, false);
    committed(&source, "one");
    let daemon = GitDaemon::start(&setting.served());
    let url = daemon.url("source");
    setting.fetch(&url, Wanted::Branch("main")).unwrap();
    let first = *setting.received.lock().unwrap();
    let second = committed(&source, "two");
    assert_eq!(
        setting.fetch(&url, Wanted::Branch("main")).unwrap().1,
        second
    );
    let again = *setting.received.lock().unwrap();
    assert!(first > 50_000 && again < 5_000, "{first} {again}");
}

#[test]
fn a_damaged_cache_is_made_anew_and_a_useless_attempt_costs_it_nothing() {
    let setting = Setting::new();
    let source = setting.source();
    let commit = committed(&source, "one");
    let daemon = GitDaemon::start(&setting.served());
    let url = daemon.url("source");
    let truncate_packs = |cache: PathBuf| {
        for entry in std::fs::read_dir(cache.join("objects/pack")).unwrap() {
            let path = entry.unwrap().path();
            let bytes = std::fs::read(&path).unwrap();
            std::fs::remove_file(&path).unwrap();
            std::fs::write(&path, &bytes[..bytes.len() / 2]).unwrap();
        }
    };
    let remove_head = |cache: PathBuf| std::fs::remove_file(cache.join("HEAD")).unwrap();
    let break_config = |cache: PathBuf| {
        let config = cache.join("config");
        std::fs::remove_file(&config).unwrap();
        std::fs::write(config, "[core]\n\trepositoryformatversion = 99\n").unwrap();
    };
    let empty = |cache: PathBuf| {
        std::fs::remove_dir_all(&cache).unwrap();
        std::fs::create_dir(cache).unwrap();
    };
    let damages: [&dyn Fn(PathBuf); 4] = [&truncate_packs, &remove_head, &break_config, &empty];
    for damage in damages {
        for wanted in [Wanted::Branch("main"), Wanted::Commit(commit)] {
            setting.fetch(&url, wanted).unwrap();
            damage(setting.only_cache());
            assert_eq!(setting.content(&url, wanted), "one");
            setting.only_cache();
        }
    }
    let absent: CommitId = "1234567890123456789012345678901234567890".parse().unwrap();
    setting.fetch(&url, Wanted::Commit(absent)).unwrap_err();
    let before = daemon.connections();
    assert_eq!(setting.content(&url, Wanted::Commit(commit)), "one");
    assert_eq!(daemon.connections(), before);
}

#[test]
fn what_a_killed_transfer_left_is_no_obstacle_and_goes_away() {
    let setting = Setting::new();
    let source = setting.source();
    let commit = committed(&source, "one");
    let daemon = GitDaemon::start(&setting.served());
    let url = daemon.url("source");
    setting.fetch(&url, Wanted::Branch("main")).unwrap();
    let cache = setting.only_cache();
    let name = kept_name("branch", "main");
    let lock = cache.join(format!("{name}.lock"));
    let pack = cache.join("objects/pack/tmp_unfinished");
    let packed = cache.join("packed-refs.lock");
    for path in [&lock, &pack, &packed] {
        std::fs::write(path, "half").unwrap();
    }
    let staging = cache.with_extension("staging");
    std::fs::create_dir_all(staging.join("objects")).unwrap();
    let second = committed(&source, "two");
    assert_ne!(commit, second);
    assert_eq!(
        setting.fetch(&url, Wanted::Branch("main")).unwrap().1,
        second
    );
    for path in [&lock, &pack, &packed] {
        assert!(!path.exists(), "{path:?}");
    }
    std::fs::remove_dir_all(&cache).unwrap();
    assert_eq!(
        setting.fetch(&url, Wanted::Branch("main")).unwrap().1,
        second
    );
    assert!(!staging.exists());
}

#[test]
fn several_at_once_share_one_cache() {
    let setting = Setting::new();
    let source = setting.source();
    let first = committed(&source, "one");
    source.tag("v1");
    let second = committed(&source, "two");
    let daemon = GitDaemon::start(&setting.served());
    let url = RemoteUrl::parse(&daemon.url("source")).unwrap();
    setting.with(|remotes| {
        std::thread::scope(|scope| {
            for (wanted, expected) in [
                (Wanted::Tag("v1"), first),
                (Wanted::Branch("main"), second),
                (Wanted::Commit(first), first),
                (Wanted::Default, second),
            ] {
                let url = &url;
                scope.spawn(move || assert_eq!(remotes.fetch(url, wanted).unwrap().1, expected));
            }
        });
    });
    setting.only_cache();
}

#[test]
fn a_waiter_names_the_holder_once_and_can_be_interrupted() {
    let setting = Setting::new();
    let url = RemoteUrl::parse("git://127.0.0.1:1/x").unwrap();
    std::fs::create_dir(setting.cache()).unwrap();
    let holder = Holder {
        pid: 41,
        command: "vibe update".to_owned(),
    };
    setting.with(|remotes| {
        let lock = remotes.path_of(&url).with_extension("lock");
        let held = FileLock::try_exclusive(&lock, &holder).unwrap();
        assert!(matches!(held, LockOutcome::Held(_)));
        std::thread::scope(|scope| {
            scope.spawn(|| {
                while setting.told.lock().unwrap().is_empty() {
                    std::thread::yield_now();
                }
                setting.cancel.interrupt();
            });
            let error = remotes.fetch(&url, Wanted::Default).unwrap_err();
            assert!(matches!(error, GitError::Interrupted { .. }), "{error}");
        });
    });
    assert_eq!(*setting.told.lock().unwrap(), [holder]);
}

#[test]
fn a_login_is_taken_from_the_caller_the_url_or_a_helper_and_stored_nowhere() {
    let mut setting = Setting::new();
    let source = setting.source();
    committed(&source, "one");
    let options = HttpOptions::serve(&setting.served()).login("user", "s3cret");
    let server = GitHttpServer::start(options);
    let url = server.url("source");
    let with_login = url.replace("http://", "http://user:s3cret@");
    assert_eq!(setting.content(&with_login, Wanted::Default), "one");
    std::fs::remove_dir_all(setting.cache()).unwrap();
    setting.credential = Some(Credential {
        user: "user".to_owned(),
        secret: "s3cret".to_owned(),
    });
    assert_eq!(setting.content(&url, Wanted::Default), "one");
    std::fs::remove_dir_all(setting.cache()).unwrap();
    setting.credential = None;
    let script = "!f() { echo username=user; echo password=s3cret; }; f";
    setting.world.configure(&format!(
        "[credential]
	helper = {script:?}
"
    ));
    assert_eq!(setting.content(&url, Wanted::Default), "one");
    for entry in vibe_fs::walk(&setting.cache()) {
        let path = setting.cache().join(entry.unwrap().relative);
        let bytes = std::fs::read(&path).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes).into_owned();
        assert!(!text.contains("s3cret"), "{path:?}");
    }
}

#[test]
fn without_or_with_a_wrong_login_the_host_is_named_soon_and_the_secret_is_not() {
    let mut setting = Setting::new();
    let source = setting.source();
    committed(&source, "one");
    let options = HttpOptions::serve(&setting.served()).login("user", "right");
    let server = GitHttpServer::start(options);
    let url = server.url("source");
    let host = format!("127.0.0.1:{}", server.port());
    let started = Instant::now();
    let error = setting.fetch(&url, Wanted::Default).unwrap_err();
    assert!(
        matches!(error, GitError::AuthenticationRequired { .. }),
        "{error:?}"
    );
    assert!(error.to_string().contains(&host), "{error}");
    assert!(started.elapsed() < Duration::from_secs(10));
    setting.credential = Some(Credential {
        user: "user".to_owned(),
        secret: "wr0ng".to_owned(),
    });
    let error = setting.refs(&url).unwrap_err();
    assert!(
        matches!(error, GitError::CredentialsRefused { .. }),
        "{error:?}"
    );
    let (shown, debug) = (error.to_string(), format!("{error:?}"));
    assert!(shown.contains(&host) && !debug.contains("wr0ng"), "{debug}");
}

#[test]
fn a_redirect_to_another_host_is_refused_naming_both_and_gets_no_login() {
    let mut setting = Setting::new();
    let source = setting.source();
    committed(&source, "one");
    let other = GitHttpServer::start(HttpOptions::serve(&setting.served()));
    let server = GitHttpServer::start(HttpOptions::redirect(&other.root_url()));
    setting.credential = Some(Credential {
        user: "user".to_owned(),
        secret: "s3cret".to_owned(),
    });
    let error = setting
        .fetch(&server.url("source"), Wanted::Default)
        .unwrap_err();
    assert!(
        matches!(error, GitError::RedirectedElsewhere { .. }),
        "{error:?}"
    );
    let message = error.to_string();
    for port in [server.port(), other.port()] {
        assert!(message.contains(&format!("127.0.0.1:{port}")), "{message}");
    }
    assert_eq!(other.connections(), 0);
}

#[test]
fn a_redirect_on_the_same_host_is_followed_with_the_login() {
    let mut setting = Setting::new();
    let source = setting.source();
    committed(&source, "one");
    let options = HttpOptions::serve(&setting.served()).login("user", "s3cret");
    let server = GitHttpServer::start(options);
    let front = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/old", front.local_addr().unwrap());
    setting.credential = Some(Credential {
        user: "user".to_owned(),
        secret: "s3cret".to_owned(),
    });
    std::thread::scope(|scope| {
        // Three requests, of which the first is made twice.
        let behind = server.port();
        let serving = scope.spawn(move || (0..4).for_each(|_| move_old(&front, behind)));
        assert_eq!(setting.content(&url, Wanted::Default), "one");
        serving.join().unwrap();
    });
}

/// Sends a request for `/old` to `/source`, and passes any other on to the port `behind`.
fn move_old(front: &TcpListener, behind: u16) {
    let (mut client, _) = front.accept().unwrap();
    let mut reader = BufReader::new(client.try_clone().unwrap());
    let mut first = String::new();
    reader.read_line(&mut first).unwrap();
    let path = first.split(' ').nth(1).unwrap();
    if let Some(rest) = path.strip_prefix("/old") {
        let head = "HTTP/1.1 301 Moved\r\nContent-Length: 0\r\nConnection: close\r\n";
        write!(client, "{head}Location: /source{rest}\r\n\r\n").unwrap();
        let _ = client.shutdown(Shutdown::Write);
        let _ = std::io::copy(&mut reader, &mut std::io::sink());
        return;
    }
    let mut server = TcpStream::connect(("127.0.0.1", behind)).unwrap();
    server.write_all(first.as_bytes()).unwrap();
    let mut to_server = server.try_clone().unwrap();
    std::thread::scope(|scope| {
        scope.spawn(move || {
            // The client leaves when it has its answer.
            let _ = std::io::copy(&mut reader, &mut to_server);
        });
        let mut answer = Vec::new();
        server.read_to_end(&mut answer).unwrap();
        client.write_all(&answer).unwrap();
        client.shutdown(Shutdown::Both).unwrap();
    });
}

#[test]
fn what_a_server_says_of_a_failure_is_shown_without_effect() {
    let setting = Setting::new();
    let server = GitHttpServer::start(HttpOptions::refuse(b"\x1b[2Jno \xff entry"));
    for error in [
        setting.refs(&server.url("x")).unwrap_err(),
        setting
            .fetch(&server.url("x"), Wanted::Default)
            .unwrap_err(),
    ] {
        let cause = std::error::Error::source(&error).unwrap().to_string();
        assert!(cause.contains("entry"), "{cause}");
        assert!(!cause.contains('\u{1b}'), "{cause:?}");
    }
}

#[test]
fn a_server_that_says_nothing_is_given_up_or_interrupted() {
    let mut setting = Setting::new();
    let server = GitHttpServer::start(HttpOptions::hang());
    let plain = server.url("x");
    let daemon = plain.replace("http://", "git://");
    for url in [&plain, &daemon] {
        setting.silence = Duration::from_millis(50);
        let error = setting.refs(url).unwrap_err();
        assert!(matches!(error, GitError::Stalled { .. }), "{error:?}");
        setting.silence = SILENCE;
        let before = server.connections();
        std::thread::scope(|scope| {
            let cancel = setting.cancel.clone();
            let server = &server;
            scope.spawn(move || {
                server.wait_for_connections(before + 1);
                cancel.interrupt();
            });
            let started = Instant::now();
            let error = setting.fetch(url, Wanted::Default).unwrap_err();
            assert!(matches!(error, GitError::Interrupted { .. }), "{error:?}");
            assert!(started.elapsed() < Duration::from_secs(10));
        });
        setting.cancel = Cancellation::new();
    }
}

#[test]
fn a_host_that_does_not_answer_is_named() {
    let setting = Setting::new();
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = free.local_addr().unwrap();
    drop(free);
    for scheme in ["http", "https", "git"] {
        let url = format!("{scheme}://{address}/x");
        let error = setting.refs(&url).unwrap_err();
        assert!(
            matches!(error, GitError::HostUnreachable { .. }),
            "{error:?}"
        );
        assert!(error.to_string().contains(&address.to_string()), "{error}");
    }
}

#[test]
fn ssh_is_the_users_own_and_its_words_are_shown() {
    let mut setting = Setting::new();
    let source = setting.source();
    let commit = committed(&source, "one");
    let server = match SshServer::start() {
        Ok(server) => server,
        Err(why) => return eprintln!("not tested: {why}"),
    };
    let mut path = server.client_directory().into_os_string();
    path.push(":");
    path.push(&setting.environment[std::ffi::OsStr::new("PATH")]);
    setting.environment.insert("PATH".into(), path);
    for url in [server.url(source.path()), server.short_url(source.path())] {
        assert_eq!(setting.refs(&url).unwrap().head, Some(commit));
        assert_eq!(setting.content(&url, Wanted::Branch("main")), "one");
    }
    let absent = server.url(&setting.world.path("absent"));
    let error = setting.refs(&absent).unwrap_err();
    assert!(
        matches!(error, GitError::NoSuchRepository { .. }),
        "{error:?}"
    );
    server.forget_login();
    let error = setting.refs(&server.url(source.path())).unwrap_err();
    assert!(matches!(error, GitError::Ssh { .. }), "{error:?}");
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("Permission denied"), "{cause}");
    server.forget_host();
    let error = setting.refs(&server.url(source.path())).unwrap_err();
    let cause = std::error::Error::source(&error).unwrap().to_string();
    assert!(cause.contains("Host key verification failed"), "{cause}");
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_ends_ssh_with_all_that_it_started() {
    let mut setting = Setting::new();
    let (started, whole) = (setting.world.path("started"), setting.world.path("whole"));
    let script = format!(
        "sleep 1000 & echo $! $$ > {0}; mv {0} {1}; wait; :",
        started.display(),
        whole.display()
    );
    setting
        .environment
        .insert("GIT_SSH_COMMAND".into(), script.into());
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !whole.exists() {
                std::thread::yield_now();
            }
            setting.cancel.interrupt();
        });
        let error = setting.refs("git@host.invalid:x").unwrap_err();
        assert!(matches!(error, GitError::Interrupted { .. }), "{error:?}");
    });
    let processes = std::fs::read_to_string(whole).unwrap();
    assert_eq!(processes.split_whitespace().count(), 2);
    for process in processes.split_whitespace() {
        let status = PathBuf::from(format!("/proc/{process}/stat"));
        // One that nobody has waited for yet has ended all the same.
        let is_running =
            || std::fs::read_to_string(&status).is_ok_and(|stat| !stat.contains(") Z"));
        let until = Instant::now() + Duration::from_secs(10);
        while is_running() && Instant::now() < until {
            std::thread::yield_now();
        }
        assert!(!is_running(), "{process}");
    }
}

#[test]
fn a_cache_is_named_for_people_and_kept_apart_by_its_url() {
    let setting = Setting::new();
    setting.with(|remotes| {
        let name = |url: &str| {
            let path = remotes.path_of(&RemoteUrl::parse(url).unwrap());
            path.file_name().unwrap().to_str().unwrap().to_owned()
        };
        let kit = name("https://host/them/kit.git");
        assert!(kit.starts_with("kit-") && kit.len() == 4 + 32, "{kit}");
        assert_eq!(name("https://user:secret@host/them/kit.git"), kit);
        assert_ne!(name("https://other/them/kit.git"), kit);
        assert!(name("git@host:kit").starts_with("kit-"));
        assert!(!name("https://host/a/..%2f..").contains(['.', '/', '%']));
    });
}

#[test]
fn a_cache_is_renewed_only_by_a_fetch_that_succeeds() {
    let setting = Setting::new();
    let source = setting.source();
    committed(&source, "one");
    let daemon = GitDaemon::start(&setting.served());
    let url = RemoteUrl::parse(&daemon.url("source")).unwrap();
    let local = RemoteUrl::parse(&source.file_url()).unwrap();
    let renew = |url: &RemoteUrl, wanted| setting.with(|remotes| remotes.renew(url, wanted));
    let (_, old) = setting.fetch(url.as_str(), Wanted::Default).unwrap();
    let new = committed(&source, "two");
    let has = |commit: &CommitId| {
        let cached = setting.with(|remotes| remotes.cached(&url)).unwrap();
        cached.unwrap().has_commit(commit)
    };
    assert!(!renew(&url, Wanted::Branch("none")).unwrap());
    assert!(!renew(&local, Wanted::Default).unwrap());
    assert!(has(&old) && !has(&new));
    assert!(renew(&url, Wanted::Commit(new)).unwrap());
    assert!(has(&new));
    drop(daemon);
    assert!(!renew(&url, Wanted::Commit(new)).unwrap());
    assert!(has(&new));
}

const DAY: Duration = Duration::from_hours(24);

impl Setting {
    fn cached(&self) -> Vec<CachedRepository> {
        GitCache::new(self.cache()).repositories().unwrap()
    }

    /// Removes what was not used for so many days; `None` where the cache is in use.
    fn remove_unused(&self, days: u32) -> Option<RemovedRepositories> {
        let cache = GitCache::new(self.cache());
        let removal = cache.begin_removal(&self.holder).unwrap()?;
        Some(removal.remove_unused(DAY * days, &self.cancel).unwrap())
    }

    /// What lies in the directory of the cache.
    fn names(&self) -> Vec<String> {
        let Ok(entries) = std::fs::read_dir(self.cache()) else {
            return Vec::new();
        };
        let name = |entry: std::fs::DirEntry| entry.file_name().into_string().unwrap();
        let mut names: Vec<String> = entries.map(|entry| name(entry.unwrap())).collect();
        names.sort();
        names
    }
}

/// Makes the last use of the repository at `path` so many days old.
fn make_unused(path: &Path, days: u32) {
    let file = std::fs::File::options().write(true).open(path.join("HEAD"));
    let time = std::time::SystemTime::now() - DAY * days;
    file.unwrap().set_modified(time).unwrap();
}

#[test]
fn a_cache_is_listed_with_the_url_size_and_last_use_of_each_repository() {
    let setting = Setting::new();
    assert_eq!(setting.cached(), []);
    assert_eq!(
        setting.remove_unused(0),
        Some(RemovedRepositories::default())
    );
    assert!(!setting.cache().exists());
    let source = setting.source();
    let content: String = (0..2_000_u32).map(|n| format!("{}", n.pow(2))).collect();
    let commit = committed(&source, &content);
    let daemon = GitDaemon::start(&setting.served());
    let url = daemon.url("source");
    setting.fetch(&url, Wanted::Commit(commit)).unwrap();
    let cached = setting.cached();
    assert_eq!(cached.len(), 1);
    assert!(cached[0].name.starts_with("source-"), "{cached:?}");
    assert_eq!(cached[0].url.as_deref(), Some(url.as_str()));
    assert!(cached[0].bytes > 2_000, "{cached:?}");
    let age = |used: std::time::SystemTime| used.elapsed().unwrap_or_default();
    assert!(age(cached[0].used) < DAY);
    make_unused(&setting.only_cache(), 40);
    assert!(age(setting.cached()[0].used) > DAY * 39);
    std::fs::remove_file(setting.only_cache().join("description")).unwrap();
    assert_eq!(setting.cached()[0].url, None);
}

#[test]
fn a_repository_is_removed_when_nobody_has_used_it_for_long_and_nobody_reads() {
    let setting = Setting::new();
    let source = setting.source();
    let commit = committed(&source, "one");
    let daemon = GitDaemon::start(&setting.served());
    let url = daemon.url("source");
    let wanted = Wanted::Commit(commit);
    drop(setting.fetch(&url, wanted).unwrap());
    assert_eq!(setting.remove_unused(30).unwrap().kept, 1);
    make_unused(&setting.only_cache(), 31);
    let (database, _) = setting.fetch(&url, wanted).unwrap();
    assert_eq!(setting.remove_unused(0), None, "it is read");
    let content = database.blob_at(&commit, "a.md", 99).unwrap();
    assert_eq!(content.unwrap(), b"one");
    drop(database);
    let kept = setting.remove_unused(30).unwrap();
    assert_eq!((kept.kept, kept.removed.len()), (1, 0), "a use was noted");
    make_unused(&setting.only_cache(), 31);
    let removed = setting.remove_unused(30).unwrap();
    assert_eq!(removed.removed[0].url.as_deref(), Some(url.as_str()));
    assert_eq!((removed.kept, removed.in_use), (0, false));
    assert_eq!(setting.names(), ["use.lock"]);
    assert_eq!(setting.content(&url, wanted), "one");
}

#[test]
fn a_transfer_that_goes_on_keeps_its_repository_and_what_was_left_goes() {
    let setting = Setting::new();
    let source = setting.source();
    committed(&source, "one");
    let daemon = GitDaemon::start(&setting.served());
    let url = daemon.url("source");
    drop(setting.fetch(&url, Wanted::Default).unwrap());
    let path = setting.only_cache();
    let lock = FileLock::try_exclusive(&path.with_extension("lock"), &setting.holder).unwrap();
    assert!(matches!(lock, LockOutcome::Held(_)));
    let busy = setting.remove_unused(0).unwrap();
    assert!(busy.in_use && busy.removed.is_empty() && path.is_dir());
    drop(lock);
    for extension in ["new", "staging", "gone"] {
        let left = path.with_extension(extension);
        std::fs::create_dir(&left).unwrap();
        std::fs::write(left.join("file"), "12345").unwrap();
    }
    setting.cancel.interrupt();
    let interrupted = setting.remove_unused(0).unwrap();
    assert!(interrupted.interrupted && interrupted.leftovers == 0);
    assert_eq!(setting.cached().len(), 1);
    let fresh = Cancellation::new();
    let cache = GitCache::new(setting.cache());
    let removal = cache.begin_removal(&setting.holder).unwrap().unwrap();
    let outcome = removal.remove_unused(DAY, &fresh).unwrap();
    assert_eq!((outcome.leftovers, outcome.leftover_bytes), (3, 15));
    assert_eq!((outcome.kept, outcome.removed.len()), (1, 0));
}

#[test]
fn all_that_is_ours_goes_and_what_is_not_stays() {
    let setting = Setting::new();
    let source = setting.source();
    committed(&source, "one");
    let daemon = GitDaemon::start(&setting.served());
    let url = daemon.url("source");
    let clean = || {
        drop(setting.fetch(&url, Wanted::Default).unwrap());
        let cache = GitCache::new(setting.cache());
        let removal = cache.begin_removal(&setting.holder).unwrap().unwrap();
        removal.remove_all(&setting.cancel).unwrap()
    };
    assert_eq!(clean().removed.len(), 1);
    assert!(!setting.cache().exists());
    std::fs::create_dir_all(setting.cache().join("mine/objects")).unwrap();
    std::fs::write(setting.cache().join("notes.lock"), "mine").unwrap();
    assert_eq!(clean().removed.len(), 1);
    assert_eq!(setting.names(), ["mine", "notes.lock"]);
}

#[test]
fn repositories_are_removed_beside_runs_that_fetch_and_read() {
    let setting = Setting::new();
    let source = setting.source();
    let commit = committed(&source, "one");
    let daemon = GitDaemon::start(&setting.served());
    let url = daemon.url("source");
    let removed = std::thread::scope(|scope| {
        let run = || {
            for _ in 0..10 {
                assert_eq!(setting.content(&url, Wanted::Commit(commit)), "one");
            }
        };
        let runs = [scope.spawn(run), scope.spawn(run)];
        let mut removed = 0;
        while !runs.iter().all(|run| run.is_finished()) {
            let outcome = setting.remove_unused(0).unwrap_or_default();
            removed += outcome.removed.len();
        }
        removed
    });
    let last = setting.remove_unused(0).unwrap().removed.len();
    assert!(removed + last > 0, "nothing was ever removed");
    assert_eq!(setting.names(), ["use.lock"]);
}
