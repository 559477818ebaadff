//! Parses values: the content of a slot, a key, a list or an object.
//! Invariant: a value is always made. A value that could not be parsed is `Error` and has its diagnostic.

use base::{Diagnostic, Span};

use super::cursor::{GroupSpans, Parser};
use crate::codes;
use crate::syntax::lexer::{decode, heredoc_tag_and_body};
use crate::syntax::reports::{quoted, shown};
use crate::syntax::token::TokenKind;
use crate::syntax::tree::{Entry, Heredoc, Name, Node, Primary, Value, ValueKind};

impl Parser<'_, '_> {
    pub(super) fn value(&mut self) -> Value {
        let span = self.span();
        self.last_value = Some(self.at);
        let kind = match self.kind() {
            TokenKind::String => ValueKind::String(decode(self.token_text())),
            TokenKind::Number => ValueKind::Number(self.token_text().to_owned()),
            TokenKind::Word => match self.literal() {
                Some(literal) => literal,
                None => return self.node_value(),
            },
            TokenKind::Bad => ValueKind::Error,
            TokenKind::Row => return self.node_value(),
            TokenKind::Dollar => return self.dollar(),
            TokenKind::Hole => ValueKind::Hole,
            // Tables write `e1(..)` for a key that they have spelled out before.
            TokenKind::Dot if self.next_kind() == TokenKind::Dot => {
                self.bump();
                self.bump();
                return Value { kind: ValueKind::Hole, span: self.span_since(span.start) };
            }
            TokenKind::Heredoc => {
                return Value { kind: ValueKind::Text(self.heredoc()), span };
            }
            TokenKind::LeftBracket => return self.list_value(),
            TokenKind::LeftBrace => {
                let entries = self.object();
                return Value { kind: ValueKind::Object(entries), span: self.span_since(span.start) };
            }
            TokenKind::Uri => {
                self.report_fix(span, "an address is text: put it in double quotes", span, &quoted(self.token_text()));
                ValueKind::Error
            }
            _ => return self.missing_value(),
        };
        self.bump();
        Value { kind, span }
    }

    fn literal(&self) -> Option<ValueKind> {
        match self.token_text() {
            "true" => Some(ValueKind::Bool(true)),
            "false" => Some(ValueKind::Bool(false)),
            "null" => Some(ValueKind::Null),
            _ => None,
        }
    }

    fn node_value(&mut self) -> Value {
        let node = self.node();
        Value { span: node.span, kind: ValueKind::Node(Box::new(node)) }
    }

    /// Parses `$`, a place to fill, or `$name`, by which another language means `name`.
    fn dollar(&mut self) -> Value {
        let span = self.bump().span;
        if self.kind() == TokenKind::Word && self.is_adjacent(0) {
            let wrong = span.to(self.span());
            self.report_fix(
                span,
                format!("a name is used without `$`: `{}`", shown(self.token_text())),
                wrong,
                self.token_text(),
            );
            return self.node_value();
        }
        Value { kind: ValueKind::Hole, span }
    }

    /// Reports a token that begins no value. Numbers with a wrong spelling, such as `.5`, are passed.
    fn missing_value(&mut self) -> Value {
        let span = self.span();
        use TokenKind::{Dot, Minus, Number};
        let signs = match (self.kind(), self.next_kind(), self.token(2).kind) {
            (Dot, Number, _) => Some((1, "0.")),
            (Minus, Number, _) => Some((1, "-")),
            (Minus, Dot, Number) => Some((2, "-0.")),
            _ => None,
        };
        if let Some((signs, right)) = signs {
            let number = self.token(signs).span;
            let whole = span.to(number);
            let copy = format!("{right}{}", number.of(self.text));
            let message = format!("`{}` is not how a number is written", shown(whole.of(self.text)));
            self.reports.fix(Diagnostic::error(codes::BAD_NUMBER, span, message), whole, &copy);
            self.at += signs + 1;
            return Value { kind: ValueKind::Error, span: whole };
        }
        if self.kind() == TokenKind::LeftParen {
            let GroupSpans { whole, inner } = self.group_spans();
            let inner = inner.of(self.text).trim();
            self.report_unexpected_fix("a value has no parentheses around it", whole, inner);
        } else {
            self.report_expected("a value");
        }
        Value { kind: ValueKind::Error, span: Span { start: span.start, end: span.start } }
    }

    /// Parses `[a, b]` as a list or, when parts are applied to it, as rows.
    fn list_value(&mut self) -> Value {
        let start = self.span().start;
        let values = self.list();
        if !matches!(self.kind(), TokenKind::Dot | TokenKind::Back | TokenKind::Arrow) {
            return Value { kind: ValueKind::List(values), span: self.span_since(start) };
        }
        let head = self.span_since(start);
        let mut parts = Vec::new();
        self.parts(&mut parts);
        let node = Node { primary: Primary::List(values), head, parts, span: self.span_since(start) };
        Value { span: node.span, kind: ValueKind::Node(Box::new(node)) }
    }

    pub(super) fn list(&mut self) -> Vec<Value> {
        match self.enter_group() {
            Some(group) => self.items(group, "a value", |parser| Some(parser.value())),
            None => Vec::new(),
        }
    }

    /// Parses `{key: value}`.
    pub(super) fn object(&mut self) -> Vec<Entry> {
        match self.enter_group() {
            Some(group) => self.items(group, "`key: value`", Self::entry),
            None => Vec::new(),
        }
    }

    fn entry(&mut self) -> Option<Entry> {
        let key = match self.kind() {
            TokenKind::Word => self.name(),
            TokenKind::String => {
                let token = self.bump();
                Name { text: decode(token.span.of(self.text)).into(), span: token.span }
            }
            _ => {
                self.report_expected("`key: value`");
                return None;
            }
        };
        match self.kind() {
            TokenKind::Colon => {}
            TokenKind::Eq => {
                let wrong = Span { start: key.span.end, end: self.token(1).span.start };
                self.report_fix(self.span(), "a key and its value are joined with `:`, not `=`", wrong, ": ");
            }
            _ => {
                let found = self.describe_token();
                self.report_unexpected(format!(
                    "an object holds `key: value`; after `{}` stands {found}",
                    shown(&key.text)
                ));
                return None;
            }
        }
        self.bump();
        let value = self.value();
        Some(Entry { key, value })
    }

    /// Returns the heredoc at the current token.
    pub(super) fn heredoc(&mut self) -> Heredoc {
        let token = self.bump();
        let (tag, body) = heredoc_tag_and_body(token.span.of(self.text));
        Heredoc { tag: tag.to_owned(), body: body.to_owned(), span: token.span }
    }
}
