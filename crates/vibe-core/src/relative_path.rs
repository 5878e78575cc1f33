//! Paths inside a package: the only type that can name a place in a slot.
//!
//! A path is taken only if it means the same file on every operating system and cannot leave the
//! directory it is joined to. The rules therefore hold everywhere, not only where a name is
//! dangerous: a package made on Linux must not attack, or fail on, a Mac or Windows machine.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use unicode_normalization::UnicodeNormalization;

use crate::limits::{COMPONENT_BYTES, PATH_BYTES, PATH_DEPTH};
use crate::string_serde::string_serde;
use crate::text::{escape, escape_bytes, is_deceptive, shorten};

/// The file name of a slot record; it lies in the root of a slot.
pub const RECORD_NAME: &str = ".vibe-slot.toml";
/// Root entries that begin so, in any letter case, are ours.
pub const RESERVED_PREFIX: &str = ".vibe-";

/// A checked relative path with forward slashes, ordered by its bytes.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RelPath(String);

/// Why a path cannot be a place in a package.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("`{path}` cannot be a path in a package: {rule}")]
pub struct PathError {
    /// The path, escaped and shortened.
    pub path: String,
    /// The rule it breaks.
    pub rule: PathRule,
}

/// The rules a path is held to.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathRule {
    /// Nothing, or nothing between two slashes.
    #[error("it has an empty component")]
    Empty,
    /// It begins at a root.
    #[error("it is absolute")]
    Absolute,
    /// `.` or `..`.
    #[error("it has a `.` or `..` component")]
    Dots,
    /// Bytes that are no UTF-8.
    #[error("its name is not UTF-8")]
    NotUtf8,
    /// Too many bytes in all.
    #[error("it has {0} bytes, more than {PATH_BYTES}")]
    TooLong(usize),
    /// Too many bytes in one component.
    #[error("it has a component of {0} bytes, more than {COMPONENT_BYTES}")]
    ComponentTooLong(usize),
    /// Too many components.
    #[error("it is {0} components deep, more than {PATH_DEPTH}")]
    TooDeep(usize),
    /// A character that some system cannot keep or that deceives.
    #[error("it has the character {0}, which is not portable")]
    Character(String),
    /// A dot or space at the end of a component.
    #[error("a component ends in a dot or a space, which is not portable")]
    TrailingDot,
    /// A device name of Windows.
    #[error("`{0}` is a device name on Windows")]
    Device(String),
    /// A spelling of `.git`.
    #[error("`{0}` is a spelling of `.git`")]
    Git(String),
    /// A name that vibe uses itself.
    #[error("names beginning with `{RESERVED_PREFIX}` at the root are reserved")]
    Reserved,
}

impl RelPath {
    /// Checks `text`.
    pub fn new(text: &str) -> Result<Self, PathError> {
        match check(text) {
            Ok(()) => Ok(Self(text.to_owned())),
            Err(rule) => Err(PathError {
                path: escape(&shorten(text, 200)),
                rule,
            }),
        }
    }

    /// Checks the raw bytes of a name from a file system or a git tree.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, PathError> {
        match std::str::from_utf8(bytes) {
            Ok(text) => Self::new(text),
            Err(_) => Err(PathError {
                path: shorten(&escape_bytes(bytes), 200),
                rule: PathRule::NotUtf8,
            }),
        }
    }

    /// The text, with forward slashes.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The components, at least one.
    pub fn components(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/')
    }

    /// The last component.
    pub fn file_name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or(&self.0)
    }

    /// The path without its last component; `None` for a path of one component.
    pub fn parent(&self) -> Option<RelPath> {
        self.0
            .rsplit_once('/')
            .map(|(parent, _)| Self(parent.to_owned()))
    }

    /// Every proper ancestor, the outermost first.
    pub fn ancestors(&self) -> impl Iterator<Item = RelPath> {
        self.0
            .match_indices('/')
            .map(|(end, _)| Self(self.0[..end].to_owned()))
    }

    /// Whether this is `other` or lies below it.
    pub fn starts_with(&self, other: &RelPath) -> bool {
        self.0
            .strip_prefix(other.as_str())
            .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }

    /// This path with `component` below it.
    pub fn join(&self, component: &str) -> Result<Self, PathError> {
        Self::new(&format!("{}/{component}", self.0))
    }

    /// This path with `suffix` appended to its last component.
    pub fn with_suffix(&self, suffix: &str) -> Result<Self, PathError> {
        Self::new(&format!("{}{suffix}", self.0))
    }

    /// Where this path lies below `root`, with the separators of the host.
    pub fn under(&self, root: &Path) -> PathBuf {
        let mut path = root.to_path_buf();
        path.extend(self.components());
        path
    }

    /// Whether the root entry of this path belongs to vibe in any letter case.
    pub fn is_reserved(&self) -> bool {
        let root = self.components().next().unwrap_or_default();
        folded(root).starts_with(RESERVED_PREFIX)
    }
}

/// The key under which two paths are the same file on a system that folds case or normalises
/// names: NFKC of the full case folding of NFKC. Joins `ß` and `ss`, ligatures, the Kelvin
/// sign, composed and decomposed accents; keeps the dotless i apart.
pub(crate) fn folded(text: &str) -> String {
    // The same for ASCII, which nearly every name of a large package is, at a tenth of the cost.
    if text.is_ascii() {
        return text.to_ascii_lowercase();
    }
    let normal: String = text.nfkc().collect();
    caseless::default_case_fold_str(&normal).nfkc().collect()
}

fn check(text: &str) -> Result<(), PathRule> {
    if text.len() > PATH_BYTES {
        return Err(PathRule::TooLong(text.len()));
    }
    if text.starts_with('/') {
        return Err(PathRule::Absolute);
    }
    let depth = text.split('/').count();
    if depth > PATH_DEPTH {
        return Err(PathRule::TooDeep(depth));
    }
    text.split('/').try_for_each(check_component)
}

fn check_component(component: &str) -> Result<(), PathRule> {
    if component.is_empty() {
        return Err(PathRule::Empty);
    }
    if component == "." || component == ".." {
        return Err(PathRule::Dots);
    }
    if component.len() > COMPONENT_BYTES {
        return Err(PathRule::ComponentTooLong(component.len()));
    }
    // Before the characters: `.git::$INDEX_ALLOCATION` is best called what it aims at.
    if is_git_spelling(component) {
        return Err(PathRule::Git(escape(component)));
    }
    if let Some(character) = component.chars().find(|c| !is_portable(*c)) {
        return Err(PathRule::Character(character_name(character)));
    }
    if component.ends_with(['.', ' ']) {
        return Err(PathRule::TrailingDot);
    }
    if is_device(component) {
        return Err(PathRule::Device(escape(component)));
    }
    Ok(())
}

/// Windows refuses `<>:"|?*` and controls in names and takes `\` as a separator.
/// Source: Microsoft, "Naming Files, Paths, and Namespaces".
fn is_portable(character: char) -> bool {
    !character.is_control()
        && !is_deceptive(character)
        && !matches!(character, '<' | '>' | ':' | '"' | '|' | '?' | '*' | '\\')
}

fn character_name(character: char) -> String {
    if character.is_control() || is_deceptive(character) {
        return format!("U+{:04X}", u32::from(character));
    }
    format!("`{character}`")
}

/// Device names of Windows, with or without an extension, superscript digits included.
/// Source: Microsoft, "Naming Files, Paths, and Namespaces".
fn is_device(component: &str) -> bool {
    let stem = component
        .split('.')
        .next()
        .unwrap_or_default()
        .trim_end_matches(' ');
    let stem = stem.to_lowercase();
    if matches!(
        stem.as_str(),
        "con" | "prn" | "aux" | "nul" | "conin$" | "conout$"
    ) {
        return true;
    }
    stem.strip_prefix("com")
        .or_else(|| stem.strip_prefix("lpt"))
        .is_some_and(|digit| {
            matches!(
                digit,
                "0" | "1" | "2" | "3" | "4" | "5" | "6" | "7" | "8" | "9" | "¹" | "²" | "³"
            )
        })
}

/// Whether some file system takes `component` for `.git`: ignorable characters dropped, case
/// folded, cut at a colon (streams), trailing dots and spaces dropped; or its short name `git~1`.
fn is_git_spelling(component: &str) -> bool {
    let kept: String = component.chars().filter(|c| !is_deceptive(*c)).collect();
    let key = folded(&kept);
    let key = key
        .split(':')
        .next()
        .unwrap_or_default()
        .trim_end_matches(['.', ' ']);
    let short_name = key.strip_prefix("git~");
    key == ".git"
        || short_name.is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

impl FromStr for RelPath {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        Self::new(text)
    }
}

impl fmt::Display for RelPath {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}
string_serde!(RelPath);

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn rule(text: &str) -> PathRule {
        RelPath::new(text).expect_err(text).rule
    }

    #[test]
    fn ordinary_paths_are_taken() {
        for text in [
            "a",
            "a/b.c",
            ".gitignore",
            ".github/x",
            "git",
            "gitx",
            "git~",
            "git~a",
            "com",
            "com10",
            "console",
            "auxiliary.md",
            "a b",
            "..a",
            "a..b",
            ".a",
            "ключ",
            "漢字",
            "ı",
            "x+y@z#%&(){}[]!$'`,;=^~",
        ] {
            assert_eq!(RelPath::new(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn paths_that_leave_their_directory_are_refused() {
        assert_eq!(rule("/abs/evil"), PathRule::Absolute);
        for text in ["..", "../evil", "a/../../evil", "./a", "a/.", "."] {
            assert_eq!(rule(text), PathRule::Dots, "{text}");
        }
        for text in ["", "a//b", "a/"] {
            assert_eq!(rule(text), PathRule::Empty, "{text}");
        }
        for text in [
            "a\\b",
            "..\\evil",
            "C:evil",
            "C:\\evil",
            "\\\\srv\\share\\x",
            "\\\\?\\C:\\x",
        ] {
            assert!(matches!(rule(text), PathRule::Character(_)), "{text}");
        }
    }

    #[test]
    fn every_spelling_of_git_is_refused() {
        for text in [
            ".git",
            ".GIT",
            ".giT",
            "git~1",
            "GIT~2",
            "git~12",
            ".git.",
            ".git ",
            ".git...  ",
            ".git::$INDEX_ALLOCATION",
            ".g\u{200c}it",
            ".g\u{ad}it",
            ".ｇit",
        ] {
            assert!(matches!(rule(text), PathRule::Git(_)), "{text}");
            assert!(
                matches!(rule(&format!("a/b/{text}/config")), PathRule::Git(_)),
                "{text}"
            );
        }
    }

    #[test]
    fn names_that_are_not_portable_are_refused() {
        for text in [
            "CON",
            "con.txt",
            "aux.md",
            "NUL.tar.gz",
            "COM1.txt",
            "com¹",
            "LPT9",
            "lpt0",
            "CONIN$",
            "conout$.x",
            "prn .a",
        ] {
            assert!(matches!(rule(text), PathRule::Device(_)), "{text}");
        }
        for text in ["name.", "name ", "a/b./c"] {
            assert_eq!(rule(text), PathRule::TrailingDot, "{text}");
        }
        for (text, shown) in [
            ("a\nb", "U+000A"),
            ("a\rb", "U+000D"),
            ("a\tb", "U+0009"),
            ("a\u{7f}", "U+007F"),
            ("a\u{1b}[2J", "U+001B"),
            ("a\u{202e}gnp", "U+202E"),
            ("notes.md:stream", "`:`"),
            ("a|b", "`|`"),
            ("a\"", "`\"`"),
            ("a<", "`<`"),
            ("a>", "`>`"),
            ("a?", "`?`"),
            ("a*", "`*`"),
        ] {
            assert_eq!(rule(text), PathRule::Character(shown.to_owned()), "{text}");
        }
    }

    #[test]
    fn sizes_are_bounded_exactly() {
        let component = "a".repeat(255);
        assert!(RelPath::new(&component).is_ok());
        assert_eq!(rule(&"a".repeat(256)), PathRule::ComponentTooLong(256));
        let long = format!("{component}/{component}/{component}/{component}");
        assert_eq!(long.len(), 1_023);
        assert!(RelPath::new(&long).is_ok());
        assert!(
            RelPath::new(&format!("{long}a")[1..]).is_err(),
            "a component of 256"
        );
        assert!(RelPath::new(&["ab"; 341].join("/")).is_err());
        assert_eq!(rule(&format!("{long}/a")), PathRule::TooLong(1_025));
        assert!(RelPath::new(&["a"; 64].join("/")).is_ok());
        assert_eq!(rule(&["a"; 65].join("/")), PathRule::TooDeep(65));
        let exact = format!(
            "{}/{}",
            ["a".repeat(254), "b".repeat(255), "c".repeat(255)].join("/"),
            "d".repeat(257 - 2)
        );
        assert_eq!(exact.len(), 1_022);
        assert!(
            RelPath::new(&format!("{}/a", exact)).is_ok(),
            "1,024 bytes fit"
        );
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_escaped() {
        let error = RelPath::from_bytes(b"caf\xe9").unwrap_err();
        assert_eq!(error.rule, PathRule::NotUtf8);
        assert_eq!(error.path, "caf\\xE9");
        assert_eq!(RelPath::from_bytes(b"a/b").unwrap().as_str(), "a/b");
        assert!(RelPath::from_bytes(b"../a").is_err());
    }

    #[test]
    fn parts_of_a_path() {
        let path = RelPath::new("a/b/c.txt").unwrap();
        assert_eq!(path.file_name(), "c.txt");
        assert_eq!(path.parent().unwrap().as_str(), "a/b");
        assert_eq!(RelPath::new("a").unwrap().parent(), None);
        let ancestors: Vec<String> = path.ancestors().map(|p| p.to_string()).collect();
        assert_eq!(ancestors, ["a", "a/b"]);
        let parts: Vec<&str> = path.components().collect();
        assert_eq!(parts, ["a", "b", "c.txt"]);
        assert_eq!(path.under(Path::new("/r")), Path::new("/r/a/b/c.txt"));
        assert_eq!(
            path.with_suffix(".vibe-kept").unwrap().as_str(),
            "a/b/c.txt.vibe-kept"
        );
        assert_eq!(path.join("d").unwrap().as_str(), "a/b/c.txt/d");
        assert!(path.join("..").is_err());
        assert_eq!("a/b".parse::<RelPath>().unwrap().to_string(), "a/b");
    }

    #[test]
    fn starts_with_counts_whole_components() {
        let path = |text| RelPath::new(text).unwrap();
        assert!(path("a/b").starts_with(&path("a")));
        assert!(path("a/b").starts_with(&path("a/b")));
        assert!(!path("ab").starts_with(&path("a")));
        assert!(!path("a").starts_with(&path("a/b")));
    }

    #[test]
    fn reserved_names_are_found_in_any_case_at_the_root_only() {
        for (text, reserved) in [
            (".vibe-slot.toml", true),
            (".VIBE-Slot.toml", true),
            (".vibe-x/y", true),
            (".vibeignore", false),
            ("a/.vibe-slot.toml", false),
            ("vibe-slot.toml", false),
        ] {
            assert_eq!(
                RelPath::new(text).unwrap().is_reserved(),
                reserved,
                "{text}"
            );
        }
    }

    #[test]
    fn collision_key_joins_what_a_folding_system_joins() {
        let key = folded;
        assert_eq!(key("README.md"), key("readme.md"));
        assert_eq!(key("straße"), key("STRASSE"));
        assert_eq!(key("e\u{301}"), key("é"));
        assert_eq!(key("ﬁle"), key("file"));
        assert_eq!(key("\u{212a}"), key("k"));
        assert_ne!(key("ı"), key("i"));
    }

    proptest! {
        #[test]
        fn a_taken_path_stays_below_its_root(text in "\\PC{0,40}|[a./\\\\:~ ]{0,12}") {
            if let Ok(path) = RelPath::new(&text) {
                let joined = path.under(Path::new("/root"));
                prop_assert!(joined.starts_with("/root"));
                prop_assert!(joined.components().all(|c| matches!(c, std::path::Component::Normal(_) | std::path::Component::RootDir)));
                prop_assert_eq!(RelPath::new(path.as_str()).unwrap(), path);
            }
        }
    }
}
