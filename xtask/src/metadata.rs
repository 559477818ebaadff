//! Reads the packages of the workspace and their dependencies from `cargo metadata`.
//! Invariant: the text of a manifest is read only for its lints and for line numbers; all other data comes from cargo.

use std::path::Path;
use std::process::Command;

use anyhow::Context;
use serde_json::Value;

/// A package of the workspace or of a registry.
#[derive(Debug, Default, Clone)]
pub struct Package {
    pub name: String,
    pub version: String,
    pub licence: Option<String>,
    /// Whether the package is a folder of this machine. Otherwise it comes from a registry.
    pub local: bool,
    /// The path of the manifest, relative to the root of the workspace if the manifest is below the root.
    pub manifest: String,
    /// The text of the manifest. It is empty for a package from a registry.
    pub text: String,
    pub dependencies: Vec<Dependency>,
}

/// One entry of the dependencies in a manifest.
#[derive(Debug, Clone)]
pub struct Dependency {
    pub name: String,
    /// The name of the dependency in the manifest. It differs from the name of the package if the manifest renames the package.
    pub key: String,
    pub kind: Kind,
    pub local: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    Normal,
    Build,
    Dev,
}

impl Kind {
    pub fn section(self) -> &'static str {
        match self {
            Kind::Normal => "dependencies",
            Kind::Build => "build-dependencies",
            Kind::Dev => "dev-dependencies",
        }
    }
}

impl Package {
    /// Returns the number of the manifest's line with this dependency, or 1 if there is no such line.
    pub fn line_of(&self, dependency: &Dependency) -> usize {
        let section = dependency.kind.section();
        let mut inside = false;
        for (index, line) in self.text.lines().enumerate() {
            let line = line.trim();
            if let Some(header) = line.strip_prefix('[') {
                let header = header.split(']').next().unwrap_or(header);
                inside = header == section || header.ends_with(&format!(".{section}"));
                if header.ends_with(&format!("{section}.{}", dependency.key)) {
                    return index + 1;
                }
            } else if inside && key(line) == dependency.key {
                return index + 1;
            }
        }
        1
    }
}

/// Runs `cargo metadata` with these additional arguments, and returns the packages.
pub fn read(root: &Path, arguments: &[&str]) -> anyhow::Result<Vec<Package>> {
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let output = Command::new(cargo)
        .args(["metadata", "--format-version", "1"])
        .args(arguments)
        .current_dir(root)
        .output()
        .with_context(|| format!("cargo metadata cannot be started in {}", root.display()))?;
    if !output.status.success() {
        let message = String::from_utf8_lossy(&output.stderr);
        anyhow::bail!("cargo metadata failed in {}: {}", root.display(), message.trim());
    }
    let json = serde_json::from_slice(&output.stdout).context("cargo metadata printed no JSON")?;
    let mut packages = parse(&json);
    for package in packages.iter_mut().filter(|p| p.local) {
        package.text = std::fs::read_to_string(&package.manifest)
            .with_context(|| format!("{} cannot be read", package.manifest))?;
        package.manifest = relative(&json, root, &package.manifest);
    }
    Ok(packages)
}

fn key(line: &str) -> &str {
    line.split(['.', '=', ' ']).next().unwrap_or(line).trim_matches('"')
}

fn parse(json: &Value) -> Vec<Package> {
    list(json, "packages").map(package).collect()
}

fn package(json: &Value) -> Package {
    Package {
        name: word(json, "name"),
        version: word(json, "version"),
        licence: json["license"].as_str().map(String::from),
        local: json["source"].is_null(),
        manifest: word(json, "manifest_path"),
        text: String::new(),
        dependencies: list(json, "dependencies").map(dependency).collect(),
    }
}

fn dependency(json: &Value) -> Dependency {
    let name = word(json, "name");
    Dependency {
        key: json["rename"].as_str().map_or_else(|| name.clone(), String::from),
        name,
        kind: match json["kind"].as_str() {
            Some("dev") => Kind::Dev,
            Some("build") => Kind::Build,
            _ => Kind::Normal,
        },
        local: json["source"].is_null(),
    }
}

fn list<'a>(json: &'a Value, key: &str) -> impl Iterator<Item = &'a Value> {
    json[key].as_array().into_iter().flatten()
}

fn word(json: &Value, key: &str) -> String {
    json[key].as_str().unwrap_or_default().to_string()
}

/// Returns a path relative to the root if the path begins with the root. Cargo resolves links, so the root is compared both as cargo
/// writes it and as it was passed to this program.
fn relative(json: &Value, root: &Path, path: &str) -> String {
    let cargo_root = Path::new(json["workspace_root"].as_str().unwrap_or_default());
    let path = Path::new(path);
    let short = path.strip_prefix(cargo_root).or_else(|_| path.strip_prefix(root)).unwrap_or(path);
    short.to_string_lossy().replace('\\', "/")
}

#[cfg(test)]
pub mod sample {
    //! Makes packages for tests.
    use super::*;

    /// Makes a package, as in `package("cli", &[("server", Kind::Normal)])`. A dependency is local unless its name starts with `~`.
    pub fn package(name: &str, dependencies: &[(&str, Kind)]) -> Package {
        let dependency = |(name, kind): &(&str, Kind)| Dependency {
            name: name.trim_start_matches('~').to_string(),
            key: name.trim_start_matches('~').to_string(),
            kind: *kind,
            local: !name.starts_with('~'),
        };
        let dir = if name == "xtask" { name.to_string() } else { format!("crates/{name}") };
        Package {
            name: name.to_string(),
            local: true,
            manifest: format!("{dir}/Cargo.toml"),
            text: "[lints]\nworkspace = true\n".to_owned(),
            dependencies: dependencies.iter().map(dependency).collect(),
            ..Package::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cargo_json_becomes_packages() {
        let json = serde_json::json!({"packages": [{
            "name": "base", "version": "0.1.0", "license": "MIT", "source": null, "manifest_path": "/w/crates/base/Cargo.toml",
            "dependencies": [
                {"name": "serde", "kind": null, "rename": null, "source": "registry+https://x"},
                {"name": "testkit", "kind": "dev", "rename": "kit", "source": null},
                {"name": "cc", "kind": "build", "rename": null, "source": "registry+https://x"},
            ],
        }]});
        let packages = parse(&json);
        let [base] = packages.as_slice() else { panic!("{packages:?}") };
        assert!(base.local);
        assert_eq!(base.licence.as_deref(), Some("MIT"));
        let dependencies: Vec<_> = base.dependencies.iter().map(|d| (d.key.as_str(), d.kind, d.local)).collect();
        assert_eq!(
            dependencies,
            [("serde", Kind::Normal, false), ("kit", Kind::Dev, true), ("cc", Kind::Build, false)]
        );
    }

    #[test]
    fn a_dependency_is_found_in_its_own_section() {
        let text = "[package]\nname = \"x\"\n\n[dependencies]\nserde_json.workspace = true\nserde = \"1\"\n\n\
                    [target.'cfg(unix)'.dependencies]\nlibc = \"0\"\n\n[dev-dependencies]\nbase.workspace = true\n\
                    [dependencies.base]\npath = \"../base\"\n";
        let package = Package { text: text.to_string(), ..Package::default() };
        let line =
            |name: &str, kind| package.line_of(&Dependency { name: name.into(), key: name.into(), kind, local: false });
        assert_eq!(line("serde", Kind::Normal), 6);
        assert_eq!(line("libc", Kind::Normal), 9);
        assert_eq!(line("base", Kind::Dev), 12);
        assert_eq!(line("base", Kind::Normal), 13);
        assert_eq!(line("absent", Kind::Normal), 1);
    }
}
