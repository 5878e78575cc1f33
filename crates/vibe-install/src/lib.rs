//! The phases of a run, in order: read, resolve, fetch, plan, place, hooks, commit, prune.
//!
//! Everything above this crate talks to people; everything below touches one part of the world.
//! Here those parts are put in order, and what happened comes back as data.

mod additions;
mod cache;
mod check;
mod clone_execution;
mod clones;
mod commit;
mod consent;
mod doctor;
mod error;
mod evidence;
mod execution;
mod fetch;
mod freshness;
mod git_sources;
mod hook_phase;
mod hooks_run;
mod init;
mod inspect;
mod install;
mod interpreters;
mod item_list;
mod look;
mod manifests;
mod moves;
mod oddities;
mod opening;
mod outdated;
mod overrides;
mod own_manifest;
mod package_store;
mod pipeline;
mod planning;
mod project;
mod projection;
mod publish;
mod repair;
mod report;
mod repositories;
mod resolution;
mod run_record;
mod session;
mod settings;
mod show;
mod slots;
mod sources;
mod summary;
mod target;
mod tree;
mod uninstall;
mod unsolved;
mod update;
mod verify;
mod verify_projections;
mod why;
pub mod wording;
mod workspace;

pub use additions::{Additions, GitAddition};
pub use cache::{
    CacheFault, CacheListing, CachePaths, CacheRemovalReport, CacheVerification,
    CachedGitRepository, CachedTree, DamagedCacheTree, cache_clean, cache_gc, cache_list,
    cache_path, cache_verify,
};
pub use check::{CheckReport, check};
pub use doctor::{Check, CheckStatus, DoctorReport, doctor};
pub use error::{InstallError, ProjectedFault};
pub use hooks_run::{HookRunRequest, hooks_run};
pub use init::{InitKind, InitReport, init};
pub use inspect::{hooks_list, hooks_log, runs_list, runs_show};
pub use install::{InstallRequest, install};
pub use item_list::{ItemSummary, items};
pub use look::{RequirementSummary, list};
pub use moves::{HookChange, HookChangeKind, LockedPoint, PackageMove};
pub use outdated::{OutdatedReport, OutdatedRequest, OutdatedRow, outdated};
pub use publish::{PublishOutcome, PublishReport, PublishRequest, PublishingError, publish};
pub use repair::{RepairRequest, repair};
pub use report::{
    Finding, FindingKind, HookLog, HookStatus, PackageSummary, PhaseSummary, RunReport,
    ScriptSummary, VerifyReport,
};
pub use repositories::token_variable;
pub use run_record::{HookOutcome, HookRecord, RunRecord};
pub use settings::{Context, Nobody, Questions, Settings, WantedLinkMode, limit_jobs};
pub use show::{BootSummary, DeclaredHook, ShowReport, show};
pub use tree::{TreeReport, TreeRequest, TreeRoot, tree};
pub use uninstall::{UninstallRequest, uninstall};
pub use unsolved::{Asked, PassedOver, Trouble, Unsolved};
pub use update::{UpdateRequest, update};
pub use verify::verify;
pub use vibe_fetch::{FetchError, PublishError};
pub use vibe_fs::{EntryKind, FsError, ReadError};
pub use vibe_git::{CacheError, GitError};
pub use vibe_hooks::SystemRunner;
pub use vibe_hooks::output::sanitize_line;
pub use vibe_plan::clone_plan::Guard;
pub use vibe_plan::lint::{LintFinding, Severity};
pub use vibe_projection::block::{BEGIN as BLOCK_BEGIN, END as BLOCK_END};
pub use vibe_projection::edits::EditError;
pub use vibe_slot::SlotError;
pub use vibe_store::{Damage, StoreError};
pub use why::{WhyReport, why};
pub use workspace::WorkspaceError;
