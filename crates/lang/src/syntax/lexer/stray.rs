//! Characters that begin no token.
//! Invariant: a bad word is one token and one report, whatever it is made of.

use base::{Diagnostic, Span};

use super::Lexer;
use crate::codes;
use crate::syntax::reports::{quoted, shown};
use crate::syntax::token::TokenKind;

/// A bare word longer than this is not repeated in a correction.
const LONGEST: usize = 120;

impl Lexer<'_, '_> {
    pub(super) fn stray(&mut self, start: usize) {
        let c = self.rest(start).chars().next().unwrap_or(' ');
        let span = Span::new(start, start + c.len_utf8());
        let next = self.rest(start + c.len_utf8()).chars().next();
        match c {
            '#' if !self.glued(start) && next.is_none_or(|next| next.is_whitespace() || next == '#') => {
                self.other_comment(start, "#");
            }
            '/' if !self.glued(start) && next == Some('/') => self.other_comment(start, "//"),
            '|' | '&' => {
                let end = start + self.rest(start).len() - self.rest(start).trim_start_matches(['|', '&']).len();
                self.no_or(Span::new(start, end));
            }
            '!' if next == Some('~') => {
                let message =
                    "there is no `!~`: `~` is of rows that have the text, `!=` of those whose whole value differs";
                self.reports.error(codes::BAD_CHARACTER, Span::new(start, start + 2), message);
                self.push(TokenKind::Ne, Span::new(start, start + 2));
                self.jump(start + 2);
            }
            '+' if !self.glued(start) => self.push(TokenKind::Plus, span),
            '*' if !self.glued(start) => self.push(TokenKind::Star, span),
            c => self.bad_word(start, c),
        }
    }

    /// Whether the last token is part of a word that goes on at `start`.
    fn glued(&self, start: usize) -> bool {
        use TokenKind::{Bad, Colon, Dot, Minus, Number, Plus, Row, Star, Word};
        self.tokens.last().is_some_and(|last| {
            last.span.end as usize == start
                && matches!(last.kind, Word | Number | Dot | Colon | Minus | Row | Plus | Star | Bad)
        })
    }

    /// `owner/name`, `a@b.c`, `50%`: everything without a blank or a delimiter around a character that words do not have.
    pub(super) fn bad_word(&mut self, at: usize, c: char) {
        let mut start = at;
        while self.glued(start) {
            start = self.tokens.pop().map_or(start, |last| last.span.start as usize);
        }
        let rest = self.rest(at + c.len_utf8());
        let ends = |c: char| c.is_whitespace() || ",()[]{}\"'`=<>~;".contains(c);
        let end = at + c.len_utf8() + rest.find(ends).unwrap_or(rest.len());
        let span = Span::new(start, end);
        let word = span.of(self.text);
        let name = if c.is_control() { c.escape_debug().to_string() } else { c.to_string() };
        if word.len() == c.len_utf8() || word.len() > LONGEST || word.starts_with('.') {
            self.reports.error(
                codes::BAD_CHARACTER,
                span,
                format!("`{name}` means nothing here; text goes into double quotes"),
            );
        } else {
            let message = format!("`{name}` cannot stand in the bare word `{}`; put it in double quotes", shown(word));
            self.reports.fix(Diagnostic::error(codes::BAD_CHARACTER, span, message), span, &quoted(word));
        }
        self.push(TokenKind::Bad, span);
        self.jump(end);
    }

    fn other_comment(&mut self, start: usize, sign: &str) {
        let end = self.line_end(start);
        let message = format!("a comment starts with `;;`; this line's `{sign} …` was left out");
        let span = Span::new(start, start + sign.len());
        self.reports.add(Diagnostic::note(codes::BAD_CHARACTER, span, message));
        self.jump(end);
    }

    fn no_or(&mut self, span: Span) {
        let sign = shown(span.of(self.text));
        let message = format!(
            "`{sign}` means nothing here: a comma means and, there is no or (ask twice), and steps are chained with `.`"
        );
        self.reports.error(codes::BAD_CHARACTER, span, message);
        self.push(TokenKind::Bad, span);
        self.jump(span.end as usize);
    }
}
