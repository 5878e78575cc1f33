//! A slot on a disk in memory, driven through random installs, edits, hooks and crashes.

use std::collections::{BTreeMap, BTreeSet};

use proptest::prelude::*;
use proptest::sample::Index;
use vibe_core::contents::{DiskEntry, SlotContents};
use vibe_core::formats::record::SlotRecord;
use vibe_core::formats::state::{AfterFile, LinkMode, MadeKind, MadePath, RunningHook, SlotState};
use vibe_core::hook::{Phase, PhaseState, Reset};
use vibe_core::plan::{FileChange, HookDecision, Refresh, Step};
use vibe_core::{RelPath, Tree, Version};

use crate::removal::removal;
use crate::slot_plan::{Desired, Found, SlotOptions, SlotPlan, plan_slot, recorded_row};
use crate::testing::{digest, hook, path, row, slot};

const PATHS: [&str; 9] = [
    "a",
    "a/x",
    "a/y",
    "a/z/f",
    "b",
    "b.vibe-kept",
    "c/d",
    "c/d/e",
    "c/f",
];

#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    File(String, bool),
    Directory,
    Symlink,
}

/// A published package: its files and the phases that its manifest, one of them, declares.
#[derive(Debug, Clone)]
struct Package {
    tree: Tree,
    texts: BTreeMap<RelPath, String>,
    phases: Vec<Phase>,
    reset: Reset,
}

#[derive(Debug, Clone, Copy)]
enum Fault {
    None,
    /// The run is killed after so many of its changes.
    Crash(Index),
    /// The run is killed after the first hook did so much of its work.
    Interrupt(Index),
    /// The first hook ends with another exit code than 0.
    Failure,
}

#[derive(Debug, Clone)]
enum Act {
    Write(&'static str),
    Delete(&'static str),
    Link(&'static str),
    Directory(&'static str),
}

#[derive(Debug, Clone)]
enum Action {
    User(Act),
    LoseRecord,
    LoseState,
    Install {
        package: usize,
        fault: Fault,
        held: bool,
        force: bool,
    },
}

#[derive(Debug, Clone, Default)]
struct World {
    disk: BTreeMap<RelPath, Node>,
    record: Option<SlotRecord>,
    state: Option<SlotState>,
    edits: usize,
}

impl World {
    fn below<'a>(&'a self, top: &'a RelPath) -> impl Iterator<Item = (&'a RelPath, &'a Node)> {
        self.disk
            .iter()
            .filter(move |(path, _)| path.starts_with(top))
    }

    fn remove(&mut self, top: &RelPath) {
        self.disk.retain(|path, _| !path.starts_with(top));
    }

    /// Puts `node` at `path` if everything on the way is a directory.
    fn put(&mut self, path: &RelPath, node: Node) -> bool {
        let is_open = |at: &RelPath| matches!(self.disk.get(at), None | Some(Node::Directory));
        let open = path.ancestors().all(|ancestor| is_open(&ancestor));
        if open {
            for ancestor in path.ancestors() {
                self.disk.insert(ancestor, Node::Directory);
            }
            self.disk.insert(path.clone(), node);
        }
        open
    }

    fn listing(&self, top: &RelPath) -> Option<MadePath> {
        self.disk.get(top)?;
        let below: Vec<_> = self.below(top).collect();
        Some(MadePath {
            kind: MadeKind::Other,
            listing: digest(&format!("{below:?}")),
        })
    }

    fn contents(&self) -> SlotContents {
        let entry = |node: &Node| match node {
            Node::File(text, exec) => DiskEntry::File {
                digest: Some(digest(text)),
                exec: *exec,
            },
            Node::Directory => DiskEntry::Directory,
            Node::Symlink => DiskEntry::Symlink,
        };
        let entries = self
            .disk
            .iter()
            .map(|(path, node)| (path.clone(), entry(node)));
        let made = self.state.iter().flat_map(|state| &state.made);
        SlotContents {
            entries: entries.collect(),
            unchanged_made: made
                .filter(|(path, made)| self.listing(path) == Some(**made))
                .map(|(path, _)| path.clone())
                .collect(),
            unnamed: Vec::new(),
        }
    }

    fn plan(&self, package: &Package, options: &SlotOptions) -> SlotPlan {
        let desired = Desired {
            slot: slot(),
            version: &Version::new(1, 0, 0),
            tree_id: package.tree.id(),
            hooks: package.phases.iter().map(|phase| hook(*phase)).collect(),
            reset: package.reset,
            was_locked: true,
            previous: None,
            link_mode: LinkMode::Copy,
        };
        let found = Found::Examined {
            tree: &package.tree,
            record: self.record.as_ref(),
            contents: &self.contents(),
        };
        plan_slot(&desired, found, self.state.as_ref(), options)
    }

    /// Makes `change` as an executor would that stops at everything it does not expect.
    fn apply(&mut self, change: &FileChange, package: &Package) {
        match change {
            FileChange::Delete { path } => {
                let gone = self.disk.remove(path);
                assert!(
                    gone.is_some_and(|node| node != Node::Directory),
                    "{change:?}"
                );
                let ancestors: Vec<RelPath> = path.ancestors().collect();
                for ancestor in ancestors.iter().rev() {
                    if self.below(ancestor).count() == 1 {
                        self.disk.remove(ancestor);
                    }
                }
            }
            FileChange::RemoveMade { path } => {
                assert!(self.disk.contains_key(path), "{change:?}");
                self.remove(path);
            }
            FileChange::SetAside { path, to } => {
                assert!(self.disk.contains_key(path), "{change:?}");
                assert!(!self.disk.contains_key(to), "{change:?}");
                let moved: Vec<_> = self
                    .below(path)
                    .map(|(from, node)| {
                        (
                            from.as_str().replacen(path.as_str(), to.as_str(), 1),
                            node.clone(),
                        )
                    })
                    .collect();
                self.remove(path);
                self.disk.extend(
                    moved
                        .iter()
                        .map(|(to, node)| (crate::testing::path(to), node.clone())),
                );
            }
            FileChange::Write {
                path, sha256, exec, ..
            } => {
                let text = &package.texts[path];
                assert_eq!(*sha256, digest(text));
                assert_ne!(self.disk.get(path), Some(&Node::Directory), "{change:?}");
                assert!(
                    self.put(path, Node::File(text.clone(), *exec)),
                    "{change:?}"
                );
            }
        }
    }

    /// Obeys a plan up to its hooks, or up to `crash` changes.
    fn execute(&mut self, plan: &SlotPlan, package: &Package, crash: Option<usize>) {
        match &plan.step {
            Step::Refresh(refresh) => {
                self.state.clone_from(&refresh.row);
                let until = crash.unwrap_or(refresh.changes.len());
                for change in &refresh.changes[..until] {
                    self.apply(change, package);
                }
                if crash.is_none() {
                    self.record = Some(SlotRecord {
                        package: "g/p".parse().unwrap(),
                        version: Version::new(1, 0, 0),
                        tree: package.tree.clone(),
                    });
                    let row = self.state.take();
                    self.state = row.map(|row| recorded_row(row, &package.tree));
                }
            }
            Step::Keep(keep) => {
                if let Some(row) = &keep.row {
                    self.state = Some(row.clone());
                }
            }
            step => panic!("{step:?}"),
        }
    }

    /// Runs a hook: it does `work`, spares what the user wrote, and its doing is remembered unless
    /// the run is killed.
    fn run_hook(&mut self, phase: Phase, package: &Package, work: &[Act], killed: bool) {
        let before: BTreeSet<RelPath> = self.disk.keys().cloned().collect();
        let unchanged = self.contents().unchanged_made;
        for act in work {
            self.hook_act(act, package);
        }
        let mut state = self.state.clone().unwrap();
        if killed {
            let process = None;
            state.running = Some(RunningHook { phase, process });
            self.state = Some(state);
            return;
        }
        state.after = self.after(&package.tree);
        let appeared = |path: &&RelPath| {
            !before.contains(*path) && path.ancestors().all(|ancestor| before.contains(&ancestor))
        };
        let appeared: Vec<RelPath> = self.disk.keys().filter(appeared).cloned().collect();
        for path in unchanged.iter().chain(&appeared) {
            if let Some(made) = self
                .listing(path)
                .filter(|_| package.tree.get(path).is_none())
            {
                state.made.insert(path.clone(), made);
            }
        }
        self.state = Some(state);
    }

    /// A hook does not touch the user's files and gives no payload another type.
    fn hook_act(&mut self, act: &Act, package: &Package) {
        let (Act::Write(name) | Act::Delete(name) | Act::Link(name) | Act::Directory(name)) = act;
        let at = path(name);
        let is_user =
            |(_, node): (_, &Node)| matches!(node, Node::File(text, _) if text.starts_with('u'));
        let tree = &package.tree;
        let below_file = at.ancestors().any(|ancestor| tree.get(&ancestor).is_some());
        if below_file || self.below(&at).any(is_user) {
            return;
        }
        let absent = !self.disk.contains_key(&at);
        let replaces = absent || matches!(self.disk[&at], Node::File(..));
        let payload = tree.get(&at).is_some() || tree.has_directory(&at);
        match act {
            Act::Write(_) if replaces && !tree.has_directory(&at) => {
                self.put(&at, Node::File("h".to_owned(), false));
            }
            Act::Delete(_) => self.remove(&at),
            Act::Link(_) if absent && !payload => {
                self.put(&at, Node::Symlink);
            }
            Act::Directory(_) if absent && !payload => {
                self.put(&at, Node::Directory);
            }
            _ => {}
        }
    }

    fn after(&self, tree: &Tree) -> BTreeMap<RelPath, AfterFile> {
        let of = |row: &vibe_core::TreeRow| match self.disk.get(&row.path) {
            Some(Node::File(text, exec)) if (digest(text), *exec) == (row.digest, row.exec) => None,
            Some(Node::File(text, exec)) => Some(AfterFile::File {
                digest: digest(text),
                exec: *exec,
            }),
            _ => Some(AfterFile::Deleted),
        };
        let rows = tree.rows().iter();
        rows.filter_map(|row| Some((row.path.clone(), of(row)?)))
            .collect()
    }

    fn user_act(&mut self, act: &Act) {
        let (Act::Write(name) | Act::Delete(name) | Act::Link(name) | Act::Directory(name)) = act;
        let at = path(name);
        self.edits += 1;
        let node = match act {
            Act::Write(_) => Node::File(format!("u{}", self.edits), self.edits.is_multiple_of(3)),
            Act::Link(_) => Node::Symlink,
            Act::Directory(_) => Node::Directory,
            Act::Delete(_) => return self.remove(&at),
        };
        self.remove(&at);
        self.put(&at, node);
    }

    /// What the user wrote where the record names nothing.
    fn user_texts(&self) -> BTreeSet<String> {
        let recorded = |path: &RelPath| {
            let record = self.record.as_ref();
            record.is_some_and(|record| record.tree.get(path).is_some())
        };
        let texts = self.disk.iter().filter_map(|(path, node)| match node {
            Node::File(text, _) if text.starts_with('u') && !recorded(path) => Some(text.clone()),
            _ => None,
        });
        texts.collect()
    }

    fn all_texts(&self) -> BTreeSet<String> {
        let texts = self.disk.values().filter_map(|node| match node {
            Node::File(text, _) => Some(text.clone()),
            _ => None,
        });
        texts.collect()
    }
}

fn changes(plan: &SlotPlan) -> &[FileChange] {
    match &plan.step {
        Step::Refresh(Refresh { changes, .. }) => changes,
        _ => &[],
    }
}

/// Whether the record, a refresh cut short or the package names `path`.
fn is_payload(path: &RelPath, before: &World, package: &Package) -> bool {
    let recorded = before.record.iter().flat_map(|record| record.tree.rows());
    let adding = before.state.iter().flat_map(|state| &state.adding);
    recorded
        .chain(adding)
        .chain(package.tree.rows())
        .any(|row| row.path == *path)
}

/// The payload paths at which the disks differ.
fn payload_changes(before: &World, after: &World, package: &Package) -> usize {
    let paths: BTreeSet<&RelPath> = before.disk.keys().chain(after.disk.keys()).collect();
    paths
        .into_iter()
        .filter(|path| is_payload(path, before, package))
        .filter(|path| before.disk.get(*path) != after.disk.get(*path))
        .count()
}

/// Every published path is there, with published bytes; or, where nothing changed, as hooks left it.
fn check_payload(before: &World, after: &World, plan: &SlotPlan, package: &Package) {
    let state = after.state.as_ref();
    for row in package.tree.rows() {
        let published = Node::File(package.texts[&row.path].clone(), row.exec);
        let found = after.disk.get(&row.path);
        if found == Some(&published) {
            continue;
        }
        let left = state.and_then(|state| state.after.get(&row.path));
        let as_left = match left {
            Some(AfterFile::Deleted) => found.is_none(),
            Some(AfterFile::File { digest: text, exec }) => matches!(found,
                Some(Node::File(now, is)) if digest(now) == *text && is == exec),
            None => false,
        };
        assert!(as_left, "{} is {found:?}", row.path);
        assert_eq!(payload_changes(before, after, package), 0);
        let pre_install = |hook: &vibe_core::plan::RunHook| {
            hook.phase == Phase::PreInstall && hook.decision == HookDecision::Run
        };
        assert!(!plan.hooks.iter().any(pre_install));
    }
}

/// The phases that the law says are due.
fn due(before: &World, changed: bool, package: &Package, held: bool) -> Vec<Phase> {
    let known = |phase: &Phase| {
        let state = before.state.as_ref().filter(|_| !changed)?;
        state.phases.get(phase).copied()
    };
    let is_owed = |phase: &Phase| match known(phase) {
        None | Some(PhaseState::Owed) => true,
        Some(PhaseState::Skipped) => !held,
        Some(PhaseState::Declined | PhaseState::Done) => false,
    };
    let all = package.phases.contains(&Phase::PreInstall) && is_owed(&Phase::PreInstall);
    let phases = package.phases.iter().copied();
    phases
        .filter(|phase| all || is_owed(phase) || known(phase) == Some(PhaseState::Skipped))
        .collect()
}

/// One install up to its hooks, checked against every rule; gives the plan.
fn install(world: &mut World, package: &Package, options: &SlotOptions) -> SlotPlan {
    let before = world.clone();
    let plan = before.plan(package, options);
    world.execute(&plan, package, None);
    check_payload(&before, world, &plan, package);
    let texts = world.all_texts();
    assert!(
        before.user_texts().is_subset(&texts),
        "{:?}",
        changes(&plan)
    );

    let changed = payload_changes(&before, world, package) > 0;
    let planned = changes(&plan)
        .iter()
        .any(|change| change.payload_path().is_some());
    assert_eq!(planned, changed);
    let held = options.decision == HookDecision::Held;
    let phases: Vec<Phase> = plan.hooks.iter().map(|hook| hook.phase).collect();
    assert_eq!(phases, due(&before, changed, package, held));

    check_convergence(world, package, options);
    for crash in 0..=changes(&plan).len() {
        let mut other = before.clone();
        other.execute(&plan, package, Some(crash));
        assert!(before.user_texts().is_subset(&other.all_texts()));
        let again = other.plan(package, options);
        other.execute(&again, package, None);
        assert_eq!(
            other.disk,
            world.disk,
            "crash after {crash} of {:?}",
            changes(&plan)
        );
        assert_eq!(other.record, world.record);
        let phases_again: Vec<Phase> = again.hooks.iter().map(|hook| hook.phase).collect();
        assert_eq!(phases_again, phases);
        let after = |world: &World| world.state.as_ref().map(|state| state.after.clone());
        assert_eq!(
            after(&other).unwrap_or_default(),
            after(world).unwrap_or_default()
        );
    }
    plan
}

/// Planning again finds nothing to do in the slot, and at most once something to forget.
fn check_convergence(world: &World, package: &Package, options: &SlotOptions) {
    let options = SlotOptions {
        force: false,
        ..options.clone()
    };
    let mut world = world.clone();
    let again = world.plan(package, &options);
    assert!(matches!(again.step, Step::Keep(_)), "{again:?}");
    world.execute(&again, package, None);
    let last = world.plan(package, &options);
    assert!(
        matches!(&last.step, Step::Keep(keep) if keep.row.is_none()),
        "{last:?}"
    );
}

fn run_hooks(world: &mut World, plan: &SlotPlan, package: &Package, fault: Fault, work: &[Act]) {
    for due in &plan.hooks {
        if due.decision == HookDecision::Held {
            let state = world.state.as_mut().unwrap();
            state.phases.insert(due.phase, PhaseState::Skipped);
            continue;
        }
        if let Fault::Interrupt(index) = fault {
            let until = index.index(work.len() + 1);
            return world.run_hook(due.phase, package, &work[..until], true);
        }
        world.run_hook(due.phase, package, work, false);
        if matches!(fault, Fault::Failure) {
            return;
        }
        let state = world.state.as_mut().unwrap();
        state.phases.insert(due.phase, PhaseState::Done);
    }
    let options = options(false, false);
    if !plan.hooks.is_empty()
        && plan
            .hooks
            .iter()
            .all(|hook| hook.decision == HookDecision::Run)
    {
        assert!(world.plan(package, &options).hooks.is_empty());
    }
}

fn options(held: bool, force: bool) -> SlotOptions {
    SlotOptions {
        decision: if held {
            HookDecision::Held
        } else {
            HookDecision::Run
        },
        force,
        boot: Some("boot".to_owned()),
    }
}

fn step(world: &mut World, action: &Action, packages: &[Package], work: &[Act]) {
    match action {
        Action::User(act) => world.user_act(act),
        Action::LoseRecord => world.record = None,
        Action::LoseState => world.state = None,
        Action::Install {
            package,
            fault,
            held,
            force,
        } => {
            let package = &packages[*package];
            let options = options(*held, *force);
            let before = world.clone();
            let plan = install(world, package, &options);
            match fault {
                Fault::Crash(index) => {
                    let until = index.index(changes(&plan).len() + 1);
                    *world = before;
                    world.execute(&plan, package, Some(until));
                }
                _ => {
                    run_hooks(world, &plan, package, *fault, work);
                    check_convergence_after_hooks(world, package);
                }
            }
        }
    }
}

fn check_convergence_after_hooks(world: &World, package: &Package) {
    let done = world.state.as_ref().is_none_or(|state| {
        state.running.is_none() && state.phases.values().all(|s| *s == PhaseState::Done)
    });
    if done {
        check_convergence(world, package, &options(false, false));
    }
}

/// A removal takes nothing of the user's and names everything that stays. An edit of payload while
/// a hook was killed cannot be told from what the hook did.
fn check_removal(world: &World) {
    let Some(record) = &world.record else { return };
    let after = |path: &RelPath| {
        let state = world.state.as_ref();
        state.is_some_and(|state| state.after.contains_key(path))
    };
    let plan = removal(&slot(), record, world.state.as_ref(), &world.contents());
    let goes = |path: &RelPath| {
        plan.files.contains(path) || plan.made.iter().any(|top| path.starts_with(top))
    };
    let kept: Vec<RelPath> = plan.kept.iter().map(|text| path(text)).collect();
    for (path, node) in &world.disk {
        let stays = kept.iter().any(|top| path.starts_with(top));
        match node {
            Node::File(text, _) if text.starts_with('u') && !after(path) => {
                assert!(stays && !goes(path), "{path}")
            }
            Node::Directory => assert!(!plan.files.contains(path)),
            _ => assert!(stays || goes(path), "{path}"),
        }
    }
    for top in &kept {
        assert!(world.disk.contains_key(top));
        assert!(
            !kept
                .iter()
                .any(|other| other != top && top.starts_with(other))
        );
    }
}

fn any_path() -> impl Strategy<Value = &'static str> {
    proptest::sample::select(&PATHS[..])
}

fn any_act() -> impl Strategy<Value = Act> {
    (0..8, any_path()).prop_map(|(kind, path)| match kind {
        0..4 => Act::Write(path),
        4..6 => Act::Delete(path),
        6 => Act::Link(path),
        _ => Act::Directory(path),
    })
}

fn any_package() -> impl Strategy<Value = Package> {
    let file = (any_path(), 1..3u8, any::<bool>());
    let phases = proptest::sample::subsequence(Phase::ALL.to_vec(), 0..=2);
    let reset = proptest::sample::select(&[Reset::Payload, Reset::All][..]);
    (proptest::collection::vec(file, 0..6), phases, reset).prop_map(|(files, phases, reset)| {
        let manifest = format!("{phases:?} {reset:?}");
        let mut rows = vec![row("vibe.toml", &manifest)];
        let mut texts = BTreeMap::from([(path("vibe.toml"), manifest)]);
        for (name, text, exec) in files {
            let text = text.to_string();
            let name = if exec {
                format!("{name}*")
            } else {
                name.to_owned()
            };
            let row = row(&name, &text);
            if Tree::new(rows.iter().cloned().chain([row.clone()]).collect()).is_ok() {
                texts.insert(row.path.clone(), text);
                rows.push(row);
            }
        }
        let tree = Tree::new(rows).unwrap();
        Package {
            tree,
            texts,
            phases,
            reset,
        }
    })
}

fn any_fault() -> impl Strategy<Value = Fault> {
    prop_oneof![
        3 => Just(Fault::None),
        2 => any::<Index>().prop_map(Fault::Crash),
        1 => any::<Index>().prop_map(Fault::Interrupt),
        1 => Just(Fault::Failure),
    ]
}

fn any_action() -> impl Strategy<Value = Action> {
    let install = (0..3usize, any_fault(), 0..6, 0..5).prop_map(|(package, fault, held, force)| {
        Action::Install {
            package,
            fault,
            held: held == 0,
            force: force == 0,
        }
    });
    prop_oneof![
        10 => any_act().prop_map(Action::User),
        1 => Just(Action::LoseRecord),
        1 => Just(Action::LoseState),
        12 => install,
    ]
}

proptest! {
    // A case is a whole history, so half the usual number says as much.
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases / 2,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]
    #[test]
    fn whatever_happens_to_a_slot_an_install_ends_as_the_law_says(
        packages in proptest::collection::vec(any_package(), 3),
        work in proptest::collection::vec(any_act(), 0..5),
        actions in proptest::collection::vec(any_action(), 1..10),
    ) {
        let mut world = World::default();
        for action in &actions {
            step(&mut world, action, &packages, &work);
            check_removal(&world);
        }
    }
}
