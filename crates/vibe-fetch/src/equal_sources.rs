//! What holds of a package whatever kind of source it comes from: a published directory, somebody's
//! working directory or a commit. Each case is run with all of them.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use vibe_core::limits::PackageLimits;
use vibe_core::{RelPath, Sha256Digest, Tree, TreeRow};
use vibe_store::{StagedTree, Store};
use vibe_testkit::{GitProgram, GitRepository};

use crate::error::FetchError;
use crate::listing::{Listing, list};
use crate::testing::{
    Entries, Entry, commit, entries, list_commit, names, shown, tree, write_directory,
};
use crate::{Contents, SourceKind, hash_listing, stage_listing};

/// A place for the three kinds of source.
struct Place {
    directory: tempfile::TempDir,
    repository: GitRepository,
}

/// Which sources can hold something, or take it the same way.
#[derive(Clone, Copy, PartialEq, Eq)]
enum In {
    All,
    /// A path source leaves it out.
    NotPathSource,
    /// No file system has it.
    GitOnly,
}

impl Place {
    fn new() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let repository = GitRepository::new(&directory.path().join("repository"));
        Self {
            directory,
            repository,
        }
    }

    /// The listings of `entries` from each source, by its name.
    fn listings(
        &self,
        entries: &Entries,
        place: In,
        limits: &PackageLimits,
    ) -> Vec<(&'static str, Result<Listing, FetchError>)> {
        let id = commit(&self.repository, entries);
        let mut listings = vec![("git", list_commit(&self.repository, &id, None, limits))];
        let nested = entries.iter().map(|(names, entry)| {
            let names = [b"package".to_vec()].into_iter().chain(names.clone());
            (names.collect(), entry.clone())
        });
        let id = commit(&self.repository, &nested.collect());
        let listing = list_commit(&self.repository, &id, Some("package"), limits);
        listings.push(("git subdir", listing));
        if place == In::GitOnly {
            return listings;
        }
        let root = tempfile::tempdir_in(self.directory.path()).unwrap().keep();
        write_directory(&root, entries);
        listings.push(("published", list(&root, SourceKind::Published, limits)));
        if place == In::All {
            listings.push(("path", list(&root, SourceKind::PathSource, limits)));
        }
        listings
    }

    fn refused(&self, entries: &Entries, place: In, limits: &PackageLimits, words: &[&str]) {
        for (source, listing) in self.listings(entries, place, limits) {
            let hashed = listing.and_then(|listing| {
                assert!(stage(&listing, &self.store()).is_err(), "{words:?}");
                hash_listing(&listing)
            });
            let text = hashed
                .expect_err(&format!("{source}: {words:?}"))
                .to_string();
            for word in words {
                assert!(text.contains(word), "{source}: {text} has no {word}");
            }
            assert_eq!(vibe_core::text::escape(&text), text, "{source}");
        }
    }

    fn store(&self) -> Store {
        Store::new(self.directory.path().join("store"))
    }
}

fn stage(listing: &Listing, store: &Store) -> Result<(StagedTree, Contents), FetchError> {
    let staged = store.stage().unwrap();
    let contents = stage_listing(listing, &staged)?;
    Ok((staged, contents))
}

fn check_refused(cases: &[(&[u8], In, &[&str])]) {
    let place = Place::new();
    for (path, where_, words) in cases {
        let entries = vec![(names(path), Entry::File(b"x".to_vec()))];
        place.refused(&entries, *where_, &PackageLimits::default(), words);
    }
}

#[test]
fn paths_that_leave_the_package_are_refused() {
    let dots: &[&str] = &["it has a `.` or `..` component"];
    check_refused(&[
        (b"../evil", In::GitOnly, &["`../evil`", dots[0]]),
        (b"a/../../evil", In::GitOnly, dots),
        (b"./a", In::GitOnly, dots),
        (b"..", In::GitOnly, dots),
        (
            b"/abs/evil",
            In::GitOnly,
            &["`/abs/evil`", "it is absolute"],
        ),
        (b"a//b", In::GitOnly, &["it has an empty component"]),
        (b"..\\evil", In::All, &["the character `\\`"]),
        (b"C:\\evil", In::All, &["the character `:`"]),
        (b"C:evil", In::All, &["the character `:`"]),
        (b"\\\\srv\\share\\x", In::All, &["the character `\\`"]),
    ]);
}

#[test]
fn spellings_of_git_are_refused() {
    let git: &[&str] = &["is a spelling of `.git`"];
    check_refused(&[
        (b".git/config", In::NotPathSource, git),
        (b"docs/.git/hooks/x", In::NotPathSource, git),
        (b".git", In::NotPathSource, git),
        (b".GIT/x", In::All, git),
        (b".giT/x", In::All, git),
        (b"git~1/x", In::All, git),
        (b"GIT~2", In::All, git),
        (b".git.", In::All, git),
        (b".git ", In::All, git),
        (b".git...  ", In::All, git),
        (b".git::$INDEX_ALLOCATION/x", In::All, git),
        (".g\u{200c}it/x".as_bytes(), In::All, git),
    ]);
}

#[test]
fn names_that_are_not_portable_are_refused_and_shown_escaped() {
    let device: &[&str] = &["is a device name on Windows"];
    check_refused(&[
        (b"notes.md:stream", In::All, &["the character `:`"]),
        (b"a\\b", In::All, &["`a\\b`", "the character `\\`"]),
        (b"CON", In::All, device),
        (b"aux.md", In::All, device),
        (b"NUL.tar.gz", In::All, device),
        (b"COM1.txt", In::All, device),
        ("COM\u{b9}".as_bytes(), In::All, device),
        (b"CONIN$", In::All, device),
        (b"name.", In::All, &["ends in a dot or a space"]),
        (b"name ", In::All, &["ends in a dot or a space"]),
        (b"a\nb", In::All, &["`a\\nb`", "U+000A"]),
        (b"a\rb", In::All, &["U+000D"]),
        (b"a\tb", In::All, &["U+0009"]),
        (b"a\x7fb", In::All, &["U+007F"]),
        (b"a\x1b[2J", In::All, &["`a\\x1B[2J`"]),
        ("a\u{202e}gnp".as_bytes(), In::All, &["`aU+202Egnp`"]),
        (b"caf\xe9", In::All, &["`caf\\xE9`", "not UTF-8"]),
        (b"d/caf\xe9/x", In::All, &["caf\\xE9", "not UTF-8"]),
        (b".vibe-slot.toml", In::All, &["reserved"]),
        (b".VIBE-slot.toml", In::All, &["reserved"]),
        (b".vibe-tmp-1/x", In::All, &["reserved"]),
    ]);
}

#[test]
fn names_that_are_too_long_are_refused_with_their_length() {
    let deep = ["d"; 65].join("/");
    let long = format!("{}x", "d1234567/".repeat(130));
    check_refused(&[
        (
            "n".repeat(256).as_bytes(),
            In::GitOnly,
            &["256 bytes, more than 255"],
        ),
        (
            deep.as_bytes(),
            In::All,
            &["65 components deep, more than 64"],
        ),
        (
            long.as_bytes(),
            In::GitOnly,
            &["1171 bytes, more than 1024"],
        ),
        (["n"; 300].join("/").as_bytes(), In::GitOnly, &["deep"]),
    ]);
}

#[test]
fn a_name_that_is_a_path_of_very_many_components_is_refused_and_shown_in_short() {
    let place = Place::new();
    let blob = place.repository.blob(b"x");
    let name = "n/".repeat(500_000) + "x";
    let tree = place
        .repository
        .raw_tree(&[("100644", name.as_bytes(), &blob)]);
    let id = place.repository.commit_tree(&tree);
    let listing = list_commit(&place.repository, &id, None, &PackageLimits::default());
    let text = listing.unwrap_err().to_string();
    assert!(text.contains("an entry named `n/n/n/n/"), "{text}");
    assert!(text.len() < 1_000, "{}", text.len());
}

#[test]
fn names_that_collide_are_refused_naming_both() {
    let place = Place::new();
    let limits = PackageLimits::default();
    for (lines, words) in [
        (["README.md", "readme.md"], ["`README.md`", "`readme.md`"]),
        (["Docs/a.md", "docs"], ["`Docs/a.md`", "`docs`"]),
        (["x/e\u{301}", "x/\u{e9}"], ["`x/e\u{301}`", "`x/\u{e9}`"]),
    ] {
        place.refused(&entries(&lines), In::All, &limits, &words);
    }
}

#[test]
fn two_entries_of_one_path_are_refused() {
    let place = Place::new();
    let limits = PackageLimits::default();
    for lines in [
        ["a", "a"],
        ["a", "a -> b"],
        ["a", "a/b"],
        ["a -> b", "a/b"],
        ["d/a", "d/a/b"],
    ] {
        let words = ["is there more than once in the git tree"];
        place.refused(&entries(&lines), In::GitOnly, &limits, &words);
    }
    let blob = place.repository.blob(b"x");
    let one = place.repository.raw_tree(&[("100644", b"x", &blob)]);
    let tree = place
        .repository
        .raw_tree(&[("40000", b"d", &one), ("40000", b"d", &one)]);
    let id = place.repository.commit_tree(&tree);
    let text = list_commit(&place.repository, &id, None, &limits)
        .unwrap_err()
        .to_string();
    assert!(text.starts_with("`d/x` is there more than once"), "{text}");
}

#[test]
fn links_that_cannot_become_copies_are_refused_naming_link_and_target() {
    let place = Place::new();
    let limits = PackageLimits::default();
    for (link, words) in [
        (
            "l -> /etc/passwd",
            ["`l` is a link to `/etc/passwd`", "is absolute"],
        ),
        (
            "l -> ../../..",
            ["`l` is a link to `../../..`", "leaves the package"],
        ),
        (
            "l -> absent",
            ["`l` is a link to `absent`", "does not exist"],
        ),
        (
            "l -> f/below",
            ["`l` is a link to `f/below`", "does not exist"],
        ),
        ("l -> l", ["`l` is a link to `l`", "leads back"]),
        ("l -> .", ["`l` is a link to `.`", "leads back"]),
        ("l -> ignored", ["`l` is a link to `ignored`", "is ignored"]),
        (
            "l -> vibedeps",
            ["`l` is a link to `vibedeps`", "is ignored"],
        ),
        (
            "l -> deep/below",
            ["`l` is a link to `deep/below`", "is ignored"],
        ),
        (
            "d/l -> a\u{1b}b",
            ["`d/l` is a link to `a\\x1Bb`", "does not exist"],
        ),
        (".vibe-slot.toml -> f", ["`.vibe-slot.toml`", "reserved"]),
    ] {
        let mut all = entries(&[
            ".vibeignore=/ignored\n/deep/\n",
            "f",
            "ignored",
            "vibedeps/x",
            "deep/below/x",
        ]);
        all.extend(entries(&[link]));
        place.refused(&all, In::All, &limits, &words);
    }
    let loops = entries(&["a -> b", "b -> a"]);
    place.refused(
        &loops,
        In::All,
        &limits,
        &["`a` is a link to `b`", "leads back"],
    );
    let out = entries(&["l -> ../package/f", "f"]);
    place.refused(&out, In::All, &limits, &["leaves the package"]);
}

#[test]
fn links_that_only_git_can_hold_are_refused() {
    let place = Place::new();
    let limits = PackageLimits::default();
    let check = |target: &str, words: &[&str]| {
        let blob = place.repository.blob(target.as_bytes());
        let tree = place.repository.raw_tree(&[("120000", b"l", &blob)]);
        let id = place.repository.commit_tree(&tree);
        let text = list_commit(&place.repository, &id, None, &limits)
            .unwrap_err()
            .to_string();
        for word in words {
            assert!(text.contains(word), "{text}");
        }
    };
    check("", &["`l` is a link to ``", "does not exist"]);
    check("a\0b", &["`l` is a link to `a\\x00b`", "does not exist"]);
    check(
        &"x".repeat(4_097),
        &["`l` is a link to something of 4097 bytes", "4096"],
    );
}

#[test]
fn sizes_and_counts_are_bounded_before_content_is_read() {
    let place = Place::new();
    let all = entries(&[
        "a=123",
        "b=12345",
        "d/e/f=1",
        ".vibeignore=/big\n",
        "big/x=1234567890",
    ]);
    let limits = PackageLimits {
        package_bytes: 14,
        package_entries: 4,
        file_bytes: 5,
    };
    for (source, listing) in place.listings(&all, In::All, &limits) {
        assert_eq!(listing.unwrap().files.len(), 4, "{source}");
    }
    let check = |limits, text| place.refused(&all, In::All, &limits, &[text]);
    let package_bytes = PackageLimits {
        package_bytes: 13,
        ..limits
    };
    check(package_bytes, "have 14 bytes together; the limit is 13");
    let file_bytes = PackageLimits {
        file_bytes: 4,
        ..limits
    };
    check(file_bytes, "bytes; the limit of one file is 4");
    let package_entries = PackageLimits {
        package_entries: 3,
        ..limits
    };
    check(
        package_entries,
        "the package has 4 entries or more; the limit is 3",
    );
}

#[test]
fn all_sources_ship_the_same() {
    let place = Place::new();
    let all = entries(&[
        "vibe.toml",
        ".vibeignore=*.log\n/only-here\nbuild/\n!kept.log\n",
        ".hidden/x",
        "*run",
        "vibedeps/a",
        "sub/vibedeps/b",
        "a.log",
        "kept.log",
        "sub/b.log",
        "only-here",
        "sub/only-here",
        "build/deep/c",
        "build/CON",
        "link -> run",
        "all -> sub",
        ".gitattributes=* text eol=crlf\n",
        ".gitmodules=",
    ]);
    let listings = place.listings(&all, In::All, &PackageLimits::default());
    let first = tree(listings[0].1.as_ref().unwrap());
    for (source, listing) in listings {
        let listing = listing.unwrap();
        let expected = [
            ".gitattributes",
            ".gitmodules",
            ".hidden/x",
            ".vibeignore",
            "all/only-here",
            "all/vibedeps/b",
            "kept.log",
            "*link",
            "*run",
            "sub/only-here",
            "sub/vibedeps/b",
            "vibe.toml",
        ];
        assert_eq!(shown(&listing), expected, "{source}");
        assert_eq!(tree(&listing), first, "{source}");
    }
}

#[test]
fn what_is_committed_ships_though_gitignore_matches_it() {
    let place = Place::new();
    let all = entries(&[".gitignore=x\n", "x"]);
    let listings = place.listings(&all, In::NotPathSource, &PackageLimits::default());
    for (source, listing) in listings {
        assert_eq!(shown(&listing.unwrap()), [".gitignore", "x"], "{source}");
    }
}

#[test]
fn a_large_file_pointer_is_noted_with_its_real_size() {
    let place = Place::new();
    let all = entries(&[
        "model.bin=version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 987654321\n",
        "readme",
    ]);
    for (source, listing) in place.listings(&all, In::All, &PackageLimits::default()) {
        let listing = listing.unwrap();
        let (_, stored) = stage(&listing, &place.store()).unwrap();
        let hashed = hash_listing(&listing).unwrap();
        assert_eq!(stored, hashed, "{source}");
        let notes: Vec<String> = hashed.notes.iter().map(ToString::to_string).collect();
        assert_eq!(notes.len(), 1, "{source}");
        let start = "`model.bin` is a git LFS pointer; its content of 987654321 bytes";
        assert!(notes[0].starts_with(start), "{source}: {}", notes[0]);
    }
}

#[test]
fn a_line_of_vibeignore_that_is_no_pattern_is_noted() {
    let place = Place::new();
    let all = entries(&[".vibeignore=ok\n{x\n", "x"]);
    for (source, listing) in place.listings(&all, In::All, &PackageLimits::default()) {
        let listing = listing.unwrap();
        let notes: Vec<String> = listing.notes.iter().map(ToString::to_string).collect();
        let expected = "line 2 of `.vibeignore` is no pattern and has no effect";
        assert_eq!(notes, [expected], "{source}");
    }
}

#[test]
fn a_link_called_vibeignore_ignores_nothing() {
    let place = Place::new();
    let all = entries(&["rules=x\n", ".vibeignore -> rules", "x"]);
    for (source, listing) in place.listings(&all, In::All, &PackageLimits::default()) {
        assert_eq!(
            shown(&listing.unwrap()),
            [".vibeignore", "rules", "x"],
            "{source}"
        );
    }
}

#[test]
fn what_is_stored_is_what_was_listed() {
    let place = Place::new();
    let all = entries(&["a=1", "*d/run=#!/bin/sh\n", "l -> d", "twin=1", "empty="]);
    for (source, listing) in place.listings(&all, In::All, &PackageLimits::default()) {
        let listing = listing.unwrap();
        let store = Store::new(place.directory.path().join(source));
        let (staged, contents) = stage(&listing, &store).unwrap();
        assert_eq!(contents.tree, tree(&listing), "{source}");
        assert!(store.get(contents.tree.id()).unwrap().is_none(), "{source}");
        let stored = staged.finish().unwrap();
        assert_eq!(stored.tree(), &contents.tree, "{source}");
        for file in &listing.files {
            let bytes = fs::read(stored.proved(&file.path).unwrap()).unwrap();
            assert_eq!(bytes, listing.read(file, 100).unwrap(), "{source}");
        }
    }
}

#[test]
fn a_file_that_is_not_as_listed_is_not_stored() {
    let directory = tempfile::tempdir().unwrap();
    let root = directory.path().join("package");
    write_directory(&root, &entries(&["a", "b"]));
    let limits = PackageLimits::default();
    let listing = list(&root, SourceKind::Published, &limits).unwrap();
    let store = Store::new(directory.path().join("store"));
    let check = |content: &str| {
        fs::write(root.join("b"), content).unwrap();
        let text = stage(&listing, &store).unwrap_err().to_string();
        assert!(text.starts_with("`b` changed while it was read"), "{text}");
    };
    check("longer than before");
    check("c");
    assert!(store.entries().unwrap().is_empty());
}

#[test]
fn nothing_that_acts_on_a_checkout_acts_on_a_package() {
    let place = Place::new();
    let marker = place.directory.path().join("marker");
    let all = entries(&[
        ".gitattributes=* text eol=crlf\n*.id ident\n*.u16 working-tree-encoding=UTF-16\n\
         *.f filter=x\nsecret export-ignore\n*.s export-subst\n",
        "unix=a\nb\n",
        "dos=a\r\nb\r\n",
        "mixed=a\r\nb\n",
        "x.id=$Id$ $Id: 1234 $\n",
        "x.u16=text\n",
        "x.f=filtered\n",
        "x.s=$Format:%H$\n",
        "secret",
    ]);
    for setting in ["true", "input", "false"] {
        let git = |key: &str, value: &str| place.repository.git(&["config", key, value]);
        git("core.autocrlf", setting);
        git("core.eol", "crlf");
        git("core.fileMode", "false");
        git("core.symlinks", "false");
        git("filter.x.smudge", &format!("touch {}", marker.display()));
        git("filter.x.process", &format!("touch {}", marker.display()));
        git("filter.x.required", "true");
        let listings = place.listings(&all, In::All, &PackageLimits::default());
        let expected: Tree = Tree::new(
            all.iter()
                .map(|(names, entry)| row(&names.join(&b'/'), entry))
                .collect(),
        )
        .unwrap();
        for (source, listing) in listings {
            assert_eq!(tree(&listing.unwrap()), expected, "{source}, {setting}");
        }
    }
    assert!(!marker.exists());
}

fn row(path: &[u8], entry: &Entry) -> TreeRow {
    let (content, exec) = match entry {
        Entry::File(content) => (content, false),
        Entry::Exec(content) => (content, true),
        other => panic!("{other:?} is no file"),
    };
    TreeRow {
        path: RelPath::from_bytes(path).unwrap(),
        digest: Sha256Digest::of(content),
        exec,
    }
}

/// Commits files with one process: `git fast-import` takes bytes as they are.
fn import(git: &GitProgram, repository: &Path, files: &Files) -> String {
    let mut stream = b"commit refs/heads/it\ncommitter A <a@b> 0 +0000\ndata 0\n".to_vec();
    stream.extend_from_slice(b"deleteall\n");
    for (path, (content, exec)) in files {
        let mode = if *exec { "100755" } else { "100644" };
        stream.extend(format!("M {mode} inline {path}\ndata {}\n", content.len()).bytes());
        stream.extend_from_slice(content);
        stream.push(b'\n');
    }
    let mut command = git.command(repository, &["fast-import", "--quiet", "--force"]);
    let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(&stream).unwrap();
    assert!(child.wait().unwrap().success());
    git.run(repository, &["rev-parse", "refs/heads/it"])
}

type Files = BTreeMap<String, (Vec<u8>, bool)>;

fn any_files() -> impl Strategy<Value = Files> {
    let path = "[a-c .é漢+-]{0,3}[a-c](/[a-c~é]{1,2}[a-z]){0,3}";
    let file = (proptest::collection::vec(any::<u8>(), 0..40), any::<bool>());
    proptest::collection::btree_map(path, file, 1..8)
}

fn entries_of(files: &Files) -> Entries {
    let entry = |(path, (content, exec)): (&String, &(Vec<u8>, bool))| {
        let content = content.clone();
        let entry = match exec {
            true => Entry::Exec(content),
            false => Entry::File(content),
        };
        (names(path.as_bytes()), entry)
    };
    files.iter().map(entry).collect()
}

/// The tree of `files`, if no two of them collide.
fn expected_tree(entries: &Entries) -> Option<Tree> {
    let rows: Option<Vec<TreeRow>> = entries
        .iter()
        .map(|(names, entry)| {
            let path = names.join(&b'/');
            RelPath::from_bytes(&path).ok().map(|_| row(&path, entry))
        })
        .collect();
    Tree::new(rows?).ok()
}

#[test]
fn the_same_files_have_one_identity_from_every_source() {
    let place = Place::new();
    let git = GitProgram::new();
    let limits = PackageLimits::default();
    let check = |files: Files| {
        let entries = entries_of(&files);
        let Some(expected) = expected_tree(&entries) else {
            return Err(TestCaseError::reject("names that collide"));
        };
        let id = import(&git, place.repository.path(), &files);
        let root = tempfile::tempdir_in(place.directory.path()).unwrap();
        write_directory(root.path(), &entries);
        for listing in [
            list_commit(&place.repository, &id, None, &limits),
            list(root.path(), SourceKind::Published, &limits),
            list(root.path(), SourceKind::PathSource, &limits),
        ] {
            let listing = listing.unwrap();
            prop_assert_eq!(&tree(&listing), &expected);
            let (_, stored) = stage(&listing, &place.store()).unwrap();
            prop_assert_eq!(&stored.tree, &expected);
        }
        Ok(())
    };
    let mut runner = TestRunner::new(ProptestConfig::with_cases(24));
    runner.run(&any_files(), check).unwrap();
}
