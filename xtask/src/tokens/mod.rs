//! What a model is made to read, in o200k tokens, against what it was allowed to be.
//! Invariant: only golden files are read, which other tests hold to the code; a count may grow only with a line in the budget
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
    /// What was counted, a line each.
    pub lines: Vec<String>,
    pub counted: String,
}

pub fn run(root: &Path) -> Result<Report> {
    let measured = measure::all(root)?;
    let path = root.join(BUDGET);
    let text = std::fs::read_to_string(&path).with_context(|| format!("{BUDGET} cannot be read"))?;
    let budget = Budget::parse(&text)?;
    let mut findings = Vec::new();
    let mut lines = Vec::new();
    for one in &measured {
        let allowed = budget.get(&one.name);
        let per = one.per.map(|n| format!("  {:.1} a capability", one.tokens as f64 / n as f64)).unwrap_or_default();
        lines.push(format!(
            "{:<44} {:>6} of {:>6}{per}",
            one.name,
            one.tokens,
            allowed.map_or("-".into(), |a| a.to_string())
        ));
        findings.extend(judge(one, allowed));
    }
    for name in budget.names().filter(|name| !measured.iter().any(|one| one.name == **name)) {
        findings.push(format!("{BUDGET}: [tokens] `{name}` is not counted any more; take its line out"));
    }
    let counted = format!("{} texts counted", measured.len());
    Ok(Report { findings, lines, counted })
}

fn judge(one: &measure::Measured, allowed: Option<usize>) -> Vec<String> {
    let mut findings = Vec::new();
    let name = &one.name;
    match allowed {
        None => findings.push(format!("{BUDGET}: [tokens] `{name}` has no budget; write `{name} {}`", one.tokens)),
        Some(allowed) if one.tokens > allowed => findings.push(format!(
            "{BUDGET}: [tokens] `{name}` grew from {allowed} to {}; make it shorter, or write `{name} {}  # why`",
            one.tokens, one.tokens
        )),
        Some(_) => {}
    }
    if let Some(limit) = one.limit.filter(|limit| one.tokens > *limit) {
        findings.push(format!("{BUDGET}: [tokens] `{name}` is {} tokens; the design allows {limit}", one.tokens));
    }
    findings
}
