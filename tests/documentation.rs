//! The pages: their examples are valid, and their links lead somewhere.

use std::path::{Path, PathBuf};

use crate::support::read;
use vibe_core::formats::config::UserConfig;
use vibe_core::formats::lock::Lock;
use vibe_core::formats::manifest::{Manifest, Reading};
use vibe_core::formats::record::SlotRecord;
use vibe_core::formats::state::MachineState;

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
    let lock = Lock::parse(&example("vibe.lock")).unwrap();
    assert_eq!(lock.packages.len(), 2);
    let record = SlotRecord::parse(&example("Slot record")).unwrap();
    assert_eq!(
        lock.get(&record.package).unwrap().tree,
        Some(record.tree.id())
    );
    let state = MachineState::parse(&example("Machine state")).unwrap();
    assert_eq!(state.slots.len(), 1);
    let (_, warnings) = UserConfig::parse(&example("config.toml")).unwrap();
    assert!(warnings.is_empty(), "{warnings:?}");
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
            let path = page.parent().unwrap().join(target);
            assert!(path.exists(), "{}: {target}", page.display());
            links += 1;
        }
    }
    assert!(links > 5, "only {links} links were found");
}
