//! `.state/fresh`: what a no-op has to look at to know that nothing is to be done.
//!
//! A run that left nothing to do writes the stats and digests of everything its outcome depends
//! on. The next run compares stats only. A stat is trusted where it is older than this file, so
//! the file is written anew until it is younger than everything it names.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use vibe_core::Sha256Digest;
use vibe_core::limits::{FILE_BYTES, RECORD_BYTES};
use vibe_core::text::escape;
use vibe_fs::{Durability, EntryKind, Stat, stat_of};

use crate::clock::is_settled;
use crate::error::SlotError;
use crate::examine::readable_digest;
use crate::layout::Layout;

/// Attempts to be younger than everything watched, and the pause between two of them. The clocks
/// that stamp files tick every 4 to 10 ms.
const ATTEMPTS: u32 = 25;
const PAUSE: Duration = Duration::from_millis(2);

/// What the last run left, and depended on.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct Fresh {
    /// The version of vibe that wrote it.
    pub vibe: String,
    /// Whether install hooks were held back by policy or answer.
    pub held_hooks: bool,
    /// Everything the outcome depends on.
    pub watched: Vec<Watched>,
    /// The files of each path source, by the root as the manifest states it, so that a new file
    /// is noticed.
    pub listings: BTreeMap<String, Vec<String>>,
}

/// One path that a run depends on.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Watched {
    /// Relative to the project root, or absolute.
    pub path: String,
    /// How it was; `None`: it must be absent.
    #[serde(with = "stat_form", default, skip_serializing_if = "Option::is_none")]
    pub stat: Option<Stat>,
    /// The digest of its content; `None`: another stat is a change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256Digest>,
}

/// `fresh` as found, with the time before which stats are trusted.
#[derive(Debug, Clone, PartialEq)]
pub struct FreshFile {
    /// What it says, `watched` sorted by path.
    pub fresh: Fresh,
    /// Its own stat.
    pub written: Stat,
}

/// Whether anything changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Freshness {
    /// Nothing did.
    Fresh {
        /// Stats moved over unchanged content: writing the file anew saves the next reading.
        renew: bool,
    },
    /// This did, escaped.
    Stale(String),
}

impl Fresh {
    /// Writes the file, younger than everything watched. Times that lie in the future are not
    /// waited for: what has them is read again by the next run.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write(mut self, layout: &Layout) -> Result<(), SlotError> {
        self.watched.sort_by(|a, b| a.path.cmp(&b.path));
        let bytes = serde_json::to_vec(&self).expect("texts, numbers and lists are always JSON");
        let newest_ns = self.newest_ns();
        for _ in 0..ATTEMPTS {
            vibe_fs::write_atomic(
                &layout.fresh(),
                &bytes,
                &layout.staging(),
                Durability::Unsynced,
            )?;
            let own_ns = stat_of(&layout.fresh())?.map_or(i64::MIN, |stat| stat.mtime_ns);
            if is_younger_or_never(own_ns, newest_ns) {
                return Ok(());
            }
            std::thread::sleep(PAUSE);
        }
        Ok(())
    }

    fn newest_ns(&self) -> i64 {
        let stats = self.watched.iter().filter_map(|watched| watched.stat);
        stats
            .map(|stat| stat.mtime_ns.max(stat.ctime_ns))
            .max()
            .unwrap_or(i64::MIN)
    }
}

/// Whether a file stamped `own_ns` is younger than `newest_ns`, or cannot become so by waiting.
fn is_younger_or_never(own_ns: i64, newest_ns: i64) -> bool {
    let reach_ns = i64::try_from((PAUSE * ATTEMPTS).as_nanos()).unwrap_or(i64::MAX);
    own_ns > newest_ns || newest_ns > own_ns.saturating_add(reach_ns)
}

/// Reads the file; `None` where it is absent, malformed, or of another version than `vibe`.
pub fn read(layout: &Layout, vibe: &str) -> Option<FreshFile> {
    let path = layout.fresh();
    let written = stat_of(&path).ok()??;
    let bytes = vibe_fs::read_if_exists(&path, RECORD_BYTES).ok()??;
    let fresh: Fresh = serde_json::from_slice(&bytes).ok()?;
    let is_sorted = fresh.watched.is_sorted_by(|a, b| a.path <= b.path);
    (fresh.vibe == vibe && is_sorted).then_some(FreshFile { fresh, written })
}

/// Removes the file, so that no later run believes it.
///
/// # Errors
/// It cannot be removed.
pub fn remove(layout: &Layout) -> Result<(), SlotError> {
    vibe_fs::remove_file_if(&layout.fresh(), |_| true)?;
    Ok(())
}

impl FreshFile {
    /// Compares everything watched with the disk, and `listings` with those remembered. Reads only
    /// files whose stat moved or is not older than this file.
    ///
    /// # Errors
    /// A path cannot be looked at or read.
    pub fn check(
        &self,
        layout: &Layout,
        listings: &BTreeMap<String, Vec<String>>,
    ) -> Result<Freshness, SlotError> {
        if let Some(root) = first_difference(&self.fresh.listings, listings) {
            return Ok(Freshness::Stale(escape(root)));
        }
        let mut renew = false;
        for watched in &self.fresh.watched {
            let path = layout.project_root().join(&watched.path);
            match self.compare(watched, &path)? {
                Comparison::Same => {}
                Comparison::Renew => renew = true,
                Comparison::Changed => return Ok(Freshness::Stale(escape(&watched.path))),
            }
        }
        Ok(Freshness::Fresh { renew })
    }

    fn compare(&self, watched: &Watched, path: &Path) -> Result<Comparison, SlotError> {
        let (then, now) = match (watched.stat, stat_of(path)?) {
            (None, None) => return Ok(Comparison::Same),
            (Some(then), Some(now)) => (then, now),
            (None, Some(_)) | (Some(_), None) => return Ok(Comparison::Changed),
        };
        if then == now && is_settled(&now, self.written.mtime_ns) {
            return Ok(Comparison::Same);
        }
        let is_file = then.kind == EntryKind::File && now.kind == EntryKind::File;
        let may_be_same = is_file
            && then.exec == now.exec
            && then.size == now.size
            && now.size <= FILE_BYTES
            && watched.sha256.is_some();
        if may_be_same && readable_digest(path)? == watched.sha256 {
            return Ok(Comparison::Renew);
        }
        Ok(Comparison::Changed)
    }

    /// Whether the file `path`, spelled as it was watched, is the one remembered: by its stat, or
    /// by its digest.
    pub fn remembers_record(&self, path: &str, stat: &Stat, sha256: Sha256Digest) -> bool {
        let rows = &self.fresh.watched;
        let Ok(index) = rows.binary_search_by(|watched| watched.path.as_str().cmp(path)) else {
            return false;
        };
        let same_stat = rows[index].stat == Some(*stat);
        (same_stat && is_settled(stat, self.written.mtime_ns)) || rows[index].sha256 == Some(sha256)
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Same,
    Renew,
    Changed,
}

/// The first root whose listing is not the same in both.
fn first_difference<'a>(
    then: &'a BTreeMap<String, Vec<String>>,
    now: &'a BTreeMap<String, Vec<String>>,
) -> Option<&'a str> {
    let roots = then.keys().chain(now.keys());
    roots
        .filter(|root| then.get(*root) != now.get(*root))
        .map(String::as_str)
        .min()
}

/// A stat as `[kind, size, mtime, ctime, inode, exec]`: there are many of them.
mod stat_form {
    use super::{EntryKind, Stat};
    use serde::{Deserialize as _, Deserializer, Serialize as _, Serializer};

    type Row = (char, u64, i64, i64, u64, bool);

    const KINDS: [(char, EntryKind); 4] = [
        ('f', EntryKind::File),
        ('d', EntryKind::Directory),
        ('l', EntryKind::Symlink),
        ('o', EntryKind::Other),
    ];

    pub(super) fn serialize<S: Serializer>(stat: &Option<Stat>, out: S) -> Result<S::Ok, S::Error> {
        stat.map(row).serialize(out)
    }

    fn row(stat: Stat) -> Row {
        let letter = KINDS.iter().find(|(_, kind)| *kind == stat.kind);
        (
            letter.map_or('o', |(letter, _)| *letter),
            stat.size,
            stat.mtime_ns,
            stat.ctime_ns,
            stat.inode,
            stat.exec,
        )
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(
        from: D,
    ) -> Result<Option<Stat>, D::Error> {
        let row = Option::<Row>::deserialize(from)?;
        row.map(|(letter, size, mtime_ns, ctime_ns, inode, exec)| {
            let kind = KINDS.iter().find(|(known, _)| *known == letter);
            let (_, kind) = kind.ok_or_else(|| serde::de::Error::custom("no kind of entry"))?;
            Ok(Stat {
                kind: *kind,
                size,
                mtime_ns,
                ctime_ns,
                inode,
                exec,
            })
        })
        .transpose()
    }
}
