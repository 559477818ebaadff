//! Golden cases of mistakes in catalogs: the position, the message, and the correction of each diagnostic.
//!
//! A case is a whole catalog. A case with `#! base = every` is a change of `tests/catalog/every.yaml`: lines to
//! remove (after `- `) and lines to insert instead (after `+ `). The expectation has each diagnostic and, below the
//! diagnostic, the text at its position.

use catalog::{Rejected, read};
use testkit::golden::Case;

/// A catalog that uses every part of the format.
const EVERY_YAML: &str = include_str!("../../../../tests/catalog/every.yaml");

#[test]
fn golden_mistakes() {
    testkit::golden::run("../../tests/catalog", |case| match read("c.yaml", &catalog_text(case)) {
        Ok(catalog) => format!("a catalog of {} capabilities", catalog.capabilities.len()),
        Err(rejected) => render_diagnostics(&rejected),
    });
}

/// The file `every.yaml`, on which cases are based, has no mistake.
#[test]
fn every_part_of_the_format_loads() {
    let catalog = read("every.yaml", EVERY_YAML).unwrap_or_else(|rejected| panic!("{rejected}"));
    let from_canonical = catalog::from_canonical(catalog.canonical().as_bytes(), catalog.digest()).unwrap();
    assert_eq!(from_canonical, catalog);
    assert_eq!(format!("{from_canonical:?}"), format!("{catalog:?}"));
}

#[test]
fn every_code_has_a_case() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/catalog");
    let mut cases = String::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "case") {
            cases.push_str(&std::fs::read_to_string(path).unwrap());
        }
    }
    for code in catalog::codes::ALL {
        assert!(cases.contains(&format!("{code} ")), "{code} has no case");
    }
}

/// Returns the catalog text of a case: the input, or `every.yaml` with the changes of the input.
fn catalog_text(case: &Case) -> String {
    if case.attribute("base") != Some("every") {
        return case.input.clone();
    }
    let mut text = EVERY_YAML.to_owned();
    let mut lines = case.input.lines().peekable();
    while lines.peek().is_some() {
        let mut lines_with = |sign: &str| -> Vec<&str> {
            let mut block = Vec::new();
            while let Some(line) = lines.next_if(|line| line.starts_with(sign)) {
                block.push(line.get(2..).unwrap_or_default());
            }
            block
        };
        let removed = lines_with("-");
        let added = lines_with("+");
        // A block with `+` lines replaces text inside lines, so the line end stays. A block without `+` lines removes
        // whole lines, with their line ends.
        let end = if added.is_empty() { "\n" } else { "" };
        let from = format!("{}{end}", removed.join("\n"));
        let to = added.join("\n");
        assert!(!from.is_empty() && text.contains(&from), "{from:?} is not in every.yaml");
        text = text.replacen(&from, &to, 1);
    }
    text
}

fn render_diagnostics(rejected: &Rejected) -> String {
    let lines = rejected.lines();
    let mut out = Vec::new();
    for (line, diagnostic) in lines.lines().zip(&rejected.diagnostics) {
        let rest = rejected.text.get(diagnostic.span.start as usize..).unwrap_or_default();
        let text_at_span: String = rest.lines().next().unwrap_or_default().chars().take(40).collect();
        out.push(format!("{line}\n    ^ {text_at_span}"));
    }
    out.join("\n")
}
