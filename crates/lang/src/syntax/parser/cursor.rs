//! The parser's position in the tokens, and its moves: by one token, into and out of groups, and past invalid text.
//! Invariant: a move never leaves the current group or statement. After an error, no other error is reported until the
//! next comma, closing bracket or statement.

use base::{Code, Diagnostic, Limits, Span};

use crate::codes;
use crate::syntax::layout::{GroupEnd, Layout};
use crate::syntax::reports::{Reports, shorten_for_message};
use crate::syntax::token::{Token, TokenKind};
use crate::syntax::tree::Name;

/// The deepest nesting that any setting may allow. Each level needs stack space.
const MAX_NESTING: usize = 256;

/// The state of the parser.
pub(super) struct Parser<'t, 'r> {
    pub text: &'t str,
    /// The tokens of the layout. The last token is `End`.
    tokens: Vec<Token>,
    /// The end of each group, at the index of its opening bracket in `tokens`.
    groups: Vec<GroupEnd>,
    /// The index of the current token.
    pub index: usize,
    /// The index of the first token of the last value. Quotes may be missing if an error directly follows that value.
    pub last_value: Option<usize>,
    /// The number of groups that contain the current token.
    depth: usize,
    /// The largest allowed value of `depth`.
    max_depth: usize,
    pub reports: &'r mut Reports<'t>,
    /// Whether an error was found and nothing has been skipped since. Further errors are most likely consequences of
    /// that error, so they are not reported.
    pub recovering: bool,
    /// Whether too deep nesting was reported. It is reported once.
    nesting_reported: bool,
    /// The number of tokens that the parser has consumed.
    pub steps: usize,
}

/// A bracket group that is being parsed.
#[derive(Debug, Clone, Copy)]
pub(super) struct BracketGroup {
    /// The index of the first token in the group.
    pub start: usize,
    /// The index of the closing bracket. For an unclosed group, the index of the first token behind the group.
    pub end: usize,
    /// Whether the token at `end` is the closing bracket.
    closed: bool,
    pub opener: TokenKind,
}

/// The spans of a group.
pub(super) struct GroupSpans {
    /// The span from the opening bracket to the closing bracket.
    pub whole: Span,
    /// The span of the text between the brackets.
    pub inner: Span,
}

impl<'t, 'r> Parser<'t, 'r> {
    pub(super) fn new(text: &'t str, layout: Layout, limits: &Limits, reports: &'r mut Reports<'t>) -> Self {
        Self {
            text,
            tokens: layout.tokens,
            groups: layout.groups,
            index: 0,
            last_value: None,
            depth: 0,
            max_depth: limits.nesting.min(MAX_NESTING),
            reports,
            recovering: false,
            nesting_reported: false,
            steps: 0,
        }
    }

    /// Returns the token that is `ahead` tokens after the current token.
    pub(super) fn token(&self, ahead: usize) -> Token {
        self.token_at(self.index + ahead)
    }

    /// Returns the token at an index, or `End` behind the last token.
    pub(super) fn token_at(&self, index: usize) -> Token {
        let end = Span::new(self.text.len(), self.text.len());
        self.tokens.get(index).copied().unwrap_or(Token { kind: TokenKind::End, span: end })
    }

    /// Returns the text of the token before the current token.
    pub(super) fn previous_text(&self) -> &'t str {
        self.index.checked_sub(1).map_or("", |before| self.token_at(before).span.of(self.text))
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

    /// Returns the text of the current token.
    pub(super) fn token_text(&self) -> &'t str {
        self.span().of(self.text)
    }

    /// Returns whether the current token is this word, ignoring case.
    pub(super) fn is_word(&self, text: &str) -> bool {
        self.kind() == TokenKind::Word && self.token_text().eq_ignore_ascii_case(text)
    }

    /// Returns whether there is no blank before the token that is `ahead` tokens after the current token.
    pub(super) fn is_adjacent(&self, ahead: usize) -> bool {
        let before = (self.index + ahead).checked_sub(1).and_then(|before| self.tokens.get(before));
        before.is_some_and(|before| before.span.end == self.token(ahead).span.start)
    }

    /// Returns the offset of the end of the token before the current token.
    pub(super) fn previous_end(&self) -> u32 {
        self.index.checked_sub(1).and_then(|last| self.tokens.get(last)).map_or(0, |last| last.span.end)
    }

    /// Returns the span from `start` to the end of the token before the current token.
    pub(super) fn span_since(&self, start: u32) -> Span {
        Span { start, end: self.previous_end().max(start) }
    }

    /// Consumes the current token and returns it. The parser never moves beyond `End`.
    pub(super) fn consume(&mut self) -> Token {
        let token = self.token(0);
        if token.kind != TokenKind::End {
            self.index += 1;
        }
        self.steps += 1;
        token
    }

    /// Consumes the current token if it has this kind. Returns whether it had.
    pub(super) fn consume_if(&mut self, kind: TokenKind) -> bool {
        let is_kind = self.kind() == kind;
        if is_kind {
            self.consume();
        }
        is_kind
    }

    /// Consumes the current token and returns it as a name.
    pub(super) fn parse_name(&mut self) -> Name {
        let token = self.consume();
        Name { text: token.span.of(self.text).into(), span: token.span }
    }

    /// Returns whether the current token is an opening bracket.
    pub(super) fn at_opener(&self) -> bool {
        self.kind().closer().is_some()
    }

    /// Returns the spans of the group that the current token opens.
    pub(super) fn group_spans(&self) -> GroupSpans {
        self.group_spans_at(0)
    }

    /// Returns the spans of the group that opens `ahead` tokens after the current token.
    pub(super) fn group_spans_at(&self, ahead: usize) -> GroupSpans {
        let opener = self.token(ahead).span;
        let group_end = self.groups.get(self.index + ahead).copied().unwrap_or_default();
        let last = if group_end.closed { group_end.at } else { group_end.at.saturating_sub(1) };
        let last = self.tokens.get(last).map_or(opener, |token| token.span);
        let inner_end = if group_end.closed { last.start } else { last.end };
        GroupSpans { whole: opener.to(last), inner: Span { start: opener.end, end: inner_end.max(opener.end) } }
    }

    /// Enters the group that the current token opens. A group that is nested too deep is reported and skipped.
    pub(super) fn enter_group(&mut self) -> Option<BracketGroup> {
        if self.depth >= self.max_depth {
            if !self.nesting_reported {
                self.nesting_reported = true;
                let message =
                    format!("brackets are nested more than {} deep; bind the inner part to a name", self.max_depth);
                self.reports.add_error(codes::NESTED_TOO_DEEP, self.span(), message);
            }
            self.skip_token_or_group();
            return None;
        }
        let group_end = self.groups.get(self.index).copied().unwrap_or_default();
        let opener = self.consume().kind;
        self.depth += 1;
        Some(BracketGroup { start: self.index, end: group_end.at, closed: group_end.closed, opener })
    }

    /// Leaves a group. Remaining tokens of the group are reported, unless an error was reported before.
    pub(super) fn leave_group(&mut self, group: BracketGroup) {
        if self.index < group.end {
            let closer = group.opener.closer().and_then(TokenKind::spelling).unwrap_or(")");
            self.report_expected(&format!("`{closer}`"));
        }
        self.steps += 1;
        self.index = group.end + usize::from(group.closed);
        self.depth -= 1;
        self.recovering = false;
    }

    /// Returns whether the current token is before the end of the group.
    pub(super) fn in_group(&self, group: BracketGroup) -> bool {
        self.index < group.end
    }

    /// Skips one token, or a whole group if the token opens one.
    fn skip_token_or_group(&mut self) {
        if self.at_opener() {
            let group_end = self.groups.get(self.index).copied().unwrap_or_default();
            self.index = (group_end.at + usize::from(group_end.closed)).max(self.index + 1);
            self.steps += 1;
        } else {
            self.consume();
        }
    }

    /// Skips to the next comma of the group, or to the end of the group.
    pub(super) fn skip_item(&mut self, group: BracketGroup) {
        while self.in_group(group) && self.kind() != TokenKind::Comma {
            self.skip_token_or_group();
        }
    }

    /// Skips to the end of the statement, or to the first token in the statement whose kind is in `stops`.
    pub(super) fn skip_statement(&mut self, stops: &[TokenKind]) {
        while !matches!(self.kind(), TokenKind::Newline | TokenKind::End) && !stops.contains(&self.kind()) {
            self.skip_token_or_group();
        }
    }

    /// Reports `expected x, found y` at the current token.
    pub(super) fn report_expected(&mut self, expected: &str) {
        let message = format!("expected {expected}, found {}", self.describe_token());
        self.report_unexpected(message);
    }

    /// Reports an error at the current token.
    pub(super) fn report_unexpected(&mut self, message: impl Into<String>) {
        let diagnostic = Diagnostic::error(codes::UNEXPECTED, self.span(), message);
        self.report_and_recover(diagnostic);
    }

    /// Reports an error at the current token, with a correction that replaces `wrong`. No further error is reported
    /// until something is skipped.
    pub(super) fn report_unexpected_fix(&mut self, message: impl Into<String>, wrong: Span, replacement: &str) {
        self.report_fix(self.span(), message, wrong, replacement);
        self.recovering = true;
    }

    /// Reports an error whose correction is certain. Parsing continues as if the author had written the correction.
    pub(super) fn report_fix(&mut self, span: Span, message: impl Into<String>, wrong: Span, replacement: &str) {
        if self.should_report() {
            let diagnostic = Diagnostic::error(codes::UNEXPECTED, span, message);
            self.reports.add_with_fix(diagnostic, wrong, replacement);
        }
    }

    /// Reports an error. No further error is reported until something is skipped.
    pub(super) fn report_and_recover(&mut self, diagnostic: Diagnostic) {
        if self.should_report() {
            self.reports.add(diagnostic);
        }
        self.recovering = true;
    }

    pub(super) fn report_note(&mut self, code: Code, span: Span, message: impl Into<String>) {
        self.reports.add(Diagnostic::note(code, span, message));
    }

    /// Returns whether to report an error at the current token. The lexer has already reported `Bad` tokens.
    pub(super) fn should_report(&self) -> bool {
        !self.recovering && self.kind() != TokenKind::Bad
    }

    /// Describes the current token for a message.
    pub(super) fn describe_token(&self) -> String {
        match self.kind() {
            TokenKind::End => "the end of the program".to_owned(),
            TokenKind::Newline => "the end of the line".to_owned(),
            TokenKind::String => format!("the string {}", shorten_for_message(self.token_text())),
            TokenKind::Heredoc => "a block of text".to_owned(),
            _ => format!("`{}`", shorten_for_message(self.token_text())),
        }
    }
}
