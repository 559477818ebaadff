//! Statements: names that are bound, and the results on the last line.
//! Invariant: each turn passes at least one token; of several result lines the last is kept.

use base::{Diagnostic, Span};

use super::cursor::Parser;
use crate::codes;
use crate::syntax::token::TokenKind;
use crate::syntax::tree::{Binding, Node, Program};

/// A statement longer than this is not repeated in a correction.
const LONGEST: usize = 120;

impl Parser<'_, '_> {
    pub(super) fn program(&mut self, most: usize) -> Program {
        let mut program = Program { bindings: Vec::new(), roots: Vec::new() };
        let mut results: Option<Span> = None;
        let mut count = 0;
        while self.kind() != TokenKind::End {
            if count == most {
                let message = format!("a program has at most {most} statements; send the rest as another program");
                self.reports.error(codes::TOO_MANY_STATEMENTS, self.span(), message);
                break;
            }
            count += 1;
            if let Some(earlier) = results.take() {
                self.not_last(earlier, count - 1);
            }
            let (start, from, reported) = (self.span().start, self.at, self.reports.len());
            self.value_at = None;
            self.foreign_keyword();
            if self.at_binding() {
                program.bindings.push(self.binding());
                self.after_statement(true);
            } else {
                program.roots = self.roots();
                let span = self.since(start);
                self.after_statement(false);
                // A line with mistakes of its own may not be meant as results at all.
                results = (self.reports.len() == reported).then_some(span);
            }
            if self.at == from {
                self.bump();
            }
        }
        if count == 0 && self.reports.len() == 0 {
            let message = "the program is empty; write lines `name = expr` and a last line of results";
            self.reports.error(codes::EMPTY_PROGRAM, Span::default(), message);
        }
        program
    }

    /// `name =`
    pub(super) fn at_binding(&self) -> bool {
        matches!(self.kind(), TokenKind::Word | TokenKind::Row) && self.next_kind() == TokenKind::Eq
    }

    fn binding(&mut self) -> Binding {
        let reserved = match self.written() {
            "_" => Some("the row of a `=>`"),
            "true" | "false" | "null" => Some("a value"),
            _ => None,
        };
        if let Some(what) = reserved {
            let word = self.written();
            self.fix(self.span(), format!("`{word}` is {what}; choose another name"), self.span(), "result");
        }
        let label = self.name();
        self.bump();
        let node = self.node();
        Binding { label, node }
    }

    fn roots(&mut self) -> Vec<Node> {
        let mut roots = Vec::new();
        loop {
            roots.push(self.node());
            if self.lost {
                self.skip_statement(&[TokenKind::Comma, TokenKind::Semicolon]);
                self.lost = self.kind() != TokenKind::Comma;
            }
            if self.kind() != TokenKind::Comma || self.comma_ends_results() {
                return roots;
            }
        }
    }

    /// Passes the comma; true if no result follows it.
    fn comma_ends_results(&mut self) -> bool {
        self.bump();
        matches!(self.kind(), TokenKind::Newline | TokenKind::End) || self.at_binding()
    }

    /// `let x = …`, `return x`
    fn foreign_keyword(&mut self) {
        let word = self.written();
        let next_is_name = matches!(self.next_kind(), TokenKind::Word | TokenKind::Row);
        if self.kind() == TokenKind::Word && next_is_name && ["let", "const", "var", "return"].contains(&word) {
            let wrong = Span { start: self.span().start, end: self.token(1).span.start };
            let message = match word {
                "return" => "the last line returns its results without `return`".to_owned(),
                _ => format!("a name is bound with `name = …`, without `{word}`"),
            };
            self.fix(self.span(), message, wrong, "");
            self.bump();
        }
    }

    fn not_last(&mut self, statement: Span, number: usize) {
        let text = statement.of(self.text);
        let is_block = text.starts_with("<<");
        let message = if is_block {
            "only the last line returns results: begin this block of text on the line of the rows it renders, or name it"
        } else {
            "only the last line returns results: name this one (`name = …`), or put several results on the last line with commas"
        };
        let diagnostic = Diagnostic::error(codes::ROOTS_NOT_LAST, statement, message);
        let first = text.lines().next().unwrap_or("");
        let before = Span { start: statement.start.saturating_sub(LONGEST as u32), end: statement.start };
        let lines = before.of(self.text).trim_end();
        let above = lines.rsplit_once('\n').map_or(if before.start == 0 { lines } else { "" }, |(_, line)| line.trim());
        self.reports.add(if is_block && above.contains('=') && !above.contains(";;") {
            diagnostic.with_copy(format!("{above} {first}"))
        } else if first.len() <= LONGEST {
            diagnostic.with_copy(format!("step{number} = {first}"))
        } else {
            diagnostic
        });
    }
}
