//! Git repositories behind the servers of the field: what is asked of them, what they may say, and
//! what nobody may see.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::git_support::{
    LINT, files_with, forget_fetched, git_cache, git_command, git_command_in, git_vibe, locked,
    release, require, served,
};
use crate::support::{
    Run, lint, lint_slot, newest_run, outside_state, process_ends, read, run, signal, start, wait,
    wait_until,
};
use vibe_core::hook::Phase;
use vibe_testkit::{GitDaemon, GitHttpServer, GitRepository, HttpOptions, SshServer, Wants, World};

/// The variable with the token for the servers of these tests.
const TOKEN: &str = "VIBE_GIT_TOKEN_127_0_0_1";
/// A secret that occurs nowhere by chance.
const SECRET: &str = "s3cr3t-T0ken-0123456789";

/// A world whose `served/lint` has org.example/lint 1.0.0.
fn world() -> (World, GitRepository) {
    let world = World::new();
    let repository = GitRepository::new(&served(&world).join("lint"));
    release(&repository, "1.0.0");
    (world, repository)
}

/// Requires org.example/lint from `url` at its branch.
fn require_from(world: &World, url: &str) {
    require(
        world,
        &[(LINT, &format!("git = \"{url}\", branch = \"main\""))],
    );
}

/// Asserts that an install ends with `code`, says each of `parts`, and leaves the project as it is.
#[track_caller]
fn refused(world: &World, command: &mut Command, code: i32, parts: &[&str]) -> Run {
    let before = outside_state(world);
    let mut run = run(command).expect(code);
    for part in parts {
        run = run.stderr_has(part);
    }
    before.assert_unchanged(&outside_state(world));
    run
}

/// Installs, updates and installs anew from `url`.
#[track_caller]
fn works(world: &World, repository: &GitRepository, url: &str, add: impl Fn(&mut Command)) {
    let vibe = |arguments: &[&str]| {
        let mut command = git_command(world, arguments);
        add(&mut command);
        run(&mut command)
    };
    require_from(world, url);
    vibe(&["install"]).expect(0);
    assert_eq!(locked(world, LINT, "source"), format!("git+{url}"));
    let commit = release(repository, "1.1.0");
    vibe(&["update"]).expect(0).stderr_has("1.0.0 -> 1.1.0");
    assert_eq!(locked(world, LINT, "commit"), commit);
    std::fs::remove_dir_all(world.project().join("vibedeps")).unwrap();
    forget_fetched(world);
    vibe(&["install", "--locked"]).expect(0);
    assert_eq!(read(lint_slot(world, "1.1.0").join("version.md")), "1.1.0");
    vibe(&["verify"]).expect(0);
}

#[test]
fn a_package_comes_through_the_git_protocol() {
    let (world, repository) = world();
    let daemon = GitDaemon::start(&served(&world));
    works(&world, &repository, &daemon.url("lint"), |_| {});
}

#[test]
fn a_package_comes_over_http_in_both_protocols() {
    for old in [false, true] {
        let (world, repository) = world();
        let options = HttpOptions::serve(&served(&world));
        let server = GitHttpServer::start(if old { options.old_protocol() } else { options });
        works(&world, &repository, &server.url("lint"), |_| {});
        assert!(
            server
                .requests()
                .iter()
                .all(|request| !request.has_authorization)
        );
    }
}

#[test]
fn an_old_server_that_gives_no_commit_by_its_id_is_asked_for_its_branches() {
    let (world, repository) = world();
    let bare = served(&world).join("bare.git");
    repository.bare_at(&bare, Wants::Tips);
    let options = HttpOptions::serve(&served(&world)).old_protocol();
    let server = GitHttpServer::start(options);
    require_from(&world, &server.url("bare.git"));
    git_vibe(&world, &["install"]).expect(0);
    let commit = locked(&world, LINT, "commit");
    release(&repository, "1.1.0");
    repository.bare_at(&bare, Wants::Tips);
    std::fs::remove_dir_all(world.project().join("vibedeps")).unwrap();
    forget_fetched(&world);
    git_vibe(&world, &["install", "--locked"]).expect(0);
    assert_eq!(locked(&world, LINT, "commit"), commit);
    assert_eq!(read(lint_slot(&world, "1.0.0").join("version.md")), "1.0.0");
}

#[test]
fn a_package_comes_over_ssh_with_the_users_own_configuration() {
    let server = match SshServer::start() {
        Ok(server) => server,
        Err(reason) => return eprintln!("skipped: {reason}"),
    };
    let (world, repository) = world();
    let path = format!("{}:/usr/bin:/bin", server.client_directory().display());
    let with_ssh = |command: &mut Command| {
        command.env("PATH", &path);
    };
    works(
        &world,
        &repository,
        &server.url(repository.path()),
        with_ssh,
    );
    let (world, repository) = self::world();
    works(
        &world,
        &repository,
        &server.short_url(repository.path()),
        with_ssh,
    );
    // Who is not let in is told what to try, and is asked nothing.
    server.forget_login();
    forget_fetched(&world);
    std::fs::remove_dir_all(world.project().join("vibedeps")).unwrap();
    let mut command = git_command(&world, &["install"]);
    with_ssh(&mut command);
    let host = format!("ssh {}", SshServer::ALIAS);
    refused(&world, &mut command, 1, &[LINT, &host, "Permission denied"]);
}

/// A server that wants the login `user` with [`SECRET`].
fn guarded(world: &World) -> GitHttpServer {
    let options = HttpOptions::serve(&served(world)).login("user", SECRET);
    GitHttpServer::start(options)
}

#[test]
fn a_plain_server_is_asked_only_where_the_user_names_its_host() {
    let (world, _) = world();
    let daemon = GitDaemon::start(&served(&world));
    let server = GitHttpServer::start(HttpOptions::serve(&served(&world)));
    for (url, port) in [
        (daemon.url("lint"), daemon.port()),
        (server.url("lint"), server.port()),
    ] {
        let host = format!("127.0.0.1:{port}");
        require_from(&world, &url);
        let mut plain = crate::support::command(&world, &["install"]);
        refused(
            &world,
            &mut plain,
            2,
            &[LINT, &url, &host, "insecure-hosts", "hint: "],
        );
        let mut other = crate::support::command(&world, &["install"]);
        other.env("VIBE_INSECURE_HOSTS", "127.0.0.1:1,localhost");
        refused(&world, &mut other, 2, &[&host]);
        assert_eq!(daemon.connections() + server.connections(), 0);
    }
    let host = format!("127.0.0.1:{}", daemon.port());
    let config = format!("[git]\ninsecure-hosts = [\"{host}\"]\n");
    std::fs::create_dir_all(world.home().join("vibe")).unwrap();
    std::fs::write(world.home().join("vibe/config.toml"), config).unwrap();
    require_from(&world, &daemon.url("lint"));
    crate::support::vibe(&world, &["install"]).expect(0);
    assert_eq!(server.connections(), 0);
}

#[test]
fn a_server_that_wants_credentials_is_named_at_once_and_nobody_is_asked() {
    let (world, _) = world();
    let server = guarded(&world);
    require_from(&world, &server.url("lint"));
    let asked = world.home().join("asked");
    let askpass = world.home().join("askpass");
    std::fs::write(&askpass, format!("#!/bin/sh\ntouch {}\n", asked.display())).unwrap();
    std::fs::set_permissions(
        &askpass,
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    let host = format!("127.0.0.1:{}", server.port());
    let mut command = git_command(&world, &["install"]);
    command
        .env("GIT_ASKPASS", &askpass)
        .env("SSH_ASKPASS", &askpass)
        .env("DISPLAY", ":0");
    let since = Instant::now();
    let told = refused(
        &world,
        &mut command,
        1,
        &[LINT, &host, "credentials", "hint: "],
    );
    let took = since.elapsed();
    // It takes some milliseconds. Whoever waits for an answer waits for minutes; the bound leaves a
    // crowded machine time to start two programs.
    assert!(took < Duration::from_secs(20), "{took:?}");
    assert!(!asked.exists());
    // The variable that is named is the one that helps.
    let variable = told
        .stderr
        .split_whitespace()
        .find(|word| word.starts_with("VIBE_GIT_TOKEN_"));
    let variable = variable.unwrap_or_else(|| panic!("{}", told.stderr));
    let mut command = git_command(&world, &["install"]);
    run(command.env(variable, format!("user:{SECRET}"))).expect(0);
}

/// `command` on a terminal of its own, whatever is typed there being `typed`.
fn on_a_terminal(command: &Command, log: &Path) -> Command {
    let line: Vec<String> = std::iter::once(command.get_program())
        .chain(command.get_args())
        .map(|word| format!("'{}'", word.to_str().unwrap()))
        .collect();
    let mut script = Command::new("script");
    script
        .args(["--quiet", "--return", "--command", &line.join(" ")])
        .arg(log);
    let variables = command
        .get_envs()
        .filter_map(|(name, value)| Some((name, value?)));
    script
        .current_dir(command.get_current_dir().unwrap())
        .env_clear()
        .envs(variables)
        .env("TERM", "xterm")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    script
}

#[cfg(target_os = "linux")]
#[test]
fn nobody_is_asked_for_credentials_on_a_terminal_either() {
    if Command::new("script").arg("--version").output().is_err() {
        return eprintln!("skipped: there is no `script` on this machine to make a terminal");
    }
    let (world, _) = world();
    let server = guarded(&world);
    require_from(&world, &server.url("lint"));
    let log = world.home().join("terminal");
    let run = run(&mut on_a_terminal(&git_command(&world, &["install"]), &log)).expect(1);
    let shown = read(&log);
    assert!(shown.contains("asks for credentials"), "{shown}");
    for question in ["Username", "Password", "assword for"] {
        assert!(
            !shown.contains(question) && !run.stdout.contains(question),
            "{shown}"
        );
    }
    assert!(
        server
            .requests()
            .iter()
            .all(|request| !request.has_authorization)
    );
}

/// Writes a `.gitconfig` with a credential helper that answers with `secret` and keeps a log.
fn with_helper(world: &World, secret: &str) {
    let script = format!(
        "!f() {{ echo $1 >> $HOME/helper.log; test $1 = get && echo username=user && echo password={secret}; }}; f"
    );
    let config = format!("[credential]\n\thelper = {script:?}\n");
    std::fs::write(world.home().join(".gitconfig"), config).unwrap();
}

#[test]
fn the_credential_helper_of_the_user_is_asked_and_told_what_became_of_it() {
    let (world, repository) = world();
    let server = guarded(&world);
    with_helper(&world, SECRET);
    works(&world, &repository, &server.url("lint"), |_| {});
    let log = crate::support::lines(world.home().join("helper.log"));
    let words: BTreeSet<&str> = log.iter().map(String::as_str).collect();
    assert_eq!(words, BTreeSet::from(["get", "store"]));
    // A wrong one is told from none, and the helper forgets it.
    with_helper(&world, "wrong");
    forget_fetched(&world);
    std::fs::remove_dir_all(world.project().join("vibedeps")).unwrap();
    let host = format!("127.0.0.1:{}", server.port());
    let parts = [LINT, &host, "refused the credentials", "hint: "];
    refused(&world, &mut git_command(&world, &["install"]), 1, &parts);
    let log = crate::support::lines(world.home().join("helper.log"));
    assert_eq!(log.last().map(String::as_str), Some("erase"));
}

#[test]
fn a_wrong_token_is_told_and_not_shown() {
    let (world, _) = world();
    let server = guarded(&world);
    require_from(&world, &server.url("lint"));
    for value in ["wrong-T0ken", "user:wrong-T0ken"] {
        let mut command = git_command(&world, &["install"]);
        command.env(TOKEN, value);
        let run = refused(
            &world,
            &mut command,
            1,
            &[LINT, "refused the credentials", "hint: "],
        );
        assert!(!run.stderr.contains("wrong-T0ken"), "{}", run.stderr);
    }
    is_in_no_file(&world, "wrong-T0ken", &[]);
}

/// What processes that descend from `pid` show of themselves: command lines, and for those of
/// another program than ours their environments.
#[cfg(target_os = "linux")]
fn shown_by_processes(pid: u32) -> String {
    let read = |path: String| {
        String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).replace('\0', "\n")
    };
    let mut shown = String::new();
    let mut open = vec![pid];
    while let Some(pid) = open.pop() {
        shown.push_str(&read(format!("/proc/{pid}/cmdline")));
        for thread in std::fs::read_dir(format!("/proc/{pid}/task"))
            .into_iter()
            .flatten()
            .flatten()
        {
            let children = std::fs::read_to_string(thread.path().join("children"));
            let children = children.unwrap_or_default();
            open.extend(
                children
                    .split_whitespace()
                    .filter_map(|pid| pid.parse::<u32>().ok()),
            );
        }
    }
    shown
}

/// The bytes of a log that shows them in hexadecimal.
fn dumped(log: &str) -> String {
    let words = log.split_whitespace();
    let bytes = words.filter(|word| word.len() == 4).filter_map(|word| {
        let pair = [word.get(..2)?, word.get(2..)?];
        let pair = pair.map(|byte| u8::from_str_radix(byte, 16).ok());
        Some([pair[0]?, pair[1]?])
    });
    String::from_utf8_lossy(&bytes.flatten().collect::<Vec<u8>>()).into_owned()
}

/// Asserts that `secret` is in no file of the world's but those in `known`.
#[track_caller]
fn is_in_no_file(world: &World, secret: &str, known: &[&Path]) {
    let found = files_with(world.root(), secret);
    let found: Vec<_> = found
        .iter()
        .filter(|path| !known.contains(&path.as_path()))
        .collect();
    assert!(found.is_empty(), "{found:?}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_secret_is_shown_and_kept_nowhere() {
    let (world, repository) = world();
    let seen = "env > \"$HOME/hook-$VIBE_HOOK_PHASE\"\n";
    let hooked = |version: &str| {
        let package = lint(version)
            .hook(Phase::PreInstall, seen)
            .hook(Phase::PostInstall, seen);
        repository.package(&package);
        repository.commit(version);
    };
    hooked("1.1.0");
    let server = guarded(&world);
    let base64 = "dXNlcjpzM2NyM3QtVDBrZW4tMDEyMzQ1Njc4OQ";
    let url = server.url("lint");
    let with_login = url.replace("//", &format!("//user:{SECRET}@"));
    let check = |arguments: &[&str], code: i32| {
        let mut command = git_command(&world, arguments);
        command
            .env(TOKEN, format!("user:{SECRET}"))
            .env("VIBE_LOG", "trace");
        let run = run(&mut command).expect(code);
        for text in [&run.stdout, &run.stderr, &dumped(&run.stderr)] {
            for secret in [SECRET, base64, "wr0ng-S3cret"] {
                assert!(!text.contains(secret), "{arguments:?}\n{text}");
            }
        }
    };
    require_from(&world, &url);
    check(&["-v", "install"], 0);
    hooked("1.2.0");
    check(&["update", "--json"], 0);
    check(&["install", "--json"], 0);
    check(&["runs", "show"], 0);
    // The address itself may bring it along; the manifest then names it, and nothing else does.
    check(&["install", &with_login, "--dry-run"], 0);
    std::fs::remove_file(world.project().join("vibe.lock")).unwrap();
    world.write("vibe.toml", "[project]\nname = \"world\"\n");
    check(&["install", &with_login], 0);
    assert_eq!(
        read(world.home().join("hook-pre-install"))
            .lines()
            .filter(|line| line.starts_with("VIBE_GIT_TOKEN"))
            .count(),
        0
    );
    assert!(world.home().join("hook-post-install").is_file());
    assert!(newest_run(&world).join("run.json").is_file());
    for secret in [SECRET, base64] {
        is_in_no_file(&world, secret, &[]);
    }
    // One that the user wrote into the manifest stays there, and goes nowhere else.
    require_from(&world, &with_login);
    forget_fetched(&world);
    check(&["update"], 0);
    is_in_no_file(&world, SECRET, &[&world.project().join("vibe.toml")]);
    // The address goes before the variable.
    let with_wrong = url.replace("//", "//user:wr0ng-S3cret@");
    check(&["install", &with_wrong], 1);
    check(&["install", &format!("{with_wrong}#none")], 1);
    is_in_no_file(&world, "wr0ng-S3cret", &[]);
}

#[cfg(target_os = "linux")]
#[test]
fn no_secret_is_in_an_argument_of_a_process_while_a_server_is_asked() {
    let (world, _) = world();
    let server = GitHttpServer::start(HttpOptions::hang());
    require_from(&world, &server.url("lint"));
    let mut command = git_command(&world, &["install"]);
    command.env(TOKEN, format!("user:{SECRET}"));
    let mut child = start(&mut command);
    server.wait_for_connections(1);
    let shown = shown_by_processes(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(
        shown.contains("install") && !shown.contains(SECRET),
        "{shown}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn no_secret_is_in_an_argument_of_a_helper_that_is_told_of_it() {
    let (world, _) = world();
    let server = guarded(&world);
    // A helper that is being told, and stays.
    std::fs::write(world.home().join("hold"), "").unwrap();
    let script = format!(
        "!f() {{ test $1 = get && echo username=user && echo password={SECRET}; test $1 = store && touch $HOME/told && while test -e $HOME/hold; do sleep 0.02; done; true; }}; f"
    );
    let config = world.home().join(".gitconfig");
    std::fs::write(
        &config,
        format!(
            "[credential]\n\thelper = {:?}\n",
            script.replace(SECRET, "$(cat $HOME/secret)")
        ),
    )
    .unwrap();
    std::fs::write(world.home().join("secret"), SECRET).unwrap();
    require_from(&world, &server.url("lint"));
    let child = start(&mut git_command(&world, &["install"]));
    wait_until("a helper that is told", || {
        world.home().join("told").exists()
    });
    let shown = shown_by_processes(child.id());
    std::fs::remove_file(world.home().join("hold")).unwrap();
    wait(child).expect(0);
    assert!(
        shown.contains("credential") && !shown.contains(SECRET),
        "{shown}"
    );
    is_in_no_file(&world, SECRET, &[&world.home().join("secret")]);
}

#[test]
fn a_redirect_to_another_host_is_refused_and_both_are_named() {
    let (world, _) = world();
    let target = GitHttpServer::start(HttpOptions::serve(&served(&world)));
    let first = GitHttpServer::start(HttpOptions::redirect(&target.root_url()));
    require_from(&world, &first.url("lint"));
    let mut command = git_command(&world, &["install"]);
    command.env(TOKEN, format!("user:{SECRET}"));
    let (from, to) = (format!("127.0.0.1:{}", first.port()), target.root_url());
    refused(&world, &mut command, 1, &[LINT, &from, &to, "not followed"]);
    assert_eq!(target.connections(), 0);
}

#[test]
fn what_a_server_says_cannot_act_on_a_terminal() {
    let (world, _) = world();
    let message = "go \x1b[31maway\x1b]0;title\x07 \u{202e}gnp\r\nerror: forged\u{9b}2J";
    let server = GitHttpServer::start(HttpOptions::refuse(message));
    require_from(&world, &server.url("lint"));
    for arguments in [
        &["install"][..],
        &["--color", "always", "install"],
        &["install", "--json"],
    ] {
        let run = run(&mut git_command(&world, arguments)).expect(1);
        let text = format!("{}{}", run.stdout, run.stderr);
        assert!(text.contains("away"), "{text}");
        for part in [
            "\x1b[31maway",
            "\x1b]",
            "\x07",
            "\u{202e}",
            "\u{9b}",
            "\r",
            "\nerror: forged",
        ] {
            assert!(!text.contains(part), "{part:?} in {text:?}");
        }
    }
}

/// An install that waits for a server that never answers.
fn hanging(scheme: &str) -> (World, GitHttpServer, Child) {
    let (world, _) = world();
    let server = GitHttpServer::start(HttpOptions::hang());
    require_from(&world, &server.url("lint").replace("http", scheme));
    let child = start(&mut git_command(&world, &["install"]));
    server.wait_for_connections(1);
    (world, server, child)
}

/// A server that says nothing is given up after 30 seconds. What ends well before that was ended by
/// something else, however busy the machine is.
const BEFORE_SILENCE_ENDS: Duration = Duration::from_secs(10);

/// Sends an interrupt to a run and waits for its end, which has to come at once.
#[track_caller]
fn interrupt(child: Child) -> Run {
    let since = Instant::now();
    assert!(signal(&child.id().to_string(), "INT"));
    let run = wait(child).expect(130);
    let took = since.elapsed();
    assert!(took < BEFORE_SILENCE_ENDS, "{took:?}");
    run.stderr_has("interrupted")
}

/// What is in the cache of repositories, locks aside.
fn cached(world: &World) -> Vec<String> {
    let cache = vibe_testkit::TreeSnapshot::of(&git_cache(world));
    let paths = cache.entries.into_keys();
    paths.filter(|path| !path.ends_with(".lock")).collect()
}

#[test]
fn an_interrupt_ends_the_wait_for_a_server() {
    for scheme in ["http", "git"] {
        let (world, server, child) = hanging(scheme);
        interrupt(child);
        assert!(!world.project().join("vibe.lock").exists());
        assert!(!lint_slot(&world, "1.0.0").exists());
        assert_eq!(cached(&world), [""; 0]);
        assert_eq!(server.connections(), 1);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_ends_a_hanging_ssh_with_all_that_it_started() {
    let (world, _) = world();
    let script = "echo $$ > \"$HOME/pid\"\nmv \"$HOME/pid\" \"$HOME/ssh-pid\"\nexec sleep 600\n";
    let bin = world.home().join("bin");
    std::fs::create_dir(&bin).unwrap();
    std::fs::write(bin.join("ssh"), format!("#!/bin/sh\n{script}")).unwrap();
    std::fs::set_permissions(
        bin.join("ssh"),
        std::os::unix::fs::PermissionsExt::from_mode(0o755),
    )
    .unwrap();
    require_from(&world, "git@host.example:lint");
    let mut command = git_command(&world, &["install"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", bin.display()));
    let child = start(&mut command);
    let pid = world.home().join("ssh-pid");
    wait_until("ssh", || pid.exists());
    interrupt(child);
    process_ends(&read(&pid));
}

#[cfg(target_os = "linux")]
#[test]
fn an_interrupt_ends_a_hanging_credential_helper() {
    let (world, _) = world();
    let server = guarded(&world);
    let script = "!f() { echo $$ > $HOME/pid; mv $HOME/pid $HOME/helper-pid; exec sleep 600; }; f";
    let config = format!("[credential]\n\thelper = {script:?}\n");
    std::fs::write(world.home().join(".gitconfig"), config).unwrap();
    require_from(&world, &server.url("lint"));
    let child = start(&mut git_command(&world, &["install"]));
    let pid = world.home().join("helper-pid");
    wait_until("the helper", || pid.exists());
    interrupt(child);
    process_ends(&read(&pid));
}

/// Adds a file that cannot be compressed, larger than what pipes and sockets hold.
fn noise(repository: &GitRepository) {
    let mut state = 1_u64;
    let noise = std::iter::repeat_with(|| {
        state = state
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (state >> 56) as u8
    });
    repository.write("noise", noise.take(200_000).collect::<Vec<u8>>(), false);
    repository.commit("noise");
}

/// An install of a package larger than what its server sends before it stalls, once the beginning
/// is there.
fn stalled() -> (World, GitRepository, GitHttpServer, Child) {
    let (world, repository) = world();
    noise(&repository);
    let options = HttpOptions::serve(&served(&world)).stalling_after(100_000);
    let server = GitHttpServer::start(options);
    require_from(&world, &server.url("lint"));
    let child = start(&mut git_command(&world, &["install"]));
    wait_until("the beginning of a pack", || has_pack(&git_cache(&world)));
    (world, repository, server, child)
}

/// Whether a pack lies somewhere below `directory`, in which another process works: what is gone
/// again is not there.
fn has_pack(directory: &Path) -> bool {
    let entries = std::fs::read_dir(directory).into_iter().flatten();
    entries.flatten().any(|entry| {
        let path = entry.path();
        match directory.ends_with("objects/pack") {
            true => path.is_file(),
            false => has_pack(&path),
        }
    })
}

/// The same command again, now that the server answers, and nothing unfinished in the cache.
#[track_caller]
fn is_finished_by_the_same_command(
    world: &World,
    repository: &GitRepository,
    server: &GitHttpServer,
) {
    assert!(!world.project().join("vibe.lock").exists());
    assert!(!lint_slot(world, "1.0.0").exists());
    server.answer_in_full();
    git_vibe(world, &["install", "--no-wait"]).expect(0);
    git_vibe(world, &["verify"]).expect(0);
    assert_eq!(locked(world, LINT, "commit"), repository.head());
    let packs = cached(world);
    let packs = packs
        .iter()
        .filter_map(|path| path.split_once("objects/pack/"));
    let names: Vec<&str> = packs.map(|(_, name)| name).collect();
    let is_whole = |name: &&str| name.starts_with("pack-");
    assert!(!names.is_empty() && names.iter().all(is_whole), "{names:?}");
    forget_project(world);
    std::fs::remove_dir_all(crate::support::store(world)).unwrap();
    git_vibe(world, &["--offline", "install"]).expect(0);
}

fn forget_project(world: &World) {
    std::fs::remove_dir_all(world.project().join("vibedeps")).unwrap();
}

#[test]
fn an_install_that_was_killed_while_it_fetched_is_finished_by_the_same_command() {
    let (world, repository, server, mut child) = stalled();
    child.kill().unwrap();
    child.wait().unwrap();
    is_finished_by_the_same_command(&world, &repository, &server);
}

#[test]
fn an_install_that_was_interrupted_while_it_fetched_is_finished_by_the_same_command() {
    let (world, repository, server, child) = stalled();
    interrupt(child);
    assert_eq!(cached(&world), [""; 0]);
    is_finished_by_the_same_command(&world, &repository, &server);
}

#[test]
fn a_server_that_breaks_off_is_named_and_leaves_nothing_behind() {
    let (world, _, server, child) = stalled();
    let url = server.url("lint");
    drop(server);
    wait(child).expect(1).stderr_has(LINT).stderr_has(&url);
    assert!(!world.project().join("vibe.lock").exists());
    assert_eq!(cached(&world), [""; 0]);
}

#[test]
fn who_waits_for_another_that_fetches_is_told_for_whom_and_can_be_interrupted() {
    let (world, repository, server, child) = stalled();
    let other = world.root().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::copy(world.project().join("vibe.toml"), other.join("vibe.toml")).unwrap();
    let said = world.home().join("said");
    let mut waiting = git_command_in(&world, &other, &["install"]);
    waiting.stderr(std::fs::File::create(&said).unwrap());
    let waiting = start(&mut waiting);
    wait_until("a word from the one that waits", || {
        read(&said).ends_with('\n')
    });
    let text = read(&said);
    let holder = format!("process {} to end: vibe install", child.id());
    assert!(text.contains(&holder), "{text}");
    let since = Instant::now();
    assert!(signal(&waiting.id().to_string(), "INT"));
    wait(waiting).expect(130);
    assert!(since.elapsed() < BEFORE_SILENCE_ENDS);
    interrupt(child);
    is_finished_by_the_same_command(&world, &repository, &server);
}

#[test]
fn an_address_with_a_login_is_kept_nowhere_while_it_is_asked_either() {
    let (world, _) = world();
    world.write("vibe.toml", "[project]\nname = \"world\"\n");
    let server = GitHttpServer::start(HttpOptions::hang());
    let url = server
        .url("lint")
        .replace("//", &format!("//user:{SECRET}@"));
    for (count, arguments) in [["install", &url].as_slice(), &["install", "--git", &url]]
        .iter()
        .enumerate()
    {
        let child = start(&mut git_command(&world, arguments));
        server.wait_for_connections(count + 1);
        let found = files_with(world.root(), SECRET);
        let run = interrupt(child);
        assert!(found.is_empty(), "{found:?}");
        assert!(!run.stderr.contains(SECRET), "{}", run.stderr);
    }
}

#[test]
fn a_registry_that_cannot_be_asked_is_no_registry_that_does_not_know_a_package() {
    let (world, _) = world();
    let other = served(&world).join("two/org.example.lint.git");
    release(&GitRepository::new(&other), "9.9.9");
    let second = GitDaemon::start(&served(&world));
    // Nothing listens there on any machine.
    let gone = "http://127.0.0.1:1/one".to_owned();
    let guarded = guarded(&world);
    for first in [gone, guarded.url("one")] {
        let registry =
            |name: &str, url: &str| format!("[[registry]]\nname = \"{name}\"\nurl = \"{url}\"\n");
        let manifest = format!(
            "[project]\nname = \"x\"\n[requires.packages]\n\"{LINT}\" = \"*\"\n{}{}",
            registry("one", &first),
            registry("two", &second.url("two"))
        );
        world.write("vibe.toml", &manifest);
        refused(
            &world,
            &mut git_command(&world, &["install"]),
            1,
            &[LINT, &first],
        );
    }
    assert_eq!(second.connections(), 0);
}

#[test]
fn looking_asks_no_server() {
    let (world, _) = world();
    let daemon = GitDaemon::start(&served(&world));
    require_from(&world, &daemon.url("lint"));
    git_vibe(&world, &["install"]).expect(0);
    let asked = daemon.connections();
    forget_fetched(&world);
    for arguments in [
        &["list"][..],
        &["verify"],
        &["hooks", "list"],
        &["runs", "list"],
        &["install", "--dry-run"],
    ] {
        git_vibe(&world, arguments).expect(0);
    }
    assert_eq!(daemon.connections(), asked);
}

#[test]
fn a_damaged_cache_is_made_anew_where_the_server_can_be_asked() {
    let (world, repository) = world();
    let daemon = GitDaemon::start(&served(&world));
    require_from(&world, &daemon.url("lint"));
    git_vibe(&world, &["install"]).expect(0);
    let damage = |how: &dyn Fn(&Path)| {
        let packs = cached(&world);
        let packs: Vec<_> = packs
            .iter()
            .filter(|path| path.contains("objects/pack/pack-") && path.ends_with(".pack"))
            .collect();
        assert!(!packs.is_empty());
        packs
            .iter()
            .for_each(|pack| how(&git_cache(&world).join(pack)));
        forget_project(&world);
        std::fs::remove_dir_all(crate::support::store(&world)).unwrap();
    };
    let replace = |path: &Path, bytes: &[u8]| {
        std::fs::remove_file(path).unwrap();
        std::fs::write(path, bytes).unwrap();
    };
    let emptied = |path: &Path| replace(path, b"");
    let cut = |path: &Path| {
        let bytes = std::fs::read(path).unwrap();
        replace(path, &bytes[..bytes.len() / 2]);
    };
    let changed = |path: &Path| {
        let mut bytes = std::fs::read(path).unwrap();
        let length = bytes.len();
        bytes[12..length - 20].fill(0x55);
        replace(path, &bytes);
    };
    let removed = |path: &Path| std::fs::remove_file(path).unwrap();
    for how in [&emptied as &dyn Fn(&Path), &cut, &changed, &removed] {
        damage(how);
        refused(
            &world,
            &mut git_command(&world, &["--offline", "install"]),
            1,
            &[LINT],
        );
        git_vibe(&world, &["install", "--locked"]).expect(0);
        git_vibe(&world, &["verify"]).expect(0);
        assert_eq!(locked(&world, LINT, "commit"), repository.head());
    }
}

#[test]
fn two_projects_fetch_one_repository_at_the_same_time() {
    let (world, _) = world();
    let daemon = GitDaemon::start(&served(&world));
    for _ in 0..3 {
        forget_fetched(&world);
        let projects = ["one", "two", "three"].map(|name| world.root().join(name));
        let children = projects.clone().map(|project| {
            let _ = std::fs::remove_dir_all(&project);
            std::fs::create_dir(&project).unwrap();
            let url = daemon.url("lint");
            let manifest = format!("[project]\nname = \"x\"\n[requires.packages]\n\"{LINT}\" = {{ git = \"{url}\", version = \"^1\" }}\n");
            std::fs::write(project.join("vibe.toml"), manifest).unwrap();
            start(&mut git_command_in(&world, &project, &["install"]))
        });
        for child in children {
            wait(child).expect(0);
        }
        let locks = projects
            .clone()
            .map(|project| read(project.join("vibe.lock")));
        assert!(locks.iter().all(|lock| *lock == locks[0]));
        for project in &projects {
            run(&mut git_command_in(
                &world,
                project,
                &["--offline", "verify"],
            ))
            .expect(0);
        }
    }
}

#[test]
fn an_interrupt_ends_the_wait_for_several_servers_at_once() {
    let world = World::new();
    let names = ["a", "b", "c"];
    let server = GitHttpServer::start(HttpOptions::serve(&served(&world)));
    let requires = names.map(|name| {
        let repository = GitRepository::new(&served(&world).join(name));
        let id = format!("org.example/{name}");
        repository.package(&vibe_testkit::PackageBuilder::new(&id, "1.0.0"));
        repository.commit("first");
        (
            id,
            format!("git = \"{}\", branch = \"main\"", server.url(name)),
        )
    });
    let requires = requires.each_ref().map(|(id, inside)| (&**id, &**inside));
    require(&world, &requires);
    git_vibe(&world, &["install"]).expect(0);
    // The same project, with a server that never answers.
    let hanging = GitHttpServer::start(HttpOptions::hang());
    for file in ["vibe.toml", "vibe.lock"] {
        let text = world
            .read(file)
            .replace(&server.root_url(), &hanging.root_url());
        world.write(file, &text);
    }
    forget_project(&world);
    forget_fetched(&world);
    let child = start(&mut git_command(&world, &["install", "--locked"]));
    hanging.wait_for_connections(1);
    interrupt(child);
    assert_eq!(cached(&world), [""; 0]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_cache_that_cannot_be_written_is_named() {
    let (world, _) = world();
    let daemon = GitDaemon::start(&served(&world));
    require_from(&world, &daemon.url("lint"));
    std::fs::create_dir_all(git_cache(&world)).unwrap();
    let mut command = crate::support::unprivileged(&world, &["install"]);
    command.env("VIBE_INSECURE_HOSTS", "127.0.0.1");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o555);
    std::fs::set_permissions(git_cache(&world), mode).unwrap();
    let cache = git_cache(&world).display().to_string();
    let parts = [LINT, &cache, "VIBE_PKG_HOME", "hint: "];
    refused(&world, &mut command, 1, &parts);
}

#[test]
fn who_waits_for_one_that_is_killed_does_its_work() {
    let (world, repository, server, mut child) = stalled();
    let other = world.root().join("other");
    std::fs::create_dir(&other).unwrap();
    std::fs::copy(world.project().join("vibe.toml"), other.join("vibe.toml")).unwrap();
    let said = world.home().join("said");
    let mut waiting = git_command_in(&world, &other, &["install"]);
    waiting.stderr(std::fs::File::create(&said).unwrap());
    let waiting = start(&mut waiting);
    wait_until("a word from the one that waits", || {
        read(&said).ends_with('\n')
    });
    server.answer_in_full();
    child.kill().unwrap();
    child.wait().unwrap();
    wait(waiting).expect(0);
    run(&mut git_command_in(&world, &other, &["verify"])).expect(0);
    is_finished_by_the_same_command(&world, &repository, &server);
}

#[test]
fn an_update_fetches_only_what_is_new() {
    let (world, repository) = world();
    noise(&repository);
    let options = HttpOptions::serve(&served(&world));
    for options in [options.clone(), options.old_protocol()] {
        forget_fetched(&world);
        let server = GitHttpServer::start(options);
        require_from(&world, &server.url("lint"));
        let pack_bytes = || -> u64 {
            let packs = cached(&world)
                .into_iter()
                .filter(|path| path.ends_with(".pack"));
            packs
                .map(|path| git_cache(&world).join(path).metadata().unwrap().len())
                .sum()
        };
        git_vibe(&world, &["update"]).expect(0);
        let first = pack_bytes();
        assert!(first > 200_000, "{first}");
        repository.write("more.md", "more\n", false);
        repository.commit("more");
        git_vibe(&world, &["update"]).expect(0);
        assert_eq!(locked(&world, LINT, "commit"), repository.head());
        let more = pack_bytes() - first;
        assert!(more > 0 && more < 10_000, "{more}");
    }
}

#[test]
fn a_credential_helper_gets_no_token_of_another_host() {
    let (world, _) = world();
    let server = guarded(&world);
    let script = format!(
        "!f() {{ env > $HOME/helper-environment; test $1 = get && echo username=user && echo password={SECRET}; }}; f"
    );
    let config = format!("[credential]\n\thelper = {script:?}\n");
    std::fs::write(world.home().join(".gitconfig"), config).unwrap();
    require_from(&world, &server.url("lint"));
    let mut command = git_command(&world, &["install"]);
    command.env("VIBE_GIT_TOKEN_OTHER_EXAMPLE", "0ther-S3cret");
    run(&mut command).expect(0);
    let environment = read(world.home().join("helper-environment"));
    assert!(environment.contains("HOME="), "{environment}");
    assert!(!environment.contains("0ther-S3cret"), "{environment}");
}
