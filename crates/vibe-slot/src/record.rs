//! Slot records on disk.

use vibe_core::formats::diagnostic::Diagnostic;
use vibe_core::formats::record::{RecordError, SlotRecord};
use vibe_core::limits::RECORD_BYTES;
use vibe_core::{Sha256Digest, SlotName};
use vibe_fs::{EntryKind, ReadError, Stat, stat_of};

use crate::error::SlotError;
use crate::layout::{Layout, write_if_other};

/// What lies where the record of a slot belongs.
#[derive(Debug, Clone, PartialEq)]
pub enum RecordOnDisk {
    /// Nothing.
    Absent,
    /// A record of this slot.
    Valid {
        /// What it says.
        record: SlotRecord,
        /// The digest of its bytes.
        sha256: Sha256Digest,
        /// Its stat, taken before it was read.
        stat: Stat,
    },
    /// A file that breaks a rule of records, or is the record of another slot.
    Malformed(Diagnostic),
    /// A record of this older schema.
    Older(u64),
    /// A record of this newer schema.
    Newer(u64),
    /// A link, a directory or something else that is no file.
    NotAFile(EntryKind),
}

/// Reads the record of `slot`.
///
/// # Errors
/// The slot is reached through a link, or the file cannot be read.
pub fn read_record(layout: &Layout, slot: &SlotName) -> Result<RecordOnDisk, SlotError> {
    let path = layout.record(slot);
    if !layout.has_slot(slot)? {
        return Ok(RecordOnDisk::Absent);
    }
    let Some(stat) = stat_of(&path)? else {
        return Ok(RecordOnDisk::Absent);
    };
    match vibe_fs::read_if_exists(&path, RECORD_BYTES) {
        Ok(None) => Ok(RecordOnDisk::Absent),
        Ok(Some(bytes)) => Ok(judge(slot, &bytes, stat)),
        Err(ReadError::NotAFile { kind, .. }) => Ok(RecordOnDisk::NotAFile(kind)),
        Err(error @ ReadError::TooLarge { .. }) => {
            Ok(RecordOnDisk::Malformed(Diagnostic::new(error.to_string())))
        }
        Err(ReadError::Fs(error)) => Err(error.into()),
    }
}

fn judge(slot: &SlotName, bytes: &[u8], stat: Stat) -> RecordOnDisk {
    let Ok(text) = std::str::from_utf8(bytes) else {
        return RecordOnDisk::Malformed(Diagnostic::new("the slot record is not UTF-8 text"));
    };
    match SlotRecord::parse(text) {
        Ok(record) if SlotName::new(&record.package, &record.version) == *slot => {
            RecordOnDisk::Valid {
                record,
                sha256: Sha256Digest::of(bytes),
                stat,
            }
        }
        Ok(record) => RecordOnDisk::Malformed(Diagnostic::new(format!(
            "it is the record of `{}` {}, not of the slot it lies in",
            record.package, record.version
        ))),
        Err(RecordError::Malformed(diagnostic)) => RecordOnDisk::Malformed(diagnostic),
        Err(RecordError::Older { found }) => RecordOnDisk::Older(found),
        Err(RecordError::Newer { found }) => RecordOnDisk::Newer(found),
    }
}

/// Puts `record` into `slot` unless just these bytes are there. Returns whether it wrote.
///
/// # Errors
/// The file cannot be replaced.
pub fn write_record(
    layout: &Layout,
    slot: &SlotName,
    record: &SlotRecord,
) -> Result<bool, SlotError> {
    write_if_other(layout, &layout.record(slot), &record.render())
}
