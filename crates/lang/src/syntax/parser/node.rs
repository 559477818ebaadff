//! Parses expressions, each of which is a primary and the parts that are applied to it.
//! Invariant: the checker decides whether a name is a label, an entity or a bare word. The parser treats them alike.

use base::Span;

use super::cursor::{GroupSpans, Parser};
use crate::syntax::lexer::decode_string;
use crate::syntax::reports::quote_as_literal;
use crate::syntax::token::TokenKind;
use crate::syntax::tree::{
    EntityName, HandleCall, HandleCallKind, Heredoc, Key, Name, Node, Primary, Value, ValueKind,
};

impl Parser<'_, '_> {
    /// Parses an expression with all its parts.
    pub(super) fn parse_node(&mut self) -> Node {
        let start = self.span().start;
        let primary = self.parse_primary();
        let head = self.span_since(start);
        let mut parts = Vec::new();
        self.parse_parts(&mut parts);
        Node { primary, head, parts, span: self.span_since(start) }
    }

    /// Parses the beginning of an expression, without its parts.
    pub(super) fn parse_primary(&mut self) -> Primary {
        let span = self.span();
        match self.kind() {
            TokenKind::Word => match self.handle_call_kind() {
                Some(kind) => self.parse_handle_call(kind),
                None => self.parse_source(),
            },
            TokenKind::Row => Primary::Row(self.consume().span),
            TokenKind::LeftBracket => Primary::List(self.parse_list()),
            TokenKind::Heredoc => Primary::Text(self.parse_heredoc()),
            TokenKind::String => {
                let body = decode_string(self.token_text());
                self.consume();
                Primary::Text(Heredoc { tag: String::new(), body, span })
            }
            TokenKind::Bad => Primary::Error(self.consume().span),
            TokenKind::Uri => self.report_uri(),
            TokenKind::Dollar | TokenKind::Placeholder => {
                self.report_unexpected(
                    "`$` and `<<T` are places to fill; write the value or the name that belongs here",
                );
                Primary::Error(self.consume().span)
            }
            _ => {
                self.report_no_primary();
                Primary::Error(Span { start: span.start, end: span.start })
            }
        }
    }

    /// Reports a token that cannot begin an expression.
    fn report_no_primary(&mut self) {
        match self.kind() {
            TokenKind::Number => {
                self.report_unexpected(
                    "a number is no expression; write it where a value belongs, as in `e1{p2=7}` or `[7]`",
                );
            }
            TokenKind::LeftBrace => {
                self.report_unexpected("`{…}` stands after an entity, after `.filter` or after `=>`");
            }
            TokenKind::LeftParen => {
                let GroupSpans { whole, inner } = self.group_spans();
                self.report_unexpected_fix("parentheses stand only after a name", whole, inner.of(self.text).trim());
            }
            _ => self.report_expected("a name, an entity, `[…]` or a block of text"),
        }
    }

    /// Parses `Ticket` or `tracker:Ticket`. The current token is a word.
    pub(super) fn parse_entity_name(&mut self) -> EntityName {
        let name = self.parse_name();
        if self.kind() == TokenKind::Colon
            && self.next_kind() == TokenKind::Word
            && self.is_adjacent(0)
            && self.is_adjacent(1)
        {
            self.consume();
            return EntityName { catalog: Some(name), name: self.parse_name() };
        }
        EntityName { catalog: None, name }
    }

    /// Parses a name and the key, filters or search text behind it.
    fn parse_source(&mut self) -> Primary {
        let entity = self.parse_entity_name();
        match self.kind() {
            TokenKind::LeftParen if self.at_filters() => {
                let GroupSpans { whole, inner } = self.group_spans();
                let copy = format!("{{{}}}", inner.of(self.text));
                self.report_fix(self.token(2).span, "filters go into `{…}`; `(…)` holds a key", whole, &copy);
                Primary::Query { entity, preds: self.parse_preds() }
            }
            TokenKind::LeftParen => Primary::Get { entity, key: self.parse_key() },
            TokenKind::LeftBrace => Primary::Query { entity, preds: self.parse_source_preds() },
            TokenKind::Tilde => self.parse_search(entity),
            _ => Primary::Name(entity),
        }
    }

    /// Parses the key in the parentheses behind an entity.
    fn parse_key(&mut self) -> Key {
        let Some(group) = self.enter_group() else {
            return Key::Slots(Vec::new());
        };
        if !self.in_group(group) || self.at_slot() {
            return Key::Slots(self.parse_items(group, "`slot=value`", Self::parse_arg));
        }
        let value = self.parse_value();
        self.consume_if(TokenKind::Comma);
        if self.in_group(group) && !self.recovering {
            if self.previous_end() > value.span.end {
                self.report_unexpected("a key of several slots names each of them: `(slot=value, slot=value)`");
            } else {
                self.report_separator(group);
            }
        }
        self.recovering |= self.in_group(group);
        self.leave_group(group);
        Key::Unary(Box::new(value))
    }

    /// Returns whether the current parentheses contain a filter such as `slot>=…` instead of a key.
    fn at_filters(&self) -> bool {
        use TokenKind::{Ge, Gt, Le, Lt, Ne};
        self.next_kind() == TokenKind::Word && matches!(self.token(2).kind, Ne | Lt | Le | Gt | Ge)
    }

    /// Returns whether a slot follows: `slot=` or `slot:`, but not `catalog:Entity`.
    fn at_slot(&self) -> bool {
        use TokenKind::{Colon, Eq, String, Word};
        let entity = self.is_adjacent(1) && self.is_adjacent(2) && self.token(2).kind == Word;
        matches!(self.kind(), Word | String)
            && match self.next_kind() {
                Eq => true,
                Colon => !entity,
                _ => false,
            }
    }

    /// Parses `~"text"{…}`. The current token is the tilde.
    fn parse_search(&mut self, entity: EntityName) -> Primary {
        self.consume();
        let text = match self.kind() {
            TokenKind::Word => self.parse_bare_search(),
            TokenKind::String | TokenKind::Dollar | TokenKind::Placeholder | TokenKind::Heredoc | TokenKind::Bad => {
                self.parse_value()
            }
            _ => {
                self.report_expected("the words to search for, in double quotes");
                Value { kind: ValueKind::Error, span: Span { start: self.previous_end(), end: self.previous_end() } }
            }
        };
        let preds = if self.kind() == TokenKind::LeftBrace { self.parse_source_preds() } else { Vec::new() };
        Primary::Search { entity, text: Box::new(text), preds }
    }

    /// Parses a search text without quotes, such as `e1~raft`. The text is a name without parts, because the `{…}` and
    /// `.…` behind it belong to the search.
    fn parse_bare_search(&mut self) -> Value {
        let span = self.span();
        let name = self.parse_name();
        let mut words = span;
        while matches!(self.kind(), TokenKind::Word | TokenKind::Number) && !self.next_kind().is_operator() {
            words = words.to(self.consume().span);
        }
        if words != span {
            let copy = quote_as_literal(words.of(self.text));
            self.report_fix(span, "the words to search for go into double quotes", words, &copy);
            return Value { kind: ValueKind::Error, span: words };
        }
        let primary = Primary::Name(EntityName { catalog: None, name });
        Value { kind: ValueKind::Node(Box::new(Node { primary, head: span, parts: Vec::new(), span })), span }
    }

    /// Reports a URI in place of an expression.
    fn report_uri(&mut self) -> Primary {
        let span = self.span();
        let text = self.token_text();
        if text.starts_with("plasm://") || text.starts_with("heap://") {
            self.report_unexpected("an artifact is no expression: read it with the tool `read_artifact` and this URI");
        } else {
            self.report_unexpected_fix(
                "an address is text: put it in double quotes where a value belongs",
                span,
                &quote_as_literal(text),
            );
        }
        Primary::Error(self.consume().span)
    }

    /// Returns the operation on a handle if `page(`, `wait(` or `cancel(` follows. Without the parenthesis, these
    /// words are ordinary names.
    fn handle_call_kind(&self) -> Option<HandleCallKind> {
        if self.next_kind() != TokenKind::LeftParen {
            return None;
        }
        match self.token_text() {
            "page" => Some(HandleCallKind::Page),
            "wait" => Some(HandleCallKind::Wait),
            "cancel" => Some(HandleCallKind::Cancel),
            _ => None,
        }
    }

    /// Parses `page(…)`, `wait(…)` or `cancel(…)`. The current token is the word before the parenthesis.
    fn parse_handle_call(&mut self, kind: HandleCallKind) -> Primary {
        let start = self.span().start;
        let (word, sample) = match kind {
            HandleCallKind::Page => ("page", "page(s0_pg1)"),
            HandleCallKind::Wait => ("wait", "wait(s0_o1)"),
            HandleCallKind::Cancel => ("cancel", "cancel(s0_o1)"),
        };
        self.consume();
        let whole = self.group_spans().whole;
        let whole = Span { start, end: whole.end };
        let Some(group) = self.enter_group() else {
            return Primary::Error(self.span_since(start));
        };
        let handle = match self.kind() {
            TokenKind::Word => Some(self.parse_name()),
            TokenKind::String => {
                let text = decode_string(self.token_text());
                let span = self.consume().span;
                self.report_fix(span, "a handle is written without quotes", span, &text);
                Some(Name { text: text.into(), span })
            }
            _ => {
                self.report_unexpected_fix(
                    format!("`{word}` needs the handle that a result showed, such as `{sample}`"),
                    whole,
                    sample,
                );
                None
            }
        };
        let mut limit = None;
        if self.consume_if(TokenKind::Comma) && self.in_group(group) {
            limit = self.parse_page_limit(kind, word);
        }
        self.consume_if(TokenKind::Comma);
        self.leave_group(group);
        let span = self.span_since(start);
        match handle {
            Some(handle) => Primary::HandleCall(HandleCall { kind, handle, limit, span }),
            None => Primary::Error(span),
        }
    }

    /// Parses `limit=50`, which only `page` accepts.
    fn parse_page_limit(&mut self, kind: HandleCallKind, word: &str) -> Option<Value> {
        if kind != HandleCallKind::Page {
            self.report_unexpected(format!("`{word}` takes its handle and nothing else"));
            return None;
        }
        if self.kind() == TokenKind::Number {
            let span = self.span();
            self.report_fix(
                span,
                "the number of rows is written `limit=50`",
                span,
                &format!("limit={}", self.token_text()),
            );
        } else if self.is_word("limit") && self.next_kind() == TokenKind::Eq {
            self.consume();
            self.consume();
        } else {
            self.report_expected("`limit=` and a number");
            return None;
        }
        Some(self.parse_value())
    }
}
