//! What helps where the requirements have no solution.

use vibe_core::formats::manifest::MANIFEST_NAME;
use vibe_core::text::escape;
use vibe_core::{PackageId, Version};
use vibe_install::{Asked, Trouble, Unsolved};

use crate::near::{did_you_mean, relatives};
use crate::paste::Paste;

/// Requirements listed at most.
const REQUIREMENTS_SHOWN: usize = 6;

/// What the user can do, the likeliest first. `known` are the packages of the registries.
pub(crate) fn hints(error: &Unsolved, known: &[PackageId], paste: &Paste) -> Vec<String> {
    let mut hints = of_trouble(error, known, paste);
    hints.extend(error.passed_over.as_ref().map(|other| {
        format!(
            "the registry `{}` has {}: to take it from there, require it in vibe.toml with \
             `registry = \"{}\"`",
            escape(&other.registry),
            other.version,
            escape(&other.registry)
        )
    }));
    hints
}

fn of_trouble(error: &Unsolved, known: &[PackageId], paste: &Paste) -> Vec<String> {
    match &error.trouble {
        Trouble::Unknown { package } => unknown(package, known, paste),
        Trouble::NoVersion {
            required_by: Some((by, version)),
            ..
        } => vec![format!(
            "{by} {version} cannot be had so: require another version of it, or tell its maintainers"
        )],
        Trouble::NoVersion {
            manifest,
            newest,
            prerelease,
            ..
        } => no_version(manifest, newest.as_ref().or(prerelease.as_ref())),
        Trouble::Conflict { package, asked } => conflict(package, asked),
    }
}

fn unknown(package: &PackageId, known: &[PackageId], paste: &Paste) -> Vec<String> {
    if let Some(meant) = did_you_mean(package, known) {
        return vec![meant];
    }
    let elsewhere = format!(
        "no `[[registry]]` in vibe.toml has it; add one that has, or install a directory: {}",
        paste.line(&["install", "path:DIR"])
    );
    let relatives = relatives(package, known);
    relatives.into_iter().chain([elsewhere]).collect()
}

fn no_version(manifest: &str, there_is: Option<&Version>) -> Vec<String> {
    let told = there_is.map(|version| {
        format!("in {manifest}, require a version that there is, as `^{version}` does")
    });
    told.into_iter().collect()
}

fn conflict(package: &PackageId, asked: &[Asked]) -> Vec<String> {
    let is_root = |asked: &Asked| asked.manifest == MANIFEST_NAME;
    // Where all are of the root's manifest, that is said once.
    let is_one = asked.iter().all(is_root);
    let shown = asked.iter().take(REQUIREMENTS_SHOWN);
    let shown: Vec<String> = shown
        .map(|asked| match is_one {
            true => format!("{} {}", asked.package, asked.constraint),
            false => format!(
                "{} {} in {}",
                asked.package, asked.constraint, asked.manifest
            ),
        })
        .collect();
    let place = if is_one { " in vibe.toml" } else { "" };
    let more = match asked.len() - shown.len() {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let listed = shown.join(", ");
    let one = match asked {
        [_] => "this requirement",
        _ => "one of these requirements",
    };
    vec![
        format!("change or remove {one}{place}: {listed}{more}"),
        format!(
            "or let one source of {package} count whatever others require, by an `[[override]]` of \
             it in the project's vibe.toml"
        ),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::testing::id;

    fn check(trouble: Trouble, expected: &[&str]) {
        let error = Unsolved {
            headline: String::new(),
            facts: Vec::new(),
            trouble,
            passed_over: None,
        };
        let known = [id("org.example/lint")];
        let found = hints(&error, &known, &Paste::default());
        assert_eq!(found, expected);
    }

    #[test]
    fn an_unknown_package_names_near_ones_or_where_to_add_it() {
        let unknown = |text| Trouble::Unknown { package: id(text) };
        let elsewhere = "no `[[registry]]` in vibe.toml has it; add one that has, or install a \
                         directory: vibe install path:DIR";
        check(
            unknown("org.example/lnit"),
            &["did you mean org.example/lint?"],
        );
        let of_group = "the group org.example has: lint";
        check(unknown("org.example/other"), &[of_group, elsewhere]);
        check(unknown("net.elsewhere/x"), &[elsewhere]);
    }

    #[test]
    fn a_requirement_that_nothing_satisfies_says_what_would() {
        let trouble = |by: Option<&str>, newest: Option<&str>, prerelease: Option<&str>| {
            let version = |text: &str| text.parse().unwrap();
            Trouble::NoVersion {
                package: id("a.b/c"),
                constraint: "^9".parse().unwrap(),
                required_by: by.map(|by| (id(by), version("1.0.0"))),
                manifest: "vibe.toml".to_owned(),
                newest: newest.map(version),
                prerelease: prerelease.map(version),
            }
        };
        let newest = "in vibe.toml, require a version that there is, as `^1.2.0` does";
        check(trouble(None, Some("1.2.0"), Some("2.0.0-rc.1")), &[newest]);
        let prerelease = "in vibe.toml, require a version that there is, as `^2.0.0-rc.1` does";
        check(trouble(None, None, Some("2.0.0-rc.1")), &[prerelease]);
        let by = "a.b/x 1.0.0 cannot be had so: require another version of it, or tell its \
                  maintainers";
        check(trouble(Some("a.b/x"), Some("1.2.0"), None), &[by]);
    }

    #[test]
    fn a_conflict_names_the_requirements_of_the_project_that_lead_there() {
        let of = |manifest: &str, n: usize| Asked {
            manifest: manifest.to_owned(),
            package: id(&format!("a.b/p{n}")),
            constraint: "^1".parse().unwrap(),
        };
        let asked = |count: usize| (0..count).map(|n| of("vibe.toml", n)).collect();
        let members = Trouble::Conflict {
            package: id("a.b/c"),
            asked: vec![of("vibe.toml", 0), of("m/vibe.toml", 0)],
        };
        let told = "change or remove one of these requirements: a.b/p0 ^1 in vibe.toml, a.b/p0 ^1 \
                    in m/vibe.toml";
        let or = "or let one source of a.b/c count whatever others require, by an `[[override]]` of \
                  it in the project's vibe.toml";
        check(members, &[told, or]);
        let conflict = |count| Trouble::Conflict {
            package: id("a.b/c"),
            asked: asked(count),
        };
        let one = "change or remove this requirement in vibe.toml: a.b/p0 ^1";
        check(conflict(1), &[one, or]);
        let two = "change or remove one of these requirements in vibe.toml: a.b/p0 ^1, a.b/p1 ^1";
        check(conflict(2), &[two, or]);
        let many = "change or remove one of these requirements in vibe.toml: a.b/p0 ^1, a.b/p1 ^1, \
                    a.b/p2 ^1, a.b/p3 ^1, a.b/p4 ^1, a.b/p5 ^1 and 2 more";
        check(conflict(8), &[many, or]);
    }
}
