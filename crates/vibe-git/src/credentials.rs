//! Credentials for one host: what the caller gives, else what the user's git credential helpers
//! know. A secret goes to the host it is for and to the helpers, through pipes, and nowhere else.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use vibe_core::git_url::Credential;

use crate::child;
use crate::watch::Watch;

/// How long a credential helper may take: it may have to unlock a key ring.
const HELPER_LIMIT: Duration = Duration::from_secs(30);
/// Bytes of a helper's answer.
const ANSWER_BYTES: u64 = 64 << 10;

/// What a credential is for, in the words of git's credential protocol.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Site {
    /// `https` or `http`.
    pub(crate) scheme: &'static str,
    /// `host` or `host:port`.
    pub(crate) authority: String,
    /// The path without the slash at its beginning.
    pub(crate) path: String,
}

/// The credential helpers that the user's and the system's git configuration name.
pub(crate) struct Helpers {
    directory: PathBuf,
    environment: BTreeMap<OsString, OsString>,
    watch: Arc<Watch>,
}

impl Helpers {
    /// Helpers are started in `directory`. No repository around it counts, and nobody is asked:
    /// neither on a terminal nor in a window.
    pub(crate) fn new(
        directory: &Path,
        environment: &BTreeMap<OsString, OsString>,
        watch: &Arc<Watch>,
    ) -> Self {
        let ours = [
            ("GIT_TERMINAL_PROMPT", OsStr::new("0")),
            // Set and empty: nothing is asked for, not even by `core.askPass` or `SSH_ASKPASS`.
            ("GIT_ASKPASS", OsStr::new("")),
            ("GCM_INTERACTIVE", OsStr::new("never")),
            (
                "GIT_CEILING_DIRECTORIES",
                directory.parent().unwrap_or(directory).as_os_str(),
            ),
        ];
        Self {
            directory: directory.to_path_buf(),
            environment: child::quiet_environment(environment, &ours),
            watch: Arc::clone(watch),
        }
    }

    /// What the helpers know for `site`. A helper or a git program that fails knows nothing.
    pub(crate) fn fill(&self, site: &Site) -> Option<Credential> {
        parse_answer(&self.ask("fill", site, None)?)
    }

    /// Tells the helpers that `credential` was right.
    pub(crate) fn approve(&self, site: &Site, credential: &Credential) {
        self.ask("approve", site, Some(credential));
    }

    /// Tells the helpers that `credential` was refused.
    pub(crate) fn reject(&self, site: &Site, credential: &Credential) {
        self.ask("reject", site, Some(credential));
    }

    fn ask(&self, action: &str, site: &Site, credential: Option<&Credential>) -> Option<String> {
        let arguments = ["credential", action].map(OsString::from);
        let started = child::start(
            OsStr::new("git"),
            &arguments,
            &self.directory,
            &self.environment,
            &self.watch,
        );
        let (child, mut pipes) = match started {
            Ok(started) => started,
            Err(error) => {
                tracing::debug!("no credential helper was asked: git: {error}");
                return None;
            }
        };
        let question = question(site, credential)?;
        // A git that ends without reading says so by its status.
        let _ = pipes.stdin.write_all(question.as_bytes());
        drop(pipes.stdin);
        let stdout = pipes.stdout;
        let (sender, receiver) = std::sync::mpsc::sync_channel(1);
        std::thread::spawn(move || {
            let mut answer = String::new();
            let read = stdout.take(ANSWER_BYTES).read_to_string(&mut answer);
            drop(sender.send(read.map(|_| answer)));
        });
        let answer = receiver.recv_timeout(HELPER_LIMIT).ok()?.ok()?;
        child.succeeds_within(HELPER_LIMIT).then_some(answer)
    }
}

/// `None` if a value has a line break, which would be another line of the question.
fn question(site: &Site, credential: Option<&Credential>) -> Option<String> {
    let mut lines = vec![
        ("protocol", site.scheme),
        ("host", site.authority.as_str()),
        ("path", site.path.as_str()),
    ];
    if let Some(credential) = credential {
        lines.push(("username", credential.user.as_str()));
        lines.push(("password", credential.secret.as_str()));
    }
    let is_fine = |value: &str| !value.contains(['\n', '\r', '\0']);
    if !lines.iter().all(|(_, value)| is_fine(value)) {
        return None;
    }
    let text = lines.iter().map(|(key, value)| format!("{key}={value}\n"));
    Some(text.collect::<String>() + "\n")
}

fn parse_answer(answer: &str) -> Option<Credential> {
    let value = |key: &str| {
        let mut lines = answer.lines().rev().filter_map(|line| line.split_once('='));
        lines
            .find(|(name, _)| *name == key)
            .map(|(_, value)| value.to_owned())
    };
    Some(Credential {
        user: value("username")?,
        secret: value("password")?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;

    fn site() -> Site {
        Site {
            scheme: "https",
            authority: "host.example:8443".to_owned(),
            path: "a/b.git".to_owned(),
        }
    }

    fn helpers(world: &World) -> Helpers {
        let cache = world.path("cache");
        std::fs::create_dir_all(&cache).unwrap();
        Helpers::new(&cache, &world.environment(), &Watch::new())
    }

    #[test]
    fn a_configured_helper_is_asked_and_told_what_became_of_its_answer() {
        let world = World::new();
        let log = world.path("log");
        let script = format!(
            "!f() {{ echo \"$1\" >> {log}; cat >> {log}; test \"$1\" = get && echo username=u && echo password=s3cret; }}; f",
            log = log.display()
        );
        world.configure(&format!("[credential]\n\thelper = {script:?}\n"));
        let helpers = helpers(&world);
        let credential = helpers.fill(&site()).unwrap();
        assert_eq!(
            (credential.user.as_str(), credential.secret.as_str()),
            ("u", "s3cret")
        );
        helpers.approve(&site(), &credential);
        helpers.reject(&site(), &credential);
        let log = std::fs::read_to_string(log).unwrap();
        let of_host = "protocol=https\nhost=host.example:8443\n";
        assert!(log.contains(&format!("get\n{of_host}")), "{log}");
        for told in ["store", "erase"] {
            let expected = format!("{told}\n{of_host}username=u\npassword=s3cret\n");
            assert!(log.contains(&expected), "{log}");
        }
    }

    #[test]
    fn without_a_helper_nobody_is_asked_and_nothing_is_known() {
        let world = World::new();
        let asked = world.path("asked");
        let script = world.path("ask");
        std::fs::write(
            &script,
            format!("#!/bin/sh\ntouch {}\necho x\n", asked.display()),
        )
        .unwrap();
        make_executable(&script);
        world.configure(&format!(
            "[core]
	askPass = {}
",
            script.display()
        ));
        let mut environment = world.environment();
        environment.insert("GIT_ASKPASS".into(), script.clone().into());
        environment.insert("SSH_ASKPASS".into(), script.into());
        let cache = world.path("cache");
        std::fs::create_dir(&cache).unwrap();
        let helpers = Helpers::new(&cache, &environment, &Watch::new());
        assert_eq!(helpers.fill(&site()), None);
        assert!(!asked.exists());
    }

    #[test]
    fn a_repository_around_the_cache_names_no_helper() {
        let world = World::new();
        let outer = world.repository("outer");
        let script = "!f() { echo username=u; echo password=p; }; f";
        outer.git(&["config", "credential.helper", script]);
        let cache = outer.path().join("cache");
        std::fs::create_dir(&cache).unwrap();
        let mut environment = world.environment();
        environment.insert("GIT_DIR".into(), outer.path().join(".git").into());
        let helpers = Helpers::new(&cache, &environment, &Watch::new());
        assert_eq!(helpers.fill(&site()), None);
    }

    #[test]
    fn a_line_break_makes_no_line_of_its_own() {
        let mut odd = site();
        odd.path = "a\nhost=elsewhere".to_owned();
        assert_eq!(question(&odd, None), None);
        assert_eq!(parse_answer("username=u\n"), None);
        let found = parse_answer("username=u\npassword=a=b\nquit=0\n").unwrap();
        assert_eq!(found.secret, "a=b");
    }

    #[cfg(unix)]
    fn make_executable(path: &Path) {
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    }
}
