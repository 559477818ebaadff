//! Values: what a slot, a key, a list or an object can hold.
//! Invariant: a value is always made; one that could not be read is `Error` and has its report.

use base::{Diagnostic, Span};

use super::cursor::Parser;
use crate::codes;
use crate::syntax::lexer::{decode, heredoc_parts};
use crate::syntax::reports::{quoted, shown};
use crate::syntax::token::TokenKind;
use crate::syntax::tree::{Entry, Heredoc, Name, Node, Primary, Value, ValueKind};

impl Parser<'_, '_> {
    pub(super) fn value(&mut self) -> Value {
        let span = self.span();
        self.value_at = Some(self.at);
        let kind = match self.kind() {
            TokenKind::String => ValueKind::String(decode(self.written())),
            TokenKind::Number => ValueKind::Number(self.written().to_owned()),
            TokenKind::Word => match self.literal() {
                Some(literal) => literal,
                None => return self.node_value(),
            },
            TokenKind::Bad => ValueKind::Error,
            TokenKind::Row => return self.node_value(),
            TokenKind::Dollar => return self.dollar(),
            TokenKind::Hole => ValueKind::Hole,
            // `e1(..)`, as tables write a key that they have spelled out before.
            TokenKind::Dot if self.next_kind() == TokenKind::Dot => {
                self.bump();
                self.bump();
                return Value { kind: ValueKind::Hole, span: self.since(span.start) };
            }
            TokenKind::Heredoc => {
                return Value { kind: ValueKind::Text(self.heredoc()), span };
            }
            TokenKind::LeftBracket => return self.list_value(),
            TokenKind::LeftBrace => {
                let entries = self.object();
                return Value { kind: ValueKind::Object(entries), span: self.since(span.start) };
            }
            TokenKind::Uri => {
                self.fix(span, "an address is text: put it in double quotes", span, &quoted(self.written()));
                ValueKind::Error
            }
            _ => return self.no_value(),
        };
        self.bump();
        Value { kind, span }
    }

    fn literal(&self) -> Option<ValueKind> {
        match self.written() {
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

    /// `$`; or `$name`, by which another language means `name`.
    fn dollar(&mut self) -> Value {
        let span = self.bump().span;
        if self.kind() == TokenKind::Word && self.glued(0) {
            let wrong = span.to(self.span());
            self.fix(span, format!("a name is used without `$`: `{}`", shown(self.written())), wrong, self.written());
            return self.node_value();
        }
        Value { kind: ValueKind::Hole, span }
    }

    fn no_value(&mut self) -> Value {
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
            let (whole, inner) = self.group_spans();
            let inner = inner.of(self.text).trim();
            self.unexpected_fix("a value has no parentheses around it", whole, inner);
        } else {
            self.expected("a value");
        }
        Value { kind: ValueKind::Error, span: Span { start: span.start, end: span.start } }
    }

    /// `[a, b]`, or the same as rows when something is applied to it.
    fn list_value(&mut self) -> Value {
        let start = self.span().start;
        let values = self.list();
        if !matches!(self.kind(), TokenKind::Dot | TokenKind::Back | TokenKind::Arrow) {
            return Value { kind: ValueKind::List(values), span: self.since(start) };
        }
        let head = self.since(start);
        let mut parts = Vec::new();
        self.parts(&mut parts);
        let node = Node { primary: Primary::List(values), head, parts, span: self.since(start) };
        Value { span: node.span, kind: ValueKind::Node(Box::new(node)) }
    }

    pub(super) fn list(&mut self) -> Vec<Value> {
        match self.enter() {
            Some(group) => self.items(group, "a value", |parser| Some(parser.value())),
            None => Vec::new(),
        }
    }

    /// `{key: value}`
    pub(super) fn object(&mut self) -> Vec<Entry> {
        match self.enter() {
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
                self.expected("`key: value`");
                return None;
            }
        };
        match self.kind() {
            TokenKind::Colon => {}
            TokenKind::Eq => {
                let wrong = Span { start: key.span.end, end: self.token(1).span.start };
                self.fix(self.span(), "a key and its value are joined with `:`, not `=`", wrong, ": ");
            }
            _ => {
                let found = self.found();
                self.unexpected(format!("an object holds `key: value`; after `{}` stands {found}", shown(&key.text)));
                return None;
            }
        }
        self.bump();
        let value = self.value();
        Some(Entry { key, value })
    }

    /// The block of text at the current token.
    pub(super) fn heredoc(&mut self) -> Heredoc {
        let token = self.bump();
        let (tag, body) = heredoc_parts(token.span.of(self.text));
        Heredoc { tag: tag.to_owned(), body: body.to_owned(), span: token.span }
    }
}
