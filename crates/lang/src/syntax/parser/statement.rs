//! Parses statements, which are bindings and the results on the last line.
//! Invariant: parsing a statement consumes at least one token. If several lines have results, the results of the last
//! line are kept.

use base::{Diagnostic, Span};

use super::cursor::Parser;
use crate::codes;
use crate::syntax::token::TokenKind;
use crate::syntax::tree::{Binding, Node, Program};

/// The longest line in bytes that a correction repeats.
const MAX_COPIED_STATEMENT_BYTES: usize = 120;

impl Parser<'_, '_> {
    /// Parses a whole program of at most `max_statements` statements.
    pub(super) fn parse_program(&mut self, max_statements: usize) -> Program {
        let mut program = Program { bindings: Vec::new(), roots: Vec::new() };
        let mut results: Option<Span> = None;
        let mut count = 0;
        while self.kind() != TokenKind::End {
            if count == max_statements {
                let message =
                    format!("a program has at most {max_statements} statements; send the rest as another program");
                self.reports.add_error(codes::TOO_MANY_STATEMENTS, self.span(), message);
                break;
            }
            count += 1;
            if let Some(earlier) = results.take() {
                self.report_results_not_last(earlier, count - 1);
            }
            let start = self.span().start;
            let from = self.index;
            let reported = self.reports.len();
            self.last_value = None;
            self.report_foreign_keyword();
            if self.at_binding() {
                program.bindings.push(self.parse_binding());
                self.finish_statement(true);
            } else {
                program.roots = self.parse_results();
                let span = self.span_since(start);
                self.finish_statement(false);
                // If the line has other mistakes, it may not be meant as results, so misplaced results are not
                // reported for it.
                results = (self.reports.len() == reported).then_some(span);
            }
            if self.index == from {
                self.consume();
            }
        }
        if count == 0 && self.reports.len() == 0 {
            let message = "the program is empty; write lines `name = expr` and a last line of results";
            self.reports.add_error(codes::EMPTY_PROGRAM, Span::default(), message);
        }
        program
    }

    /// Returns whether `name =` follows.
    pub(super) fn at_binding(&self) -> bool {
        matches!(self.kind(), TokenKind::Word | TokenKind::Row) && self.next_kind() == TokenKind::Eq
    }

    /// Parses `name = …`. Reserved words such as `true` are reported.
    fn parse_binding(&mut self) -> Binding {
        let reserved = match self.token_text() {
            "_" => Some("the row of a `=>`"),
            "true" | "false" | "null" => Some("a value"),
            _ => None,
        };
        if let Some(what) = reserved {
            let word = self.token_text();
            self.report_fix(self.span(), format!("`{word}` is {what}; choose another name"), self.span(), "result");
        }
        let label = self.parse_name();
        self.consume();
        let node = self.parse_node();
        Binding { label, node }
    }

    /// Parses results, separated by commas.
    fn parse_results(&mut self) -> Vec<Node> {
        let mut roots = Vec::new();
        loop {
            roots.push(self.parse_node());
            if self.recovering {
                self.skip_statement(&[TokenKind::Comma, TokenKind::Semicolon]);
                self.recovering = self.kind() != TokenKind::Comma;
            }
            if self.kind() != TokenKind::Comma || self.consume_last_comma() {
                return roots;
            }
        }
    }

    /// Consumes the comma and returns whether no result follows.
    fn consume_last_comma(&mut self) -> bool {
        self.consume();
        matches!(self.kind(), TokenKind::Newline | TokenKind::End) || self.at_binding()
    }

    /// Consumes and reports a keyword of another language, as in `let x = …` or `return x`.
    fn report_foreign_keyword(&mut self) {
        let word = self.token_text();
        let next_is_name = matches!(self.next_kind(), TokenKind::Word | TokenKind::Row);
        if self.kind() == TokenKind::Word && next_is_name && ["let", "const", "var", "return"].contains(&word) {
            let wrong = Span { start: self.span().start, end: self.token(1).span.start };
            let message = match word {
                "return" => "the last line returns its results without `return`".to_owned(),
                _ => format!("a name is bound with `name = …`, without `{word}`"),
            };
            self.report_fix(self.span(), message, wrong, "");
            self.consume();
        }
    }

    /// Reports results before the last line. `number` is the number of the statement, which the correction uses to
    /// name the results.
    fn report_results_not_last(&mut self, statement: Span, number: usize) {
        let text = statement.of(self.text);
        let is_block = text.starts_with("<<");
        let message = if is_block {
            "only the last line returns results: begin this block of text on the line of the rows it renders, or name it"
        } else {
            "only the last line returns results: name this one (`name = …`), or put several results on the last line with commas"
        };
        let diagnostic = Diagnostic::error(codes::ROOTS_NOT_LAST, statement, message);
        let first = text.lines().next().unwrap_or("");
        let before =
            Span { start: statement.start.saturating_sub(MAX_COPIED_STATEMENT_BYTES as u32), end: statement.start };
        let lines = before.of(self.text).trim_end();
        let above = lines.rsplit_once('\n').map_or(if before.start == 0 { lines } else { "" }, |(_, line)| line.trim());
        self.reports.add(if is_block && above.contains('=') && !above.contains(";;") {
            diagnostic.with_copy(format!("{above} {first}"))
        } else if first.len() <= MAX_COPIED_STATEMENT_BYTES {
            diagnostic.with_copy(format!("step{number} = {first}"))
        } else {
            diagnostic
        });
    }
}
