//! Finds the ends of bracket groups and statements before the parser runs.
//! Invariant: groups nest. A remaining `Newline` token ends a statement and is never inside a closed group. Each
//! mistake is reported once.

use base::{Diagnostic, Span};

use super::brackets::BracketPairs;
use super::lexer::Lexed;
use super::reports::Reports;
use super::token::{Token, TokenKind};
use crate::codes;

/// The tokens and bracket groups that the parser reads.
pub(super) struct Layout {
    /// The tokens. A line break is kept only where it ends a statement. The last token is `End`.
    pub tokens: Vec<Token>,
    /// The end of each group, at the index of its opening bracket in `tokens`.
    pub groups: Vec<GroupEnd>,
}

/// The end of a bracket group.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct GroupEnd {
    /// The index of the closing bracket in the layout's tokens. For an unclosed group, the index of the first token
    /// behind the group.
    pub at: usize,
    /// Whether the token at `at` is the closing bracket of the group.
    pub closed: bool,
}

/// Removes line breaks inside statements, finds the end of each group, and reports unclosed and mismatched brackets.
pub(super) fn lay_out(text: &str, lexed: &Lexed, reports: &mut Reports<'_>) -> Layout {
    let pairs = BracketPairs::find(&lexed.tokens);
    let layout = Layout { tokens: Vec::with_capacity(lexed.tokens.len() + 1), groups: Vec::new() };
    let mut builder = LayoutBuilder { text, layout, open: Vec::new(), open_with_closer: 0, reports };
    for (lexer_index, token) in lexed.tokens.iter().enumerate() {
        let partner = pairs.partner(lexer_index);
        match token.kind {
            TokenKind::Newline => {
                let kind = |ahead: usize| lexed.tokens.get(lexer_index + ahead).map(|token| token.kind);
                builder.handle_line_break(*token, kind(1), kind(2));
            }
            kind if kind.closer().is_some() => builder.open_group(*token, lexer_index, partner),
            kind if kind.is_closer() => builder.close_group(*token, partner),
            _ => builder.push_token(*token),
        }
    }
    // An unclosed heredoc contains the rest of the text with its closing brackets. The groups that are open before the
    // heredoc are therefore not reported.
    builder.end_groups(|_| false, !lexed.rest_discarded);
    builder.push_token(Token { kind: TokenKind::End, span: Span::new(text.len(), text.len()) });
    builder.layout
}

/// The state of the pass over the lexer's tokens.
struct LayoutBuilder<'t, 'l, 'r> {
    text: &'t str,
    layout: Layout,
    /// The groups that are open, the innermost last.
    open: Vec<OpenGroup>,
    /// The number of groups in `open` that have a closing bracket. Line breaks are ignored while the number is
    /// positive.
    open_with_closer: usize,
    reports: &'r mut Reports<'l>,
}

/// A group whose end has not been reached yet.
struct OpenGroup {
    /// The index of the opening bracket in the layout's tokens.
    at: usize,
    /// The index of the opening bracket in the lexer's tokens.
    lexer_index: usize,
    /// The token of the opening bracket.
    token: Token,
}

impl LayoutBuilder<'_, '_, '_> {
    fn push_token(&mut self, token: Token) {
        self.layout.tokens.push(token);
        self.layout.groups.push(GroupEnd::default());
    }

    /// Keeps a line break if it ends a statement. `next` and `second` are the kinds of the two tokens after it.
    fn handle_line_break(&mut self, token: Token, next: Option<TokenKind>, second: Option<TokenKind>) {
        use TokenKind::{Arrow, Back, Colon, Comma, Dot, Eq, Newline, Word};
        let continues = matches!(next, None | Some(Dot | Back | Arrow | Comma | Newline));
        let last = self.layout.tokens.last().map(|last| last.kind);
        let is_unfinished = last.is_none_or(|last| {
            matches!(last, Comma | Arrow | Dot | Back | Colon | Newline)
                || last.is_operator()
                || last.closer().is_some()
        });
        // Outside brackets, `name =` begins a statement even if the previous line is incomplete.
        let begins_binding = self.open.is_empty()
            && next == Some(Word)
            && second == Some(Eq)
            && last.is_some_and(|last| last != Newline);
        if continues || (is_unfinished && !begins_binding) || self.open_with_closer > 0 {
            return;
        }
        self.end_groups(|_| false, true);
        self.push_token(token);
    }

    /// Opens a group. `closer` is the index of its closing bracket in the lexer's tokens.
    fn open_group(&mut self, token: Token, lexer_index: usize, closer: Option<usize>) {
        self.open_with_closer += usize::from(closer.is_some());
        self.open.push(OpenGroup { at: self.layout.tokens.len(), lexer_index, token });
        self.push_token(token);
    }

    /// Closes the group of a closing bracket, and reports unclosed groups inside it. `opener` is the index of the
    /// opening bracket in the lexer's tokens.
    fn close_group(&mut self, token: Token, opener: Option<usize>) {
        let Some(lexer_index) = opener else {
            let message = format!("`{}` closes nothing; leave it out", token.kind);
            self.reports.add_with_fix(Diagnostic::error(codes::UNEXPECTED, token.span, message), token.span, "");
            return;
        };
        self.end_groups(|opener| opener.lexer_index == lexer_index, true);
        if let Some(opener) = self.open.pop() {
            self.open_with_closer -= 1;
            self.set_group_end(opener.at, true);
            if opener.token.kind.closer() != Some(token.kind) {
                self.report_wrong_closer(&opener, token);
            }
        }
        self.push_token(token);
    }

    fn set_group_end(&mut self, opener: usize, closed: bool) {
        let at = self.layout.tokens.len();
        if let Some(group_end) = self.layout.groups.get_mut(opener) {
            *group_end = GroupEnd { at, closed };
        }
    }

    /// Ends open groups before the next token, from the innermost outwards, until `stays` returns true for a group.
    fn end_groups(&mut self, stays: impl Fn(&OpenGroup) -> bool, report: bool) {
        let mut ended: Vec<Token> = Vec::new();
        while let Some(opener) = self.open.pop_if(|opener| !stays(opener)) {
            self.set_group_end(opener.at, false);
            ended.push(opener.token);
        }
        let after = self.layout.tokens.last().map_or(0, |last| last.span.end as usize);
        let span = Span::new(after, after);
        if !ended.is_empty() && report && self.reports.would_keep_error(span) {
            self.report_unclosed(&ended, span);
        }
    }

    /// Reports all given opening brackets as unclosed, in one diagnostic.
    fn report_unclosed(&mut self, openers: &[Token], span: Span) {
        let missing: String = openers.iter().filter_map(|opener| opener.kind.closer()?.spelling()).collect();
        let names: Vec<String> = openers.iter().take(3).map(|opener| self.describe_opener(*opener)).collect();
        let more = if openers.len() > names.len() { ", …" } else { "" };
        let verb = if openers.len() > 1 { "are" } else { "is" };
        let names = names.join(", ");
        let shown = if missing.len() > 8 { "their closers belong".to_owned() } else { format!("`{missing}` belongs") };
        let message = format!("{names}{more} {verb} not closed; {shown} here or before");
        let diagnostic = Diagnostic::error(codes::UNCLOSED_BRACKET, span, message);
        if missing.len() > 64 {
            self.reports.add(diagnostic);
        } else {
            self.reports.add_with_fix(diagnostic, span, &missing);
        }
    }

    fn report_wrong_closer(&mut self, opener: &OpenGroup, token: Token) {
        if self.reports.would_keep_error(token.span) {
            let name = self.describe_opener(opener.token);
            let right = opener.token.kind.closer().and_then(TokenKind::spelling).unwrap_or(")");
            let message = format!("{name} is closed with `{right}`, not with `{}`", token.span.of(self.text));
            self.reports.add_with_fix(
                Diagnostic::error(codes::UNCLOSED_BRACKET, token.span, message),
                token.span,
                right,
            );
        }
    }

    fn describe_opener(&mut self, opener: Token) -> String {
        format!("`{}` opened at {}", opener.kind, self.reports.position(opener.span.start))
    }
}
