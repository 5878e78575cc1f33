//! What the manifest of a package says.

use vibe_core::formats::manifest::{
    Boot, DependencySource, Item, MANIFEST_NAME, Materialization, Publish,
};
use vibe_core::text::escape;
use vibe_core::{PackageId, RelPath};

use super::{LintFinding, LintInput};

/// Seconds that an install hook may take before somebody wonders whether it is stuck.
const LONG_TIMEOUT_SECONDS: u64 = 60 * 60;

/// What is wrong with the manifest and what it names, scripts aside.
pub(super) fn findings(input: &LintInput<'_>) -> Vec<LintFinding> {
    let mut found = unknown_keys(input);
    found.extend(not_shipped(input));
    found.extend(materialization(input));
    found.extend(timeout(input));
    found.extend(boot(input));
    found.extend(items(input));
    if input.is_published() {
        found.extend(identity(input));
        found.extend(descriptions(input));
        found.extend(requirements(input));
    }
    found
}

/// What is so, and no fault.
pub(super) fn notes(input: &LintInput<'_>) -> Vec<String> {
    let version = &input.package.version;
    let mut notes = Vec::new();
    if !input.is_published() {
        notes.push(
            "`publish = false`: what only matters once it is published is not looked at".into(),
        );
    }
    if !version.pre.is_empty() {
        notes.push(format!(
            "{version} is a prerelease: it is chosen only by a requirement that names one"
        ));
    }
    let not_acted_on = input.manifest.not_acted_on.iter();
    notes.extend(
        not_acted_on.map(|name| format!("`{name}` is accepted, and vibe does not act on it")),
    );
    notes
}

fn unknown_keys(input: &LintInput<'_>) -> Vec<LintFinding> {
    let warnings = input.manifest.warnings.iter();
    warnings
        .map(|warning| {
            let remedy = warning.hint.clone();
            let remedy = remedy.unwrap_or_else(|| "take it out: nothing reads it".to_owned());
            LintFinding::warning("unknown-key", &warning.message, remedy).at(warning.position)
        })
        .collect()
}

fn not_shipped(input: &LintInput<'_>) -> Option<LintFinding> {
    let is_there = input
        .files
        .keys()
        .any(|path| path.as_str() == MANIFEST_NAME);
    (!is_there).then(|| {
        LintFinding::error(
            "manifest-left-out",
            "vibe.toml itself does not ship, so nobody could install the package",
            "take it out of `.vibeignore` or `.gitignore`",
        )
        .at(None)
    })
}

fn identity(input: &LintInput<'_>) -> Vec<LintFinding> {
    let package = input.package;
    let mut found = Vec::new();
    let group = package.id.group();
    if !group.contains('.') {
        found.push(
            LintFinding::error(
                "short-group",
                format!("the group `{group}` has one label, and a published one has two or more"),
                "begin it with a domain of yours, written backwards: `org.example`",
            )
            .at(input.position(&["package", "group"])),
        );
    }
    if !package.version.build.is_empty() {
        found.push(
            LintFinding::warning(
                "build-metadata",
                format!(
                    "no requirement can tell {} from another build of the same version",
                    package.version
                ),
                "raise the version instead",
            )
            .at(input.position(&["package", "version"])),
        );
    }
    if matches!(&package.publish, Publish::To(names) if names.is_empty()) {
        found.push(
            LintFinding::warning(
                "publish-nowhere",
                "`publish` names no registry, so it can be published to none",
                "write `publish = false`, or name a registry",
            )
            .at(input.position(&["package", "publish"])),
        );
    }
    found
}

fn descriptions(input: &LintInput<'_>) -> Vec<LintFinding> {
    let package = input.package;
    let mut found = Vec::new();
    for (key, value, example) in [
        ("description", &package.description, "one sentence"),
        (
            "license",
            &package.license,
            "an SPDX expression such as \"MIT\"",
        ),
    ] {
        if value.as_ref().is_none_or(|value| value.trim().is_empty()) {
            let message = format!("the package has no `{key}`");
            let remedy = format!("add `{key}` to [package]: {example}");
            let place = input.position(&["package", key]);
            let place = place.or_else(|| input.position(&["package"]));
            let rule = if key == "license" {
                "no-license"
            } else {
                "no-description"
            };
            found.push(LintFinding::warning(rule, message, remedy).at(place));
        }
    }
    let is_readme = |path: &RelPath| {
        let name = path.as_str().to_ascii_lowercase();
        name.starts_with("readme") && !name.contains('/')
    };
    if !input.files.keys().any(is_readme) {
        found.push(LintFinding::warning(
            "no-readme",
            "the package has no README",
            "add a README.md that says what it is for",
        ));
    }
    found
}

fn requirements(input: &LintInput<'_>) -> Vec<LintFinding> {
    let requires = input.manifest.requires.iter();
    requires
        .filter_map(|(id, dependency)| {
            let constraint = input.constraints.get(id).map(String::as_str);
            let (rule, message) = only_here(id, &dependency.source)?;
            let remedy = match (&dependency.source, constraint) {
                (DependencySource::Git { .. }, _) => {
                    "name a repository that others can reach".to_owned()
                }
                (_, Some(constraint)) => {
                    format!("require it by a version: \"{id}\" = \"{constraint}\"")
                }
                (_, None) => "require it by a version constraint".to_owned(),
            };
            let finding = LintFinding::error(rule, message, remedy);
            Some(finding.at(Some(dependency.position)))
        })
        .collect()
}

/// Why a requirement means something in this place only.
fn only_here(id: &PackageId, source: &DependencySource) -> Option<(&'static str, String)> {
    match source {
        DependencySource::Path { path, .. } => Some((
            "path-requirement",
            format!(
                "{id} is required by the path `{}`, which nobody else has",
                escape(path)
            ),
        )),
        DependencySource::Variable { name } => Some((
            "variable-requirement",
            format!(
                "{id} is required by the variable `{name}` of a workspace, which nobody else has"
            ),
        )),
        DependencySource::Git { url, .. } if url.is_local() => Some((
            "local-repository",
            format!("{id} is required from `{url}`, a repository on this machine"),
        )),
        DependencySource::Git { .. } | DependencySource::Registry { .. } => None,
    }
}

fn materialization(input: &LintInput<'_>) -> Vec<LintFinding> {
    let package = input.package;
    let place = input.position(&["package", "materialization"]);
    let mut found = Vec::new();
    let has_hooks = !package.hooks.scripts.is_empty();
    if package.materialization == Materialization::Hardlink && has_hooks {
        found.push(
            LintFinding::warning(
                "linked-with-hooks",
                "a package with install hooks is copied, never linked, because scripts write",
                "take `materialization = \"hardlink\"` out",
            )
            .at(place),
        );
    }
    if package.materialization == Materialization::InPlace {
        let message = "`in-place` is a git clone, so it can be installed from git only";
        let remedy = "write `materialization = \"copy\"`, or publish it by a tag in git";
        let finding = match input.to_directory {
            true => LintFinding::error("in-place", message, remedy),
            false => LintFinding::warning("in-place", message, remedy),
        };
        found.push(finding.at(place));
    }
    if package.bridge && package.upstream.is_none() {
        found.push(
            LintFinding::warning(
                "bridge-without-upstream",
                "a bridge stewards the content of somebody else, and this one does not say whose",
                "add `upstream`, the address it comes from",
            )
            .at(input.position(&["package", "bridge"])),
        );
    }
    found
}

fn timeout(input: &LintInput<'_>) -> Option<LintFinding> {
    let seconds = input.package.hooks.timeout_seconds?;
    (seconds > LONG_TIMEOUT_SECONDS).then(|| {
        let minutes = seconds / 60;
        LintFinding::warning(
            "long-timeout",
            format!("an install hook that hangs would be waited for {minutes} minutes"),
            "give the time that it needs on a slow machine",
        )
        .at(input.position(&["hooks", "timeout"]))
    })
}

/// What a missing path means: before the package is installed, a pre-install script may make it.
fn missing(
    input: &LintInput<'_>,
    rule: &'static str,
    what: &str,
    path: &RelPath,
) -> Option<LintFinding> {
    if input.ships(path) {
        return None;
    }
    if input.left_out.contains(path) {
        let message = format!("{what} `{path}` is there, but does not ship");
        let remedy = "take it out of `.vibeignore` or `.gitignore`";
        return Some(LintFinding::error(rule, message, remedy));
    }
    let is_made = input
        .package
        .hooks
        .scripts
        .keys()
        .any(|phase| *phase == vibe_core::hook::Phase::PreInstall);
    let message = format!("{what} `{path}` is not in the package");
    Some(match (is_made, input.other_case(path)) {
        (_, Some(other)) => {
            let remedy = format!("upper and lower case count: did you mean `{other}`?");
            LintFinding::error(rule, message, remedy)
        }
        (true, None) => LintFinding::warning(
            rule,
            message,
            "add it, unless the pre-install script makes it",
        ),
        (false, None) => LintFinding::error(rule, message, "add it, or correct the path"),
    })
}

fn boot(input: &LintInput<'_>) -> Vec<LintFinding> {
    let Some(Boot { source, .. }) = &input.package.boot else {
        return Vec::new();
    };
    let place = input.position(&["boot", "source"]);
    let place = place.or_else(|| input.position(&["boot_snippet", "source"]));
    let mut found = Vec::new();
    found.extend(missing(input, "missing-boot", "the boot text", source).map(|it| it.at(place)));
    if input.has_directory(source) {
        let message = format!("the boot text `{source}` is a directory");
        found.push(LintFinding::error("boot-text", message, "name a file of text").at(place));
    }
    let content = input.contents.get(source);
    if let Some(Err(error)) = content.map(|bytes| std::str::from_utf8(bytes)) {
        let before = &content.map_or(&[][..], Vec::as_slice)[..error.valid_up_to()];
        let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
        found.push(
            LintFinding::error(
                "boot-text",
                "boot text that is not UTF-8",
                "save it as UTF-8",
            )
            .of(source.as_str())
            .at_line(line),
        );
    }
    found
}

fn items(input: &LintInput<'_>) -> Vec<LintFinding> {
    let items = &input.package.items;
    let mut found = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Item { kind, name, path } = item;
        let what = format!("the path of the {kind} `{name}`,");
        found.extend(missing(input, "missing-item", &what, path).map(|it| it.at(None)));
        let is_same = |other: &Item| other.kind == *kind && other.name == *name;
        if items[..index].iter().any(is_same) {
            let message = format!("the {kind} `{name}` is there twice");
            found.push(
                LintFinding::error("item-twice", message, "give one of them another name").at(None),
            );
        }
    }
    found
}
