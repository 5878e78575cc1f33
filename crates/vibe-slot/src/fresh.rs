//! `.state/fresh`: what a no-op has to look at to know that nothing is to be done.
//!
//! A run that left nothing to do writes the stats and digests of everything its outcome depends
//! on. The next run compares stats only. A stat is trusted where it is older than this file, so
//! the file is written anew until it is younger than everything it names.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use vibe_core::limits::{FILE_BYTES, RECORD_BYTES};
use vibe_core::text::escape;
use vibe_core::{RelPath, Sha256Digest};
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
    /// The manifests of the project, so that a new member of its workspace is noticed.
    #[serde(default)]
    pub manifests: Vec<RelPath>,
    /// Everything the outcome depends on.
    pub watched: Vec<Watched>,
    /// The files of each path source, by the root as the manifest states it, so that a new file
    /// is noticed.
    pub listings: BTreeMap<String, Vec<String>>,
    /// The boot text of the installed packages, in its order: what no slot has to be opened for.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub boot: Vec<BootRow>,
}

/// The boot text of one package, as its manifest declares it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BootRow {
    /// The directory of its slot, relative to `vibedeps/`.
    pub slot: String,
    /// Where its text lies in the slot.
    pub source: RelPath,
    /// It is compiled in.
    #[serde(default, skip_serializing_if = "std::ops::Not::not", rename = "static")]
    pub is_static: bool,
    /// When it is to be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub when: Option<String>,
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
    let (bytes, written) = vibe_fs::read_with_stat(&layout.fresh(), RECORD_BYTES).ok()??;
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
    /// files whose stat moved or is not older than this file. What cannot be looked at or read
    /// counts as changed: the run that follows tells why.
    pub fn check(&self, layout: &Layout, listings: &BTreeMap<String, Vec<String>>) -> Freshness {
        if let Some(root) = first_difference(&self.fresh.listings, listings) {
            return Freshness::Stale(escape(root));
        }
        let mut renew = false;
        for watched in &self.fresh.watched {
            let path = layout.project_root().join(&watched.path);
            match self.compare(watched, &path) {
                Comparison::Same => {}
                Comparison::Renew => renew = true,
                Comparison::Changed => return Freshness::Stale(escape(&watched.path)),
            }
        }
        Freshness::Fresh { renew }
    }

    fn compare(&self, watched: &Watched, path: &Path) -> Comparison {
        let (then, now) = match (watched.stat, stat_of(path)) {
            (None, Ok(None)) => return Comparison::Same,
            (Some(then), Ok(Some(now))) => (then, now),
            _ => return Comparison::Changed,
        };
        if then == now && is_settled(&now, self.written.mtime_ns) {
            return Comparison::Same;
        }
        let may_be_same = (then.kind, then.exec, then.size) == (now.kind, now.exec, now.size)
            && now.kind == EntryKind::File
            && now.size <= FILE_BYTES;
        let has_digest =
            |digest| matches!(readable_digest(path), Ok(found) if found == Some(digest));
        match may_be_same && watched.sha256.is_some_and(has_digest) {
            true => Comparison::Renew,
            false => Comparison::Changed,
        }
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

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;
    use std::fs;
    use std::path::PathBuf;
    use vibe_testkit::set_mode;

    fn path(world: &World, name: &str) -> PathBuf {
        world.layout.project_root().join(name)
    }

    fn watch(world: &World, name: &str, with_digest: bool) -> Watched {
        let full = path(world, name);
        Watched {
            path: name.to_owned(),
            stat: stat_of(&full).unwrap(),
            sha256: with_digest.then(|| Sha256Digest::of(&fs::read(&full).unwrap())),
        }
    }

    /// A project with the watched files `lock` (by digest) and `part` (by stat), the absent `redo`,
    /// and the listing of `src`.
    fn written() -> (World, FreshFile) {
        let world = World::new();
        fs::write(path(&world, "lock"), "lock").unwrap();
        fs::write(path(&world, "part"), "part").unwrap();
        let fresh = Fresh {
            vibe: "1.0.0".to_owned(),
            held_hooks: true,
            manifests: vec![RelPath::new("vibe.toml").unwrap()],
            watched: vec![
                watch(&world, "redo", false),
                watch(&world, "part", false),
                watch(&world, "lock", true),
            ],
            listings: listings(&["a"]),
            boot: vec![BootRow {
                slot: "org.a.x/1.0.0".to_owned(),
                source: RelPath::new("boot.md").unwrap(),
                is_static: true,
                when: None,
            }],
        };
        fresh.write(&world.layout).unwrap();
        let file = read(&world.layout, "1.0.0").unwrap();
        (world, file)
    }

    fn listings(files: &[&str]) -> BTreeMap<String, Vec<String>> {
        let files = files.iter().map(|file| (*file).to_owned()).collect();
        BTreeMap::from([("src".to_owned(), files)])
    }

    fn check(change: impl FnOnce(&World), expected: Freshness) {
        let (world, file) = written();
        change(&world);
        let found = file.check(&world.layout, &listings(&["a"]));
        assert_eq!(found, expected);
    }

    fn stale(path: &str) -> Freshness {
        Freshness::Stale(path.to_owned())
    }

    #[test]
    fn nothing_changed_is_fresh_without_renewal() {
        check(|_| {}, Freshness::Fresh { renew: false });
    }

    #[test]
    fn moved_stats_over_unchanged_content_only_ask_for_renewal() {
        let rewrite = |world: &World| {
            fs::remove_file(path(world, "lock")).unwrap();
            fs::write(path(world, "lock"), "lock").unwrap();
        };
        check(rewrite, Freshness::Fresh { renew: true });
    }

    #[test]
    fn every_kind_of_change_is_stale_and_named() {
        check(
            |w| fs::write(path(w, "lock"), "kcol").unwrap(),
            stale("lock"),
        );
        check(
            |w| fs::write(path(w, "lock"), "longer").unwrap(),
            stale("lock"),
        );
        check(|w| fs::remove_file(path(w, "lock")).unwrap(), stale("lock"));
        check(|w| set_mode(&path(w, "lock"), 0o755), stale("lock"));
        check(|w| set_mode(&path(w, "part"), 0o600), stale("part"));
        check(|w| fs::write(path(w, "redo"), "").unwrap(), stale("redo"));
        let link = |world: &World| {
            fs::rename(path(world, "lock"), path(world, "real")).unwrap();
            std::os::unix::fs::symlink("real", path(world, "lock")).unwrap();
        };
        check(link, stale("lock"));
    }

    #[test]
    fn a_listing_that_is_not_the_same_is_stale() {
        let (world, file) = written();
        let outcome = |now| file.check(&world.layout, &now);
        assert_eq!(outcome(listings(&["a", "b"])), stale("src"));
        assert_eq!(outcome(listings(&[])), stale("src"));
        assert_eq!(outcome(BTreeMap::new()), stale("src"));
        let mut more = listings(&["a"]);
        more.insert("\u{1b}".to_owned(), vec![]);
        assert_eq!(outcome(more), stale("\\x1B"));
    }

    #[test]
    fn an_entry_not_older_than_the_file_is_read_again() {
        let (world, mut file) = written();
        let stat = stat_of(&path(&world, "lock")).unwrap().unwrap();
        file.written.mtime_ns = stat.mtime_ns.max(stat.ctime_ns);
        file.fresh.watched.retain(|watched| watched.path == "lock");
        let look = |file: &FreshFile| file.check(&world.layout, &listings(&["a"]));
        assert_eq!(look(&file), Freshness::Fresh { renew: true });
        file.written.mtime_ns += 1;
        assert_eq!(look(&file), Freshness::Fresh { renew: false });
        file.written.mtime_ns -= 1;
        file.fresh.watched[0].sha256 = None;
        assert_eq!(
            look(&file),
            stale("lock"),
            "there is no digest to compare with"
        );
    }

    #[test]
    fn the_file_is_younger_than_everything_it_names() {
        for _ in 0..5 {
            let (_world, file) = written();
            for stat in file.fresh.watched.iter().filter_map(|watched| watched.stat) {
                assert!(is_settled(&stat, file.written.mtime_ns));
            }
        }
        assert!(is_younger_or_never(2, 1));
        assert!(!is_younger_or_never(1, 1));
        assert!(!is_younger_or_never(0, 50_000_000), "50 ms are waited for");
        assert!(is_younger_or_never(0, 50_000_001), "a future time is not");
        assert!(is_younger_or_never(i64::MIN + 1, i64::MIN));
    }

    #[test]
    fn what_cannot_be_believed_is_not_there() {
        let (world, file) = written();
        assert!(file.fresh.held_hooks);
        assert_eq!(read(&world.layout, "1.0.1"), None);
        let text = fs::read_to_string(world.layout.fresh()).unwrap();
        fs::write(world.layout.fresh(), &text[1..]).unwrap();
        assert_eq!(read(&world.layout, "1.0.0"), None);
        fs::write(world.layout.fresh(), text.replace("[\"f\"", "[\"x\"")).unwrap();
        assert_eq!(read(&world.layout, "1.0.0"), None);
        remove(&world.layout).unwrap();
        assert!(!world.layout.fresh().exists());
        remove(&world.layout).unwrap();
    }

    #[test]
    fn every_kind_of_entry_and_absolute_paths_can_be_watched() {
        let world = World::new();
        fs::create_dir(path(&world, "d")).unwrap();
        std::os::unix::fs::symlink("d", path(&world, "l")).unwrap();
        vibe_testkit::make_pipe(&path(&world, "p"));
        let mut watched: Vec<Watched> = ["p", "l", "d"]
            .iter()
            .map(|name| watch(&world, name, false))
            .collect();
        watched[0].path = path(&world, "p").to_str().unwrap().to_owned();
        let fresh = Fresh {
            vibe: "1".to_owned(),
            watched: watched.clone(),
            ..Fresh::default()
        };
        fresh.write(&world.layout).unwrap();
        let file = read(&world.layout, "1").unwrap();
        watched.sort_by(|a, b| a.path.cmp(&b.path));
        assert_eq!(file.fresh.watched, watched);
        let found = file.check(&world.layout, &BTreeMap::new());
        assert_eq!(found, Freshness::Fresh { renew: false });
    }

    #[test]
    fn a_record_is_remembered_by_stat_or_digest() {
        let (world, mut file) = written();
        let stat = stat_of(&path(&world, "lock")).unwrap().unwrap();
        let (same, other) = (Sha256Digest::of(b"lock"), Sha256Digest::of(b"x"));
        let moved = Stat { inode: 0, ..stat };
        assert!(file.remembers_record("lock", &stat, other));
        assert!(file.remembers_record("lock", &moved, same));
        assert!(!file.remembers_record("lock", &moved, other));
        assert!(!file.remembers_record("locks", &stat, same));
        file.written.mtime_ns = stat.mtime_ns;
        assert!(
            !file.remembers_record("lock", &stat, other),
            "the stat is too young"
        );
    }
}
