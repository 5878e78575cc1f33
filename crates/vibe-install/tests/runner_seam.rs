//! What an install asks of the hook runner, and what it makes of the answers, with a runner that
//! starts nothing.
#![cfg(unix)]
#![expect(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::collections::{BTreeMap, VecDeque};
use std::ffi::{OsStr, OsString};
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use vibe_core::event::Silent;
use vibe_core::formats::config::UserConfig;
use vibe_core::hook::Phase;
use vibe_core::{Cancellation, Event, Observer};
use vibe_hooks::{HookResult, HookRunner, HookStartError, HookStatus, HookWatcher, Invocation};
use vibe_install::{
    Context, HookOutcome, InstallError, InstallRequest, RunReport, Settings, install,
};
use vibe_testkit::{PackageBuilder, World};

/// Records invocations. Its clones of results are given out in order; after the last, every hook
/// ends with exit code 0.
#[derive(Debug, Default)]
struct RecordingRunner {
    invocations: Mutex<Vec<Invocation>>,
    results: Mutex<VecDeque<HookResult>>,
}

impl RecordingRunner {
    /// A runner that answers with `results`.
    fn new(results: impl IntoIterator<Item = HookResult>) -> Self {
        Self {
            invocations: Mutex::default(),
            results: Mutex::new(results.into_iter().collect()),
        }
    }

    /// What it was asked to run so far, in order.
    fn invocations(&self) -> Vec<Invocation> {
        let invocations = self.invocations.lock();
        invocations.unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// The result of a hook that ended with `status` at once and printed `output`.
fn result(status: HookStatus, output: &str) -> HookResult {
    HookResult {
        status,
        duration: Duration::ZERO,
        tail: output.into(),
        left_running: None,
        output_bytes: output.len() as u64,
        log_error: None,
    }
}

impl HookRunner for RecordingRunner {
    /// Hands the lines of the result's tail to `watcher`. No process is started, so none is told.
    fn run(
        &self,
        invocation: &Invocation,
        watcher: &mut dyn HookWatcher,
        cancel: &Cancellation,
    ) -> Result<HookResult, HookStartError> {
        if cancel.is_cancelled() {
            return Err(HookStartError::Interrupted);
        }
        let mut invocations = self
            .invocations
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        invocations.push(invocation.clone());
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        let result = results
            .pop_front()
            .unwrap_or_else(|| result(HookStatus::Exited(0), ""));
        result
            .tail
            .split_inclusive(|byte| *byte == b'\n')
            .for_each(|line| watcher.output(line.strip_suffix(b"\n").unwrap_or(line)));
        Ok(result)
    }
}

/// A world whose `PATH` is one directory with a file named `bash` that is never run.
struct Seam {
    world: World,
    settings: Settings,
}

impl Seam {
    fn new() -> Self {
        let world = World::new();
        let bash = world.root().join("bin/bash");
        std::fs::create_dir(world.root().join("bin")).unwrap();
        std::fs::write(&bash, "exit 99\n").unwrap();
        std::fs::set_permissions(&bash, std::fs::Permissions::from_mode(0o755)).unwrap();
        let environment = [
            ("PATH", world.root().join("bin").into_os_string()),
            ("LC_ALL", "C".into()),
            ("PUBLISH_TOKEN", "secret".into()),
            ("BASH_ENV", "/evil".into()),
        ];
        let settings = Settings {
            directory: world.project(),
            start: world.project(),
            environment: environment.map(|(name, value)| (name.into(), value)).into(),
            executable: "/bin/vibe".into(),
            command: "vibe install".to_owned(),
            version: "0.0.0",
            config: UserConfig::default(),
            no_hooks: false,
            hook_timeout: None,
            wait: true,
            git_cache: None,
            jobs: None,
            store: Some(world.home().join("store")),
            link_mode: vibe_install::WantedLinkMode::AsDeclared,
        };
        Self { world, settings }
    }

    /// Publishes `org.example/<name>` 1.0.0 with both scripts for both phases.
    fn publish(&self, name: &str, dependency: Option<&str>) {
        let mut package = PackageBuilder::new(&format!("org.example/{name}"), "1.0.0");
        for phase in [Phase::PreInstall, Phase::PostInstall] {
            package = package
                .hook(phase, "exit 99\n")
                .powershell_hook(phase, "exit 99\n");
        }
        if let Some(dependency) = dependency {
            package = package.depends(&format!("org.example/{dependency}"), "*");
        }
        package.publish(&self.world.registry());
    }

    fn install(&self, runner: &RecordingRunner) -> Result<RunReport, InstallError> {
        self.install_seen_by(&Silent, runner)
    }

    fn install_seen_by(
        &self,
        observer: &dyn Observer,
        runner: &RecordingRunner,
    ) -> Result<RunReport, InstallError> {
        let context = Context {
            settings: &self.settings,
            observer,
            runner,
            cancel: &Cancellation::new(),
            questions: &vibe_install::Nobody,
        };
        install(&context, &InstallRequest::default())
    }

    fn slot(&self, name: &str) -> PathBuf {
        self.world
            .project()
            .join(format!("vibedeps/org.example.{name}/1.0.0"))
    }
}

/// A world in which `a` requires `b`, and runners give `answers` in order.
fn seam(answers: &[HookResult]) -> (Seam, RecordingRunner) {
    let seam = Seam::new();
    seam.publish("a", Some("b"));
    seam.publish("b", None);
    seam.world.require(&[("org.example/a", "*")]);
    (seam, RecordingRunner::new(answers.iter().cloned()))
}

/// Package and phase of each invocation, as its environment says.
fn told(runner: &RecordingRunner) -> Vec<String> {
    let value = |invocation: &Invocation, name: &str| {
        let value = invocation.environment.get(OsStr::new(name));
        value.unwrap().to_str().unwrap().to_owned()
    };
    let text = |invocation: &Invocation| {
        let name = value(invocation, "VIBE_PACKAGE_NAME");
        format!("{name} {}", value(invocation, "VIBE_HOOK_PHASE"))
    };
    runner.invocations().iter().map(text).collect()
}

fn failure() -> HookResult {
    result(HookStatus::Exited(3), "no luck\n")
}

fn success() -> HookResult {
    result(HookStatus::Exited(0), "")
}

#[test]
fn each_phase_is_one_call_with_program_arguments_directory_and_limit() {
    let (seam, runner) = seam(&[]);
    seam.install(&runner).unwrap();
    assert_eq!(
        told(&runner),
        [
            "b pre-install",
            "a pre-install",
            "b post-install",
            "a post-install"
        ]
    );
    let first = &runner.invocations()[0];
    let slot = seam.slot("b");
    assert_eq!(first.program, seam.world.root().join("bin/bash"));
    assert_eq!(first.arguments, [slot.join("hooks/pre-install.sh")]);
    assert_eq!(first.directory, slot);
    assert_eq!(first.limits.timeout, Duration::from_secs(600));
}

#[test]
fn the_environment_handed_over_is_complete_and_holds_no_credential() {
    let (seam, runner) = seam(&[]);
    seam.install(&runner).unwrap();
    let slot = seam.slot("b");
    let project = seam.world.project();
    let path = seam.world.root().join("bin");
    let expected = [
        ("LC_ALL", OsStr::new("C")),
        ("PATH", path.as_os_str()),
        ("VIBE_EXECUTABLE", OsStr::new("/bin/vibe")),
        ("VIBE_HOOK_PHASE", OsStr::new("pre-install")),
        ("VIBE_HOOK_REASON", OsStr::new("install")),
        ("VIBE_PACKAGE_DIR", slot.as_os_str()),
        ("VIBE_PACKAGE_GROUP", OsStr::new("org.example")),
        ("VIBE_PACKAGE_KIND", OsStr::new("feat")),
        ("VIBE_PACKAGE_NAME", OsStr::new("b")),
        ("VIBE_PACKAGE_VERSION", OsStr::new("1.0.0")),
        ("VIBE_PROJECT_ROOT", project.as_os_str()),
    ];
    let expected: BTreeMap<OsString, OsString> = expected
        .iter()
        .map(|(name, value)| (name.into(), (*value).to_owned()))
        .collect();
    assert_eq!(runner.invocations()[0].environment, expected);
}

#[test]
fn the_limit_of_the_command_line_reaches_the_runner() {
    let (mut seam, runner) = seam(&[]);
    seam.settings.hook_timeout = Some(Duration::from_secs(7));
    seam.install(&runner).unwrap();
    let limits = |runner: &RecordingRunner| -> Vec<u64> {
        runner
            .invocations()
            .iter()
            .map(|it| it.limits.timeout.as_secs())
            .collect()
    };
    assert_eq!(limits(&runner), [7, 7, 7, 7]);
}

#[test]
fn a_second_install_asks_nothing_of_the_runner() {
    let (seam, runner) = seam(&[]);
    seam.install(&runner).unwrap();
    assert!(seam.install(&runner).unwrap().up_to_date);
    assert_eq!(runner.invocations().len(), 4);
}

#[test]
fn a_pre_install_answered_with_failure_ends_the_install_there() {
    let (seam, runner) = seam(&[success(), failure()]);
    let error = seam.install(&runner).unwrap_err();
    let InstallError::PreInstall { hook, .. } = error else {
        panic!("{error}")
    };
    assert_eq!(
        (hook.package.as_str(), hook.exit_code),
        ("org.example/a", Some(3))
    );
    assert_eq!(hook.tail, "no luck");
    assert_eq!(told(&runner), ["b pre-install", "a pre-install"]);
    assert!(
        !seam.slot("a").exists(),
        "a new slot stays though its preparation failed"
    );
    assert!(seam.slot("b").exists(), "what was prepared is lost");
    assert!(!seam.world.project().join("vibe.lock").exists());

    // The next install takes up where this one stopped.
    let runner = RecordingRunner::default();
    seam.install(&runner).unwrap();
    assert_eq!(
        told(&runner),
        ["a pre-install", "b post-install", "a post-install"]
    );
}

#[test]
fn a_post_install_answered_with_failure_is_flagged_and_asked_for_again() {
    for answer in [
        failure(),
        result(HookStatus::Signalled(9), ""),
        result(HookStatus::TimedOut, ""),
    ] {
        let (seam, runner) = seam(&[success(), success(), answer]);
        let report = seam.install(&runner).unwrap();
        let flagged: Vec<&str> = report.flagged().map(|hook| hook.package.as_str()).collect();
        assert_eq!(flagged, ["org.example/b"]);
        assert_eq!(
            runner.invocations().len(),
            4,
            "the other package's hook was held up"
        );
        assert!(seam.world.project().join("vibe.lock").exists());

        let runner = RecordingRunner::default();
        let report = seam.install(&runner).unwrap();
        assert_eq!(told(&runner), ["b post-install"]);
        assert_eq!(report.hooks[0].outcome, HookOutcome::Ran);
        assert!(seam.install(&runner).unwrap().up_to_date);
    }
}

#[test]
fn hooks_held_back_are_not_asked_of_the_runner_until_they_may_run() {
    let (mut seam, runner) = seam(&[]);
    seam.settings.no_hooks = true;
    let report = seam.install(&runner).unwrap();
    assert!(
        report
            .hooks
            .iter()
            .all(|hook| hook.outcome == HookOutcome::Skipped)
    );
    assert!(runner.invocations().is_empty());
    seam.settings.no_hooks = false;
    seam.install(&runner).unwrap();
    assert_eq!(runner.invocations().len(), 4);
}

#[test]
fn without_an_interpreter_nothing_is_asked_and_nothing_is_placed() {
    let (seam, runner) = seam(&[]);
    std::fs::remove_file(seam.world.root().join("bin/bash")).unwrap();
    let error = seam.install(&runner).unwrap_err();
    assert!(
        matches!(
            error,
            InstallError::Selection {
                phase: Phase::PreInstall,
                ..
            }
        ),
        "{error}"
    );
    assert!(runner.invocations().is_empty());
    assert!(!seam.slot("a").exists() && !seam.slot("b").exists());
}

/// Edits `vibe.toml` when the last hook of a run has ended: after the commit.
struct EditsManifest<'a>(&'a Seam);

impl Observer for EditsManifest<'_> {
    fn observe(&self, event: &Event) {
        let Event::HookEnded {
            phase: Phase::PostInstall,
            ..
        } = event
        else {
            return;
        };
        self.0.publish("late", None);
        self.0
            .world
            .require(&[("org.example/lint", "*"), ("org.example/late", "*")]);
    }
}

#[test]
fn an_edit_of_the_manifest_after_the_commit_is_work_for_the_next_run() {
    let seam = Seam::new();
    seam.publish("lint", None);
    seam.world.require(&[("org.example/lint", "*")]);
    let runner = RecordingRunner::default();
    seam.install_seen_by(&EditsManifest(&seam), &runner)
        .unwrap();
    let report = seam.install(&runner).unwrap();
    assert!(!report.up_to_date);
    assert_eq!(report.packages.len(), 2);
}
