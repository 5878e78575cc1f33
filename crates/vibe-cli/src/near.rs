//! What a package id that nobody knows was meant to be.

use std::collections::BTreeSet;

use vibe_core::PackageId;
use vibe_core::text::nearest;

/// Names listed at most.
const NAMES_SHOWN: usize = 8;

/// The known package that `id` was most likely meant to be: one of the same group with nearly that
/// name, one of that name in nearly that group, or one with nearly both.
pub(crate) fn did_you_mean(id: &PackageId, known: &[PackageId]) -> Option<String> {
    let of_group = |known: &&PackageId| known.group() == id.group();
    let of_name = |known: &&PackageId| known.name() == id.name();
    let names = known.iter().filter(of_group).map(PackageId::name);
    let groups = known.iter().filter(of_name).map(PackageId::group);
    let same_group = nearest(id.name(), names).map(|name| format!("{}/{name}", id.group()));
    let same_name = || nearest(id.group(), groups).map(|group| format!("{group}/{}", id.name()));
    let near_group = || {
        let group = nearest(id.group(), known.iter().map(PackageId::group))?;
        let names = known.iter().filter(|known| known.group() == group);
        let name = nearest(id.name(), names.map(PackageId::name))?;
        Some(format!("{group}/{name}"))
    };
    let meant = same_group.or_else(same_name).or_else(near_group)?;
    Some(format!("did you mean {meant}?"))
}

/// What else is known of the group or the name of `id`.
pub(crate) fn relatives(id: &PackageId, known: &[PackageId]) -> Option<String> {
    let of_name = known.iter().filter(|known| known.name() == id.name());
    let of_name: BTreeSet<&str> = of_name.map(PackageId::as_str).collect();
    if !of_name.is_empty() {
        let listed = listed(&of_name);
        return Some(format!("packages of that name in other groups: {listed}"));
    }
    let group = nearest(id.group(), known.iter().map(PackageId::group))?;
    let names = known.iter().filter(|known| known.group() == group);
    let names: BTreeSet<&str> = names.map(PackageId::name).collect();
    Some(format!("the group {group} has: {}", listed(&names)))
}

fn listed(names: &BTreeSet<&str>) -> String {
    let shown: Vec<&str> = names.iter().take(NAMES_SHOWN).copied().collect();
    match names.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::id;

    fn known() -> Vec<PackageId> {
        let ids = ["org.example/lint", "org.example/format", "com.other/notes"];
        ids.map(id).into()
    }

    #[test]
    fn a_name_a_group_or_both_may_be_nearly_right() {
        let check = |text, expected: Option<&str>| {
            let expected = expected.map(|meant| format!("did you mean {meant}?"));
            assert_eq!(did_you_mean(&id(text), &known()), expected, "{text}");
        };
        check("org.example/lnit", Some("org.example/lint"));
        check("org.exmaple/lint", Some("org.example/lint"));
        check("org.exmaple/fromat", Some("org.example/format"));
        check("com.other/lint", None);
        check("org.example/nono", None);
    }

    #[test]
    fn what_is_known_of_a_group_or_a_name_is_told() {
        let check = |text, expected: Option<&str>| {
            let found = relatives(&id(text), &known());
            assert_eq!(found.as_deref(), expected, "{text}");
        };
        let of_name = "packages of that name in other groups: org.example/lint";
        check("com.other/lint", Some(of_name));
        let of_group = "the group org.example has: format, lint";
        check("org.example/nono", Some(of_group));
        check("org.exmaple/nono", Some(of_group));
        check("net.elsewhere/nono", None);
    }

    #[test]
    fn a_long_list_is_cut() {
        let many: Vec<PackageId> = (10..20).map(|n| id(&format!("a.b/p{n}"))).collect();
        let told = relatives(&id("a.b/zzzzz"), &many).unwrap();
        assert!(told.ends_with(": p10, p11, p12, p13, p14, p15, p16, p17 and 2 more"));
    }
}
