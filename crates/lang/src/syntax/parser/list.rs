//! Parses comma lists and their items: filters, arguments, paths.
//! Invariant: each turn of a list passes at least one token. A last comma is allowed everywhere.

use base::{Diagnostic, Span};

use super::cursor::{BracketGroup, Parser};
use crate::codes;
use crate::syntax::lexer::decode;
use crate::syntax::token::TokenKind;
use crate::syntax::tree::{Arg, DOTS, DottedName, Name, Operator, Pred, Value, ValueKind};

/// Operators that other languages write as words, with their sign here.
const WORD_OPERATORS: &[(&str, &str, Operator)] = &[
    ("is", "=", Operator::Eq),
    ("eq", "=", Operator::Eq),
    ("equals", "=", Operator::Eq),
    ("contains", "=", Operator::Eq),
    ("like", "~", Operator::Like),
    ("matches", "~", Operator::Like),
    ("ne", "!=", Operator::Ne),
    ("gt", ">", Operator::Gt),
    ("gte", ">=", Operator::Ge),
    ("lt", "<", Operator::Lt),
    ("lte", "<=", Operator::Le),
];

impl Parser<'_, '_> {
    /// Parses the items of a group, and leaves the group. `what` names an item in messages.
    pub(super) fn items<T>(
        &mut self,
        group: BracketGroup,
        what: &str,
        mut item: impl FnMut(&mut Self) -> Option<T>,
    ) -> Vec<T> {
        let mut items = Vec::new();
        while self.in_group(group) {
            let start = self.at;
            if self.kind() == TokenKind::Comma {
                self.report_expected(what);
            } else {
                items.extend(item(self));
            }
            if !self.in_group(group) {
                break;
            }
            if self.kind() != TokenKind::Comma && !self.recovering && self.report_separator(group) && self.at > start {
                continue;
            }
            self.skip_item(group);
            self.eat(TokenKind::Comma);
            self.recovering = false;
        }
        self.leave_group(group);
        items
    }

    /// Parses `{pred, pred}`.
    pub(super) fn preds(&mut self) -> Vec<Pred> {
        match self.enter_group() {
            Some(group) => self.items(group, "a filter such as `slot=value`", Self::pred),
            None => Vec::new(),
        }
    }

    /// Parses the filters of a list or a search, whose first slots a table may have written as `..`.
    pub(super) fn source_preds(&mut self) -> Vec<Pred> {
        let filter = |parser: &mut Self| match parser.key_dots() {
            Some((slot, value)) => {
                let op_span = slot.span;
                Some(Pred { path: DottedName { names: vec![slot] }, op: Operator::Eq, op_span, value })
            }
            None => parser.pred(),
        };
        match self.enter_group() {
            Some(group) => self.items(group, "a filter such as `slot=value`", filter),
            None => Vec::new(),
        }
    }

    /// Parses an argument of a method, which a table may have written as `..`.
    pub(super) fn method_arg(&mut self) -> Option<Arg> {
        match self.key_dots() {
            Some((slot, value)) => Some(Arg { slot, value }),
            None => self.arg(),
        }
    }

    /// Parses `..`, which tables write for the slots of a key that they have spelled out before.
    fn key_dots(&mut self) -> Option<(Name, Value)> {
        if self.kind() != TokenKind::Dot || self.next_kind() != TokenKind::Dot {
            return None;
        }
        let start = self.bump().span.start;
        self.bump();
        let span = self.span_since(start);
        Some((Name { text: DOTS.into(), span }, Value { kind: ValueKind::Hole, span }))
    }

    /// Parses a filter.
    pub(super) fn pred(&mut self) -> Option<Pred> {
        if self.kind() == TokenKind::LeftParen {
            self.report_unexpected("filters have no parentheses: a comma means and, and there is no or");
            return None;
        }
        let path = self.path("a filter such as `slot=value`")?;
        let op_span = self.span();
        let op = self.operator(&path)?;
        let value = self.value();
        Some(Pred { path, op, op_span, value })
    }

    /// Parses the operator of a filter. `=>` and `:` are reported and read as the operator that was meant.
    fn operator(&mut self, path: &DottedName) -> Option<Operator> {
        let op = match self.kind() {
            TokenKind::Eq => Operator::Eq,
            TokenKind::Ne => Operator::Ne,
            TokenKind::Lt => Operator::Lt,
            TokenKind::Le => Operator::Le,
            TokenKind::Gt => Operator::Gt,
            TokenKind::Ge => Operator::Ge,
            TokenKind::Tilde => Operator::Like,
            TokenKind::Arrow if self.token(2).kind == TokenKind::Dot => {
                self.report_unexpected("a filter names the row's slots directly, without a function: `p4>=3`");
                return None;
            }
            TokenKind::Arrow => {
                self.report_fix(self.span(), "at least is written `>=`, not `=>`", self.span(), ">=");
                Operator::Ge
            }
            TokenKind::Colon => {
                self.colon_for_eq();
                Operator::Eq
            }
            _ => return self.operator_in_words(path),
        };
        self.bump();
        Some(op)
    }

    /// Parses an operator in words, or reports that there is none.
    fn operator_in_words(&mut self, path: &DottedName) -> Option<Operator> {
        let word_operator = WORD_OPERATORS.iter().find(|(word, ..)| self.is_word(word));
        if let Some((word, sign, op)) = word_operator {
            self.report_fix(self.span(), format!("`{word}` is written `{sign}`"), self.span(), sign);
            self.bump();
            return Some(*op);
        }
        if self.is_word("in") {
            self.report_unexpected("there is no `in`; on a list slot `=` means contains, otherwise ask once per value");
            return None;
        }
        let name = path_text(path);
        let message = format!("expected an operator after `{name}`, found {}", self.describe_token());
        if self.kind() == TokenKind::Comma || self.kind().is_closer() {
            let end = Span { start: self.previous_end(), end: self.previous_end() };
            self.report_unexpected_fix(message, end, "=true");
        } else {
            let operators = ["=", "!=", "<=", ">=", "~"].map(str::to_owned);
            let diagnostic = Diagnostic::error(codes::UNEXPECTED, self.span(), message);
            self.report_and_recover(diagnostic.with_alternatives(operators));
        }
        None
    }

    /// Reports a `:` where `=` belongs, when the parser stands at the colon.
    pub(super) fn colon_for_eq(&mut self) {
        let wrong = Span { start: self.span().start, end: self.token(1).span.start };
        self.report_fix(self.span(), "a slot and its value are joined with `=`, not `:`", wrong, "=");
    }

    /// Parses `slot=value`.
    pub(super) fn arg(&mut self) -> Option<Arg> {
        let slot = match self.kind() {
            TokenKind::Word => self.name(),
            TokenKind::String if matches!(self.next_kind(), TokenKind::Eq | TokenKind::Colon) => self.name_in_quotes(),
            _ => {
                self.report_expected("an argument such as `slot=value`");
                return None;
            }
        };
        match self.kind() {
            TokenKind::Eq => {
                self.bump();
            }
            TokenKind::Colon => {
                self.colon_for_eq();
                self.bump();
            }
            kind if kind.is_operator() => {
                self.report_unexpected(format!(
                    "an argument is `{}=value`; filters with `{kind}` go into `{{…}}`",
                    slot.text
                ));
                return None;
            }
            _ => {
                let found = self.describe_token();
                self.report_unexpected(format!("an argument is `slot=value`; after `{}` stands {found}", slot.text));
                return None;
            }
        }
        let value = self.value();
        Some(Arg { slot, value })
    }

    /// Parses a path such as `p13.p27`. `what` says in a message what belongs here.
    pub(super) fn path(&mut self, what: &str) -> Option<DottedName> {
        if self.kind() == TokenKind::Row && self.next_kind() == TokenKind::Dot {
            let wrong = self.span().to(self.token(1).span);
            self.report_fix(self.span(), "slots of the row itself are written without `_.` here", wrong, "");
            self.bump();
            self.bump();
        }
        let first = match self.kind() {
            TokenKind::Word => self.name(),
            TokenKind::String if is_path(&decode(self.token_text())) => self.name_in_quotes(),
            _ => {
                self.report_expected(what);
                return None;
            }
        };
        let mut names = vec![first];
        while self.kind() == TokenKind::Dot && self.next_kind() == TokenKind::Word {
            self.bump();
            names.push(self.name());
        }
        Some(DottedName { names })
    }

    /// Parses a string that stands where a name belongs, and reports the quotes.
    fn name_in_quotes(&mut self) -> Name {
        let span = self.span();
        let text = decode(self.token_text());
        self.report_fix(span, format!("a name is written without quotes: `{text}`"), span, &text);
        self.bump();
        Name { text: text.into(), span }
    }
}

/// Returns a path as it is written.
pub(super) fn path_text(path: &DottedName) -> String {
    path.names.iter().map(|name| name.text.as_str()).collect::<Vec<_>>().join(".")
}

/// Returns whether a text could be a path.
fn is_path(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.len() < 80
        && text.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c))
}
