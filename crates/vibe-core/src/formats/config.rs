//! `config.toml`, the user's settings.

use crate::limits::PackageLimits;

/// The user's settings, each with its default.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct UserConfig {
    /// `[hooks] policy`.
    pub hook_policy: HookPolicy,
    /// `[hooks] pass-env`: more variables an install hook may see.
    pub pass_env: Vec<String>,
    /// `[hooks] timeout`, in seconds.
    pub hook_timeout_seconds: Option<u64>,
    /// `[limits]`.
    pub limits: PackageLimits,
}

/// Who consents to an install hook. Ordered from loose to strict.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum HookPolicy {
    /// Installing the package is the consent.
    #[default]
    InstallIsConsent,
    /// Ask first.
    Ask,
    /// Run none.
    Never,
}
