//! Whether install hooks may run here: who says so, taken together.

use vibe_plan::gate::{Gate, GateInputs, gate};

use crate::project::Project;
use crate::settings::{Settings, switches_on};

/// The consent gate of this run.
pub(crate) fn hook_gate(settings: &Settings, project: &Project) -> Gate {
    gate_of(settings, Some(project))
}

/// The consent gate in a project, or outside any.
pub(crate) fn gate_of(settings: &Settings, project: Option<&Project>) -> Gate {
    gate(GateInputs {
        user: settings.config.hook_policy,
        project: project.and_then(Project::install_hooks),
        environment_forbids: settings.variable("VIBE_NO_HOOKS").is_some_and(switches_on),
        flag_forbids: settings.no_hooks,
    })
}
