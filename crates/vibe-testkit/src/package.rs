//! Packages written in one line.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use toml::{Table, Value};
use vibe_core::hook::Phase;
use vibe_core::version::parse_version;
use vibe_core::{PackageId, Version};

use crate::{done, set_exec, write_file};

/// A package to be written to a directory or published to a directory registry.
#[derive(Debug, Clone)]
pub struct PackageBuilder {
    id: PackageId,
    version: Version,
    manifest: Table,
    files: BTreeMap<String, File>,
}

#[derive(Debug, Clone)]
struct File {
    bytes: Vec<u8>,
    exec: bool,
}

impl PackageBuilder {
    /// A package with nothing but a manifest. Panics on an id or a version that is none.
    pub fn new(id: &str, version: &str) -> Self {
        let id: PackageId = done("naming a package", Path::new(id), id.parse());
        let version = done(
            "versioning a package",
            Path::new(version),
            parse_version(version),
        );
        let package = [
            ("group", id.group().to_owned()),
            ("name", id.name().to_owned()),
            ("version", version.to_string()),
        ];
        let package: Table = package
            .map(|(key, value)| (key.to_owned(), Value::String(value)))
            .into_iter()
            .collect();
        Self {
            id,
            version,
            manifest: Table::from_iter([("package".to_owned(), Value::Table(package))]),
            files: BTreeMap::new(),
        }
    }

    /// Adds a file, mode 0644. A file named `vibe.toml` takes the place of the manifest, so that a
    /// test can write one that is wrong.
    pub fn file(self, path: &str, bytes: impl AsRef<[u8]>) -> Self {
        self.with_file(path, bytes.as_ref(), false)
    }

    /// Adds a file, mode 0755.
    pub fn exec_file(self, path: &str, bytes: impl AsRef<[u8]>) -> Self {
        self.with_file(path, bytes.as_ref(), true)
    }

    /// Merges TOML into the manifest, table by table: `[hooks]\ntimeout = "2s"` adds a key to the
    /// hooks declared with [`PackageBuilder::hook`]. A key that is there is replaced.
    pub fn manifest_extra(mut self, toml: &str) -> Self {
        let extra = done("parsing", Path::new("the manifest's extra"), toml.parse());
        merge(&mut self.manifest, extra);
        self
    }

    /// Adds a requirement.
    pub fn depends(self, id: &str, constraint: &str) -> Self {
        self.manifest_extra(&format!(
            "[requires.packages]\n\"{id}\" = \"{constraint}\"\n"
        ))
    }

    /// Declares a phase and adds its script for bash, `hooks/<phase>.sh`, mode 0644.
    pub fn hook(self, phase: Phase, script: &str) -> Self {
        self.file(&format!("hooks/{phase}.sh"), script)
            .manifest_extra(&format!("[hooks]\n{phase} = \"hooks/{phase}\"\n"))
    }

    /// Declares a phase and adds its script for PowerShell, `hooks/<phase>.ps1`, mode 0644.
    pub fn powershell_hook(self, phase: Phase, script: &str) -> Self {
        self.file(&format!("hooks/{phase}.ps1"), script)
            .manifest_extra(&format!("[hooks]\n{phase} = \"hooks/{phase}\"\n"))
    }

    /// Writes the package to `directory`, beside what is there.
    pub fn write(&self, directory: &Path) {
        let manifest = self.manifest.to_string();
        write_file(&directory.join("vibe.toml"), manifest.as_bytes());
        for (path, file) in &self.files {
            let path = directory.join(path);
            write_file(&path, &file.bytes);
            set_exec(&path, file.exec);
        }
    }

    /// Writes the package to `<registry>/<group>/<name>/v<version>/` and returns that directory.
    pub fn publish(&self, registry: &Path) -> PathBuf {
        let directory = registry
            .join(self.id.group())
            .join(self.id.name())
            .join(format!("v{}", self.version));
        self.write(&directory);
        directory
    }

    fn with_file(mut self, path: &str, bytes: &[u8], exec: bool) -> Self {
        let bytes = bytes.to_owned();
        self.files.insert(path.to_owned(), File { bytes, exec });
        self
    }
}

/// Puts every key of `extra` into `table`; tables are merged, lists are joined.
fn merge(table: &mut Table, extra: Table) {
    for (key, value) in extra {
        match (table.get_mut(&key), value) {
            (Some(Value::Table(old)), Value::Table(new)) => merge(old, new),
            (Some(Value::Array(old)), Value::Array(new)) => old.extend(new),
            (_, value) => {
                table.insert(key, value);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::TreeSnapshot;

    fn manifest(builder: &PackageBuilder) -> Table {
        let directory = tempfile::tempdir().unwrap();
        let published = builder.publish(directory.path());
        std::fs::read_to_string(published.join("vibe.toml"))
            .unwrap()
            .parse()
            .unwrap()
    }

    #[test]
    fn a_published_package_lies_under_its_id_and_version() {
        let registry = tempfile::tempdir().unwrap();
        PackageBuilder::new("org.example/lint", "1.0.0+b")
            .file("a.md", "text")
            .exec_file("tools/run", "#!/bin/sh\n")
            .publish(registry.path());
        let snapshot = TreeSnapshot::of(&registry.path().join("org.example/lint/v1.0.0+b"));
        let paths: Vec<&str> = snapshot.entries.keys().map(String::as_str).collect();
        assert_eq!(paths, ["a.md", "tools", "tools/run", "vibe.toml"]);
        if cfg!(unix) {
            assert_eq!(snapshot.entries["a.md"].mode, 0o644);
            assert_eq!(snapshot.entries["tools/run"].mode, 0o755);
        }
    }

    #[test]
    fn hooks_dependencies_and_extras_end_in_one_manifest() {
        let manifest = manifest(
            &PackageBuilder::new("org.example/lint", "1.0.0")
                .manifest_extra("[package]\nkind = \"tool\"\n[hooks]\ntimeout = \"2s\"\n")
                .manifest_extra("[[item]]\nname = \"one\"\n")
                .manifest_extra("[[item]]\nname = \"two\"\n")
                .hook(Phase::PreInstall, "true\n")
                .powershell_hook(Phase::PostInstall, "exit 0\n")
                .depends("org.example/core", "^1")
                .depends("org.example/fmt", "2"),
        );
        let expected: Table = r#"
            [package]
            group = "org.example"
            name = "lint"
            version = "1.0.0"
            kind = "tool"
            [hooks]
            timeout = "2s"
            pre-install = "hooks/pre-install"
            post-install = "hooks/post-install"
            [[item]]
            name = "one"
            [[item]]
            name = "two"
            [requires.packages]
            "org.example/core" = "^1"
            "org.example/fmt" = "2"
        "#
        .parse()
        .unwrap();
        assert_eq!(manifest, expected);
    }

    #[test]
    fn a_file_named_as_the_manifest_takes_its_place() {
        let raw = "[package]\nbroken = true\n";
        let broken = PackageBuilder::new("org.example/lint", "1.0.0").file("vibe.toml", raw);
        assert_eq!(manifest(&broken), raw.parse().unwrap());
    }
}
