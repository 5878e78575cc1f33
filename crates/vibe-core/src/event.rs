//! x
/// x
pub enum Event {}
/// x
pub trait Observer {}
