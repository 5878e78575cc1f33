//! Every bound on what vibe accepts from outside, in one place, each with its reason.

/// Bytes of one group or one name: two of them and a dot fit one file name everywhere.
pub const IDENTIFIER_BYTES: usize = 64;
/// Bytes of a version's text, so that a slot's directory name stays portable.
pub const VERSION_BYTES: usize = 128;
/// Bytes of a whole path inside a package.
pub const PATH_BYTES: usize = 1_024;
/// Bytes of one path component: the file name limit of the common file systems.
pub const COMPONENT_BYTES: usize = 255;
/// Components of a path inside a package.
pub const PATH_DEPTH: usize = 64;
/// Bytes of a `vibe.toml` or `config.toml`: read whole and parsed with positions.
pub const MANIFEST_BYTES: u64 = 1 << 20;
/// Bytes of `vibe.lock`, `.projections.toml` and the redo file's parts.
pub const LOCK_BYTES: u64 = 32 << 20;
/// Bytes of a slot record, a `.tree` file or the machine state: 200,000 rows fit.
pub const RECORD_BYTES: u64 = 256 << 20;
/// Bytes of one package's boot text: an agent reads all of it in every session.
pub const BOOT_BYTES: u64 = 1 << 20;
/// Members of one workspace: every run reads the manifest of each.
pub const WORKSPACE_MEMBERS: usize = 10_000;
/// Entries of directories that are looked at for the members of a workspace: a pattern like `**` may
/// not walk a whole disk.
pub const WORKSPACE_ENTRIES: usize = 100_000;
/// Nesting of arrays and tables in a manifest, so that no parser recurses without end.
pub const NESTING_DEPTH: usize = 64;
/// Bytes of all files of one package (the default; configurable).
pub const PACKAGE_BYTES: u64 = 10 << 30;
/// Entries of one package (the default; configurable).
pub const PACKAGE_ENTRIES: usize = 200_000;
/// Bytes of one file of a package (the default; configurable).
pub const FILE_BYTES: u64 = 1 << 30;
/// Bytes kept at each end of an install hook's log.
pub const HOOK_LOG_END_BYTES: usize = 5 << 20;
/// Bytes of output shown again when an install hook failed.
pub const HOOK_TAIL_BYTES: usize = 64 << 10;
/// Seconds an install hook may run (the default; configurable).
pub const HOOK_TIMEOUT_SECONDS: u64 = 600;
/// Seconds between TERM and KILL.
pub const HOOK_TERMINATE_SECONDS: u64 = 5;
/// Seconds we wait for the pipes after the main process of a hook has ended.
pub const HOOK_PIPE_SECONDS: u64 = 2;
/// Runs whose evidence is kept.
pub const RUNS_KEPT: usize = 50;

/// The bounds on a package tree that the user's config may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PackageLimits {
    /// Bytes of all files together.
    pub package_bytes: u64,
    /// Files of the package.
    pub package_entries: usize,
    /// Bytes of one file.
    pub file_bytes: u64,
}

impl Default for PackageLimits {
    fn default() -> Self {
        Self {
            package_bytes: PACKAGE_BYTES,
            package_entries: PACKAGE_ENTRIES,
            file_bytes: FILE_BYTES,
        }
    }
}
