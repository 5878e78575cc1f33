//! Commands that are printed for the user to paste.

use std::path::Path;

use vibe_core::text::shell_quote;

/// Writes commands that mean the project of this run, wherever they are pasted.
#[derive(Debug, Clone, Default)]
pub(crate) struct Paste {
    project: Option<String>,
}

impl Paste {
    /// For a run with `--project` as given.
    pub(crate) fn new(project: Option<&Path>) -> Self {
        Self {
            project: project.map(|path| path.to_string_lossy().into_owned()),
        }
    }

    /// `vibe` with `words`, each quoted for a shell where it has to be.
    pub(crate) fn line(&self, words: &[&str]) -> String {
        let project = self
            .project
            .iter()
            .flat_map(|project| ["--project", project.as_str()]);
        std::iter::once("vibe")
            .chain(project)
            .chain(words.iter().copied())
            .map(shell_quote)
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
}
