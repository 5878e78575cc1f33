//! The record of projected paths on disk, `vibedeps/.projections.toml`.

use vibe_core::formats::decode::decode;
use vibe_core::formats::projections::{
    PROJECTIONS_NAME, ProjectedPath, ProjectionForm, Projections, ProjectionsError,
};
use vibe_core::limits::LOCK_BYTES;
use vibe_core::{Event, RelPath, Sha256Digest};
use vibe_fs::{Durability, read_if_exists};
use vibe_projection::boot::ENTRANCES;
use vibe_projection::edits::shown_by_block;
use vibe_slot::Layout;
use vibe_slot::layout::VIBEDEPS;
use vibe_slot::redo::RedoFile;

use super::files::read_projected;
use crate::error::InstallError;
use crate::project::Project;
use crate::settings::Context;

/// The record of projected paths, with the digest of its bytes.
#[derive(Debug, Clone, Default)]
pub(crate) struct ProjectionsFile {
    pub projections: Projections,
    pub digest: Option<Sha256Digest>,
}

/// The switch of the record, where it changes.
pub(super) fn record_file(known: &ProjectionsFile, after: &Projections) -> Option<RedoFile> {
    let after = (!after.paths.is_empty()).then(|| after.render());
    let digest = after.as_ref().map(|text| Sha256Digest::of(text.as_bytes()));
    (digest != known.digest).then(|| RedoFile {
        path: record_path(),
        before: known.digest,
        after,
    })
}

pub(super) fn record_path() -> RelPath {
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
