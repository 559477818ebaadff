//! Makes the syntax tree from the tokens. `statement` parses statements. `node` parses expressions, whose parts are
//! parsed by `part`, `postfix` and `foreign`. `value` parses values, `list` parses comma-separated lists, and
//! `aggregate` parses aggregates. `cursor` moves over the tokens, and `advice` reports errors with a likely cause.
//! Invariant: the parser recurses only into bracket groups, so `Limits::nesting` bounds the depth.

mod advice;
mod aggregate;
mod cursor;
mod foreign;
mod list;
mod node;
mod part;
mod postfix;
mod statement;
mod value;

use base::Limits;

use super::layout::Layout;
use super::reports::Reports;
use super::tree::Program;
use cursor::Parser;

/// Parses a text. Also returns the number of consumed tokens, which a test compares with the length of the text.
pub(super) fn parse<'t>(text: &'t str, layout: Layout, limits: &Limits, reports: &mut Reports<'t>) -> (Program, usize) {
    let mut parser = Parser::new(text, layout, limits, reports);
    let program = parser.parse_program(limits.statements);
    (program, parser.steps)
}
