//! From flags, environment and config file to [`Settings`]; flag over environment over config.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::{self, ErrorKind, Read};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};

use vibe_core::formats::config::UserConfig;
use vibe_core::formats::decode::decode;
use vibe_core::formats::diagnostic::Diagnostic;
use vibe_core::limits::MANIFEST_BYTES;
use vibe_core::text::{escape, hide_credentials, shell_quote};
use vibe_install::{Settings, WantedLinkMode};

use crate::arguments::{ColorWhen, Command, Global, parse_link_mode};
use crate::exit_code;
use crate::user_error::UserError;

/// The variable that moves the user's files.
const HOME_VARIABLE: &str = "VIBE_PKG_HOME";
/// The folder of ours in each of the platform's folders.
const FOLDER: &str = "vibe-pkg";
/// The user's config.
const CONFIG_NAME: &str = "config.toml";
/// The store of packages.
const STORE_NAME: &str = "store";
/// The fetched git repositories.
const GIT_CACHE_NAME: &str = "git";
/// The variable that forbids the network.
const OFFLINE_VARIABLE: &str = "VIBE_OFFLINE";
/// The variable with hosts that `insecure-hosts` names too, separated by commas.
const INSECURE_HOSTS_VARIABLE: &str = "VIBE_INSECURE_HOSTS";
/// The variable that says how the files of new slots are placed.
const LINK_MODE_VARIABLE: &str = "VIBE_LINK_MODE";
/// How much is done at a time.
const JOBS_VARIABLE: &str = "VIBE_JOBS";

/// Where a setting came from. The first that says something wins.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Origin {
    /// This option of the command line.
    Flag(&'static str),
    /// This variable of the environment.
    Variable(&'static str),
    /// The user's config.
    Config,
    /// Nobody said anything.
    #[default]
    Default,
}

/// The user's config as read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ConfigFile {
    /// Where it is, or would be; `None` where there is no place for it.
    pub(crate) path: Option<PathBuf>,
    /// Its text; `None` where there is none.
    pub(crate) text: Option<String>,
    /// What it says.
    pub(crate) config: UserConfig,
    /// What is odd about it.
    pub(crate) warnings: Vec<String>,
}

/// The settings of a run, and where they came from.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    /// The settings.
    pub(crate) settings: Settings,
    /// Where those came from that have more than one source.
    pub(crate) origins: Origins,
}

/// Where settings came from.
#[derive(Debug, Clone, Default)]
pub(crate) struct Origins {
    /// Where the project is looked for.
    pub(crate) project: Origin,
    /// The places of config, store and fetched repositories.
    pub(crate) places: Origin,
    /// Whether there is a network.
    pub(crate) offline: Origin,
    /// How new slots are placed.
    pub(crate) link_mode: Origin,
    /// How much is done at a time.
    pub(crate) jobs: Origin,
    /// When colour is used, and who says so.
    pub(crate) color: (&'static str, Origin),
    /// The user's config, which those come from that have no other source.
    pub(crate) config: ConfigFile,
    /// The hosts that the environment adds to those of the config.
    pub(crate) added_hosts: Vec<String>,
}

/// What the program was started with, read once.
#[derive(Debug)]
pub(crate) struct World {
    /// The command line, the program included.
    pub(crate) arguments: Vec<OsString>,
    /// The environment.
    pub(crate) environment: BTreeMap<OsString, OsString>,
    /// The working directory.
    pub(crate) directory: io::Result<PathBuf>,
    /// This program.
    pub(crate) executable: PathBuf,
    /// The platform's folder for the configuration of programs.
    pub(crate) platform_config: Option<PathBuf>,
    /// The platform's folder for the data of programs.
    pub(crate) platform_data: Option<PathBuf>,
    /// The platform's folder for what programs can fetch again.
    pub(crate) platform_cache: Option<PathBuf>,
    /// Whether somebody can answer on standard input.
    pub(crate) stdin_is_terminal: bool,
    /// Whether somebody looks at standard output.
    pub(crate) stdout_is_terminal: bool,
    /// How many columns that terminal has, if it is one and says so.
    pub(crate) stdout_width: Option<usize>,
    /// Whether somebody looks at standard error.
    pub(crate) stderr_is_terminal: bool,
    /// What went wrong before the command began.
    pub(crate) warnings: Vec<String>,
}

impl World {
    /// A variable of the environment; an empty one counts as absent.
    pub(crate) fn variable(&self, name: &str) -> Option<&OsStr> {
        self.environment
            .get(OsStr::new(name))
            .map(OsString::as_os_str)
            .filter(|v| !v.is_empty())
    }

    /// Whether to use colour on a stream.
    pub(crate) fn wants_colour(&self, when: ColorWhen, is_terminal: bool) -> bool {
        let dumb = self.variable("TERM") == Some(OsStr::new("dumb"));
        match when {
            ColorWhen::Always => true,
            ColorWhen::Never => false,
            ColorWhen::Auto => is_terminal && !dumb && self.variable("NO_COLOR").is_none(),
        }
    }

    /// Whether to show progress: to somebody who looks at a terminal that can take a line back, and
    /// not in the log of a build that has one.
    pub(crate) fn wants_progress(&self) -> bool {
        let can = self.variable("TERM").is_some_and(|term| term != "dumb") || cfg!(windows);
        self.stderr_is_terminal && can && self.variable("CI").is_none()
    }

    /// When to use colour, on a terminal, and who says so.
    fn color(&self, when: ColorWhen) -> (&'static str, Origin) {
        let dumb = self.variable("TERM") == Some(OsStr::new("dumb"));
        match when {
            ColorWhen::Always => ("always", Origin::Flag("--color")),
            ColorWhen::Never => ("never", Origin::Flag("--color")),
            ColorWhen::Auto if self.variable("NO_COLOR").is_some() => {
                ("never", Origin::Variable("NO_COLOR"))
            }
            ColorWhen::Auto if dumb => ("never", Origin::Variable("TERM")),
            ColorWhen::Auto => ("auto", Origin::Default),
        }
    }

    /// Where the user's config would be. Without a usable home there is none, and the defaults
    /// hold: nothing is ever written there.
    fn config_path(&self) -> Result<Option<PathBuf>, UserError> {
        self.place_of(CONFIG_NAME, self.platform_config.as_ref())
    }

    /// Where the store is. Without a usable home there is none.
    fn store_path(&self) -> Result<Option<PathBuf>, UserError> {
        self.place_of(STORE_NAME, self.platform_data.as_ref())
    }

    /// Where fetched repositories are kept. Without a usable home they are not.
    fn git_cache_path(&self) -> Result<Option<PathBuf>, UserError> {
        self.place_of(GIT_CACHE_NAME, self.platform_cache.as_ref())
    }

    /// Where `name` of ours lies: in the folder that the user names, or in that of the platform.
    fn place_of(
        &self,
        name: &str,
        platform: Option<&PathBuf>,
    ) -> Result<Option<PathBuf>, UserError> {
        if let Some(home) = self.variable(HOME_VARIABLE) {
            let home = Path::new(home);
            if !home.is_absolute() {
                let shown = escape(&home.to_string_lossy());
                let message =
                    format!("{HOME_VARIABLE} has to be an absolute path, but it is `{shown}`");
                return Err(UserError::new("environment", exit_code::USAGE, message));
            }
            return Ok(Some(home.join(name)));
        }
        // A relative folder would be one that the project controls.
        let folder = platform.filter(|folder| folder.is_absolute());
        Ok(folder.map(|folder| folder.join(FOLDER).join(name)))
    }

    /// Where the places of ours come from.
    fn places_origin(&self) -> Origin {
        match self.variable(HOME_VARIABLE) {
            Some(_) => Origin::Variable(HOME_VARIABLE),
            None => Origin::Default,
        }
    }

    /// How the files of new slots are to be placed, as the environment says.
    fn link_mode(&self) -> Result<(WantedLinkMode, Origin), UserError> {
        let Some(word) = self.variable(LINK_MODE_VARIABLE) else {
            return Ok((WantedLinkMode::default(), Origin::Default));
        };
        let word = word.to_string_lossy();
        let mode = parse_link_mode(&word).ok_or_else(|| {
            let words = WantedLinkMode::ALL.map(WantedLinkMode::as_str).join(", ");
            let message = format!(
                "{LINK_MODE_VARIABLE} has to be one of {words}, but it is `{}`",
                escape(&word)
            );
            UserError::new("environment", exit_code::USAGE, message)
        })?;
        Ok((mode, Origin::Variable(LINK_MODE_VARIABLE)))
    }

    /// How much is done at a time, as the environment says.
    fn jobs(&self) -> Result<(Option<NonZeroUsize>, Origin), UserError> {
        let Some(word) = self.variable(JOBS_VARIABLE) else {
            return Ok((None, Origin::Default));
        };
        let word = word.to_string_lossy();
        let jobs = word.parse().map_err(|_| {
            let message = format!(
                "{JOBS_VARIABLE} has to be a number from 1, but it is `{}`",
                escape(&word)
            );
            UserError::new("environment", exit_code::USAGE, message)
        })?;
        Ok((Some(jobs), Origin::Variable(JOBS_VARIABLE)))
    }

    /// Whether there is a network, as the command line or the environment says.
    fn offline_origin(&self, global: &Global) -> Origin {
        match (global.offline, self.variable(OFFLINE_VARIABLE)) {
            (true, _) => Origin::Flag("--offline"),
            (false, Some(_)) => Origin::Variable(OFFLINE_VARIABLE),
            (false, None) => Origin::Default,
        }
    }

    /// The hosts that the environment adds to `insecure-hosts`.
    fn insecure_hosts(&self) -> Vec<String> {
        let hosts = self.variable(INSECURE_HOSTS_VARIABLE).unwrap_or_default();
        let hosts = hosts.to_string_lossy();
        let hosts = hosts.split(',').map(str::trim);
        let named = hosts.filter(|host| !host.is_empty());
        named.map(str::to_owned).collect()
    }
}

/// The user's config, and what is odd about it.
pub(crate) fn read_config(world: &World) -> Result<ConfigFile, UserError> {
    let Some(path) = world.config_path()? else {
        return Ok(ConfigFile::default());
    };
    let bytes = match read_bounded(&path) {
        Ok(bytes) => bytes,
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            return Ok(ConfigFile {
                path: Some(path),
                ..ConfigFile::default()
            });
        }
        Err(error) => {
            let message = format!("{} cannot be read", escape(&path.to_string_lossy()));
            return Err(
                UserError::new("config", exit_code::USAGE, message).caused_by(error.to_string())
            );
        }
    };
    parse_config(&path, &bytes)
}

fn read_bounded(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    std::fs::File::open(path)?
        .take(MANIFEST_BYTES + 1)
        .read_to_end(&mut bytes)?;
    match u64::try_from(bytes.len()) {
        Ok(length) if length <= MANIFEST_BYTES => Ok(bytes),
        _ => Err(io::Error::other(format!(
            "it has more than {MANIFEST_BYTES} bytes"
        ))),
    }
}

fn parse_config(path: &Path, bytes: &[u8]) -> Result<ConfigFile, UserError> {
    let shown = escape(&path.to_string_lossy());
    let refused = |diagnostic: Diagnostic| {
        UserError::new("config", exit_code::USAGE, format!("{shown} is not valid"))
            .at(path, &diagnostic)
    };
    let text = decode(bytes).map_err(refused)?;
    let (config, warnings) = UserConfig::parse(&text).map_err(refused)?;
    let in_file = |warning: &Diagnostic| {
        let place = warning
            .position
            .map(|found| format!(":{}:{}", found.line, found.column));
        let hint = warning.hint.as_ref().map(|hint| format!("; {hint}"));
        format!(
            "{shown}{}: {warning}{}",
            place.unwrap_or_default(),
            hint.unwrap_or_default()
        )
    };
    Ok(ConfigFile {
        path: Some(path.to_path_buf()),
        config,
        warnings: warnings.iter().map(in_file).collect(),
        text: Some(text),
    })
}

/// The settings of a run.
pub(crate) fn settings(
    world: &World,
    global: &Global,
    command: &Command,
    config: ConfigFile,
) -> Result<Told, UserError> {
    let run = command.run_options();
    let directory = world.directory.as_ref().map_err(|error| {
        UserError::new(
            "environment",
            exit_code::FAILED,
            "the working directory cannot be found",
        )
        .caused_by(error.to_string())
    })?;
    let added_hosts = world.insecure_hosts();
    let mut user = config.config.clone();
    user.insecure_hosts.extend(added_hosts.iter().cloned());
    let mut environment = world.environment.clone();
    if global.offline {
        environment.insert(OFFLINE_VARIABLE.into(), "1".into());
    }
    let (start, project) = match &global.project {
        Some(given) => (directory.join(given), Origin::Flag("--project")),
        None => (directory.clone(), Origin::Default),
    };
    let (link_mode, link_mode_origin) = match command.link_mode() {
        Some(mode) => (mode, Origin::Flag("--link-mode")),
        None => world.link_mode()?,
    };
    let (jobs, jobs_origin) = match run.jobs {
        Some(jobs) => (Some(jobs), Origin::Flag("--jobs")),
        None => world.jobs()?,
    };
    let settings = Settings {
        directory: directory.clone(),
        start,
        environment,
        executable: world.executable.clone(),
        command: command_line(&world.arguments),
        version: env!("CARGO_PKG_VERSION"),
        config: user,
        no_hooks: run.no_hooks,
        hook_timeout: run.hook_timeout,
        wait: !run.no_wait,
        store: world.store_path()?,
        git_cache: world.git_cache_path()?,
        link_mode,
        jobs,
    };
    let origins = Origins {
        project,
        places: world.places_origin(),
        offline: world.offline_origin(global),
        link_mode: link_mode_origin,
        jobs: jobs_origin,
        color: world.color(global.color),
        config,
        added_hosts,
    };
    Ok(Told { settings, origins })
}

/// The command line as one would type it, with `vibe` for the program and no credentials.
fn command_line(arguments: &[OsString]) -> String {
    std::iter::once("vibe".to_owned())
        .chain(
            arguments
                .iter()
                .skip(1)
                .map(|word| shell_quote(&hide_credentials(&word.to_string_lossy()))),
        )
        .collect::<Vec<_>>()
        .join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arguments::Arguments;
    use clap::Parser as _;
    use std::time::Duration;
    use vibe_core::formats::config::HookPolicy;

    fn world(variables: &[(&str, &str)]) -> World {
        World {
            arguments: ["/bin/vibe", "install", "a b"].map(OsString::from).to_vec(),
            environment: variables
                .iter()
                .map(|(n, v)| (n.into(), v.into()))
                .collect(),
            directory: Ok(PathBuf::from("/project")),
            executable: PathBuf::from("/bin/vibe"),
            platform_config: None,
            platform_data: None,
            platform_cache: None,
            stdin_is_terminal: false,
            stdout_is_terminal: false,
            stdout_width: None,
            stderr_is_terminal: false,
            warnings: Vec::new(),
        }
    }

    fn try_made(world: &World, line: &str) -> Result<Settings, UserError> {
        let words = format!("vibe {line}");
        let parsed = Arguments::try_parse_from(words.split_whitespace()).unwrap();
        let config = ConfigFile::default();
        Ok(settings(world, &parsed.global, &parsed.command, config)?.settings)
    }

    fn made(world: &World, line: &str) -> Settings {
        try_made(world, line).unwrap()
    }

    #[test]
    fn settings_come_from_the_flags() {
        let plain = made(&world(&[]), "install");
        assert_eq!(plain.start, Path::new("/project"));
        assert_eq!(plain.command, "vibe install 'a b'");
        assert!(plain.wait && !plain.no_hooks && plain.hook_timeout.is_none());
        let line = "install --no-hooks --hook-timeout 3s --no-wait --project sub";
        let flagged = made(&world(&[]), line);
        assert_eq!(flagged.start, Path::new("/project/sub"));
        assert!(!flagged.wait && flagged.no_hooks);
        assert_eq!(flagged.hook_timeout, Some(Duration::from_secs(3)));
    }

    #[test]
    fn offline_is_told_to_install_hooks() {
        let settings = made(&world(&[]), "install --offline");
        assert_eq!(settings.variable("VIBE_OFFLINE"), Some(OsStr::new("1")));
        let online = made(&world(&[]), "install");
        assert_eq!(online.variable("VIBE_OFFLINE"), None);
    }

    #[test]
    fn offline_is_a_flag_or_a_variable() {
        let check = |value: &str, line: &str, expected: bool| {
            let settings = made(&world(&[("VIBE_OFFLINE", value)]), line);
            assert_eq!(settings.is_offline(), expected, "{value} {line}");
        };
        check("", "install", false);
        check("0", "install", false);
        check("1", "install", true);
        check("0", "install --offline", true);
    }

    #[test]
    fn the_way_of_placing_is_a_flag_before_a_variable() {
        let check = |value: &str, line: &str, expected: WantedLinkMode| {
            let found = made(&world(&[(LINK_MODE_VARIABLE, value)]), line).link_mode;
            assert_eq!(found, expected, "{value} {line}");
        };
        check("", "install", WantedLinkMode::AsDeclared);
        check("hardlink", "install", WantedLinkMode::Hardlink);
        check("hardlink", "reinstall", WantedLinkMode::Hardlink);
        check("hardlink", "install --link-mode copy", WantedLinkMode::Copy);
        let wrong = world(&[(LINK_MODE_VARIABLE, "symlink")]);
        let error = try_made(&wrong, "install").unwrap_err();
        assert_eq!(error.exit_code, exit_code::USAGE);
        assert!(error.message.contains("`symlink`"), "{}", error.message);
    }

    #[test]
    fn every_setting_knows_where_it_came_from() {
        let check =
            |variables: &[(&str, &str)], line: &str, look: fn(&Origins) -> Origin, expected| {
                let words = format!("vibe {line}");
                let parsed = Arguments::try_parse_from(words.split_whitespace()).unwrap();
                let config = ConfigFile::default();
                let told = settings(&world(variables), &parsed.global, &parsed.command, config);
                assert_eq!(
                    look(&told.unwrap().origins),
                    expected,
                    "{variables:?} {line}"
                );
            };
        check(&[], "list", |found| found.project, Origin::Default);
        let flag = Origin::Flag("--project");
        check(&[], "list --project p", |found| found.project, flag);
        let home = [(HOME_VARIABLE, "/h")];
        check(&[], "list", |found| found.places, Origin::Default);
        check(
            &home,
            "list",
            |found| found.places,
            Origin::Variable(HOME_VARIABLE),
        );
        let offline = [(OFFLINE_VARIABLE, "0")];
        check(&[], "list", |found| found.offline, Origin::Default);
        check(
            &offline,
            "list",
            |found| found.offline,
            Origin::Variable(OFFLINE_VARIABLE),
        );
        let flag = Origin::Flag("--offline");
        check(&offline, "list --offline", |found| found.offline, flag);
        let mode = [(LINK_MODE_VARIABLE, "copy")];
        check(&[], "list", |found| found.link_mode, Origin::Default);
        check(
            &mode,
            "list",
            |found| found.link_mode,
            Origin::Variable(LINK_MODE_VARIABLE),
        );
        let flag = Origin::Flag("--link-mode");
        check(
            &mode,
            "install --link-mode copy",
            |found| found.link_mode,
            flag,
        );
    }

    #[test]
    fn colour_knows_who_forbids_it() {
        let check = |variables: &[(&str, &str)], when, expected| {
            assert_eq!(world(variables).color(when), expected);
        };
        let flag = Origin::Flag("--color");
        check(&[("NO_COLOR", "1")], ColorWhen::Always, ("always", flag));
        check(&[], ColorWhen::Never, ("never", flag));
        let variable = Origin::Variable("NO_COLOR");
        check(&[("NO_COLOR", "1")], ColorWhen::Auto, ("never", variable));
        let dumb = Origin::Variable("TERM");
        check(&[("TERM", "dumb")], ColorWhen::Auto, ("never", dumb));
        check(&[], ColorWhen::Auto, ("auto", Origin::Default));
    }

    #[test]
    fn hosts_of_the_environment_are_added_to_those_of_the_config() {
        let config = parse_config(
            Path::new("/h/config.toml"),
            b"[git]\ninsecure-hosts = [\"a\"]\n",
        );
        let world = world(&[(INSECURE_HOSTS_VARIABLE, "b:80, ,c")]);
        let parsed = Arguments::try_parse_from(["vibe", "list"]).unwrap();
        let told = settings(&world, &parsed.global, &parsed.command, config.unwrap()).unwrap();
        assert_eq!(told.settings.config.insecure_hosts, ["a", "b:80", "c"]);
        assert_eq!(told.origins.config.config.insecure_hosts, ["a"]);
        assert_eq!(told.origins.added_hosts, ["b:80", "c"]);
    }

    #[test]
    fn a_working_directory_that_is_gone_is_told() {
        let mut gone = world(&[]);
        gone.directory = Err(ErrorKind::NotFound.into());
        let error = try_made(&gone, "install").unwrap_err();
        assert_eq!(error.message, "the working directory cannot be found");
    }

    #[test]
    fn the_config_is_looked_for_in_absolute_folders_only() {
        let path = |home: &str, platform: Option<&str>| {
            let mut world = world(&[(HOME_VARIABLE, home)]);
            world.platform_config = platform.map(PathBuf::from);
            world.config_path().map_err(|error| error.exit_code)
        };
        assert_eq!(path("/h", Some("/c")), Ok(Some("/h/config.toml".into())));
        assert_eq!(
            path("", Some("/c")),
            Ok(Some("/c/vibe-pkg/config.toml".into()))
        );
        assert_eq!(path("", Some(".config")), Ok(None));
        assert_eq!(path("", None), Ok(None));
        assert_eq!(path("relative", None), Err(exit_code::USAGE));
    }

    #[test]
    fn the_store_lies_beside_the_config_or_where_the_platform_keeps_data() {
        let store = |home: &str, platform: Option<&str>| {
            let mut world = world(&[(HOME_VARIABLE, home)]);
            world.platform_data = platform.map(PathBuf::from);
            made(&world, "install").store
        };
        assert_eq!(store("/h", Some("/d")), Some("/h/store".into()));
        assert_eq!(store("", Some("/d")), Some("/d/vibe-pkg/store".into()));
        assert_eq!(store("", Some(".local")), None);
        assert_eq!(store("", None), None);
    }

    #[test]
    fn no_config_means_the_defaults() {
        let home = tempfile::tempdir().unwrap();
        let world = world(&[(HOME_VARIABLE, home.path().to_str().unwrap())]);
        assert_eq!(
            read_config(&world).unwrap(),
            ConfigFile {
                path: Some(home.path().join(CONFIG_NAME)),
                ..ConfigFile::default()
            }
        );
        std::fs::write(
            home.path().join(CONFIG_NAME),
            "[hooks]\npolicy = \"never\"\n",
        )
        .unwrap();
        assert_eq!(
            read_config(&world).unwrap().config.hook_policy,
            HookPolicy::Never
        );
    }

    #[test]
    fn a_config_that_cannot_be_read_is_refused_by_name() {
        let home = tempfile::tempdir().unwrap();
        let path = home.path().join(CONFIG_NAME);
        let world = world(&[(HOME_VARIABLE, home.path().to_str().unwrap())]);
        std::fs::create_dir(&path).unwrap();
        assert!(
            read_config(&world)
                .unwrap_err()
                .message
                .contains(CONFIG_NAME)
        );
        std::fs::remove_dir(&path).unwrap();
        let length = usize::try_from(MANIFEST_BYTES).unwrap();
        std::fs::write(&path, "#".repeat(length)).unwrap();
        assert_eq!(read_config(&world).unwrap().config, UserConfig::default());
        std::fs::write(&path, "#".repeat(length + 1)).unwrap();
        assert_eq!(read_config(&world).unwrap_err().kind, "config");
    }

    #[test]
    fn a_wrong_config_shows_its_line_and_an_odd_one_warns() {
        let path = Path::new("/h/config.toml");
        let error = parse_config(path, b"[hooks]\npolicy = \"maybe\"\n").unwrap_err();
        assert_eq!((error.kind, error.exit_code), ("config", exit_code::USAGE));
        assert_eq!(error.place.unwrap().position.unwrap().line, 2);
        let warnings = parse_config(path, b"[hooks]\npolicyy = 1\n")
            .unwrap()
            .warnings;
        assert_eq!(warnings.len(), 1);
        assert!(
            warnings[0].starts_with("/h/config.toml:2:1: "),
            "{warnings:?}"
        );
        assert!(
            warnings[0].ends_with("; did you mean `policy`?"),
            "{warnings:?}"
        );
    }

    #[test]
    fn colour_is_for_terminals_that_want_it() {
        let check = |variables: &[(&str, &str)], when, is_terminal, expected| {
            let found = world(variables).wants_colour(when, is_terminal);
            assert_eq!(found, expected, "{variables:?} {when:?} {is_terminal}");
        };
        check(&[], ColorWhen::Auto, true, true);
        check(&[("NO_COLOR", "")], ColorWhen::Auto, true, true);
        check(&[("NO_COLOR", "1")], ColorWhen::Auto, true, false);
        check(&[("TERM", "dumb")], ColorWhen::Auto, true, false);
        check(&[], ColorWhen::Auto, false, false);
        check(&[("NO_COLOR", "1")], ColorWhen::Always, false, true);
        check(&[], ColorWhen::Never, true, false);
    }

    #[cfg(unix)]
    #[test]
    fn progress_is_for_terminals_that_can_take_a_line_back() {
        let check = |variables: &[(&str, &str)], is_terminal, expected| {
            let mut world = world(variables);
            world.stderr_is_terminal = is_terminal;
            assert_eq!(
                world.wants_progress(),
                expected,
                "{variables:?} {is_terminal}"
            );
        };
        check(&[("TERM", "xterm")], true, true);
        check(&[("TERM", "xterm"), ("NO_COLOR", "1")], true, true);
        check(&[("TERM", "xterm")], false, false);
        check(&[("TERM", "dumb")], true, false);
        check(&[], true, false);
        check(&[("TERM", "xterm"), ("CI", "true")], true, false);
    }
}
