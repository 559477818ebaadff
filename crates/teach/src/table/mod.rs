//! The table of a wave, the text that a model reads: contract lines, a header, and rows of two cells separated by one tab, in a
//! fence.
//! Invariant: the expression in every left cell parses and checks against the ledger of the table. A row whose expression fails
//! is omitted and reported.

mod contract;
mod entity_rows;
mod phrases;
mod slot_types;
mod state;
mod wave_rows;

use std::iter;

use base::Limits;
use contract::TableFeatures;
use lang::{check, syntax};
use state::WaveInput;

use crate::ledger::{Ledger, Wave};
use crate::request::Catalogs;
use crate::settings::SlotStyle;

/// The sentence for a request that teaches nothing new. It follows the list of the session's symbols.
pub const UNCHANGED_USE: &str = "Use `plasm` / `plasm_run` with this logical_session_ref.";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenderedTable {
    /// The text of the table, including the fence.
    pub text: String,
    /// The expressions that failed the check, with their diagnostics. Each one is a bug in this crate, so the caller logs them.
    pub dropped: Vec<String>,
}

/// Renders the table of the wave between the ledgers `before` and `ledger`. Contract lines of earlier waves are not repeated.
pub fn render_wave(
    style: SlotStyle,
    before: &Ledger,
    ledger: &Ledger,
    catalogs: &Catalogs,
    wave: &Wave,
) -> RenderedTable {
    let scope = ledger.scope(catalogs);
    let mut checker = ExpressionChecker { limits: Limits::default(), lines: check::TaughtLines::new(&scope) };
    let mut text = String::from("```\n");
    let features = TableFeatures::of(ledger, catalogs);
    for line in contract::lines(style, TableFeatures::of(before, catalogs), features) {
        text.push_str(&line);
        text.push('\n');
    }
    text.push_str("plasm_expr\tMeaning\n");
    let mut dropped = Vec::new();
    let abbreviates_keys = features.abbreviates_keys;
    for row in wave_rows::wave_rows(&WaveInput { before, ledger, catalogs, wave, style, abbreviates_keys }) {
        let rejections: Vec<String> =
            iter::once(&row.expr).chain(&row.also).filter_map(|expr| checker.rejection(expr)).collect();
        if rejections.is_empty() {
            text.push_str(&row.expr);
            text.push('\t');
            text.push_str(&row.meaning);
            text.push('\n');
        }
        dropped.extend(rejections);
    }
    text.push_str("```");
    RenderedTable { text, dropped }
}

struct ExpressionChecker<'s> {
    limits: Limits,
    /// The checker of table rows. It prepares the scope once for all rows of the table.
    lines: check::TaughtLines<'s>,
}

impl ExpressionChecker<'_> {
    /// Checks an expression. Returns the expression with its diagnostics if the check fails, or `None` if it passes.
    fn rejection(&mut self, expr: &str) -> Option<String> {
        let parsed = syntax::parse_taught(expr, &self.limits);
        let diagnostics =
            if parsed.diagnostics.is_empty() { self.lines.check(&parsed.program).err()? } else { parsed.diagnostics };
        Some(format!("{expr}: {}", base::render_for_model(expr, &diagnostics)))
    }
}
