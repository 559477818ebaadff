//! Reports syntax errors that have a likely cause, where a comma or the end of a statement is missing.
//! Invariant: a bounded number of tokens is read ahead. Tokens are consumed only if the cause is certain.

use base::Span;

use super::cursor::{BracketGroup, Parser};
use super::postfix::{Postfix, UnbracketedArguments};
use crate::codes;
use crate::syntax::reports::{quote_as_literal, shorten_for_message};
use crate::syntax::token::TokenKind;

/// The longest text in tokens that a correction puts into quotes.
const MAX_QUOTED_TOKENS: usize = 16;

impl Parser<'_, '_> {
    /// Reports a token in place of a comma or the end of the group. Returns whether the next item can be parsed from
    /// here.
    pub(super) fn report_separator(&mut self, group: BracketGroup) -> bool {
        if self.is_word("and") {
            self.report_note(codes::UNEXPECTED, self.span(), "`and` was read as a comma");
            self.consume();
            return true;
        }
        if self.is_word("or") {
            self.report_unexpected("there is no `or`; a comma means and: ask once per case and return both");
            return false;
        }
        if self.is_word("as") {
            self.report_unexpected("nothing is renamed with `as`; `=> {name: _.p2}` makes rows with new names");
            return false;
        }
        if self.begins_item(group) {
            let end = Span { start: self.previous_end(), end: self.previous_end() };
            self.report_fix(self.span(), format!("a comma is missing before {}", self.describe_token()), end, ",");
            return true;
        }
        if self.report_arithmetic() {
            return false;
        }
        if let Some(text) = self.find_inner_quotes(group) {
            let inner = Span { start: text.start + 1, end: text.end - 1 };
            let copy = quote_as_literal(inner.of(self.text));
            self.report_unexpected_fix("a `\"` inside a string is written `\\\"`", text, &copy);
            return false;
        }
        if let Some(text) = self.find_unquoted_text(group) {
            let copy = quote_as_literal(text.of(self.text));
            self.report_unexpected_fix(
                format!("{} needs double quotes around it", shorten_in_backticks(text.of(self.text))),
                text,
                &copy,
            );
            return false;
        }
        let closer = group.opener.closer().and_then(TokenKind::spelling).unwrap_or(")");
        self.report_expected(&format!("`,` or `{closer}`"));
        false
    }

    /// Returns whether an item begins here although the comma before it is missing, such as `p2=…` after `p1=…`, or
    /// `p2` after `p1` in a list of names.
    fn begins_item(&self, group: BracketGroup) -> bool {
        let next = self.next_kind();
        let names = self.last_value.is_none_or(|value| value < group.start);
        let keyed = match self.kind() {
            TokenKind::Word => names || next.is_operator() || next == TokenKind::Colon,
            TokenKind::String => matches!(next, TokenKind::Eq | TokenKind::Colon),
            _ => false,
        };
        keyed && self.in_group(group) && !self.is_adjacent(0)
    }

    /// Reports an arithmetic operator between values, as in `now - 7d` or `a + b`. Returns whether there is one.
    fn report_arithmetic(&mut self) -> bool {
        let number = self.kind() == TokenKind::Number && self.token_text().starts_with('-');
        if !number && !matches!(self.kind(), TokenKind::Plus | TokenKind::Minus | TokenKind::Star) {
            return false;
        }
        let value = (self.last_value.map(|value| value + 1) == Some(self.index)).then(|| self.previous_text());
        let sign = self.token(0);
        let amount = self.token(1);
        let span = if number { sign.span } else { sign.span.to(amount.span) };
        let is_date = value.is_some_and(|word| ["now", "today"].contains(&word));
        if is_date && sign.kind != TokenKind::Star {
            let date = format!("{}{}", value.unwrap_or("now"), span.of(self.text).replace(' ', ""));
            let start = self.previous_end().saturating_sub(value.map_or(0, str::len) as u32);
            let wrong = Span { start, end: span.end };
            self.report_unexpected_fix(
                format!("a date counted from now has no blanks: `{}`", shorten_for_message(&date)),
                wrong,
                &date,
            );
        } else {
            self.report_unexpected(
                "values are not added or joined here; bind a text with `name = <<TAG` and use `{{ … }}` in it",
            );
        }
        true
    }

    /// Returns the span from the start of the last value to the next comma, if this looks like a text without quotes.
    fn find_unquoted_text(&self, group: BracketGroup) -> Option<Span> {
        let last_value = self.last_value?;
        let first = self.token_at(last_value);
        let bare = |kind| matches!(kind, TokenKind::Word | TokenKind::Number | TokenKind::Uri);
        // `[1 2]` lacks a comma, so quotes would be the wrong correction.
        if !bare(first.kind) || (first.kind == TokenKind::Number && !self.is_adjacent(0)) {
            return None;
        }
        let mut whole = first.span;
        for index in last_value..group.end.min(last_value + MAX_QUOTED_TOKENS + 1) {
            let token = self.token_at(index);
            match token.kind {
                TokenKind::Comma => return Some(whole),
                kind if bare(kind) => {}
                TokenKind::Dot | TokenKind::Colon | TokenKind::Minus => {}
                _ => return None,
            }
            whole = whole.to(token.span);
        }
        (group.end <= last_value + MAX_QUOTED_TOKENS).then_some(whole)
    }

    /// Returns the span of a string with unescaped quotes inside, such as `"He said "hi" to me"`. It extends from the
    /// first quote to the last quote before the next comma.
    fn find_inner_quotes(&self, group: BracketGroup) -> Option<Span> {
        let first = self.token_at(self.last_value.filter(|value| value + 1 == self.index)?);
        if first.kind != TokenKind::String || !self.is_adjacent(0) {
            return None;
        }
        let tokens = (self.index..group.end).take(MAX_QUOTED_TOKENS).map(|index| self.token_at(index));
        let last = tokens.take_while(|token| token.kind != TokenKind::Comma).last()?;
        (last.kind == TokenKind::String).then(|| first.span.to(last.span))
    }

    /// Returns the span of a value without quotes that contains dots, such as `v1.2`. The current token follows a dot
    /// and is not a name.
    pub(super) fn find_unquoted_dotted_text(&self) -> Option<Span> {
        use TokenKind::{Colon, Dot, Minus, Number, Word};
        let last_value = self.last_value.filter(|value| *value < self.index)?;
        let mut whole = self.token_at(last_value).span;
        for index in last_value..last_value + MAX_QUOTED_TOKENS {
            let token = self.token_at(index);
            if !matches!(token.kind, Word | Number | Dot | Colon | Minus)
                || (index > last_value && token.span.start != whole.end)
            {
                return (index > self.index).then_some(whole);
            }
            whole = whole.to(token.span);
        }
        None
    }

    /// Reports a token in place of the end of a statement, and skips to the start of the next statement.
    pub(super) fn finish_statement(&mut self, binds: bool) {
        match self.kind() {
            TokenKind::Newline | TokenKind::End => {}
            TokenKind::Semicolon => self.report_semicolon(),
            TokenKind::Comma if binds && !self.recovering => {
                let span = self.span();
                self.consume();
                if self.at_binding() {
                    let message = format!(
                        "one statement per line: put `{} = …` on a line of its own",
                        shorten_for_message(self.token_text())
                    );
                    self.reports.add_error(codes::UNEXPECTED, span, message);
                } else {
                    self.report_fix(span, "a line `name = …` binds one name and ends without a comma", span, "");
                    self.skip_statement(&[TokenKind::Semicolon]);
                }
            }
            _ => {
                self.report_misplaced_token();
                if !self.at_binding() {
                    self.skip_statement(&[TokenKind::Semicolon]);
                    self.consume_if(TokenKind::Semicolon);
                }
            }
        }
        self.consume_if(TokenKind::Newline);
        self.recovering = false;
    }

    /// Reports a semicolon: as a note at the end of a line, and as an error elsewhere.
    fn report_semicolon(&mut self) {
        let span = self.span();
        self.consume();
        if matches!(self.kind(), TokenKind::Newline | TokenKind::End) {
            self.report_note(codes::UNEXPECTED, span, "a line ends without `;`; it was left out");
        } else {
            let message = "one statement per line: put what follows `;` on a line of its own";
            self.reports.add_error(codes::UNEXPECTED, span, message);
        }
    }

    /// Reports a token that neither continues nor ends a statement.
    fn report_misplaced_token(&mut self) {
        let word = self.token_text();
        if self.at_binding() {
            let name = shorten_for_message(word);
            self.report_unexpected(format!("one statement per line: put `{name} = …` on a line of its own"));
        } else if self.kind() == TokenKind::Eq {
            self.report_unexpected("only a plain name can stand before `=`, as in `name = …`");
        } else if let Some(postfix) = Postfix::from_name(word) {
            self.report_postfix_without_dot(postfix);
        } else if self.is_word("and") {
            let span = Span { start: self.previous_end(), end: self.span().end };
            self.report_unexpected_fix("several results are separated by commas", span, ",");
        } else if self.kind() == TokenKind::Colon {
            let wrong = Span { start: self.previous_end(), end: self.token(1).span.start };
            let message = "`catalog:Entity` is written without blanks, and `key: value` belongs into `{…}`";
            self.report_unexpected_fix(message, wrong, ":");
        } else if self.kind() == TokenKind::Star || !self.report_arithmetic() {
            let found = self.describe_token();
            self.report_unexpected(format!(
                "one statement per line: expected `.`, `[`, `{{`, `=>`, `,` or the end of the line, found {found}"
            ));
        }
    }

    /// Reports a postfix without a dot, such as `rows limit 5` or `rows limit(5)`. The current token is the name of
    /// the postfix.
    fn report_postfix_without_dot(&mut self, postfix: Postfix) {
        let name_span = self.span();
        let start = self.previous_end();
        let name = shorten_for_message(self.token_text());
        let message = format!("`{name}` is applied with a dot: `.{name}`");
        self.consume();
        if self.at_opener() {
            self.report_fix(name_span, message, Span { start, end: name_span.start }, ".");
        } else {
            let UnbracketedArguments { span: arguments, bracketed: copy } = self.skip_unbracketed_arguments(postfix);
            let wrong = Span { start, end: arguments.end.max(name_span.end) };
            self.report_fix(name_span, message, wrong, &format!(".{name}{copy}"));
        }
        self.recovering = true;
    }
}

fn shorten_in_backticks(text: &str) -> String {
    format!("`{}`", shorten_for_message(text))
}
