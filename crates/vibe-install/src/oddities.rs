//! What in a project's manifests is allowed and likely not meant: it is told, and nothing else.

use std::collections::BTreeMap;

use vibe_core::text::{escape, nearest};
use vibe_core::{Event, MemberPattern, Observer};
use vibe_projection::boot::HARNESSES;

use crate::own_manifest::OwnManifest;
use crate::project::Project;

/// Warns of members that are missing or there twice, and of agent programs that nobody knows.
pub(crate) fn warn_of_oddities(project: &Project, observer: &dyn Observer) {
    let manifests = &project.manifests;
    let odd = empty_patterns(manifests)
        .chain(same_packages(manifests))
        .chain(manifests.iter().flat_map(unknown_harnesses));
    for text in odd {
        observer.observe(&Event::Warning(text));
    }
}

/// Patterns of members that no member matches: what is misspelt there takes packages out.
fn empty_patterns(manifests: &[OwnManifest]) -> impl Iterator<Item = String> {
    manifests.iter().flat_map(move |own| {
        let workspace = own.manifest.workspace.iter();
        let patterns = workspace.flat_map(|workspace| &workspace.members);
        let empty = patterns.filter(|pattern| !is_matched(own, pattern, manifests));
        empty.map(|pattern| {
            format!(
                "{}: no directory with a vibe.toml matches `{}` of `members`",
                own.path,
                escape(&pattern.to_string())
            )
        })
    })
}

fn is_matched(own: &OwnManifest, pattern: &MemberPattern, manifests: &[OwnManifest]) -> bool {
    manifests.iter().any(|member| {
        let below = match own.base() {
            "" => Some(member.base()),
            base => match member.base().strip_prefix(base) {
                Some("") => Some(""),
                rest => rest.and_then(|rest| rest.strip_prefix('/')),
            },
        };
        let names = |below: &str| -> Vec<String> {
            let names = below.split('/').filter(|name| !name.is_empty());
            names.map(str::to_owned).collect()
        };
        below.is_some_and(|below| pattern.matches(names(below).iter().map(String::as_str)))
    })
}

/// Members that are one package.
fn same_packages(manifests: &[OwnManifest]) -> impl Iterator<Item = String> {
    let mut first = BTreeMap::new();
    manifests.iter().filter_map(move |own| {
        let id = &own.manifest.package.as_ref()?.id;
        let before = *first.entry(id).or_insert(&own.path);
        (*before != own.path).then(|| format!("{before} and {} are both of {id}", own.path))
    })
}

/// Names in `harnesses` by which vibe knows no agent program.
fn unknown_harnesses(own: &OwnManifest) -> impl Iterator<Item = String> {
    let project = own.manifest.project.iter();
    let names = project.flat_map(|project| project.harnesses.iter().flatten());
    let unknown = names.filter(|name| !HARNESSES.contains(&name.as_str()));
    unknown.map(|name| {
        let start = name.split('-').next().unwrap_or_default();
        let begun = HARNESSES
            .iter()
            .find(|known| known.split('-').next() == Some(start));
        let near = begun.copied().or_else(|| nearest(name, HARNESSES));
        let hint = match near {
            Some(near) => format!("did you mean `{near}`?"),
            None => format!("it knows {}", HARNESSES.join(", ")),
        };
        format!(
            "{}: `harnesses` names `{}`, an agent program that vibe does not know; {hint}",
            own.path,
            escape(name)
        )
    })
}
