//! Runs install hooks: finds the interpreters, builds the environment, starts the process in a
//! session of its own, captures its output and holds it to its limits.
//!
//! What runs, why, and with whose consent is decided before, in the plan.

pub mod environment;
pub mod output;
pub mod probe;
