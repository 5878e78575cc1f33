//! `vibe doctor`.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::Duration;

use vibe_core::formats::config::{HookPolicy, stated_keys};
use vibe_core::limits::HOOK_TIMEOUT_SECONDS;
use vibe_core::text::escape;
use vibe_install::{CheckStatus, DoctorReport, doctor};

use super::App;
use crate::answer::Answer;
use crate::environment::{Environment, Setting};
use crate::exit_code;
use crate::render;
use crate::settings::Origin;
use crate::user_error::UserError;

/// Variables that are shown as set, and never with what they hold: credentials may be in it.
const UNSHOWN: [&str; 9] = [
    "GIT_SSH_COMMAND",
    "GIT_SSH",
    "https_proxy",
    "HTTPS_PROXY",
    "http_proxy",
    "all_proxy",
    "ALL_PROXY",
    "no_proxy",
    "NO_PROXY",
];
/// How the variables with tokens for git hosts begin.
const TOKEN_PREFIX: &str = "VIBE_GIT_TOKEN_";

/// Reports the environment; what keeps commands from working is a failure.
pub(super) fn run(app: &App<'_>) -> Result<Answer, UserError> {
    let report = doctor(&app.context()).map_err(|error| app.error(&error))?;
    let settings = Settings::of(app, &report);
    let count = |status| {
        let checks = report.checks.iter();
        checks.filter(|check| check.status == status).count()
    };
    let environment = Environment {
        problems: count(CheckStatus::Problem),
        warnings: count(CheckStatus::Warning),
        settings,
        checks: report.checks,
    };
    let mut answer = Answer::view(&environment, render::doctor::text(&environment))?;
    if environment.problems > 0 {
        answer.exit_code = exit_code::FAILED;
    }
    Ok(answer)
}

/// The settings being listed.
struct Settings<'a> {
    app: &'a App<'a>,
    stated: BTreeSet<String>,
    found: Vec<Setting>,
}

impl<'a> Settings<'a> {
    fn of(app: &'a App<'a>, report: &DoctorReport) -> Vec<Setting> {
        let text = app.origins.config.text.as_deref().unwrap_or_default();
        let mut settings = Self {
            app,
            stated: stated_keys(text),
            found: Vec::new(),
        };
        settings.places();
        settings.modes();
        settings.hooks(report);
        settings.limits();
        settings.hosts();
        settings.variables();
        settings.found
    }

    fn add(&mut self, name: &str, value: impl Into<String>, origin: Origin) {
        let (origin, from) = match origin {
            Origin::Flag(option) => ("flag", Some(option.to_owned())),
            Origin::Variable(variable) => ("environment", Some(variable.to_owned())),
            Origin::Config => ("config", self.config_path()),
            Origin::Default => ("default", None),
        };
        self.found.push(Setting {
            name: name.to_owned(),
            value: value.into(),
            origin,
            from,
        });
    }

    fn config_path(&self) -> Option<String> {
        let path = self.app.origins.config.path.as_deref();
        path.map(shown)
    }

    /// A setting that only the config can state.
    fn add_of_config(&mut self, name: &str, value: impl Into<String>) {
        let origin = match self.stated.contains(name) {
            true => Origin::Config,
            false => Origin::Default,
        };
        self.add(name, value, origin);
    }

    fn places(&mut self) {
        let (settings, origins) = (&self.app.settings, &self.app.origins);
        self.add("project", shown(&settings.start), origins.project);
        let config = match (&origins.config.path, &origins.config.text) {
            (Some(path), Some(_)) => shown(path),
            (Some(path), None) => format!("{}, not there", shown(path)),
            (None, _) => "none".to_owned(),
        };
        self.add("config", config, origins.places);
        let place =
            |path: Option<&std::path::PathBuf>| path.map_or("none".to_owned(), |p| shown(p));
        self.add("store", place(settings.store.as_ref()), origins.places);
        let git = place(settings.git_cache.as_ref());
        self.add("git repositories", git, origins.places);
    }

    fn modes(&mut self) {
        let (settings, origins) = (&self.app.settings, &self.app.origins);
        let offline = if settings.is_offline() { "yes" } else { "no" };
        self.add("offline", offline, origins.offline);
        let mode = settings.link_mode.as_str();
        self.add("link-mode", mode, origins.link_mode);
        let jobs = settings
            .jobs
            .map_or("a processor each".to_owned(), |jobs| jobs.to_string());
        self.add("jobs", &jobs, origins.jobs);
        let (color, origin) = origins.color;
        self.add("color", color, origin);
    }

    fn hooks(&mut self, report: &DoctorReport) {
        let policy = report.hook_policy.as_str();
        match report.hook_policy_set_by {
            Some("VIBE_NO_HOOKS") => {
                self.add("hooks.policy", policy, Origin::Variable("VIBE_NO_HOOKS"));
            }
            Some(by) if by.ends_with("vibe.toml") => self.found.push(Setting {
                name: "hooks.policy".to_owned(),
                value: policy.to_owned(),
                origin: "project",
                from: Some(by.to_owned()),
            }),
            Some(_) => self.add("hooks.policy", policy, Origin::Config),
            None => self.add_of_config("hooks.policy", HookPolicy::InstallIsConsent.as_str()),
        }
        let config = &self.app.settings.config;
        let seconds = config.hook_timeout_seconds.unwrap_or(HOOK_TIMEOUT_SECONDS);
        let timeout = humantime::format_duration(Duration::from_secs(seconds));
        self.add_of_config("hooks.timeout", timeout.to_string());
        self.add_of_config("hooks.pass-env", list(&config.pass_env));
    }

    fn limits(&mut self) {
        let limits = self.app.settings.config.limits;
        for (name, value) in [
            ("limits.package-bytes", limits.package_bytes.to_string()),
            ("limits.package-entries", limits.package_entries.to_string()),
            ("limits.file-bytes", limits.file_bytes.to_string()),
        ] {
            self.add_of_config(name, value);
        }
    }

    /// Both sources count, so both are shown.
    fn hosts(&mut self) {
        const NAME: &str = "git.insecure-hosts";
        let origins = &self.app.origins;
        self.add_of_config(NAME, list(&origins.config.config.insecure_hosts));
        if !origins.added_hosts.is_empty() {
            let added = list(&origins.added_hosts);
            self.add(NAME, added, Origin::Variable("VIBE_INSECURE_HOSTS"));
        }
    }

    /// Variables that have no other name.
    fn variables(&mut self) {
        let settings = &self.app.settings;
        if let Some(filter) = settings.variable("VIBE_LOG") {
            let filter = escape(&filter.to_string_lossy());
            self.add("log", filter, Origin::Variable("VIBE_LOG"));
        }
        let names = settings.environment.keys();
        let names = names.filter_map(|name| name.to_str());
        let is_named = |name: &&str| name.starts_with(TOKEN_PREFIX) || UNSHOWN.contains(name);
        for name in names.filter(is_named) {
            if settings.variable(name).is_some() {
                self.found.push(Setting {
                    name: escape(name),
                    value: "set".to_owned(),
                    origin: "environment",
                    from: Some(escape(name)),
                });
            }
        }
    }
}

fn list(words: &[String]) -> String {
    match words.is_empty() {
        true => "none".to_owned(),
        false => escape(&words.join(", ")),
    }
}

fn shown(path: &Path) -> String {
    escape(&path.to_string_lossy())
}
