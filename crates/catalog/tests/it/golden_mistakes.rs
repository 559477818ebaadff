//! Golden cases of the mistakes that a catalog can have: the position, the message, and the text to write instead.
//!
//! A case is a whole catalog. With `#! base = every` it is a change of `tests/catalog/every.yaml`: lines to remove (each
//! after `- `) and lines to put in their place (each after `+ `). The expectation has each diagnostic, and below it the text
//! at its position.

use catalog::{Rejected, read};
use testkit::golden::Case;

const EVERY: &str = include_str!("../../../../tests/catalog/every.yaml");

#[test]
fn golden_mistakes() {
    testkit::golden::run("../../tests/catalog", |case| match read("c.yaml", &text(case)) {
        Ok(catalog) => format!("a catalog of {} capabilities", catalog.capabilities.len()),
        Err(rejected) => shown(&rejected),
    });
}

/// The base of the cases has no mistake itself.
#[test]
fn every_part_of_the_format_loads() {
    let catalog = read("every.yaml", EVERY).unwrap_or_else(|rejected| panic!("{rejected}"));
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

/// Returns the text of a case, with its changes to the base applied.
fn text(case: &Case) -> String {
    if case.attribute("base") != Some("every") {
        return case.input.clone();
    }
    let mut text = EVERY.to_owned();
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
        // A part of a line can be replaced. A line without a replacement is removed with its line end.
        let end = if added.is_empty() { "\n" } else { "" };
        let from = format!("{}{end}", removed.join("\n"));
        let to = added.join("\n");
        assert!(!from.is_empty() && text.contains(&from), "{from:?} is not in every.yaml");
        text = text.replacen(&from, &to, 1);
    }
    text
}

fn shown(rejected: &Rejected) -> String {
    let lines = rejected.lines();
    let mut out = Vec::new();
    for (line, diagnostic) in lines.lines().zip(&rejected.diagnostics) {
        let rest = rejected.text.get(diagnostic.span.start as usize..).unwrap_or_default();
        let text_at_span: String = rest.lines().next().unwrap_or_default().chars().take(40).collect();
        out.push(format!("{line}\n    ^ {text_at_span}"));
    }
    out.join("\n")
}
