//! The place in the tokens, and how to move: by one, into a group, out of it, past what cannot be read.
//! Invariant: no move goes beyond the group or the statement it is in; after an error nothing is reported until the next
//! comma, closer or statement.

use base::{Code, Diagnostic, Limits, Span};

use crate::codes;
use crate::syntax::layout::{Close, Layout};
use crate::syntax::reports::{Reports, shown};
use crate::syntax::token::{Token, TokenKind};
use crate::syntax::tree::Name;

/// Stack safety for a setting that is larger than anybody needs.
const DEEPEST: usize = 256;

pub(super) struct Parser<'t, 'r> {
    pub text: &'t str,
    tokens: Vec<Token>,
    groups: Vec<Close>,
    pub at: usize,
    /// Where the last value began: an error behind it may be about its quotes.
    pub value_at: Option<usize>,
    depth: usize,
    deepest: usize,
    pub reports: &'r mut Reports<'t>,
    /// An error was found and nothing was skipped yet: what follows is its consequence.
    pub lost: bool,
    too_deep_said: bool,
    pub steps: usize,
}

/// A bracket group that is being read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Group {
    /// The index of its first token.
    pub start: usize,
    /// The index of its closer, or of what stands where the closer should be.
    pub end: usize,
    closed: bool,
    pub opener: TokenKind,
}

impl<'t, 'r> Parser<'t, 'r> {
    pub(super) fn new(text: &'t str, layout: Layout, limits: &Limits, reports: &'r mut Reports<'t>) -> Self {
        Self {
            text,
            tokens: layout.tokens,
            groups: layout.groups,
            at: 0,
            value_at: None,
            depth: 0,
            deepest: limits.nesting.min(DEEPEST),
            reports,
            lost: false,
            too_deep_said: false,
            steps: 0,
        }
    }

    pub(super) fn token(&self, ahead: usize) -> Token {
        self.token_at(self.at + ahead)
    }

    pub(super) fn token_at(&self, index: usize) -> Token {
        let end = Span::new(self.text.len(), self.text.len());
        self.tokens.get(index).copied().unwrap_or(Token { kind: TokenKind::End, span: end })
    }

    /// The text of the token before the current one.
    pub(super) fn token_before(&self) -> &'t str {
        self.at.checked_sub(1).map_or("", |before| self.token_at(before).span.of(self.text))
    }

    pub(super) fn kind(&self) -> TokenKind {
        self.token(0).kind
    }

    pub(super) fn next_kind(&self) -> TokenKind {
        self.token(1).kind
    }

    pub(super) fn span(&self) -> Span {
        self.token(0).span
    }

    /// The text of the current token.
    pub(super) fn written(&self) -> &'t str {
        self.span().of(self.text)
    }

    pub(super) fn is_word(&self, text: &str) -> bool {
        self.kind() == TokenKind::Word && self.written().eq_ignore_ascii_case(text)
    }

    /// Whether no blank stands before the token.
    pub(super) fn glued(&self, ahead: usize) -> bool {
        let before = (self.at + ahead).checked_sub(1).and_then(|before| self.tokens.get(before));
        before.is_some_and(|before| before.span.end == self.token(ahead).span.start)
    }

    /// Where the last token ended.
    pub(super) fn last_end(&self) -> u32 {
        self.at.checked_sub(1).and_then(|last| self.tokens.get(last)).map_or(0, |last| last.span.end)
    }

    /// From `start` to the end of the last token.
    pub(super) fn since(&self, start: u32) -> Span {
        Span { start, end: self.last_end().max(start) }
    }

    pub(super) fn bump(&mut self) -> Token {
        let token = self.token(0);
        if token.kind != TokenKind::End {
            self.at += 1;
        }
        self.steps += 1;
        token
    }

    pub(super) fn eat(&mut self, kind: TokenKind) -> bool {
        let found = self.kind() == kind;
        if found {
            self.bump();
        }
        found
    }

    /// Takes the current token as a name.
    pub(super) fn name(&mut self) -> Name {
        let token = self.bump();
        Name { text: token.span.of(self.text).into(), span: token.span }
    }

    pub(super) fn opens(&self) -> bool {
        self.kind().closer().is_some()
    }

    /// The group that the current token opens: all of it, and what is inside its brackets.
    pub(super) fn group_spans(&self) -> (Span, Span) {
        self.group_spans_at(0)
    }

    /// The same of the opener that stands so many tokens ahead.
    pub(super) fn group_spans_at(&self, ahead: usize) -> (Span, Span) {
        let opener = self.token(ahead).span;
        let close = self.groups.get(self.at + ahead).copied().unwrap_or_default();
        let last = if close.closed { close.at } else { close.at.saturating_sub(1) };
        let last = self.tokens.get(last).map_or(opener, |token| token.span);
        let inner_end = if close.closed { last.start } else { last.end };
        (opener.to(last), Span { start: opener.end, end: inner_end.max(opener.end) })
    }

    /// Enters the group whose opener is the current token; passes over it when it is too deep.
    pub(super) fn enter(&mut self) -> Option<Group> {
        if self.depth >= self.deepest {
            if !self.too_deep_said {
                self.too_deep_said = true;
                let message =
                    format!("brackets are nested more than {} deep; bind the inner part to a name", self.deepest);
                self.reports.error(codes::NESTED_TOO_DEEP, self.span(), message);
            }
            self.pass();
            return None;
        }
        let close = self.groups.get(self.at).copied().unwrap_or_default();
        let opener = self.bump().kind;
        self.depth += 1;
        Some(Group { start: self.at, end: close.at, closed: close.closed, opener })
    }

    /// Leaves a group; what is left in it is an error unless one was found already.
    pub(super) fn leave(&mut self, group: Group) {
        if self.at < group.end {
            let closer = group.opener.closer().and_then(TokenKind::spelling).unwrap_or(")");
            self.expected(&format!("`{closer}`"));
        }
        self.steps += 1;
        self.at = group.end + usize::from(group.closed);
        self.depth -= 1;
        self.lost = false;
    }

    pub(super) fn in_group(&self, group: Group) -> bool {
        self.at < group.end
    }

    /// Passes over one token, or a whole group.
    fn pass(&mut self) {
        if self.opens() {
            let close = self.groups.get(self.at).copied().unwrap_or_default();
            self.at = (close.at + usize::from(close.closed)).max(self.at + 1);
            self.steps += 1;
        } else {
            self.bump();
        }
    }

    /// To the next comma of the group, or its end.
    pub(super) fn skip_item(&mut self, group: Group) {
        while self.in_group(group) && self.kind() != TokenKind::Comma {
            self.pass();
        }
    }

    /// To the end of the statement, or the first of `stops` in it.
    pub(super) fn skip_statement(&mut self, stops: &[TokenKind]) {
        while !matches!(self.kind(), TokenKind::Newline | TokenKind::End) && !stops.contains(&self.kind()) {
            self.pass();
        }
    }

    /// `expected x, found y` at the current token.
    pub(super) fn expected(&mut self, what: &str) {
        let message = format!("expected {what}, found {}", self.found());
        self.unexpected(message);
    }

    /// An error at the current token.
    pub(super) fn unexpected(&mut self, message: impl Into<String>) {
        let diagnostic = Diagnostic::error(codes::UNEXPECTED, self.span(), message);
        self.refuse(diagnostic);
    }

    /// An error at the current token whose correction is to write `replacement` in place of `wrong`.
    pub(super) fn unexpected_fix(&mut self, message: impl Into<String>, wrong: Span, replacement: &str) {
        self.fix(self.span(), message, wrong, replacement);
        self.lost = true;
    }

    /// An error with a correction that is clear enough to read on as if it had been made.
    pub(super) fn fix(&mut self, place: Span, message: impl Into<String>, wrong: Span, replacement: &str) {
        if self.reports_here() {
            let diagnostic = Diagnostic::error(codes::UNEXPECTED, place, message);
            self.reports.fix(diagnostic, wrong, replacement);
        }
    }

    pub(super) fn refuse(&mut self, diagnostic: Diagnostic) {
        if self.reports_here() {
            self.reports.add(diagnostic);
        }
        self.lost = true;
    }

    pub(super) fn note(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.reports.add(Diagnostic::note(code, span, message));
    }

    /// What the lexer refused has its report.
    pub(super) fn reports_here(&self) -> bool {
        !self.lost && self.kind() != TokenKind::Bad
    }

    /// The current token for a message.
    pub(super) fn found(&self) -> String {
        match self.kind() {
            TokenKind::End => "the end of the program".to_owned(),
            TokenKind::Newline => "the end of the line".to_owned(),
            TokenKind::String => format!("the string {}", shown(self.written())),
            TokenKind::Heredoc => "a block of text".to_owned(),
            _ => format!("`{}`", shown(self.written())),
        }
    }
}
