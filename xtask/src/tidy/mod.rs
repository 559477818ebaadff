//! `cargo xtask tidy`: reads the source tree once, and applies each rule to it.
//! Invariant: a rule only reads the tree. It runs no program and always returns a list of findings.

mod binaries;
mod errors;
mod foreign;
mod headers;
mod layers;
mod lints;
mod names;
mod paths;
mod rings;
mod words;

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use crate::source::Tree;
use crate::{map, measure, prose, recipes};

/// The names of the rules whose findings are printed but do not fail the check.
const REPORT_ONLY: &[&str] = &[];

/// A mistake that a rule has found: its place, the rule, a description, and the correction.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    pub path: String,
    pub line: usize,
    pub rule: &'static str,
    pub wrong: String,
    pub fix: String,
}

impl Finding {
    fn new(rule: &'static str, place: (&str, usize), wrong: impl Into<String>, fix: impl Into<String>) -> Self {
        Finding { path: place.0.to_string(), line: place.1, rule, wrong: wrong.into(), fix: fix.into() }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: [{}] {}; {}", self.path, self.line, self.rule, self.wrong, self.fix)
    }
}

#[derive(Debug)]
pub struct Report {
    /// The findings that fail the check.
    pub findings: Vec<Finding>,
    /// The findings of the rules in `REPORT_ONLY`.
    pub reported: Vec<Finding>,
    /// The lines with counts, which are always printed.
    pub notes: Vec<String>,
    /// The last printed line.
    pub summary: String,
}

pub fn run(root: &Path) -> anyhow::Result<Report> {
    let tree = Tree::read(root)?;
    let prose = prose::run(root, &[])?;
    let mut findings = inspect(&tree);
    findings.extend(prose.findings.iter().map(unclear_sentence));
    findings.extend(stale_map(root, &tree));
    findings.extend(broken_recipes(root));
    findings.extend(stale_walks(root, &tree));
    findings.extend(paths::check(root));
    Ok(report(&tree, findings, prose.table()))
}

type Rule = fn(&Tree) -> Vec<Finding>;

const RULES: &[Rule] = &[
    unparsed,
    layers::check,
    foreign::check,
    headers::check,
    rings::check,
    errors::check,
    lints::check,
    names::check,
    words::check,
    binaries::check,
];

fn inspect(tree: &Tree) -> Vec<Finding> {
    RULES.iter().flat_map(|rule| rule(tree)).collect()
}

fn report(tree: &Tree, mut findings: Vec<Finding>, mut notes: Vec<String>) -> Report {
    findings.sort();
    findings.dedup();
    let (reported, findings): (Vec<Finding>, Vec<Finding>) =
        findings.into_iter().partition(|finding| REPORT_ONLY.contains(&finding.rule));
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for finding in &reported {
        *counts.entry(finding.rule).or_default() += 1;
    }
    let counts: Vec<String> = counts.iter().map(|(rule, count)| format!("{rule} {count}")).collect();
    if !counts.is_empty() {
        notes.push(format!("reported, `cargo xtask tidy --reported` lists them: {}", counts.join(", ")));
    }
    let lines: usize = tree.files.iter().map(|file| file.text.lines().count()).sum();
    let mut summary = format!("tidy: {} packages, {} Rust files, {lines} lines", tree.packages.len(), tree.files.len());
    match findings.len() {
        0 => summary += ", nothing found",
        1 => summary += ", 1 finding",
        n => summary += &format!(", {n} findings"),
    }
    Report { findings, reported, notes, summary }
}

/// Returns a finding for each file that cannot be parsed. The other rules skip such files.
fn unparsed(tree: &Tree) -> Vec<Finding> {
    let broken = tree.files.iter().filter_map(|file| Some((file, file.parsed.as_ref().err()?)));
    let fix = "make it valid Rust; no other rule saw this file";
    broken.map(|(file, error)| Finding::new("parse", (&file.path, error.line), &error.message, fix)).collect()
}

fn unclear_sentence(finding: &prose::Finding) -> Finding {
    let wrong = format!("{}: `{}`", finding.wrong, finding.sentence);
    Finding::new("prose", (&finding.path, finding.line), wrong, "name the subject and say what it does")
}

fn stale_map(root: &Path, tree: &Tree) -> Option<Finding> {
    let current = std::fs::read_to_string(root.join(map::PAGE)).unwrap_or_default();
    let stale = root.join("docs").is_dir() && current != map::page(tree);
    stale.then(|| Finding::new("map", (map::PAGE, 1), "the map differs from the headers", "run `cargo xtask map`"))
}

fn broken_recipes(root: &Path) -> Vec<Finding> {
    const PAGE: &str = "CONTRIBUTING.md";
    let page = std::fs::read_to_string(root.join(PAGE)).unwrap_or_default();
    let mistakes = recipes::check(root, &page).into_iter();
    mistakes
        .map(|mistake| Finding::new("recipes", (PAGE, mistake.line), mistake.text, "correct the recipe or the tree"))
        .collect()
}

fn stale_walks(root: &Path, tree: &Tree) -> Vec<Finding> {
    let stale = measure::stale_walks(root, tree);
    stale.iter().filter_map(|mistake| walk_finding(mistake)).collect()
}

/// Splits `path:line: mistake`.
fn walk_finding(mistake: &str) -> Option<Finding> {
    let (path, rest) = mistake.split_once(':')?;
    let (line, wrong) = rest.split_once(": ")?;
    let fix = "correct the walk, and the path of the call in ARCHITECTURE.md";
    Some(Finding::new("walks", (path, line.parse().ok()?), wrong, fix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::sample;

    #[test]
    fn a_file_that_does_not_parse_is_a_finding_and_stops_nothing() {
        let tree = sample::tree(&[
            ("crates/a/src/lib.rs", "//! A.\n//! Invariant: none.\nfn broken( {\n"),
            ("crates/a/src/half.rs", "//! Half.\nfn broken {}\n"),
            ("crates/a/src/utils.rs", "//! U.\n"),
        ]);
        let report = report(&tree, inspect(&tree), Vec::new());
        let parse: Vec<_> = report.findings.iter().filter(|f| f.rule == "parse").map(|f| (&*f.path, f.line)).collect();
        assert_eq!(parse, [("crates/a/src/half.rs", 2), ("crates/a/src/lib.rs", 3)]);
        assert!(report.findings.iter().any(|f| f.rule == "names"));
    }

    #[test]
    fn a_mistake_of_a_walk_is_a_finding_with_its_line() {
        let finding = walk_finding("xtask/walks/a.txt:26: src/x.rs has no function `y`").unwrap();
        assert_eq!(
            (&*finding.path, finding.line, &*finding.wrong),
            ("xtask/walks/a.txt", 26, "src/x.rs has no function `y`")
        );
    }

    #[test]
    fn a_finding_reads_as_one_line() {
        let finding = Finding::new("names", ("a/b.rs", 3), "wrong", "do this");
        assert_eq!(finding.to_string(), "a/b.rs:3: [names] wrong; do this");
    }

    #[test]
    fn rules_that_only_report_do_not_fail_the_check() {
        let findings = REPORT_ONLY.iter().map(|rule| Finding::new(rule, ("a", 1), "wrong", "do this")).collect();
        let report = report(&Tree::default(), findings, Vec::new());
        assert_eq!((report.findings.len(), report.reported.len()), (0, REPORT_ONLY.len()));
        assert_eq!(report.notes.len(), usize::from(!REPORT_ONLY.is_empty()));
    }
}
