//! Errors with a likely cause: what stands where a comma or a statement's end belongs.
//! Invariant: only a bounded number of tokens is looked at, and none is passed unless the cause is certain.

use base::Span;

use super::cursor::{Group, Parser};
use super::postfix::Postfix;
use crate::codes;
use crate::syntax::reports::{quoted, shown};
use crate::syntax::token::TokenKind;

/// Text of more words than this is not put into quotes for the author.
const MOST_WORDS: usize = 16;

impl Parser<'_, '_> {
    /// Says what is wrong with the token that stands where a comma or the group's end belongs. True if the next item can
    /// be read from here.
    pub(super) fn separator(&mut self, group: Group) -> bool {
        if self.is_word("and") {
            self.note(codes::UNEXPECTED, self.span(), "`and` was read as a comma");
            self.bump();
            return true;
        }
        if self.is_word("or") {
            self.unexpected("there is no `or`; a comma means and: ask once per case and return both");
            return false;
        }
        if self.is_word("as") {
            self.unexpected("nothing is renamed with `as`; `=> {name: _.p2}` makes rows with new names");
            return false;
        }
        if self.begins_item(group) {
            let end = Span { start: self.last_end(), end: self.last_end() };
            self.fix(self.span(), format!("a comma is missing before {}", self.found()), end, ",");
            return true;
        }
        if self.arithmetic() {
            return false;
        }
        if let Some(text) = self.inner_quotes(group) {
            let inner = Span { start: text.start + 1, end: text.end - 1 };
            let copy = quoted(inner.of(self.text));
            self.unexpected_fix("a `\"` inside a string is written `\\\"`", text, &copy);
            return false;
        }
        if let Some(text) = self.unquoted_text(group) {
            let copy = quoted(text.of(self.text));
            self.unexpected_fix(
                format!("{} needs double quotes around it", shown_text(text.of(self.text))),
                text,
                &copy,
            );
            return false;
        }
        let closer = group.opener.closer().and_then(TokenKind::spelling).unwrap_or(")");
        self.expected(&format!("`,` or `{closer}`"));
        false
    }

    /// `p2=…` after `p1=…` without a comma, or `p2` after `p1` in a list of names.
    fn begins_item(&self, group: Group) -> bool {
        let next = self.next_kind();
        let names = self.value_at.is_none_or(|value| value < group.start);
        let keyed = match self.kind() {
            TokenKind::Word => names || next.is_operator() || next == TokenKind::Colon,
            TokenKind::String => matches!(next, TokenKind::Eq | TokenKind::Colon),
            _ => false,
        };
        keyed && self.in_group(group) && !self.glued(0)
    }

    fn arithmetic(&mut self) -> bool {
        let number = self.kind() == TokenKind::Number && self.written().starts_with('-');
        if !number && !matches!(self.kind(), TokenKind::Plus | TokenKind::Minus | TokenKind::Star) {
            return false;
        }
        let value = (self.value_at.map(|value| value + 1) == Some(self.at)).then(|| self.token_before());
        let (sign, amount) = (self.token(0), self.token(1));
        let span = if number { sign.span } else { sign.span.to(amount.span) };
        let is_date = value.is_some_and(|word| ["now", "today"].contains(&word));
        if is_date && sign.kind != TokenKind::Star {
            let date = format!("{}{}", value.unwrap_or("now"), span.of(self.text).replace(' ', ""));
            let start = self.last_end().saturating_sub(value.map_or(0, str::len) as u32);
            let wrong = Span { start, end: span.end };
            self.unexpected_fix(format!("a date counted from now has no blanks: `{}`", shown(&date)), wrong, &date);
        } else {
            self.unexpected(
                "values are not added or joined here; bind a text with `name = <<TAG` and use `{{ … }}` in it",
            );
        }
        true
    }

    /// From the start of the last value to the next comma, if that looks like text without quotes.
    fn unquoted_text(&self, group: Group) -> Option<Span> {
        let value_at = self.value_at?;
        let first = self.token_at(value_at);
        let bare = |kind| matches!(kind, TokenKind::Word | TokenKind::Number | TokenKind::Uri);
        // `[1 2]` lacks a comma, not quotes.
        if !bare(first.kind) || (first.kind == TokenKind::Number && !self.glued(0)) {
            return None;
        }
        let mut whole = first.span;
        for index in value_at..group.end.min(value_at + MOST_WORDS + 1) {
            let token = self.token_at(index);
            match token.kind {
                TokenKind::Comma => return Some(whole),
                kind if bare(kind) => {}
                TokenKind::Dot | TokenKind::Colon | TokenKind::Minus => {}
                _ => return None,
            }
            whole = whole.to(token.span);
        }
        (group.end <= value_at + MOST_WORDS).then_some(whole)
    }

    /// `"He said "hi" to me"`: from the first quote to the last before the next comma.
    fn inner_quotes(&self, group: Group) -> Option<Span> {
        let first = self.token_at(self.value_at.filter(|value| value + 1 == self.at)?);
        if first.kind != TokenKind::String || !self.glued(0) {
            return None;
        }
        let tokens = (self.at..group.end).take(MOST_WORDS).map(|index| self.token_at(index));
        let last = tokens.take_while(|token| token.kind != TokenKind::Comma).last()?;
        (last.kind == TokenKind::String).then(|| first.span.to(last.span))
    }

    /// After a dot that no name follows: the bare word of a value, such as `v1.2`, up to its end.
    pub(super) fn glued_text(&self) -> Option<Span> {
        use TokenKind::{Colon, Dot, Minus, Number, Word};
        let value_at = self.value_at.filter(|value| *value < self.at)?;
        let mut whole = self.token_at(value_at).span;
        for index in value_at..value_at + MOST_WORDS {
            let token = self.token_at(index);
            if !matches!(token.kind, Word | Number | Dot | Colon | Minus)
                || (index > value_at && token.span.start != whole.end)
            {
                return (index > self.at).then_some(whole);
            }
            whole = whole.to(token.span);
        }
        None
    }

    /// Says what is wrong with the token that stands where a statement should end, and goes where the next can begin.
    pub(super) fn after_statement(&mut self, binds: bool) {
        match self.kind() {
            TokenKind::Newline | TokenKind::End => {}
            TokenKind::Semicolon => self.semicolon(),
            TokenKind::Comma if binds && !self.lost => {
                let span = self.span();
                self.bump();
                if self.at_binding() {
                    let message =
                        format!("one statement per line: put `{} = …` on a line of its own", shown(self.written()));
                    self.reports.error(codes::UNEXPECTED, span, message);
                } else {
                    self.fix(span, "a line `name = …` binds one name and ends without a comma", span, "");
                    self.skip_statement(&[TokenKind::Semicolon]);
                }
            }
            _ => {
                self.misplaced();
                if !self.at_binding() {
                    self.skip_statement(&[TokenKind::Semicolon]);
                    self.eat(TokenKind::Semicolon);
                }
            }
        }
        self.eat(TokenKind::Newline);
        self.lost = false;
    }

    fn semicolon(&mut self) {
        let span = self.span();
        self.bump();
        if matches!(self.kind(), TokenKind::Newline | TokenKind::End) {
            self.note(codes::UNEXPECTED, span, "a line ends without `;`; it was left out");
        } else {
            let message = "one statement per line: put what follows `;` on a line of its own";
            self.reports.error(codes::UNEXPECTED, span, message);
        }
    }

    /// At a token that neither continues nor ends a statement.
    fn misplaced(&mut self) {
        let written = self.written();
        if self.at_binding() {
            let name = shown(written);
            self.unexpected(format!("one statement per line: put `{name} = …` on a line of its own"));
        } else if self.kind() == TokenKind::Eq {
            self.unexpected("only a plain name can stand before `=`, as in `name = …`");
        } else if let Some(postfix) = Postfix::named(written) {
            self.postfix_without_dot(postfix);
        } else if self.is_word("and") {
            let span = Span { start: self.last_end(), end: self.span().end };
            self.unexpected_fix("several results are separated by commas", span, ",");
        } else if self.kind() == TokenKind::Colon {
            let wrong = Span { start: self.last_end(), end: self.token(1).span.start };
            let message = "`catalog:Entity` is written without blanks, and `key: value` belongs into `{…}`";
            self.unexpected_fix(message, wrong, ":");
        } else if self.kind() == TokenKind::Star || !self.arithmetic() {
            let found = self.found();
            self.unexpected(format!(
                "one statement per line: expected `.`, `[`, `{{`, `=>`, `,` or the end of the line, found {found}"
            ));
        }
    }

    /// `rows limit 5` or `rows limit(5)`, at the name.
    fn postfix_without_dot(&mut self, postfix: Postfix) {
        let (place, start) = (self.span(), self.last_end());
        let name = shown(self.written());
        let message = format!("`{name}` is applied with a dot: `.{name}`");
        self.bump();
        if self.opens() {
            self.fix(place, message, Span { start, end: place.start }, ".");
        } else {
            let (arguments, copy) = self.loose_arguments(postfix);
            let wrong = Span { start, end: arguments.end.max(place.end) };
            self.fix(place, message, wrong, &format!(".{name}{copy}"));
        }
        self.lost = true;
    }
}

fn shown_text(text: &str) -> String {
    format!("`{}`", shown(text))
}
