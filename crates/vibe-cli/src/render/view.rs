//! How results are shown.

use std::time::Duration;

/// How a report is shown.
#[derive(Debug, Clone, Copy)]
pub(crate) struct View {
    /// Also what was left as it is.
    pub(crate) verbose: bool,
    /// How long the command took.
    pub(crate) elapsed: Duration,
    /// How wide lines may be; no limit where nobody looks.
    pub(crate) width: Option<usize>,
}

impl View {
    /// The width behind an indent.
    pub(crate) fn width_after(&self, indent: usize) -> Option<usize> {
        self.width.map(|width| width.saturating_sub(indent))
    }
}
