//! One in-place package's part of the place plan.
//!
//! The payload of a clone is its commit's tree. What a run changes of it is what differs between
//! the trees of two commits, or, where the files themselves are looked at, what they differ by.
//! Nothing is asked of a work tree that looks as the last run and its hooks left it, or as a run
//! that was cut short left it: both are our own doing. Everything else in it is somebody's work,
//! and a step that would destroy it meets a [`Guard`].

use std::collections::BTreeMap;

use vibe_core::SlotName;
use vibe_core::formats::state::{CloneState, CloneStatus};
use vibe_core::hook::{HookReason, Phase, PhaseState, SelectedHook};
use vibe_core::plan::{
    CheckOut, Extent, HookDecision, KeepClone, RemoveClone, RunHook, SlotReason, Step,
};

use crate::rerun;

/// What an in-place slot shall be.
#[derive(Debug, Clone)]
pub struct DesiredClone<'a> {
    /// The slot.
    pub slot: SlotName,
    /// The commit.
    pub commit: &'a str,
    /// The declared hooks, selected for this operating system. May be empty although hooks are
    /// declared where the slot is [`FoundClone::Remembered`].
    pub hooks: &'a [SelectedHook],
    /// Whether the lock named the package before.
    pub was_locked: bool,
    /// The commit that the lock named before, if it named this slot.
    pub locked_commit: Option<&'a str>,
    /// The version that the lock named before, if it is another.
    pub previous: Option<String>,
}

/// What is there.
#[derive(Debug, Clone, Copy)]
pub enum FoundClone<'a> {
    /// No directory.
    Absent,
    /// `HEAD` is where the row says, and the row is settled at the commit: nobody looked further.
    Remembered,
    /// Looked at.
    Looked(&'a LookedClone),
}

/// What a look at a clone found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LookedClone {
    /// The commit at which its `HEAD` is detached.
    pub head: Option<String>,
    /// The commit that its files were compared with: that of its row, else its `HEAD`. `None`: it
    /// has neither, or that commit is nowhere to be had; they were compared with the desired one.
    pub base: Option<String>,
    /// How many payload paths differ between that commit and the desired one.
    pub differing: usize,
    /// Tracked files that differ from the base: what they look like, how many, the first ones.
    pub edits: Differing,
    /// What is there besides.
    pub additions: Differing,
    /// It has commits that somebody made here.
    pub local_commits: bool,
    /// Its `.git` is as vibe makes one, give or take what git adds when it is used.
    pub is_plain: bool,
}

/// Differences of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Differing {
    /// What they look like.
    pub digest: vibe_core::Sha256Digest,
    /// How many.
    pub count: usize,
    /// The first of them, escaped for showing.
    pub paths: Vec<String>,
}

/// What holds for every clone of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CloneOptions {
    /// What the gate says of scripts.
    pub decision: HookDecision,
    /// Drift is put right, which is the consent for tracked files.
    pub repair: bool,
    /// Put back what hooks changed, too.
    pub force: bool,
    /// The boot under which clones are checked out, if the system tells.
    pub boot: Option<String>,
}

/// One clone's part of the plan.
#[derive(Debug, Clone, PartialEq)]
pub struct ClonePlan {
    /// Check out or keep.
    pub step: Step,
    /// Its phases that are due, run or held.
    pub hooks: Vec<RunHook>,
    /// What has to be agreed to before the step.
    pub guard: Option<Guard>,
}

/// Work of somebody's that a step destroys.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guard {
    /// The slot.
    pub slot: SlotName,
    /// There are commits that are nowhere else.
    pub local_commits: bool,
    /// The paths, escaped for showing, edited files first. The first of them, if there are many.
    pub paths: Vec<String>,
    /// How many paths.
    pub count: usize,
}

/// Plans one in-place slot.
pub fn plan_in_place(
    desired: &DesiredClone<'_>,
    found: FoundClone<'_>,
    row: Option<&CloneState>,
    options: &CloneOptions,
) -> ClonePlan {
    match found {
        FoundClone::Absent => make(desired, row, options),
        FoundClone::Remembered => keep(desired, None, row, options),
        FoundClone::Looked(looked) => looked_at(desired, looked, row, options),
    }
}

/// Plans the removal of an in-place slot that nothing needs, or that gives way to another source.
pub fn plan_clone_removal(
    slot: &SlotName,
    looked: &LookedClone,
    row: Option<&CloneState>,
) -> (RemoveClone, Option<Guard>) {
    let guard = Destroyed {
        local_commits: looked.local_commits,
        edits: true,
        additions: true,
    };
    let step = RemoveClone { slot: slot.clone() };
    (step, guard.guard(slot, looked, row))
}

fn declared(desired: &DesiredClone<'_>) -> Vec<Phase> {
    desired.hooks.iter().map(|hook| hook.phase).collect()
}

fn make(desired: &DesiredClone<'_>, row: Option<&CloneState>, options: &CloneOptions) -> ClonePlan {
    let ran_here = row.is_some_and(|row| row.phases.values().any(|s| *s == PhaseState::Done));
    let (because, reason) = match (&desired.previous, desired.was_locked) {
        (Some(from), _) => (
            SlotReason::Version { from: from.clone() },
            HookReason::Update,
        ),
        (None, true) if ran_here => (SlotReason::Missing, HookReason::Repair),
        (None, true) => (SlotReason::Missing, HookReason::Install),
        (None, false) => (SlotReason::New, HookReason::Install),
    };
    let phases = rerun::phases(&declared(desired), None, true, options.decision);
    check_out(desired, Extent::All, because, reason, phases, None, options)
}

fn keep(
    desired: &DesiredClone<'_>,
    looked: Option<&LookedClone>,
    row: Option<&CloneState>,
    options: &CloneOptions,
) -> ClonePlan {
    let known = row.map(|row| &row.phases);
    let mut phases = rerun::phases(&declared(desired), known, false, options.decision);
    let reason = row.map_or(HookReason::Install, |row| row.reason);
    if let Some(row) = row.filter(|_| looked.is_none() && desired.hooks.is_empty()) {
        // The manifest was not read, since nothing is due.
        phases = row.phases.clone();
    }
    let because = known.map_or(reason, |known| rerun::settled(reason, known));
    let hooks = due(desired, &phases, because, options);
    let is_due = phases.values().any(|state| *state == PhaseState::Owed);
    let seen = match row {
        // What lies in a clone that is adopted is nobody's doing but the user's.
        None => Some(CloneStatus::clean()),
        // What a killed run left is looked at again once what it owes is done.
        Some(row) if is_due => row.seen,
        Some(row) => row.seen.or(looked.map(LookedClone::status)),
    };
    let new = CloneState {
        commit: desired.commit.to_owned(),
        phases,
        reason,
        previous_version: row.and_then(|row| row.previous_version.clone()),
        seen,
        boot: match looked {
            Some(_) => options.boot.clone(),
            None => row.and_then(|row| row.boot.clone()),
        },
        running: row.and_then(|row| row.running.clone()),
    };
    let step = Step::KeepClone(KeepClone {
        slot: desired.slot.clone(),
        commit: desired.commit.to_owned(),
        row: (row != Some(&new)).then_some(new),
    });
    ClonePlan {
        step,
        hooks,
        guard: None,
    }
}

fn looked_at(
    desired: &DesiredClone<'_>,
    looked: &LookedClone,
    row: Option<&CloneState>,
    options: &CloneOptions,
) -> ClonePlan {
    let change = Change::of(desired, looked, row, options);
    let known = row.map(|row| &row.phases);
    let phases = rerun::phases(
        &declared(desired),
        known,
        change.is_payload(),
        options.decision,
    );
    let runs = options.decision == HookDecision::Run;
    let owed = |phase| phases.get(&phase) == Some(&PhaseState::Owed);
    let all_owed = !phases.is_empty() && phases.values().all(|state| *state == PhaseState::Owed);
    let starts_over = runs && (owed(Phase::PreInstall) || all_owed);
    let differs = !looked.is_clean() && !looked.as_remembered(row);
    let extent = match &change {
        Change::Commit | Change::Unfinished | Change::Unknown => Some(Extent::All),
        // An adopted clone is clean; one whose hooks start over is made so.
        _ if starts_over && (differs || row.is_some()) => Some(Extent::All),
        Change::Files if phases.is_empty() => Some(Extent::Tracked),
        Change::Files => Some(Extent::All),
        Change::Repository => Some(Extent::Repository),
        Change::None => None,
    };
    let Some(extent) = extent else {
        return keep(desired, Some(looked), row, options);
    };
    let guard = Destroyed {
        local_commits: looked.local_commits,
        edits: extent >= Extent::Tracked && !options.repair,
        additions: extent == Extent::All,
    }
    .guard(&desired.slot, looked, row);
    let (because, reason) = change.reasons(desired, looked, row, options);
    let mut plan = check_out(desired, extent, because, reason, phases, row, options);
    plan.guard = guard;
    if let Step::CheckOut(step) = &mut plan.step {
        let locked = desired
            .locked_commit
            .filter(|commit| *commit != desired.commit);
        step.back_to = locked.map(str::to_owned);
    }
    plan
}

/// What is wrong with a clone that was looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Change {
    /// Nothing.
    None,
    /// Only its repository: `HEAD`, or what is in `.git`.
    Repository,
    /// Files are not as they were left, and that is to be put right.
    Files,
    /// It shows a commit with other payload.
    Commit,
    /// A run was cut short before it showed the commit.
    Unfinished,
    /// What it shows cannot be told.
    Unknown,
}

impl Change {
    fn of(
        desired: &DesiredClone<'_>,
        looked: &LookedClone,
        row: Option<&CloneState>,
        options: &CloneOptions,
    ) -> Self {
        let is_at = |commit: &Option<String>| commit.as_deref() == Some(desired.commit);
        let is_unfinished = row.is_some_and(|row| row.seen.is_none());
        if looked.base.is_none() {
            return Self::Unknown;
        }
        if looked.differing > 0 {
            return Self::Commit;
        }
        if is_unfinished && !is_at(&looked.head) {
            return Self::Unfinished;
        }
        // Elsewhere than at the locked commit files are put right by every command, as they are
        // where the commit moved; at it, that is what repair is for.
        let matters =
            options.repair || row.is_none() || (is_at(&looked.base) && !is_at(&looked.head));
        let drifted = !looked.edits_are_remembered(row) && looked.edits.count > 0;
        let reset = options.force && options.repair && looked.edits.count > 0;
        if (matters && drifted && !is_unfinished) || reset {
            return Self::Files;
        }
        let is_broken = options.repair && !looked.is_plain;
        match !is_at(&looked.head) || !is_at(&looked.base) || is_broken {
            true => Self::Repository,
            false => Self::None,
        }
    }

    /// Whether payload changes.
    fn is_payload(self) -> bool {
        match self {
            Self::None | Self::Repository => false,
            // What was owed stands in the row already.
            Self::Unfinished => false,
            Self::Files | Self::Commit | Self::Unknown => true,
        }
    }

    fn reasons(
        self,
        desired: &DesiredClone<'_>,
        looked: &LookedClone,
        row: Option<&CloneState>,
        options: &CloneOptions,
    ) -> (SlotReason, HookReason) {
        let files = looked.edits.count;
        let known = row.map_or(HookReason::Install, |row| row.reason);
        match self {
            Self::Commit => match &desired.previous {
                Some(from) => (
                    SlotReason::Version { from: from.clone() },
                    HookReason::Update,
                ),
                None => (SlotReason::Content, HookReason::Update),
            },
            Self::Files if looked.edits_are_remembered(row) && options.force => {
                (SlotReason::Forced, HookReason::Repair)
            }
            Self::Files if row.is_none() => (SlotReason::Drift { files }, HookReason::Install),
            Self::Files => (SlotReason::Drift { files }, HookReason::Repair),
            Self::Unknown => (SlotReason::Repository, known),
            Self::Unfinished => (SlotReason::Content, known),
            Self::Repository => (SlotReason::Repository, known),
            Self::None => (SlotReason::Hooks, known),
        }
    }
}

impl LookedClone {
    /// How it looks, to be remembered.
    pub fn status(&self) -> CloneStatus {
        CloneStatus {
            edits: self.edits.digest,
            additions: self.additions.digest,
        }
    }

    fn is_clean(&self) -> bool {
        self.edits.count == 0 && self.additions.count == 0
    }

    fn remembered(&self, row: Option<&CloneState>) -> CloneStatus {
        let of_base = row.filter(|row| Some(&row.commit) == self.base.as_ref());
        of_base
            .and_then(|row| row.seen)
            .unwrap_or_else(CloneStatus::clean)
    }

    fn as_remembered(&self, row: Option<&CloneState>) -> bool {
        self.status() == self.remembered(row)
    }

    fn edits_are_remembered(&self, row: Option<&CloneState>) -> bool {
        self.edits.digest == self.remembered(row).edits
    }

    fn additions_are_remembered(&self, row: Option<&CloneState>) -> bool {
        self.additions.digest == self.remembered(row).additions
    }
}

/// What a step takes away, should it be there.
struct Destroyed {
    local_commits: bool,
    edits: bool,
    additions: bool,
}

impl Destroyed {
    fn guard(
        &self,
        slot: &SlotName,
        looked: &LookedClone,
        row: Option<&CloneState>,
    ) -> Option<Guard> {
        // From before the first change of a run until its end all is that run's doing, agreed to.
        let is_ours = row.is_some_and(|row| row.seen.is_none());
        let edits = self.edits && !is_ours && !looked.edits_are_remembered(row);
        let additions = self.additions && !is_ours && !looked.additions_are_remembered(row);
        let of = |is_met: bool, differing: &Differing| match is_met {
            true => (differing.count, differing.paths.clone()),
            false => (0, Vec::new()),
        };
        let (edited, mut paths) = of(edits, &looked.edits);
        let (added, more) = of(additions, &looked.additions);
        paths.extend(more);
        let count = edited + added;
        (self.local_commits || count > 0).then(|| Guard {
            slot: slot.clone(),
            local_commits: self.local_commits,
            paths,
            count,
        })
    }
}

fn check_out(
    desired: &DesiredClone<'_>,
    extent: Extent,
    because: SlotReason,
    reason: HookReason,
    phases: BTreeMap<Phase, PhaseState>,
    before: Option<&CloneState>,
    options: &CloneOptions,
) -> ClonePlan {
    let due_because = match before {
        Some(before) if extent == Extent::Repository || before.phases == phases => {
            rerun::settled(reason, &before.phases)
        }
        _ => reason,
    };
    let hooks = due(desired, &phases, due_because, options);
    // Files stay as they are, and with them what is known of them.
    let untouched = before.filter(|_| extent == Extent::Repository);
    let row = CloneState {
        commit: desired.commit.to_owned(),
        phases,
        reason,
        previous_version: desired
            .previous
            .clone()
            .or_else(|| before.and_then(|before| before.previous_version.clone())),
        seen: untouched.and_then(|before| before.seen),
        boot: options.boot.clone(),
        running: None,
    };
    let step = Step::CheckOut(CheckOut {
        slot: desired.slot.clone(),
        commit: desired.commit.to_owned(),
        extent,
        because,
        back_to: None,
        row,
    });
    ClonePlan {
        step,
        hooks,
        guard: None,
    }
}

fn due(
    desired: &DesiredClone<'_>,
    phases: &BTreeMap<Phase, PhaseState>,
    because: HookReason,
    options: &CloneOptions,
) -> Vec<RunHook> {
    rerun::due_hooks(
        &desired.slot,
        desired.hooks,
        phases,
        because,
        options.decision,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{digest, hook};
    use Phase::{PostInstall, PreInstall};
    use PhaseState::{Done, Owed, Skipped};

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
    type Phases<'a> = &'a [(Phase, PhaseState)];
    const DONE: Phases<'static> = &[(PreInstall, Done), (PostInstall, Done)];
    const OWED: Phases<'static> = &[(PreInstall, Owed), (PostInstall, Owed)];
    const POST_OWED: Phases<'static> = &[(PreInstall, Done), (PostInstall, Owed)];

    fn slot() -> SlotName {
        SlotName::in_place(&"g/p".parse().unwrap())
    }

    fn row(commit: &str, phases: Phases<'_>) -> CloneState {
        CloneState {
            commit: commit.to_owned(),
            phases: phases.iter().copied().collect(),
            reason: HookReason::Install,
            previous_version: None,
            seen: Some(CloneStatus::clean()),
            boot: Some("boot".to_owned()),
            running: None,
        }
    }

    /// So many differences, with content `look`.
    fn differing(look: &str, count: usize) -> Differing {
        let text = if count == 0 { "" } else { look };
        Differing {
            digest: digest(text),
            count,
            paths: (0..count).map(|number| format!("{look}{number}")).collect(),
        }
    }

    /// A package at commit A, all well unless said otherwise.
    #[derive(Clone)]
    struct Case<'a> {
        declared: &'a [Phase],
        commit: &'a str,
        row: Option<CloneState>,
        head: Option<&'a str>,
        base: Option<&'a str>,
        differing: usize,
        edits: Differing,
        additions: Differing,
        local_commits: bool,
        is_plain: bool,
        decision: HookDecision,
        repair: bool,
        force: bool,
        locked: Option<&'a str>,
    }

    fn intact() -> Case<'static> {
        Case {
            declared: &Phase::ALL,
            commit: A,
            row: Some(row(A, DONE)),
            head: Some(A),
            base: Some(A),
            differing: 0,
            edits: differing("e", 0),
            additions: differing("n", 0),
            local_commits: false,
            is_plain: true,
            decision: HookDecision::Run,
            repair: false,
            force: false,
            locked: Some(A),
        }
    }

    /// Commit B is wanted, with other payload.
    fn update() -> Case<'static> {
        Case {
            commit: B,
            differing: 3,
            ..intact()
        }
    }

    fn plan(case: &Case<'_>, found: &dyn Fn(&LookedClone) -> ClonePlan) -> ClonePlan {
        found(&LookedClone {
            head: case.head.map(str::to_owned),
            base: case.base.map(str::to_owned),
            differing: case.differing,
            edits: case.edits.clone(),
            additions: case.additions.clone(),
            local_commits: case.local_commits,
            is_plain: case.is_plain,
        })
    }

    fn planned(case: &Case<'_>) -> ClonePlan {
        let hooks: Vec<SelectedHook> = case.declared.iter().map(|phase| hook(*phase)).collect();
        let desired = DesiredClone {
            slot: slot(),
            commit: case.commit,
            hooks: &hooks,
            was_locked: case.locked.is_some(),
            locked_commit: case.locked,
            previous: None,
        };
        let options = CloneOptions {
            decision: case.decision,
            repair: case.repair,
            force: case.force,
            boot: Some("boot".to_owned()),
        };
        plan(case, &|looked| {
            let found = FoundClone::Looked(looked);
            plan_in_place(&desired, found, case.row.as_ref(), &options)
        })
    }

    /// The plan in words: what is done and why, the hooks, and how many paths are guarded, `!` with
    /// commits.
    fn words(plan: &ClonePlan) -> String {
        let mut words = match &plan.step {
            Step::KeepClone(step) => match &step.row {
                Some(_) => "keep, row".to_owned(),
                None => "keep".to_owned(),
            },
            Step::CheckOut(step) => {
                let because = match &step.because {
                    SlotReason::Drift { files } => format!("Drift {files}"),
                    because => format!("{because:?}"),
                };
                format!("{:?}: {because}", step.extent)
            }
            step => format!("{step:?}"),
        };
        for hook in &plan.hooks {
            words += &format!(", {} {}", hook.phase, hook.because.as_str());
        }
        if let Some(guard) = &plan.guard {
            let commits = if guard.local_commits { "!" } else { "" };
            words += &format!(", guard {}{commits}", guard.count);
        }
        words
    }

    fn check(case: Case<'_>, expected: &str) -> ClonePlan {
        let plan = planned(&case);
        assert_eq!(words(&plan), expected);
        plan
    }

    const ALL_INSTALL: &str = "pre-install install, post-install install";

    #[test]
    fn an_intact_clone_is_kept() {
        check(intact(), "keep");
        let hooks_made = CloneStatus {
            edits: digest("e"),
            additions: digest("n"),
        };
        let as_left = Case {
            row: Some(CloneState {
                seen: Some(hooks_made),
                ..row(A, DONE)
            }),
            edits: differing("e", 1),
            additions: differing("n", 2),
            ..intact()
        };
        check(as_left.clone(), "keep");
        let repaired = Case {
            repair: true,
            ..as_left.clone()
        };
        check(repaired, "keep");
        let forced = Case {
            repair: true,
            force: true,
            ..as_left
        };
        check(
            forced,
            "All: Forced, pre-install repair, post-install repair",
        );
    }

    #[test]
    fn a_new_commit_with_other_payload_owes_all_hooks_and_clears_everything() {
        let expected = "All: Content, pre-install update, post-install update";
        let plan = check(update(), expected);
        let Step::CheckOut(step) = plan.step else {
            panic!("{:?}", plan.step)
        };
        assert_eq!(step.back_to.as_deref(), Some(A));
        assert_eq!((step.row.commit.as_str(), step.row.seen), (B, None));
        assert!(step.row.phases.values().all(|state| *state == Owed));
        let towards_the_lock = Case {
            locked: Some(B),
            ..update()
        };
        let plan = planned(&towards_the_lock);
        assert!(matches!(
            plan.step,
            Step::CheckOut(CheckOut { back_to: None, .. })
        ));
        let plain = Case {
            declared: &[],
            row: Some(row(A, &[])),
            ..update()
        };
        check(plain, "All: Content");
    }

    #[test]
    fn a_new_commit_with_the_same_payload_moves_head_alone() {
        let case = Case {
            commit: B,
            edits: differing("e", 1),
            ..intact()
        };
        let plan = check(case.clone(), "Repository: Repository");
        let Step::CheckOut(step) = plan.step else {
            panic!("{:?}", plan.step)
        };
        assert_eq!(step.row.seen, Some(CloneStatus::clean()));
        let with_work = Case {
            local_commits: true,
            ..case
        };
        check(with_work, "Repository: Repository, guard 0!");
    }

    #[test]
    fn what_a_destructive_step_takes_is_guarded() {
        let hooks = ", pre-install update, post-install update";
        let edited = Case {
            edits: differing("e", 2),
            ..update()
        };
        check(edited.clone(), &format!("All: Content{hooks}, guard 2"));
        let both = Case {
            additions: differing("n", 1),
            local_commits: true,
            ..edited
        };
        let plan = check(both, &format!("All: Content{hooks}, guard 3!"));
        assert_eq!(plan.guard.unwrap().paths, ["e0", "e1", "n0"]);
        let by_hooks = Case {
            additions: differing("n", 1),
            row: Some(CloneState {
                seen: Some(CloneStatus {
                    additions: digest("n"),
                    ..CloneStatus::clean()
                }),
                ..row(A, DONE)
            }),
            ..update()
        };
        check(by_hooks, &format!("All: Content{hooks}"));
    }

    #[test]
    fn what_a_killed_run_left_is_its_own_doing() {
        let hooks = "pre-install retry, post-install retry";
        let unfinished = Case {
            row: Some(CloneState {
                seen: None,
                ..row(B, OWED)
            }),
            commit: B,
            base: Some(B),
            edits: differing("e", 9),
            additions: differing("n", 9),
            ..intact()
        };
        check(unfinished.clone(), &format!("All: Content, {hooks}"));
        let in_a_hook = Case {
            head: Some(B),
            ..unfinished.clone()
        };
        check(in_a_hook, &format!("All: Hooks, {hooks}"));
        let in_post_install = Case {
            head: Some(B),
            row: Some(CloneState {
                seen: None,
                ..row(B, POST_OWED)
            }),
            ..unfinished.clone()
        };
        check(in_post_install, "keep, post-install retry");
        let without_hooks = Case {
            head: Some(B),
            declared: &[],
            row: Some(CloneState {
                seen: None,
                ..row(B, &[])
            }),
            ..unfinished.clone()
        };
        check(without_hooks, "keep, row");
        let with_commits = Case {
            local_commits: true,
            ..unfinished
        };
        check(with_commits, &format!("All: Content, {hooks}, guard 0!"));
    }

    #[test]
    fn drift_is_put_right_by_repair_alone() {
        let edited = Case {
            edits: differing("e", 2),
            ..intact()
        };
        check(edited.clone(), "keep");
        let repair = Case {
            repair: true,
            ..edited
        };
        let hooks = "pre-install repair, post-install repair";
        check(repair.clone(), &format!("All: Drift 2, {hooks}"));
        let with_additions = Case {
            additions: differing("n", 1),
            ..repair.clone()
        };
        check(
            with_additions.clone(),
            &format!("All: Drift 2, {hooks}, guard 1"),
        );
        let plain = Case {
            declared: &[],
            row: Some(row(A, &[])),
            ..with_additions.clone()
        };
        check(plain, "Tracked: Drift 2");
        let only_additions = Case {
            edits: differing("e", 0),
            ..with_additions
        };
        check(only_additions, "keep");
    }

    #[test]
    fn a_clone_that_was_moved_elsewhere_comes_back() {
        let moved = Case {
            head: Some(B),
            edits: differing("e", 2),
            ..intact()
        };
        let hooks = "pre-install repair, post-install repair";
        check(moved, &format!("All: Drift 2, {hooks}, guard 2"));
        let on_a_branch = Case {
            head: None,
            ..intact()
        };
        check(on_a_branch, "Repository: Repository");
        let planted = Case {
            is_plain: false,
            ..intact()
        };
        check(planted.clone(), "keep");
        let repair = Case {
            repair: true,
            ..planted
        };
        check(repair, "Repository: Repository");
    }

    #[test]
    fn a_clone_without_state_is_adopted_if_it_is_clean() {
        let found = Case {
            row: None,
            ..intact()
        };
        let plan = check(found.clone(), &format!("keep, row, {ALL_INSTALL}"));
        let Step::KeepClone(step) = plan.step else {
            panic!("{:?}", plan.step)
        };
        let row = step.row.unwrap();
        assert_eq!(row.seen, Some(CloneStatus::clean()));
        assert_eq!(row.phases, OWED.iter().copied().collect());
        let edited = Case {
            edits: differing("e", 1),
            ..found.clone()
        };
        check(edited, &format!("All: Drift 1, {ALL_INSTALL}, guard 1"));
        let added = Case {
            additions: differing("n", 1),
            ..found.clone()
        };
        check(added, &format!("All: Hooks, {ALL_INSTALL}, guard 1"));
        let elsewhere = Case {
            base: Some(B),
            head: Some(B),
            differing: 1,
            ..found.clone()
        };
        let update = "pre-install update, post-install update";
        check(elsewhere, &format!("All: Content, {update}"));
        let no_clone = Case {
            base: None,
            head: None,
            is_plain: false,
            additions: differing("n", 4),
            ..found
        };
        check(
            no_clone,
            &format!("All: Repository, {ALL_INSTALL}, guard 4"),
        );
    }

    #[test]
    fn owed_hooks_start_from_a_clean_tree() {
        let owed = Case {
            row: Some(row(A, OWED)),
            ..intact()
        };
        let hooks = "pre-install retry, post-install retry";
        check(owed.clone(), &format!("All: Hooks, {hooks}"));
        let edited = Case {
            edits: differing("e", 1),
            ..owed.clone()
        };
        check(edited, &format!("All: Hooks, {hooks}, guard 1"));
        let held = Case {
            decision: HookDecision::Held,
            ..owed
        };
        check(held, &format!("keep, {hooks}"));
        let post = Case {
            row: Some(row(A, POST_OWED)),
            additions: differing("n", 1),
            ..intact()
        };
        check(post, "keep, post-install retry");
        let skipped = Case {
            row: Some(row(A, &[(PreInstall, Skipped), (PostInstall, Skipped)])),
            ..intact()
        };
        check(skipped, &format!("All: Hooks, {ALL_INSTALL}"));
    }

    #[test]
    fn an_absent_clone_is_made_and_a_remembered_one_is_not_looked_at() {
        let hooks = [hook(PreInstall)];
        let options = CloneOptions {
            decision: HookDecision::Run,
            repair: false,
            force: false,
            boot: None,
        };
        let mut desired = DesiredClone {
            slot: slot(),
            commit: A,
            hooks: &hooks,
            was_locked: false,
            locked_commit: None,
            previous: None,
        };
        let absent = |desired: &DesiredClone<'_>, row: Option<&CloneState>| {
            words(&plan_in_place(desired, FoundClone::Absent, row, &options))
        };
        assert_eq!(absent(&desired, None), "All: New, pre-install install");
        desired.was_locked = true;
        assert_eq!(absent(&desired, None), "All: Missing, pre-install install");
        let done = row(A, &[(PreInstall, Done)]);
        let missing = absent(&desired, Some(&done));
        assert_eq!(missing, "All: Missing, pre-install repair");
        desired.hooks = &[];
        let kept = plan_in_place(&desired, FoundClone::Remembered, Some(&done), &options);
        assert_eq!(words(&kept), "keep");
    }

    #[test]
    fn a_removal_is_guarded_as_an_update_is() {
        let check = |case: &Case<'_>, expected: Option<usize>| {
            plan(case, &|looked| {
                let (step, guard) = plan_clone_removal(&slot(), looked, case.row.as_ref());
                assert_eq!(guard.as_ref().map(|guard| guard.count), expected);
                ClonePlan {
                    step: Step::RemoveClone(step),
                    hooks: Vec::new(),
                    guard,
                }
            });
        };
        check(&intact(), None);
        let edited = Case {
            edits: differing("e", 1),
            additions: differing("n", 1),
            ..intact()
        };
        check(&edited, Some(2));
        let commits = Case {
            local_commits: true,
            ..intact()
        };
        check(&commits, Some(0));
    }
}
