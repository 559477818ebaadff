//! `cargo xtask tokens`: counts the o200k tokens of every text that a model reads, and compares them with a budget.
//! Invariant: the texts are read from golden files, which other tests compare with the code. A count may exceed its budget only after the
//! budget file was changed.

mod measure;

use std::collections::BTreeMap;
use std::path::Path;

use anyhow::{Context, Result, ensure};

const BUDGET: &str = "tests/tokens.txt";

pub struct Report {
    pub findings: Vec<String>,
    /// The lines to print, one for each text.
    pub lines: Vec<String>,
    pub summary: String,
}

pub fn run(root: &Path) -> Result<Report> {
    let texts = measure::all(root)?;
    let path = root.join(BUDGET);
    let budget = std::fs::read_to_string(&path).with_context(|| format!("{BUDGET} cannot be read"))?;
    let budget = Budget::parse(&budget)?;
    let mut findings = Vec::new();
    let mut lines = Vec::new();
    for text in &texts {
        let allowed = budget.get(&text.name);
        let per_capability = text
            .capabilities
            .map(|n| format!("  {:.1} a capability", text.tokens as f64 / n as f64))
            .unwrap_or_default();
        lines.push(format!(
            "{:<44} {:>6} of {:>6}{per_capability}",
            text.name,
            text.tokens,
            allowed.map_or("-".into(), |a| a.to_string())
        ));
        findings.extend(compare(text, allowed));
    }
    for name in budget.names().filter(|name| !texts.iter().any(|text| text.name == **name)) {
        findings.push(format!("{BUDGET}: [tokens] `{name}` is not counted any more; remove its line"));
    }
    let summary = format!("{} texts counted", texts.len());
    Ok(Report { findings, lines, summary })
}

/// Counts the tokens of the text in standard input.
pub fn count_input() -> Result<usize> {
    let text = std::io::read_to_string(std::io::stdin()).context("standard input is not text")?;
    Ok(measure::count(&text))
}

/// Compares a count with its budget and with the limit of the design.
fn compare(text: &measure::CountedText, allowed: Option<usize>) -> Vec<String> {
    let mut findings = Vec::new();
    let name = &text.name;
    match allowed {
        None => findings.push(format!("{BUDGET}: [tokens] `{name}` has no budget; write `{name} {}`", text.tokens)),
        Some(allowed) if text.tokens > allowed => findings.push(format!(
            "{BUDGET}: [tokens] `{name}` grew from {allowed} to {}; make it shorter, or write `{name} {}  # why`",
            text.tokens, text.tokens
        )),
        Some(_) => {}
    }
    if let Some(limit) = text.limit.filter(|limit| text.tokens > *limit) {
        findings.push(format!("{BUDGET}: [tokens] `{name}` is {} tokens; the design allows {limit}", text.tokens));
    }
    findings
}

/// The budgets by the names of the texts. A line of the budget file has the form `name count  # why it is so large`.
#[derive(Debug, Default)]
struct Budget(BTreeMap<String, usize>);

impl Budget {
    /// Parses the budget file. A name that occurs twice, or a count that is not a number, is an error.
    fn parse(text: &str) -> Result<Self> {
        let mut budget = BTreeMap::new();
        for (index, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let (name, count) =
                line.rsplit_once(' ').with_context(|| format!("line {}: write `name count`", index + 1))?;
            let count = count.parse().with_context(|| format!("line {}: `{count}` is not a number", index + 1))?;
            let earlier = budget.insert(name.trim().to_owned(), count);
            ensure!(earlier.is_none(), "line {}: `{name}` occurs twice", index + 1);
        }
        Ok(Self(budget))
    }

    fn get(&self, name: &str) -> Option<usize> {
        self.0.get(name).copied()
    }

    fn names(&self) -> impl Iterator<Item = &String> {
        self.0.keys()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_budget_has_names_counts_and_reasons() {
        let budget = Budget::parse("# all\n\ntable demo 12  # two more rows\ncontract 7\n").unwrap();
        assert_eq!((budget.get("table demo"), budget.get("contract"), budget.get("x")), (Some(12), Some(7), None));
        assert!(Budget::parse("contract\n").is_err());
        assert!(Budget::parse("contract many\n").is_err());
        assert!(Budget::parse("a 1\na 2\n").is_err());
    }
}
