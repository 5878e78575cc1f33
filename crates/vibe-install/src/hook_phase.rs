//! One install hook, from the gate to its record: everything around the runner that the contract
//! promises. The runner starts the process; here stands what must hold before and after it.

use std::time::{Duration, SystemTime};

use vibe_core::formats::lock::LOCK_NAME;
use vibe_core::formats::record::SlotRecord;
use vibe_core::formats::state::{LinkMode, RunningHook, RunningProcess, SlotState};
use vibe_core::hook::{HookReason, HostOs, Phase, PhaseState};
use vibe_core::limits::HOOK_TIMEOUT_SECONDS;
use vibe_core::plan::{HookDecision, Refresh, RunHook, SlotReason, Undo};
use vibe_core::text::escape_bytes;
use vibe_core::{Event, Sha256Digest, SlotName};
use vibe_fs::error::shown;
use vibe_fs::{Durability, EntryKind, remove_file_if, write_atomic};
use vibe_hooks::environment::{BuiltEnvironment, HookContext, build};
use vibe_hooks::output::sanitize_line;
use vibe_hooks::runner::{HookLimits, HookStartError, LeftRunning};
use vibe_hooks::{HookResult, HookStatus, HookWatcher, Invocation};
use vibe_plan::diff::{DiffInput, diff};
use vibe_plan::selection::arguments;
use vibe_slot::hook_scan::{HookScan, HookSnapshot};
use vibe_slot::record::restore_record;
use vibe_slot::state_file;

use crate::clones::PlannedClone;
use crate::error::InstallError;
use crate::evidence::{milliseconds, run_directory, time_text};
use crate::execution::Execution;
use crate::fetch::Fetched;
use crate::planning::PlannedPackage;
use crate::run_record::{HookOutcome, HookRecord};
use crate::slots::contents_of;

/// Files by which agent programs are told to run something. A package that changes one of them
/// makes itself stay, so a change is reported. Relative to the project root.
const AGENT_SETTINGS: &[&str] = &[
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".codex/config.toml",
    ".codex/hooks.json",
    ".cursor/hooks.json",
    ".cursor/mcp.json",
    ".gemini/settings.json",
    ".github/copilot/settings.json",
    ".mcp.json",
    ".mind/hooks.json",
    ".vscode/tasks.json",
    "AGENTS.md",
    "CLAUDE.md",
    "GEMINI.md",
];

/// What hooks may not change, as it was before one.
pub(crate) struct Protected {
    lock: Option<Vec<u8>>,
    manifests: Vec<Option<Vec<u8>>>,
    settings: Vec<Option<Sha256Digest>>,
}

/// A started hook's result, or why there is none.
pub(crate) type Outcome = Result<HookResult, HookStartError>;

impl<'a> Execution<'a> {
    /// Takes `hook` through the gate and, if it may run, runs it. The record says what became of
    /// it; the state row is written accordingly.
    pub(crate) fn hook(&mut self, hook: &RunHook) -> Result<HookRecord, InstallError> {
        let record = match hook.decision {
            HookDecision::Run => self.run_hook(hook)?,
            // Nobody can be asked yet, so an ask counts as held.
            HookDecision::Held | HookDecision::Ask => self.hold(hook)?,
        };
        self.hooks.push(record.clone());
        self.write_evidence(None)?;
        Ok(record)
    }

    fn hold(&mut self, hook: &RunHook) -> Result<HookRecord, InstallError> {
        // What is settled stays so: it was only asked for once more.
        if self.phase_state(hook) != Some(PhaseState::Done) {
            self.set_phase(&hook.slot, hook.phase, PhaseState::Skipped);
            self.save_state(Durability::Unsynced)?;
        }
        Ok(HookRecord {
            outcome: HookOutcome::Skipped,
            ..empty_record(hook)
        })
    }

    fn run_hook(&mut self, hook: &RunHook) -> Result<HookRecord, InstallError> {
        let fetched = self.fetched(&hook.slot);
        let record = self.slot_record(&hook.slot);
        let is_clone = hook.slot.version().is_none();
        if hook.phase == Phase::PreInstall && hook.because != HookReason::Manual && !is_clone {
            let files = self.put_back(&hook.slot, fetched, &record)?;
            if files > 0 {
                let count = if files == 1 {
                    "1 file"
                } else {
                    &format!("{files} files")
                };
                let text = format!(
                    "{}: {count} changed after the package was placed; put back as published \
                     before its pre-install script",
                    hook.slot
                );
                self.context.observer.observe(&Event::Warning(text));
            }
        }
        self.context.observer.observe(&Event::HookStarted {
            slot: hook.slot.clone(),
            phase: hook.phase,
            script: hook.script.clone(),
            because: hook.because,
        });
        let started = SystemTime::now();
        let mut result = HookRecord {
            interpreter: Some(shown(&hook.program)),
            started: Some(time_text(started)),
            ..empty_record(hook)
        };
        if self.script_is_planned(hook) {
            match is_clone {
                true => self.start_in_clone(hook, fetched, &mut result)?,
                false => self.start_and_check(hook, fetched, &record, &mut result)?,
            }
        } else {
            result
                .remarks
                .push("was not started: its script is not as published".to_owned());
        }
        self.context.observer.observe(&Event::HookEnded {
            slot: hook.slot.clone(),
            phase: hook.phase,
            ending: result.ending(),
        });
        Ok(result)
    }

    /// The whole payload at its published bytes, whatever another package's hook did since it was
    /// placed. Returns how many files that changed.
    fn put_back(
        &mut self,
        slot: &SlotName,
        fetched: &Fetched,
        record: &SlotRecord,
    ) -> Result<usize, InstallError> {
        let layout = &self.project.layout;
        let tree = fetched.tree();
        let contents = contents_of(layout, slot, [tree], None)?;
        let difference = diff(&DiffInput::new(tree, tree, None, &contents));
        if difference.changes.is_empty() {
            return Ok(0);
        }
        let files = difference.payload_changes();
        let step = Refresh {
            slot: slot.clone(),
            tree: tree.id(),
            files: tree.rows().len(),
            link_mode: LinkMode::Copy,
            because: SlotReason::Hooks,
            changes: difference.changes,
            undo: Undo::None,
            row: None,
        };
        self.refreshed(&step, record)?;
        Ok(files)
    }

    fn script_is_planned(&self, hook: &RunHook) -> bool {
        let path = hook.script.under(&self.project.layout.slot(&hook.slot));
        vibe_fs::hash_file(&path).is_ok_and(|file| file.digest == hook.sha256)
    }

    fn start_and_check(
        &mut self,
        hook: &RunHook,
        fetched: &Fetched,
        record: &SlotRecord,
        result: &mut HookRecord,
    ) -> Result<(), InstallError> {
        let layout = &self.project.layout;
        let before = self.row(&hook.slot);
        let protected = self.protect();
        let snapshot = HookSnapshot::take(layout, &hook.slot, record, &before)?;
        let log = format!("{}.{}.log", hook.slot.package().directory(), hook.phase);
        let outcome = self.start(hook, fetched, &log)?;
        result.log = Some(log);
        self.note_outcome(hook, &outcome, result);
        if result.outcome == HookOutcome::Interrupted {
            // The row keeps saying that the hook runs: what it did is looked at by the next run,
            // as after a crash.
            return Ok(());
        }
        // It may have removed even our own directories.
        layout.prepare()?;
        let scan = snapshot.rescan(layout, &hook.slot, record, &before)?;
        self.check_own_files(hook, fetched, record, &scan, result)?;
        self.check_protected(&protected, result)?;
        if !result.remarks.is_empty() {
            result.outcome = HookOutcome::Failed;
        }
        self.settle(hook, scan, result)
    }

    /// Fills `result` with how the hook ended, and tells what it left.
    pub(crate) fn note_outcome(&self, hook: &RunHook, outcome: &Outcome, result: &mut HookRecord) {
        fill_record(result, outcome);
        if let Ok(outcome) = outcome {
            self.tell_leftovers(hook, outcome);
        }
    }

    /// Names what the hook left running, and says what its log lacks: neither makes it fail.
    fn tell_leftovers(&self, hook: &RunHook, outcome: &HookResult) {
        let what = format!("the {} script of {}", hook.phase, hook.slot.package());
        let left = outcome.left_running.as_ref().map(|left| {
            format!(
                "{what} left running: {}; it is not waited for, and not ended",
                left_text(left)
            )
        });
        let log = outcome
            .log_error
            .as_ref()
            .map(|why| format!("the log of {what} is incomplete: {why}"));
        for text in left.into_iter().chain(log) {
            self.context.observer.observe(&Event::Warning(text));
        }
    }

    /// Starts the process and sees it through, with the state row saying so.
    pub(crate) fn start(
        &mut self,
        hook: &RunHook,
        fetched: &Fetched,
        log: &str,
    ) -> Result<Outcome, InstallError> {
        let environment = self.hook_environment(hook, fetched);
        self.variables_not_passed.extend(environment.not_passed);
        let layout = &self.project.layout;
        let directory = layout.slot(&hook.slot);
        let invocation = Invocation {
            program: hook.program.clone(),
            arguments: arguments(hook.interpreter, &hook.script.under(&directory)),
            directory,
            environment: environment.variables,
            limits: HookLimits {
                timeout: self.timeout(fetched),
                ..HookLimits::default()
            },
            log: Some(run_directory(layout, &self.run).join(log)),
        };
        vibe_fs::create_directory_all(&run_directory(layout, &self.run))?;
        self.mark_running(hook, None);
        self.save_state(Durability::Unsynced)?;
        let mut watcher = Watcher {
            execution: self,
            hook,
        };
        let context = watcher.execution.context;
        Ok(context
            .runner
            .run(&invocation, &mut watcher, context.cancel))
    }

    fn hook_environment(&self, hook: &RunHook, fetched: &Fetched) -> BuiltEnvironment {
        let settings = self.context.settings;
        let id = hook.slot.package();
        let package = &fetched.package;
        let context = HookContext {
            group: id.group().to_owned(),
            name: id.name().to_owned(),
            version: package.version.to_string(),
            kind: package.kind.as_str().to_owned(),
            directory: self.project.layout.slot(&hook.slot),
            phase: hook.phase,
            reason: hook.because,
            previous_version: self.previous_version(&hook.slot),
            project_root: self.project.root.clone(),
            executable: settings.executable.clone(),
            package_home: settings.variable("VIBE_PKG_HOME").map(Into::into),
            offline: settings.variable("VIBE_OFFLINE").map(Into::into),
        };
        build(
            HostOs::CURRENT,
            &settings.environment,
            &context,
            &settings.config.pass_env,
        )
    }

    fn timeout(&self, fetched: &Fetched) -> Duration {
        let settings = self.context.settings;
        let stated = fetched
            .package
            .hooks
            .timeout_seconds
            .or(settings.config.hook_timeout_seconds);
        settings
            .hook_timeout
            .unwrap_or(Duration::from_secs(stated.unwrap_or(HOOK_TIMEOUT_SECONDS)))
    }

    pub(crate) fn protect(&self) -> Protected {
        Protected {
            lock: self.project.bytes_of(LOCK_NAME),
            manifests: self.manifests(),
            settings: self.settings_digests(),
        }
    }

    /// The bytes of each of the project's manifests.
    fn manifests(&self) -> Vec<Option<Vec<u8>>> {
        let all = self.project.manifests.iter();
        all.map(|own| self.project.bytes_of(own.path.as_str()))
            .collect()
    }

    fn settings_digests(&self) -> Vec<Option<Sha256Digest>> {
        AGENT_SETTINGS
            .iter()
            .map(|name| {
                self.project
                    .bytes_of(name)
                    .map(|bytes| Sha256Digest::of(&bytes))
            })
            .collect()
    }

    /// What the hook did to its own slot that no hook may do.
    fn check_own_files(
        &self,
        hook: &RunHook,
        fetched: &Fetched,
        record: &SlotRecord,
        scan: &HookScan,
        result: &mut HookRecord,
    ) -> Result<(), InstallError> {
        if !scan.slot_is_directory {
            result.remarks.push("removed its slot".to_owned());
            return Ok(());
        }
        if scan.record_changed {
            let kept = restore_record(&self.project.layout, &hook.slot, record)?;
            result.remarks.push(format!(
                "changed its slot record, which was restored{}",
                kept_text(kept)
            ));
        }
        for path in fetched
            .scripts
            .keys()
            .filter(|path| scan.after.contains_key(path))
        {
            result
                .remarks
                .push(format!("changed the install hook script {path}"));
        }
        for path in &scan.retyped {
            result
                .remarks
                .push(format!("turned {path} into something that is not a file"));
        }
        Ok(())
    }

    /// Restores the lock, and tells of other files of the project that hooks may not change.
    pub(crate) fn check_protected(
        &mut self,
        before: &Protected,
        result: &mut HookRecord,
    ) -> Result<(), InstallError> {
        if self.project.bytes_of(LOCK_NAME) != before.lock || self.is_odd(LOCK_NAME, &before.lock) {
            let kept = self.restore_lock(before.lock.as_deref())?;
            result.remarks.push(format!(
                "changed vibe.lock, which was restored{}",
                kept_text(kept)
            ));
        }
        let manifests = self.manifests();
        for (index, own) in self.project.manifests.iter().enumerate() {
            if manifests[index] != before.manifests[index] {
                let path = &own.path;
                let text = format!("changed {path}, which is left as it is now");
                result.remarks.push(text);
            }
        }
        for (name, (before, after)) in AGENT_SETTINGS
            .iter()
            .zip(before.settings.iter().zip(self.settings_digests()))
        {
            if *before != after {
                let text = format!(
                    "the {} script of {} changed {name}, by which agent programs run commands",
                    result.phase, result.package
                );
                self.context.observer.observe(&Event::Warning(text));
                self.changed_settings.push((*name).to_owned());
            }
        }
        Ok(())
    }

    /// The lock as it was. A directory in its place may hold anything, so it is set aside: its new
    /// name, if so.
    fn restore_lock(&self, before: Option<&[u8]>) -> Result<Option<String>, InstallError> {
        let path = self.project.layout.vibe_lock();
        let mut kept = None;
        if vibe_fs::stat_of(&path)?.is_some_and(|stat| stat.kind == EntryKind::Directory) {
            let aside = vibe_fs::free_kept_name(&path)?;
            vibe_fs::rename_over(&path, &aside)?;
            kept = aside
                .file_name()
                .map(|name| name.to_string_lossy().into_owned());
        }
        match before {
            Some(bytes) => {
                let staging = self.project.layout.staging();
                write_atomic(&path, bytes, &staging, Durability::Synced)?;
            }
            None => {
                remove_file_if(&path, |_| true)?;
            }
        }
        Ok(kept)
    }

    /// Whether something that is no regular file lies where there was nothing.
    fn is_odd(&self, name: &str, before: &Option<Vec<u8>>) -> bool {
        let there = vibe_fs::stat_of(&self.project.root.join(name))
            .ok()
            .flatten()
            .is_some();
        before.is_none() && there
    }

    /// The row after the hook: what it did, and whether its phase is settled.
    fn settle(
        &mut self,
        hook: &RunHook,
        scan: HookScan,
        result: &HookRecord,
    ) -> Result<(), InstallError> {
        let settled = result.outcome == HookOutcome::Ran;
        let phase = if settled {
            PhaseState::Done
        } else {
            PhaseState::Owed
        };
        if let Some(row) = self.state.slots.get_mut(&hook.slot) {
            row.running = None;
            row.after = scan.after;
            row.made = scan.made;
        }
        self.set_phase(&hook.slot, hook.phase, phase);
        self.save_state(Durability::Unsynced)
    }

    /// A failed repair leaves the published bytes, so that nothing of a half-done preparation is
    /// taken for the package.
    pub(crate) fn put_back_after_failure(&mut self, slot: &SlotName) -> Result<(), InstallError> {
        let fetched = self.fetched(slot);
        let record = self.slot_record(slot);
        if self.project.layout.has_slot(slot)? {
            self.put_back(slot, fetched, &record)?;
        }
        if let Some(row) = self.state.slots.get_mut(slot) {
            row.after.clear();
        }
        self.save_state(Durability::Unsynced)
    }

    pub(crate) fn set_phase(&mut self, slot: &SlotName, phase: Phase, state: PhaseState) {
        if let Some(row) = self.state.slots.get_mut(slot) {
            row.phases.insert(phase, state);
        }
        if let Some(row) = self.state.clones.get_mut(slot) {
            row.phases.insert(phase, state);
        }
    }

    fn phase_state(&self, hook: &RunHook) -> Option<PhaseState> {
        let phases = self.state.phases(&hook.slot)?;
        phases.get(&hook.phase).copied()
    }

    fn previous_version(&self, slot: &SlotName) -> Option<String> {
        match self.clone_row(slot) {
            Some(row) => row.previous_version.clone(),
            None => self.row(slot).previous_version,
        }
    }

    fn mark_running(&mut self, hook: &RunHook, process: Option<RunningProcess>) {
        let running = RunningHook {
            phase: hook.phase,
            process,
        };
        if let Some(row) = self.state.slots.get_mut(&hook.slot) {
            row.running = Some(running.clone());
        }
        if let Some(row) = self.state.clones.get_mut(&hook.slot) {
            row.running = Some(running);
            // What it does to the clone is its doing until it has been looked at.
            row.seen = None;
        }
    }

    fn row(&self, slot: &SlotName) -> SlotState {
        self.state
            .slots
            .get(slot)
            .cloned()
            .expect("a slot with a due hook has a row in the plan")
    }

    pub(crate) fn save_state(&self, durability: Durability) -> Result<(), InstallError> {
        Ok(state_file::save(
            &self.project.layout,
            &self.state,
            durability,
        )?)
    }

    pub(crate) fn planned_package(&self, slot: &SlotName) -> &'a PlannedPackage {
        self.planned.step_package(slot)
    }

    pub(crate) fn planned_clone(&self, slot: &SlotName) -> &'a PlannedClone {
        self.planned.clone(slot)
    }

    pub(crate) fn fetched(&self, slot: &SlotName) -> &'a Fetched {
        self.planned.fetched(slot)
    }

    pub(crate) fn slot_record(&self, slot: &SlotName) -> SlotRecord {
        self.planned.slot_record(slot)
    }
}

/// Passes on what a running hook prints, and writes down which process it is.
struct Watcher<'w, 'e> {
    execution: &'w mut Execution<'e>,
    hook: &'w RunHook,
}

impl HookWatcher for Watcher<'_, '_> {
    fn started(&mut self, process: RunningProcess) {
        self.execution.mark_running(self.hook, Some(process));
        // The hook runs already and can only be seen to its end, where its outcome is saved.
        if let Err(error) = self.execution.save_state(Durability::Unsynced) {
            let text = format!("which process the install hook is could not be noted: {error}");
            let observer = self.execution.context.observer;
            observer.observe(&Event::Warning(text));
        }
    }

    fn output(&mut self, line: &[u8]) {
        self.execution.context.observer.observe(&Event::HookOutput {
            slot: self.hook.slot.clone(),
            phase: self.hook.phase,
            line: line.to_vec(),
        });
    }
}

pub(crate) fn empty_record(hook: &RunHook) -> HookRecord {
    HookRecord {
        package: hook.slot.package().clone(),
        slot: hook.slot.clone(),
        phase: hook.phase,
        script: hook.script.clone(),
        sha256: hook.sha256,
        reason: hook.because,
        interpreter: None,
        started: None,
        duration_ms: None,
        exit_code: None,
        signal: None,
        timed_out: false,
        left_running: false,
        log: None,
        outcome: HookOutcome::Failed,
        remarks: Vec::new(),
        tail: String::new(),
    }
}

/// What was in the way of a restored file.
fn kept_text(kept: Option<String>) -> String {
    kept.map_or_else(String::new, |name| {
        format!(" (the directory in its place is kept as {name})")
    })
}

/// The processes by name and number, where the system lists them.
fn left_text(left: &LeftRunning) -> String {
    let names: Vec<String> = left
        .processes
        .iter()
        .map(|process| {
            let name = escape_bytes(process.name.as_bytes());
            format!("{name} (process {})", process.pid)
        })
        .collect();
    match (names.is_empty(), left.holds_output) {
        (false, _) => names.join(", "),
        (true, true) => "something that holds its output".to_owned(),
        (true, false) => "something that this system does not name".to_owned(),
    }
}

fn fill_record(record: &mut HookRecord, outcome: &Outcome) {
    let result = match outcome {
        Ok(result) => result,
        Err(HookStartError::Interrupted) => {
            record.outcome = HookOutcome::Interrupted;
            return;
        }
        Err(error) => {
            record
                .remarks
                .push(format!("was not started: {}", crate::error::chain(error)));
            return;
        }
    };
    record.duration_ms = Some(milliseconds(result.duration));
    record.left_running = result.left_running.is_some();
    match result.status {
        HookStatus::Exited(code) => record.exit_code = Some(code),
        HookStatus::Signalled(signal) => record.signal = Some(signal),
        HookStatus::TimedOut => record.timed_out = true,
        HookStatus::Interrupted => record.outcome = HookOutcome::Interrupted,
    }
    if result.status == HookStatus::Exited(0) {
        record.outcome = HookOutcome::Ran;
    } else {
        record.tail = tail_text(&result.tail);
    }
}

/// An output, line by line, with control characters but tabs escaped.
pub(crate) fn tail_text(bytes: &[u8]) -> String {
    let lines: Vec<String> = bytes
        .split(|byte| *byte == b'\n')
        .map(|line| sanitize_line(line, false))
        .collect();
    lines.join("\n").trim_end_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use vibe_hooks::runner::NamedProcess;

    fn check_left(names: &[&str], holds_output: bool, expected: &str) {
        let process = |name: &&str| NamedProcess {
            pid: 7,
            name: (*name).to_owned(),
        };
        let left = LeftRunning {
            processes: names.iter().map(process).collect(),
            holds_output,
        };
        assert_eq!(left_text(&left), expected);
    }

    #[test]
    fn what_is_left_running_is_named_where_it_has_a_name() {
        check_left(
            &["sleep", "a\u{1b}b"],
            true,
            "sleep (process 7), a\\x1Bb (process 7)",
        );
        check_left(&["sleep"], false, "sleep (process 7)");
        check_left(&[], true, "something that holds its output");
        check_left(&[], false, "something that this system does not name");
    }
}
