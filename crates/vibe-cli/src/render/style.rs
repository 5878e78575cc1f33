//! The few styles in use. Text is styled always; a stream without colour takes the styles out.

use anstyle::{AnsiColor, Style};

/// What went wrong.
pub(crate) const ERROR: Style = AnsiColor::Red.on_default().bold();
/// What may go wrong.
pub(crate) const WARNING: Style = AnsiColor::Yellow.on_default().bold();
/// What to do.
pub(crate) const HINT: Style = AnsiColor::Cyan.on_default().bold();
/// What to know.
pub(crate) const NOTE: Style = Style::new().bold();
/// What came.
pub(crate) const ADDED: Style = AnsiColor::Green.on_default().bold();
/// What changed.
pub(crate) const CHANGED: Style = AnsiColor::Yellow.on_default().bold();
/// What went.
pub(crate) const REMOVED: Style = AnsiColor::Red.on_default().bold();
/// What is of little weight.
pub(crate) const DIM: Style = Style::new().dimmed();

/// `text` in `style`.
pub(crate) fn paint(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}
