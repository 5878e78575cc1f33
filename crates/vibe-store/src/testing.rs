//! What several tests of this crate need.
#![cfg(unix)]
