//! Pairs each opening bracket with its closing bracket.
//! Invariant: pairs nest and never cross. The whole text is processed in one pass, however many brackets are unclosed.

use super::token::{Token, TokenKind};

/// The bracket pairs of a list of tokens.
pub(super) struct BracketPairs {
    /// The index of the partner of each lexer token that is a paired bracket.
    partners: Vec<Option<usize>>,
}

/// An opening bracket whose closing bracket has not been read yet.
#[derive(Clone, Copy)]
struct OpenBracket {
    /// The index of the opening bracket in the lexer's tokens.
    index: usize,
    /// The kind of closing bracket that matches.
    closer: TokenKind,
    /// The number of the line that contains the opening bracket.
    line: usize,
    /// The index of a closing bracket of another kind that was probably meant for this opening bracket.
    mismatched_closer: Option<usize>,
}

impl BracketPairs {
    /// Pairs the brackets of `tokens`. A closing bracket closes the nearest open bracket of its kind, and open
    /// brackets inside that pair stay unclosed. If no bracket of its kind is open, it may be a mistyped partner of the
    /// innermost open bracket. That requires that it is on the line of the open bracket or begins a line, and that the
    /// open bracket gets no partner of its own kind.
    pub(super) fn find(tokens: &[Token]) -> Self {
        let mut finder = PairFinder { partners: vec![None; tokens.len()], open: Vec::new(), open_counts: [0; 3] };
        let mut line = 0;
        let mut begins_line = true;
        for (index, token) in tokens.iter().enumerate() {
            if let Some(closer) = token.kind.closer() {
                finder.open_counts[index_of_kind(closer)] += 1;
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

    /// Returns the index of the partner of the bracket at `index`.
    pub(super) fn partner(&self, index: usize) -> Option<usize> {
        self.partners.get(index).copied().flatten()
    }
}

/// The state of the pass that pairs brackets.
struct PairFinder {
    /// The pairs found so far, in the form of [`BracketPairs`].
    partners: Vec<Option<usize>>,
    /// The brackets that are still open, the innermost last.
    open: Vec<OpenBracket>,
    /// The number of open brackets of each kind. Without the counts, each closing bracket without a partner would
    /// cause a search through all open brackets.
    open_counts: [usize; 3],
}

impl PairFinder {
    /// Processes a closing bracket. `may_close` returns whether it may be a mistyped partner of the innermost open
    /// bracket.
    fn close(&mut self, closer: TokenKind, index: usize, may_close: impl Fn(&OpenBracket) -> bool) {
        if self.open_counts[index_of_kind(closer)] == 0 {
            if let Some(opener) =
                self.open.last_mut().filter(|opener| opener.mismatched_closer.is_none() && may_close(opener))
            {
                opener.mismatched_closer = Some(index);
            }
            return;
        }
        while let Some(opener) = self.open.pop() {
            self.open_counts[index_of_kind(opener.closer)] -= 1;
            if opener.closer == closer {
                self.pair(opener.index, index);
                return;
            }
            self.close_with_mismatch(opener);
        }
    }

    /// Ends an open bracket without a partner of its kind. Its mismatched closing bracket, if there is one, becomes
    /// its partner.
    fn close_with_mismatch(&mut self, opener: OpenBracket) {
        if let Some(mismatched_closer) = opener.mismatched_closer {
            self.pair(opener.index, mismatched_closer);
        }
    }

    /// Records that two brackets are partners.
    fn pair(&mut self, opener: usize, closer: usize) {
        for (bracket, other) in [(opener, closer), (closer, opener)] {
            if let Some(partner) = self.partners.get_mut(bracket) {
                *partner = Some(other);
            }
        }
    }
}

/// Returns the index in `open_counts` of a kind of closing bracket.
fn index_of_kind(closer: TokenKind) -> usize {
    match closer {
        TokenKind::RightParen => 0,
        TokenKind::RightBracket => 1,
        _ => 2,
    }
}
