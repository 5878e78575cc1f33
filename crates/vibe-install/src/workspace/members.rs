//! Which manifests belong to a workspace: its own, and those of its members.
//!
//! Directories are looked for as far as the patterns need, and links are never followed, so that
//! every member lies below the root.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::Path;

use vibe_core::formats::manifest::{MANIFEST_NAME, Reading};
use vibe_core::limits::{MANIFEST_BYTES, PATH_DEPTH, WORKSPACE_ENTRIES, WORKSPACE_MEMBERS};
use vibe_core::{MemberPattern, RelPath, Sha256Digest};
use vibe_fs::{EntryKind, list_dir, read_if_exists, stat_of};

use super::error::WorkspaceError;
use super::versions::{Scope, fill_in};
use crate::error::InstallError;
use crate::manifests::parse_manifest;
use crate::own_manifest::OwnManifest;

/// The directory of a workspace or a member, as the root sees it; empty for the root.
type Place = String;

/// Every manifest of the project whose root is `root`: the root's first, then those of the members
/// by their paths, each with the versions of its workspaces filled in. `own` is the root's where it was
/// read already.
///
/// # Errors
/// A manifest cannot be read, a member that is named is not there, there are too many, or a
/// `version.var` is not defined.
pub(crate) fn manifests(
    root: &Path,
    own: Option<OwnManifest>,
) -> Result<Vec<OwnManifest>, InstallError> {
    let mut search = Search {
        root,
        found: BTreeMap::new(),
        including: BTreeMap::new(),
        entries: 0,
    };
    let own = match own {
        Some(own) => Some(own),
        None => read_manifest(root, "")?,
    };
    let own = own.ok_or_else(|| InstallError::NoProject {
        start: root.to_path_buf(),
    })?;
    search.found.insert(Place::new(), own);
    search.members()?;
    search.filled_in()
}

struct Search<'a> {
    root: &'a Path,
    found: BTreeMap<Place, OwnManifest>,
    /// The workspaces that include each member by a pattern of their own.
    including: BTreeMap<Place, BTreeSet<Place>>,
    /// How many entries of directories were looked at.
    entries: usize,
}

impl Search<'_> {
    /// Looks for the members of every workspace that there is.
    fn members(&mut self) -> Result<(), InstallError> {
        let mut open = VecDeque::from([Place::new()]);
        while let Some(workspace) = open.pop_front() {
            let patterns = self.found[&workspace].manifest.workspace.clone();
            for pattern in patterns.into_iter().flat_map(|found| found.members) {
                for member in self.members_by(&workspace, &pattern)? {
                    let including = self.including.entry(member.clone()).or_default();
                    including.insert(workspace.clone());
                    if self.found.contains_key(&member) {
                        continue;
                    }
                    open.extend(self.take(&workspace, member, &pattern)?);
                }
            }
        }
        Ok(())
    }

    /// Takes up the manifest in `member`; gives the place back if it is a workspace.
    fn take(
        &mut self,
        workspace: &Place,
        member: Place,
        pattern: &MemberPattern,
    ) -> Result<Option<Place>, InstallError> {
        let Some(own) = read_manifest(self.root, &member)? else {
            return match pattern.is_literal() {
                true => Err(self.no_member(workspace, pattern)),
                false => Ok(None),
            };
        };
        if self.found.len() > WORKSPACE_MEMBERS {
            return Err(self.too_large(format!("more than {WORKSPACE_MEMBERS} members")));
        }
        let is_workspace = own.manifest.workspace.is_some();
        self.found.insert(member.clone(), own);
        Ok(is_workspace.then_some(member))
    }

    /// The directories that `pattern` of `workspace` means, without the workspace itself.
    fn members_by(
        &mut self,
        workspace: &Place,
        pattern: &MemberPattern,
    ) -> Result<Vec<Place>, InstallError> {
        let mut found = Vec::new();
        let mut open = vec![(workspace.clone(), pattern.start())];
        while let Some((place, at)) = open.pop() {
            if pattern.is_reached(&at) && place != *workspace {
                found.push(place.clone());
            }
            let names: BTreeSet<String> = match pattern.next_names(&at) {
                Some(names) => self.directories_named(&place, &names)?,
                None => self.directories_in(&place)?,
            };
            for name in names {
                let next = pattern.step(&at, &name);
                if !next.is_lost() {
                    open.push((below(&place, &name), next));
                }
            }
        }
        let is_there = !found.is_empty() || pattern.matches([]);
        if pattern.is_literal() && !is_there {
            return Err(self.no_member(workspace, pattern));
        }
        Ok(found)
    }

    fn directories_named(
        &mut self,
        place: &Place,
        names: &[&str],
    ) -> Result<BTreeSet<String>, InstallError> {
        let mut found = BTreeSet::new();
        for name in names {
            let path = self.root.join(below(place, name));
            if stat_of(&path)?.is_some_and(|stat| stat.kind == EntryKind::Directory) {
                found.insert((*name).to_owned());
            }
        }
        Ok(found)
    }

    fn directories_in(&mut self, place: &Place) -> Result<BTreeSet<String>, InstallError> {
        if place.split('/').count() > PATH_DEPTH {
            return Err(self.too_large(format!("directories more than {PATH_DEPTH} deep")));
        }
        let directory = self.root.join(place);
        let mut found = BTreeSet::new();
        for entry in list_dir(&directory)? {
            self.entries += 1;
            if self.entries > WORKSPACE_ENTRIES {
                let what = format!("more than {WORKSPACE_ENTRIES} entries to look at");
                return Err(self.too_large(what));
            }
            if entry.stat.kind != EntryKind::Directory {
                continue;
            }
            match entry.relative.to_str() {
                Some(name) => drop(found.insert(name.to_owned())),
                None => refuse_unreadable(&directory.join(&entry.relative))?,
            }
        }
        Ok(found)
    }

    /// The manifests, with the versions that their workspaces give to variables.
    fn filled_in(self) -> Result<Vec<OwnManifest>, InstallError> {
        let scopes: BTreeMap<Place, Vec<Scope>> = self
            .found
            .keys()
            .map(|place| (place.clone(), self.scopes_of(place)))
            .collect();
        let root = self.root;
        let manifests = self.found.into_iter();
        manifests
            .map(|(place, mut own)| {
                let path = own.path.under(root);
                let text = own.text.as_deref().unwrap_or_default();
                fill_in(&path, text, &mut own.manifest, &scopes[&place])?;
                Ok(own)
            })
            .collect()
    }

    /// The versions that count in `place`: those of its own workspace first, then of those around
    /// it that include it, to the root.
    fn scopes_of(&self, place: &Place) -> Vec<Scope> {
        let mut around = BTreeSet::new();
        let mut open = vec![place];
        while let Some(place) = open.pop() {
            if around.insert(place) {
                open.extend(self.including.get(place).into_iter().flatten());
            }
        }
        // All of them are on one way from the root, so the last is the nearest.
        let nearest_first = around.into_iter().rev();
        nearest_first
            .filter_map(|place| Scope::of(&self.found[place].manifest))
            .collect()
    }

    fn no_member(&self, workspace: &Place, pattern: &MemberPattern) -> InstallError {
        WorkspaceError::NoSuchMember {
            path: self.root.join(below(workspace, MANIFEST_NAME)),
            member: pattern.to_string(),
        }
        .into()
    }

    fn too_large(&self, what: String) -> InstallError {
        WorkspaceError::TooLarge {
            root: self.root.to_path_buf(),
            what,
        }
        .into()
    }
}

/// Reads the manifest in `place` below `root`; `None` where there is none.
pub(crate) fn read_manifest(root: &Path, place: &str) -> Result<Option<OwnManifest>, InstallError> {
    let path = root.join(place).join(MANIFEST_NAME);
    let bytes = read_if_exists(&path, MANIFEST_BYTES)
        .map_err(|source| InstallError::ReadManifest { source })?;
    let Some(bytes) = bytes else { return Ok(None) };
    let (manifest, text) = parse_manifest(&path, &bytes, Reading::Own)?;
    let path = RelPath::new(&below(place, MANIFEST_NAME))
        .map_err(|source| WorkspaceError::MemberPath { source })?;
    Ok(Some(OwnManifest {
        path,
        manifest,
        text: Some(text),
        digest: Some(Sha256Digest::of(&bytes)),
    }))
}

/// A directory whose name cannot be written in a lock may not be a member.
fn refuse_unreadable(directory: &Path) -> Result<(), InstallError> {
    if stat_of(&directory.join(MANIFEST_NAME))?.is_none() {
        return Ok(());
    }
    let name = directory.file_name().unwrap_or_default();
    match RelPath::from_bytes(name.as_encoded_bytes()) {
        Ok(_) => Ok(()),
        Err(source) => Err(WorkspaceError::MemberPath { source }.into()),
    }
}

/// `name` below `place`.
fn below(place: &str, name: &str) -> Place {
    match place {
        "" => name.to_owned(),
        _ => format!("{place}/{name}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::testing::{PROJECT, tree, workspace};
    use std::fs;
    use vibe_core::formats::manifest::DependencySource;

    /// The places of the manifests of the workspace.
    #[track_caller]
    fn check(manifests: &[(&str, &str)], expected: &[&str]) {
        let directory = tree(manifests);
        let found = super::manifests(directory.path(), None).unwrap();
        let bases: Vec<&str> = found.iter().map(OwnManifest::base).collect();
        assert_eq!(bases, expected);
    }

    #[track_caller]
    fn check_refused(manifests: &[(&str, &str)], expected: &str) {
        let directory = tree(manifests);
        let error = super::manifests(directory.path(), None)
            .unwrap_err()
            .to_string();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn members_are_found_once_whatever_patterns_mean_them() {
        let root = workspace("\"b\", \"*\", \"**\", \".\"");
        check(
            &[
                ("", &root),
                ("a", PROJECT),
                ("b", PROJECT),
                ("b/c", PROJECT),
            ],
            &["", "a", "b", "b/c"],
        );
    }

    #[test]
    fn a_member_that_is_a_workspace_brings_its_own_in() {
        let (root, inner) = (workspace("\"in*\""), workspace("\"deep/*\""));
        check(
            &[
                ("", &root),
                ("inner", &inner),
                ("inner/deep/a", PROJECT),
                ("other/deep/a", PROJECT),
            ],
            &["", "inner", "inner/deep/a"],
        );
    }

    #[test]
    fn a_directory_without_a_manifest_is_passed_over_unless_it_is_named() {
        let directory = tree(&[("", &workspace("\"*\"")), ("a", PROJECT)]);
        fs::create_dir(directory.path().join("empty")).unwrap();
        fs::write(directory.path().join("file"), "").unwrap();
        assert_eq!(super::manifests(directory.path(), None).unwrap().len(), 2);
        let named = workspace("\"empty\"");
        fs::write(directory.path().join(MANIFEST_NAME), named).unwrap();
        let error = super::manifests(directory.path(), None).unwrap_err();
        assert!(
            matches!(error, InstallError::Workspace(WorkspaceError::NoSuchMember { member, .. }) if member == "empty")
        );
        check_refused(
            &[("", &workspace("\"absent/a\""))],
            "names the member `absent/a`",
        );
    }

    #[test]
    fn a_manifest_that_is_wrong_is_named() {
        check_refused(
            &[("", &workspace("\"*\"")), ("a", "[project]\n")],
            "a/vibe.toml is not valid",
        );
    }

    #[cfg(unix)]
    #[test]
    fn links_are_not_followed() {
        let elsewhere = tree(&[("", PROJECT)]);
        let directory = tree(&[("", &workspace("\"*\"")), ("a", PROJECT)]);
        let link = directory.path().join("link");
        std::os::unix::fs::symlink(elsewhere.path(), link).unwrap();
        assert_eq!(super::manifests(directory.path(), None).unwrap().len(), 2);
        let named = workspace("\"link\"");
        fs::write(directory.path().join(MANIFEST_NAME), named).unwrap();
        let error = super::manifests(directory.path(), None).unwrap_err();
        assert!(
            matches!(
                error,
                InstallError::Workspace(WorkspaceError::NoSuchMember { .. })
            ),
            "{error}"
        );
    }

    #[cfg(unix)]
    #[test]
    fn a_member_whose_name_is_not_portable_is_refused() {
        use std::os::unix::ffi::OsStrExt as _;
        check_refused(
            &[("", &workspace("\"*\"")), ("a:b", PROJECT)],
            "a member of the workspace has a name that cannot be used",
        );
        let directory = tree(&[("", &workspace("\"*\""))]);
        let odd = directory
            .path()
            .join(std::ffi::OsStr::from_bytes(b"caf\xe9"));
        fs::create_dir(&odd).unwrap();
        assert_eq!(super::manifests(directory.path(), None).unwrap().len(), 1);
        fs::write(odd.join(MANIFEST_NAME), PROJECT).unwrap();
        let error = super::manifests(directory.path(), None).unwrap_err();
        assert!(
            matches!(
                error,
                InstallError::Workspace(WorkspaceError::MemberPath { .. })
            ),
            "{error}"
        );
    }

    #[test]
    fn the_versions_of_the_nearest_workspace_count_first() {
        let versions = |versions: &str| {
            format!("[workspace]\nmembers = [\"*\"]\n[workspace.versions]\n{versions}")
        };
        let asks = "[requires.packages]\n\"a/near\" = { version.var = \"near\" }\n\"a/far\" = { version.var = \"far\" }\n";
        let member = format!("{PROJECT}{asks}");
        let directory = tree(&[
            ("", &versions("near = \"^1\"\nfar = \"^1\"\n")),
            ("w", &versions("near = \"^2\"\n")),
            ("w/a", &member),
        ]);
        let found = super::manifests(directory.path(), None).unwrap();
        let requires = &found[2].manifest.requires;
        let shown: Vec<String> = requires
            .values()
            .map(|dependency| match &dependency.source {
                DependencySource::Registry { constraint, .. } => constraint.to_string(),
                other => format!("{other:?}"),
            })
            .collect();
        assert_eq!(shown, ["^1", "^2"]);
    }
}
