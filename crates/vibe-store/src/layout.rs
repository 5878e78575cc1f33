//! Where things lie below the root of a store.

use std::path::{Path, PathBuf};

use vibe_core::TreeId;

/// The directory of this layout; another layout is another directory beside it.
pub(crate) const VERSION_DIRECTORY: &str = "v1";
/// The listing of a tree, in its directory.
pub(crate) const LISTING: &str = "listing";
/// The files of a tree, in its directory.
pub(crate) const FILES: &str = "files";
/// The mark of a tree that was read whole after a reboot, in its directory.
pub(crate) const DURABLE: &str = "durable";
/// Everything that may lie in the directory of this layout.
pub(crate) const OWN_NAMES: [&str; 5] = [TREES, STAGING, QUARANTINE, LOCK, QUARANTINE_LOCK];

const TREES: &str = "trees";
const STAGING: &str = "staging";
const QUARANTINE: &str = "quarantine";
const LOCK: &str = "lock";
const QUARANTINE_LOCK: &str = "quarantine.lock";
/// Digits of an identity that name the directory above its tree: no directory grows too long.
const SHARD_DIGITS: usize = 2;

/// The paths of one store.
#[derive(Debug)]
pub(crate) struct Layout {
    pub(crate) root: PathBuf,
    pub(crate) base: PathBuf,
    pub(crate) trees: PathBuf,
    pub(crate) staging: PathBuf,
    pub(crate) quarantine: PathBuf,
    pub(crate) lock: PathBuf,
    pub(crate) quarantine_lock: PathBuf,
}

impl Layout {
    pub(crate) fn new(root: PathBuf) -> Self {
        let base = root.join(VERSION_DIRECTORY);
        Self {
            trees: base.join(TREES),
            staging: base.join(STAGING),
            quarantine: base.join(QUARANTINE),
            lock: base.join(LOCK),
            quarantine_lock: base.join(QUARANTINE_LOCK),
            base,
            root,
        }
    }

    /// The directory of `tree`.
    pub(crate) fn tree(&self, tree: TreeId) -> PathBuf {
        let digits = digits(tree);
        let (shard, rest) = digits.split_at(SHARD_DIGITS);
        self.trees.join(shard).join(rest)
    }

    pub(crate) fn listing(&self, tree: TreeId) -> PathBuf {
        self.tree(tree).join(LISTING)
    }
}

/// The 64 digits of `tree`.
pub(crate) fn digits(tree: TreeId) -> String {
    let text = tree.to_string();
    text.rsplit(':').next().unwrap_or_default().to_owned()
}

/// The tree whose directory is `rest` in `shard`; `None` if these are no names of ours.
pub(crate) fn tree_at(shard: &Path, rest: &Path) -> Option<TreeId> {
    let (shard, rest) = (shard.to_str()?, rest.to_str()?);
    if shard.len() != SHARD_DIGITS {
        return None;
    }
    format!("tree1:{shard}{rest}").parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use vibe_core::Tree;

    #[test]
    fn a_tree_lies_where_its_digits_say() {
        let layout = Layout::new(PathBuf::from("/s"));
        let id = Tree::default().id();
        let hex = digits(id);
        let directory = layout.tree(id);
        let expected = format!("/s/v1/trees/{}/{}", &hex[..2], &hex[2..]);
        assert_eq!(directory, Path::new(&expected));
        let (shard, rest) = (Path::new(&hex[..2]), Path::new(&hex[2..]));
        assert_eq!(tree_at(shard, rest), Some(id));
        assert_eq!(tree_at(Path::new(&hex[..3]), Path::new(&hex[3..])), None);
        assert_eq!(tree_at(shard, Path::new(&hex[3..])), None);
        assert_eq!(tree_at(Path::new("E3"), rest), None);
    }
}
