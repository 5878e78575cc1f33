//! What lies in a slot's directory, as the planner sees it.

use std::collections::{BTreeMap, BTreeSet};

use crate::digest::Sha256Digest;
use crate::hook::HostOs;
use crate::relative_path::RelPath;

/// Everything found in a slot, the record apart. Links are not followed.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SlotContents {
    /// Every entry, directories included. A file has a digest if it was asked for.
    pub entries: BTreeMap<RelPath, DiskEntry>,
    /// The made paths of the slot's state whose listing is as remembered.
    pub unchanged_made: BTreeSet<RelPath>,
    /// Entries whose names cannot be paths of a package, escaped; they are never touched.
    pub unnamed: Vec<String>,
}

impl SlotContents {
    /// The same as `host` shows it: where files have no exec bit, each has the one that `known` gives
    /// its path, the last word on a path counting. So the bit is no change there.
    #[must_use]
    pub fn with_exec_of<'r>(
        mut self,
        host: HostOs,
        known: impl IntoIterator<Item = (&'r RelPath, bool)>,
    ) -> Self {
        if host == HostOs::Unix {
            return self;
        }
        for (path, known) in known {
            if let Some(DiskEntry::File { exec, .. }) = self.entries.get_mut(path) {
                *exec = known;
            }
        }
        self
    }
}

/// One entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DiskEntry {
    /// A regular file.
    File {
        /// Its content's digest, where it was asked for.
        digest: Option<Sha256Digest>,
        /// Whether its owner may execute it.
        exec: bool,
    },
    /// A directory.
    Directory,
    /// A symbolic link.
    Symlink,
    /// A pipe, socket or device.
    Other,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn where_files_have_no_exec_bit_the_known_one_counts() {
        let path = RelPath::new("run.sh").unwrap();
        let entry = |exec| DiskEntry::File { digest: None, exec };
        let contents = SlotContents {
            entries: BTreeMap::from([(path.clone(), entry(false))]),
            ..SlotContents::default()
        };
        let other = RelPath::new("gone").unwrap();
        for (host, expected) in [(HostOs::Unix, false), (HostOs::Windows, true)] {
            let known = [(&path, false), (&other, true), (&path, true)];
            let found = contents.clone().with_exec_of(host, known);
            assert_eq!(
                found.entries,
                BTreeMap::from([(path.clone(), entry(expected))])
            );
        }
    }
}
