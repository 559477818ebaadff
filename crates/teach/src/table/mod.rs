//! A wave as the text a model reads: contract lines, a header, rows with exactly one tab, inside a fence.
//! Invariant: every left cell parses and checks against the ledger it was rendered from; one that does not is left out and named.

mod contract;
mod kinds;
mod phrases;
mod rows;

mod writer;

use std::iter;

use base::Limits;
use contract::TableFeatures;
use lang::{check, syntax};
use rows::WaveInput;

use crate::settings::SlotStyle;

use crate::ledger::{Ledger, Wave};
use crate::seed::Catalogs;

/// What a session with nothing new says after its symbols.
pub const UNCHANGED_USE: &str = "Use `plasm` / `plasm_run` with this logical_session_ref.";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedTable {
    /// The fence with everything in it.
    pub text: String,
    /// Lines that failed their check, with why: a bug of ours, found by tests, logged if one slips through.
    pub dropped: Vec<String>,
}

/// The table of the wave that led from `before` to `ledger`, after the lines of the contract that nothing before it needed.
pub fn render_wave(
    style: SlotStyle,
    before: &Ledger,
    ledger: &Ledger,
    catalogs: &Catalogs,
    wave: &Wave,
) -> RenderedTable {
    let scope = ledger.scope(catalogs);
    let mut checker = Checker { limits: Limits::default(), lines: check::TaughtLines::new(&scope) };
    let mut text = String::from("```\n");
    let uses = TableFeatures::of(ledger, catalogs);
    for line in contract::lines(style, TableFeatures::of(before, catalogs), uses) {
        text.push_str(&line);
        text.push('\n');
    }
    text.push_str("plasm_expr\tMeaning\n");
    let mut dropped = Vec::new();
    for row in rows::rows(&WaveInput { before, ledger, catalogs, wave, style, leads: uses.leads }) {
        let wrong: Vec<String> =
            iter::once(&row.expr).chain(&row.also).filter_map(|expr| checker.rejection(expr)).collect();
        if wrong.is_empty() {
            text.push_str(&row.expr);
            text.push('\t');
            text.push_str(&row.meaning);
            text.push('\n');
        }
        dropped.extend(wrong);
    }
    text.push_str("```");
    RenderedTable { text, dropped }
}

struct Checker<'s> {
    limits: Limits,
    lines: check::TaughtLines<'s>,
}

impl Checker<'_> {
    /// Why a line cannot be taught.
    fn rejection(&mut self, expr: &str) -> Option<String> {
        let parsed = syntax::parse_taught(expr, &self.limits);
        let found =
            if parsed.diagnostics.is_empty() { self.lines.check(&parsed.program).err()? } else { parsed.diagnostics };
        Some(format!("{expr}: {}", base::render_for_model(expr, &found)))
    }
}
