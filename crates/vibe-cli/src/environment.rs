//! The state of the environment, as `vibe doctor` tells it.

use serde::Serialize;
use vibe_install::Check;

/// The state of the environment.
#[derive(Debug, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Environment {
    /// Every look, in order.
    pub(crate) checks: Vec<Check>,
    /// Every setting.
    pub(crate) settings: Vec<Setting>,
    /// How many problems there are.
    pub(crate) problems: usize,
    /// How many warnings.
    pub(crate) warnings: usize,
}

/// A setting and where it came from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) struct Setting {
    /// Its name.
    pub(crate) name: String,
    /// Its value, escaped.
    pub(crate) value: String,
    /// `flag`, `environment`, `project`, `config` or `default`.
    pub(crate) origin: &'static str,
    /// The option, the variable or the file that says so, escaped.
    pub(crate) from: Option<String>,
}
