//! Comma lists and what stands in them: filters, arguments, paths.
//! Invariant: each turn of a list passes at least one token; a last comma is allowed everywhere.

use base::{Diagnostic, Span};

use super::cursor::{Group, Parser};
use crate::codes;
use crate::syntax::lexer::decode;
use crate::syntax::token::TokenKind;
use crate::syntax::tree::{Arg, DOTS, Name, Op, Path, Pred, Value, ValueKind};

/// Operators as other languages write them in words.
const WORDED: &[(&str, &str, Op)] = &[
    ("is", "=", Op::Eq),
    ("eq", "=", Op::Eq),
    ("equals", "=", Op::Eq),
    ("contains", "=", Op::Eq),
    ("like", "~", Op::Like),
    ("matches", "~", Op::Like),
    ("ne", "!=", Op::Ne),
    ("gt", ">", Op::Gt),
    ("gte", ">=", Op::Ge),
    ("lt", "<", Op::Lt),
    ("lte", "<=", Op::Le),
];

impl Parser<'_, '_> {
    /// The items of a group, which is left afterwards. `what` names one of them.
    pub(super) fn items<T>(
        &mut self,
        group: Group,
        what: &str,
        mut item: impl FnMut(&mut Self) -> Option<T>,
    ) -> Vec<T> {
        let mut items = Vec::new();
        while self.in_group(group) {
            let start = self.at;
            if self.kind() == TokenKind::Comma {
                self.expected(what);
            } else {
                items.extend(item(self));
            }
            if !self.in_group(group) {
                break;
            }
            if self.kind() != TokenKind::Comma && !self.lost && self.separator(group) && self.at > start {
                continue;
            }
            self.skip_item(group);
            self.eat(TokenKind::Comma);
            self.lost = false;
        }
        self.leave(group);
        items
    }

    /// `{pred, pred}`
    pub(super) fn preds(&mut self) -> Vec<Pred> {
        match self.enter() {
            Some(group) => self.items(group, "a filter such as `slot=value`", Self::pred),
            None => Vec::new(),
        }
    }

    /// The filters of a list or a search, whose first slots a table may have written as `..`.
    pub(super) fn source_preds(&mut self) -> Vec<Pred> {
        let one = |parser: &mut Self| match parser.dots() {
            Some((slot, value)) => {
                let op_span = slot.span;
                Some(Pred { path: Path { names: vec![slot] }, op: Op::Eq, op_span, value })
            }
            None => parser.pred(),
        };
        match self.enter() {
            Some(group) => self.items(group, "a filter such as `slot=value`", one),
            None => Vec::new(),
        }
    }

    /// An argument of a method, likewise.
    pub(super) fn method_arg(&mut self) -> Option<Arg> {
        match self.dots() {
            Some((slot, value)) => Some(Arg { slot, value }),
            None => self.arg(),
        }
    }

    /// `..`, as tables write the slots of a key that they have spelled out before.
    fn dots(&mut self) -> Option<(Name, Value)> {
        if self.kind() != TokenKind::Dot || self.next_kind() != TokenKind::Dot {
            return None;
        }
        let start = self.bump().span.start;
        self.bump();
        let span = self.since(start);
        Some((Name { text: DOTS.into(), span }, Value { kind: ValueKind::Hole, span }))
    }

    pub(super) fn pred(&mut self) -> Option<Pred> {
        if self.kind() == TokenKind::LeftParen {
            self.unexpected("filters have no parentheses: a comma means and, and there is no or");
            return None;
        }
        let path = self.path("a filter such as `slot=value`")?;
        let op_span = self.span();
        let op = self.operator(&path)?;
        let value = self.value();
        Some(Pred { path, op, op_span, value })
    }

    fn operator(&mut self, path: &Path) -> Option<Op> {
        let op = match self.kind() {
            TokenKind::Eq => Op::Eq,
            TokenKind::Ne => Op::Ne,
            TokenKind::Lt => Op::Lt,
            TokenKind::Le => Op::Le,
            TokenKind::Gt => Op::Gt,
            TokenKind::Ge => Op::Ge,
            TokenKind::Tilde => Op::Like,
            TokenKind::Arrow if self.token(2).kind == TokenKind::Dot => {
                self.unexpected("a filter names the row's slots directly, without a function: `p4>=3`");
                return None;
            }
            TokenKind::Arrow => {
                self.fix(self.span(), "at least is written `>=`, not `=>`", self.span(), ">=");
                Op::Ge
            }
            TokenKind::Colon => {
                self.colon_for_eq();
                Op::Eq
            }
            _ => return self.worded_operator(path),
        };
        self.bump();
        Some(op)
    }

    fn worded_operator(&mut self, path: &Path) -> Option<Op> {
        let worded = WORDED.iter().find(|(word, ..)| self.is_word(word));
        if let Some((word, sign, op)) = worded {
            self.fix(self.span(), format!("`{word}` is written `{sign}`"), self.span(), sign);
            self.bump();
            return Some(*op);
        }
        if self.is_word("in") {
            self.unexpected("there is no `in`; on a list slot `=` means contains, otherwise ask once per value");
            return None;
        }
        let name = path_text(path);
        let message = format!("expected an operator after `{name}`, found {}", self.found());
        if self.kind() == TokenKind::Comma || self.kind().is_closer() {
            let end = Span { start: self.last_end(), end: self.last_end() };
            self.unexpected_fix(message, end, "=true");
        } else {
            let operators = ["=", "!=", "<=", ">=", "~"].map(str::to_owned);
            let diagnostic = Diagnostic::error(codes::UNEXPECTED, self.span(), message);
            self.refuse(diagnostic.with_alternatives(operators));
        }
        None
    }

    /// `:` where `=` belongs; the current token is the colon.
    pub(super) fn colon_for_eq(&mut self) {
        let wrong = Span { start: self.span().start, end: self.token(1).span.start };
        self.fix(self.span(), "a slot and its value are joined with `=`, not `:`", wrong, "=");
    }

    /// `slot=value`
    pub(super) fn arg(&mut self) -> Option<Arg> {
        let slot = match self.kind() {
            TokenKind::Word => self.name(),
            TokenKind::String if matches!(self.next_kind(), TokenKind::Eq | TokenKind::Colon) => self.unquoted(),
            _ => {
                self.expected("an argument such as `slot=value`");
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
                self.unexpected(format!("an argument is `{}=value`; filters with `{kind}` go into `{{…}}`", slot.text));
                return None;
            }
            _ => {
                let found = self.found();
                self.unexpected(format!("an argument is `slot=value`; after `{}` stands {found}", slot.text));
                return None;
            }
        }
        let value = self.value();
        Some(Arg { slot, value })
    }

    /// `p13.p27`
    pub(super) fn path(&mut self, what: &str) -> Option<Path> {
        if self.kind() == TokenKind::Row && self.next_kind() == TokenKind::Dot {
            let wrong = self.span().to(self.token(1).span);
            self.fix(self.span(), "slots of the row itself are written without `_.` here", wrong, "");
            self.bump();
            self.bump();
        }
        let first = match self.kind() {
            TokenKind::Word => self.name(),
            TokenKind::String if is_path(&decode(self.written())) => self.unquoted(),
            _ => {
                self.expected(what);
                return None;
            }
        };
        let mut names = vec![first];
        while self.kind() == TokenKind::Dot && self.next_kind() == TokenKind::Word {
            self.bump();
            names.push(self.name());
        }
        Some(Path { names })
    }

    /// A string that stands where a name belongs.
    fn unquoted(&mut self) -> Name {
        let span = self.span();
        let text = decode(self.written());
        self.fix(span, format!("a name is written without quotes: `{text}`"), span, &text);
        self.bump();
        Name { text: text.into(), span }
    }
}

pub(super) fn path_text(path: &Path) -> String {
    path.names.iter().map(|name| name.text.as_str()).collect::<Vec<_>>().join(".")
}

fn is_path(text: &str) -> bool {
    text.starts_with(|c: char| c.is_alphabetic() || c == '_')
        && text.len() < 80
        && text.chars().all(|c| c.is_alphanumeric() || "_-.".contains(c))
}
