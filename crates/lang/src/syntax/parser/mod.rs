//! Makes the tree from the tokens. `statement` reads statements, which hold nodes. `node` reads a node: a primary with
//! its parts (`part`, `postfix`, `foreign`). `value` reads the values in them, `list` comma lists, `aggregate`
//! aggregates. `cursor` moves over the tokens, and `advice` words the errors that have a likely cause.
//! Invariant: recursion happens only inside a bracket group, so its depth is bounded by `Limits::nesting`.

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

/// Parses a text. Also returns the number of tokens that were passed, which a test compares with the length of the
/// text.
pub(super) fn parse<'t>(text: &'t str, layout: Layout, limits: &Limits, reports: &mut Reports<'t>) -> (Program, usize) {
    let mut parser = Parser::new(text, layout, limits, reports);
    let program = parser.program(limits.statements);
    (program, parser.steps)
}
