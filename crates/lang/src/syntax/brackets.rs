//! Pairs each opening bracket with its closing bracket.
//! Invariant: pairs nest and never cross. The work is one pass, however many brackets are left open.

use super::token::{Token, TokenKind};

/// The bracket pairs of a token list.
pub(super) struct BracketPairs {
    /// For each token of the lexer: the index of the bracket that it is paired with.
    partners: Vec<Option<usize>>,
}

/// An opening bracket whose closer has not been read yet.
#[derive(Clone, Copy)]
struct OpenBracket {
    /// The index of the opener in the lexer's tokens.
    index: usize,
    /// The kind of closer that belongs to it.
    closer: TokenKind,
    /// The number of the line on which it stands.
    line: usize,
    /// The index of a closer of another kind that was probably meant for this opener.
    mismatched_closer: Option<usize>,
}

impl BracketPairs {
    /// Pairs the brackets of `tokens`. A closer closes the nearest opener of its kind and leaves the openers inside
    /// unclosed. If no bracket of its kind is open, it is taken for the closer of the innermost opener, provided that
    /// the closer is on the opener's line or begins a line and that opener gets no closer of its own.
    pub(super) fn find(tokens: &[Token]) -> Self {
        let mut finder = PairFinder { partners: vec![None; tokens.len()], open: Vec::new(), open_counts: [0; 3] };
        let mut line = 0;
        let mut begins_line = true;
        for (index, token) in tokens.iter().enumerate() {
            if let Some(closer) = token.kind.closer() {
                finder.open_counts[kind_index(closer)] += 1;
                finder.open.push(OpenBracket { index, closer, line, mismatched_closer: None });
            } else if token.kind.is_closer() {
                finder.close(token.kind, index, |opener| begins_line || opener.line == line);
            }
            begins_line = token.kind == TokenKind::Newline;
            line += usize::from(begins_line);
        }
        while let Some(opener) = finder.open.pop() {
            finder.close_with_mismatch(opener);
        }
        Self { partners: finder.partners }
    }

    /// Returns the index of the bracket that the bracket at `index` is paired with.
    pub(super) fn partner(&self, index: usize) -> Option<usize> {
        self.partners.get(index).copied().flatten()
    }
}

/// The state of the pass that pairs brackets.
struct PairFinder {
    /// The pairs found so far, as in [`BracketPairs`].
    partners: Vec<Option<usize>>,
    /// The openers that are still open, innermost last.
    open: Vec<OpenBracket>,
    /// The number of open brackets of each kind. Without it, each closer that closes nothing would search all open
    /// brackets.
    open_counts: [usize; 3],
}

impl PairFinder {
    /// Handles a closer. `may_mean` decides whether a closer of another kind may be meant for the innermost opener.
    fn close(&mut self, closer: TokenKind, index: usize, may_mean: impl Fn(&OpenBracket) -> bool) {
        if self.open_counts[kind_index(closer)] == 0 {
            if let Some(opener) =
                self.open.last_mut().filter(|opener| opener.mismatched_closer.is_none() && may_mean(opener))
            {
                opener.mismatched_closer = Some(index);
            }
            return;
        }
        while let Some(opener) = self.open.pop() {
            self.open_counts[kind_index(opener.closer)] -= 1;
            if opener.closer == closer {
                self.pair(opener.index, index);
                return;
            }
            self.close_with_mismatch(opener);
        }
    }

    /// Ends an opener that has no closer of its kind: a mismatched closer is taken for it, if there is one.
    fn close_with_mismatch(&mut self, opener: OpenBracket) {
        if let Some(mismatched_closer) = opener.mismatched_closer {
            self.pair(opener.index, mismatched_closer);
        }
    }

    fn pair(&mut self, opener: usize, closer: usize) {
        for (from, to) in [(opener, closer), (closer, opener)] {
            if let Some(partner) = self.partners.get_mut(from) {
                *partner = Some(to);
            }
        }
    }
}

fn kind_index(closer: TokenKind) -> usize {
    match closer {
        TokenKind::RightParen => 0,
        TokenKind::RightBracket => 1,
        _ => 2,
    }
}
