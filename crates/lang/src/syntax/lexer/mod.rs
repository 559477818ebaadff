//! Text to tokens. Comments and blanks end here; strings are in `quote`, blocks of text in `heredoc`, stray characters in
//! `stray`.
//! Invariant: each byte is looked at a bounded number of times; every token lies inside the text, between characters.

mod heredoc;
mod quote;
mod raw;
mod stray;

use base::{Diagnostic, Span};
use logos::Logos;

use super::Mode;
use super::reports::{Reports, quoted, shown};
use super::token::{Token, TokenKind};
use crate::codes;
use heredoc::ClosingLines;
pub(super) use heredoc::parts as heredoc_parts;
use quote::Scans;
pub(super) use quote::decode;
use raw::Raw;

pub(super) struct Lexed {
    /// With a `Newline` for every line break that stands between tokens.
    pub tokens: Vec<Token>,
    /// A block of text that nothing closes took the rest: what is open before it is not the author's mistake.
    pub cut: bool,
    pub steps: usize,
}

pub(super) fn lex<'t>(text: &'t str, mode: Mode, reports: &mut Reports<'t>) -> Lexed {
    let mut lexer = Lexer {
        text,
        mode,
        raw: Raw::lexer(text),
        reports,
        tokens: Vec::new(),
        scans: Scans::default(),
        closing: None,
        resume: 0,
        cut: false,
        steps: 0,
    };
    while let Some(raw) = lexer.raw.next() {
        lexer.one(raw.unwrap_or(Raw::Other));
    }
    Lexed { tokens: lexer.tokens, cut: lexer.cut, steps: lexer.steps }
}

struct Lexer<'t, 'r> {
    text: &'t str,
    mode: Mode,
    raw: logos::Lexer<'t, Raw>,
    reports: &'r mut Reports<'t>,
    tokens: Vec<Token>,
    scans: Scans,
    /// Made when the first block is opened.
    closing: Option<ClosingLines<'t>>,
    /// Where to go on at the end of this line: after the body of a block whose opener had more on its line.
    resume: usize,
    cut: bool,
    steps: usize,
}

impl<'t> Lexer<'t, '_> {
    fn one(&mut self, raw: Raw) {
        let range = self.raw.span();
        let (start, span) = (range.start, Span::new(range.start, range.end));
        self.steps += range.len();
        if let Some(kind) = raw.plain() {
            self.push(kind, span);
            return;
        }
        match raw {
            Raw::Newline => {
                if self.resume > range.end {
                    self.jump(self.resume);
                } else {
                    self.push(TokenKind::Newline, span);
                }
            }
            Raw::Word => self.word(span),
            Raw::BadNumber => self.bad_number(span),
            Raw::Quote => self.string(start),
            Raw::TripleQuote => self.triple(start),
            Raw::OtherQuote => self.other_quote(start),
            Raw::Fence => self.fence(start),
            Raw::Heredoc => self.heredoc(start),
            Raw::Alias => self.alias(span),
            Raw::Other => self.stray(start),
            _ => {}
        }
    }

    fn push(&mut self, kind: TokenKind, span: Span) {
        self.tokens.push(Token { kind, span });
    }

    /// Goes on reading at `to`.
    fn jump(&mut self, to: usize) {
        let end = self.raw.span().end;
        if to > end && self.text.is_char_boundary(to) {
            self.steps += to - end;
            self.raw.bump(to - end);
        }
    }

    fn rest(&self, from: usize) -> &'t str {
        self.text.get(from..).unwrap_or("")
    }

    /// Where the line of `from` ends, before its `\n` or `\r\n`.
    fn line_end(&mut self, from: usize) -> usize {
        let rest = self.rest(from);
        let line = rest.find('\n').map_or(rest, |at| rest.get(..at).unwrap_or(""));
        self.steps += line.len();
        from + line.strip_suffix('\r').unwrap_or(line).len()
    }

    fn word(&mut self, span: Span) {
        let text = span.of(self.text);
        if text == "_" {
            self.push(TokenKind::Row, span);
        } else if text.starts_with(|c: char| c.is_ascii_digit())
            && text.contains('_')
            && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'_')
        {
            let message = format!("a number is written without `_`: `{}`", shown(text));
            self.reports.fix(Diagnostic::error(codes::BAD_NUMBER, span, message), span, &text.replace('_', ""));
            self.push(TokenKind::Bad, span);
        } else {
            self.push(TokenKind::Word, span);
        }
    }

    fn bad_number(&mut self, span: Span) {
        let text = span.of(self.text);
        let digits = text.trim_start_matches(['+', '-']);
        let unsigned = digits.strip_suffix('.').unwrap_or(digits);
        let is_number = unsigned.parse::<f64>().is_ok();
        let date = self.tokens.last().filter(|last| ["now", "today"].contains(&last.span.of(self.text)));
        if let Some(date) = date.filter(|_| text.starts_with(['+', '-'])) {
            let copy = format!("{}{text}", date.span.of(self.text));
            let message = format!("a date counted from now has no blanks: `{}`", shown(&copy));
            self.reports.fix(Diagnostic::error(codes::BAD_NUMBER, span, message), date.span.to(span), &copy);
            self.push(TokenKind::Bad, span);
            return;
        }
        let (message, copy) = if text.starts_with('-') && !is_number && !digits.contains('.') {
            (format!("`{}` is no number; a date counted from now is `now{0}`", shown(text)), format!("now{text}"))
        } else if is_number {
            let sign = if text.starts_with('-') { "-" } else { "" };
            (format!("`{}` is not how a number is written", shown(text)), format!("{sign}{unsigned}"))
        } else {
            (format!("`{}` is no number; as text it needs quotes", shown(text)), quoted(text))
        };
        self.reports.fix(Diagnostic::error(codes::BAD_NUMBER, span, message), span, &copy);
        self.push(TokenKind::Bad, span);
    }

    fn alias(&mut self, span: Span) {
        let written = span.of(self.text);
        let kind = raw::meant(written);
        let message = format!("`{written}` was read as `{kind}`");
        self.reports.add(Diagnostic::note(codes::UNEXPECTED, span, message));
        self.push(kind, span);
    }

    /// A Markdown fence around the program.
    fn fence(&mut self, start: usize) {
        // Between a line break and this token there are only blanks: a comment would have run to the next line break.
        let opens_line = matches!(self.tokens.last().map(|token| token.kind), None | Some(TokenKind::Newline));
        if !opens_line {
            self.other_quote(start);
            return;
        }
        let end = self.line_end(start);
        let span = Span::new(start, start + 3);
        self.reports.add(Diagnostic::note(codes::BAD_CHARACTER, span, "the ``` fence around the program was left out"));
        self.jump(end);
    }
}
