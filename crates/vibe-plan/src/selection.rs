//! Which script of a package runs at a phase, and with which interpreter.
//!
//! Everything here is a function of the operating system's family, the files of the published tree
//! and the interpreters found, so the choice for every system is tested on every system.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

use vibe_core::hook::{HostOs, Interpreter, Interpreters, Phase, SelectedHook};
use vibe_core::text::escape;
use vibe_core::{RelPath, Sha256Digest, Tree, TreeRow};

/// What a script for bash is called.
pub(crate) const SHELL_SUFFIX: &str = ".sh";
/// What a script for PowerShell is called.
pub(crate) const POWERSHELL_SUFFIX: &str = ".ps1";

/// Why no script can be selected for a declared phase.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SelectionError {
    /// The package has neither script.
    #[error(
        "the {phase} script is missing: the package has neither `{base}{SHELL_SUFFIX}` nor \
         `{base}{POWERSHELL_SUFFIX}`{}",
        directory_note(base, *is_directory)
    )]
    Missing {
        /// The declared phase.
        phase: Phase,
        /// The declared path without extension.
        base: RelPath,
        /// Whether the base itself is a directory of the package.
        is_directory: bool,
    },
    /// Only a PowerShell script, on a system that runs shell scripts.
    #[error(
        "the {phase} script `{base}{POWERSHELL_SUFFIX}` runs on Windows only: on this system the \
         package needs `{base}{SHELL_SUFFIX}`"
    )]
    WindowsOnly {
        /// The declared phase.
        phase: Phase,
        /// The declared path without extension.
        base: RelPath,
    },
    /// A shell script on Unix, and no `bash`.
    #[error(
        "the {phase} script `{script}` needs bash, which was not found: install bash, or add its \
         directory to PATH"
    )]
    NoBash {
        /// The declared phase.
        phase: Phase,
        /// The script that cannot be run.
        script: RelPath,
    },
    /// A shell script only on Windows, and no Git Bash.
    #[error(
        "the {phase} script `{script}` needs Git Bash, which was not found: install Git for \
         Windows{}",
        stub_note(stubs)
    )]
    NoGitBash {
        /// The declared phase.
        phase: Phase,
        /// The script that cannot be run.
        script: RelPath,
        /// The `bash` of WSL that was seen and not taken.
        stubs: Vec<PathBuf>,
    },
    /// A PowerShell script on Windows, no PowerShell, and no shell script that could run instead.
    #[error(
        "the {phase} script `{script}` needs PowerShell, which was not found: install PowerShell, \
         or add its directory to PATH"
    )]
    NoPowerShell {
        /// The declared phase.
        phase: Phase,
        /// The script that cannot be run.
        script: RelPath,
    },
    /// Both scripts on Windows, and nothing that runs either.
    #[error(
        "the {phase} script needs Git Bash for `{base}{SHELL_SUFFIX}` or PowerShell for \
         `{base}{POWERSHELL_SUFFIX}`, and neither was found: install Git for Windows{}",
        stub_note(stubs)
    )]
    NoWindowsInterpreter {
        /// The declared phase.
        phase: Phase,
        /// The declared path without extension.
        base: RelPath,
        /// The `bash` of WSL that was seen and not taken.
        stubs: Vec<PathBuf>,
    },
}

impl SelectionError {
    /// Whether this machine lacks a program, and the package nothing: then it can be installed
    /// with its hooks held back.
    pub fn is_missing_interpreter(&self) -> bool {
        match self {
            SelectionError::NoBash { .. }
            | SelectionError::NoGitBash { .. }
            | SelectionError::NoPowerShell { .. }
            | SelectionError::NoWindowsInterpreter { .. } => true,
            SelectionError::Missing { .. } | SelectionError::WindowsOnly { .. } => false,
        }
    }
}

fn directory_note(base: &RelPath, is_directory: bool) -> String {
    match is_directory {
        true => format!(" (`{base}` is a directory)"),
        false => String::new(),
    }
}

fn stub_note(stubs: &[PathBuf]) -> String {
    if stubs.is_empty() {
        return String::new();
    }
    let names: Vec<String> = stubs
        .iter()
        .map(|stub| format!("`{}`", escape(&stub.to_string_lossy())))
        .collect();
    format!(" ({} belongs to WSL and is not used)", names.join(", "))
}

/// The script of `phase` for `os`: `base` with an extension appended. Unix runs `.sh` with bash;
/// Windows runs `.sh` with Git Bash where that is found, and `.ps1` with PowerShell otherwise.
pub fn select(
    os: HostOs,
    phase: Phase,
    base: &RelPath,
    tree: &Tree,
    interpreters: &Interpreters,
) -> Result<SelectedHook, SelectionError> {
    let shell = script_row(base, SHELL_SUFFIX, tree);
    let powershell = script_row(base, POWERSHELL_SUFFIX, tree);
    if shell.is_none() && powershell.is_none() {
        return Err(SelectionError::Missing {
            phase,
            base: base.clone(),
            is_directory: tree.has_directory(base),
        });
    }
    match os {
        HostOs::Unix => select_on_unix(phase, base, shell, interpreters),
        HostOs::Windows => runnable(phase, shell, Interpreter::Bash, &interpreters.bash)
            .or_else(|| {
                runnable(
                    phase,
                    powershell,
                    Interpreter::PowerShell,
                    &interpreters.powershell,
                )
            })
            .ok_or_else(|| no_windows_interpreter(phase, base, shell, powershell, interpreters)),
    }
}

fn select_on_unix(
    phase: Phase,
    base: &RelPath,
    shell: Option<&TreeRow>,
    interpreters: &Interpreters,
) -> Result<SelectedHook, SelectionError> {
    let Some(script) = shell else {
        return Err(SelectionError::WindowsOnly {
            phase,
            base: base.clone(),
        });
    };
    runnable(phase, shell, Interpreter::Bash, &interpreters.bash).ok_or_else(|| {
        SelectionError::NoBash {
            phase,
            script: script.path.clone(),
        }
    })
}

fn no_windows_interpreter(
    phase: Phase,
    base: &RelPath,
    shell: Option<&TreeRow>,
    powershell: Option<&TreeRow>,
    interpreters: &Interpreters,
) -> SelectionError {
    let stubs = interpreters.refused_bash.clone();
    match (shell, powershell) {
        (Some(script), None) => SelectionError::NoGitBash {
            phase,
            script: script.path.clone(),
            stubs,
        },
        (None, Some(script)) => SelectionError::NoPowerShell {
            phase,
            script: script.path.clone(),
        },
        _ => SelectionError::NoWindowsInterpreter {
            phase,
            base: base.clone(),
            stubs,
        },
    }
}

/// A name too long to be a path cannot be in the tree either, so it counts as absent.
fn script_row<'a>(base: &RelPath, suffix: &str, tree: &'a Tree) -> Option<&'a TreeRow> {
    tree.get(&base.with_suffix(suffix).ok()?)
}

fn runnable(
    phase: Phase,
    script: Option<&TreeRow>,
    interpreter: Interpreter,
    program: &Option<PathBuf>,
) -> Option<SelectedHook> {
    let script = script?;
    Some(SelectedHook {
        phase,
        script: script.path.clone(),
        digest: script.digest,
        interpreter,
        program: program.clone()?,
    })
}

/// The script for bash and the one for PowerShell that `base` stands for, as far as these names can
/// be.
pub fn script_paths(base: &RelPath) -> impl Iterator<Item = RelPath> + use<> {
    let base = base.clone();
    [SHELL_SUFFIX, POWERSHELL_SUFFIX]
        .into_iter()
        .filter_map(move |suffix| base.with_suffix(suffix).ok())
}

/// Every script file of the declared phases, for whatever system, with its published digest.
pub fn scripts_of<'a>(
    bases: impl IntoIterator<Item = &'a RelPath>,
    tree: &Tree,
) -> BTreeMap<RelPath, Sha256Digest> {
    bases
        .into_iter()
        .flat_map(|base| [SHELL_SUFFIX, POWERSHELL_SUFFIX].map(|suffix| (base, suffix)))
        .filter_map(|(base, suffix)| script_row(base, suffix, tree))
        .map(|row| (row.path.clone(), row.digest))
        .collect()
}

/// Why the text of a script cannot be run by bash.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ScriptError {
    /// Windows line ends: bash takes the carriage return for a part of the command.
    #[error(
        "the script `{path}` has Windows line ends (CRLF, first in line {line}), which bash \
         misreads: save it with LF line ends"
    )]
    CarriageReturn {
        /// The script.
        path: RelPath,
        /// The first such line, counted from 1.
        line: usize,
    },
    /// A byte order mark: bash takes it for a part of the first command.
    #[error(
        "the script `{path}` begins with a byte order mark, which bash misreads: save it as UTF-8 \
         without BOM"
    )]
    ByteOrderMark {
        /// The script.
        path: RelPath,
    },
}

/// Checks that bash reads `bytes` as they were meant. Scripts other than `.sh` always pass:
/// PowerShell takes either line end and a byte order mark.
pub fn check_script_text(path: &RelPath, bytes: &[u8]) -> Result<(), ScriptError> {
    if !path.as_str().ends_with(SHELL_SUFFIX) {
        return Ok(());
    }
    let marks: [&[u8]; 3] = [b"\xEF\xBB\xBF", b"\xFF\xFE", b"\xFE\xFF"];
    if marks.iter().any(|mark| bytes.starts_with(mark)) {
        return Err(ScriptError::ByteOrderMark { path: path.clone() });
    }
    match bytes.windows(2).position(|pair| pair == b"\r\n") {
        None => Ok(()),
        Some(offset) => Err(ScriptError::CarriageReturn {
            path: path.clone(),
            line: 1 + bytes[..offset]
                .iter()
                .filter(|byte| **byte == b'\n')
                .count(),
        }),
    }
}

/// The arguments with which `interpreter` runs the file `script`, an absolute path.
pub fn arguments(interpreter: Interpreter, script: &Path) -> Vec<OsString> {
    let options: &[&str] = match interpreter {
        Interpreter::Bash => &[],
        Interpreter::PowerShell => &[
            "-NoLogo",
            "-NoProfile",
            "-NonInteractive",
            "-ExecutionPolicy",
            "Bypass",
            "-File",
        ],
    };
    options
        .iter()
        .map(OsString::from)
        .chain([script.into()])
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIT_BASH: &str = r"C:\Program Files\Git\bin\bash.exe";
    const PWSH: &str = r"C:\Program Files\PowerShell\7\pwsh.exe";
    const STUB: &str = r"C:\Windows\System32\bash.exe";

    fn path(text: &str) -> RelPath {
        RelPath::new(text).unwrap()
    }

    fn tree(files: &[&str]) -> Tree {
        let row = |file: &&str| TreeRow {
            path: path(file),
            digest: Sha256Digest::of(file.as_bytes()),
            exec: false,
        };
        Tree::new(files.iter().map(row).collect()).unwrap()
    }

    fn found(bash: Option<&str>, powershell: Option<&str>) -> Interpreters {
        Interpreters {
            bash: bash.map(PathBuf::from),
            powershell: powershell.map(PathBuf::from),
            refused_bash: vec![PathBuf::from(STUB)],
        }
    }

    fn check(
        os: HostOs,
        files: &[&str],
        interpreters: (Option<&str>, Option<&str>),
        expected: Result<(&str, Interpreter, &str), &str>,
    ) {
        let base = path("hooks/prepare.v2");
        let interpreters = found(interpreters.0, interpreters.1);
        let selected = select(os, Phase::PreInstall, &base, &tree(files), &interpreters);
        let expected = expected
            .map(|(script, interpreter, program)| SelectedHook {
                phase: Phase::PreInstall,
                script: path(script),
                digest: Sha256Digest::of(script.as_bytes()),
                interpreter,
                program: program.into(),
            })
            .map_err(str::to_owned);
        assert_eq!(selected.map_err(|error| error.to_string()), expected);
    }

    const SHELL: &str = "hooks/prepare.v2.sh";
    const POWERSHELL: &str = "hooks/prepare.v2.ps1";

    #[test]
    fn unix_runs_the_shell_script_with_bash_and_ignores_powershell() {
        let bash = Ok((SHELL, Interpreter::Bash, "/bin/bash"));
        let both = (Some("/bin/bash"), Some("/bin/pwsh"));
        check(HostOs::Unix, &[SHELL], (Some("/bin/bash"), None), bash);
        check(HostOs::Unix, &[SHELL, POWERSHELL], both, bash);
    }

    #[test]
    fn unix_refuses_what_it_cannot_run() {
        let both = (Some("/bin/bash"), Some("/bin/pwsh"));
        check(
            HostOs::Unix,
            &[POWERSHELL],
            both,
            Err(
                "the pre-install script `hooks/prepare.v2.ps1` runs on Windows only: on this \
                 system the package needs `hooks/prepare.v2.sh`",
            ),
        );
        for files in [&[SHELL][..], &[SHELL, POWERSHELL]] {
            check(
                HostOs::Unix,
                files,
                (None, Some("/bin/pwsh")),
                Err(
                    "the pre-install script `hooks/prepare.v2.sh` needs bash, which was not \
                     found: install bash, or add its directory to PATH",
                ),
            );
        }
    }

    #[test]
    fn windows_prefers_the_shell_script_and_falls_back_to_powershell() {
        let bash = Ok((SHELL, Interpreter::Bash, GIT_BASH));
        let powershell = Ok((POWERSHELL, Interpreter::PowerShell, PWSH));
        let all = (Some(GIT_BASH), Some(PWSH));
        check(HostOs::Windows, &[SHELL, POWERSHELL], all, bash);
        check(HostOs::Windows, &[SHELL], all, bash);
        check(HostOs::Windows, &[POWERSHELL], all, powershell);
        check(
            HostOs::Windows,
            &[SHELL, POWERSHELL],
            (None, Some(PWSH)),
            powershell,
        );
    }

    #[test]
    fn windows_refuses_what_it_cannot_run_and_names_the_stubs_it_saw() {
        check(
            HostOs::Windows,
            &[SHELL],
            (None, Some(PWSH)),
            Err(
                "the pre-install script `hooks/prepare.v2.sh` needs Git Bash, which was not \
                 found: install Git for Windows (`C:\\Windows\\System32\\bash.exe` belongs to WSL \
                 and is not used)",
            ),
        );
        check(
            HostOs::Windows,
            &[POWERSHELL],
            (Some(GIT_BASH), None),
            Err(
                "the pre-install script `hooks/prepare.v2.ps1` needs PowerShell, which was not \
                 found: install PowerShell, or add its directory to PATH",
            ),
        );
        check(
            HostOs::Windows,
            &[SHELL, POWERSHELL],
            (None, None),
            Err(
                "the pre-install script needs Git Bash for `hooks/prepare.v2.sh` or PowerShell \
                 for `hooks/prepare.v2.ps1`, and neither was found: install Git for Windows \
                 (`C:\\Windows\\System32\\bash.exe` belongs to WSL and is not used)",
            ),
        );
        assert_eq!(stub_note(&[]), "");
    }

    #[test]
    fn only_a_missing_program_is_something_that_holding_hooks_back_gets_around() {
        let lacks = |os, files: &[&str], bash, powershell| {
            let base = path("hooks/prepare.v2");
            let found = found(bash, powershell);
            let error = select(os, Phase::PreInstall, &base, &tree(files), &found).unwrap_err();
            error.is_missing_interpreter()
        };
        assert!(lacks(HostOs::Unix, &[SHELL], None, Some(PWSH)));
        assert!(lacks(HostOs::Windows, &[SHELL], None, Some(PWSH)));
        assert!(lacks(HostOs::Windows, &[POWERSHELL], Some(GIT_BASH), None));
        assert!(lacks(HostOs::Windows, &[SHELL, POWERSHELL], None, None));
        assert!(!lacks(
            HostOs::Unix,
            &[POWERSHELL],
            Some(GIT_BASH),
            Some(PWSH)
        ));
        assert!(!lacks(HostOs::Unix, &[], Some(GIT_BASH), Some(PWSH)));
    }

    #[test]
    fn a_missing_script_names_both_files_looked_for() {
        let missing = "the pre-install script is missing: the package has neither \
                       `hooks/prepare.v2.sh` nor `hooks/prepare.v2.ps1`";
        let directory = format!("{missing} (`hooks/prepare.v2` is a directory)");
        for os in [HostOs::Unix, HostOs::Windows] {
            let all = (Some("/bin/bash"), Some("/bin/pwsh"));
            check(
                os,
                &["hooks/prepare.sh", "hooks/prepare.v2"],
                all,
                Err(missing),
            );
            check(os, &["hooks/prepare.v2/a.sh"], all, Err(&directory));
        }
    }

    #[test]
    fn a_base_too_long_for_an_extension_has_no_script() {
        let base = path(&"x".repeat(255));
        let selected = select(
            HostOs::Unix,
            Phase::PostInstall,
            &base,
            &tree(&["a"]),
            &found(Some("/bin/bash"), None),
        );
        assert!(matches!(selected, Err(SelectionError::Missing { .. })));
    }

    #[test]
    fn the_scripts_of_all_systems_are_listed_with_their_digests() {
        let files = tree(&["a.sh", "a.ps1", "b.ps1", "c.sh", "a", "a.sh.txt"]);
        let listed = scripts_of(&[path("a"), path("b"), path("absent")], &files);
        let expected =
            ["a.ps1", "a.sh", "b.ps1"].map(|file| (path(file), Sha256Digest::of(file.as_bytes())));
        assert_eq!(listed, BTreeMap::from(expected));
    }

    #[test]
    fn a_shell_script_with_windows_line_ends_or_a_mark_is_refused_by_name() {
        let check = |file: &str, bytes: &[u8]| {
            check_script_text(&path(file), bytes).map_err(|error| error.to_string())
        };
        let line_ends = "the script `a.sh` has Windows line ends (CRLF, first in line 2), which \
                         bash misreads: save it with LF line ends";
        let mark = "the script `a.sh` begins with a byte order mark, which bash misreads: save it \
                    as UTF-8 without BOM";
        assert_eq!(check("a.sh", b"one\ntwo\r\n\r\n"), Err(line_ends.into()));
        for bytes in [&b"\xEF\xBB\xBFx"[..], b"\xFF\xFEx\0", b"\xFE\xFF\0x"] {
            assert_eq!(check("a.sh", bytes), Err(mark.into()));
        }
        for bytes in [&b""[..], b"\n", b"a\rb\n\xEF\xBB\xBF", b"a\n\r"] {
            assert_eq!(check("a.sh", bytes), Ok(()));
        }
        assert_eq!(check("a.ps1", b"\xEF\xBB\xBFone\r\n"), Ok(()));
    }

    #[test]
    fn the_script_is_one_argument_whatever_its_name() {
        let script = Path::new(r"C:\My Projects\a.ps1");
        assert_eq!(arguments(Interpreter::Bash, script), [script.as_os_str()]);
        assert_eq!(
            arguments(Interpreter::PowerShell, script),
            [
                "-NoLogo",
                "-NoProfile",
                "-NonInteractive",
                "-ExecutionPolicy",
                "Bypass",
                "-File",
                r"C:\My Projects\a.ps1",
            ]
        );
    }
}
