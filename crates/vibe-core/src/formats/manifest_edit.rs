//! Edits of `vibe.toml` that keep its comments and order.
