//! Reads characters that begin no token, with the bare words that contain them.
//! Invariant: a word with invalid characters is one token and has one diagnostic.

use base::{Diagnostic, Span};

use super::Lexer;
use crate::codes;
use crate::syntax::reports::{quote_as_literal, shorten_for_message};
use crate::syntax::token::TokenKind;

/// The longest bare word in bytes that a correction repeats.
const MAX_COPIED_WORD_BYTES: usize = 120;

impl Lexer<'_, '_> {
    /// Reads a character that begins no token: a comment or operator of another language, or part of an invalid word.
    pub(super) fn read_stray_character(&mut self, start: usize) {
        let c = self.text_from(start).chars().next().unwrap_or(' ');
        let span = Span::new(start, start + c.len_utf8());
        let next = self.text_from(start + c.len_utf8()).chars().next();
        match c {
            '#' if !self.is_adjacent(start) && next.is_none_or(|next| next.is_whitespace() || next == '#') => {
                self.skip_foreign_comment(start, "#");
            }
            '/' if !self.is_adjacent(start) && next == Some('/') => self.skip_foreign_comment(start, "//"),
            '|' | '&' => {
                let end =
                    start + self.text_from(start).len() - self.text_from(start).trim_start_matches(['|', '&']).len();
                self.report_or_operator(Span::new(start, end));
            }
            '!' if next == Some('~') => {
                let message =
                    "there is no `!~`: `~` is of rows that have the text, `!=` of those whose whole value differs";
                self.reports.add_error(codes::BAD_CHARACTER, Span::new(start, start + 2), message);
                self.push_token(TokenKind::Ne, Span::new(start, start + 2));
                self.skip_to(start + 2);
            }
            '+' if !self.is_adjacent(start) => self.push_token(TokenKind::Plus, span),
            '*' if !self.is_adjacent(start) => self.push_token(TokenKind::Star, span),
            c => self.report_stray_word(start, c),
        }
    }

    /// Returns whether the last token ends at `start` and may be the beginning of a longer invalid word.
    fn is_adjacent(&self, start: usize) -> bool {
        use TokenKind::{Bad, Colon, Dot, Minus, Number, Plus, Row, Star, Word};
        self.tokens.last().is_some_and(|last| {
            last.span.end as usize == start
                && matches!(last.kind, Word | Number | Dot | Colon | Minus | Row | Plus | Star | Bad)
        })
    }

    /// Reads a bare word that contains an invalid character, such as `owner/name`, `a@b.c` or `50%`. The word extends
    /// to the next blank or delimiter, and tokens that were read from its beginning are removed.
    pub(super) fn report_stray_word(&mut self, at: usize, c: char) {
        let mut start = at;
        while self.is_adjacent(start) {
            start = self.tokens.pop().map_or(start, |last| last.span.start as usize);
        }
        let rest = self.text_from(at + c.len_utf8());
        let is_delimiter = |c: char| c.is_whitespace() || ",()[]{}\"'`=<>~;".contains(c);
        let end = at + c.len_utf8() + rest.find(is_delimiter).unwrap_or(rest.len());
        let span = Span::new(start, end);
        let word = span.of(self.text);
        let name = if c.is_control() { c.escape_debug().to_string() } else { c.to_string() };
        if word.len() == c.len_utf8() || word.len() > MAX_COPIED_WORD_BYTES || word.starts_with('.') {
            self.reports.add_error(
                codes::BAD_CHARACTER,
                span,
                format!("`{name}` means nothing here; text goes into double quotes"),
            );
        } else {
            let message = format!(
                "`{name}` cannot stand in the bare word `{}`; put it in double quotes",
                shorten_for_message(word)
            );
            self.reports.add_with_fix(
                Diagnostic::error(codes::BAD_CHARACTER, span, message),
                span,
                &quote_as_literal(word),
            );
        }
        self.push_token(TokenKind::Bad, span);
        self.skip_to(end);
    }

    /// Skips a comment of another language, and adds a note.
    fn skip_foreign_comment(&mut self, start: usize, sign: &str) {
        let end = self.find_line_end(start);
        let message = format!("a comment starts with `;;`; this line's `{sign} …` was left out");
        let span = Span::new(start, start + sign.len());
        self.reports.add(Diagnostic::note(codes::BAD_CHARACTER, span, message));
        self.skip_to(end);
    }

    /// Reports `|`, `||`, `&` and similar operators.
    fn report_or_operator(&mut self, span: Span) {
        let sign = shorten_for_message(span.of(self.text));
        let message = format!(
            "`{sign}` means nothing here: a comma means and, there is no or (ask twice), and steps are chained with `.`"
        );
        self.reports.add_error(codes::BAD_CHARACTER, span, message);
        self.push_token(TokenKind::Bad, span);
        self.skip_to(span.end as usize);
    }
}
