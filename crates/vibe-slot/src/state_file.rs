//! Reading and writing the machine state.

use vibe_core::formats::decode::decode;
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
    let text = decode(&bytes).map_err(|diagnostic| refused(diagnostic.into()))?;
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

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{Package, World};

    #[test]
    fn a_saved_state_is_loaded_again() {
        let world = World::new();
        assert_eq!(load(&world.layout).unwrap(), MachineState::default());
        let mut state = MachineState::default();
        let row = Package::new(&[("a", "1")]).row();
        state.slots.insert(world.slot.clone(), row);
        for durability in [Durability::Synced, Durability::Unsynced] {
            save(&world.layout, &state, durability).unwrap();
            assert_eq!(load(&world.layout).unwrap(), state);
        }
        assert!(world.staged().is_empty());
    }

    #[test]
    fn a_state_with_a_byte_order_mark_and_carriage_returns_is_read() {
        let world = World::new();
        let mut state = MachineState::default();
        let row = Package::new(&[("a", "1")]).row();
        state.slots.insert(world.slot.clone(), row);
        let text = format!("\u{feff}{}", state.render().replace('\n', "\r\n"));
        std::fs::write(world.layout.slots_file(), text).unwrap();
        assert_eq!(load(&world.layout).unwrap(), state);
    }

    #[test]
    fn a_state_that_cannot_be_used_is_named_with_the_way_out() {
        let world = World::new();
        for (bytes, cause) in [
            (b"schema = 99\n".as_slice(), "newer vibe"),
            (b"schema = ", "malformed"),
            (b"\xff", "malformed"),
        ] {
            std::fs::write(world.layout.slots_file(), bytes).unwrap();
            let error = load(&world.layout).unwrap_err();
            assert!(error.to_string().contains("if you remove it"), "{error}");
            let SlotError::State { source, .. } = error else {
                panic!("{error}");
            };
            assert!(source.to_string().contains(cause), "{source}");
        }
    }
}
