//! Splits program text into tokens, without comments and blanks. `quote` reads strings, `heredoc` reads heredocs, and
//! `stray` reads characters that begin no token.
//! Invariant: each byte is read a bounded number of times. Each token is inside the text and ends at character
//! boundaries.

mod heredoc;
mod quote;
mod raw;
mod stray;

use base::{Diagnostic, Span};
use logos::Logos;

use super::ParseMode;
use super::reports::{Reports, quote_as_literal, shorten_for_message};
use super::token::{Token, TokenKind};
use crate::codes;
use heredoc::ClosingLines;
pub(super) use heredoc::heredoc_tag_and_body;
use quote::QuoteScans;
pub(super) use quote::decode_string;
use raw::RawToken;

/// The result of splitting a text into tokens.
pub(super) struct Lexed {
    /// The tokens, with a `Newline` for every line break between tokens.
    pub tokens: Vec<Token>,
    /// Whether an unclosed string or heredoc contains the rest of the text. The open brackets before it are then not
    /// reported.
    pub rest_discarded: bool,
    /// The number of bytes that were read. A test checks that it grows linearly.
    pub steps: usize,
}

/// Splits a text into tokens. Text that is not a token is reported and becomes a `Bad` token.
pub(super) fn lex<'t>(text: &'t str, mode: ParseMode, reports: &mut Reports<'t>) -> Lexed {
    let mut lexer = Lexer {
        text,
        mode,
        raw: RawToken::lexer(text),
        reports,
        tokens: Vec::new(),
        quote_scans: QuoteScans::default(),
        closing_lines: None,
        resume_at: 0,
        rest_discarded: false,
        steps: 0,
    };
    while let Some(raw) = lexer.raw.next() {
        lexer.read_token(raw.unwrap_or(RawToken::Other));
    }
    Lexed { tokens: lexer.tokens, rest_discarded: lexer.rest_discarded, steps: lexer.steps }
}

/// The state of the lexer.
struct Lexer<'t, 'r> {
    text: &'t str,
    mode: ParseMode,
    /// The generated lexer of the raw tokens. It has the current position in the text.
    raw: logos::Lexer<'t, RawToken>,
    reports: &'r mut Reports<'t>,
    /// The tokens read so far.
    tokens: Vec<Token>,
    /// The last search for each kind of closing quote.
    quote_scans: QuoteScans,
    /// The lines that may close a heredoc. They are collected at the first heredoc.
    closing_lines: Option<ClosingLines<'t>>,
    /// The offset to continue at when the current line ends, or 0 to continue at the next line. It skips the body of a
    /// heredoc whose opening line has more text.
    resume_at: usize,
    /// The value of [`Lexed::rest_discarded`] so far.
    rest_discarded: bool,
    /// The value of [`Lexed::steps`] so far.
    steps: usize,
}

impl<'t> Lexer<'t, '_> {
    /// Makes the token for a raw token. Kinds that need more than their pattern have their own methods.
    fn read_token(&mut self, raw: RawToken) {
        let range = self.raw.span();
        let start = range.start;
        let span = Span::new(range.start, range.end);
        self.steps += range.len();
        if let Some(kind) = raw.fixed_kind() {
            self.push_token(kind, span);
            return;
        }
        match raw {
            RawToken::Newline => {
                if self.resume_at > range.end {
                    self.skip_to(self.resume_at);
                } else {
                    self.push_token(TokenKind::Newline, span);
                }
            }
            RawToken::Word => self.read_word(span),
            RawToken::BadNumber => self.report_bad_number(span),
            RawToken::Quote => self.read_string(start),
            RawToken::TripleQuote => self.read_triple_quoted_string(start),
            RawToken::OtherQuote => self.read_foreign_string(start),
            RawToken::Fence => self.skip_fence(start),
            RawToken::Heredoc => self.read_heredoc(start),
            RawToken::Alias => self.read_alias(span),
            RawToken::Other => self.read_stray_character(start),
            _ => {}
        }
    }

    fn push_token(&mut self, kind: TokenKind, span: Span) {
        self.tokens.push(Token { kind, span });
    }

    /// Continues at the offset `to`, if it is behind the current token.
    fn skip_to(&mut self, to: usize) {
        let end = self.raw.span().end;
        if to > end && self.text.is_char_boundary(to) {
            self.steps += to - end;
            self.raw.bump(to - end);
        }
    }

    /// Returns the text from an offset to the end.
    fn text_from(&self, from: usize) -> &'t str {
        self.text.get(from..).unwrap_or("")
    }

    /// Returns the offset of the end of the line that contains `from`, before its `
    /// ` or `\r
    /// `.
    fn find_line_end(&mut self, from: usize) -> usize {
        let rest = self.text_from(from);
        let line = rest.find('\n').map_or(rest, |at| rest.get(..at).unwrap_or(""));
        self.steps += line.len();
        from + line.strip_suffix('\r').unwrap_or(line).len()
    }

    /// Reads a word. A word such as `1_000` is reported as a misspelled number.
    fn read_word(&mut self, span: Span) {
        let text = span.of(self.text);
        if text == "_" {
            self.push_token(TokenKind::Row, span);
        } else if text.starts_with(|c: char| c.is_ascii_digit())
            && text.contains('_')
            && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
        {
            let message = format!("a number is written without `_`: `{}`", shorten_for_message(text));
            self.reports.add_with_fix(
                Diagnostic::error(codes::BAD_NUMBER, span, message),
                span,
                &text.replace('_', ""),
            );
            self.push_token(TokenKind::Bad, span);
        } else {
            self.push_token(TokenKind::Word, span);
        }
    }

    /// Reports a misspelled number. The correction is the spelling that was probably meant.
    fn report_bad_number(&mut self, span: Span) {
        let text = span.of(self.text);
        let digits = text.trim_start_matches(['+', '-']);
        let unsigned = digits.strip_suffix('.').unwrap_or(digits);
        let is_number = unsigned.parse::<f64>().is_ok();
        let date = self.tokens.last().filter(|last| ["now", "today"].contains(&last.span.of(self.text)));
        if let Some(date) = date.filter(|_| text.starts_with(['+', '-'])) {
            let copy = format!("{}{text}", date.span.of(self.text));
            let message = format!("a date counted from now has no blanks: `{}`", shorten_for_message(&copy));
            self.reports.add_with_fix(Diagnostic::error(codes::BAD_NUMBER, span, message), date.span.to(span), &copy);
            self.push_token(TokenKind::Bad, span);
            return;
        }
        let (message, copy) = if text.starts_with('-') && !is_number && !digits.contains('.') {
            (
                format!("`{}` is no number; a date counted from now is `now{0}`", shorten_for_message(text)),
                format!("now{text}"),
            )
        } else if is_number {
            let sign = if text.starts_with('-') { "-" } else { "" };
            (format!("`{}` is not how a number is written", shorten_for_message(text)), format!("{sign}{unsigned}"))
        } else {
            (format!("`{}` is no number; as text it needs quotes", shorten_for_message(text)), quote_as_literal(text))
        };
        self.reports.add_with_fix(Diagnostic::error(codes::BAD_NUMBER, span, message), span, &copy);
        self.push_token(TokenKind::Bad, span);
    }

    /// Reads a token that is spelled as in another language, and adds a note.
    fn read_alias(&mut self, span: Span) {
        let written = span.of(self.text);
        let kind = raw::kind_of_alias(written);
        let message = format!("`{written}` was read as `{kind}`");
        self.reports.add(Diagnostic::note(codes::UNEXPECTED, span, message));
        self.push_token(kind, span);
    }

    /// Skips a Markdown fence around the program.
    fn skip_fence(&mut self, start: usize) {
        // A fence is the first token of a line. Only blanks can be between the line break and this token, because a
        // comment ends at a line break.
        let opens_line = matches!(self.tokens.last().map(|token| token.kind), None | Some(TokenKind::Newline));
        if !opens_line {
            self.read_foreign_string(start);
            return;
        }
        let end = self.find_line_end(start);
        let span = Span::new(start, start + 3);
        self.reports.add(Diagnostic::note(codes::BAD_CHARACTER, span, "the ``` fence around the program was left out"));
        self.skip_to(end);
    }
}
