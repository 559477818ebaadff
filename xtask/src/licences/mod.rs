//! `cargo xtask licences`: compares the licence expression of every dependency with the `allow` list of deny.toml.
//! Invariant: deny.toml has the only list of allowed licences. A package without a valid expression is refused.

mod deny;
mod spdx;

use std::path::Path;

use anyhow::Context;

use crate::metadata::{self, Package};

#[derive(Debug)]
pub struct Report {
    pub offenders: Vec<String>,
    pub summary: String,
}

pub fn run(root: &Path) -> anyhow::Result<Report> {
    let deny = root.join("deny.toml");
    let text = std::fs::read_to_string(&deny).with_context(|| format!("{} cannot be read", deny.display()))?;
    let allow = deny::allowed(&text).with_context(|| format!("{}", deny.display()))?;
    // If the workspace was never built on this machine, cargo needs the index of the registry, which it fetches only without --offline.
    let packages = metadata::read(root, &["--locked", "--offline"]).or_else(|_| metadata::read(root, &["--locked"]))?;
    Ok(check(&packages, &allow))
}

/// Compares the licence of each package from a registry with the list.
fn check(packages: &[Package], allow: &[String]) -> Report {
    let foreign: Vec<&Package> = packages.iter().filter(|p| !p.local).collect();
    let offenders: Vec<String> = foreign.iter().filter_map(|p| offence(p, allow)).collect();
    let summary = match offenders.len() {
        0 => format!(
            "licences: {} dependencies, each under one of the {} licences deny.toml allows",
            foreign.len(),
            allow.len()
        ),
        n => format!("licences: {n} of {} dependencies refused", foreign.len()),
    };
    Report { offenders, summary }
}

/// Returns a line about the package if its licence is not allowed.
fn offence(package: &Package, allow: &[String]) -> Option<String> {
    let name = format!("{} {}", package.name, package.version);
    let Some(expression) = &package.licence else {
        return Some(format!("{name}: no licence expression; replace the crate"));
    };
    match spdx::refused(expression, allow) {
        Ok(refused) if refused.is_empty() => None,
        Ok(refused) => Some(format!(
            "{name}: `{expression}` needs {}, which deny.toml does not allow; replace the crate, or add the licence to \
             `allow` if it is compatible",
            refused.join(" and ")
        )),
        Err(error) => Some(format!("{name}: `{expression}` cannot be read ({error}); replace the crate")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn package(name: &str, licence: Option<&str>, local: bool) -> Package {
        let licence = licence.map(String::from);
        Package { name: name.into(), version: "1.0.0".into(), licence, local, ..Package::default() }
    }

    #[test]
    fn offenders_are_named_and_counted() {
        let packages = [
            package("ours", None, true),
            package("fine", Some("MIT OR GPL-3.0"), false),
            package("bare", None, false),
            package("copyleft", Some("GPL-3.0"), false),
            package("garbled", Some("MIT OR"), false),
        ];
        let report = check(&packages, &["MIT".to_string()]);
        let names: Vec<&str> = report.offenders.iter().filter_map(|o| o.split(' ').next()).collect();
        assert_eq!(names, ["bare", "copyleft", "garbled"]);
        assert_eq!(report.summary, "licences: 3 of 4 dependencies refused");
        let report = check(&packages[..2], &["MIT".to_string()]);
        assert!(report.offenders.is_empty());
        assert!(report.summary.contains("1 dependencies"));
    }
}
