//! The machine-wide store of package trees, by content.
