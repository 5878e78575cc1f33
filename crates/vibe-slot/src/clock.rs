//! Time as the file system tells it: what makes a stat worth trusting.
//!
//! A stat can only show a change if the clock of the file system has ticked since it was taken.
//! So a stat is trusted where all its times lie before a moment noted after it: a later change
//! then gets another time.

use vibe_fs::{Durability, Stat, stat_of};

use crate::error::SlotError;
use crate::layout::Layout;

/// Now, in nanoseconds since 1970, by the clock that stamps files in `vibedeps/`.
pub(crate) fn file_time_ns(layout: &Layout) -> Result<i64, SlotError> {
    let path = layout.staging().join("clock");
    vibe_fs::write_atomic(&path, b"", &layout.staging(), Durability::Unsynced)?;
    Ok(stat_of(&path)?.map_or(i64::MIN, |stat| stat.mtime_ns))
}

/// Whether every change after `moment_ns` shows in a stat of the file.
pub(crate) fn is_settled(stat: &Stat, moment_ns: i64) -> bool {
    stat.mtime_ns < moment_ns && stat.ctime_ns < moment_ns
}
