//! Checks and measurements of the workspace itself, run as `cargo xtask <command>`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer's command talks to its terminal"
)]

mod bench;
mod conform;
mod layers;
mod test_list;
mod workspace;

use std::fmt::Display;
use std::process::ExitCode;

use clap::Parser;

use workspace::Workspace;

/// Checks and measurements of the workspace itself.
#[derive(Parser)]
#[command(bin_name = "cargo xtask")]
enum Command {
    /// Is every requirement of the finished parts shown by a test that exists?
    Conform,
    /// Is every dependency between our crates an allowed arrow?
    Layers,
    /// What an install costs, beside other programs and the budgets.
    #[command(subcommand)]
    Bench(bench::Bench),
}

/// What a command found: a line for each problem, and the line that sums it up.
struct Outcome {
    problems: Vec<String>,
    summary: String,
}

fn main() -> ExitCode {
    let workspace = Workspace::of_this_build();
    match Command::parse() {
        Command::Conform => report(conform::run(&workspace)),
        Command::Layers => report(layers::run(&workspace)),
        Command::Bench(bench) => report(bench::run(&workspace, &bench)),
    }
}

fn report(result: Result<Outcome, impl Display>) -> ExitCode {
    match result {
        Ok(outcome) => {
            outcome.problems.iter().for_each(|line| eprintln!("{line}"));
            println!("{}", outcome.summary);
            ExitCode::from(u8::from(!outcome.problems.is_empty()))
        }
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
