//! Everything that speaks git: objects and remotes through gix, and the one place that starts the
//! git program. No other crate sees a type of gix.

mod child;
mod connect;
mod credentials;
mod database;
mod error;
mod gitmodules;
