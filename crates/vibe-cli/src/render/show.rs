//! All that is known of one package.

use vibe_core::hook::PhaseState;
use vibe_core::text::escape;
use vibe_install::{BootSummary, DeclaredHook, ItemSummary, PackageSummary, ShowReport};

use super::list::open_phases;
use super::{columns, count};

/// Lines, versions or requirers that are shown of a kind; `--json` has all.
const SHOWN: usize = 20;

/// The package with its description, then a line for each thing that is known of it.
pub(crate) fn text(report: &ShowReport) -> String {
    let mut rows = Rows::default();
    rows.add("kind", [report.kind.to_owned()]);
    rows.add("license", report.license.clone());
    rows.add("source", [source(report)]);
    rows.add("bridge", report.bridge.then(|| bridge(report)));
    rows.add("installed", [locked(report)]);
    rows.add("materialization", [report.materialization.to_owned()]);
    rows.add("versions", report.versions.as_deref().map(versions));
    let requires = report.requires.iter().map(|step| {
        let requirement = step.requirement.as_deref().unwrap_or_default();
        format!("{} {requirement}", step.package)
    });
    rows.add("requires", requires);
    let required_by = report.required_by.iter().map(|step| {
        let words = [Some(&step.requirer), step.version.as_ref()];
        let requirer: Vec<&str> = words.into_iter().flatten().map(String::as_str).collect();
        let requirement = step.requirement.iter().map(|text| format!(": {text}"));
        requirer.join(" ") + &requirement.collect::<String>()
    });
    rows.add("required by", required_by);
    rows.add("install hooks", hook_lines(&report.hooks));
    rows.add("boot text", report.boot.as_ref().map(boot));
    rows.add("items", item_lines(&report.items));
    let mut lines = vec![format!("{} {}", report.id, report.version)];
    lines.extend(report.description.iter().map(|text| format!("  {text}")));
    lines.extend(columns(&rows.rows).iter().map(|row| format!("  {row}")));
    lines.join("\n") + "\n"
}

/// Rows of which the first of a kind has its name before it.
#[derive(Default)]
struct Rows {
    rows: Vec<Vec<String>>,
}

impl Rows {
    fn add(&mut self, name: &str, values: impl IntoIterator<Item = String>) {
        let values: Vec<String> = values.into_iter().collect();
        let more = values.len().saturating_sub(SHOWN);
        let more = (more > 0).then(|| format!("and {more} more"));
        for (index, value) in values.into_iter().take(SHOWN).chain(more).enumerate() {
            let name = if index == 0 { name } else { "" };
            self.rows.push(vec![name.to_owned(), value]);
        }
    }
}

fn source(report: &ShowReport) -> String {
    let subdir = report.subdir.iter().map(|subdir| format!("in {subdir}"));
    let commit = report
        .commit
        .iter()
        .map(|commit| format!("commit {commit}"));
    let words = std::iter::once(report.source.clone())
        .chain(subdir)
        .chain(report.reference.clone())
        .chain(commit);
    escape(&words.collect::<Vec<_>>().join(" "))
}

fn bridge(report: &ShowReport) -> String {
    match &report.upstream {
        Some(upstream) => format!("to {upstream}"),
        None => "yes".to_owned(),
    }
}

/// What the project has of the package.
fn locked(report: &ShowReport) -> String {
    let Some(package) = &report.locked else {
        return "no".to_owned();
    };
    let other = (package.version != report.version).then(|| package.version.clone());
    let words = match package.installed {
        true => other.into_iter().chain(installed(package)).collect(),
        false => vec![format!("no, but vibe.lock has {}", package.version)],
    };
    let words = words.into_iter().chain(open_phases(&package.phases));
    words.collect::<Vec<_>>().join(", ")
}

fn installed(package: &PackageSummary) -> Vec<String> {
    let files = package.files.map(|files| count(files, "file"));
    let place = format!("vibedeps/{}", package.slot);
    [place, package.link_mode.to_owned()]
        .into_iter()
        .chain(files)
        .collect()
}

fn versions(versions: &[String]) -> String {
    let shown = versions.len().min(SHOWN);
    let text = versions[..shown].join(", ");
    match versions.len() - shown {
        0 => text,
        older => format!("{text} and {older} older"),
    }
}

/// One line for each script, with where its phase stands.
fn hook_lines(hooks: &[DeclaredHook]) -> Vec<String> {
    let cells = |hook: &DeclaredHook| -> Vec<Vec<String>> {
        let state = hook.state.map_or("", PhaseState::as_str);
        let row = |path: String, sha256: String| {
            vec![hook.phase.to_string(), path, sha256, state.to_owned()]
        };
        let scripts = hook.scripts.iter();
        let rows = scripts.map(|script| {
            let path = escape(script.path.as_str());
            row(path, script.sha256.prefixed())
        });
        match hook.scripts.is_empty() {
            true => vec![row("no script".to_owned(), String::new())],
            false => rows.collect(),
        }
    };
    columns(&hooks.iter().flat_map(cells).collect::<Vec<_>>())
}

fn boot(boot: &BootSummary) -> String {
    let when = boot.when.iter().map(|when| format!(", when {when}"));
    let source = escape(boot.source.as_str());
    format!("{source}, {}{}", boot.link, when.collect::<String>())
}

fn item_lines(items: &[ItemSummary]) -> Vec<String> {
    let cells = |item: &ItemSummary| {
        let missing = if item.missing {
            "not in the package"
        } else {
            ""
        };
        let (name, path) = (escape(&item.name), escape(item.path.as_str()));
        vec![item.kind.clone(), name, path, missing.to_owned()]
    };
    columns(&items.iter().map(cells).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_lists_say_how_much_is_not_shown() {
        let all: Vec<String> = (0..22).map(|n| format!("{n}.0.0")).collect();
        assert!(versions(&all).ends_with(", 19.0.0 and 2 older"));
        assert_eq!(versions(&all[..1]), "0.0.0");
        let mut rows = Rows::default();
        rows.add("requires", all);
        let lines = columns(&rows.rows);
        assert_eq!(lines.len(), SHOWN + 1);
        assert_eq!(lines[0], "requires  0.0.0");
        assert_eq!(lines[1], "          1.0.0");
        assert_eq!(lines[SHOWN], "          and 2 more");
    }
}
