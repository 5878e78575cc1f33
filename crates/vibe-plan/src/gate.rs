//! The consent gate: may an install hook run?
//!
//! Installing a package is the consent to run its declared scripts. Everyone else can only tighten
//! that, and the strictest word counts.

use vibe_core::formats::config::HookPolicy;
use vibe_core::formats::manifest::HookTightening;
use vibe_core::plan::HookDecision;

/// What each party says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GateInputs {
    /// The user's config.
    pub user: HookPolicy,
    /// The project's manifest.
    pub project: Option<HookTightening>,
    /// `VIBE_NO_HOOKS` is set.
    pub environment_forbids: bool,
    /// `--no-hooks` was given.
    pub flag_forbids: bool,
}

/// A policy and who set it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gate {
    /// The strictest policy.
    pub policy: HookPolicy,
    /// Who asked for it, in words, where it is tighter than the default.
    pub set_by: Option<&'static str>,
}

/// The strictest of all.
pub fn gate(inputs: GateInputs) -> Gate {
    let project = match inputs.project {
        None => HookPolicy::InstallIsConsent,
        Some(HookTightening::Ask) => HookPolicy::Ask,
        Some(HookTightening::Never) => HookPolicy::Never,
    };
    let forbidden = |set: bool| {
        if set {
            HookPolicy::Never
        } else {
            HookPolicy::InstallIsConsent
        }
    };
    let parties = [
        (forbidden(inputs.flag_forbids), "--no-hooks"),
        (forbidden(inputs.environment_forbids), "VIBE_NO_HOOKS"),
        (project, "`install-hooks` in vibe.toml"),
        (inputs.user, "`[hooks] policy` in config.toml"),
    ];
    let mut gate = Gate {
        policy: HookPolicy::InstallIsConsent,
        set_by: None,
    };
    for (policy, set_by) in parties {
        if policy > gate.policy {
            gate = Gate {
                policy,
                set_by: Some(set_by),
            };
        }
    }
    gate
}

impl Gate {
    /// The decision for a script declared by an installed package.
    pub fn decision(&self) -> HookDecision {
        match self.policy {
            HookPolicy::InstallIsConsent => HookDecision::Run,
            HookPolicy::Ask => HookDecision::Ask,
            HookPolicy::Never => HookDecision::Held,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn installing_is_consent_unless_somebody_tightens() {
        let open = GateInputs::default();
        assert_eq!(gate(open).decision(), HookDecision::Run);
        assert_eq!(gate(open).set_by, None);
        let cases = [
            (
                GateInputs {
                    flag_forbids: true,
                    ..open
                },
                HookDecision::Held,
                "--no-hooks",
            ),
            (
                GateInputs {
                    environment_forbids: true,
                    ..open
                },
                HookDecision::Held,
                "VIBE_NO_HOOKS",
            ),
            (
                GateInputs {
                    project: Some(HookTightening::Never),
                    ..open
                },
                HookDecision::Held,
                "`install-hooks` in vibe.toml",
            ),
            (
                GateInputs {
                    project: Some(HookTightening::Ask),
                    ..open
                },
                HookDecision::Ask,
                "`install-hooks` in vibe.toml",
            ),
            (
                GateInputs {
                    user: HookPolicy::Ask,
                    ..open
                },
                HookDecision::Ask,
                "`[hooks] policy` in config.toml",
            ),
        ];
        for (inputs, decision, set_by) in cases {
            assert_eq!(gate(inputs).decision(), decision);
            assert_eq!(gate(inputs).set_by, Some(set_by));
        }
    }

    #[test]
    fn the_strictest_counts_whoever_says_it() {
        let inputs = GateInputs {
            user: HookPolicy::Never,
            project: Some(HookTightening::Ask),
            ..GateInputs::default()
        };
        assert_eq!(gate(inputs).decision(), HookDecision::Held);
        assert_eq!(gate(inputs).set_by, Some("`[hooks] policy` in config.toml"));
        let inputs = GateInputs {
            user: HookPolicy::Ask,
            flag_forbids: true,
            ..inputs
        };
        assert_eq!(gate(inputs).set_by, Some("--no-hooks"));
    }
}
