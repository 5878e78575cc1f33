//! Decides, from plain data, everything a run does to slots: what differs, which hooks are due,
//! in which order, and with whose consent. Touches nothing.

pub mod clone_plan;
pub mod diff;
pub mod gate;
pub mod lint;
pub mod order;
pub mod removal;
pub mod rerun;
pub mod selection;
pub mod slot_plan;

#[cfg(test)]
mod model;
#[cfg(test)]
mod testing;
