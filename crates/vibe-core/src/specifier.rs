//! What a user names on the command line: a SPEC.

use crate::identifier::PackageId;
use crate::version::Constraint;

/// A parsed SPEC.
#[derive(Debug, Clone, PartialEq)]
pub enum Specifier {
    /// `group/name[@constraint]`.
    Package {
        /// The id.
        id: PackageId,
        /// What follows `@`.
        constraint: Option<Constraint>,
    },
    /// `path:DIR`.
    Path(String),
    /// `github:owner/repo[#ref]` or a git URL.
    Git(String),
}
