//! Program text to tree: `lexer` makes tokens, `brackets` and `layout` find where groups and statements end, `parser` makes
//! the tree, `print` shows it, `format` writes it back.
//! Invariant: every input yields a tree with spans and all its diagnostics; time is linear; depth is bounded.

mod brackets;
mod format;
mod layout;
mod lexer;
mod outline;
mod parser;
mod reports;
#[cfg(test)]
mod tests;
mod token;
pub mod tree;

use base::{Diagnostic, Limits, Span};

use crate::codes;
pub use format::{format, format_text};
use layout::Layout;
pub use outline::outline;
use reports::Reports;
pub use token::{Token, TokenKind};

/// What the text is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Program,
    /// A line of the teaching table: `<<T` without a body is a place to fill.
    Taught,
}

#[derive(Debug, Clone, PartialEq)]
pub struct ParseOutput {
    pub program: tree::Program,
    /// In the order of their places.
    pub diagnostics: Vec<Diagnostic>,
}

pub fn parse(text: &str, limits: &Limits) -> ParseOutput {
    read(text, Mode::Program, limits).0
}

pub fn parse_taught(line: &str, limits: &Limits) -> ParseOutput {
    read(line, Mode::Taught, limits).0
}

/// The tokens of a program as the parser reads them: line breaks only where a statement ends, no comments.
pub fn tokens(text: &str) -> Vec<Token> {
    let (layout, _) = scan(text, Mode::Program, &mut Reports::new(text));
    layout.tokens.into_iter().filter(|token| token.kind != TokenKind::End).collect()
}

/// The tree, and how many steps it took: a test compares them with the length of the text.
fn read(text: &str, mode: Mode, limits: &Limits) -> (ParseOutput, usize) {
    let mut reports = Reports::new(text);
    if text.len() > limits.program_bytes {
        let message = format!(
            "the program has {} bytes and may have {}; send it in parts, or bind less text",
            text.len(),
            limits.program_bytes
        );
        reports.error(codes::PROGRAM_TOO_LARGE, Span::default(), message);
        let program = tree::Program { bindings: Vec::new(), roots: Vec::new() };
        return (ParseOutput { program, diagnostics: reports.finish() }, 0);
    }
    let (layout, scanned) = scan(text, mode, &mut reports);
    let (program, parsed) = parser::parse(text, layout, limits, &mut reports);
    (ParseOutput { program, diagnostics: reports.finish() }, scanned + parsed)
}

fn scan<'t>(text: &'t str, mode: Mode, reports: &mut Reports<'t>) -> (Layout, usize) {
    let lexed = lexer::lex(text, mode, reports);
    let layout = layout::lay_out(text, &lexed, reports);
    (layout, lexed.steps)
}
