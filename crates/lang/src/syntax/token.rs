//! The tokens of a program. The lexer makes them, and the parser reads them.
//! Invariant: a token consists of a kind and a span. The span determines the text, so the text is not stored again.

use std::fmt;

use base::Span;
use serde::Serialize;

/// A token of a program text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct Token {
    pub kind: TokenKind,
    pub span: Span,
}

/// The kind of a token.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenKind {
    /// A name, a bare word or a date, such as `ticket-close`, `e1`, `now-7d` or `2026-01-01`.
    Word,
    Number,
    String,
    /// A block of text `<<TAG … TAG`, from its opener to its closing tag.
    Heredoc,
    /// A placeholder in a taught line: `<<T` without a body.
    #[serde(rename = "hole")]
    Placeholder,
    /// The placeholder `$`.
    Dollar,
    /// `_`, the row of the nearest `=>`.
    Row,
    /// A URI, such as `plasm://…`.
    Uri,
    Dot,
    /// `.^`, a step that follows a relation backwards.
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
    /// `=>`, which does something for each row.
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
    /// The end of a statement. A line break inside a statement makes no token.
    Newline,
    /// A piece of text that the lexer reported as invalid. The parser accepts it in place of a value.
    Bad,
    /// The end of the text.
    End,
}

impl TokenKind {
    /// Returns the kind of closing bracket that matches an opening bracket, or `None` for another kind.
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

    /// Returns whether this kind is an operator between a slot and its value.
    pub(super) fn is_operator(self) -> bool {
        use TokenKind::{Eq, Ge, Gt, Le, Lt, Ne, Tilde};
        matches!(self, Eq | Ne | Lt | Le | Gt | Ge | Tilde)
    }

    /// Returns the text of a kind that has only one spelling.
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
            TokenKind::Placeholder => "hole",
            TokenKind::Uri => "uri",
            TokenKind::Newline => "newline",
            TokenKind::Bad => "bad",
            TokenKind::End => "end",
            other => other.spelling().unwrap_or("token"),
        })
    }
}
