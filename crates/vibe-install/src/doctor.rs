//! `vibe doctor`: what this machine, and the project if there is one, have to offer.
//!
//! Nothing is changed. What only a try can tell is tried in directories that are ours and there
//! already, and taken away again; the only programs that are started are asked for their version.

mod places;
mod project;
mod tools;

use serde::Serialize;
use vibe_core::formats::config::HookPolicy;
use vibe_core::formats::lock::Lock;
use vibe_fs::error::shown;

use crate::consent::gate_of;
use crate::error::InstallError;
use crate::project::Project;
use crate::settings::Context;

/// What the doctor found.
#[derive(Debug)]
pub struct DoctorReport {
    /// Every look, in order; those of a group follow each other.
    pub checks: Vec<Check>,
    /// Whether install hooks run.
    pub hook_policy: HookPolicy,
    /// Who asked for that, in words, where it is tighter than the default.
    pub hook_policy_set_by: Option<&'static str>,
}

/// One look at the environment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Check {
    /// What it belongs to: `vibe`, `project`, `store and cache` or `tools`.
    pub group: &'static str,
    /// What was looked at.
    pub name: &'static str,
    /// How it is.
    pub status: CheckStatus,
    /// What was found, escaped.
    pub found: String,
    /// What to do about it, where something is to be done.
    pub hint: Option<String>,
}

/// How something is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum CheckStatus {
    /// As it should be.
    Ok,
    /// It does not keep anything from working now.
    Warning,
    /// Commands fail because of it.
    Problem,
}

/// The looks at one group.
struct Group {
    name: &'static str,
    checks: Vec<Check>,
}

impl Group {
    fn new(name: &'static str) -> Self {
        Self {
            name,
            checks: Vec::new(),
        }
    }

    fn add(
        &mut self,
        name: &'static str,
        status: CheckStatus,
        found: impl Into<String>,
        hint: Option<String>,
    ) {
        self.checks.push(Check {
            group: self.name,
            name,
            status,
            found: found.into(),
            hint,
        });
    }

    fn ok(&mut self, name: &'static str, found: impl Into<String>) {
        self.add(name, CheckStatus::Ok, found, None);
    }

    fn warning(&mut self, name: &'static str, found: impl Into<String>, hint: impl Into<String>) {
        self.add(name, CheckStatus::Warning, found, Some(hint.into()));
    }

    fn problem(&mut self, name: &'static str, found: impl Into<String>, hint: impl Into<String>) {
        self.add(name, CheckStatus::Problem, found, Some(hint.into()));
    }
}

/// Looks at everything that commands depend on.
///
/// # Errors
/// None that a look could tell: only an interrupt.
pub fn doctor(context: &Context<'_>) -> Result<DoctorReport, InstallError> {
    let found = Project::find(&context.settings.start);
    let project = found.as_ref().ok().and_then(Option::as_ref);
    let lock = project.and_then(|project| project.read_lock().ok().flatten());
    let lock = lock.map(|found| found.lock).unwrap_or_default();
    let mut checks = vibe_checks(context);
    checks.extend(project::checks(context, &found));
    checks.extend(places::checks(context, project));
    checks.extend(tools::checks(context, &lock));
    if context.cancel.is_cancelled() {
        return Err(InstallError::Interrupted);
    }
    let gate = gate_of(context.settings, project);
    Ok(DoctorReport {
        checks,
        hook_policy: gate.policy,
        hook_policy_set_by: gate.set_by,
    })
}

fn vibe_checks(context: &Context<'_>) -> Vec<Check> {
    let mut group = Group::new("vibe");
    group.ok("version", context.settings.version);
    group.ok("executable", shown(&context.settings.executable));
    let system = format!("{} {}", std::env::consts::OS, std::env::consts::ARCH);
    group.ok("system", system);
    group.checks
}

/// Whether packages of `lock` have install hooks.
fn has_hooks(lock: &Lock) -> bool {
    lock.packages
        .iter()
        .any(|package| !package.install_hooks.is_empty())
}

/// `error` with its causes, in one line.
fn in_full(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let said = cause.to_string();
        if !text.ends_with(&said) {
            text.push_str(": ");
            text.push_str(&said);
        }
        next = cause.source();
    }
    text
}
