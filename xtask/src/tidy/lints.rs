//! Rule `lints`: every crate uses the lints of the workspace, which refuse `unwrap`, `panic` and `unsafe`.
//! Invariant: only `js` has its own table of lints, because it may contain `unsafe`. Its clippy lints equal those of the workspace.

use super::Finding;
use crate::source::Tree;

const RULE: &str = "lints";

/// The only crate that may contain `unsafe`, because it maps the memory of the guest.
const MAY_BE_UNSAFE: &str = "js";

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = Vec::new();
    for package in &tree.packages {
        let fix = "write `[lints]` and `workspace = true` into the manifest";
        if package.name != MAY_BE_UNSAFE {
            if !section(&package.text, "[lints]").contains(&"workspace = true") {
                let wrong = "the crate does not take the lints of the workspace";
                findings.push(Finding::new(RULE, (&package.manifest, 1), wrong, fix));
            }
        } else if section(&package.text, "[lints.clippy]") != section(&tree.manifest, "[workspace.lints.clippy]") {
            let wrong = "the clippy lints differ from those of the workspace";
            let fix = "copy [workspace.lints.clippy] of the root manifest to [lints.clippy]";
            findings.push(Finding::new(RULE, (&package.manifest, 1), wrong, fix));
        }
    }
    findings
}

/// Returns the entries of one table of a manifest.
fn section<'a>(manifest: &'a str, header: &str) -> Vec<&'a str> {
    let lines = manifest.lines().map(str::trim).skip_while(|line| *line != header).skip(1);
    lines.take_while(|line| !line.starts_with('[')).filter(|line| !line.is_empty() && !line.starts_with('#')).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::Package;
    use crate::metadata::sample::package;

    const ROOT: &str = "[workspace.lints.rust]\nunsafe_code = \"forbid\"\n\n[workspace.lints.clippy]\npanic = \"deny\"\n\n[profile.dev]\n";

    fn findings(name: &str, manifest: &str) -> usize {
        let package = Package { text: manifest.to_owned(), ..package(name, &[]) };
        check(&Tree { packages: vec![package], manifest: ROOT.to_owned(), ..Tree::default() }).len()
    }

    #[test]
    fn every_crate_takes_the_lints() {
        assert_eq!(findings("base", "[package]\n\n[lints]\nworkspace = true\n"), 0);
        assert_eq!(findings("base", "[package]\n[dependencies]\nx.workspace = true\n"), 1);
        assert_eq!(findings("base", "[lints.clippy]\npanic = \"deny\"\n"), 1);
    }

    #[test]
    fn the_crate_with_unsafe_code_repeats_the_lints_of_clippy() {
        assert_eq!(findings("js", "[lints.rust]\nunsafe_code = \"deny\"\n\n[lints.clippy]\npanic = \"deny\"\n"), 0);
        assert_eq!(findings("js", "[lints.clippy]\npanic = \"allow\"\n"), 1);
        assert_eq!(findings("js", "[lints]\nworkspace = true\n"), 1);
    }
}
