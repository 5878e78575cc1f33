//! Black-box suite of the vibe binary: one module a command.
