//! One `.gitignore` or `.vibeignore` file as a matcher.

use std::path::{Path, PathBuf};

use ignore::Match;
use ignore::gitignore::{Gitignore, GitignoreBuilder};

/// The rules of one ignore file.
#[derive(Debug)]
pub(crate) struct IgnoreFile {
    /// The directory it lies in, relative to the package.
    base: PathBuf,
    matcher: Gitignore,
}

/// What an ignore file says about a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    Ignored,
    Kept,
    Silent,
}

impl IgnoreFile {
    /// The rules in `text`, of a file in the directory `base` of the package, and the numbers of
    /// the lines that are no pattern, counted from 1.
    pub(crate) fn parse(base: &Path, text: &str) -> (Self, Vec<usize>) {
        let mut builder = GitignoreBuilder::new("");
        let mut refused = Vec::new();
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        for (index, line) in text.lines().enumerate() {
            if builder.add_line(None, line).is_err() {
                refused.push(index + 1);
            }
        }
        let file = Self {
            base: base.to_path_buf(),
            matcher: builder.build().unwrap_or_else(|_| Gitignore::empty()),
        };
        (file, refused)
    }

    /// What this file says about `path`, relative to the package.
    pub(crate) fn verdict(&self, path: &Path, is_directory: bool) -> Verdict {
        let Ok(below) = path.strip_prefix(&self.base) else {
            return Verdict::Silent;
        };
        match self.matcher.matched(below, is_directory) {
            Match::Ignore(_) => Verdict::Ignored,
            Match::Whitelist(_) => Verdict::Kept,
            Match::None => Verdict::Silent,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn verdict(base: &str, text: &str, path: &str, is_directory: bool) -> Verdict {
        let (file, _) = IgnoreFile::parse(Path::new(base), text);
        file.verdict(Path::new(path), is_directory)
    }

    #[test]
    fn patterns_mean_what_they_mean_to_git() {
        let text = "\u{feff}*.log\r\n!keep.log\n# note\n/top\nonly/\n";
        for (path, is_directory, expected) in [
            ("a.log", false, Verdict::Ignored),
            ("deep/a.log", false, Verdict::Ignored),
            ("keep.log", false, Verdict::Kept),
            ("top", false, Verdict::Ignored),
            ("deep/top", false, Verdict::Silent),
            ("only", true, Verdict::Ignored),
            ("only", false, Verdict::Silent),
            ("# note", false, Verdict::Silent),
        ] {
            assert_eq!(verdict("", text, path, is_directory), expected, "{path}");
        }
    }

    #[test]
    fn a_nested_file_speaks_for_its_directory_only() {
        assert_eq!(verdict("sub", "/a", "sub/a", false), Verdict::Ignored);
        assert_eq!(verdict("sub", "/a", "sub/deep/a", false), Verdict::Silent);
        assert_eq!(verdict("sub", "a", "sub/deep/a", false), Verdict::Ignored);
        assert_eq!(verdict("sub", "a", "a", false), Verdict::Silent);
    }

    #[test]
    fn lines_that_are_no_pattern_are_counted_and_the_others_hold() {
        let (file, refused) = IgnoreFile::parse(Path::new(""), "x\n{a\ny\n");
        assert_eq!(refused, [2]);
        assert_eq!(file.verdict(Path::new("y"), false), Verdict::Ignored);
    }
}
