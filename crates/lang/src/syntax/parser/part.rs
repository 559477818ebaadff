//! What is applied to a node: relations, fields, methods, projections, `=>` and templates; postfixes are next door.
//! Invariant: a part's span starts at its `.`, `[`, `{`, `=>` or `<<`.

use super::cursor::Parser;
use super::postfix::Postfix;
use crate::syntax::reports::{quoted, shown};
use crate::syntax::token::TokenKind;
use crate::syntax::tree::{Args, Node, Part, PartKind};

impl Parser<'_, '_> {
    pub(super) fn parts(&mut self, parts: &mut Vec<Part>) {
        while !self.lost {
            let start = self.span().start;
            let kind = match self.kind() {
                TokenKind::Dot => self.dot(),
                TokenKind::Back => self.back(),
                TokenKind::LeftBracket => self.project(),
                TokenKind::LeftBrace => Some(PartKind::Braces { preds: self.preds() }),
                TokenKind::Heredoc => Some(PartKind::Template(self.heredoc())),
                TokenKind::Arrow => {
                    self.arrow(parts);
                    continue;
                }
                _ => return,
            };
            if let Some(kind) = kind {
                parts.push(Part { kind, span: self.since(start) });
            }
        }
    }

    fn dot(&mut self) -> Option<PartKind> {
        if self.next_kind() != TokenKind::Word {
            self.bump();
            self.no_name();
            return None;
        }
        let postfix = Postfix::named(self.token(1).span.of(self.text));
        let opens = matches!(self.token(2).kind, TokenKind::LeftParen | TokenKind::LeftBrace);
        match postfix {
            Some(postfix) if opens => {
                self.bump();
                self.postfix(postfix)
            }
            Some(postfix) if self.takes_loose(postfix) => {
                self.bump();
                self.loose(postfix)
            }
            _ => {
                self.bump();
                self.segment()
            }
        }
    }

    /// After the dot of `.name`, `.name{…}` or `.name(…)`.
    fn segment(&mut self) -> Option<PartKind> {
        if let Some(meant) = self.foreign() {
            return meant;
        }
        let name = self.name();
        Some(match self.kind() {
            TokenKind::LeftParen => PartKind::Method { name, args: self.args() },
            TokenKind::LeftBrace => PartKind::Follow { name, preds: Some(self.preds()) },
            _ => PartKind::Follow { name, preds: None },
        })
    }

    /// Whether, at a name, `()`, `(slot=…` or `(Arm{…` follows, as a method has it.
    pub(super) fn at_arguments(&self) -> bool {
        let (first, second) = (self.token(2).kind, self.token(3).kind);
        first.is_closer() || (first == TokenKind::Word && matches!(second, TokenKind::Eq | TokenKind::LeftBrace))
    }

    /// After a dot that no name follows.
    fn no_name(&mut self) {
        if let Some(text) = self.glued_text() {
            let message = format!("`{}` needs double quotes around it", shown(text.of(self.text)));
            self.unexpected_fix(message, text, &quoted(text.of(self.text)));
        } else if self.kind() == TokenKind::Number {
            self.unexpected("after `.` stands a name; rows are picked with `.first()`, `.last()` or `.limit(1)`");
        } else {
            self.expected("a relation, a slot, a method or a postfix after `.`");
        }
    }

    fn args(&mut self) -> Args {
        let Some(group) = self.enter() else {
            return Args::Slots(Vec::new());
        };
        if self.kind() != TokenKind::Word || self.next_kind() != TokenKind::LeftBrace {
            return Args::Slots(self.items(group, "an argument such as `slot=value`", Self::method_arg));
        }
        let name = self.name();
        let args = match self.enter() {
            Some(inner) => self.items(inner, "`slot=value`", Self::arg),
            None => Vec::new(),
        };
        self.eat(TokenKind::Comma);
        self.leave(group);
        Args::Variant { name, args }
    }

    /// `.^Entity{…}`
    fn back(&mut self) -> Option<PartKind> {
        self.bump();
        if self.kind() != TokenKind::Word {
            self.expected("an entity after `.^`");
            return None;
        }
        let entity = self.entity_name();
        let preds = if self.kind() == TokenKind::LeftBrace { self.preds() } else { Vec::new() };
        Some(PartKind::Back { entity, preds })
    }

    /// `[p1, p4]`
    fn project(&mut self) -> Option<PartKind> {
        let (whole, inner) = self.group_spans();
        let place = self.span();
        let copy = match inner.of(self.text).trim() {
            "0" => ".first()",
            "-1" => ".last()",
            "*" => "",
            _ => {
                let group = self.enter()?;
                if !self.in_group(group) {
                    self.expected("the slots to show, such as `[p1, p4]`");
                }
                let fields = self.items(group, "a slot", |parser| parser.path("a slot to show"));
                return Some(PartKind::Project { fields });
            }
        };
        self.fix(
            place,
            "`[…]` names the slots to show; rows are picked with `.first()`, and without it all slots are shown",
            whole,
            copy,
        );
        if let Some(group) = self.enter() {
            self.lost = true;
            self.leave(group);
        }
        None
    }

    /// `=> {…}` or `=> effect`. What follows the effect's last method is applied to the results.
    fn arrow(&mut self, parts: &mut Vec<Part>) {
        let start = self.bump().span.start;
        if self.kind() == TokenKind::LeftBrace {
            let object = self.object();
            parts.push(Part { kind: PartKind::Derive { object }, span: self.since(start) });
            return;
        }
        let mut effect = self.effect();
        let last_method = effect.parts.iter().rposition(|part| matches!(part.kind, PartKind::Method { .. }));
        let later = last_method.map_or(Vec::new(), |last| effect.parts.split_off(last + 1));
        if let (Some(last), false) = (effect.parts.last(), later.is_empty()) {
            effect.span.end = last.span.end;
        }
        let mut span = self.since(start);
        span.end = effect.span.end.max(start);
        parts.push(Part { kind: PartKind::Each { effect: Box::new(effect) }, span });
        parts.extend(later);
    }

    /// A primary and its segments, without postfixes.
    fn effect(&mut self) -> Node {
        let start = self.span().start;
        let primary = self.primary();
        let head = self.since(start);
        let mut parts = Vec::new();
        while !self.lost {
            let start = self.span().start;
            let kind = match self.kind() {
                TokenKind::Dot if self.at_segment() => {
                    self.bump();
                    self.segment()
                }
                TokenKind::Back => self.back(),
                _ => break,
            };
            if let Some(kind) = kind {
                parts.push(Part { kind, span: self.since(start) });
            }
        }
        Node { primary, head, parts, span: self.since(start) }
    }

    fn at_segment(&self) -> bool {
        let word = self.token(1);
        let opens = matches!(self.token(2).kind, TokenKind::LeftParen | TokenKind::LeftBrace);
        word.kind == TokenKind::Word
            && Postfix::named(word.span.of(self.text)).is_none_or(|postfix| !opens && !self.takes_loose(postfix))
    }
}
