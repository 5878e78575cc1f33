//! Commands that are printed can be pasted: a shell reads the words that were meant.

use std::process::Command;

use proptest::prelude::*;
use vibe_core::text::{escape, shell_quote};
use vibe_testkit::World;

use crate::support::{command_in, run, vibe};

/// The words that `shell` makes of `line`.
fn words(shell: &str, locale: &str, line: &str) -> Vec<String> {
    let output = Command::new(shell)
        .args(["-c", &format!("printf '%s\\0' {line}")])
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("LC_ALL", locale)
        .output()
        .unwrap();
    assert!(output.status.success(), "{line}");
    let text = String::from_utf8(output.stdout).unwrap();
    text.split_terminator('\0').map(str::to_owned).collect()
}

fn pasted(words: &[String]) -> String {
    let quoted: Vec<String> = words.iter().map(|word| shell_quote(word)).collect();
    quoted.join(" ")
}

/// What names and paths may hold that a shell acts on, and everything else.
fn word() -> impl Strategy<Value = String> {
    let acted_on = "[ -~]{0,12}|[*?~#!$`'\"\\\\(){};&|<> ^=%-]{0,8}|-?[a-z^=~]{1,4}";
    let any = any::<String>().prop_map(|text| text.replace('\0', "\n"));
    prop_oneof![acted_on, any, "[a\u{202e}\u{200b}\t\n\u{1b}0-9]{0,6}"]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn a_shell_reads_the_words_that_were_meant(given in prop::collection::vec(word(), 1..24)) {
        let line = pasted(&given);
        prop_assert_eq!(&escape(&line), &line, "nothing in it acts on a terminal");
        for locale in ["C", "C.UTF-8"] {
            prop_assert_eq!(&words("bash", locale, &line), &given);
        }
        // `$'…'` is younger than many a plain shell.
        let plain: Vec<String> = given.into_iter().filter(|word| escape(word) == *word).collect();
        if !plain.is_empty() {
            prop_assert_eq!(&words("sh", "C", &pasted(&plain)), &plain);
        }
    }
}

/// The commands after `hint:` in `stderr`: what stands after the last colon.
fn hinted(stderr: &str) -> Vec<String> {
    let hints = stderr
        .lines()
        .filter_map(|line| line.strip_prefix("hint: "));
    let commands =
        hints.filter_map(|hint| hint.find(": vibe ").map(|at| hint[at + 2..].to_owned()));
    commands.collect()
}

#[test]
fn a_hint_for_an_odd_directory_leads_there() {
    let world = World::new();
    for name in [
        "a b",
        "it's",
        "$(id)",
        "tab\there",
        "\u{202e}x",
        "-x",
        "a^b",
    ] {
        let directory = world.root().join(name);
        std::fs::create_dir(&directory).unwrap();
        let text = directory.to_str().unwrap();
        let failed = vibe(&world, &["--project", text, "list"]).expect(2);
        let expected = ["vibe", "--project", text, "init"];
        assert_eq!(hinted(&failed.stderr).len(), 1, "{}", failed.stderr);
        assert_eq!(words("bash", "C", &hinted(&failed.stderr)[0]), expected);
        std::fs::write(
            directory.join("vibe.toml"),
            "[package]\ngroup = \"a.b\"\nname = \"c\"\nversion = \"1.0.0\"\n",
        )
        .unwrap();
        let failed = run(&mut command_in(&world, &directory, &["install"])).expect(2);
        let spec = format!("path:{text}");
        let expected = ["vibe", "install", &spec];
        assert_eq!(words("bash", "C", &hinted(&failed.stderr)[0]), expected);
    }
}
