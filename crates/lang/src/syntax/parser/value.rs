//! Parses values, which are the contents of slots, keys, lists and objects.
//! Invariant: parsing always returns a value. A value that cannot be parsed is `Error` and has a diagnostic.

use base::{Diagnostic, Span};

use super::cursor::{GroupSpans, Parser};
use crate::codes;
use crate::syntax::lexer::{decode_string, heredoc_tag_and_body};
use crate::syntax::reports::{quote_as_literal, shorten_for_message};
use crate::syntax::token::TokenKind;
use crate::syntax::tree::{Entry, Heredoc, Name, Node, Primary, Value, ValueKind};

impl Parser<'_, '_> {
    /// Parses a value. A token that cannot begin a value is reported.
    pub(super) fn parse_value(&mut self) -> Value {
        let span = self.span();
        self.last_value = Some(self.index);
        let kind = match self.kind() {
            TokenKind::String => ValueKind::String(decode_string(self.token_text())),
            TokenKind::Number => ValueKind::Number(self.token_text().to_owned()),
            TokenKind::Word => match self.parse_literal() {
                Some(literal) => literal,
                None => return self.parse_node_value(),
            },
            TokenKind::Bad => ValueKind::Error,
            TokenKind::Row => return self.parse_node_value(),
            TokenKind::Dollar => return self.parse_dollar(),
            TokenKind::Placeholder => ValueKind::Placeholder,
            // Taught tables write `e1(..)` for a key that they spelled out earlier.
            TokenKind::Dot if self.next_kind() == TokenKind::Dot => {
                self.consume();
                self.consume();
                return Value { kind: ValueKind::Placeholder, span: self.span_since(span.start) };
            }
            TokenKind::Heredoc => {
                return Value { kind: ValueKind::Text(self.parse_heredoc()), span };
            }
            TokenKind::LeftBracket => return self.parse_list_value(),
            TokenKind::LeftBrace => {
                let entries = self.parse_object();
                return Value { kind: ValueKind::Object(entries), span: self.span_since(span.start) };
            }
            TokenKind::Uri => {
                self.report_fix(
                    span,
                    "an address is text: put it in double quotes",
                    span,
                    &quote_as_literal(self.token_text()),
                );
                ValueKind::Error
            }
            _ => return self.report_missing_value(),
        };
        self.consume();
        Value { kind, span }
    }

    /// Returns the literal if the current word is `true`, `false` or `null`.
    fn parse_literal(&self) -> Option<ValueKind> {
        match self.token_text() {
            "true" => Some(ValueKind::Bool(true)),
            "false" => Some(ValueKind::Bool(false)),
            "null" => Some(ValueKind::Null),
            _ => None,
        }
    }

    /// Parses an expression as a value.
    fn parse_node_value(&mut self) -> Value {
        let node = self.parse_node();
        Value { span: node.span, kind: ValueKind::Node(Box::new(node)) }
    }

    /// Parses the placeholder `$`, or `$name` as other languages write the name of a variable.
    fn parse_dollar(&mut self) -> Value {
        let span = self.consume().span;
        if self.kind() == TokenKind::Word && self.is_adjacent(0) {
            let wrong = span.to(self.span());
            self.report_fix(
                span,
                format!("a name is used without `$`: `{}`", shorten_for_message(self.token_text())),
                wrong,
                self.token_text(),
            );
            return self.parse_node_value();
        }
        Value { kind: ValueKind::Placeholder, span }
    }

    /// Reports a token that cannot begin a value. A misspelled number, such as `.5`, is consumed.
    fn report_missing_value(&mut self) -> Value {
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
            let message = format!("`{}` is not how a number is written", shorten_for_message(whole.of(self.text)));
            self.reports.add_with_fix(Diagnostic::error(codes::BAD_NUMBER, span, message), whole, &copy);
            self.index += signs + 1;
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

    /// Parses `[a, b]` as a list or, if parts follow, as rows.
    fn parse_list_value(&mut self) -> Value {
        let start = self.span().start;
        let values = self.parse_list();
        if !matches!(self.kind(), TokenKind::Dot | TokenKind::Back | TokenKind::Arrow) {
            return Value { kind: ValueKind::List(values), span: self.span_since(start) };
        }
        let head = self.span_since(start);
        let mut parts = Vec::new();
        self.parse_parts(&mut parts);
        let node = Node { primary: Primary::List(values), head, parts, span: self.span_since(start) };
        Value { span: node.span, kind: ValueKind::Node(Box::new(node)) }
    }

    /// Parses the values in `[a, b]`.
    pub(super) fn parse_list(&mut self) -> Vec<Value> {
        match self.enter_group() {
            Some(group) => self.parse_items(group, "a value", |parser| Some(parser.parse_value())),
            None => Vec::new(),
        }
    }

    /// Parses `{key: value}`.
    pub(super) fn parse_object(&mut self) -> Vec<Entry> {
        match self.enter_group() {
            Some(group) => self.parse_items(group, "`key: value`", Self::parse_entry),
            None => Vec::new(),
        }
    }

    /// Parses an entry `key: value` of an object.
    fn parse_entry(&mut self) -> Option<Entry> {
        let key = match self.kind() {
            TokenKind::Word => self.parse_name(),
            TokenKind::String => {
                let token = self.consume();
                Name { text: decode_string(token.span.of(self.text)).into(), span: token.span }
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
                    shorten_for_message(&key.text)
                ));
                return None;
            }
        }
        self.consume();
        let value = self.parse_value();
        Some(Entry { key, value })
    }

    /// Consumes the heredoc at the current token and returns it.
    pub(super) fn parse_heredoc(&mut self) -> Heredoc {
        let token = self.consume();
        let (tag, body) = heredoc_tag_and_body(token.span.of(self.text));
        Heredoc { tag: tag.to_owned(), body: body.to_owned(), span: token.span }
    }
}
