//! Where things lie in a project, and the two support files that git needs.

use std::path::{Path, PathBuf};

use vibe_core::SlotName;
use vibe_core::formats::lock::LOCK_NAME;
use vibe_core::formats::manifest::MANIFEST_NAME;
use vibe_core::formats::projections::PROJECTIONS_NAME;
use vibe_core::limits::MANIFEST_BYTES;
use vibe_core::relative_path::RECORD_NAME;
use vibe_fs::error::shown;
use vibe_fs::{Durability, EntryKind, stat_of};

use crate::error::SlotError;

/// The directory of a project that holds everything installed.
pub const VIBEDEPS: &str = "vibedeps";
/// The directory in `vibedeps/` that belongs to this machine.
pub const STATE_NAME: &str = ".state";
/// The file in `vibedeps/` that keeps version control from changing bytes.
const ATTRIBUTES_NAME: &str = ".gitattributes";
/// The file in `vibedeps/` that says what version control leaves out.
const IGNORE_NAME: &str = ".gitignore";
/// The directory in `vibedeps/` for compiled boot text.
const BOOT_NAME: &str = "boot";
/// Names in `vibedeps/` that are no packages.
const OWN_NAMES: [&str; 5] = [
    ATTRIBUTES_NAME,
    IGNORE_NAME,
    PROJECTIONS_NAME,
    STATE_NAME,
    BOOT_NAME,
];

/// The paths of one project.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    root: PathBuf,
}

impl Layout {
    /// The paths below `project_root`, the directory of the root manifest.
    pub fn new(project_root: PathBuf) -> Self {
        Self { root: project_root }
    }

    /// The directory of the root manifest.
    pub fn project_root(&self) -> &Path {
        &self.root
    }

    /// `vibe.toml`.
    pub fn manifest(&self) -> PathBuf {
        self.root.join(MANIFEST_NAME)
    }

    /// `vibe.lock`.
    pub fn vibe_lock(&self) -> PathBuf {
        self.root.join(LOCK_NAME)
    }

    /// `vibedeps/`.
    pub fn vibedeps(&self) -> PathBuf {
        self.root.join(VIBEDEPS)
    }

    /// `vibedeps/.state/`.
    pub fn state(&self) -> PathBuf {
        self.vibedeps().join(STATE_NAME)
    }

    /// The file whose lock a mutating run holds.
    pub fn lock_file(&self) -> PathBuf {
        self.state().join("lock")
    }

    /// The file that says what a no-op looks at.
    pub fn fresh(&self) -> PathBuf {
        self.state().join("fresh")
    }

    /// The machine state.
    pub fn slots_file(&self) -> PathBuf {
        self.state().join("slots.toml")
    }

    /// The files that [`write_support_files`] writes.
    pub fn support_files(&self) -> [PathBuf; 2] {
        [ATTRIBUTES_NAME, IGNORE_NAME].map(|name| self.vibedeps().join(name))
    }

    /// The record of projected paths.
    pub fn projections(&self) -> PathBuf {
        self.vibedeps().join(PROJECTIONS_NAME)
    }

    /// Where boot text is compiled.
    pub fn boot(&self) -> PathBuf {
        self.vibedeps().join(BOOT_NAME)
    }

    /// The redo file.
    pub fn redo(&self) -> PathBuf {
        self.state().join("commit")
    }

    /// Where files and slots are built before they are renamed into place.
    pub fn staging(&self) -> PathBuf {
        self.state().join("staging")
    }

    /// What steers the clones of in-place slots, and the objects they come from.
    pub fn git(&self) -> PathBuf {
        self.state().join("git")
    }

    /// What steers the clone in the in-place slot `slot`.
    pub fn clone_control(&self, slot: &SlotName) -> PathBuf {
        self.git().join(slot.package().directory())
    }

    /// The evidence of earlier runs.
    pub fn runs(&self) -> PathBuf {
        self.state().join("runs")
    }

    /// The directory that holds the versions of the package of `slot`.
    pub fn package(&self, slot: &SlotName) -> PathBuf {
        self.vibedeps().join(slot.package().directory())
    }

    /// The directory of `slot`.
    pub fn slot(&self, slot: &SlotName) -> PathBuf {
        self.vibedeps().join(slot.directory())
    }

    /// The record of `slot`.
    pub fn record(&self, slot: &SlotName) -> PathBuf {
        self.slot(slot).join(RECORD_NAME)
    }

    /// Creates `vibedeps/`, `.state/` and `staging/` where they are missing.
    ///
    /// # Errors
    /// One of them is a link or no directory, or cannot be created.
    pub fn prepare(&self) -> Result<(), SlotError> {
        [self.vibedeps(), self.state(), self.staging()]
            .iter()
            .try_for_each(|path| ensure_directory(path))
    }

    /// Empties the staging directory, which must be prepared. Returns what could not be removed,
    /// escaped: it is in nobody's way there.
    ///
    /// # Errors
    /// The directory cannot be listed.
    pub fn clear_staging(&self) -> Result<Vec<String>, SlotError> {
        let staging = self.staging();
        let mut left = Vec::new();
        for entry in vibe_fs::list_dir(&staging)? {
            if let Err(error) = vibe_fs::remove_tree(&staging.join(entry.relative)) {
                left.extend(error.left.iter().map(|path| shown(path)));
            }
        }
        Ok(left)
    }

    /// Whether the directory of `slot` is there.
    ///
    /// # Errors
    /// It, or the directory of its package, is a link or no directory.
    pub fn has_slot(&self, slot: &SlotName) -> Result<bool, SlotError> {
        Ok(is_directory(&self.vibedeps())?
            && is_directory(&self.package(slot))?
            && is_directory(&self.slot(slot))?)
    }

    /// Creates the directory of the package of `slot` where it is missing.
    pub(crate) fn ensure_package(&self, slot: &SlotName) -> Result<(), SlotError> {
        ensure_directory(&self.package(slot))
    }

    /// Creates the directory of `slot` where it is missing.
    pub(crate) fn ensure_slot(&self, slot: &SlotName) -> Result<(), SlotError> {
        self.ensure_package(slot)?;
        ensure_directory(&self.slot(slot))
    }
}

/// Creates the directory `path` if it is missing; its parent must be there.
pub(crate) fn ensure_directory(path: &Path) -> Result<(), SlotError> {
    if is_directory(path)? {
        return Ok(());
    }
    match vibe_fs::create_directory(path) {
        Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {
            is_directory(path).map(|_| ())
        }
        outcome => Ok(outcome?),
    }
}

/// Whether the directory `path` is there; anything else there is an error.
fn is_directory(path: &Path) -> Result<bool, SlotError> {
    match stat_of(path)?.map(|stat| stat.kind) {
        None => Ok(false),
        Some(EntryKind::Directory) => Ok(true),
        Some(EntryKind::Symlink) => Err(SlotError::Link {
            path: shown(path),
            target: shown(&vibe_fs::read_link(path)?),
        }),
        Some(EntryKind::File | EntryKind::Other) => {
            Err(SlotError::NotADirectory { path: shown(path) })
        }
    }
}

/// Every slot in `vibedeps/`, sorted, and what is there beside slots and our own files: paths
/// relative to `vibedeps/`, escaped.
///
/// # Errors
/// `vibedeps/` or the directory of a package cannot be listed.
pub fn list_slots(layout: &Layout) -> Result<(Vec<SlotName>, Vec<String>), SlotError> {
    let (mut slots, mut strays) = (Vec::new(), Vec::new());
    if !is_directory(&layout.vibedeps())? {
        return Ok((slots, strays));
    }
    for entry in vibe_fs::list_dir(&layout.vibedeps())? {
        let name = entry.relative.to_string_lossy().into_owned();
        if OWN_NAMES.contains(&name.as_str()) {
            continue;
        }
        let slot = SlotName::from_package_directory(&name)
            .filter(|_| entry.stat.kind == EntryKind::Directory);
        match slot {
            None => strays.push(shown(&entry.relative)),
            Some(slot) if is_clone(layout, &slot)? => slots.push(slot),
            Some(_) => list_versions(layout, &name, &mut slots, &mut strays)?,
        }
    }
    slots.sort();
    Ok((slots, strays))
}

/// Removes directories of slots, and of packages, that hold nothing: what a removal leaves that was
/// cut short at its end. `is_full` knows slots that hold something.
///
/// # Errors
/// `vibedeps/` or the directory of a package cannot be listed, or an empty one not removed.
pub fn remove_empty_slots(
    layout: &Layout,
    is_full: impl Fn(&SlotName) -> bool,
) -> Result<(), SlotError> {
    if !is_directory(&layout.vibedeps())? {
        return Ok(());
    }
    for entry in vibe_fs::list_dir(&layout.vibedeps())? {
        let name = entry.relative.to_string_lossy().into_owned();
        let package = SlotName::from_package_directory(&name)
            .filter(|_| entry.stat.kind == EntryKind::Directory);
        let Some(package) = package else { continue };
        // What is in a clone is not looked at.
        if is_clone(layout, &package)? {
            continue;
        }
        let (mut slots, mut strays) = (Vec::new(), Vec::new());
        list_versions(layout, &name, &mut slots, &mut strays)?;
        let mut left = strays.len();
        for slot in slots {
            let is_gone = !is_full(&slot) && vibe_fs::remove_empty_directory(&layout.slot(&slot))?;
            left += usize::from(!is_gone);
        }
        if left == 0 {
            vibe_fs::remove_empty_directory(&layout.vibedeps().join(&entry.relative))?;
        }
    }
    Ok(())
}

/// Whether the directory of `slot`'s package is a clone, or was made one.
///
/// # Errors
/// It cannot be looked at.
pub fn is_clone(layout: &Layout, slot: &SlotName) -> Result<bool, SlotError> {
    let repository = layout.package(slot).join(".git");
    Ok(stat_of(&repository)?.is_some() || stat_of(&layout.clone_control(slot))?.is_some())
}

fn list_versions(
    layout: &Layout,
    package: &str,
    slots: &mut Vec<SlotName>,
    strays: &mut Vec<String>,
) -> Result<(), SlotError> {
    for entry in vibe_fs::list_dir(&layout.vibedeps().join(package))? {
        let slot = entry
            .relative
            .to_str()
            .and_then(|version| SlotName::from_directories(package, version))
            .filter(|_| entry.stat.kind == EntryKind::Directory);
        match slot {
            Some(slot) => slots.push(slot),
            None => strays.push(format!("{package}/{}", shown(&entry.relative))),
        }
    }
    Ok(())
}

/// The texts of `.gitattributes` and `.gitignore`. `ignored` are the slots whose content belongs
/// to this machine; with `vendor` false everything but the projections does.
pub fn support_files(ignored: &[SlotName], vendor: bool) -> (String, String) {
    let attributes = "* -text\n".to_owned();
    if !vendor {
        return (attributes, "*\n!/.projections.toml\n".to_owned());
    }
    let mut lines: Vec<String> = ignored
        .iter()
        .map(|slot| format!("/{}/\n", slot.directory()))
        .collect();
    lines.sort();
    lines.dedup();
    (
        attributes,
        format!("!*\n/{STATE_NAME}/\n{}", lines.concat()),
    )
}

/// Writes what [`support_files`] says, only where the bytes differ. Returns whether it wrote.
///
/// # Errors
/// A file cannot be read or replaced.
pub fn write_support_files(
    layout: &Layout,
    ignored: &[SlotName],
    vendor: bool,
) -> Result<bool, SlotError> {
    let (attributes, ignore) = support_files(ignored, vendor);
    let vibedeps = layout.vibedeps();
    let first = write_if_other(layout, &vibedeps.join(ATTRIBUTES_NAME), &attributes)?;
    let second = write_if_other(layout, &vibedeps.join(IGNORE_NAME), &ignore)?;
    Ok(first || second)
}

/// Writes the support files where version control was told nothing yet and there is no slot: a first
/// run that goes no further leaves nothing of this machine to commit.
///
/// # Errors
/// `vibedeps/` cannot be listed, or a file cannot be written.
pub fn begin_support_files(layout: &Layout, vendor: bool) -> Result<(), SlotError> {
    let is_told = stat_of(&layout.vibedeps().join(IGNORE_NAME))?.is_some();
    if !is_told && list_slots(layout)?.0.is_empty() {
        write_support_files(layout, &[], vendor)?;
    }
    Ok(())
}

/// Replaces the file `target` by `text` unless it holds just that. What is there is only compared,
/// so anything that cannot be read as a small file is other.
pub(crate) fn write_if_other(
    layout: &Layout,
    target: &Path,
    text: &str,
) -> Result<bool, SlotError> {
    let limit = MANIFEST_BYTES.max(text.len() as u64);
    if let Ok(Some(bytes)) = vibe_fs::read_if_exists(target, limit)
        && bytes == text.as_bytes()
    {
        return Ok(false);
    }
    vibe_fs::write_atomic(
        target,
        text.as_bytes(),
        &layout.staging(),
        Durability::Unsynced,
    )?;
    Ok(true)
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::World;
    use std::fs;
    use std::os::unix::fs::symlink;

    #[test]
    fn everything_lies_where_the_format_says() {
        let layout = Layout::new(PathBuf::from("/p"));
        let slot: SlotName = "org.example.lint/1.2.3".parse().unwrap();
        for (path, expected) in [
            (layout.manifest(), "/p/vibe.toml"),
            (layout.vibe_lock(), "/p/vibe.lock"),
            (layout.vibedeps(), "/p/vibedeps"),
            (layout.state(), "/p/vibedeps/.state"),
            (layout.lock_file(), "/p/vibedeps/.state/lock"),
            (layout.fresh(), "/p/vibedeps/.state/fresh"),
            (layout.slots_file(), "/p/vibedeps/.state/slots.toml"),
            (layout.redo(), "/p/vibedeps/.state/commit"),
            (layout.staging(), "/p/vibedeps/.state/staging"),
            (layout.runs(), "/p/vibedeps/.state/runs"),
            (layout.package(&slot), "/p/vibedeps/org.example.lint"),
            (layout.slot(&slot), "/p/vibedeps/org.example.lint/1.2.3"),
            (
                layout.record(&slot),
                "/p/vibedeps/org.example.lint/1.2.3/.vibe-slot.toml",
            ),
        ] {
            assert_eq!(path, Path::new(expected));
        }
        assert_eq!(layout.project_root(), Path::new("/p"));
    }

    #[test]
    fn preparing_twice_is_preparing_once() {
        let world = World::new();
        world.layout.prepare().unwrap();
        assert!(world.layout.staging().is_dir());
    }

    #[test]
    fn a_link_or_a_file_in_place_of_our_directories_is_refused_by_name() {
        let outside = tempfile::tempdir().unwrap();
        for name in ["vibedeps", "vibedeps/.state"] {
            let project = tempfile::tempdir().unwrap();
            let path = project.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            symlink(outside.path(), &path).unwrap();
            let layout = Layout::new(project.path().to_path_buf());
            let message = layout.prepare().unwrap_err().to_string();
            assert!(message.contains(&shown(&path)), "{message}");
            assert!(message.contains(&shown(outside.path())), "{message}");
            fs::remove_file(&path).unwrap();
            fs::write(&path, "").unwrap();
            let error = layout.prepare().unwrap_err();
            assert!(matches!(error, SlotError::NotADirectory { .. }), "{error}");
        }
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_slot_behind_a_link_is_refused() {
        let world = World::new();
        assert!(!world.layout.has_slot(&world.slot).unwrap());
        let outside = tempfile::tempdir().unwrap();
        fs::create_dir(outside.path().join("1.2.3")).unwrap();
        symlink(outside.path(), world.layout.package(&world.slot)).unwrap();
        let error = world.layout.has_slot(&world.slot).unwrap_err();
        assert!(matches!(error, SlotError::Link { .. }), "{error}");
        fs::remove_file(world.layout.package(&world.slot)).unwrap();
        fs::create_dir(world.layout.package(&world.slot)).unwrap();
        assert!(!world.layout.has_slot(&world.slot).unwrap());
        symlink(outside.path(), world.root()).unwrap();
        assert!(world.layout.has_slot(&world.slot).is_err());
        fs::remove_file(world.root()).unwrap();
        fs::create_dir(world.root()).unwrap();
        assert!(world.layout.has_slot(&world.slot).unwrap());
    }

    #[test]
    fn staging_is_emptied_of_everything() {
        let world = World::new();
        fs::create_dir_all(world.layout.staging().join("a/b")).unwrap();
        fs::write(world.layout.staging().join("c"), "").unwrap();
        vibe_testkit::set_mode(&world.layout.staging().join("a"), 0);
        assert_eq!(world.layout.clear_staging().unwrap(), Vec::<String>::new());
        assert!(world.staged().is_empty() && world.layout.staging().is_dir());
    }

    #[test]
    fn slots_are_listed_and_what_is_none_is_named() {
        let project = tempfile::tempdir().unwrap();
        let layout = Layout::new(project.path().to_path_buf());
        assert_eq!(list_slots(&layout).unwrap(), (vec![], vec![]));
        for directory in [
            ".state",
            "boot",
            "org.example.lint/2.0.0",
            "org.example.lint/1.0.0-rc.1",
            "org.example.lint/v3",
            "com.b.a/0.1.0",
            "plain",
        ] {
            fs::create_dir_all(layout.vibedeps().join(directory)).unwrap();
        }
        for file in [
            ".gitignore",
            ".gitattributes",
            ".projections.toml",
            "a\u{1b}b",
        ] {
            fs::write(layout.vibedeps().join(file), "").unwrap();
        }
        fs::write(layout.vibedeps().join("org.example.lint/4.0.0"), "").unwrap();
        symlink("com.b.a", layout.vibedeps().join("com.b.link")).unwrap();
        let (slots, strays) = list_slots(&layout).unwrap();
        let names: Vec<String> = slots.iter().map(ToString::to_string).collect();
        assert_eq!(
            names,
            [
                "com.b.a/0.1.0",
                "org.example.lint/1.0.0-rc.1",
                "org.example.lint/2.0.0"
            ]
        );
        assert_eq!(
            strays,
            [
                "a\\x1Bb",
                "com.b.link",
                "org.example.lint/4.0.0",
                "org.example.lint/v3",
                "plain"
            ]
        );
    }

    #[test]
    fn support_files_keep_bytes_and_hide_what_is_of_this_machine() {
        let slots: Vec<SlotName> = ["b.b/1.0.0", "a.a/2.0.0", "b.b/1.0.0"]
            .iter()
            .map(|slot| slot.parse().unwrap())
            .collect();
        let (attributes, ignore) = support_files(&slots, true);
        assert_eq!(attributes, "* -text\n");
        assert_eq!(ignore, "!*\n/.state/\n/a.a/2.0.0/\n/b.b/1.0.0/\n");
        assert_eq!(support_files(&slots, false).1, "*\n!/.projections.toml\n");
    }

    #[test]
    fn support_files_are_written_only_when_their_bytes_differ() {
        let world = World::new();
        let slots = [world.slot.clone()];
        let ignore = world.layout.vibedeps().join(".gitignore");
        assert!(write_support_files(&world.layout, &slots, true).unwrap());
        let stat = stat_of(&ignore).unwrap();
        assert!(!write_support_files(&world.layout, &slots, true).unwrap());
        assert_eq!(stat_of(&ignore).unwrap(), stat);
        assert!(write_support_files(&world.layout, &[], true).unwrap());
        assert_eq!(fs::read_to_string(&ignore).unwrap(), "!*\n/.state/\n");
        let attributes = world.layout.vibedeps().join(".gitattributes");
        fs::write(&attributes, "* text\n").unwrap();
        assert!(write_support_files(&world.layout, &[], true).unwrap());
        assert_eq!(fs::read_to_string(&attributes).unwrap(), "* -text\n");
        let elsewhere = world.layout.project_root().join("elsewhere");
        fs::write(&elsewhere, "!*\n/.state/\n").unwrap();
        fs::remove_file(&ignore).unwrap();
        symlink(&elsewhere, &ignore).unwrap();
        assert!(write_support_files(&world.layout, &[], true).unwrap());
        assert!(!ignore.is_symlink(), "a link is replaced");
    }

    #[test]
    fn support_files_begin_where_there_are_none_and_no_slot() {
        let world = World::new();
        let ignore = world.layout.vibedeps().join(".gitignore");
        begin_support_files(&world.layout, false).unwrap();
        let (_, begun) = support_files(&[], false);
        assert_eq!(fs::read_to_string(&ignore).unwrap(), begun);
        begin_support_files(&world.layout, true).unwrap();
        assert_eq!(fs::read_to_string(&ignore).unwrap(), begun, "it stays");
        fs::remove_file(&ignore).unwrap();
        fs::create_dir_all(world.root()).unwrap();
        begin_support_files(&world.layout, true).unwrap();
        assert!(!ignore.exists(), "what is to be hidden is not known yet");
    }

    #[test]
    fn only_directories_of_slots_that_hold_nothing_go() {
        let directory = tempfile::tempdir().unwrap();
        let layout = Layout::new(directory.path().to_path_buf());
        remove_empty_slots(&layout, |_| false).unwrap();
        layout.prepare().unwrap();
        let vibedeps = layout.vibedeps();
        for path in [
            "a.b.x/1.0.0",
            "a.b.y",
            "a.b.z/1.0.0/d",
            "a.b.z/2.0.0",
            "a.b.w/odd",
            "boot",
        ] {
            std::fs::create_dir_all(vibedeps.join(path)).unwrap();
        }
        remove_empty_slots(&layout, |_| false).unwrap();
        let left = |path: &str| vibedeps.join(path).exists();
        assert!(!left("a.b.x") && !left("a.b.y") && !left("a.b.z/2.0.0"));
        assert!(left("a.b.z/1.0.0/d") && left("a.b.w/odd") && left("boot") && left(".state"));
    }
}
