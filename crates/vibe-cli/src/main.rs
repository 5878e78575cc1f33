//! The vibe command: talks to people and machines, and leaves the work to `vibe-install`.

mod answer;
mod arguments;
mod commands;
mod environment;
mod exit_code;
mod locale;
mod near;
mod observer;
mod output;
mod paste;
mod progress;
mod question;
mod render;
mod settings;
mod user_error;

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;

use etcetera::BaseStrategy;
use tracing_subscriber::EnvFilter;
use vibe_core::Cancellation;

use crate::settings::World;

/// The variable that holds a filter for the log, in the syntax of `tracing`.
const LOG_VARIABLE: &str = "VIBE_LOG";
/// What is never logged, whatever the filter says: the bytes of requests, credentials among them.
const NEVER_LOGGED: &str = "ureq_proto::util=off";
/// So many interrupts end the program where it stands; what it was doing is finished by the next
/// run, as after a crash.
const INTERRUPTS_TO_END: usize = 3;

fn main() -> ExitCode {
    let mut world = read_world();
    world
        .warnings
        .extend(start_log(world.environment.get(OsStr::new(LOG_VARIABLE))));
    let cancel = Cancellation::new();
    if let Err(error) = watch_interrupts(cancel.clone()) {
        world
            .warnings
            .push(format!("an interrupt will end vibe at once: {error}"));
    }
    ExitCode::from(commands::run(&world, &cancel))
}

#[expect(
    clippy::disallowed_methods,
    reason = "the one place that reads the environment and the working directory"
)]
fn read_world() -> World {
    let environment: BTreeMap<OsString, OsString> = std::env::vars_os()
        .filter(|(name, _)| !is_of_another_repository(name))
        .collect();
    let platform = etcetera::choose_base_strategy().ok();
    World {
        arguments: std::env::args_os().collect(),
        environment,
        directory: std::env::current_dir(),
        executable: std::env::current_exe().unwrap_or_else(|_| PathBuf::from("vibe")),
        platform_config: platform.as_ref().map(BaseStrategy::config_dir),
        platform_data: platform.as_ref().map(BaseStrategy::data_dir),
        platform_cache: platform.as_ref().map(BaseStrategy::cache_dir),
        stdin_is_terminal: std::io::stdin().is_terminal(),
        stdout_is_terminal: std::io::stdout().is_terminal(),
        stdout_width: progress::width_of(&console::Term::stdout()),
        stderr_is_terminal: std::io::stderr().is_terminal(),
        warnings: Vec::new(),
    }
}

/// Whether the variable `name` tells git of a repository, or a configuration, that is the caller's
/// own business. Which ssh to use is not.
fn is_of_another_repository(name: &OsStr) -> bool {
    let name = name.to_string_lossy().to_ascii_uppercase();
    name.starts_with("GIT_") && !matches!(name.as_str(), "GIT_SSH" | "GIT_SSH_COMMAND")
}

/// Starts the log on standard error if `filter` asks for one; a filter that makes no sense is a
/// warning.
fn start_log(filter: Option<&OsString>) -> Option<String> {
    let filter = filter?.to_string_lossy();
    if filter.is_empty() {
        return None;
    }
    match EnvFilter::try_new(&filter) {
        Ok(filter) => {
            let never = NEVER_LOGGED.parse().expect("it is a directive");
            tracing_subscriber::fmt()
                .with_env_filter(filter.add_directive(never))
                .with_writer(std::io::stderr)
                .with_ansi(false)
                .log_internal_errors(false)
                .init();
            None
        }
        Err(error) => Some(format!(
            "{LOG_VARIABLE} is no log filter, so nothing is logged: {error}"
        )),
    }
}

#[expect(clippy::disallowed_methods, reason = "only main ends the process")]
fn watch_interrupts(cancel: Cancellation) -> Result<(), ctrlc::Error> {
    ctrlc::set_handler(move || {
        cancel.interrupt();
        if cancel.count() >= INTERRUPTS_TO_END {
            let terminal = console::Term::stderr();
            if terminal.is_term() {
                // Progress, if there is any, is not left behind.
                let _ = terminal.clear_line();
            }
            std::process::exit(i32::from(exit_code::INTERRUPTED));
        }
    })
}
