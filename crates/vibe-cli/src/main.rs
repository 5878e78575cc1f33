//! The vibe command.
fn main() {}
