//! Tokens to tree: `statement` holds `node`s, a node is a primary and its parts (`part`, `postfix`), which hold `value`s in
//! comma `list`s; `cursor` moves over the tokens, `advice` words the errors that have a likely cause.
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

/// The tree, and how many tokens were passed.
pub(super) fn parse<'t>(text: &'t str, layout: Layout, limits: &Limits, reports: &mut Reports<'t>) -> (Program, usize) {
    let mut parser = Parser::new(text, layout, limits, reports);
    let program = parser.program(limits.statements);
    (program, parser.steps)
}
