//! The commands, each in a file of its own, and what is common to them.

mod cache;
mod check;
mod completions;
mod doctor;
mod hooks;
mod init;
mod install;
mod list;
mod outdated;
mod publish;
mod runs;
mod show;
mod tree;
mod uninstall;
mod verify;
mod why;

use std::ffi::OsString;
use std::time::Instant;

use clap::Parser;
use clap::error::ErrorKind;
use vibe_core::Cancellation;
use vibe_install::{
    Context, Guard, HookRecord, InstallError, Questions, RunReport, Settings, SystemRunner,
    limit_jobs, runs_show,
};

use crate::answer::Answer;
use crate::arguments::{Arguments, ColorWhen, Command, Global};
use crate::exit_code;
use crate::observer::{Reporter, Said, Verbosity};
use crate::output::Stream;
use crate::paste::Paste;
use crate::question::answered_yes;
use crate::render::{self, View};
use crate::settings::{Origins, World, read_config, settings};
use crate::user_error::{FailedHook, UserError, guard_facts, hook_hint};

/// What a command works with.
struct App<'a> {
    settings: Settings,
    origins: Origins,
    reporter: &'a Reporter<'a>,
    runner: SystemRunner,
    cancel: &'a Cancellation,
    paste: Paste,
    verbosity: Verbosity,
    started: Instant,
    /// How wide the terminal is that results go to.
    width: Option<usize>,
    /// Somebody is there to ask.
    can_ask: bool,
}

impl Questions for App<'_> {
    fn may_destroy(&self, guards: &[Guard]) -> bool {
        if !self.can_ask {
            return false;
        }
        let facts = guards.iter().flat_map(guard_facts);
        let lines: Vec<String> = facts.map(|fact| format!("  {fact}\n")).collect();
        let question = format!("this would be lost:\n{}lose it? [y/N] ", lines.concat());
        self.reporter.ask(&question);
        answered_yes(self.cancel)
    }
}

impl App<'_> {
    fn context(&self) -> Context<'_> {
        Context {
            settings: &self.settings,
            observer: self.reporter,
            runner: &self.runner,
            cancel: self.cancel,
            questions: self,
        }
    }

    /// What the user is told of `error`.
    fn error(&self, error: &InstallError) -> UserError {
        let mut told = UserError::of(error, &self.paste);
        if let Some(hook) = &mut told.hook {
            let record = hook.record.clone();
            let found = self.failed_hook(&record, None);
            (hook.log, hook.was_heard) = (found.log, found.was_heard);
        }
        told
    }

    fn view(&self) -> View {
        View {
            verbose: self.verbosity == Verbosity::Verbose,
            elapsed: self.started.elapsed(),
            width: self.width,
        }
    }

    /// The answer of a command that changes packages, or that was asked for its plan.
    fn answer_of_run(&self, report: &RunReport) -> Result<Answer, UserError> {
        let mut answer =
            self.answer_of_run_with(report, render::run::text(report, &self.view()))?;
        answer.is_view = report.dry_run;
        Ok(answer)
    }

    /// The same with another text.
    fn answer_of_run_with(&self, report: &RunReport, text: String) -> Result<Answer, UserError> {
        let mut answer = Answer::new(report, text)?;
        answer.exit_code = exit_code::of_run(report);
        answer.failed_hooks = report
            .flagged()
            .map(|hook| self.failed_hook(hook, report.run.as_deref()))
            .collect();
        answer.hints = report
            .flagged()
            .map(|hook| hook_hint(hook, &self.paste))
            .collect();
        Ok(answer)
    }

    /// A failed hook with what the evidence of `run`, or else of the newest run, says beside it.
    /// Evidence that cannot be read takes nothing from the failure that is told.
    fn failed_hook(&self, record: &HookRecord, run: Option<&str>) -> FailedHook {
        let evidence = runs_show(&self.context(), run).ok().flatten();
        let evidence =
            evidence.filter(|run| run.hooks.iter().any(|hook| hook.started == record.started));
        let log = evidence.as_ref().zip(record.log.as_ref());
        FailedHook {
            record: record.clone(),
            was_heard: self.reporter.was_heard_last(&record.slot, record.phase),
            variables_not_passed: evidence
                .as_ref()
                .is_some_and(|run| !run.variables_not_passed.is_empty()),
            log: log.map(|(run, log)| format!("vibedeps/.state/runs/{}/{log}", run.run)),
        }
    }
}

/// Runs the command line; the exit code.
pub(crate) fn run(world: &World, cancel: &Cancellation) -> u8 {
    match Arguments::try_parse_from(&world.arguments) {
        Ok(arguments) => run_command(world, &arguments, cancel),
        Err(error) => not_a_command(world, &error),
    }
}

fn run_command(world: &World, arguments: &Arguments, cancel: &Cancellation) -> u8 {
    let global = &arguments.global;
    let stdout = Stream::stdout(world.wants_colour(global.color, world.stdout_is_terminal));
    let stderr = Stream::stderr(world.wants_colour(global.color, world.stderr_is_terminal));
    let verbosity = verbosity(global);
    let reporter = Reporter::new(&stderr, verbosity, global.json, world.wants_progress());
    world
        .warnings
        .iter()
        .for_each(|warning| reporter.warning(warning));
    let outcome = outcome(world, arguments, &reporter, cancel);
    let said = reporter.finish();
    match global.json {
        true => stdout.write(&render::document::text(
            arguments.command.name(),
            &outcome,
            &said,
        )),
        false => show(&outcome, verbosity, &stdout, &stderr),
    }
    let exit_code = outcome.map_or_else(|error| error.exit_code, |answer| answer.exit_code);
    end(&stdout, &stderr, exit_code)
}

/// The exit code of a command that has written everything, or tried to.
fn end(stdout: &Stream, stderr: &Stream, exit_code: u8) -> u8 {
    match stdout.failure() {
        Some(why) => {
            let message = "the result could not be written to standard output";
            let error = UserError::new("output", exit_code::FAILED, message).caused_by(why);
            stderr.write(&render::error::text(&error));
            exit_code::heaviest([exit_code, exit_code::FAILED])
        }
        None => exit_code,
    }
}

fn verbosity(global: &Global) -> Verbosity {
    match (global.quiet, global.verbose) {
        (true, _) => Verbosity::Quiet,
        (false, true) => Verbosity::Verbose,
        (false, false) => Verbosity::Normal,
    }
}

fn outcome(
    world: &World,
    arguments: &Arguments,
    reporter: &Reporter<'_>,
    cancel: &Cancellation,
) -> Result<Answer, UserError> {
    if let Command::Completions(arguments) = &arguments.command {
        return completions::run(arguments);
    }
    let config = read_config(world)?;
    let warnings = config.warnings.iter();
    warnings.for_each(|warning| reporter.warning(warning));
    let told = settings(world, &arguments.global, &arguments.command, config)?;
    if let Some(jobs) = told.settings.jobs {
        limit_jobs(jobs);
    }
    let app = App {
        settings: told.settings,
        origins: told.origins,
        reporter,
        runner: SystemRunner,
        cancel,
        paste: Paste::new(arguments.global.project.as_deref()),
        verbosity: verbosity(&arguments.global),
        started: Instant::now(),
        width: world.stdout_width,
        can_ask: world.stdin_is_terminal && world.stderr_is_terminal && !arguments.global.json,
    };
    match &arguments.command {
        Command::Init(arguments) => init::run(&app, arguments),
        Command::Install(arguments) => install::install(&app, arguments),
        Command::Update(arguments) => install::update(&app, arguments),
        Command::Uninstall(arguments) => uninstall::run(&app, arguments),
        Command::Reinstall(arguments) => install::reinstall(&app, arguments),
        Command::Verify(arguments) => verify::run(&app, arguments),
        Command::List(arguments) => list::run(&app, arguments),
        Command::Tree(arguments) => tree::run(&app, arguments),
        Command::Why(arguments) => why::run(&app, arguments),
        Command::Outdated(arguments) => outdated::run(&app, arguments),
        Command::Show(arguments) => show::run(&app, arguments),
        Command::Check(arguments) => check::run(&app, arguments),
        Command::Publish(arguments) => publish::run(&app, arguments),
        Command::Hooks(command) => hooks::run(&app, command),
        Command::Runs(command) => runs::run(&app, command),
        Command::Cache(command) => cache::run(&app, command),
        Command::Doctor => doctor::run(&app),
        Command::Completions(arguments) => completions::run(arguments),
    }
}

/// Shows what came of a command to people. A quiet one shows only what it was asked to look at.
fn show(
    outcome: &Result<Answer, UserError>,
    verbosity: Verbosity,
    stdout: &Stream,
    stderr: &Stream,
) {
    match outcome {
        Ok(answer) => {
            if verbosity != Verbosity::Quiet || answer.is_view {
                stdout.write(&answer.text);
            }
            let failures = answer.failures.iter().map(render::error::text);
            failures.for_each(|text| stderr.write(&text));
            let hooks = answer.failed_hooks.iter().map(render::error::flagged_text);
            hooks.for_each(|text| stderr.write(&text));
            if !answer.hints.is_empty() {
                stderr.write(&format!("{}\n", render::error::hints(&answer.hints)));
            }
        }
        Err(error) => stderr.write(&render::error::text(error)),
    }
}

/// A command line that names no command: help, the version, or a mistake.
fn not_a_command(world: &World, error: &clap::Error) -> u8 {
    let colour = |is_terminal| world.wants_colour(ColorWhen::Auto, is_terminal);
    let stdout = Stream::stdout(colour(world.stdout_is_terminal));
    let stderr = Stream::stderr(colour(world.stderr_is_terminal));
    let text = error.render();
    let exit_code = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => {
            stdout.write(&text.ansi().to_string());
            exit_code::DONE
        }
        _ if wants_json(&world.arguments) => {
            let told = usage_error(&text.to_string());
            stdout.write(&render::document::text("", &Err(told), &Said::default()));
            exit_code::USAGE
        }
        _ => {
            stderr.write(&text.ansi().to_string());
            exit_code::USAGE
        }
    };
    end(&stdout, &stderr, exit_code)
}

fn wants_json(arguments: &[OsString]) -> bool {
    arguments
        .iter()
        .take_while(|word| *word != "--")
        .any(|word| word == "--json")
}

/// What clap says, taken apart: its first line, what belongs to it, and what helps.
fn usage_error(text: &str) -> UserError {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default();
    let message = first.strip_prefix("error: ").unwrap_or(first);
    let mut told = UserError::new("usage", exit_code::USAGE, message);
    let helps = |line: &&str| {
        ["tip:", "Usage:", "For more"]
            .iter()
            .any(|w| line.starts_with(w))
    };
    let (hints, causes): (Vec<&str>, Vec<&str>) = lines.partition(helps);
    told.hints = hints.into_iter().map(str::to_owned).collect();
    told.causes = causes.into_iter().map(str::to_owned).collect();
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_asked_for_before_the_double_dash_only() {
        let check = |line: &str, expected| {
            let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
            assert_eq!(wants_json(&words), expected, "{line}");
        };
        check("vibe --json nonsense", true);
        check("vibe nonsense --json", true);
        check("vibe nonsense", false);
        check("vibe install -- --json", false);
    }

    #[test]
    fn a_usage_error_is_taken_apart() {
        let told = usage_error("error: not given:\n  <SPEC>\n\n  tip: try\n\nUsage: vibe\n");
        assert_eq!((told.kind, told.exit_code), ("usage", 2));
        assert_eq!(told.message, "not given:");
        assert_eq!(told.causes, ["<SPEC>"]);
        assert_eq!(told.hints, ["tip: try", "Usage: vibe"]);
    }

    #[test]
    fn quiet_wins_where_nothing_else_was_said() {
        let check = |quiet, verbose, expected| {
            let global = Global {
                quiet,
                verbose,
                ..Global::default()
            };
            assert_eq!(verbosity(&global), expected);
        };
        check(false, false, Verbosity::Normal);
        check(true, false, Verbosity::Quiet);
        check(false, true, Verbosity::Verbose);
    }
}
