//! The pages: their examples are valid, their links lead somewhere, and what they say to type does
//! what they say.

use std::path::{Path, PathBuf};

use crate::support::read;
#[cfg(unix)]
use crate::support::{VIBE, redacted, run};
use vibe_core::formats::config::UserConfig;
use vibe_core::formats::lock::Lock;
use vibe_core::formats::manifest::{Manifest, Reading};
use vibe_core::formats::projections::Projections;
use vibe_core::formats::record::SlotRecord;
use vibe_core::formats::state::MachineState;
#[cfg(unix)]
use vibe_testkit::World;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// The example under the heading `title` of docs/formats.md.
fn example(title: &str) -> String {
    let page = read(root().join("docs/formats.md"));
    let mut sections = page.split("\n## ");
    let section = sections
        .find(|section| section.lines().next() == Some(title))
        .unwrap();
    let example = section.split_once("```toml\n").unwrap().1;
    example.split_once("```").unwrap().0.to_owned()
}

#[test]
fn the_examples_of_formats_are_valid() {
    for title in ["vibe.toml of a project", "vibe.toml of a package"] {
        let manifest = Manifest::parse(&example(title), Reading::Own).unwrap();
        assert!(
            manifest.warnings.is_empty(),
            "{title}: {:?}",
            manifest.warnings
        );
        assert!(!manifest.requires.is_empty(), "{title}");
    }
    let workspace = Manifest::parse(&example("Workspaces"), Reading::Own).unwrap();
    let members = workspace.workspace.unwrap().members;
    assert_eq!((members.len(), workspace.warnings.len()), (2, 0));
    let projections = Projections::parse(&example("Boot text")).unwrap();
    assert_eq!(projections.paths.len(), 1);
    let lock = Lock::parse(&example("vibe.lock")).unwrap();
    assert_eq!(lock.packages.len(), 3);
    let record = SlotRecord::parse(&example("Slot record")).unwrap();
    assert_eq!(
        lock.get(&record.package).unwrap().tree,
        Some(record.tree.id())
    );
    let state = MachineState::parse(&example("Machine state")).unwrap();
    assert_eq!((state.slots.len(), state.clones.len()), (2, 1));
    let (config, warnings) = UserConfig::parse(&example("config.toml")).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
    assert_eq!(config.insecure_hosts, ["git.intranet.example"]);
}

/// What is not a whole file, as a part of one.
#[test]
fn every_example_of_a_page_in_toml_is_toml() {
    let mut examples = 0;
    for page in pages() {
        let text = read(&page);
        for (kind, example) in blocks(&text) {
            if kind == "toml" {
                let read = example.parse::<toml::Table>();
                assert!(read.is_ok(), "{}: {read:?}", page.display());
                examples += 1;
            }
        }
    }
    assert!(examples > 10, "only {examples} were found");
}

#[test]
fn the_examples_of_git_are_valid() {
    let page = read(root().join("docs/git.md"));
    let blocks = blocks(&page);
    let examples: Vec<&str> = blocks
        .iter()
        .filter_map(|(kind, text)| (*kind == "toml").then_some(*text))
        .collect();
    let [requirements, bridge, config] = examples[..] else {
        panic!("{examples:?}");
    };
    let project = format!("[project]\nname = \"p\"\n{requirements}");
    let project = Manifest::parse(&project, Reading::Own).unwrap();
    assert_eq!((project.requires.len(), project.warnings.len()), (4, 0));
    let bridge = Manifest::parse(bridge, Reading::Own).unwrap();
    assert!(bridge.package.unwrap().bridge && bridge.warnings.is_empty());
    let (config, warnings) = UserConfig::parse(config).unwrap();
    assert_eq!((config.insecure_hosts.len(), warnings.len()), (2, 0));
}

/// The blocks of a page between fences, each with the word after its first fence.
fn blocks(page: &str) -> Vec<(&str, &str)> {
    let fenced = page.split("```").skip(1).step_by(2);
    fenced
        .map(|block| block.split_once('\n').unwrap())
        .collect()
}

/// The shell blocks of a page as one script: it ends at the first command that does not end as the
/// page says, and says which block it is in.
#[cfg(unix)]
fn script(blocks: &[(&str, &str)]) -> String {
    let mut script = "set -euo pipefail\nexec 2>&1\n".to_owned();
    for (number, (_, text)) in blocks.iter().enumerate().filter(|(_, b)| is_typed(b.0)) {
        script += &format!("echo '{BLOCK}{number}'\n");
        for line in text.lines() {
            let line = match line.split_once("# exit ") {
                Some((command, code)) => format!(
                    "code=0; {{ {command}; }} || code=$?; echo \"ended with $code\"; test \"$code\" = {code}"
                ),
                None => line.to_owned(),
            };
            script += &format!("{line}\n");
        }
    }
    script
}

/// Whether a block of this kind is typed: `sh`, and `sh PROGRAM` where there is that program.
#[cfg(unix)]
fn is_typed(kind: &str) -> bool {
    let program = kind.strip_prefix("sh ").unwrap_or("sh");
    let path = std::env::var_os("PATH").unwrap();
    let is_there = std::env::split_paths(&path).any(|directory| directory.join(program).is_file());
    if kind.starts_with("sh ") && !is_there {
        eprintln!("skipped: there is no {program} on this machine");
    }
    kind == "sh" || kind.starts_with("sh ") && is_there
}

/// The line before what a block prints.
#[cfg(unix)]
const BLOCK: &str = "== block ";

/// Someone's git configuration that changes what the git program does wherever it is read.
#[cfg(unix)]
const SOMEBODYS: &str = "[user]\nuseConfigOnly = true\n[commit]\ngpgSign = true\n[core]\nautocrlf = true\nhooksPath = /nowhere\n[init]\ndefaultBranch = trunk\n[protocol \"file\"]\nallow = never\n";

#[cfg(unix)]
#[test]
fn the_page_on_git_does_what_it_says() {
    replay("docs/git.md");
}

#[cfg(unix)]
#[test]
fn the_page_on_ci_does_what_it_says() {
    replay("docs/ci.md");
}

#[cfg(unix)]
#[test]
fn the_page_on_install_hooks_does_what_it_says() {
    replay("docs/install-hooks.md");
}

/// Types the shell blocks of `page` into one bash, in an empty directory of somebody whose git is
/// set up in an odd way, and asserts that every line of its `text` blocks was printed.
#[cfg(unix)]
fn replay(page: &str) {
    let world = World::new();
    std::fs::write(world.home().join(".gitconfig"), SOMEBODYS).unwrap();
    let page = read(root().join(page));
    let blocks = blocks(&page);
    let programs = Path::new(VIBE).parent().unwrap().to_str().unwrap();
    let path = format!("{programs}:{}", std::env::var("PATH").unwrap());
    let mut bash = std::process::Command::new("bash");
    bash.args(["-c", &script(&blocks)])
        .current_dir(world.root())
        .env_clear()
        .env("PATH", path)
        .env("HOME", world.home())
        .env("TMPDIR", world.root())
        .stdin(std::process::Stdio::null());
    let printed = run(&mut bash).expect(0).stdout;
    let shown = lines_shown(&blocks, &world, &redacted(&world, &printed));
    assert!(shown > 10, "only {shown} lines are shown");
}

/// How many lines the `text` blocks have; each is in what the shell block before it printed.
#[cfg(unix)]
fn lines_shown(blocks: &[(&str, &str)], world: &World, printed: &str) -> usize {
    let mut shown = 0;
    let mut output = Vec::new();
    for (number, (kind, text)) in blocks.iter().enumerate() {
        if *kind != "text" {
            let start = format!("{number}\n");
            let part = printed.split(BLOCK).find(|part| part.starts_with(&start));
            output = part.map_or(Vec::new(), |part| part.lines().collect());
        }
        if *kind != "text" || output.is_empty() {
            continue;
        }
        for line in redacted(world, text).lines() {
            assert!(output.contains(&line), "no {line:?} in {output:#?}");
            shown += 1;
        }
    }
    shown
}

/// Every page.
fn pages() -> Vec<PathBuf> {
    let pages = std::fs::read_dir(root().join("docs"))
        .unwrap()
        .map(|entry| entry.unwrap().path());
    let pages = pages.filter(|path| path.extension().is_some_and(|extension| extension == "md"));
    let others = [
        "README.md",
        "CHANGELOG.md",
        "docs/quickstart/project/README.md",
    ];
    pages.chain(others.map(|page| root().join(page))).collect()
}

/// The words of a page outside its examples, names of commands and links.
fn words(page: &str) -> Vec<String> {
    let prose: String = page.split("```").step_by(2).collect();
    let prose: Vec<&str> = prose.split('`').step_by(2).collect();
    let prose = prose.join(" ` ").replace("](", "] ](");
    let words = prose
        .split_whitespace()
        .filter(|word| !word.starts_with("]("));
    words
        .map(|word| word.trim_matches(|c: char| !c.is_alphanumeric() && c != '`'))
        .map(str::to_lowercase)
        .collect()
}

#[test]
fn no_page_says_hook_alone() {
    let mut hooks = 0;
    for page in pages() {
        let words = words(&read(&page));
        for at in (1..words.len()).filter(|at| ["hook", "hooks"].contains(&&*words[*at])) {
            let next = words.get(at + 1).map_or("", String::as_str);
            let is_command = page.ends_with("json.md") && ["list", "log", "run"].contains(&next);
            let around = words[at - 1..].iter().take(3).cloned().collect::<Vec<_>>();
            assert!(
                is_command || ["install", "agent"].contains(&&*words[at - 1]),
                "{}: {around:?}",
                page.display()
            );
            hooks += 1;
        }
    }
    assert!(hooks > 20, "only {hooks} were found");
}

#[test]
fn links_between_pages_lead_to_files() {
    let mut links = 0;
    for page in pages() {
        for link in read(&page).split("](").skip(1) {
            let target = link.split_once(')').unwrap().0;
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let path = match path {
                "" => page.clone(),
                path => page.parent().unwrap().join(path),
            };
            assert!(path.exists(), "{}: {target}", page.display());
            let is_there = anchor.is_empty() || anchors(&read(&path)).any(|found| found == anchor);
            assert!(is_there, "{}: {target}", page.display());
            links += 1;
        }
    }
    assert!(links > 5, "only {links} links were found");
}

#[test]
fn the_modules_that_pages_name_exist() {
    let mut named = 0;
    for page in pages() {
        let page = read(page);
        let code = page.split('`').skip(1).step_by(2);
        for path in code.filter(|code| code.starts_with("vibe-") && code.contains("::")) {
            assert_module(path);
            named += 1;
        }
    }
    assert!(named > 10, "only {named} were found");
    let page = read(root().join("docs/architecture.md"));
    let rows = page.split_once("| module |").unwrap().1.lines().skip(2);
    let rows: Vec<&str> = rows.take_while(|row| row.starts_with('|')).collect();
    assert!(rows.len() > 5, "{rows:?}");
    for row in rows {
        let modules = row.split('|').nth(1).unwrap();
        for module in modules.split('`').skip(1).step_by(2) {
            assert_module(&format!("vibe-install::{module}"));
        }
    }
}

/// Asserts that `path`, as `vibe-plan::selection::select`, names a module, or an item of one.
#[track_caller]
fn assert_module(path: &str) {
    let mut names = path.split("::");
    let mut at = root()
        .join("crates")
        .join(names.next().unwrap())
        .join("src");
    let mut text = String::new();
    for name in names {
        let file = at.join(format!("{name}.rs"));
        if file.is_file() {
            text = read(&file);
            at = at.join(name);
        } else if at.join(name).is_dir() {
            at = at.join(name);
        } else {
            let items = ["(", "<"].map(|after| format!("fn {name}{after}"));
            assert!(items.iter().any(|item| text.contains(item)), "{path}");
        }
    }
}

#[test]
fn each_job_of_the_page_on_ci_installs_what_is_locked_and_proves_it() {
    let page = read(root().join("docs/ci.md"));
    let blocks = blocks(&page);
    let jobs: Vec<&str> = blocks
        .iter()
        .filter_map(|(kind, text)| (*kind == "yaml").then_some(*text))
        .collect();
    assert_eq!(jobs.len(), 2, "GitHub Actions and GitLab");
    for job in jobs {
        let lines: Vec<&str> = job.lines().map(str::trim).collect();
        let at = |command: &str| lines.iter().position(|line| line.ends_with(command));
        let (install, verify) = (at(" vibe install --locked"), at(" vibe verify"));
        assert!(install.is_some() && install < verify, "{job}");
        assert!(!job.contains('\t'), "YAML is indented with spaces");
    }
}

/// What the headings of a page are called in links.
fn anchors(page: &str) -> impl Iterator<Item = String> {
    let titles = page.lines().filter(|line| line.starts_with('#'));
    titles.map(|line| {
        let title = line.trim_start_matches('#').trim().to_lowercase();
        let kept = |c: &char| c.is_alphanumeric() || matches!(c, ' ' | '-' | '_');
        title
            .chars()
            .filter(kept)
            .collect::<String>()
            .replace(' ', "-")
    })
}

#[test]
fn the_workflow_runs_the_whole_check_on_three_systems_with_the_toolchain_of_the_manifest() {
    let workflow = read(root().join(".github/workflows/ci.yml"));
    let manifest = read(root().join("Cargo.toml"));
    let version = manifest.split_once("rust-version = \"").unwrap().1;
    let version = version.split_once('"').unwrap().0;
    assert!(root().join(".ci/run").is_file());
    let lines: Vec<&str> = workflow.lines().map(str::trim).collect();
    for line in [
        "run: .ci/run",
        "system: [ubuntu-latest, macos-latest, windows-latest]",
        "contents: read",
        &format!("rustup default {version}"),
    ] {
        assert!(lines.contains(&line), "no line {line:?}");
    }
    assert!(!workflow.contains("secrets."), "it needs none");
    let actions = lines.iter().filter_map(|line| line.split_once("uses: "));
    let actions: Vec<&str> = actions.map(|(_, action)| action).collect();
    assert!(!actions.is_empty());
    for action in actions {
        let version = action.split_once("@v").map(|(_, version)| version);
        let is_major = version.is_some_and(|text| text.parse::<u8>().is_ok());
        assert!(is_major, "{action} names no major version");
    }
}
