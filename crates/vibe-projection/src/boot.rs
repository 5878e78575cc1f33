//! Boot text: what packages ask an agent to read when a session starts, as two files and a block.
//!
//! Static text is compiled into one file, which the harnesses that can import files take into the
//! session; dynamic text stays in its slot and is listed with the condition under which it is read.
//! Nothing here depends on the machine, since the files are committed: a condition is passed on in
//! words and never decided.

use vibe_core::text::escape;
use vibe_core::{PackageId, Version};

/// Where static text is compiled, relative to the project root.
pub const STATIC_PATH: &str = "vibedeps/boot/STATIC.md";

/// Where dynamic text is listed.
pub const INDEX_PATH: &str = "vibedeps/boot/INDEX.md";

/// The line with which both begin.
pub const SIGNATURE: &str = "<!-- Written by vibe from the installed packages; edits are lost. -->";

/// The boot text of one installed package.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BootText {
    /// The package.
    pub package: PackageId,
    /// Its version.
    pub version: Version,
    /// Where its text lies, relative to the project root, with forward slashes.
    pub path: String,
    /// Compiled in, and not only listed.
    pub is_static: bool,
    /// When it is to be read, in the package's words; `None`: always.
    pub when: Option<String>,
}

impl BootText {
    /// `` (when `os:linux`)``, or nothing. As code, in which no program that reads Markdown takes
    /// `@path` for a file to bring in.
    fn condition(&self) -> String {
        let when = self.when.as_deref().map(|when| code(&escape(when)));
        when.map_or_else(String::new, |when| format!(" (when {when})"))
    }
}

/// A file that vibe names to agents by its own block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entrance {
    /// Its path, relative to the project root.
    pub path: &'static str,
    /// The harness whose file it is, as `harnesses` in a manifest names it; `None`: of all others.
    pub harness: Option<&'static str>,
    /// Whether a line `@path` in it brings in that file.
    ///
    /// Source: Claude Code's page on memory, and Gemini CLI's on its memory import processor, both
    /// of which resolve such a path from the file that has the line.
    pub imports: bool,
}

/// The agent programs that `harnesses` in a manifest may name.
pub const HARNESSES: [&str; 12] = [
    "claude-code",
    "codex",
    "gemini-cli",
    "cursor",
    "copilot",
    "opencode",
    "windsurf",
    "kiro",
    "factory",
    "qwen",
    "mistral-vibe",
    "universal",
];

/// The files with a block. The first is written wherever there is boot text; the others where they
/// are there or their harness is chosen.
pub const ENTRANCES: [Entrance; 3] = [
    Entrance {
        path: "AGENTS.md",
        harness: None,
        imports: false,
    },
    Entrance {
        path: "CLAUDE.md",
        harness: Some("claude-code"),
        imports: true,
    },
    Entrance {
        path: "GEMINI.md",
        harness: Some("gemini-cli"),
        imports: true,
    },
];

/// The text of [`STATIC_PATH`]: `texts` in their order, each under a heading that names its package
/// and version.
pub fn static_file<'a>(texts: impl IntoIterator<Item = (&'a BootText, &'a str)>) -> String {
    let mut file = format!("{SIGNATURE}\n");
    for (boot, text) in texts {
        let (package, version) = (&boot.package, &boot.version);
        file += &format!("\n# {package} {version}{}\n\n", boot.condition());
        file += text.trim_end_matches('\n');
        file.push('\n');
    }
    file
}

/// The text of [`INDEX_PATH`]: a line for each of `texts`.
pub fn index_file<'a>(texts: impl IntoIterator<Item = &'a BootText>) -> String {
    let mut file = format!("{SIGNATURE}\n\n");
    for boot in texts {
        let path = code(&boot.path);
        let (package, version) = (&boot.package, &boot.version);
        file += &format!("- {path}: {package} {version}{}\n", boot.condition());
    }
    file
}

/// `text` as Markdown code, whatever backticks it has.
fn code(text: &str) -> String {
    let runs = text.split(|character| character != '`');
    let longest = runs.map(str::len).max().unwrap_or(0);
    let fence = "`".repeat(longest + 1);
    let blank = if longest > 0 { " " } else { "" };
    format!("{fence}{blank}{text}{blank}{fence}")
}

/// The lines of the block in `entrance`; `None` where there is no boot text.
pub fn block_lines(entrance: &Entrance, texts: &[BootText]) -> Option<String> {
    let (has_static, has_dynamic) = (
        texts.iter().any(|boot| boot.is_static),
        texts.iter().any(|boot| !boot.is_static),
    );
    let mut lines = Vec::new();
    if has_static {
        lines.push(match entrance.imports {
            true => format!("Text of the installed packages for every session:\n\n@{STATIC_PATH}"),
            false => format!("Before anything else, read `{STATIC_PATH}`: text of the installed packages for every session."),
        });
    }
    if has_dynamic {
        lines.push(match entrance.imports {
            true => format!("Read each file of this list whose condition holds; without a condition, always:\n\n@{INDEX_PATH}"),
            false => format!("Read each file that `{INDEX_PATH}` lists and whose condition holds; without a condition, always."),
        });
    }
    (!lines.is_empty()).then(|| lines.join("\n\n") + "\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn boot(id: &str, is_static: bool, when: Option<&str>) -> BootText {
        let id: PackageId = id.parse().unwrap();
        BootText {
            path: format!("vibedeps/{}/1.0.0/boot.md", id.as_str().replace('/', ".")),
            package: id,
            version: Version::new(1, 0, 0),
            is_static,
            when: when.map(str::to_owned),
        }
    }

    #[test]
    fn each_static_text_stands_under_a_heading_that_names_its_package() {
        let (one, other) = (
            boot("org.a/one", true, None),
            boot("org.a/two", true, Some("os:linux\n# x")),
        );
        assert_eq!(
            static_file([(&one, "First.\n\n\n"), (&other, "Second.")]),
            "<!-- Written by vibe from the installed packages; edits are lost. -->\n\
             \n# org.a/one 1.0.0\n\nFirst.\n\
             \n# org.a/two 1.0.0 (when `os:linux\\n# x`)\n\nSecond.\n"
        );
    }

    #[test]
    fn dynamic_text_is_listed_with_its_condition() {
        let mut odd = boot("org.a/odd", false, Some("@os:linux"));
        odd.path = "vibedeps/a`b``c".to_owned();
        assert_eq!(
            index_file([&boot("org.a/one", false, None), &odd]),
            "<!-- Written by vibe from the installed packages; edits are lost. -->\n\n\
             - `vibedeps/org.a.one/1.0.0/boot.md`: org.a/one 1.0.0\n\
             - ``` vibedeps/a`b``c ```: org.a/odd 1.0.0 (when `@os:linux`)\n"
        );
    }

    #[test]
    fn a_block_names_what_there_is() {
        let (fixed, listed) = (
            boot("org.a/one", true, None),
            boot("org.a/two", false, None),
        );
        let both = [fixed.clone(), listed.clone()];
        for entrance in &ENTRANCES {
            let lines = |texts: &[BootText]| block_lines(entrance, texts).unwrap_or_default();
            let at = if entrance.imports { "\n@" } else { "`" };
            let names = |text: &str, path: &str| text.contains(&format!("{at}{path}"));
            for (texts, has_static, has_index) in [
                (&both[..], true, true),
                (&both[..1], true, false),
                (&both[1..], false, true),
                (&[], false, false),
            ] {
                let text = lines(texts);
                assert_eq!(names(&text, STATIC_PATH), has_static, "{text}");
                assert_eq!(names(&text, INDEX_PATH), has_index, "{text}");
            }
        }
    }
}
