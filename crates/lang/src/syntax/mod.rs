//! Parses program text to a syntax tree. `lexer` makes tokens, `brackets` and `layout` find the ends of groups and
//! statements, `parser` makes the tree, `outline` prints the tree, and `format` writes the tree as program text.
//! Invariant: every input results in a tree with spans and in all its diagnostics. The time is linear in the length of
//! the text, and nesting is bounded.

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

/// The kind of text to parse.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParseMode {
    /// A program that a model or a person wrote.
    Program,
    /// A line of a taught table, which may contain placeholders such as `<<T` without a body.
    Taught,
}

/// The syntax tree of a text, and its diagnostics.
#[derive(Debug, Clone, PartialEq)]
pub struct ParseOutput {
    /// The tree. It exists even if the text has mistakes.
    pub program: tree::Program,
    /// The errors and notes, in the order of their positions.
    pub diagnostics: Vec<Diagnostic>,
}

/// Parses a program.
pub fn parse(text: &str, limits: &Limits) -> ParseOutput {
    parse_counting_steps(text, ParseMode::Program, limits).0
}

/// Parses a line of a taught table. The line may contain placeholders.
pub fn parse_taught(line: &str, limits: &Limits) -> ParseOutput {
    parse_counting_steps(line, ParseMode::Taught, limits).0
}

/// Returns the tokens that the parser reads: no comments, and a line break only where a statement ends.
pub fn tokens(text: &str) -> Vec<Token> {
    let (layout, _) = scan(text, ParseMode::Program, &mut Reports::new(text));
    layout.tokens.into_iter().filter(|token| token.kind != TokenKind::End).collect()
}

/// Parses a text and counts the steps of work. A test compares the count with the length of the text.
fn parse_counting_steps(text: &str, mode: ParseMode, limits: &Limits) -> (ParseOutput, usize) {
    let mut reports = Reports::new(text);
    if text.len() > limits.program_bytes {
        let message = format!(
            "the program has {} bytes and may have {}; send it in parts, or bind less text",
            text.len(),
            limits.program_bytes
        );
        reports.add_error(codes::PROGRAM_TOO_LARGE, Span::default(), message);
        let program = tree::Program { bindings: Vec::new(), roots: Vec::new() };
        return (ParseOutput { program, diagnostics: reports.finish() }, 0);
    }
    let (layout, scanned) = scan(text, mode, &mut reports);
    let (program, parsed) = parser::parse(text, layout, limits, &mut reports);
    (ParseOutput { program, diagnostics: reports.finish() }, scanned + parsed)
}

/// Makes the tokens and the layout of a text. Also returns the number of steps that the lexer took.
fn scan<'t>(text: &'t str, mode: ParseMode, reports: &mut Reports<'t>) -> (Layout, usize) {
    let lexed = lexer::lex(text, mode, reports);
    let layout = layout::lay_out(text, &lexed, reports);
    (layout, lexed.steps)
}
