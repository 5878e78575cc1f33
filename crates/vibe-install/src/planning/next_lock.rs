//! The lock that a run ends with.

use std::collections::BTreeMap;

use vibe_core::formats::lock::{Lock, LockedPackage, LockedSource};
use vibe_core::formats::manifest::Materialization;
use vibe_core::{Sha256Digest, SlotName};

use super::{PlannedPackage, slot_of};
use crate::resolution::Targets;
use crate::target::Target;

/// The lock after the run: an entry for every target. One that was not looked at keeps its entry.
pub(super) fn lock_of(packages: &BTreeMap<SlotName, PlannedPackage>, targets: &Targets) -> Lock {
    let entry = |target: &Target| {
        let planned = |is_clone| packages.get(&slot_of(target, is_clone));
        match planned(false).or_else(|| planned(true)) {
            Some(package) => Some(locked_package(package)),
            None => target.locked.clone(),
        }
    };
    Lock {
        packages: targets.values().filter_map(entry).collect(),
    }
}

fn locked_package(package: &PlannedPackage) -> LockedPackage {
    let target = &package.target;
    let is_path = matches!(target.source, LockedSource::Path(_));
    let known = target.locked.as_ref();
    let install_hooks: BTreeMap<String, Sha256Digest> = match &package.fetched {
        _ if is_path => BTreeMap::new(),
        Some(fetched) => fetched
            .scripts
            .iter()
            .map(|(path, digest)| (path.to_string(), *digest))
            .collect(),
        None => known.map_or_else(BTreeMap::new, |known| known.install_hooks.clone()),
    };
    let materialization = match &package.fetched {
        Some(fetched) => fetched.package.materialization,
        None => known.map_or(Materialization::Copy, |known| known.materialization),
    };
    let git = target.origin.git();
    LockedPackage {
        id: target.id.clone(),
        version: target.version.clone(),
        source: target.source.clone(),
        reference: git.and_then(|git| git.reference.clone()),
        subdir: git.and_then(|git| git.subdir.clone()),
        commit: git.map(|git| git.commit.clone()),
        tree: (!is_path && materialization != Materialization::InPlace).then_some(package.tree),
        materialization,
        dependencies: target.dependencies.clone(),
        install_hooks,
    }
}
