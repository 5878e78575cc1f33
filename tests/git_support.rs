//! Repositories of a test's own, behind git's own daemon, and projects that take packages from
//! them.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{Run, command, command_in, lint, run};
use vibe_testkit::{GitDaemon, GitRepository, PackageBuilder, World};

/// The package that most of these tests install.
pub const LINT: &str = "org.example/lint";

/// A world with repositories in `served/`, and the daemon that shows them.
pub struct Served {
    /// Project, home and the rest.
    pub world: World,
    /// What answers for the repositories, and counts.
    pub daemon: GitDaemon,
}

impl Served {
    /// A world without repositories.
    pub fn new() -> Self {
        let world = World::new();
        let root = served(&world);
        std::fs::create_dir(&root).unwrap();
        let daemon = GitDaemon::start(&root);
        Self { world, daemon }
    }

    /// A repository, made if it is not there.
    pub fn repository(&self, name: &str) -> GitRepository {
        GitRepository::new(&served(&self.world).join(name))
    }

    /// The repository `lint` with these versions of org.example/lint, each tagged.
    pub fn with_lint(versions: &[&str]) -> (Self, GitRepository) {
        let served = Self::new();
        let repository = served.repository("lint");
        for version in versions {
            release(&repository, version);
        }
        (served, repository)
    }

    /// The address of a repository.
    pub fn url(&self, name: &str) -> String {
        self.daemon.url(name)
    }

    /// Writes a manifest that requires org.example/lint from the repository `lint`.
    pub fn require_lint(&self, reference: &str) {
        let url = self.url("lint");
        require(
            &self.world,
            &[(LINT, &format!("git = \"{url}\"{reference}"))],
        );
    }

    /// Runs the binary in the project.
    pub fn vibe(&self, arguments: &[&str]) -> Run {
        git_vibe(&self.world, arguments)
    }

    /// How many connections `act` makes.
    pub fn connections_of<T>(&self, act: impl FnOnce() -> T) -> (usize, T) {
        let before = self.daemon.connections();
        let result = act();
        (self.daemon.connections() - before, result)
    }
}

/// Where the repositories of a world lie.
pub fn served(world: &World) -> PathBuf {
    world.root().join("served")
}

/// Commits org.example/lint in `version` and tags it. Gives the commit.
pub fn release(repository: &GitRepository, version: &str) -> String {
    release_package(
        repository,
        &lint(version).file("version.md", version),
        version,
    )
}

/// Commits `package` and tags it as `version`. Gives the commit.
pub fn release_package(
    repository: &GitRepository,
    package: &PackageBuilder,
    version: &str,
) -> String {
    repository.package(package);
    let commit = repository.commit(&format!("release {version}"));
    repository.tag(&format!("v{version}"));
    commit
}

/// Writes a manifest with these requirements, each an id and the inside of a table.
pub fn require(world: &World, requires: &[(&str, &str)]) {
    let line = |(id, inside): &(&str, &str)| format!("\"{id}\" = {{ {inside} }}\n");
    let lines: String = requires.iter().map(line).collect();
    let text = format!("[project]\nname = \"world\"\n\n[requires.packages]\n{lines}");
    world.write("vibe.toml", &text);
}

/// Like [`command`], allowed to ask plain servers of this machine.
pub fn git_command(world: &World, arguments: &[&str]) -> Command {
    allowed(command(world, arguments))
}

/// Like [`git_command`], in another directory.
pub fn git_command_in(world: &World, directory: &Path, arguments: &[&str]) -> Command {
    allowed(command_in(world, directory, arguments))
}

fn allowed(mut command: Command) -> Command {
    command.env("VIBE_INSECURE_HOSTS", "127.0.0.1");
    command
}

/// Runs the binary in the world's project, allowed to ask plain servers of this machine.
pub fn git_vibe(world: &World, arguments: &[&str]) -> Run {
    run(&mut git_command(world, arguments))
}

/// Where fetched repositories are kept.
pub fn git_cache(world: &World) -> PathBuf {
    world.home().join("vibe/git")
}

/// Forgets everything that was fetched: repositories and packages.
pub fn forget_fetched(world: &World) {
    for place in [git_cache(world), crate::support::store(world)] {
        if place.exists() {
            std::fs::remove_dir_all(place).unwrap();
        }
    }
}

/// The value of `key` in the lock's entry of `id`.
#[track_caller]
pub fn locked(world: &World, id: &str, key: &str) -> String {
    let lock = world.read("vibe.lock");
    let entry = lock
        .split("[[package]]")
        .find(|entry| entry.contains(&format!("id = \"{id}\"")));
    let entry = entry.unwrap_or_else(|| panic!("no {id} in\n{lock}"));
    let start = format!("{key} = \"");
    let line = entry.lines().find_map(|line| line.strip_prefix(&start));
    let line = line.unwrap_or_else(|| panic!("no {key} of {id} in\n{lock}"));
    line.trim_end_matches('"').to_owned()
}

/// The files below `directory` that hold `word`.
pub fn files_with(directory: &Path, word: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut open = vec![directory.to_owned()];
    while let Some(directory) = open.pop() {
        for entry in std::fs::read_dir(&directory).unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                open.push(entry.path());
                continue;
            }
            let bytes = std::fs::read(entry.path()).unwrap_or_default();
            if bytes
                .windows(word.len())
                .any(|window| window == word.as_bytes())
            {
                found.push(entry.path());
            }
        }
    }
    found
}
