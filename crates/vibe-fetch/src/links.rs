//! Links within a package become plain files.
//!
//! They are resolved against the scanned tree, never by the file system: a link can therefore reach
//! only what ships. A link to a file is a copy of it; a link to a directory has a copy of each of
//! its files below it, through further links as well. A directory that is reached again on the way
//! to itself would never end and is refused; what merely multiplies is stopped by the entry limit.

use std::ops::Bound;
use std::path::Path;

use vibe_core::RelPath;
use vibe_core::text::escape_bytes;

use crate::collect::{EntryCount, FileFacts, Node, Nodes, Refuse};
use crate::error::{FetchError, LinkProblem};

/// Links followed on the way to one target, as many as Linux follows.
const HOPS: usize = 40;

/// A file as it is installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Resolved {
    /// Where it is installed.
    pub(crate) path: RelPath,
    /// The real file it is made from.
    pub(crate) real: RelPath,
    /// What is known of that file.
    pub(crate) facts: FileFacts,
}

/// The files of `nodes`, links replaced by what they stand for, sorted. `exists` says whether there
/// is something at a path that does not ship, `refuse` whether to go on without an entry.
pub(crate) fn resolve_links(
    nodes: &Nodes,
    entry_limit: usize,
    exists: &dyn Fn(&str) -> bool,
    refuse: Refuse<'_>,
) -> Result<Vec<Resolved>, FetchError> {
    let mut expansion = Expansion {
        nodes,
        exists,
        entries: EntryCount::new(entry_limit),
        files: Vec::new(),
    };
    for (path, node) in nodes {
        let whole = expansion.files.len();
        if let Err(error) = expansion.add(path.clone(), path, node, &mut Vec::new()) {
            refuse(error)?;
            expansion.files.truncate(whole);
        }
    }
    expansion.files.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(expansion.files)
}

struct Expansion<'a> {
    nodes: &'a Nodes,
    exists: &'a dyn Fn(&str) -> bool,
    entries: EntryCount,
    files: Vec<Resolved>,
}

impl<'a> Expansion<'a> {
    /// Adds what the entry `real` stands for at `path`; `through` are the links on the way there.
    fn add(
        &mut self,
        path: RelPath,
        real: &'a RelPath,
        node: &'a Node,
        through: &mut Vec<&'a RelPath>,
    ) -> Result<(), FetchError> {
        self.entries.add(node)?;
        match node {
            Node::File(facts) => self.files.push(Resolved {
                path,
                real: real.clone(),
                facts: *facts,
            }),
            Node::Directory => {}
            Node::Link(said) => {
                through.push(real);
                self.add_target(&path, real, said, through)?;
                through.pop();
            }
        }
        Ok(())
    }

    fn add_target(
        &mut self,
        path: &RelPath,
        link: &'a RelPath,
        said: &[u8],
        through: &mut Vec<&'a RelPath>,
    ) -> Result<(), FetchError> {
        let refused = |problem| FetchError::Link {
            path: link.clone(),
            target: escape_bytes(said),
            problem,
        };
        let target = resolve(self.nodes, link, said, self.exists).map_err(refused)?;
        let node = &self.nodes[target];
        if let Node::File(_) = node {
            return self.add(path.clone(), target, node, through);
        }
        // Copying the target reaches every link in it again, and so the way here.
        if through.iter().any(|link| link.starts_with(target)) {
            return Err(refused(LinkProblem::Loops));
        }
        for (real, node) in below(self.nodes, target) {
            let rest = &real.as_str()[target.as_str().len() + 1..];
            self.add(path.join(rest)?, real, node, through)?;
        }
        Ok(())
    }
}

fn below<'a>(
    nodes: &'a Nodes,
    directory: &'a RelPath,
) -> impl Iterator<Item = (&'a RelPath, &'a Node)> {
    // In byte order `a-x` lies between `a` and `a/b`, so the range is longer than the directory.
    nodes
        .range((Bound::Excluded(directory), Bound::Unbounded))
        .take_while(|(path, _)| path.as_str().starts_with(directory.as_str()))
        .filter(|(path, _)| path.starts_with(directory))
}

/// The file or directory that the link at `link`, which says `said`, leads to.
fn resolve<'a>(
    nodes: &'a Nodes,
    link: &RelPath,
    said: &[u8],
    exists: &dyn Fn(&str) -> bool,
) -> Result<&'a RelPath, LinkProblem> {
    let mut place: Option<&'a RelPath> = link.parent().and_then(|path| key_of(nodes, &path));
    let mut ahead = steps(said)?;
    let mut hops = 0;
    while let Some(step) = ahead.pop() {
        let Step::Into(name) = step else {
            place = parent_key(nodes, place.ok_or(LinkProblem::Leaves)?);
            continue;
        };
        let next = place.map_or(name.clone(), |place| format!("{place}/{name}"));
        let found = RelPath::new(&next)
            .ok()
            .and_then(|path| nodes.get_key_value(&path));
        match found {
            None if exists(&next) => return Err(LinkProblem::NotShipped),
            None => return Err(LinkProblem::Dangles),
            Some((_, Node::File(_))) if !ahead.is_empty() => return Err(LinkProblem::Dangles),
            Some((path, Node::File(_) | Node::Directory)) => place = Some(path),
            Some((_, Node::Link(_))) if hops == HOPS => return Err(LinkProblem::Loops),
            Some((_, Node::Link(said))) => {
                hops += 1;
                ahead.extend(steps(said)?);
            }
        }
    }
    // The root holds every link, so a link to it has no end.
    place.ok_or(LinkProblem::Loops)
}

enum Step {
    Up,
    Into(String),
}

/// The steps of a relative target, the first one last.
fn steps(said: &[u8]) -> Result<Vec<Step>, LinkProblem> {
    // No entry that ships has a name that is no text.
    let said = std::str::from_utf8(said).map_err(|_| LinkProblem::Dangles)?;
    if said.is_empty() {
        return Err(LinkProblem::Dangles);
    }
    if said.starts_with('/') || Path::new(said).is_absolute() {
        return Err(LinkProblem::Absolute);
    }
    let step = |component: &str| match component {
        "" | "." => None,
        ".." => Some(Step::Up),
        name => Some(Step::Into(name.to_owned())),
    };
    Ok(said.split('/').rev().filter_map(step).collect())
}

fn parent_key<'a>(nodes: &'a Nodes, path: &RelPath) -> Option<&'a RelPath> {
    path.parent().and_then(|parent| key_of(nodes, &parent))
}

fn key_of<'a>(nodes: &'a Nodes, path: &RelPath) -> Option<&'a RelPath> {
    nodes.get_key_value(path).map(|(key, _)| key)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn path(text: &str) -> RelPath {
        RelPath::new(text).unwrap()
    }

    /// `a/` is a directory, `a -> b` a link, anything else a file.
    fn nodes(entries: &[&str]) -> Nodes {
        let stat = vibe_fs::stat_of(Path::new("/")).unwrap().unwrap();
        let node = |entry: &str| match (entry.split_once(" -> "), entry.strip_suffix('/')) {
            (Some((link, said)), _) => (path(link), Node::Link(said.as_bytes().to_vec())),
            (_, Some(directory)) => (path(directory), Node::Directory),
            _ => (path(entry), Node::File(FileFacts::Disk(stat))),
        };
        entries.iter().map(|entry| node(entry)).collect()
    }

    fn expand(entries: &[&str], limit: usize) -> Result<Vec<String>, FetchError> {
        let hidden = |path: &str| path == "hidden";
        let files = resolve_links(&nodes(entries), limit, &hidden, &mut Err)?;
        let shown = |file: &Resolved| format!("{}={}", file.path, file.real);
        Ok(files.iter().map(shown).collect())
    }

    fn check(entries: &[&str], expected: &[&str]) {
        assert_eq!(expand(entries, 100).unwrap(), expected, "{entries:?}");
    }

    fn refused(entries: &[&str], link: &str, expected: LinkProblem) {
        match expand(entries, 100) {
            Err(FetchError::Link { path, problem, .. }) => {
                assert_eq!((path.as_str(), problem), (link, expected), "{entries:?}");
            }
            other => panic!("{entries:?}: {other:?}"),
        }
    }

    #[test]
    fn a_link_to_a_file_becomes_that_file() {
        check(&["f", "l -> f"], &["f=f", "l=f"]);
        check(&["d/", "d/f", "l -> d/f"], &["d/f=d/f", "l=d/f"]);
        check(&["f", "d/", "d/l -> ../f"], &["d/l=f", "f=f"]);
        check(&["f", "d/", "l -> ./d/.././f"], &["f=f", "l=f"]);
        check(&["f", "k -> l", "l -> f"], &["f=f", "k=f", "l=f"]);
    }

    #[test]
    fn a_link_to_a_directory_becomes_its_files() {
        check(
            &["d/", "d/e/", "d/e/f", "d-x", "l -> d"],
            &["d-x=d-x", "d/e/f=d/e/f", "l/e/f=d/e/f"],
        );
        check(&["d/", "l -> d"], &[]);
        check(
            &["d/", "d/f", "e/", "e/m -> ../d", "l -> e"],
            &["d/f=d/f", "e/m/f=d/f", "l/m/f=d/f"],
        );
        check(
            &["d/", "d/f", "k -> d", "l -> k/f"],
            &["d/f=d/f", "k/f=d/f", "l=d/f"],
        );
        check(
            &["d/", "d/e/", "f", "k -> d/e", "l -> k/../../f"],
            &["f=f", "l=f"],
        );
    }

    #[test]
    fn links_that_leave_dangle_or_are_absolute_are_refused() {
        refused(&["l -> /etc/passwd"], "l", LinkProblem::Absolute);
        refused(&["f", "k -> /f", "l -> k"], "k", LinkProblem::Absolute);
        refused(&["l -> .."], "l", LinkProblem::Leaves);
        refused(&["d/", "d/l -> ../../.."], "d/l", LinkProblem::Leaves);
        refused(
            &["f", "d/", "d/l -> ../../package/f"],
            "d/l",
            LinkProblem::Leaves,
        );
        refused(&["l -> absent"], "l", LinkProblem::Dangles);
        refused(&["f", "l -> f/below"], "l", LinkProblem::Dangles);
        refused(&["f", "l -> f/.."], "l", LinkProblem::Dangles);
        refused(&["l -> hidden"], "l", LinkProblem::NotShipped);
        refused(&["l -> hidden/below"], "l", LinkProblem::NotShipped);
    }

    #[test]
    fn links_that_lead_back_are_refused() {
        refused(&["l -> l"], "l", LinkProblem::Loops);
        refused(&["a -> b", "b -> a"], "a", LinkProblem::Loops);
        refused(&["l -> ."], "l", LinkProblem::Loops);
        refused(&["d/", "d/l -> .."], "d/l", LinkProblem::Loops);
        refused(
            &["d/", "d/e/", "d/e/l -> ../../d"],
            "d/e/l",
            LinkProblem::Loops,
        );
        refused(
            &["a/", "a/l -> ../b", "b/", "b/m -> ../a"],
            "b/m",
            LinkProblem::Loops,
        );
    }

    #[test]
    fn a_chain_of_links_has_a_greatest_length() {
        let chain = |links: usize| {
            let mut entries: Vec<String> = (1..links)
                .map(|n| format!("l{n:02} -> l{:02}", n + 1))
                .collect();
            entries.push(format!("l{links:02} -> f"));
            entries.push("f".to_owned());
            let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
            expand(&entries, 100)
        };
        assert_eq!(chain(HOPS + 1).unwrap().len(), HOPS + 2);
        assert!(chain(HOPS + 2).is_err());
    }

    #[test]
    fn links_that_multiply_are_stopped_by_the_entry_limit() {
        let mut entries = vec!["d30/".to_owned()];
        for n in 0..30 {
            entries.push(format!("d{n}/"));
            entries.push(format!("d{n}/a -> ../d{}", n + 1));
            entries.push(format!("d{n}/b -> ../d{}", n + 1));
        }
        let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
        let error = expand(&entries, 1_000).unwrap_err();
        assert!(matches!(
            error,
            FetchError::TooManyEntries {
                entries: 1_001,
                limit: 1_000
            }
        ));
    }

    #[test]
    fn a_path_through_a_link_obeys_the_rules_of_paths() {
        let deep = vec!["d"; 62].join("/");
        let mut entries: Vec<String> = path(&deep).ancestors().map(|p| format!("{p}/")).collect();
        entries.extend([
            format!("{deep}/"),
            format!("{deep}/f"),
            "x/".to_owned(),
            "x/l -> ../d".to_owned(),
        ]);
        let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
        assert_eq!(expand(&entries, 1_000).unwrap().len(), 2);
        let mut deeper = entries.clone();
        deeper.extend(["x/y/", "x/y/l -> ../../d"]);
        let error = expand(&deeper, 1_000).unwrap_err();
        assert!(matches!(error, FetchError::Name(_)), "{error}");
    }
}
