//! The corpus: bare repositories, each with a package and its history.
//!
//! Every byte and every date is fixed, so that commit ids are the same on every machine.

use std::ffi::OsStr;
use std::fmt::Write as _;
use std::fs::File;
use std::path::{Path, PathBuf};

use super::error::Error;
use super::measure::{command, run_quietly};

/// How many packages there are.
pub(crate) const PACKAGES: usize = 20;
/// How many files all packages have together.
pub(crate) const FILES: usize = 430;
/// The tag of the last commit of each.
pub(crate) const TAG: &str = "v1.0.0";
/// Part of the names of all files but the manifests.
pub(crate) const PAGE: &str = "page-";
/// The manifests of a package: ours, and the one bun wants.
const MANIFESTS: usize = 2;
/// How many files have [`PAGE`] in their names.
pub(crate) const PAGES: usize = FILES - MANIFESTS * PACKAGES;
/// The history of each package: the first commit writes all, the others some of its files.
const COMMITS: usize = 10;
/// When the first commit was made: 2024-01-01. The others follow a day later each.
const FIRST_COMMIT_S: u64 = 1_704_067_200;
const DAY_S: u64 = 86_400;

/// The words that pages are made of.
const WORDS: [&str; 32] = [
    "agent", "skill", "rule", "tool", "command", "install", "resolve", "fetch", "verify", "lock",
    "slot", "phase", "payload", "digest", "package", "version", "the", "a", "of", "to", "in",
    "with", "from", "when", "then", "must", "before", "after", "write", "read", "start", "stop",
];

/// The name of a package and of its repository.
pub(crate) fn name(package: usize) -> String {
    format!("part-{package:02}")
}

/// The repository of a package among all.
pub(crate) fn path(all: &Path, package: usize) -> PathBuf {
    all.join(format!("{}.git", name(package)))
}

/// Makes all repositories in the directory `all`.
pub(crate) fn make_all(git: &Path, all: &Path, search_path: &OsStr) -> Result<(), Error> {
    std::fs::create_dir(all).map_err(|source| Error::files("creating", all, source))?;
    (0..PACKAGES).try_for_each(|package| make(git, all, package, search_path))
}

/// Makes one repository, packed as a server's is.
fn make(git: &Path, all: &Path, package: usize, search_path: &OsStr) -> Result<(), Error> {
    let repository = path(all, package);
    let stream = repository.with_extension("stream");
    std::fs::write(&stream, history(package))
        .map_err(|source| Error::files("writing", &stream, source))?;
    let input = File::open(&stream).map_err(|source| Error::files("reading", &stream, source))?;
    let run = |arguments: &[&str], input: Option<File>| {
        let mut git = git_command(git, all, search_path);
        git.args(arguments);
        if let Some(input) = input {
            git.stdin(input);
        }
        run_quietly(&mut git)
    };
    let directory = format!("--git-dir={}", repository.display());
    let init = ["init", "--quiet", "--bare", "--template="];
    run(
        &[
            &directory,
            init[0],
            init[1],
            init[2],
            init[3],
            "--initial-branch=main",
        ],
        None,
    )?;
    run(&[&directory, "fast-import", "--quiet"], Some(input))?;
    run(&[&directory, "repack", "-a", "-d", "-q"], None)?;
    std::fs::remove_file(&stream).map_err(|source| Error::files("removing", &stream, source))
}

/// The git program, without anybody's configuration.
pub(crate) fn git_command(git: &Path, directory: &Path, path: &OsStr) -> std::process::Command {
    let mut command = command(git, directory, path);
    command
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env(
            "GIT_CONFIG_GLOBAL",
            if cfg!(windows) { "NUL" } else { "/dev/null" },
        )
        .env("GIT_TERMINAL_PROMPT", "0")
        .env("LC_ALL", "C");
    command
}

/// The history of a package, as `git fast-import` reads it.
fn history(package: usize) -> String {
    let mut stream = String::new();
    for commit in 0..COMMITS {
        let when = FIRST_COMMIT_S + DAY_S * commit as u64;
        let message = format!("{}: day {commit}\n", name(package));
        stream.push_str("commit refs/heads/main\n");
        push(
            &mut stream,
            format_args!("committer Bench <bench@example.invalid> {when} +0000\n"),
        );
        push_data(&mut stream, &message);
        for (path, text) in files(package, commit) {
            push(&mut stream, format_args!("M 100644 inline {path}\n"));
            push_data(&mut stream, &text);
        }
    }
    push(
        &mut stream,
        format_args!("reset refs/tags/{TAG}\nfrom refs/heads/main\n"),
    );
    stream
}

fn push(stream: &mut String, line: std::fmt::Arguments<'_>) {
    stream.write_fmt(line).expect("a string takes everything");
}

fn push_data(stream: &mut String, text: &str) {
    push(stream, format_args!("data {}\n{text}\n", text.len()));
}

/// The files that `commit` writes: the first one all of them, the others every ninth page.
fn files(package: usize, commit: usize) -> Vec<(String, String)> {
    let pages = PAGES / PACKAGES + usize::from(package < PAGES % PACKAGES);
    let is_written = |page: &usize| commit == 0 || page % (COMMITS - 1) == commit - 1;
    let mut files: Vec<_> = (0..pages)
        .filter(is_written)
        .map(|page| (page_path(page), page_text(package, page, commit)))
        .collect();
    if commit == 0 {
        let name = name(package);
        let vibe =
            format!("[package]\ngroup = \"org.bench\"\nname = \"{name}\"\nversion = \"1.0.0\"\n");
        let bun = format!("{{ \"name\": \"{name}\", \"version\": \"1.0.0\" }}\n");
        files.push(("vibe.toml".to_owned(), vibe));
        files.push(("package.json".to_owned(), bun));
    }
    files
}

/// Where a page lies: some at the root, the others in directories up to three deep.
fn page_path(page: usize) -> String {
    let directory = ["", "docs/", "references/topic/", "references/deep/a/"][page % 4];
    format!("{directory}{PAGE}{page:02}.md")
}

/// 2 to 6 KiB of text, other text for each commit.
fn page_text(package: usize, page: usize, commit: usize) -> String {
    let mut state = (package as u64) << 32 | (page as u64) << 16 | commit as u64;
    let mut text = format!("# {} {page}\n", name(package));
    let bytes = 2048 + (next(&mut state) % 4096) as usize;
    while text.len() < bytes {
        for _ in 0..10 {
            text.push_str(WORDS[next(&mut state) as usize % WORDS.len()]);
            text.push(' ');
        }
        text.push('\n');
    }
    text
}

/// The next of a fixed sequence of numbers (splitmix64), which begins anywhere.
fn next(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_packages_have_430_files_together_and_every_page_changes_once() {
        let first: Vec<_> = (0..PACKAGES).map(|package| files(package, 0)).collect();
        assert_eq!(first.iter().map(Vec::len).sum::<usize>(), FILES);
        for (package, first) in first.iter().enumerate() {
            let mut later: Vec<String> = (1..COMMITS)
                .flat_map(|commit| files(package, commit))
                .map(|(path, _)| path)
                .collect();
            let mut pages: Vec<String> = first
                .iter()
                .map(|(path, _)| path.clone())
                .filter(|path| path.contains(PAGE))
                .collect();
            later.sort();
            pages.sort();
            assert_eq!(later, pages);
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "what finds git, as in main")]
    fn a_repository_has_its_history_under_the_same_ids_everywhere() {
        let git = which::which("git").unwrap();
        let search_path = std::env::var_os("PATH").unwrap();
        let place = tempfile::tempdir().unwrap();
        make(&git, place.path(), 3, &search_path).unwrap();
        let repository = path(place.path(), 3);
        let ask = |arguments: &[&str]| {
            let mut command = git_command(&git, &repository, &search_path);
            let output = command.args(arguments).output().unwrap();
            String::from_utf8(output.stdout)
                .unwrap()
                .trim_end()
                .to_owned()
        };
        assert_eq!(ask(&["rev-list", "--count", "HEAD"]), COMMITS.to_string());
        assert_eq!(ask(&["rev-parse", TAG]), ask(&["rev-parse", "HEAD"]));
        assert_eq!(
            ask(&["rev-parse", TAG]),
            "bef4f1bb2661c12b476f24d3b6c39dda072b8efa"
        );
        let names = ask(&["ls-tree", "-r", "--name-only", TAG]);
        let expected = files(3, 0).len();
        assert_eq!(
            (names.lines().count(), names.contains("vibe.toml")),
            (expected, true)
        );
        assert_eq!(std::fs::read_dir(place.path()).unwrap().count(), 1);
    }
}
