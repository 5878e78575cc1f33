//! Everything that speaks git: gix, and the one place that starts the git program.
