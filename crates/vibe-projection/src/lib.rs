//! What of the installed packages an agent program gets to see, as edits to make: plain data in,
//! plain data out. Touches nothing.

pub mod block;
pub mod boot;
pub mod edits;
pub mod items;
