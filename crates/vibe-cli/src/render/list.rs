//! The installed packages.

use vibe_core::hook::{Phase, PhaseState};
use vibe_install::{PackageSummary, PhaseSummary};

use super::{Spare, columns_within, count};

/// What a narrow terminal does without: the number of files.
const SPARE: [Spare; 1] = [Spare::Whole(3)];

/// One line for each package, with what is not as it should be, for a terminal of that width.
pub(crate) fn text(packages: &[PackageSummary], width: Option<usize>) -> String {
    if packages.is_empty() {
        return "no packages are installed\n".to_owned();
    }
    let rows: Vec<Vec<String>> = packages.iter().map(cells).collect();
    columns_within(&rows, width, &SPARE).join("\n") + "\n"
}

fn cells(package: &PackageSummary) -> Vec<String> {
    let mut cells = vec![package.id.to_string(), package.version.clone()];
    match package.installed {
        true => cells.extend([
            package.link_mode.to_owned(),
            package
                .files
                .map(|files| count(files, "file"))
                .unwrap_or_default(),
        ]),
        false => cells.extend(["not installed".to_owned(), String::new()]),
    }
    cells.push(remarks(package).join(", "));
    cells
}

/// That a package is not installed, and its remarks.
pub(super) fn flags(package: &PackageSummary) -> Vec<String> {
    let absent = (!package.installed).then(|| "not installed".to_owned());
    absent.into_iter().chain(remarks(package)).collect()
}

/// What is still open of a package, that an override gives it, and that its content is somebody
/// else's.
fn remarks(package: &PackageSummary) -> Vec<String> {
    let bridge = package.bridge.then(|| bridge(package.upstream.as_deref()));
    let overridden = package.overridden.then(|| "overridden".to_owned());
    open_phases(&package.phases)
        .into_iter()
        .chain(overridden)
        .chain(bridge)
        .collect()
}

/// The phases that are not done.
pub(super) fn open_phases(phases: &[PhaseSummary]) -> Vec<String> {
    let open = phases
        .iter()
        .filter(|phase| phase.state != PhaseState::Done);
    open.map(|phase| open_phase(phase.phase, phase.state))
        .collect()
}

fn bridge(upstream: Option<&str>) -> String {
    match upstream {
        Some(upstream) => format!("bridge to {upstream}"),
        None => "bridge".to_owned(),
    }
}

fn open_phase(phase: Phase, state: PhaseState) -> String {
    format!("{phase} {}", state.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::package;

    #[test]
    fn a_bridge_says_whose_content_it_is() {
        let mut known = package("org.example/a", "1.0.0");
        known.bridge = true;
        known.upstream = Some("https://host/them/repo".to_owned());
        let mut unknown = package("org.example/b", "1.0.0");
        unknown.bridge = true;
        let text = text(&[known, unknown], None);
        let ends: Vec<&str> = text.lines().filter_map(|l| l.rsplit("  ").next()).collect();
        assert_eq!(ends, ["bridge to https://host/them/repo", "bridge"]);
    }

    #[test]
    fn an_override_is_told() {
        let mut package = package("org.example/a", "1.0.0");
        package.overridden = true;
        let text = text(&[package], None);
        assert!(text.ends_with("  overridden\n"), "{text}");
    }

    #[test]
    fn a_list_shows_what_is_open() {
        let phase = |phase, state| PhaseSummary { phase, state };
        let mut open = package("org.example/a", "1.0.0");
        open.phases = vec![
            phase(Phase::PreInstall, PhaseState::Done),
            phase(Phase::PostInstall, PhaseState::Owed),
        ];
        let mut absent = package("org.example/long", "10.0.0");
        absent.installed = false;
        let mut unread = package("org.example/z", "1.0.0");
        unread.files = None;
        assert_eq!(
            text(&[open, absent, unread], None),
            "org.example/a     1.0.0   copy           2 files  post-install owed
org.example/long  10.0.0  not installed
org.example/z     1.0.0   copy
"
        );
        assert_eq!(text(&[], None), "no packages are installed\n");
    }
}
