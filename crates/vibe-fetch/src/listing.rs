//! The shippable tree of a package as a list of files, checked before any content is read.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use vibe_core::RelPath;
use vibe_core::limits::PackageLimits;
use vibe_fs::{EntryKind, FsError, Stat, canonical_directory, read_bounded, stat_of};
use vibe_git::{BlobId, Database};

use crate::collect::{FileFacts, Nodes, Refuse, SourceKind};
use crate::error::FetchError;
use crate::links::{Resolved, resolve_links};
use crate::note::ListingNote;
use crate::scan::scan;

/// One file that ships.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ListedFile {
    /// Where it is installed.
    pub path: RelPath,
    /// Its bytes.
    pub size: u64,
    /// Whether it is installed executable.
    pub exec: bool,
    /// Where its content is: another place than `path` says where the package has a link.
    pub content: FileContent,
}

/// Where the content of a file is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FileContent {
    /// In a file.
    Disk {
        /// The real file.
        location: PathBuf,
        /// Its stat when it was listed.
        stat: Stat,
    },
    /// In a blob.
    Blob {
        /// The number of its repository in the listing.
        repository: usize,
        /// The blob.
        id: BlobId,
    },
}

impl ListedFile {
    /// The real file, of a package in a directory.
    pub fn location(&self) -> Option<&Path> {
        match &self.content {
            FileContent::Disk { location, .. } => Some(location),
            FileContent::Blob { .. } => None,
        }
    }
}

/// The files that ship, sorted by path.
#[derive(Debug, Clone, Default)]
pub struct Listing {
    /// The files.
    pub files: Vec<ListedFile>,
    /// What somebody should know about them.
    pub notes: Vec<ListingNote>,
    /// The repositories with the content of a package in a commit: its own and its submodules'.
    pub(crate) repositories: Vec<Arc<Database>>,
}

impl Listing {
    /// The file at `path`.
    pub fn get(&self, path: &RelPath) -> Option<&ListedFile> {
        let found = self.files.binary_search_by(|file| file.path.cmp(path));
        found.ok().map(|index| &self.files[index])
    }

    /// The content of `file`, one of this listing's, at most `limit_bytes`.
    ///
    /// # Errors
    /// It is larger, or cannot be read.
    pub fn read(&self, file: &ListedFile, limit_bytes: u64) -> Result<Vec<u8>, FetchError> {
        match &file.content {
            FileContent::Disk { location, .. } => Ok(read_bounded(location, limit_bytes)?),
            FileContent::Blob { repository, id } => self.repositories[*repository]
                .read_blob(id, limit_bytes)
                .map_err(|source| FetchError::Blob {
                    path: file.path.to_string(),
                    source: Box::new(source),
                }),
        }
    }
}

/// Where the files of a package are.
pub(crate) enum Origin {
    Directory(PathBuf),
    Repositories(Vec<Arc<Database>>),
}

/// A package whose links are still links.
pub(crate) struct Unresolved {
    pub(crate) nodes: Nodes,
    pub(crate) notes: Vec<ListingNote>,
    pub(crate) origin: Origin,
}

impl Unresolved {
    /// Replaces links by what they stand for and sums up. `exists` says whether there is something
    /// at a path that does not ship, `refuse` whether to go on without an entry.
    pub(crate) fn resolve(
        self,
        limits: &PackageLimits,
        exists: &dyn Fn(&str) -> bool,
        refuse: Refuse<'_>,
    ) -> Result<Listing, FetchError> {
        let files = resolve_links(&self.nodes, limits.package_entries, exists, refuse)?;
        check_total(&files, limits.package_bytes)?;
        let (root, repositories) = match self.origin {
            Origin::Directory(root) => (root, Vec::new()),
            Origin::Repositories(repositories) => (PathBuf::new(), repositories),
        };
        let listed = |file: Resolved| ListedFile {
            content: match file.facts {
                FileFacts::Disk(stat) => FileContent::Disk {
                    location: file.real.under(&root),
                    stat,
                },
                FileFacts::Blob { repository, id, .. } => FileContent::Blob { repository, id },
            },
            size: file.facts.size(),
            exec: file.facts.exec(),
            path: file.path,
        };
        Ok(Listing {
            files: files.into_iter().map(listed).collect(),
            notes: self.notes,
            repositories,
        })
    }
}

/// Lists what ships of the package in the directory `root`: everything but `vibedeps/` and what the
/// root's `.vibeignore` matches, of a path source also without `.git` and what `.gitignore` files
/// match. Refuses names, links, special files and sizes that no package may have; reads the content
/// of ignore files only. The `root` of a path source may be a link, that of a published package not.
pub fn list(root: &Path, kind: SourceKind, limits: &PackageLimits) -> Result<Listing, FetchError> {
    let root = match kind {
        SourceKind::PathSource => canonical_directory(root)?,
        SourceKind::Published => real_directory(root)?,
    };
    let scanned = scan(&root, kind, limits, &mut Err)?;
    resolve_in(root, scanned.nodes, scanned.notes, limits, &mut Err)
}

/// Lists what is in the directory `root`, whose links are still links in `nodes`.
pub(crate) fn resolve_in(
    root: PathBuf,
    nodes: Nodes,
    notes: Vec<ListingNote>,
    limits: &PackageLimits,
    refuse: Refuse<'_>,
) -> Result<Listing, FetchError> {
    let place = root.clone();
    // What cannot even be looked at is not part of the package either.
    let exists = move |path: &str| !matches!(stat_of(&place.join(path)), Ok(None));
    Unresolved {
        nodes,
        notes,
        origin: Origin::Directory(root),
    }
    .resolve(limits, &exists, refuse)
}

fn real_directory(path: &Path) -> Result<PathBuf, FetchError> {
    match stat_of(path)?.map(|stat| stat.kind) {
        Some(EntryKind::Directory) => Ok(path.to_path_buf()),
        Some(kind) => Err(FetchError::NotADirectory {
            path: path.to_path_buf(),
            kind,
        }),
        None => Err(FsError::new("find", path, std::io::ErrorKind::NotFound.into()).into()),
    }
}

fn check_total(files: &[Resolved], limit_bytes: u64) -> Result<(), FetchError> {
    let bytes = files
        .iter()
        .fold(0_u64, |sum, file| sum.saturating_add(file.facts.size()));
    match bytes <= limit_bytes {
        true => Ok(()),
        false => Err(FetchError::PackageTooLarge { bytes, limit_bytes }),
    }
}

#[cfg(unix)]
#[cfg(test)]
mod tests {
    use super::*;
    use std::ffi::OsStr;
    use std::fs;
    use std::os::unix::ffi::OsStrExt as _;
    use std::os::unix::fs::{PermissionsExt as _, symlink};

    /// A directory with these files (content = path); a name ending in `/` is a directory.
    fn package(entries: &[&str]) -> tempfile::TempDir {
        let directory = tempfile::tempdir().unwrap();
        for entry in entries {
            let (path, content) = entry.split_once('=').unwrap_or((entry, entry));
            let path = directory.path().join(path);
            if entry.ends_with('/') {
                fs::create_dir_all(&path).unwrap();
            } else {
                fs::create_dir_all(path.parent().unwrap()).unwrap();
                fs::write(&path, content).unwrap();
            }
        }
        directory
    }

    fn paths(root: &Path, kind: SourceKind) -> Vec<String> {
        let listing = list(root, kind, &PackageLimits::default()).unwrap();
        listing.files.iter().map(|f| f.path.to_string()).collect()
    }

    fn refusal(root: &Path, kind: SourceKind) -> FetchError {
        list(root, kind, &PackageLimits::default()).unwrap_err()
    }

    const BOTH: [SourceKind; 2] = [SourceKind::Published, SourceKind::PathSource];

    #[test]
    fn everything_ships_but_vibedeps_and_what_vibeignore_matches() {
        let package = package(&[
            "vibe.toml",
            ".hidden/x",
            ".github/y",
            "vibedeps/a",
            "sub/vibedeps/b",
            ".vibeignore=*.log\n/only-here\nbuild/\n!kept.log\n",
            "a.log",
            "kept.log",
            "sub/b.log",
            "only-here",
            "sub/only-here",
            "build/deep/c",
            "sub/.vibeignore=only-here\n",
            "empty/",
        ]);
        for kind in BOTH {
            assert_eq!(
                paths(package.path(), kind),
                [
                    ".github/y",
                    ".hidden/x",
                    ".vibeignore",
                    "kept.log",
                    "sub/.vibeignore",
                    "sub/only-here",
                    "sub/vibedeps/b",
                    "vibe.toml",
                ]
            );
        }
    }

    #[test]
    fn a_file_called_vibedeps_is_an_ordinary_file() {
        assert_eq!(
            paths(package(&["vibedeps"]).path(), SourceKind::Published),
            ["vibedeps"]
        );
    }

    #[test]
    fn a_path_source_goes_without_git_and_what_gitignore_matches() {
        let package = package(&[
            ".git/config",
            "sub/.git",
            ".gitignore=/target\n*.tmp\nsecret\n",
            "target/x",
            "a.tmp",
            "sub/.gitignore=!b.tmp\n/local\n",
            "sub/b.tmp",
            "sub/c.tmp/d",
            "sub/local",
            "sub/deep/local",
            "sub/secret",
            ".vibeignore=!secret\n",
        ]);
        assert_eq!(
            paths(package.path(), SourceKind::PathSource),
            [
                ".gitignore",
                ".vibeignore",
                "sub/.gitignore",
                "sub/b.tmp",
                "sub/deep/local",
            ]
        );
    }

    #[test]
    fn rules_of_one_directory_do_not_reach_its_neighbours() {
        let package = package(&["a/.gitignore=*\n!.gitignore\n", "a/x", "b/x"]);
        assert_eq!(
            paths(package.path(), SourceKind::PathSource),
            ["a/.gitignore", "b/x"]
        );
    }

    #[test]
    fn rules_above_the_package_do_not_hold() {
        let outer = package(&[".gitignore=*\n", ".git/", "inner/x"]);
        let inner = outer.path().join("inner");
        assert_eq!(paths(&inner, SourceKind::PathSource), ["x"]);
    }

    #[test]
    fn a_published_package_keeps_what_gitignore_matches_and_has_no_git() {
        let ignored = package(&[".gitignore=x\n", "x"]);
        assert_eq!(
            paths(ignored.path(), SourceKind::Published),
            [".gitignore", "x"]
        );
        for entry in [".git/config", "docs/.git", ".GIT/x", "git~1/x"] {
            let error = refusal(package(&[entry]).path(), SourceKind::Published);
            assert!(matches!(error, FetchError::Name(_)), "{entry}: {error}");
        }
    }

    #[test]
    fn only_the_plain_spelling_of_git_is_skipped_in_a_path_source() {
        for entry in [".GIT/x", "sub/git~1", ".git./x"] {
            let error = refusal(package(&[entry]).path(), SourceKind::PathSource);
            assert!(matches!(error, FetchError::Name(_)), "{entry}: {error}");
        }
    }

    #[test]
    fn names_that_no_package_may_have_are_refused_and_shown_escaped() {
        for (name, shown) in [
            (&b"caf\xe9"[..], "`caf\\xE9`"),
            (b"a\nb", "`a\\nb`"),
            (b"a\x1b[2J", "`a\\x1B[2J`"),
            ("a\u{202e}gnp".as_bytes(), "`aU+202Egnp`"),
            (b"CON", "`CON`"),
            (b"a\\b", "`a\\b`"),
            (b".vibe-slot.toml", "reserved"),
            (b".VIBE-slot.toml", "reserved"),
            (b".vibe-tmp-1", "reserved"),
        ] {
            for kind in BOTH {
                let package = package(&["vibe.toml"]);
                let path = package.path().join(OsStr::from_bytes(name));
                fs::write(&path, "").unwrap();
                let text = refusal(package.path(), kind).to_string();
                assert!(text.contains(shown), "{text}");
                assert!(!text.contains('\x1b') && !text.contains('\n'), "{text:?}");
                fs::remove_file(&path).unwrap();
                fs::create_dir(&path).unwrap();
                assert_eq!(refusal(package.path(), kind).to_string(), text);
            }
        }
    }

    #[test]
    fn an_ignored_entry_may_have_any_name() {
        let package = package(&[".vibeignore=build/\n", "build/"]);
        let odd = package
            .path()
            .join("build")
            .join(OsStr::from_bytes(b"caf\xe9"));
        fs::write(odd, "").unwrap();
        assert_eq!(
            paths(package.path(), SourceKind::Published),
            [".vibeignore"]
        );
    }

    #[test]
    fn a_pipe_or_socket_is_refused_by_name() {
        use rustix::fs::{CWD, FileType, Mode, mknodat};
        for special in [FileType::Fifo, FileType::Socket] {
            let package = package(&["sub/"]);
            let path = package.path().join("sub/odd");
            mknodat(CWD, &path, special, Mode::from_raw_mode(0o644), 0).unwrap();
            let text = refusal(package.path(), SourceKind::PathSource).to_string();
            assert!(text.starts_with("`sub/odd` is a named pipe"), "{text}");
        }
    }

    #[test]
    fn a_link_within_the_package_lists_its_target() {
        let package = package(&["d/f=12345"]);
        let at = |name: &str| package.path().join(name);
        fs::set_permissions(at("d/f"), fs::Permissions::from_mode(0o755)).unwrap();
        symlink("d", at("l")).unwrap();
        for kind in BOTH {
            let listing = list(package.path(), kind, &PackageLimits::default()).unwrap();
            assert_eq!(listing.files.len(), 2);
            let link = &listing.files[1];
            assert_eq!((link.path.as_str(), link.size, link.exec), ("l/f", 5, true));
            let FileContent::Disk { location, stat } = &link.content else {
                panic!("{link:?}");
            };
            assert!(location.ends_with("d/f"));
            assert_eq!(stat_of(location).unwrap(), Some(*stat));
        }
    }

    #[test]
    fn links_of_every_other_kind_are_refused_naming_link_and_target() {
        for (target, problem) in [
            ("/etc/passwd", "is absolute"),
            ("../outside", "leaves the package"),
            ("absent", "does not exist"),
            ("l", "leads back"),
            ("..", "leaves the package"),
            (".", "leads back"),
            ("ignored", "is ignored"),
            ("vibedeps/x", "is ignored"),
        ] {
            let package = package(&[".vibeignore=/ignored\n", "ignored", "vibedeps/x"]);
            symlink(target, package.path().join("l")).unwrap();
            for kind in BOTH {
                let text = refusal(package.path(), kind).to_string();
                let start = format!("`l` is a link to `{target}`, which {problem}");
                assert!(text.starts_with(&start), "{text}");
            }
        }
    }

    #[test]
    fn a_reserved_name_is_refused_as_a_link_too() {
        let package = package(&["f"]);
        symlink("f", package.path().join(".vibe-slot.toml")).unwrap();
        let error = refusal(package.path(), SourceKind::Published);
        assert!(matches!(error, FetchError::Name(_)), "{error}");
    }

    fn with_limits(root: &Path, limits: PackageLimits) -> Result<usize, String> {
        list(root, SourceKind::Published, &limits)
            .map(|listing| listing.files.len())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn sizes_and_counts_are_bounded_before_content_is_read() {
        let package = package(&["a=123", "b=12345", "d/e/f=1"]);
        let limits = PackageLimits {
            package_bytes: 9,
            package_entries: 3,
            file_bytes: 5,
        };
        assert_eq!(with_limits(package.path(), limits), Ok(3));
        let check = |change: fn(&mut PackageLimits), expected: &str| {
            let mut limits = limits;
            change(&mut limits);
            assert_eq!(with_limits(package.path(), limits).unwrap_err(), expected);
        };
        check(
            |limits| limits.package_bytes = 8,
            "the files of the package have 9 bytes together; the limit is 8",
        );
        check(
            |limits| limits.file_bytes = 4,
            "`b` has 5 bytes; the limit of one file is 4",
        );
        check(
            |limits| limits.package_entries = 2,
            "the package has 3 entries or more; the limit is 2",
        );
    }

    #[test]
    fn a_huge_sparse_file_is_refused_by_its_size() {
        let package = package(&["big"]);
        let file = fs::File::options()
            .write(true)
            .open(package.path().join("big"));
        file.unwrap().set_len((1 << 30) + 1).unwrap();
        let text = refusal(package.path(), SourceKind::Published).to_string();
        assert_eq!(
            text,
            "`big` has 1073741825 bytes; the limit of one file is 1073741824"
        );
    }

    #[test]
    fn permissions_that_are_not_installed_are_noted() {
        let package = package(&["a", "b", "c"]);
        for (name, mode) in [("a", 0o6755), ("b", 0o666), ("c", 0o755)] {
            let mode = fs::Permissions::from_mode(mode);
            fs::set_permissions(package.path().join(name), mode).unwrap();
        }
        let listing = list(
            package.path(),
            SourceKind::Published,
            &PackageLimits::default(),
        )
        .unwrap();
        let notes: Vec<String> = listing.notes.iter().map(ToString::to_string).collect();
        assert_eq!(
            notes,
            [
                "`a` has mode 6755; it is installed with 0755",
                "`b` has mode 0666; it is installed with 0644"
            ]
        );
        let exec: Vec<bool> = listing.files.iter().map(|file| file.exec).collect();
        assert_eq!(exec, [true, false, true]);
    }

    #[test]
    fn a_line_that_is_no_pattern_is_noted() {
        let package = package(&["d/.gitignore=ok\n{x\n"]);
        let listing = list(
            package.path(),
            SourceKind::PathSource,
            &PackageLimits::default(),
        )
        .unwrap();
        let notes: Vec<String> = listing.notes.iter().map(ToString::to_string).collect();
        assert_eq!(
            notes,
            ["line 2 of `d/.gitignore` is no pattern and has no effect"]
        );
    }

    #[test]
    fn the_root_of_a_published_package_is_a_real_directory() {
        let package = package(&["real/x", "file"]);
        let at = |name: &str| package.path().join(name);
        symlink("real", at("link")).unwrap();
        assert_eq!(paths(&at("link"), SourceKind::PathSource), ["x"]);
        let text = refusal(&at("link"), SourceKind::Published).to_string();
        assert!(
            text.ends_with("link is a symbolic link, not a directory"),
            "{text}"
        );
        for kind in BOTH {
            refusal(&at("file"), kind);
            let text = refusal(&at("absent"), kind).to_string();
            assert!(text.starts_with("could not find /"), "{text}");
        }
    }
}
