//! Runs install hooks: finds the interpreters, builds the environment, starts the process in a
//! session of its own, captures its output and holds it to its limits.
//!
//! What runs, why, and with whose consent is decided before, in the plan.

mod capture;
pub mod environment;
mod escalation;
pub mod leftover;
pub mod output;
pub mod probe;
pub mod runner;
mod session;
mod windows_bash;

pub use runner::{
    HookLimits, HookResult, HookRunner, HookStartError, HookStatus, HookWatcher, Invocation,
    LeftRunning, SystemRunner,
};
