//! The command line.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand, ValueEnum};
use clap_complete::Shell;
use vibe_core::hook::Phase;
use vibe_core::specifier::Specifier;
use vibe_core::version::parse_version;
use vibe_core::{Constraint, PackageId, RemoteUrl, Version};
use vibe_install::WantedLinkMode;

/// The longest time limit that an install hook can be given.
const HOOK_TIMEOUT_MAX: Duration = Duration::from_secs(24 * 60 * 60);

/// The parsed command line.
#[derive(Debug, Parser)]
#[command(
    name = "vibe",
    version,
    about = "A package manager for agent tooling",
    max_term_width = 100
)]
pub(crate) struct Arguments {
    /// What holds for every command.
    #[command(flatten)]
    pub(crate) global: Global,
    /// What to do.
    #[command(subcommand)]
    pub(crate) command: Command,
}

/// What holds for every command.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub(crate) struct Global {
    /// Work on the project in DIR, or above it, instead of the working directory
    #[arg(long, value_name = "DIR", global = true)]
    pub(crate) project: Option<PathBuf>,
    /// Print exactly one JSON document on standard output, also on failure
    #[arg(long, global = true)]
    pub(crate) json: bool,
    /// Print only warnings, errors and what a command was asked to show
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,
    /// Also print what was left as it is, and each step as it is taken
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,
    /// When to use colour
    #[arg(long, value_name = "WHEN", default_value = "auto", global = true)]
    pub(crate) color: ColorWhen,
    /// Use no network
    #[arg(long, global = true)]
    pub(crate) offline: bool,
}

/// When to use colour.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum ColorWhen {
    /// On a terminal, unless `NO_COLOR` is set
    #[default]
    Auto,
    /// Always
    Always,
    /// Never
    Never,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Start a project, or a package
    #[command(after_help = "Example:\n  vibe init my-package --package")]
    Init(InitArguments),
    /// Install what vibe.toml requires, and the packages named here
    #[command(
        visible_aliases = ["add", "i"],
        after_help = "Example:\n  vibe install org.example/lint@^2.1"
    )]
    Install(InstallArguments),
    /// Take what the requirements allow now, instead of what vibe.lock holds
    #[command(after_help = "Example:\n  vibe update org.example/lint --dry-run")]
    Update(UpdateArguments),
    /// Take requirements out of vibe.toml, and remove what nothing needs any more
    #[command(
        visible_aliases = ["remove", "rm"],
        after_help = "Example:\n  vibe uninstall org.example/lint"
    )]
    Uninstall(UninstallArguments),
    /// Put packages back to what the lock says
    #[command(after_help = "Example:\n  vibe reinstall org.example/lint --force")]
    Reinstall(ReinstallArguments),
    /// Prove, or restore, that everything on disk is what the lock says
    #[command(after_help = "Example:\n  vibe verify --repair")]
    Verify(VerifyArguments),
    /// List the installed packages, or their items
    #[command(after_help = "Example:\n  vibe list --items")]
    List(ListArguments),
    /// Show which packages require which
    #[command(after_help = "Example:\n  vibe tree --invert org.example/core")]
    Tree(TreeArguments),
    /// Say what holds a package in the project
    #[command(after_help = "Example:\n  vibe why org.example/core")]
    Why(WhyArguments),
    /// Show what an update would bring, and what there is besides
    #[command(after_help = "Example:\n  vibe outdated org.example/lint")]
    Outdated(OutdatedArguments),
    /// Show all that is known of a package, installed or not
    #[command(after_help = "Example:\n  vibe show org.example/lint@^2")]
    Show(ShowArguments),
    /// Look for everything that is wrong with a package of one's own, before it is published
    #[command(after_help = "Example:\n  vibe check my-package")]
    Check(CheckArguments),
    /// Publish a package of one's own to a registry that is a directory
    #[command(after_help = "Example:\n  vibe publish my-package --registry acme --dry-run")]
    Publish(PublishArguments),
    /// Look at install hooks, or run them
    #[command(subcommand, after_help = "Example:\n  vibe hooks list")]
    Hooks(HooksCommand),
    /// Look at past runs
    #[command(subcommand, after_help = "Example:\n  vibe runs show")]
    Runs(RunsCommand),
    /// Look at what is kept for all projects, prove it or remove it
    #[command(subcommand, after_help = "Example:\n  vibe cache list")]
    Cache(CacheCommand),
    /// Report what this machine and the project offer, and where each setting came from
    #[command(after_help = "Example:\n  vibe doctor")]
    Doctor,
    /// Print a script that completes command lines in a shell
    #[command(after_help = "Example:\n  eval \"$(vibe completions bash)\"")]
    Completions(CompletionsArguments),
}

impl Command {
    /// The command as it is written, without its arguments.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Command::Init(_) => "init",
            Command::Install(_) => "install",
            Command::Update(_) => "update",
            Command::Uninstall(_) => "uninstall",
            Command::Reinstall(_) => "reinstall",
            Command::Verify(_) => "verify",
            Command::List(_) => "list",
            Command::Tree(_) => "tree",
            Command::Why(_) => "why",
            Command::Outdated(_) => "outdated",
            Command::Show(_) => "show",
            Command::Check(_) => "check",
            Command::Publish(_) => "publish",
            Command::Hooks(HooksCommand::List(_)) => "hooks list",
            Command::Hooks(HooksCommand::Log(_)) => "hooks log",
            Command::Hooks(HooksCommand::Run(_)) => "hooks run",
            Command::Runs(RunsCommand::List) => "runs list",
            Command::Runs(RunsCommand::Show(_)) => "runs show",
            Command::Cache(CacheCommand::Path) => "cache path",
            Command::Cache(CacheCommand::List) => "cache list",
            Command::Cache(CacheCommand::Verify) => "cache verify",
            Command::Cache(CacheCommand::Gc(_)) => "cache gc",
            Command::Cache(CacheCommand::Clean) => "cache clean",
            Command::Doctor => "doctor",
            Command::Completions(_) => "completions",
        }
    }

    /// The options of commands that run install hooks.
    pub(crate) fn run_options(&self) -> RunOptions {
        match self {
            Command::Install(arguments) => arguments.run.clone(),
            Command::Update(arguments) => arguments.run.clone(),
            Command::Uninstall(arguments) => arguments.run.clone(),
            Command::Reinstall(arguments) => arguments.run.clone(),
            Command::Verify(arguments) => arguments.run.clone(),
            Command::Hooks(HooksCommand::Run(arguments)) => arguments.run.clone(),
            Command::Init(_)
            | Command::List(_)
            | Command::Tree(_)
            | Command::Why(_)
            | Command::Outdated(_)
            | Command::Show(_)
            | Command::Check(_)
            | Command::Publish(_)
            | Command::Hooks(HooksCommand::List(_) | HooksCommand::Log(_))
            | Command::Runs(_)
            | Command::Cache(_)
            | Command::Doctor
            | Command::Completions(_) => RunOptions::default(),
        }
    }

    /// How the files of new slots are to be placed, where the command line says.
    pub(crate) fn link_mode(&self) -> Option<WantedLinkMode> {
        match self {
            Command::Install(arguments) => arguments.link_mode,
            _ => None,
        }
    }
}

/// The options of commands that run install hooks.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct RunOptions {
    /// Hold every install hook back; it stays due
    #[arg(long)]
    pub(crate) no_hooks: bool,
    /// End an install hook after D, as in 90s or 10m; wins over every other limit
    #[arg(long, value_name = "D", value_parser = parse_hook_timeout)]
    pub(crate) hook_timeout: Option<Duration>,
    /// Fail at once if another vibe works on the project, instead of waiting for it
    #[arg(long)]
    pub(crate) no_wait: bool,
    /// Read and place at most N packages or files at a time [default: a processor each]
    #[arg(short, long, value_name = "N")]
    pub(crate) jobs: Option<NonZeroUsize>,
}

/// The arguments of `init`.
#[derive(Debug, Args)]
pub(crate) struct InitArguments {
    /// Where to start it; made if it is not there [default: the working directory]
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// Start a package, with a pair of install hooks, instead of a project
    #[arg(long)]
    pub(crate) package: bool,
}

/// The arguments of `install`.
#[derive(Debug, Args)]
pub(crate) struct InstallArguments {
    /// Packages to require: group/name, group/name@CONSTRAINT, path:DIR, github:owner/repo[#REF]
    /// or a git URL[#REF]
    #[arg(value_name = "SPEC", value_parser = Specifier::parse)]
    pub(crate) specs: Vec<Specifier>,
    /// Require the package of this git repository
    #[arg(long, value_name = "URL", value_parser = RemoteUrl::parse)]
    pub(crate) git: Option<RemoteUrl>,
    /// Require it at this tag
    #[arg(long, requires = "git", conflicts_with_all = ["branch", "rev"])]
    pub(crate) tag: Option<String>,
    /// Require it at this branch
    #[arg(long, requires = "git", conflicts_with = "rev")]
    pub(crate) branch: Option<String>,
    /// Require it at this revision: a commit, in full or its beginning
    #[arg(long, requires = "git")]
    pub(crate) rev: Option<String>,
    /// Fail if vibe.lock does not satisfy vibe.toml, and leave it as it is
    #[arg(long, visible_alias = "frozen")]
    pub(crate) locked: bool,
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Require exactly the version that is chosen for each SPEC
    #[arg(long, requires = "specs")]
    pub(crate) exact: bool,
    /// Also restore what install hooks changed in their own package, and give up changes and commits
    /// of yours in packages that are git clones
    #[arg(long)]
    pub(crate) force: bool,
    /// How the files of new slots are placed: as-declared, copy or hardlink
    #[arg(long, value_name = "MODE", value_parser = link_mode_parser())]
    pub(crate) link_mode: Option<WantedLinkMode>,
    /// Options of the run.
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

/// The arguments of `update`.
#[derive(Debug, Args)]
pub(crate) struct UpdateArguments {
    /// The packages, with what they need [default: all]
    #[arg(value_name = "ID")]
    pub(crate) packages: Vec<PackageId>,
    /// Take exactly this version of the one package
    #[arg(long, value_name = "V", requires = "packages", value_parser = parse_version)]
    pub(crate) precise: Option<Version>,
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Also give up changes and commits of yours in packages that are git clones
    #[arg(long)]
    pub(crate) force: bool,
    /// Options of the run.
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

/// The arguments of `uninstall`.
#[derive(Debug, Args)]
pub(crate) struct UninstallArguments {
    /// The packages that vibe.toml shall no longer require
    #[arg(value_name = "ID", required = true)]
    pub(crate) packages: Vec<PackageId>,
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Also give up changes and commits of yours in packages that are git clones
    #[arg(long)]
    pub(crate) force: bool,
    /// Options of the run.
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

/// The arguments of `reinstall`.
#[derive(Debug, Args)]
pub(crate) struct ReinstallArguments {
    /// The packages [default: all]
    #[arg(value_name = "ID")]
    pub(crate) packages: Vec<PackageId>,
    /// Also restore what install hooks changed in their own package, and give up changes and commits
    /// of yours in packages that are git clones
    #[arg(long)]
    pub(crate) force: bool,
    /// Options of the run.
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

/// The arguments of `verify`.
#[derive(Debug, Args)]
pub(crate) struct VerifyArguments {
    /// The packages [default: all]
    #[arg(value_name = "ID")]
    pub(crate) packages: Vec<PackageId>,
    /// Put back what is not as the lock says
    #[arg(long)]
    pub(crate) repair: bool,
    /// Also restore what install hooks changed in their own package, and give up changes and commits
    /// of yours in packages that are git clones
    #[arg(long, requires = "repair")]
    pub(crate) force: bool,
    /// Options of the run.
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

/// The arguments of `list`.
#[derive(Debug, Args)]
pub(crate) struct ListArguments {
    /// The packages [default: all]
    #[arg(value_name = "ID")]
    pub(crate) packages: Vec<PackageId>,
    /// List the items of the packages: skills, agents, commands, rules, tools and agent hooks
    #[arg(long)]
    pub(crate) items: bool,
}

/// The arguments of `tree`.
#[derive(Debug, Args)]
pub(crate) struct TreeArguments {
    /// Where to start [default: the project]
    #[arg(value_name = "ID")]
    pub(crate) packages: Vec<PackageId>,
    /// Go no more than N steps from the start
    #[arg(long, value_name = "N")]
    pub(crate) depth: Option<usize>,
    /// Show what requires the packages, instead of what they require
    #[arg(long, requires = "packages")]
    pub(crate) invert: bool,
}

/// The arguments of `why`.
#[derive(Debug, Args)]
pub(crate) struct WhyArguments {
    /// The package
    #[arg(value_name = "ID")]
    pub(crate) package: PackageId,
}

/// The arguments of `outdated`.
#[derive(Debug, Args)]
pub(crate) struct OutdatedArguments {
    /// The packages [default: all]
    #[arg(value_name = "ID")]
    pub(crate) packages: Vec<PackageId>,
    /// Also show the packages of which there is nothing else
    #[arg(long)]
    pub(crate) all: bool,
}

/// The arguments of `show`.
#[derive(Debug, Args)]
pub(crate) struct ShowArguments {
    /// The package: group/name, or group/name@CONSTRAINT
    #[arg(value_name = "ID", value_parser = parse_package)]
    pub(crate) package: (PackageId, Option<Constraint>),
}

/// The arguments of `check`.
#[derive(Debug, Args)]
pub(crate) struct CheckArguments {
    /// The package's directory [default: the one that the working directory is in]
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
}

/// The arguments of `publish`.
#[derive(Debug, Args)]
pub(crate) struct PublishArguments {
    /// The package's directory [default: the one that the working directory is in]
    #[arg(value_name = "DIR")]
    pub(crate) directory: Option<PathBuf>,
    /// The registry, by its name in a `[[registry]]`
    #[arg(long, value_name = "NAME")]
    pub(crate) registry: String,
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

/// What to do with install hooks.
#[derive(Debug, Subcommand)]
pub(crate) enum HooksCommand {
    /// List the declared install hooks, and why each will or will not run next
    #[command(after_help = "Example:\n  vibe hooks list org.example/lint")]
    List(HooksListArguments),
    /// Print the last output of an install hook
    #[command(after_help = "Example:\n  vibe hooks log org.example/lint --phase post-install")]
    Log(HooksLogArguments),
    /// Run the install hooks of a package that are due
    #[command(after_help = "Example:\n  vibe hooks run org.example/lint")]
    Run(HooksRunArguments),
}

/// The arguments of `hooks list`.
#[derive(Debug, Args)]
pub(crate) struct HooksListArguments {
    /// The package [default: all]
    #[arg(value_name = "ID")]
    pub(crate) package: Option<PackageId>,
}

/// The arguments of `hooks log`.
#[derive(Debug, Args)]
pub(crate) struct HooksLogArguments {
    /// The package [default: the one whose install hook ran last]
    #[arg(value_name = "ID")]
    pub(crate) package: Option<PackageId>,
    /// The phase [default: the one that ran last]
    #[arg(long, value_name = "P", value_parser = phase_parser())]
    pub(crate) phase: Option<Phase>,
}

/// The arguments of `hooks run`.
#[derive(Debug, Args)]
pub(crate) struct HooksRunArguments {
    /// The package
    #[arg(value_name = "ID")]
    pub(crate) package: PackageId,
    /// Run this phase, due or not
    #[arg(long, value_name = "P", value_parser = phase_parser())]
    pub(crate) phase: Option<Phase>,
    /// Run every phase, due or not
    #[arg(long)]
    pub(crate) force: bool,
    /// Options of the run.
    #[command(flatten)]
    pub(crate) run: RunOptions,
}

/// What to do with past runs.
#[derive(Debug, Subcommand)]
pub(crate) enum RunsCommand {
    /// List the runs whose evidence is kept, the newest first
    #[command(after_help = "Example:\n  vibe runs list")]
    List,
    /// Show the evidence of one run
    #[command(after_help = "Example:\n  vibe runs show")]
    Show(RunsShowArguments),
}

/// The arguments of `runs show`.
#[derive(Debug, Args)]
pub(crate) struct RunsShowArguments {
    /// The run, as `vibe runs list` names it [default: the newest]
    #[arg(value_name = "RUN")]
    pub(crate) run: Option<String>,
}

/// What to do with what is kept for all projects.
#[derive(Debug, Subcommand)]
pub(crate) enum CacheCommand {
    /// Print the path of the store of packages
    #[command(after_help = "Example:\n  vibe cache path")]
    Path,
    /// List the packages and git repositories that are kept, the largest first
    #[command(after_help = "Example:\n  vibe cache list --json")]
    List,
    /// Read every byte of the store, and move what is damaged out of use
    #[command(after_help = "Example:\n  vibe cache verify")]
    Verify,
    /// Remove what was not used for long, and what killed runs left
    #[command(after_help = "Example:\n  vibe cache gc --unused-for 7d")]
    Gc(CacheGcArguments),
    /// Remove everything that is kept; it is fetched again when it is needed
    #[command(after_help = "Example:\n  vibe cache clean")]
    Clean,
}

/// The arguments of `cache gc`.
#[derive(Debug, Args)]
pub(crate) struct CacheGcArguments {
    /// How long something was not used, as in 12h or 7d; uses are noted to a day
    #[arg(long, value_name = "D", default_value = "30d", value_parser = humantime::parse_duration)]
    pub(crate) unused_for: Duration,
}

/// The arguments of `completions`.
#[derive(Debug, Args)]
pub(crate) struct CompletionsArguments {
    /// The shell that is to read it
    #[arg(value_name = "SHELL")]
    pub(crate) shell: Shell,
}

fn phase_parser() -> impl TypedValueParser<Value = Phase> {
    PossibleValuesParser::new(Phase::ALL.map(Phase::as_str)).map(|word| {
        Phase::ALL
            .into_iter()
            .find(|phase| phase.as_str() == word)
            .expect("only the names of phases are possible values")
    })
}

fn link_mode_parser() -> impl TypedValueParser<Value = WantedLinkMode> {
    PossibleValuesParser::new(WantedLinkMode::ALL.map(WantedLinkMode::as_str)).map(|word| {
        parse_link_mode(&word).expect("only the words of link modes are possible values")
    })
}

/// The link mode that `word` means.
pub(crate) fn parse_link_mode(word: &str) -> Option<WantedLinkMode> {
    WantedLinkMode::ALL
        .into_iter()
        .find(|mode| mode.as_str() == word)
}

fn parse_package(text: &str) -> Result<(PackageId, Option<Constraint>), String> {
    match Specifier::parse(text) {
        Ok(Specifier::Package { id, constraint }) => Ok((id, constraint)),
        Ok(Specifier::Path(_) | Specifier::Git { .. }) => {
            Err("a package is named here as `group/name` or `group/name@CONSTRAINT`".to_owned())
        }
        Err(error) => Err(error.to_string()),
    }
}

fn parse_hook_timeout(text: &str) -> Result<Duration, String> {
    let duration = humantime::parse_duration(text).map_err(|error| error.to_string())?;
    match duration.is_zero() || duration > HOOK_TIMEOUT_MAX {
        true => Err("a time limit is more than nothing and at most 24h".to_owned()),
        false => Ok(duration),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    fn parse(line: &str) -> Result<Arguments, clap::Error> {
        Arguments::try_parse_from(line.split_whitespace())
    }

    #[test]
    fn the_command_line_is_consistent() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn every_command_has_an_example_and_every_option_a_sentence() {
        fn check(command: &clap::Command) {
            for sub in command
                .get_subcommands()
                .filter(|sub| sub.get_name() != "help")
            {
                assert!(sub.get_after_help().is_some(), "{}", sub.get_name());
                assert!(sub.get_about().is_some(), "{}", sub.get_name());
                check(sub);
            }
            for argument in command.get_arguments() {
                assert!(argument.get_help().is_some(), "{}", argument.get_id());
            }
        }
        check(&Arguments::command());
    }

    #[test]
    fn every_command_and_every_option_is_documented() {
        let page = include_str!("../../../docs/commands.md");
        fn check(page: &str, command: &clap::Command, path: &str) {
            for argument in command.get_arguments() {
                let Some(long) = argument.get_long() else {
                    continue;
                };
                let aliases = argument.get_visible_aliases().unwrap_or_default();
                for name in std::iter::once(long).chain(aliases) {
                    let ends = [format!("`--{name}`"), format!("`--{name} ")];
                    let is_there = ends.iter().any(|end| page.contains(end));
                    assert!(is_there, "--{name} of {path}");
                }
            }
            let subcommands = || command.get_subcommands().filter(|s| s.get_name() != "help");
            if !path.is_empty() && subcommands().next().is_none() {
                let ends = [format!("`{path}`"), format!("`{path} ")];
                assert!(ends.iter().any(|end| page.contains(end)), "{path}");
            }
            for sub in subcommands() {
                check(page, sub, format!("{path} {}", sub.get_name()).trim());
            }
        }
        check(page, &Arguments::command(), "");
    }

    #[test]
    fn aliases_mean_install() {
        for word in ["install", "add", "i"] {
            let parsed = parse(&format!("vibe {word} org.example/a --frozen")).unwrap();
            let Command::Install(arguments) = &parsed.command else {
                panic!("{word}")
            };
            assert!(arguments.locked, "{word}");
            assert_eq!(arguments.specs.len(), 1);
            assert_eq!(parsed.command.name(), "install");
        }
    }

    #[test]
    fn aliases_mean_uninstall() {
        for word in ["uninstall", "remove", "rm"] {
            let parsed = parse(&format!("vibe {word} org.example/a")).unwrap();
            assert_eq!(parsed.command.name(), "uninstall", "{word}");
        }
    }

    #[test]
    fn global_options_stand_anywhere() {
        for line in [
            "vibe --json --project /p list",
            "vibe list --project /p --json",
        ] {
            let parsed = parse(line).unwrap();
            assert!(parsed.global.json);
            assert_eq!(parsed.global.project, Some(PathBuf::from("/p")));
        }
    }

    #[test]
    fn options_without_what_they_need_are_refused() {
        for line in [
            "vibe install --exact",
            "vibe verify --force",
            "vibe hooks run",
            "vibe publish",
            "vibe list -q -v",
            "vibe hooks log --phase build",
            "vibe reinstall nogroup",
            "vibe uninstall",
            "vibe install --hook-timeout 0s",
            "vibe install --hook-timeout 25h",
            "vibe install --hook-timeout soon",
            "vibe install --link-mode reflink",
            "vibe install --jobs 0",
            "vibe verify --link-mode copy",
            "vibe cache",
            "vibe cache gc --unused-for soon",
            "vibe cache clean --unused-for 1d",
            "vibe tree --invert",
            "vibe tree --depth deep",
            "vibe why",
            "vibe show path:dir",
            "vibe show org.example/lint@nonsense",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
    }

    #[test]
    fn run_options_reach_every_command_that_runs_install_hooks() {
        let options = "--no-hooks --hook-timeout 1m30s --no-wait -j 3";
        for line in [
            "install",
            "update",
            "reinstall",
            "uninstall org.example/a",
            "verify --repair",
            "hooks run org.example/a",
        ] {
            let run = parse(&format!("vibe {line} {options}"))
                .unwrap()
                .command
                .run_options();
            assert!(run.no_hooks && run.no_wait, "{line}");
            assert_eq!(run.jobs, NonZeroUsize::new(3), "{line}");
            assert_eq!(run.hook_timeout, Some(Duration::from_secs(90)), "{line}");
        }
        assert_eq!(parse_hook_timeout("24h"), Ok(HOOK_TIMEOUT_MAX));
    }

    #[test]
    fn every_link_mode_has_its_word() {
        for mode in WantedLinkMode::ALL {
            let line = format!("vibe install --link-mode {}", mode.as_str());
            assert_eq!(parse(&line).unwrap().command.link_mode(), Some(mode));
        }
        assert_eq!(parse("vibe install").unwrap().command.link_mode(), None);
    }

    #[test]
    fn what_was_used_in_the_last_month_is_kept_unless_said_otherwise() {
        for (line, days) in [("", 30), (" --unused-for 0s", 0), (" --unused-for 7d", 7)] {
            let parsed = parse(&format!("vibe cache gc{line}")).unwrap();
            let Command::Cache(CacheCommand::Gc(arguments)) = parsed.command else {
                panic!("{line}")
            };
            assert_eq!(arguments.unused_for, Duration::from_hours(24) * days);
        }
    }

    #[test]
    fn phases_are_named_as_in_manifests() {
        let parsed = parse("vibe hooks log --phase post-install").unwrap();
        let Command::Hooks(HooksCommand::Log(arguments)) = parsed.command else {
            panic!()
        };
        assert_eq!(arguments.phase, Some(Phase::PostInstall));
    }
}
