//! The store of packages and the cache of git repositories.

use std::time::Duration;

use indicatif::HumanBytes;
use vibe_core::TreeId;
use vibe_core::text::escape;
use vibe_install::{
    CacheListing, CachePaths, CacheRemovalReport, CacheVerification, CachedGitRepository,
    CachedTree, DamagedCacheTree,
};

use super::style::{ERROR, REMOVED, paint};
use super::{columns, count, duration};

/// Digits of a tree's identity that are shown: enough to tell the trees of one machine apart.
const TREE_DIGITS: usize = 12;
/// Characters of a date in a time of RFC 3339.
const DATE_CHARACTERS: usize = 10;

/// The path of the store, so that it can be used in a command.
pub(crate) fn path_text(paths: &CachePaths) -> String {
    format!("{}\n", escape(&paths.store.to_string_lossy()))
}

/// One line for each tree and for each repository, and their sums.
pub(crate) fn list_text(listing: &CacheListing) -> String {
    if listing.trees.is_empty() && listing.repositories.is_empty() {
        return "nothing is kept\n".to_owned();
    }
    let mut lines = Vec::new();
    if !listing.trees.is_empty() {
        lines.extend(columns(
            &listing.trees.iter().map(tree_cells).collect::<Vec<_>>(),
        ));
        let bytes = sum(listing.trees.iter().map(|tree| tree.bytes));
        let place = escape(&listing.paths.store.to_string_lossy());
        let trees = count(listing.trees.len(), "package");
        lines.push(format!("{trees}, {} in {place}", HumanBytes(bytes)));
    }
    if let (Some(place), false) = (&listing.paths.git, listing.repositories.is_empty()) {
        let rows: Vec<Vec<String>> = listing.repositories.iter().map(repository_cells).collect();
        lines.extend(columns(&rows));
        let bytes = sum(listing.repositories.iter().map(|found| found.bytes));
        let found = repositories(listing.repositories.len());
        let place = escape(&place.to_string_lossy());
        lines.push(format!("{found}, {} in {place}", HumanBytes(bytes)));
    }
    lines.join("\n") + "\n"
}

/// What is wrong, one line for each file, and what was looked at.
pub(crate) fn verify_text(found: &CacheVerification, elapsed: Duration) -> String {
    let rows: Vec<Vec<String>> = found.damaged.iter().flat_map(fault_cells).collect();
    let mut lines: Vec<String> = columns(&rows)
        .iter()
        .map(|row| format!("{} {row}", paint(ERROR, "!")))
        .collect();
    let looked_at = format!(
        "{}, {}, {} in {}",
        count(found.trees, "package"),
        count(found.files, "file"),
        HumanBytes(found.bytes),
        duration(elapsed)
    );
    lines.push(match (found.interrupted, found.damaged.len()) {
        (true, 0) => format!("interrupted after {looked_at}: no damage so far"),
        (true, damaged) => format!("interrupted: {} in {looked_at}", damaged_packages(damaged)),
        (false, 0) => format!("verified {looked_at}: all is as it was stored"),
        (false, damaged) => format!("found {} in {looked_at}", damaged_packages(damaged)),
    });
    lines.join("\n") + "\n"
}

fn damaged_packages(count: usize) -> String {
    super::count(count, "damaged package")
}

/// What was removed and what stays.
pub(crate) fn gc_text(report: &CacheRemovalReport) -> String {
    let stays = format!(
        "{} and {} stay",
        count(report.kept_trees, "package"),
        repositories(report.kept_repositories)
    );
    let nothing = match report.in_use || report.interrupted {
        true => "nothing was removed",
        false => "nothing to remove",
    };
    removal_text(
        report,
        &format!("; {stays}"),
        &format!("{nothing}: {stays}"),
    )
}

/// What was removed.
pub(crate) fn clean_text(report: &CacheRemovalReport) -> String {
    removal_text(report, "", "nothing to remove: nothing is kept")
}

fn removal_text(report: &CacheRemovalReport, end: &str, nothing: &str) -> String {
    let trees = report.trees.iter().map(tree_cells);
    let mut lines = columns(&trees.collect::<Vec<_>>());
    let found = report.repositories.iter().map(repository_cells);
    lines.extend(columns(&found.collect::<Vec<_>>()));
    let mut lines: Vec<String> = lines
        .iter()
        .map(|line| format!("{} {line}", paint(REMOVED, "-")))
        .collect();
    let mut parts = Vec::new();
    if !report.trees.is_empty() {
        parts.push(count(report.trees.len(), "package"));
    }
    if !report.repositories.is_empty() {
        parts.push(repositories(report.repositories.len()));
    }
    if report.leftovers > 0 {
        parts.push(count(report.leftovers, "leftover"));
    }
    let is_nothing = parts.is_empty() && report.bytes == 0;
    if is_nothing {
        lines.push(nothing.to_owned());
    } else {
        parts.push(HumanBytes(report.bytes).to_string());
        lines.push(format!("removed {}{end}", parts.join(", ")));
    }
    if report.interrupted {
        lines.push("interrupted before all was removed".to_owned());
    }
    lines.join("\n") + "\n"
}

fn tree_cells(tree: &CachedTree) -> Vec<String> {
    vec![
        tree.package
            .as_ref()
            .map_or_else(|| "(no name)".to_owned(), ToString::to_string),
        tree.version.clone().unwrap_or_default(),
        short(tree.tree),
        count(tree.files, "file"),
        HumanBytes(tree.bytes).to_string(),
        date(&tree.used),
    ]
}

fn repository_cells(repository: &CachedGitRepository) -> Vec<String> {
    let name = repository.url.as_ref().unwrap_or(&repository.name);
    vec![
        escape(name),
        HumanBytes(repository.bytes).to_string(),
        date(&repository.used),
    ]
}

fn fault_cells(damaged: &DamagedCacheTree) -> Vec<Vec<String>> {
    let name = damaged
        .package
        .as_ref()
        .map_or_else(|| "(no name)".to_owned(), ToString::to_string);
    let version = damaged.version.clone().unwrap_or_default();
    let cells = |fault: &vibe_install::CacheFault| {
        let message = escape(&fault.message);
        let what = match &fault.path {
            Some(path) => format!("{} {message}", escape(path.as_str())),
            None => message,
        };
        vec![name.clone(), version.clone(), short(damaged.tree), what]
    };
    damaged.faults.iter().map(cells).collect()
}

/// The sizes that a listing states are not proved, so that their sum may be none.
fn sum(bytes: impl Iterator<Item = u64>) -> u64 {
    bytes.fold(0, u64::saturating_add)
}

fn repositories(count: usize) -> String {
    match count {
        1 => "1 repository".to_owned(),
        _ => format!("{count} repositories"),
    }
}

/// The beginning of the digits of `tree`.
fn short(tree: TreeId) -> String {
    let text = tree.to_string();
    let digits = text.rsplit(':').next().unwrap_or_default();
    digits.chars().take(TREE_DIGITS).collect()
}

fn date(time: &str) -> String {
    time.chars().take(DATE_CHARACTERS).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::{id, path, plain};
    use std::path::PathBuf;
    use vibe_core::Tree;
    use vibe_install::CacheFault;

    fn tree(package: Option<&str>, bytes: u64) -> CachedTree {
        CachedTree {
            tree: Tree::default().id(),
            package: package.map(id),
            version: package.map(|_| "1.0.0".to_owned()),
            files: 2,
            bytes,
            used: "2026-01-02T03:04:05.678Z".to_owned(),
        }
    }

    fn repository(url: Option<&str>) -> CachedGitRepository {
        CachedGitRepository {
            name: "kit-0123".to_owned(),
            url: url.map(str::to_owned),
            bytes: 9,
            used: "2026-01-02T03:04:05.678Z".to_owned(),
        }
    }

    fn digits() -> String {
        short(Tree::default().id())
    }

    fn paths() -> CachePaths {
        CachePaths {
            store: PathBuf::from("/s"),
            git: Some(PathBuf::from("/g")),
        }
    }

    #[test]
    fn a_list_has_a_line_for_each_thing_and_sums() {
        let listing = |trees: Vec<CachedTree>, repositories| CacheListing {
            paths: paths(),
            bytes: 0,
            trees,
            repositories,
        };
        let trees = vec![tree(Some("org.example/lint"), 2_048), tree(None, 1)];
        let found = vec![repository(Some("https://h/k\u{1b}")), repository(None)];
        assert_eq!(
            list_text(&listing(trees, found)),
            format!(
                "org.example/lint  1.0.0  {0}  2 files  2.00 KiB  2026-01-02
(no name)                {0}  2 files  1 B       2026-01-02
2 packages, 2.00 KiB in /s
https://h/k\\x1B  9 B  2026-01-02
kit-0123         9 B  2026-01-02
2 repositories, 18 B in /g
",
                digits()
            )
        );
        let nothing = listing(Vec::new(), Vec::new());
        assert_eq!(list_text(&nothing), "nothing is kept\n");
        assert_eq!(path_text(&paths()), "/s\n");
    }

    #[test]
    fn every_damaged_file_is_named() {
        let fault = |file: Option<&str>, message: &str| CacheFault {
            path: file.map(path),
            message: message.to_owned(),
        };
        let mut found = CacheVerification {
            trees: 2,
            files: 3,
            bytes: 4,
            damaged: vec![DamagedCacheTree {
                tree: Tree::default().id(),
                package: Some(id("org.example/lint")),
                version: Some("1.0.0".to_owned()),
                faults: vec![
                    fault(Some("a/b"), "is missing"),
                    fault(None, "its listing x"),
                ],
                quarantined: true,
                place: PathBuf::from("/s"),
            }],
            interrupted: false,
        };
        let text = |found: &CacheVerification| plain(&verify_text(found, Duration::ZERO));
        assert_eq!(
            text(&found),
            format!(
                "! org.example/lint  1.0.0  {0}  a/b is missing
! org.example/lint  1.0.0  {0}  its listing x
found 1 damaged package in 2 packages, 3 files, 4 B in 0ms
",
                digits()
            )
        );
        found.interrupted = true;
        assert!(text(&found).contains("\ninterrupted: 1 damaged package in 2 packages"));
        found.damaged.clear();
        assert!(text(&found).starts_with("interrupted after 2 packages"));
        found.interrupted = false;
        assert_eq!(
            text(&found),
            "verified 2 packages, 3 files, 4 B in 0ms: all is as it was stored\n"
        );
    }

    #[test]
    fn a_removal_says_what_went_and_what_stays() {
        let mut report = CacheRemovalReport {
            kept_trees: 1,
            ..CacheRemovalReport::default()
        };
        assert_eq!(
            gc_text(&report),
            "nothing to remove: 1 package and 0 repositories stay\n"
        );
        assert_eq!(clean_text(&report), "nothing to remove: nothing is kept\n");
        report.in_use = true;
        assert!(gc_text(&report).starts_with("nothing was removed: 1 package"));
        report.trees = vec![tree(None, 1)];
        report.repositories = vec![repository(None)];
        report.leftovers = 2;
        report.bytes = 12;
        report.interrupted = true;
        assert_eq!(
            plain(&gc_text(&report)),
            format!(
                "- (no name)  {}  2 files  1 B  2026-01-02
- kit-0123  9 B  2026-01-02
removed 1 package, 1 repository, 2 leftovers, 12 B; 1 package and 0 repositories stay
interrupted before all was removed
",
                digits()
            )
        );
    }
}
