//! What several tests of this crate need: a project with one slot, and packages in memory.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::io::Read;
use std::path::PathBuf;

use vibe_core::formats::record::SlotRecord;
use vibe_core::formats::state::{LinkMode, SlotState};
use vibe_core::hook::{HookReason, Phase, PhaseState};
use vibe_core::plan::{FileChange, Place, Refresh, SlotReason, Undo};
use vibe_core::{RelPath, Sha256Digest, SlotName, Tree, TreeRow};
use vibe_fs::EntryKind;
#[cfg(target_os = "linux")]
use vibe_testkit::give_to_ordinary_user;
use vibe_testkit::set_mode;

use crate::examine::scan;
use crate::layout::Layout;
use crate::source::{PayloadError, PayloadSource};

pub(crate) fn rel(text: &str) -> RelPath {
    RelPath::new(text).unwrap()
}

/// A package in memory; what ends in `.sh` is executable.
#[derive(Debug, Clone)]
pub(crate) struct Package {
    pub(crate) tree: Tree,
    pub(crate) files: BTreeMap<RelPath, Vec<u8>>,
}

impl Package {
    pub(crate) fn new(files: &[(&str, &str)]) -> Self {
        let files: BTreeMap<RelPath, Vec<u8>> = files
            .iter()
            .map(|(path, text)| (rel(path), text.as_bytes().to_vec()))
            .collect();
        let rows = files.iter().map(|(path, bytes)| TreeRow {
            path: path.clone(),
            digest: Sha256Digest::of(bytes),
            exec: path.as_str().ends_with(".sh"),
        });
        Self {
            tree: Tree::new(rows.collect()).unwrap(),
            files,
        }
    }

    pub(crate) fn record(&self) -> SlotRecord {
        SlotRecord {
            package: "org.example/lint".parse().unwrap(),
            version: vibe_core::Version::new(1, 2, 3),
            tree: self.tree.clone(),
        }
    }

    pub(crate) fn row(&self) -> SlotState {
        SlotState {
            tree: self.tree.id(),
            phases: BTreeMap::from([(Phase::PreInstall, PhaseState::Owed)]),
            reason: HookReason::Install,
            previous_version: None,
            after: BTreeMap::new(),
            made: BTreeMap::new(),
            adding: Vec::new(),
            link_mode: LinkMode::Copy,
            boot: None,
            running: None,
        }
    }
}

impl PayloadSource for Package {
    fn tree(&self) -> &Tree {
        &self.tree
    }

    fn open(&self, path: &RelPath) -> Result<Box<dyn Read + Send>, PayloadError> {
        match self.files.get(path) {
            Some(bytes) => Ok(Box::new(std::io::Cursor::new(bytes.clone()))),
            None => Err(PayloadError::Unknown(path.clone())),
        }
    }
}

/// A prepared project.
pub(crate) struct World {
    pub(crate) layout: Layout,
    pub(crate) slot: SlotName,
    _directory: tempfile::TempDir,
}

impl World {
    pub(crate) fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout::new(directory.path().to_path_buf());
        layout.prepare().unwrap();
        Self {
            layout,
            slot: "org.example.lint/1.2.3".parse().unwrap(),
            _directory: directory,
        }
    }

    /// A project whose slot holds `package`.
    pub(crate) fn with(package: &Package) -> Self {
        let world = Self::new();
        let step = world.place_step(package);
        crate::place::place(&world.layout, &step, package, &package.record()).unwrap();
        world
    }

    pub(crate) fn place_step(&self, package: &Package) -> Place {
        Place {
            slot: self.slot.clone(),
            tree: package.tree.id(),
            files: package.tree.rows().len(),
            link_mode: LinkMode::Copy,
            because: SlotReason::New,
            row: None,
        }
    }

    pub(crate) fn refresh_step(
        &self,
        package: &Package,
        changes: Vec<FileChange>,
        undo: Undo,
    ) -> Refresh {
        Refresh {
            slot: self.slot.clone(),
            tree: package.tree.id(),
            files: package.tree.rows().len(),
            link_mode: LinkMode::Copy,
            because: SlotReason::Content,
            changes,
            undo,
            row: None,
        }
    }

    pub(crate) fn root(&self) -> PathBuf {
        self.layout.slot(&self.slot)
    }

    pub(crate) fn at(&self, path: &str) -> PathBuf {
        self.root().join(path)
    }

    /// Writes a file as a user or a hook would, with its directories.
    pub(crate) fn write(&self, path: &str, text: &str) {
        let full = self.at(path);
        std::fs::create_dir_all(full.parent().unwrap()).unwrap();
        std::fs::write(full, text).unwrap();
    }

    /// Everything in the slot: a directory as `/`, a link as `->`, a file as its text, with `*`
    /// before it where it is executable.
    pub(crate) fn snapshot(&self) -> BTreeMap<String, String> {
        if !self.root().is_dir() {
            return BTreeMap::new();
        }
        let entries = scan(&self.root()).unwrap().entries;
        let show = |entry: &vibe_fs::RawEntry| match entry.stat.kind {
            EntryKind::Directory => "/".to_owned(),
            EntryKind::Symlink => "->".to_owned(),
            EntryKind::Other => "?".to_owned(),
            EntryKind::File => {
                let star = if entry.stat.exec { "*" } else { "" };
                let bytes = std::fs::read(self.root().join(&entry.relative)).unwrap();
                format!("{star}{}", String::from_utf8_lossy(&bytes))
            }
        };
        entries
            .iter()
            .map(|entry| {
                let name = String::from_utf8_lossy(&entry.path_bytes()).into_owned();
                (name, show(entry))
            })
            .collect()
    }

    /// What lies in staging.
    pub(crate) fn staged(&self) -> Vec<PathBuf> {
        let entries = vibe_fs::list_dir(&self.layout.staging()).unwrap();
        entries.into_iter().map(|entry| entry.relative).collect()
    }
}

/// Runs `body` on a thread that has no power over permissions, even where the tests run as root;
/// `directory` and what is in it then belong to that thread's user.
#[cfg(target_os = "linux")]
pub(crate) fn as_owner_without_power(directory: &std::path::Path, body: impl FnOnce() + Send) {
    let entries = scan(directory).unwrap().entries;
    give_to_ordinary_user(directory);
    for entry in &entries {
        give_to_ordinary_user(&directory.join(&entry.relative));
    }
    // The threads of the common pool may be older and have more power.
    let pool = || rayon::ThreadPoolBuilder::new().num_threads(1).build();
    vibe_testkit::as_ordinary_user(|| pool().unwrap().install(body));
}

/// A store with one package in it.
pub(crate) struct Stored {
    pub(crate) tree: vibe_store::StoredTree,
    store: vibe_store::Store,
    _directory: tempfile::TempDir,
}

impl Stored {
    pub(crate) fn new(package: &Package) -> Self {
        Self::in_directory(tempfile::tempdir().unwrap(), package)
    }

    /// `None`, which is said, where there is no other file system.
    pub(crate) fn on_another_file_system(package: &Package) -> Option<Self> {
        use std::os::unix::fs::MetadataExt as _;
        let device = |path: &std::path::Path| path.metadata().ok().map(|found| found.dev());
        let other = std::path::Path::new("/dev/shm");
        if device(other).is_none() || device(other) == device(&std::env::temp_dir()) {
            eprintln!("skipped: /dev/shm is no other file system");
            return None;
        }
        let directory = tempfile::tempdir_in(other).unwrap();
        Some(Self::in_directory(directory, package))
    }

    fn in_directory(directory: tempfile::TempDir, package: &Package) -> Self {
        let store = vibe_store::Store::new(directory.path().join("store"));
        Self {
            tree: put(&store, package),
            store,
            _directory: directory,
        }
    }

    pub(crate) fn put_again(&self, package: &Package) -> vibe_store::StoredTree {
        put(&self.store, package)
    }

    /// The store's file at `path`.
    pub(crate) fn file(&self, path: &str) -> PathBuf {
        self.tree.proved(&rel(path)).unwrap()
    }

    /// Overwrites the store's file at `path`, as the superuser does through a link.
    pub(crate) fn overwrite(&self, path: &str, text: &str) {
        let file = self.file(path);
        let mode = file.metadata().unwrap().permissions();
        set_mode(&file, 0o644);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(file, mode).unwrap();
    }

    /// Like [`Stored::overwrite`] with as many bytes, and the time put back.
    pub(crate) fn overwrite_hidden(&self, path: &str, text: &str) {
        let file = self.file(path);
        let before = file.metadata().unwrap().modified().unwrap();
        self.overwrite(path, text);
        set_mode(&file, 0o644);
        let opened = std::fs::File::options().write(true).open(&file).unwrap();
        opened.set_modified(before).unwrap();
        set_mode(&file, 0o444);
    }
}

fn put(store: &vibe_store::Store, package: &Package) -> vibe_store::StoredTree {
    let staged = store.stage().unwrap();
    for row in package.tree.rows() {
        let mut bytes = package.files[&row.path].as_slice();
        staged.add(&row.path, &mut bytes, row.exec, 1_000).unwrap();
    }
    staged.finish().unwrap()
}
