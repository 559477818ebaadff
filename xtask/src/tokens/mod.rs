//! `cargo xtask tokens`: counts the o200k tokens of every text that a model reads, and compares them with a budget.
//! Invariant: only golden files are read, which other tests compare with the code. A count may grow only with a line in the budget
//! that says why.

mod budget;
mod cases;
mod measure;

use std::path::Path;

use anyhow::{Context, Result};

use budget::Budget;

const BUDGET: &str = "tests/tokens.txt";

pub struct Report {
    pub findings: Vec<String>,
    /// One line for each text.
    pub lines: Vec<String>,
    pub summary: String,
}

pub fn run(root: &Path) -> Result<Report> {
    let measured = measure::all(root)?;
    let path = root.join(BUDGET);
    let budget = std::fs::read_to_string(&path).with_context(|| format!("{BUDGET} cannot be read"))?;
    let budget = Budget::parse(&budget)?;
    let mut findings = Vec::new();
    let mut lines = Vec::new();
    for text in &measured {
        let allowed = budget.get(&text.name);
        let per = text
            .capabilities
            .map(|n| format!("  {:.1} a capability", text.tokens as f64 / n as f64))
            .unwrap_or_default();
        lines.push(format!(
            "{:<44} {:>6} of {:>6}{per}",
            text.name,
            text.tokens,
            allowed.map_or("-".into(), |a| a.to_string())
        ));
        findings.extend(judge(text, allowed));
    }
    for name in budget.names().filter(|name| !measured.iter().any(|text| text.name == **name)) {
        findings.push(format!("{BUDGET}: [tokens] `{name}` is not counted any more; remove its line"));
    }
    let summary = format!("{} texts counted", measured.len());
    Ok(Report { findings, lines, summary })
}

/// Counts the tokens of standard input.
pub fn count_input() -> Result<usize> {
    let text = std::io::read_to_string(std::io::stdin()).context("standard input is not text")?;
    Ok(measure::count(&text))
}

fn judge(text: &measure::Measured, allowed: Option<usize>) -> Vec<String> {
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
