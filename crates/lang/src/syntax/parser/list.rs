//! Parses comma-separated lists and their items: filters, arguments and paths.
//! Invariant: parsing an item consumes at least one token. A trailing comma is always allowed.

use base::{Diagnostic, Span};

use super::cursor::{BracketGroup, Parser};
use crate::codes;
use crate::syntax::lexer::decode_string;
use crate::syntax::token::TokenKind;
use crate::syntax::tree::{Arg, DOTS, DottedName, Name, Operator, Pred, Value, ValueKind};

/// The operators that other languages write as words, each with its sign in this language.
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
    /// Parses the items of a group and leaves the group. `expected` describes an item in messages.
    pub(super) fn parse_items<T>(
        &mut self,
        group: BracketGroup,
        expected: &str,
        mut item: impl FnMut(&mut Self) -> Option<T>,
    ) -> Vec<T> {
        let mut items = Vec::new();
        while self.in_group(group) {
            let start = self.index;
            if self.kind() == TokenKind::Comma {
                self.report_expected(expected);
            } else {
                items.extend(item(self));
            }
            if !self.in_group(group) {
                break;
            }
            if self.kind() != TokenKind::Comma && !self.recovering && self.report_separator(group) && self.index > start
            {
                continue;
            }
            self.skip_item(group);
            self.consume_if(TokenKind::Comma);
            self.recovering = false;
        }
        self.leave_group(group);
        items
    }

    /// Parses the filters `{pred, pred}`.
    pub(super) fn parse_preds(&mut self) -> Vec<Pred> {
        match self.enter_group() {
            Some(group) => self.parse_items(group, "a filter such as `slot=value`", Self::parse_pred),
            None => Vec::new(),
        }
    }

    /// Parses the filters of a list or a search. In a taught table, the first slots may be written as `..`.
    pub(super) fn parse_source_preds(&mut self) -> Vec<Pred> {
        let filter = |parser: &mut Self| match parser.parse_key_dots() {
            Some((slot, value)) => {
                let op_span = slot.span;
                Some(Pred { path: DottedName { names: vec![slot] }, op: Operator::Eq, op_span, value })
            }
            None => parser.parse_pred(),
        };
        match self.enter_group() {
            Some(group) => self.parse_items(group, "a filter such as `slot=value`", filter),
            None => Vec::new(),
        }
    }

    /// Parses an argument of a method. In a taught table, the first slots may be written as `..`.
    pub(super) fn parse_method_arg(&mut self) -> Option<Arg> {
        match self.parse_key_dots() {
            Some((slot, value)) => Some(Arg { slot, value }),
            None => self.parse_arg(),
        }
    }

    /// Parses `..`, which taught tables write for the slots of a key that they spelled out earlier.
    fn parse_key_dots(&mut self) -> Option<(Name, Value)> {
        if self.kind() != TokenKind::Dot || self.next_kind() != TokenKind::Dot {
            return None;
        }
        let start = self.consume().span.start;
        self.consume();
        let span = self.span_since(start);
        Some((Name { text: DOTS.into(), span }, Value { kind: ValueKind::Placeholder, span }))
    }

    /// Parses a filter.
    pub(super) fn parse_pred(&mut self) -> Option<Pred> {
        if self.kind() == TokenKind::LeftParen {
            self.report_unexpected("filters have no parentheses: a comma means and, and there is no or");
            return None;
        }
        let path = self.parse_path("a filter such as `slot=value`")?;
        let op_span = self.span();
        let op = self.parse_operator(&path)?;
        let value = self.parse_value();
        Some(Pred { path, op, op_span, value })
    }

    /// Parses the operator of a filter. `=>` and `:` are reported and replaced by the operator that was meant.
    fn parse_operator(&mut self, path: &DottedName) -> Option<Operator> {
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
                self.report_colon_for_eq();
                Operator::Eq
            }
            _ => return self.parse_operator_in_words(path),
        };
        self.consume();
        Some(op)
    }

    /// Parses an operator that is written as a word, or reports that the operator is missing.
    fn parse_operator_in_words(&mut self, path: &DottedName) -> Option<Operator> {
        let word_operator = WORD_OPERATORS.iter().find(|(word, ..)| self.is_word(word));
        if let Some((word, sign, op)) = word_operator {
            self.report_fix(self.span(), format!("`{word}` is written `{sign}`"), self.span(), sign);
            self.consume();
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

    /// Reports a `:` in place of `=`. The current token is the colon.
    pub(super) fn report_colon_for_eq(&mut self) {
        let wrong = Span { start: self.span().start, end: self.token(1).span.start };
        self.report_fix(self.span(), "a slot and its value are joined with `=`, not `:`", wrong, "=");
    }

    /// Parses `slot=value`.
    pub(super) fn parse_arg(&mut self) -> Option<Arg> {
        let slot = match self.kind() {
            TokenKind::Word => self.parse_name(),
            TokenKind::String if matches!(self.next_kind(), TokenKind::Eq | TokenKind::Colon) => {
                self.parse_name_in_quotes()
            }
            _ => {
                self.report_expected("an argument such as `slot=value`");
                return None;
            }
        };
        match self.kind() {
            TokenKind::Eq => {
                self.consume();
            }
            TokenKind::Colon => {
                self.report_colon_for_eq();
                self.consume();
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
        let value = self.parse_value();
        Some(Arg { slot, value })
    }

    /// Parses a path such as `p13.p27`. `expected` describes the path in messages.
    pub(super) fn parse_path(&mut self, expected: &str) -> Option<DottedName> {
        if self.kind() == TokenKind::Row && self.next_kind() == TokenKind::Dot {
            let wrong = self.span().to(self.token(1).span);
            self.report_fix(self.span(), "slots of the row itself are written without `_.` here", wrong, "");
            self.consume();
            self.consume();
        }
        let first = match self.kind() {
            TokenKind::Word => self.parse_name(),
            TokenKind::String if is_path(&decode_string(self.token_text())) => self.parse_name_in_quotes(),
            _ => {
                self.report_expected(expected);
                return None;
            }
        };
        let mut names = vec![first];
        while self.kind() == TokenKind::Dot && self.next_kind() == TokenKind::Word {
            self.consume();
            names.push(self.parse_name());
        }
        Some(DottedName { names })
    }

    /// Parses a string in place of a name, and reports the quotes.
    fn parse_name_in_quotes(&mut self) -> Name {
        let span = self.span();
        let text = decode_string(self.token_text());
        self.report_fix(span, format!("a name is written without quotes: `{text}`"), span, &text);
        self.consume();
        Name { text: text.into(), span }
    }
}

/// Returns a path as a program writes it.
pub(super) fn path_text(path: &DottedName) -> String {
    path.names.iter().map(|name| name.text.as_str()).collect::<Vec<_>>().join(".")
}

/// Returns whether a text may be a path.
fn is_path(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.len() < 80
        && text.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c))
}
