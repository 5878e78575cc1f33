//! Which packages require which, drawn as a tree.
//!
//! A package is drawn with what is below it once; where it comes again it gets `(*)`, and where it
//! is below itself `(cycle)`. So a drawing has no more lines than the graph has edges.

use std::collections::{BTreeMap, BTreeSet};

use vibe_core::PackageId;
use vibe_install::{PackageSummary, TreeReport};

use super::list::flags;

/// Steps from the start that are drawn where nothing else is asked for: a line grows with its depth,
/// and nobody reads a deeper one.
const DEPTH_DRAWN: usize = 100;

/// How to draw.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Drawing {
    /// The steps from the start that were asked for.
    pub(crate) depth: Option<usize>,
    /// Whether lines may be drawn with other characters than those of ASCII.
    pub(crate) is_utf8: bool,
}

/// What stands before a name: of one that others follow, of the last, and below each of these.
struct Branches {
    between: &'static str,
    last: &'static str,
    below_between: &'static str,
    below_last: &'static str,
}

const UTF8: Branches = Branches {
    between: "├── ",
    last: "└── ",
    below_between: "│   ",
    below_last: "    ",
};

const ASCII: Branches = Branches {
    between: "|-- ",
    last: "`-- ",
    below_between: "|   ",
    below_last: "    ",
};

/// Something that is drawn. Roots are known by their place in the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Node<'a> {
    Root(usize),
    Package(&'a PackageId),
}

/// A node that waits to be drawn.
struct Waiting<'a> {
    node: Node<'a>,
    depth: usize,
    is_last: bool,
}

/// The tree of each start, one below the other.
pub(crate) fn text(report: &TreeReport, drawing: Drawing) -> String {
    if report.packages.is_empty() {
        return "no packages are installed\n".to_owned();
    }
    let graph = Graph::of(report);
    let starts: Vec<Node<'_>> = match report.starts.is_empty() {
        true => (0..report.roots.len()).map(Node::Root).collect(),
        false => report.starts.iter().map(Node::Package).collect(),
    };
    let mut drawn = Drawn {
        graph: &graph,
        drawing,
        expanded: BTreeMap::new(),
        is_cut: false,
        lines: String::new(),
    };
    starts.into_iter().for_each(|start| drawn.draw(start));
    if drawn.is_cut {
        drawn.lines += &format!(
            "nothing below {DEPTH_DRAWN} steps is drawn; name a package to start there, or ask for \
             more with --depth N\n"
        );
    }
    drawn.lines
}

/// The report, ready to be looked things up in.
struct Graph<'a> {
    report: &'a TreeReport,
    packages: BTreeMap<&'a PackageId, &'a PackageSummary>,
    /// What comes below each node, in order.
    below: BTreeMap<Node<'a>, Vec<Node<'a>>>,
}

impl<'a> Graph<'a> {
    fn of(report: &'a TreeReport) -> Self {
        let of_package = |package: &'a PackageSummary| {
            let required = package.dependencies.iter();
            required.map(|id| (Node::Package(&package.id), Node::Package(id)))
        };
        let of_root = |index: usize| {
            let required = report.roots[index].dependencies.iter();
            required.map(move |id| (Node::Root(index), Node::Package(id)))
        };
        let roots = (0..report.roots.len()).flat_map(of_root);
        let mut below: BTreeMap<Node<'_>, Vec<Node<'_>>> = BTreeMap::new();
        for (requirer, required) in roots.chain(report.packages.iter().flat_map(of_package)) {
            let (from, to) = match report.inverted {
                true => (required, requirer),
                false => (requirer, required),
            };
            below.entry(from).or_default().push(to);
        }
        let packages = report.packages.iter();
        Self {
            report,
            packages: packages.map(|package| (&package.id, package)).collect(),
            below,
        }
    }

    fn below(&self, node: Node<'a>) -> &[Node<'a>] {
        self.below.get(&node).map_or(&[], Vec::as_slice)
    }

    /// A node in words.
    fn label(&self, node: Node<'_>) -> String {
        match node {
            Node::Root(index) if self.report.inverted => {
                format!("{} (this project)", self.report.roots[index].name)
            }
            Node::Root(index) => self.report.roots[index].name.clone(),
            Node::Package(id) => match self.packages.get(id) {
                Some(package) => package_label(package),
                None => format!("{id} (not in vibe.lock)"),
            },
        }
    }
}

fn package_label(package: &PackageSummary) -> String {
    let label = format!("{} {}", package.id, package.version);
    let flags = flags(package);
    match flags.is_empty() {
        true => label,
        false => format!("{label}  {}", flags.join(", ")),
    }
}

/// A drawing under way.
struct Drawn<'a> {
    graph: &'a Graph<'a>,
    drawing: Drawing,
    /// The nodes that were drawn with what is below them, and the least depth at which they were.
    expanded: BTreeMap<Node<'a>, usize>,
    /// Something was left out that nobody asked to leave out.
    is_cut: bool,
    lines: String,
}

impl<'a> Drawn<'a> {
    /// Draws `start` with all that is below it.
    fn draw(&mut self, start: Node<'a>) {
        let mut waiting = vec![Waiting {
            node: start,
            depth: 0,
            is_last: true,
        }];
        // The nodes above the one that is drawn, and whether each is the last below its own.
        let mut above: Vec<(Node<'a>, bool)> = Vec::new();
        let mut on_the_way: BTreeSet<Node<'a>> = BTreeSet::new();
        while let Some(next) = waiting.pop() {
            for (node, _) in above.drain(next.depth..) {
                on_the_way.remove(&node);
            }
            let is_cycle = on_the_way.contains(&next.node);
            let below = self.graph.below(next.node);
            let expands = !is_cycle && self.expands(&next, below.is_empty());
            let mark = match (is_cycle, expands) {
                (true, _) => " (cycle)",
                (false, false) if self.is_expanded(&next) => " (*)",
                (false, _) => "",
            };
            self.line(&above, &next, mark);
            if !expands {
                continue;
            }
            self.expanded.insert(next.node, next.depth);
            above.push((next.node, next.is_last));
            on_the_way.insert(next.node);
            let children = below.iter().rev().enumerate();
            waiting.extend(children.map(|(index, node)| Waiting {
                node: *node,
                depth: next.depth + 1,
                is_last: index == 0,
            }));
        }
    }

    /// Whether all that may be drawn below `next` was drawn before.
    fn is_expanded(&self, next: &Waiting<'_>) -> bool {
        let at = self.expanded.get(&next.node);
        // What was cut short deeper down may be drawn further from here.
        at.is_some_and(|at| self.drawing.depth.is_none() || *at <= next.depth)
    }

    /// Whether what is below `next` is to be drawn.
    fn expands(&mut self, next: &Waiting<'_>, is_leaf: bool) -> bool {
        if is_leaf || self.is_expanded(next) {
            return false;
        }
        let is_deep = next.depth >= self.drawing.depth.unwrap_or(DEPTH_DRAWN);
        self.is_cut |= is_deep && self.drawing.depth.is_none();
        !is_deep
    }

    fn line(&mut self, above: &[(Node<'_>, bool)], next: &Waiting<'_>, mark: &str) {
        let branches = if self.drawing.is_utf8 { &UTF8 } else { &ASCII };
        // The start has no branch, nor has what is below it one for it.
        for (_, is_last) in above.iter().skip(1) {
            self.lines += match is_last {
                true => branches.below_last,
                false => branches.below_between,
            };
        }
        if next.depth > 0 {
            self.lines += match next.is_last {
                true => branches.last,
                false => branches.between,
            };
        }
        self.lines += &self.graph.label(next.node);
        self.lines += mark;
        self.lines.push('\n');
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::{id, package};
    use vibe_core::hook::{Phase, PhaseState};
    use vibe_install::{PhaseSummary, TreeRoot};

    /// A graph of packages of the group `a`, each `name: what it requires`; the project requires the
    /// first.
    fn graph(text: &str) -> TreeReport {
        let mut packages: Vec<PackageSummary> = Vec::new();
        for line in text.split(", ") {
            let (name, required) = line.split_once(':').unwrap();
            let mut found = package(&format!("a/{name}"), "1.0.0");
            let required = required.split_whitespace();
            found.dependencies = required.map(|name| id(&format!("a/{name}"))).collect();
            packages.push(found);
        }
        let dependencies = vec![packages[0].id.clone()];
        TreeReport {
            inverted: false,
            starts: Vec::new(),
            roots: vec![TreeRoot {
                name: "world".to_owned(),
                dependencies,
            }],
            packages,
        }
    }

    fn drawn(report: &TreeReport, depth: Option<usize>) -> String {
        let is_utf8 = false;
        text(report, Drawing { depth, is_utf8 }).replace(" 1.0.0", "")
    }

    #[test]
    fn a_tree_is_drawn_with_what_the_locale_has() {
        let report = graph("x:y z, y:z, z:");
        let is_utf8 = true;
        let depth = None;
        assert_eq!(
            text(&report, Drawing { depth, is_utf8 }),
            "world
└── a/x 1.0.0
    ├── a/y 1.0.0
    │   └── a/z 1.0.0
    └── a/z 1.0.0
"
        );
        assert_eq!(
            drawn(&report, None),
            "world\n`-- a/x\n    |-- a/y\n    |   `-- a/z\n    `-- a/z\n"
        );
    }

    #[test]
    fn what_comes_again_is_not_drawn_again() {
        let report = graph("x:y z, y:z, z:w, w:");
        assert_eq!(
            drawn(&report, None),
            "world\n`-- a/x\n    |-- a/y\n    |   `-- a/z\n    |       `-- a/w\n    `-- a/z (*)\n"
        );
    }

    #[test]
    fn a_cycle_ends_where_it_closes() {
        let report = graph("x:y, y:x z, z:y");
        assert_eq!(
            drawn(&report, None),
            "world\n`-- a/x\n    `-- a/y\n        |-- a/x (cycle)\n        `-- a/z\n            `-- a/y (cycle)\n"
        );
        let itself = graph("x:x");
        assert_eq!(
            drawn(&itself, None),
            "world\n`-- a/x\n    `-- a/x (cycle)\n"
        );
    }

    #[test]
    fn a_depth_cuts_and_what_was_cut_is_drawn_where_there_is_room() {
        let report = graph("x:y z, y:z, z:w, w:");
        assert_eq!(drawn(&report, Some(0)), "world\n");
        assert_eq!(drawn(&report, Some(1)), "world\n`-- a/x\n");
        assert_eq!(
            drawn(&report, Some(3)),
            "world\n`-- a/x\n    |-- a/y\n    |   `-- a/z\n    `-- a/z\n        `-- a/w\n"
        );
    }

    #[test]
    fn an_inverted_tree_ends_at_the_project() {
        let mut report = graph("x:y z, y:z, z:");
        report.inverted = true;
        report.starts = vec![id("a/z")];
        assert_eq!(
            drawn(&report, None),
            "a/z\n|-- a/x\n|   `-- world (this project)\n`-- a/y\n    `-- a/x (*)\n"
        );
    }

    #[test]
    fn every_package_says_what_is_open() {
        let mut report = graph("x:gone, y:");
        report.packages[0].phases.push(PhaseSummary {
            phase: Phase::PostInstall,
            state: PhaseState::Owed,
        });
        report.packages[1].installed = false;
        report.roots[0].dependencies.push(id("a/y"));
        assert_eq!(
            drawn(&report, None),
            "world\n|-- a/x  post-install owed\n|   `-- a/gone (not in vibe.lock)\n`-- a/y  not installed\n"
        );
        report.packages.clear();
        assert_eq!(drawn(&report, None), "no packages are installed\n");
    }

    #[test]
    fn a_long_chain_is_drawn_as_far_as_one_reads() {
        let names = (0..10_000).map(|n| format!("n{n:05}:n{:05}", n + 1));
        let report = graph(&names.collect::<Vec<_>>().join(", "));
        let text = drawn(&report, None);
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), DEPTH_DRAWN + 2);
        assert!(lines[DEPTH_DRAWN].ends_with("a/n00099"), "{}", lines[100]);
        assert!(lines[DEPTH_DRAWN + 1].starts_with("nothing below 100 steps"));
        let deep = drawn(&report, Some(1_000));
        assert_eq!(deep.lines().count(), 1_001);
    }

    #[test]
    fn a_dense_graph_has_no_more_lines_than_edges() {
        const LAYERS: usize = 100;
        const WIDE: usize = 20;
        let name = |layer: usize, n: usize| format!("l{layer:03}x{n:02}");
        let mut lines = Vec::new();
        for (layer, n) in (0..LAYERS).flat_map(|l| (0..WIDE).map(move |n| (l, n))) {
            let below = (0..WIDE).filter(|_| layer + 1 < LAYERS);
            let below: Vec<String> = below.map(|n| name(layer + 1, n)).collect();
            lines.push(format!("{}:{}", name(layer, n), below.join(" ")));
        }
        let report = graph(&lines.join(", "));
        // The project, its package, and what that reaches: every edge once.
        let expected = 2 + WIDE + (LAYERS - 2) * WIDE * WIDE;
        assert_eq!(drawn(&report, None).lines().count(), expected);
    }
}
