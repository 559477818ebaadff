//! The plain tokens, as patterns.
//! Invariant: every character begins some pattern, so reading never fails; what needs looking ahead is done by hand in
//! the files beside this one.

use logos::Logos;

use crate::syntax::token::TokenKind;

#[derive(Logos, Debug, Clone, Copy, PartialEq, Eq)]
#[logos(skip(
    r"[ \t\r\x0B\x0C\u{85}\u{A0}\u{1680}\u{2000}-\u{200D}\u{2028}\u{2029}\u{202F}\u{205F}\u{2060}\u{3000}\u{FEFF}]+",
    priority = 100
))]
pub(super) enum Raw {
    #[token("\n")]
    Newline,
    #[regex(r";;[^\n]*", priority = 90, allow_greedy = true)]
    Comment,

    // A dash belongs to a word only between word characters; so does the rest of a date, and `+` after `now`.
    #[regex(r"[\p{L}\p{M}\p{N}_]+(-[\p{L}\p{M}\p{N}_]+)*", priority = 10)]
    #[regex(
        r"[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}(:[0-9]{2}(\.[0-9]+)?)?(Z|[+-][0-9]{2}(:?[0-9]{2})?)?",
        priority = 11
    )]
    #[regex(r"(now|today)\+[0-9]+[A-Za-z]+", priority = 11)]
    Word,
    #[regex(r"-?[0-9]+(\.[0-9]+)?([eE][+-]?[0-9]+)?", priority = 30)]
    Number,
    #[regex(r"[+-]?[0-9]+\.[0-9A-Za-z_.]*", priority = 20)]
    #[regex(r"-[0-9]+[0-9A-Za-z_]+", priority = 20)]
    #[regex(r"\+[0-9]+[0-9A-Za-z_]*", priority = 20)]
    BadNumber,
    #[regex(r#"[A-Za-z][A-Za-z0-9]*://[^\s,()\[\]{}"']*"#, priority = 20)]
    Uri,

    #[token("\"")]
    Quote,
    #[token("\"\"\"")]
    TripleQuote,
    #[token("'")]
    #[token("`")]
    #[token("\u{201C}")]
    #[token("\u{2018}")]
    OtherQuote,
    #[token("```")]
    Fence,
    #[token("<<")]
    Heredoc,

    #[token("$")]
    Dollar,
    #[token(".")]
    Dot,
    #[token(".^")]
    Back,
    #[token(",")]
    Comma,
    #[token(":")]
    Colon,
    #[token(";")]
    Semicolon,
    #[token("=")]
    Eq,
    #[token("!=")]
    Ne,
    #[token("<")]
    Lt,
    #[token("<=")]
    Le,
    #[token(">")]
    Gt,
    #[token(">=")]
    Ge,
    #[token("~")]
    Tilde,
    #[token("=>")]
    Arrow,
    #[token("-")]
    Minus,
    #[token("(")]
    LeftParen,
    #[token(")")]
    RightParen,
    #[token("[")]
    LeftBracket,
    #[token("]")]
    RightBracket,
    #[token("{")]
    LeftBrace,
    #[token("}")]
    RightBrace,

    /// Another language's spelling of one of the above.
    #[token("==")]
    #[token("===")]
    #[token(":=")]
    #[token("!==")]
    #[token("<>")]
    #[token("->")]
    #[token("&&")]
    #[token("\u{2260}")]
    #[token("\u{2264}")]
    #[token("\u{2265}")]
    #[token("\u{2192}")]
    #[token("\u{21D2}")]
    Alias,
    #[regex(r"[^\n]", priority = 0)]
    Other,
}

impl Raw {
    /// The token that needs no more than its pattern.
    pub(super) fn plain(self) -> Option<TokenKind> {
        Some(match self {
            Raw::Number => TokenKind::Number,
            Raw::Uri => TokenKind::Uri,
            Raw::Dollar => TokenKind::Dollar,
            Raw::Dot => TokenKind::Dot,
            Raw::Back => TokenKind::Back,
            Raw::Comma => TokenKind::Comma,
            Raw::Colon => TokenKind::Colon,
            Raw::Semicolon => TokenKind::Semicolon,
            Raw::Eq => TokenKind::Eq,
            Raw::Ne => TokenKind::Ne,
            Raw::Lt => TokenKind::Lt,
            Raw::Le => TokenKind::Le,
            Raw::Gt => TokenKind::Gt,
            Raw::Ge => TokenKind::Ge,
            Raw::Tilde => TokenKind::Tilde,
            Raw::Arrow => TokenKind::Arrow,
            Raw::Minus => TokenKind::Minus,
            Raw::LeftParen => TokenKind::LeftParen,
            Raw::RightParen => TokenKind::RightParen,
            Raw::LeftBracket => TokenKind::LeftBracket,
            Raw::RightBracket => TokenKind::RightBracket,
            Raw::LeftBrace => TokenKind::LeftBrace,
            Raw::RightBrace => TokenKind::RightBrace,
            _ => return None,
        })
    }
}

/// What another language's spelling means here.
pub(super) fn meant(alias: &str) -> TokenKind {
    match alias {
        "!==" | "<>" | "\u{2260}" => TokenKind::Ne,
        "\u{2264}" => TokenKind::Le,
        "\u{2265}" => TokenKind::Ge,
        "->" | "\u{2192}" | "\u{21D2}" => TokenKind::Arrow,
        "&&" => TokenKind::Comma,
        _ => TokenKind::Eq,
    }
}
