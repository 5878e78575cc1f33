//! Checks of the workspace itself.
fn main() {}
