//! A wave as the text a model reads: contract lines, a header, rows with exactly one tab, inside a fence.
//! Invariant: every left cell parses and checks against the ledger it was rendered from; one that does not is left out and named.

mod contract;
mod kinds;
mod rows;
mod style;

use base::Limits;
use contract::Uses;
use lang::{check, syntax};
use rows::Slice;

pub use style::SlotStyle;

use crate::ledger::{Ledger, Wave};
use crate::seed::Catalogs;

/// What a session with nothing new says after its symbols.
pub const UNCHANGED_USE: &str = "Use `plasm` / `plasm_run` with this logical_session_ref.";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rendered {
    /// The fence with everything in it.
    pub text: String,
    /// Lines that failed their check, with why: a bug of ours, found by tests, logged if one slips through.
    pub dropped: Vec<String>,
}

/// The table of the wave that led from `before` to `ledger`, after the lines of the contract that nothing before it needed.
pub fn render_wave(style: SlotStyle, before: &Ledger, ledger: &Ledger, catalogs: &Catalogs, wave: &Wave) -> Rendered {
    let scope = ledger.scope(catalogs);
    let limits = Limits::default();
    let mut lines: Vec<String> = Vec::new();
    let mut dropped = Vec::new();
    for row in rows::rows(&Slice { before, ledger, catalogs, wave, style }) {
        let parsed = syntax::parse_taught(&row.expr, &limits);
        let found = if parsed.diagnostics.is_empty() {
            check::check_taught(&scope, &parsed.program).err().unwrap_or_default()
        } else {
            parsed.diagnostics
        };
        if found.is_empty() {
            lines.push(format!("{}\t{}", row.expr, row.meaning));
        } else {
            dropped.push(format!("{}: {}", row.expr, base::render_for_model(&row.expr, &found)));
        }
    }
    let contract = contract::lines(style, Uses::of(before, catalogs), Uses::of(ledger, catalogs));
    let body: Vec<&str> = contract
        .iter()
        .map(String::as_str)
        .chain(["plasm_expr\tMeaning"])
        .chain(lines.iter().map(String::as_str))
        .collect();
    Rendered { text: format!("```\n{}\n```", body.join("\n")), dropped }
}
