//! Which bracket closes which.
//! Invariant: pairs nest and never cross; the work is one pass, however many brackets are left open.

use super::token::{Token, TokenKind};

/// Openers and closers that belong together, by their index in the lexer's tokens.
pub(super) struct Pairs {
    partners: Vec<Option<usize>>,
}

#[derive(Clone, Copy)]
struct Opener {
    index: usize,
    closer: TokenKind,
    line: usize,
    /// A closer of another kind that probably meant this opener.
    wrong: Option<usize>,
}

impl Pairs {
    /// A closer closes the nearest opener of its kind and leaves those inside it unclosed. A closer of a kind that is not
    /// open is taken for the innermost opener's if that one gets no other, and the closer is on its line or begins one.
    pub(super) fn find(tokens: &[Token]) -> Self {
        let mut pairing = Pairing { partners: vec![None; tokens.len()], open: Vec::new(), counts: [0; 3] };
        let mut line = 0;
        let mut begins_line = true;
        for (index, token) in tokens.iter().enumerate() {
            if let Some(closer) = token.kind.closer() {
                pairing.counts[kind_index(closer)] += 1;
                pairing.open.push(Opener { index, closer, line, wrong: None });
            } else if token.kind.is_closer() {
                pairing.close(token.kind, index, |opener| begins_line || opener.line == line);
            }
            begins_line = token.kind == TokenKind::Newline;
            line += usize::from(begins_line);
        }
        while let Some(opener) = pairing.open.pop() {
            pairing.give_up(opener);
        }
        Self { partners: pairing.partners }
    }

    pub(super) fn partner(&self, index: usize) -> Option<usize> {
        self.partners.get(index).copied().flatten()
    }
}

struct Pairing {
    partners: Vec<Option<usize>>,
    open: Vec<Opener>,
    /// How many of each kind are open, so that a closer of none is known without a search.
    counts: [usize; 3],
}

impl Pairing {
    fn close(&mut self, closer: TokenKind, index: usize, may_mean: impl Fn(&Opener) -> bool) {
        if self.counts[kind_index(closer)] == 0 {
            if let Some(opener) = self.open.last_mut().filter(|opener| opener.wrong.is_none() && may_mean(opener)) {
                opener.wrong = Some(index);
            }
            return;
        }
        while let Some(opener) = self.open.pop() {
            self.counts[kind_index(opener.closer)] -= 1;
            if opener.closer == closer {
                self.pair(opener.index, index);
                return;
            }
            self.give_up(opener);
        }
    }

    fn give_up(&mut self, opener: Opener) {
        if let Some(wrong) = opener.wrong {
            self.pair(opener.index, wrong);
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
