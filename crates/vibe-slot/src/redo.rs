//! The redo file: how lock, manifest and projected files switch together.
//!
//! It names, for every file that a run replaces, the digest before and the content after. Once it
//! is on disk the run counts. Applying it is idempotent: a file as before is written, a file as
//! after is done. So whoever finds a complete one, after a crash at any instant, applies it again.

use std::path::Path;

use serde::{Deserialize, Serialize};
use vibe_core::formats::lock::LOCK_NAME;
use vibe_core::formats::manifest::MANIFEST_NAME;
use vibe_core::limits::{LOCK_BYTES, RECORD_BYTES};
use vibe_core::{RelPath, Sha256Digest};
use vibe_fs::error::shown;
use vibe_fs::{Durability, EntryKind, Guard, ReadError};

use crate::error::SlotError;
use crate::layout::{Layout, STATE_NAME, VIBEDEPS};

/// The form written.
const REDO_FORM: u64 = 1;

/// Every file that a run switches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Redo {
    /// The files, in the order they are written.
    pub files: Vec<RedoFile>,
}

/// One file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RedoFile {
    /// Where it lies, relative to the project root.
    pub path: RelPath,
    /// The digest of the content before; `None`: it was absent.
    pub before: Option<Sha256Digest>,
    /// The content after; `None`: it goes.
    pub after: Option<String>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RedoDocument {
    form: u64,
    files: Vec<RedoFile>,
}

#[derive(Deserialize)]
struct FormOnly {
    form: u64,
}

/// What lies where the redo file belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RedoOnDisk {
    /// Nothing.
    None,
    /// A file that was not written to its end, or names a place that no run writes.
    Incomplete,
    /// A run that counts and may not be applied yet.
    Complete(Redo),
}

/// What applying a redo file did.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Applied {
    /// Files written or removed.
    pub written: Vec<RelPath>,
    /// The lock or manifest that is neither as before nor as after; nothing was written then.
    pub dropped: Option<RelPath>,
    /// Other files that are neither, left as they are.
    pub left: Vec<RelPath>,
}

/// A file compared with its row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Position {
    Before,
    After,
    Neither,
}

/// Whether a run may write `path`: nothing of this machine's state, and no slot's record.
fn is_allowed(path: &RelPath) -> bool {
    let mut components = path.components();
    components.next() != Some(VIBEDEPS) || !matches!(components.next(), None | Some(STATE_NAME))
}

/// Whether the whole run depends on the file: the lock, or a manifest of the workspace.
fn is_decisive(path: &RelPath) -> bool {
    path.as_str() == LOCK_NAME || path.file_name() == MANIFEST_NAME
}

/// Writes the redo file, durably: from its return on the run counts.
///
/// # Errors
/// A path is one that no run writes, or the file cannot be written.
pub fn write(layout: &Layout, redo: &Redo) -> Result<(), SlotError> {
    if let Some(file) = redo.files.iter().find(|file| !is_allowed(&file.path)) {
        return Err(SlotError::Forbidden {
            path: file.path.clone(),
        });
    }
    let document = RedoDocument {
        form: REDO_FORM,
        files: redo.files.clone(),
    };
    let bytes = serde_json::to_vec(&document).expect("texts, numbers and lists are always JSON");
    vibe_fs::write_atomic(
        &layout.redo(),
        &bytes,
        &layout.staging(),
        Durability::Synced,
    )?;
    Ok(())
}

/// Reads the redo file.
///
/// # Errors
/// It is a link, cannot be read, or was written by a newer vibe.
pub fn read(layout: &Layout) -> Result<RedoOnDisk, SlotError> {
    let path = layout.redo();
    let Some(bytes) = vibe_fs::read_if_exists(&path, RECORD_BYTES)? else {
        return Ok(RedoOnDisk::None);
    };
    match serde_json::from_slice::<FormOnly>(&bytes) {
        Ok(FormOnly { form: REDO_FORM }) => {}
        Ok(FormOnly { form }) => {
            return Err(SlotError::Newer {
                path: shown(&path),
                found: form,
            });
        }
        Err(_) => return Ok(RedoOnDisk::Incomplete),
    }
    match serde_json::from_slice::<RedoDocument>(&bytes) {
        Ok(document) if document.files.iter().all(|file| is_allowed(&file.path)) => {
            Ok(RedoOnDisk::Complete(Redo {
                files: document.files,
            }))
        }
        _ => Ok(RedoOnDisk::Incomplete),
    }
}

/// Brings every file of `redo` to its content after, then removes the redo file. Lock and
/// manifests are durable before that.
///
/// Where the lock or a manifest is neither as before nor as after, nothing is written and the redo
/// file goes; any other file that is neither is left. Links are not followed: a link, or a file
/// behind one, is neither.
///
/// # Errors
/// A file cannot be read or written; the redo file then stays.
pub fn apply(layout: &Layout, redo: &Redo) -> Result<Applied, SlotError> {
    let mut applied = Applied::default();
    let positions: Vec<Position> = redo
        .files
        .iter()
        .map(|file| position(layout.project_root(), file))
        .collect::<Result<_, _>>()?;
    let rows = || redo.files.iter().zip(&positions);
    let foreign = rows().find(|(file, at)| is_decisive(&file.path) && **at == Position::Neither);
    if let Some((file, _)) = foreign {
        applied.dropped = Some(file.path.clone());
        discard(layout)?;
        return Ok(applied);
    }
    for (file, at) in rows() {
        match at {
            Position::After => {}
            Position::Neither => applied.left.push(file.path.clone()),
            Position::Before => {
                switch(layout, file)?;
                applied.written.push(file.path.clone());
            }
        }
    }
    discard(layout)?;
    Ok(applied)
}

/// Removes the redo file, durably, so that no later power loss brings it back.
///
/// # Errors
/// It cannot be removed.
pub fn discard(layout: &Layout) -> Result<(), SlotError> {
    if vibe_fs::remove_file_if(&layout.redo(), |_| true)? {
        vibe_fs::sync_directory(&layout.state())?;
    }
    Ok(())
}

fn position(root: &Path, file: &RedoFile) -> Result<Position, SlotError> {
    let found = match vibe_fs::path_guard(root, &file.path)? {
        Guard::Blocked { .. } => return Ok(Position::Neither),
        Guard::Absent(_) => None,
        Guard::Clear => match vibe_fs::read_if_exists(&file.path.under(root), LOCK_BYTES) {
            Ok(bytes) => bytes.map(|bytes| Sha256Digest::of(&bytes)),
            Err(ReadError::Fs(error)) => return Err(error.into()),
            Err(ReadError::NotAFile { .. } | ReadError::TooLarge { .. }) => {
                return Ok(Position::Neither);
            }
        },
    };
    let after = file.after.as_ref();
    if found == after.map(|text| Sha256Digest::of(text.as_bytes())) {
        return Ok(Position::After);
    }
    Ok(match found == file.before {
        true => Position::Before,
        false => Position::Neither,
    })
}

fn switch(layout: &Layout, file: &RedoFile) -> Result<(), SlotError> {
    let root = layout.project_root();
    let target = file.path.under(root);
    let Some(text) = &file.after else {
        vibe_fs::remove_file_if(&target, |stat| stat.kind == EntryKind::File)?;
        return Ok(());
    };
    vibe_fs::create_parents(root, &file.path)?;
    let durability = match is_decisive(&file.path) {
        true => Durability::Synced,
        false => Durability::Unsynced,
    };
    vibe_fs::replace_atomic(&target, text.as_bytes(), &layout.staging(), durability)?;
    Ok(())
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{World, rel};
    use proptest::prelude::*;
    use std::collections::BTreeMap;
    use std::fs;

    fn digest(text: &str) -> Sha256Digest {
        Sha256Digest::of(text.as_bytes())
    }

    fn file(path: &str, before: Option<&str>, after: Option<&str>) -> RedoFile {
        RedoFile {
            path: rel(path),
            before: before.map(digest),
            after: after.map(str::to_owned),
        }
    }

    fn put(world: &World, path: &str, text: Option<&str>) {
        let full = world.layout.project_root().join(path);
        fs::create_dir_all(full.parent().unwrap()).unwrap();
        match text {
            Some(text) => fs::write(full, text).unwrap(),
            None => {
                let _ = fs::remove_file(full);
            }
        }
    }

    fn get(world: &World, path: &str) -> Option<String> {
        fs::read_to_string(world.layout.project_root().join(path)).ok()
    }

    #[test]
    fn every_file_switches_and_the_redo_file_goes() {
        let world = World::new();
        put(&world, "vibe.lock", Some("old"));
        put(&world, "AGENTS.md", Some("done"));
        put(&world, ".claude/old.md", Some("old"));
        let redo = Redo {
            files: vec![
                file("vibe.lock", Some("old"), Some("new")),
                file("vibe.toml", None, Some("m")),
                file("vibedeps/.projections.toml", None, Some("p")),
                file("AGENTS.md", Some("x"), Some("done")),
                file(".claude/skills/a/SKILL.md", None, Some("s")),
                file(".claude/old.md", Some("old"), None),
            ],
        };
        write(&world.layout, &redo).unwrap();
        let RedoOnDisk::Complete(found) = read(&world.layout).unwrap() else {
            panic!("it was written to its end");
        };
        assert_eq!(found, redo);
        let applied = apply(&world.layout, &found).unwrap();
        let written: Vec<&str> = applied.written.iter().map(RelPath::as_str).collect();
        assert_eq!(
            written,
            [
                "vibe.lock",
                "vibe.toml",
                "vibedeps/.projections.toml",
                ".claude/skills/a/SKILL.md",
                ".claude/old.md"
            ]
        );
        assert_eq!((applied.dropped, applied.left), (None, vec![]));
        assert_eq!(get(&world, "vibe.lock").as_deref(), Some("new"));
        assert_eq!(
            get(&world, ".claude/skills/a/SKILL.md").as_deref(),
            Some("s")
        );
        assert_eq!(get(&world, ".claude/old.md"), None);
        assert_eq!(read(&world.layout).unwrap(), RedoOnDisk::None);
        assert!(world.staged().is_empty());
    }

    #[test]
    fn a_decisive_file_that_is_neither_drops_the_whole() {
        for path in ["vibe.lock", "vibe.toml", "packages/a/vibe.toml"] {
            let world = World::new();
            put(&world, path, Some("edited"));
            let redo = Redo {
                files: vec![
                    file("AGENTS.md", None, Some("a")),
                    file(path, Some("old"), Some("new")),
                ],
            };
            write(&world.layout, &redo).unwrap();
            let applied = apply(&world.layout, &redo).unwrap();
            assert_eq!(applied.dropped, Some(rel(path)));
            assert_eq!((applied.written, applied.left), (vec![], vec![]));
            assert_eq!(get(&world, path).as_deref(), Some("edited"));
            assert_eq!(get(&world, "AGENTS.md"), None);
            assert_eq!(read(&world.layout).unwrap(), RedoOnDisk::None);
        }
    }

    #[test]
    fn other_files_that_are_neither_are_left_and_named() {
        let world = World::new();
        let outside = tempfile::tempdir().unwrap();
        let root = world.layout.project_root();
        put(&world, "edited", Some("mine"));
        put(&world, "outside-target", Some("old"));
        std::os::unix::fs::symlink("outside-target", root.join("link")).unwrap();
        std::os::unix::fs::symlink(outside.path(), root.join("linked")).unwrap();
        fs::create_dir(root.join("directory")).unwrap();
        let redo = Redo {
            files: vec![
                file("edited", Some("old"), Some("new")),
                file("gone", Some("old"), Some("new")),
                file("link", Some("old"), Some("new")),
                file("linked/x", None, Some("new")),
                file("directory", None, Some("new")),
                file("fine", None, Some("new")),
            ],
        };
        let applied = apply(&world.layout, &redo).unwrap();
        assert_eq!(
            applied.left,
            ["edited", "gone", "link", "linked/x", "directory"].map(rel)
        );
        assert_eq!(applied.written, [rel("fine")]);
        assert_eq!(get(&world, "outside-target").as_deref(), Some("old"));
        assert_eq!(fs::read_dir(outside.path()).unwrap().count(), 0);
    }

    #[test]
    fn what_was_not_written_to_its_end_is_incomplete() {
        let world = World::new();
        let redo = Redo {
            files: vec![file("vibe.lock", None, Some("new"))],
        };
        write(&world.layout, &redo).unwrap();
        let whole = fs::read(world.layout.redo()).unwrap();
        for length in 0..whole.len() {
            fs::write(world.layout.redo(), &whole[..length]).unwrap();
            assert_eq!(
                read(&world.layout).unwrap(),
                RedoOnDisk::Incomplete,
                "{length}"
            );
        }
        discard(&world.layout).unwrap();
        assert_eq!(read(&world.layout).unwrap(), RedoOnDisk::None);
        discard(&world.layout).unwrap();
        fs::write(world.layout.redo(), r#"{"form":2,"more":[]}"#).unwrap();
        assert!(matches!(
            read(&world.layout),
            Err(SlotError::Newer { found: 2, .. })
        ));
    }

    #[test]
    fn no_redo_file_reaches_outside_or_into_our_state() {
        let world = World::new();
        for path in ["vibedeps/.state/slots.toml", "vibedeps/.state", "vibedeps"] {
            let redo = Redo {
                files: vec![file(path, None, Some("x"))],
            };
            let error = write(&world.layout, &redo).unwrap_err();
            assert!(matches!(error, SlotError::Forbidden { .. }), "{error}");
        }
        for path in [
            "../x",
            "/etc/x",
            "a/../x",
            "vibedeps/.state/x",
            ".git/config",
        ] {
            let text =
                format!(r#"{{"form":1,"files":[{{"path":"{path}","before":null,"after":"x"}}]}}"#);
            fs::write(world.layout.redo(), text).unwrap();
            assert_eq!(
                read(&world.layout).unwrap(),
                RedoOnDisk::Incomplete,
                "{path}"
            );
        }
        for path in ["vibedeps/boot/INDEX.md", "a/vibedeps/.state", "vibedepsx"] {
            assert!(is_allowed(&rel(path)), "{path}");
        }
    }

    const PATHS: [&str; 5] = [
        "vibe.lock",
        "vibe.toml",
        "vibedeps/.projections.toml",
        "a/b",
        "c",
    ];

    fn text() -> impl Strategy<Value = Option<&'static str>> {
        prop_oneof![Just(None), Just(Some("1")), Just(Some("2"))]
    }

    fn state(world: &World) -> BTreeMap<&'static str, Option<String>> {
        PATHS.iter().map(|path| (*path, get(world, path))).collect()
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10))]
        /// A crash leaves a prefix of the files written and the redo file in place.
        #[test]
        fn after_a_crash_at_any_instant_applying_again_gives_the_same(
            rows in prop::collection::vec((text(), text()), PATHS.len()),
            edited in prop::option::of(3..PATHS.len()),
        ) {
            let build = || {
                let world = World::new();
                for (path, (before, _)) in PATHS.iter().zip(&rows) {
                    put(&world, path, *before);
                }
                if let Some(index) = edited {
                    put(&world, PATHS[index], Some("edited"));
                }
                world
            };
            let redo = Redo {
                files: PATHS.iter().zip(&rows).map(|(p, (b, a))| file(p, *b, *a)).collect(),
            };
            let whole = build();
            write(&whole.layout, &redo).unwrap();
            let bytes = fs::read(whole.layout.redo()).unwrap();
            let applied = apply(&whole.layout, &redo).unwrap();
            prop_assert_eq!(applied.dropped, None);
            prop_assert_eq!(applied.left.len(), usize::from(edited.is_some()));
            for cut in 0..=PATHS.len() {
                let world = build();
                fs::write(world.layout.redo(), &bytes).unwrap();
                for file in &redo.files[..cut] {
                    if position(world.layout.project_root(), file).unwrap() == Position::Before {
                        switch(&world.layout, file).unwrap();
                    }
                }
                let RedoOnDisk::Complete(found) = read(&world.layout).unwrap() else {
                    return Err(TestCaseError::fail("the redo file is complete"));
                };
                apply(&world.layout, &found).unwrap();
                prop_assert_eq!(state(&world), state(&whole));
                prop_assert_eq!(read(&world.layout).unwrap(), RedoOnDisk::None);
            }
        }
    }
}
