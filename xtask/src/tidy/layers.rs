//! Rule `layers`: a crate uses only crates of lower layers. The table of this file, ARCHITECTURE.md and `cargo metadata` must agree.
//! Invariant: every crate of the workspace except xtask has one row in the table. xtask may use no crate of the workspace.

use super::Finding;
use crate::metadata::{Dependency, Kind, Package};
use crate::source::Tree;

const RULE: &str = "layers";

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Layer {
    Number(u8),
    Adapter,
    Tests,
}

const TABLE: &[(&str, Layer)] = &[
    ("base", Layer::Number(0)),
    ("catalog", Layer::Number(1)),
    ("ports", Layer::Number(1)),
    ("import", Layer::Number(2)),
    ("lang", Layer::Number(2)),
    ("teach", Layer::Number(3)),
    ("exec", Layer::Number(4)),
    ("durable", Layer::Number(4)),
    ("access", Layer::Number(5)),
    ("session", Layer::Number(6)),
    ("app", Layer::Number(7)),
    ("js", Layer::Adapter),
    ("store", Layer::Adapter),
    ("upstream", Layer::Adapter),
    ("server", Layer::Number(8)),
    ("cli", Layer::Number(9)),
    ("demo", Layer::Adapter),
    ("testkit", Layer::Tests),
    ("testapi", Layer::Tests),
];

/// The packages whose folder has another name than the package, each as folder (as ARCHITECTURE.md writes it) and package.
const FOLDERS: &[(&str, &str)] = &[("testkit/api", "testapi")];

/// The crates that an adapter may use. An adapter only implements `ports`; with a higher crate it could decide the meaning of programs.
const ADAPTER_MAY_USE: &[&str] = &["ports", "base", "catalog"];

/// The highest layer that a crate for tests may use. Such a crate replaces the environment of the tested crates, so it must build without
/// them.
const TESTS_MAY_USE: u8 = 1;

pub fn check(tree: &Tree) -> Vec<Finding> {
    let mut findings = rows_and_crates(&tree.packages);
    for package in &tree.packages {
        for dependency in package.dependencies.iter().filter(|d| d.local) {
            findings.extend(refusal(package, dependency));
        }
    }
    findings.extend(tree.architecture.iter().flat_map(|text| compare(text)));
    findings
}

fn layer(name: &str) -> Option<Layer> {
    TABLE.iter().find(|(row, _)| *row == name).map(|(_, layer)| *layer)
}

fn rows_and_crates(packages: &[Package]) -> Vec<Finding> {
    let unknown = packages.iter().filter(|p| p.name != "xtask" && layer(&p.name).is_none()).map(|p| {
        let wrong = format!("crate `{}` is not in the layer table", p.name);
        Finding::new(RULE, (&p.manifest, 1), wrong, "give it a row in xtask/src/tidy/layers.rs and in ARCHITECTURE.md")
    });
    let absent = TABLE.iter().filter(|(name, _)| packages.iter().all(|p| p.name != *name)).map(|(name, _)| {
        let wrong = format!("the layer table has `{name}`, the workspace has not");
        Finding::new(RULE, ("Cargo.toml", 1), wrong, "take the row out of xtask/src/tidy/layers.rs, or add the crate")
    });
    unknown.chain(absent).collect()
}

fn refusal(package: &Package, dependency: &Dependency) -> Option<Finding> {
    let (user, used) = (package.name.as_str(), dependency.name.as_str());
    let why = if user == "xtask" {
        "xtask may use no crate of the workspace"
    } else {
        let from = layer(user)?; // `rows_and_crates` reports a crate without a row
        match (layer(used), dependency.kind) {
            (None, _) => "it is not in the layer table",
            (Some(to), Kind::Dev) => refused_in_tests(user, from, used, to)?,
            (Some(to), Kind::Normal | Kind::Build) => refused(user, from, used, to)?,
        }
    };
    let place = (package.manifest.as_str(), package.line_of(dependency));
    let wrong = format!("`{user}` names `{used}` in [{}]: {why}", dependency.kind.section());
    Some(Finding::new(RULE, place, wrong, "remove it, or move the needed part to a lower crate or behind a port"))
}

fn refused(user: &str, from: Layer, used: &str, to: Layer) -> Option<&'static str> {
    let (allowed, why) = match (from, to) {
        (_, Layer::Tests) => (false, "a crate for tests may only be a dev-dependency"),
        (Layer::Number(a), Layer::Number(b)) => (b < a, "a crate may use only crates of a lower number"),
        (Layer::Number(_), Layer::Adapter) => (user == "cli", "only `cli` and crates for tests may name an adapter"),
        (Layer::Adapter, _) => (ADAPTER_MAY_USE.contains(&used), "an adapter may use only ports, base and catalog"),
        (Layer::Tests, Layer::Number(n)) => {
            (n <= TESTS_MAY_USE, "a crate for tests may use only base, catalog, ports and adapters")
        }
        (Layer::Tests, Layer::Adapter) => (true, ""),
    };
    (!allowed).then_some(why)
}

/// Returns why a test may not use a crate. Besides lower layers, tests may use crates for tests, all adapters, and crates of the same layer.
fn refused_in_tests(user: &str, from: Layer, used: &str, to: Layer) -> Option<&'static str> {
    match (from, to) {
        (_, Layer::Tests | Layer::Adapter) => None,
        (Layer::Number(a), Layer::Number(b)) => (b > a).then_some("a test may not use a crate of a higher number"),
        _ => refused(user, from, used, to),
    }
}

fn compare(text: &str) -> Vec<Finding> {
    let file = "ARCHITECTURE.md";
    let rows = rows(text);
    if rows.is_empty() {
        let wrong = "the table of crates is missing";
        return vec![Finding::new(
            RULE,
            (file, 1),
            wrong,
            "write the tree with `├── crates/` and a layer for each crate",
        )];
    }
    let fix = "make it say the same as the table in xtask/src/tidy/layers.rs";
    let mut findings = Vec::new();
    for (line, name, drawn) in &rows {
        let wrong = match layer(name) {
            Some(layer) if drawn.as_deref() == Some(&token(layer)) => continue,
            Some(layer) => {
                format!("`{name}` is {} here and {} in xtask", drawn.as_deref().unwrap_or("nothing"), token(layer))
            }
            None => format!("`{name}` is not in xtask's layer table"),
        };
        findings.push(Finding::new(RULE, (file, *line), wrong, fix));
    }
    for (name, _) in TABLE.iter().filter(|(name, _)| rows.iter().all(|(_, row, _)| row != name)) {
        findings.push(Finding::new(RULE, (file, rows[0].0), format!("`{name}` has no row here"), fix));
    }
    findings
}

fn token(layer: Layer) -> String {
    match layer {
        Layer::Number(n) => n.to_string(),
        Layer::Adapter => "A".to_string(),
        Layer::Tests => "T".to_string(),
    }
}

/// Returns the entries directly below `crates/` in the tree of ARCHITECTURE.md: line number, package, and layer if the next word is one.
fn rows(text: &str) -> Vec<(usize, String, Option<String>)> {
    let mut rows = Vec::new();
    let mut crates_at = None;
    let mut depth = None;
    for (index, line) in text.lines().enumerate() {
        let Some((column, entry)) = entry(line) else { continue };
        let mut words = entry.split_whitespace();
        let name = words.next().unwrap_or_default();
        match crates_at {
            None if name == "crates/" => crates_at = Some(column),
            None => {}
            Some(at) if column <= at => break,
            Some(_) if *depth.get_or_insert(column) == column => {
                let layer = words.next().filter(|word| is_layer(word)).map(String::from);
                let folder = name.trim_end_matches('/');
                let package = FOLDERS.iter().find(|(other, _)| *other == folder).map_or(folder, |(_, package)| package);
                rows.push((index + 1, package.to_string(), layer));
            }
            Some(_) => {}
        }
    }
    rows
}

/// Returns the column of an entry of the tree, and its text after `├──` or `└──`.
fn entry(line: &str) -> Option<(usize, &str)> {
    let at = line.find("├──").or_else(|| line.find("└──"))?;
    let (before, after) = line.split_at(at);
    Some((before.chars().count(), after.trim_start_matches(['├', '└', '─', ' '])))
}

fn is_layer(word: &str) -> bool {
    matches!(word, "A" | "T") || word.parse::<u8>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metadata::sample::package;

    fn all() -> Vec<Package> {
        TABLE.iter().map(|(name, _)| package(name, &[])).chain([package("xtask", &[])]).collect()
    }

    /// Returns the finding about one dependency, in a workspace that has no other mistake.
    fn finding_for(user: &str, used: &str, kind: Kind) -> Option<String> {
        let mut packages = all();
        packages.retain(|p| p.name != user);
        packages.push(package(user, &[(used, kind)]));
        let mut findings = check(&Tree { packages, ..Tree::default() });
        assert!(findings.len() <= 1, "{findings:?}");
        findings.pop().map(|f| f.to_string())
    }

    #[test]
    fn a_workspace_as_drawn_is_clean() {
        assert_eq!(check(&Tree { packages: all(), ..Tree::default() }), []);
    }

    #[test]
    fn allowed_dependencies() {
        for (user, used, kind) in [
            ("lang", "catalog", Kind::Normal),
            ("cli", "server", Kind::Normal),
            ("cli", "js", Kind::Normal),
            ("store", "ports", Kind::Normal),
            ("upstream", "catalog", Kind::Normal),
            ("testkit", "store", Kind::Normal),
            ("testkit", "catalog", Kind::Normal),
            ("testapi", "demo", Kind::Normal),
            ("testapi", "testkit", Kind::Dev),
            ("session", "testkit", Kind::Dev),
            ("exec", "demo", Kind::Dev),
            ("exec", "testapi", Kind::Dev),
            ("server", "store", Kind::Dev),
            ("catalog", "ports", Kind::Dev),
            ("store", "testkit", Kind::Dev),
        ] {
            assert_eq!(finding_for(user, used, kind), None, "{user} -> {used} {kind:?}");
        }
    }

    #[test]
    fn refused_dependencies() {
        for (user, used, kind, why) in [
            ("lang", "exec", Kind::Normal, "lower number"),
            ("catalog", "ports", Kind::Normal, "lower number"),
            ("base", "catalog", Kind::Build, "lower number"),
            ("server", "store", Kind::Normal, "name an adapter"),
            ("session", "demo", Kind::Build, "name an adapter"),
            ("store", "lang", Kind::Normal, "ports, base and catalog"),
            ("store", "upstream", Kind::Normal, "ports, base and catalog"),
            ("store", "lang", Kind::Dev, "ports, base and catalog"),
            ("cli", "testkit", Kind::Normal, "dev-dependency"),
            ("cli", "testapi", Kind::Normal, "dev-dependency"),
            ("testkit", "exec", Kind::Normal, "a crate for tests may use only"),
            ("lang", "exec", Kind::Dev, "higher number"),
            ("xtask", "base", Kind::Dev, "no crate of the workspace"),
            ("cli", "xtask", Kind::Normal, "not in the layer table"),
        ] {
            let finding = finding_for(user, used, kind).unwrap_or_default();
            assert!(finding.contains(why), "{user} -> {used} {kind:?}: {finding}");
        }
    }

    #[test]
    fn a_crate_without_a_row_and_a_row_without_a_crate() {
        let mut packages = all();
        packages.retain(|p| p.name != "demo");
        packages.push(package("extra", &[("cli", Kind::Normal)]));
        let findings: Vec<_> =
            check(&Tree { packages, ..Tree::default() }).into_iter().map(|f| (f.path, f.wrong)).collect();
        assert_eq!(findings.len(), 2, "{findings:?}");
        assert!(findings[0].0 == "crates/extra/Cargo.toml" && findings[0].1.contains("`extra` is not"));
        assert!(findings[1].0 == "Cargo.toml" && findings[1].1.contains("`demo`"));
    }

    fn drawn() -> String {
        let rows: String =
            TABLE.iter().map(|(name, l)| format!("│   ├── {name}/       {}    job\n", token(*l))).collect();
        format!(
            "# A\n├── README.md   words\n├── crates/\n{rows}│   │        import/ drafts\n│   │   └── syntax/   3 files\n\
             ├── docs/   A guide\n└── xtask/   tidy\n"
        )
    }

    #[test]
    fn the_drawn_table_is_compared() {
        assert_eq!(compare(&drawn()), []);
        assert_eq!(compare(&drawn().replace("├── testapi/", "├── testkit/api/")), [], "the folder of a package");
        let other =
            drawn().replace("├── lang/       2", "├── lang/       4").replace("├── js/       A", "├── jq/       A");
        let findings: Vec<_> = compare(&other).into_iter().map(|f| (f.line, f.wrong)).collect();
        assert_eq!(findings.len(), 3, "{findings:?}");
        let line = |name: &str| other.lines().position(|line| line.contains(name)).unwrap() + 1;
        assert_eq!(findings[0], (line("├── lang/"), "`lang` is 4 here and 2 in xtask".to_string()));
        assert_eq!(findings[1], (line("├── jq/"), "`jq` is not in xtask's layer table".to_string()));
        assert_eq!(findings[2].1, "`js` has no row here");
    }

    #[test]
    fn a_page_without_the_tree_or_without_a_layer_is_found() {
        assert_eq!(compare("# Architecture\n").len(), 1);
        let findings = compare(&drawn().replace("├── base/       0    job", "├── base/       ids"));
        assert_eq!(findings.len(), 1);
        assert!(findings[0].wrong.contains("`base` is nothing here"));
    }
}
