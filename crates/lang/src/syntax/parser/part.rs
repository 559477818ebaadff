//! Parses the parts of an expression: relations, fields, methods, projections, `=>` and templates. `postfix` parses
//! postfixes.
//! Invariant: the span of a part starts at its `.`, `[`, `{`, `=>` or `<<`.

use super::cursor::{GroupSpans, Parser};
use super::postfix::Postfix;
use crate::syntax::reports::{quote_as_literal, shorten_for_message};
use crate::syntax::token::TokenKind;
use crate::syntax::tree::{MethodArgs, Node, Part, PartKind};

impl Parser<'_, '_> {
    /// Parses all parts that follow and appends them to `parts`. A `=>` may add several parts.
    pub(super) fn parse_parts(&mut self, parts: &mut Vec<Part>) {
        while !self.recovering {
            let start = self.span().start;
            let kind = match self.kind() {
                TokenKind::Dot => self.parse_dotted_part(),
                TokenKind::Back => self.parse_backward_step(),
                TokenKind::LeftBracket => self.parse_projection(),
                TokenKind::LeftBrace => Some(PartKind::Braces { preds: self.parse_preds() }),
                TokenKind::Heredoc => Some(PartKind::Template(self.parse_heredoc())),
                TokenKind::Arrow => {
                    self.parse_arrow(parts);
                    continue;
                }
                _ => return,
            };
            if let Some(kind) = kind {
                parts.push(Part { kind, span: self.span_since(start) });
            }
        }
    }

    /// Parses the part at a dot: a postfix, or a name with or without arguments.
    fn parse_dotted_part(&mut self) -> Option<PartKind> {
        if self.next_kind() != TokenKind::Word {
            self.consume();
            self.report_missing_name();
            return None;
        }
        let postfix = Postfix::from_name(self.token(1).span.of(self.text));
        let has_brackets = matches!(self.token(2).kind, TokenKind::LeftParen | TokenKind::LeftBrace);
        match postfix {
            Some(postfix) if has_brackets => {
                self.consume();
                self.parse_postfix(postfix)
            }
            Some(postfix) if self.has_unbracketed_arguments(postfix) => {
                self.consume();
                self.parse_unbracketed_postfix(postfix)
            }
            _ => {
                self.consume();
                self.parse_named_part()
            }
        }
    }

    /// Parses `.name`, `.name{…}` or `.name(…)`. The current token follows the dot.
    fn parse_named_part(&mut self) -> Option<PartKind> {
        if let Some(meant) = self.parse_foreign_part() {
            return meant;
        }
        let name = self.parse_name();
        Some(match self.kind() {
            TokenKind::LeftParen => PartKind::Method { name, args: self.parse_method_args() },
            TokenKind::LeftBrace => PartKind::Follow { name, preds: Some(self.parse_preds()) },
            _ => PartKind::Follow { name, preds: None },
        })
    }

    /// Returns whether the parentheses behind the current name contain method arguments: `()`, `(slot=…` or `(Arm{…`.
    pub(super) fn at_arguments(&self) -> bool {
        let first = self.token(2).kind;
        let second = self.token(3).kind;
        first.is_closer() || (first == TokenKind::Word && matches!(second, TokenKind::Eq | TokenKind::LeftBrace))
    }

    /// Reports a dot without a name. The current token follows the dot.
    fn report_missing_name(&mut self) {
        if let Some(text) = self.find_unquoted_dotted_text() {
            let message = format!("`{}` needs double quotes around it", shorten_for_message(text.of(self.text)));
            self.report_unexpected_fix(message, text, &quote_as_literal(text.of(self.text)));
        } else if self.kind() == TokenKind::Number {
            self.report_unexpected(
                "after `.` stands a name; rows are picked with `.first()`, `.last()` or `.limit(1)`",
            );
        } else {
            self.report_expected("a relation, a slot, a method or a postfix after `.`");
        }
    }

    /// Parses the arguments of a method: slots, or one arm of a union.
    fn parse_method_args(&mut self) -> MethodArgs {
        let Some(group) = self.enter_group() else {
            return MethodArgs::Slots(Vec::new());
        };
        if self.kind() != TokenKind::Word || self.next_kind() != TokenKind::LeftBrace {
            return MethodArgs::Slots(self.parse_items(
                group,
                "an argument such as `slot=value`",
                Self::parse_method_arg,
            ));
        }
        let name = self.parse_name();
        let args = match self.enter_group() {
            Some(inner) => self.parse_items(inner, "`slot=value`", Self::parse_arg),
            None => Vec::new(),
        };
        self.consume_if(TokenKind::Comma);
        self.leave_group(group);
        MethodArgs::Variant { name, args }
    }

    /// Parses `.^Entity{…}`.
    fn parse_backward_step(&mut self) -> Option<PartKind> {
        self.consume();
        if self.kind() != TokenKind::Word {
            self.report_expected("an entity after `.^`");
            return None;
        }
        let entity = self.parse_entity_name();
        let preds = if self.kind() == TokenKind::LeftBrace { self.parse_preds() } else { Vec::new() };
        Some(PartKind::Back { entity, preds })
    }

    /// Parses a projection such as `[p1, p4]`. `[0]`, `[-1]` and `[*]` are reported with the postfix that they mean.
    fn parse_projection(&mut self) -> Option<PartKind> {
        let GroupSpans { whole, inner } = self.group_spans();
        let opener_span = self.span();
        let copy = match inner.of(self.text).trim() {
            "0" => ".first()",
            "-1" => ".last()",
            "*" => "",
            _ => {
                let group = self.enter_group()?;
                if !self.in_group(group) {
                    self.report_expected("the slots to show, such as `[p1, p4]`");
                }
                let fields = self.parse_items(group, "a slot", |parser| parser.parse_path("a slot to show"));
                return Some(PartKind::Project { fields });
            }
        };
        self.report_fix(
            opener_span,
            "`[…]` names the slots to show; rows are picked with `.first()`, and without it all slots are shown",
            whole,
            copy,
        );
        if let Some(group) = self.enter_group() {
            self.recovering = true;
            self.leave_group(group);
        }
        None
    }

    /// Parses `=> {…}` or `=> effect`. The parts behind the effect's last method are applied to the effect's results.
    fn parse_arrow(&mut self, parts: &mut Vec<Part>) {
        let start = self.consume().span.start;
        if self.kind() == TokenKind::LeftBrace {
            let object = self.parse_object();
            parts.push(Part { kind: PartKind::Derive { object }, span: self.span_since(start) });
            return;
        }
        let mut effect = self.parse_effect();
        let last_method = effect.parts.iter().rposition(|part| matches!(part.kind, PartKind::Method { .. }));
        let later = last_method.map_or(Vec::new(), |last| effect.parts.split_off(last + 1));
        if let (Some(last), false) = (effect.parts.last(), later.is_empty()) {
            effect.span.end = last.span.end;
        }
        let mut span = self.span_since(start);
        span.end = effect.span.end.max(start);
        parts.push(Part { kind: PartKind::Each { effect: Box::new(effect) }, span });
        parts.extend(later);
    }

    /// Parses the effect of a `=>`, which is a primary with relations, fields and methods, but without postfixes.
    fn parse_effect(&mut self) -> Node {
        let start = self.span().start;
        let primary = self.parse_primary();
        let head = self.span_since(start);
        let mut parts = Vec::new();
        while !self.recovering {
            let start = self.span().start;
            let kind = match self.kind() {
                TokenKind::Dot if self.at_unpostfixed_name() => {
                    self.consume();
                    self.parse_named_part()
                }
                TokenKind::Back => self.parse_backward_step(),
                _ => break,
            };
            if let Some(kind) = kind {
                parts.push(Part { kind, span: self.span_since(start) });
            }
        }
        Node { primary, head, parts, span: self.span_since(start) }
    }

    /// Returns whether the current token is a dot before a name that is not a postfix.
    fn at_unpostfixed_name(&self) -> bool {
        let word = self.token(1);
        let has_brackets = matches!(self.token(2).kind, TokenKind::LeftParen | TokenKind::LeftBrace);
        word.kind == TokenKind::Word
            && Postfix::from_name(word.span.of(self.text))
                .is_none_or(|postfix| !has_brackets && !self.has_unbracketed_arguments(postfix))
    }
}
