//! Reading and writing the machine state.

use vibe_core::formats::diagnostic::Diagnostic;
use vibe_core::formats::state::MachineState;
use vibe_core::limits::RECORD_BYTES;
use vibe_fs::Durability;
use vibe_fs::error::shown;

use crate::error::SlotError;
use crate::layout::Layout;

/// The machine state; empty where there is no file.
///
/// # Errors
/// The file is a link or cannot be read, is malformed, or was written by a newer vibe.
pub fn load(layout: &Layout) -> Result<MachineState, SlotError> {
    let path = layout.slots_file();
    let Some(bytes) = vibe_fs::read_if_exists(&path, RECORD_BYTES)? else {
        return Ok(MachineState::default());
    };
    let refused = |source| SlotError::State {
        path: shown(&path),
        source: Box::new(source),
    };
    let text = String::from_utf8(bytes)
        .map_err(|_| refused(Diagnostic::new("the machine state is not UTF-8 text").into()))?;
    MachineState::parse(&text).map_err(refused)
}

/// Replaces the machine state. A state that gains an owed phase is written `Synced`.
///
/// # Errors
/// The file cannot be written.
pub fn save(
    layout: &Layout,
    state: &MachineState,
    durability: Durability,
) -> Result<(), SlotError> {
    vibe_fs::write_atomic(
        &layout.slots_file(),
        state.render().as_bytes(),
        &layout.staging(),
        durability,
    )?;
    Ok(())
}
