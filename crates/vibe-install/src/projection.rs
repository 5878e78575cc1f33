//! What a run writes outside the slots for agents to see: the boot text of what is installed.
//!
//! It is worked out twice: before anything is written, so that what cannot be done is refused and
//! can be shown, and again after pre-install, whose work may be to make the text.

mod files;
mod record;
mod texts;

use std::collections::BTreeMap;

use vibe_core::formats::projections::Projections;
use vibe_core::formats::state::MachineState;
use vibe_core::limits::LOCK_BYTES;
use vibe_core::plan::ProjectEdit;
use vibe_core::{RelPath, Sha256Digest, SlotName};
use vibe_projection::boot::{
    BootText, ENTRANCES, Entrance, INDEX_PATH, STATIC_PATH, index_file, static_file,
};
use vibe_projection::edits::{Content, Edits, change_of, edits};
use vibe_slot::fresh::BootRow;
use vibe_slot::redo::RedoFile;

use self::files::{Files, own_path};
use self::record::{record_file, record_path};
use self::texts::{Text, Texts};
use crate::error::{InstallError, ProjectedFault};
use crate::planning::Planned;
use crate::project::Project;

pub(crate) use self::files::read_projected;
pub(crate) use self::record::{read_projections, record_left, set_aside_unusable};

/// When it is asked what there is to project.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Moment<'a> {
    /// Before the run: a text that is yet to be placed is read from the package, and one that a
    /// pre-install makes is not there yet.
    Planned,
    /// All slots are placed and prepared, as this state says.
    Prepared(&'a MachineState),
}

/// What a run projects.
#[derive(Debug, Clone, Default)]
pub(crate) struct Projected {
    /// What there is to write.
    pub edits: Vec<ProjectEdit>,
    /// What the run switches, the record of it included.
    pub files: Vec<RedoFile>,
    /// The boot text, for the next run to remember.
    pub boot: Vec<BootRow>,
    /// Paths whose state decides whether the next run has something to do, relative to the root,
    /// each with the digest that it has once all is written.
    pub watched: Vec<(String, Option<Sha256Digest>)>,
    /// What the user should know.
    pub notes: Vec<String>,
    /// Nothing was worked out, since a package that the run does not look at cannot be read.
    pub is_unknown: bool,
}

impl Projected {
    /// What a run did that projected twice: first this, then `again`.
    pub(crate) fn then(self, again: Projected) -> Projected {
        let mut edits: BTreeMap<RelPath, ProjectEdit> = BTreeMap::new();
        for edit in self.edits.into_iter().chain(again.edits) {
            let before = match edits.get(&edit.path) {
                Some(first) => first.before,
                None => edit.before,
            };
            let change = change_of(before, edit.after.as_ref());
            let edit = ProjectEdit {
                before,
                change,
                ..edit
            };
            edits.insert(edit.path.clone(), edit);
        }
        Projected {
            edits: edits.into_values().collect(),
            notes: [self.notes, again.notes].concat(),
            ..again
        }
    }
}

/// Works out what the run projects.
///
/// # Errors
/// A text is not there or cannot be read, a file that vibe did not write is in the way, or a block's
/// markers are broken.
pub(crate) fn project(
    project: &Project,
    planned: &Planned,
    moment: Moment<'_>,
) -> Result<Projected, InstallError> {
    let known = read_projections(&project.layout)?;
    let mut finder = Texts {
        project,
        planned,
        known: &known.projections,
        moment,
        may_change: false,
        notes: Vec::new(),
        unreadable: Vec::new(),
    };
    let entries = finder.entries(&planned.lock)?;
    if !finder.unreadable.is_empty() {
        return Ok(unknown(&finder.unreadable));
    }
    if entries.is_empty() && known.projections.paths.is_empty() {
        return Ok(Projected {
            files: record_file(&known, &Projections::default())
                .into_iter()
                .collect(),
            ..Projected::default()
        });
    }
    let texts = finder.present(entries)?;
    let mut on_disk = Files {
        project,
        found: BTreeMap::new(),
    };
    let found = edits_of(&mut on_disk, &texts, &known.projections)?;
    let mut edits = found.edits;
    for edit in &mut edits {
        edit.may_change = finder.may_change;
    }
    let left = found.left.iter();
    finder.notes.extend(left.map(|path| {
        format!("{path} is kept, since it is not as vibe wrote it; nothing needs it any more")
    }));
    let files = edits.iter().map(|edit| RedoFile {
        path: edit.path.clone(),
        before: edit.before,
        after: edit.after.clone(),
    });
    let files: Vec<RedoFile> = files
        .chain(record_file(&known, &found.projections))
        .collect();
    on_disk.found.insert(record_path(), known.digest);
    Ok(Projected {
        watched: watched(&texts, &on_disk.found, &files),
        files,
        boot: texts.iter().map(|(entry, _)| entry.row()).collect(),
        edits,
        notes: finder.notes,
        is_unknown: false,
    })
}

/// Nothing is worked out from some of the packages: what they ask for would go.
fn unknown(unreadable: &[SlotName]) -> Projected {
    let names: Vec<String> = unreadable.iter().map(ToString::to_string).collect();
    Projected {
        notes: vec![format!(
            "boot text is left as it is, since it is not known what it is made of: {} is not as it \
             was placed; vibe verify --repair puts both right",
            names.join(", ")
        )],
        is_unknown: true,
        ..Projected::default()
    }
}

/// What the next run looks at beside the record: all that could get a block, also what is not there.
/// `found` is what is there, and `files` what is written.
fn watched(
    texts: &[Text<'_>],
    found: &BTreeMap<RelPath, Option<Sha256Digest>>,
    files: &[RedoFile],
) -> Vec<(String, Option<Sha256Digest>)> {
    let entrances = ENTRANCES.iter().map(|entrance| entrance.path);
    let all = entrances.chain([STATIC_PATH, INDEX_PATH]).map(own_path);
    let others = all.filter(|_| !texts.is_empty());
    let digest = |path: &RelPath| match files.iter().find(|file| file.path == *path) {
        Some(file) => Some(Sha256Digest::of(file.after.as_ref()?.as_bytes())),
        None => found.get(path).copied().flatten(),
    };
    std::iter::once(record_path())
        .chain(others)
        .map(|path| (path.as_str().to_owned(), digest(&path)))
        .collect()
}

/// The edits that make what is on disk show `texts`.
fn edits_of(
    on_disk: &mut Files<'_>,
    texts: &[Text<'_>],
    known: &Projections,
) -> Result<Edits, InstallError> {
    let shown: Vec<BootText> = texts.iter().map(|(entry, _)| entry.shown.clone()).collect();
    let files = [
        on_disk.whole_file(STATIC_PATH, static_content(texts))?,
        on_disk.whole_file(INDEX_PATH, index_content(&shown))?,
    ];
    let is_involved =
        |entrance: &&Entrance| !shown.is_empty() || known.get(&own_path(entrance.path)).is_some();
    let mut blocks = Vec::new();
    for entrance in ENTRANCES.iter().filter(is_involved) {
        blocks.extend(on_disk.block_file(entrance, &shown)?);
    }
    let found = edits(known, &files, &blocks).map_err(|source| InstallError::Project {
        root: on_disk.project.root.clone(),
        source,
    })?;
    let is_too_large = |edit: &&ProjectEdit| {
        let after = edit.after.as_ref();
        after.is_some_and(|text| text.len() as u64 > LOCK_BYTES)
    };
    match found.edits.iter().find(is_too_large) {
        Some(edit) => Err(on_disk.fault(&edit.path, ProjectedFault::Outgrown)),
        None => Ok(found),
    }
}

fn static_content(texts: &[Text<'_>]) -> Content {
    let mut fixed = texts
        .iter()
        .filter(|(entry, _)| entry.boot.is_static)
        .peekable();
    if fixed.peek().is_none() {
        return Content::None;
    }
    let read: Option<Vec<(&BootText, &str)>> = fixed
        .map(|(entry, text)| Some((&entry.shown, text.as_deref()?)))
        .collect();
    match read {
        Some(read) => Content::Text(static_file(read)),
        None => Content::AsRecorded,
    }
}

fn index_content(shown: &[BootText]) -> Content {
    let mut listed = shown.iter().filter(|boot| !boot.is_static).peekable();
    match listed.peek() {
        None => Content::None,
        Some(_) => Content::Text(index_file(listed)),
    }
}
