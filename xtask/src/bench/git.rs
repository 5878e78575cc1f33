//! `cargo xtask bench git`: packages in local git repositories.
//!
//! The floors are `git clone` of the same repositories one after the other, each with its work
//! tree: by URL, which does what a clone over a network does and is what the budget compares with;
//! and by path, which links the objects instead.
//!
//! Each installer is judged as it is without flags about files: vibe copies (there are no reflinks
//! on ext4) and bun links. What each does with the other's way is shown too.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::error::Error;
use super::ground::Ground;
use super::measure::{Contender, Placed, Run, command, run_quietly, take_turns};
use super::report::{Budget, Limit, Row, report};
use super::repositories::{self, PACKAGES, PAGE, PAGES, TAG, git_command};
use super::{Tools, system_calls};
use crate::Outcome;

const CLONE_BY_URL: &str = "git clone, by URL";
const CLONE_BY_PATH: &str = "git clone, by path";
const NOTHING: &str = "an empty process";
const VIBE_COLD: &str = "vibe cold";
const VIBE_WARM: &str = "vibe warm offline, copies";
const VIBE_NO_OP: &str = "vibe no-op";
const BUN_COLD: &str = "bun cold";
const VIBE_WARM_LINKED: &str = "vibe warm offline, hard links";
const BUN_WARM: &str = "bun warm, hard links";
const BUN_WARM_COPIED: &str = "bun warm, copies";
const BUN_NO_OP: &str = "bun no-op";

/// How many times as long as the clones an install with nothing in store may take.
const COLD_TIMES_CLONES: f64 = 1.5;
/// The system calls of a run with nothing to do: so many, and so many more for each package.
const NO_OP_CALLS: usize = 150;
const NO_OP_CALLS_A_PACKAGE: usize = 2;

/// The table, in its order: each contender, and what its time is shown in multiples of.
const ROWS: [Row; 11] = [
    row(CLONE_BY_URL, CLONE_BY_URL),
    row(CLONE_BY_PATH, CLONE_BY_URL),
    row(VIBE_COLD, CLONE_BY_URL),
    row(BUN_COLD, CLONE_BY_URL),
    row(VIBE_WARM, CLONE_BY_URL),
    row(BUN_WARM_COPIED, CLONE_BY_URL),
    row(VIBE_WARM_LINKED, CLONE_BY_URL),
    row(BUN_WARM, CLONE_BY_URL),
    row(NOTHING, NOTHING),
    row(VIBE_NO_OP, NOTHING),
    row(BUN_NO_OP, NOTHING),
];

const fn row(name: &'static str, floor: &'static str) -> Row {
    Row { name, floor }
}

/// The corpus, and the programs that are measured with it.
struct World<'a> {
    tools: &'a Tools,
    /// Where the repositories are.
    repositories: PathBuf,
    /// Installed before the clock runs.
    vibe: Project<'a>,
    bun: Option<Project<'a>>,
}

/// A program that installs packages, and how its projects look.
#[derive(Clone)]
struct Installer<'a> {
    program: &'a Path,
    /// Where programs that it starts are looked for.
    path: &'a OsStr,
    /// The variable that names the directory of its store or cache.
    store_variable: &'static str,
    manifest: &'static str,
    manifest_text: String,
    lock: &'static str,
    /// Where it places packages.
    placed: &'static str,
}

/// A project of an installer.
#[derive(Clone)]
struct Project<'a> {
    installer: Installer<'a>,
    directory: PathBuf,
    /// What the installer keeps for all projects, and its user's home.
    home: PathBuf,
}

/// Makes the corpus on `ground`, measures and prints.
pub(super) fn run(tools: &Tools, ground: &Ground, rounds: usize) -> Result<Outcome, Error> {
    let world = World::new(tools, ground.root())?;
    let place = ground.root().join("rounds");
    create(&place)?;
    if tools.bun.is_none() {
        println!("SKIPPED bun: there is none on PATH; see --bun and --with-bun");
    }
    let samples = take_turns(&world.contenders(), rounds, &place)?;
    let mut budgets = budgets_of_time_and_memory();
    budgets.extend(world.budgets_of_calls(&ground.root().join("calls"))?);
    let report = report(&samples, &ROWS, &budgets);
    report.lines.iter().for_each(|line| println!("{line}"));
    if let Some(peak) = own_peak_mib() {
        println!("peaks below {peak:.1} MiB, that of the process which measures, are not seen");
    }
    Ok(report.outcome)
}

fn budgets_of_time_and_memory() -> Vec<Budget> {
    let times = |of, other, at_most| Budget {
        of,
        limit: Limit::Times { other, at_most },
    };
    let mebibytes = |of, at_most| Budget {
        of,
        limit: Limit::Mebibytes(at_most),
    };
    vec![
        times(VIBE_COLD, CLONE_BY_URL, COLD_TIMES_CLONES),
        times(VIBE_COLD, BUN_COLD, 1.0),
        times(VIBE_WARM, BUN_WARM, 1.0),
        times(VIBE_NO_OP, BUN_NO_OP, 1.0),
        mebibytes(VIBE_COLD, 64),
        mebibytes(VIBE_WARM, 40),
        mebibytes(VIBE_NO_OP, 24),
    ]
}

/// The peak memory of this process. Linux takes a child for as big until it runs its own program.
fn own_peak_mib() -> Option<f64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|it| it.strip_prefix("VmHWM:"))?;
    let kib: f64 = line.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kib / 1024.0)
}

impl<'a> World<'a> {
    fn new(tools: &'a Tools, root: &Path) -> Result<Self, Error> {
        let repositories = root.join("repositories");
        repositories::make_all(&tools.git, &repositories, &tools.path)?;
        let installed = |installer: Installer<'a>, name: &str| {
            let place = root.join(name);
            create(&place)?;
            let project = installer.new_project(&place)?;
            run_quietly(&mut project.install(&[])).map(|()| project)
        };
        let vibe = installed(Installer::vibe(tools, &repositories), "vibe")?;
        let bun = tools.bun.as_ref();
        let bun = bun.map(|bun| installed(Installer::bun(bun, tools, &repositories), "bun"));
        Ok(Self {
            tools,
            vibe,
            bun: bun.transpose()?,
            repositories,
        })
    }

    fn contenders(&self) -> Vec<Contender<'_>> {
        let nothing = |place: &Path| Run {
            commands: vec![command(&self.tools.nothing, place, &self.tools.path)],
            result: None,
        };
        let mut contenders = vec![
            contender(CLONE_BY_URL, |place| Ok(self.clones(place, "file://"))),
            contender(CLONE_BY_PATH, |place| Ok(self.clones(place, ""))),
            contender(NOTHING, move |place| Ok(nothing(place))),
        ];
        let vibe = &self.vibe;
        contenders.extend([
            vibe.cold(VIBE_COLD),
            vibe.warm(VIBE_WARM, &["--offline"]),
            vibe.warm(VIBE_WARM_LINKED, &["--offline", "--link-mode=hardlink"]),
            vibe.no_op(VIBE_NO_OP),
        ]);
        contenders.extend(self.bun.iter().flat_map(|bun| {
            [
                bun.cold(BUN_COLD),
                bun.warm(BUN_WARM, &["--frozen-lockfile"]),
                bun.warm(
                    BUN_WARM_COPIED,
                    &["--frozen-lockfile", "--backend=copyfile"],
                ),
                bun.no_op(BUN_NO_OP),
            ]
        }));
        contenders
    }

    /// Clones of all repositories, each with the files of the tag, one after the other.
    fn clones(&self, place: &Path, scheme: &str) -> Run {
        let clone = |package| {
            let mut git = git_command(&self.tools.git, place, &self.tools.path);
            let repository = repositories::path(&self.repositories, package);
            let url = format!("{scheme}{}", repository.display());
            let name = repositories::name(package);
            git.args(["-c", "advice.detachedHead=false", "clone", "--quiet"]);
            git.args(["--branch", TAG]).args([url, name]);
            git
        };
        Run {
            commands: (0..PACKAGES).map(clone).collect(),
            result: Some(all_pages(place)),
        }
    }

    /// What a run with nothing to do may ask the system for, where that can be counted.
    fn budgets_of_calls(&self, log: &Path) -> Result<Vec<Budget>, Error> {
        let strace = self.tools.strace.as_ref();
        let strace = strace.filter(|it| system_calls::works(it, &self.tools.nothing));
        if strace.is_none() {
            println!("SKIPPED system calls: there is no strace here that may trace");
        }
        let no_op = self.vibe.install(&[]);
        let found = strace.map(|strace| system_calls::count(strace, &no_op, log));
        let found = found.transpose()?;
        let count = |what, found, at_most| Budget {
            of: VIBE_NO_OP,
            limit: Limit::Count {
                what,
                found,
                at_most,
            },
        };
        let calls = NO_OP_CALLS + NO_OP_CALLS_A_PACKAGE * PACKAGES;
        Ok(vec![
            count("system calls", found.map(|it| it.calls), calls),
            count("processes started", found.map(|it| it.processes), 0),
        ])
    }
}

impl<'a> Installer<'a> {
    fn vibe(tools: &'a Tools, repositories: &Path) -> Self {
        let requirement = |package| {
            let url = repositories::path(repositories, package);
            let (name, url) = (repositories::name(package), url.display());
            format!("\"org.bench/{name}\" = {{ git = \"file://{url}\", tag = \"{TAG}\" }}\n")
        };
        let requirements: String = (0..PACKAGES).map(requirement).collect();
        Self {
            program: &tools.vibe,
            path: &tools.path,
            store_variable: "VIBE_PKG_HOME",
            manifest: "vibe.toml",
            manifest_text: format!(
                "[project]\nname = \"bench\"\n\n[requires.packages]\n{requirements}"
            ),
            lock: "vibe.lock",
            placed: "vibedeps",
        }
    }

    fn bun(program: &'a Path, tools: &'a Tools, repositories: &Path) -> Self {
        let requirement = |package| {
            let url = repositories::path(repositories, package);
            let (name, url) = (repositories::name(package), url.display());
            format!("\"{name}\": \"git+file://{url}#{TAG}\"")
        };
        let requirements: Vec<String> = (0..PACKAGES).map(requirement).collect();
        let requirements = requirements.join(",\n");
        Self {
            program,
            path: &tools.path,
            store_variable: "BUN_INSTALL_CACHE_DIR",
            manifest: "package.json",
            manifest_text: format!(
                "{{ \"name\": \"bench\", \"private\": true, \"dependencies\": {{\n{requirements}\n}} }}\n"
            ),
            lock: "bun.lock",
            placed: "node_modules",
        }
    }

    /// A project in `place` that was never installed, with an empty store of its own.
    fn new_project(&self, place: &Path) -> Result<Project<'a>, Error> {
        let project = Project {
            installer: self.clone(),
            directory: place.join("project"),
            home: place.join("home"),
        };
        create(&project.directory)?;
        create(&project.home)?;
        let manifest = project.directory.join(self.manifest);
        std::fs::write(&manifest, &self.manifest_text)
            .map_err(|source| Error::files("writing", &manifest, source))?;
        Ok(project)
    }
}

impl<'a> Project<'a> {
    /// An install of new projects like this one, with an empty store.
    fn cold(&self, name: &'static str) -> Contender<'_> {
        contender(name, |place| {
            Ok(self.installer.new_project(place)?.run(&[]))
        })
    }

    /// An install of projects that have this one's lock and store, and nothing placed.
    fn warm(&self, name: &'static str, flags: &'static [&str]) -> Contender<'_> {
        contender(name, move |place| {
            Ok(self.copy_not_placed(place)?.run(flags))
        })
    }

    /// An install of this project, again.
    fn no_op(&self, name: &'static str) -> Contender<'_> {
        contender(name, |_| Ok(self.run(&[])))
    }

    /// A project in `place` with the manifest, the lock and the store of this one.
    fn copy_not_placed(&self, place: &Path) -> Result<Self, Error> {
        let mut project = self.installer.new_project(place)?;
        let lock = self.directory.join(self.installer.lock);
        std::fs::copy(&lock, project.directory.join(self.installer.lock))
            .map_err(|source| Error::files("copying", &lock, source))?;
        project.home.clone_from(&self.home);
        Ok(project)
    }

    fn run(&self, flags: &[&str]) -> Run {
        Run {
            commands: vec![self.install(flags)],
            result: Some(all_pages(&self.directory.join(self.installer.placed))),
        }
    }

    fn install(&self, flags: &[&str]) -> Command {
        let installer = &self.installer;
        let mut install = git_command(installer.program, &self.directory, installer.path);
        install.env("HOME", &self.home);
        install.env(installer.store_variable, self.home.join("store"));
        install.arg("install").args(flags);
        install
    }
}

fn contender<'a>(
    name: &'static str,
    prepare: impl Fn(&Path) -> Result<Run, Error> + 'a,
) -> Contender<'a> {
    Contender {
        name,
        prepare: Box::new(prepare),
    }
}

/// Every page of every package, below `place`.
fn all_pages(place: &Path) -> Placed {
    Placed {
        place: place.to_owned(),
        named: PAGE,
        files: PAGES,
    }
}

fn create(directory: &Path) -> Result<(), Error> {
    std::fs::create_dir(directory).map_err(|source| Error::files("creating", directory, source))
}
