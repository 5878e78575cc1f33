//! Checks of the workspace itself, run as `cargo xtask <check>`.
#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a developer's command talks to its terminal"
)]

mod conform;
mod layers;
mod test_list;
mod workspace;

use std::process::ExitCode;

use workspace::{Error, Workspace};

const USAGE: &str = "\
usage: cargo xtask <check>

  conform   every requirement of the finished parts is shown by a test that exists
  layers    every dependency between our crates is an allowed arrow";

/// What a check found: a line for each problem, and the line that sums it up.
struct Outcome {
    problems: Vec<String>,
    summary: String,
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let check = match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["conform"] => conform::run,
        ["layers"] => layers::run,
        ["help" | "--help" | "-h"] => {
            println!("{USAGE}");
            return ExitCode::SUCCESS;
        }
        _ => {
            eprintln!("{USAGE}");
            return ExitCode::from(2);
        }
    };
    report(check(&Workspace::of_this_build()))
}

fn report(result: Result<Outcome, Error>) -> ExitCode {
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
