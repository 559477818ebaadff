//! `cargo xtask tidy`: reads the tree once and asks each rule what it finds.
//! Invariant: a rule sees only the `Tree`; it reads no file, runs no program and cannot fail, it can only find.

mod binaries;
mod errors;
mod foreign;
mod headers;
mod layers;
mod names;
mod rings;
mod source;
mod tokens;
mod unsafety;
mod unwraps;
mod words;

use std::fmt;
use std::path::Path;

use source::Tree;

use crate::prose;

/// Something to change: where, which rule, what is wrong and what to do.
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
    pub findings: Vec<Finding>,
    /// What is counted and reported, but not refused.
    pub notes: Vec<String>,
    /// One line for people: what was looked at.
    pub counted: String,
}

impl Report {
    pub fn lines(&self) -> Vec<String> {
        self.findings.iter().map(Finding::to_string).collect()
    }
}

pub fn run(root: &Path) -> anyhow::Result<Report> {
    let tree = Tree::read(root)?;
    let mut report = inspect(&tree);
    let prose = prose::run(root, &[])?;
    if prose::GATED {
        report.findings.extend(prose.findings.into_iter().map(unclear));
    } else {
        report.notes = prose.table();
    }
    report.counted = counted(&tree, report.findings.len());
    Ok(report)
}

fn unclear(finding: prose::Finding) -> Finding {
    let wrong = format!("{}: `{}`", finding.wrong, finding.sentence);
    Finding::new("prose", (&finding.path, finding.line), wrong, "name the subject and say what it does")
}

type Rule = fn(&Tree) -> Vec<Finding>;

const RULES: &[Rule] = &[
    unparsed,
    layers::check,
    foreign::check,
    headers::check,
    rings::check,
    errors::check,
    unsafety::check,
    unwraps::check,
    names::check,
    words::check,
    binaries::check,
];

fn inspect(tree: &Tree) -> Report {
    let mut findings: Vec<Finding> = RULES.iter().flat_map(|rule| rule(tree)).collect();
    findings.sort();
    findings.dedup();
    let counted = counted(tree, findings.len());
    Report { findings, notes: Vec::new(), counted }
}

fn counted(tree: &Tree, findings: usize) -> String {
    let lines: usize = tree.files.iter().map(|file| file.text.lines().count()).sum();
    let mut counted = format!("tidy: {} packages, {} Rust files, {lines} lines", tree.packages.len(), tree.files.len());
    match findings {
        0 => counted += ", nothing found",
        1 => counted += ", 1 finding",
        n => counted += &format!(", {n} findings"),
    }
    counted
}

/// The rules skip a file they cannot read, so not being readable is a finding itself.
fn unparsed(tree: &Tree) -> Vec<Finding> {
    let broken = tree.files.iter().filter_map(|file| Some((file, file.parsed.as_ref().err()?)));
    broken
        .map(|(file, error)| {
            Finding::new(
                "parse",
                (&file.path, error.line),
                &error.message,
                "make it valid Rust; no other rule saw this file",
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_that_does_not_parse_is_a_finding_and_stops_nothing() {
        let tree = source::sample::tree(&[
            ("crates/a/src/lib.rs", "//! A.\n//! Invariant: none.\nfn broken( {\n"),
            ("crates/a/src/half.rs", "//! Half.\nfn broken {}\n"),
            ("crates/a/src/utils.rs", "//! U.\n"),
        ]);
        let report = inspect(&tree);
        let parse: Vec<_> = report.findings.iter().filter(|f| f.rule == "parse").map(|f| (&*f.path, f.line)).collect();
        assert_eq!(parse, [("crates/a/src/half.rs", 2), ("crates/a/src/lib.rs", 3)]);
        assert!(report.findings.iter().any(|f| f.rule == "names"));
    }

    #[test]
    fn a_finding_reads_as_one_line() {
        let finding = Finding::new("names", ("a/b.rs", 3), "wrong", "do this");
        assert_eq!(finding.to_string(), "a/b.rs:3: [names] wrong; do this");
    }
}
