//! What a run changes in the lock: versions and commits that move, and install hooks that are new or
//! other than they were. Told before anything is done.

use serde::Serialize;
use vibe_core::PackageId;
use vibe_core::formats::lock::{Lock, LockedPackage};
use vibe_core::text::escape;

use crate::planning::Planned;
use crate::repositories::Repositories;

/// Characters of a commit that are shown.
const COMMIT_CHARACTERS: usize = 12;

/// One package whose entry in the lock changes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct PackageMove {
    /// The package.
    pub id: PackageId,
    /// What the lock says; `None` for a package that is new.
    pub from: Option<LockedPoint>,
    /// What it will say; `None` for a package that goes.
    pub to: Option<LockedPoint>,
    /// The same branch or tag now names a commit that does not follow the locked one.
    pub not_descendant: bool,
    /// The scripts that change.
    pub install_hooks: Vec<HookChange>,
}

/// Where a package stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct LockedPoint {
    /// Its version.
    pub version: String,
    /// Its reference in its repository, as the lock writes it.
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    /// Its commit.
    pub commit: Option<String>,
}

/// One script of a package, or one command, that an install runs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct HookChange {
    /// The script's path, or the command's key in the lock.
    pub script: String,
    /// What happens to it.
    pub change: HookChangeKind,
    /// How many lines it has now, where it was read.
    pub lines: Option<usize>,
}

/// What happens to a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum HookChangeKind {
    /// The lock does not name it yet.
    New,
    /// It has other content.
    Changed,
    /// It is no longer there.
    Removed,
}

/// Everything in which the lock of `planned` differs from `before`, by id.
pub(crate) fn moves(
    before: &Lock,
    planned: &Planned,
    repositories: &Repositories<'_>,
) -> Vec<PackageMove> {
    let after = &planned.lock;
    let mut ids: Vec<&PackageId> = before
        .packages
        .iter()
        .chain(&after.packages)
        .map(|package| &package.id)
        .collect();
    ids.sort();
    ids.dedup();
    let changes = ids
        .into_iter()
        .filter_map(|id| package_move(before.get(id), after.get(id), planned, repositories));
    changes.collect()
}

fn package_move(
    from: Option<&LockedPackage>,
    to: Option<&LockedPackage>,
    planned: &Planned,
    repositories: &Repositories<'_>,
) -> Option<PackageMove> {
    let (from_point, to_point) = (from.map(point), to.map(point));
    let install_hooks = hook_changes(from, to, planned);
    if from_point == to_point && install_hooks.is_empty() {
        return None;
    }
    let not_descendant = match (from, to) {
        (Some(from), Some(to)) => left_history(from, to, repositories),
        _ => false,
    };
    Some(PackageMove {
        id: from.or(to)?.id.clone(),
        from: from_point,
        to: to_point,
        not_descendant,
        install_hooks,
    })
}

fn point(package: &LockedPackage) -> LockedPoint {
    LockedPoint {
        version: package.version.to_string(),
        reference: package.reference.clone(),
        commit: package.commit.clone(),
    }
}

/// Whether the same reference of the same repository names a commit that does not come after the
/// locked one. The versions of a range are different tags, and these may lie on different branches.
fn left_history(from: &LockedPackage, to: &LockedPackage, repositories: &Repositories<'_>) -> bool {
    let is_range = |reference: &String| reference.starts_with("range:");
    let same = from.source == to.source
        && from.reference == to.reference
        && (from.version == to.version || !to.reference.as_ref().is_some_and(is_range));
    let (true, Some(old), Some(new)) = (same, &from.commit, &to.commit) else {
        return false;
    };
    old != new && !repositories.follows(to, old, new)
}

fn hook_changes(
    from: Option<&LockedPackage>,
    to: Option<&LockedPackage>,
    planned: &Planned,
) -> Vec<HookChange> {
    let mut changes = Vec::new();
    let to_hooks = to.into_iter().flat_map(|to| &to.install_hooks);
    for (script, digest) in to_hooks {
        let known = from.and_then(|from| from.install_hooks.get(script));
        let change = match known {
            None => HookChangeKind::New,
            Some(known) if known != digest => HookChangeKind::Changed,
            Some(_) => continue,
        };
        changes.push(HookChange {
            script: script.clone(),
            change,
            lines: to.and_then(|to| planned.script_lines(&to.id, script)),
        });
    }
    let from_hooks = from.into_iter().flat_map(|from| from.install_hooks.keys());
    let is_gone = |script: &&String| to.is_some_and(|to| !to.install_hooks.contains_key(*script));
    changes.extend(from_hooks.filter(is_gone).map(|script| HookChange {
        script: script.clone(),
        change: HookChangeKind::Removed,
        lines: None,
    }));
    changes
}

impl PackageMove {
    /// The move as sentences, the most important last.
    pub fn lines(&self) -> Vec<String> {
        let mut lines = Vec::new();
        let id = &self.id;
        match (&self.from, &self.to) {
            (Some(from), Some(to)) if from != to => {
                lines.push(format!("{id} {}", move_text(from, to)));
            }
            (None, Some(to)) => lines.push(format!("{id} {} is new", to.version)),
            (Some(from), None) => lines.push(format!("{id} {} goes", from.version)),
            _ => {}
        }
        lines.extend(self.install_hooks.iter().map(|hook| {
            let what = match hook.change {
                HookChangeKind::New => "a new install hook",
                HookChangeKind::Changed => "a changed install hook",
                HookChangeKind::Removed => "no longer the install hook",
            };
            let count = match hook.lines {
                Some(1) => " (1 line)".to_owned(),
                Some(lines) => format!(" ({lines} lines)"),
                None => String::new(),
            };
            format!("{id} has {what} {}{count}", escape(&hook.script))
        }));
        lines
    }

    /// What to look at twice: a reference that left its history.
    pub fn warning(&self) -> Option<String> {
        let (true, Some(from), Some(to)) = (self.not_descendant, &self.from, &self.to) else {
            return None;
        };
        let reference = to.reference.as_deref().unwrap_or("the default branch");
        Some(format!(
            "{} of {} was rewritten: {} is not a descendant of {}, which the lock names",
            escape(reference),
            self.id,
            short(to.commit.as_deref()),
            short(from.commit.as_deref()),
        ))
    }
}

fn move_text(from: &LockedPoint, to: &LockedPoint) -> String {
    let is_same = from.version == to.version;
    match (is_same, &from.commit, &to.commit) {
        (true, Some(_), Some(_)) => format!(
            "{} moves from {} to {}",
            to.version,
            short(from.commit.as_deref()),
            short(to.commit.as_deref())
        ),
        (true, _, _) => format!("{} comes from another place", to.version),
        (false, _, _) => format!("{} -> {}", from.version, to.version),
    }
}

fn short(commit: Option<&str>) -> &str {
    commit.map_or("nothing", |commit| {
        commit.get(..COMMIT_CHARACTERS).unwrap_or(commit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(version: &str, commit: Option<&str>) -> Option<LockedPoint> {
        Some(LockedPoint {
            version: version.to_owned(),
            reference: commit.map(|_| "branch:main".to_owned()),
            commit: commit.map(str::to_owned),
        })
    }

    fn check(from: Option<LockedPoint>, to: Option<LockedPoint>, expected: &str) {
        let found = PackageMove {
            id: "org.example/lint".parse().unwrap(),
            from,
            to,
            not_descendant: false,
            install_hooks: Vec::new(),
        };
        assert_eq!(found.lines(), [expected]);
        assert_eq!(found.warning(), None);
    }

    #[test]
    fn a_move_says_what_moved() {
        let (one, two) = ("1".repeat(40), "2".repeat(40));
        check(
            at("1.0.0", None),
            at("1.1.0", None),
            "org.example/lint 1.0.0 -> 1.1.0",
        );
        check(
            at("1.0.0", Some(&one)),
            at("1.0.0", Some(&two)),
            "org.example/lint 1.0.0 moves from 111111111111 to 222222222222",
        );
        check(
            at("1.0.0", None),
            at("1.0.0", Some(&two)),
            "org.example/lint 1.0.0 comes from another place",
        );
        check(None, at("1.0.0", None), "org.example/lint 1.0.0 is new");
        check(at("1.0.0", None), None, "org.example/lint 1.0.0 goes");
    }

    #[test]
    fn new_and_changed_install_hooks_are_named_with_their_length() {
        let hook = |script: &str, change, lines| HookChange {
            script: script.to_owned(),
            change,
            lines,
        };
        let found = PackageMove {
            id: "org.example/lint".parse().unwrap(),
            from: at("1.0.0", None),
            to: at("1.0.0", None),
            not_descendant: false,
            install_hooks: vec![
                hook("hooks/a.sh", HookChangeKind::New, Some(12)),
                hook("hooks/b\u{1b}.sh", HookChangeKind::Changed, Some(1)),
                hook("hooks/c.sh", HookChangeKind::Removed, None),
            ],
        };
        assert_eq!(
            found.lines(),
            [
                "org.example/lint has a new install hook hooks/a.sh (12 lines)",
                "org.example/lint has a changed install hook hooks/b\\x1B.sh (1 line)",
                "org.example/lint has no longer the install hook hooks/c.sh",
            ]
        );
    }

    #[test]
    fn a_rewritten_branch_is_a_warning() {
        let found = PackageMove {
            id: "org.example/lint".parse().unwrap(),
            from: at("1.0.0", Some(&"1".repeat(40))),
            to: at("1.0.0", Some(&"2".repeat(40))),
            not_descendant: true,
            install_hooks: Vec::new(),
        };
        assert_eq!(
            found.warning().unwrap(),
            "branch:main of org.example/lint was rewritten: 222222222222 is not a descendant of \
             111111111111, which the lock names"
        );
    }
}
