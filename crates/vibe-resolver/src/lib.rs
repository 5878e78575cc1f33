//! Version solving over an [`Index`](vibe_core::Index): one version per package, the highest that
//! satisfies, held versions kept as long as any solution keeps them. No solution is data: which
//! package, and every chain of requirers from the project, or a member of its workspace, to it.
//!
//! Nothing here reads an index, a file or a clock; the solver itself is the `pubgrub` crate.

mod cached;
mod error;
mod explain;
pub mod lock_check;
#[cfg(test)]
mod oracle;
mod provider;
mod request;
mod resolve;

pub use error::{Chain, Conflict, ResolveError, Step, nearest_id};
pub use request::{Request, Requirer};
pub use resolve::{Resolution, Resolved, resolve};
