//! The patterns of the raw tokens, from which the lexer is generated.
//! Invariant: every character matches some pattern, so the generated lexer never fails. The other files of this folder
//! complete the tokens that a pattern cannot describe.

use logos::Logos;

use crate::syntax::token::TokenKind;

/// A token as the generated lexer finds it.
#[derive(Logos, Debug, Clone, Copy, PartialEq, Eq)]
#[logos(skip(
    r"[ \t\r\x0B\x0C\u{85}\u{A0}\u{1680}\u{2000}-\u{200D}\u{2028}\u{2029}\u{202F}\u{205F}\u{2060}\u{3000}\u{FEFF}]+",
    priority = 100
))]
pub(super) enum RawToken {
    #[token("\n")]
    Newline,
    #[regex(r";;[^\n]*", priority = 90, allow_greedy = true)]
    Comment,

    // A dash is part of a word only between word characters. So are the colons of a time, and the `+` after `now` or
    // `today`.
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

    /// A token above in the spelling of another language.
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

impl RawToken {
    /// Returns the kind of a token that is complete as its pattern found it.
    pub(super) fn fixed_kind(self) -> Option<TokenKind> {
        Some(match self {
            RawToken::Number => TokenKind::Number,
            RawToken::Uri => TokenKind::Uri,
            RawToken::Dollar => TokenKind::Dollar,
            RawToken::Dot => TokenKind::Dot,
            RawToken::Back => TokenKind::Back,
            RawToken::Comma => TokenKind::Comma,
            RawToken::Colon => TokenKind::Colon,
            RawToken::Semicolon => TokenKind::Semicolon,
            RawToken::Eq => TokenKind::Eq,
            RawToken::Ne => TokenKind::Ne,
            RawToken::Lt => TokenKind::Lt,
            RawToken::Le => TokenKind::Le,
            RawToken::Gt => TokenKind::Gt,
            RawToken::Ge => TokenKind::Ge,
            RawToken::Tilde => TokenKind::Tilde,
            RawToken::Arrow => TokenKind::Arrow,
            RawToken::Minus => TokenKind::Minus,
            RawToken::LeftParen => TokenKind::LeftParen,
            RawToken::RightParen => TokenKind::RightParen,
            RawToken::LeftBracket => TokenKind::LeftBracket,
            RawToken::RightBracket => TokenKind::RightBracket,
            RawToken::LeftBrace => TokenKind::LeftBrace,
            RawToken::RightBrace => TokenKind::RightBrace,
            _ => return None,
        })
    }
}

/// Returns the kind of token that a spelling of another language means.
pub(super) fn kind_of_alias(alias: &str) -> TokenKind {
    match alias {
        "!==" | "<>" | "\u{2260}" => TokenKind::Ne,
        "\u{2264}" => TokenKind::Le,
        "\u{2265}" => TokenKind::Ge,
        "->" | "\u{2192}" | "\u{21D2}" => TokenKind::Arrow,
        "&&" => TokenKind::Comma,
        _ => TokenKind::Eq,
    }
}
