//! Every mistake that a catalog can have: its place, what is wrong, and what to write.
//!
//! A case is a whole catalog, or with `#! base = every` some lines of `tests/catalog/every.yaml` (each after `- `) and what
//! stands there instead (each after `+ `). What is expected is each diagnostic, and below it what its place points at.

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

/// The base of the cases is itself right.
#[test]
fn every_part_of_the_format_loads() {
    let catalog = read("every.yaml", EVERY).unwrap_or_else(|rejected| panic!("{rejected}"));
    let again = catalog::from_canonical(catalog.canonical().as_bytes(), catalog.digest()).unwrap();
    assert_eq!(again, catalog);
    assert_eq!(format!("{again:?}"), format!("{catalog:?}"));
}

/// Each code of the reader has a case, and no place is the beginning of the file for want of a better one.
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

fn text(case: &Case) -> String {
    if case.attribute("base") != Some("every") {
        return case.input.clone();
    }
    let mut text = EVERY.to_owned();
    let mut lines = case.input.lines().peekable();
    while lines.peek().is_some() {
        let mut block = |sign: &str| -> Vec<&str> {
            let mut out = Vec::new();
            while let Some(line) = lines.next_if(|line| line.starts_with(sign)) {
                out.push(line.get(2..).unwrap_or_default());
            }
            out
        };
        let (from, to) = (block("-"), block("+"));
        // A piece of a line is enough; lines with nothing in their place go whole.
        let end = if to.is_empty() { "\n" } else { "" };
        let (from, to) = (format!("{}{end}", from.join("\n")), to.join("\n"));
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
        let here: String = rest.lines().next().unwrap_or_default().chars().take(40).collect();
        out.push(format!("{line}\n    ^ {here}"));
    }
    out.join("\n")
}
