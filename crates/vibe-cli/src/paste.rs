//! Commands that are printed for the user to paste.

use std::path::Path;

use vibe_core::text::shell_quote_bytes;

/// Writes commands that mean the project of this run, wherever they are pasted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Paste {
    project: Option<Vec<u8>>,
}

impl Paste {
    /// For a run with `--project` as given.
    pub(crate) fn new(project: Option<&Path>) -> Self {
        Self {
            project: project.map(|path| path.as_os_str().as_encoded_bytes().to_vec()),
        }
    }

    /// `vibe` with `words`, each quoted for a shell where it has to be.
    pub(crate) fn line(&self, words: &[&str]) -> String {
        let project = self.project.iter();
        let project = project.flat_map(|project| [b"--project".as_slice(), project.as_slice()]);
        std::iter::once(b"vibe".as_slice())
            .chain(project)
            .chain(words.iter().map(|word| word.as_bytes()))
            .map(shell_quote_bytes)
            .collect::<Vec<_>>()
            .join(" ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_is_quoted_where_a_shell_would_act_on_it() {
        let here = Paste::default();
        assert_eq!(
            here.line(&["hooks", "log", "org.example/a"]),
            "vibe hooks log org.example/a"
        );
        let there = Paste::new(Some(Path::new("/a b/$(id)")));
        assert_eq!(
            there.line(&["install", "path:it's"]),
            r"vibe --project '/a b/$(id)' install 'path:it'\''s'"
        );
    }

    #[test]
    #[cfg(unix)]
    fn a_directory_whose_name_is_no_text_is_meant_byte_for_byte() {
        use std::os::unix::ffi::OsStrExt;

        let odd = std::ffi::OsStr::from_bytes(b"/a/\xff");
        let there = Paste::new(Some(Path::new(odd)));
        assert_eq!(there.line(&["list"]), r"vibe --project $'/a/\377' list");
    }
}
