//! The items of packages.

use vibe_core::text::escape;
use vibe_install::ItemSummary;

use super::columns;

/// One line for each item.
pub(crate) fn text(items: &[ItemSummary]) -> String {
    if items.is_empty() {
        return "no items\n".to_owned();
    }
    let rows: Vec<Vec<String>> = items.iter().map(cells).collect();
    columns(&rows).join("\n") + "\n"
}

fn cells(item: &ItemSummary) -> Vec<String> {
    let missing = if item.missing {
        "not in the package"
    } else {
        ""
    };
    vec![
        item.kind.clone(),
        escape(&item.name),
        item.package.to_string(),
        escape(item.path.as_str()),
        missing.to_owned(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::{id, path};

    #[test]
    fn an_item_is_a_line_and_one_that_is_missing_says_so() {
        let item = |name: &str, missing| ItemSummary {
            kind: "skill".to_owned(),
            name: name.to_owned(),
            package: id("org.example/a"),
            path: path("skills/review/SKILL.md"),
            missing,
        };
        assert_eq!(
            text(&[item("review", false), item("x", true)]),
            "skill  review  org.example/a  skills/review/SKILL.md
skill  x       org.example/a  skills/review/SKILL.md  not in the package
"
        );
        assert_eq!(text(&[]), "no items\n");
    }
}
