//! Whether a lock satisfies the manifests, found without solving.
//!
//! A published version never changes, so the lock's word on what it depends on is taken; the
//! project and its path packages are files that anybody may have edited, so theirs is not.

mod problem;

pub use problem::{LockProblem, LockProblemKind, Requirer};

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;

use vibe_core::formats::lock::{Lock, LockedPackage, LockedSource};
use vibe_core::formats::manifest::Materialization;
use vibe_core::{Constraint, PackageId, RemoteUrl, Version};

/// What a manifest of this project asks of one package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Wanted {
    /// From a registry.
    Registry {
        /// The versions that satisfy.
        constraint: Constraint,
        /// The URL of the registry that is asked for by name; `None`: any that the root states.
        registry: Option<String>,
    },
    /// From a directory.
    Path {
        /// The directory, relative to the root manifest, as a lock writes it.
        path: String,
        /// The versions that satisfy; `None`: whichever is there.
        constraint: Option<Constraint>,
    },
    /// From a git repository.
    Git(WantedGit),
}

/// What is asked of a git repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WantedGit {
    /// The repository, as a lock writes it.
    pub url: RemoteUrl,
    /// The reference, as a lock writes it: `tag:v1`, ...; `None`: the default branch.
    pub reference: Option<String>,
    /// The directory in it.
    pub subdir: Option<String>,
    /// The versions that satisfy; `None`: whichever is there.
    pub constraint: Option<Constraint>,
}

/// A path package, as its own manifest has it now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalPackage {
    /// Its version.
    pub version: Version,
    /// What it requires.
    pub requires: BTreeMap<PackageId, Wanted>,
    /// What may not stand beside it.
    pub conflicts: Vec<(PackageId, Constraint)>,
}

/// One of the user's own manifests.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Root {
    /// Whose it is.
    pub requirer: Requirer,
    /// What it requires.
    pub wanted: BTreeMap<PackageId, Wanted>,
    /// What may not stand beside it.
    pub conflicts: Vec<(PackageId, Constraint)>,
}

/// What the manifests of a project ask for.
pub struct Asked<'a> {
    /// What the project and the members of its workspace require.
    pub roots: &'a [Root],
    /// The packages that the project takes from one source whatever anybody else says.
    pub overrides: &'a BTreeMap<PackageId, Wanted>,
    /// Every package that the manifests take from a path.
    pub local: &'a BTreeMap<PackageId, LocalPackage>,
    /// The URLs of the registries, as the root manifest states them.
    pub registries: &'a [String],
    /// What a published package requires from git, by its own manifest. Asked only where the lock
    /// has a repository that nothing else explains.
    pub published: &'a dyn Fn(&LockedPackage) -> BTreeMap<PackageId, WantedGit>,
}

/// Everything in which `lock` does not satisfy the manifests, in the order in which the project
/// reaches it, then the entries that nothing reaches. Empty when it satisfies them.
pub fn check_lock(lock: &Lock, asked: &Asked<'_>) -> Vec<LockProblem> {
    let mut check = Check {
        lock,
        asked,
        problems: Vec::new(),
        reached: BTreeSet::new(),
        explained: BTreeSet::new(),
        open: VecDeque::new(),
    };
    for root in asked.roots {
        check.wants(&root.requirer, &root.wanted);
    }
    for root in asked.roots {
        check.refuses(&root.requirer, &root.conflicts);
    }
    while let Some(entry) = check.open.pop_front() {
        check.entry(entry);
        match asked.local.get(&entry.id) {
            Some(package) => check.local(entry, package),
            None => check.published(entry),
        }
    }
    check.repositories();
    check.extra();
    check.problems
}

struct Check<'a> {
    lock: &'a Lock,
    asked: &'a Asked<'a>,
    problems: Vec<LockProblem>,
    reached: BTreeSet<PackageId>,
    /// The packages whose repository a manifest of the user's names.
    explained: BTreeSet<PackageId>,
    open: VecDeque<&'a LockedPackage>,
}

impl<'a> Check<'a> {
    /// Two requirers of one package may find the same fault; it is said once.
    fn problem(&mut self, problem: LockProblem) {
        if !self.problems.contains(&problem) {
            self.problems.push(problem);
        }
    }

    /// The entry of `id`, which is now reached.
    fn reach(&mut self, requirer: &Requirer, id: &PackageId) -> Option<&'a LockedPackage> {
        let Some(entry) = self.lock.get(id) else {
            self.problem(LockProblem::Missing {
                requirer: requirer.clone(),
                id: id.clone(),
            });
            return None;
        };
        if self.reached.insert(id.clone()) {
            self.open.push_back(entry);
            if let Some(wanted) = self.asked.overrides.get(id) {
                self.holds(&Requirer::Override, entry, wanted);
            }
        }
        Some(entry)
    }

    fn wants(&mut self, requirer: &Requirer, wanted: &BTreeMap<PackageId, Wanted>) {
        for (id, wanted) in wanted {
            let entry = self.reach(requirer, id);
            let is_overridden = self.asked.overrides.contains_key(id);
            if let (Some(entry), false) = (entry, is_overridden) {
                self.holds(requirer, entry, wanted);
            }
        }
    }

    /// `entry` against what `requirer` wants of it.
    fn holds(&mut self, requirer: &Requirer, entry: &LockedPackage, wanted: &Wanted) {
        let constraint = match wanted {
            Wanted::Registry {
                constraint,
                registry,
            } => {
                if let Some(registry) = registry {
                    self.registry(entry, std::slice::from_ref(registry));
                }
                Some(constraint)
            }
            Wanted::Git(wanted) => {
                self.git(entry, wanted);
                wanted.constraint.as_ref()
            }
            Wanted::Path { path, constraint } => {
                self.path(entry, path);
                constraint.as_ref()
            }
        };
        let unsatisfied = constraint.filter(|wanted| !wanted.matches(&entry.version));
        if let Some(constraint) = unsatisfied {
            self.problem(LockProblem::Unsatisfied {
                requirer: requirer.clone(),
                id: entry.id.clone(),
                constraint: constraint.clone(),
                locked: entry.version.clone(),
            });
        }
    }

    fn refuses(&mut self, requirer: &Requirer, conflicts: &[(PackageId, Constraint)]) {
        for (id, constraint) in conflicts {
            let Some(entry) = self.lock.get(id) else {
                continue;
            };
            if *requirer != Requirer::Package(id.clone()) && constraint.matches(&entry.version) {
                self.problem(LockProblem::Refused {
                    requirer: requirer.clone(),
                    id: id.clone(),
                    constraint: constraint.clone(),
                    locked: entry.version.clone(),
                });
            }
        }
    }

    /// `entry` is wanted from `path`.
    fn path(&mut self, entry: &LockedPackage, path: &str) {
        match &entry.source {
            LockedSource::Path(locked) if locked == path => {}
            LockedSource::Path(locked) => self.problem(LockProblem::PathDiffers {
                id: entry.id.clone(),
                path: path.to_owned(),
                locked: locked.clone(),
            }),
            LockedSource::Directory(_) | LockedSource::Git(_) => self.source(entry, "path"),
        }
    }

    /// `entry` is wanted from git.
    fn git(&mut self, entry: &LockedPackage, wanted: &WantedGit) {
        let LockedSource::Git(url) = &entry.source else {
            return self.source(entry, "git repository");
        };
        self.explained.insert(entry.id.clone());
        if *url != wanted.url || entry.subdir != wanted.subdir {
            return self.problem(LockProblem::RepositoryDiffers {
                id: entry.id.clone(),
                repository: with_subdir(&wanted.url, wanted.subdir.as_deref()),
                locked: with_subdir(url, entry.subdir.as_deref()),
            });
        }
        if entry.reference != wanted.reference {
            let text = |reference: &Option<String>| {
                reference
                    .clone()
                    .unwrap_or_else(|| "the default branch".to_owned())
            };
            self.problem(LockProblem::ReferenceDiffers {
                id: entry.id.clone(),
                reference: text(&wanted.reference),
                locked: text(&entry.reference),
            });
        }
    }

    /// Every repository is one that a manifest or a registry names. What a published package
    /// requires from git, only its manifest can say.
    fn repositories(&mut self) {
        let unexplained: Vec<&LockedPackage> = self
            .lock
            .packages
            .iter()
            .filter(|entry| self.reached.contains(&entry.id) && !self.is_explained(entry))
            .collect();
        for entry in unexplained {
            let requirers = self.lock.packages.iter().filter(|requirer| {
                self.reached.contains(&requirer.id) && requirer.dependencies.contains(&entry.id)
            });
            let stated = requirers
                .filter_map(|requirer| (self.asked.published)(requirer).remove(&entry.id))
                .next();
            match stated {
                Some(wanted) => self.git(entry, &wanted),
                None => self.problem(LockProblem::RepositoryUnknown {
                    id: entry.id.clone(),
                    locked: with_subdir(source_url(entry), entry.subdir.as_deref()),
                }),
            }
        }
    }

    /// Whether no question is open about the repository of `entry`.
    fn is_explained(&self, entry: &LockedPackage) -> bool {
        match &entry.source {
            LockedSource::Git(url) => {
                self.explained.contains(&entry.id)
                    || is_of_registry(entry, url, self.asked.registries)
            }
            LockedSource::Directory(_) | LockedSource::Path(_) => true,
        }
    }

    /// `entry` is locked from another kind of source; said once, in the words of who wants it.
    fn source(&mut self, entry: &LockedPackage, wanted: &'static str) {
        let is_said = |problem: &LockProblem| matches!(problem, LockProblem::SourceDiffers { id, .. } if *id == entry.id);
        if self.problems.iter().any(is_said) {
            return;
        }
        self.problem(LockProblem::SourceDiffers {
            id: entry.id.clone(),
            wanted,
            locked: entry.source.clone(),
        });
    }

    /// What can be said of `entry` alone.
    fn entry(&mut self, entry: &LockedPackage) {
        for key in absent_identity(entry) {
            self.problem(LockProblem::WithoutIdentity {
                id: entry.id.clone(),
                locked: entry.source.clone(),
                key,
            });
        }
        if let LockedSource::Directory(_) = &entry.source {
            self.registry(entry, self.asked.registries);
        }
    }

    /// `entry` is wanted from one of `registries`.
    fn registry(&mut self, entry: &LockedPackage, registries: &[String]) {
        let (is_one, locked) = match &entry.source {
            LockedSource::Directory(locked) => (registries.contains(locked), locked.clone()),
            LockedSource::Git(url) => (is_of_registry(entry, url, registries), url.to_string()),
            LockedSource::Path(_) => return,
        };
        if !is_one {
            self.problem(LockProblem::RegistryDiffers {
                id: entry.id.clone(),
                locked,
                registries: registries.to_vec(),
            });
        }
    }

    /// `entry` against the path package's own manifest.
    fn local(&mut self, entry: &LockedPackage, package: &LocalPackage) {
        let requirer = Requirer::Package(entry.id.clone());
        if !matches!(entry.source, LockedSource::Path(_)) {
            self.source(entry, "path");
        }
        if entry.version != package.version {
            self.problem(LockProblem::VersionDiffers {
                id: entry.id.clone(),
                version: package.version.clone(),
                locked: entry.version.clone(),
            });
        }
        let mut others = package.requires.clone();
        others.remove(&entry.id);
        if !others.keys().eq(&entry.dependencies) {
            self.problem(LockProblem::DependenciesDiffer {
                id: entry.id.clone(),
                requires: others.keys().cloned().collect(),
                locked: entry.dependencies.clone(),
            });
        }
        self.wants(&requirer, &others);
        self.refuses(&requirer, &package.conflicts);
    }

    /// A package whose own dependencies the lock knows.
    fn published(&mut self, entry: &'a LockedPackage) {
        if matches!(entry.source, LockedSource::Path(_)) {
            self.source(entry, "registry");
        }
        let requirer = Requirer::Package(entry.id.clone());
        for id in &entry.dependencies {
            self.reach(&requirer, id);
        }
    }

    fn extra(&mut self) {
        for entry in &self.lock.packages {
            if !self.reached.contains(&entry.id) {
                self.problems.push(LockProblem::Extra {
                    id: entry.id.clone(),
                    locked: entry.version.clone(),
                });
            }
        }
    }
}

/// Whether `url` is the repository of `entry` in one of `registries`, at the tag of its version.
fn is_of_registry(entry: &LockedPackage, url: &RemoteUrl, registries: &[String]) -> bool {
    let is_its_tag = entry.reference.as_deref() == Some(&*format!("tag:v{}", entry.version));
    let is_repository = |registry: &String| {
        RemoteUrl::in_registry(registry, &entry.id)
            .is_ok_and(|found| found.is_some_and(|found| found == *url))
    };
    is_its_tag && entry.subdir.is_none() && registries.iter().any(is_repository)
}

fn source_url(entry: &LockedPackage) -> String {
    match &entry.source {
        LockedSource::Git(url) => url.to_string(),
        other => other.to_string(),
    }
}

fn with_subdir(url: impl fmt::Display, subdir: Option<&str>) -> String {
    match subdir {
        Some(subdir) => format!("{url} in {subdir}"),
        None => url.to_string(),
    }
}

/// The keys that an entry of this kind must have and this one has not.
fn absent_identity(entry: &LockedPackage) -> Vec<&'static str> {
    let in_place = entry.materialization == Materialization::InPlace;
    let (needs_commit, needs_tree) = match entry.source {
        LockedSource::Path(_) => (false, false),
        LockedSource::Directory(_) => (false, true),
        LockedSource::Git(_) => (true, !in_place),
    };
    let mut absent = Vec::new();
    if needs_commit && entry.commit.is_none() {
        absent.push("commit");
    }
    if needs_tree && entry.tree.is_none() {
        absent.push("tree");
    }
    absent
}

#[cfg(test)]
mod tests {
    use super::*;
    use vibe_core::version::parse_version;
    use vibe_core::{Sha256Digest, TreeId};

    fn id(name: &str) -> PackageId {
        format!("org.example/{name}").parse().unwrap()
    }

    fn entry(name: &str, source: LockedSource, dependencies: &[&str]) -> LockedPackage {
        let tree = format!("tree1:{}", Sha256Digest::of(b""));
        LockedPackage {
            id: id(name),
            version: parse_version("1.0.0").unwrap(),
            tree: match source {
                LockedSource::Path(_) => None,
                _ => Some(tree.parse::<TreeId>().unwrap()),
            },
            source,
            reference: None,
            subdir: None,
            commit: None,
            materialization: Materialization::Copy,
            dependencies: dependencies.iter().map(|name| id(name)).collect(),
            install_hooks: BTreeMap::new(),
        }
    }

    fn registry() -> LockedSource {
        LockedSource::Directory("../registry".to_owned())
    }

    fn at_path() -> LockedSource {
        LockedSource::Path("../local".to_owned())
    }

    fn wanted(constraint: &str) -> Wanted {
        let constraint = constraint.parse().unwrap();
        Wanted::Registry {
            constraint,
            registry: None,
        }
    }

    fn wanted_path(path: &str, constraint: Option<&str>) -> Wanted {
        Wanted::Path {
            path: path.to_owned(),
            constraint: constraint.map(|text| text.parse().unwrap()),
        }
    }

    fn local_package(version: &str, requires: &[(&str, Wanted)]) -> LocalPackage {
        LocalPackage {
            version: parse_version(version).unwrap(),
            requires: by_id(requires),
            conflicts: Vec::new(),
        }
    }

    fn by_id<T: Clone>(rows: &[(&str, T)]) -> BTreeMap<PackageId, T> {
        rows.iter()
            .map(|(name, row)| (id(name), row.clone()))
            .collect()
    }

    /// The project requires `lint`, which depends on `core`, and `local`, a path package that
    /// requires `core` as well.
    struct World {
        lock: Lock,
        roots: BTreeMap<PackageId, Wanted>,
        root_conflicts: Vec<(PackageId, Constraint)>,
        members: Vec<Root>,
        overrides: BTreeMap<PackageId, Wanted>,
        local: BTreeMap<PackageId, LocalPackage>,
        registries: Vec<String>,
        published: BTreeMap<PackageId, BTreeMap<PackageId, WantedGit>>,
    }

    impl World {
        fn new() -> Self {
            let packages = vec![
                entry("core", registry(), &[]),
                entry("lint", registry(), &["core"]),
                entry("local", at_path(), &["core"]),
            ];
            let core = [("core", wanted("^1"))];
            Self {
                lock: Lock { packages },
                roots: by_id(&[
                    ("lint", wanted("^1")),
                    ("local", wanted_path("../local", None)),
                ]),
                root_conflicts: Vec::new(),
                members: Vec::new(),
                overrides: BTreeMap::new(),
                local: by_id(&[("local", local_package("1.0.0", &core))]),
                registries: vec!["../other".to_owned(), "../registry".to_owned()],
                published: BTreeMap::new(),
            }
        }

        fn entry(&mut self, name: &str) -> &mut LockedPackage {
            let mut all = self.lock.packages.iter_mut();
            all.find(|entry| entry.id == id(name)).unwrap()
        }
    }

    /// What is wrong after `change`, each with whether it is a matter of integrity.
    #[track_caller]
    fn check(change: impl FnOnce(&mut World), expected: &[(bool, &str)]) {
        let mut world = World::new();
        change(&mut world);
        let published = |entry: &LockedPackage| world.published.get(&entry.id).cloned();
        let mut roots = vec![Root {
            requirer: Requirer::Project,
            wanted: world.roots,
            conflicts: world.root_conflicts,
        }];
        roots.extend(world.members);
        let asked = Asked {
            roots: &roots,
            overrides: &world.overrides,
            local: &world.local,
            registries: &world.registries,
            published: &|entry| published(entry).unwrap_or_default(),
        };
        let problems = check_lock(&world.lock, &asked);
        let found: Vec<(bool, String)> = problems
            .iter()
            .map(|found| {
                (
                    found.kind() == LockProblemKind::Integrity,
                    found.to_string(),
                )
            })
            .collect();
        let found: Vec<(bool, &str)> = found.iter().map(|(kind, text)| (*kind, &**text)).collect();
        assert_eq!(found, expected);
    }

    #[test]
    fn a_lock_of_these_manifests_is_satisfied() {
        check(|_| {}, &[]);
    }

    #[test]
    fn a_version_out_of_range_is_unsatisfied() {
        check(
            |world| *world.roots.get_mut(&id("lint")).unwrap() = wanted("^2"),
            &[(
                false,
                "the project requires org.example/lint ^2, but vibe.lock has 1.0.0",
            )],
        );
        check(
            |world| {
                let local = world.local.get_mut(&id("local")).unwrap();
                local.requires.insert(id("core"), wanted("<1"));
            },
            &[(
                false,
                "org.example/local requires org.example/core <1, but vibe.lock has 1.0.0",
            )],
        );
        check(
            |world| {
                let wanted = wanted_path("../local", Some("^3"));
                world.roots.insert(id("local"), wanted);
            },
            &[(
                false,
                "the project requires org.example/local ^3, but vibe.lock has 1.0.0",
            )],
        );
    }

    #[test]
    fn a_required_package_without_an_entry_is_missing() {
        check(
            |world| drop(world.lock.packages.remove(0)),
            &[
                (
                    false,
                    "org.example/lint requires org.example/core, but vibe.lock has no entry for it",
                ),
                (
                    false,
                    "org.example/local requires org.example/core, but vibe.lock has no entry for it",
                ),
            ],
        );
        check(
            |world| drop(world.roots.insert(id("new"), wanted("*"))),
            &[(
                false,
                "the project requires org.example/new, but vibe.lock has no entry for it",
            )],
        );
    }

    #[test]
    fn an_entry_that_nothing_reaches_is_extra() {
        check(
            |world| drop(world.roots.remove(&id("lint"))),
            &[(
                false,
                "vibe.lock has org.example/lint 1.0.0, but nothing requires it",
            )],
        );
    }

    #[test]
    fn a_cycle_reaches_every_entry_once() {
        check(
            |world| world.entry("core").dependencies = vec![id("lint")],
            &[],
        );
        check(
            |world| {
                world.entry("core").dependencies = vec![id("lint")];
                world.entry("local").dependencies.clear();
                world.local.insert(id("local"), local_package("1.0.0", &[]));
                world.roots.remove(&id("lint"));
            },
            &[
                (
                    false,
                    "vibe.lock has org.example/core 1.0.0, but nothing requires it",
                ),
                (
                    false,
                    "vibe.lock has org.example/lint 1.0.0, but nothing requires it",
                ),
            ],
        );
    }

    #[test]
    fn an_entry_states_the_identity_of_its_kind() {
        let lacks = |source: LockedSource, mode, commit: bool, tree: bool, expected: &[&str]| {
            let mut entry = entry("lint", registry(), &[]);
            entry.source = source;
            entry.materialization = mode;
            entry.commit = commit.then(|| "0".repeat(40));
            entry.tree = entry.tree.filter(|_| tree);
            assert_eq!(absent_identity(&entry), expected);
        };
        let git = || LockedSource::Git("file:///x.git".parse().unwrap());
        use Materialization::{Copy, Hardlink, InPlace};
        lacks(registry(), Copy, false, true, &[]);
        lacks(registry(), Hardlink, true, false, &["tree"]);
        lacks(git(), Copy, true, true, &[]);
        lacks(git(), Copy, false, false, &["commit", "tree"]);
        lacks(git(), Hardlink, true, false, &["tree"]);
        lacks(git(), InPlace, true, false, &[]);
        lacks(git(), InPlace, false, true, &["commit"]);
        lacks(at_path(), Copy, false, false, &[]);
        check(
            |world| world.entry("lint").tree = None,
            &[(
                false,
                "vibe.lock has org.example/lint from `dir+../registry` without `tree`, which such an entry must state",
            )],
        );
    }

    #[test]
    fn another_kind_of_source_is_out_of_date() {
        check(
            |world| *world.entry("local") = entry("local", registry(), &["core"]),
            &[(
                false,
                "org.example/local is required from a path, but vibe.lock has it from `dir+../registry`",
            )],
        );
        check(
            |world| *world.entry("lint") = entry("lint", at_path(), &["core"]),
            &[(
                false,
                "org.example/lint is required from a registry, but vibe.lock has it from `path+../local`",
            )],
        );
    }

    #[test]
    fn a_package_that_is_wanted_from_git_now_is_not_said_to_be_wanted_from_a_registry() {
        check(
            |world| {
                let wanted = wanted_git("https://h/lint", "tag:v1");
                world.roots.insert(id("lint"), Wanted::Git(wanted));
                *world.entry("lint") = entry("lint", at_path(), &["core"]);
            },
            &[(
                false,
                "org.example/lint is required from a git repository, but vibe.lock has it from `path+../local`",
            )],
        );
    }

    #[test]
    fn an_override_by_a_path_is_out_of_date_until_it_is_locked() {
        let core = [("core", wanted("*"))];
        check(
            |world| {
                drop(
                    world
                        .local
                        .insert(id("lint"), local_package("1.0.0", &core)),
                )
            },
            &[(
                false,
                "org.example/lint is required from a path, but vibe.lock has it from `dir+../registry`",
            )],
        );
    }

    fn member(requires: &[(&str, Wanted)]) -> Root {
        Root {
            requirer: Requirer::Member("a\u{1b}pp".to_owned()),
            wanted: by_id(requires),
            conflicts: Vec::new(),
        }
    }

    #[test]
    fn what_a_member_requires_is_held_against_the_lock_under_its_name() {
        let requires = [("core", wanted("^2")), ("new", wanted("*"))];
        check(
            |world| world.members = vec![member(&requires)],
            &[
                (
                    false,
                    "a\\x1Bpp requires org.example/core ^2, but vibe.lock has 1.0.0",
                ),
                (
                    false,
                    "a\\x1Bpp requires org.example/new, but vibe.lock has no entry for it",
                ),
            ],
        );
        check(|world| world.members = vec![member(&requires[..0])], &[]);
        let conflicts = vec![(id("core"), "^1".parse().unwrap())];
        let refusing = Root {
            conflicts,
            ..member(&[])
        };
        check(
            |world| world.members = vec![refusing],
            &[(
                false,
                "a\\x1Bpp conflicts with org.example/core ^1, but vibe.lock has 1.0.0",
            )],
        );
    }

    #[test]
    fn what_only_a_member_requires_is_not_extra() {
        check(
            |world| {
                world.roots.remove(&id("lint"));
                world.members = vec![member(&[("lint", wanted("*"))])];
            },
            &[],
        );
    }

    #[test]
    fn an_override_takes_the_place_of_what_is_required_of_its_package() {
        let overridden = |constraint: &'static str| {
            move |world: &mut World| {
                world.overrides = by_id(&[("core", wanted_path("../core", None))]);
                world.local.insert(id("core"), local_package("1.0.0", &[]));
                world.members = vec![member(&[("core", wanted(constraint))])];
            }
        };
        check(
            |world| {
                overridden("^9")(world);
                world.entry("core").source = LockedSource::Path("../core".to_owned());
                world.entry("core").tree = None;
            },
            &[],
        );
        check(
            overridden("^9"),
            &[(
                false,
                "org.example/core is required from a path, but vibe.lock has it from `dir+../registry`",
            )],
        );
        check(
            |world| {
                overridden("*")(world);
                world.entry("core").source = LockedSource::Path("../other".to_owned());
                world.entry("core").tree = None;
            },
            &[(
                true,
                "org.example/core is required from the path `../core`, but vibe.lock has it from the path `../other`",
            )],
        );
    }

    #[test]
    fn another_place_is_a_matter_of_integrity() {
        check(
            |world| world.registries = vec!["../a".to_owned(), "../b\u{1b}".to_owned()],
            &[
                (
                    true,
                    "vibe.lock has org.example/lint from the registry `../registry`, but the manifest states `../a`, `../b\\x1B`",
                ),
                (
                    true,
                    "vibe.lock has org.example/core from the registry `../registry`, but the manifest states `../a`, `../b\\x1B`",
                ),
            ],
        );
        check(
            |world| {
                world.registries.clear();
                world.lock.packages.remove(1);
                world.roots.remove(&id("lint"));
            },
            &[(
                true,
                "vibe.lock has org.example/core from the registry `../registry`, but the manifest states no registry",
            )],
        );
        check(
            |world| {
                drop(
                    world
                        .roots
                        .insert(id("local"), wanted_path("../moved", None)),
                )
            },
            &[(
                true,
                "org.example/local is required from the path `../moved`, but vibe.lock has it from the path `../local`",
            )],
        );
    }

    #[test]
    fn a_registry_that_is_asked_for_by_name_is_the_only_one() {
        let from = |url: &str| Wanted::Registry {
            constraint: "^1".parse().unwrap(),
            registry: Some(url.to_owned()),
        };
        check(
            |world| drop(world.roots.insert(id("lint"), from("../registry"))),
            &[],
        );
        check(
            |world| drop(world.roots.insert(id("lint"), from("../other"))),
            &[(
                true,
                "vibe.lock has org.example/lint from the registry `../registry`, but the manifest states `../other`",
            )],
        );
    }

    fn wanted_git(url: &str, reference: &str) -> WantedGit {
        WantedGit {
            url: url.parse().unwrap(),
            reference: Some(reference.to_owned()),
            subdir: None,
            constraint: None,
        }
    }

    /// Makes the entry of `name` one from git.
    fn lock_git(world: &mut World, name: &str, url: &str, reference: &str) {
        let entry = world.entry(name);
        entry.source = LockedSource::Git(url.parse().unwrap());
        entry.reference = Some(reference.to_owned());
        entry.commit = Some("0".repeat(40));
    }

    #[test]
    fn a_git_requirement_holds_repository_reference_and_directory() {
        let world = |world: &mut World| {
            let wanted = wanted_git("https://h/lint", "tag:v1");
            world.roots.insert(id("lint"), Wanted::Git(wanted));
            lock_git(world, "lint", "https://h/lint", "tag:v1");
        };
        check(world, &[]);
        check(
            |w| {
                world(w);
                lock_git(w, "lint", "https://h/lint", "tag:v2");
            },
            &[(
                false,
                "org.example/lint is required at `tag:v1`, but vibe.lock has it at `tag:v2`",
            )],
        );
        check(
            |w| {
                world(w);
                lock_git(w, "lint", "https://evil/lint", "tag:v1");
            },
            &[(
                true,
                "org.example/lint is required from the git repository `https://h/lint`, but vibe.lock has it from `https://evil/lint`",
            )],
        );
        check(
            |w| {
                world(w);
                w.entry("lint").subdir = Some("sub".to_owned());
            },
            &[(
                true,
                "org.example/lint is required from the git repository `https://h/lint`, but vibe.lock has it from `https://h/lint in sub`",
            )],
        );
        check(
            |w| {
                world(w);
                *w.entry("lint") = entry("lint", registry(), &["core"]);
            },
            &[(
                false,
                "org.example/lint is required from a git repository, but vibe.lock has it from `dir+../registry`",
            )],
        );
    }

    #[test]
    fn a_git_registry_is_a_registry() {
        let world = |world: &mut World| {
            world.registries.push("https://h/org".to_owned());
            lock_git(
                world,
                "lint",
                "https://h/org/org.example.lint.git",
                "tag:v1.0.0",
            );
        };
        check(world, &[]);
        check(
            |w| {
                world(w);
                w.entry("lint").reference = Some("branch:main".to_owned());
            },
            &[(
                true,
                "vibe.lock has org.example/lint from the git repository `https://h/org/org.example.lint.git`, which no manifest and no registry names",
            )],
        );
    }

    #[test]
    fn a_repository_is_one_that_some_manifest_names() {
        let world = |world: &mut World| lock_git(world, "core", "https://h/core", "tag:v1");
        let unknown = "vibe.lock has org.example/core from the git repository `https://h/core`, which no manifest and no registry names";
        check(world, &[(true, unknown)]);
        check(
            |w| {
                world(w);
                let core = wanted_git("https://h/core", "tag:v1");
                w.published.insert(id("lint"), [(id("core"), core)].into());
            },
            &[],
        );
        check(
            |w| {
                world(w);
                let core = wanted_git("https://other/core", "tag:v1");
                w.published.insert(id("lint"), [(id("core"), core)].into());
            },
            &[(
                true,
                "org.example/core is required from the git repository `https://other/core`, but vibe.lock has it from `https://h/core`",
            )],
        );
    }

    #[test]
    fn a_path_package_that_moved_on_is_out_of_date() {
        check(
            |world| world.local.get_mut(&id("local")).unwrap().version = Version::new(1, 1, 0),
            &[(
                false,
                "org.example/local is 1.1.0 in its own manifest, but vibe.lock has 1.0.0",
            )],
        );
        check(
            |world| world.local.get_mut(&id("local")).unwrap().requires.clear(),
            &[(
                false,
                "org.example/local requires nothing in its own manifest, but vibe.lock lists org.example/core",
            )],
        );
        check(
            |world| {
                let local = world.local.get_mut(&id("local")).unwrap();
                local.requires.insert(id("lint"), wanted("^1"));
            },
            &[(
                false,
                "org.example/local requires org.example/core, org.example/lint in its own manifest, but vibe.lock lists org.example/core",
            )],
        );
    }

    #[test]
    fn a_path_package_that_requires_itself_has_no_such_entry() {
        check(
            |world| {
                let local = world.local.get_mut(&id("local")).unwrap();
                local.requires.insert(id("local"), wanted("*"));
            },
            &[],
        );
    }

    #[test]
    fn conflicts_of_the_project_and_of_path_packages_count() {
        let refused = |constraint: &str| vec![(id("core"), constraint.parse().unwrap())];
        check(
            |world| world.root_conflicts = refused("^1"),
            &[(
                false,
                "the project conflicts with org.example/core ^1, but vibe.lock has 1.0.0",
            )],
        );
        check(|world| world.root_conflicts = refused("^2"), &[]);
        check(
            |world| world.local.get_mut(&id("local")).unwrap().conflicts = refused("*"),
            &[(
                false,
                "org.example/local conflicts with org.example/core *, but vibe.lock has 1.0.0",
            )],
        );
        check(
            |world| {
                let itself = vec![
                    (id("local"), Constraint::any()),
                    (id("none"), Constraint::any()),
                ];
                world.local.get_mut(&id("local")).unwrap().conflicts = itself;
            },
            &[],
        );
    }
}
