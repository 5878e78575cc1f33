//! The versions that a workspace gives to the `version.var` of its members.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use vibe_core::Constraint;
use vibe_core::formats::diagnostic::Diagnostic;
use vibe_core::formats::manifest::{DependencySource, Manifest};
use vibe_core::text::{escape, nearest};

use crate::error::InstallError;

/// The `[workspace.versions]` of one manifest.
#[derive(Debug, Clone)]
pub(crate) struct Scope(BTreeMap<String, Constraint>);

impl Scope {
    /// Those of `manifest`, if it is a workspace.
    pub(crate) fn of(manifest: &Manifest) -> Option<Scope> {
        let workspace = manifest.workspace.as_ref()?;
        Some(Scope(workspace.versions.clone()))
    }
}

/// Puts in place of each `version.var` of `manifest`, whose `text` lies at `path`, the constraint
/// that the first of `scopes` with that name gives it.
///
/// # Errors
/// None has it.
pub(crate) fn fill_in(
    path: &Path,
    text: &str,
    manifest: &mut Manifest,
    scopes: &[Scope],
) -> Result<(), InstallError> {
    for (id, dependency) in &mut manifest.requires {
        let DependencySource::Variable { name } = &dependency.source else {
            continue;
        };
        let Some(constraint) = scopes.iter().find_map(|scope| scope.0.get(name)) else {
            let message = format!(
                "{id} is required in the version `{}`, which no [workspace.versions] around this \
                 manifest defines",
                escape(name)
            );
            let diagnostic = Diagnostic::at_position(text, dependency.position, message);
            return Err(InstallError::Manifest {
                path: path.to_path_buf(),
                diagnostic: Box::new(diagnostic.hint(version_hint(name, scopes))),
            });
        };
        dependency.source = DependencySource::Registry {
            constraint: constraint.clone(),
            registry: None,
        };
    }
    Ok(())
}

fn version_hint(name: &str, scopes: &[Scope]) -> String {
    let known: BTreeSet<&str> = scopes
        .iter()
        .flat_map(|scope| scope.0.keys().map(String::as_str))
        .collect();
    if let Some(near) = nearest(name, known.iter().copied()) {
        return format!("did you mean `{}`?", escape(near));
    }
    match known.is_empty() {
        true => "write the constraint itself, as `version = \"^1\"`".to_owned(),
        false => {
            let known: Vec<String> = known
                .iter()
                .map(|name| format!("`{}`", escape(name)))
                .collect();
            format!("defined are {}", known.join(", "))
        }
    }
}
