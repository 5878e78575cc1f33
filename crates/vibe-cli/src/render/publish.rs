//! What `publish` did.

use vibe_core::text::escape;
use vibe_install::{PublishOutcome, PublishReport};

use super::count;

/// What was published where, in one line.
pub(crate) fn text(report: &PublishReport) -> String {
    let what = format!("{} {}", report.package, report.version);
    let place = format!("{} ({})", escape(&report.registry), escape(&report.url));
    let content = format!("{}, {}", count(report.files, "file"), report.tree);
    match report.outcome {
        PublishOutcome::Published => format!("published {what} to {place}, {content}\n"),
        PublishOutcome::AlreadyPublished => {
            format!(
                "nothing to do: {what} is already published to {place}, same content, {content}\n"
            )
        }
        PublishOutcome::WouldPublish => format!("would publish {what} to {place}, {content}\n"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::publish_report;

    #[test]
    fn what_became_of_it_is_the_first_word() {
        let check = |outcome, expected: &str| {
            let text = text(&PublishReport {
                outcome,
                ..publish_report()
            });
            let (before, tree) = text.split_once("tree1:").unwrap();
            assert_eq!(before, expected);
            assert_eq!(tree.len(), 65, "{tree}");
        };
        check(
            PublishOutcome::Published,
            "published org.example/a 1.0.0 to acme (../registry), 2 files, ",
        );
        check(
            PublishOutcome::AlreadyPublished,
            "nothing to do: org.example/a 1.0.0 is already published to acme (../registry), same content, 2 files, ",
        );
        check(
            PublishOutcome::WouldPublish,
            "would publish org.example/a 1.0.0 to acme (../registry), 2 files, ",
        );
    }
}
