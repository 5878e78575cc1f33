//! `cargo xtask bench`: what an install costs, beside other programs that do the same.
//!
//! Figures of one run are compared with each other and with nothing else: the programs take turns,
//! and a budget is a ratio inside a round. What is measured lies on a file system made for it where
//! that is possible, and every run gets a directory of its own that nobody used before.

mod error;
mod git;
mod ground;
mod measure;
mod report;
mod repositories;
mod system_calls;

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use clap::{Args, Subcommand};
use serde::Deserialize;

use crate::Outcome;
use crate::workspace::{Workspace, parse_json};
use error::Error;
use ground::Ground;

/// What can be measured.
#[derive(Subcommand)]
pub(crate) enum Bench {
    /// 20 packages with 430 files in local git repositories: cold, warm offline and with nothing
    /// to do, beside `git clone` of the same and bun. Exit 1 when over a budget.
    Git(Options),
}

/// How to measure.
#[derive(Args)]
pub(crate) struct Options {
    /// Rounds that count; one before them does not.
    #[arg(long, value_name = "N", default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    rounds: u16,
    /// Where to measure: on a file system that is made in it, if this user may mount one, else on
    /// its own. [default: bench in cargo's target directory]
    #[arg(long, value_name = "DIR")]
    work: Option<PathBuf>,
    /// The program to measure. [default: a release build]
    #[arg(long, value_name = "PATH")]
    vibe: Option<PathBuf>,
    /// The bun to measure beside. [default: the one on PATH]
    #[arg(long, value_name = "PATH", env = "BUN")]
    bun: Option<PathBuf>,
    /// Installs bun with npm into the work directory where there is none.
    #[arg(long)]
    with_bun: bool,
    /// Where all programs are looked for, also by the measured ones.
    #[arg(long, env = "PATH", default_value = "", hide = true)]
    path: OsString,
    /// This process has mounts of its own.
    #[arg(long, hide = true)]
    has_own_mounts: bool,
}

/// The programs of a measurement, by their absolute paths.
struct Tools {
    vibe: PathBuf,
    git: PathBuf,
    /// Does nothing: what every start of a process costs.
    nothing: PathBuf,
    bun: Option<PathBuf>,
    strace: Option<PathBuf>,
    /// Where these find their own helpers.
    path: OsString,
}

/// Measures, prints the table, and says what is over its budget.
pub(crate) fn run(workspace: &Workspace, bench: &Bench) -> Result<Outcome, Error> {
    let Bench::Git(options) = bench;
    if !options.has_own_mounts {
        ground::restart_with_own_mounts(&options.path)?;
    }
    let work = work_directory(workspace, options)?;
    let tools = Tools::find(workspace, options, &work)?;
    let ground = Ground::new(&work, options.has_own_mounts, &options.path)?;
    println!("{}", ground.description());
    git::run(&tools, &ground, usize::from(options.rounds))
}

impl Tools {
    fn find(workspace: &Workspace, options: &Options, work: &Path) -> Result<Self, Error> {
        let path = &options.path;
        let needed = |name: &str| {
            find_program(name, path).ok_or_else(|| Error::NoProgram {
                name: name.to_owned(),
            })
        };
        let vibe = match &options.vibe {
            Some(vibe) => canonical(vibe)?,
            None => built(workspace)?,
        };
        Ok(Self {
            vibe,
            git: needed("git")?,
            nothing: needed("true")?,
            bun: bun(workspace, options, work)?,
            strace: find_program("strace", path),
            path: path.clone(),
        })
    }
}

/// The program `name` on `path`.
fn find_program(name: &str, path: &OsString) -> Option<PathBuf> {
    // Names without a separator are looked for on the path alone, whatever the directory is.
    which::which_in(name, Some(path), Path::new("/")).ok()
}

fn canonical(path: &Path) -> Result<PathBuf, Error> {
    std::fs::canonicalize(path).map_err(|source| Error::files("finding", path, source))
}

/// Where to measure, which exists from now on.
fn work_directory(workspace: &Workspace, options: &Options) -> Result<PathBuf, Error> {
    #[derive(Deserialize)]
    struct Metadata {
        target_directory: PathBuf,
    }
    let work = match &options.work {
        Some(work) => work.clone(),
        None => {
            let arguments = ["metadata", "--no-deps", "--format-version", "1"];
            let text = workspace.output("cargo", &arguments)?;
            let metadata: Metadata = parse_json("cargo metadata", &text)?;
            metadata.target_directory.join("bench")
        }
    };
    std::fs::create_dir_all(&work).map_err(|source| Error::files("creating", &work, source))?;
    canonical(&work)
}

/// A release build of vibe.
fn built(workspace: &Workspace) -> Result<PathBuf, Error> {
    #[derive(Deserialize)]
    struct Message {
        executable: Option<PathBuf>,
    }
    let format = "--message-format=json-render-diagnostics";
    let arguments = ["build", "--release", "--package", "vibe-cli", format];
    println!("building vibe ...");
    let text = workspace.output("cargo", &arguments)?;
    for line in text.lines() {
        let message: Message = parse_json("cargo build", line)?;
        if let Some(executable) = message.executable {
            return Ok(executable);
        }
    }
    Err(Error::NoProgram {
        name: "vibe".to_owned(),
    })
}

/// The bun that was named, the one on the path, or one that is installed here.
fn bun(workspace: &Workspace, options: &Options, work: &Path) -> Result<Option<PathBuf>, Error> {
    if let Some(bun) = &options.bun {
        return canonical(bun).map(Some);
    }
    let found = find_program("bun", &options.path);
    if found.is_some() || !options.with_bun {
        return Ok(found);
    }
    let place = work.join("bun");
    let installed = place.join("node_modules/bun/bin/bun.exe");
    if !installed.exists() {
        std::fs::create_dir_all(&place)
            .map_err(|source| Error::files("creating", &place, source))?;
        let prefix = format!("--prefix={}", place.display());
        let arguments = ["install", "--no-audit", "--no-fund", &prefix, "bun"];
        println!("installing bun in {} ...", place.display());
        workspace.output("npm", &arguments)?;
    }
    canonical(&installed).map(Some)
}
