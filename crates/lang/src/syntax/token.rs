//! The words of a program: what the lexer makes and the parser reads.
//! Invariant: a token is a kind and a place; its text is what the place covers, so nothing is stored twice.

use std::fmt;

use base::Span;
use serde::Serialize;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Token {
    pub kind: TokenKind,
    pub span: Span,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenKind {
    /// `ticket-close`, `e1`, `now-7d`, `2026-01-01`
    Word,
    Number,
    String,
    /// `<<TAG … TAG`, from its opener to its closing tag
    Heredoc,
    /// `<<T` without a body, in a taught line
    Hole,
    /// `$`
    Dollar,
    /// `_`
    Row,
    /// `plasm://…`
    Uri,
    Dot,
    /// `.^`
    Back,
    Comma,
    Colon,
    Semicolon,
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Tilde,
    /// `=>`
    Arrow,
    Minus,
    Plus,
    Star,
    LeftParen,
    RightParen,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    /// The end of a statement; a line break inside one is no token.
    Newline,
    /// What the lexer could not read and has reported; it stands where a value may stand.
    Bad,
    End,
}

impl TokenKind {
    /// The closer that belongs to this opener.
    pub(super) fn closer(self) -> Option<TokenKind> {
        match self {
            TokenKind::LeftParen => Some(TokenKind::RightParen),
            TokenKind::LeftBracket => Some(TokenKind::RightBracket),
            TokenKind::LeftBrace => Some(TokenKind::RightBrace),
            _ => None,
        }
    }

    pub(super) fn is_closer(self) -> bool {
        matches!(self, TokenKind::RightParen | TokenKind::RightBracket | TokenKind::RightBrace)
    }

    /// What may stand between a slot and its value.
    pub(super) fn is_operator(self) -> bool {
        use TokenKind::{Eq, Ge, Gt, Le, Lt, Ne, Tilde};
        matches!(self, Eq | Ne | Lt | Le | Gt | Ge | Tilde)
    }

    /// What a kind with one spelling looks like.
    pub(super) fn spelling(self) -> Option<&'static str> {
        Some(match self {
            TokenKind::Dollar => "$",
            TokenKind::Row => "_",
            TokenKind::Dot => ".",
            TokenKind::Back => ".^",
            TokenKind::Comma => ",",
            TokenKind::Colon => ":",
            TokenKind::Semicolon => ";",
            TokenKind::Eq => "=",
            TokenKind::Ne => "!=",
            TokenKind::Lt => "<",
            TokenKind::Le => "<=",
            TokenKind::Gt => ">",
            TokenKind::Ge => ">=",
            TokenKind::Tilde => "~",
            TokenKind::Arrow => "=>",
            TokenKind::Minus => "-",
            TokenKind::Plus => "+",
            TokenKind::Star => "*",
            TokenKind::LeftParen => "(",
            TokenKind::RightParen => ")",
            TokenKind::LeftBracket => "[",
            TokenKind::RightBracket => "]",
            TokenKind::LeftBrace => "{",
            TokenKind::RightBrace => "}",
            _ => return None,
        })
    }
}

impl fmt::Display for TokenKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            TokenKind::Word => "word",
            TokenKind::Number => "number",
            TokenKind::String => "string",
            TokenKind::Heredoc => "heredoc",
            TokenKind::Hole => "hole",
            TokenKind::Uri => "uri",
            TokenKind::Newline => "newline",
            TokenKind::Bad => "bad",
            TokenKind::End => "end",
            other => other.spelling().unwrap_or("token"),
        })
    }
}
