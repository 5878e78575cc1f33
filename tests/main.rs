//! Black-box suite of the vibe binary: one module a command, each test in a world of its own.
//!
//! A test reads: given these packages, run this, expect this exit code, this text and this tree.
#![expect(
    unreachable_pub,
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stderr,
    clippy::disallowed_methods,
    reason = "tests start the binary, and fail by panicking"
)]

#[cfg(unix)]
mod bad_trees;
#[cfg(unix)]
mod boot;
#[cfg(target_os = "linux")]
mod boot_crash;
#[cfg(unix)]
mod boot_odd;
#[cfg(unix)]
mod cache;
mod check;
mod completions;
#[cfg(unix)]
mod corpus;
#[cfg(target_os = "linux")]
mod crash;
#[cfg(unix)]
mod doctor;
mod documentation;
#[cfg(unix)]
mod git_hostile;
#[cfg(unix)]
mod git_identity;
#[cfg(unix)]
mod git_offline;
#[cfg(unix)]
mod git_registries;
#[cfg(unix)]
mod git_servers;
#[cfg(unix)]
mod git_sources;
#[cfg(unix)]
mod git_submodules;
#[cfg(unix)]
mod git_support;
#[cfg(target_os = "linux")]
mod hardlink;
#[cfg(unix)]
mod hook_failures;
#[cfg(unix)]
mod hook_misdeeds;
#[cfg(unix)]
mod hook_policies;
#[cfg(unix)]
mod hook_selection;
mod hooks_command;
#[cfg(unix)]
mod hooks_running;
#[cfg(unix)]
mod in_place;
#[cfg(target_os = "linux")]
mod inert;
mod init;
mod install;
mod list;
mod list_items;
mod lock;
mod manifest;
#[cfg(target_os = "linux")]
mod nothing_to_do;
#[cfg(unix)]
mod outdated;
mod output;
#[cfg(unix)]
mod overrides;
mod ownership;
#[cfg(unix)]
mod pasting;
#[cfg(unix)]
mod publish;
mod quickstart;
mod rerun;
mod runs;
mod show;
mod support;
#[cfg(target_os = "linux")]
mod terminal;
mod tree;
#[cfg(target_os = "linux")]
mod uninstall;
mod verify;
mod waiting;
mod why;
#[cfg(unix)]
mod workspace;
