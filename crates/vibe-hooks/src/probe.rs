//! Finds the interpreters of this machine, by the PATH it is given.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use vibe_core::hook::HostOs;
use vibe_core::hook::Interpreters;

use crate::windows_bash::{choose_windows_bash, windows_bash_candidates};

use crate::environment::lookup;

/// The interpreters on `path`, the value of PATH, and on Windows also in the folders that
/// [`program_folders`] gives. Relative entries of `path` count for nothing, since what they mean
/// depends on where vibe is started.
pub fn find_interpreters(path: Option<&OsStr>, program_folders: &[String]) -> Interpreters {
    match HostOs::CURRENT {
        HostOs::Unix => Interpreters {
            bash: find("bash", path).into_iter().next(),
            ..Interpreters::default()
        },
        HostOs::Windows => {
            let texts = |found: Vec<PathBuf>| -> Vec<String> {
                found
                    .iter()
                    .map(|file| file.to_string_lossy().into_owned())
                    .collect()
            };
            let git = texts(find("git.exe", path));
            let hits = texts(find("bash.exe", path));
            let is_file = |candidate: &str| Path::new(candidate).is_file();
            let (bash, refused_bash) = windows_bash(&git, program_folders, &hits, is_file);
            Interpreters {
                bash,
                powershell: ["pwsh.exe", "powershell.exe"]
                    .iter()
                    .find_map(|name| find(name, path).into_iter().next()),
                refused_bash,
            }
        }
    }
}

/// The folders in which Git for Windows is installed by default, from the caller's environment:
/// those for all users, then the user's own.
pub fn program_folders(caller: &BTreeMap<OsString, OsString>) -> Vec<String> {
    let folder = |name: &str| lookup(HostOs::Windows, caller, name)?.to_str();
    let for_all = ["ProgramFiles", "ProgramW6432", "ProgramFiles(x86)"];
    let own = folder("LOCALAPPDATA").map(|folder| format!(r"{folder}\Programs"));
    for_all
        .iter()
        .filter_map(|name| folder(name).map(str::to_owned))
        .chain(own)
        .collect()
}

/// The absolute paths of the programs called `name`, in the order of `path`.
pub fn find(name: &str, path: Option<&OsStr>) -> Vec<PathBuf> {
    path.and_then(|path| which::which_in_global(name, Some(path)).ok())
        .into_iter()
        .flatten()
        .filter(|found| found.is_absolute())
        .collect()
}

/// The `bash.exe` to use, and those of WSL that were seen; `git` are the files called `git.exe`.
fn windows_bash(
    git: &[String],
    program_folders: &[String],
    path_hits: &[String],
    is_file: impl Fn(&str) -> bool,
) -> (Option<PathBuf>, Vec<PathBuf>) {
    let git = git.first().map(String::as_str);
    let mut candidates = windows_bash_candidates(git, program_folders, path_hits);
    candidates.retain(|candidate| is_file(candidate));
    choose_windows_bash(&candidates)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STUB: &str = r"C:\Windows\System32\bash.exe";

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| text.to_string()).collect()
    }

    fn check_windows(files: &[&str], expected: Option<&str>) {
        let (bash, refused) = windows_bash(
            &owned(&[r"D:\Git\cmd\git.exe", r"E:\Other\cmd\git.exe"]),
            &owned(&[r"C:\Program Files"]),
            &owned(&[STUB, r"C:\msys64\usr\bin\bash.exe"]),
            |candidate| files.contains(&candidate),
        );
        assert_eq!(bash, expected.map(PathBuf::from));
        assert_eq!(refused, [PathBuf::from(STUB)]);
    }

    #[test]
    fn the_bash_of_the_git_in_use_comes_first_and_wsl_never() {
        let own = r"D:\Git\usr\bin\bash.exe";
        let installed = r"C:\Program Files\Git\bin\bash.exe";
        let on_path = r"C:\msys64\usr\bin\bash.exe";
        let other = r"E:\Other\bin\bash.exe";
        check_windows(&[STUB, on_path, installed, own], Some(own));
        check_windows(&[STUB, on_path, installed], Some(installed));
        check_windows(&[STUB, on_path, other], Some(on_path));
        check_windows(&[STUB], None);
    }

    #[test]
    fn install_folders_come_from_the_callers_environment() {
        let caller = [
            ("LocalAppData", r"C:\Users\x\AppData\Local"),
            ("PROGRAMFILES(X86)", r"C:\Program Files (x86)"),
            ("ProgramFiles", r"C:\Program Files"),
        ];
        let caller = caller.map(|(name, value)| (name.into(), value.into()));
        assert_eq!(
            program_folders(&caller.into()),
            [
                r"C:\Program Files",
                r"C:\Program Files (x86)",
                r"C:\Users\x\AppData\Local\Programs",
            ]
        );
        assert!(program_folders(&BTreeMap::new()).is_empty());
    }

    #[cfg(unix)]
    mod on_unix {
        use std::fs::{self, Permissions};
        use std::os::unix::fs::PermissionsExt;

        use super::*;

        fn place(directory: &Path, mode: u32) -> PathBuf {
            let bash = directory.join("bash");
            fs::write(&bash, "").unwrap();
            fs::set_permissions(&bash, Permissions::from_mode(mode)).unwrap();
            bash
        }

        fn bash_on(path: Option<&OsStr>) -> Option<PathBuf> {
            let found = find_interpreters(path, &owned(&["/opt"]));
            assert_eq!((found.powershell, found.refused_bash), (None, vec![]));
            found.bash
        }

        #[test]
        fn bash_is_the_first_program_of_that_name_on_the_given_path() {
            let (first, second) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            let path = std::env::join_paths([
                Path::new("."),
                Path::new("/no/such"),
                first.path(),
                second.path(),
            ]);
            let path = path.unwrap();
            assert_eq!(bash_on(Some(&path)), None);
            let later = place(second.path(), 0o755);
            assert_eq!(bash_on(Some(&path)), Some(later.clone()));
            place(first.path(), 0o644);
            assert_eq!(bash_on(Some(&path)), Some(later));
            let earlier = place(first.path(), 0o755);
            assert_eq!(bash_on(Some(&path)), Some(earlier));
        }

        #[test]
        fn nothing_is_found_without_a_path_or_in_a_relative_directory() {
            // Tests run in the crate's directory, from which this entry leads to the root.
            let up = "../".repeat(32);
            let relative = OsString::from(format!("{up}bin:{up}usr/bin"));
            assert!(Path::new(&format!("{up}bin/bash")).exists());
            assert_eq!(bash_on(Some(&relative)), None);
            assert_eq!(bash_on(Some(OsStr::new(""))), None);
            assert_eq!(bash_on(None), None);
        }
    }
}
