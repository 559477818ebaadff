//! Where groups and statements end: what the parser needs to know before it reads a word.
//! Invariant: groups nest; a `Newline` that is left ends a statement and stands in no closed group; one report per mistake.

use base::{Diagnostic, Span};

use super::brackets::Pairs;
use super::lexer::Lexed;
use super::reports::Reports;
use super::token::{Token, TokenKind};
use crate::codes;

pub(super) struct Layout {
    /// Ends with `End`.
    pub tokens: Vec<Token>,
    /// For the opener at the same index in `tokens`: where its group ends.
    pub groups: Vec<Close>,
}

/// Where a group ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Close {
    pub at: usize,
    /// Its closer stands at `at`; otherwise the group ends before `at`.
    pub closed: bool,
}

pub(super) fn lay_out(text: &str, lexed: &Lexed, reports: &mut Reports<'_>) -> Layout {
    let pairs = Pairs::find(&lexed.tokens);
    let layout = Layout { tokens: Vec::with_capacity(lexed.tokens.len() + 1), groups: Vec::new() };
    let mut placer = Placer { text, layout, open: Vec::new(), closed: 0, reports };
    for (index, token) in lexed.tokens.iter().enumerate() {
        let partner = pairs.partner(index);
        match token.kind {
            TokenKind::Newline => {
                let kind = |ahead: usize| lexed.tokens.get(index + ahead).map(|token| token.kind);
                placer.newline(*token, kind(1), kind(2));
            }
            kind if kind.closer().is_some() => placer.open(*token, index, partner),
            kind if kind.is_closer() => placer.close(*token, partner),
            _ => placer.push(*token),
        }
    }
    // Where a block of text took the rest, it took the closers too.
    placer.end_groups(|_| false, !lexed.cut);
    placer.push(Token { kind: TokenKind::End, span: Span::new(text.len(), text.len()) });
    placer.layout
}

struct Placer<'t, 'l, 'r> {
    text: &'t str,
    layout: Layout,
    open: Vec<Opener>,
    /// How many of `open` have a closer.
    closed: usize,
    reports: &'r mut Reports<'l>,
}

struct Opener {
    /// Its index in the layout's tokens, and in the lexer's.
    at: usize,
    index: usize,
    token: Token,
}

impl Placer<'_, '_, '_> {
    fn push(&mut self, token: Token) {
        self.layout.tokens.push(token);
        self.layout.groups.push(Close::default());
    }

    /// A line break, and the two tokens after it.
    fn newline(&mut self, token: Token, next: Option<TokenKind>, second: Option<TokenKind>) {
        use TokenKind::{Arrow, Back, Colon, Comma, Dot, Eq, Newline, Word};
        let goes_on = matches!(next, None | Some(Dot | Back | Arrow | Comma | Newline));
        let last = self.layout.tokens.last().map(|last| last.kind);
        let unfinished = last.is_none_or(|last| {
            matches!(last, Comma | Arrow | Dot | Back | Colon | Newline)
                || last.is_operator()
                || last.closer().is_some()
        });
        // Outside brackets `name =` begins a statement, whatever the line before lacks.
        let begins = self.open.is_empty()
            && next == Some(Word)
            && second == Some(Eq)
            && last.is_some_and(|last| last != Newline);
        if goes_on || (unfinished && !begins) || self.closed > 0 {
            return;
        }
        self.end_groups(|_| false, true);
        self.push(token);
    }

    fn open(&mut self, token: Token, index: usize, closer: Option<usize>) {
        self.closed += usize::from(closer.is_some());
        self.open.push(Opener { at: self.layout.tokens.len(), index, token });
        self.push(token);
    }

    fn close(&mut self, token: Token, opener: Option<usize>) {
        let Some(index) = opener else {
            let message = format!("`{}` closes nothing; leave it out", token.kind);
            self.reports.fix(Diagnostic::error(codes::UNEXPECTED, token.span, message), token.span, "");
            return;
        };
        self.end_groups(|opener| opener.index == index, true);
        if let Some(opener) = self.open.pop() {
            self.closed -= 1;
            self.set_close(opener.at, true);
            if opener.token.kind.closer() != Some(token.kind) {
                self.wrong_closer(&opener, token);
            }
        }
        self.push(token);
    }

    fn set_close(&mut self, opener: usize, closed: bool) {
        let at = self.layout.tokens.len();
        if let Some(close) = self.layout.groups.get_mut(opener) {
            *close = Close { at, closed };
        }
    }

    /// Ends the open groups before the next token, down to the one that `stays`.
    fn end_groups(&mut self, stays: impl Fn(&Opener) -> bool, report: bool) {
        let mut ended: Vec<Token> = Vec::new();
        while let Some(opener) = self.open.pop_if(|opener| !stays(opener)) {
            self.set_close(opener.at, false);
            ended.push(opener.token);
        }
        let after = self.layout.tokens.last().map_or(0, |last| last.span.end as usize);
        let span = Span::new(after, after);
        if !ended.is_empty() && report && self.reports.accepts(span) {
            self.unclosed(&ended, span);
        }
    }

    fn unclosed(&mut self, openers: &[Token], span: Span) {
        let missing: String = openers.iter().filter_map(|opener| opener.kind.closer()?.spelling()).collect();
        let names: Vec<String> = openers.iter().take(3).map(|opener| self.opener_name(*opener)).collect();
        let more = if openers.len() > names.len() { ", …" } else { "" };
        let verb = if openers.len() > 1 { "are" } else { "is" };
        let names = names.join(", ");
        let shown = if missing.len() > 8 { "their closers belong".to_owned() } else { format!("`{missing}` belongs") };
        let message = format!("{names}{more} {verb} not closed; {shown} here or before");
        let diagnostic = Diagnostic::error(codes::UNCLOSED_BRACKET, span, message);
        if missing.len() > 64 {
            self.reports.add(diagnostic);
        } else {
            self.reports.fix(diagnostic, span, &missing);
        }
    }

    fn wrong_closer(&mut self, opener: &Opener, token: Token) {
        if self.reports.accepts(token.span) {
            let name = self.opener_name(opener.token);
            let right = opener.token.kind.closer().and_then(TokenKind::spelling).unwrap_or(")");
            let message = format!("{name} is closed with `{right}`, not with `{}`", token.span.of(self.text));
            self.reports.fix(Diagnostic::error(codes::UNCLOSED_BRACKET, token.span, message), token.span, right);
        }
    }

    fn opener_name(&mut self, opener: Token) -> String {
        format!("`{}` opened at {}", opener.kind, self.reports.place(opener.span.start))
    }
}
