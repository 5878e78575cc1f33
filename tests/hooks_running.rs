//! Install hooks that run: what is chosen, where, with which environment, in which order, and what
//! is kept of it.

use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead, Write};
use std::path::Path;
use std::process::{Command, Stdio};

use vibe_core::hook::Phase;
use vibe_testkit::{PackageBuilder, TreeSnapshot, World};

use crate::support::{
    VIBE, command, command_in, evidence, lint, lint_slot, newest_run, process_ends, read, run,
    signal, slot, start, vibe, wait,
};

/// Publishes `org.example/lint` 1.0.0 with one pre-install script, and requires it.
fn with_pre_install(script: &str) -> World {
    let world = World::new();
    lint("1.0.0")
        .hook(Phase::PreInstall, script)
        .publish(&world.registry());
    world.require(&[("org.example/lint", "*")]);
    world
}

/// The environment that a hook wrote with `env > env`, without what bash itself adds.
fn environment(path: &Path) -> Vec<(String, String)> {
    let from_bash = ["PWD", "OLDPWD", "SHLVL", "_"];
    let text = read(path);
    let mut variables: Vec<(String, String)> = text
        .lines()
        .map(|line| {
            let (name, value) = line.split_once('=').unwrap_or((line, ""));
            (name.to_owned(), value.to_owned())
        })
        .filter(|(name, _)| !from_bash.contains(&name.as_str()))
        .collect();
    variables.sort();
    variables
}

fn user_config(world: &World, text: &str) {
    let directory = world.home().join("vibe");
    fs::create_dir_all(&directory).unwrap();
    fs::write(directory.join("config.toml"), text).unwrap();
}

#[test]
fn a_script_without_exec_bit_runs_with_bash_whatever_its_first_line_says() {
    let world =
        with_pre_install("#!/usr/bin/env python3\n[[ -n $BASH_VERSION ]] && echo ok > made\n");
    vibe(&world, &["install"]).expect(0);
    let slot = lint_slot(&world, "1.0.0");
    assert_eq!(read(slot.join("made")), "ok\n");
    let listed = TreeSnapshot::of(&slot);
    assert_eq!(listed.entries["hooks/pre-install.sh"].mode & 0o111, 0);
}

#[test]
fn an_empty_script_is_a_hook_that_succeeds() {
    let world = with_pre_install("");
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("pre-install");
    assert_eq!(evidence(&world)["hooks"][0]["outcome"], "ran");
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
}

#[test]
fn a_powershell_script_beside_the_shell_script_is_not_run_on_unix() {
    let world = World::new();
    lint("1.0.0")
        .hook(Phase::PreInstall, "echo sh >> ran\n")
        .powershell_hook(Phase::PreInstall, "echo ps1 >> ran\n")
        .publish(&world.registry());
    world.require(&[("org.example/lint", "*")]);
    vibe(&world, &["install"]).expect(0);
    assert_eq!(read(lint_slot(&world, "1.0.0").join("ran")), "sh\n");
}

#[test]
fn the_lock_keeps_the_digest_of_the_scripts_for_every_system() {
    let world = World::new();
    lint("1.0.0")
        .hook(Phase::PreInstall, "true\n")
        .powershell_hook(Phase::PreInstall, "exit 0\n")
        .hook(Phase::PostInstall, "true\n")
        .publish(&world.registry());
    world.require(&[("org.example/lint", "*")]);
    vibe(&world, &["install"]).expect(0);
    let digest = |text: &str| vibe_core::Sha256Digest::of(text.as_bytes());
    let rows = [
        ("post-install.sh", digest("true\n")),
        ("pre-install.ps1", digest("exit 0\n")),
        ("pre-install.sh", digest("true\n")),
    ];
    let rows = rows.map(|(name, digest)| format!("\"hooks/{name}\" = \"sha256:{digest}\""));
    let line = format!("install-hooks = {{ {} }}\n", rows.join(", "));
    let lock = world.read("vibe.lock");
    assert!(lock.contains(&line), "no {line} in\n{lock}");
}

#[test]
fn a_hook_runs_in_its_slot_byte_for_byte_in_a_project_with_an_odd_path() {
    let world = with_pre_install(
        "printf %s \"$PWD\" > cwd\nprintf %s \"$VIBE_PACKAGE_DIR\" > told\n\
         printf %s \"$VIBE_PROJECT_ROOT\" > root\nprintf '%s\\n' \"$#\" \"$0\" > script\n",
    );
    let project = world
        .root()
        .join("My $HOME; 'it' \"is\" \u{e9} `x`\nsecond line");
    fs::rename(world.project(), &project).unwrap();
    run(&mut command_in(&world, &project, &["install"])).expect(0);
    let slot = project.join("vibedeps/org.example.lint/1.0.0");
    let slot_text = slot.to_str().unwrap();
    assert_eq!(read(slot.join("cwd")), slot_text);
    assert_eq!(read(slot.join("told")), slot_text);
    assert_eq!(read(slot.join("root")), project.to_str().unwrap());
    assert_eq!(
        read(slot.join("script")),
        format!("0\n{slot_text}/hooks/pre-install.sh\n")
    );
    run(&mut command_in(&world, &project, &["install"]))
        .expect(0)
        .stdout_has("nothing to do");
}

#[test]
fn a_project_whose_path_is_not_text_runs_its_hooks_there_too() {
    use std::os::unix::ffi::OsStrExt;
    let world =
        with_pre_install("printf %s \"$PWD\" > cwd\n[ \"$PWD\" = \"$VIBE_PACKAGE_DIR\" ]\n");
    let project = world.root().join(OsStr::from_bytes(b"caf\xe9"));
    fs::rename(world.project(), &project).unwrap();
    run(&mut command_in(&world, &project, &["install"])).expect(0);
    let slot = project.join("vibedeps/org.example.lint/1.0.0");
    assert_eq!(
        fs::read(slot.join("cwd")).unwrap(),
        slot.as_os_str().as_bytes()
    );
}

/// Of the caller's environment: what reaches a hook, and what does not.
const PASSED: [&str; 5] = ["LC_ALL", "XDG_CACHE_HOME", "https_proxy", "CI", "TERM"];
const KEPT_BACK: [&str; 17] = [
    "VIBE_TOKEN",
    "GITHUB_TOKEN",
    "CARGO_REGISTRY_TOKEN",
    "NPM_TOKEN",
    "BASH_ENV",
    "ENV",
    "CDPATH",
    "GIT_DIR",
    "GIT_CONFIG_COUNT",
    "SHELLOPTS_X",
    "IFS",
    "PS4",
    "PYTHONPATH",
    "LESSOPEN",
    "BASH_FUNC_ls%%",
    "VIBE_HOOK_REASON",
    "VIBE_PREVIOUS_VERSION",
];

/// Everything that a hook of `org.example/lint` 1.0.0+build.7 gets, sorted.
fn documented_environment(world: &World, phase: &str) -> Vec<(String, String)> {
    let path = |path: &Path| path.to_str().unwrap().to_owned();
    let ours = [
        ("PATH", std::env::var("PATH").unwrap()),
        ("HOME", path(&world.home())),
        ("VIBE_PACKAGE_GROUP", "org.example".to_owned()),
        ("VIBE_PACKAGE_NAME", "lint".to_owned()),
        ("VIBE_PACKAGE_VERSION", "1.0.0+build.7".to_owned()),
        ("VIBE_PACKAGE_KIND", "tool".to_owned()),
        ("VIBE_PACKAGE_DIR", path(&lint_slot(world, "1.0.0"))),
        ("VIBE_HOOK_PHASE", phase.to_owned()),
        ("VIBE_HOOK_REASON", "install".to_owned()),
        ("VIBE_PROJECT_ROOT", path(&world.project())),
        ("VIBE_EXECUTABLE", path(&fs::canonicalize(VIBE).unwrap())),
        ("VIBE_PKG_HOME", path(&world.home().join("vibe"))),
        ("VIBE_OFFLINE", "1".to_owned()),
    ];
    let given = PASSED.map(|name| (name, "C".to_owned()));
    let mut all: Vec<(String, String)> = ours
        .into_iter()
        .chain(given)
        .map(|(name, value)| (name.to_owned(), value))
        .collect();
    all.sort();
    all
}

#[test]
fn a_hook_gets_the_documented_environment_and_nothing_else() {
    let world = World::new();
    lint("1.0.0+build.7")
        .manifest_extra("[package]\nkind = \"tool\"\n")
        .hook(Phase::PreInstall, "env > pre\n")
        .hook(Phase::PostInstall, "env > post\n")
        .publish(&world.registry());
    world.require(&[("org.example/lint", "*")]);
    let mut install = command(&world, &["install"]);
    install
        .envs(KEPT_BACK.map(|name| (name, "secret-value")))
        .envs(PASSED.map(|name| (name, "C")))
        .env("BASH_FUNC_ls%%", "() { touch secret-value; }")
        .env("VIBE_OFFLINE", "1");
    run(&mut install).expect(0);
    let slot = lint_slot(&world, "1.0.0");
    for (file, phase) in [("pre", "pre-install"), ("post", "post-install")] {
        let expected = documented_environment(&world, phase);
        assert_eq!(environment(&slot.join(file)), expected);
        assert!(!read(slot.join(file)).contains("secret-value"));
    }
    let every_file = TreeSnapshot::of(&world.project());
    for path in every_file.entries.keys() {
        let bytes = fs::read(world.project().join(path)).unwrap_or_default();
        let text = String::from_utf8_lossy(&bytes);
        assert!(!text.contains("secret-value"), "{path} holds a secret");
    }
}

#[test]
fn run_evidence_names_the_variables_that_hooks_did_not_get_and_never_their_values() {
    let world = with_pre_install("exit 3\n");
    let mut install = command(&world, &["install"]);
    install.env("GITHUB_TOKEN", "s3cr3t").env("CI", "1");
    let failed = run(&mut install).expect(4).stderr_has("variables");
    assert!(!failed.stderr.contains("s3cr3t"));
    let evidence = evidence(&world);
    assert_eq!(
        evidence["variables-not-passed"],
        serde_json::json!(["GITHUB_TOKEN"])
    );
    assert!(!evidence.to_string().contains("s3cr3t"));
}

#[test]
fn the_user_lets_more_variables_through_and_a_package_cannot() {
    let world = with_pre_install("env > env\n");
    user_config(&world, "[hooks]\npass-env = [\"MY_TOKEN\"]\n");
    let mut install = command(&world, &["install"]);
    install
        .env("MY_TOKEN", "given")
        .env("OTHER_TOKEN", "secret-value");
    run(&mut install).expect(0);
    let variables = environment(&lint_slot(&world, "1.0.0").join("env"));
    assert!(variables.contains(&("MY_TOKEN".to_owned(), "given".to_owned())));
    assert!(!variables.iter().any(|(_, value)| value == "secret-value"));
    assert_eq!(
        evidence(&world)["variables-not-passed"],
        serde_json::json!(["OTHER_TOKEN"])
    );

    let greedy = World::new();
    lint("1.0.0")
        .hook(Phase::PreInstall, "true\n")
        .manifest_extra("[hooks]\npass-env = [\"MY_TOKEN\"]\n")
        .publish(&greedy.registry());
    greedy.require(&[("org.example/lint", "*")]);
    let refused = vibe(&greedy, &["install"]);
    assert_ne!(refused.code, 0);
    refused.stderr_has("pass-env");
}

const TELL: &str = "echo \"$VIBE_HOOK_REASON ${VIBE_PREVIOUS_VERSION-none}\" >> ../../../told\n";

#[test]
fn a_hook_is_told_why_it_runs_and_what_was_installed_before() {
    let world = with_pre_install(TELL);
    vibe(&world, &["install"]).expect(0);
    fs::write(lint_slot(&world, "1.0.0").join("lint.md"), "edited\n").unwrap();
    vibe(&world, &["verify", "--repair"]).expect(0);
    vibe(&world, &["hooks", "run", "--force", "org.example/lint"]).expect(0);
    lint("1.1.0")
        .hook(Phase::PreInstall, TELL)
        .publish(&world.registry());
    vibe(&world, &["install", "org.example/lint@^1.1"]).expect(0);
    assert_eq!(
        read(world.project().join("told")),
        "install none\nrepair none\nmanual none\nupdate 1.0.0\n"
    );
}

#[test]
fn a_hook_that_failed_is_told_that_it_is_tried_again() {
    let world = World::new();
    let script = format!("{TELL}[ -e ../../../allowed ]\n");
    lint("1.0.0")
        .hook(Phase::PostInstall, &script)
        .publish(&world.registry());
    world.require(&[("org.example/lint", "*")]);
    vibe(&world, &["install"]).expect(5);
    world.write("allowed", "");
    vibe(&world, &["install"]).expect(0);
    assert_eq!(
        read(world.project().join("told")),
        "install none\nretry none\n"
    );
}

#[test]
fn a_hook_that_reads_its_input_finds_the_end_at_once() {
    let world = with_pre_install(
        "if read -r line; then exit 9; fi\n[ -z \"$(cat)\" ] && echo end > made\n",
    );
    let mut install = command(&world, &["install"]);
    let mut child = start(install.stdin(Stdio::piped()));
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(b"meant for somebody else\n").unwrap();
    // `stdin` stays open: a hook that had it would wait for more.
    wait(child).expect(0);
    drop(stdin);
    assert_eq!(read(lint_slot(&world, "1.0.0").join("made")), "end\n");
}

/// `arguments` of vibe on a terminal of its own, made by `script`.
fn on_a_terminal(world: &World, arguments: &str) -> Command {
    let mut command = Command::new("script");
    command
        .args(["--quiet", "--return", "--command"])
        .arg(format!(
            "(: < /dev/tty) && echo has a terminal && '{VIBE}' {arguments}"
        ))
        .arg("/dev/null")
        .current_dir(world.project())
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("HOME", world.home())
        .env("VIBE_PKG_HOME", world.home().join("vibe"))
        .env("TERM", "xterm-256color")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped());
    command
}

#[test]
#[cfg(target_os = "linux")]
fn a_hook_cannot_open_the_terminal_that_vibe_runs_on() {
    let world = with_pre_install(
        "if (: < /dev/tty) 2> /dev/null; then exit 9; fi\nif read -r line; then exit 8; fi\necho none > made\n",
    );
    run(&mut on_a_terminal(&world, "install"))
        .expect(0)
        .stdout_has("has a terminal");
    assert_eq!(read(lint_slot(&world, "1.0.0").join("made")), "none\n");
}

#[test]
fn hooks_run_dependencies_first_and_the_lock_is_written_between_the_phases() {
    let world = World::new();
    let tell = |name: &str| {
        format!(
            "if [ -e ../../../vibe.lock ]; then lock=locked; else lock=unlocked; fi\n\
             echo \"{name} $VIBE_HOOK_PHASE $lock\" >> ../../../told\n"
        )
    };
    for (id, dependency) in [
        ("a", Some("org.example/z")),
        ("m", None),
        ("z", Some("org.example/m")),
    ] {
        let mut package = PackageBuilder::new(&format!("org.example/{id}"), "1.0.0")
            .hook(Phase::PreInstall, &tell(id))
            .hook(Phase::PostInstall, &tell(id));
        if let Some(dependency) = dependency {
            package = package.depends(dependency, "*");
        }
        package.publish(&world.registry());
    }
    world.require(&[("org.example/a", "*")]);
    vibe(&world, &["install"]).expect(0);
    assert_eq!(
        read(world.project().join("told")),
        "m pre-install unlocked\nz pre-install unlocked\na pre-install unlocked\n\
         m post-install locked\nz post-install locked\na post-install locked\n"
    );
}

#[test]
fn a_hook_sees_the_whole_package_and_the_slots_of_all_others() {
    let world = World::new();
    PackageBuilder::new("org.example/later", "1.0.0")
        .file("later.md", "later\n")
        .publish(&world.registry());
    lint("1.0.0")
        .hook(
            Phase::PreInstall,
            "cat lint.md vibe.toml ../../org.example.later/1.0.0/later.md > seen\n",
        )
        .publish(&world.registry());
    world.require(&[("org.example/lint", "*"), ("org.example/later", "*")]);
    vibe(&world, &["install"]).expect(0);
    let slot = lint_slot(&world, "1.0.0");
    let expected = format!("lint\n{}later\n", read(slot.join("vibe.toml")));
    assert_eq!(read(slot.join("seen")), expected);
}

/// Milliseconds that the only hook of the newest run took.
fn duration(world: &World) -> u64 {
    evidence(world)["hooks"][0]["duration-ms"].as_u64().unwrap()
}

#[test]
fn a_hook_that_reaches_its_limit_is_ended_though_it_ignores_term() {
    let world = with_pre_install(
        "trap '' TERM\nsleep 300 &\necho $$ $! > ../../../pid\nwhile :; do sleep 300; done\n",
    );
    let failed = vibe(&world, &["install", "--hook-timeout", "1s"])
        .expect(4)
        .stderr_has("timed out");
    assert!(!failed.stderr.contains("signal"), "{}", failed.stderr);
    let hook = &evidence(&world)["hooks"][0];
    assert_eq!(
        (&hook["timed-out"], &hook["outcome"]),
        (&true.into(), &"failed".into())
    );
    assert_eq!(hook.get("exit-code"), None);
    assert!(
        (1000..10_000).contains(&duration(&world)),
        "{} ms",
        duration(&world)
    );
    read(world.project().join("pid"))
        .split_whitespace()
        .for_each(process_ends);
    assert!(!lint_slot(&world, "1.0.0").exists());
}

#[test]
fn a_package_and_the_user_set_the_limit_and_the_command_line_wins() {
    let world = World::new();
    lint("1.0.0")
        .hook(Phase::PreInstall, "sleep 300\n")
        .manifest_extra("[hooks]\ntimeout = \"1s\"\n")
        .publish(&world.registry());
    world.require(&[("org.example/lint", "*")]);
    vibe(&world, &["install"]).expect(4).stderr_has("timed out");

    let world = with_pre_install("sleep 300\n");
    user_config(&world, "[hooks]\ntimeout = \"1s\"\n");
    vibe(&world, &["install"]).expect(4).stderr_has("timed out");

    let world = World::new();
    lint("1.0.0")
        .hook(Phase::PreInstall, "sleep 1.3\n")
        .manifest_extra("[hooks]\ntimeout = \"1s\"\n")
        .publish(&world.registry());
    world.require(&[("org.example/lint", "*")]);
    vibe(&world, &["install", "--hook-timeout", "1m"]).expect(0);
}

#[test]
#[cfg(target_os = "linux")]
fn a_hundred_mebibytes_of_output_take_no_memory_and_a_capped_log() {
    let world = World::new();
    lint("1.0.0")
        .hook(
            Phase::PreInstall,
            "echo first; yes 'a line of output that says nothing' | head -c 104857600; echo last\n",
        )
        .hook(Phase::PostInstall, "grep VmHWM /proc/$PPID/status > peak\n")
        .publish(&world.registry());
    world.require(&[("org.example/lint", "*")]);
    vibe(&world, &["install", "-q"]).expect(0);
    let peak = read(lint_slot(&world, "1.0.0").join("peak"));
    let kib: u64 = peak.split_whitespace().nth(1).unwrap().parse().unwrap();
    assert!(kib < 100 << 10, "{kib} KiB");
    let log = fs::read(newest_run(&world).join("org.example.lint.pre-install.log")).unwrap();
    assert!(log.starts_with(b"first\na line"), "{}", log.len());
    assert!(log.ends_with(b"last\n"), "{}", log.len());
    let total = 104_857_600 + "first\nlast\n".len();
    let note = format!("\n[{} bytes of output left out]\n", total - (10 << 20));
    assert_eq!(log.len(), (10 << 20) + note.len());
    assert_eq!(&log[5 << 20..][..note.len()], note.as_bytes());
}

#[test]
fn output_without_line_end_and_of_odd_bytes_is_shown_escaped_to_its_last_piece() {
    let world = with_pre_install(
        "printf 'nul \\0 bad \\xff end\\n'\nhead -c 5242880 /dev/zero | tr '\\0' x\nprintf '\\nlast piece'\n",
    );
    let shown = vibe(&world, &["install"]).expect(0);
    shown.stderr.lines().for_each(|line| {
        assert!(
            line.starts_with("org.example/lint pre-install | "),
            "{:?}",
            &line[..line.len().min(80)]
        );
    });
    let shown = shown
        .stderr_has("org.example/lint pre-install | nul \\x00 bad \\xFF end\n")
        .stderr_has("org.example/lint pre-install | last piece\n");
    let of_the_hook = |line: &str| line.rsplit(' ').next().unwrap().matches('x').count();
    assert_eq!(
        shown.stderr.lines().map(of_the_hook).sum::<usize>(),
        5_242_880
    );
}

#[test]
fn control_sequences_of_a_hook_do_not_reach_the_output() {
    let world = with_pre_install(
        "printf '\\033[2J\\033]52;c;aGk=\\007\\033[31mred\\033[0m\\n'\nprintf 'over\\rwritten\\n'\nexit 1\n",
    );
    let failed = vibe(&world, &["install"]).expect(4);
    for stream in [&failed.stdout, &failed.stderr] {
        assert!(!stream.contains(['\u{1b}', '\r', '\u{7}']), "{stream:?}");
    }
    let failed = failed
        .stderr_has(
            "org.example/lint pre-install | \\x1B[2J\\x1B]52;c;aGk=\\x07\\x1B[31mred\\x1B[0m\n",
        )
        .stderr_has("org.example/lint pre-install | over\\rwritten\n");
    assert_eq!(failed.stdout, "");
    let json = vibe(&world, &["--json", "install"]).expect(4);
    assert_eq!(json.json()["error"]["hook"]["exit-code"], 1);
    let log = vibe(&world, &["hooks", "log"])
        .expect(0)
        .stdout_has("\\x1B[2J");
    assert!(!log.stdout.contains('\u{1b}'));
}

#[test]
#[cfg(target_os = "linux")]
fn on_a_terminal_only_the_colour_of_a_hook_passes() {
    let world = with_pre_install("printf '\\033[31mred\\033[0m\\033[2J\\033]52;c;aGk=\\007\\n'\n");
    let shown = run(&mut on_a_terminal(&world, "install")).expect(0);
    let shown = shown
        .stdout_has("\u{1b}[31mred")
        .stdout_has("\\x1B[2J\\x1B]52;c;aGk=\\x07");
    assert!(!shown.stdout.contains("\u{1b}[2J"), "{:?}", shown.stdout);
    assert!(!shown.stdout.contains("\u{1b}]52"), "{:?}", shown.stdout);
}

#[test]
fn what_a_hook_prints_is_shown_while_it_runs() {
    let world = with_pre_install("echo at once\nuntil [ -e ../../../go ]; do sleep 0.01; done\n");
    let mut child = start(&mut command(&world, &["install", "--hook-timeout", "30s"]));
    let mut lines = std::io::BufReader::new(child.stderr.take().unwrap()).lines();
    let first = lines.next().unwrap().unwrap();
    world.write("go", "");
    assert_eq!(first, "org.example/lint pre-install | at once");
    wait(child).expect(0);
}

#[test]
fn both_outputs_of_a_hook_go_to_standard_error_and_to_its_log_in_order() {
    let world = with_pre_install("echo one\necho two >&2\necho three\n");
    let shown = vibe(&world, &["--json", "install"]).expect(0);
    assert_eq!(shown.json()["ok"], true);
    let prefix = "org.example/lint pre-install |";
    assert_eq!(
        shown.stderr,
        format!("{prefix} one\n{prefix} two\n{prefix} three\n")
    );
    assert_eq!(
        read(newest_run(&world).join("org.example.lint.pre-install.log")),
        "one\ntwo\nthree\n"
    );
}

#[test]
fn a_process_that_a_hook_leaves_behind_is_named_and_left_running() {
    let world = with_pre_install("sleep 300 &\necho $! > ../../../pid\n");
    let since = std::time::Instant::now();
    let shown = vibe(&world, &["install"]).expect(0);
    assert!(since.elapsed().as_secs() < 20, "it was waited for");
    let pid = read(world.project().join("pid")).trim().to_owned();
    let alive = signal(&pid, "KILL");
    assert!(alive, "it was killed");
    let shown = shown
        .stderr_has("sleep")
        .stderr_has(&pid)
        .stderr_has("org.example/lint");
    let hook = &evidence(&world)["hooks"][0];
    assert_eq!(
        (&hook["left-running"], &hook["outcome"]),
        (&true.into(), &"ran".into()),
        "{}",
        shown.stderr
    );
    process_ends(&pid);
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
}

#[test]
fn a_hook_that_changes_agent_settings_is_warned_of() {
    let world = World::new();
    lint("1.0.0")
        .hook(
            Phase::PreInstall,
            "mkdir -p ../../../.claude && echo '{}' > ../../../.claude/settings.json\n",
        )
        .hook(
            Phase::PostInstall,
            "mkdir -p ../../../.mind && echo '{}' > ../../../.mind/hooks.json\n",
        )
        .publish(&world.registry());
    world.require(&[("org.example/lint", "*")]);
    vibe(&world, &["install"])
        .expect(0)
        .stderr_has(
            "warning: the pre-install script of org.example/lint changed .claude/settings.json",
        )
        .stderr_has(
            "warning: the post-install script of org.example/lint changed .mind/hooks.json",
        );
    let expected = serde_json::json!([".claude/settings.json", ".mind/hooks.json"]);
    assert_eq!(evidence(&world)["changed-agent-settings"], expected);
}

#[test]
fn an_inner_install_is_refused_at_once_and_the_outer_one_goes_on() {
    let world = World::new();
    let inner = "\"$VIBE_EXECUTABLE\" --project ../../.. install > inner 2>&1; echo $? > code\n\
                 \"$VIBE_EXECUTABLE\" --project ../../.. list > listed || exit 7\n";
    lint("1.0.0")
        .hook(Phase::PreInstall, inner)
        .hook(Phase::PostInstall, inner)
        .publish(&world.registry());
    world.require(&[("org.example/lint", "*")]);
    vibe(&world, &["install"]).expect(0);
    let slot = lint_slot(&world, "1.0.0");
    assert_eq!(read(slot.join("code")), "1\n");
    let refusal = read(slot.join("inner"));
    assert!(refusal.contains("may not run `vibe install`"), "{refusal}");
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
    vibe(&world, &["verify"]).expect(0);
}

#[test]
fn a_hook_may_install_into_another_project() {
    let world = with_pre_install(
        "mkdir ../../../../other && cd ../../../../other && printf '[project]\\nname = \"other\"\\n' > vibe.toml &&\n\
         \"$VIBE_EXECUTABLE\" install\n",
    );
    vibe(&world, &["install"]).expect(0);
}

fn odd_slot() -> World {
    with_pre_install(
        "ln -s ../../../outside link\nln -s nowhere dangling\nmkfifo pipe\nmkdir many\n\
         (cd many && seq -f 'f%06.0f' 50000 | xargs touch)\n\
         mkdir repo && git -c init.defaultBranch=main init -q repo\n",
    )
}

#[test]
#[cfg(target_os = "linux")]
fn whatever_a_hook_leaves_in_its_slot_is_neither_followed_nor_waited_for() {
    let world = odd_slot();
    world.write("outside/kept.txt", "kept\n");
    vibe(&world, &["install"]).expect(0);
    let old = lint_slot(&world, "1.0.0");
    vibe(&world, &["verify"]).expect(0);
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
    lint("1.1.0").publish(&world.registry());
    vibe(&world, &["install", "org.example/lint@^1.1"]).expect(0);
    assert!(!old.exists(), "{}", TreeSnapshot::of(&old).entries.len());
    assert_eq!(world.read("outside/kept.txt"), "kept\n");
}

#[test]
#[cfg(target_os = "linux")]
fn a_hook_may_nest_directories_deeper_than_a_path_reaches() {
    let world = with_pre_install(
        "rm -rf made; mkdir made; cd made\nname=$(printf 'd%.0s' {1..250})\n\
         for level in {1..40}; do mkdir $name && cd $name || exit; done\n",
    );
    vibe(&world, &["install"]).expect(0);
    vibe(&world, &["verify"]).expect(0);
    vibe(&world, &["install"])
        .expect(0)
        .stdout_has("nothing to do");
    vibe(&world, &["reinstall", "--force"]).expect(0);
    world.require(&[]);
    vibe(&world, &["install"]).expect(0);
    assert!(!lint_slot(&world, "1.0.0").exists());
}

#[test]
fn what_a_hook_made_survives_a_repair_and_the_user_s_files_survive_the_removal() {
    let world = with_pre_install(
        "ln -sfn ../../../outside link\n[ -p pipe ] || mkfifo pipe\nmkdir -p made; touch made/file\n",
    );
    world.write("outside/kept.txt", "kept\n");
    vibe(&world, &["install"]).expect(0);
    let slot = lint_slot(&world, "1.0.0");
    fs::write(slot.join("mine.txt"), "mine\n").unwrap();
    fs::remove_file(slot.join("lint.md")).unwrap();
    vibe(&world, &["verify", "--repair"]).expect(0);
    assert_eq!(read(slot.join("lint.md")), "lint\n");
    assert!(slot.join("made/file").exists() && slot.join("link").is_symlink());
    world.require(&[]);
    vibe(&world, &["install"]).expect(0).stderr_has("mine.txt");
    let left = TreeSnapshot::of(&slot);
    assert_eq!(left.entries.keys().collect::<Vec<_>>(), ["mine.txt"]);
    assert_eq!(world.read("outside/kept.txt"), "kept\n");
}

#[test]
fn a_script_that_changed_since_the_plan_is_not_started() {
    let world = World::new();
    PackageBuilder::new("org.example/evil", "1.0.0")
        .hook(Phase::PreInstall, "true\n")
        .hook(
            Phase::PostInstall,
            "echo 'touch ../../../pwned' > ../../org.example.lint/1.0.0/hooks/post-install.sh\n",
        )
        .publish(&world.registry());
    lint("1.0.0")
        .depends("org.example/evil", "*")
        .hook(Phase::PostInstall, "true\n")
        .publish(&world.registry());
    world.require(&[("org.example/lint", "*")]);
    vibe(&world, &["install"])
        .expect(5)
        .stderr_has("not as published")
        .stderr_has("vibe reinstall --force org.example/lint");
    assert!(!world.project().join("pwned").exists());
    vibe(&world, &["reinstall", "--force", "org.example/lint"]).expect(0);
    assert_eq!(
        read(slot(&world, "org.example/lint", "1.0.0").join("hooks/post-install.sh")),
        "true\n"
    );
}

#[test]
fn every_hook_is_a_record_in_the_json_document() {
    let world = World::new();
    lint("1.0.0")
        .hook(Phase::PreInstall, "true\n")
        .hook(Phase::PostInstall, "exit 3\n")
        .publish(&world.registry());
    world.require(&[("org.example/lint", "*")]);
    let document = vibe(&world, &["--json", "install"]).expect(5).json();
    let hooks = document["result"]["hooks"].as_array().unwrap();
    let told: Vec<_> = hooks
        .iter()
        .map(|hook| (&hook["phase"], &hook["outcome"], &hook["exit-code"]))
        .collect();
    let (pre, post, ran, failed) = (
        "pre-install".into(),
        "post-install".into(),
        "ran".into(),
        "failed".into(),
    );
    assert_eq!(told, [(&pre, &ran, &0.into()), (&post, &failed, &3.into())]);
    assert_eq!(hooks[0]["reason"], "install");
    assert!(hooks[0]["interpreter"].as_str().unwrap().ends_with("/bash"));
}
