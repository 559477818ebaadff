//! Nodes: a primary and what is applied to it.
//! Invariant: what a primary means (label, entity, bare word) is not decided here.

use base::Span;

use super::cursor::Parser;
use crate::syntax::lexer::decode;
use crate::syntax::reports::quoted;
use crate::syntax::token::TokenKind;
use crate::syntax::tree::{EntityName, Heredoc, HostCall, HostKind, Key, Name, Node, Primary, Value, ValueKind};

impl Parser<'_, '_> {
    pub(super) fn node(&mut self) -> Node {
        let start = self.span().start;
        let primary = self.primary();
        let head = self.since(start);
        let mut parts = Vec::new();
        self.parts(&mut parts);
        Node { primary, head, parts, span: self.since(start) }
    }

    pub(super) fn primary(&mut self) -> Primary {
        let span = self.span();
        match self.kind() {
            TokenKind::Word => match self.host_kind() {
                Some(kind) => self.host(kind),
                None => self.source(),
            },
            TokenKind::Row => Primary::Row(self.bump().span),
            TokenKind::LeftBracket => Primary::List(self.list()),
            TokenKind::Heredoc => Primary::Text(self.heredoc()),
            TokenKind::String => {
                let body = decode(self.written());
                self.bump();
                Primary::Text(Heredoc { tag: String::new(), body, span })
            }
            TokenKind::Bad => Primary::Error(self.bump().span),
            TokenKind::Uri => self.uri(),
            TokenKind::Dollar | TokenKind::Hole => {
                self.unexpected("`$` and `<<T` are places to fill; write the value or the name that belongs here");
                Primary::Error(self.bump().span)
            }
            _ => {
                self.no_primary();
                Primary::Error(Span { start: span.start, end: span.start })
            }
        }
    }

    fn no_primary(&mut self) {
        match self.kind() {
            TokenKind::Number => {
                self.unexpected("a number is no expression; write it where a value belongs, as in `e1{p2=7}` or `[7]`");
            }
            TokenKind::LeftBrace => {
                self.unexpected("`{…}` stands after an entity, after `.filter` or after `=>`");
            }
            TokenKind::LeftParen => {
                let (whole, inner) = self.group_spans();
                self.unexpected_fix("parentheses stand only after a name", whole, inner.of(self.text).trim());
            }
            _ => self.expected("a name, an entity, `[…]` or a block of text"),
        }
    }

    /// `Ticket` or `tracker:Ticket`; the current token is a word.
    pub(super) fn entity_name(&mut self) -> EntityName {
        let name = self.name();
        if self.kind() == TokenKind::Colon && self.next_kind() == TokenKind::Word && self.glued(0) && self.glued(1) {
            self.bump();
            return EntityName { catalog: Some(name), name: self.name() };
        }
        EntityName { catalog: None, name }
    }

    fn source(&mut self) -> Primary {
        let entity = self.entity_name();
        match self.kind() {
            TokenKind::LeftParen if self.at_filters() => {
                let (whole, inner) = self.group_spans();
                let copy = format!("{{{}}}", inner.of(self.text));
                self.fix(self.token(2).span, "filters go into `{…}`; `(…)` holds a key", whole, &copy);
                Primary::Query { entity, preds: self.preds() }
            }
            TokenKind::LeftParen => Primary::Get { entity, key: self.key() },
            TokenKind::LeftBrace => Primary::Query { entity, preds: self.source_preds() },
            TokenKind::Tilde => self.search(entity),
            _ => Primary::Name(entity),
        }
    }

    fn key(&mut self) -> Key {
        let Some(group) = self.enter() else {
            return Key::Slots(Vec::new());
        };
        if !self.in_group(group) || self.at_slot() {
            return Key::Slots(self.items(group, "`slot=value`", Self::arg));
        }
        let value = self.value();
        self.eat(TokenKind::Comma);
        if self.in_group(group) && !self.lost {
            if self.last_end() > value.span.end {
                self.unexpected("a key of several slots names each of them: `(slot=value, slot=value)`");
            } else {
                self.separator(group);
            }
        }
        self.lost |= self.in_group(group);
        self.leave(group);
        Key::Unary(Box::new(value))
    }

    /// `(slot>=…`
    fn at_filters(&self) -> bool {
        use TokenKind::{Ge, Gt, Le, Lt, Ne};
        self.next_kind() == TokenKind::Word && matches!(self.token(2).kind, Ne | Lt | Le | Gt | Ge)
    }

    /// `slot=…`, or what was meant as such; but not `catalog:Entity`.
    fn at_slot(&self) -> bool {
        use TokenKind::{Colon, Eq, String, Word};
        let entity = self.glued(1) && self.glued(2) && self.token(2).kind == Word;
        matches!(self.kind(), Word | String)
            && match self.next_kind() {
                Eq => true,
                Colon => !entity,
                _ => false,
            }
    }

    fn search(&mut self, entity: EntityName) -> Primary {
        self.bump();
        let text = match self.kind() {
            TokenKind::Word => self.bare_search(),
            TokenKind::String | TokenKind::Dollar | TokenKind::Hole | TokenKind::Heredoc | TokenKind::Bad => {
                self.value()
            }
            _ => {
                self.expected("the words to search for, in double quotes");
                Value { kind: ValueKind::Error, span: Span { start: self.last_end(), end: self.last_end() } }
            }
        };
        let preds = if self.kind() == TokenKind::LeftBrace { self.source_preds() } else { Vec::new() };
        Primary::Search { entity, text: Box::new(text), preds }
    }

    /// `e1~raft`: a name on its own, because `{…}` and `.…` after it belong to the search.
    fn bare_search(&mut self) -> Value {
        let span = self.span();
        let name = self.name();
        let mut words = span;
        while matches!(self.kind(), TokenKind::Word | TokenKind::Number) && !self.next_kind().is_operator() {
            words = words.to(self.bump().span);
        }
        if words != span {
            let copy = quoted(words.of(self.text));
            self.fix(span, "the words to search for go into double quotes", words, &copy);
            return Value { kind: ValueKind::Error, span: words };
        }
        let primary = Primary::Name(EntityName { catalog: None, name });
        Value { kind: ValueKind::Node(Box::new(Node { primary, head: span, parts: Vec::new(), span })), span }
    }

    fn uri(&mut self) -> Primary {
        let span = self.span();
        let text = self.written();
        if text.starts_with("plasm://") || text.starts_with("heap://") {
            self.unexpected("an artifact is no expression: read it with the tool `read_artifact` and this URI");
        } else {
            self.unexpected_fix(
                "an address is text: put it in double quotes where a value belongs",
                span,
                &quoted(text),
            );
        }
        Primary::Error(self.bump().span)
    }

    fn host_kind(&self) -> Option<HostKind> {
        if self.next_kind() != TokenKind::LeftParen {
            return None;
        }
        match self.written() {
            "page" => Some(HostKind::Page),
            "wait" => Some(HostKind::Wait),
            "cancel" => Some(HostKind::Cancel),
            _ => None,
        }
    }

    fn host(&mut self, kind: HostKind) -> Primary {
        let start = self.span().start;
        let (word, sample) = match kind {
            HostKind::Page => ("page", "page(s0_pg1)"),
            HostKind::Wait => ("wait", "wait(s0_o1)"),
            HostKind::Cancel => ("cancel", "cancel(s0_o1)"),
        };
        self.bump();
        let (whole, _) = self.group_spans();
        let whole = Span { start, end: whole.end };
        let Some(group) = self.enter() else {
            return Primary::Error(self.since(start));
        };
        let handle = match self.kind() {
            TokenKind::Word => Some(self.name()),
            TokenKind::String => {
                let text = decode(self.written());
                let span = self.bump().span;
                self.fix(span, "a handle is written without quotes", span, &text);
                Some(Name { text: text.into(), span })
            }
            _ => {
                self.unexpected_fix(
                    format!("`{word}` needs the handle that a result showed, such as `{sample}`"),
                    whole,
                    sample,
                );
                None
            }
        };
        let mut limit = None;
        if self.eat(TokenKind::Comma) && self.in_group(group) {
            limit = self.host_limit(kind, word);
        }
        self.eat(TokenKind::Comma);
        self.leave(group);
        let span = self.since(start);
        match handle {
            Some(handle) => Primary::Host(HostCall { kind, handle, limit, span }),
            None => Primary::Error(span),
        }
    }

    /// `limit=50`
    fn host_limit(&mut self, kind: HostKind, word: &str) -> Option<Value> {
        if kind != HostKind::Page {
            self.unexpected(format!("`{word}` takes its handle and nothing else"));
            return None;
        }
        if self.kind() == TokenKind::Number {
            let span = self.span();
            self.fix(span, "the number of rows is written `limit=50`", span, &format!("limit={}", self.written()));
        } else if self.is_word("limit") && self.next_kind() == TokenKind::Eq {
            self.bump();
            self.bump();
        } else {
            self.expected("`limit=` and a number");
            return None;
        }
        Some(self.value())
    }
}
