//! The scripts of install hooks: whether they are there, for which systems, and what bash and
//! PowerShell make of their bytes.

use std::collections::BTreeSet;

use vibe_core::RelPath;
use vibe_core::hook::Phase;
use vibe_core::text::{escape, shorten};

use super::{LintFinding, LintInput};
use crate::selection::{
    POWERSHELL_SUFFIX, SHELL_SUFFIX, ScriptError, SelectionError, check_script_text, script_paths,
};

/// Characters of a script's first line that are shown.
const SHOWN: usize = 40;

/// What is wrong with the scripts of the declared phases.
pub(super) fn findings(input: &LintInput<'_>) -> Vec<LintFinding> {
    let scripts = &input.package.hooks.scripts;
    let mut found = Vec::new();
    for (phase, base) in scripts {
        found.extend(presence(input, *phase, base));
    }
    // Two phases may share a script.
    let paths: BTreeSet<RelPath> = scripts.values().flat_map(script_paths).collect();
    for path in paths {
        let Some(bytes) = input.contents.get(&path) else {
            continue;
        };
        let of_script = match path.as_str().ends_with(SHELL_SUFFIX) {
            true => shell(&path, bytes),
            false => powershell(bytes),
        };
        found.extend(of_script.into_iter().map(|it| it.of(path.as_str())));
    }
    found
}

fn presence(input: &LintInput<'_>, phase: Phase, base: &RelPath) -> Vec<LintFinding> {
    let place = input.position(&["hooks", phase.as_str()]);
    let paths = [SHELL_SUFFIX, POWERSHELL_SUFFIX].map(|suffix| base.with_suffix(suffix).ok());
    let ships = |path: &Option<RelPath>| {
        let path = path.as_ref();
        path.is_some_and(|path| input.files.contains_key(path))
    };
    let [has_shell, has_powershell] = [ships(&paths[0]), ships(&paths[1])];
    let mut found: Vec<LintFinding> = paths
        .iter()
        .flatten()
        .filter_map(|path| not_as_it_should_be(input, phase, path))
        .collect();
    let is_explained = !found.is_empty();
    match (has_shell, has_powershell) {
        (true, true) => {}
        (false, false) if is_explained => {}
        (false, false) => found.push(neither(input, phase, base)),
        (true, false) => found.push(LintFinding::warning(
            "no-powershell-script",
            format!(
                "on Windows without Git Bash there is no {phase} script, so the package cannot be \
                 installed there"
            ),
            format!("add `{base}{POWERSHELL_SUFFIX}`, which does the same"),
        )),
        (false, true) => found.push(LintFinding::warning(
            "no-shell-script",
            format!(
                "on Linux and macOS there is no {phase} script, so the package cannot be installed \
                 there"
            ),
            format!("add `{base}{SHELL_SUFFIX}`, which does the same"),
        )),
    }
    found.into_iter().map(|it| it.at(place)).collect()
}

/// A script that is there in another way than as a file that ships.
fn not_as_it_should_be(input: &LintInput<'_>, phase: Phase, path: &RelPath) -> Option<LintFinding> {
    if input.has_directory(path) {
        return Some(LintFinding::error(
            "script-is-a-directory",
            format!("the {phase} script `{path}` is a directory"),
            "put the script itself there",
        ));
    }
    input.left_out.contains(path).then(|| {
        LintFinding::error(
            "script-left-out",
            format!("the {phase} script `{path}` is there, but does not ship"),
            "take it out of `.vibeignore` or `.gitignore`",
        )
    })
}

fn neither(input: &LintInput<'_>, phase: Phase, base: &RelPath) -> LintFinding {
    let missing = SelectionError::Missing {
        phase,
        base: base.clone(),
        is_directory: input.has_directory(base),
    };
    let near = [SHELL_SUFFIX, POWERSHELL_SUFFIX]
        .iter()
        .filter_map(|suffix| base.with_suffix(suffix).ok())
        .find_map(|path| input.other_case(&path));
    let remedy = match near {
        Some(near) => format!("upper and lower case count: did you mean `{near}`?"),
        None => "add both scripts, or take the line out".to_owned(),
    };
    LintFinding::error("missing-script", missing.to_string(), remedy)
}

fn shell(path: &RelPath, bytes: &[u8]) -> Vec<LintFinding> {
    match check_script_text(path, bytes) {
        Err(ScriptError::CarriageReturn { line, .. }) => {
            return vec![
                LintFinding::error(
                    "line-ends",
                    "Windows line ends (CRLF), which bash misreads",
                    "save it with LF line ends, and write `*.sh eol=lf` into `.gitattributes`",
                )
                .at_line(line),
            ];
        }
        Err(ScriptError::ByteOrderMark { .. }) => {
            return vec![LintFinding::error(
                "byte-order-mark",
                "it begins with a byte order mark, which bash misreads",
                "save it as UTF-8 without BOM",
            )];
        }
        Ok(()) => {}
    }
    if bytes.contains(&0) {
        return vec![no_text("bash")];
    }
    let text = String::from_utf8_lossy(bytes);
    if text.trim().is_empty() {
        return vec![empty()];
    }
    let mut found = Vec::new();
    found.extend(other_interpreter(&text));
    if !text.lines().any(stops_at_failures) {
        found.push(LintFinding::warning(
            "goes-on-after-failure",
            "without `set -e` it goes on after a command that failed, and may end as if all were well",
            "write `set -eu` before its first command; an option in the `#!` line does not count",
        ));
    }
    found
}

fn no_text(interpreter: &str) -> LintFinding {
    LintFinding::error(
        "no-text",
        format!("it has zero bytes, as UTF-16 has, which {interpreter} misreads"),
        "save it as UTF-8",
    )
}

fn empty() -> LintFinding {
    LintFinding::warning(
        "empty-script",
        "the script is empty",
        "take its phase out of [hooks], or write the script",
    )
}

/// What the first line names, where that is no shell of the Bourne family.
fn other_interpreter(text: &str) -> Option<LintFinding> {
    let named = text.lines().next()?.strip_prefix("#!")?.trim();
    let words = named.split_whitespace();
    let mut programs = words.filter_map(|word| word.rsplit('/').next());
    let is_shell = programs.any(|program| matches!(program, "bash" | "sh"));
    (!is_shell).then(|| {
        LintFinding::warning(
            "other-interpreter",
            format!(
                "vibe runs it with bash, not with `{}`",
                escape(&shorten(named, SHOWN))
            ),
            "call that program from a script for bash",
        )
        .at_line(1)
    })
}

/// Whether a line switches on that the script ends at the first failure.
fn stops_at_failures(line: &str) -> bool {
    let mut commands = line.split([';', '&', '|']);
    commands.any(|command| {
        let mut words = command.split_whitespace();
        let is_flag = |word: &str| {
            let letters = word.strip_prefix('-').unwrap_or_default();
            word == "errexit" || (!letters.starts_with('-') && letters.contains('e'))
        };
        words.next() == Some("set") && words.any(is_flag)
    })
}

fn powershell(bytes: &[u8]) -> Vec<LintFinding> {
    let Some((text, has_mark)) = powershell_text(bytes) else {
        return vec![no_text("PowerShell")];
    };
    if text.trim().is_empty() {
        return vec![empty()];
    }
    let mut found = Vec::new();
    let odd = text.lines().position(|line| !line.is_ascii());
    if let (false, Some(index)) = (has_mark, odd) {
        found.push(
            LintFinding::warning(
                "not-ascii",
                "Windows PowerShell 5.1 misreads what is not ASCII in a script without a byte order mark",
                "save it as UTF-8 with BOM, or keep to ASCII",
            )
            .at_line(index + 1),
        );
    }
    let plain: String = text.to_lowercase().split_whitespace().collect();
    let is_set = |value: &str| plain.contains(&format!("$erroractionpreference={value}"));
    if !["'stop'", "\"stop\"", "stop"].into_iter().any(is_set) {
        found.push(LintFinding::warning(
            "goes-on-after-failure",
            "without `$ErrorActionPreference = 'Stop'` it goes on after a command that failed, and may end as if all were well",
            "begin it with `$ErrorActionPreference = 'Stop'`",
        ));
    }
    found
}

/// The text of a script and whether it has a byte order mark; `None` where PowerShell sees none.
fn powershell_text(bytes: &[u8]) -> Option<(String, bool)> {
    let utf_16 = |of: fn([u8; 2]) -> u16| {
        let pairs = bytes[2..].chunks_exact(2);
        let units: Vec<u16> = pairs.map(|pair| of([pair[0], pair[1]])).collect();
        Some((String::from_utf16_lossy(&units), true))
    };
    match bytes {
        [0xFF, 0xFE, ..] => utf_16(u16::from_le_bytes),
        [0xFE, 0xFF, ..] => utf_16(u16::from_be_bytes),
        [0xEF, 0xBB, 0xBF, rest @ ..] => Some((String::from_utf8_lossy(rest).into_owned(), true)),
        plain if plain.contains(&0) => None,
        plain => Some((String::from_utf8_lossy(plain).into_owned(), false)),
    }
}
