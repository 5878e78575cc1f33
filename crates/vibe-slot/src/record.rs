//! Slot records on disk.

use vibe_core::formats::decode::decode;
use vibe_core::formats::diagnostic::Diagnostic;
use vibe_core::formats::record::{RecordError, SlotRecord};
use vibe_core::limits::RECORD_BYTES;
use vibe_core::relative_path::RECORD_NAME;
use vibe_core::{RelPath, Sha256Digest, SlotName};
use vibe_fs::{EntryKind, ReadError, Stat, stat_of};

use crate::access::rename_insisting;
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
    match vibe_fs::read_with_stat(&path, RECORD_BYTES) {
        Ok(None) => Ok(RecordOnDisk::Absent),
        Ok(Some((bytes, stat))) => Ok(judge(slot, &bytes, stat)),
        Err(ReadError::NotAFile { kind, .. }) => Ok(RecordOnDisk::NotAFile(kind)),
        Err(error @ ReadError::TooLarge { .. }) => {
            Ok(RecordOnDisk::Malformed(Diagnostic::new(error.to_string())))
        }
        Err(ReadError::Fs(error)) => Err(error.into()),
    }
}

fn judge(slot: &SlotName, bytes: &[u8], stat: Stat) -> RecordOnDisk {
    let text = match decode(bytes) {
        Ok(text) => text,
        Err(diagnostic) => return RecordOnDisk::Malformed(diagnostic),
    };
    match SlotRecord::parse(&text) {
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

/// Puts `record` into `slot` whatever a hook left in its place. A directory there is set aside:
/// its name, if so.
///
/// # Errors
/// The file cannot be replaced, even with the owner let into the slot.
pub fn restore_record(
    layout: &Layout,
    slot: &SlotName,
    record: &SlotRecord,
) -> Result<Option<String>, SlotError> {
    let path = layout.record(slot);
    if let Some(parent) = path.parent() {
        vibe_fs::grant_owner(parent)?;
    }
    let kind = stat_of(&path)?.map(|stat| stat.kind);
    let kept = match kind {
        Some(EntryKind::Directory) => Some(set_aside(layout, slot)?),
        _ => None,
    };
    write_record(layout, slot, record)?;
    Ok(kept)
}

/// Renames what lies where the record of `slot` belongs to the first free name of
/// `.vibe-slot.toml.vibe-kept`, `.vibe-kept.2`, ... Returns that name.
///
/// # Errors
/// The entry cannot be renamed.
pub fn set_aside(layout: &Layout, slot: &SlotName) -> Result<String, SlotError> {
    let record = layout.record(slot);
    let kept = vibe_fs::free_kept_name(&record)?;
    rename_insisting(&record, &kept)?;
    let suffix = &kept.as_os_str().as_encoded_bytes()[record.as_os_str().len()..];
    Ok(format!("{RECORD_NAME}{}", String::from_utf8_lossy(suffix)))
}

/// The paths that the record on disk names, also of files that are gone: what was cut short left
/// their directories. None where there is no usable record.
pub(crate) fn recorded_paths(layout: &Layout, slot: &SlotName) -> Result<Vec<RelPath>, SlotError> {
    let paths = match read_record(layout, slot)? {
        RecordOnDisk::Valid { record, .. } => {
            let rows = record.tree.rows().iter();
            rows.map(|row| row.path.clone()).collect()
        }
        _ => Vec::new(),
    };
    Ok(paths)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Package, World};
    use vibe_testkit::set_mode;

    fn check(bytes: &[u8], expected: impl FnOnce(RecordOnDisk)) {
        let world = World::new();
        world.write(".vibe-slot.toml", "");
        std::fs::write(world.at(".vibe-slot.toml"), bytes).unwrap();
        expected(read_record(&world.layout, &world.slot).unwrap());
    }

    #[test]
    fn a_record_is_read_with_its_digest_and_stat() {
        let package = Package::new(&[("a", "1")]);
        let world = World::with(&package);
        let path = world.layout.record(&world.slot);
        let expected = RecordOnDisk::Valid {
            record: package.record(),
            sha256: Sha256Digest::of(&std::fs::read(&path).unwrap()),
            stat: stat_of(&path).unwrap().unwrap(),
        };
        assert_eq!(read_record(&world.layout, &world.slot).unwrap(), expected);
    }

    #[test]
    fn a_record_is_written_only_when_its_bytes_differ() {
        let package = Package::new(&[("a", "1")]);
        let world = World::with(&package);
        let path = world.layout.record(&world.slot);
        let before = stat_of(&path).unwrap();
        assert!(!write_record(&world.layout, &world.slot, &package.record()).unwrap());
        assert_eq!(stat_of(&path).unwrap(), before);
        let other = Package::new(&[("a", "2")]).record();
        assert!(write_record(&world.layout, &world.slot, &other).unwrap());
        assert_eq!(std::fs::read_to_string(&path).unwrap(), other.render());
    }

    #[test]
    fn absence_of_slot_or_record_is_no_error() {
        let world = World::new();
        let read = || read_record(&world.layout, &world.slot).unwrap();
        assert_eq!(read(), RecordOnDisk::Absent);
        std::fs::create_dir_all(world.root()).unwrap();
        assert_eq!(read(), RecordOnDisk::Absent);
    }

    #[test]
    fn every_kind_of_bad_record_is_told_apart() {
        check(b"schema = 1\n", |r| assert_eq!(r, RecordOnDisk::Older(1)));
        check(b"schema = 3\n", |r| assert_eq!(r, RecordOnDisk::Newer(3)));
        for bytes in [b"\xff".as_slice(), b"", b"schema = 2\n"] {
            check(bytes, |r| {
                assert!(matches!(r, RecordOnDisk::Malformed(_)), "{r:?}")
            });
        }
    }

    #[test]
    fn a_record_with_a_byte_order_mark_and_carriage_returns_is_read() {
        let record = Package::new(&[("a", "1")]).record();
        let text = format!("\u{feff}{}", record.render().replace('\n', "\r\n"));
        check(text.as_bytes(), |found| {
            let RecordOnDisk::Valid {
                record: read,
                sha256,
                ..
            } = found
            else {
                panic!("{found:?}");
            };
            assert_eq!(read, record);
            assert_eq!(sha256, Sha256Digest::of(text.as_bytes()), "of the bytes");
        });
    }

    #[test]
    fn the_record_of_another_slot_is_malformed() {
        let mut record = Package::new(&[]).record();
        record.version = vibe_core::Version::new(9, 9, 9);
        check(record.render().as_bytes(), |found| {
            let RecordOnDisk::Malformed(diagnostic) = found else {
                panic!("{found:?}");
            };
            assert!(diagnostic.message.contains("9.9.9"), "{diagnostic}");
        });
    }

    #[test]
    fn build_metadata_belongs_to_the_same_slot() {
        let mut record = Package::new(&[]).record();
        record.version.build = "7".parse().unwrap();
        check(record.render().as_bytes(), |found| {
            assert!(matches!(found, RecordOnDisk::Valid { .. }), "{found:?}");
        });
    }

    #[test]
    fn a_link_or_directory_is_no_record() {
        let world = World::new();
        std::fs::create_dir_all(world.at(".vibe-slot.toml")).unwrap();
        let read = || read_record(&world.layout, &world.slot).unwrap();
        assert_eq!(read(), RecordOnDisk::NotAFile(EntryKind::Directory));
        std::fs::remove_dir(world.at(".vibe-slot.toml")).unwrap();
        std::os::unix::fs::symlink("x", world.at(".vibe-slot.toml")).unwrap();
        assert_eq!(read(), RecordOnDisk::NotAFile(EntryKind::Symlink));
    }

    #[test]
    fn a_record_set_aside_takes_the_first_free_name() {
        let world = World::new();
        let mut names = Vec::new();
        for text in ["one", "two", "three"] {
            world.write(".vibe-slot.toml", text);
            names.push(set_aside(&world.layout, &world.slot).unwrap());
        }
        let expected = ["", ".2", ".3"].map(|end| format!(".vibe-slot.toml.vibe-kept{end}"));
        assert_eq!(names, expected);
        let texts: Vec<String> = world.snapshot().into_values().collect();
        assert_eq!(
            texts,
            ["one", "two", "three"],
            "each under its name, and no record"
        );
    }

    #[test]
    fn a_record_is_restored_over_whatever_is_there() {
        let package = Package::new(&[("a", "1")]);
        let world = World::with(&package);
        let path = world.layout.record(&world.slot);
        let restore = || restore_record(&world.layout, &world.slot, &package.record()).unwrap();
        let text = || std::fs::read_to_string(&path).unwrap();
        let check = |kept: Option<&str>| {
            assert_eq!(restore().as_deref(), kept);
            assert_eq!(text(), package.record().render());
        };
        check(None);
        std::fs::write(&path, "other").unwrap();
        check(None);
        std::fs::remove_file(&path).unwrap();
        check(None);
        std::fs::remove_file(&path).unwrap();
        std::os::unix::fs::symlink("a", &path).unwrap();
        check(None);
        assert!(!path.is_symlink());
        std::fs::remove_file(&path).unwrap();
        std::fs::create_dir(&path).unwrap();
        set_mode(&path, 0o500);
        set_mode(&world.root(), 0o000);
        check(Some(".vibe-slot.toml.vibe-kept"));
        assert!(world.at(".vibe-slot.toml.vibe-kept").is_dir());
    }
}
