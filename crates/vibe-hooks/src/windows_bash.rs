//! Which `bash.exe` of a Windows machine is Git's: pure functions on Windows paths, so that they are
//! tested on every system.

use std::path::PathBuf;

/// Where a usable `bash.exe` may lie on Windows, best first and each once: in the installation that
/// `git` (the path of `git.exe`) belongs to, in the `Git` folder of each of `program_folders`, and
/// at `path_hits` (the files named `bash.exe` on PATH).
pub(crate) fn windows_bash_candidates(
    git: Option<&str>,
    program_folders: &[String],
    path_hits: &[String],
) -> Vec<String> {
    let installs = git
        .and_then(git_installation)
        .into_iter()
        .chain(program_folders.iter().map(|folder| {
            let folder = backslashed(folder);
            format!(r"{}\Git", folder.trim_end_matches('\\'))
        }));
    // `bin\bash.exe` first: it sets up Git's own PATH before it starts the other.
    let in_installs = installs.flat_map(|root| {
        [
            format!(r"{root}\bin\bash.exe"),
            format!(r"{root}\usr\bin\bash.exe"),
        ]
    });
    let mut candidates: Vec<String> = Vec::new();
    for candidate in in_installs.chain(path_hits.iter().map(|hit| backslashed(hit))) {
        if !candidates
            .iter()
            .any(|known| known.eq_ignore_ascii_case(&candidate))
        {
            candidates.push(candidate);
        }
    }
    candidates
}

/// The first of `candidates`, which all exist, that is not the `bash` of WSL, and those before and
/// after it that are.
pub(crate) fn choose_windows_bash(candidates: &[String]) -> (Option<PathBuf>, Vec<PathBuf>) {
    let (refused, usable): (Vec<&String>, Vec<&String>) = candidates
        .iter()
        .partition(|candidate| is_wsl_stub(candidate));
    (
        usable.first().map(PathBuf::from),
        refused.into_iter().map(PathBuf::from).collect(),
    )
}

/// Whether the Windows path `path` lies where WSL puts its `bash.exe`: in `Windows\System32`, in
/// its 32-bit view `Windows\Sysnative`, or among the `WindowsApps` aliases.
fn is_wsl_stub(path: &str) -> bool {
    let lower = path.to_lowercase();
    let components: Vec<&str> = lower
        .split(['\\', '/'])
        .filter(|component| !matches!(*component, "" | "."))
        .collect();
    components.contains(&"windowsapps")
        || components
            .windows(2)
            .any(|pair| matches!(pair, ["windows", "system32" | "sysnative"]))
}

/// The root of the Git for Windows that `git.exe` at `git` is part of. It lies in `cmd` or `bin`,
/// or in `bin` of a folder named after the toolchain.
fn git_installation(git: &str) -> Option<String> {
    let git = backslashed(git);
    let (directory, _) = git.rsplit_once('\\')?;
    let (above, folder) = directory.rsplit_once('\\')?;
    if !folder.eq_ignore_ascii_case("cmd") && !folder.eq_ignore_ascii_case("bin") {
        return None;
    }
    let root = match above.rsplit_once('\\') {
        Some((root, toolchain)) if is_toolchain(toolchain) => root,
        _ => above,
    };
    Some(root.to_owned())
}

fn is_toolchain(folder: &str) -> bool {
    ["mingw64", "mingw32", "clangarm64", "usr"]
        .iter()
        .any(|known| folder.eq_ignore_ascii_case(known))
}

fn backslashed(path: &str) -> String {
    path.replace('/', "\\")
}

#[cfg(test)]
mod tests {
    use super::*;

    const GIT_BASH: &str = r"C:\Program Files\Git\bin\bash.exe";
    const STUB: &str = r"C:\Windows\System32\bash.exe";

    fn check_git(git: &str, root: Option<&str>) {
        let expected = root.map_or(vec![], |root| {
            vec![
                format!(r"{root}\bin\bash.exe"),
                format!(r"{root}\usr\bin\bash.exe"),
            ]
        });
        assert_eq!(windows_bash_candidates(Some(git), &[], &[]), expected);
    }

    #[test]
    fn git_bash_is_found_from_where_git_lies() {
        check_git(
            r"C:\Program Files\Git\cmd\git.exe",
            Some(r"C:\Program Files\Git"),
        );
        check_git("D:/Git/CMD/git.exe", Some(r"D:\Git"));
        check_git(r"D:\Git\bin\git.exe", Some(r"D:\Git"));
        check_git(r"D:\Git\mingw64\bin\git.exe", Some(r"D:\Git"));
        check_git(r"D:\Git\MinGW32\bin\git.exe", Some(r"D:\Git"));
        check_git(r"D:\Git\clangarm64\bin\git.exe", Some(r"D:\Git"));
        check_git(r"D:\Git\usr\bin\git.exe", Some(r"D:\Git"));
        check_git(r"D:\cmd\git.exe", Some("D:"));
        check_git(r"D:\tools\git.exe", None);
        check_git("git.exe", None);
    }

    #[test]
    fn candidates_come_in_order_and_once() {
        let folders = [r"C:\Program Files\".to_owned(), r"C:\Programs".to_owned()];
        let hits = [
            r"c:\program files\git\BIN\bash.exe".to_owned(),
            "C:/msys64/usr/bin/bash.exe".to_owned(),
        ];
        assert_eq!(
            windows_bash_candidates(Some(r"D:\Git\cmd\git.exe"), &folders, &hits),
            [
                r"D:\Git\bin\bash.exe",
                r"D:\Git\usr\bin\bash.exe",
                r"C:\Program Files\Git\bin\bash.exe",
                r"C:\Program Files\Git\usr\bin\bash.exe",
                r"C:\Programs\Git\bin\bash.exe",
                r"C:\Programs\Git\usr\bin\bash.exe",
                r"C:\msys64\usr\bin\bash.exe",
            ]
        );
        assert!(windows_bash_candidates(None, &[], &[]).is_empty());
    }

    #[test]
    fn the_bash_of_wsl_is_never_taken() {
        let alias = r"C:\Users\x\AppData\Local\Microsoft\WindowsApps\bash.exe";
        let paths = |texts: &[&str]| {
            texts
                .iter()
                .map(|text| text.to_string())
                .collect::<Vec<_>>()
        };
        for stub in [
            STUB,
            "c:/WINDOWS/system32/bash.exe",
            r"C:\Windows\.\Sysnative\\bash.exe",
            alias,
        ] {
            assert!(is_wsl_stub(stub), "{stub}");
        }
        for bash in [
            GIT_BASH,
            r"C:\System32\Windows\bash.exe",
            r"C:\Windows\System32x\bash.exe",
            r"D:\Windows\Git\bin\bash.exe",
        ] {
            assert!(!is_wsl_stub(bash), "{bash}");
        }
        assert_eq!(
            choose_windows_bash(&paths(&[STUB, GIT_BASH, alias, r"D:\bash.exe"])),
            (
                Some(PathBuf::from(GIT_BASH)),
                vec![PathBuf::from(STUB), PathBuf::from(alias)]
            )
        );
        assert_eq!(
            choose_windows_bash(&paths(&[STUB])),
            (None, vec![PathBuf::from(STUB)])
        );
    }
}
