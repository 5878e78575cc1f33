//! What a run writes outside the slots for agents to see: the boot text of what is installed.
//!
//! It is worked out twice: before anything is written, so that what cannot be done is refused and
//! can be shown, and again after pre-install, whose work may be to make the text.

use std::collections::BTreeMap;
use std::io::Read as _;

use vibe_core::formats::decode::decode;
use vibe_core::formats::diagnostic::Diagnostic;
use vibe_core::formats::lock::{Lock, LockedPackage};
use vibe_core::formats::manifest::Boot;
use vibe_core::formats::projections::{
    PROJECTIONS_NAME, ProjectedPath, ProjectionForm, Projections, ProjectionsError,
};
use vibe_core::formats::state::MachineState;
use vibe_core::hook::{Phase, PhaseState};
use vibe_core::limits::{BOOT_BYTES, LOCK_BYTES};
use vibe_core::plan::{Extent, FileChange, ProjectEdit, Step};
use vibe_core::{Event, PackageId, RelPath, Sha256Digest, SlotName};
use vibe_fs::{Durability, EntryKind, Guard, ReadError, path_guard, read_if_exists, stat_of};
use vibe_plan::order::order;
use vibe_projection::boot::{
    BootText, ENTRANCES, Entrance, INDEX_PATH, STATIC_PATH, block_lines, index_file, static_file,
};
use vibe_projection::edits::{
    BlockFile, Content, Edits, WholeFile, change_of, edits, shown_by_block,
};
use vibe_slot::fresh::BootRow;
use vibe_slot::layout::VIBEDEPS;
use vibe_slot::record::{RecordOnDisk, read_record};
use vibe_slot::redo::RedoFile;
use vibe_slot::{Layout, PayloadSource};

use crate::error::{InstallError, ProjectedFault};
use crate::manifests::vouched;
use crate::planning::{Planned, PlannedPackage};
use crate::project::Project;
use crate::settings::Context;
use crate::slots::clone_boot;

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

/// One package's boot text.
struct Entry<'a> {
    locked: &'a LockedPackage,
    slot: SlotName,
    boot: Boot,
    shown: BootText,
    /// Neither the package nor its slot is touched by the run.
    is_remembered: bool,
}

/// The record of projected paths, with the digest of its bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProjectionsFile {
    pub projections: Projections,
    pub digest: Option<Sha256Digest>,
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
    let mut projector = Projector {
        project,
        planned,
        moment,
        may_change: false,
        notes: Vec::new(),
        unreadable: Vec::new(),
        found: BTreeMap::new(),
    };
    let entries = projector.entries(&planned.lock)?;
    if !projector.unreadable.is_empty() {
        return Ok(unknown(&projector.unreadable));
    }
    if entries.is_empty() && known.projections.paths.is_empty() {
        return Ok(Projected {
            files: record_file(&known, &Projections::default())
                .into_iter()
                .collect(),
            ..Projected::default()
        });
    }
    let texts = projector.present(entries)?;
    let found = projector.edits(&texts, &known.projections)?;
    let mut edits = found.edits;
    for edit in &mut edits {
        edit.may_change = projector.may_change;
    }
    let left = found.left.iter();
    projector.notes.extend(left.map(|path| {
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
    projector.found.insert(record_path(), known.digest);
    Ok(Projected {
        watched: watched(&texts, &projector.found, &files),
        files,
        boot: texts.iter().map(|(entry, _)| entry.row()).collect(),
        edits,
        notes: projector.notes,
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
    texts: &[(Entry<'_>, Option<String>)],
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

/// The switch of the record, where it changes.
fn record_file(known: &ProjectionsFile, after: &Projections) -> Option<RedoFile> {
    let after = (!after.paths.is_empty()).then(|| after.render());
    let digest = after.as_ref().map(|text| Sha256Digest::of(text.as_bytes()));
    (digest != known.digest).then(|| RedoFile {
        path: record_path(),
        before: known.digest,
        after,
    })
}

fn record_path() -> RelPath {
    RelPath::new(&format!("{VIBEDEPS}/{PROJECTIONS_NAME}")).expect("our own names are paths")
}

/// Reads `.projections.toml`; nothing is recorded where it is not there.
pub(crate) fn read_projections(layout: &Layout) -> Result<ProjectionsFile, InstallError> {
    let path = layout.projections();
    let bytes = read_if_exists(&path, LOCK_BYTES)
        .map_err(|source| InstallError::ReadProjections { source })?;
    let Some(bytes) = bytes else {
        return Ok(ProjectionsFile::default());
    };
    let text = decode(&bytes).map_err(Into::into);
    let projections = text.and_then(|text| Projections::parse(&text));
    Ok(ProjectionsFile {
        projections: projections.map_err(|source| InstallError::Projections { source })?,
        digest: Some(Sha256Digest::of(&bytes)),
    })
}

/// Moves a record that cannot be used out of the way, which only a repair does.
pub(crate) fn set_aside_unusable(
    context: &Context<'_>,
    project: &Project,
) -> Result<(), InstallError> {
    let found = read_projections(&project.layout);
    let Err(InstallError::Projections {
        source: ProjectionsError::Malformed(_),
    }) = found
    else {
        return found.map(drop);
    };
    let path = project.layout.projections();
    let kept = vibe_fs::free_kept_name(&path)?;
    vibe_fs::rename_over(&path, &kept)?;
    let kept = vibe_fs::error::shown(&kept);
    let text = format!("the unusable record of projected paths was kept as {kept}");
    context.observer.observe(&Event::Note(text));
    Ok(())
}

/// Records of `paths`, which somebody changed meanwhile, what they are: the block in one of them is
/// vibe's as before, so that the next run brings it up to date or takes it out; a whole file is not.
pub(crate) fn record_left(project: &Project, paths: &[RelPath]) -> Result<(), InstallError> {
    if paths.is_empty() {
        return Ok(());
    }
    let mut known = read_projections(&project.layout)?.projections;
    known.paths.retain(|row| !paths.contains(&row.path));
    for path in paths {
        known.paths.extend(row_of_block(project, path)?);
    }
    known
        .paths
        .sort_by(|one, other| one.path.as_str().cmp(other.path.as_str()));
    let (path, staging) = (project.layout.projections(), project.layout.staging());
    let text = known.render();
    vibe_fs::write_atomic(&path, text.as_bytes(), &staging, Durability::Unsynced)?;
    Ok(())
}

/// The row of the block as it is in the file at `path`, if that is one that has blocks.
fn row_of_block(project: &Project, path: &RelPath) -> Result<Option<ProjectedPath>, InstallError> {
    if ENTRANCES
        .iter()
        .all(|entrance| entrance.path != path.as_str())
    {
        return Ok(None);
    }
    let bytes = match read_projected(project, path) {
        Err(InstallError::ProjectedPath { .. }) => None,
        read => read?,
    };
    let shown = bytes.and_then(|bytes| shown_by_block(str::from_utf8(&bytes).ok()?).ok()?);
    Ok(shown.map(|sha256| ProjectedPath {
        path: path.clone(),
        form: ProjectionForm::Block,
        sha256,
    }))
}

impl Entry<'_> {
    fn row(&self) -> BootRow {
        BootRow {
            slot: self.slot.directory(),
            source: self.boot.source.clone(),
            is_static: self.boot.is_static,
            when: self.boot.when.clone(),
        }
    }
}

struct Projector<'a> {
    project: &'a Project,
    planned: &'a Planned,
    moment: Moment<'a>,
    /// A pre-install that is still to run may change a text.
    may_change: bool,
    notes: Vec<String>,
    /// Slots of packages that the run does not look at and that cannot be read.
    unreadable: Vec<SlotName>,
    /// The digest of each file that was looked at; `None`: nothing is there.
    found: BTreeMap<RelPath, Option<Sha256Digest>>,
}

impl<'a> Projector<'a> {
    /// The packages with boot text, dependencies before dependents.
    fn entries(&mut self, lock: &'a Lock) -> Result<Vec<Entry<'a>>, InstallError> {
        let packages = lock.packages.iter();
        let rows = packages.map(|locked| (locked.id.clone(), locked.dependencies.clone()));
        let dependencies: BTreeMap<PackageId, Vec<PackageId>> = rows.collect();
        let mut entries = Vec::new();
        for id in order(&dependencies).packages {
            let locked = lock.get(&id).expect("what is ordered is in the lock");
            let slot = locked.slot();
            let package = self.planned.package(&slot);
            let boot = match package {
                Some(package) => Some(package.boot.clone()),
                None => self.boot_on_disk(&slot)?,
            };
            let Some(boot) = boot else {
                self.unreadable.push(slot);
                continue;
            };
            let Some(boot) = boot else { continue };
            entries.push(Entry {
                shown: BootText {
                    package: locked.id.clone(),
                    version: locked.version.clone(),
                    path: format!("{VIBEDEPS}/{}/{}", slot.directory(), boot.source),
                    is_static: boot.is_static,
                    when: boot.when.clone(),
                },
                is_remembered: package.is_some_and(|package| self.is_remembered(&slot, package)),
                locked,
                slot,
                boot,
            });
        }
        Ok(entries)
    }

    /// What the manifest in the slot of a package declares that the run does not look at; `None`
    /// where that cannot be read.
    fn boot_on_disk(&self, slot: &SlotName) -> Result<Option<Option<Boot>>, InstallError> {
        let layout = &self.project.layout;
        if slot.version().is_none() {
            return Ok(clone_boot(layout, slot));
        }
        let RecordOnDisk::Valid { record, .. } = read_record(layout, slot)? else {
            return Ok(None);
        };
        let package = vouched(self.project, slot, &record)?;
        Ok(package.map(|package| package.boot))
    }

    fn is_remembered(&self, slot: &SlotName, package: &PlannedPackage) -> bool {
        let mut steps = self.planned.plan.steps.iter();
        package.is_remembered && !steps.any(|step| step.slot() == slot && step.is_work())
    }

    /// The entries whose text is there, or will be, with those texts that are needed.
    fn present(
        &mut self,
        entries: Vec<Entry<'a>>,
    ) -> Result<Vec<(Entry<'a>, Option<String>)>, InstallError> {
        let reads_static = !self.is_static_as_recorded(&entries)?;
        let mut present = Vec::new();
        for entry in entries {
            let is_needed = !entry.is_remembered || (entry.boot.is_static && reads_static);
            if !is_needed {
                present.push((entry, None));
            } else if let Some(text) = self.text(&entry)? {
                present.push((entry, Some(text)));
            }
        }
        Ok(present)
    }

    /// Whether the file of static text is as recorded, and so is all that it is made of.
    fn is_static_as_recorded(&self, entries: &[Entry<'_>]) -> Result<bool, InstallError> {
        let Some(before) = &self.planned.boot_before else {
            return Ok(false);
        };
        let mut now = entries.iter().filter(|entry| entry.boot.is_static);
        let before = before.iter().filter(|row| row.is_static);
        let is_same = now.all(|entry| entry.is_remembered)
            && entries
                .iter()
                .filter(|entry| entry.boot.is_static)
                .map(Entry::row)
                .eq(before.cloned());
        if !is_same {
            return Ok(false);
        }
        let path = own_path(STATIC_PATH);
        let known = read_projections(&self.project.layout)?.projections;
        let recorded = known.get(&path).map(|row| row.sha256);
        Ok(recorded.is_some() && recorded == self.found(&path)?)
    }

    /// The text of a package; `None` where its pre-install was held back and so did not make it.
    fn text(&mut self, entry: &Entry<'_>) -> Result<Option<String>, InstallError> {
        let fault = |fault| InstallError::BootText {
            id: entry.locked.id.clone(),
            version: entry.locked.version.clone(),
            path: entry.boot.source.clone(),
            fault: Box::new(fault),
        };
        let bytes = match self.published(entry).map_err(fault)? {
            Some(bytes) => Some(bytes),
            None if self.goes(entry) => None,
            None => self.placed(entry).map_err(fault)?,
        };
        let phase = self.pre_install(&entry.slot);
        if matches!(self.moment, Moment::Planned) && self.runs_pre_install(&entry.slot) {
            self.may_change = true;
            return Ok(Some(decode(&bytes.unwrap_or_default()).unwrap_or_default()));
        }
        match (bytes, phase) {
            (Some(bytes), _) => {
                let text = decode(&bytes).map_err(|found| fault(ProjectedFault::Text(found)))?;
                Ok(Some(text))
            }
            (None, None) => Err(fault(ProjectedFault::Missing)),
            (None, Some(PhaseState::Done)) => Err(fault(ProjectedFault::NotMade)),
            (None, Some(_)) => {
                let (id, path) = (&entry.locked.id, &entry.boot.source);
                self.notes.push(format!(
                    "{id}: its boot text {path} is not there, since its pre-install did not run"
                ));
                Ok(None)
            }
        }
    }

    /// Where the pre-install of `slot` stands, if one is declared, or will once the run has placed
    /// what it places.
    fn pre_install(&self, slot: &SlotName) -> Option<PhaseState> {
        if matches!(self.moment, Moment::Planned) && self.has_pre_install_step(slot) {
            return Some(PhaseState::Owed);
        }
        let state = match self.moment {
            Moment::Planned => &self.planned.state,
            Moment::Prepared(state) => state,
        };
        let known = state
            .phases(slot)
            .and_then(|phases| phases.get(&Phase::PreInstall));
        let fetched = self
            .planned
            .package(slot)
            .and_then(|package| package.fetched.as_ref());
        let declares = fetched.is_some_and(|fetched| {
            fetched
                .hooks
                .iter()
                .any(|hook| hook.phase == Phase::PreInstall)
        });
        known.copied().or(declares.then_some(PhaseState::Owed))
    }

    fn runs_pre_install(&self, slot: &SlotName) -> bool {
        self.pre_install_step(slot).is_some_and(Step::is_work)
    }

    /// Whether the pre-install of `slot` is due, and run or held back.
    fn has_pre_install_step(&self, slot: &SlotName) -> bool {
        self.pre_install_step(slot).is_some()
    }

    fn pre_install_step(&self, slot: &SlotName) -> Option<&Step> {
        self.planned.plan.steps.iter().find(|step| match step {
            Step::RunHook(hook) => hook.slot == *slot && hook.phase == Phase::PreInstall,
            _ => false,
        })
    }

    /// Whether the run is yet to take away what lies where the text of `entry` belongs.
    fn goes(&self, entry: &Entry<'_>) -> bool {
        let source = &entry.boot.source;
        let mut steps = self.planned.plan.steps.iter();
        let takes = |change: &FileChange| match change {
            FileChange::Delete { path } | FileChange::SetAside { path, .. } => path == source,
            FileChange::RemoveMade { path } => {
                path == source || source.ancestors().any(|above| above == *path)
            }
            FileChange::Write { .. } => false,
        };
        matches!(self.moment, Moment::Planned)
            && steps.any(|step| match step {
                Step::Refresh(refresh) => {
                    refresh.slot == entry.slot && refresh.changes.iter().any(takes)
                }
                Step::CheckOut(step) => step.slot == entry.slot && step.extent == Extent::All,
                _ => false,
            })
    }

    /// The text as the package has it, where the run is yet to place that.
    fn published(&self, entry: &Entry<'_>) -> Result<Option<Vec<u8>>, ProjectedFault> {
        let mut steps = self.planned.plan.steps.iter();
        let is_placed = steps.any(|step| match step {
            Step::Place(_) | Step::Refresh(_) | Step::CheckOut(_) => *step.slot() == entry.slot,
            _ => false,
        });
        let fetched = self.planned.package(&entry.slot);
        let fetched = fetched.and_then(|package| package.fetched.as_ref());
        let (Moment::Planned, true, Some(fetched)) = (self.moment, is_placed, fetched) else {
            return Ok(None);
        };
        if fetched.tree().get(&entry.boot.source).is_none() {
            return Ok(None);
        }
        let reader = fetched.payload.open(&entry.boot.source);
        let reader = reader.map_err(|error| ProjectedFault::Payload(Box::new(error)))?;
        let mut bytes = Vec::new();
        let read = reader.take(BOOT_BYTES + 1).read_to_end(&mut bytes);
        read.map_err(|error| ProjectedFault::Payload(Box::new(error)))?;
        match bytes.len() as u64 > BOOT_BYTES {
            true => Err(too_large(BOOT_BYTES)),
            false => Ok(Some(bytes)),
        }
    }

    /// The text as it lies in the slot.
    fn placed(&self, entry: &Entry<'_>) -> Result<Option<Vec<u8>>, ProjectedFault> {
        let slot = self.project.layout.slot(&entry.slot);
        if let Guard::Blocked { path, kind } = path_guard(&slot, &entry.boot.source)? {
            return Err(ProjectedFault::Blocked { path, kind });
        }
        match read_if_exists(&entry.boot.source.under(&slot), BOOT_BYTES) {
            Err(ReadError::TooLarge { limit_bytes, .. }) => Err(too_large(limit_bytes)),
            Err(ReadError::NotAFile { kind, .. }) => Err(ProjectedFault::Blocked {
                path: entry.boot.source.clone(),
                kind,
            }),
            Err(ReadError::Fs(error)) => Err(error.into()),
            Ok(found) => Ok(found),
        }
    }

    fn edits(
        &mut self,
        texts: &[(Entry<'_>, Option<String>)],
        known: &Projections,
    ) -> Result<Edits, InstallError> {
        let shown: Vec<BootText> = texts.iter().map(|(entry, _)| entry.shown.clone()).collect();
        let files = [
            self.whole_file(STATIC_PATH, self.static_content(texts))?,
            self.whole_file(INDEX_PATH, index_content(&shown))?,
        ];
        let is_involved = |entrance: &&Entrance| {
            !shown.is_empty() || known.get(&own_path(entrance.path)).is_some()
        };
        let mut blocks = Vec::new();
        for entrance in ENTRANCES.iter().filter(is_involved) {
            blocks.extend(self.block_file(entrance, &shown)?);
        }
        let found = edits(known, &files, &blocks).map_err(|source| InstallError::Project {
            root: self.project.root.clone(),
            source,
        })?;
        let is_too_large = |edit: &&ProjectEdit| {
            let after = edit.after.as_ref();
            after.is_some_and(|text| text.len() as u64 > LOCK_BYTES)
        };
        match found.edits.iter().find(is_too_large) {
            Some(edit) => Err(self.fault(&edit.path, ProjectedFault::Outgrown)),
            None => Ok(found),
        }
    }

    fn static_content(&self, texts: &[(Entry<'_>, Option<String>)]) -> Content {
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

    fn whole_file(&mut self, path: &str, wanted: Content) -> Result<WholeFile, InstallError> {
        let path = own_path(path);
        let found = self.found(&path)?;
        self.found.insert(path.clone(), found);
        Ok(WholeFile {
            found,
            wanted,
            path,
        })
    }

    /// The digest of the file of ours at `path`; `None` where nothing is.
    fn found(&self, path: &RelPath) -> Result<Option<Sha256Digest>, InstallError> {
        let bytes = read_projected(self.project, path)?;
        Ok(bytes.map(|bytes| Sha256Digest::of(&bytes)))
    }

    /// The file of `entrance`; `None` where it is a link to another one, which has the block.
    fn block_file(
        &mut self,
        entrance: &Entrance,
        shown: &[BootText],
    ) -> Result<Option<BlockFile>, InstallError> {
        if self.is_link_to_file(entrance)? {
            return Ok(None);
        }
        let path = own_path(entrance.path);
        let bytes = read_projected(self.project, &path)?;
        let digest = bytes.as_ref().map(|bytes| Sha256Digest::of(bytes));
        self.found.insert(path.clone(), digest);
        let found = match bytes {
            None => None,
            Some(bytes) => Some(String::from_utf8(bytes).map_err(|error| {
                let place = Diagnostic::new(format!("it is not UTF-8: {}", error.utf8_error()));
                self.fault(&path, ProjectedFault::Text(place))
            })?),
        };
        Ok(Some(BlockFile {
            lines: block_lines(entrance, shown),
            is_expected: self.is_expected(entrance)?,
            path,
            found,
        }))
    }

    fn fault(&self, path: &RelPath, fault: ProjectedFault) -> InstallError {
        InstallError::ProjectedPath {
            path: path.under(&self.project.root),
            fault: Box::new(fault),
        }
    }

    /// Whether the file is written where it is missing: for all harnesses, for one that is chosen,
    /// and where another entrance is a link to it.
    fn is_expected(&self, entrance: &Entrance) -> Result<bool, InstallError> {
        let project = self.project.manifest().project.as_ref();
        let chosen = project.and_then(|project| project.harnesses.as_ref());
        let is_chosen = entrance.harness.is_none_or(|harness| {
            chosen.is_some_and(|chosen| chosen.iter().any(|name| name == harness))
        });
        if is_chosen {
            return Ok(true);
        }
        for other in &ENTRANCES {
            if self.link_to_entrance(other)? == Some(entrance.path) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Whether `entrance` is a link to another one, which is none, be it by way of a third.
    fn is_link_to_file(&self, entrance: &Entrance) -> Result<bool, InstallError> {
        let mut at = entrance;
        for step in 0..ENTRANCES.len() {
            let Some(target) = self.link_to_entrance(at)? else {
                return Ok(step > 0);
            };
            let mut all = ENTRANCES.iter();
            at = all
                .find(|other| other.path == target)
                .expect("it is one of them");
        }
        Ok(false)
    }

    /// The other entrance that `entrance` is a link to: one text for several agents.
    fn link_to_entrance(&self, entrance: &Entrance) -> Result<Option<&'static str>, InstallError> {
        let path = self.project.root.join(entrance.path);
        let is_link = stat_of(&path)?.is_some_and(|stat| stat.kind == EntryKind::Symlink);
        if !is_link {
            return Ok(None);
        }
        let target = vibe_fs::read_link(&path)?;
        let target = target.strip_prefix(".").unwrap_or(&target);
        let others = ENTRANCES.iter().map(|other| other.path);
        let mut others = others.filter(|other| *other != entrance.path);
        Ok(others.find(|other| target.as_os_str() == *other))
    }
}

fn index_content(shown: &[BootText]) -> Content {
    let mut listed = shown.iter().filter(|boot| !boot.is_static).peekable();
    match listed.peek() {
        None => Content::None,
        Some(_) => Content::Text(index_file(listed)),
    }
}

fn too_large(limit_bytes: u64) -> ProjectedFault {
    ProjectedFault::TooLarge {
        limit_mib: limit_bytes >> 20,
    }
}

fn own_path(path: &str) -> RelPath {
    RelPath::new(path).expect("the names of our own files are paths")
}

/// The bytes of the file at `path` in the project, which is reached through no link.
pub(crate) fn read_projected(
    project: &Project,
    path: &RelPath,
) -> Result<Option<Vec<u8>>, InstallError> {
    let fault = |path: &RelPath, fault| InstallError::ProjectedPath {
        path: path.under(&project.root),
        fault: Box::new(fault),
    };
    match path_guard(&project.root, path)? {
        Guard::Absent(_) => return Ok(None),
        Guard::Blocked { path, kind } => {
            let at = path.clone();
            return Err(fault(&at, ProjectedFault::Blocked { path, kind }));
        }
        Guard::Clear => {}
    }
    match read_if_exists(&path.under(&project.root), LOCK_BYTES) {
        Err(ReadError::NotAFile { kind, .. }) => {
            let at = path.clone();
            Err(fault(path, ProjectedFault::Blocked { path: at, kind }))
        }
        Err(ReadError::TooLarge { limit_bytes, .. }) => Err(fault(path, too_large(limit_bytes))),
        Err(ReadError::Fs(error)) => Err(error.into()),
        Ok(found) => Ok(found),
    }
}
